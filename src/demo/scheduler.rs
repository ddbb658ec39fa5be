//! The scheduler of the embedded cluster: binds waiting pods to nodes that have room for them and that they bear.
//!
//! A small one: requests, taints, cordons, node selectors; then spread over zones and nodes, then the least loaded
//! node. It knows no preemption, and no affinity but that of DaemonSets.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde::de::IgnoredAny;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    feed::{FeedChange, KnownObjects, Turn},
    objects::{Key, Node, Object, Pod, cpu_milli, memory_kib},
    troubles::Troubles,
    writer::{Patch, Refused, Writer, path},
};
use crate::{
    clock::Clock,
    time::{Span, Timestamp},
};

/// Binds pods, one after the other, the most important first.
pub struct SimpleScheduler {
    clock: Clock,
    writer: Writer,
    troubles: Troubles,
    nodes: KnownObjects<Node>,
    pods: KnownObjects<Pod>,
    places: BTreeMap<String, Place>,
    /// Pods of each controller (by uid) on each node.
    siblings: BTreeMap<String, BTreeMap<String, usize>>,
    /// Pods to be placed.
    queue: BTreeSet<(Reverse<i64>, Key)>,
    /// Pods that found no place. They are looked at again when something may have made room.
    parked: BTreeSet<Key>,
    /// When the parked ones are looked at again.
    unpark: Timestamp,
    /// After which node the next search begins, in a cluster too large to look at every node.
    cursor: String,
    listed: (bool, bool),
}

/// What the scheduler hears.
#[derive(Debug)]
pub enum SchedulerMessage {
    Nodes(FeedChange<Node>),
    Pods(FeedChange<Pod>),
}

/// What a node offers, and what its pods have taken of it.
#[derive(Clone, Debug, Default)]
struct Place {
    zone: String,
    offered: Amount,
    taken: Amount,
}

#[derive(Clone, Copy, Debug, Default)]
struct Amount {
    cpu_milli: i64,
    memory_kib: i64,
    pods: i64,
}

/// Room that was made is not looked at one pod at a time.
const UNPARK_AFTER: Span = Span::from_secs(1);
/// Parked pods are looked at again even if nothing seems to have changed.
const UNPARK_EVERY: Span = Span::from_secs(30);
/// How soon a binding that failed is tried again.
const RETRY: Span = Span::from_secs(1);
/// So many nodes with room are compared, no more.
const COMPARED: usize = 100;

impl SimpleScheduler {
    pub fn new(clock: Clock, writer: Writer, troubles: Troubles) -> Self {
        Self {
            clock,
            writer,
            troubles,
            nodes: KnownObjects::new(),
            pods: KnownObjects::new(),
            places: BTreeMap::new(),
            siblings: BTreeMap::new(),
            queue: BTreeSet::new(),
            parked: BTreeSet::new(),
            unpark: Timestamp::MAX,
            cursor: String::new(),
            listed: (false, false),
        }
    }

    pub async fn run(mut self, mut inbox: mpsc::Receiver<SchedulerMessage>, cancel: CancellationToken) {
        loop {
            while let Ok(message) = inbox.try_recv() {
                self.hear(message);
            }
            if self.unpark <= self.clock.now() {
                self.unpark_all();
            }
            if self.listed == (true, true)
                && let Some((_, key)) = self.queue.pop_first()
            {
                tokio::select! {
                    () = cancel.cancelled() => return,
                    () = self.schedule(key) => {}
                }
                continue;
            }
            tokio::select! {
                () = cancel.cancelled() => return,
                message = inbox.recv() => match message {
                    None => return,
                    Some(message) => self.hear(message),
                },
                () = self.clock.sleep_until(self.unpark) => {}
            }
        }
    }

    fn hear(&mut self, message: SchedulerMessage) {
        match message {
            SchedulerMessage::Nodes(change) => {
                self.listed.0 |= matches!(change, FeedChange::Listed(_));
                for turn in self.nodes.absorb(change) {
                    self.on_node(&turn);
                }
            }
            SchedulerMessage::Pods(change) => {
                self.listed.1 |= matches!(change, FeedChange::Listed(_));
                for turn in self.pods.absorb(change) {
                    self.on_pod(&turn);
                }
            }
        }
    }

