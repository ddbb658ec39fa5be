//! What has changed between the plan that was shown and the one worked out again before anything is written.

use std::{collections::BTreeMap, fmt};

use crate::{
    cluster::{Key, NodeName, Uid},
    plan::{Plan, Verdict},
};

/// One difference that matters.
#[derive(Clone, Debug, PartialEq)]
pub enum Drift {
    /// What would be written to the node is not what was shown.
    Node {
        node: NodeName,
    },
    /// A pod that was not in the plan.
    Came {
        pod: Key,
    },
    /// A pod that is gone, or another one by now.
    Went {
        pod: Key,
    },
    Verdict {
        pod: Key,
        was: &'static str,
        is: &'static str,
    },
}

/// The differences between two plans of one action, `shown` before `newest`.
pub fn between(shown: &Plan, newest: &Plan) -> Vec<Drift> {
    let mut drifts = Vec::new();
    for node in &newest.nodes {
        let before = shown.nodes.iter().find(|before| before.node == node.node);
        if before.is_none_or(|before| before.uid != node.uid || before.change != node.change) {
            drifts.push(Drift::Node { node: node.node.clone() });
        }
    }
    let was: BTreeMap<(&Key, &Uid), &Verdict> =
        shown.pods.iter().map(|pod| ((&pod.pod, &pod.uid), &pod.verdict)).collect();
    let is: BTreeMap<(&Key, &Uid), &Verdict> =
        newest.pods.iter().map(|pod| ((&pod.pod, &pod.uid), &pod.verdict)).collect();
    for (pod, verdict) in &is {
        match was.get(pod) {
            None => drifts.push(Drift::Came { pod: pod.0.clone() }),
            Some(before) if before.word() != verdict.word() => {
                drifts.push(Drift::Verdict { pod: pod.0.clone(), was: before.word(), is: verdict.word() })
            }
            Some(_) => {}
        }
    }
    let gone = was.keys().filter(|pod| !is.contains_key(*pod));
    drifts.extend(gone.map(|(pod, _)| Drift::Went { pod: (*pod).clone() }));
    drifts
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node { node } => write!(f, "node {node} has changed"),
            Self::Came { pod } => write!(f, "pod {pod} has come"),
            Self::Went { pod } => write!(f, "pod {pod} has gone"),
            Self::Verdict { pod, was, is } => write!(f, "pod {pod}: {was} has become {is}"),
        }
    }
}
