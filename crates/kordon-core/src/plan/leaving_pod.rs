//! Pods that leave their nodes, and the order in which their replacements are placed.

use std::{cmp::Reverse, sync::Arc};

use super::{outcome::Departing, owner::Recreation, successor};
use crate::cluster::{Cluster, Key, Pod, Uid};
use kordon_time::Timestamp;

/// A pod that leaves its node.
#[derive(Clone, Debug)]
pub struct LeavingPod {
    pub pod: Arc<Pod>,
    pub departing: Departing,
    /// Time at which the pod's replacement is created; `None` if the time is not known or not needed.
    pub created: Option<Timestamp>,
}

/// Sort key of replacements. In a cluster, those with equal keys are placed in random order.
type AtOnce = (Timestamp, Reverse<i32>, Waits);

/// What a replacement waits for before the scheduler sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Waits {
    Nothing,
    /// Resource claims are created for a pod after the pod. The scheduler does not try the pod before that (upstream
    /// `dynamicresources.go`, `PreEnqueue`).
    Claims,
    /// The controller creates the replacement when the old pod is gone.
    OldPod,
}

/// A leaving pod with the sort key of its replacement.
struct Turn {
    at_once: AtOnce,
    leaving: LeavingPod,
}

impl Turn {
    fn owner(&self) -> Option<&Uid> {
        self.leaving.pod.owner.as_ref().map(|owner| &owner.uid)
    }

    fn pod(&self) -> &Key {
        &self.leaving.pod.key
    }
}

/// Sorts leaving pods into the order in which their replacements are placed: by time of creation (unknown times come
/// last), by descending priority, then those that wait for nothing.
///
/// Controllers work side by side, so the order of replacements that are created at the same time is random. On average,
/// those of one controller are spread evenly among the others, and so they are here.
pub(super) fn sort_for_placement(leaving: Vec<LeavingPod>, cluster: &Cluster) -> Vec<LeavingPod> {
    let turn = |leaving: LeavingPod| Turn { at_once: at_once(&leaving, cluster), leaving };
    let mut turns: Vec<Turn> = leaving.into_iter().map(turn).collect();
    turns.sort_by(|one, other| {
        (one.at_once, one.owner(), one.pod()).cmp(&(other.at_once, other.owner(), other.pod()))
    });
    let groups = turns.chunk_by(|one, other| (one.at_once, one.owner()) == (other.at_once, other.owner()));
    let shares: Vec<usize> = groups.flat_map(|group| even_shares(group.len())).collect();
    let mut placed: Vec<(usize, Turn)> = shares.into_iter().zip(turns).collect();
    placed.sort_by(|(share, one), (other_share, other)| {
        (one.at_once, share, one.pod()).cmp(&(other.at_once, other_share, other.pod()))
    });
    placed.into_iter().map(|(_, turn)| turn.leaving).collect()
}

fn at_once(leaving: &LeavingPod, cluster: &Cluster) -> AtOnce {
    let waits = match leaving.departing.recreation {
        Recreation::WhenGone => Waits::OldPod,
        _ if leaving.pod.gets_claims_from_templates() => Waits::Claims,
        _ => Waits::Nothing,
    };
    let created = leaving.created.unwrap_or(Timestamp::MAX);
    (created, successor::by_priority(cluster, &leaving.pod), waits)
}

/// Returns the positions of equally spaced turns, in millionths of the whole.
fn even_shares(count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |place| (2 * place + 1) * 500_000 / count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_turns_of_a_controller_are_evenly_spaced() {
        let shares = |count| even_shares(count).collect::<Vec<_>>();
        assert_eq!(shares(1), [500_000]);
        assert_eq!(shares(2), [250_000, 750_000]);
        assert_eq!(shares(3), [166_666, 500_000, 833_333]);
    }
}
