//! The death of a node: when the controller marks it Unknown, taints it, and deletes its pods.

use super::{
    ClusterSize, TimingProfile,
    synthetic::{LastHeartbeat, PassDuration, SyntheticCluster},
};
use crate::forecast::ForecastKind;
use kordon_time::Span;

/// Phase of a simulated death: the times of the monitor passes, relative to the last heartbeat and to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeathPhase {
    /// Time from the last heartbeat until a pass notices it: above zero, at most one monitor period.
    pub noticed_after: Span,
    pub passes: PassDuration,
}

/// Times from the last heartbeat of a node until each event; `None` if the event does not happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Milestones {
    pub unknown: Option<Span>,
    /// Time until the node gets its NoExecute taint; `None` in legacy mode, which sets no such taint.
    pub tainted: Option<Span>,
    /// Time until the first pod of the node is deleted.
    pub deleted: Option<Span>,
}

/// Shortest, median and longest time over all simulated phases of heartbeats and monitor passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimingRange {
    pub best: Span,
    pub typical: Span,
    pub worst: Span,
}

/// Times from a node's death until each event; `None` if the event is missing in the simulation of at least one
/// [phase](DeathPhase).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeathTimes {
    pub unknown: Option<TimingRange>,
    pub tainted: Option<TimingRange>,
    pub deleted: Option<TimingRange>,
    /// Time until the replacement of a pod runs on another node. Pods of a StatefulSet are not replaced while their
    /// node is down.
    pub replaced: Option<TimingRange>,
}

/// Number of steps into which a monitor period and a heartbeat interval are divided to get the phases.
const PARTS: i64 = 8;

/// Smallest time from the last heartbeat to the pass that notices it.
pub(super) const AT_ONCE: Span = Span::from_millis(1);

/// Maximum number of simulated nodes. More nodes would not change the result, because the other nodes keep sending
/// heartbeats.
const ENOUGH_NODES: usize = 12;

/// Simulates the death of one node, in a cluster of this size, with the engine.
pub fn milestones(profile: &TimingProfile, size: ClusterSize, phase: DeathPhase) -> Milestones {
    of_node(&SyntheticCluster::new(profile, one_pod_each(size)), profile, phase)
}

fn of_node(synthetic: &SyntheticCluster, profile: &TimingProfile, phase: DeathPhase) -> Milestones {
    let at = synthetic.warm_from();
    let Some(node) = synthetic.nodes.first().cloned() else { return Milestones::default() };
    let last = LastHeartbeat { node, at };
    let mut outage = synthetic.outage(std::slice::from_ref(&last), at + phase.noticed_after, phase.passes);
    outage.run_until(at + longest(profile));
    let first = |is_wanted: fn(&ForecastKind) -> bool| {
        let of_node = outage.steps.iter().filter(|step| *step.kind.node() == last.node);
        of_node.clone().find(|step| is_wanted(&step.kind)).map(|step| step.at.since(at))
    };
    Milestones {
        unknown: first(|kind| matches!(kind, ForecastKind::Unknown { .. })),
        tainted: first(|kind| matches!(kind, ForecastKind::NoExecute { .. })),
        deleted: first(|kind| matches!(kind, ForecastKind::Deleted { .. })),
    }
}

/// Time after which nothing more happens to a dead node.
pub(super) fn longest(profile: &TimingProfile) -> Span {
    let settings = &profile.settings;
    let stays = profile.toleration.max(settings.pod_eviction_timeout.value);
    settings.node_monitor_grace_period.value
        + stays
        + settings.node_monitor_period.value * 4
        + Span::from_secs(1)
}

/// A cluster that is large enough to simulate one node: at most 12 nodes with one pod each.
pub(super) fn one_pod_each(size: ClusterSize) -> ClusterSize {
    ClusterSize { nodes: size.nodes.min(ENOUGH_NODES), pods_per_node: 1, ..size }
}

/// The times from zero to `whole` in [`PARTS`] equal steps.
fn steps(whole: Span) -> impl Iterator<Item = Span> {
    (0..=PARTS).map(move |part| Span::from_nanos(whole.as_nanos() / PARTS * part))
}

impl DeathTimes {
    /// Simulates the death of one node once for each [phase](DeathPhase). The node may die at any time between its last
    /// heartbeat and the next one. The controller acts the same for all these times, because it sees only the
    /// heartbeats.
    pub fn new(profile: &TimingProfile, size: ClusterSize) -> Self {
        let synthetic = SyntheticCluster::new(profile, one_pod_each(size));
        let at_phases = |passes| -> Vec<Milestones> {
            let noticed = steps(profile.settings.node_monitor_period.value).map(|after| after.max(AT_ONCE));
            noticed
                .map(|noticed_after| of_node(&synthetic, profile, DeathPhase { noticed_after, passes }))
                .collect()
        };
        let [exact, usual] = PassDuration::ALL.map(at_phases);
        let interval = profile.kubelet.interval();
        let range = |time: fn(&Milestones) -> Option<Span>| TimingRange::new(&exact, &usual, interval, time);
        let deleted = range(|times| times.deleted);
        Self {
            unknown: range(|times| times.unknown),
            tainted: range(|times| times.tainted),
            deleted,
            replaced: deleted.map(|deleted| deleted.later_by(profile.pod_startup)),
        }
    }
}

impl TimingRange {
    /// The range of the time from a node's death until an event; `None` if the event is missing in one of the
    /// simulations. The best and the worst time are the extremes over all simulations. The typical time is the median
    /// over the simulations with [`PassDuration::AfterPeriod`].
    fn new(
        exact: &[Milestones],
        usual: &[Milestones],
        interval: Span,
        time: fn(&Milestones) -> Option<Span>,
    ) -> Option<Self> {
        let all: Vec<Span> = exact.iter().chain(usual).map(time).collect::<Option<_>>()?;
        let after_death = |after: Span| steps(interval).map(move |dies_after| (after - dies_after).or_zero());
        let mut usual: Vec<Span> = usual.iter().filter_map(time).flat_map(after_death).collect();
        usual.sort_unstable();
        Some(Self {
            best: (*all.iter().min()? - interval).or_zero(),
            typical: *usual.get(usual.len() / 2)?,
            worst: *all.iter().max()?,
        })
    }

    fn later_by(self, span: Span) -> Self {
        Self { best: self.best + span, typical: self.typical + span, worst: self.worst + span }
    }
}
