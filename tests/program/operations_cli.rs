//! Operations from the command line: their writes, their refusals, and how they end.

use std::{collections::BTreeSet, fs, process::Stdio, time::Duration};

use k8s_openapi::api::core::v1::{Node, Pod};
use kordon::journal::LineKind;
use kordon_core::cluster::{
    CordonNote, DrainClaim,
    claim::{CORDON, DRAIN},
};
use kordon_demo::api::{Fault, FaultAnswer, Verb};
use kordon_time::Timestamp;
use kube::{
    Api as Objects, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    common::{program::is_cordoned, terminal::Terminal},
    harness::{Harness, interrupt},
};

// Exit codes, as in `docs/reference/cli.md`.
const DONE: i32 = 0;
const USAGE: i32 = 2;
const REFUSED: i32 = 5;
const BLOCKED: i32 = 6;
const GUARDED: i32 = 8;
const NOT_ALLOWED: i32 = 9;
const MARKED: i32 = 10;
const TIMED_OUT: i32 = 11;
const INTERRUPTED: i32 = 13;

/// Speed of the cluster's time compared with real time.
const SPEED: f64 = 20.0;

/// Flags with which every pod of the demo can be drained.
const FLAGS: [&str; 3] = ["--ignore-daemonsets", "--delete-emptydir-data", "--force"];
const ENFORCE: [&str; 2] = ["--enforce", "--yes"];

