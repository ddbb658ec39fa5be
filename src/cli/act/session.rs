//! A session for an operation that writes to a cluster, with the operator at the terminal.

use std::io::{self, BufRead, IsTerminal, Write};

use super::{AgreementArgs, HowArgs, print_line, print_notice, report};
use crate::{
    cli::{
        CliError,
        config::Config,
        connection::ConnectionArgs,
        once::OneShot,
        plan::{PlacementMode, PlanTarget, PrintArgs, source, table_of, unknown_plan},
        source::SourceArgs,
    },
    executor::write_context::{OperationLock, WriteContext},
    model::Model,
    run::{
        approval_driver::{ApprovalHost, checks, decide, make_plan},
        operation_driver::OperationRun,
        signals::{self, OperatorRequests},
    },
};
use kordon_core::{
    cluster::Cluster,
    operation::{
        Drift, Guards, Operation, OperationEnd, OperationNotice, OperationOptions,
        approval::{
            Answer, Approval, ApprovalRefusal, Approved, Checks, Decision, NotStarted, Operator, Prompt,
            Question, Situation, StartRequest, Started, Terms, Watches, plan_job,
        },
    },
    plan::{Action, EvictionRules, Permission, Plan, needs},
    visible,
};
use kordon_time::Timestamp;

/// How the operator agrees: in advance with `--yes`, or when asked on a terminal. Without a terminal, nobody can be
/// asked.
pub fn operator(how: &AgreementArgs) -> Operator {
    if how.yes {
        Operator::AgreedInAdvance
    } else if io::stdin().is_terminal() && io::stderr().is_terminal() {
        Operator::Present
    } else {
        Operator::Absent
    }
}

/// Fails if the objects come from files, or if the operator did not agree in advance and cannot be asked. The check
/// comes before any request to the cluster.
pub fn require_operator(source: &SourceArgs, how: &AgreementArgs) -> Result<(), CliError> {
    source.refuse_writes()?;
    match operator(how) {
        Operator::Present | Operator::AgreedInAdvance => Ok(()),
        Operator::Absent => Err(CliError::NotApproved(ApprovalRefusal::NobodyToAsk)),
    }
}

/// Whether an operation may move pods. Only then can placements of pods be requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placing {
    Pods,
    Nothing,
}

/// An operation on a cluster: the objects that its plan needs, guard rails, the journal and the lock.
pub struct OperationSession {
    pub known: OneShot,
    pub context: WriteContext,
    guards: Guards,
    config: Config,
    source: Source,
    /// Lock of the operation, once it has started.
    lock: Option<OperationLock>,
}

/// The part of the cluster that is watched until the operation ends.
enum Source {
    /// The whole cluster, because placements depend on it.
    Whole,
    /// Only the objects that the action changes. `action` is `None` until the action is known. `print` has the time
    /// limit for reading the objects.
    Scopes { action: Option<Action>, print: Box<PrintArgs> },
}

impl OperationSession {
    /// Connects to the cluster. Once the action is known, [`Self::read`] reads the objects that it depends on.
    pub async fn connect(
        places: Placing,
        print: &PrintArgs,
        how: &HowArgs,
        connection: ConnectionArgs,
    ) -> Result<Self, CliError> {
        let guards = how.agreement.guards()?;
        let (patience, config) = (print.patience(), connection.config.clone());
        print.source.refuse_writes()?;
        let connection = patience.connect(connection, &print.source).await?;
        if how.agreement.enforce {
            ConnectionArgs::require_writable(&config, &connection.context)?;
        }
        let guards = config.guarded(&connection.context, guards);
        let context = WriteContext::for_connection(&connection, patience.clock).await?;
        if let Some(notice) = &context.notice {
            print_line(notice);
        }
        let whole = match (places, print.placement.unwrap_or(PlacementMode::Skip)) {
            (Placing::Pods, placement) => source::whole(&connection, placement, patience).await?,
            (Placing::Nothing, _) => Err(""),
        };
        let (known, source) = match whole {
            Ok(known) => (known, Source::Whole),
            Err(flag) => {
                let mut known = OneShot::following(connection);
                if places == Placing::Pods {
                    source::leave_out_placement(&mut known, flag);
                }
                (known, Source::Scopes { action: None, print: Box::new(print.clone()) })
            }
        };
        Ok(Self { known, context, guards, config, source, lock: None })
    }

    /// Creates a session for a cluster that is already read and watched as a whole.
    pub async fn over(known: OneShot, guards: Guards, config: Config) -> Result<Self, CliError> {
        ConnectionArgs::require_writable(&config, &known.connection.context)?;
        let context = WriteContext::for_connection(&known.connection, known.clock).await?;
        if let Some(notice) = &context.notice {
            print_line(notice);
        }
        Ok(Self { known, context, guards, config, source: Source::Whole, lock: None })
    }

