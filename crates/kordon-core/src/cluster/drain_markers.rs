//! Marks that other projects leave on Node objects when they drain, reboot or maintain nodes. One row for each mark,
//! with the file and version in which it was read; `docs/owners.md` has the same rows for users.
//!
//! Three things look like marks, but are not:
//! - Owner annotations of Cluster API and `plan.upgrade.cattle.io/…` labels are also there when nothing happens.
//! - The field manager `kubectl` is a person, a script or the system-upgrade-controller, whose jobs run kubectl.
//! - The field manager `manager` is the controller of any project built with kubebuilder.

use super::{Name, Node, node::ConditionStatus, reboot_lock::REBOOT_LOCK, taint_owner};
use kordon_time::{ClusterTime, Timestamp};

/// What another project does with a node, the most disruptive first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DrainStage {
    /// The machine is being restarted.
    Rebooting,
    /// Pods are being removed from the node.
    Draining,
    /// The node is being drained or is kept empty after its drain. Both have the same mark; the node's pods show which
    /// of the two it is.
    Maintaining,
    /// The drain has ended, and the node is still cordoned.
    Drained,
}

/// The meaning of a mark on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Stage(DrainStage),
    /// Text about planned work, or about work that is not a drain.
    Note(&'static str),
    /// The mark says who cordoned the node, and nothing else.
    Cordon,
}

use DrainStage::{Drained, Draining, Maintaining, Rebooting};
use Meaning::{Cordon, Note, Stage};

/// The part of a Node object that has the mark of another project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// `spec.taints`; the value of the mark is the value of the taint.
    Taint,
    Label,
    Annotation,
    /// A condition that is True; the value of the mark is the reason of the condition.
    Condition,
    /// An annotation of the project's DaemonSet with a lock that names the node; the mark has no value.
    Lock,
    /// The field manager that set `spec.unschedulable`, from `metadata.managedFields`; the mark has no value.
    Manager,
}

/// A mark by which a project says what it does with a node.
#[derive(Debug)]
pub(super) struct DrainMarker {
    /// The project, as in `Karpenter`; empty if the mark does not name it.
    pub project: &'static str,
    place: Place,
    /// Key of the taint, label or annotation (of the node or of a DaemonSet), type of the condition, or name of the
    /// field manager.
    key: &'static str,
    /// Returns whether the mark with the given value has this meaning on the given node.
    test: fn(&Node, &str) -> bool,
    pub meaning: Meaning,
}

impl DrainMarker {
    /// Returns the marks of other projects on a node, in the order of `MARKERS`.
    pub fn of(node: &Node) -> impl Iterator<Item = &'static Self> {
        MARKERS.iter().filter(|marker| marker.is_on(node))
    }

    /// Returns the project whose controllers set fields under the name `manager`; `None` if any project may use this
    /// name.
    pub fn project_of_manager(manager: &str) -> Option<&'static str> {
        let is_it = |marker: &&Self| marker.place == Place::Manager && marker.key == manager;
        MARKERS.iter().find(is_it).map(|marker| marker.project)
    }

    fn is_on(&self, node: &Node) -> bool {
        self.value(node).is_some_and(|value| (self.test)(node, value))
    }

    /// The value of the mark; `None` if the node does not have the mark.
    fn value<'a>(&self, node: &'a Node) -> Option<&'a str> {
        match self.place {
            Place::Taint => {
                node.taints.iter().find(|taint| taint.key == *self.key).map(|taint| taint.value.as_str())
            }
            Place::Label => node.label(self.key).map(Name::as_str),
            Place::Annotation => node.annotation(self.key),
            Place::Condition => {
                let condition = node.condition(self.key)?;
                (condition.status == ConditionStatus::True).then_some(condition.reason.as_str())
            }
            Place::Lock => node.reboot_lock.as_ref().map(|_| ""),
            Place::Manager => node.cordoned_by().is_some_and(|by| by.manager == *self.key).then_some(""),
        }
    }

    /// The mark in words, such as `taint karpenter.sh/disrupted`.
    pub fn evidence(&self) -> String {
        let key = self.key;
        match self.place {
            Place::Taint => format!("taint {key}"),
            Place::Label => format!("label {key}"),
            Place::Annotation => format!("annotation {key}"),
            Place::Condition => format!("condition {key}"),
            Place::Lock => format!("annotation {key} of its DaemonSet"),
            Place::Manager => format!("cordoned by its manager {key}"),
        }
    }

    /// The time that the mark contains: when the mark was set, or the date of planned maintenance.
    pub fn time(&self, node: &Node) -> Option<ClusterTime> {
        match self.place {
            Place::Taint => {
                let taint = node.taints.iter().find(|taint| taint.key == *self.key)?;
                // The cluster autoscaler writes the time into the value (`addTaintsToSpec` in
                // `cluster-autoscaler/utils/taints/taints.go`).
                let is_autoscaler = self.project == taint_owner::AUTOSCALER;
                taint.time_added.or_else(|| unix_time(&taint.value).filter(|_| is_autoscaler))
            }
            Place::Label | Place::Annotation => {
                let value = self.value(node)?;
                unix_time(value).or_else(|| ClusterTime::parse(value))
            }
            Place::Condition => node.condition(self.key)?.last_transition,
            Place::Lock => node.reboot_lock.as_ref()?.at,
            Place::Manager => node.cordon_taint()?.time_added,
        }
    }
}

