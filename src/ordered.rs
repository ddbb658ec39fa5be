//! Maps and sets in the order of their keys.
//!
//! They are used like those of the standard library, and cost a build a quarter of the time. A B-tree is compiled once for each
//! pair of types; the three hundred of kordon were a fifth of the code that a release build optimizes.

use std::{
    borrow::Borrow,
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    iter,
    marker::PhantomData,
    mem,
    ops::{Bound, Index, RangeBounds},
    slice, vec,
};

use minicbor::{Decode, Decoder, Encode, Encoder};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, SeqAccess, Visitor},
};

/// The most rows of a chunk: what an insertion moves at most.
const CHUNK: usize = 64;

/// A map in the order of its keys: sorted rows, in chunks.
#[derive(Clone)]
pub struct OrderedMap<K, V> {
    /// None of them empty.
    chunks: Vec<Vec<(K, V)>>,
    len: usize,
}

/// A chunk, and a row of it.
type Place = (usize, usize);

impl<K, V> OrderedMap<K, V> {
    pub const fn new() -> Self {
        Self { chunks: Vec::new(), len: 0 }
    }

    pub const fn len(&self) -> usize {
        self.len
    }

    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn clear(&mut self) {
        *self = Self::new();
    }

    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter(Rows::new(self.chunks.iter(), self.len))
    }

    pub fn iter_mut(&mut self) -> IterMut<'_, K, V> {
        IterMut(Rows::new(self.chunks.iter_mut(), self.len))
    }

    pub fn keys(&self) -> Keys<'_, K, V> {
        Keys(self.iter())
    }

    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + ExactSizeIterator + Clone {
        self.iter().map(|(_, value)| value)
    }

    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut V> + ExactSizeIterator {
        self.iter_mut().map(|(_, value)| value)
    }

    pub fn into_keys(self) -> IntoKeys<K, V> {
        IntoKeys(self.into_iter())
    }

    pub fn into_values(self) -> impl DoubleEndedIterator<Item = V> + ExactSizeIterator {
        self.into_iter().map(|(_, value)| value)
    }

    pub fn first_key_value(&self) -> Option<(&K, &V)> {
        self.iter().next()
    }

    pub fn last_key_value(&self) -> Option<(&K, &V)> {
        self.iter().next_back()
    }

    pub fn pop_first(&mut self) -> Option<(K, V)> {
        (!self.is_empty()).then(|| self.take((0, 0)))
    }

    pub fn pop_last(&mut self) -> Option<(K, V)> {
        let chunk = self.chunks.len().checked_sub(1)?;
        Some(self.take((chunk, self.chunks[chunk].len() - 1)))
    }

    /// Keeps the rows that `keeps` wants.
    pub fn retain(&mut self, mut keeps: impl FnMut(&K, &mut V) -> bool) {
        for rows in &mut self.chunks {
            rows.retain_mut(|(key, value)| keeps(key, value));
        }
        self.chunks.retain(|rows| !rows.is_empty());
        self.len = self.chunks.iter().map(Vec::len).sum();
    }

    /// Puts a row in its place, where none was found.
    fn put(&mut self, place: Place, key: K, value: V) -> &mut V {
        let (chunk, row) = self.make_room(place);
        self.len += 1;
        let rows = &mut self.chunks[chunk];
        rows.insert(row, (key, value));
        &mut rows[row].1
    }

    /// Where a row can be inserted that belongs in this place.
    fn make_room(&mut self, (chunk, row): Place) -> Place {
        let Some(rows) = self.chunks.get_mut(chunk) else {
            self.chunks.reserve_exact(1);
            self.chunks.push(Vec::new());
            return (chunk, row);
        };
        if rows.len() < CHUNK {
            return (chunk, row);
        }
        // Rows that come in order fill their chunks.
        let kept = if row == CHUNK { CHUNK } else { CHUNK / 2 };
        let upper = rows.split_off(kept);
        self.chunks.insert(chunk + 1, upper);
        if row > CHUNK / 2 { (chunk + 1, row - kept) } else { (chunk, row) }
    }

    /// Takes a row out.
    fn take(&mut self, (chunk, row): Place) -> (K, V) {
        self.len -= 1;
        let taken = self.chunks[chunk].remove(row);
        let left = self.chunks[chunk].len();
        if left == 0 {
            self.chunks.remove(chunk);
        } else if left < CHUNK / 4 && self.chunks.get(chunk + 1).is_some_and(|next| next.len() < CHUNK / 4) {
            let next = self.chunks.remove(chunk + 1);
            self.chunks[chunk].extend(next);
        }
        taken
    }
}

