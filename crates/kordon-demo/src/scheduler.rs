//! The scheduler of the embedded cluster: binds Pending pods to nodes that fit.
//!
//! It checks requests, taints, cordons and node selectors. Then it spreads pods over zones and nodes and prefers the
//! least loaded node. It has no preemption, and no affinity except that of DaemonSets.
//!
//! Tests use it, because it shares no code with kordon: a scheduler that placed pods by kordon's own rules would agree
//! with a wrong prediction. `kordon demo` uses kordon's placement instead ([`Scheduling::External`]), so that all
//! filters, preemption and the reasons of Pending pods can be seen there.
//!
//! [`Scheduling::External`]: crate::world::Scheduling::External

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
    errors::ErrorReporter,
    feed::{FeedChange, KnownObjects, ObjectChange},
    objects::{Key, Node, Object, Pod, cpu_milli, memory_kib},
    writer::{Patch, WriteError, Writer, path},
};
use kordon_clock::Clock;
use kordon_time::{Span, Timestamp};

/// Binds pods one at a time, by priority.
pub struct SimpleScheduler {
    clock: Clock,
    writer: Writer,
    errors: ErrorReporter,
    nodes: KnownObjects<Node>,
    pods: KnownObjects<Pod>,
    usage: BTreeMap<String, NodeUsage>,
    /// Number of pods of each controller on each node, by the controller's uid and the node's name.
    siblings: BTreeMap<String, BTreeMap<String, usize>>,
    /// Pods that wait to be bound, by priority.
    queue: BTreeSet<(Reverse<i64>, Key)>,
    /// Pods that fit on no node. They are tried again when capacity may have become free.
    unschedulable: BTreeSet<Key>,
    /// Time of the next retry of unschedulable pods.
    retry_at: Timestamp,
    /// Name of the node after which the next search starts. In a large cluster, one search does not check every node.
    cursor: String,
    listed: (bool, bool),
}

/// A message to the scheduler.
#[derive(Debug)]
pub enum SchedulerMessage {
    Nodes(FeedChange<Node>),
    Pods(FeedChange<Pod>),
}

/// Allocatable resources of a node, and the requests of its pods.
#[derive(Clone, Debug, Default)]
struct NodeUsage {
    zone: String,
    allocatable: Amount,
    requested: Amount,
}

#[derive(Clone, Copy, Debug, Default)]
struct Amount {
    cpu_milli: i64,
    memory_kib: i64,
    pods: i64,
}

/// Delay of a retry after a change. Several changes within this time share a retry.
const RETRY_AFTER_CHANGE: Span = Span::from_secs(1);
/// Interval between retries without a change.
const RETRY_INTERVAL: Span = Span::from_secs(30);
/// Delay before a failed binding is retried.
const RETRY_AFTER_ERROR: Span = Span::from_secs(1);
/// Maximum number of nodes that one search compares.
const MAX_CANDIDATES: usize = 100;

impl SimpleScheduler {
    pub fn new(clock: Clock, writer: Writer, errors: ErrorReporter) -> Self {
        Self {
            clock,
            writer,
            errors,
            nodes: KnownObjects::new(),
            pods: KnownObjects::new(),
            usage: BTreeMap::new(),
            siblings: BTreeMap::new(),
            queue: BTreeSet::new(),
            unschedulable: BTreeSet::new(),
            retry_at: Timestamp::MAX,
            cursor: String::new(),
            listed: (false, false),
        }
    }

