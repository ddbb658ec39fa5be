//! Jobs: how many failures they allow, and how many they have had.

use minicbor::{Decode, Encode};

use super::{encoding::EncodingContext, names::Name, uid::Uid};
use kordon_time::ClusterTime;

/// The fields of a Job that decide whether a failed pod is replaced, and when.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct JobLimits {
    /// `spec.completions`; none for a Job that is a work queue.
    #[n(0)]
    pub completions: Option<i32>,
    /// `spec.backoffLimit`.
    #[n(1)]
    pub backoff_limit: i32,
    /// `spec.backoffLimitPerIndex`.
    #[n(2)]
    pub backoff_limit_per_index: Option<i32>,
    /// `spec.maxFailedIndexes`.
    #[n(3)]
    pub max_failed_indexes: Option<i32>,
    #[n(4)]
    pub is_suspended: bool,
    /// `spec.managedBy`; none for the built-in controller.
    #[n(5)]
    pub managed_by: Option<Name>,
    /// `status.startTime` plus `spec.activeDeadlineSeconds`.
    #[n(6)]
    pub deadline: Option<ClusterTime>,
    /// `spec.podFailurePolicy.rules`.
    #[n(7)]
    pub rules: Vec<PodFailureRule>,
    #[n(8)]
    pub succeeded: i32,
    #[n(9)]
    pub failed: i32,
    /// Number of indexes in `status.completedIndexes`.
    #[n(10)]
    pub completed_indexes: i32,
    /// Number of indexes in `status.failedIndexes`.
    #[n(11)]
    pub failed_indexes: i32,
    /// The reason of the condition Failed or FailureTarget, if the Job has failed.
    #[n(12)]
    pub failure: Option<Name>,
    /// `status.uncountedTerminatedPods.failed`: failed pods that `status.failed` does not count yet.
    #[cbor(n(13), default)]
    pub uncounted_failed: Box<[Uid]>,
}

/// A rule of `spec.podFailurePolicy`. The first rule that matches a failed pod decides.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct PodFailureRule {
    #[n(0)]
    pub action: PodFailureAction,
    /// Whether the rule matches pods with the condition DisruptionTarget.
    #[n(1)]
    pub on_disruption: bool,
    /// The exit codes that the rule matches.
    #[n(2)]
    pub on_exit_codes: Option<ExitCodes>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum PodFailureAction {
    /// The failure counts towards the limits. This is also what happens without a matching rule.
    #[default]
    #[n(0)]
    Count,
    #[n(1)]
    Ignore,
    #[n(2)]
    FailIndex,
    #[n(3)]
    FailJob,
}

/// Exit codes that a rule matches; a code of 0 never matches.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct ExitCodes {
    /// Whether the rule matches the codes in `values` (In), or all others (NotIn).
    #[n(0)]
    pub is_in: bool,
    #[n(1)]
    pub values: Vec<i32>,
    /// `containerName`: the only container that the rule matches; `None` for all containers and init containers.
    #[n(2)]
    pub container: Option<Name>,
}

impl ExitCodes {
    /// Whether the rule matches a container that ended with this code (upstream `getMatchingContainerFromList`).
    pub fn matches(&self, container: &Name, code: i32) -> bool {
        let is_named = self.container.as_ref().is_none_or(|name| name == container);
        is_named && code != 0 && self.values.contains(&code) == self.is_in
    }
}

impl JobLimits {
    /// Returns how many pods the Job wants while `live` of its pods are alive (upstream `manageJob`). `parallelism` is
    /// the Job's `spec.parallelism`.
    pub fn wanted(&self, parallelism: i32, live: i32) -> i32 {
        if self.is_suspended {
            return 0;
        }
        match self.completions {
            Some(completions) => parallelism.min(completions.saturating_sub(self.succeeded)),
            // Once a pod of a work queue has succeeded, no new pod is created.
            None if self.succeeded > 0 => live.min(parallelism),
            None => parallelism,
        }
    }
}

/// Returns the number of indexes in a text such as `1,3-5`; malformed parts are not counted.
pub fn count_indexes(text: &str) -> i32 {
    let count = |part: &str| match part.split_once('-') {
        Some((first, last)) => last.parse::<i32>().ok()?.checked_sub(first.parse().ok()?)?.checked_add(1),
        None => part.parse::<i32>().ok().map(|_| 1),
    };
    text.split(',').filter_map(count).filter(|count| *count > 0).fold(0, i32::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_counted_in_the_notation_of_the_status() {
        assert_eq!((count_indexes(""), count_indexes("1,3-5,7"), count_indexes("x,4-,5-3,")), (0, 5, 0));
    }

    #[test]
    fn a_job_wants_no_more_pods_than_it_needs_to_complete() {
        let job = JobLimits { completions: Some(5), succeeded: 4, ..JobLimits::default() };
        assert_eq!(job.wanted(3, 2), 1);
        assert_eq!(JobLimits { completions: None, succeeded: 1, ..JobLimits::default() }.wanted(3, 2), 2);
        assert_eq!(JobLimits { is_suspended: true, ..job }.wanted(3, 2), 0);
    }
}
