//! Zones: how many of their nodes are not ready, and the eviction rate that follows
//! (docs/upstream/node-lifecycle.md#5).

use std::{collections::BTreeMap, fmt};

use super::{
    limiter::Limiter,
    queue::Queue,
    settings::{ControllerRules, FullDisruptionPolicy, Settings},
};
use crate::cluster::{Cluster, ConditionStatus, Delta, Labels, Node, ZoneKey};
use kordon_time::Timestamp;

/// Upstream's zone states (docs/upstream/node-lifecycle.md#5.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ZoneState {
    /// The zone is registered and has not been evaluated yet.
    #[default]
    Initial,
    Normal,
    /// At least three nodes are not ready, and their share reaches the threshold.
    PartialDisruption,
    /// No node is ready.
    FullDisruption,
}

impl ZoneState {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Initial => "Initial",
            Self::Normal => "Normal",
            Self::PartialDisruption => "PartialDisruption",
            Self::FullDisruption => "FullDisruption",
        }
    }
}

impl fmt::Display for ZoneState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Zone and exclusion label of a node, cached. Reading the labels of every node would take most of a pass.
#[derive(Clone, Debug)]
pub struct NodeZone {
    labels: Labels,
    pub key: ZoneKey,
    has_exclusion_label: bool,
}

impl NodeZone {
    pub fn from_node(node: &Node) -> Self {
        Self {
            labels: node.labels.clone(),
            key: node.zone(),
            has_exclusion_label: node.labels.contains_key("node.kubernetes.io/exclude-disruption"),
        }
    }

    /// Reads the node's labels again if they changed.
    pub fn refresh(&mut self, node: &Node) {
        if !self.labels.is_same_list(&node.labels) {
            *self = Self::from_node(node);
        }
    }

    /// Whether the statistics of the zone exclude the node (docs/upstream/node-lifecycle.md#3.8).
    pub fn excludes(&self, node: &Node, rules: &ControllerRules) -> bool {
        (rules.excludes_labelled && self.has_exclusion_label)
            || (rules.excludes_master_names && is_master_name(&node.name))
    }
}

/// Whether releases up to 1.20 treat the name as that of a master: it ends in "master", or in "master-" and three more
/// bytes.
fn is_master_name(name: &str) -> bool {
    let cut = name.len().checked_sub(3).filter(|_| name.len() >= 10);
    name.ends_with("master") || cut.is_some_and(|cut| name.as_bytes()[..cut].ends_with(b"master-"))
}

/// How many counted nodes of a zone are ready and how many are not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    pub ready: usize,
    pub not_ready: usize,
}

impl Census {
    /// Counts a node by its current Ready condition. A node without one counts as not ready.
    pub fn count(&mut self, current: Option<ConditionStatus>) {
        match current {
            Some(ConditionStatus::True) => self.ready += 1,
            Some(ConditionStatus::False | ConditionStatus::Unknown | ConditionStatus::Invalid) | None => {
                self.not_ready += 1;
            }
        }
    }

    /// Reverts [`Census::count`].
    pub fn discount(&mut self, counted: Option<ConditionStatus>) {
        match counted {
            Some(ConditionStatus::True) => self.ready = self.ready.saturating_sub(1),
            Some(ConditionStatus::False | ConditionStatus::Unknown | ConditionStatus::Invalid) | None => {
                self.not_ready = self.not_ready.saturating_sub(1);
            }
        }
    }

    pub const fn add(&mut self, other: Self) {
        self.ready += other.ready;
        self.not_ready += other.not_ready;
    }

    pub const fn size(&self) -> usize {
        self.ready + self.not_ready
    }

    /// Returns the zone's state (upstream `ComputeZoneState`). The arithmetic is in 32-bit floats, so 11 of 20 nodes at
    /// a threshold of 0.55 is a partial disruption (docs/upstream/node-lifecycle.md#12.20).
    #[expect(clippy::cast_precision_loss, reason = "zones have far fewer than 2^24 nodes")]
    pub fn state(&self, threshold: f32) -> ZoneState {
        if self.ready == 0 && self.not_ready > 0 {
            ZoneState::FullDisruption
        } else if self.not_ready > 2 && self.not_ready as f32 / self.size() as f32 >= threshold {
            ZoneState::PartialDisruption
        } else {
            ZoneState::Normal
        }
    }
}

/// Adds a node to the counts of its zone.
pub fn count(census: &mut BTreeMap<ZoneKey, Census>, zone: &ZoneKey, current: Option<ConditionStatus>) {
    match census.get_mut(zone) {
        Some(census) => census.count(current),
        None => census.entry(zone.clone()).or_default().count(current),
    }
}

/// Removes a node from the counts of its zone (reverts [`count`]), and drops a zone without counted nodes. Returns none
/// if the zone is unknown.
pub fn discount(
    census: &mut BTreeMap<ZoneKey, Census>,
    zone: &ZoneKey,
    counted: Option<ConditionStatus>,
) -> Option<()> {
    let of_zone = census.get_mut(zone)?;
    of_zone.discount(counted);
    if of_zone.size() == 0 {
        census.remove(zone);
    }
    Some(())
}

