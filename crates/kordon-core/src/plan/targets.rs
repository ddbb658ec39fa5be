//! Targets of an action: the nodes and pods that the action names.

use std::{collections::BTreeSet, fmt::Display, sync::Arc};

use crate::cluster::{
    Cluster, Gaps, Key, Node, NodeName, Pod, Scope,
    nearest::{did_you_mean, nearest_node, nearest_pod},
};

/// The reason why a plan cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// At least one of the named nodes does not exist. There is then no plan for the other nodes either.
    #[error("nodes {} not found: nothing would be done{}", quoted(names), did_you_mean(meant))]
    NoSuchNode { names: Vec<NodeName>, meant: Vec<NodeName> },
    #[error("pods {} not found: nothing would be done{}", quoted(names), did_you_mean(meant))]
    NoSuchPod { names: Vec<Key>, meant: Vec<Key> },
    /// The outcome depends on objects that are not known.
    #[error("outcome unknown: {0}")]
    Unknown(Gaps),
}

fn quoted<T: Display>(names: &[T]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    names.join(", ")
}

/// Returns the nodes with these names, each once.
///
/// # Errors
/// A node does not exist, or it is unknown whether it exists.
pub(super) fn nodes_named(cluster: &Cluster, names: &[NodeName]) -> Result<Vec<Arc<Node>>, PlanError> {
    find_all(names, |name| cluster.node(name).cloned()).map_err(|missing| {
        let scopes = missing.iter().cloned().map(Scope::Node);
        let meant = missing.iter().filter_map(|name| nearest_node(name, cluster)).collect();
        unless_unknown(cluster, scopes, PlanError::NoSuchNode { names: missing.clone(), meant })
    })
}

/// Returns the pods with these names, each once.
///
/// # Errors
/// A pod does not exist, or it is unknown whether it exists.
pub(super) fn pods_named(cluster: &Cluster, keys: &[Key]) -> Result<Vec<Arc<Pod>>, PlanError> {
    find_all(keys, |key| cluster.pod(key).cloned()).map_err(|missing| {
        let scopes = missing.iter().cloned().map(Scope::Pod);
        let meant = missing.iter().filter_map(|key| nearest_pod(key, cluster)).collect();
        unless_unknown(cluster, scopes, PlanError::NoSuchPod { names: missing.clone(), meant })
    })
}

/// Returns an error if `gaps` (unknown or outdated kinds of objects) has unknown kinds. Kinds that are only outdated
/// are no error.
pub(super) fn require(gaps: &Gaps) -> Result<(), PlanError> {
    let unknown = gaps.clone().unknown();
    if unknown.is_empty() { Ok(()) } else { Err(PlanError::Unknown(unknown)) }
}

/// Decides which error to return for objects that were not found in these scopes (sets of objects). If the scopes are
/// completely known and up to date, the objects do not exist: returns `error`. Otherwise the objects may exist: returns
/// [`PlanError::Unknown`].
fn unless_unknown(cluster: &Cluster, scopes: impl Iterator<Item = Scope>, error: PlanError) -> PlanError {
    let gaps = cluster.gaps_in(scopes);
    if gaps.is_empty() { error } else { PlanError::Unknown(gaps) }
}

/// Returns the objects with these names, each once.
///
/// # Errors
/// Some objects do not exist. Returns their names.
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
