//! The part of a pod's spec that says where it may run, apart from tolerations and priority.

use minicbor::{Decode, Encode};

use super::{
    encoding::EncodingContext,
    labels::Selector,
    names::{Name, Namespace},
    node::Node,
};

/// The part of a pod's spec that says where it may run, without the pod's requests, which are in
/// [`super::PodResources`].
///
/// All pods of a workload have an equal part, so the part is shared; see [`super::Pod::scheduling`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct SchedulingSpec {
    /// `spec.nodeSelector`.
    #[n(0)]
    pub node_selector: Box<[(Name, Name)]>,
    /// The required terms of `spec.affinity.nodeAffinity`: one must match. None if nothing is required.
    #[n(1)]
    pub node_affinity: Option<Box<[NodeTerm]>>,
    /// The preferred terms of `spec.affinity.nodeAffinity`, each with its weight.
    #[n(2)]
    pub preferred_nodes: Box<[(i32, NodeTerm)]>,
    /// `spec.affinity.podAffinity`.
    #[n(3)]
    pub pod_affinity: PodTerms,
    /// `spec.affinity.podAntiAffinity`.
    #[n(4)]
    pub pod_anti_affinity: PodTerms,
    /// `spec.topologySpreadConstraints`.
    #[n(5)]
    pub spread: Box<[SpreadConstraint]>,
    /// The `hostPort`s of the pod's containers.
    #[n(6)]
    pub host_ports: Box<[HostPort]>,
    /// The images of the pod's containers, one for each.
    #[n(7)]
    pub images: Box<[Name]>,
    /// The images of the pod's init containers, one for each.
    #[n(8)]
    pub init_images: Box<[Name]>,
    /// Images mounted as volumes.
    #[n(9)]
    pub volume_images: Box<[Name]>,
    /// The volumes of `spec.volumes` that can restrict the pod to certain nodes.
    #[n(10)]
    pub volumes: Box<[PodVolume]>,
    /// Whether `spec.preemptionPolicy` is Never.
    #[n(11)]
    pub never_preempts: bool,
    /// `spec.schedulingGates`: the pod waits until all are removed.
    #[n(12)]
    pub gates: Box<[Name]>,
    /// `spec.schedulerName`; empty for the default scheduler.
    #[n(13)]
    pub scheduler: Name,
    /// Whether the pod has `spec.resourceClaims`.
    #[n(14)]
    pub claims_devices: bool,
    /// `spec.resourceClaims`. In recordings of earlier formats, the list is empty even for pods that claim devices.
    #[cbor(n(15), default)]
    pub device_claims: Box<[PodDeviceClaim]>,
    /// Features that a node has to declare ([`Node::declared_features`]); none in recordings of earlier formats.
    #[cbor(n(16), default)]
    pub required_features: Box<[Name]>,
}

impl SchedulingSpec {
    /// Whether the pod has pod affinity or anti-affinity terms. Such a pod also affects where other pods can run.
    pub fn has_pod_terms(&self) -> bool {
        !self.pod_affinity.is_empty() || !self.pod_anti_affinity.is_empty()
    }

    /// Whether the required node affinity selects nodes by name, as in the pods of a DaemonSet.
    pub fn names_nodes(&self) -> bool {
        self.node_affinity.iter().flatten().any(|term| !term.fields.is_empty())
    }

    /// Whether the spec has no constraint that other pods could help to satisfy: neither pod affinity terms nor spread
    /// constraints.
    pub fn ignores_other_pods(&self) -> bool {
        !self.has_pod_terms() && self.spread.is_empty()
    }
}

/// An entry of `spec.resourceClaims`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct PodDeviceClaim {
    /// Name of the entry in `spec.resourceClaims`.
    #[n(0)]
    pub entry: Name,
    /// The ResourceClaim, which other pods may use, too; `None` if each pod gets its own claim from a template.
    #[n(1)]
    pub claim: Option<Name>,
    /// The ResourceClaimTemplate from which each pod gets its own claim; `None` for a named claim, and in recordings of
    /// earlier formats.
    #[cbor(n(2), default)]
    pub template: Option<Name>,
}

/// One term of a node selector: all requirements must hold. Without requirements it matches no node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct NodeTerm {
    /// Requirements on the node's labels.
    #[n(0)]
    pub expressions: Box<[NodeRequirement]>,
    /// Requirements on the node's name (`matchFields`).
    #[n(1)]
    pub fields: Box<[NodeRequirement]>,
}

impl NodeTerm {
    /// Whether the term matches a node (upstream `nodeaffinity.NodeSelector.Match`).
    pub fn matches(&self, node: &Node) -> bool {
        let holds = |requirement: &NodeRequirement, value: Option<&str>| match value {
            Some(value) => requirement.operator.holds(value),
            None => requirement.operator.holds_without(),
        };
        let is_empty = self.expressions.is_empty() && self.fields.is_empty();
        let label = |key: &Name| node.labels.get(key).map(Name::as_str);
        !is_empty
            && self.expressions.iter().all(|requirement| holds(requirement, label(&requirement.key)))
            && self.fields.iter().all(|requirement| holds(requirement, Some(&node.name)))
    }
}

