//! What an operator's action would do, worked out over a snapshot: cordon, drain, taint, label, evict, delete.
//!
//! [`Plan::new`] turns an [`Action`] and a [`Cluster`] into a verdict per pod, steps, a timeline, totals, warnings,
//! the flags that are missing, the permissions that it takes, the equivalent kubectl command, and its undo. A plan
//! is a function of what it is given: same snapshot, same plan.

mod assemble;
pub mod budget;
pub mod cordon;
pub mod drain;
pub mod eviction;
pub mod filter;
pub mod headroom;
pub mod placement_trace;
pub mod kubectl;
pub mod label;
mod outlook;
pub mod owner;
pub mod permission;
pub mod placing_environment;
pub mod rehouse;
pub mod rules;
pub mod simulation;
pub mod step;
pub mod environment;
pub mod syntax;
pub mod taint;
pub mod undo;
pub mod verdict;
pub mod warning;
pub mod words;

use std::{collections::BTreeSet, sync::Arc};

pub use drain::DrainOptions;
pub use environment::{Bound, Environment, Estimate, Landing, Quality, TypicalEnvironment};
pub use eviction::{EvictionAnswer, EvictionBlock, FreeEviction};
pub use filter::{DrainFlag, DrainRefusal, Skip};
pub use headroom::{Headroom, HeadroomLoss, HeadroomLosses, headroom};
pub use owner::NotRecreated;
pub use permission::Permission;
pub use placement_trace::{Displaced, PlacementTrace, Receiver, RunTrace};
pub use placing_environment::PlacingEnvironment;
pub use rehouse::{Departure, rehouse};
pub use rules::EvictionRules;
pub use simulation::{RemovalMode, Retry};
pub use step::{Call, PlanStep};
pub use taint::TaintEdits;
pub use undo::Undo;
pub use verdict::{BlockPattern, LeaveReason, Verdict};
pub use warning::Warning;

use crate::{
    cluster::{Cluster, Key, Labels, Name, NodeName, OwnerKind, Taint, Uid},
    engine::ServerVersion,
    placement::Snapshot,
    time::{Span, Timestamp},
};
use label::LabelEdits;

/// What an operator asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    Cordon { nodes: Vec<NodeName> },
    Uncordon { nodes: Vec<NodeName> },
    Taint { nodes: Vec<NodeName>, edits: TaintEdits },
    Label { nodes: Vec<NodeName>, edits: LabelEdits },
    Drain { nodes: Vec<NodeName>, options: DrainOptions },
    Evict { pods: Vec<Key>, options: RemovalOptions },
    Delete { pods: Vec<Key>, options: RemovalOptions },
}

/// How pods are evicted or deleted by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemovalOptions {
    /// Replaces the pods' own grace periods.
    pub grace: Option<Span>,
    /// None: for ever.
    pub timeout: Option<Span>,
    pub retry: Retry,
}

/// What an action would do.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub action: Action,
    /// When it was made; times in it are on the same clock.
    pub made: Timestamp,
    pub version: ServerVersion,
    /// In the order in which they are handled.
    pub nodes: Vec<NodePlan>,
    /// By node in that order, then in the order in which they are tried; skipped ones last.
    pub pods: Vec<PodPlan>,
    /// The nodes that receive pods, by name; empty where nobody works placements out.
    pub receivers: Vec<Receiver>,
    /// Pods that wait for a place and find one by this; empty where nobody works placements out.
    pub arrivals: Vec<Arrival>,
    /// The budgets that the pods meet, by name.
    pub budgets: Vec<BudgetPlan>,
    /// What would be written, in order.
    pub steps: Vec<PlanStep>,
    /// What would happen, likely, in order of time.
    pub timeline: Vec<PlanMoment>,
    pub totals: PlanTotals,
    pub warnings: Vec<Warning>,
    /// The fewest flags without which it does not begin.
    pub needs: BTreeSet<DrainFlag>,
    /// What whoever carries it out must be allowed to do.
    pub permissions: Vec<Permission>,
    /// The same in kubectl's words; none where kubectl has none.
    pub command: Option<String>,
    pub undo: Undo,
    pub assumptions: Vec<&'static str>,
}

