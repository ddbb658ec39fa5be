//! Arguments of `kordon maintenance`.

use clap::{Args, ValueEnum};

use crate::{
    app::daily_window::{self, DailyWindow},
    cli::{
        act::AgreementArgs,
        exit::CliError,
        node_choice::NodeChoice,
        once::{OnceArgs, OneShot},
        span,
    },
    executor::hook::Hook,
    run::maintenance::{MaintenanceTerms, OnFailure},
};
use kordon_core::{
    cluster::{NodeName, OperationId},
    maintenance::{Gate, HEADROOM_UP_TO, MaintenanceOptions, WaitFor},
    operation::Guards,
    plan::{DrainOptions, Retry},
};
use kordon_time::Span;

#[derive(Args, Debug)]
pub struct MaintenanceArgs {
    #[command(flatten)]
    pub nodes: NodeChoice,
    /// Only nodes whose kubelet is of an older minor version than the API server
    #[arg(long)]
    pub stale_kubelet: bool,
    /// Maximum number of nodes maintained at the same time; auto is as many as possible
    #[arg(long, value_name = "auto|NODES", default_value = "auto", value_parser = parallel)]
    parallel: Parallel,
    /// Maximum number of nodes of one zone maintained at the same time
    #[arg(long, value_name = "NODES", value_parser = clap::value_parser!(u32).range(1..))]
    max_per_zone: Option<u32>,
    /// Let control plane nodes be maintained at the same time; otherwise a wave has at most one of them
    #[arg(long)]
    control_planes_together: bool,
    /// How long the schedule assumes that the work on an empty node takes, until the node is back
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = span::span)]
    work_takes: Span,
    /// How long a node has to be healthy before it counts as done
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = span::span)]
    settle: Span,
    /// Times of day at which waves may run, as in '22:00-06:00 Europe/Berlin'; without a zone in UTC
    #[arg(long, value_name = "FROM-TO [ZONE]", value_parser = daily_window::window)]
    window: Option<DailyWindow>,
    /// The longest that all waves may take, from the start of the first to the end of the last
    #[arg(long, value_name = "DURATION", value_parser = span::span)]
    max_duration: Option<Span>,
    /// Also evict pods without a controller, which are lost, and pods of deleted DaemonSets
    #[arg(long)]
    force: bool,
    /// Also evict pods with emptyDir volumes, whose data is lost
    #[arg(long)]
    delete_emptydir_data: bool,
    /// Scale up by one each Deployment whose PodDisruptionBudget can never allow an eviction, until its pods have left
    #[arg(long)]
    pub surge: bool,
    /// Also drain nodes whose pods find no other node: these pods wait until their node is back
    #[arg(long)]
    allow_pending: bool,
    /// Also maintain nodes after which the loss of a node or zone would strand more pods than now
    #[arg(long)]
    allow_worse_loss: bool,
    /// Command that does the work on an empty node. It runs here, {node} in it stands for the name of the node, and its
    /// exit code says whether the work succeeded
    #[arg(long, value_name = "COMMAND", value_parser = Hook::parse, help_heading = "Carrying it out")]
    pub exec: Option<Hook>,
    /// Sign that others have done the work: boot, kubelet or kernel (it has changed), no-taint=KEY, annotation=KEY or
    /// no-annotation=KEY (of the node), or replaced (the Node object was created anew)
    #[arg(long, value_name = "WHAT", value_parser = str::parse::<WaitFor>, help_heading = "Carrying it out")]
    pub wait_for: Option<WaitFor>,
    /// Further gate between waves: a command that runs here and has to succeed
    #[arg(long, value_name = "COMMAND", value_parser = Hook::parse, help_heading = "Carrying it out")]
    pub gate: Option<Hook>,
    /// Do not look at this gate between waves; may be repeated
    #[arg(long, value_name = "GATE", value_enum, value_delimiter = ',', help_heading = "Carrying it out")]
    without_gate: Vec<GateName>,
    /// How long to wait for a gate before the maintenance stops
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = span::span, help_heading = "Carrying it out")]
    gate_timeout: Span,
    /// How long the drain of a node may take
    #[arg(long, value_name = "DURATION", default_value = "2h", value_parser = span::span, help_heading = "Carrying it out")]
    drain_timeout: Span,
    /// How long the work on a node may take, until the node is healthy again
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = span::span, help_heading = "Carrying it out")]
    work_timeout: Span,
    /// What to do with the nodes that are not drained yet when something fails
    #[arg(long, value_enum, default_value = "pause", help_heading = "Carrying it out")]
    on_failure: OnFailure,
    /// Continue a maintenance that was stopped; the id may be left out if only one was stopped
    #[arg(long, value_name = "OPERATION", num_args = 0..=1, require_equals = true, requires = "enforce",
        help_heading = "Carrying it out")]
    pub resume: Option<Option<OperationId>>,
    /// End a maintenance that was stopped, and uncordon the nodes that it had cordoned
    #[arg(
        long,
        value_name = "OPERATION",
        requires = "enforce",
        conflicts_with = "resume",
        help_heading = "Carrying it out"
    )]
    pub release: Option<OperationId>,
    #[command(flatten)]
    pub agreement: AgreementArgs,
    #[command(flatten)]
    pub once: OnceArgs,
}