/// A time written as seconds since 1970.
fn unix_time(value: &str) -> Option<ClusterTime> {
    let seconds = value.parse::<i64>().ok().filter(|seconds| *seconds > 0)?;
    Some(ClusterTime::new(Timestamp::from_secs(seconds)))
}

const MCO: &str = "Machine Config Operator";
const KURED: &str = "kured";
const NMO: &str = "Node Maintenance Operator";
const SNR: &str = "Self Node Remediation";
const FAR: &str = "Fence Agents Remediation";
/// Cluster API cordons nodes under the name of its executable, `manager` (kubernetes-sigs/cluster-api v1.14.0:
/// `core/reconcilers/machine/drain/drain.go`, `controllers/remote/restconfig.go`, `Dockerfile`). Other controllers have
/// this name too.
pub(super) const CLUSTER_API: &str = "Cluster API";
const NTH: &str = "AWS Node Termination Handler";
const EKS: &str = "EKS";
const AKS: &str = "AKS";
const GKE: &str = "GKE";
const NVIDIA: &str = "NVIDIA GPU Operator";

const DESIRED_DRAIN: &str = "machineconfiguration.openshift.io/desiredDrain";
const LAST_APPLIED_DRAIN: &str = "machineconfiguration.openshift.io/lastAppliedDrain";
const POST_CONFIG_ACTION: &str = "machineconfiguration.openshift.io/post-config-action";
const REBOOT_IN_PROGRESS: &str = "weave.works/kured-reboot-in-progress";
const SCALE_DOWN_DISABLED: &str = "cluster-autoscaler.kubernetes.io/scale-down-disabled";
const SCALE_DOWN_DISABLED_REASON: &str =
    "kubernetes.azure.com/azure-cluster-autoscaler-scale-down-disabled-reason";
const NVIDIA_STATE: &str = "nvidia.com/gpu-driver-upgrade-state";

/// The Machine of a node of Cluster API. It says nothing about a drain, but who drains the node if it is drained.
pub(super) const MACHINE: &str = "cluster.x-k8s.io/machine";

/// Keys of the node annotations that are kept with their values, because marks are read from them.
pub const ANNOTATIONS: [&str; 7] = [
    DESIRED_DRAIN,
    LAST_APPLIED_DRAIN,
    POST_CONFIG_ACTION,
    REBOOT_IN_PROGRESS,
    SCALE_DOWN_DISABLED,
    SCALE_DOWN_DISABLED_REASON,
    MACHINE,
];

const REBOOT_PLANNED: &str = "reboot planned by kured";

