//! Equal parts of objects of one kind, stored once: names, label sets, lists of tolerations and taints.

use std::{borrow::Cow, hash::Hash, sync::Arc};

use rustc_hash::FxHashSet;

use super::leaf::{Pairs, Text};
use crate::cluster::{Image, Interner, Labels, Name, Owner, PodResources, SchedulingSpec, Taint, Toleration};

/// Shares equal parts between the objects of one watch.
#[derive(Debug, Default)]
pub struct SharedParts {
    names: Interner,
    labels: FxHashSet<Arc<[(Name, Name)]>>,
    /// Room for the entries that are looked up: a known set costs no allocation.
    entries: Vec<(Name, Name)>,
    tolerations: FxHashSet<Arc<[Toleration]>>,
    taints: FxHashSet<Arc<[Taint]>>,
    name_lists: FxHashSet<Arc<[Name]>>,
    image_lists: FxHashSet<Arc<[Image]>>,
    amounts: FxHashSet<Arc<[(Name, i64)]>>,
    owners: FxHashSet<Arc<Owner>>,
    resources: FxHashSet<Arc<PodResources>>,
    scheduling: FxHashSet<Arc<SchedulingSpec>>,
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
        Labels::sorted(share(&mut self.labels, &self.entries))
    }

    pub fn tolerations(&mut self, list: &[Toleration]) -> Arc<[Toleration]> {
        share(&mut self.tolerations, list)
    }

    pub fn taints(&mut self, list: &[Taint]) -> Arc<[Taint]> {
        share(&mut self.taints, list)
    }

    pub fn names(&mut self, list: &[Text<'_>]) -> Arc<[Name]> {
        let list: Vec<Name> = list.iter().map(|text| self.names.name(text)).collect();
        self.shared_names(&list)
    }

    pub fn shared_names(&mut self, list: &[Name]) -> Arc<[Name]> {
        share(&mut self.name_lists, list)
    }

    pub fn images(&mut self, list: &[Image]) -> Arc<[Image]> {
        share(&mut self.image_lists, list)
    }

    pub fn amounts(&mut self, list: &[(&str, i64)]) -> Arc<[(Name, i64)]> {
        let list: Vec<_> =
            list.iter().map(|(resource, amount)| (self.names.name(resource), *amount)).collect();
        share(&mut self.amounts, &list)
    }

    pub fn owner(&mut self, owner: Owner) -> Arc<Owner> {
        share_one(&mut self.owners, owner)
    }

    pub fn resources(&mut self, resources: PodResources) -> Arc<PodResources> {
        share_one(&mut self.resources, resources)
    }

    pub fn scheduling(&mut self, spec: SchedulingSpec) -> Arc<SchedulingSpec> {
        share_one(&mut self.scheduling, spec)
    }

    /// Drops the parts that no object uses any more.
    pub fn tidy(&mut self) {
        fn held<T: ?Sized>(shared: &Arc<T>) -> bool {
            Arc::strong_count(shared) > 1
        }
        self.entries.clear();
        self.labels.retain(held);
        self.tolerations.retain(held);
        self.taints.retain(held);
        self.image_lists.retain(held);
        self.name_lists.retain(held);
        self.amounts.retain(held);
        self.owners.retain(held);
        self.resources.retain(held);
        self.scheduling.retain(held);
        self.names.tidy();
    }
}

fn share<T: Clone + Eq + Hash>(known: &mut FxHashSet<Arc<[T]>>, list: &[T]) -> Arc<[T]> {
    if let Some(shared) = known.get(list) {
        return shared.clone();
    }
    let shared: Arc<[T]> = list.into();
    known.insert(shared.clone());
    shared
}

fn share_one<T: Eq + Hash>(known: &mut FxHashSet<Arc<T>>, value: T) -> Arc<T> {
    if let Some(shared) = known.get(&value) {
        return shared.clone();
    }
    let shared = Arc::new(value);
    known.insert(shared.clone());
    shared
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(of: &[(&'static str, &'static str)]) -> Pairs<'static> {
        Pairs(of.iter().map(|&(key, value)| (key.into(), value.into())).collect())
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

    #[test]
    fn unused_parts_are_dropped() {
        let mut pool = SharedParts::default();
        let kept = pool.labels(&pairs(&[("app", "web")]));
        drop(pool.labels(&pairs(&[("app", "db")])));
        drop(pool.tolerations(&[Toleration::default()]));
        pool.tidy();
        assert_eq!(pool.labels.len(), 1);
        assert!(pool.tolerations.is_empty());
        assert_eq!(kept.len(), 1);
    }
}
