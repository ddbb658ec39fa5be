//! Selects the cluster and the user as kubectl does: merges kubeconfig files, chooses a context, applies flags.

use std::{
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use kube::config::{NamedAuthInfo, NamedCluster, NamedContext};
use kube::{
    Config,
    config::{AuthInfo, Cluster, Context, KubeConfigOptions, Kubeconfig, KubeconfigError},
};

use super::{
    error::{ConnectError, address, plain},
    proxy::Proxies,
};
use kordon_core::cluster::nearest::nearest;

/// Connection options: kubectl's flags of the same names.
#[derive(Clone, Default)]
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
    /// Timeout of a request other than a watch; `None` if the user set none.
    pub request_timeout: Option<Duration>,
}

/// Environment variables and files that kubectl uses to select a cluster.
#[derive(Clone, Debug, Default)]
pub struct KubeEnvironment {
    /// `KUBECONFIG`: a list of files.
    pub kubeconfig: Option<OsString>,
    pub home: Option<PathBuf>,
    pub proxies: Proxies,
    /// The service account of the pod in which kordon runs; `None` outside of a pod.
    pub service_account: Option<ServiceAccount>,
}

/// The service account of a pod: the API server, and the folder in which the kubelet keeps the token up to date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceAccount {
    /// Address of the API server.
    pub server: String,
    /// Folder with the files `token`, `ca.crt` and `namespace`.
    pub folder: PathBuf,
}

/// Where the kubelet mounts the service account of a pod.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

impl KubeEnvironment {
    pub fn from_env() -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        Self {
            kubeconfig: set("KUBECONFIG"),
            home: std::env::home_dir(),
            proxies: Proxies::from_env(),
            service_account: set("KUBERNETES_SERVICE_HOST")
                .zip(set("KUBERNETES_SERVICE_PORT"))
                .map(|(host, port)| ServiceAccount::new(&host, &port, SERVICE_ACCOUNT.into()))
                .filter(|account| account.folder.join("token").exists()),
        }
    }
}

impl ServiceAccount {
    /// Returns the service account of a pod. `host` and `port` of the API server come from variables that the kubelet
    /// sets in the pod (client-go `InClusterConfig`).
    fn new(host: &OsStr, port: &OsStr, folder: PathBuf) -> Self {
        let (host, port) = (host.to_string_lossy(), port.to_string_lossy());
        let server = match host.contains(':') {
            true => format!("https://[{host}]:{port}"),
            false => format!("https://{host}:{port}"),
        };
        Self { server, folder }
    }
}

/// The selected cluster and user.
#[derive(Clone, Debug)]
pub struct ClusterTarget {
    /// Display name of the cluster: the name of the context, the address of `--server`, the name of `--cluster` if
    /// there is no context, or `in-cluster` in a pod.
    pub context: String,
    /// Name of the user in the kubeconfig.
    pub user: String,
    /// Names of all contexts of the kubeconfig, in its order.
    pub contexts: Vec<String>,
    pub config: Config,
}

/// Selects the cluster for the options, without connecting to it.
///
/// # Errors
/// A file cannot be read, or a name in the options is not in the files.
pub async fn target(
    options: &ConnectOptions,
    surroundings: &KubeEnvironment,
) -> Result<ClusterTarget, ConnectError> {
    let (kubeconfig, looked) = read(options, surroundings)?;
    let names_nothing = kubeconfig.contexts.is_empty() && kubeconfig.clusters.is_empty();
    let asked = options.server.is_some() || options.context.is_some() || options.cluster.is_some();
    if names_nothing && !asked {
        let Some(account) = &surroundings.service_account else {
            return Err(ConnectError::NoKubeconfig { looked });
        };
        let choice = Choice::from_service_account(account);
        let (context, user) = (choice.context_name.clone(), choice.user_name.clone());
        let config = choice.config(options, surroundings).await.map_err(|error| match error {
            ConnectError::Credentials { why } => ConnectError::InCluster { why },
            other => other,
        })?;
        return Ok(ClusterTarget { context, user, contexts: Vec::new(), config });
    }
    let choice = Choice::new(&kubeconfig, options)?;
    let (context, user) = (choice.context_name.clone(), choice.user_name.clone());
    let config = choice.config(options, surroundings).await?;
    let contexts = kubeconfig.contexts.into_iter().map(|context| context.name).collect();
    Ok(ClusterTarget { context, user, contexts, config })
}

