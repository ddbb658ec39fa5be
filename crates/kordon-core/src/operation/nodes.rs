//! Writes to nodes. The operation reads each node first, and decides from this state what to write.

use super::{
    NodeIncomplete, NodePatch, NodeProgressStage, Operation, OperationOptions, RequestKind, RequestOutcome,
    Severity, Subject, backoff, maintenance_write::MaintenanceWrite, tasks::TaskIndex,
};
use crate::{
    cluster::{
        Cluster, CordonNote, DrainClaim, DrainedNote, Node, NodeName, OperationId, Taint, Uid,
        claim::{CORDON, DRAIN, DRAINED, RENEW_EVERY},
        maintenance_note::MAINTENANCE,
    },
    plan::{
        MetadataEdits, MetadataField, NodeChange, PlanStep, TaintEdits, metadata,
        undo::{NodeUndo, UndoStep, WriteUndo},
    },
};
use kordon_time::{Span, Timestamp};

/// A node that the operation writes to, with its goal and progress.
#[derive(Clone, Debug)]
pub(super) struct NodeTask {
    pub(super) node: NodeName,
    uid: Uid,
    goal: NodeGoal,
    stage: Stage,
    /// The node's stage as the progress report shows it.
    pub(super) shown: NodeProgressStage,
    tries: u32,
    /// Whether the node's cordon is from this operation.
    pub(super) cordoned: bool,
    /// Whether the cordon will be from this operation once the write in flight succeeds.
    pub(super) cordons: bool,
    /// Whether the node has a claim of this operation.
    pub(super) claimed: bool,
    /// When the claim is renewed next; `None` while a renewal is in flight, and for a node without a claim.
    renew_at: Option<Timestamp>,
    /// The number of workload pods that the drain leaves on the node.
    pub(super) stay: usize,
    releasing: bool,
    releases: u32,
    /// The taints of the last write. If the write has no response but the next read shows these taints, it succeeded.
    sent: Option<Vec<Taint>>,
}

/// What the operation is to achieve on a node.
#[derive(Clone, Debug)]
pub(super) enum NodeGoal {
    /// The node is to be cordoned, and claimed for a drain.
    Claim,
    Cordon {
        on: bool,
    },
    Taints {
        edits: TaintEdits,
        planned: Option<Vec<Taint>>,
    },
    Metadata {
        edits: MetadataEdits,
    },
    Undo(NodeUndo),
    Maintain(MaintenanceWrite),
    Delete,
    /// The node is not to be changed, because the plan refuses it.
    Nothing {
        refused: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Waiting { until: Timestamp },
    Reading,
    Writing,
    Done,
}

/// What to do with a node after it was read.
pub(super) enum NodeDecision {
    GiveUp(NodeIncomplete),
    Unchanged,
    Write(RequestKind, Option<NodeUndo>),
}

pub(super) type NodeIndex = TaskIndex<NodeTask>;

/// Maximum number of attempts to read and write a node.
const TRIES: u32 = 10;

/// Maximum number of attempts to remove a claim.
const RELEASES: u32 = 3;

impl NodeTask {
    pub(super) fn new(node: NodeName, uid: Uid, goal: NodeGoal, now: Timestamp) -> Self {
        let (stage, shown) = match &goal {
            NodeGoal::Nothing { refused } => {
                (Stage::Done, NodeProgressStage::Incomplete(NodeIncomplete::Failed(refused.clone())))
            }
            NodeGoal::Claim
            | NodeGoal::Cordon { .. }
            | NodeGoal::Taints { .. }
            | NodeGoal::Metadata { .. }
            | NodeGoal::Maintain(_)
            | NodeGoal::Delete
            | NodeGoal::Undo(_) => (Stage::Waiting { until: now }, NodeProgressStage::Waiting),
        };
        Self {
            node,
            uid,
            goal,
            stage,
            shown,
            tries: 0,
            cordoned: false,
            cordons: false,
            claimed: false,
            renew_at: None,
            stay: 0,
            releasing: false,
            releases: 0,
            sent: None,
        }
    }

