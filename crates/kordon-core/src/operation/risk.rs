//! Costs that a plan may have, beyond evicting pods that their controllers recreate elsewhere.

use std::collections::BTreeSet;

use crate::plan::{Plan, PodPlan, PodWarning, Verdict};

/// A kind of risk of a plan. Agreeing to a plan covers its kinds of risk, for any pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Risk {
    /// No controller recreates the pod.
    Lost,
    /// Data of the pod is lost.
    DataLost,
    /// Two pods may have the same identity for a while.
    DuplicateIdentity,
    /// A taint deletes the pod, and no budget prevents that.
    BudgetIgnored,
    /// The pod waits for its budget, its namespace or the disruption controller, or it is unknown whether it waits.
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
            Verdict::Deleted { .. } => Some(Self::BudgetIgnored),
            Verdict::Waits { .. }
            | Verdict::WaitsForController { .. }
            | Verdict::WaitsForNamespace
            | Verdict::Undecided { .. } => Some(Self::Waits),
            Verdict::Blocked { .. } | Verdict::TwoBudgets { .. } | Verdict::Unknown { .. } => {
                Some(Self::Blocked)
            }
        };
        let loses_data = pod.warnings.iter().any(|warning| warning.loses_data());
        let others = [
            (pod.lost.is_some(), Self::Lost),
            (loses_data, Self::DataLost),
            (pod.warnings.contains(&PodWarning::DuplicateIdentity), Self::DuplicateIdentity),
        ];
        let others = others.into_iter().filter(|(holds, _)| *holds).map(|(_, risk)| risk);
        of_removal.into_iter().chain(others).collect()
    }

    /// Whether a plan with this risk needs the name of the context as confirmation.
    pub const fn is_grave(self) -> bool {
        match self {
            Self::Lost | Self::DataLost | Self::BudgetIgnored => true,
            // These risks do not need the name: the plan's options show them, or an override has its own words for
            // them.
            Self::DuplicateIdentity | Self::Waits | Self::Blocked => false,
        }
    }
}
