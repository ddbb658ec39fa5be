//! `kordon maintenance --enforce` against the demo: carried out, stopped, killed, resumed, released.

use std::{
    collections::BTreeMap, fs, os::unix::fs::MetadataExt as _, path::PathBuf, process::Stdio, time::Duration,
};

use k8s_openapi::api::{core::v1::Node, policy::v1::PodDisruptionBudget};
use kordon_core::cluster::{MaintenanceNote, claim::DRAIN, maintenance_note::MAINTENANCE};
use kordon_demo::api::{Fault, FaultAnswer, Verb};
use kordon_time::{Span, Timestamp};
use kube::{
    Api as Objects, ResourceExt,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    common::{program::is_cordoned, terminal::Terminal},
    harness::{Harness, interrupt},
};

const DONE: i32 = 0;
const USAGE: i32 = 2;
const CLAIMED: i32 = 10;
const PARTLY: i32 = 12;
const INTERRUPTED: i32 = 13;

/// Speed of the cluster's time compared with real time.
const SPEED: f64 = 20.0;

pub const NODES: [&str; 3] = ["general-1a-02", "general-1b-02", "general-1c-02"];
const FLAGS: [&str; 7] =
    ["--force", "--delete-emptydir-data", "--settle", "2s", "--work-takes", "2s", "--gate-timeout=2m"];

/// A folder in which commands leave a line for each run.
pub struct Runs {
    folder: tempfile::TempDir,
}

impl Runs {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("runs")
    }

    /// Returns a command that runs for this many seconds, and records its node at its start and at its end.
    pub fn command(&self, seconds: &str) -> String {
        let file = self.path().display().to_string();
        format!("sh -c 'echo begins $1 >>{file}; sleep {seconds}; echo ends $1 >>{file}' - {{node}}")
    }

    /// Returns how many times the command has ended, by node.
    pub fn ended(&self) -> BTreeMap<String, usize> {
        let text = fs::read_to_string(self.path()).unwrap_or_default();
        let mut ended = BTreeMap::new();
        for node in text.lines().filter_map(|line| line.strip_prefix("ends ")) {
            *ended.entry(node.to_owned()).or_default() += 1;
        }
        ended
    }
}

pub fn once_each() -> BTreeMap<String, usize> {
    NODES.iter().map(|node| ((*node).to_owned(), 1)).collect()
}

/// Returns the nodes that are cordoned, or have a note of a maintenance or the claim of a drain.
pub async fn left_behind(harness: &Harness) -> Vec<String> {
    let nodes: Objects<Node> = Objects::all(harness.server.api.client());
    let nodes = nodes.list(&ListParams::default()).await.expect("nodes").items;
    let is_left = |node: &&Node| {
        is_cordoned(node) || [MAINTENANCE, DRAIN].iter().any(|key| node.annotations().contains_key(*key))
    };
    nodes.iter().filter(is_left).map(ResourceExt::name_any).collect()
}

/// Returns the outcomes of the nodes of a report, sorted.
fn ends_of(report: &Value) -> Vec<&str> {
    let nodes = report["nodes"].as_array().into_iter().flatten();
    let mut ends: Vec<&str> = nodes.filter_map(|node| node["end"].as_str()).collect();
    ends.sort_unstable();
    ends
}

fn line<'a>(exec: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["maintenance"], &NODES[..], &FLAGS, &["--exec", exec, "-o", "json"], more].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_node_is_drained_worked_on_and_back_once() {
    let (harness, runs) = (Harness::start(SPEED).await, Runs::new());
    let exec = runs.command("0.2");
    let output = harness.enforce(&line(&exec, &[])).await;
    assert_eq!(output.code, DONE, "{}", output.err);
    let report = output.json();
    assert_eq!((&report["end"], report["nodes"].as_array().map(Vec::len)), (&"done".into(), Some(3)));
    for node in report["nodes"].as_array().expect("nodes") {
        assert_eq!(node["end"], "done", "{node}");
        assert!(node["drained"].as_str() <= node["worked"].as_str(), "{node}");
        assert!(node["worked"].as_str() <= node["done"].as_str(), "{node}");
    }
    assert_eq!(runs.ended(), once_each());
    assert_eq!(left_behind(&harness).await, Vec::<String>::new());
    assert_eq!(harness.evicted_twice(0), Vec::<String>::new());
    let operations = harness.operations();
    assert_eq!(operations.len(), 1, "one entry of the journal for all of it");
    assert_eq!(operations[0].ended.as_deref(), Some("done"));
}

