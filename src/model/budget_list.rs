//! All PodDisruptionBudgets: how many pods each budget lets go now, which drains it delays or blocks, and who runs
//! these drains. The list is computed in the background, because the computation looks at every pod of a namespace with
//! a budget.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use super::{Model, NodeState, NodeWatchlist};
use crate::k8s::feed::FeedKind;
use kordon_core::{
    cluster::{Budget, Cluster, Gaps, IntOrPercent, Key, NodeName, Pod},
    plan::{
        BlockPattern, BlockedDrain, EvictionRules,
        budget::{self, BudgetNumbers, BudgetState},
        eviction::{self, EvictionBlock, EvictionDecision},
        foreign_drain, never_allows,
        operator_budgets::{OperatorBudget, operator_of_pod},
    },
};
use kordon_time::{Span, Timestamp};

/// All budgets at a point in time.
#[derive(Clone, Debug, Default)]
pub struct BudgetList {
    /// Number of changes that may alter the list, as it was when the list was computed.
    changes: u64,
    /// The drains from which the list was made. They are kept because a drain can become blocked merely because time
    /// passes.
    drains: KnownDrains,
    rows: BTreeMap<Key, BudgetRow>,
}

/// The drains of a cluster.
#[derive(Clone, Debug, Default, PartialEq)]
struct KnownDrains {
    /// Nodes that are being drained.
    draining: BTreeSet<NodeName>,
    blocked: Vec<BlockedDrain>,
}

/// A budget, and what it means for drains.
#[derive(Clone, Debug, PartialEq)]
pub struct BudgetRow {
    pub key: Key,
    /// The rule of the budget's spec: `minAvailable 2`, `maxUnavailable 25%`; empty if none is set.
    pub rule: String,
    pub room: BudgetRoom,
    pub numbers: BudgetNumbers,
    /// Pods that the budget selects, sorted.
    pub pods: Vec<Key>,
    /// Nodes on which the budget has pods.
    pub nodes: BTreeSet<NodeName>,
    /// Pods whose eviction would be refused now, sorted.
    pub refused: Vec<Key>,
    /// Nodes of the pods whose eviction would be refused. A drain of such a node would wait, or never end.
    pub blocks: BTreeSet<NodeName>,
    /// Other budgets that select some of the same pods. The API server refuses the eviction of a pod with several
    /// budgets, even if all of them allow it.
    pub shares_with: BTreeSet<Key>,
    /// Drains of nodes on which the budget has pods.
    pub drains: Vec<DrainUnderBudget>,
}

/// A drain of a node on which a budget has pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrainUnderBudget {
    pub node: NodeName,
    /// Who drains the node; `None` if unknown.
    pub by: Option<String>,
    /// Time since which this budget blocks the drain; `None` if the budget does not block it.
    pub blocked_since: Option<Timestamp>,
}

/// Number of pods that a budget lets go now. The variants are sorted by urgency, the most urgent first.
#[derive(Clone, Debug, PartialEq)]
pub enum BudgetRoom {
    /// The budget never lets a pod go.
    Never(BlockPattern),
    /// The budget lets no pod go until this many more pods are healthy.
    After(i32),
    /// The budget lets no pod go, however many are healthy. This operator (software) lifts the budget, or moves the
    /// pod.
    Operator(&'static OperatorBudget),
    /// The disruption controller has not computed the budget since it was changed.
    NotComputed,
    /// The number cannot be computed, because pods or budgets are not known.
    Unknown(Gaps),
    /// The budget lets this many pods go.
    Now(i32),
    /// The budget selects no pod.
    NoPods,
}

impl BudgetRoom {
    /// Name of the variant in reports.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Never(_) => "never",
            Self::After(_) => "after",
            Self::Operator(_) => "operator",
            Self::NotComputed => "notComputed",
            Self::Unknown(_) => "unknown",
            Self::Now(_) => "now",
            Self::NoPods => "noPods",
        }
    }
}

impl BudgetRow {
    /// Sort key, the most urgent first: budgets that refuse evictions come before others. Of equally urgent budgets,
    /// those come first whose pods are on more nodes that are being drained.
    pub fn urgency(&self) -> (i64, i64) {
        let room = match self.room {
            BudgetRoom::Unknown(_) => 3,
            _ if self.refused.is_empty() => 5,
            BudgetRoom::Never(_) => 0,
            BudgetRoom::After(_) | BudgetRoom::Operator(_) => 1,
            BudgetRoom::NotComputed => 2,
            BudgetRoom::Now(_) | BudgetRoom::NoPods => 4,
        };
        (room, -i64::try_from(self.drains.len()).unwrap_or(i64::MAX))
    }
}

