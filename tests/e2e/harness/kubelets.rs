//! Nodes without machines: simulated kubelets for any API server.
//!
//! A kubelet registers its node, renews its Lease, posts its status, runs the pods bound to the node, and ends deleted
//! pods, until the test silences the kubelet.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{Node, Pod},
};
use kordon_clock::Clock;
use kordon_time::{Span, Timestamp};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
    runtime::{
        WatchStreamExt,
        watcher::{self, watcher},
    },
};
use serde_json::{Value, json};
use tokio::{
    sync::{Semaphore, mpsc, oneshot},
    task::JoinSet,
    time::Instant,
};

/// A node to register.
#[derive(Clone, Debug)]
pub struct NodeSpec {
    pub name: String,
    pub zone: Option<String>,
    pub region: Option<String>,
    /// Labels in addition to those for zone, region, hostname, system and architecture.
    pub labels: BTreeMap<String, String>,
    /// Taints, as in a Node's `spec.taints`.
    pub taints: Vec<Value>,
    /// Capacity and allocatable of CPU, as a quantity.
    pub cpu: String,
    pub memory: String,
    pub pods: u32,
    /// Extended resources, as quantities.
    pub extended: BTreeMap<String, String>,
    /// Images, as in a Node's `status.images`.
    pub images: Vec<Value>,
    /// Whether pods on this node never become Ready.
    pub fails_probes: bool,
    /// How far the clock of the node is ahead of the true time; negative if it is behind.
    pub clock_ahead: Span,
}

impl NodeSpec {
    /// Creates a node of 4 cores, 8 GiB and 110 pods in the region `r1`.
    pub fn new(name: impl Into<String>, zone: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            zone: Some(zone.into()),
            region: Some("r1".into()),
            labels: BTreeMap::new(),
            taints: Vec::new(),
            cpu: "4".into(),
            memory: "8Gi".into(),
            pods: 110,
            extended: BTreeMap::new(),
            images: Vec::new(),
            fails_probes: false,
            clock_ahead: Span::ZERO,
        }
    }
}

/// Intervals of the kubelets' heartbeats.
#[derive(Clone, Copy, Debug)]
pub struct Heartbeats {
    /// Time between two renewals of a Lease.
    pub every: Span,
    /// Number of renewals for each post of the status.
    pub status_each: u32,
}

impl Default for Heartbeats {
    /// One renewal a second; every fifth also posts the status.
    fn default() -> Self {
        Self { every: Span::from_secs(1), status_each: 5 }
    }
}

/// Label of pods that are never Ready. Its value says why: [`CRASHES`], [`NO_IMAGE`], or a readiness probe that fails.
pub const CONTAINER: &str = "kordon.test/container";

/// The container crashes again and again.
pub const CRASHES: &str = "crashes";

/// The image cannot be pulled, so the pod never starts.
pub const NO_IMAGE: &str = "no-image";

/// Maximum number of requests in flight, of all kubelets together.
const AT_ONCE: usize = 16;

/// Kubelets by node. Dropping this value stops the kubelets; their nodes stay.
pub struct Kubelets {
    client: Client,
    commands: BTreeMap<String, mpsc::Sender<Command>>,
    _tasks: JoinSet<()>,
}

impl Kubelets {
    /// Registers the nodes, each Ready and with its Lease, and starts their kubelets with heartbeats spread evenly.
    pub async fn start(client: &Client, specs: Vec<NodeSpec>, heartbeats: Heartbeats) -> Result<Self> {
        let requests = Arc::new(Semaphore::new(AT_ONCE));
        let registered: Vec<Kubelet> = stream::iter(specs)
            .map(|spec| Kubelet::register(client, spec, heartbeats, &requests))
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        let mut kubelets = Self { client: client.clone(), commands: BTreeMap::new(), _tasks: JoinSet::new() };
        let apart = heartbeats.every.to_std() / u32::try_from(registered.len().max(1)).unwrap_or(u32::MAX);
        let mut first_heartbeat = Instant::now();
        for kubelet in registered {
            // The channel is full only while its kubelet waits for a response; the sender then waits too.
            let (send, receive) = mpsc::channel(64);
            kubelets.commands.insert(kubelet.name.clone(), send);
            kubelets._tasks.spawn(kubelet.serve(heartbeats, first_heartbeat, receive));
            first_heartbeat += apart;
        }
        kubelets._tasks.spawn(deliver_pods(client.clone(), kubelets.commands.clone()));
        Ok(kubelets)
    }

