//! A dashboard that has loaded a large cluster of the embedded API.

use kordon::{
    app::{App, AppOptions},
    executor::effects::EffectExecutor,
    k8s::connect::Connection,
    model::{ConnectionInfo, ControllerRole, Model, ModelOptions},
    run::{Links, Session},
};
use kordon_clock::Clock;
use kordon_core::{
    cluster::FeedKind,
    engine::{ServerVersion, Settings},
};
use kordon_demo::api::{Api, ApiOptions};
use kordon_time::Timestamp;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

use crate::objects::LargeCluster;

/// Present time of all clusters here: 2026-01-02 03:00:00 UTC.
pub const START: Timestamp = Timestamp::from_secs(1_767_322_800);

/// An API that serves a large cluster. Its runtime runs all tasks on this thread, because allocations are counted by
/// thread.
pub struct ServedCluster {
    pub api: Api,
    pub clock: Clock,
    pub runtime: Runtime,
    cancel: CancellationToken,
}

impl ServedCluster {
    pub fn new(nodes: usize, pods: usize) -> Self {
        Self::with_clock_speed(nodes, pods, 1.0)
    }

    /// Like [`Self::new`], with a clock that runs at a thousandth of real time. Otherwise nodes could become Unknown
    /// while a busy machine loads them, because their Leases are not renewed.
    pub fn with_slow_clock(nodes: usize, pods: usize) -> Self {
        Self::with_clock_speed(nodes, pods, 0.001)
    }

    fn with_clock_speed(nodes: usize, pods: usize, speed: f64) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let clock = runtime.block_on(async { Clock::new(START, speed) });
        let options = ApiOptions { log_entries: 100_000, ..ApiOptions::default() };
        let api = Api::new(clock, options);
        let cluster = LargeCluster { nodes, pods, now: START };
        cluster.objects(0, 1).for_each(|(plural, object)| api.load(plural, object));
        Self { api, clock, runtime, cancel: CancellationToken::new() }
    }

    /// Returns a session that has listed all kinds.
    pub fn load(&self) -> Session {
        self.runtime.block_on(async {
            let connection = Connection::embedded(self.api.client(), "large");
            let options = ModelOptions {
                connection: ConnectionInfo::default(),
                settings: Settings::defaults(ServerVersion::new(1, 36)),
                role: ControllerRole::Shadow,
            };
            let (recorder, cancel) = (EffectExecutor::Recorder, self.cancel.child_token());
            let mut session = Session::start(&connection, options, false, recorder, self.clock, cancel);
            session.run_until(is_loaded).await;
            session
        })
    }

    /// Loads a session, and refreshes its dashboard twice. Returns the dashboard and the channels of the session.
    pub fn show(&self) -> (App, Links) {
        let Session { model, links, clock, .. } = self.load();
        let mut app = App::new(model, AppOptions::default());
        app.refresh(clock.now());
        app.refresh(clock.now());
        (app, links)
    }
}

fn is_loaded(model: &Model) -> bool {
    model.engine.is_some() && FeedKind::ALWAYS.into_iter().all(|kind| model.cluster.known(kind).is_known())
}