    /// Says what the operation does to the node, as a word for a node to which it was done: `uncordoned`.
    pub(super) fn done(&self) -> &'static str {
        match &self.goal {
            NodeGoal::Claim => "claimed",
            NodeGoal::Cordon { on: true } => "cordoned",
            NodeGoal::Cordon { on: false } => "uncordoned",
            NodeGoal::Delete => "deleted",
            NodeGoal::Maintain(MaintenanceWrite::Release | MaintenanceWrite::Leave) => "released",
            NodeGoal::Maintain(
                MaintenanceWrite::Mark { .. }
                | MaintenanceWrite::Resume
                | MaintenanceWrite::Renew { .. }
                | MaintenanceWrite::Stop,
            ) => "marked",
            NodeGoal::Undo(undo) => match undo.steps[..] {
                [UndoStep::Uncordon] => "uncordoned",
                [UndoStep::Cordon] => "cordoned",
                _ => "undone",
            },
            NodeGoal::Taints { .. } | NodeGoal::Metadata { .. } | NodeGoal::Nothing { .. } => "changed",
        }
    }

    /// Whether the operation writes the stage of a maintenance to the node.
    pub(super) const fn is_maintained(&self) -> bool {
        matches!(self.goal, NodeGoal::Maintain(_))
    }

    /// Whether the operation takes over the node's note of its own maintenance, to resume it.
    pub(super) const fn resumes(&self) -> bool {
        matches!(self.goal, NodeGoal::Maintain(MaintenanceWrite::Resume))
    }

    /// Whether the write disturbs another maintenance of the node, as in
    /// [`disturbs_maintenance`](crate::plan::Action::disturbs_maintenance) of an action.
    pub(super) fn disturbs_maintenance(&self) -> bool {
        match &self.goal {
            NodeGoal::Claim
            | NodeGoal::Cordon { .. }
            | NodeGoal::Undo(_)
            | NodeGoal::Maintain(_)
            | NodeGoal::Delete => true,
            NodeGoal::Taints { edits, .. } => edits.adds_no_execute(),
            NodeGoal::Metadata { .. } | NodeGoal::Nothing { .. } => false,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }

    pub(super) fn is_stopped(&self) -> bool {
        matches!(self.shown, NodeProgressStage::Incomplete(_))
    }

    pub(super) fn wait(&mut self, until: Timestamp) {
        self.stage = Stage::Waiting { until };
    }

    /// When the node is read next; `None` while a request is in flight, and once the node is done.
    pub(super) fn reads_at(&self) -> Option<Timestamp> {
        match self.stage {
            Stage::Waiting { until } => Some(until),
            Stage::Reading | Stage::Writing | Stage::Done => None,
        }
    }

    /// Renews the claim at once, because its counts are outdated. Does nothing for a node without a claim.
    pub(super) fn renew_now(&mut self, now: Timestamp) {
        self.renew_at = self.renew_at.map(|at| at.min(now));
    }

    /// When the operation's claim on the node is renewed next; `None` if no renewal is planned.
    pub(super) const fn renews_at(&self) -> Option<Timestamp> {
        self.renew_at
    }

    fn finish(&mut self, shown: NodeProgressStage) {
        self.stage = Stage::Done;
        self.shown = shown;
    }

    pub(super) fn subject(&self) -> String {
        format!("node/{}", self.node)
    }
}

impl Operation {
    /// Reads the nodes that are due.
    pub(super) fn advance_nodes(&mut self, now: Timestamp) {
        for place in self.nodes.indices() {
            let node = &mut self.nodes[place];
            if matches!(node.stage, Stage::Waiting { until } if until <= now) {
                node.stage = Stage::Reading;
                node.tries += 1;
                let (task, why) =
                    (RequestKind::ReadNode { node: node.node.clone() }, self.because("before writing"));
                self.send(Subject::Node(place), task, why, None, now);
            }
        }
    }

