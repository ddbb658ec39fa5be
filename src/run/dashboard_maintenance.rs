//! The dashboard's maintenances. Each runs in a task beside the loop, with copies of the model that is shown.

use std::sync::Arc;

use futures::future::select_all;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::task::AbortOnDropHandle;

use super::{
    maintenance::{MaintenanceRun, MaintenanceTerms, NewMaintenance, OnFailure, plan},
    signals::OperatorRequests,
    watched_model::{ShownModel, WatchedModel},
};
use crate::{
    app::maintenance::{MaintenanceEvent, MaintenanceRequest, MaintenanceStart},
    executor::{
        guards,
        hook::Hook,
        write_context::{OperationLock, WriteContext},
    },
    journal::OperationStart,
    model::Model,
};
use kordon_clock::Clock;
use kordon_core::{
    cluster::{Cluster, MaintenanceNotes, NodeName, Uid},
    maintenance::{MaintenanceOptions, MaintenanceOutcome},
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
    /// Starts the maintenance and carries it out.
    ///
    /// # Errors
    /// The maintenance cannot start; the text gives the reason. Later errors are events.
    async fn run(self, mut shown: ShownModel, operator: OperatorRequests) -> Result<(), String> {
        let context = self.context.clone().ok_or("nothing can be applied here")?;
        let mut watched = WatchedModel::Shown(&mut shown);
        let (terms, options) = (self.terms()?, self.options(watched.cluster())?);
        let now = self.clock.now();
        if let Some(other) = MaintenanceNotes::running_on(watched.cluster(), &options.nodes, now) {
            return Err(other);
        }
        let cluster = watched.cluster().clone();
        let plan = plan(&mut watched, self.clock, cluster, &options, now).await;
        let plan = plan.map_err(|_| "working out the waves failed: this is a fault of kordon")?;
        if plan.waves.is_empty() {
            return Err("no node can be in a wave".into());
        }
        let lock = self.lock(&context, watched.cluster()).await?;
        let _ = self.events.send(MaintenanceEvent::Started(lock.id.clone(), Box::new(plan.clone())));
        let left_out: Vec<&NodeName> = plan.left_out.iter().map(|(node, _)| node).collect();
        let nodes = options.nodes.iter().filter(|node| !left_out.contains(node)).cloned().collect();
        let outcome = MaintenanceOutcome::planned(&plan);
        let news = self.events.clone();
        let new = NewMaintenance {
            context,
            lock,
            terms,
            options: MaintenanceOptions { nodes, before: plan.before, ..options },
            outcome,
            operator,
            tell: Box::new(move |one| drop(news.send(MaintenanceEvent::News(one)))),
        };
        let end = MaintenanceRun::new(new, watched, self.clock).carry_out(None).await;
        let end = end.map(Box::new).map_err(|error| error.to_string());
        let _ = self.events.send(MaintenanceEvent::Ended(end));
        Ok(())
    }

    fn terms(&self) -> Result<MaintenanceTerms, String> {
        let MaintenanceStart { request, reason } = &self.start;
        let MaintenanceRequest { exec, wait_for, .. } = request;
        let exec = (!exec.is_empty()).then(|| Hook::parse(exec)).transpose()?;
        Ok(MaintenanceTerms {
            exec,
            wait_for: wait_for.clone(),
            gate: None,
            without_gates: Vec::new(),
            gate_timeout: MaintenanceTerms::GATE_TIMEOUT,
            work_timeout: MaintenanceTerms::WORK_TIMEOUT,
            on_failure: OnFailure::Pause,
            reason: reason.clone(),
            overrides: Overrides::default(),
        })
    }

    /// Returns the options of the maintenance, limited by the strictest guard rails of this session.
    fn options(&self, cluster: &Cluster) -> Result<MaintenanceOptions, String> {
        let guards = guards::read(None).map_err(|error| error.to_string())?;
        let guards = self.earlier.iter().fold(guards, |guards, earlier| guards.and(earlier));
        Ok(self.start.request.options(guards, cluster.nodes().len(), self.clock.now()))
    }

    /// Takes the lock of a new maintenance, and records its start. The recorded command line can also resume the
    /// maintenance.
    async fn lock(&self, context: &WriteContext, cluster: &Cluster) -> Result<OperationLock, String> {
        let MaintenanceStart { request, reason } = &self.start;
        let uid = |name: &NodeName| -> Option<(NodeName, Uid)> {
            Some((name.clone(), cluster.node(name)?.uid.clone()))
        };
        let start = OperationStart {
            reason: reason.clone(),
            command: request.command(),
            nodes: request.nodes.iter().filter_map(uid).collect(),
            ..OperationStart::default()
        };
        context.start_maintenance(None, start).await.map_err(|error| error.to_string())
    }
}
