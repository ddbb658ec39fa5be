//! Whether pods fit trivially: whether each finds a node wherever the others are placed.

use super::{
    affinity_classes::NamespaceLabels,
    filter::{Filters, effective_selector},
    scheduling_request::SchedulingRequest,
    snapshot::Snapshot,
};
use crate::cluster::{
    Selector,
    scheduling::{PodTerm, PodVolume},
};

impl Snapshot {
    /// Whether each of these pods finds a node in any order, wherever the scheduler places the others. False proves nothing:
    /// then they have to be placed one by one.
    ///
    /// A pod uses the resources of one node. If at least as many nodes are feasible for a pod as there are pods, and the
    /// others affect it only by the resources that they use, one of these nodes is left for it.
    pub fn fits_trivially(&mut self, pods: &[SchedulingRequest]) -> bool {
        if pods.len() > self.node_count() {
            return false;
        }
        let namespaces = self.namespaces();
        let is_affected = |pod: &SchedulingRequest| {
            pods.iter().any(|other| !std::ptr::eq(pod, other) && affects(other, pod, namespaces))
        };
        !pods.iter().any(is_affected) && pods.iter().all(|pod| self.has_feasible(pod, pods.len()))
    }

    /// Whether at least this many nodes are feasible for a pod.
    fn has_feasible(&mut self, request: &SchedulingRequest, enough: usize) -> bool {
        self.prepare(request);
        let mut filters = Filters::new(self, request);
        self.node_numbers().filter(|node| filters.is_feasible(*node)).take(enough).count() == enough
    }
}

/// Whether the node of the other pod matters to a pod.
fn affects(other: &SchedulingRequest, pod: &SchedulingRequest, namespaces: &NamespaceLabels) -> bool {
    let selects_other =
        |term: &PodTerm| namespaces.selects(term, &pod.namespace, &other.namespace, &other.labels);
    let spec = &pod.spec;
    // The first of the pods with affinity to each other decides for all.
    spec.pod_affinity.required.iter().chain(&spec.pod_anti_affinity.required).any(selects_other)
        || is_spread_among(pod, other)
        || shares_claim(pod, other)
}

/// Whether the other counts for a hard spread constraint of a pod.
fn is_spread_among(pod: &SchedulingRequest, other: &SchedulingRequest) -> bool {
    let mut hard = pod.spec.spread.iter().filter(|spread| spread.hard);
    let counts = |selector: Selector| selector.matches(&other.labels);
    pod.namespace == other.namespace && hard.any(|spread| effective_selector(spread, pod).is_some_and(counts))
}

/// Whether two pods use the same claim, which only one of them may use.
fn shares_claim(pod: &SchedulingRequest, other: &SchedulingRequest) -> bool {
    let is_claim = |volume: &&PodVolume| matches!(volume, PodVolume::Claim(_));
    pod.namespace == other.namespace
        && pod.spec.volumes.iter().filter(is_claim).any(|volume| other.spec.volumes.contains(volume))
}
