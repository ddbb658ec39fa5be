//! The fields that are read of each message: number, name in JSON, and type, as in the published API definitions
//! (`generated.proto`). All others are skipped unread.

use super::message::{
    FieldType::{
        Bool, Encoded, Ignored, Inline, Int, IntOrText, List, Map, Message as Nested, Quantity, Text, Time,
    },
    Message,
};

pub const NODE: Message = &[
    (1, "metadata", Nested(OBJECT_META)),
    (2, "spec", Nested(NODE_SPEC)),
    (3, "status", Nested(NODE_STATUS)),
];

pub const NODE_WITHOUT_IMAGES: Message = &[
    (1, "metadata", Nested(OBJECT_META)),
    (2, "spec", Nested(NODE_SPEC)),
    (3, "status", Nested(NODE_STATUS.split_last().expect("it has fields").1)),
];

const NODE_SPEC: Message = &[(4, "unschedulable", Bool), (5, "taints", List(&Nested(TAINT)))];

const TAINT: Message = &[(1, "key", Text), (2, "value", Text), (3, "effect", Text), (4, "timeAdded", Time)];

/// Images come last.
const NODE_STATUS: Message = &[
    (1, "capacity", Map(&Quantity)),
    (2, "allocatable", Map(&Quantity)),
    (4, "conditions", List(&Nested(NODE_CONDITION))),
    (5, "addresses", List(&Nested(&[(1, "type", Text), (2, "address", Text)]))),
    (7, "nodeInfo", Nested(&[(4, "kernelVersion", Text), (7, "kubeletVersion", Text)])),
    (8, "images", List(&Encoded)),
];

const NODE_CONDITION: Message = &[
    (1, "type", Text),
    (2, "status", Text),
    (3, "lastHeartbeatTime", Time),
    (4, "lastTransitionTime", Time),
    (5, "reason", Text),
    (6, "message", Text),
];

/// Of a node. Each renews it every few seconds: only what heartbeats need is read.
pub const HEARTBEAT: Message = &[
    (
        1,
        "metadata",
        Nested(&[(1, "name", Text), (6, "resourceVersion", Text), (12, "annotations", Map(&Text))]),
    ),
    (2, "spec", Nested(&[(2, "leaseDurationSeconds", Int), (4, "renewTime", Time)])),
];

pub const LEASE: Message = &[(1, "metadata", Nested(OBJECT_META)), (2, "spec", Nested(LEASE_SPEC))];

const LEASE_SPEC: Message = &[
    (1, "holderIdentity", Text),
    (2, "leaseDurationSeconds", Int),
    (3, "acquireTime", Time),
    (4, "renewTime", Time),
];

pub const POD: Message =
    &[(1, "metadata", Nested(OBJECT_META)), (2, "spec", Nested(POD_SPEC)), (3, "status", Nested(POD_STATUS))];

const POD_SPEC: Message = &[
    (1, "volumes", List(&Nested(VOLUME))),
    (2, "containers", List(&Nested(CONTAINER))),
    (4, "terminationGracePeriodSeconds", Int),
    (5, "activeDeadlineSeconds", Int),
    (7, "nodeSelector", Map(&Text)),
    (10, "nodeName", Text),
    (18, "affinity", Nested(AFFINITY)),
    (19, "schedulerName", Text),
    (20, "initContainers", List(&Nested(CONTAINER))),
    (22, "tolerations", List(&Nested(TOLERATION))),
    (24, "priorityClassName", Text),
    (25, "priority", Int),
    (31, "preemptionPolicy", Text),
    (32, "overhead", Map(&Quantity)),
    (33, "topologySpreadConstraints", List(&Nested(SPREAD))),
    (38, "schedulingGates", List(&Nested(NAMED))),
    (39, "resourceClaims", List(&Nested(NAMED))),
    (40, "resources", Nested(RESOURCES)),
];

const NAMED: Message = &[(1, "name", Text)];

const RESOURCES: Message = &[(1, "limits", Map(&Quantity)), (2, "requests", Map(&Quantity))];

