//! What the failure of nodes leads to, and its rows.

use std::collections::BTreeSet;

use super::rows::{Row, Rows};
use crate::app::filter::Filterable;
use kordon_core::{
    cluster::{Gaps, Key, NodeName, ZoneKey},
    forecast::{self, Forecast, Succession, Successor},
    plan::{Receiver, kubectl},
};

/// What the failure of nodes leads to, beyond what happens without it.
#[derive(Clone, Debug)]
pub struct FailureImpact {
    pub nodes: BTreeSet<NodeName>,
    /// The zones that fail as a whole.
    pub zones: BTreeSet<ZoneKey>,
    pub forecast: Forecast,
    pub totals: forecast::ForecastTotals,
    /// Running pods of the nodes that are not evicted.
    pub staying: Vec<(Key, NodeName)>,
    /// What is missing of the pods of the nodes: what becomes of them is unknown.
    pub pods_unknown: Gaps,
    /// What is missing of all pods: where replacements land is unknown.
    pub placement_unknown: Gaps,
    /// What is missing, or old, of everything that replacements rest on: what is said of them is likely at best.
    pub likely_for: Gaps,
    /// What follows the evicted pods, and how that was decided; none if there are too many to work it out with
    /// every change.
    pub succession: Option<Succession>,
}

/// The impact of a failure with its rows.
#[derive(Clone, Debug)]
pub struct FailureView {
    pub impact: Box<FailureImpact>,
    pub rows: Vec<Row<FailureRow>>,
}

/// A row of the impact: an index into one of its lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureRow {
    /// What becomes of the pods of the nodes is unknown.
    PodsUnknown,
    /// Where replacements land is unknown.
    PlacementUnknown,
    /// What is said of replacements is likely at best.
    PlacementLikely,
    /// A step of the forecast.
    Step(usize),
    /// An uncertain taint of the forecast.
    Chance(usize),
    /// A pod that is not evicted.
    Staying(usize),
    /// What follows an evicted pod.
    Successor(usize),
    /// There are too many pods to say what follows them.
    TooMany,
    /// What would let a successor be placed: the successor, and the number of the proposal.
    Help(usize, usize),
    /// A node that receives pods.
    Receiver(usize),
    Kordon,
}

impl FailureImpact {
    pub fn successor(&self, place: usize) -> Option<&Successor> {
        self.succession.as_ref()?.replacements().nth(place)
    }

    /// What would let a successor be placed that stays Pending.
    pub fn help(&self, place: usize) -> Vec<String> {
        self.successor(place).map(|successor| successor.outcome.help().to_vec()).unwrap_or_default()
    }

    /// The nodes that receive pods.
    pub fn receivers(&self) -> &[Receiver] {
        self.succession.as_ref().map_or(&[], |succession| &succession.trace.receivers)
    }

    /// What is unknown, and why, in words.
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

    /// The command line that prints the same.
    pub fn kordon(&self) -> String {
        // To the controller, nodes without a zone are one zone, but it has no name.
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

    /// The pod that a row is about.
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

    /// A row for a filter.
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
    rows.section("stay", (0..impact.staying.len()).map(FailureRow::Staying));
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
