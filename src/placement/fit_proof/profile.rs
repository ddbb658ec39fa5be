//! Pods that the scheduler compares with the same nodes and the same other pods.

use std::{hash::BuildHasher, sync::Arc};

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use crate::{
    cluster::{
        Key, Name, Namespace, Pod, SchedulingSpec, Selector, SharedList, Toleration,
        scheduling::{HostPort, NodeTerm, PodTerm, PodVolume, SpreadConstraint},
    },
    ordered::{OrderedMap, OrderedSet},
    placement::{
        columns::{ABSENT, LabelColumn},
        cow_vec::CowVec,
        filter::{CountedNodes, NodeMatch, OwnNeeds, TOPOLOGY_LABELS, effective_selector},
        ids::Ids,
        label_index::{LabelIndex, each_once, required_values},
        pod_classes::{NamespaceScope, PodClass},
        scheduling_request::SchedulingRequest,
        snapshot::{Resident, Snapshot},
        storage::claims_volumes,
    },
};

/// What decides which nodes a pod may run on, whatever other pods there are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct OwnNeedsKey {
    tolerations: SharedList<Toleration>,
    selector: Box<[(Name, Name)]>,
    affinity: Option<Box<[NodeTerm]>>,
    volumes: Vec<VolumeKey>,
}

/// From where a volume can be reached.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum VolumeKey {
    Bound {
        affinity: Option<Box<[NodeTerm]>>,
        labels: Vec<Option<Name>>,
    },
    /// Of a claim that is not bound: this one's alone.
    Claim(Key),
    /// Of a claim that is created with the pod, by its StorageClass.
    New(Name),
}

/// What else the scheduler compares a pod with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct ConstraintsKey {
    affinity: Box<[PodTerm]>,
    anti_affinity: Box<[PodTerm]>,
    spread: Vec<SpreadConstraint>,
    ports: Arc<[HostPort]>,
    is_modelled: bool,
}

/// The nodes that some pods may run on by their own needs.
#[derive(Clone, Debug)]
pub(super) struct NodeSet {
    pub nodes: Vec<u32>,
    bits: Vec<u64>,
}

impl NodeSet {
    fn new(nodes: Vec<u32>, all_nodes: usize) -> Self {
        let mut bits = vec![0; all_nodes.div_ceil(64)];
        nodes.iter().for_each(|node| bits[*node as usize / 64] |= 1 << (node % 64));
        Self { nodes, bits }
    }

    pub fn contains(&self, node: u32) -> bool {
        self.bits[node as usize / 64] & 1 << (node % 64) != 0
    }

    pub fn meets(&self, other: &Self) -> bool {
        self.bits.iter().zip(&other.bits).any(|(one, other)| one & other != 0)
    }

    pub fn is_within(&self, other: &Self) -> bool {
        self.bits.iter().zip(&other.bits).all(|(one, other)| one & !other == 0)
    }
}

/// Pods with equal needs and equal labels. It keeps none of them: they change all the time in what is not compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct PodProfile {
    pub set: u32,
    pub pod_class: u32,
    constraints: u32,
    own_needs: u32,
}

/// Of the pods with equal needs of their own: the nodes that meet them, and what decided that, as one of them has it.
#[derive(Clone, Debug)]
struct OwnNeedsMet {
    set: u32,
    tolerations: SharedList<Toleration>,
    spec: Arc<SchedulingSpec>,
}

/// Which other pods matter to the pods of a profile.
#[derive(Clone, Debug, Default)]
pub(super) struct Relations {
    /// Whether all that the scheduler compares is here.
    pub is_modelled: bool,
    pub affinity: Option<AffinityRelation>,
    pub anti_affinity: Vec<TermRelation>,
    /// The anti-affinity of others to it.
    pub of_others: Vec<TermRelation>,
    pub spread: Vec<SpreadRelation>,
    pub ports: Arc<[HostPort]>,
}

impl Relations {
    /// Whether no other pods matter.
    fn are_none(&self) -> bool {
        let Self { affinity, anti_affinity, of_others, spread, is_modelled: _, ports: _ } = self;
        affinity.is_none() && anti_affinity.is_empty() && of_others.is_empty() && spread.is_empty()
    }
}