    /// Stops renewals, status and pods, like a power failure. Returns the time of the last successful renewal.
    pub async fn silence(&self, node: &str) -> Result<Timestamp> {
        self.command(node, Command::Silence).await
    }

    /// Restarts the kubelet of a silent node: it posts its status, renews its Lease and updates its pods.
    pub async fn come_back(&self, node: &str) -> Result<()> {
        self.command(node, Command::ComeBack).await
    }

    /// Changes one condition of the node and posts it; a silent kubelet comes back. While Ready is not `True`, the
    /// kubelet does not make pods ready.
    pub async fn post(&self, node: &str, condition: &'static str, status: &'static str) -> Result<()> {
        self.command(node, |done| Command::Post { condition, status, done }).await
    }

    /// Silences the kubelet and deletes its Node. The Lease stays, as with a real node.
    pub async fn remove(&self, node: &str) -> Result<()> {
        self.silence(node).await?;
        Api::<Node>::all(self.client.clone()).delete(node, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Restarts the kubelet of a removed node, which registers the node again.
    pub async fn rejoin(&self, node: &str) -> Result<()> {
        self.command(node, Command::Rejoin).await
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.commands.keys().map(String::as_str)
    }

    /// Sends a command and waits until it is done.
    async fn command<T>(&self, node: &str, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T> {
        let commands = self.commands.get(node).with_context(|| format!("no kubelet for {node}"))?;
        let (done, answer) = oneshot::channel();
        commands.send(command(done)).await.context("the kubelet has ended")?;
        answer.await.with_context(|| format!("the kubelet of {node} dropped a command"))
    }
}

enum Command {
    Silence(oneshot::Sender<Timestamp>),
    ComeBack(oneshot::Sender<()>),
    Rejoin(oneshot::Sender<()>),
    Post {
        condition: &'static str,
        status: &'static str,
        done: oneshot::Sender<()>,
    },
    /// A pod on the kubelet's node was created or changed.
    Pod(Box<Pod>),
    /// The pod with this uid is gone.
    PodGone(String),
}

struct Kubelet {
    client: Client,
    clock: Clock,
    /// One permit for each request in flight; shared by all kubelets.
    requests: Arc<Semaphore>,
    name: String,
    spec: NodeSpec,
    alive: bool,
    conditions: BTreeMap<&'static str, Condition>,
    /// Last known version of each pod, by uid.
    pods: BTreeMap<String, Pod>,
    renewed: Timestamp,
    heartbeats: Heartbeats,
    /// Whether the last request failed. Only the first failure in a row is printed.
    failing: bool,
}

struct Condition {
    status: &'static str,
    since: Timestamp,
}

impl Kubelet {
    /// Creates the node with its status and its Lease.
    async fn register(
        client: &Client,
        spec: NodeSpec,
        heartbeats: Heartbeats,
        requests: &Arc<Semaphore>,
    ) -> Result<Self> {
        let clock = Clock::new(Clock::system().now() + spec.clock_ahead, 1.0);
        let now = clock.now();
        let conditions = [
            ("Ready", "True"),
            ("MemoryPressure", "False"),
            ("DiskPressure", "False"),
            ("PIDPressure", "False"),
        ];
        let kubelet = Self {
            client: client.clone(),
            clock,
            requests: requests.clone(),
            name: spec.name.clone(),
            spec,
            alive: true,
            conditions: conditions.map(|(name, status)| (name, Condition { status, since: now })).into(),
            pods: BTreeMap::new(),
            renewed: now,
            heartbeats,
            failing: false,
        };
        let what = || format!("registering {}", kubelet.name);
        let uid = kubelet.create_node().await.with_context(what)?;
        kubelet.create_lease(&uid).await.with_context(what)?;
        Ok(kubelet)
    }

    async fn create_lease(&self, node_uid: &str) -> Result<()> {
        let lease = lease_object(&self.name, node_uid, self.heartbeats, self.clock.now());
        let leases = Api::<Lease>::namespaced(self.client.clone(), "kube-node-lease");
        leases.create(&PostParams::default(), &serde_json::from_value(lease)?).await?;
        Ok(())
    }

    /// Creates the node as a new object. Also creates its Lease if the garbage collector has deleted the Lease with the
    /// old node.
    async fn register_again(&self) -> Result<()> {
        let uid = self.create_node().await?;
        unless_gone(self.create_lease(&uid).await)
    }

    /// Creates the Node with its status. Returns its uid.
    async fn create_node(&self) -> Result<String> {
        let node: Node = serde_json::from_value(node_object(&self.spec))?;
        let node = Api::<Node>::all(self.client.clone()).create(&PostParams::default(), &node).await?;
        let NodeSpec { cpu, memory, pods, extended, images, .. } = &self.spec;
        let mut resources = json!({ "cpu": cpu, "memory": memory, "pods": pods.to_string() });
        for (resource, amount) in extended {
            resources[resource] = json!(amount);
        }
        let status = json!({
            "capacity": resources,
            "allocatable": resources,
            "addresses": [{ "type": "Hostname", "address": self.name }],
            "nodeInfo": { "kubeletVersion": "v1.37.1" },
            "conditions": self.conditions_now(),
            "images": images,
        });
        self.patch_node_status(status).await?;
        node.uid().context("a node without uid")
    }

    /// Sends heartbeats and handles commands, one at a time, until the command channel closes.
    async fn serve(
        mut self,
        heartbeats: Heartbeats,
        first_heartbeat: Instant,
        mut commands: mpsc::Receiver<Command>,
    ) {
        let mut ticks = tokio::time::interval_at(first_heartbeat, heartbeats.every.to_std());
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut count = 0;
        loop {
            tokio::select! {
                command = commands.recv() => match command {
                    Some(command) => self.handle_command(command).await,
                    None => return,
                },
                _ = ticks.tick(), if self.alive => {
                    count = (count + 1) % heartbeats.status_each;
                    self.send_heartbeat(count == 0).await;
                }
            }
        }
    }

    async fn handle_command(&mut self, command: Command) {
        // Sending the response to a command fails if the sender of the command no longer waits for it.
        match command {
            Command::Silence(done) => {
                self.alive = false;
                let _ = done.send(self.renewed);
            }
            Command::ComeBack(done) => {
                self.come_back().await;
                let _ = done.send(());
            }
            Command::Rejoin(done) => {
                self.conditions.values_mut().for_each(|condition| condition.since = self.clock.now());
                let registered = self.register_again().await;
                self.record_failure(registered);
                self.come_back().await;
                let _ = done.send(());
            }
            Command::Post { condition, status, done } => {
                self.conditions.insert(condition, Condition { status, since: self.clock.now() });
                if self.alive {
                    let posted = self.post_conditions().await;
                    self.record_failure(posted);
                } else {
                    self.come_back().await;
                }
                let _ = done.send(());
            }
            Command::Pod(pod) => {
                let uid = pod.uid().unwrap_or_default();
                self.pods.insert(uid.clone(), *pod);
                self.update_pod(&uid).await;
            }
            Command::PodGone(uid) => drop(self.pods.remove(&uid)),
        }
    }

    async fn come_back(&mut self) {
        self.alive = true;
        self.send_heartbeat(true).await;
        for uid in self.pods.keys().cloned().collect::<Vec<_>>() {
            self.update_pod(&uid).await;
        }
    }

    async fn send_heartbeat(&mut self, with_status: bool) {
        if with_status {
            let posted = self.post_conditions().await;
            self.record_failure(posted);
        }
        let now = self.clock.now();
        let leases = Api::<Lease>::namespaced(self.client.clone(), "kube-node-lease");
        let renewal = Patch::Merge(json!({ "spec": { "renewTime": now.to_micro_time() } }));
        let renewed =
            self.request(leases.patch(&self.name, &PatchParams::default(), &renewal)).await.map(drop);
        if renewed.is_ok() {
            self.renewed = now;
        }
        self.record_failure(renewed);
    }

    /// Starts or finishes a pod if that is due and the kubelet is not silent.
    async fn update_pod(&mut self, uid: &str) {
        let Some(pod) = self.pods.get(uid).filter(|_| self.alive) else { return };
        let done = if pod.metadata.deletion_timestamp.is_some() {
            self.finish_pod(pod).await
        } else if !is_ready(pod) && self.conditions["Ready"].status == "True" {
            self.start_pod(pod).await
        } else {
            Ok(())
        };
        self.record_failure(done);
    }

    /// Deletes the object of a terminating pod. A pod that is not restarted gets the phase Failed first, so that its
    /// Job sees the failure.
    async fn finish_pod(&self, pod: &Pod) -> Result<()> {
        let is_restarted =
            pod.spec.as_ref().is_none_or(|spec| spec.restart_policy.as_deref() == Some("Always"));
        if !is_restarted && !is_finished(pod) {
            let killed = json!([{ "name": "c", "image": "img", "imageID": "", "ready": false, "restartCount": 0,
                "state": { "terminated": { "exitCode": 137, "reason": "Error" } } }]);
            self.patch_pod_status(pod, json!({ "phase": "Failed", "containerStatuses": killed })).await?;
        }
        let this_pod = Preconditions { uid: pod.uid(), resource_version: None };
        let for_good = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(this_pod),
            ..DeleteParams::default()
        };
        unless_gone(self.request(self.namespace_of(pod).delete(&pod.name_any(), &for_good)).await)
    }

    /// Posts that a pod is running and ready. A label can prevent one or both of these.
    async fn start_pod(&self, pod: &Pod) -> Result<()> {
        let now = self.clock.now().to_time();
        let status = pod.status.as_ref();
        let labelled = pod.labels().get(CONTAINER).map(String::as_str);
        let container = labelled.or(self.spec.fails_probes.then_some("unready"));
        let has_started = status.is_some_and(|status| status.start_time.is_some());
        if is_finished(pod) || container.is_some() && has_started {
            return Ok(());
        }
        let ready = if container.is_none() { "True" } else { "False" };
        let condition =
            |name: &str, status: &str| json!({ "type": name, "status": status, "lastTransitionTime": now });
        let waiting = |reason: &str, restarts: u32| {
            json!([{ "name": "c", "image": "img", "imageID": "", "ready": false, "restartCount": restarts,
                "state": { "waiting": { "reason": reason } } }])
        };
        let containers = match container {
            Some(CRASHES) => waiting("CrashLoopBackOff", 5),
            Some(NO_IMAGE) => waiting("ImagePullBackOff", 0),
            _ => json!(null),
        };
        let start =
            status.and_then(|status| status.start_time.clone()).map_or(json!(now), |start| json!(start));
        let status = json!({
            "phase": if container == Some(NO_IMAGE) { "Pending" } else { "Running" },
            "startTime": start,
            "conditions": [condition("Initialized", "True"), condition("Ready", ready), condition("ContainersReady", ready)],
            "containerStatuses": containers,
        });
        self.patch_pod_status(pod, status).await
    }

    /// Patches the status of the pod with this uid. It is no error if the pod is gone.
    async fn patch_pod_status(&self, pod: &Pod, status: Value) -> Result<()> {
        let patch = Patch::Strategic(json!({ "metadata": { "uid": pod.uid() }, "status": status }));
        let name = pod.name_any();
        let request =
            async { self.namespace_of(pod).patch_status(&name, &PatchParams::default(), &patch).await };
        unless_gone(self.request(request).await)
    }

    fn namespace_of(&self, pod: &Pod) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &pod.namespace().unwrap_or_default())
    }

