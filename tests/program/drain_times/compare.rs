//! Compares a plan with the actual drain, and computes figures of the difference.

use std::{collections::BTreeSet, fmt, ops::RangeInclusive};

use kordon_core::plan::{BudgetPlan, NodePlan, Plan, PlanEvent, PodPlan, Window};
use kordon_time::{Span, Timestamp};

use super::facts::Facts;

/// Longest time until an operation reacts to a change of the cluster (`LOOK` in `src/run/operation_driver.rs`).
/// Requests take no virtual time.
const REACTION: Span = Span::from_millis(50);
/// Seconds until a replacement is Ready, as plans measure them: each pod of the initial cluster was Ready this long
/// after its creation (`set_running` in `crates/kordon-demo/src/seed/pods.rs`).
const PLANNED_START: f64 = 4.0;
/// Least and most seconds until a replacement is Ready. Its kubelet draws three parts at random: 0.1 to 0.5 s, 0.6 to
/// 2.2 s, and 0.4 to 1.4 s (`next_step` in `crates/kordon-demo/src/kubelets/containers.rs`).
const STARTS: [f64; 2] = [1.1, 4.1];
/// Number of nodes from which some have to be faster and some slower than likely. If the likely time is the median, all
/// of them are on one side in one of 128 drains.
const SEVERAL: usize = 8;

/// Differences between a plan and the actual drain.
pub struct Comparison {
    leaves: Times,
    gone: Times,
    /// Number of pairs of pods of which one leaves, at the latest, before the other leaves at the soonest ([`range`]).
    pairs: usize,
    /// The pairs that left in the other order.
    out_of_order: Vec<String>,
    /// Pods that were refused by a budget.
    refused: Sets,
    /// Budgets that refused a pod.
    budgets: Sets,
    /// Budgets that refused a pod at the beginning of the drain.
    first_budgets: Sets,
    /// Budgets that select more pods on the drained nodes than the number of evictions that they allow at a time.
    scarce: BTreeSet<String>,
    /// Pods that left the nodes.
    left: Sets,
    /// Predicted soonest, likely and latest end of the drain, counted from its beginning.
    predicted_end: [Option<Span>; 3],
    ended: Span,
    /// Actual time divided by predicted time until a node's pods were gone; one ratio for each node, in ascending
    /// order.
    node_ratios: Vec<f64>,
    /// The nodes that were empty before the soonest or after the latest predicted time.
    outside: Vec<String>,
}

/// Predicted and actual members of a set, such as the budgets that refused a pod.
struct Sets {
    predicted: BTreeSet<String>,
    happened: BTreeSet<String>,
}

/// Errors of the predicted times of one kind of event, over all pods.
#[derive(Default)]
struct Times {
    /// Actual minus likely time.
    errors: Vec<Span>,
    /// The pods whose actual times are outside of their ranges.
    outside: Vec<String>,
}

impl Comparison {
    pub fn new(plan: &Plan, facts: &Facts) -> Self {
        let planned = |pod: &&PodPlan| pod.leaves.likely.is_some();
        let pods: Vec<&PodPlan> = plan.pods.iter().filter(planned).collect();
        let name = |pod: &PodPlan| pod.pod.to_string();
        let (mut leaves, mut gone) = (Times::default(), Times::default());
        for pod in &pods {
            if let Some(at) = facts.left.get(&pod.uid.to_string()) {
                leaves.add(pod, pod.leaves, plan.made, *at);
            }
            if let Some(at) = facts.gone.get(&pod.uid.to_string()) {
                gone.add(pod, pod.gone, plan.made, *at);
            }
        }
        let (pairs, out_of_order) = order(&pods, facts, plan.made);
        let (predicted, predicted_at_once) = (refusals(plan, Timestamp::MAX), refusals(plan, plan.made));
        let at_once = |at: Timestamp| at.since(facts.began) <= REACTION;
        let happened = || facts.refused.iter().map(|(refusal, at)| (refusal.clone(), *at));
        let happened_at_once = happened().filter(|(_, at)| at_once(*at)).map(|(refusal, _)| refusal.1);
        let ends = plan.totals.ends;
        Self {
            leaves,
            gone,
            pairs,
            out_of_order,
            refused: Sets {
                predicted: predicted.iter().map(|(pod, _)| pod.clone()).collect(),
                happened: happened().map(|((pod, _), _)| pod).collect(),
            },
            budgets: Sets {
                predicted: predicted.iter().map(|(_, budget)| budget.clone()).collect(),
                happened: happened().map(|((_, budget), _)| budget).collect(),
            },
            first_budgets: Sets {
                predicted: predicted_at_once.into_iter().map(|(_, budget)| budget).collect(),
                happened: happened_at_once.collect(),
            },
            scarce: scarce(plan),
            left: Sets {
                predicted: pods.iter().map(|pod| name(pod)).collect(),
                happened: plan
                    .pods
                    .iter()
                    .filter(|pod| facts.left.contains_key(&pod.uid.to_string()))
                    .map(name)
                    .collect(),
            },
            predicted_end: [ends.soonest, ends.likely, ends.latest]
                .map(|at| at.map(|at| at.since(plan.made))),
            ended: facts.ended.since(facts.began),
            node_ratios: node_ratios(plan, facts),
            outside: nodes_outside(plan, facts),
        }
    }

