//! `kordon plan`: what an action would do, worked out over the cluster as it is. Nothing is written.

mod report;
mod table;
mod validate;
mod targets;

use std::time::Duration;

use clap::{Args, Subcommand};

use super::{
    connection::ConnectionArgs,
    exit::CliError,
    forecast::{self, NodeFailureArgs, ZoneFailureArgs},
    once::{OneShot, OneShotQuery, Output},
    settings::SettingsArgs,
    span,
};
use crate::{
    cluster::{Key, Selector, WorkloadKind},
    k8s::feed::FeedKind,
    placement::Snapshot,
    plan::{
        Action, DrainOptions, Plan, PlanError, Prospect, RemovalOptions, Retry, TaintEdits,
        label_edits::LabelEdits,
    },
    time::Span,
};
use report::PlanReport;
use targets::{NodeTargets, PodTargets, bad, node_words, pod_words};
use validate::ValidationAnswers;
pub(super) use validate::{word as answer_word, words as step_words};

#[derive(Args, Debug)]
pub struct PlanArgs {
    #[command(subcommand)]
    asked: Asking,
}

/// What may be asked about: what we might do, and what might happen.
#[derive(Debug, Subcommand)]
enum Asking {
    #[command(flatten)]
    Wish(PlanCommand),
    /// What follows when nodes fall silent: Unknown, taints, evictions, with their times
    NodeFailure(NodeFailureArgs),
    /// What follows when all nodes of a zone fall silent
    ZoneFailure(ZoneFailureArgs),
}

impl From<PlanCommand> for PlanArgs {
    fn from(wish: PlanCommand) -> Self {
        Self { asked: Asking::Wish(wish) }
    }
}

/// What is asked for, in kubectl's words.
#[derive(Debug, Subcommand)]
pub(super) enum PlanCommand {
    /// Who leaves these nodes, when and in which order; who is blocked, and by which budget
    Drain(DrainArgs),
    /// What marking nodes unschedulable means
    Cordon(NodesArgs),
    /// What marking nodes schedulable again means
    Uncordon(NodesArgs),
    /// What taints do: every pod that a NoExecute taint deletes, with its time
    Taint(TaintArgs),
    /// What labels change on nodes
    Label(LabelArgs),
    /// What evicting pods does, budget by budget
    Evict(PodsArgs),
    /// What deleting pods does; budgets are not asked
    Delete(PodsArgs),
}

#[derive(Args, Debug)]
pub(super) struct PrintArgs {
    /// How to print it
    #[arg(long, short, value_enum, default_value_t = Output::Table)]
    pub(super) output: Output,
    /// How long to wait until everything has been listed
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = span::span)]
    pub(super) list_timeout: Span,
    /// Ask the server about every write, each once and as a dry run (dryRun=All): nothing is written
    #[arg(long)]
    pub(super) validate: bool,
}

#[derive(Args, Debug)]
pub(super) struct NodesArgs {
    /// The nodes, by name
    #[arg(value_name = "NODE")]
    nodes: Vec<String>,
    /// Selects nodes by their labels instead
    #[arg(long, short = 'l', value_name = "SELECTOR", value_parser = Selector::parse)]
    selector: Option<Selector>,
    #[command(flatten)]
    pub(super) print: PrintArgs,
}

#[derive(Args, Debug)]
pub(super) struct DrainArgs {
    #[command(flatten)]
    pub(super) nodes: NodesArgs,
    /// Take pods too that no controller brings back, and those of DaemonSets that are gone
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false", hide_possible_values = true, action = clap::ArgAction::Set)]
    force: bool,
    /// Leave the pods of DaemonSets where they are
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false", hide_possible_values = true, action = clap::ArgAction::Set)]
    ignore_daemonsets: bool,
    /// Take pods too that have an emptyDir, whose data is lost
    #[arg(long, visible_alias = "delete-local-data", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false", hide_possible_values = true, action = clap::ArgAction::Set)]
    delete_emptydir_data: bool,
    /// Delete pods instead of evicting them: budgets are not asked
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false", hide_possible_values = true, action = clap::ArgAction::Set)]
    disable_eviction: bool,
    /// The grace period of all pods in seconds; below zero the pods' own
    #[arg(long, value_name = "SECONDS", default_value_t = -1, allow_negative_numbers = true)]
    grace_period: i64,
    /// How long the drain of one node may take; 0 is for ever
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = span::timeout)]
    timeout: Duration,
    /// Take only these pods; all others stay
    #[arg(long, value_name = "SELECTOR", value_parser = Selector::parse)]
    pod_selector: Option<Selector>,
    /// Do not wait for pods whose deletion is overdue by more than so many seconds; 0 waits for all
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    skip_wait_for_delete_timeout: u32,
    /// How many nodes at a time; kubectl does one after the other
    #[arg(long, value_name = "NODES", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    parallel: u16,
}

#[derive(Args, Debug)]
pub(super) struct TaintArgs {
    /// As kubectl has it: `nodes NODE... key=value:effect... key:effect-... key-...`
    #[arg(value_name = "WORDS", required = true)]
    words: Vec<String>,
    #[command(flatten)]
    edit: EditArgs,
}

