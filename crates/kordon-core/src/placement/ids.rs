//! Maps that give each value a number, fast enough for hundreds of thousands of lookups.

use std::{borrow::Borrow, hash::Hash, sync::Arc};

use rustc_hash::FxHashMap;

use crate::cluster::{Name, Namespace, NodeName};

/// A map that gives each value a number and compares values by content. It is never iterated, so its order has no
/// effect.
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

/// A map that gives each shared value a number and compares values by address, so that a lookup does not read the
/// value.
///
/// Clones of one reference have the same address. Equal values in separate allocations have different addresses. Each
/// entry owns a reference to its value, so that the address is not reused.
#[derive(Clone, Debug)]
pub(super) struct IdsByAddress<K: Shared> {
    entries: FxHashMap<K::Address, (u32, K)>,
}

impl<K: Shared> Default for IdsByAddress<K> {
    fn default() -> Self {
        Self { entries: FxHashMap::default() }
    }
}

impl<K: Shared> IdsByAddress<K> {
    pub fn number(&self, of: &impl Shared<Address = K::Address>) -> Option<u32> {
        self.entries.get(&of.address()).map(|(number, _)| *number)
    }

    pub fn insert(&mut self, key: K, number: u32) {
        self.entries.insert(key.address(), (number, key));
    }
}

/// A value that is identified by its address. Clones have the same address.
pub(super) trait Shared {
    type Address: Copy + Eq + Hash;

    fn address(&self) -> Self::Address;
}

impl<T: ?Sized> Shared for Arc<T> {
    type Address = usize;

    fn address(&self) -> usize {
        Arc::as_ptr(self).cast::<u8>().addr()
    }
}

impl Shared for Name {
    type Address = usize;

    fn address(&self) -> usize {
        self.as_str().as_ptr().addr()
    }
}

impl Shared for Namespace {
    type Address = usize;

    fn address(&self) -> usize {
        self.0.address()
    }
}

impl Shared for NodeName {
    type Address = usize;

    fn address(&self) -> usize {
        self.0.address()
    }
}

/// For an integer, the value itself serves as the address.
impl Shared for i64 {
    type Address = Self;

    fn address(&self) -> Self {
        *self
    }
}

impl<T: Shared> Shared for &T {
    type Address = T::Address;

    fn address(&self) -> T::Address {
        (**self).address()
    }
}

impl<A: Shared, B: Shared> Shared for (A, B) {
    type Address = (A::Address, B::Address);

    fn address(&self) -> Self::Address {
        (self.0.address(), self.1.address())
    }
}
