//! The free room of nodes, and what it costs to leave none of it for a pod.

use std::sync::Arc;

use super::{
    ask::{Ask, ResourceNumber, ResourceNumbers, VOLUMES},
    profile::NodeSet,
};
use crate::{
    ordered::OrderedMap,
    placement::{
        columns::{ABSENT, LabelColumn},
        node_resources::Share,
        snapshot::Snapshot,
    },
};

/// Much more than any node has: no limit.
const UNLIMITED: i64 = i64::MAX / 4;

/// What is free on each node.
#[derive(Clone, Debug, Default)]
pub(super) struct Room {
    resources: usize,
    /// By node, then by resource; negative where a node is overcommitted.
    free: Vec<i64>,
    /// Whether a new pod is compared with this node's resources alone: no pod is nominated for it, and it is not
    /// overcommitted where old releases refuse even pods that request nothing.
    is_plain: Vec<bool>,
    /// By resource: no node has more free, whatever pods are on it.
    most: Vec<i64>,
}

impl Room {
    pub fn of(snapshot: &Snapshot, resources: &ResourceNumbers) -> Self {
        let nodes = snapshot.node_resources();
        let mut room = Self {
            resources: resources.len(),
            free: Vec::with_capacity(nodes.len() * resources.len()),
            is_plain: Vec::with_capacity(nodes.len()),
            most: vec![0; resources.len()],
        };
        for (number, node) in (0..).zip(nodes.iter()) {
            let volumes = if node.present { free_volumes(snapshot, number) } else { 0 };
            let fixed = [
                node.cpu_milli.free(),
                node.memory_bytes.free(),
                node.ephemeral_bytes().free(),
                volumes,
                node.pods.free(),
            ];
            room.free.extend(fixed);
            room.free.extend(resources.named().iter().map(|name| node.scalar(name).free()));
            let volumes = if node.present { UNLIMITED } else { 0 };
            let fixed =
                [node.cpu_milli, node.memory_bytes, node.ephemeral_bytes(), Share::default(), node.pods]
                    .map(|share| share.allocatable.max(share.free()));
            let offered = fixed.into_iter().enumerate();
            let offered =
                offered.map(|(number, amount)| if number == usize::from(VOLUMES) { volumes } else { amount });
            let scalars = resources.named().iter().map(|name| node.scalar(name));
            let offered = offered.chain(scalars.map(|share| share.allocatable.max(share.free())));
            room.most.iter_mut().zip(offered).for_each(|(most, offered)| *most = (*most).max(offered));
            let overcommitted = room.free(number).iter().any(|free| *free < 0);
            room.is_plain.push(
                snapshot.nominated_for(number).is_empty()
                    && (snapshot.rules().zero_requests_fit || !overcommitted),
            );
        }
        room
    }

    pub fn free(&self, node: u32) -> &[i64] {
        let start = node as usize * self.resources;
        &self.free[start..start + self.resources]
    }

    /// Whether a new pod is compared with the resources of a node alone.
    pub fn is_plain(&self, node: u32) -> bool {
        self.is_plain[node as usize]
    }

    /// Whether a node cannot be compared with what it was: other resources are known, or nodes have become larger.
    pub fn is_of_others(&self, old: &Self) -> bool {
        self.resources != old.resources || self.most.iter().zip(&old.most).any(|(new, old)| new > old)
    }

    /// Whether the room of a node is as it was.
    pub fn is_same_on(&self, node: u32, old: &Self) -> bool {
        (node as usize) < old.is_plain.len()
            && self.is_plain[node as usize] == old.is_plain[node as usize]
            && self.free(node) == old.free(node)
    }

    /// No node can ever cost more.
    fn most_possible(&self, asked: &[(ResourceNumber, i64)], weights: &[f64]) -> f64 {
        let cost = |(resource, _): &(ResourceNumber, i64)| {
            let resource = usize::from(*resource);
            weights[resource] * (self.most[resource].max(0) as f64 + 1.0)
        };
        asked.iter().map(cost).fold(f64::INFINITY, f64::min)
    }

    /// For each resource one divided by all that is free of it on these nodes.
    pub fn weights(&self, nodes: impl Iterator<Item = u32>) -> Vec<f64> {
        let mut sums = vec![0.0_f64; self.resources];
        for node in nodes {
            for (sum, free) in sums.iter_mut().zip(self.free(node)) {
                *sum += (*free).max(0) as f64;
            }
        }
        sums.into_iter().map(|sum| 1.0 / sum.max(1.0)).collect()
    }

    /// Whether the node has what is asked, apart from volumes, of which the limits are only estimated here.
    pub fn has(&self, node: u32, ask: &Ask) -> bool {
        let free = self.free(node);
        ask.amounts().all(|(resource, amount)| resource == VOLUMES || amount <= free[usize::from(resource)])
    }