    async fn post_conditions(&self) -> Result<()> {
        self.patch_node_status(json!({ "conditions": self.conditions_now() })).await
    }

    fn conditions_now(&self) -> Vec<Value> {
        let now = self.clock.now().to_time();
        let condition = |(name, condition): (&&str, &Condition)| {
            json!({
                "type": name,
                "status": condition.status,
                "reason": format!("Kubelet{name}{}", condition.status),
                "message": format!("the kubelet says {name}={}", condition.status),
                "lastHeartbeatTime": now,
                "lastTransitionTime": condition.since.to_time(),
            })
        };
        self.conditions.iter().map(condition).collect()
    }

    /// Patches the status of the node. A strategic patch merges conditions by type; a JSON merge patch would replace
    /// the whole list.
    async fn patch_node_status(&self, status: Value) -> Result<()> {
        let nodes = Api::<Node>::all(self.client.clone());
        let patch = Patch::Strategic(json!({ "status": status }));
        self.request(nodes.patch_status(&self.name, &PatchParams::default(), &patch)).await.map(drop)
    }

    /// Sends a request when a permit is free, with a timeout of 5 s.
    async fn request<T>(&self, request: impl Future<Output = kube::Result<T>>) -> Result<T> {
        let _turn = self.requests.acquire().await.expect("the semaphore is never closed");
        let answer = tokio::time::timeout(Duration::from_secs(5), request).await;
        Ok(answer.context("no answer within 5 s")??)
    }

