//! Headroom: whether the cluster can lose any one node, or any one zone, without a pod staying Pending.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{self, Display},
    sync::Arc,
};

use super::{
    failover::{self, failover},
    owner::{self, Recreation},
    placing_environment::{self, PlacingEnvironment},
    words::counted,
};
use crate::{
    cluster::{Cluster, NodeName, Pod, ZoneKey},
    placement::{SchedulingRequest, Snapshot},
    time::Timestamp,
};

/// What a cluster can lose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headroom {
    /// The losses of single Ready nodes.
    pub nodes: HeadroomLosses<NodeName>,
    /// The losses of single zones with Ready nodes; empty if there is only one zone.
    pub zones: HeadroomLosses<ZoneKey>,
}

/// The losses of several things, one at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeadroomLosses<T> {
    /// How many were tried.
    pub tried: usize,
    /// How many of them leave pods Pending.
    pub short: usize,
    /// The one that leaves most pods Pending; none if all fit.
    pub worst: Option<HeadroomLoss<T>>,
}

/// The loss of one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadroomLoss<T> {
    pub of: T,
    /// Pods that stay Pending: pods of what is lost, and pods that these preempt.
    pub pending: usize,
    /// Pods that are recreated elsewhere.
    pub pods: usize,
}

impl<T> HeadroomLosses<T> {
    fn record(&mut self, loss: HeadroomLoss<T>) {
        self.tried += 1;
        if loss.pending > 0 {
            self.short += 1;
            if self.worst.as_ref().is_none_or(|worst| loss.pending > worst.pending) {
                self.worst = Some(loss);
            }
        }
    }
}

impl<T: Display> HeadroomLosses<T> {
    /// `x`, `zone b`, `any of 3 zones`, `x (worst of 2 in 9 nodes)`, and how many pods stay Pending; none if all fit.
    fn worst_case(&self, prefix: &str, plural: &str) -> Option<(String, usize)> {
        let HeadroomLoss { of, pending, .. } = self.worst.as_ref()?;
        let subject = match self.short {
            0 | 1 => format!("{prefix}{of}"),
            short if short == self.tried => format!("any of {short} {plural}"),
            short => format!("{prefix}{of} (worst of {short} in {} {plural})", self.tried),
        };
        Some((subject, *pending))
    }
}

impl Headroom {
    /// Whether no loss leaves a pod Pending.
    pub fn is_enough(&self) -> bool {
        self.nodes.worst.is_none() && self.zones.worst.is_none()
    }
}

/// `N-1 ok: nodes, zones`, `N-1 ok: nodes; losing zone b leaves 1 pod Pending`,
/// `N-1: losing x leaves 4 pods Pending; any of 3 zones: 10`. Empty if nothing was tried.
impl Display for Headroom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (nodes, zones) = (self.nodes.worst_case("", "nodes"), self.zones.worst_case("zone ", "zones"));
        let kinds =
            [("nodes", self.nodes.tried, nodes.is_none()), ("zones", self.zones.tried, zones.is_none())];
        let ok = kinds.iter().filter(|(_, tried, is_ok)| *tried > 0 && *is_ok);
        let ok: Vec<&str> = ok.map(|(kind, ..)| *kind).collect();
        let mut worst = nodes.into_iter().chain(zones);
        let first = worst.next().map(|(subject, pending)| {
            format!("losing {subject} leaves {} Pending", counted(pending, "pod", "pods"))
        });
        match (ok.is_empty(), first) {
            (true, None) => return Ok(()),
            (true, Some(first)) => write!(f, "N-1: {first}")?,
            (false, None) => write!(f, "N-1 ok: {}", ok.join(", "))?,
            (false, Some(first)) => write!(f, "N-1 ok: {}; {first}", ok.join(", "))?,
        }
        worst.try_for_each(|(subject, pending)| write!(f, "; {subject}: {pending}"))
    }
}

/// Loses each Ready node and each zone in turn: how many pods stay Pending once all pods of what is lost are deleted
/// ([`failover()`]). The snapshot is of this cluster. None if `continues`, which is called before each loss, returns
/// false.
pub fn headroom(
    cluster: &Cluster,
    snapshot: &Snapshot,
    mut continues: impl FnMut() -> bool,
) -> Option<Headroom> {
    let mut zones: BTreeMap<ZoneKey, BTreeSet<NodeName>> = BTreeMap::new();
    let mut headroom = Headroom::default();
    for node in cluster.nodes().iter().filter(|node| node.is_ready()) {
        if !continues() {
            return None;
        }
        zones.entry(node.zone()).or_default().insert(node.name.clone());
        headroom.nodes.record(lose(cluster, snapshot, &[node.name.clone()].into(), node.name.clone()));
    }
    if zones.len() > 1 {
        for (zone, nodes) in zones {
            if !continues() {
                return None;
            }
            headroom.zones.record(lose(cluster, snapshot, &nodes, zone));
        }
    }
    Some(headroom)
}

/// Places the pods of some nodes elsewhere, unless it is plain that all find a node.
fn lose<T>(cluster: &Cluster, snapshot: &Snapshot, nodes: &BTreeSet<NodeName>, of: T) -> HeadroomLoss<T> {
    let pods = failover::pods_of(cluster, nodes);
    let is_recreated = |pod: &&Arc<Pod>| {
        matches!(owner::recreation(cluster, pod), Recreation::Immediately | Recreation::WhenGone)
    };
    let nameless = |pod: &Arc<Pod>| SchedulingRequest {
        name: Default::default(),
        ..placing_environment::replacement(pod, cluster)
    };
    let requests: Vec<SchedulingRequest> = pods.iter().filter(is_recreated).map(nameless).collect();
    if requests.is_empty() {
        return HeadroomLoss { of, pending: 0, pods: 0 };
    }
    let mut left = snapshot.clone();
    nodes.iter().for_each(|node| left.remove_node(node));
    if left.fits_trivially(&requests) {
        return HeadroomLoss { of, pending: 0, pods: requests.len() };
    }
    let environment = PlacingEnvironment::for_outcomes(cluster, left, Timestamp::EPOCH);
    let failover = failover(cluster, &pods, nodes, environment);
    HeadroomLoss { of, pending: failover.pending(), pods: failover.recreated() }
}
