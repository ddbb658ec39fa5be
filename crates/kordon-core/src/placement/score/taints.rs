//! Score for PreferNoSchedule taints (TaintToleration).

use super::{super::filter::Filters, MOST, Points};
use crate::cluster::{Taint, TaintEffect};

/// Counts the PreferNoSchedule taints that the pod does not tolerate. A node without such taints gets 100 points, the
/// node with most of them 0.
pub(super) fn points(filters: &Filters<'_>, feasible: &[u32]) -> Points {
    if !filters.snapshot.has_soft_taints() {
        return Points::Equal(MOST);
    }
    let tolerations = &filters.request.tolerations;
    let is_untolerated = |taint: &&Taint| {
        taint.effect == TaintEffect::PreferNoSchedule
            && !tolerations.iter().any(|toleration| toleration.tolerates(taint))
    };
    let count = |node: &u32| {
        if !filters.snapshot.resources(*node).has_soft_taints {
            return 0;
        }
        let taints = filters.snapshot.node(*node).taints.iter().filter(is_untolerated).count();
        i64::try_from(taints).unwrap_or(i64::MAX)
    };
    let mut raw: Vec<i64> = feasible.iter().map(count).collect();
    super::share_of_highest(&mut raw);
    raw.iter_mut().for_each(|raw| *raw = MOST - *raw);
    Points::Each(raw)
}
