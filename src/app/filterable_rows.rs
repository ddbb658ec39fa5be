//! The rows of a list as filters see them, whether or not they pass its filter.

use std::cell::OnceCell;

use super::{
    App, Pane,
    filter::Filterable,
    filter_fields::{
        FilterableEvent, FilterableEviction, FilterableLane, FilterableNode, FilterablePod, FilterableZone,
    },
};
use crate::model::{BudgetList, Model};

/// Maximum number of rows of a pane that are visited. Every draw visits them several times.
pub(super) const MOST_ROWS: usize = 20_000;

/// Function that visits all rows of a list, whether or not they pass its filter.
pub type VisitRows<'a> = dyn Fn(RowVisitor<'_>) + 'a;

/// Called with each row.
pub type RowVisitor<'a> = &'a mut dyn FnMut(&dyn Filterable);

/// Visits all rows of a list that depends on the model alone. Returns `false`, and visits none, for other lists.
pub fn visit_model_rows(shown: &Model, pane: Pane, visit: &mut dyn FnMut(&dyn Filterable)) -> bool {
    match pane {
        Pane::Zones => shown.views.zones.iter().for_each(|zone| visit(&FilterableZone { shown, zone })),
        Pane::Nodes => {
            let devices = OnceCell::new();
            for node in shown.cluster.nodes().iter() {
                visit(&FilterableNode { shown, node, devices: &devices });
            }
        }
        Pane::Evictions => {
            for (key, row) in shown.views.leaving.evictions.iter() {
                visit(&FilterableEviction { shown, key, row });
            }
        }
        Pane::Pending => {
            shown.cluster.unscheduled_pods().for_each(|pod| visit(&FilterablePod { shown, pod }));
        }
        Pane::Departures => shown.departures.newest().for_each(|(_, entry)| visit(entry)),
        Pane::Journal => shown.journal.numbered().for_each(|(_, entry)| visit(entry)),
        Pane::Budgets => {
            let rows = shown.predictions.budgets().into_iter().flat_map(BudgetList::rows);
            rows.for_each(|row| visit(row));
        }
        Pane::Audit => {
            let Some(known) = shown.predictions.audit() else { return false };
            known.audit.findings.iter().for_each(|finding| visit(finding));
        }
        Pane::Pods | Pane::Events | Pane::Forecast | Pane::Detail | Pane::Plan | Pane::Progress => {
            return false;
        }
    }
    true
}

impl App {
    /// Visits all rows of a pane. Returns `false`, and visits none, if the pane has too many rows or is a kind of pane
    /// whose rows are made for its filter, such as a detail.
    pub(super) fn visit_rows(&self, pane: Pane, visit: &mut dyn FnMut(&dyn Filterable)) -> bool {
        let shown = self.shown();
        match pane {
            Pane::Nodes if shown.cluster.nodes().len() > MOST_ROWS => return false,
            Pane::Evictions if shown.views.leaving.evictions.len() > MOST_ROWS => return false,
            Pane::Pending if shown.cluster.unscheduled_count() > MOST_ROWS => return false,
            Pane::Pods => {
                let Some(node) = &self.screen.pods_of else { return false };
                shown.cluster.pods_on(node).for_each(|pod| visit(&FilterablePod { shown, pod }));
            }
            Pane::Events => {
                let Some(view) = self.screen.overlays.event_list() else { return false };
                let (clock, now) = (shown.cluster.clock(), shown.views.taken);
                view.rows().for_each(|event| visit(&FilterableEvent { event, clock, now }));
            }
            Pane::Forecast => {
                let lanes = shown.forecast_lanes(self.screen.forecast.horizon);
                lanes.iter().for_each(|lane| visit(&FilterableLane { shown, lane }));
            }
            Pane::Zones
            | Pane::Nodes
            | Pane::Evictions
            | Pane::Pending
            | Pane::Departures
            | Pane::Journal
            | Pane::Budgets
            | Pane::Audit
            | Pane::Detail
            | Pane::Plan
            | Pane::Progress => return visit_model_rows(shown, pane, visit),
        }
        true
    }
}
