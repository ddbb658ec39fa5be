//! Fast checks, without reasons, of whether a pod has no feasible node, or has at least a given number of feasible
//! nodes.

use std::collections::BTreeSet;

use super::{
    filter::{Filters, is_left_to_devices},
    scheduling_request::SchedulingRequest,
    snapshot::Snapshot,
};
use crate::cluster::{NodeName, Requests};

impl Snapshot {
    /// Returns true if no node is feasible for a pod. Much faster than [`Snapshot::place`] if most nodes lack free
    /// resources.
    ///
    /// Takes `&mut self` because indexes are created when they are first needed.
    pub fn has_no_node_for(&mut self, request: &SchedulingRequest) -> bool {
        let candidates = self.with_room_for(request, self.node_numbers());
        !self.is_any_feasible(request, candidates)
    }

    /// Returns whether one of these nodes is feasible for a pod.
    pub fn has_one_of(&mut self, request: &SchedulingRequest, nodes: &BTreeSet<NodeName>) -> bool {
        let candidates = self.with_room_for(request, nodes.iter().filter_map(|node| self.number(node)));
        self.is_any_feasible(request, candidates)
    }

    /// Returns which of the nodes have enough free resources for a pod.
    fn with_room_for(&self, request: &SchedulingRequest, nodes: impl Iterator<Item = u32>) -> Vec<u32> {
        nodes.filter(|node| self.has_room_for(*node, &request.resources.requests)).collect()
    }

    fn is_any_feasible(&mut self, request: &SchedulingRequest, nodes: Vec<u32>) -> bool {
        if nodes.is_empty() {
            return false;
        }
        self.prepare(request);
        let mut filters = Filters::new(self, request);
        nodes.into_iter().any(|node| filters.check_node(node).is_ok())
    }

    /// Returns whether at least `count` nodes are feasible for a pod.
    ///
    /// Takes `&mut self` because indexes are created when they are first needed.
    pub fn has_nodes_for(&mut self, request: &SchedulingRequest, count: usize) -> bool {
        self.prepare(request);
        let mut filters = Filters::new(self, request);
        let has_room = |node: &u32| self.has_room_for(*node, &request.resources.requests);
        let feasible = self.node_numbers().filter(has_room).filter(|node| filters.is_feasible(*node));
        let has_nodes = feasible.take(count).count() == count;
        has_nodes && filters.devices.unknown().is_none() && !filters.devices.fails()
    }

    /// Returns the lowest priority of all pods on nodes; `i32::MAX` if no node has pods.
    pub fn lowest_priority(&self) -> i32 {
        let residents = self.residents().iter().flat_map(|residents| residents.iter());
        residents.map(|resident| resident.pod.priority).min().unwrap_or(i32::MAX)
    }

    /// Returns whether a node has enough free resources for these requests.
    fn has_room_for(&self, node: u32, requests: &Requests) -> bool {
        let resources = self.resources(node);
        let fits = |requested: i64, free: i64| requested <= 0 || requested <= free;
        resources.pods.free() > 0
            && fits(requests.cpu_milli, resources.cpu_milli.free())
            && fits(requests.memory_bytes, resources.memory_bytes.free())
            && fits(requests.ephemeral_bytes, resources.ephemeral_bytes().free())
            && requests.scalars.iter().all(|(name, amount)| {
                fits(*amount, resources.scalar(name).free()) || is_left_to_devices(name, resources, self)
            })
    }
}
