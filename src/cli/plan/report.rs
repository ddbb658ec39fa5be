//! The report of `kordon plan`, with stable names (`docs/reference/plan.md`).

mod pods;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::{
    super::gaps::{GapReport, gap_reports},
    super::placement::ReceiverReport,
    validate::{self, ValidationAnswer, ValidationAnswers},
};
use kordon_core::{
    cluster::{FeedKind, Gaps, NodeName},
    plan::{
        Action, Arrival, BudgetPlan, KubectlDifference, NodeChange, NodeDrain, NodePlan, NotModelled, Plan,
        PlanEvent, PlanGap, PlanMoment, PlanPart, PlanStep, PodCount, Surge, SurgeFate, SurgePlan,
        SurgeRefusal, SurgeRun, Window, budget::BudgetNumbers, parts, undo::UndoStep,
    },
};
use kordon_time::Timestamp;
pub use pods::PlanPodReport;
use pods::pod;

/// A plan. Every field is always present; what is unknown or never happens is null.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlanReport {
    /// `kordon.plan/v1`: fields are added, never removed or renamed.
    pub schema: &'static str,
    /// When the plan was made. Durations below count from here.
    pub taken_at: Timestamp,
    /// The action: `cordon`, `uncordon`, `taint`, `label`, `annotate`, `drain`, `evict` or `delete`.
    pub action: &'static str,
    /// The equivalent kubectl command; `null` if there is none (`evict`, or nothing is selected).
    pub command: Option<String>,
    /// Differences between what the kubectl command does and what the plan says; not for parsing.
    pub command_differences: Vec<String>,
    /// The Kubernetes release whose rules apply.
    pub server_version: String,
    /// The outcome of the plan: `completes`; `stalls` (something may wait forever, or the timeout is too short);
    /// `blocked` (a pod can never leave); `refused` (the plan does not start, or not on every node, without more
    /// flags); `unknown` (whether it completes depends on objects that are not known, see below).
    pub outcome: &'static str,
    /// Whether the outcome would be the same if everything were known.
    pub definite: bool,
    /// Parts of the plan that depend on objects which are unknown or outdated.
    pub unknown: Vec<PlanGapReport>,
    /// The flags that the plan needs to start.
    pub required_flags: Vec<String>,
    pub totals: PlanTotalsReport,
    pub nodes: Vec<PlanNodeReport>,
    pub pods: Vec<PlanPodReport>,
    /// Nodes that receive pods; `null` if placements are unknown.
    pub receivers: Option<Vec<ReceiverReport>>,
    /// Pending pods that find a node because the plan makes nodes schedulable; `null` if placements are unknown.
    pub arrivals: Option<Vec<ArrivalReport>>,
    /// PodDisruptionBudgets of the plan's pods; `null` if budgets are unknown.
    pub budgets: Option<Vec<BudgetReport>>,
    /// What `--surge` does for each workload whose budget can never allow an eviction.
    pub surges: Vec<SurgeReport>,
    pub warnings: Vec<WarningReport>,
    pub timeline: Vec<MomentReport>,
    /// The API requests that the plan would send.
    pub steps: Vec<PlanStepReport>,
    /// The permissions that the operation needs.
    pub permissions: Vec<PermissionReport>,
    /// What an undo would change. Only changes of the plan itself are undone.
    pub undo: Vec<UndoReport>,
    /// The assumptions of the plan, as text.
    pub assumptions: Vec<&'static str>,
    /// Aspects that are [not modelled](#what-is-not-modelled), but may change what happens to pods of the plan.
    pub not_modelled: Vec<NotModelledReport>,
}

#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NotModelledReport {
    /// The type of the aspect: `quota`, `rollout`, `autoscalers`, `webhooks`, `schedulerConfiguration`,
    /// `kubeletAdmission`, `volumeLimitScaling`, `storageCapacityScoring` or `budgetUpdates`.
    pub r#type: &'static str,
    /// The aspect that is not modelled, as text.
    pub text: String,
    /// Number of replaced pods of the plan that the aspect may concern.
    pub pods: usize,
}

