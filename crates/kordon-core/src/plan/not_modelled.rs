//! Aspects that plans do not model. A plan lists those that may affect its pods
//! (docs/upstream/placement-and-pressure.md#10.2).

use std::fmt;

use super::{
    budget,
    landing::Landing,
    owner::{self, Recreation},
    pod_plan::PodPlan,
    rules::EvictionRules,
    warning::PodWarning,
};
use crate::{
    cluster::{Cluster, FeedKind, Key, Pod, scheduling::PodVolume},
    engine::ServerVersion,
};

/// Something that the plan does not model, although it may change what happens to some of the plan's pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotModelled {
    pub what: NotModelledKind,
    /// Number of pods in the plan that may be affected.
    pub pods: usize,
}

/// Something that plans do not model, for example rollouts and autoscalers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotModelledKind {
    Quota,
    Rollout,
    Autoscalers,
    Webhooks,
    SchedulerConfiguration,
    KubeletAdmission,
    VolumeLimitScaling,
    StorageCapacityScoring,
    BudgetUpdates,
}

impl NotModelledKind {
    const ALL: [Self; 9] = [
        Self::Quota,
        Self::Rollout,
        Self::Autoscalers,
        Self::Webhooks,
        Self::SchedulerConfiguration,
        Self::KubeletAdmission,
        Self::VolumeLimitScaling,
        Self::StorageCapacityScoring,
        Self::BudgetUpdates,
    ];

    /// Returns a stable name for what is not modelled.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Quota => "quota",
            Self::Rollout => "rollout",
            Self::Autoscalers => "autoscalers",
            Self::Webhooks => "webhooks",
            Self::SchedulerConfiguration => "schedulerConfiguration",
            Self::KubeletAdmission => "kubeletAdmission",
            Self::VolumeLimitScaling => "volumeLimitScaling",
            Self::StorageCapacityScoring => "storageCapacityScoring",
            Self::BudgetUpdates => "budgetUpdates",
        }
    }

    /// Returns whether this aspect, which plans do not model, may affect the replacement of a pod.
    fn concerns(self, plan: &PodPlan, pod: &Pod, cluster: &Cluster, rules: &EvictionRules) -> bool {
        let is_placed = matches!(plan.landing, Some(Landing::Node { .. }));
        let claims = |volume: &PodVolume| match volume {
            PodVolume::Claim(_) | PodVolume::OwnClaim { .. } => true,
            PodVolume::Disk(_) => false,
        };
        let is_scored = |volume: &PodVolume| match volume {
            PodVolume::Claim(name) => {
                let key = Key { namespace: pod.key.namespace.clone(), name: name.clone() };
                let claim = cluster.claims().get(&key).filter(|claim| claim.volume.is_empty());
                claim.is_some_and(|claim| cluster.publishes_capacity(&claim.class))
            }
            PodVolume::OwnClaim { class, .. } => cluster.publishes_capacity(class),
            PodVolume::Disk(_) => false,
        };
        let is_placed_by_volumes = is_placed && rules.version >= ServerVersion::new(1, 37);
        let knows_drivers = || cluster.known(FeedKind::CsiDrivers).is_known();
        let mut volumes = pod.scheduling.volumes.iter();
        match self {
            Self::Quota => cluster.quotas_in(&pod.key.namespace).any(|quota| quota.counts(pod).is_none()),
            Self::Rollout => plan.warnings.contains(&PodWarning::RolloutInProgress),
            Self::Autoscalers | Self::Webhooks => true,
            Self::SchedulerConfiguration => !matches!(plan.landing, Some(Landing::Unknown)),
            Self::KubeletAdmission => is_placed,
            Self::VolumeLimitScaling => is_placed_by_volumes && !knows_drivers() && volumes.any(claims),
            Self::StorageCapacityScoring if knows_drivers() => is_placed_by_volumes && volumes.any(is_scored),
            Self::StorageCapacityScoring => is_placed_by_volumes && volumes.any(claims),
            Self::BudgetUpdates => {
                let mut budgets = cluster.budgets_of(pod).filter(|known| budget::selects(known, pod, rules));
                !rules.updates_every_budget && budgets.nth(1).is_some()
            }
        }
    }
}

impl fmt::Display for NotModelledKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Quota => "a ResourceQuota with a scope that kordon does not know may refuse the replacement",
            Self::Rollout => {
                "a rollout is in progress: the replacement may be of another revision, and budgets may allow less once \
                 it is done"
            }
            Self::Autoscalers => "an HPA or VPA may change the number of replicas or their requests",
            Self::Webhooks => "admission may change or refuse the replacement: webhooks, a LimitRange, Pod Security",
            Self::SchedulerConfiguration => "the scheduler may have other profiles, plugins or extenders",
            Self::KubeletAdmission => {
                "the kubelet may reject the replacement: its static CPU, memory or topology policy"
            }
            Self::VolumeLimitScaling => {
                "the scheduler may reject nodes without the CSI driver of a volume (VolumeLimitScaling): CSIDrivers are \
                 not known"
            }
            Self::StorageCapacityScoring => {
                "the scheduler may score nodes by free storage capacity (StorageCapacityScoring)"
            }
            Self::BudgetUpdates => {
                "several budgets select the pod: before 1.38 the disruption controller updates one of them, and the others \
                 may be out of date"
            }
        })
    }
}

/// Returns the aspects that may affect the replacements of these pods. Pods that are not replaced are ignored.
pub(super) fn of_pods(pods: &[PodPlan], rules: &EvictionRules, cluster: &Cluster) -> Vec<NotModelled> {
    let is_replaced = |pod: &Pod| match owner::recreation(cluster, pod) {
        Recreation::Immediately | Recreation::WhenGone => true,
        Recreation::OnSameNode | Recreation::Never(_) | Recreation::Unknown => false,
    };
    let replaced = pods.iter().filter(|plan| plan.landing.is_some());
    let replaced = replaced.filter_map(|plan| Some((plan, cluster.pod(&plan.pod)?)));
    let replaced: Vec<_> = replaced.filter(|(_, pod)| is_replaced(pod)).collect();
    let count = |what: NotModelledKind| {
        let concerned = replaced.iter().filter(|(plan, pod)| what.concerns(plan, pod, cluster, rules));
        NotModelled { what, pods: concerned.count() }
    };
    NotModelledKind::ALL.into_iter().map(count).filter(|found| found.pods > 0).collect()
}
