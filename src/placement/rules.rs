//! What changed in the scheduler from release to release.

use crate::engine::ServerVersion;

/// How the scheduler of one release judges (docs/upstream/placement-and-pressure.md#1.9). Patch releases do not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulerRules {
    pub version: ServerVersion,
    pub balance: Balance,
    /// A spread score is rounded to the nearest; before, its fraction was cut off.
    pub spread_is_rounded: bool,
    /// The selector `{}` of a spread constraint counts no pod; before, it counted every pod of the namespace.
    pub empty_spread_counts_nothing: bool,
    /// A resource of which nothing is asked is not compared; before, an overcommitted node refused even zero.
    pub zero_requests_fit: bool,
    /// A request beyond the whole node is beyond the help of preemption.
    pub whole_node_is_final: bool,
    /// A pod whose every term pins node names is only tried on those.
    pub pinned_names_narrow: bool,
    /// Untolerated taints are one reason; before, each taint was a reason of its own.
    pub taints_are_one_reason: bool,
    /// A claim with the mode ReadWriteOncePod is for one pod at a time.
    pub single_pod_claims: bool,
    /// Images of init containers count too.
    pub init_images_count: bool,
    /// Each node goes by how many nodes had an image when it came itself. So it was in old releases, but each status
    /// that a kubelet posts mends it: of no release's rules, only of a cluster of theirs without kubelets.
    pub image_counts_are_stale: bool,
}

/// How evenly used resources are scored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// By how even they are with the pod.
    After,
    /// The same, but not for pods that request neither cpu nor memory.
    AfterUnlessEmpty,
    /// By how much more even the pod makes them; not for pods that request neither.
    Difference,
}

impl SchedulerRules {
    pub fn of(version: ServerVersion) -> Self {
        let from = |minor| version >= ServerVersion::new(1, minor);
        Self {
            version,
            balance: match version {
                _ if from(36) => Balance::Difference,
                // Between 1.28, which did not, and 1.34, which does.
                _ if from(30) => Balance::AfterUnlessEmpty,
                _ => Balance::After,
            },
            spread_is_rounded: from(28),
            empty_spread_counts_nothing: from(28),
            zero_requests_fit: from(28),
            whole_node_is_final: from(34),
            pinned_names_narrow: from(24),
            taints_are_one_reason: from(35),
            single_pod_claims: from(27),
            // Between 1.24, which did not, and 1.34, which does.
            init_images_count: from(30),
            image_counts_are_stale: false,
        }
    }
}
