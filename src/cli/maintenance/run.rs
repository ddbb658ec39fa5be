//! Carries out a maintenance: wave after wave, each worked out from the cluster as it then is.

use std::collections::BTreeMap;

use super::{
    args::{MaintenanceArgs, OnFailure},
    gates::Gates,
    host::WaveHost,
    machine::{MachineWork, RunningHook, WorkStage},
    outcome::{MaintenanceOutcome, NodeResult},
    stop::Stop,
};
use crate::{
    cli::act::{print_notice, session::OperationSession},
    run::{
        approval_driver::decide,
        hook::{Hook, HookLine},
        signals::SignalRequests,
    },
};
use kordon_core::{
    cluster::{Cluster, MaintenanceStage, Node, NodeName, maintenance_note::RENEW_NOTE_EVERY},
    engine::Severity,
    maintenance::{MaintenanceNotes, MaintenanceOptions, MaintenancePlan, MaintenanceWave, WaitFor},
    operation::{
        MaintenanceWrite, NodeIncomplete, NodeProgressStage, Operation, OperationEnd, OperationNotice,
        OperationOptions,
        approval::{Approval, Decision, Operator, Terms},
    },
    plan::{Action, DrainOptions, EvictionRules},
};
use kordon_time::{Span, Timestamp};
use tokio::{sync::mpsc, task::JoinError};

/// A maintenance that is carried out.
pub struct MaintenanceRun {
    pub session: OperationSession,
    pub args: MaintenanceArgs,
    /// What is left to do. Its nodes become fewer.
    pub options: MaintenanceOptions,
    pub signals: SignalRequests,
    pub gates: Gates,
    pub outcome: MaintenanceOutcome,
    /// Lines that commands print.
    pub lines: (mpsc::Sender<HookLine>, mpsc::Receiver<HookLine>),
    /// When one of the notes is renewed next.
    pub renews_at: Timestamp,
}

/// Interval at which the cluster is looked at while nothing is written.
const LOOK: Span = Span::from_secs(1);

impl MaintenanceRun {
    /// Carries out all waves. `begun` are the nodes that were in a wave when the maintenance was interrupted.
    pub async fn run(&mut self, begun: Option<MaintenanceNotes>) -> Result<(), Stop> {
        if let Some(notes) = begun {
            self.finish_wave(&notes).await?;
        }
        while !self.options.nodes.is_empty() {
            let Some(wave) = self.next_wave().await? else { break };
            self.wait_for_start(&wave).await?;
            self.carry_out(wave).await?;
        }
        self.release_left_out().await
    }

    pub(super) fn now(&self) -> Timestamp {
        self.session.known.clock.now()
    }

    /// Works out the waves of the nodes that are left, and returns the first. `None` if none of them can be in a wave.
    async fn next_wave(&mut self) -> Result<Option<MaintenanceWave>, Stop> {
        let id = self.session.lock().id.clone();
        let cluster = match MaintenanceNotes::find(self.session.cluster(), &id) {
            Some(notes) => notes.without_cordons(self.session.cluster()),
            None => self.session.cluster().clone(),
        };
        let now = self.now();
        let plan = plan(&mut self.session, cluster, &self.options, now).await;
        let plan =
            plan.map_err(|_| Stop::Paused("working out the waves failed: this is a fault of kordon".into()))?;
        self.options.before = self.options.before.or(plan.before);
        // Nodes that were left out at the start are not in the new plan.
        self.outcome.left_out.retain(|(node, _)| !self.options.nodes.contains(node));
        self.outcome.left_out.extend(plan.left_out);
        self.outcome.waves_left = plan.waves.len();
        Ok(plan.waves.into_iter().next())
    }

    /// Waits until the window of a wave opens.
    async fn wait_for_start(&mut self, wave: &MaintenanceWave) -> Result<(), Stop> {
        if wave.starts > self.now() {
            self.tell(Severity::Info, "", format!("waits for the window at {}", wave.starts.to_time())).await;
        }
        while wave.starts > self.now() {
            self.tick().await?;
        }
        Ok(())
    }