#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlanTotalsReport {
    /// Number of nodes of the plan.
    pub nodes: usize,
    /// Number of nodes that would be written to.
    pub changed_nodes: usize,
    /// Number of nodes for which the request is invalid, or of which no pod would be evicted because a flag is missing.
    pub refused_nodes: usize,
    /// Number of pods of the plan. The totals below count each pod once; a refused pod counts by its verdict with the
    /// required flags.
    pub pods: usize,
    /// Number of pods by outcome ([outcomes.md](../outcomes.md)), without outcomes that no pod has. The numbers add up
    /// to `totals.pods`.
    pub outcomes: BTreeMap<&'static str, usize>,
    /// Number of pods that leave at the first attempt.
    pub leave_now: usize,
    /// Number of pods that leave later than at the first attempt, for example once other pods have been replaced.
    pub leave_later: usize,
    /// Number of pods that are already terminating.
    pub already_terminating: usize,
    /// Number of pods that stay on their nodes without blocking the plan.
    pub stay: usize,
    /// Number of pods that wait for something that may or may not happen.
    pub wait: usize,
    /// Number of pods that cannot leave in this plan, or for which it is unknown whether they can leave.
    pub blocked: usize,
    /// Number of pods that leave unless an unknown object forbids it.
    pub undecided: usize,
    /// Number of pods that need a flag which is not given.
    pub refused_pods: usize,
    /// Number of pods that leave, and that no controller recreates or whose Job fails; includes pods that replacements
    /// preempt.
    pub lost: usize,
    /// Number of pods that leave and lose data.
    pub data_lost: usize,
    /// Number of replacements that land on a predicted node. `null`, like `pending` and `preempted`, if placements are
    /// unknown.
    pub placed: Option<usize>,
    /// Number of replacements that stay Pending, those of preempted pods included.
    pub pending: Option<usize>,
    /// Number of pods that replacements preempt.
    pub preempted: Option<usize>,
    /// When the plan completes.
    pub ends: WindowReport,
    /// When the plan likely completes if all undecided pods leave at the first attempt; `null` if no pod is undecided.
    pub not_before_seconds: Option<f64>,
    /// Number of pods in each category. The numbers add up to `pods`: refused pods have a category of their own.
    #[serde(skip)]
    pub parts: Vec<(PodCount, usize)>,
    /// Number of pods or replacements for each consequence. A pod that is lost is also counted in `parts`.
    #[serde(skip)]
    pub consequences: [(PodCount, usize); 4],
}

/// Possible times of an event, in seconds from `takenAt`; null means never.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WindowReport {
    /// The earliest time of the event; `null` means never, or unknown because pods are undecided.
    pub soonest_seconds: Option<f64>,
    /// The likely time of the event; `null` as for `soonestSeconds`.
    pub likely_seconds: Option<f64>,
    /// The latest time of the event; `null` as for `soonestSeconds`.
    pub latest_seconds: Option<f64>,
}

#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlanNodeReport {
    /// The node's name.
    pub name: NodeName,
    /// The node's uid, the precondition of every write.
    pub uid: String,
    /// The write: `cordon`, `uncordon`, `taints`, `labels`, `annotations`, `unchanged` (already as requested) or
    /// `refused`.
    pub change: &'static str,
    /// Why the change is `refused`, in kubectl's words; else `null`.
    pub text: Option<String>,
    /// The node's taints, labels or annotations now, if these change.
    pub before: Vec<String>,
    /// The node's taints, labels or annotations after the write.
    pub after: Vec<String>,
    /// The drain of the node; `null` for other actions.
    pub drain: Option<DrainReport>,
    /// The write in words, without what stays as it is.
    #[serde(skip)]
    pub write: String,
}

#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DrainReport {
    /// Whether no pod of the node would be evicted because a flag is missing.
    pub refused: bool,
    /// Why the drain is refused, in kubectl's words.
    pub refusals: Vec<String>,
    /// When the drain of the node starts; the earliest time, if it has to wait for undecided pods.
    pub starts_in_seconds: f64,
    /// When the node is empty.
    pub ends: WindowReport,
    /// Whether the drain of an earlier node never completes, so that this drain starts only if that node is skipped.
    pub after_blocked_node: bool,
    /// The budget that the node's last pod waits for.
    pub blocked_by: Option<String>,
    /// Pods that remain on the node; `null` if unknown.
    pub remaining: Option<usize>,
}

