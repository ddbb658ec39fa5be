//! kubectl drain's filters: which pods of a node it takes, leaves, or refuses to touch
//! (docs/upstream/operator-actions.md#3.3).

use std::{collections::BTreeSet, fmt};

use super::{action::DrainOptions, owner, rules::EvictionRules};
use crate::{
    cluster::{Cluster, Owner, OwnerKind, Pod, WorkloadKind},
    time::Timestamp,
};

/// What the filters make of a pod: all of them are asked, not only the first that objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Screening {
    /// Where the pod is left alone.
    pub skip: Option<Skip>,
    /// What stands in the way; empty where the pod is taken or left.
    pub refusals: Vec<DrainRefusal>,
}

/// Why a pod is left on its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Skip {
    /// It is a static pod's shadow: deleting it ends nothing.
    Mirror,
    /// Its DaemonSet would only bring it back.
    DaemonSet,
    /// The pod selector does not mean it.
    NotSelected,
    /// Its deletion is overdue by more than `--skip-wait-for-delete-timeout`.
    LongTerminating,
}

/// Why no pod of the node may be touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DrainRefusal {
    DaemonSet,
    /// Its DaemonSet does not exist any more.
    DaemonSetGone,
    /// Whether its DaemonSet exists cannot be seen.
    DaemonSetUnreadable,
    EmptyDir,
    /// No controller would bring it back.
    Unmanaged,
}

impl DrainRefusal {
    /// The flag that overrides it; none where no flag does.
    pub const fn flag(self) -> Option<DrainFlag> {
        match self {
            Self::DaemonSet => Some(DrainFlag::IgnoreDaemonsets),
            Self::EmptyDir => Some(DrainFlag::DeleteEmptydirData),
            Self::DaemonSetGone | Self::Unmanaged => Some(DrainFlag::Force),
            Self::DaemonSetUnreadable => None,
        }
    }

    /// kubectl's words for it.
    pub fn text(self, pod: &Pod, rules: &EvictionRules) -> String {
        let name = || pod.owner.as_ref().map_or("", |owner| owner.name.as_str());
        match self {
            Self::DaemonSet => "DaemonSet-managed Pods (use --ignore-daemonsets to ignore)".into(),
            Self::DaemonSetGone => format!("daemonsets.apps \"{}\" not found", name()),
            Self::DaemonSetUnreadable => format!("daemonsets.apps \"{}\" cannot be read", name()),
            Self::EmptyDir => "Pods with local storage (use --delete-emptydir-data to override)".into(),
            Self::Unmanaged if rules.speaks_of_controllers => {
                "Pods that declare no controller (use --force to override)".into()
            }
            Self::Unmanaged => "Pods not managed by ReplicationController, ReplicaSet, Job, DaemonSet or \
                StatefulSet (use --force to override)"
                .into(),
        }
    }
}

/// A flag of kubectl drain that turns a refusal into something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DrainFlag {
    IgnoreDaemonsets,
    DeleteEmptydirData,
    Force,
}

impl fmt::Display for DrainFlag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::IgnoreDaemonsets => "--ignore-daemonsets",
            Self::DeleteEmptydirData => "--delete-emptydir-data",
            Self::Force => "--force",
        })
    }
}

impl Screening {
    /// The flags that would have to be given for this pod.
    pub fn needs(&self) -> BTreeSet<DrainFlag> {
        self.refusals.iter().filter_map(|refusal| refusal.flag()).collect()
    }

    fn skip(skip: Skip) -> Self {
        Self { skip: Some(skip), refusals: Vec::new() }
    }
}

/// Asks all filters about a pod of the node.
pub fn screen(
    cluster: &Cluster,
    pod: &Pod,
    options: &DrainOptions,
    rules: &EvictionRules,
    now: Timestamp,
) -> Screening {
    if options.pod_selector.as_ref().is_some_and(|selector| !selector.matches(&pod.labels)) {
        return Screening::skip(Skip::NotSelected);
    }
    if is_long_terminating(pod, options, now) {
        return Screening::skip(Skip::LongTerminating);
    }
    let mut refusals = Vec::new();
    match daemonset(cluster, pod, rules) {
        DaemonSet::None => {}
        DaemonSet::There if options.ignore_daemonsets => return Screening::skip(Skip::DaemonSet),
        DaemonSet::There => {
            let refusals = vec![DrainRefusal::DaemonSet];
            return Screening { skip: None, refusals };
        }
        DaemonSet::Gone if options.force => {}
        DaemonSet::Gone => refusals.push(DrainRefusal::DaemonSetGone),
        DaemonSet::Unreadable => refusals.push(DrainRefusal::DaemonSetUnreadable),
    }
    if refusals.is_empty() && pod.mirror {
        return Screening::skip(Skip::Mirror);
    }
    if !pod.is_finished() {
        let local = pod.storage.empty_dir || pod.storage.memory;
        if local && !options.delete_emptydir_data {
            refusals.push(DrainRefusal::EmptyDir);
        }
        if pod.owner.is_none() && !options.force {
            refusals.push(DrainRefusal::Unmanaged);
        }
    }
    Screening { skip: None, refusals }
}

/// Whether a pod's deletion is overdue by more than the wait that was allowed.
fn is_long_terminating(pod: &Pod, options: &DrainOptions, now: Timestamp) -> bool {
    let Some((termination, limit)) = pod.termination.as_ref().zip(options.skip_wait_for_delete) else {
        return false;
    };
    now.since(termination.deadline) > limit
}

/// Whether a pod that still runs is a DaemonSet's.
enum DaemonSet {
    None,
    There,
    Gone,
    Unreadable,
}

fn daemonset(cluster: &Cluster, pod: &Pod, rules: &EvictionRules) -> DaemonSet {
    let Some(owner) = pod.owner.as_ref().filter(|owner| is_daemonset(owner, rules)) else {
        return DaemonSet::None;
    };
    if pod.is_finished() {
        return DaemonSet::None;
    }
    let table = cluster.workloads(WorkloadKind::DaemonSet);
    match owner::named(cluster, WorkloadKind::DaemonSet, &pod.key.namespace, &owner.name) {
        Some(_) => DaemonSet::There,
        None if table.is_synced() => DaemonSet::Gone,
        None => DaemonSet::Unreadable,
    }
}

fn is_daemonset(owner: &Owner, rules: &EvictionRules) -> bool {
    match &owner.kind {
        OwnerKind::Workload(kind) => *kind == WorkloadKind::DaemonSet,
        OwnerKind::Other(kind) => !rules.daemonsets_by_group && *kind == *"DaemonSet",
        OwnerKind::Node => false,
    }
}