/// One requirement on a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct NodeRequirement {
    #[n(0)]
    pub key: Name,
    #[n(1)]
    pub operator: NodeOperator,
}

/// Condition of a requirement on a label's value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub enum NodeOperator {
    #[n(0)]
    In(#[n(0)] Box<[Name]>),
    /// The label has none of these values, or is absent.
    #[n(1)]
    NotIn(#[n(0)] Box<[Name]>),
    #[n(2)]
    Exists,
    #[n(3)]
    DoesNotExist,
    /// The label's value is an integer greater than this integer.
    #[n(4)]
    Gt(#[n(0)] i64),
    /// The label's value is an integer less than this integer.
    #[n(5)]
    Lt(#[n(0)] i64),
    /// The requirement is invalid: its whole term matches nothing.
    #[n(6)]
    Invalid,
}

impl NodeOperator {
    /// Whether the condition holds for a label with this value.
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

    /// Whether the condition holds if the label is absent.
    pub fn holds_without(&self) -> bool {
        match self {
            Self::NotIn(_) | Self::DoesNotExist => true,
            Self::In(_) | Self::Exists | Self::Gt(_) | Self::Lt(_) | Self::Invalid => false,
        }
    }
}

/// The affinity or anti-affinity terms of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct PodTerms {
    /// Required terms, all of which must hold.
    #[n(0)]
    pub required: Box<[PodTerm]>,
    /// Preferred terms, each with its weight.
    #[n(1)]
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

/// One pod affinity term: the pods that it selects, and the label of the topology domains.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct PodTerm {
    /// Selector of the pods; `None` selects no pod.
    #[n(0)]
    pub selector: Option<Selector>,
    /// The namespaces of the pods. If this and `namespace_selector` are empty, the pod's own namespace counts.
    #[n(1)]
    pub namespaces: Box<[Namespace]>,
    /// Selects further namespaces by their labels.
    #[n(2)]
    pub namespace_selector: Option<Selector>,
    /// Nodes with equal values of this label are one topology domain.
    #[n(3)]
    pub topology_key: Name,
}

/// A topology spread constraint.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct SpreadConstraint {
    #[n(0)]
    pub max_skew: i32,
    #[n(1)]
    pub topology_key: Name,
    /// Whether `whenUnsatisfiable` is DoNotSchedule.
    #[n(2)]
    pub hard: bool,
    /// Selector of the pods to spread; `None` selects no pod.
    #[n(3)]
    pub selector: Option<Selector>,
    /// `matchLabelKeys`: only pods that have the pod's values of these labels are counted.
    #[n(4)]
    pub match_label_keys: Box<[Name]>,
    /// `minDomains`: with fewer domains than this, the global minimum is 0.
    #[n(5)]
    pub min_domains: i32,
    /// Whether nodes that the pod's node affinity excludes are left out of the count (`nodeAffinityPolicy`).
    #[n(6)]
    pub honours_affinity: bool,
    /// Whether nodes with taints that the pod does not tolerate are left out of the count (`nodeTaintsPolicy`).
    #[n(7)]
    pub honours_taints: bool,
}

/// A `hostPort`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct HostPort {
    /// `hostIP`; empty for all addresses of the node.
    #[n(0)]
    pub ip: Name,
    /// Protocol of the port: TCP, UDP or SCTP.
    #[n(1)]
    pub protocol: Name,
    #[n(2)]
    pub port: i32,
}

impl HostPort {
    /// Whether the two ports conflict, so that they cannot both be used on one node.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        let everywhere = |port: &Self| port.ip.is_empty() || port.ip == "0.0.0.0";
        self.port == other.port
            && self.protocol == other.protocol
            && (everywhere(self) || everywhere(other) || self.ip == other.ip)
    }
}

/// A volume that can restrict a pod to certain nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub enum PodVolume {
    /// A PersistentVolumeClaim of the pod's namespace.
    #[n(0)]
    Claim(#[n(0)] Name),
    /// A claim that is created for the pod and named `POD-VOLUME`. `class` is the name of its StorageClass; empty for
    /// the default.
    #[n(1)]
    OwnClaim {
        #[n(0)]
        volume: Name,
        #[n(1)]
        class: Name,
    },
    /// A disk that the pod's spec names directly, without a claim.
    #[n(2)]
    Disk(#[n(0)] Disk),
}

/// A disk that a pod uses without a claim.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct Disk {
    #[n(0)]
    pub kind: DiskKind,
    /// The identity of the disk: the fields that identify it, joined into one text.
    #[n(1)]
    pub id: Name,
    #[n(2)]
    pub read_only: bool,
}

/// Kinds of disk that pods on the same node cannot share, or can share only read-only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(index_only)]
pub enum DiskKind {
    #[n(0)]
    GcePersistentDisk,
    #[n(1)]
    AwsElasticBlockStore,
    #[n(2)]
    Iscsi,
    #[n(3)]
    Rbd,
}

impl Disk {
    /// Whether two pods with these disks cannot run on one node: both disks are the same, and not both pods use it
    /// read-only. Pods cannot share an AWS Elastic Block Store even read-only.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        let shared = self.kind != DiskKind::AwsElasticBlockStore && self.read_only && other.read_only;
        self.kind == other.kind && self.id == other.id && !shared
    }
}