impl<K: Ord, V> OrderedMap<K, V> {
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.get_key_value(key).map(|(_, value)| value)
    }

    pub fn get_key_value<Q: Ord + ?Sized>(&self, key: &Q) -> Option<(&K, &V)>
    where
        K: Borrow<Q>,
    {
        let (chunk, row) = self.find(key).ok()?;
        let (key, value) = &self.chunks[chunk][row];
        Some((key, value))
    }

    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let (chunk, row) = self.find(key).ok()?;
        Some(&mut self.chunks[chunk][row].1)
    }

    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.find(key).is_ok()
    }

    /// Inserts a value and returns the previous one.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.find(&key) {
            Ok((chunk, row)) => Some(mem::replace(&mut self.chunks[chunk][row].1, value)),
            Err(place) => {
                self.put(place, key, value);
                None
            }
        }
    }

    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.remove_entry(key).map(|(_, value)| value)
    }

    pub fn remove_entry<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<(K, V)>
    where
        K: Borrow<Q>,
    {
        let place = self.find(key).ok()?;
        Some(self.take(place))
    }

    /// The row of `key`, to be read, written, or filled.
    pub fn entry(&mut self, key: K) -> Entry<'_, K, V> {
        match self.find(&key) {
            Ok(place) => Entry::Occupied(OccupiedEntry { map: self, place }),
            Err(place) => Entry::Vacant(VacantEntry { map: self, key, place }),
        }
    }

    /// The rows whose keys are in `range`, in order.
    pub fn range<Q: Ord + ?Sized>(&self, range: impl RangeBounds<Q>) -> Iter<'_, K, V>
    where
        K: Borrow<Q>,
    {
        let (first, end) = (self.start(range.start_bound()), self.end(range.end_bound()));
        Iter(if first.0 < end.0 {
            let between = &self.chunks[first.0 + 1..end.0];
            let (front, back) = (&self.chunks[first.0][first.1..], self.chunks.get(end.0));
            let back = back.map_or(&[][..], |rows| &rows[..end.1]);
            let len = front.len() + between.iter().map(Vec::len).sum::<usize>() + back.len();
            Rows { front: front.iter(), chunks: between.iter(), back: back.iter(), len }
        } else {
            let rows = self.chunks.get(first.0).and_then(|rows| rows.get(first.1..end.1)).unwrap_or_default();
            Rows { front: rows.iter(), chunks: [].iter(), back: [].iter(), len: rows.len() }
        })
    }

    /// The chunk and row of the first key that a lower bound allows.
    fn start<Q: Ord + ?Sized>(&self, bound: Bound<&Q>) -> Place
    where
        K: Borrow<Q>,
    {
        match bound {
            Bound::Unbounded => (0, 0),
            Bound::Included(key) => self.boundary(key, 0),
            Bound::Excluded(key) => self.boundary(key, 1),
        }
    }

    /// The chunk and row behind the last key that an upper bound allows.
    fn end<Q: Ord + ?Sized>(&self, bound: Bound<&Q>) -> Place
    where
        K: Borrow<Q>,
    {
        match bound {
            Bound::Unbounded => (self.chunks.len(), 0),
            Bound::Included(key) => self.boundary(key, 1),
            Bound::Excluded(key) => self.boundary(key, 0),
        }
    }

    /// The place of `key`, or where it would be; `behind` is added where it is there.
    fn boundary<Q: Ord + ?Sized>(&self, key: &Q, behind: usize) -> Place
    where
        K: Borrow<Q>,
    {
        self.find(key).map_or_else(|place| place, |(chunk, row)| (chunk, row + behind))
    }

    /// Where `key` is, or would be.
    fn find<Q: Ord + ?Sized>(&self, key: &Q) -> Result<Place, Place>
    where
        K: Borrow<Q>,
    {
        let Some(last) = self.chunks.len().checked_sub(1) else { return Err((0, 0)) };
        // None is empty.
        let chunk = self.chunks[..last].partition_point(|rows| rows[rows.len() - 1].0.borrow() < key);
        let row = self.chunks[chunk].binary_search_by(|row| row.0.borrow().cmp(key));
        row.map(|row| (chunk, row)).map_err(|row| (chunk, row))
    }
}