/// Pods in the domains of one label.
#[derive(Clone, Debug)]
pub(super) struct TermRelation {
    pub key: u32,
    /// Classes of pods, or groups of pods with equal anti-affinity; ascending.
    pub numbers: Vec<u32>,
}

/// The one required affinity term.
#[derive(Clone, Debug)]
pub(super) struct AffinityRelation {
    pub term: TermRelation,
    /// Whether it matches itself.
    pub may_be_first: bool,
}

/// A hard spread constraint.
#[derive(Clone, Debug)]
pub(super) struct SpreadRelation {
    pub term: TermRelation,
    pub counted: u32,
    pub max_skew: i64,
    pub min_domains: usize,
    /// 1 where the pod itself counts.
    pub own: i64,
}

/// The nodes whose pods count for a spread constraint.
#[derive(Clone, Debug)]
pub(super) struct SpreadNodes {
    pub of_node: Vec<bool>,
    /// By value of the label.
    pub nodes_in: Vec<u32>,
}

/// Pods with equal required anti-affinity, as the affinity classes that they are in.
#[derive(Clone, Debug)]
pub(super) struct AntiAffinityGroup {
    namespace: Namespace,
    terms: Box<[PodTerm]>,
    pub affinity_classes: Vec<u32>,
}

/// All profiles of a snapshot, and what they refer to.
#[derive(Clone, Debug, Default)]
pub(super) struct Profiles {
    pub all: CowVec<PodProfile>,
    pub sets: Vec<Arc<NodeSet>>,
    pub keys: Vec<(Name, Arc<LabelColumn>)>,
    pub counted: Vec<SpreadNodes>,
    pub groups: Vec<AntiAffinityGroup>,
    /// The numbers of profiles by their content.
    numbers: HashTable<u32>,
    own_needs: Ids<OwnNeedsKey>,
    /// By number of own needs.
    met: Vec<OwnNeedsMet>,
    sets_by_content: Ids<Vec<u32>>,
    constraints: Vec<ConstraintsKey>,
    constraints_by_content: Ids<ConstraintsKey>,
    counted_by_content: Ids<(u32, u32, bool, bool, Vec<Name>)>,
    groups_by_content: Ids<(Namespace, Box<[PodTerm]>)>,
    /// By affinity class.
    group_of: Vec<Option<u32>>,
    groups_in: OrderedMap<Namespace, Vec<u32>>,
    groups_across: Vec<u32>,
    /// By profile, made when first needed.
    relations: CowVec<Option<Arc<Relations>>>,
    /// How many of them there are that no other profile shares.
    related: usize,
    /// Those of profiles to which no other pods matter, by their constraints: of most.
    unrelated: OrderedMap<u32, Arc<Relations>>,
    /// The profiles by the labels of the pods that they are compared with.
    by_label: LabelIndex,
    /// Those that are compared with pods whatever their labels' values.
    by_any_label: Vec<u32>,
}

impl PodProfile {
    /// Its own needs, class and constraints: pods of one profile are equal in them.
    fn content(&self) -> (u32, u32, u32) {
        (self.own_needs, self.pod_class, self.constraints)
    }
}

fn hash(content: (u32, u32, u32)) -> u64 {
    FxBuildHasher.hash_one(content)
}

/// The scheduling request of a pod's replacement, as far as filters read it.
fn request(pod: &Pod) -> SchedulingRequest {
    let name = if SchedulingRequest::keeps_name_of(pod) { pod.key.name.clone() } else { Name::default() };
    SchedulingRequest {
        name,
        namespace: pod.key.namespace.clone(),
        labels: pod.labels.clone(),
        priority: pod.priority,
        tolerations: pod.tolerations.clone(),
        resources: pod.resources.clone(),
        spec: pod.scheduling.clone(),
        ..SchedulingRequest::default()
    }
}

impl ConstraintsKey {
    fn terms(&self) -> impl Iterator<Item = &PodTerm> {
        self.affinity.iter().chain(&self.anti_affinity)
    }

    /// The selectors of the pods that are compared.
    fn selectors(&self) -> impl Iterator<Item = &Selector> {
        let of_terms = self.terms().filter_map(|term| term.selector.as_ref());
        of_terms.chain(self.spread.iter().filter_map(|spread| spread.selector.as_ref()))
    }

