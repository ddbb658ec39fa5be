//! The request for a plan: kind, targets, options.

use std::time::Duration;

use crate::app::typed_span::span;
use kordon_core::{
    cluster::{Key, NodeName, Selector},
    plan::{
        Action, DrainFlag, DrainOptions, MetadataEdits, MetadataField, RemovalOptions, Retry, TaintEdits,
        kubectl,
    },
};
use kordon_time::Span;

/// The kinds of plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanKind {
    Cordon,
    Uncordon,
    Drain,
    Taint,
    /// A plan that changes labels or annotations.
    Metadata(MetadataField),
    Evict,
    Delete,
    DeleteNode,
    /// A what-if: nodes or whole zones stop renewing their Leases.
    Failure,
}

/// An option of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanOption {
    Force,
    IgnoreDaemonsets,
    DeleteEmptydirData,
    DisableEviction,
    /// Scales up Deployments whose budgets can never allow an eviction.
    Surge,
    /// Grace period of the pods; the option's key cycles through a few values.
    Grace,
    /// Number of nodes drained in parallel; the option's key cycles through a few values.
    Parallel,
    /// Timeout of the drain of one node, or of the removal of pods.
    Timeout,
    /// Selector of the pods that leave, by their labels.
    PodSelector,
    /// Time since a pod's deletion after which the drain does not wait for the pod.
    SkipWaitForDelete,
    Overwrite,
    WholeZones,
}

/// Nodes or pods that a plan acts on.
#[derive(Clone, Debug, PartialEq)]
pub enum Targets {
    Nodes(Vec<NodeName>),
    Pods(Vec<Key>),
}

/// All inputs of a plan except the cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanRequest {
    pub kind: PlanKind,
    pub targets: Targets,
    /// Options of a drain.
    pub drain: DrainOptions,
    /// Options of an eviction or a deletion.
    pub removal: RemovalOptions,
    /// Typed taints, labels or annotations, quoted as for a shell.
    pub edits: String,
    pub overwrite: bool,
    /// Whether a failure includes all other nodes in the zones of its targets.
    pub whole_zones: bool,
}

impl PlanKind {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Cordon => "cordon",
            Self::Uncordon => "uncordon",
            Self::Drain => "drain",
            Self::Taint => "taint",
            Self::Metadata(field) => field.verb(),
            Self::Evict => "evict",
            Self::Delete => "delete",
            Self::DeleteNode => "delete node",
            Self::Failure => "failure of",
        }
    }

    /// Whether the plan predicts on which nodes pods are placed.
    pub const fn places_pods(self) -> bool {
        match self {
            Self::Cordon | Self::Metadata(_) => false,
            Self::Uncordon
            | Self::Taint
            | Self::Drain
            | Self::Evict
            | Self::Delete
            | Self::DeleteNode
            | Self::Failure => true,
        }
    }

    /// Whether pods leave the plan's nodes.
    pub const fn moves_pods(self) -> bool {
        match self {
            Self::Drain | Self::Taint | Self::DeleteNode | Self::Failure => true,
            Self::Cordon | Self::Uncordon | Self::Metadata(_) | Self::Evict | Self::Delete => false,
        }
    }

    pub const fn options(self) -> &'static [PlanOption] {
        match self {
            Self::Cordon | Self::Uncordon | Self::DeleteNode => &[],
            Self::Drain => &[
                PlanOption::IgnoreDaemonsets,
                PlanOption::DeleteEmptydirData,
                PlanOption::Force,
                PlanOption::DisableEviction,
                PlanOption::Surge,
                PlanOption::Grace,
                PlanOption::Parallel,
                PlanOption::PodSelector,
                PlanOption::Timeout,
                PlanOption::SkipWaitForDelete,
            ],
            Self::Taint | Self::Metadata(_) => &[PlanOption::Overwrite],
            Self::Evict | Self::Delete => &[PlanOption::Grace, PlanOption::Timeout],
            Self::Failure => &[PlanOption::WholeZones],
        }
    }
}

