//! Counts over a plan.

use super::pod_plan::Window;

/// What the numbers of [`PlanTotals::counted`] are of.
pub const COUNTED: [&str; 11] = [
    "leave now",
    "leave later",
    "leaving already",
    "stay",
    "wait",
    "blocked",
    "refused",
    "lost for good",
    "lose data",
    "replacements stay Pending",
    "displaced",
];

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

impl PlanTotals {
    /// The pods by what becomes of them, in the order of [`COUNTED`].
    pub const fn counted(&self) -> [usize; 11] {
        [
            self.leave_now,
            self.leave_later,
            self.leaving_already,
            self.stay,
            self.wait,
            self.blocked,
            self.refused_pods,
            self.lost,
            self.data_lost,
            self.pending,
            self.displaced,
        ]
    }
}