    /// Handles the outcome of a read of the node or of a write to it.
    pub(super) fn on_node(
        &mut self,
        cluster: &Cluster,
        place: NodeIndex,
        outcome: RequestOutcome,
        now: Timestamp,
    ) {
        let node = &mut self.nodes[place];
        if node.stage == Stage::Done {
            // The operation gave up the node before this response arrived. It still has to know about a successful
            // claim, so that it can remove the claim.
            if outcome == RequestOutcome::Done && matches!(node.goal, NodeGoal::Claim) {
                node.claimed = true;
                node.cordoned = node.cordons;
            }
            return;
        }
        let is_read = node.stage == Stage::Reading;
        match outcome {
            RequestOutcome::Node(seen) => self.on_node_read(place, &seen, now),
            // A dry run reads nothing, and uses the last state that the watch reported.
            RequestOutcome::Recorded if is_read => match cluster.node(&node.node) {
                Some(known) => {
                    let known = known.clone();
                    self.on_node_read(place, &known, now);
                }
                None => self.stop_node(place, NodeIncomplete::Gone, now),
            },
            RequestOutcome::Recorded => node.finish(NodeProgressStage::Recorded),
            RequestOutcome::Done => self.on_written(place, now),
            // An earlier deletion without a response has succeeded, or somebody else has deleted the node.
            RequestOutcome::Gone if matches!(node.goal, NodeGoal::Delete) => {
                node.finish(NodeProgressStage::Written);
            }
            RequestOutcome::Gone => self.stop_node(place, NodeIncomplete::Gone, now),
            RequestOutcome::OtherObject => self.stop_node(place, NodeIncomplete::OtherNode, now),
            RequestOutcome::Forbidden(text) => self.stop_node(place, NodeIncomplete::Forbidden(text), now),
            RequestOutcome::Refused(text) => self.stop_node(place, NodeIncomplete::Failed(text), now),
            RequestOutcome::Conflict => {
                self.try_node_again(place, Span::from_millis(200), "has changed since it was read", now)
            }
            RequestOutcome::Overloaded { retry_after } => {
                self.try_node_again(place, retry_after.unwrap_or_default(), "the server is overloaded", now);
            }
            RequestOutcome::Failed(text) | RequestOutcome::Unreachable(text) => {
                self.try_node_again(place, Span::ZERO, &text, now);
            }
            RequestOutcome::NoResponse => self.try_node_again(place, Span::ZERO, "no response", now),
            RequestOutcome::Pods(_)
            | RequestOutcome::Scale(_)
            | RequestOutcome::BudgetExhausted(_)
            | RequestOutcome::BudgetStale { .. }
            | RequestOutcome::NamespaceTerminating => {
                self.stop_node(place, NodeIncomplete::Failed("unexpected response".into()), now);
            }
        }
    }

    fn on_written(&mut self, place: NodeIndex, now: Timestamp) {
        let node = &mut self.nodes[place];
        node.cordoned = node.cordons;
        match node.goal {
            // Read the node again, because the undo may have further steps on it.
            NodeGoal::Undo(_) => node.wait(now),
            NodeGoal::Claim => {
                node.claimed = true;
                node.renew_at = Some(now + RENEW_EVERY);
                node.finish(NodeProgressStage::Written);
            }
            NodeGoal::Cordon { .. }
            | NodeGoal::Taints { .. }
            | NodeGoal::Metadata { .. }
            | NodeGoal::Maintain(_)
            | NodeGoal::Delete
            | NodeGoal::Nothing { .. } => node.finish(NodeProgressStage::Written),
        }
        let text = match self.nodes[place].goal {
            NodeGoal::Claim if self.nodes[place].cordoned => "cordoned and claimed for this drain",
            NodeGoal::Claim => "claimed for this drain; it was cordoned before",
            NodeGoal::Taints { .. } => "taints set",
            NodeGoal::Metadata { ref edits } => match edits.field {
                MetadataField::Labels => "labels set",
                MetadataField::Annotations => "annotations set",
            },
            NodeGoal::Maintain(MaintenanceWrite::Release) => "released from the maintenance",
            NodeGoal::Maintain(MaintenanceWrite::Leave) => "released from the maintenance, and left as it is",
            // Send no notice here, because a maintenance reports the stages of its nodes itself.
            NodeGoal::Maintain(
                MaintenanceWrite::Mark { .. }
                | MaintenanceWrite::Resume
                | MaintenanceWrite::Renew { .. }
                | MaintenanceWrite::Stop,
            ) => return,
            NodeGoal::Cordon { .. } | NodeGoal::Delete | NodeGoal::Undo(_) | NodeGoal::Nothing { .. } => {
                self.nodes[place].done()
            }
        };
        self.notify(now, Severity::Info, self.nodes[place].subject(), text.into());
    }

