//! kordon without a screen: the watches, the store, the engine as a shadow, and a forecast twice a second.

use std::time::Duration;

use anyhow::{Context, Result};
use kordon::{
    app::{App, Duty, Facts, Mode, Options},
    clock::Clock,
    engine::{Outcome, Settings},
    forecast::Forecast,
    k8s::{
        feed::FeedEvent,
        watch::{self, WatchOptions},
    },
    time::Span,
};
use kube::Client;
use tokio::{sync::mpsc, task::JoinHandle, time::sleep};
use tokio_util::sync::CancellationToken;

/// Between two forecasts.
const EVERY: Duration = Duration::from_millis(500);
const HORIZON: Span = Span::from_secs(120);

/// Watches a cluster until it is told to finish.
pub struct Observer {
    cancel: CancellationToken,
    task: JoinHandle<(App, Vec<Forecast>)>,
}

impl Observer {
    pub fn start(client: Client, settings: Settings) -> Self {
        let cancel = CancellationToken::new();
        let clock = Clock::system();
        let (send, feeds) = mpsc::channel(256);
        let options = WatchOptions { version: settings.version, no_pods: false, request_timeout: None };
        watch::spawn(client, options, clock, send, cancel.clone());
        let (facts, themes) = (Facts::default(), Vec::new());
        let options = Options { facts, settings, mode: Mode::DryRun, duty: Duty::Shadow, themes };
        let app = App::new(options, clock.now());
        let task = tokio::spawn(observe(app, feeds, clock, cancel.clone()));
        Self { cancel, task }
    }

    /// Everything that is known now, and all forecasts that were made, in order.
    pub async fn finish(self) -> Result<(App, Vec<Forecast>)> {
        self.cancel.cancel();
        self.task.await.context("the observer ended")
    }
}

async fn observe(
    mut app: App,
    mut feeds: mpsc::Receiver<FeedEvent>,
    clock: Clock,
    cancel: CancellationToken,
) -> (App, Vec<Forecast>) {
    let mut forecasts = Vec::new();
    let mut next = Box::pin(sleep(EVERY));
    loop {
        let waking = app.wakes_at();
        tokio::select! {
            () = cancel.cancelled() => return (app, forecasts),
            Some(event) = feeds.recv() => app.hear(event, clock.now()),
            () = async { clock.sleep_until(waking.expect("looked at before")).await }, if waking.is_some() => {
                app.wake(clock.now().max(waking.expect("looked at before")));
            }
            () = &mut next => {
                forecasts.extend(forecast(&app, clock));
                next = Box::pin(sleep(EVERY));
            }
        }
        // Dry-run: what the shadow would do is written down, by nobody.
        while let Some(effect) = app.next_effect() {
            app.outcome(effect.id, Outcome::Recorded, clock.now());
        }
    }
}

fn forecast(app: &App, clock: Clock) -> Option<Forecast> {
    let engine = app.engine.as_ref()?;
    Some(Forecast::run(engine, &app.live.cluster, app.live.feeds.ahead(), clock.now(), HORIZON))
}
