//! What the heartbeats of a cluster cost the API server and etcd.

use super::{HeartbeatKind, TimingProfile};
use kordon_time::Span;

/// The size of a node object in etcd that is assumed: one of a small cloud node, with its images.
pub const NODE_BYTES: f64 = 10_240.0;

/// The size of a Lease in etcd that is assumed.
pub const LEASE_BYTES: f64 = 400.0;

/// The API server has etcd compacted this often, down to what is as old: etcd holds the writes of once to twice this time.
pub const COMPACTION: Span = Span::from_secs(300);

/// How often a kubelet tries to write one heartbeat (upstream `nodeStatusUpdateRetry`).
pub const STATUS_TRIES: i64 = 5;

/// A kubelet adds up to this share to the time between two renewals of its Lease.
const RENEWAL_JITTER: f64 = 0.04;

/// Writes of all kubelets together, while nothing changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ApiLoad {
    pub status_writes_per_minute: f64,
    /// With all the jitter that kubelets add, and without any.
    pub lease_writes_per_minute: [f64; 2],
    /// What etcd grows by, at most: writes times the size of the object.
    pub etcd_bytes_per_minute: f64,
    /// What of that etcd holds at most, before it is [compacted](COMPACTION).
    pub etcd_bytes_kept: f64,
}

impl ApiLoad {
    pub fn of(profile: &TimingProfile, nodes: usize) -> Self {
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