/// The row of a key, as from [`OrderedMap::entry`].
pub enum Entry<'a, K, V> {
    Occupied(OccupiedEntry<'a, K, V>),
    Vacant(VacantEntry<'a, K, V>),
}

/// A row that is there.
pub struct OccupiedEntry<'a, K, V> {
    map: &'a mut OrderedMap<K, V>,
    place: Place,
}

/// A row that is not there yet.
pub struct VacantEntry<'a, K, V> {
    map: &'a mut OrderedMap<K, V>,
    key: K,
    place: Place,
}

impl<'a, K, V> Entry<'a, K, V> {
    pub fn or_insert(self, value: V) -> &'a mut V {
        self.or_insert_with(|| value)
    }

    pub fn or_insert_with(self, make: impl FnOnce() -> V) -> &'a mut V {
        self.or_insert_with_key(|_| make())
    }

    pub fn or_insert_with_key(self, make: impl FnOnce(&K) -> V) -> &'a mut V {
        match self {
            Self::Occupied(row) => row.into_mut(),
            Self::Vacant(row) => {
                let value = make(&row.key);
                row.insert(value)
            }
        }
    }

    pub fn or_default(self) -> &'a mut V
    where
        V: Default,
    {
        self.or_insert_with(V::default)
    }

    /// Changes the value where there is one.
    #[must_use]
    pub fn and_modify(mut self, change: impl FnOnce(&mut V)) -> Self {
        if let Self::Occupied(OccupiedEntry { map, place }) = &mut self {
            change(&mut map.chunks[place.0][place.1].1);
        }
        self
    }
}

impl<'a, K, V> OccupiedEntry<'a, K, V> {
    pub fn into_mut(self) -> &'a mut V {
        &mut self.map.chunks[self.place.0][self.place.1].1
    }
}

impl<'a, K, V> VacantEntry<'a, K, V> {
    pub const fn key(&self) -> &K {
        &self.key
    }

    pub fn insert(self, value: V) -> &'a mut V {
        self.map.put(self.place, self.key, value)
    }
}

/// The rows of some chunks, with parts of one before and one behind them.
#[derive(Clone)]
struct Rows<C, R> {
    front: R,
    chunks: C,
    back: R,
    len: usize,
}

impl<C, R: Default> Rows<C, R> {
    fn new(chunks: C, len: usize) -> Self {
        Self { front: R::default(), chunks, back: R::default(), len }
    }
}

impl<C: Iterator<Item: IntoIterator<IntoIter = R>>, R: Iterator> Iterator for Rows<C, R> {
    type Item = R::Item;

