//! What becomes of one pod in a plan.

use std::fmt;

use super::{
    budget::BudgetNumbers,
    eviction::FreeEviction,
    filter::{DrainRefusal, Skip},
};
use crate::{
    cluster::{Key, Name},
    time::Timestamp,
};

/// What becomes of one pod in a plan.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It stays, and does not keep the plan from its end.
    Skipped(Skip),
    /// A filter objects: no pod of its node would go. What would become of it with the flags is told beside.
    Refused { refusals: Vec<DrainRefusal>, granted: Box<Verdict> },
    /// It is terminating already, and is waited for.
    Leaving,
    /// It goes at the first try.
    Leaves(LeaveReason),
    /// Its budget is used up by pods before it in this plan, and refills.
    LeavesAfter { budget: Key, recoveries: u32, behind: Vec<Key> },
    /// Its budget may be disrupted again when pods recover that the plan does not touch.
    Waits { budget: Key, numbers: BudgetNumbers, recoveries: i32, unhealthy: Vec<Key> },
    /// The disruption controller has not seen its budget's latest spec.
    WaitsForController { budget: Key },
    /// Its namespace is being deleted, and evictions are refused there; the namespace takes it along.
    WaitsForNamespace,
    /// Nothing in this plan ever frees it.
    Blocked { budget: Key, numbers: BudgetNumbers, pattern: BlockPattern },
    /// More than one budget protects it: eviction answers with an error.
    TwoBudgets { budgets: Vec<Key> },
    /// Something that decides over it cannot be read or is not known; to be taken for blocked.
    Unknown { missing: String },
    /// A NoExecute taint deletes it at this time, whatever budgets say.
    Deleted { at: Timestamp, taint: Name },
    /// It tolerates the taints for ever.
    Tolerates,
    /// The taint that would have deleted it goes: it stays.
    Spared,
}

/// Why a pod goes at the first try.
#[derive(Clone, Debug, PartialEq)]
pub enum LeaveReason {
    Free(FreeEviction),
    /// It is one of those that its budget allows.
    Within {
        budget: Key,
        numbers: BudgetNumbers,
    },
    /// It is deleted, not evicted: budgets are not asked.
    Deleted,
}

/// Why a budget never allows it in this plan.
#[derive(Clone, Debug, PartialEq)]
pub enum BlockPattern {
    /// It wants at least as many healthy pods as there can be.
    NoRoom { most: i32 },
    /// Neither minAvailable nor maxUnavailable is given.
    NothingGiven,
    /// The disruption controller cannot work it out.
    SyncFailed { message: Name },
    /// It expects no pods: those it means have no controller, or are scaled to nothing.
    ExpectsNone,
    /// Replacements stay Pending.
    NoPlace { of: Vec<Key>, why: Name },
    /// Pods went that nobody brings back.
    LostForGood { pods: Vec<Key> },
    /// Replacements wait for pods that never end.
    StuckTerminating { pods: Vec<Key> },
    /// Replacements never become Ready.
    NeverReady { of: Vec<Key> },
    /// The server refuses evictions under it altogether.
    Broken { what: &'static str },
}

impl BlockPattern {
    /// What to do about it.
    pub const fn advice(&self) -> &'static str {
        match self {
            Self::NoRoom { .. } => "scale its workload up by one meanwhile, or relax the budget",
            Self::NothingGiven => "give the budget minAvailable or maxUnavailable",
            Self::SyncFailed { .. } => "for owners without a scale, use minAvailable with a number",
            Self::ExpectsNone => "for pods without a controller, use minAvailable with a number",
            Self::NoPlace { .. } => "make room: capacity, taints, affinity, zonal volumes, host ports",
            Self::LostForGood { .. } => "bring the pods back by hand, or relax the budget",
            Self::StuckTerminating { .. } => "see what holds them: finalizers, or a kubelet that is silent",
            Self::NeverReady { .. } => "see why the replacements do not become Ready",
            Self::Broken { .. } => "wait for the disruption controller, or restart it",
        }
    }
}

