//! One request and its answer: status, headers, and a body that comes piece by piece.

use std::time::Duration;

use bytes::Bytes;
use http::{
    HeaderMap, Request, StatusCode,
    header::{ACCEPT, ACCEPT_ENCODING, RETRY_AFTER},
};
use http_body_util::BodyExt;
use kube::{Client, client::Body};
use tokio::time::timeout;

use crate::k8s::{
    decode::{self, StatusError},
    error,
};

/// Why a request or a watch came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchError {
    /// Not allowed, or not known to the server; in its words.
    Forbidden(String),
    /// The server does not take these parameters.
    Invalid(String),
    /// The version to go on from is too old (410): everything has to be listed again.
    Expired,
    /// The server has too much to do, and may have said for how long.
    Overloaded(String, Option<Duration>),
    /// The link or the server failed.
    Failed(String),
}

/// The longest answer that is read where only words are expected.
const LONGEST_REFUSAL: usize = 64 << 10;

/// Sends a GET and waits for the head of its answer for at most `limit`.
///
/// # Errors
/// Anything but success, with the server's words.
pub async fn open(client: &Client, path: &str, limit: Duration) -> Result<http::Response<Body>, WatchError> {
    let mut request = Request::get(path).header(ACCEPT, "application/json");
    if path.contains("watch=true") {
        // From 1.37 watches would come as one gzip member an event, which is not understood here.
        request = request.header(ACCEPT_ENCODING, "identity");
    }
    let request = request.body(Body::empty()).expect("paths are built of encoded parts");
    let answer = match timeout(limit, client.send(request)).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => return Err(WatchError::Failed(error::words(&error))),
        Err(_) => return Err(WatchError::Failed(format!("no answer within {} s", limit.as_secs()))),
    };
    if answer.status().is_success() {
        return Ok(answer);
    }
    let (head, body) = answer.into_parts();
    let said = collect(body, Duration::from_secs(5), LONGEST_REFUSAL).await.unwrap_or_default();
    Err(setback(head.status, &head.headers, &said))
}

/// Reads a body whole, if every piece of it comes within `silence` and it is not longer than `longest`.
///
/// # Errors
/// In words.
pub async fn collect(mut body: Body, silence: Duration, longest: usize) -> Result<Vec<u8>, WatchError> {
    let mut whole = Vec::new();
    loop {
        let Ok(frame) = timeout(silence, body.frame()).await else {
            return Err(WatchError::Failed(format!("the answer stopped for {} s", silence.as_secs())));
        };
        match piece(frame)? {
            Some(bytes) if whole.len() + bytes.len() > longest => {
                return Err(WatchError::Failed(format!("the answer is longer than {longest} bytes")));
            }
            Some(bytes) => whole.extend_from_slice(&bytes),
            None => return Ok(whole),
        }
    }
}

/// The data of a frame; none at the end of the body.
pub fn piece(
    frame: Option<Result<http_body::Frame<Bytes>, kube::Error>>,
) -> Result<Option<Bytes>, WatchError> {
    match frame {
        None => Ok(None),
        Some(Ok(frame)) => Ok(Some(frame.into_data().unwrap_or_default())),
        Some(Err(error)) => Err(WatchError::Failed(error::words(&error))),
    }
}

/// What an answer other than success means.
fn setback(status: StatusCode, headers: &HeaderMap, said: &[u8]) -> WatchError {
    let mut refusal = match serde_json::from_slice(said) {
        Ok(status) => decode::refusal(&status),
        // An overloaded server and proxies answer in plain text.
        Err(_) => {
            StatusError { message: error::plain(&String::from_utf8_lossy(said)), ..StatusError::default() }
        }
    };
    refusal.code = status.as_u16();
    let header = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    refusal.retry_after = header.or(refusal.retry_after);
    WatchError::from(refusal)
}

impl From<StatusError> for WatchError {
    fn from(refusal: StatusError) -> Self {
        let StatusError { code, message, retry_after } = refusal;
        let words = || error::code_words(code, &message);
        match code {
            410 => Self::Expired,
            // A server restored from a backup: our version is in its future, and no waiting helps.
            504 if message.contains("Too large resource version") => Self::Expired,
            400 | 422 => Self::Invalid(words()),
            403 | 404 => Self::Forbidden(words()),
            429 | 503 => Self::Overloaded(words(), retry_after.map(Duration::from_secs)),
            _ => Self::Failed(words()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overloaded_server_is_left_alone_for_as_long_as_it_asks() {
        let headers = HeaderMap::from_iter([(RETRY_AFTER, "7".parse().expect("a value"))]);
        let said = b"Too many requests, please try again later.\n";
        assert_eq!(
            setback(StatusCode::TOO_MANY_REQUESTS, &headers, said),
            WatchError::Overloaded(
                "Too many requests, please try again later.".into(),
                Some(Duration::from_secs(7))
            )
        );
    }

    #[test]
    fn refusals_are_sorted_by_what_helps_against_them() {
        let of = |code, said: &str| {
            let status = StatusCode::from_u16(code).expect("a status");
            setback(status, &HeaderMap::new(), said.as_bytes())
        };
        assert_eq!(of(410, "{}"), WatchError::Expired);
        let future = r#"{"message":"Timeout: Too large resource version: 9, current: 3"}"#;
        assert_eq!(of(504, future), WatchError::Expired);
        assert_eq!(
            of(403, r#"{"message":"pods is forbidden"}"#),
            WatchError::Forbidden("pods is forbidden".into())
        );
        assert!(matches!(of(422, "{}"), WatchError::Invalid(_)));
        assert!(matches!(of(500, "boom\u{1b}[2J"), WatchError::Failed(words) if !words.contains('\u{1b}')));
    }
}