/// The files of the kubeconfig, whether or not they exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeconfigFiles {
    /// The files; for each value, the first file that sets it wins.
    pub paths: Vec<PathBuf>,
    /// The source of the files' names: a flag, a variable, or `default`.
    pub origin: &'static str,
}

/// Returns the files that the options and the environment select.
pub fn files(options: &ConnectOptions, surroundings: &KubeEnvironment) -> KubeconfigFiles {
    let (paths, origin) = match (&options.kubeconfig, &surroundings.kubeconfig) {
        (Some(path), _) => (vec![path.clone()], "--kubeconfig"),
        (None, Some(list)) => {
            let named = std::env::split_paths(list).filter(|path| !path.as_os_str().is_empty());
            (named.collect(), "KUBECONFIG")
        }
        (None, None) => (surroundings.home.iter().map(|home| home.join(".kube/config")).collect(), "default"),
    };
    KubeconfigFiles { paths, origin }
}

/// Names of the contexts of the kubeconfig without its current context; none if the files cannot be read.
pub fn other_contexts(options: &ConnectOptions, surroundings: &KubeEnvironment) -> Vec<String> {
    let Ok((kubeconfig, _)) = read(options, surroundings) else { return Vec::new() };
    let current = kubeconfig.current_context;
    let names = kubeconfig.contexts.into_iter().map(|context| context.name);
    names.filter(|name| Some(name) != current.as_ref()).collect()
}

/// Reads and merges the files; for each value, the first file that sets it wins. Also returns the paths, for messages.
fn read(
    options: &ConnectOptions,
    surroundings: &KubeEnvironment,
) -> Result<(Kubeconfig, String), ConnectError> {
    let KubeconfigFiles { paths, .. } = files(options, surroundings);
    if let Some(path) = &options.kubeconfig {
        if !path.exists() {
            return Err(ConnectError::MissingKubeconfig { path: path.clone() });
        }
        return Ok((read_file(path)?, path.display().to_string()));
    }
    let looked = paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
    let mut merged = Kubeconfig::default();
    // Files that are listed but do not exist are skipped, as in kubectl.
    for path in paths.iter().filter(|path| path.exists()) {
        merged = merged.merge(read_file(path)?).map_err(|error| malformed(path, &error))?;
    }
    Ok((merged, looked))
}

fn read_file(path: &Path) -> Result<Kubeconfig, ConnectError> {
    // kube 5.0 panics on a UTF-16 file that ends within a character.
    if ends_within_utf16(path) {
        let why = "UTF-16 that ends within a character".into();
        return Err(ConnectError::BadKubeconfig { path: path.to_owned(), why });
    }
    Kubeconfig::read_from(path).map_err(|error| malformed(path, &error))
}

/// Whether a file begins like UTF-16 and has an odd number of bytes, so that its last character is incomplete.
fn ends_within_utf16(path: &Path) -> bool {
    let contents = fs::read(path).unwrap_or_default();
    matches!(contents.as_slice(), [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..]) && contents.len() % 2 == 1
}

fn malformed(path: &Path, error: &KubeconfigError) -> ConnectError {
    let why = match error {
        KubeconfigError::ReadConfig(error, _) => error.to_string(),
        // Use only the first line of the error: the other lines quote the file, which may contain secrets.
        KubeconfigError::Parse(error) => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            let place = error.location().map(|at| format!("line {}, column {}: ", at.line(), at.column()));
            format!("{}{}", place.unwrap_or_default(), plain(first))
        }
        other => plain(&other.to_string()),
    };
    ConnectError::BadKubeconfig { path: path.to_owned(), why }
}

/// The selected parts of a kubeconfig.
struct Choice {
    context_name: String,
    user_name: String,
    cluster: Cluster,
    user: AuthInfo,
    namespace: Option<String>,
}

