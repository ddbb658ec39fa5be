//! A list of rows: their order, the selected one, and the scroll position.

use std::sync::Arc;

/// The keys of the rows in order, and the selection.
///
/// While nobody uses the list, a selection at the top stays at the top, where the most urgent rows appear. From the first
/// key on it stays with its row: a key acts on the row that was under the cursor before it, or on none if that is
/// gone.
#[derive(Clone, Debug)]
pub struct Listing<K> {
    /// Shared with what was sorted beside the loop.
    keys: Arc<Vec<K>>,
    selected: usize,
    /// The row that was selected and is not listed any more. No other row is selected in its place.
    gone: Option<K>,
    hold: Hold,
    /// The row that was selected when the list was last drawn.
    drawn: Option<K>,
    offset: usize,
    /// Rows that the pane showed when it was last drawn.
    page: usize,
}

/// What becomes of the selection when the rows are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    /// At the top it stays at the top. Elsewhere it stays with its row, or takes the place of a row that is gone.
    Place,
    /// It stays with its row, and is none while that is gone.
    Row,
    /// It stays with its row, or is the first: the user has changed what is listed.
    RowOrFirst,
}

/// What happens to the list besides moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListUse {
    /// A key comes: it acts on the row that is drawn as the selected one.
    Key,
    /// The user changes what is listed.
    Refilter,
    /// The next key comes to it.
    Focus,
    /// The next key comes to another list.
    Unfocus,
}

impl<K> Default for Listing<K> {
    fn default() -> Self {
        Self {
            keys: Arc::default(),
            selected: 0,
            gone: None,
            hold: Hold::Place,
            drawn: None,
            offset: 0,
            page: 1,
        }
    }
}

/// A move among the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Movement {
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
}

impl<K: PartialEq + Clone> Listing<K> {
    pub fn keys(&self) -> &[K] {
        &self.keys
    }

    /// The rows on the page that was drawn last.
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

    /// The selected row; none in an empty list, and where it is gone.
    pub fn selected(&self) -> Option<&K> {
        self.keys.get(self.cursor()?)
    }

    /// The place of the selected row; none if it is gone.
    pub const fn cursor(&self) -> Option<usize> {
        if self.gone.is_none() { Some(self.selected) } else { None }
    }

    /// Whether the row is gone that was selected.
    pub const fn is_row_gone(&self) -> bool {
        self.gone.is_some()
    }

    /// The first row to show on a page of `rows`, so that the selected one is on it.
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

    /// The same with rows that somebody else has sorted.
    pub fn replace_shared(&mut self, keys: Arc<Vec<K>>) {
        let chosen = self.chosen();
        self.replace_all(keys, |key| Some(key) == chosen.as_ref());
    }

    /// The same where a key is not the identity of its row: `is_chosen` tells the row that was selected.
    pub fn replace_where(&mut self, keys: Vec<K>, is_chosen: impl Fn(&K) -> bool) {
        self.replace_all(Arc::new(keys), is_chosen);
    }

    fn replace_all(&mut self, keys: Arc<Vec<K>>, is_chosen: impl Fn(&K) -> bool) {
        let chosen = self.chosen();
        let place = chosen.is_some().then(|| keys.iter().position(is_chosen)).flatten();
        self.gone = None;
        match (self.hold, place) {
            (Hold::Place, _) if self.selected == 0 => {}
            (_, Some(place)) => self.selected = place,
            (Hold::Place, None) => {}
            (Hold::Row, None) => self.gone = chosen,
            (Hold::RowOrFirst, None) => self.selected = 0,
        }
        self.keys = keys;
        self.clamp();
    }

    /// The row that was selected last, whether it is still listed or not.
    fn chosen(&self) -> Option<K> {
        self.gone.as_ref().or_else(|| self.keys.get(self.selected)).cloned()
    }

    /// Forgets all rows, and selects the first of those that come.
    pub fn restart(&mut self) {
        *self = Self { page: self.page, hold: self.hold, ..Self::default() };
    }

    pub fn on_use(&mut self, list_use: ListUse) {
        match list_use {
            ListUse::Key => {
                let drawn = self.drawn.take().filter(|_| self.hold == Hold::Place);
                self.hold = Hold::Row;
                let Some(drawn) = drawn else { return };
                match self.keys.iter().position(|key| *key == drawn) {
                    Some(place) => self.selected = place,
                    None => self.gone = Some(drawn),
                }
                self.clamp();
            }
            ListUse::Refilter => self.hold = Hold::RowOrFirst,
            ListUse::Focus => self.hold = Hold::Row,
            ListUse::Unfocus => (self.hold, self.gone) = (Hold::Place, None),
        }
    }

    /// Moves the selection. From a row that is gone it moves to the rows that were next to it.
    pub fn step(&mut self, step: Movement) {
        let down = usize::from(self.gone.take().is_none());
        self.selected = match step {
            Movement::Up => self.selected.saturating_sub(1),
            Movement::Down => self.selected + down,
            Movement::PageUp => self.selected.saturating_sub(self.page),
            Movement::PageDown => self.selected + self.page,
            Movement::First => 0,
            Movement::Last => self.keys.len(),
        };
        self.clamp();
    }

    /// Selects the second row, with the first still shown.
    pub fn select_second(&mut self) {
        self.selected = 1;
        self.offset = 0;
    }

    /// Selects the row with this key, where there is one.
    pub fn select(&mut self, key: &K) {
        if let Some(place) = self.keys.iter().position(|own| own == key) {
            (self.selected, self.gone) = (place, None);
            self.clamp();
        }
    }

    /// Records that the list was drawn with room for this many rows.
    pub fn set_drawn(&mut self, rows: usize) {
        self.page = rows.max(1);
        self.clamp();
        self.drawn = self.selected().cloned();
    }

    fn clamp(&mut self) {
        self.selected = self.selected.min(self.keys.len().saturating_sub(1));
        self.offset = self.first_shown(self.page);
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::ordered::OrderedSet;

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
        list.on_use(ListUse::Refilter);
        list.replace(vec![1, 3]);
        assert_eq!(list.selected(), Some(&1), "the first of what the user asked for");
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
            let distinct = |keys: &[usize]| keys.iter().copied().collect::<OrderedSet<usize>>().into_iter().rev().collect();
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