/// What `--surge` does for one workload: scales it up by one while its pods leave, or refuses to.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SurgeReport {
    /// The namespace of the workload.
    pub namespace: String,
    /// The kind of the workload: `Deployment`, or a kind that is not scaled up.
    pub kind: String,
    /// The name of the workload.
    pub name: String,
    /// The pods of the plan whose eviction the workload's budget can never allow.
    pub pods: Vec<String>,
    /// Whether the workload is scaled up: `scales` or `refused`.
    pub fate: &'static str,
    /// Replicas of the workload before it is scaled up; `null` if it is not, like the fields below.
    pub replicas: Option<i32>,
    /// Replicas of the workload while it is scaled up.
    pub raised_replicas: Option<i32>,
    /// When the workload is scaled up.
    pub scaled_up_in_seconds: Option<f64>,
    /// The node of the workload's new pod; `null` if placements are not known.
    pub landing_node: Option<NodeName>,
    /// When the workload's new pod is Ready.
    pub ready_in_seconds: Option<f64>,
    /// When the workload is scaled back: as soon as its last pod is evicted.
    pub scaled_back_in_seconds: Option<f64>,
    /// Why the workload is not scaled up: `noDeployment`, `unknown`, `deleted`, `owned` (its owner would scale it
    /// back), `recreated` (`strategy: Recreate`), `rollsOut`, `volume` (only one node at a time can use it),
    /// `autoscaled`, `autoscalersUnknown`, `needsAll` (the budget needs all its pods), `notEnough` (one pod more does
    /// not help), `quota`, `pending` (its new pod finds no node), `onDrainedNode`, `neverReady` or `stillHeld`; else
    /// `null`.
    pub refusal: Option<&'static str>,
    /// Why the workload is not scaled up, as text; not for parsing.
    pub text: String,
}

/// A Pending pod that can be placed.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ArrivalReport {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// The node that the pod would land on.
    pub node: NodeName,
    /// The node, and why the pod would land on it, as text.
    pub text: String,
}

#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BudgetReport {
    /// The budget's namespace.
    pub namespace: String,
    /// The budget's name.
    pub name: String,
    /// Pods of the plan that the budget protects.
    pub pods: usize,
    /// The budget's numbers now, computed from pods and scales.
    pub before: NumbersReport,
    /// The budget's numbers at the end of the plan.
    pub after: NumbersReport,
    /// Whether the disruption controller has not processed the budget's latest spec.
    pub stale: bool,
    /// Why the disruption controller cannot compute the budget.
    pub sync_failure: Option<String>,
    /// The numbers of the budget's status, if they differ from the computed ones; else `null`.
    pub status: Option<NumbersReport>,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NumbersReport {
    /// Number of pods that the budget counts (`expectedPods` in its status).
    pub expected_pods: i32,
    /// Number of the budget's pods that must be healthy.
    pub desired_healthy: i32,
    /// Number of the budget's pods that are healthy.
    pub current_healthy: i32,
    /// Number of evictions that the budget allows.
    pub disruptions_allowed: i32,
}

