//! The kubelets of all nodes, in one task: leases, node status, and the lifecycle of pods.

mod config;
mod containers;
mod endpoints;
mod eviction;
mod pressure;
mod status;
mod usage;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
    sync::Arc,
};

use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub use self::config::TRANSITION_PERIOD;
use self::{
    containers::{ContainerStep, PendingStep},
    pressure::PressureState,
    usage::MemoryLeak,
};
use super::{
    api::forward::ForwardedRequest,
    errors::ErrorReporter,
    feed::{FeedChange, KnownObjects, ObjectChange},
    objects::{Key, Node, Object, Pod},
    random::RandomSource,
    writer::{Patch, WriteError, Writer, path},
};
use kordon_clock::Clock;
use kordon_time::{Span, Timestamp};

/// The kubelets of all nodes. They share one task and one heap of timers, so that thousands of nodes cost little.
///
/// While a kubelet is disconnected, it does nothing, and its containers do not change.
pub struct Kubelets {
    clock: Clock,
    writer: Writer,
    random: RandomSource,
    errors: ErrorReporter,
    kubelets: BTreeMap<Arc<str>, Kubelet>,
    nodes: KnownObjects<Node>,
    pods: KnownObjects<Pod>,
    /// The next step of each pod for which a step is scheduled.
    pending: BTreeMap<Key, PendingStep>,
    timers: BinaryHeap<Reverse<(Timestamp, u64, Timer)>>,
    /// Number of timers that were set so far. It orders timers with the same time, and it identifies the valid timer of
    /// a pod.
    timers_set: u64,
}

/// A message to the kubelets.
#[derive(Debug)]
pub enum KubeletMessage {
    Nodes(FeedChange<Node>),
    Pods(FeedChange<Pod>),
    /// A fault of a node.
    Fault(String, NodeFault),
}

