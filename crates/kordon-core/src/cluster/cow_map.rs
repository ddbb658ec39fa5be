//! An ordered map with cheap copies.

use std::{borrow::Borrow, cmp::Ordering, sync::Arc};

/// Maximum number of rows in a chunk. Copies share chunks; the first write to a shared chunk copies its rows.
const CHUNK: usize = 128;

/// An ordered map in copy-on-write chunks.
///
/// Copying a map of 150,000 rows increments some 2,000 reference counts and copies no rows. A write after that copies
/// one chunk. Forecasts and plans take such copies many times a minute while the watches keep writing.
#[derive(Clone, Debug)]
pub struct CowMap<K, V> {
    /// The chunks, sorted. No chunk is empty.
    chunks: Vec<Arc<Vec<(K, V)>>>,
    /// A lower bound of the keys of each chunk. All keys of earlier chunks are below this bound. The bounds are stored
    /// side by side, so that a search reads little memory. `starts[0]` is unused.
    starts: Arc<Vec<K>>,
    len: usize,
}

/// A row that [`CowMap::find_row`] found. The caller can read the value, then write to it.
pub struct FoundRow<'a, K, V> {
    rows: &'a mut Arc<Vec<(K, V)>>,
    row: usize,
}

impl<'a, K: Clone, V: Clone> FoundRow<'a, K, V> {
    pub fn value(&self) -> &V {
        &self.rows[self.row].1
    }

    pub fn into_mut(self) -> &'a mut V {
        &mut Arc::make_mut(self.rows)[self.row].1
    }
}

/// A position in the chunks of a map.
struct Rows<'a, K, V> {
    chunks: &'a [Arc<Vec<(K, V)>>],
    row: usize,
}

impl<'a, K, V> Rows<'a, K, V> {
    const fn from_chunks(chunks: &'a [Arc<Vec<(K, V)>>]) -> Self {
        Self { chunks, row: 0 }
    }

    /// Returns the chunk that starts at this position; `None` if the position is inside a chunk.
    fn whole_chunk(&self) -> Option<&'a Arc<Vec<(K, V)>>> {
        self.chunks.first().filter(|_| self.row == 0)
    }

    fn skip_chunk(&mut self) {
        self.chunks = &self.chunks[1..];
        self.row = 0;
    }

    fn row(&self) -> Option<(&'a K, &'a V)> {
        let (key, value) = self.chunks.first()?.get(self.row)?;
        Some((key, value))
    }

    /// Moves past the current row to the next one. Returns `value`, the value of the row that it moved past.
    fn take(&mut self, value: &'a V) -> Option<&'a V> {
        self.row += 1;
        if self.chunks.first().is_some_and(|chunk| chunk.len() == self.row) {
            self.skip_chunk();
        }
        Some(value)
    }
}

impl<K, V> Default for CowMap<K, V> {
    fn default() -> Self {
        Self { chunks: Vec::new(), starts: Arc::default(), len: 0 }
    }
}

