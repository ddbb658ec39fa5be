//! Whether there is room (NodeResourcesFit).

use super::super::{
    node_resources::{NodeResources, Share},
    reason::{NodeRefusal, Reason, Remedy},
    rules::SchedulerRules,
};
use crate::cluster::{Name, scheduling::Requests};

/// Refuses with all that lacks.
pub(super) fn check(
    requests: &Requests,
    resources: &NodeResources,
    rules: &SchedulerRules,
) -> Result<(), NodeRefusal> {
    let three = [
        (requests.cpu_milli, resources.cpu_milli),
        (requests.memory_bytes, resources.memory_bytes),
        (requests.ephemeral_bytes, resources.ephemeral_bytes),
    ];
    let fits = resources.pods.left() > 0
        && three.iter().all(|(wanted, share)| *wanted <= share.left())
        && requests.scalars.iter().all(|(resource, wanted)| *wanted <= resources.scalar(resource).left());
    if fits { Ok(()) } else { lacking(requests, three, resources, rules) }
}

/// Tells what lacks, if it is asked for.
#[cold]
fn lacking(
    requests: &Requests,
    three: [(i64, Share); 3],
    resources: &NodeResources,
    rules: &SchedulerRules,
) -> Result<(), NodeRefusal> {
    let mut refusal = NodeRefusal { reasons: Vec::new(), remedy: Remedy::FewerPods };
    if resources.pods.left() < 1 {
        refusal.reasons.push(Reason::TooManyPods);
    }
    let asks = !requests.scalars.is_empty() || three.iter().any(|(wanted, _)| *wanted > 0);
    let named = ["cpu", "memory", "ephemeral-storage"].map(Name::from).into_iter().zip(three);
    let scalars = requests.scalars.iter();
    let scalars = scalars.map(|(resource, wanted)| (resource.clone(), (*wanted, resources.scalar(resource))));
    for (resource, (wanted, share)) in named.chain(scalars).filter(|_| asks) {
        if wanted <= share.left() || (wanted == 0 && rules.zero_requests_fit) {
            continue;
        }
        refusal.reasons.push(Reason::Insufficient(resource));
        if rules.whole_node_is_final && wanted > share.allocatable {
            refusal.remedy = Remedy::None;
        }
    }
    if refusal.reasons.is_empty() { Ok(()) } else { Err(refusal) }
}
