//! Totals over the pods of each node, such as the sum of their requests.

use super::{cow_map::CowMap, names::NodeName, pod::Pod, resources::Resources};

/// Totals over the pods of one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeLoad {
    /// Number of pods bound to the node, finished ones included.
    pub pods: usize,
    /// Requests of the unfinished pods, as the scheduler counts them.
    pub requested: Resources,
    pub terminating: usize,
    /// Number of pods whose Ready condition is True.
    pub ready: usize,
}

impl NodeLoad {
    /// Number of pods that have not finished. Only they count against the node's capacity.
    pub fn unfinished(&self) -> usize {
        usize::try_from(self.requested.pods).unwrap_or_default()
    }

    fn add(&mut self, pod: &Pod) {
        self.pods += 1;
        self.terminating += usize::from(pod.termination.is_some());
        self.ready += usize::from(pod.is_ready());
        if !pod.is_finished() {
            self.requested += pod.requests();
        }
    }

    fn subtract(&mut self, pod: &Pod) {
        self.pods -= 1;
        self.terminating -= usize::from(pod.termination.is_some());
        self.ready -= usize::from(pod.is_ready());
        if !pod.is_finished() {
            self.requested -= pod.requests();
        }
    }
}

/// Updates the totals of nodes after a pod changed: subtracts its old state from its old node, and adds its new state
/// to its new node.
pub(super) fn count(old: Option<&Pod>, new: Option<&Pod>, loads: &mut CowMap<NodeName, NodeLoad>) {
    let (old_node, new_node) = (old.and_then(|pod| pod.node.as_ref()), new.and_then(|pod| pod.node.as_ref()));
    if let (Some(node), Some(old), Some(new)) = (new_node, old, new)
        && old_node == new_node
    {
        let load = loads.get_mut(node).expect("a bound pod is counted");
        load.subtract(old);
        load.add(new);
        return;
    }
    if let (Some(node), Some(pod)) = (new_node, new) {
        loads.entry(node.clone(), NodeLoad::default).add(pod);
    }
    if let (Some(node), Some(pod)) = (old_node, old) {
        let load = loads.get_mut(node).expect("a bound pod is counted");
        load.subtract(pod);
        if load.pods == 0 {
            loads.remove(node);
        }
    }
}
