//! A list of rows: their order, the selected one, and the scroll position.

use std::sync::Arc;

/// Identities (keys) of the rows in order, and the selection.
///
/// Until the list is used, a selection at the top stays at the top, where the most urgent rows appear. After the first
/// key press, the selection stays with its row. A pressed key acts on the row that was drawn as selected; if that row
/// is no longer listed, the pressed key acts on no row. Only a move or a choice ([`Listing::select`],
/// [`Listing::choose_first`]) selects another row.
#[derive(Clone, Debug)]
pub struct Listing<K> {
    /// Identities of the rows. The list is shared with the thread that sorted it.
    keys: Arc<Vec<K>>,
    selected: usize,
    /// Reason why no row is selected; `None` if the row at index `selected` is selected.
    unselected: Option<Unselected<K>>,
    hold: Hold,
    /// The row that was selected when the list was last drawn; `None` if the list was not drawn since the last key
    /// press.
    drawn: Option<Option<K>>,
    offset: usize,
    /// Number of rows shown at the last draw.
    page: usize,
}

/// Reason why no row is selected.
#[derive(Clone, Debug)]
enum Unselected<K> {
    /// The selected row is no longer listed. It is selected again when it returns.
    Gone(K),
    /// No row has been selected yet, or the selection was cleared.
    NotChosen,
}

/// Behaviour of the selection when the rows are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    /// A selection at the top stays at the top. Any other selection stays with its row. If that row is gone, the row
    /// that takes its place is selected.
    Place,
    /// The selection stays with its row; no row is selected while that row is gone.
    Row,
    /// Like [`Hold::Row`], but while the selected row is gone, moves start at the top. Applies after the user has
    /// changed which rows are listed.
    RowFromTop,
}

/// Events, other than moves, that change how the selection behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListUse {
    /// A key was pressed: it acts on the row that was drawn as selected.
    Key,
    /// The user changes which rows are listed.
    Refilter,
    /// The list gets the focus: the next pressed key goes to it.
    Focus,
    /// The list loses the focus: the next pressed key goes to another list.
    Unfocus,
}

impl<K> Default for Listing<K> {
    fn default() -> Self {
        Self {
            keys: Arc::default(),
            selected: 0,
            unselected: None,
            hold: Hold::Place,
            drawn: None,
            offset: 0,
            page: 1,
        }
    }
}

/// A move of the selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Movement {
    Up,
    Down,
    PageUp,
    PageDown,
    HalfPageUp,
    HalfPageDown,
    First,
    Last,
    /// To the row with this index, or to the last row.
    Row(usize),
}

impl<K: PartialEq + Clone> Listing<K> {
    pub fn keys(&self) -> &[K] {
        &self.keys
    }

    /// Identities of the rows shown at the last draw.
    pub fn shown_keys(&self) -> &[K] {
        let first = self.first_shown(self.page);
        &self.keys[first..self.keys.len().min(first + self.page)]
    }

