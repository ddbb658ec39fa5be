//! Connects to a cluster with kubectl's flags and files.

use std::{error::Error as _, fmt, sync::Arc, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::{HeaderValue, Request, Uri, header::USER_AGENT};
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::time::timeout;

pub use super::{
    error::ConnectError,
    kubeconfig::{ConnectOptions, KubeEnvironment, ServiceAccount},
};
use super::{
    error::{self, plain},
    exec::{Plugin, Token},
    kubeconfig::{self, ClusterTarget},
    transport,
};
use kordon_clock::Clock;
use kordon_core::engine::ServerVersion;
use kordon_time::Timestamp;

/// A connection to a cluster.
#[derive(Clone)]
pub struct Connection {
    /// Client for reads, without retries.
    pub client: Client,
    /// Client for writes. It does not retry, because its callers handle every refusal.
    pub writer: Client,
    /// Display name of the cluster: the kubeconfig's context, the address of `--server`, `in-cluster` in a pod, or the
    /// name of an embedded cluster.
    pub context: String,
    /// Names of all contexts of the kubeconfig; empty if the cluster does not come from a kubeconfig.
    pub contexts: Vec<String>,
    pub server: String,
    pub identity: Identity,
    pub version: ServerVersion,
    /// Release as the server names it: `v1.36.3`, `v1.33.1+k3s1`.
    pub release: String,
    /// Namespace of the context, for commands that need a namespace.
    pub namespace: String,
    pub request_timeout: Option<Duration>,
    /// The clock for all times that are read from the cluster. It is stopped if the objects come from files.
    pub clock: Clock,
    /// The newest time in the objects, if they come from files.
    pub objects_at: Option<Timestamp>,
    /// Notes about the files from which objects are read: skipped files, and objects that are laid over others
    /// (`--with`). Empty without such files.
    pub notes: Vec<String>,
}

/// The user, as the server knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    pub user: String,
    pub groups: Vec<String>,
    /// Whether the user is impersonated (`--as`).
    pub impersonated: bool,
    /// Whether the server confirmed the user's name. If not, the name comes from the kubeconfig.
    pub confirmed: bool,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.user)?;
        if self.impersonated { f.write_str(" (impersonated)") } else { Ok(()) }
    }
}

/// Default timeout of the first response.
pub const FIRST_ANSWER: Duration = Duration::from_secs(10);

/// Timeout of opening a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// A connection to a cluster whose version and user are not known yet.
pub struct OpenConnection(Connection);

/// Connects to the cluster that the options select, and reads its version and the user.
pub async fn connect(options: &ConnectOptions) -> Result<Connection, ConnectError> {
    open(options).await?.confirm().await
}

/// Connects like [`connect`], but with the given environment instead of the environment of this process.
pub async fn connect_from(
    options: &ConnectOptions,
    surroundings: &KubeEnvironment,
) -> Result<Connection, ConnectError> {
    open_from(options, surroundings).await?.confirm().await
}

/// Creates a client for the cluster that the options select, with credentials. Sends no request yet.
pub async fn open(options: &ConnectOptions) -> Result<OpenConnection, ConnectError> {
    open_from(options, &KubeEnvironment::from_env()).await
}

async fn open_from(
    options: &ConnectOptions,
    surroundings: &KubeEnvironment,
) -> Result<OpenConnection, ConnectError> {
    let ClusterTarget { context, user, contexts, mut config } =
        kubeconfig::target(options, surroundings).await?;
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT);
    let agent = concat!("kordon/", env!("CARGO_PKG_VERSION"));
    config.headers.push((USER_AGENT, HeaderValue::from_static(agent)));
    let server = error::server_address(&config.cluster_url);
    let namespace = config.default_namespace.clone();
    let impersonated = config.auth_info.impersonate.clone();
    let client = client(config, &server).await?;
    Ok(OpenConnection(Connection {
        writer: client.clone(),
        client,
        context,
        contexts,
        server,
        identity: Identity {
            user: impersonated.clone().unwrap_or(user),
            impersonated: impersonated.is_some(),
            ..Identity::default()
        },
        version: ServerVersion::new(1, 0),
        release: String::new(),
        namespace,
        request_timeout: options.request_timeout,
        clock: Clock::system(),
        objects_at: None,
        notes: Vec::new(),
    }))
}

