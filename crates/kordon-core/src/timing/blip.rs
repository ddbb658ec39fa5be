//! Blips: temporary network outages between nodes and API server. Simulates their effects, and searches for the longest
//! blips without an effect.

use super::{
    ClusterSize, PassDuration, TimingProfile,
    death::{AT_ONCE, longest, one_pod_each},
    synthetic::{LastHeartbeat, Outage, SyntheticCluster},
};
use crate::{cluster::NodeName, forecast::ForecastKind};
use kordon_time::{Span, Timestamp};

/// The nodes that a blip (a temporary network outage) affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlipScope {
    Node,
    /// Every node of one zone.
    Zone,
    AllNodes,
}

impl BlipScope {
    const ALL: [Self; 3] = [Self::Node, Self::Zone, Self::AllNodes];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Node => "one node",
            Self::Zone => "one zone",
            Self::AllNodes => "all nodes",
        }
    }
}

/// Smallest and largest number of nodes or pods over all simulated phases of heartbeats and monitor passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountRange {
    pub least: usize,
    pub most: usize,
}

/// Effects of a blip, a temporary network outage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blip {
    /// Number of nodes that become Unknown.
    pub unknown: CountRange,
    /// Number of pods that are marked not ready and leave the endpoints of their Services.
    pub not_ready: CountRange,
    /// Number of pods that are evicted.
    pub evicted: CountRange,
}

/// The effects of a blip (a network outage) of one length on one node, on one zone, and on all nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlipRisk {
    pub lasts: Span,
    pub blips: Vec<(BlipScope, Blip)>,
}

/// The longest blips (network outages) of one node that have no effect, whatever the phases of heartbeats and monitor
/// passes; in whole seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Harmless {
    /// Longest blip after which the node has not become Unknown; `None` if no blip makes it Unknown.
    pub without_unknown: Option<Span>,
    /// Longest blip after which no pod of the node was evicted; `None` if no blip evicts a pod.
    pub without_eviction: Option<Span>,
}

/// Phase of a run. It consists of the age of the heartbeats at the start of the blip, in hundredths of the heartbeat
/// interval, and of how soon a monitor pass notices the last heartbeats.
#[derive(Clone, Copy)]
struct BlipPhase {
    heartbeat: i64,
    noticed: Noticed,
}

#[derive(Clone, Copy)]
enum Noticed {
    AtOnce,
    PeriodLater,
}

/// A message that a node sends once its outage is over.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sign {
    Heartbeat,
    Status,
}

/// Difference in phase between the heartbeats of successive nodes, in hundredths of a heartbeat interval. With 62, the
/// phases of any number of nodes are spread evenly.
const SPREAD: i64 = 62;

/// Phases for a single node: at the start of the blip its last heartbeat is new, half an interval old, or almost an
/// interval old.
const NODE_PHASES: [i64; 3] = [1, 50, 99];

/// Phases for outages of many nodes. One phase is enough, because the heartbeats of the nodes are spread over all
/// phases.
const CLUSTER_PHASES: [i64; 1] = [1];

/// Numbers of affected nodes and pods in one simulated outage.
#[derive(Clone, Copy)]
struct Counts {
    unknown: usize,
    not_ready: usize,
    evicted: usize,
}

impl BlipRisk {
    /// Simulates blips (network outages) of these lengths with the engine.
    pub fn all(profile: &TimingProfile, size: ClusterSize, lengths: &[Span]) -> Vec<Self> {
        let mut lengths = lengths.to_vec();
        lengths.sort_unstable();
        lengths.dedup();
        if lengths.is_empty() {
            return Vec::new();
        }
        let synthetic = SyntheticCluster::new(profile, size);
        let by_scope = BlipScope::ALL
            .map(|scope| (scope, blips(&synthetic, profile, &nodes(&synthetic, size, scope), &lengths)));
        let of_length = |(place, lasts): (usize, &Span)| Self {
            lasts: *lasts,
            blips: by_scope.iter().map(|(scope, blips)| (*scope, blips[place])).collect(),
        };
        lengths.iter().enumerate().map(of_length).collect()
    }
}

fn nodes(synthetic: &SyntheticCluster, size: ClusterSize, scope: BlipScope) -> Vec<NodeName> {
    let every = match scope {
        BlipScope::Node => synthetic.nodes.len().max(1),
        BlipScope::Zone => size.zones.max(1),
        BlipScope::AllNodes => 1,
    };
    synthetic.nodes.iter().step_by(every).cloned().collect()
}

/// The effects of blips on these nodes. Returns one entry for each of the `lengths`, which are in ascending order.
fn blips(
    synthetic: &SyntheticCluster,
    profile: &TimingProfile,
    nodes: &[NodeName],
    lengths: &[Span],
) -> Vec<Blip> {
    let by_phase: Vec<Vec<Counts>> =
        phases(nodes).map(|phase| at_phase(synthetic, profile, nodes, lengths, phase)).collect();
    let blip = |place: usize| {
        let range = |count: fn(&Counts) -> usize| {
            let counts = || by_phase.iter().filter_map(|counts| counts.get(place)).map(count);
            CountRange { least: counts().min().unwrap_or(0), most: counts().max().unwrap_or(0) }
        };
        Blip {
            unknown: range(|counts| counts.unknown),
            not_ready: range(|counts| counts.not_ready),
            evicted: range(|counts| counts.evicted),
        }
    };
    (0..lengths.len()).map(blip).collect()
}

