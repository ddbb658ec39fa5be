//! Prediction of a removal: simulated runs, and the rows of the plan that are computed from them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    action::RemovalMode,
    budget::{self, BudgetState},
    context::PlanContext,
    cordon_wait::CordonWait,
    environment::{self, Bound, Environment, Quality},
    eviction::{self, EvictionAnswer, EvictionBlock, EvictionDecision, FreeEviction},
    eviction_order::sort_for_eviction,
    forced_removal::{self, removes_by_force},
    gaps,
    landing::Landing,
    node_plan::NodeDrain,
    obstacle::RemovalObstacle,
    operator_budgets::{operator_of_pod, setting_of},
    outlook::Outlook,
    owner::{self, NotRecreated, Recreation},
    placement_trace::Receiver,
    placing_environment::TEMPLATES_ASSUMED,
    plan::{BudgetPlan, Plan},
    pod_plan::{PodPlan, Window},
    simulation::{PodResult, RemovalGroup, RunResult, Simulation, SimulationInput, TaskEnd, stand_in_key},
    step::PlanStep,
    surge::SurgeRun,
    switchover::{Switchover, switchover},
    timeline::{GiveUpReason, PlanEvent},
    verdict::{BlockPattern, LeaveReason, OperatorAct, Verdict},
    warning::{self, PodWarning, Warning},
};
use crate::cluster::{Gaps, Key, KnownSetting, NodeName, Pod};
use kordon_time::{Span, Timestamp};

/// The simulated runs of one removal.
pub(super) struct Prediction<'a, E> {
    context: &'a PlanContext<'a, E>,
    input: SimulationInput,
    budgets_before: BTreeMap<Key, BudgetState>,
    soonest: RunResult,
    likely: RunResult,
    latest: RunResult,
    /// A run with likely times and without a timeout. The verdicts come from this run, because whether a budget allows
    /// an eviction does not depend on the timeout.
    unlimited: RunResult,
    /// Pods that leave in the run without a timeout (`unlimited`).
    leaving: BTreeSet<Key>,
    /// Undecided pods, each with the unknown kinds of objects because of which it is unknown whether the pod leaves.
    /// The runs assume that undecided pods leave at the first attempt.
    undecided: BTreeMap<Key, Gaps>,
}

impl<'a, E: Environment> Prediction<'a, E> {
    /// Sorts each group of pods for eviction, then simulates the removal.
    pub fn new(context: &'a PlanContext<'a, E>, mut input: SimulationInput) -> Self {
        let PlanContext { cluster, environment, rules, now } = context;
        let pods = input.groups.iter().flat_map(|group| &group.pods);
        let budgets = budget::states(cluster, pods, rules, *now);
        for group in &mut input.groups {
            sort_for_eviction(&mut group.pods, &budgets, context);
        }
        let simulation = Simulation::new(cluster, &input, &budgets, rules, *now);
        let likely = simulation.run((*environment).clone(), Bound::Likely);
        let mut fixed = (*environment).clone();
        fixed.fix_landings(likely.landings(), &likely.trace);
        let unlimited = if input.timeout.is_some() {
            let unlimited = SimulationInput { timeout: None, ..input.clone() };
            Simulation::new(cluster, &unlimited, &budgets, rules, *now).run(fixed.clone(), Bound::Likely)
        } else {
            likely.clone()
        };
        let leaves = |(key, result): (&Key, &PodResult)| result.leaves.map(|_| key.clone());
        let pods = input.groups.iter().flat_map(|group| &group.pods);
        let undecided = pods.map(|pod| (pod.key.clone(), gaps::undecided(cluster, input.mode, pod)));
        Self {
            undecided: undecided.filter(|(_, gaps)| !gaps.is_empty()).collect(),
            context,
            soonest: simulation.run(fixed.clone(), Bound::Soonest),
            latest: simulation.run(fixed, Bound::Latest),
            likely,
            leaving: unlimited.pods.iter().filter_map(leaves).collect(),
            unlimited,
            budgets_before: budgets,
            input,
        }
    }

    /// Returns the states of the pods' budgets before the removal.
    pub const fn budgets_before(&self) -> &BTreeMap<Key, BudgetState> {
        &self.budgets_before
    }

