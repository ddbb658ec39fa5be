//! A proxy in front of the API server that behaves like bad networks and overloaded servers: it cuts connections,
//! leaves them half open, goes away, throttles, fails, and reports that a version is too old to resume from.

use std::{
    collections::BTreeMap,
    io,
    net::Ipv4Addr,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use anyhow::Result;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, combinators::UnsyncBoxBody};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::TokioIo;
use kordon_core::engine::ServerVersion;
use kube::{Client, client::Body};
use serde_json::json;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinHandle, JoinSet},
};

/// Maximum lifetime of a half-open connection.
const HALF_OPEN: Duration = Duration::from_secs(240);

/// A proxy on loopback that speaks HTTP/1.1 without TLS and forwards requests as the user of its client. Dropping this
/// value closes all connections.
pub struct Proxy {
    pub url: String,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

/// Faults of the proxy. The default forwards everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Whether new connections are closed immediately.
    pub down: bool,
    /// Share of requests that are answered with 429 and Retry-After.
    pub throttled: f64,
    /// Share of requests that are answered with 500.
    pub failing: f64,
    /// Share of resumed watches that are answered with 410.
    pub expired: f64,
    /// Whether the API server is asked for plain JSON, whatever encoding the client prefers.
    pub json: bool,
    /// Share of changes of existing objects that are answered with 409.
    pub conflicting: f64,
    /// Share of requests that are never answered.
    pub stalled: f64,
    /// Version that the server reports; `None` for the actual version.
    pub version: Option<ServerVersion>,
}

/// Counts of the proxy's actions.
#[derive(Debug, Default)]
pub struct Tally {
    pub forwarded: AtomicUsize,
    pub cut: AtomicUsize,
    pub half_open: AtomicUsize,
    pub throttled: AtomicUsize,
    pub failed: AtomicUsize,
    pub expired: AtomicUsize,
    /// Bytes of all bodies sent to clients.
    pub sent: Arc<AtomicU64>,
    pub conflicted: AtomicUsize,
    pub stalled: AtomicUsize,
}

/// A response body as it is sent to the client.
type AnswerBody = UnsyncBoxBody<Bytes, <Body as hyper::body::Body>::Error>;

struct Shared {
    client: Client,
    faults: Mutex<Faults>,
    connections: Mutex<BTreeMap<usize, Connection>>,
    tally: Tally,
}

struct Connection {
    task: AbortHandle,
    silent: Arc<AtomicBool>,
}