/// Gates between waves that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GateName {
    /// The verdict on the cluster is at most a notice, or no worse than at the start
    Verdict,
    /// No controller has more pods without a node than at the start
    Pending,
    /// No controller has more pods that are not Ready than at the start
    Ready,
    /// Every budget allows at least as many disruptions as at the start
    Budgets,
}

impl GateName {
    const fn gate(self) -> Gate {
        match self {
            Self::Verdict => Gate::Verdict,
            Self::Pending => Gate::Pending,
            Self::Ready => Gate::Ready,
            Self::Budgets => Gate::Budgets,
        }
    }
}

/// Maximum number of nodes maintained at the same time; `None` for as many as possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Parallel(Option<usize>);

fn parallel(text: &str) -> Result<Parallel, String> {
    match (text, text.parse()) {
        ("auto", _) => Ok(Parallel(None)),
        (_, Ok(0)) | (_, Err(_)) => Err("neither auto nor a number of nodes".into()),
        (_, Ok(most)) => Ok(Parallel(Some(most))),
    }
}

impl MaintenanceArgs {
    /// The chosen nodes.
    ///
    /// # Errors
    /// No node is chosen, or a named node does not exist.
    pub fn chosen(&self, shot: &OneShot) -> Result<Vec<NodeName>, CliError> {
        if self.nodes.is_all() && !self.stale_kubelet {
            let text = "name the nodes, or choose them by -l, --pool, --zone or --stale-kubelet";
            return Err(CliError::Usage(text.into()));
        }
        let mut nodes = self.nodes.names(&shot.model.cluster)?;
        nodes.retain(|name| !self.stale_kubelet || is_stale(shot, name));
        if nodes.is_empty() {
            let text = match self.stale_kubelet {
                true => "--stale-kubelet: every kubelet is as new as the API server",
                false => "the cluster has no nodes",
            };
            return Err(CliError::Usage(text.into()));
        }
        Ok(nodes)
    }

    /// Returns the commands, gates and time limits with which the maintenance is carried out.
    pub fn terms(&self) -> MaintenanceTerms {
        MaintenanceTerms {
            exec: self.exec.clone(),
            wait_for: self.wait_for.clone(),
            gate: self.gate.clone(),
            without_gates: self.without_gate.iter().map(|name| name.gate()).collect(),
            gate_timeout: self.gate_timeout,
            work_timeout: self.work_timeout,
            on_failure: self.on_failure,
            reason: self.agreement.reason.clone(),
            overrides: self.agreement.overrides(),
        }
    }

    /// Returns the options for planning a maintenance of these nodes.
    pub fn options(&self, nodes: Vec<NodeName>, guards: Guards, shot: &OneShot) -> MaintenanceOptions {
        MaintenanceOptions {
            nodes,
            drain: DrainOptions {
                ignore_daemonsets: true,
                force: self.force,
                delete_emptydir_data: self.delete_emptydir_data,
                timeout: Some(self.drain_timeout),
                surge: self.surge,
                retry: Retry::OnRecovery,
                ..DrainOptions::default()
            },
            parallel: self.parallel.0,
            allows_pending: self.allow_pending,
            control_planes_together: self.control_planes_together,
            max_per_zone: self.max_per_zone.and_then(|most| usize::try_from(most).ok()),
            work: self.work_takes,
            settle: self.settle,
            keeps_headroom: !self.allow_worse_loss && shot.model.cluster.nodes().len() <= HEADROOM_UP_TO,
            before: None,
            guards: guards.without(&self.agreement.overrides().guards),
            windows: self.window.map_or_else(Vec::new, |window| window.upcoming(shot.at)),
            longest: self.max_duration,
            began: None,
        }
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
