//! The nodes and pods that an action names.

use std::{collections::BTreeSet, sync::Arc};

use crate::cluster::{Cluster, Key, Node, NodeName};

/// Why no plan can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Nothing is done where one name is wrong.
    #[error("nodes {} not found: nothing would be done", quoted(.0))]
    NoSuchNode(Vec<NodeName>),
    #[error("pods {} not found: nothing would be done", quoted(.0))]
    NoSuchPod(Vec<Key>),
}

fn quoted<T: std::fmt::Display>(names: &[T]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    names.join(", ")
}

/// Looks nodes up by name; all or nothing, and each once.
pub(super) fn nodes_named(cluster: &Cluster, names: &[NodeName]) -> Result<Vec<Arc<Node>>, PlanError> {
    let mut seen = BTreeSet::new();
    let names: Vec<&NodeName> = names.iter().filter(|name| seen.insert((*name).clone())).collect();
    let missing: Vec<NodeName> =
        names.iter().filter(|name| cluster.node(name).is_none()).map(|name| (*name).clone()).collect();
    if !missing.is_empty() {
        return Err(PlanError::NoSuchNode(missing));
    }
    Ok(names.into_iter().filter_map(|name| cluster.node(name).cloned()).collect())
}