/// What happens to a node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodePlan {
    pub node: NodeName,
    pub uid: Uid,
    pub change: NodeChange,
    /// Of a drain: how that goes.
    pub drain: Option<NodeDrain>,
}

/// What is written to a node.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeChange {
    Cordon,
    Uncordon,
    Taints {
        before: Vec<Taint>,
        after: Vec<Taint>,
    },
    Labels {
        before: Labels,
        after: Labels,
    },
    /// Nothing, for it is so already.
    None,
    /// Nothing, for the request makes no sense on this node.
    Refused {
        text: String,
    },
}

/// How the drain of a node goes.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeDrain {
    /// Whether kubectl would touch none of its pods for want of a flag; the rest is told as if it had been given.
    pub refused: bool,
    /// kubectl's words for the refusals.
    pub refusals: Vec<String>,
    pub starts: Timestamp,
    pub ends: Window,
    /// Whether a node before it never ends, so that it starts only if somebody goes on regardless.
    pub regardless: bool,
    /// The budget that the last of its pods waited for.
    pub dominated_by: Option<Key>,
    /// Pods that are on it in the end, and why.
    pub remaining: usize,
}

/// When something happens; none is never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    pub soonest: Option<Timestamp>,
    pub likely: Option<Timestamp>,
    pub latest: Option<Timestamp>,
}

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
    pub judgement: Option<Arc<PlacementTrace>>,
    /// When its replacement is Ready, likely.
    pub ready_again: Option<Timestamp>,
    /// What the times are worth.
    pub quality: Quality,
}

/// A pod that waited for a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub pod: Key,
    /// Where it finds one.
    pub node: NodeName,
    pub why: Name,
}

/// A budget that the pods of a plan meet.
#[derive(Clone, Debug, PartialEq)]
pub struct BudgetPlan {
    pub budget: Key,
    pub before: budget::BudgetState,
    /// As it stands in the end, likely.
    pub after: budget::BudgetState,
    /// Pods of the plan that it protects.
    pub pods: usize,
}

/// Something that happens at a time, in the likely course.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanMoment {
    pub at: Timestamp,
    pub what: PlanEvent,
}

/// What happens.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanEvent {
    NodeStarts { node: NodeName },
    NodeEnds { node: NodeName },
    Leaves { pod: Key },
    Refused { pod: Key, budget: Option<Key> },
    Gone { pod: Key },
    Replaced { of: Key, landing: Landing },
    Ready { of: Key },
    GaveUp { pod: Key },
}

/// Counts over a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanTotals {
    pub nodes: usize,
    /// Nodes that are written to.
    pub changed: usize,
    /// Nodes whose request is refused, or none of whose pods would be touched.
    pub refused_nodes: usize,
    pub pods: usize,
    pub leave_now: usize,
    pub leave_later: usize,
    pub leaving_already: usize,
    pub stay: usize,
    /// Waiting for something that may or may not come.
    pub wait: usize,
    pub blocked: usize,
    pub refused_pods: usize,
    pub lost: usize,
    pub data_lost: usize,
    /// Replacements that land on a node that is known by name.
    pub placed: usize,
    /// Replacements that stay Pending.
    pub pending: usize,
    /// Pods that replacements displace.
    pub displaced: usize,
    /// When everything is over; none where it never is.
    pub ends: Window,
}

/// Why no plan can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Nothing is done where one name is wrong.
    #[error("nodes {} not found: nothing would be done", quoted(.0))]
    NoSuchNode(Vec<NodeName>),
    #[error("pods {} not found: nothing would be done", quoted(.0))]
    NoSuchPod(Vec<Key>),
}

fn quoted<T: std::fmt::Display>(names: &[T]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    names.join(", ")
}

/// How a plan goes, in short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Prospect {
    /// It comes to its end.
    Completes,
    /// Something waits for what may or may not come, or the time allowed is too short.
    Stalls,
    /// Something can never go.
    Blocked,
    /// It does not begin, or not on every node, without more options.
    Refused,
}

