//! Every node's kubelet, in one task: leases, node status, and the lives of pods.

mod containers;
mod status;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
    sync::Arc,
};

use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::containers::{ContainerStep, Move};
use super::{
    chance::Chance,
    feed::{FeedChange, KnownObjects, Turn},
    objects::{Key, Node, Object, Pod},
    troubles::Troubles,
    writer::{Patch, Refused, Writer, path},
};
use crate::{
    clock::Clock,
    time::{Span, Timestamp},
};

/// The kubelets of all nodes: one task and one heap of alarms, so that thousands of nodes cost little.
///
/// A kubelet that is cut off does nothing at all; what its containers do meanwhile, nobody sees.
pub struct Kubelets {
    clock: Clock,
    writer: Writer,
    chance: Chance,
    troubles: Troubles,
    kubelets: BTreeMap<Arc<str>, Kubelet>,
    nodes: KnownObjects<Node>,
    pods: KnownObjects<Pod>,
    /// What comes next for pods in motion, by pod.
    moves: BTreeMap<Key, Move>,
    alarms: BinaryHeap<Reverse<(Timestamp, u64, Alarm)>>,
    /// Alarms set so far; orders those of one moment, and tells the valid one of several.
    rung: u64,
}

/// What the kubelets hear.
#[derive(Debug)]
pub enum KubeletMessage {
    Nodes(FeedChange<Node>),
    Pods(FeedChange<Pod>),
    /// Something happens to a node.
    Fate(String, NodeFault),
}

