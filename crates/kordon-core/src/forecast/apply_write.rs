//! Applies the engine's writes to a copy of the cluster, as the API server would.

use std::sync::Arc;

use crate::{
    cluster::{
        Applied, Change, Cluster, ConditionStatus, Key, Node, NodeName, ObjectEvent, Phase, Pod, PodReady,
        Taint, Termination, Version,
    },
    engine::{DELETION_BY_TAINT, Deletion, NODE_LOST, Write, rewritten},
};
use kordon_time::{ClusterTime, Span, Timestamp};

/// Applies a write to the cluster, and appends what it changed to `applied`. A write to an object that is gone does
/// nothing.
pub fn apply_write(cluster: &mut Cluster, write: &Write, now: Timestamp, applied: &mut Vec<Applied>) {
    let written = cluster.clock().written(now);
    match write {
        Write::MarkUnknown { node, conditions, .. } => {
            change_node(cluster, node, applied, |node| node.conditions = rewritten(node, conditions));
        }
        Write::SwapTaints { node, add, remove, .. } => {
            change_node(cluster, node, applied, |node| node.taints = swapped(&node.taints, add, remove));
        }
        Write::SetLabels { node, labels, .. } => change_node(cluster, node, applied, |node| {
            node.labels = node.labels.entries().iter().chain(labels).cloned().collect();
        }),
        Write::MarkPodNotReady { pod, .. } => {
            change_pod(cluster, pod, applied, |pod| {
                pod.ready = Some(PodReady { status: ConditionStatus::False, last_transition: Some(written) });
            });
        }
        Write::MarkPodLost { pod, .. } => {
            change_pod(cluster, pod, applied, |pod| pod.reason = NODE_LOST.into());
        }
        Write::DeletePod { pod, deletion, .. } => delete_pod(cluster, pod, *deletion, written, applied),
        Write::RecordEvent(_) => {}
    }
}

/// Returns the taints without those in `remove` and with those in `add`. An added taint takes the place of an existing
/// taint with the same key and effect.
fn swapped(taints: &[Taint], add: &[Taint], remove: &[Taint]) -> Arc<[Taint]> {
    let same = |a: &Taint, b: &Taint| a.is(&b.key, b.effect);
    let mut result: Vec<Taint> = taints.to_vec();
    for taint in add {
        match result.iter_mut().find(|present| same(present, taint)) {
            Some(present) => *present = taint.clone(),
            None => result.push(taint.clone()),
        }
    }
    result.retain(|taint| !remove.iter().any(|removed| same(removed, taint)));
    result.into()
}

pub(super) fn change_node(
    cluster: &mut Cluster,
    node: &NodeName,
    applied: &mut Vec<Applied>,
    change: impl FnOnce(&mut Node),
) {
    let as_new_version = |node: &mut Node| {
        change(node);
        node.version = Version(node.version.0 + 1);
    };
    cluster.change_node(node, as_new_version, applied);
}

fn change_pod(cluster: &mut Cluster, pod: &Key, applied: &mut Vec<Applied>, change: impl FnOnce(&mut Pod)) {
    let as_new_version = |pod: &mut Pod| {
        change(pod);
        pod.version = Version(pod.version.0 + 1);
    };
    cluster.change_pod(pod, as_new_version, applied);
}

/// Deletes a pod. With a grace period or a finalizer the pod becomes Terminating and stays, because no kubelet ends it
/// here. Otherwise the pod is gone immediately.
fn delete_pod(
    cluster: &mut Cluster,
    key: &Key,
    deletion: Deletion,
    now: ClusterTime,
    applied: &mut Vec<Applied>,
) {
    let Some(pod) = cluster.pod(key) else { return };
    let (grace, is_marked) = match deletion {
        Deletion::ByTaint { disruption_target } => (pod.grace, disruption_target),
        Deletion::WithNode { mark_lost } => (pod.grace, mark_lost.is_some()),
        Deletion::Collected { fail, .. } => (Span::ZERO, fail),
    };
    let stays = grace.as_secs() > 0 || pod.is_held();
    if stays || is_marked {
        change_pod(cluster, key, applied, |pod| {
            mark(pod, deletion);
            if stays {
                pod.termination.get_or_insert_with(|| Box::new(Termination { deadline: now + grace, grace }));
            }
        });
    }
    if !stays {
        cluster.apply(Change::Pod(ObjectEvent::Deleted(key.clone())), applied);
    }
}

/// Sets the fields of a pod that its deletion changes.
fn mark(pod: &mut Pod, deletion: Deletion) {
    match deletion {
        Deletion::ByTaint { disruption_target: true } => {
            pod.disruption_target = Some(DELETION_BY_TAINT.into());
        }
        Deletion::WithNode { mark_lost: Some(_) } => pod.reason = NODE_LOST.into(),
        Deletion::Collected { fail: true, disruption_target, .. } => {
            pod.phase = Phase::Failed;
            if disruption_target {
                pod.disruption_target = Some("DeletionByPodGC".into());
            }
        }
        Deletion::ByTaint { disruption_target: false }
        | Deletion::WithNode { mark_lost: None }
        | Deletion::Collected { fail: false, .. } => {}
    }
}
