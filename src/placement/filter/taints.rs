//! Taints that keep a pod away (TaintToleration).

use super::super::reason::{NodeRefusal, Reason};
use crate::cluster::{Taint, TaintEffect, Toleration};

/// Refuses for the first taint that is not tolerated.
pub(super) fn check(
    taints: &[Taint],
    tolerations: &[Toleration],
    one_reason: bool,
) -> Result<(), NodeRefusal> {
    let keeps_away = |taint: &&Taint| match taint.effect {
        TaintEffect::NoSchedule | TaintEffect::NoExecute => {
            !tolerations.iter().any(|toleration| toleration.tolerates(taint))
        }
        TaintEffect::PreferNoSchedule | TaintEffect::Invalid => false,
    };
    match taints.iter().find(keeps_away) {
        None => Ok(()),
        Some(_) if one_reason => Err(NodeRefusal::final_word(Reason::Taints)),
        Some(taint) => {
            Err(NodeRefusal::final_word(Reason::Taint { key: taint.key.clone(), value: taint.value.clone() }))
        }
    }
}
