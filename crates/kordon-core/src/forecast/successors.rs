//! What replaces the pods that a forecast deletes or that no longer run: where the replacements land, which pods wait, and
//! which are lost.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{Assumptions, Forecast, ForecastKind, IncidentKind};
use crate::{
    cluster::{Cluster, Key, NodeName, Pod},
    plan::{
        Departing, Environment, Failover, FailoverPod, Landing, LeavingPod, OutcomeCounts, OutcomeKind,
        PodOutcome, QuotaRefusal, Recreation, RunTrace,
        failover::{self, failover_of_first},
        outcome, quota_delay, replacement, succession_gaps,
    },
};
use kordon_time::{Span, Timestamp};

/// What becomes of the pods of a forecast: those that are deleted, and those of lost nodes.
#[derive(Clone, Debug)]
pub struct Succession {
    /// All of them: those that are deleted, in order of time; then the others.
    pub successors: Vec<Successor>,
    pub trace: RunTrace,
}

/// How many of the pods of a forecast have which outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SuccessionCounts {
    pub outcomes: OutcomeCounts,
    /// How many of them are deleted within the forecast.
    pub evicted: usize,
    /// What becomes of pods elsewhere that are preempted for them.
    pub preempted: OutcomeCounts,
}

impl SuccessionCounts {
    /// How many of all of them have nowhere to run.
    pub fn nowhere(&self) -> usize {
        self.outcomes.nowhere() + self.preempted.nowhere()
    }
}

impl Succession {
    pub fn counts(&self) -> SuccessionCounts {
        SuccessionCounts {
            outcomes: self.successors.iter().map(|successor| successor.outcome.kind()).collect(),
            evicted: self.successors.iter().filter(|successor| successor.evicted.is_some()).count(),
            preempted: failover::preempted(&self.trace).map(|(_, kind)| kind).collect(),
        }
    }

    /// Those that have a replacement elsewhere, wait for one, or have none.
    pub fn replacements(&self) -> impl Iterator<Item = &Successor> {
        self.successors.iter().filter(|successor| successor.is_listed())
    }
}

/// What becomes of a pod, and what replaces it.
#[derive(Clone, Debug, PartialEq)]
pub struct Successor {
    pub of: Key,
    /// The node of the old pod.
    pub from: NodeName,
    /// When the deletion of the old pod starts; none: not within the forecast.
    pub evicted: Option<Timestamp>,
    pub outcome: PodOutcome,
    /// Where the replacement lands, whenever it is created; none where none is.
    pub landing: Option<Landing>,
    /// When the replacement is created; none: never, or not within the forecast.
    pub created: Option<Timestamp>,
    /// When it is Ready; none: never, or not within the forecast.
    pub ready: Option<Timestamp>,
}

impl Successor {
    /// Whether it is about more than a pod that needs no replacement elsewhere.
    fn is_listed(&self) -> bool {
        match self.outcome.kind() {
            OutcomeKind::SameNode
            | OutcomeKind::NotRecreated
            | OutcomeKind::Finished
            | OutcomeKind::Stays => false,
            OutcomeKind::Lost
            | OutcomeKind::Stuck
            | OutcomeKind::Refused
            | OutcomeKind::Pending
            | OutcomeKind::Blocked
            | OutcomeKind::Unknown
            | OutcomeKind::LeftOut
            | OutcomeKind::WaitsForOldPod
            | OutcomeKind::Replaced
            | OutcomeKind::Preempts
            | OutcomeKind::Moves => true,
        }
    }

    /// A stable word for where its replacement lands.
    pub const fn word(&self) -> &'static str {
        match (&self.outcome, &self.landing) {
            (PodOutcome::Lost, _) => "lost",
            (PodOutcome::Unknown { .. }, _) => "unknown",
            (_, Some(landing @ Landing::Pending { .. })) => landing.word(),
            (_, Some(landing)) if self.created.is_some() => landing.word(),
            _ if self.evicted.is_some() => "waiting",
            _ => "notEvicted",
        }
    }

    /// The node of the replacement, where it is known.
    pub fn node(&self) -> Option<&NodeName> {
        self.landing.as_ref()?.node()
    }

    /// Why that node, what the replacement waits for, or why there is none.
    pub fn why(&self) -> String {
        let later = match (&self.outcome, self.evicted) {
            (PodOutcome::Moves { quota: Some(refusal), .. } | PodOutcome::Refused(refusal), _) => {
                Some(refusal.to_string())
            }
            (PodOutcome::Moves { .. }, None) => Some("not evicted within the forecast".into()),
            (PodOutcome::Moves { volume: Some(claim), .. }, Some(_)) => {
                Some(format!("starts when volume {claim} is detached from {}", self.from))
            }
            (PodOutcome::Stuck(_) | PodOutcome::Lost | PodOutcome::Unknown { .. }, _) => {
                return self.outcome.to_string();
            }
            _ => None,
        };
        let place = self.landing.as_ref().and_then(Landing::why).map(ToString::to_string);
        later.into_iter().chain(place).collect::<Vec<_>>().join("; ")
    }
}

