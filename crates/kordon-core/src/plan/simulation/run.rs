//! One run of a simulation: a chain of events on a virtual timeline.

mod operators;
mod ordered;
mod pending;
mod surges;
mod termination;

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use pending::Occasion;

use super::{
    GroupResult, MovedRole, PodResult, RunResult, SimulatedSurge, Simulation, SimulationInput, Task, TaskEnd,
    TaskStage,
};
use crate::{
    cluster::{Cluster, Key},
    plan::{
        action::{RemovalMode, Retry},
        budget::BudgetState,
        environment::{Bound, Environment},
        eviction::{self, EvictionBlock, EvictionDecision, FreeEviction},
        job_failures::{self, JobLedger},
        landing::Landing,
        not_needed,
        owner::Recreation,
        quota::{self, QuotaLedger},
        replacement::{LivePods, Replacement},
        starting::StartingPod,
        timeline::{GiveUpReason, PlanEvent, PlanMoment},
    },
};
use kordon_time::{Span, Timestamp};

/// Time that the disruption controller takes to update the status of a budget after a change.
const SYNC_DELAY: Span = Span::from_millis(200);

/// Number of steps in which the probability that a straggler (a pod that terminates slowly) still exists is integrated
/// over time. The error of the integral is less than half a percent.
const STRAGGLER_STEPS: u32 = 256;

/// Time for which kubectl's HTTP client itself retries a request that the server answered with Retry-After: ten times
/// ten seconds. kubectl does not notice the refusal during this time.
const CLIENT_RETRIES: Span = Span::from_secs(100);

/// An event of a run. The number in an event is the index of a task (the removal of one pod), of a group of pods, of a
/// moved role or of a surge.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Attempt(usize),
    Gone(usize),
    /// The pod's owner may create a replacement.
    Created(usize),
    /// The pod is still terminating, but quotas no longer count it.
    NotCounted(usize),
    /// The pod's owner creates a replacement that a quota had refused.
    Admitted(usize),
    Ready(usize),
    /// A starting pod is Ready. `budgets` are the budgets that count it.
    Started {
        pod: Key,
        budgets: Vec<Key>,
    },
    /// The disruption controller updates the status of the budget.
    BudgetSynced(Key),
    /// An entry of the budget's `disruptedPods` expires.
    DisruptionExpired(Key),
    /// A Kubernetes operator has moved a role to a pod on another node. The number is the index of the role.
    SwitchedOver(usize),
    /// The replacement of a pod that a Kubernetes operator has moved is Ready. No task (removal of one pod) exists for
    /// the moved pod.
    Moved(Key),
    /// The pod's Kubernetes operator deletes the pod.
    DeletedByOperator(usize),
    /// A pod that the plan does not remove leaves its lost node: the node's taint evicts it, or the pod garbage
    /// collector removes it.
    Evicted(usize),
    /// The new pod of a surge (a Deployment that is scaled up by one) is Ready. The number is the index of the surge.
    SurgeReady(usize),
    SkipWait(usize),
    GiveUp(usize),
    /// The timeout of the group of pods expires.
    Deadline(usize),
    /// The last straggler of the group of pods is gone. A straggler is a pod that takes longer to terminate than is
    /// likely.
    GroupStraggled(usize),
    /// The scheduler tries Pending replacements again, because pods are gone.
    Retry,
}