#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WarningReport {
    /// The kind of warning: `zoneLosesLastReady`, `noSchedulableNode`, `controlPlane`, `kubeletDown`,
    /// `unselectedRemain`, `budgetsIgnored`, `partlyDrained`, `capacityExhausted`, `comesBack` (the template of pods
    /// names the drained node), `mayTimeOut` (pods likely leave before the timeout, but may use their whole grace
    /// period), `switchover` (an operator moves roles away from the node, deletes the only instance there, or can do
    /// neither), `jobFails` (a Job fails, because its pods that leave are failed pods), `preempts` (pods that
    /// replacements preempt then have nowhere to run), `groupRestarts` (other pods of a LeaderWorkerSet restart with
    /// those that leave), `ownedPodsDeleted` (a pod that leaves owns others, which are deleted with it),
    /// `quotaExceeded` (a quota refuses replacements), `statusDiffers`, `unknown` (as in `unknown[]`), `outOfService`,
    /// `machineRuns` (a deleted node is Ready and not silent), `nodeHeld` (finalizers keep a deleted node),
    /// `controllersTaint`, `taintsDoNotEvict` (the settings say that no controller evicts pods by NoExecute taints),
    /// `cordonStands` (kordon cordoned the node, and the planned end of that cordon has not come), `cordonNoted`
    /// (kordon cordoned the node, and the cordon has no planned end, or that end has passed), `claimedByOther`
    /// (somebody drains the node, or the drain was interrupted) or `inMaintenance` (the node is in a maintenance,
    /// running or stopped).
    pub r#type: &'static str,
    /// The warning as text.
    pub text: String,
}

#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MomentReport {
    /// When the event happens, in the likely case.
    pub in_seconds: f64,
    /// The event: `nodeStarts`, `nodeEnds`, `leaves`, `refused` (for the first time), `deleted`, `notReplaced` (a quota
    /// refuses the replacement), `replaced`, `ready` (its replacement), `started` (a pod that the plan leaves alone is
    /// Ready), `scaled` (a Deployment, by `--surge`), `surgeReady` (the new pod of that Deployment) or `timedOut`. If
    /// the plan waits for terminating pods that it leaves alone, they also have `deleted`, `replaced` and `ready`.
    pub r#type: &'static str,
    /// The node whose drain starts or ends, or where the replacement lands.
    pub node: Option<NodeName>,
    /// The pod, `namespace/name`; for `notReplaced`, `replaced` and `ready` the old pod.
    pub pod: Option<String>,
    /// The budget that refuses the eviction.
    pub budget: Option<String>,
    /// The quota that refuses the replacement, `namespace/name`.
    pub quota: Option<String>,
    /// The Deployment that is scaled, or whose new pod is Ready, `namespace/name`.
    pub deployment: Option<String>,
    /// The replicas to which the Deployment is scaled.
    pub replicas: Option<i32>,
}

#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlanStepReport {
    /// The HTTP method.
    pub method: &'static str,
    /// The path.
    pub path: String,
    /// The content type.
    pub content_type: &'static str,
    /// The body of the request, an object. Every request has the object's uid as precondition; a list of taints also
    /// has its resourceVersion.
    pub body: Value,
    /// The effect of the request and its object, as text.
    pub text: String,
    /// With `--dry-run=server`, the server's answer to the request as a dry run: `allowed`, `budgetExhausted`,
    /// `budgetStale`, `forbidden`, `refused`, `conflict`, `otherObject`, `gone`, `namespaceTerminating`, `overloaded`,
    /// `failed`, `unreachable` or `noResponse`; `null` if the request was not sent.
    pub dry_run_result: Option<&'static str>,
    /// The server's message about the dry run; if a budget refuses, the budget's numbers.
    pub dry_run_message: Option<String>,
    /// Whether the plan predicted the server's answer to the dry run; `null` if the answer does not show it.
    pub as_planned: Option<bool>,
}

#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PermissionReport {
    /// The verb.
    pub verb: &'static str,
    /// The API group of the resource; empty for the core group.
    pub group: &'static str,
    /// The resource.
    pub resource: &'static str,
    /// The subresource, such as `eviction`; may be empty.
    pub subresource: &'static str,
    /// The namespace that the permission is for; empty for nodes.
    pub namespace: String,
    /// The name of the object that the permission is for; empty for all objects.
    pub name: String,
}

