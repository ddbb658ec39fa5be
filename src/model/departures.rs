//! The pods that left in the last two hours. Each departure has a cause and the component that removed the pod. The
//! departures of each kind are also counted by minute.

use std::{collections::VecDeque, sync::Arc};

use super::revisions::ChangeCount;
use crate::k8s::feed::FeedState;
use kordon_core::{
    cluster::{Applied, Cluster, ClusterEvent, Delta, Key, NodeName, Owner, Pod, Uid, cow_map::CowMap},
    why::departure::{DepartureKind, EvidenceSource, PodDeparture, PodPresence, departed_at},
};
use kordon_time::{ClusterTime, Span, Timestamp};

/// Time for which a departure is kept.
const KEPT_FOR: Span = Span::from_secs(2 * 3600);

/// Maximum number of departures that are kept. Departures of completed pods are dropped first, then the oldest ones.
/// The counts by minute remain.
const CAPACITY: usize = 4000;

const MINUTE: Span = Span::from_secs(60);

/// Identifies a departure. Ids sort by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DepartureId(Timestamp, u64);

impl DepartureId {
    /// Time at which the departure began or was noticed.
    pub const fn at(self) -> Timestamp {
        self.0
    }

    /// Returns an id that sorts before the ids of all departures at this time.
    pub(super) const fn first_at(at: Timestamp) -> Self {
        Self(at, 0)
    }
}

/// A pod that left or is leaving.
#[derive(Clone, Debug, PartialEq)]
pub struct DepartureEntry {
    pub pod: Key,
    pub uid: Uid,
    pub node: Option<NodeName>,
    pub owner: Option<Arc<Owner>>,
    /// `metadata.creationTimestamp` of the pod.
    pub created: ClusterTime,
    /// Time at which the pod finished or its deletion began, whichever was earlier; `None` if unknown.
    pub at: Option<Timestamp>,
    pub stage: DepartureStage,
    pub departure: PodDeparture,
}

/// Stage of a departure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DepartureStage {
    Terminating,
    /// The pod has Succeeded or Failed, and its object remains.
    Finished,
    /// The pod's object was removed at the time `at`.
    Gone {
        at: Timestamp,
    },
    /// The pod still runs; one of its containers was OOM-killed and restarted.
    Restarted,
}

/// The departures of the last two hours. Clones share the entries.
#[derive(Clone, Debug, Default)]
pub struct Departures {
    entries: CowMap<DepartureId, Arc<DepartureEntry>>,
    /// The newest departure of each pod.
    by_pod: CowMap<Key, DepartureId>,
    /// Number of departures of each kind in each minute, oldest minute first.
    minutes: VecDeque<Minute>,
    /// Number of all departures so far, which makes their ids unique.
    count: u64,
    /// Revision of the kept departures: the number of changes to them.
    revision: ChangeCount,
}

#[derive(Clone, Copy, Debug)]
struct Minute {
    /// The minute, as a number of minutes since the Unix epoch.
    number: i64,
    counts: [u32; DepartureKind::ALL.len()],
}

impl DepartureEntry {
    fn new(pod: &Pod, at: Option<Timestamp>, stage: DepartureStage, departure: PodDeparture) -> Self {
        Self {
            pod: pod.key.clone(),
            uid: pod.uid.clone(),
            node: pod.node.clone(),
            owner: pod.owner.clone(),
            created: pod.created,
            at,
            stage,
            departure,
        }
    }
}

impl DepartureStage {
    fn from_pod(pod: &Pod) -> Self {
        if pod.termination.is_some() { Self::Terminating } else { Self::Finished }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Terminating => "terminating",
            Self::Finished => "finished",
            Self::Gone { .. } => "gone",
            Self::Restarted => "restarted",
        }
    }
}

