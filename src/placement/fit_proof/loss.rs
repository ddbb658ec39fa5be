//! One loss: which of its pods certainly find a node, and which certainly do not.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Entry, Fate, FitProof, FitProofs, Recreated,
    ask::{Ask, ResourceNumber, VOLUMES},
    profile::{Relations, SpreadRelation, TermRelation},
    room::{Cost, Costs},
};
use crate::placement::{columns::ABSENT, snapshot::Snapshot};

/// The part of all costs that rounding may amount to: it must not prove anything.
const ROUNDING: f64 = 1e-9;

/// Above this many lost nodes, sums over them are kept.
const FEW: usize = 4;

/// More domains, such as nodes, hardly have enough room each.
const MOST_DOMAINS: usize = 64;

/// The loss of some nodes.
pub(super) struct Loss<'a> {
    proofs: &'a mut FitProofs,
    snapshot: &'a Snapshot,
    /// The nodes, and whether each node is one of them.
    lost: Vec<u32>,
    is_lost: Vec<bool>,
    /// The pods to be placed, as node and place on the node, with those that are the same question side by side.
    pods: Vec<LostPod>,
    /// Pods that are recreated and not placed.
    not_tried: usize,
    /// How many of them are in each class of pods, and in each group with equal anti-affinity.
    in_class: BTreeMap<u32, usize>,
    in_group: BTreeMap<u32, usize>,
    /// What is lost of a question's costs: of all, and by domain.
    lost_costs: BTreeMap<u32, Cost>,
    lost_domains: BTreeMap<(u32, u32), Vec<Cost>>,
    /// How many nodes of each domain are left, by spread constraint.
    domains_left: BTreeMap<u32, Vec<u32>>,
    /// Sizes of all pods for some nodes, by node set, resources and domain.
    demands: BTreeMap<DemandKey, Cost>,
    /// How many changes there may be of other nodes and pods before a pod found to fit perhaps does not.
    slack: u64,
    /// By resource: the most that a lost pod asks for, once it was needed.
    largest: Option<Vec<i64>>,
    /// By label: whether no two nodes are in one domain.
    single_nodes: BTreeMap<u32, bool>,
}

/// A set of nodes, a set of resources as bits, and the domain of a spread constraint.
type DemandKey = (u32, u64, Option<(u32, u32)>);

/// A pod that has to be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LostPod {
    profile: u32,
    question: u32,
    node: u32,
    place: u32,
}

/// Pods of one profile that ask the same question.
type Group = std::ops::Range<usize>;

impl<'a> Loss<'a> {
    pub fn new(proofs: &'a mut FitProofs, snapshot: &'a Snapshot, lost: Vec<u32>) -> Self {
        let mut is_lost = vec![false; proofs.entries.len()];
        lost.iter().for_each(|node| is_lost[*node as usize] = true);
        let (mut pods, mut not_tried) = (Vec::new(), 0);
        for node in &lost {
            for (place, entry) in (0..).zip(&proofs.entries[*node as usize]) {
                if proofs.recreated(entry) == Recreated::None {
                    continue;
                }
                let (profile, question) = (entry.profile, entry.question);
                match entry.fate {
                    Fate::Ends => {}
                    Fate::NotTried => not_tried += 1,
                    Fate::Placed => pods.push(LostPod { profile, question, node: *node, place }),
                }
            }
        }
        pods.sort_unstable();
        let mut loss = Self {
            proofs,
            snapshot,
            lost,
            is_lost,
            pods,
            not_tried,
            in_class: BTreeMap::new(),
            in_group: BTreeMap::new(),
            lost_costs: BTreeMap::new(),
            lost_domains: BTreeMap::new(),
            domains_left: BTreeMap::new(),
            demands: BTreeMap::new(),
            slack: u64::MAX,
            largest: None,
            single_nodes: BTreeMap::new(),
        };
        loss.count();
        loss
    }

    fn count(&mut self) {
        for pod in &self.pods {
            let class = self.proofs.profiles.all[pod.profile as usize].pod_class;
            *self.in_class.entry(class).or_default() += 1;
            if let Some(group) = self.entry(pod).group {
                *self.in_group.entry(group).or_default() += 1;
            }
        }
    }

    fn entry(&self, pod: &LostPod) -> &Entry {
        &self.proofs.entries[pod.node as usize][pod.place as usize]
    }

