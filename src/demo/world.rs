//! What lives in the embedded cluster: seeds it, starts its agents, and lets things happen to it.

use serde_json::Value;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    api::{Api, kinds},
    chance::Chance,
    scenario::{SCENARIOS, Scenario},
    seed::Seed,
};
use crate::clock::Clock;

/// The inhabitants of one embedded cluster. They stop when the token they were started with is cancelled.
pub struct World {
    tasks: TaskTracker,
}

/// Which world.
#[derive(Clone, Debug)]
pub struct Options {
    pub scenario: &'static Scenario,
    /// How many nodes; None: as many as the scenario wants.
    pub nodes: Option<usize>,
    /// How many pods at the beginning; None: as many as the scenario wants.
    pub pods: Option<usize>,
    /// Equal seeds give equal worlds.
    pub seed: u64,
    /// Pod changes (as a watch tells them) a second that go on all the time; None: as the scenario wants.
    pub pod_changes_per_second: Option<f64>,
    /// Whether somebody called `demo-controller` seems to hold the lease of kube-controller-manager.
    pub leader: Leader,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leader {
    /// The lease is nobody's business here: a controller beside this world may take it.
    None,
    /// An agent renews it and does nothing else.
    Pretended,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            scenario: &SCENARIOS[0],
            nodes: None,
            pods: None,
            seed: 0,
            pod_changes_per_second: None,
            leader: Leader::None,
        }
    }
}

impl World {
    /// Fills an empty API and brings the cluster to life.
    pub fn start(api: &Api, clock: Clock, options: &Options, cancel: CancellationToken) -> Self {
        let chance = Chance::new(options.seed);
        let nodes = options.nodes.unwrap_or(options.scenario.nodes);
        let pods = options.pods.unwrap_or(options.scenario.pods);
        let seed = Seed::new(nodes, pods, options.scenario.before, chance, clock.now());
        seed.objects().for_each(|object| load(api, object));
        let _ = cancel;
        let tasks = TaskTracker::new();
        tasks.close();
        Self { tasks }
    }

    /// Waits until every agent has stopped.
    pub async fn stopped(&self) {
        self.tasks.wait().await;
    }
}

fn load(api: &Api, object: Value) {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let kind =
        kinds::of_object(text("apiVersion"), text("kind")).expect("seeds are of kinds that the API serves");
    api.load(kind.plural, object);
}
