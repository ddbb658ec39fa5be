//! Kubernetes operators that handle the PodDisruptionBudgets or evictions of their pods themselves when a node is
//! cordoned or drained.

use crate::cluster::{Cluster, KnownSetting, Labels, OwnerKind, Pod};

/// How the pods of an operator are recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recognised {
    /// The pods have an owner of this kind.
    OwnerKind { kind: &'static str, group: &'static str },
    /// The pods have this label. If `value` is `None`, the label may have any value.
    PodLabel { key: &'static str, value: Option<&'static str> },
}

/// What an operator needs before it acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperatorNeeds {
    /// The operator needs other instances, one of which takes over the role of the pod. The budget protects the pod
    /// whose label `role_label` has the value `primary`; the other instances have the value `replica`.
    OtherInstances {
        role_label: &'static str,
        primary: &'static str,
        replica: &'static str,
        moves: RoleMove,
    },
    /// The operator acts only with this setting or component.
    Setting(&'static str),
    Nothing,
}

/// The state of the other instances that an operator requires before it moves a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoleMove {
    /// All instances must be ready, all replicas must run on other nodes than the primary, and one replica must run on
    /// a schedulable node.
    AllInstances,
    /// One other instance must be ready. If it is not on a schedulable node, the operator first moves it to one. If
    /// the pod is the only instance, the operator deletes the pod.
    OneReplica,
}

impl OperatorNeeds {
    /// Returns the setting that the operator needs and what is known of it, as a clause; `None` if it needs no setting.
    pub fn setting_text(self, known: Option<&KnownSetting>) -> Option<String> {
        let Self::Setting(needs) = self else { return None };
        let known = match known {
            Some(KnownSetting::Found(text)) => format!(", and {text}"),
            Some(KnownSetting::Unreadable(why)) => format!(", which is not known: {why}"),
            Some(KnownSetting::Missing) => ", which is missing".into(),
            None => String::new(),
        };
        Some(format!("it needs {needs}{known}"))
    }
}

/// How one Kubernetes operator handles the budgets or the evictions of its pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperatorBudget {
    pub operator: &'static str,
    /// How the operator's pods are recognised.
    pub by: Recognised,
    /// What the operator does once the node is cordoned or drained: one sentence for the screen.
    pub does: &'static str,
    /// What the operator needs before it acts.
    pub needs: OperatorNeeds,
    /// Whether a webhook of the operator denies the eviction, and the operator moves the pod in its own way.
    pub denies_evictions: bool,
    /// Source of the facts: owner, repository and path of a file on GitHub, or the URL of a document.
    pub reference: &'static str,
}

