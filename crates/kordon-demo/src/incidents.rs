//! Events in the embedded cluster: a scenario's script, and background changes.

use http::Request;
use kube::Client;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    errors::ErrorReporter,
    kubelets::{self, NodeFault, PressureLevel, TRANSITION_PERIOD},
    objects::{Key, Object, Pod, WorkloadKind},
    random::RandomSource,
    seed::nodes::Machine,
    writer::{Patch, WriteError, Writer, path},
};
use kordon_clock::Clock;
use kordon_time::{Span, Timestamp};

/// An event of a scenario's script, with its time after the start.
#[derive(Clone, Debug)]
pub struct ScriptStep {
    pub after: Span,
    pub what: DemoEvent,
}

/// An event that the script of a scenario can contain.
#[derive(Clone, Debug)]
pub enum DemoEvent {
    /// A fault of a node begins or ends.
    NodeFault(String, NodeFault),
    /// An operator drains a node, reboots it with this kernel and uncordons it. The node is number `place` of the `of`
    /// nodes that are upgraded.
    Upgrade { node: String, kernel: &'static str, place: usize, of: usize },
    /// An operator drains the node of the first pod of a workload, without a time limit.
    DrainNodeOf { namespace: &'static str, workload: &'static str },
    /// A Deployment recreates its pods, as after `kubectl rollout restart`.
    Rollout { namespace: &'static str, deployment: &'static str },
    /// The first pod of a workload uses more memory each second, until its node has only `leaves_mib` left.
    Leak { namespace: &'static str, workload: &'static str, mib_per_second: i64, leaves_mib: i64 },
    /// Somebody scales a Deployment.
    Scale { namespace: &'static str, deployment: &'static str, replicas: usize },
    /// Somebody deletes the first pod of a workload.
    DeletePod { namespace: &'static str, workload: &'static str },
    /// The cloud provider's controller deletes the Node object of a machine that no longer exists.
    DeleteNode(String),
    /// Somebody declares a node out of service.
    OutOfService(String),
}

/// The kernel that the rolling upgrade installs.
const NEW_KERNEL: &str = "6.1.0-41-cloud-amd64";
/// Time limit of a drain by the operator.
const DRAIN_TIMEOUT: Span = Span::from_secs(180);

/// Annotations of kordon: who cordoned a node, who is draining it, and which drain has emptied it (docs/acting.md).
const CORDON: &str = "kordon.dev/cordon";
const DRAIN: &str = "kordon.dev/drain";
const DRAINED: &str = "kordon.dev/drained";
const CLAIM_RENEWAL: Span = Span::from_secs(20);
/// The user in the role of the operator, and the id of this user's operation.
const OPERATOR: &str = "ops@example.com";
const DRAIN_NAME: &str = "drain-of-the-demo";

/// A function that returns the steps of a scenario for the given machines.
pub type Script = fn(&[Machine]) -> Vec<ScriptStep>;

pub fn empty(_: &[Machine]) -> Vec<ScriptStep> {
    Vec::new()
}

/// Two hours of events for the default scenario. Every 50 seconds, a Deployment is rolled out. Every four minutes, a
/// node is under pressure for 100 seconds; its kubelet reports the pressure for five minutes longer. Every ten minutes,
/// a node disconnects for five minutes.
pub fn tour(machines: &[Machine]) -> Vec<ScriptStep> {
    let workers = workers(machines);
    let node = |round: usize| workers.get(round * 7 % workers.len().max(1));
    let mut steps = Vec::new();
    for (round, (namespace, deployment)) in ROLLED_OUT.iter().cycle().take(144).enumerate() {
        let what = DemoEvent::Rollout { namespace, deployment };
        steps.push(ScriptStep { after: secs(3 + 50 * round as i64), what });
    }
    for round in 0..30 {
        let start = 4 + 240 * round as i64;
        let kind = ["DiskPressure", "PIDPressure", "MemoryPressure"][round % 3];
        if let Some(node) = node(round + 1) {
            steps.push(fault(start, node, NodeFault::Pressure(kind, PressureLevel::High)));
            let ends = start + 100 + TRANSITION_PERIOD.as_secs();
            steps.push(fault(ends, node, NodeFault::Pressure(kind, PressureLevel::Normal)));
        }
    }
    for round in 0..12 {
        let start = 150 + 600 * round as i64;
        if let Some(node) = node(round + 4) {
            steps.push(fault(start, node, NodeFault::Disconnect));
            steps.push(fault(start + 300, node, NodeFault::Reconnect));
        }
    }
    steps.sort_by_key(|step| step.after);
    steps
}

/// The Deployments that the scenario [`tour`] rolls out, in order.
const ROLLED_OUT: [(&str, &str); 6] = [
    ("shop", "frontend"),
    ("search", "query-api"),
    ("shop", "cart"),
    ("payments", "fraud-scoring"),
    ("shop", "catalog"),
    ("batch", "image-resize"),
];

pub fn silent_node(machines: &[Machine]) -> Vec<ScriptStep> {
    workers(machines).first().map(|node| fault(5, node, NodeFault::Disconnect)).into_iter().collect()
}

/// One node disconnects every 90 seconds. The container runtime of another node stops for four minutes.
pub fn flapping(machines: &[Machine]) -> Vec<ScriptStep> {
    let workers = workers(machines);
    let [flaps, broken, ..] = workers.as_slice() else { return Vec::new() };
    let mut steps =
        vec![fault(20, broken, NodeFault::StopRuntime), fault(260, broken, NodeFault::StartRuntime)];
    for round in 0..20 {
        steps.push(fault(5 + 90 * round, flaps, NodeFault::Disconnect));
        steps.push(fault(70 + 90 * round, flaps, NodeFault::Reconnect));
    }
    steps.sort_by_key(|step| step.after);
    steps
}

pub fn zone_outage(machines: &[Machine]) -> Vec<ScriptStep> {
    let zone = || machines.iter().filter(|machine| machine.zone == 1);
    let fall = zone().map(|machine| fault(10, &machine.name, NodeFault::Disconnect));
    let rise = zone().map(|machine| fault(610, &machine.name, NodeFault::Reconnect));
    fall.chain(rise).collect()
}

/// Two thirds of a large zone disconnect: one node every two seconds.
pub fn partial_disruption(machines: &[Machine]) -> Vec<ScriptStep> {
    let zone: Vec<_> =
        machines.iter().filter(|machine| machine.zone == 0 && !machine.is_control_plane()).collect();
    let lost = zone.iter().take(zone.len() * 2 / 3).zip(0..);
    lost.map(|(machine, place)| fault(5 + 2 * place, &machine.name, NodeFault::Disconnect)).collect()
}

pub fn full_outage(machines: &[Machine]) -> Vec<ScriptStep> {
    let fall = machines.iter().map(|machine| fault(10, &machine.name, NodeFault::Disconnect));
    let rise = machines
        .iter()
        .zip(0..)
        .map(|(machine, place)| fault(240 + place / 4, &machine.name, NodeFault::Reconnect));
    fall.chain(rise).collect()
}

pub fn kernel_upgrade(machines: &[Machine]) -> Vec<ScriptStep> {
    let workers = workers(machines);
    let of = workers.len();
    let upgrade = |(node, place)| ScriptStep {
        after: secs(5),
        what: DemoEvent::Upgrade { node, kernel: NEW_KERNEL, place, of },
    };
    workers.into_iter().zip(1..).map(upgrade).collect()
}

/// Drains the node of grafana. The budget of grafana requires its only replica, so it refuses the eviction.
pub fn blocked_drain(_: &[Machine]) -> Vec<ScriptStep> {
    let what = DemoEvent::DrainNodeOf { namespace: "monitoring", workload: "grafana" };
    vec![ScriptStep { after: secs(5), what }]
}

/// Drains the node of payments/api. The pods of this Deployment take a minute to end, and count in the quota until
/// then.
pub fn drain_under_quota(_: &[Machine]) -> Vec<ScriptStep> {
    let what = DemoEvent::DrainNodeOf { namespace: "payments", workload: "api" };
    vec![ScriptStep { after: secs(5), what }]
}

/// The memory of one pod grows until its node has 1200 MiB left, which is below the soft threshold. After a grace
/// period of 90 seconds the kubelet evicts pods: first pods without requests and with low priority, then the pod that
/// has grown. Another pod repeatedly grows up to its own limit.
pub fn memory_pressure(_: &[Machine]) -> Vec<ScriptStep> {
    vec![
        step(
            3,
            DemoEvent::Leak {
                namespace: "shop",
                workload: "session-cache",
                mib_per_second: 600,
                leaves_mib: 1200,
            },
        ),
        step(5, DemoEvent::Leak { namespace: "shop", workload: "cart", mib_per_second: 4, leaves_mib: 0 }),
    ]
}

/// Scales up a service with high priority. Each new pod preempts two other pods, because it needs the resources of
/// both.
pub fn preemption(_: &[Machine]) -> Vec<ScriptStep> {
    vec![step(10, DemoEvent::Scale { namespace: "payments", deployment: "risk-model", replicas: 4 })]
}

/// Pods leave in all possible ways, one way after another. No step is needed for Jobs, which complete on their own.
pub fn departures(machines: &[Machine]) -> Vec<ScriptStep> {
    let last_of = |pool: &str, zone: usize| {
        let mut found =
            machines.iter().rev().filter(|machine| machine.pool.name == pool && machine.zone == zone);
        found.next().map(|machine| machine.name.clone())
    };
    let mut steps = memory_pressure(machines);
    steps.extend([
        step(15, DemoEvent::DeletePod { namespace: "shop", workload: "catalog" }),
        step(20, DemoEvent::Scale { namespace: "shop", deployment: "frontend", replicas: 7 }),
        step(25, DemoEvent::Scale { namespace: "payments", deployment: "risk-model", replicas: 2 }),
    ]);
    if let Some(tainted) = last_of("memory", 0) {
        steps.push(fault(30, &tainted, NodeFault::Disconnect));
        steps.push(fault(240, &tainted, NodeFault::Reconnect));
    }
    if let Some(broken) = last_of("memory", 1) {
        steps.push(fault(35, &broken, NodeFault::Disconnect));
        steps.push(step(100, DemoEvent::OutOfService(broken)));
    }
    if let Some(gone) = last_of("general", 2) {
        steps.push(fault(40, &gone, NodeFault::Disconnect));
        steps.push(step(45, DemoEvent::DeleteNode(gone)));
    }
    // The drain comes last, because it waits until PodDisruptionBudgets allow its evictions.
    steps.push(step(245, DemoEvent::DrainNodeOf { namespace: "kube-system", workload: "coredns" }));
    steps.sort_by_key(|step| step.after);
    steps
}

fn secs(secs: i64) -> Span {
    Span::from_secs(secs)
}

fn fault(after: i64, node: &str, fault: NodeFault) -> ScriptStep {
    step(after, DemoEvent::NodeFault(node.to_owned(), fault))
}

fn step(after: i64, what: DemoEvent) -> ScriptStep {
    ScriptStep { after: secs(after), what }
}

/// Returns the names of the worker nodes that are healthy at the start.
fn workers(machines: &[Machine]) -> Vec<String> {
    let is_healthy = |machine: &&Machine| {
        !machine.is_control_plane() && machine.history == super::seed::MachineHistory::Healthy
    };
    machines.iter().filter(is_healthy).map(|machine| machine.name.clone()).collect()
}

/// Runs scripts and background changes.
pub struct Incidents {
    pub clock: Clock,
    pub writer: Writer,
    pub random: RandomSource,
    pub errors: ErrorReporter,
    pub kubelets: mpsc::Sender<kubelets::KubeletMessage>,
}

impl Incidents {
    /// Runs the steps of a script in order. A step that takes long delays the next step.
    pub async fn play(self, script: Vec<ScriptStep>, cancel: CancellationToken) {
        let started = self.clock.now();
        for step in script {
            tokio::select! {
                () = cancel.cancelled() => return,
                () = self.clock.sleep_until(started + step.after) => {}
            }
            tokio::select! {
                () = cancel.cancelled() => return,
                () = self.run_event(step.what) => {}
            }
        }
    }