    fn selects_other_namespaces(&self) -> bool {
        self.terms().any(|term| !term.namespaces.is_empty() || term.namespace_selector.is_some())
    }
}

impl Profiles {
    /// The number of a pod's profile; a new one for the first pod of a profile.
    pub fn number_of(&mut self, resident: &Resident, snapshot: &mut Snapshot) -> u32 {
        let pod = &resident.pod;
        let own_needs = self.own_needs(pod, snapshot);
        let constraints = self.constraints(pod, snapshot);
        let content = (own_needs, resident.pod_class, constraints);
        let is_same = |number: &u32| self.all[*number as usize].content() == content;
        if let Some(number) = self.numbers.find(hash(content), is_same) {
            return *number;
        }
        snapshot.prepare(&request(pod));
        let number = id(self.all.len());
        let set = self.met[own_needs as usize].set;
        self.all.push(PodProfile { set, pod_class: resident.pod_class, constraints, own_needs });
        self.relations.push(None);
        for selector in self.constraints[constraints as usize].selectors() {
            match required_values(selector) {
                Some((key, values)) => {
                    values.iter().for_each(|value| self.by_label.insert(key, value, number));
                }
                None => self.by_any_label.push(number),
            }
        }
        let hash_of = |number: &u32| hash(self.all[*number as usize].content());
        self.numbers.insert_unique(hash(content), number, hash_of);
        number
    }

    /// The profiles whose pods are perhaps compared with pods of these classes, or selected by the anti-affinity of pods of
    /// these affinity classes.
    pub fn related_to(
        &self,
        classes: &OrderedSet<u32>,
        affinity_classes: &OrderedSet<u32>,
        snapshot: &Snapshot,
    ) -> Vec<u32> {
        let mut related = Vec::new();
        for class in classes {
            let PodClass { namespace, labels, .. } = snapshot.pod_classes().class(*class);
            let is_in_scope = |profile: &u32| {
                let PodProfile { pod_class, constraints, .. } = self.all[*profile as usize];
                snapshot.pod_classes().class(pod_class).namespace == *namespace
                    || self.constraints[constraints as usize].selects_other_namespaces()
            };
            let by_label = labels.iter().flat_map(|(key, value)| self.by_label.numbers(key, value));
            related.extend(by_label.chain(self.by_any_label.iter().copied()).filter(is_in_scope));
        }
        let groups: OrderedSet<u32> =
            affinity_classes.iter().filter_map(|class| self.group_of(Some(*class))).collect();
        let mut selected: OrderedSet<u32> = OrderedSet::new();
        for group in groups {
            let AntiAffinityGroup { namespace, terms, .. } = &self.groups[group as usize];
            for term in terms {
                let Some(selector) = &term.selector else { continue };
                let scope = snapshot.namespaces().scope(term, namespace);
                selected.extend(snapshot.pod_classes().selected(&scope, selector).map(|(class, _)| class));
            }
        }
        if !selected.is_empty() {
            let is_selected = |(_, profile): &(u32, &PodProfile)| selected.contains(&profile.pod_class);
            related.extend((0..).zip(self.all.iter()).filter(is_selected).map(|(number, _)| number));
        }
        each_once(related)
    }

    fn own_needs(&mut self, pod: &Pod, snapshot: &mut Snapshot) -> u32 {
        let spec = &pod.scheduling;
        let has_volumes = claims_volumes(spec) && snapshot.storage().is_known();
        let key = OwnNeedsKey {
            tolerations: pod.tolerations.clone(),
            selector: spec.node_selector.clone(),
            affinity: spec.node_affinity.clone(),
            volumes: if has_volumes { volume_keys(pod, snapshot) } else { Vec::new() },
        };
        if let Some(number) = self.own_needs.number(&key) {
            return number;
        }
        let request = request(pod);
        snapshot.prepare(&request);
        let needs = OwnNeeds::new(snapshot, &request);
        let nodes: Vec<u32> = snapshot.node_numbers().filter(|node| needs.are_met_by(*node)).collect();
        let set = self.sets_by_content.number(&nodes).unwrap_or_else(|| {
            let number = id(self.sets.len());
            self.sets.push(Arc::new(NodeSet::new(nodes.clone(), snapshot.node_resources().len())));
            self.sets_by_content.insert(nodes, number);
            number
        });
        let number = id(self.met.len());
        let (tolerations, spec) = (pod.tolerations.clone(), pod.scheduling.clone());
        self.met.push(OwnNeedsMet { set, tolerations, spec });
        self.own_needs.insert(key, number);
        number
    }

