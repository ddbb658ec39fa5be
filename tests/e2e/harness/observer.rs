//! kordon without a screen: watches, the cluster, an engine that shadows the controller, and a forecast every half
//! second.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use kordon::{
    k8s::{
        feed::{FeedEvent, FeedKind},
        watch::{self as k8s_watch, WatchOptions},
    },
    model::{ConnectionInfo, ControllerRole, Model, ModelOptions},
};
use kordon_clock::Clock;
use kordon_core::{
    engine::{Cause, Confidence, Outcome, Settings},
    forecast::Forecast,
    why::{Explainer, Step, Tense},
};
use kordon_time::Span;
use kube::Client;
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

/// Interval between forecasts.
const EVERY: Duration = Duration::from_millis(500);
/// Maximum number of forecasts that wait for [`Observer::samples`]. Further forecasts are dropped.
const WAITING: usize = 1024;
/// Horizon of a forecast. It is long enough to taint the last of many nodes in a zone and to delete the pods of that
/// node.
const HORIZON: Span = Span::from_secs(400);

/// Watches a cluster until [`Observer::finish`].
pub struct Observer {
    state: watch::Receiver<ObserverState>,
    samples: mpsc::Receiver<Sample>,
    cancel: CancellationToken,
    task: JoinHandle<Model>,
}

/// A forecast and its delay. A delay means that the machine was busy, and that the real controllers may have been late
/// too.
#[derive(Clone, Debug)]
pub struct Sample {
    pub forecast: Forecast,
    pub late: Span,
    /// Node explanations in which an effect comes before its cause.
    pub out_of_order: Vec<String>,
}

/// State of the observer, at most half a second old.
#[derive(Clone, Debug, Default)]
pub struct ObserverState {
    /// Confidence in the controller; `None` until the engine has started.
    pub confidence: Option<Confidence>,
    /// Effects that the shadow controller decided but did not write: object and summary.
    pub recorded: Vec<(String, String)>,
    /// Number of steps in the last forecast.
    pub predicted: usize,
    pub journal: Vec<String>,
}

impl Observer {
    pub fn start(client: Client, settings: Settings) -> Self {
        Self::start_with_clock(client, settings, Span::ZERO)
    }

    /// Like [`Self::start`], with a clock that is ahead of the machine's by this much. Samples are dated by the
    /// machine's clock.
    pub fn start_with_clock(client: Client, settings: Settings, ahead: Span) -> Self {
        let cancel = CancellationToken::new();
        let clock = Clock::new(Clock::system().now() + ahead, 1.0);
        let (send, feeds) = mpsc::channel(256);
        let options = WatchOptions {
            version: settings.version,
            kinds: &FeedKind::ALL,
            no_pods: false,
            request_timeout: None,
        };
        k8s_watch::spawn(client, options, watch::Sender::default().subscribe(), clock, send, cancel.clone());
        let (connection, role) = (ConnectionInfo::default(), ControllerRole::Shadow);
        let model = Model::new(ModelOptions { connection, settings, role }, clock.now());
        let (show, state) = watch::channel(ObserverState::default());
        let (give, samples) = mpsc::channel(WAITING);
        let task =
            tokio::spawn(observe(model, feeds, ObserverClock { clock, ahead }, show, give, cancel.clone()));
        Self { state, samples, cancel, task }
    }

    /// Waits until the state fulfils a condition.
    pub async fn wait_until(
        &mut self,
        what: &str,
        within: Duration,
        wanted: impl FnMut(&ObserverState) -> bool,
    ) -> Result<ObserverState> {
        let outcome =
            timeout(within, self.state.wait_for(wanted)).await.map(|seen| seen.map(|state| state.clone()));
        match outcome {
            Ok(state) => state.context("the observer ended"),
            Err(_) => bail!("not within {within:?}: {what}; {:#?}", *self.state.borrow()),
        }
    }

    /// Returns the forecasts made since the last call, in order.
    pub fn samples(&mut self) -> Vec<Sample> {
        std::iter::from_fn(|| self.samples.try_recv().ok()).collect()
    }

    /// Stops watching and returns the final model.
    pub async fn finish(self) -> Result<Model> {
        self.cancel.cancel();
        self.task.await.context("the observer ended")
    }
}

