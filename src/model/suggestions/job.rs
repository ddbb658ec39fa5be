//! Background job that computes the suggestions for a node, a pod or a budget, because plans over a large cluster take
//! time.

use std::sync::Arc;

use super::{
    Means, PlanEffect, Suggestion, SuggestionKind, budgets, for_cordon_wait,
    nodes::{NodeCase, is_overdue, is_silent},
    pods::{PodCase, PodTrouble},
};
use crate::model::{Model, NodeState, PendingAdvice};
use kordon_core::{
    cluster::{Budget, Cluster, Key, Node, NodeName, Pod, Scope},
    operation::Guards,
    placement::{Constraint, Snapshot},
    plan::{
        Action, Cancellation, CordonWait, Environment, EvictionRules, LostNodes, PlacementTrace,
        PlacingEnvironment, Plan, Recreation, Verdict, environment::has_running_kubelet, failover,
        failover::leave_lost_nodes, forced_removal::removes_by_force, owner,
    },
};
use kordon_time::Timestamp;

/// The guard rails, or the reason why they are unknown.
pub type Guarding = Result<Guards, String>;

/// Source of the numbers in suggestions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// The numbers come from plans of the suggested actions over the whole cluster.
    OfPlans,
    /// Nothing is planned, and there are no numbers, because too little of the cluster is known.
    None,
}

/// Copies of all inputs of the suggestions for a node, a pod or a budget.
#[derive(Clone, Debug)]
pub struct SuggestionJob {
    case: Case,
    cluster: Cluster,
    rules: EvictionRules,
    now: Timestamp,
    cancellation: Cancellation,
}

#[derive(Clone, Debug)]
enum Case {
    Node(Box<NodeCase>),
    Pod(PodCase),
    Budget(BudgetCase),
}

/// Facts that determine the suggestions for a budget.
#[derive(Clone, Debug)]
struct BudgetCase {
    budget: Arc<Budget>,
    /// The wait of a drain until another node is uncordoned, if a pod of the budget would then run.
    cordon_wait: Option<CordonWait>,
}

impl Model {
    /// Returns the job for a node; `None` while its state is unknown.
    pub fn node_suggestions(&self, node: &Arc<Node>, now: Timestamp) -> Option<SuggestionJob> {
        Some(self.suggestion_job(Case::Node(Box::new(self.node_case(node, now)?)), now))
    }

    /// Returns the job for a pod.
    pub fn pod_suggestions(&self, pod: &Arc<Pod>, now: Timestamp) -> SuggestionJob {
        self.suggestion_job(Case::Pod(self.pod_case(pod, now)), now)
    }

    /// Returns the job for a budget.
    pub fn budget_suggestions(&self, budget: &Arc<Budget>, now: Timestamp) -> SuggestionJob {
        let is_of_budget = |wait: &&CordonWait| {
            let pod = self.cluster.pod(&wait.pod);
            pod.is_some_and(|pod| self.cluster.budgets_of(pod).any(|of_pod| of_pod.key == budget.key))
        };
        let cordon_wait = self.views.cordon_waits.iter().find(is_of_budget).cloned();
        self.suggestion_job(Case::Budget(BudgetCase { budget: budget.clone(), cordon_wait }), now)
    }

    fn suggestion_job(&self, case: Case, now: Timestamp) -> SuggestionJob {
        let rules = EvictionRules::from(&self.settings);
        SuggestionJob {
            case,
            cluster: self.cluster.clone(),
            rules,
            now,
            cancellation: Cancellation::default(),
        }
    }

    fn node_case(&self, node: &Arc<Node>, now: Timestamp) -> Option<NodeCase> {
        let status = self.node_status(node)?;
        let engine = self.engine.as_ref()?;
        let first_eviction = || {
            let pending = engine.evictions_on(&self.cluster, node);
            pending.into_iter().filter_map(|eviction| eviction.due.at()).min()
        };
        let next = match status.state {
            NodeState::Late | NodeState::Silent => engine.node_view(node).map(|view| view.expires()),
            state if state.is_down() => first_eviction(),
            _ => None,
        };
        let rules = EvictionRules::from(&self.settings);
        let hangs = |pod: &&Arc<Pod>| {
            let is_without_kubelet = is_silent(node) && pod.termination.is_some();
            (is_without_kubelet || is_overdue(pod, &self.cluster, now)) && !removes_by_force(node, &rules)
        };
        let pods = self.cluster.pods_on(&node.name);
        Some(NodeCase {
            node: node.clone(),
            state: status.state,
            flaps: self.watchlist.flaps(&node.name, now),
            next,
            drain: status.drain,
            blocked: self.views.blocked_drains.iter().find(|drain| drain.node == node.name).cloned(),
            knows_out_of_service: rules.out_of_service,
            hanging: pods.filter(hangs).map(|pod| pod.key.clone()).collect(),
            cordon_wait: self.views.cordon_waits.iter().find(|wait| wait.node == node.name).cloned(),
            renews_again: engine.renews_again(&self.cluster, node, now),
        })
    }

