//! Writes of a maintenance to a node: its stage, a cordon until its turn, and the release at the end.

use super::{
    NodeIncomplete, NodePatch, Operation, RequestKind, Severity,
    maintenance_write::MaintenanceWrite,
    nodes::{NodeDecision, NodeIndex, forget_drained},
};
use crate::{
    cluster::{
        MaintenanceNote, Node,
        claim::{CORDON, DRAIN},
        maintenance_note::MAINTENANCE,
    },
    plan::{NodeChange, undo::NodeUndo},
};
use kordon_time::Timestamp;

impl Operation {
    /// Returns why this operation may not write to the node: another maintenance has the node. `None` if it may. Only
    /// this node's note is read here; the approval of the operation reads the notes of all nodes.
    pub(super) fn maintained_by_other(
        &mut self,
        place: NodeIndex,
        seen: &Node,
        now: Timestamp,
    ) -> Option<NodeIncomplete> {
        if let Some(other) = self.resumed_by_other(seen, now) {
            let takes_over = self.options.take_over && self.nodes[place].resumes();
            return (!takes_over).then_some(other);
        }
        let note = seen.maintenance.as_ref()?;
        let is_ours =
            note.operation == self.options.id || Some(&note.operation) == self.options.undoes.as_ref();
        if is_ours || !self.nodes[place].disturbs_maintenance() {
            return None;
        }
        let MaintenanceNote { by, operation, .. } = (**note).clone();
        let is_maintained = self.nodes[place].is_maintained();
        // A maintenance that was stopped can be resumed, so another one does not get its nodes either.
        if (note.is_fresh(now) || is_maintained) && !self.options.take_over {
            return Some(NodeIncomplete::ClaimedByOther { by, operation });
        }
        if !is_maintained {
            return None;
        }
        let (subject, text) =
            (self.nodes[place].subject(), format!("taken over from {operation}, a maintenance of {by}"));
        self.notify(now, Severity::Warning, subject, text);
        None
    }

    /// Returns that another process runs the same maintenance, as its note on the node shows; `None` if none does. Several
    /// processes may try to resume a maintenance, and a process that was asleep may wake up after a resume: only the one
    /// that renewed the note last may go on, so that nothing is done twice.
    pub(super) fn resumed_by_other(&self, seen: &Node, now: Timestamp) -> Option<NodeIncomplete> {
        let note = seen.maintenance.as_ref().filter(|note| note.operation == self.options.id)?;
        let (by, operation) = (note.by.clone(), note.operation.clone());
        let is_others = by != self.options.by && note.is_fresh(now);
        is_others.then_some(NodeIncomplete::ClaimedByOther { by, operation })
    }

    /// Decides what to write to a node of a maintenance. The write fails if the node has changed since it was read, so
    /// that only one of two maintenances can claim a node.
    pub(super) fn write_maintenance(
        &mut self,
        place: NodeIndex,
        write: &MaintenanceWrite,
        seen: &Node,
        now: Timestamp,
    ) -> NodeDecision {
        let id = &self.options.id;
        let noted = seen.maintenance.as_ref().map(|note| &note.operation);
        let cordoned_by = seen.cordon().and_then(|note| note.operation.as_ref());
        let is_noted = noted == Some(id);
        // With the node, this maintenance takes over the cordon of the maintenance that had the node.
        let takes_over = matches!(write, MaintenanceWrite::Mark { .. })
            && !is_noted
            && cordoned_by.is_some()
            && cordoned_by == noted;
        let is_ours = takes_over || cordoned_by == Some(id);
        let wants = match write {
            MaintenanceWrite::Mark { cordoned, .. } => *cordoned,
            MaintenanceWrite::Resume
            | MaintenanceWrite::Renew { .. }
            | MaintenanceWrite::Stop
            | MaintenanceWrite::Leave => seen.unschedulable,
            MaintenanceWrite::Release => false,
        };
        let renewed = |paused| {
            let (by, note) = (self.options.by.clone(), (**seen.maintenance.as_ref()?).clone());
            Some(MaintenanceNote { by, renewed: now, paused, ..note }.to_text())
        };
        let note = match write {
            MaintenanceWrite::Mark { stage, before, paused, .. } => {
                let (by, operation) = (self.options.by.clone(), id.clone());
                let (stage, before, paused) = (*stage, before.clone(), *paused);
                let note = MaintenanceNote { by, operation, stage, renewed: now, before, paused };
                Some(note.to_text())
            }
            MaintenanceWrite::Resume | MaintenanceWrite::Renew { .. } | MaintenanceWrite::Stop
                if !is_noted =>
            {
                return NodeDecision::Unchanged;
            }
            MaintenanceWrite::Resume => renewed(None),
            MaintenanceWrite::Renew { paused } => renewed(*paused),
            MaintenanceWrite::Stop => {
                seen.maintenance.as_ref().map(|note| (**note).clone().stopped().to_text())
            }
            MaintenanceWrite::Release if !is_noted && !is_ours => return NodeDecision::Unchanged,
            MaintenanceWrite::Leave if !is_noted => return NodeDecision::Unchanged,
            MaintenanceWrite::Release | MaintenanceWrite::Leave => None,
        };
        let (mut notes, mut undo) = (vec![(MAINTENANCE, note)], None);
        let is_claimed = seen.drain_claim.as_ref().is_some_and(|claim| claim.operation == *id);
        if is_claimed && matches!(write, MaintenanceWrite::Release | MaintenanceWrite::Leave) {
            // The drain was interrupted, and nothing continues it.
            notes.push((DRAIN, None));
        }
        let unschedulable = match (seen.unschedulable, wants) {
            (is_cordoned, true) if !is_cordoned || takes_over => {
                notes.push((CORDON, Some(self.cordon_note(now).to_text())));
                undo = NodeUndo::new(seen.name.clone(), seen.uid.clone(), &NodeChange::Cordon);
                (!is_cordoned).then_some(true)
            }
            (true, false) if is_ours => {
                notes.push((CORDON, None));
                notes.extend(forget_drained(seen));
                Some(false)
            }
            _ => None,
        };
        self.nodes[place].cordons = is_ours && wants || unschedulable == Some(true);
        let (node, uid, version) = (seen.name.clone(), seen.uid.clone(), Some(seen.version));
        NodeDecision::Write(RequestKind::Patch(NodePatch { node, uid, version, unschedulable, notes }), undo)
    }
}
