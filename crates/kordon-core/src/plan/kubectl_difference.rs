//! Differences between the plan of a drain and what the equivalent kubectl command does (kubectl 1.37,
//! `pkg/drain/drain.go`, `pkg/cmd/drain/drain.go`).

use std::fmt;

use super::{action::Action, owner_kinds, plan::Plan, verdict::Verdict, warning::Warning};
use crate::cluster::{Key, NodeName};

/// A difference between what kubectl does and what the plan says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KubectlDifference {
    /// kubectl drains one node after the other. At `node`, it waits for ever or ends with an error, so it does not
    /// reach `next`.
    StopsAt { node: NodeName, next: NodeName },
    /// kubectl reports success although new pods run on the node, because it only waits for the old pods.
    EndsWithPodsBack { node: NodeName },
    /// kubectl evicts by name. If another node gets a new pod of the same name during the drain, kubectl evicts that
    /// pod too.
    FollowsName { pod: Key },
}

impl KubectlDifference {
    /// Returns the differences between a plan and what kubectl does; none for actions other than drains.
    pub fn all(plan: &Plan) -> Vec<Self> {
        if !matches!(plan.action, Action::Drain { .. }) {
            return Vec::new();
        }
        let stops = stops_at(plan);
        let back = plan.warnings.iter().filter_map(|warning| match warning {
            Warning::ComesBack { node, .. } => Some(Self::EndsWithPodsBack { node: node.clone() }),
            _ => None,
        });
        let follows = plan.pods.iter().find(|pod| {
            let keeps_its_name = pod.owner.as_ref().is_some_and(|(kind, _)| owner_kinds::keeps_names(kind));
            let is_retried = matches!(
                pod.verdict.as_if_granted(),
                Verdict::LeavesAfter { .. }
                    | Verdict::Waits { .. }
                    | Verdict::WaitsForOperator { .. }
                    | Verdict::Blocked { .. }
            );
            keeps_its_name && is_retried
        });
        let follows = follows.map(|pod| Self::FollowsName { pod: pod.pod.clone() });
        stops.into_iter().chain(back).chain(follows).collect()
    }
}

/// Returns the first node whose drain never ends, and the node after it; `None` if there is no such node, or if it is
/// the last one.
fn stops_at(plan: &Plan) -> Option<KubectlDifference> {
    let follows =
        plan.nodes.iter().position(|node| node.drain.as_ref().is_some_and(|drain| drain.after_incomplete))?;
    let node = plan.nodes.get(follows.checked_sub(1)?)?;
    let next = plan.nodes[follows].node.clone();
    Some(KubectlDifference::StopsAt { node: node.node.clone(), next })
}

impl fmt::Display for KubectlDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StopsAt { node, next } => write!(f, "it never gets from {node} to {next}"),
            Self::EndsWithPodsBack { node } => {
                write!(
                    f,
                    "it ends with success while pods are back on {node}, because it waits for the old pods only"
                )
            }
            Self::FollowsName { pod } => {
                write!(f, "it evicts {pod} by name, also where a new pod of this name runs on another node")
            }
        }
    }
}
