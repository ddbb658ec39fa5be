//! An index from labels to groups of pods. It narrows down the groups that a selector can match.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use crate::cluster::{Name, Requirement, Selector, SelectorOperator};

/// Numbers of groups of pods, indexed by label key and value.
///
/// For each pair of key and value, the index stores only a 32-bit hash. So 150,000 different pods with a few labels
/// each take a few megabytes. Different pairs can have the same hash, so a lookup may also return numbers that were
/// inserted under another pair.
#[derive(Clone, Debug, Default)]
pub(super) struct LabelIndex {
    /// Pairs of label hash and group number, sorted.
    sorted: Vec<(u32, u32)>,
    /// Pairs of label hash and group number that were inserted since the last sort; unsorted.
    recent: Vec<(u32, u32)>,
}

/// `recent` is merged into `sorted` when it has more than `MOST_RECENT` entries and more than 1/16 as many entries as
/// `sorted`.
const RECENT_PART: usize = 16;
const MOST_RECENT: usize = 64;

impl LabelIndex {
    /// Adds the number of a group of pods under a label key and value.
    pub fn insert(&mut self, key: &Name, value: &Name, number: u32) {
        self.recent.push((hash(key, value), number));
        if self.recent.len() > MOST_RECENT.max(self.sorted.len() / RECENT_PART) {
            self.recent.sort_unstable();
            self.sorted.reserve_exact(self.recent.len());
            self.sorted.append(&mut self.recent);
            // The stable sort is fast here, because it merges two runs that are already sorted. The unstable sort does
            // not merge runs.
            self.sorted.sort();
        }
    }

    /// Returns the numbers of the groups of pods that were inserted under this label key and value, with duplicates.
    /// May also return numbers that were inserted under other labels.
    pub fn numbers(&self, key: &Name, value: &Name) -> impl Iterator<Item = u32> + use<'_> {
        let hash = hash(key, value);
        let start = self.sorted.partition_point(|(other, _)| *other < hash);
        let sorted = self.sorted[start..].iter().take_while(move |(other, _)| *other == hash);
        let recent = self.recent.iter().filter(move |(other, _)| *other == hash);
        sorted.chain(recent).map(|(_, number)| *number)
    }
}

/// Returns the first label for which the selector lists allowed values, with these values; `None` if the selector lists
/// values for no label.
pub(super) fn required_values(selector: &Selector) -> Option<(&Name, &[Name])> {
    selector.requirements.iter().find_map(|Requirement { key, operator }| match operator {
        SelectorOperator::In(values) => Some((key, values.as_slice())),
        SelectorOperator::NotIn(_)
        | SelectorOperator::Exists
        | SelectorOperator::DoesNotExist
        | SelectorOperator::Invalid => None,
    })
}

/// Sorts numbers of groups of pods, and removes duplicates.
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
