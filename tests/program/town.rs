//! A demo cluster on a virtual clock, and kordon's model of it.

use std::{sync::Arc, time::Duration};

use kordon::{
    k8s::{
        connect::Connection,
        feed::{FeedEvent, FeedKind, FeedState},
        watch::{self, WatchOptions},
    },
    model::{Model, ModelOptions},
    run::demo_scheduler::PlacementScheduler,
};
use kordon_clock::Clock;
use kordon_core::{
    cluster::{Node, NodeName},
    engine::ServerVersion,
};
use kordon_demo::{
    api::{self, Api},
    scenario::Scenario,
    world::{self, Scheduling, World},
};
use kordon_time::{Span, Timestamp};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub const VERSION: ServerVersion = ServerVersion::new(1, 36);

/// A demo cluster with budgets and changing pods, and kordon's model of it.
pub struct Town {
    pub api: Api,
    pub clock: Clock,
    pub model: Model,
    pub feeds: mpsc::Receiver<FeedEvent>,
    pub cancel: CancellationToken,
    pub world: World,
}

impl Drop for Town {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

impl Town {
    /// Creates a cluster that has run for a while, with all objects that plans are based on. The demo's own scheduler
    /// places the pods.
    pub async fn new(nodes: usize, seed: u64) -> Self {
        Self::scheduled_by(Scheduling::BuiltIn, nodes, seed).await
    }

    /// Creates such a cluster with the scheduler of `kordon demo`, so that pods land where plans predict.
    pub async fn with_placement(nodes: usize, seed: u64) -> Self {
        Self::scheduled_by(Scheduling::External, nodes, seed).await
    }

    async fn scheduled_by(scheduling: Scheduling, nodes: usize, seed: u64) -> Self {
        let clock = Clock::new(Timestamp::parse("2026-11-21T03:00:00Z").expect("a time"), 1.0);
        let options = api::ApiOptions { seed, log_entries: 1_000_000, ..api::ApiOptions::default() };
        let api = Api::new(clock, options);
        let cancel = CancellationToken::new();
        let options = world::WorldOptions {
            scenario: Scenario::named("healthy").expect("there is one"),
            nodes: Some(nodes),
            pods: Some(nodes * 16),
            seed,
            pod_changes_per_second: Some(nodes as f64 / 10.0),
            scheduling,
        };
        let world = World::start(&api, clock, &options, cancel.clone());
        if scheduling == Scheduling::External {
            let connection = Connection::embedded(api.client_as("system:kordon-scheduler"), "demo");
            tokio::spawn(PlacementScheduler { connection, clock }.run(cancel.clone()));
        }
        clock.sleep(Span::from_secs(60)).await;
        let (model, feeds) = observe(&api, clock, &cancel).await;
        Self { api, clock, model, feeds, cancel, world }
    }

    /// Starts other watches, with a model of their own.
    pub async fn observe(&self) -> (Model, mpsc::Receiver<FeedEvent>) {
        observe(&self.api, self.clock, &self.cancel).await
    }

    /// Processes the reports that have arrived.
    pub async fn learn_now(&mut self) {
        while let Ok(Some(event)) = tokio::time::timeout(Duration::from_millis(50), self.feeds.recv()).await {
            self.model.on_watch_event(event, self.clock.now());
        }
    }

    /// Returns the worker nodes, ordered so that the first `count` of them are far apart.
    pub fn workers(&self, count: usize) -> Vec<NodeName> {
        let is_worker = |node: &&Arc<Node>| !node.is_control_plane();
        let workers: Vec<NodeName> =
            self.model.cluster.nodes().iter().filter(is_worker).map(|node| node.name.clone()).collect();
        let step = (workers.len() / count).max(1);
        (0..step).flat_map(|turn| workers.iter().skip(turn).step_by(step)).cloned().collect()
    }
}

/// Starts watches of all kinds, and processes their reports until all of them have listed.
async fn observe(api: &Api, clock: Clock, cancel: &CancellationToken) -> (Model, mpsc::Receiver<FeedEvent>) {
    // The channel for the reports of the watches; a watch waits while it is full.
    let (heard, mut feeds) = mpsc::channel(64);
    let options =
        WatchOptions { version: VERSION, kinds: &FeedKind::ALL, no_pods: false, request_timeout: None };
    watch::spawn(
        api.client_as("kordon"),
        options,
        tokio::sync::watch::Sender::default().subscribe(),
        clock,
        heard,
        cancel.clone(),
    );
    let mut model = Model::new(ModelOptions::observer(VERSION), clock.now());
    let is_live = |model: &Model, kind| model.feeds.state(kind) == Some(&FeedState::Live);
    while !FeedKind::ALWAYS.iter().all(|kind| is_live(&model, *kind)) {
        let event = feeds.recv().await.expect("watches do not end");
        model.on_watch_event(event, clock.now());
    }
    (model, feeds)
}

/// Returns the number of nodes that are drained and that of all nodes, from an environment variable such as `20/200`.
pub fn size(variable: &str, default: (usize, usize)) -> (usize, usize) {
    let Ok(text) = std::env::var(variable) else { return default };
    let (drained, nodes) = text.split_once('/').expect("as in 20/200");
    (drained.parse().expect("a number"), nodes.parse().expect("a number"))
}

/// Returns the seed of the cluster, from the environment.
pub fn seed() -> u64 {
    std::env::var("KORDON_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}
