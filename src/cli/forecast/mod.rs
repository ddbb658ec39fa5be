//! `kordon forecast`, and what-ifs for nodes and zones.

mod report;
mod table;

use std::collections::BTreeSet;

use clap::Args;

use super::node_choice::zone_named;
use super::{
    answer::CommandAnswer,
    connection::ConnectionArgs,
    exit::CliError,
    kubelet_evictions::KubeletEvictionsReport,
    loops::EvictionLoopReport,
    once::{OnceArgs, OneShot},
    scheduler_flags::SchedulerArgs,
    span,
};
use crate::model::{DepartureLoops, Model};
use kordon_core::{
    cluster::{Cluster, FeedKind, Gaps, NodeName, ZoneKey},
    forecast::{Assumptions, Forecast, Incident, IncidentKind},
    placement::{SchedulerOptions, Snapshot},
    plan::PlacingEnvironment,
};
use kordon_time::{Span, Timestamp};
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
    /// Time from now until the nodes fail
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = span::span)]
    after: Span,
    #[command(flatten)]
    horizon: HorizonArgs,
}

#[derive(Args, Debug)]
pub struct ZoneFailureArgs {
    /// Zones whose nodes all fail: ZONE, REGION/ZONE, or the short name that the dashboard shows
    #[arg(required = true, value_name = "ZONE")]
    zones: Vec<String>,
    /// Time from now until the nodes of the zones fail
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = span::span)]
    after: Span,
    #[command(flatten)]
    horizon: HorizonArgs,
}

/// A node, and the time from now at which something happens to it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NodeIncident {
    node: NodeName,
    after: Span,
}

const MAX_HORIZON: Span = Span::from_secs(24 * 3600);

/// Predicts what happens if nobody acts, under the assumptions of the arguments.
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
    let nodes: BTreeSet<NodeName> = args.nodes.iter().map(|name| NodeName::from(name.as_str())).collect();
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
    let zones: BTreeSet<ZoneKey> = cluster.nodes().iter().map(|node| node.zone()).collect();
    let mut nodes = BTreeSet::new();
    for zone in &args.zones {
        let key = zone_named(zone, &zones)?;
        let of_zone = cluster.nodes().iter().filter(|node| node.zone() == key);
        nodes.extend(of_zone.map(|node| node.name.clone()));
    }
    let at = shot.at + args.after;
    args.horizon.print(shot, Assumptions::failing(nodes.clone(), at), Some(nodes))
}

impl HorizonArgs {
    /// Reads the objects that a forecast needs.
    async fn ask(&self, connection: ConnectionArgs) -> Result<OneShot, CliError> {
        connection.refuse_namespace("a forecast is of the whole cluster")?;
        let mut shot = OneShot::ask_for(&self.once, &FeedKind::PREDICTION, connection).await?;
        // A zone may go down in the forecast. The Lease says whether its pods are evicted then.
        if !self.once.is_recorded() {
            shot.read_kordon_lease().await;
        }
        Ok(shot)
    }

    /// Prints a forecast under assumptions. If nodes are failing, steps that would also happen without the failure are
    /// left out.
    fn print(
        self,
        mut shot: OneShot,
        assumptions: Assumptions,
        failing: Option<BTreeSet<NodeName>>,
    ) -> Result<(), CliError> {
        // Views have the blocked drains.
        shot.model.refresh(shot.at);
        let request = ForecastRequest {
            assumptions: &assumptions,
            failing: failing.as_ref(),
            scheduler: self.scheduler.options(shot.model.settings.version),
            horizon: self.horizon,
        };
        let Some((report, gaps)) = request.report(&shot.model, shot.at) else { return shot.done() };
        self.once.output.print(&report, table::render)?;
        shot.done()?;
        // The prediction of a failure is about pods, so unknown pods are an error. A forecast without a failure is also
        // about nodes, so unknown pods are not an error there.
        if failing.is_none() || gaps.is_empty() {
            Ok(())
        } else {
            Err(CliError::Unknown { what: "what becomes of the pods is unknown".into(), gaps })
        }
    }
}