    /// Returns what likely becomes of each Deployment that is scaled up by one (surge).
    pub const fn surges(&self) -> &BTreeMap<Key, SurgeRun> {
        &self.likely.surges
    }

    /// Returns the plan's rows for all pods that the removal removes.
    pub fn all_pods(&self) -> Vec<PodPlan> {
        (0..self.input.groups.len()).flat_map(|group| self.pods(group)).collect()
    }

    /// Returns the plan's rows for one group of pods that are removed together.
    pub fn pods(&self, group: usize) -> Vec<PodPlan> {
        self.input.groups[group].pods.iter().map(|pod| self.pod(pod, group)).collect()
    }

    fn pod(&self, pod: &Arc<Pod>, group: usize) -> PodPlan {
        let PlanContext { cluster, rules, .. } = self.context;
        let mut plan = PodPlan::new(pod, self.verdict(pod));
        plan.quality = self.quality(pod, &plan.verdict);
        plan.leaves = self.window(pod, |result| result.leaves);
        plan.gone = self.window(pod, |result| result.gone);
        plan.warnings = self.pod_warnings(pod, &plan);
        let decision = eviction::decision(cluster, pod, &self.budgets_before, rules);
        plan.answer = gaps::can_answer_eviction(cluster, pod).then(|| EvictionAnswer::to(&decision, rules));
        plan.times_out = self.timed_out_at(&pod.key);
        let likely = self.likely.pods.get(&pod.key);
        plan.quota = likely.and_then(|result| result.quota.clone());
        plan.waits_for = likely.and_then(|result| result.waits_for.clone());
        if let Some(replacement) = likely.and_then(|result| result.replacement.as_ref()) {
            plan.landing = Some(replacement.landing.clone());
            let detached =
                plan.gone.likely.map(|gone| forced_removal::detached(cluster, pod.node.as_ref(), gone));
            plan.ready_again = replacement.ready_after(cluster, pod, detached);
            plan.quality = plan.quality.min(replacement.quality);
        }
        let traced = likely.and_then(|result| result.last_of_surge.as_ref()).map(stand_in_key);
        plan.placement = self.likely.trace.placements.get(traced.as_ref().unwrap_or(&pod.key)).cloned();
        let is_unplaced = plan.landing.as_ref().is_some_and(Landing::has_nowhere_to_run);
        if let (Recreation::OnSameNode, Some(node), Some(_), false) =
            (owner::recreation(cluster, pod), &pod.node, plan.gone.likely, is_unplaced)
        {
            plan.placement = plan.placement.filter(|trace| !trace.preempts.is_empty());
            plan.landing = Some(Landing::Node { node: node.clone(), why: "bound to this node".into() });
        }
        let job_failure = likely.and_then(|result| result.job_failure).map(NotRecreated::JobFails);
        let with_owner = self.input.removes_owner_of(pod).then_some(NotRecreated::OwnerGone);
        plan.lost = job_failure.or(with_owner).or_else(|| owner::not_recreated(cluster, pod));
        if self.undecided.contains_key(&pod.key) || !self.starts_on_time(group) {
            plan.leaves = plan.leaves.at_the_soonest();
            plan.gone = plan.gone.at_the_soonest();
            plan.ready_again = None;
        }
        plan
    }

    /// Returns whether the time at which the removal of a group of pods starts is known. This time is unknown if it is
    /// later than the start of the plan while some pods are undecided, that is, may leave or stay.
    fn starts_on_time(&self, group: usize) -> bool {
        self.undecided.is_empty() || self.likely.groups[group].started <= self.context.now
    }

    /// Returns whether it is known when the removal of a group of pods ends.
    fn ends_on_time(&self, group: usize) -> bool {
        let is_decided = |pod: &Arc<Pod>| !self.undecided.contains_key(&pod.key);
        self.starts_on_time(group) && self.input.groups[group].pods.iter().all(is_decided)
    }

    fn window(&self, pod: &Pod, time: fn(&PodResult) -> Option<Timestamp>) -> Window {
        let of = |run: &RunResult| run.pods.get(&pod.key).and_then(time);
        Window { soonest: of(&self.soonest), likely: of(&self.likely), latest: of(&self.latest) }
    }