    fn next(&mut self) -> Option<R::Item> {
        self.len = self.len.saturating_sub(1);
        loop {
            if let Some(row) = self.front.next() {
                return Some(row);
            }
            match self.chunks.next() {
                Some(rows) => self.front = rows.into_iter(),
                None => return self.back.next(),
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len, Some(self.len))
    }
}

impl<C, R> DoubleEndedIterator for Rows<C, R>
where
    C: DoubleEndedIterator<Item: IntoIterator<IntoIter = R>>,
    R: DoubleEndedIterator,
{
    fn next_back(&mut self) -> Option<R::Item> {
        self.len = self.len.saturating_sub(1);
        loop {
            if let Some(row) = self.back.next_back() {
                return Some(row);
            }
            match self.chunks.next_back() {
                Some(rows) => self.back = rows.into_iter(),
                None => return self.front.next_back(),
            }
        }
    }
}

/// An iterator over what `$rows` makes of `$row`.
macro_rules! iterator {
    ($(#[$doc:meta])* $name:ident<$($lifetime:lifetime,)? K, V>($rows:ty), $row:pat => $item:expr, $made:ty) => {
        $(#[$doc])*
        pub struct $name<$($lifetime,)? K, V>($rows);

        impl<$($lifetime,)? K, V> Iterator for $name<$($lifetime,)? K, V> {
            type Item = $made;

            fn next(&mut self) -> Option<$made> {
                self.0.next().map(|$row| $item)
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                self.0.size_hint()
            }
        }

        impl<$($lifetime,)? K, V> DoubleEndedIterator for $name<$($lifetime,)? K, V> {
            fn next_back(&mut self) -> Option<$made> {
                self.0.next_back().map(|$row| $item)
            }
        }

        impl<$($lifetime,)? K, V> ExactSizeIterator for $name<$($lifetime,)? K, V> {}
    };
}

iterator!(
    /// The rows of a map, to be read.
    Iter<'a, K, V>(Rows<slice::Iter<'a, Vec<(K, V)>>, slice::Iter<'a, (K, V)>>), (key, value) => (key, value), (&'a K, &'a V)
);
iterator!(
    /// The rows of a map, their values to be written.
    IterMut<'a, K, V>(Rows<slice::IterMut<'a, Vec<(K, V)>>, slice::IterMut<'a, (K, V)>>),
    (key, value) => (&*key, value), (&'a K, &'a mut V)
);
iterator!(
    /// The rows of a map that is used up.
    IntoIter<K, V>(Rows<vec::IntoIter<Vec<(K, V)>>, vec::IntoIter<(K, V)>>), row => row, (K, V)
);
iterator!(
    /// The keys of a map.
    Keys<'a, K, V>(Iter<'a, K, V>), (key, _) => key, &'a K
);
iterator!(
    /// The keys of a map that is used up.
    IntoKeys<K, V>(IntoIter<K, V>), (key, _) => key, K
);

impl<K, V> Clone for Iter<'_, K, V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: fmt::Debug, V> fmt::Debug for Keys<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

impl<K, V> Clone for Keys<'_, K, V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K, V> Default for OrderedMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for OrderedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

impl<K: PartialEq, V: PartialEq> PartialEq for OrderedMap<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other)
    }
}

impl<K: Eq, V: Eq> Eq for OrderedMap<K, V> {}

impl<K: PartialOrd, V: PartialOrd> PartialOrd for OrderedMap<K, V> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.iter().partial_cmp(other)
    }
}

impl<K: Ord, V: Ord> Ord for OrderedMap<K, V> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.iter().cmp(other)
    }
}

impl<K: Hash, V: Hash> Hash for OrderedMap<K, V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_usize(self.len);
        self.iter().for_each(|row| row.hash(state));
    }
}

impl<K: Ord + Borrow<Q>, Q: Ord + ?Sized, V> Index<&Q> for OrderedMap<K, V> {
    type Output = V;

    fn index(&self, key: &Q) -> &V {
        self.get(key).expect("no such key")
    }
}

impl<K: Ord, V> Extend<(K, V)> for OrderedMap<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, rows: I) {
        for (key, value) in rows {
            self.insert(key, value);
        }
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for OrderedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(rows: I) -> Self {
        let mut map = Self::new();
        map.extend(rows);
        map
    }
}

impl<K: Ord, V, const N: usize> From<[(K, V); N]> for OrderedMap<K, V> {
    fn from(rows: [(K, V); N]) -> Self {
        rows.into_iter().collect()
    }
}

impl<K, V> IntoIterator for OrderedMap<K, V> {
    type Item = (K, V);
    type IntoIter = IntoIter<K, V>;

    fn into_iter(self) -> IntoIter<K, V> {
        IntoIter(Rows::new(self.chunks.into_iter(), self.len))
    }
}

impl<'a, K, V> IntoIterator for &'a OrderedMap<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Iter<'a, K, V> {
        self.iter()
    }
}

impl<'a, K, V> IntoIterator for &'a mut OrderedMap<K, V> {
    type Item = (&'a K, &'a mut V);
    type IntoIter = IterMut<'a, K, V>;