/// One run of a simulation.
pub(super) struct SimulationRun<'a, E> {
    cluster: &'a Cluster,
    input: &'a SimulationInput,
    environment: E,
    bound: Bound,
    now: Timestamp,
    /// Events of the run that have not happened yet, sorted by time. Events at the same time are in the order in which
    /// they were scheduled.
    agenda: BTreeMap<(Timestamp, u64), Event>,
    scheduled: u64,
    tasks: Vec<Task>,
    budgets: BTreeMap<Key, BudgetState>,
    live_pods: LivePods,
    jobs: JobLedger,
    moves: Vec<MovedRole>,
    surges: Vec<SimulatedSurge>,
    /// Tasks (removals of one pod) whose replacements wait for pods of lower ordinals.
    ordered: Vec<usize>,
    /// Tasks (removals of one pod) whose replacements are Pending. The scheduler tries them again when another pod is
    /// placed or gone.
    pending: Vec<usize>,
    quotas: QuotaLedger,
    /// Tasks (removals of one pod) whose replacements are refused by quotas, each with the time of the refusal.
    refused: Vec<(usize, Timestamp)>,
    /// For each group of pods, the number of pods whose removal has not ended.
    open_tasks: Vec<usize>,
    next_group: usize,
    after_incomplete: bool,
    /// For each budget, the pods whose eviction used one of its disruptions, in order of time.
    evicted: BTreeMap<Key, Vec<Key>>,
    /// For each budget, the tasks (removals of one pod) that wait because the budget refused them.
    waiting: BTreeMap<Key, BTreeSet<usize>>,
    /// For each budget, the number of its pods that became Ready during the run.
    recoveries: BTreeMap<Key, u32>,
    result: RunResult,
}

impl<'a, E: Environment> SimulationRun<'a, E> {
    /// Starts a run of a simulation.
    pub(super) fn new(simulation: &Simulation<'a>, environment: E, bound: Bound) -> Self {
        let groups = simulation.input.groups.len();
        let mut run = Self {
            cluster: simulation.cluster,
            input: simulation.input,
            environment,
            bound,
            now: simulation.now,
            agenda: BTreeMap::new(),
            scheduled: 0,
            tasks: simulation.tasks.clone(),
            budgets: simulation.budgets.clone(),
            live_pods: simulation.live_pods.clone(),
            jobs: JobLedger::default(),
            moves: simulation.moves.clone(),
            surges: simulation.surges.clone(),
            ordered: Vec::new(),
            pending: Vec::new(),
            quotas: QuotaLedger::default(),
            refused: Vec::new(),
            open_tasks: vec![0; groups],
            next_group: 0,
            after_incomplete: false,
            evicted: BTreeMap::new(),
            waiting: BTreeMap::new(),
            recoveries: BTreeMap::new(),
            result: RunResult { groups: vec![GroupResult::default(); groups], ..RunResult::default() },
        };
        for (at, budget) in &simulation.disruptions_expire {
            run.schedule(*at, Event::DisruptionExpired(budget.clone()));
        }
        for budget in simulation.budgets.values().filter(|budget| budget.lags()) {
            run.schedule(run.now + SYNC_DELAY, Event::BudgetSynced(budget.key.clone()));
        }
        run.schedule_starting(&simulation.starting);
        run.schedule_returning();
        for (task, after) in &simulation.evicted {
            if let Some(after) = after.at(bound) {
                run.schedule(run.now + after, Event::Evicted(*task));
            }
        }
        for role in 0..run.moves.len() {
            run.start_move(role);
        }
        run
    }

    pub(super) fn finish(mut self) -> RunResult {
        self.start_groups(self.input.parallel.max(1));
        loop {
            while let Some(((at, _), event)) = self.agenda.pop_first() {
                self.now = at;
                self.on_event(event);
            }
            // No event is left, so a removal that has not ended never ends. Later groups start only if the operator
            // continues anyway.
            if self.next_group == self.open_tasks.len() {
                break;
            }
            self.after_incomplete = true;
            self.start_groups(1);
        }
        self.result.ended = self.ended();
        self.fail_jobs();
        self.result.budgets = self.budgets;
        self.result.trace = self.environment.trace();
        self.result
    }