    /// Prints the first of successive failures: a kubelet retries while its API server is down.
    fn record_failure(&mut self, result: Result<()>) {
        if let (Err(error), false) = (&result, self.failing) {
            eprintln!("the kubelet of {}: {error:#}", self.name);
        }
        self.failing = result.is_err();
    }
}

/// Sends every change of a pod to the kubelet of its node.
async fn deliver_pods(client: Client, kubelets: BTreeMap<String, mpsc::Sender<Command>>) {
    let bound = watcher::Config::default().fields("spec.nodeName!=");
    let mut events = watcher(Api::<Pod>::all(client), bound).default_backoff().boxed();
    while let Some(event) = events.next().await {
        let (pod, gone) = match event {
            Ok(watcher::Event::Apply(pod) | watcher::Event::InitApply(pod)) => (pod, false),
            Ok(watcher::Event::Delete(pod)) => (pod, true),
            Ok(watcher::Event::Init | watcher::Event::InitDone) => continue,
            Err(error) => {
                eprintln!("the kubelets' watch of pods: {error}"); // it reconnects after its backoff
                continue;
            }
        };
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default();
        let Some(kubelet) = kubelets.get(node) else { continue };
        let command =
            if gone { Command::PodGone(pod.uid().unwrap_or_default()) } else { Command::Pod(Box::new(pod)) };
        // Sending fails if the kubelet has ended.
        let _ = kubelet.send(command).await;
    }
}

