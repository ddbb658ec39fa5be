//! Maintenances that were started from the dashboard, and the steps before their start.

use super::MaintenanceRequest;
use crate::app::notice_log::NoticeLog;
use kordon_core::{
    cluster::OperationId,
    maintenance::{MaintenanceEnd, MaintenanceEndKind, MaintenanceNews, MaintenanceOutcome, MaintenancePlan},
    operation::approval::Prompt,
};
use kordon_time::Timestamp;

/// A maintenance that waits for the operator's confirmation.
#[derive(Clone, Debug)]
pub struct MaintenanceProposal {
    pub request: MaintenanceRequest,
    pub plan: MaintenancePlan,
    pub prompt: Prompt,
}

/// A maintenance that is to start.
#[derive(Clone, Debug)]
pub struct MaintenanceStart {
    pub request: MaintenanceRequest,
    /// The reason that the operator gives.
    pub reason: String,
}

/// A maintenance that was started from this dashboard.
#[derive(Clone, Debug)]
pub struct MaintenanceEntry {
    /// Number of the job that started the maintenance.
    pub(in crate::app) number: u64,
    pub id: OperationId,
    pub began: Timestamp,
    pub outcome: MaintenanceOutcome,
    pub notices: NoticeLog,
    pub state: MaintenanceState,
}

/// The state of a maintenance.
#[derive(Clone, Debug, PartialEq)]
pub enum MaintenanceState {
    Running,
    Paused,
    /// The maintenance stops once the running commands end.
    Cancelling,
    /// The maintenance has ended or stopped.
    Ended {
        /// How the maintenance ended; `None` if the end could not be recorded.
        kind: Option<MaintenanceEndKind>,
        at: Timestamp,
        says: String,
    },
}

/// An event of a maintenance, which runs outside of the dashboard's event loop.
#[derive(Clone, Debug)]
pub enum MaintenanceEvent {
    /// The maintenance did not start; the text says why.
    NotStarted(String),
    /// The start of the maintenance is in the journal.
    Started(OperationId, Box<MaintenancePlan>),
    News(MaintenanceNews),
    /// The maintenance has ended, or its end could not be recorded.
    Ended(Result<Box<MaintenanceEnd>, String>),
}

impl MaintenanceEntry {
    pub const fn is_running(&self) -> bool {
        !matches!(self.state, MaintenanceState::Ended { .. })
    }

    /// The id and the state of the maintenance, as in `maintenance-1 runs`.
    pub fn title(&self) -> String {
        format!("{} {}", self.id, self.state_in_words())
    }

    /// The state of the maintenance as words that follow its title: `runs`, `is paused`.
    pub const fn state_in_words(&self) -> &'static str {
        match self.state {
            MaintenanceState::Running => "runs",
            MaintenanceState::Paused => "is paused",
            MaintenanceState::Cancelling => "stops after the commands that run",
            MaintenanceState::Ended { kind: Some(kind), .. } => match kind {
                MaintenanceEndKind::Done => "is done",
                MaintenanceEndKind::Partly => "is done in part",
                MaintenanceEndKind::Paused => "has stopped",
                MaintenanceEndKind::RolledBack => "was rolled back",
                MaintenanceEndKind::Cancelled => "was cancelled",
            },
            MaintenanceState::Ended { kind: None, .. } => "has ended without its end in the journal",
        }
    }
}