impl Departures {
    /// Records a change of a pod. Returns the id of the pod's departure if the departure is new or its kind has
    /// changed.
    ///
    /// `feed` is the state of the watch of pods. If the watch is not live, the time at which missing pods left is
    /// unknown.
    pub fn on_applied(
        &mut self,
        applied: &Applied,
        cluster: &Cluster,
        feed: Option<&FeedState>,
        now: Timestamp,
    ) -> Option<DepartureId> {
        let Applied::Pod(Delta { old, new }) = applied else { return None };
        let removed = match feed {
            Some(FeedState::Live) | None => PodPresence::Gone,
            Some(_) => PodPresence::Missed,
        };
        match (old.as_deref(), new.as_deref()) {
            (Some(old), Some(new)) if old.uid == new.uid => self.on_change(Some(old), new, cluster, now),
            (Some(old), Some(new)) => {
                let removed = self.on_removal(old, removed, cluster, now);
                self.on_change(None, new, cluster, now).or(removed)
            }
            (None, Some(new)) => self.on_change(None, new, cluster, now),
            (Some(old), None) => self.on_removal(old, removed, cluster, now),
            (None, None) => None,
        }
    }

    /// Returns the departure of a pod that still exists, with the component that removes it. The evidence is the
    /// cluster and the given Events about the pod and its owner. `None` for a pod that is not leaving.
    pub fn classify(&self, pod: &Pod, cluster: &Cluster, events: &[ClusterEvent]) -> Option<DepartureEntry> {
        let entry = |at, stage, departure| DepartureEntry::new(pod, at, stage, departure);
        if let Some((killed, at)) = PodDeparture::oom_kill(pod) {
            return Some(entry(at.map(|at| cluster.local(at)), DepartureStage::Restarted, killed));
        }
        let departure = PodDeparture::new(pod, PodPresence::Present, cluster, events)?;
        // An earlier record of this departure may have evidence that is no longer in the cluster.
        let seen = self.known(pod).and_then(|id| self.entry(id));
        if let Some(seen) = seen.filter(|seen| !tells_more(&departure, &seen.departure)) {
            return Some(seen.clone());
        }
        let at = departed_at(pod, cluster).or(seen.and_then(|seen| seen.at));
        Some(entry(at, DepartureStage::from_pod(pod), departure))
    }

    /// Drops departures and counts by minute that are older than two hours.
    pub fn expire(&mut self, now: Timestamp) {
        while let Some(oldest) = self.oldest().filter(|oldest| !is_recent(oldest.0, now)) {
            self.drop_entry(oldest);
        }
        let first = minute(now) - KEPT_FOR.as_secs() / MINUTE.as_secs();
        while self.minutes.front().is_some_and(|oldest| oldest.number < first) {
            self.minutes.pop_front();
        }
    }

