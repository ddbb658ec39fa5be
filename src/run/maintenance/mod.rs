//! Carries out a maintenance, wave after wave. Each wave is computed from the state of the cluster when it starts.
//!
//! Both the command line and the dashboard use this module. They differ in the model of the cluster ([`WatchedModel`])
//! and in the receiver of the progress ([`Tell`]).

mod gates;
mod host;
mod machine;
mod machines;
mod notes;
mod replaced;
mod stop;
mod terms;

use std::{collections::BTreeMap, sync::Arc};

use tokio::{
    sync::{Notify, mpsc, oneshot},
    task::JoinError,
};

use super::{
    approval_driver::decide,
    operation_driver::{OperationRun, Returned},
    signals::OperatorRequests,
    watched_model::WatchedModel,
};
use crate::executor::{
    hook::{Hook, HookLine},
    requests::RequestLink,
    write_context::{OperationLock, WriteContext, WriteContextError},
};
use kordon_clock::Clock;
use kordon_core::{
    cluster::{Cluster, MaintenanceNotes, MaintenanceStage, NodeName},
    engine::Severity,
    maintenance::{
        MaintenanceEnd, MaintenanceEndKind, MaintenanceNews, MaintenanceOptions, MaintenanceOutcome,
        MaintenancePlan, MaintenanceWave, NodeResult, PlanningProgress, WaitFor,
    },
    operation::{
        MaintenanceWrite, NodeIncomplete, NodeProgressStage, Operation, OperationEnd, OperationNotice,
        OperationOptions, OperatorInput,
        approval::{Approval, Approved, Decision, Operator, Terms},
    },
    plan::{Action, DrainOptions, words::counted},
};
use kordon_time::{Span, Timestamp};

use gates::Gates;
use host::WaveHost;
use machine::{MachineWork, RunningHook, WorkStage};
use notes::mark;
pub use replaced::replaced;
pub use stop::Stop;
pub use terms::{MaintenanceTerms, OnFailure};

/// A maintenance that is being carried out.
pub struct MaintenanceRun<'a> {
    watched: WatchedModel<'a>,
    context: WriteContext,
    lock: OperationLock,
    clock: Clock,
    terms: MaintenanceTerms,
    /// Options of the maintenance. A node is removed from `nodes` when its wave starts.
    options: MaintenanceOptions,
    operator: OperatorRequests,
    is_paused: bool,
    /// Since when nothing goes on: the operator has paused the maintenance, or a gate does not hold. The notes on nodes
    /// show it.
    paused_since: Option<Timestamp>,
    gates: Gates,
    outcome: MaintenanceOutcome,
    /// Queue of the lines that commands have printed and that are not reported yet.
    lines: (mpsc::Sender<HookLine>, mpsc::Receiver<HookLine>),
    /// Notified when a command has ended.
    hook_ended: Arc<Notify>,
    /// Time at which the maintenance annotation of a node is next renewed.
    renews_at: Timestamp,
    /// Nodes to which this process has written, and whether they have had a note since the last write. The watches may not
    /// show it yet.
    written: BTreeMap<NodeName, bool>,
    tell: Tell,
}

/// Everything that a [`MaintenanceRun`] needs to start.
pub struct NewMaintenance {
    pub context: WriteContext,
    pub lock: OperationLock,
    pub terms: MaintenanceTerms,
    pub options: MaintenanceOptions,
    pub outcome: MaintenanceOutcome,
    pub operator: OperatorRequests,
    /// Receives news of the progress of the maintenance.
    pub tell: Tell,
}

/// Receives news of the progress of a maintenance.
pub type Tell = Box<dyn FnMut(MaintenanceNews) + Send + Sync>;

/// Time for which the cluster is watched before the next check, while nothing is written and no command ends.
const LOOK: Span = Span::from_secs(1);

/// Capacity of the queue of lines that commands have printed and that are not reported yet.
const LINES: usize = 1_000;

