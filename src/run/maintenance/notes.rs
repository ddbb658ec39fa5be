//! The annotations of a maintenance on its nodes: the stage of each, and whether the maintenance runs or is paused.

use std::collections::BTreeSet;

use super::{InputFrom, MaintenanceRun, stop::Stop};
use kordon_core::{
    cluster::{
        MaintenanceNote, MaintenanceNotes, MaintenanceStage, Node, NodeName, OperationId, Uid,
        maintenance_note::RENEW_NOTE_EVERY,
    },
    engine::Severity,
    operation::{MaintenanceWrite, NodeIncomplete, NodeProgress, NodeProgressStage, Operation, OperationEnd},
};
use kordon_time::Timestamp;

impl MaintenanceRun<'_> {
    /// Returns the write of the annotation that records a node's maintenance stage. The write leaves the node cordoned
    /// or uncordoned, as it is.
    pub(super) fn staged(
        &self,
        name: &NodeName,
        stage: MaintenanceStage,
        before: &str,
    ) -> (NodeName, MaintenanceWrite) {
        let cordoned = self.watched.cluster().node(name).is_some_and(|node| node.unschedulable);
        let (before, paused) = (before.into(), self.paused_since);
        (name.clone(), MaintenanceWrite::Mark { stage, cordoned, before, paused })
    }

    /// Notes since when nothing goes on, or that the maintenance goes on. The next look writes it to a node.
    pub(super) fn note_pause(&mut self, since: Option<Timestamp>) {
        if self.paused_since.is_some() != since.is_some() {
            self.paused_since = since;
            self.renews_at = self.now();
        }
    }

    /// Writes the annotations that record the maintenance stages of nodes, once the maintenance is not paused. Nodes that
    /// are gone are left out.
    pub(super) async fn write(&mut self, writes: Vec<(NodeName, MaintenanceWrite)>) -> Result<(), Stop> {
        self.rest_while_paused().await?;
        self.write_while_paused(writes).await
    }

    /// Writes these annotations even while the maintenance is paused.
    pub(super) async fn write_while_paused(
        &mut self,
        writes: Vec<(NodeName, MaintenanceWrite)>,
    ) -> Result<(), Stop> {
        let cluster = self.watched.cluster();
        let found: Vec<(NodeName, Uid, MaintenanceWrite)> = writes
            .into_iter()
            .filter_map(|(name, write)| {
                let node = cluster.node(&name).filter(|node| is_due(&write, node, &self.lock.id))?;
                Some((name, node.uid.clone(), write))
            })
            .collect();
        self.write_to(found).await
    }

    async fn write_to(&mut self, writes: Vec<(NodeName, Uid, MaintenanceWrite)>) -> Result<(), Stop> {
        if writes.is_empty() {
            return Ok(());
        }
        let resumes = writes.iter().any(|(_, _, write)| *write == MaintenanceWrite::Resume);
        for (name, _, write) in &writes {
            match write {
                MaintenanceWrite::Release | MaintenanceWrite::Leave => {
                    self.written.insert(name.clone(), false)
                }
                MaintenanceWrite::Mark { .. } => self.written.insert(name.clone(), true),
                MaintenanceWrite::Resume | MaintenanceWrite::Renew { .. } | MaintenanceWrite::Stop => None,
            };
        }
        let (options, rules) = (self.operation_options(), self.watched.rules());
        let operation = Operation::maintain(writes, options, rules, self.watched.cluster(), self.now());
        let link = self.context.start_executor(&self.lock);
        let (operation, ..) = self.drive(operation, link, InputFrom::Nobody).await;
        self.renews_at = self.now() + RENEW_NOTE_EVERY;
        match operation.ended() {
            None => return Err(Stop::Killed),
            Some(OperationEnd::Cancelled) => return Err(Stop::Cancelled),
            Some(_) => {}
        }
        let nodes = operation.progress().nodes;
        let is_unchanged = |node: &&NodeProgress| node.stage == NodeProgressStage::Unchanged;
        let not_noted = nodes.iter().filter(|_| resumes).filter(is_unchanged);
        self.written.extend(not_noted.map(|node| (node.node.clone(), false)));
        if let Some(stop) = nodes.iter().find_map(|node| self.taken_over(&node.stage)) {
            return Err(stop);
        }
        let failed = nodes.into_iter().find_map(|node| match node.stage {
            NodeProgressStage::Incomplete(NodeIncomplete::Gone | NodeIncomplete::OtherNode) => None,
            NodeProgressStage::Incomplete(why) => Some(format!("{}: {why}", node.node)),
            _ => None,
        });
        failed.map_or(Ok(()), |text| Err(Stop::Failed(text)))
    }

    /// Returns that another process has resumed the maintenance, if a node was given up for that.
    pub(super) fn taken_over(&self, stage: &NodeProgressStage) -> Option<Stop> {
        match stage {
            NodeProgressStage::Incomplete(NodeIncomplete::ClaimedByOther { by, operation })
                if *operation == self.lock.id =>
            {
                Some(Stop::TakenOver(by.clone()))
            }
            _ => None,
        }
    }

    /// Takes over the annotations of a maintenance that was stopped, before anything else is done. If several processes
    /// resume it at once, the first node decides which of them goes on. The watches may still show the note of a node that
    /// somebody has released; the node is not in this maintenance any more.
    pub(super) async fn take_notes(&mut self) -> Result<(), Stop> {
        let notes = MaintenanceNotes::find(self.watched.cluster(), &self.lock.id);
        let mut names = notes.into_iter().flat_map(|notes| notes.nodes.into_keys());
        let first: Vec<NodeName> = names.by_ref().take(1).collect();
        for names in [first, names.collect()] {
            let writes = names.into_iter().map(|name| (name, MaintenanceWrite::Resume)).collect();
            self.write_while_paused(writes).await?;
        }
        Ok(())
    }

    /// Renews the maintenance annotation of one node, so that others see that the maintenance is still running.
    pub(super) async fn renew(&mut self) -> Result<(), Stop> {
        let Some(name) = self.noted(|_| true).pop_first() else { return Ok(()) };
        let Some(node) = self.watched.cluster().node(&name) else { return Ok(()) };
        let (uid, paused) = (node.uid.clone(), self.paused_since);
        self.write_to(vec![(name, uid, MaintenanceWrite::Renew { paused })]).await
    }

    /// Writes into the notes of the remaining nodes that the maintenance was stopped. Otherwise, it would count as
    /// running until the notes are old.
    pub(super) async fn mark_stopped(&mut self) {
        let now = self.now();
        let cluster = self.watched.cluster();
        let write = |name: NodeName| {
            let uid = cluster.node(&name)?.uid.clone();
            Some((name, uid, MaintenanceWrite::Stop))
        };
        let writes = self.noted(|note| note.is_fresh(now)).into_iter().filter_map(write).collect();
        if let Err(Stop::Failed(text)) = self.write_to(writes).await {
            self.tell(Severity::Warning, "", format!("counts as running for some minutes: {text}")).await;
        }
    }

    /// Returns the nodes with a note of this maintenance: those that this process has marked and not released, and of
    /// those that the watches show, the ones whose notes are `wanted`.
    fn noted(&self, wanted: impl Fn(&MaintenanceNote) -> bool) -> BTreeSet<NodeName> {
        let shown = MaintenanceNotes::find(self.watched.cluster(), &self.lock.id);
        let shown = shown.into_iter().flat_map(|notes| notes.nodes).filter(|(_, note)| wanted(note));
        let shown = shown.map(|(name, _)| name).filter(|name| !self.written.contains_key(name));
        let written = self.written.iter().filter(|(_, is_noted)| **is_noted).map(|(name, _)| name.clone());
        shown.chain(written).collect()
    }

    /// Removes the annotations of this maintenance from nodes, and uncordons the nodes that it has cordoned.
    pub(super) async fn release(&mut self, nodes: Vec<NodeName>) -> Result<(), Stop> {
        self.write(nodes.into_iter().map(|name| (name, MaintenanceWrite::Release)).collect()).await
    }
}

