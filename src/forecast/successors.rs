//! What replaces the pods that a forecast deletes or that no longer run: where the replacements land, which pods wait, and
//! which are lost.

use std::sync::Arc;

use super::{Assumptions, Forecast, ForecastKind, IncidentKind};
use crate::{
    cluster::{Cluster, Key, Name, NodeName, Pod},
    ordered::{OrderedMap, OrderedSet},
    plan::{
        CreationTime, Environment, Failover, FailoverOutcome, FailoverPod, Landing, QuotaRefusal, RunTrace,
        eviction_note,
        failover::{self, failover, failover_of_first},
        quota_delay, replacement,
    },
    time::{Span, Timestamp},
};

/// What replaces the pods of a forecast.
#[derive(Clone, Debug)]
pub struct Succession {
    /// The pods that are deleted, in order of time; then those of lost nodes that are not.
    pub successors: Vec<Successor>,
    /// How many pods stay Pending, as N-1 counts them ([`Failover::pending`]).
    pub pending: usize,
    pub trace: RunTrace,
}

/// What replaces a pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Successor {
    pub of: Key,
    /// The node of the old pod.
    pub from: NodeName,
    /// When the deletion of the old pod starts; none: not within the forecast.
    pub evicted: Option<Timestamp>,
    pub state: SuccessorState,
}

/// What replaces a pod.
#[derive(Clone, Debug, PartialEq)]
pub enum SuccessorState {
    Replaced {
        /// When its controller creates it; none: not within the forecast.
        at: Option<Timestamp>,
        created: CreationTime,
        /// Where it lands, whenever it is created.
        landing: Landing,
        /// None: never, or not within the forecast.
        ready: Option<Timestamp>,
        /// The quota that refuses it at first.
        quota: Option<Box<QuotaRefusal>>,
        /// A claim of the old pod whose volume only one node may use at a time: the replacement does not start before it is
        /// detached.
        volume: Option<Name>,
    },
    /// No controller recreates it.
    Lost,
}