impl Plan {
    /// Works an action out: with where pods land, by this snapshot of the same cluster, or without.
    ///
    /// # Errors
    /// A node or pod that is named is not there.
    pub fn over(
        action: Action,
        cluster: &Cluster,
        snapshot: Option<Snapshot>,
        version: ServerVersion,
        now: Timestamp,
    ) -> Result<Self, PlanError> {
        match snapshot {
            Some(snapshot) => {
                Self::new(action, cluster, &PlacingEnvironment::new(cluster, snapshot, now), version, now)
            }
            None => Self::new(action, cluster, &TypicalEnvironment { cluster, now }, version, now),
        }
    }

    /// Works an action out. `environment` says what others do meanwhile ([`PlacingEnvironment`], or [`TypicalEnvironment`] without a placement).
    ///
    /// # Errors
    /// A node or pod that is named is not there.
    pub fn new<S: Environment>(
        action: Action,
        cluster: &Cluster,
        surroundings: &S,
        version: ServerVersion,
        now: Timestamp,
    ) -> Result<Self, PlanError> {
        let rules = EvictionRules::of(version);
        match &action {
            Action::Cordon { nodes } => cordon::cordon(&action, cluster, nodes, &rules, now),
            Action::Uncordon { nodes } => {
                cordon::uncordon(&action, cluster, nodes, surroundings, &rules, now)
            }
            Action::Taint { nodes, edits } => {
                taint::plan(&action, cluster, nodes, edits, surroundings, &rules, now)
            }
            Action::Label { nodes, edits } => label::plan(&action, cluster, nodes, edits, &rules, now),
            Action::Drain { nodes, options } => {
                drain::plan(&action, cluster, nodes, options, surroundings, &rules, now)
            }
            Action::Evict { pods, options } => {
                drain::remove(&action, cluster, pods, *options, RemovalMode::Evict, surroundings, &rules, now)
            }
            Action::Delete { pods, options } => drain::remove(
                &action,
                cluster,
                pods,
                *options,
                RemovalMode::Delete,
                surroundings,
                &rules,
                now,
            ),
        }
    }

    /// Whether it would come to its end, and if not, what is the worst of it.
    pub fn prospect(&self) -> Prospect {
        let totals = &self.totals;
        if totals.refused_nodes > 0 || totals.refused_pods > 0 {
            Prospect::Refused
        } else if totals.blocked > 0 {
            Prospect::Blocked
        } else if totals.wait > 0 || totals.ends.likely.is_none() || self.times_out() {
            Prospect::Stalls
        } else {
            Prospect::Completes
        }
    }

    /// Whether the time allowed is over before some pod is gone.
    pub fn times_out(&self) -> bool {
        self.pods.iter().any(|pod| pod.times_out.is_some())
    }

    /// An empty plan of an action, to be filled.
    fn blank(action: &Action, rules: &EvictionRules, now: Timestamp) -> Self {
        Self {
            action: action.clone(),
            made: now,
            version: rules.version,
            nodes: Vec::new(),
            pods: Vec::new(),
            receivers: Vec::new(),
            arrivals: Vec::new(),
            budgets: Vec::new(),
            steps: Vec::new(),
            timeline: Vec::new(),
            totals: PlanTotals::default(),
            warnings: Vec::new(),
            needs: BTreeSet::new(),
            permissions: Vec::new(),
            command: kubectl::command(action),
            undo: Undo::default(),
            assumptions: Vec::new(),
        }
    }
}

/// Looks nodes up by name; all or nothing, and each once.
fn nodes_named(cluster: &Cluster, names: &[NodeName]) -> Result<Vec<Arc<crate::cluster::Node>>, PlanError> {
    let mut seen = BTreeSet::new();
    let names: Vec<&NodeName> = names.iter().filter(|name| seen.insert((*name).clone())).collect();
    let missing: Vec<NodeName> =
        names.iter().filter(|name| cluster.node(name).is_none()).map(|name| (*name).clone()).collect();
    if !missing.is_empty() {
        return Err(PlanError::NoSuchNode(missing));
    }
    Ok(names.into_iter().filter_map(|name| cluster.node(name).cloned()).collect())
}
