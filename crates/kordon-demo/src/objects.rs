//! Kubernetes objects, with the fields that the agents read.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, OwnerReference, Time};
use kube::core::ObjectMeta;
use serde::{Deserialize, Deserializer, de::IgnoredAny};
use serde_json::Value;

#[derive(Clone, Debug, Deserialize)]
pub struct Node {
    #[serde(deserialize_with = "thin")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: NodeSpec,
    #[serde(default)]
    pub status: NodeStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSpec {
    pub unschedulable: bool,
    pub taints: Vec<Taint>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeStatus {
    pub allocatable: BTreeMap<String, String>,
    pub capacity: BTreeMap<String, String>,
    pub conditions: Vec<Condition>,
    pub node_info: NodeInfo,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeInfo {
    pub kernel_version: String,
    #[serde(rename = "bootID")]
    pub boot_id: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Taint {
    pub key: String,
    pub value: String,
    pub effect: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Toleration {
    pub key: String,
    pub operator: String,
    pub value: String,
    pub effect: String,
}

/// A condition of a node or a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    #[serde(rename = "type")]
    pub kind: String,
    pub status: String,
    pub reason: String,
    pub last_heartbeat_time: String,
    pub last_transition_time: String,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Pod {
    #[serde(deserialize_with = "thin")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: PodSpec,
    #[serde(default)]
    pub status: PodStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    pub node_name: String,
    pub scheduler_name: String,
    pub priority: i64,
    pub containers: Vec<Container>,
    pub tolerations: Vec<Toleration>,
    pub node_selector: BTreeMap<String, String>,
    pub affinity: Affinity,
    pub host_network: bool,
    pub priority_class_name: String,
    pub active_deadline_seconds: Option<i64>,
    pub volumes: Vec<MountedVolume>,
}

/// A volume of a pod, with the sources that occur in the embedded cluster.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MountedVolume {
    pub name: String,
    empty_dir: Option<IgnoredAny>,
    config_map: Option<IgnoredAny>,
    secret: Option<IgnoredAny>,
    projected: Option<IgnoredAny>,
    persistent_volume_claim: Option<ClaimVolume>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClaimVolume {
    claim_name: String,
}

/// The source of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VolumeSource<'a> {
    EmptyDir,
    ConfigMap,
    /// A secret, or a projected volume.
    InMemory,
    /// A PersistentVolumeClaim, by name.
    Claim(&'a str),
    Other,
}

impl MountedVolume {
    pub fn source(&self) -> VolumeSource<'_> {
        match self {
            Self { empty_dir: Some(_), .. } => VolumeSource::EmptyDir,
            Self { config_map: Some(_), .. } => VolumeSource::ConfigMap,
            Self { secret: Some(_), .. } | Self { projected: Some(_), .. } => VolumeSource::InMemory,
            Self { persistent_volume_claim: Some(claim), .. } => VolumeSource::Claim(&claim.claim_name),
            _ => VolumeSource::Other,
        }
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Container {
    pub name: String,
    pub image: String,
    pub resources: Resources,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Resources {
    pub requests: BTreeMap<String, String>,
    pub limits: BTreeMap<String, String>,
}

/// The part of a pod's affinity with which DaemonSets bind their pods to nodes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Affinity {
    node_affinity: NodeAffinity,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeAffinity {
    required_during_scheduling_ignored_during_execution: NodeSelector,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeSelector {
    node_selector_terms: Vec<NodeSelectorTerm>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeSelectorTerm {
    match_fields: Vec<FieldRequirement>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct FieldRequirement {
    key: String,
    values: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    pub phase: String,
    pub conditions: Vec<Condition>,
    pub container_statuses: Vec<ContainerStatus>,
    pub start_time: String,
    pub qos_class: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerStatus {
    pub name: String,
    pub image: String,
    pub ready: bool,
    pub restart_count: i64,
    /// The field `lastState` as it is stored. Agents write it back without changes.
    #[serde(default = "empty_object")]
    pub last_state: Value,
    state: ContainerState,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ContainerState {
    running: RunningState,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RunningState {
    started_at: String,
}

fn empty_object() -> Value {
    Value::Object(serde_json::Map::new())
}

impl ContainerStatus {
    /// The start time; empty while the container does not run.
    pub fn started_at(&self) -> &str {
        &self.state.running.started_at
    }
}

/// A Deployment, ReplicaSet, StatefulSet, DaemonSet or Job.
#[derive(Clone, Debug, Deserialize)]
pub struct Workload {
    #[serde(deserialize_with = "thin")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: WorkloadSpec,
    /// The status as it is stored. Agents write a new status only if it differs from this status.
    #[serde(default)]
    pub status: Value,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadSpec {
    pub replicas: Option<usize>,
    pub parallelism: Option<usize>,
    pub completions: Option<usize>,
    pub backoff_limit: Option<usize>,
    pub pod_management_policy: String,
    pub selector: LabelSelector,
    pub template: Arc<Value>,
    /// Templates of the PersistentVolumeClaims that each pod of a StatefulSet gets.
    pub volume_claim_templates: Vec<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkloadKind {
    Deployment,
    ReplicaSet,
    StatefulSet,
    DaemonSet,
    Job,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Budget {
    #[serde(deserialize_with = "thin")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: BudgetSpec,
    #[serde(default)]
    pub status: Value,
}

#[derive(Clone, Debug, Deserialize)]
pub struct QuotaObject {
    #[serde(deserialize_with = "thin")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: Value,
    #[serde(default)]
    pub status: Value,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BudgetSpec {
    /// Number of pods, or a percentage such as `25%`; null if the field is absent.
    pub min_available: Value,
    pub max_unavailable: Value,
    /// Selector of the budget's pods; None selects no pods.
    pub selector: Option<LabelSelector>,
}

/// Namespace (empty for nodes) and name of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub namespace: String,
    pub name: String,
}

impl Key {
    pub fn from_object(object: &impl Object) -> Self {
        let metadata = object.meta();
        Self {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
        }
    }
}

/// Access to any object's metadata.
pub trait Object {
    fn meta(&self) -> &ObjectMeta;

    fn uid(&self) -> &str {
        self.meta().uid.as_deref().unwrap_or_default()
    }

    /// The version of the object. Later versions have larger numbers.
    fn revision(&self) -> u64 {
        self.meta().resource_version.as_deref().and_then(|text| text.parse().ok()).unwrap_or_default()
    }

    fn is_deleted(&self) -> bool {
        self.meta().deletion_timestamp.is_some()
    }

    /// The owner that controls the object.
    fn controller(&self) -> Option<&OwnerReference> {
        self.meta().owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        self.meta().annotations.as_ref()?.get(key).map(String::as_str)
    }
}

macro_rules! objects {
    ($($object:ty),*) => {$(
        impl Object for $object {
            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }
        }
    )*};
}

objects!(Node, Pod, Budget, QuotaObject, Workload);

impl Node {
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.status.conditions.iter().find(|condition| condition.kind == kind)
    }

    pub fn is_ready(&self) -> bool {
        self.condition("Ready").is_some_and(|ready| ready.status == "True")
    }
}

impl Pod {
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.status.conditions.iter().find(|condition| condition.kind == kind)
    }

    pub fn is_ready(&self) -> bool {
        self.condition("Ready").is_some_and(|ready| ready.status == "True")
    }

    /// Whether the pod has no requests or limits.
    pub fn is_best_effort(&self) -> bool {
        self.status.qos_class == "BestEffort"
    }

    /// Whether the pod has succeeded or failed.
    pub fn is_finished(&self) -> bool {
        matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }

    /// Whether the pod is neither finished nor terminating, so that its owner counts it.
    pub fn is_active(&self) -> bool {
        !self.is_finished() && !self.is_deleted()
    }

    /// The node to which a DaemonSet binds the pod, if any.
    pub fn pinned_to(&self) -> Option<&str> {
        let terms = &self.spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution;
        let fields = terms.node_selector_terms.iter().flat_map(|term| &term.match_fields);
        fields
            .into_iter()
            .find(|f| f.key == "metadata.name")
            .and_then(|f| f.values.first())
            .map(String::as_str)
    }

    /// CPU request in thousandths of a core, and memory request in KiB.
    pub fn requests(&self) -> (i64, i64) {
        self.sums(|resources| &resources.requests)
    }

    /// CPU limit in thousandths of a core, and memory limit in KiB.
    pub fn limits(&self) -> (i64, i64) {
        self.sums(|resources| &resources.limits)
    }

    fn sums(&self, amounts: fn(&Resources) -> &BTreeMap<String, String>) -> (i64, i64) {
        let sum = |resource: &str, read: fn(&str) -> Option<i64>| {
            let texts = self.spec.containers.iter().filter_map(|c| amounts(&c.resources).get(resource));
            texts.filter_map(|text| read(text)).sum()
        };
        (sum("cpu", cpu_milli), sum("memory", memory_kib))
    }
}

impl Toleration {
    pub fn tolerates(&self, taint: &Taint) -> bool {
        (self.effect.is_empty() || self.effect == taint.effect)
            && (self.key.is_empty() || self.key == taint.key)
            && (self.operator == "Exists" || (!self.key.is_empty() && self.value == taint.value))
    }
}

impl WorkloadKind {
    pub const ALL: [Self; 5] =
        [Self::Deployment, Self::ReplicaSet, Self::StatefulSet, Self::DaemonSet, Self::Job];

    pub fn name(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::ReplicaSet => "ReplicaSet",
            Self::StatefulSet => "StatefulSet",
            Self::DaemonSet => "DaemonSet",
            Self::Job => "Job",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    pub fn plural(self) -> &'static str {
        match self {
            Self::Deployment => "deployments",
            Self::ReplicaSet => "replicasets",
            Self::StatefulSet => "statefulsets",
            Self::DaemonSet => "daemonsets",
            Self::Job => "jobs",
        }
    }

    pub fn group(self) -> &'static str {
        match self {
            Self::Deployment | Self::ReplicaSet | Self::StatefulSet | Self::DaemonSet => "apps",
            Self::Job => "batch",
        }
    }
}

/// Whether a selector matches these labels. None matches no labels, and an empty selector matches all.
pub fn selects(selector: Option<&LabelSelector>, labels: Option<&BTreeMap<String, String>>) -> bool {
    let Some(selector) = selector else { return false };
    let value = |key: &str| labels.and_then(|labels| labels.get(key)).map(String::as_str);
    let equal =
        selector.match_labels.iter().flatten().all(|(key, wanted)| value(key) == Some(wanted.as_str()));
    let expressions = selector.match_expressions.iter().flatten().all(|expression| {
        let listed: BTreeSet<&str> = expression.values.iter().flatten().map(String::as_str).collect();
        let found = value(&expression.key);
        match expression.operator.as_str() {
            "In" => found.is_some_and(|value| listed.contains(value)),
            "NotIn" => found.is_none_or(|value| !listed.contains(value)),
            "Exists" => found.is_some(),
            "DoesNotExist" => found.is_none(),
            _ => false,
        }
    });
    equal && expressions
}

/// Parses CPU such as `250m` or `2`, in thousandths of a core.
pub fn cpu_milli(text: &str) -> Option<i64> {
    match text.strip_suffix('m') {
        Some(milli) => milli.parse().ok(),
        None => text.parse::<f64>().ok().map(|cores| (cores * 1000.0) as i64),
    }
}

/// Parses memory, in bytes or with a binary suffix, as KiB.
pub fn memory_kib(text: &str) -> Option<i64> {
    let units = [("Ki", 1), ("Mi", 1 << 10), ("Gi", 1 << 20), ("Ti", 1 << 30)];
    match units.iter().find_map(|(suffix, kib)| Some((text.strip_suffix(suffix)?, kib))) {
        Some((number, kib)) => number.parse::<i64>().ok().map(|number| number * kib),
        None => text.parse::<i64>().ok().map(|bytes| bytes / 1024),
    }
}

/// Annotations that an agent reads. All others are dropped.
const READ_ANNOTATIONS: [&str; 1] = [super::seed::pods::RUN_SECONDS];

/// Parses metadata without the fields that no agent reads.
fn thin<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Thin {
        name: Option<String>,
        namespace: Option<String>,
        uid: Option<String>,
        resource_version: Option<String>,
        generation: Option<i64>,
        labels: Option<BTreeMap<String, String>>,
        annotations: Option<BTreeMap<Cow<'static, str>, String>>,
        owner_references: Option<Vec<OwnerReference>>,
        finalizers: Option<Vec<String>>,
        creation_timestamp: Option<Time>,
        deletion_timestamp: Option<Time>,
        deletion_grace_period_seconds: Option<i64>,
    }
    let thin = Thin::deserialize(deserializer)?;
    let annotations = thin.annotations.map(|all| {
        all.into_iter()
            .filter(|(key, _)| READ_ANNOTATIONS.contains(&key.as_ref()))
            .map(|(key, value)| (key.into_owned(), value))
            .collect::<BTreeMap<_, _>>()
    });
    Ok(ObjectMeta {
        name: thin.name,
        namespace: thin.namespace,
        uid: thin.uid,
        resource_version: thin.resource_version,
        generation: thin.generation,
        labels: thin.labels,
        annotations: annotations.filter(|all| !all.is_empty()),
        owner_references: thin.owner_references,
        finalizers: thin.finalizers,
        creation_timestamp: thin.creation_timestamp,
        deletion_timestamp: thin.deletion_timestamp,
        deletion_grace_period_seconds: thin.deletion_grace_period_seconds,
        ..ObjectMeta::default()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tolerations_match_by_key_effect_and_value() {
        let taint = Taint { key: "k".into(), value: "v".into(), effect: "NoExecute".into() };
        let toleration = |key: &str, operator: &str, value: &str, effect: &str| Toleration {
            key: key.into(),
            operator: operator.into(),
            value: value.into(),
            effect: effect.into(),
        };
        assert!(toleration("", "Exists", "", "").tolerates(&taint));
        assert!(toleration("k", "Exists", "", "NoExecute").tolerates(&taint));
        assert!(toleration("k", "", "v", "").tolerates(&taint));
        assert!(!toleration("k", "Equal", "w", "").tolerates(&taint));
        assert!(!toleration("k", "Exists", "", "NoSchedule").tolerates(&taint));
        assert!(!toleration("other", "Exists", "", "").tolerates(&taint));
    }

    #[test]
    fn a_selector_needs_all_its_labels_and_expressions() {
        let selector: LabelSelector = serde_json::from_value(json!({
            "matchLabels": {"app": "a"}, "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["x"]}],
        }))
        .expect("a selector");
        let labels = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
        };
        assert!(selects(Some(&selector), Some(&labels(&[("app", "a")]))));
        assert!(!selects(Some(&selector), Some(&labels(&[("app", "a"), ("tier", "x")]))));
        assert!(!selects(Some(&selector), None));
        assert!(selects(Some(&LabelSelector::default()), None));
        assert!(!selects(None, Some(&labels(&[("app", "a")]))));
    }

    #[test]
    fn a_pod_is_decoded_without_unused_fields() {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {
                "name": "p", "namespace": "d", "uid": "u", "resourceVersion": "7", "deletionTimestamp": "2026-01-01T00:00:00Z",
                "annotations": {"a": "b", "demo.kordon/run-seconds": "5"}, "managedFields": [{"manager": "m"}],
            },
            "spec": {
                "containers": [{"name": "c", "resources": {"requests": {"cpu": "250m", "memory": "1Gi"}}}],
                "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]}}},
            },
        }))
        .expect("a pod");
        assert_eq!((pod.revision(), pod.is_deleted(), pod.pinned_to()), (7, true, Some("n1")));
        assert_eq!(pod.requests(), (250, 1 << 20));
        assert_eq!(pod.annotation("demo.kordon/run-seconds"), Some("5"));
        assert_eq!(pod.annotation("a"), None);
        assert_eq!(pod.metadata.managed_fields, None);
    }
}
