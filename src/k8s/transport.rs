//! HTTP clients with `TCP_NODELAY`.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderValue, Uri};
use hyper_rustls::MaybeHttpsStream;
use hyper_timeout::TimeoutConnector;
use hyper_util::{
    client::legacy::{
        self,
        connect::{
            Connected, Connection, HttpConnector,
            proxy::{SocksV5, Tunnel},
        },
    },
    rt::{TokioExecutor, TokioIo},
};
use kube::{
    Client, Config,
    client::{Body, ClientBuilder, ConfigExt},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, BufReader, ReadBuf},
    net::TcpStream,
};
use tower::{
    BoxError, Layer, ServiceExt,
    util::{BoxCloneSyncService, option_layer},
};
use tower_http::decompression::DecompressionLayer;

use super::proxy::credentials;

/// Creates a client without retries, from the same layers as kube's own client, but with `TCP_NODELAY`.
///
/// Without `TCP_NODELAY`, as in kube's client, a connection holds small segments back until the server has acknowledged
/// earlier ones (Nagle's algorithm), and servers delay the acknowledgement of a small segment by up to 40 ms. TLS ends
/// its handshake with a small segment, so the first request of each connection would wait. Failed requests are logged,
/// as kube's client does.
///
/// # Errors
/// A certificate, key or credential of the config cannot be used, or its proxy has another scheme than `http`, `https`
/// or `socks5`.
pub fn client(config: Config) -> Result<Client, kube::Error> {
    let mut connector =
        TimeoutConnector::new(config.rustls_https_connector_with_connector(streams(&config)?)?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let mut builder = legacy::Client::builder(TokioExecutor::new());
    // Limits the read buffer of a connection. Otherwise each of about two dozen watches would keep a buffer of 150 KiB,
    // although it needs this size only for its list.
    builder.http1_max_buf_size(PIECE);
    let connections: legacy::Client<_, Body> = builder.build(connector);

    let logged = connections.map_result(|answer| {
        match &answer {
            Ok(response) if response.status().is_server_error() => {
                tracing::error!(status = %response.status(), "request failed");
            }
            Ok(_) => {}
            Err(error) => tracing::error!(%error, "request failed"),
        }
        answer.map_err(BoxError::from)
    });
    let with_headers = config.extra_headers_layer()?.layer(logged);
    let authorized = option_layer(config.auth_layer()?).layer(with_headers);
    let gzip = DecompressionLayer::new().gzip(!config.disable_compression);
    let service = config.base_uri_layer().layer(gzip.layer(authorized));
    Ok(ClientBuilder::new(service, config.default_namespace).build())
}

/// Size of one read: several TLS records, each of which has up to 16 KiB.
const PIECE: usize = 64 << 10;

/// Opens streams to a server. The connector of [`client`] adds the server's TLS.
type Streams = BoxCloneSyncService<Uri, Stream, BoxError>;
/// A stream to a server or a proxy. The connection to a proxy may have its own TLS.
type Stream = MaybeHttpsStream<TokioIo<Buffered>>;

/// Connects to the server, directly or through its proxy.
fn streams(config: &Config) -> Result<Streams, kube::Error> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let tcp = tcp.map_response(|stream| TokioIo::new(Buffered::new(stream.into_inner())));
    let plain = |stream| MaybeHttpsStream::Http(stream);
    let Some(proxy) = &config.proxy_url else {
        return Ok(boxed(tcp.map_response(plain)));
    };
    match proxy.scheme_str() {
        Some("socks5") => {
            let socks = SocksV5::new(proxy.clone(), tcp);
            let socks = match credentials(proxy) {
                Some((user, password)) => socks.with_auth(user, password),
                None => socks,
            };
            Ok(boxed(socks.map_response(plain)))
        }
        Some("http") => Ok(boxed(tunnel(proxy, tcp).map_response(plain))),
        Some("https") => Ok(boxed(tunnel(proxy, config.rustls_https_connector_with_connector(tcp)?))),
        _ => Err(kube::Error::ProxyProtocolUnsupported { proxy_url: Box::new(proxy.clone()) }),
    }
}

fn boxed<S>(streams: S) -> Streams
where
    S: tower::Service<Uri, Response = Stream, Error: Into<BoxError>, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static,
{
    BoxCloneSyncService::new(streams.map_err(Into::into))
}

/// Opens a tunnel through an HTTP proxy (`CONNECT`), with the user and password of the proxy's address.
fn tunnel<C>(proxy: &Uri, connector: C) -> Tunnel<C> {
    let tunnel = Tunnel::new(proxy.clone(), connector);
    let authorization = credentials(proxy).and_then(|(user, password)| {
        HeaderValue::try_from(format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))).ok()
    });
    match authorization {
        Some(authorization) => tunnel.with_auth(authorization),
        None => tunnel,
    }
}

/// A stream with a large read buffer. TLS reads 4 KiB at a time, so without the buffer each TLS read would be a system
/// call.
struct Buffered(BufReader<TcpStream>);

impl Buffered {
    fn new(stream: TcpStream) -> Self {
        Self(BufReader::with_capacity(PIECE, stream))
    }

    fn stream(&mut self) -> Pin<&mut BufReader<TcpStream>> {
        Pin::new(&mut self.0)
    }
}

impl Connection for Buffered {
    fn connected(&self) -> Connected {
        self.0.get_ref().connected()
    }
}

impl AsyncRead for Buffered {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream().poll_read(context, into)
    }
}

impl AsyncWrite for Buffered {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_shutdown(context)
    }
}