/// A kill repeats the work on a node whose command has ended if that is not recorded yet.
#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_command_is_noticed_before_the_next_look_at_the_cluster() {
    let (harness, folder) = (Harness::start(SPEED).await, tempfile::tempdir().expect("a folder"));
    let exec = format!("sh -c 'sleep 0.1; touch {}/$1' - {{node}}", folder.path().display());
    let output = harness.enforce(&line(&exec, &[])).await;
    assert_eq!(output.code, DONE, "{}", output.err);
    let report = output.json();
    let delay = |node: &Value| {
        let file = fs::metadata(folder.path().join(node["node"].as_str()?)).ok()?;
        let ended = Timestamp::from_nanos(file.mtime() * 1_000_000_000 + file.mtime_nsec());
        Some(Timestamp::parse(node["worked"].as_str()?)?.since(ended))
    };
    let delays: Option<Vec<Span>> = report["nodes"].as_array().expect("nodes").iter().map(delay).collect();
    let delays = delays.expect("every node was worked on");
    // The machine may be busy, but not for each of the nodes.
    assert!(delays.iter().any(|delay| *delay < Span::from_millis(500)), "{delays:?}");
}

/// Nodes that are cordoned until their wave and have no pods to evict need no drain.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_without_pods_are_worked_on_without_a_drain() {
    let (harness, runs) = (Harness::start(SPEED).await, Runs::new());
    let exec = runs.command("0");
    let nodes = ["control-plane-1a-01", "control-plane-1b-01"];
    let words =
        [&["maintenance"], &nodes[..], &FLAGS, &["--exec", &exec, "-o", "json", "--parallel", "1"]].concat();
    let output = harness.enforce(&words).await;
    assert_eq!(output.code, DONE, "{}", output.err);
    assert_eq!(runs.ended().into_keys().collect::<Vec<_>>(), nodes);
    assert_eq!(left_behind(&harness).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_plan_says_that_control_plane_nodes_have_a_wave_each() {
    let harness = Harness::start(SPEED).await;
    let nodes = ["maintenance", "control-plane-1a-01", "control-plane-1b-01"];
    let output = harness.run(&nodes).await;
    assert_eq!(output.code, DONE, "{}", output.err);
    assert!(output.out.contains(", in 2 waves\n"), "{}", output.out);
    assert!(output.out.contains("2 nodes are control plane nodes: a wave has only one"), "{}", output.out);
    let output = harness.run(&[&nodes[..], &["--control-planes-together"]].concat()).await;
    assert!(output.out.contains(", in 1 wave\n"), "{}", output.out);
}

/// Without `--force`, a node with a pod that has no controller is left out. The other nodes are maintained.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_in_no_wave_is_reported_and_not_touched() {
    let (harness, runs) = (Harness::start(SPEED).await, Runs::new());
    let exec = runs.command("0");
    let words: Vec<&str> = line(&exec, &[]).into_iter().filter(|word| *word != "--force").collect();
    let output = harness.enforce(&words).await;
    assert_eq!(output.code, PARTLY, "{}", output.err);
    let report = output.json();
    let ends = |end: &str| {
        let nodes = report["nodes"].as_array().into_iter().flatten().filter(|node| node["end"] == end);
        nodes.filter_map(|node| node["node"].as_str()).collect::<Vec<_>>()
    };
    assert_eq!((ends("leftOut"), ends("done")), (vec![NODES[0]], NODES[1..].to_vec()), "{report:#}");
    assert_eq!(runs.ended().keys().collect::<Vec<_>>(), NODES[1..].to_vec());
    let written = harness.server.written();
    assert!(!written.iter().any(|write| write.contains(NODES[0])), "{written:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_enforce_no_command_runs_and_nothing_is_written() {
    let (harness, runs) = (Harness::start(SPEED).await, Runs::new());
    let output = harness.run(&line(&runs.command("0"), &[])).await;
    assert_eq!(output.code, DONE, "{}", output.err);
    assert_eq!(harness.server.written(), Vec::<String>::new());
    assert!(!runs.path().exists());
    let bare = [&["maintenance"], &NODES[..], &FLAGS].concat();
    let output = harness.enforce(&bare).await;
    assert!(output.code == USAGE && output.err.contains("--exec COMMAND"), "{}", output.err);
    assert_eq!(harness.server.written(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_fails_pauses_it_and_a_resume_brings_it_to_its_end() {
    let (harness, runs) = (Harness::start(SPEED).await, Runs::new());
    let file = runs.path().display().to_string();
    let mark = runs.folder.path().join("fixed");
    let fails = format!("test -e {} || {{ echo no mark of $1; exit 7; }}", mark.display());
    let exec = format!("sh -c '{fails}; echo ends $1 >>{file}' - {{node}}");
    let output = harness.enforce(&line(&exec, &["--parallel", "1"])).await;
    assert_eq!(output.code, PARTLY, "{}", output.err);
    let report = output.json();
    assert_eq!(report["end"], "paused");
    assert!(report["says"].as_str().expect("a text").contains("exit status: 7"), "{report:#}");
    assert_eq!(ends_of(&report), ["failed", "waiting", "waiting"], "{report:#}");
    assert!(!left_behind(&harness).await.is_empty(), "its nodes show that it is not over");
    let journal = harness.run(&["journal", "--operation", &harness.operations()[0].id]).await.done();
    assert!(journal.contains("| no mark of general-1"), "{journal}");
    let output = harness.run(&["journal", "--operation", "drain-1"]).await;
    assert!(output.code == USAGE && output.err.contains("not in the journals"), "{}", output.err);

    fs::write(&mark, "").expect("written");
    let again = ["maintenance", "--resume", "--exec", "true"];
    let output = harness.enforce(&again).await;
    assert!(output.code == USAGE && output.err.contains("goes on as it was started"), "{}", output.err);
    let output = harness.enforce(&["maintenance", "--resume", "-o", "json"]).await;
    assert_eq!(output.code, DONE, "{}", output.err);
    let has_rest = |text: &str| text.contains("interrupted: general-1") && text.contains(", in 2 waves\n");
    assert!(has_rest(&output.err), "the rest is shown before the question: {}", output.err);
    assert_eq!(runs.ended(), once_each());
    assert_eq!(left_behind(&harness).await, Vec::<String>::new());
    assert_eq!(harness.evicted_twice(0), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_killed_goes_on_from_another_machine_and_two_cannot_have_it() {
    let (harness, runs) = (Harness::start(SPEED).await, Runs::new());
    let exec = runs.command("0.5");
    let mut first = harness.enforcing(&line(&exec, &["--parallel", "1"])).spawn().expect("it starts");
    harness.until(|_| !runs.ended().is_empty()).await;

    // A user on another machine has another home folder, and so another journal.
    let elsewhere = crate::common::program::Shell::new();
    let run = async |words: &[&str]| {
        elsewhere.run(&[&harness.connection()[..], words, &["--enforce", "--yes"]].concat()).await
    };
    let ended = runs.ended();
    let waiting: Vec<&str> = NODES.into_iter().filter(|node| !ended.contains_key(*node)).collect();
    let drain = ["--ignore-daemonsets", "--force", "--delete-emptydir-data"];
    let output = run(&[&["drain"], &waiting[..], &drain].concat()).await;
    assert!(output.code == CLAIMED && output.err.contains("a maintenance of"), "{}", output.err);
    let output = run(&line(&exec, &[])).await;
    assert!(output.code == CLAIMED && output.err.contains("a maintenance of"), "{}", output.err);
    let output = run(&["maintenance", "--resume", "--exec", &exec]).await;
    assert!(output.code == CLAIMED && output.err.contains("--take-over"), "{}", output.err);
    first.kill().await.expect("killed");
    // The command that was running when kordon was killed may continue for a moment.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let output = run(&["maintenance", "--resume", "--take-over"]).await;
    assert!(output.code == USAGE && output.err.contains("give its --exec"), "{}", output.err);
    let again =
        [&["maintenance", "--resume", "--take-over", "--exec", &exec, "-o", "json"], &FLAGS[..]].concat();
    let output = run(&again).await;
    assert_eq!(output.code, DONE, "{}", output.err);
    let ended = runs.ended();
    assert_eq!(ended.keys().cloned().collect::<Vec<_>>(), NODES, "{ended:?}");
    assert_eq!(left_behind(&harness).await, Vec::<String>::new());
    assert_eq!(harness.evicted_twice(0), Vec::<String>::new());
}

/// A maintenance that was stopped can be resumed, so its nodes are its own until somebody takes them over.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_takes_a_node_over_from_a_stopped_maintenance_brings_it_back_into_service() {
    let harness = Harness::start(SPEED).await;
    let gate = ["--parallel", "1", "--gate", "false", "--gate-timeout", "3s"];
    let words: Vec<&str> =
        line("true", &gate).into_iter().filter(|word| *word != "--gate-timeout=2m").collect();
    let output = harness.enforce(&words).await;
    assert_eq!(output.code, PARTLY, "{}", output.err);
    let left = left_behind(&harness).await;
    let mut cordoned = Vec::new();
    for name in &left {
        if is_cordoned(&harness.server.node(name).await) {
            cordoned.push(name.as_str());
        }
    }
    assert!(left.len() == 2 && !cordoned.is_empty(), "{left:?}");

    let elsewhere = crate::common::program::Shell::new();
    let run = async |more: &[&str]| {
        let words =
            [&["maintenance", cordoned[0]], &FLAGS[..], &["--exec", "true", "--enforce", "--yes"]].concat();
        elsewhere.run(&[&harness.connection()[..], &words[..], more].concat()).await
    };
    let output = run(&[]).await;
    assert!(
        output.code == CLAIMED && output.err.contains("which was stopped (--take-over"),
        "{}",
        output.err
    );
    assert_eq!(left_behind(&harness).await, left);
    let output = run(&["--take-over"]).await;
    assert_eq!(output.code, DONE, "{}", output.err);
    let rest: Vec<String> = left.iter().filter(|name| *name != cordoned[0]).cloned().collect();
    assert_eq!(left_behind(&harness).await, rest, "the cordon was that of the first maintenance");
    let output = harness.enforce(&["maintenance", "--resume"]).await;
    assert_eq!(output.code, DONE, "{}", output.err);
    assert_eq!(left_behind(&harness).await, Vec::<String>::new());
}

/// Starts a maintenance, and kills it when its drains have evicted the first pod.
async fn kill_in_drain(harness: &Harness, exec: &str) {
    let mut program = harness.enforcing(&line(exec, &[])).spawn().expect("it starts");
    harness.until(|harness| !harness.server.evictions().is_empty()).await;
    program.kill().await.expect("killed");
    assert!(!left_behind(harness).await.is_empty(), "it was killed during a drain");
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_whose_drains_were_interrupted_have_begun_and_not_failed() {
    let harness = Harness::start(SPEED).await;
    let mut command = harness.enforcing(&line("true", &[]));
    let program = command.stdout(Stdio::piped()).spawn().expect("it starts");
    harness.until(|harness| !harness.server.evictions().is_empty()).await;
    interrupt(&program);
    let output = program.wait_with_output().await.expect("ended");
    assert_eq!(output.status.code(), Some(INTERRUPTED));
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    let ends = ends_of(&report);
    assert!(ends.contains(&"begun") && !ends.contains(&"failed"), "{report:#}");
}

/// The claims that a killed drain leaves on its nodes belong to the maintenance, so they do not stop its resume.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_killed_during_a_drain_goes_on_at_once_and_leaves_no_claim() {
    let (harness, runs) = (Harness::start(SPEED).await, Runs::new());
    kill_in_drain(&harness, &runs.command("0")).await;
    let output = harness.enforce(&["maintenance", "--resume", "-o", "json"]).await;
    assert_eq!(output.code, DONE, "{}", output.err);
    assert_eq!(runs.ended(), once_each());
    assert_eq!(left_behind(&harness).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_release_of_what_was_killed_during_a_drain_leaves_no_claim() {
    let harness = Harness::start(SPEED).await;
    kill_in_drain(&harness, "false").await;
    let release = format!("--release={}", harness.operations()[0].id);
    let output = harness.enforce(&["maintenance", &release]).await;
    assert_eq!(output.code, DONE, "{}", output.err);
    assert_eq!(left_behind(&harness).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_ends_after_an_interrupt_is_reported_and_not_run_again() {
    let (harness, runs) = (Harness::start(SPEED).await, Runs::new());
    let exec = runs.command("2");
    let mut command = harness.enforcing(&line(&exec, &["--parallel", "1"]));
    let first = command.stdout(Stdio::piped()).spawn().expect("it starts");
    harness.until(|_| runs.path().exists()).await;
    interrupt(&first);
    let output = first.wait_with_output().await.expect("ended");
    assert_eq!(output.status.code(), Some(INTERRUPTED));
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    assert_eq!(ends_of(&report), ["begun", "waiting", "waiting"], "{report:#}");
    assert!(report["nodes"][0]["worked"].is_string(), "{report:#}");
    let output = harness.enforce(&["maintenance", "--resume", "-o", "json"]).await;
    assert_eq!(output.code, DONE, "{}", output.err);
    assert_eq!(runs.ended(), once_each());
}

/// The end of the first command cannot be recorded. The maintenance stops, but waits for the second command.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_ends_after_a_failed_write_is_not_run_again() {
    let (harness, runs) = (Harness::start(SPEED).await, Runs::new());
    let file = runs.path().display().to_string();
    let wait = "case $1 in *1a*) sleep 1;; *) sleep 8;; esac";
    let exec = format!("sh -c 'echo begins $1 >>{file}; {wait}; echo ends $1 >>{file}' - {{node}}");
    let nodes = ["control-plane-1a-01", "control-plane-1b-01"];
    let flags = ["--exec", &exec, "--control-planes-together"];
    let words = [&["maintenance"], &nodes[..], &FLAGS, &flags].concat();
    let mut first = harness.enforcing(&words).spawn().expect("it starts");
    let begun = || fs::read_to_string(runs.path()).unwrap_or_default().matches("begins").count();
    harness.until(|_| begun() == 2).await;
    harness.server.api.inject(Fault::always(FaultAnswer::Forbidden).on(&[Verb::Patch], "nodes"));
    harness.until(|_| runs.ended().contains_key(nodes[0])).await;
    // kordon tries to record the end of the command at once, and nothing shows that it has failed.
    tokio::time::sleep(Duration::from_secs(2)).await;
    harness.server.api.clear_faults();
    assert_eq!(first.wait().await.expect("ended").code(), Some(PARTLY));
    let output = harness.enforce(&["maintenance", "--resume"]).await;
    assert_eq!(output.code, DONE, "{}", output.err);
    assert_eq!(runs.ended().get(nodes[1]), Some(&1), "{:?}", runs.ended());
    assert_eq!(left_behind(&harness).await, Vec::<String>::new());
}

/// A second interrupt leaves the commands that run. Until they have ended, nobody on this machine can resume.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_was_left_running_is_not_started_beside_itself() {
    let (harness, runs) = (Harness::start(SPEED).await, Runs::new());
    let exec = runs.command("20");
    let mut first = harness.enforcing(&line(&exec, &["--parallel", "1"])).spawn().expect("it starts");
    let lines = || fs::read_to_string(runs.path()).unwrap_or_default().lines().count();
    harness.until(|_| lines() > 0).await;
    for _ in 0..2 {
        interrupt(&first);
        // Signals within a second count as one request.
        tokio::time::sleep(Duration::from_millis(1500)).await;
    }
    assert_eq!(first.wait().await.expect("ended").code(), Some(INTERRUPTED));
    let output = harness.enforce(&["maintenance", "--resume"]).await;
    assert!(
        output.code == CLAIMED && output.err.contains("another process on this machine is running"),
        "{}",
        output.err
    );
    assert_eq!(lines(), 1, "it still runs, and only once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_holds_the_next_wave_and_a_rollback_gives_back_what_is_not_drained() {
    let (harness, runs) = (Harness::start(SPEED).await, Runs::new());
    let exec = runs.command("0");
    let gate = ["--parallel", "1", "--gate", "false", "--gate-timeout", "20s", "--on-failure", "rollback"];
    let words: Vec<&str> =
        line(&exec, &gate).into_iter().filter(|word| *word != "--gate-timeout=2m").collect();
    let output = harness.enforce(&words).await;
    assert_eq!(output.code, PARTLY, "{}", output.err);
    let report = output.json();
    assert_eq!(report["end"], "rolledBack");
    assert!(
        report["says"].as_str().expect("a text").contains("--gate-timeout): command: false: exit status: 1"),
        "{report:#}"
    );
    assert_eq!(runs.ended().len(), 1, "the second wave never starts");
    assert_eq!(ends_of(&report), ["done", "released", "released"], "{report:#}");
    assert_eq!(left_behind(&harness).await, Vec::<String>::new());
}

/// The node whose work has failed may be broken, so a rollback leaves it cordoned. It is in no maintenance any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_maintenance_that_was_rolled_back_is_over_for_the_node_that_failed_too() {
    let harness = Harness::start(SPEED).await;
    let output = harness.enforce(&line("false", &["--parallel", "1", "--on-failure", "rollback"])).await;
    assert_eq!(output.code, PARTLY, "{}", output.err);
    let report = output.json();
    assert_eq!(report["end"], "rolledBack");
    let failed = report["nodes"].as_array().expect("nodes").iter().filter(|node| node["end"] == "failed");
    let failed: Vec<&str> = failed.filter_map(|node| node["node"].as_str()).collect();
    assert_eq!(failed.len(), 1, "{report:#}");
    assert_eq!(left_behind(&harness).await, failed);
    let node = harness.server.node(failed[0]).await;
    assert!(is_cordoned(&node) && !node.annotations().contains_key(MAINTENANCE));
    let id = harness.operations()[0].id.to_string();
    for (flag, refusal) in [
        (format!("--release={id}"), "no node is in a maintenance with this id"),
        (format!("--resume={id}"), "it has ended, or it is another kind of operation"),
        ("--resume".into(), "no maintenance was stopped"),
    ] {
        let output = harness.enforce(&["maintenance", &flag]).await;
        assert!(output.err.contains(refusal), "{flag}: {}", output.err);
    }
}

/// A window that opens at the next full minute, or at the one after if that is less than 20 seconds away.
fn next_window(harness: &Harness) -> String {
    let now = harness.now();
    let second = now.as_nanos() / 1_000_000_000 % 60;
    let opens = now + Span::from_secs(if second < 40 { 60 } else { 120 });
    let time = |at: Timestamp| at.to_time()[11..16].to_owned();
    format!("{}-{}", time(opens), time(opens + Span::from_secs(6 * 3600)))
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_wait_for_a_window_are_claimed_and_their_wave_follows_what_has_changed_meanwhile() {
    let (harness, runs) = (Harness::start(SPEED).await, Runs::new());
    let (exec, window) = (runs.command("0"), next_window(&harness));
    let more = ["--window", &window, "--without-gate", "verdict,pending,ready,budgets"];
    let mut command = harness.enforcing(&line(&exec, &more));
    let first = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let is_written = |node: &str| harness.server.written().iter().any(|write| write.contains(node));
    harness.until(|_| NODES.iter().all(|node| is_written(node))).await;
    assert_eq!(harness.server.evictions(), Vec::<String>::new(), "the window is not open");
    let output = harness.enforce(&line(&exec, &[])).await;
    assert!(output.code == CLAIMED && output.err.contains("a maintenance of"), "{}", output.err);
    let budget = json!({"metadata": {"name": "frozen"}, "spec": {"maxUnavailable": 0, "selector": {}}});
    let budget: PodDisruptionBudget = serde_json::from_value(budget).expect("a budget");
    let budgets: Objects<PodDisruptionBudget> = Objects::namespaced(harness.server.api.client(), "shop");
    budgets.create(&PostParams::default(), &budget).await.expect("created");
    let output = first.wait_with_output().await.expect("ended");
    assert_eq!(output.status.code(), Some(PARTLY));
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    assert_eq!(report["end"], "partly", "{report:#}");
    assert!(ends_of(&report).contains(&"leftOut"), "{report:#}");
    assert_eq!(left_behind(&harness).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_maintenance_that_was_stopped_can_be_ended() {
    let harness = Harness::start(SPEED).await;
    let output = harness.enforce(&line("false", &["--parallel", "1"])).await;
    assert_eq!(output.code, PARTLY, "{}", output.err);
    let id = harness.operations()[0].id.to_string();
    let release = format!("--release={id}");
    let output = harness.run(&["journal"]).await;
    assert!(output.out.contains(&id) && output.out.contains("interrupted"), "{}", output.out);
    let left = left_behind(&harness).await;
    let output = harness.run(&["why", "node", &left[0]]).await;
    let next =
        format!("which was stopped: `kordon maintenance --resume={id} --enforce` goes on, {release} ends it");
    assert!(output.out.contains(&next), "{}", output.out);
    let output = harness.run(&["status", "-o", "json"]).await;
    let status = output.json();
    let node = status["nodes"].as_array().into_iter().flatten().find(|node| node["name"] == *left[0]);
    let maintenance = &node.expect("a node")["maintenance"];
    assert!(maintenance["operation"] == *id && maintenance["running"] == false, "{maintenance}");
    assert_eq!(harness.enforce(&["maintenance", &release]).await.code, DONE);
    assert_eq!(left_behind(&harness).await, Vec::<String>::new());
    let output = harness.enforce(&["maintenance", "--resume"]).await;
    assert!(output.err.contains("no maintenance was stopped"), "{}", output.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resume_without_an_id_takes_the_only_one_that_was_stopped_and_not_a_running_one() {
    let (harness, runs) = (Harness::start(SPEED).await, Runs::new());
    let exec = runs.command("60");
    let first = [&["maintenance", NODES[0]], &FLAGS[..], &["--exec", &exec]].concat();
    let mut running = harness.enforcing(&first).spawn().expect("it starts");
    harness.until(|_| runs.path().exists()).await;
    let second = [&["maintenance", NODES[1]], &FLAGS[..], &["--exec", "false"]].concat();
    let output = harness.enforce(&second).await;
    assert_eq!(output.code, PARTLY, "{}", output.err);
    let id = harness.operations()[1].id.to_string();
    let output = harness.enforce(&["maintenance", "--resume"]).await;
    assert_eq!(output.code, PARTLY, "its command fails again: {}", output.err);
    assert!(output.err.contains(&format!("{id}: 1 node is left to do")), "{}", output.err);
    assert!(running.try_wait().expect("known").is_none(), "the other one still runs");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_maintenance_that_somebody_else_has_taken_over_is_not_ended() {
    let harness = Harness::start(SPEED).await;
    let output = harness.enforce(&line("false", &["--parallel", "1"])).await;
    assert_eq!(output.code, PARTLY, "{}", output.err);
    let left = left_behind(&harness).await;
    let nodes: Objects<Node> = Objects::all(harness.server.api.client());
    for name in &left {
        let node = nodes.get(name).await.expect("a node");
        let note = MaintenanceNote::parse(&node.annotations()[MAINTENANCE]).expect("a note");
        let note = MaintenanceNote {
            by: "bob@elsewhere".into(),
            renewed: harness.now() + Span::from_secs(3600),
            ..note
        };
        let patch = Patch::Merge(json!({"metadata": {"annotations": {MAINTENANCE: note.to_text()}}}));
        nodes.patch(name, &PatchParams::default(), &patch).await.expect("patched");
    }
    let release = format!("--release={}", harness.operations()[0].id);
    let output = harness.enforce(&["maintenance", &release]).await;
    assert!(output.code == CLAIMED && output.err.contains("bob@elsewhere runs"), "{}", output.err);
    assert_eq!(left_behind(&harness).await, left);
    let output = harness.enforce(&["maintenance", &release, "--take-over"]).await;
    assert_eq!(output.code, DONE, "{}", output.err);
    assert_eq!(left_behind(&harness).await, Vec::<String>::new());
}

/// As after a resume with `--take-over` on another machine, or if this process was asleep meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_stops_once_somebody_else_has_resumed_its_maintenance_and_leaves_the_nodes_to_them() {
    let (harness, runs) = (Harness::start(SPEED).await, Runs::new());
    let exec = runs.command("3");
    let mut command = harness.enforcing(&line(&exec, &["--parallel", "1", "--on-failure", "rollback"]));
    let program = command.stdout(Stdio::piped()).spawn().expect("it starts");
    harness.until(|_| runs.path().exists()).await;
    let nodes: Objects<Node> = Objects::all(harness.server.api.client());
    for name in NODES {
        let node = nodes.get(name).await.expect("a node");
        let note = MaintenanceNote::parse(&node.annotations()[MAINTENANCE]).expect("a note");
        let renewed = harness.now() + Span::from_secs(3600);
        let note = MaintenanceNote { by: "bob@elsewhere".into(), renewed, ..note };
        let patch = Patch::Merge(json!({"metadata": {"annotations": {MAINTENANCE: note.to_text()}}}));
        nodes.patch(name, &PatchParams::default(), &patch).await.expect("patched");
    }
    let output = program.wait_with_output().await.expect("ended");
    assert_eq!(output.status.code(), Some(PARTLY));
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    let says = report["says"].as_str().expect("a text");
    assert!(
        says.contains("bob@elsewhere has resumed it elsewhere") && report["end"] == "paused",
        "{report:#}"
    );
    for name in NODES {
        let node = nodes.get(name).await.expect("a node");
        let note = MaintenanceNote::parse(&node.annotations()[MAINTENANCE]).expect("its note is left");
        assert!(note.by == "bob@elsewhere" && note.is_fresh(harness.now()), "{note:?}");
    }
}

/// The operator may answer the question of a resume minutes later. Somebody else has released the nodes by then.
#[tokio::test(flavor = "multi_thread")]
async fn a_resume_goes_on_with_what_is_left_when_the_operator_agrees() {
    let harness = Harness::start(SPEED).await;
    let output = harness.enforce(&line("false", &["--parallel", "1"])).await;
    assert_eq!(output.code, PARTLY, "{}", output.err);
    let resume = [&harness.connection()[..], &["maintenance", "--resume", "--enforce"]].concat();
    let mut terminal = Terminal::with(harness.shell.under_terminal(&resume));
    tokio::task::block_in_place(|| terminal.wait("Type here to continue"));
    let release = format!("--release={}", harness.operations()[0].id);
    assert_eq!(harness.enforce(&["maintenance", &release]).await.code, DONE);
    let written = harness.server.written();
    tokio::task::block_in_place(|| {
        terminal.type_in("here\r");
        terminal.end()
    });
    assert_eq!(harness.server.written(), written, "{}", terminal.raw());
    assert_eq!(left_behind(&harness).await, Vec::<String>::new());
}
