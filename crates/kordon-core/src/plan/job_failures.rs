//! Failures of Jobs whose pods leave: an evicted pod counts as a failed pod (docs/upstream/jobs.md).
//!
//! The Job controller replaces a failed pod after a back-off. It fails the whole Job instead, and deletes all its
//! pods, if the Job has had too many failures, if its policy says so, or if its deadline has passed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    departure::Departure,
    environment,
    job_failure::JobFailure,
    owner::{self, NotRecreated, Recreation, job_of},
};
use crate::cluster::{
    Cluster, ConditionStatus, ContainerExit, ContainerResources, ContainerRole, ExitCodes, IndexFailures,
    JobLimits, Key, Name, Phase, Pod, PodFailureAction, PodFailureRule, Uid, Workload, WorkloadStage,
};
use kordon_time::{Span, Timestamp};

/// Back-off after the first failure; it doubles with each further one (upstream `DefaultJobPodFailureBackOff`).
const BACK_OFF: Span = Span::from_secs(10);
/// Maximum back-off (upstream `MaxJobPodFailureBackOff`).
pub const MAX_BACK_OFF: Span = Span::from_secs(600);
/// Exit code of a container that SIGTERM ended.
const TERMINATED: i32 = 143;
/// Label with the index of a pod of an indexed Job.
const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// The failures of Jobs while their pods leave.
#[derive(Clone, Debug, Default)]
pub(super) struct JobLedger {
    jobs: BTreeMap<Uid, JobRecord>,
}

/// The failures of one Job.
#[derive(Clone, Debug, Default)]
struct JobRecord {
    /// Failures that count towards `backoffLimit`.
    failures: i32,
    /// Failures since the last success, which decide the back-off.
    recent: i32,
    last_failure: Timestamp,
    indexes: BTreeMap<i32, IndexRecord>,
    /// Failed indexes that are not in the status of the Job yet.
    failed_indexes: BTreeSet<i32>,
    failure: Option<JobFailure>,
}

/// The failures of one index of a Job with `backoffLimitPerIndex`.
#[derive(Clone, Copy, Debug, Default)]
struct IndexRecord {
    /// Failures that count towards `backoffLimitPerIndex`.
    counted: i32,
    /// All failures of the index, including those that a policy ignores. They decide the back-off.
    all: i32,
    last_failure: Timestamp,
}

impl JobLedger {
    /// Counts a pod of a Job as failed. `is_disrupted` says whether the pod has the condition DisruptionTarget. Pods
    /// without a Job, and pods of a Job that has already ended, are ignored. `finished` is the time from which the
    /// back-off counts ([`finished`]).
    pub fn on_failure(&mut self, cluster: &Cluster, pod: &Pod, is_disrupted: bool, finished: Timestamp) {
        if pod.is_finished() {
            return;
        }
        let Some(workload) = job_of(cluster, pod) else { return };
        if workload.stage == WorkloadStage::Finished {
            return;
        }
        let Some(job) = &workload.job else { return };
        let record =
            self.jobs.entry(workload.uid.clone()).or_insert_with(|| JobRecord::new(cluster, &workload));
        record.last_failure = record.last_failure.max(finished);
        let of_index = job.backoff_limit_per_index.and_then(|limit| Some((limit, index(pod)?)));
        if let Some((_, index)) = of_index {
            let of_index =
                record.indexes.entry(index).or_insert_with(|| IndexRecord::new(cluster, &workload, pod));
            of_index.last_failure = of_index.last_failure.max(finished);
        }
        if will_fail(cluster, pod) {
            // [`JobRecord::new`] has already counted this pod, because the pod was terminating when the record was
            // created.
            return;
        }
        let action = action(&job.rules, is_disrupted, &terminated(pod));
        record.count(action, of_index);
        if record.failure != Some(JobFailure::PodFailurePolicy) {
            record.failure = record.check(&workload);
        }
    }

    /// Returns why a pod is not replaced: its Job fails, or its index does. `None` if the pod is replaced, or has
    /// already finished.
    pub fn failure(&self, cluster: &Cluster, pod: &Pod) -> Option<JobFailure> {
        let workload = job_of(cluster, pod).filter(|_| !pod.is_finished())?;
        let record = self.jobs.get(&workload.uid)?;
        let of_index = index(pod).filter(|index| record.failed_indexes.contains(index));
        record.failure.or(of_index.map(|index| JobFailure::Index { index })).or_else(|| {
            let deadline = cluster.local(workload.job.as_ref()?.deadline?);
            match record.last_failure_of(pod) {
                failed if failed >= deadline => Some(JobFailure::DeadlineFirst),
                _ => (record.created(pod) >= deadline).then_some(JobFailure::DeadlineExceeded),
            }
        })
    }

