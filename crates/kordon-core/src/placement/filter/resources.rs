//! Checks that a node has enough free resources for a pod's requests (NodeResourcesFit).

use super::super::{
    node_resources::{NodeResources, Share},
    reason::{FilterRefusal, NodeRefusal, Reason, Remedy},
    snapshot::Snapshot,
};
use crate::cluster::{Name, Requests};

/// Refuses the node if resources are insufficient. The refusal names all insufficient resources.
#[inline]
pub(super) fn check<R: FilterRefusal>(
    requests: &Requests,
    resources: &NodeResources,
    snapshot: &Snapshot,
) -> Result<(), R> {
    let rules = snapshot.rules();
    // Fast path: most pods request neither ephemeral storage nor extended resources, so these amounts of the node are
    // not read.
    let fits = resources.pods.free() > 0
        && requests.cpu_milli <= resources.cpu_milli.free()
        && requests.memory_bytes <= resources.memory_bytes.free();
    let is_basic = requests.ephemeral_bytes == 0 && rules.zero_requests_fit && requests.scalars.is_empty();
    if fits && is_basic { Ok(()) } else { check_all(requests, resources, snapshot) }
}

fn check_all<R: FilterRefusal>(
    requests: &Requests,
    resources: &NodeResources,
    snapshot: &Snapshot,
) -> Result<(), R> {
    let rules = snapshot.rules();
    let insufficient = || insufficient(requests, resources, snapshot);
    let has_too_many = resources.pods.free() < 1;
    if !has_too_many && insufficient().next().is_none() {
        return Ok(());
    }
    Err(R::explained(|| {
        let too_many = has_too_many.then_some(Reason::TooManyPods);
        let reasons = insufficient().map(|(resource, ..)| Reason::Insufficient(resource.into()));
        let exceeds_node = insufficient().any(|(_, requested, share)| requested > share.allocatable);
        let is_lasting = rules.whole_node_is_unresolvable && exceeds_node;
        NodeRefusal {
            reasons: too_many.into_iter().chain(reasons).collect(),
            remedy: if is_lasting { Remedy::None } else { Remedy::FewerPods },
        }
    }))
}

/// Returns each insufficient resource: its name, the amount that the pod requests, and the [`Share`] of the node.
/// Leaves out a resource that the node does not have but devices may provide: [`super::PodDevices`] checks it.
fn insufficient<'r>(
    requests: &'r Requests,
    resources: &'r NodeResources,
    snapshot: &'r Snapshot,
) -> impl Iterator<Item = (&'r str, i64, Share)> {
    let basic = [
        ("cpu", requests.cpu_milli, resources.cpu_milli),
        ("memory", requests.memory_bytes, resources.memory_bytes),
        ("ephemeral-storage", requests.ephemeral_bytes, resources.ephemeral_bytes()),
    ];
    let requests_any = !requests.scalars.is_empty() || basic.iter().any(|(_, requested, _)| *requested > 0);
    let zero_fits = snapshot.rules().zero_requests_fit;
    let scalars = requests.scalars.iter();
    let scalars = scalars.filter(|(resource, _)| !is_left_to_devices(resource, resources, snapshot));
    let scalars = scalars.map(|(resource, requested)| (&**resource, *requested, resources.scalar(resource)));
    let all = basic.into_iter().chain(scalars).filter(move |_| requests_any);
    all.filter(move |(_, requested, share)| *requested > share.free() && !(*requested == 0 && zero_fits))
}

/// Whether a DRA device may provide a resource of which the node itself has none.
pub(in super::super) fn is_left_to_devices(
    resource: &Name,
    resources: &NodeResources,
    snapshot: &Snapshot,
) -> bool {
    snapshot.rules().classes_back_resources
        && resources.scalar(resource).allocatable == 0
        && snapshot.devices().back(resource)
}
