//! The effect of an action's plan, in one line.

use kordon_core::{
    cluster::Cluster,
    operation::{Guards, approval::Objection},
    plan::{
        Action, Failover, NodeChange, OutcomeCounts, OutcomeKind, Plan, PodPlan, Prospect, Verdict, Warning,
        words::counted,
    },
};
use kordon_time::Timestamp;

/// Effect of an action's plan, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanEffect {
    /// The effect, for example `7 pods leave: 1 Pending, 6 move; ends in ~40s`. Empty if the plan adds nothing to
    /// the description of the action.
    pub text: String,
    /// The objections that must be overridden before the plan is applied, and the plan's warnings.
    pub cautions: Vec<String>,
}

impl PlanEffect {
    /// Returns the effect of a plan. Its `cautions` include the objections of the guard rails.
    pub fn new(plan: &Plan, guards: &Result<Guards, String>, cluster: &Cluster) -> Self {
        let refused = match guards {
            Ok(guards) => {
                let objections = Objection::to_plan(plan, guards.breaches(plan, cluster));
                let is_guard = |objection: &&Objection| matches!(objection, Objection::Guard(_));
                objections.iter().filter(is_guard).flat_map(Objection::lines).collect()
            }
            Err(why) => vec![format!("cannot be applied: {why}")],
        };
        let warnings = plan.warnings.iter().filter(|warning| is_worth_a_line(warning));
        let cautions = refused.into_iter().chain(warnings.map(ToString::to_string)).collect();
        Self { text: text(plan), cautions }
    }

    /// Returns the effect of the loss of a node: the outcomes of its pods.
    pub fn from_loss(failover: &Failover) -> Self {
        Self { text: leaving(&failover.all_counts()), cautions: Vec::new() }
    }
}

/// Whether a warning adds something to the numbers and the risk that are shown for the action.
const fn is_worth_a_line(warning: &Warning) -> bool {
    match warning {
        Warning::ZoneLosesLastReady { .. }
        | Warning::NoSchedulableNode
        | Warning::ControlPlane { .. }
        | Warning::KubeletDown { .. }
        | Warning::BudgetsIgnored { .. }
        | Warning::Claimed { .. }
        | Warning::Maintained { .. }
        | Warning::QuotaExceeded { .. }
        | Warning::JobFails { .. }
        | Warning::Preempts { .. }
        | Warning::GroupRestarts { .. }
        | Warning::OwnedPodsDeleted { .. }
        | Warning::Switchover { .. }
        | Warning::ComesBack { .. }
        | Warning::MayTimeOut { .. }
        | Warning::WaitsForUncordon(_)
        | Warning::EvictedAgain { .. }
        | Warning::Unknown(_) => true,
        Warning::UnselectedRemain { .. }
        | Warning::DrainIncomplete { .. }
        | Warning::CapacityExhausted { .. }
        | Warning::StatusDiffers { .. }
        | Warning::OutOfService { .. }
        | Warning::MachineRuns { .. }
        | Warning::NodeHeld { .. }
        | Warning::ControllersTaint { .. }
        | Warning::TaintsDoNotEvict
        | Warning::CordonStands { .. }
        | Warning::CordonNoted { .. } => false,
    }
}

fn text(plan: &Plan) -> String {
    if plan.prospect() == Prospect::Refused {
        let refused = plan.nodes.iter().find_map(|node| match &node.change {
            NodeChange::Refused { text } => Some(format!("refused: {text}")),
            _ => None,
        });
        return refused.unwrap_or_else(|| plan.summary());
    }
    match &plan.action {
        _ if plan.totals.changed == 0 && !plan.nodes.is_empty() && plan.pods.is_empty() => of_nodes(plan),
        Action::Cordon { .. } | Action::Metadata { .. } => String::new(),
        Action::Uncordon { .. } => {
            let pods = counted(plan.arrivals.len(), "Pending pod lands here", "Pending pods land here");
            format!("the scheduler places pods here again: {pods}")
        }
        Action::Evict { .. } | Action::Delete { .. } => match &plan.pods[..] {
            [pod] => of_pod(pod, plan),
            // All pods are already terminating. The effect of a shorter grace period is not predicted.
            _ if plan.totals.already_terminating == plan.totals.pods => String::new(),
            _ => of_pods(plan),
        },
        Action::Drain { .. } => of_pods(plan),
        Action::Taint { .. } => of_pods(plan) + &ready_again(plan),
        Action::DeleteNode { .. } => match plan.totals.outcomes.total() {
            0 => leaving(&plan.totals.outcomes),
            _ => {
                let (leave, ready) = (leaving(&plan.totals.outcomes), ready_again(plan));
                format!("{leave}; gone {}{ready}", plan.ends())
            }
        },
    }
}