    /// The proof; where all pods fit, also its [slack](Self::slack).
    pub fn prove(mut self) -> (FitProof, Option<u64>) {
        let doubtful: Vec<Group> =
            self.groups().into_iter().filter(|group| !self.fits_rounded(group)).collect();
        if doubtful.is_empty() {
            return (self.pending(0), Some(self.slack));
        }
        self.prove_doubtful(doubtful)
    }

    /// The [slack](Self::slack) where all pods of these profiles fit; none if one may not.
    pub fn slack_of(mut self, profiles: &BTreeSet<u32>) -> Option<u64> {
        let mut groups = self.groups();
        groups.retain(|group| profiles.contains(&self.pods[group.start].profile));
        groups.retain(|group| !self.fits_rounded(group));
        let doubtful: Vec<LostPod> = groups.into_iter().flat_map(|group| self.pods[group].to_vec()).collect();
        (doubtful.is_empty() || self.fit_exactly(&doubtful)).then_some(self.slack)
    }

    /// Whether pods that ask the same question fit, by the costs that are kept of it.
    fn fits_rounded(&mut self, group: &Group) -> bool {
        let question = self.pods[group.start].question;
        self.proofs.ensure_costs(question);
        let mut costs = self.proofs.costs[question as usize].take().expect("it was made");
        let fits = self.fits(group, &mut costs, Some(question));
        self.proofs.costs[question as usize] = Some(costs);
        fits
    }

    fn pending(&self, pending: usize) -> FitProof {
        FitProof::Pending { pending, pods: self.pods.len() + self.not_tried }
    }

    /// The proof where some pods may not fit.
    fn prove_doubtful(mut self, doubtful: Vec<Group>) -> (FitProof, Option<u64>) {
        let mut without_node: BTreeSet<LostPod> = BTreeSet::new();
        let mut others: Vec<Group> = Vec::new();
        for group in doubtful {
            let found: Vec<LostPod> =
                self.pods[group.clone()].iter().filter(|pod| self.finds_no_node(pod)).copied().collect();
            if found.len() < group.len() {
                others.push(group);
            }
            without_node.extend(found);
        }
        let surely_created =
            without_node.iter().filter(|pod| self.proofs.recreated(self.entry(pod)) == Recreated::All);
        let pending = surely_created.count();
        let none_preempts = self.highest_priority() <= self.proofs.lowest_priority;
        let unproven = if pending > 0 && none_preempts { FitProof::Short } else { FitProof::Open };
        let are_all_created = |pod: &LostPod| self.proofs.recreated(self.entry(pod)) == Recreated::All;
        if pending > 0 && !self.pods.iter().all(are_all_created) || pending < without_node.len() {
            return (unproven, None);
        }
        let proof = self.pending(pending);
        if others.is_empty() {
            return (proof, None);
        }
        if self.is_too_much(&without_node) {
            return (FitProof::Short, None);
        }
        let others: Vec<LostPod> = others
            .into_iter()
            .flat_map(|group| self.pods[group].to_vec())
            .filter(|pod| !without_node.contains(pod))
            .collect();
        self.pods.retain(|pod| !without_node.contains(pod));
        self.demands.clear();
        if !self.fit_exactly(&others) {
            return (unproven, None);
        }
        (proof, without_node.is_empty().then_some(self.slack))
    }

    /// Whether each of these fits, by weights for this loss and by the exact amounts.
    fn fit_exactly(&mut self, pods: &[LostPod]) -> bool {
        self.lost_costs.clear();
        self.lost_domains.clear();
        self.demands.clear();
        let mut best: BTreeMap<(u32, u64), Vec<f64>> = BTreeMap::new();
        let mut rounded: BTreeMap<u32, Costs> = BTreeMap::new();
        for pod in pods {
            let Some(ask) = self.entry(pod).ask.clone() else { return false };
            let set = self.proofs.profiles.all[pod.profile as usize].set;
            let weights = match best.get(&(set, ask.mask())) {
                Some(weights) => weights.clone(),
                None => {
                    let weights = self.best_weights(set, &ask);
                    best.insert((set, ask.mask()), weights.clone());
                    weights
                }
            };
            let place = self.pods.binary_search(pod).expect("it is one of them");
            let group = place..place + 1;
            let mut costs = rounded.remove(&pod.question).unwrap_or_else(|| {
                self.proofs.costs_of(set, &self.proofs.questions[pod.question as usize].ask, weights.clone())
            });
            let fits = self.fits(&group, &mut costs, Some(pod.question));
            rounded.insert(pod.question, costs);
            if !fits && !self.fits(&group, &mut self.proofs.costs_of(set, &ask, weights), None) {
                return false;
            }
        }
        true
    }

