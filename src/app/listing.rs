//! A list of rows: their order, the selected one, and the scroll position.

/// The keys of the rows in order, and the selection. The selection stays with its row when the order changes; at the
/// top it stays at the top, where the most urgent rows appear.
#[derive(Clone, Debug)]
pub struct Listing<K> {
    keys: Vec<K>,
    selected: usize,
    offset: usize,
    /// Rows that the pane showed when it was last drawn.
    page: usize,
}

impl<K> Default for Listing<K> {
    fn default() -> Self {
        Self { keys: Vec::new(), selected: 0, offset: 0, page: 1 }
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

impl<K: PartialEq> Listing<K> {
    pub fn keys(&self) -> &[K] {
        &self.keys
    }

    pub fn len(&self) -> usize {
        self.keys.len()
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The selected row; none in an empty list.
    pub fn selected(&self) -> Option<&K> {
        self.keys.get(self.selected)
    }

    /// The place of the selected row.
    pub fn place(&self) -> usize {
        self.selected
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
        if self.selected > 0 {
            let place = self.selected().and_then(|key| keys.iter().position(|new| new == key));
            self.selected = place.unwrap_or(self.selected);
        }
        self.keys = keys;
        self.clamp();
    }

    pub fn step(&mut self, step: Movement) {
        self.selected = match step {
            Movement::Up => self.selected.saturating_sub(1),
            Movement::Down => self.selected + 1,
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
            self.selected = place;
            self.clamp();
        }
    }

    /// Sets how many rows the pane has room for.
    pub fn set_page(&mut self, rows: usize) {
        self.page = rows.max(1);
        self.clamp();
    }

    fn clamp(&mut self) {
        self.selected = self.selected.min(self.keys.len().saturating_sub(1));
        self.offset = self.first_shown(self.page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(rows: usize, page: usize) -> Listing<usize> {
        let mut listing = Listing::default();
        listing.replace((0..rows).collect());
        listing.set_page(page);
        listing
    }

    #[test]
    fn moves_stop_at_both_ends_and_scroll_no_more_than_needed() {
        let mut list = listing(10, 4);
        list.step(Movement::Up);
        assert_eq!((list.place(), list.first_shown(4)), (0, 0));
        for _ in 0..4 {
            list.step(Movement::Down);
        }
        assert_eq!((list.place(), list.first_shown(4)), (4, 1));
        list.step(Movement::PageDown);
        list.step(Movement::PageDown);
        assert_eq!((list.place(), list.first_shown(4)), (9, 6));
        list.step(Movement::Up);
        assert_eq!((list.place(), list.first_shown(4)), (8, 6), "the page stays");
        list.step(Movement::First);
        list.step(Movement::Last);
        assert_eq!(list.selected(), Some(&9));
    }

    #[test]
    fn the_selection_follows_its_row_but_stays_at_the_top() {
        let mut list = listing(5, 5);
        list.replace(vec![4, 3, 2, 1, 0]);
        assert_eq!(list.selected(), Some(&4), "at the top: whatever comes first");
        list.step(Movement::Down);
        list.replace(vec![0, 1, 2, 3, 4]);
        assert_eq!((list.place(), list.selected()), (3, Some(&3)));
        list.replace(vec![0]);
        assert_eq!(list.selected(), Some(&0), "its row is gone");
        list.replace(vec![]);
        assert_eq!(list.selected(), None);
        list.step(Movement::Down);
        assert_eq!((list.place(), list.first_shown(5)), (0, 0));
    }

    #[test]
    fn a_page_larger_than_the_list_shows_it_from_the_top() {
        let mut list = listing(10, 4);
        list.step(Movement::Last);
        list.set_page(20);
        assert_eq!(list.first_shown(20), 0);
        assert_eq!(list.first_shown(0), 9, "no room at all is no panic");
    }
}