fn phases(nodes: &[NodeName]) -> impl Iterator<Item = BlipPhase> {
    let heartbeats = if nodes.len() > 1 { &CLUSTER_PHASES[..] } else { &NODE_PHASES[..] };
    let both = [Noticed::AtOnce, Noticed::PeriodLater];
    heartbeats
        .iter()
        .flat_map(move |heartbeat| both.map(|noticed| BlipPhase { heartbeat: *heartbeat, noticed }))
}

/// Simulates one outage. Returns the numbers of affected nodes and pods for each length that the outage may have.
fn at_phase(
    synthetic: &SyntheticCluster,
    profile: &TimingProfile,
    nodes: &[NodeName],
    lengths: &[Span],
    phase: BlipPhase,
) -> Vec<Counts> {
    let begins = synthetic.warm_from() + profile.kubelet.interval();
    let schedule = Schedule { profile, begins, phase: phase.heartbeat };
    let mut last: Vec<LastHeartbeat> =
        nodes.iter().enumerate().map(|(place, node)| schedule.last(place, node)).collect();
    last.sort_by_key(|last| last.at);
    let Some(latest) = last.last().map(|last| last.at) else { return Vec::new() };
    let noticed_after = match phase.noticed {
        Noticed::AtOnce => AT_ONCE,
        Noticed::PeriodLater => profile.settings.node_monitor_period.value,
    };
    let mut outage = synthetic.outage(&last, latest + noticed_after, PassDuration::AfterPeriod);
    let ended_after = |lasts: &Span| {
        outage.run_until(begins + *lasts);
        let mut ended = outage.clone();
        schedule.recover(&mut ended, nodes, begins + *lasts);
        Counts::from_outage(&ended)
    };
    lengths.iter().map(ended_after).collect()
}

/// The times at which nodes send heartbeats before and after a blip.
struct Schedule<'a> {
    profile: &'a TimingProfile,
    begins: Timestamp,
    phase: i64,
}

impl Schedule<'_> {
    /// Returns the first time at or after `from` at which a node performs an action that it repeats every `interval`.
    fn next(&self, place: usize, interval: Span, from: Timestamp) -> Timestamp {
        let hundredths =
            i64::try_from(place).unwrap_or(0).wrapping_mul(SPREAD).wrapping_add(self.phase).rem_euclid(100);
        let before = self.begins - Span::from_nanos(interval.as_nanos() / 100 * hundredths);
        let step = interval.as_nanos().max(1);
        let steps = (from.since(before).as_nanos() + step - 1).div_euclid(step);
        before + Span::from_nanos(step * steps)
    }

    fn last(&self, place: usize, node: &NodeName) -> LastHeartbeat {
        let interval = self.profile.kubelet.interval();
        let next = self.next(place, interval, self.begins);
        let at = if next == self.begins { next } else { next - interval };
        LastHeartbeat { node: node.clone(), at }
    }

    /// Ends the outage. Each node then sends its next status when it is due. If a heartbeat is due earlier, the node
    /// sends the heartbeat first.
    fn recover(&self, outage: &mut Outage, nodes: &[NodeName], ends: Timestamp) {
        let kubelet = &self.profile.kubelet;
        let mut signs: Vec<(Timestamp, Sign, &NodeName)> = Vec::new();
        for (place, node) in nodes.iter().enumerate() {
            let heartbeat = self.next(place, kubelet.interval(), ends);
            let status = self.next(place, kubelet.status_update_frequency, ends);
            if heartbeat < status {
                signs.push((heartbeat, Sign::Heartbeat, node));
            }
            signs.push((status, Sign::Status, node));
        }
        signs.sort_unstable();
        for (at, sign, node) in &signs {
            match sign {
                Sign::Heartbeat => outage.heartbeat(node, *at),
                Sign::Status => outage.recover(node, *at),
            }
        }
        // Runs for two more monitor periods, so that one more pass removes the taints.
        let until = signs.last().map_or(ends, |(at, ..)| *at);
        outage.run_until(until + self.profile.settings.node_monitor_period.value * 2);
    }
}

impl Counts {
    fn from_outage(outage: &Outage) -> Self {
        let count = |is_wanted: fn(&ForecastKind) -> bool| {
            outage.steps.iter().filter(|step| is_wanted(&step.kind)).count()
        };
        Self {
            unknown: count(|kind| matches!(kind, ForecastKind::Unknown { .. })),
            not_ready: outage.steps.iter().map(|step| step.not_ready).sum(),
            evicted: count(|kind| matches!(kind, ForecastKind::Deleted { .. })),
        }
    }
}

impl Harmless {
    /// Searches for the longest blips (network outages) of one node without an effect, by simulation with the engine.
    pub fn new(profile: &TimingProfile, size: ClusterSize) -> Self {
        let synthetic = SyntheticCluster::new(profile, one_pod_each(size));
        let node: Vec<NodeName> = synthetic.nodes.iter().take(1).cloned().collect();
        let longest_without = |count: fn(&Blip) -> usize| {
            let does_nothing = |seconds: i64| {
                let blip = blips(&synthetic, profile, &node, &[Span::from_secs(seconds)]);
                blip.first().is_none_or(|blip| count(blip) == 0)
            };
            let (mut harmless, mut harmful) = (0, longest(profile).as_secs() + 1);
            if does_nothing(harmful) {
                return None;
            }
            while harmful - harmless > 1 {
                let middle = i64::midpoint(harmless, harmful);
                if does_nothing(middle) { harmless = middle } else { harmful = middle }
            }
            Some(Span::from_secs(harmless))
        };
        Self {
            without_unknown: longest_without(|blip| blip.unknown.most),
            without_eviction: longest_without(|blip| blip.evicted.most),
        }
    }
}
