//! Plays a part of a recording and collects the content of a postmortem: events, affected objects, and the accuracy of
//! predictions.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{Read, Seek},
};

use super::replay::{Replay, look_after};
use crate::{
    model::{
        DepartureEntry, DepartureId, Model, Moment, MomentFinder, MomentKind, NodeState, VerdictLevel,
        moments::is_eviction,
    },
    recording::RecordingError,
};
use kordon_core::{
    cluster::{Cluster, Key, NodeName, OwnerKind, Uid, Version, WorkloadKind},
    forecast::accuracy::AccuracyReport,
    why::{Step, Tense, departure::DepartureKind},
};
use kordon_time::{Span, Timestamp};

/// Interval, in the recording's time, at which a forecast is made and the pods of workloads are counted.
const EVERY: Span = Span::from_secs(5);

/// Minimum duration of a reported outage of a workload. Shorter outages occur whenever pods start or are replaced.
const LEAST: Span = Span::from_secs(10);

/// Review of a part of a recording.
#[derive(Clone, Debug, Default)]
pub struct IncidentReview {
    pub from: Timestamp,
    pub until: Timestamp,
    pub moments: Vec<Moment>,
    pub nodes: Vec<NodeOutage>,
    pub workloads: Vec<WorkloadOutage>,
    pub evictions: Vec<ReviewedEviction>,
    pub accuracy: AccuracyReport,
    /// Time at which most nodes were down. If no node was down, the time at which most nodes were silent; none if no
    /// node was silent either.
    pub peak: Option<Timestamp>,
}

/// Time range in which a node was silent or not ready. It begins with the node's last heartbeat, or when the node
/// reported that it is not ready. It ends when the node is Ready and its heartbeats arrive.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeOutage {
    pub node: NodeName,
    pub zone: String,
    pub from: Timestamp,
    /// Times at which the node was declared Unknown or reported that it is not ready (`down`), and at which its pods got
    /// a time at which they leave (`evicting`). None if this did not happen.
    pub down: Option<Timestamp>,
    pub evicting: Option<Timestamp>,
    /// Time at which the node was Ready again or was deleted; none if neither happened.
    pub until: Option<Timestamp>,
    pub worst: NodeState,
    /// Causes of the node's worst state, as a chain of texts.
    pub why: Vec<String>,
    /// Version of the node object that `why` explains; none before the first explanation.
    explained: Option<Version>,
    /// Number of pods that were evicted from the node.
    pub evicted: usize,
}

/// Time range in which a workload had fewer ready pods than it should have.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadOutage {
    pub kind: WorkloadKind,
    pub workload: Key,
    pub from: Timestamp,
    pub until: Option<Timestamp>,
    pub desired: usize,
    /// Lowest number of ready pods during the outage.
    pub least_ready: usize,
    /// Time for which pods were missing, summed over these pods.
    pub missing: Span,
}

/// A pod that was evicted.
#[derive(Clone, Debug, PartialEq)]
pub struct ReviewedEviction {
    pub at: Timestamp,
    pub entry: DepartureEntry,
    /// Time from the eviction until the node was Ready again; none if the node was not Ready again.
    pub back_after: Option<Span>,
}

/// Collects the review while the recording plays.
struct Collector {
    finder: MomentFinder,
    nodes: BTreeMap<NodeName, NodeOutage>,
    workloads: BTreeMap<(WorkloadKind, Key), WorkloadOutage>,
    counted: BTreeSet<DepartureId>,
    departures_revision: u64,
    review: IncidentReview,
    /// Numbers of nodes at the peak: nodes that were down, and nodes that were silent or down.
    most_failing: (usize, usize),
}

impl IncidentReview {
    /// Reviews a part of a recording.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn new<R: Read + Seek>(
        replay: &mut Replay<R>,
        (from, until): (Timestamp, Timestamp),
    ) -> Result<Self, RecordingError> {
        replay.seek(from)?;
        let mut collector = Collector::new(replay.model(), from, until);
        let mut next = from;
        loop {
            let at = replay.at();
            collector.look(replay.model(), at);
            let next_look = look_after(at).min(until);
            let is_due = at >= next;
            if is_due {
                replay.run_forecast();
                collector.count_workloads(&replay.model().cluster, at);
                next = at + EVERY;
            }
            // As in a live session, a pod's outcome is predicted at most a second before the pod leaves.
            if is_due || replay.model().views.leaving.first.is_some_and(|first| first <= next_look) {
                replay.run_outcomes();
            }
            if at >= until {
                break;
            }
            replay.seek(next_look)?;
            if replay.at() <= at {
                break;
            }
        }
        for (from, until, why) in replay.damaged() {
            let text = format!("nothing is known until {}: {why}", until.to_time());
            collector.finder.add(Moment::new(from, MomentKind::Gap, VerdictLevel::Disconnected, &text));
        }
        Ok(collector.finish(replay.model()))
    }

    /// Returns the taint evictions that longer tolerations would have prevented: those whose node was Ready again
    /// within the time `within`.
    pub fn unnecessary(&self, within: Span) -> impl Iterator<Item = &ReviewedEviction> {
        let is_by_taint =
            |eviction: &&ReviewedEviction| eviction.entry.departure.kind == DepartureKind::TaintEviction;
        self.evictions
            .iter()
            .filter(is_by_taint)
            .filter(move |eviction| eviction.back_after.is_some_and(|after| after <= within))
    }
}

