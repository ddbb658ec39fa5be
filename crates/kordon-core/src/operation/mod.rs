//! Applies a plan: decides from the outcomes so far which reads and writes are next.
//!
//! A state machine without clock and IO, like the engine. [`Operation::start`] takes a plan, `handle_*` take inputs,
//! and `poll_*` return outputs. After each `handle_*`, drain [`Operation::poll_request`] and
//! [`Operation::poll_notice`], then arm a timer for [`Operation::poll_timeout`]. The caller decides whether requests
//! are sent or only recorded.
//!
//! Order of work: the operation first reads, cordons and claims all nodes. Then it evicts or deletes pods, on a limited
//! number of nodes at a time. A node is drained when a new list of its pods has none that should leave. At the end the
//! operation removes its claims. Pods are identified by uid, so a later pod with the same name is left alone.

pub mod agreed;
pub mod approval;
pub mod confirmation;
pub mod drain_count;
pub mod guard;
mod landings;
mod maintain;
mod maintenance_write;
mod nodes;
mod pods;
mod rehearsal;
pub mod report;
pub mod request;
mod risk;
mod surges;
mod tasks;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub use agreed::{Agreed, Drift};
pub use confirmation::{Confirmation, Overrides};
pub use drain_count::{DrainCount, DrainPart};
pub use guard::{Breach, Guards};
pub use landings::{LandedReplacement, landings};
pub use maintenance_write::MaintenanceWrite;
pub use report::{
    NodeIncomplete, NodeProgress, NodeProgressStage, OperationEnd, OperationProgress, PodEnd, PodProgress,
    PodProgressStage, SurgeProgress, SurgeProgressStage,
};
pub use request::{DeploymentScale, NodePatch, Request, RequestId, RequestKind, RequestOutcome};
pub use risk::Risk;

use crate::{
    cluster::{Cluster, Key, NodeName, OperationId, Uid, Version},
    engine::Severity,
    plan::{
        Action, DrainOptions, EvictionRules, NodeChange, Plan, RemovalMode, TimeLeft, Undo, Verdict,
        time_left,
        undo::{ScaleUndo, WriteUndo},
    },
};
use kordon_time::{Span, Timestamp};
use nodes::{NodeGoal, NodeIndex, NodeTask};
use pods::{GroupIndex, PodGroup, PodIndex, PodTask};
use surges::{SurgeIndex, SurgeTask};
use tasks::Tasks;

/// A plan that is being applied.
#[derive(Clone, Debug)]
pub struct Operation {
    options: OperationOptions,
    rules: EvictionRules,
    /// Options for the removal of pods. They also decide about pods that are bound to a node after the plan was made.
    drain: DrainOptions,
    mode: RemovalMode,
    started_at: Timestamp,
    deadline: Option<Timestamp>,
    phase: Phase,
    paused: Option<Timestamp>,
    cancelled: bool,
    out_of_time: bool,
    nodes: Tasks<NodeTask>,
    groups: Tasks<PodGroup>,
    pods: Tasks<PodTask>,
    surges: Tasks<SurgeTask>,
    /// For each budget, the last version that triggered retries of evictions, and how many retries it triggered.
    woken: BTreeMap<Key, (Version, i32)>,
    /// Requests without an outcome yet.
    in_flight: BTreeMap<RequestId, Subject>,
    requests: u64,
    outbox: VecDeque<Request>,
    notices: VecDeque<OperationNotice>,
    ended: Option<(Timestamp, OperationEnd)>,
}

/// The user that applies the plan, and options of the operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperationOptions {
    /// Id of the operation, used in annotations of nodes and in the journal.
    pub id: OperationId,
    /// Name of the user, for display to other users.
    pub by: String,
    /// The reason that the operator gave; empty if none was given.
    pub reason: String,
    /// Time until which the operation's cordons are meant to stand.
    pub until: Option<Timestamp>,
    /// Whether to take over nodes that somebody else is draining.
    pub take_over: bool,
    /// Time limit of the whole operation.
    pub total_timeout: Option<Span>,
    /// The operation that is undone; `None` unless this is an undo.
    pub undoes: Option<OperationId>,
    pub prior: PriorRun,
}

/// Progress of an interrupted operation, used to resume it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PriorRun {
    /// Nodes that were cordoned before the operation, and nodes that the operation is known to have cordoned.
    pub cordoned: BTreeSet<NodeName>,
    /// The pods that the operation had to remove. A pod with the same name but another uid is a replacement.
    pub pods: BTreeMap<Key, PriorPod>,
    /// Deployments that the operation may have left scaled up.
    pub surges: Vec<ScaleUndo>,
}

