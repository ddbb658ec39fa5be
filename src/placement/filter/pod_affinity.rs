//! Required affinity to pods and away from pods, in both directions (InterPodAffinity).

use std::{collections::BTreeMap, sync::Arc};

use super::super::{
    columns::{ABSENT, LabelColumn},
    reason::{NodeRefusal, Reason},
    scheduling_request::SchedulingRequest,
    snapshot::{Resident, Snapshot},
};
use crate::cluster::{Name, scheduling::PodTerm};

/// The pods that matter for where a pod may be.
#[derive(Clone, Debug)]
pub(super) struct Neighbours {
    near: Option<Near>,
    /// One for each term of its own required anti-affinity.
    apart: Vec<Apart>,
    unwelcome: Unwelcome,
}

impl Neighbours {
    pub fn new(snapshot: &Snapshot, request: &SchedulingRequest) -> Self {
        let near = &request.spec.pod_affinity.required;
        let apart = &request.spec.pod_anti_affinity.required;
        Self {
            near: (!near.is_empty()).then(|| Near::new(snapshot, request, near)),
            apart: apart.iter().map(|term| Apart::new(snapshot, request, term)).collect(),
            unwelcome: Unwelcome::new(snapshot, request),
        }
    }

    pub fn check(&self, node: u32) -> Result<(), NodeRefusal> {
        if self.near.as_ref().is_some_and(|near| !near.holds(node)) {
            return Err(NodeRefusal::final_word(Reason::PodAffinity));
        }
        if self.apart.iter().any(|apart| apart.places.count(node) > 0) {
            return Err(NodeRefusal::curable(Reason::PodAntiAffinity));
        }
        if self.unwelcome.by_key.iter().any(|places| places.count(node) > 0) {
            return Err(NodeRefusal::curable(Reason::Unwelcome));
        }
        Ok(())
    }

    pub fn imagine(&mut self, resident: &Resident, node: u32, sign: i64) {
        if let Some(near) = &mut self.near
            && near.pod_classes.binary_search(&resident.pod_class).is_ok()
        {
            near.add(node, sign);
        }
        for apart in &mut self.apart {
            if apart.pod_classes.binary_search(&resident.pod_class).is_ok() {
                apart.places.add(node, sign);
            }
        }
        if let Some(keys) =
            resident.affinity_class.and_then(|affinity_class| self.unwelcome.keys_of.get(&affinity_class))
        {
            for key in keys {
                self.unwelcome.by_key[*key].add(node, sign);
            }
        }
    }
}

/// Pods by place.
#[derive(Clone, Debug)]
struct Places {
    column: Arc<LabelColumn>,
    /// By the value's number.
    counts: Vec<i64>,
}

impl Places {
    fn new(column: &Arc<LabelColumn>) -> Self {
        Self { counts: vec![0; column.values.len()], column: column.clone() }
    }

    /// Counts pods on a node; where the node has no such place they are nowhere.
    fn add(&mut self, node: u32, pods: i64) -> i64 {
        match self.column.of_node[node as usize] {
            ABSENT => 0,
            place => {
                self.counts[place as usize] += pods;
                pods
            }
        }
    }

    fn count(&self, node: u32) -> i64 {
        match self.column.of_node[node as usize] {
            ABSENT => 0,
            place => self.counts[place as usize],
        }
    }
}

/// The required affinity of the pod itself: only pods that match all its terms count.
#[derive(Clone, Debug)]
struct Near {
    /// One for each term.
    places: Vec<Places>,
    /// All counts together.
    total: i64,
    /// The pod is what it looks for: where there is none yet, it is the first.
    may_be_first: bool,
    /// The crowds that match, ascending.
    pod_classes: Vec<u32>,
}

impl Near {
    fn new(snapshot: &Snapshot, request: &SchedulingRequest, terms: &[PodTerm]) -> Self {
        let namespaces = snapshot.namespaces();
        let speaks_of = |term: &PodTerm, namespace, labels| {
            namespaces.speaks_of(term, &request.namespace, namespace, labels)
        };
        let mut near = Self {
            places: terms.iter().map(|term| Places::new(snapshot.column(&term.topology_key))).collect(),
            total: 0,
            may_be_first: terms.iter().all(|term| speaks_of(term, &request.namespace, &request.labels)),
            pod_classes: Vec::new(),
        };
        let (first, others) = (&terms[0], &terms[1..]);
        let Some(selector) = &first.selector else { return near };
        let within = namespaces.within(first, &request.namespace);
        for (number, pod_class) in snapshot.pod_classes().selected(&within, selector) {
            if others.iter().all(|term| speaks_of(term, &pod_class.namespace, &pod_class.labels)) {
                near.pod_classes.push(number);
                pod_class.on.iter().for_each(|presence| near.add(presence.node, presence.all.into()));
            }
        }
        near.pod_classes.sort_unstable();
        near
    }

    fn add(&mut self, node: u32, pods: i64) {
        for places in &mut self.places {
            self.total += places.add(node, pods);
        }
    }

    fn holds(&self, node: u32) -> bool {
        let has_keys = self.places.iter().all(|places| places.column.of_node[node as usize] != ABSENT);
        has_keys
            && (self.places.iter().all(|places| places.count(node) > 0)
                || (self.total == 0 && self.may_be_first))
    }
}

/// One term of the required anti-affinity of the pod itself.
#[derive(Clone, Debug)]
struct Apart {
    places: Places,
    /// The crowds that match, ascending.
    pod_classes: Vec<u32>,
}

impl Apart {
    fn new(snapshot: &Snapshot, request: &SchedulingRequest, term: &PodTerm) -> Self {
        let mut apart =
            Self { places: Places::new(snapshot.column(&term.topology_key)), pod_classes: Vec::new() };
        let Some(selector) = &term.selector else { return apart };
        let within = snapshot.namespaces().within(term, &request.namespace);
        for (number, pod_class) in snapshot.pod_classes().selected(&within, selector) {
            apart.pod_classes.push(number);
            for presence in &pod_class.on {
                apart.places.add(presence.node, presence.all.into());
            }
        }
        apart.pod_classes.sort_unstable();
        apart
    }
}

/// Pods whose required anti-affinity speaks of this pod.
#[derive(Clone, Debug)]
struct Unwelcome {
    /// One for each topology key.
    by_key: Vec<Places>,
    /// By demand: which keys it counts under, once for each term.
    keys_of: BTreeMap<u32, Vec<usize>>,
}

impl Unwelcome {
    fn new(snapshot: &Snapshot, request: &SchedulingRequest) -> Self {
        let mut unwelcome = Self { by_key: Vec::new(), keys_of: BTreeMap::new() };
        let mut keys: Vec<&Name> = Vec::new();
        for (number, affinity_class) in snapshot.affinity_classes().concerning(&request.namespace) {
            for term in &affinity_class.spec.pod_anti_affinity.required {
                let namespaces = snapshot.namespaces();
                if !namespaces.speaks_of(term, &affinity_class.namespace, &request.namespace, &request.labels)
                {
                    continue;
                }
                let key = keys.iter().position(|key| **key == term.topology_key).unwrap_or_else(|| {
                    keys.push(&term.topology_key);
                    unwelcome.by_key.push(Places::new(snapshot.column(&term.topology_key)));
                    keys.len() - 1
                });
                unwelcome.keys_of.entry(number).or_default().push(key);
                for (node, pods) in &affinity_class.on {
                    unwelcome.by_key[key].add(*node, i64::from(*pods));
                }
            }
        }
        unwelcome
    }
}