    fn on_node(&mut self, turn: &Turn<Node>) {
        let Some(node) = &turn.after else { return };
        let place = self.places.entry(node.name().to_owned()).or_default();
        place.offered = Amount::offered(node);
        let zone = node.metadata.labels.as_ref().and_then(|labels| labels.get("topology.kubernetes.io/zone"));
        place.zone = zone.cloned().unwrap_or_default();
        let hurdles = |node: &Node| (node.spec.unschedulable, node.spec.taints.clone());
        if turn.before.as_ref().is_none_or(|before| hurdles(before) != hurdles(node)) {
            self.room_was_made();
        }
    }

    fn on_pod(&mut self, turn: &Turn<Pod>) {
        let takes_room = |pod: &&Arc<Pod>| !pod.is_finished() && !pod.spec.node_name.is_empty();
        if let Some(pod) = turn.before.as_ref().filter(takes_room) {
            self.count(pod, Sign::Minus);
        }
        match turn.after.as_ref().filter(takes_room) {
            Some(pod) => self.count(pod, Sign::Plus),
            None if turn.before.as_ref().is_some_and(|pod| takes_room(&pod)) => self.room_was_made(),
            None => {}
        }
        let key = turn.key();
        if let Some(before) = &turn.before {
            self.queue.remove(&(Reverse(before.spec.priority), key.clone()));
        }
        match turn.after.as_ref().filter(|pod| pod.spec.node_name.is_empty() && pod.is_active()) {
            // A new version of a parked pod is mostly our own mark on it.
            Some(_) if self.parked.contains(&key) => {}
            Some(pod) => drop(self.queue.insert((Reverse(pod.spec.priority), key))),
            None => drop(self.parked.remove(&key)),
        }
    }

    fn count(&mut self, pod: &Pod, sign: Sign) {
        let node = &pod.spec.node_name;
        let place = self.places.entry(node.clone()).or_default();
        place.taken = place.taken.with(Amount::requested(pod), sign);
        // One on its way out is no reason to go elsewhere.
        let Some(owner) = pod.controller().filter(|_| !pod.is_deleted()) else { return };
        let here = self.siblings.entry(owner.uid.clone()).or_default().entry(node.clone()).or_insert(0);
        *here = match sign {
            Sign::Plus => *here + 1,
            Sign::Minus => here.saturating_sub(1),
        };
    }

    fn room_was_made(&mut self) {
        self.unpark = self.unpark.min(self.clock.now() + UNPARK_AFTER);
    }

    fn unpark_all(&mut self) {
        for key in std::mem::take(&mut self.parked) {
            if let Some(pod) = self.pods.object(&key) {
                self.queue.insert((Reverse(pod.spec.priority), key));
            }
        }
        self.unpark = Timestamp::MAX;
    }

    async fn schedule(&mut self, key: Key) {
        let Some(pod) = self.pods.object(&key).cloned() else { return };
        let done = match self.place(&pod) {
            Some(node) => self.bind(&pod, &key, node).await,
            None => self.park(&pod, &key).await,
        };
        match done {
            // Gone, or bound by somebody else: the watch tells.
            Ok(()) | Err(Refused::Gone | Refused::Conflict(_)) => {}
            Err(refused) => {
                self.troubles.tell(format!("scheduler, pod {}/{}", key.namespace, key.name), &refused);
                self.parked.insert(key);
                self.unpark = self.unpark.min(self.clock.now() + RETRY);
            }
        }
    }

    async fn bind(&mut self, pod: &Arc<Pod>, key: &Key, node: String) -> Result<(), Refused> {
        let binding = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": key.name, "namespace": key.namespace, "uid": pod.uid()},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        self.writer.create::<IgnoredAny>(&format!("{}/binding", path::pod(key)), &binding).await?;
        // Known at once, so that the next pod sees it; the watch tells the same later.
        let mut placed = (**pod).clone();
        placed.spec.node_name = node;
        let turn = self.pods.assume(Arc::new(placed));
        self.on_pod(&turn);
        Ok(())
    }

    /// Says on the pod that it has no place, once, and leaves it until there may be one.
    async fn park(&mut self, pod: &Pod, key: &Key) -> Result<(), Refused> {
        self.parked.insert(key.clone());
        self.unpark = self.unpark.min(self.clock.now() + UNPARK_EVERY);
        if pod.condition("PodScheduled").is_some_and(|condition| condition.reason == "Unschedulable") {
            return Ok(());
        }
        let message = format!("0/{} nodes are available: none fits.", self.nodes.len());
        let patch = json!({"metadata": {"uid": pod.uid()}, "status": {"conditions": [{
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message,
            "lastTransitionTime": self.clock.now().to_time(),
        }]}});
        let path = format!("{}/status", path::pod(key));
        self.writer.patch::<IgnoredAny>(&path, Patch::Strategic, &patch).await.map(drop)
    }

