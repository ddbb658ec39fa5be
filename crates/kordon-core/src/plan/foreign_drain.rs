//! Drains by other clients. Those that leave no mark but the cordon, such as drains by kubectl, show in the evictions of
//! the node's pods.

use std::sync::Arc;

use super::{
    action::{DrainOptions, RemovalMode},
    blocked_drain::{BlockedDrain, pods_left},
    drain_start::cordoned_at,
    rules::EvictionRules,
    simulation::RemovalGroup,
    time_left::{TimeLeft, time_left},
    words::named,
};
use crate::cluster::{Cluster, ForeignDrain, Key, Node, Pod, PodTreatment, pod::BY_API};
use kordon_time::Timestamp;

/// Returns the drain, reboot or maintenance of a node by another client than kordon: by a mark on the node, or else by
/// the evictions of its pods. `None` if neither shows one.
pub fn foreign_drain(
    cluster: &Cluster,
    node: &Node,
    rules: &EvictionRules,
    now: Timestamp,
) -> Option<ForeignDrain> {
    ForeignDrain::find(cluster, node).or_else(|| unmarked_drain(cluster, node, rules, now))
}

/// Returns the drain of a cordoned node without a mark: pods of the node are being evicted, or budgets refuse the
/// eviction of all pods that are left. `None` for a node that kordon cordoned, drains or maintains, and for a node that
/// some component marks.
pub fn unmarked_drain(
    cluster: &Cluster,
    node: &Node,
    rules: &EvictionRules,
    now: Timestamp,
) -> Option<ForeignDrain> {
    if !may_have_unmarked_drain(node) {
        return None;
    }
    let evidence = evictions_in_progress(cluster, node)
        .or_else(|| refuses_all(cluster, node, rules, now).then(|| REFUSED.to_owned()))?;
    Some(ForeignDrain::without_mark(cluster, node, evidence, cordoned_at(cluster, node)))
}

/// Whether the evictions of its pods decide whether a node is drained: it is cordoned, but not by kordon, and no
/// component marks it.
pub fn may_have_unmarked_drain(node: &Node) -> bool {
    let is_of_kordon = node.cordon().is_some() || node.drain_claim.is_some() || node.maintenance.is_some();
    node.unschedulable && !is_of_kordon && ForeignDrain::stage(node).is_none()
}

/// Returns when the rest of a drain by another client ends, if the client evicts the pods that are left at once and
/// retries as kubectl does. Pods that the drain only waits for are left out.
pub fn foreign_time_left(cluster: &Cluster, node: &Node, rules: &EvictionRules, now: Timestamp) -> TimeLeft {
    let is_evicted = |pod: &&Arc<Pod>| PodTreatment::find(node, pod) == PodTreatment::Evicted;
    let pods = cluster.workload_pods(&node.name).filter(is_evicted).cloned().collect();
    let group = RemovalGroup { node: Some(node.name.clone()), pods };
    let options = DrainOptions::default();
    time_left(cluster, vec![group], Vec::new(), &options, RemovalMode::Evict, *rules, now)
}

/// Evidence of a drain whose evictions are all refused. The API server records refused evictions nowhere.
const REFUSED: &str = "budgets refuse the eviction of every pod that is left";

/// Names the pods of the node that are being evicted: `eviction of shop/web-1 and 2 more in progress`.
fn evictions_in_progress(cluster: &Cluster, node: &Node) -> Option<String> {
    let evicted: Vec<Key> = cluster
        .workload_pods(&node.name)
        .filter(|pod| pod.termination.is_some() && pod.disruption_target.as_deref() == Some(BY_API))
        .map(|pod| pod.key.clone())
        .collect();
    (!evicted.is_empty()).then(|| format!("eviction of {} in progress", named(&evicted)))
}

/// Whether budgets refuse the eviction of every pod that a drain has left on the node. On a node that is only cordoned,
/// some pod may usually leave.
fn refuses_all(cluster: &Cluster, node: &Node, rules: &EvictionRules, now: Timestamp) -> bool {
    let blocked = BlockedDrain::find(cluster, node, None, rules, now);
    blocked.is_some_and(|drain| drain.pods.len() == pods_left(cluster, node).count())
}