    /// How much others have to take of a node, by weight, before it has no room for what is asked; zero if it has none.
    pub fn cost(&self, node: u32, asked: &[(ResourceNumber, i64)], weights: &[f64]) -> f64 {
        if !self.is_plain[node as usize] {
            return 0.0;
        }
        let free = self.free(node);
        let mut least = f64::INFINITY;
        for (resource, amount) in asked {
            let left = free[usize::from(*resource)].saturating_sub(*amount);
            if left < 0 {
                return 0.0;
            }
            least = least.min(weights[usize::from(*resource)] * (left as f64 + 1.0));
        }
        least
    }
}

/// How many more claims the pods of a node may have, whatever drivers attach them.
fn free_volumes(snapshot: &Snapshot, node: u32) -> i64 {
    let limits = snapshot.storage().limits(&snapshot.node(node).name);
    let Some(least) = limits.iter().map(|(_, limit)| *limit).min() else { return UNLIMITED };
    let claims = i64::try_from(snapshot.resources(node).claims().len()).unwrap_or(i64::MAX);
    least.max(0).saturating_sub(claims)
}

/// Some nodes, and what it costs to leave no room on any of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cost {
    pub weight: f64,
    /// How many nodes, for one pod leaves no room on one node at most.
    pub nodes: f64,
}

impl Cost {
    /// Of one node.
    pub fn one(weight: f64) -> Self {
        Self { weight, nodes: if weight > 0.0 { 1.0 } else { 0.0 } }
    }

    pub fn plus(self, other: Self) -> Self {
        Self { weight: self.weight + other.weight, nodes: self.nodes + other.nodes }
    }

    pub fn minus(self, other: Self) -> Self {
        Self { weight: self.weight - other.weight, nodes: self.nodes - other.nodes }
    }

    pub fn times(self, factor: f64) -> Self {
        Self { weight: self.weight * factor, nodes: self.nodes * factor }
    }

    pub fn max(self, other: Self) -> Self {
        Self { weight: self.weight.max(other.weight), nodes: self.nodes.max(other.nodes) }
    }
}

/// What it costs to leave no room for one ask on each node of a set.
///
/// What each node costs is worked out when it is asked for: for thousands of asks, it would take hundreds of megabytes.
#[derive(Clone, Debug)]
pub(super) struct Costs {
    pub weights: Vec<f64>,
    pub mask: u64,
    pub all: Cost,
    /// Of the node that costs most.
    pub most: Cost,
    /// No node can ever cost more by weight, whatever pods come and go.
    pub most_possible: f64,
    room: Arc<Room>,
    set: Arc<NodeSet>,
    asked: Vec<(ResourceNumber, i64)>,
    by_key: OrderedMap<u32, DomainCosts>,
}

/// The same by topology domain.
#[derive(Clone, Debug)]
pub(super) struct DomainCosts {
    /// By value.
    pub of: Vec<Cost>,
    pub most: Cost,
    /// Of the nodes without the label.
    pub absent: Cost,
}

impl Costs {
    pub fn new(room: &Arc<Room>, set: &Arc<NodeSet>, ask: &Ask, weights: Vec<f64>) -> Self {
        let mut costs = Self {
            weights,
            mask: ask.mask(),
            all: Cost::default(),
            most: Cost::default(),
            most_possible: 0.0,
            room: room.clone(),
            set: set.clone(),
            asked: ask.amounts().collect(),
            by_key: OrderedMap::new(),
        };
        costs.most_possible = room.most_possible(&costs.asked, &costs.weights);
        (costs.all, costs.most) = costs
            .nodes()
            .map(|node| costs.node(node))
            .fold((Cost::default(), Cost::default()), |(sum, most), cost| (sum.plus(cost), most.max(cost)));
        costs
    }

    /// Zero for nodes that are not in the set.
    pub fn node(&self, node: u32) -> Cost {
        let is_in = self.set.contains(node);
        Cost::one(if is_in { self.room.cost(node, &self.asked, &self.weights) } else { 0.0 })
    }

    /// All nodes of the set.
    pub fn nodes(&self) -> impl Iterator<Item = u32> {
        self.set.nodes.iter().copied()
    }

    pub fn domains(&mut self, key: u32, column: &LabelColumn) -> &DomainCosts {
        if !self.by_key.contains_key(&key) {
            let mut of = vec![Cost::default(); column.values.len()];
            let mut absent = Cost::default();
            for node in self.nodes() {
                let (value, cost) = (column.of_node[node as usize], self.node(node));
                let domain = if value == ABSENT { &mut absent } else { &mut of[value as usize] };
                *domain = domain.plus(cost);
            }
            let most = of.iter().copied().fold(Cost::default(), Cost::max);
            self.by_key.insert(key, DomainCosts { of, most, absent });
        }
        &self.by_key[&key]
    }
}
