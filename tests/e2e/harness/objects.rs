//! Objects that tests create.

use anyhow::{Context, Result};
use kube::Client;
use serde_json::{Value, json};

/// Creates an object in the collection at this path.
pub async fn create(client: &Client, path: &str, object: &Value) -> Result<()> {
    let request = http::Request::post(path)
        .header("Content-Type", "application/json")
        .body(serde_json::to_vec(object)?)?;
    client.request::<Value>(request).await.with_context(|| format!("creating {object}"))?;
    Ok(())
}

/// A Deployment whose pods have the label `app` and this grace period in seconds.
pub fn deployment(name: &str, replicas: u32, grace_seconds: u32) -> Value {
    json!({
        "metadata": { "name": name },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": {
                    "terminationGracePeriodSeconds": grace_seconds,
                    "containers": [{ "name": "c", "image": "img" }],
                },
            },
        },
    })
}