impl Choice {
    fn new(kubeconfig: &Kubeconfig, options: &ConnectOptions) -> Result<Self, ConnectError> {
        let (context_name, context) = context(kubeconfig, options)?;
        let cluster_name = options.cluster.clone().unwrap_or(context.cluster);
        let cluster = kubeconfig
            .clusters
            .iter()
            .find(|cluster| cluster.name == cluster_name)
            .and_then(|named| named.cluster.clone());
        let cluster = match cluster {
            Some(cluster) => cluster,
            None if options.server.is_some() && options.cluster.is_none() => Cluster::default(),
            None => {
                let known = kubeconfig.clusters.iter().map(|cluster| cluster.name.as_str());
                return Err(ConnectError::UnknownCluster {
                    name: cluster_name,
                    context: context_name,
                    known: listed(known),
                });
            }
        };
        let user_name = options.user.clone().or(context.user).unwrap_or_default();
        let named = kubeconfig.auth_infos.iter().find(|user| user.name == user_name);
        if named.is_none() && !user_name.is_empty() {
            let known = kubeconfig.auth_infos.iter().map(|user| user.name.as_str());
            return Err(ConnectError::UnknownUser {
                name: user_name,
                context: context_name,
                known: listed(known),
            });
        }
        let user = named.and_then(|named| named.auth_info.clone()).unwrap_or_default();
        // `--server` selects another cluster than the context does, so the context's name would mislead.
        let context_name = options.server.as_deref().map_or(context_name, host);
        Ok(Self { context_name, user_name, cluster, user, namespace: context.namespace })
    }

    /// Returns the cluster and user of a pod's service account, for use in place of a kubeconfig. The file of the token
    /// is read again later, because the kubelet replaces the token.
    fn from_service_account(ServiceAccount { server, folder }: &ServiceAccount) -> Self {
        let path = |name: &str| folder.join(name).display().to_string();
        Self {
            context_name: "in-cluster".into(),
            user_name: "the pod's service account".into(),
            cluster: Cluster {
                server: Some(server.clone()),
                certificate_authority: Some(path("ca.crt")),
                ..Cluster::default()
            },
            user: AuthInfo { token_file: Some(path("token")), ..AuthInfo::default() },
            // Without the file `namespace`, the namespace is `default`, as with a kubeconfig that sets no namespace.
            namespace: fs::read_to_string(folder.join("namespace")).ok().map(|name| name.trim().to_owned()),
        }
    }

    async fn config(
        mut self,
        options: &ConnectOptions,
        surroundings: &KubeEnvironment,
    ) -> Result<Config, ConnectError> {
        override_cluster(&mut self.cluster, options);
        override_user(&mut self.user, options)?;
        let server = self.cluster.server.clone().unwrap_or_default();
        if server.is_empty() {
            return Err(ConnectError::NoServer { context: self.context_name });
        }
        if !server.starts_with("https://") && !server.starts_with("http://") {
            self.cluster.server = Some(format!("https://{server}"));
        }
        // The proxy is set further down, because kube would compare NO_PROXY with the proxy's name, not the server's.
        let proxy = self.cluster.proxy_url.clone().filter(|proxy| !proxy.is_empty());
        let single = Kubeconfig {
            clusters: vec![NamedCluster {
                name: "chosen".into(),
                cluster: Some(self.cluster),
                ..NamedCluster::default()
            }],
            auth_infos: vec![NamedAuthInfo {
                name: "chosen".into(),
                auth_info: Some(self.user),
                ..NamedAuthInfo::default()
            }],
            contexts: vec![NamedContext {
                name: "chosen".into(),
                context: Some(Context {
                    cluster: "chosen".into(),
                    user: Some("chosen".into()),
                    namespace: options.namespace.clone().or(self.namespace).filter(|name| !name.is_empty()),
                    ..Context::default()
                }),
                ..NamedContext::default()
            }],
            current_context: Some("chosen".into()),
            ..Kubeconfig::default()
        };
        let made = Config::from_custom_kubeconfig(single, &KubeConfigOptions::default()).await;
        let mut config = made.map_err(|error| match error {
            KubeconfigError::ParseClusterUrl(error) => {
                ConnectError::BadServer { server: address(&server), why: error.to_string() }
            }
            other => ConnectError::Credentials { why: plain(&other.to_string()) },
        })?;
        config.proxy_url = surroundings.proxies.for_server(&config.cluster_url, proxy.as_deref())?;
        Ok(config)
    }
}

/// Returns the selected context with its name; an empty context if only `--server` or `--cluster` is given.
fn context(kubeconfig: &Kubeconfig, options: &ConnectOptions) -> Result<(String, Context), ConnectError> {
    let current = kubeconfig.current_context.clone().filter(|name| !name.is_empty());
    let Some(name) = options.context.clone().or(current) else {
        if options.server.is_some() || options.cluster.is_some() {
            return Ok((options.cluster.clone().unwrap_or_default(), Context::default()));
        }
        let known = kubeconfig.contexts.iter().map(|context| context.name.as_str());
        return Err(ConnectError::NoCurrentContext { known: listed(known) });
    };
    let found = kubeconfig.contexts.iter().find(|context| context.name == name);
    match found.and_then(|named| named.context.clone()) {
        Some(context) => Ok((name, context)),
        None => {
            let known = || kubeconfig.contexts.iter().map(|context| context.name.as_str());
            let meant = nearest(&name, known()).map(plain);
            Err(ConnectError::UnknownContext { meant, known: listed(known()), name })
        }
    }
}