    fn into_iter(self) -> IterMut<'a, K, V> {
        self.iter_mut()
    }
}

impl<K: Serialize, V: Serialize> Serialize for OrderedMap<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>> Deserialize<'de> for OrderedMap<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MapVisitor<K, V>(PhantomData<(K, V)>);

        impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>> Visitor<'de> for MapVisitor<K, V> {
            type Value = OrderedMap<K, V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut rows: A) -> Result<Self::Value, A::Error> {
                let mut map = OrderedMap::new();
                while let Some((key, value)) = rows.next_entry()? {
                    map.insert(key, value);
                }
                Ok(map)
            }
        }

        deserializer.deserialize_map(MapVisitor(PhantomData))
    }
}

impl<C, K: Encode<C>, V: Encode<C>> Encode<C> for OrderedMap<K, V> {
    fn encode<W: minicbor::encode::Write>(
        &self,
        encoder: &mut Encoder<W>,
        context: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        encoder.map(self.len as u64)?;
        for (key, value) in self {
            key.encode(encoder, context)?;
            value.encode(encoder, context)?;
        }
        Ok(())
    }
}

impl<'b, C, K: Decode<'b, C> + Ord, V: Decode<'b, C>> Decode<'b, C> for OrderedMap<K, V> {
    fn decode(decoder: &mut Decoder<'b>, context: &mut C) -> Result<Self, minicbor::decode::Error> {
        decoder.map_iter_with(context)?.collect()
    }
}

/// A set in the order of its members: the keys of an [`OrderedMap`].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OrderedSet<T>(OrderedMap<T, ()>);

impl<T> OrderedSet<T> {
    pub const fn new() -> Self {
        Self(OrderedMap::new())
    }

    pub const fn len(&self) -> usize {
        self.0.len()
    }

    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    pub fn iter(&self) -> Keys<'_, T, ()> {
        self.0.keys()
    }

    pub fn first(&self) -> Option<&T> {
        self.iter().next()
    }

    pub fn last(&self) -> Option<&T> {
        self.iter().next_back()
    }

    pub fn pop_first(&mut self) -> Option<T> {
        self.0.pop_first().map(|(member, ())| member)
    }

    pub fn pop_last(&mut self) -> Option<T> {
        self.0.pop_last().map(|(member, ())| member)
    }

    /// Keeps the members that `keeps` wants.
    pub fn retain(&mut self, mut keeps: impl FnMut(&T) -> bool) {
        self.0.retain(|member, ()| keeps(member));
    }
}

impl<T: Ord> OrderedSet<T> {
    pub fn contains<Q: Ord + ?Sized>(&self, member: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.0.contains_key(member)
    }

    pub fn get<Q: Ord + ?Sized>(&self, member: &Q) -> Option<&T>
    where
        T: Borrow<Q>,
    {
        self.0.get_key_value(member).map(|(member, ())| member)
    }

    /// Inserts a member. False where an equal one is there, which stays.
    pub fn insert(&mut self, member: T) -> bool {
        self.0.insert(member, ()).is_none()
    }

    /// Removes a member. False where there was none.
    pub fn remove<Q: Ord + ?Sized>(&mut self, member: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.0.remove(member).is_some()
    }

    pub fn take<Q: Ord + ?Sized>(&mut self, member: &Q) -> Option<T>
    where
        T: Borrow<Q>,
    {
        self.0.remove_entry(member).map(|(member, ())| member)
    }

    /// The members in `range`, in order.
    pub fn range<Q: Ord + ?Sized>(&self, range: impl RangeBounds<Q>) -> Keys<'_, T, ()>
    where
        T: Borrow<Q>,
    {
        Keys(self.0.range(range))
    }

    /// The members that `other` does not have.
    pub fn difference<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a T> + Clone {
        self.iter().filter(|member| !other.contains(*member))
    }

    /// The members that `other` has, too.
    pub fn intersection<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a T> + Clone {
        self.iter().filter(|member| other.contains(*member))
    }

