//! Which of many things name a label with this value: for selectors, which mostly require some.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use crate::cluster::{Name, Requirement, Selector, SelectorOperator};

/// Numbers by pairs of a label and its value.
///
/// A pair is kept as a hash of 32 bits, so that 150,000 different pods with a few labels each take some megabytes. What is
/// found is a superset of what was asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct LabelIndex {
    /// Ascending.
    sorted: Vec<(u32, u32)>,
    /// What has come since it was sorted.
    recent: Vec<(u32, u32)>,
}

/// More recent entries than this part of all, and than so many, are sorted in.
const RECENT_PART: usize = 16;
const MOST_RECENT: usize = 64;

impl LabelIndex {
    /// Adds a number under a pair.
    pub fn insert(&mut self, key: &Name, value: &Name, number: u32) {
        self.recent.push((hash(key, value), number));
        if self.recent.len() > MOST_RECENT.max(self.sorted.len() / RECENT_PART) {
            self.recent.sort_unstable();
            self.sorted.reserve_exact(self.recent.len());
            self.sorted.append(&mut self.recent);
            // A stable sort merges two sorted runs, which the unstable one does not.
            self.sorted.sort();
        }
    }

    /// The numbers under this pair, and perhaps others; a number as often as it was inserted.
    pub fn numbers(&self, key: &Name, value: &Name) -> impl Iterator<Item = u32> + use<'_> {
        let hash = hash(key, value);
        let start = self.sorted.partition_point(|(other, _)| *other < hash);
        let sorted = self.sorted[start..].iter().take_while(move |(other, _)| *other == hash);
        let recent = self.recent.iter().filter(move |(other, _)| *other == hash);
        sorted.chain(recent).map(|(_, number)| *number)
    }
}

/// The label of which a selector requires one of these values; none if it requires none.
pub(super) fn required_values(selector: &Selector) -> Option<(&Name, &[Name])> {
    selector.requirements.iter().find_map(|Requirement { key, operator }| match operator {
        SelectorOperator::In(values) => Some((key, values.as_slice())),
        SelectorOperator::NotIn(_)
        | SelectorOperator::Exists
        | SelectorOperator::DoesNotExist
        | SelectorOperator::Invalid => None,
    })
}

/// Ascending, each once.
pub(super) fn each_once(mut numbers: Vec<u32>) -> Vec<u32> {
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

fn hash(key: &Name, value: &Name) -> u32 {
    let mut hasher = FxHasher::default();
    (key.as_str(), value.as_str()).hash(&mut hasher);
    let hash = hasher.finish();
    (hash ^ (hash >> 32)) as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_inserted_under_a_pair_is_found_there(
            entries in prop::collection::vec((0_u8..4, 0_u8..40), 0..600),
            asked in (0_u8..4, 0_u8..40),
        ) {
            let name = |number: u8| Name::from(format!("name-{number}"));
            let mut index = LabelIndex::default();
            for (number, (key, value)) in (0..).zip(&entries) {
                index.insert(&name(*key), &name(*value), number);
            }
            let found: Vec<u32> = index.numbers(&name(asked.0), &name(asked.1)).collect();
            let expected: Vec<u32> =
                (0..).zip(&entries).filter(|(_, entry)| **entry == asked).map(|(number, _)| number).collect();
            prop_assert_eq!(each_once(found), expected);
        }
    }
}
