//! Karpenter's NodeClaims, which show how far Karpenter is with a machine that it removes.

use super::{
    fetched_list::FetchedList,
    names::{Name, NodeName},
    node::{Condition, ConditionStatus, Node},
};
use kordon_time::ClusterTime;

/// Label of the nodes that Karpenter manages, with their NodePool.
const NODE_POOL: &str = "karpenter.sh/nodepool";

/// A NodeClaim, with the fields that show what Karpenter does with its machine (kubernetes-sigs/karpenter 226646810,
/// `pkg/apis/v1/nodeclaim_status.go`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeClaim {
    pub name: Name,
    /// `status.nodeName`; empty before the node has registered.
    pub node: NodeName,
    /// When the deletion of the claim began; `None` if the claim is not being deleted.
    pub deleted: Option<ClusterTime>,
    /// Time by which the pods of the node are deleted, whatever their budgets say: `spec.terminationGracePeriod` after
    /// the deletion (annotation `karpenter.sh/nodeclaim-termination-timestamp`); `None` for never.
    pub forced: Option<ClusterTime>,
    pub conditions: Vec<Condition>,
}

/// The NodeClaims of a cluster. They are read only when somebody looks at a node that Karpenter manages.
pub type KnownNodeClaims = FetchedList<NodeClaim>;

/// How far Karpenter is with a machine that it removes (`pkg/controllers/node/termination/controller.go`, `finalize`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemovalStage {
    /// The pods of the node are being evicted.
    Draining,
    /// The node is drained, but its volumes are not detached yet.
    AwaitingVolumes,
    /// The cloud provider is terminating the machine.
    Terminating,
}

impl KnownNodeClaims {
    /// Returns whether Karpenter manages a node, so that it has a NodeClaim.
    pub fn concern(node: &Node) -> bool {
        node.label(NODE_POOL).is_some()
    }
}

impl NodeClaim {
    /// The condition of the NodeClaim that has this type, if the condition is True.
    pub fn true_condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions
            .iter()
            .find(|condition| condition.kind == *kind && condition.status == ConditionStatus::True)
    }

    /// How far the removal of the machine is; `None` if the claim is not being deleted.
    pub fn removal(&self) -> Option<RemovalStage> {
        self.deleted?;
        Some(if self.true_condition("InstanceTerminating").is_some() {
            RemovalStage::Terminating
        } else if self.true_condition("Drained").is_some() {
            RemovalStage::AwaitingVolumes
        } else {
            RemovalStage::Draining
        })
    }
}
