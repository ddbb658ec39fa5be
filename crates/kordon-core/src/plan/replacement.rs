//! The replacements of pods: when a controller creates them, where they land and when they are Ready.
//!
//! [`replacements`] answers this for pods that leave at known times whatever budgets say (taints). A simulated eviction
//! ([`super::simulation`]) asks for one replacement at a time; for lost nodes see [`super::failover()`].

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    environment::{Bound, Environment},
    eviction_note::attached_once,
    landing::Landing,
    owner::{self, Recreation},
    placement_trace::RunTrace,
    quota::QuotaRefusal,
};
use crate::cluster::{Cluster, Key, NodeName, Pod, Uid};
use kordon_time::Timestamp;

/// What replaces a pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Replacement {
    pub landing: Landing,
    pub created: Timestamp,
    /// None: never.
    pub ready: Option<Timestamp>,
}

impl Replacement {
    /// Places the replacement of a pod that its controller creates now. `closed` nodes are cordoned.
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
    /// When it is likely Ready, after the old pod of it is gone: if that has a volume that only one node may use at a
    /// time, the replacement starts only when the kubelet has ended the old pod.
    pub(super) fn ready_after(
        &self,
        cluster: &Cluster,
        old: &Pod,
        gone: Option<Timestamp>,
    ) -> Option<Timestamp> {
        match attached_once(cluster, old) {
            None => self.ready,
            Some(_) => Some(self.ready? + gone?.since(self.created).or_zero()),
        }
    }
}

/// How many pods of each owner live, while some leave and others are created.
#[derive(Clone, Debug, Default)]
pub(super) struct LivePods {
    by_owner: BTreeMap<Uid, i32>,
}

impl LivePods {
    /// The count of the pod's owner, taken from the cluster the first time.
    pub fn count(&mut self, cluster: &Cluster, pod: &Pod) -> Option<&mut i32> {
        let owner = pod.owner.as_ref()?;
        let lives = |pod: &&Arc<Pod>| pod.termination.is_none() && !pod.is_finished();
        let count = || {
            let count = cluster.pods_owned_by(&owner.uid).filter(lives).count();
            i32::try_from(count).unwrap_or(i32::MAX)
        };
        Some(self.by_owner.entry(owner.uid.clone()).or_insert_with(count))
    }

    /// The deletion of a pod starts that was not terminating.
    pub fn on_deletion(&mut self, cluster: &Cluster, pod: &Pod) {
        if !pod.is_finished()
            && let Some(count) = self.count(cluster, pod)
        {
            *count -= 1;
        }
    }

    /// Whether the pod's owner creates another one; that one is counted.
    pub fn recreate(&mut self, cluster: &Cluster, pod: &Pod) -> bool {
        let Some(count) = self.count(cluster, pod) else { return false };
        let creates = owner::creates_replacement(cluster, pod, *count);
        if creates {
            *count = count.saturating_add(1);
        }
        creates
    }
}

/// A pod that leaves at a known time.
#[derive(Clone, Debug)]
pub struct Departure {
    pub pod: Arc<Pod>,
    /// When its deletion starts.
    pub leaves: Timestamp,
    /// When its object is gone; none is never.
    pub gone: Option<Timestamp>,
}

/// The replacements of pods that leave, by the pod that each replaces, and the traces of their placement.
///
/// Departures and replacements happen in order of time, so that each replacement sees those before it. Those that quotas
/// refuse are created when they are admitted.
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
                if pod.termination.is_none() {
                    live_pods.on_deletion(cluster, pod);
                }
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

/// What happens at one time.
#[derive(Clone, Copy, Debug)]
enum Event<'a> {
    /// The pod's deletion starts.
    Leaves(&'a Arc<Pod>),
    Gone(&'a Arc<Pod>),
    /// The owner of this pod may create a replacement.
    Created(&'a Arc<Pod>),
}

impl Event<'_> {
    /// The order of events at the same time: by kind, then pods of high priority first.
    fn order(&self) -> (u8, Reverse<i32>) {
        match self {
            Self::Leaves(pod) => (1, Reverse(pod.priority)),
            Self::Gone(pod) => (2, Reverse(pod.priority)),
            Self::Created(pod) => (3, Reverse(pod.priority)),
        }
    }
}

/// All events in order of time; equal ones in the order of the arguments.
fn agenda<'a>(
    cluster: &Cluster,
    departures: &'a [Departure],
    refusals: &BTreeMap<Key, QuotaRefusal>,
) -> Vec<(Timestamp, Event<'a>)> {
    let mut events: Vec<(Timestamp, Event<'a>)> = Vec::new();
    for Departure { pod, leaves, gone } in departures {
        let created = match owner::recreation(cluster, pod) {
            Recreation::Immediately => Some(*leaves),
            Recreation::WhenGone => *gone,
            Recreation::OnSameNode | Recreation::Never(_) => None,
        };
        let created = match refusals.get(&pod.key) {
            Some(refusal) => refusal.admitted,
            None => created,
        };
        events.push((*leaves, Event::Leaves(pod)));
        events.extend(gone.map(|at| (at, Event::Gone(pod))));
        events.extend(created.map(|at| (at, Event::Created(pod))));
    }
    events.sort_by_key(|(at, event)| (*at, event.order()));
    events
}
