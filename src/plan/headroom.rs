//! Whether the cluster can lose any one node, or any one zone, now: whether all that would come back finds a place.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use super::{
    owner::{self, Recreation},
    placing_environment,
};
use crate::{
    cluster::{Cluster, NodeName, Pod, ZoneKey},
    placement::{SchedulingRequest, Snapshot},
};

/// What a cluster can lose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headroom {
    /// Over the nodes that are Ready.
    pub nodes: HeadroomLosses<NodeName>,
    /// Over the zones with nodes that are Ready; empty where there is but one.
    pub zones: HeadroomLosses<ZoneKey>,
}

/// What the loss of each of several things would leave without a place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeadroomLosses<T> {
    /// How many were tried.
    pub tried: usize,
    /// How many of them cannot be lost without a pod staying Pending.
    pub short: usize,
    /// The one whose loss leaves most pods Pending; none where any can be lost.
    pub worst: Option<HeadroomLoss<T>>,
}

/// What the loss of one thing leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadroomLoss<T> {
    pub of: T,
    /// Pods whose replacements find no node. They might displace lesser pods, which then stay Pending instead.
    pub pending: usize,
    /// Pods that would come back elsewhere.
    pub pods: usize,
}

impl<T> HeadroomLosses<T> {
    fn note(&mut self, loss: HeadroomLoss<T>) {
        self.tried += 1;
        if loss.pending > 0 {
            self.short += 1;
            if self.worst.as_ref().is_none_or(|worst| loss.pending > worst.pending) {
                self.worst = Some(loss);
            }
        }
    }
}

impl<T: fmt::Display> HeadroomLosses<T> {
    /// `any node can go`, or which cannot; none where nothing was tried.
    fn words(&self, one: &str) -> Option<String> {
        let Some(HeadroomLoss { of, pending, pods }) = &self.worst else {
            return (self.tried > 0).then(|| format!("any {one} can go"));
        };
        let others = match self.short {
            0 | 1 => String::new(),
            short => format!("; {short} of {} {one}s cannot", self.tried),
        };
        Some(format!("{one} {of} cannot go: {pending} of {pods} pods would stay Pending{others}"))
    }
}

impl<T: fmt::Display> HeadroomLosses<T> {
    /// `any node`, or which not; none where nothing was tried.
    fn in_short(&self, one: &str) -> Option<String> {
        let Some(HeadroomLoss { of, pending, .. }) = &self.worst else {
            return (self.tried > 0).then(|| format!("any {one}"));
        };
        Some(match self.short {
            0 | 1 => format!("not {one} {of} ({pending} Pending)"),
            short => format!("not {short} of {} {one}s ({of}: {pending} Pending)", self.tried),
        })
    }
}

impl Headroom {
    /// `any node, not zone b (12 Pending)`: what can be lost, for a narrow place.
    pub fn in_short(&self) -> String {
        let words = self.nodes.in_short("node").into_iter().chain(self.zones.in_short("zone"));
        words.collect::<Vec<_>>().join(", ")
    }

    /// Whether any node and any zone can be lost.
    pub fn is_enough(&self) -> bool {
        self.nodes.worst.is_none() && self.zones.worst.is_none()
    }
}

impl fmt::Display for Headroom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> =
            self.nodes.words("node").into_iter().chain(self.zones.words("zone")).collect();
        f.write_str(&words.join(", "))
    }
}

/// Tries to lose each node and each zone in turn, and places what they had elsewhere, pods of high priority first.
/// The snapshot is of this cluster. None where `go_on`, which is asked before each loss, said no.
///
/// Pods of StatefulSets count, although on a node that merely falls silent they wait for the old ones to go.
pub fn headroom(cluster: &Cluster, snapshot: &Snapshot, mut go_on: impl FnMut() -> bool) -> Option<Headroom> {
    let mut zones: BTreeMap<ZoneKey, BTreeSet<NodeName>> = BTreeMap::new();
    let mut headroom = Headroom::default();
    for node in cluster.nodes().iter().filter(|node| node.is_ready()) {
        if !go_on() {
            return None;
        }
        zones.entry(node.zone()).or_default().insert(node.name.clone());
        headroom.nodes.note(lose(cluster, snapshot, &[node.name.clone()].into(), node.name.clone()));
    }
    if zones.len() > 1 {
        for (zone, nodes) in zones {
            if !go_on() {
                return None;
            }
            headroom.zones.note(lose(cluster, snapshot, &nodes, zone));
        }
    }
    Some(headroom)
}

/// Places the pods of some nodes elsewhere.
fn lose<T>(cluster: &Cluster, snapshot: &Snapshot, nodes: &BTreeSet<NodeName>, of: T) -> HeadroomLoss<T> {
    let recreation = |pod: &&Arc<Pod>| {
        pod.termination.is_none()
            && matches!(owner::recreation(cluster, pod), Recreation::AtOnce(_) | Recreation::WhenGone(_))
    };
    let mut homeless: Vec<Arc<Pod>> =
        nodes.iter().flat_map(|node| snapshot.pods_on(node)).filter(recreation).cloned().collect();
    if homeless.is_empty() {
        return HeadroomLoss { of, pending: 0, pods: 0 };
    }
    homeless.sort_by_key(|pod| Reverse(pod.priority));
    let nameless = |pod| SchedulingRequest {
        name: Default::default(),
        ..placing_environment::replacement(pod, cluster)
    };
    let requests: Vec<SchedulingRequest> = homeless.iter().map(|pod| nameless(pod)).collect();
    let mut left = snapshot.clone();
    nodes.iter().for_each(|node| left.remove_node(node));
    if left.fits_trivially(&requests) {
        return HeadroomLoss { of, pending: 0, pods: homeless.len() };
    }
    // Of those that only ask for room, what finds none will not find it later.
    let mut in_vain: Vec<SchedulingRequest> = Vec::new();
    let mut pending = 0;
    for (pod, request) in homeless.iter().zip(requests) {
        if in_vain.contains(&request) {
            pending += 1;
            continue;
        }
        match left.choose(&request) {
            Some(node) => _ = left.add(pod.clone(), &node),
            // Another scheduler places it, nobody knows where.
            None if request.obstacle().is_some() => {}
            None => {
                pending += 1;
                if request.spec.ignores_other_pods() {
                    in_vain.push(request);
                }
            }
        }
    }
    HeadroomLoss { of, pending, pods: homeless.len() }
}
