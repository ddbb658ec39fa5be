//! Which nodes hold which image.

use std::{collections::BTreeMap, sync::Arc};

use super::ids::{Ids, address_of};
use crate::cluster::{Name, Node};

/// The images of all nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct Images {
    entries: Vec<Entry>,
    by_name: BTreeMap<Name, Vec<u32>>,
}

/// One image under the names that one or more nodes know it by.
#[derive(Clone, Debug)]
struct Entry {
    size_bytes: i64,
    /// Ascending.
    nodes: Vec<u32>,
}

/// What is known of an image that a pod wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Holders {
    /// As the first node that has it tells: the scheduler keeps one size for all.
    pub size_bytes: i64,
    /// Ascending.
    pub nodes: Vec<u32>,
}

impl Images {
    pub fn of(nodes: &[Option<Arc<Node>>]) -> Self {
        let mut images = Self::default();
        // Equal lists of names are mostly one, for they were read by one decoder.
        let mut known = Ids::<(usize, i64)>::default();
        for (number, node) in (0_u32..).zip(nodes) {
            for image in node.iter().flat_map(|node| node.images.iter()) {
                let address = (address_of(&image.names), image.size_bytes);
                let entry = known.number(&address).unwrap_or_else(|| {
                    let entry = u32::try_from(images.entries.len()).expect("fewer images than fit in memory");
                    images.entries.push(Entry { size_bytes: image.size_bytes, nodes: Vec::new() });
                    for name in image.names.iter() {
                        images.by_name.entry(name.clone()).or_default().push(entry);
                    }
                    known.insert(address, entry);
                    entry
                });
                images.entries[entry as usize].nodes.push(number);
            }
        }
        images
    }

    /// Who has the image of this name, of the nodes that are there.
    pub fn holders(&self, name: &Name, is_there: impl Fn(u32) -> bool) -> Holders {
        let entries =
            self.by_name.get(name).into_iter().flatten().map(|entry| &self.entries[*entry as usize]);
        let there = |entry: &Entry| entry.nodes.iter().copied().find(|node| is_there(*node));
        let first = entries.clone().filter_map(|entry| Some((there(entry)?, entry.size_bytes)));
        let first = first.min_by_key(|(node, _)| *node);
        let Some((_, size_bytes)) = first else { return Holders::default() };
        let mut nodes: Vec<u32> = entries.flat_map(|entry| &entry.nodes).copied().collect();
        nodes.retain(|node| is_there(*node));
        nodes.sort_unstable();
        nodes.dedup();
        Holders { size_bytes, nodes }
    }
}
