//! Operations that were started from the dashboard, and the steps that lead to them.
//!
//! All operations read the app's cluster. The loop sends the operations' requests ([`App::next_request`]) and returns
//! the outcomes ([`App::on_job_result`]). It also handles their timeouts ([`App::on_timeout`]) and passes them changes
//! of the cluster at a limited rate ([`App::show_changes`]). Work that needs IO or takes long (permissions, plans, the
//! journal on disk) leaves as a [`Job`] and returns as a [`JobResult`].

mod mode;
mod starting;

use std::collections::{BTreeMap, VecDeque};

use super::{
    App,
    dialog::{Dialog, DialogReply, DialogSubject},
    maintenance::{MaintenanceEntry, MaintenanceEvent, MaintenanceStart, MaintenanceState},
    notice_log::NoticeLog,
    options::Mode,
    pane::Pane,
    preview::ReadNodes,
    reaction::Reaction,
};
use crate::model::{JournalEntry, Model, NodeDrainCount, suggestions::BlockingBudget};
use kordon_core::{
    cluster::{Cluster, Key, NodeName, OperationId},
    engine::{Severity, Why},
    operation::{
        LandedReplacement, NodeProgress, Operation, OperationEnd, OperationNotice, OperationProgress,
        OperatorInput, PodProgress, Request, RequestId, RequestOutcome,
        approval::{Approved, Checks, NotStarted, PriorOperation, StartRequest, Started},
        landings,
    },
    plan::{EvictionRules, Permission, Plan, PlanJob, PodOutcome, TimeLeft},
};
use kordon_time::{Span, Timestamp};

/// Interval at which the end of an operation is predicted again.
const LEFT_EVERY: Span = Span::from_secs(1);

/// Operations in progress, ended operations, and interrupted drains.
#[derive(Debug, Default)]
pub struct Operations {
    pub mode: Mode,
    /// Why the configuration forbids writing; `None` if it allows writing.
    pub read_only: Option<String>,
    /// Why no plan can be applied in any mode; `None` if plans can be applied.
    pub locked: Option<String>,
    /// End of enforce mode.
    pub enforced_until: Option<Timestamp>,
    /// Reason that the operator gives for the next operations.
    pub reason: String,
    /// Intended duration of the next cordons.
    pub until: Option<Span>,
    /// Time limit of each of the next operations.
    pub within: Option<Span>,
    /// Operations, oldest first, ended ones included.
    pub entries: Vec<OperationEntry>,
    /// Maintenances, oldest first, ended ones included.
    pub maintenances: Vec<MaintenanceEntry>,
    /// Interrupted drains that the operator has not decided on yet, oldest first.
    pub interrupted: VecDeque<PriorOperation>,
    /// Whether the program ends as soon as no operation is in progress and the journal is complete.
    pub quitting: bool,
    jobs: VecDeque<Job>,
    /// Number of the dialog that was opened last.
    number: u64,
    /// Whether the cluster has changed since operations last handled changes.
    changed: bool,
}