const CONTAINER: Message = &[
    (1, "name", Text),
    (2, "image", Text),
    (6, "ports", List(&Nested(&[(2, "hostPort", Int), (4, "protocol", Text), (5, "hostIP", Text)]))),
    (8, "resources", Nested(RESOURCES)),
    (24, "restartPolicy", Text),
];

const TOLERATION: Message = &[
    (1, "key", Text),
    (2, "operator", Text),
    (3, "value", Text),
    (4, "effect", Text),
    (5, "tolerationSeconds", Int),
];

const AFFINITY: Message = &[
    (1, "nodeAffinity", Nested(NODE_AFFINITY)),
    (2, "podAffinity", Nested(POD_AFFINITY)),
    (3, "podAntiAffinity", Nested(POD_AFFINITY)),
];

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

const NODE_AFFINITY: Message = &[
    (1, REQUIRED, Nested(NODE_SELECTOR)),
    (2, PREFERRED, List(&Nested(&[(1, "weight", Int), (2, "preference", Nested(NODE_TERM))]))),
];

const NODE_SELECTOR: Message = &[(1, "nodeSelectorTerms", List(&Nested(NODE_TERM)))];

const NODE_TERM: Message =
    &[(1, "matchExpressions", List(&Nested(REQUIREMENT))), (2, "matchFields", List(&Nested(REQUIREMENT)))];

const REQUIREMENT: Message = &[(1, "key", Text), (2, "operator", Text), (3, "values", List(&Text))];

const POD_AFFINITY: Message = &[
    (1, REQUIRED, List(&Nested(POD_TERM))),
    (2, PREFERRED, List(&Nested(&[(1, "weight", Int), (2, "podAffinityTerm", Nested(POD_TERM))]))),
];

const POD_TERM: Message = &[
    (1, "labelSelector", Nested(LABEL_SELECTOR)),
    (2, "namespaces", List(&Text)),
    (3, "topologyKey", Text),
    (4, "namespaceSelector", Nested(LABEL_SELECTOR)),
];

const LABEL_SELECTOR: Message =
    &[(1, "matchLabels", Map(&Text)), (2, "matchExpressions", List(&Nested(REQUIREMENT)))];

const SPREAD: Message = &[
    (1, "maxSkew", Int),
    (2, "topologyKey", Text),
    (3, "whenUnsatisfiable", Text),
    (4, "labelSelector", Nested(LABEL_SELECTOR)),
    (5, "minDomains", Int),
    (6, "nodeAffinityPolicy", Text),
    (7, "nodeTaintsPolicy", Text),
    (8, "matchLabelKeys", List(&Text)),
];

const VOLUME: Message = &[(1, "name", Text), (2, "volumeSource", Inline(VOLUME_SOURCE))];

const VOLUME_SOURCE: Message = &[
    (1, "hostPath", Ignored),
    (2, "emptyDir", Nested(&[(1, "medium", Text)])),
    (3, "gcePersistentDisk", Nested(&[(1, "pdName", Text), (4, "readOnly", Bool)])),
    (4, "awsElasticBlockStore", Nested(&[(1, "volumeID", Text), (4, "readOnly", Bool)])),
    (5, "gitRepo", Ignored),
    (8, "iscsi", Nested(&[(2, "iqn", Text), (6, "readOnly", Bool)])),
    (10, "persistentVolumeClaim", Nested(&[(1, "claimName", Text)])),
    (11, "rbd", Nested(&[(2, "image", Text), (4, "pool", Text), (8, "readOnly", Bool)])),
    (19, "configMap", Ignored),
    (29, "ephemeral", Nested(&[(1, "volumeClaimTemplate", Nested(&[(2, "spec", Nested(CLAIM_SPEC))]))])),
    (30, "image", Nested(&[(1, "reference", Text)])),
];

