//! Differences between releases of the scheduler.

use crate::engine::ServerVersion;

/// The rules of the scheduler of one release (docs/upstream/placement-and-pressure.md#1.9). Patch releases do not differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulerRules {
    pub version: ServerVersion,
    pub balance: Balance,
    /// A spread score is rounded to the nearest; before, it was truncated.
    pub spread_is_rounded: bool,
    /// The selector `{}` of a spread constraint counts no pod (1.28 to 1.37). Before and after, it counts every pod of the
    /// namespace.
    pub empty_spread_counts_nothing: bool,
    /// A resource of which nothing is requested is not compared; before, an overcommitted node refused even zero.
    pub zero_requests_fit: bool,
    /// A request for more than the whole node is not resolvable by preemption.
    pub whole_node_is_unresolvable: bool,
    /// A pod whose every term requires node names is tried on those only.
    pub pinned_names_narrow: bool,
    /// Untolerated taints are one reason; before, each taint was a reason of its own.
    pub taints_are_one_reason: bool,
    /// A claim with the mode ReadWriteOncePod is for one pod at a time.
    pub single_pod_claims: bool,
    /// Images of init containers count too.
    pub init_images_count: bool,
    /// Images that are mounted as volumes count too (scored from 1.36).
    pub image_volumes: ImageVolumes,
    /// The count of nodes with an image is that of the time when the node was added. Old releases do this, but each status
    /// update of a kubelet corrects it: it applies to no release, only to recordings of clusters without kubelets.
    pub image_counts_are_stale: bool,
}

/// How ImageLocality treats the images that a pod mounts as volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageVolumes {
    /// They do not matter.
    Ignored,
    /// Their sizes are added (1.36).
    Added,
    /// Their sizes are added, and their number raises the size from which a node has the full score (1.37).
    Counted,
}

/// How NodeResourcesBalancedAllocation scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// The balance with the pod.
    After,
    /// The same, but not for pods that request neither CPU nor memory.
    AfterUnlessEmpty,
    /// How much the pod improves the balance; not for pods that request neither.
    Difference,
}

impl SchedulerRules {
    pub fn of(version: ServerVersion) -> Self {
        let from = |minor| version >= ServerVersion::new(1, minor);
        Self {
            version,
            balance: match version {
                _ if from(36) => Balance::Difference,
                // Recordings show that 1.28 does not and 1.34 does; the exact release is assumed.
                _ if from(30) => Balance::AfterUnlessEmpty,
                _ => Balance::After,
            },
            spread_is_rounded: from(28),
            empty_spread_counts_nothing: from(28) && !from(38),
            zero_requests_fit: from(28),
            whole_node_is_unresolvable: from(34),
            pinned_names_narrow: from(24),
            taints_are_one_reason: from(35),
            single_pod_claims: from(27),
            // Recordings show that 1.24 does not and 1.34 does; the exact release is assumed.
            init_images_count: from(30),
            image_volumes: match version {
                _ if from(37) => ImageVolumes::Counted,
                _ if from(36) => ImageVolumes::Added,
                _ => ImageVolumes::Ignored,
            },
            image_counts_are_stale: false,
        }
    }
}
