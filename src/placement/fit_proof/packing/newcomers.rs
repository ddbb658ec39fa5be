//! The packed pods by what others compare them with.

use std::sync::Arc;

use crate::{cluster::scheduling::HostPort, ordered::OrderedMap};

/// Where packed pods are, by class of pods, by group with equal anti-affinity, and with host ports.
#[derive(Clone, Debug, Default)]
pub(super) struct Newcomers {
    classes: NodesByNumber,
    groups: NodesByNumber,
    ports: Vec<(u32, Arc<[HostPort]>)>,
}

/// Nodes by number: those that were known at first, sorted, and those that came later.
#[derive(Clone, Debug, Default)]
struct NodesByNumber {
    first: Vec<(u32, u32)>,
    later: OrderedMap<u32, Vec<u32>>,
}

impl NodesByNumber {
    fn of(&self, number: u32) -> impl Iterator<Item = u32> {
        let start = self.first.partition_point(|(other, _)| *other < number);
        let first = self.first[start..].iter().take_while(move |(other, _)| *other == number);
        let later = self.later.get(&number).into_iter().flatten();
        first.map(|(_, node)| *node).chain(later.copied())
    }
}

impl Newcomers {
    /// Adds a pod before [`Newcomers::sort`]: quicker for many.
    pub fn push(&mut self, node: u32, class: u32, group: Option<u32>, ports: &Arc<[HostPort]>) {
        self.classes.first.push((class, node));
        self.groups.first.extend(group.map(|group| (group, node)));
        self.add_ports(node, ports);
    }

    pub fn sort(&mut self) {
        self.classes.first.sort_unstable();
        self.groups.first.sort_unstable();
    }

    pub fn add(&mut self, node: u32, class: u32, group: Option<u32>, ports: &Arc<[HostPort]>) {
        self.classes.later.entry(class).or_default().push(node);
        if let Some(group) = group {
            self.groups.later.entry(group).or_default().push(node);
        }
        self.add_ports(node, ports);
    }

    fn add_ports(&mut self, node: u32, ports: &Arc<[HostPort]>) {
        if !ports.is_empty() {
            self.ports.push((node, ports.clone()));
        }
    }

    /// The nodes of the pods of these classes, once for each pod.
    pub fn of_classes<'a>(&'a self, classes: &'a [u32]) -> impl Iterator<Item = u32> + use<'a> {
        classes.iter().flat_map(|class| self.classes.of(*class))
    }

    /// The same by groups.
    pub fn of_groups<'a>(&'a self, groups: &'a [u32]) -> impl Iterator<Item = u32> + use<'a> {
        groups.iter().flat_map(|group| self.groups.of(*group))
    }

    /// Whether a pod on this node uses one of these ports.
    pub fn use_port(&self, node: u32, ports: &[HostPort]) -> bool {
        let here = self.ports.iter().filter(|(other, _)| *other == node);
        here.flat_map(|(_, used)| &**used).any(|used| ports.iter().any(|port| used.conflicts_with(port)))
    }
}
