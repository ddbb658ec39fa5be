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
        CreationTime, Environment, Failover, FailoverOutcome, FailoverPod, Landing, RunTrace,
        failover::{self, failover},
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

    /// What the replacement waits for; none where it is created within the forecast, or never.
    pub const fn waits_for(&self) -> Option<&'static str> {
        match &self.state {
            SuccessorState::Replaced { at: None, created: CreationTime::WhenGone, .. } => {
                Some("no replacement until the old pod is gone")
            }
            SuccessorState::Replaced { at: None, created: CreationTime::AtDeletion, .. } => {
                Some("not evicted within the forecast")
            }
            SuccessorState::Replaced { at: Some(_), .. } | SuccessorState::Lost => None,
        }
    }

    /// Why that node, what the replacement waits for, or why there is none.
    pub fn why(&self) -> String {
        let SuccessorState::Replaced { landing, .. } = &self.state else {
            return "no controller recreates it".into();
        };
        let place = landing.why().map(|why| &**why);
        self.waits_for().into_iter().chain(place).collect::<Vec<_>>().join("; ")
    }

    /// How the replacement could be placed, where it stays Pending.
    pub fn help(&self, trace: &RunTrace) -> Vec<String> {
        let placement = trace.placements.get(&self.of).filter(|_| self.is_pending());
        placement.and_then(|placement| Some(placement.help.as_ref()?.lines())).unwrap_or_default()
    }
}

/// When the deletion of a pod starts, and when its object is gone; none is never.
#[derive(Clone, Copy, Debug)]
struct Departure {
    leaves: Timestamp,
    gone: Option<Timestamp>,
}

impl Forecast {
    /// What replaces the pods that are deleted, and those of nodes that are down at the end. `assumptions` are those of
    /// the forecast.
    pub fn successors<E: Environment>(
        &self,
        assumptions: &Assumptions,
        cluster: &Cluster,
        environment: E,
    ) -> Succession {
        let mut pods = failover::pods_of(cluster, &self.down);
        let is_elsewhere = |pod: &Arc<Pod>| pod.node.as_ref().is_none_or(|node| !self.down.contains(node));
        let deleted: BTreeSet<&Key> = self.steps.iter().filter_map(|step| step.kind.pod()).collect();
        let deleted = deleted.into_iter().filter_map(|pod| cluster.pod(pod));
        pods.extend(deleted.filter(|pod| pod.termination.is_none() && is_elsewhere(pod)).cloned());
        self.succession(&pods, &self.down, assumptions, cluster, environment)
    }

    /// What replaces the pods of nodes that fail, by a forecast of their failure. The pods of others are not counted,
    /// as in N-1.
    pub fn successors_of<E: Environment>(
        &self,
        failing: &BTreeSet<NodeName>,
        assumptions: &Assumptions,
        cluster: &Cluster,
        environment: E,
    ) -> Succession {
        let pods = failover::pods_of(cluster, failing);
        self.succession(&pods, failing, assumptions, cluster, environment)
    }

    fn succession<E: Environment>(
        &self,
        pods: &[Arc<Pod>],
        lost: &BTreeSet<NodeName>,
        assumptions: &Assumptions,
        cluster: &Cluster,
        environment: E,
    ) -> Succession {
        let departures = self.departures(assumptions, cluster, &environment);
        let failover = failover(cluster, pods, lost, environment);
        let pending = failover.pending();
        let Failover { pods, trace } = failover;
        let successor = |FailoverPod { pod, outcome }| successor(&pod, outcome, departures.get(&pod.key));
        let mut successors: Vec<Successor> = pods.into_iter().filter_map(successor).collect();
        successors.sort_by_key(|successor| successor.evicted.unwrap_or(Timestamp::MAX));
        Succession { successors, pending, trace }
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
            if let Some(Departure { gone, .. }) = departures.get_mut(pod) {
                *gone = [*gone, removed].into_iter().flatten().min();
            } else if let Some(known) = cluster.pod(pod) {
                let gone = removed.or_else(|| self.gone(known, step.at, assumptions, environment));
                departures.insert(pod.clone(), Departure { leaves: step.at, gone });
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

/// What replaces a pod; none where nothing does elsewhere, and none is lost.
fn successor(pod: &Pod, outcome: FailoverOutcome, departure: Option<&Departure>) -> Option<Successor> {
    let state = match outcome {
        FailoverOutcome::Recreated { created, landing, time_to_ready } => {
            let at = departure.and_then(|departure| match created {
                CreationTime::AtDeletion => Some(departure.leaves),
                CreationTime::WhenGone => departure.gone,
            });
            let ready = |takes: Span| Some(at? + takes);
            SuccessorState::Replaced { at, created, landing, ready: time_to_ready.and_then(ready) }
        }
        FailoverOutcome::Lost => SuccessorState::Lost,
        FailoverOutcome::OnSameNode => return None,
    };
    let evicted = departure.map(|departure| departure.leaves);
    Some(Successor { of: pod.key.clone(), from: pod.node.clone()?, evicted, state })
}
