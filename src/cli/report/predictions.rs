//! Accuracy of predictions, as cells and sentences of the postmortem.

use super::document::{PredictedEvents, ReportedPredictions};
use crate::cli::status::predictions::{OutcomeDifferencesReport, OutcomesReport};
use kordon_core::forecast::OutcomeDifferences;

pub const EVENT_COLUMNS: [&str; 8] =
    ["event", "all", "on time", "by chance", "not predictable", "missed", "why missed", "not compared"];

pub const OUTCOME_COLUMNS: [&str; 7] = [
    "evicted pods",
    "as predicted",
    "by chance",
    "other than predicted",
    "which",
    "not predicted",
    "not known yet",
];

pub fn event_cells(event: &PredictedEvents) -> [String; 8] {
    let PredictedEvents { on_time, by_chance, unforeseeable, missed, not_compared, .. } = *event;
    let reasons = event.missed_reasons.iter().map(|missed| format!("{} {}", missed.events, missed.reason));
    let all = on_time + by_chance + unforeseeable + missed + not_compared;
    [
        event.event.to_owned(),
        all.to_string(),
        on_time.to_string(),
        by_chance.to_string(),
        unforeseeable.to_string(),
        missed.to_string(),
        reasons.collect::<Vec<_>>().join(", "),
        not_compared.to_string(),
    ]
}

pub fn outcome_cells(outcomes: &OutcomesReport) -> [String; 7] {
    let differences = outcomes.differences.iter().map(|other| {
        let OutcomeDifferencesReport { predicted, became, pods, reordered, .. } = *other;
        OutcomeDifferences { predicted, became, pods, reordered }.to_string()
    });
    [
        outcomes.pods.to_string(),
        outcomes.right.to_string(),
        outcomes.by_chance.to_string(),
        outcomes.wrong.to_string(),
        differences.collect::<Vec<_>>().join("; "),
        outcomes.not_predicted.to_string(),
        outcomes.open.to_string(),
    ]
}

/// Returns a sentence about the differences that the order of the replacements explains; none without such differences.
pub fn order_line(outcomes: &OutcomesReport) -> Option<String> {
    let is_any_reordered = outcomes.differences.iter().any(|differences| differences.reordered > 0);
    is_any_reordered.then(|| {
        "Placed in another order: replacements of pods that are evicted at once are placed in random order, so one may \
         take the node that was predicted for another."
            .into()
    })
}

impl ReportedPredictions {
    /// Returns sentences about the accuracy of the predicted times, over all kinds of events.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let (Some(median), Some(worst)) = (self.median_error_seconds, self.worst_error_seconds) {
            let most =
                |seconds: Option<f64>, way| seconds.map(|seconds| format!("{seconds:.1} s {way} at most"));
            let ways = [most(self.earliest_seconds, "early"), most(self.latest_seconds, "late")];
            let ways: Vec<String> = ways.into_iter().flatten().collect();
            let ways = if ways.is_empty() { format!("{worst:.1} s at most") } else { ways.join(", ") };
            lines.push(format!(
                "All events with a predicted time, missed ones too, were off by {median:.1} s (median), {ways}."
            ));
        }
        if self.by_chance_among > 0 {
            lines.push(format!(
                "By chance: the time was right, and any of up to {} waiting nodes could have been the one.",
                self.by_chance_among
            ));
        }
        lines
    }
}
