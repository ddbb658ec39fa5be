//! Arguments of `kordon plan` and of the actions, with kubectl's words and flags.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::{
    super::{
        exit::CliError,
        forecast::{NodeFailureArgs, ZoneFailureArgs},
        once::Patience,
        output::OutputArgs,
        pressure::PressureArgs,
        scheduler_flags::SchedulerArgs,
        settings::SettingsArgs,
        source::SourceArgs,
        span,
    },
    targets::{MissingPods, NodeTargets, PlanTarget, PodTargets, node_words, pod_words, usage},
};
use kordon_core::{
    cluster::{FieldSelector, Selector},
    plan::{DrainOptions, MetadataEdits, MetadataField, RemovalOptions, Retry, TaintEdits},
};
use kordon_time::Span;

#[derive(Args, Debug)]
pub struct PlanArgs {
    #[command(subcommand)]
    pub(super) subject: PlanSubject,
}

/// What is previewed: an operation of kordon, or a failure.
#[derive(Debug, Subcommand)]
pub(super) enum PlanSubject {
    #[command(flatten)]
    Operation(PlanCommand),
    /// Predict the failure of nodes: Unknown, taints, evictions and replacements, with their times
    NodeFailure(NodeFailureArgs),
    /// Predict the failure of all nodes of a zone
    ZoneFailure(ZoneFailureArgs),
    /// Predict which pods the kubelet of a node evicts when memory, disk or process ids run out
    Pressure(PressureArgs),
}

/// An operation, with kubectl's arguments.
#[derive(Debug, Subcommand)]
pub enum PlanCommand {
    /// Preview a drain: which pods leave when, and which PodDisruptionBudgets block them
    Drain(DrainArgs),
    /// Preview marking nodes as unschedulable
    Cordon(NodesArgs),
    /// Preview marking nodes as schedulable, and which Pending pods land there
    Uncordon(NodesArgs),
    /// Preview taints: which pods a NoExecute taint deletes, and when
    Taint(TaintArgs),
    /// Preview label changes of nodes
    Label(MetadataArgs),
    /// Preview annotation changes of nodes
    Annotate(MetadataArgs),
    /// Preview evictions, and which PodDisruptionBudgets block them
    Evict(PodsArgs),
    /// Preview deletions; PodDisruptionBudgets are not consulted
    Delete(PodsArgs),
}

#[derive(Args, Clone, Debug)]
pub struct PrintArgs {
    #[command(flatten)]
    pub output: OutputArgs,
    /// Timeout for reading the cluster's objects
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = span::span)]
    list_timeout: Span,
    /// Whether to compute where pods land, for which the whole cluster is listed; by default `auto` for a plan, `skip`
    /// with --enforce
    #[arg(long, value_name = "MODE", value_enum)]
    pub placement: Option<PlacementMode>,
    #[command(flatten)]
    pub scheduler: SchedulerArgs,
    /// As in kubectl: `client` prints the plan, as without --enforce; `server` also sends each write to the server as a
    /// dry run (dryRun=All) and prints its answer. Nothing is written
    #[arg(long, value_name = "MODE", value_enum, num_args = 0..=1, require_equals = true,
        default_missing_value = "client", default_value = "none", hide_default_value = true)]
    dry_run: DryRunMode,
    /// Print what the plan changes in each object as a diff of its YAML, and the pods that it removes, one a line
    #[arg(long)]
    pub diff: bool,
    /// Accepted as in kubectl, but has no effect: kordon chooses the size of pages itself
    #[arg(long, value_name = "OBJECTS", hide = true)]
    chunk_size: Option<u32>,
    #[command(flatten)]
    pub settings: SettingsArgs,
    #[command(flatten)]
    pub source: SourceArgs,
}

/// kubectl's `--dry-run`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DryRunMode {
    None,
    Client,
    Server,
}

/// Whether a plan says where pods land. That takes lists of the whole cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PlacementMode {
    /// Wait until the whole cluster is listed
    Wait,
    /// Leave placements out
    Skip,
    /// Leave placements out in a large cluster, or when the lists take longer than 2 s
    Auto,
}

