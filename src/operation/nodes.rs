//! Writes to nodes: each node is read first, and the write is bound to what was read.

use super::{
    NodeIncomplete, NodePatch, NodeProgressStage, Operation, OperationOptions, RequestKind, RequestOutcome,
    Severity, Subject, backoff, tasks::TaskIndex,
};
use crate::{
    cluster::{
        Cluster, CordonNote, DrainClaim, Node, NodeName, OperationId, Taint, Uid,
        claim::{CORDON, DRAIN, RENEW_EVERY},
    },
    plan::{
        LabelEdits, NodeChange, PlanStep, TaintEdits, label,
        undo::{NodeUndo, UndoStep},
    },
    time::{Span, Timestamp},
};

/// A node and its goal.
#[derive(Clone, Debug)]
pub(super) struct NodeTask {
    pub(super) node: NodeName,
    uid: Uid,
    wanted: NodeGoal,
    stage: Stage,
    /// As the report shows it.
    pub(super) shown: NodeProgressStage,
    tries: u32,
    /// Whether this operation cordoned it.
    pub(super) cordoned: bool,
    /// Whether the write in flight cordons it.
    cordons: bool,
    /// Whether it carries our claim.
    pub(super) marked: bool,
    /// When the claim is renewed next; none while a renewal is in flight.
    renew_at: Option<Timestamp>,
    releasing: bool,
    releases: u32,
    /// The taints last sent: if a read after a lost answer shows them, they were written.
    sent: Option<Vec<Taint>>,
}

/// What the operation wants of a node.
#[derive(Clone, Debug)]
pub(super) enum NodeGoal {
    /// Cordoned and claimed for a drain.
    Claim,
    Cordon {
        on: bool,
    },
    Taints {
        edits: TaintEdits,
        planned: Option<Vec<Taint>>,
    },
    Labels {
        edits: LabelEdits,
    },
    Back(NodeUndo),
    /// The plan refuses it.
    Nothing {
        refused: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Waits { until: Timestamp },
    Looks,
    Writes,
    Settled,
}

/// What to do after a node was read.
enum Judgement {
    Stop(NodeIncomplete),
    Unchanged,
    Write(RequestKind, Option<NodeUndo>),
}

pub(super) type NodeIndex = TaskIndex<NodeTask>;

/// Attempts on a node before it is given up.
const TRIES: u32 = 10;

/// Attempts to remove a claim.
const RELEASES: u32 = 3;

impl NodeTask {
    pub(super) fn new(node: NodeName, uid: Uid, wanted: NodeGoal, now: Timestamp) -> Self {
        let (stage, shown) = match &wanted {
            NodeGoal::Nothing { refused } => {
                (Stage::Settled, NodeProgressStage::Stopped(NodeIncomplete::Failed(refused.clone())))
            }
            NodeGoal::Claim
            | NodeGoal::Cordon { .. }
            | NodeGoal::Taints { .. }
            | NodeGoal::Labels { .. }
            | NodeGoal::Back(_) => (Stage::Waits { until: now }, NodeProgressStage::Waits),
        };
        Self {
            node,
            uid,
            wanted,
            stage,
            shown,
            tries: 0,
            cordoned: false,
            cordons: false,
            marked: false,
            renew_at: None,
            releasing: false,
            releases: 0,
            sent: None,
        }
    }

    pub(super) fn is_settled(&self) -> bool {
        self.stage == Stage::Settled
    }

    pub(super) fn is_stopped(&self) -> bool {
        matches!(self.shown, NodeProgressStage::Stopped(_))
    }

    pub(super) fn wait(&mut self, until: Timestamp) {
        self.stage = Stage::Waits { until };
    }

    /// When it is read next.
    pub(super) fn looks_at(&self) -> Option<Timestamp> {
        match self.stage {
            Stage::Waits { until } => Some(until),
            Stage::Looks | Stage::Writes | Stage::Settled => None,
        }
    }

    /// When its claim is renewed next.
    pub(super) const fn renews_at(&self) -> Option<Timestamp> {
        self.renew_at
    }

    fn settle(&mut self, shown: NodeProgressStage) {
        self.stage = Stage::Settled;
        self.shown = shown;
    }

    fn subject(&self) -> String {
        format!("node/{}", self.node)
    }
}

impl Operation {
    /// Reads the nodes that are due.
    pub(super) fn advance_nodes(&mut self, now: Timestamp) {
        for place in self.nodes.indices() {
            let node = &mut self.nodes[place];
            if matches!(node.stage, Stage::Waits { until } if until <= now) {
                node.stage = Stage::Looks;
                node.tries += 1;
                let (task, why) =
                    (RequestKind::LookAtNode { node: node.node.clone() }, self.because("before writing"));
                self.send(Subject::Node(place), task, why, None, now);
            }
        }
    }

