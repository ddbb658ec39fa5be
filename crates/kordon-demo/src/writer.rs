//! Writes of the agents: JSON over a `kube::Client`.

use http::{Method, Request, header};
use kube::Client;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};

/// Client with which one agent writes.
#[derive(Clone)]
pub struct Writer {
    client: Client,
}

/// The reason why a write failed.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error("the object does not exist")]
    NotFound,
    #[error("conflict: {0}")]
    Conflict(String),
    #[error("forbidden: {0}")]
    Forbidden(String),
    #[error("too many requests: {0}")]
    TooManyRequests(String),
    #[error(transparent)]
    Other(#[from] kube::Error),
}

/// The type of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patch {
    Merge,
    /// A strategic merge patch, which merges lists such as conditions by key.
    Strategic,
}

impl Writer {
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Posts to a collection, or to a subresource such as `…/binding`.
    pub async fn create<T: DeserializeOwned>(&self, path: &str, object: &Value) -> Result<T, WriteError> {
        self.send(Method::POST, path, "application/json", object).await
    }

    pub async fn patch<T: DeserializeOwned>(
        &self,
        path: &str,
        how: Patch,
        patch: &Value,
    ) -> Result<T, WriteError> {
        let kind = match how {
            Patch::Merge => "application/merge-patch+json",
            Patch::Strategic => "application/strategic-merge-patch+json",
        };
        self.send(Method::PATCH, path, kind, patch).await
    }

    /// Deletes one object, with its uid as precondition.
    pub async fn delete(&self, path: &str, uid: &str, grace_seconds: Option<i64>) -> Result<(), WriteError> {
        let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}});
        if let Some(seconds) = grace_seconds {
            options["gracePeriodSeconds"] = json!(seconds);
        }
        let _: IgnoredAny = self.send(Method::DELETE, path, "application/json", &options).await?;
        Ok(())
    }

    async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        kind: &str,
        body: &Value,
    ) -> Result<T, WriteError> {
        let body = serde_json::to_vec(body).expect("a Value has string keys only");
        let request =
            Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, kind).body(body);
        let request = request.map_err(kube::Error::HttpError)?;
        self.client.request(request).await.map_err(WriteError::from_client)
    }
}

impl WriteError {
    fn from_client(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => match status.code {
                403 => Self::Forbidden(status.message.clone()),
                404 => Self::NotFound,
                409 => Self::Conflict(status.message.clone()),
                429 => Self::TooManyRequests(status.message.clone()),
                _ => Self::Other(kube::Error::Api(status)),
            },
            other => Self::Other(other),
        }
    }
}

/// Paths of objects.
pub mod path {
    use crate::objects::{Key, WorkloadKind};

    /// Returns the path of the collection that has all objects of a kind. `group` is empty for the core group.
    pub fn all(group: &str, plural: &str) -> String {
        if group.is_empty() { format!("/api/v1/{plural}") } else { format!("/apis/{group}/v1/{plural}") }
    }

    pub fn node(name: &str) -> String {
        format!("/api/v1/nodes/{name}")
    }

    pub fn lease(node: &str) -> String {
        format!("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node}")
    }

    pub fn pods(namespace: &str) -> String {
        format!("/api/v1/namespaces/{namespace}/pods")
    }

    pub fn events(namespace: &str) -> String {
        format!("/api/v1/namespaces/{namespace}/events")
    }

    pub fn claims(namespace: &str) -> String {
        format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims")
    }

    pub fn pod(key: &Key) -> String {
        format!("/api/v1/namespaces/{}/pods/{}", key.namespace, key.name)
    }

    pub fn workloads(kind: WorkloadKind, namespace: &str) -> String {
        format!("/apis/{}/v1/namespaces/{namespace}/{}", kind.group(), kind.plural())
    }

    pub fn workload(kind: WorkloadKind, key: &Key) -> String {
        format!("{}/{}", workloads(kind, &key.namespace), key.name)
    }

    pub fn quota(key: &Key) -> String {
        format!("/api/v1/namespaces/{}/resourcequotas/{}", key.namespace, key.name)
    }

    pub fn budget(key: &Key) -> String {
        format!("/apis/policy/v1/namespaces/{}/poddisruptionbudgets/{}", key.namespace, key.name)
    }
}