impl<K: Ord + Clone, V: Clone> CowMap<K, V> {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let (chunk, place) = self.find(key);
        place.ok().map(|row| &self.chunks[chunk][row].1)
    }

    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get(key).is_some()
    }

    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.find_row(key).map(FoundRow::into_mut)
    }

    /// Returns the row of `key`, for callers that read the value before they decide to write. Only a write copies a
    /// shared chunk.
    pub fn find_row<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<FoundRow<'_, K, V>>
    where
        K: Borrow<Q>,
    {
        let (chunk, place) = self.find(key);
        let row = place.ok()?;
        Some(FoundRow { rows: &mut self.chunks[chunk], row })
    }

    /// Returns the value of `key`. If there is no such key, inserts the value that `make` returns.
    pub fn entry(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let (chunk, place) = self.find(&key);
        if let Ok(row) = place {
            return &mut Arc::make_mut(&mut self.chunks[chunk])[row].1;
        }
        self.insert(key.clone(), make());
        self.get_mut(&key).expect("it has just been inserted")
    }

    /// Inserts a value and returns the previous one.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let (chunk, place) = self.find(&key);
        match place {
            Ok(row) => {
                let rows = Arc::make_mut(&mut self.chunks[chunk]);
                Some(std::mem::replace(&mut rows[row].1, value))
            }
            Err(row) => {
                self.len += 1;
                if self.chunks.is_empty() {
                    self.starts = Arc::new(vec![key.clone()]);
                    self.chunks.push(Arc::new(vec![(key, value)]));
                    return None;
                }
                let rows = Arc::make_mut(&mut self.chunks[chunk]);
                if rows.len() == rows.capacity() {
                    // A vector doubles its capacity by default, and would then have room for more rows than a chunk may
                    // hold.
                    rows.reserve_exact((CHUNK + 1 - rows.len()).min(rows.len() / 4 + 4));
                }
                rows.insert(row, (key, value));
                if rows.len() > CHUNK {
                    // Splits off only the upper quarter of the rows: keys often arrive in ascending order, and then
                    // most new rows go into the upper chunk.
                    let upper = rows.split_off(CHUNK * 3 / 4);
                    rows.shrink_to_fit();
                    Arc::make_mut(&mut self.starts).insert(chunk + 1, upper[0].0.clone());
                    self.chunks.insert(chunk + 1, Arc::new(upper));
                }
                None
            }
        }
    }

    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let (chunk, place) = self.find(key);
        let row = place.ok()?;
        let rows = Arc::make_mut(&mut self.chunks[chunk]);
        let (_, value) = rows.remove(row);
        self.on_removed(chunk);
        Some(value)
    }

    /// The row with the lowest key.
    pub fn first(&self) -> Option<(&K, &V)> {
        self.chunks.first().and_then(|rows| rows.first()).map(|(key, value)| (key, value))
    }

    /// Removes the row with the lowest key.
    pub fn pop_first(&mut self) -> Option<(K, V)> {
        let rows = Arc::make_mut(self.chunks.first_mut()?);
        let row = rows.remove(0);
        self.on_removed(0);
        Some(row)
    }

    /// Updates the length after a row of `chunk` was removed, and removes the chunk if it is empty.
    fn on_removed(&mut self, chunk: usize) {
        if self.chunks[chunk].is_empty() {
            self.chunks.remove(chunk);
            Arc::make_mut(&mut self.starts).remove(chunk);
        }
        self.len -= 1;
    }

    /// Calls `on_difference` for each row that differs between this map and `new`, sorted by key, with the old and the
    /// new value. Skips chunks that both maps share.
    pub fn differences<'a>(
        &'a self,
        new: &'a Self,
        is_same: impl Fn(&V, &V) -> bool,
        mut on_difference: impl FnMut(Option<&'a V>, Option<&'a V>),
    ) {
        let (mut left, mut right) = (Rows::from_chunks(&self.chunks), Rows::from_chunks(&new.chunks));
        loop {
            while let (Some(one), Some(other)) = (left.whole_chunk(), right.whole_chunk())
                && Arc::ptr_eq(one, other)
            {
                left.skip_chunk();
                right.skip_chunk();
            }
            match (left.row(), right.row()) {
                (None, None) => return,
                (Some((_, value)), None) => on_difference(left.take(value), None),
                (None, Some((_, value))) => on_difference(None, right.take(value)),
                (Some((one, old)), Some((other, new))) => match one.cmp(other) {
                    Ordering::Less => on_difference(left.take(old), None),
                    Ordering::Greater => on_difference(None, right.take(new)),
                    Ordering::Equal => {
                        let (old, new) = (left.take(old), right.take(new));
                        if !old.zip(new).is_some_and(|(old, new)| is_same(old, new)) {
                            on_difference(old, new);
                        }
                    }
                },
            }
        }
    }

    /// All rows, sorted by key.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> + Clone {
        self.chunks.iter().flat_map(|chunk| chunk.iter()).map(|(key, value)| (key, value))
    }

    /// All rows, sorted by key, with mutable values. Shared chunks are copied.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&K, &mut V)> {
        let rows = self.chunks.iter_mut().flat_map(Arc::make_mut);
        rows.map(|(key, value)| (&*key, value))
    }

    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> + Clone {
        self.iter().map(|(key, _)| key)
    }

    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + Clone {
        self.iter().map(|(_, value)| value)
    }

    /// All values, sorted by key. Each chunk is freed after its last row.
    pub fn into_values(self) -> impl Iterator<Item = V> {
        self.chunks.into_iter().flat_map(|chunk| (0..chunk.len()).map(move |row| chunk[row].1.clone()))
    }

    /// The rows from key `from` on, sorted by key.
    pub fn iter_from<'a, Q: Ord + ?Sized>(
        &'a self,
        from: &Q,
    ) -> impl Iterator<Item = (&'a K, &'a V)> + Clone + use<'a, K, V, Q>
    where
        K: Borrow<Q>,
    {
        let (chunk, place) = self.find(from);
        let row = place.unwrap_or_else(|row| row);
        self.chunks[chunk.min(self.chunks.len())..]
            .iter()
            .flat_map(|chunk| chunk.iter())
            .skip(row)
            .map(|(key, value)| (key, value))
    }

    /// Returns the chunk that contains `key` or would contain it, and the result of a binary search for `key` in that
    /// chunk.
    fn find<Q: Ord + ?Sized>(&self, key: &Q) -> (usize, Result<usize, usize>)
    where
        K: Borrow<Q>,
    {
        let chunk = self.starts.partition_point(|start| start.borrow() <= key).saturating_sub(1);
        let place = self
            .chunks
            .get(chunk)
            .map_or(Err(0), |rows| rows.binary_search_by(|row| row.0.borrow().cmp(key)));
        (chunk, place)
    }
}

