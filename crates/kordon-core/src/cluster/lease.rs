//! Leases: the heartbeats of nodes, and the leader of the controller managers.

use std::fmt;

use minicbor::{Decode, Encode};

use super::{
    encoding::EncodingContext,
    names::{Name, NodeName},
    table::{TableObject, Version},
};
use kordon_time::{ClusterTime, Span};

/// A Lease in the namespace kube-node-lease. It has the name of its node.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct Lease {
    #[n(0)]
    pub node: NodeName,
    #[n(1)]
    pub version: Version,
    /// `spec.renewTime`, by the kubelet's clock.
    #[n(2)]
    pub renewed: Option<ClusterTime>,
    /// `spec.leaseDurationSeconds`.
    #[n(3)]
    pub duration: Option<Span>,
    /// Time of the last change of `spec.renewTime`, by the API server's clock, in whole seconds (`time` of its manager
    /// in `metadata.managedFields`); none if the server does not say.
    #[n(4)]
    pub written: Option<ClusterTime>,
}

/// Largest difference between a kubelet's clock and the API server's clock at which a kubelet's time is used unchanged.
/// Clocks that agree may also seem to differ, because a request takes time, and because the server's time is a whole
/// second.
const TOLERATED: Span = Span::from_secs(5);

/// Returns a time that a kubelet stated in a write, by the API server's clock: the stated time, unless the kubelet's
/// clock differs. If it differs, returns the end of the second in which the server wrote the object, so that no heartbeat
/// looks older than it is.
pub fn by_server_clock(stated: ClusterTime, written: ClusterTime) -> ClusterTime {
    if is_beyond(stated.since(written), TOLERATED) { written + Span::from_millis(999) } else { stated }
}

fn is_beyond(difference: Span, limit: Span) -> bool {
    difference > limit || difference < -limit
}

impl Lease {
    /// Smallest difference between the clocks that is reported. A smaller difference may come from a slow request: the
    /// kubelet gives up a request after ten seconds.
    const REPORTED: Span = Span::from_secs(15);

    /// Returns the time of the last renewal by the API server's clock ([`by_server_clock`]).
    pub fn heartbeat(&self) -> Option<ClusterTime> {
        let renewed = self.renewed?;
        Some(self.written.map_or(renewed, |written| by_server_clock(renewed, written)))
    }

    /// Returns the difference between the kubelet's clock and the API server's clock; `None` if a slow request may
    /// explain it.
    pub fn clock_difference(&self) -> Option<ClockDifference> {
        let difference = self.renewed?.since(self.written?);
        is_beyond(difference, Self::REPORTED).then_some(ClockDifference(difference))
    }
}

/// A kubelet's clock minus the API server's clock, known to about a second. Displayed as `8h00m behind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockDifference(Span);

impl ClockDifference {
    pub const fn span(self) -> Span {
        self.0
    }

    /// The absolute difference of the two clocks, rounded so that it does not change with each renewal of the Lease.
    pub fn size(self) -> Span {
        let seconds = (self.0.max(-self.0).as_nanos() + 500_000_000) / 1_000_000_000;
        let step = if seconds < 3600 { 5 } else { 60 };
        Span::from_secs((seconds + step / 2) / step * step)
    }
}

impl fmt::Display for ClockDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = if self.0 < Span::ZERO { "behind" } else { "ahead" };
        write!(f, "{} {direction}", self.size())
    }
}

impl TableObject for Lease {
    type Key = NodeName;
    fn key(&self) -> NodeName {
        self.node.clone()
    }
    fn version(&self) -> Version {
        self.version
    }
    fn share_parts(&mut self, predecessor: &Self) {
        self.node.clone_from(&predecessor.node);
    }
}

/// The Lease of a controller, such as kube-system/kube-controller-manager: whether it runs, and since when.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct LeaderLease {
    #[n(0)]
    pub version: Version,
    /// `spec.holderIdentity`; empty if the last holder released the Lease.
    #[n(1)]
    pub holder: Name,
    /// `spec.acquireTime`: since when the holder has had the Lease.
    #[n(2)]
    pub acquired: Option<ClusterTime>,
    #[n(3)]
    pub renewed: Option<ClusterTime>,
    #[n(4)]
    pub duration: Option<Span>,
    /// The annotation [`FULL_DISRUPTION`], which `kordon controller` writes.
    #[n(5)]
    pub full_disruption: Option<Name>,
}

/// Annotation of a Lease that `kordon controller` holds: the value of its `--full-disruption`.
pub const FULL_DISRUPTION: &str = "kordon.dev/full-disruption";

impl LeaderLease {
    /// Time for which a renewal of the Lease is valid. A Lease without a duration has the default of
    /// kube-controller-manager's `--leader-elect-lease-duration`.
    pub fn validity(&self) -> Span {
        self.duration.unwrap_or(Span::from_secs(15))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Change, Cluster, Node, ObjectEvent};
    use kordon_time::Timestamp;

    #[test]
    fn a_heartbeat_is_renew_time_unless_the_clocks_differ() {
        let at = |millis| Some(ClusterTime::new(Timestamp::EPOCH + Span::from_millis(millis)));
        let lease = |renewed, written| Lease { renewed: at(renewed), written, ..Lease::default() };
        let of = |renewed, written| {
            let lease = lease(renewed, at(written));
            (lease.heartbeat(), lease.clock_difference().map(|difference| difference.to_string()))
        };
        let hours = 8 * 3_600_000;
        assert_eq!(of(100_700, 100_000), (at(100_700), None), "the server's second has just begun");
        assert_eq!(of(97_000, 100_000), (at(97_000), None), "a request that took three seconds");
        assert_eq!(of(92_000, 100_000), (at(100_999), None), "a request that took eight seconds");
        assert_eq!(of(100_000, 100_000 + hours), (at(100_999 + hours), Some("8h00m behind".into())));
        assert_eq!(of(100_000 + hours, 100_000), (at(100_999), Some("8h00m ahead".into())));
        assert_eq!(lease(100_000, None).heartbeat(), at(100_000), "the server does not say");
        assert_eq!(Lease { renewed: None, ..lease(0, at(1)) }.heartbeat(), None, "never renewed");
    }

    #[test]
    fn a_node_and_its_lease_have_one_name_in_memory() {
        let node = |version| Node { name: "n".into(), version: Version(version), ..Node::default() };
        let lease = |version| Lease { node: "n".into(), version: Version(version), ..Lease::default() };
        let lists =
            [Change::Node(ObjectEvent::Listed(node(1))), Change::Lease(ObjectEvent::Listed(lease(1)))];
        for order in [[0, 1], [1, 0]] {
            let mut cluster = Cluster::default();
            let changed =
                [Change::Node(ObjectEvent::Applied(node(2))), Change::Lease(ObjectEvent::Applied(lease(2)))];
            for change in order.map(|which: usize| lists[which].clone()).into_iter().chain(changed) {
                cluster.apply(change, &mut Vec::new());
            }
            let [node, lease] = [
                &cluster.node(&"n".into()).expect("it is listed").name,
                &cluster.lease(&"n".into()).expect("it is listed").node,
            ];
            assert!(std::ptr::eq(node.as_ptr(), lease.as_ptr()), "{order:?}");
        }
    }
}
