//! All objects of one kind, updated from a watch.

use std::{fmt, sync::Arc};

use super::cow_map::CowMap;

/// An object's `metadata.resourceVersion` as a number; 0 if it is not a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

impl Version {
    pub fn parse(text: &str) -> Self {
        Self(text.parse().unwrap_or(0))
    }
}

/// An object that a [`Table`] can hold.
pub trait TableObject {
    type Key: Ord + Clone + fmt::Debug;
    fn key(&self) -> Self::Key;
    fn version(&self) -> Version;

    /// Replaces parts of this object by the equal parts of its earlier version, so that both objects share them. The
    /// default replaces nothing.
    fn share_parts(&mut self, _predecessor: &Self) {}
}

impl<T: TableObject> TableObject for &T {
    type Key = T::Key;
    fn key(&self) -> Self::Key {
        (**self).key()
    }
    fn version(&self) -> Version {
        (**self).version()
    }
}

/// A report of a watch about the objects of one kind.
#[derive(Clone, Debug)]
pub enum ObjectEvent<T: TableObject> {
    /// A list of all objects starts. Known objects stay until [`ObjectEvent::ListDone`].
    ListStarted,
    /// An object of the list.
    Listed(T),
    /// The list is complete: known objects that it did not contain are gone.
    ListDone,
    /// An object that was fetched outside of the list. [`ObjectEvent::ListDone`] removes it unless the list contained
    /// it too.
    Prefetched(T),
    /// An object was added or changed.
    Applied(T),
    Deleted(T::Key),
}

/// An object before and after a change. At least one of the two is present.
#[derive(Debug, PartialEq)]
pub struct Delta<T> {
    pub old: Option<Arc<T>>,
    pub new: Option<Arc<T>>,
}

impl<T> Delta<T> {
    /// Applies the function `of` to the new state, or to the old state if the object was deleted.
    pub fn any<'a, U: ?Sized>(&'a self, of: impl FnOnce(&'a T) -> &'a U) -> Option<&'a U> {
        self.new.as_deref().or(self.old.as_deref()).map(of)
    }
}

impl<T> Clone for Delta<T> {
    fn clone(&self) -> Self {
        Self { old: self.old.clone(), new: self.new.clone() }
    }
}

/// All objects of one kind, sorted by key. Copies are cheap.
#[derive(Clone, Debug)]
pub struct Table<T: TableObject> {
    rows: CowMap<T::Key, Row<T>>,
    /// The number of lists of this kind that have started.
    epoch: u32,
    synced: bool,
}

#[derive(Debug)]
struct Row<T> {
    object: Arc<T>,
    /// Value of `Table::epoch` at the last list that contained the object.
    epoch: u32,
}

impl<T> Clone for Row<T> {
    fn clone(&self) -> Self {
        Self { object: self.object.clone(), epoch: self.epoch }
    }
}

impl<T: TableObject> Default for Table<T> {
    fn default() -> Self {
        Self { rows: CowMap::default(), epoch: 0, synced: false }
    }
}

impl<T: TableObject + PartialEq> Table<T> {
    pub fn get(&self, key: &T::Key) -> Option<&Arc<T>> {
        self.rows.get(key).map(|row| &row.object)
    }

    /// All objects, sorted by key.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<T>> + Clone {
        self.rows.values().map(|row| &row.object)
    }

    /// Consumes the table and returns its objects, sorted by key. Rows that no copy of the table shares are freed on
    /// the way.
    pub fn into_objects(self) -> impl Iterator<Item = Arc<T>> {
        self.rows.into_values().map(|row| row.object)
    }

    /// The objects from key `from` on, sorted by key.
    pub fn iter_from<'a>(&'a self, from: &T::Key) -> impl Iterator<Item = &'a Arc<T>> + Clone + use<'a, T> {
        self.rows.iter_from(from).map(|(_, row)| &row.object)
    }

    /// Calls `on_change` for each object that differs between this table and a later copy.
    pub fn changes(&self, later: &Self, mut on_change: impl FnMut(Delta<T>)) {
        let is_same = |one: &Row<T>, other: &Row<T>| Arc::ptr_eq(&one.object, &other.object);
        let object = |row: Option<&Row<T>>| row.map(|row| row.object.clone());
        self.rows.differences(&later.rows, is_same, |old, new| {
            on_change(Delta { old: object(old), new: object(new) });
        });
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether all objects of the kind have been listed at least once.
    pub fn is_synced(&self) -> bool {
        self.synced
    }

    /// Applies an event and calls `on_change` for each object that it changed.
    ///
    /// Lists and prefetches may arrive in any order, so an object that is older than the known version is ignored.
    pub fn apply(&mut self, event: ObjectEvent<T>, mut on_change: impl FnMut(Delta<T>)) {
        match event {
            ObjectEvent::ListStarted => self.epoch += 1,
            ObjectEvent::Listed(object) | ObjectEvent::Applied(object) => {
                self.put(object, self.epoch, &mut on_change)
            }
            ObjectEvent::Prefetched(object) => self.put(object, self.epoch.saturating_sub(1), &mut on_change),
            ObjectEvent::ListDone => {
                self.synced = true;
                self.sweep(&mut on_change);
            }
            ObjectEvent::Deleted(key) => self.remove(&key, &mut on_change),
        }
    }

    /// Changes an object as if its watch had reported the change. Does nothing if there is no object with this key.
    pub fn change(&mut self, key: &T::Key, change: impl FnOnce(&mut T), mut on_change: impl FnMut(Delta<T>))
    where
        T: Clone,
    {
        let Some(found) = self.rows.find_row(key) else { return };
        let mut object = (*found.value().object).clone();
        change(&mut object);
        let object = Arc::new(object);
        let row = found.into_mut();
        row.epoch = self.epoch;
        let old = std::mem::replace(&mut row.object, object.clone());
        on_change(Delta { old: Some(old), new: Some(object) });
    }

    fn put(&mut self, mut object: T, epoch: u32, on_change: &mut impl FnMut(Delta<T>)) {
        let key = object.key();
        let Some(found) = self.rows.find_row(&key) else {
            let object = Arc::new(object);
            self.rows.insert(key, Row { object: object.clone(), epoch });
            return on_change(Delta { old: None, new: Some(object) });
        };
        let row = found.value();
        let outdated = object.version() < row.object.version();
        let unchanged = outdated || *row.object == object;
        if unchanged && row.epoch == epoch {
            return;
        }
        let row = found.into_mut();
        row.epoch = row.epoch.max(epoch);
        if !unchanged {
            object.share_parts(&row.object);
            let object = Arc::new(object);
            let old = std::mem::replace(&mut row.object, object.clone());
            on_change(Delta { old: Some(old), new: Some(object) });
        }
    }

    fn sweep(&mut self, on_change: &mut impl FnMut(Delta<T>)) {
        let gone: Vec<T::Key> =
            self.rows.iter().filter(|(_, row)| row.epoch != self.epoch).map(|(key, _)| key.clone()).collect();
        for key in gone {
            self.remove(&key, on_change);
        }
    }

    fn remove(&mut self, key: &T::Key, on_change: &mut impl FnMut(Delta<T>)) {
        if let Some(row) = self.rows.remove(key) {
            on_change(Delta { old: Some(row.object), new: None });
        }
    }
}
