//! Replacements of pods: when a controller creates them, where they land and when they are Ready.
//!
//! [`replacements`] computes the replacements of pods that leave at known times because of taints, which ignore
//! budgets. A simulated eviction ([`super::simulation`]) creates one replacement at a time. For lost nodes see
//! [`super::failover()`].

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    departure::Departure,
    environment::{Bound, Environment, Estimate, Quality},
    eviction_note::attached_once,
    job_failures::JobConsequences,
    landing::Landing,
    owner::{self, LowerPod},
    placement_trace::RunTrace,
    quota::QuotaRefusal,
    successor,
};
use crate::cluster::{Cluster, Key, NodeName, Pod, Uid};
use kordon_time::Timestamp;

/// The replacement of a pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Replacement {
    pub landing: Landing,
    pub created: Timestamp,
    /// Time at which the replacement is placed. This is later than the creation of the replacement if it is Pending at
    /// first.
    pub placed: Timestamp,
    /// Time at which the replacement is Ready; `None` means never.
    pub ready: Option<Timestamp>,
    /// How reliable the time from the start of the replacement to Ready is.
    pub quality: Quality,
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
        let takes = match landing.has_nowhere_to_run() {
            true => Estimate::NEVER,
            false => environment.time_to_ready(pod, &landing),
        };
        let ready = takes.at(bound).map(|span| now + span);
        Self { landing, created: now, placed: now, ready, quality: takes.quality }
    }

    /// Places again a replacement that has nowhere to run. Returns whether it now has.
    pub(super) fn retry<E: Environment>(
        &mut self,
        environment: &mut E,
        pod: &Pod,
        closed: &BTreeSet<NodeName>,
        bound: Bound,
        now: Timestamp,
    ) -> bool {
        *self = Self { created: self.created, ..Self::create(environment, pod, closed, bound, now) };
        !self.landing.has_nowhere_to_run()
    }
}

impl Replacement {
    /// Returns when the replacement is likely Ready; `None` if never. `detached` is the time at which the volumes of
    /// the old pod are detached. If the pod has a volume that only one node at a time can use, its replacement starts
    /// only after this time.
    pub(super) fn ready_after(
        &self,
        cluster: &Cluster,
        old: &Pod,
        detached: Option<Timestamp>,
    ) -> Option<Timestamp> {
        match attached_once(cluster, old) {
            None => self.ready,
            Some(_) => Some(self.ready? + detached?.since(self.placed).or_zero()),
        }
    }
}

/// Number of live pods of each owner. It changes as pods leave and replacements are created.
#[derive(Clone, Debug, Default)]
pub(super) struct LivePods {
    by_owner: BTreeMap<Uid, i32>,
    /// For each owner, the number of additional pods that it wants because a drain scales its Deployment up (surge).
    surges: BTreeMap<Uid, i32>,
}

impl LivePods {
    /// Returns the number of live pods of the pod's owner; `None` if the pod has no owner. The first call for an owner
    /// counts its pods in the cluster.
    pub fn count(&mut self, cluster: &Cluster, pod: &Pod) -> Option<&mut i32> {
        let owner = pod.owner.as_ref()?;
        let lives = |pod: &&Arc<Pod>| pod.lives();
        let count = || {
            let count = cluster.pods_owned_by(&owner.uid).filter(lives).count();
            i32::try_from(count).unwrap_or(i32::MAX)
        };
        Some(self.by_owner.entry(owner.uid.clone()).or_insert_with(count))
    }

    /// Subtracts 1 from the number of live pods of the pod's owner, because the deletion of the pod starts. The pod
    /// must not have been terminating before.
    pub fn on_deletion(&mut self, cluster: &Cluster, pod: &Pod) {
        if !pod.is_finished()
            && let Some(count) = self.count(cluster, pod)
        {
            *count -= 1;
        }
    }

    /// Changes the number of pods that the owner of a pod wants: up by `replicas`, or down if `replicas` is negative.
    pub fn surge(&mut self, cluster: &Cluster, pod: &Pod, replicas: i32) {
        let Some(owner) = &pod.owner else { return };
        *self.surges.entry(owner.uid.clone()).or_default() += replicas;
        if replicas > 0
            && let Some(count) = self.count(cluster, pod)
        {
            *count = count.saturating_add(replicas);
        }
    }

