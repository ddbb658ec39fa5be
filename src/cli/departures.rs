//! `kordon departures`: the pods that left, and who removed each of them.

use std::collections::BTreeMap;

use clap::Args;
use serde::Serialize;

use super::{
    connection::ConnectionArgs,
    exit::CliError,
    gaps::{GapReport, gap_line, gap_reports},
    lists::{FilterArgs, check_filter, say_empty},
    loops::EvictionLoopReport,
    once::{OnceArgs, OneShot},
    page::{Emphasis, Page, none},
    table::PageTable,
};
use crate::{
    app::{Filter, Pane},
    k8s::feed::FeedKind,
    model::{DepartureEntry, DepartureLoops, DepartureStage, Model},
    ui::text,
};
use kordon_core::{
    cluster::{Key, NodeName},
    why::departure::{DepartureCertainty, DepartureKind, PodDeparture},
};
use kordon_time::Timestamp;

/// Number of minutes for which departures are counted.
const MINUTES: usize = 30;

#[derive(Args, Debug)]
pub struct DeparturesArgs {
    #[command(flatten)]
    once: OnceArgs,
    #[command(flatten)]
    filter: FilterArgs,
}

/// Prints the departures of pods that the cluster or the recording still shows.
pub async fn run(args: DeparturesArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    let filter = args.filter.in_namespace(Pane::Departures, &connection)?;
    let namespace = connection.namespace.clone();
    let shot = OneShot::ask_for(&args.once, &FeedKind::PREDICTION, connection).await?;
    check_filter(&filter, Pane::Departures, &shot.model)?;
    args.once
        .output
        .print(&DeparturesReport::new(&shot.model, namespace.as_deref(), filter, shot.at), table)?;
    shot.done()
}

/// Pods that left in the last two hours (`docs/reference/departures.md`). Every field is always present; unknown values
/// are null.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct DeparturesReport {
    /// `kordon.departures/v1`: fields are added, never removed or renamed.
    schema: &'static str,
    /// When the report was made. Durations below count from here.
    taken_at: Timestamp,
    /// The kinds of departures in the last two hours, those that need attention first. With a filter or a namespace, only
    /// departures that pass are counted.
    counts: Vec<KindReport>,
    /// The pods that left or leave, the newest departure first.
    departures: Vec<PodDepartureReport>,
    /// Pods that are evicted from a node, or rejected by it, and come back to it again and again.
    loops: Vec<EvictionLoopReport>,
    /// Kinds of objects that are unknown or outdated, and that evidence may depend on.
    unknown: Vec<GapReport>,
    #[serde(skip)]
    gaps: Option<String>,
    /// Number of departures, whether or not they pass the filter.
    #[serde(skip)]
    total: usize,
    #[serde(skip)]
    #[cfg_attr(test, schemars(skip))]
    filter: Filter,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct KindReport {
    /// The kind of departure.
    kind: &'static str,
    /// Number of pods.
    count: usize,
    /// Number of pods in each of the last 30 minutes, the present minute last.
    per_minute: Vec<u32>,
    #[serde(skip)]
    title: &'static str,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct PodDepartureReport {
    /// The pod's namespace.
    namespace: String,
    /// The pod's name.
    pod: String,
    /// The pod's node; `null` if the pod had none.
    node: Option<NodeName>,
    /// When the pod's object was seen to be gone; `null` while the object exists.
    gone_at: Option<Timestamp>,
    #[serde(flatten)]
    departure: DepartureReport,
    /// Number of departures that the pod's row in the table combines; `None` if the pod has no row.
    #[serde(skip)]
    in_row: Option<usize>,
}

/// Who removed a pod, and why.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DepartureReport {
    /// Who removed the pod: one of the kinds that `docs/reference/departures.md` lists.
    pub kind: &'static str,
    /// Certainty of the kind: `certain`, `likely` or `possible`.
    pub certainty: &'static str,
    /// `terminating`, `finished` (Succeeded or Failed), `gone` or `restarted` (a container was killed for memory; the
    /// pod stays).
    pub stage: &'static str,
    /// When the deletion of the pod began, or when the pod finished before that; `null` if unknown.
    pub at: Option<Timestamp>,
    /// Seconds from `takenAt` to `at`; negative.
    pub in_seconds: Option<f64>,
    /// The evidence, the strongest first.
    pub evidence: Vec<EvidenceReport>,
    #[serde(skip)]
    pub title: &'static str,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EvidenceReport {
    /// Where the evidence comes from: `condition`, `status`, `container`, `event`, `node`, `owner`, `drain` or
    /// `deletion`.
    pub source: &'static str,
    /// Whether the evidence supports the kind; `false` if it supports another kind.
    pub agrees: bool,
    /// The evidence as text; not for parsing.
    pub text: String,
}

