//! Requests that the API server forwards. Requests to a node's proxy (`nodes/NAME/proxy/…`) go to the kubelet, and
//! requests for metrics.k8s.io go to the metrics server.

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::{
    Api,
    kinds::{self, METRICS_GROUP, Subresource},
    object::ObjectKey,
    refusal::Refusal,
    reply::{self, Reply},
    request::{ApiRequest, Resource, Verb},
    selector::Selection,
};
use kordon_time::Span;

/// A request that is forwarded to another server.
#[derive(Debug)]
pub struct ForwardedRequest {
    pub target: ForwardTarget,
    /// Channel for the body of the response, as JSON.
    pub reply: oneshot::Sender<Result<Value, ForwardFailure>>,
}

/// The target of a forwarded request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForwardTarget {
    /// A path of a node's kubelet, such as `/stats/summary`.
    Kubelet { node: String, path: String },
    /// The NodeMetrics of these nodes. Nodes without metrics are left out.
    NodeMetrics(Vec<String>),
    /// The PodMetrics of these pods, given by namespace and name. Pods without metrics are left out.
    PodMetrics(Vec<(String, String)>),
}

/// The reason why a forwarded request gets no body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardFailure {
    /// The server to which the request is forwarded has nothing at this path.
    NoSuchPath,
    /// Nothing answers at the address to which the request is forwarded.
    Unreachable,
}

/// Time after which the network reports that there is no route to a machine.
const NO_ROUTE_AFTER: Span = Span::from_secs(3);

/// Whether requests for this resource are forwarded.
pub fn is_forwarded(resource: &Resource) -> bool {
    resource.kind.group == METRICS_GROUP || resource.subresource == Some(Subresource::Proxy)
}

impl Api {
    /// Sets the server that answers for kubelets and metrics. Until a server is set, no kubelet is reachable, and
    /// metrics.k8s.io does not exist. Only the first call has an effect.
    pub fn forward_to(&self, server: mpsc::Sender<ForwardedRequest>) {
        // A later call fails, and the server that is already set stays.
        let _ = self.inner.forward.set(server);
    }

    /// Handles a request that is forwarded to a kubelet or to the metrics server.
    pub(super) async fn forward(&self, request: &ApiRequest, resource: &Resource) -> Result<Reply, Refusal> {
        match (request.verb, resource.subresource) {
            (Verb::Get, Some(Subresource::Proxy)) => self.proxy(request, resource).await,
            _ if self.inner.forward.get().is_none() => Err(Refusal::no_such_path()),
            (Verb::Get, None) => self.metrics_of(resource).await,
            (Verb::List, None) => self.list_metrics(request, resource).await,
            _ => Err(Refusal::no_such_method()),
        }
    }

    /// Forwards a GET to a kubelet.
    async fn proxy(&self, request: &ApiRequest, resource: &Resource) -> Result<Reply, Refusal> {
        let key = resource.key()?;
        let node = kubelet_node(&key.name);
        let path = request.path.split_once("/proxy").map_or("", |(_, path)| path).to_owned();
        let address = {
            let state = self.state();
            let object = state.store.object(resource.kind, &ObjectKey::new("", node));
            internal_address(&object.ok_or_else(|| Refusal::not_found(resource.kind, node))?.value())
        };
        match self.send(ForwardTarget::Kubelet { node: node.to_owned(), path }).await {
            Ok(body) => Ok(reply::json(200, &body)),
            Err(ForwardFailure::NoSuchPath) => {
                Ok(reply::bytes(404, "text/plain; charset=utf-8", "404 page not found\n".into()))
            }
            Err(ForwardFailure::Unreachable) => {
                self.inner.clock.sleep(NO_ROUTE_AFTER).await;
                let dialled = format!("dial tcp {address}:10250: connect: no route to host");
                let message = format!("error trying to reach service: {dialled}");
                Err(Refusal::new(503, "ServiceUnavailable", message))
            }
        }
    }

    async fn metrics_of(&self, resource: &Resource) -> Result<Reply, Refusal> {
        let key = resource.key()?;
        let found = self.metrics(resource, vec![key.clone()]).await?;
        let first = found.as_array().and_then(|items| items.first());
        let item = first.ok_or_else(|| Refusal::not_found(resource.kind, &key.name))?;
        Ok(reply::json(200, item))
    }

    async fn list_metrics(&self, request: &ApiRequest, resource: &Resource) -> Result<Reply, Refusal> {
        let kind = resource.kind;
        let core = kinds::named(kind.plural);
        let (labels, fields) = (request.query.text("labelSelector"), request.query.text("fieldSelector"));
        let selection = Selection::parse(core, &resource.namespace, labels, fields)?;
        let keys = self.state().store.objects_of(core).select(&selection).map(|o| o.key.clone()).collect();
        let items = self.metrics(resource, keys).await?;
        let list = json!({"kind": format!("{}List", kind.name), "apiVersion": kind.api_version(),
            "metadata": {}, "items": items});
        Ok(reply::json(200, &list))
    }

    /// Requests the metrics of the given nodes or pods, and returns them as a list.
    async fn metrics(&self, resource: &Resource, keys: Vec<ObjectKey>) -> Result<Value, Refusal> {
        let target = if resource.kind.is_namespaced() {
            let pair = |key: ObjectKey| (key.namespace.to_string(), key.name.to_string());
            ForwardTarget::PodMetrics(keys.into_iter().map(pair).collect())
        } else {
            ForwardTarget::NodeMetrics(keys.into_iter().map(|key| key.name.to_string()).collect())
        };
        self.send(target).await.map_err(|_| {
            let message = "the server is currently unable to handle the request";
            Refusal::new(503, "ServiceUnavailable", message)
        })
    }

    async fn send(&self, target: ForwardTarget) -> Result<Value, ForwardFailure> {
        let server = self.inner.forward.get().ok_or(ForwardFailure::Unreachable)?;
        let (reply, answer) = oneshot::channel();
        // Sending fails if the server that answers forwarded requests has stopped. It then counts as unreachable.
        server.send(ForwardedRequest { target, reply }).await.map_err(|_| ForwardFailure::Unreachable)?;
        answer.await.unwrap_or(Err(ForwardFailure::Unreachable))
    }
}

/// The node in the name of a proxy request: `NODE`, `NODE:PORT` or `SCHEME:NODE:PORT`.
fn kubelet_node(name: &str) -> &str {
    match name.split(':').collect::<Vec<_>>().as_slice() {
        [node] | [node, _] | [_, node, _] => node,
        _ => name,
    }
}

fn internal_address(node: &Value) -> String {
    let addresses = node["status"]["addresses"].as_array().into_iter().flatten();
    let mut internal = addresses.filter(|address| address["type"] == "InternalIP");
    let address = internal.next().and_then(|address| address["address"].as_str());
    address.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxied_kubelet_is_named_with_or_without_scheme_and_port() {
        for name in ["n1", "n1:10250", "https:n1:10250", "https:n1:"] {
            assert_eq!(kubelet_node(name), "n1", "{name}");
        }
    }
}
