//! The embedded API with a large cluster in it, on loopback.

pub mod churn;
pub mod objects;

use std::{io::Read, net::SocketAddr, path::PathBuf, thread};

use clap::Parser;
use kordon_clock::Clock;
use kordon_demo::api::{Api, ApiOptions};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use churn::{ApiServer, Churn, ChurnRates};
use objects::LargeCluster;

/// Serves a large, busy cluster on loopback, to try clients with.
///
/// It prints its address and how to connect. It has nodes with Leases, Deployments with ReplicaSets and
/// PodDisruptionBudgets, and pods of about 7 KB, all different; Leases are renewed, and pods change and are replaced,
/// at the rates given. Neither kubelets nor controllers run.
#[derive(Parser)]
pub struct Arguments {
    /// Address to listen on
    #[arg(long, default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    #[arg(long, default_value_t = 20_000)]
    pub nodes: usize,
    #[arg(long, default_value_t = 600_000)]
    pub pods: usize,
    /// Lease renewals per second (default: each node's every ten seconds)
    #[arg(long)]
    pub renewals: Option<u32>,
    /// Writes to pods per second
    #[arg(long, default_value_t = 200)]
    pub changes: u32,
    /// Write a kubeconfig to this file
    #[arg(long)]
    pub kubeconfig: Option<PathBuf>,
    /// Stop when the standard input ends
    #[arg(long)]
    pub leashed: bool,
}

/// Serves until Ctrl-C.
///
/// # Errors
/// The address is not free, or the kubeconfig cannot be written.
pub async fn serve(arguments: Arguments) -> anyhow::Result<()> {
    let clock = Clock::system();
    let Arguments { nodes, pods, .. } = arguments;
    let cluster = LargeCluster { nodes, pods, now: clock.now() };
    let api =
        Api::new(clock, ApiOptions { history_bytes: 256 << 20, minor_version: 37, ..ApiOptions::default() });
    fill(&api, cluster);
    let renewals = arguments.renewals.unwrap_or(u32::try_from(nodes / 10)?);
    let rates = ChurnRates { renewals_per_second: renewals, changes_per_second: arguments.changes };
    let churn = Churn::new(ApiServer(api.client()), cluster, rates);
    // Creating the objects may have taken longer than a Lease lasts.
    churn.renew_all().await;
    let listener = TcpListener::bind(arguments.listen).await?;
    let server = format!("http://{}", listener.local_addr()?);
    if let Some(file) = &arguments.kubeconfig {
        std::fs::write(file, kubeconfig(&server))?;
    }
    println!("{server}");
    let (took, memory) = (clock.now().since(cluster.now).as_secs_f64(), resident_gib());
    println!("{nodes} nodes and {pods} pods made in {took:.1} s; this process takes {memory:.1} GiB");
    println!("kordon --server {server}");
    println!("kubectl --server {server} get nodes");
    let stop = CancellationToken::new();
    if arguments.leashed {
        let ended = stop.clone();
        thread::spawn(move || {
            // A read error counts as the end of the input.
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            ended.cancel();
        });
    }
    tokio::select! {
        served = api.serve(listener, stop) => served?,
        interrupted = tokio::signal::ctrl_c() => interrupted?,
        () = churn.run() => {}
    }
    Ok(())
}

/// Creates the objects on all cores, because that takes longest.
fn fill(api: &Api, cluster: LargeCluster) {
    let parts = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for part in 0..parts {
            scope.spawn(move || {
                cluster.objects(part, parts).for_each(|(plural, object)| api.load(plural, object));
            });
        }
    });
}

fn kubeconfig(server: &str) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "large",
        "clusters": [{"name": "large", "cluster": {"server": server}}],
        "users": [{"name": "large", "user": {}}],
        "contexts": [{"name": "large", "context": {"cluster": "large", "user": "large"}}],
    })
    .to_string()
}

/// Returns the resident memory of this process in GiB; 0 where `/proc` does not exist.
fn resident_gib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kib.unwrap_or_default() / f64::from(1 << 20)
}
