//! Nodes, with the fields that the controller, plans and the screen read.

use std::{fmt, sync::Arc};

use minicbor::{Decode, Encode};

use super::{
    claim::{CordonNote, DrainClaim, DrainedNote},
    encoding::{self, EncodingContext},
    image::Image,
    labels::Labels,
    maintenance_note::MaintenanceNote,
    names::{Name, NodeName},
    reboot_lock::RebootLock,
    resources::Resources,
    shared_list::SharedList,
    table::{TableObject, Version},
    taint::{OUT_OF_SERVICE, Taint, UNSCHEDULABLE},
    uid::Uid,
};
use kordon_time::ClusterTime;

/// A Node, cut down to the fields that kordon reads.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct Node {
    #[n(0)]
    pub name: NodeName,
    #[n(1)]
    pub uid: Uid,
    #[n(2)]
    pub version: Version,
    #[n(3)]
    pub created: ClusterTime,
    #[n(4)]
    pub labels: Labels,
    /// `spec.unschedulable`: cordoned.
    #[n(5)]
    pub unschedulable: bool,
    /// `spec.taints`, in the order in which tolerations are matched.
    #[cbor(n(6), with = "encoding::shared")]
    pub taints: Arc<[Taint]>,
    /// `status.conditions`, in their order.
    #[cbor(n(7), with = "encoding::inline")]
    pub conditions: Arc<[Condition]>,
    /// `status.allocatable`.
    #[n(8)]
    pub allocatable: Resources,
    /// The memory in `status.capacity`, to which percentages of eviction thresholds and OOM scores refer.
    #[n(9)]
    pub memory_capacity_bytes: i64,
    /// The rest of `status.allocatable` (ephemeral-storage, huge pages, extended resources), by name.
    #[cbor(n(10), with = "encoding::shared")]
    pub extended: Arc<[(Name, i64)]>,
    /// `status.images`, as far as the kubelet lists them.
    #[cbor(n(11), with = "encoding::shared")]
    pub images: Arc<[Image]>,
    /// The first InternalIP of `status.addresses`; empty if there is none.
    #[n(12)]
    pub address: Name,
    /// `status.nodeInfo.kubeletVersion`; empty if never posted.
    #[n(13)]
    pub kubelet_version: Name,
    /// `status.nodeInfo.kernelVersion`; empty if never posted.
    #[n(14)]
    pub kernel_version: Name,
    /// Whether the object is being deleted, but kept by a finalizer.
    #[n(15)]
    pub terminating: bool,
    /// Who cordoned the node with kordon, and why. Outdated if another client has uncordoned the node, because only
    /// kordon removes this annotation.
    #[cbor(n(16), with = "encoding::inline_option", has_nil)]
    pub cordon_note: Option<Arc<CordonNote>>,
    /// Who is draining the node with kordon.
    #[cbor(n(17), with = "encoding::inline_option", has_nil)]
    pub drain_claim: Option<Arc<DrainClaim>>,
    /// The drain that emptied the node. Outdated if another client has uncordoned the node, because only kordon removes
    /// this annotation.
    #[cbor(n(18), with = "encoding::inline_option", has_nil)]
    pub drained: Option<Arc<DrainedNote>>,
    /// The maintenance that the node is in.
    #[cbor(n(19), with = "encoding::inline_option", has_nil)]
    pub maintenance: Option<Arc<MaintenanceNote>>,
    /// `status.nodeInfo.bootID`, which changes with each start of the machine; empty if never posted.
    #[cbor(n(20), default)]
    pub boot_id: Name,
    /// Well-known annotations by which other projects say what they do with the node
    /// ([`drain_markers::ANNOTATIONS`](super::drain_markers::ANNOTATIONS)), by key.
    #[cbor(n(21), with = "encoding::inline", default)]
    pub marks: Arc<[(Name, Name)]>,
    /// The client that set `spec.unschedulable`, from `metadata.managedFields`; `None` for a node that is not cordoned.
    #[cbor(n(22), with = "encoding::inline_option", has_nil)]
    pub unschedulable_by: Option<Arc<FieldManager>>,
    /// The finalizers, which keep the object after its deletion; none in recordings of older releases.
    #[n(23)]
    #[cbor(default)]
    pub finalizers: SharedList<Name>,
    /// CSI volumes that are attached to the node and in use by its kubelet (`status.volumesAttached`,
    /// `status.volumesInUse`), by driver and handle. Empty for a Ready node, and in recordings of older releases.
    #[cbor(n(24), with = "encoding::inline", default)]
    pub held_volumes: Arc<[(Name, Name)]>,
    /// `status.declaredFeatures`: features that the kubelet supports; none in recordings of older releases.
    #[n(25)]
    #[cbor(default)]
    pub declared_features: SharedList<Name>,
    /// Time at which the API server last wrote the heartbeat time of the condition Ready, in whole seconds
    /// (`metadata.managedFields`). None if the server does not say, and in recordings of older releases.
    #[n(26)]
    pub heartbeat_written: Option<ClusterTime>,
    /// kured's lock, if the node holds it. The lock comes from kured's DaemonSet
    /// ([`Cluster::apply`](super::Cluster::apply)), so it is known only if DaemonSets are known.
    #[cbor(skip)]
    pub reboot_lock: Option<Arc<RebootLock>>,
    /// All annotations; `None` for a node of a recording, which has only [`Node::marks`].
    #[cbor(skip)]
    pub annotations: Option<Labels>,
}

