//! Writes of a plan, and their API calls.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::metadata_edits::MetadataField;
use crate::cluster::{Key, Name, Namespace, NodeName, Taint, Uid, Version};
use kordon_time::Span;

/// One write of a plan. The write fails if the uid of the object has changed since the plan was made. A write that
/// replaces a whole list also fails if the version of the object has changed.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanStep {
    /// Cordons the node if `on` is true, and uncordons it otherwise. Applies to any version of the node, because the
    /// version changes with each status update.
    Cordon {
        node: NodeName,
        uid: Uid,
        on: bool,
    },
    SetTaints {
        node: NodeName,
        uid: Uid,
        version: Version,
        taints: Vec<Taint>,
    },
    /// Sets labels or annotations. An entry without a value is removed.
    SetMetadata {
        node: NodeName,
        uid: Uid,
        field: MetadataField,
        entries: Vec<(Name, Option<Name>)>,
    },
    Evict {
        pod: Key,
        uid: Uid,
        grace: Option<Span>,
    },
    Delete {
        pod: Key,
        uid: Uid,
        grace: Option<Span>,
    },
    DeleteNode {
        node: NodeName,
        uid: Uid,
    },
    /// Scales a Deployment. `version` is `None` if an earlier step of the plan has scaled it.
    Scale {
        deployment: Key,
        uid: Uid,
        version: Option<Version>,
        replicas: i32,
    },
}

/// An API call that makes one write of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub method: &'static str,
    pub path: String,
    pub content_type: &'static str,
    pub body: Value,
}

const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json";

impl PlanStep {
    /// Returns the API call that makes the write. It has no `dryRun` parameter.
    pub fn call(&self) -> Call {
        let node = |name: &NodeName, body| Call {
            method: "PATCH",
            path: node_path(name),
            content_type: MERGE,
            body,
        };
        match self {
            Self::Cordon { node: name, uid, on } => {
                let unschedulable = if *on { json!(true) } else { Value::Null };
                node(name, json!({"metadata": {"uid": uid}, "spec": {"unschedulable": unschedulable}}))
            }
            Self::SetTaints { node: name, uid, version, taints } => {
                let taints: Vec<Value> = taints.iter().map(taint).collect();
                let metadata = json!({"uid": uid, "resourceVersion": version.0.to_string()});
                let taints = if taints.is_empty() { Value::Null } else { Value::Array(taints) };
                node(name, json!({"metadata": metadata, "spec": {"taints": taints}}))
            }
            Self::SetMetadata { node: name, uid, field, entries } => {
                let entries: serde_json::Map<String, Value> = entries
                    .iter()
                    .map(|(key, value)| {
                        (key.to_string(), value.as_deref().map_or(Value::Null, |text| json!(text)))
                    })
                    .collect();
                node(name, json!({"metadata": {"uid": uid, field.as_str(): entries}}))
            }
            Self::Evict { pod, uid, grace } => Call {
                method: "POST",
                path: format!("{}/eviction", pod_path(pod)),
                content_type: JSON,
                body: json!({
                    "apiVersion": "policy/v1",
                    "kind": "Eviction",
                    "metadata": {"name": &*pod.name, "namespace": &*pod.namespace},
                    "deleteOptions": delete_options(uid, *grace),
                }),
            },
            Self::Delete { pod, uid, grace } => deletion(pod_path(pod), uid, *grace),
            Self::DeleteNode { node, uid } => deletion(node_path(node), uid, None),
            Self::Scale { deployment, uid, version, replicas } => {
                let mut metadata = json!({"uid": uid});
                if let Some(version) = version {
                    metadata["resourceVersion"] = version.0.to_string().into();
                }
                Call {
                    method: "PATCH",
                    path: scale_path(deployment),
                    content_type: MERGE,
                    body: json!({"metadata": metadata, "spec": {"replicas": replicas}}),
                }
            }
        }
    }
}

/// Characters that are percent-encoded in a path: all characters except the unreserved ones (RFC 3986).
const UNRESERVED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Returns the API path of a node. Valid names need no encoding, but a server may send other names.
pub fn node_path(node: &NodeName) -> String {
    format!("/api/v1/nodes/{}", utf8_percent_encode(node, &UNRESERVED))
}

fn pod_path(pod: &Key) -> String {
    let [namespace, name] = [&*pod.namespace, &*pod.name].map(|part| utf8_percent_encode(part, &UNRESERVED));
    format!("/api/v1/namespaces/{namespace}/pods/{name}")
}

/// Returns the API path of the scale of a Deployment (upstream `pkg/registry/apps/deployment/storage/storage.go`,
/// `ScaleREST`, which checks uid and resourceVersion).
pub fn scale_path(deployment: &Key) -> String {
    let [namespace, name] =
        [&*deployment.namespace, &*deployment.name].map(|part| utf8_percent_encode(part, &UNRESERVED));
    format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale")
}

/// Returns the API path of the autoscalers of a namespace, or of all namespaces, in the API version that every server
/// serves.
pub fn autoscalers_path(namespace: Option<&Namespace>) -> String {
    let encoded = |name: &Namespace| format!("namespaces/{}/", utf8_percent_encode(name, &UNRESERVED));
    let within = namespace.map(encoded).unwrap_or_default();
    format!("/apis/autoscaling/v1/{within}horizontalpodautoscalers")
}

fn deletion(path: String, uid: &Uid, grace: Option<Span>) -> Call {
    let mut body = delete_options(uid, grace);
    body["apiVersion"] = json!("v1");
    body["kind"] = json!("DeleteOptions");
    Call { method: "DELETE", path, content_type: JSON, body }
}

fn delete_options(uid: &Uid, grace: Option<Span>) -> Value {
    let mut options = json!({"preconditions": {"uid": uid}});
    if let Some(grace) = grace {
        options["gracePeriodSeconds"] = json!(grace.as_secs());
    }
    options
}

/// Returns a taint as the API writes it, with the time at which it was added.
fn taint(taint: &Taint) -> Value {
    let mut value = json!({"key": &*taint.key, "effect": taint.effect.as_str()});
    if !taint.value.is_empty() {
        value["value"] = json!(&*taint.value);
    }
    if let Some(added) = taint.time_added {
        value["timeAdded"] = json!(added.to_time());
    }
    value
}