    /// Weights by which the room that is left is large beside what is asked of it.
    fn best_weights(&mut self, set: u32, ask: &Ask) -> Vec<f64> {
        let nodes: Vec<u32> = self.proofs.profiles.sets[set as usize]
            .nodes
            .iter()
            .filter(|node| !self.is_lost[**node as usize])
            .copied()
            .collect();
        let mask = ask.mask();
        let asked: Vec<(ResourceNumber, i64)> = ask.amounts().collect();
        let asks: Vec<&Ask> = self.pods.iter().filter_map(|pod| self.entry(pod).ask.as_ref()).collect();
        let ratio = |weights: &[f64]| {
            let cost: f64 = nodes.iter().map(|node| self.proofs.room.cost(*node, &asked, weights)).sum();
            let size: f64 = asks.iter().map(|ask| ask.size(weights, mask)).sum();
            cost / size.max(f64::MIN_POSITIVE)
        };
        let mut weights = self.proofs.room.weights(nodes.iter().copied());
        let mut best = ratio(&weights);
        for factor in [4.0, 2.0, 1.4, 1.15] {
            for (resource, _) in &asked {
                for factor in [factor, 1.0 / factor] {
                    let mut other = weights.clone();
                    other[usize::from(*resource)] *= factor;
                    let found = ratio(&other);
                    if found > best {
                        (weights, best) = (other, found);
                    }
                }
            }
        }
        weights
    }

    /// The pods by profile and question.
    fn groups(&self) -> Vec<Group> {
        let mut groups = Vec::new();
        let mut start = 0;
        for end in 1..=self.pods.len() {
            let is_same = |pod: &LostPod| {
                (pod.profile, pod.question) == (self.pods[start].profile, self.pods[start].question)
            };
            if !self.pods.get(end).is_some_and(is_same) {
                groups.push(start..end);
                start = end;
            }
        }
        groups
    }

    /// Whether pods of one profile that ask no more than these costs are for find a node. `question` is the one that the
    /// costs are of, if they may be kept.
    fn fits(&mut self, group: &Group, costs: &mut Costs, question: Option<u32>) -> bool {
        let first = self.pods[group.start];
        let profile = first.profile;
        let relations = self.proofs.profiles.relations(profile, self.snapshot);
        let is_known = self.pods[group.clone()].iter().all(|pod| self.entry(pod).ask.is_some());
        if !relations.is_modelled || !is_known {
            return false;
        }
        let all = costs.all.minus(self.lost_cost(question, costs));
        let Some(room) = self.room_by_affinity(all, &relations, costs, question, &first) else {
            return false;
        };
        let room = self.room_by_ports(room, &relations, costs);
        let sizes = self.pods[group.clone()].iter().map(|pod| self.size(pod, costs));
        let own = Cost { weight: sizes.fold(f64::INFINITY, f64::min), nodes: 1.0 };
        let demand = self.demand(costs, profile, None).minus(own);
        let closed = relations.spread.iter().try_fold(room, |room, spread| {
            let left = self.room_by_spread(room, spread, costs, profile);
            left.filter(|left| exceeds(*left, demand, costs))
        });
        if let Some(left) = closed.filter(|left| exceeds(*left, demand, costs)) {
            let of_changes = self.cost_of_changes(&relations, None, costs, &first);
            self.slack = self.slack.min(of_changes.until_short(left, demand, costs));
            return true;
        }
        // The domain with the fewest pods is always open, and may be any.
        let by_domain = (0..relations.spread.len()).find_map(|tight| {
            let others = (0..).zip(&relations.spread).filter(|(place, _)| *place != tight);
            let left = others
                .map(|(_, spread)| spread)
                .try_fold(room, |room, spread| self.room_by_spread(room, spread, costs, profile))?;
            let elsewhere = all.minus(left);
            self.slack_in_each_domain(&relations, tight, elsewhere, costs, question, &first)
        });
        self.slack = self.slack.min(by_domain.unwrap_or(u64::MAX));
        by_domain.is_some()
    }

