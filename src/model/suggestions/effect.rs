//! What the plan of an action says, in a line.

use crate::{
    cluster::Cluster,
    operation::{Guards, approval::Objection},
    plan::{
        Action, Failover, FailoverOutcome, NodeChange, Plan, PodPlan, Prospect, Verdict, Warning,
        words::counted,
    },
};

/// What the plan of an action says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanEffect {
    /// As in `moves 7 pods, 1 finds no node, ends in ~40s`.
    pub text: String,
    /// What has to be overridden before it is applied, and what the plan warns of.
    pub cautions: Vec<String>,
}

impl PlanEffect {
    /// What a plan says, and what the guard rails and claims of others refuse.
    pub fn of(plan: &Plan, guards: &Result<Guards, String>, cluster: &Cluster) -> Self {
        let refused = match guards {
            Ok(guards) => {
                let objections = Objection::to_plan(plan, guards, cluster);
                let is_guard = |objection: &&Objection| matches!(objection, Objection::Guard(_));
                objections.iter().filter(is_guard).flat_map(Objection::lines).collect()
            }
            Err(why) => vec![format!("cannot be applied: {why}")],
        };
        let warnings = plan.warnings.iter().filter(|warning| is_worth_a_line(warning));
        let cautions = refused.into_iter().chain(warnings.map(ToString::to_string)).collect();
        Self { text: text(plan), cautions }
    }

    /// What becomes of the pods of a node that is lost.
    pub fn of_loss(failover: &Failover) -> Self {
        let pending = failover.pending();
        let moved = failover.recreated().saturating_sub(pending);
        let lost = failover.pods.iter().filter(|pod| pod.outcome == FailoverOutcome::Lost).count();
        let text = joined([
            (moved, "pod moves", "pods move"),
            (pending, "finds no node", "find no node"),
            (lost, "is lost", "are lost"),
        ]);
        Self { text, cautions: Vec::new() }
    }
}

/// Whether a warning is not said by the numbers or by the risk of the action already.
const fn is_worth_a_line(warning: &Warning) -> bool {
    match warning {
        Warning::ZoneLosesLastReady { .. }
        | Warning::NoSchedulableNode
        | Warning::ControlPlane { .. }
        | Warning::KubeletDown { .. }
        | Warning::BudgetsIgnored { .. }
        | Warning::Claimed { .. }
        | Warning::Unknown(_) => true,
        Warning::UnselectedRemain { .. }
        | Warning::DrainIncomplete { .. }
        | Warning::CapacityExhausted { .. }
        | Warning::StatusDiffers { .. }
        | Warning::OutOfService { .. }
        | Warning::ControllersTaint { .. }
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
        Action::Cordon { .. } | Action::Label { .. } => of_nodes(plan),
        Action::Uncordon { .. } => {
            let pods = counted(plan.arrivals.len(), "Pending pod lands here", "Pending pods land here");
            if plan.totals.changed == 0 { of_nodes(plan) } else { pods }
        }
        Action::Evict { .. } | Action::Delete { .. } => match &plan.pods[..] {
            [pod] => of_pod(pod, plan),
            _ => of_pods(plan),
        },
        Action::Drain { .. } | Action::Taint { .. } => of_pods(plan),
    }
}

fn of_nodes(plan: &Plan) -> String {
    plan.nodes.iter().map(|node| node.change.text()).collect::<Vec<_>>().join("; ")
}

fn of_pod(pod: &PodPlan, plan: &Plan) -> String {
    match (&pod.verdict, &pod.landing, pod.lost) {
        (Verdict::Leaves(_) | Verdict::Terminating, Some(landing), _) => {
            format!("gone {}, replacement: {}", plan.ends(), landing.text())
        }
        (Verdict::Leaves(_), None, Some(_)) => format!("gone {}; no controller recreates it", plan.ends()),
        (Verdict::Leaves(_), None, None) => format!("gone {}", plan.ends()),
        (verdict, ..) => verdict.to_string(),
    }
}

fn of_pods(plan: &Plan) -> String {
    let totals = &plan.totals;
    let leave = totals.leave_now + totals.leave_later + totals.undecided;
    let replaced = leave.saturating_sub(totals.pending + totals.lost);
    let pods = joined([
        (replaced, "pod moves", "pods move"),
        (totals.pending, "finds no node", "find no node"),
        (totals.lost, "is lost", "are lost"),
        (totals.data_lost, "loses data", "lose data"),
        (totals.wait, "waits for its budget", "wait for their budgets"),
        (totals.blocked, "is blocked", "are blocked"),
        (totals.already_terminating, "is already Terminating", "are already Terminating"),
    ]);
    if leave + totals.wait + totals.blocked > 0 { format!("{pods}; ends {}", plan.ends()) } else { pods }
}

/// `7 pods move, 1 finds no node`
fn joined<const N: usize>(counts: [(usize, &str, &str); N]) -> String {
    let there = counts.into_iter().filter(|(count, ..)| *count > 0);
    let parts: Vec<String> = there.map(|(count, one, many)| counted(count, one, many)).collect();
    if parts.is_empty() { "no pod leaves".into() } else { parts.join(", ") }
}