    async fn run_event(&self, what: DemoEvent) {
        let task = format!("{what:?}");
        match self.perform(what).await {
            // NotFound and Conflict are expected: a small cluster lacks some workloads, and other agents may have
            // changed the object.
            Ok(()) | Err(WriteError::NotFound | WriteError::Conflict(_)) => {}
            Err(error) => self.errors.report(task, &error),
        }
    }

    async fn perform(&self, what: DemoEvent) -> Result<(), WriteError> {
        match what {
            DemoEvent::NodeFault(node, fault) => self.inject(node, fault).await,
            DemoEvent::Upgrade { node, kernel, place, of } => {
                let task = format!("kernel {kernel}, node {place} of {of}");
                self.upgrade(&node, kernel, &task).await?;
            }
            DemoEvent::DrainNodeOf { namespace, workload } => {
                let pod = self.first_pod(namespace, workload).await?;
                self.drain(&pod.spec.node_name, "replace the disk", None).await?;
                self.end_drain(&pod.spec.node_name).await?;
            }
            DemoEvent::Rollout { namespace, deployment } => self.roll_out(namespace, deployment).await?,
            DemoEvent::Leak { namespace, workload, mib_per_second, leaves_mib } => {
                let pod = self.first_pod(namespace, workload).await?;
                let node = pod.spec.node_name.clone();
                let (bytes_per_second, leaves) = (mib_per_second << 20, leaves_mib << 20);
                self.inject(node, NodeFault::Leak { pod: Key::from_object(&pod), bytes_per_second, leaves })
                    .await;
            }
            DemoEvent::Scale { namespace, deployment, replicas } => {
                let patch = json!({"spec": {"replicas": replicas}});
                self.patch_deployment(namespace, deployment, &patch).await?;
            }
            DemoEvent::DeletePod { namespace, workload } => {
                let pod = self.first_pod(namespace, workload).await?;
                self.writer.delete(&path::pod(&Key::from_object(&pod)), pod.uid(), None).await?;
            }
            DemoEvent::DeleteNode(node) => {
                let uid = self.node(&node).await?["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
                self.writer.delete(&path::node(&node), &uid, None).await?;
            }
            DemoEvent::OutOfService(node) => {
                let mut taints =
                    self.node(&node).await?["spec"]["taints"].as_array().cloned().unwrap_or_default();
                let (key, effect) = ("node.kubernetes.io/out-of-service", "NoExecute");
                taints.push(json!({"key": key, "value": "nodeshutdown", "effect": effect}));
                let patch = json!({"spec": {"taints": taints}});
                self.writer.patch::<IgnoredAny>(&path::node(&node), Patch::Merge, &patch).await?;
            }
        }
        Ok(())
    }

    async fn node(&self, name: &str) -> Result<Value, WriteError> {
        let request = Request::get(path::node(name)).body(Vec::new()).map_err(kube::Error::HttpError)?;
        Ok(self.writer.client().request(request).await?)
    }

    /// Returns the first pod of a workload that is bound to a node.
    async fn first_pod(&self, namespace: &str, workload: &str) -> Result<Pod, WriteError> {
        let is_of_it = |pod: &Pod| {
            let key = Key::from_object(pod);
            key.namespace == namespace && key.name.starts_with(workload) && !pod.spec.node_name.is_empty()
        };
        let pods = list_pods(&self.writer.client(), "").await?;
        pods.into_iter().find(is_of_it).ok_or(WriteError::NotFound)
    }

    async fn inject(&self, node: String, fault: NodeFault) {
        // Sending fails if the kubelets have already stopped.
        let _ = self.kubelets.send(kubelets::KubeletMessage::Fault(node, fault)).await;
    }

    async fn upgrade(&self, node: &str, kernel: &str, task: &str) -> Result<(), WriteError> {
        let end = self.clock.now() + DRAIN_TIMEOUT;
        self.drain(node, task, Some(end)).await?;
        self.delete_from(node).await?;
        self.end_drain(node).await?;
        // The pause lets viewers see that the node is drained.
        self.clock.sleep(secs(4)).await;
        self.cordon(node, &format!("{task}: rebooting")).await?;
        self.inject(node.to_owned(), NodeFault::Reboot { down: secs(15), kernel: kernel.to_owned() }).await;
        self.clock.sleep(secs(25)).await;
        self.annotate(node, CORDON, Value::Null).await?;
        self.annotate(node, DRAINED, Value::Null).await?;
        let patch = json!({"spec": {"unschedulable": null}});
        self.writer.patch::<IgnoredAny>(&path::node(node), Patch::Merge, &patch).await?;
        self.clock.sleep(secs(5)).await;
        Ok(())
    }

    /// Cordons a node, then evicts its pods until the node is empty or `end` is reached. Writes the drain claim (an
    /// annotation of the node) and renews it, as `kordon drain` does.
    async fn drain(&self, node: &str, task: &str, end: Option<Timestamp>) -> Result<(), WriteError> {
        self.cordon(node, task).await?;
        let mut renew = self.clock.now();
        let mut pods = None;
        while end.is_none_or(|end| self.clock.now() < end) {
            let left = self.evict_from(node).await?;
            if left == 0 {
                break;
            }
            let now = self.clock.now();
            if now >= renew {
                renew = now + CLAIM_RENEWAL;
                let pods = *pods.get_or_insert(left);
                let claim =
                    json!({"by": OPERATOR, "operation": DRAIN_NAME, "renewed": now.to_time(), "pods": pods});
                self.annotate(node, DRAIN, claim.to_string().into()).await?;
            }
            self.clock.sleep(secs(3)).await;
        }
        Ok(())
    }

    /// Removes the drain claim from a drained node, and records in an annotation that the node is drained.
    async fn end_drain(&self, node: &str) -> Result<(), WriteError> {
        let now = self.clock.now().to_time();
        let drained = json!({"by": OPERATOR, "operation": DRAIN_NAME, "at": now});
        self.annotate(node, DRAINED, drained.to_string().into()).await?;
        self.annotate(node, DRAIN, Value::Null).await
    }

    /// Cordons a node, and records in an annotation who did this and why.
    async fn cordon(&self, node: &str, why: &str) -> Result<(), WriteError> {
        let now = self.clock.now().to_time();
        let note = json!({"by": OPERATOR, "why": why, "at": now, "until": null, "operation": DRAIN_NAME});
        let metadata = json!({"annotations": {CORDON: note.to_string()}});
        let patch = json!({"metadata": metadata, "spec": {"unschedulable": true}});
        self.writer.patch::<IgnoredAny>(&path::node(node), Patch::Merge, &patch).await.map(drop)
    }

    async fn annotate(&self, node: &str, key: &str, value: Value) -> Result<(), WriteError> {
        let patch = json!({"metadata": {"annotations": {key: value}}});
        self.writer.patch::<IgnoredAny>(&path::node(node), Patch::Merge, &patch).await.map(drop)
    }

    /// Requests the eviction of every pod that a drain removes. Returns the number of these pods that still exist.
    async fn evict_from(&self, node: &str) -> Result<usize, WriteError> {
        let pods = list_pods(&self.writer.client(), &format!("fieldSelector=spec.nodeName%3D{node}")).await?;
        let leaving: Vec<&Pod> = pods.iter().filter(|pod| drains(pod)).collect();
        for pod in leaving.iter().filter(|pod| !pod.is_deleted()) {
            let key = Key::from_object(*pod);
            let eviction = json!({
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": key.name, "namespace": key.namespace},
                "deleteOptions": {"preconditions": {"uid": pod.uid()}},
            });
            let path = format!("{}/eviction", path::pod(&key));
            match self.writer.create::<IgnoredAny>(&path, &eviction).await {
                // A refused eviction needs no action. A budget may allow the eviction later, and a pod that is gone or
                // replaced needs no eviction.
                Ok(_)
                | Err(WriteError::TooManyRequests(_) | WriteError::NotFound | WriteError::Conflict(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(leaving.len())
    }

    /// Deletes the pods that remain because budgets refuse their eviction.
    async fn delete_from(&self, node: &str) -> Result<(), WriteError> {
        let pods = list_pods(&self.writer.client(), &format!("fieldSelector=spec.nodeName%3D{node}")).await?;
        for pod in pods.iter().filter(|pod| drains(pod) && !pod.is_deleted()) {
            match self.writer.delete(&path::pod(&Key::from_object(pod)), pod.uid(), None).await {
                Ok(()) | Err(WriteError::NotFound | WriteError::Conflict(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn roll_out(&self, namespace: &str, deployment: &str) -> Result<(), WriteError> {
        let restarted = json!({"kubectl.kubernetes.io/restartedAt": self.clock.now().to_time()});
        let patch = json!({"spec": {"template": {"metadata": {"annotations": restarted}}}});
        self.patch_deployment(namespace, deployment, &patch).await
    }

    async fn patch_deployment(
        &self,
        namespace: &str,
        deployment: &str,
        patch: &Value,
    ) -> Result<(), WriteError> {
        let key = Key { namespace: namespace.to_owned(), name: deployment.to_owned() };
        let path = path::workload(WorkloadKind::Deployment, &key);
        self.writer.patch::<IgnoredAny>(&path, Patch::Merge, patch).await.map(drop)
    }

    /// Changes an annotation of random pods. `a_second` is the number of changes per second.
    pub async fn run_background_changes(self, a_second: f64, cancel: CancellationToken) {
        if a_second <= 0.0 {
            return;
        }
        let pause = Span::from_secs_f64(1.0 / a_second);
        let mut known: Vec<Key> = Vec::new();
        let mut next = self.clock.now();
        for count in 0_u64.. {
            next = (next + pause).max(self.clock.now() - Span::from_secs(1));
            tokio::select! {
                () = cancel.cancelled() => return,
                () = self.clock.sleep_until(next) => {}
            }
            let mut rng = self.random.rng(&["bustle", &count.to_string()]);
            if count % 5000 == 0 {
                match list_pods(&self.writer.client(), "limit=5000&fieldSelector=status.phase%3DRunning")
                    .await
                {
                    Ok(pods) => known = pods.iter().map(Key::from_object).collect(),
                    Err(error) => self.errors.report("bustle", &error),
                }
            }
            let Some(pod) = rng.choice(&known) else { continue };
            let patch = json!({"metadata": {"annotations": {"demo.kordon/touched": count.to_string()}}});
            match self.writer.patch::<IgnoredAny>(&path::pod(pod), Patch::Merge, &patch).await {
                Ok(_) | Err(WriteError::NotFound | WriteError::Conflict(_)) => {}
                Err(error) => self.errors.report("bustle", &error),
            }
        }
    }
}

async fn list_pods(client: &Client, query: &str) -> Result<Vec<Pod>, WriteError> {
    #[derive(Deserialize)]
    struct List {
        items: Vec<Pod>,
    }
    let request =
        Request::get(format!("/api/v1/pods?{query}")).body(Vec::new()).map_err(kube::Error::HttpError)?;
    let list: List = client.request(request).await?;
    Ok(list.items)
}

/// Whether a drain evicts a pod. Pods of DaemonSets and static pods stay.
fn drains(pod: &Pod) -> bool {
    !pod.controller().is_some_and(|owner| matches!(owner.kind.as_str(), "DaemonSet" | "Node"))
}