    /// The members of both.
    pub fn union<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a T> {
        let (mut left, mut right) = (self.iter().peekable(), other.iter().peekable());
        iter::from_fn(move || {
            let order = match (left.peek(), right.peek()) {
                (Some(one), Some(other)) => one.cmp(other),
                (Some(_), None) => Ordering::Less,
                (None, _) => Ordering::Greater,
            };
            let same = if order == Ordering::Greater { None } else { left.next() };
            if order == Ordering::Less { same } else { right.next() }
        })
    }

    pub fn is_disjoint(&self, other: &Self) -> bool {
        self.intersection(other).next().is_none()
    }

    pub fn is_subset(&self, other: &Self) -> bool {
        self.difference(other).next().is_none()
    }

    pub fn is_superset(&self, other: &Self) -> bool {
        other.is_subset(self)
    }
}

impl<T> Default for OrderedSet<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for OrderedSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self).finish()
    }
}

impl<T: Ord> Extend<T> for OrderedSet<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, members: I) {
        for member in members {
            self.insert(member);
        }
    }
}

impl<'a, T: Ord + Copy + 'a> Extend<&'a T> for OrderedSet<T> {
    fn extend<I: IntoIterator<Item = &'a T>>(&mut self, members: I) {
        self.extend(members.into_iter().copied());
    }
}

impl<T: Ord> FromIterator<T> for OrderedSet<T> {
    fn from_iter<I: IntoIterator<Item = T>>(members: I) -> Self {
        let mut set = Self::new();
        set.extend(members);
        set
    }
}

impl<T: Ord, const N: usize> From<[T; N]> for OrderedSet<T> {
    fn from(members: [T; N]) -> Self {
        members.into_iter().collect()
    }
}

impl<T> IntoIterator for OrderedSet<T> {
    type Item = T;
    type IntoIter = IntoKeys<T, ()>;

    fn into_iter(self) -> IntoKeys<T, ()> {
        self.0.into_keys()
    }
}

impl<'a, T> IntoIterator for &'a OrderedSet<T> {
    type Item = &'a T;
    type IntoIter = Keys<'a, T, ()>;

    fn into_iter(self) -> Keys<'a, T, ()> {
        self.iter()
    }
}

impl<T: Serialize> Serialize for OrderedSet<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self)
    }
}

impl<'de, T: Deserialize<'de> + Ord> Deserialize<'de> for OrderedSet<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SetVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de> + Ord> Visitor<'de> for SetVisitor<T> {
            type Value = OrderedSet<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a sequence")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
                let mut set = OrderedSet::new();
                while let Some(member) = members.next_element()? {
                    set.insert(member);
                }
                Ok(set)
            }
        }

        deserializer.deserialize_seq(SetVisitor(PhantomData))
    }
}

impl<C, T: Encode<C>> Encode<C> for OrderedSet<T> {
    fn encode<W: minicbor::encode::Write>(
        &self,
        encoder: &mut Encoder<W>,
        context: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        encoder.array(self.len() as u64)?;
        for member in self {
            member.encode(encoder, context)?;
        }
        Ok(())
    }
}

