//! Rehearsal of an operation: runs it to its end without a server, to learn which requests it sends.

use super::{NodeIncomplete, NodeProgressStage, Operation, OperationOptions, RequestKind, RequestOutcome};
use crate::{
    cluster::{Change, Cluster, Key, NodeName, ObjectEvent},
    plan::Plan,
};
use kordon_time::Timestamp;

/// Maximum number of timeouts of a rehearsal. If all requests succeed, an operation needs none.
const MOST_TIMEOUTS: usize = 1000;

impl Operation {
    /// Runs an operation that applies `plan`, from its start to its end. `serve` answers each request in place of the
    /// server. Pods that are already being deleted count as gone. Returns the nodes that the operation gives up, with
    /// the reasons.
    pub fn rehearse(
        plan: &Plan,
        options: OperationOptions,
        cluster: &Cluster,
        now: Timestamp,
        mut serve: impl FnMut(&RequestKind) -> RequestOutcome,
    ) -> Vec<(NodeName, NodeIncomplete)> {
        let cluster = without_terminating(plan, cluster);
        let mut operation = Self::start(plan, options, &cluster, now);
        let mut at = now;
        for _ in 0..MOST_TIMEOUTS {
            while let Some(request) = operation.poll_request() {
                let outcome = serve(&request.task);
                operation.handle_outcome(&cluster, request.id, outcome, at);
            }
            match operation.poll_timeout() {
                Some(due) => at = at.max(due),
                None => break,
            }
            operation.handle_timeout(&cluster, at);
        }
        let given_up = |node: &super::NodeTask| match &node.shown {
            NodeProgressStage::Incomplete(why) => Some((node.node.clone(), why.clone())),
            NodeProgressStage::Waiting
            | NodeProgressStage::Unchanged
            | NodeProgressStage::Written
            | NodeProgressStage::Draining { .. }
            | NodeProgressStage::Verifying
            | NodeProgressStage::Drained { .. }
            | NodeProgressStage::Recorded => None,
        };
        operation.nodes.iter().filter_map(given_up).collect()
    }
}

/// Returns the cluster without those pods of the plan that are already being deleted.
fn without_terminating(plan: &Plan, cluster: &Cluster) -> Cluster {
    let is_terminating = |pod: &Key| cluster.pod(pod).is_some_and(|pod| pod.termination.is_some());
    let gone = plan.pods.iter().map(|pod| &pod.pod).filter(|pod| is_terminating(pod));
    let mut cluster = cluster.clone();
    for pod in gone.cloned().collect::<Vec<_>>() {
        cluster.apply(Change::Pod(ObjectEvent::Deleted(pod)), &mut Vec::new());
    }
    cluster
}
