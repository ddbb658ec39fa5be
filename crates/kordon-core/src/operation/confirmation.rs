//! What is needed before a plan is applied: overrides, a confirmation, permissions.

use std::collections::BTreeSet;

use super::{Breach, Guards, Risk};
use crate::{
    cluster::{Cluster, Namespace},
    plan::{Action, NodeChange, Permission, Plan, Prospect, Verdict, Warning},
};
use kordon_time::Span;

/// The checks that the operator has overridden. The journal records each override.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Guard rails that may be broken, by name ([`Breach::GUARDS`]).
    pub guards: Vec<String>,
    /// Whether to take over nodes that somebody else is draining.
    pub take_over: bool,
    /// Whether to start even if a pod can never leave.
    pub try_blocked: bool,
}

/// What the operator types to confirm a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confirmation {
    /// Nothing: the plan writes nothing.
    Needless,
    /// A yes: the operator types `yes` or chooses a button.
    Plain,
    /// The name of the context, because the plan changes more than one object, ignores budgets or loses something.
    Grave,
}

impl Overrides {
    /// The names under which the journal records the overrides.
    pub fn words(&self) -> Vec<String> {
        let given = [(self.take_over, "take-over"), (self.try_blocked, "try-blocked")];
        let given = given.iter().filter(|(given, _)| *given).map(|(_, name)| (*name).to_owned());
        self.guards.iter().cloned().chain(given).collect()
    }

    /// Whether a plan with this expected end ([`Prospect`]) may start under these overrides.
    pub const fn allow(&self, prospect: Prospect) -> bool {
        match prospect {
            // The plan may start even if kordon does not know all budgets, because the API server checks them.
            Prospect::Completes | Prospect::Unknown | Prospect::Stalls => true,
            Prospect::Blocked => self.try_blocked,
            Prospect::Refused => false,
        }
    }

    /// The guard rails that the plan would break and that these overrides do not cover.
    pub fn standing(&self, guards: &Guards, plan: &Plan, cluster: &Cluster) -> Vec<Breach> {
        let mut breaches = guards.breaches(plan, cluster);
        breaches.retain(|breach| !self.guards.iter().any(|name| name == breach.guard()));
        breaches
    }
}

impl Confirmation {
    /// Name of the confirmation in the journal.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Needless => "needless",
            Self::Plain => "plain",
            Self::Grave => "grave",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Needless, Self::Plain, Self::Grave].into_iter().find(|each| each.as_str() == text)
    }

    /// The confirmation that a plan needs.
    pub fn to(plan: &Plan) -> Self {
        if is_idle(plan) {
            Self::Needless
        } else if is_grave(plan) {
            Self::Grave
        } else {
            Self::Plain
        }
    }
}

/// The permissions that are needed to apply the plan, including those for reads.
pub fn permissions(plan: &Plan) -> Vec<Permission> {
    let mut wanted = plan.permissions.clone();
    // An operation reads a node before it writes to it. After a drain, it lists the node's pods to verify that none is
    // left.
    wanted.extend(plan.nodes.iter().map(|node| Permission::on_node("get", &node.node)));
    if matches!(plan.action, Action::Drain { .. }) {
        wanted.push(Permission::on_pods("list", "", &Namespace::default()));
    }
    let wanted: BTreeSet<Permission> = wanted.into_iter().collect();
    wanted.into_iter().collect()
}

/// The first five pods that keep a plan from completing, with their verdicts. A last line has the number of further
/// pods.
pub fn kept(plan: &Plan) -> Vec<String> {
    const SHOWN: usize = 5;
    let keeps = |verdict: &Verdict| {
        matches!(
            verdict,
            Verdict::Refused { .. }
                | Verdict::Blocked { .. }
                | Verdict::TwoBudgets { .. }
                | Verdict::Unknown { .. }
        )
    };
    let kept: Vec<_> = plan.pods.iter().filter(|pod| keeps(&pod.verdict)).collect();
    let shown = kept.iter().take(SHOWN);
    let mut lines: Vec<String> = shown.map(|pod| format!("pod {}: {}", pod.pod, pod.verdict)).collect();
    if kept.len() > SHOWN {
        lines.push(format!("and {} more", kept.len() - SHOWN));
    }
    lines
}

/// Whether the plan writes nothing.
fn is_idle(plan: &Plan) -> bool {
    plan.steps.is_empty() && plan.nodes.iter().all(|node| matches!(node.change, NodeChange::Unchanged { .. }))
}

/// Whether a plan changes more than one object, ignores budgets, or loses pods or data.
fn is_grave(plan: &Plan) -> bool {
    let ignores_budgets = match &plan.action {
        Action::Drain { options, .. } => options.disable_eviction || options.grace == Some(Span::ZERO),
        Action::Evict { options, .. } | Action::Delete { options, .. } => options.grace == Some(Span::ZERO),
        // Deleting a node needs the grave confirmation if the node's pods run on, or if a finalizer keeps the node. The
        // finalizer's controller may do more than kordon knows: Karpenter drains the node and terminates its machine.
        Action::DeleteNode { .. } => plan.warnings.iter().any(|warning| {
            matches!(warning, Warning::MachineRuns { pods: 1.., .. } | Warning::NodeHeld { .. })
        }),
        Action::Taint { .. } | Action::Cordon { .. } | Action::Uncordon { .. } | Action::Metadata { .. } => {
            false
        }
    };
    ignores_budgets || plan.totals.changed > 1 || Risk::of_plan(plan).into_iter().any(Risk::is_grave)
}
