//! kubectl's flags that say which cluster, and as whom.

use std::{path::PathBuf, time::Duration};

use clap::Args;

use super::{exit::CliError, span};
use crate::k8s::connect::ConnectOptions;

#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(next_help_heading = "Connection, as kubectl has it")]
pub struct ConnectionArgs {
    /// The kubeconfig file; else KUBECONFIG (a list is merged), else ~/.kube/config, else the pod's own account
    #[arg(long, value_name = "FILE", global = true)]
    kubeconfig: Option<PathBuf>,
    /// The kubeconfig context
    #[arg(long, value_name = "NAME", global = true)]
    context: Option<String>,
    /// The kubeconfig cluster
    #[arg(long, value_name = "NAME", global = true, hide_short_help = true)]
    cluster: Option<String>,
    /// The kubeconfig user
    #[arg(long, value_name = "NAME", global = true, hide_short_help = true)]
    user: Option<String>,
    /// The namespace, for what needs one
    #[arg(long, short, value_name = "NAME", global = true)]
    namespace: Option<String>,
    /// The user to impersonate
    #[arg(long = "as", value_name = "USER", global = true, hide_short_help = true)]
    impersonate: Option<String>,
    /// A group to impersonate; may be repeated
    #[arg(long = "as-group", value_name = "GROUP", global = true, hide_short_help = true)]
    impersonate_groups: Vec<String>,
    /// The uid to impersonate
    #[arg(long = "as-uid", value_name = "UID", global = true, hide_short_help = true)]
    impersonate_uid: Option<String>,
    /// The address of the API server
    #[arg(long, short, value_name = "URL", global = true)]
    server: Option<String>,
    /// The bearer token
    #[arg(long, value_name = "TOKEN", global = true, hide_short_help = true, hide_env_values = true)]
    token: Option<String>,
    /// Do not check the server's certificate
    #[arg(long, global = true, hide_short_help = true)]
    insecure_skip_tls_verify: bool,
    /// The certificate authority that the server's certificate is checked against
    #[arg(long, value_name = "FILE", global = true, hide_short_help = true)]
    certificate_authority: Option<PathBuf>,
    /// The client certificate
    #[arg(long, value_name = "FILE", global = true, hide_short_help = true)]
    client_certificate: Option<PathBuf>,
    /// The client certificate's key
    #[arg(long, value_name = "FILE", global = true, hide_short_help = true)]
    client_key: Option<PathBuf>,
    /// The name that the server's certificate is checked for
    #[arg(long, value_name = "NAME", global = true, hide_short_help = true)]
    tls_server_name: Option<String>,
    /// How long one request may take (watches are exempt); 0 is for ever
    #[arg(long, value_name = "DURATION", global = true, hide_short_help = true, value_parser = span::timeout)]
    request_timeout: Option<Duration>,
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

    /// Refuses connection flags where they would be without meaning.
    pub fn refuse(&self, because: &str) -> Result<(), CliError> {
        if *self == Self::default() {
            return Ok(());
        }
        Err(CliError::Usage(format!(
            "{because}: leave out --context, --server and the other connection flags"
        )))
    }
}
