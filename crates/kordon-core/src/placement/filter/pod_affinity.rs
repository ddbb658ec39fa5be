//! Required affinity and anti-affinity of the new pod, and required anti-affinity of existing pods (InterPodAffinity).

use std::{collections::BTreeMap, sync::Arc};

use super::super::{
    columns::{ABSENT, LabelColumn},
    reason::{FilterRefusal, Reason},
    scheduling_request::SchedulingRequest,
    snapshot::{Resident, Snapshot},
};
use crate::cluster::{Name, scheduling::PodTerm};

/// The required affinity and anti-affinity of a pod, and the required anti-affinity of existing pods that selects this
/// pod.
#[derive(Clone, Debug)]
pub(super) struct PodAffinity {
    affinity: Option<Affinity>,
    /// The terms of the pod's required anti-affinity.
    anti_affinity: Vec<AntiAffinityTerm>,
    existing: ExistingAntiAffinity,
}

impl PodAffinity {
    pub fn new(snapshot: &Snapshot, request: &SchedulingRequest) -> Self {
        let near = &request.spec.pod_affinity.required;
        let apart = &request.spec.pod_anti_affinity.required;
        Self {
            affinity: (!near.is_empty()).then(|| Affinity::new(snapshot, request, near)),
            anti_affinity: apart.iter().map(|term| AntiAffinityTerm::new(snapshot, request, term)).collect(),
            existing: ExistingAntiAffinity::new(snapshot, request),
        }
    }

    /// Returns whether no required affinity or anti-affinity term restricts where the pod may run.
    pub fn is_empty(&self) -> bool {
        self.affinity.is_none() && self.anti_affinity.is_empty() && self.existing.by_key.is_empty()
    }

    #[inline]
    pub fn check<R: FilterRefusal>(&self, node: u32) -> Result<(), R> {
        if self.affinity.as_ref().is_some_and(|affinity| !affinity.holds(node)) {
            return Err(R::unresolvable(&[Reason::PodAffinity]));
        }
        if self.anti_affinity.iter().any(|term| term.domains.count(node) > 0) {
            return Err(R::resolvable(&[Reason::PodAntiAffinity]));
        }
        if self.existing.by_key.iter().any(|domains| domains.count(node) > 0) {
            return Err(R::resolvable(&[Reason::ExistingAntiAffinity]));
        }
        Ok(())
    }

    pub fn assume(&mut self, resident: &Resident, node: u32, sign: i64) {
        if let Some(affinity) = &mut self.affinity
            && affinity.pod_classes.binary_search(&resident.pod_class).is_ok()
        {
            affinity.add(node, sign);
        }
        for term in &mut self.anti_affinity {
            if term.pod_classes.binary_search(&resident.pod_class).is_ok() {
                term.domains.add(node, sign);
            }
        }
        if let Some(keys) =
            resident.affinity_class.and_then(|affinity_class| self.existing.keys_of.get(&affinity_class))
        {
            for key in keys {
                self.existing.by_key[*key].add(node, sign);
            }
        }
    }
}

/// Number of pods in each topology domain of one topology key.
#[derive(Clone, Debug)]
struct Domains {
    column: Arc<LabelColumn>,
    /// Number of pods in each domain, indexed like the label values in `column.values`.
    counts: Vec<i64>,
}

impl Domains {
    fn new(column: &Arc<LabelColumn>) -> Self {
        Self { counts: vec![0; column.values.len()], column: column.clone() }
    }

    /// Adds `pods` to the count of the node's domain. Returns the number added: 0 if the node lacks the label.
    fn add(&mut self, node: u32, pods: i64) -> i64 {
        match self.column.of_node[node as usize] {
            ABSENT => 0,
            domain => {
                self.counts[domain as usize] += pods;
                pods
            }
        }
    }

    #[inline]
    fn count(&self, node: u32) -> i64 {
        match self.column.of_node[node as usize] {
            ABSENT => 0,
            domain => self.counts[domain as usize],
        }
    }
}

/// The required affinity of the pod. Only existing pods that match all of its terms count.
#[derive(Clone, Debug)]
struct Affinity {
    /// The pod counts per domain, one entry for each affinity term.
    domains: Vec<Domains>,
    /// Sum of the counts in `domains`.
    total: i64,
    /// Whether the pod matches its own affinity terms. If so, it can be placed before any other matching pod exists.
    may_be_first: bool,
    /// Numbers of the pod classes (pods with equal labels) that match all terms, ascending.
    pod_classes: Vec<u32>,
}