/// A client that set a field of an object, from an entry of `metadata.managedFields`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct FieldManager {
    /// The field manager that the client named in its request, else the start of the client's User-Agent, which is
    /// usually the name of the client's executable.
    #[n(0)]
    pub manager: Name,
    /// Whether the field was set by server-side apply.
    #[n(1)]
    pub applied: bool,
    /// Latest time at which the client can have set the field first: the time at which it last set any field that it
    /// had not set before.
    #[n(2)]
    pub at: Option<ClusterTime>,
}

/// Labels with which providers and autoscalers name the pool of a node.
const POOLS: [&str; 7] = [
    "karpenter.sh/nodepool",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "doks.digitalocean.com/node-pool",
    "agentpool",
    "pool",
];

impl Node {
    /// Whether the node has more than zero of an extended resource.
    pub fn has_extended(&self, resource: &Name) -> bool {
        self.extended.iter().any(|(name, amount)| name == resource && *amount > 0)
    }

    /// Who cordoned the node with kordon, and why; none if the node is not cordoned now.
    pub fn cordon(&self) -> Option<&CordonNote> {
        self.cordon_note.as_deref().filter(|_| self.unschedulable)
    }

    /// The client that cordoned the node; none if the node is not cordoned now, or nothing says who did it.
    pub fn cordoned_by(&self) -> Option<&FieldManager> {
        self.unschedulable_by.as_deref().filter(|_| self.unschedulable)
    }

    /// The taint that the node lifecycle controller adds to a cordoned node.
    pub fn cordon_taint(&self) -> Option<&Taint> {
        self.taints.iter().find(|taint| taint.key == *UNSCHEDULABLE)
    }

