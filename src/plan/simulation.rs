//! Evictions and deletions as a chain of events on a virtual timeline (docs/upstream/operator-actions.md#6.4).
//!
//! Budgets are shared by all groups; a pod that is refused tries again on kubectl's beat; replacements that become
//! Ready make room. The run ends when nothing is left that could change anything.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    action::{RemovalMode, Retry},
    budget::{self, BudgetState, DISRUPTION_TIMEOUT},
    environment::{Bound, Environment},
    eviction::{self, EvictionBlock, EvictionDecision, PodState},
    landing::Landing,
    owner::{self, Recreation},
    placement_trace::RunTrace,
    replacement::Replacement,
    rules::EvictionRules,
    warning,
};
use crate::{
    cluster::{Budget, Cluster, Key, NodeName, Pod, Uid},
    time::{Span, Timestamp},
};

/// What the disruption controller takes to see what happened.
const SETTLING: Span = Span::from_millis(200);

/// What is to be carried out.
#[derive(Clone, Debug)]
pub struct SimulationInput {
    pub groups: Vec<RemovalGroup>,
    pub mode: RemovalMode,
    /// Replaces the pods' own grace periods.
    pub grace: Option<Span>,
    /// How long one group may take.
    pub timeout: Option<Span>,
    /// A pod whose deletion is overdue by more than this is not waited for.
    pub skip_wait_for_delete: Option<Span>,
    /// Groups at a time.
    pub parallel: usize,
    pub retry: Retry,
    /// Nodes that take no pods any more.
    pub closed: BTreeSet<NodeName>,
}

/// Pods that go together, in the order in which they are tried.
#[derive(Clone, Debug, Default)]
pub struct RemovalGroup {
    pub pods: Vec<Arc<Pod>>,
}

/// How long kubectl's client tries in silence where the server answers with Retry-After: ten times ten seconds.
const SILENCE: Span = Span::from_secs(100);

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct RunResult {
    /// By group, in order.
    pub groups: Vec<GroupResult>,
    pub pods: BTreeMap<Key, PodResult>,
    /// The budgets that were asked, as they stood in the end.
    pub budgets: BTreeMap<Key, BudgetState>,
    /// In order of time.
    pub moments: Vec<SimulationMoment>,
    /// What was weighed where replacements landed.
    pub trace: RunTrace,
}

impl RunResult {
    /// Where replacements landed, by the pod that each is for.
    pub fn landings(&self) -> BTreeMap<Key, Landing> {
        let landing = |result: &PodResult| Some(result.replacement.as_ref()?.landing.clone());
        self.pods.iter().filter_map(|(pod, result)| Some((pod.clone(), landing(result)?))).collect()
    }
}

/// What came of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupResult {
    pub started: Timestamp,
    /// None: it never ends.
    pub ended: Option<Timestamp>,
    /// A group before it never ends: it starts only if somebody goes on regardless.
    pub after_incomplete: bool,
}

/// What came of a pod.
#[derive(Clone, Debug, Default)]
pub struct PodResult {
    /// What the first try was answered.
    pub first: Option<EvictionDecision>,
    pub tries: u32,
    /// What last refused it.
    pub block: Option<EvictionBlock>,
    /// When its deletion began.
    pub granted: Option<Timestamp>,
    /// When its object was gone.
    pub gone: Option<Timestamp>,
    /// How the task ended; none where it waits for ever.
    pub end: Option<TaskEnd>,
    /// The pods whose eviction had used the budget up when this one was first refused.
    pub behind: Vec<Key>,
    /// Replacements that became Ready between its first refusal and its eviction.
    pub recoveries: u32,
    pub replacement: Option<Replacement>,
}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskEnd {
    Gone,
    /// Its deletion is overdue, and it is not waited for.
    LeftTerminating,
    /// The server answered what no waiting mends.
    Failed,
    TimedOut,
}

/// Something that happens.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulationMoment {
    pub at: Timestamp,
    pub what: SimulationEvent,
}

/// What happens.
#[derive(Clone, Debug, PartialEq)]
pub enum SimulationEvent {
    GroupStarts {
        group: usize,
    },
    GroupEnds {
        group: usize,
    },
    /// Its deletion begins.
    Leaves {
        pod: Key,
    },
    /// Its eviction is refused for the first time.
    Refused {
        pod: Key,
        block: EvictionBlock,
    },
    Gone {
        pod: Key,
    },
    /// A replacement of this pod is created.
    Replaced {
        of: Key,
        landing: Landing,
    },
    /// The replacement of this pod is Ready.
    Ready {
        of: Key,
    },
    GaveUp {
        pod: Key,
        end: TaskEnd,
    },
}