    fn try_node_again(&mut self, place: NodeIndex, at_least: Span, why: &str, now: Timestamp) {
        let node = &mut self.nodes[place];
        if node.tries >= TRIES {
            return self.stop_node(place, NodeIncomplete::Failed(format!("{why}, after {TRIES} tries")), now);
        }
        let wait = backoff(node.tries.saturating_sub(1)).max(at_least);
        node.wait(now + wait);
        let (subject, text) = (node.subject(), format!("{why}; next try in {wait}"));
        self.notify(now, Severity::Warning, subject, text);
    }

    fn stop_node(&mut self, place: NodeIndex, stop: NodeIncomplete, now: Timestamp) {
        let node = &mut self.nodes[place];
        let (subject, text) = (node.subject(), stop.to_string());
        node.finish(NodeProgressStage::Incomplete(stop));
        self.notify(now, Severity::Error, subject, text);
    }

    /// Gives up all nodes that are not done.
    pub(super) fn stop_nodes(&mut self, stop: &NodeIncomplete) {
        for node in self.nodes.iter_mut() {
            match node.shown {
                NodeProgressStage::Waiting
                | NodeProgressStage::Draining { .. }
                | NodeProgressStage::Verifying => {
                    node.finish(NodeProgressStage::Incomplete(stop.clone()));
                }
                NodeProgressStage::Written if matches!(node.goal, NodeGoal::Claim) => {
                    node.finish(NodeProgressStage::Incomplete(stop.clone()));
                }
                NodeProgressStage::Written
                | NodeProgressStage::Unchanged
                | NodeProgressStage::Drained { .. }
                | NodeProgressStage::Recorded
                | NodeProgressStage::Incomplete(_) => {}
            }
        }
    }

    fn on_node_read(&mut self, place: NodeIndex, seen: &Node, now: Timestamp) {
        match self.decide(place, seen, now) {
            NodeDecision::GiveUp(stop) => self.stop_node(place, stop, now),
            NodeDecision::Unchanged => {
                let node = &mut self.nodes[place];
                let again = matches!(node.goal, NodeGoal::Undo(_)) && node.tries > 1;
                node.finish(if again { NodeProgressStage::Written } else { NodeProgressStage::Unchanged });
            }
            NodeDecision::Write(task, undo) => {
                let node = &mut self.nodes[place];
                node.stage = Stage::Writing;
                let why = self.because("");
                self.send(Subject::Node(place), task, why, undo.map(WriteUndo::Node), now);
            }
        }
    }

