//! Checks of the way to the cluster, one step after the other: kubeconfig, address, proxy, name resolution, TCP,
//! credentials, TLS, answer of the API server, authentication.

use std::{net::IpAddr, time::Duration};

use http::Uri;
use kube::Config;

use super::check::DoctorCheck;
use crate::k8s::{
    connect::{self, Connection, FIRST_ANSWER},
    error::{self, ConnectError},
    kubeconfig::{self, ClusterTarget, ConnectOptions, KubeEnvironment},
    probe,
};

/// Ids of the checks of a connection, in the order of its steps.
const STEPS: [&str; 9] = [
    "connection.kubeconfig",
    "connection.address",
    "connection.proxy",
    "connection.dns",
    "connection.tcp",
    "connection.credentials",
    "connection.tls",
    "connection.answer",
    "connection.authentication",
];

/// The checks of a connection, and the connection if it was made.
pub struct CheckedConnection {
    pub checks: Vec<DoctorCheck>,
    pub connection: Option<Connection>,
}

/// Takes the steps of a connection up to the first one that fails. The results of the other steps are unknown.
pub async fn check(options: &ConnectOptions) -> CheckedConnection {
    let mut checks = Vec::new();
    let connection = steps(options, &mut checks).await;
    if let Some(failed) = checks.last().map(|check| check.id) {
        let missing = STEPS.iter().filter(|id| checks.iter().all(|check| check.id != **id));
        let unknown = |id| DoctorCheck::unknown(id, format!("not checked, because {failed} failed"));
        let unknown: Vec<DoctorCheck> = missing.map(|id| unknown(id)).collect();
        checks.extend(unknown);
    }
    checks.sort_by_key(|check| STEPS.iter().position(|id| *id == check.id));
    CheckedConnection { checks, connection }
}

async fn steps(options: &ConnectOptions, checks: &mut Vec<DoctorCheck>) -> Option<Connection> {
    let surroundings = KubeEnvironment::from_env();
    let target = match kubeconfig::target(options, &surroundings).await {
        Ok(target) => target,
        Err(error) => {
            checks.push(of_kubeconfig_error(&error));
            return None;
        }
    };
    checks.push(of_kubeconfig(options, &surroundings, &target));
    checks.push(of_address(&target.config));
    checks.push(of_proxy(&surroundings, &target.config));
    let limit = options.request_timeout.unwrap_or(FIRST_ANSWER);
    reach(&target.config, limit, checks).await?;
    authenticate(options, &target.config, checks).await
}

fn of_kubeconfig_error(error: &ConnectError) -> DoctorCheck {
    let id = match error {
        ConnectError::BadServer { .. } | ConnectError::NoServer { .. } => "connection.address",
        ConnectError::BadProxy { .. } => "connection.proxy",
        ConnectError::Credentials { .. } => "connection.credentials",
        _ => "connection.kubeconfig",
    };
    let fix = "kubectl config get-contexts lists the contexts; --kubeconfig names another file, --context another \
               context; kordon demo needs no cluster";
    DoctorCheck::problem(id, error.to_string(), fix)
}

fn of_kubeconfig(
    options: &ConnectOptions,
    surroundings: &KubeEnvironment,
    target: &ClusterTarget,
) -> DoctorCheck {
    let files = kubeconfig::files(options, surroundings);
    let path = |path: &std::path::PathBuf| match path.exists() {
        true => path.display().to_string(),
        false => format!("{} (does not exist)", path.display()),
    };
    let paths: Vec<String> = files.paths.iter().map(path).collect();
    let chosen = match (&options.server, &options.context) {
        (Some(_), _) => "--server",
        (None, Some(_)) => "--context",
        (None, None) => "current-context",
    };
    let ClusterTarget { context, user, .. } = target;
    let found = format!(
        "context {context} ({chosen}), user {}, from {} ({})",
        if user.is_empty() { "none" } else { user },
        paths.join(", "),
        files.origin
    );
    DoctorCheck::ok("connection.kubeconfig", found)
}

