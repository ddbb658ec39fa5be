//! Access to the API: a `kube::Client` in process, and HTTP/1.1 on a listener.

use std::io;

use bytes::Bytes;
use http::{HeaderMap, Request, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::{
    Api, Requester,
    refusal::Refusal,
    reply::{self, Reply},
    request::View,
};

/// The user of requests without an identity.
const ADMINISTRATOR: &str = "system:admin";

impl Api {
    /// A client for the administrator. Must be called within a tokio runtime.
    pub fn client(&self) -> kube::Client {
        self.client_as(ADMINISTRATOR)
    }

    /// A client for this user. The user's name is also the default user agent.
    pub fn client_as(&self, user: &str) -> kube::Client {
        let (api, user) = (self.clone(), user.to_owned());
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let (api, user) = (api.clone(), user.clone());
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect_bytes().await.map_err(io::Error::other)?;
                let agent = header_text(&head.headers, "user-agent").unwrap_or_else(|| user.clone());
                let user = header_text(&head.headers, "impersonate-user").unwrap_or(user);
                api.answer(head, body, Requester { user, agent }).await
            }
        });
        kube::Client::new(service, "default")
    }

    /// Serves HTTP/1.1 until `stop`, then closes all connections.
    pub async fn serve(&self, listener: TcpListener, stop: CancellationToken) -> io::Result<()> {
        // Each connection has its own task, which is cheap enough for the few clients of a local server. Dropping the
        // `JoinSet` aborts the tasks.
        let mut connections = JoinSet::new();
        let mut health = self.inner.health.subscribe();
        loop {
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                accepted = listener.accept() => {
                    let Ok((stream, _)) = accepted else {
                        // Accepting fails if the process is out of file descriptors, for example. A later attempt may
                        // succeed.
                        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                        continue;
                    };
                    // While the server is down, new connections are closed immediately.
                    if !health.borrow().down {
                        connections.spawn(self.clone().connection(stream));
                    }
                }
                Ok(()) = health.changed() => {
                    if health.borrow_and_update().down {
                        connections.shutdown().await;
                    }
                }
                Some(_) = connections.join_next() => {}
            }
        }
    }

    async fn connection(self, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let service =
            hyper::service::service_fn(|request: Request<Incoming>| self.clone().over_http(request));
        // A client that disconnects is not an error.
        let _ =
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
    }

    async fn over_http(self, request: Request<Incoming>) -> io::Result<Reply> {
        let (head, body) = request.into_parts();
        let Some(identity) = self.identity(&head.headers) else {
            return Ok(reply::refusal(&Refusal::new(401, "Unauthorized", "Unauthorized"), View::Object));
        };
        let body = http_body_util::Limited::new(body, MAX_BODY_BYTES).collect().await;
        let body: Bytes = match body {
            Ok(body) => body.to_bytes(),
            Err(error) => {
                return Ok(reply::refusal(
                    &Refusal::new(413, "RequestEntityTooLarge", error.to_string()),
                    View::Object,
                ));
            }
        };
        self.answer(head, body, identity).await
    }

    /// Returns the identity of a request; None if tokens are required and the request has no valid token.
    fn identity(&self, headers: &HeaderMap) -> Option<Requester> {
        let tokens = &self.inner.options.tokens;
        let token = header_text(headers, header::AUTHORIZATION.as_str());
        let token = token.as_deref().and_then(|text| text.strip_prefix("Bearer "));
        let user = match token {
            _ if tokens.is_empty() => ADMINISTRATOR.to_owned(),
            Some(token) => tokens.get(token)?.clone(),
            None => return None,
        };
        Some(Requester {
            user: header_text(headers, "impersonate-user").unwrap_or(user),
            agent: header_text(headers, "user-agent").unwrap_or_default(),
        })
    }
}

/// Largest request body, as in a real server: 3 MiB.
const MAX_BODY_BYTES: usize = 3 << 20;

fn header_text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}
