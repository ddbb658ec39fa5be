//! N-1: what the loss of any one node, or of any one zone, does to its pods.
//!
//! Each loss is the what-if of [`failover()`](super::failover()), simulated, with the same counts. [`HeadroomWork`] does that
//! beside other work, one loss after the other.

mod fit_bound;
mod work;

pub use work::HeadroomWork;

use super::{
    outcome::{OutcomeCounts, OutcomeKind},
    words::counted,
};
use crate::{
    cluster::{Cluster, NodeName, ZoneKey},
    placement::{ClusterSnapshot, Snapshot},
};
use kordon_time::{Span, Timestamp};

/// What a cluster can lose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headroom {
    /// The losses of single Ready nodes.
    pub nodes: HeadroomLosses<NodeName>,
    /// The losses of single zones with Ready nodes; empty if there is only one zone.
    pub zones: HeadroomLosses<ZoneKey>,
}

/// The losses of several things, one at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadroomLosses<T> {
    /// How many there are.
    pub tried: usize,
    /// How many of them strand pods.
    pub short: usize,
    /// How many of them leave pods Pending.
    pub pending: usize,
    /// Most pods that one of them leaves Pending.
    pub most_pending: usize,
    /// The one that strands most pods; none if none does, or while none is known.
    pub worst: Option<HeadroomLoss<T>>,
    /// How many are not answered yet.
    pub undecided: usize,
    /// How many are so large that only the what-if answers them.
    pub on_request: usize,
    /// When the oldest state of the cluster was taken that an answer rests on; none if all rest on the newest state.
    pub outdated_since: Option<Timestamp>,
    /// The pods of the losses, and of those that are answered.
    progress: Progress,
}

/// How far some work has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Progress {
    done: usize,
    all: usize,
}

/// The loss of one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadroomLoss<T> {
    pub of: T,
    /// The pods that have nowhere to run.
    pub outcomes: OutcomeCounts,
    /// Out of how many that do not come back to the same node.
    pub pods: usize,
}

/// What one loss does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LossAnswer {
    outcomes: OutcomeCounts,
    pods: usize,
}

/// What is said of headroom: what is known of nodes and of zones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadroomClause {
    pub text: String,
    /// How old the oldest answer is that it rests on; none if nothing has changed since.
    pub age: Option<Span>,
    /// Whether some loss leaves pods Pending: the cluster lacks room for them. What is stuck or lost needs none.
    pub is_short: bool,
    /// Whether all nodes are answered, and not too long ago.
    pub knows_nodes: bool,
    /// The same for zones.
    pub knows_zones: bool,
}

/// An answer that is older is not shown.
pub const LONGEST_AGE: Span = Span::from_secs(20 * 60);

impl<T> Default for HeadroomLosses<T> {
    fn default() -> Self {
        Self {
            tried: 0,
            short: 0,
            pending: 0,
            most_pending: 0,
            worst: None,
            undecided: 0,
            on_request: 0,
            outdated_since: None,
            progress: Progress::default(),
        }
    }
}

impl<T> HeadroomLosses<T> {
    fn record(&mut self, of: T, answer: LossAnswer) {
        let LossAnswer { outcomes, pods } = answer;
        if outcomes.nowhere() == 0 {
            return;
        }
        let pending = outcomes.of(OutcomeKind::Pending);
        self.short += 1;
        self.pending += usize::from(pending > 0);
        self.most_pending = self.most_pending.max(pending);
        if self.worst.as_ref().is_none_or(|worst| outcomes.nowhere() > worst.outcomes.nowhere()) {
            self.worst = Some(HeadroomLoss { of, outcomes, pods });
        }
    }

    /// How many pods the worst of them strands.
    pub fn most_stranded(&self) -> usize {
        self.worst.as_ref().map_or(0, |worst| worst.outcomes.nowhere())
    }

    /// Whether all of them are answered, but for those that are answered on request.
    pub const fn is_complete(&self) -> bool {
        self.undecided == 0
    }

    /// Whether it is known that none strands a pod.
    pub const fn is_enough(&self) -> bool {
        self.undecided == 0 && self.on_request == 0 && self.short == 0
    }

    /// How old the oldest answer is, if `newest` is how old the newest state is; none if nothing has changed since.
    fn age(&self, newest: Option<Span>, now: Timestamp) -> Option<Span> {
        self.outdated_since.map(|at| now.since(at).or_zero()).max(newest)
    }
}