fn of_address(config: &Config) -> DoctorCheck {
    let (id, server) = ("connection.address", error::server_address(&config.cluster_url));
    let is_encrypted = config.cluster_url.scheme_str() != Some("http");
    if is_encrypted || is_local(&config.cluster_url) {
        return DoctorCheck::ok(id, server);
    }
    let found = format!("{server}, without TLS: everybody on the way can read and change it");
    DoctorCheck::warning(id, found, "use https:// in the kubeconfig or in --server")
}

fn is_local(server: &Uri) -> bool {
    let host = host(server);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn of_proxy(surroundings: &KubeEnvironment, config: &Config) -> DoctorCheck {
    let id = "connection.proxy";
    let by_variable = surroundings.proxies.for_server(&config.cluster_url, None).ok().flatten();
    let is_set = surroundings.proxies.https.is_some() || surroundings.proxies.http.is_some();
    let found = match &config.proxy_url {
        Some(proxy) if by_variable.as_ref() == Some(proxy) => {
            format!("{} (HTTPS_PROXY or HTTP_PROXY)", error::server_address(proxy))
        }
        Some(proxy) => format!("{} (proxy-url of the kubeconfig)", error::server_address(proxy)),
        None if is_set => {
            "none: NO_PROXY, the scheme or a loopback address excepts the server from the proxy".into()
        }
        None => "none".into(),
    };
    DoctorCheck::ok(id, found)
}

/// Resolves the name of the server, or of its proxy, and opens a TCP connection.
async fn reach(config: &Config, limit: Duration, checks: &mut Vec<DoctorCheck>) -> Option<()> {
    let (uri, what) = match &config.proxy_url {
        Some(proxy) => (proxy, "the proxy"),
        None => (&config.cluster_url, "the server"),
    };
    let (host, port) = (host(uri), port(uri));
    let addresses = match probe::resolve(&host, port, limit).await {
        Ok(addresses) => addresses,
        Err(why) => {
            let fix = "check the address, the VPN and the resolver of this machine (getent hosts NAME)";
            checks.push(DoctorCheck::problem("connection.dns", format!("{what} {host}: {why}"), fix));
            return None;
        }
    };
    let mut shown: Vec<String> = addresses.iter().map(|address| address.ip().to_string()).collect();
    shown.dedup();
    let found = match host.parse::<IpAddr>() {
        Ok(_) => format!("{what} has an address, no name"),
        Err(_) => format!("{what} {host} is {}", shown.join(", ")),
    };
    checks.push(DoctorCheck::ok("connection.dns", found));
    match probe::open(&addresses, limit).await {
        Ok(address) => {
            checks
                .push(DoctorCheck::ok("connection.tcp", format!("{what} accepts connections at {address}")));
            Some(())
        }
        Err(why) => {
            let fix = "check the port, the firewall, the VPN and whether the server runs";
            let found = format!("{what} {host}:{port}: {why}");
            checks.push(DoctorCheck::problem("connection.tcp", found, fix));
            None
        }
    }
}

fn host(uri: &Uri) -> String {
    uri.host().unwrap_or_default().trim_matches(['[', ']']).to_ascii_lowercase()
}

fn port(uri: &Uri) -> u16 {
    uri.port_u16().unwrap_or(match uri.scheme_str() {
        Some("http") => 80,
        Some("socks5") => 1080,
        _ => 443,
    })
}

/// Sends the first request. Its error says which step failed.
async fn authenticate(
    options: &ConnectOptions,
    config: &Config,
    checks: &mut Vec<DoctorCheck>,
) -> Option<Connection> {
    let open = match connect::open(options).await {
        Ok(open) => open,
        Err(error) => {
            checks.push(of_error(&error));
            return None;
        }
    };
    let confirmed = open.confirm().await;
    if !matches!(confirmed, Err(ConnectError::Credentials { .. } | ConnectError::Plugin { .. })) {
        let plugin = config.auth_info.exec.as_ref().and_then(|exec| exec.command.as_deref());
        let found = plugin.map_or_else(|| "usable".into(), |command| format!("plugin {command} gave some"));
        checks.push(DoctorCheck::ok("connection.credentials", found));
    }
    match confirmed {
        Ok(connection) => {
            checks.push(of_tls(config));
            checks.push(DoctorCheck::ok("connection.answer", format!("Kubernetes {}", connection.release)));
            checks.push(of_identity(&connection));
            Some(connection)
        }
        Err(error) => {
            let is_answered = matches!(
                error,
                ConnectError::Unauthorized { .. }
                    | ConnectError::Forbidden { .. }
                    | ConnectError::NotKubernetes { .. }
            );
            checks.extend(is_answered.then(|| of_tls(config)));
            checks.push(of_error(&error));
            None
        }
    }
}

fn of_tls(config: &Config) -> DoctorCheck {
    let id = "connection.tls";
    if config.cluster_url.scheme_str() == Some("http") {
        return DoctorCheck::ok(id, "not used");
    }
    if config.accept_invalid_certs {
        let found = "the certificate of the server is not checked: anybody can pose as the server";
        return DoctorCheck::warning(
            id,
            found,
            "use --certificate-authority, not --insecure-skip-tls-verify",
        );
    }
    DoctorCheck::ok(id, "the certificate of the server is valid")
}

fn of_identity(connection: &Connection) -> DoctorCheck {
    let (id, identity) = ("connection.authentication", &connection.identity);
    let groups = match identity.groups.as_slice() {
        [] => String::new(),
        groups => format!(", groups {}", groups.join(", ")),
    };
    if !identity.confirmed {
        let named = if identity.user.is_empty() { "nobody".into() } else { identity.to_string() };
        let found = format!("the server does not say who you are; the kubeconfig names {named}");
        return DoctorCheck::unknown(id, found);
    }
    if identity.user == "system:anonymous" {
        let fix = "give the user of the context credentials, or log in again";
        return DoctorCheck::warning(id, "the server takes you for nobody: system:anonymous", fix);
    }
    DoctorCheck::ok(id, format!("you are {identity}{groups}"))
}

/// The check of the step in which the connection failed.
fn of_error(error: &ConnectError) -> DoctorCheck {
    let found = error.to_string();
    match error {
        ConnectError::Certificate { .. } => {
            let fix = "compare certificate-authority of the cluster in the kubeconfig with the server's; a proxy that \
                       opens TLS needs its own authority there";
            DoctorCheck::problem("connection.tls", found, fix)
        }
        ConnectError::Unauthorized { .. } => DoctorCheck::problem(
            "connection.authentication",
            found,
            "log in again, or renew the token or certificate",
        ),
        ConnectError::Forbidden { .. } => {
            let fix = "bind the ClusterRole system:public-info-viewer to the user, which allows /version";
            DoctorCheck::problem("connection.answer", found, fix)
        }
        ConnectError::NotKubernetes { .. } => {
            let fix = "check the address: a login page, a proxy or another program answers there";
            DoctorCheck::problem("connection.answer", found, fix)
        }
        ConnectError::Timeout { .. } => {
            let fix = "the server accepts connections but does not answer: check what stands before it, such as a load \
                       balancer, or allow more time with --request-timeout";
            DoctorCheck::problem("connection.answer", found, fix)
        }
        ConnectError::Unreachable { .. } => {
            let fix = "the connection broke after it was opened: check what stands between, and whether the address \
                       has to start with http:// or https://";
            DoctorCheck::problem("connection.answer", found, fix)
        }
        _ => {
            let fix = "check the user of the context in the kubeconfig: its files, token or plugin";
            DoctorCheck::problem("connection.credentials", found, fix)
        }
    }
}