    /// What changes elsewhere take at most of the room that is left to a pod, or add to what others ask for.
    ///
    /// A node may come to cost nothing, or as much as an empty one. Its cost counts once in all room, once for each constraint
    /// that leaves no room on it, and as that of the largest domain for each pod that may close one. Where domains are single
    /// nodes, the largest costs no more than an empty node however many change. A pod that is counted for a spread
    /// constraint lets one more of the others into a domain. One spread constraint may be left out.
    fn cost_of_changes(
        &mut self,
        relations: &Relations,
        left_out: Option<usize>,
        costs: &mut Costs,
        first: &LostPod,
    ) -> CostOfChanges {
        let of_others = relations.of_others.iter().map(|term| {
            let group = self.in_group.get(&term.numbers[0]).copied().unwrap_or(0);
            (term.key, 1, group)
        });
        let anti_affinity =
            relations.anti_affinity.iter().map(|term| (term.key, 1, self.others(term, first.profile)));
        let spread = (0..).zip(&relations.spread).filter(|(place, _)| Some(*place) != left_out);
        let spread = spread.map(|(_, spread)| (spread.term.key, 2, self.others(&spread.term, first.profile)));
        let terms: Vec<(u32, usize, usize)> = of_others.chain(anti_affinity).chain(spread).collect();
        let ports = if relations.ports.is_empty() { 0 } else { 1 + self.pods.len() };
        let mut times = 1 + usize::from(relations.affinity.is_some()) + ports;
        let mut once = Cost::default();
        let empty_node = Cost { weight: costs.most_possible, nodes: 1.0 };
        for (key, of_domains, more) in terms {
            times += of_domains;
            if self.has_single_nodes(key) {
                let most = costs.domains(key, &self.proofs.profiles.keys[key as usize].1).most;
                once = once.plus(empty_node.minus(most).max(Cost::default()).times(more as f64));
            } else {
                times += more;
            }
        }
        let another_pod = Cost { weight: self.largest_size(costs), nodes: 1.0 };
        CostOfChanges { once, each: empty_node.times(times as f64).plus(another_pod) }
    }

    /// Whether no two nodes are in one domain.
    fn has_single_nodes(&mut self, key: u32) -> bool {
        let column = &self.proofs.profiles.keys[key as usize].1;
        *self.single_nodes.entry(key).or_insert_with(|| {
            column.of_node.iter().filter(|value| **value != ABSENT).count() <= column.values.len()
        })
    }

    /// No lost pod is larger, of the resources that a pod asks for.
    fn largest_size(&mut self, costs: &Costs) -> f64 {
        let Self { proofs, pods, largest, .. } = self;
        let largest = largest.get_or_insert_with(|| {
            let entries = pods.iter().map(|pod| &proofs.entries[pod.node as usize][pod.place as usize]);
            Ask::largest(entries.filter_map(|entry| entry.ask.as_ref()), proofs.resources.len())
        });
        let asked = (0..).zip(largest.iter()).filter(|(resource, _)| costs.mask & (1_u64 << *resource) != 0);
        asked
            .map(|(resource, amount): (usize, _)| costs.weights[resource] * *amount as f64)
            .fold(0.0, f64::max)
    }

    fn size(&self, pod: &LostPod, costs: &Costs) -> f64 {
        self.entry(pod).ask.as_ref().map_or(0.0, |ask| ask.size(&costs.weights, costs.mask))
    }

    /// What of the costs is lost.
    fn lost_cost(&mut self, question: Option<u32>, costs: &Costs) -> Cost {
        let known = question.and_then(|question| self.lost_costs.get(&question).copied());
        known.unwrap_or_else(|| {
            let lost = self.lost.iter().fold(Cost::default(), |sum, node| sum.plus(costs.node(*node)));
            if let Some(question) = question {
                self.lost_costs.insert(question, lost);
            }
            lost
        })
    }

    /// The costs of a domain without the lost nodes.
    fn domain_cost(&mut self, term: u32, value: u32, costs: &mut Costs, question: Option<u32>) -> Cost {
        let column = &self.proofs.profiles.keys[term as usize].1;
        let all = costs.domains(term, column).of[value as usize];
        let Some(question) = question.filter(|_| self.lost.len() > FEW) else {
            let lost = self.lost.iter().filter(|node| column.of_node[**node as usize] == value);
            return lost.fold(all, |left, node| left.minus(costs.node(*node)));
        };
        let lost = self.lost_domains.entry((question, term)).or_insert_with(|| {
            let mut lost = vec![Cost::default(); column.values.len()];
            for node in &self.lost {
                if let Some(lost) = lost.get_mut(column.of_node[*node as usize] as usize) {
                    *lost = lost.plus(costs.node(*node));
                }
            }
            lost
        });
        all.minus(lost[value as usize])
    }

