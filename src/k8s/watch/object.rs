//! The whole object of a node, pod or budget. It is read when a user looks at the object, and again after each change.

use std::time::Duration;

use kube::Client;
use serde_json::Value;
use tokio::{
    sync::{mpsc, watch},
    time::sleep,
};

use super::{
    error::{self, WatchError},
    paths::CollectionQuery,
};
use kordon_core::{
    cluster::{EventSubject, FetchedObject, ObjectRead, Version},
    engine::ServerVersion,
};

/// Maximum size of an object in bytes; etcd stores none above 1.5 MiB.
const LONGEST: usize = 4 << 20;

/// Maximum time until a response starts, and maximum pause during the response.
const OPENING: Duration = Duration::from_secs(10);

/// Minimum time between two reads of a changing object.
const PACE: Duration = Duration::from_secs(2);

/// Delay before a failed read is repeated (`FAILED_PAUSE`), and between reads while the object is forbidden
/// (`FORBIDDEN_PAUSE`).
const FAILED_PAUSE: Duration = Duration::from_secs(10);
const FORBIDDEN_PAUSE: Duration = Duration::from_secs(60);

/// Reads and reports the object, and again after each change of its version, until the receiver is dropped.
pub async fn follow_object(
    client: Client,
    release: ServerVersion,
    subject: EventSubject,
    mut versions: watch::Receiver<Version>,
    reports: mpsc::Sender<ObjectRead>,
) {
    loop {
        versions.borrow_and_update();
        let (read, pause) = match read_object(&client, release, &subject).await {
            Ok(object) => (ObjectRead { object: Some(object), failure: None }, PACE),
            Err(error) => {
                let (words, pause) = in_words(error);
                (ObjectRead { object: None, failure: Some(words) }, pause)
            }
        };
        let is_read = read.failure.is_none();
        if reports.send(read).await.is_err() {
            return;
        }
        let next = async {
            sleep(pause).await;
            // A failed read is retried even if the object does not change.
            !is_read || versions.changed().await.is_ok()
        };
        tokio::select! {
            goes_on = next => if !goes_on { return },
            () = reports.closed() => return,
        }
    }
}

async fn read_object(
    client: &Client,
    release: ServerVersion,
    subject: &EventSubject,
) -> Result<FetchedObject, WatchError> {
    let query = CollectionQuery::for_object(subject, release);
    let bytes = error::read(client, query.as_str(), OPENING, LONGEST).await?;
    let object: Value = serde_json::from_slice(&bytes)
        .map_err(|_| WatchError::Failed("the response is not an object of the Kubernetes API".into()))?;
    fetched(object)
}

fn fetched(mut object: Value) -> Result<FetchedObject, WatchError> {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    let annotations = metadata.and_then(|metadata| {
        metadata.remove("managedFields");
        let annotations = metadata.get("annotations")?.as_object()?.iter();
        let text = |value: &Value| value.as_str().unwrap_or_default().into();
        Some(annotations.map(|(key, value)| (key.as_str().into(), text(value))).collect())
    });
    let yaml = serde_saphyr::to_string(&object)
        .map_err(|error| WatchError::Failed(format!("the object cannot be written as YAML: {error}")))?;
    Ok(FetchedObject {
        annotations: annotations.unwrap_or_default(),
        yaml: yaml.lines().map(Into::into).collect(),
    })
}

/// Converts the error of a read to its reason and the delay before a retry.
fn in_words(error: WatchError) -> (String, Duration) {
    let pause = match &error {
        WatchError::Forbidden(_) | WatchError::NotServed(_) => FORBIDDEN_PAUSE,
        WatchError::Overloaded(_, asked) => asked.unwrap_or(FAILED_PAUSE).max(FAILED_PAUSE),
        WatchError::Invalid(_) | WatchError::Failed(_) | WatchError::Expired => FAILED_PAUSE,
    };
    (error.words().unwrap_or_else(|| "the server no longer has it".into()), pause)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_shown_as_kubectl_shows_it_with_every_line_on_its_own() {
        let object = fetched(json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {
                "name": "n1",
                "managedFields": [{"manager": "kubelet"}],
                "annotations": {"example.com/note": "one\ntwo\u{1b}[2J", "node.alpha/ttl": "0"},
            },
            "spec": {"unschedulable": true},
        }))
        .expect("an object");
        assert_eq!(&*object.annotations["node.alpha/ttl"], "0");
        assert_eq!(object.annotations.len(), 2);
        let yaml = object.yaml.join("\n");
        assert!(!yaml.contains("managedFields"), "{yaml}");
        assert!(object.yaml.iter().any(|line| &**line == "  unschedulable: true"), "{yaml}");
        let back: Value = serde_saphyr::from_str(&yaml).expect("YAML");
        assert_eq!(back["metadata"]["annotations"]["example.com/note"], "one\ntwo\u{1b}[2J");
    }

    #[test]
    fn what_is_no_object_is_no_reason_to_stop() {
        for odd in [json!(null), json!([]), json!({"metadata": 3}), json!({"metadata": {"annotations": []}})]
        {
            assert!(fetched(odd).expect("YAML of anything").annotations.is_empty());
        }
    }
}
