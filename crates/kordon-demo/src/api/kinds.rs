//! The table of the kinds that this API serves. Routes, storage, selectors, discovery and columns are derived from it.

use super::columns::{self, TableColumn};

/// A kind of resource. Everything else in this API is generic over the kind.
#[derive(Debug)]
pub struct Kind {
    /// The API group; empty for the core group.
    pub group: &'static str,
    pub version: &'static str,
    /// The plural name, as in URLs. Kinds with the same plural share their storage, as the two kinds of Events do.
    pub plural: &'static str,
    pub singular: &'static str,
    /// The kind, as in the field `kind`.
    pub name: &'static str,
    pub short_names: &'static [&'static str],
    /// Discovery categories; `all` means that `kubectl get all` shows the kind.
    pub categories: &'static [&'static str],
    pub scope: ResourceScope,
    pub subresources: &'static [Subresource],
    /// Fields for field selectors, as name and JSON pointer. metadata.name and metadata.namespace are left out, because
    /// every kind has them.
    pub selectable: &'static [(&'static str, &'static str)],
    /// Whether metadata.generation counts changes of the spec.
    pub generation: bool,
    /// The columns of `kubectl get`.
    pub columns: &'static [TableColumn],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceScope {
    Namespaced,
    Cluster,
    /// A review that is answered and not stored, such as SelfSubjectAccessReview.
    Review,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subresource {
    Status,
    Scale,
    Eviction,
    Binding,
    Finalize,
    /// Requests to the node's kubelet; only GET is served.
    Proxy,
}

impl Kind {
    /// The name of the kind in error messages, for example `pods` or `deployments.apps`.
    pub fn resource(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// The name by which a [`Fault`](super::Fault) selects the kind.
    pub fn fault_name(&self) -> String {
        if self.group == METRICS_GROUP { self.resource() } else { self.plural.to_owned() }
    }

    /// The group and version, as in the field `apiVersion`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    pub fn has(&self, subresource: Subresource) -> bool {
        self.subresources.contains(&subresource)
    }

    pub fn is_namespaced(&self) -> bool {
        self.scope == ResourceScope::Namespaced
    }
}

impl Subresource {
    pub const ALL: [Self; 6] =
        [Self::Status, Self::Scale, Self::Eviction, Self::Binding, Self::Finalize, Self::Proxy];

    pub fn name(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Scale => "scale",
            Self::Eviction => "eviction",
            Self::Binding => "binding",
            Self::Finalize => "finalize",
            Self::Proxy => "proxy",
        }
    }
}

/// The kind at `group/version/plural` of a URL.
pub fn find(group: &str, version: &str, plural: &str) -> Option<&'static Kind> {
    let mut all = KINDS.iter().chain(METRICS_KINDS);
    all.find(|k| k.group == group && k.version == version && k.plural == plural)
}

/// Returns the kind with this `apiVersion` and `kind`.
pub fn of_object(api_version: &str, kind: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|k| k.name == kind && k.api_version() == api_version)
}

/// Returns the first kind with this plural. Panics if there is no such kind, so it is only for names in our own code.
pub fn named(plural: &str) -> &'static Kind {
    KINDS.iter().find(|k| k.plural == plural).expect("plurals in our code are in the table")
}

const PLAIN: Kind = Kind {
    group: "",
    version: "v1",
    plural: "",
    singular: "",
    name: "",
    short_names: &[],
    categories: &[],
    scope: ResourceScope::Namespaced,
    subresources: &[],
    selectable: &[],
    generation: false,
    columns: columns::PLAIN,
};

const WORKLOAD: &[Subresource] = &[Subresource::Status, Subresource::Scale];
const STATUS: &[Subresource] = &[Subresource::Status];
const ALL: &[&str] = &["all"];