    /// Drains the nodes of a wave, waits for the work on their machines, and brings them back.
    async fn carry_out(&mut self, wave: MaintenanceWave) -> Result<(), Stop> {
        let MaintenanceWave { nodes, cordons_ahead, .. } = wave;
        let number = self.outcome.next_wave(&nodes);
        let names: Vec<&str> = nodes.iter().map(|node| &**node).collect();
        let last = number + self.outcome.waves_left.saturating_sub(1);
        self.tell(Severity::Info, "", format!("wave {number} of {last}: {}", names.join(", "))).await;
        let operation = self.approve(&nodes).await?;
        let mut before: BTreeMap<NodeName, String> =
            nodes.iter().map(|name| (name.clone(), self.shown_before(name))).collect();
        let mut writes = Vec::new();
        for name in &self.options.nodes {
            let write = match before.get(name) {
                Some(before) => mark(MaintenanceStage::Draining, true, before),
                None => mark(MaintenanceStage::Waiting, cordons_ahead, ""),
            };
            writes.push((name.clone(), write));
        }
        self.write(writes).await?;
        self.options.nodes.retain(|name| !nodes.contains(name));
        let drained = self.drain(&nodes, operation).await?;
        let now = self.now();
        let machine = |name| {
            let before = before.remove(&name).unwrap_or_default();
            MachineWork::new(name, before, MaintenanceStage::Working, now)
        };
        self.work(drained.into_iter().map(machine).collect()).await
    }