#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UndoReport {
    /// The node.
    pub node: NodeName,
    /// The node's uid: another node of the same name is left alone.
    pub uid: String,
    /// The changes: `uncordon`, `cordon`, or `taint …`, `label …` and `annotate …` in kubectl's words.
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlanGapReport {
    /// The uncertain part: `everything`, `otherNodes`, `workloads`, `budgets`, `quotas` or `placement`; `outcome` if
    /// the plan is refused because its outcome is unknown.
    part: &'static str,
    /// The uncertain part as text, with the reasons.
    pub text: String,
    /// The kinds of objects that are unknown or outdated.
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
            command_differences: KubectlDifference::all(plan).iter().map(ToString::to_string).collect(),
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
            surges: plan.surges.iter().map(|surge| SurgeReport::new(surge, made)).collect(),
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
    /// Adds to each write of the plan the server's answer to its dry run.
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
        parts: parts(&plan.pods, plan.made),
        consequences: totals.consequences(),
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
        NodeChange::Deletion => ("delete", None, Vec::new(), Vec::new()),
        NodeChange::Unchanged { text } => ("unchanged", Some((*text).to_owned()), Vec::new(), Vec::new()),
        NodeChange::Refused { text } => ("refused", Some(text.clone()), Vec::new(), Vec::new()),
        NodeChange::Taints { before, after } => ("taints", None, strings(before), strings(after)),
        NodeChange::Metadata { field, before, after } => {
            let shown = |labels: &kordon_core::cluster::Labels| {
                labels.iter().map(|(key, value)| format!("{key}={value}")).collect()
            };
            (field.as_str(), None, shown(before), shown(after))
        }
    };
    let drain = node.drain.as_ref().map(|drain| self::drain(drain, made));
    let (name, uid, write) = (node.node.clone(), node.uid.to_string(), node.change.text());
    PlanNodeReport { name, uid, change, text, before, after, drain, write }
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

impl SurgeReport {
    /// Reports a surge of a plan. `made` is when the plan was made.
    pub fn new(plan: &SurgePlan, made: Timestamp) -> Self {
        let (surge, run, refusal) = match &plan.fate {
            SurgeFate::Scales { surge, run } => (Some(surge), run.clone(), None),
            SurgeFate::Refused(refusal) => (None, SurgeRun::default(), Some(refusal)),
        };
        let after = |at: Option<Timestamp>| at.map(|at| seconds(at, made));
        Self {
            namespace: plan.workload.namespace.to_string(),
            kind: plan.kind.to_string(),
            name: plan.workload.name.to_string(),
            pods: plan.pods.iter().map(|pod| pod.name.to_string()).collect(),
            fate: if surge.is_some() { "scales" } else { "refused" },
            replicas: surge.map(|surge| surge.replicas),
            raised_replicas: surge.map(Surge::raised),
            scaled_up_in_seconds: after(run.scaled_up),
            landing_node: run.landing.as_ref().and_then(|landing| landing.node().cloned()),
            ready_in_seconds: after(run.ready),
            scaled_back_in_seconds: after(run.scaled_back),
            refusal: refusal.map(SurgeRefusal::word),
            text: plan.text(made),
        }
    }
}

fn moment(moment: &PlanMoment, made: Timestamp) -> MomentReport {
    let quota = match &moment.event {
        PlanEvent::NotReplaced { quota, .. } => Some(quota),
        _ => None,
    };
    let (deployment, replicas) = match &moment.event {
        PlanEvent::Scaled { deployment, replicas } => (Some(deployment), Some(*replicas)),
        PlanEvent::SurgeReady { deployment } => (Some(deployment), None),
        _ => (None, None),
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
        PlanEvent::Scaled { .. } => ("scaled", None, None, None),
        PlanEvent::SurgeReady { .. } => ("surgeReady", None, None, None),
    };
    MomentReport {
        in_seconds: seconds(moment.at, made),
        r#type,
        node: node.cloned(),
        pod: pod.map(ToString::to_string),
        budget: budget.map(ToString::to_string),
        quota: quota.map(ToString::to_string),
        deployment: deployment.map(ToString::to_string),
        replicas,
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
        UndoStep::Metadata { field, key, before: Some(before), .. } => {
            format!("{} {key}={before}", field.verb())
        }
        UndoStep::Metadata { field, key, before: None, .. } => format!("{} {key}-", field.verb()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::documented;

    #[test]
    fn the_page_documents_every_field() {
        documented::check::<PlanReport>("plan");
    }
}
