//! Time, CPU and memory that the dashboard takes on a large cluster, compared with bare clients of the same API server
//! in the same run, each with its budget. `benches/README.md` explains the figures.
//!
//! `cargo bench --bench store`: the embedded API with 5,000 nodes and 150,000 pods.
//! `cargo bench --bench store -- embedded 20000 600000`: another size.
//! `cargo bench --bench store -- real 5000 150000 --keep FOLDER`: a real kube-apiserver, as `tests/control-plane/build`
//! makes it; with a folder, the next run finds its data there and starts at once.
//! `--only nodes,pods,commands,load` leaves the other parts out.

#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

mod actions;
mod bare;
mod cluster;
mod commands;
mod control_plane;
mod dashboard;
mod etcd;
#[path = "../../examples/large_cluster/server.rs"]
mod large_cluster;
mod leashed;
mod load;
mod loading;
#[expect(dead_code, reason = "other benchmarks use all of it")]
#[path = "../median.rs"]
mod median;
mod process;
mod report;

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use cluster::TestCluster;
use report::Report;

/// The program's allocator, so that all clients use the same one.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
struct Arguments {
    #[arg(value_enum, default_value_t = ServerKind::Embedded)]
    server: ServerKind,
    #[arg(default_value_t = 5_000)]
    nodes: usize,
    #[arg(default_value_t = 150_000)]
    pods: usize,
    /// Folder for the data of a real control plane, found again by the next run
    #[arg(long)]
    keep: Option<PathBuf>,
    /// Parts to run (default: all)
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// Lease renewals per second under load and beside commands (default: one per node every ten seconds)
    #[arg(long)]
    renewals: Option<u32>,
    /// Writes to pods per second under load
    #[arg(long, default_value_t = 200)]
    changes: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ServerKind {
    Embedded,
    Real,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    Nodes,
    Pods,
    Commands,
    Load,
}

/// Roles in which this program runs when it starts itself as another process.
#[derive(Parser)]
#[command(no_binary_name = true)]
enum Helper {
    #[command(name = bare::ARGUMENT)]
    Bare { format: bare::Format, lists: bare::Lists, kubeconfig: PathBuf },
    #[command(name = cluster::SERVER_ARGUMENT)]
    Server(large_cluster::Arguments),
    #[command(name = cluster::CHURN_ARGUMENT)]
    Churn(cluster::ChurnArguments),
}

fn main() {
    // Cargo adds `--bench`.
    let arguments: Vec<String> = std::env::args().filter(|argument| argument != "--bench").collect();
    let helpers = [bare::ARGUMENT, cluster::SERVER_ARGUMENT, cluster::CHURN_ARGUMENT];
    if arguments.get(1).is_some_and(|first| helpers.contains(&first.as_str())) {
        return match Helper::parse_from(&arguments[1..]) {
            Helper::Bare { format, lists, kubeconfig } => bare::run(format, lists, &kubeconfig),
            Helper::Server(arguments) => cluster::run_server(arguments),
            Helper::Churn(arguments) => cluster::run_churn(&arguments),
        };
    }
    measure(Arguments::parse_from(arguments));
}

fn measure(arguments: Arguments) {
    let Arguments { server, nodes, pods, keep, only, renewals, changes } = arguments;
    let cluster = match server {
        ServerKind::Embedded => TestCluster::embedded(nodes, pods),
        ServerKind::Real => TestCluster::real(nodes, pods, keep),
    };
    let size = report::ClusterSize { nodes, pods };
    let mut report = Report::default();
    let runs = |part: Part| only.is_empty() || only.contains(&part);
    if runs(Part::Nodes) {
        loading::measure_nodes(&cluster, size, &mut report);
    }
    if runs(Part::Pods) {
        loading::measure_pods(&cluster, size, &mut report);
    }
    let renewals = renewals.unwrap_or(u32::try_from(nodes / 10).unwrap_or(u32::MAX));
    if runs(Part::Commands) {
        commands::measure(&cluster, renewals, &mut report);
    }
    if runs(Part::Load) {
        load::measure(&cluster, size, (renewals, changes), &mut report);
    }
    report.heading("Servers, at the end");
    for (name, process) in cluster.server.processes() {
        report.add(name, report::Figure::MiB(process.resident_mib()), report::Budget::None, "resident");
    }
    report.finish();
}
