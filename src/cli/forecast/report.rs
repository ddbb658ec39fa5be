//! What a forecast tells, with stable names (`docs/forecast.md`).

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::super::placement::ReceiverReport;
use crate::{
    cluster::{Cluster, Key, NodeName},
    engine::{Confidence, Engine, UncertainTaints, Why, ZoneView},
    forecast::{
        Assumptions, Forecast, ForecastKind, ForecastStep, ForecastTotals, Incident, IncidentKind, Successor,
        SuccessorState,
    },
    plan::RunTrace,
    time::Timestamp,
};

/// What a report is made of, beside the forecast.
pub struct ForecastSubject<'a> {
    pub engine: &'a Engine,
    pub cluster: &'a Cluster,
    pub failing: Option<&'a BTreeSet<NodeName>>,
    pub now: Timestamp,
    /// What comes after the pods that go, and the nodes that receive it.
    pub succession: (Vec<Successor>, RunTrace),
}

/// One answer. Every field is always there; what is not known is null.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ForecastReport {
    /// `kordon.forecast/v1`: grows fields, never loses or renames one.
    pub schema: &'static str,
    pub taken_at: Timestamp,
    pub until: Timestamp,
    /// `firm`, `assumed`, `blind` or `noController`: predictions exist in the first two only.
    pub footing: &'static str,
    /// What is taken for given, in words.
    pub assumptions: Vec<String>,
    pub totals: ForecastTotalsReport,
    pub zones: Vec<ForecastZoneReport>,
    /// In order of time. Of a failure, only what would not have happened anyway.
    pub steps: Vec<ForecastStepReport>,
    /// What upstream itself leaves to chance: none of it is among the steps.
    pub uncertain_taints: Vec<ChanceReport>,
    /// Of a failure, the pods of the failing nodes that are not deleted.
    pub staying: Vec<StayingReport>,
    /// What comes after the pods that go.
    pub successors: Vec<SuccessorReport>,
    /// The nodes that receive replacements.
    pub receivers: Vec<ReceiverReport>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ForecastTotalsReport {
    pub unknown: usize,
    pub tainted: usize,
    pub deleted: usize,
    pub placed: usize,
    pub pending: usize,
    pub waiting: usize,
    pub lost: usize,
}

/// A zone now and at the forecast's end.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ForecastZoneReport {
    pub region: String,
    pub zone: String,
    pub nodes: usize,
    pub not_ready: usize,
    pub state: &'static str,
    pub not_ready_then: usize,
    pub state_then: &'static str,
    /// Nodes given the NoExecute taint per second.
    pub eviction_rate_then: f32,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ForecastStepReport {
    pub at: Timestamp,
    pub in_seconds: f64,
    /// `unknown`, `noExecute`, `delete`, or `remove` (the object, by the pod garbage collector).
    pub what: &'static str,
    pub node: NodeName,
    /// The taint's key, of `noExecute`.
    pub taint: Option<String>,
    pub namespace: Option<String>,
    pub pod: Option<String>,
    pub why: Why,
}