impl PrintArgs {
    /// Starts the time limit for reading the cluster's objects.
    pub fn patience(&self) -> Patience {
        Patience::start(self.list_timeout, "--list-timeout")
    }

    /// Whether the server is asked to validate the writes.
    pub fn validates(&self) -> bool {
        self.dry_run == DryRunMode::Server
    }

    /// The flag that forbids writes; `None` if no such flag was given.
    pub fn writes_nothing(&self) -> Option<&'static str> {
        match self.dry_run {
            DryRunMode::None if self.diff => Some("--diff"),
            DryRunMode::Client | DryRunMode::Server => Some("--dry-run"),
            DryRunMode::None => None,
        }
    }
}

#[derive(Args, Debug)]
pub struct NodesArgs {
    /// Names of nodes
    #[arg(value_name = "NODE")]
    nodes: Vec<String>,
    /// Select nodes by label instead of by name
    #[arg(long, short = 'l', value_name = "SELECTOR", value_parser = Selector::parse)]
    selector: Option<Selector>,
    #[command(flatten)]
    pub print: PrintArgs,
}

#[derive(Args, Debug)]
pub struct DrainArgs {
    #[command(flatten)]
    pub nodes: NodesArgs,
    /// Also evict pods without a controller, which are lost, and pods of deleted DaemonSets
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false", hide_possible_values = true, action = clap::ArgAction::Set)]
    force: bool,
    /// Leave pods of DaemonSets in place
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false", hide_possible_values = true, action = clap::ArgAction::Set)]
    ignore_daemonsets: bool,
    /// Also evict pods with emptyDir volumes, whose data is lost
    #[arg(long, visible_alias = "delete-local-data", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false", hide_possible_values = true, action = clap::ArgAction::Set)]
    delete_emptydir_data: bool,
    /// Delete pods instead of evicting them; PodDisruptionBudgets are not consulted
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false", hide_possible_values = true, action = clap::ArgAction::Set)]
    disable_eviction: bool,
    /// Grace period of all pods in seconds; negative: each pod's own
    #[arg(long, value_name = "SECONDS", default_value_t = -1, allow_negative_numbers = true)]
    grace_period: i64,
    /// Timeout of the drain of one node; 0 is no timeout
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = span::timeout)]
    timeout: Duration,
    /// Evict only the pods with these labels; all others stay
    #[arg(long, value_name = "SELECTOR", value_parser = Selector::parse)]
    pod_selector: Option<Selector>,
    /// Do not wait for pods whose deletionTimestamp is older than this; 0 waits for all
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    skip_wait_for_delete_timeout: u32,
    /// Scale up by one each Deployment whose PodDisruptionBudget can never allow an eviction, until its pods have left.
    /// Whether that is possible is in the plan
    #[arg(long)]
    surge: bool,
    /// Nodes to drain at the same time; kubectl drains one after the other
    #[arg(long, value_name = "NODES", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    parallel: u16,
}

#[derive(Args, Debug)]
pub struct TaintArgs {
    /// Nodes and taints, as in kubectl: `[nodes] NODE... key=value:effect... key:effect-... key-...`
    #[arg(value_name = "NODE|TAINT", required = true)]
    words: Vec<String>,
    /// As in kubectl: what the server does about unknown fields. kordon writes none
    #[arg(long, value_name = "MODE", num_args = 0..=1, require_equals = true, default_missing_value = "strict",
        hide = true, value_parser = ["strict", "true", "warn", "ignore", "false"])]
    validate: Option<String>,
    #[command(flatten)]
    edit: EditArgs,
}

