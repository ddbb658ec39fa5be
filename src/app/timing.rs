//! The timing sheet: how soon this cluster notices that a node is dead, beside the profiles of the field.

use super::App;
use crate::model::Model;
use kordon_core::{
    cluster::{Cluster, FeedKind, Known},
    timing::{ClusterSize, HeartbeatKind, KubeletFlags, Timing, TimingProfile},
};

/// What the sheet shows, and from which line.
#[derive(Clone, Debug, Default)]
pub struct TimingSheet {
    pub scrolled: usize,
    /// None until it is worked out.
    pub result: Option<TimingResult>,
}

/// What the sheet is about: this cluster, then the profiles of the field.
#[derive(Clone, Debug, PartialEq)]
pub struct TimingJob {
    profiles: Vec<TimingProfile>,
    size: ClusterSize,
}

/// The timing of the profiles of a job, in their order.
#[derive(Clone, Debug)]
pub struct TimingResult {
    job: TimingJob,
    pub timings: Vec<Timing>,
}

/// The name of this cluster's own profile.
pub const THIS_CLUSTER: &str = "this cluster";

impl TimingJob {
    fn new(model: &Model) -> Self {
        let settings = model.settings.clone();
        let defaults = TimingProfile::defaults(settings.version, heartbeat(&model.cluster));
        let kubelet = kubelet(&model.cluster, defaults.kubelet);
        let own = TimingProfile { name: THIS_CLUSTER.into(), settings, kubelet, ..defaults.clone() };
        let profiles = std::iter::once(own).chain(TimingProfile::presets(&defaults)).collect();
        let (nodes, zones) = (model.cluster.nodes().len(), model.views.zones.len());
        Self { profiles, size: ClusterSize { nodes, pods_per_node: 1, zones } }
    }

    pub fn work(self) -> TimingResult {
        let timings =
            self.profiles.iter().map(|profile| Timing::of(profile.clone(), self.size, &[])).collect();
        TimingResult { timings, job: self }
    }
}

impl TimingResult {
    /// The nodes for which writes are counted.
    pub const fn nodes(&self) -> usize {
        self.job.size.nodes
    }
}

/// Nodes without any Lease write their status as heartbeats. Where Leases may not be read, they are assumed.
fn heartbeat(cluster: &Cluster) -> HeartbeatKind {
    let has_none = cluster.known(FeedKind::Leases) == Known::Live && cluster.leases().iter().next().is_none();
    if has_none && !cluster.nodes().is_empty() { HeartbeatKind::Status } else { HeartbeatKind::Lease }
}

/// The kubelets' settings as far as their Leases show them.
fn kubelet(cluster: &Cluster, defaults: KubeletFlags) -> KubeletFlags {
    let duration = cluster.leases().iter().find_map(|lease| lease.duration);
    KubeletFlags { lease_duration: duration.unwrap_or(defaults.lease_duration), ..defaults }
}

impl App {
    /// Works out the timing sheet, where it is open and not of the cluster as it is now.
    pub fn next_timing_job(&self) -> Option<TimingJob> {
        let sheet = self.screen.overlays.timing()?;
        let job = TimingJob::new(self.shown());
        sheet.result.as_ref().is_none_or(|result| result.job != job).then_some(job)
    }

    /// The timing sheet was worked out.
    pub fn on_timing(&mut self, result: TimingResult) {
        if let Some(sheet) = self.screen.overlays.timing_mut() {
            sheet.result = Some(result);
        }
    }
}
