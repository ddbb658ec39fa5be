//! `kordon why`: the chain of causes behind what happens, or does not happen, to a node or a pod.

use std::fmt::Write as _;

use clap::{Args, Subcommand};
use serde::Serialize;

use super::{
    Failure,
    connection::ConnectionArgs,
    once::{Asked, OnceArgs},
};
use crate::{
    cluster::{Key, NodeName},
    forecast::story::Link,
    time::Timestamp,
    ui::text,
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
    Pod { name: String },
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

pub async fn run(args: WhyArgs, connection: ConnectionArgs) -> Result<(), Failure> {
    let asked = Asked::ask(&args.once, connection, false).await?;
    let report = report(&asked, &args.subject)?;
    args.once.output.print(&report, table)?;
    asked.done()
}

fn report(asked: &Asked, subject: &Subject) -> Result<Report, Failure> {
    let Some(teller) = asked.app.live.teller(asked.at) else {
        return Err(Failure::NotFound("the engine".into()));
    };
    let cluster = teller.cluster;
    let (kind, namespace, name, links) = match subject {
        Subject::Node { name } => {
            let node = cluster.node(&NodeName::from(name.as_str()));
            let node = node.ok_or_else(|| Failure::NotFound(format!("node {name}")))?;
            ("node", None, name, teller.node(node))
        }
        Subject::Pod { name } => {
            let namespace = asked.namespace.clone();
            let pod = cluster.pod(&Key::new(&namespace, name));
            let pod = pod.ok_or_else(|| Failure::NotFound(format!("pod {namespace}/{name}")))?;
            ("pod", Some(namespace), name, teller.pod(pod))
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
    })
}

impl LinkReport {
    fn new(link: Link, now: Timestamp) -> Self {
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
    out
}
