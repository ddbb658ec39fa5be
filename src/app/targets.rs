//! Targets of a plan that the user opens: the marked nodes or pods, or else the selected one.

use std::iter;

use super::{
    App,
    detail::DetailSubject,
    pane::Pane,
    preview::{PlanKind, Targets},
};
use crate::model::ZoneNodes;
use kordon_core::cluster::{Key, NodeName};

impl App {
    /// Whether a plan of this kind would have any target.
    pub(super) fn has_targets(&self, kind: PlanKind) -> bool {
        if is_for_pods(kind) {
            self.target_pods().next().is_some()
        } else {
            self.target_nodes().next().is_some()
        }
    }

    /// Targets of a plan of this kind, if the user opens it now; `None` if there are no targets.
    pub(super) fn targets(&self, kind: PlanKind) -> Option<Targets> {
        self.has_targets(kind).then(|| {
            if is_for_pods(kind) {
                Targets::Pods(self.target_pods().cloned().collect())
            } else {
                Targets::Nodes(self.target_nodes().cloned().collect())
            }
        })
    }

    fn target_nodes(&self) -> Box<dyn Iterator<Item = &NodeName> + '_> {
        let screen = &self.screen;
        match screen.focus {
            Pane::Nodes if !screen.marked_nodes.is_empty() => Box::new(screen.marked_nodes.iter()),
            Pane::Nodes => Box::new(screen.selected_nodes().iter()),
            Pane::Pods => Box::new(screen.pods_of.iter()),
            Pane::Detail => match screen.overlays.detail().map(|detail| &detail.subject) {
                Some(DetailSubject::Node(node)) => Box::new(iter::once(node)),
                Some(DetailSubject::Pod(_) | DetailSubject::Budget(_)) | None => Box::new(iter::empty()),
            },
            Pane::Zones => {
                let zones = self.shown().watchlist.zones();
                let nodes = screen.zones.list.selected().and_then(|zone| zones.get(zone));
                Box::new(nodes.into_iter().flat_map(ZoneNodes::names))
            }
            Pane::Forecast => Box::new(screen.forecast.selected().into_iter().flat_map(|lane| &lane.nodes)),
            Pane::Plan
            | Pane::Progress
            | Pane::Events
            | Pane::Evictions
            | Pane::Journal
            | Pane::Pending
            | Pane::Departures
            | Pane::Budgets
            | Pane::Audit => Box::new(iter::empty()),
        }
    }

    pub(super) fn target_pods(&self) -> Box<dyn Iterator<Item = &Key> + '_> {
        let screen = &self.screen;
        match screen.focus {
            Pane::Pods if !screen.marked_pods.is_empty() => Box::new(screen.marked_pods.iter()),
            Pane::Pods => Box::new(screen.pods.list.selected().into_iter()),
            Pane::Evictions => Box::new(screen.evictions.list.selected().into_iter()),
            Pane::Detail => match screen.overlays.detail().map(|detail| &detail.subject) {
                Some(DetailSubject::Pod(pod)) => Box::new(iter::once(pod)),
                Some(DetailSubject::Node(_) | DetailSubject::Budget(_)) | None => Box::new(iter::empty()),
            },
            Pane::Zones
            | Pane::Nodes
            | Pane::Plan
            | Pane::Progress
            | Pane::Events
            | Pane::Journal
            | Pane::Forecast
            | Pane::Pending
            | Pane::Departures
            | Pane::Budgets
            | Pane::Audit => Box::new(iter::empty()),
        }
    }
}

const fn is_for_pods(kind: PlanKind) -> bool {
    match kind {
        PlanKind::Evict | PlanKind::Delete => true,
        PlanKind::Cordon
        | PlanKind::Uncordon
        | PlanKind::Drain
        | PlanKind::Taint
        | PlanKind::Metadata(_)
        | PlanKind::DeleteNode
        | PlanKind::Failure => false,
    }
}
