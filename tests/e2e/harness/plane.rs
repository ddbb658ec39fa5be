//! A real Kubernetes control plane on loopback: etcd, kube-apiserver and, if a test starts them,
//! kube-controller-manager, kube-scheduler and kubectl.
//!
//! All five are one program, which `tests/control-plane/build` builds. There are no real kubelets; see `kubelets.rs`.

use std::{
    fs,
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::{
    authorization::v1::SubjectAccessReview,
    rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule},
};
use kordon_core::engine::{Origin, ServerVersion, Settings};
use kordon_time::Span;
use kube::{
    Api, Client, Config,
    api::PostParams,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{component::Component, eventually::eventually};

/// Release of the control plane that `tests/control-plane/build` builds.
pub const VERSION: ServerVersion = ServerVersion::new(1, 37);

/// The control plane's administrator.
pub const ADMIN: &str = "admin";

/// Duration of a controller manager's Lease if the Lease is [short](ControllerManager::with_short_lease).
pub const LEASE_DURATION: Span = Span::from_secs(6);

/// Label of the objects that `grant` creates. `wipe` deletes the objects with this label.
const GRANT_LABEL: &str = "kordon.test/grant";

/// A running control plane in a new folder, on free ports. Dropping this value stops it.
///
/// A test that panics keeps the folder with all logs, and prints its path.
pub struct Plane {
    binary: PathBuf,
    options: Options,
    folder: TempDir,
    ports: Ports,
    client: Client,
    // Components are dropped in the order of these fields.
    scheduler: Option<Component>,
    controller_manager: Option<Component>,
    kordon: Option<Component>,
    standby: Option<Component>,
    api_server: Option<Component>,
    etcd: Component,
}

/// Setup of etcd and the API server.
#[derive(Clone, Debug)]
pub struct Options {
    /// The tolerationSeconds that admission adds for nodes that are not ready or unreachable (Kubernetes' default:
    /// 300).
    pub toleration_seconds: u32,
    /// Whether every request is written to the audit log; see [`Plane::audit`].
    pub audit: bool,
    /// Users other than the administrator. They have no rights until [`Plane::grant`].
    pub users: Vec<&'static str>,
    pub lifecycle: Lifecycle,
    /// Disabled admission plugins.
    pub no_admission: Vec<&'static str>,
}

/// Program that runs the controllers for node lifecycle, taint eviction and pod garbage collection, if a test asks for
/// them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lifecycle {
    #[default]
    Upstream,
    /// `kordon controller --enforce` as this user; kube-controller-manager runs all other controllers.
    Kordon { user: &'static str },
}

/// The controllers that kordon can run.
pub const LIFECYCLE: [&str; 3] =
    ["node-lifecycle-controller", "taint-eviction-controller", "pod-garbage-collector-controller"];

impl Default for Options {
    fn default() -> Self {
        Self {
            toleration_seconds: 300,
            audit: false,
            users: Vec::new(),
            lifecycle: Lifecycle::Upstream,
            // Without the ServiceAccount plugin, the API server accepts a pod whose service account no controller has
            // created.
            no_admission: vec!["ServiceAccount"],
        }
    }
}

/// Flags of kube-controller-manager. The defaults are fast enough for tests: a pass each second, a grace period of 5 s.
#[derive(Clone, Debug)]
pub struct ControllerManager {
    pub monitor_period: Span,
    pub grace_period: Span,
    pub startup_grace_period: Span,
    /// Evictions of nodes per second. Neither this rate nor the secondary rate may be exactly 1: a stopped rate limiter
    /// counts as one with rate 1, so upstream would evict nothing after a disruption.
    pub eviction_rate: f64,
    pub secondary_eviction_rate: f64,
    pub large_cluster_threshold: u32,
    pub unhealthy_zone_threshold: f64,
    /// Controllers to run; `*` for all.
    pub controllers: Vec<&'static str>,
    /// Whether kube-controller-manager needs the Lease kube-system/kube-controller-manager to run its controllers.
    pub leader_elect: bool,
    /// Further flags, as on the command line.
    pub flags: Vec<String>,
}

impl Default for ControllerManager {
    fn default() -> Self {
        Self {
            monitor_period: Span::from_secs(1),
            grace_period: Span::from_secs(5),
            startup_grace_period: Span::from_secs(8),
            eviction_rate: 2.0,
            secondary_eviction_rate: 0.5,
            large_cluster_threshold: 50,
            unhealthy_zone_threshold: 0.55,
            controllers: vec!["node-lifecycle-controller", "taint-eviction-controller"],
            leader_elect: false,
            flags: Vec::new(),
        }
    }
}

impl ControllerManager {
    /// Sets a short Lease, so that another controller manager can take over soon.
    pub fn with_short_lease(self) -> Self {
        let lease = LEASE_DURATION.as_secs();
        let flags =
            [format!("lease-duration={lease}s"), "renew-deadline=4s".into(), "retry-period=1s".into()];
        let flags = flags.map(|flag| format!("--leader-elect-{flag}")).into();
        Self { leader_elect: true, flags, ..self }
    }

    /// Returns kordon's settings with the values of these flags.
    pub fn settings(&self) -> Result<Settings> {
        let mut settings = Settings::defaults(VERSION);
        let flags = [
            ("node-monitor-period", format!("{}s", self.monitor_period.as_secs())),
            ("node-monitor-grace-period", format!("{}s", self.grace_period.as_secs())),
            ("node-startup-grace-period", format!("{}s", self.startup_grace_period.as_secs())),
            ("node-eviction-rate", self.eviction_rate.to_string()),
            ("secondary-node-eviction-rate", self.secondary_eviction_rate.to_string()),
            ("large-cluster-size-threshold", self.large_cluster_threshold.to_string()),
            ("unhealthy-zone-threshold", self.unhealthy_zone_threshold.to_string()),
            ("controllers", self.controllers.join(",")),
        ];
        for (flag, text) in flags {
            ensure!(settings.set(flag, &text, Origin::Override)?, "{flag}");
        }
        Ok(settings)
    }

    /// Returns the flags that give kordon's commands these settings.
    pub fn flags_of_kordon(&self) -> Result<Vec<String>> {
        let flags = self.settings()?.flags().into_iter().filter(|(flag, ..)| *flag != "controllers");
        Ok(flags.map(|(flag, value, _)| format!("--{flag}={value}")).collect())
    }
}

/// Returns the path of the control plane's binary. If there is none, prints that `test` is skipped and why, and returns
/// `None`.
///
/// `KORDON_CONTROL_PLANE` names the binary; if it is empty, the tests are skipped. If it is not set, the binary is the
/// one that `tests/control-plane/build` writes. With `KORDON_E2E=1` a missing binary is an error.
pub fn binary(test: &str) -> Result<Option<PathBuf>> {
    let (found, why) = match std::env::var_os("KORDON_CONTROL_PLANE") {
        Some(path) if path.is_empty() => (None, "KORDON_CONTROL_PLANE is empty"),
        Some(path) => {
            let path = PathBuf::from(path);
            ensure!(path.is_file(), "KORDON_CONTROL_PLANE names {}, which is not a file", path.display());
            (Some(path), "")
        }
        None => (built_binary(), "the real control plane is not built (run tests/control-plane/build)"),
    };
    if found.is_none() {
        ensure!(std::env::var("KORDON_E2E").as_deref() != Ok("1"), "{test}: {why}");
        super::say(&format!("{test}: skipped: {why}"));
    }
    Ok(found)
}

/// Returns the path to which the build script writes the binary, if that file exists.
fn built_binary() -> Option<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/control-plane/build");
    let output = Command::new(script).arg("--path-only").output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    path.is_file().then_some(path)
}

