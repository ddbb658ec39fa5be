//! Maintenance of several nodes: in which waves they are drained, and what that costs.
//!
//! Each node is cordoned and drained, its machine is worked on, and the node comes back and is uncordoned. The nodes of
//! a wave go through this at the same time; the next wave starts when all of them are back, and every moved pod that
//! was Ready before is Ready again. [`MaintenancePlan::new`] computes the waves by simulation: it adds nodes to a wave
//! as long as no budget makes them wait for each other, every pod finds a place, and no zone loses too many nodes.
//! Between waves, the loss of a node or zone must be no worse than before the start.
//!
//! A pod should move only once. Therefore the nodes of later waves are cordoned in advance if there is room elsewhere,
//! so that replacements land on other nodes.

mod ended;
mod gate;
mod outcome;
mod schedule;
mod state;
mod wave;
mod work;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use crate::{
    cluster::{Cluster, FeedKind, Gaps, Key, NodeName},
    operation::Guards,
    plan::{DrainOptions, EvictionRules, Headroom, Loss, SurgePlan, can_place, words::counted},
};
pub use ended::{MaintenanceEnd, MaintenanceEndKind, MaintenanceNews, in_short};
pub use gate::{Gate, GateReading};
use kordon_time::{Span, Timestamp};
pub use outcome::{MaintenanceOutcome, NodeRecord, NodeResult, PastWave};
pub use work::{WaitFor, not_back};

/// Maximum size of a cluster, in nodes, in which the loss of each node and zone is simulated between waves. With 1,000
/// nodes and 30,000 pods, a plan for 12 nodes takes more than 85 s of CPU with these simulations, and 3 s without them
/// (2026-11-30): each wave that is tried needs one, and so does each node that they keep out of the waves. Above some
/// 3,000 nodes, the losses of zones are only computed on request ([`Headroom`]), so the check would leave them out.
pub const HEADROOM_UP_TO: usize = 1_000;

/// Settings of a maintenance: its nodes, limits and times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MaintenanceOptions {
    /// The nodes. Their order does not matter.
    pub nodes: Vec<NodeName>,
    /// Options with which each node is drained.
    pub drain: DrainOptions,
    /// Maximum number of nodes at a time; `None` for as many as possible.
    pub parallel: Option<usize>,
    /// Maximum number of nodes of a zone at a time; `None` for no limit.
    pub max_per_zone: Option<usize>,
    /// Whether control plane nodes may be in a wave together. If not, a wave has at most one of them.
    pub control_planes_together: bool,
    /// Whether pods may leave although no other node takes them. They stay Pending until their node is back.
    pub allows_pending: bool,
    /// Assumed time that the work on an empty node takes, until the node is back.
    pub work: Span,
    /// How long a node has to be healthy before it counts as done.
    pub settle: Span,
    /// Whether the loss of a node or zone must be no worse between waves than before the start. The check simulates
    /// each loss for each wave.
    pub keeps_headroom: bool,
    /// Limit for the number of pods that the loss of a node or zone may strand; `None` for the number before the start.
    pub before: Option<WorstLoss>,
    /// Guard rails that no wave may break.
    pub guards: Guards,
    /// Times at which waves may run: start and end of each, in order; empty for any time.
    pub windows: Vec<(Timestamp, Timestamp)>,
    /// Maximum time from the start of the first wave to the end of the last; `None` for no limit.
    pub longest: Option<Span>,
    /// When the first wave has started; `None` if no wave has started.
    pub began: Option<Timestamp>,
}

/// The waves in which nodes are maintained.
#[derive(Clone, Debug, PartialEq)]
pub struct MaintenancePlan {
    pub made: Timestamp,
    /// Number of pods that the worst loss of a node or zone strands before the start; `None` if not computed.
    pub before: Option<WorstLoss>,
    pub waves: Vec<MaintenanceWave>,
    /// Nodes that are in no wave, with the reason.
    pub left_out: Vec<(NodeName, LeftOutReason)>,
    /// Workloads on the nodes that are in no wave that `--surge` does not scale up.
    pub refused_surges: Vec<SurgePlan>,
    /// Nodes of the waves that run the control plane.
    pub control_planes: BTreeSet<NodeName>,
    /// The cost of maintaining the nodes of all waves one after the other, in order of name, without cordoning any node
    /// in advance.
    pub by_name: MaintenanceCost,
}

/// The worst losses: how many pods the loss of one node strands, and how many the loss of one zone strands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorstLoss {
    pub node: usize,
    pub zone: usize,
}

impl WorstLoss {
    const fn is_no_worse_than(self, before: Self) -> bool {
        self.node <= before.node && self.zone <= before.zone
    }

    fn most(self) -> usize {
        self.node.max(self.zone)
    }
}

impl From<&Headroom> for WorstLoss {
    fn from(headroom: &Headroom) -> Self {
        Self { node: headroom.nodes.most_stranded(), zone: headroom.zones.most_stranded() }
    }
}

