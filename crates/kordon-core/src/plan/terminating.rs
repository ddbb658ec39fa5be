//! Outcomes of pods whose deletion has started.

use std::collections::BTreeMap;

use super::{
    eviction_note,
    forced_removal::keeps_pods,
    job_owner::FailedJob,
    not_needed::NotNeeded,
    outcome::{PodOutcome, StuckReason, missing},
    owner::{self, NotRecreated, Recreation},
    quota::{self, QuotaLedger},
};
use crate::cluster::{Cluster, Key, Namespace, Pod, Uid};
use kordon_time::ClusterTime;

/// Computes outcomes of terminating pods. Caches what it finds out about the owners and quotas of the pods.
#[derive(Debug)]
pub struct TerminatingPods<'a> {
    cluster: &'a Cluster,
    by_owner: BTreeMap<Uid, OwnedPods>,
    /// For each namespace, the use of its quotas once all its terminating pods are gone.
    quotas: BTreeMap<Namespace, QuotaLedger>,
}

/// What the pods of an owner show about the replacements of its terminating pods.
#[derive(Debug)]
struct OwnedPods {
    /// Number of pods that the owner still has to create.
    missing: usize,
    /// Number of live pods that have no node yet.
    unscheduled: usize,
    /// The terminating pods by the start of their deletion, the latest first.
    terminating: Vec<Key>,
}

/// What has become of the replacement of a pod that is replaced as soon as its deletion starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReplacementStage {
    NotCreated,
    Unscheduled,
    Scheduled,
}

impl<'a> TerminatingPods<'a> {
    pub const fn new(cluster: &'a Cluster) -> Self {
        Self { cluster, by_owner: BTreeMap::new(), quotas: BTreeMap::new() }
    }

    /// Returns the outcome of a pod whose deletion has started.
    pub fn outcome(&mut self, pod: &Pod) -> PodOutcome {
        // The pod garbage collector removes the pods of a node that does not exist.
        let keeps = |node| self.cluster.node(node).is_some() && keeps_pods(self.cluster, node);
        let hangs = pod.node.as_ref().is_some_and(keeps);
        self.outcome_on(pod, hangs)
    }

    /// Returns the outcome of a pod whose deletion has started. `hangs` is true if the pod's object stays on its node.
    fn outcome_on(&mut self, pod: &Pod, hangs: bool) -> PodOutcome {
        let cluster = self.cluster;
        let (recreation, missing) = (owner::recreation(cluster, pod), missing(cluster, pod));
        let shows_by_itself = matches!(
            recreation,
            Recreation::OnSameNode | Recreation::Never(NotRecreated::Finished | NotRecreated::NoOwner)
        );
        if !missing.is_empty() && !shows_by_itself {
            return PodOutcome::Unknown { why: missing.to_string().into() };
        }
        let not_needed = NotNeeded::find(cluster, pod, recreation);
        match recreation {
            Recreation::OnSameNode => PodOutcome::on_same_node(not_needed),
            Recreation::Immediately | Recreation::WhenGone if let Some(why) = not_needed => {
                PodOutcome::NotRecreated(why)
            }
            Recreation::WhenGone if !owner::needs_another(cluster, pod) => {
                PodOutcome::NotRecreated(NotNeeded::EnoughPods)
            }
            Recreation::WhenGone if hangs => PodOutcome::Stuck(StuckReason::for_old_pod(pod)),
            Recreation::WhenGone => PodOutcome::WaitsForOldPod,
            Recreation::Immediately => self.replaced_at_once(pod, hangs),
            Recreation::Never(NotRecreated::Finished) => PodOutcome::Finished,
            Recreation::Never(NotRecreated::JobFails(why)) => {
                PodOutcome::for_failed_job(pod, why, FailedJob::new(cluster, pod))
            }
            Recreation::Never(NotRecreated::RunFails) => PodOutcome::for_failed_run(pod),
            Recreation::Never(NotRecreated::NoOwner | NotRecreated::OwnerGone) => PodOutcome::Lost,
            Recreation::Unknown => PodOutcome::Unknown { why: owner::unknown_text(cluster, pod) },
        }
    }