    pub async fn run(mut self, mut inbox: mpsc::Receiver<SchedulerMessage>, cancel: CancellationToken) {
        loop {
            while let Ok(message) = inbox.try_recv() {
                self.on_message(message);
            }
            if self.retry_at <= self.clock.now() {
                self.requeue_unschedulable();
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
                    Some(message) => self.on_message(message),
                },
                () = self.clock.sleep_until(self.retry_at) => {}
            }
        }
    }

    fn on_message(&mut self, message: SchedulerMessage) {
        match message {
            SchedulerMessage::Nodes(change) => {
                self.listed.0 |= matches!(change, FeedChange::Listed(_));
                for change in self.nodes.apply(change) {
                    self.on_node(&change);
                }
            }
            SchedulerMessage::Pods(change) => {
                self.listed.1 |= matches!(change, FeedChange::Listed(_));
                for change in self.pods.apply(change) {
                    self.on_pod(&change);
                }
            }
        }
    }

    fn on_node(&mut self, change: &ObjectChange<Node>) {
        let Some(node) = &change.after else { return };
        let usage = self.usage.entry(node.name().to_owned()).or_default();
        usage.allocatable = Amount::allocatable(node);
        let zone = node.metadata.labels.as_ref().and_then(|labels| labels.get("topology.kubernetes.io/zone"));
        usage.zone = zone.cloned().unwrap_or_default();
        let constraints = |node: &Node| (node.spec.unschedulable, node.spec.taints.clone());
        if change.before.as_ref().is_none_or(|before| constraints(before) != constraints(node)) {
            self.on_capacity_freed();
        }
    }

    fn on_pod(&mut self, change: &ObjectChange<Pod>) {
        let uses_resources = |pod: &&Arc<Pod>| !pod.is_finished() && !pod.spec.node_name.is_empty();
        if let Some(pod) = change.before.as_ref().filter(uses_resources) {
            self.count(pod, Sign::Minus);
        }
        match change.after.as_ref().filter(uses_resources) {
            Some(pod) => self.count(pod, Sign::Plus),
            None if change.before.as_ref().is_some_and(|pod| uses_resources(&pod)) => {
                self.on_capacity_freed()
            }
            None => {}
        }
        let key = change.key();
        if let Some(before) = &change.before {
            self.queue.remove(&(Reverse(before.spec.priority), key.clone()));
        }
        match change.after.as_ref().filter(|pod| pod.spec.node_name.is_empty() && pod.is_active()) {
            // The pod is already known to be unschedulable. Its change is usually the condition that this scheduler
            // wrote.
            Some(_) if self.unschedulable.contains(&key) => {}
            Some(pod) => drop(self.queue.insert((Reverse(pod.spec.priority), key))),
            None => drop(self.unschedulable.remove(&key)),
        }
    }

    fn count(&mut self, pod: &Pod, sign: Sign) {
        let node = &pod.spec.node_name;
        let usage = self.usage.entry(node.clone()).or_default();
        usage.requested = usage.requested.with(Amount::requested(pod), sign);
        // Terminating pods do not count when pods are spread.
        let Some(owner) = pod.controller().filter(|_| !pod.is_deleted()) else { return };
        let here = self.siblings.entry(owner.uid.clone()).or_default().entry(node.clone()).or_insert(0);
        *here = match sign {
            Sign::Plus => *here + 1,
            Sign::Minus => here.saturating_sub(1),
        };
    }

    fn on_capacity_freed(&mut self) {
        self.retry_at = self.retry_at.min(self.clock.now() + RETRY_AFTER_CHANGE);
    }

    fn requeue_unschedulable(&mut self) {
        for key in std::mem::take(&mut self.unschedulable) {
            if let Some(pod) = self.pods.object(&key) {
                self.queue.insert((Reverse(pod.spec.priority), key));
            }
        }
        self.retry_at = Timestamp::MAX;
    }

    async fn schedule(&mut self, key: Key) {
        let Some(pod) = self.pods.object(&key).cloned() else { return };
        let done = match self.choose_node(&pod) {
            Some(node) => self.bind(&pod, &key, node).await,
            None => self.mark_unschedulable(&pod, &key).await,
        };
        match done {
            // The pod is gone, or another client has bound it. The watch will report this.
            Ok(()) | Err(WriteError::NotFound | WriteError::Conflict(_)) => {}
            Err(error) => {
                self.errors.report(format!("scheduler, pod {}/{}", key.namespace, key.name), &error);
                self.unschedulable.insert(key);
                self.retry_at = self.retry_at.min(self.clock.now() + RETRY_AFTER_ERROR);
            }
        }
    }

    async fn bind(&mut self, pod: &Arc<Pod>, key: &Key, node: String) -> Result<(), WriteError> {
        let binding = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": key.name, "namespace": key.namespace, "uid": pod.uid()},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        self.writer.create::<IgnoredAny>(&format!("{}/binding", path::pod(key)), &binding).await?;
        // The binding is recorded immediately, so that the search for the next pod takes it into account. The watch
        // reports it later.
        let mut bound = (**pod).clone();
        bound.spec.node_name = node;
        let change = self.pods.assume(Arc::new(bound));
        self.on_pod(&change);
        Ok(())
    }

    /// Sets the condition PodScheduled=False if it is not set, and keeps the pod until capacity may have become free.
    async fn mark_unschedulable(&mut self, pod: &Pod, key: &Key) -> Result<(), WriteError> {
        self.unschedulable.insert(key.clone());
        self.retry_at = self.retry_at.min(self.clock.now() + RETRY_INTERVAL);
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

    /// Chooses a node: first the zone and then the node with the fewest pods of the same controller. Among equal nodes,
    /// the least loaded one.
    fn choose_node(&mut self, pod: &Pod) -> Option<String> {
        if let Some(name) = pod.pinned_to() {
            let node = self.nodes.object(&node_key(name))?;
            return self.load_with(node, pod).map(|_| name.to_owned());
        }
        let here = pod.controller().and_then(|owner| self.siblings.get(&owner.uid));
        let mut zones: BTreeMap<&str, usize> = BTreeMap::new();
        for (node, count) in here.into_iter().flatten() {
            if let Some(usage) = self.usage.get(node) {
                *zones.entry(&usage.zone).or_insert(0) += count;
            }
        }
        let after = node_key(&self.cursor);
        let fitting = self
            .nodes
            .after(&after)
            .filter_map(|(_, node)| Some((self.load_with(node, pod)?, node)))
            .take(MAX_CANDIDATES)
            .map(|(load, node)| {
                let zone = self.usage.get(node.name()).map_or("", |usage| usage.zone.as_str());
                let siblings = here.and_then(|here| here.get(node.name())).copied().unwrap_or(0);
                ((zones.get(zone).copied().unwrap_or(0), siblings, load), node.name())
            });
        let (_, name) = fitting.min_by(|((za, sa, la), a), ((zb, sb, lb), b)| {
            (za, sa).cmp(&(zb, sb)).then(la.total_cmp(lb)).then(a.cmp(b))
        })?;
        let name = name.to_owned();
        if self.nodes.len() > MAX_CANDIDATES {
            self.cursor.clone_from(&name);
        }
        Some(name)
    }

    /// Returns the fraction of the node's CPU and memory that is requested once the pod is on the node. None if the pod
    /// does not fit.
    fn load_with(&self, node: &Node, pod: &Pod) -> Option<f64> {
        let is_tolerated = |taint| pod.spec.tolerations.iter().any(|toleration| toleration.tolerates(taint));
        let mut hard = node.spec.taints.iter().filter(|taint| taint.effect != "PreferNoSchedule");
        let labels = node.metadata.labels.as_ref();
        let has = |(key, value): (&String, &String)| labels.and_then(|labels| labels.get(key)) == Some(value);
        if (node.spec.unschedulable && pod.pinned_to().is_none())
            || !hard.all(is_tolerated)
            || !pod.spec.node_selector.iter().all(has)
        {
            return None;
        }
        let usage = self.usage.get(node.name())?;
        let with = usage.requested.with(Amount::requested(pod), Sign::Plus);
        with.fits(usage.allocatable).then(|| {
            with.cpu_milli as f64 / usage.allocatable.cpu_milli as f64
                + with.memory_kib as f64 / usage.allocatable.memory_kib as f64
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Plus,
    Minus,
}

impl Amount {
    fn allocatable(node: &Node) -> Self {
        let text = |resource: &str| node.status.allocatable.get(resource).map(String::as_str);
        // An invalid quantity counts as zero.
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

    fn fits(self, allocatable: Self) -> bool {
        self.cpu_milli <= allocatable.cpu_milli
            && self.memory_kib <= allocatable.memory_kib
            && self.pods <= allocatable.pods
    }
}

fn node_key(name: &str) -> Key {
    Key { namespace: String::new(), name: name.to_owned() }
}