    /// Asserts what has to hold for every cluster. Which pods obey SIGTERM and which wait for the end of their grace
    /// period is random.
    pub fn check(&self) {
        assert_eq!(self.left.predicted, self.left.happened, "who leaves");
        let [soonest, _, latest] = self.predicted_end.map(|end| end.expect("it ends"));
        assert!(soonest <= self.ended && self.ended <= latest, "ended after {}", self.ended);
        assert!(self.outside.is_empty(), "nodes outside their range: {:?}", self.outside);
        let faster = self.node_ratios.iter().filter(|ratio| **ratio < 1.0).count();
        let is_biased = faster == 0 || faster == self.node_ratios.len();
        assert!(!is_biased || self.node_ratios.len() < SEVERAL, "the likely time: {:?}", self.node_ratios);
        assert!(self.pairs > 0 && self.out_of_order.is_empty(), "the order: {:?}", self.out_of_order);
        assert_eq!(
            self.first_budgets.predicted, self.first_budgets.happened,
            "the budgets that refuse at once"
        );
        // A budget may also refuse pods later in the drain: if the drains of two nodes with pods of the budget start at
        // almost the same time, no replacement is Ready yet. Whether this happens is random, because the drain of a
        // node starts when the last pod of another node is gone. Only the budgets that can refuse are known beforehand.
        for (which, budgets) in [("predicted", &self.budgets.predicted), ("happened", &self.budgets.happened)]
        {
            let others: Vec<&String> = budgets.difference(&self.scarce).collect();
            assert!(
                others.is_empty(),
                "{which}: refused by {others:?}, which allow all of their pods to leave"
            );
        }
        for times in [&self.leaves, &self.gone] {
            assert!(times.outside.is_empty(), "outside of their ranges: {:?}; {times}", times.outside);
        }
    }
}

impl Times {
    fn add(&mut self, pod: &PodPlan, window: Window, made: Timestamp, happened: Timestamp) {
        self.errors.extend(window.likely.map(|likely| happened.since(likely)));
        if !range(window, made).is_some_and(|range| range.contains(&happened)) {
            self.outside.push(format!("{} {happened}", pod.pod));
        }
    }

    fn percentile(&self, percent: usize) -> f64 {
        let mut sorted = self.errors.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len().saturating_sub(1) * percent / 100).map_or(0.0, |error| error.as_secs_f64())
    }
}

/// Returns the refusals until `until` that a plan predicts, as pairs of a pod and its budget.
fn refusals(plan: &Plan, until: Timestamp) -> BTreeSet<(String, String)> {
    let moments = plan.timeline.iter().filter(|moment| moment.at <= until);
    let refusals = moments.filter_map(|moment| match &moment.event {
        PlanEvent::Refused { pod, budget: Some(budget) } => Some((pod.to_string(), budget.to_string())),
        _ => None,
    });
    refusals.collect()
}

fn scarce(plan: &Plan) -> BTreeSet<String> {
    let allows = |budget: &BudgetPlan| usize::try_from(budget.before.numbers.allowed).unwrap_or(0);
    let scarce = plan.budgets.iter().filter(|budget| budget.pods > allows(budget));
    scarce.map(|budget| budget.budget.to_string()).collect()
}

fn node_ratios(plan: &Plan, facts: &Facts) -> Vec<f64> {
    let ratio = |node: &NodePlan| {
        let drain = node.drain.as_ref()?;
        let predicted = drain.ends.likely?.since(drain.starts).as_secs_f64();
        let pods = || plan.pods.iter().filter(|pod| pod.node.as_ref() == Some(&node.node));
        let began = pods().filter_map(|pod| facts.left.get(&pod.uid.to_string())).min()?;
        let ended = pods().filter_map(|pod| facts.gone.get(&pod.uid.to_string())).max()?;
        Some(ended.since(*began).as_secs_f64() / predicted)
    };
    let mut ratios: Vec<f64> = plan.nodes.iter().filter_map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    ratios
}

