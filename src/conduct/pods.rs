//! Makes pods go: each is asked as long as its budget, the server or the clock says so, and watched until it is gone.

use super::{
    Conduct, Level, NodeStage, Outcome, PodEnd, PodStage, Stop, Subject, Task, backoff, report::Hold,
};
use crate::{
    cluster::{Budget, Cluster, Key, Uid, Version},
    plan::{Manner, Retry, Skip, Step, filter},
    time::{Span, Timestamp},
};

/// A pod that is to go.
#[derive(Clone, Debug)]
pub(super) struct PodTask {
    pub(super) key: Key,
    pub(super) uid: Uid,
    pub(super) group: usize,
    pub(super) stage: PodStage,
    pub(super) tries: u32,
    /// Errors of the server in a row.
    failures: u32,
    /// The version of its budget when that last refused it: a later one that allows something wakes it.
    refused_at: Version,
    /// Whether it came to the node after the plan was made.
    pub(super) late: bool,
}

/// Pods that go together: those of a node, or those that were named.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// The place of its node; none where pods were named.
    pub(super) node: Option<usize>,
    pods: Vec<usize>,
    state: State,
    /// When its time is over.
    deadline: Option<Timestamp>,
    /// How often pods were found that had come late.
    rounds: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waits,
    Runs,
    /// A list is under way that shows whether anything is left.
    Lists,
    /// The list is asked for again then.
    ListsAgain {
        at: Timestamp,
    },
    Over,
}

/// Evictions asked for and not answered, so that the order counts for something and a cancel takes hold.
const AT_ONCE: usize = 8;

/// Errors of the server after which a pod is given up.
const FAILURES: u32 = 10;

/// How often a node may be found with late pods before it is given up.
const ROUNDS: u32 = 5;

/// What a stale budget is given where the server names no time.
const STALE: Span = Span::from_secs(10);

/// How soon a list is asked for again that showed what the watch has not told of.
const LOOK_AGAIN: Span = Span::from_secs(1);

impl PodTask {
    pub(super) fn new(key: Key, uid: Uid, group: usize, stage: PodStage) -> Self {
        Self { key, uid, group, stage, tries: 0, failures: 0, refused_at: Version(0), late: false }
    }

    pub(super) fn wakes_at(&self) -> Option<Timestamp> {
        match self.stage {
            PodStage::Held { until, .. } => Some(until),
            PodStage::Waits | PodStage::Asked | PodStage::Leaving { .. } | PodStage::Over(_) => None,
        }
    }

    fn is_over(&self) -> bool {
        matches!(self.stage, PodStage::Over(_))
    }

    fn subject(&self) -> String {
        format!("pod/{}", self.key)
    }
}

impl Group {
    pub(super) fn new(node: Option<usize>, pods: Vec<usize>) -> Self {
        Self { node, pods, state: State::Waits, deadline: None, rounds: 0 }
    }

    pub(super) fn is_over(&self) -> bool {
        self.state == State::Over
    }

    pub(super) fn finish(&mut self) {
        self.state = State::Over;
        self.deadline = None;
    }

    pub(super) fn postpone(&mut self, span: Span) {
        self.deadline = self.deadline.map(|at| at + span);
    }

    pub(super) fn prove_again(&mut self, at: Timestamp) {
        if self.state != State::Over {
            self.state = State::ListsAgain { at };
        }
    }

    pub(super) fn wakes_at(&self) -> Option<Timestamp> {
        let again = match self.state {
            State::ListsAgain { at } => Some(at),
            State::Waits | State::Runs | State::Lists | State::Over => None,
        };
        again.into_iter().chain(self.deadline).min()
    }
}

impl Conduct {
    pub(super) fn advance_pods(&mut self, cluster: &Cluster, now: Timestamp) {
        self.start_groups(now);
        for place in 0..self.groups.len() {
            self.advance_group(cluster, place, now);
        }
        // What has just ended lets others begin.
        if self.start_groups(now) {
            self.advance_pods(cluster, now);
        }
    }

