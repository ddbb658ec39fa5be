//! Node-pressure eviction: what a kubelet does when its node runs out of memory, disk or process ids
//! (docs/upstream/placement-and-pressure.md#6).
//!
//! A kubelet reads [`NodeStats`] every ten seconds and compares each [`EvictionSignal`] with the [`Threshold`]s of its
//! [`EvictionSettings`]. [`EvictionManager`] decides what one pass does, [`rank`] which pod is evicted first, and
//! [`reclaim`] how many pods are evicted before the node has enough again. [`oom_score_adj`] is a separate mechanism:
//! it decides which process the kernel kills when memory runs out faster than the kubelet looks.

mod admission;
mod oom;
mod order;
mod passes;
mod qos;
mod ranking;
mod reclaim;
mod rules;
mod settings;
mod signal;
mod stats;
mod trend;

pub use admission::rejects;
pub use oom::oom_score_adj;
pub use order::EvictionOrder;
pub use passes::{EvictionManager, PressurePass};
pub use qos::qos_class;
pub use ranking::{Exemption, RankedPod, Standing, rank};
pub use reclaim::{NodeReclaim, PodReclaim, Reclaim, node_reclaim, reclaim, unused_images};
pub use rules::KubeletRules;
pub use settings::{EvictionSettings, EvictionSettingsText, Threshold, ThresholdKind, ThresholdValue};
pub use signal::{EvictionSignal, PressureCondition};
pub use stats::{
    DiskUsage, Filesystem, FilesystemLayout, NodeStats, PodDisk, PodUsage, SignalLevel, UsageMetric,
};
pub use trend::Trend;