    /// Returns the failure of a pod's Job if the Job's deadline passes before `ready`, the time at which the pod's
    /// replacement is Ready.
    pub fn deadline_before(&self, cluster: &Cluster, pod: &Pod, ready: Timestamp) -> Option<JobFailure> {
        let workload = job_of(cluster, pod)?;
        let deadline = cluster.local(workload.job.as_ref()?.deadline?);
        (self.jobs.contains_key(&workload.uid) && ready >= deadline).then_some(JobFailure::DeadlineExceeded)
    }

    /// Returns when the replacement of a pod is created: after the back-off of its Job. `None` if the pod has no Job,
    /// or has not failed.
    pub fn created(&self, cluster: &Cluster, pod: &Pod) -> Option<Timestamp> {
        let workload = job_of(cluster, pod)?;
        Some(self.jobs.get(&workload.uid)?.created(pod))
    }

    /// Returns the time until which the Job controller's finalizer keeps the object of a failed pod. With
    /// `backoffLimitPerIndex`, this is when the index has a new pod. `None` if the finalizer does not keep the object.
    pub fn keeps_until(&self, cluster: &Cluster, pod: &Pod) -> Option<Timestamp> {
        let workload = job_of(cluster, pod)?;
        let record = self.jobs.get(&workload.uid).filter(|record| record.counts_by_index(pod))?;
        self.failure(cluster, pod).is_none().then(|| record.created(pod))
    }
}

impl JobRecord {
    fn new(cluster: &Cluster, workload: &Workload) -> Self {
        let Some(job) = &workload.job else { return Self::default() };
        let failures = count_failures(cluster, workload, job);
        let recent = recent_failures(cluster, workload, job, failures);
        let mut record = Self { failures, recent, ..Self::default() };
        for pod in cluster.pods_owned_by(&workload.uid).filter(|pod| will_fail(cluster, pod)) {
            let limit = job.backoff_limit_per_index.and_then(|limit| Some((limit, index(pod)?)));
            if let Some((_, index)) = limit {
                record.indexes.entry(index).or_insert_with(|| IndexRecord::new(cluster, workload, pod));
            }
            let is_disrupted = pod.disruption_target.is_some();
            record.count(action(&job.rules, is_disrupted, &terminated(pod)), limit);
        }
        record
    }

    /// Counts a failed pod. `of_index` has the failure limit and the index of the pod, if its Job counts failures by
    /// index. A record of this index must exist.
    fn count(&mut self, action: PodFailureAction, of_index: Option<(i32, i32)>) {
        let counts = action != PodFailureAction::Ignore;
        self.recent = self.recent.saturating_add(1);
        self.failures = self.failures.saturating_add(i32::from(counts));
        if let Some((limit, index)) = of_index
            && let Some(record) = self.indexes.get_mut(&index)
        {
            record.counted = record.counted.saturating_add(i32::from(counts));
            record.all = record.all.saturating_add(1);
            if counts && (record.counted > limit || action == PodFailureAction::FailIndex) {
                self.failed_indexes.insert(index);
            }
        }
        if action == PodFailureAction::FailJob {
            self.failure = Some(JobFailure::PodFailurePolicy);
        }
    }

    /// Returns why the Job fails now, if it does (upstream `syncJob`).
    fn check(&self, workload: &Workload) -> Option<JobFailure> {
        let job = workload.job.as_ref()?;
        let (failures, limit) = (self.failures, job.backoff_limit);
        if failures > limit {
            return Some(JobFailure::BackoffLimitExceeded { failures, limit });
        }
        job.backoff_limit_per_index?;
        let new = i32::try_from(self.failed_indexes.len()).unwrap_or(i32::MAX);
        let failed = job.failed_indexes.saturating_add(new);
        if let Some(limit) = job.max_failed_indexes.filter(|limit| failed > *limit) {
            return Some(JobFailure::MaxFailedIndexesExceeded { failed, limit });
        }
        let ended = failed.saturating_add(job.completed_indexes);
        let are_all = job.completions.is_some_and(|all| ended >= all);
        (failed > 0 && are_all).then_some(JobFailure::FailedIndexes { failed })
    }

    fn counts_by_index(&self, pod: &Pod) -> bool {
        index(pod).is_some_and(|index| self.indexes.contains_key(&index))
    }

    fn last_failure_of(&self, pod: &Pod) -> Timestamp {
        let of_index = index(pod).and_then(|index| self.indexes.get(&index));
        of_index.map_or(self.last_failure, |of_index| of_index.last_failure)
    }