impl Affinity {
    fn new(snapshot: &Snapshot, request: &SchedulingRequest, terms: &[PodTerm]) -> Self {
        let namespaces = snapshot.namespaces();
        let selects = |term: &PodTerm, namespace, labels| {
            namespaces.selects(term, &request.namespace, namespace, labels)
        };
        let mut affinity = Self {
            domains: terms.iter().map(|term| Domains::new(snapshot.column(&term.topology_key))).collect(),
            total: 0,
            may_be_first: terms.iter().all(|term| selects(term, &request.namespace, &request.labels)),
            pod_classes: Vec::new(),
        };
        let (first, others) = (&terms[0], &terms[1..]);
        let Some(selector) = &first.selector else { return affinity };
        let scope = namespaces.scope(first, &request.namespace);
        for (number, pod_class) in snapshot.pod_classes().selected(&scope, selector) {
            if others.iter().all(|term| selects(term, &pod_class.namespace, &pod_class.labels)) {
                affinity.pod_classes.push(number);
                pod_class.on.iter().for_each(|presence| affinity.add(presence.node, presence.all.into()));
            }
        }
        affinity.pod_classes.sort_unstable();
        affinity
    }

    fn add(&mut self, node: u32, pods: i64) {
        for domains in &mut self.domains {
            self.total += domains.add(node, pods);
        }
    }

    #[inline]
    fn holds(&self, node: u32) -> bool {
        let has_keys = self.domains.iter().all(|domains| domains.column.of_node[node as usize] != ABSENT);
        has_keys
            && (self.domains.iter().all(|domains| domains.count(node) > 0)
                || (self.total == 0 && self.may_be_first))
    }
}

/// One term of the required anti-affinity of the pod.
#[derive(Clone, Debug)]
struct AntiAffinityTerm {
    domains: Domains,
    /// Numbers of the pod classes (pods with equal labels) that match the term, ascending.
    pod_classes: Vec<u32>,
}

impl AntiAffinityTerm {
    fn new(snapshot: &Snapshot, request: &SchedulingRequest, term: &PodTerm) -> Self {
        let mut own =
            Self { domains: Domains::new(snapshot.column(&term.topology_key)), pod_classes: Vec::new() };
        let Some(selector) = &term.selector else { return own };
        let scope = snapshot.namespaces().scope(term, &request.namespace);
        for (number, pod_class) in snapshot.pod_classes().selected(&scope, selector) {
            own.pod_classes.push(number);
            for presence in pod_class.on.iter() {
                own.domains.add(presence.node, presence.all.into());
            }
        }
        own.pod_classes.sort_unstable();
        own
    }
}

/// Existing pods whose required anti-affinity selects this pod.
#[derive(Clone, Debug)]
struct ExistingAntiAffinity {
    /// Pods with an anti-affinity term that selects this pod, counted by topology key and domain.
    by_key: Vec<Domains>,
    /// For each affinity class (pods with equal affinity terms): the topology keys of its terms that select this pod,
    /// as indexes into `by_key`.
    keys_of: BTreeMap<u32, Vec<usize>>,
}

impl ExistingAntiAffinity {
    fn new(snapshot: &Snapshot, request: &SchedulingRequest) -> Self {
        let mut existing = Self { by_key: Vec::new(), keys_of: BTreeMap::new() };
        let mut keys: Vec<&Name> = Vec::new();
        for (number, affinity_class) in
            snapshot.affinity_classes().concerning(&request.namespace, &request.labels)
        {
            for term in &affinity_class.spec.pod_anti_affinity.required {
                let namespaces = snapshot.namespaces();
                if !namespaces.selects(term, &affinity_class.namespace, &request.namespace, &request.labels) {
                    continue;
                }
                let key = keys.iter().position(|key| **key == term.topology_key).unwrap_or_else(|| {
                    keys.push(&term.topology_key);
                    existing.by_key.push(Domains::new(snapshot.column(&term.topology_key)));
                    keys.len() - 1
                });
                existing.keys_of.entry(number).or_default().push(key);
                for presence in affinity_class.on.iter() {
                    existing.by_key[key].add(presence.node, presence.all.into());
                }
            }
        }
        existing
    }
}
