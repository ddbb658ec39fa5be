//! Reasons why a Job fails.

use std::fmt;

use crate::cluster::JobLimits;

/// Why a Job, or an index of it, fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JobFailure {
    /// The Job has had more failures than `backoffLimit`.
    BackoffLimitExceeded { failures: i32, limit: i32 },
    /// One index has had more failures than `backoffLimitPerIndex`, or `podFailurePolicy` fails the index. The Job
    /// continues.
    Index { index: i32 },
    /// More indexes than `maxFailedIndexes` have failed.
    MaxFailedIndexesExceeded { failed: i32, limit: i32 },
    /// Every index has completed or failed, and some have failed.
    FailedIndexes { failed: i32 },
    /// A rule of `podFailurePolicy` fails the Job.
    PodFailurePolicy,
    /// The deadline of the Job passes before the replacement of the pod is Ready.
    DeadlineExceeded,
    /// The deadline of the Job passes before the pod fails, so the Job fails in any case.
    DeadlineFirst,
    /// The Job has failed for another reason.
    Other,
}

impl JobFailure {
    /// Returns why a Job has failed, according to its status; `None` if it has not failed.
    pub fn from_status(job: &JobLimits) -> Option<Self> {
        Some(match job.failure.as_ref()?.as_str() {
            "BackoffLimitExceeded" => {
                Self::BackoffLimitExceeded { failures: job.failed, limit: job.backoff_limit }
            }
            "MaxFailedIndexesExceeded" => Self::MaxFailedIndexesExceeded {
                failed: job.failed_indexes,
                limit: job.max_failed_indexes.unwrap_or_default(),
            },
            "FailedIndexes" => Self::FailedIndexes { failed: job.failed_indexes },
            "PodFailurePolicy" => Self::PodFailurePolicy,
            "DeadlineExceeded" => Self::DeadlineExceeded,
            _ => Self::Other,
        })
    }

    /// Stable name: the reason in the Job's status.
    pub const fn word(self) -> &'static str {
        match self {
            Self::BackoffLimitExceeded { .. } => "BackoffLimitExceeded",
            Self::Index { .. } => "IndexFailed",
            Self::MaxFailedIndexesExceeded { .. } => "MaxFailedIndexesExceeded",
            Self::FailedIndexes { .. } => "FailedIndexes",
            Self::PodFailurePolicy => "PodFailurePolicy",
            Self::DeadlineExceeded | Self::DeadlineFirst => "DeadlineExceeded",
            Self::Other => "JobFailed",
        }
    }

    /// Whether the whole Job fails.
    pub const fn is_of_job(self) -> bool {
        !matches!(self, Self::Index { .. })
    }
}

impl fmt::Display for JobFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |number: i32| if number == 1 { "" } else { "s" };
        match self {
            Self::BackoffLimitExceeded { failures, limit } => {
                write!(f, "BackoffLimitExceeded: {failures} failure{}, limit {limit}", plural(*failures))
            }
            Self::Index { index } => write!(f, "index {index} fails for good"),
            Self::MaxFailedIndexesExceeded { failed, limit } => {
                write!(f, "MaxFailedIndexesExceeded: {failed} failed, limit {limit}")
            }
            Self::FailedIndexes { failed } => {
                write!(
                    f,
                    "FailedIndexes: {failed} index{} failed for good",
                    if *failed == 1 { "" } else { "es" }
                )
            }
            Self::PodFailurePolicy => f.write_str("PodFailurePolicy: a rule of it fails the Job"),
            Self::DeadlineExceeded => f.write_str("DeadlineExceeded before the pod is replaced"),
            Self::DeadlineFirst => {
                f.write_str("DeadlineExceeded before the pod leaves: its Job fails in any case")
            }
            Self::Other => f.write_str("it has failed"),
        }
    }
}