    fn created(&self, pod: &Pod) -> Timestamp {
        match index(pod).and_then(|index| self.indexes.get(&index)) {
            Some(of_index) => of_index.last_failure + back_off(of_index.all),
            None => self.last_failure + back_off(self.recent),
        }
    }
}

impl IndexRecord {
    /// Returns the failures of the pod's index before this pod fails. The Job controller keeps their number in the
    /// annotations of the pod, because the objects of failed pods are mostly gone (upstream
    /// `getNewIndexFailureCounts`).
    fn new(cluster: &Cluster, workload: &Workload, pod: &Pod) -> Self {
        if let Some(IndexFailures { counted, ignored }) = pod.index_failures() {
            return Self { counted, all: counted.saturating_add(ignored), ..Self::default() };
        }
        let is_failed = |other: &&Arc<Pod>| other.phase == Phase::Failed && index(other) == index(pod);
        let failed = cluster.pods_owned_by(&workload.uid).filter(is_failed).count();
        let failed = i32::try_from(failed).unwrap_or(i32::MAX);
        Self { counted: failed, all: failed, ..Self::default() }
    }
}

/// Returns whether a terminating pod of a Job counts as failed only later, when its kubelet has ended it. The Job
/// controller removes its finalizer from a pod that it has counted.
fn will_fail(cluster: &Cluster, pod: &Pod) -> bool {
    pod.termination.is_some()
        && !pod.is_finished()
        && pod.is_tracked_by_job()
        && pod.node.as_ref().is_some_and(|node| environment::has_running_kubelet(cluster, node))
}

/// Returns the failures of a Job so far (upstream `syncJob`). A failed pod without the finalizer is already counted in
/// the status, or the policy of the Job ignores it.
fn count_failures(cluster: &Cluster, workload: &Workload, job: &JobLimits) -> i32 {
    let is_new = |pod: &&Arc<Pod>| {
        let codes: Vec<(Name, i32)> = exits(pod).map(|exit| (exit.container.clone(), exit.code)).collect();
        pod.phase == Phase::Failed
            && pod.is_tracked_by_job()
            && !job.uncounted_failed.contains(&pod.uid)
            && action(&job.rules, pod.disruption_target.is_some(), &codes) != PodFailureAction::Ignore
    };
    let new = cluster.pods_owned_by(&workload.uid).filter(is_new).count();
    let beside = i32::try_from(new + job.uncounted_failed.len()).unwrap_or(i32::MAX);
    job.failed.saturating_add(beside)
}

/// Returns the failures of a Job since its last success. They decide the back-off, and ignored failures count too
/// (upstream `newBackoffRecord`). The Job controller keeps this number in memory; this function derives it from the
/// times of the finished pods.
fn recent_failures(cluster: &Cluster, workload: &Workload, job: &JobLimits, failures: i32) -> i32 {
    let finished = |phase: Phase| {
        let pods = cluster.pods_owned_by(&workload.uid).filter(move |pod| pod.phase == phase);
        pods.map(|pod| exits(pod).filter_map(|exit| exit.at).max().unwrap_or(pod.created))
    };
    let last_success = finished(Phase::Succeeded).max();
    let later = finished(Phase::Failed).filter(|at| last_success.is_none_or(|success| *at > success));
    let later = i32::try_from(later.count()).unwrap_or(i32::MAX);
    match last_success {
        Some(_) => later,
        None if job.succeeded == 0 => failures.max(later),
        // The pods that succeeded are gone, so it is not known which failures came after them.
        None => 0,
    }
}

/// Returns how the containers of a finished pod ended.
fn exits(pod: &Pod) -> impl Iterator<Item = &ContainerExit> {
    pod.ending.iter().flat_map(|ending| &ending.exits)
}

fn back_off(failures: i32) -> Span {
    let doublings = u32::try_from(failures.saturating_sub(1)).unwrap_or_default().min(10);
    (BACK_OFF * i64::from(1_u32 << doublings)).min(MAX_BACK_OFF)
}

/// Returns the exit codes of the pod's containers if SIGTERM ends all of them. Init containers have ended before.
fn terminated(pod: &Pod) -> Vec<(Name, i32)> {
    let runs = |container: &&ContainerResources| match container.role {
        ContainerRole::App | ContainerRole::Sidecar => true,
        ContainerRole::Init => false,
    };
    let running = pod.resources.kubelet.containers.iter().filter(runs);
    running.map(|container| (container.name.clone(), TERMINATED)).collect()
}

