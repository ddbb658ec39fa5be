//! What is carried out from the dashboard, and all that leads to it.
//!
//! The app's cluster is the one that conducts look at. The loop brings in what came of errands ([`App::errand_done`])
//! and takes out the next ones ([`App::next_errand`]), wakes the conducts with everything else ([`App::wake`]), and lets
//! them look at what has changed now and then ([`App::look_around`]). What has to be asked, read or written beside
//! (permissions, plans, the journal on disk) leaves as a [`Job`]; what came of it comes back through [`App::told`].

mod apply;
mod mode;
mod resume;

pub use apply::title as apply_title;
pub use resume::title as past_title;

use std::collections::VecDeque;

use super::{
    App,
    dialog::{Dialog, DialogReply, DialogStage, DialogSubject, DialogWait, Prompt},
    pane::Pane,
    reaction::Reaction,
};
use crate::{
    cluster::{Cluster, OperationId},
    engine::{ServerVersion, Severity, Why},
    journal::JournaledOperation,
    model::JournalEntry,
    operation::{
        Guards, Operation, OperationEnd, OperationNotice, OperationOptions, OperationProgress, Overrides,
        Request, RequestId, RequestOutcome,
    },
    placement::Snapshot,
    plan::{Action, Permission, Plan},
    time::{Span, Timestamp},
};

/// Notices of an undertaking that are kept for its progress; all of them are in the journal.
const TOLD: usize = 200;

/// What is carried out, what was, and what was cut off.
#[derive(Debug, Default)]
pub struct Operations {
    /// Why nothing can be carried out, whatever the mode; none where it can.
    pub locked: Option<String>,
    /// When enforcing ends by itself.
    pub enforced_until: Option<Timestamp>,
    /// Why the next plans are carried out.
    pub reason: String,
    /// For how long cordons are meant to stand.
    pub until: Option<Span>,
    /// How long all of a plan may take.
    pub within: Option<Span>,
    /// Oldest first; those that are over too.
    pub undertakings: Vec<OperationEntry>,
    /// Drains that were cut off and are not answered for yet, oldest first.
    pub unfinished: VecDeque<JournaledOperation>,
    /// Whether the program ends as soon as nothing is carried out any more.
    pub leaving: bool,
    chores: VecDeque<Job>,
    /// Of the last question.
    number: u64,
    /// Whether the cluster has changed since conducts last looked.
    changed: bool,
}

/// One plan that is or was carried out, or one that is or was undone.
#[derive(Debug)]
pub struct OperationEntry {
    /// As `drain general-1a-02`.
    pub title: String,
    pub conduct: Operation,
    /// None of an undo.
    pub plan: Option<Box<Plan>>,
    /// The undertaking that is undone.
    undoes: Option<JournaledOperation>,
    /// What came of everything, as of the last refresh.
    pub report: OperationProgress,
    /// Newest last.
    pub notices: VecDeque<OperationNotice>,
    /// How many notices have gone.
    pub gone: usize,
    stale: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Runs,
    /// Over; that is being written down.
    Ends,
    /// Over, and nothing is left to be done for it.
    Closed,
}

