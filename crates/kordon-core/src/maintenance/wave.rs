//! A trial of one wave: the plan of its drains, and whether the wave is allowed.

use std::collections::BTreeSet;

use super::{
    LeftOutReason, MaintenanceOptions, MaintenanceWave, PodMove, WorkloadDown,
    state::{WaveState, is_pending},
};
use crate::{
    cluster::{Cluster, Name, NodeName},
    operation::Guards,
    placement::Snapshot,
    plan::{
        Action, DrainOptions, EvictionRules, OutcomeKind, Plan, PodOutcome, PodPlan, PodWarning, Prospect,
        Verdict, Warning,
    },
};
use kordon_time::{Span, Timestamp};

/// The cluster in which the drains of a wave are tried, with or without the nodes of later waves cordoned.
#[derive(Debug)]
pub(super) struct Trial {
    cluster: Cluster,
    snapshot: Snapshot,
    rules: EvictionRules,
    /// Nodes that are cordoned in advance, whether this wave drains them or not.
    pub ahead: BTreeSet<NodeName>,
}

/// The nodes of a wave, and the plan that drains them.
#[derive(Clone, Debug)]
pub(super) struct WavePlan {
    pub nodes: Vec<NodeName>,
    pub plan: Plan,
}

impl Trial {
    /// Prepares trials. The nodes in `ahead` are cordoned.
    pub fn new(state: &WaveState, ahead: BTreeSet<NodeName>, rules: EvictionRules) -> Self {
        let cluster = state.with_cordoned(&ahead);
        let snapshot = Snapshot::new(&cluster, rules.version);
        let rules = EvictionRules { grace: None, ..rules };
        Self { cluster, snapshot, rules, ahead }
    }

    /// Plans the drains of these nodes at the same time; `None` if a node is gone, or if something on which the plan
    /// depends is unknown.
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

    /// The guard rail that these drains break together with the nodes that are cordoned in advance; `None` if they
    /// break none.
    pub fn breach(&self, wave: &WavePlan, state: &WaveState, guards: &Guards) -> Option<String> {
        guards.breaches_beside(&wave.plan, &state.cluster, &self.ahead).first().map(ToString::to_string)
    }
}

impl WavePlan {
    /// Why the drains are not allowed; `None` if they are. `allows_pending` is whether pods may stay Pending until
    /// their node is back.
    pub fn objection(&self, cluster: &Cluster, allows_pending: bool) -> Option<LeftOutReason> {
        let prospect = self.plan.prospect();
        if prospect != Prospect::Completes {
            let row = self.plan.pods.iter().find(|row| holds_up(row));
            let late = || self.plan.pods.iter().find(|row| row.times_out.is_some());
            let why = row.map(|row| format!("{} {}", row.pod, row.verdict));
            let why = why.or_else(|| late().map(|row| lateness(row, cluster)));
            let summary = format!("{}: {}", prospect.word(), self.plan.summary());
            return Some(LeftOutReason::Drain(why.unwrap_or(summary)));
        }
        match self.stranded(allows_pending) {
            0 => None,
            pods => Some(LeftOutReason::NoRoom { pods }),
        }
    }

    /// Number of pods that leave or are preempted and have nowhere to run, although a controller recreates them. With
    /// `allows_pending`, pods that leave and stay Pending until their node is back are not counted.
    fn stranded(&self, allows_pending: bool) -> usize {
        let is_allowed = |kind: &OutcomeKind| allows_pending && *kind == OutcomeKind::Pending;
        let own = self.plan.pods.iter().map(|row| row.outcome.kind()).filter(|kind| !is_allowed(kind));
        let preempted = self.plan.pods.iter().flat_map(PodPlan::preempted).map(OutcomeKind::for_preempted);
        let is_stranded = |kind: &OutcomeKind| {
            matches!(kind, OutcomeKind::Pending | OutcomeKind::Stuck | OutcomeKind::Refused)
        };
        own.chain(preempted).filter(is_stranded).count()
    }

