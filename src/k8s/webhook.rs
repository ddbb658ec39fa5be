//! Posts JSON to a URL that the user has configured, with the same TLS and proxies as connections to API servers.

use std::time::Duration;

use http::{Request, Uri, header::CONTENT_TYPE};
use kube::{Client, Config, client::Body};
use tokio::time::timeout;

use super::{
    error::{self, words},
    proxy::Proxies,
    transport,
};

/// Time within which the receiver of a webhook must answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The receiver of a webhook.
#[derive(Clone)]
pub struct Webhook {
    client: Client,
    /// Path and query of the URL, which may be secret.
    path: String,
    /// Scheme and host of the URL, for error texts.
    receiver: String,
}

impl Webhook {
    /// Checks the URL of a webhook.
    ///
    /// # Errors
    /// The text is not a URL that begins with `http://` or `https://`.
    pub fn parse_url(text: &str) -> Result<Uri, String> {
        let url: Uri = text.parse().map_err(|_| "not a URL".to_owned())?;
        match (url.scheme_str(), url.host()) {
            (Some("http" | "https"), Some(host)) if !host.is_empty() => Ok(url),
            _ => Err("not a URL that begins with https:// or http://".into()),
        }
    }

    /// Creates the client. Sends nothing yet. Must be called within the runtime.
    ///
    /// # Errors
    /// The proxy from the environment variables, or the certificates of this machine, cannot be used. The text gives
    /// the reason.
    pub fn new(url: &Uri) -> Result<Self, String> {
        let mut parts = url.clone().into_parts();
        let path = parts.path_and_query.replace("/".parse().expect("a constant path"));
        let server = Uri::from_parts(parts).map_err(|error| error.to_string())?;
        let proxy = Proxies::from_env().for_server(&server, None).map_err(|error| error.to_string())?;
        let receiver = error::server_address(&server);
        let mut config = Config::new(server);
        config.proxy_url = proxy;
        config.connect_timeout = Some(PATIENCE);
        let client = transport::client(config).map_err(|error| words(&error))?;
        Ok(Self { client, path: path.map_or_else(|| "/".into(), |path| path.to_string()), receiver })
    }

    /// Posts JSON. Does not follow redirections.
    ///
    /// # Errors
    /// There was no answer in time, or its status is not a success. The text gives the reason without the URL's path.
    pub async fn post(&self, json: String) -> Result<(), String> {
        let request = Request::post(&*self.path)
            .header(CONTENT_TYPE, "application/json")
            .body(Body::from(json.into_bytes()))
            .map_err(|error| error.to_string())?;
        let receiver = &self.receiver;
        match timeout(PATIENCE, self.client.send(request)).await {
            Ok(Ok(answer)) if answer.status().is_success() => Ok(()),
            Ok(Ok(answer)) => Err(format!("webhook {receiver}: HTTP {}", answer.status().as_u16())),
            Ok(Err(error)) => Err(format!("webhook {receiver}: {}", words(&error))),
            Err(_) => Err(format!("webhook {receiver}: no response within {} s", PATIENCE.as_secs())),
        }
    }
}
