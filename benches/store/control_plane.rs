//! A real etcd and kube-apiserver with a large cluster in it.
//!
//! The objects are written into etcd before the API server starts, many in one write, as in a restored backup: 150,000
//! pods would be 300,000 writes through the API. Changes under load are also written to etcd, in place of the other API
//! servers of such a cluster: this API server would use more than a core for them. Clients see no difference.

#[path = "../../tests/e2e/harness/eventually.rs"]
pub mod eventually;

use std::{
    fs::{self, File},
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use http::Request;
use kordon_time::Span;
use serde_json::json;

use self::eventually::eventually;
use super::{
    bare,
    etcd::{self, Etcd},
    large_cluster::objects::LargeCluster,
    leashed::Leashed,
    process::Process,
};

/// File with the server's certificate and the certificate of the authority that signed it.
const CERTIFICATE: &str = "certificates/apiserver.crt";
/// File with the size of the cluster, in the folder of its data. The file exists once all objects are in etcd.
const FILLED: &str = "filled";
/// Data folders of etcd: the data as first written, and the copy that etcd runs on.
const DATA: [&str; 2] = ["etcd-filled", "etcd"];

pub struct ControlPlane {
    pub kubeconfig: PathBuf,
    pub etcd_address: String,
    // The fields are dropped in this order: the API server stops before etcd.
    api_server: Leashed,
    etcd: Leashed,
}

impl ControlPlane {
    /// Starts on the data in a folder. The data is created first if it is missing or of another size.
    pub fn start(folder: &Path, cluster: LargeCluster) -> Result<Self> {
        let binary = binary()?;
        let size = format!("{} nodes, {} pods", cluster.nodes, cluster.pods);
        let is_filled = fs::read_to_string(folder.join(FILLED)).is_ok_and(|filled| filled == size);
        let runtime = tokio::runtime::Runtime::new()?;
        let [clients, peers, port] = free_ports()?;
        let etcd_address = format!("http://127.0.0.1:{clients}");
        let [filled, used] = DATA.map(|data| folder.join(data));
        if !is_filled {
            // Existing data is incomplete, or belongs to a cluster of another size.
            let _ = fs::remove_dir_all(&filled);
            fs::create_dir_all(folder)?;
            let begun = Instant::now();
            let _running = component(&binary, "etcd", &etcd_flags(&filled, clients, peers), folder)?;
            runtime.block_on(async { Etcd::connect(&etcd_address).await?.fill(cluster).await })?;
            fs::write(folder.join(FILLED), &size)?;
            println!("{size} written to etcd in {:.1?}", begun.elapsed());
        }
        etcd::copy_data(&filled, &used)?;
        let mut etcd = component(&binary, "etcd", &etcd_flags(&used, clients, peers), folder)?;
        runtime.block_on(Etcd::connect(&etcd_address))?;
        fs::write(folder.join("tokens.csv"), "token,admin,admin,\"system:masters\"\n")?;
        let begun = Instant::now();
        let mut api_server =
            component(&binary, "kube-apiserver", &api_server_flags(folder, clients, port), folder)?;
        let kubeconfig = folder.join("kubeconfig");
        runtime.block_on(eventually("a ready API server", Span::from_secs(300), async || {
            check("etcd", &mut etcd, folder)?;
            check("kube-apiserver", &mut api_server, folder)?;
            is_ready(folder, port, &kubeconfig).await
        }))?;
        println!("kube-apiserver ready after {:.1?}", begun.elapsed());
        Ok(Self { kubeconfig, etcd_address, api_server, etcd })
    }

    pub fn processes(&self) -> Vec<(&'static str, Process)> {
        vec![("kube-apiserver", self.api_server.process()), ("etcd", self.etcd.process())]
    }
}

/// Returns the binary that `KORDON_CONTROL_PLANE` names, or the one that `tests/control-plane/build` has built.
fn binary() -> Result<PathBuf> {
    let named = std::env::var_os("KORDON_CONTROL_PLANE").map(PathBuf::from);
    let binary = match named {
        Some(named) => named,
        None => {
            let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/control-plane/build");
            let output = Command::new(script).arg("--path-only").output()?;
            PathBuf::from(String::from_utf8(output.stdout)?.trim())
        }
    };
    ensure!(binary.is_file(), "{} is not there: run tests/control-plane/build", binary.display());
    Ok(binary)
}

/// Starts a component and appends its output to `NAME.log`.
fn component(binary: &Path, name: &str, flags: &[String], folder: &Path) -> Result<Leashed> {
    let log = File::options().create(true).append(true).open(folder.join(format!("{name}.log")))?;
    let mut command = Command::new(binary);
    command.arg(name).args(flags).env("CONTROL_PLANE_LEASH", "1").stdout(log.try_clone()?).stderr(log);
    Ok(Leashed::start(&mut command))
}

fn check(name: &str, component: &mut Leashed, folder: &Path) -> Result<()> {
    match component.ended() {
        None => Ok(()),
        Some(status) => bail!("{name} ended ({status}): see {name}.log in {}", folder.display()),
    }
}

/// Checks whether the API server is ready: `Some` if it is. Writes the kubeconfig as soon as the server's certificate
/// exists.
async fn is_ready(folder: &Path, port: u16, kubeconfig: &Path) -> Result<Option<()>> {
    let whole = |text: String| text.contains("-----END CERTIFICATE-----");
    if !fs::read_to_string(folder.join(CERTIFICATE)).is_ok_and(whole) {
        return Ok(None);
    }
    let content = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "real",
        "clusters": [{"name": "real", "cluster": {
            "server": format!("https://127.0.0.1:{port}"), "certificate-authority": folder.join(CERTIFICATE),
        }}],
        "users": [{"name": "admin", "user": {"token": "token"}}],
        "contexts": [{"name": "real", "context": {"cluster": "real", "user": "admin"}}],
    });
    fs::write(kubeconfig, content.to_string())?;
    let request = Request::get("/readyz").body(Vec::new())?;
    let asked = bare::connect(kubeconfig).await;
    let answer = tokio::time::timeout(Duration::from_secs(2), asked.request_text(request)).await;
    Ok(matches!(answer, Ok(Ok(text)) if text == "ok").then_some(()))
}

