//! The component that adds a taint to nodes, as far as the taint's key shows.

use super::taint::{Taint, UNSCHEDULABLE};

/// The component that adds a taint to nodes, and the meaning of the taint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaintOwner {
    /// The component that adds and removes the taint.
    pub name: &'static str,
    /// The meaning of the taint for the node, in a few words.
    pub meaning: &'static str,
}

impl TaintOwner {
    /// Returns the owner of a taint; none if the key is not well known.
    pub fn from_taint(taint: &Taint) -> Option<Self> {
        let (_, name, meaning) = KNOWN.iter().find(|(pattern, ..)| pattern.matches(&taint.key))?;
        Some(Self { name, meaning })
    }

    /// Whether the taint's owner adds taints by the rules of the Node Readiness Controller.
    pub fn is_readiness(self) -> bool {
        self.name == READINESS
    }

    /// Whether the taint's owner creates nodes for Pending pods.
    pub fn is_autoscaler(self) -> bool {
        [AUTOSCALER, KARPENTER].contains(&self.name)
    }
}

/// Keys of the taint that Karpenter adds to nodes that it drains: the key since 1.0, then the older key.
pub(super) const DISRUPTED: [&str; 2] = ["karpenter.sh/disrupted", "karpenter.sh/disruption"];

enum Pattern {
    Key(&'static str),
    /// All taint keys of this domain.
    Under(&'static str),
}

impl Pattern {
    fn matches(&self, key: &str) -> bool {
        match *self {
            Self::Key(whole) => key == whole,
            Self::Under(domain) => key.strip_prefix(domain).is_some_and(|rest| rest.starts_with('/')),
        }
    }
}

/// Meaning of the taints with which a component marks a node that it drains.
const DRAINED: &str = "being drained, will be removed";

const LIFECYCLE: &str = "node lifecycle controller";
const CLOUD: &str = "cloud controller manager";
pub(super) const AUTOSCALER: &str = "Cluster Autoscaler";
pub(super) const KARPENTER: &str = "Karpenter";

const READINESS: &str = "Node Readiness Controller";

/// Well-known taints. The first match counts, so single keys come before their domains.
const KNOWN: [(Pattern, &str, &str); 38] = [
    (Pattern::Key("node.kubernetes.io/not-ready"), LIFECYCLE, "kubelet reports not ready"),
    (Pattern::Key("node.kubernetes.io/unreachable"), LIFECYCLE, "no heartbeat from its kubelet"),
    (Pattern::Key("node.kubernetes.io/memory-pressure"), LIFECYCLE, "short of memory"),
    (Pattern::Key("node.kubernetes.io/disk-pressure"), LIFECYCLE, "short of disk"),
    (Pattern::Key("node.kubernetes.io/pid-pressure"), LIFECYCLE, "short of process ids"),
    (Pattern::Key("node.kubernetes.io/network-unavailable"), LIFECYCLE, "its network is not set up"),
    (Pattern::Key(UNSCHEDULABLE), LIFECYCLE, "cordoned"),
    (
        Pattern::Key("node.kubernetes.io/out-of-service"),
        "an operator",
        "its Terminating pods are force deleted",
    ),
    (
        Pattern::Key("node.cloudprovider.kubernetes.io/uninitialized"),
        CLOUD,
        "not initialized by the cloud provider",
    ),
    (Pattern::Key("node.cloudprovider.kubernetes.io/shutdown"), CLOUD, "its instance is shut down"),
    (Pattern::Key("ToBeDeletedByClusterAutoscaler"), AUTOSCALER, DRAINED),
    (Pattern::Key("DeletionCandidateOfClusterAutoscaler"), AUTOSCALER, "may be removed soon"),
    (Pattern::Key("karpenter.sh/disrupted"), KARPENTER, DRAINED),
    (Pattern::Key("karpenter.sh/disruption"), KARPENTER, DRAINED),
    (Pattern::Key("karpenter.sh/unregistered"), KARPENTER, "not registered yet"),
    (Pattern::Under("karpenter.sh"), KARPENTER, "managed by it"),
    (Pattern::Key("node.cluster.x-k8s.io/uninitialized"), "Cluster API", "its labels are not set yet"),
    (Pattern::Key("node.cluster.x-k8s.io/outdated-revision"), "Cluster API", "will be replaced"),
    (Pattern::Under("node.cluster.x-k8s.io"), "Cluster API", "managed by it"),
    (
        Pattern::Under("aws-node-termination-handler"),
        "AWS Node Termination Handler",
        "its instance will be terminated",
    ),
    (Pattern::Key("cloud.google.com/impending-node-termination"), "GKE", "its instance will be terminated"),
    (Pattern::Under("cloud.google.com"), "GKE", "set for its node pool"),
    (Pattern::Under("eks.amazonaws.com"), "EKS", "set for its node group"),
    (Pattern::Key("kubernetes.azure.com/scalesetpriority"), "AKS", "a spot instance"),
    (Pattern::Under("kubernetes.azure.com"), "AKS", "set for its node pool"),
    (Pattern::Key("node.cilium.io/agent-not-ready"), "Cilium", "its network agent is not ready"),
    (Pattern::Key("weave.works/kured-node-reboot"), "kured", "will be rebooted"),
    (Pattern::Key("UpdateInProgress"), "Machine Config Operator", "will be updated"),
    (Pattern::Key("medik8s.io/drain"), "Node Maintenance Operator", "drained, and kept for maintenance"),
    (Pattern::Key("medik8s.io/remediation"), "Self Node Remediation", "unhealthy, being rebooted"),
    (
        Pattern::Key("remediation.medik8s.io/self-node-remediation"),
        "Self Node Remediation",
        "unhealthy, being rebooted",
    ),
    (
        Pattern::Key("medik8s.io/fence-agents-remediation"),
        "Fence Agents Remediation",
        "unhealthy, being fenced",
    ),
    (
        Pattern::Key("remediation.medik8s.io/fence-agents-remediation"),
        "Fence Agents Remediation",
        "unhealthy, being fenced",
    ),
    (Pattern::Under("remediator.kubernetes.azure.com"), "AKS", "drained for an event of Azure"),
    (Pattern::Under("remediator.aks.microsoft.com"), "AKS", "drained for an event of Azure"),
    (Pattern::Under("readiness.k8s.io"), READINESS, "a condition that it needs is not met"),
    (
        Pattern::Key("node-role.kubernetes.io/control-plane"),
        "its installer",
        "reserved for the control plane",
    ),
    (Pattern::Key("node-role.kubernetes.io/master"), "its installer", "reserved for the control plane"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(key: &str) -> Option<&'static str> {
        TaintOwner::from_taint(&Taint { key: key.into(), ..Taint::default() }).map(|owner| owner.name)
    }

    #[test]
    fn well_known_keys_name_their_owner() {
        assert_eq!(owner("node.kubernetes.io/unreachable"), Some(LIFECYCLE));
        assert_eq!(owner("node.kubernetes.io/out-of-service"), Some("an operator"));
        assert_eq!(owner("node.cloudprovider.kubernetes.io/shutdown"), Some(CLOUD));
        assert_eq!(owner("ToBeDeletedByClusterAutoscaler"), Some(AUTOSCALER));
        assert_eq!(
            (owner("karpenter.sh/disrupted"), owner("karpenter.sh/else")),
            (Some(KARPENTER), Some(KARPENTER))
        );
        assert_eq!(owner("aws-node-termination-handler/spot-itn"), Some("AWS Node Termination Handler"));
        let unready = "readiness.k8s.io/acme.com/network-unavailable";
        assert_eq!(owner(unready), Some("Node Readiness Controller"));
    }

    #[test]
    fn a_team_s_own_key_is_nobody_s() {
        assert_eq!(
            (owner("dedicated"), owner("karpenter.shop/x"), owner("karpenter.sh")),
            (None, None, None)
        );
    }

    #[test]
    fn single_keys_come_before_their_domains() {
        for (place, (pattern, ..)) in KNOWN.iter().enumerate() {
            let Pattern::Key(key) = pattern else { continue };
            let first = KNOWN.iter().position(|(pattern, ..)| pattern.matches(key));
            assert_eq!(first, Some(place), "{key} is hidden by an earlier entry");
        }
    }
}