impl Headroom {
    /// Whether it is known that no loss strands a pod.
    pub const fn is_enough(&self) -> bool {
        self.nodes.is_enough() && self.zones.is_enough()
    }

    /// Whether nothing is left to be worked out.
    pub const fn is_complete(&self) -> bool {
        self.nodes.is_complete() && self.zones.is_complete()
    }

    /// Whether all losses are answered, none of them left to the what-if.
    pub const fn is_answered(&self) -> bool {
        self.is_complete() && self.nodes.on_request == 0 && self.zones.on_request == 0
    }

    /// How much is worked out, in percent; rounded down.
    pub fn progress(&self) -> usize {
        let [nodes, zones] = [self.nodes.progress, self.zones.progress];
        let all = nodes.all + zones.all;
        ((nodes.done + zones.done) * 100).checked_div(all).unwrap_or(0)
    }

    /// What is said of it: `N-1: losing x would strand 3 pods (2 stuck, 1 Pending), losing zone b would strand 10`, `N-1 ok: nodes, zones`,
    /// `N-1 ok: nodes; losing zone b would leave 1 pod Pending`, `N-1: zones on request (x)`. None if there is nothing to lose,
    /// or nothing is known that is not too old. `newest` is how old the newest state is that an answer rests on; none if nothing
    /// has changed since.
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
        let worst_node = self.nodes.worst.as_ref().filter(|_| knows_nodes);
        let worst_zone = self.zones.worst.as_ref().filter(|_| knows_zones);
        let mut ok = Vec::new();
        ok.extend((knows_nodes && self.nodes.is_enough()).then_some("nodes"));
        ok.extend((knows_zones && self.zones.is_enough()).then_some("zones"));
        let mut others = Vec::new();
        others.extend(worst_node.map(|worst| worst.text(&worst.of)));
        others.extend(worst_zone.map(|worst| {
            let zone = format!("zone {}", zone_name(&worst.of));
            match worst_node {
                Some(_) => format!("losing {zone} would strand {}", worst.outcomes.nowhere()),
                None => worst.text(&zone),
            }
        }));
        others.extend((knows_zones && self.zones.on_request > 0).then(|| "zones on request (x)".to_owned()));
        let text = match (ok.is_empty(), others.is_empty()) {
            (true, true) => return None,
            (true, false) => format!("N-1: {}", others.join(", ")),
            (false, true) => format!("N-1 ok: {}", ok.join(", ")),
            (false, false) => format!("N-1 ok: {}; {}", ok.join(", "), others.join(", ")),
        };
        let ages = [of_nodes.filter(|_| knows_nodes), of_zones.filter(|_| knows_zones)];
        Some(HeadroomClause {
            text,
            age: ages.into_iter().flatten().max(),
            is_short: knows_nodes && self.nodes.pending > 0 || knows_zones && self.zones.pending > 0,
            knows_nodes,
            knows_zones: knows_zones && self.zones.on_request == 0,
        })
    }
}

impl<T> HeadroomLoss<T> {
    /// `losing x would strand 3 pods (2 stuck, 1 Pending)`, `losing x would leave 2 pods stuck`
    fn text(&self, of: &str) -> String {
        let outcomes = &self.outcomes;
        let pods = counted(outcomes.total(), "pod", "pods");
        match outcomes.parts().map(|(kind, _)| kind).collect::<Vec<_>>()[..] {
            [kind] => format!("losing {of} would leave {pods} {}", kind.words().0),
            _ => format!("losing {of} would strand {pods} ({})", outcomes.text()),
        }
    }
}

/// Loses each Ready node and each zone in turn, in one go. The snapshot is of this cluster. None if `continues`, which is asked
/// again and again, returns false.
pub fn headroom(
    cluster: &Cluster,
    snapshot: &Snapshot,
    mut continues: impl FnMut() -> bool,
) -> Option<Headroom> {
    let mut work = HeadroomWork::default();
    let state = ClusterSnapshot { cluster: cluster.clone(), snapshot: snapshot.clone() };
    work.start_with(state, Timestamp::EPOCH);
    work.advance(&mut continues);
    Some(work.headroom()).filter(Headroom::is_complete)
}
