//! How far a drain is: one count for everything that shows it.

use std::fmt;

use crate::cluster::{Cluster, DrainClaim, NodeName, Pod, Scope};

/// How many of the pods that a drain removes are in each of its parts. Pods that stay are not counted.
///
/// A drain that runs here counts by what it knows of each pod ([`OperationProgress::count`]); of one that runs elsewhere the
/// claim on its node tells the total ([`DrainCount::of_claim`]). Both count a pod by the state in which the cluster shows it.
///
/// [`OperationProgress::count`]: super::OperationProgress::count
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DrainCount {
    pub gone: usize,
    pub terminating: usize,
    pub blocked: usize,
    pub waiting: usize,
    pub finished: usize,
}

/// Where a pod is that a drain removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrainPart {
    /// Deleted.
    Gone,
    Terminating,
    /// Its eviction was refused, or it cannot be removed. Only the drain itself knows that; for others it waits.
    Blocked,
    /// Not evicted yet.
    Waiting,
    /// It finished before it was evicted: nothing runs in it, and the object is left to be deleted.
    Finished,
}

impl DrainPart {
    /// Where a pod is that exists, as far as its object tells.
    pub fn of(pod: &Pod) -> Self {
        if pod.termination.is_some() {
            Self::Terminating
        } else if pod.is_finished() {
            Self::Finished
        } else {
            Self::Waiting
        }
    }

    pub const fn word(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Terminating => "terminating",
            Self::Blocked => "blocked",
            Self::Waiting => "waiting",
            Self::Finished => "finished before",
        }
    }
}

impl DrainCount {
    /// The count of a drain by its claim and the pods on the node; none if either is not known.
    pub fn of_claim(claim: &DrainClaim, node: &NodeName, cluster: &Cluster) -> Option<Self> {
        let total = claim.pods?;
        if !cluster.knows(&Scope::PodsOn(node.clone())) {
            return None;
        }
        let mut count: Self = cluster.workload_pods(node).map(|pod| DrainPart::of(pod)).collect();
        count.waiting = count.waiting.saturating_sub(claim.stay.unwrap_or(0));
        count.gone = total.saturating_sub(count.left());
        Some(count)
    }

    pub const fn total(&self) -> usize {
        self.gone + self.left()
    }

    /// How many are not gone.
    pub const fn left(&self) -> usize {
        self.terminating + self.blocked + self.waiting + self.finished
    }

    /// The parts that any pod is in, apart from those that are gone; what keeps the drain from its end first.
    pub fn parts_left(&self) -> impl Iterator<Item = (DrainPart, usize)> {
        let parts = [
            (DrainPart::Blocked, self.blocked),
            (DrainPart::Terminating, self.terminating),
            (DrainPart::Waiting, self.waiting),
            (DrainPart::Finished, self.finished),
        ];
        parts.into_iter().filter(|(_, pods)| *pods > 0)
    }

    /// As in `5 of 7 pods gone (1 terminating, 1 waiting)`.
    pub fn text(&self) -> String {
        let parts: Vec<String> =
            self.parts_left().map(|(part, pods)| format!("{pods} {}", part.word())).collect();
        let left = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
        let plural = if self.total() == 1 { "" } else { "s" };
        format!("{} of {} pod{plural} gone{left}", self.gone, self.total())
    }
}

impl FromIterator<DrainPart> for DrainCount {
    fn from_iter<I: IntoIterator<Item = DrainPart>>(parts: I) -> Self {
        let mut count = Self::default();
        for part in parts {
            match part {
                DrainPart::Gone => count.gone += 1,
                DrainPart::Terminating => count.terminating += 1,
                DrainPart::Blocked => count.blocked += 1,
                DrainPart::Waiting => count.waiting += 1,
                DrainPart::Finished => count.finished += 1,
            }
        }
        count
    }
}

impl fmt::Display for DrainCount {
    /// As in `5/7`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.gone, self.total())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_adds_up_and_names_the_parts_that_any_pod_is_in() {
        use DrainPart::{Blocked, Finished, Gone, Terminating, Waiting};
        let count: DrainCount =
            [Gone, Waiting, Gone, Blocked, Terminating, Finished, Gone].into_iter().collect();
        assert_eq!((count.total(), count.left(), count.to_string()), (7, 4, "3/7".into()));
        let text = "3 of 7 pods gone (1 blocked, 1 terminating, 1 waiting, 1 finished before)";
        assert_eq!(count.text(), text);
        assert_eq!(DrainCount { gone: 1, ..DrainCount::default() }.text(), "1 of 1 pod gone");
    }
}