    /// The value of a well-known annotation of another project; none if the node does not have it.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.marks.iter().find(|(known, _)| *known == *key).map(|(_, value)| value.as_str())
    }

    /// Whether the machine is shutting down, so that its kubelet ends the pods. The kubelet reports this in the Ready
    /// condition (`nodeshutdown_manager_linux.go`, `setters.go`); another client may report it in a condition of its
    /// own.
    pub fn is_shutting_down(&self) -> bool {
        let says_kubelet = self.ready().is_some_and(|ready| {
            ready.status == ConditionStatus::False && ready.message.contains("node is shutting down")
        });
        let shutdown = "GracefulNodeShutdownInProgress";
        says_kubelet
            || self.condition(shutdown).is_some_and(|condition| condition.status == ConditionStatus::True)
    }

    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.kind == *kind)
    }

    /// The Ready condition; none if the kubelet never posted the node's status.
    pub fn ready(&self) -> Option<&Condition> {
        self.condition(READY)
    }

    pub fn is_ready(&self) -> bool {
        self.ready().is_some_and(|ready| ready.status == ConditionStatus::True)
    }

    /// Whether the node has the out-of-service taint, with any effect.
    pub fn is_tainted_out_of_service(&self) -> bool {
        self.taints.iter().any(|taint| taint.key == *OUT_OF_SERVICE)
    }

    /// The conditions other than Ready that report a problem.
    pub fn problems(&self) -> impl Iterator<Item = &Condition> {
        self.conditions.iter().filter(|condition| condition.is_problem())
    }

    /// Whether two states of a node differ only in the version and the heartbeat times, as after a kubelet's status
    /// post without other changes.
    pub fn differs_only_in_heartbeat(&self, other: &Self) -> bool {
        let Self { version, heartbeat_written, .. } = *self;
        let as_ours =
            Self { version, heartbeat_written, conditions: self.conditions.clone(), ..other.clone() };
        *self == as_ours
            && self.conditions.len() == other.conditions.len()
            && self
                .conditions
                .iter()
                .zip(&*other.conditions)
                .all(|(own, other)| own.differs_only_in_heartbeat(other))
    }

    pub fn label(&self, key: &str) -> Option<&Name> {
        self.labels.get(key)
    }

    /// The zone in which the node lifecycle controller counts the node.
    pub fn zone(&self) -> ZoneKey {
        ZoneKey::from_node(self)
    }

    /// The name of the node's pool, from the label of a provider or an autoscaler; `None` without such a label.
    pub fn pool(&self) -> Option<&Name> {
        POOLS.iter().find_map(|label| self.label(label))
    }

    /// The roles named by the node's `node-role.kubernetes.io/` labels, sorted.
    pub fn roles(&self) -> impl Iterator<Item = &str> {
        self.labels
            .keys()
            .filter_map(|key| key.strip_prefix("node-role.kubernetes.io/"))
            .filter(|role| !role.is_empty())
    }

    /// Whether the node runs the control plane, as its role says.
    pub fn is_control_plane(&self) -> bool {
        self.roles().any(|role| ["control-plane", "master"].contains(&role))
    }
}

impl TableObject for Node {
    type Key = NodeName;
    fn key(&self) -> NodeName {
        self.name.clone()
    }
    fn version(&self) -> Version {
        self.version
    }
    fn share_parts(&mut self, predecessor: &Self) {
        self.name.clone_from(&predecessor.name);
    }
}

/// The type of the Ready condition.
pub const READY: &str = "Ready";

/// Types of conditions that show intentional work on a node, such as a drain (KEP-5683, alpha in 1.37).
const LIFECYCLE: [&str; 5] = [
    "GracefulNodeShutdownInProgress",
    "DrainInProgress",
    "Drained",
    "MaintenancePlanned",
    "MaintenanceInProgress",
];

/// One entry of `status.conditions` of a node or pod.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct Condition {
    /// `type`.
    #[n(0)]
    pub kind: Name,
    #[n(1)]
    pub status: ConditionStatus,
    #[n(2)]
    pub reason: Name,
    #[n(3)]
    pub message: Name,
    /// The heartbeat time, which the kubelet writes with each status post; `None` in conditions of pods.
    #[n(4)]
    pub last_heartbeat: Option<ClusterTime>,
    #[n(5)]
    pub last_transition: Option<ClusterTime>,
}

impl Condition {
    /// Whether the condition reports a problem of a node. The conditions of the kubelet and of node-problem-detector
    /// report one if they are True. Conditions with a positive name report one if they are False: `NetworkingReady`
    /// (EKS), `EtcdIsVoter` (k3s). The Ready condition and the lifecycle conditions of nodes are never counted here.
    fn is_problem(&self) -> bool {
        const GOOD: [&str; 4] = ["Ready", "Healthy", "Available", "IsVoter"];
        let is_good = GOOD.iter().any(|word| self.kind.ends_with(word));
        let problem = if is_good { ConditionStatus::False } else { ConditionStatus::True };
        self.kind != *READY && !LIFECYCLE.contains(&self.kind.as_str()) && self.status == problem
    }

    /// Whether two conditions differ at most in the heartbeat time.
    fn differs_only_in_heartbeat(&self, other: &Self) -> bool {
        *self == Self { last_heartbeat: self.last_heartbeat, ..other.clone() }
    }
}

