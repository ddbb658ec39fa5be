//! `kordon why`: the chain of causes behind what happens, or does not happen, to a node or a pod.

use std::{collections::BTreeSet, fmt::Write as _, sync::Arc};

use clap::{Args, Subcommand};
use serde::Serialize;

use super::{
    columns::section,
    connection::ConnectionArgs,
    exit::CliError,
    once::{OnceArgs, OneShot},
    placement::{self, PlacementReport},
    plan,
};
use crate::{
    cluster::{Cluster, Key, NodeName, Pod},
    engine::ServerVersion,
    placement::Snapshot,
    plan::{Environment, Landing, PlacementTrace, PlacingEnvironment, placing_environment},
    time::Timestamp,
    ui::text,
    why::Step,
};

#[derive(Args, Debug)]
pub struct WhyArgs {
    #[command(subcommand)]
    subject: Subject,
    #[command(flatten)]
    once: OnceArgs,
}

#[derive(Debug, Subcommand)]
enum Subject {
    /// What the controller believes of a node, what it will do, and what holds it back
    #[command(visible_alias = "no")]
    Node { name: String },
    /// Whether and when a pod is evicted, and why; --namespace says where it is
    #[command(visible_alias = "po")]
    Pod {
        name: String,
        /// Where it would go now instead: the best nodes and what their scores are made of, or why nowhere
        #[arg(long)]
        placement: bool,
    },
}

/// One answer (`docs/why.md`). Every field is always there; what is not known is null.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    /// `kordon.why/v1`: grows fields, never loses or renames one.
    schema: &'static str,
    taken_at: Timestamp,
    /// How far the forecast behind what is ahead looks.
    forecast_until: Timestamp,
    /// `node` or `pod`.
    kind: &'static str,
    namespace: Option<String>,
    name: String,
    /// The first cause first.
    links: Vec<LinkReport>,
    /// Of a pod, where it would go now, where that was asked for.
    placement: Option<PlacedReport>,
}

/// Where a pod would go now, were it to be placed again.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PlacedReport {
    /// `node`, `somewhere` (another scheduler places it) or `nowhere` (it would stay Pending).
    landing: &'static str,
    node: Option<NodeName>,
    why: Option<String>,
    weighed: PlacementReport,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct LinkReport {
    /// What it is about: `sign`, `grace`, `ready`, `queue`, …
    topic: &'static str,
    /// `past`, `holds`, `ahead` or `not`.
    tense: &'static str,
    at: Option<Timestamp>,
    in_seconds: Option<f64>,
    estimated: bool,
    text: String,
}

pub async fn run(args: WhyArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    let mut asked = match &args.subject {
        Subject::Pod { placement: true, .. } => {
            OneShot::ask_for(&args.once, &plan::WANTED, connection).await?
        }
        Subject::Pod { .. } | Subject::Node { .. } => OneShot::ask(&args.once, connection, false).await?,
    };
    asked.run_forecast();
    let report = report(&asked, &args.subject)?;
    args.once.output.print(&report, table)?;
    asked.done()
}

fn report(asked: &OneShot, subject: &Subject) -> Result<Report, CliError> {
    let Some(teller) = asked.model.explainer(asked.at) else {
        return Err(CliError::NotFound("the engine".into()));
    };
    let cluster = teller.cluster;
    let (kind, namespace, name, links, placement) = match subject {
        Subject::Node { name } => {
            let node = cluster.node(&NodeName::from(name.as_str()));
            let node = node.ok_or_else(|| CliError::NotFound(format!("node {name}")))?;
            ("node", None, name, teller.node(node), None)
        }
        Subject::Pod { name, placement } => {
            let namespace = asked.namespace.clone();
            let pod = cluster.pod(&Key::new(&namespace, name));
            let pod = pod.ok_or_else(|| CliError::NotFound(format!("pod {namespace}/{name}")))?;
            let version = asked.model.settings.version;
            let placement = placement.then(|| placed(cluster, pod, version, asked.at));
            ("pod", Some(namespace), name, teller.pod(pod), placement)
        }
    };
    Ok(Report {
        schema: "kordon.why/v1",
        taken_at: asked.at,
        forecast_until: teller.forecast.map_or(asked.at, |forecast| forecast.until),
        kind,
        namespace,
        name: name.clone(),
        links: links.into_iter().map(|link| LinkReport::new(link, asked.at)).collect(),
        placement,
    })
}

