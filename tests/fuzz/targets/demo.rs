//! Fuzz target: the demo's API server, with arbitrary paths, parameters, selectors, patches and bodies.

use std::{str, time::Duration};

use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use kordon_clock::Clock;
use kordon_demo::api::{Api, ApiOptions, kinds::KINDS};
use kordon_time::Timestamp;
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tokio::{runtime::Builder, time::timeout};

/// Separator of requests in an input: ASCII's record separator.
const SEPARATOR: u8 = 0x1E;

/// Maximum number of requests in an input.
const MOST: usize = 20;

/// Input: requests. Each request is a line with method, path, media type of the body and accepted type, followed by the
/// body. Every request is answered. The response to a refused request is a Status with the response's code. Afterwards
/// all objects can still be listed.
pub fn requests(data: &[u8]) {
    // With a paused clock, watches end at once.
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime");
    runtime.block_on(async {
        let client = server().client();
        for request in data.split(|byte| *byte == SEPARATOR).take(MOST).filter_map(parse) {
            let (status, body) = answer(&client, request).await;
            let answered = serde_json::from_slice::<Value>(&body).unwrap_or_default();
            let is_explained = answered["kind"] == "Status" && answered["code"] == status.as_u16();
            assert!(is_explained || !is_error(status), "{status}: {}", String::from_utf8_lossy(&body));
        }
        // Access reviews are not stored, so they cannot be listed.
        for kind in KINDS.iter().filter(|kind| kind.group != "authorization.k8s.io") {
            let group =
                if kind.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", kind.group) };
            let path = format!("{group}/{}/{}", kind.version, kind.plural);
            for accept in ["application/json", "application/json;as=Table;v=v1;g=meta.k8s.io"] {
                let request = Request::get(&path).header(header::ACCEPT, accept).body(Body::empty());
                let (status, body) = answer(&client, request.expect("a path")).await;
                let list = serde_json::from_slice::<Value>(&body);
                assert!(status == StatusCode::OK && list.is_ok(), "{path}: {status}, {list:?}");
            }
        }
    });
}

fn is_error(status: StatusCode) -> bool {
    status.is_client_error() || status.is_server_error()
}

/// Parses a request of an input; `None` if it is not valid HTTP.
fn parse(text: &[u8]) -> Option<Request<Body>> {
    let end = text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len());
    let body = text.get(end + 1..).unwrap_or_default();
    let mut words = str::from_utf8(&text[..end]).ok()?.split(' ');
    let request = Request::builder().method(words.next()?.parse::<Method>().ok()?).uri(words.next()?);
    let media = words.next().unwrap_or("application/json");
    let accept = words.next().unwrap_or("application/json");
    let request = request.header(header::CONTENT_TYPE, media).header(header::ACCEPT, accept);
    request.body(Body::from(Bytes::copy_from_slice(body))).ok()
}

/// Returns the whole response. For a watch that stays open, returns what arrives within ten minutes of paused time.
async fn answer(client: &Client, request: Request<Body>) -> (StatusCode, Bytes) {
    let answer = client.send(request).await.expect("the server runs");
    let (status, mut body) = (answer.status(), answer.into_body());
    let mut read = Vec::new();
    while let Ok(Some(frame)) = timeout(Duration::from_secs(600), body.frame()).await {
        let data = frame.expect("the connection lasts").into_data();
        read.extend(data.unwrap_or_default());
    }
    (status, read.into())
}

/// Creates a server with objects of the kinds that have special rules.
fn server() -> Api {
    let api = Api::new(Clock::new(Timestamp::from_secs(1_800_000_000), 1.0), ApiOptions::default());
    let labels = json!({"app": "web"});
    let template =
        json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    api.load(
        "nodes",
        json!({"metadata": {"name": "n1", "labels": {"zone": "a"}},
        "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
    );
    api.load(
        "pods",
        json!({"metadata": {"name": "p", "labels": labels, "finalizers": ["a/b"]},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}),
    );
    api.load(
        "pods",
        json!({"metadata": {"name": "q", "labels": labels},
        "spec": {"containers": [{"name": "c", "image": "i"}]}, "status": {"phase": "Pending"}}),
    );
    api.load(
        "poddisruptionbudgets",
        json!({"metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
        "status": {"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2}}),
    );
    api.load(
        "deployments",
        json!({"metadata": {"name": "d"},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}}),
    );
    api.load(
        "resourcequotas",
        json!({"metadata": {"name": "r"}, "spec": {"hard": {"pods": "3", "cpu": "2"}},
        "status": {"hard": {"pods": "3", "cpu": "2"}, "used": {"pods": "2", "cpu": "0"}}}),
    );
    api
}
