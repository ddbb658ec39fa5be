//! The report of `kordon plan`, with stable names (`docs/reference/plan.md`).

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::{
    super::gaps::{GapReport, gap_reports},
    super::placement::{self, PlacementReport, ReceiverReport},
    validate::{self, ValidationAnswer, ValidationAnswers},
};
use kordon_core::{
    cluster::{FeedKind, Gaps, NodeName},
    plan::{
        Action, Arrival, BudgetPlan, NodeChange, NodeDrain, NodePlan, NotModelled, NotRecreated, Plan,
        PlanEvent, PlanGap, PlanMoment, PlanPart, PlanStep, PodPlan, QuotaRefusal, Verdict, Window,
        budget::BudgetNumbers, undo::UndoStep,
    },
};
use kordon_time::Timestamp;

/// A plan. Every field is always present; what is unknown or never happens is null.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanReport {
    /// `kordon.plan/v1`: fields are added, never removed or renamed.
    pub schema: &'static str,
    pub taken_at: Timestamp,
    /// Planned action: `cordon`, `uncordon`, `taint`, `label`, `drain`, `evict` or `delete`.
    pub action: &'static str,
    pub command: Option<String>,
    pub server_version: String,
    /// How the plan ends: `completes`, `unknown`, `stalls`, `blocked` or `refused`.
    pub outcome: &'static str,
    /// Whether the outcome is the same for any state of the unknown objects.
    pub definite: bool,
    /// Parts of the plan that depend on unknown or outdated objects.
    pub unknown: Vec<PlanGapReport>,
    /// Flags that the plan needs to start.
    pub required_flags: Vec<String>,
    pub totals: PlanTotalsReport,
    pub nodes: Vec<PlanNodeReport>,
    pub pods: Vec<PlanPodReport>,
    /// Nodes that receive pods; null if placements are unknown.
    pub receivers: Option<Vec<ReceiverReport>>,
    /// Pending pods that the plan allows the scheduler to place; null if unknown.
    pub arrivals: Option<Vec<ArrivalReport>>,
    /// PodDisruptionBudgets of the plan's pods; null if budgets are unknown.
    pub budgets: Option<Vec<BudgetReport>>,
    pub warnings: Vec<WarningReport>,
    pub timeline: Vec<MomentReport>,
    pub steps: Vec<PlanStepReport>,
    pub permissions: Vec<PermissionReport>,
    pub undo: Vec<UndoReport>,
    pub assumptions: Vec<&'static str>,
    /// Effects on the plan's pods that are not modelled.
    pub not_modelled: Vec<NotModelledReport>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NotModelledReport {
    /// Type of the effect: `quota`, `rollout`, `autoscalers`, `webhooks`, `schedulerConfiguration`, `kubeletAdmission`,
    /// `volumeLimitScaling`, `storageCapacityScoring` or `budgetUpdates`.
    pub r#type: &'static str,
    pub text: String,
    /// Number of pods of the plan that the effect may concern.
    pub pods: usize,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanTotalsReport {
    pub nodes: usize,
    pub changed_nodes: usize,
    pub refused_nodes: usize,
    pub pods: usize,
    /// Numbers of pods by the word of their outcome; they add up to `pods`.
    pub outcomes: BTreeMap<&'static str, usize>,
    pub leave_now: usize,
    pub leave_later: usize,
    pub already_terminating: usize,
    pub stay: usize,
    pub wait: usize,
    pub blocked: usize,
    /// Number of pods that leave unless an unknown object forbids it.
    pub undecided: usize,
    pub refused_pods: usize,
    pub lost: usize,
    pub data_lost: usize,
    /// Number of pods whose replacement is placed. Null, like `pending` and `preempted`, if placements are unknown.
    pub placed: Option<usize>,
    pub pending: Option<usize>,
    pub preempted: Option<usize>,
    pub ends: WindowReport,
    /// Likely end if all undecided pods leave at once; null if no pod is undecided.
    pub not_before_seconds: Option<f64>,
}

/// Times in seconds from `takenAt`; null means never.
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
    /// Change of the node: `cordon`, `uncordon`, `taints`, `labels`, `unchanged` or `refused`.
    pub change: &'static str,
    pub text: Option<String>,
    /// Taints or labels before and after the change.
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
    pub after_blocked_node: bool,
    pub blocked_by: Option<String>,
    /// Number of pods that remain on the node; null if unknown.
    pub remaining: Option<usize>,
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
    /// Outcome of the pod, as in `kordon status`.
    pub outcome: &'static str,
    pub outcome_text: String,
    /// Verdict that the pod would have if all required flags were given.
    pub verdict_with_flags: &'static str,
    pub text: String,
    pub required_flags: Vec<String>,
    pub budget: Option<String>,
    /// Why no controller recreates the pod.
    pub lost_reason: Option<&'static str>,
    /// The same in a few words, for the table.
    #[serde(skip)]
    pub lost_note: Option<&'static str>,
    pub warnings: Vec<&'static str>,
    /// HTTP status that an eviction would get now.
    pub eviction_status: Option<u16>,
    pub eviction_message: Option<String>,
    pub leaves: WindowReport,
    pub deleted: WindowReport,
    pub times_out_in_seconds: Option<f64>,
    /// The quota that refuses the first attempts to create the replacement; null if no quota does.
    pub quota_refusal: Option<QuotaRefusalReport>,
    /// Where the replacement lands: `node`, `pending` or `unknown`.
    pub landing: Option<&'static str>,
    pub landing_node: Option<NodeName>,
    pub landing_reason: Option<String>,
    /// How the placement was decided; null if nothing has to be placed.
    pub placement: Option<PlacementReport>,
    pub ready_again_in_seconds: Option<f64>,
    /// Quality of the predicted times: `guess`, `declared`, `measured` or `certain`.
    pub quality: &'static str,
}

