//! PodDisruptionBudgets and evictions that an operator handles itself when a node is cordoned or drained.

use std::{collections::BTreeSet, sync::Arc};

use crate::cluster::{Cluster, NodeName, Pod};
use kordon_time::Span;

/// Time from the cordon of a node until an operator has moved the primary role from a pod on this node to a replica
/// elsewhere. Measured with CloudNativePG.
pub const SWITCHOVER: Span = Span::from_secs(11);

/// How the pods of an operator are recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recognised {
    /// The pods have an owner of this kind.
    OwnerKind(&'static str),
    /// The pods have this label. If `value` is `None`, the label may have any value.
    PodLabel { key: &'static str, value: Option<&'static str> },
}

/// What an operator needs before it acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperatorNeeds {
    /// A ready replica on another, schedulable node. The pod whose label `role_label` has the value `primary` is the
    /// one that the budget protects.
    ReadyReplicaElsewhere {
        role_label: &'static str,
        primary: &'static str,
    },
    /// A setting or a component that decides whether the operator acts.
    Setting(&'static str),
    Nothing,
}

/// What one operator does with its budgets or its pods' evictions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperatorBudget {
    pub operator: &'static str,
    /// How its pods are recognised.
    pub by: Recognised,
    /// What the operator does once the node is cordoned or drained: one sentence for the screen.
    pub does: &'static str,
    /// What it needs for that.
    pub needs: OperatorNeeds,
    /// Owner, repository and path of a file on GitHub, or the URL of a document.
    pub reference: &'static str,
}

/// The known operators, sorted by name.
pub const OPERATOR_BUDGETS: &[OperatorBudget] = &[
    OperatorBudget {
        operator: "CloudNativePG",
        // The kind of the owner, Cluster, is also a kind of other projects.
        by: Recognised::PodLabel { key: "cnpg.io/cluster", value: None },
        does: "CloudNativePG switches over to a ready replica on another node; then the budget allows the eviction.",
        needs: OperatorNeeds::ReadyReplicaElsewhere {
            role_label: "cnpg.io/instanceRole",
            primary: "primary",
        },
        reference: "cloudnative-pg/cloudnative-pg/internal/controller/replicas.go",
    },
    OperatorBudget {
        operator: "Elastic Cloud on Kubernetes",
        by: Recognised::PodLabel { key: "elasticsearch.k8s.elastic.co/cluster-name", value: None },
        does: "The operator lets one Elasticsearch pod go at a time, while the health of the cluster is green.",
        needs: OperatorNeeds::Nothing,
        reference: "elastic/cloud-on-k8s/pkg/controller/elasticsearch/pdb/reconcile_default.go",
    },
    OperatorBudget {
        operator: "KubeVirt",
        by: Recognised::OwnerKind("VirtualMachineInstance"),
        does: "KubeVirt denies the eviction and live-migrates the virtual machine to another node.",
        needs: OperatorNeeds::Setting("evictionStrategy"),
        reference: "kubevirt/kubevirt/pkg/virt-api/webhooks/validating-webhook/admitters/pod-eviction-admitter.go",
    },
    OperatorBudget {
        operator: "Longhorn",
        by: Recognised::OwnerKind("InstanceManager"),
        does: "Longhorn deletes the budget once no volume is attached to the node and its drain policy is met.",
        needs: OperatorNeeds::Setting("node-drain-policy"),
        reference: "longhorn/longhorn-manager/controller/instance_manager_controller.go",
    },
    OperatorBudget {
        operator: "Postgres Operator",
        by: Recognised::PodLabel { key: "application", value: Some("spilo") },
        does: "The operator moves the master: it switches over to a replica on a node that is not cordoned.",
        needs: OperatorNeeds::ReadyReplicaElsewhere { role_label: "spilo-role", primary: "master" },
        reference: "zalando/postgres-operator/pkg/controller/node.go",
    },
    OperatorBudget {
        operator: "Rook monitors",
        by: Recognised::PodLabel { key: "app", value: Some("rook-ceph-mon") },
        does: "Rook lowers the budget while a monitor is out of quorum, and raises it once all are back.",
        needs: OperatorNeeds::Nothing,
        reference: "rook/rook/pkg/operator/ceph/cluster/mon/drain.go",
    },
    OperatorBudget {
        operator: "Rook OSDs",
        by: Recognised::PodLabel { key: "app", value: Some("rook-ceph-osd") },
        does: "Once an OSD is down, Rook lets the other OSDs of its failure domain go and protects all others.",
        needs: OperatorNeeds::Nothing,
        reference: "rook/rook/pkg/operator/ceph/disruption/clusterdisruption/osd.go",
    },
    OperatorBudget {
        operator: "Strimzi",
        by: Recognised::OwnerKind("StrimziPodSet"),
        does: "Strimzi Drain Cleaner denies the eviction; Strimzi restarts the pods itself, one at a time.",
        needs: OperatorNeeds::Setting("Strimzi Drain Cleaner"),
        reference: "strimzi/drain-cleaner/src/main/java/io/strimzi/ValidatingWebhook.java",
    },
];

