//! The scheduler of the embedded cluster: binds waiting pods to nodes that have room for them and that they bear.
//!
//! A small one: requests, taints, cordons, node selectors, and the least loaded node wins.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde::de::IgnoredAny;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    feed::{Change, Known, Turn},
    objects::{Key, Node, Pod, cpu_milli, memory_kib},
    troubles::Troubles,
    writer::{Refused, Writer, path},
};
use crate::{clock::Clock, time::Span};

/// Binds pods, one after the other.
pub struct Scheduler {
    clock: Clock,
    writer: Writer,
    troubles: Troubles,
    nodes: Known<Node>,
    pods: Known<Pod>,
    loads: BTreeMap<String, Load>,
    waiting: BTreeSet<Key>,
    listed: (bool, bool),
}

/// What the scheduler hears.
#[derive(Debug)]
pub enum Message {
    Nodes(Change<Node>),
    Pods(Change<Pod>),
}

/// What the pods on a node request together.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    cpu_milli: i64,
    memory_kib: i64,
    pods: i64,
}

/// How soon pods that found no place are looked at again.
const RETRY: Span = Span::from_secs(5);

impl Scheduler {
    pub fn new(clock: Clock, writer: Writer, troubles: Troubles) -> Self {
        Self {
            clock,
            writer,
            troubles,
            nodes: Known::new(),
            pods: Known::new(),
            loads: BTreeMap::new(),
            waiting: BTreeSet::new(),
            listed: (false, false),
        }
    }

    pub async fn run(mut self, mut inbox: mpsc::Receiver<Message>, cancel: CancellationToken) {
        loop {
            while let Ok(message) = inbox.try_recv() {
                self.hear(message);
            }
            if self.listed == (true, true) {
                tokio::select! {
                    () = cancel.cancelled() => return,
                    () = self.bind_all() => {}
                }
            }
            let idle = self.waiting.is_empty();
            tokio::select! {
                () = cancel.cancelled() => return,
                message = inbox.recv() => match message {
                    None => return,
                    Some(message) => self.hear(message),
                },
                () = self.clock.sleep(RETRY), if !idle => {}
            }
        }
    }

    fn hear(&mut self, message: Message) {
        match message {
            Message::Nodes(change) => {
                self.listed.0 |= matches!(change, Change::Listed(_));
                self.nodes.absorb(change);
            }
            Message::Pods(change) => {
                self.listed.1 |= matches!(change, Change::Listed(_));
                for turn in self.pods.absorb(change) {
                    self.on_pod(&turn);
                }
            }
        }
    }

    fn on_pod(&mut self, turn: &Turn<Pod>) {
        for (pod, sign) in [(&turn.before, -1), (&turn.after, 1)] {
            let Some(pod) = pod.as_ref().filter(|pod| !pod.is_finished() && !pod.spec.node_name.is_empty())
            else {
                continue;
            };
            let (cpu, memory) = pod.requests();
            let load = self.loads.entry(pod.spec.node_name.clone()).or_default();
            load.cpu_milli += sign * cpu;
            load.memory_kib += sign * memory;
            load.pods += sign;
        }
        let waits = turn.after.as_ref().is_some_and(|pod| pod.spec.node_name.is_empty() && pod.is_active());
        if waits {
            self.waiting.insert(turn.key());
        } else {
            self.waiting.remove(&turn.key());
        }
    }

    async fn bind_all(&mut self) {
        for key in self.waiting.clone() {
            let Some(pod) = self.pods.object(&key).cloned() else {
                self.waiting.remove(&key);
                continue;
            };
            let Some(node) = self.place(&pod) else { continue };
            let binding = json!({
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": key.name, "namespace": key.namespace},
                "target": {"apiVersion": "v1", "kind": "Node", "name": node},
            });
            let bound =
                self.writer.create::<IgnoredAny>(&format!("{}/binding", path::pod(&key)), &binding).await;
            match bound {
                Ok(_) => {
                    // Known at once, so that the next pod sees it; the watch tells the same later.
                    let mut placed = (*pod).clone();
                    placed.spec.node_name = node;
                    let turn = self.pods.assume(Arc::new(placed));
                    self.on_pod(&turn);
                }
                Err(Refused::Gone | Refused::Conflict(_)) => drop(self.waiting.remove(&key)),
                Err(refused) => {
                    self.troubles.tell(format!("scheduler, pod {}/{}", key.namespace, key.name), &refused)
                }
            }
        }
    }

    /// The least loaded of the nodes that would do.
    fn place(&self, pod: &Pod) -> Option<String> {
        let fitting =
            self.nodes.all().filter_map(|(_, node)| Some((self.load_with(node, pod)?, node.name())));
        fitting
            .min_by(|(a, left), (b, right)| a.total_cmp(b).then(left.cmp(right)))
            .map(|(_, name)| name.to_owned())
    }

    /// The share of the node's CPU and memory that would be taken with the pod on it; None where it may not go there.
    fn load_with(&self, node: &Node, pod: &Pod) -> Option<f64> {
        let bears = |taint| pod.spec.tolerations.iter().any(|toleration| toleration.tolerates(taint));
        let hard = |effect: &str| effect != "PreferNoSchedule";
        let mut taints = node.spec.taints.iter().filter(|taint| hard(&taint.effect));
        let pinned_elsewhere = pod.pinned_to().is_some_and(|name| name != node.name());
        let labels = node.metadata.labels.as_ref();
        let has =
            |(key, value): (&String, &String)| labels.is_some_and(|labels| labels.get(key) == Some(value));
        if pinned_elsewhere
            || (node.spec.unschedulable && pod.pinned_to().is_none())
            || !taints.all(bears)
            || !pod.spec.node_selector.iter().all(has)
        {
            return None;
        }
        let offered = |resource: &str| node.status.allocatable.get(resource).map(String::as_str);
        let (cpu, memory) = pod.requests();
        let load = self.loads.get(node.name()).copied().unwrap_or_default();
        let all_cpu = offered("cpu").and_then(cpu_milli)?;
        let all_memory = offered("memory").and_then(memory_kib)?;
        let all_pods: i64 = offered("pods").and_then(|text| text.parse().ok())?;
        let (cpu, memory) = (load.cpu_milli + cpu, load.memory_kib + memory);
        let fits = cpu <= all_cpu && memory <= all_memory && load.pods < all_pods;
        fits.then(|| cpu as f64 / all_cpu as f64 + memory as f64 / all_memory as f64)
    }
}
