//! Whether there is room (NodeResourcesFit).

use super::super::{
    reason::{Reason, Refusal, Remedy},
    room::{Room, Share},
    rules::Rules,
};
use crate::cluster::{Name, scheduling::Requests};

/// Refuses with all that lacks.
pub(super) fn check(requests: &Requests, room: &Room, rules: &Rules) -> Result<(), Refusal> {
    let lacks = |wanted: i64, share: Share| (wanted > 0 || !rules.zero_requests_fit) && wanted > share.left();
    let three = [
        ("cpu", requests.cpu_milli, room.cpu_milli),
        ("memory", requests.memory_bytes, room.memory_bytes),
        ("ephemeral-storage", requests.ephemeral_bytes, room.ephemeral_bytes),
    ];
    let full = room.pods.left() < 1;
    let asks = !requests.scalars.is_empty() || three.iter().any(|(_, wanted, _)| *wanted > 0);
    let mut refusal = Refusal { reasons: Vec::new(), remedy: Remedy::FewerPods };
    if full {
        refusal.reasons.push(Reason::TooManyPods);
    }
    let mut compare = |resource: &dyn Fn() -> Name, wanted: i64, share: Share| {
        if lacks(wanted, share) {
            refusal.reasons.push(Reason::Insufficient(resource()));
            if rules.whole_node_is_final && wanted > share.offered {
                refusal.remedy = Remedy::None;
            }
        }
    };
    if asks {
        for (resource, wanted, share) in three {
            compare(&|| resource.into(), wanted, share);
        }
        for (resource, wanted) in &requests.scalars {
            compare(&|| resource.clone(), *wanted, room.scalar(resource));
        }
    }
    if refusal.reasons.is_empty() { Ok(()) } else { Err(refusal) }
}