    fn constraints(&mut self, pod: &Pod, snapshot: &Snapshot) -> u32 {
        let spec = &pod.scheduling;
        let key = ConstraintsKey {
            affinity: spec.pod_affinity.required.clone(),
            anti_affinity: spec.pod_anti_affinity.required.clone(),
            spread: spec.spread.iter().filter(|spread| spread.hard).cloned().collect(),
            ports: spec.host_ports.iter().cloned().collect(),
            is_modelled: is_modelled(pod, snapshot),
        };
        self.constraints_by_content.number(&key).unwrap_or_else(|| {
            let number = id(self.constraints.len());
            self.constraints.push(key.clone());
            self.constraints_by_content.insert(key, number);
            number
        })
    }

    /// Reads the pods with anti-affinity, and forgets which pods matter to which: there may be new ones of each.
    pub fn update_relations(&mut self, snapshot: &Snapshot) {
        self.forget_relations();
        for (number, class) in snapshot.affinity_classes().after(self.group_of.len()) {
            let terms = &class.spec.pod_anti_affinity.required;
            let group = (!terms.is_empty()).then(|| self.group(&class.namespace, terms));
            if let Some(group) = group {
                self.groups[group as usize].affinity_classes.push(number);
            }
            self.group_of.push(group);
        }
    }

    fn group(&mut self, namespace: &Namespace, terms: &[PodTerm]) -> u32 {
        let content = (namespace.clone(), Box::from(terms));
        self.groups_by_content.number(&content).unwrap_or_else(|| {
            let number = id(self.groups.len());
            let is_local = |term: &PodTerm| term.namespaces.is_empty() && term.namespace_selector.is_none();
            if terms.iter().all(is_local) {
                self.groups_in.entry(namespace.clone()).or_default().push(number);
            } else {
                self.groups_across.push(number);
            }
            let (namespace, terms) = content.clone();
            self.groups.push(AntiAffinityGroup { namespace, terms, affinity_classes: Vec::new() });
            self.groups_by_content.insert(content, number);
            number
        })
    }

    /// Forgets the relations of all profiles where there are more than so many: they can be made again.
    pub fn keep_relations(&mut self, most: usize) {
        if self.related > most {
            self.forget_relations();
        }
    }

    fn forget_relations(&mut self) {
        if self.related > 0 || !self.unrelated.is_empty() {
            self.relations.iter_mut().for_each(|relations| *relations = None);
            self.unrelated.clear();
            self.related = 0;
        }
    }

    /// The group of a pod with anti-affinity.
    pub fn group_of(&self, affinity_class: Option<u32>) -> Option<u32> {
        *self.group_of.get(affinity_class? as usize)?
    }

    /// The relations of a profile, if they have been needed since the last update.
    pub fn known_relations(&self, profile: u32) -> Option<Arc<Relations>> {
        self.relations[profile as usize].clone()
    }

    /// The relations of a profile.
    pub fn relations(&mut self, profile: u32, snapshot: &Snapshot) -> Arc<Relations> {
        if let Some(relations) = &self.relations[profile as usize] {
            return relations.clone();
        }
        let relations = self.relate(profile, snapshot);
        let relations = if relations.are_none() {
            let constraints = self.all[profile as usize].constraints;
            self.unrelated.entry(constraints).or_insert_with(|| Arc::new(relations)).clone()
        } else {
            self.related += 1;
            Arc::new(relations)
        };
        *self.relations.get_mut(profile as usize) = Some(relations.clone());
        relations
    }

