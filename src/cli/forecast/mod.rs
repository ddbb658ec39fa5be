//! `kordon forecast`, and the failure of nodes or of a zone.

mod report;
mod table;

use clap::Args;

use super::{
    connection::ConnectionArgs,
    exit::CliError,
    once::{OnceArgs, OneShot},
    scheduler::SchedulerArgs,
    span,
};
use crate::{
    cluster::{Cluster, FeedKind, Gaps, NodeName, ZoneKey},
    forecast::{Assumptions, Forecast, Incident, IncidentKind},
    ordered::OrderedSet,
    placement::Snapshot,
    plan::PlacingEnvironment,
    time::Span,
};
use report::{ForecastReport, ForecastSubject};

#[derive(Args, Debug)]
pub struct ForecastArgs {
    /// Assume that a node fails, now or later as in NODE@5m; may be repeated
    #[arg(long, value_name = "NODE[@DURATION]", value_parser = incident)]
    fail: Vec<NodeIncident>,
    /// Assume that a node becomes Ready again, now or later; may be repeated
    #[arg(long, value_name = "NODE[@DURATION]", value_parser = incident)]
    recover: Vec<NodeIncident>,
    /// Assume that somebody deletes the node object, now or later; may be repeated
    #[arg(long, value_name = "NODE[@DURATION]", value_parser = incident)]
    remove: Vec<NodeIncident>,
    #[command(flatten)]
    horizon: HorizonArgs,
}

/// How far to predict, and how to print it.
#[derive(Args, Debug)]
struct HorizonArgs {
    /// How far to predict, up to 24h
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = horizon)]
    horizon: Span,
    #[command(flatten)]
    scheduler: SchedulerArgs,
    #[command(flatten)]
    once: OnceArgs,
}

#[derive(Args, Debug)]
pub struct NodeFailureArgs {
    /// Nodes that fail: they send no more heartbeats
    #[arg(required = true, value_name = "NODE")]
    nodes: Vec<String>,
    /// When they fail, from now
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = span::span)]
    after: Span,
    #[command(flatten)]
    horizon: HorizonArgs,
}

#[derive(Args, Debug)]
pub struct ZoneFailureArgs {
    /// Zones whose nodes all fail, as ZONE or REGION/ZONE
    #[arg(required = true, value_name = "ZONE")]
    zones: Vec<String>,
    /// When they fail, from now
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = span::span)]
    after: Span,
    #[command(flatten)]
    horizon: HorizonArgs,
}

/// A node, and how long from now something happens to it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NodeIncident {
    node: NodeName,
    after: Span,
}

const MAX_HORIZON: Span = Span::from_secs(24 * 3600);

/// Predicts what happens if nobody intervenes, under the assumptions of the arguments.
pub async fn run(args: ForecastArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    let shot = args.horizon.ask(connection).await?;
    let mut incidents = Vec::new();
    for (kind, nodes) in [
        (IncidentKind::Fails, args.fail),
        (IncidentKind::Recovers, args.recover),
        (IncidentKind::Removed, args.remove),
    ] {
        for NodeIncident { node, after } in nodes {
            check_node(&shot.model.cluster, &node)?;
            incidents.push(Incident { at: shot.at + after, node, kind });
        }
    }
    args.horizon.print(shot, Assumptions { incidents }, None)
}

/// Predicts the failure of nodes.
pub async fn node_failure(args: NodeFailureArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    let shot = args.horizon.ask(connection).await?;
    let nodes: OrderedSet<NodeName> = args.nodes.iter().map(|name| NodeName::from(name.as_str())).collect();
    for node in &nodes {
        check_node(&shot.model.cluster, node)?;
    }
    let at = shot.at + args.after;
    args.horizon.print(shot, Assumptions::failing(nodes.clone(), at), Some(nodes))
}

