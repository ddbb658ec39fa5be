//! What happens to one pod in a plan, and when.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    environment::Quality, eviction::EvictionAnswer, landing::Landing, owner::NotRecreated,
    placement_trace::PlacementTrace, verdict::Verdict, warning,
};
use crate::{
    cluster::{Key, Name, NodeName, OwnerKind, Pod, Uid},
    time::Timestamp,
};

/// What happens to a pod.
#[derive(Clone, Debug, PartialEq)]
pub struct PodPlan {
    pub pod: Key,
    pub uid: Uid,
    pub node: Option<NodeName>,
    /// Its controller, as its owner reference names it.
    pub owner: Option<(OwnerKind, Name)>,
    pub verdict: Verdict,
    /// Why it does not come back anywhere; none where it does, or stays.
    pub lost: Option<NotRecreated>,
    pub warnings: BTreeSet<warning::PodWarning>,
    /// What the eviction subresource would answer at this moment.
    pub answer: Option<EvictionAnswer>,
    pub leaves: Window,
    pub gone: Window,
    /// When the time allowed for it is over before it is gone.
    pub times_out: Option<Timestamp>,
    pub landing: Option<Landing>,
    /// What was weighed there; none where nobody works placements out.
    pub placement: Option<Arc<PlacementTrace>>,
    /// When its replacement is Ready, likely.
    pub ready_again: Option<Timestamp>,
    /// What the times are worth.
    pub quality: Quality,
}

/// When something happens; none is never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    pub soonest: Option<Timestamp>,
    pub likely: Option<Timestamp>,
    pub latest: Option<Timestamp>,
}

impl PodPlan {
    /// What would help its replacement, where that stays Pending.
    pub fn help(&self) -> Vec<String> {
        let pending = matches!(self.landing, Some(Landing::Nowhere { .. }));
        let help = self.placement.as_ref().filter(|_| pending).and_then(|judgement| judgement.help.as_ref());
        help.map(|help| help.words()).unwrap_or_default()
    }

    /// What to mind about it.
    pub fn minds(&self) -> Vec<String> {
        let mut minds: Vec<String> = self.warnings.iter().map(ToString::to_string).collect();
        if self.lost.is_some() {
            minds.insert(0, "lost for good".into());
        }
        if self.times_out.is_some() {
            minds.insert(0, "times out".into());
        }
        if let Some(Landing::Nowhere { why }) = &self.landing {
            minds.push(format!("its replacement stays Pending ({why})"));
        }
        minds
    }
}

/// The row of a pod of which only the verdict is known.
pub(super) fn bare(pod: &Arc<Pod>, verdict: Verdict) -> PodPlan {
    PodPlan {
        pod: pod.key.clone(),
        uid: pod.uid.clone(),
        node: pod.node.clone(),
        owner: pod.owner.as_ref().map(|owner| (owner.kind.clone(), owner.name.clone())),
        verdict,
        lost: None,
        warnings: BTreeSet::new(),
        answer: None::<EvictionAnswer>,
        leaves: Window::default(),
        gone: Window::default(),
        times_out: None,
        landing: None,
        placement: None,
        ready_again: None,
        quality: Quality::Certain,
    }
}

/// Whether a pod neither goes nor may be left on its node.
pub(super) fn is_stuck(pod: &PodPlan) -> bool {
    match pod.verdict.as_if_granted() {
        Verdict::Waits { .. }
        | Verdict::WaitsForController { .. }
        | Verdict::WaitsForNamespace
        | Verdict::Blocked { .. }
        | Verdict::TwoBudgets { .. }
        | Verdict::Unknown { .. } => true,
        Verdict::Skipped(_)
        | Verdict::Refused { .. }
        | Verdict::Leaving
        | Verdict::Leaves(_)
        | Verdict::LeavesAfter { .. }
        | Verdict::Deleted { .. }
        | Verdict::Tolerates
        | Verdict::Spared => pod.times_out.is_some(),
    }
}
