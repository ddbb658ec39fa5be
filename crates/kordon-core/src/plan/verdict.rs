//! The verdict on one pod in a plan.

use std::fmt;

use super::{
    budget::BudgetNumbers,
    eviction::FreeEviction,
    filter::{DrainRefusal, Skip},
    operator_budgets::{OperatorBudget, OperatorNeeds},
    words::counted,
};
use crate::cluster::{FeedKind, Gaps, Key, KnownSetting, Name};
use kordon_time::{Span, Timestamp};

/// What happens to one pod in a plan.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The pod stays. The plan can still complete.
    Skipped(Skip),
    /// A filter of kubectl drain refuses the pod, so kubectl removes no pod of its node. `granted` is the verdict that
    /// the pod would have with all missing flags.
    Refused { refusals: Vec<DrainRefusal>, granted: Box<Verdict> },
    /// The pod is already terminating. The plan waits for it.
    Terminating,
    /// The pod leaves at the first attempt.
    Leaves(LeaveReason),
    /// The pod waits for pods that leave earlier in this plan and use all allowed disruptions of its budget, or for
    /// its Kubernetes operator to act.
    LeavesAfter { budget: Key, recoveries: u32, behind: Vec<Key>, operator: Option<OperatorAct> },
    /// The pod waits until other pods, which the plan does not touch, are healthy again: pods that are not Ready,
    /// Pending pods, and terminating pods that are created again. The budget then allows the eviction.
    /// `frees_unhealthy`: as in [`Verdict::Blocked`].
    Waits {
        budget: Key,
        numbers: BudgetNumbers,
        recoveries: i32,
        unhealthy: Vec<Key>,
        pending: Vec<Key>,
        /// Why the `pending` pods have no node, if all of them have the same cause ([`crate::cluster::Pod::pending_cause`]).
        pending_cause: Option<Name>,
        terminating: Vec<Key>,
        frees_unhealthy: bool,
    },
    /// The pod waits until its Kubernetes operator lifts the budget or moves the pod itself. The operator first needs
    /// `pods` to be Ready on other nodes. `setting` is what is known of the setting that the operator needs; `None` if it
    /// needs none, or if the setting was not read.
    WaitsForOperator {
        budget: Key,
        numbers: BudgetNumbers,
        operator: &'static OperatorBudget,
        pods: Vec<Key>,
        setting: Option<KnownSetting>,
    },
    /// The pod waits until the disruption controller has processed the latest spec of its budget.
    WaitsForController { budget: Key },
    /// The pod's namespace is being deleted. The server refuses evictions there, and deletes the pod with the
    /// namespace.
    WaitsForNamespace,
    /// The pod stays on its node, because this finalizer keeps the Node object after its deletion.
    WaitsForFinalizer { finalizer: Name },
    /// The pod's budget never allows the eviction during this plan. `frees_unhealthy`: the budget would allow it with
    /// `unhealthyPodEvictionPolicy: AlwaysAllow`, because the pod is not Ready. False if a controller or operator owns
    /// the budget, because it would undo the change.
    Blocked { budget: Key, numbers: BudgetNumbers, pattern: BlockPattern, frees_unhealthy: bool },
    /// More than one budget protects the pod. The eviction subresource responds with an error.
    TwoBudgets { budgets: Vec<Key> },
    /// It is unknown whether the server allows the eviction, because kordon does not know a setting that decides this,
    /// such as a new policy. Counts as blocked.
    Unknown { missing: String },
    /// It is unknown whether the pod leaves, because kordon does not know all objects that decide this. The pod leaves
    /// unless one of these objects forbids it.
    Undecided { gaps: Gaps },
    /// A NoExecute taint deletes the pod at this time. Its budgets have no influence.
    Deleted { at: Timestamp, taint: Name },
    /// The pod garbage collector removes the pod, because its node is deleted. Its budgets have no influence.
    Orphaned,
    /// The pod tolerates the taints for an unlimited time.
    Tolerates,
    /// The plan removes the taint that would have deleted the pod.
    DeletionCancelled,
}

