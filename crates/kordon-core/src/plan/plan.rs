//! The plan of an action: its writes, and what happens to nodes, pods and budgets.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    action::Action,
    budget::BudgetState,
    context::PlanContext,
    filter::DrainFlag,
    kubectl,
    node_plan::{NodeChange, NodePlan},
    not_modelled::NotModelled,
    permission::{self, Permission},
    placement_trace::Receiver,
    pod_plan::{PodPlan, Window},
    quota::QuotaRefusal,
    step::PlanStep,
    timeline::PlanMoment,
    totals::PlanTotals,
    undo::{NodeUndo, Undo},
    verdict::Verdict,
    warning::Warning,
    words::{self, counted},
};
use crate::{
    cluster::{Cluster, Gaps, Key, Name, NodeName},
    engine::ServerVersion,
};
use kordon_time::Timestamp;

/// The predicted effects of an action.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub action: Action,
    /// Time at which the plan was made. All times in the plan are on the same clock.
    pub made: Timestamp,
    pub version: ServerVersion,
    /// Nodes in the order in which they are handled.
    pub nodes: Vec<NodePlan>,
    /// Pods by node, in the order of `nodes`, then in the order in which they are tried. Skipped pods come last.
    pub pods: Vec<PodPlan>,
    /// Nodes that receive pods, by name; empty if placements are not computed.
    pub receivers: Vec<Receiver>,
    /// Pending pods that land on a node because of the plan; empty if placements are not computed.
    pub arrivals: Vec<Arrival>,
    /// Budgets of the pods, by name.
    pub budgets: Vec<BudgetPlan>,
    /// Writes, in order.
    pub steps: Vec<PlanStep>,
    /// Likely events, in order of time.
    pub timeline: Vec<PlanMoment>,
    pub totals: PlanTotals,
    pub warnings: Vec<Warning>,
    /// The smallest set of flags without which the action is refused.
    pub needs: BTreeSet<DrainFlag>,
    /// Permissions that the action needs.
    pub permissions: Vec<Permission>,
    /// The equivalent kubectl command; `None` if there is none.
    pub command: Option<String>,
    pub undo: Undo,
    pub assumptions: Vec<&'static str>,
    /// Aspects that may change what happens to the pods, and that are not modelled.
    pub not_modelled: Vec<NotModelled>,
}

/// A Pending pod that lands on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub pod: Key,
    pub node: NodeName,
    pub why: Name,
}

/// A budget of the pods of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct BudgetPlan {
    pub budget: Key,
    pub before: BudgetState,
    /// The likely state of the budget at the end.
    pub after: BudgetState,
    /// Number of pods in the plan that the budget protects.
    pub pods: usize,
}

/// How a plan is expected to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Prospect {
    /// The action completes.
    Completes,
    /// Objects that decide whether the action completes are not known.
    Unknown,
    /// The action waits for something that may never happen, or the timeout is too short.
    Stalls,
    /// A pod can never leave.
    Blocked,
    /// The action is refused for at least one node or pod, for example because a flag is missing.
    Refused,
}

impl Plan {
    /// Creates an empty plan of an action.
    pub(super) fn blank<E>(action: &Action, context: &PlanContext<'_, E>) -> Self {
        Self {
            action: action.clone(),
            made: context.now,
            version: context.rules.version,
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
            not_modelled: Vec::new(),
        }
    }

    /// Decides the outcome of each pod, and counts the pods.
    pub(super) fn count_pods(&mut self, cluster: &Cluster) {
        for plan in &mut self.pods {
            if let Some(pod) = cluster.pod(&plan.pod) {
                plan.outcome = plan.decide_outcome(cluster, pod);
            }
        }
        self.totals = PlanTotals::from_pods(&self.pods, self.made);
    }

    /// Warns if pods are deleted whose eviction the eviction subresource would refuse.
    pub(super) fn warn_of_ignored_budgets(&mut self) {
        let is_deleted = |pod: &&PodPlan| {
            matches!(pod.verdict.as_if_granted(), Verdict::Leaves(_) | Verdict::Deleted { .. })
        };
        let is_refused = |pod: &PodPlan| pod.answer.as_ref().map(|answer| answer.code != 201);
        let pods = self.pods.iter().filter(is_deleted).count();
        let refused: Option<Vec<bool>> = self.pods.iter().filter(is_deleted).map(is_refused).collect();
        let blocked = refused.map(|refused| refused.into_iter().filter(|refused| *refused).count());
        if pods > 0 {
            self.warnings.push(Warning::BudgetsIgnored { pods, blocked });
        }
    }