impl Successor {
    /// A stable word for what becomes of the pod.
    pub const fn word(&self) -> &'static str {
        match &self.state {
            SuccessorState::Replaced { landing: landing @ Landing::Pending { .. }, .. }
            | SuccessorState::Replaced { at: Some(_), landing, .. } => landing.word(),
            SuccessorState::Replaced { at: None, .. } if self.evicted.is_some() => "waiting",
            SuccessorState::Replaced { at: None, .. } => "notEvicted",
            SuccessorState::Lost => "lost",
        }
    }

    /// When the replacement is created; none: never, or not within the forecast.
    pub const fn created(&self) -> Option<Timestamp> {
        match &self.state {
            SuccessorState::Replaced { at, .. } => *at,
            SuccessorState::Lost => None,
        }
    }

    /// When it is Ready.
    pub const fn ready(&self) -> Option<Timestamp> {
        match &self.state {
            SuccessorState::Replaced { ready, .. } => *ready,
            SuccessorState::Lost => None,
        }
    }

    /// The node of the replacement, where it is known.
    pub const fn node(&self) -> Option<&NodeName> {
        match &self.state {
            SuccessorState::Replaced { landing, .. } => landing.node(),
            SuccessorState::Lost => None,
        }
    }

    pub const fn is_pending(&self) -> bool {
        match &self.state {
            SuccessorState::Replaced { landing, .. } => landing.is_pending(),
            SuccessorState::Lost => false,
        }
    }

    /// What the replacement waits for; none if it is created within the forecast, or never.
    pub fn waits_for(&self) -> Option<String> {
        match &self.state {
            SuccessorState::Replaced { quota: Some(refusal), .. } => Some(refusal.to_string()),
            SuccessorState::Replaced { at: None, created: CreationTime::WhenGone, .. } => {
                Some("no replacement until the old pod is gone".into())
            }
            SuccessorState::Replaced { at: None, created: CreationTime::AtDeletion, .. } => {
                Some("not evicted within the forecast".into())
            }
            SuccessorState::Replaced { at: Some(_), .. } | SuccessorState::Lost => None,
        }
    }

    /// Why that node, what the replacement waits for, or why there is none.
    pub fn why(&self) -> String {
        let SuccessorState::Replaced { landing, volume, .. } = &self.state else {
            return "no controller recreates it".into();
        };
        let volume = volume.as_ref().map(|claim| match self.ready() {
            Some(_) => format!("starts when volume {claim} is detached from {}", self.from),
            None => format!("does not start while volume {claim} is attached to {}", self.from),
        });
        let place = landing.why().map(ToString::to_string);
        let parts = self.waits_for().into_iter().chain(volume).chain(place);
        parts.collect::<Vec<_>>().join("; ")
    }

    /// How the replacement could be placed, where it stays Pending.
    pub fn help(&self, trace: &RunTrace) -> Vec<String> {
        let placement = trace.placements.get(&self.of).filter(|_| self.is_pending());
        placement.and_then(|placement| Some(placement.help.as_ref()?.lines())).unwrap_or_default()
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

/// How long after a pod is gone its volumes are detached by force from a node that is not Ready
/// (docs/upstream/neighbours.md#4).
const FORCED_DETACH: Span = Span::from_secs(360);
/// The taint of a node from which volumes are detached at once.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

impl Forecast {
    /// What replaces the pods that are deleted, and those of nodes that are down at the end. `assumptions` are those of
    /// the forecast.
    pub fn successors<E: Environment>(
        &self,
        assumptions: &Assumptions,
        cluster: &Cluster,
        environment: E,
    ) -> Succession {
        let pods = self.leaving_pods(&OrderedMap::new(), cluster);
        let departures = self.departures(assumptions, cluster, &environment);
        succession(failover(cluster, &pods, &self.down, environment), &departures, cluster, self.until)
    }

    /// The same of the first `most` pods in the order in which they are placed, under no assumptions, and the others.
    /// `leaving` also leave, at these times.
    pub(super) fn successors_of_first<E: Environment>(
        &self,
        most: usize,
        leaving: &OrderedMap<Key, Timestamp>,
        cluster: &Cluster,
        environment: E,
    ) -> (Succession, Vec<Arc<Pod>>) {
        let pods = self.leaving_pods(leaving, cluster);
        let assumptions = Assumptions::default();
        let mut departures = self.departures(&assumptions, cluster, &environment);
        for (key, at) in leaving {
            if let Some(pod) = cluster.pod(key).filter(|_| !departures.contains_key(key)) {
                let gone = self.gone(pod, *at, &assumptions, &environment);
                departures.insert(key.clone(), Departure { leaves: *at, gone, detached: gone });
            }
        }
        let (failover, others) = failover_of_first(most, cluster, &pods, &self.down, environment);
        (succession(failover, &departures, cluster, self.until), others)
    }

    /// The pods of nodes that are down at the end, those that are deleted, and `also`.
    fn leaving_pods(&self, also: &OrderedMap<Key, Timestamp>, cluster: &Cluster) -> Vec<Arc<Pod>> {
        let mut pods = failover::pods_of(cluster, &self.down);
        let is_elsewhere = |pod: &Arc<Pod>| pod.node.as_ref().is_none_or(|node| !self.down.contains(node));
        let deleted = self.steps.iter().filter_map(|step| step.kind.pod());
        let deleted: OrderedSet<&Key> = deleted.chain(also.keys()).collect();
        let deleted = deleted.into_iter().filter_map(|pod| cluster.pod(pod));
        pods.extend(deleted.filter(|pod| pod.termination.is_none() && is_elsewhere(pod)).cloned());
        pods
    }

    /// What replaces the pods of nodes that fail, by a forecast of their failure. The pods of others are not counted,
    /// as in N-1.
    pub fn successors_of<E: Environment>(
        &self,
        failing: &OrderedSet<NodeName>,
        assumptions: &Assumptions,
        cluster: &Cluster,
        environment: E,
    ) -> Succession {
        let pods = failover::pods_of(cluster, failing);
        let departures = self.departures(assumptions, cluster, &environment);
        succession(failover(cluster, &pods, failing, environment), &departures, cluster, self.until)
    }

    /// When pods leave and are gone.
    fn departures<E: Environment>(
        &self,
        assumptions: &Assumptions,
        cluster: &Cluster,
        environment: &E,
    ) -> OrderedMap<Key, Departure> {
        let mut departures: OrderedMap<Key, Departure> = OrderedMap::new();
        for step in &self.steps {
            let Some(pod) = step.kind.pod() else { continue };
            let removed = matches!(step.kind, ForecastKind::Removed { .. }).then_some(step.at);
            let by_force = removed
                .map(|at| if is_out_of_service(cluster, &step.kind) { at } else { at + FORCED_DETACH });
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

/// The replacements that quotas refuse at first; those that are admitted after the end of the forecast are not admitted
/// within it.
fn refusals(
    cluster: &Cluster,
    departures: &OrderedMap<Key, Departure>,
    until: Timestamp,
) -> OrderedMap<Key, QuotaRefusal> {
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

/// Whether the node of a step has the taint that has its volumes detached at once.
fn is_out_of_service(cluster: &Cluster, step: &ForecastKind) -> bool {
    cluster.node(step.node()).is_some_and(|node| node.taints.iter().any(|taint| taint.key == *OUT_OF_SERVICE))
}

fn succession(
    failover: Failover,
    departures: &OrderedMap<Key, Departure>,
    cluster: &Cluster,
    until: Timestamp,
) -> Succession {
    let mut refusals = refusals(cluster, departures, until);
    let pending = failover.pending();
    let Failover { pods, trace } = failover;
    let successor = |FailoverPod { pod, outcome }| {
        let volume = eviction_note::attached_once(cluster, &pod);
        successor(&pod, outcome, volume, refusals.remove(&pod.key), departures.get(&pod.key))
    };
    let mut successors: Vec<Successor> = pods.into_iter().filter_map(successor).collect();
    successors.sort_by_key(|successor| successor.evicted.unwrap_or(Timestamp::MAX));
    Succession { successors, pending, trace }
}

/// What replaces a pod; none if nothing does elsewhere, and none is lost.
fn successor(
    pod: &Pod,
    outcome: FailoverOutcome,
    volume: Option<Name>,
    quota: Option<QuotaRefusal>,
    departure: Option<&Departure>,
) -> Option<Successor> {
    let state = match outcome {
        FailoverOutcome::Recreated { created, landing, time_to_ready } => {
            let created_at = departure.and_then(|departure| match created {
                CreationTime::AtDeletion => Some(departure.leaves),
                CreationTime::WhenGone => departure.gone,
            });
            let at = match &quota {
                Some(refusal) => refusal.admitted,
                None => created_at,
            };
            let starts = match &volume {
                Some(_) => at.and_then(|at| Some(at.max(departure?.detached?))),
                None => at,
            };
            let ready = time_to_ready.and_then(|takes| Some(starts? + takes));
            SuccessorState::Replaced { at, created, landing, ready, volume, quota: quota.map(Box::new) }
        }
        FailoverOutcome::Lost => SuccessorState::Lost,
        FailoverOutcome::OnSameNode => return None,
    };
    let evicted = departure.map(|departure| departure.leaves);
    Some(Successor { of: pod.key.clone(), from: pod.node.clone()?, evicted, state })
}
