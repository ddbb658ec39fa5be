//! Evicts and deletes pods: each request is retried as long as its budget, the server or the timeout allows, and the pod is
//! watched until it is deleted.

use super::{
    NodeIncomplete, NodeProgressStage, Operation, PodEnd, PodProgressStage, RequestKind, RequestOutcome,
    Severity, Subject, backoff, nodes::NodeIndex, report::BlockedBy, tasks::TaskIndex,
};
use crate::{
    cluster::{Budget, Cluster, Key, Uid, Version},
    plan::{PlanStep, RemovalMode, Retry, Skip, filter},
    time::{Span, Timestamp},
};

/// A pod to remove.
#[derive(Clone, Debug)]
pub(super) struct PodTask {
    pub(super) key: Key,
    pub(super) uid: Uid,
    pub(super) group: GroupIndex,
    pub(super) stage: PodProgressStage,
    pub(super) tries: u32,
    /// Consecutive errors of the server.
    failures: u32,
    /// The version of its budget at the last refusal: a later version that allows disruptions triggers a retry.
    refused_at: Version,
    /// Whether it came to the node after the plan was made.
    pub(super) late: bool,
}

/// Pods that are removed together: those of a node, or those that were named.
#[derive(Clone, Debug)]
pub(super) struct PodGroup {
    /// The index of its node; none where pods were named.
    pub(super) node: Option<NodeIndex>,
    pods: Vec<PodIndex>,
    state: State,
    /// When its timeout expires.
    deadline: Option<Timestamp>,
    /// How often late pods were found.
    rounds: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waits,
    Runs,
    /// A list is in flight that shows whether anything is left.
    Lists,
    /// The list is repeated at that time.
    ListsAgain {
        at: Timestamp,
    },
    Over,
}

pub(super) type PodIndex = TaskIndex<PodTask>;
pub(super) type GroupIndex = TaskIndex<PodGroup>;

/// Evictions in flight at most, so that their order matters and a cancel takes effect.
const AT_ONCE: usize = 8;

/// Consecutive errors of the server after which a pod is given up.
const FAILURES: u32 = 10;

/// How often a node may have late pods before it is given up.
const ROUNDS: u32 = 5;

/// The wait for a stale budget where the server names none.
const STALE: Span = Span::from_secs(10);

/// The wait before a list is repeated that showed a pod which the watch has not reported.
const LOOK_AGAIN: Span = Span::from_secs(1);

impl PodTask {
    pub(super) fn new(key: Key, uid: Uid, group: GroupIndex, stage: PodProgressStage) -> Self {
        Self { key, uid, group, stage, tries: 0, failures: 0, refused_at: Version(0), late: false }
    }

    pub(super) fn wakes_at(&self) -> Option<Timestamp> {
        match self.stage {
            PodProgressStage::Held { until, .. } => Some(until),
            PodProgressStage::Waits
            | PodProgressStage::Asked
            | PodProgressStage::Leaving { .. }
            | PodProgressStage::Over(_) => None,
        }
    }

    fn is_over(&self) -> bool {
        matches!(self.stage, PodProgressStage::Over(_))
    }

    fn subject(&self) -> String {
        format!("pod/{}", self.key)
    }
}

impl PodGroup {
    pub(super) fn new(node: Option<NodeIndex>) -> Self {
        Self { node, pods: Vec::new(), state: State::Waits, deadline: None, rounds: 0 }
    }

