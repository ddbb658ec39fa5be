//! One wave as it is tried: the plan of its drains, and whether it may be.

use super::{LeftOutReason, MaintenanceOptions, MaintenanceWave, PodMove, WorkloadDown, state::WaveState};
use crate::{
    cluster::{Cluster, NodeName},
    operation::Guards,
    placement::Snapshot,
    plan::{
        Action, DrainOptions, EvictionRules, OutcomeKind, Plan, PodOutcome, PodPlan, PodWarning, Prospect,
        Verdict,
    },
};
use kordon_time::Timestamp;

/// The cluster in which drains of a wave are tried: with later nodes cordoned, or not.
#[derive(Debug)]
pub(super) struct Trial {
    cluster: Cluster,
    snapshot: Snapshot,
    rules: EvictionRules,
    pub cordons_ahead: bool,
}

/// The drains of a wave.
#[derive(Clone, Debug)]
pub(super) struct WavePlan {
    pub nodes: Vec<NodeName>,
    pub plan: Plan,
}

impl Trial {
    /// Prepares trials. The nodes in `ahead` are cordoned.
    pub fn new(state: &WaveState, ahead: &[NodeName], rules: EvictionRules) -> Self {
        let cluster = state.with_cordoned(ahead);
        let snapshot = Snapshot::new(&cluster, rules.version);
        Self { cluster, snapshot, rules, cordons_ahead: !ahead.is_empty() }
    }

    /// Plans the drains of these nodes at the same time; `None` if a node is gone, or not all is known.
    pub fn drain(
        &self,
        nodes: Vec<NodeName>,
        options: &MaintenanceOptions,
        now: Timestamp,
    ) -> Option<WavePlan> {
        let drain = DrainOptions { parallel: nodes.len(), ..options.drain.clone() };
        let action = Action::Drain { nodes: nodes.clone(), options: drain };
        let plan = Plan::over(action, &self.cluster, Some(self.snapshot.clone()), self.rules, now).ok()?;
        Some(WavePlan { nodes, plan })
    }

    /// The limit that these drains would break; `None` if they break none.
    pub fn breach(&self, wave: &WavePlan, guards: &Guards) -> Option<String> {
        guards.breaches(&wave.plan, &self.cluster).first().map(ToString::to_string)
    }
}

impl WavePlan {
    /// Why the drains may not be; `None` if they may. `allows_pending` is whether pods may wait for their node.
    pub fn objection(&self, allows_pending: bool) -> Option<LeftOutReason> {
        let prospect = self.plan.prospect();
        if prospect != Prospect::Completes {
            let row = self.plan.pods.iter().find(|row| holds_up(row));
            let late = || self.plan.pods.iter().find(|row| row.times_out.is_some());
            let why = row.map(|row| format!("{} {}", row.pod, row.verdict));
            let why =
                why.or_else(|| late().map(|row| format!("{} may take longer than the drain may", row.pod)));
            let summary = format!("{}: {}", prospect.word(), self.plan.summary());
            return Some(LeftOutReason::Drain(why.unwrap_or(summary)));
        }
        match self.stranded(allows_pending) {
            0 => None,
            pods => Some(LeftOutReason::NoRoom { pods }),
        }
    }

    /// Number of pods that leave and find no node, although a controller recreates them.
    fn stranded(&self, allows_pending: bool) -> usize {
        let outcomes = &self.plan.totals.outcomes;
        let kinds = [OutcomeKind::Pending, OutcomeKind::Stuck, OutcomeKind::Refused];
        let kinds = kinds.into_iter().filter(|kind| !(allows_pending && *kind == OutcomeKind::Pending));
        kinds.map(|kind| outcomes.of(kind)).sum()
    }

    /// Number of pods that wait for room in a budget.
    pub fn waiting(&self) -> usize {
        self.plan.pods.iter().filter(|row| matches!(row.verdict, Verdict::LeavesAfter { .. })).count()
    }

    /// The wave, if its drains start at `starts`.
    pub fn wave(
        &self,
        state: &WaveState,
        options: &MaintenanceOptions,
        cordons_ahead: bool,
    ) -> MaintenanceWave {
        let starts = self.plan.made;
        let drained = self.plan.totals.ends.likely.unwrap_or(starts);
        let back = drained + options.work + options.settle;
        let ready = self.plan.pods.iter().filter_map(|row| row.ready_again).max();
        MaintenanceWave {
            nodes: self.nodes.clone(),
            starts,
            drained,
            ends: back.max(ready.unwrap_or(back)),
            cordons_ahead,
            moves: self.moves(state),
            lost: self.lost().map(|row| row.pod.clone()).collect(),
            pending: self.plan.pods.iter().filter(|row| is_pending(row)).map(|row| row.pod.clone()).collect(),
            down: self.plan.pods.iter().filter_map(|row| down(row, drained + options.work)).collect(),
            stranded: None,
        }
    }

    fn moves(&self, state: &WaveState) -> Vec<PodMove> {
        let mut rows: Vec<&PodPlan> = self.plan.pods.iter().collect();
        rows.sort_by_key(|row| (row.leaves.likely, &row.pod));
        let moved = |row: &PodPlan| match (&row.outcome, &row.node) {
            (PodOutcome::Moves { node: to, .. }, Some(from)) => Some(PodMove {
                pod: row.pod.clone(),
                from: from.clone(),
                to: to.clone(),
                is_again: state.has_moved(&row.uid),
            }),
            _ => None,
        };
        rows.into_iter().filter_map(moved).collect()
    }

    fn lost(&self) -> impl Iterator<Item = &PodPlan> {
        let is_lost =
            |row: &&PodPlan| matches!(row.outcome.kind(), OutcomeKind::Lost | OutcomeKind::FailsJob);
        self.plan.pods.iter().filter(is_lost)
    }
}

/// Whether a drain does not end because of this pod, or may not.
fn holds_up(row: &PodPlan) -> bool {
    row.outcome.kind() == OutcomeKind::Blocked || matches!(row.verdict, Verdict::Undecided { .. })
}

/// Whether the replacement of a pod finds no node for now.
pub(super) fn is_pending(row: &PodPlan) -> bool {
    row.outcome.kind() == OutcomeKind::Pending
}

/// The time in which the workload of a pod has no Ready pod. `back` is when the nodes of the wave are back.
fn down(row: &PodPlan, back: Timestamp) -> Option<WorkloadDown> {
    let is_last =
        row.warnings.contains(&PodWarning::SingleReplica) || row.warnings.contains(&PodWarning::LastReady);
    let from = row.leaves.likely.filter(|_| is_last)?;
    let is_for_good = matches!(
        row.outcome.kind(),
        OutcomeKind::Lost | OutcomeKind::FailsJob | OutcomeKind::NotRecreated | OutcomeKind::Finished
    );
    let until = row.ready_again.or_else(|| is_pending(row).then_some(back));
    Some(WorkloadDown { pod: row.pod.clone(), from, until, is_for_good })
}
