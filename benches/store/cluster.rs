//! The cluster that the benchmark connects to, on the embedded API or on a real control plane, and the process that
//! changes it.

use std::{
    ffi::OsString,
    io::{BufRead, BufReader, Read},
    path::PathBuf,
    process::{Command, Stdio},
    sync::atomic::Ordering,
    thread::sleep,
    time::{Duration, Instant},
};

use kordon_clock::Clock;
use tempfile::TempDir;

use super::{
    bare,
    control_plane::ControlPlane,
    etcd::Etcd,
    large_cluster::{
        self,
        churn::{ApiServer, Churn, ChurnRates, WriteTarget},
        objects::LargeCluster,
    },
    leashed::Leashed,
    process::{CpuCounter, Process},
    report::{Budget, Figure, Report},
};

/// Argument that makes the benchmark program run as the embedded API.
pub const SERVER_ARGUMENT: &str = "embedded-server";
/// Argument that makes the benchmark program change a cluster.
pub const CHURN_ARGUMENT: &str = "churn";

/// A server that uses less than a tenth of a core for this long is idle.
const IDLE_FOR: Duration = Duration::from_secs(3);
const LONGEST_IDLE_WAIT: Duration = Duration::from_secs(120);

/// A running cluster. Dropping this value stops its processes.
pub struct TestCluster {
    pub kubeconfig: PathBuf,
    pub nodes: usize,
    pub pods: usize,
    pub server: Server,
    /// Folder for kubeconfigs, journals and similar files.
    pub folder: TempDir,
}

pub enum Server {
    Embedded(Leashed),
    Real(ControlPlane),
}

impl TestCluster {
    /// Starts the embedded API in a process of its own.
    pub fn embedded(nodes: usize, pods: usize) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let kubeconfig = folder.path().join("kubeconfig");
        let begun = Instant::now();
        let (leashed, output) = Leashed::start_to_read(
            Command::new(std::env::current_exe().expect("this program"))
                .arg(SERVER_ARGUMENT)
                .args(["--leashed", "--renewals", "0", "--changes", "0"])
                .args(["--nodes", &nodes.to_string(), "--pods", &pods.to_string(), "--kubeconfig"])
                .arg(&kubeconfig),
        );
        let mut address = String::new();
        let mut output = BufReader::new(output);
        output.read_line(&mut address).expect("it prints its address");
        // The process may print more, so its output is read to the end.
        std::thread::spawn(move || output.lines().for_each(drop));
        println!("embedded API with {nodes} nodes and {pods} pods after {:.1?}", begun.elapsed());
        Self { kubeconfig, nodes, pods, server: Server::Embedded(leashed), folder }
    }

    /// Starts a real control plane. Its data is kept in the folder `kept`, if given.
    pub fn real(nodes: usize, pods: usize, kept: Option<PathBuf>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let data = kept.unwrap_or_else(|| folder.path().join("control-plane"));
        let cluster = LargeCluster { nodes, pods, now: Clock::system().now() };
        let plane = ControlPlane::start(&data, cluster).expect("a control plane");
        Self { kubeconfig: plane.kubeconfig.clone(), nodes, pods, server: Server::Real(plane), folder }
    }

    /// Renews the Leases of all nodes once.
    pub fn renew_all(&self) {
        let mut command = self.churn_command(0, 0);
        assert!(command.arg("--once").status().expect("it starts").success(), "Leases cannot be renewed");
    }

    /// Renews Leases and changes pods in a process of its own.
    pub fn churn(&self, renewals_per_second: u32, changes_per_second: u32) -> RunningChurn {
        let (leashed, output) =
            Leashed::start_to_read(&mut self.churn_command(renewals_per_second, changes_per_second));
        let (counts, latest) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let numbers: Vec<u64> = line.split(' ').filter_map(|number| number.parse().ok()).collect();
                if let [renewals, changes, failures] = numbers[..]
                    && counts.send((Instant::now(), [renewals, changes, failures])).is_err()
                {
                    return;
                }
            }
        });
        RunningChurn { leashed, latest }
    }

    fn churn_command(&self, renewals_per_second: u32, changes_per_second: u32) -> Command {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.arg(CHURN_ARGUMENT);
        command.args([self.nodes, self.pods].map(|count| count.to_string()));
        command.args([renewals_per_second, changes_per_second].map(|rate| rate.to_string()));
        command.arg(&self.kubeconfig);
        if let Server::Real(plane) = &self.server {
            command.args(["--etcd", &plane.etcd_address]);
        }
        command
    }
}