impl PlanOption {
    /// The flag of `kubectl drain` that the option sets, if a drain may be refused without the flag; `None` for other
    /// options.
    pub const fn flag(self) -> Option<DrainFlag> {
        match self {
            Self::Force => Some(DrainFlag::Force),
            Self::IgnoreDaemonsets => Some(DrainFlag::IgnoreDaemonsets),
            Self::DeleteEmptydirData => Some(DrainFlag::DeleteEmptydirData),
            Self::DisableEviction
            | Self::Surge
            | Self::Grace
            | Self::Parallel
            | Self::Timeout
            | Self::PodSelector
            | Self::SkipWaitForDelete
            | Self::Overwrite
            | Self::WholeZones => None,
        }
    }

    /// Name of the value that is typed for the option; `None` for an option whose key changes it at once.
    pub const fn typed(self) -> Option<&'static str> {
        match self {
            Self::Timeout => Some("timeout"),
            Self::PodSelector => Some("pod-selector"),
            Self::SkipWaitForDelete => Some("skip-wait-for-delete-timeout"),
            Self::Force
            | Self::IgnoreDaemonsets
            | Self::DeleteEmptydirData
            | Self::DisableEviction
            | Self::Surge
            | Self::Grace
            | Self::Parallel
            | Self::Overwrite
            | Self::WholeZones => None,
        }
    }
}

impl Targets {
    fn nodes(&self) -> Vec<NodeName> {
        match self {
            Self::Nodes(nodes) => nodes.clone(),
            Self::Pods(_) => Vec::new(),
        }
    }

    fn pods(&self) -> Vec<Key> {
        match self {
            Self::Pods(pods) => pods.clone(),
            Self::Nodes(_) => Vec::new(),
        }
    }
}

impl PlanRequest {
    /// Whether an option is set in a way that loses pods or data, or ignores budgets or grace periods.
    pub fn is_dangerous(&self, option: PlanOption) -> bool {
        let drain = &self.drain;
        match option {
            PlanOption::Force => drain.force,
            PlanOption::DeleteEmptydirData => drain.delete_emptydir_data,
            PlanOption::DisableEviction => drain.disable_eviction,
            PlanOption::Grace => self.grace() == Some(Span::ZERO),
            PlanOption::IgnoreDaemonsets
            | PlanOption::Surge
            | PlanOption::Parallel
            | PlanOption::Timeout
            | PlanOption::PodSelector
            | PlanOption::SkipWaitForDelete
            | PlanOption::Overwrite
            | PlanOption::WholeZones => false,
        }
    }

    /// Grace period that overrides the pods' own.
    pub fn grace(&self) -> Option<Span> {
        if self.kind == PlanKind::Drain { self.drain.grace } else { self.removal.grace }
    }

    /// Timeout of the drain of each node, or of the removal.
    pub fn timeout(&self) -> Option<Span> {
        if self.kind == PlanKind::Drain { self.drain.timeout } else { self.removal.timeout }
    }

    pub fn new(kind: PlanKind, targets: Targets) -> Self {
        Self {
            kind,
            targets,
            // The dashboard applies every plan with this retry policy.
            drain: DrainOptions { retry: Retry::OnRecovery, ..DrainOptions::default() },
            removal: RemovalOptions { retry: Retry::OnRecovery, ..RemovalOptions::default() },
            edits: String::new(),
            overwrite: false,
            whole_zones: false,
        }
    }