/// Where the scheduler would put this pod if it were not where it is.
fn placed(cluster: &Cluster, pod: &Pod, version: ServerVersion, now: Timestamp) -> PlacedReport {
    let mut snapshot = Snapshot::new(cluster, version);
    if let Some(node) = &pod.node {
        snapshot.remove(&pod.key, node);
    }
    let reasons = snapshot.refusals(&placing_environment::replacement(pod, cluster));
    let mut placing = PlacingEnvironment::new(cluster, snapshot, now);
    let landing = placing.land(pod, &BTreeSet::new());
    let judgement = placing.trace().placements.remove(&pod.key).map(Arc::unwrap_or_clone);
    // Of the nodes that refuse it all is told, even where others would do.
    let judgement = PlacementTrace { reasons, ..judgement.unwrap_or_default() };
    let (landing, node, why) = match landing {
        Landing::Node { node, why } => ("node", Some(node), Some(why)),
        Landing::Somewhere => ("somewhere", None, None),
        Landing::Nowhere { why } => ("nowhere", None, Some(why)),
    };
    PlacedReport {
        landing,
        node,
        why: why.map(|why| why.to_string()),
        weighed: PlacementReport::new(&judgement),
    }
}

impl LinkReport {
    fn new(link: Step, now: Timestamp) -> Self {
        Self {
            topic: link.topic.as_str(),
            tense: link.tense.as_str(),
            at: link.at,
            in_seconds: link.at.map(|at| at.since(now).as_secs_f64()),
            estimated: link.estimated,
            text: link.text,
        }
    }
}

/// A line per link: its time, how far that is, and what it says.
fn table(report: &Report) -> String {
    let mut out = String::new();
    let name =
        report.namespace.iter().chain([&report.name]).map(|part| text::clean(part)).collect::<Vec<_>>();
    let _ = writeln!(out, "{} {}", report.kind, name.join("/"));
    for link in &report.links {
        let at = link.at.map_or(String::new(), |at| at.utc().format("%H:%M:%S").to_string());
        let about = if link.estimated { "~" } else { "" };
        let distance = link.at.map_or(String::new(), |at| {
            if at > report.taken_at {
                format!("in {about}{}", text::left(at, report.taken_at))
            } else {
                format!("{about}{} ago", text::age(report.taken_at, at))
            }
        });
        let sign = match link.tense {
            "past" => "✓",
            "holds" => "●",
            "ahead" => "→",
            _ => "✗",
        };
        let _ = writeln!(out, "{sign} {at:8}  {distance:14}  {}", text::clean(&link.text));
    }
    if let Some(placement) = &report.placement {
        placement_table(&mut out, placement);
    }
    out
}

/// The best nodes with what their scores are made of, what the others say, and what would help.
fn placement_table(out: &mut String, placement: &PlacedReport) {
    let PlacedReport { node, why, weighed, .. } = placement;
    let node = node.as_deref().unwrap_or(match placement.landing {
        "nowhere" => "nowhere",
        _ => "wherever its own scheduler puts it",
    });
    let why = why.as_ref().or(weighed.obstacle.as_ref()).map_or(String::new(), |why| format!(" ({why})"));
    let _ = writeln!(out, "\nplaced now, it would go: {}{}", text::clean(node), text::clean(&why));
    let rows = weighed.ranking.iter().map(|scored| {
        let parts = &scored.parts;
        [
            scored.node.to_string(),
            scored.score.to_string(),
            parts.least_allocated.to_string(),
            parts.balanced_allocation.to_string(),
            parts.taints.to_string(),
            parts.node_affinity.to_string(),
            parts.spread.to_string(),
            parts.pod_affinity.to_string(),
            parts.images.to_string(),
        ]
    });
    let head = [
        "BEST NODES",
        "SCORE",
        "ROOM",
        "BALANCE",
        "TAINTS",
        "NODE AFFINITY",
        "SPREAD",
        "POD AFFINITY",
        "IMAGES",
    ];
    section(out, head, rows.collect());
    let refusals = weighed.reasons.iter().map(|refusal| [refusal.nodes.to_string(), refusal.reason.clone()]);
    section(out, ["NODES", "WOULD NOT DO"], refusals.collect());
    section(out, ["DISPLACES"], weighed.displaces.iter().map(|victim| [victim.text.clone()]).collect());
    section(out, ["WOULD HELP"], weighed.help.iter().map(|help| [help.clone()]).collect());
    let but_for = weighed.not_modelled.iter().map(|word| [placement::caveat(word)]);
    section(out, ["HOLDS BUT FOR"], but_for.collect());
    let _ = writeln!(out, "\ntaken for granted: {}", placing_environment::GRANTED);
}
