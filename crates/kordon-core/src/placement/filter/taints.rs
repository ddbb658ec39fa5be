//! Filter for taints that the pod does not tolerate (TaintToleration).

use super::super::reason::{FilterRefusal, Reason};
use crate::cluster::{Taint, TaintEffect, Toleration};

/// Refuses a node that has taints which the pod does not tolerate.
pub(super) fn check<R: FilterRefusal>(
    taints: &[Taint],
    tolerations: &[Toleration],
    one_reason: bool,
) -> Result<(), R> {
    match taints.iter().find(|taint| !is_tolerated(taint, tolerations)) {
        None => Ok(()),
        Some(_) if one_reason => Err(R::unresolvable(&[Reason::Taints])),
        Some(taint) => {
            let reason = || Reason::Taint { key: taint.key.clone(), value: taint.value.clone() };
            Err(R::unresolvable_by(reason))
        }
    }
}

/// Returns whether the pod tolerates all NoSchedule and NoExecute taints.
pub(super) fn are_tolerated(taints: &[Taint], tolerations: &[Toleration]) -> bool {
    taints.iter().all(|taint| is_tolerated(taint, tolerations))
}

fn is_tolerated(taint: &Taint, tolerations: &[Toleration]) -> bool {
    match taint.effect {
        TaintEffect::NoSchedule | TaintEffect::NoExecute => {
            tolerations.iter().any(|toleration| toleration.tolerates(taint))
        }
        TaintEffect::PreferNoSchedule | TaintEffect::Invalid => true,
    }
}