impl Plane {
    /// Starts etcd and the API server. Returns once the API server is ready to serve an administrator. Takes about 4 s.
    pub async fn start(binary: &Path, options: Options) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("kordon-plane-").tempdir()?;
        let ports = Ports::free()?;
        fs::write(folder.path().join("tokens.csv"), token_lines(&options.users))?;
        fs::write(folder.path().join("audit-policy.yaml"), AUDIT_POLICY)?;

        let mut etcd = Component::start(binary, "etcd", &etcd_flags(folder.path(), &ports), folder.path())?;
        let mut api_server = start_api_server(binary, folder.path(), &ports, &options)?;
        let client = eventually("a certificate of the API server", Span::from_secs(30), async || {
            etcd.check()?;
            api_server.check()?;
            connect(folder.path(), &ports, ADMIN).await
        })
        .await?;

        let mut plane = Self {
            binary: binary.to_path_buf(),
            options,
            folder,
            ports,
            client,
            scheduler: None,
            controller_manager: None,
            kordon: None,
            standby: None,
            api_server: Some(api_server),
            etcd,
        };
        plane.until_ready().await?;
        Ok(plane)
    }

    /// Returns an administrator's client, which never retries a request.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Returns a client of one of [`Options::users`].
    pub async fn client_of(&self, user: &str) -> Result<Client> {
        connect(self.folder(), &self.ports, user).await?.context("the API server has no certificate")
    }

    /// Writes a kubeconfig file for the administrator or one of [`Options::users`], and returns its path.
    pub fn kubeconfig(&self, user: &str) -> Result<PathBuf> {
        write_kubeconfig(self.folder(), &self.ports, user)
    }

    /// Writes a kubeconfig file for a proxy, which needs no credentials, and returns its path.
    pub fn kubeconfig_of(&self, url: &str) -> Result<PathBuf> {
        let path = self.folder().join("kubeconfig-proxy");
        let content = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "proxy", "cluster": { "server": url } }],
            "contexts": [{ "name": "proxy", "context": { "cluster": "proxy", "user": "" } }],
            "current-context": "proxy",
        });
        fs::write(&path, serde_json::to_vec_pretty(&content)?).context("writing a kubeconfig")?;
        Ok(path)
    }

    /// Returns the output of kube-scheduler.
    pub fn scheduler_log(&self) -> Result<String> {
        fs::read_to_string(self.folder().join("kube-scheduler.log")).context("reading the scheduler's log")
    }

    /// Returns the folder of all data, certificates and logs.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs the real kubectl as an administrator and returns its standard output.
    pub async fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.binary);
        command.arg("kubectl").args(arguments).env("KUBECONFIG", self.kubeconfig(ADMIN)?);
        let output = tokio::task::spawn_blocking(move || command.output()).await??;
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            bail!("kubectl {}: {}\n{printed}{errors}", arguments.join(" "), output.status);
        }
        Ok(printed)
    }

    /// Runs a line in a shell with the real kubectl, as an administrator. Stops it after half a minute.
    pub async fn shell(&self, line: &str) -> Result<String> {
        let folder = self.folder().join("bin");
        let kubectl = folder.join("kubectl");
        if !kubectl.exists() {
            fs::create_dir_all(&folder)?;
            std::os::unix::fs::symlink(&self.binary, &kubectl)?;
        }
        let path = format!("{}:{}", folder.display(), std::env::var("PATH")?);
        let mut command = Command::new("timeout");
        command.args(["30", "sh", "-ec", line]).env("PATH", path).env("KUBECONFIG", self.kubeconfig(ADMIN)?);
        let output = tokio::task::spawn_blocking(move || command.output()).await??;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (printed, errors) = (text(&output.stdout), text(&output.stderr));
        ensure!(output.status.success(), "{line}: {}\n{printed}{errors}", output.status);
        Ok(printed)
    }

    /// Gives a user rights in the whole cluster, and waits until the API server has loaded them.
    pub async fn grant(&self, user: &str, rules: &[PolicyRule]) -> Result<()> {
        let metadata = json!({ "name": format!("test-{user}"), "labels": { GRANT_LABEL: "" } });
        let role = serde_json::from_value(json!({ "metadata": metadata, "rules": rules }))?;
        let binding = serde_json::from_value(json!({
            "metadata": metadata,
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": format!("test-{user}") },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }],
        }))?;
        Api::<ClusterRole>::all(self.client()).create(&PostParams::default(), &role).await?;
        Api::<ClusterRoleBinding>::all(self.client()).create(&PostParams::default(), &binding).await?;
        for review in access_reviews(user, rules)? {
            let reviews = Api::<SubjectAccessReview>::all(self.client());
            eventually("the rights just granted", Span::from_secs(5), async || {
                let answer = reviews.create(&PostParams::default(), &review).await?;
                Ok(answer.status.filter(|status| status.allowed).map(drop))
            })
            .await?;
        }
        Ok(())
    }

    /// Returns the API server's audit log, which has all answered requests. Needs [`Options::audit`].
    ///
    /// Log entries of deletions, evictions and creations of pods, and of scaled Deployments, have a `requestObject`.
    /// The body of a deletion decides whether it is a dry run; a deletion without a body is a dry run if its URI says
    /// so.
    pub fn audit(&self) -> Result<Vec<Value>> {
        self.audited(|_| true)
    }

    /// Returns the requests of one user. Parses only the lines that name the user, because after an hour the whole log
    /// is too large to parse.
    pub fn audit_of(&self, user: &str) -> Result<Vec<Value>> {
        let named = format!("\"username\":\"{user}\"");
        let mut lines = self.audited(|line| line.contains(&named))?;
        lines.retain(|line| line["user"]["username"] == user);
        Ok(lines)
    }

    fn audited(&self, wanted: impl Fn(&str) -> bool) -> Result<Vec<Value>> {
        ensure!(self.options.audit, "the plane was started without an audit log");
        let text = fs::read_to_string(self.folder().join("audit.log")).context("reading the audit log")?;
        let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)]; // the last line may still be growing
        whole.lines().filter(|line| wanted(line)).map(|line| Ok(serde_json::from_str(line)?)).collect()
    }

    /// Runs a scenario and deletes the objects that it created. `KORDON_E2E_ONLY` selects scenarios by a part of their
    /// names.
    ///
    /// # Panics
    /// The scenario failed, or its objects cannot be deleted.
    pub async fn scenario(&mut self, name: &str, run: impl AsyncFnOnce(&mut Self) -> Result<()>) {
        if std::env::var("KORDON_E2E_ONLY").is_ok_and(|only| !name.contains(&only)) {
            return;
        }
        let started = tokio::time::Instant::now();
        if let Err(error) = run(self).await {
            panic!("{name}: {error:#}");
        }
        self.stop_controller_manager().await.unwrap();
        self.stop_scheduler().await.unwrap();
        self.wipe().await.unwrap();
        super::say(&format!("{name}: {:.1} s", started.elapsed().as_secs_f64()));
    }

    /// Deletes all workloads, budgets, pods, nodes, their Leases, namespaces and grants that tests have created, and
    /// the Leases of leaders.
    pub async fn wipe(&self) -> Result<()> {
        super::cleanup::delete_all(&self.client, GRANT_LABEL).await
    }
}

