//! StatefulSets: which pods they have, and in which order and at which revision they create these pods.

use std::ops::Range;

use minicbor::{Decode, Encode};

use super::{encoding::EncodingContext, names::Name};
use kordon_time::Span;

/// The fields of a StatefulSet that decide when, and at which revision, its pods are created again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct StatefulRules {
    /// Whether `spec.podManagementPolicy` is Parallel. Otherwise a pod is created only once all pods of lower ordinals
    /// are available.
    #[n(0)]
    pub is_parallel: bool,
    /// Ordinal below which pods are created at the current revision, not at the revision of the template (upstream
    /// `isCurrentRevisionNeeded`). 0 if there is only one revision.
    #[n(1)]
    pub keeps_revision_below: i32,
    /// `status.updateRevision`: the revision of the template. None if not known.
    #[n(4)]
    pub update_revision: Option<Name>,
    /// `spec.ordinals.start`; `None` in recordings without this field.
    #[n(2)]
    pub start: Option<i32>,
    /// `spec.minReadySeconds`: how long a pod has to be Ready before a pod of a higher ordinal is created.
    #[cbor(n(3), default)]
    pub min_ready: Span,
}

impl StatefulRules {
    /// Returns the ordinals of the pods of a StatefulSet with `replicas` replicas (upstream `podInOrdinalRange`);
    /// `None` if they are not known. Pods of other ordinals are not created again.
    pub fn ordinals(&self, replicas: i32) -> Option<Range<i32>> {
        let start = self.start?;
        Some(start..start.saturating_add(replicas))
    }
}

/// Returns the ordinal of a pod of a StatefulSet: the number at the end of its name.
pub fn ordinal(pod: &str) -> Option<i32> {
    pod.rsplit_once('-')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinal_is_the_number_at_the_end_of_the_name() {
        assert_eq!(
            ["db-0", "my-db-12", "db", "db-x", "db-"].map(ordinal),
            [Some(0), Some(12), None, None, None]
        );
    }
}