impl Verdict {
    /// What it is without a refusal in front of it.
    pub fn as_if_granted(&self) -> &Self {
        match self {
            Self::Refused { granted, .. } => granted.as_if_granted(),
            other => other,
        }
    }

    /// A word for it, the same for ever.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Skipped(_) => "skipped",
            Self::Refused { .. } => "refused",
            Self::Leaving => "leaving",
            Self::Leaves(_) => "leaves",
            Self::LeavesAfter { .. } => "leavesAfter",
            Self::Waits { .. } => "waits",
            Self::WaitsForController { .. } => "waitsForController",
            Self::WaitsForNamespace => "waitsForNamespace",
            Self::Blocked { .. } => "blocked",
            Self::TwoBudgets { .. } => "twoBudgets",
            Self::Unknown { .. } => "unknown",
            Self::Deleted { .. } => "deleted",
            Self::Tolerates => "tolerates",
            Self::Spared => "spared",
        }
    }

    /// The budget it speaks of.
    pub fn budget(&self) -> Option<&Key> {
        match self.as_if_granted() {
            Self::LeavesAfter { budget, .. }
            | Self::Waits { budget, .. }
            | Self::WaitsForController { budget }
            | Self::Blocked { budget, .. }
            | Self::Leaves(LeaveReason::Within { budget, .. }) => Some(budget),
            Self::Skipped(_)
            | Self::Refused { .. }
            | Self::Leaving
            | Self::Leaves(LeaveReason::Free(_) | LeaveReason::Deleted)
            | Self::WaitsForNamespace
            | Self::TwoBudgets { .. }
            | Self::Unknown { .. }
            | Self::Deleted { .. }
            | Self::Tolerates
            | Self::Spared => None,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Skipped(skip) => write!(f, "stays: {skip}"),
            Self::Refused { refusals, granted } => {
                f.write_str("refused: ")?;
                list(f, refusals)?;
                write!(f, "; else: {granted}")
            }
            Self::Leaving => f.write_str("terminating already"),
            Self::Leaves(passage) => write!(f, "leaves: {passage}"),
            Self::LeavesAfter { budget, recoveries, behind } => {
                write!(
                    f,
                    "leaves after {recoveries} {} of {budget}",
                    plural(*recoveries, "recovery", "recoveries")
                )?;
                if !behind.is_empty() {
                    f.write_str(", behind ")?;
                    list(f, behind)?;
                }
                Ok(())
            }
            Self::Waits { budget, numbers, recoveries, unhealthy } => {
                write!(f, "waits for {budget} ({numbers}): {recoveries} more must be healthy")?;
                if unhealthy.is_empty() {
                    f.write_str(", which are missing")
                } else {
                    f.write_str(", as of ")?;
                    list(f, unhealthy)
                }
            }
            Self::WaitsForController { budget } => {
                write!(f, "waits until the disruption controller has seen {budget}")
            }
            Self::WaitsForNamespace => f.write_str("its namespace is being deleted and takes it along"),
            Self::Blocked { budget, numbers, pattern } => {
                write!(f, "blocked by {budget} ({numbers}): {pattern}; {}", pattern.advice())
            }
            Self::TwoBudgets { budgets } => {
                f.write_str("eviction fails, more than one budget: ")?;
                list(f, budgets)
            }
            Self::Unknown { missing } => write!(f, "unknown: {missing}"),
            Self::Deleted { taint, .. } => write!(f, "deleted for {taint}; budgets are ignored"),
            Self::Tolerates => f.write_str("stays: tolerates it for ever"),
            Self::Spared => f.write_str("stays: its deletion is cancelled"),
        }
    }
}

impl fmt::Display for LeaveReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Free(free) => write!(f, "{free}"),
            Self::Within { budget, numbers } => write!(f, "{budget} allows {}", numbers.allowed),
            Self::Deleted => f.write_str("budgets are not asked"),
        }
    }
}

