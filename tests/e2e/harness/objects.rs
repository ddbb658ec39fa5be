//! Objects that tests create.

use serde_json::{Value, json};

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
