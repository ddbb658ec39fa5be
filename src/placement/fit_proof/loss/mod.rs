//! One loss: which of its pods certainly find a node, and which certainly do not.

mod compared;
mod demand;
mod exact;
mod no_node;
mod room_left;
mod shortage;
mod slack;

use super::{
    Entry, Fate, FitProof, FitProofs, Recreated,
    room::{Cost, Costs},
};
use crate::{
    ordered::{OrderedMap, OrderedSet},
    placement::snapshot::Snapshot,
};

/// The part of all costs that rounding may amount to: it must not prove anything.
const ROUNDING: f64 = 1e-9;

/// Above this many lost nodes, sums over them are kept.
const FEW: usize = 4;

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
    in_class: OrderedMap<u32, usize>,
    in_group: OrderedMap<u32, usize>,
    /// What is lost of a question's costs: of all, and by domain.
    lost_costs: OrderedMap<u32, Cost>,
    lost_domains: OrderedMap<(u32, u32), Vec<Cost>>,
    /// How many nodes of each domain are left, by spread constraint.
    domains_left: OrderedMap<u32, Vec<u32>>,
    /// Sizes of all pods for some nodes, by node set, resources and domain.
    demands: OrderedMap<DemandKey, Cost>,
    /// How many changes there may be of other nodes and pods before a pod found to fit perhaps does not.
    slack: u64,
    /// By resource: the most that a lost pod asks for, once it was needed.
    largest: Option<Vec<i64>>,
    /// By label: whether no two nodes are in one domain.
    single_nodes: OrderedMap<u32, bool>,
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
            in_class: OrderedMap::new(),
            in_group: OrderedMap::new(),
            lost_costs: OrderedMap::new(),
            lost_domains: OrderedMap::new(),
            domains_left: OrderedMap::new(),
            demands: OrderedMap::new(),
            slack: u64::MAX,
            largest: None,
            single_nodes: OrderedMap::new(),
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
    pub fn slack_of(mut self, profiles: &OrderedSet<u32>) -> Option<u64> {
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
        let mut without_node: OrderedSet<LostPod> = OrderedSet::new();
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
}

/// Whether more would have to be taken of the nodes than there is, by weight or by number.
fn exceeds(room: Cost, demand: Cost, costs: &Costs) -> bool {
    let rounding = ROUNDING * (costs.all.weight + demand.weight.abs());
    room.weight > demand.weight + rounding || room.nodes > demand.nodes + 0.5
}
