//! What comes after the pods that a forecast sees go: where their replacements land, and who waits or is lost.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{Assumptions, Forecast, ForecastKind, IncidentKind};
use crate::{
    cluster::{Cluster, Key, Node, NodeName, Pod, Taint, TaintEffect},
    plan::{Departure, Environment, Landing, RunTrace, owner, owner::Recreation, rehouse},
    time::Timestamp,
};

/// What comes after a pod that goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Successor {
    pub of: Key,
    /// The node that the old one was on.
    pub from: NodeName,
    pub state: SuccessorState,
}

/// What becomes of a pod's place.
#[derive(Clone, Debug, PartialEq)]
pub enum SuccessorState {
    Replaced {
        at: Timestamp,
        landing: Landing,
        /// None: never.
        ready: Option<Timestamp>,
    },
    /// Nothing comes before the old object has gone, which a silent kubelet does not confirm.
    Waits,
    /// Nobody brings it back.
    Lost,
}

impl SuccessorState {
    /// A word for it, the same for ever.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Replaced { landing: Landing::Node { .. }, .. } => "node",
            Self::Replaced { landing: Landing::Somewhere, .. } => "unknown",
            Self::Replaced { landing: Landing::Nowhere { .. }, .. } => "pending",
            Self::Waits => "waiting",
            Self::Lost => "lost",
        }
    }

    /// The node that a replacement lands on, where that is known.
    pub const fn node(&self) -> Option<&NodeName> {
        match self {
            Self::Replaced { landing: Landing::Node { node, .. }, .. } => Some(node),
            Self::Replaced { .. } | Self::Waits | Self::Lost => None,
        }
    }

    /// Why there, or why nowhere.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Replaced { landing: Landing::Node { why, .. } | Landing::Nowhere { why }, .. } => Some(why),
            Self::Replaced { landing: Landing::Somewhere, .. } => None,
            Self::Waits => Some("nothing comes until the old object has gone"),
            Self::Lost => Some("nobody brings it back"),
        }
    }
}

impl Successor {
    /// What would help, where it stays Pending.
    pub fn help(&self, account: &RunTrace) -> Vec<String> {
        let is_pending =
            matches!(self.state, SuccessorState::Replaced { landing: Landing::Nowhere { .. }, .. });
        let judgement = account.placements.get(&self.of).filter(|_| is_pending);
        judgement.and_then(|judgement| Some(judgement.help.as_ref()?.words())).unwrap_or_default()
    }
}

/// The taint that a node gets when its conditions become Unknown.
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

impl Forecast {
    /// Works out what comes after each pod that goes, in order of the forecast's steps. `assumptions` are those that
    /// it was made under.
    ///
    /// A replacement on a node that fails later is not followed further.
    pub fn successors<S: Environment>(
        &self,
        assumptions: &Assumptions,
        cluster: &Cluster,
        environment: S,
    ) -> (Vec<Successor>, RunTrace) {
        let departures = self.departures(assumptions, cluster, &environment);
        let alterations = self.alterations(assumptions, cluster);
        let (mut replaced, account) =
            rehouse(cluster, &departures, &alterations, &BTreeSet::new(), environment);
        let successor = |departure: &Departure| {
            let pod = &departure.pod;
            let state = match (replaced.remove(&pod.key), owner::recreation(cluster, pod)) {
                (Some(new), _) => {
                    SuccessorState::Replaced { at: new.created, landing: new.landing, ready: new.ready }
                }
                (None, Recreation::WhenGone(_)) if departure.gone.is_none() => SuccessorState::Waits,
                (None, Recreation::Never(_)) if !pod.is_finished() => SuccessorState::Lost,
                (
                    None,
                    Recreation::Never(_) | Recreation::AtOnce(_) | Recreation::WhenGone(_) | Recreation::Here,
                ) => {
                    return None;
                }
            };
            Some(Successor { of: pod.key.clone(), from: pod.node.clone()?, state })
        };
        (departures.iter().filter_map(successor).collect(), account)
    }

    fn departures<S: Environment>(
        &self,
        assumptions: &Assumptions,
        cluster: &Cluster,
        environment: &S,
    ) -> Vec<Departure> {
        let mut departures: Vec<Departure> = Vec::new();
        let mut places: BTreeMap<&Key, usize> = BTreeMap::new();
        for step in &self.steps {
            let (pod, removed) = match &step.what {
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

    /// When a pod whose deletion begins is gone: when its kubelet has ended it, be that when it is back.
    fn gone<S: Environment>(
        &self,
        pod: &Pod,
        leaves: Timestamp,
        assumptions: &Assumptions,
        environment: &S,
    ) -> Option<Timestamp> {
        let node = pod.node.as_ref()?;
        let silent = self
            .of_node(node)
            .any(|step| matches!(step.what, ForecastKind::Unknown { .. }) && step.at <= leaves);
        if !silent && let Some(takes) = environment.stop(pod, pod.grace).likely {
            return Some(leaves + takes);
        }
        let back = assumptions.incidents.iter().filter(|incident| {
            incident.node == *node && incident.what == IncidentKind::Recovers && incident.at >= leaves
        });
        back.map(|incident| incident.at).min()
    }

    /// When nodes take no more pods: they are unreachable, or have gone.
    fn alterations(&self, assumptions: &Assumptions, cluster: &Cluster) -> Vec<(Timestamp, Arc<Node>)> {
        let silent = self.steps.iter().filter_map(|step| match &step.what {
            ForecastKind::Unknown { node } => Some((step.at, Arc::new(unreachable(cluster.node(node)?)))),
            ForecastKind::NoExecute { .. } | ForecastKind::Deleted { .. } | ForecastKind::Removed { .. } => {
                None
            }
        });
        let removed = assumptions
            .incidents
            .iter()
            .filter(|incident| incident.what == IncidentKind::Removed)
            .filter_map(|incident| {
                let node = cluster.node(&incident.node)?;
                Some((incident.at, Arc::new(Node { unschedulable: true, ..(**node).clone() })))
            });
        silent.chain(removed).collect()
    }
}

fn unreachable(node: &Node) -> Node {
    let taint = Taint { key: UNREACHABLE.into(), effect: TaintEffect::NoSchedule, ..Taint::default() };
    Node { taints: node.taints.iter().cloned().chain([taint]).collect(), ..node.clone() }
}
