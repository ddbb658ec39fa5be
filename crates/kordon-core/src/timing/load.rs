//! The load that heartbeats of a cluster put on the API server and etcd.

use super::{HeartbeatKind, TimingProfile};
use kordon_time::Span;

/// Assumed size of a node object in etcd, in bytes: the size of a small cloud node with its images.
pub const NODE_BYTES: f64 = 10_240.0;

/// Assumed size of a Lease in etcd, in bytes.
pub const LEASE_BYTES: f64 = 400.0;

/// Interval at which the API server compacts etcd. Each compaction keeps the writes of the last interval, so etcd holds
/// the writes of one to two intervals.
pub const COMPACTION: Span = Span::from_secs(300);

/// Attempts of a kubelet to write one heartbeat (upstream `nodeStatusUpdateRetry`).
pub const STATUS_TRIES: i64 = 5;

/// Largest jitter of Lease renewals, as a share of the interval.
const RENEWAL_JITTER: f64 = 0.04;

/// Writes of all kubelets together in a steady state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ApiLoad {
    pub status_writes_per_minute: f64,
    /// Lease renewals per minute: first with the largest jitter, then without jitter.
    pub lease_writes_per_minute: [f64; 2],
    /// Largest growth of etcd by heartbeats: writes per minute times object size.
    pub etcd_bytes_per_minute: f64,
    /// Largest total size in bytes of the heartbeat writes that etcd holds: the writes of two [compaction](COMPACTION)
    /// intervals.
    pub etcd_bytes_kept: f64,
}

impl ApiLoad {
    pub fn new(profile: &TimingProfile, nodes: usize) -> Self {
        let kubelet = &profile.kubelet;
        #[expect(clippy::cast_precision_loss, reason = "a number of nodes")]
        let per_minute = |interval: Span| 60.0 * nodes as f64 / interval.as_secs_f64().max(f64::MIN_POSITIVE);
        let renewals = match kubelet.heartbeat {
            HeartbeatKind::Status => 0.0,
            HeartbeatKind::Lease => per_minute(kubelet.lease_renewal()),
        };
        let status = per_minute(kubelet.status_interval());
        let growth = status * NODE_BYTES + renewals * LEASE_BYTES;
        Self {
            status_writes_per_minute: status,
            lease_writes_per_minute: [renewals / (1.0 + RENEWAL_JITTER), renewals],
            etcd_bytes_per_minute: growth,
            etcd_bytes_kept: growth * 2.0 * COMPACTION.as_secs_f64() / 60.0,
        }
    }
}
