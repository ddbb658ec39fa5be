//! Evictions that the controller holds back because of their zone's limit per minute, or while the watch of pods is not
//! live.
//!
//! A held eviction is not lost. It is released as soon as possible, unless the pod need not be evicted any more.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use kordon_core::{
    cluster::{Cluster, ZoneKey},
    engine::{Deletion, Effect, EffectId, Tolerance, Write, no_execute, tolerance},
};
use kordon_time::{Span, Timestamp};

/// Period for which the limit of evictions in a zone applies.
const MINUTE: Span = Span::from_secs(60);

/// Delay before the first retry of a failed eviction. The delay doubles with each failure, up to `LONGEST_PAUSE`.
const FIRST_PAUSE: Span = Span::from_secs(1);
const LONGEST_PAUSE: Span = Span::from_secs(30);

/// Evictions that the controller holds back, with the times of recent evictions, which count towards the limit.
#[derive(Clone, Debug, Default)]
pub struct HeldEvictions {
    /// Maximum number of pods that are evicted in each zone per minute; `None` for no limit.
    limit: Option<usize>,
    /// Held evictions, in the order of their decisions.
    waiting: VecDeque<Effect>,
    /// Times of the evictions of the last minute, by zone, without retries. While a zone has `limit` entries, no
    /// further eviction is released in this zone.
    evicted: BTreeMap<ZoneKey, VecDeque<Timestamp>>,
    overruns: u64,
    /// Failed evictions, each with the time of its next retry.
    retries: Vec<(Timestamp, Effect)>,
    /// Number of failures of each eviction that has not succeeded yet.
    failures: BTreeMap<EffectId, u32>,
}

/// Whether the watch of pods shows their current state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodSight {
    Live,
    /// The watch of pods is not live. Pods may have changed unnoticed, so nothing is evicted.
    Stale,
}

impl HeldEvictions {
    pub fn set_limit(&mut self, limit: Option<usize>) {
        self.limit = limit;
    }

    /// Takes an eviction, and holds it until it is released.
    ///
    /// # Errors
    /// The effect is not an eviction. It is returned.
    pub fn take(&mut self, effect: Effect) -> Result<(), Box<Effect>> {
        if !is_eviction(&effect.write) {
            return Err(Box::new(effect));
        }
        self.waiting.push_back(effect);
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.retries.is_empty()
    }

    /// Takes a failed eviction, and retries it with exponential backoff. Returns false if the effect is not an
    /// eviction.
    pub fn retry(&mut self, effect: Option<Effect>, now: Timestamp) -> bool {
        let Some(effect) = effect.filter(|effect| is_eviction(&effect.write)) else { return false };
        let failures = self.failures.entry(effect.id).or_default();
        *failures += 1;
        let pause = (FIRST_PAUSE * (1 << (*failures - 1).min(6))).min(LONGEST_PAUSE);
        self.retries.push((now + pause, effect));
        true
    }

    /// Forgets the failures of an eviction that has ended without another failure.
    pub fn on_done(&mut self, id: EffectId) {
        self.failures.remove(&id);
    }

    /// Number of held evictions in each zone.
    pub fn waiting(&self, cluster: &Cluster) -> BTreeMap<ZoneKey, usize> {
        let mut counts = BTreeMap::new();
        for effect in self.waiting.iter().chain(self.retries.iter().map(|(_, effect)| effect)) {
            *counts.entry(zone_of(effect, cluster)).or_default() += 1;
        }
        counts
    }

    /// Number of times that a zone reached its limit of evictions per minute while more of its evictions were held
    /// back.
    pub const fn overruns(&self) -> u64 {
        self.overruns
    }

