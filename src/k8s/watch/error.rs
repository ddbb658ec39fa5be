//! Requests of the watches, and their errors.

use std::time::Duration;

use bytes::Bytes;
use http::{
    HeaderMap, Request, StatusCode,
    header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, RETRY_AFTER},
};
use http_body_util::BodyExt;
use kube::{Client, client::Body};
use tokio::time::timeout;

use crate::k8s::{
    decode::{self, Encoding, StatusError},
    error,
};

/// Reason why a request or a watch failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchError {
    /// The kind is forbidden. The field is the server's message.
    Forbidden(String),
    /// The server does not serve the kind, or its version. The field is the server's message.
    NotServed(String),
    /// The server does not support the parameters of the request.
    Invalid(String),
    /// The watch cannot resume from its version, which is too old (410). The kind must be listed again.
    Expired,
    /// The server is overloaded. The fields are the message and the delay that the server asked for, if any.
    Overloaded(String, Option<Duration>),
    /// The connection or the server failed.
    Failed(String),
}

impl WatchError {
    /// Returns the error for a response that is not a list. `why` says what is wrong with the response.
    pub fn no_list(why: String) -> Self {
        Self::Failed(format!("the list is not a list of the Kubernetes API: {why}"))
    }

    /// The error in words; `None` if the resource version has expired.
    pub fn words(self) -> Option<String> {
        match self {
            Self::Forbidden(words)
            | Self::NotServed(words)
            | Self::Invalid(words)
            | Self::Failed(words)
            | Self::Overloaded(words, _) => Some(words),
            Self::Expired => None,
        }
    }
}

/// Maximum size of an error response, in bytes.
const LONGEST_ERROR: usize = 64 << 10;

/// Media types of objects that kordon accepts: protobuf, or JSON from servers without protobuf.
const OBJECTS: &str = "application/vnd.kubernetes.protobuf, application/json";

/// The response to a request for objects, before its body is read.
pub struct ObjectBody {
    pub encoding: Encoding,
    pub body: Body,
}

/// Requests objects and waits at most `limit` for the head of the response.
pub async fn open_objects(client: &Client, path: &str, limit: Duration) -> Result<ObjectBody, WatchError> {
    let answer = send(client, path, OBJECTS, limit).await?;
    let encoding = Encoding::from_content_type(content_type(answer.headers()));
    Ok(ObjectBody { encoding, body: answer.into_body() })
}

/// Sends a GET for JSON and waits at most `limit` for the head of the response.
///
/// # Errors
/// There is no response, or its status is not a success.
pub async fn open(client: &Client, path: &str, limit: Duration) -> Result<http::Response<Body>, WatchError> {
    send(client, path, "application/json", limit).await
}

async fn send(
    client: &Client,
    path: &str,
    accept: &'static str,
    limit: Duration,
) -> Result<http::Response<Body>, WatchError> {
    let mut request = Request::get(path).header(ACCEPT, accept);
    if path.contains("watch=true") {
        // From 1.37, servers compress each event as a separate gzip member, which kube's client does not support.
        request = request.header(ACCEPT_ENCODING, "identity");
    }
    let request = request.body(Body::empty()).expect("paths are built of encoded parts");
    let answer = match timeout(limit, client.send(request)).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => return Err(WatchError::Failed(error::words(&error))),
        Err(_) => return Err(WatchError::Failed(format!("no response within {} s", limit.as_secs()))),
    };
    if answer.status().is_success() {
        return Ok(answer);
    }
    let (head, body) = answer.into_parts();
    let said = collect(body, Duration::from_secs(5), LONGEST_ERROR).await.unwrap_or_default();
    Err(response_error(head.status, &head.headers, &said))
}

/// Sends a GET for JSON and reads the whole response.
///
/// # Errors
/// There is no response within `limit`, the response has more than `longest` bytes, or the server refused the request.
pub async fn read(
    client: &Client,
    path: &str,
    limit: Duration,
    longest: usize,
) -> Result<Vec<u8>, WatchError> {
    let body = open(client, path, limit).await?.into_body();
    collect(body, limit, longest).await
}

/// Like [`read`], with the error in words.
///
/// # Errors
/// As [`read`].
pub async fn get(client: &Client, path: &str, limit: Duration, longest: usize) -> Result<Vec<u8>, String> {
    let answer = read(client, path, limit, longest).await;
    answer.map_err(|error| error.words().unwrap_or_else(|| "the answer has expired".into()))
}