/// When the last replacement is Ready, in words that follow what becomes of the pods; empty if that is not predicted.
fn ready_again(plan: &Plan) -> String {
    let ready: Vec<Timestamp> = plan.pods.iter().filter_map(|pod| pod.ready_again).collect();
    let Some(last) = ready.iter().max() else { return String::new() };
    let which = if ready.len() == 1 { "the replacement" } else { "the last replacement" };
    format!("; {which} is Ready in ~{}", last.since(plan.made).rounded_up())
}

/// The outcomes of the pods that leave.
fn leaving(outcomes: &OutcomeCounts) -> String {
    match outcomes.total() {
        0 => "no pod leaves".to_owned(),
        pods => format!("{}: {}", counted(pods, "pod leaves", "pods leave"), outcomes.text()),
    }
}

fn of_nodes(plan: &Plan) -> String {
    plan.nodes.iter().map(|node| node.change.text()).collect::<Vec<_>>().join("; ")
}

fn of_pod(pod: &PodPlan, plan: &Plan) -> String {
    match (&pod.verdict, &pod.landing, pod.lost) {
        (Verdict::Leaves(_) | Verdict::Terminating, Some(landing), _) => {
            format!("gone {}, replacement: {}{}", plan.ends(), landing.text(), ready_again(plan))
        }
        // The pod is already terminating. The effect of a shorter grace period is not predicted.
        (Verdict::Terminating, None, _) => String::new(),
        (Verdict::Leaves(_), None, Some(_)) => format!("gone {}; no controller recreates it", plan.ends()),
        (Verdict::Leaves(_), None, None) => format!("gone {}", plan.ends()),
        (verdict, ..) => verdict.to_string(),
    }
}

fn of_pods(plan: &Plan) -> String {
    let totals = &plan.totals;
    let removed = removed_by_force(plan);
    let counts = LeavingPods {
        leave: outcomes_of_leaving(plan),
        data_lost: totals.data_lost,
        wait: totals.wait,
        blocked: totals.blocked,
        terminating: totals.already_terminating - removed.total(),
        removed,
    };
    let is_done = counts.leave.total() + counts.wait + counts.blocked + removed.total() == 0;
    if is_done { counts.text() } else { format!("{}; ends {}", counts.text(), plan.ends()) }
}

/// Counts the pods that leave by their outcome. Pods that were already terminating before the action are left out.
fn outcomes_of_leaving(plan: &Plan) -> OutcomeCounts {
    let leaves = |pod: &&PodPlan| pod.verdict.as_if_granted().may_leave();
    plan.pods.iter().filter(leaves).map(|pod| pod.outcome.kind()).collect()
}

/// Counts the pods that were already terminating before the action, and that the plan removes by force.
fn removed_by_force(plan: &Plan) -> OutcomeCounts {
    let removed = |pod: &&PodPlan| pod.verdict == Verdict::Terminating && pod.is_removed_by_force();
    plan.pods.iter().filter(removed).map(|pod| pod.outcome.kind()).collect()
}

/// Numbers of pods in the effect of a plan.
#[derive(Clone, Copy, Debug, Default)]
struct LeavingPods {
    /// Outcomes of the pods that leave.
    leave: OutcomeCounts,
    data_lost: usize,
    wait: usize,
    blocked: usize,
    terminating: usize,
    /// Outcomes of the pods that were already terminating before the action, and that the plan removes by force.
    removed: OutcomeCounts,
}

impl LeavingPods {
    /// Returns the counts as text: `7 pods leave: 1 lost, 1 Pending, 5 move; 1 is blocked`.
    fn text(self) -> String {
        let others = joined([
            (self.blocked, "is blocked", "are blocked"),
            (self.wait, "waits for its budget", "wait for their budgets"),
            (self.terminating, "is already Terminating", "are already Terminating"),
        ]);
        let forced = match self.removed.total() {
            0 => None,
            pods => Some(format!(
                "{} by force: {}",
                counted(pods, "Terminating pod is removed", "Terminating pods are removed"),
                self.removed.text()
            )),
        };
        let moved = self.leave.of(OutcomeKind::Moves);
        let leave = match self.leave.total() {
            0 if forced.is_some() => String::new(),
            pods if pods > 0 && pods == moved && self.data_lost == 0 => {
                counted(pods, "pod moves", "pods move")
            }
            _ if self.data_lost > 0 => {
                format!("{}, {}", leaving(&self.leave), counted(self.data_lost, "loses data", "lose data"))
            }
            _ => leaving(&self.leave),
        };
        let parts = [leave, forced.unwrap_or_default(), others];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
    }
}

/// Returns the counts above zero in words: `1 is blocked, 2 wait for their budgets`.
fn joined<const N: usize>(counts: [(usize, &str, &str); N]) -> String {
    let there = counts.into_iter().filter(|(count, ..)| *count > 0);
    there.map(|(count, one, many)| counted(count, one, many)).collect::<Vec<_>>().join(", ")
}