    fn timed_out_at(&self, pod: &Key) -> Option<Timestamp> {
        let timed_out = |event: &PlanEvent| matches!(event, PlanEvent::GaveUp { pod: of, reason: GiveUpReason::TimedOut } if of == pod);
        let end = self.likely.pods.get(pod)?.end?;
        if end != TaskEnd::GaveUp(GiveUpReason::TimedOut) {
            return None;
        }
        self.likely.moments.iter().find(|moment| timed_out(&moment.event)).map(|moment| moment.at)
    }

    fn verdict(&self, pod: &Pod) -> Verdict {
        let not_attempted = || Verdict::Unknown { missing: "it is never attempted".into() };
        let Some(result) = self.unlimited.pods.get(&pod.key) else { return not_attempted() };
        if pod.termination.is_some() && result.end != Some(TaskEnd::GaveUp(GiveUpReason::EvictionFailed)) {
            return Verdict::Terminating;
        }
        if let Some(gaps) = self.undecided.get(&pod.key) {
            return Verdict::Undecided { gaps: gaps.clone() };
        }
        if result.leaves.is_none() {
            let PlanContext { cluster, rules, now, .. } = self.context;
            return match &result.block {
                Some(block) => {
                    let (result, closed) = (&self.unlimited, &self.input.closed);
                    Outlook { cluster, result, closed, rules, now: *now }.verdict(pod, block)
                }
                None => not_attempted(),
            };
        }
        if let Some(budget) = result.block.as_ref().and_then(EvictionBlock::budget) {
            let (recoveries, behind) = (result.recoveries, result.behind.clone());
            let operator = result.operator;
            return Verdict::LeavesAfter { budget: budget.clone(), recoveries, behind, operator };
        }
        self.leaves(result)
    }

    /// Returns the verdict on a pod that leaves at the first attempt.
    fn leaves(&self, result: &PodResult) -> Verdict {
        match &result.first_decision {
            _ if self.input.mode == RemovalMode::Delete => Verdict::Leaves(LeaveReason::Deleted),
            Some(EvictionDecision::Costs { budget }) => {
                let numbers = self.budgets_before.get(budget).map(|state| state.numbers).unwrap_or_default();
                Verdict::Leaves(LeaveReason::BudgetAllows { budget: budget.clone(), numbers })
            }
            Some(EvictionDecision::Free(free)) => Verdict::Leaves(LeaveReason::Free(*free)),
            Some(EvictionDecision::Blocked(_)) | None => {
                Verdict::Leaves(LeaveReason::Free(FreeEviction::NoBudget))
            }
        }
    }

    fn quality(&self, pod: &Pod, verdict: &Verdict) -> Quality {
        let environment = self.context.environment;
        let termination = environment.time_to_terminate(pod, self.input.grace.unwrap_or(pod.grace)).quality;
        match verdict.as_if_granted() {
            Verdict::LeavesAfter { .. } => {
                termination.min(environment.time_to_ready(pod, &Landing::Unknown).quality)
            }
            _ => termination,
        }
    }

    fn pod_warnings(&self, pod: &Pod, plan: &PodPlan) -> BTreeSet<PodWarning> {
        let PlanContext { cluster, rules, .. } = self.context;
        let is_unprotected = self.undecided.is_empty()
            && (self.input.mode == RemovalMode::Delete
                || eviction::budgets_of(cluster, pod, rules).next().is_none());
        let mut warnings = warning::of_pod(cluster, pod, &self.leaving, is_unprotected);
        if self.input.grace == Some(Span::ZERO) && warning::has_identity(pod) {
            warnings.insert(PodWarning::DuplicateIdentity);
        }
        warnings.extend(self.operator_warning(pod, &plan.verdict));
        let is_down = |node: &_| !environment::has_running_kubelet(cluster, node);
        if pod.node.as_ref().is_some_and(is_down) && plan.gone.likely.is_none() {
            warnings.insert(PodWarning::KubeletDown);
        }
        let node = pod.node.as_ref().and_then(|node| cluster.node(node));
        let is_attempted = plan.verdict.as_if_granted().is_attempted();
        if is_attempted && node.is_some_and(|node| removes_by_force(node, rules)) && !pod.is_held() {
            warnings.insert(PodWarning::RemovedByForce);
        }
        warnings
    }