/// The counts of ready and not-ready nodes of each zone now. The counts of the last pass ([`Zone::census`]), which
/// decide a zone's state, can differ until the controller's next pass.
#[derive(Clone, Debug, Default)]
pub struct PresentNodes(BTreeMap<ZoneKey, Census>);

impl PresentNodes {
    pub fn new(cluster: &Cluster, rules: &ControllerRules) -> Self {
        let mut present = Self::default();
        cluster.nodes().iter().for_each(|node| present.add(node, rules));
        present
    }

    /// Updates the counts of the zones after a change of a node.
    pub fn follow(&mut self, delta: &Delta<Node>, rules: &ControllerRules) {
        if let Some(node) = &delta.old {
            self.remove(node, rules);
        }
        if let Some(node) = &delta.new {
            self.add(node, rules);
        }
    }

    /// Returns the counts of a zone; zero for a zone without counted nodes.
    pub fn census(&self, zone: &ZoneKey) -> Census {
        self.0.get(zone).copied().unwrap_or_default()
    }

    fn add(&mut self, node: &Node, rules: &ControllerRules) {
        let zone = NodeZone::from_node(node);
        if !zone.excludes(node, rules) {
            count(&mut self.0, &zone.key, node.ready().map(|ready| ready.status));
        }
    }

    fn remove(&mut self, node: &Node, rules: &ControllerRules) {
        let zone = NodeZone::from_node(node);
        if !zone.excludes(node, rules) {
            // `discount` returns none if the zone is unknown. An unknown zone counts no nodes, so nothing is left to
            // do.
            let _ = discount(&mut self.0, &zone.key, node.ready().map(|ready| ready.status));
        }
    }
}

/// A zone: its state and the nodes that wait in it.
#[derive(Clone, Debug)]
pub struct Zone {
    /// State at the last pass; `None` stands for upstream's empty state. A zone without counted nodes gets the empty
    /// state if [`update`] stops early and does not drop the zone (docs/upstream/node-lifecycle.md#12.15).
    pub state: Option<ZoneState>,
    pub census: Census,
    pub queue: Queue,
    pub limiter: Limiter,
}

impl Zone {
    /// A new zone: Initial, with a full rate limiter and an empty queue (upstream `addPodEvictorForNewZone`).
    pub fn new(settings: &Settings, now: Timestamp) -> Self {
        Self {
            state: Some(ZoneState::Initial),
            census: Census::default(),
            queue: Queue::default(),
            limiter: Limiter::full(settings.node_eviction_rate.value, now),
        }
    }

    /// Sets the eviction rate for the zone's new state (upstream `setLimiterInZone`).
    pub fn set_limiter(&mut self, state: ZoneState, settings: &Settings, now: Timestamp) {
        let rate = match state {
            ZoneState::FullDisruption if settings.full_disruption.value == FullDisruptionPolicy::Pause => 0.0,
            ZoneState::Normal | ZoneState::FullDisruption => settings.node_eviction_rate.value,
            ZoneState::PartialDisruption if self.is_large(settings) => {
                settings.secondary_node_eviction_rate.value
            }
            ZoneState::PartialDisruption => 0.0,
            ZoneState::Initial => return,
        };
        self.limiter.swap(rate, now);
    }

    fn is_large(&self, settings: &Settings) -> bool {
        i32::try_from(self.census.size()).unwrap_or(i32::MAX) > settings.large_cluster_size_threshold.value
    }
}

/// Finding of a pass about all zones together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disruption {
    /// All zones were down and still are: nothing changes.
    StillFull,
    /// All zones are down now: evictions stop everywhere and taints are removed.
    EntersFull,
    /// A zone recovered: every node gets a new grace period.
    LeavesFull,
    /// The zones are not all down, neither before nor now: each zone is handled on its own.
    PerZone,
}

