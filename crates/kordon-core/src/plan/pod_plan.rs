//! What happens to one pod in a plan, and when.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    environment::Quality,
    eviction::EvictionAnswer,
    eviction_note::EvictionNote,
    forced_removal::keeps_pods,
    landing::Landing,
    not_needed::NotNeeded,
    outcome::{Departing, PlacedReplacement, PodOutcome, StuckReason},
    outcome_kind::OutcomeKind,
    owner::{NotRecreated, Recreation},
    placement_trace::{PlacementTrace, PreemptedPod},
    quota::QuotaRefusal,
    verdict::Verdict,
    warning::PodWarning,
};
use crate::cluster::{Cluster, Key, Name, NodeName, OwnerKind, Pod, Uid};
use kordon_time::Timestamp;

/// One pod of a plan, shown as a row.
#[derive(Clone, Debug, PartialEq)]
pub struct PodPlan {
    pub pod: Key,
    pub uid: Uid,
    pub node: Option<NodeName>,
    /// The pod's controller, as its owner reference names it.
    pub owner: Option<(OwnerKind, Name)>,
    pub verdict: Verdict,
    pub outcome: PodOutcome,
    /// The outcome of the pod if it leaves, if it is not known whether it leaves; `None` for other pods, and if this
    /// outcome is not known either.
    pub if_it_leaves: Option<PodOutcome>,
    /// The reason why no controller recreates the pod; `None` if a controller does, or if the pod stays.
    pub lost: Option<NotRecreated>,
    pub warnings: BTreeSet<PodWarning>,
    /// The response of the eviction subresource, if the pod were evicted now; `None` if it is not predicted.
    pub answer: Option<EvictionAnswer>,
    /// Time at which the pod's deletion starts.
    pub leaves: Window,
    /// Time at which the pod's object is gone.
    pub gone: Window,
    /// Time at which the timeout expires; `None` if the pod is gone before.
    pub times_out: Option<Timestamp>,
    /// The quota that at first refuses the pod's replacement, if there is one.
    pub quota: Option<QuotaRefusal>,
    /// The pod of a lower ordinal that must be available before the pod's StatefulSet creates the replacement.
    pub waits_for: Option<Key>,
    pub landing: Option<Landing>,
    /// How the replacement was placed; `None` if placements are not computed.
    pub placement: Option<Arc<PlacementTrace>>,
    /// Time at which the replacement is likely Ready; `None` if never or unknown.
    pub ready_again: Option<Timestamp>,
    /// Reliability of the predicted times.
    pub quality: Quality,
    /// Notes on the eviction; empty unless a taint deletes the pod.
    pub eviction_notes: Vec<EvictionNote>,
}

/// The predicted time of an event. `None` means that the event never happens, or that it is unknown whether the pod
/// leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    pub soonest: Option<Timestamp>,
    pub likely: Option<Timestamp>,
    pub latest: Option<Timestamp>,
}

impl Window {
    /// Returns the predicted time with only its soonest value. The likely and the latest value are left out as unknown.
    pub(super) fn at_the_soonest(self) -> Self {
        Self { likely: None, latest: None, ..self }
    }
}

impl PodPlan {
    /// Creates the plan's row for a pod with this verdict. The predicted fields are still empty.
    pub(super) fn new(pod: &Pod, verdict: Verdict) -> Self {
        Self {
            pod: pod.key.clone(),
            uid: pod.uid.clone(),
            node: pod.node.clone(),
            owner: pod.owner.as_ref().map(|owner| (owner.kind.clone(), owner.name.clone())),
            outcome: PodOutcome::Stays { why: verdict.to_string().into() },
            verdict,
            if_it_leaves: None,
            lost: None,
            warnings: BTreeSet::new(),
            answer: None,
            leaves: Window::default(),
            gone: Window::default(),
            times_out: None,
            quota: None,
            waits_for: None,
            landing: None,
            placement: None,
            ready_again: None,
            quality: Quality::Certain,
            eviction_notes: Vec::new(),
        }
    }

    /// Decides the outcome of the pod. `pod` is the object of the pod in this row.
    pub(super) fn decide_outcome(&self, cluster: &Cluster, pod: &Pod) -> PodOutcome {
        match self.outcome_by_verdict(cluster, pod) {
            PodOutcome::Stuck(StuckReason::Finalizers { names, .. }) if self.is_kept_by_finalizers() => {
                PodOutcome::Stuck(StuckReason::Finalizers { names, hangs: false })
            }
            outcome => outcome,
        }
    }