impl OpenConnection {
    /// Returns the client, for requests that do not depend on the server's version.
    pub const fn client(&self) -> &Client {
        &self.0.client
    }

    /// Reads the version and the user. If the server does not report the user, the name from the kubeconfig is kept.
    pub async fn confirm(self) -> Result<Connection, ConnectError> {
        let Self(mut connection) = self;
        // The version and the user are read concurrently, because each takes one round trip, or two on a new
        // connection.
        let user = async { Ok(connection.confirmed_user().await) };
        let (release, user) = futures::try_join!(check(&connection), user)?;
        (connection.version, connection.release) = release;
        connection.identity = user.unwrap_or(connection.identity);
        Ok(connection)
    }
}

/// Builds the client. A credential plugin runs here, once, before anything is on the screen.
async fn client(mut config: Config, server: &str) -> Result<Client, ConnectError> {
    let Some(exec) = config.auth_info.exec.take() else { return build(config, server).await };
    let plugin = Plugin::new(&exec, exec.cluster.as_ref());
    let credential = plugin.run().await?;
    if let (Some(certificate), Some(key)) =
        (credential.client_certificate_data.clone(), credential.client_key_data.clone())
    {
        config.auth_info.client_certificate_data = Some(BASE64_STANDARD.encode(&certificate));
        config.auth_info.client_key_data = Some(BASE64_STANDARD.encode(&key).into());
    }
    let client = build(config, server).await?;
    if credential.token.is_none() {
        return Ok(client);
    }
    Ok(Arc::new(Token::new(plugin, credential)).carried_by(client))
}

async fn build(config: Config, server: &str) -> Result<Client, ConnectError> {
    // The client is built on a blocking thread, because building it reads files and, for old kinds of credentials, runs
    // programs.
    let built = tokio::task::spawn_blocking({
        let handle = tokio::runtime::Handle::current();
        move || {
            let _runtime = handle.enter();
            transport::client(config)
        }
    });
    let built = built.await.map_err(|error| ConnectError::Credentials { why: plain(&error.to_string()) })?;
    built.map_err(|error| match error {
        kube::Error::RustlsTls(error) => {
            ConnectError::Certificate { server: server.into(), why: plain(&with_causes(&error)) }
        }
        other => ConnectError::Credentials { why: plain(&with_causes(&other)) },
    })
}

/// Text of an error and its causes, without repetitions.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        let said = deeper.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = deeper.source();
    }
    text
}

/// Reads the server's version and release. This is the cheapest request that proves that the connection works, and the
/// first watch can reuse its connection.
///
/// # Errors
/// The server was not reached, or it refused the request.
async fn check(connection: &Connection) -> Result<(ServerVersion, String), ConnectError> {
    let limit = connection.request_timeout.unwrap_or(FIRST_ANSWER);
    let request = Request::get("/version").body(Vec::new()).expect("a constant path");
    let server = || connection.server.clone();
    let info: Value = match timeout(limit, connection.client.request(request)).await {
        Ok(Ok(info)) => info,
        Ok(Err(error)) => return Err(refused(&error, connection)),
        Err(_) => return Err(ConnectError::Timeout { server: server(), seconds: limit.as_secs() }),
    };
    let field = |name: &str| info[name].as_str().unwrap_or_default().to_owned();
    let (numbers, release) = (format!("{}.{}", field("major"), field("minor")), field("gitVersion"));
    let version = ServerVersion::parse(&numbers).or_else(|| ServerVersion::parse(&release));
    let version = version.ok_or_else(|| ConnectError::NotKubernetes {
        server: server(),
        why: "its /version has no version".into(),
    })?;
    let release = if release.is_empty() { format!("v{version}") } else { plain(&release) };
    Ok((version, release))
}

/// Converts an error of the first request to an error of the connection attempt.
fn refused(error: &kube::Error, connection: &Connection) -> ConnectError {
    let (server, user) = (connection.server.clone(), connection.identity.to_string());
    let why = error::words(error);
    match error {
        kube::Error::Api(status) if status.code == 401 => ConnectError::Unauthorized { server, user },
        kube::Error::Api(status) if status.code == 403 => ConnectError::Forbidden { server, user, why },
        kube::Error::Api(_) | kube::Error::SerdeError(_) | kube::Error::FromUtf8(_) => {
            ConnectError::NotKubernetes { server, why }
        }
        kube::Error::Auth(_) => ConnectError::Credentials { why },
        other => match plugin_failure(other) {
            Some(why) => ConnectError::Credentials { why },
            None => broken_link(server, why, &with_causes(other)),
        },
    }
}

