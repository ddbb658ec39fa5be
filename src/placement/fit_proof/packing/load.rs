//! What was packed on each node, beside what is free there.

use super::super::{ask::Ask, room::Room};

/// What the packed pods ask for by node, then by resource.
#[derive(Clone, Debug)]
pub(super) struct Load {
    resources: usize,
    used: Vec<i64>,
}

impl Load {
    pub fn new(nodes: usize, resources: usize) -> Self {
        Self { resources, used: vec![0; nodes * resources] }
    }

    fn used(&self, node: u32) -> &[i64] {
        let start = node as usize * self.resources;
        &self.used[start..start + self.resources]
    }

    pub fn add(&mut self, node: u32, ask: &Ask) {
        let start = node as usize * self.resources;
        ask.amounts().for_each(|(resource, amount)| self.used[start + usize::from(resource)] += amount);
    }

    pub fn remove(&mut self, node: u32, ask: &Ask) {
        let start = node as usize * self.resources;
        ask.amounts().for_each(|(resource, amount)| self.used[start + usize::from(resource)] -= amount);
    }

    /// Whether more was packed on a node than it has room for.
    pub fn exceeds(&self, room: &Room, node: u32) -> bool {
        let used = self.used(node);
        let is_used = used.iter().any(|used| *used > 0);
        is_used
            && (!room.is_plain(node)
                || used.iter().zip(room.free(node)).any(|(used, free)| *used > 0 && used > free))
    }

    /// Whether a node has room for one more pod.
    pub fn has_room(&self, room: &Room, node: u32, ask: &Ask) -> bool {
        let (used, free) = (self.used(node), room.free(node));
        room.is_plain(node)
            && ask
                .amounts()
                .all(|(resource, amount)| amount <= free[usize::from(resource)] - used[usize::from(resource)])
    }

    /// Whether a node has room for these amounts by resource.
    pub fn has_room_for_all(&self, room: &Room, node: u32, amounts: &[i64]) -> bool {
        let left = room.free(node).iter().zip(self.used(node)).map(|(free, used)| free - used);
        room.is_plain(node) && left.zip(amounts).all(|(left, amount)| *amount == 0 || *amount <= left)
    }

    /// The weighted amount that is left of the resource that a pod asks for and of which least is left.
    pub fn left(&self, room: &Room, node: u32, ask: &Ask, weights: &[f64]) -> f64 {
        let (used, free) = (self.used(node), room.free(node));
        let left = ask.amounts().map(|(resource, amount)| {
            let resource = usize::from(resource);
            weights[resource] * (free[resource] - used[resource] - amount) as f64
        });
        left.fold(f64::INFINITY, f64::min)
    }
}