/// A pod that an interrupted operation had to remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriorPod {
    pub uid: Uid,
    /// Node of the pod; `None` if the action named the pod, or if the journal is of an older version.
    pub node: Option<NodeName>,
}

/// A message for the operator.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationNotice {
    pub at: Timestamp,
    pub level: Severity,
    /// The object that the message is about, in kubectl's notation; empty if there is none.
    pub subject: String,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Nodes,
    Pods,
    /// The operation removes its claims from nodes. At `until`, it stops waiting for outstanding requests.
    Closing {
        until: Timestamp,
    },
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Node(NodeIndex),
    Renewal(NodeIndex),
    Release(NodeIndex),
    Pod(PodIndex),
    PodList(GroupIndex),
    Surge(SurgeIndex),
}

/// Maximum time to wait for outstanding requests at the end of an operation.
const CLOSING: Span = Span::from_secs(10);

/// Input from the operator while an operation is in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperatorInput {
    Pause,
    Resume,
    Cancel,
}

impl Operation {
    /// Starts to apply a plan. `cluster` is the state that the plan was made from.
    pub fn start(plan: &Plan, options: OperationOptions, cluster: &Cluster, now: Timestamp) -> Self {
        let (drain, mode) = removal(&plan.action);
        let mut operation = Self::blank(options, EvictionRules::for_version(plan.version), drain, mode, now);
        for node in &plan.nodes {
            let wanted = match (&plan.action, &node.change) {
                (Action::Drain { .. }, _) => NodeGoal::Claim,
                (_, NodeChange::Refused { text }) => NodeGoal::Nothing { refused: text.clone() },
                (Action::DeleteNode { .. }, _) => NodeGoal::Delete,
                (Action::Uncordon { .. }, _) => NodeGoal::Cordon { on: false },
                (Action::Taint { edits, .. }, NodeChange::Taints { after, .. }) => {
                    NodeGoal::Taints { edits: edits.clone(), planned: Some(after.clone()) }
                }
                (Action::Taint { edits, .. }, _) => NodeGoal::Taints { edits: edits.clone(), planned: None },
                (Action::Metadata { edits, .. }, _) => NodeGoal::Metadata { edits: edits.clone() },
                (Action::Cordon { .. } | Action::Evict { .. } | Action::Delete { .. }, _) => {
                    NodeGoal::Cordon { on: true }
                }
            };
            operation.nodes.push(NodeTask::new(node.node.clone(), node.uid.clone(), wanted, now));
        }
        operation.add_pods(plan);
        operation.add_surges(plan);
        operation.observe_all(cluster, now);
        operation.count_staying(cluster);
        operation.advance(cluster, now);
        operation
    }

    /// Starts to undo the changes that an operation made to nodes, and to scale back what it left scaled up.
    pub fn undo(
        undo: &Undo,
        options: OperationOptions,
        rules: EvictionRules,
        cluster: &Cluster,
        now: Timestamp,
    ) -> Self {
        let goals =
            undo.nodes.iter().map(|node| (node.node.clone(), node.uid.clone(), NodeGoal::Undo(node.clone())));
        let mut operation = Self::of_nodes(goals, options, rules, now);
        operation.add_scaled(&undo.scales);
        operation.advance(cluster, now);
        operation
    }

    /// Starts to write to each node the stage of a maintenance that the node has reached. The id in the options is the
    /// id of the maintenance.
    pub fn maintain(
        writes: Vec<(NodeName, Uid, MaintenanceWrite)>,
        options: OperationOptions,
        rules: EvictionRules,
        cluster: &Cluster,
        now: Timestamp,
    ) -> Self {
        let goals = writes.into_iter().map(|(node, uid, write)| (node, uid, NodeGoal::Maintain(write)));
        let mut operation = Self::of_nodes(goals, options, rules, now);
        operation.advance(cluster, now);
        operation
    }

    /// Creates an operation that changes nodes and removes no pods.
    fn of_nodes(
        goals: impl Iterator<Item = (NodeName, Uid, NodeGoal)>,
        options: OperationOptions,
        rules: EvictionRules,
        now: Timestamp,
    ) -> Self {
        let mut operation = Self::blank(options, rules, DrainOptions::default(), RemovalMode::Evict, now);
        for (node, uid, wanted) in goals {
            operation.nodes.push(NodeTask::new(node, uid, wanted, now));
        }
        operation
    }