    pub fn len(&self) -> usize {
        self.keys.len()
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The selected row; `None` if the list is empty or the row is gone.
    pub fn selected(&self) -> Option<&K> {
        self.keys.get(self.cursor()?)
    }

    /// Index of the selected row; `None` if no row is selected.
    pub const fn cursor(&self) -> Option<usize> {
        if self.unselected.is_none() { Some(self.selected) } else { None }
    }

    /// The rows from `from` to the selected row, both included; empty if either is not listed.
    pub(super) fn range(&self, from: &K) -> &[K] {
        let place = self.keys.iter().position(|key| key == from);
        place.zip(self.cursor()).map_or(&[], |(from, to)| &self.keys[from.min(to)..=from.max(to)])
    }

    /// Whether no row is selected: the selected row is gone, or no row was chosen.
    pub const fn is_row_gone(&self) -> bool {
        self.unselected.is_some()
    }

    /// Index of the first row to show on a page of `rows`, so that the selected row is visible.
    pub fn first_shown(&self, rows: usize) -> usize {
        let rows = rows.max(1);
        let lowest = (self.selected + 1).saturating_sub(rows);
        self.offset
            .clamp(lowest, self.selected.max(lowest))
            .min(self.keys.len().saturating_sub(rows).max(lowest))
    }

    /// Replaces the rows.
    pub fn replace(&mut self, keys: Vec<K>) {
        self.replace_shared(Arc::new(keys));
    }

    /// Replaces the rows with a shared list that another thread sorted.
    pub fn replace_shared(&mut self, keys: Arc<Vec<K>>) {
        let chosen = self.chosen();
        self.replace_all(keys, |key| Some(key) == chosen.as_ref());
    }

    /// Replaces the rows of a list whose rows change their identities, such as indices. `is_chosen` recognizes the new
    /// identity of the selected row.
    pub fn replace_where(&mut self, keys: Vec<K>, is_chosen: impl Fn(&K) -> bool) {
        self.replace_all(Arc::new(keys), is_chosen);
    }

    fn replace_all(&mut self, keys: Arc<Vec<K>>, is_chosen: impl Fn(&K) -> bool) {
        let chosen = self.chosen();
        let place = chosen.is_some().then(|| keys.iter().position(is_chosen)).flatten();
        match (self.hold, place) {
            (Hold::Place, _) if self.selected == 0 => self.unselected = None,
            (_, Some(place)) => (self.selected, self.unselected) = (place, None),
            (Hold::Place, None) => self.unselected = None,
            (Hold::Row | Hold::RowFromTop, None) => {
                if let Some(chosen) = chosen {
                    self.unselected = Some(Unselected::Gone(chosen));
                }
                if self.hold == Hold::RowFromTop {
                    self.selected = 0;
                }
            }
        }
        self.keys = keys;
        self.clamp();
    }

    /// The row selected last, whether or not it is still listed.
    fn chosen(&self) -> Option<K> {
        match &self.unselected {
            None => self.keys.get(self.selected).cloned(),
            Some(Unselected::Gone(row)) => Some(row.clone()),
            Some(Unselected::NotChosen) => None,
        }
    }

    /// Removes all rows. The next replacement selects its first row.
    pub fn restart(&mut self) {
        *self = Self { page: self.page, hold: self.hold, ..Self::default() };
    }

    pub fn on_use(&mut self, list_use: ListUse) {
        match list_use {
            ListUse::Key => {
                let was_held = self.hold != Hold::Place;
                self.hold = Hold::Row;
                match self.drawn.take() {
                    // The last draw showed no selected row, so the pressed key acts on no row, not even on one that was
                    // selected after that draw.
                    Some(None) if self.selected().is_some() => self.deselect(),
                    Some(Some(drawn)) if !was_held => {
                        match self.keys.iter().position(|key| *key == drawn) {
                            Some(place) => self.selected = place,
                            None => self.unselected = Some(Unselected::Gone(drawn)),
                        }
                        self.clamp();
                    }
                    Some(_) | None => {}
                }
            }
            ListUse::Refilter => self.hold = Hold::RowFromTop,
            ListUse::Focus => self.hold = Hold::Row,
            ListUse::Unfocus => (self.hold, self.unselected) = (Hold::Place, None),
        }
    }

    /// Moves the selection. If the selected row is gone, the move starts from its former neighbours.
    pub fn step(&mut self, step: Movement) {
        let down = usize::from(self.unselected.take().is_none());
        self.selected = match step {
            Movement::Up => self.selected.saturating_sub(1),
            Movement::Down => self.selected + down,
            Movement::PageUp => self.selected.saturating_sub(self.page),
            Movement::PageDown => self.selected + self.page,
            Movement::HalfPageUp => self.selected.saturating_sub(self.page.div_ceil(2)),
            Movement::HalfPageDown => self.selected + self.page.div_ceil(2),
            Movement::First => 0,
            Movement::Last => self.keys.len(),
            Movement::Row(row) => row,
        };
        self.clamp();
    }

    /// Selects the second row and keeps the first one visible.
    pub fn select_second(&mut self) {
        (self.selected, self.unselected) = (1, None);
        self.offset = 0;
    }

    /// Selects the first row if no row is selected. Called after the user changed which rows are listed.
    pub fn choose_first(&mut self) {
        if self.unselected.is_some() && !self.keys.is_empty() {
            self.step(Movement::First);
        }
    }

    /// Clears the selection.
    pub fn deselect(&mut self) {
        self.unselected = Some(Unselected::NotChosen);
    }

    /// Selects the row with this identity, if it is listed.
    pub fn select(&mut self, key: &K) {
        if let Some(place) = self.keys.iter().position(|own| own == key) {
            (self.selected, self.unselected) = (place, None);
            self.clamp();
        }
    }

    /// Selects the row with this index, if there is one.
    pub fn select_place(&mut self, place: usize) {
        if place < self.keys.len() {
            (self.selected, self.unselected) = (place, None);
            self.clamp();
        }
    }

    /// Records that the list was drawn with room for this many rows.
    pub fn set_drawn(&mut self, rows: usize) {
        self.page = rows.max(1);
        self.clamp();
        self.drawn = Some(self.selected().cloned());
    }

    fn clamp(&mut self) {
        self.selected = self.selected.min(self.keys.len().saturating_sub(1));
        self.offset = self.first_shown(self.page);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn listing(rows: usize, page: usize) -> Listing<usize> {
        let mut listing = Listing::default();
        listing.replace((0..rows).collect());
        listing.set_drawn(page);
        listing
    }

    #[test]
    fn moves_stop_at_both_ends_and_scroll_no_more_than_needed() {
        let mut list = listing(10, 4);
        list.step(Movement::Up);
        assert_eq!((list.cursor(), list.first_shown(4)), (Some(0), 0));
        for _ in 0..4 {
            list.step(Movement::Down);
        }
        assert_eq!((list.cursor(), list.first_shown(4)), (Some(4), 1));
        list.step(Movement::PageDown);
        list.step(Movement::PageDown);
        assert_eq!((list.cursor(), list.first_shown(4)), (Some(9), 6));
        list.step(Movement::Up);
        assert_eq!((list.cursor(), list.first_shown(4)), (Some(8), 6), "the page stays");
        list.step(Movement::First);
        list.step(Movement::Last);
        assert_eq!(list.selected(), Some(&9));
        list.step(Movement::Row(2));
        assert_eq!(list.selected(), Some(&2));
        list.step(Movement::Row(10));
        assert_eq!(list.selected(), Some(&9));
    }

    #[test]
    fn while_nobody_uses_the_list_the_selection_stays_at_the_top() {
        let mut list = listing(5, 5);
        list.replace(vec![4, 3, 2, 1, 0]);
        assert_eq!(list.selected(), Some(&4), "at the top: whatever comes first");
        list.step(Movement::Down);
        list.replace(vec![0, 1, 2, 3, 4]);
        assert_eq!((list.cursor(), list.selected()), (Some(3), Some(&3)));
        list.replace(vec![0]);
        assert_eq!(list.selected(), Some(&0), "its row is gone");
        list.replace(vec![]);
        assert_eq!(list.selected(), None);
        list.step(Movement::Down);
        assert_eq!((list.cursor(), list.first_shown(5)), (Some(0), 0));
    }

    #[test]
    fn between_keys_the_selection_stays_with_its_row_and_is_none_while_that_is_gone() {
        let mut list = listing(5, 5);
        list.on_use(ListUse::Focus);
        list.replace(vec![4, 3, 2, 1, 0]);
        assert_eq!(list.selected(), Some(&0), "also at the top");
        list.replace(vec![4, 3, 2]);
        assert_eq!((list.selected(), list.cursor(), list.is_row_gone()), (None, None, true));
        list.replace(vec![4, 3, 0, 2]);
        assert_eq!(list.selected(), Some(&0), "it is back");
        list.replace(vec![4, 3, 2]);
        list.step(Movement::Down);
        assert_eq!(list.selected(), Some(&2), "the row that took its place");
        list.replace(vec![4, 3]);
    }

    #[test]
    fn what_is_listed_changes_and_the_selection_is_its_row_or_none() {
        let mut list = listing(9, 5);
        list.on_use(ListUse::Key);
        list.step(Movement::Last);
        let filtered = |rows: Vec<usize>| {
            let mut list = list.clone();
            list.on_use(ListUse::Refilter);
            list.replace(rows);
            list
        };
        assert_eq!(filtered(vec![7, 8]).selected(), Some(&8), "it passes the filter");
        for rows in [vec![], vec![1, 3]] {
            let mut list = filtered(rows);
            assert_eq!(list.selected(), None);
            list.on_use(ListUse::Key);
            list.replace((0..9).collect());
            assert_eq!(list.selected(), Some(&8), "the filter has ended");
        }
        for moved in [Movement::Down, Movement::Up] {
            let mut list = filtered(vec![1, 3]);
            list.step(moved);
            assert_eq!(list.selected(), Some(&1), "the first of what was asked for");
        }
        let mut chosen = filtered(vec![1, 3]);
        chosen.choose_first();
        assert_eq!(chosen.selected(), Some(&1));
        chosen.replace((0..9).collect());
        assert_eq!(chosen.selected(), Some(&1));
        let mut empty = filtered(vec![]);
        empty.choose_first();
        empty.replace((0..9).collect());
        assert_eq!(empty.selected(), Some(&8), "there was none to choose");
    }

    #[test]
    fn a_row_that_came_after_the_list_was_drawn_empty_is_not_acted_on() {
        let mut list: Listing<usize> = Listing::default();
        list.on_use(ListUse::Focus);
        list.set_drawn(5);
        list.replace(vec![7]);
        let mut drawn = list.clone();
        list.on_use(ListUse::Key);
        assert_eq!((list.selected(), list.is_row_gone()), (None, true));
        list.step(Movement::Down);
        assert_eq!(list.selected(), Some(&7));
        drawn.set_drawn(5);
        drawn.on_use(ListUse::Key);
        assert_eq!(drawn.selected(), Some(&7));
    }

    #[test]
    fn a_key_acts_on_the_row_that_was_drawn_as_the_selected_one() {
        let mut list = listing(5, 5);
        list.replace(vec![3, 0, 1]);
        assert_eq!(list.selected(), Some(&3), "not drawn yet");
        let mut vanished = list.clone();
        list.on_use(ListUse::Key);
        assert_eq!(list.selected(), Some(&0), "what the user has seen");
        vanished.replace(vec![3, 1]);
        vanished.on_use(ListUse::Key);
        assert_eq!(vanished.selected(), None);
    }

    proptest! {
        #[test]
        fn no_change_of_rows_between_two_keys_selects_another_row(
            first in vec(0..9_usize, 1..9),
            steps in vec(0..6_usize, 0..4),
            changes in vec(vec(0..9_usize, 0..9), 1..6),
        ) {
            let mut list = Listing::default();
            let distinct = |keys: &[usize]| keys.iter().copied().collect::<BTreeSet<usize>>().into_iter().rev().collect();
            list.replace(distinct(&first));
            list.set_drawn(3);
            list.on_use(ListUse::Key);
            for step in steps {
                let all = [Movement::Up, Movement::Down, Movement::PageUp, Movement::PageDown, Movement::First, Movement::Last];
                list.step(all[step]);
            }
            list.on_use(ListUse::Focus);
            let chosen = list.selected().copied();
            for keys in &changes {
                list.replace(distinct(keys));
                list.set_drawn(3);
                let selected = list.selected().copied();
                prop_assert!(selected.is_none() || selected == chosen, "{chosen:?} became {selected:?}");
                prop_assert_eq!(selected.is_some(), chosen.is_some_and(|chosen| keys.contains(&chosen)));
            }
        }
    }

    #[test]
    fn a_page_larger_than_the_list_shows_it_from_the_top() {
        let mut list = listing(10, 4);
        list.step(Movement::Last);
        list.set_drawn(20);
        assert_eq!(list.first_shown(20), 0);
        assert_eq!(list.first_shown(0), 9, "no room at all is no panic");
    }
}
