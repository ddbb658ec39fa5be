//! The dashboard's maintenances. Each runs in a task beside the loop, with copies of the model that is shown.

use std::sync::Arc;

use futures::future::select_all;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::task::AbortOnDropHandle;

use super::{
    maintenance::{
        MaintenanceRun, MaintenanceTerms, NewMaintenance, OnFailure, Stop, Tell, plan, replaced,
        runs_elsewhere,
    },
    signals::OperatorRequests,
    watched_model::{ShownModel, WatchedModel},
};
use crate::{
    app::maintenance::{MaintenanceEvent, MaintenanceRequest, MaintenanceStart, StartSubject, StoppedWay},
    executor::{guards, hook::Hook, write_context::WriteContext},
    journal::{JournaledOperation, OperationStart},
    model::Model,
};
use kordon_clock::Clock;
use kordon_core::{
    cluster::{Cluster, MaintenanceNotes, NodeName, OperationId, Uid},
    maintenance::{MaintenanceOptions, MaintenanceOutcome, WaitFor},
    operation::{Guards, OperatorInput, Overrides},
};

/// The maintenances that run in this process.
#[derive(Default)]
pub(super) struct MaintenanceTasks(Vec<MaintenanceTask>);

struct MaintenanceTask {
    /// Number of the job that started the maintenance, which identifies the maintenance.
    number: u64,
    input: mpsc::Sender<OperatorInput>,
    events: mpsc::UnboundedReceiver<MaintenanceEvent>,
    newest: watch::Sender<Arc<Model>>,
    /// Sender that is only kept because the maintenance stops when the sender is dropped.
    _stop: oneshot::Sender<()>,
    /// The task, which is stopped if the dashboard ends. The maintenance can be resumed later.
    _task: AbortOnDropHandle<()>,
}

/// Maximum number of inputs of the operator that wait for a maintenance. A maintenance reads its inputs within a second
/// or two. While the queue is full, further inputs are dropped.
const INPUTS: usize = 8;

impl MaintenanceTasks {
    pub(super) fn start(
        &mut self,
        number: u64,
        start: MaintenanceStart,
        context: Option<WriteContext>,
        earlier: Option<Guards>,
        model: &Model,
        clock: Clock,
    ) {
        let (newest, shown) = watch::channel(Arc::new(model.clone()));
        let ((input, inputs), (_stop, stop)) = (mpsc::channel(INPUTS), oneshot::channel());
        // The channel is unbounded, because a maintenance must not wait for the screen and reports only a few lines a
        // second.
        let (events, received) = mpsc::unbounded_channel();
        let operator = OperatorRequests { input: inputs, stop };
        let task = tokio::spawn(async move {
            let starting = Starting { start, context, earlier, clock, events: events.clone() };
            if let Err(why) = starting.run(ShownModel::new(shown), operator).await {
                let _ = events.send(MaintenanceEvent::NotStarted(why));
            }
        });
        let _task = AbortOnDropHandle::new(task);
        self.0.push(MaintenanceTask { number, input, events: received, newest, _stop, _task });
    }

    /// Passes the operator's input to the maintenance with this number.
    pub(super) fn steer(&self, number: u64, input: OperatorInput) {
        if let Some(task) = self.0.iter().find(|task| task.number == number) {
            // A maintenance that has just ended takes no input.
            let _ = task.input.try_send(input);
        }
    }

    pub(super) fn show(&self, model: &Model) {
        if self.0.is_empty() {
            return;
        }
        let model = Arc::new(model.clone());
        for task in &self.0 {
            task.newest.send_replace(Arc::clone(&model));
        }
    }

    /// Waits for the next event; forever if no maintenance runs. May be dropped and awaited again.
    pub(super) async fn next(&mut self) -> (u64, MaintenanceEvent) {
        loop {
            if self.0.is_empty() {
                return std::future::pending().await;
            }
            let waits = self.0.iter_mut().map(|task| Box::pin(task.events.recv()));
            let (event, place, _) = select_all(waits).await;
            let number = self.0[place].number;
            match event {
                Some(event) => return (number, event),
                None => drop(self.0.remove(place)),
            }
        }
    }
}

/// A maintenance that is about to start.
struct Starting {
    start: MaintenanceStart,
    context: Option<WriteContext>,
    /// Guard rails that were in force earlier in this session.
    earlier: Option<Guards>,
    clock: Clock,
    events: mpsc::UnboundedSender<MaintenanceEvent>,
}

