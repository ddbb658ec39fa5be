//! Why a node is not feasible for a pod.

use std::{borrow::Cow, fmt};

use crate::cluster::Name;

/// A reason why a node is refused. The scheduler counts the same reasons in its message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The node has the maximum number of pods.
    TooManyPods,
    /// Too little of this resource is free.
    Insufficient(Name),
    /// `spec.nodeName` is another node.
    OtherNode,
    Cordoned,
    /// A taint that the pod does not tolerate.
    Taint {
        key: Name,
        value: Name,
    },
    /// One or more taints that the pod does not tolerate. Since 1.35 the scheduler reports them as one reason.
    Taints,
    /// The nodeSelector or required nodeAffinity does not match.
    NodeAffinity,
    /// The node names that the pod requires contradict each other.
    NamesContradict,
    /// A host port is in use.
    Port,
    /// A disk that only one pod of a node can use is in use on the node.
    Disk,
    /// The claim does not exist.
    ClaimMissing(Name),
    /// The claim that a controller creates for the pod does not exist yet.
    ClaimNotCreated(Name),
    /// The volume of the claim is gone.
    ClaimLost {
        claim: Name,
        volume: Name,
    },
    /// The claim is being deleted.
    ClaimTerminating(Name),
    /// The claim that bears the name of the pod's own claim was created for another pod.
    ClaimNotOwned(Name),
    /// A claim has no volume, and its class does not wait for the first consumer.
    ClaimUnbound,
    /// The volume of the claim does not exist.
    VolumeMissing(Name),
    /// A ReadWriteOncePod claim is in use.
    ClaimInUse,
    /// The node cannot attach more volumes.
    VolumeLimit,
    /// The node affinity of a volume excludes the node.
    VolumeUnreachable,
    /// On this node, no volume for a claim exists or can be provisioned.
    NoVolume,
    /// The zone or region label of a volume excludes the node.
    VolumeZone,
    /// The required podAffinity is not met.
    PodAffinity,
    /// The pod's required podAntiAffinity is not met.
    PodAntiAffinity,
    /// The required podAntiAffinity of an existing pod excludes the new pod.
    ExistingAntiAffinity,
    /// A topologySpreadConstraint would be violated.
    Spread,
    /// The node lacks the label of a topologySpreadConstraint.
    SpreadLabel,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyPods => f.write_str("too many pods"),
            Self::Insufficient(resource) => write!(f, "insufficient {resource}"),
            Self::OtherNode => f.write_str("nodeName does not match"),
            Self::Cordoned => f.write_str("cordoned"),
            Self::Taint { key, value } if value.is_empty() => write!(f, "untolerated taint {key}"),
            Self::Taint { key, value } => write!(f, "untolerated taint {key}={value}"),
            Self::Taints => f.write_str("untolerated taints"),
            Self::NodeAffinity => f.write_str("nodeSelector or nodeAffinity does not match"),
            Self::NamesContradict => f.write_str("contradictory required node names"),
            Self::Port => f.write_str("host port in use"),
            Self::Disk => f.write_str("disk in use"),
            Self::ClaimMissing(claim) => write!(f, "claim {claim} not found"),
            Self::ClaimNotCreated(claim) => write!(f, "claim {claim} not created yet"),
            Self::ClaimLost { claim, volume } => {
                write!(f, "claim {claim} lost its volume {volume}")
            }
            Self::ClaimTerminating(claim) => write!(f, "claim {claim} is being deleted"),
            Self::ClaimNotOwned(claim) => write!(f, "claim {claim} belongs to another pod"),
            Self::ClaimUnbound => f.write_str("unbound claim"),
            Self::VolumeMissing(volume) => write!(f, "volume {volume} not found"),
            Self::ClaimInUse => f.write_str("ReadWriteOncePod claim in use"),
            Self::VolumeLimit => f.write_str("volume limit reached"),
            Self::VolumeUnreachable => f.write_str("volume not reachable"),
            Self::NoVolume => f.write_str("no volume for its claim"),
            Self::VolumeZone => f.write_str("volume in another zone"),
            Self::PodAffinity => f.write_str("podAffinity not met"),
            Self::PodAntiAffinity => f.write_str("podAntiAffinity not met"),
            Self::ExistingAntiAffinity => f.write_str("podAntiAffinity of another pod"),
            Self::Spread => f.write_str("topology spread not met"),
            Self::SpreadLabel => f.write_str("no topology label"),
        }
    }
}

/// The refusal of a node by one filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRefusal {
    /// At least one reason. Several resources can be insufficient at once.
    pub reasons: Cow<'static, [Reason]>,
    /// Whether preemption may help.
    pub remedy: Remedy,
}

/// What may make a refused node feasible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Remedy {
    /// Fewer pods on the node may help.
    FewerPods,
    /// The removal of pods does not help.
    None,
}

/// A refusal in the form that the caller of a filter needs: with reasons, or without reasons, which costs nothing.
pub(super) trait FilterRefusal: Sized {
    fn explained(explain: impl FnOnce() -> NodeRefusal) -> Self;

    /// Creates a refusal that fewer pods on the node may remedy.
    fn resolvable(reasons: &'static [Reason]) -> Self {
        Self::explained(|| NodeRefusal { reasons: reasons.into(), remedy: Remedy::FewerPods })
    }

    /// Creates a refusal that the removal of pods does not remedy.
    fn unresolvable(reasons: &'static [Reason]) -> Self {
        Self::explained(|| NodeRefusal { reasons: reasons.into(), remedy: Remedy::None })
    }
}

impl FilterRefusal for NodeRefusal {
    fn explained(explain: impl FnOnce() -> Self) -> Self {
        explain()
    }
}

/// A refusal without its reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unexplained;

impl FilterRefusal for Unexplained {
    fn explained(_: impl FnOnce() -> NodeRefusal) -> Self {
        Self
    }
}
