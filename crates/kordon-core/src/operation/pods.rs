//! Evicts and deletes pods. A refused request is retried as long as budget, server and timeout allow. Each pod is
//! watched until it is deleted.

use super::{
    DrainCount, DrainPart, NodeIncomplete, NodeProgressStage, Operation, PodEnd, PodProgressStage,
    RequestKind, RequestOutcome, Severity, Subject, backoff, nodes::NodeIndex, report::BlockedBy,
    surges::SurgeIndex, tasks::TaskIndex,
};
use crate::{
    cluster::{Budget, Cluster, Key, NodeName, Scope, Uid, Version},
    plan::{PlanStep, RemovalMode, Retry, Skip, filter, simulation::RemovalGroup},
};
use kordon_time::{Span, Timestamp};

/// A pod to remove.
#[derive(Clone, Debug)]
pub(super) struct PodTask {
    pub(super) key: Key,
    pub(super) uid: Uid,
    pub(super) group: GroupIndex,
    pub(super) stage: PodProgressStage,
    /// State in which the drain counted the pod when the watch last reported the pod.
    seen: DrainPart,
    pub(super) tries: u32,
    /// Number of consecutive server errors for requests to remove the pod.
    failures: u32,
    /// Version of the budget when it last refused the pod. A later version that allows disruptions triggers a retry.
    refused_at: Version,
    /// Whether the pod was bound to the node after the plan was made.
    pub(super) late: bool,
    /// The Deployment that is scaled up before the pod is evicted (a surge); `None` if there is none.
    pub(super) surge: Option<SurgeIndex>,
}

/// Pods that are removed together: the pods of one node, or all pods that the action names.
#[derive(Clone, Debug)]
pub(super) struct PodGroup {
    /// The node of the group; `None` for pods that the action names.
    pub(super) node: Option<NodeIndex>,
    pods: Vec<PodIndex>,
    state: State,
    /// When the operation gives up the group's pods; `None` without a timeout.
    deadline: Option<Timestamp>,
    /// Number of lists of the node's pods that contained pods bound to the node after the plan was made.
    rounds: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Running,
    /// The group waits for a list of the node's pods, which shows whether any pod is left.
    Listing,
    /// The group waits until `at` to list the pods again.
    ListAgain {
        at: Timestamp,
    },
    Done,
}

pub(super) type PodIndex = TaskIndex<PodTask>;
pub(super) type GroupIndex = TaskIndex<PodGroup>;

/// Maximum number of evictions and deletions in flight. It is small, so that pods are removed roughly in order and a
/// cancellation takes effect soon.
const AT_ONCE: usize = 8;

/// Number of consecutive server errors after which the operation gives up a pod.
const FAILURES: u32 = 10;

/// Maximum number of times that a new list of a node's pods may add pods to the drain. If one more list adds some, the
/// operation gives up the node.
const ROUNDS: u32 = 5;

/// Delay before an eviction is retried if the pod's budget is stale and the server gives no delay.
const STALE: Span = Span::from_secs(10);

/// Maximum time for which a pod waits for the new pod of its scaled-up Deployment. The pod is then evicted, even if its
/// budget does not seem to allow it.
const SURGE: Span = Span::from_secs(30);

/// Delay before the next list, if a list and the watch differ on a pod.
const LOOK_AGAIN: Span = Span::from_secs(1);

impl PodTask {
    pub(super) fn new(key: Key, uid: Uid, group: GroupIndex, stage: PodProgressStage) -> Self {
        let seen = DrainPart::Waiting;
        let refused_at = Version(0);
        Self { key, uid, group, stage, seen, tries: 0, failures: 0, refused_at, late: false, surge: None }
    }

    /// How the drain counts the pod; `None` if the pod stays.
    pub(super) fn part(&self) -> Option<DrainPart> {
        Some(match (&self.stage, self.seen) {
            (PodProgressStage::Ended(PodEnd::Stays(_)), _) => return None,
            (PodProgressStage::Ended(PodEnd::Gone | PodEnd::Replaced), _) | (_, DrainPart::Gone) => {
                DrainPart::Gone
            }
            (PodProgressStage::Terminating { .. }, _) | (_, DrainPart::Terminating) => DrainPart::Terminating,
            (_, DrainPart::Finished) => DrainPart::Finished,
            (
                PodProgressStage::Blocked { .. }
                | PodProgressStage::Ended(
                    PodEnd::Refused(_) | PodEnd::Successor | PodEnd::Forbidden(_) | PodEnd::Failed(_),
                ),
                _,
            ) => DrainPart::Blocked,
            (
                PodProgressStage::Waiting
                | PodProgressStage::Requested
                | PodProgressStage::Ended(PodEnd::Recorded | PodEnd::TimedOut | PodEnd::Cancelled),
                _,
            ) => DrainPart::Waiting,
        })
    }