    fn blank(
        options: OperationOptions,
        rules: EvictionRules,
        drain: DrainOptions,
        mode: RemovalMode,
        now: Timestamp,
    ) -> Self {
        Self {
            deadline: options.total_timeout.map(|span| now + span),
            options,
            rules,
            drain,
            mode,
            started_at: now,
            phase: Phase::Nodes,
            paused: None,
            cancelled: false,
            out_of_time: false,
            nodes: Tasks::new(),
            groups: Tasks::new(),
            pods: Tasks::new(),
            surges: Tasks::new(),
            woken: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            requests: 0,
            outbox: VecDeque::new(),
            notices: VecDeque::new(),
            ended: None,
        }
    }

    /// Adds the pods of the plan to the pods of the operation, in the plan's order.
    fn add_pods(&mut self, plan: &Plan) {
        let places = match &plan.action {
            Action::Drain { .. } => self.nodes.indices().map(Some).collect(),
            Action::Evict { .. } | Action::Delete { .. } => vec![None],
            Action::Cordon { .. }
            | Action::Uncordon { .. }
            | Action::Taint { .. }
            | Action::Metadata { .. }
            | Action::DeleteNode { .. } => Vec::new(),
        };
        for node in places {
            let group = self.groups.push(PodGroup::new(node));
            let name = node.map(|node: NodeIndex| self.nodes[node].node.clone());
            for pod in plan.pods.iter().filter(|pod| name.is_none() || pod.node == name) {
                let stage = match &pod.verdict {
                    Verdict::Skipped(skip) => PodProgressStage::Ended(PodEnd::Stays(*skip)),
                    Verdict::Refused { refusals, .. } => {
                        let words: Vec<String> = refusals.iter().map(ToString::to_string).collect();
                        PodProgressStage::Ended(PodEnd::Refused(words.join(", ")))
                    }
                    _ if self.follows_a_removed(&pod.pod, &pod.uid) => {
                        PodProgressStage::Ended(PodEnd::Successor)
                    }
                    _ => PodProgressStage::Waiting,
                };
                let task = PodTask::new(pod.pod.clone(), pod.uid.clone(), group, stage);
                self.groups[group].add(self.pods.push(task));
            }
            self.add_removed_before(group, name.as_ref());
        }
    }

    /// Adds the pods of a node that were removed before the operation was interrupted and resumed.
    fn add_removed_before(&mut self, group: GroupIndex, node: Option<&NodeName>) {
        let is_there = |uid: &Uid| self.pods.iter().any(|task| task.uid == *uid);
        let prior = self.options.prior.pods.iter();
        let of_node = prior.filter(|(_, pod)| node.is_some() && pod.node.as_ref() == node);
        let gone = of_node.filter(|(_, pod)| !is_there(&pod.uid));
        let stage = PodProgressStage::Ended(PodEnd::Gone);
        let gone = gone.map(|(key, pod)| PodTask::new(key.clone(), pod.uid.clone(), group, stage.clone()));
        for task in gone.collect::<Vec<_>>() {
            self.groups[group].add(self.pods.push(task));
        }
    }

    /// Counts the workload pods that stay on each node. The annotation that claims a node for its drain contains this
    /// number.
    fn count_staying(&mut self, cluster: &Cluster) {
        for group in self.groups.indices() {
            let Some(node) = self.groups[group].node else { continue };
            let leaves = |uid: &Uid| {
                self.pods.iter().any(|task| task.group == group && task.uid == *uid && task.part().is_some())
            };
            let pods = cluster.workload_pods(&self.nodes[node].node);
            let stay = pods.filter(|pod| !leaves(&pod.uid)).count();
            self.nodes[node].stay = stay;
        }
    }

    /// Whether the pod replaces a pod with the same name that this operation has removed or had to remove.
    fn follows_a_removed(&self, pod: &Key, uid: &Uid) -> bool {
        let before = |task: &PodTask| task.key == *pod && task.uid != *uid;
        self.options.prior.pods.get(pod).is_some_and(|known| known.uid != *uid)
            || self.pods.iter().any(before)
    }

    /// Handles a change of the cluster. After the end of the operation, only terminating pods are followed.
    pub fn handle_change(&mut self, cluster: &Cluster, now: Timestamp) {
        self.observe_all(cluster, now);
        self.advance(cluster, now);
    }

