//! Sends the requests of an operation. Repeats only a request that the server forbids, since the server may be
//! starting. Distinguishes outcomes by cause, not only by HTTP code.
//!
//! Requests are built without kube's functions, for two reasons. kube's eviction drops its options, including a dry run
//! (docs/upstream/operator-actions.md#3.9). And an overloaded server sends Retry-After only in a header.

use std::{collections::BTreeMap, time::Duration};

use futures::{StreamExt, stream};
use http::{Request, StatusCode, header::RETRY_AFTER};
use http_body_util::BodyExt;
use kube::{Client, client::Body, core::Status};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    autoscalers, decode,
    error::{status_words, words},
};
use kordon_core::{
    cluster::{Key, NodeName, Uid, Version},
    operation::{DeploymentScale, RequestKind, RequestOutcome},
    plan::{Call, autoscalers_path, node_path, scale_path},
};
use kordon_time::Span;

/// Whether a write is a server-side dry run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DryRun {
    Off,
    /// The server checks the write but does not apply it (`dryRun=All`).
    On,
}

/// Timeout of a response. It is longer than the server's own limit for a request.
const LONGEST: Duration = Duration::from_secs(40);

/// Maximum number of nodes that are read at a time.
const READS: usize = 8;

/// Number of pods in one page when the pods of a node are listed.
const PAGE: u32 = 500;

/// Number of times that a refused request is sent again while the server also refuses to say whether it is ready.
const REPEATS: usize = 5;

/// Pause before a refused request is sent again: time for a server that has just started to read its roles.
const PAUSE: Duration = Duration::from_secs(2);

/// Sends one request. A server that has just started refuses everything until it has read its roles. A refusal for a
/// missing permission is therefore final only if the server then reports that it is ready, and refuses the request
/// again. If the server also refuses to report its readiness, the request is repeated for ten more seconds.
pub async fn send_request(client: &Client, task: &RequestKind, dry_run: DryRun) -> RequestOutcome {
    let mut outcome = send_once(client, task, dry_run).await;
    for _ in 0..REPEATS {
        let RequestOutcome::Forbidden(text) = outcome else { break };
        match readiness(client).await {
            Readiness::Ready => return send_once(client, task, dry_run).await,
            Readiness::NotReady => {
                return RequestOutcome::Unreachable(format!("the server is not ready: {text}"));
            }
            Readiness::Refused => {
                tokio::time::sleep(PAUSE).await;
                outcome = send_once(client, task, dry_run).await;
            }
        }
    }
    outcome
}

/// Readiness of a server, as `/readyz` reports it.
enum Readiness {
    Ready,
    NotReady,
    /// The server refused the request to `/readyz`: the user has no permission, or the server has not read its roles
    /// yet.
    Refused,
}

/// Asks a server whether it is ready. Servers without `/readyz` count as ready.
async fn readiness(client: &Client) -> Readiness {
    let answer = timeout(LONGEST, client.send(read("/readyz".into()).map(Body::from))).await;
    match answer.map(|answer| answer.map(|answer| answer.status())) {
        Ok(Ok(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)) => Readiness::Refused,
        Ok(Ok(status)) if !status.is_server_error() => Readiness::Ready,
        Ok(_) | Err(_) => Readiness::NotReady,
    }
}

async fn send_once(client: &Client, task: &RequestKind, dry_run: DryRun) -> RequestOutcome {
    let done = async {
        match task {
            RequestKind::ReadNode { node } => read_node(client, node).await,
            RequestKind::ListPods { node } => list_pods(client, node).await,
            RequestKind::ReadScale { deployment } => read_scale(client, deployment).await,
            RequestKind::Patch(_) | RequestKind::Write(_) => {
                let call = task.call().expect("a write is a call");
                send(client, write(&call, dry_run)).await.map(|_| RequestOutcome::Done)
            }
        }
    };
    match timeout(LONGEST, done).await {
        Ok(Ok(outcome) | Err(outcome)) => outcome,
        Err(_) => RequestOutcome::NoResponse,
    }
}

