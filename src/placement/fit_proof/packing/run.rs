//! Packing pod by pod, from nothing or from what was packed before.

use std::cmp::Reverse;

use super::{
    super::{Entry, Fate, FitProofs, Recreated, loss::Loss, profile::SpreadRelation, staying::StayingPods},
    DonePacking, NOWHERE, Packed, PackedNode,
    constraints::OpenDomains,
    load::Load,
    newcomers::Newcomers,
    reserve::{Narrowing, Reserve},
};
use crate::{
    ordered::{OrderedMap, OrderedSet},
    placement::snapshot::Snapshot,
};

/// A pod gets the node with most room of so many that would do.
const CHOICE: usize = 8;

/// With more pods that find no node, the others are not packed.
const MOST_STUCK: usize = 100;

/// The relations of profiles are kept for so many pods.
const RELATIONS_KEPT: usize = 20_000;

/// A packing that is not finished.
#[derive(Clone, Debug)]
pub(in super::super) struct PackingRun {
    /// The generation and the round that it is of.
    of: (u64, u64),
    lost: Vec<u32>,
    is_lost: Vec<bool>,
    /// By lost node and pod.
    targets: Vec<Vec<u32>>,
    load: Load,
    newcomers: Newcomers,
    /// The next pod last.
    waiting: Vec<WaitingPod>,
    sets: OrderedMap<u32, SetLeft>,
    /// How many nodes of each domain are left, by spread constraint.
    domains_left: OrderedMap<u32, Vec<u32>>,
    /// Pods that are recreated; some of them perhaps not, where there is a surplus.
    pods: usize,
    has_surplus: bool,
    /// Pods that may run on lost nodes only.
    without_node: usize,
    /// Pods that found no node among those packed before them.
    stuck: Vec<WaitingPod>,
    narrowing: Narrowing,
}

/// A pod of a lost node, by their places.
#[derive(Clone, Copy, Debug)]
struct WaitingPod {
    lost: u32,
    place: u32,
    /// Where it was packed before.
    before: u32,
}

/// The nodes of a set that are left.
#[derive(Clone, Debug)]
struct SetLeft {
    nodes: Vec<u32>,
    weights: Vec<f64>,
    /// The node to be looked at next.
    next: usize,
}

impl PackingRun {
    /// None if something about the pods is not modelled.
    pub fn new(
        proofs: &mut FitProofs,
        snapshot: &Snapshot,
        lost: &[u32],
        before: Option<DonePacking>,
    ) -> Option<Self> {
        let mut is_lost = vec![false; proofs.entries.len()];
        lost.iter().for_each(|node| is_lost[*node as usize] = true);
        let mut run = Self {
            of: proofs.log.now(),
            lost: lost.to_vec(),
            is_lost,
            targets: Vec::with_capacity(lost.len()),
            load: Load::new(proofs.entries.len(), proofs.resources.len()),
            newcomers: Newcomers::default(),
            waiting: Vec::new(),
            sets: OrderedMap::default(),
            domains_left: OrderedMap::default(),
            pods: 0,
            has_surplus: false,
            without_node: 0,
            stuck: Vec::new(),
            narrowing: before.as_ref().map(|before| before.narrowing.clone()).unwrap_or_default(),
        };
        run.take_pods(proofs, before.as_ref())?;
        if before.is_some() {
            run.pull_from_full_nodes(proofs);
            run.pull_related(proofs, snapshot);
            run.count_kept(proofs);
        }
        run.sort_waiting(proofs);
        Some(run)
    }

    pub fn is_of(&self, of: (u64, u64), lost: &[u32]) -> bool {
        self.of == of && self.lost == lost
    }

