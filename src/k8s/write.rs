//! Carries out writes of the engine, each with its preconditions and none of them twice.
//!
//! Nothing is retried here: what came of a write goes back to the engine, which knows whether it still wants it.

use std::time::Duration;

use http::Request;
use kube::{
    Client,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::error::words;
use crate::{
    cluster::{Key, Name, NodeName, Taint, Uid, Version},
    engine::{Deletion, EventObject, NODE_LOST, Outcome, RecordedEvent, UnknownCondition, Write},
    time::Timestamp,
};

/// Who we are in managed fields.
const FIELD_MANAGER: &str = "kordon";

/// How long a write may take; longer than the server's own limit for one.
const LONGEST: Duration = Duration::from_secs(40);

/// Carries out one write at `now` (by which new taints and events are dated).
pub async fn carry_out(client: &Client, write: &Write, now: Timestamp) -> Outcome {
    let done = match write {
        Write::MarkUnknown { node, uid, version, conditions } => {
            mark_unknown(client, node, uid, *version, conditions).await
        }
        Write::SwapTaints { node, uid, version: _, add, remove } => {
            swap_taints(client, node, uid, add, remove, now).await
        }
        Write::SetLabels { node, uid, version, labels } => {
            set_labels(client, node, uid, *version, labels).await
        }
        Write::MarkPodNotReady { pod, uid, version, node: _ } => {
            mark_pod_not_ready(client, pod, uid, *version, now).await
        }
        Write::MarkPodLost { pod, uid, version, node } => {
            mark_pod_lost(client, pod, uid, *version, node).await
        }
        Write::DeletePod { pod, uid, node, deletion } => {
            delete_pod(client, pod, uid, node, *deletion, now).await
        }
        Write::RecordEvent(event) => record(client, event, now).await,
    };
    match done {
        Ok(()) => Outcome::Done,
        Err(stop) => stop.into(),
    }
}

/// Why a write was not done.
pub(super) enum WriteFailure {
    /// What was read no longer asks for it.
    Outdated,
    Refused(Box<kube::Error>),
    /// No answer in time: it may have been done all the same.
    NoAnswer,
}

impl From<kube::Error> for WriteFailure {
    fn from(error: kube::Error) -> Self {
        Self::Refused(Box::new(error))
    }
}

impl From<WriteFailure> for Outcome {
    fn from(stop: WriteFailure) -> Self {
        match stop {
            WriteFailure::Outdated => Self::Conflict,
            WriteFailure::NoAnswer => Self::Failed(format!(
                "no answer within {} s; whether it was done the watch will show",
                LONGEST.as_secs()
            )),
            WriteFailure::Refused(error) => match *error {
                kube::Error::Api(ref status) if status.code == 404 => Self::Gone,
                kube::Error::Api(ref status) if status.code == 409 => Self::Conflict,
                // How a patch finds that the object is another one by now.
                kube::Error::Api(ref status)
                    if status.code == 422 && status.message.contains("metadata.uid") =>
                {
                    Self::Conflict
                }
                ref other => Self::Failed(words(other)),
            },
        }
    }
}

async fn mark_unknown(
    client: &Client,
    node: &NodeName,
    uid: &Uid,
    version: Version,
    conditions: &[UnknownCondition],
) -> Result<(), WriteFailure> {
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|condition| {
            let mut value = json!({"type": condition.kind, "status": "Unknown", "reason": condition.reason,
                "message": condition.message, "lastTransitionTime": condition.last_transition.to_time()});
            if let Some(heartbeat) = condition.last_heartbeat {
                value["lastHeartbeatTime"] = heartbeat.to_time().into();
            }
            value
        })
        .collect();
    let patch = json!({"metadata": locked(uid, Some(version)), "status": {"conditions": conditions}});
    let request = nodes().patch_subresource("status", node, &as_us(), &Patch::Strategic(patch));
    send(client, request).await.map(drop)
}

/// Upstream's swap (docs/upstream/node-lifecycle.md#4.5), in one patch over the newest node instead of two.
///
/// What the decision was made on is not compared whole, for nodes change all the time; but a node that no longer
/// is in the state that the new taint tells of is left alone.
async fn swap_taints(
    client: &Client,
    node: &NodeName,
    uid: &Uid,
    add: &[Taint],
    remove: &[Taint],
    now: Timestamp,
) -> Result<(), WriteFailure> {
    let newest = send(client, nodes().get(node, &kube::api::GetParams::default())).await?;
    let of_meta = |field: &str| newest["metadata"][field].as_str().unwrap_or_default();
    if of_meta("uid") != &**uid || add.iter().any(|taint| !still_true(taint, &newest)) {
        return Err(WriteFailure::Outdated);
    }
    let before = newest["spec"]["taints"].as_array().cloned().unwrap_or_default();
    let taints = swapped(before.clone(), add, remove, now);
    if taints == before {
        return Ok(());
    }
    let metadata = json!({"uid": uid, "resourceVersion": of_meta("resourceVersion")});
    // A merge patch replaces the list as a whole.
    let patch = json!({"metadata": metadata, "spec": {"taints": taints}});
    send(client, nodes().patch(node, &as_us(), &Patch::Merge(patch))).await.map(drop)
}