impl fmt::Display for FreeEviction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoBudget => "no budget",
            Self::Pending => "pending",
            Self::Finished => "finished",
            Self::Terminating => "terminating",
            Self::UnhealthyAllowed => "not ready, which its budget always lets go",
            Self::HealthyBudget => "not ready, and its budget is healthy without it",
        })
    }
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mirror => "a static pod",
            Self::DaemonSet => "its DaemonSet would bring it back",
            Self::NotSelected => "not selected",
            Self::LongTerminating => "terminating for too long",
        })
    }
}

impl fmt::Display for DrainRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DaemonSet => "of a DaemonSet (--ignore-daemonsets)",
            Self::DaemonSetGone => "its DaemonSet is gone (--force)",
            Self::DaemonSetUnreadable => "its DaemonSet cannot be read",
            Self::EmptyDir => "emptyDir data (--delete-emptydir-data)",
            Self::Unmanaged => "no controller (--force)",
        })
    }
}

impl fmt::Display for BudgetNumbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "needs {}, has {} of {}", self.desired, self.healthy, self.expected)
    }
}

impl fmt::Display for BlockPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRoom { most } => write!(f, "never, there are {most} at most"),
            Self::NothingGiven => f.write_str("never, it names neither minAvailable nor maxUnavailable"),
            Self::SyncFailed { message } => write!(f, "never, it cannot be worked out: {message}"),
            Self::ExpectsNone => f.write_str("never, it expects no pods"),
            Self::NoPlace { of, why } => {
                f.write_str("no place for the replacement of ")?;
                list(f, of)?;
                write!(f, " ({why})")
            }
            Self::LostForGood { pods } => {
                f.write_str("nobody brings back ")?;
                list(f, pods)
            }
            Self::StuckTerminating { pods } => {
                f.write_str("never ends: ")?;
                list(f, pods)
            }
            Self::NeverReady { of } => {
                f.write_str("never Ready: the replacement of ")?;
                list(f, of)
            }
            Self::Broken { what } => f.write_str(what),
        }
    }
}

/// Names in a list, the first few of many.
fn list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, all: &[T]) -> fmt::Result {
    const SHOWN: usize = 4;
    for (place, one) in all.iter().take(SHOWN).enumerate() {
        if place > 0 {
            f.write_str(", ")?;
        }
        write!(f, "{one}")?;
    }
    if all.len() > SHOWN { write!(f, " and {} more", all.len() - SHOWN) } else { Ok(()) }
}

const fn plural<'a>(count: u32, one: &'a str, many: &'a str) -> &'a str {
    if count == 1 { one } else { many }
}

impl Verdict {
    /// One word for it that reads well in a column.
    pub const fn told(&self) -> &'static str {
        match self {
            Self::Skipped(_) | Self::Tolerates | Self::Spared => "stays",
            Self::Refused { .. } => "refused",
            Self::Leaving => "leaving",
            Self::Leaves(_) => "leaves",
            Self::LeavesAfter { .. } => "later",
            Self::Waits { .. } | Self::WaitsForController { .. } | Self::WaitsForNamespace => "waits",
            Self::Blocked { .. } => "blocked",
            Self::TwoBudgets { .. } => "fails",
            Self::Unknown { .. } => "unknown",
            Self::Deleted { .. } => "deleted",
        }
    }

    /// What there is to say beside that word.
    pub fn because(&self) -> String {
        let text = self.to_string();
        let rest = text.strip_prefix(self.told()).map(|rest| rest.trim_start_matches([':', ' ']));
        rest.unwrap_or(&text).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_of_a_verdict_is_not_said_twice() {
        let budget = Key::new("shop", "cart");
        let numbers = BudgetNumbers::default();
        let blocked =
            Verdict::Blocked { budget: budget.clone(), numbers, pattern: BlockPattern::NothingGiven };
        assert!(blocked.because().starts_with("by shop/cart ("));
        assert_eq!(Verdict::Skipped(Skip::Mirror).because(), "a static pod");
        assert_eq!(Verdict::Spared.because(), "its deletion is cancelled");
        let later = Verdict::LeavesAfter { budget, recoveries: 1, behind: Vec::new() };
        assert_eq!((later.told(), &*later.because()), ("later", "leaves after 1 recovery of shop/cart"));
    }
}