    /// Creates the request for a plan of this action, with the dashboard's retry policy.
    pub(in crate::app) fn from_action(action: &Action) -> Self {
        match action {
            Action::Cordon { nodes } => Self::new(PlanKind::Cordon, Targets::Nodes(nodes.clone())),
            Action::Uncordon { nodes } => Self::new(PlanKind::Uncordon, Targets::Nodes(nodes.clone())),
            Action::Drain { nodes, options } => {
                let request = Self::new(PlanKind::Drain, Targets::Nodes(nodes.clone()));
                Self { drain: DrainOptions { retry: Retry::OnRecovery, ..options.clone() }, ..request }
            }
            Action::Taint { nodes, edits } => {
                let request = Self::new(PlanKind::Taint, Targets::Nodes(nodes.clone()));
                Self { edits: kubectl::taint_words(edits), overwrite: edits.overwrite, ..request }
            }
            Action::Metadata { nodes, edits } => {
                let request = Self::new(PlanKind::Metadata(edits.field), Targets::Nodes(nodes.clone()));
                Self { edits: kubectl::metadata_words(edits), overwrite: edits.overwrite, ..request }
            }
            Action::DeleteNode { nodes } => Self::new(PlanKind::DeleteNode, Targets::Nodes(nodes.clone())),
            Action::Evict { pods, options } => {
                Self::for_removal(PlanKind::Evict, Targets::Pods(pods.clone()), *options)
            }
            Action::Delete { pods, options } => {
                Self::for_removal(PlanKind::Delete, Targets::Pods(pods.clone()), *options)
            }
        }
    }

    fn for_removal(kind: PlanKind, targets: Targets, options: RemovalOptions) -> Self {
        let removal = RemovalOptions { retry: Retry::OnRecovery, ..options };
        Self { removal, ..Self::new(kind, targets) }
    }

    /// Changes an option, if this kind of plan has it.
    pub(super) fn toggle(&mut self, option: PlanOption) {
        if !self.kind.options().contains(&option) {
            return;
        }
        let Self { drain, removal, overwrite, whole_zones, .. } = self;
        match option {
            PlanOption::Force => drain.force = !drain.force,
            PlanOption::IgnoreDaemonsets => drain.ignore_daemonsets = !drain.ignore_daemonsets,
            PlanOption::DeleteEmptydirData => drain.delete_emptydir_data = !drain.delete_emptydir_data,
            PlanOption::DisableEviction => drain.disable_eviction = !drain.disable_eviction,
            PlanOption::Surge => drain.surge = !drain.surge,
            PlanOption::Grace => {
                drain.grace = next_grace(drain.grace);
                removal.grace = next_grace(removal.grace);
            }
            PlanOption::Parallel => {
                drain.parallel = match drain.parallel {
                    0 | 1 => 2,
                    2 => 5,
                    3..10 => 10,
                    _ => 1,
                }
            }
            PlanOption::Overwrite => *overwrite = !*overwrite,
            PlanOption::WholeZones => *whole_zones = !*whole_zones,
            PlanOption::Timeout | PlanOption::PodSelector | PlanOption::SkipWaitForDelete => {}
        }
    }

    /// The value of an option as it is typed; empty for an option without a value and for a switch.
    pub fn typed(&self, option: PlanOption) -> String {
        let Self { drain, .. } = self;
        let seconds = |span: Option<Span>| span.map_or_else(String::new, |span| span.as_secs().to_string());
        match option {
            PlanOption::Timeout => self.timeout().map_or_else(String::new, exact),
            PlanOption::PodSelector => {
                drain.pod_selector.as_ref().map_or_else(String::new, ToString::to_string)
            }
            PlanOption::SkipWaitForDelete => seconds(drain.skip_wait_for_delete),
            PlanOption::Grace => seconds(self.grace()),
            PlanOption::Parallel => drain.parallel.max(1).to_string(),
            PlanOption::Force
            | PlanOption::IgnoreDaemonsets
            | PlanOption::DeleteEmptydirData
            | PlanOption::DisableEviction
            | PlanOption::Surge
            | PlanOption::Overwrite
            | PlanOption::WholeZones => String::new(),
        }
    }

