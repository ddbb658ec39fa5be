//! What the API keeps: objects by kind and key, and the latest changes of each kind, in the order of revisions.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use serde_json::Value;
use tokio::{sync::watch, time::Instant};

use super::{
    kinds::{KINDS, Kind},
    object::{ObjectKey, Stored},
    selector::Selection,
};

/// All objects, under one lock held by whoever calls; no method waits.
pub struct Store {
    revision: u64,
    /// By plural.
    shelves: BTreeMap<&'static str, Shelf>,
    /// Paged lists that somebody is in the middle of, oldest first.
    pages: VecDeque<Pages>,
    next_pages: u64,
}

/// One kind's objects and history.
pub struct Shelf {
    objects: BTreeMap<ObjectKey, Arc<Stored>>,
    history: History,
    latest: watch::Sender<u64>,
}

/// One write, as watches tell it.
#[derive(Clone, Debug)]
pub struct StoredWrite {
    pub revision: u64,
    /// The version before; None where the object was created.
    pub before: Option<Arc<Stored>>,
    /// The version after; for a removal the last state under the removal's revision.
    pub object: Arc<Stored>,
    pub removed: bool,
}

/// The revision asked for is older than the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooOld {
    /// The oldest revision that a watch can begin at.
    pub oldest: u64,
}

/// A list of one moment, to be read in pages.
struct Pages {
    id: u64,
    plural: &'static str,
    revision: u64,
    taken: Instant,
    objects: Arc<[Arc<Stored>]>,
}

/// How long the pages of a list can be asked for, as etcd keeps what it compacts every five minutes.
const PAGES_LIVE: Duration = Duration::from_secs(300);
/// Past this many lists under way, the oldest one's reader is told 410 and begins again.
const PAGES_AT_ONCE: usize = 32;

impl Store {
    /// An empty store, whose history keeps about `history_bytes` of changes for each kind.
    pub fn new(history_bytes: usize) -> Self {
        let shelf = || Shelf {
            objects: BTreeMap::new(),
            history: History { changes: VecDeque::new(), weight: 0, limit: history_bytes, forgotten: 0 },
            latest: watch::Sender::new(0),
        };
        let shelves = KINDS.iter().map(|kind| (kind.plural, shelf())).collect();
        Self { revision: 1, shelves, pages: VecDeque::new(), next_pages: 0 }
    }

    /// The revision of the latest write of any kind.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    pub fn shelf(&self, kind: &Kind) -> &Shelf {
        self.shelves.get(kind.plural).expect("there is a shelf for each kind of the table")
    }

    pub fn object(&self, kind: &Kind, key: &ObjectKey) -> Option<&Arc<Stored>> {
        self.shelf(kind).objects.get(key)
    }

    /// Creates or replaces an object.
    pub fn put(&mut self, kind: &Kind, key: ObjectKey, value: Value) -> Arc<Stored> {
        let revision = self.next_revision();
        let object = Arc::new(Stored::encode(kind, key.clone(), revision, value));
        let shelf = self.shelf_mut(kind);
        let before = shelf.objects.insert(key, object.clone());
        shelf.record(StoredWrite { revision, before, object: object.clone(), removed: false });
        object
    }

    /// Removes an object, whose last state was `value`.
    pub fn remove(&mut self, kind: &Kind, key: &ObjectKey, value: Value) -> Arc<Stored> {
        let revision = self.next_revision();
        let object = Arc::new(Stored::encode(kind, key.clone(), revision, value));
        let shelf = self.shelf_mut(kind);
        let before = shelf.objects.remove(key);
        shelf.record(StoredWrite { revision, before, object: object.clone(), removed: true });
        object
    }

    /// Keeps the objects of a kind as they are now, for a list that is read in pages, and names the list.
    pub fn keep_pages(&mut self, kind: &Kind) -> u64 {
        self.pages.retain(|pages| pages.taken.elapsed() < PAGES_LIVE);
        let plural = self.shelves.get_key_value(kind.plural).expect("a shelf for each kind").0;
        if let Some(same) = self.pages.iter().find(|p| p.plural == *plural && p.revision == self.revision) {
            return same.id;
        }
        if self.pages.len() == PAGES_AT_ONCE {
            self.pages.pop_front();
        }
        self.next_pages += 1;
        let pages = Pages {
            id: self.next_pages,
            plural,
            revision: self.revision,
            taken: Instant::now(),
            objects: self.shelf(kind).objects.values().cloned().collect(),
        };
        self.pages.push_back(pages);
        self.next_pages
    }

    /// The list begun under `id` with its revision; None where it has expired.
    pub fn pages(&self, kind: &Kind, id: u64) -> Option<(Arc<[Arc<Stored>]>, u64)> {
        let pages = self.pages.iter().find(|p| p.id == id && p.plural == kind.plural)?;
        (pages.taken.elapsed() < PAGES_LIVE).then(|| (pages.objects.clone(), pages.revision))
    }

    /// Forgets all history and all lists under way: watches from before now, and continued lists, get 410.
    pub fn forget(&mut self) {
        let revision = self.revision;
        for shelf in self.shelves.values_mut() {
            shelf.history.forget(revision);
        }
        self.pages.clear();
    }

    fn next_revision(&mut self) -> u64 {
        self.revision += 1;
        self.revision
    }

    fn shelf_mut(&mut self, kind: &Kind) -> &mut Shelf {
        self.shelves.get_mut(kind.plural).expect("there is a shelf for each kind of the table")
    }
}