/// Whether the node is in the state that a taint of the controller tells of; of other taints nothing is known.
fn still_true(taint: &Taint, node: &Value) -> bool {
    let mut conditions = node["status"]["conditions"].as_array().into_iter().flatten();
    let ready = conditions.find(|condition| condition["type"] == "Ready").map(|ready| &ready["status"]);
    match &*taint.key {
        "node.kubernetes.io/unreachable" => ready.is_some_and(|status| status == "Unknown"),
        "node.kubernetes.io/not-ready" => ready.is_some_and(|status| status == "False"),
        _ => true,
    }
}

/// The taints after a swap. Entries that are not ours stay as they are, unknown fields included.
fn swapped(mut taints: Vec<Value>, add: &[Taint], remove: &[Taint], now: Timestamp) -> Vec<Value> {
    let same =
        |value: &Value, taint: &Taint| value["key"] == *taint.key && value["effect"] == taint.effect.as_str();
    for taint in add {
        let at = taint.time_added.unwrap_or(now).to_time();
        let mut new = json!({"key": taint.key, "effect": taint.effect.as_str(), "timeAdded": at});
        if !taint.value.is_empty() {
            new["value"] = json!(taint.value);
        }
        match taints.iter_mut().find(|value| same(value, taint)) {
            Some(known) => *known = new,
            None => taints.push(new),
        }
    }
    taints.retain(|value| !remove.iter().any(|taint| same(value, taint)));
    taints
}

async fn set_labels(
    client: &Client,
    node: &NodeName,
    uid: &Uid,
    version: Version,
    labels: &[(Name, Name)],
) -> Result<(), WriteFailure> {
    let mut metadata = locked(uid, Some(version));
    metadata["labels"] = labels.iter().map(|(key, value)| (key.to_string(), json!(value))).collect();
    let patch = Patch::Merge(json!({"metadata": metadata}));
    send(client, nodes().patch(node, &as_us(), &patch)).await.map(drop)
}

async fn mark_pod_not_ready(
    client: &Client,
    pod: &Key,
    uid: &Uid,
    version: Version,
    now: Timestamp,
) -> Result<(), WriteFailure> {
    // Merged by type: reason and message stay.
    let ready = json!({"type": "Ready", "status": "False", "lastTransitionTime": now.to_time()});
    let patch = json!({"metadata": locked(uid, Some(version)), "status": {"conditions": [ready]}});
    let request = pods(pod).patch_subresource("status", &pod.name, &as_us(), &Patch::Strategic(patch));
    send(client, request).await.map(drop)
}

async fn mark_pod_lost(
    client: &Client,
    pod: &Key,
    uid: &Uid,
    version: Version,
    node: &NodeName,
) -> Result<(), WriteFailure> {
    let message = format!("Node {node} which was running pod {} is unresponsive", pod.name);
    let status = json!({"reason": NODE_LOST, "message": message});
    patch_status(client, pod, locked(uid, Some(version)), status).await
}

/// Writes on the pod what its deletion asks for, and deletes it.
async fn delete_pod(
    client: &Client,
    pod: &Key,
    uid: &Uid,
    node: &NodeName,
    deletion: Deletion,
    now: Timestamp,
) -> Result<(), WriteFailure> {
    match deletion {
        Deletion::ByTaint { disruption_target: true } => {
            let text = "Taint manager: deleting due to NoExecute taint";
            let target = disruption_target("DeletionByTaintManager", text, now);
            patch_status(client, pod, locked(uid, None), json!({"conditions": [target]})).await?;
        }
        Deletion::WithNode { mark_lost: Some(version) } => {
            let marked = mark_pod_lost(client, pod, uid, version, node).await;
            // As upstream: only a conflict says that the pod should be looked at again first.
            if let Err(stop) = marked
                && Outcome::from(stop) == Outcome::Conflict
            {
                return Err(WriteFailure::Outdated);
            }
        }
        Deletion::Collected { fail: true, disruption_target: target } => {
            let target =
                target.then(|| disruption_target("DeletionByPodGC", "PodGC: node no longer exists", now));
            let status = json!({"phase": "Failed", "conditions": Vec::from_iter(target)});
            patch_status(client, pod, locked(uid, None), status).await?;
        }
        Deletion::ByTaint { disruption_target: false }
        | Deletion::WithNode { mark_lost: None }
        | Deletion::Collected { fail: false, .. } => {}
    }
    let grace = matches!(deletion, Deletion::Collected { .. }).then_some(0);
    delete(client, pod, uid, grace).await
}

