//! Which nodes hold which image.

use std::{collections::BTreeMap, sync::Arc};

use super::ids::IdsByAddress;
use crate::cluster::{Name, Node};

/// The images of all nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct Images {
    entries: Vec<Entry>,
    by_name: BTreeMap<Name, Vec<u32>>,
}

/// One image, under the names that some nodes report for it.
#[derive(Clone, Debug)]
struct Entry {
    size_bytes: i64,
    /// Ascending.
    nodes: Vec<u32>,
}

/// The nodes that hold an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Holders {
    /// As the first of the nodes reports it: the scheduler keeps one size for all.
    pub size_bytes: i64,
    /// Ascending.
    pub nodes: Vec<u32>,
}

impl Images {
    pub fn of(nodes: &[Option<Arc<Node>>]) -> Self {
        let mut images = Self::default();
        // Equal lists of names mostly share one allocation, for one decoder has read them.
        let mut known = IdsByAddress::<(Arc<[Name]>, i64)>::default();
        for (number, node) in (0_u32..).zip(nodes) {
            for image in node.iter().flat_map(|node| node.images.iter()) {
                let entry = known.number(&(&image.names, image.size_bytes)).unwrap_or_else(|| {
                    let entry = images.insert(&image.names, image.size_bytes);
                    known.insert((image.names.clone(), image.size_bytes), entry);
                    entry
                });
                images.entries[entry as usize].nodes.push(number);
            }
        }
        images
    }

    fn insert(&mut self, names: &[Name], size_bytes: i64) -> u32 {
        let entry = u32::try_from(self.entries.len()).expect("fewer images than fit in memory");
        self.entries.push(Entry { size_bytes, nodes: Vec::new() });
        for name in names {
            self.by_name.entry(name.clone()).or_default().push(entry);
        }
        entry
    }

    /// The present nodes that hold the image of this name.
    pub fn holders(&self, name: &Name, is_present: impl Fn(u32) -> bool) -> Holders {
        let entries =
            self.by_name.get(name).into_iter().flatten().map(|entry| &self.entries[*entry as usize]);
        let first_node = |entry: &Entry| entry.nodes.iter().copied().find(|node| is_present(*node));
        let first = entries.clone().filter_map(|entry| Some((first_node(entry)?, entry.size_bytes)));
        let Some((_, size_bytes)) = first.min_by_key(|(node, _)| *node) else { return Holders::default() };
        let mut nodes: Vec<u32> = entries.flat_map(|entry| &entry.nodes).copied().collect();
        nodes.retain(|node| is_present(*node));
        nodes.sort_unstable();
        nodes.dedup();
        Holders { size_bytes, nodes }
    }
}
