//! Storage of the API: objects by kind and key, and the latest changes of each kind by revision.

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

/// All objects. The caller holds the lock, and no method blocks.
pub struct Store {
    revision: u64,
    /// The stores by plural name.
    kinds: BTreeMap<&'static str, KindStore>,
    /// Paged lists in progress, oldest first.
    paged_lists: VecDeque<PagedList>,
    next_paged_list: u64,
}

/// The objects and the history of one kind.
pub struct KindStore {
    objects: BTreeMap<ObjectKey, Arc<Stored>>,
    history: History,
    latest: watch::Sender<u64>,
}

/// One write of an object, in the form that watches need.
#[derive(Clone, Debug)]
pub struct StoredWrite {
    pub revision: u64,
    /// The version before the write; None if the object was created.
    pub before: Option<Arc<Stored>>,
    /// The version after the write. For a removal, this is the last state, with the revision of the removal.
    pub object: Arc<Stored>,
    pub removed: bool,
}

/// Error: the requested revision is older than the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooOld {
    /// The oldest revision that a watch can start from.
    pub oldest: u64,
}

/// The objects of a kind at one revision, which are read in pages.
struct PagedList {
    id: u64,
    plural: &'static str,
    revision: u64,
    taken: Instant,
    objects: Arc<[Arc<Stored>]>,
}

/// Lifetime of a paged list. It matches etcd, which is compacted every five minutes.
const PAGED_LIST_TTL: Duration = Duration::from_secs(300);
/// Maximum number of paged lists. If there are more, the oldest list is dropped. Its reader gets 410 and starts again.
const MAX_PAGED_LISTS: usize = 32;

impl Store {
    /// Returns an empty store. The history of each kind keeps about `history_bytes` of changes.
    pub fn new(history_bytes: usize) -> Self {
        let store = || KindStore {
            objects: BTreeMap::new(),
            history: History { changes: VecDeque::new(), size: 0, limit: history_bytes, compacted: 0 },
            latest: watch::Sender::new(0),
        };
        let kinds = KINDS.iter().map(|kind| (kind.plural, store())).collect();
        Self { revision: 1, kinds, paged_lists: VecDeque::new(), next_paged_list: 0 }
    }

    /// The revision of the latest write of any kind.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    pub fn objects_of(&self, kind: &Kind) -> &KindStore {
        self.kinds.get(kind.plural).expect("there is a store for each kind of the table")
    }

    pub fn object(&self, kind: &Kind, key: &ObjectKey) -> Option<&Arc<Stored>> {
        self.objects_of(kind).objects.get(key)
    }

    /// Creates or replaces an object.
    pub fn put(&mut self, kind: &Kind, key: ObjectKey, value: Value) -> Arc<Stored> {
        let revision = self.next_revision();
        let object = Arc::new(Stored::encode(kind, key.clone(), revision, value));
        let store = self.objects_of_mut(kind);
        let before = store.objects.insert(key, object.clone());
        store.record(StoredWrite { revision, before, object: object.clone(), removed: false });
        object
    }

    /// Removes an object. `value` is its last state.
    pub fn remove(&mut self, kind: &Kind, key: &ObjectKey, value: Value) -> Arc<Stored> {
        let revision = self.next_revision();
        let object = Arc::new(Stored::encode(kind, key.clone(), revision, value));
        let store = self.objects_of_mut(kind);
        let before = store.objects.remove(key);
        store.record(StoredWrite { revision, before, object: object.clone(), removed: true });
        object
    }

    /// Keeps the current objects of a kind as a paged list. Returns the id of the list.
    pub fn start_paged_list(&mut self, kind: &Kind) -> u64 {
        self.paged_lists.retain(|list| list.taken.elapsed() < PAGED_LIST_TTL);
        let plural = self.kinds.get_key_value(kind.plural).expect("a store for each kind").0;
        if let Some(same) =
            self.paged_lists.iter().find(|p| p.plural == *plural && p.revision == self.revision)
        {
            return same.id;
        }
        if self.paged_lists.len() == MAX_PAGED_LISTS {
            self.paged_lists.pop_front();
        }
        self.next_paged_list += 1;
        let list = PagedList {
            id: self.next_paged_list,
            plural,
            revision: self.revision,
            taken: Instant::now(),
            objects: self.objects_of(kind).objects.values().cloned().collect(),
        };
        self.paged_lists.push_back(list);
        self.next_paged_list
    }

    /// Returns the objects of a paged list and the revision of the list; None if the list has expired.
    pub fn paged_list(&self, kind: &Kind, id: u64) -> Option<(Arc<[Arc<Stored>]>, u64)> {
        let list = self.paged_lists.iter().find(|p| p.id == id && p.plural == kind.plural)?;
        (list.taken.elapsed() < PAGED_LIST_TTL).then(|| (list.objects.clone(), list.revision))
    }

    /// Removes all history and all paged lists. A watch from an earlier revision, or the next page of a list, then gets
    /// 410.
    pub fn compact(&mut self) {
        let revision = self.revision;
        for store in self.kinds.values_mut() {
            store.history.compact(revision);
        }
        self.paged_lists.clear();
    }

    fn next_revision(&mut self) -> u64 {
        self.revision += 1;
        self.revision
    }

    fn objects_of_mut(&mut self, kind: &Kind) -> &mut KindStore {
        self.kinds.get_mut(kind.plural).expect("there is a store for each kind of the table")
    }
}

impl KindStore {
    pub fn objects(&self) -> impl Iterator<Item = &Arc<Stored>> {
        self.objects.values()
    }

    pub fn count(&self) -> usize {
        self.objects.len()
    }

    /// The selected objects in key order.
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

    /// Returns the changes after `revision`, at most `max` of them.
    pub fn changes_after(&self, revision: u64, max: usize) -> Result<Vec<StoredWrite>, TooOld> {
        self.history.after(revision, max)
    }

    /// Returns a channel that receives the revision of each new change.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.latest.subscribe()
    }

    fn record(&mut self, change: StoredWrite) {
        let revision = change.revision;
        self.history.push(change);
        self.latest.send_replace(revision);
    }
}

/// The latest changes of one kind, up to a limit in bytes.
struct History {
    changes: VecDeque<StoredWrite>,
    size: usize,
    limit: usize,
    /// The revision of the newest change that is no longer in the history.
    compacted: u64,
}

impl History {
    fn push(&mut self, change: StoredWrite) {
        self.size += change.object.size();
        self.changes.push_back(change);
        while self.size > self.limit && self.changes.len() > 1 {
            if let Some(oldest) = self.changes.pop_front() {
                self.size -= oldest.object.size();
                self.compacted = oldest.revision;
            }
        }
    }

    fn after(&self, revision: u64, max: usize) -> Result<Vec<StoredWrite>, TooOld> {
        if revision < self.compacted {
            return Err(TooOld { oldest: self.compacted });
        }
        let from = self.changes.partition_point(|change| change.revision <= revision);
        Ok(self.changes.range(from..).take(max).cloned().collect())
    }

    fn compact(&mut self, revision: u64) {
        self.changes.clear();
        self.size = 0;
        self.compacted = revision;
    }
}