impl Collector {
    fn new(model: &Model, from: Timestamp, until: Timestamp) -> Self {
        Self {
            finder: MomentFinder::default(),
            nodes: BTreeMap::new(),
            workloads: BTreeMap::new(),
            counted: model.departures.newest().map(|(id, _)| id).collect(),
            departures_revision: model.departures.revision(),
            review: IncidentReview { from, until, ..IncidentReview::default() },
            most_failing: (0, 0),
        }
    }

    fn look(&mut self, model: &Model, at: Timestamp) {
        self.finder.look(model, at);
        self.look_at_departures(model);
        let states: BTreeMap<&NodeName, NodeState> = model.watchlist.notable().collect();
        let down = states.values().filter(|state| state.is_down()).count();
        let failing = (down, states.values().filter(|state| state.is_failing()).count());
        if failing > self.most_failing {
            (self.most_failing, self.review.peak) = (failing, Some(at));
        }
        let is_back = |name: &NodeName| states.get(name).is_none_or(|state| state.is_well());
        let back: Vec<NodeName> = self.nodes.keys().filter(|name| is_back(name)).cloned().collect();
        for name in back {
            let Some(outage) = self.nodes.remove(&name) else { continue };
            for eviction in &mut self.review.evictions {
                let is_of_node = eviction.entry.node.as_ref() == Some(&name);
                if is_of_node && eviction.at >= outage.from && eviction.back_after.is_none() {
                    eviction.back_after = model.cluster.node(&name).map(|_| at.since(eviction.at));
                }
            }
            self.review.nodes.push(NodeOutage { until: Some(at), ..outage });
        }
        for (name, state) in states.into_iter().filter(|(_, state)| state.is_failing()) {
            let zone = || model.watchlist.zone(name).map(|zone| model.watchlist.zone_names().short(zone));
            let outage = self.nodes.entry(name.clone()).or_insert_with(|| NodeOutage {
                node: name.clone(),
                zone: zone().unwrap_or_default(),
                from: began(model, name, at),
                down: None,
                evicting: None,
                until: None,
                worst: state,
                why: Vec::new(),
                explained: None,
                evicted: 0,
            });
            if state.is_down() {
                outage.down.get_or_insert(at);
            }
            if state == NodeState::Evicting {
                outage.evicting.get_or_insert(at);
            }
            // Explain the worst state again when the node changes: a taint follows some time after Unknown. Once the node
            // is Ready again, its object no longer shows why it failed.
            let node = model.cluster.node(name);
            let version = node.map(|node| node.version);
            let has_changed = version != outage.explained && !node.is_some_and(|node| node.is_ready());
            if state < outage.worst || (state == outage.worst && has_changed) {
                (outage.worst, outage.explained) = (state, version);
                outage.why = causes(model, name, at);
            }
        }
    }

    fn look_at_departures(&mut self, model: &Model) {
        if self.departures_revision == model.departures.revision() {
            return;
        }
        self.departures_revision = model.departures.revision();
        let mut new: Vec<_> = model
            .departures
            .newest()
            .filter(|(_, entry)| is_eviction(entry.departure.kind))
            .filter(|(id, _)| self.counted.insert(*id))
            .collect();
        new.reverse();
        for (id, entry) in new {
            if let Some(outage) = entry.node.as_ref().and_then(|node| self.nodes.get_mut(node)) {
                outage.evicted += 1;
            }
            let at = entry.at.unwrap_or(id.at());
            self.review.evictions.push(ReviewedEviction { at, entry: entry.clone(), back_after: None });
        }
    }