/// An operation that was started from this dashboard.
#[derive(Debug)]
pub struct OperationEntry {
    /// Title, as in `drain general-1a-02`.
    pub title: String,
    pub operation: Operation,
    /// The applied plan; `None` for an undo.
    pub plan: Option<Box<Plan>>,
    /// The earlier operation that this one undoes.
    undoes: Option<PriorOperation>,
    /// Progress of the operation at the last refresh.
    pub progress: OperationProgress,
    /// Predicted end of the operation, computed from its remaining work; `None` without a prediction.
    pub left: Option<TimeLeft>,
    /// Budgets that block the operation now, and what would unblock it.
    pub blocking: Vec<BlockingBudget>,
    /// Location of each removed pod's replacement.
    pub landings: BTreeMap<Key, LandedReplacement>,
    /// When `left`, `blocking` and `landings` were computed.
    left_at: Timestamp,
    pub notices: NoticeLog,
    stale: bool,
    state: EntryState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntryState {
    Running,
    /// The operation has ended. Its end is being written to the journal.
    Ending,
    /// The operation has ended, and nothing is left to do for it.
    Closed,
}

/// Work that needs IO or takes long.
#[derive(Debug)]
pub enum Job {
    /// Finds interrupted drains. The result is [`JobResult::Interrupted`].
    FindInterrupted,
    /// Finds the operation with this id, or the last one that can be undone. The result is [`JobResult::Undoable`].
    FindUndoable { number: u64, id: Option<OperationId> },
    /// Computes a plan. The result is [`JobResult::Planned`].
    Plan { number: u64, job: Box<PlanJob> },
    /// Checks guard rails and permissions. The result is [`JobResult::Checked`].
    Check { number: u64, permissions: Vec<Permission> },
    /// Asks which of these rights the user lacks. The result is [`JobResult::Rights`].
    Rights(Vec<Permission>),
    /// Reads the complete Node objects of the open plan for its diff. The result is [`JobResult::NodesRead`].
    ReadNodes(Vec<NodeName>),
    /// Writes the start of an operation to the journal. The result is [`JobResult::Started`].
    Start { number: u64, request: Box<StartRequest> },
    /// Carries out, resumes or releases a maintenance. Its results are [`JobResult::Maintenance`].
    StartMaintenance { number: u64, start: Box<MaintenanceStart> },
    /// Passes input to a running maintenance.
    SteerMaintenance { number: u64, input: OperatorInput },
    /// Writes a notice to the journal.
    Notice { id: OperationId, notice: OperationNotice },
    /// Writes the end of an operation to the journal and releases the operation's lock. The result is
    /// [`JobResult::Written`].
    End { id: OperationId, end: OperationEnd, text: String, undid: Option<Box<PriorOperation>> },
}

/// The result of a job, or of an operation's request.
#[derive(Debug)]
pub enum JobResult {
    Interrupted(Result<Vec<PriorOperation>, String>),
    Undoable {
        number: u64,
        found: Result<Option<PriorOperation>, String>,
    },
    Planned {
        number: u64,
        plan: Result<Box<Plan>, String>,
    },
    Checked {
        number: u64,
        checks: Result<Checks, String>,
    },
    /// The rights that were asked for, and the missing rights among them.
    Rights {
        asked: Vec<Permission>,
        missing: Result<Vec<Permission>, String>,
    },
    NodesRead(Result<ReadNodes, String>),
    Started {
        number: u64,
        started: Result<Started, NotStarted>,
    },
    /// An event of the maintenance that the job with this number started.
    Maintenance {
        number: u64,
        event: MaintenanceEvent,
    },
    Request {
        operation: OperationId,
        id: RequestId,
        outcome: RequestOutcome,
    },
    /// Result of writing lines of an operation to the journal. `closed` means that all lines of the operation are
    /// written and its lock is released.
    Written {
        id: OperationId,
        error: Option<String>,
        closed: bool,
    },
}

impl OperationEntry {
    /// Computes the data that only the progress view shows.
    fn look_at(&mut self, model: &Model, now: Timestamp) {
        let blocked = self.progress.blocked_by_budgets();
        let rules = EvictionRules::from(&model.settings);
        self.blocking = BlockingBudget::find(&model.cluster, &blocked, &rules, now);
        let planned = self.plan.as_ref().map_or(&[][..], |plan| &plan.pods);
        self.landings = landings(&self.progress, planned, &model.cluster);
    }

    /// The outcome of a removed pod in the plan, if nothing runs in its place.
    pub fn nowhere(&self, pod: &PodProgress) -> Option<&PodOutcome> {
        let plan = self.plan.as_ref().filter(|_| pod.stage.is_removed())?;
        let outcome = &plan.pods.iter().find(|planned| planned.pod == pod.pod)?.outcome;
        outcome.kind().has_nowhere_to_run().then_some(outcome)
    }

    /// Progress of the operation on each node.
    fn drain_counts(&self) -> impl Iterator<Item = (NodeName, NodeDrainCount)> {
        let of_node = |node: &NodeProgress| {
            let (operation, count) = (self.id().clone(), self.progress.count_on(&node.node));
            (node.node.clone(), NodeDrainCount { operation, count })
        };
        self.progress.nodes.iter().map(of_node)
    }

