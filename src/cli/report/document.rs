//! The postmortem as a document (`docs/reference/postmortem.md`).

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::{
    cli::status::predictions::{MissedReason, OutcomesReport},
    model::Moment,
    run::review::{IncidentReview, NodeOutage, ReviewedEviction, WorkloadOutage},
};
use kordon_time::{Span, Timestamp};

/// Facts about the recording itself.
#[derive(Clone, Debug)]
pub struct RecordingFacts {
    pub context: String,
    pub server_version: String,
    pub recorded_by: String,
    /// A fault of the recording file, for example that it was truncated.
    pub fault: Option<String>,
    pub back_within: Span,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct IncidentReport {
    /// `kordon.incident/v1`: fields are added, never removed or renamed.
    pub schema: &'static str,
    /// The kubeconfig context that was recorded.
    pub context: String,
    /// The server's release.
    pub server_version: String,
    /// The version of kordon that made the recording.
    pub recorded_by: String,
    /// What is wrong with the end of the recording file; `null` if nothing is.
    pub fault: Option<String>,
    /// Start of the time that the report covers.
    pub from: Timestamp,
    /// End of the time that the report covers.
    pub until: Timestamp,
    /// When most nodes were down, or silent if none was down; `null` if none was silent either.
    pub peak: Option<Timestamp>,
    pub summary: IncidentSummary,
    pub moments: Vec<ReportedMoment>,
    pub nodes: Vec<ReportedNode>,
    pub workloads: Vec<ReportedWorkload>,
    pub evictions: ReportedEvictions,
    pub predictions: ReportedPredictions,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct IncidentSummary {
    /// Nodes that became Unknown or reported that they are not ready.
    pub nodes_failed: usize,
    /// Nodes that were silent and did not fail.
    pub nodes_silent: usize,
    /// Number of node outages in which at least one pod was evicted from the node.
    pub nodes_evicted: usize,
    /// Pods that were evicted, in any way.
    pub pods_evicted: usize,
    /// Workloads that lacked pods.
    pub workloads_affected: usize,
    /// The time that pods were missing, summed over pods, in seconds.
    pub missing_pod_seconds: f64,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReportedMoment {
    /// When the event happened, to a second.
    pub at: Timestamp,
    /// The kind of event: `nodeState`, `nodeJoined`, `nodeDeleted`, `zoneState`, `eviction`, `disagreement`,
    /// `disconnected`, `reconnected`, `noController`, `controllerBack` or `gap`.
    pub kind: &'static str,
    /// The urgency of the event: `healthy`, `notice`, `warning`, `critical` or `disconnected`.
    pub level: &'static str,
    /// What happened.
    pub text: String,
    /// Number of objects that the event is about.
    pub count: usize,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReportedNode {
    /// The node.
    pub node: String,
    /// The short name of the node's zone.
    pub zone: String,
    /// Since when the node was silent, or not ready.
    pub from: Timestamp,
    /// When the node was declared Unknown, or reported that it is not ready; `null` if neither.
    pub down: Option<Timestamp>,
    /// When the node became `Evicting`: the controller had tainted it NoExecute, and the time at which pods leave was
    /// set; `null` if it did not. A node that is back in time keeps these pods (`evictedPods`).
    pub evicting: Option<Timestamp>,
    /// When the node was Ready again, or deleted; `null` if neither.
    pub until: Option<Timestamp>,
    /// How long the outage of the node lasted, in seconds.
    pub seconds: f64,
    /// The worst state of the node.
    pub worst: &'static str,
    /// Pods that were evicted from the node.
    pub evicted_pods: usize,
    /// The chain of causes of the outage.
    pub why: Vec<String>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReportedWorkload {
    /// The workload's kind: `Deployment`, `ReplicaSet` or `StatefulSet`.
    pub kind: &'static str,
    /// The workload, as `namespace/name`.
    pub workload: String,
    /// Since when the workload lacked pods.
    pub from: Timestamp,
    /// Until when the workload lacked pods; `null` if it still did.
    pub until: Option<Timestamp>,
    /// How long the workload lacked pods, in seconds.
    pub seconds: f64,
    /// The pods that the workload wants.
    pub desired: usize,
    /// The fewest ready pods that the workload had.
    pub least_ready: usize,
    /// The time that the workload's pods were missing, summed over pods, in seconds.
    pub missing_pod_seconds: f64,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReportedEvictions {
    /// Pods that were evicted.
    pub total: usize,
    pub kinds: Vec<EvictionKindCount>,
    /// `--back-within` in seconds.
    pub back_within_seconds: f64,
    /// Pods that were evicted although their node was Ready again within `--back-within` (5m). Only in JSON. To compare
    /// settings, use [tune.md](tune.md) instead of this list.
    pub unnecessary: Vec<UnnecessaryEviction>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EvictionKindCount {
    /// The kind of eviction.
    pub kind: &'static str,
    /// Number of pods.
    pub pods: usize,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UnnecessaryEviction {
    /// The pod, as `namespace/name`.
    pub pod: String,
    /// The node.
    pub node: String,
    /// When the pod was evicted.
    pub at: Timestamp,
    /// Seconds from the eviction until the node was Ready again.
    pub back_after_seconds: f64,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReportedPredictions {
    pub events: Vec<PredictedEvents>,
    /// The median error of all predicted times, as in [verdict.md](verdict.md).
    pub median_error_seconds: Option<f64>,
    /// The largest error of all predicted times, as in [verdict.md](verdict.md).
    pub worst_error_seconds: Option<f64>,
    /// The longest time by which an event happened earlier than predicted, as in [verdict.md](verdict.md).
    pub earliest_seconds: Option<f64>,
    /// The longest time by which an event happened later than predicted, as in [verdict.md](verdict.md).
    pub latest_seconds: Option<f64>,
    /// Largest number of nodes that competed for one token of their zone's rate limiter, as in
    /// [verdict.md](verdict.md).
    pub by_chance_among: usize,
    /// The last events that were not predicted correctly, in words.
    pub misses: Vec<String>,
    pub outcomes: OutcomesReport,
    /// The last outcomes of evicted pods that differ from the predicted ones, in words.
    pub outcome_differences: Vec<String>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PredictedEvents {
    /// The kind of event.
    pub event: &'static str,
    /// Number of predicted events: `onTime` and `byChance` together.
    pub predicted: usize,
    /// Events predicted for the right time, as in [verdict.md](verdict.md).
    pub on_time: usize,
    /// Events predicted for the right time, where chance decided between several nodes, as in [verdict.md](verdict.md).
    pub by_chance: usize,
    /// Events whose cause happened less than 5 s before them, as in [verdict.md](verdict.md).
    pub unforeseeable: usize,
    /// Events predicted for another time, or not at all, as in [verdict.md](verdict.md).
    pub missed: usize,
    pub missed_reasons: Vec<MissedReason>,
    /// Events for which no forecast was old enough, as in [verdict.md](verdict.md).
    pub not_compared: usize,
}

impl IncidentReport {
    pub fn new(review: &IncidentReview, facts: &RecordingFacts) -> Self {
        let until = review.until;
        let missing = review.workloads.iter().map(|outage| outage.missing.as_secs_f64()).sum();
        let all: BTreeSet<_> = review.nodes.iter().map(|outage| &outage.node).collect();
        let failed = review.nodes.iter().filter(|outage| outage.down.is_some());
        let failed: BTreeSet<_> = failed.map(|outage| &outage.node).collect();
        let mut affected: Vec<_> =
            review.workloads.iter().map(|outage| (outage.kind, &outage.workload)).collect();
        affected.sort();
        affected.dedup();
        Self {
            schema: "kordon.incident/v1",
            context: facts.context.clone(),
            server_version: facts.server_version.clone(),
            recorded_by: facts.recorded_by.clone(),
            fault: facts.fault.clone(),
            from: review.from,
            until,
            peak: review.peak,
            summary: IncidentSummary {
                nodes_failed: failed.len(),
                nodes_silent: all.len() - failed.len(),
                nodes_evicted: review.nodes.iter().filter(|outage| outage.evicted > 0).count(),
                pods_evicted: review.evictions.len(),
                workloads_affected: affected.len(),
                missing_pod_seconds: missing,
            },
            moments: review.moments.iter().map(ReportedMoment::from).collect(),
            nodes: review.nodes.iter().map(|outage| ReportedNode::new(outage, until)).collect(),
            workloads: review.workloads.iter().map(|outage| ReportedWorkload::new(outage, until)).collect(),
            evictions: ReportedEvictions::new(review, facts.back_within),
            predictions: ReportedPredictions::new(review),
        }
    }
}

impl From<&Moment> for ReportedMoment {
    fn from(moment: &Moment) -> Self {
        let Moment { at, level, count, .. } = *moment;
        Self { at, kind: moment.word(), level: level.as_str(), text: moment.text(), count }
    }
}

impl ReportedNode {
    fn new(outage: &NodeOutage, end: Timestamp) -> Self {
        let NodeOutage { node, zone, from, down, evicting, until, worst, why, evicted, .. } = outage;
        Self {
            node: node.to_string(),
            zone: zone.clone(),
            from: *from,
            down: *down,
            evicting: *evicting,
            until: *until,
            seconds: until.unwrap_or(end).since(*from).as_secs_f64(),
            worst: worst.as_str(),
            evicted_pods: *evicted,
            why: why.clone(),
        }
    }
}

impl ReportedWorkload {
    fn new(outage: &WorkloadOutage, end: Timestamp) -> Self {
        let WorkloadOutage { kind, workload, from, until, desired, least_ready, missing } = outage;
        Self {
            kind: kind.as_str(),
            workload: workload.to_string(),
            from: *from,
            until: *until,
            seconds: until.unwrap_or(end).since(*from).as_secs_f64(),
            desired: *desired,
            least_ready: *least_ready,
            missing_pod_seconds: missing.as_secs_f64(),
        }
    }
}

impl ReportedEvictions {
    fn new(review: &IncidentReview, back_within: Span) -> Self {
        let mut kinds: BTreeMap<&'static str, usize> = BTreeMap::new();
        for eviction in &review.evictions {
            *kinds.entry(eviction.entry.departure.kind.as_str()).or_default() += 1;
        }
        let unnecessary = |eviction: &ReviewedEviction| UnnecessaryEviction {
            pod: eviction.entry.pod.to_string(),
            node: eviction.entry.node.as_ref().map(ToString::to_string).unwrap_or_default(),
            at: eviction.at,
            back_after_seconds: eviction.back_after.map_or(0.0, Span::as_secs_f64),
        };
        Self {
            total: review.evictions.len(),
            kinds: kinds.into_iter().map(|(kind, pods)| EvictionKindCount { kind, pods }).collect(),
            back_within_seconds: back_within.as_secs_f64(),
            unnecessary: review.unnecessary(back_within).map(unnecessary).collect(),
        }
    }
}

impl ReportedPredictions {
    fn new(review: &IncidentReview) -> Self {
        let accuracy = &review.accuracy;
        let events = accuracy.kinds.iter().map(|(kind, counts)| PredictedEvents {
            event: kind.as_str(),
            predicted: counts.predicted(),
            on_time: counts.on_time,
            by_chance: counts.by_chance,
            unforeseeable: counts.unforeseeable,
            missed: counts.missed(),
            missed_reasons: MissedReason::all(*counts),
            not_compared: counts.not_compared,
        });
        Self {
            events: events.collect(),
            median_error_seconds: accuracy.median.map(Span::as_secs_f64),
            worst_error_seconds: accuracy.worst.map(Span::as_secs_f64),
            earliest_seconds: accuracy.earliest.map(Span::as_secs_f64),
            latest_seconds: accuracy.latest.map(Span::as_secs_f64),
            by_chance_among: accuracy.most_among,
            misses: accuracy.misses.iter().map(ToString::to_string).collect(),
            outcomes: (&accuracy.outcomes).into(),
            outcome_differences: accuracy.outcomes.last.iter().map(ToString::to_string).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_documents_every_field() {
        crate::cli::documented::check::<IncidentReport>("postmortem");
    }
}