/// Arguments of the commands that change labels or annotations.
#[derive(Args, Debug)]
pub struct MetadataArgs {
    /// Nodes and changes, as in kubectl: `[nodes] NODE... key=value... key-...`
    #[arg(value_name = "NODE|KEY=VALUE", required_unless_present = "list")]
    words: Vec<String>,
    /// Print the labels or annotations of the nodes instead of changing them
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false", hide_default_value = true, hide_possible_values = true, action = clap::ArgAction::Set)]
    pub list: bool,
    /// Select nodes by field: metadata.name, spec.unschedulable
    #[arg(long, value_name = "SELECTOR", value_parser = FieldSelector::for_nodes)]
    field_selector: Option<FieldSelector>,
    #[command(flatten)]
    edit: EditArgs,
}

/// Flags that the commands for taints, labels and annotations share.
#[derive(Args, Debug)]
pub struct EditArgs {
    /// Select nodes by label instead of by name
    #[arg(long, short = 'l', value_name = "SELECTOR", value_parser = Selector::parse)]
    selector: Option<Selector>,
    /// Select all nodes
    #[arg(long)]
    all: bool,
    /// Allow existing values to change
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    print: PrintArgs,
}

#[derive(Args, Debug)]
pub struct PodsArgs {
    /// Names of pods, as in kubectl: `[pod] NAME...`, or NAMESPACE/NAME
    #[arg(value_name = "POD")]
    words: Vec<String>,
    /// Select pods of the namespace by label instead of by name
    #[arg(long, short = 'l', value_name = "SELECTOR", value_parser = Selector::parse)]
    selector: Option<Selector>,
    /// Select pods by field: metadata.name, metadata.namespace, spec.nodeName, status.phase, status.nominatedNodeName
    #[arg(long, value_name = "SELECTOR", value_parser = FieldSelector::for_pods)]
    field_selector: Option<FieldSelector>,
    /// Select pods in all namespaces
    #[arg(long, short = 'A')]
    all_namespaces: bool,
    /// Select all pods of the namespace
    #[arg(long)]
    all: bool,
    /// Pods that do not exist are no failure
    #[arg(long)]
    ignore_not_found: bool,
    /// Grace period in seconds; negative: each pod's own; 0 is 1 second without --force, as in kubectl
    #[arg(long, value_name = "SECONDS", default_value_t = -1, allow_negative_numbers = true)]
    grace_period: i64,
    /// Use a grace period of 1 second
    #[arg(long, conflicts_with = "grace_period")]
    now: bool,
    /// Remove the objects immediately: a grace period of 0
    #[arg(long, conflicts_with = "now")]
    force: bool,
    /// Wait until the pods are gone: kordon always does
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
        default_value = "true", hide = true, value_parser = waits, action = clap::ArgAction::Set)]
    wait: bool,
    /// Timeout of the operation; 0 is no timeout
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = span::timeout)]
    timeout: Duration,
    #[command(flatten)]
    print: PrintArgs,
}

impl PlanCommand {
    pub fn print(&self) -> &PrintArgs {
        match self {
            Self::Drain(args) => &args.nodes.print,
            Self::Cordon(args) | Self::Uncordon(args) => &args.print,
            Self::Taint(TaintArgs { edit, .. })
            | Self::Label(MetadataArgs { edit, .. })
            | Self::Annotate(MetadataArgs { edit, .. }) => &edit.print,
            Self::Evict(args) | Self::Delete(args) => &args.print,
        }
    }

    pub fn target(&self) -> Result<PlanTarget, CliError> {
        Ok(match self {
            Self::Cordon(args) => PlanTarget::Cordon(args.targets()?),
            Self::Uncordon(args) => PlanTarget::Uncordon(args.targets()?),
            Self::Drain(args) => PlanTarget::Drain(args.nodes.targets()?, args.options()),
            Self::Taint(args) => args.target()?,
            Self::Label(args) => args.target(MetadataField::Labels)?,
            Self::Annotate(args) => args.target(MetadataField::Annotations)?,
            Self::Evict(args) => PlanTarget::Evict(args.targets()?, args.options()?),
            Self::Delete(args) => match args.named_nodes() {
                Some(words) => PlanTarget::DeleteNode(args.node_targets(words)?),
                None => PlanTarget::Delete(args.targets()?, args.options()?),
            },
        })
    }