impl DeparturesReport {
    fn new(model: &Model, namespace: Option<&str>, filter: Filter, at: Timestamp) -> Self {
        let gaps = model.cluster.gaps(FeedKind::PREDICTION);
        let loops = DepartureLoops::find(&model.departures, &model.cluster);
        let going_on =
            loops.going_on(&model.cluster, model.settings.version, std::iter::empty(), &BTreeMap::new(), at);
        let going_on = going_on
            .iter()
            .filter(|found| namespace.is_none_or(|namespace| *found.workload.namespace == *namespace));
        // The counts of all departures also have those whose entries were dropped.
        let listed = match filter.is_empty() {
            true => model.departures.clone(),
            false => model.departures.only(|entry| filter.matches(entry)),
        };
        let kind = |(kind, count): (DepartureKind, usize)| KindReport {
            kind: kind.as_str(),
            count,
            per_minute: listed.per_minute(Some(kind), MINUTES, at),
            title: kind.title(),
        };
        Self {
            schema: "kordon.departures/v1",
            taken_at: at,
            counts: listed.counts().into_iter().map(kind).collect(),
            departures: listed
                .newest()
                .map(|(id, entry)| PodDepartureReport {
                    // As on screen, the departures of an eviction loop share one row only while no filter is set.
                    in_row: if filter.is_empty() { loops.departures_in_row(id) } else { Some(1) },
                    ..PodDepartureReport::new(entry, model, at)
                })
                .collect(),
            loops: going_on.map(EvictionLoopReport::new).collect(),
            unknown: gap_reports(&gaps),
            gaps: gap_line(&gaps),
            total: model.departures.newest().count(),
            filter,
        }
    }
}

impl PodDepartureReport {
    fn new(entry: &DepartureEntry, model: &Model, now: Timestamp) -> Self {
        let Key { namespace, name } = &entry.pod;
        // The departure of a pod that still exists is classified again with all present data, because the pod's owner
        // may have been listed later than the pod.
        let present = model.cluster.pod(&entry.pod).filter(|pod| pod.uid == entry.uid);
        let current = present.and_then(|pod| model.departures.classify(pod, &model.cluster, &[]));
        let DepartureEntry { node, at, stage, departure, .. } = current.as_ref().unwrap_or(entry).clone();
        Self {
            namespace: namespace.to_string(),
            pod: name.to_string(),
            node,
            gone_at: match stage {
                DepartureStage::Gone { at } => Some(at),
                DepartureStage::Terminating | DepartureStage::Finished | DepartureStage::Restarted => None,
            },
            departure: DepartureReport::new(departure, stage.as_str(), at, now),
            in_row: Some(1),
        }
    }
}

impl DepartureReport {
    pub fn new(departure: PodDeparture, stage: &'static str, at: Option<Timestamp>, now: Timestamp) -> Self {
        let evidence = departure.evidence.into_iter().map(|evidence| EvidenceReport {
            source: evidence.source.as_str(),
            agrees: evidence.agrees,
            text: evidence.text,
        });
        Self {
            kind: departure.kind.as_str(),
            certainty: departure.certainty.as_str(),
            stage,
            at,
            in_seconds: at.map(|at| at.since(now).as_secs_f64()),
            evidence: evidence.collect(),
            title: departure.kind.title(),
        }
    }
}

fn table(report: &DeparturesReport, out: &mut Page) {
    if let Some(gaps) = &report.gaps {
        out.gap(gaps);
    }
    match report.total {
        _ if !report.departures.is_empty() || report.gaps.is_some() => {}
        0 => out.line(Emphasis::Plain, "no pod is leaving or has left that can still be seen"),
        total => say_empty(out, total, ("departure", "departures"), &report.filter),
    }
    for found in &report.loops {
        out.line(Emphasis::Warning, &found.text);
    }
    PageTable::new(&report.counts)
        .key("KIND", |kind| kind.title)
        .essential("IN 2H", |kind| kind.count.to_string())
        .right()
        .print(out);
    // Output for people has one row for all departures of an eviction loop; output for programs has a row for each.
    let is_whole = out.export().is_some();
    let rows: Vec<&PodDepartureReport> =
        report.departures.iter().filter(|departure| is_whole || departure.in_row.is_some()).collect();
    PageTable::new(&rows)
        .key("POD", |pod| match pod.in_row {
            Some(several @ 2..) if !is_whole => {
                format!("{}/{} and {} more", pod.namespace, pod.pod, several - 1)
            }
            _ => format!("{}/{}", pod.namespace, pod.pod),
        })
        .essential("AGO", |pod| pod.departure.at.map_or_else(none, |at| text::age(report.taken_at, at)))
        .right()
        .essential("KIND", |pod| kind(&pod.departure))
        .useful("STAGE", |pod| pod.departure.stage)
        .useful("NODE", |pod| pod.node.as_ref().map_or_else(none, ToString::to_string))
        .flexible()
        .detail("EVIDENCE", |pod| evidence(pod))
        .flexible()
        .print(out);
}

fn kind(departure: &DepartureReport) -> String {
    let certain = departure.certainty == DepartureCertainty::Certain.as_str();
    let certainty = if certain { String::new() } else { format!(", {}", departure.certainty) };
    format!("{}{certainty}", departure.title)
}

fn evidence(pod: &PodDepartureReport) -> String {
    let evidence = pod.departure.evidence.first().map(|evidence| text::brief(&evidence.text).to_string());
    evidence.unwrap_or_else(none)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::documented;

    #[test]
    fn the_page_documents_every_field() {
        documented::check::<DeparturesReport>("departures");
    }
}
