//! Kinds of outcomes of pods that leave their nodes, and numbers of pods by kind.

use std::{collections::BTreeMap, ops::Add};

use super::{landing::Landing, owner::NotRecreated, placement_trace::PreemptedPod, words::counted};

/// An outcome without its details, used for counts, colours and sorting. The worst kind comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OutcomeKind {
    Lost,
    FailsJob,
    Stuck,
    Refused,
    Pending,
    Blocked,
    Unknown,
    LeftOut,
    WaitsForOldPod,
    Replaced,
    NotRecreated,
    Finished,
    SameNode,
    Stays,
    Preempts,
    Moves,
}

impl OutcomeKind {
    /// All kinds of outcomes, the worst first.
    pub const ALL: [Self; 16] = [
        Self::Lost,
        Self::FailsJob,
        Self::Stuck,
        Self::Refused,
        Self::Pending,
        Self::Blocked,
        Self::Unknown,
        Self::LeftOut,
        Self::WaitsForOldPod,
        Self::Replaced,
        Self::NotRecreated,
        Self::Finished,
        Self::SameNode,
        Self::Stays,
        Self::Preempts,
        Self::Moves,
    ];

    /// Returns the kind of outcome of a pod that a replacement preempts.
    pub const fn for_preempted(pod: &PreemptedPod) -> Self {
        match (&pod.landing, pod.lost) {
            (Some(Landing::Node { .. }), _) => Self::Moves,
            (Some(Landing::Pending { .. }), _) => Self::Pending,
            (Some(Landing::Rejected { .. }), _) => Self::Stuck,
            (None, Some(NotRecreated::JobFails(_))) => Self::FailsJob,
            (None, Some(_)) => Self::Lost,
            (Some(Landing::Unknown), _) | (None, None) => Self::Unknown,
        }
    }

    /// Returns whether a pod with this outcome has nowhere to run: it should run somewhere, but nothing runs in its
    /// place.
    pub const fn has_nowhere_to_run(self) -> bool {
        match self {
            Self::Lost | Self::FailsJob | Self::Stuck | Self::Refused | Self::Pending => true,
            Self::Blocked
            | Self::Unknown
            | Self::LeftOut
            | Self::WaitsForOldPod
            | Self::Replaced
            | Self::NotRecreated
            | Self::Finished
            | Self::SameNode
            | Self::Stays
            | Self::Preempts
            | Self::Moves => false,
        }
    }

    /// Returns whether this outcome holds even if nothing deletes the pod. All other outcomes hold only once the pod
    /// is deleted.
    pub const fn holds_without_deletion(self) -> bool {
        match self {
            Self::Stuck
            | Self::Replaced
            | Self::NotRecreated
            | Self::Finished
            | Self::SameNode
            | Self::Stays => true,
            Self::Lost
            | Self::FailsJob
            | Self::Refused
            | Self::Pending
            | Self::Blocked
            | Self::Unknown
            | Self::LeftOut
            | Self::WaitsForOldPod
            | Self::Preempts
            | Self::Moves => false,
        }
    }

    /// Returns a stable name for the kind of outcome.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::FailsJob => "failsJob",
            Self::Stuck => "stuck",
            Self::Refused => "refused",
            Self::Pending => "pending",
            Self::Blocked => "blocked",
            Self::Unknown => "unknown",
            Self::LeftOut => "leftOut",
            Self::WaitsForOldPod => "replacedWhenGone",
            Self::Replaced => "replaced",
            Self::NotRecreated => "notReplaced",
            Self::Finished => "finished",
            Self::SameNode => "sameNode",
            Self::Stays => "stays",
            Self::Preempts => "preempts",
            Self::Moves => "moves",
        }
    }

    /// Returns the words that follow a number of pods, for one pod and for several: `moves`, `move`.
    pub const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Lost => ("lost", "lost"),
            Self::FailsJob => ("fails its Job", "fail their Jobs"),
            Self::Stuck => ("stuck", "stuck"),
            Self::Refused => ("refused by quota", "refused by quota"),
            Self::Pending => ("Pending", "Pending"),
            Self::Blocked => ("blocked", "blocked"),
            Self::Unknown => ("not known", "not known"),
            Self::LeftOut => ("not worked out", "not worked out"),
            Self::WaitsForOldPod => ("waits for the old pod", "wait for the old pod"),
            Self::Replaced => ("replaced", "replaced"),
            Self::NotRecreated => ("not recreated", "not recreated"),
            Self::Finished => ("finished", "finished"),
            Self::SameNode => ("comes back to its node", "come back to their nodes"),
            Self::Stays => ("stays", "stay"),
            Self::Preempts => ("preempts others", "preempt others"),
            Self::Moves => ("moves", "move"),
        }
    }
}

