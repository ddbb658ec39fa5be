//! The writes of a maintenance to a node.

use crate::cluster::MaintenanceStage;
use kordon_time::Timestamp;

/// A write of a maintenance to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MaintenanceWrite {
    /// Writes the stage of the maintenance into a note, an annotation of the node. `cordoned` says whether the node is
    /// to be cordoned; a cordon of somebody else is left alone. `before` is the state of the machine before its work.
    /// `paused` says since when the maintenance is paused.
    Mark { stage: MaintenanceStage, cordoned: bool, before: String, paused: Option<Timestamp> },
    /// Takes over the maintenance's note, as [`Self::Renew`] does, at the start of a resume. Fails if another process runs
    /// the maintenance, unless the operation may take nodes over.
    Resume,
    /// Writes into the maintenance's note that the maintenance runs, and since when it is `paused`. The stage and the cordon
    /// stay as the node has them, because the watches may not show the latest write yet.
    Renew { paused: Option<Timestamp> },
    /// Writes into the maintenance's note that the maintenance was stopped: it no longer counts as running.
    Stop,
    /// Removes the maintenance's note and claim from the node, and uncordons the node if this maintenance cordoned it.
    Release,
    /// Removes the maintenance's note and claim from the node, which stays cordoned or uncordoned, as it is.
    Leave,
}