impl<K: Ord + Clone, V: Clone> FromIterator<(K, V)> for CowMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(rows: I) -> Self {
        let mut map = Self::default();
        for (key, value) in rows {
            map.insert(key, value);
        }
        map
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn behaves_like_a_btree_map_and_copies_stay_as_they_were(
            steps in prop::collection::vec((0_u8..5, 0_u16..600, any::<u8>()), 1..1500),
            copy_at in 0_usize..1500,
            from in 0_u16..600,
        ) {
            let (mut ours, mut model) = (CowMap::default(), BTreeMap::new());
            let mut copy = None;
            for (step, (act, key, value)) in steps.into_iter().enumerate() {
                if step == copy_at {
                    copy = Some((ours.clone(), model.clone()));
                }
                match act {
                    _ if step % 97 == 96 => {
                        ours.iter_mut().for_each(|(key, kept)| *kept = (*key as u8).wrapping_add(value));
                        model.iter_mut().for_each(|(key, kept)| *kept = (*key as u8).wrapping_add(value));
                    }
                    0..2 => prop_assert_eq!(ours.insert(key, value), model.insert(key, value)),
                    2..4 => prop_assert_eq!(ours.remove(&key), model.remove(&key)),
                    _ => prop_assert_eq!(ours.pop_first(), model.pop_first()),
                }
                prop_assert_eq!(ours.first(), model.first_key_value());
            }
            for (ours, model) in copy.into_iter().chain([(ours, model)]) {
                prop_assert_eq!(ours.len(), model.len());
                prop_assert!(ours.iter().eq(model.iter()));
                prop_assert!(ours.iter_from(&from).eq(model.range(from..)));
                prop_assert_eq!(ours.get(&from), model.get(&from));
                prop_assert!(ours.into_values().eq(model.into_values()));
            }
        }
    }
}