    /// Returns a warning that says whether the Kubernetes operator of a pod acts when the pod's node is drained.
    fn operator_warning(&self, pod: &Pod, verdict: &Verdict) -> Option<PodWarning> {
        if self.input.mode == RemovalMode::Delete {
            return None;
        }
        match verdict {
            Verdict::LeavesAfter { operator: Some(OperatorAct::MovesRole { .. }), .. } => {
                return Some(PodWarning::SwitchesOver);
            }
            Verdict::LeavesAfter { operator: Some(OperatorAct::Restarts { .. }), .. } => {
                return Some(PodWarning::OperatorRestarts);
            }
            Verdict::Blocked { pattern: BlockPattern::NoReplica { .. }, .. } => {
                return Some(PodWarning::NoReplica);
            }
            Verdict::WaitsForOperator { .. } | Verdict::Blocked { .. } | Verdict::Waits { .. } => {}
            _ if operator_of_pod(pod).is_some_and(|operator| operator.denies_evictions)
                && setting_of(self.context.cluster, pod) != Some(&KnownSetting::Missing) =>
            {
                return Some(PodWarning::OperatorDenies);
            }
            _ => {}
        }
        let PlanContext { cluster, now, .. } = self.context;
        match switchover(cluster, pod, &self.input.closed, *now)? {
            Switchover::Moves { after, .. } if after.is_empty() => Some(PodWarning::SwitchesOver),
            Switchover::Moves { .. } | Switchover::NoReplica => Some(PodWarning::NoReplica),
            Switchover::Restarts => Some(PodWarning::OperatorRestarts),
            Switchover::Overdue { .. } | Switchover::Unknown => None,
        }
    }

    /// Returns the writes that remove these pods.
    pub fn removals(&self, pods: &[PodPlan]) -> Vec<PlanStep> {
        let is_removed = |pod: &&PodPlan| !matches!(pod.verdict.as_if_granted(), Verdict::Skipped(_));
        let grace = self.input.grace;
        let step = |plan: &PodPlan| {
            let (pod, uid) = (plan.pod.clone(), plan.uid.clone());
            match self.input.mode {
                RemovalMode::Evict => PlanStep::Evict { pod, uid, grace },
                RemovalMode::Delete => PlanStep::Delete { pod, uid, grace },
            }
        };
        pods.iter().filter(is_removed).map(step).collect()
    }

    /// Describes the drain of the node of a group of pods. `pods` are the rows of the node's pods. `refusals` are the
    /// lines that kubectl prints if it refuses the drain.
    pub fn drain(&self, group: usize, pods: &[PodPlan], refusals: Vec<String>) -> NodeDrain {
        let likely = self.likely.groups[group];
        let refused = !refusals.is_empty();
        let kept = pods.iter().find(|pod| pod.verdict.budget().is_some() && pod.is_kept());
        let last = pods
            .iter()
            .filter(|pod| matches!(pod.verdict.as_if_granted(), Verdict::LeavesAfter { .. }))
            .max_by_key(|pod| (pod.leaves.likely, pod.pod.clone()));
        let remains = |pod: &&PodPlan| refused || pod.gone.likely.is_none() || pod.times_out.is_some();
        let ends = Window {
            soonest: self.soonest.groups[group].ended,
            likely: likely.ended,
            latest: self.latest.groups[group].ended,
        };
        let is_known = self.ends_on_time(group);
        let back = self.back_on_node(group);
        let ends = if back > 0 { Window::default() } else { ends };
        NodeDrain {
            refused,
            refusals,
            starts: likely.started,
            ends: if is_known { ends } else { ends.at_the_soonest() },
            after_incomplete: likely.after_incomplete,
            dominated_by: kept.or(last).and_then(|pod| pod.verdict.budget().cloned()),
            remaining: (refused || is_known).then(|| pods.iter().filter(remains).count() + back),
        }
    }

