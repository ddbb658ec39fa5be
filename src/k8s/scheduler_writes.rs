//! Writes of a scheduler: bindings, unschedulable pods, and preemption.

use kube::{Client, api::PostParams};
use serde_json::json;

use super::write::{
    WriteFailure, delete, disruption_target, patch_status, pods, preconditions, record, send,
};
use kordon_core::{
    cluster::{Key, NodeName, Uid},
    engine::{EventObject, Outcome, RecordedEvent},
};
use kordon_time::Timestamp;

/// Binds a pod to a node.
pub async fn bind(client: &Client, pod: &Key, uid: &Uid, node: &NodeName) -> Outcome {
    let body = json!({
        "apiVersion": "v1", "kind": "Binding",
        "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    });
    let params = PostParams::default();
    let request = pods(pod).create_subresource("binding", &pod.name, &params, body.to_string().into_bytes());
    outcome(send(client, request).await.map(drop))
}

/// Marks a pod as unschedulable with the reason. Sets its nominated node if there is one.
pub async fn refuse(
    client: &Client,
    pod: &Key,
    uid: &Uid,
    why: &str,
    room_on: Option<&NodeName>,
    now: Timestamp,
) -> Outcome {
    let mut status = json!({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": why, "lastTransitionTime": now.to_time()}]});
    if let Some(node) = room_on {
        status["nominatedNodeName"] = json!(node);
    }
    outcome(patch_status(client, pod, preconditions(uid, None), status).await)
}

/// A pod that is deleted to make room for another pod.
#[derive(Clone, Copy, Debug)]
pub struct PreemptionVictim<'a> {
    pub pod: &'a Key,
    pub uid: &'a Uid,
    /// The uid of the preempting pod.
    pub by: &'a Uid,
    pub node: &'a NodeName,
}

/// Preempts a pod: sets its condition DisruptionTarget, deletes the pod with its own grace period, and records an event
/// about it.
pub async fn preempt(client: &Client, victim: PreemptionVictim<'_>, now: Timestamp) -> Outcome {
    let PreemptionVictim { pod: victim, uid, by, node } = victim;
    let target = disruption_target("PreemptionByScheduler", "makes room for a pod of higher priority", now);
    let marked =
        patch_status(client, victim, preconditions(uid, None), json!({"conditions": [target]})).await;
    if marked.is_err() {
        return outcome(marked);
    }
    let deleted = delete(client, victim, uid, None).await;
    if deleted.is_ok() {
        let event = RecordedEvent {
            object: EventObject::Pod(victim.clone()),
            warning: false,
            reason: "Preempted",
            message: format!("Preempted by pod {by} on node {node}"),
            source: "default-scheduler",
        };
        // An error is ignored, because the event is only informative.
        let _ = record(client, &event, now).await;
    }
    outcome(deleted)
}

fn outcome(done: Result<(), WriteFailure>) -> Outcome {
    done.map_or_else(Outcome::from, |()| Outcome::Done)
}