/// Something to be asked, read, worked out or written beside the loop.
#[derive(Debug)]
pub enum Job {
    /// Comes back as [`JobResult::Unfinished`].
    FindUnfinished,
    /// The undertaking of that name, or the last one that can be undone: [`JobResult::Undoable`].
    FindUndoable { number: u64, id: Option<OperationId> },
    /// [`JobResult::Planned`]
    Plan { number: u64, job: Box<PlanJob> },
    /// Guard rails and permissions: [`JobResult::Checked`].
    Check { number: u64, wanted: Vec<Permission> },
    /// Holds an undertaking and writes down that it begins: [`JobResult::Begun`].
    Begin { number: u64, word: &'static str, plan: Box<Plan>, orders: OperationOptions, waivers: Overrides },
    /// Takes up one that was cut off: [`JobResult::Begun`] with what the journal tells of it by now.
    Resume { number: u64, id: OperationId },
    /// The same, to be put back under another name.
    Undo { number: u64, id: OperationId },
    /// A line for the journal.
    Say { id: OperationId, notice: OperationNotice },
    /// It is over: that is written down, and it is let go of: [`JobResult::Written`].
    End { id: OperationId, end: OperationEnd, text: String, undid: Option<Box<JournaledOperation>> },
}

/// What came of a chore, or of an errand.
#[derive(Debug)]
pub enum JobResult {
    Unfinished(Result<Vec<JournaledOperation>, String>),
    Undoable {
        number: u64,
        found: Result<Option<JournaledOperation>, String>,
    },
    Planned {
        number: u64,
        plan: Result<Box<Plan>, String>,
    },
    Checked {
        number: u64,
        checked: Result<PermissionCheck, String>,
    },
    Begun {
        number: u64,
        begun: Result<StartedOperation, String>,
    },
    Errand {
        operation: OperationId,
        id: RequestId,
        outcome: RequestOutcome,
    },
    /// Lines of an undertaking stand in the journal, or why not; `closed` once they all do and it is let go of.
    Written {
        id: OperationId,
        trouble: Option<String>,
        closed: bool,
    },
}

/// What is forbidden.
#[derive(Clone, Debug, Default)]
pub struct PermissionCheck {
    pub guards: Guards,
    pub missing: Vec<Permission>,
}

/// An undertaking that stands in the journal.
#[derive(Clone, Debug)]
pub struct StartedOperation {
    pub id: OperationId,
    /// In whose name.
    pub by: String,
    /// What the journal tells of the one that is resumed or undone.
    pub past: Option<JournaledOperation>,
}

/// A plan to be worked out, with all that it takes.
#[derive(Debug)]
pub struct PlanJob {
    action: Action,
    cluster: Cluster,
    version: ServerVersion,
    now: Timestamp,
}

impl PlanJob {
    /// Works it out, with where replacements land only where pods go.
    ///
    /// # Errors
    /// What it names is not there, in words.
    pub fn work(self) -> Result<Box<Plan>, String> {
        let Self { action, cluster, version, now } = self;
        let goes = match &action {
            Action::Cordon { .. } | Action::Uncordon { .. } | Action::Label { .. } => false,
            Action::Taint { .. } | Action::Drain { .. } | Action::Evict { .. } | Action::Delete { .. } => {
                true
            }
        };
        let snapshot = goes.then(|| Snapshot::new(&cluster, version));
        Plan::over(action, &cluster, snapshot, version, now).map(Box::new).map_err(|error| error.to_string())
    }
}

impl OperationEntry {
    pub fn id(&self) -> &OperationId {
        &self.conduct.orders().id
    }

    /// Whether it goes on.
    pub fn runs(&self) -> bool {
        self.conduct.ended().is_none()
    }

    pub fn is_undo(&self) -> bool {
        self.undoes.is_some()
    }

    /// When it ends by the plan it was begun with; none where that knew no end.
    pub fn ends_by_plan(&self) -> Option<Timestamp> {
        let plan = self.plan.as_ref()?;
        Some(self.report.began + plan.totals.ends.likely?.since(plan.made))
    }

    /// The notice with this number, counted from the first.
    pub fn notice(&self, number: usize) -> Option<&OperationNotice> {
        self.notices.get(number.checked_sub(self.gone)?)
    }
}

impl Operations {
    pub fn running(&self) -> impl Iterator<Item = &OperationEntry> {
        self.undertakings.iter().filter(|undertaking| undertaking.runs())
    }

    pub fn undertaking(&self, id: &OperationId) -> Option<&OperationEntry> {
        self.undertakings.iter().find(|undertaking| undertaking.id() == id)
    }

    fn undertaking_mut(&mut self, id: &OperationId) -> Option<&mut OperationEntry> {
        self.undertakings.iter_mut().find(|undertaking| undertaking.id() == id)
    }

    /// Whether the program may end that was told to: nothing is carried out, and all of it is written down.
    pub fn may_leave(&self) -> bool {
        self.leaving && self.undertakings.iter().all(|undertaking| undertaking.state == State::Closed)
    }

