//! What the pods of the cluster ask of the pods near them, so that a newcomer can be held against it.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    ids::{Ids, address_of, address_of_name},
    pod_classes::NamespaceScope,
};
use crate::cluster::{Labels, Namespace, Pod, SchedulingSpec, scheduling::PodTerm};

/// All demands, and where the pods are that make them.
#[derive(Clone, Debug, Default)]
pub(super) struct AffinityClasses {
    all: Vec<Arc<AffinityClass>>,
    /// Those that speak of their own namespace only.
    in_namespace: Arc<BTreeMap<Namespace, Vec<u32>>>,
    /// Those that speak of other namespaces too.
    abroad: Arc<Vec<u32>>,
    /// By where namespace and spec lie; the demand keeps them.
    ids: Arc<Ids<(usize, usize)>>,
}

/// The pods of a namespace with one spec that speaks of other pods.
#[derive(Clone, Debug)]
pub(super) struct AffinityClass {
    pub namespace: Namespace,
    pub spec: Arc<SchedulingSpec>,
    /// How many are on a node, by node; those being deleted count until they are gone.
    pub on: Vec<(u32, u32)>,
}

impl AffinityClasses {
    /// The number of the demand that a pod makes; none where it makes none.
    pub fn number_of(&mut self, pod: &Pod) -> Option<u32> {
        if !pod.scheduling.has_pod_terms() {
            return None;
        }
        let address = (address_of_name(&pod.key.namespace.0), address_of(&pod.scheduling));
        Some(self.ids.number(&address).unwrap_or_else(|| self.take_in(pod, address)))
    }

    fn take_in(&mut self, pod: &Pod, address: (usize, usize)) -> u32 {
        let number = u32::try_from(self.all.len()).expect("fewer demands than pods");
        let (namespace, spec) = (pod.key.namespace.clone(), pod.scheduling.clone());
        let at_home = |term: &PodTerm| term.namespaces.is_empty() && term.namespace_selector.is_none();
        if spec.pod_affinity.iter().chain(spec.pod_anti_affinity.iter()).all(at_home) {
            Arc::make_mut(&mut self.in_namespace).entry(namespace.clone()).or_default().push(number);
        } else {
            Arc::make_mut(&mut self.abroad).push(number);
        }
        self.all.push(Arc::new(AffinityClass { namespace, spec, on: Vec::new() }));
        Arc::make_mut(&mut self.ids).insert(address, number);
        number
    }

    /// Whether nobody has been counted for it yet.
    pub fn is_fresh(&self, number: u32) -> bool {
        self.all[number as usize].on.is_empty()
    }

    /// Notes a pod down; [`AffinityClasses::settle`] must follow.
    pub fn throw_in(&mut self, number: u32, node: u32) {
        Arc::make_mut(&mut self.all[number as usize]).on.push((node, 1));
    }

    /// Puts in order what was thrown in.
    pub fn settle(&mut self) {
        for affinity_class in &mut self.all {
            let on = &mut Arc::make_mut(affinity_class).on;
            on.sort_unstable();
            on.dedup_by(|later, earlier| {
                let same = later.0 == earlier.0;
                if same {
                    earlier.1 += later.1;
                }
                same
            });
        }
    }

    pub fn add(&mut self, number: u32, node: u32) {
        let on = &mut Arc::make_mut(&mut self.all[number as usize]).on;
        let place = on.partition_point(|(other, _)| *other < node);
        if on.get(place).is_none_or(|(other, _)| *other != node) {
            on.insert(place, (node, 0));
        }
        on[place].1 += 1;
    }

    pub fn remove(&mut self, number: u32, node: u32) {
        let on = &mut Arc::make_mut(&mut self.all[number as usize]).on;
        let place = on.partition_point(|(other, _)| *other < node);
        on[place].1 -= 1;
        if on[place].1 == 0 {
            on.remove(place);
        }
    }

    /// The demands that may speak of a pod in this namespace.
    pub fn concerning(&self, namespace: &Namespace) -> impl Iterator<Item = (u32, &AffinityClass)> {
        let at_home = self.in_namespace.get(namespace).into_iter().flatten();
        at_home.chain(self.abroad.iter()).map(|number| (*number, &*self.all[*number as usize]))
    }
}

/// The namespaces of the cluster and their labels.
#[derive(Clone, Debug, Default)]
pub(super) struct NamespaceLabels(pub BTreeMap<Namespace, Labels>);

impl NamespaceLabels {
    /// Where a term looks for pods, said by a pod in `home`.
    pub fn within(&self, term: &PodTerm, home: &Namespace) -> NamespaceScope {
        let Some(selector) = &term.namespace_selector else {
            let home = std::slice::from_ref(home);
            let named = if term.namespaces.is_empty() { home } else { &term.namespaces };
            return NamespaceScope::Some(once_each(named.to_vec()));
        };
        if selector.is_empty() {
            return NamespaceScope::Everywhere;
        }
        let selected = self.0.iter().filter(|(_, labels)| selector.matches(labels)).map(|(name, _)| name);
        NamespaceScope::Some(once_each(term.namespaces.iter().chain(selected).cloned().collect()))
    }

    /// Whether a term, said by a pod in `home`, speaks of a pod with these labels in `namespace`.
    pub fn speaks_of(
        &self,
        term: &PodTerm,
        home: &Namespace,
        namespace: &Namespace,
        labels: &Labels,
    ) -> bool {
        let Some(selector) = &term.selector else { return false };
        let near = match &term.namespace_selector {
            None if term.namespaces.is_empty() => home == namespace,
            None => term.namespaces.contains(namespace),
            Some(of_namespace) => {
                let nothing = Labels::default();
                let known = self.0.get(namespace).unwrap_or(&nothing);
                term.namespaces.contains(namespace) || of_namespace.matches(known)
            }
        };
        near && selector.matches(labels)
    }
}

fn once_each(mut namespaces: Vec<Namespace>) -> Vec<Namespace> {
    namespaces.sort_unstable();
    namespaces.dedup();
    namespaces
}
