//! Plans of drains against what then happens: which pods leave, in which order and when, which budget blocks which pod,
//! and when the drain is done. In a demo cluster with budgets and changing pods, on a virtual clock.
//!
//! `KORDON_DRAIN=20/200` drains 20 of 200 nodes, five at a time, and `KORDON_SEED` selects another cluster; with
//! `--nocapture` the figures are printed.

mod compare;
mod facts;

use std::sync::Arc;

use kordon::{
    clock::Clock,
    cluster::{Node, NodeName},
    demo::{
        api::{self, Api},
        scenario::Scenario,
        world::{self, World},
    },
    engine::ServerVersion,
    executor::requests::{RequestExecutor, RequestWriter},
    journal::Journal,
    k8s::{
        feed::{FeedEvent, FeedKind, FeedState},
        watch::{self, WatchOptions},
    },
    model::{Model, ModelOptions},
    operation::{Operation, OperationEnd, OperationOptions},
    placement::Snapshot,
    plan::{Action, DrainOptions, PlacingEnvironment, Plan, Prospect, Retry},
    run::operation::OperationRun,
    time::{Span, Timestamp},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use compare::Comparison;
use facts::Facts;

const VERSION: ServerVersion = ServerVersion::new(1, 36);

/// Nodes that are drained at a time.
const PARALLEL: usize = 5;

#[tokio::test(start_paused = true)]
async fn a_drain_under_load_goes_as_its_plan_predicted() {
    let (drained, nodes) = match std::env::var("KORDON_DRAIN") {
        Ok(text) => {
            let (drained, nodes) = text.split_once('/').expect("as in 20/200");
            (drained.parse().expect("a number"), nodes.parse().expect("a number"))
        }
        Err(_) => (8, 40),
    };
    let seed = std::env::var("KORDON_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut town = Town::new(nodes, seed).await;
    let (plan, facts) = town.drain(drained).await;
    let comparison = Comparison::new(&plan, &facts);
    println!("{drained} of {nodes} nodes, {PARALLEL} at a time, seed {seed}\n{comparison}");
    comparison.check();
}

/// A demo cluster and what is known of it.
struct Town {
    api: Api,
    clock: Clock,
    model: Model,
    feeds: mpsc::Receiver<FeedEvent>,
    cancel: CancellationToken,
    _world: World,
}

impl Drop for Town {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

impl Town {
    /// A cluster that has lived for a while, and everything that plans are made of.
    async fn new(nodes: usize, seed: u64) -> Self {
        let clock = Clock::new(Timestamp::parse("2026-11-21T03:00:00Z").expect("a time"), 1.0);
        let api = Api::new(clock, api::ApiOptions { seed, ..api::ApiOptions::default() });
        let cancel = CancellationToken::new();
        let world = world::WorldOptions {
            scenario: Scenario::named("healthy").expect("there is one"),
            nodes: Some(nodes),
            pods: Some(nodes * 16),
            seed,
            pod_changes_per_second: Some(nodes as f64 / 10.0),
            ..world::WorldOptions::default()
        };
        let world = World::start(&api, clock, &world, cancel.clone());
        clock.sleep(Span::from_secs(60)).await;
        // When full, a watch waits.
        let (heard, feeds) = mpsc::channel(64);
        let options =
            WatchOptions { version: VERSION, kinds: &FeedKind::ALL, no_pods: false, request_timeout: None };
        watch::spawn(api.client_as("kordon"), options, clock, heard, cancel.clone());
        let model = Model::new(ModelOptions::observer(VERSION), clock.now());
        let mut town = Self { api, clock, model, feeds, cancel, _world: world };
        town.learn().await;
        town
    }

    /// Takes in what the watches say until all of them have listed.
    async fn learn(&mut self) {
        let is_live = |model: &Model, kind| model.feeds.state(kind) == Some(&FeedState::Live);
        while !FeedKind::ALL.iter().all(|kind| is_live(&self.model, *kind)) {
            let event = self.feeds.recv().await.expect("watches do not end");
            self.model.on_watch_event(event, self.clock.now());
        }
    }

    /// Makes a plan and carries it out, as `kordon drain --enforce` does.
    async fn drain(&mut self, count: usize) -> (Plan, Facts) {
        let nodes = self.drainable(count);
        let now = self.clock.now();
        let plan = self.plan(nodes, now);
        let folder = tempfile::tempdir().expect("a folder");
        let journal = Journal::within(folder.path(), "demo");
        let writer = journal.open().expect("opened");
        let (client, clock) = (self.api.client_as("kordon"), self.clock);
        let watcher = facts::Watcher::start(self.api.client_as("observer"), clock, &self.cancel).await;
        let executor = RequestExecutor::Writer(RequestWriter {
            client,
            clock,
            journal: writer.clone(),
            operation: "p".parse().unwrap(),
        });
        let options =
            OperationOptions { id: "p".parse().unwrap(), by: "test".into(), ..OperationOptions::default() };
        let operation = Operation::start(&plan, options, &self.model.cluster, now);
        let (_, feeds) = mpsc::channel(1);
        let feeds = std::mem::replace(&mut self.feeds, feeds);
        let model = self.model.clone();
        let link = executor.start();
        let mut run = OperationRun { operation, model, feeds, link, journal: Some(writer.clone()), clock };
        // Nobody pauses or cancels it.
        let (_operator, mut input) = mpsc::channel(1);
        run.run(&mut input, |_| {}).await;
        let report = run.operation.progress();
        assert_eq!(run.operation.ended(), Some(OperationEnd::Done), "{report:#?}");
        let lines = journal.lines().expect("read");
        (plan, watcher.facts(&lines, now, report.ended.expect("it ended").0))
    }

    fn plan(&self, nodes: Vec<NodeName>, now: Timestamp) -> Plan {
        let options = DrainOptions {
            force: true,
            ignore_daemonsets: true,
            delete_emptydir_data: true,
            parallel: PARALLEL,
            retry: Retry::OnRecovery,
            ..DrainOptions::default()
        };
        let action = Action::Drain { nodes, options };
        let placing =
            PlacingEnvironment::new(&self.model.cluster, Snapshot::new(&self.model.cluster, VERSION), now);
        Plan::new(action, &self.model.cluster, &placing, VERSION, now).expect("the nodes are there")
    }

    /// Nodes that are no control plane's and that one drain can empty: without the only replica of something under a budget,
    /// or a pod whose replacement would find no place.
    fn drainable(&self, count: usize) -> Vec<NodeName> {
        let is_worker = |node: &&Arc<Node>| !node.roles().any(|role| role == "control-plane");
        let workers: Vec<NodeName> =
            self.model.cluster.nodes().iter().filter(is_worker).map(|node| node.name.clone()).collect();
        let (now, mut chosen) = (self.clock.now(), Vec::new());
        let all = workers.len();
        // Far from each other first; where a node would keep the drain from its end, the next is tried.
        for place in (0..count).flat_map(|turn| (turn..all).step_by((all / count).max(1))) {
            if chosen.len() == count {
                break;
            }
            let with: Vec<NodeName> = chosen.iter().chain([&workers[place]]).cloned().collect();
            if !chosen.contains(&workers[place])
                && self.plan(with.clone(), now).prospect() == Prospect::Completes
            {
                chosen = with;
            }
        }
        assert_eq!(chosen.len(), count, "too few nodes can be drained together");
        chosen
    }
}
