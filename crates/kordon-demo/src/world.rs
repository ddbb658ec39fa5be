//! The contents of the embedded cluster: seeds the API, starts the agents, and runs the scenario.

use std::collections::BTreeSet;

use futures::FutureExt;
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
    seed::{MachineHistory, Seed, SeedSize, nodes::Machine},
    workloads::{self, Workloads},
    writer::{Writer, path},
};
use kordon_clock::Clock;
use kordon_time::Timestamp;

/// Capacity of an agent's inbox. While the inbox is full, the watch or request that sends a message waits.
const INBOX: usize = 1024;

/// The agents of one embedded cluster. They stop once their cancellation token is cancelled.
pub struct World {
    tasks: TaskTracker,
    kubelets: mpsc::Sender<kubelets::KubeletMessage>,
}

/// The options of an embedded cluster.
#[derive(Clone, Debug)]
pub struct WorldOptions {
    pub scenario: &'static Scenario,
    /// Number of nodes; None for the scenario's default.
    pub nodes: Option<usize>,
    /// Number of pods at the start; None for the scenario's default.
    pub pods: Option<usize>,
    /// Seed of the embedded cluster. Equal seeds give equal clusters.
    pub seed: u64,
    /// Background pod changes per second; None for the scenario's default.
    pub pod_changes_per_second: Option<f64>,
    pub scheduling: Scheduling,
}

/// The scheduler that binds pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheduling {
    /// The demo's own scheduler, which is small and shares no code with kordon.
    #[default]
    BuiltIn,
    /// An external scheduler, which uses the API.
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
    /// Fills an empty API and starts the agents.
    pub fn start(api: &Api, clock: Clock, options: &WorldOptions, cancel: CancellationToken) -> Self {
        let random = RandomSource::new(options.seed);
        let epoch = clock.now();
        let size = SeedSize {
            nodes: options.nodes.unwrap_or(options.scenario.nodes),
            pods: options.pods.unwrap_or(options.scenario.pods),
            services: options.scenario.services,
        };
        let mut seed = Seed::new(size, options.scenario.history, random, epoch);
        seed.quotas = options.scenario.quotas;
        seed.objects().for_each(|object| load(api, object));
        let tasks = TaskTracker::new();
        let (errors, reports) = ErrorReporter::new(clock);
        start_agent(&tasks, log(reports, cancel.clone()));
        let writer = |user: &str| Writer::new(api.client_as(&format!("system:demo-{user}")));
        let (kubelets, kubelet_inbox) = mpsc::channel(INBOX);
        let (workloads, changes) = mpsc::channel(INBOX);
        let initial: Vec<InitialKubelet> =
            seed.machines.iter().map(|machine| start(machine, random, epoch)).collect();
        let all = Kubelets::new(clock, writer("kubelets"), random, errors.clone(), initial);
        let (forward, requests) = mpsc::channel(INBOX);
        api.forward_to(forward);
        start_agent(&tasks, all.run(kubelet_inbox, requests, cancel.clone()));
        let all = Workloads::new(clock, writer("workloads"), random, errors.clone());
        start_agent(&tasks, all.run(changes, cancel.clone()));
        let mut nodes = Feed::new()
            .deliver(&kubelets, kubelets::KubeletMessage::Nodes)
            .deliver(&workloads, workloads::WorkloadMessage::Nodes);
        let mut pods = Feed::new()
            .deliver(&kubelets, kubelets::KubeletMessage::Pods)
            .deliver(&workloads, workloads::WorkloadMessage::Pods);
        if options.scheduling == Scheduling::BuiltIn {
            let (scheduler, inbox) = mpsc::channel(INBOX);
            let one = SimpleScheduler::new(clock, writer("scheduler"), errors.clone());
            start_agent(&tasks, one.run(inbox, cancel.clone()));
            nodes = nodes.deliver(&scheduler, scheduler::SchedulerMessage::Nodes);
            pods = pods.deliver(&scheduler, scheduler::SchedulerMessage::Pods);
        }
        let client = writer("watches").client();
        start_agent(
            &tasks,
            nodes.run(client.clone(), path::all("", "nodes"), errors.clone(), cancel.clone()),
        );
        start_agent(&tasks, pods.run(client.clone(), path::all("", "pods"), errors.clone(), cancel.clone()));
        let budgets = Feed::new().deliver(&workloads, workloads::WorkloadMessage::Budgets);
        start_agent(
            &tasks,
            budgets.run(
                client.clone(),
                path::all("policy", "poddisruptionbudgets"),
                errors.clone(),
                cancel.clone(),
            ),
        );
        let quotas = Feed::new().deliver(&workloads, workloads::WorkloadMessage::Quotas);
        start_agent(
            &tasks,
            quotas.run(client.clone(), path::all("", "resourcequotas"), errors.clone(), cancel.clone()),
        );
        for kind in WorkloadKind::ALL {
            let feed = Feed::new()
                .deliver(&workloads, move |change| workloads::WorkloadMessage::Workloads(kind, change));
            start_agent(
                &tasks,
                feed.run(
                    client.clone(),
                    path::all(kind.group(), kind.plural()),
                    errors.clone(),
                    cancel.clone(),
                ),
            );
        }

        let incidents = |user: &str| Incidents {
            clock,
            writer: writer(user),
            random,
            errors: errors.clone(),
            kubelets: kubelets.clone(),
        };
        let script = (options.scenario.script)(&seed.machines);
        start_agent(&tasks, incidents("operator").play(script, cancel.clone()));
        let rate = options.pod_changes_per_second.unwrap_or(options.scenario.pod_changes_per_second);
        start_agent(&tasks, incidents("users").run_background_changes(rate, cancel));
        tasks.close();
        Self { tasks, kubelets }
    }

    /// Injects a fault of a node, in addition to the events of the scenario.
    pub async fn inject(&self, node: &str, fault: NodeFault) {
        // Sending fails if the kubelets have already stopped.
        let _ = self.kubelets.send(kubelets::KubeletMessage::Fault(node.to_owned(), fault)).await;
    }

    /// Waits until every agent has stopped.
    pub async fn stopped(&self) {
        self.tasks.wait().await;
    }
}

/// The initial state of a machine's kubelet.
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

/// Writes the agents' errors to the log.
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

/// Starts an agent. The future is boxed, so that the code that runs a task is compiled only once.
fn start_agent(tasks: &TaskTracker, agent: impl Future<Output = ()> + Send + 'static) {
    tasks.spawn(agent.boxed());
}