/// Steps 1 and 2 of upstream's `handleDisruption`: adds and drops zones, and decides how the remaining ones are
/// handled.
///
/// Upstream walks its old states in random order and stops at the first zone that was not fully disrupted. Here the
/// order is by key, with the same early stop (docs/upstream/node-lifecycle.md#12.15).
pub fn update(
    zones: &mut BTreeMap<ZoneKey, Zone>,
    census: &BTreeMap<ZoneKey, Census>,
    settings: &Settings,
    now: Timestamp,
) -> Disruption {
    let threshold = settings.unhealthy_zone_threshold.value;
    let all_are_full = census.values().all(|census| census.state(threshold) == ZoneState::FullDisruption);
    for (key, census) in census {
        // Adds the zone if it is new. Upstream adds it without a queue, and crashes when it sets the limiter
        // (docs/upstream/node-lifecycle.md#12.17).
        zones.entry(key.clone()).or_insert_with(|| Zone::new(settings, now)).census = *census;
    }
    let mut all_were_full = true;
    let mut dropped = Vec::new();
    for (key, zone) in zones.iter_mut() {
        if !census.contains_key(key) {
            dropped.push(key.clone());
        } else if zone.state != Some(ZoneState::FullDisruption) {
            all_were_full = false;
            break;
        }
    }
    for key in dropped {
        zones.remove(&key);
    }
    for (key, zone) in zones.iter_mut() {
        if !census.contains_key(key) {
            zone.census = Census::default();
        }
    }
    match (all_are_full, all_were_full) {
        (true, true) => Disruption::StillFull,
        (true, false) => Disruption::EntersFull,
        (false, true) => Disruption::LeavesFull,
        (false, false) => Disruption::PerZone,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cluster::{Applied, Change, Condition, ObjectEvent, READY, Version},
        engine::settings::ServerVersion,
    };

    fn state(not_ready: usize, size: usize) -> ZoneState {
        Census { ready: size - not_ready, not_ready }.state(0.55)
    }

    #[test]
    fn the_threshold_is_compared_in_32_bits_and_needs_three_nodes() {
        for (not_ready, size) in [(11, 20), (22, 40), (33, 60), (55, 100), (5, 9), (3, 4)] {
            assert_eq!(state(not_ready, size), ZoneState::PartialDisruption, "{not_ready} of {size}");
        }
        for (not_ready, size) in [(6, 11), (2, 3), (0, 1)] {
            assert_eq!(state(not_ready, size), ZoneState::Normal, "{not_ready} of {size}");
        }
        assert_eq!((state(2, 2), state(1, 1)), (ZoneState::FullDisruption, ZoneState::FullDisruption));
    }

    #[test]
    fn master_names_are_recognized_as_in_1_19() {
        let recognized =
            ["k8s-master-abc", "k8s-master-ab", "master-abc", "a-master", "worker"].map(is_master_name);
        assert_eq!(recognized, [true, false, true, true, false]);
    }

    #[test]
    fn a_large_zone_needs_strictly_more_nodes_than_the_threshold() {
        let settings = Settings::defaults(ServerVersion::new(1, 36));
        let rate = |size| {
            let mut zone = Zone::new(&settings, Timestamp::EPOCH);
            zone.census = Census { ready: 0, not_ready: size };
            zone.set_limiter(ZoneState::PartialDisruption, &settings, Timestamp::EPOCH);
            zone.limiter.rate()
        };
        assert_eq!((rate(50), rate(51)), (0.0, 0.01));
    }

    #[test]
    fn a_start_with_everything_down_enters_full_disruption() {
        let settings = Settings::defaults(ServerVersion::new(1, 36));
        let census = BTreeMap::from([(ZoneKey::default(), Census { ready: 0, not_ready: 1 })]);
        let mut zones = BTreeMap::new();
        assert_eq!(update(&mut zones, &census, &settings, Timestamp::EPOCH), Disruption::EntersFull);
        for zone in zones.values_mut() {
            zone.state = Some(ZoneState::FullDisruption);
        }
        assert_eq!(update(&mut zones, &census, &settings, Timestamp::EPOCH), Disruption::StillFull);
    }

    #[test]
    fn the_nodes_of_a_zone_are_counted_as_they_change() {
        let settings = Settings::defaults(ServerVersion::new(1, 33));
        let (rules, mut cluster) = (settings.rules(), Cluster::default());
        let mut present = PresentNodes::new(&cluster, &rules);
        let mut change = |change| {
            let mut applied = Vec::new();
            cluster.apply(Change::Node(change), &mut applied);
            for applied in &applied {
                let Applied::Node(delta) = applied else { continue };
                present.follow(delta, &rules);
            }
            let again = PresentNodes::new(&cluster, &rules);
            assert_eq!(present.0, again.0);
            ["a", "b"].map(|zone| {
                let key = ZoneKey { region: "".into(), zone: zone.into() };
                present.census(&key)
            })
        };
        let node = |version, zone: &str, status| Node {
            name: "n".into(),
            version: Version(version),
            labels: Labels::from([("topology.kubernetes.io/zone".into(), zone.into())]),
            conditions: [Condition { kind: READY.into(), status, ..Condition::default() }].into(),
            ..Node::default()
        };
        let (ready, not_ready, none) =
            (Census { ready: 1, not_ready: 0 }, Census { ready: 0, not_ready: 1 }, Census::default());
        let becomes = ObjectEvent::Applied;
        assert_eq!(change(becomes(node(1, "a", ConditionStatus::True))), [ready, none]);
        assert_eq!(change(becomes(node(2, "a", ConditionStatus::Unknown))), [not_ready, none]);
        assert_eq!(change(becomes(node(3, "b", ConditionStatus::Unknown))), [none, not_ready]);
        assert_eq!(
            change(becomes(Node { conditions: [].into(), ..node(4, "b", ConditionStatus::True) })),
            [none, not_ready]
        );
        let mut excluded = node(5, "b", ConditionStatus::True);
        excluded.labels = Labels::from([("node.kubernetes.io/exclude-disruption".into(), "".into())]);
        assert_eq!(change(becomes(excluded)), [none, none]);
        assert_eq!(change(becomes(node(6, "b", ConditionStatus::True))), [none, ready]);
        assert_eq!(change(ObjectEvent::Deleted("n".into())), [none, none]);
    }
}
