//! What an operator can do about a node or a pod: for each state the few actions that an experienced operator considers,
//! each with what it does, its risk and its command.
//!
//! Which actions a state has is decided by `nodes` and `pods`; [`SuggestionJob`] adds what takes longer, beside the
//! loop: the numbers of the plans, budgets, and how a Pending pod could be placed.

mod blocked;
mod budgets;
mod effect;
mod job;
mod nodes;
mod pods;

pub use blocked::BlockingBudget;
pub use effect::PlanEffect;
pub use job::{Guarding, Numbers, SuggestionJob};

use kordon_core::{
    cluster::NodeName,
    plan::{Action, kubectl},
};
use kordon_time::Timestamp;

/// An action that an experienced operator considers for a node or a pod as it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct Suggestion {
    pub kind: SuggestionKind,
    pub means: Means,
    /// When something happens if nobody acts, or when a wait ends; none if no time is known.
    pub at: Option<Timestamp>,
    /// What it does, in words.
    pub text: String,
    /// What may go wrong, in a few words; empty if nothing is special.
    pub risk: String,
    /// What its plan says; none where none was made.
    pub effect: Option<PlanEffect>,
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SuggestionKind {
    Wait,
    RestartKubelet,
    Cordon,
    Uncordon,
    Drain,
    /// Predict what follows if the node fails.
    WhatIf,
    /// Add the taint `node.kubernetes.io/out-of-service`.
    OutOfService,
    /// Remove that taint.
    BackInService,
    /// Delete pods with a grace period of zero.
    ForceDelete,
    DeleteNode,
    Evict,
    Delete,
    RemoveFinalizers,
    /// Scale a workload up by one, so that its budget allows a disruption.
    ScaleUp,
    RelaxBudget,
    /// Change what keeps a Pending pod from a node.
    Place,
}

impl SuggestionKind {
    pub const ALL: [Self; 16] = [
        Self::Wait,
        Self::RestartKubelet,
        Self::Cordon,
        Self::Uncordon,
        Self::Drain,
        Self::WhatIf,
        Self::OutOfService,
        Self::BackInService,
        Self::ForceDelete,
        Self::DeleteNode,
        Self::Evict,
        Self::Delete,
        Self::RemoveFinalizers,
        Self::ScaleUp,
        Self::RelaxBudget,
        Self::Place,
    ];

    /// Its name on screen.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::RestartKubelet => "restart the kubelet",
            Self::Cordon => "cordon",
            Self::Uncordon => "uncordon",
            Self::Drain => "drain",
            Self::WhatIf => "what if it fails",
            Self::OutOfService => "out-of-service taint",
            Self::BackInService => "remove that taint",
            Self::ForceDelete => "force deletion",
            Self::DeleteNode => "delete the Node",
            Self::Evict => "evict",
            Self::Delete => "delete",
            Self::RemoveFinalizers => "remove finalizers",
            Self::ScaleUp => "scale up by one",
            Self::RelaxBudget => "relax the budget",
            Self::Place => "place it",
        }
    }

    /// A stable word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::RestartKubelet => "restartKubelet",
            Self::Cordon => "cordon",
            Self::Uncordon => "uncordon",
            Self::Drain => "drain",
            Self::WhatIf => "whatIf",
            Self::OutOfService => "outOfService",
            Self::BackInService => "backInService",
            Self::ForceDelete => "forceDelete",
            Self::DeleteNode => "deleteNode",
            Self::Evict => "evict",
            Self::Delete => "delete",
            Self::RemoveFinalizers => "removeFinalizers",
            Self::ScaleUp => "scaleUp",
            Self::RelaxBudget => "relaxBudget",
            Self::Place => "place",
        }
    }
}

/// How it is done.
#[derive(Clone, Debug, PartialEq)]
pub enum Means {
    /// Nothing is done.
    Wait,
    /// kordon plans it, and applies the plan.
    Plan(Action),
    /// kordon predicts it.
    WhatIf(NodeName),
    /// kordon does not do it; this command does.
    Kubectl(String),
    /// On the machine of the node, by this command.
    Machine(&'static str),
    /// By changing an object: no command does it.
    Edit,
}

impl Means {
    /// A stable word for who does it.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Wait => "nobody",
            Self::Plan(_) | Self::WhatIf(_) => "kordon",
            Self::Kubectl(_) => "kubectl",
            Self::Machine(_) => "machine",
            Self::Edit => "edit",
        }
    }

    /// The command that does it, kubectl's where kubectl has one.
    pub fn command(&self) -> Option<String> {
        match self {
            Self::Plan(action) => Some(kubectl::command(action).unwrap_or_else(|| action.kordon())),
            Self::WhatIf(node) => Some(kubectl::failure("node", [node])),
            Self::Kubectl(command) => Some(command.clone()),
            Self::Machine(command) => Some((*command).into()),
            Self::Wait | Self::Edit => None,
        }
    }
}

impl Suggestion {
    fn new(kind: SuggestionKind, means: Means, text: impl Into<String>) -> Self {
        Self { kind, means, at: None, text: text.into(), risk: String::new(), effect: None }
    }

    fn wait(at: Option<Timestamp>, text: impl Into<String>) -> Self {
        Self { at, ..Self::new(SuggestionKind::Wait, Means::Wait, text) }
    }

    fn risk(self, risk: impl Into<String>) -> Self {
        Self { risk: risk.into(), ..self }
    }

    /// What it does: by its plan, where there is one.
    pub fn outcome(&self) -> &str {
        let effect = self.effect.as_ref().map(|effect| &effect.text).filter(|text| !text.is_empty());
        effect.unwrap_or(&self.text)
    }

    /// Its risk, and what its plan warns of or guard rails refuse.
    pub fn cautions(&self) -> Vec<&str> {
        let cautions = self.effect.iter().flat_map(|effect| &effect.cautions).map(String::as_str);
        Some(&*self.risk).filter(|risk| !risk.is_empty()).into_iter().chain(cautions).collect()
    }
}
