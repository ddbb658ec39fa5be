//! What objects of one kind have in common, stored once: names, label sets, lists of tolerations and taints.

use std::{borrow::Cow, sync::Arc};

use super::{
    leaf::{Pairs, Text},
    recent_parts::RecentParts,
};
use crate::cluster::{Image, Interner, Labels, Name, Owner, PodResources, SchedulingSpec, Taint, Toleration};

/// Shares equal parts between the objects of one watch.
#[derive(Debug, Default)]
pub struct SharedParts {
    names: Interner,
    labels: RecentParts<[(Name, Name)]>,
    /// Room for the entries that are looked up: a known set costs no allocation.
    entries: Vec<(Name, Name)>,
    tolerations: RecentParts<[Toleration]>,
    taints: RecentParts<[Taint]>,
    name_lists: RecentParts<[Name]>,
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
        Labels::sorted(self.labels.share_list(&self.entries))
    }

    pub fn tolerations(&mut self, list: &[Toleration]) -> Arc<[Toleration]> {
        self.tolerations.share_list(list)
    }

    pub fn taints(&mut self, list: &[Taint]) -> Arc<[Taint]> {
        self.taints.share_list(list)
    }

    pub fn names(&mut self, list: &[Text<'_>]) -> Arc<[Name]> {
        let list: Vec<Name> = list.iter().map(|text| self.names.name(text)).collect();
        self.shared_names(&list)
    }

    pub fn shared_names(&mut self, list: &[Name]) -> Arc<[Name]> {
        self.name_lists.share_list(list)
    }

    pub fn images(&mut self, list: &[Image]) -> Arc<[Image]> {
        self.image_lists.share_list(list)
    }

    pub fn amounts(&mut self, list: &[(&str, i64)]) -> Arc<[(Name, i64)]> {
        let list: Vec<_> =
            list.iter().map(|(resource, amount)| (self.names.name(resource), *amount)).collect();
        self.amounts.share_list(&list)
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
}