    /// Arguments of `--list`, with which the command prints labels or annotations and changes nothing; `None` without
    /// it.
    pub fn listed(&self) -> Option<(MetadataField, &MetadataArgs)> {
        let (field, args) = match self {
            Self::Label(args) => (MetadataField::Labels, args),
            Self::Annotate(args) => (MetadataField::Annotations, args),
            Self::Drain(_)
            | Self::Cordon(_)
            | Self::Uncordon(_)
            | Self::Taint(_)
            | Self::Evict(_)
            | Self::Delete(_) => return None,
        };
        args.list.then_some((field, args))
    }
}

impl PlanArgs {
    /// Checks the objects that the operation names.
    pub fn check_targets(&self) -> Result<(), CliError> {
        match &self.subject {
            PlanSubject::Operation(PlanCommand::Label(args)) => args.check_targets(MetadataField::Labels),
            PlanSubject::Operation(PlanCommand::Annotate(args)) => {
                args.check_targets(MetadataField::Annotations)
            }
            PlanSubject::Operation(command) => command.target().map(drop),
            PlanSubject::NodeFailure(_) | PlanSubject::ZoneFailure(_) | PlanSubject::Pressure(_) => Ok(()),
        }
    }
}

impl TaintArgs {
    pub fn target(&self) -> Result<PlanTarget, CliError> {
        let Self { words, edit, .. } = self;
        let (nodes, words) = node_words(words, TaintEdits::is_word, "taint")?;
        let edits = TaintEdits::parse(words, edit.overwrite).map_err(usage)?;
        Ok(PlanTarget::Taint(edit.targets(nodes, None)?, edits))
    }
}

impl NodesArgs {
    pub fn targets(&self) -> Result<NodeTargets, CliError> {
        let names = self.nodes.iter().map(String::as_str).collect();
        NodeTargets::new(names, self.selector.clone(), None, false)
    }
}

impl MetadataArgs {
    pub fn target(&self, field: MetadataField) -> Result<PlanTarget, CliError> {
        let Self { words, edit, field_selector, .. } = self;
        let (nodes, words) = node_words(words, MetadataEdits::is_word, field.one())?;
        let edits = MetadataEdits::parse(field, words, edit.overwrite).map_err(usage)?;
        Ok(PlanTarget::Metadata(edit.targets(nodes, field_selector.as_ref())?, edits))
    }

    /// Checks the nodes and changes that the arguments name.
    pub fn check_targets(&self, field: MetadataField) -> Result<(), CliError> {
        match self.list {
            true => self.listed(field).map(drop),
            false => self.target(field).map(drop),
        }
    }

    /// Nodes whose labels or annotations `--list` prints.
    pub fn listed(&self, field: MetadataField) -> Result<NodeTargets, CliError> {
        let (nodes, edits) = node_words(&self.words, MetadataEdits::is_word, field.one())?;
        if let Some(edit) = edits.first() {
            return Err(usage(format!("--list changes nothing: leave out {edit}")));
        }
        if !self.edit.print.output.is_for_people() {
            return Err(usage("--list and --output may not be specified together"));
        }
        self.edit.targets(nodes, self.field_selector.as_ref())
    }

    pub fn print(&self) -> &PrintArgs {
        &self.edit.print
    }
}

impl EditArgs {
    fn targets(&self, names: Vec<&str>, fields: Option<&FieldSelector>) -> Result<NodeTargets, CliError> {
        NodeTargets::new(names, self.selector.clone(), fields, self.all)
    }
}

impl PodsArgs {
    /// Names of nodes, if the first argument says that nodes are meant, as in `node n1` or `node/n1`.
    fn named_nodes(&self) -> Option<&[String]> {
        let (first, rest) = self.words.split_first()?;
        let is_node = ["node", "nodes", "no"].contains(&first.as_str());
        let has_prefix = ["node/", "nodes/", "no/"].iter().any(|kind| first.starts_with(kind));
        match (is_node, has_prefix) {
            (true, _) => Some(rest),
            (false, true) => Some(&self.words),
            (false, false) => None,
        }
    }

