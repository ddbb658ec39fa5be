//! Reasons why a pod that leaves gets no replacement, and needs none.

use std::fmt;

use super::{
    owner::{self, Recreation},
    successor,
};
use crate::{
    cluster::{Cluster, NodeName, Pod, Scope, Taint, TaintEffect},
    engine::{Tolerance, no_execute, tolerance},
};

/// The reason why a pod gets no replacement, although its controller or its kubelet usually recreates pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotNeeded {
    /// The pod's controller has enough pods without it.
    EnoughPods,
    /// The pod's Job has completed or failed, so its controller creates no pods, and deletes those that still run.
    JobEnded,
    /// The pod's namespace is being deleted, so the API server refuses new pods in it.
    NamespaceEnds,
    /// The pod can run only on its node, whose object is gone: a DaemonSet has no pod for a node that does not exist,
    /// and a mirror pod is created only for a node that exists.
    NodeGone,
    /// The pod's DaemonSet creates no pod on its node, because of a NoExecute taint that the pod does not tolerate.
    NodeTainted,
}

impl fmt::Display for NotNeeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EnoughPods => "its controller needs no other",
            Self::JobEnded => "its Job has ended",
            Self::NamespaceEnds => "its namespace is being deleted",
            Self::NodeGone => "it runs only on its node, which is gone",
            Self::NodeTainted => "its DaemonSet creates none on its node while that has the taint",
        })
    }
}

impl NotNeeded {
    /// Returns why nothing is created in the place of a leaving pod; `None` if its controller may create one.
    /// Controllers of workloads give up silently in a namespace that is being deleted (upstream `manageReplicas`,
    /// NamespaceLifecycle admission).
    pub(super) fn find(cluster: &Cluster, pod: &Pod, recreation: Recreation) -> Option<Self> {
        let namespace = cluster.namespaces().get(&pod.key.namespace);
        let node_is_gone = || {
            let is_gone =
                |node: &NodeName| cluster.node(node).is_none() && cluster.knows(&Scope::Node(node.clone()));
            pod.node.as_ref().is_some_and(is_gone)
        };
        match recreation {
            Recreation::OnSameNode if node_is_gone() => Some(Self::NodeGone),
            Recreation::OnSameNode if is_repelled(cluster, pod) => Some(Self::NodeTainted),
            Recreation::OnSameNode | Recreation::Immediately | Recreation::WhenGone => {
                let ends = namespace.filter(|namespace| namespace.terminating).map(|_| Self::NamespaceEnds);
                ends.or_else(|| owner::has_ended(cluster, pod).then_some(Self::JobEnded))
            }
            Recreation::Never(_) | Recreation::Unknown => None,
        }
    }
}

/// Returns whether the DaemonSet of a pod creates no pod on its node, because of a NoExecute taint there that the pod
/// does not tolerate (upstream `NodeShouldRunDaemonPod`). A static pod ignores taints.
fn is_repelled(cluster: &Cluster, pod: &Pod) -> bool {
    let Some(node) = pod.node.as_ref().and_then(|node| cluster.node(node)) else { return false };
    pod.is_of_daemon_set()
        && matches!(tolerance(&pod.tolerations, &no_execute(node)), Tolerance::NotTolerated(_))
}

/// Returns whether the DaemonSet of a pod creates a new pod on the same node now, because nothing on the node prevents
/// it (upstream `nodeShouldRunDaemonPod`).
pub(super) fn is_created_on_its_node(cluster: &Cluster, pod: &Pod) -> bool {
    let new = successor::successor(cluster, pod);
    let is_tolerated = |taint: &Taint| {
        !matches!(taint.effect, TaintEffect::NoSchedule | TaintEffect::NoExecute)
            || new.tolerations.iter().any(|toleration| toleration.tolerates(taint))
    };
    let node = pod.node.as_ref().and_then(|node| cluster.node(node));
    pod.is_of_daemon_set()
        && new.scheduling.names_nodes()
        && NotNeeded::find(cluster, pod, Recreation::OnSameNode).is_none()
        && node.is_some_and(|node| node.taints.iter().all(is_tolerated))
}