impl DrainUnderBudget {
    /// The drain in words: `n-3 by ann, blocked 2m`.
    pub fn text(&self, now: Timestamp) -> String {
        let by = self.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
        let seconds = |since| Span::from_secs(now.since(since).or_zero().as_secs());
        let blocked = self.blocked_since.map(|since| format!(", blocked {}", seconds(since)));
        format!("{}{by}{}", self.node, blocked.unwrap_or_default())
    }
}

/// How many pods may leave: `1 pod may leave`, `none, until 1 more is healthy`, `never: needs 2 of 2`.
impl fmt::Display for BudgetRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never(pattern) => {
                let pattern = pattern.to_string();
                write!(f, "never: {}", pattern.trim_start_matches("can never be allowed: "))
            }
            Self::After(1) => f.write_str("none, until 1 more is healthy"),
            Self::After(more) => write!(f, "none, until {more} more are healthy"),
            Self::Operator(operator) => write!(f, "none: {}", operator.does.trim_end_matches('.')),
            Self::NotComputed => f.write_str("none, until the controller has computed it"),
            Self::Unknown(gaps) => write!(f, "not known: {gaps}"),
            Self::Now(1) => f.write_str("1 pod may leave"),
            Self::Now(pods) => write!(f, "{pods} pods may leave"),
            Self::NoPods => f.write_str("selects no pods"),
        }
    }
}

impl BudgetList {
    pub fn get(&self, key: &Key) -> Option<&BudgetRow> {
        self.rows.get(key)
    }

    /// All budgets, by name.
    pub fn rows(&self) -> impl Iterator<Item = &BudgetRow> {
        self.rows.values()
    }
}

/// Copies of all inputs of the list.
#[derive(Debug)]
pub struct BudgetListJob {
    cluster: Cluster,
    rules: EvictionRules,
    drains: KnownDrains,
    now: Timestamp,
    changes: u64,
}

impl Model {
    /// Returns the next job that computes the list; `None` if the list is up to date, or there never was a budget.
    pub fn next_budgets_job(&self, now: Timestamp) -> Option<BudgetListJob> {
        if self.cluster.budgets().is_empty() && self.predictions.budgets().is_none() {
            return None;
        }
        let changes = self.changes.plans();
        let (draining, blocked) = (draining(&self.watchlist), self.views.blocked_drains.clone());
        let drains = KnownDrains { draining, blocked };
        if self.predictions.budgets().is_some_and(|list| list.changes == changes && list.drains == drains) {
            return None;
        }
        Some(BudgetListJob {
            cluster: self.cluster.clone(),
            rules: EvictionRules::from(&self.settings),
            drains,
            now,
            changes,
        })
    }

    /// Computes the list at once, unless it is up to date.
    pub fn run_budgets(&mut self, now: Timestamp) {
        if let Some(job) = self.next_budgets_job(now) {
            self.predictions.set_budgets(job.work());
        }
    }
}

/// Nodes that are being drained.
fn draining(watchlist: &NodeWatchlist) -> BTreeSet<NodeName> {
    let is_draining = |(_, state): &(&NodeName, NodeState)| *state == NodeState::Draining;
    watchlist.notable().filter(is_draining).map(|(node, _)| node.clone()).collect()
}

impl BudgetListJob {
    pub fn work(self) -> BudgetList {
        let budgets = self.cluster.budgets();
        let state = |budget| BudgetState::new(&self.cluster, budget, &self.rules, self.now);
        let states: BTreeMap<Key, BudgetState> =
            budgets.iter().map(|budget| (budget.key.clone(), state(budget))).collect();
        let rows = budgets.iter().map(|budget| (budget.key.clone(), self.row(budget, &states)));
        let rows = rows.collect();
        BudgetList { rows, changes: self.changes, drains: self.drains }
    }

