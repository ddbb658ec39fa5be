//! The program, and a demo cluster for it to operate on.

use std::{collections::BTreeMap, process::Stdio, time::Duration};

use kordon::journal::{Journal, JournaledOperation, operations};
use kordon_core::engine::{Origin, ServerVersion, Settings};
use kordon_demo::{api::ApiOptions, scenario::Scenario, world};
use kordon_time::Timestamp;
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::common::program::{self, Server, Shell};

/// A demo cluster with a server, and a home folder with a kubeconfig for it.
pub struct Harness {
    pub shell: Shell,
    pub server: Server,
    pub kubeconfig: String,
    /// Uid of the namespace kube-system.
    cluster: String,
    _world: world::World,
}

impl Harness {
    /// Starts a cluster whose time is `speed` times as fast as real time.
    pub async fn start(speed: f64) -> Self {
        Self::start_in("healthy", speed).await
    }

    /// Starts a cluster with a scenario of the demo.
    pub async fn start_in(scenario: &str, speed: f64) -> Self {
        let options = ApiOptions { log_entries: 1_000_000, ..ApiOptions::default() };
        let (shell, server) = (Shell::new(), Server::start_at_speed(options, speed).await);
        let scenario = Scenario::named(scenario).expect("there is one");
        let world = server.inhabit_as(&world::WorldOptions { scenario, ..world::WorldOptions::default() });
        let kubeconfig = shell.kubeconfig(&server.url, json!({"token": "t"}));
        let mut harness = Self { shell, server, kubeconfig, cluster: String::new(), _world: world };
        harness.until(|harness| harness.server.api.count("pods") > 150).await;
        harness.cluster = harness.server.cluster_uid().await;
        // With fast time, heartbeats are late on a busy machine. The long grace period keeps nodes from becoming
        // Unknown because of late heartbeats.
        let mut settings = Settings::defaults(ServerVersion::new(1, 36));
        assert!(settings.set("node-monitor-grace-period", "1h", Origin::Override).expect("a span"));
        harness.server.govern_with(settings).await;
        harness
    }

    pub fn connection(&self) -> [&str; 2] {
        ["--kubeconfig", &self.kubeconfig]
    }

    /// Runs the program with the kubeconfig.
    pub async fn run(&self, line: &[&str]) -> program::Output {
        self.shell.run(&[&self.connection()[..], line].concat()).await
    }

    /// Runs the program with `--enforce --yes`.
    pub async fn enforce(&self, line: &[&str]) -> program::Output {
        self.run(&[line, &["--enforce", "--yes"]].concat()).await
    }

    /// Returns a command that runs the program with `--enforce --yes`, without its output.
    pub fn enforcing(&self, line: &[&str]) -> Command {
        let words = [&self.connection()[..], line, &["--enforce", "--yes"]].concat();
        let mut command = self.shell.command(&words);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Runs the program with `--enforce --yes`, which has to succeed. Returns the operation's report.
    pub async fn enforced(&self, line: &[&str]) -> Value {
        let output = self.enforce(&[line, &["-o", "json"]].concat()).await;
        assert_eq!(output.code, 0, "{line:?}: {}", output.err);
        output.json()
    }

    pub fn journal(&self) -> Journal {
        Journal::within(&self.shell.home.path().join(".local/state/kordon/journal"), &self.cluster)
    }

    /// Returns the operations in the journal.
    pub fn operations(&self) -> Vec<JournaledOperation> {
        operations(&self.journal().lines().expect("read"))
    }

    pub fn now(&self) -> Timestamp {
        kordon_clock::wall()
    }

    /// Waits for a condition. The time limit is reached only if the program has failed, even on a busy machine.
    pub async fn until(&self, holds: impl Fn(&Self) -> bool) {
        let waiting = async {
            while !holds(self) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(180), waiting).await.expect("the condition holds in time");
    }

    /// Returns the pods that were evicted more than once, ignoring the first `skipped` evictions.
    pub fn evicted_twice(&self, skipped: usize) -> Vec<String> {
        let mut times: BTreeMap<String, usize> = BTreeMap::new();
        for pod in self.server.evictions().split_off(skipped) {
            *times.entry(pod).or_default() += 1;
        }
        times.into_iter().filter(|(_, count)| *count > 1).map(|(pod, _)| pod).collect()
    }
}

/// Sends an interrupt to the program, as Ctrl-C does.
pub fn interrupt(program: &Child) {
    let id = rustix::process::Pid::from_raw(program.id().expect("alive").cast_signed()).expect("an id");
    rustix::process::kill_process(id, rustix::process::Signal::INT).expect("it is ours");
}
