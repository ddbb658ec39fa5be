//! Guard rails: limits that a plan must not break unless the operator overrides them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use crate::{
    cluster::{Cluster, Gaps, Key, Namespace, NodeName, Selector, Taint, TaintEffect, ZoneKey},
    plan::{Action, NodeChange, Plan, Verdict},
};

/// The guard rails in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Guards {
    /// Maximum number of nodes that one plan may take out of service.
    pub max_nodes: Option<usize>,
    /// Maximum share of a zone's nodes that may be out of service after the plan, in percent.
    pub max_zone_percent: Option<u8>,
    /// Whether each zone must keep its last ready, schedulable node.
    pub keep_last_ready: bool,
    /// Namespaces whose pods must not be removed.
    pub protected_namespaces: BTreeSet<Namespace>,
    /// Label selectors of pods that must not be removed.
    pub protected_pods: Vec<Selector>,
}

impl Default for Guards {
    /// Default limits: each zone must keep its last ready, schedulable node.
    fn default() -> Self {
        Self {
            max_nodes: None,
            max_zone_percent: None,
            keep_last_ready: true,
            protected_namespaces: BTreeSet::new(),
            protected_pods: Vec::new(),
        }
    }
}

impl Guards {
    /// Combines two sets of guard rails: the lower limits, and everything that either set protects.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.max_nodes = lower(self.max_nodes, other.max_nodes);
        self.max_zone_percent = lower(self.max_zone_percent, other.max_zone_percent);
        self.keep_last_ready |= other.keep_last_ready;
        self.protected_namespaces.extend(other.protected_namespaces.iter().cloned());
        let new = other.protected_pods.iter().filter(|pods| !self.protected_pods.contains(pods));
        let new: Vec<Selector> = new.cloned().collect();
        self.protected_pods.extend(new);
        self
    }

    /// Returns the guard rails without those that the operator overrides by these names ([`Breach::GUARDS`]).
    #[must_use]
    pub fn without(self, overridden: &[String]) -> Self {
        let is_overridden = |guard: &str| overridden.iter().any(|name| name == guard);
        Self {
            max_nodes: self.max_nodes.filter(|_| !is_overridden("max-nodes")),
            max_zone_percent: self.max_zone_percent.filter(|_| !is_overridden("max-zone-percent")),
            keep_last_ready: self.keep_last_ready && !is_overridden("last-ready"),
            protected_namespaces: match is_overridden("protected-namespace") {
                true => BTreeSet::new(),
                false => self.protected_namespaces,
            },
            protected_pods: match is_overridden("protected-pod") {
                true => Vec::new(),
                false => self.protected_pods,
            },
        }
    }
}

/// The lower of two limits. Either limit may be missing.
fn lower<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// A limit that a plan would break.
#[derive(Clone, Debug, PartialEq)]
pub enum Breach {
    TooManyNodes {
        nodes: usize,
        most: usize,
    },
    TooMuchOfZone {
        zone: ZoneKey,
        percent: usize,
        most: u8,
    },
    LastReadyOfZone {
        zone: ZoneKey,
    },
    ProtectedNamespace {
        namespace: Namespace,
        pods: usize,
    },
    ProtectedPod {
        pod: Key,
    },
    /// The plan deletes pods without eviction, and the budgets that protect them are unknown. The server does not check
    /// budgets when a pod is deleted.
    UnknownBudgets {
        gaps: Gaps,
    },
}

impl Breach {
    /// Name of the guard rail. The operator overrides the guard rail by this name.
    pub const fn guard(&self) -> &'static str {
        match self {
            Self::TooManyNodes { .. } => "max-nodes",
            Self::TooMuchOfZone { .. } => "max-zone-percent",
            Self::LastReadyOfZone { .. } => "last-ready",
            Self::ProtectedNamespace { .. } => "protected-namespace",
            Self::ProtectedPod { .. } => "protected-pod",
            Self::UnknownBudgets { .. } => "unknown-budgets",
        }
    }

    /// All names of guard rails.
    pub const GUARDS: [&'static str; 6] = [
        "max-nodes",
        "max-zone-percent",
        "last-ready",
        "protected-namespace",
        "protected-pod",
        "unknown-budgets",
    ];
}

impl Guards {
    /// Returns the limits that the plan would break.
    pub fn breaches(&self, plan: &Plan, cluster: &Cluster) -> Vec<Breach> {
        self.breaches_of(plan, cluster, &BTreeSet::new())
    }

    /// Like [`Guards::breaches`], but treats the nodes in `cordoned` as not cordoned.
    pub fn breaches_of(&self, plan: &Plan, cluster: &Cluster, cordoned: &BTreeSet<NodeName>) -> Vec<Breach> {
        let closed = closed(plan);
        let mut breaches: Vec<Breach> = self.of_nodes(&closed).into_iter().collect();
        breaches.extend(self.of_zones(&closed, cluster, cordoned));
        breaches.extend(self.of_pods(plan, cluster));
        breaches
    }

    /// Like [`Guards::breaches`], but as if the nodes in `ahead` were also cordoned, though not drained. `cluster` is
    /// the state before these cordons.
    pub fn breaches_beside(&self, plan: &Plan, cluster: &Cluster, ahead: &BTreeSet<NodeName>) -> Vec<Breach> {
        let drained = closed(plan);
        let mut breaches: Vec<Breach> = self.of_nodes(&drained).into_iter().collect();
        let closed = drained.union(ahead).cloned().collect();
        breaches.extend(self.of_zones(&closed, cluster, &BTreeSet::new()));
        breaches.extend(self.of_pods(plan, cluster));
        breaches
    }

