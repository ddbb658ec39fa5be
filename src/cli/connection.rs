//! kubectl's flags for the cluster and the identity.

use std::{path::PathBuf, time::Duration};

use clap::Args;

use super::{config::Config, exit::CliError, span};
use crate::k8s::{
    connect::{ConnectError, ConnectOptions, KubeEnvironment},
    error, kubeconfig,
};

#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(next_help_heading = "Connection, as in kubectl")]
pub struct ConnectionArgs {
    /// Kubeconfig file (default: $KUBECONFIG, whose files are merged, else ~/.kube/config, else the pod's service
    /// account)
    #[arg(long, value_name = "FILE", global = true)]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig
    #[arg(long, value_name = "NAME", global = true)]
    context: Option<String>,
    /// Cluster of the kubeconfig
    #[arg(long, value_name = "NAME", global = true, hide_short_help = true)]
    cluster: Option<String>,
    /// User of the kubeconfig
    #[arg(long, value_name = "NAME", global = true, hide_short_help = true)]
    user: Option<String>,
    /// Namespace of the pods that are named (default: the context's), or of the rows that are listed (default: all)
    #[arg(long, short, value_name = "NAME", global = true)]
    pub namespace: Option<String>,
    /// User to impersonate
    #[arg(long = "as", value_name = "USER", global = true, hide_short_help = true)]
    impersonate: Option<String>,
    /// Group to impersonate; may be repeated
    #[arg(long = "as-group", value_name = "GROUP", global = true, hide_short_help = true)]
    impersonate_groups: Vec<String>,
    /// UID to impersonate
    #[arg(long = "as-uid", value_name = "UID", global = true, hide_short_help = true)]
    impersonate_uid: Option<String>,
    /// Address of the API server
    #[arg(long, short, value_name = "URL", global = true)]
    server: Option<String>,
    /// Bearer token
    #[arg(long, value_name = "TOKEN", global = true, hide_short_help = true, hide_env_values = true)]
    token: Option<String>,
    /// Do not check the server's certificate
    #[arg(long, global = true, hide_short_help = true)]
    insecure_skip_tls_verify: bool,
    /// Certificate authority to check the server's certificate against
    #[arg(long, value_name = "FILE", global = true, hide_short_help = true)]
    certificate_authority: Option<PathBuf>,
    /// Client certificate
    #[arg(long, value_name = "FILE", global = true, hide_short_help = true)]
    client_certificate: Option<PathBuf>,
    /// Key of the client certificate
    #[arg(long, value_name = "FILE", global = true, hide_short_help = true)]
    client_key: Option<PathBuf>,
    /// Name that the server's certificate must have
    #[arg(long, value_name = "NAME", global = true, hide_short_help = true)]
    tls_server_name: Option<String>,
    /// Timeout of one request, watches excepted; 0 is no timeout
    #[arg(long, value_name = "DURATION", global = true, hide_short_help = true, value_parser = span::timeout)]
    request_timeout: Option<Duration>,
    /// Configuration, including the controller settings of each cluster.
    #[arg(skip)]
    pub config: Config,
}

impl ConnectionArgs {
    pub fn options(self) -> ConnectOptions {
        ConnectOptions {
            kubeconfig: self.kubeconfig,
            context: self.context,
            cluster: self.cluster,
            user: self.user,
            namespace: self.namespace,
            impersonate: self.impersonate,
            impersonate_groups: self.impersonate_groups,
            impersonate_uid: self.impersonate_uid,
            server: self.server,
            token: self.token,
            insecure_skip_tls_verify: self.insecure_skip_tls_verify,
            certificate_authority: self.certificate_authority,
            client_certificate: self.client_certificate,
            client_key: self.client_key,
            tls_server_name: self.tls_server_name,
            request_timeout: self.request_timeout.filter(|timeout| !timeout.is_zero()),
        }
    }

    /// The connection to another context of the same kubeconfig. Flags that describe the first cluster or its user are
    /// left out.
    pub fn for_context(&self, name: String) -> Self {
        Self {
            kubeconfig: self.kubeconfig.clone(),
            context: Some(name),
            request_timeout: self.request_timeout,
            config: self.config.clone(),
            ..Self::default()
        }
    }

    /// Whether the given flags match a cluster with this context and server. A flag that was not given matches any
    /// cluster.
    pub fn means(&self, context: &str, server: &str) -> bool {
        let address = |text: &str| match text.parse() {
            Ok(server) => error::server_address(&server),
            Err(_) => error::address(text.trim_end_matches('/')),
        };
        self.context.as_deref().is_none_or(|name| name == context)
            && self.server.as_deref().is_none_or(|url| address(url) == address(server))
    }

    /// Fails if the configuration forbids writing in a context.
    ///
    /// # Errors
    /// `contexts.NAME.read-only` is set; the error names its place.
    pub fn require_writable(config: &Config, context: &str) -> Result<(), CliError> {
        match config.why_read_only(context) {
            Some(why) => Err(CliError::ReadOnly { context: context.into(), why }),
            None => Ok(()),
        }
    }

    /// Whether no connection flag was given.
    pub fn names_no_cluster(&self) -> bool {
        (Self { config: Config::default(), ..self.clone() }) == Self::default()
    }

    /// Adds the names of the other contexts of the kubeconfig to an error of its current context.
    pub fn with_other_contexts(self, error: ConnectError) -> CliError {
        let names_one = self.context.is_some() || self.server.is_some() || self.cluster.is_some();
        let others = kubeconfig::other_contexts(&self.options(), &KubeEnvironment::from_env());
        // Without a current context, the error names all contexts already.
        let is_current = !names_one && !matches!(error, ConnectError::NoCurrentContext { .. });
        match is_current && !others.is_empty() {
            true => CliError::CurrentContext { error, others },
            false => CliError::Connect(error),
        }
    }

    /// Fails with `reason` if a namespace was given to a command whose answer has none.
    ///
    /// # Errors
    /// `--namespace` was given.
    pub fn refuse_namespace(&self, reason: &str) -> Result<(), CliError> {
        match self.namespace {
            None => Ok(()),
            Some(_) => Err(CliError::Usage(format!("{reason}: leave out --namespace"))),
        }
    }

    /// Fails with `reason` if connection flags were given to a command that does not use them.
    pub fn refuse(&self, reason: &str) -> Result<(), CliError> {
        if self.names_no_cluster() {
            return Ok(());
        }
        Err(CliError::Usage(format!(
            "{reason}: leave out --context, --server and the other connection flags"
        )))
    }
}
