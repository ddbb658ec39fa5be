//! Differences between releases of the scheduler.

use crate::engine::{DEVICE_TAINT_RULES, DEVICE_TAINTS, ServerVersion};

/// Rules of the scheduler of one release (docs/upstream/placement-and-pressure.md#1.9). Patch releases follow the same
/// rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulerRules {
    pub version: ServerVersion,
    pub balance: Balance,
    /// Spread scores are rounded to the nearest integer. Older releases truncate them.
    pub spread_is_rounded: bool,
    /// The selector `{}` of a spread constraint selects no pod (1.28 to 1.37). In older and newer releases it selects
    /// every pod of the namespace.
    pub empty_spread_counts_nothing: bool,
    /// The scheduler does not check resources that the pod does not request. In older releases, an overcommitted node
    /// refuses even a request of zero.
    pub zero_requests_fit: bool,
    /// Preemption on a node cannot help a pod that requests more than the whole node offers.
    pub whole_node_is_unresolvable: bool,
    /// The scheduler tries only the nodes that the pod requires by name, if every term of its required node affinity
    /// names nodes.
    pub pinned_names_narrow: bool,
    /// Only pods that the scheduler preempts make room on a nominated node. In older releases, every terminating pod of
    /// lower priority does.
    pub only_preempted_make_room: bool,
    /// All taints that the pod does not tolerate are one reason. In older releases each of them is a reason of its own.
    pub taints_are_one_reason: bool,
    /// A ReadWriteOncePod claim can be used by only one pod at a time.
    pub single_pod_claims: bool,
    /// ImageLocality also counts images of init containers.
    pub init_images_count: bool,
    /// CSI drivers can keep pods with their volumes off the nodes that do not have the driver
    /// (`preventPodSchedulingIfMissing`; `VolumeLimitScaling`, on by default from 1.37).
    pub drivers_must_be_on_node: bool,
    /// Nodes have to declare the features that a pod requires (`NodeDeclaredFeatures`, on by default from 1.36).
    pub features_are_declared: bool,
    /// Treatment of images that are mounted as volumes (scored from 1.36).
    pub image_volumes: ImageVolumes,
    /// Pods get devices through resource.k8s.io/v1. The versions of this API in older releases are not read.
    pub claims_get_devices: bool,
    /// A request for an extended resource that a node does not have is treated as a request for devices of a
    /// DeviceClass.
    pub classes_back_resources: bool,
    /// Device taints prevent allocation (on by default from 1.36).
    pub device_taints: bool,
    /// DeviceTaintRules set device taints (on by default from 1.37).
    pub device_taint_rules: bool,
    pub device_sharing: DeviceSharing,
    /// The score of an image on a node depends on how many nodes had the image when the node was added. Old releases
    /// compute this number only then, but every status update of a kubelet corrects it. The rule therefore applies to
    /// no release, only to recordings of clusters without kubelets.
    pub image_counts_are_stale: bool,
}

/// How ImageLocality treats the images that a pod mounts as volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageVolumes {
    /// Images that are mounted as volumes have no effect on the score.
    Ignored,
    /// The sizes of images that are mounted as volumes count (1.36).
    Added,
    /// The sizes of images that are mounted as volumes count. Each such image also raises the total size that is
    /// needed for the full score (1.37).
    Counted,
}

/// How devices are given away in shares (`allowMultipleAllocations`, upstream's feature `DRAConsumableCapacity`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceSharing {
    /// Devices have no shares: the feature is off by default (1.34 and 1.35).
    #[default]
    None,
    /// Steps of amounts are whole units. A request for all devices gets those that have enough capacity left (1.36).
    Whole,
    /// Steps of amounts are thousandths (`DRAFractionalCapacityRange`). A request for all devices also needs those whose
    /// capacity is used up, so it waits for them (1.37).
    Milli,
}

/// How NodeResourcesBalancedAllocation scores a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// The score is the balance of the node's CPU and memory use with the pod on it.
    After,
    /// The score is that of `After`, but pods that request neither CPU nor memory are not scored.
    AfterUnlessEmpty,
    /// The score is the improvement of the node's balance by the pod. Pods that request neither CPU nor memory are not
    /// scored.
    Difference,
}

impl SchedulerRules {
    /// The first release that serves resource.k8s.io/v1.
    pub const FIRST_WITH_DEVICES: ServerVersion = ServerVersion::new(1, 34);

    pub fn for_version(version: ServerVersion) -> Self {
        let from = |minor| version >= ServerVersion::new(1, minor);
        Self {
            version,
            balance: match version {
                _ if from(36) => Balance::Difference,
                // Recordings of schedulers show `After` in 1.28 and `AfterUnlessEmpty` in 1.34. That the rule changed
                // in 1.30 is an assumption.
                _ if from(30) => Balance::AfterUnlessEmpty,
                _ => Balance::After,
            },
            spread_is_rounded: from(28),
            empty_spread_counts_nothing: from(28) && !from(38),
            zero_requests_fit: from(28),
            whole_node_is_unresolvable: from(34),
            pinned_names_narrow: from(24),
            only_preempted_make_room: from(27),
            taints_are_one_reason: from(35),
            single_pod_claims: from(27),
            // Recordings of schedulers show that 1.24 does not count images of init containers and that 1.34 does. That
            // the rule changed in 1.30 is an assumption.
            init_images_count: from(30),
            drivers_must_be_on_node: from(37),
            features_are_declared: from(36),
            image_volumes: match version {
                _ if from(37) => ImageVolumes::Counted,
                _ if from(36) => ImageVolumes::Added,
                _ => ImageVolumes::Ignored,
            },
            claims_get_devices: version >= Self::FIRST_WITH_DEVICES,
            classes_back_resources: from(36),
            device_taints: version >= DEVICE_TAINTS,
            device_taint_rules: version >= DEVICE_TAINT_RULES,
            device_sharing: match version {
                _ if from(37) => DeviceSharing::Milli,
                _ if from(36) => DeviceSharing::Whole,
                _ => DeviceSharing::None,
            },
            image_counts_are_stale: false,
        }
    }
}