/// Returns the action of the first rule that matches a failed pod. `codes` has the names of its containers and the
/// codes with which they ended (upstream `matchPodFailurePolicy`).
fn action(rules: &[PodFailureRule], is_disrupted: bool, codes: &[(Name, i32)]) -> PodFailureAction {
    let matches = |rule: &ExitCodes| codes.iter().any(|(container, code)| rule.matches(container, *code));
    let by_code = |rule: &PodFailureRule| rule.on_exit_codes.as_ref().is_some_and(matches);
    let matching = rules.iter().find(|rule| (rule.on_disruption && is_disrupted) || by_code(rule));
    matching.map_or(PodFailureAction::Count, |rule| rule.action)
}

/// Returns whether the pod is unfinished and its Job has `podReplacementPolicy: Failed`. The Job controller then keeps
/// the object of the deleted pod until its phase is Failed or Succeeded. Only a kubelet or the pod garbage collector
/// sets this phase.
pub(super) fn keeps_unfinished(cluster: &Cluster, pod: &Pod) -> bool {
    !pod.is_finished()
        && pod.is_tracked_by_job()
        && job_of(cluster, pod).is_some_and(|workload| workload.replaces_only_failed)
}

/// Returns whether the back-off of a pod's replacement counts from the end of the pod's containers, if a kubelet ends
/// them. It does with `backoffLimitPerIndex`, because the Job controller then recomputes the back-off from the failed
/// pod.
pub(super) fn waits_for_end(cluster: &Cluster, pod: &Pod) -> bool {
    let counts_by_index = |workload: Arc<Workload>| {
        workload.job.as_ref().is_some_and(|job| job.backoff_limit_per_index.is_some())
    };
    index(pod).is_some() && job_of(cluster, pod).is_some_and(counts_by_index)
}

/// Returns when the back-off of a Job starts for a deleted pod that no kubelet has ended: when the pod became not
/// Ready or, if that is not known, when its deletion started (upstream `getFinishedTime`).
pub(super) fn finished(cluster: &Cluster, pod: &Pod, deleted: Timestamp) -> Timestamp {
    let unready = pod.ready.as_ref().filter(|ready| ready.status == ConditionStatus::False);
    let since = unready.and_then(|ready| ready.last_transition);
    since.map_or(deleted, |since| cluster.local(since).min(deleted))
}

/// Index of a pod of an indexed Job.
fn index(pod: &Pod) -> Option<i32> {
    pod.labels.get(INDEX)?.parse().ok()
}

/// Consequences for Jobs whose pods leave at known times.
#[derive(Clone, Debug, Default)]
pub struct JobConsequences {
    /// For each pod that is not replaced, the reason why its Job or its index fails.
    failures: BTreeMap<Key, JobFailure>,
    /// For each pod that is replaced, the time at which its replacement is created.
    created: BTreeMap<Key, Timestamp>,
}

impl JobConsequences {
    /// Computes the consequences of evictions by taints, or of removals by the pod garbage collector. Both mark the
    /// pods as DisruptionTarget.
    pub fn new(cluster: &Cluster, departures: &[Departure]) -> Self {
        Self::from_departures(cluster, departures, true)
    }

    /// Computes the consequences of deletions. Unlike an eviction (upstream `addConditionAndDeletePod`), a deletion
    /// does not mark the pod as DisruptionTarget, so other rules of a `podFailurePolicy` match.
    pub fn for_deletions(cluster: &Cluster, departures: &[Departure]) -> Self {
        Self::from_departures(cluster, departures, false)
    }

    fn from_departures(cluster: &Cluster, departures: &[Departure], are_disrupted: bool) -> Self {
        let failed_at = |departure: &Departure| match owner::recreation(cluster, &departure.pod) {
            Recreation::Immediately => Some(departure.leaves),
            Recreation::WhenGone => departure.gone,
            Recreation::OnSameNode | Recreation::Never(_) | Recreation::Unknown => None,
        };
        let mut failures: Vec<(Timestamp, &Departure)> = departures
            .iter()
            .filter(|Departure { pod, .. }| pod.termination.is_none() && job_of(cluster, pod).is_some())
            .filter_map(|departure| Some((failed_at(departure)?, departure)))
            .collect();
        failures.sort_by_key(|(at, departure)| (*at, departure.pod.key.clone()));
        let mut ledger = JobLedger::default();
        for (at, Departure { pod, unready, .. }) in &failures {
            let finished = unready.unwrap_or_else(|| finished(cluster, pod, *at));
            ledger.on_failure(cluster, pod, are_disrupted, finished.min(*at));
        }
        let mut consequences = Self::default();
        for (at, Departure { pod, .. }) in failures {
            if let Some(failure) = ledger.failure(cluster, pod) {
                consequences.failures.insert(pod.key.clone(), failure);
            } else if let Some(created) = ledger.created(cluster, pod) {
                consequences.created.insert(pod.key.clone(), created.max(at));
            }
        }
        consequences
    }

