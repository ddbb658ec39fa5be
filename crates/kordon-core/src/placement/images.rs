//! An index from container images to the nodes that have them.

use std::{hash::BuildHasher, sync::Arc};

use rustc_hash::FxBuildHasher;

use super::ids::IdsByAddress;
use crate::cluster::{Image, ImageNames, Name, Node};

/// The container images of all nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct Images {
    entries: Vec<Entry>,
    /// Hashes of the image names, each with the index of its entry; sorted.
    by_name: Vec<(u64, u32)>,
}

/// An image with a list of names, and the nodes that report exactly this list.
#[derive(Clone, Debug)]
struct Entry {
    names: ImageNames,
    size_bytes: i64,
    /// Numbers of the nodes that report exactly this list of names for the image, ascending.
    nodes: Vec<u32>,
}

/// The nodes that have an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Holders {
    /// Size of the image on the first node that has it. The scheduler uses one size for all nodes.
    pub size_bytes: i64,
    /// Numbers of the nodes that have the image, ascending.
    pub nodes: Vec<u32>,
}

impl Images {
    pub fn from_nodes(nodes: &[Option<Arc<Node>>]) -> Self {
        let mut images = Self::default();
        // Entries by the address of their list of names. Nodes with the same list usually share one allocation,
        // because the same decoder has read them.
        let mut known = IdsByAddress::<(Arc<str>, i64)>::default();
        for (number, node) in (0_u32..).zip(nodes) {
            for image in node.iter().flat_map(|node| node.images.iter()) {
                let entry = known.number(&(image.names.text(), image.size_bytes)).unwrap_or_else(|| {
                    let entry = images.insert(image);
                    known.insert((image.names.text().clone(), image.size_bytes), entry);
                    entry
                });
                images.entries[entry as usize].nodes.push(number);
            }
        }
        images.by_name.sort_unstable();
        images
    }

    fn insert(&mut self, image: &Image) -> u32 {
        let Image { ref names, size_bytes } = *image;
        let entry = u32::try_from(self.entries.len()).expect("fewer images than fit in memory");
        self.by_name.extend(names.iter().map(|name| (hash(name), entry)));
        self.entries.push(Entry { names: names.clone(), size_bytes, nodes: Vec::new() });
        entry
    }

    /// Returns the entries of the images with this name.
    fn named(&self, name: &str) -> impl Iterator<Item = &Entry> + Clone {
        let hash = hash(name);
        let first = self.by_name.partition_point(|(other, _)| *other < hash);
        let alike = self.by_name[first..].iter().take_while(move |(other, _)| *other == hash);
        let entries = alike.map(|(_, entry)| &self.entries[*entry as usize]);
        entries.filter(move |entry| entry.names.contains(name))
    }

    /// Returns the nodes that have an image with this name and for which `is_present` returns true.
    pub fn holders(&self, name: &Name, is_present: impl Fn(u32) -> bool) -> Holders {
        let entries = self.named(name);
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

fn hash(name: &str) -> u64 {
    FxBuildHasher.hash_one(name)
}
