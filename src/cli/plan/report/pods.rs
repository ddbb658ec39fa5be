//! The reports of pods in `kordon plan`.

use serde::Serialize;

use super::{WindowReport, seconds, strings, window};
use crate::cli::placement::{self, PlacementReport};
use kordon_core::{
    cluster::NodeName,
    plan::{NotRecreated, PodOutcome, PodPlan, QuotaRefusal, Verdict},
};
use kordon_time::Timestamp;

#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlanPodReport {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// The pod's uid, the precondition of its eviction or deletion.
    pub uid: String,
    /// The pod's node.
    pub node: Option<NodeName>,
    /// The kind of the pod's controller.
    pub owner_kind: Option<String>,
    /// The name of the pod's controller.
    pub owner_name: Option<String>,
    /// The verdict on the pod: `skipped`, `refused`, `terminating`, `leaves`, `leavesAfter`, `waits`,
    /// `waitsForOperator`, `waitsForController`, `waitsForNamespace`, `waitsForFinalizer` (the finalizer of a deleted
    /// node keeps it), `blocked`, `twoBudgets`, `unknown`, `undecided`; for taints `deleted`, `tolerates`,
    /// `deletionCancelled`.
    pub verdict: &'static str,
    /// What becomes of the pod: a word of [outcomes.md](../outcomes.md).
    pub outcome: &'static str,
    /// What becomes of the pod, as text; not for parsing.
    pub outcome_text: String,
    /// What becomes of an undecided pod if it leaves; `null` for other pods, and if this is unknown.
    pub if_it_leaves: Option<IfItLeavesReport>,
    /// The verdict if all required flags are given; the same as `verdict` if none is missing.
    pub verdict_with_flags: &'static str,
    /// The verdict as text, with the budget's numbers and what to do; not for parsing.
    pub text: String,
    /// The flags that the pod needs.
    pub required_flags: Vec<String>,
    /// The PodDisruptionBudget that decides the eviction, as `namespace/name`.
    pub budget: Option<String>,
    /// Why no controller recreates the pod: `noOwner`, `ownerGone`, `finished`, `jobFails` (its Job fails, or its
    /// index) or `runFails` (the run of an owner that creates no second pod); `null` if one does.
    pub lost_reason: Option<&'static str>,
    /// Why no controller recreates the pod, in a few words, for the table.
    #[serde(skip)]
    pub lost_note: Option<&'static str>,
    /// Warnings about the pod: `emptyDirData`, `memoryData`, `hostPathData`, `ephemeralVolume`, `claimDeleted` (a claim
    /// that is being deleted goes with the pod), `mayReturnHere`, `singleReplica`, `lastReady`, `critical`,
    /// `hasFinalizers`, `kubeletDown`, `removedByForce` (the pod garbage collector removes it, because its node is not
    /// Ready and tainted out-of-service), `duplicateIdentity`, `notRecreatedWhileTainted`, `operatorRecreates`,
    /// `switchesOver`, `noReplica`, `operatorRestarts`, `operatorDenies` (a webhook of its operator), `restartsGroup`
    /// (of a LeaderWorkerSet), `rolloutInProgress`.
    pub warnings: Vec<&'static str>,
    /// The warnings about the pod in words, for the table.
    #[serde(skip)]
    pub warning_notes: Vec<String>,
    /// The HTTP status with which the server would answer an eviction now.
    pub eviction_status: Option<u16>,
    /// The message with which the server would refuse the eviction; `null` if it would not.
    pub eviction_message: Option<String>,
    /// When the deletion of the pod starts.
    pub leaves: WindowReport,
    /// When the pod is deleted.
    pub deleted: WindowReport,
    /// When the timeout expires; `null` if the pod is deleted earlier.
    pub times_out_in_seconds: Option<f64>,
    /// The ResourceQuota that refuses the first attempts to create the replacement; `null` if none does.
    pub quota_refusal: Option<QuotaRefusalReport>,
    /// Where the replacement lands: `node`, `pending` (it stays Pending), `rejected` (the kubelet of the node that its
    /// template names rejects it) or `unknown` (not predicted); `null` if there is no replacement.
    pub landing: Option<&'static str>,
    /// The node that the replacement lands on.
    pub landing_node: Option<NodeName>,
    /// Why the replacement lands on this node, or why on none.
    pub landing_reason: Option<String>,
    /// How the placement was decided; `null` if nothing has to be placed.
    pub placement: Option<PlacementReport>,
    /// When the replacement is likely Ready; `null` means never, or unknown because the pod is undecided.
    pub ready_again_in_seconds: Option<f64>,
    /// The quality of the times: `guess`, `declared` (from grace periods), `measured` (from pods of the same workload),
    /// `certain`.
    pub quality: &'static str,
}

/// What becomes of an undecided pod if it leaves.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct IfItLeavesReport {
    /// What becomes of the pod: a word of [outcomes.md](../outcomes.md).
    pub outcome: &'static str,
    /// What becomes of the pod, as text; not for parsing.
    pub outcome_text: String,
    /// The node that the replacement lands on.
    pub landing_node: Option<NodeName>,
    /// Why the replacement lands on this node, or why on none; also why a Job fails.
    pub reason: Option<String>,
    /// What would help to place the replacement, if it stays Pending.
    pub help: Vec<String>,
}

/// A quota that refuses a replacement.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct QuotaRefusalReport {
    /// The name of the ResourceQuota.
    pub quota: String,
    /// The resource that is used up, as in `requests.cpu`.
    pub resource: String,
    /// How much of the resource is used, as text.
    pub used: String,
    /// How much of the resource may be used, as text.
    pub hard: String,
    /// How much of the resource the replacement needs, as text.
    pub needed: String,
    /// When the pod's controller likely creates the replacement after all; `null` if that does not happen in this plan.
    pub until_seconds: Option<f64>,
}

pub(super) fn pod(pod: &PodPlan, made: Timestamp) -> PlanPodReport {
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
        if_it_leaves: pod.if_it_leaves.as_ref().map(IfItLeavesReport::new),
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
        warning_notes: pod.warnings.iter().map(ToString::to_string).collect(),
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

impl IfItLeavesReport {
    fn new(outcome: &PodOutcome) -> Self {
        Self {
            outcome: outcome.kind().word(),
            outcome_text: outcome.to_string(),
            landing_node: outcome.node().cloned(),
            reason: outcome.reasons().into_iter().next(),
            help: outcome.help().to_vec(),
        }
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
