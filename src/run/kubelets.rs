//! Reads measurements from the kubelets of nodes that the user looks at, that report pressure or that are shutting down.
//! Reads metrics.k8s.io while its columns are shown.

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
    cluster::{Cluster, Key, Node, NodeName},
    pressure::UsageMetric,
};

/// Interval between requests to a kubelet, which measures every ten seconds.
const AGAIN: Duration = Duration::from_secs(10);

/// Interval between requests to metrics.k8s.io, which has a new value about every 15 to 60 seconds.
const METRICS_AGAIN: Duration = Duration::from_secs(30);

/// Interval between requests to metrics.k8s.io while it does not answer. It is long, because most clusters without
/// metrics.k8s.io do not install it soon.
const WITHOUT_METRICS: Duration = Duration::from_secs(300);

/// Maximum number of requests in flight. Further kubelets wait for the next round.
const AT_ONCE: usize = 8;

/// A node whose kubelet is asked, and the pods on it.
#[derive(Clone, Debug)]
pub struct WantedKubelet {
    pub node: Arc<Node>,
    pub pods: BTreeSet<Key>,
}

impl WantedKubelet {
    /// Returns the kubelets of these nodes. Leaves out nodes that do not exist.
    pub fn of_nodes(nodes: impl IntoIterator<Item = NodeName>, cluster: &Cluster) -> Vec<Self> {
        let wanted = |name: NodeName| {
            let node = cluster.node(&name)?.clone();
            let pods = cluster.pods_on(&name).map(|pod| pod.key.clone()).collect();
            Some(Self { node, pods })
        };
        nodes.into_iter().filter_map(wanted).collect()
    }
}

/// An answer from a kubelet or from metrics.k8s.io.
#[derive(Debug)]
pub enum UsageAnswer {
    Kubelet(NodeName, Box<KubeletReport>),
    /// The usage of all nodes (metrics.k8s.io), or the reason why it is not known.
    Nodes(Result<BTreeMap<NodeName, UsageMetric>, String>),
}

/// Measurements that the dashboard shows at the moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LookedAt {
    /// The node whose detail is shown.
    pub node: Option<NodeName>,
    /// Whether the table of nodes has the columns of live usage.
    pub usage: bool,
}

/// Sends requests to kubelets and metrics.k8s.io. Each of them gets at most one request per interval.
pub struct KubeletReader {
    /// API server through which kubelets are asked; none if there is no API server.
    server: Option<EventServer>,
    clock: Clock,
    asking: JoinSet<UsageAnswer>,
    /// Time of the last request to the kubelet of each node.
    asked: BTreeMap<NodeName, Instant>,
    metrics_due: Instant,
    looked_at: LookedAt,
    /// Time at which [`KubeletReader::ask`] should be called next.
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

    /// Sets the measurements that the dashboard shows. If the measurements have changed, the next requests are due at
    /// once.
    pub fn look_at(&mut self, looked_at: LookedAt) {
        if self.looked_at != looked_at {
            self.due = Instant::now();
            self.looked_at = looked_at;
        }
    }

    /// Sends requests to the kubelets in `wanted` that got no request within the interval, and to metrics.k8s.io if it
    /// is due.
    pub fn ask(&mut self, wanted: Vec<WantedKubelet>) {
        let now = Instant::now();
        self.due = now + AGAIN;
        self.asked.retain(|_, asked| now.duration_since(*asked) < AGAIN);
        let Some(EventServer { client, .. }) = &self.server else { return };
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

    /// Waits for the next answer of a kubelet or of metrics.k8s.io. Waits forever if no request is in flight. May be
    /// dropped and awaited again.
    pub async fn next(&mut self) -> UsageAnswer {
        loop {
            match self.asking.join_next().await {
                Some(Ok(answer)) => {
                    if let UsageAnswer::Nodes(Err(_)) = answer {
                        self.metrics_due = Instant::now() + WITHOUT_METRICS;
                    }
                    return answer;
                }
                // The task of a request was cancelled because the program ends.
                Some(Err(_)) => {}
                None => return std::future::pending().await,
            }
        }
    }
}
