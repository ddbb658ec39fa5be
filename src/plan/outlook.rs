//! Whether a pod that waits at the end of a run waits for something that may come, or for ever
//! (spec/operator-actions.md 5.6).

use super::{
    budget::{self, State},
    eviction::Block,
    owner::{self, Return},
    rules::Rules,
    simulation::{Course, PodCourse},
    surroundings::Landing,
    verdict::{Pattern, Verdict},
};
use crate::cluster::{Cluster, Key, Name};

/// The verdict over a pod that this still blocks when nothing more happens.
pub fn verdict(cluster: &Cluster, block: &Block, course: &Course, rules: &Rules) -> Verdict {
    match block {
        Block::NamespaceTerminating => Verdict::WaitsForNamespace,
        Block::TwoBudgets { budgets } => Verdict::TwoBudgets { budgets: budgets.clone() },
        Block::UnknownPolicy { budget } => {
            Verdict::Unknown { missing: format!("the policy of {budget} for pods that are not ready") }
        }
        Block::Stale { budget } => {
            match course.budgets.get(budget).and_then(|state| state.sync_failure.clone()) {
                Some(message) => blocked(budget, course, Pattern::SyncFailed { message }),
                None => Verdict::WaitsForController { budget: budget.clone() },
            }
        }
        Block::Broken { budget, what } => blocked(budget, course, Pattern::Broken { what }),
        Block::Exhausted { budget, .. } => match course.budgets.get(budget) {
            Some(state) => exhausted(cluster, state, course, rules),
            None => Verdict::Unknown { missing: format!("budget {budget}") },
        },
    }
}

fn blocked(budget: &Key, course: &Course, pattern: Pattern) -> Verdict {
    let numbers = course.budgets.get(budget).map(|state| state.numbers).unwrap_or_default();
    Verdict::Blocked { budget: budget.clone(), numbers, pattern }
}

fn exhausted(cluster: &Cluster, state: &State, course: &Course, rules: &Rules) -> Verdict {
    let numbers = state.numbers;
    let never = |pattern| Verdict::Blocked { budget: state.key.clone(), numbers, pattern };
    if state.empty {
        return never(Pattern::NothingGiven);
    }
    if let Some(message) = &state.sync_failure {
        return never(Pattern::SyncFailed { message: message.clone() });
    }
    if numbers.expected <= 0 {
        return never(Pattern::ExpectsNone);
    }
    if let Some(most) = state.most.filter(|most| numbers.desired >= *most) {
        return never(Pattern::NoRoom { most });
    }
    let whom = sick(cluster, state, course, rules);
    if whom.is_empty()
        && let Some(pattern) = spent(cluster, state, course, rules)
    {
        return never(pattern);
    }
    let recoveries = numbers.desired.saturating_sub(numbers.healthy).saturating_add(1);
    Verdict::Waits { budget: state.key.clone(), numbers, recoveries, whom }
}

/// The budget's pods that are not ready, are not on their way out, and may recover.
fn sick(cluster: &Cluster, state: &State, course: &Course, rules: &Rules) -> Vec<Key> {
    let Some(budget) = cluster.budgets().get(&state.key) else { return Vec::new() };
    let leaves = |key: &Key| course.pods.get(key).is_some_and(|pod| pod.granted.is_some());
    budget::pods_of(cluster, budget, rules)
        .filter(|pod| !pod.is_ready() && !pod.is_finished() && pod.termination.is_none())
        .filter(|pod| !leaves(&pod.key))
        .map(|pod| pod.key.clone())
        .collect()
}

/// Why what this plan took from the budget does not come back.
fn spent(cluster: &Cluster, state: &State, course: &Course, rules: &Rules) -> Option<Pattern> {
    let budget = cluster.budgets().get(&state.key)?;
    let (mut nowhere, mut lost, mut stuck, mut never) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut reason = Name::default();
    for pod in budget::pods_of(cluster, budget, rules) {
        let Some(PodCourse { granted: Some(_), gone, replacement, .. }) = course.pods.get(&pod.key) else {
            continue;
        };
        let key = pod.key.clone();
        match (replacement, owner::comes_back(cluster, pod)) {
            (Some(replacement), _) => match &replacement.landing {
                Landing::Nowhere { why } => {
                    reason = why.clone();
                    nowhere.push(key);
                }
                Landing::Node { .. } | Landing::Somewhere if replacement.ready.is_none() => never.push(key),
                Landing::Node { .. } | Landing::Somewhere => {}
            },
            (None, Return::WhenGone(_)) if gone.is_none() => stuck.push(key),
            (None, Return::Never(_)) => lost.push(key),
            (None, Return::AtOnce(_) | Return::WhenGone(_) | Return::Here) => {}
        }
    }
    if !nowhere.is_empty() {
        Some(Pattern::NoPlace { of: nowhere, why: reason })
    } else if !stuck.is_empty() {
        Some(Pattern::StuckTerminating { pods: stuck })
    } else if !never.is_empty() {
        Some(Pattern::NeverReady { of: never })
    } else if !lost.is_empty() {
        Some(Pattern::LostForGood { pods: lost })
    } else {
        None
    }
}