#[derive(Args, Debug)]
pub(super) struct LabelArgs {
    /// As kubectl has it: `nodes NODE... key=value... key-...`
    #[arg(value_name = "WORDS", required = true)]
    words: Vec<String>,
    #[command(flatten)]
    edit: EditArgs,
}

/// What changing taints and labels have in common.
#[derive(Args, Debug)]
pub(super) struct EditArgs {
    /// Selects nodes by their labels instead of by name
    #[arg(long, short = 'l', value_name = "SELECTOR", value_parser = Selector::parse)]
    selector: Option<Selector>,
    /// All nodes
    #[arg(long)]
    all: bool,
    /// Let what is there be changed
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    print: PrintArgs,
}

#[derive(Args, Debug)]
pub(super) struct PodsArgs {
    /// As kubectl has it: `pod NAME...`; --namespace says where they are
    #[arg(value_name = "POD")]
    words: Vec<String>,
    /// Selects pods of the namespace by their labels instead
    #[arg(long, short = 'l', value_name = "SELECTOR", value_parser = Selector::parse)]
    selector: Option<Selector>,
    /// In all namespaces; with a selector only
    #[arg(long, short = 'A', requires = "selector")]
    all_namespaces: bool,
    /// The grace period in seconds; below zero the pods' own
    #[arg(long, value_name = "SECONDS", default_value_t = -1, allow_negative_numbers = true)]
    grace_period: i64,
    /// A grace period of one second
    #[arg(long, conflicts_with = "grace_period")]
    now: bool,
    /// Remove the objects at once, a grace period of zero
    #[arg(long, conflicts_with_all = ["now", "grace_period"])]
    force: bool,
    /// How long it may take; 0 is for ever
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = span::timeout)]
    timeout: Duration,
    #[command(flatten)]
    print: PrintArgs,
}

/// What plans are worked out of.
pub(super) const WANTED: [FeedKind; 16] = [
    FeedKind::Nodes,
    FeedKind::Leases,
    FeedKind::Pods,
    FeedKind::Budgets,
    FeedKind::Workloads(WorkloadKind::ReplicaSet),
    FeedKind::Workloads(WorkloadKind::Deployment),
    FeedKind::Workloads(WorkloadKind::StatefulSet),
    FeedKind::Workloads(WorkloadKind::ReplicationController),
    FeedKind::Workloads(WorkloadKind::DaemonSet),
    FeedKind::Workloads(WorkloadKind::Job),
    FeedKind::Namespaces,
    FeedKind::Services,
    FeedKind::Claims,
    FeedKind::Volumes,
    FeedKind::StorageClasses,
    FeedKind::CsiNodes,
];

pub async fn run(args: PlanArgs, connection: ConnectionArgs) -> Result<(), CliError> {
    let wish = match args.asked {
        Asking::Wish(wish) => wish,
        Asking::NodeFailure(args) => return forecast::node_failure(args, connection).await,
        Asking::ZoneFailure(args) => return forecast::zone_failure(args, connection).await,
    };
    let targets = wish.targets()?;
    let print = wish.print();
    let question = OneShotQuery {
        wanted: &WANTED,
        no_pods: false,
        timeout: print.list_timeout,
        settings: &SettingsArgs::default(),
        flag: "--list-timeout",
    };
    let asked = OneShot::answer(&question, connection).await?;
    let (cluster, now) = (&asked.model.cluster, asked.at);
    let action = targets.action(cluster, &asked.namespace);
    let version = asked.model.settings.version;
    let snapshot = Some(Snapshot::new(cluster, version));
    let plan = Plan::over(action, cluster, snapshot, version, now).map_err(not_there)?;
    let mut report = PlanReport::new(&plan);
    let answers = if print.validate {
        ValidationAnswers::to(&plan, &asked.connection).await
    } else {
        ValidationAnswers::default()
    };
    report.answered(&answers);
    print.output.print(&report, table::render)?;
    let prospect = plan.prospect();
    asked.done()?;
    match prospect {
        Prospect::Completes => answers.verdict(&plan),
        Prospect::Stalls | Prospect::Blocked | Prospect::Refused => {
            Err(CliError::WouldNot { prospect, text: plan.in_short() })
        }
    }
}

pub(super) fn not_there(error: PlanError) -> CliError {
    match error {
        PlanError::NoSuchNode(names) => CliError::NotFound(format!("node {}", joined(&names))),
        PlanError::NoSuchPod(keys) => CliError::NotFound(format!("pod {}", joined(&keys))),
    }
}

/// A plan as people read it.
pub(super) fn shown_plan(plan: &Plan) -> String {
    table::render(&PlanReport::new(plan))
}

