//! N-1: what happens to pods if any one node, or any one zone, is lost.
//!
//! Each loss is simulated and counted like a what-if, by [`failover()`](super::failover()). [`HeadroomWork`] simulates
//! one loss after the other, and can be interrupted.

mod fit_bound;
mod work;

pub use work::HeadroomWork;

use super::{
    outcome_kind::{OutcomeCounts, OutcomeKind},
    words::counted,
};
use crate::{
    cluster::{Cluster, NodeName, ZoneKey},
    placement::{ClusterSnapshot, Snapshot},
};
use kordon_time::{Span, Timestamp};

/// The effects of the loss of each single node, and of each single zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headroom {
    /// Losses of single Ready nodes.
    pub nodes: HeadroomLosses<NodeName>,
    /// Losses of single zones with Ready nodes; empty if only one zone has Ready nodes.
    pub zones: HeadroomLosses<ZoneKey>,
}

/// Summary of the losses of single nodes, or of single zones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadroomLosses<T> {
    /// Number of nodes, or of zones, whose losses the summary covers, whether the losses have been computed or not.
    pub tried: usize,
    /// Number of losses of a node or zone that strand pods, that is, leave them with nowhere to run.
    pub short: usize,
    /// Number of losses of a node or zone that leave pods Pending.
    pub pending: usize,
    /// Maximum number of pods that the loss of a single node or zone leaves Pending.
    pub most_pending: usize,
    /// The loss that strands most pods; `None` if no loss is known to strand pods.
    pub worst: Option<HeadroomLoss<T>>,
    /// Number of losses of a node or zone that may strand pods, or strand more pods than counted, because some outcomes
    /// are not known.
    pub uncertain: usize,
    /// The loss with most pods of unknown outcome, among the losses that are not known to strand pods. `None` if no
    /// such loss has pods of unknown outcome.
    pub least_known: Option<HeadroomLoss<T>>,
    /// Number of losses of a node or zone that have not been computed yet.
    pub undecided: usize,
    /// Number of losses of a node or zone that are too large to be computed in advance. The operator can ask for a
    /// what-if of each.
    pub on_request: usize,
    /// Time of the oldest cluster state for which a loss was computed; `None` if all losses were computed for the
    /// newest state.
    pub outdated_since: Option<Timestamp>,
    /// Progress: number of pods in the losses that have been computed, and in all losses.
    progress: Progress,
}

/// Progress of the computation of the losses of all nodes and zones, counted in pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Progress {
    done: usize,
    all: usize,
}

/// The loss of one node or zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadroomLoss<T> {
    pub of: T,
    /// Number of pods with each outcome. Counts only pods that have nowhere to run.
    pub outcomes: OutcomeCounts,
    /// Number of pods of unknown outcome: it is not known whether their owner recreates them, or whether a node takes
    /// the replacement.
    pub unknown: usize,
    /// Number of pods on the lost nodes. Leaves out pods that come back to the same node, pods that have finished, and
    /// pods whose controllers have enough other pods.
    pub pods: usize,
}

/// The effect of the loss of one node or zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LossAnswer {
    outcomes: OutcomeCounts,
    unknown: usize,
    pods: usize,
}

/// The headroom in one clause for the screen, and whether it covers nodes and zones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadroomClause {
    pub text: String,
    /// The text without the outcomes in brackets, for lines with little space.
    pub short: String,
    /// Age of the oldest cluster state that the text depends on; `None` if the cluster has not changed since that
    /// state.
    pub age: Option<Span>,
    /// Whether a loss leaves pods Pending, so that the cluster needs more room. Stuck and lost pods do not need room.
    pub is_short: bool,
    /// Whether the loss of each Ready node has been computed recently.
    pub knows_nodes: bool,
    /// Whether the loss of each zone has been computed recently.
    pub knows_zones: bool,
}

/// Maximum age of a computed loss that is still shown.
pub const LONGEST_AGE: Span = Span::from_secs(20 * 60);

impl<T> Default for HeadroomLosses<T> {
    fn default() -> Self {
        Self {
            tried: 0,
            short: 0,
            pending: 0,
            most_pending: 0,
            worst: None,
            uncertain: 0,
            least_known: None,
            undecided: 0,
            on_request: 0,
            outdated_since: None,
            progress: Progress::default(),
        }
    }
}

