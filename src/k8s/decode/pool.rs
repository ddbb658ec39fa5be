//! What objects of one kind have in common, stored once: names, label sets, lists of tolerations and taints.

use std::{
    borrow::Cow,
    hash::{Hash, Hasher},
    ptr,
    sync::Arc,
};

use super::{
    leaf::{Pairs, Text},
    recent_parts::RecentParts,
};
use crate::cluster::{
    Image, Interner, Labels, Name, Owner, PodResources, SchedulingSpec, SharedList, Taint, Toleration,
};

/// Shares equal parts between the objects of one watch.
#[derive(Debug, Default)]
pub struct SharedParts {
    names: Interner,
    labels: RecentParts<[(Name, Name)]>,
    /// Room for the entries that are looked up: a known set costs no allocation.
    entries: Vec<(Name, Name)>,
    tolerations: RecentParts<Box<[Toleration]>>,
    taints: RecentParts<[Taint]>,
    name_lists: RecentParts<Box<[Name]>>,
    image_names: RecentParts<[Name]>,
    image_lists: RecentParts<[Image]>,
    amounts: RecentParts<[(Name, i64)]>,
    owners: RecentParts<Owner>,
    resources: RecentParts<PodResources>,
    scheduling: RecentParts<SchedulingSpec>,
}

impl SharedParts {
    pub fn name(&mut self, text: &str) -> Name {
        self.names.name(text)
    }

    /// The label set of these entries.
    pub fn labels(&mut self, pairs: &Pairs<'_>) -> Labels {
        let pairs = &*pairs.0;
        // The API server sorts keys. From a server that does not, the last of equal keys counts.
        if pairs.is_sorted_by(|(left, _), (right, _)| left < right) {
            self.sorted_labels(pairs)
        } else {
            let mut sorted = pairs.to_vec();
            sorted.reverse();
            sorted.sort_by(|(left, _), (right, _)| left.cmp(right));
            sorted.dedup_by(|(later, _), (earlier, _)| later == earlier);
            self.sorted_labels(&sorted)
        }
    }

    fn sorted_labels(&mut self, pairs: &[(Cow<'_, str>, Cow<'_, str>)]) -> Labels {
        self.entries.clear();
        let entries = pairs.iter().map(|(key, value)| (self.names.name(key), self.names.name(value)));
        self.entries.extend(entries);
        Labels::sorted(self.labels.share_slice(&self.entries))
    }

    pub fn tolerations(&mut self, list: &[Toleration]) -> SharedList<Toleration> {
        self.tolerations.share_list(list)
    }

    pub fn taints(&mut self, list: &[Taint]) -> Arc<[Taint]> {
        self.taints.share_slice(list)
    }

    /// The names of an image. A list that was met lately is found as a whole.
    pub fn image_names(&mut self, list: &[Text<'_>]) -> Arc<[Name]> {
        let Self { names, image_names, .. } = self;
        image_names.find_or(
            list,
            |list, known| list.iter().map(|text| &**text).eq(known.iter().map(Name::as_str)),
            |list| list.iter().map(|text| names.name(text)).collect(),
        )
    }

    pub fn names(&mut self, list: &[Name]) -> SharedList<Name> {
        self.name_lists.share_list(list)
    }

    pub fn images(&mut self, list: &[Image]) -> Arc<[Image]> {
        self.image_lists.find_or(SharedImages(list), |list, known| *list.0 == *known, |list| list.0.into())
    }

    pub fn amounts(&mut self, list: &[(&str, i64)]) -> Arc<[(Name, i64)]> {
        let list: Vec<_> =
            list.iter().map(|(resource, amount)| (self.names.name(resource), *amount)).collect();
        self.amounts.share_slice(&list)
    }

    pub fn owner(&mut self, owner: Owner) -> Arc<Owner> {
        self.owners.share(owner)
    }

    pub fn resources(&mut self, resources: PodResources) -> Arc<PodResources> {
        self.resources.share(resources)
    }

    pub fn scheduling(&mut self, spec: SchedulingSpec) -> Arc<SchedulingSpec> {
        self.scheduling.share(spec)
    }

    /// Drops the names that no object uses any more.
    pub fn tidy(&mut self) {
        self.entries.clear();
        self.names.tidy();
    }
}

/// Images whose names are shared. The hash is of the shared allocations, not of the names, a kilobyte or more for each node.
struct SharedImages<'a>(&'a [Image]);

impl Hash for SharedImages<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for image in self.0 {
            ptr::hash(Arc::as_ptr(&image.names).cast::<Name>(), state);
            image.size_bytes.hash(state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(of: &[(&'static str, &'static str)]) -> Pairs<'static> {
        Pairs(of.iter().map(|&(key, value)| (key.into(), value.into())).collect())
    }

    #[test]
    fn equal_lists_of_images_are_one() {
        let mut pool = SharedParts::default();
        let mut images = |tag: &'static str| {
            let names = pool.image_names(&[Text("web@sha256:1".into()), Text(tag.into())]);
            pool.images(&[Image { names, size_bytes: 7 }])
        };
        let first = images("web:1");
        assert!(Arc::ptr_eq(&first, &images("web:1")));
        assert_ne!(first, images("web:2"));
        assert!(Arc::ptr_eq(&first, &images("web:1")));
    }

    #[test]
    fn equal_label_sets_are_one_whatever_their_order() {
        let mut pool = SharedParts::default();
        let labels = pool.labels(&pairs(&[("app", "web"), ("tier", "front")]));
        assert!(labels.is_same_list(&pool.labels(&pairs(&[("tier", "front"), ("app", "web")]))));
        let doubled = pool.labels(&pairs(&[("app", "db"), ("tier", "front"), ("app", "web")]));
        assert!(labels.is_same_list(&doubled), "the last of equal keys counts");
        assert!(!labels.is_same_list(&pool.labels(&pairs(&[("app", "web")]))));
    }
}
