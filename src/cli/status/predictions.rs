//! Accuracy of a session's predictions, as fields.

use serde::Serialize;

use super::report::seconds;
use kordon_core::forecast::{
    AccuracyReport, EventKind, OutcomeDifference, OutcomeReport, OutcomeScore,
    accuracy::{EventCounts, Miss},
};
use kordon_time::Timestamp;

/// Maximum number of misses in a report.
const MISSES: usize = 5;

/// Actions of the controller in this session, compared with predictions made 5 s before each action.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PredictionsReport {
    pub events: usize,
    pub predicted: usize,
    pub on_time: usize,
    pub by_chance: usize,
    /// Largest number of nodes of which any could have had the event that was predicted for one of them; 0 if no event
    /// depended on chance.
    pub by_chance_among: usize,
    /// Events whose cause happened less than 5 s before them.
    pub unforeseeable: usize,
    /// Events predicted for another time, or not at all.
    pub missed: usize,
    pub missed_reasons: Vec<MissedReason>,
    pub not_compared: usize,
    /// Error of predicted times, for events on time and events off time.
    pub median_error_seconds: Option<f64>,
    pub worst_error_seconds: Option<f64>,
    pub earliest_seconds: Option<f64>,
    pub latest_seconds: Option<f64>,
    pub outcomes: OutcomesReport,
    /// The last five misses, oldest first.
    pub misses: Vec<MissReport>,
}

/// Number of missed events with this reason.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MissedReason {
    pub reason: &'static str,
    pub events: usize,
}

impl MissedReason {
    pub fn all(counts: EventCounts) -> Vec<Self> {
        counts.reasons().map(|(reason, events)| Self { reason: reason.as_str(), events }).collect()
    }
}

/// Outcomes of evicted pods, compared with the predicted ones.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OutcomesReport {
    pub pods: usize,
    pub right: usize,
    pub by_chance: usize,
    pub wrong: usize,
    pub not_predicted: usize,
    pub open: usize,
    pub differences: Vec<OutcomeDifferencesReport>,
    /// The last hundred differences, oldest first.
    pub last: Vec<OutcomeDifferenceReport>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OutcomeDifferencesReport {
    pub predicted: &'static str,
    pub became: &'static str,
    pub pods: usize,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OutcomeDifferenceReport {
    pub at: Timestamp,
    /// When the pod's outcome was read.
    pub read_at: Timestamp,
    pub pod: String,
    pub predicted: &'static str,
    pub predicted_node: Option<String>,
    pub became: &'static str,
    pub node: Option<String>,
}

/// An event that did not happen as predicted.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MissReport {
    pub at: Timestamp,
    /// Kind of the event: `unknown`, `noExecute`, `swap` or `deletion`.
    pub event: &'static str,
    pub node: String,
    pub pod: Option<String>,
    pub reason: &'static str,
    /// Predicted time minus actual time; null if the event was not predicted.
    pub predicted_later_seconds: Option<f64>,
}

impl From<&AccuracyReport> for PredictionsReport {
    fn from(report: &AccuracyReport) -> Self {
        let total = report.total();
        let last = report.misses.len().saturating_sub(MISSES);
        Self {
            events: total.all(),
            predicted: total.predicted(),
            on_time: total.on_time,
            by_chance: total.by_chance,
            by_chance_among: report.most_among,
            unforeseeable: total.unforeseeable,
            missed: total.missed(),
            missed_reasons: MissedReason::all(total),
            not_compared: total.not_compared,
            median_error_seconds: report.median.map(seconds),
            worst_error_seconds: report.worst.map(seconds),
            earliest_seconds: report.earliest.map(seconds),
            latest_seconds: report.latest.map(seconds),
            outcomes: (&report.outcomes).into(),
            misses: report.misses[last..].iter().map(MissReport::from).collect(),
        }
    }
}

impl From<&OutcomeReport> for OutcomesReport {
    fn from(report: &OutcomeReport) -> Self {
        let OutcomeReport { counts, differences, last } = report;
        let OutcomeScore { right, by_chance, wrong, not_predicted, open } = *counts;
        let differences = differences.iter().map(|differences| OutcomeDifferencesReport {
            predicted: differences.predicted,
            became: differences.became,
            pods: differences.pods,
        });
        Self {
            pods: counts.all(),
            right,
            by_chance,
            wrong,
            not_predicted,
            open,
            differences: differences.collect(),
            last: last.iter().map(OutcomeDifferenceReport::from).collect(),
        }
    }
}

impl From<&OutcomeDifference> for OutcomeDifferenceReport {
    fn from(difference: &OutcomeDifference) -> Self {
        let OutcomeDifference { at, read, pod, predicted, predicted_node, became } = difference;
        Self {
            at: *at,
            read_at: *read,
            pod: pod.to_string(),
            predicted,
            predicted_node: predicted_node.as_ref().map(ToString::to_string),
            became: became.word(),
            node: became.node().map(ToString::to_string),
        }
    }
}

impl From<&Miss> for MissReport {
    fn from(miss: &Miss) -> Self {
        let event = match miss.kind {
            EventKind::Unknown => "unknown",
            EventKind::NoExecute => "noExecute",
            EventKind::Swap => "swap",
            EventKind::Deletion => "deletion",
        };
        Self {
            at: miss.at,
            event,
            node: miss.node.to_string(),
            pod: miss.pod.as_ref().map(ToString::to_string),
            reason: miss.reason.as_str(),
            predicted_later_seconds: miss.off.map(seconds),
        }
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use kordon_core::{
        cluster::Key,
        forecast::{Became, OutcomeDifferences},
    };

    /// Sample outcomes in which every field has a value.
    pub fn outcomes() -> OutcomeReport {
        let difference = OutcomeDifference {
            at: Timestamp::EPOCH,
            read: Timestamp::EPOCH,
            pod: Key::new("shop", "web-1"),
            predicted: "moves",
            predicted_node: Some("a".into()),
            became: Became::NotStarted("b".into()),
        };
        OutcomeReport {
            counts: OutcomeScore { right: 1, wrong: 1, ..OutcomeScore::default() },
            differences: vec![OutcomeDifferences { predicted: "moves", became: "notStarted", pods: 1 }],
            last: vec![difference],
        }
    }
}
