//! One kind's objects as a watch tells of them.

use std::{fmt, sync::Arc};

use super::cow_map::CowMap;

/// An object's `metadata.resourceVersion` as a number; 0 where it is none.
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
}

/// What a watch told of one kind.
#[derive(Clone, Debug)]
pub enum ObjectEvent<T: TableObject> {
    /// A list begins. What is known stays until [`ObjectEvent::ListDone`].
    ListStarted,
    /// An object of the list.
    Listed(T),
    /// The list is whole: what was known and did not come again is gone.
    ListDone,
    /// An object of a side list, asked for ahead of the whole list; it counts as known, not as listed.
    Prefetched(T),
    /// Added or changed.
    Applied(T),
    Deleted(T::Key),
}

/// An object before and after; one of the two is always there.
#[derive(Debug, PartialEq)]
pub struct Delta<T> {
    pub old: Option<Arc<T>>,
    pub new: Option<Arc<T>>,
}

impl<T> Clone for Delta<T> {
    fn clone(&self) -> Self {
        Self { old: self.old.clone(), new: self.new.clone() }
    }
}

/// All objects of one kind, in order of their keys. Copies are cheap.
#[derive(Clone, Debug)]
pub struct Table<T: TableObject> {
    rows: CowMap<T::Key, Row<T>>,
    /// Counts the lists that began.
    epoch: u32,
    synced: bool,
}

#[derive(Debug)]
struct Row<T> {
    object: Arc<T>,
    /// The list that last told of the object.
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

    /// All objects, in order of their keys.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<T>> + Clone {
        self.rows.values().map(|row| &row.object)
    }

    /// The objects from the first key that is not below `from`.
    pub fn iter_from<'a>(&'a self, from: &T::Key) -> impl Iterator<Item = &'a Arc<T>> + Clone + use<'a, T> {
        self.rows.iter_from(from).map(|(_, row)| &row.object)
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether a list has been seen whole.
    pub fn is_synced(&self) -> bool {
        self.synced
    }

    /// Takes in what the watch told and tells `tell` of each object that changed by it.
    ///
    /// An object older than the known one is ignored: lists and side lists may overtake each other.
    pub fn apply(&mut self, event: ObjectEvent<T>, mut tell: impl FnMut(Delta<T>)) {
        match event {
            ObjectEvent::ListStarted => self.epoch += 1,
            ObjectEvent::Listed(object) | ObjectEvent::Applied(object) => {
                self.put(object, self.epoch, &mut tell)
            }
            ObjectEvent::Prefetched(object) => self.put(object, self.epoch.saturating_sub(1), &mut tell),
            ObjectEvent::ListDone => {
                self.synced = true;
                self.sweep(&mut tell);
            }
            ObjectEvent::Deleted(key) => self.remove(&key, &mut tell),
        }
    }

    fn put(&mut self, object: T, epoch: u32, tell: &mut impl FnMut(Delta<T>)) {
        let key = object.key();
        let Some(row) = self.rows.get(&key) else {
            let object = Arc::new(object);
            self.rows.insert(key, Row { object: object.clone(), epoch });
            return tell(Delta { old: None, new: Some(object) });
        };
        let outdated = object.version() < row.object.version();
        let unchanged = outdated || *row.object == object;
        if unchanged && row.epoch == epoch {
            return;
        }
        let row = self.rows.get_mut(&key).expect("it has just been found");
        row.epoch = row.epoch.max(epoch);
        if !unchanged {
            let object = Arc::new(object);
            let old = std::mem::replace(&mut row.object, object.clone());
            tell(Delta { old: Some(old), new: Some(object) });
        }
    }

    fn sweep(&mut self, tell: &mut impl FnMut(Delta<T>)) {
        let gone: Vec<T::Key> =
            self.rows.iter().filter(|(_, row)| row.epoch != self.epoch).map(|(key, _)| key.clone()).collect();
        for key in gone {
            self.remove(&key, tell);
        }
    }

    fn remove(&mut self, key: &T::Key, tell: &mut impl FnMut(Delta<T>)) {
        if let Some(row) = self.rows.remove(key) {
            tell(Delta { old: Some(row.object), new: None });
        }
    }
}
