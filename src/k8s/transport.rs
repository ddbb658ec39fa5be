//! Clients over connections that send at once what they are given.

use hyper_timeout::TimeoutConnector;
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::TokioExecutor,
};
use kube::{
    Client, Config,
    client::{Body, ClientBuilder, ConfigExt},
};
use tower::{BoxError, Layer, ServiceExt, util::option_layer};
use tower_http::decompression::DecompressionLayer;

/// A client that retries nothing.
///
/// Of kube's own one, a connection holds small pieces back until the server has confirmed what was sent before (Nagle's
/// algorithm), and a server confirms a small piece up to 40 ms later: TLS ends its handshake with one, and the first request of each
/// connection waited for that. Through a proxy it is kube's own, with its tunnels. As kube's, it logs requests that failed.
///
/// # Errors
/// A certificate, key or credential of the config cannot be used.
pub fn client(config: Config) -> Result<Client, kube::Error> {
    if config.proxy_url.is_some() {
        return Client::try_from(config);
    }
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(tcp)?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let connections: legacy::Client<_, Body> = legacy::Client::builder(TokioExecutor::new()).build(connector);

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