    fn pod_case(&self, pod: &Arc<Pod>, now: Timestamp) -> PodCase {
        let rules = EvictionRules::from(&self.settings);
        let node = pod.node.as_ref().and_then(|name| self.cluster.node(name)).cloned();
        let node = node.map(|node| {
            let state = self.watchlist.state(&node.name).unwrap_or(NodeState::Ready);
            (node, state)
        });
        let of_node = node.as_ref().map(|(node, state)| (&**node, *state));
        let mut state = PodTrouble::new(pod, of_node, &self.cluster, &rules, now);
        let mut room_from = None;
        if let (PodTrouble::Pending, Some(PendingAdvice::Waits { node, victims })) =
            (&state, self.predictions.pending_advice(&pod.key))
        {
            room_from = self.room_from(node, victims);
            state = PodTrouble::WaitsForVictims { node: node.clone(), victims: victims.clone() };
        }
        let deadline = pod.termination.as_ref().map(|ends| self.cluster.local(ends.deadline));
        let eviction = || {
            let (engine, (node, _)) = (self.engine.as_ref()?, node.as_ref()?);
            let pending = engine.evictions_on(&self.cluster, node);
            let of_pod = pending.into_iter().find(|eviction| eviction.pod == pod.key)?;
            of_pod.due.at()
        };
        let next = match state {
            PodTrouble::NodeGone => self.views.leaving.evictions.get(&pod.key).and_then(|row| row.state.at()),
            _ => deadline.or_else(eviction).or(room_from),
        };
        let renews_again = node
            .as_ref()
            .zip(self.engine.as_ref())
            .is_some_and(|((node, _), engine)| engine.renews_again(&self.cluster, node, now));
        let cordon_wait = self.cordon_wait_of(pod, &state).cloned();
        let knows_out_of_service = rules.out_of_service;
        let is_replaced_at_once = owner::recreation(&self.cluster, pod) == Recreation::Immediately;
        PodCase {
            pod: pod.clone(),
            node,
            state,
            next,
            knows_out_of_service,
            renews_again,
            is_replaced_at_once,
            cordon_wait,
        }
    }

    /// Returns the wait of a drain that ends if another node is uncordoned, because then this pod runs, or the Pending
    /// pod that its eviction waits for. `None` if there is no such wait.
    fn cordon_wait_of(&self, pod: &Pod, state: &PodTrouble) -> Option<&CordonWait> {
        let is_awaited = |key: &Key| match state {
            PodTrouble::Pending => *key == pod.key,
            PodTrouble::Blocked(verdict) => {
                matches!(&**verdict, Verdict::Waits { pending, .. } if pending.contains(key))
            }
            _ => false,
        };
        let mut waits = self.views.cordon_waits.iter().filter(|wait| is_awaited(&wait.pod));
        waits.find(|wait| wait.to_uncordon() != pod.node.as_ref())
    }

    /// Time at which the grace periods of all `victims`, which are pods of one node, are over; `None` if the node's
    /// kubelet is down, because the pods then stay.
    fn room_from(&self, node: &NodeName, victims: &[Key]) -> Option<Timestamp> {
        let ends = victims.iter().filter_map(|victim| self.cluster.pod(victim)?.termination.as_ref());
        let ends = ends.map(|ends| self.cluster.local(ends.deadline)).max();
        ends.filter(|_| has_running_kubelet(&self.cluster, node))
    }
}

impl SuggestionJob {
    /// Returns the suggestions that need no computation. The numbers of plans, the remedies for budgets, and the
    /// placements of a Pending pod are missing.
    pub fn at_once(&self) -> Vec<Suggestion> {
        match &self.case {
            Case::Node(case) => case.suggestions(&self.cluster, self.now),
            Case::Pod(case) => case.suggestions(self.now),
            Case::Budget(_) => Vec::new(),
        }
    }

    /// Attaches a cancellation. Once it is cancelled, [`work`](Self::work) returns early, and its result must be
    /// discarded.
    pub fn until_cancelled(self, cancellation: &Cancellation) -> Self {
        Self { cancellation: cancellation.clone(), ..self }
    }

    /// Computes the suggestions, including the parts that take time.
    pub fn work(self, numbers: Numbers, guards: &Guarding) -> Vec<Suggestion> {
        let mut suggestions = self.at_once();
        self.add_budgets(&mut suggestions);
        let places = [Scope::Nodes, Scope::Pods].iter().all(|scope| self.cluster.knows(scope));
        let places = places && numbers == Numbers::OfPlans;
        let snapshot = places.then(|| Snapshot::new(&self.cluster, self.rules.version));
        if let (Some(snapshot), Case::Pod(PodCase { pod, state: PodTrouble::Pending, .. })) =
            (&snapshot, &self.case)
        {
            let mut placing = self.placing(pod, snapshot);
            if suggestions.iter().any(|suggestion| suggestion.kind == SuggestionKind::Uncordon) {
                placing.retain(|suggestion| suggestion.kind != SuggestionKind::Uncordon);
            }
            suggestions.extend(placing);
        }
        if let Some(snapshot) = snapshot {
            for suggestion in &mut suggestions {
                if self.cancellation.is_cancelled() {
                    break;
                }
                suggestion.effect = self.effect(suggestion, &snapshot, guards);
            }
        }
        suggestions
    }

