//! The plan of an action: what it writes, and what happens to nodes, pods and budgets.

use std::collections::BTreeSet;

use super::{
    action::Action,
    budget,
    filter::DrainFlag,
    kubectl,
    node_plan::{NodeChange, NodePlan},
    permission::{self, Permission},
    placement_trace::Receiver,
    pod_plan::{PodPlan, Window},
    rules::EvictionRules,
    step::PlanStep,
    timeline::PlanMoment,
    totals::PlanTotals,
    undo::{NodeUndo, Undo},
    warning::Warning,
    words::{ends, several},
};
use crate::{
    cluster::{Key, Name, NodeName},
    engine::ServerVersion,
    time::Timestamp,
};

/// What an action would do.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub action: Action,
    /// When it was made; times in it are on the same clock.
    pub made: Timestamp,
    pub version: ServerVersion,
    /// In the order in which they are handled.
    pub nodes: Vec<NodePlan>,
    /// By node in that order, then in the order in which they are tried; skipped ones last.
    pub pods: Vec<PodPlan>,
    /// The nodes that receive pods, by name; empty where nobody works placements out.
    pub receivers: Vec<Receiver>,
    /// Pods that wait for a place and find one by this; empty where nobody works placements out.
    pub arrivals: Vec<Arrival>,
    /// The budgets that the pods meet, by name.
    pub budgets: Vec<BudgetPlan>,
    /// What would be written, in order.
    pub steps: Vec<PlanStep>,
    /// What would happen, likely, in order of time.
    pub timeline: Vec<PlanMoment>,
    pub totals: PlanTotals,
    pub warnings: Vec<Warning>,
    /// The fewest flags without which it does not begin.
    pub needs: BTreeSet<DrainFlag>,
    /// What whoever carries it out must be allowed to do.
    pub permissions: Vec<Permission>,
    /// The same in kubectl's words; none where kubectl has none.
    pub command: Option<String>,
    pub undo: Undo,
    pub assumptions: Vec<&'static str>,
}

/// A pod that waited for a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub pod: Key,
    /// Where it finds one.
    pub node: NodeName,
    pub why: Name,
}

/// A budget that the pods of a plan meet.
#[derive(Clone, Debug, PartialEq)]
pub struct BudgetPlan {
    pub budget: Key,
    pub before: budget::BudgetState,
    /// As it stands in the end, likely.
    pub after: budget::BudgetState,
    /// Pods of the plan that it protects.
    pub pods: usize,
}

/// How a plan goes, in short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Prospect {
    /// It comes to its end.
    Completes,
    /// Something waits for what may or may not come, or the time allowed is too short.
    Stalls,
    /// Something can never go.
    Blocked,
    /// It does not begin, or not on every node, without more options.
    Refused,
}

impl Plan {
    /// Whether it would come to its end, and if not, what is the worst of it.
    pub fn prospect(&self) -> Prospect {
        let totals = &self.totals;
        if totals.refused_nodes > 0 || totals.refused_pods > 0 {
            Prospect::Refused
        } else if totals.blocked > 0 {
            Prospect::Blocked
        } else if totals.wait > 0 || totals.ends.likely.is_none() || self.times_out() {
            Prospect::Stalls
        } else {
            Prospect::Completes
        }
    }

    /// Whether the time allowed is over before some pod is gone.
    pub fn times_out(&self) -> bool {
        self.pods.iter().any(|pod| pod.times_out.is_some())
    }

    /// An empty plan of an action, to be filled.
    pub(super) fn blank(action: &Action, rules: &EvictionRules, now: Timestamp) -> Self {
        Self {
            action: action.clone(),
            made: now,
            version: rules.version,
            nodes: Vec::new(),
            pods: Vec::new(),
            receivers: Vec::new(),
            arrivals: Vec::new(),
            budgets: Vec::new(),
            steps: Vec::new(),
            timeline: Vec::new(),
            totals: PlanTotals::default(),
            warnings: Vec::new(),
            needs: BTreeSet::new(),
            permissions: Vec::new(),
            command: kubectl::command(action),
            undo: Undo::default(),
            assumptions: Vec::new(),
        }
    }
}
impl Plan {
    /// When it is over, in words.
    pub fn ends(&self) -> String {
        let window = self.totals.ends;
        let after = |at: Option<Timestamp>| at.map(|at| at.since(self.made));
        ends(after(window.likely), after(window.latest))
    }

    /// Why it does not come to its end, in one line.
    pub fn in_short(&self) -> String {
        let totals = &self.totals;
        match self.prospect() {
            Prospect::Refused if self.needs.is_empty() => {
                format!("{} it", several(totals.refused_nodes, "node refuses", "nodes refuse"))
            }
            Prospect::Refused => {
                let needs: Vec<String> = self.needs.iter().map(ToString::to_string).collect();
                let pods = several(totals.refused_pods, "pod is", "pods are");
                format!("{pods} refused without {}", needs.join(" "))
            }
            Prospect::Blocked => format!("{} blocked", several(totals.blocked, "pod is", "pods are")),
            Prospect::Stalls if self.times_out() => "the time allowed is too short".into(),
            Prospect::Stalls if totals.wait > 0 => {
                format!("{} for what may not come", several(totals.wait, "pod waits", "pods wait"))
            }
            Prospect::Stalls => "pods that are deleted never end".into(),
            Prospect::Completes => "it does".into(),
        }
    }
}

impl Prospect {
    /// A word for it, the same for ever.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Completes => "completes",
            Self::Stalls => "stalls",
            Self::Blocked => "blocked",
            Self::Refused => "refused",
        }
    }
}

impl Plan {
    /// Fills what follows from the nodes and steps of a plan that only writes to nodes.
    pub(super) fn finish_nodes(&mut self) {
        let is_change =
            |change: &NodeChange| !matches!(change, NodeChange::None | NodeChange::Refused { .. });
        let is_refused = |node: &&NodePlan| {
            matches!(node.change, NodeChange::Refused { .. })
                || node.drain.as_ref().is_some_and(|drain| drain.refused)
        };
        self.totals.nodes = self.nodes.len();
        self.totals.changed = self.nodes.iter().filter(|node| is_change(&node.change)).count();
        self.totals.refused_nodes = self.nodes.iter().filter(is_refused).count();
        if self.pods.is_empty() {
            let now = Some(self.made);
            self.totals.ends = Window { soonest: now, likely: now, latest: now };
        }
        self.permissions = permission::of_steps(&self.steps);
        self.fill_undo();
    }
}

impl Plan {
    /// Fills the undo from what the nodes' changes are.
    pub(super) fn fill_undo(&mut self) {
        let undo = |node: &NodePlan| NodeUndo::of(node.node.clone(), node.uid.clone(), &node.change);
        self.undo.nodes = self.nodes.iter().filter_map(undo).collect();
    }
}

impl Plan {
    /// The permissions that are missing, given what the server answered (false is no).
    pub fn missing<'a>(
        &'a self,
        is_allowed: impl Fn(&Permission) -> bool + 'a,
    ) -> impl Iterator<Item = &'a Permission> {
        self.permissions.iter().filter(move |permission| !is_allowed(permission))
    }
}
