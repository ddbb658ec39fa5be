//! Sends the writes of the engine, each write once and with its preconditions.
//!
//! Nothing is retried here: the engine receives the outcome and decides whether the write is still needed.

use std::time::Duration;

use http::Request;
use kube::{
    Client,
    api::{DeleteParams, GetParams, Patch, PatchParams, PostParams, Preconditions},
};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::error::words;
use kordon_core::{
    cluster::{Key, Name, NodeName, Taint, Uid, Version},
    engine::{
        DELETION_BY_TAINT, Deletion, EventObject, LeaseCheck, NODE_LOST, NodeCheck, Outcome, RecordedEvent,
        UnknownCondition, Write,
    },
};
use kordon_time::{ClusterTime, Timestamp};

/// Name of kordon as a field manager (`metadata.managedFields`).
const FIELD_MANAGER: &str = "kordon";

/// Timeout of a write. It is longer than the server's own limit for a request.
const LONGEST: Duration = Duration::from_secs(40);

/// Sends one write. `now` becomes the time in new taints and Events.
pub async fn send_write(client: &Client, write: &Write, now: Timestamp) -> Outcome {
    let done = match write {
        Write::MarkUnknown { node, uid, version, conditions, lease } => {
            mark_unknown(client, node, uid, *version, conditions, *lease).await
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
        Err(failure) => failure.into(),
    }
}

/// Sends one write like [`send_write`]. Before an eviction by taint it also reads the node again, so that a delayed
/// watch does not cause an eviction.
pub async fn send_checked_write(client: &Client, write: &Write, now: Timestamp) -> Outcome {
    if let Write::DeletePod { node, deletion: Deletion::ByTaint { .. }, .. } = write
        && let Err(failure) = check_tainted(client, node).await
    {
        return failure.into();
    }
    send_write(client, write, now).await
}

/// Fails if the node exists but has no NoExecute taint. Succeeds if the node does not exist: the eviction timers of its
/// pods remain in effect then.
async fn check_tainted(client: &Client, node: &NodeName) -> Result<(), WriteFailure> {
    match send(client, nodes().get(node, &GetParams::default())).await {
        Ok(live) => {
            let mut taints = live["spec"]["taints"].as_array().into_iter().flatten();
            if taints.any(|taint| taint["effect"] == "NoExecute") {
                Ok(())
            } else {
                Err(WriteFailure::Outdated)
            }
        }
        Err(WriteFailure::Refused(error)) if is_not_found(&error) => Ok(()),
        Err(failure) => Err(failure),
    }
}

/// Reason why a write failed.
pub(super) enum WriteFailure {
    /// The object has changed and the write is no longer needed.
    Outdated,
    Refused(Box<kube::Error>),
    /// There was no response in time. The write may have been applied.
    NoResponse,
}

impl WriteFailure {
    fn words(self) -> String {
        match Outcome::from(self) {
            Outcome::Failed(error) => error,
            Outcome::Conflict => "the object has changed".into(),
            Outcome::Gone => "the object is gone".into(),
            Outcome::Done | Outcome::Recorded => String::new(),
        }
    }
}

impl From<kube::Error> for WriteFailure {
    fn from(error: kube::Error) -> Self {
        Self::Refused(Box::new(error))
    }
}

impl From<WriteFailure> for Outcome {
    fn from(failure: WriteFailure) -> Self {
        match failure {
            WriteFailure::Outdated => Self::Conflict,
            WriteFailure::NoResponse => Self::Failed(format!(
                "no response within {} s; the watch will show whether it was written",
                LONGEST.as_secs()
            )),
            WriteFailure::Refused(error) => match *error {
                kube::Error::Api(ref status) if status.code == 404 => Self::Gone,
                kube::Error::Api(ref status) if status.code == 409 => Self::Conflict,
                // The server's response to a patch whose object was replaced by another object of the same name.
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
    lease: LeaseCheck,
) -> Result<(), WriteFailure> {
    if let LeaseCheck::Version(known) = lease {
        check_lease(client, node, known).await?;
    }
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|condition| {
            let mut value = json!({"type": condition.kind, "status": "Unknown", "reason": &*condition.reason,
                "message": &*condition.message, "lastTransitionTime": condition.last_transition.to_time()});
            if let Some(heartbeat) = condition.last_heartbeat {
                value["lastHeartbeatTime"] = heartbeat.to_time().into();
            }
            value
        })
        .collect();
    let patch = json!({"metadata": preconditions(uid, Some(version)), "status": {"conditions": conditions}});
    let request = nodes().patch_subresource("status", node, &as_us(), &Patch::Strategic(patch));
    send(client, request).await.map(drop)
}

/// Fails if the node's Lease has another version than the decision was based on. Succeeds if the Lease does not exist.
async fn check_lease(client: &Client, node: &NodeName, known: Option<Version>) -> Result<(), WriteFailure> {
    match send(client, leases().get(node, &GetParams::default())).await {
        Ok(live) => {
            let version = live["metadata"]["resourceVersion"].as_str().map(Version::parse);
            if version == known { Ok(()) } else { Err(WriteFailure::Outdated) }
        }
        Err(WriteFailure::Refused(error)) if is_not_found(&error) => Ok(()),
        Err(failure) => Err(failure),
    }
}

/// Fails if the node still exists on the API server.
async fn check_gone(client: &Client, node: &NodeName) -> Result<(), WriteFailure> {
    match send(client, nodes().get(node, &GetParams::default())).await {
        Ok(_) => Err(WriteFailure::Outdated),
        Err(WriteFailure::Refused(error)) if is_not_found(&error) => Ok(()),
        Err(failure) => Err(failure),
    }
}

/// Returns the method and path of a write. If the write consists of several requests, returns those of the last
/// request.
pub fn call(write: &Write) -> (&'static str, String) {
    let pod_path =
        |pod: &Key, rest: &str| format!("/api/v1/namespaces/{}/pods/{}{rest}", pod.namespace, pod.name);
    match write {
        Write::MarkUnknown { node, .. } => ("PATCH", format!("/api/v1/nodes/{node}/status")),
        Write::SwapTaints { node, .. } | Write::SetLabels { node, .. } => {
            ("PATCH", format!("/api/v1/nodes/{node}"))
        }
        Write::MarkPodNotReady { pod, .. } | Write::MarkPodLost { pod, .. } => {
            ("PATCH", pod_path(pod, "/status"))
        }
        Write::DeletePod { pod, .. } => ("DELETE", pod_path(pod, "")),
        Write::RecordEvent(event) => {
            ("POST", format!("/api/v1/namespaces/{}/events", namespace_of(&event.object)))
        }
    }
}

/// Returns the namespace in which events about an object are created.
fn namespace_of(object: &EventObject) -> &str {
    match object {
        EventObject::Node(..) => "default",
        EventObject::Pod(key) => &key.namespace,
    }
}

/// Swaps taints as upstream does (docs/upstream/node-lifecycle.md#4.5). Upstream sends two patches; this sends one
/// patch, based on the newest version of the node.
///
/// The resourceVersion that the decision was based on is not a precondition, because nodes change all the time. But a
/// node whose state no longer matches the new taint is not changed.
async fn swap_taints(
    client: &Client,
    node: &NodeName,
    uid: &Uid,
    add: &[Taint],
    remove: &[Taint],
    now: Timestamp,
) -> Result<(), WriteFailure> {
    let newest = send(client, nodes().get(node, &GetParams::default())).await?;
    let of_meta = |field: &str| newest["metadata"][field].as_str().unwrap_or_default();
    if *uid != *of_meta("uid") || add.iter().any(|taint| !matches_state(taint, &newest)) {
        return Err(WriteFailure::Outdated);
    }
    let before = newest["spec"]["taints"].as_array().cloned().unwrap_or_default();
    let taints = swapped(before.clone(), add, remove, now);
    if taints == before {
        return Ok(());
    }
    let metadata = json!({"uid": uid, "resourceVersion": of_meta("resourceVersion")});
    // The patch has the whole list of taints, because a merge patch replaces a list as a whole.
    let patch = json!({"metadata": metadata, "spec": {"taints": taints}});
    send(client, nodes().patch(node, &as_us(), &Patch::Merge(patch))).await.map(drop)
}

/// Whether a taint of the node lifecycle controller matches the Ready condition of the node. Any other taint always
/// matches.
fn matches_state(taint: &Taint, node: &Value) -> bool {
    let mut conditions = node["status"]["conditions"].as_array().into_iter().flatten();
    let ready = conditions.find(|condition| condition["type"] == "Ready").map(|ready| &ready["status"]);
    match &*taint.key {
        "node.kubernetes.io/unreachable" => ready.is_some_and(|status| status == "Unknown"),
        "node.kubernetes.io/not-ready" => ready.is_some_and(|status| status == "False"),
        _ => true,
    }
}

/// Returns the taints after a swap. Other taints stay as they are, including unknown fields.
fn swapped(mut taints: Vec<Value>, add: &[Taint], remove: &[Taint], now: Timestamp) -> Vec<Value> {
    let same =
        |value: &Value, taint: &Taint| value["key"] == *taint.key && value["effect"] == taint.effect.as_str();
    for taint in add {
        let at = taint.time_added.map_or_else(|| now.to_time(), ClusterTime::to_time);
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
    let mut metadata = preconditions(uid, Some(version));
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
    // A strategic patch merges conditions by type, so the reason and message of the condition do not change.
    let ready = json!({"type": "Ready", "status": "False", "lastTransitionTime": now.to_time()});
    let patch = json!({"metadata": preconditions(uid, Some(version)), "status": {"conditions": [ready]}});
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
    patch_status(client, pod, preconditions(uid, Some(version)), status).await
}

/// Updates the pod's status if the kind of `deletion` requires that, then deletes the pod.
async fn delete_pod(
    client: &Client,
    pod: &Key,
    uid: &Uid,
    node: &NodeName,
    deletion: Deletion,
    now: Timestamp,
) -> Result<(), WriteFailure> {
    if let Deletion::Collected { node: NodeCheck::MustBeGone, .. } = deletion {
        check_gone(client, node).await?;
    }
    match deletion {
        Deletion::ByTaint { disruption_target: true } => {
            let text = "Taint manager: deleting due to NoExecute taint";
            let target = disruption_target(DELETION_BY_TAINT, text, now);
            patch_status(client, pod, preconditions(uid, None), json!({"conditions": [target]})).await?;
        }
        Deletion::WithNode { mark_lost: Some(version) } => {
            let marked = mark_pod_lost(client, pod, uid, version, node).await;
            // As in upstream, the pod is deleted even if it cannot be marked as lost. A conflict is the exception: the
            // pod must then be read again before it is deleted.
            if let Err(failure) = marked
                && Outcome::from(failure) == Outcome::Conflict
            {
                return Err(WriteFailure::Outdated);
            }
        }
        Deletion::Collected { fail: true, disruption_target: target, .. } => {
            let target =
                target.then(|| disruption_target("DeletionByPodGC", "PodGC: node no longer exists", now));
            let status = json!({"phase": "Failed", "conditions": Vec::from_iter(target)});
            patch_status(client, pod, preconditions(uid, None), status).await?;
        }
        Deletion::ByTaint { disruption_target: false }
        | Deletion::WithNode { mark_lost: None }
        | Deletion::Collected { fail: false, .. } => {}
    }
    let grace = matches!(deletion, Deletion::Collected { .. }).then_some(0);
    delete(client, pod, uid, grace).await
}

/// Deletes a pod. If `grace` is `None`, the pod's own grace period applies.
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

/// Returns the DisruptionTarget condition, which has the reason for a pod's deletion.
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

/// Creates an event and returns its name.
///
/// # Errors
/// The reason in words.
pub async fn create_event(client: &Client, event: &RecordedEvent, now: Timestamp) -> Result<String, String> {
    let created = create(client, event, now).await.map_err(|failure| failure.words())?;
    Ok(created["metadata"]["name"].as_str().unwrap_or_default().to_owned())
}

/// Increases the count of an existing event.
///
/// # Errors
/// The error is the reason in words, or `None` if the event has expired.
pub async fn repeat_event(
    client: &Client,
    event: &RecordedEvent,
    name: &str,
    count: u32,
    now: Timestamp,
) -> Result<(), Option<String>> {
    let patch = json!({"count": count, "lastTimestamp": now.to_time(), "message": event.message});
    let events = events_in(namespace_of(&event.object));
    match send(client, events.patch(name, &as_us(), &Patch::Merge(patch))).await {
        Ok(_) => Ok(()),
        Err(WriteFailure::Refused(error)) if is_not_found(&error) => Err(None),
        Err(failure) => Err(Some(failure.words())),
    }
}

pub(super) async fn record(
    client: &Client,
    event: &RecordedEvent,
    now: Timestamp,
) -> Result<(), WriteFailure> {
    create(client, event, now).await.map(drop)
}

async fn create(client: &Client, event: &RecordedEvent, now: Timestamp) -> Result<Value, WriteFailure> {
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
    let body = body.to_string().into_bytes();
    send(client, events_in(namespace).create(&PostParams::default(), body)).await
}

fn events_in(namespace: &str) -> kube::core::Request {
    kube::core::Request::new(format!("/api/v1/namespaces/{namespace}/events"))
}

/// Returns the preconditions of a patch: the same uid and, if `version` is given, the same version.
pub(super) fn preconditions(uid: &Uid, version: Option<Version>) -> Value {
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

fn leases() -> kube::core::Request {
    kube::core::Request::new("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases")
}

fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.is_not_found())
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
        Err(_) => Err(WriteFailure::NoResponse),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kordon_core::cluster::TaintEffect;

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
    fn a_taint_that_no_longer_matches_the_node_is_not_set() {
        let node = |status: &str| json!({"status": {"conditions": [{"type": "Ready", "status": status}]}});
        let unreachable = taint("node.kubernetes.io/unreachable");
        assert!(matches_state(&unreachable, &node("Unknown")));
        assert!(!matches_state(&unreachable, &node("True")) && !matches_state(&unreachable, &json!({})));
        assert!(matches_state(&taint("node.kubernetes.io/disk-pressure"), &node("True")));
    }
}
