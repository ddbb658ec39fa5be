//! The order in which the scheduler tries nodes. In large clusters it tries only some of the nodes for each pod.

use std::{
    collections::BTreeMap,
    str::FromStr,
    sync::{Arc, OnceLock},
};

use crate::{
    cluster::{Node, ZoneKey},
    engine::ServerVersion,
};

/// Settings of the scheduler whose placements a [`super::Snapshot`] predicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulerOptions {
    /// Release of the scheduler. The rules of this release apply.
    pub version: ServerVersion,
    /// The scheduler's `percentageOfNodesToScore`. If it is unknown (`None`), all nodes are tried.
    pub percentage_of_nodes_to_score: Option<PercentageOfNodesToScore>,
    /// Index of the node that the scheduler tries first for the first pod. The real scheduler's index is not in any
    /// API.
    pub first_start: usize,
}

impl From<ServerVersion> for SchedulerOptions {
    fn from(version: ServerVersion) -> Self {
        Self { version, percentage_of_nodes_to_score: None, first_start: 0 }
    }
}

/// The scheduler's `percentageOfNodesToScore`, 0 to 100. 0 adapts to the number of nodes, 100 means all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PercentageOfNodesToScore(u8);

/// The error for text that is not a valid `percentageOfNodesToScore`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a whole number from 0 (adapts to the number of nodes) to 100 (all nodes)")]
pub struct NoPercentage;

impl PercentageOfNodesToScore {
    /// The scheduler's default, which depends on the number of nodes: 50 % of 100 nodes, 10 % of 5,000 nodes, never
    /// less than 5 %.
    pub const ADAPTIVE: Self = Self(0);
    pub const ALL: Self = Self(100);

    /// The scheduler does not stop before it has found this many feasible nodes.
    const MOST_UNSAMPLED: usize = 100;

    /// Creates a percentage; `None` for values above 100.
    pub const fn new(percentage: u8) -> Option<Self> {
        if percentage <= Self::ALL.0 { Some(Self(percentage)) } else { None }
    }

    /// Returns the number of feasible nodes after which the scheduler stops looking (upstream
    /// `numFeasibleNodesToFind`).
    pub fn nodes_to_find(self, candidates: usize) -> usize {
        if candidates < Self::MOST_UNSAMPLED {
            return candidates;
        }
        let percentage = match self {
            Self::ADAPTIVE => 50_usize.saturating_sub(candidates / 125).max(5),
            Self(percentage) => percentage.into(),
        };
        (candidates * percentage / 100).max(Self::MOST_UNSAMPLED)
    }
}

impl FromStr for PercentageOfNodesToScore {
    type Err = NoPercentage;

    fn from_str(text: &str) -> Result<Self, NoPercentage> {
        text.parse().ok().and_then(Self::new).ok_or(NoPercentage)
    }
}

/// The position of the scheduler in its list of nodes.
///
/// For each pod, the scheduler continues at the node where it stopped for the previous pod. It stops again once it has
/// found enough feasible nodes. Copies of a snapshot have independent positions.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeWalk {
    percentage: Option<PercentageOfNodesToScore>,
    next_start: usize,
    /// The order in which nodes are tried. It is computed on first use and shared by all copies of a snapshot. A copy
    /// discards its order when a node is added, removed or moved to another zone.
    order: Arc<OnceLock<Vec<u32>>>,
}

impl NodeWalk {
    pub fn new(options: SchedulerOptions) -> Self {
        let SchedulerOptions { percentage_of_nodes_to_score: percentage, first_start: next_start, .. } =
            options;
        Self { percentage, next_start, order: Arc::default() }
    }

    pub const fn percentage(&self) -> Option<PercentageOfNodesToScore> {
        self.percentage
    }

    /// Returns the index of the node that the scheduler tries first for the next pod.
    pub const fn next_start(&self) -> usize {
        self.next_start
    }

    /// Returns the nodes in the order in which the scheduler tries them. `by_name` returns all nodes, sorted by name.
    pub fn order<'n>(
        &self,
        by_name: impl FnOnce() -> Vec<u32>,
        node: impl Fn(u32) -> &'n Arc<Node>,
    ) -> &[u32] {
        self.order.get_or_init(|| zones_in_turn(&by_name(), node))
    }

    /// Returns all of these nodes, beginning where the scheduler stopped for the previous pod.
    pub fn over(&self, candidates: &[u32]) -> impl Iterator<Item = u32> {
        starting_at(candidates, self.next_start)
    }

    /// Stores the index of the node that the scheduler tries first for the next pod.
    pub fn advance(&mut self, next_start: usize) {
        self.next_start = next_start;
    }

    /// Discards the cached order of nodes if a node was added, removed or moved to another zone.
    pub fn on_node_change(&mut self, old: Option<&Arc<Node>>, new: Option<&Arc<Node>>) {
        let zone = |node: Option<&Arc<Node>>| node.map(|node| node.zone());
        if self.order.get().is_some() && zone(old) != zone(new) {
            self.order = Arc::default();
        }
    }
}