fn is_finished(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Failed" | "Succeeded"))
}

pub fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|list| {
        list.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
    })
}

/// Ignores the errors "not found" and "conflict": the pod has been deleted, or replaced by another pod with its name.
fn unless_gone<T>(answer: Result<T>) -> Result<()> {
    match answer {
        Ok(_) => Ok(()),
        Err(error) => match error.downcast_ref::<kube::Error>() {
            Some(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Ok(()),
            _ => Err(error),
        },
    }
}

fn node_object(spec: &NodeSpec) -> Value {
    let mut labels = spec.labels.clone();
    let own = [
        ("kubernetes.io/hostname", Some(spec.name.clone())),
        ("kubernetes.io/os", Some("linux".into())),
        ("kubernetes.io/arch", Some("amd64".into())),
        ("topology.kubernetes.io/zone", spec.zone.clone()),
        ("topology.kubernetes.io/region", spec.region.clone()),
    ];
    labels.extend(own.into_iter().filter_map(|(key, value)| Some((key.to_string(), value?))));
    json!({
        "metadata": { "name": spec.name, "labels": labels },
        "spec": { "taints": spec.taints },
    })
}

fn lease_object(node: &str, node_uid: &str, heartbeats: Heartbeats, now: Timestamp) -> Value {
    // A kubelet renews its Lease after a quarter of the Lease's duration.
    let seconds = (heartbeats.every * 4).as_secs();
    json!({
        "metadata": {
            "name": node,
            "ownerReferences": [{ "apiVersion": "v1", "kind": "Node", "name": node, "uid": node_uid }],
        },
        "spec": { "holderIdentity": node, "leaseDurationSeconds": seconds, "renewTime": now.to_micro_time() },
    })
}
