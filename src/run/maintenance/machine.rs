//! Progress of the work on one machine.

use tokio::sync::oneshot::{self, error::TryRecvError};

use kordon_core::cluster::{MaintenanceStage, NodeName};
use kordon_time::Timestamp;

/// The work on one machine, whose node is already empty.
pub struct MachineWork {
    pub name: NodeName,
    /// State of the node before the work, which `--wait-for` compares with the state after it.
    pub before: String,
    pub stage: WorkStage,
    pub begun: Timestamp,
}

/// A running command of the operator.
pub struct RunningHook(pub oneshot::Receiver<Result<(), String>>);

const HOOK_FAULT: &str = "it ended by a fault of kordon";

pub enum WorkStage {
    /// The operator's command is running, or has not started yet (`None`).
    Command(Option<RunningHook>),
    /// Somebody else does the work on the machine.
    Awaited,
    /// The work is done. `since` is the time from which the node has been healthy; `None` while it is not healthy.
    Returning {
        since: Option<Timestamp>,
    },
    Over,
}

impl RunningHook {
    /// Waits for the end of the command, and returns its result.
    pub async fn end(&mut self) -> Result<(), String> {
        (&mut self.0).await.unwrap_or_else(|_| Err(HOOK_FAULT.into()))
    }

    /// The result of the command; `None` if it still runs.
    pub fn result(&mut self) -> Option<Result<(), String>> {
        match self.0.try_recv() {
            Ok(result) => Some(result),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Closed) => Some(Err(HOOK_FAULT.into())),
        }
    }
}

impl MachineWork {
    /// Creates the work on a machine that is at `stage` of its maintenance.
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
