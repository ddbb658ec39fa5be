//! The work on one machine, as far as it has come.

use tokio::task::JoinHandle;

use kordon_core::cluster::{MaintenanceStage, NodeName};
use kordon_time::Timestamp;

/// A machine whose node is empty.
pub struct MachineWork {
    pub name: NodeName,
    /// What it showed before its work.
    pub before: String,
    pub stage: WorkStage,
    pub begun: Timestamp,
}

/// A command of the operator that runs.
pub type RunningHook = JoinHandle<Result<(), String>>;

pub enum WorkStage {
    /// The command is to run, or runs.
    Command(Option<RunningHook>),
    /// Others work on it.
    Awaited,
    /// The work is done. `since` is when the node was found well; `None` while it is not.
    Returning {
        since: Option<Timestamp>,
    },
    Over,
}

impl MachineWork {
    /// A machine that is at this stage of its maintenance.
    pub const fn new(name: NodeName, before: String, stage: MaintenanceStage, now: Timestamp) -> Self {
        let stage = match stage {
            MaintenanceStage::Waiting | MaintenanceStage::Draining | MaintenanceStage::Working => {
                WorkStage::Command(None)
            }
            MaintenanceStage::Awaited => WorkStage::Awaited,
            MaintenanceStage::Returning => WorkStage::Returning { since: None },
        };
        Self { name, before, stage, begun: now }
    }

    pub const fn is_over(&self) -> bool {
        matches!(self.stage, WorkStage::Over)
    }
}
