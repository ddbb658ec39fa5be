//! What has to hold, be known and be confirmed before a plan is applied.

use std::collections::BTreeSet;

use super::{Breach, Guards, Risk};
use crate::{
    cluster::{Cluster, Namespace},
    plan::{Action, NodeChange, Permission, Plan, Prospect, Verdict},
};
use kordon_time::Span;

/// The checks that the operator overrides. Each of them is in the journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Guard rails that may be broken, by name ([`Breach::GUARDS`]).
    pub guards: Vec<String>,
    /// Take over nodes that somebody else is draining.
    pub take_over: bool,
    /// Begin even where something can never go.
    pub try_blocked: bool,
}

/// What the operator types to confirm a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confirmation {
    /// It writes nothing.
    Needless,
    /// A yes.
    Plain,
    /// The name of the context: it is more than a single node's or pod's business, or something is lost.
    Grave,
}

impl Overrides {
    /// As the journal names them.
    pub fn words(&self) -> Vec<String> {
        let given = [(self.take_over, "take-over"), (self.try_blocked, "try-blocked")];
        let given = given.iter().filter(|(given, _)| *given).map(|(_, name)| (*name).to_owned());
        self.guards.iter().cloned().chain(given).collect()
    }

    /// Whether a plan with this prospect may begin at all.
    pub const fn allow(&self, prospect: Prospect) -> bool {
        match prospect {
            // The server checks the budgets that are not known here.
            Prospect::Completes | Prospect::Unknown | Prospect::Stalls => true,
            Prospect::Blocked => self.try_blocked,
            Prospect::Refused => false,
        }
    }

    /// The guard rails that the plan would break, and that are not waived.
    pub fn standing(&self, guards: &Guards, plan: &Plan, cluster: &Cluster) -> Vec<Breach> {
        let mut breaches = guards.breaches(plan, cluster);
        breaches.retain(|breach| !self.guards.iter().any(|name| name == breach.guard()));
        breaches
    }
}

impl Confirmation {
    /// As the journal has it.
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

    /// What a plan takes: the more, the graver it is.
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

/// The permissions that applying the plan takes, its reads included.
pub fn permissions(plan: &Plan) -> Vec<Permission> {
    let mut wanted = plan.permissions.clone();
    // Nodes are looked at before they are written to, and pods listed to see that none is left.
    wanted.extend(plan.nodes.iter().map(|node| Permission::on_node("get", &node.node)));
    if matches!(plan.action, Action::Drain { .. }) {
        wanted.push(Permission::on_pods("list", "", &Namespace::default()));
    }
    let wanted: BTreeSet<Permission> = wanted.into_iter().collect();
    wanted.into_iter().collect()
}

/// The first few pods that keep a plan from completing, in words.
pub fn stuck(plan: &Plan) -> Vec<String> {
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
    let stuck: Vec<_> = plan.pods.iter().filter(|pod| keeps(&pod.verdict)).collect();
    let shown = stuck.iter().take(SHOWN);
    let mut lines: Vec<String> = shown.map(|pod| format!("pod {}: {}", pod.pod, pod.verdict)).collect();
    if stuck.len() > SHOWN {
        lines.push(format!("and {} more", stuck.len() - SHOWN));
    }
    lines
}

/// Whether the plan writes nothing.
fn is_idle(plan: &Plan) -> bool {
    plan.steps.is_empty() && plan.nodes.iter().all(|node| matches!(node.change, NodeChange::Unchanged { .. }))
}

/// Whether anything of a plan is more than a single node's or pod's business.
fn is_grave(plan: &Plan) -> bool {
    let ignores_budgets = match &plan.action {
        Action::Drain { options, .. } => options.disable_eviction || options.grace == Some(Span::ZERO),
        Action::Evict { options, .. } | Action::Delete { options, .. } => options.grace == Some(Span::ZERO),
        Action::Taint { .. } | Action::Cordon { .. } | Action::Uncordon { .. } | Action::Label { .. } => {
            false
        }
    };
    ignores_budgets || plan.totals.changed > 1 || Risk::of_plan(plan).into_iter().any(Risk::is_grave)
}