/// When a pod leaves; none is never.
#[derive(Clone, Copy, Debug)]
struct Departure {
    /// When its deletion starts.
    leaves: Timestamp,
    /// When its object is gone.
    gone: Option<Timestamp>,
    /// When its volumes are detached from its node.
    detached: Option<Timestamp>,
}

impl Departure {
    /// When the replacement is created; none: not within the forecast.
    fn creates(&self, departing: &Departing) -> Option<Timestamp> {
        match &departing.quota {
            Some(refusal) => refusal.admitted,
            None if departing.recreation == Recreation::WhenGone => self.gone,
            None => Some(self.leaves),
        }
    }
}

/// How long after a pod is gone its volumes are detached by force from a node that is not Ready
/// (docs/upstream/neighbours.md#4).
const FORCED_DETACH: Span = Span::from_secs(360);

impl Forecast {
    /// What becomes of the pods that are deleted, and of those of nodes that are down at the end. `assumptions` are those of
    /// the forecast.
    pub fn successors<E: Environment>(
        &self,
        assumptions: &Assumptions,
        cluster: &Cluster,
        environment: E,
    ) -> Succession {
        let departures = self.departures(assumptions, cluster, &environment);
        let leaving = self.leaving(self.pods(&departures, cluster), &departures, assumptions, cluster);
        succession(usize::MAX, leaving, &departures, &self.down, cluster, environment)
    }

    /// The same, worked out for the first `most` pods in the order in which they are placed, under no assumptions.
    /// `leaving` also leave, at these times.
    pub(super) fn successors_of_first<E: Environment>(
        &self,
        most: usize,
        leaving: &BTreeMap<Key, Timestamp>,
        cluster: &Cluster,
        environment: E,
    ) -> Succession {
        let assumptions = Assumptions::default();
        let mut departures = self.departures(&assumptions, cluster, &environment);
        for (key, at) in leaving {
            if let Some(pod) = cluster.pod(key).filter(|_| !departures.contains_key(key)) {
                let gone = self.gone(pod, *at, &assumptions, &environment);
                departures.insert(key.clone(), Departure { leaves: *at, gone, detached: gone });
            }
        }
        let leaving = self.leaving(self.pods(&departures, cluster), &departures, &assumptions, cluster);
        succession(most, leaving, &departures, &self.down, cluster, environment)
    }

    /// What becomes of the pods of nodes that fail, by a forecast of their failure. The pods of others are not counted,
    /// as in N-1.
    pub fn successors_of<E: Environment>(
        &self,
        failing: &BTreeSet<NodeName>,
        assumptions: &Assumptions,
        cluster: &Cluster,
        environment: E,
    ) -> Succession {
        let departures = self.departures(assumptions, cluster, &environment);
        let pods = failover::pods_of(cluster, failing);
        let leaving = self.leaving(pods, &departures, assumptions, cluster);
        succession(usize::MAX, leaving, &departures, failing, cluster, environment)
    }

    /// The pods of nodes that are down at the end, and those that are deleted elsewhere.
    fn pods(&self, departures: &BTreeMap<Key, Departure>, cluster: &Cluster) -> Vec<Arc<Pod>> {
        let mut pods = failover::pods_of(cluster, &self.down);
        let is_elsewhere = |pod: &&Arc<Pod>| pod.node.as_ref().is_none_or(|node| !self.down.contains(node));
        let deleted = departures.keys().filter_map(|pod| cluster.pod(pod));
        pods.extend(deleted.filter(|pod| pod.termination.is_none()).filter(is_elsewhere).cloned());
        pods
    }

    /// How these pods leave. Under assumptions, nothing is said of the order in which they do, as in N-1.
    fn leaving(
        &self,
        pods: Vec<Arc<Pod>>,
        departures: &BTreeMap<Key, Departure>,
        assumptions: &Assumptions,
        cluster: &Cluster,
    ) -> Vec<LeavingPod> {
        let mut refusals = refusals(cluster, departures, self.until);
        let is_known = succession_gaps(cluster).unknown().is_empty();
        let leaving = |pod: Arc<Pod>| {
            let departure = departures.get(&pod.key);
            let departing = match departure {
                Some(departure) => Departing {
                    is_gone: departure.gone.is_some(),
                    is_detached: departure.detached.is_some(),
                    quota: refusals.remove(&pod.key),
                    ..Departing::from_running_node(cluster, &pod, is_known)
                },
                None => Departing::from_lost_node(cluster, &pod, is_known),
            };
            let created = departure.filter(|_| assumptions.incidents.is_empty());
            let created = created.and_then(|departure| departure.creates(&departing));
            LeavingPod { pod, departing, created }
        };
        pods.into_iter().map(leaving).collect()
    }

