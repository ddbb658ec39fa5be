//! Places that the user has visited: panes, pods of nodes, details.

use super::{detail::DetailSubject, pane::Pane};
use kordon_core::cluster::NodeName;

/// Number of places that are kept.
const KEPT: usize = 50;

/// A place that the user looked at: a pane, the pods of a node, or a detail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub focus: Pane,
    pub pods_of: Option<NodeName>,
    pub detail: Option<DetailSubject>,
}

/// The places that the user visited: the present one, and those before and after it.
#[derive(Clone, Debug, Default)]
pub struct Places {
    present: Option<Place>,
    back: Vec<Place>,
    forward: Vec<Place>,
}

impl Places {
    /// Records the place at which the user is now.
    pub(super) fn visit(&mut self, place: Place) {
        if self.present.as_ref() == Some(&place) {
            return;
        }
        self.back.extend(self.present.replace(place));
        self.forward.clear();
        if self.back.len() > KEPT {
            self.back.remove(0);
        }
    }

    /// Goes to the next place, back or forward, and returns it.
    pub(super) fn step(&mut self, goes_back: bool) -> Option<Place> {
        let (from, to) = match goes_back {
            true => (&mut self.back, &mut self.forward),
            false => (&mut self.forward, &mut self.back),
        };
        let place = from.pop()?;
        to.extend(self.present.replace(place.clone()));
        Some(place)
    }

    pub(super) const fn has_more(&self, goes_back: bool) -> bool {
        if goes_back { !self.back.is_empty() } else { !self.forward.is_empty() }
    }
}