    /// Whether conducts have something new to look at.
    pub fn has_changed(&self) -> bool {
        self.changed && self.running().next().is_some()
    }

    pub(super) fn cluster_changed(&mut self) {
        self.changed = true;
    }

    /// When something of it falls due.
    pub(super) fn wakes_at(&self) -> Option<Timestamp> {
        let conducts = self.undertakings.iter().filter_map(|undertaking| undertaking.conduct.poll_timeout());
        conducts.chain(self.enforced_until).min()
    }

    fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }
}

impl App {
    /// The next thing to be done beside the loop.
    pub fn next_chore(&mut self) -> Option<Job> {
        self.acts.chores.pop_front()
    }

    /// The undertakings that have errands to be sent.
    pub fn with_errands(&self) -> impl Iterator<Item = &OperationId> {
        let running = self.acts.undertakings.iter().filter(|undertaking| undertaking.conduct.has_errands());
        running.map(OperationEntry::id)
    }

    /// The next errand of an undertaking; what comes of it is to come back through [`App::told`].
    pub fn next_errand(&mut self, id: &OperationId) -> Option<Request> {
        self.acts.undertaking_mut(id)?.conduct.poll_errand()
    }

    /// Asks for what is to be known at the start: which drains were cut off.
    pub fn find_unfinished(&mut self) {
        self.acts.chores.push_back(Job::FindUnfinished);
    }

    /// Lets the conducts see what has changed.
    pub fn look_around(&mut self, now: Timestamp) {
        if std::mem::take(&mut self.acts.changed) {
            self.conduct_all(now, |conduct, cluster, now| conduct.handle_change(cluster, now));
        }
    }

    /// Does what is due of it; tells whether anything came of that.
    pub(super) fn wake_acts(&mut self, now: Timestamp) -> bool {
        let ended = self.end_enforcing(now);
        let is_due =
            |undertaking: &OperationEntry| undertaking.conduct.poll_timeout().is_some_and(|at| at <= now);
        let due = self.acts.undertakings.iter().any(is_due);
        if due {
            self.conduct_all(now, |conduct, cluster, now| conduct.handle_timeout(cluster, now));
        }
        ended || due
    }

    fn conduct_all(&mut self, now: Timestamp, step: impl Fn(&mut Operation, &Cluster, Timestamp)) {
        for undertaking in self.acts.undertakings.iter_mut().filter(|undertaking| undertaking.runs()) {
            step(&mut undertaking.conduct, &self.model.cluster, now);
            undertaking.stale = true;
        }
        self.collect(now);
    }

    fn conduct_one(
        &mut self,
        id: &OperationId,
        now: Timestamp,
        step: impl FnOnce(&mut Operation, &Cluster, Timestamp),
    ) {
        if let Some(undertaking) =
            self.acts.undertakings.iter_mut().find(|undertaking| undertaking.id() == id)
        {
            step(&mut undertaking.conduct, &self.model.cluster, now);
            undertaking.stale = true;
            self.collect(now);
        }
    }

    /// Takes in what came of a chore or an errand.
    pub fn told(&mut self, told: JobResult, now: Timestamp) {
        match told {
            JobResult::Errand { operation, id, outcome } => self.errand_done(&operation, id, outcome, now),
            JobResult::Unfinished(found) => self.on_unfinished(found, now),
            JobResult::Undoable { number, found } => self.on_undoable(number, found),
            JobResult::Planned { number, plan } => self.on_planned(number, plan),
            JobResult::Checked { number, checked } => self.on_checked(number, checked, now),
            JobResult::Begun { number, begun } => self.on_begun(number, begun, now),
            JobResult::Written { id, trouble, closed } => self.on_written(&id, trouble, closed, now),
        }
        self.screen.leave_closed_pane();
        if self.frozen.is_none() {
            self.arrange(now);
        }
    }

