//! CronJobs.

use minicbor::{Decode, Encode};

use super::{
    encoding::EncodingContext,
    names::{Key, Name},
    owner::{Owner, WorkloadKind},
    table::{TableObject, Version},
    uid::Uid,
    workload::{Workload, WorkloadStage},
};

/// A CronJob, cut down to the fields that say when it starts its next Job.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct CronJob {
    #[n(0)]
    pub key: Key,
    #[n(1)]
    pub uid: Uid,
    #[n(2)]
    pub version: Version,
    /// `spec.schedule`, such as `0 3 * * *`.
    #[n(3)]
    pub schedule: Name,
    /// `spec.timeZone`; empty for the time zone of kube-controller-manager.
    #[n(4)]
    pub time_zone: Name,
    #[n(5)]
    pub is_suspended: bool,
}

impl CronJob {
    /// Whether the owner of a Job is a CronJob.
    pub fn is_owner(owner: &Owner) -> bool {
        owner.kind.is("CronJob", "batch")
    }

    /// Whether a workload is a Job that a CronJob started and that has not finished.
    pub(super) fn has_started(workload: &Workload) -> bool {
        workload.kind == WorkloadKind::Job
            && workload.stage == WorkloadStage::Active
            && workload.owner.as_ref().is_some_and(Self::is_owner)
    }
}

impl TableObject for CronJob {
    type Key = Key;
    fn key(&self) -> Key {
        self.key.clone()
    }
    fn version(&self) -> Version {
        self.version
    }
}