/// Nodes that are maintained at the same time.
#[derive(Clone, Debug, PartialEq)]
pub struct MaintenanceWave {
    pub nodes: Vec<NodeName>,
    pub starts: Timestamp,
    /// When the last pod that the wave removes is likely gone.
    pub drained: Timestamp,
    /// When all nodes are likely back and settled, and every moved pod that is expected to become Ready again is Ready.
    pub ends: Timestamp,
    /// Nodes of later waves that are cordoned during this wave, so that no replacement lands there.
    pub ahead: BTreeSet<NodeName>,
    /// The pods that move, in order of their departure.
    pub moves: Vec<PodMove>,
    /// Pods that leave or are preempted and do not run again: no controller recreates them, or their Job fails.
    pub losses: Vec<Loss>,
    /// Number of pods that leave and lose data.
    pub data_lost: usize,
    /// Pods whose replacements find no node until the nodes of the wave are back.
    pub pending: Vec<Key>,
    /// Number of pods that likely leave before the timeout of the drain, but may take longer. If they do, the
    /// maintenance stops.
    pub may_time_out: usize,
    /// Times in which a workload has no Ready pod.
    pub down: Vec<WorkloadDown>,
    /// What `--surge` does for each workload whose budget can never allow an eviction.
    pub surges: Vec<SurgePlan>,
    /// Number of pods that the worst loss of a node or zone strands after the wave; `None` if not computed.
    pub stranded: Option<usize>,
}

/// The move of a pod to another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodMove {
    /// The pod that leaves. If the pod is itself a replacement from this plan, its name is made up.
    pub pod: Key,
    pub from: NodeName,
    /// The node on which the pod's replacement likely lands.
    pub to: NodeName,
    /// Whether the pod has moved in an earlier wave already.
    pub is_again: bool,
}

/// A workload without a Ready pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadDown {
    /// The last Ready pod of the workload.
    pub pod: Key,
    pub from: Timestamp,
    /// When the replacement is likely Ready; `None` if never or unknown.
    pub until: Option<Timestamp>,
    /// Whether the workload gets no replacement for this pod.
    pub is_for_good: bool,
}

/// Why a node is in no wave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeftOutReason {
    /// The drain of the node does not complete, even if no other node is drained. The text says why.
    Drain(String),
    /// This number of pods would have nowhere to run.
    NoRoom { pods: usize },
    /// The loss of a node or zone would be worse after the wave.
    Headroom { after: WorstLoss, before: WorstLoss },
    /// The drain of the node would break a guard rail. The text says which.
    Guard(String),
    /// The wave fits into none of the time windows in which waves may run.
    NoWindow { takes: Span },
    /// With the wave, the maintenance would take more than [`MaintenanceOptions::longest`].
    MaxDuration { takes: Span },
}

/// The cost of a maintenance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MaintenanceCost {
    /// Number of nodes that are maintained.
    pub nodes: usize,
    /// Time from the start of the first wave to the end of the last wave.
    pub takes: Span,
    /// Number of times that a pod moves to another node.
    pub moves: usize,
    /// Number of pods that move more than once.
    pub moved_again: usize,
    /// Number of times that a pod leaves and loses data.
    pub data_lost: usize,
}

impl WorkloadDown {
    /// How long the workload has no Ready pod; `None` if for good or unknown.
    pub fn lasts(&self) -> Option<Span> {
        self.until.map(|until| until.since(self.from))
    }

    /// Whether the workload has no Ready pod for a second or more.
    pub fn is_seen(&self) -> bool {
        self.lasts().is_none_or(|lasts| lasts.as_secs() > 0)
    }
}

impl fmt::Display for WorkloadDown {
    /// Writes the pod, and how long its workload is down: `shop/db-0 32s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lasts() {
            Some(lasts) => write!(f, "{} {}", self.pod, Span::from_secs(lasts.as_secs())),
            None if self.is_for_good => write!(f, "{} for good", self.pod),
            None => write!(f, "{} for an unknown time", self.pod),
        }
    }
}

impl fmt::Display for LeftOutReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drain(why) | Self::Guard(why) => f.write_str(why),
            Self::NoRoom { pods } => {
                write!(f, "{} would have nowhere to run", counted(*pods, "pod", "pods"))
            }
            Self::Headroom { after, before } => {
                let (what, after, before) = match after.node > before.node {
                    true => ("node", after.node, before.node),
                    false => ("zone", after.zone, before.zone),
                };
                write!(
                    f,
                    "losing a {what} would then strand {after} pods, now {before}; --allow-worse-loss lifts this"
                )
            }
            Self::NoWindow { takes } => write!(f, "no window has room for a wave of {takes}"),
            Self::MaxDuration { takes } => write!(f, "--max-duration leaves no room for a wave of {takes}"),
        }
    }
}

/// Progress of the computation of a [`MaintenancePlan`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanningProgress {
    /// Number of nodes that are in a wave so far.
    pub planned: usize,
    /// Number of nodes of the maintenance.
    pub nodes: usize,
    /// Percentage of the losses of nodes and zones that are simulated so far: those before the start, or those after the
    /// next wave; `None` while nodes are added to a wave.
    pub losses: Option<usize>,
}

