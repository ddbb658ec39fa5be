//! Taints that are not tolerated (TaintToleration).

use super::super::reason::{NodeRefusal, Reason};
use crate::cluster::{Taint, TaintEffect, Toleration};

/// Refuses for the first taint that is not tolerated.
pub(super) fn check(
    taints: &[Taint],
    tolerations: &[Toleration],
    one_reason: bool,
) -> Result<(), NodeRefusal> {
    let is_untolerated = |taint: &&Taint| match taint.effect {
        TaintEffect::NoSchedule | TaintEffect::NoExecute => {
            !tolerations.iter().any(|toleration| toleration.tolerates(taint))
        }
        TaintEffect::PreferNoSchedule | TaintEffect::Invalid => false,
    };
    match taints.iter().find(is_untolerated) {
        None => Ok(()),
        Some(_) if one_reason => Err(NodeRefusal::unresolvable(Reason::Taints)),
        Some(taint) => Err(NodeRefusal::unresolvable(Reason::Taint {
            key: taint.key.clone(),
            value: taint.value.clone(),
        })),
    }
}
