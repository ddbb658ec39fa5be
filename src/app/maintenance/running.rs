//! Maintenances that were started from the dashboard, and the steps before their start.

use super::MaintenanceRequest;
use crate::{app::notice_log::NoticeLog, model::Model};
use kordon_core::{
    cluster::{Cluster, MaintenanceNotes, OperationId},
    maintenance::{
        MaintenanceEnd, MaintenanceEndKind, MaintenanceNews, MaintenanceOutcome, MaintenancePlan, NodeRecord,
    },
    operation::{DrainCount, approval::Prompt},
};
use kordon_time::Timestamp;

/// A maintenance that waits for the operator's confirmation.
#[derive(Clone, Debug)]
pub struct MaintenanceProposal {
    pub request: MaintenanceRequest,
    pub plan: MaintenancePlan,
    pub prompt: Prompt,
}

/// A maintenance that was stopped and is to be resumed or released, and waits for the operator's confirmation.
#[derive(Clone, Debug)]
pub struct StoppedProposal {
    pub notes: MaintenanceNotes,
    pub way: StoppedWay,
    pub prompt: Prompt,
}

/// How a maintenance that was stopped comes to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoppedWay {
    /// The rest of it is carried out.
    Resume,
    /// Its nodes are uncordoned, and it is over.
    Release,
}

/// A maintenance that is to start, to be resumed or to be released.
#[derive(Clone, Debug)]
pub struct MaintenanceStart {
    pub subject: StartSubject,
    /// The reason that the operator gives.
    pub reason: String,
}

#[derive(Clone, Debug)]
pub enum StartSubject {
    New(Box<MaintenanceRequest>),
    Stopped(OperationId, StoppedWay),
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

/// What other processes have done with a maintenance that stopped here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoneOn {
    /// Another process has resumed it.
    Resumed,
    /// No node is in it any more: another process has resumed it to its end, or released its nodes.
    Over,
}

/// An event of a maintenance, which runs outside of the dashboard's event loop.
#[derive(Clone, Debug)]
pub enum MaintenanceEvent {
    /// The maintenance did not start; the text says why.
    NotStarted(String),
    /// The start of the maintenance is in the journal.
    Started(OperationId, Box<MaintenancePlan>),
    /// The journal has that a maintenance which was stopped goes on.
    Resumed(OperationId),
    /// The nodes of a maintenance which was stopped are released.
    Released(OperationId),
    News(MaintenanceNews),
    /// The maintenance has ended, or its end could not be recorded.
    Ended(Result<Box<MaintenanceEnd>, String>),
}

impl MaintenanceEntry {
    pub const fn is_running(&self) -> bool {
        !matches!(self.state, MaintenanceState::Ended { .. })
    }

    /// Number of pods that have left their nodes, including those of drains that are not over.
    pub fn moved(&self, model: &Model) -> usize {
        self.outcome.moves + self.drains(model).map(|count| count.gone).sum::<usize>()
    }

    /// Number of pods that are evicted and not gone yet. A pause does not keep them.
    pub fn terminating(&self, model: &Model) -> usize {
        self.drains(model).map(|count| count.terminating).sum()
    }

    /// The progress of the drains that are not over. Empty once the maintenance has ended.
    fn drains<'a>(&'a self, model: &'a Model) -> impl Iterator<Item = DrainCount> + 'a {
        let is_draining = |record: &NodeRecord| record.drained.is_none() && record.failed.is_none();
        let running = self.outcome.nodes.iter().filter(|_| self.is_running());
        running.filter_map(move |(name, record)| {
            let node = model.cluster.node(name).filter(|_| is_draining(record))?;
            node.drain_claim.as_ref().filter(|claim| claim.operation == self.id)?;
            model.drain_count(node)
        })
    }

    /// What other processes have done with the maintenance since it stopped here, as the annotations of the nodes show
    /// it; `None` if they show nothing, or if the maintenance cannot be resumed.
    pub fn gone_on(&self, cluster: &Cluster) -> Option<GoneOn> {
        let MaintenanceState::Ended { kind: Some(kind), at, .. } = self.state else { return None };
        if kind.journaled().is_some() {
            return None;
        }
        match MaintenanceNotes::find(cluster, &self.id) {
            Some(notes) => (notes.renewed() > Some(at)).then_some(GoneOn::Resumed),
            // Nodes are annotated before the first of them is drained. Before that, they have no annotation to lose.
            None => {
                let is_annotated = |record: &NodeRecord| record.drained.is_some() || record.failed.is_some();
                self.outcome.nodes.values().any(is_annotated).then_some(GoneOn::Over)
            }
        }
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
