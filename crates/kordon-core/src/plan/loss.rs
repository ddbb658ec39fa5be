//! Pods that a plan loses for good: those that it removes, and those that replacements preempt.

use std::fmt;

use super::{owner::NotRecreated, plan::Plan};
use crate::cluster::Key;

/// A pod that is lost: it leaves, and no controller recreates it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Loss {
    pub pod: Key,
    pub why: NotRecreated,
    /// The pod whose replacement preempts the lost pod; `None` if the plan itself removes the lost pod.
    pub preempted_for: Option<Key>,
}

impl Loss {
    /// Returns whether `--force` accepts the loss. As with kubectl, the flag accepts the removal of a pod without a
    /// controller. No flag accepts that a Job fails, or that pods on other nodes are lost.
    pub const fn is_accepted_by_force(&self) -> bool {
        matches!(self.why, NotRecreated::NoOwner) && self.preempted_for.is_none()
    }

    /// Returns why the pod is lost, as a clause about the pod.
    pub fn reason(&self) -> String {
        match &self.preempted_for {
            Some(pod) => format!("preempted by the replacement of {pod}; {}", self.why.says()),
            None => self.why.says(),
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}", self.pod, self.why.risk())?;
        match &self.preempted_for {
            Some(pod) => write!(f, ", preempted by the replacement of {pod})"),
            None => f.write_str(")"),
        }
    }
}

impl Plan {
    /// Returns the pods that the plan likely loses, in the order of its pods.
    pub fn losses(&self) -> Vec<Loss> {
        let rows = self.pods.iter().filter(|row| row.leaves.likely.is_some());
        let lost = rows.flat_map(|row| {
            let removed = row.lost.filter(|why| *why != NotRecreated::Finished);
            let removed = removed.map(|why| Loss { pod: row.pod.clone(), why, preempted_for: None });
            let preempted = row.preempted().filter_map(|preempted| {
                Some(Loss {
                    pod: preempted.pod.clone(),
                    why: preempted.lost?,
                    preempted_for: Some(preempted.preempted_for(&row.pod).clone()),
                })
            });
            removed.into_iter().chain(preempted)
        });
        lost.collect()
    }
}