    fn decide(&mut self, place: NodeIndex, seen: &Node, now: Timestamp) -> NodeDecision {
        if seen.uid != self.nodes[place].uid {
            return NodeDecision::GiveUp(NodeIncomplete::OtherNode);
        }
        let taken = self.claimed_by_other(place, seen, now);
        if let Some(stop) = taken.or_else(|| self.maintained_by_other(place, seen, now)) {
            return NodeDecision::GiveUp(stop);
        }
        match self.nodes[place].goal.clone() {
            NodeGoal::Claim => self.claim(place, seen, now),
            NodeGoal::Cordon { on } => {
                self.nodes[place].cordons = on;
                self.cordon(seen, on, now)
            }
            NodeGoal::Taints { edits, planned } => self.taint(place, seen, &edits, planned.as_deref(), now),
            NodeGoal::Metadata { edits } => change_metadata(seen, &edits),
            NodeGoal::Undo(undo) => self.undo_step(place, &undo, seen, now),
            NodeGoal::Delete => {
                let step = PlanStep::DeleteNode { node: seen.name.clone(), uid: seen.uid.clone() };
                NodeDecision::Write(RequestKind::Write(step), None)
            }
            NodeGoal::Maintain(write) => self.write_maintenance(place, &write, seen, now),
            NodeGoal::Nothing { refused } => NodeDecision::GiveUp(NodeIncomplete::Failed(refused)),
        }
    }

    /// Returns why this operation may not claim the node: another operation has a fresh claim, and this operation may
    /// not take over the node. `None` if it may. For an undo, the claim of the operation that it reverses does not
    /// count.
    fn claimed_by_other(&mut self, place: NodeIndex, seen: &Node, now: Timestamp) -> Option<NodeIncomplete> {
        let OperationOptions { id, undoes, .. } = &self.options;
        let is_ours = |operation: &OperationId| operation == id || Some(operation) == undoes.as_ref();
        let claim = seen.drain_claim.as_ref()?;
        if is_ours(&claim.operation) {
            if claim.operation == self.options.id {
                self.take_over_surges(claim.surges.clone(), now);
            }
            return None;
        }
        let DrainClaim { by, operation, surges, .. } = (**claim).clone();
        if claim.is_fresh(now) && !self.options.take_over {
            return Some(NodeIncomplete::ClaimedByOther { by, operation });
        }
        let how = if claim.is_fresh(now) { "is taken over" } else { "has expired" };
        let subject = self.nodes[place].subject();
        self.notify(
            now,
            Severity::Warning,
            subject,
            format!("the claim of {by} (operation {operation}) {how}"),
        );
        self.take_over_surges(surges, now);
        None
    }

    /// Cordons and claims the node in one write, which fails if the node has changed since it was read. So only one of
    /// two concurrent operations can claim the node.
    fn claim(&mut self, place: NodeIndex, seen: &Node, now: Timestamp) -> NodeDecision {
        let node = seen;
        if self.options.prior.cordoned.contains(&node.name) && !node.unschedulable {
            return NodeDecision::GiveUp(NodeIncomplete::Uncordoned);
        }
        let ours =
            seen.cordon_note.as_ref().is_some_and(|note| note.operation.as_ref() == Some(&self.options.id));
        self.nodes[place].cordons = !node.unschedulable || ours;
        let mut notes = vec![(DRAIN, Some(self.new_claim(place, now).to_text()))];
        notes.extend(forget_drained(node));
        let mut undo = None;
        if !node.unschedulable {
            notes.push((CORDON, Some(self.cordon_note(now).to_text())));
            undo = NodeUndo::new(node.name.clone(), node.uid.clone(), &NodeChange::Cordon);
        }
        let patch = NodePatch {
            node: node.name.clone(),
            uid: node.uid.clone(),
            version: Some(node.version),
            unschedulable: (!node.unschedulable).then_some(true),
            notes,
        };
        NodeDecision::Write(RequestKind::Patch(patch), undo)
    }

    /// Cordons or uncordons the node. The write depends only on the uid, not on the version: heartbeats change the
    /// version all the time, and no other field of the node matters here.
    fn cordon(&self, seen: &Node, on: bool, now: Timestamp) -> NodeDecision {
        let node = seen;
        if node.unschedulable == on {
            return NodeDecision::Unchanged;
        }
        let change = if on { NodeChange::Cordon } else { NodeChange::Uncordon };
        let patch = NodePatch {
            node: node.name.clone(),
            uid: node.uid.clone(),
            version: None,
            unschedulable: Some(on),
            notes: [(CORDON, on.then(|| self.cordon_note(now).to_text()))]
                .into_iter()
                .chain(forget_drained(node))
                .collect(),
        };
        NodeDecision::Write(
            RequestKind::Patch(patch),
            NodeUndo::new(node.name.clone(), node.uid.clone(), &change),
        )
    }

