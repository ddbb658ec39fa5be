//! From kubectl's flags and files to a client that has reached its server.

use std::{path::PathBuf, time::Duration};

use kube::Client;

use crate::engine::ServerVersion;

/// How to reach a cluster: kubectl's flags of the same names.
#[derive(Clone, Debug, Default)]
pub struct ConnectOptions {
    pub kubeconfig: Option<PathBuf>,
    pub context: Option<String>,
    pub cluster: Option<String>,
    pub user: Option<String>,
    pub namespace: Option<String>,
    pub impersonate: Option<String>,
    pub impersonate_groups: Vec<String>,
    pub impersonate_uid: Option<String>,
    pub server: Option<String>,
    pub token: Option<String>,
    pub insecure_skip_tls_verify: bool,
    pub certificate_authority: Option<PathBuf>,
    pub client_certificate: Option<PathBuf>,
    pub client_key: Option<PathBuf>,
    pub tls_server_name: Option<String>,
    /// How long one request may take; watches are exempt. None: no limit of the user's.
    pub request_timeout: Option<Duration>,
}

/// A cluster that has answered.
#[derive(Clone)]
pub struct Connection {
    /// For reads. Retries nothing by itself.
    pub client: Client,
    /// For writes. Retries nothing by itself: every refusal is seen.
    pub writer: Client,
    /// The kubeconfig's context, `in-cluster`, or the name of the embedded cluster.
    pub context: String,
    pub server: String,
    pub identity: Identity,
    pub version: ServerVersion,
    /// The namespace of the context, for commands that need one.
    pub namespace: String,
    pub request_timeout: Option<Duration>,
}

/// Who the server takes us for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    pub user: String,
    pub groups: Vec<String>,
    /// Whether the name was asked for with `--as`.
    pub impersonated: bool,
    /// Whether the server said so; if not, it is the kubeconfig's name for the user.
    pub confirmed: bool,
}

/// Why a cluster could not be reached.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("connecting is not built in yet; try `kordon demo`")]
    Unfinished,
}

/// Finds the cluster that the options mean and asks it for its version and for who we are.
///
/// # Errors
/// Each variant of [`ConnectError`] is one thing that can be wrong, in words for the user.
pub async fn connect(options: &ConnectOptions) -> Result<Connection, ConnectError> {
    let _ = options;
    Err(ConnectError::Unfinished)
}

impl Connection {
    /// A connection to a cluster inside this process.
    pub fn embedded(client: Client, name: &str) -> Self {
        Self {
            writer: client.clone(),
            namespace: client.default_namespace().into(),
            client,
            context: name.into(),
            server: "in process".into(),
            identity: Identity { user: "you".into(), ..Identity::default() },
            version: ServerVersion::new(1, 36),
            request_timeout: None,
        }
    }
}