    /// Handles the outcome of a read of a node, or of a write to it.
    pub(super) fn on_node(
        &mut self,
        cluster: &Cluster,
        place: NodeIndex,
        outcome: RequestOutcome,
        now: Timestamp,
    ) {
        let node = &mut self.nodes[place];
        if node.stage == Stage::Settled {
            // Stopped meanwhile; what was written stays known.
            if outcome == RequestOutcome::Done && matches!(node.wanted, NodeGoal::Claim) {
                node.marked = true;
                node.cordoned = node.cordons;
            }
            return;
        }
        let looked = node.stage == Stage::Looks;
        match outcome {
            RequestOutcome::Node(seen) => self.judged(place, &seen, now),
            // In a dry-run the node is taken as the watch last told of it.
            RequestOutcome::Recorded if looked => match cluster.node(&node.node) {
                Some(known) => {
                    let known = known.clone();
                    self.judged(place, &known, now);
                }
                None => self.stop_node(place, NodeIncomplete::Gone, now),
            },
            RequestOutcome::Recorded => node.settle(NodeProgressStage::Recorded),
            RequestOutcome::Done => self.on_written(place, now),
            RequestOutcome::Gone => self.stop_node(place, NodeIncomplete::Gone, now),
            RequestOutcome::OtherObject => self.stop_node(place, NodeIncomplete::OtherNode, now),
            RequestOutcome::Forbidden(text) => self.stop_node(place, NodeIncomplete::Forbidden(text), now),
            RequestOutcome::Refused(text) => self.stop_node(place, NodeIncomplete::Failed(text), now),
            RequestOutcome::Conflict => {
                self.try_node_again(place, Span::from_millis(200), "has changed", now)
            }
            RequestOutcome::Overloaded { retry_after } => {
                self.try_node_again(
                    place,
                    retry_after.unwrap_or_default(),
                    "the server has too much to do",
                    now,
                );
            }
            RequestOutcome::Failed(text) | RequestOutcome::Unreachable(text) => {
                self.try_node_again(place, Span::ZERO, &text, now);
            }
            RequestOutcome::NoAnswer => self.try_node_again(place, Span::ZERO, "no answer", now),
            RequestOutcome::Pods(_)
            | RequestOutcome::BudgetExhausted(_)
            | RequestOutcome::BudgetStale { .. }
            | RequestOutcome::NamespaceTerminating => {
                self.stop_node(place, NodeIncomplete::Failed("the answer makes no sense".into()), now);
            }
        }
    }

    fn on_written(&mut self, place: NodeIndex, now: Timestamp) {
        let node = &mut self.nodes[place];
        node.cordoned = node.cordons;
        match node.wanted {
            // There may be more to undo.
            NodeGoal::Back(_) => node.wait(now),
            NodeGoal::Claim => {
                node.marked = true;
                node.renew_at = Some(now + RENEW_EVERY);
                node.settle(NodeProgressStage::Written);
            }
            NodeGoal::Cordon { .. }
            | NodeGoal::Taints { .. }
            | NodeGoal::Labels { .. }
            | NodeGoal::Nothing { .. } => node.settle(NodeProgressStage::Written),
        }
        let text = match self.nodes[place].wanted {
            NodeGoal::Claim if self.nodes[place].cordoned => "cordoned and marked as being drained",
            NodeGoal::Claim => "marked as being drained; it was cordoned before",
            NodeGoal::Cordon { on: true } => "cordoned",
            NodeGoal::Cordon { on: false } => "uncordoned",
            NodeGoal::Taints { .. } => "taints set",
            NodeGoal::Labels { .. } => "labels set",
            NodeGoal::Back(_) | NodeGoal::Nothing { .. } => "undone",
        };
        self.note(now, Severity::Info, self.nodes[place].subject(), text.into());
    }

    fn try_node_again(&mut self, place: NodeIndex, at_least: Span, why: &str, now: Timestamp) {
        let node = &mut self.nodes[place];
        if node.tries >= TRIES {
            return self.stop_node(place, NodeIncomplete::Failed(format!("{why}, after {TRIES} tries")), now);
        }
        let wait = backoff(node.tries.saturating_sub(1)).max(at_least);
        node.wait(now + wait);
        let (subject, text) = (node.subject(), format!("{why}; tries again in {wait}"));
        self.note(now, Severity::Warning, subject, text);
    }

