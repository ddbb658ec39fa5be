//! The pods of the cluster by what selectors can tell apart: namespace and labels.

use std::{collections::BTreeMap, hash::BuildHasher, sync::Arc};

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use super::{
    cow_vec::CowVec,
    label_index::{LabelIndex, each_once, required_values},
    presence::PresenceList,
};
use crate::cluster::{Labels, Namespace, Pod, Selector};

/// All classes of pods. The pods of one ReplicaSet are one class: selectors are matched with classes, not with pods.
#[derive(Clone, Debug, Default)]
pub(super) struct PodClasses {
    all: CowVec<PodClass>,
    in_namespace: Arc<BTreeMap<Namespace, Arc<NamespaceClasses>>>,
    /// Their numbers by their content, which is not kept here once more: there may be as many classes as pods.
    by_content: Arc<HashTable<u32>>,
}

/// The classes of one namespace.
#[derive(Clone, Debug, Default)]
struct NamespaceClasses {
    /// Ascending.
    numbers: Vec<u32>,
    by_label: LabelIndex,
}

/// The pods of a namespace with equal labels.
#[derive(Clone, Debug)]
pub(super) struct PodClass {
    pub namespace: Namespace,
    pub labels: Labels,
    pub on: PresenceList,
    /// That of the namespace and the labels: when the table of all classes grows, none of them is hashed again.
    hash: u64,
}

impl PodClasses {
    /// The number of a pod's class; a new one for the first pod of a class.
    pub fn number_of(&mut self, pod: &Pod) -> u32 {
        let (namespace, labels) = (&pod.key.namespace, &pod.labels);
        let hash = FxBuildHasher.hash_one((namespace, labels));
        let is_same = |number: &u32| {
            let class = self.class(*number);
            class.hash == hash && class.namespace == *namespace && class.labels == *labels
        };
        let known = self.by_content.find(hash, is_same).copied();
        known.unwrap_or_else(|| self.insert(namespace.clone(), labels.clone(), hash))
    }

    fn insert(&mut self, namespace: Namespace, labels: Labels, hash: u64) -> u32 {
        let number = u32::try_from(self.all.len()).expect("fewer classes than pods");
        let classes = Arc::make_mut(&mut self.in_namespace).entry(namespace.clone()).or_default();
        let NamespaceClasses { numbers, by_label } = Arc::make_mut(classes);
        numbers.push(number);
        labels.iter().for_each(|(key, value)| by_label.insert(key, value, number));
        self.all.push(PodClass { namespace, labels, on: PresenceList::default(), hash });
        let hash_of = |number: &u32| self.all[*number as usize].hash;
        Arc::make_mut(&mut self.by_content).insert_unique(hash, number, hash_of);
        number
    }

    /// Where the pods of a class are.
    pub fn on(&self, number: u32) -> &PresenceList {
        &self.all[number as usize].on
    }

    /// The class of a number.
    pub fn class(&self, number: u32) -> &PodClass {
        &self.all[number as usize]
    }

    /// Where the pods of a class are, to be changed.
    pub fn on_mut(&mut self, number: u32) -> &mut PresenceList {
        &mut self.all.get_mut(number as usize).on
    }

    /// Sorts all lists after [`PresenceList::push`].
    pub fn sort(&mut self) {
        self.all.iter_mut().for_each(|class| class.on.sort());
    }

    /// The classes in a scope that a selector selects, with their numbers, ascending in each namespace.
    pub fn selected<'a>(
        &'a self,
        scope: &'a NamespaceScope,
        selector: &'a Selector,
    ) -> impl Iterator<Item = (u32, &'a PodClass)> {
        let (all, some) = match scope {
            NamespaceScope::All => (Some(self.in_namespace.values()), [].as_slice()),
            NamespaceScope::Some(namespaces) => (None, namespaces.as_slice()),
        };
        let some = some.iter().filter_map(|namespace| self.in_namespace.get(namespace));
        let candidates =
            all.into_iter().flatten().chain(some).flat_map(|classes| classes.candidates(selector));
        let with_class = candidates.map(|number| (number, self.class(number)));
        with_class.filter(|(_, class)| selector.matches(&class.labels))
    }
}

impl NamespaceClasses {
    /// The classes that a selector may select, ascending.
    fn candidates(&self, selector: &Selector) -> Vec<u32> {
        let Some((key, values)) = required_values(selector) else { return self.numbers.clone() };
        each_once(values.iter().flat_map(|value| self.by_label.numbers(key, value)).collect())
    }
}

/// Some namespaces, or all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NamespaceScope {
    All,
    /// Each once.
    Some(Vec<Namespace>),
}
