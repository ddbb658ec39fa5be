//! Starts maintenances from the dashboard and steers them.
//!
//! The dashboard's event loop (`run`) runs the maintenances: it starts one for a [`Job`], passes it the operator's
//! input, and receives its [`MaintenanceEvent`]s.

use super::{
    App,
    dialog::DialogSubject,
    maintenance::{
        MaintenanceEntry, MaintenanceEvent, MaintenanceProposal, MaintenanceRequest, MaintenanceSheet,
        MaintenanceStart, MaintenanceState, StartSubject, StoppedProposal, StoppedWay,
    },
    notice_log::NoticeLog,
    operations::Job,
};
use crate::model::JournalEntry;
use kordon_core::{
    cluster::{MaintenanceNotes, OperationId},
    engine::Severity,
    maintenance::{MaintenanceEnd, MaintenanceEndKind, MaintenanceNews, MaintenanceOutcome, MaintenancePlan},
    operation::{OperatorInput, approval::Prompt},
};
use kordon_time::Timestamp;

impl App {
    /// The running maintenance that this dashboard started or, if none is running, the last one.
    pub fn own_maintenance(&self) -> Option<&MaintenanceEntry> {
        self.operations.running_maintenance().or_else(|| self.operations.maintenances.last())
    }

    /// What is missing to start the maintenance of the open sheet; `None` if nothing is missing.
    pub fn missing_for_maintenance(&self, now: Timestamp) -> Option<String> {
        let sheet = self.screen.overlays.maintenance()?;
        let (plan, request) = (sheet.plan(), &sheet.request);
        if let Some(running) = self.operations.running_maintenance() {
            return Some(format!("{} runs here already", running.id));
        }
        if request.nodes.is_empty() {
            return Some("no node is marked".into());
        }
        let Some(plan) = plan else { return Some("the waves are not worked out yet".into()) };
        if plan.waves.is_empty() {
            return Some("no node can be in a wave".into());
        }
        if !request.has_work() {
            return Some("the work: a command, or what shows that others have done it".into());
        }
        let others = MaintenanceNotes::on_nodes(&self.model.cluster, &request.nodes, now);
        others.or_else(|| self.why_not_now())
    }

    /// Asks the operator to confirm the maintenance of the open sheet, or says what is missing.
    pub(in crate::app) fn ask_for_maintenance(&mut self, now: Timestamp) {
        if let Some(missing) = self.missing_for_maintenance(now) {
            self.screen.message = Some(missing);
            return;
        }
        let Some(sheet) = self.screen.overlays.maintenance() else { return };
        let Some(plan) = sheet.plan().cloned() else { return };
        let prompt = Prompt::Words(self.model.connection.context.clone());
        let proposal = MaintenanceProposal { request: sheet.request.clone(), plan, prompt };
        self.open_dialog(DialogSubject::Maintenance(Box::new(proposal)));
    }

    /// The maintenance that was stopped and that this dashboard can resume or release; `None` if there is none. If there
    /// are several, the one that this dashboard carried out last.
    pub fn stopped_maintenance(&self, now: Timestamp) -> Option<MaintenanceNotes> {
        let last = self.own_maintenance().map(|entry| &entry.id);
        let mut stopped = MaintenanceNotes::all(&self.model.cluster);
        stopped.retain(|notes| !notes.is_running(now));
        stopped.sort_by_key(|notes| Some(&notes.operation) != last);
        stopped.into_iter().next()
    }

    /// Whether the notes on nodes name a maintenance, and none of this dashboard is running.
    pub fn may_have_stopped_maintenance(&self) -> bool {
        self.screen.shows_maintenance()
            && self.operations.running_maintenance().is_none()
            && self.model.cluster.nodes().iter().any(|node| node.maintenance.is_some())
    }

    /// Asks the operator to confirm that a maintenance which was stopped is resumed or released, or says why that is
    /// not possible.
    pub(in crate::app) fn ask_for_stopped(&mut self, way: StoppedWay, now: Timestamp) {
        if let Some(fault) = self.why_not_now() {
            self.screen.message = Some(fault);
            return;
        }
        let Some(notes) = self.stopped_maintenance(now) else {
            self.screen.message = Some("no maintenance was stopped".into());
            return;
        };
        let prompt = Prompt::Words(self.model.connection.context.clone());
        self.open_dialog(DialogSubject::Stopped(Box::new(StoppedProposal { notes, way, prompt })));
    }

    /// Starts, resumes or releases the maintenance as the operator has agreed.
    pub(in crate::app) fn start_maintenance(&mut self) {
        let Some(dialog) = self.screen.overlays.close_question() else { return };
        let (subject, message) = match dialog.subject {
            DialogSubject::Maintenance(proposal) => {
                (StartSubject::New(Box::new(proposal.request)), "starts the maintenance")
            }
            DialogSubject::Stopped(proposal) => {
                let StoppedProposal { notes, way, prompt: _ } = *proposal;
                let message = match way {
                    StoppedWay::Resume => "resumes the maintenance",
                    StoppedWay::Release => "releases the nodes of the maintenance",
                };
                (StartSubject::Stopped(notes.operation, way), message)
            }
            DialogSubject::FindUndo
            | DialogSubject::Approval(_)
            | DialogSubject::Cancel(_)
            | DialogSubject::CancelMaintenance(_)
            | DialogSubject::Quit => return,
        };
        // Enforce mode may have ended while the question was open.
        if let Some(why) = self.why_not_now() {
            self.screen.message = Some(why);
            return;
        }
        self.screen.message = Some(message.into());
        let start = MaintenanceStart { subject, reason: self.operations.reason.clone() };
        self.operations.push(Job::StartMaintenance { number: dialog.number, start: Box::new(start) });
    }

