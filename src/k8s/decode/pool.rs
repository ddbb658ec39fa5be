//! Parts that objects of one kind have in common, stored once: names, label sets, lists of tolerations and taints.

use std::{
    borrow::Cow,
    hash::{Hash, Hasher},
    ptr,
    sync::Arc,
};

use super::{image::WireImage, leaf::Pairs, recent_parts::RecentParts};
use kordon_core::cluster::{
    Image, ImageNames, Interner, Labels, Name, Owner, PodResources, SchedulingSpec, SharedList, Taint,
    Toleration,
};

/// Number of recent images that are remembered. A large cluster has thousands of images, in a different order on each
/// node.
const IMAGES: usize = 1 << 14;

/// Shares equal parts between the objects of one watch.
#[derive(Debug, Default)]
pub struct SharedParts {
    names: Interner,
    labels: RecentParts<[(Name, Name)]>,
    /// Reused buffer for the entries of a label set that is looked up, so that the lookup of a known set allocates
    /// nothing.
    entries: Vec<(Name, Name)>,
    tolerations: RecentParts<Box<[Toleration]>>,
    taints: RecentParts<[Taint]>,
    name_lists: RecentParts<Box<[Name]>>,
    image_names: RecentParts<str, IMAGES>,
    /// Reused buffer for the names of an image that is looked up.
    image_text: String,
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

    /// Returns the shared label set with these entries.
    pub fn labels(&mut self, pairs: &Pairs<'_>) -> Labels {
        self.entries.clear();
        let pairs = sorted(pairs);
        let entries = pairs.iter().map(|(key, value)| (self.names.name(key), self.names.name(value)));
        self.entries.extend(entries);
        Labels::sorted(self.labels.share_slice(&self.entries))
    }

    /// Returns the annotations with these entries. Only their keys are shared: nodes rarely have equal annotations.
    pub fn annotations(&mut self, pairs: &Pairs<'_>) -> Labels {
        let pairs = sorted(pairs);
        let entries = pairs.iter().map(|(key, value)| (self.names.name(key), Name::from(&**value)));
        Labels::sorted(entries.collect())
    }

    pub fn tolerations(&mut self, list: &[Toleration]) -> SharedList<Toleration> {
        self.tolerations.share_list(list)
    }

    pub fn taints(&mut self, list: &[Taint]) -> Arc<[Taint]> {
        self.taints.share_slice(list)
    }

    /// Returns the image. If a recent image has the same names, both share them.
    pub fn image(&mut self, wire: &WireImage<'_>) -> Image {
        let Self { image_names, image_text, .. } = self;
        image_text.clear();
        let size_bytes = wire.read(|name| ImageNames::push(name, image_text));
        let names = image_names.find_or(&**image_text, |text, known| **text == *known, Arc::from);
        Image { names: ImageNames::from_text(names), size_bytes }
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

    /// Drops shared names that no object uses any more.
    pub fn tidy(&mut self) {
        self.entries.clear();
        self.names.tidy();
    }
}

/// Sorts entries by key.
fn sorted<'p, 'a>(pairs: &'p Pairs<'a>) -> Cow<'p, [(Cow<'a, str>, Cow<'a, str>)]> {
    let pairs = &*pairs.0;
    // The API server sorts the keys. Other servers may not, and may repeat a key; then the last value counts.
    if pairs.is_sorted_by(|(left, _), (right, _)| left < right) {
        return Cow::Borrowed(pairs);
    }
    let mut sorted = pairs.to_vec();
    sorted.reverse();
    sorted.sort_by(|(left, _), (right, _)| left.cmp(right));
    sorted.dedup_by(|(later, _), (earlier, _)| later == earlier);
    Cow::Owned(sorted)
}

/// Images whose names are shared. Hashing uses the address of the shared names instead of their text, because the names
/// of one node's images have a kilobyte or more.
struct SharedImages<'a>(&'a [Image]);

impl Hash for SharedImages<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for image in self.0 {
            ptr::hash(Arc::as_ptr(image.names.text()).cast::<u8>(), state);
            image.size_bytes.hash(state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::k8s::decode::{
        image::ImageFields,
        leaf::{Int, LenientList, Text},
    };

    fn pairs(of: &[(&'static str, &'static str)]) -> Pairs<'static> {
        Pairs(of.iter().map(|&(key, value)| (key.into(), value.into())).collect())
    }

    #[test]
    fn equal_lists_of_images_are_one() {
        let mut pool = SharedParts::default();
        let mut images = |tag: &'static str| {
            let names = LenientList(vec![Text("web@sha256:1".into()), Text(tag.into())]);
            let image = pool.image(&WireImage::Read(ImageFields { names, size_bytes: Int(Some(7)) }));
            pool.images(&[image])
        };
        let first = images("web:1");
        assert!(Arc::ptr_eq(&first, &images("web:1")));
        assert_ne!(first, images("web:2"));
        assert!(Arc::ptr_eq(&first, &images("web:1")));
    }

    #[test]
    fn an_image_is_the_same_in_protobuf_and_in_json() {
        let json: WireImage<'_> =
            serde_json::from_str(r#"{"names": ["web@sha256:1", "web:1"], "sizeBytes": 7}"#)
                .expect("an image");
        let encoded = b"\n\x0cweb@sha256:1\n\x05web:1\x10\x07";
        let mut pool = SharedParts::default();
        let image = pool.image(&WireImage::Encoded(encoded));
        assert_eq!(image, pool.image(&json));
        assert_eq!(
            (image.names.iter().collect::<Vec<_>>(), image.size_bytes),
            (vec!["web@sha256:1", "web:1"], 7)
        );
        assert_eq!(pool.image(&WireImage::Encoded(b"\n\x7f")), Image::default(), "it ends within a field");
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
