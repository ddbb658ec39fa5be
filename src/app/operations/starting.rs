//! Starts operations from the dashboard: drives each approval from the key press to the operation in progress.

use super::{
    super::{
        dialog::{Dialog, DialogSubject},
        pane::Pane,
        preview::PlanKind,
    },
    App, Job,
};
use crate::model::JournalEntry;
use kordon_core::{
    cluster::OperationId,
    engine::{Severity, Why},
    operation::{
        OperationEnd, OperationOptions, Overrides,
        approval::{
            Answer, Approval, Decision, Need, NotStarted, Operator, PriorOperation, Situation, Started,
            Terms, plan_job,
        },
    },
    plan::{EvictionRules, Plan},
};
use kordon_time::Timestamp;

impl App {
    /// Opens the approval of the open plan. If the plan cannot be applied, shows the reason as a message.
    pub(in crate::app) fn apply_plan(&mut self, now: Timestamp) {
        match self.shown_plan() {
            Ok(plan) => {
                let action = plan.action.clone();
                let approval = Approval::apply(action, Some(plan), self.terms(now), &self.situation());
                self.open_approval(approval, now);
            }
            Err(why) => self.screen.message = Some(why),
        }
        // If a dialog has opened, its approval checks the exact rights, so nothing is said about them here.
        if self.screen.overlays.question().is_none() {
            self.say_missing_right();
        }
    }

    /// The shown plan.
    ///
    /// # Errors
    /// No plan is shown, the plan is a what-if, its computation failed, or it is not up to date.
    fn shown_plan(&self) -> Result<Box<Plan>, String> {
        let preview = self.screen.overlays.plan().ok_or("there is no plan")?;
        if preview.request.kind == PlanKind::Failure {
            return Err("what-if: cannot be applied".into());
        }
        if preview.is_behind() {
            return Err("the plan is not ready yet".into());
        }
        if let Some(why) = preview.fault() {
            return Err(why.to_owned());
        }
        Ok(Box::new(preview.plan().ok_or("there is no plan")?.clone()))
    }

    /// Resumes the oldest interrupted drain: plans the rest of the drain and asks for confirmation.
    pub(in crate::app) fn resume(&mut self, now: Timestamp) {
        match self.operations.interrupted.front().cloned() {
            Some(prior) => {
                let approval = Approval::resume(prior, self.terms(now), &self.situation(), now);
                self.open_approval(approval, now);
            }
            None => self.screen.message = Some("no drain was interrupted".into()),
        }
    }

    /// Looks up the operation to undo: the shown one, the interrupted drain, or the last operation.
    pub(in crate::app) fn undo(&mut self) {
        let shown = self.shown_operation().filter(|_| self.screen.focus == Pane::Progress);
        let shown = shown.filter(|shown| !shown.is_undo());
        if shown.is_some_and(super::OperationEntry::is_running) {
            self.screen.message = Some("it is still in progress: C cancels it, then it can be undone".into());
            return;
        }
        let named = shown.map(|shown| shown.id().clone());
        let id = named.or_else(|| self.operations.interrupted.front().map(|prior| prior.id.clone()));
        let number = self.open_dialog(DialogSubject::FindUndo);
        self.operations.jobs.push_back(Job::FindUndoable { number, id });
    }

    pub(super) fn on_undoable(
        &mut self,
        number: u64,
        found: Result<Option<PriorOperation>, String>,
        now: Timestamp,
    ) {
        let prior = match found {
            Ok(Some(prior)) => prior,
            Ok(None) => return self.close_with(number, "nothing to undo".into()),
            Err(why) => return self.close_with(number, why),
        };
        let approval = Approval::undo(prior, self.terms(now), &self.situation());
        if let Some(dialog) = self.dialog_mut(number) {
            dialog.subject = DialogSubject::Approval(Box::new(approval));
            self.drive(now);
        }
    }

    /// Opens the dialog of an approval. If the approval has already ended and its decision is one line, shows this line
    /// as a message instead. The footer has no room for more lines.
    fn open_approval(&mut self, approval: Approval, now: Timestamp) {
        let decided = approval.decision().map(Decision::lines).unwrap_or_default();
        match &decided[..] {
            [line] => self.screen.message = Some(line.clone()),
            _ => {
                self.open_dialog(DialogSubject::Approval(Box::new(approval)));
                self.drive(now);
            }
        }
    }

    /// Passes the operator's yes to the approval.
    pub(super) fn agree(&mut self, now: Timestamp) {
        let Some(number) = self.screen.overlays.question().map(|dialog| dialog.number) else { return };
        self.with_approval(number, now, |approval, situation| {
            approval.handle_answer(Answer::Yes, situation, now);
        });
    }

    pub(super) fn on_started(&mut self, number: u64, started: Result<Started, NotStarted>, now: Timestamp) {
        match started {
            Ok(started) if self.dialog_mut(number).is_none() => self.end_unwanted(started),
            started => self.with_approval(number, now, |approval, situation| {
                approval.handle_started(started, situation, now);
            }),
        }
    }

