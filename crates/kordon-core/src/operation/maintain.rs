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
        let note = seen.maintenance.as_ref()?;
        let is_ours =
            note.operation == self.options.id || Some(&note.operation) == self.options.undoes.as_ref();
        if is_ours || !self.nodes[place].disturbs_maintenance() {
            return None;
        }
        let MaintenanceNote { by, operation, .. } = (**note).clone();
        if note.is_fresh(now) && !self.options.take_over {
            return Some(NodeIncomplete::ClaimedByOther { by, operation });
        }
        if !self.nodes[place].is_maintained() {
            return None;
        }
        let (subject, text) =
            (self.nodes[place].subject(), format!("taken over from {operation}, a maintenance of {by}"));
        self.notify(now, Severity::Warning, subject, text);
        None
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
        let is_noted = seen.maintenance.as_ref().is_some_and(|note| note.operation == *id);
        let is_ours = seen.cordon().is_some_and(|note| note.operation.as_ref() == Some(id));
        let wants = match write {
            MaintenanceWrite::Mark { cordoned, .. } => *cordoned,
            MaintenanceWrite::Stop => seen.unschedulable,
            MaintenanceWrite::Release => false,
            MaintenanceWrite::Leave => seen.unschedulable,
        };
        let note = match write {
            MaintenanceWrite::Mark { stage, before, .. } => {
                let (by, operation) = (self.options.by.clone(), id.clone());
                let note =
                    MaintenanceNote { by, operation, stage: *stage, renewed: now, before: before.clone() };
                Some(note.to_text())
            }
            MaintenanceWrite::Stop => match seen.maintenance.as_ref().filter(|_| is_noted) {
                Some(note) => Some((**note).clone().stopped().to_text()),
                None => return NodeDecision::Unchanged,
            },
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
            (false, true) => {
                notes.push((CORDON, Some(self.cordon_note(now).to_text())));
                undo = NodeUndo::new(seen.name.clone(), seen.uid.clone(), &NodeChange::Cordon);
                Some(true)
            }
            (true, false) if is_ours => {
                notes.push((CORDON, None));
                notes.extend(forget_drained(seen));
                Some(false)
            }
            (true, _) | (false, false) => None,
        };
        self.nodes[place].cordons = is_ours && wants || unschedulable == Some(true);
        let (node, uid, version) = (seen.name.clone(), seen.uid.clone(), Some(seen.version));
        NodeDecision::Write(RequestKind::Patch(NodePatch { node, uid, version, unschedulable, notes }), undo)
    }
}