    /// When pods leave and are gone.
    fn departures<E: Environment>(
        &self,
        assumptions: &Assumptions,
        cluster: &Cluster,
        environment: &E,
    ) -> BTreeMap<Key, Departure> {
        let mut departures: BTreeMap<Key, Departure> = BTreeMap::new();
        for step in &self.steps {
            let Some(pod) = step.kind.pod() else { continue };
            let removed = matches!(step.kind, ForecastKind::Removed { .. }).then_some(step.at);
            let by_force = removed.map(|at| {
                if outcome::is_out_of_service(cluster, step.kind.node()) { at } else { at + FORCED_DETACH }
            });
            if let Some(Departure { gone, detached, .. }) = departures.get_mut(pod) {
                *gone = [*gone, removed].into_iter().flatten().min();
                *detached = [*detached, by_force].into_iter().flatten().min();
            } else if let Some(known) = cluster.pod(pod) {
                let ended = || self.gone(known, step.at, assumptions, environment);
                let (gone, detached) = match removed {
                    Some(_) => (removed, by_force),
                    None => (ended(), ended()),
                };
                departures.insert(pod.clone(), Departure { leaves: step.at, gone, detached });
            }
        }
        departures
    }

    /// When a pod is gone whose deletion starts: when its kubelet has ended it, if necessary after it is back.
    fn gone<E: Environment>(
        &self,
        pod: &Pod,
        leaves: Timestamp,
        assumptions: &Assumptions,
        environment: &E,
    ) -> Option<Timestamp> {
        let node = pod.node.as_ref()?;
        let is_down = self
            .of_node(node)
            .any(|step| matches!(step.kind, ForecastKind::Unknown { .. }) && step.at <= leaves);
        if !is_down && let Some(takes) = environment.time_to_terminate(pod, pod.grace).likely {
            return Some(leaves + takes);
        }
        let recoveries = assumptions.incidents.iter().filter(|incident| {
            incident.node == *node && incident.kind == IncidentKind::Recovers && incident.at >= leaves
        });
        recoveries.map(|incident| incident.at).min()
    }
}

/// What becomes of these pods; replacements of the first `most` are placed.
fn succession<E: Environment>(
    most: usize,
    leaving: Vec<LeavingPod>,
    departures: &BTreeMap<Key, Departure>,
    lost: &BTreeSet<NodeName>,
    cluster: &Cluster,
    environment: E,
) -> Succession {
    let Failover { pods, trace } = failover_of_first(most, cluster, leaving, lost, environment);
    let successor = |placed: FailoverPod| successor(departures.get(&placed.pod.key).copied(), placed);
    let mut successors: Vec<Successor> = pods.into_iter().filter_map(successor).collect();
    successors.sort_by_key(|successor| successor.evicted.unwrap_or(Timestamp::MAX));
    Succession { successors, trace }
}

/// The replacements that quotas refuse at first; those that are admitted after the end of the forecast are not admitted
/// within it.
fn refusals(
    cluster: &Cluster,
    departures: &BTreeMap<Key, Departure>,
    until: Timestamp,
) -> BTreeMap<Key, QuotaRefusal> {
    let departure = |(pod, departure): (&Key, &Departure)| {
        let Departure { leaves, gone, .. } = *departure;
        Some(replacement::Departure { pod: cluster.pod(pod)?.clone(), leaves, gone })
    };
    let departures: Vec<_> = departures.iter().filter_map(departure).collect();
    let mut refusals = quota_delay::refusals(cluster, &departures);
    for refusal in refusals.values_mut() {
        refusal.admitted = refusal.admitted.filter(|at| *at <= until);
    }
    refusals
}

/// What becomes of a pod, with its times; none for a pod without a node.
fn successor(departure: Option<Departure>, placed: FailoverPod) -> Option<Successor> {
    let FailoverPod { pod, departing, mut outcome, landing, time_to_ready } = placed;
    let created = landing.as_ref().and(departure).and_then(|departure| departure.creates(&departing));
    let starts = match &departing.volume {
        Some(_) => created.and_then(|at| Some(at.max(departure?.detached?))),
        None => created,
    };
    let is_ready = starts.and_then(|starts| Some(starts + time_to_ready?));
    if let PodOutcome::Moves { ready, .. } = &mut outcome {
        *ready = is_ready;
    }
    let evicted = departure.map(|departure| departure.leaves);
    let (of, from) = (pod.key.clone(), pod.node.clone()?);
    Some(Successor { of, from, evicted, outcome, landing, created, ready: is_ready })
}