/// The known Kubernetes operators, sorted by name.
pub const OPERATOR_BUDGETS: &[OperatorBudget] = &[
    OperatorBudget {
        operator: "CloudNativePG",
        // Recognised by label, because other projects also have a kind named Cluster.
        by: Recognised::PodLabel { key: "cnpg.io/cluster", value: None },
        does: "CloudNativePG switches over to a ready replica on another node; then the budget allows the eviction.",
        needs: OperatorNeeds::OtherInstances {
            role_label: "cnpg.io/instanceRole",
            primary: "primary",
            replica: "replica",
            moves: RoleMove::AllInstances,
        },
        denies_evictions: false,
        reference: "cloudnative-pg/cloudnative-pg/internal/controller/replicas.go",
    },
    OperatorBudget {
        operator: "Elastic Cloud on Kubernetes",
        by: Recognised::PodLabel { key: "elasticsearch.k8s.elastic.co/cluster-name", value: None },
        does: "The operator lets one Elasticsearch pod go at a time, while the health of the cluster is green.",
        needs: OperatorNeeds::Nothing,
        denies_evictions: false,
        reference: "elastic/cloud-on-k8s/pkg/controller/elasticsearch/pdb/reconcile_default.go",
    },
    OperatorBudget {
        operator: "KubeVirt",
        by: Recognised::OwnerKind { kind: "VirtualMachineInstance", group: "kubevirt.io" },
        does: "KubeVirt denies the eviction and live-migrates the virtual machine to another node.",
        needs: OperatorNeeds::Setting("evictionStrategy"),
        denies_evictions: true,
        reference: "kubevirt/kubevirt/pkg/virt-api/webhooks/validating-webhook/admitters/pod-eviction-admitter.go",
    },
    OperatorBudget {
        operator: "Longhorn",
        by: Recognised::OwnerKind { kind: "InstanceManager", group: "longhorn.io" },
        does: "Longhorn deletes the budget once no volume is attached to the node and its drain policy is met.",
        needs: OperatorNeeds::Setting("node-drain-policy"),
        denies_evictions: false,
        reference: "longhorn/longhorn-manager/controller/instance_manager_controller.go",
    },
    OperatorBudget {
        operator: "Postgres Operator",
        by: Recognised::PodLabel { key: "application", value: Some("spilo") },
        does: "The operator moves the master: it switches over to a replica on a node that is not cordoned.",
        needs: OperatorNeeds::OtherInstances {
            role_label: "spilo-role",
            primary: "master",
            replica: "replica",
            moves: RoleMove::OneReplica,
        },
        denies_evictions: false,
        reference: "zalando/postgres-operator/pkg/controller/node.go",
    },
    OperatorBudget {
        operator: "Rook monitors",
        by: Recognised::PodLabel { key: "app", value: Some("rook-ceph-mon") },
        does: "Rook lowers the budget while a monitor is out of quorum, and raises it once all are back.",
        needs: OperatorNeeds::Nothing,
        denies_evictions: false,
        reference: "rook/rook/pkg/operator/ceph/cluster/mon/drain.go",
    },
    OperatorBudget {
        operator: "Rook OSDs",
        by: Recognised::PodLabel { key: "app", value: Some("rook-ceph-osd") },
        does: "Once an OSD is down, Rook lets the other OSDs of its failure domain go and protects all others.",
        needs: OperatorNeeds::Nothing,
        denies_evictions: false,
        reference: "rook/rook/pkg/operator/ceph/disruption/clusterdisruption/osd.go",
    },
    OperatorBudget {
        operator: "Strimzi",
        by: Recognised::OwnerKind { kind: "StrimziPodSet", group: "core.strimzi.io" },
        does: "Strimzi Drain Cleaner denies the eviction; Strimzi restarts the pods itself, one at a time.",
        needs: OperatorNeeds::Setting("Strimzi Drain Cleaner"),
        denies_evictions: true,
        reference: "strimzi/drain-cleaner/src/main/java/io/strimzi/ValidatingWebhook.java",
    },
];

/// Returns the known operator that itself handles the budgets of pods with this controller and these labels; `None` if
/// there is none.
pub fn operator_of(owner: Option<&OwnerKind>, labels: &Labels) -> Option<&'static OperatorBudget> {
    let has = |key: &str, value: Option<&str>| {
        labels.get(key).is_some_and(|own| value.is_none_or(|value| **own == *value))
    };
    OPERATOR_BUDGETS.iter().find(|operator| match operator.by {
        Recognised::OwnerKind { kind, group } => owner.is_some_and(|owner| owner.is(kind, group)),
        Recognised::PodLabel { key, value } => has(key, value),
    })
}

/// Returns the known operator that itself handles the budgets of a pod; `None` if there is none.
pub fn operator_of_pod(pod: &Pod) -> Option<&'static OperatorBudget> {
    operator_of(pod.owner.as_ref().map(|owner| &owner.kind), &pod.labels)
}

/// Returns what is known of the setting that the operator of a pod needs; `None` if it was not read.
pub fn setting_of<'a>(cluster: &'a Cluster, pod: &Pod) -> Option<&'a KnownSetting> {
    cluster.operator_settings().setting_of(pod.owner.as_ref()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the name of the operator of pods with an owner of this kind and with this label.
    fn name_of(owner_kind: &str, label: (&str, &str)) -> Option<&'static str> {
        let labels = [("tier", "data"), label].map(|(key, value)| (key.into(), value.into()));
        let owner = OwnerKind::Other { kind: owner_kind.into(), group: None };
        operator_of(Some(&owner), &Labels::from(labels)).map(|operator| operator.operator)
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
        assert_eq!(operator_of(None, &Labels::default()), None);
    }

    #[test]
    fn every_operator_has_a_sentence_and_a_reference() {
        for operator in OPERATOR_BUDGETS {
            assert!(operator.does.ends_with('.') && operator.does.len() <= 120, "{}", operator.operator);
            assert!(operator.reference.split('/').count() >= 3, "{}", operator.operator);
        }
    }
}