    /// Takes in what came of an errand.
    pub fn errand_done(
        &mut self,
        operation: &OperationId,
        id: RequestId,
        outcome: RequestOutcome,
        now: Timestamp,
    ) {
        self.conduct_one(operation, now, |conduct, cluster, now| {
            conduct.handle_outcome(cluster, id, outcome, now)
        });
    }

    fn on_written(&mut self, id: &OperationId, trouble: Option<String>, closed: bool, now: Timestamp) {
        if let Some(undertaking) = self.acts.undertaking_mut(id).filter(|_| closed) {
            undertaking.state = State::Closed;
        }
        if let Some(text) = trouble {
            self.model.journal.add(JournalEntry::new(now, Severity::Error, "journal", &text, Why::default()));
        }
    }

    /// Takes everything that the conducts have to say.
    fn collect(&mut self, now: Timestamp) {
        for undertaking in &mut self.acts.undertakings {
            let id = undertaking.id().clone();
            while let Some(notice) = undertaking.conduct.poll_notice() {
                let subject = if notice.subject.is_empty() { &undertaking.title } else { &notice.subject };
                let why = Why::default();
                self.model.journal.add(JournalEntry::new(
                    notice.at,
                    notice.level,
                    subject,
                    &notice.text,
                    why,
                ));
                self.acts.chores.push_back(Job::Say { id: id.clone(), notice: notice.clone() });
                if undertaking.notices.len() == TOLD {
                    undertaking.notices.pop_front();
                    undertaking.gone += 1;
                }
                undertaking.notices.push_back(notice);
            }
            let Some(end) = undertaking.conduct.ended().filter(|_| undertaking.state == State::Runs) else {
                continue;
            };
            undertaking.state = State::Ends;
            undertaking.report = undertaking.conduct.report();
            let text = undertaking.report.in_short();
            let level = if end == OperationEnd::Done { Severity::Info } else { Severity::Warning };
            let told = format!("{}: {text}", end.as_str());
            self.model.journal.add(JournalEntry::new(now, level, &undertaking.title, &told, Why::default()));
            let undid = undertaking.undoes.clone().filter(|_| end == OperationEnd::Done).map(Box::new);
            self.acts.chores.push_back(Job::End { id, end, text, undid });
        }
    }

    /// Brings the reports up to date that are shown.
    pub(super) fn report_acts(&mut self) {
        for undertaking in &mut self.acts.undertakings {
            if std::mem::take(&mut undertaking.stale) {
                undertaking.report = undertaking.conduct.report();
            }
        }
    }

    /// Takes up an undertaking that stands in the journal by now.
    fn take_up(
        &mut self,
        title: String,
        conduct: Operation,
        plan: Option<Box<Plan>>,
        undoes: Option<JournaledOperation>,
        now: Timestamp,
    ) {
        let name = conduct.orders().id.clone();
        let text = format!("begins as {name}");
        self.model.journal.add(JournalEntry::new(now, Severity::Info, &title, &text, Why::default()));
        let report = conduct.report();
        let (notices, gone, stale, state) = (VecDeque::new(), 0, true, State::Runs);
        let undertaking =
            OperationEntry { title, conduct, plan, undoes, report, notices, gone, stale, state };
        self.acts.undertakings.push(undertaking);
        self.acts.unfinished.retain(|past| past.id != name);
        self.screen.open_progress(name);
        self.collect(now);
    }

    /// Shows what is carried out, or where that is shown, what began before it.
    pub(super) fn open_progress(&mut self) {
        let names: Vec<&OperationId> = self.acts.undertakings.iter().map(OperationEntry::id).collect();
        let Some(last) = names.len().checked_sub(1) else {
            self.screen.message = Some("nothing has been carried out from here".into());
            return;
        };
        let shown = self.screen.overlays.progress().filter(|_| self.screen.focus == Pane::Progress);
        let place = shown.and_then(|shown| names.iter().position(|name| **name == shown.operation));
        let running = self.acts.undertakings.iter().rposition(OperationEntry::runs);
        let next = match place {
            Some(place) => place.checked_sub(1).unwrap_or(last),
            None => running.unwrap_or(last),
        };
        let name = names[next].clone();
        self.screen.open_progress(name);
    }

