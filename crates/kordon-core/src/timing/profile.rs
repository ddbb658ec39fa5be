//! The flags that decide how soon the death of a node is noticed.

use crate::engine::{Origin, ServerVersion, Setting, Settings, ShortGrace};
use kordon_time::Span;

/// Names of the four standard profiles (docs/upstream/node-lifecycle.md#11.2). `low` reacts slowest.
pub const PROFILE_NAMES: [&str; 4] = ["default", "fast", "medium", "low"];

/// A named set of flags.
#[derive(Clone, Debug, PartialEq)]
pub struct TimingProfile {
    pub name: String,
    /// Flags of the controller.
    pub settings: Settings,
    pub kubelet: KubeletFlags,
    /// tolerationSeconds of the pods: the API server's `--default-unreachable-toleration-seconds`.
    pub toleration: Span,
    /// Assumed time from the creation of a replacement until it runs.
    pub pod_startup: Span,
}

/// The object that a kubelet writes as its heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeartbeatKind {
    /// The node's status (kubelets up to 1.13).
    Status,
    /// The node's Lease. The status is written when it changes, and otherwise only rarely.
    Lease,
}

/// The settings of the kubelets that decide when they write heartbeats (docs/upstream/node-lifecycle.md#11.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KubeletFlags {
    pub heartbeat: HeartbeatKind,
    /// `--node-status-update-frequency`: interval at which the status is computed and, with [`HeartbeatKind::Status`],
    /// written.
    pub status_update_frequency: Span,
    /// `nodeStatusReportFrequency`: interval at which an unchanged status is written if Leases are the heartbeat.
    pub status_report_frequency: Span,
    /// `nodeLeaseDurationSeconds`. A kubelet renews its Lease four times within this period.
    pub lease_duration: Span,
}

impl HeartbeatKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Lease => "lease",
        }
    }
}

impl KubeletFlags {
    /// Upstream's default flags of kubelets.
    pub fn defaults(heartbeat: HeartbeatKind) -> Self {
        Self {
            heartbeat,
            status_update_frequency: Span::from_secs(10),
            status_report_frequency: Span::from_secs(300),
            lease_duration: Span::from_secs(40),
        }
    }

    /// The flags that affect the heartbeat, with their values.
    pub fn rows(&self) -> Vec<(&'static str, Span)> {
        let status = ("node-status-update-frequency", self.status_update_frequency);
        match self.heartbeat {
            HeartbeatKind::Status => vec![status],
            HeartbeatKind::Lease => vec![
                status,
                ("node-status-report-frequency", self.status_report_frequency),
                ("node-lease-duration", self.lease_duration),
            ],
        }
    }

    /// The time between two renewals of the Lease, without the jitter of up to 4 percent that a kubelet adds.
    pub fn lease_renewal(&self) -> Span {
        Span::from_nanos(self.lease_duration.as_nanos() / 4)
    }

    /// The time between two writes of an unchanged status.
    pub fn status_interval(&self) -> Span {
        match self.heartbeat {
            HeartbeatKind::Status => self.status_update_frequency,
            HeartbeatKind::Lease => self.status_report_frequency.max(self.status_update_frequency),
        }
    }

    /// The time between two heartbeats. With Leases, this is the shorter of two intervals: between Lease renewals, and
    /// between status writes.
    pub fn interval(&self) -> Span {
        match self.heartbeat {
            HeartbeatKind::Status => self.status_interval(),
            HeartbeatKind::Lease => self.status_interval().min(self.lease_renewal()),
        }
    }
}

impl TimingProfile {
    /// The profile with upstream's default flags for a release.
    pub fn defaults(version: ServerVersion, heartbeat: HeartbeatKind) -> Self {
        Self {
            name: PROFILE_NAMES[0].into(),
            settings: Settings::defaults(version),
            kubelet: KubeletFlags::defaults(heartbeat),
            toleration: Span::from_secs(300),
            pod_startup: Span::from_secs(10),
        }
    }

    /// The [standard profiles](PROFILE_NAMES), made from these flags. Flags that a profile does not set keep their
    /// values (docs/upstream/node-lifecycle.md#11.2).
    pub fn presets(base: &Self) -> [Self; 4] {
        let [default, fast, medium, low] =
            PROFILE_NAMES.map(|name| Self { name: name.into(), ..base.clone() });
        [
            default,
            fast.with_seconds([4, 2, 20, 30]),
            medium.with_seconds([20, 5, 120, 60]),
            low.with_seconds([60, 5, 300, 60]),
        ]
    }

    fn with_seconds(mut self, seconds: [i64; 4]) -> Self {
        let [frequency, period, grace, eviction] = seconds.map(Span::from_secs);
        let given = |value| Setting { value, origin: Origin::Override };
        self.kubelet.status_update_frequency = frequency;
        self.settings.node_monitor_period = given(period);
        self.settings.node_monitor_grace_period = given(grace);
        self.settings.pod_eviction_timeout = given(eviction);
        self
    }

    /// The number of heartbeats within the grace period; zero if jitter can delay a Lease renewal until the grace
    /// period is over.
    pub fn heartbeats_in_grace(&self) -> i64 {
        let by_lease = self.kubelet.heartbeat == HeartbeatKind::Lease;
        if by_lease && ShortGrace::find(&self.settings, self.kubelet.interval()).is_some() {
            return 0;
        }
        self.settings.node_monitor_grace_period.value.as_nanos() / self.kubelet.interval().as_nanos().max(1)
    }
}