    /// Returns whether the plan ends the pod, and only finalizers keep its object.
    pub(super) fn is_kept_by_finalizers(&self) -> bool {
        self.gone.likely.is_none()
            && self.warnings.contains(&PodWarning::HeldByFinalizer)
            && !self.warnings.contains(&PodWarning::KubeletDown)
    }

    fn outcome_by_verdict(&self, cluster: &Cluster, pod: &Pod) -> PodOutcome {
        match &self.verdict {
            Verdict::Skipped(_) | Verdict::Tolerates | Verdict::DeletionCancelled => {
                PodOutcome::Stays { why: self.verdict.to_string().into() }
            }
            Verdict::Refused { .. }
            | Verdict::Waits { .. }
            | Verdict::WaitsForOperator { .. }
            | Verdict::WaitsForController { .. }
            | Verdict::WaitsForNamespace
            | Verdict::WaitsForFinalizer { .. }
            | Verdict::Blocked { .. }
            | Verdict::TwoBudgets { .. }
            | Verdict::Unknown { .. } => PodOutcome::Blocked { why: self.verdict.to_string() },
            Verdict::Undecided { gaps } => PodOutcome::Unknown { why: gaps.to_string().into() },
            Verdict::Terminating if !self.is_ended_by_plan(cluster) => {
                PodOutcome::for_terminating(cluster, pod)
            }
            Verdict::Terminating if self.is_replaced_before() => PodOutcome::for_ended(cluster, pod),
            Verdict::Terminating | Verdict::Leaves(_) | Verdict::LeavesAfter { .. } => {
                self.outcome_of_leaving(cluster, pod)
            }
            Verdict::Deleted { .. } if self.warnings.contains(&PodWarning::NotRecreatedWhileTainted) => {
                self.outcome_of_leaving(cluster, pod).unless_on_same_node(NotNeeded::NodeTainted)
            }
            Verdict::Deleted { .. } => self.outcome_of_leaving(cluster, pod),
            // The node is deleted, so nothing recreates the pod on it.
            Verdict::Orphaned => self.outcome_of_orphan(cluster, pod).without_node(),
        }
    }

    /// Adds the replacement that exists already, and the time at which it is likely Ready.
    pub(super) fn add_waiting_replacement(&mut self, replacement: &Pod, ready: Option<Timestamp>) {
        self.ready_again = ready;
        let waits = |node: &NodeName| EvictionNote::ReplacementWaits {
            replacement: replacement.key.clone(),
            node: node.clone(),
        };
        self.eviction_notes.extend(replacement.node.as_ref().map(waits));
    }

    /// Returns the outcome of an undecided pod if it leaves; `None` for other pods, and if this outcome is not known
    /// either. `pod` is the object of the pod in this row.
    pub(super) fn outcome_if_it_leaves(&self, cluster: &Cluster, pod: &Pod) -> Option<PodOutcome> {
        if !matches!(self.verdict, Verdict::Undecided { .. }) {
            return None;
        }
        // Of the times of an undecided pod, only the soonest are kept.
        let gone = Window { likely: self.gone.soonest, ..self.gone };
        let outcome = Self { gone, ..self.clone() }.outcome_of_leaving(cluster, pod);
        Some(outcome).filter(|outcome| outcome.kind() != OutcomeKind::Unknown)
    }

    /// Removes the predicted node and time of the replacement, if it is not known whether the pod is replaced.
    pub(super) fn keep_only_what_is_known(&mut self) {
        if self.outcome.kind() == OutcomeKind::Unknown {
            self.landing = self.landing.take().map(|_| Landing::Unknown);
            self.ready_again = None;
        }
    }

    fn outcome_of_orphan(&self, cluster: &Cluster, pod: &Pod) -> PodOutcome {
        if pod.termination.is_some() && self.gone.likely.is_some() && self.is_replaced_before() {
            return PodOutcome::for_ended(cluster, pod);
        }
        self.outcome_of_leaving(cluster, pod)
    }

    /// For a pod that was terminating before the plan: returns true if no replacement is created when the pod ends.
    fn is_replaced_before(&self) -> bool {
        self.landing.is_none() && self.quota.is_none() && self.waits_for.is_none()
    }