    /// Applies edits of taints to the taints that the node had when it was read.
    fn taint(
        &mut self,
        place: NodeIndex,
        node: &Node,
        edits: &TaintEdits,
        planned: Option<&[Taint]>,
        now: Timestamp,
    ) -> NodeDecision {
        if self.nodes[place].sent.as_deref() == Some(&node.taints[..]) {
            // The earlier write of these taints has succeeded, but its response was lost.
            return NodeDecision::Unchanged;
        }
        let after = match edits.over(node) {
            Ok(after) => after,
            Err(text) => return NodeDecision::GiveUp(NodeIncomplete::Failed(text)),
        };
        if after[..] == node.taints[..] {
            return NodeDecision::Unchanged;
        }
        if planned.is_some_and(|planned| planned != after) {
            let (subject, taints) = (self.nodes[place].subject(), shown(&after));
            let text = format!("its taints have changed since the plan was made; they will be: {taints}");
            self.notify(now, Severity::Warning, subject, text);
        }
        let (name, uid, version) = (node.name.clone(), node.uid.clone(), node.version);
        let change = NodeChange::Taints { before: node.taints.to_vec(), after: after.clone() };
        self.nodes[place].sent = Some(after.clone());
        let step = PlanStep::SetTaints { node: name.clone(), uid: uid.clone(), version, taints: after };
        NodeDecision::Write(RequestKind::Write(step), NodeUndo::new(name, uid, &change))
    }

    /// Returns the next step of an undo. Skips fields that somebody has changed since the operation.
    fn undo_step(&mut self, place: NodeIndex, undo: &NodeUndo, seen: &Node, now: Timestamp) -> NodeDecision {
        // Skip the uncordon if the node's cordon is not from the undone operation.
        let noted = seen.cordon_note.as_ref().and_then(|note| note.operation.as_ref());
        let ours = noted.is_some() && noted == self.options.undoes.as_ref();
        let by_us = |back: &UndoStep| *back != UndoStep::Uncordon || ours || !seen.unschedulable;
        let undo = NodeUndo {
            steps: undo.steps.iter().filter(|back| by_us(back)).cloned().collect(),
            ..undo.clone()
        };
        let (mut steps, mut kept) = (Vec::new(), Vec::new());
        undo.over(seen, &mut steps, &mut kept);
        if self.nodes[place].tries == 1 {
            for kept in kept {
                let (subject, text) = (self.nodes[place].subject(), format!("left as it is: {kept}"));
                self.notify(now, Severity::Warning, subject, text);
            }
        }
        match steps.into_iter().next() {
            None => NodeDecision::Unchanged,
            Some(PlanStep::Cordon { node, uid, on }) => {
                let mut notes = vec![(CORDON, on.then(|| self.cordon_note(now).to_text()))];
                notes.extend(forget_drained(seen));
                let noted = seen.maintenance.as_ref().map(|note| &note.operation);
                let is_noted = noted.is_some() && noted == self.options.undoes.as_ref();
                notes.extend(is_noted.then_some((MAINTENANCE, None)));
                let claimed_by = seen.drain_claim.as_ref().map(|claim| &claim.operation);
                let is_left = claimed_by.is_some() && claimed_by == self.options.undoes.as_ref();
                if is_left {
                    notes.push((DRAIN, None));
                }
                // This write also removes a claim, so it must fail if the node has changed since it was read.
                let version = is_left.then_some(seen.version);
                let patch = NodePatch { node, uid, version, unschedulable: Some(on), notes };
                NodeDecision::Write(RequestKind::Patch(patch), None)
            }
            Some(step) => NodeDecision::Write(RequestKind::Write(step), None),
        }
    }

