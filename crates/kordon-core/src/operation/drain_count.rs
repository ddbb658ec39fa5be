//! Progress of a drain, counted in the same way for all views.

use std::{fmt, sync::Arc};

use crate::{
    cluster::{Cluster, DrainClaim, Node, NodeName, Pod, PodTreatment, Scope},
    plan::{BlockedDrain, words::counted},
};

/// Numbers of a drain's pods by state: gone, terminating, and so on. Pods that stay on the node are not counted.
///
/// For a drain of this process, the operation knows the state of each pod ([`OperationProgress::count`]). For a drain
/// of another process, the claim on the node has the total, and the pods on the node and their budgets show the states
/// ([`DrainCount::from_claim`]). For a drain by another client, only the pods that are left are known, and those that
/// were seen leaving ([`DrainCount::of_foreign`]).
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

/// The state in which a drain counts a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrainPart {
    /// Deleted.
    Gone,
    Terminating,
    /// The eviction of the pod was refused, or the pod cannot be removed. The process that drains knows this at once.
    /// Other processes learn it from a [`BlockedDrain`]; without one, they count the pod as waiting.
    Blocked,
    /// Not evicted yet.
    Waiting,
    /// The pod finished before it was evicted. Nothing runs in it, and only its object has to be deleted.
    Finished,
}

impl DrainPart {
    /// How a drain counts an existing pod, judged by the Pod object alone.
    pub fn from_pod(pod: &Pod) -> Self {
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
    /// The count of a drain, computed from its claim and from the pods on the node; `None` if one of the two is
    /// unknown. `blocked` has the pods whose eviction is refused; `None` if the drain is not blocked.
    pub fn from_claim(
        claim: &DrainClaim,
        node: &NodeName,
        cluster: &Cluster,
        blocked: Option<&BlockedDrain>,
    ) -> Option<Self> {
        let total = claim.pods?;
        if !cluster.knows(&Scope::PodsOn(node.clone())) {
            return None;
        }
        let mut count: Self = cluster.workload_pods(node).map(|pod| part(pod, blocked)).collect();
        let stay = claim.stay.unwrap_or(0);
        let stay_waiting = stay.min(count.waiting);
        count.waiting -= stay_waiting;
        count.blocked = count.blocked.saturating_sub(stay - stay_waiting);
        count.gone = total.saturating_sub(count.left());
        Some(count)
    }

    /// The count of a drain by another client: the pods on the node that its drain removes or waits for, and `gone`, the
    /// number of pods that were seen leaving. `None` if the pods of the node are unknown.
    pub fn of_foreign(
        node: &Node,
        cluster: &Cluster,
        gone: usize,
        blocked: Option<&BlockedDrain>,
    ) -> Option<Self> {
        if !cluster.knows(&Scope::PodsOn(node.name.clone())) {
            return None;
        }
        let counts = |pod: &&Arc<Pod>| PodTreatment::find(node, pod) != PodTreatment::Ignored;
        let pods = cluster.workload_pods(&node.name).filter(counts);
        Some(Self { gone, ..pods.map(|pod| part(pod, blocked)).collect() })
    }

    pub const fn total(&self) -> usize {
        self.gone + self.left()
    }

    /// The number of pods that are not gone.
    pub const fn left(&self) -> usize {
        self.terminating + self.blocked + self.waiting + self.finished
    }

    /// The states in which pods are left, all but `Gone`, each with the number of pods. States that delay the drain
    /// most come first.
    pub fn parts_left(&self) -> impl Iterator<Item = (DrainPart, usize)> {
        let parts = [
            (DrainPart::Blocked, self.blocked),
            (DrainPart::Terminating, self.terminating),
            (DrainPart::Waiting, self.waiting),
            (DrainPart::Finished, self.finished),
        ];
        parts.into_iter().filter(|(_, pods)| *pods > 0)
    }

    /// The count in words, for example `5 of 7 pods gone (1 terminating, 1 waiting)`.
    pub fn text(&self) -> String {
        format!("{} of {} gone{}", self.gone, counted(self.total(), "pod", "pods"), self.parts_text())
    }

    /// The pods that are left in words, for example `2 pods left (1 terminating, 1 waiting)`.
    pub fn left_text(&self) -> String {
        format!("{} left{}", counted(self.left(), "pod", "pods"), self.parts_text())
    }

    /// The parts of the pods that are left, in parentheses; empty if no pod is left.
    fn parts_text(&self) -> String {
        let parts: Vec<String> =
            self.parts_left().map(|(part, pods)| format!("{pods} {}", part.word())).collect();
        if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
    }
}

/// How a drain of another process counts a pod. `blocked` has the pods that hold up the drain.
fn part(pod: &Pod, blocked: Option<&BlockedDrain>) -> DrainPart {
    let holds = |drain: &BlockedDrain| drain.pods.contains(&pod.key) || drain.awaited.contains(&pod.key);
    match DrainPart::from_pod(pod) {
        DrainPart::Waiting if blocked.is_some_and(holds) => DrainPart::Blocked,
        part => part,
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
    /// Writes the number of gone pods and the total, for example `5/7`.
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
        assert_eq!(count.left_text(), "4 pods left (1 blocked, 1 terminating, 1 waiting, 1 finished before)");
        assert_eq!(DrainCount { gone: 1, ..DrainCount::default() }.text(), "1 of 1 pod gone");
    }
}
