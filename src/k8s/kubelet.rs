//! Reads a kubelet's measurements and configuration through the API server (`nodes/proxy`). If the measurements cannot
//! be read, for example without permission, metrics.k8s.io is read instead.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use futures::future;
use kube::Client;

use super::{
    decode::kubelet,
    watch::{CollectionQuery, get},
};
use kordon_clock::Clock;
use kordon_core::{
    cluster::{Key, Node, NodeName, ShutdownPeriods},
    plan::node_path,
    pressure::{EvictionSettings, NodeStats, PodUsage, SignalLevel, UsageMetric},
};
use kordon_time::Timestamp;

/// Timeout of each response from a kubelet or metrics.k8s.io.
const PATIENCE: Duration = Duration::from_secs(10);

/// Maximum size of a response in bytes. A node has a few hundred pods at most, so larger responses are an error.
const LONGEST: usize = 32 << 20;

/// The pages of a kubelet with its measurements and with its configuration.
const SUMMARY: &str = "stats/summary";
const CONFIGURATION: &str = "configz";

/// Data about one node. A part that could not be read has the reason in words.
#[derive(Clone, Debug)]
pub struct KubeletReport {
    /// The kubelet's measurements. With [`UsageSource::Metrics`], only the memory of the node and its pods.
    pub stats: Result<NodeStats, String>,
    pub source: UsageSource,
    /// The kubelet's eviction thresholds.
    pub settings: Result<EvictionSettings, String>,
    /// The kubelet's periods for graceful node shutdown.
    pub shutdown: Result<ShutdownPeriods, String>,
    /// Time at which all data about the node had been read.
    pub at: Timestamp,
}

impl KubeletReport {
    /// Creates the report for a kubelet from which nothing was read; `why` is the reason.
    pub fn unread(why: &str, at: Timestamp) -> Self {
        Self {
            stats: Err(why.into()),
            source: UsageSource::Kubelet,
            settings: Err(why.into()),
            shutdown: Err(why.into()),
            at,
        }
    }
}

/// Source of usage data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageSource {
    /// `/stats/summary`, whose measurements the kubelet itself uses to rank pods.
    Kubelet,
    /// metrics.k8s.io, from which only the memory is used.
    Metrics,
}

impl UsageSource {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Kubelet => "kubelet",
            Self::Metrics => "metrics.k8s.io",
        }
    }
}

/// Reads data from the kubelet of a node. `pods` are the pods of the node. If the kubelet's measurements cannot be
/// read, reads metrics.k8s.io for the node and these pods.
pub async fn read_kubelet(client: &Client, node: &Node, pods: &BTreeSet<Key>, clock: Clock) -> KubeletReport {
    let (stats, configuration) =
        future::join(read_page(client, &node.name, SUMMARY), read_page(client, &node.name, CONFIGURATION))
            .await;
    let configuration = configuration.as_deref().map_err(Clone::clone);
    let shutdown =
        configuration.clone().and_then(|json| kubelet::shutdown_periods(json).ok_or_else(no_answer));
    let settings = configuration.and_then(|json| kubelet::settings(json).ok_or_else(no_answer));
    let (stats, source) = match stats.and_then(|json| kubelet::summary(&json).ok_or_else(no_answer)) {
        Ok(stats) => (Ok(stats), UsageSource::Kubelet),
        Err(refused) => match read_metrics(client, node, pods).await {
            Ok(stats) => (Ok(stats), UsageSource::Metrics),
            Err(_) => (Err(refused), UsageSource::Kubelet),
        },
    };
    KubeletReport { stats, source, settings, shutdown, at: clock.now() }
}

/// Reads a kubelet's periods for graceful node shutdown.
///
/// # Errors
/// The configuration cannot be read; the reason in words.
pub async fn read_shutdown_periods(client: &Client, node: &NodeName) -> Result<ShutdownPeriods, String> {
    let json = read_page(client, node, CONFIGURATION).await?;
    kubelet::shutdown_periods(&json).ok_or_else(no_answer)
}

async fn read_page(client: &Client, node: &NodeName, page: &str) -> Result<Vec<u8>, String> {
    get(client, &format!("{}/proxy/{page}", node_path(node)), PATIENCE, LONGEST).await
}

fn no_answer() -> String {
    "the response is not one of a kubelet".into()
}

/// Reads the usage of all nodes (metrics.k8s.io).
///
/// # Errors
/// The usage cannot be read; the reason in words.
pub async fn read_node_metrics(client: &Client) -> Result<BTreeMap<NodeName, UsageMetric>, String> {
    let json = get(client, CollectionQuery::for_node_metrics(None).as_str(), PATIENCE, LONGEST).await?;
    kubelet::node_metrics(&json).ok_or_else(no_metrics)
}

/// Reads the memory of a node and of its pods. The pods are read by namespace, because metrics.k8s.io cannot select
/// pods by node.
async fn read_metrics(client: &Client, node: &Node, pods: &BTreeSet<Key>) -> Result<NodeStats, String> {
    let of_node = CollectionQuery::for_node_metrics(Some(&node.name));
    let json = get(client, of_node.as_str(), PATIENCE, LONGEST).await?;
    let metric = kubelet::node_metric(&json).ok_or_else(no_metrics)?;
    let capacity = node.memory_capacity_bytes;
    let memory = SignalLevel { available: capacity.saturating_sub(metric.memory_bytes), capacity };
    let mut usage = BTreeMap::new();
    for namespace in pods.iter().map(|pod| &pod.namespace).collect::<BTreeSet<_>>() {
        let of_pods = CollectionQuery::for_pod_metrics(namespace);
        let json = get(client, of_pods.as_str(), PATIENCE, LONGEST).await?;
        let read = kubelet::pod_metrics(&json).ok_or_else(no_metrics)?;
        let own = read.into_iter().filter(|(key, _)| pods.contains(key));
        usage.extend(own.map(|(key, metric)| {
            (key, PodUsage { memory_bytes: Some(metric.memory_bytes), ..PodUsage::default() })
        }));
    }
    Ok(NodeStats {
        measured: metric.measured,
        memory: (capacity > 0).then_some(memory),
        pods: usage,
        ..NodeStats::default()
    })
}

fn no_metrics() -> String {
    "the response is not one of metrics.k8s.io".into()
}