impl Server {
    /// Waits until the server has finished its work for earlier requests, which would distort the next measurement.
    pub fn wait_until_idle(&self, report: &mut Report) {
        let begun = Instant::now();
        while begun.elapsed() < LONGEST_IDLE_WAIT {
            let mut counters: Vec<_> =
                self.processes().into_iter().map(|(_, server)| server.count_cpu()).collect();
            sleep(IDLE_FOR);
            let used: Duration = counters.iter_mut().map(CpuCounter::used).sum();
            if used < IDLE_FOR / 10 {
                break;
            }
        }
        report.add("until the servers were idle", Figure::seconds(begun.elapsed()), Budget::None, "");
    }

    /// Returns the processes of the server, with their names.
    pub fn processes(&self) -> Vec<(&'static str, Process)> {
        match self {
            Self::Embedded(leashed) => vec![("embedded API", leashed.process())],
            Self::Real(plane) => plane.processes(),
        }
    }
}

pub struct RunningChurn {
    leashed: Leashed,
    latest: std::sync::mpsc::Receiver<(Instant, [u64; 3])>,
}

impl RunningChurn {
    /// Runs `wait`. Returns Lease renewals and pod changes per second during `wait`, and the number of failed writes.
    pub fn rates_during(&self, wait: impl FnOnce()) -> (f64, f64, u64) {
        while self.latest.try_recv().is_ok() {}
        let (begun, before) = self.latest.recv().expect("it counts");
        wait();
        let (ended, after) = self.latest.try_iter().last().expect("it counts");
        let rate = |which: usize| (after[which] - before[which]) as f64 / (ended - begun).as_secs_f64();
        (rate(0), rate(1), after[2] - before[2])
    }

    pub fn process(&self) -> Process {
        self.leashed.process()
    }
}

/// Arguments of the process that changes a cluster.
#[derive(clap::Parser)]
pub struct ChurnArguments {
    nodes: usize,
    pods: usize,
    renewals_per_second: u32,
    changes_per_second: u32,
    kubeconfig: PathBuf,
    /// Renew every Lease, once
    #[arg(long)]
    once: bool,
    /// Address of the etcd to write to, instead of the API server
    #[arg(long)]
    etcd: Option<String>,
}

/// Runs this process as the process that changes a cluster. Prints its counts every half second.
pub fn run_churn(arguments: &ChurnArguments) {
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    runtime.block_on(async {
        match &arguments.etcd {
            Some(address) => change(Etcd::connect(address).await.expect("an etcd"), arguments).await,
            None => change(ApiServer(bare::connect(&arguments.kubeconfig).await), arguments).await,
        }
    });
}

async fn change(target: impl WriteTarget, arguments: &ChurnArguments) {
    let ChurnArguments { nodes, pods, renewals_per_second, changes_per_second, .. } = *arguments;
    let cluster = LargeCluster { nodes, pods, now: Clock::system().now() };
    let churn = Churn::new(target, cluster, ChurnRates { renewals_per_second, changes_per_second });
    if arguments.once {
        return churn.renew_all().await;
    }
    let counts = async {
        loop {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let count = |of: &std::sync::atomic::AtomicU64| of.load(Ordering::Relaxed);
            let done = &churn.done;
            println!("{} {} {}", count(&done.renewals), count(&done.changes), count(&done.failures));
        }
    };
    let (unleash, unleashed) = tokio::sync::oneshot::channel();
    std::thread::spawn(|| {
        // A read error counts as the end of the input.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        unleash.send(())
    });
    tokio::select! {
        () = churn.run() => {}
        () = counts => {}
        _ = unleashed => {}
    }
}

/// Runs this process as the embedded API.
pub fn run_server(arguments: large_cluster::Arguments) {
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    runtime.block_on(large_cluster::serve(arguments)).expect("it serves");
}

/// Returns the kordon program that is measured: the program built with the benchmark, or the program that
/// `KORDON_BINARY` names.
pub fn binary() -> OsString {
    std::env::var_os("KORDON_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_kordon").into())
}

/// Returns a command that runs kordon against a cluster.
pub fn program(cluster: &TestCluster) -> Command {
    let mut command = Command::new(binary());
    command.env("HOME", cluster.folder.path()).env("KUBECONFIG", &cluster.kubeconfig).stdin(Stdio::null());
    command
}