impl Proxy {
    /// Starts a proxy that forwards requests through this client.
    pub async fn start(client: Client) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let shared = Arc::new(Shared {
            client,
            faults: Mutex::default(),
            connections: Mutex::default(),
            tally: Tally::default(),
        });
        let accepting = tokio::spawn(shared.clone().accept(listener));
        Ok(Self { url, shared, accepting })
    }

    /// Sets the faults from now on.
    pub fn set(&self, faults: Faults) {
        *self.shared.faults.lock().expect("no panic") = faults;
    }

    pub fn tally(&self) -> &Tally {
        &self.shared.tally
    }

    /// Closes all connections.
    pub fn cut_all(&self) {
        self.shared.cut(usize::MAX, &mut fastrand::Rng::new());
    }

    /// Closes up to `count` connections.
    pub fn cut(&self, count: usize, rng: &mut fastrand::Rng) {
        self.shared.cut(count, rng);
    }

    /// Leaves up to `count` connections half open: no data is sent or received, and neither side is notified.
    pub fn silence(&self, count: usize, rng: &mut fastrand::Rng) {
        let connections = self.shared.connections.lock().expect("no panic");
        let mut audible: Vec<&Connection> =
            connections.values().filter(|connection| !connection.silent.load(Ordering::Relaxed)).collect();
        rng.shuffle(&mut audible);
        for connection in audible.into_iter().take(count) {
            connection.silent.store(true, Ordering::Relaxed);
            self.shared.tally.half_open.fetch_add(1, Ordering::Relaxed);
            let task = connection.task.clone();
            tokio::spawn(async move {
                tokio::time::sleep(HALF_OPEN).await;
                task.abort();
            });
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Shared {
    fn cut(&self, count: usize, rng: &mut fastrand::Rng) {
        let connections = self.connections.lock().expect("no panic");
        let mut all: Vec<&Connection> = connections.values().collect();
        rng.shuffle(&mut all);
        for connection in all.into_iter().take(count) {
            connection.task.abort();
            self.tally.cut.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn faults(&self) -> Faults {
        *self.faults.lock().expect("no panic")
    }

    async fn accept(self: Arc<Self>, listener: TcpListener) {
        // Dropping the set aborts its tasks.
        let mut tasks = JoinSet::new();
        for number in 0.. {
            let accepted = loop {
                tokio::select! {
                    accepted = listener.accept() => break accepted,
                    Some(_) = tasks.join_next() => self.forget_ended(),
                }
            };
            let Ok((stream, _)) = accepted else { continue };
            if self.faults().down {
                continue;
            }
            let silent = Arc::new(AtomicBool::default());
            let link = Link { stream, silent: silent.clone() };
            let task = tasks.spawn(self.clone().serve(link));
            self.connections.lock().expect("no panic").insert(number, Connection { task, silent });
        }
    }

    fn forget_ended(&self) {
        self.connections.lock().expect("no panic").retain(|_, connection| !connection.task.is_finished());
    }

    async fn serve(self: Arc<Self>, link: Link) {
        let _ = link.stream.set_nodelay(true);
        let service = hyper::service::service_fn(|request| self.answer(request));
        // A client that disconnects is not an error.
        let _ =
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(link), service).await;
    }

    async fn answer(&self, request: Request<Incoming>) -> io::Result<Response<AnswerBody>> {
        let faults = self.faults();
        if let Some(version) = faults.version.filter(|_| request.uri().path() == "/version") {
            return Ok(answer_of_version(version).map(BodyExt::boxed_unsync));
        }
        let query = request.uri().query().unwrap_or_default();
        let resumes = query.contains("watch=true") && query.contains("resourceVersion=");
        let changes = [Method::PATCH, Method::PUT, Method::DELETE].contains(request.method());
        let tally = &self.tally;
        let (code, reason, count) = if fastrand::f64() < faults.throttled {
            (StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", &tally.throttled)
        } else if fastrand::f64() < faults.failing {
            (StatusCode::INTERNAL_SERVER_ERROR, "InternalError", &tally.failed)
        } else if changes && fastrand::f64() < faults.conflicting {
            (StatusCode::CONFLICT, "Conflict", &tally.conflicted)
        } else if fastrand::f64() < faults.stalled {
            tally.stalled.fetch_add(1, Ordering::Relaxed);
            return std::future::pending().await;
        } else if resumes && fastrand::f64() < faults.expired {
            (StatusCode::GONE, "Expired", &tally.expired)
        } else {
            tally.forwarded.fetch_add(1, Ordering::Relaxed);
            return self.forward(request).await;
        };
        count.fetch_add(1, Ordering::Relaxed);
        Ok(refusal(code, reason).map(BodyExt::boxed_unsync))
    }

    async fn forward(&self, request: Request<Incoming>) -> io::Result<Response<AnswerBody>> {
        let (mut head, body) = request.into_parts();
        for own in [header::HOST, header::CONNECTION, header::AUTHORIZATION] {
            head.headers.remove(own);
        }
        if self.faults().json && head.headers.contains_key(header::ACCEPT) {
            head.headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
            head.headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        let request = Request::from_parts(head, Body::from(body.to_vec()));
        let mut answer = self.client.send(request).await.map_err(io::Error::other)?;
        for own in [header::CONNECTION, header::TRANSFER_ENCODING] {
            answer.headers_mut().remove(own);
        }
        let sent = self.tally.sent.clone();
        let count = move |frame: Frame<Bytes>| {
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            sent.fetch_add(bytes as u64, Ordering::Relaxed);
            frame
        };
        Ok(answer.map(|body| body.map_frame(count).boxed_unsync()))
    }
}

fn answer_of_version(version: ServerVersion) -> Response<Body> {
    let ServerVersion { major, minor } = version;
    let version = json!({
        "major": major.to_string(), "minor": minor.to_string(), "gitVersion": format!("v{major}.{minor}.0"),
    });
    let answer = Response::builder().header(header::CONTENT_TYPE, "application/json");
    answer.body(Body::from(version.to_string().into_bytes())).expect("the parts are valid")
}

/// Builds an error response of the API server. For 410, the response is a watch stream with an ERROR event, as from the
/// real server.
fn refusal(code: StatusCode, reason: &str) -> Response<Body> {
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "metadata": {},
        "code": code.as_u16(), "reason": reason, "message": format!("the proxy of the test: {reason}"),
    });
    let answer = Response::builder().header(header::CONTENT_TYPE, "application/json");
    let (answer, body) = match code {
        StatusCode::GONE => (answer, format!("{}\n", json!({ "type": "ERROR", "object": status }))),
        StatusCode::TOO_MANY_REQUESTS => (
            answer.status(code).header(header::RETRY_AFTER, u16::from(fastrand::u8(1..=3))),
            status.to_string(),
        ),
        code => (answer.status(code), status.to_string()),
    };
    answer.body(Body::from(body.into_bytes())).expect("the parts are valid")
}

/// A connection that may fall silent.
struct Link {
    stream: TcpStream,
    silent: Arc<AtomicBool>,
}

impl Link {
    /// Returns the stream unless it is silent. A silent stream wakes nobody, because it never has data again.
    fn audible(&mut self) -> Option<Pin<&mut TcpStream>> {
        (!self.silent.load(Ordering::Relaxed)).then(|| Pin::new(&mut self.stream))
    }
}

impl AsyncRead for Link {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.audible() {
            Some(stream) => stream.poll_read(context, bytes),
            None => Poll::Pending,
        }
    }
}

impl AsyncWrite for Link {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.audible() {
            Some(stream) => stream.poll_write(context, bytes),
            None => Poll::Pending,
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.audible() {
            Some(stream) => stream.poll_flush(context),
            None => Poll::Pending,
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.audible() {
            Some(stream) => stream.poll_shutdown(context),
            None => Poll::Pending,
        }
    }
}
