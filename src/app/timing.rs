//! The timing sheet: how soon this cluster notices a dead node, compared with the common profiles.

use super::App;
use crate::model::Model;
use kordon_core::{
    cluster::{Cluster, FeedKind, Known},
    timing::{ClusterSize, HeartbeatKind, KubeletFlags, Timing, TimingProfile},
};

/// The open timing sheet.
#[derive(Clone, Debug, Default)]
pub struct TimingSheet {
    pub scrolled: usize,
    /// The timings; `None` until they are computed.
    pub result: Option<TimingResult>,
}

/// A job that computes the timing of this cluster and of the common profiles.
#[derive(Clone, Debug, PartialEq)]
pub struct TimingJob {
    profiles: Vec<TimingProfile>,
    size: ClusterSize,
}

/// Timings of a job's profiles, in the order of the profiles.
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
            self.profiles.iter().map(|profile| Timing::new(profile.clone(), self.size, &[])).collect();
        TimingResult { timings, job: self }
    }
}

impl TimingResult {
    /// Number of nodes whose heartbeat writes are estimated.
    pub const fn nodes(&self) -> usize {
        self.job.size.nodes
    }
}

/// Kind of heartbeat that the kubelets send: the node status if the cluster has nodes but no Lease, otherwise Leases.
/// If Leases cannot be read, they are assumed to exist.
fn heartbeat(cluster: &Cluster) -> HeartbeatKind {
    let has_none = cluster.known(FeedKind::Leases) == Known::Live && cluster.leases().iter().next().is_none();
    if has_none && !cluster.nodes().is_empty() { HeartbeatKind::Status } else { HeartbeatKind::Lease }
}

/// Settings of the kubelets, as far as their Leases show them.
fn kubelet(cluster: &Cluster, defaults: KubeletFlags) -> KubeletFlags {
    let duration = cluster.leases().iter().filter_map(|lease| lease.duration).max();
    KubeletFlags { lease_duration: duration.unwrap_or(defaults.lease_duration), ..defaults }
}

impl App {
    /// Returns the job that updates the open timing sheet; `None` if the sheet is up to date.
    pub fn next_timing_job(&self) -> Option<TimingJob> {
        let sheet = self.screen.overlays.timing()?;
        let job = TimingJob::new(self.shown());
        sheet.result.as_ref().is_none_or(|result| result.job != job).then_some(job)
    }

    /// Shows the computed timings.
    pub fn on_timing(&mut self, result: TimingResult) {
        if let Some(sheet) = self.screen.overlays.timing_mut() {
            sheet.result = Some(result);
        }
    }
}