/// Components that a test starts and stops.
impl Plane {
    pub fn start_controller_manager(&mut self, settings: &ControllerManager) -> Result<()> {
        ensure!(self.controller_manager.is_none(), "kube-controller-manager runs already");
        ensure!(
            settings.eviction_rate != 1.0 && settings.secondary_eviction_rate != 1.0,
            "an eviction rate of exactly 1 evicts nothing after a disruption"
        );
        let Lifecycle::Kordon { user } = self.options.lifecycle else {
            self.controller_manager = Some(self.another_controller_manager(settings)?);
            return Ok(());
        };
        let excluded = LIFECYCLE.map(|name| format!("-{name}"));
        let is_all = settings.controllers.contains(&"*");
        let ours = LIFECYCLE.into_iter().filter(|name| is_all || settings.controllers.contains(name));
        let kordon = self.start_kordon("kordon", user, settings, &ours.collect::<Vec<_>>())?;
        self.kordon = Some(kordon);
        if is_all {
            let flag = format!("--controllers=*,{}", excluded.join(","));
            let flags = settings.flags.iter().cloned().chain([flag]).collect();
            let rest = ControllerManager { flags, ..settings.clone() };
            self.controller_manager = Some(self.another_controller_manager(&rest)?);
        }
        Ok(())
    }

