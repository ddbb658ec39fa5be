//! A vector with cheap copies.

use std::{ops::Index, sync::Arc};

/// Items per chunk. Copies share chunks; the first write to a shared chunk copies its items.
const CHUNK: usize = 64;

/// A vector in copy-on-write chunks: copying 5,000 items increments about 80 reference counts.
///
/// A plan copies its snapshot for each of its runs, and changes only a few nodes of each copy.
#[derive(Clone, Debug)]
pub(super) struct CowVec<T> {
    /// The chunks; all but the last are full.
    chunks: Vec<Arc<Vec<T>>>,
}

impl<T> Default for CowVec<T> {
    fn default() -> Self {
        Self { chunks: Vec::new() }
    }
}

impl<T> CowVec<T> {
    pub fn len(&self) -> usize {
        self.chunks.last().map_or(0, |last| (self.chunks.len() - 1) * CHUNK + last.len())
    }

    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &T> + Clone {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }
}

impl<T: Clone> CowVec<T> {
    pub fn push(&mut self, item: T) {
        match self.chunks.last_mut().filter(|last| last.len() < CHUNK) {
            Some(last) => Arc::make_mut(last).push(item),
            None => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.push(item);
                self.chunks.push(Arc::new(chunk));
            }
        }
    }

    /// Returns a mutable reference to an item. The index must exist.
    pub fn get_mut(&mut self, place: usize) -> &mut T {
        &mut Arc::make_mut(&mut self.chunks[place / CHUNK])[place % CHUNK]
    }

    /// Returns all items, for changes.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.chunks.iter_mut().flat_map(|chunk| Arc::make_mut(chunk).iter_mut())
    }
}

impl<T> Index<usize> for CowVec<T> {
    type Output = T;

    #[inline]
    fn index(&self, place: usize) -> &T {
        &self.chunks[place / CHUNK][place % CHUNK]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn behaves_like_a_vector_and_copies_stay_as_they_were(
            steps in prop::collection::vec((any::<bool>(), any::<u16>(), any::<u8>()), 1..400),
            copy_at in 0_usize..400,
        ) {
            let (mut ours, mut model) = (CowVec::default(), Vec::new());
            let mut copy = None;
            for (step, (adds, place, value)) in steps.into_iter().enumerate() {
                if step == copy_at {
                    copy = Some((ours.clone(), model.clone()));
                }
                if adds || model.is_empty() {
                    ours.push(value);
                    model.push(value);
                } else {
                    let place = usize::from(place) % model.len();
                    *ours.get_mut(place) = value;
                    model[place] = value;
                }
            }
            for (ours, model) in copy.into_iter().chain([(ours, model)]) {
                prop_assert_eq!(ours.len(), model.len());
                prop_assert!(ours.iter().eq(model.iter()));
                prop_assert!((0..model.len()).all(|place| ours[place] == model[place]));
            }
        }
    }
}
