//! A server with requests to it, and the objects in it.

use k8s_openapi::api::core::v1::Pod;
use kordon_clock::Clock;
use kordon_demo::api::{Api, ApiOptions};
use kordon_time::Timestamp;
use kube::core::Status;
use serde_json::{Value, json};

pub const PODS: &str = "/api/v1/namespaces/default/pods";

pub fn server() -> Api {
    server_with(ApiOptions::default())
}

pub fn server_with(options: ApiOptions) -> Api {
    Api::new(Clock::new(Timestamp::from_secs(1_800_000_000), 1.0), options)
}

pub fn request(method: &str, path: &str, media: &str, body: &Value) -> http::Request<Vec<u8>> {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = http::Request::builder().method(method).uri(path).header("content-type", media);
    request.body(body).expect("a request")
}

pub async fn send(
    api: &Api,
    method: &str,
    path: &str,
    media: &str,
    body: &Value,
) -> Result<Value, Box<Status>> {
    match api.client().request(request(method, path, media, body)).await {
        Ok(value) => Ok(value),
        Err(kube::Error::Api(status)) => Err(status),
        Err(other) => panic!("{method} {path}: {other}"),
    }
}

pub async fn read_raw(api: &Api, path: &str) -> kube::Result<Value> {
    api.client().request(request("GET", path, "application/json", &Value::Null)).await
}

pub async fn read(api: &Api, path: &str) -> Result<Value, Box<Status>> {
    send(api, "GET", path, "application/json", &Value::Null).await
}

pub async fn post(api: &Api, path: &str, body: &Value) -> Result<Value, Box<Status>> {
    send(api, "POST", path, "application/json", body).await
}

pub async fn merge(api: &Api, path: &str, patch: &Value) -> Result<Value, Box<Status>> {
    send(api, "PATCH", path, "application/merge-patch+json", patch).await
}

pub async fn evict(api: &Api, pod: &str) -> Result<(), Box<Status>> {
    let body = json!({"apiVersion": "policy/v1", "kind": "Eviction",
        "metadata": {"name": pod, "namespace": "default"}});
    let answer = post(api, &format!("{PODS}/{pod}/eviction"), &body).await?;
    assert_eq!((&answer["kind"], &answer["status"]), (&json!("Status"), &json!("Success")));
    Ok(())
}

pub fn names(pods: &[Pod]) -> Vec<&str> {
    pods.iter().filter_map(|pod| pod.metadata.name.as_deref()).collect()
}

/// A pod as a client creates it, without status.
pub fn bare_pod(name: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"app": "a"}},
        "spec": {"containers": [{"name": "main", "image": "demo/a:1"}]}})
}

/// A running, ready pod on node n1.
pub fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "default", "labels": {"app": "a"}},
        "spec": {"nodeName": "n1", "terminationGracePeriodSeconds": 30,
            "containers": [{"name": "main", "image": "demo/a:1"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}})
}