    /// Starts `kordon controller --enforce` with the settings of a controller manager and a short Lease.
    pub fn start_kordon(
        &self,
        name: &'static str,
        user: &str,
        settings: &ControllerManager,
        controllers: &[&str],
    ) -> Result<Component> {
        let flags = settings.flags_of_kordon()?.into_iter();
        self.start_kordon_with(name, &self.kubeconfig(user)?, &controllers.join(","), flags)
    }

    /// Like [`Self::start_kordon`], with these flags of kube-controller-manager and this kubeconfig.
    pub fn start_kordon_with(
        &self,
        name: &'static str,
        kubeconfig: &Path,
        controllers: &str,
        flags: impl IntoIterator<Item = String>,
    ) -> Result<Component> {
        let mut all = vec![
            "--enforce".to_owned(),
            "--listen=127.0.0.1:0".into(),
            "--output=json".into(),
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--controllers={controllers}"),
            format!("--manager-controllers=*,-{}", LIFECYCLE.join(",-")),
            "--kube-api-qps=500".into(),
            "--kube-api-burst=1000".into(),
            format!("--leader-elect-lease-duration={}s", LEASE_DURATION.as_secs()),
            "--leader-elect-renew-deadline=4s".into(),
            "--leader-elect-retry-period=1s".into(),
        ];
        all.extend(flags);
        Component::start_kordon(&crate::common::program::path_of_binary(), name, &all, self.folder())
    }