    /// Begins with as many groups as may be at work at a time; tells whether any began.
    fn start_groups(&mut self, now: Timestamp) -> bool {
        if self.paused.is_some() {
            return false;
        }
        let at_work = |group: &Group| !matches!(group.state, State::Waits | State::Over);
        let mut room = self
            .options
            .parallel
            .max(1)
            .saturating_sub(self.groups.iter().filter(|group| at_work(group)).count());
        let mut began = false;
        for place in 0..self.groups.len() {
            if room == 0 {
                break;
            }
            if self.groups[place].state == State::Waits {
                room -= 1;
                began = true;
                self.groups[place].state = State::Runs;
                self.groups[place].deadline = self.options.timeout.map(|span| now + span);
                self.show(place, NodeStage::Drains { since: now });
            }
        }
        began
    }

    fn advance_group(&mut self, cluster: &Cluster, place: usize, now: Timestamp) {
        let group = &self.groups[place];
        if matches!(group.state, State::Waits | State::Over) {
            return;
        }
        let members = group.pods.clone();
        for &pod in &members {
            self.observe(cluster, pod, now);
        }
        if self.paused.is_some() {
            return;
        }
        if self.groups[place].deadline.is_some_and(|at| at <= now) {
            return self.time_out(place, now);
        }
        match self.groups[place].state {
            State::Runs => {
                self.ask_pods(cluster, &members, now);
                if members.iter().all(|pod| self.pods[*pod].is_over()) {
                    self.on_group_empty(place, now);
                }
            }
            State::ListsAgain { at } if at <= now => self.list(place, now),
            State::ListsAgain { .. } | State::Lists | State::Waits | State::Over => {}
        }
    }

    /// Takes in what the watch has told of a pod.
    fn observe(&mut self, cluster: &Cluster, place: usize, now: Timestamp) {
        let task = &self.pods[place];
        if task.is_over() {
            return;
        }
        let stage = match cluster.pod(&task.key) {
            None if !cluster.pods().is_synced() => return,
            None => PodStage::Over(PodEnd::Gone),
            Some(pod) if pod.uid != task.uid => PodStage::Over(PodEnd::Replaced),
            Some(pod) => match (&pod.termination, &task.stage) {
                (None, _) => return,
                (Some(termination), stage) => {
                    let overdue = now.since(termination.deadline);
                    if self.options.skip_wait_for_delete.is_some_and(|limit| overdue > limit) {
                        PodStage::Over(PodEnd::Left(Skip::LongTerminating))
                    } else if matches!(stage, PodStage::Waits | PodStage::Held { .. }) {
                        // Somebody else has begun its deletion, or we did and never heard of it.
                        PodStage::Leaving { since: now }
                    } else {
                        return;
                    }
                }
            },
        };
        let ended = matches!(stage, PodStage::Over(_));
        self.pods[place].stage = stage;
        if ended {
            self.tell(place, Level::Info, now);
        }
    }

    /// Asks the pods to go whose turn it is, in their order.
    fn ask_pods(&mut self, cluster: &Cluster, members: &[usize], now: Timestamp) {
        let mut asked = self.asked();
        for &place in members {
            if asked >= AT_ONCE {
                return;
            }
            let due = match &self.pods[place].stage {
                PodStage::Waits => true,
                PodStage::Held { until, .. } if *until <= now => true,
                PodStage::Held { by: Hold::Budget(_) | Hold::StaleBudget(_), .. } => {
                    self.has_recovered(cluster, place)
                }
                PodStage::Held { .. } | PodStage::Asked | PodStage::Leaving { .. } | PodStage::Over(_) => {
                    false
                }
            };
            if due {
                asked += 1;
                self.ask(place, now);
            }
        }
    }

    /// Pods that are asked and have not answered.
    fn asked(&self) -> usize {
        self.pods.iter().filter(|pod| pod.stage == PodStage::Asked).count()
    }

    pub(super) fn asks_enough(&self) -> bool {
        self.asked() >= AT_ONCE
    }