/// What can happen to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeFault {
    /// It is cut off: no renewals, no status, no confirmations.
    FallsSilent,
    /// It is reachable again.
    ComesBack,
    /// Its container runtime stops answering: Ready=False, and no pod starts or ends.
    LosesRuntime,
    RegainsRuntime,
    /// It reports this kind of pressure (`MemoryPressure`, `DiskPressure`, `PIDPressure`), or no longer.
    Pressure(&'static str, LeaseLevel),
    /// It goes down and comes up after `down`, with another kernel.
    Reboots {
        down: Span,
        kernel: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseLevel {
    High,
    Normal,
}

#[derive(Debug)]
struct Kubelet {
    link: Link,
    /// Whether the container runtime answers.
    runtime: bool,
    /// Kinds of pressure it feels.
    pressures: BTreeSet<&'static str>,
    /// The kernel it runs since its last reboot; None: the one that its node object has.
    kernel: Option<String>,
    /// How often it was cut off or came back: alarms of an earlier life are not heard.
    life: u32,
    /// When it last wrote its status.
    reported: Timestamp,
    pods: BTreeSet<Key>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    Up,
    Cut,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Alarm {
    Renew {
        node: Arc<str>,
        life: u32,
    },
    Report {
        node: Arc<str>,
        life: u32,
    },
    Boot {
        node: Arc<str>,
        life: u32,
    },
    /// A pod's next move, if `number` is still the one.
    Pod {
        key: Key,
        number: u64,
    },
}

/// A kubelet's state at the beginning.
#[derive(Clone, Debug)]
pub struct Start {
    pub node: String,
    /// When it last renewed its lease; None: it is cut off.
    pub renewed: Option<Timestamp>,
    /// When it last wrote its status.
    pub reported: Timestamp,
    pub pressures: BTreeSet<&'static str>,
}

/// Lease renewal: a quarter of the lease's 40 s, and up to 4 % more (docs/upstream/node-lifecycle.md#11.3).
const RENEW_EVERY: Span = Span::from_secs(10);
const RENEW_JITTER: f64 = 0.04;
/// The status is worked out so often …
const STATUS_EVERY: Span = Span::from_secs(10);
/// … and written if it changed, or at least so often.
const REPORT_EVERY: Span = Span::from_secs(300);
/// How soon a renewal that failed is tried again.
const RETRY: Span = Span::from_secs(1);

impl Kubelets {
    pub fn new(
        clock: Clock,
        writer: Writer,
        chance: Chance,
        troubles: Troubles,
        starts: impl IntoIterator<Item = Start>,
    ) -> Self {
        let mut all = Self {
            clock,
            writer,
            chance,
            troubles,
            kubelets: BTreeMap::new(),
            nodes: KnownObjects::new(),
            pods: KnownObjects::new(),
            moves: BTreeMap::new(),
            alarms: BinaryHeap::new(),
            rung: 0,
        };
        for start in starts {
            all.add(start);
        }
        all
    }

    fn add(&mut self, start: Start) {
        let node: Arc<str> = start.node.as_str().into();
        let link = if start.renewed.is_some() { Link::Up } else { Link::Cut };
        let kubelet = Kubelet {
            link,
            runtime: true,
            pressures: start.pressures,
            kernel: None,
            life: 0,
            reported: start.reported,
            pods: BTreeSet::new(),
        };
        self.kubelets.insert(node.clone(), kubelet);
        if let Some(renewed) = start.renewed {
            let status = STATUS_EVERY.as_secs_f64() * self.chance.about(&["status", &node]).f64();
            let now = self.clock.now();
            self.alarm(renewed + RENEW_EVERY, Alarm::Renew { node: node.clone(), life: 0 });
            self.alarm(now + Span::from_secs_f64(status), Alarm::Report { node, life: 0 });
        }
    }

    pub async fn run(mut self, mut inbox: mpsc::Receiver<KubeletMessage>, cancel: CancellationToken) {
        loop {
            let next = self.alarms.peek().map_or(Timestamp::MAX, |Reverse((at, ..))| *at);
            tokio::select! {
                () = cancel.cancelled() => return,
                message = inbox.recv() => match message {
                    None => return,
                    Some(message) => self.hear(message),
                },
                () = self.clock.sleep_until(next) => self.ring().await,
            }
        }
    }

    fn hear(&mut self, message: KubeletMessage) {
        match message {
            KubeletMessage::Nodes(change) => drop(self.nodes.absorb(change)),
            KubeletMessage::Pods(change) => {
                for turn in self.pods.absorb(change) {
                    self.on_pod(&turn);
                }
            }
            KubeletMessage::Fate(node, fate) => self.on_fate(&node, fate),
        }
    }

    fn on_fate(&mut self, node: &str, fate: NodeFault) {
        let Some((name, kubelet)) = self.kubelets.get_key_value(node) else {
            return self.troubles.tell(format!("kubelet of {node}"), &"there is no such node");
        };
        let name = name.clone();
        let kubelet_is_cut = kubelet.link == Link::Cut;
        let kubelet = self.kubelets.get_mut(node).expect("found above");
        match fate {
            NodeFault::FallsSilent => {
                kubelet.link = Link::Cut;
                kubelet.life += 1;
            }
            NodeFault::ComesBack if kubelet_is_cut => self.come_back(&name),
            NodeFault::ComesBack => {}
            NodeFault::LosesRuntime => kubelet.runtime = false,
            NodeFault::RegainsRuntime => {
                kubelet.runtime = true;
                self.tend_all(&name);
            }
            NodeFault::Pressure(kind, LeaseLevel::High) => drop(kubelet.pressures.insert(kind)),
            NodeFault::Pressure(kind, LeaseLevel::Normal) => drop(kubelet.pressures.remove(kind)),
            NodeFault::Reboots { down, kernel } => {
                kubelet.link = Link::Cut;
                kubelet.life += 1;
                kubelet.kernel = Some(kernel);
                let life = kubelet.life;
                self.alarm(self.clock.now() + down, Alarm::Boot { node: name, life });
            }
        }
    }

    /// The kubelet reaches the API again: it renews, reports, and looks at its pods.
    fn come_back(&mut self, node: &Arc<str>) {
        let kubelet = self.kubelets.get_mut(node).expect("only kubelets that exist come back");
        kubelet.link = Link::Up;
        kubelet.life += 1;
        let life = kubelet.life;
        let mut rng = self.chance.about(&["back", node, &life.to_string()]);
        let (now, soon) = (self.clock.now(), |rng: &mut fastrand::Rng| Span::from_millis(rng.i64(200..2000)));
        self.alarm(now + soon(&mut rng), Alarm::Renew { node: node.clone(), life });
        self.alarm(now + soon(&mut rng), Alarm::Report { node: node.clone(), life });
        self.tend_all(node);
    }

    /// Does what is due.
    async fn ring(&mut self) {
        let now = self.clock.now();
        while let Some(Reverse((at, ..))) = self.alarms.peek()
            && *at <= now
        {
            let Some(Reverse((_, _, alarm))) = self.alarms.pop() else { return };
            match alarm {
                Alarm::Renew { node, life } if self.hears(&node, life) => self.renew(node, life).await,
                Alarm::Report { node, life } if self.hears(&node, life) => self.report(node, life).await,
                Alarm::Boot { node, life } => {
                    if self.kubelets.get(&node).is_some_and(|kubelet| kubelet.life == life) {
                        self.come_back(&node);
                    }
                }
                Alarm::Pod { key, number } => self.on_move(&key, number).await,
                Alarm::Renew { .. } | Alarm::Report { .. } => {}
            }
        }
    }

    fn hears(&self, node: &str, life: u32) -> bool {
        self.kubelets.get(node).is_some_and(|kubelet| kubelet.life == life && kubelet.link == Link::Up)
    }

    async fn renew(&mut self, node: Arc<str>, life: u32) {
        let now = self.clock.now();
        let renewal = json!({"spec": {"renewTime": now.to_micro_time()}});
        let written: Result<serde::de::IgnoredAny, Refused> =
            self.writer.patch(&path::lease(&node), Patch::Merge, &renewal).await;
        let written = match written {
            Err(Refused::Gone) => self.make_lease(&node, now).await,
            other => other.map(drop),
        };
        let wait = match written {
            Ok(()) => {
                let jitter = self.chance.about(&["renew", &node, &now.as_nanos().to_string()]).f64();
                RENEW_EVERY.as_secs_f64() * (1.0 + RENEW_JITTER * jitter)
            }
            Err(refused) => {
                self.troubles.tell(format!("kubelet of {node}, renewing its lease"), &refused);
                RETRY.as_secs_f64()
            }
        };
        self.alarm(now + Span::from_secs_f64(wait), Alarm::Renew { node, life });
    }

    /// The lease was deleted; a kubelet makes itself a new one.
    async fn make_lease(&self, node: &str, now: Timestamp) -> Result<(), Refused> {
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": node, "namespace": "kube-node-lease"},
            "spec": {"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": now.to_micro_time()},
        });
        let collection = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
        self.writer.create::<serde::de::IgnoredAny>(collection, &lease).await.map(drop)
    }

    async fn report(&mut self, node: Arc<str>, life: u32) {
        let now = self.clock.now();
        self.alarm(now + STATUS_EVERY, Alarm::Report { node: node.clone(), life });
        let key = Key { namespace: String::new(), name: node.to_string() };
        // Deleted nodes are not registered again while their kubelet runs.
        let Some(known) = self.nodes.object(&key) else { return };
        let kubelet = &self.kubelets[&node];
        let due = now.since(kubelet.reported) >= REPORT_EVERY;
        let Some(status) = status::report(kubelet, known, due, now) else { return };
        let path = format!("{}/status", path::node(&node));
        match self.writer.patch::<Node>(&path, Patch::Strategic, &status).await {
            Ok(written) => {
                self.nodes.note(Arc::new(written));
                self.kubelets.get_mut(&node).expect("it has just reported").reported = now;
            }
            Err(Refused::Gone) => {}
            Err(refused) => self.troubles.tell(format!("kubelet of {node}, writing its status"), &refused),
        }
    }

    fn on_pod(&mut self, turn: &Turn<Pod>) {
        let key = turn.key();
        let node_of = |pod: &Option<Arc<Pod>>| pod.as_ref().map(|pod| pod.spec.node_name.clone());
        let (before, after) = (node_of(&turn.before), node_of(&turn.after));
        if before != after {
            if let Some(kubelet) = before.and_then(|node| self.kubelets.get_mut(node.as_str())) {
                kubelet.pods.remove(&key);
            }
            if let Some(kubelet) = after.and_then(|node| self.kubelets.get_mut(node.as_str())) {
                kubelet.pods.insert(key.clone());
            }
        }
        self.tend(&key);
    }

    fn tend_all(&mut self, node: &str) {
        let pods: Vec<Key> = self.kubelets[node].pods.iter().cloned().collect();
        for key in &pods {
            self.tend(key);
        }
    }

    /// Works out what its kubelet will do next with a pod, and when.
    fn tend(&mut self, key: &Key) {
        let Some(pod) = self.pods.object(key) else {
            self.moves.remove(key);
            return;
        };
        let able = |kubelet: &Kubelet| kubelet.link == Link::Up && kubelet.runtime;
        if !self.kubelets.get(pod.spec.node_name.as_str()).is_some_and(able) {
            self.moves.remove(key);
            return;
        }
        let Some((step, wait)) = containers::next_step(pod, self.chance, self.clock.now()) else {
            self.moves.remove(key);
            return;
        };
        if self.moves.get(key).is_some_and(|on| on.uid == pod.uid() && on.step == step) {
            return; // Already on its way, and not to be put off.
        }
        let uid = pod.uid().to_owned();
        let number = self.alarm(self.clock.now() + wait, Alarm::Pod { key: key.clone(), number: 0 });
        self.moves.insert(key.clone(), Move { uid, step, number });
    }

    async fn on_move(&mut self, key: &Key, number: u64) {
        if self.moves.get(key).is_none_or(|due| due.number != number) {
            return;
        }
        let Some(Move { step, .. }) = self.moves.remove(key) else { return };
        let Some(pod) = self.pods.object(key).cloned() else { return };
        let able = |kubelet: &Kubelet| kubelet.link == Link::Up && kubelet.runtime;
        if !self.kubelets.get(pod.spec.node_name.as_str()).is_some_and(able) {
            return;
        }
        let done = self.take_step(&pod, step).await;
        match done {
            Ok(Some(written)) => {
                if let Some(turn) = self.pods.note(Arc::new(written)) {
                    self.on_pod(&turn);
                }
            }
            // Gone, or another one of the same name: the watch tells.
            Ok(None) | Err(Refused::Gone | Refused::Conflict(_)) => {}
            Err(refused) => {
                self.troubles
                    .tell(format!("kubelet, {step:?} of pod {}/{}", key.namespace, key.name), &refused);
                let number = self.alarm(self.clock.now() + RETRY, Alarm::Pod { key: key.clone(), number: 0 });
                self.moves.insert(key.clone(), Move { uid: pod.uid().to_owned(), step, number });
            }
        }
    }

    /// The pod as it was written; None where it was deleted.
    async fn take_step(&self, pod: &Pod, step: ContainerStep) -> Result<Option<Pod>, Refused> {
        let key = Key::of(pod);
        let path = path::pod(&key);
        let status = containers::status_after(pod, step, self.chance, self.clock.now());
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

    /// Sets an alarm; for a pod it carries the number that is returned.
    fn alarm(&mut self, at: Timestamp, alarm: Alarm) -> u64 {
        self.rung += 1;
        let alarm = match alarm {
            Alarm::Pod { key, .. } => Alarm::Pod { key, number: self.rung },
            other => other,
        };
        self.alarms.push(Reverse((at, self.rung, alarm)));
        self.rung
    }
}