/// A server's address without the scheme, as a display name.
fn host(server: &str) -> String {
    let host = server.split_once("://").map_or(server, |(_, rest)| rest);
    host.trim_end_matches('/').to_owned()
}

fn override_cluster(cluster: &mut Cluster, options: &ConnectOptions) {
    if let Some(server) = &options.server {
        cluster.server = Some(server.clone());
    }
    if let Some(path) = &options.certificate_authority {
        cluster.certificate_authority = Some(path.display().to_string());
        cluster.certificate_authority_data = None;
    }
    if options.insecure_skip_tls_verify {
        cluster.insecure_skip_tls_verify = Some(true);
        cluster.certificate_authority = None;
        cluster.certificate_authority_data = None;
    }
    if let Some(name) = &options.tls_server_name {
        cluster.tls_server_name = Some(name.clone());
    }
}

fn override_user(user: &mut AuthInfo, options: &ConnectOptions) -> Result<(), ConnectError> {
    if let Some(token) = &options.token {
        user.token = Some(token.clone().into());
        user.token_file = None;
        user.exec = None;
        user.auth_provider = None;
        (user.username, user.password) = (None, None);
    }
    if let Some(path) = &options.client_certificate {
        user.client_certificate = Some(path.display().to_string());
        user.client_certificate_data = None;
    }
    if let Some(path) = &options.client_key {
        user.client_key = Some(path.display().to_string());
        user.client_key_data = None;
    }
    if let Some(name) = &options.impersonate {
        user.impersonate = Some(name.clone());
    }
    if !options.impersonate_groups.is_empty() {
        user.impersonate_groups = Some(options.impersonate_groups.clone());
    }
    if let Some(uid) = &options.impersonate_uid {
        user.impersonate_uid = Some(uid.clone());
    }
    let more = user.impersonate_groups.is_some() || user.impersonate_uid.is_some();
    if more && user.impersonate.is_none() {
        let why = "--as-group and --as-uid require --as too".into();
        return Err(ConnectError::Credentials { why });
    }
    Ok(())
}

/// Names in order, for messages: `prod, staging`, `none`.
pub fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<String> = names.map(plain).collect();
    names.sort();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_of_a_pod_is_named_by_its_variables() {
        let server = |host: &str| ServiceAccount::new(host.as_ref(), "6443".as_ref(), "f".into()).server;
        assert_eq!(server("10.96.0.1"), "https://10.96.0.1:6443");
        assert_eq!(server("fd00::1"), "https://[fd00::1]:6443");
    }

    const FIRST: &str = "
current-context: a
clusters: [{name: one, cluster: {server: 'https://one:6443'}}]
users: [{name: alice, user: {token: first}}]
contexts:
- {name: a, context: {cluster: one, user: alice, namespace: team}}
- {name: broken, context: {cluster: nowhere, user: nobody}}
";
    const SECOND: &str = "