    fn another_controller_manager(&self, settings: &ControllerManager) -> Result<Component> {
        let flags = controller_manager_flags(&self.kubeconfig(ADMIN)?, self.folder(), settings);
        Component::start(&self.binary, "kube-controller-manager", &flags, self.folder())
    }

    /// Starts another kube-controller-manager, which waits for the Lease of the running one.
    pub fn start_standby(&mut self, settings: &ControllerManager) -> Result<()> {
        self.standby = Some(self.another_controller_manager(settings)?);
        Ok(())
    }

    /// Kills the running kube-controller-manager; the waiting one becomes the leader.
    pub fn fail_over(&mut self) -> Result<()> {
        self.kill_controller_manager()?;
        self.controller_manager = self.standby.take();
        Ok(())
    }

    pub fn pause_controller_manager(&self) -> Result<()> {
        self.controller_manager.as_ref().context("kube-controller-manager does not run")?.pause()
    }

    pub fn resume_controller_manager(&self) -> Result<()> {
        self.controller_manager.as_ref().context("kube-controller-manager does not run")?.resume()
    }

    /// Starts kube-controller-manager again if it has ended by itself, as a kubelet would. A controller manager that
    /// was paused while it renewed its Lease ends when it is resumed. Returns whether it had ended.
    pub fn revive_controller_manager(&mut self, settings: &ControllerManager) -> Result<bool> {
        let running = self.controller_manager.as_mut().context("kube-controller-manager does not run")?;
        let has_ended = running.ended()?.is_some();
        if has_ended {
            self.controller_manager = Some(self.another_controller_manager(settings)?);
        }
        Ok(has_ended)
    }

    pub fn start_scheduler(&mut self) -> Result<()> {
        self.start_scheduler_with(&[])
    }

    /// Starts kube-scheduler with additional flags.
    pub fn start_scheduler_with(&mut self, flags: &[&str]) -> Result<()> {
        ensure!(self.scheduler.is_none(), "kube-scheduler runs already");
        let mut all = vec![
            format!("--kubeconfig={}", self.kubeconfig(ADMIN)?.display()),
            "--leader-elect=false".into(),
            "--secure-port=0".into(),
            "--authentication-skip-lookup=true".into(),
        ];
        all.extend(flags.iter().map(|flag| (*flag).to_owned()));
        self.scheduler = Some(Component::start(&self.binary, "kube-scheduler", &all, self.folder())?);
        Ok(())
    }

    /// Starts the API server again with the same etcd, port and certificate, and waits until it is ready.
    pub async fn start_api_server(&mut self) -> Result<()> {
        ensure!(self.api_server.is_none(), "kube-apiserver runs already");
        self.api_server =
            Some(start_api_server(&self.binary, self.folder.path(), &self.ports, &self.options)?);
        self.until_ready().await
    }

    /// Stops kube-controller-manager if it runs.
    pub async fn stop_controller_manager(&mut self) -> Result<()> {
        if let Some(mut kordon) = self.kordon.take() {
            kordon.stop().await?;
        }
        match self.controller_manager.take() {
            Some(mut running) => running.stop().await,
            None => Ok(()),
        }
    }

    pub fn kill_controller_manager(&mut self) -> Result<()> {
        self.controller_manager.take().context("kube-controller-manager does not run")?.kill()
    }

    /// Stops kube-scheduler if it runs.
    pub async fn stop_scheduler(&mut self) -> Result<()> {
        match self.scheduler.take() {
            Some(mut running) => running.stop().await,
            None => Ok(()),
        }
    }

    pub fn kill_api_server(&mut self) -> Result<()> {
        self.api_server.take().context("kube-apiserver does not run")?.kill()
    }

