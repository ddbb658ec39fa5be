//! Numbers for what is looked up by the hundred thousand.

use std::{borrow::Borrow, hash::Hash, sync::Arc};

use rustc_hash::FxHashMap;

use crate::cluster::Name;

/// Which number a thing has. Only looked up, never listed: nobody sees its order.
#[derive(Clone, Debug)]
pub(super) struct Ids<K> {
    numbers: FxHashMap<K, u32>,
}

impl<K> Default for Ids<K> {
    fn default() -> Self {
        Self { numbers: FxHashMap::default() }
    }
}

impl<K: Hash + Eq> Ids<K> {
    pub fn number<Q: Hash + Eq + ?Sized>(&self, of: &Q) -> Option<u32>
    where
        K: Borrow<Q>,
    {
        self.numbers.get(of).copied()
    }

    pub fn insert(&mut self, key: K, number: u32) {
        self.numbers.insert(key, number);
    }
}

/// Where shared text lies: equal for copies of one name, for as long as one of them is kept.
pub(super) fn address_of_name(name: &Name) -> usize {
    name.as_str().as_ptr().addr()
}

/// Where a shared thing lies: equal for copies of one reference, for as long as one of them is kept.
pub(super) fn address_of<T: ?Sized>(shared: &Arc<T>) -> usize {
    Arc::as_ptr(shared).cast::<u8>().addr()
}