    fn stop_node(&mut self, place: NodeIndex, stop: NodeIncomplete, now: Timestamp) {
        let node = &mut self.nodes[place];
        let (subject, text) = (node.subject(), stop.to_string());
        node.settle(NodeProgressStage::Stopped(stop));
        self.note(now, Severity::Error, subject, text);
    }

    /// Ends all nodes that are incomplete.
    pub(super) fn stop_nodes(&mut self, stop: &NodeIncomplete) {
        for node in self.nodes.iter_mut() {
            match node.shown {
                NodeProgressStage::Waits
                | NodeProgressStage::Drains { .. }
                | NodeProgressStage::Verifying => {
                    node.settle(NodeProgressStage::Stopped(stop.clone()));
                }
                NodeProgressStage::Written if matches!(node.wanted, NodeGoal::Claim) => {
                    node.settle(NodeProgressStage::Stopped(stop.clone()));
                }
                NodeProgressStage::Written
                | NodeProgressStage::Unchanged
                | NodeProgressStage::Drained { .. }
                | NodeProgressStage::Recorded
                | NodeProgressStage::Stopped(_) => {}
            }
        }
    }

    fn judged(&mut self, place: NodeIndex, seen: &Node, now: Timestamp) {
        match self.judge(place, seen, now) {
            Judgement::Stop(stop) => self.stop_node(place, stop, now),
            Judgement::Unchanged => {
                let node = &mut self.nodes[place];
                let again = matches!(node.wanted, NodeGoal::Back(_)) && node.tries > 1;
                node.settle(if again { NodeProgressStage::Written } else { NodeProgressStage::Unchanged });
            }
            Judgement::Write(task, undo) => {
                let node = &mut self.nodes[place];
                node.stage = Stage::Writes;
                let why = self.because("");
                self.send(Subject::Node(place), task, why, undo, now);
            }
        }
    }

    fn judge(&mut self, place: NodeIndex, seen: &Node, now: Timestamp) -> Judgement {
        if seen.uid != self.nodes[place].uid {
            return Judgement::Stop(NodeIncomplete::OtherNode);
        }
        if let Some(stop) = self.is_taken(place, seen, now) {
            return Judgement::Stop(stop);
        }
        match self.nodes[place].wanted.clone() {
            NodeGoal::Claim => self.claim(place, seen, now),
            NodeGoal::Cordon { on } => {
                self.nodes[place].cordons = on;
                self.cordon(seen, on, now)
            }
            NodeGoal::Taints { edits, planned } => self.taint(place, seen, &edits, planned.as_deref(), now),
            NodeGoal::Labels { edits } => label(seen, &edits),
            NodeGoal::Back(undo) => self.put_back(place, &undo, seen, now),
            NodeGoal::Nothing { refused } => Judgement::Stop(NodeIncomplete::Failed(refused)),
        }
    }

    /// Whether somebody else has a fresh claim on the node that we do not take over. An operation that was killed leaves its
    /// claim: that is no obstacle to its own undo.
    fn is_taken(&mut self, place: NodeIndex, seen: &Node, now: Timestamp) -> Option<NodeIncomplete> {
        let OperationOptions { id, undoes, .. } = &self.options;
        let is_ours = |operation: &OperationId| operation == id || Some(operation) == undoes.as_ref();
        let mark = seen.drain_claim.as_ref().filter(|mark| !is_ours(&mark.operation))?;
        let DrainClaim { by, operation, .. } = (**mark).clone();
        if mark.is_fresh(now) && !self.options.take_over {
            return Some(NodeIncomplete::ClaimedByOther { by, operation });
        }
        let how = if mark.is_fresh(now) { "is taken over as ordered" } else { "is old, and does not count" };
        let subject = self.nodes[place].subject();
        self.note(now, Severity::Warning, subject, format!("the mark of {by} (operation {operation}) {how}"));
        None
    }

    /// Cordons and claims in one write bound to the version that was read: of two concurrent attempts, one gets a conflict.
    fn claim(&mut self, place: NodeIndex, seen: &Node, now: Timestamp) -> Judgement {
        let node = seen;
        if self.options.prior.cordoned.contains(&node.name) && !node.unschedulable {
            return Judgement::Stop(NodeIncomplete::Uncordoned);
        }
        let ours =
            seen.cordon_note.as_ref().is_some_and(|note| note.operation.as_ref() == Some(&self.options.id));
        self.nodes[place].cordons = !node.unschedulable || ours;
        let mut notes = vec![(DRAIN, Some(self.mark(now).to_text()))];
        let mut undo = None;
        if !node.unschedulable {
            notes.push((CORDON, Some(self.cordon_note(now).to_text())));
            undo = NodeUndo::of(node.name.clone(), node.uid.clone(), &NodeChange::Cordon);
        }
        let patch = NodePatch {
            node: node.name.clone(),
            uid: node.uid.clone(),
            version: Some(node.version),
            unschedulable: (!node.unschedulable).then_some(true),
            notes,
        };
        Judgement::Write(RequestKind::Patch(patch), undo)
    }