    /// Returns the kept departures for which `keep` returns true, with their own counts.
    pub fn only(&self, keep: impl Fn(&DepartureEntry) -> bool) -> Self {
        let mut only = Self::default();
        for (id, entry) in self.entries.iter().filter(|(_, entry)| keep(entry)) {
            only.add_to_minute(id.at(), entry.departure.kind, 1);
            only.entries.insert(*id, entry.clone());
        }
        only
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Revision of the kept departures. It changes whenever they change.
    pub const fn revision(&self) -> u64 {
        self.revision.get()
    }

    /// Adds an offset to the revision of the departures, so that it differs from their revisions at other moments of a
    /// playback.
    pub(super) const fn set_apart(&mut self, moment: u64) {
        self.revision.set_apart(moment);
    }

    /// Number of departures in the last two hours, including those whose entries were dropped.
    pub fn total(&self) -> usize {
        self.minutes.iter().flat_map(|minute| minute.counts).map(|count| count as usize).sum()
    }

    /// Returns the departures, newest first.
    pub fn newest(&self) -> impl Iterator<Item = (DepartureId, &DepartureEntry)> {
        self.entries.iter().rev().map(|(id, entry)| (*id, &**entry))
    }

    /// Time at which a pod of this node last began to leave; `None` if no pod of the node has left.
    pub fn last_of_node(&self, node: &NodeName) -> Option<Timestamp> {
        let of_node = self.newest().find(|(_, entry)| entry.node.as_ref() == Some(node));
        of_node.map(|(id, entry)| entry.at.unwrap_or(id.at()))
    }

    pub fn entry(&self, id: DepartureId) -> Option<&DepartureEntry> {
        self.entries.get(&id).map(|entry| &**entry)
    }

    /// Returns the newest departure of a pod of this name.
    pub fn of_pod(&self, pod: &Key) -> Option<&DepartureEntry> {
        self.entry(*self.by_pod.get(pod)?)
    }

    /// Returns the kinds of departures that have occurred, with their counts. Kinds that need attention come first.
    pub fn counts(&self) -> Vec<(DepartureKind, usize)> {
        let of = |kind: DepartureKind| {
            self.minutes.iter().map(|minute| minute.counts[kind as usize] as usize).sum::<usize>()
        };
        DepartureKind::ALL.into_iter().map(|kind| (kind, of(kind))).filter(|(_, count)| *count > 0).collect()
    }

    /// Returns the number of departures in each of the last `minutes`, the current minute last. Counts only departures
    /// of `kind`, or of all kinds if `kind` is `None`.
    pub fn per_minute(&self, kind: Option<DepartureKind>, minutes: usize, now: Timestamp) -> Vec<u32> {
        let mut counts = vec![0; minutes];
        let last = minute(now);
        for minute in self.minutes.iter().rev() {
            let Ok(age) = usize::try_from(last - minute.number) else { continue };
            let Some(place) = minutes.checked_sub(age + 1) else { break };
            counts[place] = match kind {
                Some(kind) => minute.counts[kind as usize],
                None => minute.counts.iter().sum(),
            };
        }
        counts
    }

    fn on_change(
        &mut self,
        old: Option<&Pod>,
        new: &Pod,
        cluster: &Cluster,
        now: Timestamp,
    ) -> Option<DepartureId> {
        if new.lives() {
            return self.on_restart(old, new, cluster, now);
        }
        let stated = |pod: &Pod| {
            let Pod { termination, phase, reason, disruption_target, ending, .. } = pod;
            (termination.clone(), *phase, reason.clone(), disruption_target.clone(), ending.clone())
        };
        if old.is_some_and(|old| stated(old) == stated(new)) {
            return None;
        }
        // If the pod had already left when it was first seen, the time of its departure is known only if the pod's
        // object states it.
        let at = departed_at(new, cluster).or(old.map(|_| now));
        // To save time, pods that finished long ago are not classified: a list may have thousands of them.
        if self.known(new).is_none() && !at.is_some_and(|at| is_recent(at, now)) {
            return None;
        }
        let departure = PodDeparture::new(new, PodPresence::Present, cluster, &[])?;
        self.record(new, at, DepartureStage::from_pod(new), departure, now)
    }

    /// Records that a container was OOM-killed and restarted.
    fn on_restart(
        &mut self,
        old: Option<&Pod>,
        new: &Pod,
        cluster: &Cluster,
        now: Timestamp,
    ) -> Option<DepartureId> {
        let (departure, at) = PodDeparture::oom_kill(new)?;
        let before = old.and_then(PodDeparture::oom_kill).map(|(_, at)| at);
        if before == Some(at) {
            return None;
        }
        let at = at.map(|at| cluster.local(at)).or(old.map(|_| now));
        let at = at.filter(|at| is_recent(*at, now))?;
        Some(self.insert(new, at.min(now), DepartureStage::Restarted, departure, now))
    }

    fn on_removal(
        &mut self,
        pod: &Pod,
        presence: PodPresence,
        cluster: &Cluster,
        now: Timestamp,
    ) -> Option<DepartureId> {
        let stage = DepartureStage::Gone { at: now };
        let finished = pod.is_finished() && pod.termination.is_none();
        if let Some(known) = self.known(pod)
            && finished
        {
            // The departure began when the pod finished. Now only the pod's object is deleted.
            if let Some(entry) = self.entries.get_mut(&known) {
                Arc::make_mut(entry).stage = stage;
                self.revision.count(true);
            }
            None
        } else if !finished && let Some(departure) = PodDeparture::new(pod, presence, cluster, &[]) {
            let began = departed_at(pod, cluster).filter(|began| is_recent(*began, now));
            self.record(pod, Some(began.unwrap_or(now)), stage, departure, now)
        } else {
            None
        }
    }

    /// Returns the id of the departure of this pod, if it has begun. Pods are compared by UID.
    fn known(&self, pod: &Pod) -> Option<DepartureId> {
        let id = *self.by_pod.get(&pod.key)?;
        let entry = self.entries.get(&id)?;
        (entry.uid == pod.uid && entry.stage != DepartureStage::Restarted).then_some(id)
    }

    /// Records a departure, or updates a known one. Returns its id if the departure is new or its kind has changed.
    fn record(
        &mut self,
        pod: &Pod,
        at: Option<Timestamp>,
        stage: DepartureStage,
        departure: PodDeparture,
        now: Timestamp,
    ) -> Option<DepartureId> {
        let Some(known) = self.known(pod) else {
            let at = at.filter(|at| is_recent(*at, now))?;
            return Some(self.insert(pod, at.min(now), stage, departure, now));
        };
        let entry = self.entries.get_mut(&known).map(Arc::make_mut)?;
        self.revision.count(true);
        entry.stage = stage;
        if tells_more(&departure, &entry.departure) {
            let before = std::mem::replace(&mut entry.departure, departure).kind;
            let after = entry.departure.kind;
            self.add_to_minute(known.0, before, -1);
            self.add_to_minute(known.0, after, 1);
            return (before != after).then_some(known);
        }
        None
    }

    fn insert(
        &mut self,
        pod: &Pod,
        at: Timestamp,
        stage: DepartureStage,
        departure: PodDeparture,
        now: Timestamp,
    ) -> DepartureId {
        self.count += 1;
        self.revision.count(true);
        let id = DepartureId(at, self.count);
        self.add_to_minute(at, departure.kind, 1);
        self.by_pod.insert(pod.key.clone(), id);
        self.entries.insert(id, DepartureEntry::new(pod, Some(at), stage, departure).into());
        if self.entries.len() > CAPACITY {
            let completed = self.entries.iter().find(|(_, entry)| is_completion(entry.departure.kind));
            let least = completed.map(|(id, _)| *id).or_else(|| self.oldest());
            least.into_iter().for_each(|id| self.drop_entry(id));
        }
        self.expire(now);
        id
    }

    fn oldest(&self) -> Option<DepartureId> {
        self.entries.keys().next().copied()
    }

    fn drop_entry(&mut self, id: DepartureId) {
        let Some(entry) = self.entries.remove(&id) else { return };
        self.revision.count(true);
        if self.by_pod.get(&entry.pod) == Some(&id) {
            self.by_pod.remove(&entry.pod);
        }
    }

    fn add_to_minute(&mut self, at: Timestamp, kind: DepartureKind, count: i32) {
        let number = minute(at);
        let place = self.minutes.partition_point(|minute| minute.number < number);
        if self.minutes.get(place).is_none_or(|minute| minute.number != number) {
            self.minutes.insert(place, Minute { number, counts: Default::default() });
        }
        let counted = &mut self.minutes[place].counts[kind as usize];
        *counted = counted.saturating_add_signed(count);
    }
}

/// Whether a newer classification of a departure replaces an older one. A classification that rests on the deletion
/// alone does not replace one that has other evidence.
fn tells_more(new: &PodDeparture, old: &PodDeparture) -> bool {
    let is_fallback = |departure: &PodDeparture| {
        departure.evidence.first().is_none_or(|evidence| evidence.source == EvidenceSource::Deletion)
    };
    let is_same = (new.kind, new.certainty) == (old.kind, old.certainty);
    match is_same {
        true => new.evidence.len() >= old.evidence.len(),
        false => new.certainty >= old.certainty && (!is_fallback(new) || is_fallback(old)),
    }
}

/// Whether a departure at this time is recent enough to be kept.
fn is_recent(at: Timestamp, now: Timestamp) -> bool {
    now.since(at) <= KEPT_FOR
}

const fn is_completion(kind: DepartureKind) -> bool {
    matches!(kind, DepartureKind::JobCompletion | DepartureKind::Completion)
}

fn minute(at: Timestamp) -> i64 {
    at.as_nanos().div_euclid(MINUTE.as_nanos())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use kordon_core::{
        cluster::{ContainerExit, Phase, PodEnding, Termination},
        why::departure::DepartureCertainty,
    };

    const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

    fn at(secs: i64) -> Timestamp {
        NOW + Span::from_secs(secs)
    }

    fn running(name: &str) -> Pod {
        let uid = format!("uid-{name}").as_str().into();
        Pod { key: Key::new("shop", name), uid, phase: Phase::Running, ..Pod::default() }
    }

    fn terminating(pod: &Pod, since: i64, reason: Option<&str>) -> Pod {
        let grace = Span::from_secs(30);
        let termination =
            Some(Box::new(Termination { deadline: ClusterTime::new(at(since)) + grace, grace }));
        Pod { termination, disruption_target: reason.map(Into::into), ..pod.clone() }
    }

    fn ended(pod: &Pod, phase: Phase, reason: &str, code: i32, secs: i64, restarted: bool) -> Pod {
        let exit = ContainerExit {
            container: "app".into(),
            reason: reason.into(),
            code,
            at: Some(ClusterTime::new(at(secs))),
            restarted,
        };
        let ending = PodEnding { exits: [exit].into(), ..PodEnding::default() };
        Pod { phase, ending: Some(ending.into()), ..pod.clone() }
    }

    /// Records versions of one pod, each with its time in seconds. The version `None` means that the pod is removed.
    fn record(departures: &mut Departures, versions: &[(i64, Option<Pod>)]) {
        let mut old: Option<Arc<Pod>> = None;
        for (secs, version) in versions {
            let new = version.clone().map(Arc::new);
            let applied = Applied::Pod(Delta { old: old.take(), new: new.clone() });
            departures.on_applied(&applied, &Cluster::default(), Some(&FeedState::Live), at(*secs));
            old = new;
        }
    }

    fn listed(departures: &Departures) -> Vec<(String, DepartureKind, DepartureStage)> {
        departures
            .newest()
            .map(|(_, entry)| (entry.pod.name.to_string(), entry.departure.kind, entry.stage))
            .collect()
    }

    #[test]
    fn a_pod_leaves_once_however_often_it_changes() {
        let mut departures = Departures::default();
        let pod = running("web");
        let evicted = terminating(&pod, 10, Some("EvictionByEvictionAPI"));
        let failed = Pod { phase: Phase::Failed, ..evicted.clone() };
        let versions = [(0, Some(pod)), (10, Some(evicted)), (12, Some(failed)), (15, None)];
        record(&mut departures, &versions);
        let gone = DepartureStage::Gone { at: at(15) };
        assert_eq!(listed(&departures), [("web".into(), DepartureKind::ApiEviction, gone)]);
        assert_eq!(departures.counts(), [(DepartureKind::ApiEviction, 1)]);
        let entry = departures.of_pod(&Key::new("shop", "web")).expect("kept");
        assert_eq!((entry.at, entry.departure.certainty), (Some(at(10)), DepartureCertainty::Certain));
    }

    #[test]
    fn what_is_stated_later_replaces_a_guess_and_a_guess_replaces_nothing() {
        let mut departures = Departures::default();
        let (pod, other) = (running("web"), running("db"));
        let guessed = terminating(&pod, 10, None);
        let stated = terminating(&pod, 10, Some("DeletionByPodGC"));
        record(&mut departures, &[(0, Some(pod)), (10, Some(guessed)), (11, Some(stated))]);
        let stated = terminating(&other, 20, Some("DeletionByTaintManager"));
        let silent = terminating(&other, 20, None);
        record(&mut departures, &[(0, Some(other)), (20, Some(stated)), (21, Some(silent)), (22, None)]);
        let kinds: Vec<DepartureKind> = listed(&departures).into_iter().map(|(_, kind, _)| kind).collect();
        assert_eq!(kinds, [DepartureKind::TaintEviction, DepartureKind::GarbageCollection]);
        let expected = [(DepartureKind::TaintEviction, 1), (DepartureKind::GarbageCollection, 1)];
        assert_eq!(departures.counts(), expected, "a kind that was corrected is counted once");
    }

    #[test]
    fn a_pod_that_completed_does_not_leave_again_when_its_object_is_removed() {
        let mut departures = Departures::default();
        let pod = running("job");
        let done = ended(&pod, Phase::Succeeded, "Completed", 0, 10, false);
        let deleted = terminating(&done, 50, None);
        record(
            &mut departures,
            &[(0, Some(pod.clone())), (11, Some(done.clone())), (50, Some(deleted)), (52, None)],
        );
        let gone = DepartureStage::Gone { at: at(52) };
        assert_eq!(listed(&departures), [("job".into(), DepartureKind::Completion, gone)]);
        record(&mut departures, &[(100, None)]);
        assert_eq!(departures.total(), 1);
        let old = ended(&running("old"), Phase::Succeeded, "Completed", 0, -9000, false);
        record(&mut departures, &[(0, Some(old)), (60, None)]);
        assert_eq!(departures.total(), 1, "finished long before it was first seen");
    }

    #[test]
    fn a_pod_of_the_same_name_is_another_one() {
        let mut departures = Departures::default();
        let first = running("db-0");
        let second = Pod { uid: "second".into(), ..first.clone() };
        let ending = terminating(&first, 10, None);
        record(&mut departures, &[(0, Some(first)), (10, Some(ending)), (15, Some(second.clone()))]);
        let ending = terminating(&second, 30, None);
        record(&mut departures, &[(16, Some(second)), (30, Some(ending))]);
        let stages: Vec<DepartureStage> =
            listed(&departures).into_iter().map(|(_, _, stage)| stage).collect();
        assert_eq!(stages, [DepartureStage::Terminating, DepartureStage::Gone { at: at(15) }]);
    }

    #[test]
    fn each_kill_for_memory_is_counted_though_the_pod_stays() {
        let mut departures = Departures::default();
        let pod = running("web");
        let killed = |secs| ended(&pod, Phase::Running, "OOMKilled", 137, secs, true);
        let again = Pod { nominated: Some("b".into()), ..killed(10) };
        let versions =
            [(0, Some(pod.clone())), (11, Some(killed(10))), (12, Some(again)), (70, Some(killed(69)))];
        record(&mut departures, &versions);
        let row = || ("web".to_owned(), DepartureKind::OomKill, DepartureStage::Restarted);
        assert_eq!(listed(&departures), [row(), row()]);
    }

    #[test]
    fn pods_that_are_missing_after_the_watch_was_broken_are_only_possibly_deleted() {
        let mut departures = Departures::default();
        let pod = Arc::new(running("web"));
        let applied = Applied::Pod(Delta { old: Some(pod), new: None });
        let broken = FeedState::Connecting;
        departures.on_applied(&applied, &Cluster::default(), Some(&broken), at(10));
        let entry = departures.newest().next().expect("kept").1;
        assert_eq!(entry.departure.certainty, DepartureCertainty::Possible);
        assert!(entry.departure.reason().contains("watch"), "{}", entry.departure.reason());
    }

    #[test]
    fn departures_are_counted_by_kind_and_minute_and_kept_for_two_hours() {
        let mut departures = Departures::default();
        for (number, secs) in [0, 1, 61, 200].into_iter().enumerate() {
            let pod = running(&format!("web-{number}"));
            let reason = if secs == 61 { "PreemptionByScheduler" } else { "EvictionByEvictionAPI" };
            let ending = terminating(&pod, secs, Some(reason));
            record(&mut departures, &[(secs, Some(pod)), (secs, Some(ending))]);
        }
        let start = NOW.as_nanos().rem_euclid(MINUTE.as_nanos());
        assert_eq!(start, 0, "the test counts from a full minute");
        let shown = |kind| departures.per_minute(kind, 5, at(200));
        assert_eq!(shown(None), [0, 2, 1, 0, 1]);
        assert_eq!(shown(Some(DepartureKind::Preemption)), [0, 0, 1, 0, 0]);
        assert_eq!(departures.per_minute(None, 2, at(200)), [0, 1], "only what fits");
        departures.expire(at(7262));
        assert_eq!(departures.newest().count(), 1);
        departures.expire(at(9000));
        assert!(departures.is_empty());
        assert_eq!((departures.total(), departures.of_pod(&Key::new("shop", "web-3"))), (0, None));
    }

    #[test]
    fn completed_pods_make_room_before_others_do_and_the_counts_stay() {
        let mut departures = Departures::default();
        for number in 0..CAPACITY + 10 {
            let pod = running(&format!("web-{number:05}"));
            let left = if number % 100 == 50 {
                ended(&pod, Phase::Succeeded, "Completed", 0, 10, false)
            } else {
                terminating(&pod, 10, None)
            };
            record(&mut departures, &[(9, Some(pod)), (10, Some(left))]);
        }
        assert_eq!((departures.newest().count(), departures.total()), (CAPACITY, CAPACITY + 10));
        let first = departures.newest().last().expect("kept").1;
        assert_eq!(first.pod.name, *"web-00000", "pods that were removed are kept");
        assert_eq!(listed(&departures).iter().filter(|(_, kind, _)| is_completion(*kind)).count(), 30);
    }
}
