//! Responses: complete bodies and streams, with the headers of a real server.

use std::io;

use bytes::{Bytes, BytesMut};
use futures::{Stream, TryStreamExt};
use http::{HeaderValue, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use serde_json::{Value, json};

use kordon_time::Timestamp;

use super::{protobuf, refusal::Refusal, request::View};

/// A response. Its body fails if the connection is lost.
pub type Reply = Response<UnsyncBoxBody<Bytes, io::Error>>;

/// Chunk size of long responses. Large enough for few writes, and small compared with a client's memory.
pub const CHUNK: usize = 64 * 1024;

pub fn json(code: u16, value: &Value) -> Reply {
    bytes(code, "application/json", serde_json::to_vec(value).expect("a Value has string keys only").into())
}

pub fn bytes(code: u16, media: &'static str, body: Bytes) -> Reply {
    let body = Full::new(body).map_err(|never| match never {}).boxed_unsync();
    with_headers(Response::new(body), code, media)
}

pub fn stream(media: &'static str, body: impl Stream<Item = io::Result<Bytes>> + Send + 'static) -> Reply {
    let body = StreamBody::new(body.map_ok(Frame::data));
    with_headers(Response::new(body.boxed_unsync()), 200, media)
}

/// Returns a `Status` object that reports success. If there was a write, the object has its resourceVersion.
pub fn success(code: u16, version: Option<u64>) -> Reply {
    let metadata =
        version.map_or_else(|| json!({}), |version| json!({"resourceVersion": version.to_string()}));
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": metadata, "status": "Success", "code": code});
    json(code, &status)
}

pub fn refusal(refusal: &Refusal, view: View) -> Reply {
    let status = refusal.to_value();
    let encoded = if view == View::Protobuf { protobuf::object(&status) } else { None };
    let mut reply = match encoded {
        Some(body) => bytes(refusal.code, protobuf::MEDIA, body),
        None => json(refusal.code, &status),
    };
    if let Some(secs) = refusal.retry_after {
        reply.headers_mut().insert(header::RETRY_AFTER, secs.into());
    }
    reply
}

/// Sets the Date header from the API's clock. Clients measure the difference of the clocks with this header.
pub fn date(reply: &mut Reply, now: Timestamp) {
    let date = now.utc().format("%a, %d %b %Y %H:%M:%S GMT").to_string();
    if let Ok(date) = HeaderValue::try_from(date) {
        reply.headers_mut().insert(header::DATE, date);
    }
}

/// Joins small pieces into chunks, lazily.
pub fn chunks(mut pieces: impl Iterator<Item = Bytes>) -> impl Iterator<Item = Bytes> {
    std::iter::from_fn(move || {
        let mut chunk = BytesMut::new();
        while chunk.len() < CHUNK {
            match pieces.next() {
                Some(piece) => chunk.extend_from_slice(&piece),
                None if chunk.is_empty() => return None,
                None => break,
            }
        }
        Some(chunk.freeze())
    })
}

fn with_headers(mut reply: Reply, code: u16, media: &'static str) -> Reply {
    *reply.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = reply.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    reply
}
