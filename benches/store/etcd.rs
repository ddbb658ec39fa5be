//! The etcd of a real API server. The benchmark writes to it directly, in place of a cluster's other API servers.

use std::{fs, path::Path, process::Command};

use anyhow::{Context, Result, ensure};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::Request;
use kordon_time::Span;
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{
    control_plane::eventually::eventually,
    large_cluster::{
        churn::{ChangedPod, Write, WriteTarget},
        objects::{LargeCluster, pod_name, pod_namespace},
    },
};

/// Objects in one write, about 400 KiB.
const OBJECTS_PER_WRITE: usize = 50;
const WRITERS: usize = 4;

/// A client of etcd's JSON gateway.
#[derive(Clone)]
pub struct Etcd(Client);

impl Etcd {
    /// Waits until etcd answers at this address.
    pub async fn connect(address: &str) -> Result<Self> {
        let mut config = Config::new(address.parse()?);
        config.default_retry = false;
        let client = Client::try_from(config)?;
        eventually("etcd", Span::from_secs(30), async || {
            let request = Request::get("/health").body(Vec::new())?;
            Ok(client.request_text(request).await.ok())
        })
        .await?;
        Ok(Self(client))
    }

    /// Writes all objects as JSON. The API server can read JSON from etcd as well as its own protobuf.
    pub async fn fill(&self, cluster: LargeCluster) -> Result<()> {
        let mut writers = JoinSet::new();
        for part in 0..WRITERS {
            let etcd = self.clone();
            writers.spawn(async move {
                let mut objects = cluster.objects(part, WRITERS).peekable();
                while objects.peek().is_some() {
                    let put = |(plural, object): (&str, Value)| json!({"requestPut": put(plural, &object)});
                    let puts: Vec<Value> = objects.by_ref().take(OBJECTS_PER_WRITE).map(put).collect();
                    let answer = etcd.request("/v3/kv/txn", &json!({"success": puts})).await?;
                    ensure!(answer.contains("\"succeeded\":true"), "etcd: {answer}");
                }
                Ok(())
            });
        }
        while let Some(written) = writers.join_next().await {
            written??;
        }
        Ok(())
    }

    async fn request(&self, path: &str, body: &Value) -> Result<String> {
        let request = Request::post(path).body(serde_json::to_vec(body)?)?;
        self.0.request_text(request).await.context("writing to etcd")
    }
}

impl WriteTarget for Etcd {
    async fn write(&self, cluster: LargeCluster, write: Write) -> Result<()> {
        let object_of = |pod: ChangedPod| cluster.pod(pod.index, pod.generation, pod.health);
        let put = match write {
            Write::Renew(node) => put("leases", &cluster.lease(node)),
            Write::Lead => put("leases", &cluster.leader()),
            Write::Status(pod) | Write::Create(pod) => put("pods", &object_of(pod)),
            Write::Delete(ChangedPod { index, generation, .. }) => {
                let key = key("pods", Some(&pod_namespace(index)), &pod_name(index, generation));
                let gone = json!({"key": BASE64_STANDARD.encode(key)});
                self.request("/v3/kv/deleterange", &gone).await?;
                return Ok(());
            }
        };
        self.request("/v3/kv/put", &put).await?;
        Ok(())
    }
}

/// Builds the write of one object, under the key at which the API server looks for it.
fn put(plural: &str, object: &Value) -> Value {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let key = key(plural, object["metadata"]["namespace"].as_str(), name);
    json!({"key": BASE64_STANDARD.encode(key), "value": BASE64_STANDARD.encode(object.to_string())})
}

fn key(plural: &str, namespace: Option<&str>, name: &str) -> String {
    let folder = if plural == "nodes" { "minions" } else { plural };
    match namespace {
        Some(namespace) => format!("/registry/{folder}/{namespace}/{name}"),
        None => format!("/registry/{folder}/{name}"),
    }
}

/// Copies the data folder of an etcd that is not running.
pub fn copy_data(from: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    let copied = Command::new("cp").args(["-r", "--reflink=auto"]).arg(from).arg(to).status()?;
    ensure!(copied.success(), "{} cannot be copied", from.display());
    Ok(())
}
