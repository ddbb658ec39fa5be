//! Sorts the list of a pane: by the next column, by a named column, or in reverse.

use super::{
    Screen,
    columns::{
        AuditColumn, BudgetColumn, DepartureColumn, EventColumn, EvictionColumn, NodeColumn, PendingColumn,
        PodColumn, Sort, SortColumn, ZoneColumn,
    },
    pane::Pane,
};
use kordon_core::cluster::nearest::nearest;

/// The sort order of a pane's list, whatever columns the list has.
pub trait PaneSort {
    fn next(&mut self);
    fn flip(&mut self);
    /// Sorts by the column with this title, in its natural direction or in reverse.
    ///
    /// # Errors
    /// There is no such column; the text names the nearest one, or all.
    fn set(&mut self, title: &str, is_reversed: bool) -> Result<(), String>;
    /// Sorts by the column with this title in its natural direction; if the list is already sorted by this column,
    /// reverses the direction.
    ///
    /// # Errors
    /// As [`Self::set`].
    fn by(&mut self, title: &str) -> Result<(), String> {
        if self.title() == title {
            self.flip();
            return Ok(());
        }
        self.set(title, false)
    }
    /// Title of the column that the list is sorted by.
    fn title(&self) -> &'static str;
    /// Whether the sort order is the initial one.
    fn is_default(&self) -> bool;
    fn is_reversed(&self) -> bool;
    /// Whether the values of the column fall from row to row.
    fn is_descending(&self) -> bool;
    /// Titles of all columns, and the letters that sort by them.
    fn columns(&self) -> Vec<(&'static str, char)>;
}

/// Reads a sort order: a column, and whether the order is reversed, as in `-pods` and `pods:reversed`.
pub fn column_and_direction(text: &str) -> (&str, bool) {
    let column = text.strip_prefix('-').or_else(|| text.strip_suffix(":reversed"));
    (column.unwrap_or(text).trim(), column.is_some())
}

/// Checks that the list of a pane can be sorted as it is written, as in `-pods`.
///
/// # Errors
/// There is no such column, or the order of the list is fixed.
pub fn check_sort(pane: Pane, text: &str) -> Result<(), String> {
    let (title, is_reversed) = column_and_direction(text);
    match pane {
        Pane::Zones => Sort::<ZoneColumn>::default().set(title, is_reversed),
        Pane::Nodes => Sort::<NodeColumn>::default().set(title, is_reversed),
        Pane::Pods => Sort::<PodColumn>::default().set(title, is_reversed),
        Pane::Evictions => Sort::<EvictionColumn>::default().set(title, is_reversed),
        Pane::Pending => Sort::<PendingColumn>::default().set(title, is_reversed),
        Pane::Departures => Sort::<DepartureColumn>::default().set(title, is_reversed),
        Pane::Audit => Sort::<AuditColumn>::default().set(title, is_reversed),
        Pane::Budgets => Sort::<BudgetColumn>::default().set(title, is_reversed),
        Pane::Events => Sort::<EventColumn>::default().set(title, is_reversed),
        Pane::Detail | Pane::Plan | Pane::Progress | Pane::Journal | Pane::Forecast => Err(fixed_order(pane)),
    }
}

fn fixed_order(pane: Pane) -> String {
    format!("the {} cannot be sorted", pane.title().to_lowercase())
}

impl<C: SortColumn> PaneSort for Sort<C> {
    fn next(&mut self) {
        Self::next(self);
    }

    fn flip(&mut self) {
        Self::flip(self);
    }

    fn set(&mut self, title: &str, is_reversed: bool) -> Result<(), String> {
        let Some(column) = C::from_title(title) else {
            let titles = C::ALL.iter().map(|column| column.title());
            let meant = nearest(title, titles.clone()).map(|meant| format!("did you mean {meant}?"));
            let meant =
                meant.unwrap_or_else(|| format!("there are {}", titles.collect::<Vec<_>>().join(", ")));
            return Err(format!("there is no column {title}: {meant}"));
        };
        *self = Self { column, reversed: is_reversed };
        Ok(())
    }

    fn title(&self) -> &'static str {
        self.column.title()
    }

    fn is_default(&self) -> bool {
        *self == Self::default()
    }

    fn is_reversed(&self) -> bool {
        self.reversed
    }

    fn is_descending(&self) -> bool {
        Self::is_descending(self)
    }

    fn columns(&self) -> Vec<(&'static str, char)> {
        C::ALL.iter().map(|column| (column.title(), column.letter())).collect()
    }
}

impl Screen {
    /// How the list of a pane is sorted; `None` if its order cannot be changed.
    pub fn sort(&self, pane: Pane) -> Option<&dyn PaneSort> {
        Some(match pane {
            Pane::Zones => &self.zones.sort,
            Pane::Nodes => &self.nodes.sort,
            Pane::Pods => &self.pods.sort,
            Pane::Evictions => &self.evictions.sort,
            Pane::Pending => &self.pending.sort,
            Pane::Departures => &self.departures.sort,
            Pane::Audit => &self.audit.sort,
            Pane::Budgets => &self.budgets.sort,
            Pane::Events => return self.overlays.event_list().map(|view| &view.sort as &dyn PaneSort),
            Pane::Detail | Pane::Plan | Pane::Progress | Pane::Journal | Pane::Forecast => return None,
        })
    }

    pub(super) fn sort_mut(&mut self, pane: Pane) -> Option<&mut dyn PaneSort> {
        Some(match pane {
            Pane::Zones => &mut self.zones.sort,
            Pane::Nodes => &mut self.nodes.sort,
            Pane::Pods => &mut self.pods.sort,
            Pane::Evictions => &mut self.evictions.sort,
            Pane::Pending => &mut self.pending.sort,
            Pane::Departures => &mut self.departures.sort,
            Pane::Audit => &mut self.audit.sort,
            Pane::Budgets => &mut self.budgets.sort,
            Pane::Events => {
                return self.overlays.event_list_mut().map(|view| &mut view.sort as &mut dyn PaneSort);
            }
            Pane::Detail | Pane::Plan | Pane::Progress | Pane::Journal | Pane::Forecast => return None,
        })
    }

    pub(super) fn flip_sort(&mut self) {
        self.sort_mut(self.focus).into_iter().for_each(PaneSort::flip);
    }

    /// Sorts the focused pane by a typed column, in reverse as in `-pods`; by the next column if nothing is typed.
    ///
    /// # Errors
    /// The pane has no such column, or its order is fixed.
    pub(super) fn sort_by(&mut self, typed: &str) -> Result<(), String> {
        let pane = self.focus;
        let Some(sort) = self.sort_mut(pane) else {
            return Err(fixed_order(pane));
        };
        if typed.is_empty() {
            sort.next();
            return Ok(());
        }
        match column_and_direction(typed) {
            (title, true) => sort.set(title, true),
            (title, false) => sort.by(title),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reversed_order_has_two_notations_everywhere() {
        assert_eq!(column_and_direction("mem req"), ("mem req", false));
        for reversed in ["-mem req", "mem req:reversed", "- mem req"] {
            assert_eq!(column_and_direction(reversed), ("mem req", true), "{reversed}");
        }
    }
}