    /// Applies `change` to the approval of the dialog with this number, then continues the approval.
    pub(super) fn with_approval(
        &mut self,
        number: u64,
        now: Timestamp,
        change: impl FnOnce(&mut Approval, &Situation<'_>),
    ) {
        let (watches, locked) = (self.model.feeds.for_approval(), self.why_not_now());
        let situation = Situation { cluster: &self.model.cluster, watches, locked };
        let question = self.screen.overlays.question_mut().filter(|dialog| dialog.number == number);
        if let Some(Dialog { subject: DialogSubject::Approval(approval), .. }) = question {
            change(approval, &situation);
            self.drive(now);
        }
    }

    /// Continues the open approval: starts the job that it needs, and takes over an approved operation.
    fn drive(&mut self, now: Timestamp) {
        let Some(Dialog { number, subject: DialogSubject::Approval(approval), .. }) =
            self.screen.overlays.question_mut()
        else {
            return;
        };
        let number = *number;
        while let Some(notice) = approval.poll_notice() {
            let line =
                JournalEntry::new(notice.at, notice.level, &notice.subject, &notice.text, Why::default());
            self.model.journal.add(line);
        }
        if let Some(need) = approval.poll_need() {
            self.start_job(number, need, now);
        }
        let Some(Dialog { subject: DialogSubject::Approval(approval), .. }) = self.screen.overlays.question()
        else {
            return;
        };
        match approval.decision() {
            Some(Decision::Approved(_)) => self.take_approved(now),
            Some(Decision::Declined) => drop(self.screen.overlays.close_question()),
            Some(Decision::Refused(_) | Decision::NothingToDo(_)) | None => {}
        }
    }

    fn start_job(&mut self, number: u64, need: Need, now: Timestamp) {
        let job = match need {
            Need::Plan(action) => {
                let rules = EvictionRules::from(&self.model.settings);
                let job = plan_job(action, self.model.cluster.clone(), rules, now);
                Job::Plan { number, job: Box::new(job) }
            }
            Need::Checks(permissions) => Job::Check { number, permissions },
            Need::Start(request) => Job::Start { number, request },
            Need::Answer(_) => return self.dialog_mut(number).into_iter().for_each(Dialog::clear),
        };
        self.operations.jobs.push_back(job);
    }

    /// Adds an approved operation to those in progress.
    fn take_approved(&mut self, now: Timestamp) {
        let Some(Dialog { subject: DialogSubject::Approval(approval), .. }) =
            self.screen.overlays.close_question()
        else {
            return;
        };
        let Some(Decision::Approved(approved)) = approval.into_decision() else { return };
        if approved.plan.is_some() {
            self.screen.marked_nodes.clear();
            self.screen.marked_pods.clear();
        }
        if let Some(prior) = &approved.undoes {
            self.operations.interrupted.retain(|other| other.id != prior.id);
        }
        self.add_operation(*approved, now);
    }

    /// Ends an operation that started after its dialog was closed.
    fn end_unwanted(&mut self, started: Started) {
        let text = "cancelled before it wrote anything".into();
        self.operations.jobs.push_back(Job::End {
            id: started.id,
            end: OperationEnd::Cancelled,
            text,
            undid: None,
        });
    }

    pub(in crate::app) fn terms(&self, now: Timestamp) -> Terms {
        Terms {
            context: self.model.connection.context.clone(),
            options: OperationOptions {
                reason: self.operations.reason.clone(),
                until: self.operations.until.map(|span| now + span),
                total_timeout: self.operations.within,
                ..OperationOptions::default()
            },
            overrides: Overrides::default(),
            operator: Operator::Present,
            version: self.model.settings.version,
        }
    }

    fn situation(&self) -> Situation<'_> {
        Situation {
            cluster: &self.model.cluster,
            watches: self.model.feeds.for_approval(),
            locked: self.why_not_now(),
        }
    }

    /// Closes the dialog with this number, if it is still open.
    fn close_dialog(&mut self, number: u64) -> Option<Dialog> {
        self.dialog_mut(number)?;
        self.screen.overlays.close_question()
    }

    /// Closes a dialog that has nothing to ask, and shows a message.
    fn close_with(&mut self, number: u64, message: String) {
        if self.close_dialog(number).is_some() {
            self.screen.message = Some(message);
        }
    }

    /// Stores the interrupted drains that were found.
    pub(super) fn on_interrupted(&mut self, found: Result<Vec<PriorOperation>, String>, now: Timestamp) {
        match found {
            Ok(priors) => {
                let ours = |id: &OperationId| self.operations.entry(id).is_some();
                self.operations.interrupted = priors.into_iter().filter(|prior| !ours(&prior.id)).collect();
            }
            Err(why) => {
                let text = format!("cannot find interrupted drains: {why}");
                self.log(now, Severity::Warning, "journal", &text);
            }
        }
    }

    /// Dismisses the offer to resume an interrupted drain, which stays as it is. The next start of the dashboard offers
    /// it again.
    pub(in crate::app) fn dismiss(&mut self) {
        self.screen.message = Some(match self.operations.interrupted.pop_front() {
            Some(prior) => format!("{} stays as it is; `kordon journal` lists it", prior.id),
            None => "no drain was interrupted".into(),
        });
    }
}
