//! The death of one node: when the controller marks it Unknown, taints it, and deletes its pods.

use super::{
    ClusterSize, TimingProfile,
    synthetic::{LastHeartbeat, PassDuration, SyntheticCluster},
};
use crate::forecast::ForecastKind;
use kordon_time::Span;

/// Where the last heartbeat falls between two passes, and how the passes follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeathPhase {
    /// How long after the last heartbeat a pass notices it: above zero, and one monitor period at most.
    pub noticed_after: Span,
    pub passes: PassDuration,
}

/// What happens after the last heartbeat of a node, and how long after it. None: it does not happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Milestones {
    pub unknown: Option<Span>,
    /// It gets the NoExecute taint; never in legacy mode.
    pub tainted: Option<Span>,
    /// Its first pod is deleted.
    pub deleted: Option<Span>,
}

/// The shortest, the median and the longest of a time over all phases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimingRange {
    pub best: Span,
    pub typical: Span,
    pub worst: Span,
}

/// Times from a node's death. None: it does not happen, in some phase at least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeathTimes {
    pub unknown: Option<TimingRange>,
    pub tainted: Option<TimingRange>,
    pub deleted: Option<TimingRange>,
    /// A replacement runs on another node. Pods of a StatefulSet are not replaced while their node is down.
    pub replaced: Option<TimingRange>,
}

/// The parts into which a monitor period and a heartbeat interval are divided for phases.
const PARTS: i64 = 8;

/// A heartbeat that is noticed at once.
pub(super) const AT_ONCE: Span = Span::from_millis(1);

/// The death of one node is the same in any larger cluster, as long as others go on.
const ENOUGH_NODES: usize = 12;

/// Runs the engine over the death of one node of a cluster of this size.
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

/// By then everything has happened to a node that will.
pub(super) fn longest(profile: &TimingProfile) -> Span {
    let settings = &profile.settings;
    let stays = profile.toleration.max(settings.pod_eviction_timeout.value);
    settings.node_monitor_grace_period.value
        + stays
        + settings.node_monitor_period.value * 4
        + Span::from_secs(1)
}

/// A cluster that is enough for what happens to one node.
pub(super) fn one_pod_each(size: ClusterSize) -> ClusterSize {
    ClusterSize { nodes: size.nodes.min(ENOUGH_NODES), pods_per_node: 1, ..size }
}

/// `whole` in [`PARTS`] steps, from nothing to all of it.
fn steps(whole: Span) -> impl Iterator<Item = Span> {
    (0..=PARTS).map(move |part| Span::from_nanos(whole.as_nanos() / PARTS * part))
}

impl DeathTimes {
    /// Runs the engine over the death of one node at every phase. The node dies at any time before its next heartbeat would
    /// be due: what happens after the last heartbeat is the same then.
    pub fn of(profile: &TimingProfile, size: ClusterSize) -> Self {
        let synthetic = SyntheticCluster::new(profile, one_pod_each(size));
        let at_phases = |passes| -> Vec<Milestones> {
            let noticed = steps(profile.settings.node_monitor_period.value).map(|after| after.max(AT_ONCE));
            noticed
                .map(|noticed_after| of_node(&synthetic, profile, DeathPhase { noticed_after, passes }))
                .collect()
        };
        let [exact, usual] = PassDuration::ALL.map(at_phases);
        let interval = profile.kubelet.interval();
        let range = |time: fn(&Milestones) -> Option<Span>| TimingRange::of(&exact, &usual, interval, time);
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
    /// The range of a time from a node's death. Passes as they usually are decide what is typical.
    fn of(
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
