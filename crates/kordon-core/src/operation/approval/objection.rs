//! Objections to an operation, and how they are overridden.

use super::super::{Breach, Overrides, confirmation};
use crate::{
    cluster::NodeName,
    plan::{Plan, Prospect},
};

/// A reason against an operation that the operator can override.
#[derive(Clone, Debug, PartialEq)]
pub enum Objection {
    /// A pod can never leave. Has a summary of the plan, and the pods.
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
}

impl Objection {
    /// Returns the objections to a plan with these broken guard rails, except claims of other operations on its nodes.
    pub fn to_plan(plan: &Plan, breaches: Vec<Breach>) -> Vec<Self> {
        let blocked = (plan.prospect() == Prospect::Blocked)
            .then(|| Self::Blocked { summary: plan.summary(), pods: confirmation::stuck(plan) });
        blocked.into_iter().chain(breaches.into_iter().map(Self::Guard)).collect()
    }

    pub(super) fn is_overridden(&self, overrides: &Overrides) -> bool {
        match self {
            Self::Blocked { .. } => overrides.try_blocked,
            Self::Guard(breach) => overrides.guards.iter().any(|name| name == breach.guard()),
            Self::Claimed { .. } => overrides.take_over,
        }
    }

    /// The command-line flag that overrides the objection.
    pub fn flag(&self) -> String {
        match self {
            Self::Blocked { .. } => "--try-blocked".into(),
            Self::Guard(breach) => format!("--override {}", breach.guard()),
            Self::Claimed { .. } => "--take-over".into(),
        }
    }

    /// The objection in words, one line each, to be shown beside the plan.
    pub fn lines(&self) -> Vec<String> {
        match self {
            Self::Blocked { summary, pods } if pods.is_empty() => vec![summary.clone()],
            Self::Blocked { pods, .. } => pods.clone(),
            Self::Guard(breach) => vec![format!("guard rail {}: {breach}", breach.guard())],
            Self::Claimed { node, by } => vec![format!("{by} is draining {node}")],
        }
    }

    /// The objection in words for a refusal without a plan beside it; names the flag that overrides it.
    pub(super) fn as_refusal(&self) -> Vec<String> {
        let (first, rest) = match self {
            Self::Blocked { summary, pods } => (summary.clone(), pods.clone()),
            Self::Guard(_) | Self::Claimed { .. } => (self.lines().join("; "), Vec::new()),
        };
        std::iter::once(format!("{first} ({} overrides this)", self.flag())).chain(rest).collect()
    }
}

/// The words to type to override these objections.
pub(super) fn words(objections: &[Objection]) -> Vec<String> {
    let needed = Overrides::default().with(objections);
    let lead = (!needed.guards.is_empty()).then(|| "override".to_owned());
    lead.into_iter().chain(needed.words()).collect()
}

impl Overrides {
    /// Returns the present overrides and the ones that these objections need.
    pub(super) fn with(&self, objections: &[Objection]) -> Self {
        let mut overrides = self.clone();
        for objection in objections {
            match objection {
                Objection::Blocked { .. } => overrides.try_blocked = true,
                Objection::Claimed { .. } => overrides.take_over = true,
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
