//! Nodes whose clocks may be wrong, although the objects do not show it.

use super::taints::UNREACHABLE;
use crate::cluster::{Cluster, ConditionStatus, Lease, NodeName};
use kordon_time::{Span, Timestamp};

/// Time without a heartbeat after which a running controller has certainly set Ready to Unknown. It is longer than
/// every grace period in use: 40 s and 50 s by default, 5 min with flags that tolerate long outages.
pub const MARKED_WITHIN: Span = Span::from_secs(600);

/// Whether the clock of a Lease's node may be wrong: the Lease is older than [`MARKED_WITHIN`], but no controller has
/// marked the node, and the API server does not state when it wrote the Lease. Either the clock is behind, or no
/// controller runs.
pub fn is_clock_doubtful(cluster: &Cluster, lease: &Lease, now: Timestamp) -> bool {
    let age = lease.renewed.map(|renewed| now.since(cluster.local(renewed)));
    lease.written.is_none()
        && age.is_some_and(|age| age > MARKED_WITHIN)
        && cluster.node(&lease.node).is_some_and(|node| {
            node.ready().is_some_and(|ready| ready.status != ConditionStatus::Unknown)
                && node.taints.iter().all(|taint| taint.key != *UNREACHABLE)
        })
}

/// Returns the nodes whose clocks may be wrong ([`is_clock_doubtful`]), by name.
pub fn doubtful_clocks(cluster: &Cluster, now: Timestamp) -> Vec<NodeName> {
    let doubtful = cluster.leases().iter().filter(|lease| is_clock_doubtful(cluster, lease, now));
    doubtful.map(|lease| lease.node.clone()).collect()
}
