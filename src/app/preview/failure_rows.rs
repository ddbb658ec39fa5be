//! The impact of a failure of nodes, and its rows.

use std::collections::BTreeSet;

use super::rows::{Row, Rows};
use crate::app::filter::Filterable;
use kordon_core::{
    cluster::{Gaps, Key, NodeName, ZoneKey},
    forecast::{self, Forecast, Succession, Successor},
    plan::{PodOutcome, Receiver, kubectl},
};

/// Impact of a failure of nodes: what happens in addition to the forecast without the failure.
#[derive(Clone, Debug)]
pub struct FailureImpact {
    pub nodes: BTreeSet<NodeName>,
    /// Zones that fail as a whole.
    pub zones: BTreeSet<ZoneKey>,
    pub forecast: Forecast,
    pub totals: forecast::ForecastTotals,
    /// Running pods that stay on the failed nodes, because they are not evicted, and that have no row as successors.
    pub staying: Vec<(Key, NodeName)>,
    /// Gaps in what is known of the pods on the failed nodes. If there is a gap, it is unknown which pods are evicted.
    pub pods_unknown: Gaps,
    /// Gaps in what is known of the cluster's pods. If there is a gap, placements are unknown.
    pub placement_unknown: Gaps,
    /// Gaps in the inputs from which replacements are predicted. If there is a gap, replacements are likely at best,
    /// not certain.
    pub likely_for: Gaps,
    /// Successors of the evicted pods, with the way in which they were determined. `None` if pods are unknown, or if
    /// there are too many pods to determine successors with every change.
    pub succession: Option<Succession>,
}

/// Impact of a failure with its rows.
#[derive(Clone, Debug)]
pub struct FailureView {
    pub impact: Box<FailureImpact>,
    pub rows: Vec<Row<FailureRow>>,
}

/// A row of the impact, in most cases as an index into one of the impact's lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureRow {
    /// A note that it is unknown what happens to the pods on the failed nodes.
    PodsUnknown,
    /// A note that it is unknown where replacements are placed.
    PlacementUnknown,
    /// A note that the predicted replacements are likely, not certain.
    PlacementLikely,
    /// A step of the forecast.
    Step(usize),
    /// A taint that the forecast cannot predict for certain.
    Chance(usize),
    /// A pod that stays on its failed node, because it is not evicted.
    Staying(usize),
    /// The successor of an evicted pod.
    Successor(usize),
    /// A note that there are too many pods to determine their successors.
    TooMany,
    /// A proposed change that would let a successor be placed: index of the successor, and of its proposal.
    Help(usize, usize),
    /// A node that receives successors of the evicted pods.
    Receiver(usize),
    Kordon,
}

impl FailureImpact {
    pub fn successor(&self, place: usize) -> Option<&Successor> {
        self.succession.as_ref()?.replacements().nth(place)
    }

    /// The outcome of a pod of the failed nodes; `None` if it is not determined.
    pub fn outcome(&self, pod: &Key) -> Option<&PodOutcome> {
        let mut successors = self.succession.as_ref()?.successors.iter();
        successors.find(|successor| successor.of == *pod).map(|successor| &successor.outcome)
    }

    /// Changes that would let a Pending successor be placed.
    pub fn help(&self, place: usize) -> Vec<String> {
        self.successor(place).map(|successor| successor.outcome.help().to_vec()).unwrap_or_default()
    }

    /// The nodes that receive successors of the evicted pods.
    pub fn receivers(&self) -> &[Receiver] {
        self.succession.as_ref().map_or(&[], |succession| &succession.trace.receivers)
    }

    /// Text of a row that says what is unknown, with the reason; `None` for other rows.
    pub fn unknown(&self, row: FailureRow) -> Option<String> {
        match row {
            FailureRow::PodsUnknown => {
                Some(format!("which pods are evicted is unknown: {}", self.pods_unknown))
            }
            FailureRow::PlacementUnknown => {
                Some(format!("where replacements land is unknown: {}", self.placement_unknown))
            }
            FailureRow::PlacementLikely => {
                Some(format!("what replaces the pods is likely, not certain: {}", self.likely_for))
            }
            _ => None,
        }
    }

    /// The `kordon` command that prints the impact of the same failure.
    pub fn kordon(&self) -> String {
        // The controller treats all nodes without a zone as one zone, which has no name to pass to the command. In this
        // case the command names the nodes.
        if self.zones.is_empty() || self.zones.contains(&ZoneKey::default()) {
            return kubectl::failure("node", &self.nodes);
        }
        kubectl::failure("zone", self.zones.iter().map(ToString::to_string))
    }
}