    /// Records why Jobs fail, for all their pods that left. This includes pods that were already replaced, because
    /// their replacements are deleted with the Job.
    fn fail_jobs(&mut self) {
        for Task { pod, .. } in &self.tasks {
            let new = self.result.pods.get(&pod.key).and_then(|result| result.replacement.as_ref());
            let ready = new.and_then(|new| new.ready);
            let too_late = || self.jobs.deadline_before(self.cluster, pod, ready?);
            let Some(failure) = self.jobs.failure(self.cluster, pod).or_else(too_late) else { continue };
            if let Some(result) = self.result.pods.get_mut(&pod.key).filter(|pod| pod.leaves.is_some()) {
                (result.job_failure, result.replacement) = (Some(failure), None);
            }
        }
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Attempt(task) => self.on_attempt(task),
            Event::Gone(task) => self.on_gone(task),
            Event::Created(task) => self.on_created(task),
            Event::NotCounted(task) => self.stop_counting(task),
            Event::Admitted(task) => self.create(task),
            Event::Ready(task) => self.on_ready(task),
            Event::Started { pod, budgets } => self.on_started(pod, budgets),
            Event::BudgetSynced(budget) => self.on_budget_synced(&budget),
            Event::DisruptionExpired(budget) => self.on_disruption_expired(&budget),
            Event::SwitchedOver(role) => self.on_switched_over(role),
            Event::Moved(pod) => self.on_ready_elsewhere(&pod),
            Event::DeletedByOperator(task) => self.on_deleted_by_operator(task),
            Event::Evicted(task) => self.on_evicted(task),
            Event::SurgeReady(surge) => self.on_surge_ready(surge),
            Event::SkipWait(task) => self.on_skip_wait(task),
            Event::GiveUp(task) => self.on_give_up(task),
            Event::Deadline(group) => self.on_deadline(group),
            Event::GroupStraggled(group) => self.end_group(group),
            Event::Retry => self.retry(Occasion::Gone),
        }
    }

    fn schedule(&mut self, at: Timestamp, event: Event) {
        self.scheduled += 1;
        self.agenda.insert((at, self.scheduled), event);
    }

    fn record(&mut self, event: PlanEvent) {
        self.result.moments.push(PlanMoment { at: self.now, event });
    }

    fn result_of(&mut self, task: usize) -> &mut PodResult {
        self.result.pods.entry(self.tasks[task].pod.key.clone()).or_default()
    }

    fn start_groups(&mut self, count: usize) {
        for _ in 0..count {
            if self.next_group < self.open_tasks.len() {
                let group = self.next_group;
                self.next_group += 1;
                self.start_group(group);
            }
        }
    }

    fn start_group(&mut self, group: usize) {
        self.result.groups[group] =
            GroupResult { started: self.now, ended: None, after_incomplete: self.after_incomplete };
        if let Some(node) = self.input.groups[group].node.clone() {
            self.record(PlanEvent::NodeStarts { node });
        }
        let members = self.members(group);
        self.open_tasks[group] = members.len();
        self.start_surges(members.clone());
        for task in members.clone() {
            self.tasks[task].stage = TaskStage::Requesting;
            self.tasks[task].next_attempt = Some(self.now);
            self.schedule(self.now, Event::Attempt(task));
            if self.tasks[task].deleted_by.is_some() {
                self.schedule(self.now + operators::DELAY, Event::DeletedByOperator(task));
            }
        }
        if let Some(deadline) = self.deadline(group) {
            self.schedule(deadline, Event::Deadline(group));
        }
        if members.is_empty() {
            self.end_group(group);
        }
    }

    /// Returns the tasks (removals of one pod) of a group, which are adjacent in `tasks`.
    fn members(&self, group: usize) -> Range<usize> {
        let first = self.tasks.partition_point(|task| task.group < group);
        first..first + self.input.groups[group].pods.len()
    }

    /// Returns the tasks of pods that the plan removes. The other tasks are of pods that are already terminating, or
    /// that leave a lost node whether or not the plan is applied.
    fn removed(&self) -> Range<usize> {
        0..self.tasks.partition_point(|task| task.group < self.input.groups.len())
    }

    fn end_group(&mut self, group: usize) {
        self.result.groups[group].ended = Some(self.now);
        if let Some(node) = self.input.groups[group].node.clone() {
            self.record(PlanEvent::NodeEnds { node });
        }
        self.start_groups(1);
    }

    fn deadline(&self, group: usize) -> Option<Timestamp> {
        Some(self.result.groups[group].started + self.input.timeout?)
    }

    fn end_task(&mut self, task: usize, end: TaskEnd) {
        let Task { stage, group, pod, .. } = &mut self.tasks[task];
        if *stage == TaskStage::Ended {
            return;
        }
        *stage = TaskStage::Ended;
        let (group, pod) = (*group, pod.key.clone());
        self.result_of(task).end = Some(end);
        self.end_surge_of(task);
        if let TaskEnd::GaveUp(reason) = end {
            self.record(PlanEvent::GaveUp { pod, reason });
        }
        self.open_tasks[group] -= 1;
        if self.open_tasks[group] == 0 {
            match self.straggles_until(group) {
                Some(at) if at > self.now => self.schedule(at, Event::GroupStraggled(group)),
                Some(_) | None => self.end_group(group),
            }
        }
    }

    /// Returns the mean time at which the last straggler (a pod that terminates slowly) of a group of pods is gone, but
    /// at most the group's deadline. This mean is later than the likely time of each single pod. `None` in runs of the
    /// soonest or latest times, in which there are no stragglers.
    fn straggles_until(&self, group: usize) -> Option<Timestamp> {
        let at = self.last_straggler(self.members(group), self.now)?;
        Some(self.deadline(group).map_or(at, |deadline| at.min(deadline)))
    }

    /// Returns the mean time at which the last straggler (a pod that terminates slowly) among the pods of these tasks
    /// is gone. `others_gone` is the time at which all other pods are gone.
    ///
    /// The mean is `others_gone` plus the integral of the probability that at least one straggler still exists.
    /// Stragglers are independent of each other.
    fn last_straggler(&self, tasks: Range<usize>, others_gone: Timestamp) -> Option<Timestamp> {
        if self.bound != Bound::Likely {
            return None;
        }
        let after = |at: Timestamp| at.since(others_gone).as_secs_f64();
        // Returns the likely end of a pod and the end of its grace period, in seconds after `others_gone`. Returns
        // `None` unless the grace period ends after the likely end and after `others_gone`.
        let straggles = |task: usize| {
            let Task { pod, group, grace_ends, is_removed_by_force, .. } = &self.tasks[task];
            let result = self.result.pods.get(&pod.key)?;
            let end = (*grace_ends).filter(|_| !is_removed_by_force)?;
            let end = self.deadline(*group).map_or(end, |deadline| end.min(deadline));
            Some((after(result.gone?), after(end))).filter(|(gone, end)| gone < end && *end > 0.0)
        };
        let spans: Vec<(f64, f64)> = tasks.filter_map(straggles).collect();
        let last = spans.iter().map(|(_, end)| *end).fold(0.0, f64::max);
        let stragglers = self.environment.stragglers();
        let one_is_left = |at: f64| {
            let is_gone =
                |(gone, end): &(f64, f64)| 1.0 - stragglers.remain_after((at - gone) / (end - gone));
            1.0 - spans.iter().map(is_gone).product::<f64>()
        };
        let step = last / f64::from(STRAGGLER_STEPS);
        let later = (0..STRAGGLER_STEPS).map(|number| one_is_left((f64::from(number) + 0.5) * step) * step);
        Some(others_gone + Span::from_secs_f64(later.sum()))
    }

    /// Returns when the removal of the last group of pods has ended. If groups are removed at the same time, the last
    /// straggler (a pod that terminates slowly) of all groups decides. On average, this straggler is gone later than
    /// the last straggler of any single group.
    fn ended(&self) -> Option<Timestamp> {
        let ends: Option<Vec<Timestamp>> = self.result.groups.iter().map(|group| group.ended).collect();
        let last = ends?.into_iter().max().unwrap_or(self.now);
        let gone = |task: &Task| self.result.pods.get(&task.pod.key)?.gone;
        let gone = self.tasks[self.removed()].iter().filter_map(gone).max();
        let straggler = gone.and_then(|gone| self.last_straggler(self.removed(), gone));
        let deadline = (0..self.input.groups.len()).filter_map(|group| self.deadline(group)).max();
        let straggler = straggler.map(|at| deadline.map_or(at, |deadline| at.min(deadline)));
        Some(straggler.map_or(last, |straggler| last.max(straggler)))
    }

    fn on_attempt(&mut self, task: usize) {
        let Task { stage, group, next_attempt, .. } = self.tasks[task];
        if stage != TaskStage::Requesting || next_attempt != Some(self.now) {
            return;
        }
        self.tasks[task].next_attempt = None;
        if self.deadline(group).is_some_and(|deadline| self.now >= deadline) {
            return self.end_task(task, TaskEnd::GaveUp(GiveUpReason::TimedOut));
        }
        let decision = self.decide(task);
        self.result_of(task).first_decision.get_or_insert_with(|| decision.clone());
        match decision {
            EvictionDecision::Free(_) => self.start_deletion(task),
            EvictionDecision::Costs { budget } => {
                self.use_disruption(&budget, task);
                self.start_deletion(task);
            }
            EvictionDecision::Blocked(block) => self.refuse(task, block),
        }
    }

    fn decide(&self, task: usize) -> EvictionDecision {
        let Task { state, protected_by, .. } = &self.tasks[task];
        match self.input.mode {
            RemovalMode::Delete => EvictionDecision::Free(FreeEviction::NoBudget),
            RemovalMode::Evict => {
                let budgets: Vec<&BudgetState> = protected_by.iter().map(|key| &self.budgets[key]).collect();
                eviction::decide(*state, &budgets)
            }
        }
    }

    fn use_disruption(&mut self, budget: &Key, task: usize) {
        if let Some(state) = self.budgets.get_mut(budget) {
            state.numbers.allowed -= 1;
        }
        let pod = self.tasks[task].pod.key.clone();
        self.evicted.entry(budget.clone()).or_default().push(pod);
        self.schedule_sync(budget.clone());
    }

    fn schedule_sync(&mut self, budget: Key) {
        self.schedule(self.now + SYNC_DELAY, Event::BudgetSynced(budget));
    }

    fn refuse(&mut self, task: usize, block: EvictionBlock) {
        if let Some(budget) = block.budget() {
            self.waiting.entry(budget.clone()).or_default().insert(task);
        }
        if self.result_of(task).block.is_none() {
            self.record_first_refusal(task, &block);
        }
        self.result_of(task).block = Some(block.clone());
        match block {
            EvictionBlock::TwoBudgets { .. } | EvictionBlock::Broken { .. } => {
                self.end_task(task, TaskEnd::GaveUp(GiveUpReason::EvictionFailed));
            }
            EvictionBlock::NamespaceTerminating if self.tasks[task].state.terminating => {
                self.tasks[task].stage = TaskStage::Terminating;
                self.schedule_gone(task);
            }
            EvictionBlock::NamespaceTerminating
            | EvictionBlock::Stale { .. }
            | EvictionBlock::Exhausted { .. }
            | EvictionBlock::UnknownPolicy { .. } => self.schedule_give_up(task, &block),
        }
    }

    fn record_first_refusal(&mut self, task: usize, block: &EvictionBlock) {
        if let Some(budget) = block.budget() {
            self.result_of(task).behind = self.evicted.get(budget).cloned().unwrap_or_default();
            self.tasks[task].recoveries_before = self.recoveries.get(budget).copied().unwrap_or(0);
        }
        // No refusal is recorded for a pod whose Deployment is scaled up by one (surge): its eviction is tried only
        // once the surge's new pod exists.
        if self.surge_of(task).is_none() {
            let pod = self.tasks[task].pod.key.clone();
            self.record(PlanEvent::Refused { pod, budget: block.budget().cloned() });
        }
    }

    /// Schedules the time at which the removal of a pod is given up. kubectl checks its timeout only when it retries,
    /// so this is the first retry after the deadline.
    fn schedule_give_up(&mut self, task: usize, block: &EvictionBlock) {
        let Task { group, give_up_scheduled, .. } = self.tasks[task];
        let Some(deadline) = self.deadline(group).filter(|_| !give_up_scheduled) else { return };
        self.tasks[task].give_up_scheduled = true;
        let client_retries =
            self.input.retry == Retry::Kubectl && matches!(block, EvictionBlock::Stale { .. });
        let reported =
            if client_retries { self.now + CLIENT_RETRIES + Span::from_nanos(1) } else { self.now };
        let at = self.next_retry(group, deadline.max(reported));
        self.schedule(at, Event::GiveUp(task));
    }

    /// Returns the first time at or after `from` at which refused evictions of the group's pods are retried.
    fn next_retry(&self, group: usize, from: Timestamp) -> Timestamp {
        let Some(period) = self.input.retry.period() else { return from };
        let started = self.result.groups[group].started;
        let nanos = period.as_nanos().max(1);
        let periods = (from.since(started).as_nanos() + nanos - 1).div_euclid(nanos);
        started + period * periods
    }

    /// Starts the deletion of a pod after its removal was allowed. Does not start it again if the pod is already
    /// terminating.
    fn start_deletion(&mut self, task: usize) {
        self.tasks[task].stage = TaskStage::Terminating;
        for waiting in self.waiting.values_mut() {
            waiting.remove(&task);
        }
        if !self.tasks[task].state.terminating {
            self.on_deletion(task);
        }
        self.schedule_gone(task);
    }

    fn on_deletion(&mut self, task: usize) {
        let Task { pod, counted_by, recreation, healthy, recoveries_before, .. } = self.tasks[task].clone();
        self.tasks[task].state.terminating = true;
        let now = self.now;
        let waited_for = self.result_of(task).block.as_ref().and_then(EvictionBlock::budget).cloned();
        let recoveries = waited_for.and_then(|budget| self.recoveries.get(&budget).copied()).unwrap_or(0);
        let result = self.result_of(task);
        result.leaves = Some(now);
        result.recoveries = recoveries.saturating_sub(recoveries_before);
        self.record(PlanEvent::Leaves { pod: pod.key.clone() });
        self.environment.on_deletion(&pod);
        self.live_pods.on_deletion(self.cluster, &pod);
        self.end_surge_of(task);
        if healthy {
            self.tasks[task].healthy = false;
            for budget in counted_by {
                if let Some(state) = self.budgets.get_mut(&budget) {
                    state.numbers.healthy -= 1;
                }
                self.schedule_sync(budget);
            }
        }
        if recreation == Recreation::Immediately {
            self.schedule_created(task);
        }
    }

    fn on_gone(&mut self, task: usize) {
        if self.tasks[task].gone_at != Some(self.now) {
            return;
        }
        let now = self.now;
        let pod = self.tasks[task].pod.clone();
        if self.tasks[task].recreation == Recreation::WhenGone && !self.tasks[task].has_failed {
            self.tasks[task].has_failed = true;
            self.schedule_created(task);
        }
        if let Some(at) = self.jobs.keeps_until(self.cluster, &pod).filter(|at| *at > now) {
            self.tasks[task].gone_at = Some(at);
            return self.schedule(at, Event::Gone(task));
        }
        self.result_of(task).gone = Some(now);
        self.record(PlanEvent::Gone { pod: pod.key.clone() });
        self.environment.on_gone(&pod);
        self.schedule_retry();
        self.stop_counting(task);
        self.return_to_node(task);
        self.end_task(task, TaskEnd::Gone);
    }

    /// Lets the DaemonSet of a pod create it again on its node, by the DaemonSet's current template. A replacement is
    /// recorded only if it stays Pending there; for any other, the time at which it is Ready is not predicted.
    fn return_to_node(&mut self, task: usize) {
        let pod = self.tasks[task].pod.clone();
        if self.tasks[task].recreation != Recreation::OnSameNode
            || !not_needed::is_created_on_its_node(self.cluster, &pod)
        {
            return;
        }
        let closed = &self.input.closed;
        let new = Replacement::create(&mut self.environment, &pod, closed, self.bound, self.now);
        if new.landing.has_nowhere_to_run() {
            self.record(PlanEvent::Replaced { of: pod.key.clone(), landing: new.landing.clone() });
            self.result_of(task).replacement = Some(new);
            self.pending.push(task);
        }
    }

    /// Schedules the creation of a pod's replacement: now, or after the back-off of its Job.
    fn schedule_created(&mut self, task: usize) {
        let Task { pod, has_failed, is_removed_by_force, .. } = self.tasks[task].clone();
        let is_ended_by_kubelet = has_failed && !is_removed_by_force;
        let finished =
            if is_ended_by_kubelet { self.now } else { job_failures::finished(self.cluster, &pod, self.now) };
        self.jobs.on_failure(self.cluster, &pod, self.input.mode == RemovalMode::Evict, finished);
        let at = self.jobs.created(self.cluster, &pod).unwrap_or(self.now);
        self.schedule(at.max(self.now), Event::Created(task));
    }

    fn on_created(&mut self, task: usize) {
        let pod = self.tasks[task].pod.clone();
        // Further failures of the pod's Job may have prolonged the back-off since this event was scheduled.
        let created = self.jobs.created(self.cluster, &pod);
        if let Some(at) = created.filter(|at| *at > self.now) {
            return self.schedule(at, Event::Created(task));
        }
        if self.jobs.failure(self.cluster, &pod).is_some() {
            return;
        }
        if self.waits_for_lower(task) {
            return;
        }
        if !self.live_pods.recreate(self.cluster, &pod) {
            return;
        }
        match self.quotas.admit(self.cluster, &pod) {
            Ok(()) => self.create(task),
            Err(refusal) => {
                self.record(PlanEvent::NotReplaced { of: pod.key.clone(), quota: refusal.quota.clone() });
                self.result_of(task).quota = Some(*refusal);
                self.refused.push((task, self.now));
            }
        }
    }

    /// Subtracts a pod from the usage of quotas. Replacements that were refused before may then be admitted.
    fn stop_counting(&mut self, task: usize) {
        if !std::mem::take(&mut self.tasks[task].counts) {
            return;
        }
        self.quotas.release(self.cluster, &self.tasks[task].pod);
        for (task, refused) in std::mem::take(&mut self.refused) {
            if self.quotas.admit(self.cluster, &self.tasks[task].pod).is_err() {
                self.refused.push((task, refused));
                continue;
            }
            let at = quota::retry(refused, self.now, self.bound);
            if let Some(refusal) = &mut self.result_of(task).quota {
                refusal.admitted = Some(at);
            }
            self.schedule(at, Event::Admitted(task));
        }
    }

    fn create(&mut self, task: usize) {
        let pod = self.tasks[task].pod.clone();
        let closed = &self.input.closed;
        let new = Replacement::create(&mut self.environment, &pod, closed, self.bound, self.now);
        let is_placed = matches!(new.landing, Landing::Node { .. });
        let is_unplaced = new.landing.has_nowhere_to_run();
        self.record(PlanEvent::Replaced { of: pod.key.clone(), landing: new.landing.clone() });
        if let Some(ready) = new.ready {
            self.schedule(ready, Event::Ready(task));
        }
        self.result_of(task).replacement = Some(new);
        if is_placed {
            let trace = self.environment.trace_of(&pod.key);
            let has_preempted = trace.is_some_and(|trace| !trace.preempts.is_empty());
            self.retry(if has_preempted { Occasion::Preempted } else { Occasion::Placed });
        } else if is_unplaced {
            self.pending.push(task);
        }
    }

    fn on_ready(&mut self, task: usize) {
        let Task { pod, counted_again_by, .. } = self.tasks[task].clone();
        self.record(PlanEvent::Ready { of: pod.key.clone() });
        self.count_healthy(counted_again_by);
        self.on_ready_elsewhere(&pod.key);
        self.create_next();
    }

    fn schedule_starting(&mut self, starting: &[StartingPod]) {
        for new in starting {
            if let Some(at) = new.ready_at(self.cluster, &self.environment, self.bound, self.now) {
                let (pod, budgets) = (new.pod.key.clone(), new.budgets.clone());
                self.schedule(at, Event::Started { pod, budgets });
            }
        }
    }

    /// Schedules the end of each terminating pod that the plan does not remove.
    fn schedule_returning(&mut self) {
        for task in self.removed().end..self.tasks.len() {
            if self.tasks[task].pod.termination.is_some() {
                self.result_of(task);
                self.schedule_gone(task);
            }
        }
    }

    /// Starts the deletion of a pod on a lost node. The pod's object is gone at once if the node does not exist.
    fn on_evicted(&mut self, task: usize) {
        self.on_deletion(task);
        let node = self.tasks[task].pod.node.clone();
        if node.is_some_and(|node| self.cluster.node(&node).is_none()) {
            self.tasks[task].gone_at = Some(self.now);
            self.on_gone(task);
        }
    }

    fn on_started(&mut self, pod: Key, budgets: Vec<Key>) {
        self.result.started.insert(pod.clone(), self.now);
        self.on_ready_elsewhere(&pod);
        self.record(PlanEvent::Started { pod });
        self.count_healthy(budgets);
        self.create_next();
    }

    /// Adds 1 to the number of healthy pods of each of these budgets.
    fn count_healthy(&mut self, budgets: Vec<Key>) {
        for budget in budgets {
            if let Some(state) = self.budgets.get_mut(&budget) {
                state.numbers.healthy += 1;
            }
            *self.recoveries.entry(budget.clone()).or_default() += 1;
            self.schedule_sync(budget);
        }
    }

    fn on_disruption_expired(&mut self, budget: &Key) {
        if let Some(state) = self.budgets.get_mut(budget) {
            state.numbers.healthy += 1;
        }
        self.on_budget_synced(budget);
    }

    /// Updates a budget after the disruption controller has synced it. Schedules retries of the evictions that wait for
    /// the budget, in the order of tasks.
    fn on_budget_synced(&mut self, budget: &Key) {
        let Some(state) = self.budgets.get_mut(budget) else { return };
        state.sync();
        let waiting: Vec<usize> = self.waiting.get(budget).into_iter().flatten().copied().collect();
        for task in waiting {
            if self.tasks[task].stage == TaskStage::Requesting && self.tasks[task].next_attempt.is_none() {
                let after = match self.input.retry {
                    Retry::Every(_) | Retry::Kubectl => Span::from_nanos(1),
                    Retry::OnRecovery => Span::ZERO,
                };
                let at = self.next_retry(self.tasks[task].group, self.now + after);
                self.tasks[task].next_attempt = Some(at);
                self.schedule(at, Event::Attempt(task));
            }
        }
    }

    fn on_skip_wait(&mut self, task: usize) {
        if self.tasks[task].stage == TaskStage::Terminating {
            self.end_task(task, TaskEnd::GaveUp(GiveUpReason::LeftTerminating));
        }
    }

    fn on_give_up(&mut self, task: usize) {
        if self.tasks[task].stage == TaskStage::Requesting {
            self.end_task(task, TaskEnd::GaveUp(GiveUpReason::TimedOut));
        }
    }

    fn on_deadline(&mut self, group: usize) {
        for task in self.members(group) {
            if self.tasks[task].stage == TaskStage::Terminating {
                self.end_task(task, TaskEnd::GaveUp(GiveUpReason::TimedOut));
            }
        }
    }
}
