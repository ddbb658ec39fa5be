//! The part of a pod's spec that says where it may run, apart from tolerations and priority.

use super::{
    labels::Selector,
    names::{Name, Namespace},
};

/// The part of a pod's spec that says where it may run. What it requests is in [`super::PodResources`].
///
/// Equal for all pods of a workload, so it is shared; see [`super::Pod::scheduling`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SchedulingSpec {
    /// `spec.nodeSelector`.
    pub node_selector: Box<[(Name, Name)]>,
    /// The required terms of `spec.affinity.nodeAffinity`: one must match. None if nothing is required.
    pub node_affinity: Option<Box<[NodeTerm]>>,
    /// The preferred terms of `spec.affinity.nodeAffinity`, each with its weight.
    pub preferred_nodes: Box<[(i32, NodeTerm)]>,
    /// `spec.affinity.podAffinity`.
    pub pod_affinity: PodTerms,
    /// `spec.affinity.podAntiAffinity`.
    pub pod_anti_affinity: PodTerms,
    /// `spec.topologySpreadConstraints`.
    pub spread: Box<[SpreadConstraint]>,
    /// The `hostPort`s of its containers.
    pub host_ports: Box<[HostPort]>,
    /// The images of its containers, one for each.
    pub images: Box<[Name]>,
    /// The images of its init containers, one for each.
    pub init_images: Box<[Name]>,
    /// Images mounted as volumes.
    pub volume_images: Box<[Name]>,
    /// Those of `spec.volumes` that can restrict it to nodes.
    pub volumes: Box<[PodVolume]>,
    /// Whether `spec.preemptionPolicy` is Never.
    pub never_preempts: bool,
    /// `spec.schedulingGates`: it waits until all are removed.
    pub gates: Box<[Name]>,
    /// `spec.schedulerName`; empty for the default scheduler.
    pub scheduler: Name,
    /// Whether it has `spec.resourceClaims`.
    pub claims_devices: bool,
}

impl SchedulingSpec {
    /// Whether it has pod affinity or anti-affinity terms, which then matter to other pods too.
    pub fn has_pod_terms(&self) -> bool {
        !self.pod_affinity.is_empty() || !self.pod_anti_affinity.is_empty()
    }

    /// Whether no other pod can make a node feasible for it.
    pub fn ignores_other_pods(&self) -> bool {
        !self.has_pod_terms() && self.spread.is_empty()
    }
}

/// One term of a node selector: all requirements must hold. Without requirements it matches no node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NodeTerm {
    /// Over the node's labels.
    pub expressions: Box<[NodeRequirement]>,
    /// Over the node's name (`matchFields`).
    pub fields: Box<[NodeRequirement]>,
}

/// One requirement of a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NodeRequirement {
    pub key: Name,
    pub operator: NodeOperator,
}

/// What a requirement says about a label's value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NodeOperator {
    In(Box<[Name]>),
    /// Also holds if the label is absent.
    NotIn(Box<[Name]>),
    Exists,
    DoesNotExist,
    /// The value is an integer above this one.
    Gt(i64),
    /// The value is an integer below this one.
    Lt(i64),
    /// The requirement is invalid: its whole term matches nothing.
    Invalid,
}

impl NodeOperator {
    /// Whether it holds for a label with this value.
    pub fn holds(&self, value: &str) -> bool {
        match self {
            Self::In(values) => values.iter().any(|known| *known == *value),
            Self::NotIn(values) => values.iter().all(|known| *known != *value),
            Self::Exists => true,
            Self::DoesNotExist | Self::Invalid => false,
            Self::Gt(bound) => value.parse().is_ok_and(|value: i64| value > *bound),
            Self::Lt(bound) => value.parse().is_ok_and(|value: i64| value < *bound),
        }
    }

    /// Whether it holds if the label is absent.
    pub fn holds_without(&self) -> bool {
        match self {
            Self::NotIn(_) | Self::DoesNotExist => true,
            Self::In(_) | Self::Exists | Self::Gt(_) | Self::Lt(_) | Self::Invalid => false,
        }
    }
}

/// The affinity or anti-affinity terms of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PodTerms {
    /// All must hold.
    pub required: Box<[PodTerm]>,
    /// Each with its weight.
    pub preferred: Box<[(i32, PodTerm)]>,
}

impl PodTerms {
    pub fn is_empty(&self) -> bool {
        self.required.is_empty() && self.preferred.is_empty()
    }

    /// The required terms, then the preferred ones.
    pub fn iter(&self) -> impl Iterator<Item = &PodTerm> {
        self.required.iter().chain(self.preferred.iter().map(|(_, term)| term))
    }
}

/// One pod affinity term: which pods, and in which topology domain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PodTerm {
    /// None selects no pod.
    pub selector: Option<Selector>,
    /// The namespaces of the pods. Without these and without `namespace_selector`: the pod's own namespace.
    pub namespaces: Box<[Namespace]>,
    /// Selects further namespaces by their labels.
    pub namespace_selector: Option<Selector>,
    /// Nodes with equal values of this label are one topology domain.
    pub topology_key: Name,
}

/// A topology spread constraint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SpreadConstraint {
    pub max_skew: i32,
    pub topology_key: Name,
    /// Whether `whenUnsatisfiable` is DoNotSchedule.
    pub hard: bool,
    /// None selects no pod.
    pub selector: Option<Selector>,
    /// Labels whose values the counted pods must share with the pod.
    pub match_label_keys: Box<[Name]>,
    /// With fewer domains than this, the global minimum is 0.
    pub min_domains: i32,
    /// Whether nodes that the pod's node affinity excludes are not counted.
    pub honours_affinity: bool,
    /// Whether nodes with taints that the pod does not tolerate are not counted.
    pub honours_taints: bool,
}

/// A `hostPort`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostPort {
    /// Empty: all addresses.
    pub ip: Name,
    /// TCP, UDP or SCTP.
    pub protocol: Name,
    pub port: i32,
}

impl HostPort {
    /// Whether the two cannot be used on one node.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        let everywhere = |port: &Self| port.ip.is_empty() || port.ip == "0.0.0.0";
        self.port == other.port
            && self.protocol == other.protocol
            && (everywhere(self) || everywhere(other) || self.ip == other.ip)
    }
}

/// A volume that can restrict a pod to nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PodVolume {
    /// A PersistentVolumeClaim of the pod's namespace.
    Claim(Name),
    /// A claim created for the pod, named `POD-VOLUME`, and the name of its StorageClass; empty for the default.
    OwnClaim { volume: Name, class: Name },
    /// A disk named in the pod's spec.
    Disk(Disk),
}

/// A disk that a pod uses without a claim.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Disk {
    pub kind: DiskKind,
    /// The identity of the disk, its parts joined.
    pub id: Name,
    pub read_only: bool,
}

/// The kinds of disk that only one pod of a node can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DiskKind {
    GcePersistentDisk,
    AwsElasticBlockStore,
    Iscsi,
    Rbd,
}

impl Disk {
    /// Whether the two cannot be on one node: the same disk, and not both read-only.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        let shared = self.kind != DiskKind::AwsElasticBlockStore && self.read_only && other.read_only;
        self.kind == other.kind && self.id == other.id && !shared
    }
}