    pub(super) fn add(&mut self, pod: PodIndex) {
        self.pods.push(pod);
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

impl Operation {
    pub(super) fn advance_pods(&mut self, cluster: &Cluster, now: Timestamp) {
        self.start_groups(now);
        for place in self.groups.indices() {
            self.advance_group(cluster, place, now);
        }
        // What has just ended lets others begin.
        if self.start_groups(now) {
            self.advance_pods(cluster, now);
        }
    }

    /// Starts as many groups as may run at a time. Returns whether any started.
    fn start_groups(&mut self, now: Timestamp) -> bool {
        if self.paused.is_some() {
            return false;
        }
        let at_work = |group: &PodGroup| !matches!(group.state, State::Waits | State::Over);
        let mut room = self
            .drain
            .parallel
            .max(1)
            .saturating_sub(self.groups.iter().filter(|group| at_work(group)).count());
        let mut began = false;
        for place in self.groups.indices() {
            if room == 0 {
                break;
            }
            if self.groups[place].state == State::Waits {
                room -= 1;
                began = true;
                self.groups[place].state = State::Runs;
                self.groups[place].deadline = self.drain.timeout.map(|span| now + span);
                self.show(place, NodeProgressStage::Drains { since: now });
            }
        }
        began
    }

    fn advance_group(&mut self, cluster: &Cluster, place: GroupIndex, now: Timestamp) {
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

    /// Handles what the watch reported of a pod.
    fn observe(&mut self, cluster: &Cluster, place: PodIndex, now: Timestamp) {
        let task = &self.pods[place];
        if task.is_over() {
            return;
        }
        let stage = match cluster.pod(&task.key) {
            None if !cluster.pods().is_synced() => return,
            None => PodProgressStage::Over(PodEnd::Gone),
            Some(pod) if pod.uid != task.uid => PodProgressStage::Over(PodEnd::Replaced),
            Some(pod) => match (&pod.termination, &task.stage) {
                (None, _) => return,
                (Some(termination), stage) => {
                    let overdue = now.since(cluster.local(termination.deadline));
                    if self.drain.skip_wait_for_delete.is_some_and(|limit| overdue > limit) {
                        PodProgressStage::Over(PodEnd::Left(Skip::LongTerminating))
                    } else if matches!(stage, PodProgressStage::Waits | PodProgressStage::Held { .. }) {
                        // Somebody else has begun its deletion, or we did and never heard of it.
                        PodProgressStage::Leaving { since: now }
                    } else {
                        return;
                    }
                }
            },
        };
        let ended = matches!(stage, PodProgressStage::Over(_));
        self.pods[place].stage = stage;
        if ended {
            self.tell(place, Severity::Info, now);
        }
    }

    /// Requests the removal of the pods that are due, in their order.
    fn ask_pods(&mut self, cluster: &Cluster, members: &[PodIndex], now: Timestamp) {
        let mut asked = self.asked();
        for &place in members {
            if asked >= AT_ONCE {
                return;
            }
            let due = match &self.pods[place].stage {
                PodProgressStage::Waits => true,
                PodProgressStage::Held { until, .. } if *until <= now => true,
                PodProgressStage::Held { by: BlockedBy::Budget(_) | BlockedBy::StaleBudget(_), .. } => {
                    self.has_recovered(cluster, place)
                }
                PodProgressStage::Held { .. }
                | PodProgressStage::Asked
                | PodProgressStage::Leaving { .. }
                | PodProgressStage::Over(_) => false,
            };
            if due {
                asked += 1;
                self.ask(place, now);
            }
        }
    }

    /// Pods whose request is in flight.
    fn asked(&self) -> usize {
        self.pods.iter().filter(|pod| pod.stage == PodProgressStage::Asked).count()
    }

    pub(super) fn asks_enough(&self) -> bool {
        self.asked() >= AT_ONCE
    }

    /// Whether the budget that refused a pod allows it now. One version of a budget triggers no more retries than it
    /// allows.
    fn has_recovered(&mut self, cluster: &Cluster, place: PodIndex) -> bool {
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

    fn ask(&mut self, place: PodIndex, now: Timestamp) {
        let task = &mut self.pods[place];
        task.stage = PodProgressStage::Asked;
        task.tries += 1;
        let (pod, uid, grace) = (task.key.clone(), task.uid.clone(), self.drain.grace);
        let step = match self.mode {
            RemovalMode::Evict => PlanStep::Evict { pod, uid, grace },
            RemovalMode::Delete => PlanStep::Delete { pod, uid, grace },
        };
        let group = &self.groups[self.pods[place].group];
        let why = match group.node {
            Some(node) => self.because(&format!("node {} is drained", self.nodes[node].node)),
            None => self.because(""),
        };
        self.send(Subject::Pod(place), RequestKind::Write(step), why, None, now);
    }

    /// Handles the outcome of a request to remove a pod.
    pub(super) fn on_pod(
        &mut self,
        cluster: &Cluster,
        place: PodIndex,
        outcome: RequestOutcome,
        now: Timestamp,
    ) {
        let task = &mut self.pods[place];
        if task.stage != PodProgressStage::Asked {
            // It was given up, or seen to go, before the answer came.
            return;
        }
        let tries = task.tries;
        let retry = match self.drain.retry {
            Retry::Every(span) => span,
            Retry::Kubectl | Retry::OnRecovery => Span::from_secs(5),
        };
        // So that many that are refused at once do not all come back at once.
        let spread = Span::from_millis(37 * i64::try_from(place.number() % 32).unwrap_or(0));
        let held = |by, wait: Span| PodProgressStage::Held { by, until: now + wait };
        let stage = match outcome {
            RequestOutcome::Recorded => PodProgressStage::Over(PodEnd::Recorded),
            RequestOutcome::Done => PodProgressStage::Leaving { since: now },
            RequestOutcome::Gone => PodProgressStage::Over(PodEnd::Gone),
            RequestOutcome::OtherObject => PodProgressStage::Over(PodEnd::Replaced),
            RequestOutcome::BudgetExhausted(text) => held(BlockedBy::Budget(text), retry),
            RequestOutcome::BudgetStale { retry_after, text } => {
                held(BlockedBy::StaleBudget(text), retry_after.unwrap_or(STALE))
            }
            RequestOutcome::Overloaded { retry_after } => {
                held(BlockedBy::Overload, retry_after.unwrap_or_default().max(backoff(tries)) + spread)
            }
            RequestOutcome::NamespaceTerminating => held(BlockedBy::NamespaceTerminating, Span::from_secs(5)),
            RequestOutcome::Forbidden(text) => PodProgressStage::Over(PodEnd::Forbidden(text)),
            RequestOutcome::Refused(text) => PodProgressStage::Over(PodEnd::Failed(text)),
            RequestOutcome::Failed(text) if task.failures + 1 >= FAILURES => {
                PodProgressStage::Over(PodEnd::Failed(text))
            }
            RequestOutcome::Failed(text) => held(BlockedBy::Trouble(text), backoff(task.failures) + spread),
            RequestOutcome::Unreachable(text) => held(BlockedBy::Trouble(text), backoff(tries) + spread),
            RequestOutcome::Conflict => {
                held(BlockedBy::Trouble("it has changed meanwhile".into()), Span::from_secs(1))
            }
            RequestOutcome::NoAnswer => held(BlockedBy::Trouble("no answer".into()), Span::from_secs(1)),
            RequestOutcome::Node(_) | RequestOutcome::Pods(_) => {
                PodProgressStage::Over(PodEnd::Failed("the answer makes no sense".into()))
            }
        };
        let is_stopped = self.cancelled || self.groups[task.group].is_over();
        let stage = match stage {
            // It will not be asked again.
            PodProgressStage::Held { .. } if is_stopped => PodProgressStage::Over(PodEnd::Cancelled),
            stage => stage,
        };
        let failed = matches!(stage, PodProgressStage::Held { by: BlockedBy::Trouble(_), .. });
        task.failures = if failed { task.failures + 1 } else { 0 };
        if matches!(
            stage,
            PodProgressStage::Held { by: BlockedBy::Budget(_) | BlockedBy::StaleBudget(_), .. }
        ) {
            task.refused_at = budget_of(cluster, &task.key).map_or(Version(0), |budget| budget.version);
        }
        let level = match &stage {
            PodProgressStage::Over(end) if !end.is_well() => Severity::Error,
            PodProgressStage::Held { .. } => Severity::Warning,
            PodProgressStage::Waits
            | PodProgressStage::Asked
            | PodProgressStage::Leaving { .. }
            | PodProgressStage::Over(_) => Severity::Info,
        };
        task.stage = stage;
        self.tell(place, level, now);
    }

    fn tell(&mut self, place: PodIndex, level: Severity, now: Timestamp) {
        let task = &self.pods[place];
        let mut text = match &task.stage {
            PodProgressStage::Held { by, until } => {
                format!("{by}; try {} failed, the next is in {}", task.tries, until.since(now))
            }
            stage => stage.to_string(),
        };
        if task.late && matches!(task.stage, PodProgressStage::Leaving { .. }) {
            text.push_str(" (came after the plan was made)");
        }
        self.note(now, level, self.pods[place].subject(), text);
    }

    /// No pod of the group is left to remove.
    fn on_group_empty(&mut self, place: GroupIndex, now: Timestamp) {
        let group = &self.groups[place];
        let bad = group
            .pods
            .iter()
            .filter(|pod| matches!(&self.pods[**pod].stage, PodProgressStage::Over(end) if !end.is_well()));
        let bad = bad.count();
        let recorded =
            group.pods.iter().any(|pod| self.pods[*pod].stage == PodProgressStage::Over(PodEnd::Recorded));
        if bad > 0 && group.node.is_some() {
            return self.end_group(
                place,
                NodeProgressStage::Stopped(NodeIncomplete::PodsLeft { pods: bad }),
                now,
            );
        }
        match group.node {
            None => self.groups[place].finish(),
            Some(node) if recorded || self.nodes[node].shown == NodeProgressStage::Recorded => {
                self.end_group(place, NodeProgressStage::Recorded, now);
            }
            Some(_) => self.list(place, now),
        }
    }

    /// Lists the pods of the node: new ones may have been bound since the plan was made.
    fn list(&mut self, place: GroupIndex, now: Timestamp) {
        let Some(node) = self.groups[place].node else { return };
        self.groups[place].state = State::Lists;
        self.show(place, NodeProgressStage::Verifying);
        let (task, why) = (
            RequestKind::ListPods { node: self.nodes[node].node.clone() },
            self.because("to see that nothing is left"),
        );
        self.send(Subject::Proof(place), task, why, None, now);
    }

    /// Handles the list of the pods on the node.
    pub(super) fn on_proof(
        &mut self,
        cluster: &Cluster,
        place: GroupIndex,
        outcome: RequestOutcome,
        now: Timestamp,
    ) {
        if self.groups[place].state != State::Lists {
            return;
        }
        match outcome {
            RequestOutcome::Pods(found) => self.on_found(cluster, place, &found, now),
            RequestOutcome::Recorded => self.end_group(place, NodeProgressStage::Recorded, now),
            RequestOutcome::Forbidden(text) => {
                self.end_group(place, NodeProgressStage::Stopped(NodeIncomplete::Forbidden(text)), now);
            }
            RequestOutcome::Refused(text) => {
                self.end_group(place, NodeProgressStage::Stopped(NodeIncomplete::Failed(text)), now)
            }
            other => {
                let text = format!("its pods could not be listed: {other}; tries again");
                self.note(now, Severity::Warning, self.node_subject(place), text);
                self.groups[place].state = State::ListsAgain { at: now + Span::from_secs(2) };
            }
        }
    }

    fn on_found(&mut self, cluster: &Cluster, place: GroupIndex, found: &[(Key, Uid)], now: Timestamp) {
        let (mut came, mut unseen, mut stay) = (0, false, 0);
        for (key, uid) in found {
            let known = self.pods.position(|task| task.key == *key && task.uid == *uid);
            match known.map(|known| &self.pods[known].stage) {
                Some(PodProgressStage::Over(PodEnd::Left(_))) => stay += 1,
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
                return self.end_group(place, NodeProgressStage::Stopped(NodeIncomplete::KeepsFilling), now);
            }
            group.state = State::Runs;
            self.show(place, NodeProgressStage::Drains { since: now });
        } else if unseen {
            self.groups[place].state = State::ListsAgain { at: now + LOOK_AGAIN };
        } else {
            self.end_group(place, NodeProgressStage::Drained { stay }, now);
        }
    }

    /// Decides on a pod that was bound after the plan was made, as the plan would have.
    fn take_late(
        &mut self,
        cluster: &Cluster,
        group: GroupIndex,
        key: &Key,
        uid: &Uid,
        now: Timestamp,
    ) -> Late {
        let Some(pod) = cluster.pod(key).filter(|pod| pod.uid == *uid) else { return Late::Unknown };
        let screening = filter::screen(cluster, pod, &self.drain, &self.rules, now);
        let stage = match screening.skip {
            Some(skip) => PodProgressStage::Over(PodEnd::Left(skip)),
            None if !screening.refusals.is_empty() => {
                let words: Vec<String> = screening.refusals.iter().map(ToString::to_string).collect();
                PodProgressStage::Over(PodEnd::Refused(words.join(", ")))
            }
            None if self.follows_a_removed(key, uid) => PodProgressStage::Over(PodEnd::Successor),
            None => PodProgressStage::Waits,
        };
        let late =
            if matches!(stage, PodProgressStage::Over(PodEnd::Left(_))) { Late::Left } else { Late::Taken };
        let place =
            self.pods.push(PodTask { late: true, ..PodTask::new(key.clone(), uid.clone(), group, stage) });
        self.groups[group].add(place);
        if late == Late::Taken {
            let text = format!("came to the node after the plan was made: {}", self.pods[place].stage);
            self.note(now, Severity::Warning, self.pods[place].subject(), text);
        }
        late
    }

    fn time_out(&mut self, place: GroupIndex, now: Timestamp) {
        self.take_back();
        self.stop_pods(Some(place), &PodEnd::TimedOut);
        self.end_group(place, NodeProgressStage::Stopped(NodeIncomplete::TimedOut), now);
    }

    fn end_group(&mut self, place: GroupIndex, stage: NodeProgressStage, now: Timestamp) {
        let level =
            if matches!(stage, NodeProgressStage::Stopped(_)) { Severity::Error } else { Severity::Info };
        let text = stage.to_string();
        self.note(now, level, self.node_subject(place), text);
        self.show(place, stage);
        self.groups[place].finish();
    }

    /// Ends the pods of a group, or all pods, that are not finished. Terminating pods terminate anyway.
    pub(super) fn stop_pods(&mut self, group: Option<GroupIndex>, end: &PodEnd) {
        for pod in self.pods.iter_mut() {
            if group.is_some_and(|group| group != pod.group) {
                continue;
            }
            match pod.stage {
                PodProgressStage::Waits | PodProgressStage::Held { .. } => {
                    pod.stage = PodProgressStage::Over(end.clone())
                }
                // Whoever waits no longer says so; a cancelled plan only stops asking.
                PodProgressStage::Leaving { .. } if *end == PodEnd::TimedOut => {
                    pod.stage = PodProgressStage::Over(end.clone());
                }
                PodProgressStage::Asked if *end == PodEnd::TimedOut => {
                    pod.stage = PodProgressStage::Over(end.clone())
                }
                PodProgressStage::Asked | PodProgressStage::Leaving { .. } | PodProgressStage::Over(_) => {}
            }
        }
    }

    fn show(&mut self, group: GroupIndex, stage: NodeProgressStage) {
        if let Some(node) = self.groups[group].node {
            self.nodes[node].shown = stage;
        }
    }

    fn node_subject(&self, group: GroupIndex) -> String {
        self.groups[group].node.map_or_else(String::new, |node| format!("node/{}", self.nodes[node].node))
    }
}

/// What to do with a late pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Late {
    Taken,
    Left,
    /// The watch has not reported it yet.
    Unknown,
}

/// The budget that protects a pod, where there is one and no more.
fn budget_of<'a>(cluster: &'a Cluster, pod: &Key) -> Option<&'a Budget> {
    let pod = cluster.pod(pod)?;
    let mut budgets = cluster.budgets_of(pod);
    let budget = budgets.next()?;
    budgets.next().is_none().then_some(&**budget)
}