const POD_STATUS: Message = &[
    (1, "phase", Text),
    (2, "conditions", List(&Nested(CONDITION))),
    (3, "message", Text),
    (4, "reason", Text),
    (7, "startTime", Time),
    (8, "containerStatuses", List(&Nested(CONTAINER_STATUS))),
    (9, "qosClass", Text),
    (11, "nominatedNodeName", Text),
];

/// Of pods, of Jobs and of budgets: all number these fields alike.
const CONDITION: Message = &[
    (1, "type", Text),
    (2, "status", Text),
    (4, "lastTransitionTime", Time),
    (5, "reason", Text),
    (6, "message", Text),
];

const CONTAINER_STATUS: Message =
    &[(1, "name", Text), (2, "state", Nested(CONTAINER_STATE)), (3, "lastState", Nested(CONTAINER_STATE))];

const CONTAINER_STATE: Message =
    &[(3, "terminated", Nested(&[(1, "exitCode", Int), (3, "reason", Text), (6, "finishedAt", Time)]))];

pub const BUDGET: Message = &[
    (1, "metadata", Nested(OBJECT_META)),
    (2, "spec", Nested(BUDGET_SPEC)),
    (3, "status", Nested(BUDGET_STATUS)),
];

const BUDGET_SPEC: Message = &[
    (1, "minAvailable", IntOrText),
    (2, "selector", Nested(LABEL_SELECTOR)),
    (3, "maxUnavailable", IntOrText),
    (4, "unhealthyPodEvictionPolicy", Text),
];

const BUDGET_STATUS: Message = &[
    (1, "observedGeneration", Int),
    (2, "disruptedPods", Map(&Time)),
    (3, "disruptionsAllowed", Int),
    (4, "currentHealthy", Int),
    (5, "desiredHealthy", Int),
    (6, "expectedPods", Int),
    (7, "conditions", List(&Nested(CONDITION))),
];

/// ReplicaSets, Deployments and StatefulSets.
pub const REPLICATED: Message = &[
    (1, "metadata", Nested(OBJECT_META)),
    (2, "spec", Nested(&[(1, "replicas", Int), (2, "selector", Nested(LABEL_SELECTOR))])),
];

pub const REPLICATION_CONTROLLER: Message = &[
    (1, "metadata", Nested(OBJECT_META)),
    (2, "spec", Nested(&[(1, "replicas", Int), (2, "selector", Map(&Text))])),
];

pub const DAEMON_SET: Message =
    &[(1, "metadata", Nested(OBJECT_META)), (2, "spec", Nested(&[(1, "selector", Nested(LABEL_SELECTOR))]))];

pub const JOB: Message = &[
    (1, "metadata", Nested(OBJECT_META)),
    (
        2,
        "spec",
        Nested(&[
            (1, "parallelism", Int),
            (4, "selector", Nested(LABEL_SELECTOR)),
            (14, "podReplacementPolicy", Text),
        ]),
    ),
    (3, "status", Nested(&[(1, "conditions", List(&Nested(CONDITION)))])),
];

pub const PRIORITY_CLASS: Message = &[
    (1, "metadata", Nested(OBJECT_META)),
    (2, "value", Int),
    (3, "globalDefault", Bool),
    (5, "preemptionPolicy", Text),
];

pub const NAMESPACE: Message = &[(1, "metadata", Nested(OBJECT_META)), (3, "status", Nested(PHASE))];

/// The status of namespaces, claims and volumes.
const PHASE: Message = &[(1, "phase", Text)];

pub const SERVICE: Message =
    &[(1, "metadata", Nested(OBJECT_META)), (2, "spec", Nested(&[(2, "selector", Map(&Text))]))];

pub const CLAIM: Message =
    &[(1, "metadata", Nested(OBJECT_META)), (2, "spec", Nested(CLAIM_SPEC)), (3, "status", Nested(PHASE))];

const CLAIM_SPEC: Message = &[
    (1, "accessModes", List(&Text)),
    (2, "resources", Nested(&[(2, "requests", Map(&Quantity))])),
    (3, "volumeName", Text),
    (4, "selector", Nested(LABEL_SELECTOR)),
    (5, "storageClassName", Text),
    (6, "volumeMode", Text),
];