    fn relate(&mut self, profile: u32, snapshot: &Snapshot) -> Relations {
        let PodProfile { pod_class, constraints, own_needs, .. } = self.all[profile as usize];
        let constraints = self.constraints[constraints as usize].clone();
        let PodClass { namespace, labels, .. } = snapshot.pod_classes().class(pod_class);
        let OwnNeedsMet { tolerations, spec, .. } = &self.met[own_needs as usize];
        // All that is read of it here.
        let request = SchedulingRequest {
            namespace: namespace.clone(),
            labels: labels.clone(),
            tolerations: tolerations.clone(),
            spec: spec.clone(),
            ..SchedulingRequest::default()
        };
        let mut relations = Relations {
            is_modelled: constraints.is_modelled && constraints.affinity.len() <= 1,
            ports: constraints.ports.clone(),
            ..Relations::default()
        };
        for term in &constraints.anti_affinity {
            relations.anti_affinity.push(self.term_relation(term, &request, snapshot));
        }
        if let [term] = &*constraints.affinity {
            let namespaces = snapshot.namespaces();
            let may_be_first =
                namespaces.selects(term, &request.namespace, &request.namespace, &request.labels);
            let term = self.term_relation(term, &request, snapshot);
            relations.affinity = Some(AffinityRelation { term, may_be_first });
        }
        self.relate_to_groups(&request, snapshot, &mut relations);
        let keys: Vec<Name> = constraints.spread.iter().map(|spread| spread.topology_key.clone()).collect();
        for spread in &constraints.spread {
            relations.spread.push(self.spread_relation(spread, &keys, own_needs, &request, snapshot));
        }
        relations
    }

    /// The classes that a term of a pod selects.
    fn term_relation(
        &mut self,
        term: &PodTerm,
        request: &SchedulingRequest,
        snapshot: &Snapshot,
    ) -> TermRelation {
        let key = self.key(&term.topology_key, snapshot);
        let Some(selector) = &term.selector else { return TermRelation { key, numbers: Vec::new() } };
        let scope = snapshot.namespaces().scope(term, &request.namespace);
        let classes = snapshot.pod_classes().selected(&scope, selector);
        let mut numbers: Vec<u32> = classes.map(|(number, _)| number).collect();
        numbers.sort_unstable();
        TermRelation { key, numbers }
    }

    /// The groups whose anti-affinity selects a pod.
    fn relate_to_groups(
        &mut self,
        request: &SchedulingRequest,
        snapshot: &Snapshot,
        relations: &mut Relations,
    ) {
        let local = self.groups_in.get(&request.namespace).into_iter().flatten();
        let concerned: Vec<u32> = local.chain(&self.groups_across).copied().collect();
        for number in concerned {
            let AntiAffinityGroup { namespace, terms, .. } = &self.groups[number as usize];
            let namespaces = snapshot.namespaces();
            let selects =
                |term: &&PodTerm| namespaces.selects(term, namespace, &request.namespace, &request.labels);
            let keys: Vec<Name> =
                terms.iter().filter(selects).map(|term| term.topology_key.clone()).collect();
            for key in keys {
                let key = self.key(&key, snapshot);
                relations.of_others.push(TermRelation { key, numbers: vec![number] });
            }
        }
    }

    fn spread_relation(
        &mut self,
        spread: &SpreadConstraint,
        keys: &[Name],
        own_needs: u32,
        request: &SchedulingRequest,
        snapshot: &Snapshot,
    ) -> SpreadRelation {
        let selector = effective_selector(spread, request);
        let own = selector.as_ref().is_some_and(|selector| selector.matches(&request.labels));
        let counts_any =
            |selector: &Selector| !selector.is_empty() || !snapshot.rules().empty_spread_counts_nothing;
        let key = self.key(&spread.topology_key, snapshot);
        let mut numbers: Vec<u32> = match selector.filter(counts_any) {
            Some(selector) => {
                let home = NamespaceScope::Some(vec![request.namespace.clone()]);
                snapshot.pod_classes().selected(&home, &selector).map(|(number, _)| number).collect()
            }
            None => Vec::new(),
        };
        numbers.sort_unstable();
        SpreadRelation {
            counted: self.counted(spread, key, keys, own_needs, request, snapshot),
            term: TermRelation { key, numbers },
            max_skew: spread.max_skew.into(),
            min_domains: usize::try_from(spread.min_domains).unwrap_or(0),
            own: own.into(),
        }
    }