    pub fn id(&self) -> &OperationId {
        &self.operation.options().id
    }

    pub fn is_running(&self) -> bool {
        self.operation.ended().is_none()
    }

    /// Whether the operation handles changes of the cluster: it is running, or pods that it removed are still
    /// terminating.
    fn sees_changes(&self) -> bool {
        self.is_running() || self.operation.is_followed_up()
    }

    pub fn is_undo(&self) -> bool {
        self.undoes.is_some()
    }

    /// Planned end of the operation; `None` if its plan predicts no end.
    pub fn planned_end(&self) -> Option<Timestamp> {
        let plan = self.plan.as_ref()?;
        Some(self.progress.started_at + plan.totals.ends.likely?.since(plan.made))
    }
}

impl Operations {
    /// Creates an empty list of operations. `read_only` is the reason why the configuration forbids writing. If it is
    /// given, every mode except [`Mode::Replay`] becomes [`Mode::ReadOnly`].
    pub fn new(mode: Mode, read_only: Option<String>) -> Self {
        let mode = if read_only.is_some() && mode != Mode::Replay { Mode::ReadOnly } else { mode };
        Self { mode, read_only, ..Self::default() }
    }

    pub fn running(&self) -> impl Iterator<Item = &OperationEntry> {
        self.entries.iter().filter(|entry| entry.is_running())
    }

    /// The running maintenance.
    pub fn running_maintenance(&self) -> Option<&MaintenanceEntry> {
        self.maintenances.iter().rev().find(|entry| entry.is_running())
    }

    pub(super) fn running_maintenance_mut(&mut self) -> Option<&mut MaintenanceEntry> {
        self.maintenances.iter_mut().rev().find(|entry| entry.is_running())
    }

    /// Titles of the running operations, and the id of the running maintenance.
    pub fn running_titles(&self) -> Vec<String> {
        let operations = self.running().map(|entry| entry.title.clone());
        operations.chain(self.running_maintenance().map(|entry| entry.id.to_string())).collect()
    }

    /// Adds a job.
    pub(super) fn push(&mut self, job: Job) {
        self.jobs.push_back(job);
    }

    pub fn entry(&self, id: &OperationId) -> Option<&OperationEntry> {
        self.entries.iter().find(|entry| entry.id() == id)
    }

    fn entry_mut(&mut self, id: &OperationId) -> Option<&mut OperationEntry> {
        self.entries.iter_mut().find(|entry| entry.id() == id)
    }

    /// Whether the program may end after a request to quit: every operation has ended, and the journal is complete.
    pub fn may_quit(&self) -> bool {
        self.quitting && self.are_closed()
    }

    fn are_closed(&self) -> bool {
        self.entries.iter().all(|entry| entry.state == EntryState::Closed)
            && self.running_maintenance().is_none()
    }

    /// Whether the cluster has changed and an operation has to handle the change.
    pub fn has_changed(&self) -> bool {
        self.changed && self.entries.iter().any(OperationEntry::sees_changes)
    }

    pub(super) fn on_cluster_changed(&mut self) {
        self.changed = true;
    }

    /// Time of the earliest timeout of an operation, or of the end of enforce mode if that is earlier.
    pub(super) fn poll_timeout(&self) -> Option<Timestamp> {
        let operations = self.entries.iter().filter_map(|entry| entry.operation.poll_timeout());
        operations.chain(self.enforced_until).min()
    }

    fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }
}

impl App {
    pub fn next_job(&mut self) -> Option<Job> {
        let next = self.operations.jobs.pop_front().or_else(|| self.next_rights().map(Job::Rights));
        next.or_else(|| self.screen.overlays.plan_mut()?.next_read().map(Job::ReadNodes))
    }

    /// Ids of the operations that have requests to send.
    pub fn with_requests(&self) -> impl Iterator<Item = &OperationId> {
        let entries = self.operations.entries.iter().filter(|entry| entry.operation.has_requests());
        entries.map(OperationEntry::id)
    }

