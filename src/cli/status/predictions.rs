//! Accuracy of a session's predictions, as fields.

use serde::Serialize;

use super::report::seconds;
use kordon_core::forecast::{
    AccuracyReport, EventKind, OutcomeDifference, OutcomeReport, OutcomeScore,
    accuracy::{EventCounts, Miss},
};
use kordon_time::Timestamp;

/// Maximum number of missed events that a report lists.
const MISSES: usize = 5;

/// Actions of the controller in this session, compared with predictions made 5 s before each action.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PredictionsReport {
    /// Number of actions of the controller since this session started: nodes made Unknown, nodes tainted NoExecute, and
    /// pods deleted because of such a taint. Each action is counted once in `onTime`, `byChance`, `unforeseeable`,
    /// `missed` or `notCompared`.
    pub events: usize,
    /// Number of predicted events: `onTime` and `byChance` together.
    pub predicted: usize,
    /// Events whose time was predicted correctly 5 s before, with a tolerance of one second plus the pause between two
    /// passes of the controller.
    pub on_time: usize,
    /// Events predicted on time while several nodes waited for one token of their zone's rate limiter. The time was
    /// right, but chance decides which of these nodes gets the token.
    pub by_chance: usize,
    /// Largest number of nodes that competed for one token of their zone's rate limiter; 0 if no predicted event
    /// depended on chance.
    pub by_chance_among: usize,
    /// Events whose cause happened less than 5 s before them.
    pub unforeseeable: usize,
    /// Events that were predicted for another time, or not at all.
    pub missed: usize,
    /// The missed events by reason.
    pub missed_reasons: Vec<MissedReason>,
    /// Events for which no forecast was 5 s old: the session had just started, the watches were down, or the controller
    /// had changed.
    pub not_compared: usize,
    /// The median error of all predicted times, on time or missed, whether early or late; `null` if no time was
    /// predicted.
    pub median_error_seconds: Option<f64>,
    /// The largest error of all predicted times.
    pub worst_error_seconds: Option<f64>,
    /// The longest time by which an event happened earlier than predicted; `null` if none did.
    pub earliest_seconds: Option<f64>,
    /// The longest time by which an event happened later than predicted; `null` if none did. An overdue event counts as
    /// late from the time for which it was first predicted.
    pub latest_seconds: Option<f64>,
    pub outcomes: OutcomesReport,
    /// The last five missed events, the oldest first.
    pub misses: Vec<MissReport>,
}

/// Number of missed events with one reason.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MissedReason {
    /// Why events were missed: `early` or `late` (they happened earlier or later than predicted), `newPod` (the pod
    /// came to the node after the forecast), `uncertain` (the forecast left it to chance whether the node is tainted),
    /// `noPredictions` (nothing could be predicted then) or `notExpected` (the forecast had nothing like it).
    pub reason: &'static str,
    /// Number of missed events with this reason. All these numbers add up to `missed`.
    pub events: usize,
}

impl MissedReason {
    pub fn all(counts: EventCounts) -> Vec<Self> {
        counts.reasons().map(|(reason, events)| Self { reason: reason.as_str(), events }).collect()
    }
}

/// Outcomes of evicted pods, compared with the predicted ones.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OutcomesReport {
    /// Number of pods that the controller has evicted. Each is counted once in `right`, `byChance`, `wrong`,
    /// `notPredicted` or `open`.
    pub pods: usize,
    /// Pods with the outcome that was predicted when their deletion began. The outcome is read 60 s after that time, or
    /// 60 s after the replacement should have been Ready. If that is after the end of the forecast, it is read 60 s
    /// after the creation of the replacement, at the latest after the longest back-off of a Job.
    pub right: usize,
    /// Pods whose replacement landed on another node than the predicted one, where several nodes were equally good.
    pub by_chance: usize,
    /// Pods with another outcome than predicted.
    pub wrong: usize,
    /// Pods for which no outcome was predicted, or the predicted outcome was `unknown`.
    pub not_predicted: usize,
    /// Pods whose outcome has not been read.
    pub open: usize,
    /// The outcomes that differ from the predicted ones, with their numbers.
    pub differences: Vec<OutcomeDifferencesReport>,
    /// The last hundred pods whose outcome differs from the predicted one, the oldest first.
    pub last: Vec<OutcomeDifferenceReport>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OutcomeDifferencesReport {
    /// The predicted outcome, a word of [outcomes.md](../outcomes.md).
    pub predicted: &'static str,
    /// The outcome: `moves` (the replacement has been Ready, whether or not it has been evicted again since),
    /// `notStarted` (the replacement has had a node, and was never Ready), `pending` (the replacement has had no node),
    /// `stuck` (the old pod is there, and has no replacement), `lost` (the pod is gone, and has no owner) or
    /// `notReplaced` (the pod is gone, and has no replacement).
    pub became: &'static str,
    /// Whether the replacement was predicted for one node and landed on another: then `predicted` and `became` may be
    /// the same word.
    pub other_node: bool,
    /// Number of pods with this pair of predicted and actual outcome. All these numbers add up to `wrong`.
    pub pods: usize,
    /// Number of these pods for which `last` says `reordered`. The reason of the other differences is not known.
    pub reordered: usize,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OutcomeDifferenceReport {
    /// When the deletion of the pod began.
    pub at: Timestamp,
    /// When the pod's outcome was read: 60 s after its deletion began, or 60 s after its replacement should have been
    /// Ready. If that is after the end of the forecast, it is read 60 s after the creation of the replacement, at the
    /// latest after the longest back-off of a Job.
    pub read_at: Timestamp,
    /// The pod.
    pub pod: String,
    /// The predicted outcome.
    pub predicted: &'static str,
    /// The node that the replacement was predicted to land on; `null` if no node was predicted.
    pub predicted_node: Option<String>,
    /// The outcome.
    pub became: &'static str,
    /// The node of the replacement; `null` if it has none.
    pub node: Option<String>,
    /// Whether the order in which replacements were placed explains the difference: another pod, evicted within the
    /// same second, took the predicted node, or this pod took the node that was predicted for the other one. The order
    /// of pods that are evicted at once is random.
    pub reordered: bool,
}

/// An event that did not happen as predicted.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MissReport {
    /// When the event happened.
    pub at: Timestamp,
    /// The event: `unknown`, `noExecute` (a taint), `swap` (one of the taints not-ready and unreachable in place of the
    /// other) or `deletion` (of a pod).
    pub event: &'static str,
    /// The node.
    pub node: String,
    /// The pod; `null` if none is deleted.
    pub pod: Option<String>,
    /// Why the prediction was missed, as in `missedReasons`.
    pub reason: &'static str,
    /// Predicted time minus actual time of the event: negative if the event happened later than predicted; `null` if it
    /// was not predicted.
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
            other_node: differences.is_of_node(),
            pods: differences.pods,
            reordered: differences.reordered,
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
        let OutcomeDifference { at, read, pod, predicted, predicted_node, became, reordered } = difference;
        Self {
            at: *at,
            read_at: *read,
            pod: pod.to_string(),
            predicted,
            predicted_node: predicted_node.as_ref().map(ToString::to_string),
            became: became.word(),
            node: became.node().map(ToString::to_string),
            reordered: *reordered,
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