#[tokio::test(flavor = "multi_thread")]
async fn without_enforce_the_plan_is_printed_and_nothing_is_written() {
    let harness = Harness::start(SPEED).await;
    for line in [
        &["drain", "general-1a-02", "--ignore-daemonsets", "--delete-emptydir-data", "--force"][..],
        &["cordon", "general-1a-02"],
        &["taint", "nodes", "general-1a-02", "a=b:NoExecute"],
        &["label", "nodes", "general-1a-02", "a=b"],
        &["annotate", "nodes", "general-1a-02", "a=any text"],
    ] {
        let output = harness.run(line).await;
        assert!(output.out.contains("Nothing was written."), "{line:?}: {} {}", output.out, output.err);
    }
    assert_eq!(harness.server.written(), Vec::<String>::new());
    assert!(!harness.journal().path().exists(), "a journal of nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn validating_lets_the_server_judge_each_write_and_changes_nothing() {
    let harness = Harness::start(SPEED).await;
    let line = [&["plan"][..], &drain(&["general-1a-02"]), &["--dry-run=server", "-o", "json"]].concat();
    let output = harness.run(&line).await;
    assert_eq!(output.code, DONE, "{}", output.err);
    let plan = output.json();
    let steps = plan["steps"].as_array().expect("steps");
    assert!(steps.len() > 3 && steps[0]["text"] == json!("cordon node/general-1a-02"), "{steps:?}");
    for step in steps {
        assert_eq!((&step["dryRunResult"], &step["asPlanned"]), (&json!("allowed"), &json!(true)), "{step}");
    }
    assert_eq!(harness.server.written().len(), steps.len(), "each is asked about once");
    let node = harness.server.node("general-1a-02").await;
    assert!(
        !is_cordoned(&node) && harness.terminating_pods("general-1a-02").await.is_empty(),
        "it was no dry run"
    );
    assert!(!harness.journal().path().exists(), "a journal of nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn validating_reports_what_the_server_would_refuse() {
    let harness = Harness::start(SPEED).await;
    harness.server.api.inject(Fault::always(FaultAnswer::Forbidden).on(&[Verb::Create], "pods/eviction"));
    let output = harness.run(&[&drain(&["general-1a-02"])[..], &["--dry-run=server"]].concat()).await;
    assert_eq!(output.code, NOT_ALLOWED, "{}", output.err);
    assert!(output.out.contains("not as planned") && output.out.contains("forbidden"), "{}", output.out);
    let output = harness.enforce(&[&drain(&["general-1a-02"])[..], &["--dry-run=server"]].concat()).await;
    assert_eq!(output.code, USAGE, "{}", output.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn at_a_terminal_only_the_requested_word_confirms() {
    let harness = Harness::start(SPEED).await;
    let line =
        [&harness.connection()[..], &drain(&["general-1a-02", "general-1b-02"]), &["--enforce"]].concat();
    for typed in ["", "y", "yes"] {
        let mut terminal = Terminal::with(harness.shell.under_terminal(&line));
        let status = tokio::task::block_in_place(|| {
            terminal.wait("Type here to continue");
            terminal.type_in(&format!("{typed}\r"));
            terminal.end()
        });
        // For more than one node the context has to be typed; "yes" is not accepted.
        assert_eq!(status.exit_code(), INTERRUPTED.cast_unsigned(), "{}", terminal.raw());
        assert!(terminal.raw().contains("not confirmed: nothing was written"), "{}", terminal.raw());
    }
    assert_eq!(harness.server.written(), Vec::<String>::new());
    let mut terminal = Terminal::with(harness.shell.under_terminal(&line));
    let status = tokio::task::block_in_place(|| {
        terminal.wait("Type here to continue");
        terminal.type_in("here\r");
        terminal.end()
    });
    assert_eq!(status.exit_code(), DONE.cast_unsigned(), "{}", terminal.raw());
    assert!(terminal.raw().contains("kubectl drain general-1a-02 general-1b-02"), "the plan was shown");
    assert_eq!(harness.server.left_on("general-1a-02").await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn enforcing_without_a_terminal_needs_a_second_flag() {
    let harness = Harness::start(SPEED).await;
    let output = harness.run(&["cordon", "general-1a-02", "--enforce"]).await;
    assert_eq!(output.code, USAGE);
    assert!(output.err.contains("--yes") && harness.server.written().is_empty(), "{}", output.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cordon_says_who_and_why_and_is_undone_by_its_name() {
    let harness = Harness::start(SPEED).await;
    let reason = ["--reason", "new kernel", "--until", "2h"];
    let report = harness.enforced(&[&["cordon", "general-1a-02"][..], &reason].concat()).await;
    assert_eq!((&report["end"], &report["nodes"][0]["stage"]), (&json!("done"), &json!("written")));
    let node = harness.server.node("general-1a-02").await;
    let note = CordonNote::parse(&node.annotations()[CORDON]).expect("a note of ours");
    assert!(note.by.contains("alice") && note.reason == "new kernel" && note.until.is_some(), "{note:?}");
    let status = harness.run(&["status", "--no-pods"]).await.out;
    let row = status.lines().find(|line| line.starts_with("general-1a-02") && line.contains("new kernel"));
    let row = row.unwrap_or_else(|| panic!("no cordon in\n{status}"));
    assert!(row.contains("alice") && row.contains(" left)"), "{row}");
    let plan = harness.run(&["plan", "uncordon", "general-1a-02"]).await.out;
    assert!(plan.contains("the cordon of general-1a-02 is meant to stand: by alice"), "{plan}");
    let expired = CordonNote { until: Some(note.at), ..note };
    let annotations = json!({"annotations": {CORDON: expired.to_text()}});
    harness.patch("general-1a-02", json!({"metadata": annotations})).await;
    let status = harness.run(&["status", "--no-pods", "-o", "json"]).await.out;
    let status: Value = serde_json::from_str(&status).expect("a report");
    let nodes = status["nodes"].as_array().expect("nodes");
    let node = nodes.iter().find(|node| node["name"] == json!("general-1a-02")).expect("the node");
    assert_eq!((&node["cordon"]["why"], &node["cordon"]["expired"]), (&json!("new kernel"), &json!(true)));
    let again = harness.enforced(&["cordon", "general-1a-02"]).await;
    assert_eq!(again["nodes"][0]["stage"], json!("unchanged"));
    let again = harness.enforce(&["cordon", "general-1a-02"]).await.out;
    assert!(again.starts_with("nothing to do: no operation was started"), "{again}");
    let plan = report["operation"].as_str().expect("a name");
    harness.enforced(&["undo", plan]).await;
    let node = harness.server.node("general-1a-02").await;
    assert!(!is_cordoned(&node) && !node.annotations().contains_key(CORDON));
}

#[tokio::test(flavor = "multi_thread")]
async fn undo_leaves_what_somebody_else_cordoned() {
    let harness = Harness::start(SPEED).await;
    let report = harness.enforced(&["cordon", "general-1a-02"]).await;
    harness.enforced(&["uncordon", "general-1a-02"]).await;
    harness.patch("general-1a-02", json!({"spec": {"unschedulable": true}})).await;
    harness.enforced(&["undo", report["operation"].as_str().expect("a name")]).await;
    assert!(is_cordoned(&harness.server.node("general-1a-02").await), "it was not ours to uncordon");
}

#[tokio::test(flavor = "multi_thread")]
async fn taints_and_labels_are_written_and_restored() {
    let harness = Harness::start(SPEED).await;
    harness.patch("general-1a-02", json!({"spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}})).await;
    let tainted = harness.enforced(&["taint", "nodes", "general-1a-02", "a=b:NoSchedule", "x-"]).await;
    let labelled = harness
        .enforced(&["label", "nodes", "general-1a-02", "team=blue", "topology.kubernetes.io/region-"])
        .await;
    let keys = |node: &Node| -> Vec<String> {
        let taints = node.spec.clone().and_then(|spec| spec.taints).unwrap_or_default();
        taints.into_iter().map(|taint| taint.key).collect()
    };
    let node = harness.server.node("general-1a-02").await;
    assert_eq!((keys(&node), node.labels()["team"].as_str()), (vec!["a".to_owned()], "blue"));
    for report in [tainted, labelled] {
        harness.enforced(&["undo", report["operation"].as_str().expect("a name")]).await;
    }
    let node = harness.server.node("general-1a-02").await;
    assert_eq!((keys(&node), node.labels().get("team")), (vec!["x".to_owned()], None));
}

#[tokio::test(flavor = "multi_thread")]
async fn annotations_are_written_undone_and_kordons_own_are_refused() {
    let harness = Harness::start(SPEED).await;
    harness.patch("general-1a-02", json!({"metadata": {"annotations": {"old": "x", "kept": "y"}}})).await;
    let line = ["annotate", "node", "general-1a-02", "example.com/note=disk 3 is slow, see a=b", "old-"];
    let report = harness.enforced(&line).await;
    let node = harness.server.node("general-1a-02").await;
    let value = |node: &Node, key: &str| node.annotations().get(key).cloned();
    assert_eq!(value(&node, "example.com/note").as_deref(), Some("disk 3 is slow, see a=b"));
    assert_eq!((value(&node, "old"), value(&node, "kept").as_deref()), (None, Some("y")));
    let listed = harness.run(&["annotate", "node", "general-1a-02", "--list"]).await.out;
    assert!(listed.lines().any(|line| line == "example.com/note=disk 3 is slow, see a=b"), "{listed}");

    let refused = harness.enforce(&["annotate", "node", "general-1a-02", "kept=z"]).await;
    assert_eq!(refused.code, REFUSED, "{}", refused.err);
    let planned = harness.run(&["annotate", "node", "general-1a-02", "kept=z"]).await;
    assert!(planned.out.contains("'kept' already has a value (y)"), "{}", planned.out);
    for own in ["kordon.dev/cordon=x", "kordon.dev/drain-", "kordon.dev/maintenance-"] {
        let output = harness.enforce(&["annotate", "node", "general-1a-02", own, "--overwrite"]).await;
        assert_eq!(output.code, USAGE, "{own}");
        assert!(output.err.contains("is guarded"), "{}", output.err);
    }
    harness.enforced(&["undo", report["operation"].as_str().expect("a name")]).await;
    let node = harness.server.node("general-1a-02").await;
    assert_eq!((value(&node, "example.com/note"), value(&node, "old").as_deref()), (None, Some("x")));
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_permissions_are_named_before_anything_is_written() {
    let harness = Harness::start(SPEED).await;
    harness.server.api.inject(Fault::always(FaultAnswer::Forbidden).on(&[Verb::Create], "pods/eviction"));
    let output = harness.enforce(&drain(&["general-1a-02"])).await;
    assert_eq!(output.code, NOT_ALLOWED, "{}", output.err);
    assert!(output.err.contains("create pods/eviction in "), "{}", output.err);
    assert_eq!(harness.server.written(), Vec::<String>::new());
}

/// Scenario 7: A drain whose cordon is refused stops before the first eviction (kubectl evicts all the same).
#[tokio::test(flavor = "multi_thread")]
async fn a_cordon_that_is_refused_ends_the_drain_before_any_pod_is_touched() {
    let harness = Harness::start(SPEED).await;
    // A fault that does not affect all requests takes away no permission, so an access review still allows the cordon.
    harness
        .server
        .api
        .inject(Fault::always(FaultAnswer::Forbidden).on(&[Verb::Patch], "nodes").share(0.999_999));
    let output = harness.enforce(&drain(&["general-1a-02"])).await;
    assert_eq!(output.code, NOT_ALLOWED, "{}", output.err);
    assert!(harness.server.evictions().is_empty(), "{:?}", harness.server.evictions());
}

#[tokio::test(flavor = "multi_thread")]
async fn guard_rails_hold_unless_they_are_overridden_by_name() {
    let harness = Harness::start(SPEED).await;
    let line = ["cordon", "general-1a-02", "general-1b-02", "--max-nodes=1"];
    let output = harness.enforce(&line).await;
    assert_eq!(output.code, GUARDED);
    assert!(
        output.err.contains("--override max-nodes") && harness.server.written().is_empty(),
        "{}",
        output.err
    );
    let output = harness.enforce(&[&line[..], &["--override", "max-nodes"]].concat()).await;
    assert_eq!(output.code, DONE, "{}", output.err);
    let operations = harness.operations();
    assert_eq!(operations[0].start.overrides, ["max-nodes"], "the override is in the journal");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_without_its_flags_is_refused_with_the_flags_it_needs() {
    let harness = Harness::start(SPEED).await;
    let output = harness.enforce(&["drain", "general-1a-02"]).await;
    assert_eq!(output.code, REFUSED);
    assert!(
        output.err.contains("--ignore-daemonsets") && harness.server.written().is_empty(),
        "{}",
        output.err
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_somebody_else_is_draining_is_left_alone() {
    let harness = Harness::start(SPEED).await;
    let mark = DrainClaim {
        by: "bob@desk".into(),
        operation: "theirs".parse().unwrap(),
        renewed: harness.now(),
        ..DrainClaim::default()
    };
    harness.patch("general-1a-02", json!({"metadata": {"annotations": {DRAIN: mark.to_text()}}})).await;
    let output = harness.enforce(&drain(&["general-1a-02"])).await;
    assert_eq!(output.code, MARKED);
    assert!(output.err.contains("bob@desk"), "{}", output.err);
    assert!(
        harness.server.evictions().is_empty() && !is_cordoned(&harness.server.node("general-1a-02").await)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_ends_with_nothing_on_the_node_that_should_go() {
    let harness = Harness::start(SPEED).await;
    let report = harness.enforced(&drain(&["general-1a-02"])).await;
    assert_eq!((&report["end"], &report["nodes"][0]["stage"]), (&json!("done"), &json!("drained")));
    assert_eq!(harness.server.left_on("general-1a-02").await, Vec::<String>::new());
    let node = harness.server.node("general-1a-02").await;
    assert!(is_cordoned(&node) && !node.annotations().contains_key(DRAIN), "cordoned, and no mark is left");
    harness.server.api.inject(Fault::always(FaultAnswer::Forbidden).on(&[Verb::Create], "pods/eviction"));
    let journal = harness.run(&["journal", "-o", "json"]).await.done();
    let journal: Value = serde_json::from_str(&journal).expect("JSON");
    assert_eq!(journal["operations"][0]["end"], json!("done"));
}

/// Scenario 30: A pod that is bound to the node during the drain is found by listing again, and evicted (kubectl
/// leaves it).
#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_is_bound_to_the_node_meanwhile_goes_too() {
    let harness = Harness::start(SPEED).await;
    let line = drain(&["general-1a-02"]);
    let (output, ()) = tokio::join!(harness.enforce(&line), async {
        harness.until(|harness| !harness.server.evictions().is_empty()).await;
        let owner = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": "x", "controller": true}]);
        let pod = json!({"metadata": {"name": "late", "namespace": "default", "ownerReferences": owner},
            "spec": {"nodeName": "general-1a-02", "containers": [{"name": "c", "image": "i"}]},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
        harness.server.api.load("pods", pod);
    });
    assert_eq!(output.code, DONE, "{}", output.err);
    assert!(harness.server.evictions().iter().any(|key| key == "default/late"), "{}", output.err);
    assert_eq!(harness.server.left_on("general-1a-02").await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn evictions_without_an_answer_do_not_delay_a_drain_beyond_its_timeout() {
    let harness = Harness::start(SPEED).await;
    harness.server.api.inject(Fault::always(FaultAnswer::Hang).on(&[Verb::Create], "pods/eviction"));
    let begun = harness.now();
    let line = [&drain(&["general-1a-02"])[..], &["--timeout=3s"]].concat();
    let output = harness.enforce(&line).await;
    assert_eq!(output.code, TIMED_OUT, "{}", output.err);
    assert!(harness.now().since(begun).as_secs() < 45, "it took {}", harness.now().since(begun));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_cancels_with_a_report_and_removes_the_claim() {
    let harness = Harness::start(SPEED).await;
    harness.server.api.inject(
        Fault::always(FaultAnswer::Overloaded { retry_after_secs: 60 }).on(&[Verb::Create], "pods/eviction"),
    );
    let line = [&harness.connection()[..], &drain(&["general-1a-02"]), &ENFORCE, &["-o", "json"]].concat();
    let child = harness.shell.command(&line).stdout(Stdio::piped()).spawn().expect("started");
    harness.until(|harness| harness.server.api.log().iter().any(|logged| logged.code == 429)).await;
    interrupt(&child);
    let output = child.wait_with_output().await.expect("ended");
    assert_eq!(output.status.code(), Some(INTERRUPTED));
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    assert_eq!(report["end"], json!("cancelled"));
    let node = harness.server.node("general-1a-02").await;
    assert!(is_cordoned(&node) && !node.annotations().contains_key(DRAIN));
}

/// Scenario 70: Undo leaves a node cordoned that was cordoned before the plan.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_cordoned_before_a_drain_stays_so_when_it_is_undone() {
    let harness = Harness::start(SPEED).await;
    harness.patch("general-1a-02", json!({"spec": {"unschedulable": true}})).await;
    let report = harness.enforced(&drain(&["general-1a-02"])).await;
    assert_eq!(report["nodes"][0]["cordoned"], json!(false));
    harness.enforced(&["undo", report["operation"].as_str().expect("a name")]).await;
    assert!(is_cordoned(&harness.server.node("general-1a-02").await));
}

/// Scenario 14: A taint list that somebody else changed meanwhile is not overwritten: 409, and the list is
/// computed again (kubectl overwrites it).
#[tokio::test(flavor = "multi_thread")]
async fn after_a_conflict_the_list_of_taints_is_computed_again() {
    let harness = Harness::start(SPEED).await;
    harness.patch("general-1a-02", json!({"spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}})).await;
    harness.server.api.inject(Fault::always(FaultAnswer::Conflict).on(&[Verb::Patch], "nodes").share(0.6));
    let report = harness.enforced(&["taint", "nodes", "general-1a-02", "a=b:NoSchedule"]).await;
    assert_eq!(report["end"], json!("done"));
    let taints =
        harness.server.node("general-1a-02").await.spec.and_then(|spec| spec.taints).unwrap_or_default();
    let keys: Vec<&str> = taints.iter().map(|taint| taint.key.as_str()).collect();
    assert_eq!(keys, ["a", "x"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_survives_the_loss_of_the_server() {
    let harness = Harness::start(SPEED).await;
    let line = drain(&["general-1a-02"]);
    let (output, ()) = tokio::join!(harness.enforce(&line), async {
        harness.until(|harness| !harness.server.evictions().is_empty()).await;
        // The outage begins after the first eviction and lasts three seconds; there is no event to wait for.
        harness.server.api.set_down(true);
        tokio::time::sleep(Duration::from_secs(3)).await;
        harness.server.api.set_down(false);
    });
    assert_eq!(output.code, DONE, "{}", output.err);
    assert_eq!(harness.server.left_on("general-1a-02").await, Vec::<String>::new());
    assert_eq!(harness.evicted_twice(0), Vec::<String>::new());
}

/// Scenario 69: A drain that is killed and started again resumes from its journal with the pods that are left.
///
/// The drain is killed at random moments and resumed, `KORDON_KILLS` times.
#[tokio::test(flavor = "multi_thread")]
async fn drains_that_are_killed_and_resumed_evict_no_pod_twice_and_forget_none() {
    let kills: usize = std::env::var("KORDON_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(10);
    let seed: u64 = std::env::var("KORDON_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut chance = fastrand::Rng::with_seed(seed);
    let harness = Harness::start(SPEED).await;
    let workers = harness.workers().await;
    let (mut killed, mut amid, mut round) = (0, 0, 0);
    while killed < kills {
        let nodes =
            [workers[round * 2 % workers.len()].clone(), workers[(round * 2 + 1) % workers.len()].clone()];
        let (times, in_the_middle) = harness.drain_with_kills(&nodes, &mut chance, seed, round).await;
        killed += times;
        amid += in_the_middle;
        round += 1;
        println!("{killed} kills in {round} drains so far");
    }
    println!("killed {killed} times, {amid} of them between the first eviction and the end");
    assert!(amid * 4 >= killed, "only {amid} of {killed} kills came in the middle: they prove little");
}

impl Harness {
    pub async fn patch(&self, node: &str, patch: Value) {
        let nodes: Objects<Node> = Objects::all(self.server.api.client());
        nodes.patch(node, &PatchParams::default(), &Patch::Merge(patch)).await.expect("patched");
    }

    async fn nodes(&self) -> Vec<Node> {
        Objects::all(self.server.api.client()).list(&ListParams::default()).await.expect("nodes").items
    }

    /// Returns the nodes that are not control plane nodes.
    async fn workers(&self) -> Vec<String> {
        let is_worker = |node: &Node| !node.labels().contains_key("node-role.kubernetes.io/control-plane");
        self.nodes().await.iter().filter(|node| is_worker(node)).map(ResourceExt::name_any).collect()
    }

    /// Returns the terminating pods on a node.
    async fn terminating_pods(&self, node: &str) -> Vec<String> {
        let params = ListParams::default().fields(&format!("spec.nodeName={node}"));
        let pods: Vec<Pod> = Objects::all(self.server.api.client()).list(&params).await.expect("pods").items;
        pods.iter()
            .filter(|pod| pod.metadata.deletion_timestamp.is_some())
            .map(ResourceExt::name_any)
            .collect()
    }

    /// Drains two nodes, killing and resuming the drain at random; then checks the result and undoes the drain. Returns
    /// the number of kills, and the number of kills after the drain's first eviction.
    async fn drain_with_kills(
        &self,
        nodes: &[String; 2],
        chance: &mut fastrand::Rng,
        seed: u64,
        round: usize,
    ) -> (usize, usize) {
        let output = format!("seed {seed}, round {round}, {nodes:?}");
        let (begun, evicted_before) = (self.now(), self.server.evictions().len());
        let mut line = drain(&[&nodes[0], &nodes[1]]);
        line.push("--parallel=2");
        let (mut killed, mut amid) = (0, 0);
        loop {
            let arguments = [&self.connection()[..], &line, &ENFORCE, &["-o", "json"]].concat();
            let (mut command, said) = (self.shell.command(&arguments), self.shell.home.path().join("said"));
            let errors = fs::File::create(&said).expect("a file");
            let mut child = command.stdout(Stdio::null()).stderr(errors).spawn().expect("started");
            let is_left = killed >= 3
                || tokio::select! {
                    _ = child.wait() => true,
                    () = self.kill_is_due(begun, chance) => false,
                };
            if is_left {
                let ended = tokio::time::timeout(Duration::from_secs(300), child.wait()).await;
                let said = fs::read_to_string(&said).expect("it was written to");
                let Ok(status) = ended else { panic!("{output}: it does not end: {said}") };
                let code = status.expect("waited for").code();
                if code == Some(BLOCKED) && line[1] != "--resume" {
                    // The drain can be blocked, for example by the only replica of a workload under a budget. Other
                    // nodes are drained then.
                    assert!(
                        !is_cordoned(&self.server.node(&nodes[0]).await),
                        "{output}: begun all the same: {said}"
                    );
                    return (killed, amid);
                }
                assert_eq!(code, Some(DONE), "{output}: {said}");
                break;
            }
            child.kill().await.expect("killed");
            killed += 1;
            amid += usize::from(self.server.evictions().len() > evicted_before);
            self.check_cordons(&output).await;
            let operations = self.operations();
            match operations.iter().rfind(|past| past.start.action == "drain" && past.started >= begun) {
                // The drain was killed before it had started, so it is started again.
                None => {}
                Some(past) if past.is_unfinished() => line = vec!["drain", "--resume"],
                // The drain was complete when it was killed; only its report was missing.
                Some(_) => break,
            }
        }
        assert_eq!(self.evicted_twice(evicted_before), Vec::<String>::new(), "{output}");
        for node in nodes {
            assert_eq!(
                self.server.left_on(node).await,
                Vec::<String>::new(),
                "{output}: forgotten on {node}"
            );
            assert!(
                !self.server.node(node).await.annotations().contains_key(DRAIN),
                "{output}: a mark is left on {node}"
            );
        }
        self.check_cordons(&output).await;
        let operations = self.operations();
        let last = operations.iter().rfind(|past| past.start.action == "drain").expect("a drain");
        self.enforced(&["undo", &last.id]).await;
        for node in nodes {
            assert!(
                !is_cordoned(&self.server.node(node).await),
                "{output}: {node} is still cordoned after undo"
            );
        }
        (killed, amid)
    }

    /// Waits for a random time, after which the next kill is due. In three of four cases, the wait begins when the
    /// drain is in the journal, because the time until that moment depends on the machine. In the fourth case, it
    /// begins at once.
    async fn kill_is_due(&self, begun: Timestamp, chance: &mut fastrand::Rng) {
        if chance.u8(..4) > 0 {
            let has_begun = || {
                let lines = self.journal().lines().expect("read");
                lines.iter().any(|line| line.at >= begun && matches!(line.kind, LineKind::Started(_)))
            };
            while !has_begun() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        tokio::time::sleep(Duration::from_millis(chance.u64(..2000))).await;
    }

    /// Checks that the journal has every cordoned node.
    async fn check_cordons(&self, output: &str) {
        let operations = self.operations();
        let known: BTreeSet<String> =
            operations.iter().flat_map(|past| past.cordoned().map(ToString::to_string)).collect();
        for node in self.nodes().await.iter().filter(|node| is_cordoned(node)) {
            let name = node.name_any();
            assert!(
                known.contains(&name),
                "{output}: {name} is cordoned and the journal does not tell of it"
            );
        }
    }
}

fn drain<'a>(nodes: &[&'a str]) -> Vec<&'a str> {
    [&["drain"][..], nodes, &FLAGS].concat()
}
