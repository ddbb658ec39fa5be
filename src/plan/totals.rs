//! Counts over a plan.

use super::pod_plan::Window;

/// What becomes of a pod, or of its replacement, where that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodCount {
    LeaveNow,
    LeaveLater,
    LeavingAlready,
    Stay,
    Wait,
    Blocked,
    Refused,
    Lost,
    DataLost,
    Pending,
    Displaced,
}

/// Counts over a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanTotals {
    pub nodes: usize,
    /// Nodes that are written to.
    pub changed: usize,
    /// Nodes whose request is refused, or none of whose pods would be touched.
    pub refused_nodes: usize,
    pub pods: usize,
    pub leave_now: usize,
    pub leave_later: usize,
    pub leaving_already: usize,
    pub stay: usize,
    /// Waiting for something that may or may not come.
    pub wait: usize,
    pub blocked: usize,
    pub refused_pods: usize,
    pub lost: usize,
    pub data_lost: usize,
    /// Replacements that land on a node that is known by name.
    pub placed: usize,
    /// Replacements that stay Pending.
    pub pending: usize,
    /// Pods that replacements displace.
    pub displaced: usize,
    /// When everything is over; none where it never is.
    pub ends: Window,
}

impl PodCount {
    /// The words behind the number.
    pub const fn words(self) -> &'static str {
        match self {
            Self::LeaveNow => "leave now",
            Self::LeaveLater => "leave later",
            Self::LeavingAlready => "leaving already",
            Self::Stay => "stay",
            Self::Wait => "wait",
            Self::Blocked => "blocked",
            Self::Refused => "refused",
            Self::Lost => "lost for good",
            Self::DataLost => "lose data",
            Self::Pending => "replacements stay Pending",
            Self::Displaced => "displaced",
        }
    }
}

impl PlanTotals {
    /// The pods by what becomes of them, in the order in which they are shown.
    pub const fn counts(&self) -> [(PodCount, usize); 11] {
        [
            (PodCount::LeaveNow, self.leave_now),
            (PodCount::LeaveLater, self.leave_later),
            (PodCount::LeavingAlready, self.leaving_already),
            (PodCount::Stay, self.stay),
            (PodCount::Wait, self.wait),
            (PodCount::Blocked, self.blocked),
            (PodCount::Refused, self.refused_pods),
            (PodCount::Lost, self.lost),
            (PodCount::DataLost, self.data_lost),
            (PodCount::Pending, self.pending),
            (PodCount::Displaced, self.displaced),
        ]
    }
}