    fn counted(
        &mut self,
        spread: &SpreadConstraint,
        key: u32,
        keys: &[Name],
        own_needs: u32,
        request: &SchedulingRequest,
        snapshot: &Snapshot,
    ) -> u32 {
        let content = (own_needs, key, spread.honours_affinity, spread.honours_taints, keys.to_vec());
        if let Some(number) = self.counted_by_content.number(&content) {
            return number;
        }
        let nodes = NodeMatch::new(snapshot, &request.spec);
        let columns: Vec<Arc<LabelColumn>> = keys.iter().map(|key| snapshot.column(key).clone()).collect();
        let counted = CountedNodes::new(&nodes, spread, &columns);
        let all = 0..id(snapshot.node_resources().len());
        let counts =
            |node| snapshot.resources(node).present && counted.counts(snapshot, request, &nodes, node);
        let of_node: Vec<bool> = all.map(counts).collect();
        let column = &self.keys[key as usize].1;
        let mut nodes_in = vec![0; column.values.len()];
        for (value, _) in column.of_node.iter().zip(&of_node).filter(|(_, counted)| **counted) {
            nodes_in[*value as usize] += 1;
        }
        let number = id(self.counted.len());
        self.counted.push(SpreadNodes { of_node, nodes_in });
        self.counted_by_content.insert(content, number);
        number
    }

    fn key(&mut self, name: &Name, snapshot: &Snapshot) -> u32 {
        let known = self.keys.iter().position(|(key, _)| key == name);
        id(known.unwrap_or_else(|| {
            self.keys.push((name.clone(), snapshot.column(name).clone()));
            self.keys.len() - 1
        }))
    }

    /// The host ports of the pods of a profile.
    pub fn ports(&self, profile: u32) -> &Arc<[HostPort]> {
        &self.constraints[self.all[profile as usize].constraints as usize].ports
    }

    /// The domain of a node; none if it has no such label.
    pub fn domain(&self, key: u32, node: u32) -> Option<u32> {
        Some(self.keys[key as usize].1.of_node[node as usize]).filter(|value| *value != ABSENT)
    }
}

/// What is created of each claim of a pod.
fn volume_keys(pod: &Pod, snapshot: &Snapshot) -> Vec<VolumeKey> {
    let storage = snapshot.storage();
    let key = |volume: &PodVolume| match volume {
        PodVolume::Disk(_) => None,
        PodVolume::OwnClaim { class, .. } if !SchedulingRequest::keeps_name_of(pod) => {
            Some(VolumeKey::New(class.clone()))
        }
        PodVolume::OwnClaim { volume, .. } => Some(VolumeKey::Claim(Key {
            namespace: pod.key.namespace.clone(),
            name: format!("{}-{volume}", pod.key.name).into(),
        })),
        PodVolume::Claim(name) => {
            let key = Key { namespace: pod.key.namespace.clone(), name: name.clone() };
            let claim = storage.claim(&key).filter(|claim| {
                claim.is_bound && !claim.volume.is_empty() && !claim.is_lost && !claim.is_terminating
            });
            let volume = claim.and_then(|claim| storage.volume(&claim.volume));
            Some(match volume {
                Some(volume) => VolumeKey::Bound {
                    affinity: volume.node_affinity.clone(),
                    labels: TOPOLOGY_LABELS.map(|(label, _)| volume.labels.get(label).cloned()).into(),
                },
                None => VolumeKey::Claim(key),
            })
        }
    };
    pod.scheduling.volumes.iter().filter_map(key).collect()
}

/// Whether what other pods do to a pod is modelled: disks without claims and claims of one pod at a time are not.
fn is_modelled(pod: &Pod, snapshot: &Snapshot) -> bool {
    let is_for_one_pod = |claim: &Name| {
        let key = Key { namespace: pod.key.namespace.clone(), name: claim.clone() };
        let claim = snapshot.storage().claim(&key);
        claim.is_some_and(|claim| claim.requested.modes.read_write_once_pod)
    };
    pod.scheduling.volumes.iter().all(|volume| match volume {
        PodVolume::Disk(_) => false,
        PodVolume::OwnClaim { .. } => true,
        PodVolume::Claim(claim) => !is_for_one_pod(claim),
    })
}

fn id(number: usize) -> u32 {
    u32::try_from(number).expect("fewer than pods")
}
