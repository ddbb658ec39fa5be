//! Soft spread constraints, or the scheduler's defaults where a pod has none (PodTopologySpread, ScheduleAnyway).

use std::sync::Arc;

use super::{
    super::{
        columns::{ABSENT, LabelColumn},
        filter::{Filters, Tally, counted_nodes, effective_selector},
        snapshot::{HOSTNAME, ZONE},
    },
    MOST,
};
use crate::cluster::{Selector, scheduling::SpreadConstraint};

/// The constraints to score by.
struct SoftConstraints {
    constraints: Vec<(SpreadConstraint, Option<Selector>)>,
    /// Whether nodes without one of the labels are excluded: not with the default constraints.
    needs_all_labels: bool,
}

/// More points for fewer selected pods in the domains of the node.
pub(super) fn points(filters: &Filters<'_>, feasible: &[u32]) -> Option<Vec<i64>> {
    let soft = SoftConstraints::of(filters)?;
    let columns: Vec<Arc<LabelColumn>> = soft
        .constraints
        .iter()
        .map(|(spread, _)| filters.snapshot.column(&spread.topology_key).clone())
        .collect();
    let has_all = |node: u32| columns.iter().all(|column| column.of_node[node as usize] != ABSENT);
    let scored: Vec<Option<u32>> =
        feasible.iter().map(|node| (!soft.needs_all_labels || has_all(*node)).then_some(*node)).collect();
    let mut sums = vec![0.0; feasible.len()];
    for ((spread, selector), column) in soft.constraints.iter().zip(&columns) {
        let counts = Counts::new(filters, &soft, spread, selector.as_ref(), column, &columns, &scored);
        for (sum, node) in sums.iter_mut().zip(&scored) {
            *sum += node.and_then(|node| counts.cost(node, spread.max_skew)).unwrap_or(0.0);
        }
    }
    let rounded = filters.snapshot.rules().spread_is_rounded;
    #[expect(clippy::cast_possible_truncation, reason = "counts of pods are far below 2^53")]
    let whole = |sum: f64| if rounded { sum.round() as i64 } else { sum as i64 };
    let raw: Vec<Option<i64>> =
        sums.iter().zip(&scored).map(|(sum, node)| node.map(|_| whole(*sum))).collect();
    Some(normalised(&raw))
}

/// 100 for the lowest of the sums; a node without a sum has 0.
fn normalised(raw: &[Option<i64>]) -> Vec<i64> {
    let least = raw.iter().flatten().copied().min().unwrap_or_default();
    let most = raw.iter().flatten().copied().max().unwrap_or_default();
    let points = |raw: &Option<i64>| match raw {
        None => 0,
        Some(_) if most == 0 => MOST,
        Some(raw) => MOST * (most + least - raw) / most,
    };
    raw.iter().map(points).collect()
}

impl SoftConstraints {
    fn of(filters: &Filters<'_>) -> Option<Self> {
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

/// How many of the selected pods are in each domain, and what one of them costs.
struct Counts {
    tally: Tally,
    /// Grows with the number of domains, which keeps many small domains from outweighing few large ones.
    price: f64,
}

impl Counts {
    fn new(
        filters: &Filters<'_>,
        soft: &SoftConstraints,
        spread: &SpreadConstraint,
        selector: Option<&Selector>,
        column: &Arc<LabelColumn>,
        columns: &[Arc<LabelColumn>],
        scored: &[Option<u32>],
    ) -> Self {
        let (snapshot, request) = (filters.snapshot, filters.request);
        let keys = if soft.needs_all_labels { columns } else { &[] };
        let (counted, places) = if *spread.topology_key == *HOSTNAME {
            // A node's own pods count whatever the policies say.
            (vec![true; column.of_node.len()], scored.iter().flatten().count())
        } else {
            let counted = counted_nodes(snapshot, request, &filters.nodes, spread, keys);
            (counted, distinct(column, scored))
        };
        #[expect(clippy::cast_precision_loss, reason = "fewer nodes than 2^53")]
        let price = ((places + 2) as f64).ln();
        Self { tally: Tally::new(snapshot, request, column.clone(), counted, selector), price }
    }

    /// The cost of the pods in the domain of a node; none if it is in no domain.
    fn cost(&self, node: u32, max_skew: i32) -> Option<f64> {
        let place = self.tally.column.of_node[node as usize];
        #[expect(clippy::cast_precision_loss, reason = "fewer pods than 2^53")]
        let pods = *self.tally.counts.get(place as usize)? as f64;
        Some(pods * self.price + f64::from(max_skew - 1))
    }
}

/// How many different domains the nodes are in; none counts as one.
fn distinct(column: &LabelColumn, nodes: &[Option<u32>]) -> usize {
    let mut seen = vec![false; column.values.len() + 1];
    for node in nodes.iter().flatten() {
        let place = column.of_node[*node as usize];
        seen[if place == ABSENT { column.values.len() } else { place as usize }] = true;
    }
    seen.iter().filter(|seen| **seen).count()
}
