//! Evictions that repeat, because the replacement of a pod runs on the node that evicted it.

use std::collections::BTreeMap;

use super::{
    environment::{Environment, TypicalEnvironment},
    owner::{self, Recreation},
    placing_environment::recovered,
    successor,
};
use crate::{
    cluster::{Cluster, NodeName, OwnerKind, Phase, Pod, WorkloadKind},
    engine::{Tolerance, no_execute, tolerance},
    pressure,
};
use kordon_time::{Span, Timestamp};

/// Longest back-off of the DaemonSet controller before it replaces a failed pod (upstream `startDaemonSetController`).
/// It starts at one second and doubles.
pub const LONGEST_DAEMON_SET_BACKOFF: Span = Span::from_secs(15 * 60);

/// Returns how long after a pod its replacement is evicted from the pod's node by the node's taints. `None` if the
/// taints do not evict the replacement, or if the node does not exist. `back` has the nodes that are Ready again when
/// the replacement lands, as in [`Forecast::recovered`](crate::forecast::Forecast::recovered): the controller removes
/// its taints from them.
pub fn evicted_again_after(
    cluster: &Cluster,
    pod: &Pod,
    back: &BTreeMap<NodeName, Timestamp>,
    now: Timestamp,
) -> Option<Span> {
    let node = cluster.node(pod.node.as_ref()?)?;
    let taints = if back.contains_key(&node.name) { no_execute(&recovered(node)) } else { no_execute(node) };
    let tolerated = match tolerance(&successor::successor(cluster, pod).tolerations, &taints) {
        Tolerance::NotTolerated(_) => Span::ZERO,
        Tolerance::For { span, .. } => span,
        Tolerance::Forever => return None,
    };
    Some(recreated_after(cluster, pod, now) + tolerated)
}

/// Returns how long after the start of a pod's deletion its owner creates the replacement: at once, or as soon as the
/// pod has terminated, as a StatefulSet does (upstream `processReplica`).
pub fn recreated_after(cluster: &Cluster, pod: &Pod, now: Timestamp) -> Span {
    match owner::recreation(cluster, pod) {
        Recreation::WhenGone => {
            let running = Pod { termination: None, ..pod.clone() };
            let terminates = TypicalEnvironment { cluster, now }.time_to_terminate(&running, pod.grace);
            terminates.likely.unwrap_or(Span::ZERO)
        }
        Recreation::Immediately | Recreation::OnSameNode | Recreation::Never(_) | Recreation::Unknown => {
            Span::ZERO
        }
    }
}

/// Returns how long after a failed pod its replacement fails, if the kubelet of the pod's node rejects the replacement
/// because of pressure, and no other node may run it. `None` if the owner does not replace the pod now, or if the
/// kubelet admits the replacement.
pub fn rejected_again_after(cluster: &Cluster, pod: &Pod) -> Option<Span> {
    let node = cluster.node(pod.node.as_ref()?)?;
    let owner = pod.owner.as_ref()?;
    // A pod without a start time is not yet admitted.
    let live = || cluster.pods_owned_by(&owner.uid).filter(|other| other.lives() && other.started.is_some());
    let OwnerKind::Workload(kind) = &owner.kind else { return None };
    let (is_replaced_here, after) = match kind {
        WorkloadKind::DaemonSet => (!live().any(|other| other.node == pod.node), LONGEST_DAEMON_SET_BACKOFF),
        WorkloadKind::ReplicaSet | WorkloadKind::StatefulSet | WorkloadKind::ReplicationController => {
            let is_bound = owner::named_node(cluster, pod) == pod.node;
            (is_bound && owner::missing_pods(cluster, pod, live().count()) > 0, Span::ZERO)
        }
        WorkloadKind::Deployment | WorkloadKind::Job => (false, Span::ZERO),
    };
    let is_rejected_again = is_replaced_here
        && pod.phase == Phase::Failed
        && pressure::rejects(node, &successor::successor(cluster, pod));
    is_rejected_again.then_some(after)
}

/// Returns the number of pods that leave in an hour if `pods` leave in each period of `every`; `None` if they leave
/// without a pause.
pub fn per_hour(pods: usize, every: Span) -> Option<i64> {
    let pods = i64::try_from(pods).ok()?;
    (Span::from_secs(3600) * pods).as_nanos().checked_div(every.as_nanos())
}

/// Says how many pods leave in an hour: `about 240 an hour`, `without a pause`.
pub fn rate(per_hour: Option<i64>) -> String {
    per_hour.map_or("without a pause".into(), |pods| format!("about {pods} an hour"))
}
