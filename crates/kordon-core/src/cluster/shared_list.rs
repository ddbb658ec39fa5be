//! A list that many objects share.

use std::{fmt, ops::Deref, sync::Arc};

use minicbor::{Decode, Decoder, Encode, Encoder, encode::Write};

use super::encoding::{self, EncodingContext};

/// A list whose allocation is shared by all objects with an equal list. As a field it takes one word instead of the two
/// words of an `Arc<[T]>`, which matters because each of 150,000 pods has several such fields.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SharedList<T>(Arc<Box<[T]>>);

impl<T> SharedList<T> {
    /// Whether both lists share one allocation. Lists in different allocations may still be equal.
    pub fn is_same_list(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T: fmt::Debug> fmt::Debug for SharedList<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<T> Default for SharedList<T> {
    fn default() -> Self {
        Self::from_iter([])
    }
}

impl<T> Deref for SharedList<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> From<Arc<Box<[T]>>> for SharedList<T> {
    fn from(list: Arc<Box<[T]>>) -> Self {
        Self(list)
    }
}

impl<T> From<Vec<T>> for SharedList<T> {
    fn from(list: Vec<T>) -> Self {
        Self(Arc::new(list.into()))
    }
}

impl<T, const N: usize> From<[T; N]> for SharedList<T> {
    fn from(list: [T; N]) -> Self {
        Self(Arc::new(Box::new(list)))
    }
}

impl<T> FromIterator<T> for SharedList<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self(Arc::new(items.into_iter().collect()))
    }
}

impl<C: EncodingContext, T: Encode<C> + Send + Sync + 'static> Encode<C> for SharedList<T> {
    fn encode<W: Write>(
        &self,
        encoder: &mut Encoder<W>,
        context: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        encoding::shared::encode(&self.0, encoder, context)
    }
}

impl<'b, C: EncodingContext, T: Decode<'b, C> + Send + Sync + 'static> Decode<'b, C> for SharedList<T> {
    fn decode(decoder: &mut Decoder<'b>, context: &mut C) -> Result<Self, minicbor::decode::Error> {
        encoding::shared::decode(decoder, context).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Pod, PodResources};

    #[test]
    fn it_takes_one_word_and_pods_fit_into_what_the_allocator_gives() {
        assert_eq!(size_of::<SharedList<u8>>(), size_of::<usize>());
        let counts = 2 * size_of::<usize>();
        // mimalloc allocates blocks of 160, 192, 224, 256 and 320 bytes. A pod should fit a block of 224 bytes, and its
        // resources a block of 160 bytes.
        assert!(size_of::<Pod>() + counts <= 224, "{}", size_of::<Pod>());
        assert!(size_of::<PodResources>() + counts <= 160, "{}", size_of::<PodResources>());
    }
}