    pub(super) fn wakes_at(&self) -> Option<Timestamp> {
        match self.stage {
            PodProgressStage::Blocked { until, .. } => Some(until),
            PodProgressStage::Waiting
            | PodProgressStage::Requested
            | PodProgressStage::Terminating { .. }
            | PodProgressStage::Ended(_) => None,
        }
    }

    fn is_done(&self) -> bool {
        matches!(self.stage, PodProgressStage::Ended(_))
    }

    /// Whether the pod has been evicted, or the operation has given it up.
    pub(super) const fn is_past_eviction(&self) -> bool {
        matches!(self.stage, PodProgressStage::Terminating { .. } | PodProgressStage::Ended(_))
    }

    fn subject(&self) -> String {
        format!("pod/{}", self.key)
    }
}

impl PodGroup {
    pub(super) fn new(node: Option<NodeIndex>) -> Self {
        Self { node, pods: Vec::new(), state: State::Waiting, deadline: None, rounds: 0 }
    }

    pub(super) fn add(&mut self, pod: PodIndex) {
        self.pods.push(pod);
    }

    pub(super) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    pub(super) const fn is_running(&self) -> bool {
        !matches!(self.state, State::Waiting | State::Done)
    }

    pub(super) fn finish(&mut self) {
        self.state = State::Done;
        self.deadline = None;
    }

    pub(super) fn postpone(&mut self, span: Span) {
        self.deadline = self.deadline.map(|at| at + span);
    }

    pub(super) fn list_again(&mut self, at: Timestamp) {
        if self.state != State::Done {
            self.state = State::ListAgain { at };
        }
    }

