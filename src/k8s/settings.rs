//! Flags of the cluster's controller manager, read from the command line of its pod.

use std::time::Duration;

use futures::FutureExt;
use kube::Client;
use serde_json::Value;
use tokio_util::task::AbortOnDropHandle;

use super::error::plain;
use kordon_time::Span;

/// Flags with which the controller manager runs, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControllerFlags {
    /// Flags with their values, in the order of the command line. The names have no dashes.
    pub flags: Vec<(String, String)>,
    /// Source of the flags, as text for the screen. If there are no flags, the reason why.
    pub note: String,
}

const COMPONENT: &str = "kube-controller-manager";

/// Timeout of reading the flags. If it expires, upstream's defaults are used.
const PATIENCE: Duration = Duration::from_secs(5);

/// Reads the command line of kube-controller-manager, if it runs as a pod that the user may read.
pub async fn controller_flags(client: &Client) -> ControllerFlags {
    let found = tokio::time::timeout(PATIENCE, find(client)).await;
    match found.unwrap_or_else(|_| Err(format!("no response within {} s", PATIENCE.as_secs()))) {
        Ok(pods) => read(&pods),
        Err(error) => ControllerFlags {
            note: format!("cannot read the pods of kube-system ({error}): using upstream's defaults"),
            ..ControllerFlags::default()
        },
    }
}

impl ControllerFlags {
    /// Starts reading the flags in the background.
    pub fn ask(client: &Client) -> impl Future<Output = Self> + use<> {
        let client = client.clone();
        let asked = AbortOnDropHandle::new(tokio::spawn(async move { controller_flags(&client).await }));
        asked.map(|found| {
            found.unwrap_or_else(|_| Self {
                note: "reading them failed by a bug in kordon: using upstream's defaults".into(),
                ..Self::default()
            })
        })
    }
}

/// Finds the pods of the controller manager, by the label that kubeadm sets, or else by name.
async fn find(client: &Client) -> Result<Vec<Value>, String> {
    let labelled = list(client, &format!("labelSelector=component%3D{COMPONENT}&limit=20")).await?;
    if !labelled.is_empty() {
        return Ok(labelled);
    }
    // With resourceVersion=0 the server would ignore the limit and return all pods of kube-system, including those of
    // every node's agents.
    let mut pods = list(client, "limit=500").await?;
    pods.retain(|pod| pod["metadata"]["name"].as_str().is_some_and(|name| name.starts_with(COMPONENT)));
    Ok(pods)
}

async fn list(client: &Client, query: &str) -> Result<Vec<Value>, String> {
    list_path(client, &format!("/api/v1/namespaces/kube-system/pods?{query}")).await
}

/// Reads the longest duration of the nodes' Leases, which the kubelets set; 500 nodes are enough to tell. `None` if the
/// user may not read the Leases, or if no Lease has a duration.
pub async fn lease_duration(client: &Client) -> Option<Span> {
    let path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases?limit=500";
    let leases = tokio::time::timeout(PATIENCE, list_path(client, path)).await.ok()?.ok()?;
    leases
        .iter()
        .filter_map(|lease| lease["spec"]["leaseDurationSeconds"].as_i64())
        .max()
        .map(Span::from_secs)
}

async fn list_path(client: &Client, path: &str) -> Result<Vec<Value>, String> {
    let request = http::Request::get(path).body(Vec::new()).map_err(|error| error.to_string())?;
    let mut list: Value = client.request(request).await.map_err(|error| super::error::words(&error))?;
    match list.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => Ok(items),
        Some(_) | None => Ok(Vec::new()),
    }
}

/// Returns the flags of the controller manager's first pod by name. The text in `note` says so if another pod has
/// different flags.
fn read(pods: &[Value]) -> ControllerFlags {
    let name = |pod: &Value| pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let mut found: Vec<(String, Vec<(String, String)>)> =
        pods.iter().filter_map(|pod| Some((name(pod), flags_of(pod)?))).collect();
    found.sort();
    let Some((first, flags)) = found.first().cloned() else {
        return ControllerFlags {
            note: "kube-controller-manager does not run as a pod here: using upstream's defaults".into(),
            ..ControllerFlags::default()
        };
    };
    let note = match found.iter().find(|(_, others)| *others != flags) {
        Some((other, _)) => {
            format!("command line of pod {}; that of {} differs", plain(&first), plain(other))
        }
        None => format!("command line of pod {}", plain(&first)),
    };
    ControllerFlags { flags, note }
}

/// Returns the flags of the container that runs kube-controller-manager; `None` if there is no such container.
fn flags_of(pod: &Value) -> Option<Vec<(String, String)>> {
    let containers = pod["spec"]["containers"].as_array()?;
    containers.iter().find_map(|container| {
        let words = ["command", "args"]
            .into_iter()
            .flat_map(|field| container[field].as_array().into_iter().flatten());
        let words: Vec<&str> = words.filter_map(Value::as_str).collect();
        let is_it = container["name"] == COMPONENT || words.iter().any(|word| word.contains(COMPONENT));
        is_it.then(|| flags(&words))
    })
}

/// Parses the flags of a command line: `--flag=value`, `--flag value` and `--flag`. A word that contains spaces is a
/// shell script, and is split.
fn flags(words: &[&str]) -> Vec<(String, String)> {
    let words: Vec<&str> = words.iter().flat_map(|word| word.split_whitespace()).collect();
    let mut flags = Vec::new();
    for (i, word) in words.iter().enumerate() {
        let Some(flag) = word.strip_prefix("--").filter(|flag| !flag.is_empty()) else { continue };
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name, value.trim_matches(['"', '\''])),
            None => match words.get(i + 1) {
                Some(value) if !value.starts_with('-') => (flag, *value),
                _ => (flag, "true"),
            },
        };
        flags.push((name.to_owned(), value.to_owned()));
    }
    flags
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, command: &[&str]) -> Value {
        json!({"metadata": {"name": name}, "spec": {"containers": [
            {"name": "sidecar", "args": ["--node-monitor-period=1s"]},
            {"name": COMPONENT, "command": [COMPONENT], "args": command}]}})
    }

    #[test]
    fn flags_of_every_notation_are_read() {
        let found = read(&[pod(
            "m1",
            &["--node-monitor-period=7s", "--node-eviction-rate", "0.5", "--leader-elect"],
        )]);
        let flags: Vec<(&str, &str)> = found.flags.iter().map(|(flag, value)| (&**flag, &**value)).collect();
        assert_eq!(
            flags,
            [("node-monitor-period", "7s"), ("node-eviction-rate", "0.5"), ("leader-elect", "true")]
        );
        assert_eq!(found.note, "command line of pod m1");
        let shell = json!({"metadata": {"name": "m"}, "spec": {"containers": [{"name": "x", "command":
            ["sh", "-c", "exec kube-controller-manager --node-monitor-period=\"3s\" 2>&1"]}]}});
        assert_eq!(read(&[shell]).flags, [("node-monitor-period".into(), "3s".into())]);
    }

    #[test]
    fn managers_that_disagree_and_managers_that_do_not_exist_are_reported() {
        let found = read(&[pod("m2", &["--a=1"]), pod("m1", &["--a=2"])]);
        assert_eq!(found.flags, [("a".into(), "2".into())]);
        assert!(found.note.contains("m1") && found.note.contains("m2 differs"), "{}", found.note);
        assert!(read(&[]).note.contains("defaults"));
    }
}
