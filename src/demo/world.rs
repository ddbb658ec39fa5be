//! What lives in the embedded cluster: seeds it, starts its agents, and lets things happen to it.

use std::collections::BTreeSet;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use super::kubelets::{NodeFault, PressureLevel};
use super::{
    api::{Api, kinds},
    errors::{AgentError, ErrorReporter},
    feed::Feed,
    incidents::Incidents,
    kubelets::{self, InitialKubelet, Kubelets},
    objects::WorkloadKind,
    random::RandomSource,
    scenario::{SCENARIOS, Scenario},
    scheduler::{self, SimpleScheduler},
    seed::{MachineHistory, Seed, nodes::Machine},
    workloads::{self, Workloads},
    writer::Writer,
};
use crate::{clock::Clock, time::Timestamp};

/// Changes that an agent has not taken in yet; when full, its watch waits for it.
const INBOX: usize = 1024;

/// The inhabitants of one embedded cluster. They stop when the token they were started with is cancelled.
pub struct World {
    tasks: TaskTracker,
    kubelets: mpsc::Sender<kubelets::KubeletMessage>,
}

/// Which world.
#[derive(Clone, Debug)]
pub struct WorldOptions {
    pub scenario: &'static Scenario,
    /// How many nodes; None: as many as the scenario wants.
    pub nodes: Option<usize>,
    /// How many pods at the beginning; None: as many as the scenario wants.
    pub pods: Option<usize>,
    /// Equal seeds give equal worlds.
    pub seed: u64,
    /// Pod changes (as a watch tells them) a second that go on all the time; None: as the scenario wants.
    pub pod_changes_per_second: Option<f64>,
    pub scheduling: Scheduling,
}

/// Who places its pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheduling {
    /// A small scheduler of its own.
    #[default]
    BuiltIn,
    /// Somebody else who uses the API.
    External,
}

impl Default for WorldOptions {
    fn default() -> Self {
        Self {
            scenario: &SCENARIOS[0],
            nodes: None,
            pods: None,
            seed: 0,
            pod_changes_per_second: None,
            scheduling: Scheduling::default(),
        }
    }
}

impl World {
    /// Fills an empty API and brings the cluster to life.
    pub fn start(api: &Api, clock: Clock, options: &WorldOptions, cancel: CancellationToken) -> Self {
        let random = RandomSource::new(options.seed);
        let epoch = clock.now();
        let nodes = options.nodes.unwrap_or(options.scenario.nodes);
        let pods = options.pods.unwrap_or(options.scenario.pods);
        let seed = Seed::new(nodes, pods, options.scenario.history, random, epoch);
        seed.objects().for_each(|object| load(api, object));
        let tasks = TaskTracker::new();
        let (errors, reports) = ErrorReporter::new(clock);
        tasks.spawn(log(reports, cancel.clone()));
        let writer = |user: &str| Writer::new(api.client_as(&format!("system:demo-{user}")));
        let (kubelets, kubelet_inbox) = mpsc::channel(INBOX);
        let (workloads, changes) = mpsc::channel(INBOX);
        let initial: Vec<InitialKubelet> =
            seed.machines.iter().map(|machine| start(machine, random, epoch)).collect();
        let all = Kubelets::new(clock, writer("kubelets"), random, errors.clone(), initial);
        tasks.spawn(all.run(kubelet_inbox, cancel.clone()));
        let all = Workloads::new(clock, writer("workloads"), random, errors.clone());
        tasks.spawn(all.run(changes, cancel.clone()));
        let mut nodes = Feed::new()
            .deliver(&kubelets, kubelets::KubeletMessage::Nodes)
            .deliver(&workloads, workloads::WorkloadMessage::Nodes);
        let mut pods = Feed::new()
            .deliver(&kubelets, kubelets::KubeletMessage::Pods)
            .deliver(&workloads, workloads::WorkloadMessage::Pods);
        if options.scheduling == Scheduling::BuiltIn {
            let (scheduler, inbox) = mpsc::channel(INBOX);
            let one = SimpleScheduler::new(clock, writer("scheduler"), errors.clone());
            tasks.spawn(one.run(inbox, cancel.clone()));
            nodes = nodes.deliver(&scheduler, scheduler::SchedulerMessage::Nodes);
            pods = pods.deliver(&scheduler, scheduler::SchedulerMessage::Pods);
        }
        let client = writer("watches").client();
        tasks.spawn(nodes.run(kube::Api::all(client.clone()), errors.clone(), cancel.clone()));
        tasks.spawn(pods.run(kube::Api::all(client.clone()), errors.clone(), cancel.clone()));
        let budgets = Feed::new().deliver(&workloads, workloads::WorkloadMessage::Budgets);
        tasks.spawn(budgets.run(kube::Api::all(client.clone()), errors.clone(), cancel.clone()));
        for kind in WorkloadKind::ALL {
            let feed = Feed::new()
                .deliver(&workloads, move |change| workloads::WorkloadMessage::Workloads(kind, change));
            tasks.spawn(feed.run(kube::Api::all_with(client.clone(), &kind), errors.clone(), cancel.clone()));
        }

        let incidents = |user: &str| Incidents {
            clock,
            writer: writer(user),
            random,
            errors: errors.clone(),
            kubelets: kubelets.clone(),
        };
        let script = (options.scenario.script)(&seed.machines);
        tasks.spawn(incidents("operator").play(script, cancel.clone()));
        let rate = options.pod_changes_per_second.unwrap_or(options.scenario.pod_changes_per_second);
        tasks.spawn(incidents("users").run_background_changes(rate, cancel));
        tasks.close();
        Self { tasks, kubelets }
    }

    /// Lets something happen to a node, beside what the scenario has in store for it.
    pub async fn inject(&self, node: &str, fault: NodeFault) {
        // Kubelets that have stopped are history all fault.
        let _ = self.kubelets.send(kubelets::KubeletMessage::Fault(node.to_owned(), fault)).await;
    }

    /// Waits until every agent has stopped.
    pub async fn stopped(&self) {
        self.tasks.wait().await;
    }
}

/// A kubelet as its machine's history has left it.
fn start(machine: &Machine, random: RandomSource, now: Timestamp) -> InitialKubelet {
    let renewed = match machine.history {
        MachineHistory::Healthy | MachineHistory::MemoryPressureFor(_) => Some(machine.renewed(random, now)),
        MachineHistory::DisconnectedFor(_) | MachineHistory::UnknownFor(_) => None,
    };
    let pressures = match machine.history {
        MachineHistory::MemoryPressureFor(_) => BTreeSet::from(["MemoryPressure"]),
        MachineHistory::Healthy | MachineHistory::DisconnectedFor(_) | MachineHistory::UnknownFor(_) => {
            BTreeSet::new()
        }
    };
    InitialKubelet { node: machine.name.clone(), renewed, reported: machine.reported(random, now), pressures }
}

/// The agents' errors are nobody's on screen: they go into the log.
async fn log(mut errors: mpsc::Receiver<AgentError>, cancel: CancellationToken) {
    loop {
        tokio::select! {
            () = cancel.cancelled() => return,
            trouble = errors.recv() => match trouble {
                Some(AgentError { at, agent, text }) => tracing::debug!(%at, agent, text, "demo"),
                None => return,
            },
        }
    }
}

fn load(api: &Api, object: Value) {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let kind =
        kinds::of_object(text("apiVersion"), text("kind")).expect("seeds are of kinds that the API serves");
    api.load(kind.plural, object);
}