/// What a Kubernetes operator does so that a pod can leave although its budget protects it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperatorAct {
    /// The operator moves the role of the pod to another pod, so that the budget protects the other pod.
    MovesRole { operator: &'static str },
    /// The operator deletes the pod itself, whatever its budget is.
    Restarts { operator: &'static str },
}

/// The reason why a pod leaves at the first attempt.
#[derive(Clone, Debug, PartialEq)]
pub enum LeaveReason {
    Free(FreeEviction),
    /// The pod's budget allows a disruption.
    BudgetAllows {
        budget: Key,
        numbers: BudgetNumbers,
    },
    /// The pod is deleted without eviction, so budgets are not checked.
    Deleted,
}

/// The reason why a budget never allows an eviction during a plan.
#[derive(Clone, Debug, PartialEq)]
pub enum BlockPattern {
    /// The budget requires at least as many healthy pods as it can ever have, so no pod may leave.
    CannotBeMet { needs: i32, max_healthy: i32, scaling_helps: bool },
    /// The budget has neither minAvailable nor maxUnavailable.
    NothingGiven,
    /// The disruption controller cannot sync the budget.
    SyncFailed { message: Name },
    /// The budget expects no pods, because its pods have no controller or their controllers are scaled to zero.
    ExpectsNone,
    /// All pods that the budget selects exist and are healthy, and the budget requires all of them.
    AllHealthy { needs: i32 },
    /// The pod's operator has no other instance to which it could move the role of the pod.
    NoReplica { operator: &'static str },
    /// The pod's operator moves the role of the pod only if the node of the pod is cordoned.
    NotCordoned { operator: &'static str },
    /// The pod's operator could have moved the role of the pod during the last `since`, but has not moved it.
    NotMoved { operator: &'static str, since: Span },
    /// The pod's operator does nothing without this setting or component, which is missing.
    OperatorLacks { operator: &'static str, needs: &'static str },
    /// The replacements of pods that have left stay Pending.
    ReplacementPending { of: Vec<Key>, why: Name },
    /// No controller recreates pods that have left.
    NotRecreated { pods: Vec<Key> },
    /// Replacements are not created, because the pods that they replace stay Terminating.
    StuckTerminating { pods: Vec<Key> },
    /// The replacements of pods that have left never become Ready.
    NeverReady { of: Vec<Key> },
    /// The unhealthy pods of the budget are not expected to become healthy. `why` is the reason.
    Unhealthy { pods: Vec<Key>, why: Name },
    /// The server refuses the eviction of all pods of the budget.
    Broken { what: &'static str },
}

impl BlockPattern {
    /// Returns what the operator can do about the blocked eviction.
    pub const fn advice(&self) -> &'static str {
        match self {
            Self::CannotBeMet { scaling_helps: false, .. } => "relax the budget",
            Self::CannotBeMet { .. } => "scale its workload up, or relax the budget",
            Self::NothingGiven => "set minAvailable or maxUnavailable",
            Self::SyncFailed { .. } => "for owners without a scale, use minAvailable with a number",
            Self::ExpectsNone => "for pods without a controller, use minAvailable with a number",
            Self::AllHealthy { .. } => "add a pod that it selects, or relax the budget",
            Self::NoReplica { .. } => "add an instance",
            Self::NotCordoned { .. } => "cordon its node, as a drain does",
            Self::NotMoved { .. } => "check the operator",
            Self::OperatorLacks { .. } => "add what the operator needs",
            Self::ReplacementPending { .. } => {
                "check capacity, taints, affinity, zonal volumes and host ports"
            }
            Self::NotRecreated { .. } => "recreate the pods, or relax the budget",
            Self::StuckTerminating { .. } => "check finalizers and the kubelet",
            Self::NeverReady { .. } => "check why the replacements are not Ready",
            Self::Unhealthy { .. } => "repair the pods",
            Self::Broken { .. } => "wait for the disruption controller, or restart it",
        }
    }
}

/// The change of a budget that lets pods go that are not Ready.
const ALWAYS_ALLOW: &str = "set unhealthyPodEvictionPolicy: AlwaysAllow";

impl Verdict {
    /// Returns the verdict that the pod would have if all missing flags were given.
    pub fn as_if_granted(&self) -> &Self {
        match self {
            Self::Refused { granted, .. } => granted.as_if_granted(),
            other => other,
        }
    }

    /// Returns the change that would make a blocking budget allow the eviction; `None` if no budget blocks it for
    /// good.
    pub fn advice(&self) -> Option<String> {
        let Self::Blocked { pattern, frees_unhealthy, .. } = self.as_if_granted() else { return None };
        Some(match (pattern, frees_unhealthy) {
            (BlockPattern::CannotBeMet { .. }, true) => format!("{ALWAYS_ALLOW}, or relax the budget"),
            (_, true) => format!("{}, or {ALWAYS_ALLOW}", pattern.advice()),
            (_, false) => pattern.advice().to_owned(),
        })
    }

    /// Returns whether the pod should leave in the plan but waits or is blocked. [`Self::Unknown`] counts as blocked.
    pub(super) const fn is_blocked(&self) -> bool {
        matches!(
            self,
            Self::Blocked { .. }
                | Self::TwoBudgets { .. }
                | Self::Unknown { .. }
                | Self::Waits { .. }
                | Self::WaitsForOperator { .. }
                | Self::WaitsForController { .. }
                | Self::WaitsForNamespace
                | Self::WaitsForFinalizer { .. }
        )
    }

    /// Returns whether the plan removes the pod or tries to remove it.
    pub(super) const fn is_attempted(&self) -> bool {
        !matches!(self, Self::Skipped(_) | Self::Tolerates | Self::DeletionCancelled)
    }

    /// Returns whether the pod leaves because of the plan. Undecided pods count as leaving.
    pub const fn may_leave(&self) -> bool {
        matches!(
            self,
            Self::Leaves(_)
                | Self::LeavesAfter { .. }
                | Self::Undecided { .. }
                | Self::Deleted { .. }
                | Self::Orphaned
        )
    }

    /// Returns a stable name for the verdict.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Skipped(_) => "skipped",
            Self::Refused { .. } => "refused",
            Self::Terminating => "terminating",
            Self::Leaves(_) => "leaves",
            Self::LeavesAfter { .. } => "leavesAfter",
            Self::Waits { .. } => "waits",
            Self::WaitsForOperator { .. } => "waitsForOperator",
            Self::WaitsForController { .. } => "waitsForController",
            Self::WaitsForNamespace => "waitsForNamespace",
            Self::WaitsForFinalizer { .. } => "waitsForFinalizer",
            Self::Blocked { .. } => "blocked",
            Self::TwoBudgets { .. } => "twoBudgets",
            Self::Unknown { .. } => "unknown",
            Self::Undecided { .. } => "undecided",
            Self::Deleted { .. } => "deleted",
            Self::Orphaned => "orphaned",
            Self::Tolerates => "tolerates",
            Self::DeletionCancelled => "deletionCancelled",
        }
    }

    /// Returns a word for the verdict, short enough for a column.
    pub const fn column(&self) -> &'static str {
        match self {
            Self::Skipped(_) | Self::Tolerates | Self::DeletionCancelled => "stays",
            Self::Refused { .. } => "refused",
            Self::Terminating => "terminating",
            Self::Leaves(_) => "leaves",
            Self::LeavesAfter { .. } => "later",
            Self::Waits { .. }
            | Self::WaitsForOperator { .. }
            | Self::WaitsForController { .. }
            | Self::WaitsForNamespace
            | Self::WaitsForFinalizer { .. } => "waits",
            Self::Blocked { .. } => "blocked",
            Self::TwoBudgets { .. } => "fails",
            Self::Unknown { .. } => "unknown",
            Self::Undecided { .. } => "undecided",
            Self::Deleted { .. } => "deleted",
            Self::Orphaned => "orphaned",
        }
    }

    /// Returns the details that are shown beside the word of [`Verdict::column`], without this word.
    pub fn details(&self) -> String {
        let text = self.to_string();
        let rest = text.strip_prefix(self.column()).map(|rest| rest.trim_start_matches([':', ' ']));
        rest.unwrap_or(&text).to_owned()
    }

    /// Returns the budget on which the verdict depends; `None` if it depends on no budget or on several.
    pub fn budget(&self) -> Option<&Key> {
        match self.as_if_granted() {
            Self::LeavesAfter { budget, .. }
            | Self::Waits { budget, .. }
            | Self::WaitsForOperator { budget, .. }
            | Self::WaitsForController { budget }
            | Self::Blocked { budget, .. }
            | Self::Leaves(LeaveReason::BudgetAllows { budget, .. }) => Some(budget),
            Self::Skipped(_)
            | Self::Refused { .. }
            | Self::Terminating
            | Self::Leaves(LeaveReason::Free(_) | LeaveReason::Deleted)
            | Self::WaitsForNamespace
            | Self::WaitsForFinalizer { .. }
            | Self::TwoBudgets { .. }
            | Self::Unknown { .. }
            | Self::Undecided { .. }
            | Self::Deleted { .. }
            | Self::Orphaned
            | Self::Tolerates
            | Self::DeletionCancelled => None,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Skipped(skip) => write!(f, "stays: {skip}"),
            Self::Refused { refusals, granted } => {
                write!(f, "refused: {}; otherwise: {granted}", list(refusals))
            }
            Self::Terminating => f.write_str("already terminating"),
            Self::Leaves(reason) => write!(f, "leaves: {reason}"),
            Self::LeavesAfter { operator: Some(act), .. } => write!(f, "{act}"),
            Self::LeavesAfter { budget, recoveries, behind, operator: None } => {
                match usize::try_from(*recoveries).unwrap_or(usize::MAX) {
                    0 => write!(f, "leaves once the disruption controller has synced {budget} again")?,
                    count => {
                        let pods = counted(count, "healthy pod", "healthy pods");
                        write!(f, "leaves after {budget} regains {pods}")?;
                    }
                }
                if behind.is_empty() { Ok(()) } else { write!(f, ", behind {}", list(behind)) }
            }
            Self::Waits {
                budget,
                numbers,
                recoveries,
                unhealthy,
                pending,
                pending_cause,
                terminating,
                frees_unhealthy,
            } => {
                write!(f, "waits for {budget} ({numbers}): needs {recoveries} more healthy")?;
                write_missing(f, unhealthy, pending, pending_cause.as_ref(), terminating)?;
                match frees_unhealthy {
                    true => write!(f, "; if they do not recover, {ALWAYS_ALLOW}"),
                    false => Ok(()),
                }
            }
            Self::WaitsForOperator { budget, numbers, operator, pods, setting } => {
                write!(f, "waits for {budget} ({numbers}): {}", operator.does.trim_end_matches('.'))?;
                match operator.needs {
                    OperatorNeeds::OtherInstances { .. } if !pods.is_empty() => {
                        write!(f, "; not Ready on another schedulable node: {}", list(pods))?;
                    }
                    OperatorNeeds::OtherInstances { .. }
                    | OperatorNeeds::Setting(_)
                    | OperatorNeeds::Nothing => {
                        if let Some(setting) = operator.needs.setting_text(setting.as_ref()) {
                            write!(f, "; {setting}")?;
                        }
                    }
                }
                Ok(())
            }
            Self::WaitsForController { budget } => {
                write!(f, "waits until the disruption controller syncs {budget}")
            }
            Self::WaitsForNamespace => f.write_str("waits: deleted with its namespace"),
            Self::WaitsForFinalizer { finalizer } => {
                write!(
                    f,
                    "waits: finalizer {finalizer} keeps the Node object, so nothing removes the pod by force"
                )
            }
            Self::Blocked { budget, numbers, pattern, .. } => {
                let advice = self.advice().unwrap_or_default();
                write!(f, "blocked by {budget} ({numbers}): {pattern}; {advice}")
            }
            Self::TwoBudgets { budgets } => {
                write!(
                    f,
                    "eviction fails: more than one PodDisruptionBudget: {}; delete all but one or narrow their selectors, \
                     waiting does not help",
                    list(budgets)
                )
            }
            Self::Unknown { missing } => write!(f, "unknown: {missing}"),
            Self::Undecided { gaps } => {
                let unless = match (gaps.contains(FeedKind::Budgets), gaps.contains(FeedKind::Namespaces)) {
                    (true, false) => "a PodDisruptionBudget blocks it",
                    (false, _) => "its namespace is being deleted",
                    (true, true) => "a PodDisruptionBudget blocks it or its namespace is being deleted",
                };
                write!(f, "undecided: leaves unless {unless}")
            }
            Self::Deleted { taint, .. } => write!(f, "deleted for taint {taint}; budgets are ignored"),
            Self::Orphaned => {
                f.write_str("orphaned: the pod garbage collector removes it; budgets are ignored")
            }
            Self::Tolerates => f.write_str("stays: tolerates the taint: never evicted"),
            Self::DeletionCancelled => f.write_str("stays: its deletion is cancelled"),
        }
    }
}

impl fmt::Display for OperatorAct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MovesRole { operator } => {
                write!(f, "leaves after {operator} has moved its role to another pod")
            }
            Self::Restarts { operator } => {
                write!(f, "leaves: {operator} deletes it once its node is cordoned; budgets are not checked")
            }
        }
    }
}

