//! Findings about nodes whose clocks are wrong, or may be.

use super::{Finding, Phrase, VerdictLevel, seconds};
use crate::model::Model;
use kordon_core::{cluster::NodeName, engine::doubtful_clocks};
use kordon_time::Timestamp;

/// Finding about nodes whose clock differs from the API server's clock: `clock of node n-3 is 8h00m behind`. Nothing
/// happens to such nodes, but certificates, logs and the times in the node status are off.
pub(super) fn clocks(model: &Model) -> Option<Finding> {
    let clocks = model.watchlist.clocks();
    let phrase = match clocks.len() {
        0 => return None,
        1 => {
            let (node, difference) = clocks.first_key_value()?;
            Phrase::from(format!("clock of node {node} is ")).time(difference)
        }
        several => {
            let largest = clocks.values().map(|difference| difference.size()).max()?;
            Phrase::from(format!("clocks of {several} nodes are off by up to ")).time(largest)
        }
    };
    Some(Finding::new(VerdictLevel::Notice, phrase))
}

/// Finding about nodes whose clocks may be wrong: `clock of node n-3 may be wrong: its Lease is 8h00m old, but …`.
pub(super) fn doubtful(model: &Model, now: Timestamp) -> Option<Finding> {
    let nodes = doubtful_clocks(&model.cluster, now);
    let renewed = |node: &NodeName| Some(model.cluster.local(model.cluster.lease(node)?.renewed?));
    let age = seconds(now.since(nodes.iter().filter_map(renewed).min()?));
    let (clocks, unmarked) = match nodes.as_slice() {
        [node] => (format!("clock of node {node} may be wrong: its Lease"), "the node is not Unknown"),
        nodes => (format!("clocks of {} nodes may be wrong: a Lease", nodes.len()), "they are not Unknown"),
    };
    let phrase = Phrase::from(clocks + " is ").time(age).and(" old, but ").and(unmarked);
    let shows = "; kubectl get --show-managed-fields shows when it was written";
    Some(Finding::new(VerdictLevel::Notice, phrase.and(shows)))
}
