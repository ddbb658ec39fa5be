//! Delays of replacements by ResourceQuotas, for pods that leave at known times because of taints or failures.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use super::{
    departure::Departure,
    environment::Bound,
    job_failures::JobConsequences,
    quota::{QuotaLedger, QuotaRefusal, limits, retry, stops_counting},
    replacement::LivePods,
};
use crate::cluster::{Cluster, Key, Pod};
use kordon_time::Timestamp;

/// Returns the replacements that a quota refuses at first: the key of each replaced pod, with the refusal.
pub fn refusals(cluster: &Cluster, departures: &[Departure]) -> BTreeMap<Key, QuotaRefusal> {
    let limited: Vec<&Departure> =
        departures.iter().filter(|departure| limits(cluster, &departure.pod)).collect();
    let jobs = JobConsequences::new(cluster, departures);
    let mut agenda: Vec<(Timestamp, QuotaEvent<'_>)> = Vec::new();
    for departure in limited {
        let Departure { pod, leaves, gone, .. } = departure;
        let counts_until = stops_counting(*leaves + pod.grace, pod.grace, Bound::Likely);
        let freed = gone.map_or(counts_until, |gone| gone.min(counts_until));
        let created = jobs.creation(cluster, pod, *leaves, *gone);
        agenda.push((*leaves, QuotaEvent::Leaves(pod)));
        agenda.push((freed, QuotaEvent::Freed(pod)));
        agenda.extend(created.map(|at| (at, QuotaEvent::Created(pod))));
    }
    agenda.sort_by_key(|(at, event)| (*at, event.rank()));
    let mut run = RefusalRun::new(cluster);
    agenda.into_iter().for_each(|(at, event)| run.on_event(event, at));
    run.refusals
}

/// An event of a pod that may change the usage of quotas.
#[derive(Clone, Copy, Debug)]
enum QuotaEvent<'a> {
    Leaves(&'a Arc<Pod>),
    /// Quotas stop counting the pod.
    Freed(&'a Arc<Pod>),
    /// The pod's owner tries to create the replacement.
    Created(&'a Arc<Pod>),
}

impl QuotaEvent<'_> {
    const fn rank(self) -> u8 {
        match self {
            Self::Leaves(_) => 0,
            Self::Freed(_) => 1,
            Self::Created(_) => 2,
        }
    }
}

struct RefusalRun<'a> {
    cluster: &'a Cluster,
    ledger: QuotaLedger,
    live_pods: LivePods,
    /// Pods whose replacements have been refused and not admitted yet, each with the time of the refusal.
    waiting: VecDeque<(&'a Arc<Pod>, Timestamp)>,
    refusals: BTreeMap<Key, QuotaRefusal>,
}

impl<'a> RefusalRun<'a> {
    fn new(cluster: &'a Cluster) -> Self {
        Self {
            cluster,
            ledger: QuotaLedger::default(),
            live_pods: LivePods::default(),
            waiting: VecDeque::new(),
            refusals: BTreeMap::new(),
        }
    }

    fn on_event(&mut self, event: QuotaEvent<'a>, now: Timestamp) {
        match event {
            QuotaEvent::Leaves(pod) if pod.termination.is_none() => {
                self.live_pods.on_deletion(self.cluster, pod);
            }
            QuotaEvent::Leaves(_) => {}
            QuotaEvent::Freed(pod) => {
                self.ledger.release(self.cluster, pod);
                self.admit_waiting(now);
            }
            QuotaEvent::Created(pod) => {
                if self.live_pods.recreate(self.cluster, pod)
                    && let Err(refusal) = self.ledger.admit(self.cluster, pod)
                {
                    self.refusals.insert(pod.key.clone(), *refusal);
                    self.waiting.push_back((pod, now));
                }
            }
        }
    }

    fn admit_waiting(&mut self, now: Timestamp) {
        let Self { cluster, ledger, refusals, .. } = self;
        self.waiting.retain(|(pod, refused)| {
            let admitted = ledger.admit(cluster, pod).is_ok();
            if let Some(refusal) = refusals.get_mut(&pod.key).filter(|_| admitted) {
                refusal.admitted = Some(retry(*refused, now, Bound::Likely));
            }
            !admitted
        });
    }
}