/// All kinds, in the order of discovery: the core group first.
pub const KINDS: &[Kind] = &[
    Kind {
        plural: "nodes",
        singular: "node",
        name: "Node",
        short_names: &["no"],
        scope: ResourceScope::Cluster,
        subresources: &[Subresource::Status, Subresource::Proxy],
        selectable: &[("spec.unschedulable", "/spec/unschedulable")],
        columns: columns::NODE,
        ..PLAIN
    },
    Kind {
        plural: "pods",
        singular: "pod",
        name: "Pod",
        short_names: &["po"],
        categories: ALL,
        subresources: &[Subresource::Status, Subresource::Eviction, Subresource::Binding],
        selectable: &[
            ("spec.nodeName", "/spec/nodeName"),
            ("status.phase", "/status/phase"),
            ("spec.restartPolicy", "/spec/restartPolicy"),
            ("spec.schedulerName", "/spec/schedulerName"),
            ("spec.serviceAccountName", "/spec/serviceAccountName"),
            ("status.podIP", "/status/podIP"),
            ("status.nominatedNodeName", "/status/nominatedNodeName"),
        ],
        generation: true,
        columns: columns::POD,
        ..PLAIN
    },
    Kind {
        plural: "namespaces",
        singular: "namespace",
        name: "Namespace",
        short_names: &["ns"],
        scope: ResourceScope::Cluster,
        subresources: &[Subresource::Status, Subresource::Finalize],
        selectable: &[("status.phase", "/status/phase")],
        columns: columns::NAMESPACE,
        ..PLAIN
    },
    Kind {
        plural: "events",
        singular: "event",
        name: "Event",
        short_names: &["ev"],
        selectable: EVENT_FIELDS,
        columns: columns::EVENT,
        ..PLAIN
    },
    Kind {
        plural: "replicationcontrollers",
        singular: "replicationcontroller",
        name: "ReplicationController",
        short_names: &["rc"],
        categories: ALL,
        subresources: WORKLOAD,
        generation: true,
        columns: columns::REPLICA_SET,
        ..PLAIN
    },
    Kind {
        plural: "configmaps",
        singular: "configmap",
        name: "ConfigMap",
        short_names: &["cm"],
        columns: columns::CONFIG_MAP,
        ..PLAIN
    },
    Kind {
        plural: "resourcequotas",
        singular: "resourcequota",
        name: "ResourceQuota",
        short_names: &["quota"],
        subresources: STATUS,
        ..PLAIN
    },
    Kind {
        plural: "services",
        singular: "service",
        name: "Service",
        short_names: &["svc"],
        categories: ALL,
        subresources: STATUS,
        columns: columns::SERVICE,
        ..PLAIN
    },
    Kind {
        plural: "persistentvolumeclaims",
        singular: "persistentvolumeclaim",
        name: "PersistentVolumeClaim",
        short_names: &["pvc"],
        subresources: STATUS,
        columns: columns::CLAIM,
        ..PLAIN
    },
    Kind {
        plural: "persistentvolumes",
        singular: "persistentvolume",
        name: "PersistentVolume",
        short_names: &["pv"],
        scope: ResourceScope::Cluster,
        subresources: STATUS,
        columns: columns::VOLUME,
        ..PLAIN
    },
    Kind {
        group: "apps",
        plural: "deployments",
        singular: "deployment",
        name: "Deployment",
        short_names: &["deploy"],
        categories: ALL,
        subresources: WORKLOAD,
        generation: true,
        columns: columns::DEPLOYMENT,
        ..PLAIN
    },
    Kind {
        group: "apps",
        plural: "replicasets",
        singular: "replicaset",
        name: "ReplicaSet",
        short_names: &["rs"],
        categories: ALL,
        subresources: WORKLOAD,
        generation: true,
        columns: columns::REPLICA_SET,
        ..PLAIN
    },
    Kind {
        group: "apps",
        plural: "statefulsets",
        singular: "statefulset",
        name: "StatefulSet",
        short_names: &["sts"],
        categories: ALL,
        subresources: WORKLOAD,
        generation: true,
        columns: columns::STATEFUL_SET,
        ..PLAIN
    },
    Kind {
        group: "apps",
        plural: "daemonsets",
        singular: "daemonset",
        name: "DaemonSet",
        short_names: &["ds"],
        categories: ALL,
        subresources: STATUS,
        generation: true,
        columns: columns::DAEMON_SET,
        ..PLAIN
    },
    Kind {
        group: "authorization.k8s.io",
        plural: "selfsubjectaccessreviews",
        singular: "selfsubjectaccessreview",
        name: "SelfSubjectAccessReview",
        scope: ResourceScope::Review,
        ..PLAIN
    },
    Kind {
        group: "authorization.k8s.io",
        plural: "selfsubjectrulesreviews",
        singular: "selfsubjectrulesreview",
        name: "SelfSubjectRulesReview",
        scope: ResourceScope::Review,
        ..PLAIN
    },
    Kind {
        group: "autoscaling",
        plural: "horizontalpodautoscalers",
        singular: "horizontalpodautoscaler",
        name: "HorizontalPodAutoscaler",
        short_names: &["hpa"],
        categories: ALL,
        subresources: STATUS,
        ..PLAIN
    },
    Kind {
        group: "batch",
        plural: "jobs",
        singular: "job",
        name: "Job",
        categories: ALL,
        subresources: STATUS,
        selectable: &[("status.successful", "/status/succeeded")],
        generation: true,
        columns: columns::JOB,
        ..PLAIN
    },
    Kind {
        group: "batch",
        plural: "cronjobs",
        singular: "cronjob",
        name: "CronJob",
        short_names: &["cj"],
        categories: ALL,
        subresources: STATUS,
        generation: true,
        ..PLAIN
    },
    Kind {
        group: "coordination.k8s.io",
        plural: "leases",
        singular: "lease",
        name: "Lease",
        columns: columns::LEASE,
        ..PLAIN
    },
    Kind {
        group: "events.k8s.io",
        plural: "events",
        singular: "event",
        name: "Event",
        short_names: &["ev"],
        selectable: EVENT_FIELDS,
        columns: columns::EVENT,
        ..PLAIN
    },
    Kind {
        group: "policy",
        plural: "poddisruptionbudgets",
        singular: "poddisruptionbudget",
        name: "PodDisruptionBudget",
        short_names: &["pdb"],
        subresources: STATUS,
        generation: true,
        columns: columns::BUDGET,
        ..PLAIN
    },
    Kind {
        group: DEVICES_GROUP,
        plural: "deviceclasses",
        singular: "deviceclass",
        name: "DeviceClass",
        scope: ResourceScope::Cluster,
        generation: true,
        ..PLAIN
    },
    DEVICE_TAINT_RULE,
    // The version of DeviceTaintRule that servers before 1.37 serve.
    Kind { version: "v1beta2", ..DEVICE_TAINT_RULE },
    Kind {
        group: DEVICES_GROUP,
        plural: "resourceclaims",
        singular: "resourceclaim",
        name: "ResourceClaim",
        subresources: STATUS,
        ..PLAIN
    },
    Kind {
        group: DEVICES_GROUP,
        plural: "resourceclaimtemplates",
        singular: "resourceclaimtemplate",
        name: "ResourceClaimTemplate",
        ..PLAIN
    },
    Kind {
        group: DEVICES_GROUP,
        plural: "resourceslices",
        singular: "resourceslice",
        name: "ResourceSlice",
        scope: ResourceScope::Cluster,
        generation: true,
        ..PLAIN
    },
    Kind {
        group: "scheduling.k8s.io",
        plural: "priorityclasses",
        singular: "priorityclass",
        name: "PriorityClass",
        short_names: &["pc"],
        scope: ResourceScope::Cluster,
        generation: true,
        columns: columns::PRIORITY_CLASS,
        ..PLAIN
    },
    Kind {
        group: "storage.k8s.io",
        plural: "csidrivers",
        singular: "csidriver",
        name: "CSIDriver",
        scope: ResourceScope::Cluster,
        generation: true,
        ..PLAIN
    },
    Kind {
        group: "storage.k8s.io",
        plural: "csinodes",
        singular: "csinode",
        name: "CSINode",
        scope: ResourceScope::Cluster,
        ..PLAIN
    },
    Kind {
        group: "storage.k8s.io",
        plural: "csistoragecapacities",
        singular: "csistoragecapacity",
        name: "CSIStorageCapacity",
        ..PLAIN
    },
    Kind {
        group: "storage.k8s.io",
        plural: "storageclasses",
        singular: "storageclass",
        name: "StorageClass",
        short_names: &["sc"],
        scope: ResourceScope::Cluster,
        columns: columns::STORAGE_CLASS,
        ..PLAIN
    },
    Kind {
        group: "storage.k8s.io",
        plural: "volumeattachments",
        singular: "volumeattachment",
        name: "VolumeAttachment",
        scope: ResourceScope::Cluster,
        subresources: STATUS,
        ..PLAIN
    },
    Kind {
        plural: "validatingwebhookconfigurations",
        singular: "validatingwebhookconfiguration",
        name: "ValidatingWebhookConfiguration",
        ..WEBHOOK_CONFIGURATION
    },
    Kind {
        plural: "mutatingwebhookconfigurations",
        singular: "mutatingwebhookconfiguration",
        name: "MutatingWebhookConfiguration",
        ..WEBHOOK_CONFIGURATION
    },
    Kind {
        group: "longhorn.io",
        version: "v1beta2",
        plural: "settings",
        singular: "setting",
        name: "Setting",
        ..PLAIN
    },
    Kind {
        group: "kubevirt.io",
        plural: "virtualmachines",
        singular: "virtualmachine",
        name: "VirtualMachine",
        short_names: &["vm"],
        ..PLAIN
    },
    Kind {
        group: "kubevirt.io",
        plural: "virtualmachineinstances",
        singular: "virtualmachineinstance",
        name: "VirtualMachineInstance",
        short_names: &["vmi"],
        ..PLAIN
    },
    Kind {
        group: "agones.dev",
        plural: "gameservers",
        singular: "gameserver",
        name: "GameServer",
        short_names: &["gs"],
        ..PLAIN
    },
    Kind { group: "kubeflow.org", plural: "tfjobs", singular: "tfjob", name: "TFJob", ..PLAIN },
];