/// Returns the operator that handles a budget itself, if it is known. Labels are pairs of key and value, `owner_kind`
/// is the kind of the pods' controller.
pub fn operator_of(owner_kind: Option<&str>, pod_labels: &[(&str, &str)]) -> Option<&'static OperatorBudget> {
    let has = |labels: &[(&str, &str)], key: &str, value: Option<&str>| {
        labels.iter().any(|(k, v)| *k == key && value.is_none_or(|value| *v == value))
    };
    OPERATOR_BUDGETS.iter().find(|operator| match operator.by {
        Recognised::OwnerKind(kind) => owner_kind == Some(kind),
        Recognised::PodLabel { key, value } => has(pod_labels, key, value),
    })
}

/// Returns the operator that handles the budgets of a pod itself, if it is known.
pub fn operator_of_pod(pod: &Pod) -> Option<&'static OperatorBudget> {
    let labels: Vec<(&str, &str)> = pod.labels.iter().map(|(key, value)| (&**key, &**value)).collect();
    operator_of(pod.owner.as_ref().map(|owner| owner.kind.as_str()), &labels)
}

/// Returns the operator that moves the role of a pod to another node once the node of the pod is cordoned.
pub fn operator_that_moves(pod: &Pod) -> Option<&'static OperatorBudget> {
    operator_of_pod(pod).filter(|operator| match operator.needs {
        OperatorNeeds::ReadyReplicaElsewhere { role_label, primary } => {
            pod.labels.get(role_label).is_some_and(|role| **role == *primary)
        }
        OperatorNeeds::Setting(_) | OperatorNeeds::Nothing => false,
    })
}

/// What an operator does with the role of a pod once the node of the pod is cordoned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switchover {
    /// It moves the role to a ready replica on a schedulable node, and the budget then lets the pod go.
    Moves,
    /// It does not move the role, because it has no ready replica on another schedulable node.
    NoReplica,
}

/// Returns what the operator of a pod does once the node of the pod is cordoned, if it moves roles and the pod has the
/// role that it moves. `closed` nodes are cordoned too.
pub fn switchover(cluster: &Cluster, pod: &Pod, closed: &BTreeSet<NodeName>) -> Option<Switchover> {
    operator_that_moves(pod)?;
    let is_open = |name: &NodeName| {
        !closed.contains(name)
            && cluster.node(name).is_some_and(|node| !node.unschedulable && node.is_ready())
    };
    let takes_over = |other: &&Arc<Pod>| {
        other.key != pod.key
            && other.is_ready()
            && other.termination.is_none()
            && other.node != pod.node
            && other.node.as_ref().is_some_and(is_open)
    };
    let owner = pod.owner.as_ref()?;
    let has_replica = cluster.pods_owned_by(&owner.uid).any(|other| takes_over(&other));
    Some(if has_replica { Switchover::Moves } else { Switchover::NoReplica })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks up the operator of pods with an owner of this kind and one label.
    fn name_of(owner_kind: &str, label: (&str, &str)) -> Option<&'static str> {
        operator_of(Some(owner_kind), &[("tier", "data"), label]).map(|operator| operator.operator)
    }

    #[test]
    fn each_operator_is_recognised() {
        let expected = [
            ("Cluster", ("cnpg.io/cluster", "orders"), "CloudNativePG"),
            (
                "StatefulSet",
                ("elasticsearch.k8s.elastic.co/cluster-name", "logs"),
                "Elastic Cloud on Kubernetes",
            ),
            ("VirtualMachineInstance", ("kubevirt.io", "virt-launcher"), "KubeVirt"),
            ("InstanceManager", ("longhorn.io/component", "instance-manager"), "Longhorn"),
            ("StatefulSet", ("application", "spilo"), "Postgres Operator"),
            ("ReplicaSet", ("app", "rook-ceph-mon"), "Rook monitors"),
            ("ReplicaSet", ("app", "rook-ceph-osd"), "Rook OSDs"),
            ("StrimziPodSet", ("strimzi.io/cluster", "events"), "Strimzi"),
        ];
        for (owner_kind, label, operator) in expected {
            assert_eq!(name_of(owner_kind, label), Some(operator));
        }
        assert_eq!(expected.map(|(.., operator)| operator).as_slice(), names());
    }

    fn names() -> Vec<&'static str> {
        OPERATOR_BUDGETS.iter().map(|operator| operator.operator).collect()
    }

    #[test]
    fn other_pods_have_no_operator() {
        assert_eq!(name_of("Cluster", ("app", "shop")), None);
        assert_eq!(name_of("StatefulSet", ("application", "shop")), None);
        assert_eq!(operator_of(None, &[]), None);
    }

    #[test]
    fn every_operator_has_a_sentence_and_a_reference() {
        for operator in OPERATOR_BUDGETS {
            assert!(operator.does.ends_with('.') && operator.does.len() <= 120, "{}", operator.operator);
            assert!(operator.reference.split('/').count() >= 3, "{}", operator.operator);
        }
    }
}