impl fmt::Display for LeaveReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Free(free) => write!(f, "{free}"),
            Self::BudgetAllows { budget, numbers } => {
                write!(f, "{budget} allows {}", disruptions(numbers.allowed))
            }
            Self::Deleted => f.write_str("budgets are not checked"),
        }
    }
}

impl fmt::Display for FreeEviction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoBudget => "no PodDisruptionBudget",
            Self::Pending => "Pending",
            Self::Finished => "finished",
            Self::Terminating => "already terminating",
            Self::UnhealthyAllowed => "not Ready, and its budget always allows that",
            Self::HealthyBudget => "not Ready, and its budget is met without it",
        })
    }
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mirror => "static pod",
            Self::DaemonSet => "DaemonSet-managed",
            Self::NotSelected => "not selected",
            Self::LongTerminating => "terminating for too long",
        })
    }
}

impl fmt::Display for DrainRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DaemonSet => "DaemonSet-managed (--ignore-daemonsets)",
            Self::DaemonSetGone => "its DaemonSet is gone (--force)",
            Self::DaemonSetUnreadable => "its DaemonSet cannot be read",
            Self::EmptyDir => "emptyDir data (--delete-emptydir-data)",
            Self::Unmanaged => "no controller (--force)",
        })
    }
}

impl fmt::Display for BudgetNumbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { desired, healthy, allowed, .. } = self;
        write!(f, "needs {desired} healthy, has {healthy}: {} allowed", disruptions(*allowed))
    }
}

