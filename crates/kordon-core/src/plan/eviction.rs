//! Decisions and responses of the eviction subresource (docs/upstream/operator-actions.md#4).

use std::{collections::BTreeMap, sync::Arc};

use super::{
    budget::{self, BudgetNumbers, BudgetState},
    rules::EvictionRules,
};
use crate::cluster::{Budget, Cluster, Key, Name, Phase, Pod, UnhealthyPolicy};
use kordon_time::{Span, Timestamp};

/// The decision of the eviction subresource on a pod.
#[derive(Clone, Debug, PartialEq)]
pub enum EvictionDecision {
    /// The eviction is allowed, and uses no disruption of any budget.
    Free(FreeEviction),
    /// The eviction is allowed, and uses one disruption of this budget.
    Costs {
        budget: Key,
    },
    Blocked(EvictionBlock),
}

/// The reason why an eviction uses no disruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FreeEviction {
    NoBudget,
    Pending,
    Finished,
    Terminating,
    /// The pod is not Ready, and the policy of its budget always allows the eviction of such pods.
    UnhealthyAllowed,
    /// The pod is not Ready, and its budget has enough healthy pods without this pod.
    HealthyBudget,
}

/// The reason why an eviction is refused for now.
#[derive(Clone, Debug, PartialEq)]
pub enum EvictionBlock {
    NamespaceTerminating,
    /// More than one budget protects the pod. Retries get the same error.
    TwoBudgets {
        budgets: Vec<Key>,
    },
    /// The status of the budget is for an older spec, or was never written.
    Stale {
        budget: Key,
    },
    /// The budget currently allows no disruption.
    Exhausted {
        budget: Key,
        numbers: BudgetNumbers,
        sync_failure: Option<Name>,
    },
    /// kordon does not know the budget's policy for pods that are not Ready.
    UnknownPolicy {
        budget: Key,
    },
    /// `disruptionsAllowed` is negative, or the budget has more than 2000 granted evictions that are not confirmed yet.
    Broken {
        budget: Key,
        what: &'static str,
    },
}

impl EvictionBlock {
    /// Returns the budgets that block the eviction. There are several if more than one budget protects the pod.
    pub fn budgets(&self) -> impl Iterator<Item = &Key> {
        let several: &[Key] = match self {
            Self::TwoBudgets { budgets } => budgets,
            _ => &[],
        };
        self.budget().into_iter().chain(several)
    }

    /// Returns the budget that blocks the eviction; `None` if no budget or more than one does.
    pub fn budget(&self) -> Option<&Key> {
        match self {
            Self::NamespaceTerminating | Self::TwoBudgets { .. } => None,
            Self::Stale { budget }
            | Self::Exhausted { budget, .. }
            | Self::UnknownPolicy { budget }
            | Self::Broken { budget, .. } => Some(budget),
        }
    }
}

/// Maximum number of granted but unconfirmed evictions of a budget (upstream `MaxDisruptedPodSize`).
const MAX_DISRUPTED_PODS: usize = 2000;

/// The parts of a pod that the eviction subresource reads.
#[derive(Clone, Copy, Debug)]
pub struct PodState {
    pub phase: Phase,
    pub ready: bool,
    pub terminating: bool,
    pub namespace_terminating: bool,
}

impl PodState {
    pub fn new(cluster: &Cluster, pod: &Pod) -> Self {
        let namespace = cluster.namespaces().get(&pod.key.namespace);
        Self {
            phase: pod.phase,
            ready: pod.is_ready(),
            terminating: pod.termination.is_some(),
            namespace_terminating: namespace.is_some_and(|namespace| namespace.terminating),
        }
    }
}

/// Returns whether the eviction of a pod depends on its budgets. Budgets protect only running pods.
pub fn asks_budgets(pod: &Pod) -> bool {
    pod.termination.is_none() && matches!(pod.phase, Phase::Running | Phase::Unknown)
}

/// Returns the decision on the eviction of a pod (upstream `EvictionREST.Create`). `budgets` are the budgets that
/// protect it.
pub fn decide(pod: PodState, budgets: &[&BudgetState]) -> EvictionDecision {
    if pod.namespace_terminating {
        return EvictionDecision::Blocked(EvictionBlock::NamespaceTerminating);
    }
    match pod.phase {
        _ if pod.terminating => return EvictionDecision::Free(FreeEviction::Terminating),
        Phase::Pending => return EvictionDecision::Free(FreeEviction::Pending),
        Phase::Succeeded | Phase::Failed => return EvictionDecision::Free(FreeEviction::Finished),
        Phase::Running | Phase::Unknown => {}
    }
    let budget = match budgets {
        [] => return EvictionDecision::Free(FreeEviction::NoBudget),
        [budget] => *budget,
        several => {
            let budgets = several.iter().map(|budget| budget.key.clone()).collect();
            return EvictionDecision::Blocked(EvictionBlock::TwoBudgets { budgets });
        }
    };
    let numbers = budget.numbers;
    if !pod.ready {
        match budget.policy {
            UnhealthyPolicy::AlwaysAllow => return EvictionDecision::Free(FreeEviction::UnhealthyAllowed),
            UnhealthyPolicy::IfHealthyBudget => {}
            UnhealthyPolicy::Invalid => {
                return EvictionDecision::Blocked(EvictionBlock::UnknownPolicy {
                    budget: budget.key.clone(),
                });
            }
        }
        if numbers.healthy >= numbers.desired && numbers.desired > 0 {
            return EvictionDecision::Free(FreeEviction::HealthyBudget);
        }
    }
    let key = budget.key.clone();
    if budget.stale {
        EvictionDecision::Blocked(EvictionBlock::Stale { budget: key })
    } else if numbers.allowed < 0 {
        EvictionDecision::Blocked(EvictionBlock::Broken {
            budget: key,
            what: "pdb disruptions allowed is negative",
        })
    } else if budget.disrupted_pods > MAX_DISRUPTED_PODS {
        let what = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        EvictionDecision::Blocked(EvictionBlock::Broken { budget: key, what })
    } else if numbers.allowed == 0 {
        EvictionDecision::Blocked(EvictionBlock::Exhausted {
            budget: key,
            numbers,
            sync_failure: budget.sync_failure.clone(),
        })
    } else {
        EvictionDecision::Costs { budget: key }
    }
}

