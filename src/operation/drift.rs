//! What a plan that is made again does beyond the plan that was agreed to.
//!
//! Pods come and go while a plan is read. Agreeing to a plan includes agreeing to a part of it: a pod that has left, or
//! that its budget lets go sooner, is no reason to ask again.

use std::{collections::BTreeMap, fmt};

use crate::{
    cluster::{Key, NodeName, Uid},
    plan::{Plan, PodPlan, Verdict},
};

/// One difference that matters.
#[derive(Clone, Debug, PartialEq)]
pub enum Drift {
    /// What would be written to the node is not what was shown.
    Node { node: NodeName },
    /// A pod that was not in the plan.
    New { pod: Key },
    /// A pod with a worse verdict than was shown.
    Verdict { pod: Key, was: &'static str, is: &'static str },
    /// A pod that no controller recreates any more.
    Lost { pod: Key },
}

/// What `newest` does beyond `shown`, an earlier plan of the same action.
pub fn between(shown: &Plan, newest: &Plan) -> Vec<Drift> {
    let mut drifts = Vec::new();
    for node in &newest.nodes {
        let before = shown.nodes.iter().find(|before| before.node == node.node);
        if before.is_none_or(|before| before.uid != node.uid || before.change != node.change) {
            drifts.push(Drift::Node { node: node.node.clone() });
        }
    }
    let agreed: BTreeMap<(&Key, &Uid), &PodPlan> =
        shown.pods.iter().map(|pod| ((&pod.pod, &pod.uid), pod)).collect();
    for pod in newest.pods.iter().filter(|pod| weight(&pod.verdict) > 0) {
        let key = pod.pod.clone();
        let Some(before) = agreed.get(&(&pod.pod, &pod.uid)) else {
            drifts.push(Drift::New { pod: key });
            continue;
        };
        if before.lost.is_none() && pod.lost.is_some() {
            drifts.push(Drift::Lost { pod: key.clone() });
        }
        if weight(&before.verdict) < weight(&pod.verdict) {
            drifts.push(Drift::Verdict { pod: key, was: before.verdict.word(), is: pod.verdict.word() });
        }
    }
    drifts
}

/// What a verdict means to whoever agrees: the pod stays, leaves, is waited for, may never leave.
const fn weight(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Skipped(_) | Verdict::Terminating | Verdict::Tolerates | Verdict::DeletionCancelled => 0,
        Verdict::Leaves(_) | Verdict::Deleted { .. } => 1,
        Verdict::LeavesAfter { .. }
        | Verdict::Waits { .. }
        | Verdict::WaitsForController { .. }
        | Verdict::WaitsForNamespace => 2,
        Verdict::Refused { .. }
        | Verdict::Blocked { .. }
        | Verdict::TwoBudgets { .. }
        | Verdict::Unknown { .. } => 3,
    }
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node { node } => write!(f, "node {node} has changed"),
            Self::New { pod } => write!(f, "pod {pod} is new"),
            Self::Verdict { pod, was, is } => write!(f, "pod {pod}: was {was}, is now {is}"),
            Self::Lost { pod } => write!(f, "pod {pod} would not be recreated"),
        }
    }
}