impl<T> HeadroomLosses<T> {
    fn record(&mut self, of: T, answer: LossAnswer) {
        let LossAnswer { outcomes, unknown, pods } = answer;
        self.uncertain += usize::from(unknown > 0);
        if outcomes.nowhere() == 0 {
            let most = self.least_known.as_ref().map_or(0, |least_known| least_known.unknown);
            if unknown > most {
                self.least_known = Some(HeadroomLoss { of, outcomes, unknown, pods });
            }
            return;
        }
        let pending = outcomes.of(OutcomeKind::Pending);
        self.short += 1;
        self.pending += usize::from(pending > 0);
        self.most_pending = self.most_pending.max(pending);
        if self.worst.as_ref().is_none_or(|worst| outcomes.nowhere() > worst.outcomes.nowhere()) {
            self.worst = Some(HeadroomLoss { of, outcomes, unknown, pods });
        }
    }

    /// Returns the number of pods that the worst loss strands.
    pub fn most_stranded(&self) -> usize {
        self.worst.as_ref().map_or(0, |worst| worst.outcomes.nowhere())
    }

    /// Returns whether the losses of all nodes, or of all zones, have been computed, except the losses that are
    /// computed only on request.
    pub const fn is_complete(&self) -> bool {
        self.undecided == 0
    }

    /// Returns whether the losses of all nodes, or of all zones, have been computed and certainly none of them strands
    /// a pod.
    pub const fn is_enough(&self) -> bool {
        self.undecided == 0 && self.on_request == 0 && self.short == 0 && self.uncertain == 0
    }

    /// Returns the loss to show: the one that strands most pods or, if none is known to strand any, the one with most
    /// pods of unknown outcome.
    fn named(&self) -> Option<&HeadroomLoss<T>> {
        self.worst.as_ref().or(self.least_known.as_ref())
    }

    /// Returns the age of the oldest cluster state for which a loss was computed. `None` if all losses were computed
    /// for the newest state and the cluster has not changed since that state. `newest` is the age of the newest state;
    /// `None` if the cluster has not changed since that state.
    fn age(&self, newest: Option<Span>, now: Timestamp) -> Option<Span> {
        self.outdated_since.map(|at| now.since(at).or_zero()).max(newest)
    }
}

impl Headroom {
    /// Returns whether the losses of all nodes and zones have been computed and certainly none of them strands a pod.
    pub const fn is_enough(&self) -> bool {
        self.nodes.is_enough() && self.zones.is_enough()
    }

    /// Returns whether the losses of all nodes and zones have been computed, except the losses that are computed only
    /// on request.
    pub const fn is_complete(&self) -> bool {
        self.nodes.is_complete() && self.zones.is_complete()
    }

    /// Returns whether the losses of all nodes and zones have been computed, including those that may be computed only
    /// on request.
    pub const fn is_answered(&self) -> bool {
        self.is_complete() && self.nodes.on_request == 0 && self.zones.on_request == 0
    }

    /// Returns the progress of the computation in percent, rounded down.
    pub fn progress(&self) -> usize {
        let [nodes, zones] = [self.nodes.progress, self.zones.progress];
        let all = nodes.all + zones.all;
        ((nodes.done + zones.done) * 100).checked_div(all).unwrap_or(0)
    }

    /// Returns whether the outcomes of all pods in the computed losses of nodes and zones are known.
    pub const fn is_certain(&self) -> bool {
        self.nodes.uncertain == 0 && self.zones.uncertain == 0
    }