current-context: b
clusters: [{name: one, cluster: {server: 'https://other'}}, {name: two, cluster: {server: 'http://two', proxy-url: 'http://p:1'}}]
users: [{name: alice, user: {token: second}}, {name: bob, user: {}}]
contexts: [{name: b, context: {cluster: two, user: bob}}]
";

    struct Files {
        folder: tempfile::TempDir,
        surroundings: KubeEnvironment,
    }

    fn files(texts: &[&str]) -> Files {
        let folder = tempfile::tempdir().expect("a folder");
        let mut paths = Vec::new();
        for (i, text) in texts.iter().enumerate() {
            paths.push(folder.path().join(format!("config{i}")));
            fs::write(&paths[i], text).expect("written");
        }
        paths.push(folder.path().join("missing"));
        let kubeconfig = Some(std::env::join_paths(&paths).expect("no colons"));
        Files { folder, surroundings: KubeEnvironment { kubeconfig, ..KubeEnvironment::default() } }
    }

    async fn choose(files: &Files, options: ConnectOptions) -> Result<ClusterTarget, ConnectError> {
        target(&options, &files.surroundings).await
    }

    fn some(text: &str) -> Option<String> {
        Some(text.into())
    }

    #[tokio::test]
    async fn of_several_files_the_first_to_name_something_wins() {
        let files = files(&[FIRST, SECOND]);
        let target = choose(&files, ConnectOptions::default()).await.expect("context a");
        assert_eq!((&*target.context, &*target.user), ("a", "alice"));
        assert_eq!(target.config.cluster_url.host(), Some("one"));
        assert_eq!(target.config.default_namespace, "team");
        let options = ConnectOptions { context: some("b"), ..ConnectOptions::default() };
        let target = choose(&files, options).await.expect("context b of the second file");
        assert_eq!(target.config.cluster_url.host(), Some("two"));
        assert_eq!(target.config.proxy_url.expect("its own").host(), Some("p"));
    }

    #[tokio::test]
    async fn flags_go_over_what_the_context_says() {
        let files = files(&[FIRST, SECOND]);
        let options = ConnectOptions {
            server: some("three:8443"),
            user: some("bob"),
            token: some("t"),
            namespace: some("other"),
            impersonate: some("carol"),
            impersonate_groups: vec!["ops".into()],
            insecure_skip_tls_verify: true,
            ..ConnectOptions::default()
        };
        let target = choose(&files, options).await.expect("all is known");
        assert_eq!(target.config.cluster_url.to_string(), "https://three:8443/");
        assert_eq!(target.config.default_namespace, "other");
        assert!(target.config.accept_invalid_certs);
        assert_eq!(target.config.auth_info.impersonate.as_deref(), Some("carol"));
        assert_eq!(target.user, "bob");
    }

    #[tokio::test]
    async fn a_server_alone_needs_no_kubeconfig() {
        let nowhere = Files {
            folder: tempfile::tempdir().expect("a folder"),
            surroundings: KubeEnvironment::default(),
        };
        let options = ConnectOptions { server: some("http://127.0.0.1:1"), ..ConnectOptions::default() };
        let target = choose(&nowhere, options).await.expect("enough is known");
        assert_eq!(target.config.cluster_url.port_u16(), Some(1));
    }

    #[tokio::test]
    async fn what_is_wrong_is_said_in_words() {
        let files = files(&[FIRST, SECOND]);
        let said = async |options| choose(&files, options).await.expect_err("wrong").to_string();
        let default = ConnectOptions::default;
        assert_eq!(
            said(ConnectOptions { context: some("prod"), ..default() }).await,
            "there is no context \"prod\" in the kubeconfig; known contexts: a, b, broken"
        );
        let text = said(ConnectOptions { context: some("broken"), ..default() }).await;
        assert!(text.contains("\"nowhere\"") && text.contains("one, two"), "{text}");
        let text = said(ConnectOptions { user: some("eve"), ..default() }).await;
        assert!(text.contains("\"eve\"") && text.contains("alice, bob"), "{text}");
        let path = files.folder.path().join("nope");
        let text = said(ConnectOptions { kubeconfig: Some(path), ..default() }).await;
        assert!(text.contains("nope") && text.contains("no such file"), "{text}");
        let text = said(ConnectOptions { impersonate_groups: vec!["g".into()], ..default() }).await;
        assert!(text.contains("--as "), "{text}");
    }

    #[tokio::test]
    async fn without_any_kubeconfig_the_demo_is_named() {
        let none = files(&[]);
        let text = choose(&none, ConnectOptions::default()).await.expect_err("nothing there").to_string();
        assert!(text.contains("missing") && text.contains("kordon demo"), "{text}");
    }

    #[tokio::test]
    async fn utf16_is_read_and_named_where_it_ends_within_a_character() {
        let files = files(&[""]);
        let path = files.folder.path().join("config0");
        let utf16: Vec<u8> = FIRST.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let choose = async |tail: &[u8]| {
            fs::write(&path, [&[0xFF, 0xFE], &*utf16, tail].concat()).expect("written");
            choose(&files, ConnectOptions::default()).await
        };
        assert_eq!(choose(&[]).await.expect("it is read").context, "a");
        let error = choose(b"x").await.expect_err("it has half a character").to_string();
        assert!(error.contains("config0") && error.contains("UTF-16"), "{error}");
    }

    #[tokio::test]
    async fn a_malformed_file_is_named_with_the_place_and_without_its_secrets() {
        let files = files(&["users:\n- name: alice\n  user: {token: [s3cret}\nclusters: 7\n"]);
        let text = choose(&files, ConnectOptions::default()).await.expect_err("malformed").to_string();
        assert!(text.contains("config0") && text.contains("line "), "{text}");
        assert!(!text.contains("s3cret") && !text.contains('\n'), "{text}");
    }
}