/// Returns the nodes whose last pod was not gone within the predicted range.
fn nodes_outside(plan: &Plan, facts: &Facts) -> Vec<String> {
    let outside = |node: &NodePlan| {
        let window = node.drain.as_ref()?.ends;
        let pods = plan.pods.iter().filter(|pod| pod.node.as_ref() == Some(&node.node));
        let ended = pods.filter_map(|pod| facts.gone.get(&pod.uid.to_string())).max()?;
        let is_within = range(window, plan.made).is_some_and(|range| range.contains(ended));
        (!is_within).then(|| format!("{} {ended}", node.node))
    };
    plan.nodes.iter().filter_map(outside).collect()
}

/// Returns the times at which an event may happen: those of the plan, but with the [`STARTS`] of replacements instead
/// of the planned ones; `None` if the event may never happen. At the soonest, pods end at once, so the time until then
/// is that of starts.
fn range(window: Window, made: Timestamp) -> Option<RangeInclusive<Timestamp>> {
    let (soonest, latest) = (window.soonest?, window.latest?);
    let starts = soonest.since(made).as_secs_f64() / PLANNED_START;
    let [least, most] = STARTS;
    let early = Span::from_secs_f64(starts * (PLANNED_START - least));
    let late = Span::from_secs_f64(starts * (most - PLANNED_START + REACTION.as_secs_f64()));
    Some(soonest - early..=latest + late + REACTION)
}

fn order(pods: &[&PodPlan], facts: &Facts, made: Timestamp) -> (usize, Vec<String>) {
    let is_before = |one: &PodPlan, other: &PodPlan| {
        let ranges = range(one.leaves, made).zip(range(other.leaves, made));
        ranges.is_some_and(|(one, other)| one.end() < other.start())
    };
    let (mut pairs, mut out_of_order) = (0, Vec::new());
    for (place, one) in pods.iter().enumerate() {
        for other in &pods[place + 1..] {
            let (Some(one_at), Some(other_at)) =
                (facts.left.get(&one.uid.to_string()), facts.left.get(&other.uid.to_string()))
            else {
                continue;
            };
            let (first, second) = match (is_before(one, other), is_before(other, one)) {
                (false, false) => continue,
                (true, _) => (one_at, other_at),
                (_, true) => (other_at, one_at),
            };
            pairs += 1;
            if first > second {
                out_of_order.push(format!("{} {one_at}, {} {other_at}", one.pod, other.pod));
            }
        }
    }
    (pairs, out_of_order)
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [soonest, likely, latest] =
            self.predicted_end.map(|end| end.map_or("never".into(), |end| end.to_string()));
        writeln!(f, "total: predicted {likely} ({soonest} to {latest}), was {}", self.ended)?;
        let ratios: Vec<String> = self.node_ratios.iter().map(|ratio| format!("{ratio:.2}")).collect();
        writeln!(f, "nodes, actual per predicted: {}", ratios.join(" "))?;
        writeln!(f, "order: {} of {} pairs left otherwise", self.out_of_order.len(), self.pairs)?;
        writeln!(f, "pods that leave: {}", self.left)?;
        writeln!(f, "budgets that refuse: {}", self.budgets)?;
        writeln!(f, "budgets that refuse at once: {}", self.first_budgets)?;
        writeln!(f, "pods that are refused: {}", self.refused)?;
        writeln!(f, "leaves, seconds later than likely: {}", self.leaves)?;
        writeln!(f, "gone, seconds later than likely: {}", self.gone)
    }
}

impl fmt::Display for Sets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (predicted, happened) = (&self.predicted, &self.happened);
        write!(f, "{} predicted and so", predicted.intersection(happened).count())?;
        let reported = |missing: Vec<&String>| {
            let some: Vec<&str> = missing.iter().take(5).map(|name| name.as_str()).collect();
            format!("{} {some:?}", missing.len())
        };
        write!(f, "; only predicted: {}", reported(predicted.difference(happened).collect()))?;
        write!(f, "; only happened: {}", reported(happened.difference(predicted).collect()))
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for percent in [0, 5, 25, 50, 75, 95, 100] {
            write!(f, "p{percent} {:.1}, ", self.percentile(percent))?;
        }
        write!(f, "{} of {} outside of their ranges", self.outside.len(), self.errors.len())
    }
}
