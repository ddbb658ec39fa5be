//! Whether there is room to spare: whether pods find places wherever those before them are put.

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
    /// Whether each of these pods finds a node, in whatever order they come and wherever the scheduler puts the others.
    /// A no says nothing: then they have to be placed one by one.
    ///
    /// A pod takes room on one node. Where at least as many nodes would do for a pod as there are pods, and none of the
    /// others matters to it but by the room that it takes, one of these nodes is left for it.
    pub fn fits_trivially(&mut self, pods: &[SchedulingRequest]) -> bool {
        if pods.len() > self.node_count() {
            return false;
        }
        let namespaces = self.namespaces();
        let matters = |pod: &SchedulingRequest| {
            pods.iter().any(|other| !std::ptr::eq(pod, other) && looks_for(pod, other, namespaces))
        };
        !pods.iter().any(matters) && pods.iter().all(|pod| self.has_places(pod, pods.len()))
    }

    /// Whether at least so many nodes would do for a pod.
    fn has_places(&mut self, request: &SchedulingRequest, enough: usize) -> bool {
        self.prepare(request);
        let mut filters = Filters::new(self, request);
        self.node_numbers().filter(|node| filters.judge(*node).is_ok()).take(enough).count() == enough
    }
}

/// Whether it matters to a pod, or to the other, where the other is.
fn looks_for(pod: &SchedulingRequest, other: &SchedulingRequest, namespaces: &NamespaceLabels) -> bool {
    let speaks_of_it =
        |term: &PodTerm| namespaces.speaks_of(term, &pod.namespace, &other.namespace, &other.labels);
    let spec = &pod.spec;
    // The first of those that want to be near each other chooses for all.
    spec.pod_affinity.required.iter().chain(&spec.pod_anti_affinity.required).any(speaks_of_it)
        || is_spread_among(pod, other)
        || shares_claim(pod, other)
}

/// Whether the other counts where a pod has to be spread evenly.
fn is_spread_among(pod: &SchedulingRequest, other: &SchedulingRequest) -> bool {
    let mut hard = pod.spec.spread.iter().filter(|spread| spread.hard);
    let counts = |selector: Selector| selector.matches(&other.labels);
    pod.namespace == other.namespace && hard.any(|spread| effective_selector(spread, pod).is_some_and(counts))
}

/// Whether two pods name the same claim, which may be for one of them only.
fn shares_claim(pod: &SchedulingRequest, other: &SchedulingRequest) -> bool {
    let is_claim = |volume: &&PodVolume| matches!(volume, PodVolume::Claim(_));
    pod.namespace == other.namespace
        && pod.spec.volumes.iter().filter(is_claim).any(|volume| other.spec.volumes.contains(volume))
}
