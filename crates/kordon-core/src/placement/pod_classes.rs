//! Pods of the cluster, grouped by namespace and labels. A label selector treats all pods of a group alike.

use std::{collections::BTreeMap, hash::BuildHasher, sync::Arc};

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use super::{
    label_index::{LabelIndex, each_once, required_values},
    presence::PresenceList,
};
use crate::cluster::{Labels, Namespace, Pod, Selector};

/// All pod classes, that is, groups of pods with the same namespace and equal labels. The pods of a ReplicaSet usually
/// share one class, so a selector is matched against far fewer classes than pods.
#[derive(Clone, Debug, Default)]
pub(super) struct PodClasses {
    all: Arc<Vec<Arc<PodClass>>>,
    in_namespace: Arc<BTreeMap<Namespace, Arc<NamespaceClasses>>>,
    /// Hash table that finds the number of a pod class by namespace and labels. It stores only numbers, because there
    /// may be as many classes as pods.
    by_content: Arc<HashTable<u32>>,
}

#[derive(Clone, Debug, Default)]
struct NamespaceClasses {
    /// Numbers of the namespace's pod classes, ascending.
    numbers: Vec<u32>,
    by_label: LabelIndex,
}

/// The pods of one namespace with equal labels.
#[derive(Clone, Debug)]
pub(super) struct PodClass {
    pub namespace: Namespace,
    pub labels: Labels,
    pub on: PresenceList,
    /// Hash of namespace and labels. It is stored so that `by_content` can grow without hashing all classes again.
    hash: u64,
}

impl PodClasses {
    /// Returns the number of the pod's class. Creates the class if it does not exist yet.
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
        let class = PodClass { namespace, labels, on: PresenceList::default(), hash };
        Arc::make_mut(&mut self.all).push(Arc::new(class));
        let hash_of = |number: &u32| self.all[*number as usize].hash;
        Arc::make_mut(&mut self.by_content).insert_unique(hash, number, hash_of);
        number
    }

    /// Returns the nodes with pods of a class, and the number of these pods on each node.
    pub fn on(&self, number: u32) -> &PresenceList {
        &self.all[number as usize].on
    }

    /// Returns the pod class with this number.
    pub fn class(&self, number: u32) -> &PodClass {
        &self.all[number as usize]
    }

    /// Returns a mutable list of the nodes with pods of a class.
    pub fn on_mut(&mut self, number: u32) -> &mut PresenceList {
        &mut Arc::make_mut(&mut Arc::make_mut(&mut self.all)[number as usize]).on
    }

    /// Sorts the lists of nodes of all pod classes. Required after [`PresenceList::push`].
    pub fn sort(&mut self) {
        Arc::make_mut(&mut self.all).iter_mut().for_each(|class| Arc::make_mut(class).on.sort());
    }

    /// Returns the pod classes in the namespaces of `scope` that match the selector, with their numbers, ascending
    /// within each namespace.
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
    /// Returns the numbers of the pod classes that may match the selector, ascending.
    fn candidates(&self, selector: &Selector) -> Vec<u32> {
        let Some((key, values)) = required_values(selector) else { return self.numbers.clone() };
        each_once(values.iter().flat_map(|value| self.by_label.numbers(key, value)).collect())
    }
}

/// Namespaces in which pods are selected: some or all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NamespaceScope {
    All,
    /// These namespaces only, without duplicates.
    Some(Vec<Namespace>),
}
