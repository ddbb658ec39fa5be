//! Whether the requests fit (NodeResourcesFit).

use super::super::{
    node_resources::{NodeResources, Share},
    reason::{NodeRefusal, Reason, Remedy},
    rules::SchedulerRules,
};
use crate::cluster::{Name, scheduling::Requests};

/// Refuses with every insufficient resource.
pub(super) fn check(
    requests: &Requests,
    resources: &NodeResources,
    rules: &SchedulerRules,
) -> Result<(), NodeRefusal> {
    let basic = [
        (requests.cpu_milli, resources.cpu_milli),
        (requests.memory_bytes, resources.memory_bytes),
        (requests.ephemeral_bytes, resources.ephemeral_bytes),
    ];
    let fits = resources.pods.free() > 0
        && basic.iter().all(|(requested, share)| *requested <= share.free())
        && requests
            .scalars
            .iter()
            .all(|(resource, requested)| *requested <= resources.scalar(resource).free());
    if fits { Ok(()) } else { insufficient(requests, basic, resources, rules) }
}

/// The refusal; none if nothing is requested of what is insufficient.
#[cold]
fn insufficient(
    requests: &Requests,
    basic: [(i64, Share); 3],
    resources: &NodeResources,
    rules: &SchedulerRules,
) -> Result<(), NodeRefusal> {
    let mut refusal = NodeRefusal { reasons: Vec::new(), remedy: Remedy::FewerPods };
    if resources.pods.free() < 1 {
        refusal.reasons.push(Reason::TooManyPods);
    }
    let requests_any = !requests.scalars.is_empty() || basic.iter().any(|(requested, _)| *requested > 0);
    let named = ["cpu", "memory", "ephemeral-storage"].map(Name::from).into_iter().zip(basic);
    let scalars = requests.scalars.iter();
    let scalars =
        scalars.map(|(resource, requested)| (resource.clone(), (*requested, resources.scalar(resource))));
    for (resource, (requested, share)) in named.chain(scalars).filter(|_| requests_any) {
        if requested <= share.free() || (requested == 0 && rules.zero_requests_fit) {
            continue;
        }
        refusal.reasons.push(Reason::Insufficient(resource));
        if rules.whole_node_is_unresolvable && requested > share.allocatable {
            refusal.remedy = Remedy::None;
        }
    }
    if refusal.reasons.is_empty() { Ok(()) } else { Err(refusal) }
}