impl<'a> MaintenanceRun<'a> {
    /// Creates a run. The gates (checks between waves) later compare the cluster with its state at the time of this
    /// call.
    pub fn new(new: NewMaintenance, mut watched: WatchedModel<'a>, clock: Clock) -> Self {
        let NewMaintenance { context, lock, terms, options, outcome, operator, tell } = new;
        let gates = Gates::new(terms.without_gates.clone(), &mut watched, clock);
        Self {
            watched,
            context,
            lock,
            clock,
            terms,
            options,
            operator,
            is_paused: false,
            paused_since: None,
            gates,
            outcome,
            lines: mpsc::channel(LINES),
            hook_ended: Arc::default(),
            renews_at: Timestamp::EPOCH,
            written: BTreeMap::new(),
            tell,
        }
    }

    /// Carries out all waves, and records the end in the journal unless the maintenance can be resumed. `begun` has the
    /// nodes that were in a wave when the maintenance was interrupted.
    ///
    /// # Errors
    /// The end cannot be written to the journal.
    pub async fn carry_out(
        mut self,
        begun: Option<MaintenanceNotes>,
    ) -> Result<MaintenanceEnd, WriteContextError> {
        let began = self.now();
        let stopped = self.run(begun).await;
        let not_started = self.outcome.not_started(&self.options.nodes);
        let is_taken_over = matches!(stopped, Err(Stop::TakenOver(_)));
        let is_killed = matches!(stopped, Err(Stop::Killed));
        let (kind, says) = match stopped {
            Ok(()) if self.outcome.left_out.is_empty() => (MaintenanceEndKind::Done, String::new()),
            Ok(()) => {
                let nodes = counted(self.outcome.left_out.len(), "node is", "nodes are");
                (MaintenanceEndKind::Partly, format!("{nodes} in no wave"))
            }
            Err(Stop::Cancelled | Stop::Killed) => (MaintenanceEndKind::Cancelled, "interrupted".into()),
            Err(Stop::TakenOver(by)) => (MaintenanceEndKind::Paused, runs_elsewhere(&by)),
            Err(Stop::Failed(why)) if self.roll_back().await => (MaintenanceEndKind::RolledBack, why),
            Err(Stop::Failed(why)) => (MaintenanceEndKind::Paused, why),
        };
        if kind.journaled().is_none() && !is_killed && !is_taken_over {
            self.mark_stopped().await;
        }
        let operation = self.lock.id.clone();
        let next = format!(
            "`kordon maintenance --resume={operation} --enforce` goes on, --release={operation} ends it"
        );
        let says = match kind.journaled() {
            Some(_) => says,
            None if is_taken_over => says,
            None => format!("{says}; {next}"),
        };
        let (ended, outcome) = (self.now(), self.outcome);
        let end = MaintenanceEnd { operation, began, ended, kind, says, outcome, not_started };
        if let Some(journaled) = kind.journaled() {
            self.lock.record_end(journaled, end.in_short(), self.clock).await?;
        }
        Ok(end)
    }

    /// Releases the nodes of a maintenance that was stopped, and records in the journal that the maintenance is over.
    ///
    /// # Errors
    /// The journal cannot be written. The inner error is the reason why not all nodes were released.
    pub async fn end(mut self, nodes: Vec<NodeName>) -> Result<Result<(), Stop>, WriteContextError> {
        let released = match self.take_notes().await {
            Ok(()) => self.release(nodes).await,
            Err(stop) => Err(stop),
        };
        if let Err(stop) = released {
            return Ok(Err(stop));
        }
        self.lock.record_end(OperationEnd::Cancelled, "released".into(), self.clock).await?;
        Ok(Ok(()))
    }