    /// Whether the budget that refused a pod is seen to allow it by now. No more pods are woken by one version of it than
    /// it allows.
    fn has_recovered(&mut self, cluster: &Cluster, place: usize) -> bool {
        let task = &self.pods[place];
        let Some(budget) = budget_of(cluster, &task.key) else { return false };
        let (version, allowed) = (budget.version, budget.status.disruptions_allowed);
        let is_current = budget.status.observed_generation >= budget.generation;
        if version <= task.refused_at || !is_current {
            return false;
        }
        let woken = self.woken.entry(budget.key.clone()).or_default();
        if woken.0 != version {
            *woken = (version, 0);
        }
        let allows = woken.1 < allowed;
        woken.1 += i32::from(allows);
        allows
    }

    fn ask(&mut self, place: usize, now: Timestamp) {
        let task = &mut self.pods[place];
        task.stage = PodStage::Asked;
        task.tries += 1;
        let (pod, uid, grace) = (task.key.clone(), task.uid.clone(), self.options.grace);
        let step = match self.manner {
            Manner::Evict => Step::Evict { pod, uid, grace },
            Manner::Delete => Step::Delete { pod, uid, grace },
        };
        let group = &self.groups[self.pods[place].group];
        let why = match group.node {
            Some(node) => self.because(&format!("node {} is drained", self.nodes[node].node)),
            None => self.because(""),
        };
        self.send(Subject::Pod(place), Task::Write(step), why, None, now);
    }

    /// What came of asking a pod to go.
    pub(super) fn on_pod(&mut self, cluster: &Cluster, place: usize, outcome: Outcome, now: Timestamp) {
        let task = &mut self.pods[place];
        if task.stage != PodStage::Asked {
            // It was given up, or seen to go, before the answer came.
            return;
        }
        let tries = task.tries;
        let retry = match self.options.retry {
            Retry::Every(span) => span,
            Retry::Kubectl | Retry::OnRecovery => Span::from_secs(5),
        };
        // So that many that are refused at once do not all come back at once.
        let spread = Span::from_millis(37 * i64::try_from(place % 32).unwrap_or(0));
        let held = |by, wait: Span| PodStage::Held { by, until: now + wait };
        let stage = match outcome {
            Outcome::Recorded => PodStage::Over(PodEnd::Recorded),
            Outcome::Done => PodStage::Leaving { since: now },
            Outcome::Gone => PodStage::Over(PodEnd::Gone),
            Outcome::OtherObject => PodStage::Over(PodEnd::Replaced),
            Outcome::BudgetExhausted(text) => held(Hold::Budget(text), retry),
            Outcome::BudgetStale { retry_after, text } => {
                held(Hold::StaleBudget(text), retry_after.unwrap_or(STALE))
            }
            Outcome::Overloaded { retry_after } => {
                held(Hold::Overload, retry_after.unwrap_or_default().max(backoff(tries)) + spread)
            }
            Outcome::NamespaceTerminating => held(Hold::NamespaceTerminating, Span::from_secs(5)),
            Outcome::Forbidden(text) => PodStage::Over(PodEnd::Forbidden(text)),
            Outcome::Refused(text) => PodStage::Over(PodEnd::Failed(text)),
            Outcome::Failed(text) if task.failures + 1 >= FAILURES => PodStage::Over(PodEnd::Failed(text)),
            Outcome::Failed(text) => held(Hold::Trouble(text), backoff(task.failures) + spread),
            Outcome::Unreachable(text) => held(Hold::Trouble(text), backoff(tries) + spread),
            Outcome::Conflict => held(Hold::Trouble("it has changed meanwhile".into()), Span::from_secs(1)),
            Outcome::NoAnswer => held(Hold::Trouble("no answer".into()), Span::from_secs(1)),
            Outcome::Node(_) | Outcome::Pods(_) => {
                PodStage::Over(PodEnd::Failed("the answer makes no sense".into()))
            }
        };
        let is_stopped = self.cancelled || self.groups[task.group].is_over();
        let stage = match stage {
            // It will not be asked again.
            PodStage::Held { .. } if is_stopped => PodStage::Over(PodEnd::Cancelled),
            stage => stage,
        };
        let failed = matches!(stage, PodStage::Held { by: Hold::Trouble(_), .. });
        task.failures = if failed { task.failures + 1 } else { 0 };
        if matches!(stage, PodStage::Held { by: Hold::Budget(_) | Hold::StaleBudget(_), .. }) {
            task.refused_at = budget_of(cluster, &task.key).map_or(Version(0), |budget| budget.version);
        }
        let level = match &stage {
            PodStage::Over(end) if !end.is_well() => Level::Error,
            PodStage::Held { .. } => Level::Warning,
            PodStage::Waits | PodStage::Asked | PodStage::Leaving { .. } | PodStage::Over(_) => Level::Info,
        };
        task.stage = stage;
        self.tell(place, level, now);
    }