    /// Returns when the replacement of a Job's pod is created; `None` if the pod is not replaced, or has no Job.
    pub fn created(&self, pod: &Key) -> Option<Timestamp> {
        self.created.get(pod).copied()
    }

    /// Returns why a pod is not replaced; `None` if the pod is replaced, or has no Job.
    pub fn failure(&self, pod: &Key) -> Option<JobFailure> {
        self.failures.get(pod).copied()
    }

    /// Returns how a pod is recreated, which is never if its Job or its index fails.
    pub fn recreation(&self, cluster: &Cluster, pod: &Pod) -> Recreation {
        let usual = || owner::recreation(cluster, pod);
        self.failure(&pod.key).map_or_else(usual, |why| Recreation::Never(NotRecreated::JobFails(why)))
    }

    /// Returns when the replacement of a pod is created if the pod leaves at `leaves` and is gone at `gone`. `None` if
    /// it is never created, or not within the forecast.
    pub fn creation(
        &self,
        cluster: &Cluster,
        pod: &Pod,
        leaves: Timestamp,
        gone: Option<Timestamp>,
    ) -> Option<Timestamp> {
        let usual = match self.recreation(cluster, pod) {
            Recreation::Immediately => Some(leaves),
            Recreation::WhenGone => gone,
            Recreation::OnSameNode | Recreation::Never(_) | Recreation::Unknown => None,
        };
        usual.map(|at| self.created.get(&pod.key).copied().unwrap_or(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{
        Change, Condition, KubeletSpec, Labels, Node, ObjectEvent, Owner, OwnerKind, PodEnding,
        PodFailureAction::Ignore, PodResources, READY, Termination, WorkloadKind, pod::JOB_TRACKING,
    };

    /// A cluster with one Job that has `pods` running pods, indexed from 0.
    fn cluster(job: JobLimits, pods: i32, waits_for_old: bool) -> Cluster {
        let (key, uid) = (Key::new("batch", "train"), Uid::from("job"));
        let workload = Workload {
            kind: WorkloadKind::Job,
            key,
            uid: uid.clone(),
            version: Default::default(),
            replicas: Some(pods),
            selector: None,
            owner: None,
            replaces_only_failed: waits_for_old,
            is_recreated: false,
            reboot_locks: Vec::new(),
            stateful: None,
            stage: WorkloadStage::Active,
            job: Some(Box::new(job)),
            template: None,
        };
        let owner = Owner { kind: OwnerKind::Workload(WorkloadKind::Job), name: "train".into(), uid };
        let mut cluster = Cluster::default();
        let mut apply = |change| cluster.apply(change, &mut Vec::new());
        apply(Change::Workload(WorkloadKind::Job, ObjectEvent::ListStarted));
        apply(Change::Workload(WorkloadKind::Job, ObjectEvent::Listed(workload)));
        apply(Change::Workload(WorkloadKind::Job, ObjectEvent::ListDone));
        apply(Change::Pod(ObjectEvent::ListStarted));
        for number in 0..pods {
            let labels: Labels = [(INDEX.into(), number.to_string().as_str().into())].into_iter().collect();
            let container = |name: &str, role| ContainerResources {
                name: name.into(),
                role,
                ..ContainerResources::default()
            };
            let containers = [container("setup", ContainerRole::Init), container("main", ContainerRole::App)];
            let kubelet = KubeletSpec { containers: containers.into(), ..KubeletSpec::default() };
            let pod = Pod {
                key: Key::new("batch", &format!("train-{number}")),
                owner: Some(owner.clone().into()),
                phase: Phase::Running,
                labels,
                resources: Arc::new(PodResources { kubelet, ..PodResources::default() }),
                ..Pod::default()
            };
            apply(Change::Pod(ObjectEvent::Listed(pod)));
        }
        apply(Change::Pod(ObjectEvent::ListDone));
        cluster
    }

    /// The consequences if all pods leave at second 100 and are gone ten seconds later.
    fn consequences(cluster: &Cluster) -> JobConsequences {
        let (leaves, gone) = (Timestamp::from_secs(100), Some(Timestamp::from_secs(110)));
        let departures: Vec<Departure> = cluster
            .pods()
            .iter()
            .map(|pod| Departure { pod: pod.clone(), leaves, gone, unready: None })
            .collect();
        JobConsequences::new(cluster, &departures)
    }

    fn of(consequences: &JobConsequences, number: i32) -> Result<Option<i64>, JobFailure> {
        let key = Key::new("batch", &format!("train-{number}"));
        match consequences.failure(&key) {
            Some(failure) => Err(failure),
            None => Ok(consequences.created(&key).map(|at| at.since(Timestamp::from_secs(100)).as_secs())),
        }
    }

    #[test]
    fn three_pods_at_once_wait_for_the_back_off_of_three_failures() {
        let all = consequences(&cluster(JobLimits { backoff_limit: 6, ..JobLimits::default() }, 3, false));
        assert_eq!([0, 1, 2].map(|number| of(&all, number)), [Ok(Some(40)); 3]);
        let later = consequences(&cluster(
            JobLimits { backoff_limit: 6, failed: 5, ..JobLimits::default() },
            1,
            false,
        ));
        assert_eq!(of(&later, 0), Ok(Some(320)), "five failures before it");
        let capped = consequences(&cluster(
            JobLimits { backoff_limit: 60, failed: 20, ..JobLimits::default() },
            1,
            false,
        ));
        assert_eq!(of(&capped, 0), Ok(Some(600)));
        let fresh = JobLimits { backoff_limit: 60, failed: 20, succeeded: 1, ..JobLimits::default() };
        assert_eq!(of(&consequences(&cluster(fresh, 1, false)), 0), Ok(Some(10)), "a success resets it");
    }

    #[test]
    fn one_failure_too_many_fails_the_job_for_all_its_pods() {
        let all = consequences(&cluster(JobLimits { backoff_limit: 1, ..JobLimits::default() }, 3, false));
        let failure = JobFailure::BackoffLimitExceeded { failures: 3, limit: 1 };
        assert_eq!([0, 1, 2].map(|number| of(&all, number)), [Err(failure); 3]);
    }

    /// Upstream of 1.37, `syncJob` looks for failures before `manageJob` deletes the pods of a suspended Job.
    #[test]
    fn an_eviction_fails_a_suspended_job_that_still_has_its_pod() {
        let job = JobLimits { is_suspended: true, ..JobLimits::default() };
        let failure = JobFailure::BackoffLimitExceeded { failures: 1, limit: 0 };
        assert_eq!(of(&consequences(&cluster(job, 1, false)), 0), Err(failure));
    }

    #[test]
    fn each_index_has_its_own_limit_and_the_job_a_limit_of_indexes() {
        let job = JobLimits { backoff_limit: i32::MAX, completions: Some(9), ..JobLimits::default() };
        let indexed = |limit, max| JobLimits {
            backoff_limit_per_index: Some(limit),
            max_failed_indexes: max,
            ..job.clone()
        };
        let once = consequences(&cluster(indexed(1, None), 2, false));
        assert_eq!([0, 1].map(|number| of(&once, number)), [Ok(Some(10)); 2], "each waits for itself alone");
        let never = consequences(&cluster(indexed(0, None), 2, false));
        assert_eq!(of(&never, 1), Err(JobFailure::Index { index: 1 }));
        let limited = consequences(&cluster(indexed(0, Some(1)), 2, false));
        assert_eq!(of(&limited, 0), Err(JobFailure::MaxFailedIndexesExceeded { failed: 2, limit: 1 }));
        let last = JobLimits { completed_indexes: 7, ..indexed(0, None) };
        assert_eq!(
            of(&consequences(&cluster(last, 2, false)), 0),
            Err(JobFailure::FailedIndexes { failed: 2 })
        );
    }

    /// Changes the pod `train-{number}`.
    fn change(cluster: &mut Cluster, number: i32, change: impl FnOnce(&mut Pod)) {
        let mut pod = (**cluster.pod(&Key::new("batch", &format!("train-{number}"))).expect("a pod")).clone();
        change(&mut pod);
        cluster.apply(Change::Pod(ObjectEvent::Applied(pod)), &mut Vec::new());
    }

    /// The pods that failed earlier are gone, as after evictions: kubernetes 1.37 `indexed_job_utils.go`,
    /// `isIndexFailed` and `getIndexAbsoluteFailureCount`.
    #[test]
    fn the_failures_of_an_index_are_those_that_the_annotations_of_its_pod_count() {
        let of_limit = |limit, counted, ignored| {
            let job = JobLimits {
                backoff_limit: i32::MAX,
                backoff_limit_per_index: Some(limit),
                completions: Some(9),
                ..JobLimits::default()
            };
            let mut cluster = cluster(job, 1, false);
            let index_failures = Some(IndexFailures { counted, ignored });
            let ending = PodEnding { index_failures, ..PodEnding::default() };
            change(&mut cluster, 0, |pod| pod.ending = Some(ending.into()));
            of(&consequences(&cluster), 0)
        };
        assert_eq!(of_limit(1, 0, 0), Ok(Some(10)));
        assert_eq!(of_limit(1, 1, 0), Err(JobFailure::Index { index: 0 }));
        assert_eq!(of_limit(2, 1, 0), Ok(Some(20)), "its second failure");
        assert_eq!(of_limit(2, 1, 2), Ok(Some(80)), "ignored failures prolong the back-off");
    }

    /// Kubernetes 1.37 `job_controller.go`, `syncJob`: `exceedsBackoffLimit` does not depend on `backoffLimitPerIndex`.
    #[test]
    fn the_limit_of_the_job_holds_beside_the_limit_of_each_index() {
        let job = JobLimits {
            backoff_limit: 1,
            backoff_limit_per_index: Some(5),
            completions: Some(9),
            ..JobLimits::default()
        };
        let failure = JobFailure::BackoffLimitExceeded { failures: 2, limit: 1 };
        assert_eq!(of(&consequences(&cluster(job.clone(), 2, false)), 0), Err(failure));
        assert_eq!(of(&consequences(&cluster(job, 1, false)), 0), Ok(Some(10)));
    }

    /// Kubernetes 1.37 `job_controller.go`, `isPodFailed`: with `podReplacementPolicy: Failed` a terminating pod counts
    /// once its phase is Failed, and has its finalizer until then.
    #[test]
    fn a_terminating_pod_that_is_not_counted_yet_is_a_failure_to_come() {
        let limited = |limit| {
            let job = JobLimits { backoff_limit: limit, ..JobLimits::default() };
            let mut cluster = cluster(job, 2, true);
            let ready =
                Condition { kind: READY.into(), status: ConditionStatus::True, ..Condition::default() };
            let node = Node { name: "n2".into(), conditions: [ready].into(), ..Node::default() };
            cluster.apply(Change::Node(ObjectEvent::Applied(node)), &mut Vec::new());
            let deadline = kordon_time::ClusterTime::new(Timestamp::from_secs(120));
            change(&mut cluster, 1, |pod| {
                pod.node = Some("n2".into());
                pod.finalizers = [JOB_TRACKING.into()].into();
                pod.termination = Some(Box::new(Termination { deadline, grace: Span::from_secs(30) }));
            });
            cluster
        };
        let failure = JobFailure::BackoffLimitExceeded { failures: 2, limit: 1 };
        assert_eq!(of(&consequences(&limited(1)), 0), Err(failure));
        assert_eq!(
            of(&consequences(&limited(6)), 0),
            Ok(Some(30)),
            "gone after 10 s, and the back-off of two"
        );
        let mut counted = limited(1);
        change(&mut counted, 1, |pod| pod.finalizers = Default::default());
        assert_eq!(of(&consequences(&counted), 0), Ok(Some(20)), "counted in the status of the Job");
    }

    #[test]
    fn the_first_rule_that_matches_a_failed_pod_decides() {
        let rule =
            |action, on_disruption, on_exit_codes| PodFailureRule { action, on_disruption, on_exit_codes };
        let with = |rules| cluster(JobLimits { backoff_limit: 0, rules, ..JobLimits::default() }, 1, true);
        let ignored = consequences(&with(vec![rule(Ignore, true, None)]));
        assert_eq!(
            of(&ignored, 0),
            Ok(Some(20)),
            "created when the old pod is gone and its back-off is over"
        );
        let codes = |is_in, values: &[i32]| Some(ExitCodes { is_in, values: values.into(), container: None });
        let other = consequences(&with(vec![rule(Ignore, false, codes(true, &[42]))]));
        assert_eq!(of(&other, 0), Err(JobFailure::BackoffLimitExceeded { failures: 1, limit: 0 }));
        let fatal =
            with(vec![rule(PodFailureAction::FailJob, false, codes(false, &[42])), rule(Ignore, true, None)]);
        assert_eq!(of(&consequences(&fatal), 0), Err(JobFailure::PodFailurePolicy));
    }

    /// Kubernetes 1.37 `job/pod_failure_policy.go`, `getMatchingContainerFromList`.
    #[test]
    fn a_rule_for_one_container_matches_no_other() {
        let named = |name: &str| {
            let codes = ExitCodes { is_in: false, values: vec![1], container: Some(name.into()) };
            let (action, on_exit_codes) = (PodFailureAction::FailJob, Some(codes));
            let rules = vec![PodFailureRule { action, on_disruption: false, on_exit_codes }];
            let limits = JobLimits { backoff_limit: 6, rules, ..JobLimits::default() };
            of(&consequences(&cluster(limits, 1, false)), 0)
        };
        assert_eq!(named("main"), Err(JobFailure::PodFailurePolicy));
        assert_eq!(named("setup"), Ok(Some(10)), "the init container has ended with 0");
        assert_eq!(named("other"), Ok(Some(10)));
    }

    /// Adds a finished pod without the Job controller's finalizer, whose container ended at `second`.
    fn add_finished(cluster: &mut Cluster, name: &str, phase: Phase, second: i64) {
        let job = cluster.pod(&Key::new("batch", "train-0")).and_then(|pod| pod.owner.clone());
        let at = Some(kordon_time::ClusterTime::new(Timestamp::from_secs(second)));
        let exit = ContainerExit { at, code: 1, ..ContainerExit::default() };
        let ending = PodEnding { exits: [exit].into(), ..PodEnding::default() };
        let (key, ending) = (Key::new("batch", name), Some(ending.into()));
        let pod = Pod { key, owner: job, phase, ending, uid: Uid::from(name), ..Pod::default() };
        cluster.apply(Change::Pod(ObjectEvent::Applied(pod)), &mut Vec::new());
    }

    /// Kubernetes 1.37 `job_controller.go`, `getValidPodsWithFilter`: pods without the finalizer are not counted again.
    #[test]
    fn failed_pods_that_a_policy_ignored_are_no_failures() {
        let rules = vec![PodFailureRule { action: Ignore, on_disruption: true, on_exit_codes: None }];
        let limits = JobLimits { backoff_limit: 1, rules, ..JobLimits::default() };
        let mut old = cluster(limits.clone(), 1, false);
        for name in ["a", "b", "c"] {
            add_finished(&mut old, name, Phase::Failed, 10);
        }
        assert_eq!(of(&consequences(&old), 0), Ok(Some(80)), "its back-off is that of four failures");
        let mut new = old.clone();
        for name in ["a", "b"] {
            let mut pod = (**new.pod(&Key::new("batch", name)).expect("added")).clone();
            pod.finalizers = [JOB_TRACKING.into()].into();
            new.apply(Change::Pod(ObjectEvent::Applied(pod)), &mut Vec::new());
        }
        let failure = JobFailure::BackoffLimitExceeded { failures: 2, limit: 1 };
        assert_eq!(
            of(&consequences(&new), 0),
            Err(failure),
            "they failed by themselves, and are not counted yet"
        );
    }

    /// Kubernetes 1.37 `job_controller.go`, `syncJob`, adds up `status.failed` and the uncounted pods.
    #[test]
    fn failed_pods_that_the_status_does_not_count_yet_are_failures() {
        let job = JobLimits {
            backoff_limit: 2,
            failed: 1,
            uncounted_failed: [Uid::from("a")].into(),
            ..JobLimits::default()
        };
        let failure = JobFailure::BackoffLimitExceeded { failures: 3, limit: 2 };
        assert_eq!(of(&consequences(&cluster(job, 1, false)), 0), Err(failure));
    }

    /// Kubernetes 1.37 `job/backoff_utils.go`, `newBackoffRecord`, counts only the failures after the last success.
    #[test]
    fn the_back_off_counts_the_failures_after_the_last_success() {
        let job = JobLimits { backoff_limit: 10, succeeded: 1, failed: 3, ..JobLimits::default() };
        let mut cluster = cluster(job, 1, false);
        for (name, phase, second) in [
            ("a", Phase::Failed, 10),
            ("b", Phase::Succeeded, 20),
            ("c", Phase::Failed, 30),
            ("d", Phase::Failed, 40),
        ] {
            add_finished(&mut cluster, name, phase, second);
        }
        assert_eq!(of(&consequences(&cluster), 0), Ok(Some(40)), "the third in a row");
    }

    #[test]
    fn a_deadline_before_the_replacement_fails_the_job() {
        let deadline = Some(kordon_time::ClusterTime::new(Timestamp::from_secs(105)));
        let all = consequences(&cluster(
            JobLimits { backoff_limit: 6, deadline, ..JobLimits::default() },
            1,
            false,
        ));
        assert_eq!(of(&all, 0), Err(JobFailure::DeadlineExceeded));
        let deadline = Some(kordon_time::ClusterTime::new(Timestamp::from_secs(50)));
        let before = JobLimits { backoff_limit: 6, deadline, ..JobLimits::default() };
        assert_eq!(of(&consequences(&cluster(before, 1, false)), 0), Err(JobFailure::DeadlineFirst));
    }
}