fn free_ports() -> Result<[u16; 3]> {
    let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("looking for a free port");
    let listeners = [bind()?, bind()?, bind()?]; // all open at once, so that the ports differ
    let mut ports = [0; 3];
    for (port, listener) in ports.iter_mut().zip(&listeners) {
        *port = listener.local_addr()?.port();
    }
    Ok(ports)
}

fn etcd_flags(data: &Path, clients: u16, peers: u16) -> Vec<String> {
    let (clients, peers) = (format!("http://127.0.0.1:{clients}"), format!("http://127.0.0.1:{peers}"));
    vec![
        format!("--data-dir={}", data.display()),
        format!("--listen-client-urls={clients}"),
        format!("--advertise-client-urls={clients}"),
        format!("--listen-peer-urls={peers}"),
        format!("--initial-advertise-peer-urls={peers}"),
        format!("--initial-cluster=default={peers}"),
        "--unsafe-no-fsync".into(),
        // etcd's default limit of 2 GiB is too small for the objects and some minutes of changes.
        "--quota-backend-bytes=17179869184".into(),
        // These writes are large. By default, etcd keeps 10,000 of them in memory, and would run out of memory.
        "--snapshot-count=500".into(),
    ]
}

fn api_server_flags(folder: &Path, etcd: u16, port: u16) -> Vec<String> {
    let path = |name: &str| folder.join(name).display().to_string();
    let key = path("certificates/apiserver.key"); // the server creates it; it also signs service account tokens
    vec![
        format!("--etcd-servers=http://127.0.0.1:{etcd}"),
        "--bind-address=127.0.0.1".into(),
        "--endpoint-reconciler-type=none".into(),
        format!("--secure-port={port}"),
        format!("--cert-dir={}", path("certificates")),
        "--service-cluster-ip-range=10.0.0.0/24".into(),
        "--service-account-issuer=https://localhost".into(),
        format!("--service-account-key-file={key}"),
        format!("--service-account-signing-key-file={key}"),
        format!("--token-auth-file={}", path("tokens.csv")),
        "--authorization-mode=RBAC".into(),
        "--disable-admission-plugins=ServiceAccount".into(), // pods would need an account that a controller creates
    ]
}