    fn replaced_at_once(&mut self, pod: &Pod, hangs: bool) -> PodOutcome {
        let cluster = self.cluster;
        match self.stage(pod) {
            ReplacementStage::NotCreated => self.refused(pod),
            ReplacementStage::Unscheduled => PodOutcome::Replaced { hangs, is_pending: true },
            ReplacementStage::Scheduled => match eviction_note::attached_once(cluster, pod).filter(|_| hangs)
            {
                Some(claim) => PodOutcome::Stuck(StuckReason::Volume { claim }),
                None => PodOutcome::Replaced { hangs, is_pending: false },
            },
        }
    }

    /// Returns the outcome of a pod whose replacement was refused by a quota. The outcome depends on whether the quota
    /// has room once all terminating pods are gone.
    fn refused(&mut self, pod: &Pod) -> PodOutcome {
        let (cluster, namespace) = (self.cluster, &pod.key.namespace);
        let known = self.quotas.entry(namespace.clone());
        let ledger = known.or_insert_with(|| QuotaLedger::for_live_pods(cluster, namespace));
        // Admits each pod in a copy of the quotas' use, so that the admission of one pod does not count for the next.
        match ledger.clone().admit(cluster, pod) {
            Ok(()) => PodOutcome::WaitsForOldPod,
            Err(refusal) => PodOutcome::Refused(refusal),
        }
    }

    /// Returns the stage of a pod's replacement. Owners create replacements in the order of the deletions. Therefore
    /// the missing replacements are those of the pods that were deleted last, and the replacements without a node are
    /// those of the pods that were deleted before them. A replacement counts as missing only if a quota limits its
    /// namespace: without a quota, the owner creates it within moments.
    fn stage(&mut self, pod: &Pod) -> ReplacementStage {
        let cluster = self.cluster;
        let Some(owner) = &pod.owner else { return ReplacementStage::Scheduled };
        let owned = self
            .by_owner
            .entry(owner.uid.clone())
            .or_insert_with(|| OwnedPods::new(cluster, pod, &owner.uid));
        match owned.terminating.iter().position(|other| *other == pod.key) {
            Some(later) if later < owned.missing => ReplacementStage::NotCreated,
            Some(later) if later < owned.missing + owned.unscheduled => ReplacementStage::Unscheduled,
            Some(_) | None => ReplacementStage::Scheduled,
        }
    }
}

impl OwnedPods {
    /// Reads the pods of the owner of `pod`.
    fn new(cluster: &Cluster, pod: &Pod, owner: &Uid) -> Self {
        let pods = || cluster.pods_owned_by(owner);
        let mut terminating: Vec<(ClusterTime, Key)> = pods()
            .filter(|pod| !pod.is_finished())
            .filter_map(|pod| {
                let termination = pod.termination.as_ref()?;
                Some((termination.deadline - termination.grace, pod.key.clone()))
            })
            .collect();
        terminating.sort_by(|one, other| other.cmp(one));
        let live = pods().filter(|pod| pod.lives()).count();
        let is_limited = quota::limits(cluster, pod);
        Self {
            missing: if is_limited { owner::missing_pods(cluster, pod, live) } else { 0 },
            unscheduled: pods().filter(|pod| pod.is_unscheduled()).count(),
            terminating: terminating.into_iter().map(|(_, key)| key).collect(),
        }
    }
}

impl PodOutcome {
    /// Returns the outcome of a pod whose deletion has started. For many pods, use [`TerminatingPods`].
    pub fn for_terminating(cluster: &Cluster, pod: &Pod) -> Self {
        TerminatingPods::new(cluster).outcome(pod)
    }

    /// Returns the outcome of a pod whose deletion has started and whose object does not stay on its node.
    pub(super) fn for_ended(cluster: &Cluster, pod: &Pod) -> Self {
        TerminatingPods::new(cluster).outcome_on(pod, false)
    }
}
