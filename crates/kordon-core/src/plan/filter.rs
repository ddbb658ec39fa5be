//! Filters of kubectl drain: which pods of a node it removes, skips or refuses (docs/upstream/operator-actions.md#3.3).

use std::{collections::BTreeSet, fmt};

use super::{action::DrainOptions, owner, rules::EvictionRules};
use crate::cluster::{Cluster, LocalVolume, Owner, OwnerKind, Pod, WorkloadKind};
use kordon_time::Timestamp;

/// The result of kubectl's filters for one pod. A pod can have several refusals.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Screening {
    /// Why the pod is skipped; `None` if it is not skipped.
    pub skip: Option<Skip>,
    /// Why the pod is refused; empty if no filter refuses it.
    pub refusals: Vec<DrainRefusal>,
}

/// The reason why a pod stays on its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Skip {
    /// The pod is the mirror of a static pod. Deleting the mirror ends no container.
    Mirror,
    /// The pod's DaemonSet would recreate it on the same node.
    DaemonSet,
    /// The pod does not match `--pod-selector`.
    NotSelected,
    /// The pod's deletion is overdue by more than `--skip-wait-for-delete-timeout`.
    LongTerminating,
}

/// The reason why kubectl refuses a pod. If kubectl refuses one pod of a node, it removes none of the node's pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DrainRefusal {
    DaemonSet,
    /// The pod's DaemonSet no longer exists.
    DaemonSetGone,
    /// The pod's DaemonSet cannot be read, so it is unknown whether it exists.
    DaemonSetUnreadable,
    EmptyDir,
    /// No controller would recreate the pod.
    Unmanaged,
}

impl DrainRefusal {
    /// Returns the flag that overrides the refusal; `None` if no flag does.
    pub const fn flag(self) -> Option<DrainFlag> {
        match self {
            Self::DaemonSet => Some(DrainFlag::IgnoreDaemonsets),
            Self::EmptyDir => Some(DrainFlag::DeleteEmptydirData),
            Self::DaemonSetGone | Self::Unmanaged => Some(DrainFlag::Force),
            Self::DaemonSetUnreadable => None,
        }
    }

    /// Returns the refusal in kubectl's words.
    pub fn text(self, pod: &Pod, rules: &EvictionRules) -> String {
        let name = || pod.owner.as_ref().map_or("", |owner| owner.name.as_str());
        match self {
            Self::DaemonSet => "DaemonSet-managed Pods (use --ignore-daemonsets to ignore)".into(),
            Self::DaemonSetGone => format!("daemonsets.apps \"{}\" not found", name()),
            Self::DaemonSetUnreadable => format!("daemonsets.apps \"{}\" cannot be read", name()),
            Self::EmptyDir => "Pods with local storage (use --delete-emptydir-data to override)".into(),
            Self::Unmanaged if rules.says_no_controller => {
                "Pods that declare no controller (use --force to override)".into()
            }
            Self::Unmanaged => "Pods not managed by ReplicationController, ReplicaSet, Job, DaemonSet or \
                StatefulSet (use --force to override)"
                .into(),
        }
    }
}

/// A flag of kubectl drain that overrides a refusal.
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
    /// Returns the flags that are needed to remove this pod.
    pub fn needs(&self) -> BTreeSet<DrainFlag> {
        self.refusals.iter().filter_map(|refusal| refusal.flag()).collect()
    }

    fn skip(skip: Skip) -> Self {
        Self { skip: Some(skip), refusals: Vec::new() }
    }
}

/// Applies kubectl's filters to a pod.
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
    if is_long_terminating(cluster, pod, options, now) {
        return Screening::skip(Skip::LongTerminating);
    }
    let mut refusals = Vec::new();
    match daemonset(cluster, pod, rules) {
        DaemonSet::None => {}
        DaemonSet::Found if options.ignore_daemonsets => return Screening::skip(Skip::DaemonSet),
        DaemonSet::Found => {
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
        let local = pod.storage.has(LocalVolume::EmptyDir) || pod.storage.has(LocalVolume::Memory);
        if local && !options.delete_emptydir_data {
            refusals.push(DrainRefusal::EmptyDir);
        }
        if pod.owner.is_none() && !options.force {
            refusals.push(DrainRefusal::Unmanaged);
        }
    }
    Screening { skip: None, refusals }
}

/// Returns whether the plan removes the pod. If kubectl refuses the pod, the plan still removes it, to show what
/// happens with the missing flag. The exception is a pod that is refused only because of its DaemonSet: with
/// --ignore-daemonsets, kubectl leaves it on the node.
pub fn is_removed(screening: &Screening) -> bool {
    screening.skip.is_none() && screening.refusals != [DrainRefusal::DaemonSet]
}

/// Returns whether a pod's deletion is overdue by more than `--skip-wait-for-delete-timeout`.
fn is_long_terminating(cluster: &Cluster, pod: &Pod, options: &DrainOptions, now: Timestamp) -> bool {
    let Some((termination, limit)) = pod.termination.as_ref().zip(options.skip_wait_for_delete) else {
        return false;
    };
    now.since(cluster.local(termination.deadline)) > limit
}

/// Result of looking up the DaemonSet of a pod that has not finished.
enum DaemonSet {
    None,
    Found,
    Gone,
    Unreadable,
}

/// Returns whether kubectl's filters look up the DaemonSet of a pod.
pub(super) fn asks_for_daemonset(pod: &Pod, rules: &EvictionRules) -> bool {
    !pod.is_finished() && pod.owner.as_ref().is_some_and(|owner| is_daemonset(owner, rules))
}

fn daemonset(cluster: &Cluster, pod: &Pod, rules: &EvictionRules) -> DaemonSet {
    let Some(owner) = pod.owner.as_ref().filter(|_| asks_for_daemonset(pod, rules)) else {
        return DaemonSet::None;
    };
    let (kind, namespace) = (WorkloadKind::DaemonSet, &pod.key.namespace);
    match owner::named(cluster, kind, namespace, &owner.name) {
        Some(_) => DaemonSet::Found,
        None if owner::is_read(cluster, kind, namespace, &owner.name) => DaemonSet::Gone,
        None => DaemonSet::Unreadable,
    }
}

fn is_daemonset(owner: &Owner, rules: &EvictionRules) -> bool {
    match &owner.kind {
        OwnerKind::Workload(kind) => *kind == WorkloadKind::DaemonSet,
        OwnerKind::Other { kind, .. } => !rules.daemonsets_by_group && *kind == *"DaemonSet",
        OwnerKind::Node => false,
    }
}