    /// The next request of an operation; its outcome comes back through [`App::on_job_result`].
    pub fn next_request(&mut self, id: &OperationId) -> Option<Request> {
        self.operations.entry_mut(id)?.operation.poll_request()
    }

    /// Starts the search for interrupted drains.
    pub fn find_interrupted(&mut self) {
        self.operations.jobs.push_back(Job::FindInterrupted);
    }

    /// Passes changes of the cluster to the operations.
    pub fn show_changes(&mut self, now: Timestamp) {
        if std::mem::take(&mut self.operations.changed) {
            self.with_all(now, |operation, cluster, now| operation.handle_change(cluster, now));
        }
    }

    /// Handles due timeouts of operations and the end of enforce mode. Returns whether anything was due.
    pub(super) fn on_operations_timeout(&mut self, now: Timestamp) -> bool {
        let locked = self.end_enforcing(now);
        let is_due = |entry: &OperationEntry| entry.operation.poll_timeout().is_some_and(|at| at <= now);
        let due = self.operations.entries.iter().any(is_due);
        if due {
            self.with_all(now, |operation, cluster, now| operation.handle_timeout(cluster, now));
        }
        locked || due
    }

    fn with_all(&mut self, now: Timestamp, change: impl Fn(&mut Operation, &Cluster, Timestamp)) {
        for entry in self.operations.entries.iter_mut().filter(|entry| entry.sees_changes()) {
            change(&mut entry.operation, &self.model.cluster, now);
            entry.stale = true;
        }
        self.collect_notices(now);
    }

    fn with_one(
        &mut self,
        id: &OperationId,
        now: Timestamp,
        change: impl FnOnce(&mut Operation, &Cluster, Timestamp),
    ) {
        if let Some(entry) = self.operations.entry_mut(id) {
            change(&mut entry.operation, &self.model.cluster, now);
            entry.stale = true;
            self.collect_notices(now);
        }
    }

    /// Applies the result of a job or of a request.
    pub fn on_job_result(&mut self, result: JobResult, now: Timestamp) {
        match result {
            JobResult::Request { operation, id, outcome } => {
                if matches!(outcome, RequestOutcome::Forbidden(_)) {
                    self.rights.ask();
                }
                self.with_one(&operation, now, |operation, cluster, now| {
                    operation.handle_outcome(cluster, id, outcome, now);
                });
            }
            JobResult::Interrupted(found) => self.on_interrupted(found, now),
            JobResult::Undoable { number, found } => self.on_undoable(number, found, now),
            JobResult::Planned { number, plan } => {
                self.with_approval(number, now, |approval, situation| {
                    approval.handle_plan(plan, situation, now);
                });
            }
            JobResult::Checked { number, checks } => {
                self.with_approval(number, now, |approval, situation| {
                    approval.handle_checks(checks, situation, now);
                });
            }
            JobResult::Rights { asked, missing } => self.on_rights(asked, missing),
            JobResult::NodesRead(nodes) => self.on_nodes_read(nodes, now),
            JobResult::Started { number, started } => self.on_started(number, started, now),
            JobResult::Maintenance { number, event } => self.on_maintenance_event(number, event, now),
            JobResult::Written { id, error, closed } => self.on_written(&id, error, closed, now),
        }
        self.screen.leave_closed_pane();
        if !self.is_frozen() {
            self.arrange(now);
        }
    }

    fn on_written(&mut self, id: &OperationId, error: Option<String>, closed: bool, now: Timestamp) {
        if let Some(entry) = self.operations.entry_mut(id).filter(|_| closed) {
            entry.state = EntryState::Closed;
        }
        if let Some(text) = error {
            self.log(now, Severity::Error, "journal", &text);
        }
    }