    /// The room that is left by affinity and anti-affinity; none if the affinity cannot be answered.
    fn room_by_affinity(
        &mut self,
        all: Cost,
        relations: &Relations,
        costs: &mut Costs,
        question: Option<u32>,
        first: &LostPod,
    ) -> Option<Cost> {
        let (profile, own_group) = (first.profile, self.entry(first).group);
        let mut room = all;
        if let Some(affinity) = &relations.affinity {
            let values = self.values_of_classes(&affinity.term);
            if values.is_empty() {
                if !affinity.may_be_first || self.others(&affinity.term, profile) > 0 {
                    return None;
                }
                let column = &self.proofs.profiles.keys[affinity.term.key as usize].1;
                room = room.minus(costs.domains(affinity.term.key, column).absent);
            } else {
                let allowed = values.into_iter().fold(Cost::default(), |sum, value| {
                    sum.plus(self.domain_cost(affinity.term.key, value, costs, question))
                });
                room = room.minus(all.minus(allowed));
            }
        }
        for term in &relations.anti_affinity {
            let values = self.values_of_classes(term);
            room = self.without_domains(room, term.key, values, self.others(term, profile), costs);
        }
        for term in &relations.of_others {
            let values = self.values_of_groups(term);
            let first = term.numbers[0];
            let of_it = self.in_group.get(&first).copied().unwrap_or(0);
            let others = of_it - usize::from(own_group == Some(first));
            room = self.without_domains(room, term.key, values, others, costs);
        }
        Some(room)
    }

    /// Without these domains, and without so many more.
    fn without_domains(
        &self,
        room: Cost,
        key: u32,
        values: BTreeSet<u32>,
        more: usize,
        costs: &mut Costs,
    ) -> Cost {
        let domains = costs.domains(key, &self.proofs.profiles.keys[key as usize].1);
        let blocked =
            values.into_iter().fold(Cost::default(), |sum, value| sum.plus(domains.of[value as usize]));
        room.minus(blocked).minus(domains.most.times(more as f64))
    }

    /// How many lost pods a term selects, without a pod of this profile itself.
    fn others(&self, term: &TermRelation, profile: u32) -> usize {
        let own = self.proofs.profiles.all[profile as usize].pod_class;
        let is_in = |class: &u32| self.in_class.get(class).copied().unwrap_or(0);
        let all: usize = term.numbers.iter().map(is_in).sum();
        all - usize::from(term.numbers.binary_search(&own).is_ok())
    }

    /// The domains with pods of these classes.
    fn values_of_classes(&self, term: &TermRelation) -> BTreeSet<u32> {
        let classes = term.numbers.iter().map(|class| self.snapshot.pod_classes().class(*class));
        let nodes = classes.flat_map(|class| class.on.iter()).map(|presence| presence.node);
        self.values(term.key, nodes)
    }

    /// The domains with pods of these groups.
    fn values_of_groups(&self, term: &TermRelation) -> BTreeSet<u32> {
        let groups = term.numbers.iter().map(|group| &self.proofs.profiles.groups[*group as usize]);
        let classes = groups.flat_map(|group| &group.affinity_classes);
        let classes = classes.map(|class| self.snapshot.affinity_classes().class(*class));
        let nodes = classes.flat_map(|class| class.on.iter()).map(|presence| presence.node);
        self.values(term.key, nodes)
    }

    fn values(&self, key: u32, nodes: impl Iterator<Item = u32>) -> BTreeSet<u32> {
        let left = nodes.filter(|node| !self.is_lost[*node as usize]);
        left.filter_map(|node| self.proofs.profiles.domain(key, node)).collect()
    }

    /// Without the nodes whose ports are in use, and one more for each other pod that may use them.
    fn room_by_ports(&self, room: Cost, relations: &Relations, costs: &Costs) -> Cost {
        if relations.ports.is_empty() {
            return room;
        }
        let is_used = |node: u32| self.uses_port(node, relations);
        let used = costs.nodes().filter(|node| is_used(*node));
        let blocked = used.fold(Cost::default(), |sum, node| sum.plus(costs.node(node)));
        let others = self.pods.iter().filter(|pod| self.conflicts(pod, relations)).count().saturating_sub(1);
        room.minus(blocked).minus(costs.most.times(others as f64))
    }

    fn uses_port(&self, node: u32, relations: &Relations) -> bool {
        let used = self.snapshot.resources(node).ports();
        relations.ports.iter().any(|port| used.iter().any(|used| used.conflicts_with(port)))
    }

    fn conflicts(&self, pod: &LostPod, relations: &Relations) -> bool {
        let residents = &self.proofs.residents[pod.node as usize];
        let ports = &residents[pod.place as usize].pod.scheduling.host_ports;
        ports.iter().any(|port| relations.ports.iter().any(|own| own.conflicts_with(port)))
    }