    /// Pauses the API server. It then accepts connections, but answers none.
    pub fn pause_api_server(&self) -> Result<()> {
        self.api_server.as_ref().context("kube-apiserver does not run")?.pause()
    }

    pub fn resume_api_server(&self) -> Result<()> {
        self.api_server.as_ref().context("kube-apiserver does not run")?.resume()
    }

    /// Fails if a component has ended by itself.
    pub fn check(&mut self) -> Result<()> {
        self.etcd.check()?;
        for component in
            [&mut self.api_server, &mut self.controller_manager, &mut self.scheduler].into_iter().flatten()
        {
            component.check()?;
        }
        Ok(())
    }

    /// Waits for `/readyz`. An open port is not enough: the API server loads RBAC rules only after it has opened the
    /// port.
    async fn until_ready(&mut self) -> Result<()> {
        let client = self.client();
        eventually("a ready API server", Span::from_secs(60), async || {
            self.check()?;
            let request = http::Request::get("/readyz").body(Vec::new())?;
            let answer = tokio::time::timeout(Duration::from_secs(2), client.request_text(request)).await;
            Ok(matches!(answer, Ok(Ok(text)) if text == "ok").then_some(()))
        })
        .await
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.folder.disable_cleanup(true);
            super::say(&format!("the control plane's logs are in {}", self.folder().display()));
        }
    }
}

/// Three free ports.
struct Ports {
    etcd_clients: u16,
    etcd_peers: u16,
    api: u16,
}

impl Ports {
    fn free() -> Result<Self> {
        let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("looking for a free port");
        let listeners = [bind()?, bind()?, bind()?]; // all open at once, so that the ports differ
        let [etcd_clients, etcd_peers, api] =
            listeners.map(|listener| listener.local_addr().map(|own| own.port()));
        Ok(Self { etcd_clients: etcd_clients?, etcd_peers: etcd_peers?, api: api? })
    }
}

fn etcd_flags(folder: &Path, ports: &Ports) -> Vec<String> {
    let (clients, peers) = (local(ports.etcd_clients), local(ports.etcd_peers));
    vec![
        format!("--data-dir={}", folder.join("etcd").display()),
        format!("--listen-client-urls={clients}"),
        format!("--advertise-client-urls={clients}"),
        format!("--listen-peer-urls={peers}"),
        format!("--initial-advertise-peer-urls={peers}"),
        format!("--initial-cluster=default={peers}"),
        "--unsafe-no-fsync".into(),
    ]
}

fn local(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

fn start_api_server(binary: &Path, folder: &Path, ports: &Ports, options: &Options) -> Result<Component> {
    let flags = api_server_flags(folder, ports, options);
    Component::start(binary, "kube-apiserver", &flags, folder)
}

fn api_server_flags(folder: &Path, ports: &Ports, options: &Options) -> Vec<String> {
    let path = |name: &str| folder.join(name).display().to_string();
    let key = path("certificates/apiserver.key"); // the server creates it; it also signs service account tokens
    let mut flags = vec![
        format!("--etcd-servers={}", local(ports.etcd_clients)),
        "--bind-address=127.0.0.1".into(),
        "--endpoint-reconciler-type=none".into(), // no endpoint for the API's Service: it cannot be on loopback
        format!("--secure-port={}", ports.api),
        format!("--cert-dir={}", path("certificates")),
        "--service-cluster-ip-range=10.0.0.0/24".into(),
        "--service-account-issuer=https://localhost".into(),
        format!("--service-account-key-file={key}"),
        format!("--service-account-signing-key-file={key}"),
        format!("--token-auth-file={}", path("tokens.csv")),
        "--authorization-mode=RBAC".into(),
        format!("--disable-admission-plugins={}", options.no_admission.join(",")),
        "--max-requests-inflight=4000".into(),
        "--max-mutating-requests-inflight=2000".into(),
        format!("--default-not-ready-toleration-seconds={}", options.toleration_seconds),
        format!("--default-unreachable-toleration-seconds={}", options.toleration_seconds),
    ];
    if options.audit {
        flags.extend([
            format!("--audit-log-path={}", path("audit.log")),
            format!("--audit-policy-file={}", path("audit-policy.yaml")),
            "--audit-log-maxsize=0".into(), // one file, however large
        ]);
    }
    flags
}

/// Logs the bodies of scale requests, and of requests whose body decides whether they are dry runs.
const AUDIT_POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Request
  verbs: [create, delete]
  resources: [{ group: '', resources: [pods, pods/eviction] }]
- level: Request
  verbs: [patch]
  resources: [{ group: apps, resources: [deployments/scale] }]
- level: Metadata
";

fn controller_manager_flags(kubeconfig: &Path, folder: &Path, settings: &ControllerManager) -> Vec<String> {
    let nanos = |span: Span| format!("{}ns", span.as_nanos());
    let mut flags = vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--service-account-private-key-file={}", folder.join("certificates/apiserver.key").display()),
        "--secure-port=0".into(),
        "--kube-api-qps=500".into(),
        "--kube-api-burst=1000".into(),
        format!("--node-monitor-period={}", nanos(settings.monitor_period)),
        format!("--node-monitor-grace-period={}", nanos(settings.grace_period)),
        format!("--node-startup-grace-period={}", nanos(settings.startup_grace_period)),
        format!("--node-eviction-rate={}", settings.eviction_rate),
        format!("--secondary-node-eviction-rate={}", settings.secondary_eviction_rate),
        format!("--large-cluster-size-threshold={}", settings.large_cluster_threshold),
        format!("--unhealthy-zone-threshold={}", settings.unhealthy_zone_threshold),
        format!("--controllers={}", settings.controllers.join(",")),
        format!("--leader-elect={}", settings.leader_elect),
    ];
    flags.extend(settings.flags.iter().cloned());
    flags
}