    fn tell(&mut self, place: usize, level: Level, now: Timestamp) {
        let task = &self.pods[place];
        let mut text = match &task.stage {
            PodStage::Held { by, until } => {
                format!("{by}; try {} failed, the next is in {}", task.tries, until.since(now))
            }
            stage => stage.to_string(),
        };
        if task.late && matches!(task.stage, PodStage::Leaving { .. }) {
            text.push_str(" (came after the plan was made)");
        }
        self.note(now, level, self.pods[place].subject(), text);
    }

    /// No pod of the group is left to be made to go.
    fn on_group_empty(&mut self, place: usize, now: Timestamp) {
        let group = &self.groups[place];
        let bad = group
            .pods
            .iter()
            .filter(|pod| matches!(&self.pods[**pod].stage, PodStage::Over(end) if !end.is_well()));
        let bad = bad.count();
        let recorded = group.pods.iter().any(|pod| self.pods[*pod].stage == PodStage::Over(PodEnd::Recorded));
        if bad > 0 && group.node.is_some() {
            return self.end_group(place, NodeStage::Stopped(Stop::PodsLeft { pods: bad }), now);
        }
        match group.node {
            None => self.groups[place].finish(),
            Some(node) if recorded || self.nodes[node].shown == NodeStage::Recorded => {
                self.end_group(place, NodeStage::Recorded, now);
            }
            Some(_) => self.list(place, now),
        }
    }

    /// Lists what is on the node by now: pods may have come since the plan was made.
    fn list(&mut self, place: usize, now: Timestamp) {
        let Some(node) = self.groups[place].node else { return };
        self.groups[place].state = State::Lists;
        self.show(place, NodeStage::Proves);
        let (task, why) = (
            Task::ListPods { node: self.nodes[node].node.clone() },
            self.because("to see that nothing is left"),
        );
        self.send(Subject::Proof(place), task, why, None, now);
    }

    /// What is on the node by now.
    pub(super) fn on_proof(&mut self, cluster: &Cluster, place: usize, outcome: Outcome, now: Timestamp) {
        if self.groups[place].state != State::Lists {
            return;
        }
        match outcome {
            Outcome::Pods(found) => self.on_found(cluster, place, &found, now),
            Outcome::Recorded => self.end_group(place, NodeStage::Recorded, now),
            Outcome::Forbidden(text) => {
                self.end_group(place, NodeStage::Stopped(Stop::Forbidden(text)), now);
            }
            Outcome::Refused(text) => self.end_group(place, NodeStage::Stopped(Stop::Failed(text)), now),
            other => {
                let text = format!("its pods could not be listed: {other}; tries again");
                self.note(now, Level::Warning, self.node_subject(place), text);
                self.groups[place].state = State::ListsAgain { at: now + Span::from_secs(2) };
            }
        }
    }

    fn on_found(&mut self, cluster: &Cluster, place: usize, found: &[(Key, Uid)], now: Timestamp) {
        let (mut came, mut unseen, mut stay) = (0, false, 0);
        for (key, uid) in found {
            let known = self.pods.iter().position(|task| task.key == *key && task.uid == *uid);
            match known.map(|known| &self.pods[known].stage) {
                Some(PodStage::Over(PodEnd::Left(_))) => stay += 1,
                // The watch is ahead of the list, or the list of the watch: the next list tells.
                Some(_) => unseen = true,
                None => match self.take_late(cluster, place, key, uid, now) {
                    Late::Taken => came += 1,
                    Late::Left => stay += 1,
                    Late::Unknown => unseen = true,
                },
            }
        }
        if came > 0 {
            let group = &mut self.groups[place];
            group.rounds += 1;
            if group.rounds > ROUNDS {
                return self.end_group(place, NodeStage::Stopped(Stop::KeepsFilling), now);
            }
            group.state = State::Runs;
            self.show(place, NodeStage::Drains { since: now });
        } else if unseen {
            self.groups[place].state = State::ListsAgain { at: now + LOOK_AGAIN };
        } else {
            self.end_group(place, NodeStage::Drained { stay }, now);
        }
    }