    /// Renews the claims that are due. Reads each node first, because another operation may have taken it over.
    pub(super) fn renew(&mut self, now: Timestamp) {
        if matches!(self.phase, super::Phase::Closing { .. } | super::Phase::Ended) {
            return;
        }
        for place in self.nodes.indices() {
            let node = &mut self.nodes[place];
            if node.renew_at.is_some_and(|at| at <= now) {
                node.renew_at = None;
                let task = RequestKind::ReadNode { node: node.node.clone() };
                let why = self.because("to renew the claim");
                self.send(Subject::Renewal(place), task, why, None, now);
            }
        }
    }

    pub(super) fn on_renewal(&mut self, place: NodeIndex, outcome: RequestOutcome, now: Timestamp) {
        if !self.nodes[place].claimed {
            return;
        }
        match outcome {
            RequestOutcome::Node(seen) => self.on_claim_read(place, &seen, now),
            RequestOutcome::Done => self.nodes[place].renew_at = Some(now + RENEW_EVERY),
            RequestOutcome::Conflict => self.nodes[place].renew_at = Some(now + Span::from_millis(200)),
            RequestOutcome::Gone | RequestOutcome::OtherObject => {
                self.lose_node(place, NodeIncomplete::Gone, now)
            }
            other => {
                self.nodes[place].renew_at = Some(now + Span::from_secs(5));
                let (subject, text) =
                    (self.nodes[place].subject(), format!("its claim could not be renewed: {other}"));
                self.notify(now, Severity::Warning, subject, text);
            }
        }
    }

    fn on_claim_read(&mut self, place: NodeIndex, seen: &Node, now: Timestamp) {
        let node = &self.nodes[place];
        if seen.uid != node.uid {
            return self.lose_node(place, NodeIncomplete::OtherNode, now);
        }
        if let Some(claim) = seen.drain_claim.as_ref().filter(|claim| claim.operation != self.options.id) {
            let DrainClaim { by, operation, .. } = (**claim).clone();
            return self.lose_node(place, NodeIncomplete::ClaimedByOther { by, operation }, now);
        }
        if let Some(other) = self.resumed_by_other(seen, now) {
            return self.lose_node(place, other, now);
        }
        if !seen.unschedulable && !node.is_stopped() {
            self.nodes[place].renew_at = Some(now + RENEW_EVERY);
            return self.abandon(place, NodeIncomplete::Uncordoned, now);
        }
        let patch = NodePatch {
            node: node.node.clone(),
            uid: node.uid.clone(),
            version: Some(seen.version),
            unschedulable: None,
            notes: vec![(DRAIN, Some(self.new_claim(place, now).to_text()))],
        };
        let why = self.because("to renew the claim");
        self.send(Subject::Renewal(place), RequestKind::Patch(patch), why, None, now);
    }

    /// Gives up a node that no longer belongs to this operation. The operation no longer writes to the node or its
    /// pods.
    fn lose_node(&mut self, place: NodeIndex, stop: NodeIncomplete, now: Timestamp) {
        self.nodes[place].claimed = false;
        self.abandon(place, stop, now);
    }

    fn abandon(&mut self, place: NodeIndex, stop: NodeIncomplete, now: Timestamp) {
        if let Some(group) = self.groups.position(|group| group.node == Some(place)) {
            self.stop_pods(Some(group), &super::PodEnd::Cancelled);
            self.groups[group].finish();
        }
        self.stop_node(place, stop, now);
    }

