//! The nodes and pods that an action names.

use std::{collections::BTreeSet, fmt::Display, sync::Arc};

use crate::cluster::{Cluster, Key, Node, NodeName, Pod};

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// One wrong name is enough.
    #[error("nodes {} not found: nothing would be done", quoted(.0))]
    NoSuchNode(Vec<NodeName>),
    #[error("pods {} not found: nothing would be done", quoted(.0))]
    NoSuchPod(Vec<Key>),
}

fn quoted<T: Display>(names: &[T]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    names.join(", ")
}

/// Looks up all nodes by name, each once.
pub(super) fn nodes_named(cluster: &Cluster, names: &[NodeName]) -> Result<Vec<Arc<Node>>, PlanError> {
    find_all(names, |name| cluster.node(name).cloned()).map_err(PlanError::NoSuchNode)
}

/// Looks up all pods by name, each once.
pub(super) fn pods_named(cluster: &Cluster, keys: &[Key]) -> Result<Vec<Arc<Pod>>, PlanError> {
    find_all(keys, |key| cluster.pod(key).cloned()).map_err(PlanError::NoSuchPod)
}

/// All objects, each once, or the names of those that do not exist.
fn find_all<N: Ord + Clone, T>(names: &[N], find: impl Fn(&N) -> Option<T>) -> Result<Vec<T>, Vec<N>> {
    let mut seen = BTreeSet::new();
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for name in names.iter().filter(|name| seen.insert(*name)) {
        match find(name) {
            Some(object) => found.push(object),
            None => missing.push(name.clone()),
        }
    }
    if missing.is_empty() { Ok(found) } else { Err(missing) }
}