/// The answer of `kordon forecast` about a model that was refreshed at `now`; `None` until the engine has started.
pub fn forecast_answer(model: &Model, horizon: Span, now: Timestamp) -> Option<CommandAnswer> {
    let scheduler = SchedulerArgs::default().options(model.settings.version);
    let request = ForecastRequest { assumptions: &Assumptions::default(), failing: None, scheduler, horizon };
    let (report, _) = request.report(model, now)?;
    Some(CommandAnswer::new(&report, table::render))
}

/// What a forecast is asked for.
struct ForecastRequest<'a> {
    assumptions: &'a Assumptions,
    /// The failing nodes, if the forecast is about their failure.
    failing: Option<&'a BTreeSet<NodeName>>,
    scheduler: SchedulerOptions,
    horizon: Span,
}

impl ForecastRequest<'_> {
    /// Returns the report, and the gaps in what is known of its pods. `None` until the engine has started.
    fn report(self, model: &Model, now: Timestamp) -> Option<(ForecastReport, Gaps)> {
        let Self { assumptions, failing, scheduler, horizon } = self;
        let engine = model.engine.as_ref()?;
        let under =
            |assumptions: &Assumptions| Forecast::under(assumptions, engine, &model.cluster, now, horizon);
        let mut forecast = under(assumptions);
        if let Some(failing) = failing {
            forecast.subtract(&under(&Assumptions::default()), failing);
        }
        let snapshot = Snapshot::new(&model.cluster, scheduler);
        let placing = PlacingEnvironment::new(&model.cluster, snapshot, now);
        let succession = match failing {
            Some(failing) => forecast.successors_of(failing, assumptions, &model.cluster, placing),
            None => forecast.successors(assumptions, &model.cluster, placing),
        };
        let evicted = succession.replacements().map(|successor| (&successor.of, &successor.outcome));
        let loops = DepartureLoops::find(&model.departures, &model.cluster);
        let loops = loops.going_on(&model.cluster, model.settings.version, evicted, &forecast.recovered, now);
        let subject = ForecastSubject {
            engine,
            cluster: &model.cluster,
            failing,
            now,
            succession,
            loops: loops.iter().map(EvictionLoopReport::new).collect(),
            kubelets: match failing {
                Some(_) => KubeletEvictionsReport::default(),
                None => KubeletEvictionsReport::new(model, now),
            },
            blocked_drains: if failing.is_some() { &[] } else { &model.views.blocked_drains },
        };
        Some((ForecastReport::new(&subject, assumptions, &forecast), subject.gaps()))
    }
}

fn check_node(cluster: &Cluster, node: &NodeName) -> Result<(), CliError> {
    match cluster.node(node) {
        Some(_) => Ok(()),
        None => Err(CliError::no_node(node, cluster)),
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
    fn a_zone_is_named_in_full_without_its_region_or_as_the_dashboard_does() {
        let zone = |region: &str, zone: &str| ZoneKey { region: region.into(), zone: zone.into() };
        let zones = BTreeSet::from([zone("eu-1", "eu-1a"), zone("eu-1", "eu-1b"), zone("eu-2", "eu-1b")]);
        let named = |name: &str, zones: &BTreeSet<ZoneKey>| {
            zone_named(name, zones).map_err(|error| error.to_string())
        };
        for name in ["eu-1/eu-1a", "eu-1:eu-1a", "eu-1a"] {
            assert_eq!(named(name, &zones), Ok(zone("eu-1", "eu-1a")), "{name}");
        }
        let several = named("eu-1b", &zones).expect_err("two have this name");
        assert!(several.contains("eu-1/eu-1b, eu-2/eu-1b"), "{several}");
        let zones = BTreeSet::from([zone("eu-1", "eu-1a"), zone("eu-1", "eu-1b")]);
        assert_eq!(named("b", &zones), Ok(zone("eu-1", "eu-1b")), "as the dashboard names it");
        let unknown = named("eu-1d", &zones).expect_err("there is none");
        assert!(unknown.ends_with("zone eu-1d not found; did you mean eu-1a?"), "{unknown}");
    }
}