    /// The pods that count for a spread constraint by domain, where there are any.
    fn spread_counts(&self, spread: &SpreadRelation) -> BTreeMap<u32, i64> {
        let counted = &self.proofs.profiles.counted[spread.counted as usize].of_node;
        let mut counts = BTreeMap::new();
        for class in &spread.term.numbers {
            for presence in self.snapshot.pod_classes().class(*class).on.iter() {
                let node = presence.node as usize;
                if counted[node]
                    && !self.is_lost[node]
                    && let Some(value) = self.proofs.profiles.domain(spread.term.key, presence.node)
                {
                    *counts.entry(value).or_default() += presence.staying();
                }
            }
        }
        counts
    }

    /// How many nodes of each domain are left.
    fn domains_left(&mut self, spread: &SpreadRelation) -> &[u32] {
        let profiles = &self.proofs.profiles;
        let counted = &profiles.counted[spread.counted as usize];
        self.domains_left.entry(spread.counted).or_insert_with(|| {
            let mut left = counted.nodes_in.clone();
            for node in self.lost.iter().filter(|node| counted.of_node[**node as usize]) {
                if let Some(value) = profiles.domain(spread.term.key, *node) {
                    left[value as usize] -= 1;
                }
            }
            left
        })
    }

    /// Without the domains that are closed now, and one more for each other pod that counts; none if that cannot be
    /// answered. The lowest count never falls while pods are added.
    fn room_by_spread(
        &mut self,
        room: Cost,
        spread: &SpreadRelation,
        costs: &mut Costs,
        profile: u32,
    ) -> Option<Cost> {
        let counts = self.spread_counts(spread);
        let left = self.domains_left(spread);
        let domains = left.iter().filter(|nodes| **nodes > 0).count();
        let is_domain = |value: &u32| left[*value as usize] > 0;
        let counted: Vec<i64> =
            counts.iter().filter(|(value, _)| is_domain(value)).map(|(_, count)| *count).collect();
        let is_zero = domains < spread.min_domains || counted.len() < domains;
        let least = if is_zero { 0 } else { counted.iter().copied().min().unwrap_or(0) };
        let is_closed = |count: i64| domains > 0 && count + spread.own - least > spread.max_skew;
        if is_closed(0) {
            return None;
        }
        let closed = counts.into_iter().filter(|(_, count)| is_closed(*count)).map(|(value, _)| value);
        let closed = closed.collect();
        let column = &self.proofs.profiles.keys[spread.term.key as usize].1;
        let absent = costs.domains(spread.term.key, column).absent;
        let more = self.others(&spread.term, profile);
        Some(self.without_domains(room.minus(absent), spread.term.key, closed, more, costs))
    }

    /// The [slack](Self::slack) where each domain of one spread constraint has enough room for all others that may come into
    /// it; none where one has not. `elsewhere` is what other constraints leave no room in.
    fn slack_in_each_domain(
        &mut self,
        relations: &Relations,
        tight: usize,
        elsewhere: Cost,
        costs: &mut Costs,
        question: Option<u32>,
        first: &LostPod,
    ) -> Option<u64> {
        let spread = &relations.spread[tight];
        let term = spread.term.key;
        let left = self.domains_left(spread).to_vec();
        let values = (0..).zip(&left).filter(|(_, nodes)| **nodes > 0).map(|(value, _)| value);
        let values: Vec<u32> = values.collect();
        let is_open = spread.own <= spread.max_skew && values.len() >= spread.min_domains;
        if !is_open || values.is_empty() || values.len() > MOST_DOMAINS {
            return None;
        }
        let of_changes = self.cost_of_changes(relations, Some(tight), costs, first);
        let mut slack = u64::MAX;
        for value in values {
            let room = self.domain_cost(term, value, costs, question).minus(elsewhere);
            let demand = self.demand(costs, first.profile, Some((term, value)));
            if !exceeds(room, demand, costs) {
                return None;
            }
            slack = slack.min(of_changes.until_short(room, demand, costs));
        }
        Some(slack)
    }

    /// The sizes of all lost pods that may come to the nodes of a profile, or to one domain of them.
    fn demand(&mut self, costs: &Costs, profile: u32, domain: Option<(u32, u32)>) -> Cost {
        let set = self.proofs.profiles.all[profile as usize].set;
        let memo = (set, costs.mask, domain);
        if let Some(known) = self.demands.get(&memo) {
            return *known;
        }
        let mut demand = Cost::default();
        let mut start = 0;
        while start < self.pods.len() {
            let other = self.pods[start].profile;
            let end = start + self.pods[start..].partition_point(|pod| pod.profile == other);
            demand = demand.plus(self.demand_of(start..end, set, costs, domain));
            start = end;
        }
        self.demands.insert(memo, demand);
        demand
    }