impl fmt::Display for PlanningProgress {
    /// Formats the progress: `12 of 40 nodes in waves`, `12 of 40 nodes in waves, N-1 42% worked out`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} in waves", self.planned, counted(self.nodes, "node", "nodes"))?;
        match self.losses {
            Some(percent) => write!(f, ", N-1 {percent}% worked out"),
            None => Ok(()),
        }
    }
}

impl MaintenanceOptions {
    /// The assumptions of the waves, as text.
    pub fn assumptions(&self) -> Vec<String> {
        let headroom = match self.keeps_headroom {
            true => "the loss of any node or zone is no worse between waves than now",
            false => {
                "whether the loss of a node or zone is worse between waves is not worked out: too many nodes, or \
                 --allow-worse-loss"
            }
        };
        vec![
            format!("the work on a node takes {}, until it is back", self.work),
            "nothing else changes pods, budgets, scales or nodes meanwhile".into(),
            "replacements land as predicted, and are Ready as fast as their siblings were".into(),
            headroom.into(),
        ]
    }
}

impl MaintenancePlan {
    /// Computes the waves.
    ///
    /// Nodes that do not exist are ignored. `rules` are the rules of the drains.
    pub fn new(
        cluster: &Cluster,
        options: &MaintenanceOptions,
        rules: EvictionRules,
        now: Timestamp,
    ) -> Self {
        Self::with_progress(cluster, options, rules, now, &|_| ())
    }

    /// Computes the waves like [`Self::new`], and calls `tell` repeatedly with the progress.
    pub fn with_progress(
        cluster: &Cluster,
        options: &MaintenanceOptions,
        rules: EvictionRules,
        now: Timestamp,
        tell: &dyn Fn(PlanningProgress),
    ) -> Self {
        schedule::plan(cluster, options, rules, now, tell)
    }

    /// Returns the cost of the maintenance.
    pub fn cost(&self) -> MaintenanceCost {
        MaintenanceCost::new(&self.waves)
    }

    /// What `--surge` does for each workload whose budget can never allow an eviction: by the waves that evict its pods,
    /// and then the refusals on the nodes that are in no wave.
    pub fn surges(&self) -> impl Iterator<Item = &SurgePlan> {
        self.waves.iter().flat_map(|wave| &wave.surges).chain(&self.refused_surges)
    }

    /// Says that control plane nodes are maintained, and how many of them at a time; `None` if there are none.
    pub fn control_plane_warning(&self) -> Option<String> {
        let of_wave = |wave: &MaintenanceWave| {
            wave.nodes.iter().filter(|node| self.control_planes.contains(*node)).count()
        };
        let most = self.waves.iter().map(of_wave).max().unwrap_or_default();
        let first = self.control_planes.first()?;
        let nodes = self.control_planes.len();
        Some(match (nodes, most) {
            (1, _) => format!("{first} is a control plane node"),
            (_, 1) => format!(
                "{nodes} nodes are control plane nodes: a wave has only one of them, so that the others serve the API and \
                 etcd keeps its majority; --control-planes-together lifts this"
            ),
            _ => format!(
                "{nodes} nodes are control plane nodes, and up to {most} of them are down at the same time: the API may not \
                 answer, and etcd may lose its majority"
            ),
        })
    }

    /// When the last wave ends; `None` if there is no wave.
    pub fn ends(&self) -> Option<Timestamp> {
        self.waves.last().map(|wave| wave.ends)
    }
}

impl MaintenanceCost {
    fn new(waves: &[MaintenanceWave]) -> Self {
        let (Some(first), Some(last)) = (waves.first(), waves.last()) else { return Self::default() };
        let moves = || waves.iter().flat_map(|wave| &wave.moves);
        Self {
            nodes: waves.iter().map(|wave| wave.nodes.len()).sum(),
            takes: last.ends.since(first.starts),
            moves: moves().count(),
            moved_again: moves().filter(|pod| pod.is_again).count(),
            data_lost: waves.iter().map(|wave| wave.data_lost).sum(),
        }
    }
}

/// Says that this number of pods lose data; `None` if none does.
pub fn data_loss(pods: usize) -> Option<String> {
    let pods = (pods > 0).then(|| counted(pods, "pod loses", "pods lose"))?;
    Some(format!("{pods} data in volumes that are deleted with their pods"))
}

/// Returns whether everything on which the waves depend is known.
pub fn knows_enough(cluster: &Cluster) -> bool {
    can_place(cluster) && unknown(cluster).is_empty()
}

/// Returns the kinds of objects on which the waves depend and that are unknown.
pub fn unknown(cluster: &Cluster) -> Gaps {
    cluster.gaps(FeedKind::REMOVAL.into_iter().chain(FeedKind::REPLACEMENTS)).unknown()
}

/// Counts the nodes of a list by zone.
fn by_zone<'a>(
    cluster: &Cluster,
    nodes: impl IntoIterator<Item = &'a NodeName>,
) -> BTreeMap<crate::cluster::ZoneKey, usize> {
    let mut zones = BTreeMap::new();
    for node in nodes.into_iter().filter_map(|name| cluster.node(name)) {
        *zones.entry(node.zone()).or_default() += 1;
    }
    zones
}