impl<'b, C, T: Decode<'b, C> + Ord> Decode<'b, C> for OrderedSet<T> {
    fn decode(decoder: &mut Decoder<'b>, context: &mut C) -> Result<Self, minicbor::decode::Error> {
        decoder.array_iter_with(context)?.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_map_behaves_like_a_btree_map(
            steps in prop::collection::vec((0_u8..12, 0_u16..700, any::<u8>()), 1..1500),
            mut bounds in prop::array::uniform2(0_u16..700),
        ) {
            let (mut ours, mut model) = (OrderedMap::new(), BTreeMap::new());
            for (act, key, value) in steps {
                match act {
                    0..5 => prop_assert_eq!(ours.insert(key, value), model.insert(key, value)),
                    5..8 => prop_assert_eq!(ours.remove(&key), model.remove(&key)),
                    8 => prop_assert_eq!(ours.pop_first(), model.pop_first()),
                    9 => prop_assert_eq!(ours.pop_last(), model.pop_last()),
                    10 => {
                        *ours.entry(key).and_modify(|kept| *kept ^= value).or_insert(value) |= 1;
                        *model.entry(key).and_modify(|kept| *kept ^= value).or_insert(value) |= 1;
                    }
                    _ if value < 8 => {
                        ours.retain(|key, kept| *key as u8 & 3 != *kept & 3);
                        model.retain(|key, kept| *key as u8 & 3 != *kept & 3);
                    }
                    _ => prop_assert_eq!(ours.get_mut(&key).map(|kept| *kept = value), model.get_mut(&key).map(|kept| *kept = value)),
                }
                prop_assert_eq!(ours.first_key_value(), model.first_key_value());
                prop_assert_eq!(ours.last_key_value(), model.last_key_value());
            }
            prop_assert!(ours.chunks.iter().all(|rows| (1..=CHUNK).contains(&rows.len())));
            prop_assert_eq!(ours.len(), model.len());
            prop_assert_eq!(ours.iter().len(), model.len());
            prop_assert!(ours.iter().eq(&model));
            prop_assert!(ours.iter().rev().eq(model.iter().rev()));
            prop_assert!(ours.iter_mut().eq(model.iter_mut()));
            prop_assert_eq!(format!("{ours:?}"), format!("{model:?}"));
            bounds.sort();
            let [from, to] = bounds;
            prop_assert_eq!(ours.get(&from), model.get(&from));
            prop_assert!(ours.range(from..).eq(model.range(from..)));
            prop_assert!(ours.range(..=to).rev().eq(model.range(..=to).rev()));
            prop_assert_eq!(ours.range(from..=to).len(), model.range(from..=to).count());
            prop_assert!(ours.range(from..to).eq(model.range(from..to)));
            let behind = (Bound::Excluded(from), Bound::Unbounded);
            prop_assert!(ours.range(behind).eq(model.range(behind)));
            let mut ends = ours.iter();
            prop_assert_eq!((ends.next(), ends.next_back()).1.is_some(), model.len() > 1);
            prop_assert_eq!(ends.count(), model.len().saturating_sub(2));
            prop_assert_eq!(&ours.clone().into_iter().rev().collect::<OrderedMap<_, _>>(), &ours);
            prop_assert!(ours.into_iter().eq(model));
        }

        #[test]
        fn a_set_behaves_like_a_btree_set(
            one in prop::collection::vec(0_u16..300, 0..300), other in prop::collection::vec(0_u16..300, 0..300),
        ) {
            let (ours, model) = (one.iter().copied().collect::<OrderedSet<_>>(), one.into_iter().collect::<BTreeSet<_>>());
            let (too, also) = (other.iter().copied().collect::<OrderedSet<_>>(), other.into_iter().collect::<BTreeSet<_>>());
            prop_assert!(ours.union(&too).eq(model.union(&also)));
            prop_assert!(ours.difference(&too).eq(model.difference(&also)));
            prop_assert!(ours.intersection(&too).eq(model.intersection(&also)));
            prop_assert_eq!(ours.is_disjoint(&too), model.is_disjoint(&also));
            prop_assert_eq!(ours.is_subset(&too), model.is_subset(&also));
            prop_assert!(ours.iter().eq(&model));
            prop_assert_eq!(ours.cmp(&too), model.cmp(&also));
        }

        #[test]
        fn the_encodings_are_those_of_btree_maps(rows: BTreeMap<String, BTreeSet<u8>>) {
            let ours: OrderedMap<String, OrderedSet<u8>> =
                rows.iter().map(|(key, members)| (key.clone(), members.iter().copied().collect())).collect();
            let json = serde_json::to_string(&rows).expect("JSON");
            prop_assert_eq!(&serde_json::to_string(&ours).expect("JSON"), &json);
            prop_assert_eq!(&serde_json::from_str::<OrderedMap<String, OrderedSet<u8>>>(&json).expect("JSON"), &ours);
            let cbor = minicbor::to_vec(&rows).expect("CBOR");
            prop_assert_eq!(&minicbor::to_vec(&ours).expect("CBOR"), &cbor);
            prop_assert_eq!(minicbor::decode::<OrderedMap<String, OrderedSet<u8>>>(&cbor).expect("CBOR"), ours);
        }
    }
}