    /// The part of it of the pods of one profile.
    fn demand_of(&mut self, pods: Group, set: u32, costs: &Costs, domain: Option<(u32, u32)>) -> Cost {
        let profile = self.pods[pods.start].profile;
        let sets = &self.proofs.profiles.sets;
        let own = self.proofs.profiles.all[profile as usize].set;
        if own != set && !sets[own as usize].meets(&sets[set as usize]) {
            return Cost::default();
        }
        let (mut sum, mut most) = (0.0, 0.0_f64);
        for pod in &self.pods[pods.clone()] {
            let size = self.size(pod, costs);
            (sum, most) = (sum + size, most.max(size));
        }
        let count = pods.len() as f64;
        let bound =
            domain.and_then(|domain| self.most_in_domain(profile, domain)).map_or(count, |most| most as f64);
        Cost { weight: sum.min(bound * most), nodes: count.min(bound) }
    }

    /// How many pods of a profile its own spread constraint lets into a domain at most.
    ///
    /// A pod comes in while the count there is below the lowest count and the skew together. The lowest is not above the
    /// mean of the other domains, which have what they had and those pods that do not come here.
    fn most_in_domain(&mut self, profile: u32, (key, value): (u32, u32)) -> Option<i64> {
        let relations = self.proofs.profiles.relations(profile, self.snapshot);
        let class = self.proofs.profiles.all[profile as usize].pod_class;
        let limits = |spread: &&SpreadRelation| {
            spread.term.key == key && spread.own == 1 && spread.term.numbers.binary_search(&class).is_ok()
        };
        let spread = relations.spread.iter().find(limits)?;
        let left = self.domains_left(spread);
        let domains = i64::try_from(left.iter().filter(|nodes| **nodes > 0).count()).ok()?;
        if domains < 2 || left[value as usize] == 0 {
            return None;
        }
        let is_domain: Vec<bool> = left.iter().map(|nodes| *nodes > 0).collect();
        let counts = self.spread_counts(spread);
        let here = counts.get(&value).copied().unwrap_or(0);
        let others = counts.iter().filter(|(other, _)| **other != value && is_domain[**other as usize]);
        let others: i64 = others.map(|(_, count)| *count).sum();
        let coming = i64::try_from(self.others(&spread.term, profile)).ok()? + 1;
        let most = ((spread.max_skew - here) * (domains - 1) + others + coming).div_euclid(domains);
        Some(most.clamp(0, coming))
    }

    /// Whether a pod stays Pending wherever the others are placed, and without preempting any.
    fn finds_no_node(&self, pod: &LostPod) -> bool {
        let entry = self.entry(pod);
        let profile = &self.proofs.profiles.all[pod.profile as usize];
        let Some(relations) = self.proofs.profiles.known_relations(pod.profile) else { return false };
        let left = || {
            let nodes = self.proofs.profiles.sets[profile.set as usize].nodes.iter().copied();
            nodes.filter(|node| !self.is_lost[*node as usize])
        };
        if left().next().is_none() {
            return true;
        }
        if let Some(affinity) = &relations.affinity
            && relations.is_modelled
            && !affinity.may_be_first
            && self.others(&affinity.term, pod.profile) == 0
            && self.values_of_classes(&affinity.term).is_empty()
        {
            return true;
        }
        let Some(ask) = &entry.ask else { return false };
        let may_preempt = !entry.never_preempts && entry.priority > self.proofs.lowest_priority;
        if may_preempt {
            return false;
        }
        let blocked: Vec<(u32, BTreeSet<u32>)> = relations
            .anti_affinity
            .iter()
            .map(|term| (term.key, self.values_of_classes(term)))
            .chain(relations.of_others.iter().map(|term| (term.key, self.values_of_groups(term))))
            .collect();
        let is_apart = |node: u32| {
            let is_blocked = |(key, values): &(u32, BTreeSet<u32>)| {
                self.proofs.profiles.domain(*key, node).is_some_and(|value| values.contains(&value))
            };
            !blocked.iter().any(is_blocked)
        };
        !left().any(|node| {
            self.proofs.room.has(node, ask) && !self.uses_port(node, &relations) && is_apart(node)
        })
    }

