//! Sorts the list of a pane: by the next column, by a named column, or in reverse.

use super::{
    Screen,
    columns::{
        AuditColumn, BudgetColumn, DepartureColumn, EventColumn, EvictionColumn, NodeColumn, PendingColumn,
        PodColumn, Sort, SortColumn, SortDirection, ZoneColumn,
    },
    pane::Pane,
};
use kordon_core::cluster::nearest::nearest;

/// The sort order of a pane's list, whatever columns the list has.
pub trait PaneSort {
    fn next(&mut self);
    fn flip(&mut self);
    /// Sorts by the column with this title.
    ///
    /// # Errors
    /// There is no such column; the text names the nearest one, or all.
    fn set(&mut self, title: &str, direction: SortDirection) -> Result<(), String>;
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
        self.set(title, SortDirection::Natural)
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

/// Reads a sort order: a column, whose values fall in `-pods`, and whose natural direction is reversed in `pods:reversed`.
pub fn column_and_direction(text: &str) -> (&str, SortDirection) {
    let (column, direction) = match (text.strip_prefix('-'), text.strip_suffix(":reversed")) {
        (Some(column), _) => (column, SortDirection::Falling),
        (None, Some(column)) => (column, SortDirection::Reversed),
        (None, None) => (text, SortDirection::Natural),
    };
    (column.trim(), direction)
}

/// The sort order of a list as [`column_and_direction`] reads it.
pub fn sort_text(sort: &dyn PaneSort) -> String {
    match (sort.is_reversed(), sort.is_descending()) {
        (false, _) => sort.title().to_owned(),
        (true, true) => format!("-{}", sort.title()),
        (true, false) => format!("{}:reversed", sort.title()),
    }
}

/// Checks that the list of a pane can be sorted as it is written, as in `-pods`.
///
/// # Errors
/// There is no such column, or the order of the list is fixed.
pub fn check_sort(pane: Pane, text: &str) -> Result<(), String> {
    let (title, direction) = column_and_direction(text);
    match pane {
        Pane::Zones => Sort::<ZoneColumn>::default().set(title, direction),
        Pane::Nodes => Sort::<NodeColumn>::default().set(title, direction),
        Pane::Pods => Sort::<PodColumn>::default().set(title, direction),
        Pane::Evictions => Sort::<EvictionColumn>::default().set(title, direction),
        Pane::Pending => Sort::<PendingColumn>::default().set(title, direction),
        Pane::Departures => Sort::<DepartureColumn>::default().set(title, direction),
        Pane::Audit => Sort::<AuditColumn>::default().set(title, direction),
        Pane::Budgets => Sort::<BudgetColumn>::default().set(title, direction),
        Pane::Events => Sort::<EventColumn>::default().set(title, direction),
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

    fn set(&mut self, title: &str, direction: SortDirection) -> Result<(), String> {
        let Some(column) = C::from_title(title) else {
            let titles = C::ALL.iter().map(|column| column.title());
            let meant = nearest(title, titles.clone()).map(|meant| format!("did you mean {meant}?"));
            let meant =
                meant.unwrap_or_else(|| format!("there are {}", titles.collect::<Vec<_>>().join(", ")));
            return Err(format!("there is no column {title}: {meant}"));
        };
        *self = Self::new(column, direction);
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

    /// Sorts the focused pane by a typed column, falling as in `-pods`; by the next column if nothing is typed.
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
            (title, SortDirection::Natural) => sort.by(title),
            (title, direction) => sort.set(title, direction),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minus_falls_whatever_the_natural_direction_and_every_order_is_read_back() {
        let mut sort = Sort::<NodeColumn>::default();
        for (text, is_reversed, is_descending) in [
            ("pods", false, true),
            ("-pods", false, true),
            ("pods:reversed", true, false),
            ("age", false, false),
            ("- age", true, true),
            ("age:reversed", true, true),
            ("mem req:reversed", true, false),
        ] {
            let (title, direction) = column_and_direction(text);
            sort.set(title, direction).expect("a column");
            assert_eq!((sort.reversed, sort.is_descending()), (is_reversed, is_descending), "{text}");
            let before = sort;
            let text = sort_text(&sort);
            let (title, direction) = column_and_direction(&text);
            sort.set(title, direction).expect("a column");
            assert_eq!(sort, before, "{text}");
        }
    }
}
