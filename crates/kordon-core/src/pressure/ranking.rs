//! The order in which a kubelet evicts pods (docs/upstream/placement-and-pressure.md#6.7; `eviction.rank…Pressure`).

use std::{cmp::Reverse, sync::Arc};

use super::{
    signal::EvictionSignal,
    stats::{FilesystemLayout, NodeStats, PodUsage},
};
use crate::cluster::Pod;

/// Returns the pods of a node in order of eviction for a signal, including pods that are never evicted.
///
/// The order of equal pods is random in a kubelet. Here they share a place and are listed by name.
pub fn rank<'a>(
    pods: impl IntoIterator<Item = &'a Arc<Pod>>,
    stats: &NodeStats,
    signal: EvictionSignal,
    layout: FilesystemLayout,
) -> Vec<RankedPod> {
    let active = pods.into_iter().filter(|pod| !pod.is_finished());
    let mut ranked: Vec<RankedPod> = active
        .map(|pod| RankedPod::new(pod, Measured::new(pod, stats.pods.get(&pod.key), signal, layout), signal))
        .collect();
    ranked.sort_by(|one, other| (one.key(), &one.pod.key).cmp(&(other.key(), &other.pod.key)));
    let mut place = 0;
    for at in 0..ranked.len() {
        if at == 0 || ranked[at - 1].key() != ranked[at].key() {
            place = at + 1;
        }
        ranked[at].place = place;
    }
    ranked
}

/// The place of a pod in the order of eviction, with the reasons.
#[derive(Clone, Debug, PartialEq)]
pub struct RankedPod {
    pub pod: Arc<Pod>,
    pub signal: EvictionSignal,
    /// Place in the order of eviction, counted from 1. Equal pods share a place.
    pub place: usize,
    pub standing: Standing,
    /// Usage of the signal's resource, in bytes, inodes or processes; `None` for usage that is not measured.
    pub usage: Option<i64>,
    /// Request for the signal's resource, in bytes; zero if pods have no requests for it.
    pub request: i64,
    /// The reason why the pod is never evicted; `None` if it may be evicted.
    pub exemption: Option<Exemption>,
    /// Usage minus request, the third criterion of the order of eviction; `None` for unknown usage.
    excess: Option<i64>,
}

/// Relation of a pod's usage to its request, the first criterion of the order of eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// The usage is unknown. Pods with unknown usage are evicted first.
    NotMeasured,
    AboveRequest,
    WithinRequest,
    /// The signal is process ids, for which pods have no requests.
    NotCompared,
}

/// The reason why a kubelet never evicts a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exemption {
    /// The mirror pod of a static pod.
    Static,
    /// Priority of `system-cluster-critical` or higher.
    Critical,
}

impl Exemption {
    /// The reason why a kubelet never evicts the pod; `None` if the pod may be evicted (`kubelettypes.IsCriticalPod`).
    pub fn from_pod(pod: &Pod) -> Option<Self> {
        if pod.mirror {
            Some(Self::Static)
        } else if pod.is_critical() {
            Some(Self::Critical)
        } else {
            None
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Static => "static pod",
            Self::Critical => "critical priority",
        }
    }
}

impl RankedPod {
    fn new(pod: &Arc<Pod>, measured: Measured, signal: EvictionSignal) -> Self {
        let Measured { usage, request, excess, compared } = measured;
        Self {
            pod: pod.clone(),
            signal,
            place: 0,
            standing: match usage {
                _ if !compared => Standing::NotCompared,
                None => Standing::NotMeasured,
                Some(usage) if usage > request => Standing::AboveRequest,
                Some(_) => Standing::WithinRequest,
            },
            usage,
            request,
            exemption: Exemption::from_pod(pod),
            excess,
        }
    }

    /// Sort key with the three criteria of the order of eviction. Pods with a smaller key are evicted first.
    fn key(&self) -> (Standing, i32, Option<Reverse<i64>>) {
        (self.standing, self.pod.priority, self.excess.map(Reverse))
    }

    /// Usage minus request; `None` if the usage is unknown.
    pub fn above_request(&self) -> Option<i64> {
        Some(self.usage?.saturating_sub(self.request))
    }

    /// The reason for the pod's place in the order of eviction, in words.
    pub fn reason(&self) -> String {
        let amount = |amount: i64| self.signal.amount(amount);
        let used = self.usage.map(amount);
        let by = amount(self.above_request().unwrap_or(0).saturating_abs());
        match (self.standing, used) {
            (Standing::NotMeasured, _) | (_, None) => "usage not known".into(),
            (Standing::NotCompared, Some(used)) => format!("{used} processes"),
            (Standing::AboveRequest, Some(used)) if !self.signal.is_in_bytes() => format!("{used} inodes"),
            (Standing::AboveRequest, Some(used)) if self.request == 0 => {
                format!("uses {used}, requests none")
            }
            (Standing::AboveRequest, Some(used)) => format!("uses {used}, {by} above its request"),
            (Standing::WithinRequest, Some(used)) => format!("uses {used}, {by} below its request"),
        }
    }
}

/// The values of one pod that matter for an eviction signal.
struct Measured {
    usage: Option<i64>,
    request: i64,
    excess: Option<i64>,
    /// Whether the signal compares usage with a request.
    compared: bool,
}

impl Measured {
    fn new(pod: &Pod, usage: Option<&PodUsage>, signal: EvictionSignal, layout: FilesystemLayout) -> Self {
        let spec = &pod.resources.kubelet;
        let disk = || {
            let disk = usage?.disk.as_ref()?;
            Some(disk.measured(signal, layout, &spec.local_volumes))
        };
        let compared_with = |request: i64, usage: Option<i64>| {
            let excess = usage.map(|used| used.saturating_sub(request));
            Self { usage, request, excess, compared: true }
        };
        match signal {
            EvictionSignal::Memory | EvictionSignal::AllocatableMemory => {
                compared_with(spec.memory_request_bytes, usage.and_then(|usage| usage.memory_bytes))
            }
            EvictionSignal::NodefsBytes | EvictionSignal::ImagefsBytes | EvictionSignal::ContainerfsBytes => {
                compared_with(spec.ephemeral_request_bytes, disk().map(|disk| disk.bytes))
            }
            // Pods cannot request inodes. Upstream nevertheless subtracts their request for bytes of storage from the
            // number of inodes that they use.
            EvictionSignal::NodefsInodes
            | EvictionSignal::ImagefsInodes
            | EvictionSignal::ContainerfsInodes => {
                let usage = disk().map(|disk| disk.inodes);
                let excess = usage.map(|used| used.saturating_sub(spec.ephemeral_request_bytes));
                Self { usage, request: 0, excess, compared: true }
            }
            EvictionSignal::Pids => {
                let usage = usage.and_then(|usage| usage.processes);
                Self { usage, request: 0, excess: usage, compared: false }
            }
        }
    }
}