    /// Warns of each quota that refuses replacements.
    pub(super) fn warn_of_quotas(&mut self) {
        let mut by_quota: BTreeMap<&Key, Vec<&QuotaRefusal>> = BTreeMap::new();
        for refusal in self.pods.iter().filter_map(|pod| pod.quota.as_ref()) {
            by_quota.entry(&refusal.quota).or_default().push(refusal);
        }
        let warning = |(quota, refusals): (&Key, Vec<&QuotaRefusal>)| Warning::QuotaExceeded {
            quota: quota.clone(),
            numbers: refusals[0].numbers(),
            pods: refusals.len(),
            admitted: refusals.iter().filter(|refusal| refusal.admitted.is_some()).count(),
        };
        let warnings: Vec<Warning> = by_quota.into_iter().map(warning).collect();
        self.warnings.extend(warnings);
    }

    /// Fills in totals, permissions and undo, which follow from the nodes and steps.
    pub(super) fn finish_nodes(&mut self) {
        let is_change = |change: &NodeChange| {
            !matches!(change, NodeChange::Unchanged { .. } | NodeChange::Refused { .. })
        };
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
        let undo = |node: &NodePlan| NodeUndo::new(node.node.clone(), node.uid.clone(), &node.change);
        self.undo.nodes = self.nodes.iter().filter_map(undo).collect();
    }

    /// Returns how the plan is expected to end. If several prospects apply, returns the worst.
    pub fn prospect(&self) -> Prospect {
        let totals = &self.totals;
        if totals.refused_nodes > 0 || totals.refused_pods > 0 {
            Prospect::Refused
        } else if totals.blocked > 0 {
            Prospect::Blocked
        } else if totals.wait > 0 || totals.likely_end().is_none() || self.times_out() {
            Prospect::Stalls
        } else if totals.undecided > 0 {
            Prospect::Unknown
        } else {
            Prospect::Completes
        }
    }

    /// Returns whether the timeout expires before every pod is gone.
    pub fn times_out(&self) -> bool {
        self.pods.iter().any(|pod| pod.times_out.is_some())
    }

    /// Returns the end of the plan as text.
    pub fn ends(&self) -> String {
        let PlanTotals { ends: window, not_before, .. } = self.totals;
        let after = |at: Option<Timestamp>| at.map(|at| at.since(self.made));
        match after(not_before) {
            Some(span) => words::not_before(span),
            None => words::ends(after(window.likely), after(window.latest)),
        }
    }

    /// Returns the prospect in one line, with the reason if the plan does not complete.
    pub fn summary(&self) -> String {
        let totals = &self.totals;
        match self.prospect() {
            Prospect::Refused if self.needs.is_empty() => {
                format!("refused on {}", counted(totals.refused_nodes, "node", "nodes"))
            }
            Prospect::Refused => {
                let needs: Vec<String> = self.needs.iter().map(ToString::to_string).collect();
                let pods = counted(totals.refused_pods, "pod", "pods");
                format!("{pods} refused without {}", needs.join(" "))
            }
            Prospect::Blocked => format!("{} blocked", counted(totals.blocked, "pod", "pods")),
            Prospect::Stalls if self.times_out() => "timeout too short".into(),
            Prospect::Stalls if totals.wait > 0 => {
                format!("{}, possibly forever", counted(totals.wait, "pod waits", "pods wait"))
            }
            Prospect::Stalls => "deleted pods stay Terminating".into(),
            Prospect::Unknown => {
                let pods = counted(totals.undecided, "pod leaves", "pods leave");
                format!("whether {pods} is unknown: {}", self.undecided())
            }
            Prospect::Completes => "completes".into(),
        }
    }

    /// Returns the gaps that leave open whether pods leave.
    pub fn undecided(&self) -> Gaps {
        let gaps = self.pods.iter().filter_map(|pod| match pod.verdict.as_if_granted() {
            Verdict::Undecided { gaps } => Some(gaps.0.iter().cloned()),
            _ => None,
        });
        gaps.flatten().collect()
    }

    /// Returns the permissions that are not allowed.
    pub fn missing<'a>(
        &'a self,
        is_allowed: impl Fn(&Permission) -> bool + 'a,
    ) -> impl Iterator<Item = &'a Permission> {
        self.permissions.iter().filter(move |permission| !is_allowed(permission))
    }
}

impl Prospect {
    /// Returns a stable name for the prospect.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Completes => "completes",
            Self::Unknown => "unknown",
            Self::Stalls => "stalls",
            Self::Blocked => "blocked",
            Self::Refused => "refused",
        }
    }
}