/// Everything that is alike in the runs of one undertaking.
#[derive(Clone, Debug)]
pub struct Simulation<'a> {
    cluster: &'a Cluster,
    input: &'a SimulationInput,
    now: Timestamp,
    tasks: Vec<Task>,
    states: BTreeMap<Key, BudgetState>,
    /// Budgets whose status holds promises that end, by the time at which they do.
    promises: Vec<(Timestamp, Key)>,
    /// Pods of an owner that live.
    living: BTreeMap<Uid, i32>,
}

#[derive(Clone, Debug)]
struct Task {
    pod: Arc<Pod>,
    group: usize,
    stage: Stage,
    state: PodState,
    /// Whether the budgets count it as healthy.
    healthy: bool,
    protected_by: Vec<Key>,
    counted_by: Vec<Key>,
    recreation: Recreation,
    next_try: Option<Timestamp>,
    gives_up: bool,
    /// How many replacements its budget had got when it was first refused.
    recovered_before: u32,
    gone_at: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Idle,
    Trying,
    Leaving,
    Done,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Try(usize),
    Gone(usize),
    Created(usize),
    Ready(usize),
    Settle(Key),
    PromiseEnds(Key),
    SkipWait(usize),
    GiveUp(usize),
    Deadline(usize),
    /// The last pod of a group is gone that took longer than its like.
    Straggled(usize),
}

impl<'a> Simulation<'a> {
    /// Over budgets that stand so: those that [`budget::states`] finds for its pods.
    pub fn new(
        cluster: &'a Cluster,
        input: &'a SimulationInput,
        states: &BTreeMap<Key, BudgetState>,
        rules: &EvictionRules,
        now: Timestamp,
    ) -> Self {
        let mut simulation = Self {
            cluster,
            input,
            now,
            tasks: Vec::new(),
            states: states.clone(),
            promises: Vec::new(),
            living: BTreeMap::new(),
        };
        for budget in states.keys().filter_map(|key| cluster.budgets().get(key)) {
            simulation.promises.extend(promises(cluster, budget, rules, now));
        }
        for (group, members) in input.groups.iter().enumerate() {
            for pod in &members.pods {
                simulation.take(pod, group, rules);
            }
        }
        simulation
    }

    fn take(&mut self, pod: &Arc<Pod>, group: usize, rules: &EvictionRules) {
        let (mut protected_by, mut counted_by) = (Vec::new(), Vec::new());
        let mut promised = false;
        for budget in self.cluster.budgets_of(pod).filter(|budget| budget::selects(budget, pod, rules)) {
            counted_by.push(budget.key.clone());
            if budget::protects(budget, pod, rules) {
                protected_by.push(budget.key.clone());
            }
            promised |= !budget::is_healthy(budget, pod, self.now);
        }
        if let Some(owner) = &pod.owner
            && !self.living.contains_key(&owner.uid)
        {
            let lives = |pod: &&Arc<Pod>| pod.termination.is_none() && !pod.is_finished();
            let living = self.cluster.pods_owned_by(&owner.uid).filter(lives).count();
            self.living.insert(owner.uid.clone(), i32::try_from(living).unwrap_or(i32::MAX));
        }
        self.tasks.push(Task {
            pod: pod.clone(),
            group,
            stage: Stage::Idle,
            state: PodState::of(self.cluster, pod),
            healthy: pod.is_ready() && pod.termination.is_none() && !promised,
            protected_by,
            counted_by,
            recreation: owner::recreation(self.cluster, pod),
            next_try: None,
            gives_up: false,
            recovered_before: 0,
            gone_at: None,
        });
    }

    /// Runs it by one of the estimates.
    pub fn run<S: Environment>(&self, environment: S, bound: Bound) -> RunResult {
        let mut run = Run {
            cluster: self.cluster,
            input: self.input,
            environment,
            bound,
            now: self.now,
            agenda: BTreeMap::new(),
            events: 0,
            tasks: self.tasks.clone(),
            states: self.states.clone(),
            living: self.living.clone(),
            open: vec![0; self.input.groups.len()],
            next_group: 0,
            after_incomplete: false,
            users: BTreeMap::new(),
            waiting: BTreeMap::new(),
            recovered: BTreeMap::new(),
            result: RunResult {
                groups: vec![GroupResult::default(); self.input.groups.len()],
                ..RunResult::default()
            },
        };
        for (at, budget) in &self.promises {
            run.schedule(*at, Event::PromiseEnds(budget.clone()));
        }
        run.finish();
        run.result.budgets = run.states;
        run.result.trace = run.environment.trace();
        run.result
    }
}