    /// All pods that have to be placed: those that are as they were keep their nodes, the others wait.
    fn take_pods(&mut self, proofs: &FitProofs, before: Option<&DonePacking>) -> Option<()> {
        for place_of_node in 0..self.lost.len() {
            let node = self.lost[place_of_node] as usize;
            let entries = &proofs.entries[node];
            let known = before.map(|before| before.nodes[place_of_node].targets_of(&proofs.residents[node]));
            let mut targets = vec![NOWHERE; entries.len()];
            for (place, entry) in entries.iter().enumerate() {
                if !self.is_to_be_placed(entry, proofs) {
                    continue;
                }
                let ask = entry.ask.as_ref()?;
                let set = proofs.profiles.all[entry.profile as usize].set;
                if self.set(set, proofs).nodes.is_empty() {
                    self.without_node += 1;
                    continue;
                }
                let (target, is_same) = known.as_ref().map_or((NOWHERE, false), |known| known[place]);
                let is_changed =
                    || before.is_some_and(|before| proofs.log.is_changed_since(entry.profile, before.round));
                if is_same && target != NOWHERE && !is_changed() {
                    targets[place] = target;
                    self.load.add(target, ask);
                } else {
                    self.waiting.push(WaitingPod {
                        lost: id(place_of_node),
                        place: id(place),
                        before: target,
                    });
                }
            }
            self.targets.push(targets);
        }
        (self.without_node == 0 || !self.has_surplus).then_some(())
    }

    fn is_to_be_placed(&mut self, entry: &Entry, proofs: &FitProofs) -> bool {
        match proofs.recreated(entry) {
            Recreated::None => return false,
            Recreated::Some => self.has_surplus = true,
            Recreated::All => {}
        }
        self.pods += usize::from(entry.fate != Fate::Ends);
        entry.fate == Fate::Placed
    }

    fn set(&mut self, set: u32, proofs: &FitProofs) -> &mut SetLeft {
        let is_lost = &self.is_lost;
        self.sets.entry(set).or_insert_with(|| {
            let nodes = proofs.profiles.sets[set as usize].nodes.iter().copied();
            let nodes: Vec<u32> = nodes.filter(|node| !is_lost[*node as usize]).collect();
            let weights = proofs.room.weights(nodes.iter().copied());
            SetLeft { nodes, weights, next: 0 }
        })
    }

    /// All pods that were packed and keep their nodes.
    fn kept(&self) -> impl Iterator<Item = (usize, usize, u32)> {
        self.targets.iter().enumerate().flat_map(|(lost, targets)| {
            let targets = targets.iter().copied().enumerate();
            targets.filter(|(_, target)| *target != NOWHERE).map(move |(place, target)| (lost, place, target))
        })
    }

    /// Lets those kept pods wait for which this holds.
    fn pull(
        &mut self,
        proofs: &FitProofs,
        mut is_pulled: impl FnMut(&Load, &Entry, u32) -> bool,
    ) -> Vec<WaitingPod> {
        let mut pulled = Vec::new();
        for lost in 0..self.lost.len() {
            let entries = &proofs.entries[self.lost[lost] as usize];
            for (place, target) in self.targets[lost].iter_mut().enumerate() {
                if *target == NOWHERE || !is_pulled(&self.load, &entries[place], *target) {
                    continue;
                }
                if let Some(ask) = &entries[place].ask {
                    self.load.remove(*target, ask);
                }
                let before = std::mem::replace(target, NOWHERE);
                pulled.push(WaitingPod { lost: id(lost), place: id(place), before });
            }
        }
        self.waiting.extend_from_slice(&pulled);
        pulled
    }

    fn pull_from_full_nodes(&mut self, proofs: &FitProofs) {
        let room = &proofs.room;
        let nodes = 0..id(self.is_lost.len());
        let full: Vec<bool> = nodes.map(|node| self.load.exceeds(room, node)).collect();
        if full.contains(&true) {
            self.pull(proofs, |load, _, target| full[target as usize] && load.exceeds(room, target));
        }
    }

