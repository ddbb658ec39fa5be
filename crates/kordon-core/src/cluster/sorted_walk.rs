//! Lookups in ascending order of keys, in one walk over sorted rows.

use std::{cmp::Ordering, iter::Peekable};

/// Rows sorted by key, for lookups in ascending order of keys. For thousands of rows, one walk is several times faster
/// than a search for each: a forecast looks up every node in each of some 360 passes, and a refresh of the dashboard
/// every eviction.
pub struct SortedWalk<I: Iterator>(Peekable<I>);

impl<'a, K: Ord + 'a, V, I: Iterator<Item = (&'a K, V)>> SortedWalk<I> {
    pub fn new(rows: impl IntoIterator<IntoIter = I>) -> Self {
        Self(rows.into_iter().peekable())
    }

    /// Returns the row of `key`, which must be above the keys of earlier calls.
    pub fn get(&mut self, key: &K) -> Option<V> {
        loop {
            match self.0.peek()?.0.cmp(key) {
                Ordering::Less => self.0.next(),
                Ordering::Equal => return self.0.next().map(|(_, row)| row),
                Ordering::Greater => return None,
            };
        }
    }

    /// Like [`SortedWalk::get`], but faster for a row that the caller recognizes by its value: if `is_known` returns
    /// true for the next row, that row is returned and no key is compared.
    pub fn get_known(&mut self, key: &K, is_known: impl FnOnce(&V) -> bool) -> Option<V> {
        match self.0.peek() {
            Some((_, row)) if is_known(row) => self.0.next().map(|(_, row)| row),
            _ => self.get(key),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_walk_finds_what_a_search_finds(
            rows: BTreeMap<u8, u8>,
            keys: BTreeSet<u8>,
        ) {
            let mut walk = SortedWalk::new(&rows);
            for key in &keys {
                prop_assert_eq!(walk.get(key), rows.get(key));
            }
            let mut walk = SortedWalk::new(&rows);
            for key in &keys {
                let known = rows.get(key).filter(|_| key % 2 == 0);
                let is_known = |row: &&u8| known.is_some_and(|known| std::ptr::eq(known, *row));
                prop_assert_eq!(walk.get_known(key, is_known), rows.get(key));
            }
        }
    }
}
