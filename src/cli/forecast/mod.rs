//! `kordon forecast`, and what the failure of nodes or of a zone would lead to.

mod report;
mod table;

use std::collections::BTreeSet;

use clap::Args;

use super::{
    connection::ConnectionArgs,
    exit::CliError,
    once::{OnceArgs, OneShot},
    span,
};
use crate::{
    cluster::{Cluster, NodeName, ZoneKey},
    forecast::{Assumptions, Forecast, Incident, IncidentKind},
    placement::Snapshot,
    plan::PlacingEnvironment,
    time::Span,
};
use report::{ForecastReport, ForecastSubject};

#[derive(Args, Debug)]
pub struct ForecastArgs {
    /// Assume that a node gives its last sign of life: now, or after a while as in NODE@5m; may be repeated
    #[arg(long, value_name = "NODE[@DURATION]", value_parser = moment)]
    fail: Vec<Moment>,
    /// Assume that a node is back and Ready then; may be repeated
    #[arg(long, value_name = "NODE[@DURATION]", value_parser = moment)]
    recover: Vec<Moment>,
    /// Assume that somebody deletes the node object then; may be repeated
    #[arg(long, value_name = "NODE[@DURATION]", value_parser = moment)]
    remove: Vec<Moment>,
    #[command(flatten)]
    ahead: AheadArgs,
}

/// How far to look, and how to print it.
#[derive(Args, Debug)]
struct AheadArgs {
    /// How far to look
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = horizon)]
    horizon: Span,
    #[command(flatten)]
    once: OnceArgs,
}

#[derive(Args, Debug)]
pub struct NodeFailureArgs {
    /// The nodes that give their last sign of life
    #[arg(required = true, value_name = "NODE")]
    nodes: Vec<String>,
    /// When they do, from now
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = span::span)]
    at: Span,
    #[command(flatten)]
    ahead: AheadArgs,
}

#[derive(Args, Debug)]
pub struct ZoneFailureArgs {
    /// The zones whose nodes all give their last sign of life, as ZONE or REGION/ZONE
    #[arg(required = true, value_name = "ZONE")]
    zones: Vec<String>,
    /// When they do, from now
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = span::span)]
    at: Span,
    #[command(flatten)]
    ahead: AheadArgs,
}

/// A node and how long from now.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Moment {
    node: NodeName,
    after: Span,
}

/// The longest forecast.
const LONGEST: Span = Span::from_secs(24 * 3600);

/// What will happen if nobody intervenes and the assumptions come true.
pub async fn run(args: ForecastArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    let AheadArgs { horizon, once } = args.ahead;
    let asked = OneShot::ask(&once, connection, false).await?;
    let mut incidents = Vec::new();
    for (what, moments) in [
        (IncidentKind::Fails, args.fail),
        (IncidentKind::Recovers, args.recover),
        (IncidentKind::Removed, args.remove),
    ] {
        for Moment { node, after } in moments {
            known(&asked.model.cluster, &node)?;
            incidents.push(Incident { at: asked.at + after, node, what });
        }
    }
    tell(asked, &once, Assumptions { incidents }, horizon, None)
}

/// What the failure of these nodes leads to.
pub async fn node_failure(args: NodeFailureArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    let AheadArgs { horizon, once } = args.ahead;
    let asked = OneShot::ask(&once, connection, false).await?;
    let nodes: BTreeSet<NodeName> = args.nodes.iter().map(|name| NodeName::from(name.as_str())).collect();
    for node in &nodes {
        known(&asked.model.cluster, node)?;
    }
    let at = asked.at + args.at;
    tell(asked, &once, Assumptions::failing(nodes.clone(), at), horizon, Some(nodes))
}