/// Builds the request of a write. For an eviction or deletion, the option `dryRun` is in the body, because the server
/// ignores the options in the query if the body has options.
pub fn write(call: &Call, dry_run: DryRun) -> Request<Vec<u8>> {
    let (mut path, mut body) = (call.path.clone(), call.body.clone());
    let mut query = Vec::new();
    if call.method == "PATCH" {
        query.push("fieldManager=kordon");
    }
    if dry_run == DryRun::On {
        match (call.method, call.body.get("deleteOptions")) {
            ("POST", Some(_)) => body["deleteOptions"]["dryRun"] = json!(["All"]),
            ("DELETE", _) => body["dryRun"] = json!(["All"]),
            _ => query.push("dryRun=All"),
        }
    }
    if !query.is_empty() {
        path = format!("{path}?{}", query.join("&"));
    }
    Request::builder()
        .method(call.method)
        .uri(path)
        .header(http::header::CONTENT_TYPE, call.content_type)
        .body(body.to_string().into_bytes())
        .expect("names in a path are encoded")
}

fn read(path: String) -> Request<Vec<u8>> {
    Request::get(path).body(Vec::new()).expect("names in a path are encoded")
}

/// Reads whole Node objects, including the fields that kordon does not keep. For a node that cannot be read, returns
/// the reason instead.
pub async fn read_whole_nodes(
    client: &Client,
    names: impl IntoIterator<Item = NodeName>,
) -> BTreeMap<NodeName, Result<Value, String>> {
    let read = async |name: NodeName| {
        let node = read_whole_node(client, &name).await.map_err(|error| error.to_string());
        (name, node)
    };
    stream::iter(names).map(read).buffered(READS).collect().await
}

async fn read_whole_node(client: &Client, node: &NodeName) -> Result<Value, RequestOutcome> {
    let answer = timeout(LONGEST, send(client, read(node_path(node))));
    let answer =
        answer.await.map_err(|_| RequestOutcome::Unreachable("the server does not answer".into()))??;
    serde_json::from_slice(&answer).map_err(|_| no_object())
}

async fn read_node(client: &Client, node: &NodeName) -> Result<RequestOutcome, RequestOutcome> {
    let answer = send(client, read(node_path(node))).await?;
    let node = decode::node::read(&answer).ok_or_else(no_object)?;
    Ok(RequestOutcome::Node(Box::new(node)))
}

/// Reads the scale of a Deployment, and the autoscalers of its namespace.
async fn read_scale(client: &Client, deployment: &Key) -> Result<RequestOutcome, RequestOutcome> {
    let answer = send(client, read(scale_path(deployment))).await?;
    let scale: Scale = serde_json::from_slice(&answer).map_err(|_| no_object())?;
    let answer = send(client, read(autoscalers_path(Some(&deployment.namespace)))).await?;
    let all = autoscalers::parse(&answer).map_err(RequestOutcome::Failed)?;
    let over = all.iter().find(|autoscaler| autoscaler.scales(deployment));
    Ok(RequestOutcome::Scale(DeploymentScale {
        uid: scale.metadata.uid.as_str().into(),
        version: Version::parse(&scale.metadata.version),
        replicas: scale.spec.replicas,
        autoscaler: over.map(|autoscaler| autoscaler.key.name.clone()),
    }))
}

/// An autoscaling/v1 Scale.
#[derive(Deserialize)]
struct Scale {
    metadata: Meta,
    #[serde(default)]
    spec: ScaleSpec,
}

/// The spec of a Scale. The server leaves `replicas` out if it is zero.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ScaleSpec {
    replicas: i32,
}

/// Lists the pods of a node. The request has no resourceVersion, so the server reads its store instead of its cache.
async fn list_pods(client: &Client, node: &NodeName) -> Result<RequestOutcome, RequestOutcome> {
    let selector: String =
        form_urlencoded::byte_serialize(format!("spec.nodeName={node}").as_bytes()).collect();
    let (mut pods, mut next) = (Vec::new(), String::new());
    loop {
        let path = format!("/api/v1/pods?fieldSelector={selector}&limit={PAGE}{next}");
        let answer = send(client, read(path)).await?;
        let list: PodList = serde_json::from_slice(&answer).map_err(|_| no_object())?;
        pods.extend(list.items.iter().map(|item| {
            let Meta { namespace, name, uid, .. } = &item.metadata;
            (Key::new(namespace, name), Uid::from(&**uid))
        }));
        match list.metadata.next {
            Some(token) if !token.is_empty() => {
                let token: String = form_urlencoded::byte_serialize(token.as_bytes()).collect();
                next = format!("&continue={token}");
            }
            Some(_) | None => return Ok(RequestOutcome::Pods(pods)),
        }
    }
}