    /// The undertaking whose progress is shown.
    pub fn shown_undertaking(&self) -> Option<&OperationEntry> {
        self.acts.undertaking(&self.screen.overlays.progress()?.operation)
    }

    pub(super) fn pause(&mut self, now: Timestamp) {
        let Some(undertaking) = self.shown_undertaking() else { return };
        if !undertaking.runs() {
            self.screen.message = Some("it is over".into());
            return;
        }
        let name = undertaking.id().clone();
        self.conduct_one(&name, now, |conduct, cluster, now| {
            if conduct.is_paused() { conduct.go_on(cluster, now) } else { conduct.pause(now) }
        });
    }

    pub(super) fn ask_to_cancel(&mut self) {
        let Some(undertaking) = self.shown_undertaking() else { return };
        if !undertaking.runs() {
            self.screen.message = Some("it is over".into());
            return;
        }
        let about = DialogSubject::Cancel(undertaking.id().clone());
        self.ask(about, DialogStage::Asks(Prompt::Choice(&["Let it go on", "Cancel it"])));
    }

    /// Leaves, unless something is carried out: then that is asked about first. Asked once more, it leaves.
    pub(super) fn quit(&mut self) -> Reaction {
        let asked =
            matches!(self.screen.overlays.question(), Some(Dialog { about: DialogSubject::Quit, .. }));
        if asked || self.acts.leaving || self.acts.running().next().is_none() {
            return Reaction::Quit;
        }
        const CHOICES: &[&str] = &["Stay", "Leave it, to be resumed", "Cancel it, and leave"];
        self.ask(DialogSubject::Quit, DialogStage::Asks(Prompt::Choice(CHOICES)));
        Reaction::Draw
    }

    /// Puts a question over everything; tells its number.
    fn ask(&mut self, about: DialogSubject, stage: DialogStage) -> u64 {
        let number = self.acts.next_number();
        self.screen.ask(Dialog::new(number, about, stage));
        number
    }

    /// Takes in the answer to the question that stands.
    pub(super) fn consent(&mut self, now: Timestamp) -> Reaction {
        let Some(reply) = self.screen.overlays.question_mut().and_then(Dialog::reply) else {
            return Reaction::Draw;
        };
        let DialogReply::Yes(choice) = reply else {
            self.screen.overlays.close_question();
            return Reaction::Draw;
        };
        match self.screen.overlays.question().map(|dialog| &dialog.about) {
            Some(DialogSubject::Apply(_)) => self.agreed(now),
            Some(DialogSubject::Undo(_)) => self.agreed_to_undo(),
            Some(DialogSubject::Cancel(id)) => {
                let id = id.clone();
                self.screen.overlays.close_question();
                self.conduct_one(&id, now, |conduct, cluster, now| conduct.cancel(cluster, now));
            }
            Some(DialogSubject::Quit) => {
                self.screen.overlays.close_question();
                if choice == 1 {
                    return Reaction::Quit;
                }
                self.acts.leaving = true;
                self.conduct_all(now, |conduct, cluster, now| conduct.cancel(cluster, now));
            }
            None => {}
        }
        Reaction::Draw
    }

    /// The question with this number, if it still stands.
    fn question(&mut self, number: u64) -> Option<&mut Dialog> {
        self.screen.overlays.question_mut().filter(|dialog| dialog.number == number)
    }

    /// Closes the question with this number, if it is still open.
    fn close_question(&mut self, number: u64) -> Option<Dialog> {
        self.question(number)?;
        self.screen.overlays.close_question()
    }

    /// Says in the question that stands what keeps it from being done.
    fn refuse(&mut self, number: u64, why: Vec<String>) {
        if let Some(dialog) = self.question(number) {
            dialog.go_on(DialogStage::Refused(why));
        }
    }

    fn wait(&mut self, number: u64, wait: DialogWait, chore: Job) {
        if let Some(dialog) = self.question(number) {
            dialog.go_on(DialogStage::Waits(wait));
            self.acts.chores.push_back(chore);
        }
    }
}
