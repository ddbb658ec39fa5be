//! `kordon maintenance`: plans in which waves nodes are maintained. Nothing is written.

mod report;
mod table;
mod window;

use clap::Args;

use super::{
    connection::ConnectionArgs,
    exit::CliError,
    node_choice::NodeChoice,
    once::{OnceArgs, OneShot},
    span,
};
use crate::k8s::feed::FeedKind;
use kordon_core::{
    cluster::NodeName,
    maintenance::{MaintenanceOptions, MaintenancePlan},
    plan::{DrainOptions, EvictionRules, Prospect, can_place, words::counted},
};
use kordon_time::Span;
use report::MaintenanceReport;
use window::DailyWindow;

/// Number of nodes up to which the loss of each node and zone is simulated between waves.
const HEADROOM_UP_TO: usize = 1_000;

#[derive(Args, Debug)]
pub struct MaintenanceArgs {
    #[command(flatten)]
    nodes: NodeChoice,
    /// Only nodes whose kubelet is of an older minor version than the API server
    #[arg(long)]
    stale_kubelet: bool,
    /// Most nodes at the same time; auto is as many as possible
    #[arg(long, value_name = "auto|NODES", default_value = "auto", value_parser = parallel)]
    parallel: Parallel,
    /// Most nodes of a zone at the same time
    #[arg(long, value_name = "NODES", value_parser = clap::value_parser!(u32).range(1..))]
    max_per_zone: Option<u32>,
    /// How long the work on an empty node takes, until the node is back
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = span::span)]
    work_takes: Span,
    /// How long a node has to be well before it counts as done
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = span::span)]
    settle: Span,
    /// Times of day at which waves may run, as in '22:00-06:00 Europe/Berlin'; without a zone in UTC
    #[arg(long, value_name = "FROM-TO [ZONE]", value_parser = window::window)]
    window: Option<DailyWindow>,
    /// The longest that all waves may take, from now
    #[arg(long, value_name = "DURATION", value_parser = span::span)]
    max_duration: Option<Span>,
    /// Also evict pods without a controller, which are lost, and pods of deleted DaemonSets
    #[arg(long)]
    force: bool,
    /// Also evict pods with emptyDir volumes, whose data is lost
    #[arg(long)]
    delete_emptydir_data: bool,
    #[command(flatten)]
    once: OnceArgs,
}

/// Most nodes at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Parallel(Option<usize>);

fn parallel(text: &str) -> Result<Parallel, String> {
    match (text, text.parse()) {
        ("auto", _) => Ok(Parallel(None)),
        (_, Ok(0)) | (_, Err(_)) => Err("neither auto nor a number of nodes".into()),
        (_, Ok(most)) => Ok(Parallel(Some(most))),
    }
}

/// Prints the plan.
pub async fn run(args: MaintenanceArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    if args.nodes.is_all() && !args.stale_kubelet {
        let text = "name the nodes, or choose them by -l, --pool, --zone or --stale-kubelet";
        return Err(CliError::Usage(text.into()));
    }
    let shot = OneShot::ask_for(&args.once, &FeedKind::PREDICTION, connection).await?;
    let cluster = &shot.model.cluster;
    let gaps = cluster.gaps(FeedKind::REMOVAL.into_iter().chain(FeedKind::REPLACEMENTS)).unknown();
    if !can_place(cluster) || !gaps.is_empty() {
        return Err(CliError::Unknown { what: "no waves can be worked out".into(), gaps });
    }
    let options = args.options(&shot)?;
    let plan = MaintenancePlan::new(cluster, &options, EvictionRules::from(&shot.model.settings), shot.at);
    args.once.output.print(&MaintenanceReport::new(&plan, &options), table::render)?;
    shot.done()?;
    match plan.left_out.len() {
        0 => Ok(()),
        nodes => Err(CliError::WouldNot {
            prospect: Prospect::Blocked,
            text: format!("{} in no wave", counted(nodes, "node is", "nodes are")),
        }),
    }
}

impl MaintenanceArgs {
    fn options(&self, shot: &OneShot) -> Result<MaintenanceOptions, CliError> {
        let cluster = &shot.model.cluster;
        let nodes =
            self.nodes.names(cluster)?.into_iter().filter(|name| !self.stale_kubelet || is_stale(shot, name));
        let nodes: Vec<NodeName> = nodes.collect();
        if nodes.is_empty() {
            return Err(CliError::Usage("--stale-kubelet: every kubelet is as new as the API server".into()));
        }
        let (max_per_zone, ends) = (self.max_per_zone, self.max_duration.map(|longest| shot.at + longest));
        let windows = self.window.map_or_else(Vec::new, |window| window.upcoming(shot.at));
        let windows = match ends {
            None => windows,
            Some(ends) if windows.is_empty() => vec![(shot.at, ends)],
            Some(ends) => windows.into_iter().map(|(start, end)| (start, end.min(ends))).collect(),
        };
        Ok(MaintenanceOptions {
            nodes,
            drain: DrainOptions {
                ignore_daemonsets: true,
                force: self.force,
                delete_emptydir_data: self.delete_emptydir_data,
                ..DrainOptions::default()
            },
            parallel: self.parallel.0,
            max_per_zone: max_per_zone.and_then(|most| usize::try_from(most).ok()),
            work: self.work_takes,
            settle: self.settle,
            keeps_headroom: cluster.nodes().len() <= HEADROOM_UP_TO,
            windows,
        })
    }
}

/// Whether the kubelet of a node is of an older minor version than the API server.
fn is_stale(shot: &OneShot, name: &NodeName) -> bool {
    let Some(node) = shot.model.cluster.node(name) else { return false };
    let version = node.kubelet_version.trim_start_matches('v');
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
    let (major, minor) = (numbers.next().flatten(), numbers.next().flatten());
    let server = shot.connection.version;
    major == Some(server.major) && minor.is_some_and(|minor| minor < server.minor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_nodes_at_a_time_is_auto_or_positive() {
        assert_eq!(parallel("auto"), Ok(Parallel(None)));
        assert_eq!(parallel("3"), Ok(Parallel(Some(3))));
        assert!(parallel("0").is_err() && parallel("many").is_err());
    }
}
