//! What replaces the pods that a forecast deletes: where the replacements land, which pods wait, and which are lost.

use std::{collections::BTreeMap, sync::Arc};

use super::{Assumptions, Forecast, ForecastKind, IncidentKind};
use crate::{
    cluster::{Cluster, Key, Node, NodeName, Pod, Taint, TaintEffect},
    plan::{Departure, Environment, Landing, RunTrace, owner, owner::Recreation, replacements},
    time::Timestamp,
};

/// What replaces a deleted pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Successor {
    pub of: Key,
    /// The node of the deleted pod.
    pub from: NodeName,
    pub state: SuccessorState,
}

/// What replaces a deleted pod.
#[derive(Clone, Debug, PartialEq)]
pub enum SuccessorState {
    Replaced {
        at: Timestamp,
        landing: Landing,
        /// None: never.
        ready: Option<Timestamp>,
    },
    /// Its owner waits until the old object is gone, but its kubelet is down.
    Waits,
    /// No controller recreates it.
    Lost,
}

impl SuccessorState {
    /// A stable word for it.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Replaced { landing, .. } => landing.word(),
            Self::Waits => "waiting",
            Self::Lost => "lost",
        }
    }

    /// The node of the replacement, where it is known.
    pub const fn node(&self) -> Option<&NodeName> {
        match self {
            Self::Replaced { landing, .. } => landing.node(),
            Self::Waits | Self::Lost => None,
        }
    }

    /// Why that node, or why there is no replacement.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Replaced { landing, .. } => landing.why().map(|why| &**why),
            Self::Waits => Some("waits until the old pod is gone"),
            Self::Lost => Some("no controller recreates it"),
        }
    }
}

impl Successor {
    /// How the replacement could be placed, where it stays Pending.
    pub fn help(&self, trace: &RunTrace) -> Vec<String> {
        let is_pending =
            matches!(self.state, SuccessorState::Replaced { landing: Landing::Pending { .. }, .. });
        let placement = trace.placements.get(&self.of).filter(|_| is_pending);
        placement.and_then(|placement| Some(placement.help.as_ref()?.lines())).unwrap_or_default()
    }
}

/// The taint of a node whose conditions are Unknown.
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

impl Forecast {
    /// What replaces each deleted pod, in the order of the forecast's steps. `assumptions` are those of the forecast.
    ///
    /// Replacements on nodes that fail later are not followed.
    pub fn successors<E: Environment>(
        &self,
        assumptions: &Assumptions,
        cluster: &Cluster,
        environment: E,
    ) -> (Vec<Successor>, RunTrace) {
        let departures = self.departures(assumptions, cluster, &environment);
        let node_changes = self.node_changes(assumptions, cluster);
        let (mut replaced, trace) = replacements(cluster, &departures, &node_changes, environment);
        let successor = |departure: &Departure| {
            let pod = &departure.pod;
            let state = match (replaced.remove(&pod.key), owner::recreation(cluster, pod)) {
                (Some(new), _) => {
                    SuccessorState::Replaced { at: new.created, landing: new.landing, ready: new.ready }
                }
                (None, Recreation::WhenGone) if departure.gone.is_none() => SuccessorState::Waits,
                (None, Recreation::Never(_)) if !pod.is_finished() => SuccessorState::Lost,
                (
                    None,
                    Recreation::Never(_)
                    | Recreation::Immediately
                    | Recreation::WhenGone
                    | Recreation::OnSameNode,
                ) => return None,
            };
            Some(Successor { of: pod.key.clone(), from: pod.node.clone()?, state })
        };
        (departures.iter().filter_map(successor).collect(), trace)
    }

    fn departures<E: Environment>(
        &self,
        assumptions: &Assumptions,
        cluster: &Cluster,
        environment: &E,
    ) -> Vec<Departure> {
        let mut departures: Vec<Departure> = Vec::new();
        let mut places: BTreeMap<&Key, usize> = BTreeMap::new();
        for step in &self.steps {
            let (pod, removed) = match &step.kind {
                ForecastKind::Deleted { pod, .. } => (pod, None),
                ForecastKind::Removed { pod, .. } => (pod, Some(step.at)),
                ForecastKind::Unknown { .. } | ForecastKind::NoExecute { .. } => continue,
            };
            if let Some(place) = places.get(pod) {
                let gone = &mut departures[*place].gone;
                *gone = [*gone, removed].into_iter().flatten().min();
            } else if let Some(known) = cluster.pod(pod) {
                let gone = removed.or_else(|| self.gone(known, step.at, assumptions, environment));
                places.insert(pod, departures.len());
                departures.push(Departure { pod: known.clone(), leaves: step.at, gone });
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

    /// When nodes stop taking pods: they are unreachable, or gone.
    fn node_changes(&self, assumptions: &Assumptions, cluster: &Cluster) -> Vec<(Timestamp, Arc<Node>)> {
        let unreachable = self.steps.iter().filter_map(|step| match &step.kind {
            ForecastKind::Unknown { node } => Some((step.at, Arc::new(unreachable(cluster.node(node)?)))),
            ForecastKind::NoExecute { .. } | ForecastKind::Deleted { .. } | ForecastKind::Removed { .. } => {
                None
            }
        });
        let removed = assumptions
            .incidents
            .iter()
            .filter(|incident| incident.kind == IncidentKind::Removed)
            .filter_map(|incident| {
                let node = cluster.node(&incident.node)?;
                Some((incident.at, Arc::new(Node { unschedulable: true, ..(**node).clone() })))
            });
        unreachable.chain(removed).collect()
    }
}

fn unreachable(node: &Node) -> Node {
    let taint = Taint { key: UNREACHABLE.into(), effect: TaintEffect::NoSchedule, ..Taint::default() };
    Node { taints: node.taints.iter().cloned().chain([taint]).collect(), ..node.clone() }
}
