//! The marks of other projects on nodes, and the expected output of kordon, project by project.

use serde_json::{Map, Value, json};

use super::{CORDONED, Case, annotations, both, conditions, cordoned, labels, ready, taint};

/// One case for each mark that a project leaves on a node.
pub(super) fn cases() -> Vec<Case> {
    [
        machine_config_operator(),
        kured(),
        medik8s(),
        cluster_api(),
        lifecycle_conditions(),
        aws(),
        aks(),
        gke(),
        nvidia(),
        autoscalers(),
        node_readiness_controller(),
        shutdowns(),
        kubectl(),
        system_upgrade_controller(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn case(name: &'static str, node: Value, state: &'static str, why: &'static [&'static str]) -> Case {
    Case { name, node, state, why }
}

/// openshift/machine-config-operator, main 7ff337a: annotations of pkg/daemon/constants/constants.go, as
/// pkg/daemon/drain.go and pkg/controller/drain/drain_controller.go write them.
fn of_machine_config_operator(last_applied: &str, action: &str) -> Value {
    let prefix = "machineconfiguration.openshift.io";
    let marks: Map<String, Value> = [
        ("currentConfig", "rendered-worker-aaaa"),
        ("desiredConfig", "rendered-worker-bbbb"),
        ("state", "Working"),
        ("desiredDrain", "drain-rendered-worker-bbbb"),
        ("lastAppliedDrain", last_applied),
        ("post-config-action", action),
    ]
    .map(|(key, value)| (format!("{prefix}/{key}"), value.into()))
    .into_iter()
    .collect();
    both(cordoned("machine-config-controller"), annotations(marks.into()))
}

fn machine_config_operator() -> Vec<Case> {
    vec![
        case(
            "mco-draining",
            of_machine_config_operator("uncordon-rendered-worker-aaaa", ""),
            "Draining by Machine Config Operator 2h",
            &[
                "being drained by Machine Config Operator (annotation machineconfiguration.openshift.io/desiredDrain)",
                "cordoned by Machine Config Operator (machine-config-controller)",
            ],
        ),
        case(
            "mco-drained",
            of_machine_config_operator("drain-rendered-worker-bbbb", ""),
            "Drained by Machine Config Operator",
            &[
                "drain by Machine Config Operator (annotation machineconfiguration.openshift.io/desiredDrain) has ended",
            ],
        ),
        case(
            "mco-rebooting",
            of_machine_config_operator("drain-rendered-worker-bbbb", "Rebooting"),
            "Rebooting by Machine Config Operator",
            &[
                "reboot by Machine Config Operator (annotation machineconfiguration.openshift.io/post-config-action)",
            ],
        ),
        // Source: openshift/machine-config-operator, main 7ff337a: pkg/constants/constants.go.
        case(
            "mco-planned",
            json!({"spec": {"taints": [{"key": "UpdateInProgress", "effect": "PreferNoSchedule"}]}}),
            "Ready",
            &["update planned by Machine Config Operator (taint UpdateInProgress)"],
        ),
    ]
}

fn kured() -> Vec<Case> {
    vec![
        // Source: kubereboot/kured 1.23.0: cmd/kured/main.go, with --annotate-nodes.
        case(
            "kured",
            both(
                cordoned("kured"),
                annotations(json!({
                "weave.works/kured-reboot-in-progress": "2026-11-29T07:55:00Z",
                "weave.works/kured-most-recent-reboot-needed": "2026-11-29T07:55:00Z"})),
            ),
            "Draining by kured 2h",
            &["being drained by kured (cordoned by its manager kured)", "cordoned by kured"],
        ),
        case(
            "kured-tainted",
            taint("weave.works/kured-node-reboot", "", None),
            "Ready",
            &["reboot planned by kured (taint weave.works/kured-node-reboot)"],
        ),
        case(
            "kured-planned",
            annotations(json!({"weave.works/kured-reboot-in-progress": "2026-11-29T07:55:00Z"})),
            "Ready",
            &["reboot planned by kured (annotation weave.works/kured-reboot-in-progress)"],
        ),
        // Source: kubereboot/kured 1.23.0: pkg/daemonsetlock/daemonsetlock.go. The function `locked` has the lock.
        // kured also drains a node that somebody else has cordoned, and does not uncordon such a node.
        case(
            "kured-locked",
            cordoned("kubectl"),
            "Draining by kured 1h",
            &[
                "being drained by kured (annotation weave.works/kured-node-lock of its DaemonSet)",
                "cordoned by kubectl",
            ],
        ),
        case(
            "kured-locked-away",
            both(cordoned("kured"), conditions(ready("False", "container runtime is down"))),
            "NotReady",
            &["reboot by kured (annotation weave.works/kured-node-lock of its DaemonSet)"],
        ),
        case(
            "kured-locked-back",
            json!({}),
            "Ready",
            &[
                "about to be drained, or just restarted, by kured (annotation weave.works/kured-node-lock of its DaemonSet)",
            ],
        ),
    ]
}

fn medik8s() -> Vec<Case> {
    vec![
        // Source: medik8s/node-maintenance-operator 3a54cd1: internal/controller/taint.go. The operator adds its own
        // taint and that of a cordon, both without times.
        case(
            "nmo",
            json!({"metadata": {"labels": {"remediation.medik8s.io/exclude-from-remediation": "true"},
                "managedFields": [{"manager": "manager", "operation": "Update", "apiVersion": "v1", "time": CORDONED,
                    "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:taints": {}, "f:unschedulable": {}}}}]},
                "spec": {"unschedulable": true, "taints": [
                    {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
                    {"key": "medik8s.io/drain", "effect": "NoSchedule"}]}}),
            "Draining by Node Maintenance Operator",
            &["being drained by Node Maintenance Operator (taint medik8s.io/drain)", "cordoned by manager"],
        ),
        // Source: medik8s/self-node-remediation 640aac5 (0.13): internal/controller/selfnoderemediation_controller.go.
        case(
            "snr",
            taint("remediation.medik8s.io/self-node-remediation", "", Some(CORDONED)),
            "Rebooting by Self Node Remediation 2h",
            &["reboot by Self Node Remediation (taint remediation.medik8s.io/self-node-remediation)"],
        ),
        // Source: medik8s/self-node-remediation v0.11.0: controllers/selfnoderemediation_controller.go
        // (`NodeNoExecuteTaint`). The effect NoExecute would evict pods in this test.
        case(
            "snr-before-0-12",
            taint("medik8s.io/remediation", "self-node-remediation", Some(CORDONED)),
            "Rebooting by Self Node Remediation 2h",
            &[],
        ),
        // Source: medik8s/fence-agents-remediation 51f603e (0.7): api/v1alpha1/fenceagentsremediation_types.go.
        case(
            "far",
            taint("remediation.medik8s.io/fence-agents-remediation", "", Some(CORDONED)),
            "Rebooting by Fence Agents Remediation 2h",
            &[],
        ),
        // Source: medik8s/fence-agents-remediation v0.6.1: api/v1alpha1/fenceagentsremediation_types.go for the key, and
        // `CreateRemediationTaint` in pkg/utils/taints.go, whose effect NoExecute would evict pods in this test.
        case(
            "far-before-0-7",
            taint("medik8s.io/fence-agents-remediation", "", Some(CORDONED)),
            "Rebooting by Fence Agents Remediation 2h",
            &[],
        ),
    ]
}

fn cluster_api() -> Vec<Case> {
    vec![
        // Source: kubernetes-sigs/cluster-api v1.14.0: api/core/v1beta2/common_types.go. A node whose Machine is being
        // deleted is only cordoned, and the name of the field manager does not identify the project.
        case(
            "capi",
            both(
                cordoned("manager"),
                json!({
                "metadata": {"annotations": {"cluster.x-k8s.io/machine": "c1-md-0-abcde",
                    "cluster.x-k8s.io/owner-kind": "MachineSet"}},
                "spec": {"taints": [
                    {"key": "node.cluster.x-k8s.io/outdated-revision", "effect": "PreferNoSchedule"}]}}),
            ),
            "Cordoned 2h",
            &[
                "cordoned by manager",
                "replacement planned by Cluster API (taint node.cluster.x-k8s.io/outdated-revision)",
            ],
        ),
    ]
}

/// The lifecycle conditions of Kubernetes, whoever sets them.
fn lifecycle_conditions() -> Vec<Case> {
    vec![
        // Source: kubernetes/enhancements 64765b4: keps/sig-node/5683-lifecycle-conditions.
        case(
            "kep-drain",
            both(
                cordoned("kubectl"),
                conditions(json!([
                {"type": "DrainInProgress", "status": "True", "reason": "AdminRequested", "message": "rack move",
                    "lastTransitionTime": "2026-11-29T09:00:00Z"},
                {"type": "Drained", "status": "False", "reason": "AdminRequested"}])),
            ),
            "Draining 1h",
            &["being drained (condition DrainInProgress)", "cordoned by kubectl"],
        ),
        case(
            "kep-drained",
            both(
                cordoned("kubectl"),
                conditions(json!([
                {"type": "Drained", "status": "True", "reason": "DrainCompleted",
                    "lastTransitionTime": "2026-11-29T09:00:00Z"},
                {"type": "MaintenanceInProgress", "status": "True", "reason": "MaintenanceWindow",
                    "lastTransitionTime": "2026-11-29T09:00:00Z"}])),
            ),
            "Drained 1h",
            &[
                "drain (condition Drained) has ended",
                "maintenance in progress (condition MaintenanceInProgress)",
            ],
        ),
        case(
            "kep-planned",
            conditions(json!([{"type": "MaintenancePlanned", "status": "True",
                "reason": "MaintenanceWindow", "lastTransitionTime": "2026-11-28T08:00:00Z"}])),
            "Ready",
            &["maintenance planned (condition MaintenancePlanned)"],
        ),
        // Without a cordon, the condition is probably left over from an earlier drain.
        case(
            "kep-stale",
            conditions(json!([{"type": "DrainInProgress", "status": "True",
                "lastTransitionTime": "2026-11-28T08:00:00Z"}])),
            "Ready",
            &[],
        ),
    ]
}

/// AWS Node Termination Handler and EKS.
fn aws() -> Vec<Case> {
    vec![
        // Source: aws/aws-node-termination-handler v1.25.6: pkg/node/node.go, with --taint-node.
        case(
            "nth",
            both(
                cordoned("node-termination-handler"),
                both(
                    taint("aws-node-termination-handler/scheduled-maintenance", "instance-event-0123", None),
                    labels(json!({"aws-node-termination-handler/action": "UncordonAfterReboot",
                    "aws-node-termination-handler/action-time": "1796000000"})),
                ),
            ),
            "Draining by AWS Node Termination Handler 2h",
            &[
                "being drained by AWS Node Termination Handler (taint aws-node-termination-handler/scheduled-maintenance)",
                "cordoned by AWS Node Termination Handler (node-termination-handler)",
            ],
        ),
        case(
            "nth-cordon",
            cordoned("node-termination-handler"),
            "Cordoned 2h",
            &["cordoned by AWS Node Termination Handler (node-termination-handler)"],
        ),
        // Source: the audit log of focaaby/ironman-eks-example ec173f4, docs/example/ch11/managed-ng-node-update.json
        // (2023).
        case(
            "eks",
            both(
                cordoned("vpcLambda"),
                labels(json!({"eks.amazonaws.com/nodegroup": "demo-ng",
                "node.kubernetes.io/exclude-from-external-load-balancers": "true"})),
            ),
            "Cordoned 2h",
            &["cordoned by EKS (vpcLambda)", "drain and replacement planned by EKS"],
        ),
    ]
}

fn aks() -> Vec<Case> {
    vec![
        // Source: MicrosoftDocs/azure-aks-docs fb060ab: node-auto-repair, node-auto-drain, upgrade-options.
        case(
            "aks-upgrade",
            both(
                cordoned("upgrader"),
                annotations(json!({
                "cluster-autoscaler.kubernetes.io/scale-down-disabled": "true",
                "kubernetes.azure.com/azure-cluster-autoscaler-scale-down-disabled-reason": "upgrade"})),
            ),
            "Draining by AKS 2h",
            &[
                "being drained by AKS (annotation kubernetes.azure.com/azure-cluster-autoscaler-scale-down-disabled-reason)",
                "cordoned by upgrader",
            ],
        ),
        case(
            "aks-kept",
            both(
                cordoned("kubectl"),
                annotations(json!({
                "cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"})),
            ),
            "Cordoned 2h",
            &[],
        ),
        case(
            "aks-quarantined",
            both(cordoned("upgrader"), labels(json!({"kubernetes.azure.com/upgrade-status": "Quarantined"}))),
            "Cordoned 2h",
            &[
                "AKS could not drain it for an upgrade, and left it cordoned (label kubernetes.azure.com/upgrade-status)",
            ],
        ),
        case(
            "aks-remediator",
            taint("remediator.kubernetes.azure.com/unschedulable", "", Some(CORDONED)),
            "Draining by AKS 2h",
            &[],
        ),
        // Source: Azure/AKS 8d1c890: CHANGELOG.md.
        case(
            "aks-before-2023-09",
            taint("remediator.aks.microsoft.com/unschedulable", "", Some(CORDONED)),
            "Draining by AKS 2h",
            &[],
        ),
    ]
}

fn gke() -> Vec<Case> {
    vec![
        // Source: google/skills 1af7775: gke-ai-troubleshooting-handle-disruption-gpu-tpu.
        case(
            "gke",
            labels(json!({"cloud.google.com/scheduled-maintenance-time": "1796029200",
                "cloud.google.com/active-node-maintenance": "ONGOING"})),
            "Draining by GKE",
            &[
                "being drained by GKE (label cloud.google.com/active-node-maintenance)",
                "host maintenance planned by GKE (label cloud.google.com/scheduled-maintenance-time)",
            ],
        ),
        case(
            "gke-terminating",
            taint("cloud.google.com/impending-node-termination", "", None),
            "Ready",
            &["termination by GKE is near (taint cloud.google.com/impending-node-termination)"],
        ),
    ]
}

fn nvidia() -> Vec<Case> {
    vec![
        // Source: NVIDIA/k8s-operator-libs 11e747a: pkg/upgrade/consts.go.
        case(
            "nvidia",
            both(
                cordoned("manager"),
                labels(json!({"nvidia.com/gpu-driver-upgrade-state": "drain-required"})),
            ),
            "Draining by NVIDIA GPU Operator 2h",
            &["being drained by NVIDIA GPU Operator (label nvidia.com/gpu-driver-upgrade-state)"],
        ),
        case(
            "nvidia-validating",
            both(
                cordoned("manager"),
                labels(json!({"nvidia.com/gpu-driver-upgrade-state": "validation-required"})),
            ),
            "Cordoned 2h",
            &[
                "driver upgrade by NVIDIA GPU Operator in progress (label nvidia.com/gpu-driver-upgrade-state)",
            ],
        ),
    ]
}

/// Cluster Autoscaler and Karpenter.
fn autoscalers() -> Vec<Case> {
    vec![
        // Source: kubernetes/autoscaler, cluster-autoscaler-1.36.1: cluster-autoscaler/utils/taints/taints.go. The
        // autoscaler cordons since 1.34.
        case(
            "ca",
            both(cordoned("cluster-autoscaler"), taint("ToBeDeletedByClusterAutoscaler", "1795942800", None)),
            "Draining by Cluster Autoscaler 1h",
            &[
                "being drained by Cluster Autoscaler (taint ToBeDeletedByClusterAutoscaler)",
                "cordoned by Cluster Autoscaler (cluster-autoscaler)",
            ],
        ),
        case(
            "ca-candidate",
            taint("DeletionCandidateOfClusterAutoscaler", "1795942800", None),
            "Ready",
            &["removal considered by Cluster Autoscaler (taint DeletionCandidateOfClusterAutoscaler)"],
        ),
        // Source: kubernetes-sigs/karpenter v1.14.1, and v0.37.0 for the older key: pkg/apis/v1/taints.go.
        case(
            "karpenter",
            taint("karpenter.sh/disrupted", "", Some(CORDONED)),
            "Draining by Karpenter 2h",
            &["being drained by Karpenter (taint karpenter.sh/disrupted)"],
        ),
        case(
            "karpenter-before-1-0",
            taint("karpenter.sh/disruption", "disrupting", None),
            "Draining by Karpenter",
            &["being drained by Karpenter (taint karpenter.sh/disruption)"],
        ),
        // Source: kubernetes-sigs/karpenter 2266468: pkg/controllers/disruption/events/events.go. The function `objects`
        // has the Event.
        case(
            "karpenter-blocked",
            json!({}),
            "Ready",
            &["Karpenter did not disrupt it: PDB prevents pod evictions (PodDisruptionBudget=[shop/web])"],
        ),
    ]
}

fn node_readiness_controller() -> Vec<Case> {
    vec![
        // Source: kubernetes-sigs/node-readiness-controller v0.5.0: api/v1alpha1/nodereadinessrule_types.go for the keys,
        // `addTaintBySpec` in internal/controller/node_controller.go, which adds the taint of the rule without a time,
        // and the rule of the example `cni-readiness` in its book.
        case(
            "unready",
            taint("readiness.k8s.io/NetworkReady", "pending", None),
            "Ready",
            &[
                "readiness.k8s.io/NetworkReady:NoSchedule, by Node Readiness Controller: a condition that it needs is not \
                 met",
            ],
        ),
        case(
            "unready-evicts",
            json!({"spec": {"taints": [{"key": "readiness.k8s.io/gpu-not-ready", "effect": "NoExecute"}]}}),
            "Ready",
            &[
                "readiness.k8s.io/gpu-not-ready:NoExecute, by Node Readiness Controller: pods leave when their tolerations \
                 end",
            ],
        ),
    ]
}

/// Machines that shut down.
fn shutdowns() -> Vec<Case> {
    vec![
        // Source: kubernetes v1.37.1: pkg/kubelet/nodestatus/setters.go.
        case(
            "shutdown",
            conditions(ready("False", "[container runtime is down, node is shutting down]")),
            "ShuttingDown 10s",
            &["its kubelet reports Ready=False (node is shutting down)"],
        ),
        // Source: Kubernetes v0.37.1: core/v1/types.go. Another client sets this condition; the kubelet does not.
        case(
            "shutdown-condition",
            conditions(json!([{"type": "GracefulNodeShutdownInProgress", "status": "True",
                "reason": "NodeShutdown", "lastTransitionTime": "2026-11-29T09:59:00Z"}])),
            "ShuttingDown 1m",
            &[],
        ),
    ]
}

/// kubectl, and a client that is no longer known.
fn kubectl() -> Vec<Case> {
    vec![
        // kubectl v0.37.1: pkg/drain/cordon.go sends no field manager, so the API server takes its name from the
        // User-Agent.
        case("kubectl", cordoned("kubectl"), "Cordoned 2h", &["cordoned by kubectl"]),
        // A drain by kubectl leaves no other mark than the cordon. The function `evicted` has the pods.
        case(
            "kubectl-evicts",
            cordoned("kubectl"),
            "Draining by kubectl 2h",
            &[
                "being drained by kubectl (eviction of shop/leaving in progress); 1 pod left (1 terminating), done in ~",
                "cordoned by kubectl",
            ],
        ),
        case(
            "kubectl-refused",
            cordoned("kubectl"),
            "Draining by kubectl 2h",
            &[
                "drain by kubectl (budgets refuse the eviction of every pod that is left) blocked by PodDisruptionBudget \
                 shop/held: it refuses shop/held; 1 pod left (1 blocked)",
                "cordoned by kubectl",
            ],
        ),
        case("kubectl-cordons", cordoned("kubectl"), "Cordoned 2h", &["cordoned by kubectl"]),
        // Source of the field manager: kubectl apply --server-side, pkg/cmd/apply/apply.go.
        case(
            "kubectl-apply",
            {
                let mut node = cordoned("kubectl");
                node["metadata"]["managedFields"][1]["operation"] = "Apply".into();
                node
            },
            "Cordoned 2h",
            &["cordoned by kubectl (server-side apply)"],
        ),
        // The API server has merged the entry of the client that cordoned the node into the entry `ancient-changes`.
        case("forgotten", cordoned("ancient-changes"), "Cordoned 2h", &[]),
    ]
}

fn system_upgrade_controller() -> Vec<Case> {
    vec![
        // Source: rancher/system-upgrade-controller d357e23: pkg/upgrade/job/job.go, pkg/upgrade/handle_batch.go. The
        // function `upgrades` has the pods of its jobs.
        case(
            "suc",
            cordoned("kubectl"),
            "Cordoned 2h",
            &[
                "cordoned by system-upgrade-controller (kubectl in pod cattle-system/apply-os-on-suc-with-1)",
                "upgrade by system-upgrade-controller in progress: plan os (pod cattle-system/apply-os-on-suc-with-1)",
            ],
        ),
        case(
            "suc-failed",
            cordoned("kubectl"),
            "Cordoned 2h",
            &[
                "upgrade by system-upgrade-controller failed: plan os (pod cattle-system/apply-os-on-suc-failed-with-1)",
            ],
        ),
        case(
            "suc-earlier",
            both(cordoned("kubectl"), labels(json!({"plan.upgrade.cattle.io/os": "3f1e"}))),
            "Cordoned 2h",
            &[
                "cordoned by kubectl",
                "perhaps cordoned by a job of system-upgrade-controller, which runs kubectl: it applied os here earlier",
            ],
        ),
    ]
}
