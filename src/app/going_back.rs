//! Goes back and forward through the places that the user has looked at, as in a browser.

use super::{
    App, Pane, Screen,
    detail::{Detail, DetailSubject},
    overlays::Overlay,
    places::Place,
};
use kordon_core::cluster::NodeName;

impl Screen {
    /// Records where the user is. Plans, the progress of operations and Events are not recorded.
    pub(super) fn record_place(&mut self) {
        if !matches!(self.focus, Pane::Plan | Pane::Progress | Pane::Events) {
            let detail = self.overlays.detail().map(|detail| detail.subject.clone());
            self.places.visit(Place { focus: self.focus, pods_of: self.pods_of.clone(), detail });
        }
    }
}

impl App {
    /// Shows the place before the present one, or the one after it. Places whose node, pod or budget is gone are left out.
    pub(super) fn go_to_place(&mut self, goes_back: bool) {
        self.screen.record_place();
        while let Some(place) = self.screen.places.step(goes_back) {
            if self.exists(&place) {
                self.show(place);
                return;
            }
        }
        let which = if goes_back { "before" } else { "after" };
        self.screen.message = Some(format!("there is nothing {which} this"));
    }

    fn exists(&self, place: &Place) -> bool {
        let cluster = &self.shown().cluster;
        let has_node = |node: &NodeName| cluster.node(node).is_some();
        place.pods_of.as_ref().is_none_or(has_node)
            && place.detail.as_ref().is_none_or(|subject| match subject {
                DetailSubject::Node(node) => has_node(node),
                DetailSubject::Pod(pod) => cluster.pod(pod).is_some(),
                DetailSubject::Budget(budget) => cluster.budgets().get(budget).is_some(),
            })
    }

    fn show(&mut self, place: Place) {
        let is_replayed = self.playback.is_some();
        let screen = &mut self.screen;
        screen.overlays.close_views();
        screen.leave_node();
        screen.pods_of = place.pods_of;
        if let Some(subject) = place.detail {
            let mut detail = Detail::new(subject, screen.node_pane());
            if is_replayed {
                detail.set_unrecorded();
            }
            screen.open_view(Overlay::Detail(Box::new(detail)));
        }
        screen.focus_on(place.focus);
    }
}