/// Webhook configurations. The demo's API stores them, but calls no webhooks.
const WEBHOOK_CONFIGURATION: Kind = Kind {
    group: "admissionregistration.k8s.io",
    scope: ResourceScope::Cluster,
    generation: true,
    categories: &["api-extensions"],
    ..PLAIN
};

/// The group of dynamic resource allocation.
const DEVICES_GROUP: &str = "resource.k8s.io";

const DEVICE_TAINT_RULE: Kind = Kind {
    group: DEVICES_GROUP,
    plural: "devicetaintrules",
    singular: "devicetaintrule",
    name: "DeviceTaintRule",
    scope: ResourceScope::Cluster,
    subresources: STATUS,
    generation: true,
    ..PLAIN
};

/// The group of the metrics server.
pub const METRICS_GROUP: &str = "metrics.k8s.io";

/// The kinds of the metrics server. Their objects are not stored.
pub const METRICS_KINDS: &[Kind] = &[
    Kind {
        group: METRICS_GROUP,
        version: "v1beta1",
        plural: "nodes",
        name: "NodeMetrics",
        scope: ResourceScope::Cluster,
        ..PLAIN
    },
    Kind { group: METRICS_GROUP, version: "v1beta1", plural: "pods", name: "PodMetrics", ..PLAIN },
];