/// Returns the write of the annotation that records a node's maintenance stage.
pub fn mark(stage: MaintenanceStage, cordoned: bool, before: &str) -> MaintenanceWrite {
    MaintenanceWrite::Mark { stage, cordoned, before: before.into(), paused: None }
}

/// Whether a write to a node of the maintenance `id` may change the node, which is shown as the watches have it. They may
/// not have the latest note and cordon yet, so every release is due: the node is read before it is written.
fn is_due(write: &MaintenanceWrite, shown: &Node, id: &OperationId) -> bool {
    match (write, &shown.maintenance) {
        (MaintenanceWrite::Mark { stage, cordoned, .. }, Some(note)) => {
            note.operation != *id || note.stage != *stage || shown.unschedulable != *cordoned
        }
        (MaintenanceWrite::Mark { .. }, None) => true,
        (MaintenanceWrite::Resume | MaintenanceWrite::Renew { .. } | MaintenanceWrite::Stop, note) => {
            note.is_some()
        }
        (MaintenanceWrite::Release | MaintenanceWrite::Leave, _) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise, a rollback right after the first notes would leave their nodes cordoned.
    #[test]
    fn a_node_whose_note_the_watches_do_not_have_yet_is_released() {
        let (shown, id) = (Node::default(), "m1".parse().expect("an id"));
        assert!(is_due(&MaintenanceWrite::Release, &shown, &id));
        assert!(is_due(&MaintenanceWrite::Leave, &shown, &id));
        assert!(!is_due(&MaintenanceWrite::Stop, &shown, &id));
    }
}
