//! Reasons why a node is not feasible for a pod.

use std::{borrow::Cow, fmt};

use crate::cluster::Name;

/// A reason for which a filter refuses a node. The scheduler's message counts nodes by the same reasons.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The node has the maximum number of pods.
    TooManyPods,
    /// Too little of this resource is free.
    Insufficient(Name),
    /// `spec.nodeName` of the pod names another node.
    OtherNode,
    Cordoned,
    /// A taint that the pod does not tolerate.
    Taint {
        key: Name,
        value: Name,
    },
    /// One or more taints that the pod does not tolerate. Since 1.35 the scheduler reports all of them as one reason.
    Taints,
    /// The nodeSelector or required nodeAffinity does not match.
    NodeAffinity,
    /// The pod requires node names that contradict each other.
    NamesContradict,
    /// A host port is in use.
    Port,
    /// A disk of the pod is in use on the node, and pods on the same node cannot share it.
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
    /// A claim has the name that the pod's own claim would have, but belongs to another pod.
    ClaimNotOwned(Name),
    /// A claim has no volume, and its class does not delay binding until the first consumer.
    ClaimUnbound,
    /// The volume of the claim does not exist.
    VolumeMissing(Name),
    /// A ReadWriteOncePod claim is already in use by another pod.
    ClaimInUse,
    /// The node cannot attach more volumes.
    VolumeLimit,
    /// The node does not have this CSI driver of a volume.
    DriverMissing(Name),
    /// The node affinity of a volume excludes the node.
    VolumeUnreachable,
    /// The node can reach no volume for a claim of the pod, and none can be provisioned there.
    NoVolume,
    /// The storage that the node can reach does not have enough capacity for a new volume.
    NoStorageSpace,
    /// The zone or region label of a volume excludes the node.
    VolumeZone,
    /// The node does not have free devices for the claims of the pod.
    Devices,
    /// A claim has devices that the node cannot use.
    DevicesElsewhere,
    /// The ResourceClaim does not exist.
    DeviceClaimMissing(Name),
    /// The ResourceClaim for this entry of the pod's claims does not exist yet.
    DeviceClaimNotCreated(Name),
    /// The ResourceClaimTemplate of a claim of the new pod does not exist.
    DeviceTemplateMissing(Name),
    /// A selector of devices fails for a device of the node, for this reason.
    DeviceSelector(Name),
    /// A claim asks for devices of a class that does not exist.
    DeviceClassMissing(Name),
    /// The node does not declare this feature, which the pod requires.
    FeatureMissing(Name),
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
            Self::DriverMissing(driver) => write!(f, "CSI driver {driver} not installed"),
            Self::VolumeUnreachable => f.write_str("volume not reachable"),
            Self::NoVolume => f.write_str("no volume for its claim"),
            Self::NoStorageSpace => f.write_str("not enough free storage"),
            Self::VolumeZone => f.write_str("volume in another zone"),
            Self::Devices => f.write_str("no free device for its claims"),
            Self::DevicesElsewhere => f.write_str("devices of its claim on another node"),
            Self::DeviceClaimMissing(claim) => write!(f, "resource claim {claim} not found"),
            Self::DeviceClaimNotCreated(entry) => write!(f, "resource claim {entry} not created yet"),
            Self::DeviceTemplateMissing(template) => {
                write!(f, "resource claim template {template} not found")
            }
            Self::DeviceSelector(why) => f.write_str(why),
            Self::DeviceClassMissing(class) => write!(f, "device class {class} not found"),
            Self::FeatureMissing(feature) => write!(f, "feature {feature} not declared"),
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
    /// The reasons, at least one. A refusal can have several reasons if several resources are insufficient.
    pub reasons: Cow<'static, [Reason]>,
    /// Whether the removal of pods may make the node feasible.
    pub remedy: Remedy,
}

/// A change that may make a refused node feasible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Remedy {
    /// The removal of pods may make the node feasible.
    FewerPods,
    /// The removal of pods does not make the node feasible.
    None,
}

/// A refusal of a node by a filter, either with reasons or without. A caller that needs no reasons uses
/// [`Unexplained`], which computes none.
pub(super) trait FilterRefusal: Sized {
    fn explained(explain: impl FnOnce() -> NodeRefusal) -> Self;

    /// Creates a refusal that the removal of pods may remedy.
    fn resolvable(reasons: &'static [Reason]) -> Self {
        Self::explained(|| NodeRefusal { reasons: reasons.into(), remedy: Remedy::FewerPods })
    }

    /// Creates a refusal that the removal of pods cannot remedy.
    fn unresolvable(reasons: &'static [Reason]) -> Self {
        Self::explained(|| NodeRefusal { reasons: reasons.into(), remedy: Remedy::None })
    }

    /// Like [`FilterRefusal::unresolvable`], for a reason that names an object.
    fn unresolvable_by(reason: impl FnOnce() -> Reason) -> Self {
        Self::explained(|| NodeRefusal { reasons: vec![reason()].into(), remedy: Remedy::None })
    }
}

impl FilterRefusal for NodeRefusal {
    fn explained(explain: impl FnOnce() -> Self) -> Self {
        explain()
    }
}

/// A refusal of a node without its reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unexplained;

impl FilterRefusal for Unexplained {
    fn explained(_: impl FnOnce() -> NodeRefusal) -> Self {
        Self
    }
}