/// All marks. If a node has several, the first stage in the order of [`DrainStage`] counts, then the first row.
const MARKERS: &[DrainMarker] = &[
    // kubernetes-sigs/karpenter v1.14.1: pkg/apis/v1/taints.go. Before 1.0 (v0.37.0) the taint had another key.
    taint(taint_owner::KARPENTER, taint_owner::DISRUPTED[0], any, Stage(Draining)),
    taint(taint_owner::KARPENTER, taint_owner::DISRUPTED[1], any, Stage(Draining)),
    // kubernetes/autoscaler cluster-autoscaler-1.36.1: cluster-autoscaler/utils/taints/taints.go.
    taint(taint_owner::AUTOSCALER, "ToBeDeletedByClusterAutoscaler", any, Stage(Draining)),
    taint(
        taint_owner::AUTOSCALER,
        "DeletionCandidateOfClusterAutoscaler",
        any,
        Note("removal considered by Cluster Autoscaler"),
    ),
    manager(taint_owner::AUTOSCALER, "cluster-autoscaler", any, Cordon),
    // openshift/machine-config-operator 7ff337a: pkg/daemon/drain.go, pkg/daemon/update.go,
    // pkg/controller/drain/drain_controller.go, pkg/constants/constants.go. The daemon asks for a drain in one
    // annotation. Once the controller has drained the node, it copies the text into another annotation.
    annotation(MCO, POST_CONFIG_ACTION, |_, value| value == "Rebooting", Stage(Rebooting)),
    annotation(
        MCO,
        DESIRED_DRAIN,
        |node, value| asks_to_drain(value) && !is_applied(node, value),
        Stage(Draining),
    ),
    annotation(
        MCO,
        DESIRED_DRAIN,
        |node, value| asks_to_drain(value) && is_applied(node, value),
        Stage(Drained),
    ),
    taint(MCO, "UpdateInProgress", any, Note("update planned by Machine Config Operator")),
    manager(MCO, "machine-config-controller", any, Cordon),
    // kubereboot/kured 1.23.0: cmd/kured/main.go. kured cordons a node only to drain and restart it, and uncordons it
    // after the restart. A node that was already cordoned is drained, too. The node takes kured's lock before the
    // cordon and releases the lock after it was uncordoned. kured writes its annotation on the node even before the
    // node takes the lock. The key of kured's taint can be configured; this is the key in kured's documentation.
    lock(KURED, REBOOT_LOCK, |node, _| node.unschedulable && node.is_ready(), Stage(Draining)),
    lock(KURED, REBOOT_LOCK, |node, _| node.unschedulable && !node.is_ready(), Stage(Rebooting)),
    lock(
        KURED,
        REBOOT_LOCK,
        |node, _| !node.unschedulable,
        Note("about to be drained, or just restarted, by kured"),
    ),
    manager(KURED, "kured", |node, _| node.is_ready(), Stage(Draining)),
    manager(KURED, "kured", |node, _| !node.is_ready(), Stage(Rebooting)),
    annotation(KURED, REBOOT_IN_PROGRESS, |node, _| !node.unschedulable, Note(REBOOT_PLANNED)),
    taint(KURED, "weave.works/kured-node-reboot", any, Note(REBOOT_PLANNED)),
    // medik8s/node-maintenance-operator 3a54cd1: internal/controller/taint.go. The taint stays for the whole
    // maintenance.
    taint(NMO, "medik8s.io/drain", any, Stage(Maintaining)),
    // medik8s/self-node-remediation 640aac5: internal/controller/selfnoderemediation_controller.go; before 0.12 the
    // taint had another key.
    taint(SNR, "remediation.medik8s.io/self-node-remediation", any, Stage(Rebooting)),
    taint(SNR, "medik8s.io/remediation", |_, value| value == "self-node-remediation", Stage(Rebooting)),
    // medik8s/fence-agents-remediation 51f603e: api/v1alpha1/fenceagentsremediation_types.go; before 0.7 the taint had
    // another key.
    taint(FAR, "remediation.medik8s.io/fence-agents-remediation", any, Stage(Rebooting)),
    taint(FAR, "medik8s.io/fence-agents-remediation", any, Stage(Rebooting)),
    // kubernetes-sigs/cluster-api v1.14.0: api/core/v1beta2/common_types.go. Its drains leave no mark but the cordon.
    taint(
        CLUSTER_API,
        "node.cluster.x-k8s.io/outdated-revision",
        any,
        Note("replacement planned by Cluster API"),
    ),
    // aws/aws-node-termination-handler v1.25.6: pkg/node/node.go. The taints are set right before the cordon and the
    // drain.
    taint(NTH, "aws-node-termination-handler/spot-itn", is_cordoned, Stage(Draining)),
    taint(NTH, "aws-node-termination-handler/asg-lifecycle-termination", is_cordoned, Stage(Draining)),
    taint(NTH, "aws-node-termination-handler/scheduled-maintenance", is_cordoned, Stage(Draining)),
    taint(NTH, "aws-node-termination-handler/rebalance-recommendation", is_cordoned, Stage(Draining)),
    label(
        NTH,
        "aws-node-termination-handler/action",
        |_, value| value == "UncordonAfterReboot",
        Note("AWS Node Termination Handler uncordons it after its restart"),
    ),
    manager(NTH, "node-termination-handler", any, Cordon),
    // awsdocs/amazon-eks-user-guide 4d52b4d: managed-node-update-behavior. The name of the field manager is from the
    // audit log of focaaby/ironman-eks-example ec173f4. All old nodes of a group are cordoned before the first of them
    // is drained.
    manager(EKS, "vpcLambda", any, Note("drain and replacement planned by EKS")),
    // MicrosoftDocs/azure-aks-docs fb060ab: node-auto-drain, node-auto-repair, upgrade-options;
    // Azure/AKS 8d1c890: CHANGELOG.md, for the older key.
    taint(AKS, "remediator.kubernetes.azure.com/unschedulable", any, Stage(Draining)),
    taint(AKS, "remediator.aks.microsoft.com/unschedulable", any, Stage(Draining)),
    annotation(
        AKS,
        SCALE_DOWN_DISABLED_REASON,
        |node, value| is_upgraded(node, value) && node.unschedulable,
        Stage(Draining),
    ),
    annotation(
        AKS,
        SCALE_DOWN_DISABLED_REASON,
        |node, value| is_upgraded(node, value) && !node.unschedulable,
        Note("upgrade by AKS in progress"),
    ),
    label(
        AKS,
        "kubernetes.azure.com/upgrade-status",
        |_, value| value == "Quarantined",
        Note("AKS could not drain it for an upgrade, and left it cordoned"),
    ),
    // google/skills 1af7775: gke-ai-troubleshooting-handle-disruption-gpu-tpu.
    label(GKE, "cloud.google.com/active-node-maintenance", |_, value| value == "ONGOING", Stage(Draining)),
    taint(GKE, "cloud.google.com/impending-node-termination", any, Note("termination by GKE is near")),
    label(GKE, "cloud.google.com/scheduled-maintenance-time", any, Note("host maintenance planned by GKE")),
    // NVIDIA/k8s-operator-libs 11e747a: pkg/upgrade/consts.go.
    label(NVIDIA, NVIDIA_STATE, is_driver_drain, Stage(Draining)),
    label(NVIDIA, NVIDIA_STATE, is_driver_planned, Note("driver upgrade planned by NVIDIA GPU Operator")),
    label(NVIDIA, NVIDIA_STATE, is_driver_upgrade, Note("driver upgrade by NVIDIA GPU Operator in progress")),
    label(
        NVIDIA,
        NVIDIA_STATE,
        |_, value| value == "upgrade-failed",
        Note("driver upgrade by NVIDIA GPU Operator failed"),
    ),
    // k8s.io/api v0.37.1: core/v1/types.go; kubernetes/enhancements 64765b4: keps/sig-node/5683-lifecycle-conditions.
    // Any client may set these conditions. If the node is not cordoned, DrainInProgress is probably left from an
    // earlier drain. `GracefulNodeShutdownInProgress` is in `Node::is_shutting_down`.
    condition("DrainInProgress", is_cordoned, Stage(Draining)),
    condition("Drained", is_cordoned, Stage(Drained)),
    condition("MaintenanceInProgress", any, Note("maintenance in progress")),
    condition("MaintenancePlanned", any, Note("maintenance planned")),
];

