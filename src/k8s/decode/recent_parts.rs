//! Cache of parts of recently read objects, so that equal parts are stored once.

use std::{
    hash::{BuildHasher, Hash},
    sync::Arc,
};

use rustc_hash::FxBuildHasher;

use kordon_core::cluster::SharedList;

/// Default number of parts that are kept. A small number is enough, because lists are sorted by name: the pods of one
/// workload, which have most parts in common, are neighbours.
const FEW: usize = 2048;

/// Recent parts of objects, which later objects can share.
///
/// The hash of a part selects a slot, and a new part replaces the part in its slot. The size of the cache therefore
/// does not grow with the number of objects, even if they have nothing in common. Different versions of the same object
/// share their parts without this cache ([`TableObject::share_parts`](kordon_core::cluster::TableObject::share_parts)).
#[derive(Debug)]
pub struct RecentParts<T: ?Sized, const PLACES: usize = FEW> {
    /// Slots of the cache; the list is empty until the first part is added.
    places: Vec<Option<Arc<T>>>,
}

impl<T: ?Sized, const PLACES: usize> Default for RecentParts<T, PLACES> {
    fn default() -> Self {
        Self { places: Vec::new() }
    }
}

impl<T: Eq + Hash> RecentParts<T> {
    pub fn share(&mut self, part: T) -> Arc<T> {
        self.find_or(part, |part, other| part == other, Arc::new)
    }
}

impl<T: Clone + Eq + Hash> RecentParts<[T]> {
    pub fn share_slice(&mut self, list: &[T]) -> Arc<[T]> {
        self.find_or(list, |list, other| *list == other, Arc::from)
    }
}

impl<T: Clone + Eq + Hash> RecentParts<Box<[T]>> {
    pub fn share_list(&mut self, list: &[T]) -> SharedList<T> {
        self.find_or(list, |list, other| *list == &**other, |list| Arc::new(list.into())).into()
    }
}

impl<T: ?Sized, const PLACES: usize> RecentParts<T, PLACES> {
    /// Returns the recent part that equals `part`; if there is none, creates it with `keep`. `part` may have another
    /// type than the stored parts, but equal parts must have equal hashes.
    pub fn find_or<P: Hash>(
        &mut self,
        part: P,
        is_equal: impl Fn(&P, &T) -> bool,
        keep: impl FnOnce(P) -> Arc<T>,
    ) -> Arc<T> {
        if self.places.is_empty() {
            self.places.resize(PLACES, None);
        }
        let hash = FxBuildHasher.hash_one(&part);
        let place =
            &mut self.places[usize::try_from(hash % PLACES as u64).expect("below the number of places")];
        match place {
            Some(known) if is_equal(&part, known) => known.clone(),
            _ => place.insert(keep(part)).clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_what_is_equal() {
        let mut parts = RecentParts::<[_]>::default();
        let first = parts.share_slice(&["a", "b"]);
        assert!(Arc::ptr_eq(&first, &parts.share_slice(&["a", "b"])));
        assert!(!Arc::ptr_eq(&first, &parts.share_slice(&["a"])));
        assert!(Arc::ptr_eq(&first, &parts.share_slice(&["a", "b"])));
    }

    #[test]
    fn what_is_kept_does_not_grow_with_what_differs() {
        let mut parts = RecentParts::<usize>::default();
        let all: Vec<Arc<usize>> = (0..4 * FEW).map(|number| parts.share(number)).collect();
        let kept = all.iter().filter(|part| Arc::strong_count(part) > 1).count();
        assert!(kept <= FEW && all.iter().enumerate().all(|(number, part)| **part == number), "{kept}");
    }
}