#[derive(Deserialize)]
struct PodList {
    metadata: Meta,
    #[serde(default)]
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    metadata: Meta,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Meta {
    name: String,
    namespace: String,
    uid: String,
    #[serde(rename = "resourceVersion")]
    version: String,
    #[serde(rename = "continue")]
    next: Option<String>,
}

fn no_object() -> RequestOutcome {
    RequestOutcome::Failed("the response is not one of the Kubernetes API".into())
}

async fn send(client: &Client, request: Request<Vec<u8>>) -> Result<Vec<u8>, RequestOutcome> {
    let unreachable = |error: &kube::Error| RequestOutcome::Unreachable(words(error));
    let answer = client.send(request.map(Body::from)).await.map_err(|error| unreachable(&error))?;
    let code = answer.status();
    let header = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let body = answer.into_body().collect().await.map_err(|error| unreachable(&error))?.to_bytes();
    if code.is_success() {
        return Ok(body.to_vec());
    }
    let status: Status = serde_json::from_slice(&body).unwrap_or_else(|_| {
        Status::failure(String::from_utf8_lossy(&body).trim(), "").with_code(code.as_u16())
    });
    Err(outcome(&status, code.as_u16(), header.map(Span::from_secs)))
}

/// Converts an error response to the outcome of its request (docs/upstream/operator-actions.md#4.2).
fn outcome(status: &Status, code: u16, retry_after: Option<Span>) -> RequestOutcome {
    let text = status_words(status);
    let details = status.details.as_ref();
    let cause = |reason: &str| {
        let mut causes = details.into_iter().flat_map(|details| &details.causes);
        causes.find(|cause| cause.reason == reason).map(|cause| super::error::plain(&cause.message))
    };
    let asked = details.map(|details| i64::from(details.retry_after_seconds)).filter(|secs| *secs > 0);
    let retry_after = asked.map(Span::from_secs).or(retry_after);
    match code {
        404 => RequestOutcome::Gone,
        409 if names_another_uid(&status.message) => RequestOutcome::OtherObject,
        422 if status.message.contains("metadata.uid") => RequestOutcome::OtherObject,
        409 => RequestOutcome::Conflict,
        429 => match cause("DisruptionBudget") {
            Some(text) if retry_after.is_some() || text.contains("still being processed") => {
                RequestOutcome::BudgetStale { retry_after, text }
            }
            Some(text) => RequestOutcome::BudgetExhausted(text),
            None => RequestOutcome::Overloaded { retry_after },
        },
        403 if cause("NamespaceTerminating").is_some() => RequestOutcome::NamespaceTerminating,
        // A webhook may allow the request later, so the request is attempted again, a limited number of times.
        _ if status.message.contains("admission webhook") => RequestOutcome::Failed(text),
        403 => RequestOutcome::Forbidden(text),
        500 if status.message.contains("more than one PodDisruptionBudget") => RequestOutcome::Refused(text),
        401 | 500.. => RequestOutcome::Failed(text),
        _ => RequestOutcome::Refused(text),
    }
}

/// Whether the message says that a conflict is about the uid, not the version. The store and the eviction subresource
/// word this message differently.
fn names_another_uid(message: &str) -> bool {
    message.contains("UID in precondition") || message.contains("UID in the precondition")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http::Response;
    use kordon_core::plan::PlanStep;

    use super::*;

    fn call(step: PlanStep) -> Call {
        step.call()
    }

    fn sent(step: PlanStep, dry_run: DryRun) -> (String, Value) {
        let request = write(&call(step), dry_run);
        let body = serde_json::from_slice(request.body()).expect("JSON");
        (format!("{} {}", request.method(), request.uri()), body)
    }

    #[test]
    fn a_dry_run_is_requested_where_the_server_reads_it() {
        let (pod, uid, grace) = (Key::new("web", "p"), Uid::from("u"), Some(Span::from_secs(3)));
        let evict = PlanStep::Evict { pod: pod.clone(), uid: uid.clone(), grace };
        let (line, body) = sent(evict.clone(), DryRun::On);
        assert_eq!(line, "POST /api/v1/namespaces/web/pods/p/eviction");
        let options = json!({"dryRun": ["All"], "gracePeriodSeconds": 3, "preconditions": {"uid": "u"}});
        assert_eq!(body["deleteOptions"], options);
        assert_eq!(sent(evict, DryRun::Off).1["deleteOptions"].get("dryRun"), None);
        let (line, body) = sent(PlanStep::Delete { pod, uid: uid.clone(), grace: None }, DryRun::On);
        assert_eq!(line, "DELETE /api/v1/namespaces/web/pods/p");
        assert_eq!((&body["dryRun"], &body["preconditions"]["uid"]), (&json!(["All"]), &json!("u")));
        let cordon = PlanStep::Cordon { node: "n".into(), uid, on: true };
        assert_eq!(sent(cordon, DryRun::On).0, "PATCH /api/v1/nodes/n?fieldManager=kordon&dryRun=All");
    }

    /// Sends a cordon to a server that becomes ready after `ready_from` requests. Until then, the server refuses every
    /// write, and answers `/readyz` with the status `unready`.
    async fn cordon(ready_from: usize, unready: u16, is_allowed: bool) -> RequestOutcome {
        let requests = AtomicUsize::new(0);
        let service = tower::service_fn(move |request: Request<Body>| {
            let is_ready = requests.fetch_add(1, Ordering::Relaxed) >= ready_from;
            let code = match request.uri().path() {
                "/readyz" if is_ready => 200,
                "/readyz" => unready,
                _ if is_ready && is_allowed => 200,
                _ => 403,
            };
            let answer = Response::builder().status(code).body(Body::empty());
            async { answer }
        });
        let cordon = PlanStep::Cordon { node: "n".into(), uid: Uid::from("u"), on: true };
        send_request(&Client::new(service, "default"), &RequestKind::Write(cordon), DryRun::Off).await
    }

    #[tokio::test]
    async fn a_refusal_is_final_only_if_a_ready_server_repeats_it() {
        assert_eq!(cordon(0, 500, true).await, RequestOutcome::Done);
        assert_eq!(cordon(1, 500, true).await, RequestOutcome::Done);
        let early = cordon(2, 500, true).await;
        assert!(matches!(early, RequestOutcome::Unreachable(_)), "{early:?}");
        let refused = cordon(1, 500, false).await;
        assert!(matches!(refused, RequestOutcome::Forbidden(_)), "{refused:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_also_refuses_to_say_that_it_is_ready_is_asked_for_a_while() {
        assert_eq!(cordon(4, 403, true).await, RequestOutcome::Done);
        let began = tokio::time::Instant::now();
        let refused = cordon(usize::MAX, 403, false).await;
        assert!(matches!(refused, RequestOutcome::Forbidden(_)), "{refused:?}");
        assert_eq!(began.elapsed(), Duration::from_secs(10));
    }

    #[test]
    fn error_responses_are_distinguished_by_their_cause() {
        let status = |value: Value| serde_json::from_value::<Status>(value).expect("a status");
        let of = |code: u16, details: Value, message: &str| {
            let value = json!({"code": code, "message": message, "reason": "", "details": details});
            outcome(&status(value), code, None)
        };
        let budget = |text: &str| json!({"causes": [{"reason": "DisruptionBudget", "message": text}]});
        let text = "The disruption budget b needs 2 healthy pods and has 2 currently";
        assert_eq!(of(429, budget(text), "Cannot evict"), RequestOutcome::BudgetExhausted(text.into()));
        let mut stale = budget("The disruption budget b is still being processed by the server.");
        stale["retryAfterSeconds"] = json!(10);
        let ten = Some(Span::from_secs(10));
        assert!(
            matches!(of(429, stale, "Cannot evict"), RequestOutcome::BudgetStale { retry_after, .. } if retry_after == ten)
        );
        assert_eq!(of(429, json!({}), "Too many requests"), RequestOutcome::Overloaded { retry_after: None });
        let message = "Operation cannot be fulfilled on pods \"p\": the UID in the precondition (a) does not match \
                       the UID in record (b)";
        assert_eq!(of(409, json!({}), message), RequestOutcome::OtherObject);
        let message = "the object has been modified; please apply your changes to the latest version";
        assert_eq!(of(409, json!({}), message), RequestOutcome::Conflict);
        let message = "Precondition failed: UID in precondition: a, UID in object meta: b";
        assert_eq!(of(409, json!({}), message), RequestOutcome::OtherObject);
        let causes = json!({"causes": [{"reason": "NamespaceTerminating", "message": "m", "field": "f"}]});
        assert_eq!(of(403, causes, "unable to create"), RequestOutcome::NamespaceTerminating);
        assert!(matches!(of(403, json!({}), "no"), RequestOutcome::Forbidden(_)));
        let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
        assert!(matches!(of(500, json!({}), message), RequestOutcome::Refused(_)));
        assert!(matches!(of(503, json!({}), ""), RequestOutcome::Failed(_)));
        assert!(matches!(
            of(400, json!({}), "admission webhook \"w\" denied the request"),
            RequestOutcome::Failed(_)
        ));
    }
}