    /// Where the pod goes: the zone, then the node, with the fewest of its siblings, then the least loaded one.
    fn place(&mut self, pod: &Pod) -> Option<String> {
        if let Some(name) = pod.pinned_to() {
            let node = self.nodes.object(&node_key(name))?;
            return self.load_with(node, pod).map(|_| name.to_owned());
        }
        let here = pod.controller().and_then(|owner| self.siblings.get(&owner.uid));
        let mut zones: BTreeMap<&str, usize> = BTreeMap::new();
        for (node, count) in here.into_iter().flatten() {
            if let Some(place) = self.places.get(node) {
                *zones.entry(&place.zone).or_insert(0) += count;
            }
        }
        let after = node_key(&self.cursor);
        let fitting = self
            .nodes
            .after(&after)
            .filter_map(|(_, node)| Some((self.load_with(node, pod)?, node)))
            .take(COMPARED)
            .map(|(load, node)| {
                let zone = self.places.get(node.name()).map_or("", |place| place.zone.as_str());
                let siblings = here.and_then(|here| here.get(node.name())).copied().unwrap_or(0);
                ((zones.get(zone).copied().unwrap_or(0), siblings, load), node.name())
            });
        let (_, name) = fitting.min_by(|((za, sa, la), a), ((zb, sb, lb), b)| {
            (za, sa).cmp(&(zb, sb)).then(la.total_cmp(lb)).then(a.cmp(b))
        })?;
        let name = name.to_owned();
        if self.nodes.len() > COMPARED {
            self.cursor.clone_from(&name);
        }
        Some(name)
    }

    /// The share of the node's CPU and memory that would be taken with the pod on it; None where it may not go there.
    fn load_with(&self, node: &Node, pod: &Pod) -> Option<f64> {
        let bears = |taint| pod.spec.tolerations.iter().any(|toleration| toleration.tolerates(taint));
        let mut hard = node.spec.taints.iter().filter(|taint| taint.effect != "PreferNoSchedule");
        let labels = node.metadata.labels.as_ref();
        let has = |(key, value): (&String, &String)| labels.and_then(|labels| labels.get(key)) == Some(value);
        if (node.spec.unschedulable && pod.pinned_to().is_none())
            || !hard.all(bears)
            || !pod.spec.node_selector.iter().all(has)
        {
            return None;
        }
        let place = self.places.get(node.name())?;
        let with = place.taken.with(Amount::requested(pod), Sign::Plus);
        with.fits(place.offered).then(|| {
            with.cpu_milli as f64 / place.offered.cpu_milli as f64
                + with.memory_kib as f64 / place.offered.memory_kib as f64
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Plus,
    Minus,
}

impl Amount {
    fn offered(node: &Node) -> Self {
        let text = |resource: &str| node.status.allocatable.get(resource).map(String::as_str);
        // What cannot be read is not there.
        Self {
            cpu_milli: text("cpu").and_then(cpu_milli).unwrap_or(0),
            memory_kib: text("memory").and_then(memory_kib).unwrap_or(0),
            pods: text("pods").and_then(|text| text.parse().ok()).unwrap_or(0),
        }
    }

    fn requested(pod: &Pod) -> Self {
        let (cpu_milli, memory_kib) = pod.requests();
        Self { cpu_milli, memory_kib, pods: 1 }
    }

    fn with(self, other: Self, sign: Sign) -> Self {
        let factor = if sign == Sign::Plus { 1 } else { -1 };
        Self {
            cpu_milli: self.cpu_milli + factor * other.cpu_milli,
            memory_kib: self.memory_kib + factor * other.memory_kib,
            pods: self.pods + factor * other.pods,
        }
    }

    fn fits(self, offered: Self) -> bool {
        self.cpu_milli <= offered.cpu_milli
            && self.memory_kib <= offered.memory_kib
            && self.pods <= offered.pods
    }
}

fn node_key(name: &str) -> Key {
    Key { namespace: String::new(), name: name.to_owned() }
}