    fn budgets(&self) -> Vec<BudgetPlan> {
        let PlanContext { cluster, rules, .. } = self.context;
        let pods = || self.input.groups.iter().flat_map(|group| &group.pods);
        let protects =
            |budget: &Key, pod: &Pod| eviction::budgets_of(cluster, pod, rules).any(|of| of.key == *budget);
        let plan = |(key, before): (&Key, &BudgetState)| BudgetPlan {
            budget: key.clone(),
            before: before.clone(),
            after: self.likely.budgets.get(key).unwrap_or(before).clone(),
            pods: pods().filter(|pod| protects(key, pod)).count(),
        };
        self.budgets_before.iter().map(plan).collect()
    }

    /// Returns whether there are pods of which it is unknown whether they leave.
    pub fn has_undecided(&self) -> bool {
        !self.undecided.is_empty()
    }

    /// Returns when the removal ends. If it is unknown whether a pod leaves, assumes that it leaves at the first
    /// attempt. If replacements run on the node that their pods left, the drain of this node does not end, because the
    /// node is never empty.
    pub fn ends(&self) -> Window {
        match (0..self.input.groups.len()).any(|group| self.back_on_node(group) > 0) {
            true => Window::default(),
            false => self.removed(),
        }
    }

    /// Returns when all pods of the removal are gone, even if new pods run on the nodes then.
    pub fn removed(&self) -> Window {
        Window { soonest: self.soonest.ended, likely: self.likely.ended, latest: self.latest.ended }
    }

    /// Returns what prevents the end of the removal; `None` if the removal likely ends.
    pub fn obstacle(&self) -> Option<RemovalObstacle> {
        RemovalObstacle::from_run(
            &self.likely,
            self.input.groups.iter().flat_map(|group| &group.pods).map(|pod| &**pod),
        )
    }

    /// Returns the nodes on which replacements land, with the number of replacements whose old pods the removal does not
    /// remove.
    fn receivers(&self) -> Vec<Receiver> {
        let removed: BTreeSet<&Key> =
            self.input.groups.iter().flat_map(|group| &group.pods).map(|pod| &pod.key).collect();
        let mut others: BTreeMap<&NodeName, usize> = BTreeMap::new();
        for (_, result) in self.likely.pods.iter().filter(|(pod, _)| !removed.contains(pod)) {
            let node = result.replacement.as_ref().and_then(|new| new.landing.node());
            node.into_iter().for_each(|node| *others.entry(node).or_default() += 1);
        }
        let receiver = |receiver: &Receiver| {
            let others = others.get(&receiver.node).copied().unwrap_or(0);
            Receiver { others, ..receiver.clone() }
        };
        self.likely.trace.receivers.iter().map(receiver).collect()
    }

    /// Completes a plan whose nodes, pods and steps have already been added.
    pub fn complete(&self, plan: &mut Plan) {
        plan.budgets = self.budgets();
        plan.receivers = self.receivers();
        if self.undecided.is_empty() {
            plan.timeline = self.likely.moments.clone();
        }
        plan.assumptions = ASSUMPTIONS.to_vec();
        self.add_warnings(plan);
        plan.count_pods(self.context.cluster);
        plan.totals.ends = self.ends();
        if !self.undecided.is_empty() {
            plan.totals.not_before = plan.totals.ends.likely;
            plan.totals.ends = plan.totals.ends.at_the_soonest();
        }
        plan.finish_nodes();
    }

    /// Returns a warning if some pods likely leave before the timeout, but time out if they use up their grace period.
    fn may_time_out(&self) -> Option<Warning> {
        let timeout = self.input.timeout?;
        let times_out = |run: &RunResult, pod: &Key| {
            run.pods.get(pod).and_then(|pod| pod.end) == Some(TaskEnd::GaveUp(GiveUpReason::TimedOut))
        };
        let may_time_out = |pod: &&Key| times_out(&self.latest, pod) && !times_out(&self.likely, pod);
        let pods = self.latest.pods.keys().filter(may_time_out).count();
        (pods > 0).then_some(Warning::MayTimeOut { timeout, pods })
    }

