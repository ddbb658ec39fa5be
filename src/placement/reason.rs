//! Why a pod cannot be on a node.

use std::fmt;

use crate::cluster::Name;

/// A reason, one per thing that upstream counts in its message. Counts of reasons go by upstream's distinctions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// As many pods as the node takes are there.
    TooManyPods,
    /// Too little of this resource is left.
    Insufficient(Name),
    /// The pod wants a node of another name.
    OtherNode,
    Cordoned,
    /// A taint that the pod does not tolerate.
    Taint {
        key: Name,
        value: Name,
    },
    /// Taints that the pod does not tolerate; since 1.35 they are not told apart.
    Taints,
    /// Node selector or required node affinity.
    NodeAffinity,
    /// The node names that the pod insists on contradict each other.
    NamesContradict,
    /// A port of the node is taken.
    Port,
    /// A disk that only one pod of a node can have is in use there.
    Disk,
    /// There is no claim of this name.
    ClaimMissing(Name),
    /// The claim that is made for the pod has not been made yet.
    ClaimToBeMade(Name),
    /// The claim's volume has gone.
    ClaimLost {
        claim: Name,
        volume: Name,
    },
    /// The claim is being deleted.
    ClaimLeaving(Name),
    /// A claim of the name that its own would have was made for another pod.
    ClaimOfAnother(Name),
    /// A claim has no volume, and does not wait for its first pod to get one.
    ClaimUnbound,
    /// The claim's volume is not there.
    VolumeMissing(Name),
    /// A claim for one pod at a time is in use.
    ClaimInUse,
    /// The node can attach no more volumes.
    VolumeLimit,
    /// A volume cannot be reached from there.
    VolumeElsewhere,
    /// No volume is to be had for a claim there.
    NoVolume,
    /// A volume is in another zone.
    VolumeZone,
    /// No pod that it must be near is near.
    PodAffinity,
    /// A pod that it must not be near is near.
    PodAntiAffinity,
    /// A pod near by does not bear it.
    Unwelcome,
    /// Its pods would be spread too unevenly.
    Spread,
    /// The node lacks a label that its pods are spread by.
    SpreadLabel,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyPods => f.write_str("no room for one more pod"),
            Self::Insufficient(resource) => write!(f, "not enough {resource}"),
            Self::OtherNode => f.write_str("not the node it names"),
            Self::Cordoned => f.write_str("cordoned"),
            Self::Taint { key, value } if value.is_empty() => write!(f, "taint {key} not tolerated"),
            Self::Taint { key, value } => write!(f, "taint {key}={value} not tolerated"),
            Self::Taints => f.write_str("taints not tolerated"),
            Self::NodeAffinity => f.write_str("node selector or affinity not met"),
            Self::NamesContradict => f.write_str("the node names it insists on contradict each other"),
            Self::Port => f.write_str("host port taken"),
            Self::Disk => f.write_str("disk in use on the node"),
            Self::ClaimMissing(claim) => write!(f, "its claim {claim} is missing"),
            Self::ClaimToBeMade(claim) => write!(f, "its claim {claim} is yet to be made"),
            Self::ClaimLost { claim, volume } => {
                write!(f, "the volume {volume} of its claim {claim} is lost")
            }
            Self::ClaimLeaving(claim) => write!(f, "its claim {claim} is being deleted"),
            Self::ClaimOfAnother(claim) => write!(f, "the claim {claim} was not made for it"),
            Self::ClaimUnbound => f.write_str("a claim of it has no volume yet"),
            Self::VolumeMissing(volume) => write!(f, "its volume {volume} is missing"),
            Self::ClaimInUse => f.write_str("its claim is for one pod, and in use"),
            Self::VolumeLimit => f.write_str("no more volumes can be attached"),
            Self::VolumeElsewhere => f.write_str("its volume cannot be reached from there"),
            Self::NoVolume => f.write_str("no volume for its claim"),
            Self::VolumeZone => f.write_str("its volume is in another zone"),
            Self::PodAffinity => f.write_str("no pod near that it must be near"),
            Self::PodAntiAffinity => f.write_str("a pod near that it must keep away from"),
            Self::Unwelcome => f.write_str("a pod near by keeps it away"),
            Self::Spread => f.write_str("spread too unevenly"),
            Self::SpreadLabel => f.write_str("no label to spread by"),
        }
    }
}

/// What one filter says against a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRefusal {
    /// At least one; several resources can lack at once.
    pub reasons: Vec<Reason>,
    /// Whether the node would do with fewer pods on it, perhaps.
    pub remedy: Remedy,
}

/// Whether preemption can help a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Remedy {
    /// Fewer pods on the node may do.
    FewerPods,
    /// No pod's going from the node changes it.
    None,
}

impl NodeRefusal {
    pub(super) fn curable(reason: Reason) -> Self {
        Self { reasons: vec![reason], remedy: Remedy::FewerPods }
    }

    pub(super) fn final_word(reason: Reason) -> Self {
        Self { reasons: vec![reason], remedy: Remedy::None }
    }
}