    /// Applies an event of a maintenance.
    pub(in crate::app) fn on_maintenance_event(
        &mut self,
        number: u64,
        event: MaintenanceEvent,
        now: Timestamp,
    ) {
        match event {
            MaintenanceEvent::NotStarted(why) => {
                self.log(now, Severity::Warning, "maintenance", &why);
                self.screen.message = Some(why);
            }
            MaintenanceEvent::Started(id, plan) => self.on_maintenance_started(number, id, &plan, now),
            MaintenanceEvent::Resumed(id) => {
                self.say_of_maintenance(now, format!("resumed: {id}"));
                self.add_maintenance(number, id, MaintenanceOutcome::default(), now);
            }
            MaintenanceEvent::Released(id) => {
                self.operations.maintenances.retain(|entry| entry.id != id);
                self.say_of_maintenance(now, format!("{id} is over: its nodes are released"));
            }
            MaintenanceEvent::News(MaintenanceNews::Notice(notice)) => {
                self.model.journal.add(JournalEntry::from_notice(&notice, "maintenance"));
                self.maintenance_mut(number).into_iter().for_each(|entry| entry.notices.add(notice.clone()));
            }
            MaintenanceEvent::News(MaintenanceNews::Progress(outcome)) => {
                self.maintenance_mut(number).into_iter().for_each(|entry| entry.outcome = (*outcome).clone());
            }
            MaintenanceEvent::Ended(end) => self.on_maintenance_ended(number, end, now),
        }
    }

    fn on_maintenance_started(
        &mut self,
        number: u64,
        id: OperationId,
        plan: &MaintenancePlan,
        now: Timestamp,
    ) {
        self.say_of_maintenance(now, format!("started as {id}"));
        self.screen.marked_nodes.clear();
        self.screen.maintenance = None;
        if let Some(sheet) = self.screen.overlays.maintenance_mut() {
            *sheet = MaintenanceSheet::new(MaintenanceRequest::new(Vec::new()));
        }
        self.add_maintenance(number, id, MaintenanceOutcome::planned(plan), now);
    }

    /// Adds a maintenance that is running. A maintenance that is resumed replaces its earlier entry.
    fn add_maintenance(&mut self, number: u64, id: OperationId, outcome: MaintenanceOutcome, now: Timestamp) {
        self.operations.maintenances.retain(|entry| entry.id != id);
        self.operations.maintenances.push(MaintenanceEntry {
            number,
            id,
            began: now,
            outcome,
            notices: NoticeLog::default(),
            state: MaintenanceState::Running,
        });
    }

    fn say_of_maintenance(&mut self, now: Timestamp, text: String) {
        self.log(now, Severity::Info, "maintenance", &text);
        self.screen.message = Some(text);
    }

    fn on_maintenance_ended(
        &mut self,
        number: u64,
        end: Result<Box<MaintenanceEnd>, String>,
        now: Timestamp,
    ) {
        let Some(entry) = self.maintenance_mut(number) else { return };
        let (kind, says, level) = match end {
            Ok(end) => {
                let is_well = end.kind == MaintenanceEndKind::Done;
                let says = match end.says.as_str() {
                    "" => end.in_short(),
                    says => format!("{}: {says}", end.in_short()),
                };
                entry.outcome = end.outcome;
                (Some(end.kind), says, if is_well { Severity::Info } else { Severity::Warning })
            }
            Err(why) => (None, why, Severity::Error),
        };
        entry.state = MaintenanceState::Ended { kind, at: now, says: says.clone() };
        let title = entry.title();
        self.log(now, level, &title, &says);
        self.screen.message = Some(title);
    }

    fn maintenance_mut(&mut self, number: u64) -> Option<&mut MaintenanceEntry> {
        self.operations.maintenances.iter_mut().find(|entry| entry.number == number)
    }

    /// Whether the pause key applies to this dashboard's running maintenance.
    pub(in crate::app) fn pauses_maintenance(&self) -> bool {
        self.screen.shows_maintenance() && self.operations.running_maintenance().is_some()
    }

    /// Pauses or resumes this dashboard's running maintenance. Running commands continue.
    pub(in crate::app) fn pause_or_resume_maintenance(&mut self) {
        let Some(entry) = self.operations.running_maintenance_mut() else { return };
        let input = match entry.state {
            MaintenanceState::Running => OperatorInput::Pause,
            MaintenanceState::Paused => OperatorInput::Resume,
            MaintenanceState::Cancelling | MaintenanceState::Ended { .. } => return,
        };
        self.steer_maintenance(input);
    }

    /// Cancels this dashboard's running maintenance.
    pub(in crate::app) fn cancel_maintenance(&mut self) {
        self.steer_maintenance(OperatorInput::Cancel);
    }

    fn steer_maintenance(&mut self, input: OperatorInput) {
        let Some(entry) = self.operations.running_maintenance_mut() else { return };
        entry.state = match input {
            OperatorInput::Pause => MaintenanceState::Paused,
            OperatorInput::Resume => MaintenanceState::Running,
            OperatorInput::Cancel => MaintenanceState::Cancelling,
        };
        let number = entry.number;
        self.operations.push(Job::SteerMaintenance { number, input });
    }
}