/// Returns the error of the credential plugin, if one caused this error.
fn plugin_failure(error: &kube::Error) -> Option<String> {
    let cause = error.source()?;
    cause.downcast_ref::<ConnectError>().map(ToString::to_string)
}

/// Converts an error below HTTP, which comes from TLS or from the connection.
fn broken_link(server: String, why: String, whole: &str) -> ConnectError {
    let untrusted = "its certificate is signed by an authority that is not trusted; check certificate-authority in the \
                     kubeconfig, or --certificate-authority";
    let security = [
        ("UnknownIssuer", untrusted),
        // BadSignature: the certificate's authority is not the trusted authority, but both have the same name, as in
        // clusters made by the same tool.
        ("BadSignature", untrusted),
        ("NotValidForName", "its certificate is for another name; set it with --tls-server-name"),
        ("not valid for name", "its certificate is for another name; set it with --tls-server-name"),
        ("certificate expired", "its certificate has expired"),
        ("Expired", "its certificate has expired"),
        ("not valid yet", "its certificate is not valid yet; check the clocks"),
        (
            "CertificateRequired",
            "it requires a client certificate; check client-certificate in the kubeconfig",
        ),
        ("InvalidContentType", "it does not use TLS; should the address start with http://?"),
        ("invalid peer certificate", ""),
        ("received fatal alert", ""),
    ];
    match security.into_iter().find(|(sign, _)| whole.contains(sign)) {
        Some((_, "")) => ConnectError::Certificate { server, why },
        Some((_, words)) => ConnectError::Certificate { server, why: words.into() },
        None => ConnectError::Unreachable { server, why },
    }
}

/// Address of a cluster inside this process, in place of a server's.
pub const EMBEDDED: &str = "in process";

impl Connection {
    /// Creates a connection to a cluster inside this process. Its version is the newest supported version.
    pub fn embedded(client: Client, name: &str) -> Self {
        Self {
            writer: client.clone(),
            namespace: client.default_namespace().into(),
            client,
            context: name.into(),
            contexts: Vec::new(),
            server: EMBEDDED.into(),
            identity: Identity { user: "you".into(), ..Identity::default() },
            version: ServerVersion::new(1, 36),
            release: "v1.36.3".into(),
            request_timeout: None,
            clock: Clock::system(),
            objects_at: None,
            notes: Vec::new(),
        }
    }

    /// Returns the user as the server knows it; `None` if the server does not report it.
    async fn confirmed_user(&self) -> Option<Identity> {
        for version in ["v1", "v1beta1"] {
            let body = json!({"apiVersion": format!("authentication.k8s.io/{version}"), "kind": "SelfSubjectReview"});
            let path: Uri = format!("/apis/authentication.k8s.io/{version}/selfsubjectreviews")
                .parse()
                .expect("a constant path");
            let request = Request::post(path)
                .header(http::header::CONTENT_TYPE, "application/json")
                .body(body.to_string().into_bytes())
                .expect("constant headers");
            let limit = self.request_timeout.unwrap_or(FIRST_ANSWER);
            let Ok(Ok(review)) = timeout(limit, self.client.request::<Value>(request)).await else {
                continue;
            };
            let info = &review["status"]["userInfo"];
            let Some(user) = info["username"].as_str() else { continue };
            let groups = info["groups"].as_array().into_iter().flatten();
            return Some(Identity {
                user: plain(user),
                groups: groups.filter_map(Value::as_str).map(plain).collect(),
                confirmed: true,
                ..self.identity
            });
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_certificates_say_what_to_try() {
        let said = |cause: &str| broken_link("https://s".into(), cause.into(), cause).to_string();
        assert!(said("invalid peer certificate: UnknownIssuer").contains("--certificate-authority"));
        assert!(said("invalid peer certificate: NotValidForName").contains("--tls-server-name"));
        assert!(said("received corrupt message of type InvalidContentType").contains("http://"));
        assert!(said("invalid peer certificate: BadEncoding").contains("BadEncoding"));
        assert!(said("connection refused").contains("cannot connect"));
    }
}