const fn marker(
    project: &'static str,
    place: Place,
    key: &'static str,
    test: fn(&Node, &str) -> bool,
    meaning: Meaning,
) -> DrainMarker {
    DrainMarker { project, place, key, test, meaning }
}

const fn taint(
    project: &'static str,
    key: &'static str,
    test: fn(&Node, &str) -> bool,
    meaning: Meaning,
) -> DrainMarker {
    marker(project, Place::Taint, key, test, meaning)
}

const fn label(
    project: &'static str,
    key: &'static str,
    test: fn(&Node, &str) -> bool,
    meaning: Meaning,
) -> DrainMarker {
    marker(project, Place::Label, key, test, meaning)
}

const fn annotation(
    project: &'static str,
    key: &'static str,
    test: fn(&Node, &str) -> bool,
    meaning: Meaning,
) -> DrainMarker {
    marker(project, Place::Annotation, key, test, meaning)
}

const fn lock(
    project: &'static str,
    key: &'static str,
    test: fn(&Node, &str) -> bool,
    meaning: Meaning,
) -> DrainMarker {
    marker(project, Place::Lock, key, test, meaning)
}

const fn manager(
    project: &'static str,
    name: &'static str,
    test: fn(&Node, &str) -> bool,
    meaning: Meaning,
) -> DrainMarker {
    marker(project, Place::Manager, name, test, meaning)
}