    /// Removes the claims of this operation. Adds a note to the nodes that it has drained.
    pub(super) fn release(&mut self, now: Timestamp) {
        for place in self.nodes.indices() {
            let node = &mut self.nodes[place];
            if node.claimed && !node.releasing {
                node.releasing = true;
                node.releases += 1;
                let (name, uid) = (node.node.clone(), node.uid.clone());
                let mut notes = vec![(DRAIN, None)];
                if matches!(node.shown, NodeProgressStage::Drained { .. }) {
                    let (by, operation) = (self.options.by.clone(), self.options.id.clone());
                    notes.push((DRAINED, Some(DrainedNote { by, operation, at: now }.to_text())));
                }
                let patch = NodePatch { node: name, uid, version: None, unschedulable: None, notes };
                let why = self.because("the operation has ended");
                self.send(Subject::Release(place), RequestKind::Patch(patch), why, None, now);
            }
        }
    }

    pub(super) fn on_release(&mut self, place: NodeIndex, outcome: &RequestOutcome, now: Timestamp) {
        let node = &mut self.nodes[place];
        match outcome {
            RequestOutcome::Done
            | RequestOutcome::Recorded
            | RequestOutcome::Gone
            | RequestOutcome::OtherObject => node.claimed = false,
            _ if node.releases < RELEASES => node.releasing = false,
            other => {
                node.claimed = false;
                let (subject, text) = (node.subject(), format!("its claim could not be removed: {other}"));
                self.notify(now, Severity::Warning, subject, text);
            }
        }
    }

    /// Makes the claim that is written to a node.
    fn new_claim(&self, place: NodeIndex, now: Timestamp) -> DrainClaim {
        let (by, operation) = (self.options.by.clone(), self.options.id.clone());
        let node = &self.nodes[place];
        let counts = match node.goal {
            NodeGoal::Claim => Some((self.count_on(place).total(), node.stay)),
            NodeGoal::Cordon { .. }
            | NodeGoal::Taints { .. }
            | NodeGoal::Metadata { .. }
            | NodeGoal::Undo(_)
            | NodeGoal::Maintain(_)
            | NodeGoal::Delete
            | NodeGoal::Nothing { .. } => None,
        };
        let (pods, stay) = counts.unzip();
        let surges = if counts.is_some() { self.claimed_surges() } else { Vec::new() };
        DrainClaim { by, operation, renewed: now, pods, stay, surges }
    }

    pub(super) fn cordon_note(&self, now: Timestamp) -> CordonNote {
        let OperationOptions { by, reason, until, id, .. } = self.options.clone();
        CordonNote { by, reason, at: now, until, operation: Some(id) }
    }

    /// The reason of a request, for the journal. `more` adds details.
    pub(super) fn because(&self, more: &str) -> String {
        let mut why = format!("operation {}", self.options.id);
        for part in [self.options.reason.as_str(), more] {
            if !part.is_empty() {
                why.push_str(": ");
                why.push_str(part);
            }
        }
        why
    }
}

/// Returns the removal of the note that an earlier drain left on the node; `None` if there is no such note. The note
/// does not apply after a later cordon, uncordon or drain.
pub(super) fn forget_drained(node: &Node) -> Option<(&'static str, Option<String>)> {
    node.drained.as_ref().map(|_| (DRAINED, None))
}

fn change_metadata(node: &Node, edits: &MetadataEdits) -> NodeDecision {
    let change = metadata::change(node, edits);
    match &change {
        NodeChange::Metadata { field, before, after } => {
            let step = metadata::step(node, *field, before, after);
            let undo = NodeUndo::new(node.name.clone(), node.uid.clone(), &change);
            NodeDecision::Write(RequestKind::Write(step), undo)
        }
        NodeChange::Refused { text } => NodeDecision::GiveUp(NodeIncomplete::Failed(text.clone())),
        NodeChange::Unchanged { .. }
        | NodeChange::Cordon
        | NodeChange::Uncordon
        | NodeChange::Taints { .. }
        | NodeChange::Deletion => NodeDecision::Unchanged,
    }
}

fn shown(taints: &[Taint]) -> String {
    let words: Vec<String> = taints.iter().map(ToString::to_string).collect();
    if words.is_empty() { "none".into() } else { words.join(", ") }
}