impl Starting {
    /// Starts, resumes or releases the maintenance, and carries it out.
    ///
    /// # Errors
    /// The maintenance cannot start; the text gives the reason. Later errors are events.
    async fn run(self, mut shown: ShownModel, operator: OperatorRequests) -> Result<(), String> {
        let context = self.context.clone().ok_or("nothing can be applied here")?;
        let watched = WatchedModel::Shown(&mut shown);
        match self.start.subject.clone() {
            StartSubject::New(request) => self.begin(*request, context, watched, operator).await,
            StartSubject::Stopped(id, StoppedWay::Resume) => {
                self.resume(id, context, watched, operator).await
            }
            StartSubject::Stopped(id, StoppedWay::Release) => {
                self.release(id, context, watched, operator).await
            }
        }
    }

    async fn begin(
        self,
        request: MaintenanceRequest,
        context: WriteContext,
        mut watched: WatchedModel<'_>,
        operator: OperatorRequests,
    ) -> Result<(), String> {
        let (terms, options) = (self.terms(&request)?, self.options(&request, watched.cluster())?);
        let now = self.clock.now();
        if let Some(other) = MaintenanceNotes::on_nodes(watched.cluster(), &options.nodes, now) {
            return Err(other);
        }
        let cluster = watched.cluster().clone();
        let plan = plan(&mut watched, self.clock, cluster, &options, now, |_| ()).await;
        let plan = plan.map_err(|_| "working out the waves failed: this is a fault of kordon")?;
        if plan.waves.is_empty() {
            return Err("no node can be in a wave".into());
        }
        let start = self.journaled(request.command(), &request.nodes, watched.cluster());
        let lock = context.start_maintenance(None, start).await.map_err(|error| error.to_string())?;
        let _ = self.events.send(MaintenanceEvent::Started(lock.id.clone(), Box::new(plan.clone())));
        let left_out: Vec<&NodeName> = plan.left_out.iter().map(|(node, _)| node).collect();
        let nodes = options.nodes.iter().filter(|node| !left_out.contains(node)).cloned().collect();
        let outcome = MaintenanceOutcome::planned(&plan);
        let options = MaintenanceOptions { nodes, before: plan.before, ..options };
        let tell = self.tell();
        let new = NewMaintenance { context, lock, terms, options, outcome, operator, tell };
        self.carry_out(MaintenanceRun::new(new, watched, self.clock), None).await;
        Ok(())
    }

    /// Resumes a maintenance that was started on this machine and stopped.
    async fn resume(
        self,
        id: OperationId,
        context: WriteContext,
        watched: WatchedModel<'_>,
        operator: OperatorRequests,
    ) -> Result<(), String> {
        let command = format!("`kordon maintenance --resume={id} --enforce`");
        let past = unfinished(&context, &id).await?;
        let past = past.ok_or_else(|| {
            format!("{id} was started elsewhere: {command} goes on, with its --exec or --wait-for")
        })?;
        let request = MaintenanceRequest::parse(&past.start.command);
        let request = request.map_err(|why| format!("{why}: {command} goes on"))?;
        let mut notes = self.stopped(&id, watched.cluster())?;
        if request.wait_for == Some(WaitFor::Replaced) {
            notes.nodes.extend(replaced(watched.cluster(), &past, &context.by, self.clock.now()));
        }
        let request = MaintenanceRequest { nodes: notes.nodes.keys().cloned().collect(), ..request };
        let (terms, options) = (self.terms(&request)?, self.options(&request, watched.cluster())?);
        let lock = context.resume_maintenance(&id).await.map_err(|error| error.to_string())?;
        let _ = self.events.send(MaintenanceEvent::Resumed(id));
        let (outcome, tell) = (MaintenanceOutcome::default(), self.tell());
        let new = NewMaintenance { context, lock, terms, options, outcome, operator, tell };
        self.carry_out(MaintenanceRun::new(new, watched, self.clock), Some(notes)).await;
        Ok(())
    }