    fn of_pods(&self, plan: &Plan, cluster: &Cluster) -> Vec<Breach> {
        let mut breaches = Vec::new();
        let leaves = plan.pods.iter().filter(|pod| {
            !matches!(
                pod.verdict.as_if_granted(),
                Verdict::Skipped(_) | Verdict::Terminating | Verdict::Tolerates | Verdict::DeletionCancelled
            )
        });
        let mut protected: BTreeMap<&Namespace, usize> = BTreeMap::new();
        for pod in leaves {
            if self.protected_namespaces.contains(&pod.pod.namespace) {
                *protected.entry(&pod.pod.namespace).or_default() += 1;
            }
            let labels = cluster.pod(&pod.pod).map(|pod| pod.labels.clone()).unwrap_or_default();
            if self.protected_pods.iter().any(|selector| selector.matches(&labels)) {
                breaches.push(Breach::ProtectedPod { pod: pod.pod.clone() });
            }
        }
        breaches.extend(
            protected
                .into_iter()
                .map(|(namespace, pods)| Breach::ProtectedNamespace { namespace: namespace.clone(), pods }),
        );
        breaches.extend(plan.ignores_unknown_budgets().map(|gaps| Breach::UnknownBudgets { gaps }));
        breaches
    }

    fn of_nodes(&self, closed: &BTreeSet<NodeName>) -> Option<Breach> {
        let most = self.max_nodes.filter(|most| closed.len() > *most)?;
        Some(Breach::TooManyNodes { nodes: closed.len(), most })
    }

    fn of_zones(
        &self,
        closed: &BTreeSet<NodeName>,
        cluster: &Cluster,
        cordoned: &BTreeSet<NodeName>,
    ) -> Vec<Breach> {
        let mut breaches = Vec::new();
        let mut zones: BTreeMap<ZoneKey, Zone> = BTreeMap::new();
        for node in cluster.nodes().iter() {
            let zone = zones.entry(node.zone()).or_default();
            let open = node.is_ready() && (!node.unschedulable || cordoned.contains(&node.name));
            let closes = closed.contains(&node.name);
            zone.nodes += 1;
            zone.out += usize::from(!open || closes);
            zone.closing += usize::from(closes);
            zone.lost += usize::from(open && closes);
        }
        for (zone, Zone { nodes, out, closing, lost }) in zones {
            if closing == 0 {
                continue;
            }
            let percent = (out * 100).div_ceil(nodes);
            if let Some(most) = self.max_zone_percent.filter(|most| percent > usize::from(*most)) {
                breaches.push(Breach::TooMuchOfZone { zone: zone.clone(), percent, most });
            }
            if self.keep_last_ready && lost > 0 && out == nodes {
                breaches.push(Breach::LastReadyOfZone { zone });
            }
        }
        breaches
    }
}

/// Numbers of nodes in a zone.
#[derive(Clone, Copy, Debug, Default)]
struct Zone {
    nodes: usize,
    /// Nodes that are not ready or are cordoned, and nodes that the plan takes out of service.
    out: usize,
    /// Nodes that the plan takes out of service.
    closing: usize,
    /// Ready and schedulable nodes that the plan takes out of service.
    lost: usize,
}

/// The nodes that the plan takes out of service: nodes that it drains, cordons or deletes, and nodes that get a
/// NoExecute taint.
fn closed(plan: &Plan) -> BTreeSet<NodeName> {
    let closes = |change: &NodeChange| match (&plan.action, change) {
        (Action::Drain { .. } | Action::Cordon { .. }, _) | (_, NodeChange::Deletion) => true,
        (_, NodeChange::Taints { before, after }) => {
            let is_new = |taint: &&Taint| !before.contains(*taint);
            after.iter().filter(is_new).any(|taint| taint.effect == TaintEffect::NoExecute)
        }
        _ => false,
    };
    plan.nodes.iter().filter(|node| closes(&node.change)).map(|node| node.node.clone()).collect()
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyNodes { nodes, most } => {
                write!(f, "{nodes} nodes at once, and no more than {most} are allowed")
            }
            Self::TooMuchOfZone { zone, percent, most } => {
                write!(
                    f,
                    "{percent} % of zone {zone} would be out of service, and no more than {most} % may be"
                )
            }
            Self::LastReadyOfZone { zone } => {
                write!(f, "zone {zone} would lose its last ready, schedulable node")
            }
            Self::ProtectedNamespace { namespace, pods } => {
                write!(f, "{pods} pods of the protected namespace {namespace} would go")
            }
            Self::ProtectedPod { pod } => write!(f, "the protected pod {pod} would go"),
            Self::UnknownBudgets { gaps } => {
                write!(f, "deletions ignore budgets, and which ones protect the pods is unknown: {gaps}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_guard_rails_allow_is_what_the_stricter_of_each_allows() {
        let strict = Guards {
            max_nodes: Some(1),
            max_zone_percent: None,
            keep_last_ready: true,
            protected_namespaces: ["a".into()].into(),
            protected_pods: vec![Selector::parse("app=a").expect("a selector")],
        };
        let loose = Guards {
            max_nodes: Some(5),
            max_zone_percent: Some(30),
            keep_last_ready: false,
            protected_namespaces: BTreeSet::new(),
            protected_pods: Vec::new(),
        };
        let both = Guards { max_zone_percent: Some(30), ..strict.clone() };
        assert_eq!(strict.clone().and(&loose), both);
        assert_eq!(loose.and(&strict), both);
    }
}