/// The promises in a budget's status that end by themselves, giving a healthy pod back.
fn promises(
    cluster: &Cluster,
    budget: &Budget,
    rules: &EvictionRules,
    now: Timestamp,
) -> Vec<(Timestamp, Key)> {
    budget::pods_of(cluster, budget, rules)
        .filter(|pod| pod.is_ready() && pod.termination.is_none())
        .filter_map(|pod| budget.status.disrupted_pods.get(&pod.key.name))
        .map(|granted| *granted + DISRUPTION_TIMEOUT)
        .filter(|ends| *ends > now)
        .map(|ends| (ends, budget.key.clone()))
        .collect()
}

/// One run.
struct Run<'a, S> {
    cluster: &'a Cluster,
    input: &'a SimulationInput,
    environment: S,
    bound: Bound,
    now: Timestamp,
    /// What will happen, in order of time and then of planning.
    agenda: BTreeMap<(Timestamp, u64), Event>,
    events: u64,
    tasks: Vec<Task>,
    states: BTreeMap<Key, BudgetState>,
    living: BTreeMap<Uid, i32>,
    /// Tasks that have not ended, by group.
    open: Vec<usize>,
    next_group: usize,
    after_incomplete: bool,
    /// The pods that have used a budget, in order.
    users: BTreeMap<Key, Vec<Key>>,
    /// The tasks that a budget has refused and that may be tried again.
    waiting: BTreeMap<Key, BTreeSet<usize>>,
    /// Replacements that became Ready, by budget.
    recovered: BTreeMap<Key, u32>,
    result: RunResult,
}