    /// Returns warnings for drained nodes to which pods come back, because the pods' template names the node or the
    /// pods tolerate its cordon.
    fn returning(&self) -> impl Iterator<Item = Warning> {
        let cluster = self.context.cluster;
        self.input.groups.iter().filter_map(move |group| {
            let node = group.node.clone()?;
            let is_named = |pod: &&Arc<Pod>| owner::named_node(cluster, pod).as_ref() == Some(&node);
            let comes_back = |pod: &&Arc<Pod>| self.leaving.contains(&pod.key) && !pod.is_finished();
            let leaving = group.pods.iter().filter(comes_back);
            let (named, others): (Vec<_>, Vec<_>) = leaving.partition(is_named);
            let placed = others.into_iter().filter(|pod| self.lands_on(pod, &node));
            let are_placed = named.is_empty();
            let back: Vec<&Arc<Pod>> = named.into_iter().chain(placed).collect();
            let after = back.iter().filter_map(|pod| self.replaced_after(pod)).min().unwrap_or_default();
            (!back.is_empty()).then(|| Warning::ComesBack { pods: back.len(), node, after, are_placed })
        })
    }

    /// Returns the time from the start of a pod's deletion to the creation of its replacement; `None` if it has none.
    fn replaced_after(&self, pod: &Pod) -> Option<Span> {
        let result = self.likely.pods.get(&pod.key)?;
        Some(result.replacement.as_ref()?.created.since(result.leaves?))
    }

    fn lands_on(&self, pod: &Pod, node: &NodeName) -> bool {
        let replacement = self.likely.pods.get(&pod.key).and_then(|pod| pod.replacement.as_ref());
        replacement.and_then(|new| new.landing.node()) == Some(node)
    }

    /// Returns the number of pods of a drained node that are gone and whose replacements land on the same node.
    fn back_on_node(&self, group: usize) -> usize {
        let RemovalGroup { node: Some(node), pods } = &self.input.groups[group] else { return 0 };
        let is_gone = |pod: &Pod| {
            self.likely.pods.get(&pod.key).is_some_and(|result| result.end == Some(TaskEnd::Gone))
        };
        pods.iter().filter(|pod| is_gone(pod) && self.lands_on(pod, node)).count()
    }

    /// Returns a warning for each node whose drain waits for the uncordon of another node.
    fn waiting_for_uncordon(&self, plan: &Plan) -> Vec<Warning> {
        let waits = |pod: &PodPlan| matches!(pod.verdict.as_if_granted(), Verdict::Waits { .. });
        let nodes: BTreeSet<&NodeName> =
            plan.pods.iter().filter(|pod| waits(pod)).filter_map(|pod| pod.node.as_ref()).collect();
        if nodes.is_empty() {
            return Vec::new();
        }
        let PlanContext { cluster, environment, rules, now } = self.context;
        let mut environment = (*environment).clone();
        let mut takers = |pod: &Pod| environment.takers_if_uncordoned(pod);
        let wait = |node: &NodeName| CordonWait::find(cluster, node, rules, *now, &mut takers);
        nodes.into_iter().filter_map(wait).map(Warning::WaitsForUncordon).collect()
    }

    fn add_warnings(&self, plan: &mut Plan) {
        plan.warn_of_quotas();
        plan.warn_of_jobs(self.context.cluster);
        plan.warn_of_preemption();
        plan.warn_of_groups(self.context.cluster);
        plan.warn_of_owned_pods(self.context.cluster);
        plan.warnings.extend(self.returning());
        plan.warnings.extend(self.may_time_out());
        let waiting = self.waiting_for_uncordon(plan);
        plan.warnings.extend(waiting);
        for budget in &plan.budgets {
            if let Some(reported) = budget.before.reported {
                let computed = budget.before.numbers;
                plan.warnings.push(Warning::status_differs(&budget.budget, computed, reported));
            }
        }
        if self.input.mode == RemovalMode::Delete {
            plan.warn_of_ignored_budgets();
        }
        plan.warnings.sort();
        plan.warnings.dedup();
    }
}

/// The assumptions behind the prediction of a removal (docs/upstream/operator-actions.md#6.8).
const ASSUMPTIONS: [&str; 6] = [
    "nothing else changes pods, budgets, scales or nodes: no autoscaler, no rollout, no other drain",
    "controllers react within a second; new pods become Ready as fast as their siblings did",
    "running kubelets end pods within their grace; admission webhooks allow it",
    "containers of Jobs end with exit code 143, as programs that SIGTERM ends do",
    TEMPLATES_ASSUMED,
    "no new pod is bound to the nodes by its nodeName",
];