    fn outcome_of_leaving(&self, cluster: &Cluster, pod: &Pod) -> PodOutcome {
        let is_ended =
            self.gone.likely.is_some() || pod.node.as_ref().is_some_and(|node| !keeps_pods(cluster, node));
        let is_gone = is_ended && !self.is_kept_by_finalizers();
        let running = Departing::from_running_node(cluster, pod, false);
        let recreation = self.lost.map_or(running.recreation, Recreation::Never);
        let quota = self.quota.clone();
        let volume = running.volume.clone().filter(|_| !self.is_removed_by_force());
        let departing = Departing { is_gone, is_detached: is_ended, quota, volume, ..running };
        let departing = departing.with_recreation(cluster, pod, recreation);
        let replacement = self.landing.as_ref().map(|landing| PlacedReplacement {
            landing,
            trace: self.placement.as_deref(),
            ready: self.ready_again,
        });
        if let (None, Some(lower)) = (&replacement, &self.waits_for) {
            return PodOutcome::Stuck(StuckReason::LowerOrdinal { pod: lower.name.clone() });
        }
        if replacement.is_none() && self.times_out.is_some() && departing.is_replaced() {
            return PodOutcome::WaitsForOldPod;
        }
        departing.decide(pod, replacement)
    }

    /// For a pod that was terminating before the plan: returns whether the plan removes the pod although its kubelet
    /// does not end it.
    fn is_ended_by_plan(&self, cluster: &Cluster) -> bool {
        let is_kept = || self.node.as_ref().is_some_and(|node| keeps_pods(cluster, node));
        self.gone.likely.is_some() && (self.is_removed_by_force() || is_kept())
    }

    /// Returns the pods on other nodes that the replacement preempts, and the pods that the replacements of these pods
    /// preempt in turn.
    pub fn preempted(&self) -> impl Iterator<Item = &PreemptedPod> {
        self.placement.iter().flat_map(|trace| &trace.preempts)
    }

    /// Returns whether the pod garbage collector removes the pod by force.
    pub fn is_removed_by_force(&self) -> bool {
        self.warnings.contains(&PodWarning::RemovedByForce)
    }

    /// Returns whether the pod should leave its node but does not, or not before the timeout.
    pub(super) fn is_kept(&self) -> bool {
        match self.verdict.as_if_granted() {
            Verdict::Waits { .. }
            | Verdict::WaitsForOperator { .. }
            | Verdict::WaitsForController { .. }
            | Verdict::WaitsForNamespace
            | Verdict::WaitsForFinalizer { .. }
            | Verdict::Blocked { .. }
            | Verdict::TwoBudgets { .. }
            | Verdict::Unknown { .. } => true,
            Verdict::Skipped(_)
            | Verdict::Refused { .. }
            | Verdict::Terminating
            | Verdict::Leaves(_)
            | Verdict::LeavesAfter { .. }
            | Verdict::Undecided { .. }
            | Verdict::Deleted { .. }
            | Verdict::Orphaned
            | Verdict::Tolerates
            | Verdict::DeletionCancelled => self.times_out.is_some(),
        }
    }

    /// Returns ways to place the replacement; empty unless the replacement stays Pending, or would if the pod leaves.
    pub fn help(&self) -> Vec<String> {
        if let Some(outcome) = &self.if_it_leaves {
            return outcome.help().to_vec();
        }
        let is_pending = matches!(self.landing, Some(Landing::Pending { .. }));
        let help = self.placement.as_ref().filter(|_| is_pending).and_then(|trace| trace.help.as_ref());
        help.map(|help| help.lines()).unwrap_or_default()
    }

    /// Returns notes on the pod, the most serious first.
    pub fn notes(&self) -> Vec<String> {
        let times_out = self.times_out.map(|_| "times out".to_owned());
        let lost = self.lost.map(|why| why.risk().to_owned());
        let unplaced = match &self.landing {
            Some(landing @ (Landing::Pending { why } | Landing::Rejected { why })) => {
                Some(format!("replacement {landing} ({why})"))
            }
            Some(Landing::Node { .. } | Landing::Unknown) | None => None,
        };
        let quota = self.quota.as_ref().map(ToString::to_string);
        let warnings = self.warnings.iter().map(ToString::to_string);
        let eviction = self.eviction_notes.iter().map(ToString::to_string);
        times_out
            .into_iter()
            .chain(lost)
            .chain(quota)
            .chain(warnings)
            .chain(unplaced)
            .chain(eviction)
            .collect()
    }
}