    /// The highest priority of the pods that may preempt others.
    fn highest_priority(&self) -> i32 {
        let preempting = self.pods.iter().map(|pod| self.entry(pod)).filter(|entry| !entry.never_preempts);
        preempting.map(|entry| entry.priority).max().unwrap_or(i32::MIN)
    }

    /// Whether more is asked of some resource than is free of it, on all nodes or on those of one set.
    fn is_too_much(&self, without_node: &BTreeSet<LostPod>) -> bool {
        let proofs = &*self.proofs;
        let surely: Vec<(&LostPod, &Ask)> = self
            .pods
            .iter()
            .filter(|pod| proofs.recreated(self.entry(pod)) == Recreated::All && !without_node.contains(pod))
            .filter_map(|pod| Some((pod, self.entry(pod).ask.as_ref()?)))
            .collect();
        let highest = self.highest_priority();
        let left = |node: &u32| !self.is_lost[*node as usize];
        if highest > proofs.lowest_priority {
            let nodes: Vec<u32> = self.snapshot.node_numbers().filter(left).collect();
            let may_vanish =
                |entry: &&Entry| entry.priority < highest && proofs.recreated(entry) == Recreated::None;
            let vanishing = nodes.iter().flat_map(|node| &proofs.entries[*node as usize]).filter(may_vanish);
            let Some(vanishing) = vanishing.map(|entry| entry.ask.as_ref()).collect::<Option<Vec<_>>>()
            else {
                return false;
            };
            return self.exceeds_free(surely.iter().map(|(_, ask)| *ask), &nodes, &vanishing);
        }
        let set_of = |pod: &LostPod| proofs.profiles.all[pod.profile as usize].set;
        let sets: BTreeSet<u32> = surely.iter().map(|(pod, _)| set_of(pod)).collect();
        sets.into_iter().any(|set| {
            let set = &proofs.profiles.sets[set as usize];
            let nodes: Vec<u32> = set.nodes.iter().copied().filter(left).collect();
            let within: BTreeSet<u32> = (0..)
                .zip(&proofs.profiles.sets)
                .filter(|(_, other)| other.is_within(set))
                .map(|(number, _)| number)
                .collect();
            let asks = surely.iter().filter(|(pod, _)| within.contains(&set_of(pod))).map(|(_, ask)| *ask);
            self.exceeds_free(asks, &nodes, &[])
        })
    }

    /// Whether more is asked of some resource than is free on these nodes once those that vanish are gone.
    fn exceeds_free<'e>(
        &self,
        asks: impl Iterator<Item = &'e Ask>,
        nodes: &[u32],
        vanishing: &[&Ask],
    ) -> bool {
        let mut sums = vec![0_i128; self.proofs.resources.len()];
        let mut add = |ask: &Ask, sign: i128| {
            ask.amounts()
                .for_each(|(resource, amount)| sums[usize::from(resource)] += sign * i128::from(amount));
        };
        asks.for_each(|ask| add(ask, 1));
        vanishing.iter().for_each(|ask| add(ask, -1));
        for node in nodes {
            for (sum, free) in sums.iter_mut().zip(self.proofs.room.free(*node)) {
                *sum -= i128::from((*free).max(0));
            }
        }
        sums[usize::from(VOLUMES)] = 0;
        sums.iter().any(|sum| *sum > 0)
    }
}

/// Whether more would have to be taken of the nodes than there is, by weight or by number.
fn exceeds(room: Cost, demand: Cost, costs: &Costs) -> bool {
    let rounding = ROUNDING * (costs.all.weight + demand.weight.abs());
    room.weight > demand.weight + rounding || room.nodes > demand.nodes + 0.5
}

/// What changes of other nodes and pods take of room at most: something once, and something each.
#[derive(Clone, Copy, Debug)]
struct CostOfChanges {
    once: Cost,
    each: Cost,
}

impl CostOfChanges {
    /// How many changes there may be before [`exceeds`] is perhaps not true any more.
    fn until_short(self, room: Cost, demand: Cost, costs: &Costs) -> u64 {
        let rounding = 2.0 * ROUNDING * (costs.all.weight + demand.weight.abs());
        let left = room.minus(demand).minus(self.once);
        let by_weight = (left.weight - rounding) / self.each.weight.max(f64::MIN_POSITIVE);
        let by_nodes = (left.nodes - 0.5) / self.each.nodes;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "not negative, and saturates"
        )]
        let changes = by_weight.max(by_nodes).max(0.0) as u64;
        // The last one might leave exactly nothing.
        changes.saturating_sub(1)
    }
}