    fn row(&self, budget: &Budget, states: &BTreeMap<Key, BudgetState>) -> BudgetRow {
        let pods: Vec<&Arc<Pod>> = budget::pods_of(&self.cluster, budget, &self.rules).collect();
        let state = &states[&budget.key];
        let mut row = BudgetRow {
            key: budget.key.clone(),
            rule: rule(budget),
            room: room(&self.cluster, state, &pods),
            numbers: state.numbers,
            pods: pods.iter().map(|pod| pod.key.clone()).collect(),
            nodes: pods.iter().filter_map(|pod| pod.node.clone()).collect(),
            refused: Vec::new(),
            blocks: BTreeSet::new(),
            shares_with: BTreeSet::new(),
            drains: self.drains(budget, &pods),
        };
        for pod in pods {
            let decision = eviction::decision(&self.cluster, pod, states, &self.rules);
            let others =
                self.cluster.budgets_of(pod).map(|other| &other.key).filter(|key| **key != budget.key);
            row.shares_with.extend(others.cloned());
            if let EvictionDecision::Blocked(block) = decision
                && !matches!(block, EvictionBlock::NamespaceTerminating)
                && pod.is_workload()
            {
                row.refused.push(pod.key.clone());
                row.blocks.extend(pod.node.clone());
            }
        }
        row
    }

    /// Returns the drains of the nodes that have at least one of `pods`, the pods that the budget selects.
    fn drains(&self, budget: &Budget, pods: &[&Arc<Pod>]) -> Vec<DrainUnderBudget> {
        let blocked_since = |node: &NodeName| {
            let is_it = |drain: &&BlockedDrain| drain.node == *node && drain.budgets.contains(&budget.key);
            self.drains.blocked.iter().find(is_it).map(|drain| drain.since)
        };
        let nodes: BTreeSet<&NodeName> = pods.iter().filter_map(|pod| pod.node.as_ref()).collect();
        let is_drained =
            |node: &&NodeName| self.drains.draining.contains(*node) || blocked_since(node).is_some();
        let drain = |node: &NodeName| {
            let object = self.cluster.node(node);
            let claimed = object.and_then(|node| Some(node.drain_claim.as_ref()?.by.clone()));
            let foreign = || {
                let drain = foreign_drain(&self.cluster, object?, &self.rules, self.now)?;
                Some(drain.by?.to_owned())
            };
            let by = claimed.or_else(foreign).or_else(|| Some(object?.cordon()?.by.clone()));
            DrainUnderBudget { node: node.clone(), by, blocked_since: blocked_since(node) }
        };
        nodes.into_iter().filter(is_drained).map(drain).collect()
    }
}

/// Returns how many pods a budget lets go now. `pods` are the pods that the budget selects.
fn room(cluster: &Cluster, state: &BudgetState, pods: &[&Arc<Pod>]) -> BudgetRoom {
    let gaps = cluster.gaps([FeedKind::Pods]).unknown();
    match state.numbers.allowed {
        _ if !gaps.is_empty() => BudgetRoom::Unknown(gaps),
        _ if state.stale => BudgetRoom::NotComputed,
        allowed @ 1.. => BudgetRoom::Now(allowed),
        _ if pods.is_empty() => BudgetRoom::NoPods,
        _ if let Some(operator) = operator_of(pods, state) => BudgetRoom::Operator(operator),
        _ => match never_allows(state) {
            Some(pattern) => BudgetRoom::Never(pattern),
            None => {
                let BudgetNumbers { desired, healthy, .. } = state.numbers;
                BudgetRoom::After(desired.saturating_sub(healthy).saturating_add(1).max(1))
            }
        },
    }
}

/// Returns the operator (software) of the pods, if all pods are healthy and the budget still lets none of them go.
fn operator_of(pods: &[&Arc<Pod>], state: &BudgetState) -> Option<&'static OperatorBudget> {
    let are_well = pods.iter().all(|pod| pod.is_ready() && pod.termination.is_none());
    let operator = operator_of_pod(pods.first()?).filter(|_| are_well)?;
    (state.numbers.healthy >= state.numbers.expected).then_some(operator)
}

/// Returns the rule of a budget's spec: `minAvailable 2`, `maxUnavailable 25%`; empty if none is set.
fn rule(budget: &Budget) -> String {
    let text = |name: &str, value: IntOrPercent| match value {
        IntOrPercent::Int(number) => format!("{name} {number}"),
        IntOrPercent::Percent(percent) => format!("{name} {percent}%"),
    };
    let most = budget.max_unavailable.map(|value| text("maxUnavailable", value));
    most.or_else(|| Some(text("minAvailable", budget.min_available?))).unwrap_or_default()
}
