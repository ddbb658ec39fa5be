//! An API server in front of another one. It adds hostile text to every string of every object.

use std::io;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Request, Response};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::TokioIo;
use kordon_core::cluster::quantity;
use kordon_time::Timestamp;
use kube::{Client, client::Body};
use serde_json::{Map, Value, json};
use tokio::{net::TcpListener, task::JoinSet};

use crate::common::harmless::HOSTILE;

/// Fields with a fixed vocabulary. Unknown values in them are read as absent or invalid, and never shown.
const WORDS: [&str; 20] = [
    "apiVersion",
    "kind",
    "type",
    "status",
    "effect",
    "operator",
    "phase",
    "resourceVersion",
    "continue",
    "whenUnsatisfiable",
    "restartPolicy",
    "volumeBindingMode",
    "unhealthyPodEvictionPolicy",
    "preemptionPolicy",
    "protocol",
    "major",
    "minor",
    "gitVersion",
    "key",
    "topologyKey",
];

/// Names that the program looks up.
const NAMES: [&str; 3] = ["kube-controller-manager", "kube-system", "kube-node-lease"];

/// Serves on loopback until the runtime ends. Returns the address.
pub async fn start(honest: Client) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((connection, _)) = listener.accept().await {
            let honest = honest.clone();
            let service = hyper::service::service_fn(move |request| answer(honest.clone(), request));
            connections.spawn(
                hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(connection), service),
            );
        }
    });
    format!("http://{address}")
}

/// Appends the hostile text to a text.
pub fn lied(text: &str) -> String {
    format!("{text}{HOSTILE}")
}

async fn answer(
    honest: Client,
    request: Request<Incoming>,
) -> io::Result<Response<UnsyncBoxBody<Bytes, kube::Error>>> {
    let (mut head, body) = request.into_parts();
    let is_watch = head.uri.query().is_some_and(|query| query.contains("watch=true"));
    head.uri = original(&head.uri.to_string()).parse().expect("it was an address");
    head.headers.remove(http::header::ACCEPT_ENCODING);
    // The server behind this one is asked for JSON, which every client accepts.
    head.headers.insert(http::header::ACCEPT, http::HeaderValue::from_static("application/json"));
    head.headers.remove(http::header::CONTENT_LENGTH);
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let body = String::from_utf8_lossy(&body).replace(&escaped(), "");
    let request = Request::from_parts(head, Body::from(body.into_bytes()));
    let (mut head, body) = honest.send(request).await.map_err(io::Error::other)?.into_parts();
    head.headers.remove(http::header::CONTENT_LENGTH);
    let body = if is_watch && head.status.is_success() {
        lying_lines(body)
    } else {
        let whole = body.collect().await.map_err(io::Error::other)?.to_bytes();
        Full::new(lying(&whole)).map_err(|never| match never {}).boxed_unsync()
    };
    Ok(Response::from_parts(head, body))
}

/// Removes the hostile text from an address. Clients have percent-encoded the text there.
fn original(uri: &str) -> String {
    let encoded: String = HOSTILE
        .bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect();
    uri.replace(&encoded, "")
}

/// Returns the hostile text as JSON encodes it.
fn escaped() -> String {
    let quoted = json!(HOSTILE).to_string();
    quoted.trim_matches('"').to_owned()
}

/// Adds hostile text to each line of a watch, and passes the line on as soon as it is complete.
fn lying_lines(body: Body) -> UnsyncBoxBody<Bytes, kube::Error> {
    let pieces = stream::unfold((body, Vec::new()), |(mut body, mut partial): (Body, Vec<u8>)| async move {
        loop {
            if let Some(end) = partial.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = partial.drain(..=end).collect();
                let mut lie = lying(&line).to_vec();
                lie.push(b'\n');
                return Some((Ok(Frame::data(Bytes::from(lie))), (body, partial)));
            }
            match body.frame().await? {
                Ok(frame) => partial.extend(frame.into_data().unwrap_or_default()),
                Err(error) => return Some((Err(error), (body, partial))),
            }
        }
    });
    StreamBody::new(pieces.boxed()).boxed_unsync()
}

/// Adds hostile text to the values in a JSON body, or to the end of any other body.
fn lying(body: &[u8]) -> Bytes {
    match serde_json::from_slice::<Value>(body) {
        Ok(mut value) => {
            spoil("", &mut value);
            value.to_string().into()
        }
        Err(_) => [body, HOSTILE.as_bytes()].concat().into(),
    }
}

/// Adds hostile text to the value of a field and to everything inside it.
fn spoil(field: &str, value: &mut Value) {
    match value {
        Value::String(text) => {
            let is_typed = Timestamp::parse(text).is_some() || quantity::parse_milli(text).is_some();
            if !is_typed
                && !WORDS.contains(&field)
                && !NAMES.contains(&text.as_str())
                && !text.starts_with('{')
            {
                text.push_str(HOSTILE);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| spoil(field, value)),
        Value::Object(fields) => {
            fields.iter_mut().for_each(|(field, value)| spoil(field, value));
            if fields.get("kind").is_some_and(|kind| kind == "Node") || is_node(fields) {
                spoil_node(fields);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Whether an object is a node. Items in a list of nodes have no kind.
fn is_node(fields: &Map<String, Value>) -> bool {
    fields.get("status").is_some_and(|status| status.get("nodeInfo").is_some())
}

/// Adds what the demo's nodes do not have: taints, labels and annotations with hostile names and values.
fn spoil_node(node: &mut Map<String, Value>) {
    let evil = lied("evil");
    let at = "2026-01-01T00:00:00Z";
    let note =
        json!({"by": evil, "why": evil, "at": at, "until": "2036-01-01T00:00:00Z", "operation": "drain-1"});
    let claim = json!({"by": evil, "operation": "drain-1", "renewed": at});
    let metadata = node.entry("metadata").or_insert_with(|| json!({}));
    metadata["annotations"]["kordon.dev/cordon"] = note.to_string().into();
    metadata["annotations"]["kordon.dev/drain"] = claim.to_string().into();
    metadata["labels"][&evil] = evil.clone().into();
    let spec = node.entry("spec").or_insert_with(|| json!({}));
    let taint = json!({"key": evil, "value": evil, "effect": "PreferNoSchedule"});
    match spec["taints"].as_array_mut() {
        Some(taints) => taints.push(taint),
        None => spec["taints"] = json!([taint]),
    }
    if let Some(conditions) = node.get_mut("status").and_then(|status| status["conditions"].as_array_mut()) {
        conditions.push(json!({"type": evil, "status": "True", "reason": evil, "message": evil,
            "lastTransitionTime": at, "lastHeartbeatTime": at}));
    }
}
