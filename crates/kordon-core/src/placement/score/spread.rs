//! Score for soft spread constraints (PodTopologySpread, ScheduleAnyway). For a pod without spread constraints, the
//! scheduler's default constraints are used.

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

/// The spread constraints by which nodes are scored for a pod.
struct SoftConstraints {
    constraints: Vec<(SpreadConstraint, Option<Selector>)>,
    /// Whether only nodes with all topology keys get points. False for the default constraints.
    needs_all_labels: bool,
}

/// Gives a node more points if fewer selected pods are in the node's domains.
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
    // Cache of the pod classes that the previous constraint's selector selects. The constraints of a pod usually have
    // the same selector.
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
    // The outer loop runs over the constraints, so that the nodes' values of only one label are read at a time. The
    // costs of each node are still added in the order of the constraints.
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

/// Converts a sum of costs to an integer: rounds it if `rounded` is true, and truncates it otherwise.
#[expect(clippy::cast_possible_truncation, reason = "counts of pods are far below 2^53")]
#[expect(clippy::cast_precision_loss, reason = "counts of pods are far below 2^53")]
fn whole(sum: f64, rounded: bool) -> i64 {
    // Faster than `f64::round`. The result is the same, because the subtraction below is exact and costs are not
    // negative.
    let truncated = sum as i64;
    truncated + i64::from(rounded && sum - truncated as f64 >= 0.5)
}

/// Converts sums to points. The lowest sum gets 100 points.
fn normalised(mut sums: Vec<i64>) -> Vec<i64> {
    let (least, most) = super::range(&sums).unwrap_or_default();
    // Neighbouring nodes often have the same sum, so the points of the last sum are kept to save divisions.
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

/// The scheduler's default spread constraints.
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

/// Cost of each domain of one constraint. The more selected pods a domain has, the higher is its cost.
struct DomainCosts {
    column: Arc<LabelColumn>,
    /// Cost of each domain, indexed like the label values in `column.values`.
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
            // The constraint on hostnames counts the pods of every node and ignores the node policies.
            (CountedNodes::All, scored.len())
        } else {
            (CountedNodes::new(&filters.nodes, spread, keys), distinct(column, scored))
        };
        // Cost of one pod. With more domains, each domain has fewer pods, so each pod costs more.
        #[expect(clippy::cast_precision_loss, reason = "fewer nodes than 2^53")]
        let price = ((domains + 2) as f64).ln();
        let is_counted = |node| counted.counts(snapshot, request, &filters.nodes, node);
        let tally = Tally::new(snapshot, column.clone(), is_counted, pod_classes);
        #[expect(clippy::cast_precision_loss, reason = "fewer pods than 2^53")]
        let cost = |pods: &i64| *pods as f64 * price + f64::from(spread.max_skew - 1);
        Self { of_value: tally.counts.iter().map(cost).collect(), column: column.clone() }
    }

    /// Returns the cost of the node's domain; 0 if the node lacks the label.
    fn of(&self, node: u32) -> f64 {
        self.of_value.get(self.column.of_node[node as usize] as usize).copied().unwrap_or_default()
    }
}

/// Returns the number of domains to which these nodes belong. The nodes without the label count as one domain.
fn distinct(column: &LabelColumn, nodes: &[u32]) -> usize {
    let mut seen = vec![false; column.values.len() + 1];
    for node in nodes {
        let place = column.of_node[*node as usize];
        seen[if place == ABSENT { column.values.len() } else { place as usize }] = true;
    }
    seen.iter().filter(|seen| **seen).count()
}