pub const VOLUME_OBJECT: Message =
    &[(1, "metadata", Nested(OBJECT_META)), (2, "spec", Nested(VOLUME_SPEC)), (3, "status", Nested(PHASE))];

const VOLUME_SPEC: Message = &[
    (1, "capacity", Map(&Quantity)),
    (
        2,
        "persistentVolumeSource",
        Inline(&[(22, "csi", Nested(&[(1, "driver", Text), (2, "volumeHandle", Text)]))]),
    ),
    (3, "accessModes", List(&Text)),
    (4, "claimRef", Nested(&[(2, "namespace", Text), (3, "name", Text), (4, "uid", Text)])),
    (6, "storageClassName", Text),
    (8, "volumeMode", Text),
    (9, "nodeAffinity", Nested(&[(1, "required", Nested(NODE_SELECTOR))])),
];

pub const STORAGE_CLASS: Message = &[
    (1, "metadata", Nested(OBJECT_META)),
    (2, "provisioner", Text),
    (7, "volumeBindingMode", Text),
    (
        8,
        "allowedTopologies",
        List(&Nested(&[(
            1,
            "matchLabelExpressions",
            List(&Nested(&[(1, "key", Text), (2, "values", List(&Text))])),
        )])),
    ),
];

pub const CSI_NODE: Message = &[
    (1, "metadata", Nested(OBJECT_META)),
    (
        2,
        "spec",
        Nested(&[(
            1,
            "drivers",
            List(&Nested(&[(1, "name", Text), (4, "allocatable", Nested(&[(1, "count", Int)]))])),
        )]),
    ),
];

pub const QUOTA: Message = &[
    (1, "metadata", Nested(OBJECT_META)),
    (2, "spec", Nested(&[(2, "scopes", List(&Text)), (3, "scopeSelector", Nested(SCOPE_SELECTOR))])),
    (3, "status", Nested(&[(1, "hard", Map(&Quantity)), (2, "used", Map(&Quantity))])),
];

const SCOPE_SELECTOR: Message = &[(
    1,
    "matchExpressions",
    List(&Nested(&[(1, "scopeName", Text), (2, "operator", Text), (3, "values", List(&Text))])),
)];

/// Any object, of which only the metadata is read.
pub const NAMED_OBJECT: Message = &[(1, "metadata", Nested(OBJECT_META))];

/// `metadata` of every object.
pub const OBJECT_META: Message = &[
    (1, "name", Text),
    (3, "namespace", Text),
    (5, "uid", Text),
    (6, "resourceVersion", Text),
    (7, "generation", Int),
    (8, "creationTimestamp", Time),
    (9, "deletionTimestamp", Time),
    (10, "deletionGracePeriodSeconds", Int),
    (11, "labels", Map(&Text)),
    (12, "annotations", Map(&Text)),
    (13, "ownerReferences", List(&Nested(OWNER_REFERENCE))),
    (14, "finalizers", List(&Text)),
];

const OWNER_REFERENCE: Message = &[
    (1, "kind", Text),
    (3, "name", Text),
    (4, "uid", Text),
    (5, "apiVersion", Text),
    (6, "controller", Bool),
];

/// `metadata` of a list.
pub const LIST_META: Message =
    &[(2, "resourceVersion", Text), (3, "continue", Text), (4, "remainingItemCount", Int)];

/// An error of the server.
pub const STATUS: Message =
    &[(3, "message", Text), (5, "details", Nested(&[(5, "retryAfterSeconds", Int)])), (6, "code", Int)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_node_without_images_everything_else_is_read() {
        let of_status = |node: Message| match node[2].2 {
            Nested(status) => status.iter().map(|field| field.1).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        let mut whole = of_status(NODE);
        assert_eq!(whole.pop(), Some("images"));
        assert_eq!(of_status(NODE_WITHOUT_IMAGES), whole);
    }
}