/// A quota that refuses a replacement.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QuotaRefusalReport {
    pub quota: String,
    pub resource: String,
    pub used: String,
    pub hard: String,
    pub needed: String,
    pub until_seconds: Option<f64>,
}

/// A Pending pod that can be placed.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ArrivalReport {
    pub namespace: String,
    pub pod: String,
    pub node: NodeName,
    /// Why the pod is placed on this node.
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
    /// Numbers in the budget's status, if they differ from those computed from the pods.
    pub status: Option<NumbersReport>,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NumbersReport {
    pub expected_pods: i32,
    pub desired_healthy: i32,
    pub current_healthy: i32,
    pub disruptions_allowed: i32,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WarningReport {
    pub r#type: &'static str,
    pub text: String,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MomentReport {
    pub in_seconds: f64,
    /// Type of the event: `nodeStarts`, `nodeEnds`, `leaves`, `refused`, `deleted`, `notReplaced`, `replaced`, `ready`,
    /// `started` or `timedOut`.
    pub r#type: &'static str,
    pub node: Option<NodeName>,
    /// Pod of the event, as `namespace/name`.
    pub pod: Option<String>,
    pub budget: Option<String>,
    pub quota: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanStepReport {
    pub method: &'static str,
    pub path: String,
    pub content_type: &'static str,
    pub body: Value,
    pub text: String,
    /// The server's answer to a dry run of the write; null if the server was not asked.
    pub dry_run_result: Option<&'static str>,
    pub dry_run_message: Option<String>,
    /// Whether the plan predicted the server's answer.
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
    pub changes: Vec<String>,
}

/// Report of a plan whose outcome is unknown. It has fewer fields than the report of other plans.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnknownPlanReport {
    schema: &'static str,
    taken_at: Timestamp,
    action: &'static str,
    /// Outcome of the plan; always `unknown`.
    outcome: &'static str,
    definite: bool,
    unknown: Vec<PlanGapReport>,
}

/// A part of a plan that is uncertain, and the unknown or outdated kinds of objects on which the part depends.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanGapReport {
    /// Uncertain part: `outcome`, `everything`, `otherNodes`, `workloads`, `budgets`, `quotas` or `placement`.
    part: &'static str,
    pub text: String,
    kinds: Vec<GapReport>,
}

impl UnknownPlanReport {
    pub fn new(action: &Action, gaps: &Gaps, now: Timestamp) -> Self {
        let (text, kinds) = (gaps.to_string(), gap_reports(gaps));
        let unknown = vec![PlanGapReport { part: "outcome", text, kinds }];
        let (schema, outcome) = ("kordon.plan/v1", "unknown");
        Self { schema, taken_at: now, action: action.word(), outcome, definite: false, unknown }
    }
}

impl PlanGapReport {
    fn new(gap: &PlanGap) -> Self {
        Self { part: gap.part.word(), text: gap.to_string(), kinds: gap_reports(&gap.gaps) }
    }
}

impl PlanReport {
    pub fn new(plan: &Plan) -> Self {
        let made = plan.made;
        let places = plan.gap_of(PlanPart::Placement).is_none();
        let budgets = plan.gap_of(PlanPart::Budgets);
        let sees_budgets = budgets.is_none_or(|gap| !gap.gaps.contains(FeedKind::Budgets));
        Self {
            schema: "kordon.plan/v1",
            taken_at: made,
            action: plan.action.word(),
            command: plan.command.clone(),
            server_version: format!("v{}", plan.version),
            outcome: plan.prospect().word(),
            definite: plan.is_definite(),
            unknown: plan.gaps().map(PlanGapReport::new).collect(),
            required_flags: plan.needs.iter().map(ToString::to_string).collect(),
            totals: totals(plan),
            nodes: plan.nodes.iter().map(|node| self::node(node, made)).collect(),
            pods: plan.pods.iter().map(|pod| self::pod(pod, made)).collect(),
            receivers: places.then(|| plan.receivers.iter().map(ReceiverReport::new).collect()),
            arrivals: places.then(|| plan.arrivals.iter().map(ArrivalReport::new).collect()),
            budgets: sees_budgets.then(|| plan.budgets.iter().map(budget).collect()),
            warnings: plan
                .warnings
                .iter()
                .map(|warning| WarningReport { r#type: warning.word(), text: warning.to_string() })
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
                    changes: undo.steps.iter().map(undo_change).collect(),
                })
                .collect(),
            assumptions: plan.assumptions.clone(),
            not_modelled: plan.not_modelled.iter().map(not_modelled).collect(),
        }
    }
}

impl PlanReport {
    /// Adds the server's answers to the plan's writes.
    pub fn add_answers(&mut self, answers: &ValidationAnswers) {
        for (index, step) in self.steps.iter_mut().enumerate() {
            let Some(ValidationAnswer { outcome, as_planned }) = answers.at(index) else { continue };
            step.dry_run_result = Some(validate::word(outcome));
            step.dry_run_message = Some(outcome.to_string());
            step.as_planned = *as_planned;
        }
    }
}

fn not_modelled(found: &NotModelled) -> NotModelledReport {
    let NotModelled { what, pods } = *found;
    NotModelledReport { r#type: what.word(), text: what.to_string(), pods }
}

fn totals(plan: &Plan) -> PlanTotalsReport {
    let totals = plan.totals;
    let places = plan.gap_of(PlanPart::Placement).is_none();
    PlanTotalsReport {
        nodes: totals.nodes,
        changed_nodes: totals.changed,
        refused_nodes: totals.refused_nodes,
        pods: totals.pods,
        outcomes: totals.outcomes.by_word(),
        leave_now: totals.leave_now,
        leave_later: totals.leave_later,
        already_terminating: totals.already_terminating,
        stay: totals.stay,
        wait: totals.wait,
        blocked: totals.blocked,
        undecided: totals.undecided,
        refused_pods: totals.refused_pods,
        lost: totals.lost,
        data_lost: totals.data_lost,
        placed: Some(totals.placed).filter(|_| places),
        pending: Some(totals.pending).filter(|_| places),
        preempted: Some(totals.preempted).filter(|_| places),
        ends: window(totals.ends, plan.made),
        not_before_seconds: totals.not_before.map(|at| seconds(at, plan.made)),
    }
}

fn window(window: Window, made: Timestamp) -> WindowReport {
    WindowReport {
        soonest_seconds: window.soonest.map(|at| seconds(at, made)),
        likely_seconds: window.likely.map(|at| seconds(at, made)),
        latest_seconds: window.latest.map(|at| seconds(at, made)),
    }
}

/// Seconds from `made` to `at`, rounded to milliseconds.
fn seconds(at: Timestamp, made: Timestamp) -> f64 {
    (at.since(made).as_secs_f64() * 1000.0).round() / 1000.0
}

fn node(node: &NodePlan, made: Timestamp) -> PlanNodeReport {
    let (change, text, before, after) = match &node.change {
        NodeChange::Cordon => ("cordon", None, Vec::new(), Vec::new()),
        NodeChange::Uncordon => ("uncordon", None, Vec::new(), Vec::new()),
        NodeChange::Unchanged { text } => ("unchanged", Some((*text).to_owned()), Vec::new(), Vec::new()),
        NodeChange::Refused { text } => ("refused", Some(text.clone()), Vec::new(), Vec::new()),
        NodeChange::Taints { before, after } => ("taints", None, strings(before), strings(after)),
        NodeChange::Labels { before, after } => {
            let shown = |labels: &kordon_core::cluster::Labels| {
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
        after_blocked_node: drain.after_incomplete,
        blocked_by: drain.dominated_by.as_ref().map(ToString::to_string),
        remaining: drain.remaining,
    }
}

fn pod(pod: &PodPlan, made: Timestamp) -> PlanPodReport {
    let required_flags = match &pod.verdict {
        Verdict::Refused { refusals, .. } => refusals.iter().filter_map(|refusal| refusal.flag()).collect(),
        _ => Vec::new(),
    };
    let (landing, landing_node, landing_reason) =
        pod.landing.as_ref().map_or((None, None, None), |landing| {
            let (word, node, reason) = placement::landing(landing);
            (Some(word), node, reason)
        });
    let answer = pod.answer.as_ref();
    PlanPodReport {
        namespace: pod.pod.namespace.to_string(),
        pod: pod.pod.name.to_string(),
        uid: pod.uid.to_string(),
        node: pod.node.clone(),
        owner_kind: pod.owner.as_ref().map(|(kind, _)| kind.as_str().to_owned()),
        owner_name: pod.owner.as_ref().map(|(_, name)| name.to_string()),
        verdict: pod.verdict.word(),
        outcome: pod.outcome.kind().word(),
        outcome_text: pod.outcome.to_string(),
        verdict_with_flags: pod.verdict.as_if_granted().word(),
        text: std::iter::once(pod.verdict.to_string())
            .chain(pod.eviction_notes.iter().map(ToString::to_string))
            .collect::<Vec<_>>()
            .join("; "),
        required_flags: strings(&required_flags),
        budget: pod.verdict.budget().map(ToString::to_string),
        lost_reason: pod.lost.map(NotRecreated::word),
        lost_note: pod.lost.map(NotRecreated::risk),
        warnings: pod.warnings.iter().map(|warning| warning.word()).collect(),
        eviction_status: answer.map(|answer| answer.code),
        eviction_message: answer.and_then(|answer| {
            answer.cause.as_ref().map(|cause| cause.message.clone()).or_else(|| answer.message.clone())
        }),
        leaves: window(pod.leaves, made),
        deleted: window(pod.gone, made),
        times_out_in_seconds: pod.times_out.map(|at| seconds(at, made)),
        quota_refusal: pod.quota.as_ref().map(|refusal| quota_refusal(refusal, made)),
        landing,
        landing_node,
        landing_reason,
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
        expected_pods: numbers.expected,
        desired_healthy: numbers.desired,
        current_healthy: numbers.healthy,
        disruptions_allowed: numbers.allowed,
    };
    BudgetReport {
        namespace: budget.budget.namespace.to_string(),
        name: budget.budget.name.to_string(),
        pods: budget.pods,
        before: numbers(budget.before.numbers),
        after: numbers(budget.after.numbers),
        stale: budget.before.stale,
        sync_failure: budget.before.sync_failure.as_ref().map(ToString::to_string),
        status: budget.before.reported.map(numbers),
    }
}

fn quota_refusal(refusal: &QuotaRefusal, made: Timestamp) -> QuotaRefusalReport {
    QuotaRefusalReport {
        quota: refusal.quota.name.to_string(),
        resource: refusal.resource.to_string(),
        used: refusal.used.clone(),
        hard: refusal.hard.clone(),
        needed: refusal.needed.clone(),
        until_seconds: refusal.admitted.map(|at| seconds(at, made)),
    }
}

fn moment(moment: &PlanMoment, made: Timestamp) -> MomentReport {
    let quota = match &moment.event {
        PlanEvent::NotReplaced { quota, .. } => Some(quota),
        _ => None,
    };
    let (r#type, node, pod, budget) = match &moment.event {
        PlanEvent::NodeStarts { node } => ("nodeStarts", Some(node), None, None),
        PlanEvent::NodeEnds { node } => ("nodeEnds", Some(node), None, None),
        PlanEvent::Leaves { pod } => ("leaves", None, Some(pod), None),
        PlanEvent::Refused { pod, budget } => ("refused", None, Some(pod), budget.as_ref()),
        PlanEvent::Gone { pod } => ("deleted", None, Some(pod), None),
        PlanEvent::NotReplaced { of, .. } => ("notReplaced", None, Some(of), None),
        PlanEvent::Replaced { of, landing } => ("replaced", landing.node(), Some(of), None),
        PlanEvent::Ready { of } => ("ready", None, Some(of), None),
        PlanEvent::Started { pod } => ("started", None, Some(pod), None),
        PlanEvent::GaveUp { pod, .. } => ("timedOut", None, Some(pod), None),
    };
    MomentReport {
        in_seconds: seconds(moment.at, made),
        r#type,
        node: node.cloned(),
        pod: pod.map(ToString::to_string),
        budget: budget.map(ToString::to_string),
        quota: quota.map(ToString::to_string),
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
        dry_run_result: None,
        dry_run_message: None,
        as_planned: None,
    }
}

fn permission(permission: &kordon_core::plan::Permission) -> PermissionReport {
    PermissionReport {
        verb: permission.verb,
        group: permission.group,
        resource: permission.resource,
        subresource: permission.subresource,
        namespace: permission.namespace.to_string(),
        name: permission.name.to_string(),
    }
}

fn undo_change(step: &UndoStep) -> String {
    match step {
        UndoStep::Uncordon => "uncordon".into(),
        UndoStep::Cordon => "cordon".into(),
        UndoStep::Taint { before: Some(before), .. } => format!("taint {before}"),
        UndoStep::Taint { key, effect, before: None, .. } => format!("taint {key}:{effect}-"),
        UndoStep::Label { key, before: Some(before), .. } => format!("label {key}={before}"),
        UndoStep::Label { key, before: None, .. } => format!("label {key}-"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::documented;

    /// Sample report in which every field has a value and every list has items.
    fn full() -> PlanReport {
        let text = || "text".to_owned();
        let window =
            WindowReport { soonest_seconds: Some(1.0), likely_seconds: Some(2.0), latest_seconds: Some(3.0) };
        let numbers = NumbersReport {
            expected_pods: 3,
            desired_healthy: 2,
            current_healthy: 3,
            disruptions_allowed: 1,
        };
        PlanReport {
            schema: "kordon.plan/v1",
            taken_at: Timestamp::from_secs(1_800_000_000),
            action: "drain",
            command: Some(text()),
            server_version: text(),
            outcome: "completes",
            definite: true,
            unknown: vec![PlanGapReport { part: "placement", text: text(), kinds: vec![GapReport::full()] }],
            required_flags: vec![text()],
            totals: PlanTotalsReport {
                nodes: 1,
                changed_nodes: 1,
                refused_nodes: 0,
                pods: 1,
                outcomes: [("moves", 1)].into(),
                leave_now: 1,
                leave_later: 0,
                already_terminating: 0,
                stay: 0,
                wait: 0,
                blocked: 0,
                undecided: 0,
                refused_pods: 0,
                lost: 0,
                data_lost: 0,
                placed: Some(1),
                pending: Some(0),
                preempted: Some(0),
                ends: window,
                not_before_seconds: Some(1.0),
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
                    after_blocked_node: false,
                    blocked_by: Some(text()),
                    remaining: Some(0),
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
                outcome: "moves",
                outcome_text: text(),
                verdict_with_flags: "leaves",
                text: text(),
                required_flags: vec![text()],
                budget: Some(text()),
                lost_reason: Some("noOwner"),
                lost_note: Some("lost"),
                warnings: vec!["critical"],
                eviction_status: Some(201),
                eviction_message: Some(text()),
                leaves: window,
                deleted: window,
                times_out_in_seconds: Some(1.0),
                quota_refusal: Some(QuotaRefusalReport {
                    quota: text(),
                    resource: text(),
                    used: text(),
                    hard: text(),
                    needed: text(),
                    until_seconds: Some(1.0),
                }),
                landing: Some("node"),
                landing_node: Some("n2".into()),
                landing_reason: Some(text()),
                placement: Some(PlacementReport::full()),
                ready_again_in_seconds: Some(1.0),
                quality: "guess",
            }],
            receivers: Some(vec![ReceiverReport::full()]),
            arrivals: Some(vec![ArrivalReport {
                namespace: text(),
                pod: text(),
                node: "n2".into(),
                text: text(),
            }]),
            budgets: Some(vec![BudgetReport {
                namespace: text(),
                name: text(),
                pods: 1,
                before: numbers,
                after: numbers,
                stale: false,
                sync_failure: Some(text()),
                status: Some(numbers),
            }]),
            warnings: vec![WarningReport { r#type: "controlPlane", text: text() }],
            timeline: vec![MomentReport {
                in_seconds: 0.0,
                r#type: "refused",
                node: Some("n1".into()),
                pod: Some(text()),
                budget: Some(text()),
                quota: Some(text()),
            }],
            steps: vec![PlanStepReport {
                method: "POST",
                path: text(),
                content_type: "application/json",
                body: "the body as it is sent".into(),
                text: text(),
                dry_run_result: Some("allowed"),
                dry_run_message: Some(text()),
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
            undo: vec![UndoReport { node: "n1".into(), uid: text(), changes: vec![text()] }],
            assumptions: vec!["nobody else acts"],
            not_modelled: vec![NotModelledReport { r#type: "quota", text: text(), pods: 1 }],
        }
    }

    #[test]
    fn the_documented_fields_are_the_fields() {
        documented::check(&full(), include_str!("../../../docs/reference/plan.md"));
    }
}
