//! Asks the kubelets of nodes that somebody looks at, or that report pressure, what they measure; no others.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use tokio::{task::JoinSet, time::Instant};

use super::events::EventServer;
use crate::{
    clock::Clock,
    cluster::{Key, Node, NodeName},
    k8s::kubelet::{KubeletReport, read_kubelet},
};

/// How often a kubelet is asked: it measures every ten seconds.
const AGAIN: Duration = Duration::from_secs(10);

/// How many kubelets are asked at the same time. The others wait for the next round.
const AT_ONCE: usize = 8;

/// A node whose kubelet is asked, and the pods on it.
#[derive(Clone, Debug)]
pub struct WantedKubelet {
    pub node: Arc<Node>,
    pub pods: BTreeSet<Key>,
}

/// Asks kubelets, each at most once in a while.
pub struct KubeletReader {
    /// None where there is no server to ask.
    server: Option<EventServer>,
    clock: Clock,
    asking: JoinSet<(NodeName, KubeletReport)>,
    /// When each was asked last.
    asked: BTreeMap<NodeName, Instant>,
    /// The node that is looked at.
    shown: Option<NodeName>,
    /// When to look for nodes to ask again.
    pub due: Instant,
}

impl KubeletReader {
    pub fn new(server: Option<EventServer>, clock: Clock) -> Self {
        let (asking, asked) = (JoinSet::new(), BTreeMap::new());
        Self { server, clock, asking, asked, shown: None, due: Instant::now() }
    }

    /// Has a node that is newly looked at asked at once.
    pub fn look_at(&mut self, shown: Option<NodeName>) {
        if shown.is_some() && self.shown != shown {
            self.due = Instant::now();
        }
        self.shown = shown;
    }

    /// Asks those that were not asked recently.
    pub fn ask(&mut self, wanted: Vec<WantedKubelet>) {
        let now = Instant::now();
        self.due = now + AGAIN;
        self.asked.retain(|_, asked| now.duration_since(*asked) < AGAIN);
        let Some(EventServer(client)) = &self.server else { return };
        for WantedKubelet { node, pods } in wanted {
            if self.asking.len() >= AT_ONCE || self.asked.contains_key(&node.name) {
                continue;
            }
            self.asked.insert(node.name.clone(), now);
            let (client, clock) = (client.clone(), self.clock);
            self.asking.spawn(async move {
                let report = read_kubelet(&client, &node, &pods, clock).await;
                (node.name.clone(), report)
            });
        }
    }

    /// The next report; forever none while nobody is asked. May be dropped and awaited again.
    pub async fn next(&mut self) -> (NodeName, KubeletReport) {
        loop {
            match self.asking.join_next().await {
                Some(Ok(report)) => return report,
                // It was cancelled: the program ends.
                Some(Err(_)) => {}
                None => return std::future::pending().await,
            }
        }
    }
}