/// What the failure of all nodes of these zones leads to.
pub async fn zone_failure(args: ZoneFailureArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    let AheadArgs { horizon, once } = args.ahead;
    let asked = OneShot::ask(&once, connection, false).await?;
    let cluster = &asked.model.cluster;
    let mut nodes = BTreeSet::new();
    for zone in &args.zones {
        let before = nodes.len();
        let of_zone = cluster.nodes().iter().filter(|node| is_named(&node.zone(), zone));
        nodes.extend(of_zone.map(|node| node.name.clone()));
        if nodes.len() == before {
            return Err(CliError::NotFound(format!("zone {zone}")));
        }
    }
    let at = asked.at + args.at;
    tell(asked, &once, Assumptions::failing(nodes.clone(), at), horizon, Some(nodes))
}

/// Foretells under the assumptions and prints it; of a failure only what would not have happened anyway.
fn tell(
    asked: OneShot,
    once: &OnceArgs,
    assumptions: Assumptions,
    horizon: Span,
    failing: Option<BTreeSet<NodeName>>,
) -> Result<(), CliError> {
    let live = &asked.model;
    let Some(engine) = &asked.model.engine else { return asked.done() };
    let under = |assumptions: &Assumptions| {
        Forecast::under(assumptions, engine, &live.cluster, live.feeds.ahead(), asked.at, horizon)
    };
    let mut forecast = under(&assumptions);
    if let Some(failing) = &failing {
        forecast.leave_out(&under(&Assumptions::default()), failing);
    }
    let snapshot = Snapshot::new(&live.cluster, asked.model.settings.version);
    let placing = PlacingEnvironment::new(&live.cluster, snapshot, asked.at);
    let succession = forecast.successors(&assumptions, &live.cluster, placing);
    let subject = ForecastSubject {
        engine,
        cluster: &live.cluster,
        failing: failing.as_ref(),
        now: asked.at,
        succession,
    };
    once.output.print(&ForecastReport::new(&subject, &assumptions, &forecast), table::render)?;
    asked.done()
}

fn known(cluster: &Cluster, node: &NodeName) -> Result<(), CliError> {
    match cluster.node(node) {
        Some(_) => Ok(()),
        None => Err(CliError::NotFound(format!("node {node}"))),
    }
}

fn is_named(key: &ZoneKey, name: &str) -> bool {
    match name.split_once('/') {
        Some((region, zone)) => key.region == *region && key.zone == *zone,
        None => key.zone == *name,
    }
}

/// Reads `NODE` or `NODE@5m`.
fn moment(text: &str) -> Result<Moment, String> {
    let (node, after) = match text.split_once('@') {
        Some((node, after)) => (node, span::span(after)?),
        None => (text, Span::default()),
    };
    if node.is_empty() { Err("no node is named".into()) } else { Ok(Moment { node: node.into(), after }) }
}

fn horizon(text: &str) -> Result<Span, String> {
    let horizon = span::span(text)?;
    if (Span::from_secs(1)..=LONGEST).contains(&horizon) {
        Ok(horizon)
    } else {
        Err(format!("a forecast looks from 1s to {LONGEST} ahead"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_node_and_perhaps_a_while() {
        let read = |text| moment(text).map(|Moment { node, after }| (node.to_string(), after.as_secs()));
        assert_eq!(read("n-1"), Ok(("n-1".into(), 0)));
        assert_eq!(read("n-1@5m"), Ok(("n-1".into(), 300)));
        assert!(read("@5m").is_err() && read("n-1@soon").is_err() && read("").is_err());
    }

    #[test]
    fn a_horizon_has_bounds() {
        assert!(horizon("30m").is_ok() && horizon("24h").is_ok());
        assert!(horizon("0s").is_err() && horizon("25h").is_err());
    }

    #[test]
    fn a_zone_is_named_with_or_without_its_region() {
        let key = ZoneKey { region: "eu".into(), zone: "a".into() };
        assert!(is_named(&key, "a") && is_named(&key, "eu/a"));
        assert!(!is_named(&key, "us/a") && !is_named(&key, "b"));
    }
}