    /// Number of pods that wait for room in a budget.
    pub fn waiting(&self) -> usize {
        self.waits().count()
    }

    /// When the last pod that waits for room in a budget leaves; `None` if no pod waits.
    pub fn last_wait(&self) -> Option<Timestamp> {
        self.waits().filter_map(|row| row.leaves.likely).max()
    }

    /// The pods that wait for room in a budget.
    fn waits(&self) -> impl Iterator<Item = &PodPlan> {
        self.plan.pods.iter().filter(|row| matches!(row.verdict, Verdict::LeavesAfter { .. }))
    }

    /// Whether the outcome of any pod of the wave is unknown.
    pub fn has_unknown(&self) -> bool {
        self.plan.pods.iter().any(|row| row.outcome.kind() == OutcomeKind::Unknown)
    }

    /// Time from the start of the drains to the end of the wave.
    pub fn takes(&self, options: &MaintenanceOptions) -> Span {
        self.ends(options).since(self.plan.made)
    }

    /// When the last pod that the wave removes is likely gone.
    fn drained(&self) -> Timestamp {
        self.plan.totals.ends.likely.unwrap_or(self.plan.made)
    }

    /// When all nodes are likely back and settled, and every moved pod that is expected to become Ready again is Ready.
    fn ends(&self, options: &MaintenanceOptions) -> Timestamp {
        let back = self.drained() + options.work + options.settle;
        let ready = self.plan.pods.iter().filter_map(|row| row.ready_again).max();
        back.max(ready.unwrap_or(back))
    }

    /// The wave, if its drains start at the time for which they are planned.
    pub fn wave(
        &self,
        state: &WaveState,
        options: &MaintenanceOptions,
        ahead: &BTreeSet<NodeName>,
    ) -> MaintenanceWave {
        let drained = self.drained();
        MaintenanceWave {
            nodes: self.nodes.clone(),
            starts: self.plan.made,
            drained,
            ends: self.ends(options),
            ahead: ahead.iter().filter(|node| !self.nodes.contains(node)).cloned().collect(),
            moves: self.moves(state),
            losses: self.plan.losses(),
            data_lost: self.plan.totals.data_lost,
            pending: self.plan.pods.iter().filter(|row| is_pending(row)).map(|row| row.pod.clone()).collect(),
            may_time_out: self.plan.warnings.iter().map(may_time_out).sum(),
            down: self.plan.pods.iter().filter_map(|row| down(row, drained + options.work)).collect(),
            surges: self.plan.surges.clone(),
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
}

/// Number of pods that may outlast the timeout of the drain.
const fn may_time_out(warning: &Warning) -> usize {
    match warning {
        Warning::MayTimeOut { pods, .. } => *pods,
        _ => 0,
    }
}

/// Whether this pod prevents the end of its drain, or may prevent it.
fn holds_up(row: &PodPlan) -> bool {
    row.outcome.kind() == OutcomeKind::Blocked || matches!(row.verdict, Verdict::Undecided { .. })
}

/// Why a pod outlasts, or may outlast, the timeout of the drain.
fn lateness(row: &PodPlan, cluster: &Cluster) -> String {
    let finalizers = cluster.pod(&row.pod).into_iter().flat_map(|pod| pod.holding_finalizers());
    let finalizers: Vec<&str> = finalizers.map(Name::as_str).collect();
    match &row.node {
        Some(node) if row.warnings.contains(&PodWarning::KubeletDown) => {
            format!("{} stays Terminating: the kubelet of {node} is down", row.pod)
        }
        _ if !finalizers.is_empty() => {
            let held = PodWarning::HeldByFinalizer;
            format!("{} stays Terminating, {held}: {}", row.pod, finalizers.join(", "))
        }
        _ => format!("{} may take longer than the drain may", row.pod),
    }
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