    /// Bound to the uid alone: heartbeats change the version all the time, and nothing else of the node matters.
    fn cordon(&self, seen: &Node, on: bool, now: Timestamp) -> Judgement {
        let node = seen;
        if node.unschedulable == on {
            return Judgement::Unchanged;
        }
        let change = if on { NodeChange::Cordon } else { NodeChange::Uncordon };
        let patch = NodePatch {
            node: node.name.clone(),
            uid: node.uid.clone(),
            version: None,
            unschedulable: Some(on),
            notes: vec![(CORDON, on.then(|| self.cordon_note(now).to_text()))],
        };
        Judgement::Write(
            RequestKind::Patch(patch),
            NodeUndo::of(node.name.clone(), node.uid.clone(), &change),
        )
    }

    /// Computes the list again from the node as it was just read.
    fn taint(
        &mut self,
        place: NodeIndex,
        node: &Node,
        edits: &TaintEdits,
        planned: Option<&[Taint]>,
        now: Timestamp,
    ) -> Judgement {
        if self.nodes[place].sent.as_deref() == Some(&node.taints[..]) {
            // The answer was lost, the write was not.
            return Judgement::Unchanged;
        }
        let after = match edits.over(node) {
            Ok(after) => after,
            Err(text) => return Judgement::Stop(NodeIncomplete::Failed(text)),
        };
        if after[..] == node.taints[..] {
            return Judgement::Unchanged;
        }
        if planned.is_some_and(|planned| planned != after) {
            let (subject, taints) = (self.nodes[place].subject(), shown(&after));
            let text = format!("its taints have changed since the plan was made; they will be: {taints}");
            self.note(now, Severity::Warning, subject, text);
        }
        let (name, uid, version) = (node.name.clone(), node.uid.clone(), node.version);
        let change = NodeChange::Taints { before: node.taints.to_vec(), after: after.clone() };
        self.nodes[place].sent = Some(after.clone());
        let step = PlanStep::SetTaints { node: name.clone(), uid: uid.clone(), version, taints: after };
        Judgement::Write(RequestKind::Write(step), NodeUndo::of(name, uid, &change))
    }