/// Returns the nodes in the order in which the scheduler tries them: one node of each zone in turn (upstream's node
/// tree). Within a zone, nodes keep the order in which they are passed. Zones are ordered by their first nodes.
fn zones_in_turn<'n>(nodes: &[u32], node: impl Fn(u32) -> &'n Arc<Node>) -> Vec<u32> {
    let (mut places, mut zones) = (BTreeMap::<ZoneKey, usize>::new(), Vec::<Vec<u32>>::new());
    for number in nodes {
        let place = *places.entry(node(*number).zone()).or_insert(zones.len());
        match zones.get_mut(place) {
            Some(zone) => zone.push(*number),
            None => zones.push(vec![*number]),
        }
    }
    let largest = zones.iter().map(Vec::len).max().unwrap_or(0);
    let round = |round: usize| zones.iter().filter_map(move |zone| zone.get(round).copied());
    (0..largest).flat_map(round).collect()
}

/// Returns all nodes, from index `start` to the end and then from the beginning.
fn starting_at(nodes: &[u32], start: usize) -> impl Iterator<Item = u32> {
    let (before, after) = nodes.split_at(start % nodes.len().max(1));
    after.iter().chain(before).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_feasible_nodes_are_enough() {
        let adaptive = PercentageOfNodesToScore::ADAPTIVE;
        let thirty = PercentageOfNodesToScore::new(30).expect("a percentage");
        let counts = |percentage: PercentageOfNodesToScore| {
            [0, 1, 99, 100, 1000, 5000, 15_000].map(|nodes| percentage.nodes_to_find(nodes))
        };
        assert_eq!(counts(adaptive), [0, 1, 99, 100, 420, 500, 750]);
        assert_eq!(counts(thirty), [0, 1, 99, 100, 300, 1500, 4500]);
        assert_eq!(counts(PercentageOfNodesToScore::ALL), [0, 1, 99, 100, 1000, 5000, 15_000]);
        // Numbers of feasible nodes from the table in the specification of the scheduler.
        assert_eq!([50, 250, 6000].map(|nodes| adaptive.nodes_to_find(nodes)), [50, 120, 300]);
    }

    #[test]
    fn a_percentage_is_a_whole_number_up_to_100() {
        let read = |text: &str| text.parse::<PercentageOfNodesToScore>();
        assert_eq!(read("0"), Ok(PercentageOfNodesToScore::ADAPTIVE));
        assert_eq!(read("100"), Ok(PercentageOfNodesToScore::ALL));
        for text in ["101", "-1", "", "5.5", "all", "256"] {
            assert_eq!(read(text), Err(NoPercentage), "{text}");
        }
    }

    #[test]
    fn nodes_of_each_zone_are_walked_over_in_turn() {
        let zones = ["b", "b", "a", "b", "c", "a", "b"];
        assert_eq!(walked(&zones), [0, 2, 4, 1, 5, 3, 6]);
        assert_eq!(walked(&["", "", ""]), [0, 1, 2]);
        assert!(walked(&[]).is_empty());
    }

    #[test]
    fn a_walk_begins_anywhere_and_sees_each_node_once() {
        let nodes = [7, 8, 9];
        let walk = |start| starting_at(&nodes, start).collect::<Vec<u32>>();
        assert_eq!([walk(0), walk(2), walk(3), walk(7)], [[7, 8, 9], [9, 7, 8], [7, 8, 9], [8, 9, 7]]);
        assert_eq!(starting_at(&Vec::new(), 5).count(), 0);
    }

    fn walked(zones: &[&str]) -> Vec<u32> {
        let node = |zone: &&str| {
            let labels = [("topology.kubernetes.io/zone".into(), (*zone).into())];
            Arc::new(Node { labels: labels.into_iter().collect(), ..Node::default() })
        };
        let nodes: Vec<Arc<Node>> = zones.iter().map(node).collect();
        let numbers: Vec<u32> = (0..).take(nodes.len()).collect();
        zones_in_turn(&numbers, |number| &nodes[number as usize])
    }
}
