//! What the scheduler reads of a pod's spec, beside its tolerations and its priority.

use super::{
    labels::Selector,
    names::{Name, Namespace},
};

/// The part of a pod's spec that decides where it may run.
///
/// Pods of one workload have it alike, so it is shared; see [`super::Pod::scheduling`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SchedulingSpec {
    pub requests: Requests,
    /// `spec.nodeSelector`.
    pub node_selector: Box<[(Name, Name)]>,
    /// `spec.affinity.nodeAffinity`, what must hold: one of these terms. None where nothing is required.
    pub node_affinity: Option<Box<[NodeTerm]>>,
    /// `spec.affinity.nodeAffinity`, what is preferred, each with its weight.
    pub preferred_nodes: Box<[(i32, NodeTerm)]>,
    /// `spec.affinity.podAffinity`.
    pub pod_affinity: PodTerms,
    /// `spec.affinity.podAntiAffinity`.
    pub pod_anti_affinity: PodTerms,
    /// `spec.topologySpreadConstraints`.
    pub spread: Box<[SpreadConstraint]>,
    /// Ports of the node that its containers take.
    pub host_ports: Box<[HostPort]>,
    /// The images of its containers, one for each.
    pub images: Box<[Name]>,
    /// The images of its init containers, one for each.
    pub init_images: Box<[Name]>,
    /// Those of `spec.volumes` that can bind it to a node.
    pub volumes: Box<[PodVolume]>,
    /// Whether `spec.preemptionPolicy` is Never.
    pub never_preempts: bool,
    /// `spec.schedulingGates`: it waits until all are taken away.
    pub gates: Box<[Name]>,
    /// `spec.schedulerName`; empty for the default scheduler.
    pub scheduler: Name,
    /// Whether it asks for devices through `spec.resourceClaims`.
    pub claims_devices: bool,
}

impl SchedulingSpec {
    /// Whether it says anything about other pods, so that other pods must reckon with it.
    pub fn has_pod_terms(&self) -> bool {
        !self.pod_affinity.is_empty() || !self.pod_anti_affinity.is_empty()
    }

    /// Whether no other pod's coming can make a node do for it.
    pub fn ignores_other_pods(&self) -> bool {
        !self.has_pod_terms() && self.spread.is_empty()
    }
}

/// What a pod asks for (component-helpers `resource.PodRequests`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Requests {
    pub cpu_milli: i64,
    pub memory_bytes: i64,
    pub ephemeral_bytes: i64,
    /// Huge pages and extended resources, by name; zero requests among them.
    pub scalars: Box<[(Name, i64)]>,
    /// CPU with 100 thousandths assumed for each container that does not speak of it: for scores only.
    pub assumed_cpu_milli: i64,
    /// Memory with 200 MiB assumed in the same way.
    pub assumed_memory_bytes: i64,
}

/// One term of a node selector; all its requirements must hold. Without any it matches no node.
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

/// What a requirement asks of a label's value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NodeOperator {
    In(Box<[Name]>),
    /// Also holds where the label is absent.
    NotIn(Box<[Name]>),
    Exists,
    DoesNotExist,
    /// The label is a whole number above this one.
    Gt(i64),
    /// The label is a whole number below this one.
    Lt(i64),
    /// It cannot be read: its whole term matches nothing.
    Invalid,
}

impl NodeOperator {
    /// Whether it holds of a label with this value.
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

    /// Whether it holds where there is no such label.
    pub fn holds_without(&self) -> bool {
        match self {
            Self::NotIn(_) | Self::DoesNotExist => true,
            Self::In(_) | Self::Exists | Self::Gt(_) | Self::Lt(_) | Self::Invalid => false,
        }
    }
}

/// What a pod wants of the pods near it.
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

    /// The required and the preferred ones.
    pub fn iter(&self) -> impl Iterator<Item = &PodTerm> {
        self.required.iter().chain(self.preferred.iter().map(|(_, term)| term))
    }
}

/// Some pods, and how near they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PodTerm {
    /// None selects no pod.
    pub selector: Option<Selector>,
    /// Where the pods live. With `namespace_selector` absent too: where the pod lives that says so.
    pub namespaces: Box<[Namespace]>,
    /// Namespaces by their labels, beside those that are named.
    pub namespace_selector: Option<Selector>,
    /// Nodes with equal values of this label are one place.
    pub topology_key: Name,
}

/// How evenly pods are to be spread.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SpreadConstraint {
    pub max_skew: i32,
    pub topology_key: Name,
    /// Whether `whenUnsatisfiable` is DoNotSchedule.
    pub hard: bool,
    /// None selects no pod.
    pub selector: Option<Selector>,
    /// Labels of the pod whose values the selector asks for as well.
    pub match_label_keys: Box<[Name]>,
    /// With fewer domains than this the least one counts as empty.
    pub min_domains: i32,
    /// Whether nodes that the pod's node affinity rules out are left out of the count.
    pub honours_affinity: bool,
    /// Whether nodes with taints that the pod does not tolerate are left out of the count.
    pub honours_taints: bool,
}

/// A port of the node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostPort {
    /// Empty: all addresses.
    pub ip: Name,
    /// TCP, UDP or SCTP.
    pub protocol: Name,
    pub port: i32,
}

impl HostPort {
    /// Whether both cannot be had on one node.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        let everywhere = |port: &Self| port.ip.is_empty() || port.ip == "0.0.0.0";
        self.port == other.port
            && self.protocol == other.protocol
            && (everywhere(self) || everywhere(other) || self.ip == other.ip)
    }
}

/// A volume that can bind a pod to a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PodVolume {
    /// A PersistentVolumeClaim of the pod's namespace.
    Claim(Name),
    /// A claim made for the pod, called `POD-VOLUME`, and the name of its StorageClass; empty for the default.
    OwnClaim { volume: Name, class: Name },
    /// A disk named in the pod itself.
    Disk(Disk),
}

/// A disk that a pod names without a claim.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Disk {
    pub kind: DiskKind,
    /// What makes it this disk, all parts in one.
    pub id: Name,
    pub read_only: bool,
}

/// The kinds of disk that only one pod of a node can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DiskKind {
    GcePersistentDisk,
    AwsElasticBlockStore,
    Iscsi,
    Rbd,
}

impl Disk {
    /// Whether the two cannot be on one node: the same disk, and not both only read it.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        let shared = self.kind != DiskKind::AwsElasticBlockStore && self.read_only && other.read_only;
        self.kind == other.kind && self.id == other.id && !shared
    }
}
