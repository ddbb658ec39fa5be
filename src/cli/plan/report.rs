//! What `kordon plan` tells, with stable names (`docs/plan.md`).

use serde::Serialize;
use serde_json::Value;

use super::{
    super::placement::{PlacementReport, ReceiverReport},
    validate::{self, ValidationAnswer, ValidationAnswers},
};
use crate::{
    cluster::NodeName,
    plan::{
        Arrival, BudgetPlan, Landing, NodeChange, NodeDrain, NodePlan, NotRecreated, Plan, PlanEvent,
        PlanMoment, PlanStep, PodPlan, Verdict, Window, budget::BudgetNumbers, undo::UndoStep,
    },
    time::Timestamp,
};

/// One plan. Every field is always there; what is not known, or never, is null.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanReport {
    /// `kordon.plan/v1`: grows fields, never loses or renames one.
    pub schema: &'static str,
    pub taken_at: Timestamp,
    /// `cordon`, `uncordon`, `taint`, `label`, `drain`, `evict` or `delete`.
    pub action: &'static str,
    pub command: Option<String>,
    pub server_version: String,
    /// `completes`, `stalls`, `blocked` or `refused`.
    pub outcome: &'static str,
    /// The fewest flags without which it does not begin.
    pub needs: Vec<String>,
    pub totals: PlanTotalsReport,
    pub nodes: Vec<PlanNodeReport>,
    pub pods: Vec<PlanPodReport>,
    /// The nodes that receive pods.
    pub receivers: Vec<ReceiverReport>,
    /// Pods that wait for a place, and find one by this.
    pub arrivals: Vec<ArrivalReport>,
    pub budgets: Vec<BudgetReport>,
    pub warnings: Vec<WarningReport>,
    pub timeline: Vec<MomentReport>,
    pub steps: Vec<PlanStepReport>,
    pub permissions: Vec<PermissionReport>,
    pub undo: Vec<UndoReport>,
    pub assumptions: Vec<&'static str>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanTotalsReport {
    pub nodes: usize,
    pub changed_nodes: usize,
    pub refused_nodes: usize,
    pub pods: usize,
    pub leave_now: usize,
    pub leave_later: usize,
    pub leaving_already: usize,
    pub stay: usize,
    pub wait: usize,
    pub blocked: usize,
    pub refused_pods: usize,
    pub lost: usize,
    pub data_lost: usize,
    pub placed: usize,
    pub pending: usize,
    pub displaced: usize,
    pub ends: WindowReport,
}