    /// One step of an undo, unless somebody has changed the node since.
    fn put_back(&mut self, place: NodeIndex, undo: &NodeUndo, seen: &Node, now: Timestamp) -> Judgement {
        // Uncordoned is only what is cordoned by the very plan that is undone.
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
                self.note(now, Severity::Warning, subject, text);
            }
        }
        match steps.into_iter().next() {
            None => Judgement::Unchanged,
            Some(PlanStep::Cordon { node, uid, on }) => {
                let mut notes = vec![(CORDON, on.then(|| self.cordon_note(now).to_text()))];
                let claimed_by = seen.drain_claim.as_ref().map(|claim| &claim.operation);
                let is_left = claimed_by.is_some() && claimed_by == self.options.undoes.as_ref();
                if is_left {
                    notes.push((DRAIN, None));
                }
                // A claim goes only while it is the one that was read.
                let version = is_left.then_some(seen.version);
                let patch = NodePatch { node, uid, version, unschedulable: Some(on), notes };
                Judgement::Write(RequestKind::Patch(patch), None)
            }
            Some(step) => Judgement::Write(RequestKind::Write(step), None),
        }
    }

    /// Renews the claims that are due. Each node is read first: somebody may have taken it over.
    pub(super) fn renew(&mut self, now: Timestamp) {
        if matches!(self.phase, super::Phase::Closing { .. } | super::Phase::Over) {
            return;
        }
        for place in self.nodes.indices() {
            let node = &mut self.nodes[place];
            if node.renew_at.is_some_and(|at| at <= now) {
                node.renew_at = None;
                let task = RequestKind::LookAtNode { node: node.node.clone() };
                let why = self.because("to renew its mark");
                self.send(Subject::Renewal(place), task, why, None, now);
            }
        }
    }

    pub(super) fn on_renewal(&mut self, place: NodeIndex, outcome: RequestOutcome, now: Timestamp) {
        if !self.nodes[place].marked {
            return;
        }
        match outcome {
            RequestOutcome::Node(seen) => self.renewed(place, &seen, now),
            RequestOutcome::Done => self.nodes[place].renew_at = Some(now + RENEW_EVERY),
            RequestOutcome::Conflict => self.nodes[place].renew_at = Some(now + Span::from_millis(200)),
            RequestOutcome::Gone | RequestOutcome::OtherObject => {
                self.lose_node(place, NodeIncomplete::Gone, now)
            }
            other => {
                self.nodes[place].renew_at = Some(now + Span::from_secs(5));
                let (subject, text) =
                    (self.nodes[place].subject(), format!("its mark could not be renewed: {other}"));
                self.note(now, Severity::Warning, subject, text);
            }
        }
    }

    fn renewed(&mut self, place: NodeIndex, seen: &Node, now: Timestamp) {
        let node = &self.nodes[place];
        if seen.uid != node.uid {
            return self.lose_node(place, NodeIncomplete::OtherNode, now);
        }
        if let Some(mark) = seen.drain_claim.as_ref().filter(|mark| mark.operation != self.options.id) {
            let DrainClaim { by, operation, .. } = (**mark).clone();
            return self.lose_node(place, NodeIncomplete::ClaimedByOther { by, operation }, now);
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
            notes: vec![(DRAIN, Some(self.mark(now).to_text()))],
        };
        let why = self.because("to renew its mark");
        self.send(Subject::Renewal(place), RequestKind::Patch(patch), why, None, now);
    }

    /// The node is not ours any more: from now on neither it nor its pods are touched.
    fn lose_node(&mut self, place: NodeIndex, stop: NodeIncomplete, now: Timestamp) {
        self.nodes[place].marked = false;
        self.abandon(place, stop, now);
    }

    fn abandon(&mut self, place: NodeIndex, stop: NodeIncomplete, now: Timestamp) {
        if let Some(group) = self.groups.position(|group| group.node == Some(place)) {
            self.stop_pods(Some(group), &super::PodEnd::Cancelled);
            self.groups[group].finish();
        }
        self.stop_node(place, stop, now);
    }

    /// Removes our claims.
    pub(super) fn release(&mut self, now: Timestamp) {
        for place in self.nodes.indices() {
            let node = &mut self.nodes[place];
            if node.marked && !node.releasing {
                node.releasing = true;
                node.releases += 1;
                let (name, uid) = (node.node.clone(), node.uid.clone());
                let notes = vec![(DRAIN, None)];
                let patch = NodePatch { node: name, uid, version: None, unschedulable: None, notes };
                let why = self.because("it is over");
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
            | RequestOutcome::OtherObject => node.marked = false,
            _ if node.releases < RELEASES => node.releasing = false,
            other => {
                node.marked = false;
                let (subject, text) = (node.subject(), format!("its mark could not be taken off: {other}"));
                self.note(now, Severity::Warning, subject, text);
            }
        }
    }

    fn mark(&self, now: Timestamp) -> DrainClaim {
        let (by, operation) = (self.options.by.clone(), self.options.id.clone());
        DrainClaim { by, operation, renewed: now }
    }

    fn cordon_note(&self, now: Timestamp) -> CordonNote {
        let OperationOptions { by, why, until, id, .. } = self.options.clone();
        CordonNote { by, why, at: now, until, operation: Some(id) }
    }

    /// The reason of a write, for the journal.
    pub(super) fn because(&self, more: &str) -> String {
        let mut why = format!("operation {}", self.options.id);
        for part in [self.options.why.as_str(), more] {
            if !part.is_empty() {
                why.push_str(": ");
                why.push_str(part);
            }
        }
        why
    }
}

fn label(node: &Node, edits: &LabelEdits) -> Judgement {
    let after = match edits.over(node) {
        Ok(after) => after,
        Err(text) => return Judgement::Stop(NodeIncomplete::Failed(text)),
    };
    if after == *node.labels {
        return Judgement::Unchanged;
    }
    let change = NodeChange::Labels { before: node.labels.clone(), after: after.clone().into() };
    let undo = NodeUndo::of(node.name.clone(), node.uid.clone(), &change);
    Judgement::Write(RequestKind::Write(label::step(node, &after)), undo)
}

fn shown(taints: &[Taint]) -> String {
    let words: Vec<String> = taints.iter().map(ToString::to_string).collect();
    if words.is_empty() { "none".into() } else { words.join(", ") }
}