    /// Returns whether the pod's owner creates another pod, and counts the new pod.
    pub fn recreate(&mut self, cluster: &Cluster, pod: &Pod) -> bool {
        let surge = pod.owner.as_ref().and_then(|owner| self.surges.get(&owner.uid)).copied();
        let Some(count) = self.count(cluster, pod) else { return false };
        let creates = owner::creates_replacement(cluster, pod, count.saturating_sub(surge.unwrap_or(0)));
        if creates {
            *count = count.saturating_add(1);
        }
        creates
    }
}

/// The replacements of leaving pods, by the pod that is replaced.
#[derive(Clone, Debug, Default)]
pub struct PlacedReplacements {
    pub by_pod: BTreeMap<Key, Replacement>,
    /// For a replaced pod, the pod of a lower ordinal that must be available before the StatefulSet creates the
    /// replacement.
    pub waits_for: BTreeMap<Key, Key>,
    pub trace: RunTrace,
}

/// Returns the replacements of leaving pods.
///
/// Departures and replacements happen in order of time, so that each placement takes earlier ones into account. If a
/// quota refuses a replacement at first, the replacement is created when the quota admits it. A replacement that finds
/// no node is tried again whenever old pods are gone.
pub fn replacements<E: Environment>(
    cluster: &Cluster,
    departures: &[Departure],
    refusals: &BTreeMap<Key, QuotaRefusal>,
    environment: E,
) -> PlacedReplacements {
    let mut run = ReplacementRun {
        cluster,
        environment,
        agenda: BTreeMap::new(),
        live_pods: LivePods::default(),
        leaving: departures.iter().map(|departure| &departure.pod.key).collect(),
        ordered: Vec::new(),
        pending: Vec::new(),
        found: PlacedReplacements::default(),
    };
    run.schedule_departures(departures, refusals);
    while let Some(((now, _, _), event)) = run.agenda.pop_first() {
        run.on_event(event, now);
    }
    run.found.trace = run.environment.trace();
    run.found
}

/// An event of a [`ReplacementRun`].
#[derive(Clone, Copy, Debug)]
enum Event<'a> {
    /// The pod's deletion starts.
    Leaves(&'a Arc<Pod>),
    Gone(&'a Arc<Pod>),
    /// The scheduler tries the Pending replacements again.
    Retry,
    /// The owner of this pod may create a replacement.
    Created(&'a Arc<Pod>),
    /// The replacement of a pod is Ready.
    Ready,
}

/// Sort key of events at the same time: by kind of event, then by descending priority of the pod or of its replacement.
type Order = (u8, Reverse<i32>);

impl Event<'_> {
    fn order(&self, cluster: &Cluster) -> Order {
        match self {
            Self::Leaves(pod) => (1, Reverse(pod.priority)),
            Self::Gone(pod) => (2, Reverse(pod.priority)),
            Self::Retry => (3, Reverse(0)),
            Self::Ready => (4, Reverse(0)),
            Self::Created(pod) => (5, successor::by_priority(cluster, pod)),
        }
    }
}

/// The departures of pods and the creation of their replacements, in the order of time.
struct ReplacementRun<'a, E> {
    cluster: &'a Cluster,
    environment: E,
    /// Departures and replacements that have not happened yet. Events with the same time and [`Order`] are in the order
    /// in which they were scheduled.
    agenda: BTreeMap<(Timestamp, Order, usize), Event<'a>>,
    live_pods: LivePods,
    leaving: BTreeSet<&'a Key>,
    /// Pods whose replacements wait for pods of lower ordinals.
    ordered: Vec<&'a Arc<Pod>>,
    /// Pods whose replacements have nowhere to run yet.
    pending: Vec<&'a Arc<Pod>>,
    found: PlacedReplacements,
}

