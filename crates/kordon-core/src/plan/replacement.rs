//! Replacements of pods: when a controller creates them, where they land and when they are Ready.
//!
//! [`replacements`] computes the replacements of pods that leave at known times whatever their budgets are (taints). A
//! simulated eviction ([`super::simulation`]) creates one replacement at a time. For lost nodes see
//! [`super::failover()`].

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    departure::Departure,
    environment::{Bound, Environment},
    eviction_note::attached_once,
    job_failures::JobConsequences,
    landing::Landing,
    owner,
    placement_trace::RunTrace,
    quota::QuotaRefusal,
};
use crate::cluster::{Cluster, Key, NodeName, Pod, Uid};
use kordon_time::Timestamp;

/// The replacement of a pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Replacement {
    pub landing: Landing,
    pub created: Timestamp,
    /// Time at which the replacement is Ready; `None` means never.
    pub ready: Option<Timestamp>,
}

impl Replacement {
    /// Places a replacement that a controller creates at `now`, in place of `pod`. `closed` nodes are cordoned.
    pub(super) fn create<E: Environment>(
        environment: &mut E,
        pod: &Pod,
        closed: &BTreeSet<NodeName>,
        bound: Bound,
        now: Timestamp,
    ) -> Self {
        let landing = environment.land(pod, closed);
        let time_to_ready = match &landing {
            Landing::Pending { .. } => None,
            Landing::Node { .. } | Landing::Unknown => environment.time_to_ready(pod, &landing).at(bound),
        };
        Self { landing, created: now, ready: time_to_ready.map(|span| now + span) }
    }
}

impl Replacement {
    /// Returns when the replacement is likely Ready; `None` if never. `detached` is the time at which the volumes of the
    /// old pod are detached. If it has a volume that only one node at a time can use, the replacement starts only after
    /// this time.
    pub(super) fn ready_after(
        &self,
        cluster: &Cluster,
        old: &Pod,
        detached: Option<Timestamp>,
    ) -> Option<Timestamp> {
        match attached_once(cluster, old) {
            None => self.ready,
            Some(_) => Some(self.ready? + detached?.since(self.created).or_zero()),
        }
    }
}

/// Number of live pods of each owner. It changes as pods leave and replacements are created.
#[derive(Clone, Debug, Default)]
pub(super) struct LivePods {
    by_owner: BTreeMap<Uid, i32>,
}

impl LivePods {
    /// Returns the number of live pods of the pod's owner; `None` if the pod has no owner. The first call for an owner
    /// counts its pods in the cluster.
    pub fn count(&mut self, cluster: &Cluster, pod: &Pod) -> Option<&mut i32> {
        let owner = pod.owner.as_ref()?;
        let lives = |pod: &&Arc<Pod>| pod.termination.is_none() && !pod.is_finished();
        let count = || {
            let count = cluster.pods_owned_by(&owner.uid).filter(lives).count();
            i32::try_from(count).unwrap_or(i32::MAX)
        };
        Some(self.by_owner.entry(owner.uid.clone()).or_insert_with(count))
    }

    /// Subtracts a pod whose deletion starts. The pod must not have been terminating before.
    pub fn on_deletion(&mut self, cluster: &Cluster, pod: &Pod) {
        if !pod.is_finished()
            && let Some(count) = self.count(cluster, pod)
        {
            *count -= 1;
        }
    }

    /// Returns whether the pod's owner creates another pod, and counts the new pod.
    pub fn recreate(&mut self, cluster: &Cluster, pod: &Pod) -> bool {
        let Some(count) = self.count(cluster, pod) else { return false };
        let creates = owner::creates_replacement(cluster, pod, *count);
        if creates {
            *count = count.saturating_add(1);
        }
        creates
    }
}

/// Returns the replacements of leaving pods and the traces of their placements. Both are keyed by the pod that is
/// replaced.
///
/// Departures and replacements happen in order of time, so that each placement takes earlier ones into account. If a
/// quota refuses a replacement at first, it is created when the quota admits it.
pub fn replacements<E: Environment>(
    cluster: &Cluster,
    departures: &[Departure],
    refusals: &BTreeMap<Key, QuotaRefusal>,
    mut environment: E,
) -> (BTreeMap<Key, Replacement>, RunTrace) {
    let no_node_closed = BTreeSet::new();
    let mut live_pods = LivePods::default();
    let mut replacements = BTreeMap::new();
    for (now, event) in agenda(cluster, departures, refusals) {
        match event {
            Event::Leaves(pod) => {
                environment.on_deletion(pod);
                live_pods.on_deletion(cluster, pod);
            }
            Event::Gone(pod) => environment.on_gone(pod),
            Event::Created(pod) => {
                if live_pods.recreate(cluster, pod) {
                    let new = Replacement::create(&mut environment, pod, &no_node_closed, Bound::Likely, now);
                    replacements.insert(pod.key.clone(), new);
                }
            }
        }
    }
    (replacements, environment.trace())
}

/// An event in the departure of a pod.
#[derive(Clone, Copy, Debug)]
enum Event<'a> {
    /// The pod's deletion starts.
    Leaves(&'a Arc<Pod>),
    Gone(&'a Arc<Pod>),
    /// The owner of this pod may create a replacement.
    Created(&'a Arc<Pod>),
}

impl Event<'_> {
    /// Returns the sort key of events at the same time: by kind of event, then by descending priority of the pod.
    fn order(&self) -> (u8, Reverse<i32>) {
        match self {
            Self::Leaves(pod) => (1, Reverse(pod.priority)),
            Self::Gone(pod) => (2, Reverse(pod.priority)),
            Self::Created(pod) => (3, Reverse(pod.priority)),
        }
    }
}

/// Returns all events, sorted by time. Events with the same sort key keep the order of `departures`.
fn agenda<'a>(
    cluster: &Cluster,
    departures: &'a [Departure],
    refusals: &BTreeMap<Key, QuotaRefusal>,
) -> Vec<(Timestamp, Event<'a>)> {
    let jobs = JobConsequences::new(cluster, departures);
    let mut events: Vec<(Timestamp, Event<'a>)> = Vec::new();
    for Departure { pod, leaves, gone, .. } in departures {
        let created = jobs.creation(cluster, pod, *leaves, *gone);
        let created = match refusals.get(&pod.key) {
            Some(refusal) => refusal.admitted,
            None => created,
        };
        if pod.termination.is_none() {
            events.push((*leaves, Event::Leaves(pod)));
        }
        events.extend(gone.map(|at| (at, Event::Gone(pod))));
        events.extend(created.map(|at| (at, Event::Created(pod))));
    }
    events.sort_by_key(|(at, event)| (*at, event.order()));
    events
}
