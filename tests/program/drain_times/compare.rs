//! Holds a plan against what happened, and puts the difference into figures.

use std::{collections::BTreeSet, fmt};

use kordon::{
    plan::{Plan, PlanEvent, PodPlan, Window},
    time::{Span, Timestamp},
};

use super::facts::Facts;

/// Two pods count as predicted one after the other when they are this far apart.
const APART: Span = Span::from_secs(1);

/// How a plan and what happened differ.
pub struct Comparison {
    leaves: Times,
    gone: Times,
    /// Pairs of pods of the plan that leave apart from each other, and how many left in that order.
    pairs: usize,
    in_order: usize,
    /// Pods that were predicted to be refused by a budget, and that were.
    refused: Sets,
    /// The budgets that do so.
    budgets: Sets,
    /// Who was predicted to leave, and who left of those on the nodes.
    left: Sets,
    /// From the beginning.
    predicted_end: [Option<Span>; 3],
    ended: Span,
}

/// Predicted and happened.
struct Sets {
    predicted: BTreeSet<String>,
    happened: BTreeSet<String>,
}

/// Of one moment in the life of each pod.
#[derive(Default)]
struct Times {
    /// Happened minus likely.
    errors: Vec<Span>,
    /// How many came neither sooner than the soonest nor later than the latest, give or take a second.
    within: usize,
}

impl Comparison {
    pub fn new(plan: &Plan, facts: &Facts) -> Self {
        let planned = |pod: &&PodPlan| pod.leaves.likely.is_some();
        let pods: Vec<&PodPlan> = plan.pods.iter().filter(planned).collect();
        let name = |pod: &PodPlan| pod.pod.to_string();
        let (mut leaves, mut gone) = (Times::default(), Times::default());
        for pod in &pods {
            if let Some(at) = facts.left.get(&*pod.uid) {
                leaves.add(pod.leaves, *at);
            }
            if let Some(at) = facts.gone.get(&*pod.uid) {
                gone.add(pod.gone, *at);
            }
        }
        let (pairs, in_order) = order(&pods, facts);
        let predicted: BTreeSet<(String, String)> = plan
            .timeline
            .iter()
            .filter_map(|moment| match &moment.event {
                PlanEvent::Refused { pod, budget: Some(budget) } => {
                    Some((pod.to_string(), budget.to_string()))
                }
                _ => None,
            })
            .collect();
        let split = |side: &BTreeSet<(String, String)>| -> (BTreeSet<String>, BTreeSet<String>) {
            side.iter().cloned().unzip()
        };
        let ((pods_predicted, budgets_predicted), (pods_refused, budgets_refused)) =
            (split(&predicted), split(&facts.refused));
        let ends = plan.totals.ends;
        Self {
            leaves,
            gone,
            pairs,
            in_order,
            refused: Sets { predicted: pods_predicted, happened: pods_refused },
            budgets: Sets { predicted: budgets_predicted, happened: budgets_refused },
            left: Sets {
                predicted: pods.iter().map(|pod| name(pod)).collect(),
                happened: plan
                    .pods
                    .iter()
                    .filter(|pod| facts.left.contains_key(&*pod.uid))
                    .map(name)
                    .collect(),
            },
            predicted_end: [ends.soonest, ends.likely, ends.latest]
                .map(|at| at.map(|at| at.since(plan.made))),
            ended: facts.ended.since(facts.began),
        }
    }

    /// What has to hold whatever the cluster: who obeys SIGTERM and who waits for the end of its grace is chance.
    pub fn check(&self) {
        assert_eq!(self.left.predicted, self.left.happened, "who leaves");
        let [soonest, _, latest] = self.predicted_end.map(|end| end.expect("it ends"));
        assert!(soonest <= self.ended && self.ended <= latest, "ended after {}", self.ended);
        assert!(self.in_order * 10 >= self.pairs * 9, "the order");
        assert!(self.budgets.differ_by() <= 2, "the budgets that refuse: {}", self.budgets);
        for times in [&self.leaves, &self.gone] {
            assert!(times.within * 10 >= times.errors.len() * 9, "the times: {times}");
        }
    }
}

impl Sets {
    fn differ_by(&self) -> usize {
        self.predicted.symmetric_difference(&self.happened).count()
    }
}

impl Times {
    fn add(&mut self, window: Window, happened: Timestamp) {
        let second = Span::from_secs(1);
        self.errors.extend(window.likely.map(|likely| happened.since(likely)));
        let soon = window.soonest.is_some_and(|soonest| soonest <= happened + second);
        let late = window.latest.is_some_and(|latest| happened <= latest + second);
        self.within += usize::from(soon && late);
    }

    fn percentile(&self, percent: usize) -> f64 {
        let mut sorted = self.errors.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len().saturating_sub(1) * percent / 100).map_or(0.0, |error| error.as_secs_f64())
    }
}

fn order(pods: &[&PodPlan], facts: &Facts) -> (usize, usize) {
    let (mut pairs, mut in_order) = (0, 0);
    for (place, one) in pods.iter().enumerate() {
        for other in &pods[place + 1..] {
            let (Some(one_at), Some(other_at)) = (facts.left.get(&*one.uid), facts.left.get(&*other.uid))
            else {
                continue;
            };
            let (Some(first), Some(second)) = (one.leaves.likely, other.leaves.likely) else { continue };
            if first.max(second).since(first.min(second)) >= APART {
                pairs += 1;
                in_order += usize::from((first < second) == (one_at < other_at));
            }
        }
    }
    (pairs, in_order)
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [soonest, likely, latest] =
            self.predicted_end.map(|end| end.map_or("never".into(), |end| end.to_string()));
        writeln!(f, "total: predicted {likely} ({soonest} to {latest}), was {}", self.ended)?;
        writeln!(f, "order: {} of {} pairs that were predicted apart left so", self.in_order, self.pairs)?;
        writeln!(f, "pods that leave: {}", self.left)?;
        writeln!(f, "budgets that refuse: {}", self.budgets)?;
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
        write!(f, "{} of {} within their bounds", self.within, self.errors.len())
    }
}