/// Seconds from `takenAt`; null is never.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WindowReport {
    pub soonest_seconds: Option<f64>,
    pub likely_seconds: Option<f64>,
    pub latest_seconds: Option<f64>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanNodeReport {
    pub name: NodeName,
    pub uid: String,
    /// `cordon`, `uncordon`, `taints`, `labels`, `none` or `refused`.
    pub change: &'static str,
    pub text: Option<String>,
    /// Taints or labels before and after.
    pub before: Vec<String>,
    pub after: Vec<String>,
    pub drain: Option<DrainReport>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DrainReport {
    pub refused: bool,
    pub refusals: Vec<String>,
    pub starts_in_seconds: f64,
    pub ends: WindowReport,
    pub regardless: bool,
    pub dominated_by: Option<String>,
    pub remaining: usize,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanPodReport {
    pub namespace: String,
    pub pod: String,
    pub uid: String,
    pub node: Option<NodeName>,
    pub owner_kind: Option<String>,
    pub owner_name: Option<String>,
    pub verdict: &'static str,
    /// The verdict with the flags that are missing; the same where none is.
    pub verdict_if_granted: &'static str,
    pub text: String,
    pub needs: Vec<String>,
    pub budget: Option<String>,
    pub lost: Option<&'static str>,
    pub warnings: Vec<&'static str>,
    /// The HTTP status that the eviction subresource would answer now.
    pub answer_code: Option<u16>,
    pub answer: Option<String>,
    pub leaves: WindowReport,
    pub gone: WindowReport,
    pub times_out_in_seconds: Option<f64>,
    /// `node`, `somewhere` or `nowhere`.
    pub landing: Option<&'static str>,
    pub landing_node: Option<NodeName>,
    pub landing_why: Option<String>,
    /// What was weighed there; null where the scheduler is not asked.
    pub placement: Option<PlacementReport>,
    pub ready_again_in_seconds: Option<f64>,
    /// `guess`, `declared`, `measured` or `certain`.
    pub quality: &'static str,
}

/// A pod that waited for a place.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ArrivalReport {
    pub namespace: String,
    pub pod: String,
    pub node: NodeName,
    /// Why there.
    pub text: String,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BudgetReport {
    pub namespace: String,
    pub name: String,
    pub pods: usize,
    pub before: NumbersReport,
    pub after: NumbersReport,
    pub stale: bool,
    pub sync_failure: Option<String>,
    /// What the status says, where that is not what follows from the pods.
    pub status: Option<NumbersReport>,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NumbersReport {
    pub expected: i32,
    pub desired: i32,
    pub healthy: i32,
    pub allowed: i32,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WarningReport {
    pub what: &'static str,
    pub text: String,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MomentReport {
    pub in_seconds: f64,
    /// `nodeStarts`, `nodeEnds`, `leaves`, `refused`, `gone`, `replaced`, `ready` or `gaveUp`.
    pub what: &'static str,
    pub node: Option<NodeName>,
    /// `namespace/name`.
    pub pod: Option<String>,
    pub budget: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanStepReport {
    pub method: &'static str,
    pub path: String,
    pub content_type: &'static str,
    pub body: Value,
    /// What is done to which object.
    pub text: String,
    /// What the server answered to it as a dry run; null where it was not asked.
    pub answer: Option<&'static str>,
    pub answer_text: Option<String>,
    /// Whether the plan had said so.
    pub as_planned: Option<bool>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionReport {
    pub verb: &'static str,
    pub group: &'static str,
    pub resource: &'static str,
    pub subresource: &'static str,
    pub namespace: String,
    pub name: String,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UndoReport {
    pub node: NodeName,
    pub uid: String,
    pub back: Vec<String>,
}

impl PlanReport {
    pub fn new(plan: &Plan) -> Self {
        let made = plan.made;
        Self {
            schema: "kordon.plan/v1",
            taken_at: made,
            action: plan.action.word(),
            command: plan.command.clone(),
            server_version: format!("v{}", plan.version),
            outcome: plan.prospect().word(),
            needs: plan.needs.iter().map(ToString::to_string).collect(),
            totals: totals(plan),
            nodes: plan.nodes.iter().map(|node| self::node(node, made)).collect(),
            pods: plan.pods.iter().map(|pod| self::pod(pod, made)).collect(),
            receivers: plan.receivers.iter().map(ReceiverReport::new).collect(),
            arrivals: plan.arrivals.iter().map(ArrivalReport::new).collect(),
            budgets: plan.budgets.iter().map(budget).collect(),
            warnings: plan
                .warnings
                .iter()
                .map(|warning| WarningReport { what: warning.word(), text: warning.to_string() })
                .collect(),
            timeline: plan.timeline.iter().map(|moment| self::moment(moment, made)).collect(),
            steps: plan.steps.iter().map(step).collect(),
            permissions: plan.permissions.iter().map(permission).collect(),
            undo: plan
                .undo
                .nodes
                .iter()
                .map(|undo| UndoReport {
                    node: undo.node.clone(),
                    uid: undo.uid.to_string(),
                    back: undo.steps.iter().map(back).collect(),
                })
                .collect(),
            assumptions: plan.assumptions.clone(),
        }
    }
}

impl PlanReport {
    /// Adds what the server answered to the writes of the plan.
    pub fn answered(&mut self, answers: &ValidationAnswers) {
        for (place, step) in self.steps.iter_mut().enumerate() {
            let Some(ValidationAnswer { outcome, as_planned }) = answers.at(place) else { continue };
            step.answer = Some(validate::word(outcome));
            step.answer_text = Some(outcome.to_string());
            step.as_planned = *as_planned;
        }
    }
}

fn totals(plan: &Plan) -> PlanTotalsReport {
    let totals = plan.totals;
    PlanTotalsReport {
        nodes: totals.nodes,
        changed_nodes: totals.changed,
        refused_nodes: totals.refused_nodes,
        pods: totals.pods,
        leave_now: totals.leave_now,
        leave_later: totals.leave_later,
        leaving_already: totals.leaving_already,
        stay: totals.stay,
        wait: totals.wait,
        blocked: totals.blocked,
        refused_pods: totals.refused_pods,
        lost: totals.lost,
        data_lost: totals.data_lost,
        placed: totals.placed,
        pending: totals.pending,
        displaced: totals.displaced,
        ends: window(totals.ends, plan.made),
    }
}

fn window(window: Window, made: Timestamp) -> WindowReport {
    WindowReport {
        soonest_seconds: window.soonest.map(|at| seconds(at, made)),
        likely_seconds: window.likely.map(|at| seconds(at, made)),
        latest_seconds: window.latest.map(|at| seconds(at, made)),
    }
}

/// Seconds to the millisecond.
fn seconds(at: Timestamp, made: Timestamp) -> f64 {
    (at.since(made).as_secs_f64() * 1000.0).round() / 1000.0
}

fn node(node: &NodePlan, made: Timestamp) -> PlanNodeReport {
    let (change, text, before, after) = match &node.change {
        NodeChange::Cordon => ("cordon", None, Vec::new(), Vec::new()),
        NodeChange::Uncordon => ("uncordon", None, Vec::new(), Vec::new()),
        NodeChange::None => ("none", None, Vec::new(), Vec::new()),
        NodeChange::Refused { text } => ("refused", Some(text.clone()), Vec::new(), Vec::new()),
        NodeChange::Taints { before, after } => ("taints", None, strings(before), strings(after)),
        NodeChange::Labels { before, after } => {
            let shown = |labels: &crate::cluster::Labels| {
                labels.iter().map(|(key, value)| format!("{key}={value}")).collect()
            };
            ("labels", None, shown(before), shown(after))
        }
    };
    let drain = node.drain.as_ref().map(|drain| self::drain(drain, made));
    PlanNodeReport { name: node.node.clone(), uid: node.uid.to_string(), change, text, before, after, drain }
}

fn strings<T: ToString>(all: &[T]) -> Vec<String> {
    all.iter().map(ToString::to_string).collect()
}

fn drain(drain: &NodeDrain, made: Timestamp) -> DrainReport {
    DrainReport {
        refused: drain.refused,
        refusals: drain.refusals.clone(),
        starts_in_seconds: seconds(drain.starts, made),
        ends: window(drain.ends, made),
        regardless: drain.after_incomplete,
        dominated_by: drain.dominated_by.as_ref().map(ToString::to_string),
        remaining: drain.remaining,
    }
}

fn pod(pod: &PodPlan, made: Timestamp) -> PlanPodReport {
    let needs = match &pod.verdict {
        Verdict::Refused { refusals, .. } => refusals.iter().filter_map(|refusal| refusal.flag()).collect(),
        _ => Vec::new(),
    };
    let (landing, landing_node, landing_why) = match &pod.landing {
        None => (None, None, None),
        Some(Landing::Node { node, why }) => (Some("node"), Some(node.clone()), Some(why.to_string())),
        Some(Landing::Somewhere) => (Some("somewhere"), None, None),
        Some(Landing::Nowhere { why }) => (Some("nowhere"), None, Some(why.to_string())),
    };
    let answer = pod.answer.as_ref();
    PlanPodReport {
        namespace: pod.pod.namespace.to_string(),
        pod: pod.pod.name.to_string(),
        uid: pod.uid.to_string(),
        node: pod.node.clone(),
        owner_kind: pod.owner.as_ref().map(|(kind, _)| kind.as_str().to_owned()),
        owner_name: pod.owner.as_ref().map(|(_, name)| name.to_string()),
        verdict: pod.verdict.word(),
        verdict_if_granted: pod.verdict.as_if_granted().word(),
        text: pod.verdict.to_string(),
        needs: strings(&needs),
        budget: pod.verdict.budget().map(ToString::to_string),
        lost: pod.lost.map(|lost| match lost {
            NotRecreated::NoOwner => "noOwner",
            NotRecreated::OwnerGone => "ownerGone",
            NotRecreated::Finished => "finished",
            NotRecreated::ScaledDown => "scaledDown",
        }),
        warnings: pod.warnings.iter().map(|warning| warning.word()).collect(),
        answer_code: answer.map(|answer| answer.code),
        answer: answer.and_then(|answer| {
            answer.cause.as_ref().map(|cause| cause.message.clone()).or_else(|| answer.message.clone())
        }),
        leaves: window(pod.leaves, made),
        gone: window(pod.gone, made),
        times_out_in_seconds: pod.times_out.map(|at| seconds(at, made)),
        landing,
        landing_node,
        landing_why,
        placement: pod.placement.as_deref().map(PlacementReport::new),
        ready_again_in_seconds: pod.ready_again.map(|at| seconds(at, made)),
        quality: pod.quality.as_str(),
    }
}

impl ArrivalReport {
    fn new(arrival: &Arrival) -> Self {
        let Arrival { pod, node, why } = arrival;
        let (namespace, pod) = (pod.namespace.to_string(), pod.name.to_string());
        Self { namespace, pod, node: node.clone(), text: format!("{node} ({why})") }
    }
}

fn budget(budget: &BudgetPlan) -> BudgetReport {
    let numbers = |numbers: BudgetNumbers| NumbersReport {
        expected: numbers.expected,
        desired: numbers.desired,
        healthy: numbers.healthy,
        allowed: numbers.allowed,
    };
    BudgetReport {
        namespace: budget.budget.namespace.to_string(),
        name: budget.budget.name.to_string(),
        pods: budget.pods,
        before: numbers(budget.before.numbers),
        after: numbers(budget.after.numbers),
        stale: budget.before.stale,
        sync_failure: budget.before.sync_failure.as_ref().map(ToString::to_string),
        status: budget.before.disagrees.map(numbers),
    }
}

fn moment(moment: &PlanMoment, made: Timestamp) -> MomentReport {
    let (what, node, pod, budget) = match &moment.what {
        PlanEvent::NodeStarts { node } => ("nodeStarts", Some(node), None, None),
        PlanEvent::NodeEnds { node } => ("nodeEnds", Some(node), None, None),
        PlanEvent::Leaves { pod } => ("leaves", None, Some(pod), None),
        PlanEvent::Refused { pod, budget } => ("refused", None, Some(pod), budget.as_ref()),
        PlanEvent::Gone { pod } => ("gone", None, Some(pod), None),
        PlanEvent::Replaced { of, landing: Landing::Node { node, .. } } => {
            ("replaced", Some(node), Some(of), None)
        }
        PlanEvent::Replaced { of, landing: Landing::Somewhere | Landing::Nowhere { .. } } => {
            ("replaced", None, Some(of), None)
        }
        PlanEvent::Ready { of } => ("ready", None, Some(of), None),
        PlanEvent::GaveUp { pod } => ("gaveUp", None, Some(pod), None),
    };
    MomentReport {
        in_seconds: seconds(moment.at, made),
        what,
        node: node.cloned(),
        pod: pod.map(ToString::to_string),
        budget: budget.map(ToString::to_string),
    }
}

fn step(step: &PlanStep) -> PlanStepReport {
    let call = step.call();
    PlanStepReport {
        method: call.method,
        path: call.path,
        content_type: call.content_type,
        body: call.body,
        text: validate::words(step),
        answer: None,
        answer_text: None,
        as_planned: None,
    }
}

fn permission(permission: &crate::plan::Permission) -> PermissionReport {
    PermissionReport {
        verb: permission.verb,
        group: permission.group,
        resource: permission.resource,
        subresource: permission.subresource,
        namespace: permission.namespace.to_string(),
        name: permission.name.to_string(),
    }
}

fn back(back: &UndoStep) -> String {
    match back {
        UndoStep::Uncordon => "uncordon".into(),
        UndoStep::Cordon => "cordon".into(),
        UndoStep::Taint { was: Some(was), .. } => format!("taint {was}"),
        UndoStep::Taint { key, effect, was: None, .. } => format!("taint {key}:{effect}-"),
        UndoStep::Label { key, was: Some(was), .. } => format!("label {key}={was}"),
        UndoStep::Label { key, was: None, .. } => format!("label {key}-"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::documented;

    /// A report in which nothing is null and no list is empty.
    fn full() -> PlanReport {
        let text = || "text".to_owned();
        let window =
            WindowReport { soonest_seconds: Some(1.0), likely_seconds: Some(2.0), latest_seconds: Some(3.0) };
        let numbers = NumbersReport { expected: 3, desired: 2, healthy: 3, allowed: 1 };
        PlanReport {
            schema: "kordon.plan/v1",
            taken_at: Timestamp::from_secs(1_800_000_000),
            action: "drain",
            command: Some(text()),
            server_version: text(),
            outcome: "completes",
            needs: vec![text()],
            totals: PlanTotalsReport {
                nodes: 1,
                changed_nodes: 1,
                refused_nodes: 0,
                pods: 1,
                leave_now: 1,
                leave_later: 0,
                leaving_already: 0,
                stay: 0,
                wait: 0,
                blocked: 0,
                refused_pods: 0,
                lost: 0,
                data_lost: 0,
                placed: 1,
                pending: 0,
                displaced: 0,
                ends: window,
            },
            nodes: vec![PlanNodeReport {
                name: "n1".into(),
                uid: text(),
                change: "taints",
                text: Some(text()),
                before: vec![text()],
                after: vec![text()],
                drain: Some(DrainReport {
                    refused: false,
                    refusals: vec![text()],
                    starts_in_seconds: 0.0,
                    ends: window,
                    regardless: false,
                    dominated_by: Some(text()),
                    remaining: 0,
                }),
            }],
            pods: vec![PlanPodReport {
                namespace: text(),
                pod: text(),
                uid: text(),
                node: Some("n1".into()),
                owner_kind: Some(text()),
                owner_name: Some(text()),
                verdict: "leaves",
                verdict_if_granted: "leaves",
                text: text(),
                needs: vec![text()],
                budget: Some(text()),
                lost: Some("noOwner"),
                warnings: vec!["critical"],
                answer_code: Some(201),
                answer: Some(text()),
                leaves: window,
                gone: window,
                times_out_in_seconds: Some(1.0),
                landing: Some("node"),
                landing_node: Some("n2".into()),
                landing_why: Some(text()),
                placement: Some(PlacementReport::full()),
                ready_again_in_seconds: Some(1.0),
                quality: "guess",
            }],
            receivers: vec![ReceiverReport::full()],
            arrivals: vec![ArrivalReport { namespace: text(), pod: text(), node: "n2".into(), text: text() }],
            budgets: vec![BudgetReport {
                namespace: text(),
                name: text(),
                pods: 1,
                before: numbers,
                after: numbers,
                stale: false,
                sync_failure: Some(text()),
                status: Some(numbers),
            }],
            warnings: vec![WarningReport { what: "controlPlane", text: text() }],
            timeline: vec![MomentReport {
                in_seconds: 0.0,
                what: "refused",
                node: Some("n1".into()),
                pod: Some(text()),
                budget: Some(text()),
            }],
            steps: vec![PlanStepReport {
                method: "POST",
                path: text(),
                content_type: "application/json",
                body: "the body as it is sent".into(),
                text: text(),
                answer: Some("allowed"),
                answer_text: Some(text()),
                as_planned: Some(true),
            }],
            permissions: vec![PermissionReport {
                verb: "create",
                group: "",
                resource: "pods",
                subresource: "eviction",
                namespace: text(),
                name: text(),
            }],
            undo: vec![UndoReport { node: "n1".into(), uid: text(), back: vec![text()] }],
            assumptions: vec!["nobody else acts"],
        }
    }

    #[test]
    fn the_documented_fields_are_the_fields() {
        documented::check(&full(), include_str!("../../../docs/plan.md"));
    }
}