    /// Checks the pods or nodes that the arguments name.
    pub fn check_deletion(&self) -> Result<(), CliError> {
        match self.named_nodes() {
            Some(words) => self.node_targets(words).map(drop),
            None => self.targets().map(drop),
        }
    }

    /// The nodes to delete. Flags that are about pods are errors.
    fn node_targets(&self, names: &[String]) -> Result<NodeTargets, CliError> {
        let of_pods = [
            (self.all_namespaces, "--all-namespaces"),
            (self.field_selector.is_some(), "--field-selector"),
            (self.grace_period >= 0, "--grace-period"),
            (self.now, "--now"),
            (self.force, "--force"),
        ];
        if let Some((_, flag)) = of_pods.iter().find(|(given, _)| *given) {
            return Err(usage(format!("{flag} is about pods: leave it out to delete nodes")));
        }
        if self.all {
            return Err(usage("--all would delete every node of the cluster: name them"));
        }
        NodeTargets::new(names.iter().map(String::as_str).collect(), self.selector.clone(), None, false)
    }

    pub fn targets(&self) -> Result<PodTargets, CliError> {
        let missing = if self.ignore_not_found { MissingPods::Ignored } else { MissingPods::Fail };
        let selector = match (&self.selector, self.all) {
            (Some(_), true) => return Err(usage("setting 'all' with a selector is prohibited")),
            (None, true) => Some(Selector::default()),
            (None, false) if self.field_selector.is_some() => Some(Selector::default()),
            (selector, false) => selector.clone(),
        };
        let fields = self.field_selector.clone().unwrap_or_default();
        if self.all_namespaces && selector.is_none() {
            return Err(usage("a pod cannot be named across all namespaces: use NAMESPACE/NAME"));
        }
        PodTargets::new(pod_words(&self.words)?, selector, fields, self.all_namespaces, missing)
    }

    /// Options of an eviction or deletion, with the grace period by kubectl's rules (upstream
    /// `DeleteOptions.Complete`).
    fn options(&self) -> Result<RemovalOptions, CliError> {
        let grace = match (self.force, self.now, self.grace_period) {
            (true, _, 1..) => {
                return Err(usage("--force and --grace-period greater than 0 cannot be specified together"));
            }
            (true, ..) => Some(Span::ZERO),
            (false, true, _) | (false, false, 0) => Some(Span::from_secs(1)),
            (false, false, grace) => grace_period(grace),
        };
        Ok(RemovalOptions { grace, timeout: limit(self.timeout), retry: Retry::OnRecovery })
    }
}

impl DrainArgs {
    fn options(&self) -> DrainOptions {
        DrainOptions {
            force: self.force,
            ignore_daemonsets: self.ignore_daemonsets,
            delete_emptydir_data: self.delete_emptydir_data,
            grace: grace_period(self.grace_period),
            timeout: limit(self.timeout),
            pod_selector: self.pod_selector.clone(),
            disable_eviction: self.disable_eviction,
            skip_wait_for_delete: Some(Span::from_secs(self.skip_wait_for_delete_timeout.into()))
                .filter(|limit| *limit > Span::ZERO),
            surge: self.surge,
            parallel: self.parallel.into(),
            retry: Retry::OnRecovery,
        }
    }
}

/// Parses `--wait`.
fn waits(text: &str) -> Result<bool, String> {
    match text {
        "true" => Ok(true),
        "false" => Err("kordon reports when the pods are gone, and so waits; it cannot leave before".into()),
        _ => Err("not true".into()),
    }
}

/// Converts kubectl's grace period; a negative one means the pods' own.
fn grace_period(grace: i64) -> Option<Span> {
    (grace >= 0).then(|| Span::from_secs(grace))
}

/// Converts kubectl's timeout; zero means none.
fn limit(timeout: Duration) -> Option<Span> {
    Some(Span::from(timeout)).filter(|timeout| *timeout > Span::ZERO)
}