    /// Adds remedies for budgets that refuse evictions.
    fn add_budgets(&self, suggestions: &mut Vec<Suggestion>) {
        let Self { cluster, rules, now, .. } = self;
        let refusing = match &self.case {
            Case::Pod(PodCase { cordon_wait: Some(_), .. }) => return,
            Case::Pod(PodCase { pod, state: PodTrouble::Blocked(verdict), .. }) => {
                if let Verdict::TwoBudgets { budgets } = &**verdict {
                    let separate = budgets::separate(pod, budgets, cluster, rules, *now);
                    suggestions.splice(0..0, separate);
                    return;
                }
                budgets::refusing(cluster, [pod], rules, *now)
            }
            Case::Node(case) if matches!(case.state, NodeState::Draining | NodeState::Cordoned) => {
                let pods = cluster.pods_on(&case.node.name);
                let mut refusing = budgets::refusing(cluster, pods, rules, *now);
                // A budget needs a remedy only if it refuses the eviction even when all its pods are Ready. Any other
                // budget allows the next eviction once a replacement is Ready.
                refusing.retain(|budget| budget.is_final);
                refusing
            }
            Case::Budget(BudgetCase { budget, cordon_wait }) => {
                match cordon_wait.as_ref().and_then(for_cordon_wait) {
                    Some(uncordon) => suggestions.push(uncordon),
                    None => suggestions.extend(budgets::remedies(budget, cluster, rules, *now)),
                }
                return;
            }
            Case::Pod(_) | Case::Node(_) => return,
        };
        if let (Case::Pod(_), [budget]) = (&self.case, &refusing[..]) {
            let wait = suggestions.iter_mut().filter(|suggestion| suggestion.kind == SuggestionKind::Wait);
            wait.for_each(|wait| wait.text = budget.wait());
        }
        let mut found = budgets::suggestions(&refusing, cluster, rules, *now);
        if found.iter().any(|suggestion| suggestion.kind == SuggestionKind::Wait) {
            suggestions.retain(|suggestion| suggestion.kind != SuggestionKind::Wait);
        }
        let after_wait =
            usize::from(suggestions.first().is_some_and(|first| first.kind == SuggestionKind::Wait));
        if let Case::Pod(PodCase { state: PodTrouble::Blocked(verdict), .. }) = &self.case
            && found.is_empty()
        {
            found.extend(budgets::advice(verdict));
        }
        suggestions.splice(after_wait..after_wait, found);
    }

    /// Returns changes that would allow the placement of a Pending pod.
    fn placing(&self, pod: &Pod, snapshot: &Snapshot) -> Vec<Suggestion> {
        let mut environment = PlacingEnvironment::new(&self.cluster, snapshot.clone(), self.now)
            .until_cancelled(&self.cancellation);
        environment.land(pod, &Default::default());
        let trace = environment.trace().placements.remove(&pod.key);
        let help = trace.map(Arc::unwrap_or_clone).and_then(|PlacementTrace { help, .. }| help);
        let Some(help) = help else { return Vec::new() };
        let cordoned = help.lifts.iter().find(|lift| lift.constraint == Constraint::Cordon);
        let uncordon = cordoned.and_then(|lift| lift.nodes.first()).map(|node| {
            let means = Means::Plan(Action::Uncordon { nodes: vec![node.clone()] });
            Suggestion::new(
                SuggestionKind::Uncordon,
                means,
                format!("{node} takes it once it is not cordoned"),
            )
        });
        let lines = help.lines().into_iter();
        let place = lines.map(|line| Suggestion::new(SuggestionKind::Place, Means::Edit, line));
        uncordon.into_iter().chain(place).collect()
    }

    /// Returns the effect of a suggestion; `None` if the suggestion has no plan and no prediction.
    fn effect(&self, suggestion: &Suggestion, snapshot: &Snapshot, guards: &Guarding) -> Option<PlanEffect> {
        let Self { cluster, rules, now, .. } = self;
        match &suggestion.means {
            Means::Plan(action) => {
                let plan = Plan::over(action.clone(), cluster, Some(snapshot.clone()), *rules, *now);
                Some(match plan {
                    Ok(plan) => PlanEffect::new(&plan, guards, cluster),
                    Err(error) => PlanEffect { text: error.to_string(), cautions: Vec::new() },
                })
            }
            Means::WhatIf(node) => Some(self.loss(node, snapshot)),
            Means::Wait | Means::Kubectl(_) | Means::Machine(_) | Means::Edit => None,
        }
    }

    /// Returns the effect of the loss of a node: the outcomes of its pods.
    fn loss(&self, node: &NodeName, snapshot: &Snapshot) -> PlanEffect {
        let lost = [node.clone()].into();
        let environment = PlacingEnvironment::for_outcomes(&self.cluster, snapshot.clone(), self.now)
            .until_cancelled(&self.cancellation);
        PlanEffect::from_loss(&failover(
            &self.cluster,
            leave_lost_nodes(&self.cluster, &lost),
            LostNodes::failed(lost.into()),
            environment,
        ))
    }
}