    /// With each waiting pod, those wait that are compared with it.
    fn pull_related(&mut self, proofs: &FitProofs, snapshot: &Snapshot) {
        let mut is_related = vec![false; proofs.profiles.all.len()];
        let mut known: OrderedSet<u32> = OrderedSet::new();
        let mut new = self.waiting.clone();
        loop {
            let (mut classes, mut affinity_classes) = (OrderedSet::new(), OrderedSet::new());
            for pod in &new {
                let resident = &proofs.residents[self.lost[pod.lost as usize] as usize][pod.place as usize];
                if known.insert(resident.pod_class) {
                    classes.insert(resident.pod_class);
                }
                affinity_classes.extend(resident.affinity_class);
            }
            if classes.is_empty() {
                return;
            }
            let related = proofs.profiles.related_to(&classes, &affinity_classes, snapshot);
            related.into_iter().for_each(|profile| is_related[profile as usize] = true);
            new = self.pull(proofs, |_, entry, _| is_related[entry.profile as usize]);
        }
    }

    /// Lets others see the pods that keep their nodes.
    fn count_kept(&mut self, proofs: &FitProofs) {
        let mut newcomers = Newcomers::default();
        for (lost, place, target) in self.kept() {
            let entry = &proofs.entries[self.lost[lost] as usize][place];
            let class = proofs.profiles.all[entry.profile as usize].pod_class;
            newcomers.push(target, class, entry.group, proofs.profiles.ports(entry.profile));
        }
        newcomers.sort();
        self.newcomers = newcomers;
    }

    /// Those that may run on many nodes first, of them the small ones, of equals those of one profile together.
    fn sort_waiting(&mut self, proofs: &FitProofs) {
        let mut by_key: Vec<_> = self
            .waiting
            .iter()
            .map(|pod| {
                let entry = &proofs.entries[self.lost[pod.lost as usize] as usize][pod.place as usize];
                let set = &self.sets[&proofs.profiles.all[entry.profile as usize].set];
                let size = entry.ask.as_ref().map_or(0.0, |ask| ask.size(&set.weights, u64::MAX));
                // Positive floats have the order of their bits.
                ((Reverse(id(set.nodes.len())), size.to_bits(), entry.profile), *pod)
            })
            .collect();
        by_key.sort_unstable_by_key(|(key, pod)| Reverse((*key, pod.lost, pod.place)));
        self.waiting = by_key.into_iter().map(|(_, pod)| pod).collect();
    }

    /// Packs the waiting pods, and looks whether the reserve is left.
    pub fn advance(
        &mut self,
        proofs: &mut FitProofs,
        snapshot: &Snapshot,
        continues: &mut impl FnMut() -> bool,
    ) -> Packed {
        while let Some(pod) = self.waiting.last().copied() {
            if !continues() {
                return Packed::Interrupted;
            }
            match self.pack(pod, proofs, snapshot) {
                Some(true) => {}
                Some(false) if self.stuck.len() < MOST_STUCK => self.stuck.push(pod),
                Some(false) | None => return Packed::NotAll,
            }
            self.waiting.pop();
        }
        if !self.stuck_have_no_node(proofs, snapshot) {
            return Packed::NotAll;
        }
        let mut reserve = Reserve::default();
        for (lost, place, _) in self.kept() {
            let entry = &proofs.entries[self.lost[lost] as usize][place];
            if let Some(ask) = &entry.ask {
                reserve.add(entry.profile, ask, proofs);
            }
        }
        if reserve.is_left(proofs, &self.load, &self.is_lost, &self.narrowing) {
            Packed::All { pending: self.without_node + self.stuck.len(), pods: self.pods }
        } else {
            Packed::NotAll
        }
    }

    /// Whether those that found no node would find none in any order either.
    fn stuck_have_no_node(&self, proofs: &mut FitProofs, snapshot: &Snapshot) -> bool {
        if self.stuck.is_empty() {
            return true;
        }
        if self.has_surplus {
            return false;
        }
        for pod in &self.stuck {
            let profile = self.entry(*pod, proofs).profile;
            proofs.profiles.relations(profile, snapshot);
        }
        let loss = Loss::new(proofs, snapshot, self.lost.clone());
        self.stuck.iter().all(|pod| loss.has_no_node(self.lost[pod.lost as usize], pod.place))
    }