    /// Releases the nodes of a maintenance that was stopped.
    async fn release(
        self,
        id: OperationId,
        context: WriteContext,
        watched: WatchedModel<'_>,
        operator: OperatorRequests,
    ) -> Result<(), String> {
        let notes = self.stopped(&id, watched.cluster())?;
        let nodes: Vec<NodeName> = notes.nodes.into_keys().collect();
        let is_journaled = unfinished(&context, &id).await?.is_some();
        let command = format!("kordon maintenance --release={id} --enforce");
        let start = (!is_journaled).then(|| self.journaled(command, &nodes, watched.cluster()));
        let lock = context.lock_maintenance(id.clone(), start).await.map_err(|error| error.to_string())?;
        let terms = self.terms(&MaintenanceRequest::new(Vec::new()))?;
        let (options, outcome) = (MaintenanceOptions::default(), MaintenanceOutcome::default());
        let new = NewMaintenance { context, lock, terms, options, outcome, operator, tell: self.tell() };
        let released = MaintenanceRun::new(new, watched, self.clock).end(nodes).await;
        match released.map_err(|error| error.to_string())? {
            Ok(()) => drop(self.events.send(MaintenanceEvent::Released(id))),
            Err(Stop::Failed(why)) => return Err(why),
            Err(Stop::TakenOver(by)) => return Err(runs_elsewhere(&by)),
            Err(Stop::Cancelled | Stop::Killed) => return Err("interrupted".into()),
        }
        Ok(())
    }

    async fn carry_out(&self, run: MaintenanceRun<'_>, begun: Option<MaintenanceNotes>) {
        let end = run.carry_out(begun).await;
        let end = end.map(Box::new).map_err(|error| error.to_string());
        let _ = self.events.send(MaintenanceEvent::Ended(end));
    }

    fn tell(&self) -> Tell {
        let news = self.events.clone();
        Box::new(move |one| drop(news.send(MaintenanceEvent::News(one))))
    }

    /// The notes of a maintenance that was stopped.
    ///
    /// # Errors
    /// It is over, or somebody has resumed it.
    fn stopped(&self, id: &OperationId, cluster: &Cluster) -> Result<MaintenanceNotes, String> {
        let notes = MaintenanceNotes::find(cluster, id).ok_or_else(|| format!("{id} is over"))?;
        if notes.is_running(self.clock.now()) {
            return Err(format!("{} runs {id}", notes.by));
        }
        Ok(notes)
    }

    fn terms(&self, request: &MaintenanceRequest) -> Result<MaintenanceTerms, String> {
        let hook = |command: &str| (!command.is_empty()).then(|| Hook::parse(command)).transpose();
        Ok(MaintenanceTerms {
            exec: hook(&request.exec)?,
            wait_for: request.wait_for.clone(),
            gate: hook(&request.gate)?,
            without_gates: request.without_gates.clone(),
            gate_timeout: request.gate_timeout,
            work_timeout: request.work_timeout,
            on_failure: if request.rolls_back { OnFailure::Rollback } else { OnFailure::Pause },
            reason: self.start.reason.clone(),
            overrides: Overrides::default(),
        })
    }

    /// Returns the options of the maintenance, limited by the strictest guard rails of this session.
    fn options(&self, request: &MaintenanceRequest, cluster: &Cluster) -> Result<MaintenanceOptions, String> {
        let guards = guards::read(None).map_err(|error| error.to_string())?;
        let guards = self.earlier.iter().fold(guards, |guards, earlier| guards.and(earlier));
        Ok(request.options(guards, cluster.nodes().len(), self.clock.now()))
    }

    /// The journal's record of the start of a maintenance. A resume reads the recorded command line.
    fn journaled(&self, command: String, nodes: &[NodeName], cluster: &Cluster) -> OperationStart {
        let uid = |name: &NodeName| -> Option<(NodeName, Uid)> {
            Some((name.clone(), cluster.node(name)?.uid.clone()))
        };
        OperationStart {
            reason: self.start.reason.clone(),
            command,
            nodes: nodes.iter().filter_map(uid).collect(),
            ..OperationStart::default()
        }
    }
}

/// The unfinished maintenance with this id in the journal of this machine; `None` if the journal does not have it. Reads
/// the journal on a blocking thread, because that may take a while.
async fn unfinished(context: &WriteContext, id: &OperationId) -> Result<Option<JournaledOperation>, String> {
    let context = context.clone();
    let read = tokio::task::spawn_blocking(move || context.unfinished_maintenances()).await;
    let found = read.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
    Ok(found.into_iter().find(|past| past.id == *id))
}
