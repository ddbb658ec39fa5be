//! The maintenance sheet: how far maintenances are, and in which waves the marked nodes could be maintained.

use super::App;
use kordon_core::{
    cluster::{Cluster, NodeName},
    maintenance::{HEADROOM_UP_TO, MaintenanceOptions, MaintenancePlan, knows_enough},
    plan::{DrainOptions, EvictionRules},
};
use kordon_time::{Span, Timestamp};

/// The open maintenance sheet.
#[derive(Clone, Debug, Default)]
pub struct MaintenanceSheet {
    /// Nodes to plan for: those that were marked or selected when it was opened.
    pub nodes: Vec<NodeName>,
    pub scrolled: usize,
    /// The waves; `None` until they are worked out.
    pub plan: Option<MaintenancePlan>,
}

/// Works out the waves of the nodes of a sheet.
#[derive(Debug)]
pub struct MaintenanceJob {
    cluster: Cluster,
    options: MaintenanceOptions,
    rules: EvictionRules,
    now: Timestamp,
}

/// The waves of the nodes of a sheet.
#[derive(Debug)]
pub struct MaintenanceResult {
    nodes: Vec<NodeName>,
    plan: MaintenancePlan,
}

/// The assumed time of the work on an empty node, and of being well afterwards: the defaults of `kordon maintenance`.
pub const WORK: Span = Span::from_secs(300);
pub const SETTLE: Span = Span::from_secs(60);

impl MaintenanceJob {
    pub fn work(self) -> MaintenanceResult {
        let Self { cluster, options, rules, now } = self;
        MaintenanceResult { plan: MaintenancePlan::new(&cluster, &options, rules, now), nodes: options.nodes }
    }
}

impl App {
    /// Returns the job that works out the waves of the open sheet; `None` if they are there, or not all is known that they
    /// depend on.
    pub fn next_maintenance_job(&self, now: Timestamp) -> Option<MaintenanceJob> {
        let sheet = self.screen.overlays.maintenance().filter(|sheet| sheet.plan.is_none())?;
        let shown = self.shown();
        if sheet.nodes.is_empty() || !knows_enough(&shown.cluster) {
            return None;
        }
        let drain = DrainOptions { ignore_daemonsets: true, ..DrainOptions::default() };
        Some(MaintenanceJob {
            cluster: shown.cluster.clone(),
            options: MaintenanceOptions {
                nodes: sheet.nodes.clone(),
                drain,
                work: WORK,
                settle: SETTLE,
                keeps_headroom: shown.cluster.nodes().len() <= HEADROOM_UP_TO,
                ..MaintenanceOptions::default()
            },
            rules: EvictionRules::from(&self.model.settings),
            now: self.shown_at(now),
        })
    }

    /// Shows the waves, if the sheet is still open for these nodes.
    pub fn on_maintenance(&mut self, result: MaintenanceResult) {
        let sheet = self.screen.overlays.maintenance_mut();
        if let Some(sheet) = sheet.filter(|sheet| sheet.nodes == result.nodes) {
            sheet.plan = Some(result.plan);
        }
    }
}