impl Shelf {
    pub fn objects(&self) -> impl Iterator<Item = &Arc<Stored>> {
        self.objects.values()
    }

    pub fn count(&self) -> usize {
        self.objects.len()
    }

    /// The objects of a selection, in the order of their keys.
    pub fn select<'a>(&'a self, selection: &'a Selection) -> impl Iterator<Item = &'a Arc<Stored>> {
        let from = match selection.key() {
            Some(key) => key,
            None => ObjectKey::new(&selection.namespace, ""),
        };
        self.objects
            .range(from..)
            .map(|(_, object)| object)
            .take_while(|o| selection.namespace.is_empty() || o.key.namespace == selection.namespace)
            .filter(|object| selection.matches(object))
    }

    pub fn keys_in(&self, namespace: &str) -> Vec<ObjectKey> {
        let from = self.objects.range(ObjectKey::new(namespace, "")..).map(|(key, _)| key);
        from.take_while(|key| key.namespace == namespace).cloned().collect()
    }

    /// Up to `max` changes after `revision`.
    pub fn changes_after(&self, revision: u64, max: usize) -> Result<Vec<StoredWrite>, TooOld> {
        self.history.after(revision, max)
    }

    /// Tells the revision of each new change.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.latest.subscribe()
    }

    fn record(&mut self, change: StoredWrite) {
        let revision = change.revision;
        self.history.push(change);
        self.latest.send_replace(revision);
    }
}

/// The latest changes of one kind, bounded by their weight.
struct History {
    changes: VecDeque<StoredWrite>,
    weight: usize,
    limit: usize,
    /// The revision of the newest change that is no longer here.
    forgotten: u64,
}

impl History {
    fn push(&mut self, change: StoredWrite) {
        self.weight += change.object.weight();
        self.changes.push_back(change);
        while self.weight > self.limit && self.changes.len() > 1 {
            if let Some(oldest) = self.changes.pop_front() {
                self.weight -= oldest.object.weight();
                self.forgotten = oldest.revision;
            }
        }
    }

    fn after(&self, revision: u64, max: usize) -> Result<Vec<StoredWrite>, TooOld> {
        if revision < self.forgotten {
            return Err(TooOld { oldest: self.forgotten });
        }
        let from = self.changes.partition_point(|change| change.revision <= revision);
        Ok(self.changes.range(from..).take(max).cloned().collect())
    }

    fn forget(&mut self, revision: u64) {
        self.changes.clear();
        self.weight = 0;
        self.forgotten = revision;
    }
}
