//! The writes of a maintenance to a node.

use crate::cluster::MaintenanceStage;

/// A write of a maintenance to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MaintenanceWrite {
    /// Notes the stage on the node. `cordoned` says whether the node is to be cordoned; a cordon of somebody else is
    /// left alone. `before` is the state of the machine before its work.
    Mark { stage: MaintenanceStage, cordoned: bool, before: String },
    /// Removes the note, and uncordons the node if this maintenance cordoned it.
    Release,
}