    pub(super) fn wakes_at(&self) -> Option<Timestamp> {
        let again = match self.state {
            State::ListAgain { at } => Some(at),
            State::Waiting | State::Running | State::Listing | State::Done => None,
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
        // Start waiting groups of pods, because other groups may just have ended.
        if self.start_groups(now) {
            self.advance_pods(cluster, now);
        }
    }

    /// Starts waiting groups, up to the maximum number of parallel groups. Returns whether any group was started.
    fn start_groups(&mut self, now: Timestamp) -> bool {
        if self.paused.is_some() {
            return false;
        }
        let is_active = |group: &PodGroup| !matches!(group.state, State::Waiting | State::Done);
        let mut room = self
            .drain
            .parallel
            .max(1)
            .saturating_sub(self.groups.iter().filter(|group| is_active(group)).count());
        let mut started = false;
        for place in self.groups.indices() {
            if room == 0 {
                break;
            }
            if self.groups[place].state == State::Waiting {
                room -= 1;
                started = true;
                self.groups[place].state = State::Running;
                self.groups[place].deadline = self.drain.timeout.map(|span| now + span);
                self.set_node_stage(place, NodeProgressStage::Draining { since: now });
            }
        }
        started
    }

    fn advance_group(&mut self, cluster: &Cluster, place: GroupIndex, now: Timestamp) {
        let group = &self.groups[place];
        if matches!(group.state, State::Waiting | State::Done) {
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
            State::Running => {
                self.request_removals(cluster, &members, now);
                if members.iter().all(|pod| self.pods[*pod].is_done()) {
                    self.on_group_empty(place, now);
                }
            }
            State::ListAgain { at } if at <= now => self.list(place, now),
            State::ListAgain { .. } | State::Listing | State::Waiting | State::Done => {}
        }
    }

    /// Handles the latest state of all pods from the watch, including pods of groups that have not started.
    pub(super) fn observe_all(&mut self, cluster: &Cluster, now: Timestamp) {
        for pod in self.pods.indices() {
            self.observe(cluster, pod, now);
        }
    }

    /// Progress of the pods on a node.
    pub(super) fn count_on(&self, node: NodeIndex) -> DrainCount {
        let group = self.groups.position(|group| group.node == Some(node));
        self.pods.iter().filter(|task| Some(task.group) == group).filter_map(PodTask::part).collect()
    }

    /// Handles the latest state of a pod from the watch.
    fn observe(&mut self, cluster: &Cluster, place: PodIndex, now: Timestamp) {
        let task = &self.pods[place];
        let is_followed = match task.part() {
            None | Some(DrainPart::Gone) => false,
            Some(DrainPart::Terminating) => true,
            Some(DrainPart::Blocked | DrainPart::Waiting | DrainPart::Finished) => self.ended.is_none(),
        };
        if !is_followed {
            return;
        }
        let seen = match cluster.pod(&task.key) {
            None if !self.knows(cluster, place) => return,
            Some(pod) if pod.uid == task.uid => DrainPart::from_pod(pod),
            Some(_) | None => DrainPart::Gone,
        };
        let task = &mut self.pods[place];
        task.seen = seen;
        if task.is_done() {
            return;
        }
        let task = &self.pods[place];
        let stage = match cluster.pod(&task.key) {
            None => PodProgressStage::Ended(PodEnd::Gone),
            Some(pod) if pod.uid != task.uid => PodProgressStage::Ended(PodEnd::Replaced),
            Some(pod) => match (&pod.termination, &task.stage) {
                (None, _) => return,
                (Some(termination), stage) => {
                    let overdue = now.since(cluster.local(termination.deadline));
                    if self.drain.skip_wait_for_delete.is_some_and(|limit| overdue > limit) {
                        PodProgressStage::Ended(PodEnd::Stays(Skip::LongTerminating))
                    } else if matches!(stage, PodProgressStage::Waiting | PodProgressStage::Blocked { .. }) {
                        // Either somebody else deleted the pod, or this operation's request succeeded but its response
                        // was lost.
                        PodProgressStage::Terminating { since: now }
                    } else {
                        return;
                    }
                }
            },
        };
        let ended = matches!(stage, PodProgressStage::Ended(_));
        self.pods[place].stage = stage;
        if ended && self.ended.is_none() {
            self.report(place, Severity::Info, now);
        }
    }

    /// Whether the objects that include this pod are known: all pods of its node, or only this pod if the action names
    /// it. A pod that is missing from known objects is gone.
    fn knows(&self, cluster: &Cluster, place: PodIndex) -> bool {
        let task = &self.pods[place];
        let scope = match self.groups[task.group].node {
            Some(node) => Scope::PodsOn(self.nodes[node].node.clone()),
            None => Scope::Pod(task.key.clone()),
        };
        cluster.knows(&scope)
    }

    /// The pods that are still to be removed, by group.
    pub(super) fn groups_left(&self, cluster: &Cluster) -> Vec<RemovalGroup> {
        let left = |place: &PodIndex| {
            let task = Some(&self.pods[*place]).filter(|task| !task.is_done())?;
            cluster.pod(&task.key).filter(|pod| pod.uid == task.uid).cloned()
        };
        let group = |group: &PodGroup| RemovalGroup {
            node: group.node.map(|node| self.nodes[node].node.clone()),
            pods: group.pods.iter().filter_map(left).collect(),
        };
        self.groups.iter().filter(|group| !group.is_done()).map(group).collect()
    }

    /// The nodes whose pods the operation still has to watch.
    pub fn watched_nodes(&self) -> impl Iterator<Item = &NodeName> {
        let open = self.groups.iter().filter(|group| !group.is_done());
        open.filter_map(|group| Some(&self.nodes[group.node?].node))
    }

    /// Requests the removal of the pods that are due, in the order of `members`.
    fn request_removals(&mut self, cluster: &Cluster, members: &[PodIndex], now: Timestamp) {
        let mut requested = self.requested();
        for &place in members {
            if requested >= AT_ONCE {
                return;
            }
            let due = match &self.pods[place].stage {
                PodProgressStage::Waiting if self.holds_for_surge(self.pods[place].surge) => false,
                PodProgressStage::Waiting => true,
                PodProgressStage::Blocked { until, .. } if *until <= now => true,
                PodProgressStage::Blocked {
                    by: BlockedBy::Budget(_) | BlockedBy::StaleBudget(_) | BlockedBy::Surge(_),
                    ..
                } => self.has_recovered(cluster, place),
                PodProgressStage::Blocked { .. }
                | PodProgressStage::Requested
                | PodProgressStage::Terminating { .. }
                | PodProgressStage::Ended(_) => false,
            };
            if due {
                requested += 1;
                self.request_removal(place, now);
            }
        }
    }

    /// Number of pods that have a request in flight.
    fn requested(&self) -> usize {
        self.pods.iter().filter(|pod| pod.stage == PodProgressStage::Requested).count()
    }

    pub(super) fn has_enough_requests(&self) -> bool {
        self.requested() >= AT_ONCE
    }

    /// Whether the budget that refused a pod now allows a retry. Each version of a budget triggers no more retries than
    /// the number of disruptions that it allows.
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

    fn request_removal(&mut self, place: PodIndex, now: Timestamp) {
        let task = &mut self.pods[place];
        task.stage = PodProgressStage::Requested;
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
        if task.stage != PodProgressStage::Requested {
            // Before this response arrived, the operation gave up the pod or saw it terminating.
            return;
        }
        let tries = task.tries;
        let retry = match self.drain.retry {
            Retry::Every(span) => span,
            Retry::Kubectl | Retry::OnRecovery => Span::from_secs(5),
        };
        // Spread retries over time, because many requests may be refused at the same moment.
        let spread = Span::from_millis(37 * i64::try_from(place.number() % 32).unwrap_or(0));
        let blocked = |by, wait: Span| PodProgressStage::Blocked { by, until: now + wait };
        let stage = match outcome {
            RequestOutcome::Recorded => PodProgressStage::Ended(PodEnd::Recorded),
            RequestOutcome::Done => PodProgressStage::Terminating { since: now },
            RequestOutcome::Gone => PodProgressStage::Ended(PodEnd::Gone),
            RequestOutcome::OtherObject => PodProgressStage::Ended(PodEnd::Replaced),
            RequestOutcome::BudgetExhausted(text) => blocked(BlockedBy::Budget(text), retry),
            RequestOutcome::BudgetStale { retry_after, text } => {
                blocked(BlockedBy::StaleBudget(text), retry_after.unwrap_or(STALE))
            }
            RequestOutcome::Overloaded { retry_after } => {
                blocked(BlockedBy::Overload, retry_after.unwrap_or_default().max(backoff(tries)) + spread)
            }
            RequestOutcome::NamespaceTerminating => {
                blocked(BlockedBy::NamespaceTerminating, Span::from_secs(5))
            }
            RequestOutcome::Forbidden(text) => PodProgressStage::Ended(PodEnd::Forbidden(text)),
            RequestOutcome::Refused(text) => PodProgressStage::Ended(PodEnd::Failed(text)),
            RequestOutcome::Failed(text) if task.failures + 1 >= FAILURES => {
                PodProgressStage::Ended(PodEnd::Failed(text))
            }
            RequestOutcome::Failed(text) => {
                blocked(BlockedBy::Trouble(text), backoff(task.failures) + spread)
            }
            RequestOutcome::Unreachable(text) => blocked(BlockedBy::Trouble(text), backoff(tries) + spread),
            RequestOutcome::Conflict => {
                blocked(BlockedBy::Trouble("it has changed since it was read".into()), Span::from_secs(1))
            }
            RequestOutcome::NoResponse => {
                blocked(BlockedBy::Trouble("no response".into()), Span::from_secs(1))
            }
            RequestOutcome::Node(_) | RequestOutcome::Pods(_) | RequestOutcome::Scale(_) => {
                PodProgressStage::Ended(PodEnd::Failed("unexpected response".into()))
            }
        };
        let is_stopped = self.cancelled || self.groups[task.group].is_done();
        let stage = match stage {
            // Nothing is retried, because the pod's group or the operation was stopped.
            PodProgressStage::Blocked { .. } if is_stopped => PodProgressStage::Ended(PodEnd::Cancelled),
            stage => stage,
        };
        let failed = matches!(stage, PodProgressStage::Blocked { by: BlockedBy::Trouble(_), .. });
        task.failures = if failed { task.failures + 1 } else { 0 };
        if matches!(
            stage,
            PodProgressStage::Blocked { by: BlockedBy::Budget(_) | BlockedBy::StaleBudget(_), .. }
        ) {
            task.refused_at = budget_of(cluster, &task.key).map_or(Version(0), |budget| budget.version);
        }
        let level = match &stage {
            PodProgressStage::Ended(end) if !end.is_success() => Severity::Error,
            PodProgressStage::Blocked { .. } => Severity::Warning,
            PodProgressStage::Waiting
            | PodProgressStage::Requested
            | PodProgressStage::Terminating { .. }
            | PodProgressStage::Ended(_) => Severity::Info,
        };
        task.stage = stage;
        self.report(place, level, now);
    }

    /// Lets a pod wait until its budget has room for the eviction. There may be room already, if an interrupted run has
    /// started the surge and the surge's new pod is Ready.
    pub(super) fn wait_for_surge(&mut self, place: PodIndex, why: &str, now: Timestamp) {
        let task = &mut self.pods[place];
        if task.stage == PodProgressStage::Waiting {
            let by = BlockedBy::Surge(why.to_owned());
            task.stage = PodProgressStage::Blocked { by, until: now + SURGE };
        }
    }

    fn report(&mut self, place: PodIndex, level: Severity, now: Timestamp) {
        let task = &self.pods[place];
        let mut text = match &task.stage {
            PodProgressStage::Blocked { by, until } => {
                format!("{by}; try {} failed, next try in {}", task.tries, until.since(now))
            }
            stage => stage.to_string(),
        };
        if task.late && matches!(task.stage, PodProgressStage::Terminating { .. }) {
            text.push_str(" (bound after the plan was made)");
        }
        self.notify(now, level, self.pods[place].subject(), text);
    }

    /// Handles a group whose pods have all ended: lists the pods of its node again, or ends the group.
    fn on_group_empty(&mut self, place: GroupIndex, now: Timestamp) {
        let group = &self.groups[place];
        let bad = group.pods.iter().filter(
            |pod| matches!(&self.pods[**pod].stage, PodProgressStage::Ended(end) if !end.is_success()),
        );
        let bad = bad.count();
        let recorded =
            group.pods.iter().any(|pod| self.pods[*pod].stage == PodProgressStage::Ended(PodEnd::Recorded));
        if bad > 0 && group.node.is_some() {
            return self.end_group(
                place,
                NodeProgressStage::Incomplete(NodeIncomplete::PodsLeft { pods: bad }),
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

    /// Lists the pods of the node, because new pods may have been bound to it since the plan was made.
    fn list(&mut self, place: GroupIndex, now: Timestamp) {
        let Some(node) = self.groups[place].node else { return };
        self.groups[place].state = State::Listing;
        self.set_node_stage(place, NodeProgressStage::Verifying);
        let (task, why) = (
            RequestKind::ListPods { node: self.nodes[node].node.clone() },
            self.because("to verify that no pod is left"),
        );
        self.send(Subject::PodList(place), task, why, None, now);
    }

    /// Handles the list of the pods on the node.
    pub(super) fn on_pod_list(
        &mut self,
        cluster: &Cluster,
        place: GroupIndex,
        outcome: RequestOutcome,
        now: Timestamp,
    ) {
        if self.groups[place].state != State::Listing {
            return;
        }
        match outcome {
            RequestOutcome::Pods(found) => self.on_found(cluster, place, &found, now),
            RequestOutcome::Recorded => self.end_group(place, NodeProgressStage::Recorded, now),
            RequestOutcome::Forbidden(text) => {
                self.end_group(place, NodeProgressStage::Incomplete(NodeIncomplete::Forbidden(text)), now);
            }
            RequestOutcome::Refused(text) => {
                self.end_group(place, NodeProgressStage::Incomplete(NodeIncomplete::Failed(text)), now)
            }
            other => {
                let text = format!("its pods could not be listed: {other}; retrying");
                self.notify(now, Severity::Warning, self.node_subject(place), text);
                self.groups[place].state = State::ListAgain { at: now + Span::from_secs(2) };
            }
        }
    }

    fn on_found(&mut self, cluster: &Cluster, place: GroupIndex, found: &[(Key, Uid)], now: Timestamp) {
        let (mut added, mut unseen, mut stay) = (0, false, 0);
        for (key, uid) in found {
            let known = self.pods.position(|task| task.key == *key && task.uid == *uid);
            match known.map(|known| &self.pods[known].stage) {
                Some(PodProgressStage::Ended(PodEnd::Stays(_))) => stay += 1,
                // Either the list or the watch is outdated, because they differ on this pod. The next list decides.
                Some(_) => unseen = true,
                None => match self.add_late_pod(cluster, place, key, uid, now) {
                    Late::ToRemove => added += 1,
                    Late::Stays => stay += 1,
                    Late::Unknown => unseen = true,
                },
            }
        }
        if added > 0 {
            self.count_staying(cluster);
            if let Some(node) = self.groups[place].node {
                self.nodes[node].renew_now(now);
            }
            let group = &mut self.groups[place];
            group.rounds += 1;
            if group.rounds > ROUNDS {
                return self.end_group(
                    place,
                    NodeProgressStage::Incomplete(NodeIncomplete::KeepsFilling),
                    now,
                );
            }
            group.state = State::Running;
            self.set_node_stage(place, NodeProgressStage::Draining { since: now });
        } else if unseen {
            self.groups[place].state = State::ListAgain { at: now + LOOK_AGAIN };
        } else {
            self.end_group(place, NodeProgressStage::Drained { at: now, stay }, now);
        }
    }

    /// Adds a pod that was bound to the node after the plan was made. The filters of the plan decide whether the pod
    /// leaves.
    fn add_late_pod(
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
            Some(skip) => PodProgressStage::Ended(PodEnd::Stays(skip)),
            None if !screening.refusals.is_empty() => {
                let words: Vec<String> = screening.refusals.iter().map(ToString::to_string).collect();
                PodProgressStage::Ended(PodEnd::Refused(words.join(", ")))
            }
            None if self.follows_a_removed(key, uid) => PodProgressStage::Ended(PodEnd::Successor),
            None => PodProgressStage::Waiting,
        };
        let late = if matches!(stage, PodProgressStage::Ended(PodEnd::Stays(_))) {
            Late::Stays
        } else {
            Late::ToRemove
        };
        let place =
            self.pods.push(PodTask { late: true, ..PodTask::new(key.clone(), uid.clone(), group, stage) });
        self.groups[group].add(place);
        if late == Late::ToRemove {
            let text = format!("bound to the node after the plan was made: {}", self.pods[place].stage);
            self.notify(now, Severity::Warning, self.pods[place].subject(), text);
        }
        late
    }

    fn time_out(&mut self, place: GroupIndex, now: Timestamp) {
        self.withdraw_requests();
        self.stop_pods(Some(place), &PodEnd::TimedOut);
        self.end_group(place, NodeProgressStage::Incomplete(NodeIncomplete::TimedOut), now);
    }

    fn end_group(&mut self, place: GroupIndex, stage: NodeProgressStage, now: Timestamp) {
        let level =
            if matches!(stage, NodeProgressStage::Incomplete(_)) { Severity::Error } else { Severity::Info };
        let text = stage.to_string();
        self.notify(now, level, self.node_subject(place), text);
        self.set_node_stage(place, stage);
        self.groups[place].finish();
    }

    /// Ends the unfinished pods of a group; without a group, of all groups. Pods with a request in flight and
    /// terminating pods end only on a timeout.
    pub(super) fn stop_pods(&mut self, group: Option<GroupIndex>, end: &PodEnd) {
        for pod in self.pods.iter_mut() {
            if group.is_some_and(|group| group != pod.group) {
                continue;
            }
            match pod.stage {
                PodProgressStage::Waiting | PodProgressStage::Blocked { .. } => {
                    pod.stage = PodProgressStage::Ended(end.clone())
                }
                // A timeout also gives up terminating pods. A cancellation only stops new requests.
                PodProgressStage::Terminating { .. } if *end == PodEnd::TimedOut => {
                    pod.stage = PodProgressStage::Ended(end.clone());
                }
                PodProgressStage::Requested if *end == PodEnd::TimedOut => {
                    pod.stage = PodProgressStage::Ended(end.clone())
                }
                PodProgressStage::Requested
                | PodProgressStage::Terminating { .. }
                | PodProgressStage::Ended(_) => {}
            }
        }
    }

    fn set_node_stage(&mut self, group: GroupIndex, stage: NodeProgressStage) {
        if let Some(node) = self.groups[group].node {
            self.nodes[node].shown = stage;
        }
    }

    fn node_subject(&self, group: GroupIndex) -> String {
        self.groups[group].node.map_or_else(String::new, |node| format!("node/{}", self.nodes[node].node))
    }
}

/// What happens to a pod that was bound to the node after the plan was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Late {
    ToRemove,
    Stays,
    /// It is not known whether the pod leaves, because the watch has not reported the pod yet.
    Unknown,
}

/// The only budget of a pod; `None` if the pod has none or several.
fn budget_of<'a>(cluster: &'a Cluster, pod: &Key) -> Option<&'a Budget> {
    let pod = cluster.pod(pod)?;
    let mut budgets = cluster.budgets_of(pod);
    let budget = budgets.next()?;
    budgets.next().is_none().then_some(&**budget)
}
