//! Reasons why the result of other settings is uncertain.

use std::collections::BTreeMap;

/// A reason why the cluster might have behaved differently with the other settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Uncertainty {
    /// A heartbeat, the return of a node, or a deletion by somebody else was close to a deadline, so the result depends
    /// on the phase of the controller's passes.
    NearDeadline,
    /// Only the engine marked a node Unknown, so kordon assumes the time at which the node's kubelet posts its status.
    PostAssumed,
    /// A recorded pod is left out, because it replaced a pod that stays in the model.
    ReplacementLeftOut,
    /// Only the engine evicted a pod, so it is unknown where its replacement would have run.
    ReplacementMissing,
    /// A node was deleted or cordoned while it was Unknown or tainted in only one of the two: the recording or the
    /// model.
    NodeRemoved,
    /// A node was not Ready before the recording began.
    DownAtStart,
    /// A pod was evicted and its node is still silent at the end, so it is not known whether the eviction was
    /// necessary.
    OpenAtEnd,
    /// The recording has a gap.
    Gap,
}

impl Uncertainty {
    pub const ALL: [Self; 8] = [
        Self::NearDeadline,
        Self::PostAssumed,
        Self::ReplacementLeftOut,
        Self::ReplacementMissing,
        Self::NodeRemoved,
        Self::DownAtStart,
        Self::OpenAtEnd,
        Self::Gap,
    ];

    /// Stable identifier of the reason.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NearDeadline => "nearDeadline",
            Self::PostAssumed => "postAssumed",
            Self::ReplacementLeftOut => "replacementLeftOut",
            Self::ReplacementMissing => "replacementMissing",
            Self::NodeRemoved => "nodeRemoved",
            Self::DownAtStart => "downAtStart",
            Self::OpenAtEnd => "openAtEnd",
            Self::Gap => "gap",
        }
    }

    /// The meaning of the reason, for people.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::NearDeadline => {
                "a node came back, or a pod was deleted, so close to a deadline that the phase of passes decides"
            }
            Self::PostAssumed => {
                "a node was Unknown here only: when its kubelet posts its status again is assumed"
            }
            Self::ReplacementLeftOut => "a pod replaced one that stays here: it is left out",
            Self::ReplacementMissing => "a pod is evicted here only: its replacement is not in the recording",
            Self::NodeRemoved => {
                "somebody deleted or cordoned a node whose state differs here: they might not have"
            }
            Self::DownAtStart => "a node was not Ready before the recording began",
            Self::OpenAtEnd => "a pod was evicted and its node is silent at the end: it may have come back",
            Self::Gap => "a part of the recording is missing",
        }
    }
}

/// How often each reason for uncertainty applies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uncertainties(BTreeMap<Uncertainty, usize>);

impl Uncertainties {
    pub fn add(&mut self, kind: Uncertainty, count: usize) {
        if count > 0 {
            *self.0.entry(kind).or_default() += count;
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (Uncertainty, usize)> {
        self.0.iter().map(|(kind, count)| (*kind, *count))
    }

    pub fn count(&self, kind: Uncertainty) -> usize {
        self.0.get(&kind).copied().unwrap_or(0)
    }

    pub fn total(&self) -> usize {
        self.0.values().sum()
    }
}