/// Number of pods with each outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct OutcomeCounts([usize; OutcomeKind::ALL.len()]);

impl OutcomeCounts {
    pub const fn count(&mut self, kind: OutcomeKind) {
        self.0[kind as usize] += 1;
    }

    /// Returns the number of pods with this outcome.
    pub const fn of(&self, kind: OutcomeKind) -> usize {
        self.0[kind as usize]
    }

    /// Returns the total number of pods, over all outcomes.
    pub fn total(&self) -> usize {
        self.0.iter().sum()
    }

    /// Returns the number of pods that have nowhere to run.
    pub fn nowhere(&self) -> usize {
        self.parts().filter(|(kind, _)| kind.has_nowhere_to_run()).map(|(_, pods)| pods).sum()
    }

    /// Returns the outcomes with at least one pod, the worst first. The numbers add up to the total.
    pub fn parts(&self) -> impl DoubleEndedIterator<Item = (OutcomeKind, usize)> + '_ {
        OutcomeKind::ALL.into_iter().map(|kind| (kind, self.of(kind))).filter(|(_, pods)| *pods > 0)
    }

    /// Returns the outcomes with at least one pod, by their stable names.
    pub fn by_word(&self) -> BTreeMap<&'static str, usize> {
        self.parts().map(|(kind, pods)| (kind.word(), pods)).collect()
    }

    /// Returns only the counts of outcomes that leave a pod with nowhere to run.
    #[must_use]
    pub fn only_nowhere(&self) -> Self {
        let nowhere = |kind: OutcomeKind| if kind.has_nowhere_to_run() { self.of(kind) } else { 0 };
        Self(OutcomeKind::ALL.map(nowhere))
    }

    /// Formats the counts: `2 stuck, 1 Pending, 6 move`.
    pub fn text(&self) -> String {
        joined(self.parts())
    }
}

fn joined(parts: impl Iterator<Item = (OutcomeKind, usize)>) -> String {
    let part = |(kind, pods): (OutcomeKind, usize)| {
        let (one, several) = kind.words();
        counted(pods, one, several)
    };
    parts.map(part).collect::<Vec<_>>().join(", ")
}

impl Add for OutcomeCounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(OutcomeKind::ALL.map(|kind| self.of(kind) + other.of(kind)))
    }
}

impl FromIterator<OutcomeKind> for OutcomeCounts {
    fn from_iter<T: IntoIterator<Item = OutcomeKind>>(kinds: T) -> Self {
        let mut counts = Self::default();
        kinds.into_iter().for_each(|kind| counts.count(kind));
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_kinds_is_that_of_their_places() {
        for (place, kind) in OutcomeKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place, "{kind:?}");
        }
    }

    #[test]
    fn parts_add_up_to_the_total_and_name_what_has_nowhere_to_run() {
        let kinds = [OutcomeKind::Moves, OutcomeKind::Stuck, OutcomeKind::Pending, OutcomeKind::Stuck];
        let counts: OutcomeCounts = kinds.into_iter().collect();
        assert_eq!((counts.total(), counts.nowhere()), (4, 3));
        assert_eq!(counts.parts().map(|(_, pods)| pods).sum::<usize>(), counts.total());
        assert_eq!(counts.text(), "2 stuck, 1 Pending, 1 moves");
        assert_eq!(counts.only_nowhere().text(), "2 stuck, 1 Pending");
    }
}