impl<'a, E: Environment> ReplacementRun<'a, E> {
    fn schedule(&mut self, at: Timestamp, event: Event<'a>) {
        let order = event.order(self.cluster);
        let same = self.agenda.range((at, order, 0)..=(at, order, usize::MAX)).next_back();
        let place = same.map_or(0, |((_, _, place), _)| place + 1);
        self.agenda.insert((at, order, place), event);
    }

    fn schedule_departures(&mut self, departures: &'a [Departure], refusals: &BTreeMap<Key, QuotaRefusal>) {
        let jobs = JobConsequences::new(self.cluster, departures);
        for Departure { pod, leaves, gone, .. } in departures {
            let created = jobs.creation(self.cluster, pod, *leaves, *gone);
            let created = match refusals.get(&pod.key) {
                Some(refusal) => refusal.admitted,
                None => created,
            };
            if pod.termination.is_none() {
                self.schedule(*leaves, Event::Leaves(pod));
            }
            if let Some(at) = gone {
                self.schedule(*at, Event::Gone(pod));
            }
            if let Some(at) = created {
                self.schedule(at, Event::Created(pod));
            }
        }
    }

    fn on_event(&mut self, event: Event<'a>, now: Timestamp) {
        match event {
            Event::Leaves(pod) => {
                self.environment.on_deletion(pod);
                self.live_pods.on_deletion(self.cluster, pod);
            }
            Event::Gone(pod) => {
                self.environment.on_gone(pod);
                self.schedule_retry(now);
            }
            Event::Retry => self.retry(now),
            Event::Created(pod) => self.on_created(pod, now),
            Event::Ready => {
                for pod in std::mem::take(&mut self.ordered) {
                    self.schedule(now, Event::Created(pod));
                }
            }
        }
    }

    /// Schedules a retry of the Pending replacements, once for all pods that are gone at this time.
    fn schedule_retry(&mut self, now: Timestamp) {
        let order = Event::Retry.order(self.cluster);
        self.agenda.insert((now, order, 0), Event::Retry);
    }

    fn retry(&mut self, now: Timestamp) {
        for pod in std::mem::take(&mut self.pending) {
            let Some(new) = self.found.by_pod.get_mut(&pod.key) else { continue };
            if new.retry(&mut self.environment, pod, &BTreeSet::new(), Bound::Likely, now) {
                let ready = new.ready;
                self.schedule_ready(ready);
            } else {
                self.pending.push(pod);
            }
        }
    }

    fn on_created(&mut self, pod: &'a Arc<Pod>, now: Timestamp) {
        if let Some((lower, available)) = self.unavailable_below(pod, now) {
            self.found.waits_for.insert(pod.key.clone(), lower);
            return match available {
                Some(at) => self.schedule(at, Event::Created(pod)),
                None => self.ordered.push(pod),
            };
        }
        self.found.waits_for.remove(&pod.key);
        if !self.live_pods.recreate(self.cluster, pod) {
            return;
        }
        let new = Replacement::create(&mut self.environment, pod, &BTreeSet::new(), Bound::Likely, now);
        match new.landing.has_nowhere_to_run() {
            true => self.pending.push(pod),
            false => self.schedule_ready(new.ready),
        }
        self.found.by_pod.insert(pod.key.clone(), new);
    }

    fn schedule_ready(&mut self, ready: Option<Timestamp>) {
        if let Some(at) = ready {
            self.schedule(at, Event::Ready);
        }
    }

    /// Returns the first unavailable pod for which the StatefulSet of `pod` waits, and the time at which this
    /// unavailable pod becomes available. The time is `None` if the unavailable pod is not Ready.
    fn unavailable_below(&self, pod: &Pod, now: Timestamp) -> Option<(Key, Option<Timestamp>)> {
        let ready_since = |lower: &LowerPod<'_>| match self.found.by_pod.get(&lower.key) {
            Some(new) => new.ready.filter(|at| *at <= now),
            None => lower.ready_since(self.cluster).filter(|_| !self.leaving.contains(&lower.key)),
        };
        let mut below = owner::created_after(self.cluster, pod).map(|lower| {
            let available = ready_since(&lower).map(|since| since + lower.min_ready);
            (lower.key, available)
        });
        below.find(|(_, available)| available.is_none_or(|at| at > now))
    }
}