    fn count_workloads(&mut self, cluster: &Cluster, at: Timestamp) {
        let mut lacking = BTreeSet::new();
        for (key, desired, ready) in readiness(cluster) {
            if ready >= desired {
                continue;
            }
            lacking.insert(key.clone());
            let outage = self.workloads.entry(key.clone()).or_insert_with(|| WorkloadOutage {
                kind: key.0,
                workload: key.1.clone(),
                from: at,
                until: None,
                desired,
                least_ready: ready,
                missing: Span::ZERO,
            });
            outage.desired = outage.desired.max(desired);
            outage.least_ready = outage.least_ready.min(ready);
            let missing = i64::try_from(desired - ready).unwrap_or(i64::MAX);
            outage.missing = outage.missing + EVERY * missing;
        }
        let over: Vec<_> = self.workloads.keys().filter(|key| !lacking.contains(*key)).cloned().collect();
        for key in over {
            let Some(outage) = self.workloads.remove(&key) else { continue };
            self.add_workload(WorkloadOutage { until: Some(at), ..outage });
        }
    }

    fn add_workload(&mut self, outage: WorkloadOutage) {
        let end = outage.until.unwrap_or(self.review.until);
        if end.since(outage.from) >= LEAST {
            self.review.workloads.push(outage);
        }
    }

    fn finish(mut self, model: &Model) -> IncidentReview {
        self.review.nodes.extend(std::mem::take(&mut self.nodes).into_values());
        for outage in std::mem::take(&mut self.workloads).into_values() {
            self.add_workload(outage);
        }
        let mut review = self.review;
        review.nodes.sort_by(|one, other| (one.from, &one.node).cmp(&(other.from, &other.node)));
        review.workloads.sort_by(|one, other| {
            (other.missing, &one.workload, one.kind, one.from).cmp(&(
                one.missing,
                &other.workload,
                other.kind,
                other.from,
            ))
        });
        review.moments = self.finder.found().to_vec();
        review.moments.sort_by_key(|moment| moment.at);
        review.accuracy = model.predictions.accuracy();
        review
    }
}

/// Returns the start of a node's failure. This is its last heartbeat if heartbeats are missing, otherwise the start of
/// its state.
fn began(model: &Model, name: &NodeName, at: Timestamp) -> Timestamp {
    let status = model.cluster.node(name).and_then(|node| model.node_status(node));
    status.and_then(|status| status.since).map_or(at, |since| since.min(at))
}

/// Returns the causes of a node's state that are past or current at `at`, in the order of time. Steps with a later time
/// are left out, such as a wait for the next slot.
fn causes(model: &Model, name: &NodeName, at: Timestamp) -> Vec<String> {
    let Some(explainer) = model.explainer(at) else { return Vec::new() };
    let steps = model.cluster.node(name).map(|node| explainer.node(node)).unwrap_or_default();
    let has_happened = |step: &&Step| {
        matches!(step.tense, Tense::Past | Tense::Present) && step.at.is_none_or(|began| began <= at)
    };
    let words = |step: &Step| match step.at {
        Some(at) => format!("{} {}", at.to_time(), step.text),
        None => step.text.clone(),
    };
    steps.iter().filter(has_happened).map(words).collect()
}

/// Returns each workload with the number of pods that it should have and the number that are ready. DaemonSets are left
/// out, because they need no pod on a node that is deleted.
fn readiness(cluster: &Cluster) -> Vec<((WorkloadKind, Key), usize, usize)> {
    let mut ready_of: BTreeMap<&Uid, usize> = BTreeMap::new();
    for pod in cluster.pods().iter() {
        if let Some(owner) = pod.owner.as_ref().filter(|_| pod.is_ready() && pod.termination.is_none()) {
            *ready_of.entry(&owner.uid).or_default() += 1;
        }
    }
    // The pods of a Deployment belong to its ReplicaSets, so the ready pods of a ReplicaSet also count for its owner.
    for set in cluster.workloads(WorkloadKind::ReplicaSet).iter() {
        if let Some(owner) = &set.owner
            && let Some(ready) = ready_of.get(&set.uid).copied()
        {
            *ready_of.entry(&owner.uid).or_default() += ready;
        }
    }
    let is_deployment = |kind: &OwnerKind| *kind == OwnerKind::Workload(WorkloadKind::Deployment);
    let kinds = [WorkloadKind::Deployment, WorkloadKind::ReplicaSet, WorkloadKind::StatefulSet];
    let workloads = kinds.into_iter().flat_map(|kind| cluster.workloads(kind).iter());
    workloads
        .filter(|workload| !workload.owner.as_ref().is_some_and(|owner| is_deployment(&owner.kind)))
        .filter_map(|workload| {
            let desired = usize::try_from(workload.replicas?).ok().filter(|desired| *desired > 0)?;
            let ready = ready_of.get(&workload.uid).copied().unwrap_or(0);
            Some(((workload.kind, workload.key.clone()), desired, ready))
        })
        .collect()
}