    /// Resolves the selectors of a target, and reads the objects that the action depends on.
    pub async fn resolve(&mut self, target: &PlanTarget, print: &PrintArgs) -> Result<Action, CliError> {
        let selection = |_: &Model, namespace: &str| target.selection(namespace);
        if let Source::Scopes { print, .. } = &self.source {
            self.known.read(print.patience(), selection).await?;
        }
        let unselected = self.cluster().gaps_in(target.selection(self.namespace())).unknown();
        if !unselected.is_empty() {
            return Err(unknown_plan(unselected));
        }
        let Self { known: OneShot { connection, .. }, config, .. } = &*self;
        self.known.model.settings = source::settings(target, print, connection, config).await?;
        let action = target.action(self.cluster(), self.namespace());
        self.read(action.clone()).await?;
        let near = target.near(self.cluster(), self.namespace());
        self.known.read_near(near).await;
        Ok(action)
    }

    /// Reads the objects that an action depends on, and watches the objects that the action changes. An undo changes
    /// only nodes, so its caller passes an uncordon of these nodes as the action.
    pub async fn read(&mut self, action: Action) -> Result<(), CliError> {
        if let Source::Scopes { action: watched, .. } = &mut self.source {
            *watched = Some(action);
        }
        self.bring_up_to_date().await
    }

    /// Reads unwatched objects again, and applies changes of watched ones.
    async fn bring_up_to_date(&mut self) -> Result<(), CliError> {
        let rules = EvictionRules::from(&self.known.model.settings);
        match &self.source {
            Source::Scopes { action: Some(action), print } => {
                self.known.follow(action, &rules, print.patience()).await
            }
            Source::Scopes { action: None, .. } | Source::Whole => {
                self.known.catch_up();
                Ok(())
            }
        }
    }

    pub fn cluster(&self) -> &Cluster {
        &self.known.model.cluster
    }

    pub fn namespace(&self) -> &str {
        &self.known.namespace
    }

    pub fn situation(&self) -> Situation<'_> {
        let model = &self.known.model;
        let watches = match &self.source {
            Source::Scopes { action: Some(action), .. } => {
                Watches::new(&needs::watched(action), &model.cluster)
            }
            Source::Scopes { action: None, .. } | Source::Whole => model.feeds.for_approval(),
        };
        Situation { cluster: &model.cluster, watches, locked: None }
    }

    pub fn terms(&self, how: &HowArgs) -> Terms {
        Terms {
            context: self.context.kube_context.clone(),
            options: OperationOptions {
                reason: how.agreement.reason.clone(),
                until: how.until.map(|span| self.now() + span),
                total_timeout: how.total_timeout,
                ..OperationOptions::default()
            },
            overrides: how.overrides(),
            operator: operator(&how.agreement),
            version: self.known.model.settings.version,
        }
    }

    /// Prints the interrupted drains of this context.
    pub fn report_interrupted(&self) {
        let Ok(interrupted) = self.context.interrupted() else { return };
        for prior in interrupted {
            print_line(&format!(
                "{} was interrupted (started {}): `kordon drain --resume={} --enforce` resumes it, `kordon undo {} \
                 --enforce` undoes it",
                prior.title,
                prior.started_at.to_time(),
                prior.id,
                prior.id,
            ));
        }
    }

    /// Gets the approval, runs the operation to its end, and prints the report.
    pub async fn run(mut self, mut approval: Approval, print: &PrintArgs) -> Result<(), CliError> {
        decide(&mut approval, &mut self).await;
        let unchanged = report::OperationReport::unchanged(&approval, self.now());
        let approved = match approval.into_decision() {
            Some(Decision::Approved(approved)) => approved,
            Some(Decision::NothingToDo(text)) => {
                print_line(&format!("nothing to do: {text}"));
                return print.output.print(&unchanged, report::render);
            }
            Some(Decision::Refused(refusal)) => return Err(CliError::NotApproved(refusal)),
            Some(Decision::Declined) | None => return Err(CliError::Declined),
        };
        let (report, end) = self.run_operation(*approved).await?;
        print.output.print(&report, report::render)?;
        match end {
            OperationEnd::Done | OperationEnd::Recorded => Ok(()),
            OperationEnd::Partly
            | OperationEnd::TimedOut
            | OperationEnd::Forbidden
            | OperationEnd::ClaimedByOther
            | OperationEnd::Cancelled => Err(CliError::Ended { end, text: report.in_short }),
        }
    }

    async fn run_operation(
        mut self,
        approved: Approved,
    ) -> Result<(report::OperationReport, OperationEnd), CliError> {
        let mut signals = listen()?;
        let operation = self.carry_out(approved.operation, &mut signals).await;
        let (progress, ended, clock) = (operation.progress(), operation.ended(), self.known.clock);
        let end = ended.unwrap_or(OperationEnd::Cancelled);
        let lock = self.lock();
        // An operation that was stopped gets no end in the journal, because requests in flight may still succeed.
        if ended.is_some() {
            lock.record_end(end, progress.in_short(), clock).await?;
        }
        if let Some(undone) = approved.undoes.filter(|_| end == OperationEnd::Done) {
            lock.record_undone(&undone, clock).await?;
        }
        Ok((report::OperationReport::new(&progress, end, clock.now()), end))
    }

    /// Carries out an operation. If a second signal stops the program, returns the operation before its end.
    pub async fn carry_out(&mut self, operation: Operation, signals: &mut OperatorRequests) -> Operation {
        let lock = self.lock.as_ref().expect("an operation that was approved has its lock");
        let (link, journal) = (self.context.start_executor(lock), Some(lock.writer.clone()));
        let clock = self.known.clock;
        let mut run = OperationRun { operation, watched: self.known.watched(), link, journal, clock };
        let OperatorRequests { input, stop } = signals;
        tokio::select! {
            // Signals only cancel an operation, so it runs to its end.
            _ = run.run(input, print_notice) => {}
            _ = stop => print_line("second interrupt: stopping now"),
        }
        run.operation
    }

    /// The lock of the operation.
    pub fn lock(&self) -> &OperationLock {
        self.lock.as_ref().expect("an operation that was approved has its lock")
    }

    /// Hands over the lock of the operation.
    pub fn take_lock(&mut self) -> OperationLock {
        self.lock.take().expect("an operation that was approved has its lock")
    }

    pub fn set_lock(&mut self, lock: OperationLock) {
        self.lock = Some(lock);
    }

    /// Asks the operator on the terminal to type some words.
    pub async fn ask_for(&mut self, wanted: &Prompt) -> Answer {
        let words = wanted.words();
        let context = &self.context.kube_context;
        let mark = self.config.preferences(context).mark.filter(|mark| mark.word != *context);
        let word = mark.map(|mark| format!("{}: ", mark.word)).unwrap_or_default();
        let prompt =
            format!("{word}This writes to {context}. Type {words} to continue, anything else to cancel: ");
        let typed = self.while_watching(tokio::task::spawn_blocking(move || read_answer(&prompt))).await;
        match typed {
            Ok(Ok(typed)) if wanted.accepts(&typed) => Answer::Yes,
            Ok(Ok(_)) | Err(_) => Answer::No,
            Ok(Err(error)) => {
                print_line(&format!("cannot read the answer: {error}"));
                Answer::No
            }
        }
    }

    /// Applies watch events during `work`, so that no later decision uses outdated data.
    pub async fn while_watching<T>(&mut self, work: impl Future<Output = T>) -> T {
        let clock = self.known.clock;
        self.known.watched().while_watching(clock, work).await
    }
}