/// Returns the budgets that the eviction subresource checks for a pod.
pub fn budgets_of<'a>(
    cluster: &'a Cluster,
    pod: &'a Pod,
    rules: &'a EvictionRules,
) -> impl Iterator<Item = &'a Budget> {
    cluster.budgets_of(pod).map(|budget| &**budget).filter(|budget| budget::protects(budget, pod, rules))
}

/// The API server's response to an eviction request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EvictionAnswer {
    pub code: u16,
    pub reason: Option<&'static str>,
    pub message: Option<String>,
    pub cause: Option<StatusCause>,
    /// The `Retry-After` header of the response.
    pub retry_after: Option<Span>,
    /// The budget that refuses the eviction.
    pub budget: Option<Key>,
}

/// An entry of `details.causes` in the server's response.
#[derive(Clone, Debug, PartialEq)]
pub struct StatusCause {
    pub reason: &'static str,
    pub message: String,
}

/// Returns the response that an eviction request would get now, for example from a dry run.
pub fn answer(cluster: &Cluster, pod: &Arc<Pod>, rules: &EvictionRules, now: Timestamp) -> EvictionAnswer {
    let states = budget::states(cluster, [pod], rules, now);
    EvictionAnswer::to(&decision(cluster, pod, &states, rules), rules)
}

/// Returns the decision on the eviction of a pod. `states` are the states of its budgets.
pub fn decision(
    cluster: &Cluster,
    pod: &Pod,
    states: &BTreeMap<Key, BudgetState>,
    rules: &EvictionRules,
) -> EvictionDecision {
    let budgets: Vec<&BudgetState> =
        budgets_of(cluster, pod, rules).filter_map(|budget| states.get(&budget.key)).collect();
    decide(PodState::new(cluster, pod), &budgets)
}

impl EvictionAnswer {
    /// Returns the API server's response for a decision.
    pub fn to(decision: &EvictionDecision, rules: &EvictionRules) -> Self {
        let block = match decision {
            EvictionDecision::Free(_) | EvictionDecision::Costs { .. } => {
                return Self { code: 201, ..Self::default() };
            }
            EvictionDecision::Blocked(block) => block,
        };
        let budget = block.budget().cloned();
        let violated = "Cannot evict pod as it would violate the pod's disruption budget.";
        let refused = |message: String, retry_after| Self {
            code: 429,
            reason: Some("TooManyRequests"),
            message: Some(violated.into()),
            cause: Some(StatusCause { reason: "DisruptionBudget", message }),
            retry_after,
            budget: budget.clone(),
        };
        match block {
            EvictionBlock::NamespaceTerminating => Self {
                code: 403,
                reason: Some("Forbidden"),
                message: Some("the namespace is being terminated".into()),
                cause: Some(StatusCause {
                    reason: "NamespaceTerminating",
                    message: "the namespace is being terminated".into(),
                }),
                ..Self::default()
            },
            EvictionBlock::TwoBudgets { .. } => Self {
                code: 500,
                message: Some(
                    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
                        .into(),
                ),
                ..Self::default()
            },
            EvictionBlock::Stale { budget } => {
                let name = &budget.name;
                let text = format!("The disruption budget {name} is still being processed by the server.");
                refused(text, Some(Span::from_secs(10)))
            }
            EvictionBlock::Exhausted { budget, numbers, sync_failure } => {
                let name = &budget.name;
                let BudgetNumbers { desired, healthy, .. } = numbers;
                let text = match sync_failure {
                    Some(failure) if rules.reports_failed_sync => format!(
                        "The disruption budget {name} does not allow evicting pods currently because it failed sync: {failure}"
                    ),
                    _ if rules.reports_failed_sync && healthy > desired => {
                        format!("The disruption budget {name} does not allow evicting pods currently")
                    }
                    Some(_) | None => format!(
                        "The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
                    ),
                };
                refused(text, None)
            }
            EvictionBlock::UnknownPolicy { budget } => {
                let name = &budget.name;
                refused(format!("the unhealthyPodEvictionPolicy of {name} is unknown"), None)
            }
            EvictionBlock::Broken { what, .. } => Self {
                code: 403,
                reason: Some("Forbidden"),
                message: Some((*what).into()),
                budget: budget.clone(),
                ..Self::default()
            },
        }
    }
}
