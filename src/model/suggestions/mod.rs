//! Suggestions for a node, a pod or a budget: for each state, the few actions that an experienced operator considers.
//! Each action has its effect, its risk and its command.
//!
//! The modules `nodes` and `pods` choose the actions of each state. [`SuggestionJob`] adds the parts that take longer
//! in the background: the numbers of the plans, the remedies for budgets, and the placements of a Pending pod.

mod blocked;
mod budgets;
mod effect;
mod job;
mod nodes;
mod pods;

pub use blocked::BlockingBudget;
pub use effect::PlanEffect;
pub use job::{Guarding, Numbers, SuggestionJob};

use std::sync::Arc;

use kordon_core::{
    cluster::{Cluster, Key, NodeName, Pod},
    plan::{Action, CordonWait, EvictionRules, kubectl},
};
use kordon_time::Timestamp;

/// Returns changes that would make the pod's budget allow the eviction that it refuses now.
pub fn for_budget(
    cluster: &Cluster,
    pod: &Arc<Pod>,
    rules: &EvictionRules,
    now: Timestamp,
) -> Vec<Suggestion> {
    let refusing = budgets::refusing(cluster, [pod], rules, now);
    budgets::suggestions(&refusing, cluster, rules, now)
}

/// Returns changes after which only one budget selects a pod that several budgets select now.
pub fn for_overlapping(
    cluster: &Cluster,
    pod: &Arc<Pod>,
    rules: &EvictionRules,
    now: Timestamp,
) -> Vec<Suggestion> {
    let budgets: Vec<Key> = cluster.budgets_of(pod).map(|budget| budget.key.clone()).collect();
    budgets::separate(pod, &budgets, cluster, rules, now)
}

/// Suggests uncordoning the node that a drain waits for.
pub fn for_cordon_wait(wait: &CordonWait) -> Option<Suggestion> {
    let other = wait.to_uncordon()?;
    let text = format!("{other} takes {}; then the drain of {} goes on", wait.pod, wait.node);
    let means = Means::Plan(Action::Uncordon { nodes: vec![other.clone()] });
    Some(Suggestion::new(SuggestionKind::Uncordon, means, text))
}

/// An action that an experienced operator considers for a node, a pod or a budget in its current state.
#[derive(Clone, Debug, PartialEq)]
pub struct Suggestion {
    pub kind: SuggestionKind,
    pub means: Means,
    /// Time at which something happens if nobody acts, or at which a wait ends; `None` if no such time is known.
    pub at: Option<Timestamp>,
    /// Description of the action.
    pub text: String,
    /// Special risk of the action in a few words; empty if there is none.
    pub risk: String,
    /// Effect of the action's plan; `None` if there is no plan.
    pub effect: Option<PlanEffect>,
}

/// Kind of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SuggestionKind {
    Wait,
    RestartKubelet,
    Cordon,
    Uncordon,
    Drain,
    /// Predict the consequences of a failure of the node.
    WhatIf,
    /// Add the taint `node.kubernetes.io/out-of-service`.
    OutOfService,
    /// Remove the taint `node.kubernetes.io/out-of-service`.
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
    /// Let a budget allow every eviction of pods that are not Ready.
    AlwaysAllow,
    /// Delete all but one of the budgets that select the same pod.
    DeleteBudget,
    /// Narrow the selectors of the budgets that select the same pod.
    NarrowBudget,
    /// Change the constraint that keeps a Pending pod from a node.
    Place,
}

impl SuggestionKind {
    pub const ALL: [Self; 19] = [
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
        Self::AlwaysAllow,
        Self::DeleteBudget,
        Self::NarrowBudget,
        Self::Place,
    ];

    /// Name of the action on the screen.
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
            Self::ScaleUp => "scale up",
            Self::RelaxBudget => "relax the budget",
            Self::AlwaysAllow => "let unhealthy pods go",
            Self::DeleteBudget => "delete a budget",
            Self::NarrowBudget => "narrow a selector",
            Self::Place => "place it",
        }
    }

    /// Stable word for the kind of action in machine-readable output.
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
            Self::AlwaysAllow => "alwaysAllow",
            Self::DeleteBudget => "deleteBudget",
            Self::NarrowBudget => "narrowBudget",
            Self::Place => "place",
        }
    }
}

/// How an action is performed, and by whom.
#[derive(Clone, Debug, PartialEq)]
pub enum Means {
    /// Nobody acts: the operator waits.
    Wait,
    /// kordon plans the action and applies the plan.
    Plan(Action),
    /// kordon predicts the failure of this node.
    WhatIf(NodeName),
    /// The operator runs this kubectl command. kordon does not perform the action.
    Kubectl(String),
    /// The operator runs this command on the node's machine.
    Machine(&'static str),
    /// The operator edits an object. There is no command for the edit.
    Edit,
}

impl Means {
    /// Stable word for the party that performs the action.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Wait => "nobody",
            Self::Plan(_) | Self::WhatIf(_) => "kordon",
            Self::Kubectl(_) => "kubectl",
            Self::Machine(_) => "machine",
            Self::Edit => "edit",
        }
    }

    /// Returns the command that performs or predicts the action. This is a kubectl command, or a kordon command if
    /// kubectl has none. `None` for a wait or an edit.
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

    /// Returns the effect of the action's plan. Without a plan, returns the description of the action.
    pub fn outcome(&self) -> &str {
        let effect = self.effect.as_ref().map(|effect| &effect.text).filter(|text| !text.is_empty());
        effect.unwrap_or(&self.text)
    }

    /// Returns the risk of the action, followed by the warnings and objections of its plan that the risk does not name.
    pub fn cautions(&self) -> Vec<&str> {
        let cautions = self.effect.iter().flat_map(|effect| &effect.cautions).map(String::as_str);
        let cautions = cautions.filter(|caution| !self.risk.contains(caution));
        Some(&*self.risk).filter(|risk| !risk.is_empty()).into_iter().chain(cautions).collect()
    }
}
