//! `/metrics`, `/healthz`, `/livez` and `/readyz` over HTTP.
//!
//! The loop that owns the model answers each request. An answer therefore shows that the loop works.

use std::{convert::Infallible, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

/// An endpoint of the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    Metrics,
    /// Says whether the process works: `/healthz` and `/livez`.
    Live,
    /// Says whether the process knows the current state of the cluster: `/readyz`.
    Ready,
}

impl Endpoint {
    fn from_path(path: &str) -> Option<Self> {
        match path {
            "/metrics" => Some(Self::Metrics),
            "/healthz" | "/livez" => Some(Self::Live),
            "/readyz" => Some(Self::Ready),
            _ => None,
        }
    }
}

/// A request to an endpoint, which waits for the loop's answer.
#[derive(Debug)]
pub struct EndpointRequest {
    pub endpoint: Endpoint,
    pub answer: oneshot::Sender<EndpointAnswer>,
}

/// The loop's answer to a request to an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointAnswer {
    pub is_ok: bool,
    pub text: String,
}

/// Capacity of the queue of requests to the loop. While the queue is full, further requests wait until they time out.
pub const WAITING: usize = 16;

/// Maximum number of open connections. Further connections are closed.
const CONNECTIONS: usize = 64;

/// Time within which the loop must answer. A loop that does not answer in time counts as hanging.
const PATIENCE: Duration = Duration::from_secs(5);

/// Time within which a client must send the head of a request.
const HEAD: Duration = Duration::from_secs(10);

/// Serves the endpoints until `stop`, then closes all connections.
pub async fn serve(listener: TcpListener, asked: mpsc::Sender<EndpointRequest>, stop: CancellationToken) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if connections.len() < CONNECTIONS => {
                    let asked = asked.clone();
                    connections.spawn(async move {
                        let service = service_fn(|request| answer(request, asked.clone()));
                        let mut server = http1::Builder::new();
                        server.timer(TokioTimer::new()).header_read_timeout(HEAD);
                        // A client that disconnects is not an error.
                        let _ = server.serve_connection(TokioIo::new(stream), service).await;
                    });
                }
                Ok(_) => {}
                // Accepting a connection fails if there are no file descriptors, for example. A later attempt may
                // succeed.
                Err(_) => sleep(Duration::from_millis(50)).await,
            },
        }
    }
}

async fn answer(
    request: Request<Incoming>,
    asked: mpsc::Sender<EndpointRequest>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let Some(endpoint) = Endpoint::from_path(request.uri().path()) else {
        return Ok(response(StatusCode::NOT_FOUND, PLAIN, "not found\n".into()));
    };
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return Ok(response(StatusCode::METHOD_NOT_ALLOWED, PLAIN, "only GET\n".into()));
    }
    let answered = async {
        let (answer, answered) = oneshot::channel();
        asked.send(EndpointRequest { endpoint, answer }).await.ok()?;
        answered.await.ok()
    };
    Ok(match timeout(PATIENCE, answered).await {
        Ok(Some(EndpointAnswer { is_ok: true, text })) => {
            let media = if endpoint == Endpoint::Metrics { OPEN_METRICS } else { PLAIN };
            response(StatusCode::OK, media, text)
        }
        Ok(Some(EndpointAnswer { is_ok: false, text })) => {
            response(StatusCode::SERVICE_UNAVAILABLE, PLAIN, text)
        }
        Ok(None) => response(StatusCode::SERVICE_UNAVAILABLE, PLAIN, "the controller has ended\n".into()),
        Err(_) => response(
            StatusCode::SERVICE_UNAVAILABLE,
            PLAIN,
            "the controller's loop does not respond\n".into(),
        ),
    })
}

const PLAIN: &str = "text/plain; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

fn response(status: StatusCode, media: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(media));
    response
}