/// The start or end of a fault of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeFault {
    /// The kubelet cannot reach the API: it does not renew its Lease, report its status, or confirm deletions.
    Disconnect,
    /// The kubelet reaches the API again.
    Reconnect,
    /// The container runtime stops responding: Ready becomes False, and no pod starts or stops.
    StopRuntime,
    StartRuntime,
    /// The kubelet reports a pressure (`MemoryPressure`, `DiskPressure`, `PIDPressure`), or its end.
    Pressure(&'static str, PressureLevel),
    /// A pod uses more memory each second, until the machine has only `leaves` bytes left.
    Leak {
        pod: Key,
        bytes_per_second: i64,
        leaves: i64,
    },
    /// The node is down for the time `down`, and runs another kernel afterwards.
    Reboot {
        down: Span,
        kernel: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PressureLevel {
    High,
    Normal,
}

#[derive(Debug)]
struct Kubelet {
    connection: Connection,
    /// Whether the container runtime responds.
    runtime: bool,
    /// Pressure conditions that the kubelet reports because of a fault.
    pressures: BTreeSet<&'static str>,
    /// State of the pressure that the kubelet measures.
    pressure: PressureState,
    /// The pods that leak memory, by uid.
    leaks: BTreeMap<String, MemoryLeak>,
    /// The kernel since the last reboot; None while the kernel of the Node object is valid.
    kernel: Option<String>,
    /// Number of times that the kubelet was disconnected or connected again. A timer is ignored if this number has
    /// changed since the timer was set.
    session: u32,
    /// The time of the last status write.
    reported: Timestamp,
    pods: BTreeSet<Key>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Connection {
    Up,
    Down,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Renew {
        node: Arc<str>,
        session: u32,
    },
    Report {
        node: Arc<str>,
        session: u32,
    },
    Boot {
        node: Arc<str>,
        session: u32,
    },
    /// The containers of an evicted pod have ended.
    Evict {
        key: Key,
        uid: String,
        message: String,
    },
    /// The next step of a pod is due. The timer is ignored if a newer timer with another `number` was set for the pod.
    Pod {
        key: Key,
        number: u64,
    },
}

/// The initial state of a kubelet.
#[derive(Clone, Debug)]
pub struct InitialKubelet {
    pub node: String,
    /// The time of the last Lease renewal; None if the kubelet is disconnected.
    pub renewed: Option<Timestamp>,
    /// The time of the last status write.
    pub reported: Timestamp,
    pub pressures: BTreeSet<&'static str>,
}

/// Interval of Lease renewals: a quarter of the Lease's 40 s, plus up to 4 % of jitter
/// (docs/upstream/node-lifecycle.md#11.3).
const RENEW_EVERY: Span = Span::from_secs(10);
const RENEW_JITTER: f64 = 0.04;
/// Interval at which the status is computed.
const STATUS_EVERY: Span = Span::from_secs(10);
/// Interval at which an unchanged status is written.
const REPORT_EVERY: Span = Span::from_secs(300);
/// Delay before a failed renewal is retried.
const RETRY: Span = Span::from_secs(1);

impl Kubelets {
    pub fn new(
        clock: Clock,
        writer: Writer,
        random: RandomSource,
        errors: ErrorReporter,
        kubelets: impl IntoIterator<Item = InitialKubelet>,
    ) -> Self {
        let mut all = Self {
            clock,
            writer,
            random,
            errors,
            kubelets: BTreeMap::new(),
            nodes: KnownObjects::new(),
            pods: KnownObjects::new(),
            pending: BTreeMap::new(),
            timers: BinaryHeap::new(),
            timers_set: 0,
        };
        for start in kubelets {
            all.add(start);
        }
        all
    }

    fn add(&mut self, start: InitialKubelet) {
        let node: Arc<str> = start.node.as_str().into();
        let connection = if start.renewed.is_some() { Connection::Up } else { Connection::Down };
        let kubelet = Kubelet {
            connection,
            runtime: true,
            pressures: start.pressures,
            pressure: PressureState::default(),
            leaks: BTreeMap::new(),
            kernel: None,
            session: 0,
            reported: start.reported,
            pods: BTreeSet::new(),
        };
        self.kubelets.insert(node.clone(), kubelet);
        if let Some(renewed) = start.renewed {
            let status = STATUS_EVERY.as_secs_f64() * self.random.rng(&["status", &node]).f64();
            let now = self.clock.now();
            self.set_timer(renewed + RENEW_EVERY, Timer::Renew { node: node.clone(), session: 0 });
            self.set_timer(now + Span::from_secs_f64(status), Timer::Report { node, session: 0 });
        }
    }

    /// Runs until `cancel` is cancelled. `requests` are the requests that the API server forwards.
    pub async fn run(
        mut self,
        mut inbox: mpsc::Receiver<KubeletMessage>,
        mut requests: mpsc::Receiver<ForwardedRequest>,
        cancel: CancellationToken,
    ) {
        loop {
            let next = self.timers.peek().map_or(Timestamp::MAX, |Reverse((at, ..))| *at);
            tokio::select! {
                () = cancel.cancelled() => return,
                message = inbox.recv() => match message {
                    None => return,
                    Some(message) => self.on_message(message),
                },
                Some(request) = requests.recv() => self.on_request(request),
                () = self.clock.sleep_until(next) => self.on_timeout().await,
            }
        }
    }

    fn on_message(&mut self, message: KubeletMessage) {
        match message {
            KubeletMessage::Nodes(change) => drop(self.nodes.apply(change)),
            KubeletMessage::Pods(change) => {
                for change in self.pods.apply(change) {
                    self.on_pod(&change);
                }
            }
            KubeletMessage::Fault(node, fault) => self.on_fault(&node, fault),
        }
    }

    fn on_fault(&mut self, node: &str, fault: NodeFault) {
        let Some((name, kubelet)) = self.kubelets.get_key_value(node) else {
            return self.errors.report(format!("kubelet of {node}"), &"there is no such node");
        };
        let name = name.clone();
        let is_disconnected = kubelet.connection == Connection::Down;
        let kubelet = self.kubelets.get_mut(node).expect("found above");
        match fault {
            NodeFault::Disconnect => {
                kubelet.connection = Connection::Down;
                kubelet.session += 1;
            }
            NodeFault::Reconnect if is_disconnected => self.reconnect(&name),
            NodeFault::Reconnect => {}
            NodeFault::StopRuntime => kubelet.runtime = false,
            NodeFault::StartRuntime => {
                kubelet.runtime = true;
                self.schedule_steps(&name);
            }
            NodeFault::Pressure(kind, PressureLevel::High) => drop(kubelet.pressures.insert(kind)),
            NodeFault::Pressure(kind, PressureLevel::Normal) => drop(kubelet.pressures.remove(kind)),
            NodeFault::Leak { pod, bytes_per_second, leaves } => {
                if let Some(pod) = self.pods.object(&pod) {
                    let leak = MemoryLeak { since: self.clock.now(), bytes_per_second, leaves };
                    kubelet.leaks.insert(pod.uid().to_owned(), leak);
                }
            }
            NodeFault::Reboot { down, kernel } => {
                kubelet.connection = Connection::Down;
                kubelet.session += 1;
                kubelet.kernel = Some(kernel);
                let session = kubelet.session;
                self.set_timer(self.clock.now() + down, Timer::Boot { node: name, session });
            }
        }
    }

    /// Handles that the kubelet reaches the API again: it renews its Lease, reports its status, and continues with its
    /// pods.
    fn reconnect(&mut self, node: &Arc<str>) {
        let kubelet = self.kubelets.get_mut(node).expect("only existing kubelets reconnect");
        kubelet.connection = Connection::Up;
        kubelet.session += 1;
        let session = kubelet.session;
        let mut rng = self.random.rng(&["back", node, &session.to_string()]);
        let (now, soon) = (self.clock.now(), |rng: &mut fastrand::Rng| Span::from_millis(rng.i64(200..2000)));
        self.set_timer(now + soon(&mut rng), Timer::Renew { node: node.clone(), session });
        self.set_timer(now + soon(&mut rng), Timer::Report { node: node.clone(), session });
        self.schedule_steps(node);
    }

    /// Handles the timers that are due.
    async fn on_timeout(&mut self) {
        let now = self.clock.now();
        while let Some(Reverse((at, ..))) = self.timers.peek()
            && *at <= now
        {
            let Some(Reverse((_, _, timer))) = self.timers.pop() else { return };
            match timer {
                Timer::Renew { node, session } if self.is_connected(&node, session) => {
                    self.renew(node, session).await
                }
                Timer::Report { node, session } if self.is_connected(&node, session) => {
                    self.monitor(&node).await;
                    self.report(node, session).await
                }
                Timer::Boot { node, session } => {
                    if self.kubelets.get(&node).is_some_and(|kubelet| kubelet.session == session) {
                        self.reconnect(&node);
                    }
                }
                Timer::Evict { key, uid, message } => self.on_evicted(&key, &uid, &message).await,
                Timer::Pod { key, number } => self.on_step_due(&key, number).await,
                Timer::Renew { .. } | Timer::Report { .. } => {}
            }
        }
    }

    fn is_connected(&self, node: &str, session: u32) -> bool {
        self.kubelets
            .get(node)
            .is_some_and(|kubelet| kubelet.session == session && kubelet.connection == Connection::Up)
    }

    async fn renew(&mut self, node: Arc<str>, session: u32) {
        let now = self.clock.now();
        let renewal = json!({"spec": {"renewTime": now.to_micro_time()}});
        let written: Result<serde::de::IgnoredAny, WriteError> =
            self.writer.patch(&path::lease(&node), Patch::Merge, &renewal).await;
        let written = match written {
            Err(WriteError::NotFound) => self.create_lease(&node, now).await,
            other => other.map(drop),
        };
        let wait = match written {
            Ok(()) => {
                let jitter = self.random.rng(&["renew", &node, &now.as_nanos().to_string()]).f64();
                RENEW_EVERY.as_secs_f64() * (1.0 + RENEW_JITTER * jitter)
            }
            Err(error) => {
                self.errors.report(format!("kubelet of {node}, renewing its lease"), &error);
                RETRY.as_secs_f64()
            }
        };
        self.set_timer(now + Span::from_secs_f64(wait), Timer::Renew { node, session });
    }

    /// Creates the Lease again after it was deleted.
    async fn create_lease(&self, node: &str, now: Timestamp) -> Result<(), WriteError> {
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": node, "namespace": "kube-node-lease"},
            "spec": {"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": now.to_micro_time()},
        });
        let collection = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
        self.writer.create::<serde::de::IgnoredAny>(collection, &lease).await.map(drop)
    }

    async fn report(&mut self, node: Arc<str>, session: u32) {
        let now = self.clock.now();
        self.set_timer(now + STATUS_EVERY, Timer::Report { node: node.clone(), session });
        let key = Key { namespace: String::new(), name: node.to_string() };
        // The node was deleted. A running kubelet does not register its node again.
        let Some(known) = self.nodes.object(&key) else { return };
        let kubelet = &self.kubelets[&node];
        let due = now.since(kubelet.reported) >= REPORT_EVERY;
        let conditions = kubelet.conditions(now);
        let Some(status) = status::report(kubelet, &conditions, known, due, now) else { return };
        let path = format!("{}/status", path::node(&node));
        match self.writer.patch::<Node>(&path, Patch::Strategic, &status).await {
            Ok(written) => {
                self.nodes.record(Arc::new(written));
                self.kubelets.get_mut(&node).expect("it reported above").reported = now;
            }
            Err(WriteError::NotFound) => {}
            Err(error) => self.errors.report(format!("kubelet of {node}, writing its status"), &error),
        }
    }

    fn on_pod(&mut self, change: &ObjectChange<Pod>) {
        let key = change.key();
        let node_of = |pod: &Option<Arc<Pod>>| pod.as_ref().map(|pod| pod.spec.node_name.clone());
        let (before, after) = (node_of(&change.before), node_of(&change.after));
        if before != after {
            if let Some(kubelet) = before.and_then(|node| self.kubelets.get_mut(node.as_str())) {
                kubelet.pods.remove(&key);
                kubelet.leaks.retain(|uid, _| change.before.as_ref().is_none_or(|pod| pod.uid() != uid));
            }
            if let Some(kubelet) = after.and_then(|node| self.kubelets.get_mut(node.as_str())) {
                kubelet.pods.insert(key.clone());
            }
        }
        self.schedule_step(&key);
    }

    fn schedule_steps(&mut self, node: &str) {
        let pods: Vec<Key> = self.kubelets[node].pods.iter().cloned().collect();
        for key in &pods {
            self.schedule_step(key);
        }
    }

    /// Sets the timer for a pod's next step.
    fn schedule_step(&mut self, key: &Key) {
        let Some(pod) = self.pods.object(key) else {
            self.pending.remove(key);
            return;
        };
        let can_act = |kubelet: &Kubelet| kubelet.connection == Connection::Up && kubelet.runtime;
        if !self.kubelets.get(pod.spec.node_name.as_str()).is_some_and(can_act) {
            self.pending.remove(key);
            return;
        }
        let Some((step, wait)) = containers::next_step(pod, self.random, self.clock.now()) else {
            self.pending.remove(key);
            return;
        };
        if self.pending.get(key).is_some_and(|on| on.uid == pod.uid() && on.step == step) {
            return; // the step is already scheduled
        }
        let uid = pod.uid().to_owned();
        let number = self.set_timer(self.clock.now() + wait, Timer::Pod { key: key.clone(), number: 0 });
        self.pending.insert(key.clone(), PendingStep { uid, step, number });
    }

    async fn on_step_due(&mut self, key: &Key, number: u64) {
        if self.pending.get(key).is_none_or(|due| due.number != number) {
            return;
        }
        let Some(PendingStep { step, .. }) = self.pending.remove(key) else { return };
        let Some(pod) = self.pods.object(key).cloned() else { return };
        let can_act = |kubelet: &Kubelet| kubelet.connection == Connection::Up && kubelet.runtime;
        if !self.kubelets.get(pod.spec.node_name.as_str()).is_some_and(can_act) {
            return;
        }
        if step == ContainerStep::Create && pressure::rejects(&self.conditions_of(&pod.spec.node_name), &pod)
        {
            return self.reject(&pod).await;
        }
        let done = self.take_step(&pod, step).await;
        match done {
            Ok(Some(written)) => {
                if let Some(change) = self.pods.record(Arc::new(written)) {
                    self.on_pod(&change);
                }
            }
            // The pod is gone, or another pod of the same name has replaced it. The watch will report this.
            Ok(None) | Err(WriteError::NotFound | WriteError::Conflict(_)) => {}
            Err(error) => {
                self.errors
                    .report(format!("kubelet, {step:?} of pod {}/{}", key.namespace, key.name), &error);
                let number =
                    self.set_timer(self.clock.now() + RETRY, Timer::Pod { key: key.clone(), number: 0 });
                self.pending.insert(key.clone(), PendingStep { uid: pod.uid().to_owned(), step, number });
            }
        }
    }

    /// Writes the result of a pod's next step. Returns the pod as written; None if the pod was deleted.
    async fn take_step(&self, pod: &Pod, step: ContainerStep) -> Result<Option<Pod>, WriteError> {
        let key = Key::from_object(pod);
        let path = path::pod(&key);
        let status = containers::status_after(pod, step, self.random, self.clock.now());
        if let Some(status) = status {
            let patch = json!({"metadata": {"uid": pod.uid()}, "status": status});
            let written = self.writer.patch(&format!("{path}/status"), Patch::Strategic, &patch).await?;
            if !matches!(step, ContainerStep::Stop { .. }) {
                return Ok(Some(written));
            }
        }
        self.writer.delete(&path, pod.uid(), Some(0)).await?;
        Ok(None)
    }

    fn conditions_of(&self, node: &str) -> BTreeSet<&'static str> {
        self.kubelets.get(node).map(|kubelet| kubelet.conditions(self.clock.now())).unwrap_or_default()
    }

    /// Numbers a timer, sets it, and returns the number. A `Timer::Pod` also stores the number.
    fn set_timer(&mut self, at: Timestamp, timer: Timer) -> u64 {
        self.timers_set += 1;
        let timer = match timer {
            Timer::Pod { key, .. } => Timer::Pod { key, number: self.timers_set },
            other => other,
        };
        self.timers.push(Reverse((at, self.timers_set, timer)));
        self.timers_set
    }
}

impl Kubelet {
    /// The pressures that the node reports.
    fn conditions(&self, now: Timestamp) -> BTreeSet<&'static str> {
        self.pressures.iter().copied().chain(self.pressure.conditions(now)).collect()
    }
}