    /// Removes and returns the held evictions that are no longer needed.
    pub fn withdraw(&mut self, cluster: &Cluster) -> Vec<Effect> {
        if self.is_empty() {
            return Vec::new();
        }
        let (retries, not_retried): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.retries).into_iter().partition(|(_, effect)| is_wanted(effect, cluster));
        self.retries = retries;
        let (wanted, gone) =
            std::mem::take(&mut self.waiting).into_iter().partition(|effect| is_wanted(effect, cluster));
        self.waiting = wanted;
        let withdrawn: Vec<Effect> =
            gone.into_iter().chain(not_retried.into_iter().map(|(_, effect)| effect)).collect();
        for effect in &withdrawn {
            self.failures.remove(&effect.id);
        }
        withdrawn
    }

    /// Returns the evictions to execute now. Also returns the zones that have just reached their limit and still have
    /// held evictions.
    pub fn release(
        &mut self,
        cluster: &Cluster,
        sight: PodSight,
        now: Timestamp,
    ) -> (Vec<Effect>, Vec<ZoneKey>) {
        if self.is_empty() || sight == PodSight::Stale {
            return (Vec::new(), Vec::new());
        }
        // Retries ignore the limit, because the limit has counted their first attempts.
        let (due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.retries).into_iter().partition(|(at, _)| *at <= now);
        self.retries = later;
        let mut released: Vec<Effect> = due.into_iter().map(|(_, effect)| effect).collect();
        let Some(limit) = self.limit else {
            released.extend(std::mem::take(&mut self.waiting));
            return (released, Vec::new());
        };
        for times in self.evicted.values_mut() {
            while times.front().is_some_and(|at| now.since(*at) >= MINUTE) {
                times.pop_front();
            }
        }
        let mut full = Vec::new();
        for effect in std::mem::take(&mut self.waiting) {
            let zone = zone_of(&effect, cluster);
            let times = self.evicted.entry(zone.clone()).or_default();
            if times.len() < limit {
                times.push_back(now);
                released.push(effect);
                if times.len() == limit {
                    full.push(zone);
                }
            } else {
                self.waiting.push_back(effect);
            }
        }
        full.retain(|zone| self.waiting.iter().any(|effect| zone_of(effect, cluster) == *zone));
        self.overruns += full.len() as u64;
        (released, full)
    }

    /// Earliest time at which an eviction that waits for the limit or a backoff can be released; `None` if no eviction
    /// waits for them.
    pub fn next(&self, cluster: &Cluster) -> Option<Timestamp> {
        let retry = self.retries.iter().map(|(at, _)| *at).min();
        [retry, self.next_below_limit(cluster)].into_iter().flatten().min()
    }

    fn next_below_limit(&self, cluster: &Cluster) -> Option<Timestamp> {
        let limit = self.limit?;
        let free = |zone: ZoneKey| {
            let times = self.evicted.get(&zone)?;
            let oldest = times.front().filter(|_| times.len() >= limit)?;
            Some(*oldest + MINUTE)
        };
        let zones: BTreeSet<ZoneKey> = self.waiting.iter().map(|effect| zone_of(effect, cluster)).collect();
        zones.into_iter().filter_map(free).min()
    }
}

/// Whether the write is a deletion by taint eviction, or by the node lifecycle controller in legacy mode.
const fn is_eviction(write: &Write) -> bool {
    match write {
        Write::DeletePod { deletion, .. } => match deletion {
            Deletion::ByTaint { .. } | Deletion::WithNode { .. } => true,
            Deletion::Collected { .. } => false,
        },
        Write::MarkUnknown { .. }
        | Write::SwapTaints { .. }
        | Write::SetLabels { .. }
        | Write::MarkPodNotReady { .. }
        | Write::MarkPodLost { .. }
        | Write::RecordEvent(_) => false,
    }
}

/// Returns the zone of the pod's node; the default zone if the node does not exist.
fn zone_of(effect: &Effect, cluster: &Cluster) -> ZoneKey {
    match &effect.write {
        Write::DeletePod { node, .. } => cluster.node(node).map(|node| node.zone()).unwrap_or_default(),
        _ => ZoneKey::default(),
    }
}