impl ApprovalHost for OperationSession {
    fn situation(&self) -> Situation<'_> {
        OperationSession::situation(self)
    }

    fn now(&self) -> Timestamp {
        self.known.clock.now()
    }

    async fn plan(&mut self, action: Action) -> Result<Box<Plan>, String> {
        self.bring_up_to_date().await.map_err(|error| error.to_string())?;
        if action.surges() {
            self.known.read_autoscalers().await;
        }
        let owners = needs::owners_with_settings(&action, self.cluster());
        self.known.read_operator_settings(&owners).await;
        let rules = EvictionRules::from(&self.known.model.settings);
        let mut job = plan_job(action, self.cluster().clone(), rules, ApprovalHost::now(self));
        if let Source::Scopes { .. } = self.source {
            job.snapshot = None;
        }
        self.while_watching(make_plan(job)).await
    }

    async fn check(&mut self, permissions: Vec<Permission>) -> Result<Checks, String> {
        let (context, guards) = (self.context.clone(), self.guards.clone());
        self.while_watching(async move { checks(&context, guards, &permissions).await }).await
    }

    async fn ask(&mut self, approval: &Approval, question: &Question) -> Answer {
        for line in shown(approval, question) {
            print_line(&line);
        }
        self.ask_for(&question.prompt).await
    }

    async fn start(&mut self, request: StartRequest) -> Result<Started, NotStarted> {
        let context = self.context.clone();
        let (started, lock) = self.while_watching(async move { context.start(request).await }).await?;
        self.lock = Some(lock);
        Ok(started)
    }

    fn tell(&mut self, notice: &OperationNotice) {
        print_notice(notice);
    }
}

/// Listens for signals.
pub fn listen() -> Result<OperatorRequests, CliError> {
    signals::listen().map_err(|error| CliError::Io { doing: "listening for signals".into(), error })
}

/// Lines that show the plan or undo, and the question about it.
fn shown(approval: &Approval, question: &Question) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(plan) = approval.plan() {
        // The table is split into lines, because each line is printed and sanitized on its own.
        lines.extend(table_of(plan).lines().map(str::to_owned));
    }
    if let Some(undo) = approval.undo_proposal() {
        lines.extend(undo.writes().into_iter().map(|write| format!("would {write}")));
        lines.extend(undo.kept.iter().map(|kept| format!("stays as it is: {kept}")));
    }
    lines.extend(
        Drift::lines(&question.drifts).iter().map(|drift| format!("changed since you agreed: {drift}")),
    );
    lines.extend(question.objections.iter().flat_map(|objection| {
        let flag = objection.flag();
        objection.lines().into_iter().map(move |line| format!("{line} ({flag})")).collect::<Vec<_>>()
    }));
    lines
}

fn read_answer(prompt: &str) -> io::Result<String> {
    let mut out = io::stderr();
    out.write_all(visible::text(prompt).as_bytes())?;
    out.flush()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(line)
}