/// A condition's status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(index_only)]
pub enum ConditionStatus {
    #[n(0)]
    True,
    #[n(1)]
    False,
    #[default]
    #[n(2)]
    Unknown,
    /// A status other than True, False and Unknown. In the Ready condition, it only makes the node count as not ready
    /// (docs/upstream/node-lifecycle.md#12.46).
    #[n(3)]
    Invalid,
}

impl ConditionStatus {
    pub fn parse(text: &str) -> Self {
        match text {
            "True" => Self::True,
            "False" => Self::False,
            "Unknown" => Self::Unknown,
            _ => Self::Invalid,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
            Self::Invalid => "invalid",
        }
    }
}

impl fmt::Display for ConditionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A zone as the node lifecycle controller identifies it (component-helpers `topology.GetZoneKey`).
///
/// Region and zone are read independently. For each of them, the beta label has precedence. Nodes with neither region
/// nor zone share the empty zone.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ZoneKey {
    pub region: Name,
    pub zone: Name,
}

impl ZoneKey {
    fn from_node(node: &Node) -> Self {
        let first = |beta: &str, stable: &str| {
            node.labels.get(beta).or_else(|| node.labels.get(stable)).cloned().unwrap_or_default()
        };
        Self {
            region: first("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
            zone: first("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
        }
    }

    /// A short name of the zone for users: without the region if the zone's name already begins with the region, as
    /// with most cloud providers.
    pub fn short(&self) -> String {
        if !self.region.is_empty() && self.zone.starts_with(self.region.as_str()) {
            self.zone.to_string()
        } else {
            self.to_string()
        }
    }

    /// The zone as upstream writes it in the labels of its metrics, with a NUL byte between region and zone.
    pub fn upstream(&self) -> String {
        if self.region.is_empty() && self.zone.is_empty() {
            String::new()
        } else {
            format!("{}:\0:{}", self.region, self.zone)
        }
    }
}

impl fmt::Display for ZoneKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.region.as_str(), self.zone.as_str()) {
            ("", "") => f.pad("(no zone)"),
            ("", zone) => f.pad(zone),
            (region, "") => f.pad(&format!("{region}/")),
            (region, zone) => f.pad(&format!("{region}/{zone}")),
        }
    }
}

impl serde::Serialize for ZoneKey {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone_of(labels: &[(&str, &str)]) -> String {
        let labels = labels.iter().map(|&(key, value)| (key.into(), value.into())).collect();
        Node { labels, ..Node::default() }.zone().upstream()
    }

    #[test]
    fn a_condition_reports_a_problem_by_what_its_type_names() {
        let conditions = [
            ("MemoryPressure", ConditionStatus::True),
            ("DiskPressure", ConditionStatus::False),
            ("PIDPressure", ConditionStatus::Unknown),
            ("Ready", ConditionStatus::False),
            ("NetworkingReady", ConditionStatus::False),
            ("StorageReady", ConditionStatus::True),
            ("EtcdIsVoter", ConditionStatus::True),
            ("KernelDeadlock", ConditionStatus::True),
        ];
        let condition =
            |(kind, status): (&str, _)| Condition { kind: kind.into(), status, ..Condition::default() };
        let node = Node { conditions: conditions.map(condition).into(), ..Node::default() };
        let problems: Vec<&str> = node.problems().map(|condition| condition.kind.as_str()).collect();
        assert_eq!(problems, ["MemoryPressure", "NetworkingReady", "KernelDeadlock"]);
    }

    #[test]
    fn beta_labels_win_even_when_empty_and_each_part_is_chosen_alone() {
        let (beta_zone, zone) = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone");
        let region = "topology.kubernetes.io/region";
        assert_eq!(zone_of(&[]), "");
        assert_eq!(zone_of(&[(zone, "z"), (region, "r")]), "r:\0:z");
        assert_eq!(zone_of(&[(beta_zone, "old"), (zone, "z"), (region, "r")]), "r:\0:old");
        assert_eq!(zone_of(&[(beta_zone, ""), (zone, "z")]), "");
        assert_eq!(zone_of(&[(zone, "z")]), ":\0:z");
        assert_eq!(zone_of(&[(region, "r")]), "r:\0:");
    }
}
