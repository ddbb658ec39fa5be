//! Targets of an action: the nodes and pods that it names.

use std::{collections::BTreeSet, fmt::Display, sync::Arc};

use crate::cluster::{
    Cluster, Gaps, Key, Node, NodeName, Pod, Scope,
    nearest::{did_you_mean, nearest_node, nearest_pod},
};

/// The reason why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// At least one of the named nodes does not exist. One wrong name prevents the whole plan.
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

/// Looks up all nodes by name, without duplicates.
pub(super) fn nodes_named(cluster: &Cluster, names: &[NodeName]) -> Result<Vec<Arc<Node>>, PlanError> {
    find_all(names, |name| cluster.node(name).cloned()).map_err(|missing| {
        let scopes = missing.iter().cloned().map(Scope::Node);
        let meant = missing.iter().filter_map(|name| nearest_node(name, cluster)).collect();
        unless_unknown(cluster, scopes, PlanError::NoSuchNode { names: missing.clone(), meant })
    })
}

/// Looks up all pods by name, without duplicates.
pub(super) fn pods_named(cluster: &Cluster, keys: &[Key]) -> Result<Vec<Arc<Pod>>, PlanError> {
    find_all(keys, |key| cluster.pod(key).cloned()).map_err(|missing| {
        let scopes = missing.iter().cloned().map(Scope::Pod);
        let meant = missing.iter().filter_map(|key| nearest_pod(key, cluster)).collect();
        unless_unknown(cluster, scopes, PlanError::NoSuchPod { names: missing.clone(), meant })
    })
}

/// Returns an error if the outcome depends on objects of which nothing is known.
pub(super) fn require(gaps: &Gaps) -> Result<(), PlanError> {
    let unknown = gaps.clone().unknown();
    if unknown.is_empty() { Ok(()) } else { Err(PlanError::Unknown(unknown)) }
}

/// Returns `error`, which says that objects do not exist, if the scopes are known as they are now. Otherwise returns
/// their gaps, because an object that was missing earlier may exist now.
fn unless_unknown(cluster: &Cluster, scopes: impl Iterator<Item = Scope>, error: PlanError) -> PlanError {
    let gaps = cluster.gaps_in(scopes);
    if gaps.is_empty() { error } else { PlanError::Unknown(gaps) }
}

/// Returns all objects without duplicates, or the names of those that do not exist.
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
