//! Nodes that were replaced during a maintenance.

use crate::journal::JournaledOperation;
use kordon_core::cluster::{Cluster, MaintenanceNote, MaintenanceStage, NodeName, Uid};
use kordon_time::Timestamp;

/// The nodes of a journaled maintenance whose Node object has been created anew, with the notes that they would have.
/// These nodes only have to become healthy. `by` is the user that resumes the maintenance.
pub fn replaced(
    cluster: &Cluster,
    past: &JournaledOperation,
    by: &str,
    now: Timestamp,
) -> Vec<(NodeName, MaintenanceNote)> {
    let is_new = |(name, uid): &&(NodeName, Uid)| cluster.node(name).is_none_or(|node| node.uid != *uid);
    let note = |(name, uid): &(NodeName, Uid)| {
        let note = MaintenanceNote {
            by: by.to_owned(),
            operation: past.id.clone(),
            stage: MaintenanceStage::Returning,
            renewed: now,
            before: uid.to_string(),
            paused: None,
        };
        (name.clone(), note)
    };
    past.start.nodes.iter().filter(is_new).map(note).collect()
}
