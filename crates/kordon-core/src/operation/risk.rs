//! Risks of a plan, in addition to the eviction of pods that their controllers recreate elsewhere.

use std::collections::BTreeSet;

use crate::plan::{Plan, PodPlan, PodWarning, Verdict};

/// A kind of risk of a plan. An operator who agrees to a plan accepts its kinds of risk for all pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Risk {
    /// No controller recreates the pod.
    Lost,
    /// The replacement of the pod preempts pods that no controller recreates, or whose Job fails.
    PreemptedLost,
    /// Data of the pod is lost.
    DataLost,
    /// Two pods may have the same identity for a while.
    DuplicateIdentity,
    /// A taint deletes the pod, and no budget can prevent it.
    BudgetIgnored,
    /// The pod has to wait for its budget, its namespace or the disruption controller, or it is unknown whether it has
    /// to wait.
    Waits,
    /// The pod can never leave.
    Blocked,
}

impl Risk {
    /// The kinds of risk of a plan.
    pub fn of_plan(plan: &Plan) -> BTreeSet<Self> {
        plan.pods.iter().flat_map(Self::of_pod).collect()
    }

    /// The kinds of risk that a pod adds to its plan; empty for a pod that stays.
    pub fn of_pod(pod: &PodPlan) -> BTreeSet<Self> {
        let of_removal = match pod.verdict.as_if_granted() {
            Verdict::Skipped(_)
            | Verdict::Refused { .. }
            | Verdict::Terminating
            | Verdict::Tolerates
            | Verdict::DeletionCancelled => return BTreeSet::new(),
            Verdict::Leaves(_) | Verdict::LeavesAfter { .. } => None,
            Verdict::Deleted { .. } | Verdict::Orphaned => Some(Self::BudgetIgnored),
            Verdict::Waits { .. }
            | Verdict::WaitsForOperator { .. }
            | Verdict::WaitsForController { .. }
            | Verdict::WaitsForNamespace
            | Verdict::WaitsForFinalizer { .. }
            | Verdict::Undecided { .. } => Some(Self::Waits),
            Verdict::Blocked { .. } | Verdict::TwoBudgets { .. } | Verdict::Unknown { .. } => {
                Some(Self::Blocked)
            }
        };
        let loses_data = pod.warnings.iter().any(|warning| warning.loses_data());
        let others = [
            (pod.lost.is_some(), Self::Lost),
            (pod.preempted().any(|preempted| preempted.lost.is_some()), Self::PreemptedLost),
            (loses_data, Self::DataLost),
            (pod.warnings.contains(&PodWarning::DuplicateIdentity), Self::DuplicateIdentity),
        ];
        let others = others.into_iter().filter(|(holds, _)| *holds).map(|(_, risk)| risk);
        of_removal.into_iter().chain(others).collect()
    }

    /// Whether the operator has to type the name of the context to confirm a plan with this risk.
    pub const fn is_grave(self) -> bool {
        match self {
            Self::Lost | Self::PreemptedLost | Self::DataLost | Self::BudgetIgnored => true,
            // For the risks of a duplicate identity, a waiting pod or a blocked pod, the user does not have to type the
            // name of the context: the options of the plan already show the risk, or the user types the name of the
            // override.
            Self::DuplicateIdentity | Self::Waits | Self::Blocked => false,
        }
    }
}
