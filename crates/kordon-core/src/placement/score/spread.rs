//! Score for soft spread constraints, or for the scheduler's default constraints if a pod has none (PodTopologySpread,
//! ScheduleAnyway).

use std::{borrow::Cow, sync::Arc};

use super::{
    super::{
        columns::{ABSENT, LabelColumn},
        filter::{CountedNodes, Filters, Tally, effective_selector, selected_classes},
        snapshot::{HOSTNAME, ZONE},
    },
    MOST, Points,
};
use crate::cluster::{Selector, scheduling::SpreadConstraint};

/// The spread constraints to score by.
struct SoftConstraints {
    constraints: Vec<(SpreadConstraint, Option<Selector>)>,
    /// Whether nodes that lack one of the labels get no points. False for the default constraints.
    needs_all_labels: bool,
}

/// Gives a node more points for fewer selected pods in its domains.
pub(super) fn points(filters: &Filters<'_>, feasible: &[u32]) -> Points {
    let Some(soft) = SoftConstraints::from_filters(filters) else { return Points::Skipped };
    let columns: Vec<Arc<LabelColumn>> = soft
        .constraints
        .iter()
        .map(|(spread, _)| filters.snapshot.column(&spread.topology_key).clone())
        .collect();
    let has_all = |node: &u32| columns.iter().all(|column| column.of_node[*node as usize] != ABSENT);
    let is_scored = |node: &u32| !soft.needs_all_labels || has_all(node);
    let scored: Cow<'_, [u32]> = match feasible.iter().all(is_scored) {
        true => feasible.into(),
        false => feasible.iter().copied().filter(is_scored).collect(),
    };
    let mut costs: Vec<DomainCosts> = Vec::with_capacity(columns.len());
    // The constraints of a pod usually have the same selector.
    let mut selected: Option<(&Option<Selector>, Vec<u32>)> = None;
    for ((spread, selector), column) in soft.constraints.iter().zip(&columns) {
        let pod_classes = match selected {
            Some((other, pod_classes)) if other == selector => pod_classes,
            Some(_) | None => selected_classes(filters.snapshot, filters.request, selector.as_ref()),
        };
        selected = Some((selector, pod_classes.clone()));
        let keys = if soft.needs_all_labels { columns.as_slice() } else { &[] };
        costs.push(DomainCosts::new(filters, spread, pod_classes, column, keys, &scored));
    }
    let rounded = filters.snapshot.rules().spread_is_rounded;
    // Adds up constraint by constraint, so that one column is read at a time. For each node, the costs are still added
    // in the order of the constraints.
    let mut sums = vec![0.0; scored.len()];
    for costs in &costs {
        sums.iter_mut().zip(&*scored).for_each(|(sum, node)| *sum += costs.of(*node));
    }
    let sums = normalised(sums.into_iter().map(|sum| whole(sum, rounded)).collect());
    if scored.len() == feasible.len() {
        return Points::Each(sums);
    }
    let mut sums = sums.into_iter();
    let points = |node: &u32| if is_scored(node) { sums.next() } else { None };
    Points::Each(feasible.iter().map(points).map(Option::unwrap_or_default).collect())
}

/// Converts a sum of costs to an integer, rounded or truncated.
#[expect(clippy::cast_possible_truncation, reason = "counts of pods are far below 2^53")]
#[expect(clippy::cast_precision_loss, reason = "counts of pods are far below 2^53")]
fn whole(sum: f64, rounded: bool) -> i64 {
    // Cheaper than `f64::round`. The difference is exact, and costs are not negative.
    let truncated = sum as i64;
    truncated + i64::from(rounded && sum - truncated as f64 >= 0.5)
}

/// Converts sums to points. The lowest sum gets 100 points.
fn normalised(mut sums: Vec<i64>) -> Vec<i64> {
    let (least, most) = super::range(&sums).unwrap_or_default();
    // Neighbouring nodes often have the same sum, which needs no second division.
    let mut last = None;
    for sum in &mut sums {
        let points = match last {
            Some((same, points)) if same == *sum => points,
            Some(_) | None if most == 0 => MOST,
            Some(_) | None => MOST * (most + least - *sum) / most,
        };
        last = Some((*sum, points));
        *sum = points;
    }
    sums
}

impl SoftConstraints {
    fn from_filters(filters: &Filters<'_>) -> Option<Self> {
        let request = filters.request;
        let own = &request.spec.spread;
        let constraints: Vec<_> = if own.is_empty() {
            let siblings = request.siblings.as_ref().filter(|siblings| !siblings.is_empty())?;
            default_constraints().map(|spread| (spread, Some(siblings.clone()))).into()
        } else {
            let soft = own.iter().filter(|spread| !spread.hard);
            soft.map(|spread| (spread.clone(), effective_selector(spread, request))).collect()
        };
        (!constraints.is_empty()).then_some(Self { constraints, needs_all_labels: !own.is_empty() })
    }
}

/// The scheduler's default constraints.
fn default_constraints() -> [SpreadConstraint; 2] {
    [(HOSTNAME, 3), (ZONE, 5)].map(|(key, max_skew)| SpreadConstraint {
        max_skew,
        topology_key: key.into(),
        hard: false,
        selector: None,
        match_label_keys: Box::default(),
        min_domains: 1,
        honours_affinity: true,
        honours_taints: false,
    })
}

/// Cost of the selected pods in each domain of a constraint.
struct DomainCosts {
    column: Arc<LabelColumn>,
    /// Cost by value number.
    of_value: Vec<f64>,
}

impl DomainCosts {
    fn new(
        filters: &Filters<'_>,
        spread: &SpreadConstraint,
        pod_classes: Vec<u32>,
        column: &Arc<LabelColumn>,
        keys: &[Arc<LabelColumn>],
        scored: &[u32],
    ) -> Self {
        let (snapshot, request) = (filters.snapshot, filters.request);
        let (counted, domains) = if *spread.topology_key == *HOSTNAME {
            // For hostname constraints, the pods of every node count, whatever the node policies are.
            (CountedNodes::All, scored.len())
        } else {
            (CountedNodes::new(&filters.nodes, spread, keys), distinct(column, scored))
        };
        // Cost of one pod. It grows with the number of domains, because a domain has fewer pods if there are more
        // domains.
        #[expect(clippy::cast_precision_loss, reason = "fewer nodes than 2^53")]
        let price = ((domains + 2) as f64).ln();
        let is_counted = |node| counted.counts(snapshot, request, &filters.nodes, node);
        let tally = Tally::new(snapshot, column.clone(), is_counted, pod_classes);
        #[expect(clippy::cast_precision_loss, reason = "fewer pods than 2^53")]
        let cost = |pods: &i64| *pods as f64 * price + f64::from(spread.max_skew - 1);
        Self { of_value: tally.counts.iter().map(cost).collect(), column: column.clone() }
    }

    /// Returns the cost of the node's domain, or 0 if the node lacks the label.
    fn of(&self, node: u32) -> f64 {
        self.of_value.get(self.column.of_node[node as usize] as usize).copied().unwrap_or_default()
    }
}

/// Returns the number of different domains of the nodes. Nodes without the label count as one domain.
fn distinct(column: &LabelColumn, nodes: &[u32]) -> usize {
    let mut seen = vec![false; column.values.len() + 1];
    for node in nodes {
        let place = column.of_node[*node as usize];
        seen[if place == ABSENT { column.values.len() } else { place as usize }] = true;
    }
    seen.iter().filter(|seen| **seen).count()
}