    /// Sets an option to a typed value. An empty text removes the value.
    ///
    /// # Errors
    /// The plan does not have the option, the option takes no value, or the text is not a value of it.
    pub(super) fn set_typed(&mut self, option: PlanOption, text: &str) -> Result<(), String> {
        if !self.kind.options().contains(&option) {
            return Err("this plan does not have the option".into());
        }
        let text = text.trim();
        let is_drain = self.kind == PlanKind::Drain;
        let Self { drain, removal, .. } = self;
        match option {
            PlanOption::Timeout => {
                let timeout = limit(text)?;
                *(if is_drain { &mut drain.timeout } else { &mut removal.timeout }) = timeout;
            }
            PlanOption::PodSelector => {
                let selector = Selector::parse(text).map_err(|error| error.to_string())?;
                drain.pod_selector = Some(selector).filter(|selector| !selector.is_empty());
            }
            PlanOption::SkipWaitForDelete => {
                drain.skip_wait_for_delete = seconds(text)?.filter(|limit| *limit > Span::ZERO);
            }
            PlanOption::Grace => {
                let grace = seconds(text)?;
                *(if is_drain { &mut drain.grace } else { &mut removal.grace }) = grace;
            }
            PlanOption::Parallel => {
                let parallel = text.parse::<u16>().ok().filter(|nodes| *nodes > 0);
                drain.parallel = parallel.ok_or_else(|| format!("{text} is not a number of nodes"))?.into();
            }
            PlanOption::Force
            | PlanOption::IgnoreDaemonsets
            | PlanOption::DeleteEmptydirData
            | PlanOption::DisableEviction
            | PlanOption::Surge
            | PlanOption::Overwrite
            | PlanOption::WholeZones => return Err("this option takes no value".into()),
        }
        Ok(())
    }

    /// The requested action; `None` for a failure, which cannot be applied.
    pub(in crate::app) fn action(&self) -> Result<Option<Action>, String> {
        let edits = || shell_words::split(&self.edits).map_err(|_| "a quote is not closed".to_owned());
        Ok(Some(match self.kind {
            PlanKind::Cordon => Action::Cordon { nodes: self.targets.nodes() },
            PlanKind::Uncordon => Action::Uncordon { nodes: self.targets.nodes() },
            PlanKind::Drain => Action::Drain { nodes: self.targets.nodes(), options: self.drain.clone() },
            PlanKind::Taint => {
                let edits = TaintEdits::parse(edits()?.iter().map(String::as_str), self.overwrite)
                    .map_err(|error| error.to_string())?;
                Action::Taint { nodes: self.targets.nodes(), edits }
            }
            PlanKind::Metadata(field) => {
                let edits = MetadataEdits::parse(field, edits()?.iter().map(String::as_str), self.overwrite)
                    .map_err(|error| error.to_string())?;
                Action::Metadata { nodes: self.targets.nodes(), edits }
            }
            PlanKind::Evict => Action::Evict { pods: self.targets.pods(), options: self.removal },
            PlanKind::Delete => Action::Delete { pods: self.targets.pods(), options: self.removal },
            PlanKind::DeleteNode => Action::DeleteNode { nodes: self.targets.nodes() },
            PlanKind::Failure => return Ok(None),
        }))
    }
}

fn next_grace(grace: Option<Span>) -> Option<Span> {
    match grace.map(Span::as_secs) {
        None => Some(Span::from_secs(30)),
        Some(30) => Some(Span::from_secs(5)),
        Some(5) => Some(Span::ZERO),
        Some(_) => None,
    }
}

/// Parses a number of seconds; `None` for an empty text.
fn seconds(text: &str) -> Result<Option<Span>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let seconds = text.parse::<u32>().map_err(|_| format!("{text} is not a number of seconds"))?;
    Ok(Some(Span::from_secs(seconds.into())))
}

/// Formats a duration with all its parts, as in `3h5m7s`.
fn exact(span: Span) -> String {
    let duration = Duration::from_nanos(span.as_nanos().unsigned_abs());
    humantime::format_duration(duration).to_string().replace(' ', "")
}

/// Parses a timeout such as `90s` or `1h30m`; `None` for an empty text and for 0, as on the command line.
fn limit(text: &str) -> Result<Option<Span>, String> {
    if matches!(text, "0" | "0s") { Ok(None) } else { span(text) }
}
