//! Upgrades of nodes by the system-upgrade-controller, whose jobs run kubectl on the node.

use super::{Cluster, Key, Name, Node, Phase, Pod};
use kordon_time::ClusterTime;

/// Label on the pods of a job. Its value is the name of the plan that the job carries out
/// (rancher/system-upgrade-controller d357e23, `pkg/apis/upgrade.cattle.io/constants.go`, `LabelPlan`;
/// `pkg/upgrade/job/job.go`, `New`).
const PLAN: &str = "upgrade.cattle.io/plan";

/// Label on the pods of all jobs of the controller (`LabelController`).
const CONTROLLER: &str = "upgrade.cattle.io/controller";

/// The project that drains a node by such a job.
pub(super) const SUC: &str = "system-upgrade-controller";

/// Prefix of the label of a node to which a plan was applied; the name of the plan follows (`LabelPlanName`). The label
/// stays after the upgrade (`pkg/upgrade/handle_batch.go`).
const APPLIED: &str = "plan.upgrade.cattle.io/";

/// The field manager of `kubectl cordon` and `kubectl drain` (kubectl 0.37.1: `pkg/drain/cordon.go` names none, so the
/// API server takes the name of the executable from the User-Agent).
pub(super) const KUBECTL: &str = "kubectl";

/// What the system-upgrade-controller does with a node, or may have done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum UpgradePlan {
    /// The pod of an upgrade job is on the node and has not finished.
    Runs { plan: Name, pod: Key, created: ClusterTime },
    /// The pod of an upgrade job has failed, and no other upgrade job runs. The node is uncordoned only once such a job
    /// completes.
    Failed { plan: Name, pod: Key, created: ClusterTime },
    /// Plans were applied to the node earlier, so a cordon by kubectl may come from a job of the controller.
    Applied { plans: Vec<String> },
}

impl UpgradePlan {
    /// Returns the upgrade of a node; `None` if nothing points to one.
    pub(super) fn find(cluster: &Cluster, node: &Node) -> Option<Self> {
        let jobs = || cluster.pods_on(&node.name).filter_map(|pod| Some((pod.labels.get(PLAN)?, &**pod)));
        let found = |(plan, pod): (&Name, &Pod)| (plan.clone(), pod.key.clone(), pod.created);
        if let Some((plan, pod, created)) = jobs().find(|(_, pod)| !pod.is_finished()).map(found) {
            return Some(Self::Runs { plan, pod, created });
        }
        if !node.unschedulable {
            return None;
        }
        if let Some((plan, pod, created)) = jobs().find(|(_, pod)| pod.phase == Phase::Failed).map(found) {
            return Some(Self::Failed { plan, pod, created });
        }
        let plans: Vec<String> =
            node.labels.keys().filter_map(|key| key.strip_prefix(APPLIED)).map(Into::into).collect();
        let is_kubectl = node.cordoned_by().is_some_and(|by| by.manager == *KUBECTL);
        (is_kubectl && !plans.is_empty()).then_some(Self::Applied { plans })
    }

    /// Describes the upgrade in words.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Runs { plan, pod, .. } => {
                format!("upgrade by system-upgrade-controller in progress: plan {plan} (pod {pod})")
            }
            Self::Failed { plan, pod, .. } => format!(
                "upgrade by system-upgrade-controller failed: plan {plan} (pod {pod}); it uncordons a node only after a \
                 job that completes"
            ),
            Self::Applied { plans } => format!(
                "perhaps cordoned by a job of system-upgrade-controller, which runs kubectl: it applied {} here earlier \
                 (label {APPLIED}{})",
                plans.join(", "),
                plans[0],
            ),
        }
    }

    /// When the upgrade began; `None` if that is not known.
    pub(super) const fn began(&self) -> Option<ClusterTime> {
        match self {
            Self::Runs { created, .. } | Self::Failed { created, .. } => Some(*created),
            Self::Applied { .. } => None,
        }
    }

    /// Whether the drain of an upgrade job leaves a pod of its node alone, as it does with the pods of all such jobs
    /// (`pkg/upgrade/job/job.go`, `New`: `--pod-selector '!upgrade.cattle.io/controller'`).
    pub(super) fn spares(node: &Node, pod: &Pod) -> bool {
        let is_by_kubectl = node.cordoned_by().is_some_and(|by| by.manager == *KUBECTL);
        is_by_kubectl && node.drain_claim.is_none() && pod.labels.contains_key(CONTROLLER)
    }

    /// Who cordoned the node by kubectl, in words that follow `cordoned by`; `None` if that is not certain.
    pub(super) fn cordons(&self, manager: &str) -> Option<String> {
        match self {
            Self::Runs { pod, .. } | Self::Failed { pod, .. } if manager == KUBECTL => {
                Some(format!("system-upgrade-controller (kubectl in pod {pod})"))
            }
            Self::Runs { .. } | Self::Failed { .. } | Self::Applied { .. } => None,
        }
    }
}