const fn condition(kind: &'static str, test: fn(&Node, &str) -> bool, meaning: Meaning) -> DrainMarker {
    marker("", Place::Condition, kind, test, meaning)
}

fn any(_: &Node, _: &str) -> bool {
    true
}

fn is_cordoned(node: &Node, _: &str) -> bool {
    node.unschedulable
}

/// Whether the daemon of the Machine Config Operator asks for a drain, not for the end of one.
fn asks_to_drain(desired: &str) -> bool {
    desired.starts_with("drain-")
}

/// Whether the controller of the Machine Config Operator has carried out what the daemon asks for.
fn is_applied(node: &Node, desired: &str) -> bool {
    node.annotation(LAST_APPLIED_DRAIN) == Some(desired)
}

/// Whether AKS upgrades the node. Only both annotations together show this.
fn is_upgraded(node: &Node, reason: &str) -> bool {
    reason == "upgrade" && node.annotation(SCALE_DOWN_DISABLED) == Some("true")
}

fn is_driver_drain(_: &Node, state: &str) -> bool {
    ["pod-deletion-required", "drain-required"].contains(&state)
}

fn is_driver_planned(_: &Node, state: &str) -> bool {
    ["upgrade-required", "cordon-required"].contains(&state)
}

fn is_driver_upgrade(_: &Node, state: &str) -> bool {
    [
        "wait-for-jobs-required",
        "node-maintenance-required",
        "post-maintenance-required",
        "pod-restart-required",
        "validation-required",
        "uncordon-required",
    ]
    .contains(&state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_annotations_of_all_rows_are_kept() {
        let annotations = MARKERS.iter().filter(|marker| marker.place == Place::Annotation);
        for marker in annotations {
            assert!(ANNOTATIONS.contains(&marker.key), "{}", marker.key);
        }
    }

    #[test]
    fn every_row_has_its_project_unless_it_is_a_condition() {
        for marker in MARKERS {
            assert_eq!(marker.project.is_empty(), marker.place == Place::Condition, "{}", marker.key);
        }
    }
}