    fn entry<'e>(&self, pod: WaitingPod, proofs: &'e FitProofs) -> &'e Entry {
        &proofs.entries[self.lost[pod.lost as usize] as usize][pod.place as usize]
    }

    /// Gives one pod a node; false if there is none, none if not all is modelled that it is compared with.
    fn pack(&mut self, pod: WaitingPod, proofs: &mut FitProofs, snapshot: &Snapshot) -> Option<bool> {
        let entry = self.entry(pod, proofs);
        let (profile, group, ask) = (entry.profile, entry.group, entry.ask.clone().unwrap_or_default());
        proofs.profiles.keep_relations(RELATIONS_KEPT);
        let relations = proofs.profiles.relations(profile, snapshot);
        if !relations.is_modelled {
            return None;
        }
        for spread in &relations.spread {
            self.count_domains(spread, proofs);
        }
        let profiles = &proofs.profiles;
        let class = profiles.all[profile as usize].pod_class;
        let staying = StayingPods { profiles, snapshot, is_lost: &self.is_lost };
        let left = |spread: &SpreadRelation| &*self.domains_left[&spread.counted];
        let ports = relations.ports.clone();
        let Some(open) = OpenDomains::new(relations, staying, &self.newcomers, left) else {
            return Some(false);
        };
        let set = profiles.all[profile as usize].set;
        let left = self.sets.get_mut(&set).expect("it is of a pod that waits");
        open.narrow(set, &left.nodes, &mut self.narrowing);
        let is_feasible = |node: u32| self.load.has_room(&proofs.room, node, &ask) && open.allow(node);
        let is_left = |node: u32| {
            node != NOWHERE && !self.is_lost[node as usize] && profiles.sets[set as usize].contains(node)
        };
        let target = if is_left(pod.before) && is_feasible(pod.before) {
            Some(pod.before)
        } else {
            let room = |node: u32, weights: &[f64]| self.load.left(&proofs.room, node, &ask, weights);
            left.choose(is_feasible, room)
        };
        let Some(target) = target else { return Some(false) };
        self.targets[pod.lost as usize][pod.place as usize] = target;
        self.load.add(target, &ask);
        self.newcomers.add(target, class, group, &ports);
        Some(true)
    }

    /// How many nodes of each domain of a spread constraint are left.
    fn count_domains(&mut self, spread: &SpreadRelation, proofs: &FitProofs) {
        let (lost, profiles) = (&self.lost, &proofs.profiles);
        self.domains_left.entry(spread.counted).or_insert_with(|| {
            let counted = &profiles.counted[spread.counted as usize];
            let mut left = counted.nodes_in.clone();
            for node in lost.iter().filter(|node| counted.of_node[**node as usize]) {
                if let Some(value) = profiles.domain(spread.term.key, *node) {
                    left[value as usize] -= 1;
                }
            }
            left
        });
    }

    /// The packing that all pods have found a node by.
    pub fn done(self, proofs: &FitProofs) -> DonePacking {
        let (generation, round) = self.of;
        let packed = |(node, targets): (u32, Vec<u32>)| {
            let residents = proofs.residents[node as usize].clone();
            PackedNode { node, residents, targets }
        };
        let nodes = self.lost.into_iter().zip(self.targets).map(packed).collect();
        DonePacking { generation, round, nodes, narrowing: self.narrowing }
    }
}

impl SetLeft {
    /// The node with most room of the next few that are feasible; none if no node is.
    fn choose(
        &mut self,
        is_feasible: impl Fn(u32) -> bool,
        room: impl Fn(u32, &[f64]) -> f64,
    ) -> Option<u32> {
        let (mut best, mut found) = (None::<(f64, u32)>, 0);
        for _ in 0..self.nodes.len() {
            let node = self.nodes[self.next];
            self.next = (self.next + 1) % self.nodes.len();
            if !is_feasible(node) {
                continue;
            }
            let room = room(node, &self.weights);
            if best.is_none_or(|(most, _)| room > most) {
                best = Some((room, node));
            }
            found += 1;
            if found == CHOICE {
                break;
            }
        }
        best.map(|(_, node)| node)
    }
}

fn id(place: usize) -> u32 {
    u32::try_from(place).expect("fewer than pods")
}