    /// Judges a pod that came to the node after the plan was made as the plan would have.
    fn take_late(&mut self, cluster: &Cluster, group: usize, key: &Key, uid: &Uid, now: Timestamp) -> Late {
        let Some(pod) = cluster.pod(key).filter(|pod| pod.uid == *uid) else { return Late::Unknown };
        let screening = filter::screen(cluster, pod, &self.options, &self.rules, now);
        let stage = match screening.skip {
            Some(skip) => PodStage::Over(PodEnd::Left(skip)),
            None if !screening.refusals.is_empty() => {
                let words: Vec<String> = screening.refusals.iter().map(ToString::to_string).collect();
                PodStage::Over(PodEnd::Refused(words.join(", ")))
            }
            None if self.follows_a_removed(key, uid) => PodStage::Over(PodEnd::Successor),
            None => PodStage::Waits,
        };
        let late = if matches!(stage, PodStage::Over(PodEnd::Left(_))) { Late::Left } else { Late::Taken };
        let place = self.pods.len();
        self.pods.push(PodTask { late: true, ..PodTask::new(key.clone(), uid.clone(), group, stage) });
        self.groups[group].pods.push(place);
        if late == Late::Taken {
            let text = format!("came to the node after the plan was made: {}", self.pods[place].stage);
            self.note(now, Level::Warning, self.pods[place].subject(), text);
        }
        late
    }

    fn time_out(&mut self, place: usize, now: Timestamp) {
        self.take_back();
        self.stop_pods(Some(place), &PodEnd::TimedOut);
        self.end_group(place, NodeStage::Stopped(Stop::TimedOut), now);
    }

    fn end_group(&mut self, place: usize, stage: NodeStage, now: Timestamp) {
        let level = if matches!(stage, NodeStage::Stopped(_)) { Level::Error } else { Level::Info };
        let text = stage.to_string();
        self.note(now, level, self.node_subject(place), text);
        self.show(place, stage);
        self.groups[place].finish();
    }

    /// Ends the pods of a group, or all, that are not over. Those that are on their way out go all the same.
    pub(super) fn stop_pods(&mut self, group: Option<usize>, end: &PodEnd) {
        for pod in &mut self.pods {
            if group.is_some_and(|group| group != pod.group) {
                continue;
            }
            match pod.stage {
                PodStage::Waits | PodStage::Held { .. } => pod.stage = PodStage::Over(end.clone()),
                // Whoever waits no longer says so; a cancelled plan only stops asking.
                PodStage::Leaving { .. } if *end == PodEnd::TimedOut => {
                    pod.stage = PodStage::Over(end.clone());
                }
                PodStage::Asked if *end == PodEnd::TimedOut => pod.stage = PodStage::Over(end.clone()),
                PodStage::Asked | PodStage::Leaving { .. } | PodStage::Over(_) => {}
            }
        }
    }

    fn show(&mut self, group: usize, stage: NodeStage) {
        if let Some(node) = self.groups[group].node {
            self.nodes[node].shown = stage;
        }
    }

    fn node_subject(&self, group: usize) -> String {
        self.groups[group].node.map_or_else(String::new, |node| format!("node/{}", self.nodes[node].node))
    }
}

/// What becomes of a pod that came late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Late {
    Taken,
    Left,
    /// The watch has not told of it yet.
    Unknown,
}

/// The budget that protects a pod, where there is one and no more.
fn budget_of<'a>(cluster: &'a Cluster, pod: &Key) -> Option<&'a Budget> {
    let pod = cluster.pod(pod)?;
    let mut budgets = cluster.budgets_of(pod);
    let budget = budgets.next()?;
    budgets.next().is_none().then_some(&**budget)
}