    /// Handles the outcome of a request.
    pub fn handle_outcome(
        &mut self,
        cluster: &Cluster,
        id: RequestId,
        outcome: RequestOutcome,
        now: Timestamp,
    ) {
        match self.in_flight.remove(&id) {
            Some(Subject::Node(node)) => self.on_node(cluster, node, outcome, now),
            Some(Subject::Renewal(node)) => self.on_renewal(node, outcome, now),
            Some(Subject::Release(node)) => self.on_release(node, &outcome, now),
            Some(Subject::Pod(pod)) => self.on_pod(cluster, pod, outcome, now),
            Some(Subject::PodList(group)) => self.on_pod_list(cluster, group, outcome, now),
            Some(Subject::Surge(surge)) => self.on_surge(cluster, surge, outcome, now),
            None => {}
        }
        self.advance(cluster, now);
    }

    /// Does everything that is due at `now`. Calling it too early has no effect.
    pub fn handle_timeout(&mut self, cluster: &Cluster, now: Timestamp) {
        self.advance(cluster, now);
    }

    /// Stops sending requests until [`Operation::resume`]. Claims are still renewed. Time limits do not run during a
    /// pause.
    pub fn pause(&mut self, now: Timestamp) {
        if self.paused.is_none() && self.ended.is_none() {
            self.paused = Some(now);
            self.withdraw_requests();
            self.notify(now, Severity::Info, String::new(), "paused".into());
        }
    }

    /// Continues after a pause. Extends time limits by the length of the pause.
    pub fn resume(&mut self, cluster: &Cluster, now: Timestamp) {
        let Some(since) = self.paused.take() else { return };
        let away = now.since(since).or_zero();
        self.deadline = self.deadline.map(|at| at + away);
        for group in self.groups.iter_mut() {
            group.postpone(away);
        }
        self.notify(now, Severity::Info, String::new(), "resumed".into());
        self.advance(cluster, now);
    }

    /// Cancels the operation. Starts nothing more, and waits up to 10 seconds for requests in flight. Nodes keep their
    /// cordons.
    pub fn cancel(&mut self, cluster: &Cluster, now: Timestamp) {
        if self.cancelled || self.ended.is_some() {
            return;
        }
        self.cancelled = true;
        self.paused = None;
        self.withdraw_requests();
        self.notify(now, Severity::Warning, String::new(), "cancelled: nothing more is started".into());
        self.stop_pods(None, &PodEnd::Cancelled);
        self.stop_nodes(&NodeIncomplete::Cancelled);
        self.close(now);
        self.advance(cluster, now);
    }

    /// Returns the next request. The caller has to pass its outcome to [`Operation::handle_outcome`].
    pub fn poll_request(&mut self) -> Option<Request> {
        self.outbox.pop_front()
    }

    pub fn has_requests(&self) -> bool {
        !self.outbox.is_empty()
    }

    pub fn poll_notice(&mut self) -> Option<OperationNotice> {
        self.notices.pop_front()
    }