impl fmt::Display for BlockPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CannotBeMet { needs, max_healthy, .. } => {
                write!(f, "can never be allowed: needs {needs} of {max_healthy}")
            }
            Self::NothingGiven => {
                f.write_str("can never be allowed: neither minAvailable nor maxUnavailable is set")
            }
            Self::SyncFailed { message } => write!(f, "can never be allowed: sync failed: {message}"),
            Self::ExpectsNone => f.write_str("can never be allowed: it expects 0 pods"),
            Self::AllHealthy { needs } => {
                write!(f, "can never be allowed: needs {needs}, and all pods that it selects are healthy")
            }
            Self::NoReplica { operator } => {
                write!(f, "{operator} has no other instance to move the role of the pod to")
            }
            Self::NotCordoned { operator } => {
                write!(f, "{operator} moves the role of the pod once its node is cordoned")
            }
            Self::NotMoved { operator, since } => {
                write!(f, "{operator} has not moved the role of the pod, although it could for {since}")
            }
            Self::OperatorLacks { operator, needs } => {
                write!(f, "{operator} does nothing without {needs}, which is missing")
            }
            Self::ReplacementPending { of, why } => {
                write!(f, "the replacement of {} stays Pending ({why})", list(of))
            }
            Self::NotRecreated { pods } => write!(f, "no controller recreates {}", list(pods)),
            Self::StuckTerminating { pods } => write!(f, "stuck Terminating: {}", list(pods)),
            Self::NeverReady { of } => write!(f, "never Ready: the replacement of {}", list(of)),
            Self::Unhealthy { pods, why } => write!(f, "not going to be healthy: {} ({why})", list(pods)),
            Self::Broken { what } => f.write_str(what),
        }
    }
}