/// Whether the pod still exists and must still be evicted. This includes a pod that is already terminating: upstream's
/// taint eviction controller also marks such a pod, and deleting it again changes nothing.
fn is_wanted(effect: &Effect, cluster: &Cluster) -> bool {
    let Write::DeletePod { pod, uid, node, deletion } = &effect.write else { return true };
    let Some(pod) = cluster.pod(pod).filter(|pod| pod.uid == *uid) else { return false };
    // The node is gone, but the eviction timers of its pods remain (docs/upstream/node-lifecycle.md#12.35).
    let Some(node) = cluster.node(node) else { return true };
    match deletion {
        Deletion::ByTaint { .. } => {
            let taints = no_execute(node);
            !taints.is_empty() && tolerance(&pod.tolerations, &taints) != Tolerance::Forever
        }
        Deletion::WithNode { .. } => !node.is_ready() && pod.termination.is_none(),
        Deletion::Collected { .. } => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kordon_core::{
        cluster::{Change, Key, Node, ObjectEvent, Pod, Taint, TaintEffect, Termination},
        engine::{Cause, EffectId, UNREACHABLE},
    };
    use kordon_time::ClusterTime;

    const START: Timestamp = Timestamp::from_secs(1_800_000_000);

    fn after(secs: i64) -> Timestamp {
        START + Span::from_secs(secs)
    }

    /// Returns a cluster with a tainted node and the pods `p0`, `p1`, …
    fn cluster(pods: usize) -> Cluster {
        let mut cluster = Cluster::default();
        apply(&mut cluster, Change::Node(ObjectEvent::Applied(node(true))));
        for number in 0..pods {
            let pod = Pod {
                key: Key::new("shop", &format!("p{number}")),
                uid: format!("u{number}").as_str().into(),
                node: Some("n1".into()),
                ..Pod::default()
            };
            apply(&mut cluster, Change::Pod(ObjectEvent::Applied(pod)));
        }
        cluster
    }

    fn node(is_tainted: bool) -> Node {
        let taint = Taint { key: UNREACHABLE.into(), effect: TaintEffect::NoExecute, ..Taint::default() };
        let taints: Vec<Taint> = is_tainted.then_some(taint).into_iter().collect();
        Node { name: "n1".into(), taints: taints.into(), ..Node::default() }
    }

    fn apply(cluster: &mut Cluster, change: Change) {
        cluster.apply(change, &mut Vec::new());
    }

    fn eviction(number: usize) -> Effect {
        let write = Write::DeletePod {
            pod: Key::new("shop", &format!("p{number}")),
            uid: format!("u{number}").as_str().into(),
            node: "n1".into(),
            deletion: Deletion::ByTaint { disruption_target: true },
        };
        Effect { id: EffectId(number as u64), at: START, write, why: Cause::NodeNotReady.into() }
    }

    fn held(limit: Option<usize>, evictions: usize) -> HeldEvictions {
        let mut held = HeldEvictions::default();
        held.set_limit(limit);
        for number in 0..evictions {
            held.take(eviction(number)).expect("an eviction");
        }
        held
    }

    fn ids(effects: &[Effect]) -> Vec<u64> {
        effects.iter().map(|effect| effect.id.0).collect()
    }

    #[test]
    fn evictions_above_the_limit_wait_for_a_minute_and_none_is_lost() {
        let (cluster, mut held) = (cluster(5), held(Some(2), 5));
        let (released, full) = held.release(&cluster, PodSight::Live, after(0));
        assert_eq!((ids(&released), full.len()), (vec![0, 1], 1));
        assert_eq!(held.next(&cluster), Some(after(60)));
        assert_eq!(held.release(&cluster, PodSight::Live, after(59)), (Vec::new(), Vec::new()), "said once");
        let (released, _) = held.release(&cluster, PodSight::Live, after(60));
        assert_eq!(ids(&released), [2, 3]);
        let (released, full) = held.release(&cluster, PodSight::Live, after(120));
        assert_eq!((ids(&released), full.len(), held.is_empty()), (vec![4], 0, true));
        assert_eq!(held.overruns(), 2);
    }

    #[test]
    fn an_eviction_that_failed_is_tried_again_until_it_is_done_or_not_wanted() {
        let (mut cluster, mut held) = (cluster(1), held(None, 1));
        let (mut now, mut pauses) = (START, Vec::new());
        for _ in 0..7 {
            let (mut released, _) = held.release(&cluster, PodSight::Live, now);
            assert!(held.retry(released.pop(), now));
            let next = held.next(&cluster).expect("it is tried again");
            pauses.push(next.since(now).as_secs());
            now = next;
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
        apply(&mut cluster, Change::Pod(ObjectEvent::Deleted(Key::new("shop", "p0"))));
        assert_eq!((ids(&held.withdraw(&cluster)), held.next(&cluster)), (vec![0], None));
    }

    #[test]
    fn nobody_is_evicted_while_pods_are_stale() {
        let (cluster, mut held) = (cluster(2), held(None, 2));
        assert_eq!(held.release(&cluster, PodSight::Stale, after(0)).0, []);
        assert_eq!(ids(&held.release(&cluster, PodSight::Live, after(9)).0), [0, 1]);
    }

    #[test]
    fn a_terminating_pod_is_evicted_too() {
        let (mut cluster, mut held) = (cluster(1), held(None, 1));
        let pod = cluster.pod(&Key::new("shop", "p0")).expect("a pod");
        let termination = Termination { deadline: ClusterTime::new(after(60)), grace: Span::from_secs(60) };
        let terminating = Pod { termination: Some(termination.into()), ..(**pod).clone() };
        apply(&mut cluster, Change::Pod(ObjectEvent::Applied(terminating)));
        assert_eq!(held.withdraw(&cluster), []);
        assert_eq!(ids(&held.release(&cluster, PodSight::Live, after(0)).0), [0]);
    }

    #[test]
    fn an_eviction_whose_reason_has_gone_waits_no_longer() {
        let (mut cluster, mut held) = (cluster(3), held(Some(1), 3));
        held.release(&cluster, PodSight::Live, after(0));
        assert_eq!(held.withdraw(&cluster), []);
        apply(&mut cluster, Change::Pod(ObjectEvent::Deleted(Key::new("shop", "p1"))));
        assert_eq!(ids(&held.withdraw(&cluster)), [1]);
        apply(&mut cluster, Change::Node(ObjectEvent::Applied(node(false))));
        assert_eq!(ids(&held.withdraw(&cluster)), [2]);
        assert!(held.is_empty());
    }
}
