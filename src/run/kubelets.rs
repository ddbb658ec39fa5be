//! Asks the kubelets of nodes that somebody looks at, or that report pressure, what they measure; no others. And
//! metrics.k8s.io while its columns are shown.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use tokio::{task::JoinSet, time::Instant};

use super::events::EventServer;
use crate::k8s::kubelet::{KubeletReport, read_kubelet, read_node_metrics};
use kordon_clock::Clock;
use kordon_core::{
    cluster::{Key, Node, NodeName},
    pressure::UsageMetric,
};

/// How often a kubelet is asked: it measures every ten seconds.
const AGAIN: Duration = Duration::from_secs(10);

/// How often metrics.k8s.io is asked: it has a new value about every 15 to 60 seconds.
const METRICS_AGAIN: Duration = Duration::from_secs(30);

/// The same while it does not answer: most clusters that have none will not get one now.
const WITHOUT_METRICS: Duration = Duration::from_secs(300);

/// How many kubelets are asked at the same time. The others wait for the next round.
const AT_ONCE: usize = 8;

/// A node whose kubelet is asked, and the pods on it.
#[derive(Clone, Debug)]
pub struct WantedKubelet {
    pub node: Arc<Node>,
    pub pods: BTreeSet<Key>,
}

/// What an answer is about.
#[derive(Debug)]
pub enum UsageAnswer {
    Kubelet(NodeName, Box<KubeletReport>),
    /// The usage of all nodes (metrics.k8s.io), or why it is not known.
    Nodes(Result<BTreeMap<NodeName, UsageMetric>, String>),
}

/// What somebody looks at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LookedAt {
    /// The node whose detail is shown.
    pub node: Option<NodeName>,
    /// Whether the table of nodes has the columns of live usage.
    pub usage: bool,
}

/// Asks kubelets and metrics.k8s.io, each at most once in a while.
pub struct KubeletReader {
    /// None where there is no server to ask.
    server: Option<EventServer>,
    clock: Clock,
    asking: JoinSet<UsageAnswer>,
    /// When each was asked last.
    asked: BTreeMap<NodeName, Instant>,
    metrics_due: Instant,
    looked_at: LookedAt,
    /// When to look for nodes to ask again.
    pub due: Instant,
}

impl KubeletReader {
    pub fn new(server: Option<EventServer>, clock: Clock) -> Self {
        let now = Instant::now();
        Self {
            server,
            clock,
            asking: JoinSet::new(),
            asked: BTreeMap::new(),
            metrics_due: now,
            looked_at: LookedAt::default(),
            due: now,
        }
    }

    /// Has what is newly looked at asked at once.
    pub fn look_at(&mut self, looked_at: LookedAt) {
        if self.looked_at != looked_at {
            self.due = Instant::now();
            self.looked_at = looked_at;
        }
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
                UsageAnswer::Kubelet(node.name.clone(), Box::new(report))
            });
        }
        if self.looked_at.usage && self.metrics_due <= now {
            self.metrics_due = now + METRICS_AGAIN;
            let client = client.clone();
            self.asking.spawn(async move { UsageAnswer::Nodes(read_node_metrics(&client).await) });
        }
    }

    /// The next answer; forever none while nobody is asked. May be dropped and awaited again.
    pub async fn next(&mut self) -> UsageAnswer {
        loop {
            match self.asking.join_next().await {
                Some(Ok(answer)) => {
                    if let UsageAnswer::Nodes(Err(_)) = answer {
                        self.metrics_due = Instant::now() + WITHOUT_METRICS;
                    }
                    return answer;
                }
                // It was cancelled: the program ends.
                Some(Err(_)) => {}
                None => return std::future::pending().await,
            }
        }
    }
}