impl<S: Environment> Run<'_, S> {
    fn finish(&mut self) {
        self.start_groups(self.input.parallel.max(1));
        loop {
            while let Some(((at, _), event)) = self.agenda.pop_first() {
                self.now = at;
                self.on(event);
            }
            // What has not ended by now never does. The groups behind it start only if somebody goes on regardless.
            if self.next_group == self.open.len() {
                return;
            }
            self.after_incomplete = true;
            self.start_groups(1);
        }
    }

    fn on(&mut self, event: Event) {
        match event {
            Event::Try(task) => self.on_try(task),
            Event::Gone(task) => self.on_gone(task),
            Event::Created(task) => self.on_created(task),
            Event::Ready(task) => self.on_ready(task),
            Event::Settle(budget) => self.on_settle(&budget),
            Event::PromiseEnds(budget) => self.on_promise_end(&budget),
            Event::SkipWait(task) => self.on_skip_wait(task),
            Event::GiveUp(task) => self.on_give_up(task),
            Event::Deadline(group) => self.on_deadline(group),
            Event::Straggled(group) => self.end_group(group),
        }
    }

    fn schedule(&mut self, at: Timestamp, event: Event) {
        self.events += 1;
        self.agenda.insert((at, self.events), event);
    }

    fn tell(&mut self, what: SimulationEvent) {
        self.result.moments.push(SimulationMoment { at: self.now, what });
    }

    fn course_of(&mut self, task: usize) -> &mut PodResult {
        self.result.pods.entry(self.tasks[task].pod.key.clone()).or_default()
    }

    fn start_groups(&mut self, count: usize) {
        for _ in 0..count {
            if self.next_group < self.open.len() {
                let group = self.next_group;
                self.next_group += 1;
                self.start_group(group);
            }
        }
    }

    fn start_group(&mut self, group: usize) {
        self.result.groups[group] =
            GroupResult { started: self.now, ended: None, after_incomplete: self.after_incomplete };
        self.tell(SimulationEvent::GroupStarts { group });
        let members = self.members(group);
        self.open[group] = members.len();
        for task in members.clone() {
            self.tasks[task].stage = Stage::Trying;
            self.tasks[task].next_try = Some(self.now);
            self.schedule(self.now, Event::Try(task));
        }
        if let Some(timeout) = self.input.timeout {
            self.schedule(self.now + timeout, Event::Deadline(group));
        }
        if members.is_empty() {
            self.end_group(group);
        }
    }

    /// The tasks of a group; they lie side by side.
    fn members(&self, group: usize) -> std::ops::Range<usize> {
        let begin = self.tasks.partition_point(|task| task.group < group);
        begin..begin + self.input.groups[group].pods.len()
    }

    fn end_group(&mut self, group: usize) {
        self.result.groups[group].ended = Some(self.now);
        self.tell(SimulationEvent::GroupEnds { group });
        self.start_groups(1);
    }

    fn end(&mut self, task: usize, end: TaskEnd) {
        let Task { stage, group, pod, .. } = &mut self.tasks[task];
        if *stage == Stage::Done {
            return;
        }
        *stage = Stage::Done;
        let (group, pod) = (*group, pod.key.clone());
        self.course_of(task).end = Some(end);
        if end != TaskEnd::Gone {
            self.tell(SimulationEvent::GaveUp { pod, end });
        }
        self.open[group] -= 1;
        if self.open[group] == 0 {
            match self.straggles_until(group) {
                Some(at) if at > self.now => self.schedule(at, Event::Straggled(group)),
                Some(_) | None => self.end_group(group),
            }
        }
    }

    /// When the last of a group is likely gone, which is later than each of them by itself: who of them uses up its
    /// grace is not known, but that some do.
    fn straggles_until(&self, group: usize) -> Option<Timestamp> {
        if self.bound != Bound::Likely {
            return None;
        }
        let graces_end = |task: usize| {
            let pod = &self.tasks[task].pod;
            let result = self.result.pods.get(&pod.key)?;
            let ends = result.granted? + self.input.grace.unwrap_or(pod.grace);
            Some(ends).filter(|ends| result.gone.is_some_and(|gone| gone < *ends))
        };
        let mut ends: Vec<Timestamp> = self.members(group).filter_map(graces_end).collect();
        ends.sort_unstable();
        let heedless = self.environment.stragglers(ends.len());
        if heedless == 0 {
            return None;
        }
        // The latest of so many, were they drawn by lot.
        let place = (ends.len() * heedless).div_ceil(heedless + 1);
        let at = *ends.get(place.saturating_sub(1))?;
        Some(self.deadline(group).map_or(at, |deadline| at.min(deadline)))
    }

    fn deadline(&self, group: usize) -> Option<Timestamp> {
        Some(self.result.groups[group].started + self.input.timeout?)
    }

    fn on_try(&mut self, task: usize) {
        let Task { stage, group, state, .. } = self.tasks[task];
        if stage != Stage::Trying || self.tasks[task].next_try != Some(self.now) {
            return;
        }
        self.tasks[task].next_try = None;
        if self.deadline(group).is_some_and(|deadline| self.now >= deadline) {
            return self.end(task, TaskEnd::TimedOut);
        }
        let gate = match self.input.mode {
            RemovalMode::Delete => EvictionDecision::Free(eviction::FreeEviction::NoBudget),
            RemovalMode::Evict => {
                let states: Vec<&BudgetState> =
                    self.tasks[task].protected_by.iter().map(|key| &self.states[key]).collect();
                eviction::decide(state, &states)
            }
        };
        let result = self.course_of(task);
        result.tries += 1;
        result.first.get_or_insert_with(|| gate.clone());
        match gate {
            EvictionDecision::Free(_) => self.release(task),
            EvictionDecision::Costs { budget } => {
                self.spend(&budget, task);
                self.release(task);
            }
            EvictionDecision::Blocked(block) => self.refuse(task, block),
        }
    }

    fn spend(&mut self, budget: &Key, task: usize) {
        if let Some(state) = self.states.get_mut(budget) {
            state.numbers.allowed -= 1;
        }
        let pod = self.tasks[task].pod.key.clone();
        self.users.entry(budget.clone()).or_default().push(pod);
        self.settle_soon(budget.clone());
    }

    fn settle_soon(&mut self, budget: Key) {
        self.schedule(self.now + SETTLING, Event::Settle(budget));
    }

    fn refuse(&mut self, task: usize, block: EvictionBlock) {
        let pod = self.tasks[task].pod.key.clone();
        let (users, recovered) = match block.budget() {
            Some(budget) => (
                self.users.get(budget).cloned().unwrap_or_default(),
                self.recovered.get(budget).copied().unwrap_or(0),
            ),
            None => (Vec::new(), 0),
        };
        if let Some(budget) = block.budget() {
            self.waiting.entry(budget.clone()).or_default().insert(task);
        }
        let result = self.course_of(task);
        let is_first = result.block.is_none();
        result.block = Some(block.clone());
        if is_first {
            result.behind = users;
            self.tasks[task].recovered_before = recovered;
            self.tell(SimulationEvent::Refused { pod, block: block.clone() });
        }
        match block {
            EvictionBlock::TwoBudgets { .. } | EvictionBlock::Broken { .. } => {
                self.end(task, TaskEnd::Failed)
            }
            EvictionBlock::NamespaceTerminating if self.tasks[task].state.terminating => {
                self.tasks[task].stage = Stage::Leaving;
                self.leave(task);
            }
            EvictionBlock::NamespaceTerminating
            | EvictionBlock::Stale { .. }
            | EvictionBlock::Exhausted { .. }
            | EvictionBlock::UnknownPolicy { .. } => self.plan_giving_up(task, &block),
        }
    }

    /// Retries look at the clock only when they try.
    fn plan_giving_up(&mut self, task: usize, block: &EvictionBlock) {
        let group = self.tasks[task].group;
        let Some(deadline) = self.deadline(group).filter(|_| !self.tasks[task].gives_up) else { return };
        self.tasks[task].gives_up = true;
        let is_silent = self.input.retry == Retry::Kubectl && matches!(block, EvictionBlock::Stale { .. });
        let heard = if is_silent { self.now + SILENCE + Span::from_nanos(1) } else { self.now };
        let at = self.beat(group, deadline.max(heard));
        self.schedule(at, Event::GiveUp(task));
    }

    /// The first try of a group's beat that is not before `from`.
    fn beat(&self, group: usize, from: Timestamp) -> Timestamp {
        let Some(period) = self.input.retry.period() else { return from };
        let started = self.result.groups[group].started;
        let nanos = period.as_nanos().max(1);
        let beats = (from.since(started).as_nanos() + nanos - 1).div_euclid(nanos);
        started + period * beats
    }

    /// The deletion begins, or has begun already.
    fn release(&mut self, task: usize) {
        let Task { pod, state, counted_by, recreation, healthy, .. } = self.tasks[task].clone();
        self.tasks[task].stage = Stage::Leaving;
        for waiting in self.waiting.values_mut() {
            waiting.remove(&task);
        }
        let now = self.now;
        if !state.terminating {
            let waited_for = self.course_of(task).block.as_ref().and_then(EvictionBlock::budget).cloned();
            let recovered = waited_for.and_then(|budget| self.recovered.get(&budget).copied()).unwrap_or(0);
            let recoveries = recovered.saturating_sub(self.tasks[task].recovered_before);
            let result = self.course_of(task);
            result.granted = Some(now);
            result.recoveries = recoveries;
            self.tell(SimulationEvent::Leaves { pod: pod.key.clone() });
            self.tasks[task].state.terminating = true;
            self.environment.leaving(&pod);
            if let Some(owner) = &pod.owner
                && !pod.is_finished()
                && let Some(living) = self.living.get_mut(&owner.uid)
            {
                *living -= 1;
            }
            if healthy {
                self.tasks[task].healthy = false;
                for budget in counted_by {
                    if let Some(state) = self.states.get_mut(&budget) {
                        state.numbers.healthy -= 1;
                    }
                    self.settle_soon(budget);
                }
            }
            if let Recreation::AtOnce(_) = recreation {
                self.schedule(now, Event::Created(task));
            }
        }
        self.leave(task);
    }

    /// Works out when a pod that terminates is gone.
    fn leave(&mut self, task: usize) {
        let pod = self.tasks[task].pod.clone();
        let (grace, deadline) = self.grace(&pod);
        let takes = if warning::is_held(&pod) {
            None
        } else if grace <= Span::ZERO && self.goes_at_once(&pod) {
            Some(Span::ZERO)
        } else {
            self.environment.stop(&pod, grace).at(self.bound)
        };
        if let Some(takes) = takes {
            let at = self.now + takes;
            self.tasks[task].gone_at = Some(at);
            self.schedule(at, Event::Gone(task));
        }
        if let Some(limit) = self.input.skip_wait_for_delete {
            // kubectl looks once a second, and wants it to be more.
            let at = deadline + limit + Span::from_secs(1);
            self.schedule(at.max(self.now), Event::SkipWait(task));
        }
    }

    /// The grace that a pod is given from now, and when it ends. What terminates already can only be hurried.
    fn grace(&self, pod: &Pod) -> (Span, Timestamp) {
        let is_idle = pod.node.is_none() || pod.is_finished();
        let wanted = if is_idle { Span::ZERO } else { self.input.grace.unwrap_or(pod.grace) };
        match &pod.termination {
            Some(termination) => {
                let left = termination.deadline.since(self.now);
                let given = self.input.grace.is_some() || is_idle;
                if given && wanted < left {
                    (wanted, self.now + wanted)
                } else {
                    (left.or_zero(), termination.deadline)
                }
            }
            None => (wanted, self.now + wanted),
        }
    }

    /// Whether a grace of zero removes the object without a kubelet: it was asked for, and is not merely run out.
    fn goes_at_once(&self, pod: &Pod) -> bool {
        let is_idle = pod.node.is_none() || pod.is_finished();
        pod.termination.is_none() || is_idle || self.input.grace == Some(Span::ZERO)
    }

    fn on_gone(&mut self, task: usize) {
        if self.tasks[task].gone_at != Some(self.now) {
            return;
        }
        let now = self.now;
        let Task { pod, recreation, .. } = self.tasks[task].clone();
        self.course_of(task).gone = Some(now);
        self.tell(SimulationEvent::Gone { pod: pod.key.clone() });
        self.environment.gone(&pod);
        if let Recreation::WhenGone(_) = recreation {
            self.schedule(now, Event::Created(task));
        }
        self.end(task, TaskEnd::Gone);
    }

    /// The owner makes a new pod, if it wants one.
    fn on_created(&mut self, task: usize) {
        let (pod, now) = (self.tasks[task].pod.clone(), self.now);
        let Some(owner) = &pod.owner else { return };
        let living = self.living.get(&owner.uid).copied().unwrap_or(0);
        if !owner::creates_replacement(self.cluster, &pod, living) {
            return;
        }
        self.living.insert(owner.uid.clone(), living.saturating_add(1));
        let landing = self.environment.land(&pod, &self.input.closed);
        let ready = match &landing {
            Landing::Nowhere { .. } => None,
            Landing::Node { .. } | Landing::Somewhere => {
                self.environment.ready(&pod, &landing).at(self.bound).map(|takes| now + takes)
            }
        };
        self.tell(SimulationEvent::Replaced { of: pod.key.clone(), landing: landing.clone() });
        self.course_of(task).replacement = Some(Replacement { landing, created: now, ready });
        if let Some(ready) = ready {
            self.schedule(ready, Event::Ready(task));
        }
    }

    fn on_ready(&mut self, task: usize) {
        let Task { pod, counted_by, .. } = self.tasks[task].clone();
        self.tell(SimulationEvent::Ready { of: pod.key.clone() });
        for budget in counted_by {
            if let Some(state) = self.states.get_mut(&budget) {
                state.numbers.healthy += 1;
            }
            *self.recovered.entry(budget.clone()).or_default() += 1;
            self.settle_soon(budget);
        }
    }

    fn on_promise_end(&mut self, budget: &Key) {
        if let Some(state) = self.states.get_mut(budget) {
            state.numbers.healthy += 1;
        }
        self.on_settle(budget);
    }

    /// The disruption controller has seen what happened: who waits for the budget tries again on the next beat.
    fn on_settle(&mut self, budget: &Key) {
        let Some(state) = self.states.get_mut(budget) else { return };
        state.settle();
        // In their own order, which is that of the plan.
        let waiting: Vec<usize> = self.waiting.get(budget).into_iter().flatten().copied().collect();
        for task in waiting {
            if self.tasks[task].stage == Stage::Trying && self.tasks[task].next_try.is_none() {
                let after = match self.input.retry {
                    Retry::Every(_) | Retry::Kubectl => Span::from_nanos(1),
                    Retry::OnRecovery => Span::ZERO,
                };
                let at = self.beat(self.tasks[task].group, self.now + after);
                self.tasks[task].next_try = Some(at);
                self.schedule(at, Event::Try(task));
            }
        }
    }

    fn on_skip_wait(&mut self, task: usize) {
        if self.tasks[task].stage == Stage::Leaving {
            self.end(task, TaskEnd::LeftTerminating);
        }
    }

    fn on_give_up(&mut self, task: usize) {
        if self.tasks[task].stage == Stage::Trying {
            self.end(task, TaskEnd::TimedOut);
        }
    }

    fn on_deadline(&mut self, group: usize) {
        for task in self.members(group) {
            if self.tasks[task].stage == Stage::Leaving {
                self.end(task, TaskEnd::TimedOut);
            }
        }
    }
}