impl FailureView {
    pub fn new(impact: Box<FailureImpact>) -> Self {
        Self { rows: rows(&impact), impact }
    }

    /// The pod that a row of the impact is about.
    pub(super) fn pod_of(&self, row: FailureRow) -> Option<&Key> {
        match row {
            FailureRow::Staying(place) => self.impact.staying.get(place).map(|(pod, _)| pod),
            FailureRow::Successor(place) | FailureRow::Help(place, _) => {
                self.impact.successor(place).map(|successor| &successor.of)
            }
            FailureRow::PodsUnknown
            | FailureRow::PlacementUnknown
            | FailureRow::PlacementLikely
            | FailureRow::Step(_)
            | FailureRow::Chance(_)
            | FailureRow::TooMany
            | FailureRow::Receiver(_)
            | FailureRow::Kordon => None,
        }
    }

    /// Wraps a row of the impact, so that filters can be applied to it.
    pub(super) fn filterable(&self, row: FailureRow) -> impl Filterable + '_ {
        FilterableRow { impact: &self.impact, row }
    }
}

fn rows(impact: &FailureImpact) -> Vec<Row<FailureRow>> {
    let mut rows = Rows::new();
    let (pods, placement) = (!impact.pods_unknown.is_empty(), !impact.placement_unknown.is_empty());
    let likely = !pods && !placement && !impact.likely_for.is_empty();
    let unknown = [
        (pods, FailureRow::PodsUnknown),
        (placement && !pods, FailureRow::PlacementUnknown),
        (likely, FailureRow::PlacementLikely),
    ];
    rows.section("unknown", unknown.into_iter().filter(|(is_unknown, _)| *is_unknown).map(|(_, row)| row));
    rows.section("predicted", (0..impact.forecast.steps.len()).map(FailureRow::Step));
    rows.section("uncertain", (0..impact.forecast.uncertain_taints.len()).map(FailureRow::Chance));
    rows.section("not evicted", (0..impact.staying.len()).map(FailureRow::Staying));
    match &impact.succession {
        Some(succession) => {
            rows.section("replacements", (0..succession.replacements().count()).map(FailureRow::Successor));
            let helps = succession.replacements().enumerate().flat_map(|(place, successor)| {
                (0..successor.outcome.help().len()).map(move |help| FailureRow::Help(place, help))
            });
            rows.section("how to place Pending pods", helps);
            rows.section(
                "nodes that receive pods",
                (0..succession.trace.receivers.len()).map(FailureRow::Receiver),
            );
        }
        None if pods || placement => {}
        None => rows.section("replacements", [FailureRow::TooMany]),
    }
    rows.section("commands", [FailureRow::Kordon]);
    rows.into_vec()
}

struct FilterableRow<'a> {
    impact: &'a FailureImpact,
    row: FailureRow,
}

impl Filterable for FilterableRow<'_> {
    fn field(&self, _: &str) -> Option<String> {
        None
    }

    fn texts(&self, found: &mut dyn FnMut(&str)) {
        let impact = self.impact;
        match self.row {
            FailureRow::Step(place) => {
                let step = &impact.forecast.steps[place];
                found(step.kind.node());
                if let Some(pod) = step.kind.pod() {
                    found(&pod.to_string());
                }
                found(&step.why.to_string());
            }
            FailureRow::Staying(place) => {
                let (pod, node) = &impact.staying[place];
                found(&pod.to_string());
                found(node);
            }
            FailureRow::Successor(place) => {
                if let Some(successor) = impact.successor(place) {
                    found(&successor.of.to_string());
                    found(&successor.from);
                    successor.node().into_iter().for_each(|node| found(node));
                    found(&successor.why());
                }
            }
            FailureRow::Help(place, help) => {
                impact.successor(place).into_iter().for_each(|successor| found(&successor.of.to_string()));
                impact.help(place).get(help).into_iter().for_each(|help| found(help));
            }
            FailureRow::Receiver(place) => {
                impact.receivers().get(place).into_iter().for_each(|receiver| found(&receiver.node));
            }
            FailureRow::Kordon => found(&impact.kordon()),
            FailureRow::PodsUnknown | FailureRow::PlacementUnknown | FailureRow::PlacementLikely => {
                impact.unknown(self.row).iter().for_each(|text| found(text));
            }
            FailureRow::Chance(_) | FailureRow::TooMany => {}
        }
    }
}