/// The observer's clock, and how far it is ahead of the machine's.
#[derive(Clone, Copy)]
struct ObserverClock {
    clock: Clock,
    ahead: Span,
}

/// Converts the times of a forecast to the machine's clock.
fn by_machine_clock(mut forecast: Forecast, ahead: Span) -> Forecast {
    forecast.made = forecast.made - ahead;
    forecast.until = forecast.until - ahead;
    for taint in &mut forecast.uncertain_taints {
        taint.at = taint.at - ahead;
    }
    for step in &mut forecast.steps {
        step.at = step.at - ahead;
        for cause in &mut step.why.0 {
            match cause {
                Cause::LastHeartbeat { at, noticed, .. } => {
                    (*at, *noticed) = (*at - ahead, *noticed - ahead);
                }
                Cause::GraceRestarted { at, .. } => *at = *at - ahead,
                Cause::Tainted { since, .. } => *since = *since - ahead,
                _ => {}
            }
        }
    }
    forecast
}

async fn observe(
    mut model: Model,
    mut feeds: mpsc::Receiver<FeedEvent>,
    ObserverClock { clock, ahead }: ObserverClock,
    show: watch::Sender<ObserverState>,
    give: mpsc::Sender<Sample>,
    cancel: CancellationToken,
) -> Model {
    let mut recorded = Vec::new();
    let mut next = Box::pin(sleep(EVERY));
    loop {
        let waking = model.poll_timeout();
        tokio::select! {
            () = cancel.cancelled() => return model,
            Some(event) = feeds.recv() => { model.on_watch_event(event, clock.now()); }
            () = async { clock.sleep_until(waking.expect("looked at before")).await }, if waking.is_some() => {
                model.on_timeout(clock.now().max(waking.expect("looked at before")));
            }
            () = &mut next => {
                let late = Span::from(next.deadline().elapsed());
                model.refresh(clock.now());
                let forecast = forecast(&model, clock);
                show.send_replace(ObserverState {
                    confidence: model.engine.as_ref().map(|engine| engine.confidence(clock.now())),
                    recorded: recorded.clone(),
                    predicted: forecast.as_ref().map_or(0, |forecast| forecast.steps.len()),
                    journal: model.journal.entries().map(|entry| entry.text.to_string()).collect(),
                });
                // New samples are dropped while the channel is full; see [`WAITING`].
                if let (Some(forecast), Ok(place)) = (forecast, give.try_reserve()) {
                    let out_of_order = out_of_order(&model, &forecast, clock);
                    place.send(Sample { forecast: by_machine_clock(forecast, ahead), late, out_of_order });
                }
                next = Box::pin(sleep(EVERY));
            }
        }
        // As in a dry run, the shadow controller's effects are added to `recorded`, and not sent to the API server.
        while let Some(effect) = model.effects.take_next() {
            recorded.push((effect.write.object(), effect.write.summary()));
            model.on_outcome(effect.id, Outcome::Recorded, clock.now());
        }
    }
}

/// Returns the explanations of not Ready nodes in which an effect comes before its cause.
fn out_of_order(model: &Model, forecast: &Forecast, clock: Clock) -> Vec<String> {
    let Some(engine) = &model.engine else { return Vec::new() };
    let explainer = Explainer {
        engine,
        cluster: &model.cluster,
        forecast: Some(forecast),
        outcomes: None,
        staying: None,
        preempted: None,
        cordon_waits: &[],
        now: clock.now(),
    };
    let down = model.cluster.nodes().iter().filter(|node| !node.is_ready());
    let is_wrong = |steps: &[Step]| {
        [Tense::Past, Tense::Future].into_iter().any(|tense| {
            !steps.iter().filter(|step| step.tense == tense).filter_map(|step| step.at).is_sorted()
        })
    };
    down.filter_map(|node| {
        let steps = explainer.node(node);
        is_wrong(&steps).then(|| format!("{}: {steps:#?}", node.name))
    })
    .collect()
}

fn forecast(model: &Model, clock: Clock) -> Option<Forecast> {
    let engine = model.engine.as_ref()?;
    Some(Forecast::run(engine, &model.cluster, clock.now(), HORIZON))
}
