//! Objections to an operation, and how they are overridden.

use super::super::{Breach, Overrides, confirmation};
use crate::{
    cluster::{NodeName, OperationId, in_maintenance},
    plan::{Plan, Prospect},
};

/// A reason not to start an operation, which the operator can override.
#[derive(Clone, Debug, PartialEq)]
pub enum Objection {
    /// A pod can never leave. Has the summary of the plan and a list of such pods.
    Blocked {
        summary: String,
        pods: Vec<String>,
    },
    Guard(Breach),
    /// Somebody else is draining the node.
    Claimed {
        node: NodeName,
        by: String,
    },
    /// Another maintenance has the node, and is running.
    Maintained {
        node: NodeName,
        by: String,
        operation: OperationId,
    },
}

impl Objection {
    /// Returns the objections to a plan: blocked pods and these broken guard rails. Claims of other operations and
    /// maintenances are not included.
    pub fn to_plan(plan: &Plan, breaches: Vec<Breach>) -> Vec<Self> {
        let blocked = (plan.prospect() == Prospect::Blocked)
            .then(|| Self::Blocked { summary: plan.summary(), pods: confirmation::kept(plan) });
        blocked.into_iter().chain(breaches.into_iter().map(Self::Guard)).collect()
    }

    pub(super) fn is_overridden(&self, overrides: &Overrides) -> bool {
        match self {
            Self::Blocked { .. } => overrides.try_blocked,
            Self::Guard(breach) => overrides.guards.iter().any(|name| name == breach.guard()),
            Self::Claimed { .. } | Self::Maintained { .. } => overrides.take_over,
        }
    }

    /// The command-line flag that overrides the objection.
    pub fn flag(&self) -> String {
        match self {
            Self::Blocked { .. } => "--try-blocked".into(),
            Self::Guard(breach) => format!("--override {}", breach.guard()),
            Self::Claimed { .. } | Self::Maintained { .. } => "--take-over".into(),
        }
    }

    /// Describes the objection as it is shown beside the plan: one line for each blocked pod, or one line in all.
    pub fn lines(&self) -> Vec<String> {
        match self {
            Self::Blocked { summary, pods } if pods.is_empty() => vec![summary.clone()],
            Self::Blocked { pods, .. } => pods.clone(),
            Self::Guard(breach) => vec![format!("guard rail {}: {breach}", breach.guard())],
            Self::Claimed { node, by } => vec![format!("{by} is draining {node}")],
            Self::Maintained { node, by, operation } => {
                vec![format!("{node} is {}", in_maintenance(operation, by, true))]
            }
        }
    }

    /// Describes the objection in a refusal, without a plan beside it. Names the flag that overrides the objection.
    pub(super) fn as_refusal(&self) -> Vec<String> {
        let (first, rest) = match self {
            Self::Blocked { summary, pods } => (summary.clone(), pods.clone()),
            Self::Guard(_) | Self::Claimed { .. } | Self::Maintained { .. } => {
                (self.lines().join("; "), Vec::new())
            }
        };
        std::iter::once(format!("{first} ({} overrides this)", self.flag())).chain(rest).collect()
    }
}

/// Returns the words that the operator has to type to override these objections.
pub(super) fn words(objections: &[Objection]) -> Vec<String> {
    let needed = Overrides::default().with(objections);
    let lead = (!needed.guards.is_empty()).then(|| "override".to_owned());
    lead.into_iter().chain(needed.words()).collect()
}

impl Overrides {
    /// Returns these overrides, together with the overrides that the objections need.
    pub(super) fn with(&self, objections: &[Objection]) -> Self {
        let mut overrides = self.clone();
        for objection in objections {
            match objection {
                Objection::Blocked { .. } => overrides.try_blocked = true,
                Objection::Claimed { .. } | Objection::Maintained { .. } => overrides.take_over = true,
                Objection::Guard(breach) => {
                    if !overrides.guards.iter().any(|name| name == breach.guard()) {
                        overrides.guards.push(breach.guard().into());
                    }
                }
            }
        }
        overrides
    }
}