/// Returns one line for each user: token, name, uid, groups.
fn token_lines(users: &[&str]) -> String {
    let admin = format!("{},{ADMIN},{ADMIN},\"system:masters\"\n", token(ADMIN));
    users.iter().fold(admin, |lines, user| lines + &format!("{},{user},{user}\n", token(user)))
}

fn token(user: &str) -> String {
    format!("token-of-{user}")
}

/// Creates a client for a user; `None` until the API server has created its certificate.
async fn connect(folder: &Path, ports: &Ports, user: &str) -> Result<Option<Client>> {
    let whole = |text: String| text.contains("-----END CERTIFICATE-----");
    if !fs::read_to_string(folder.join(CERTIFICATE)).is_ok_and(whole) {
        return Ok(None);
    }
    let kubeconfig = Kubeconfig::read_from(write_kubeconfig(folder, ports, user)?)?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    config.default_retry = false;
    Ok(Some(Client::try_from(config)?))
}

/// Path of the file with the server's certificate and the certificate of the authority that signed it.
const CERTIFICATE: &str = "certificates/apiserver.crt";

fn write_kubeconfig(folder: &Path, ports: &Ports, user: &str) -> Result<PathBuf> {
    // The file name has no colon, because a colon separates paths in KUBECONFIG.
    let path = folder.join(format!("kubeconfig-{}", user.replace(':', "-")));
    let content = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "plane", "cluster": {
            "server": format!("https://127.0.0.1:{}", ports.api),
            "certificate-authority": folder.join(CERTIFICATE),
        }}],
        "users": [{ "name": user, "user": { "token": token(user) } }],
        "contexts": [{ "name": user, "context": { "cluster": "plane", "user": user } }],
        "current-context": user,
    });
    // The file is replaced as a whole, because others may be reading it.
    let file = tempfile::NamedTempFile::new_in(folder).context("writing a kubeconfig")?;
    serde_json::to_writer_pretty(&file, &content)?;
    file.persist(&path)?;
    Ok(path)
}

/// Returns one access review for each right in the rules.
fn access_reviews(user: &str, rules: &[PolicyRule]) -> Result<Vec<SubjectAccessReview>> {
    let mut reviews = Vec::new();
    for rule in rules {
        for verb in &rule.verbs {
            for group in rule.api_groups.iter().flatten() {
                for resource in rule.resources.iter().flatten() {
                    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
                    reviews.push(serde_json::from_value(
                        json!({ "spec": { "user": user, "resourceAttributes": {
                            "verb": verb, "group": group, "resource": resource, "subresource": subresource,
                        }}}),
                    )?);
                }
            }
        }
    }
    Ok(reviews)
}
