//! Differences between releases of the kubelet.

use crate::engine::ServerVersion;

/// The rules of node-pressure eviction of one release (docs/upstream/placement-and-pressure.md#6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KubeletRules {
    /// Whether `imagefs.inodesFree` has a default threshold (since 1.30).
    pub inodes_of_images_have_a_default: bool,
    /// Whether a sidecar's OOM score is computed from at least the smallest request of the app containers (since 1.33).
    pub sidecars_share_oom_scores: bool,
}

impl KubeletRules {
    pub fn for_version(version: ServerVersion) -> Self {
        let from = |minor| version >= ServerVersion::new(1, minor);
        Self { inodes_of_images_have_a_default: from(30), sidecars_share_oom_scores: from(33) }
    }
}
