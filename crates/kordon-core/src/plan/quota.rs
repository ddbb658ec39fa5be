//! ResourceQuotas while pods leave. A quota refuses the replacement of a pod as long as the old pod, or other pods, use
//! all of it (docs/reference/plan.md#resourcequota).

use std::{collections::BTreeMap, fmt, sync::Arc};

use super::{environment::Bound, successor::successor};
use crate::cluster::{Cluster, Key, Name, Namespace, Pod, Quota, QuotaCount};
use kordon_time::{Span, Timestamp};

/// A quota that at first refuses the replacement of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaRefusal {
    pub quota: Key,
    /// The resource that the quota has too little of. `used`, `hard` and `needed` are amounts of this resource.
    pub resource: Name,
    pub used: String,
    pub hard: String,
    pub needed: String,
    /// Time at which the replacement is created, once the quota counts fewer pods; `None` means never.
    pub admitted: Option<Timestamp>,
}

impl QuotaRefusal {
    /// Formats the numbers: `pods 10 of 10 used`. Adds the needed amount if the quota is not used up.
    pub fn numbers(&self) -> String {
        let Self { resource, used, hard, needed, .. } = self;
        let needed = if used == hard { String::new() } else { format!(", needs {needed}") };
        format!("{resource} {used} of {hard} used{needed}")
    }
}

impl fmt::Display for QuotaRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let until = if self.admitted.is_some() { " until the old pod is gone" } else { "" };
        write!(f, "replacement refused by quota {}{until} ({})", self.quota.name, self.numbers())
    }
}

/// Current use of the quotas, by namespace.
#[derive(Clone, Debug, Default)]
pub(super) struct QuotaLedger {
    by_namespace: BTreeMap<Namespace, Vec<QuotaUse>>,
}

#[derive(Clone, Debug)]
struct QuotaUse {
    quota: Arc<Quota>,
    /// Used amounts, in the order of the quota's limits.
    used: Vec<i64>,
}

impl QuotaLedger {
    /// Returns the use of a namespace's quotas once all terminating pods of the namespace are gone.
    pub fn for_live_pods(cluster: &Cluster, namespace: &Namespace) -> Self {
        let unused =
            |quota: &Arc<Quota>| QuotaUse { quota: quota.clone(), used: vec![0; quota.limits.len()] };
        let mut quotas: Vec<QuotaUse> = cluster.quotas_in(namespace).map(unused).collect();
        for pod in cluster.pods_in(namespace).filter(|pod| pod.termination.is_none()) {
            quotas.iter_mut().for_each(|quota| quota.count(pod, i64::saturating_add));
        }
        Self { by_namespace: BTreeMap::from([(namespace.clone(), quotas)]) }
    }

    fn of(&mut self, cluster: &Cluster, namespace: &Namespace) -> &mut Vec<QuotaUse> {
        self.by_namespace.entry(namespace.clone()).or_insert_with(|| {
            let used = |quota: &Arc<Quota>| QuotaUse {
                quota: quota.clone(),
                used: quota.limits.iter().map(|limit| limit.used).collect(),
            };
            cluster.quotas_in(namespace).map(used).collect()
        })
    }

    /// Admits the replacement of a pod, and counts it (admission plugin ResourceQuota, upstream `CheckRequest`).
    ///
    /// # Errors
    /// A quota has too little left for the replacement.
    pub fn admit(&mut self, cluster: &Cluster, pod: &Pod) -> Result<(), Box<QuotaRefusal>> {
        let new = successor(cluster, pod);
        let quotas = self.of(cluster, &pod.key.namespace);
        if let Some(refusal) = quotas.iter().find_map(|quota| quota.refusal(&new)) {
            return Err(Box::new(refusal));
        }
        quotas.iter_mut().for_each(|quota| quota.count(&new, i64::saturating_add));
        Ok(())
    }

    /// Subtracts a pod from the usage of its quotas.
    pub fn release(&mut self, cluster: &Cluster, pod: &Pod) {
        let quotas = self.of(cluster, &pod.key.namespace);
        quotas.iter_mut().for_each(|quota| quota.count(pod, i64::saturating_sub));
    }
}

impl QuotaUse {
    fn refusal(&self, pod: &Pod) -> Option<QuotaRefusal> {
        if self.quota.counts(pod) != Some(true) {
            return None;
        }
        let (limit, used) = self.quota.limits.iter().zip(&self.used).find(|(limit, used)| {
            let charge = limit.counts.charge(pod);
            charge > 0 && used.saturating_add(charge) > limit.hard
        })?;
        Some(QuotaRefusal {
            quota: self.quota.key.clone(),
            resource: limit.resource.clone(),
            used: limit.counts.amount(*used),
            hard: limit.counts.amount(limit.hard),
            needed: limit.counts.amount(limit.counts.charge(pod)),
            admitted: None,
        })
    }

    fn count(&mut self, pod: &Pod, with: fn(i64, i64) -> i64) {
        if self.quota.counts(pod) != Some(true) {
            return;
        }
        for (limit, used) in self.quota.limits.iter().zip(&mut self.used) {
            if !pod.is_finished() || limit.counts == QuotaCount::Object {
                *used = with(*used, limit.counts.charge(pod));
            }
        }
    }
}

/// Returns whether the pod's namespace has quotas that limit pods.
pub(super) fn limits(cluster: &Cluster, pod: &Pod) -> bool {
    cluster.quotas_in(&pod.key.namespace).next().is_some()
}

/// Interval at which the quota controller recounts even if nothing has changed (`--resource-quota-sync-period`).
const RESYNC: Span = Span::from_secs(300);
/// Likely wait until the next recount: half of [`RESYNC`].
const LIKELY_RESYNC: Span = Span::from_secs(150);

/// Returns when a quota stops counting a terminating pod: at the first recount after twice its grace period (upstream
/// `QuotaV1Pod`).
pub(super) fn stops_counting(deadline: Timestamp, grace: Span, bound: Bound) -> Timestamp {
    let counted_again = match bound {
        Bound::Soonest => Span::ZERO,
        Bound::Likely => LIKELY_RESYNC,
        Bound::Latest => RESYNC,
    };
    deadline + grace + counted_again
}

/// First backoff of a controller after a failed request. Each further backoff is twice as long, up to [`LONGEST_PAUSE`]
/// (upstream `DefaultTypedControllerRateLimiter`).
const FIRST_PAUSE: Span = Span::from_millis(5);
const LONGEST_PAUSE: Span = Span::from_secs(1000);

/// Returns when a controller's retry of a request succeeds. The request was first refused at `refused`, and can
/// succeed from `may_succeed` on.
pub(super) fn retry(refused: Timestamp, may_succeed: Timestamp, bound: Bound) -> Timestamp {
    match bound {
        Bound::Soonest => may_succeed,
        Bound::Likely | Bound::Latest => {
            let (mut pause, mut at) = (FIRST_PAUSE, refused + FIRST_PAUSE);
            while at < may_succeed {
                pause = (pause * 2).min(LONGEST_PAUSE);
                at += pause;
            }
            at
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_controller_pauses_twice_as_long_each_time() {
        let at = |millis: i64| Timestamp::EPOCH + Span::from_millis(millis);
        let likely = |may_succeed| retry(at(0), may_succeed, Bound::Likely);
        assert_eq!(likely(at(0)), at(5));
        assert_eq!(likely(at(6)), at(15));
        assert_eq!(likely(at(30_000)), at(40_955));
        assert_eq!(retry(at(0), at(30_000), Bound::Soonest), at(30_000));
    }
}
