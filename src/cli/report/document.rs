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
#[serde(rename_all = "camelCase")]
pub struct IncidentReport {
    /// `kordon.incident/v1`: fields are added, never removed or renamed.
    pub schema: &'static str,
    pub context: String,
    pub server_version: String,
    pub recorded_by: String,
    pub fault: Option<String>,
    pub from: Timestamp,
    pub until: Timestamp,
    pub peak: Option<Timestamp>,
    pub summary: IncidentSummary,
    pub moments: Vec<ReportedMoment>,
    pub nodes: Vec<ReportedNode>,
    pub workloads: Vec<ReportedWorkload>,
    pub evictions: ReportedEvictions,
    pub predictions: ReportedPredictions,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IncidentSummary {
    /// Nodes that became Unknown or reported that they are not ready.
    pub nodes_failed: usize,
    /// Nodes that were silent but did not fail.
    pub nodes_silent: usize,
    pub nodes_evicted: usize,
    pub pods_evicted: usize,
    pub workloads_affected: usize,
    /// Number of missing pods multiplied by the time for which they were missing, in pod-seconds.
    pub missing_pod_seconds: f64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedMoment {
    pub at: Timestamp,
    pub kind: &'static str,
    pub level: &'static str,
    pub text: String,
    pub count: usize,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedNode {
    pub node: String,
    pub zone: String,
    pub from: Timestamp,
    pub down: Option<Timestamp>,
    pub evicting: Option<Timestamp>,
    pub until: Option<Timestamp>,
    pub seconds: f64,
    pub worst: &'static str,
    pub evicted_pods: usize,
    pub why: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedWorkload {
    pub kind: &'static str,
    pub workload: String,
    pub from: Timestamp,
    pub until: Option<Timestamp>,
    pub seconds: f64,
    pub desired: usize,
    pub least_ready: usize,
    pub missing_pod_seconds: f64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedEvictions {
    pub total: usize,
    pub kinds: Vec<EvictionKindCount>,
    /// Time limit for the recovery of a node. An eviction by a taint was unnecessary if its node recovered within this
    /// time.
    pub back_within_seconds: f64,
    pub unnecessary: Vec<UnnecessaryEviction>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EvictionKindCount {
    pub kind: &'static str,
    pub pods: usize,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnnecessaryEviction {
    pub pod: String,
    pub node: String,
    pub at: Timestamp,
    pub back_after_seconds: f64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedPredictions {
    pub events: Vec<PredictedEvents>,
    pub median_error_seconds: Option<f64>,
    pub worst_error_seconds: Option<f64>,
    pub earliest_seconds: Option<f64>,
    pub latest_seconds: Option<f64>,
    pub by_chance_among: usize,
    pub misses: Vec<String>,
    pub outcomes: OutcomesReport,
    /// The latest outcomes that differ from the predicted ones, as text.
    pub outcome_differences: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PredictedEvents {
    pub event: &'static str,
    pub predicted: usize,
    pub on_time: usize,
    pub by_chance: usize,
    pub unforeseeable: usize,
    pub missed: usize,
    pub missed_reasons: Vec<MissedReason>,
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
                nodes_evicted: review.nodes.iter().filter(|outage| outage.evicting.is_some()).count(),
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
        let NodeOutage { node, zone, from, down, evicting, until, worst, why, evicted } = outage;
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

    /// Sample report in which every field has a value and every list has items.
    pub fn full() -> IncidentReport {
        let at = Timestamp::EPOCH;
        IncidentReport {
            schema: "kordon.incident/v1",
            context: "demo".into(),
            server_version: "v1.36.3".into(),
            recorded_by: "0.1.0".into(),
            fault: Some("ends abruptly".into()),
            from: at,
            until: at,
            peak: Some(at),
            summary: IncidentSummary {
                nodes_failed: 1,
                nodes_silent: 1,
                nodes_evicted: 1,
                pods_evicted: 1,
                workloads_affected: 1,
                missing_pod_seconds: 5.0,
            },
            moments: vec![ReportedMoment { at, kind: "gap", level: "critical", text: "x".into(), count: 1 }],
            nodes: vec![ReportedNode {
                node: "a".into(),
                zone: "z".into(),
                from: at,
                down: Some(at),
                evicting: Some(at),
                until: Some(at),
                seconds: 0.0,
                worst: "Unknown",
                evicted_pods: 1,
                why: vec!["because".into()],
            }],
            workloads: vec![ReportedWorkload {
                kind: "Deployment",
                workload: "shop/web".into(),
                from: at,
                until: Some(at),
                seconds: 0.0,
                desired: 3,
                least_ready: 1,
                missing_pod_seconds: 5.0,
            }],
            evictions: ReportedEvictions {
                total: 1,
                kinds: vec![EvictionKindCount { kind: "taint-based eviction", pods: 1 }],
                back_within_seconds: 300.0,
                unnecessary: vec![UnnecessaryEviction {
                    pod: "shop/web-1".into(),
                    node: "a".into(),
                    at,
                    back_after_seconds: 9.0,
                }],
            },
            predictions: ReportedPredictions {
                events: vec![PredictedEvents {
                    event: "Unknown",
                    predicted: 1,
                    on_time: 1,
                    by_chance: 0,
                    unforeseeable: 0,
                    missed: 1,
                    missed_reasons: vec![MissedReason { reason: "late", events: 1 }],
                    not_compared: 0,
                }],
                median_error_seconds: Some(0.5),
                worst_error_seconds: Some(2.0),
                earliest_seconds: Some(1.0),
                latest_seconds: Some(2.0),
                by_chance_among: 3,
                misses: vec!["NoExecute taint of a".into()],
                outcomes: (&crate::cli::status::predictions::tests::outcomes()).into(),
                outcome_differences: vec!["shop/web-1: predicted moves to a, became pending".into()],
            },
        }
    }

    #[test]
    fn every_field_of_the_document_is_documented() {
        crate::cli::documented::check(&full(), include_str!("../../../docs/reference/postmortem.md"));
    }
}
