//! What the operator has agreed to, and how a newer plan of the same action exceeds it.
//!
//! An agreement covers the nodes, the writes to them, and the kinds of risk that the plan showed. It does not list the
//! pods of a drain, because pods come and go while the operator reads the plan: one more pod that its controller
//! recreates is no reason to ask again.

use std::{collections::BTreeSet, fmt};

use super::{Confirmation, Risk};
use crate::{
    cluster::{Key, NodeName, Uid},
    plan::{Action, NodeChange, Plan, PodPlan, Surge},
};

/// Everything that the operator has confirmed so far, over all plans of an operation. The operator is not asked about
/// it again.
#[derive(Clone, Debug, Default)]
pub struct Agreed {
    nodes: BTreeSet<(NodeName, Uid)>,
    /// The planned change of each node, in words.
    changes: BTreeSet<(NodeName, String)>,
    /// The pods that the action names; empty for an action on nodes.
    pods: BTreeSet<(Key, Uid)>,
    risks: BTreeSet<Risk>,
    /// The Deployments that are scaled up during the drain.
    surges: BTreeSet<Uid>,
    confirmation: Option<Confirmation>,
}

/// A difference between the agreement and a newer plan, about which the operator has to decide again.
#[derive(Clone, Debug, PartialEq)]
pub enum Drift {
    /// The newer plan has a write to this node that no confirmed plan had.
    Node { node: NodeName },
    /// Another pod now has the name of a pod that the action names.
    Pod { pod: Key },
    /// The newer plan scales this Deployment up.
    Surge { surge: Surge },
    /// The pod has a kind of risk that no pod had in a confirmed plan.
    Risk { pod: Key, risk: Risk, verdict: String },
}

impl Agreed {
    /// Adds a plan to the agreement.
    pub fn add(&mut self, plan: &Plan) {
        for node in &plan.nodes {
            self.nodes.insert((node.node.clone(), node.uid.clone()));
            self.changes.insert((node.node.clone(), node.change.text()));
        }
        self.pods.extend(named(plan).map(|pod| (pod.pod.clone(), pod.uid.clone())));
        self.risks.extend(Risk::of_plan(plan));
        self.surges.extend(surges(plan).map(|surge| surge.uid.clone()));
        self.confirmation = self.confirmation.max(Some(Confirmation::to(plan)));
    }

    /// Returns the differences between the agreement and a newer plan of the same action.
    pub fn drifts(&self, plan: &Plan) -> Vec<Drift> {
        let is_new = |node: &NodeName, uid: &Uid, change: &NodeChange| {
            let is_written = !matches!(change, NodeChange::Unchanged { .. });
            !self.nodes.contains(&(node.clone(), uid.clone()))
                || is_written && !self.changes.contains(&(node.clone(), change.text()))
        };
        let nodes = plan.nodes.iter().filter(|node| is_new(&node.node, &node.uid, &node.change));
        let pods = named(plan).filter(|pod| !self.pods.contains(&(pod.pod.clone(), pod.uid.clone())));
        let risks = plan.pods.iter().flat_map(|pod| {
            let new = Risk::of_pod(pod).into_iter().filter(|risk| !self.risks.contains(risk));
            new.map(|risk| Drift::Risk { pod: pod.pod.clone(), risk, verdict: pod.verdict.to_string() })
        });
        let nodes = nodes.map(|node| Drift::Node { node: node.node.clone() });
        let surges = surges(plan).filter(|surge| !self.surges.contains(&surge.uid));
        let surges = surges.map(|surge| Drift::Surge { surge: surge.clone() });
        nodes.chain(pods.map(|pod| Drift::Pod { pod: pod.pod.clone() })).chain(surges).chain(risks).collect()
    }

    /// Whether a plan needs a stronger confirmation than all plans to which the operator has agreed so far.
    pub fn is_graver(&self, plan: &Plan) -> bool {
        Some(Confirmation::to(plan)) > self.confirmation
    }
}

impl Drift {
    /// Returns the differences in words, one line each. If there are more than 20, the last line has the number of
    /// further differences.
    pub fn lines(drifts: &[Self]) -> Vec<String> {
        const SHOWN: usize = 20;
        let mut lines: Vec<String> = drifts.iter().take(SHOWN).map(ToString::to_string).collect();
        if drifts.len() > SHOWN {
            lines.push(format!("and {} more", drifts.len() - SHOWN));
        }
        lines
    }
}

/// The Deployments that a plan scales up.
fn surges(plan: &Plan) -> impl Iterator<Item = &Surge> {
    plan.surges.iter().filter_map(|plan| plan.surge())
}

/// The pods that the plan's action names; empty for an action on nodes.
fn named(plan: &Plan) -> impl Iterator<Item = &PodPlan> {
    let pods = match &plan.action {
        Action::Evict { .. } | Action::Delete { .. } => &plan.pods[..],
        Action::Cordon { .. }
        | Action::Uncordon { .. }
        | Action::Taint { .. }
        | Action::Metadata { .. }
        | Action::DeleteNode { .. }
        | Action::Drain { .. } => &[],
    };
    pods.iter()
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node { node } => write!(f, "node {node} has changed"),
            Self::Pod { pod } => write!(f, "another pod has the name {pod} now"),
            Self::Surge { surge } => write!(f, "Deployment {surge} would be scaled up"),
            Self::Risk { pod, risk, verdict } => match risk {
                Risk::Lost => write!(f, "pod {pod} would be lost: no controller recreates it"),
                Risk::PreemptedLost => {
                    write!(f, "the replacement of pod {pod} would preempt pods that are lost")
                }
                Risk::DataLost => write!(f, "data of pod {pod} would be lost"),
                Risk::DuplicateIdentity => write!(f, "the identity of pod {pod} may exist twice"),
                Risk::BudgetIgnored | Risk::Waits | Risk::Blocked => write!(f, "pod {pod}: {verdict}"),
            },
        }
    }
}