    /// When [`Operation::handle_timeout`] has to be called next.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        if self.ended.is_some() {
            return None;
        }
        let surges = self.surges.iter().filter_map(SurgeTask::wakes_at);
        if let Phase::Closing { until } = self.phase {
            return surges.chain([until]).min();
        }
        let renewals = self.nodes.iter().filter_map(NodeTask::renews_at);
        if self.paused.is_some() {
            return renewals.min();
        }
        let nodes = self.nodes.iter().filter_map(NodeTask::reads_at);
        let groups = self.groups.iter().filter_map(PodGroup::wakes_at);
        // While enough requests are in flight, the next removal waits for one of their outcomes, so it needs no timer.
        let pods = self.pods.iter().filter_map(PodTask::wakes_at).filter(|_| !self.has_enough_requests());
        renewals.chain(self.deadline).chain(nodes).chain(groups).chain(pods).chain(surges).min()
    }

    /// How the operation ended; `None` while it runs.
    pub fn ended(&self) -> Option<OperationEnd> {
        self.ended.map(|(_, end)| end)
    }

    pub fn is_paused(&self) -> bool {
        self.paused.is_some()
    }

    pub fn options(&self) -> &OperationOptions {
        &self.options
    }

    /// The progress of all nodes and pods.
    pub fn progress(&self) -> OperationProgress {
        let node = |task: &NodeTask| NodeProgress {
            node: task.node.clone(),
            stage: task.shown.clone(),
            done: task.done(),
            cordoned: task.cordoned,
        };
        let pod = |task: &PodTask| PodProgress {
            pod: task.key.clone(),
            uid: task.uid.clone(),
            node: self.groups[task.group].node.map(|node| self.nodes[node].node.clone()),
            stage: task.stage.clone(),
            part: task.part(),
            tries: task.tries,
            late: task.late,
        };
        OperationProgress {
            id: self.options.id.clone(),
            started_at: self.started_at,
            ended: self.ended,
            nodes: self.nodes.iter().map(node).collect(),
            pods: self.pods.iter().map(pod).collect(),
            surges: self.surges.iter().map(SurgeTask::progress).collect(),
        }
    }

    /// Whether pods that the operation removed are still terminating, although the operation has ended.
    pub fn is_followed_up(&self) -> bool {
        self.ended.is_some() && self.pods.iter().any(|task| task.part() == Some(DrainPart::Terminating))
    }

    /// Likely and latest end of the operation, both limited by its total timeout. `None` if the operation removes no
    /// pods, is paused or has ended.
    pub fn time_left(&self, cluster: &Cluster, now: Timestamp) -> Option<TimeLeft> {
        if self.groups.iter().next().is_none() || self.paused.is_some() || self.ended.is_some() {
            return None;
        }
        let groups = self.groups_left(cluster);
        let surges = self.surges_left(cluster);
        let left = time_left(cluster, groups, surges, &self.drain, self.mode, self.rules, now);
        Some(match (left, self.deadline) {
            (TimeLeft::Ends { likely, latest }, Some(deadline)) => TimeLeft::Ends {
                likely: likely.min(deadline),
                latest: Some(latest.map_or(deadline, |latest| latest.min(deadline))),
            },
            (left, _) => left,
        })
    }

    /// Takes all steps of the operation that are possible before the next outcome of a request.
    fn advance(&mut self, cluster: &Cluster, now: Timestamp) {
        if self.ended.is_some() {
            return;
        }
        self.renew(now);
        if self.paused.is_none() && self.deadline.is_some_and(|at| at <= now) {
            self.on_deadline(now);
        }
        if self.phase == Phase::Nodes && self.paused.is_none() {
            self.advance_nodes(now);
            if self.nodes.iter().all(NodeTask::is_done) {
                self.assign_surges(cluster);
                self.on_nodes_done(now);
            }
        }
        if self.phase == Phase::Pods {
            self.advance_pods(cluster, now);
            self.advance_surges(now);
            if self.groups.iter().all(PodGroup::is_done) {
                self.close(now);
            }
        }
        if let Phase::Closing { until } = self.phase {
            self.stop_surges();
            self.advance_surges(now);
            if until <= now {
                self.strand_surges(now);
            }
            if self.surges.iter().all(SurgeTask::is_settled) {
                self.release(now);
            }
            let answered = self.in_flight.is_empty() && self.nodes.iter().all(|node| !node.claimed);
            if answered || until <= now {
                self.end(now);
            }
        }
    }

    /// Starts to remove pods. If a node of a drain could not be cordoned and claimed, ends the operation instead and
    /// evicts no pod.
    fn on_nodes_done(&mut self, now: Timestamp) {
        let claims = self.groups.iter().any(|group| group.node.is_some());
        if claims && self.nodes.iter().any(NodeTask::is_stopped) {
            self.notify(
                now,
                Severity::Error,
                String::new(),
                "not every node could be cordoned: no pod is evicted".into(),
            );
            self.stop_pods(None, &PodEnd::Cancelled);
            self.stop_nodes(&NodeIncomplete::NotStarted);
            return self.close(now);
        }
        self.phase = Phase::Pods;
    }

    fn on_deadline(&mut self, now: Timestamp) {
        self.deadline = None;
        self.out_of_time = true;
        self.withdraw_requests();
        self.notify(now, Severity::Error, String::new(), "the total timeout has expired".into());
        self.stop_pods(None, &PodEnd::TimedOut);
        self.stop_nodes(&NodeIncomplete::TimedOut);
        self.close(now);
    }

    fn close(&mut self, now: Timestamp) {
        if !matches!(self.phase, Phase::Closing { .. } | Phase::Ended) {
            self.phase = Phase::Closing { until: now + CLOSING };
        }
    }

    fn end(&mut self, now: Timestamp) {
        for node in self.nodes.iter().filter(|node| node.claimed) {
            let text = "its claim could not be removed; it expires by itself".to_owned();
            let subject = format!("node/{}", node.node);
            self.notices.push_back(OperationNotice { at: now, level: Severity::Warning, subject, text });
        }
        self.phase = Phase::Ended;
        let end = self.result();
        self.ended = Some((now, end));
    }

    fn result(&self) -> OperationEnd {
        let stops = || {
            self.nodes.iter().filter_map(|node| match &node.shown {
                NodeProgressStage::Incomplete(stop) => Some(stop),
                _ => None,
            })
        };
        let ends = || {
            self.pods.iter().filter_map(|pod| match &pod.stage {
                PodProgressStage::Ended(end) => Some(end),
                _ => None,
            })
        };
        let recorded = self.nodes.iter().any(|node| node.shown == NodeProgressStage::Recorded)
            || ends().any(|end| *end == PodEnd::Recorded);
        if self.cancelled {
            OperationEnd::Cancelled
        } else if stops().any(|stop| matches!(stop, NodeIncomplete::ClaimedByOther { .. })) {
            OperationEnd::ClaimedByOther
        } else if stops().any(|stop| matches!(stop, NodeIncomplete::Forbidden(_)))
            || ends().any(|end| matches!(end, PodEnd::Forbidden(_)))
        {
            OperationEnd::Forbidden
        } else if self.out_of_time
            || stops().any(|stop| *stop == NodeIncomplete::TimedOut)
            || ends().any(|end| *end == PodEnd::TimedOut)
        {
            OperationEnd::TimedOut
        } else if stops().next().is_some()
            || ends().any(|end| !end.is_success())
            || self.surges.iter().any(SurgeTask::is_stranded)
        {
            OperationEnd::Partly
        } else if recorded {
            OperationEnd::Recorded
        } else {
            OperationEnd::Done
        }
    }

    /// Withdraws requests that have not been sent yet, except requests that renew or remove claims.
    fn withdraw_requests(&mut self) {
        let waiting = std::mem::take(&mut self.outbox);
        for request in waiting {
            match self.in_flight.get(&request.id) {
                Some(Subject::Pod(pod)) => {
                    self.pods[*pod].stage = PodProgressStage::Waiting;
                    self.in_flight.remove(&request.id);
                }
                Some(Subject::Node(node)) => {
                    self.nodes[*node].wait(request.at);
                    self.in_flight.remove(&request.id);
                }
                Some(Subject::PodList(group)) => {
                    self.groups[*group].list_again(request.at);
                    self.in_flight.remove(&request.id);
                }
                Some(Subject::Surge(surge)) => {
                    self.surges[*surge].withdraw();
                    self.in_flight.remove(&request.id);
                }
                Some(Subject::Renewal(_) | Subject::Release(_)) => self.outbox.push_back(request),
                None => {}
            }
        }
    }

    fn send(
        &mut self,
        subject: Subject,
        task: RequestKind,
        why: String,
        undo: Option<WriteUndo>,
        now: Timestamp,
    ) {
        self.requests += 1;
        let id = RequestId(self.requests);
        self.in_flight.insert(id, subject);
        self.outbox.push_back(Request { id, at: now, task, why, undo });
    }

    fn notify(&mut self, at: Timestamp, level: Severity, subject: String, text: String) {
        self.notices.push_back(OperationNotice { at, level, subject, text });
    }
}

/// Returns how an action removes pods: its drain options, and whether it evicts or deletes.
fn removal(action: &Action) -> (DrainOptions, RemovalMode) {
    match action {
        Action::Drain { options, .. } => {
            let mode = if options.disable_eviction { RemovalMode::Delete } else { RemovalMode::Evict };
            (options.clone(), mode)
        }
        Action::Evict { options, .. } | Action::Delete { options, .. } => {
            let mode = if matches!(action, Action::Delete { .. }) {
                RemovalMode::Delete
            } else {
                RemovalMode::Evict
            };
            let options = DrainOptions {
                grace: options.grace,
                timeout: options.timeout,
                retry: options.retry,
                ..DrainOptions::default()
            };
            (options, mode)
        }
        Action::Cordon { .. }
        | Action::Uncordon { .. }
        | Action::Taint { .. }
        | Action::Metadata { .. }
        | Action::DeleteNode { .. } => (DrainOptions::default(), RemovalMode::Evict),
    }
}

/// Backoff after this many tries: 500 ms, doubled up to six times.
fn backoff(tries: u32) -> Span {
    Span::from_millis(500) * (1_i64 << tries.min(6))
}
