//! Headroom: whether the cluster can lose any one node, or any one zone, without a pod staying Pending.
//!
//! Most losses are answered by a proof ([`crate::placement::FitProofs`]), the others by [`failover()`](super::failover()),
//! so that both say the same.

mod work;

use std::fmt::{self, Display};

pub use work::HeadroomWork;

use super::words::counted;
use crate::{
    cluster::{Cluster, NodeName, ZoneKey},
    placement::{ClusterSnapshot, Snapshot},
    time::Timestamp,
};

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
    /// How many of them leave pods Pending.
    pub short: usize,
    /// The one that leaves most pods Pending; none if all fit, or while none is counted.
    pub worst: Option<HeadroomLoss<T>>,
    /// Of how many it is not known yet whether they leave pods Pending.
    pub undecided: usize,
    /// The first of those that leave pods Pending of which it is not known yet how many.
    pub uncounted: Option<T>,
}

/// The loss of one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadroomLoss<T> {
    pub of: T,
    /// Pods that stay Pending: pods of what is lost, and pods that these preempt.
    pub pending: usize,
    /// Pods that are recreated elsewhere.
    pub pods: usize,
}

/// What is known of a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LossAnswer {
    Counted {
        pending: usize,
        pods: usize,
    },
    /// Some pods stay Pending.
    Short,
}

impl<T> Default for HeadroomLosses<T> {
    fn default() -> Self {
        Self { tried: 0, short: 0, worst: None, undecided: 0, uncounted: None }
    }
}

impl<T> HeadroomLosses<T> {
    fn record(&mut self, of: T, answer: Option<LossAnswer>) {
        self.tried += 1;
        match answer {
            None => self.undecided += 1,
            Some(LossAnswer::Counted { pending: 0, .. }) => {}
            Some(LossAnswer::Counted { pending, pods }) => {
                self.short += 1;
                if self.worst.as_ref().is_none_or(|worst| pending > worst.pending) {
                    self.worst = Some(HeadroomLoss { of, pending, pods });
                }
            }
            Some(LossAnswer::Short) => {
                self.short += 1;
                self.uncounted.get_or_insert(of);
            }
        }
    }

    /// Whether all of them are decided and counted.
    fn is_complete(&self) -> bool {
        self.undecided == 0 && self.uncounted.is_none()
    }

    /// Whether it is known that none leaves a pod Pending.
    fn is_enough(&self) -> bool {
        self.undecided == 0 && self.short == 0
    }
}

impl<T: Display> HeadroomLosses<T> {
    /// `x`, `zone b`, `any of 3 zones`, `x (worst of 2 in 9 nodes)`, and how many pods stay Pending, where that is known;
    /// none if all fit.
    fn worst_case(&self, prefix: &str, plural: &str) -> Option<(String, Option<usize>)> {
        let (of, pending, rank) = match (&self.uncounted, &self.worst) {
            (Some(of), _) => (of, None, "one"),
            (None, Some(worst)) => (&worst.of, Some(worst.pending), "worst"),
            (None, None) => return None,
        };
        let subject = match self.short {
            0 | 1 => format!("{prefix}{of}"),
            short if short == self.tried => format!("any of {short} {plural}"),
            short => format!("{prefix}{of} ({rank} of {short} in {} {plural})", self.tried),
        };
        Some((subject, pending))
    }
}

impl Headroom {
    /// Whether it is known that no loss leaves a pod Pending.
    pub fn is_enough(&self) -> bool {
        self.nodes.is_enough() && self.zones.is_enough()
    }

    /// Whether nothing is known of any loss yet.
    pub fn is_undecided(&self) -> bool {
        self.nodes.undecided == self.nodes.tried && self.zones.undecided == self.zones.tried
    }

    /// Whether nothing is left to be worked out.
    pub fn is_complete(&self) -> bool {
        self.nodes.is_complete() && self.zones.is_complete()
    }
}

/// `N-1 ok: nodes, zones`, `N-1 ok: nodes; losing zone b leaves 1 pod Pending`,
/// `N-1: losing x leaves 4 pods Pending; any of 3 zones: 10`; while not all is known
/// `N-1 ok: nodes; losing zone b leaves pods Pending, working out how many`, `N-1 ok: nodes; zones: working out`. Empty if
/// there is nothing to lose.
impl Display for Headroom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = [
            ("nodes", self.nodes.tried, self.nodes.undecided, self.nodes.is_enough()),
            ("zones", self.zones.tried, self.zones.undecided, self.zones.is_enough()),
        ];
        if kinds.iter().all(|(_, tried, ..)| *tried == 0) {
            return Ok(());
        }
        let ok = kinds.iter().filter(|(_, tried, _, is_enough)| *tried > 0 && *is_enough);
        let ok: Vec<&str> = ok.map(|(kind, ..)| *kind).collect();
        let worst = self.nodes.worst_case("", "nodes").into_iter();
        let worst = worst.chain(self.zones.worst_case("zone ", "zones")).enumerate();
        let phrase = |(place, (subject, pending))| match (place, pending) {
            (0, Some(pending)) => {
                format!("losing {subject} leaves {} Pending", counted(pending, "pod", "pods"))
            }
            (0, None) => format!("losing {subject} leaves pods Pending, working out how many"),
            (_, Some(pending)) => format!("{subject}: {pending}"),
            (_, None) => format!("{subject}: working out how many"),
        };
        let mut phrases: Vec<String> = worst.map(phrase).collect();
        let undecided = kinds.iter().filter(|(_, _, undecided, _)| *undecided > 0);
        let undecided: Vec<&str> = undecided.map(|(kind, ..)| *kind).collect();
        if !undecided.is_empty() {
            phrases.push(format!("{}: working out", undecided.join(", ")));
        }
        match (ok.is_empty(), phrases.is_empty()) {
            (true, _) => write!(f, "N-1: {}", phrases.join("; ")),
            (false, true) => write!(f, "N-1 ok: {}", ok.join(", ")),
            (false, false) => write!(f, "N-1 ok: {}; {}", ok.join(", "), phrases.join("; ")),
        }
    }
}

/// Loses each Ready node and each zone in turn: how many pods stay Pending once all pods of what is lost are deleted. The
/// snapshot is of this cluster. None if `continues`, which is asked again and again, returns false.
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