fn joined<T: std::fmt::Display>(names: &[T]) -> String {
    names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// What is asked for, read and checked; the cluster has still to say which objects a selector means.
#[derive(Debug)]
pub(super) enum PlanTarget {
    Cordon(NodeTargets),
    Uncordon(NodeTargets),
    Taint(NodeTargets, TaintEdits),
    Label(NodeTargets, LabelEdits),
    Drain(NodeTargets, DrainOptions),
    Evict(PodTargets, RemovalOptions),
    Delete(PodTargets, RemovalOptions),
}

impl PlanCommand {
    pub(super) fn print(&self) -> &PrintArgs {
        match self {
            Self::Drain(args) => &args.nodes.print,
            Self::Cordon(args) | Self::Uncordon(args) => &args.print,
            Self::Taint(TaintArgs { edit, .. }) | Self::Label(LabelArgs { edit, .. }) => &edit.print,
            Self::Evict(args) | Self::Delete(args) => &args.print,
        }
    }

    pub(super) fn targets(&self) -> Result<PlanTarget, CliError> {
        Ok(match self {
            Self::Cordon(args) => PlanTarget::Cordon(args.targets()?),
            Self::Uncordon(args) => PlanTarget::Uncordon(args.targets()?),
            Self::Drain(args) => PlanTarget::Drain(args.nodes.targets()?, args.options()),
            Self::Taint(TaintArgs { words, edit }) => {
                let (nodes, words) = node_words(words, TaintEdits::is_word, "taint")?;
                let edits = TaintEdits::parse(words, edit.overwrite).map_err(bad)?;
                PlanTarget::Taint(edit.targets(nodes)?, edits)
            }
            Self::Label(LabelArgs { words, edit }) => {
                let (nodes, words) = node_words(words, LabelEdits::is_word, "label")?;
                let edits = LabelEdits::parse(words, edit.overwrite).map_err(bad)?;
                PlanTarget::Label(edit.targets(nodes)?, edits)
            }
            Self::Evict(args) => PlanTarget::Evict(args.targets()?, args.options()),
            Self::Delete(args) => PlanTarget::Delete(args.targets()?, args.options()),
        })
    }
}

impl NodesArgs {
    fn targets(&self) -> Result<NodeTargets, CliError> {
        let names = self.nodes.iter().map(String::as_str).collect();
        NodeTargets::new(names, self.selector.clone(), false)
    }
}

impl EditArgs {
    fn targets(&self, names: Vec<&str>) -> Result<NodeTargets, CliError> {
        NodeTargets::new(names, self.selector.clone(), self.all)
    }
}

impl PodsArgs {
    fn targets(&self) -> Result<PodTargets, CliError> {
        PodTargets::new(pod_words(&self.words)?, self.selector.clone(), self.all_namespaces)
    }

    fn options(&self) -> RemovalOptions {
        let grace = match (self.force, self.now, self.grace_period) {
            (true, ..) => Some(Span::ZERO),
            (_, true, _) => Some(Span::from_secs(1)),
            (.., grace) => seconds(grace),
        };
        RemovalOptions { grace, timeout: limit(self.timeout), retry: Retry::OnRecovery }
    }
}

impl DrainArgs {
    fn options(&self) -> DrainOptions {
        DrainOptions {
            force: self.force,
            ignore_daemonsets: self.ignore_daemonsets,
            delete_emptydir_data: self.delete_emptydir_data,
            grace: seconds(self.grace_period),
            timeout: limit(self.timeout),
            pod_selector: self.pod_selector.clone(),
            disable_eviction: self.disable_eviction,
            skip_wait_for_delete: Some(Span::from_secs(self.skip_wait_for_delete_timeout.into()))
                .filter(|limit| *limit > Span::ZERO),
            parallel: self.parallel.into(),
            retry: Retry::OnRecovery,
        }
    }
}

/// kubectl's grace periods: below zero is none given.
fn seconds(grace: i64) -> Option<Span> {
    (grace >= 0).then(|| Span::from_secs(grace))
}

/// kubectl's time limits: zero is for ever.
fn limit(timeout: Duration) -> Option<Span> {
    Some(Span::from(timeout)).filter(|timeout| *timeout > Span::ZERO)
}

impl PlanTarget {
    pub(super) fn action(self, cluster: &crate::cluster::Cluster, namespace: &str) -> Action {
        match self {
            Self::Cordon(targets) => Action::Cordon { nodes: targets.names(cluster) },
            Self::Uncordon(targets) => Action::Uncordon { nodes: targets.names(cluster) },
            Self::Taint(targets, edits) => Action::Taint { nodes: targets.names(cluster), edits },
            Self::Label(targets, edits) => Action::Label { nodes: targets.names(cluster), edits },
            Self::Drain(targets, options) => Action::Drain { nodes: targets.names(cluster), options },
            Self::Evict(targets, options) => {
                Action::Evict { pods: pods(targets, cluster, namespace), options }
            }
            Self::Delete(targets, options) => {
                Action::Delete { pods: pods(targets, cluster, namespace), options }
            }
        }
    }
}

fn pods(targets: PodTargets, cluster: &crate::cluster::Cluster, namespace: &str) -> Vec<Key> {
    targets.keys(cluster, namespace)
}