    /// Returns the headroom in one clause, for example:
    ///
    /// - `N-1: losing x would strand 2 pods (2 stuck), losing zone b would strand 10 pods (10 Pending)`
    /// - `N-1 ok: nodes, zones`
    /// - `N-1 ok: nodes; losing zone b would strand 1 pod (1 Pending)`
    /// - `N-1: losing x may strand 1 pod (not known)`
    /// - `N-1: zones on request (x)`
    ///
    /// `None` if there is no loss to compute, or if no loss has been computed recently. `newest` is the age of the
    /// newest cluster state for which losses were computed; `None` if the cluster has not changed since that state.
    pub fn clause(
        &self,
        newest: Option<Span>,
        now: Timestamp,
        zone_name: impl Fn(&ZoneKey) -> String,
    ) -> Option<HeadroomClause> {
        let [of_nodes, of_zones] = [self.nodes.age(newest, now), self.zones.age(newest, now)];
        let is_known = |tried: usize, is_complete: bool, age: Option<Span>| {
            tried > 0 && is_complete && age.is_none_or(|age| age <= LONGEST_AGE)
        };
        let knows_nodes = is_known(self.nodes.tried, self.nodes.is_complete(), of_nodes);
        let knows_zones = is_known(self.zones.tried, self.zones.is_complete(), of_zones);
        let worst_node = self.nodes.named().filter(|_| knows_nodes);
        let worst_zone = self.zones.named().filter(|_| knows_zones);
        let mut ok = Vec::new();
        ok.extend((knows_nodes && self.nodes.is_enough()).then_some("nodes"));
        ok.extend((knows_zones && self.zones.is_enough()).then_some("zones"));
        let text = |with_parts: bool| {
            let mut others = Vec::new();
            others.extend(worst_node.map(|worst| worst.text(&worst.of, with_parts)));
            others.extend(
                worst_zone.map(|worst| worst.text(&format!("zone {}", zone_name(&worst.of)), with_parts)),
            );
            others.extend(
                (knows_zones && self.zones.on_request > 0).then(|| "zones on request (x)".to_owned()),
            );
            Some(match (ok.is_empty(), others.is_empty()) {
                (true, true) => return None,
                (true, false) => format!("N-1: {}", others.join(", ")),
                (false, true) => format!("N-1 ok: {}", ok.join(", ")),
                (false, false) => format!("N-1 ok: {}; {}", ok.join(", "), others.join(", ")),
            })
        };
        let ages = [of_nodes.filter(|_| knows_nodes), of_zones.filter(|_| knows_zones)];
        Some(HeadroomClause {
            text: text(true)?,
            short: text(false)?,
            age: ages.into_iter().flatten().max(),
            is_short: knows_nodes && self.nodes.pending > 0 || knows_zones && self.zones.pending > 0,
            knows_nodes,
            knows_zones: knows_zones && self.zones.on_request == 0,
        })
    }
}

impl<T> HeadroomLoss<T> {
    /// Describes the loss: `losing x would strand 3 pods (2 stuck, 1 Pending)`. If some outcomes are unknown, appends
    /// ` and maybe 4 more`. If no pod is known to be stranded: `losing x may strand 1 pod (not known)`. Without parts,
    /// the outcomes in brackets are left out.
    fn text(&self, of: &str, with_parts: bool) -> String {
        let nowhere = &self.outcomes;
        if nowhere.total() == 0 {
            return format!("losing {of} may strand {} (not known)", counted(self.unknown, "pod", "pods"));
        }
        let pods = counted(nowhere.total(), "pod", "pods");
        let parts = if with_parts { format!(" ({})", nowhere.text()) } else { String::new() };
        let stranded = format!("losing {of} would strand {pods}{parts}");
        match self.unknown {
            0 => stranded,
            unknown => format!("{stranded} and maybe {unknown} more"),
        }
    }
}

/// Computes the headroom at once: the losses of all Ready nodes, then of all zones. The snapshot must be of this
/// cluster.
///
/// Calls `continues` repeatedly with the progress in percent. If it returns false, stops and returns `None`.
pub fn headroom(
    cluster: &Cluster,
    snapshot: &Snapshot,
    mut continues: impl FnMut(usize) -> bool,
) -> Option<Headroom> {
    let mut work = HeadroomWork::default();
    let state = ClusterSnapshot { cluster: cluster.clone(), snapshot: snapshot.clone() };
    work.start_with(state, Timestamp::EPOCH);
    while continues(work.headroom().progress()) {
        let mut steps = STEPS;
        work.advance(&mut || {
            steps -= 1;
            steps > 0
        });
        if steps > 0 {
            return Some(work.headroom()).filter(Headroom::is_complete);
        }
    }
    None
}

/// Number of steps of a [`HeadroomWork`] between two calls of `continues`.
const STEPS: usize = 1_000;