    /// Brings a wave that was interrupted to its end.
    async fn finish_wave(&mut self, notes: &MaintenanceNotes) -> Result<(), Stop> {
        let draining = notes.in_stages(&[MaintenanceStage::Draining]);
        let stages = [MaintenanceStage::Working, MaintenanceStage::Awaited, MaintenanceStage::Returning];
        let empty = notes.in_stages(&stages);
        if draining.is_empty() && empty.is_empty() {
            return Ok(());
        }
        self.outcome.next_wave(&[&draining[..], &empty].concat());
        self.tell(Severity::Info, "", "goes on with the wave that was interrupted".into()).await;
        let mut drained = Vec::new();
        if !draining.is_empty() {
            let operation = self.approve(&draining).await?;
            drained = self.drain(&draining, operation).await?;
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

    /// Waits for the work on these machines, brings their nodes back, and then for the gates.
    async fn work(&mut self, machines: Vec<MachineWork>) -> Result<(), Stop> {
        let at_work = machines.iter().filter(|machine| matches!(machine.stage, WorkStage::Command(_)));
        let mark =
            |machine: &MachineWork| self.staged(&machine.name, MaintenanceStage::Working, &machine.before);
        self.write(at_work.map(mark).collect()).await?;
        self.watch_machines(machines).await?;
        if let Some(text) = self.outcome.failure() {
            return Err(Stop::Paused(text));
        }
        if self.options.nodes.is_empty() { Ok(()) } else { self.pass_gates().await }
    }

    /// Approves the drains of a wave by the rules of any drain. `None` if nothing is left to drain: the nodes are cordoned and
    /// empty.
    async fn approve(&mut self, nodes: &[NodeName]) -> Result<Option<Operation>, Stop> {
        let options = self.options.drain.clone();
        let action = Action::Drain {
            nodes: nodes.to_vec(),
            options: DrainOptions { parallel: nodes.len(), ..options },
        };
        let terms = Terms {
            context: self.session.context.kube_context.clone(),
            options: self.operation_options(),
            overrides: self.args.agreement.overrides(),
            operator: Operator::AgreedInAdvance,
            version: self.session.known.model.settings.version,
        };
        let mut approval = Approval::apply(action, None, terms, &self.session.situation());
        decide(&mut approval, &mut WaveHost(&mut self.session)).await;
        match approval.into_decision() {
            Some(Decision::Approved(approved)) => Ok(Some(approved.operation)),
            Some(Decision::NothingToDo(_)) => Ok(None),
            Some(decision) => Err(Stop::Paused(decision.lines().join("; "))),
            None => Err(Stop::Paused("the wave was not approved: this is a fault of kordon".into())),
        }
    }

    /// Drains the nodes of a wave. Returns those that are empty.
    async fn drain(
        &mut self,
        nodes: &[NodeName],
        operation: Option<Operation>,
    ) -> Result<Vec<NodeName>, Stop> {
        let Some(operation) = operation else {
            let now = self.now();
            nodes.iter().for_each(|node| self.outcome.record(node, NodeResult::Drained, now));
            return Ok(nodes.to_vec());
        };
        let operation = self.session.carry_out(operation, &mut self.signals).await;
        let (progress, now) = (operation.progress(), self.now());
        self.outcome.count(&progress);
        let mut drained = Vec::new();
        for node in &progress.nodes {
            match &node.stage {
                NodeProgressStage::Drained { .. } => {
                    self.outcome.record(&node.node, NodeResult::Drained, now);
                    drained.push(node.node.clone());
                }
                stage => self.outcome.record(&node.node, NodeResult::Failed(stage.to_string()), now),
            }
        }
        match operation.ended() {
            None => Err(Stop::Killed),
            Some(OperationEnd::Cancelled) => Err(Stop::Cancelled),
            Some(_) => Ok(drained),
        }
    }

    /// The write that notes a stage and leaves the cordon of the node as it is.
    pub fn staged(
        &self,
        name: &NodeName,
        stage: MaintenanceStage,
        before: &str,
    ) -> (NodeName, MaintenanceWrite) {
        let cordoned = self.session.cluster().node(name).is_some_and(|node| node.unschedulable);
        (name.clone(), mark(stage, cordoned, before))
    }

    /// Writes how far nodes are. Nodes that are gone are left out.
    pub async fn write(&mut self, writes: Vec<(NodeName, MaintenanceWrite)>) -> Result<(), Stop> {
        let cluster = self.session.cluster();
        let is_due = |node: &Node, write: &MaintenanceWrite| match (write, &node.maintenance) {
            (MaintenanceWrite::Mark { stage, cordoned, .. }, Some(note)) => {
                note.operation != self.session.lock().id
                    || note.stage != *stage
                    || node.unschedulable != *cordoned
            }
            (_, Some(_)) | (MaintenanceWrite::Mark { .. }, None) => true,
            (MaintenanceWrite::Release, None) => node.cordon().is_some(),
        };
        let found = writes.into_iter().filter_map(|(name, write)| {
            let node = cluster.node(&name).filter(|node| is_due(node, &write))?;
            Some((name, node.uid.clone(), write))
        });
        self.write_to(found.collect()).await
    }

    async fn write_to(
        &mut self,
        writes: Vec<(NodeName, kordon_core::cluster::Uid, MaintenanceWrite)>,
    ) -> Result<(), Stop> {
        if writes.is_empty() {
            return Ok(());
        }
        let rules = EvictionRules::from(&self.session.known.model.settings);
        let options = self.operation_options();
        let operation = Operation::maintain(writes, options, rules, self.session.cluster(), self.now());
        let operation = self.session.carry_out(operation, &mut self.signals).await;
        self.renews_at = self.now() + RENEW_NOTE_EVERY;
        match operation.ended() {
            None => return Err(Stop::Killed),
            Some(OperationEnd::Cancelled) => return Err(Stop::Cancelled),
            Some(_) => {}
        }
        let failed = operation.progress().nodes.into_iter().find_map(|node| match node.stage {
            NodeProgressStage::Incomplete(NodeIncomplete::Gone | NodeIncomplete::OtherNode) => None,
            NodeProgressStage::Incomplete(why) => Some(format!("{}: {why}", node.node)),
            _ => None,
        });
        failed.map_or(Ok(()), |text| Err(Stop::Paused(text)))
    }

    fn operation_options(&self) -> OperationOptions {
        OperationOptions {
            id: self.session.lock().id.clone(),
            by: self.session.context.by.clone(),
            reason: self.args.agreement.reason.clone(),
            take_over: self.args.agreement.take_over,
            ..OperationOptions::default()
        }
    }

    /// What a machine shows before its work.
    fn shown_before(&self, name: &NodeName) -> String {
        let node = self.session.cluster().node(name);
        let before = |wait: &WaitFor| node.map(|node| wait.before(node));
        self.args.wait_for.as_ref().and_then(before).unwrap_or_default()
    }

    /// Waits until all gates hold.
    async fn pass_gates(&mut self) -> Result<(), Stop> {
        let (until, mut told) = (self.now() + self.args.gate_timeout, Vec::new());
        loop {
            let mut failures = self.gates.failures(&mut self.session.known);
            if failures.is_empty()
                && let Err(why) = self.run_gate_command().await?
            {
                failures.push(format!("command: {why}"));
            }
            if failures.is_empty() {
                return Ok(());
            }
            if self.now() > until {
                return Err(Stop::Paused(failures.join("; ")));
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
        let Some(hook) = self.args.gate.clone() else { return Ok(Ok(())) };
        let mut running = match self.start_hook(hook, None) {
            Ok(running) => running,
            Err(why) => return Ok(Err(why)),
        };
        while !running.is_finished() {
            self.tick().await?;
        }
        self.tell_lines().await;
        Ok(end_of_hook(&mut running).await)
    }

    /// Starts a command of the operator; without a node for the whole cluster. It holds the lock of the maintenance, so that
    /// nobody goes on while it runs.
    pub(super) fn start_hook(&self, hook: Hook, node: Option<NodeName>) -> Result<RunningHook, String> {
        let lock = self.session.lock();
        let input = lock.as_input().map_err(|error| error.to_string())?;
        let (id, lines) = (lock.id.to_string(), self.lines.0.clone());
        Ok(tokio::spawn(async move { hook.run(node.as_ref(), &id, input, lines).await }))
    }

    /// Watches the cluster for a second, and renews a note if one is due.
    pub async fn tick(&mut self) -> Result<(), Stop> {
        let clock = self.session.known.clock;
        let sleep = clock.sleep(LOOK);
        tokio::select! {
            biased;
            received = self.signals.input.recv() => match received {
                Some(_) => return Err(Stop::Cancelled),
                None => return Err(Stop::Killed),
            },
            _ = &mut self.signals.stop => return Err(Stop::Killed),
            () = self.session.while_watching(sleep) => {}
        }
        self.tell_lines().await;
        if self.now() >= self.renews_at { self.renew().await } else { Ok(()) }
    }

    /// Writes one of the notes again, so that others see that the maintenance runs.
    async fn renew(&mut self) -> Result<(), Stop> {
        let notes = MaintenanceNotes::find(self.session.cluster(), &self.session.lock().id);
        let Some((name, note)) = notes.and_then(|notes| notes.nodes.into_iter().next()) else {
            return Ok(());
        };
        let Some(node) = self.session.cluster().node(&name) else { return Ok(()) };
        let uid = node.uid.clone();
        let (name, write) = self.staged(&name, note.stage, &note.before);
        self.write_to(vec![(name, uid, write)]).await
    }

    /// Gives back the nodes that are in no wave.
    async fn release_left_out(&mut self) -> Result<(), Stop> {
        let nodes = std::mem::take(&mut self.options.nodes);
        self.release(nodes).await
    }

    /// Uncordons nodes, as far as this maintenance has cordoned them, and removes its notes.
    pub async fn release(&mut self, nodes: Vec<NodeName>) -> Result<(), Stop> {
        self.write(nodes.into_iter().map(|name| (name, MaintenanceWrite::Release)).collect()).await
    }

    /// What happens to the nodes that are not drained yet when the maintenance stops. Returns whether it is over.
    pub async fn after_stop(&mut self) -> bool {
        if self.args.on_failure == OnFailure::Pause {
            return false;
        }
        let nodes = std::mem::take(&mut self.options.nodes);
        let text = "rolls back: the nodes that are not drained are uncordoned".into();
        self.tell(Severity::Warning, "", text).await;
        self.release(nodes).await.is_ok()
    }

    /// Tells the operator and the journal.
    pub async fn tell(&mut self, level: Severity, subject: &str, text: String) {
        let notice = OperationNotice { at: self.now(), level, subject: subject.into(), text };
        print_notice(&notice);
        if let Err(error) = self.session.lock().record_notice(notice).await {
            tracing::error!(%error, "cannot write the journal");
        }
    }

    /// Tells what commands have printed.
    pub async fn tell_lines(&mut self) {
        while let Ok(HookLine { node, text }) = self.lines.1.try_recv() {
            let subject = node.map_or_else(|| "gate".into(), |node| format!("node/{node}"));
            self.tell(Severity::Info, &subject, format!("| {text}")).await;
        }
    }
}

/// Works out waves, while the cluster is watched.
pub async fn plan(
    session: &mut OperationSession,
    cluster: Cluster,
    options: &MaintenanceOptions,
    now: Timestamp,
) -> Result<MaintenancePlan, JoinError> {
    let (options, rules) = (options.clone(), EvictionRules::from(&session.known.model.settings));
    let work = tokio::task::spawn_blocking(move || MaintenancePlan::new(&cluster, &options, rules, now));
    session.while_watching(work).await
}

/// How a command has ended; waits for it.
pub async fn end_of_hook(running: &mut RunningHook) -> Result<(), String> {
    running.await.unwrap_or_else(|_| Err("it ended by a fault of kordon".into()))
}

/// The write that notes a stage.
fn mark(stage: MaintenanceStage, cordoned: bool, before: &str) -> MaintenanceWrite {
    MaintenanceWrite::Mark { stage, cordoned, before: before.into() }
}
