//! Totals of a plan: counts of its nodes and pods.

use std::collections::BTreeMap;

use super::{
    landing::Landing,
    outcome_kind::{OutcomeCounts, OutcomeKind},
    pod_plan::{PodPlan, Window},
    verdict::Verdict,
};
use kordon_time::Timestamp;

/// Counts of the nodes and pods of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanTotals {
    pub nodes: usize,
    /// Nodes to which the plan writes.
    pub changed: usize,
    /// Nodes whose change is refused. For a drain, nodes from which kubectl would remove no pod.
    pub refused_nodes: usize,
    pub pods: usize,
    pub leave_now: usize,
    pub leave_later: usize,
    pub already_terminating: usize,
    pub stay: usize,
    /// Pods that wait for something that may never happen.
    pub wait: usize,
    pub blocked: usize,
    /// Pods of which it is unknown whether they leave, because the objects that decide this are not known.
    pub undecided: usize,
    pub refused_pods: usize,
    /// Pods that no controller recreates or whose Job fails, including preempted pods.
    pub lost: usize,
    pub data_lost: usize,
    /// Number of pods with each outcome. The numbers add up to `pods`.
    pub outcomes: OutcomeCounts,
    /// Replacements that land on a node whose name is known.
    pub placed: usize,
    /// Replacements that stay Pending, including those of preempted pods.
    pub pending: usize,
    /// Pods that replacements preempt.
    pub preempted: usize,
    /// Time at which the last pod is gone; `None` if that never happens, or if it is unknown whether some pods leave.
    pub ends: Window,
    /// Likely end of the plan, assuming that every undecided pod (a pod that may leave or stay) leaves at the first
    /// attempt; `None` if no pod is undecided.
    pub not_before: Option<Timestamp>,
}

/// A category in which pods or replacements are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodCount {
    LeaveNow,
    LeaveLater,
    AlreadyTerminating,
    Stay,
    Wait,
    Blocked,
    Undecided,
    Refused,
    Lost,
    DataLost,
    Pending,
    Preempted,
}

/// Counts the pods in each category, in the order of [`PodCount`]. Every pod is in one category.
pub fn parts<'a>(pods: impl IntoIterator<Item = &'a PodPlan>, made: Timestamp) -> Vec<(PodCount, usize)> {
    let mut parts: BTreeMap<PodCount, usize> = BTreeMap::new();
    for pod in pods {
        *parts.entry(PodCount::new(&pod.verdict, made)).or_default() += 1;
    }
    parts.into_iter().collect()
}

impl PodCount {
    /// Returns the category of a pod with this verdict. `made` is the time at which the plan was made.
    fn new(verdict: &Verdict, made: Timestamp) -> Self {
        match verdict {
            Verdict::Refused { .. } => Self::Refused,
            Verdict::Skipped(_) | Verdict::Tolerates | Verdict::DeletionCancelled => Self::Stay,
            Verdict::Terminating => Self::AlreadyTerminating,
            Verdict::Leaves(_) => Self::LeaveNow,
            Verdict::LeavesAfter { .. } => Self::LeaveLater,
            Verdict::Deleted { at, .. } if *at <= made => Self::LeaveNow,
            Verdict::Deleted { .. } | Verdict::Orphaned => Self::LeaveLater,
            Verdict::Waits { .. }
            | Verdict::WaitsForOperator { .. }
            | Verdict::WaitsForController { .. }
            | Verdict::WaitsForNamespace
            | Verdict::WaitsForFinalizer { .. } => Self::Wait,
            Verdict::Blocked { .. } | Verdict::TwoBudgets { .. } | Verdict::Unknown { .. } => Self::Blocked,
            Verdict::Undecided { .. } => Self::Undecided,
        }
    }