/// Predicts the failure of all nodes of zones.
pub async fn zone_failure(args: ZoneFailureArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    let shot = args.horizon.ask(connection).await?;
    let cluster = &shot.model.cluster;
    let mut nodes = OrderedSet::new();
    for zone in &args.zones {
        let before = nodes.len();
        let of_zone = cluster.nodes().iter().filter(|node| is_named(&node.zone(), zone));
        nodes.extend(of_zone.map(|node| node.name.clone()));
        if nodes.len() == before {
            return Err(no_zone(cluster, zone));
        }
    }
    let at = shot.at + args.after;
    args.horizon.print(shot, Assumptions::failing(nodes.clone(), at), Some(nodes))
}

impl HorizonArgs {
    /// Reads what a forecast needs of the cluster.
    async fn ask(&self, connection: ConnectionArgs) -> Result<OneShot, CliError> {
        OneShot::ask_for(&self.once, &FeedKind::PREDICTION, connection).await
    }

    /// Predicts under the assumptions and prints it; of a failure only what would not have happened anyway.
    fn print(
        self,
        shot: OneShot,
        assumptions: Assumptions,
        failing: Option<OrderedSet<NodeName>>,
    ) -> Result<(), CliError> {
        let model = &shot.model;
        let Some(engine) = &shot.model.engine else { return shot.done() };
        let under = |assumptions: &Assumptions| {
            Forecast::under(assumptions, engine, &model.cluster, shot.at, self.horizon)
        };
        let mut forecast = under(&assumptions);
        if let Some(failing) = &failing {
            forecast.subtract(&under(&Assumptions::default()), failing);
        }
        let scheduler = self.scheduler.options(model.settings.version);
        let snapshot = Snapshot::new(&model.cluster, scheduler);
        let placing = PlacingEnvironment::new(&model.cluster, snapshot, shot.at);
        let succession = match &failing {
            Some(failing) => forecast.successors_of(failing, &assumptions, &model.cluster, placing),
            None => forecast.successors(&assumptions, &model.cluster, placing),
        };
        let subject = ForecastSubject {
            engine,
            cluster: &model.cluster,
            failing: failing.as_ref(),
            now: shot.at,
            succession,
        };
        self.once.output.print(&ForecastReport::new(&subject, &assumptions, &forecast), table::render)?;
        // What becomes of the pods is what a failure is asked about; a forecast also tells of nodes.
        let gaps = if failing.is_some() { subject.gaps() } else { Gaps::default() };
        shot.done()?;
        if gaps.is_empty() {
            Ok(())
        } else {
            Err(CliError::Unknown { what: "what becomes of the pods is unknown".into(), gaps })
        }
    }
}

fn check_node(cluster: &Cluster, node: &NodeName) -> Result<(), CliError> {
    match cluster.node(node) {
        Some(_) => Ok(()),
        None => Err(CliError::NotFound(format!("node {node}"))),
    }
}

/// The error for a zone that no node is in, with the zones that there are.
fn no_zone(cluster: &Cluster, zone: &str) -> CliError {
    let zones: OrderedSet<ZoneKey> = cluster.nodes().iter().map(|node| node.zone()).collect();
    let zones: Vec<String> = zones.iter().map(ZoneKey::to_string).collect();
    CliError::NotFound(format!("the zones are {}: zone {zone}", zones.join(", ")))
}

fn is_named(key: &ZoneKey, name: &str) -> bool {
    match name.split_once('/') {
        Some((region, zone)) => key.region == *region && key.zone == *zone,
        None => key.zone == *name,
    }
}

/// Parses `NODE` or `NODE@5m`.
fn incident(text: &str) -> Result<NodeIncident, String> {
    let (node, after) = match text.split_once('@') {
        Some((node, after)) => (node, span::span(after)?),
        None => (text, Span::default()),
    };
    if node.is_empty() {
        Err("the node is missing".into())
    } else {
        Ok(NodeIncident { node: node.into(), after })
    }
}

fn horizon(text: &str) -> Result<Span, String> {
    let horizon = span::span(text)?;
    if (Span::from_secs(1)..=MAX_HORIZON).contains(&horizon) {
        Ok(horizon)
    } else {
        Err(format!("the horizon must be between 1s and {MAX_HORIZON}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incident_is_a_node_with_an_optional_delay() {
        let read =
            |text| incident(text).map(|NodeIncident { node, after }| (node.to_string(), after.as_secs()));
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