/// Reads the whole body of a response.
///
/// # Errors
/// See [`Pieces::next`].
pub async fn collect(body: Body, silence: Duration, longest: usize) -> Result<Vec<u8>, WatchError> {
    let (mut pieces, mut whole) = (Pieces::new(body, silence, longest), Vec::new());
    while let Some(bytes) = pieces.next().await? {
        whole.extend_from_slice(&bytes);
    }
    Ok(whole)
}

/// Reads the body of a response in pieces.
#[derive(Debug)]
pub struct Pieces {
    body: Body,
    silence: Duration,
    longest: usize,
    received: usize,
}

impl Pieces {
    /// Reads the body of a response, of at most `longest` bytes, whose pieces arrive within `silence` of each other.
    pub const fn new(body: Body, silence: Duration, longest: usize) -> Self {
        Self { body, silence, longest, received: 0 }
    }

    /// Returns the next piece; `None` at the end of the body.
    ///
    /// # Errors
    /// The piece took too long, or the body is too long.
    pub async fn next(&mut self) -> Result<Option<Bytes>, WatchError> {
        let Self { silence, longest, .. } = *self;
        let Ok(frame) = timeout(silence, self.body.frame()).await else {
            return Err(WatchError::Failed(format!("the response paused for {} s", silence.as_secs())));
        };
        let piece = piece(frame)?;
        self.received += piece.as_ref().map_or(0, Bytes::len);
        if self.received > longest {
            return Err(WatchError::Failed(format!("the response is longer than {longest} bytes")));
        }
        Ok(piece)
    }
}

/// Returns the data of one frame of a response's body; `None` at the end of the body.
pub fn piece(
    frame: Option<Result<http_body::Frame<Bytes>, kube::Error>>,
) -> Result<Option<Bytes>, WatchError> {
    match frame {
        None => Ok(None),
        Some(Ok(frame)) => Ok(Some(frame.into_data().unwrap_or_default())),
        Some(Err(error)) => Err(WatchError::Failed(error::words(&error))),
    }
}

fn content_type(headers: &HeaderMap) -> &str {
    headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Converts a response with an error status to a [`WatchError`].
fn response_error(status: StatusCode, headers: &HeaderMap, said: &[u8]) -> WatchError {
    let read = match Encoding::from_content_type(content_type(headers)) {
        Encoding::Json => serde_json::from_slice(said).ok().map(|status| decode::status_error(&status)),
        Encoding::Protobuf => decode::protobuf::status_error(said),
    };
    // Overloaded servers and proxies may respond in plain text instead of a Status.
    let mut error = read.unwrap_or_else(|| {
        let message = error::plain(&String::from_utf8_lossy(said));
        StatusError { message, ..StatusError::default() }
    });
    error.code = status.as_u16();
    let header = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    error.retry_after = header.or(error.retry_after);
    WatchError::from(error)
}

impl From<StatusError> for WatchError {
    fn from(status: StatusError) -> Self {
        let StatusError { code, message, retry_after } = status;
        let words = || error::code_words(code, &message);
        match code {
            410 => Self::Expired,
            // The requested resource version is newer than the server's newest version, because the server was restored
            // from a backup. Waiting does not help.
            504 if message.contains("Too large resource version") => Self::Expired,
            400 | 422 => Self::Invalid(words()),
            403 => Self::Forbidden(words()),
            404 => Self::NotServed(words()),
            429 | 503 => Self::Overloaded(words(), retry_after.map(Duration::from_secs)),
            _ => Self::Failed(words()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_that_an_overloaded_server_asks_for_is_read() {
        let headers = HeaderMap::from_iter([(RETRY_AFTER, "7".parse().expect("a value"))]);
        let said = b"Too many requests, please try again later.\n";
        assert_eq!(
            response_error(StatusCode::TOO_MANY_REQUESTS, &headers, said),
            WatchError::Overloaded(
                "Too many requests, please try again later.".into(),
                Some(Duration::from_secs(7))
            )
        );
    }

    #[test]
    fn errors_are_distinguished_by_what_to_do_next() {
        let of = |code, said: &str| {
            let status = StatusCode::from_u16(code).expect("a status");
            response_error(status, &HeaderMap::new(), said.as_bytes())
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