    /// Returns the words for this category, which follow the number of its pods.
    pub const fn words(self) -> &'static str {
        match self {
            Self::LeaveNow => "leave now",
            Self::LeaveLater => "leave later",
            Self::AlreadyTerminating => "already terminating",
            Self::Stay => "stay",
            Self::Wait => "wait",
            Self::Blocked => "blocked",
            Self::Undecided => "undecided",
            Self::Refused => "refused",
            Self::Lost => "lost",
            Self::DataLost => "lose data",
            Self::Pending => "Pending afterwards",
            Self::Preempted => "preempted",
        }
    }
}

impl PlanTotals {
    /// Returns the number of pods or replacements for each consequence of the plan, in the order in which they are
    /// shown. They are not added to the numbers of [`parts`]: a pod that is lost is also counted there.
    pub const fn consequences(&self) -> [(PodCount, usize); 4] {
        [
            (PodCount::Lost, self.lost),
            (PodCount::DataLost, self.data_lost),
            (PodCount::Pending, self.pending),
            (PodCount::Preempted, self.preempted),
        ]
    }

    /// Counts the pods of a plan. `made` is the time at which the plan was made.
    pub(super) fn from_pods(pods: &[PodPlan], made: Timestamp) -> Self {
        let mut totals = Self { pods: pods.len(), ..Self::default() };
        for pod in pods {
            totals.add(pod, made);
        }
        let last = |time: fn(&PodPlan) -> Option<Timestamp>| {
            // A pod that was terminating before the plan may end at any time, unless the plan removes it by force.
            let is_removed =
                |pod: &PodPlan| pod.verdict == Verdict::Terminating && pod.is_kept_by_finalizers();
            let leaves = |pod: &PodPlan| pod.verdict.as_if_granted().may_leave() || is_removed(pod);
            let stays = |pod: &PodPlan| leaves(pod) && time(pod).is_none();
            if pods.iter().any(stays) { None } else { pods.iter().filter_map(time).max().or(Some(made)) }
        };
        totals.ends = Window {
            soonest: last(|pod| pod.gone.soonest),
            likely: last(|pod| pod.gone.likely),
            latest: last(|pod| pod.gone.latest),
        };
        totals
    }

    /// Returns the likely end of the plan; `None` means never. If it is unknown whether some pods leave, the plan may
    /// end later.
    pub(super) fn likely_end(&self) -> Option<Timestamp> {
        self.not_before.or(self.ends.likely)
    }

    fn add(&mut self, pod: &PodPlan, made: Timestamp) {
        self.outcomes.count(pod.outcome.kind());
        self.refused_pods += usize::from(matches!(pod.verdict, Verdict::Refused { .. }));
        let verdict = pod.verdict.as_if_granted();
        match PodCount::new(verdict, made) {
            PodCount::LeaveNow => self.leave_now += 1,
            PodCount::LeaveLater => self.leave_later += 1,
            PodCount::AlreadyTerminating => self.already_terminating += 1,
            PodCount::Stay | PodCount::Refused => self.stay += 1,
            PodCount::Wait => self.wait += 1,
            PodCount::Blocked => self.blocked += 1,
            PodCount::Undecided => self.undecided += 1,
            PodCount::Lost | PodCount::DataLost | PodCount::Pending | PodCount::Preempted => {}
        }
        match &pod.landing {
            Some(Landing::Node { .. }) => self.placed += 1,
            Some(Landing::Pending { .. }) => self.pending += 1,
            Some(Landing::Unknown | Landing::Rejected { .. }) | None => {}
        }
        for kind in pod.preempted().map(OutcomeKind::for_preempted) {
            self.preempted += 1;
            self.pending += usize::from(kind == OutcomeKind::Pending);
            self.lost += usize::from(matches!(kind, OutcomeKind::Lost | OutcomeKind::FailsJob));
        }
        if verdict.may_leave() {
            self.lost += usize::from(pod.lost.is_some());
            self.data_lost += usize::from(pod.warnings.iter().any(|warning| warning.loses_data()));
        }
    }
}