/// Selectable fields of Events. Events are always stored in the form of the core group.
const EVENT_FIELDS: &[(&str, &str)] = &[
    ("involvedObject.kind", "/involvedObject/kind"),
    ("involvedObject.namespace", "/involvedObject/namespace"),
    ("involvedObject.name", "/involvedObject/name"),
    ("involvedObject.uid", "/involvedObject/uid"),
    ("involvedObject.apiVersion", "/involvedObject/apiVersion"),
    ("involvedObject.resourceVersion", "/involvedObject/resourceVersion"),
    ("involvedObject.fieldPath", "/involvedObject/fieldPath"),
    ("regarding.kind", "/involvedObject/kind"),
    ("regarding.namespace", "/involvedObject/namespace"),
    ("regarding.name", "/involvedObject/name"),
    ("regarding.uid", "/involvedObject/uid"),
    ("reason", "/reason"),
    ("reportingController", "/reportingComponent"),
    ("source", "/source/component"),
    ("type", "/type"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_kinds_share_a_path() {
        let mut paths: Vec<String> =
            KINDS.iter().chain(METRICS_KINDS).map(|k| format!("{}/{}", k.api_version(), k.plural)).collect();
        let all = paths.len();
        paths.sort();
        paths.dedup();
        assert_eq!(paths.len(), all);
    }
}
