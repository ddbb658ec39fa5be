//! NodeHealthChecks of medik8s, which say who fences an unhealthy node, and what prevents that.

use super::{
    budget::IntOrPercent,
    fetched_list::FetchedList,
    labels::Selector,
    names::{Name, NodeName},
    node::{ConditionStatus, Node},
};
use kordon_time::{ClusterTime, Span};

/// A NodeHealthCheck, with the fields that decide whether it starts a remediation (medik8s/node-healthcheck-operator
/// 1cf0d07, `internal/controller/nodehealthcheck_controller.go`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeHealthCheck {
    pub name: Name,
    /// `spec.selector`; without requirements, it selects all nodes.
    pub selector: Selector,
    /// `spec.unhealthyConditions`. A node is unhealthy once one of them has held for long enough.
    pub unhealthy_conditions: Vec<UnhealthyCondition>,
    /// Kinds of the remediations in the order in which they are tried, such as `SelfNodeRemediation`.
    pub remediations: Vec<Name>,
    /// `spec.pauseRequests`
    pub pause_requests: Vec<Name>,
    /// `spec.minHealthy`
    pub min_healthy: Option<IntOrPercent>,
    /// `spec.maxUnhealthy`
    pub max_unhealthy: Option<IntOrPercent>,
    /// `status.observedNodes`, the number of nodes that the selector matches. Zero while remediation is paused or
    /// disabled.
    pub observed: i32,
    /// `status.healthyNodes`
    pub healthy: i32,
    /// Message of the condition Disabled; `None` if the condition is not True.
    pub disabled: Option<Name>,
    /// Whether the condition StormActive is True: many nodes were unhealthy at once.
    pub is_storm: bool,
    /// Remediations that were started, from `status.unhealthyNodes`, the earliest of each node first.
    pub started: Vec<StartedRemediation>,
}

/// A condition that makes a node unhealthy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UnhealthyCondition {
    /// Type of the node's condition.
    pub kind: Name,
    pub status: ConditionStatus,
    /// How long the node's condition must have this status.
    pub lasts: Span,
}

/// A remediation that a NodeHealthCheck has started.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StartedRemediation {
    pub node: NodeName,
    /// Kind of the remediation, such as `SelfNodeRemediation`.
    pub kind: Name,
    pub at: Option<ClusterTime>,
    /// When the time for the remediation was over; `None` if it is not over.
    pub timed_out: Option<ClusterTime>,
}

/// The NodeHealthChecks of a cluster. They are read only when somebody looks at a node that may be unhealthy.
pub type KnownHealthChecks = FetchedList<NodeHealthCheck>;

impl KnownHealthChecks {
    /// Returns whether a node may be unhealthy by the conditions of a NodeHealthCheck.
    pub fn concern(node: &Node) -> bool {
        !node.is_ready() || node.problems().next().is_some()
    }
}

impl NodeHealthCheck {
    /// Returns the remediations that the check has started for a node, the earliest first.
    pub fn started_for<'a>(&'a self, node: &'a Node) -> impl Iterator<Item = &'a StartedRemediation> {
        self.started.iter().filter(move |started| started.node == node.name)
    }

    /// Returns the kind of the remediation that the check starts for a node after those that have timed out; `None` if
    /// no remediation is left.
    pub fn next_remediation(&self, node: &Node) -> Option<&Name> {
        self.remediations.get(self.started_for(node).count())
    }

    /// Returns the condition by which a node is unhealthy first, and from when on; `None` if the node is healthy
    /// (`matchesUnhealthyConditions`).
    pub fn unhealthy_from(&self, node: &Node) -> Option<(&UnhealthyCondition, ClusterTime)> {
        let held = self.unhealthy_conditions.iter().filter_map(|unhealthy| {
            let held = node.condition(&unhealthy.kind).filter(|held| held.status == unhealthy.status)?;
            Some((unhealthy, held.last_transition? + unhealthy.lasts))
        });
        held.min_by_key(|(_, from)| *from)
    }

    /// Number of nodes that must be healthy before the check starts a remediation (`getMinHealthy`); `None` if it is
    /// not known.
    pub fn needed_healthy(&self) -> Option<i32> {
        let observed = Some(self.observed).filter(|observed| *observed > 0)?;
        let least = self.min_healthy.map(|least| least.scaled(observed));
        least.or_else(|| Some(observed - self.max_unhealthy?.scaled(observed)))
    }
}