/// Some nodes of a zone may have their NoExecute taint before the zone's new state takes effect.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChanceReport {
    pub at: Timestamp,
    pub in_seconds: f64,
    pub region: String,
    pub zone: String,
    pub at_most: usize,
    pub among: Vec<NodeName>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StayingReport {
    pub namespace: String,
    pub pod: String,
    pub node: NodeName,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SuccessorReport {
    pub namespace: String,
    /// The pod that goes.
    pub pod: String,
    pub from: NodeName,
    /// When its replacement is created; null where none is.
    pub at: Option<Timestamp>,
    pub in_seconds: Option<f64>,
    /// `node`, `somewhere`, `nowhere` (it stays Pending), `waits` or `lost`.
    pub landing: &'static str,
    pub node: Option<NodeName>,
    pub why: Option<String>,
    pub ready_in_seconds: Option<f64>,
    pub help: Vec<String>,
}

impl ForecastReport {
    pub fn new(subject: &ForecastSubject<'_>, assumptions: &Assumptions, forecast: &Forecast) -> Self {
        let now = subject.now;
        let ForecastTotals { unknown, tainted, deleted } = forecast.totals(now);
        let (successors, account) = &subject.succession;
        let successors: Vec<SuccessorReport> =
            successors.iter().map(|successor| successor_report(successor, account, now)).collect();
        let count = |what: &str| successors.iter().filter(|successor| successor.landing == what).count();
        let (placed, pending, waiting, lost) =
            (count("node"), count("nowhere"), count("waits"), count("lost"));
        Self {
            schema: "kordon.forecast/v1",
            taken_at: now,
            until: forecast.until,
            footing: match subject.engine.confidence(now) {
                Confidence::Live => "firm",
                Confidence::Assumed => "assumed",
                Confidence::Disconnected { .. } => "blind",
                Confidence::NoController { .. } => "noController",
            },
            assumptions: stated(assumptions, now),
            totals: ForecastTotalsReport { unknown, tainted, deleted, placed, pending, waiting, lost },
            zones: subject.engine.zones(now).iter().map(|zone| zone_report(zone, &forecast.zones)).collect(),
            steps: forecast.steps.iter().map(|step| step_report(step, now)).collect(),
            uncertain_taints: forecast
                .uncertain_taints
                .iter()
                .map(|chance| chance_report(chance, now))
                .collect(),
            staying: staying(subject, forecast),
            receivers: account.receivers.iter().map(ReceiverReport::new).collect(),
            successors,
        }
    }
}

/// The assumptions in words; nodes to which the same happens at the same time are told together.
fn stated(assumptions: &Assumptions, now: Timestamp) -> Vec<String> {
    let mut together: BTreeMap<(Timestamp, IncidentKind), Vec<&str>> = BTreeMap::new();
    for Incident { at, node, what } in &assumptions.incidents {
        together.entry((*at, *what)).or_default().push(node);
    }
    let mut stated = vec!["silent nodes stay silent, all others live on".to_owned()];
    stated.extend(together.into_iter().map(|((at, what), nodes)| {
        let after = at.since(now);
        let when = if after.as_secs() == 0 { "now".to_owned() } else { format!("in {after}") };
        format!("{what} {when}: {}", nodes.join(", "))
    }));
    stated
}

fn zone_report(zone: &ZoneView, then: &[ZoneView]) -> ForecastZoneReport {
    let then = then.iter().find(|then| then.key == zone.key).unwrap_or(zone);
    ForecastZoneReport {
        region: zone.key.region.to_string(),
        zone: zone.key.zone.to_string(),
        nodes: zone.size,
        not_ready: zone.not_ready,
        state: zone.state.as_str(),
        not_ready_then: then.not_ready,
        state_then: then.state.as_str(),
        eviction_rate_then: then.rate,
    }
}

fn step_report(step: &ForecastStep, now: Timestamp) -> ForecastStepReport {
    let (what, taint, pod) = match &step.what {
        ForecastKind::Unknown { .. } => ("unknown", None, None),
        ForecastKind::NoExecute { key, .. } => ("noExecute", Some(key.to_string()), None),
        ForecastKind::Deleted { pod, .. } => ("delete", None, Some(pod)),
        ForecastKind::Removed { pod, .. } => ("remove", None, Some(pod)),
    };
    ForecastStepReport {
        at: step.at,
        in_seconds: step.at.since(now).as_secs_f64(),
        what,
        node: step.what.node().clone(),
        taint,
        namespace: pod.map(|pod| pod.namespace.to_string()),
        pod: pod.map(|pod| pod.name.to_string()),
        why: step.why.clone(),
    }
}

fn chance_report(chance: &UncertainTaints, now: Timestamp) -> ChanceReport {
    ChanceReport {
        at: chance.at,
        in_seconds: chance.at.since(now).as_secs_f64(),
        region: chance.zone.region.to_string(),
        zone: chance.zone.zone.to_string(),
        at_most: chance.at_most,
        among: chance.among.clone(),
    }
}

fn successor_report(successor: &Successor, account: &RunTrace, now: Timestamp) -> SuccessorReport {
    let (at, ready) = match &successor.state {
        SuccessorState::Replaced { at, ready, .. } => (Some(*at), *ready),
        SuccessorState::Waits | SuccessorState::Lost => (None, None),
    };
    let seconds = |at: Timestamp| at.since(now).as_secs_f64();
    SuccessorReport {
        namespace: successor.of.namespace.to_string(),
        pod: successor.of.name.to_string(),
        from: successor.from.clone(),
        at,
        in_seconds: at.map(seconds),
        landing: successor.state.word(),
        node: successor.state.node().cloned(),
        why: successor.state.why().map(str::to_owned),
        ready_in_seconds: ready.map(seconds),
        help: successor.help(account),
    }
}

fn staying(subject: &ForecastSubject<'_>, forecast: &Forecast) -> Vec<StayingReport> {
    let Some(failing) = subject.failing else { return Vec::new() };
    let told = |(pod, node): (Key, NodeName)| StayingReport {
        namespace: pod.namespace.to_string(),
        pod: pod.name.to_string(),
        node,
    };
    forecast.staying(subject.cluster, failing).into_iter().map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::documented;

    #[test]
    fn every_field_is_documented() {
        let (text, at) = (|| "text".to_owned(), Timestamp::from_secs(1_800_000_000));
        let report = ForecastReport {
            schema: "kordon.forecast/v1",
            taken_at: at,
            until: at,
            footing: "firm",
            assumptions: vec![text()],
            totals: ForecastTotalsReport {
                unknown: 1,
                tainted: 1,
                deleted: 1,
                placed: 1,
                pending: 1,
                waiting: 1,
                lost: 1,
            },
            zones: vec![ForecastZoneReport {
                region: text(),
                zone: text(),
                nodes: 1,
                not_ready: 1,
                state: "Normal",
                not_ready_then: 1,
                state_then: "Normal",
                eviction_rate_then: 0.1,
            }],
            steps: vec![ForecastStepReport {
                at,
                in_seconds: 1.0,
                what: "delete",
                node: "n".into(),
                taint: Some(text()),
                namespace: Some(text()),
                pod: Some(text()),
                why: Why::default(),
            }],
            uncertain_taints: vec![ChanceReport {
                at,
                in_seconds: 1.0,
                region: text(),
                zone: text(),
                at_most: 1,
                among: vec!["n".into()],
            }],
            staying: vec![StayingReport { namespace: text(), pod: text(), node: "n".into() }],
            successors: vec![SuccessorReport {
                namespace: text(),
                pod: text(),
                from: "n".into(),
                at: Some(at),
                in_seconds: Some(1.0),
                landing: "node",
                node: Some("m".into()),
                why: Some(text()),
                ready_in_seconds: Some(2.0),
                help: vec![text()],
            }],
            receivers: vec![ReceiverReport::full()],
        };
        documented::check(&report, include_str!("../../../docs/forecast.md"));
    }
}