    async fn run(&mut self, begun: Option<MaintenanceNotes>) -> Result<(), Stop> {
        if let Some(mut notes) = begun {
            self.take_notes().await?;
            let (written, cluster) = (&self.written, self.watched.cluster());
            let has_lost_note =
                |name: &NodeName| cluster.node(name).is_some_and(|node| node.maintenance.is_none());
            // A replaced node has no note yet. Any other node without its note was released by somebody.
            let may_lack_note = self.terms.wait_for == Some(WaitFor::Replaced);
            let is_left = |name: &NodeName| {
                written.get(name) != Some(&false) && (may_lack_note || !has_lost_note(name))
            };
            notes.nodes.retain(|name, _| is_left(name));
            let left = self.options.nodes.iter().filter(|name| is_left(name)).cloned().collect();
            self.options.nodes = left;
            self.finish_wave(&notes).await?;
        }
        while !self.options.nodes.is_empty() {
            let Some(wave) = self.next_wave().await? else { break };
            if wave.starts > self.now() {
                self.claim_waiting().await?;
                self.wait_for_window(wave.starts).await?;
                // The cluster may have changed meanwhile, so the wave is computed again.
                self.pass_gates().await?;
                continue;
            }
            self.options.began = self.options.began.or(Some(wave.starts));
            self.maintain(wave).await?;
        }
        self.release_left_out().await
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Computes the waves of the remaining nodes, and returns the first wave. `None` if none of the nodes can be in a
    /// wave.
    async fn next_wave(&mut self) -> Result<Option<MaintenanceWave>, Stop> {
        let id = self.lock.id.clone();
        let cluster = match MaintenanceNotes::find(self.watched.cluster(), &id) {
            Some(notes) => notes.without_cordons(self.watched.cluster()),
            None => self.watched.cluster().clone(),
        };
        let now = self.now();
        let plan = plan(&mut self.watched, self.clock, cluster, &self.options, now, |_| ()).await;
        let plan =
            plan.map_err(|_| Stop::Failed("working out the waves failed: this is a fault of kordon".into()))?;
        self.options.before = self.options.before.or(plan.before);
        // The new plan does not contain the nodes that were left out when the maintenance started, so the reasons why
        // they were left out are kept.
        self.outcome.left_out.retain(|(node, _)| !self.options.nodes.contains(node));
        self.outcome.left_out.extend(plan.left_out);
        self.outcome.planned = plan.waves;
        self.tell_progress();
        Ok(self.outcome.planned.first().cloned())
    }

    /// Annotates the nodes whose wave has not started, so that nobody else maintains them. Until the next wave, no
    /// replacement has to land elsewhere, so the nodes that this maintenance has cordoned in advance are uncordoned.
    async fn claim_waiting(&mut self) -> Result<(), Stop> {
        let waiting = |name: &NodeName| (name.clone(), mark(MaintenanceStage::Waiting, false, ""));
        let writes = self.options.nodes.iter().map(waiting).collect();
        self.write(writes).await
    }

    /// Waits until a time window begins.
    async fn wait_for_window(&mut self, begins: Timestamp) -> Result<(), Stop> {
        self.tell(Severity::Info, "", format!("waits for the window at {}", begins.to_time())).await;
        while begins > self.now() {
            self.tick().await?;
        }
        Ok(())
    }

    /// Drains the nodes of a wave, waits for the work on their machines, and brings them back.
    async fn maintain(&mut self, wave: MaintenanceWave) -> Result<(), Stop> {
        let MaintenanceWave { nodes, ahead, .. } = wave;
        let number = self.outcome.start_wave(&nodes, self.clock.now());
        self.tell_progress();
        let names: Vec<&str> = nodes.iter().map(|node| &**node).collect();
        let last = number + self.outcome.planned.len();
        self.tell(Severity::Info, "", format!("wave {number} of {last}: {}", names.join(", "))).await;
        let approved = self.approve(&nodes).await?;
        let mut before: BTreeMap<NodeName, String> =
            nodes.iter().map(|name| (name.clone(), self.shown_before(name))).collect();
        let mut writes = Vec::new();
        for name in &self.options.nodes {
            let write = match before.get(name) {
                Some(before) => mark(MaintenanceStage::Draining, true, before),
                None => mark(MaintenanceStage::Waiting, ahead.contains(name), ""),
            };
            writes.push((name.clone(), write));
        }
        self.write(writes).await?;
        self.options.nodes.retain(|name| !nodes.contains(name));
        let drained = self.drain(&nodes, approved).await?;
        let now = self.now();
        let machine = |name| {
            let before = before.remove(&name).unwrap_or_default();
            MachineWork::new(name, before, MaintenanceStage::Working, now)
        };
        self.work(drained.into_iter().map(machine).collect()).await
    }

    /// Completes a wave that was interrupted.
    async fn finish_wave(&mut self, notes: &MaintenanceNotes) -> Result<(), Stop> {
        let draining = notes.in_stages(&[MaintenanceStage::Draining]);
        let stages = [MaintenanceStage::Working, MaintenanceStage::Awaited, MaintenanceStage::Returning];
        let empty = notes.in_stages(&stages);
        if draining.is_empty() && empty.is_empty() {
            return Ok(());
        }
        self.options.began = Some(self.now());
        self.outcome.start_wave(&[&draining[..], &empty].concat(), self.clock.now());
        self.tell(Severity::Info, "", "goes on with the wave that was interrupted".into()).await;
        let mut drained = Vec::new();
        if !draining.is_empty() {
            let approved = self.approve(&draining).await?;
            drained = self.drain(&draining, approved).await?;
        }
        self.options.nodes.retain(|name| !draining.contains(name) && !empty.contains(name));
        let now = self.now();
        let machine = |name: NodeName, stage| {
            let before = notes.nodes.get(&name).map(|note| note.before.clone()).unwrap_or_default();
            MachineWork::new(name, before, stage, now)
        };
        let mut machines = Vec::new();
        for stage in stages {
            machines.extend(notes.in_stages(&[stage]).into_iter().map(|name| machine(name, stage)));
        }
        machines.extend(drained.into_iter().map(|name| machine(name, MaintenanceStage::Working)));
        self.work(machines).await
    }

    /// Waits for the work on these machines, and brings their nodes back into service. If nodes remain for another
    /// wave, then waits for the gates.
    async fn work(&mut self, machines: Vec<MachineWork>) -> Result<(), Stop> {
        let at_work = machines.iter().filter(|machine| matches!(machine.stage, WorkStage::Command(_)));
        let mark =
            |machine: &MachineWork| self.staged(&machine.name, MaintenanceStage::Working, &machine.before);
        self.write(at_work.map(mark).collect()).await?;
        self.watch_machines(machines).await?;
        if let Some(text) = self.outcome.failure() {
            return Err(Stop::Failed(text));
        }
        if self.options.nodes.is_empty() { Ok(()) } else { self.pass_gates().await }
    }

    /// Approves the drains of a wave by the same rules as any other drain. Returns `None` if nothing is left to drain,
    /// because the nodes are already cordoned and empty.
    async fn approve(&mut self, nodes: &[NodeName]) -> Result<Option<Box<Approved>>, Stop> {
        let options = self.options.drain.clone();
        let action = Action::Drain {
            nodes: nodes.to_vec(),
            options: DrainOptions { parallel: nodes.len(), ..options },
        };
        let terms = Terms {
            context: self.context.kube_context.clone(),
            options: self.operation_options(),
            overrides: self.terms.overrides.clone(),
            operator: Operator::AgreedInAdvance,
            version: self.watched.model().settings.version,
        };
        let mut approval = Approval::apply(action, None, terms, &self.watched.situation());
        decide(&mut approval, &mut WaveHost(self)).await;
        match approval.into_decision() {
            Some(Decision::Approved(approved)) => Ok(Some(approved)),
            Some(Decision::NothingToDo(_)) => Ok(None),
            Some(decision) => Err(Stop::Failed(decision.lines().join("; "))),
            None => Err(Stop::Failed("the wave was not approved: this is a fault of kordon".into())),
        }
    }

    /// Drains the nodes of a wave. Returns the nodes that are now drained.
    async fn drain(
        &mut self,
        nodes: &[NodeName],
        approved: Option<Box<Approved>>,
    ) -> Result<Vec<NodeName>, Stop> {
        let Some(approved) = approved else {
            let now = self.now();
            nodes.iter().for_each(|node| self.record(node, NodeResult::Drained, now));
            return Ok(nodes.to_vec());
        };
        self.rest_while_paused().await?;
        let Approved { operation, plan, .. } = *approved;
        let operation = self.drive_drains(operation).await?;
        let (progress, now) = (operation.progress(), self.now());
        if let Some(stop) = progress.nodes.iter().find_map(|node| self.taken_over(&node.stage)) {
            return Err(stop);
        }
        if let Some(plan) = &plan {
            self.outcome.count_pods(&progress, plan);
        }
        let is_killed = operation.ended().is_none();
        let is_interrupted = |stage: &NodeProgressStage| match stage {
            NodeProgressStage::Incomplete(why) => *why == NodeIncomplete::Cancelled,
            _ => is_killed,
        };
        let mut drained = Vec::new();
        for node in &progress.nodes {
            match &node.stage {
                NodeProgressStage::Drained { at, .. } => {
                    self.record(&node.node, NodeResult::Drained, *at);
                    drained.push(node.node.clone());
                }
                // An interrupted drain has not failed: a resume goes on with it.
                stage if is_interrupted(stage) => {}
                stage => self.record(&node.node, NodeResult::Failed(stage.to_string()), now),
            }
        }
        match operation.ended() {
            None => Err(Stop::Killed),
            Some(OperationEnd::Cancelled) => Err(Stop::Cancelled),
            Some(_) => Ok(drained),
        }
    }

    fn record(&mut self, node: &NodeName, result: NodeResult, now: Timestamp) {
        self.outcome.record(node, result, now);
        self.tell_progress();
    }

    fn tell_progress(&mut self) {
        (self.tell)(MaintenanceNews::Progress(Box::new(self.outcome.clone())));
    }

    /// Drives the drains of a wave to their end. Whenever the operator pauses or resumes them, a node shows that at once:
    /// the drains may take long after that. If the operator asks twice to stop, returns the operation before its end.
    async fn drive_drains(&mut self, mut operation: Operation) -> Result<Operation, Stop> {
        let mut link = self.context.start_executor(&self.lock);
        loop {
            let returned;
            (operation, link, returned) = self.drive(operation, link, InputFrom::Operator).await;
            self.is_paused = operation.is_paused();
            if returned == Returned::Ended {
                return Ok(operation);
            }
            let since = self.is_paused.then(|| self.now());
            self.note_pause(since);
            match self.renew().await {
                Ok(()) | Err(Stop::Cancelled) => {}
                Err(Stop::Killed) => return Ok(operation),
                Err(stop @ Stop::TakenOver(_)) => return Err(stop),
                Err(Stop::Failed(why)) => {
                    let text = format!("others cannot see whether it is paused: {why}");
                    self.tell(Severity::Warning, "", text).await;
                }
            }
            // The operation of the renewal has received what the watches reported meanwhile.
            operation.handle_change(self.watched.cluster(), self.now());
        }
    }

    /// Drives an operation to its end, or until the operator pauses or resumes it. If the operator asks twice to stop,
    /// returns the operation before its end.
    async fn drive(
        &mut self,
        operation: Operation,
        link: RequestLink,
        from: InputFrom,
    ) -> (Operation, RequestLink, Returned) {
        let (watched, journal) = (self.watched.reborrow(), Some(self.lock.writer.clone()));
        let mut run = OperationRun { operation, watched, link, journal, clock: self.clock };
        let OperatorRequests { input, stop } = &mut self.operator;
        let (_nobody, mut no_input) = mpsc::channel(1);
        let input = match from {
            InputFrom::Operator => input,
            InputFrom::Nobody => &mut no_input,
        };
        let tell = &mut self.tell;
        let returned = tokio::select! {
            returned = run.run(input, |notice| tell(MaintenanceNews::Notice(notice.clone()))) => returned,
            _ = stop => {
                let text = "second interrupt: stopping now".into();
                let (at, level) = (self.clock.now(), Severity::Warning);
                tell(MaintenanceNews::Notice(OperationNotice { at, level, subject: String::new(), text }));
                Returned::Ended
            }
        };
        (run.operation, run.link, returned)
    }

    fn operation_options(&self) -> OperationOptions {
        OperationOptions {
            id: self.lock.id.clone(),
            by: self.context.by.clone(),
            reason: self.terms.reason.clone(),
            take_over: self.terms.overrides.take_over,
            ..OperationOptions::default()
        }
    }

    /// Returns the state of a node before the work, which `--wait-for` compares with the state after it. Empty without
    /// `--wait-for`.
    fn shown_before(&self, name: &NodeName) -> String {
        let node = self.watched.cluster().node(name);
        let before = |wait: &WaitFor| node.map(|node| wait.before(node));
        self.terms.wait_for.as_ref().and_then(before).unwrap_or_default()
    }

    /// Waits until all gates (checks between waves) pass. Fails if they do not pass within the gate timeout.
    async fn pass_gates(&mut self) -> Result<(), Stop> {
        let (until, mut told) = (self.now() + self.terms.gate_timeout, Vec::new());
        loop {
            let mut failures = self.gates.failures(&mut self.watched, self.clock);
            if failures.is_empty()
                && let Err(why) = self.run_gate_command().await?
            {
                failures.push(format!("command: {why}"));
            }
            if failures.is_empty() {
                self.note_pause(None);
                return Ok(());
            }
            self.note_pause(Some(self.now()));
            if self.now() > until {
                let (timeout, why) = (self.terms.gate_timeout, failures.join("; "));
                return Err(Stop::Failed(format!("not well within {timeout} (--gate-timeout): {why}")));
            }
            if failures != told {
                self.tell(
                    Severity::Warning,
                    "",
                    format!("paused until this is well: {}", failures.join("; ")),
                )
                .await;
                told = failures;
            }
            for _ in 0..5 {
                self.tick().await?;
            }
        }
    }

    /// Runs the command of `--gate`, if there is one.
    async fn run_gate_command(&mut self) -> Result<Result<(), String>, Stop> {
        let Some(hook) = self.terms.gate.clone() else { return Ok(Ok(())) };
        let mut running = match self.start_hook(hook, None) {
            Ok(running) => running,
            Err(why) => return Ok(Err(why)),
        };
        let ended = loop {
            match running.result() {
                Some(ended) => break ended,
                None => self.tick().await?,
            }
        };
        self.tell_lines().await;
        Ok(ended)
    }

    /// Starts a command of the operator, for one node or, without a node, for the whole cluster. The command holds the
    /// lock of the maintenance, so that nobody resumes the maintenance while the command runs.
    fn start_hook(&self, hook: Hook, node: Option<NodeName>) -> Result<RunningHook, String> {
        let lock = &self.lock;
        let (input, command) = lock.as_input().map_err(|error| error.to_string())?;
        let (id, lines) = (lock.id.to_string(), self.lines.0.clone());
        let ((sender, running), hook_ended) = (oneshot::channel(), Arc::clone(&self.hook_ended));
        tokio::spawn(async move {
            let result = hook.run(node.as_ref(), &id, input, lines).await;
            command.end();
            // Sending fails if the maintenance was stopped.
            let _ = sender.send(result);
            hook_ended.notify_one();
        });
        Ok(RunningHook(running))
    }

    /// Watches the cluster for a second at most, and then for as long as the maintenance is paused.
    async fn tick(&mut self) -> Result<(), Stop> {
        self.look().await?;
        self.rest_while_paused().await
    }

    /// Waits while the maintenance is paused. Meanwhile, only renewals of annotations are written.
    async fn rest_while_paused(&mut self) -> Result<(), Stop> {
        while self.is_paused {
            self.look().await?;
        }
        Ok(())
    }

    /// Watches the cluster for a second, or until a command ends or the operator gives an input, handles the input, and
    /// renews an annotation if that is due.
    async fn look(&mut self) -> Result<(), Stop> {
        let (clock, sleep) = (self.clock, self.clock.sleep(LOOK));
        let OperatorRequests { input, stop } = &mut self.operator;
        let asked = tokio::select! {
            biased;
            received = input.recv() => Some(received.ok_or(Stop::Killed)?),
            _ = stop => return Err(Stop::Killed),
            () = self.hook_ended.notified() => None,
            () = self.watched.while_watching(clock, sleep) => None,
        };
        match asked {
            None => {}
            Some(OperatorInput::Cancel) => return Err(Stop::Cancelled),
            Some(OperatorInput::Pause) => {
                self.is_paused = true;
                self.note_pause(Some(self.now()));
                self.tell(Severity::Info, "", "paused: commands that run go on".into()).await;
            }
            Some(OperatorInput::Resume) => {
                self.is_paused = false;
                self.note_pause(None);
                self.tell(Severity::Info, "", "resumed".into()).await;
            }
        }
        self.tell_lines().await;
        if self.now() >= self.renews_at { self.renew().await } else { Ok(()) }
    }

    /// Releases the nodes that are in no wave.
    async fn release_left_out(&mut self) -> Result<(), Stop> {
        let nodes = std::mem::take(&mut self.options.nodes);
        self.release(nodes).await
    }

    /// If the operator chose [`OnFailure::Rollback`], uncordons the nodes that are not drained, and leaves the drained
    /// ones as they are, because the work on their machines may be incomplete. Returns whether the maintenance is over.
    async fn roll_back(&mut self) -> bool {
        if self.terms.on_failure == OnFailure::Pause {
            return false;
        }
        let text = "rolls back: the nodes that are not drained are uncordoned".into();
        self.tell(Severity::Warning, "", text).await;
        let nodes = std::mem::take(&mut self.options.nodes).into_iter();
        let mut writes: BTreeMap<NodeName, MaintenanceWrite> =
            nodes.map(|name| (name, MaintenanceWrite::Release)).collect();
        let notes = MaintenanceNotes::find(self.watched.cluster(), &self.lock.id);
        for (name, note) in notes.into_iter().flat_map(|notes| notes.nodes) {
            let is_drained = self.outcome.is_drained(&name) || note.stage.is_drained();
            let write = if is_drained { MaintenanceWrite::Leave } else { MaintenanceWrite::Release };
            writes.insert(name, write);
        }
        self.write(writes.into_iter().collect()).await.is_ok()
    }

    /// Reports a message to the operator and to the journal.
    async fn tell(&mut self, level: Severity, subject: &str, text: String) {
        let notice = OperationNotice { at: self.now(), level, subject: subject.into(), text };
        (self.tell)(MaintenanceNews::Notice(notice.clone()));
        if let Err(error) = self.lock.record_notice(notice).await {
            tracing::error!(%error, "cannot write the journal");
        }
    }

    /// Reports the lines that commands have printed.
    async fn tell_lines(&mut self) {
        while let Ok(HookLine { node, text }) = self.lines.1.try_recv() {
            let subject = node.map_or_else(|| "gate".into(), |node| format!("node/{node}"));
            self.tell(Severity::Info, &subject, format!("| {text}")).await;
        }
    }
}

/// Who can control an operation while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InputFrom {
    /// The operator, who can pause and cancel the operation.
    Operator,
    /// Nobody, because the operation is short. Input of the operator waits until the operation has ended.
    Nobody,
}

/// Says that another process has resumed the maintenance.
pub fn runs_elsewhere(by: &str) -> String {
    format!("{by} has resumed it elsewhere, and runs it now")
}

/// Computes waves in the background, while the cluster is watched. Calls `tell` with the progress.
///
/// # Errors
/// The work panicked.
pub async fn plan(
    watched: &mut WatchedModel<'_>,
    clock: Clock,
    cluster: Cluster,
    options: &MaintenanceOptions,
    now: Timestamp,
    tell: impl Fn(PlanningProgress) + Send + 'static,
) -> Result<MaintenancePlan, JoinError> {
    let (options, rules) = (options.clone(), watched.rules());
    let work = tokio::task::spawn_blocking(move || {
        MaintenancePlan::with_progress(&cluster, &options, rules, now, &tell)
    });
    watched.while_watching(clock, work).await
}
