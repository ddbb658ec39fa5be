//! Consequences of the failure of a Job, for its pods and for its owner.

use std::{fmt, sync::Arc};

use super::{owner, words::counted};
use crate::cluster::{Cluster, CronJob, FeedKind, Key, Name, Owner, Pod, Workload, WorkloadKind};

/// The owner of a Job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JobOwner {
    /// The owner starts another Job at its next scheduled time, unless it is suspended.
    CronJob { name: Name, next: NextJob },
    /// The JobSet restarts all its Jobs, restarts only this Job, or fails, depending on its failure policy
    /// (`kubernetes-sigs/jobset/pkg/controllers/failure_policy.go`). `others` is the number of live pods of its other
    /// Jobs.
    JobSet { name: Name, others: usize },
    /// The MPIJob fails if the Job of its launcher fails
    /// (`kubeflow/mpi-operator/pkg/controller/mpi_job_controller.go`).
    MpiJob { name: Name },
    /// An owner of another kind. It is not known what this owner does.
    Other { kind: Name, name: Name },
}

impl JobOwner {
    /// Returns the owner of a Job, if it has one.
    pub fn for_job(cluster: &Cluster, job: &Workload) -> Option<Self> {
        let owner = job.owner.as_ref()?;
        let name = owner.name.clone();
        Some(match &owner.kind {
            _ if CronJob::is_owner(owner) => Self::CronJob { name, next: NextJob::new(cluster, job, owner) },
            kind if kind.is("JobSet", "jobset.x-k8s.io") => {
                let jobs = cluster.workloads_in(WorkloadKind::Job, &job.key.namespace);
                let is_sibling = |other: &&Arc<Workload>| {
                    let of = other.owner.as_ref();
                    other.uid != job.uid && of.is_some_and(|of| of.uid == owner.uid)
                };
                let others = jobs.filter(is_sibling).map(|job| live_pods(cluster, job).count()).sum();
                Self::JobSet { name, others }
            }
            kind if kind.is("MPIJob", "kubeflow.org") => Self::MpiJob { name },
            kind => Self::Other { kind: kind.as_str().into(), name },
        })
    }
}

/// When a CronJob starts its next Job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NextJob {
    /// At the next time of `spec.schedule`. `time_zone` is empty for the time zone of kube-controller-manager.
    Scheduled {
        schedule: Name,
        time_zone: Name,
    },
    Suspended,
    /// The CronJob does not exist any more.
    OwnerGone,
    /// CronJobs are not known.
    Unknown,
}

impl NextJob {
    /// Returns when the CronJob that owns a Job starts its next Job.
    fn new(cluster: &Cluster, job: &Workload, owner: &Owner) -> Self {
        let key = Key { namespace: job.key.namespace.clone(), name: owner.name.clone() };
        match cluster.cron_jobs().get(&key).filter(|cron_job| cron_job.uid == owner.uid) {
            Some(cron_job) if cron_job.is_suspended => Self::Suspended,
            Some(cron_job) => {
                Self::Scheduled { schedule: cron_job.schedule.clone(), time_zone: cron_job.time_zone.clone() }
            }
            None if cluster.known(FeedKind::CronJobs).is_known() => Self::OwnerGone,
            None => Self::Unknown,
        }
    }
}

impl fmt::Display for JobOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CronJob { name, next: NextJob::Unknown } => {
                write!(f, "unless it is suspended, CronJob {name} starts another Job at its next time")
            }
            Self::CronJob { name, next: NextJob::Scheduled { schedule, time_zone } } => {
                write!(f, "CronJob {name} starts another Job by its schedule: {schedule}")?;
                if time_zone.is_empty() { Ok(()) } else { write!(f, " ({time_zone})") }
            }
            Self::CronJob { name, next: NextJob::Suspended } => {
                write!(f, "CronJob {name} is suspended and starts no other Job")
            }
            Self::CronJob { name, next: NextJob::OwnerGone } => {
                write!(f, "CronJob {name} is gone and starts no other Job")
            }
            Self::JobSet { name, others } => {
                write!(
                    f,
                    "JobSet {name} restarts all its Jobs, restarts this one, or fails, as its failurePolicy says"
                )?;
                match others {
                    0 => Ok(()),
                    others => {
                        let pods = counted(*others, "pod runs", "pods run");
                        write!(f, "; {pods} in its other Jobs")
                    }
                }
            }
            Self::MpiJob { name } => write!(f, "MPIJob {name} fails with it"),
            Self::Other { kind, name } => write!(f, "what {kind} {name} does then is not known"),
        }
    }
}

/// Consequences of the failure of a Job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailedJob {
    /// Number of live pods of the Job on nodes other than the pod's node. The Job controller deletes these pods.
    pub elsewhere: usize,
    pub owner: Option<JobOwner>,
}

impl FailedJob {
    /// Returns the consequences of a failure of the pod's Job.
    pub fn new(cluster: &Cluster, pod: &Pod) -> Self {
        let Some(job) = owner::job_of(cluster, pod) else { return Self::default() };
        let is_elsewhere = |other: &&Arc<Pod>| other.node.is_some() && other.node != pod.node;
        Self {
            elsewhere: live_pods(cluster, &job).filter(is_elsewhere).count(),
            owner: JobOwner::for_job(cluster, &job),
        }
    }
}

/// Returns the pods of a Job that have neither finished nor started to terminate.
pub(super) fn live_pods<'a>(cluster: &'a Cluster, job: &Workload) -> impl Iterator<Item = &'a Arc<Pod>> {
    let lives = |pod: &&Arc<Pod>| pod.lives();
    cluster.pods_owned_by(&job.uid).filter(lives)
}