/// Deletes a pod, with its own grace where no other is given.
pub(super) async fn delete(
    client: &Client,
    pod: &Key,
    uid: &Uid,
    grace: Option<u32>,
) -> Result<(), WriteFailure> {
    let preconditions = Preconditions { uid: Some(uid.to_string()), resource_version: None };
    let params = DeleteParams {
        preconditions: Some(preconditions),
        grace_period_seconds: grace,
        ..DeleteParams::default()
    };
    send(client, pods(pod).delete(&pod.name, &params)).await.map(drop)
}

/// The condition that tells why a pod is deleted.
pub(super) fn disruption_target(reason: &str, message: &str, now: Timestamp) -> Value {
    json!({"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message,
        "lastTransitionTime": now.to_time()})
}

pub(super) async fn patch_status(
    client: &Client,
    pod: &Key,
    metadata: Value,
    status: Value,
) -> Result<(), WriteFailure> {
    let patch = json!({"metadata": metadata, "status": status});
    let request = pods(pod).patch_subresource("status", &pod.name, &as_us(), &Patch::Strategic(patch));
    send(client, request).await.map(drop)
}

async fn record(client: &Client, event: &RecordedEvent, now: Timestamp) -> Result<(), WriteFailure> {
    let (namespace, name, about) = match &event.object {
        EventObject::Node(name, uid) => {
            ("default", &**name, json!({"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}))
        }
        EventObject::Pod(key) => {
            let about =
                json!({"apiVersion": "v1", "kind": "Pod", "namespace": key.namespace, "name": key.name});
            (&*key.namespace, &*key.name, about)
        }
    };
    let body = json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"generateName": format!("{name}."), "namespace": namespace},
        "involvedObject": about,
        "type": if event.warning { "Warning" } else { "Normal" },
        "reason": event.reason, "message": event.message,
        "source": {"component": event.source}, "reportingComponent": event.source,
        "count": 1, "firstTimestamp": now.to_time(), "lastTimestamp": now.to_time(),
    });
    let events = kube::core::Request::new(format!("/api/v1/namespaces/{namespace}/events"));
    send(client, events.create(&PostParams::default(), body.to_string().into_bytes())).await.map(drop)
}

/// Preconditions that stand in a patch: another object is never meant, and with a version no other state of it.
pub(super) fn locked(uid: &Uid, version: Option<Version>) -> Value {
    let mut metadata = json!({"uid": uid});
    if let Some(version) = version {
        metadata["resourceVersion"] = version.0.to_string().into();
    }
    metadata
}

fn as_us() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() }
}

fn nodes() -> kube::core::Request {
    kube::core::Request::new("/api/v1/nodes")
}

pub(super) fn pods(of: &Key) -> kube::core::Request {
    kube::core::Request::new(format!("/api/v1/namespaces/{}/pods", of.namespace))
}

pub(super) async fn send(
    client: &Client,
    request: Result<Request<Vec<u8>>, kube::core::request::Error>,
) -> Result<Value, WriteFailure> {
    let request = request.map_err(kube::Error::BuildRequest)?;
    match timeout(LONGEST, client.request(request)).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(WriteFailure::NoAnswer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::TaintEffect;

    fn taint(key: &str) -> Taint {
        Taint { key: key.into(), effect: TaintEffect::NoExecute, ..Taint::default() }
    }

    #[test]
    fn a_swap_leaves_foreign_taints_as_they_are() {
        let foreign = json!({"key": "team", "value": "x", "effect": "NoExecute", "future": 1});
        let other_effect = json!({"key": "a", "effect": "NoSchedule"});
        let before = vec![foreign.clone(), json!({"key": "a", "effect": "NoExecute"}), other_effect.clone()];
        let now = Timestamp::from_secs(0);
        let new = json!({"key": "b", "effect": "NoExecute", "timeAdded": "1970-01-01T00:00:00Z"});
        assert_eq!(
            swapped(before.clone(), &[taint("b")], &[taint("a")], now),
            [foreign.clone(), other_effect.clone(), new]
        );
        let renewed = json!({"key": "a", "effect": "NoExecute", "timeAdded": "1970-01-01T00:00:00Z"});
        assert_eq!(swapped(before, &[taint("a")], &[], now), [foreign, renewed, other_effect]);
    }

    #[test]
    fn a_taint_that_no_longer_tells_the_truth_is_not_set() {
        let node = |status: &str| json!({"status": {"conditions": [{"type": "Ready", "status": status}]}});
        let unreachable = taint("node.kubernetes.io/unreachable");
        assert!(still_true(&unreachable, &node("Unknown")));
        assert!(!still_true(&unreachable, &node("True")) && !still_true(&unreachable, &json!({})));
        assert!(still_true(&taint("node.kubernetes.io/disk-pressure"), &node("True")));
    }
}