    /// Collects new notices of all operations, and starts to close the operations that have ended.
    fn collect_notices(&mut self, now: Timestamp) {
        for entry in &mut self.operations.entries {
            let id = entry.id().clone();
            while let Some(notice) = entry.operation.poll_notice() {
                self.model.journal.add(JournalEntry::from_notice(&notice, &entry.title));
                self.operations.jobs.push_back(Job::Notice { id: id.clone(), notice: notice.clone() });
                entry.notices.add(notice);
            }
            let Some(end) = entry.operation.ended().filter(|_| entry.state == EntryState::Running) else {
                continue;
            };
            entry.state = EntryState::Ending;
            entry.progress = entry.operation.progress();
            let text = entry.progress.in_short();
            let level = if end == OperationEnd::Done { Severity::Info } else { Severity::Warning };
            let line = format!("{}: {text}", end.as_str());
            self.model.journal.add(JournalEntry::new(now, level, &entry.title, &line, Why::default()));
            let undid = entry.undoes.clone().filter(|_| end == OperationEnd::Done).map(Box::new);
            self.operations.jobs.push_back(Job::End { id, end, text, undid });
        }
    }

    /// Brings the progress of operations up to date.
    pub(super) fn refresh_operations(&mut self, now: Timestamp) {
        let shown = self.screen.overlays.progress().map(|progress| progress.operation.clone());
        for entry in &mut self.operations.entries {
            if std::mem::take(&mut entry.stale) {
                entry.progress = entry.operation.progress();
            }
        }
        let running = self.operations.entries.iter().filter(|entry| entry.is_running());
        self.model.maintenance.set_drains(running.flat_map(OperationEntry::drain_counts));
        for entry in &mut self.operations.entries {
            let is_old = now.since(entry.left_at) >= LEFT_EVERY || entry.operation.is_paused();
            if !is_old {
                continue;
            }
            if entry.is_running() {
                entry.left = entry.operation.time_left(&self.model.cluster, now);
                entry.left_at = now;
            }
            // The shown operation is updated even after it has ended, because replacements may still appear.
            if shown.as_ref() == Some(entry.id()) {
                entry.look_at(&self.model, now);
                entry.left_at = now;
            }
        }
    }

    /// Adds an operation whose start is in the journal, and opens its progress.
    fn add_operation(&mut self, approved: Approved, now: Timestamp) {
        let Approved { title, operation, plan, undoes } = approved;
        let id = operation.options().id.clone();
        self.log(now, Severity::Info, &title, &format!("started as {id}"));
        let progress = operation.progress();
        let (notices, stale, state) = (NoticeLog::default(), false, EntryState::Running);
        let (left, left_at) = (operation.time_left(&self.model.cluster, now), now);
        let entry = OperationEntry {
            title,
            operation,
            plan,
            undoes,
            progress,
            left,
            blocking: Vec::new(),
            landings: BTreeMap::new(),
            left_at,
            notices,
            stale,
            state,
        };
        self.operations.entries.push(entry);
        self.operations.interrupted.retain(|prior| prior.id != id);
        self.screen.open_progress(id);
        self.collect_notices(now);
    }

    /// Opens the progress of the running operation. If progress already has the focus, opens the operation before the
    /// shown one.
    pub(super) fn open_progress(&mut self) {
        let ids: Vec<&OperationId> = self.operations.entries.iter().map(OperationEntry::id).collect();
        let Some(last) = ids.len().checked_sub(1) else {
            self.screen.message = Some("no operation was started from here".into());
            return;
        };
        let shown = self.screen.overlays.progress().filter(|_| self.screen.focus == Pane::Progress);
        let place = shown.and_then(|shown| ids.iter().position(|id| **id == shown.operation));
        let running = self.operations.entries.iter().rposition(OperationEntry::is_running);
        let next = match place {
            Some(place) => place.checked_sub(1).unwrap_or(last),
            None => running.unwrap_or(last),
        };
        let id = ids[next].clone();
        self.screen.open_progress(id);
    }

    /// The operation whose progress is shown.
    pub fn shown_operation(&self) -> Option<&OperationEntry> {
        self.operations.entry(&self.screen.overlays.progress()?.operation)
    }

    /// Id of the running operation whose progress is shown. If the operation has ended, shows a message and returns
    /// `None`.
    fn shown_running(&mut self) -> Option<OperationId> {
        let entry = self.shown_operation()?;
        if entry.is_running() {
            return Some(entry.id().clone());
        }
        self.screen.message = Some("it has ended".into());
        None
    }

