//! How right the predictions of a session have been, as fields.

use serde::Serialize;

use super::report::seconds;
use crate::{
    forecast::{AccuracyReport, EventKind, accuracy::Miss},
    time::Timestamp,
};

/// The misses that a report lists.
const MISSES: usize = 5;

/// What the controller did in this session, compared with what was predicted 5 s before.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PredictionsReport {
    pub events: usize,
    pub predicted: usize,
    /// Caused by something that happened less than 5 s before.
    pub unforeseeable: usize,
    /// Predicted for another time, or not at all.
    pub missed: usize,
    pub median_error_seconds: Option<f64>,
    pub worst_error_seconds: Option<f64>,
    /// The last five, oldest first.
    pub misses: Vec<MissReport>,
}

/// An event that was not predicted as it happened.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MissReport {
    pub at: Timestamp,
    /// `unknown`, `noExecute`, `swap` or `deletion`.
    pub event: &'static str,
    pub node: String,
    pub pod: Option<String>,
    /// How much later than it happened it was predicted; null if it was not predicted.
    pub predicted_later_seconds: Option<f64>,
}

impl From<&AccuracyReport> for PredictionsReport {
    fn from(report: &AccuracyReport) -> Self {
        let total = report.total();
        let last = report.misses.len().saturating_sub(MISSES);
        Self {
            events: total.all(),
            predicted: total.predicted,
            unforeseeable: total.unforeseeable,
            missed: total.missed,
            median_error_seconds: report.median.map(seconds),
            worst_error_seconds: report.worst.map(seconds),
            misses: report.misses[last..].iter().map(MissReport::from).collect(),
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
            predicted_later_seconds: miss.off.map(seconds),
        }
    }
}
