//! Pods of the cluster, grouped by their affinity terms. The scheduler also checks the terms of existing pods when it
//! places a new pod.

use std::{collections::BTreeMap, slice, sync::Arc};

use super::{
    ids::IdsByAddress,
    label_index::{LabelIndex, each_once as numbers_once, required_values},
    pod_classes::NamespaceScope,
    presence::PresenceList,
};
use crate::cluster::{Labels, Namespace, Pod, SchedulingSpec, scheduling::PodTerm};

/// All classes of pods that have affinity or anti-affinity terms.
#[derive(Clone, Debug, Default)]
pub(super) struct AffinityClasses {
    all: Arc<Vec<Arc<AffinityClass>>>,
    /// Classes whose affinity terms select only pods in the namespace of the class.
    in_namespace: Arc<BTreeMap<Namespace, Arc<ClassesByTerm>>>,
    /// Classes with at least one affinity term that also selects pods in other namespaces.
    across_namespaces: Arc<ClassesByTerm>,
    ids: Arc<IdsByAddress<(Namespace, Arc<SchedulingSpec>)>>,
}

/// Classes of pods, indexed by the labels that their affinity terms select.
#[derive(Clone, Debug, Default)]
struct ClassesByTerm {
    by_label: LabelIndex,
    /// Classes with an affinity term whose selector requires no particular label value.
    others: Vec<u32>,
}

/// Pods of one namespace that share one spec with affinity terms.
#[derive(Clone, Debug)]
pub(super) struct AffinityClass {
    pub namespace: Namespace,
    pub spec: Arc<SchedulingSpec>,
    /// The nodes with pods of the class. Terminating pods count until they are gone.
    pub on: PresenceList,
}

impl AffinityClasses {
    /// Returns the number of the pod's class, and creates the class if it does not exist yet. `None` if the pod has no
    /// affinity terms.
    pub fn number_of(&mut self, pod: &Pod) -> Option<u32> {
        if !pod.scheduling.has_pod_terms() {
            return None;
        }
        let known = self.ids.number(&(&pod.key.namespace, &pod.scheduling));
        Some(known.unwrap_or_else(|| self.insert(pod)))
    }

    fn insert(&mut self, pod: &Pod) -> u32 {
        let number = u32::try_from(self.all.len()).expect("fewer classes than pods");
        let (namespace, spec) = (pod.key.namespace.clone(), pod.scheduling.clone());
        let is_local = |term: &PodTerm| term.namespaces.is_empty() && term.namespace_selector.is_none();
        let classes = if spec.pod_affinity.iter().chain(spec.pod_anti_affinity.iter()).all(is_local) {
            Arc::make_mut(&mut self.in_namespace).entry(namespace.clone()).or_default()
        } else {
            &mut self.across_namespaces
        };
        Arc::make_mut(classes).insert(&spec, number);
        Arc::make_mut(&mut self.ids).insert((namespace.clone(), spec.clone()), number);
        let class = AffinityClass { namespace, spec, on: PresenceList::default() };
        Arc::make_mut(&mut self.all).push(Arc::new(class));
        number
    }

    /// Returns true if no node has a pod of the class.
    pub fn is_new(&self, number: u32) -> bool {
        self.all[number as usize].on.is_empty()
    }

    /// Returns a mutable list of the nodes with pods of a class.
    pub fn on_mut(&mut self, number: u32) -> &mut PresenceList {
        &mut Arc::make_mut(&mut Arc::make_mut(&mut self.all)[number as usize]).on
    }

    /// Sorts the lists of nodes of all classes. Required after [`PresenceList::push`].
    pub fn sort(&mut self) {
        Arc::make_mut(&mut self.all).iter_mut().for_each(|class| Arc::make_mut(class).on.sort());
    }

    /// Returns the classes whose terms may select a pod with these labels in this namespace.
    pub fn concerning(
        &self,
        namespace: &Namespace,
        labels: &Labels,
    ) -> impl Iterator<Item = (u32, &AffinityClass)> {
        let local = self.in_namespace.get(namespace).into_iter();
        let numbers = local.chain([&self.across_namespaces]).flat_map(|classes| classes.concerning(labels));
        let numbers = numbers_once(numbers.collect());
        numbers.into_iter().map(|number| (number, &*self.all[number as usize]))
    }
}

impl ClassesByTerm {
    fn insert(&mut self, spec: &SchedulingSpec, number: u32) {
        for term in spec.pod_affinity.iter().chain(spec.pod_anti_affinity.iter()) {
            // An affinity term without a selector selects no pods.
            let Some(selector) = &term.selector else { continue };
            match required_values(selector) {
                Some((key, values)) => {
                    values.iter().for_each(|value| self.by_label.insert(key, value, number));
                }
                None => self.others.push(number),
            }
        }
    }

    fn concerning<'a>(&'a self, labels: &'a Labels) -> impl Iterator<Item = u32> + use<'a> {
        let by_label = labels.iter().flat_map(|(key, value)| self.by_label.numbers(key, value));
        by_label.chain(self.others.iter().copied())
    }
}

/// Namespaces of the cluster with their labels.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct NamespaceLabels(pub BTreeMap<Namespace, Labels>);

impl NamespaceLabels {
    /// Returns the namespaces whose pods an affinity term can select. `home` is the namespace of the pod that has the
    /// term.
    pub fn scope(&self, term: &PodTerm, home: &Namespace) -> NamespaceScope {
        let Some(selector) = &term.namespace_selector else {
            let home = slice::from_ref(home);
            let named = if term.namespaces.is_empty() { home } else { &term.namespaces };
            return NamespaceScope::Some(each_once(named.to_vec()));
        };
        if selector.is_empty() {
            return NamespaceScope::All;
        }
        let selected = self.0.iter().filter(|(_, labels)| selector.matches(labels)).map(|(name, _)| name);
        NamespaceScope::Some(each_once(term.namespaces.iter().chain(selected).cloned().collect()))
    }

    /// Returns whether an affinity term selects a pod in `namespace` with these labels. `home` is the namespace of the
    /// pod that has the term.
    pub fn selects(&self, term: &PodTerm, home: &Namespace, namespace: &Namespace, labels: &Labels) -> bool {
        let Some(selector) = &term.selector else { return false };
        let is_in_scope = match &term.namespace_selector {
            None if term.namespaces.is_empty() => home == namespace,
            None => term.namespaces.contains(namespace),
            Some(of_namespace) => {
                let no_labels = Labels::default();
                let known = self.0.get(namespace).unwrap_or(&no_labels);
                term.namespaces.contains(namespace) || of_namespace.matches(known)
            }
        };
        is_in_scope && selector.matches(labels)
    }
}

fn each_once(mut namespaces: Vec<Namespace>) -> Vec<Namespace> {
    namespaces.sort_unstable();
    namespaces.dedup();
    namespaces
}