    pub(super) fn pause_or_resume(&mut self, now: Timestamp) {
        let Some(id) = self.shown_running() else { return };
        self.with_one(&id, now, |operation, cluster, now| {
            if operation.is_paused() { operation.resume(cluster, now) } else { operation.pause(now) }
        });
    }

    /// Whether the pause key resumes: what it applies to is paused.
    pub fn resumes_by_pause(&self) -> bool {
        if self.pauses_maintenance() {
            let running = self.operations.running_maintenance();
            return running.is_some_and(|entry| entry.state == MaintenanceState::Paused);
        }
        if self.would_play() {
            return self.playback.as_ref().is_some_and(|playback| playback.is_paused);
        }
        self.shown_operation().is_some_and(|entry| entry.operation.is_paused())
    }

    pub(super) fn ask_to_cancel(&mut self) {
        let own = self.operations.running_maintenance().map(|entry| entry.id.clone());
        if self.screen.shows_maintenance() {
            if let Some(id) = own {
                self.open_dialog(DialogSubject::CancelMaintenance(id));
            }
        } else if let Some(id) = self.shown_running() {
            self.open_dialog(DialogSubject::Cancel(id));
        }
    }

    /// Quits the program. With an operation in progress, asks first; otherwise waits until the journal has the end of
    /// every operation. A second press quits at once.
    pub(super) fn quit(&mut self) -> Reaction {
        let asked =
            matches!(self.screen.overlays.question(), Some(Dialog { subject: DialogSubject::Quit, .. }));
        let again = asked || self.operations.quitting;
        if again || self.operations.are_closed() {
            return Reaction::Quit;
        }
        if self.operations.running_titles().is_empty() {
            self.operations.quitting = true;
        } else {
            self.open_dialog(DialogSubject::Quit);
        }
        Reaction::Draw
    }

    /// Opens a dialog and returns its number.
    pub(in crate::app) fn open_dialog(&mut self, subject: DialogSubject) -> u64 {
        let number = self.operations.next_number();
        self.screen.ask(Dialog::new(number, subject));
        number
    }

    /// Applies the operator's answer to the open dialog.
    pub(super) fn answer_dialog(&mut self, now: Timestamp) -> Reaction {
        let Some(reply) = self.screen.overlays.question_mut().and_then(Dialog::reply) else {
            return Reaction::Draw;
        };
        let DialogReply::Yes(choice) = reply else {
            self.screen.overlays.close_question();
            return Reaction::Draw;
        };
        match self.screen.overlays.question().map(|dialog| &dialog.subject) {
            Some(DialogSubject::Approval(_)) => self.agree(now),
            Some(DialogSubject::Maintenance(_) | DialogSubject::Stopped(_)) => self.start_maintenance(),
            Some(DialogSubject::CancelMaintenance(_)) => {
                self.screen.overlays.close_question();
                self.cancel_maintenance();
            }
            Some(DialogSubject::Cancel(id)) => {
                let id = id.clone();
                self.screen.overlays.close_question();
                self.with_one(&id, now, |operation, cluster, now| operation.cancel(cluster, now));
            }
            Some(DialogSubject::Quit) => {
                self.screen.overlays.close_question();
                if choice == 1 {
                    return Reaction::Quit;
                }
                self.operations.quitting = true;
                self.cancel_maintenance();
                self.with_all(now, |operation, cluster, now| operation.cancel(cluster, now));
            }
            Some(DialogSubject::FindUndo) | None => {}
        }
        Reaction::Draw
    }

    /// The dialog with this number, if it is still open.
    fn dialog_mut(&mut self, number: u64) -> Option<&mut Dialog> {
        self.screen.overlays.question_mut().filter(|dialog| dialog.number == number)
    }

    /// Adds an entry to the session journal.
    pub(in crate::app) fn log(&mut self, now: Timestamp, level: Severity, subject: &str, text: &str) {
        self.model.journal.add(JournalEntry::new(now, level, subject, text, Why::default()));
    }
}
