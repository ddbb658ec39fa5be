//! kordon without a screen: the watches, the store, the engine as a shadow, and a forecast twice a second.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use kordon::{
    clock::Clock,
    engine::{Confidence, Outcome, Settings},
    forecast::Forecast,
    k8s::{
        feed::{FeedEvent, FeedKind},
        watch::{self as k8s_watch, WatchOptions},
    },
    model::{ConnectionInfo, ControllerRole, Model, ModelOptions},
    time::Span,
};
use kube::Client;
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

/// Between two forecasts.
const EVERY: Duration = Duration::from_millis(500);
/// Forecasts that wait to be taken. Where there are more, nobody asks for them, and the newest are dropped.
const WAITING: usize = 1024;
/// Until the last of many nodes that wait in one zone would have its taint, and its pods had left.
const HORIZON: Span = Span::from_secs(400);

/// Watches a cluster until it is told to finish.
pub struct Observer {
    glance: watch::Receiver<Glance>,
    looks: mpsc::Receiver<Look>,
    cancel: CancellationToken,
    task: JoinHandle<Model>,
}

/// A forecast, and by how much it was made later than it should have been: where that is much, the machine was busy
/// with something else, and the real controllers may have been late too.
#[derive(Clone, Debug)]
pub struct Look {
    pub forecast: Forecast,
    pub late: Span,
}

/// What the observer thinks, as of half a second ago at most.
#[derive(Clone, Debug, Default)]
pub struct Glance {
    /// None until the engine has begun.
    pub footing: Option<Confidence>,
    /// What the shadow would have done, by now: object and summary.
    pub recorded: Vec<(String, String)>,
    /// Things that the last forecast names.
    pub foretold: usize,
    pub journal: Vec<String>,
}

impl Observer {
    pub fn start(client: Client, settings: Settings) -> Self {
        let cancel = CancellationToken::new();
        let clock = Clock::system();
        let (send, feeds) = mpsc::channel(256);
        let options = WatchOptions {
            version: settings.version,
            kinds: &FeedKind::ALL,
            no_pods: false,
            request_timeout: None,
        };
        k8s_watch::spawn(client, options, clock, send, cancel.clone());
        let (connection, role) = (ConnectionInfo::default(), ControllerRole::Shadow);
        let model = Model::new(ModelOptions { connection, settings, role }, clock.now());
        let (show, glance) = watch::channel(Glance::default());
        let (give, looks) = mpsc::channel(WAITING);
        let task = tokio::spawn(observe(model, feeds, clock, show, give, cancel.clone()));
        Self { glance, looks, cancel, task }
    }

    /// Waits until what the observer thinks is as wanted.
    pub async fn thinks(
        &mut self,
        what: &str,
        within: Duration,
        wanted: impl FnMut(&Glance) -> bool,
    ) -> Result<Glance> {
        let outcome =
            timeout(within, self.glance.wait_for(wanted)).await.map(|seen| seen.map(|glance| glance.clone()));
        match outcome {
            Ok(glance) => glance.context("the observer ended"),
            Err(_) => bail!("{what}: not within {within:?}; {:#?}", *self.glance.borrow()),
        }
    }

    /// The forecasts made since they were last asked for, in order.
    pub fn looks(&mut self) -> Vec<Look> {
        std::iter::from_fn(|| self.looks.try_recv().ok()).collect()
    }

    /// Everything that is known now.
    pub async fn finish(self) -> Result<Model> {
        self.cancel.cancel();
        self.task.await.context("the observer ended")
    }
}

async fn observe(
    mut model: Model,
    mut feeds: mpsc::Receiver<FeedEvent>,
    clock: Clock,
    show: watch::Sender<Glance>,
    give: mpsc::Sender<Look>,
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
                show.send_replace(Glance {
                    footing: model.engine.as_ref().map(|engine| engine.confidence(clock.now())),
                    recorded: recorded.clone(),
                    foretold: forecast.as_ref().map_or(0, |forecast| forecast.steps.len()),
                    journal: model.journal.entries().map(|entry| entry.text.to_string()).collect(),
                });
                // Where there is no place: see WAITING.
                if let (Some(forecast), Ok(place)) = (forecast, give.try_reserve()) {
                    place.send(Look { forecast, late });
                }
                next = Box::pin(sleep(EVERY));
            }
        }
        // Dry-run: what the shadow would do is written down, by nobody.
        while let Some(effect) = model.next_effect() {
            recorded.push((effect.write.object(), effect.write.summary()));
            model.on_outcome(effect.id, Outcome::Recorded, clock.now());
        }
    }
}

fn forecast(model: &Model, clock: Clock) -> Option<Forecast> {
    let engine = model.engine.as_ref()?;
    Some(Forecast::run(engine, &model.cluster, model.feeds.ahead(), clock.now(), HORIZON))
}