/// Formats a number of disruptions: `1 disruption`, `2 disruptions`.
fn disruptions(count: i32) -> String {
    format!("{count} {}", if count == 1 { "disruption" } else { "disruptions" })
}

/// Writes the pods that a budget lacks, by why they do not count.
fn write_missing(
    f: &mut fmt::Formatter<'_>,
    unhealthy: &[Key],
    pending: &[Key],
    pending_cause: Option<&Name>,
    terminating: &[Key],
) -> fmt::Result {
    let states = [("not Ready", unhealthy), ("Pending", pending), ("Terminating", terminating)];
    if states.iter().all(|(_, pods)| pods.is_empty()) {
        f.write_str("; pods are missing")?;
    }
    for (state, pods) in states.into_iter().filter(|(_, pods)| !pods.is_empty()) {
        write!(f, "; {state}: {}", list(pods))?;
        if let Some(cause) = pending_cause.filter(|_| state == "Pending") {
            write!(f, " ({cause})")?;
        }
    }
    Ok(())
}

/// Formats a list of names. A long list has only its first few names, and the number of the others.
fn list<T: fmt::Display>(all: &[T]) -> String {
    const SHOWN: usize = 4;
    let mut text = all.iter().take(SHOWN).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if all.len() > SHOWN {
        text += &format!(" and {} more", all.len() - SHOWN);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_details_of_a_verdict_do_not_repeat_its_word() {
        let budget = Key::new("shop", "cart");
        let numbers = BudgetNumbers::default();
        let pattern = BlockPattern::NothingGiven;
        let blocked = Verdict::Blocked { budget: budget.clone(), numbers, pattern, frees_unhealthy: false };
        assert!(blocked.details().starts_with("by shop/cart ("));
        assert_eq!(Verdict::Skipped(Skip::Mirror).details(), "static pod");
        assert_eq!(Verdict::DeletionCancelled.details(), "its deletion is cancelled");
        let later = |recoveries| {
            let (budget, behind) = (budget.clone(), Vec::new());
            Verdict::LeavesAfter { budget, recoveries, behind, operator: None }
        };
        let words = ("later", "leaves after shop/cart regains 1 healthy pod");
        assert_eq!((later(1).column(), &*later(1).details()), words);
        let words = "leaves once the disruption controller has synced shop/cart again";
        assert_eq!(later(0).details(), words, "an entry of its disruptedPods expires");
    }
}
