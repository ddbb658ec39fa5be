//! The built binary as scripts use it: exit codes, standard output and standard error.

use std::{fs, time::Duration};

use k8s_openapi::api::core::v1::Pod;
use kordon_demo::{
    api::{ApiOptions, Fault, FaultAnswer, Verb},
    world::NodeFault,
};
use kube::{Api as Objects, ResourceExt, api::ListParams};
use serde_json::{Value, json};
use tokio::io::AsyncBufReadExt as _;

use crate::{
    common::{
        program::{Server, Shell, path},
        terminal::Terminal,
    },
    harness::interrupt,
};

/// Exit codes, as in `docs/reference/cli.md`.
const DONE: i32 = 0;
const CRITICAL: i32 = 16;
const FAILED: i32 = 1;
const USAGE: i32 = 2;
const NO_CONNECTION: i32 = 3;
const TOO_SLOW: i32 = 4;
const NOT_ALLOWED: i32 = 9;
const REFUSED: i32 = 5;
const BLOCKED: i32 = 6;

#[tokio::test]
async fn without_any_kubeconfig_the_demo_is_suggested() {
    let shell = Shell::new();
    for line in [&[][..], &["status"]] {
        let output = shell.refused(line, NO_CONNECTION).await;
        assert!(output.contains("no kubeconfig") && output.contains("`kordon demo`"), "{output}");
        assert!(output.contains(".kube/config"), "where it looked is not output: {output}");
    }
    let output = shell.with("KUBECONFIG", "/nowhere/config").refused(&["status"], NO_CONNECTION).await;
    assert!(output.contains("/nowhere/config") && output.contains("`kordon demo`"), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_terminal_the_demo_is_offered_where_there_is_no_kubeconfig() {
    let shell = Shell::new();
    tokio::task::block_in_place(|| {
        let mut declined = Terminal::with(shell.under_terminal(&[]));
        declined.wait("Press Enter for the demo, q to quit");
        declined.type_in("xq");
        assert_eq!(declined.end().exit_code(), NO_CONNECTION as u32);
        assert!(declined.text().contains("--kubeconfig"), "{}", declined.text());

        let mut accepted = Terminal::with(shell.under_terminal(&["--theme", "light"]));
        accepted.wait("No kubeconfig found (looked for");
        accepted.type_in("\r");
        accepted.wait("control-plane-1a-01");
        accepted.type_in("q");
        assert!(accepted.end().success());

        // A user who names a context wants a cluster, not the demo.
        let mut named = Terminal::with(shell.under_terminal(&["--context", "prod"]));
        assert_eq!(named.end().exit_code(), NO_CONNECTION as u32);
        assert!(!named.text().contains("Press Enter"), "{}", named.text());
    });
}

#[tokio::test]
async fn a_dashboard_whose_current_context_is_refused_names_the_other_contexts() {
    let shell = Shell::new();
    let context = |name: &str| json!({"name": name, "context": {"cluster": "c", "user": "alice"}});
    let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "current-context": "here",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "alice", "user": {}}],
        "contexts": [context("here"), context("prod"), context("staging")]});
    let file = shell.file("kubeconfig", &kubeconfig.to_string());
    let output = shell.refused(&["--kubeconfig", &file], NO_CONNECTION).await;
    assert!(output.contains("nothing listens there"), "{output}");
    assert!(output.contains("other contexts, for --context NAME: prod, staging"), "{output}");
    let output = shell.refused(&["--kubeconfig", &file, "--context", "prod"], NO_CONNECTION).await;
    assert!(!output.contains("other contexts"), "the user named one: {output}");
}

#[tokio::test]
async fn a_kubeconfig_that_is_not_there_or_makes_no_sense_is_named() {
    let shell = Shell::new();
    let output = shell.refused(&["status", "--kubeconfig", "/nowhere/config"], NO_CONNECTION).await;
    assert!(output.contains("/nowhere/config") && output.contains("no such file"), "{output}");
    let cases = [
        "clusters: [",
        "just words",
        "clusters: 7",
        "",
        "apiVersion: v1\nkind: Config\ncontexts: [{name: \"\\e[2J\"}]\n",
        "\x1b[2J\u{0}: x",
    ];
    for text in cases {
        let file = shell.file("config", text);
        shell.refused(&["status", "--kubeconfig", &file], NO_CONNECTION).await;
    }
    let malformed = shell.file("config", "clusters: [");
    let output = shell.with("KUBECONFIG", &malformed).refused(&["status"], NO_CONNECTION).await;
    assert!(output.contains(&malformed), "{output}");
}

#[tokio::test]
async fn an_unknown_context_is_answered_with_those_there_are() {
    let shell = Shell::new();
    let file = shell.kubeconfig("http://127.0.0.1:1", json!({}));
    let output = shell.refused(&["--kubeconfig", &file, "--context", "nope"], NO_CONNECTION).await;
    assert!(output.contains("\"nope\"") && output.contains("here"), "{output}");
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_named() {
    let shell = Shell::new();
    for line in [&["--server", "http://127.0.0.1:1"][..], &["status", "--server", "http://127.0.0.1:1"]] {
        let output = shell.refused(line, NO_CONNECTION).await;
        assert!(output.contains("http://127.0.0.1:1") && output.contains("refused"), "{output}");
    }
    let output = shell.refused(&["status", "--server", "not an address"], NO_CONNECTION).await;
    assert!(output.contains("not an address"), "{output}");
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_given_up_in_time() {
    let (shell, server) = (Shell::new(), Server::start(ApiOptions::default()).await);
    server.api.inject(Fault::always(FaultAnswer::Hang));
    let line = ["status", "--server", &server.url, "--request-timeout", "1s"];
    let output = shell.refused(&line, NO_CONNECTION).await;
    assert!(
        output.contains("did not respond within 1 s") && output.contains("--request-timeout"),
        "{output}"
    );
    assert!(output.contains("`kordon doctor`"), "the next step: {output}");
}

#[tokio::test]
async fn rejected_credentials_and_missing_rights_are_distinguished() {
    let tokens = [("good".to_owned(), "alice".to_owned())].into();
    let (shell, server) = (Shell::new(), Server::start(ApiOptions { tokens, ..ApiOptions::default() }).await);
    let expired = shell.kubeconfig(&server.url, json!({"token": "expired"}));
    let output = shell.refused(&["status", "--kubeconfig", &expired], NO_CONNECTION).await;
    assert!(output.contains("401") && output.contains("log in again"), "{output}");
    assert!(!output.contains("expired\""), "the token is shown: {output}");

    server.api.inject(Fault::always(FaultAnswer::Forbidden));
    let good = shell.kubeconfig(&server.url, json!({"token": "good"}));
    let output = shell.refused(&["status", "--kubeconfig", &good], NO_CONNECTION).await;
    assert!(output.contains("forbids") && output.contains("alice"), "{output}");
}

#[tokio::test]
async fn invalid_arguments_are_refused_with_the_valid_ones() {
    let shell = Shell::new();
    let cases: [(&[&str], &str); 16] = [
        (&["--no-such-flag"], "--no-such-flag"),
        (&["frobnicate"], "frobnicate"),
        (&["undo", "a/b"], "kordon journal"),
        (&["drain", "--resume=", "--enforce"], "kordon journal"),
        (&["status", "-o", "xml"], "json"),
        (&["status", "--timeout", "soon"], "20s"),
        (&["status", "--node-monitor-grace-period", "never"], "node-monitor-grace-period"),
        (&["demo", "--snapshot", "a.txt", "--size", "big"], "160x48"),
        (&["demo", "--snapshot", "a.txt", "--size", "0x10"], "160x48"),
        (&["demo", "--snapshot", "a.txt", "--size", "99999x99999"], "1000x1000"),
        (&["demo", "--snapshot", "a.txt", "--keys", "<Hyper>"], "PageDown"),
        (&["demo", "--keys", "j"], "--snapshot"),
        (&["demo", "--speed=-1"], "0.01 to 1000"),
        (&["demo", "--speed", "NaN"], "0.01 to 1000"),
        (&["demo", "--listen", "0.0.0.0:8001"], "loopback"),
        (&["demo", "--context", "prod"], "--context"),
    ];
    for (line, hint) in cases {
        let output = shell.refused(line, USAGE).await;
        assert!(output.contains(hint), "{line:?}: {output}");
    }
    let output = shell.refused(&["demo", "--scenario", "doomsday"], USAGE).await;
    assert!(output.contains("zone-outage"), "the scenarios are not listed: {output}");
    assert!(!shell.home.path().join("a.txt").exists());
}

#[tokio::test]
async fn help_and_version_and_what_shells_want_are_no_failures() {
    let shell = Shell::new();
    let cases: [(&[&str], &str); 5] = [
        (&["--help"], "Exit codes"),
        (&["demo", "--help"], "zone-outage"),
        (&["--version"], env!("CARGO_PKG_VERSION")),
        (&["completions", "bash"], "_kordon"),
        (&["man"], ".TH kordon"),
    ];
    for (line, text) in cases {
        let output = shell.run(line).await;
        assert_eq!(output.code, DONE, "{line:?}: {}", output.err);
        assert!(output.out.contains(text) && output.err.is_empty(), "{line:?}: {}", output.out);
    }
}

#[tokio::test]
async fn the_dashboard_without_a_terminal_says_so() {
    let output = Shell::new().refused(&["demo"], FAILED).await;
    assert!(output.contains("terminal"), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn status_has_every_node_in_every_format() {
    let (shell, server) = (Shell::new(), Server::start(ApiOptions::default()).await);
    let _world = server.inhabit();
    server.govern().await;
    let file = shell.kubeconfig(&server.url, json!({"token": "t"}));
    let status =
        async |format| shell.run(&["status", "--kubeconfig", &file, "--output", format]).await.done();

    let json: Value = serde_json::from_str(&status("json").await).expect("JSON");
    assert_eq!(json["schema"], "kordon.status/v1");
    assert_eq!(json["cluster"]["context"], "here");
    assert_eq!(json["cluster"]["server"], *server.url);
    assert_eq!(json["cluster"]["version"], "v1.36.3+kordon-demo", "with its patch");
    assert_eq!(json["controller"]["confidence"]["state"], "live");
    assert_eq!(json["controller"]["lease"], "held");
    assert_eq!(json["controller"]["leader"]["holder"], "the-leader");
    let nodes = json["nodes"].as_array().expect("nodes");
    let names: Vec<&str> = nodes.iter().filter_map(|node| node["name"].as_str()).collect();
    assert_eq!((names.len(), server.api.count("nodes")), (24, 24));
    assert!(names.is_sorted(), "{names:?}");
    let unknown = nodes.iter().filter(|node| node["ready"]["status"] == "Unknown").count();
    assert_eq!(unknown, 1, "the default scenario begins with one lost node");
    let down = |node: &&Value| ["Unknown", "Evicting"].map(Value::from).contains(&node["state"]);
    assert_eq!(nodes.iter().filter(down).count(), 1, "its state says so: {:?}", json["verdict"]);
    assert_eq!(json["verdict"]["level"], "critical");
    let verdict = json["verdict"]["text"].as_str().expect("a text");
    assert!(verdict.starts_with("node ") && verdict.contains(" · "), "{verdict}");
    assert!(nodes.iter().all(|node| node["probeTimestamp"].is_string()), "{nodes:#?}");
    let counted: u64 = nodes.iter().filter_map(|node| node["pods"].as_u64()).sum();
    assert!(counted > 100, "only {counted} pods");
    let zones: u64 =
        json["zones"].as_array().expect("zones").iter().filter_map(|z| z["nodes"].as_u64()).sum();
    assert_eq!(zones, 24);

    let yaml: Value = serde_saphyr::from_str(&status("yaml").await).expect("YAML");
    let fields = |report: &Value| report.as_object().expect("fields").keys().cloned().collect::<Vec<_>>();
    assert_eq!(fields(&yaml), fields(&json));
    let of_yaml: Vec<&str> =
        yaml["nodes"].as_array().expect("nodes").iter().filter_map(|node| node["name"].as_str()).collect();
    assert_eq!(of_yaml, names);

    let table = status("table").await;
    assert!(names.iter().all(|name| table.contains(name)), "{table}");
    assert!(!table.contains('\x1b'), "{table}");
    assert!(table.starts_with("✖ node "), "the verdict comes first: {table}");
    let line = ["status", "--kubeconfig", &file, "--exit-code"];
    assert_eq!(shell.run(&line).await.code, CRITICAL);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_fits_the_terminal_and_is_whole_with_wide() {
    let (shell, server) = (Shell::new(), Server::start(ApiOptions::default()).await);
    let _world = server.inhabit();
    server.govern().await;
    let on_a_terminal = |arguments: &[&str]| {
        let line = [&["status", "--server", &server.url], arguments].concat();
        let mut terminal = Terminal::with(shell.under_terminal(&line));
        terminal.resize(200, 80);
        tokio::task::block_in_place(|| assert!(terminal.end().success()));
        terminal.raw().replace('\r', "")
    };
    let lines_of_nodes = |text: &str| text.lines().filter(|line| line.starts_with("general-")).count();
    let fitted = on_a_terminal(&["--color", "never"]);
    let widest = fitted.lines().skip(4).map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "{fitted}");
    assert!(fitted.contains(" nodes") && lines_of_nodes(&fitted) < 5, "calm nodes are one row: {fitted}");
    assert!(fitted.contains("-o wide prints everything") && !fitted.contains('\x1b'), "{fitted}");
    let colored = on_a_terminal(&[]);
    assert!(colored.starts_with("\x1b[") && colored.contains("✖ node "), "{colored:?}");
    let wide = on_a_terminal(&["-o", "wide", "--color", "never"]);
    assert_eq!(lines_of_nodes(&wide), 13, "every node: {wide}");
    assert!(!wide.contains("prints everything"), "{wide}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verdict_is_followed_one_line_for_each_change() {
    let (shell, server) = (Shell::new(), Server::start(ApiOptions::default()).await);
    let world = server.inhabit();
    server.govern().await;
    let line = ["status", "--watch", "-o", "json", "--server", &server.url];
    let mut child = shell.command(&line).stdout(std::process::Stdio::piped()).spawn().expect("it starts");
    let mut lines = tokio::io::BufReader::new(child.stdout.take().expect("its output")).lines();
    let mut verdicts: Vec<Value> = Vec::new();
    // Reads verdicts until the controller has tainted the node. Only the last verdict counts the taint in its
    // predictions.
    let events = |verdict: &Value| verdict["predictions"]["events"].as_u64();
    while verdicts.last().map(events) == verdicts.first().map(events) {
        let line = tokio::time::timeout(Duration::from_secs(180), lines.next_line()).await;
        let line = line.expect("the verdict changes").expect("text").expect("it goes on");
        verdicts.push(serde_json::from_str(&line).expect("one document in a line"));
        world.inject("general-1a-02", NodeFault::StopRuntime).await;
    }
    assert!(verdicts.iter().all(|verdict| verdict["schema"] == "kordon.verdict/v1"), "{verdicts:#?}");
    assert!(verdicts.windows(2).all(|pair| pair[0]["text"] != pair[1]["text"]), "{verdicts:#?}");
    assert!(verdicts.len() > 1 && verdicts[0]["predictions"]["misses"] == json!([]), "{verdicts:#?}");
}

/// When the controller takes its Lease, it ends the watches of its shadow and starts others over the same connections.
#[tokio::test(flavor = "multi_thread")]
async fn a_controller_that_takes_its_lease_reports_no_broken_watch() {
    let (shell, server) = (Shell::new(), Server::start(ApiOptions::default()).await);
    let _world = server.inhabit();
    let kubeconfig = shell.kubeconfig(&server.url, json!({}));
    let line = ["controller", "--enforce", "--listen=127.0.0.1:0", "-o", "json", "--kubeconfig", &kubeconfig];
    let mut command = shell.command(&line);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
    let mut child = command.spawn().expect("it starts");
    let mut printed = tokio::io::BufReader::new(child.stdout.take().expect("its output")).lines();
    let mut lines: Vec<Value> = Vec::new();
    while lines.last().is_none_or(|line| line["kind"] != "leading") {
        let line = tokio::time::timeout(Duration::from_secs(180), printed.next_line()).await;
        let line = line.expect("it takes its Lease").expect("text").expect("it goes on");
        lines.push(serde_json::from_str(&line).expect("one document in a line"));
    }
    // The new watches list everything, and report changes for a while.
    tokio::time::sleep(Duration::from_secs(5)).await;
    interrupt(&child);
    while let Some(line) = printed.next_line().await.expect("text") {
        lines.push(serde_json::from_str(&line).expect("one document in a line"));
    }
    let is_about_watch = |line: &&Value| {
        line["object"].as_str().is_some_and(|object| object.starts_with("watch/"))
            || line["text"].as_str().is_some_and(|text| text.contains("dispatch task"))
    };
    let broken: Vec<&Value> = lines.iter().filter(is_about_watch).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn why_shows_the_chain_of_causes_of_a_node_and_names_what_is_missing() {
    let (shell, server) = (Shell::new(), Server::start(ApiOptions::default()).await);
    let _world = server.inhabit();
    server.govern().await;
    let ask =
        async |line: &[&str]| shell.run(&[&["why", "--server", &server.url], line].concat()).await.done();
    let status = shell.run(&["status", "--server", &server.url, "-o", "json"]).await.done();
    let status: Value = serde_json::from_str(&status).expect("JSON");
    let lost =
        status["nodes"].as_array().expect("nodes").iter().find(|node| node["ready"]["status"] == "Unknown");
    let lost = lost.expect("a lost node")["name"].as_str().expect("its name");

    let json: Value = serde_json::from_str(&ask(&["-o", "json", "node", lost]).await).expect("JSON");
    assert_eq!(
        (&json["schema"], &json["kind"], &json["name"]),
        (&json!("kordon.why/v1"), &json!("node"), &json!(lost))
    );
    let steps = json["steps"].as_array().expect("steps");
    let time =
        |topic: &str| steps.iter().find(|step| step["topic"] == topic).map(|step| step["time"].clone());
    assert_eq!([time("heartbeat"), time("ready")], [Some(json!("past")), Some(json!("past"))]);
    let table = ask(&["node", lost]).await;
    assert!(table.contains(lost) && table.contains("Unknown") && !table.contains('\x1b'), "{table}");
    let mut reasons = json["events"].as_array().expect("events").iter().map(|event| &event["reason"]);
    assert!(reasons.any(|reason| reason == "RegisteredNode"), "{json:#}");
    assert!(table.contains("what you can do") && table.contains("RegisteredNode"), "{table}");
    let action = |json: &Value, word: &str| {
        let actions = json["actions"].as_array().expect("actions").clone();
        actions
            .into_iter()
            .find(|action| action["action"] == word)
            .unwrap_or_else(|| panic!("{word} in {json:#}"))
    };
    let taint = action(&json, "outOfService");
    assert_eq!((&taint["by"], &taint["effect"]), (&json!("kordon"), &Value::Null));
    let command =
        format!("kubectl taint nodes {lost} node.kubernetes.io/out-of-service=nodeshutdown:NoExecute");
    assert_eq!(taint["command"], json!(command));
    assert!(taint["cautions"][0].as_str().is_some_and(|risk| risk.contains("known to be off")), "{taint}");

    // With `--placement`, the effect of deleting the node says what becomes of the node's pods.
    let json: Value =
        serde_json::from_str(&ask(&["-o", "json", "node", lost, "--placement"]).await).expect("JSON");
    let effect = action(&json, "deleteNode")["effect"].as_str().expect("an effect").to_owned();
    assert!(effect.contains("move") || effect.contains("leave"), "{effect}");

    // If the permission to read Events is missing, this is reported in place of the Events, and nowhere else.
    server.api.inject(Fault::always(FaultAnswer::Forbidden).on(&[], "events"));
    let json: Value = serde_json::from_str(&ask(&["-o", "json", "node", lost]).await).expect("JSON");
    assert_eq!(json["events"], Value::Null);
    assert!(json["eventsError"].as_str().is_some_and(|why| why.contains("events")), "{json:#}");
    server.api.clear_faults();

    let output = shell.refused(&["why", "--server", &server.url, "pod", "nobody"], FAILED).await;
    assert!(output.contains("pod default/nobody not found"), "{output}");
    let output = shell.refused(&["why", "--server", &server.url, "pod", "shop/nobody"], FAILED).await;
    assert!(output.contains("pod shop/nobody not found"), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn why_names_who_removed_a_pod_and_what_says_so() {
    let (shell, server) = (Shell::new(), Server::start(ApiOptions::default()).await);
    let terminated = json!({"reason": "OOMKilled", "exitCode": 137, "finishedAt": "2026-01-01T00:00:00Z"});
    let running = json!({"name": "app", "state": {"running": {}}, "lastState": {"terminated": terminated}});
    let low = "The node was low on resource: memory.";
    let statuses = [
        ("evicted", json!({"phase": "Failed", "reason": "Evicted", "message": low})),
        ("killed", json!({"phase": "Running", "containerStatuses": [running]})),
        ("stays", json!({"phase": "Running"})),
    ];
    for (name, status) in statuses {
        let metadata = json!({"name": name, "namespace": "default", "uid": name});
        server.api.load("pods", json!({"metadata": metadata, "spec": {}, "status": status}));
    }
    let preempted = json!({"metadata": {"name": "e1", "namespace": "default"}, "type": "Normal",
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "gone", "uid": "u"},
        "reason": "Preempted", "message": "Preempted by pod 7 on node n1", "source": {"component": "default-scheduler"}});
    server.api.load("events", preempted);
    let ask = async |line: &[&str]| {
        shell.run(&[&["why", "--server", &server.url, "pod"], line].concat()).await.done()
    };
    let departure = async |name: &str| {
        let json: Value = serde_json::from_str(&ask(&[name, "-o", "json"]).await).expect("JSON");
        json["departure"].clone()
    };
    let evidence = |source: &str, text: &str| json!([{"source": source, "agrees": true, "text": text}]);
    let evicted = departure("evicted").await;
    assert_eq!((&evicted["kind"], &evicted["stage"]), (&json!("nodePressureEviction"), &json!("finished")));
    assert_eq!(evicted["evidence"], evidence("status", &format!("status Evicted: {low}")));
    let killed = departure("killed").await;
    assert_eq!((&killed["kind"], &killed["stage"]), (&json!("oomKill"), &json!("restarted")));
    assert!(killed["inSeconds"].as_f64().is_some_and(|age| age < 0.0), "{killed:#}");
    assert_eq!(departure("stays").await, Value::Null);
    let gone = departure("gone").await;
    assert_eq!(
        (&gone["kind"], &gone["stage"], &gone["at"]),
        (&json!("preemption"), &json!("gone"), &Value::Null)
    );
    let text = "Event Preempted from default-scheduler: Preempted by pod 7 on node n1";
    assert_eq!(gone["evidence"], evidence("event", text));

    let table = ask(&["evicted"]).await;
    assert!(table.contains("departure: node-pressure eviction, certain, finished"), "{table}");
    assert!(table.contains(&format!("because  status Evicted: {low}")), "{table}");
    let output = shell.refused(&["why", "--server", &server.url, "pod", "nobody"], FAILED).await;
    assert!(output.contains("pod default/nobody not found"), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn status_without_a_controllers_lease_predicts_and_says_what_is_unknown() {
    let (shell, server) = (Shell::new(), Server::start(ApiOptions::default()).await);
    let _world = server.inhabit();
    let json = shell.run(&["status", "--server", &server.url, "-o", "json"]).await.done();
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["controller"]["confidence"], json!({"state": "assumed", "since": null}));
    assert_eq!((&json["controller"]["lease"], &json["controller"]["leader"]), (&json!("none"), &Value::Null));
    assert_ne!(json["forecastUntil"], json["takenAt"], "a controller without a lease acts all the same");
    let table = shell.run(&["status", "--server", &server.url]).await.done();
    assert!(
        table.contains("controller: no Lease (leader election may be off); confidence: assumed"),
        "{table}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn status_works_without_the_right_to_list_pods_and_says_so() {
    let (shell, server) = (Shell::new(), Server::start(ApiOptions::default()).await);
    let _world = server.inhabit();
    server.api.inject(Fault::always(FaultAnswer::Forbidden).on(&[Verb::List, Verb::Watch], "pods"));
    let out = shell.run(&["status", "--server", &server.url, "-o", "json"]).await.done();
    let json: Value = serde_json::from_str(&out).expect("JSON");
    let watches = json["watches"].as_array().expect("watches");
    let pods = watches.iter().find(|watch| watch["kind"] == "pods").expect("pods are wanted");
    assert_eq!(pods["state"], "forbidden");
    assert!(pods["error"].as_str().is_some_and(|error| !error.is_empty()), "{pods}");
    assert_eq!(json["nodes"].as_array().map(Vec::len), Some(24));
}

/// Starts a server whose user may read nodes and Leases, but not pods.
async fn without_pods() -> Server {
    let server = Server::start(ApiOptions::default()).await;
    server.api.inject(Fault::always(FaultAnswer::Forbidden).on(&[Verb::List, Verb::Watch], "pods"));
    server
}

const NODE: &str = "general-1a-02";

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_whose_outcome_rests_on_pods_is_refused_without_the_right_to_list_them() {
    let (shell, server) = (Shell::new(), without_pods().await);
    let _world = server.inhabit();
    let plan = |line: &str| {
        let line = format!("{line} --server {}", server.url);
        let shell = &shell;
        async move { shell.run(&line.split(' ').collect::<Vec<_>>()).await }
    };
    let pods_needed = [
        format!("plan drain {NODE} --ignore-daemonsets"),
        format!("drain {NODE} --enforce --yes"),
        format!("plan taint {NODE} a=b:NoExecute"),
        "plan delete pod cart-0".to_owned(),
        "plan evict pod -l app=cart".to_owned(),
    ];
    for line in pods_needed {
        let output = plan(&line).await;
        assert_eq!((output.code, &*output.out), (NOT_ALLOWED, ""), "{line}: {}", output.err);
        let text = "pods cannot be listed (missing permission: list pods)";
        assert!(output.err.contains(text), "{line}: {}", output.err);
    }
    let output = plan(&format!("plan drain {NODE} -o json")).await;
    let json = output.json();
    let pods = json!({"kind": "pods", "state": "forbidden", "since": null, "missingPermission": "list pods"});
    assert_eq!((&json["outcome"], &json["unknown"][0]["kinds"][0]), (&json!("unknown"), &pods));
    for line in [format!("plan cordon {NODE}"), format!("plan taint {NODE} a=b:NoSchedule")] {
        let output = plan(&line).await;
        assert_eq!(output.code, DONE, "{line} rests on nodes alone: {}", output.err);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_without_the_right_to_list_budgets_is_planned_and_does_not_say_when_it_ends() {
    let (shell, server) = (Shell::new(), Server::start(ApiOptions::default()).await);
    let forbidden =
        Fault::always(FaultAnswer::Forbidden).on(&[Verb::List, Verb::Watch], "poddisruptionbudgets");
    server.api.inject(forbidden);
    let _world = server.inhabit();
    let flags = ["--ignore-daemonsets", "--delete-emptydir-data", "--force", "--server", &*server.url];
    let drain = |more: &[&'static str]| [&["plan", "drain", NODE], &flags[..], more].concat();
    let output = shell.run(&drain(&[])).await;
    let (first, rest) = output.out.split_once('\n').expect("lines");
    assert!(first.starts_with(&format!("drain {NODE}: unknown, not before ~")), "{first}");
    let budgets = "budgets cannot be listed (missing permission: list poddisruptionbudgets.policy)";
    let line = format!("whether a PodDisruptionBudget blocks an eviction is unknown: {budgets}");
    assert!(rest.starts_with(&line), "{rest}");
    assert!(rest.contains("undecided: leaves unless a PodDisruptionBudget blocks it"), "{rest}");
    assert_eq!(output.code, NOT_ALLOWED, "{}", output.err);
    assert!(
        output.err.contains(&format!("whether the plan completes is unknown: {budgets}")),
        "{}",
        output.err
    );
    let output = shell.run(&drain(&["-o", "json"])).await;
    let json = output.json();
    assert_eq!((&json["outcome"], &json["definite"]), (&json!("unknown"), &json!(false)));
    assert_eq!((&json["budgets"], &json["totals"]["ends"]["likelySeconds"]), (&Value::Null, &Value::Null));
    let (undecided, leave) = (json["totals"]["undecided"].as_u64(), &json["totals"]["leaveNow"]);
    assert!(undecided.is_some_and(|pods| pods > 0) && *leave == json!(0), "{}", json["totals"]);
    assert!(json["totals"]["notBeforeSeconds"].as_f64().is_some_and(|seconds| seconds > 0.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_about_pods_says_that_it_may_not_look() {
    let (shell, server) = (Shell::new(), without_pods().await);
    let _world = server.inhabit();
    let of_server = ["--server", &*server.url];
    let pod = shell.run(&[&["why", "pod", "cart-0"][..], &of_server].concat()).await;
    let text = "pod default/cart-0 is unknown: pods cannot be listed (missing permission: list pods)";
    assert!(pod.code == NOT_ALLOWED && pod.err.contains(text), "{}: {}", pod.code, pod.err);
    let node = shell.run(&[&["why", "node", NODE][..], &of_server].concat()).await.done();
    assert!(node.contains("its evictions are unknown: pods cannot be listed"), "{node}");
    let status = shell.run(&[&["status", "-o", "json"][..], &of_server].concat()).await.done();
    let status: Value = serde_json::from_str(&status).expect("JSON");
    assert_eq!((&status["evictions"], &status["headroom"]), (&Value::Null, &Value::Null));
    assert_eq!((&status["nodes"][0]["pods"], &status["unknown"][0]["kind"]), (&Value::Null, &json!("pods")));
    let status = shell.run(&[&["status"][..], &of_server].concat()).await.done();
    assert!(status.contains("not known: pods cannot be listed (missing permission: list pods)"), "{status}");
    let failure = shell.run(&[&["plan", "node-failure", NODE, "-o", "json"][..], &of_server].concat()).await;
    let json = failure.json();
    assert_eq!((failure.code, &json["totals"]["deleted"]), (NOT_ALLOWED, &Value::Null), "{}", failure.err);
    assert_eq!((&json["totals"]["tainted"], &json["staying"]), (&json!(1), &Value::Null));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_does_not_exist_is_answered_with_the_nearest() {
    let (shell, server) = (Shell::new(), Server::start(ApiOptions::default()).await);
    let _world = server.inhabit();
    let pods: Objects<Pod> = Objects::all(server.api.client());
    let pods = pods.list(&ListParams::default()).await.expect("pods").items;
    let pod = pods.iter().find(|pod| pod.namespace().as_deref() == Some("shop")).expect("a pod").name_any();
    let mistyped = format!("{}x", &pod[..pod.len() - 1]);
    let elsewhere = format!("shp/{pod}");
    let cases: [(&[&str], &str); 18] = [
        (&["why", "node", "genral-1a-02"], "general-1a-02"),
        (&["plan", "node-failure", "general-1a-2"], "general-1a-02"),
        (&["forecast", "--fail", "general-1a-2"], "general-1a-02"),
        (&["plan", "pressure", "general-1a-2"], "general-1a-02"),
        (&["plan", "drain", "general-1a-2"], "general-1a-02"),
        (&["cordon", "general-1a-2"], "general-1a-02"),
        (&["cordon", "general-1a-2", "--enforce", "--yes"], "general-1a-02"),
        (&["plan", "taint", "general-1a-2", "a=b:NoSchedule"], "general-1a-02"),
        (&["why", "pod", &mistyped, "-n", "shop"], &pod),
        (&["plan", "delete", &mistyped, "-n", "shop"], &pod),
        (&["plan", "evict", &pod, "-n", "default", "--placement", "wait"], &pod),
        (&["plan", "evict", &pod, "-n", "default", "--placement", "skip"], &pod),
        (&["why", "pod", &pod, "-n", "default"], &pod),
        (&["why", "pod", &mistyped, "-n", "default"], &pod),
        (&["why", "pod", &elsewhere], &pod),
        (&["plan", "zone-failure", "eu-central-1d"], "eu-central-1a"),
        (&["plan", "zone-failure", "B"], "b"),
        (&["audit", "--pool", "memori"], "memory"),
    ];
    for (line, meant) in cases {
        let output = shell.run(&[line, &["--server", &server.url]].concat()).await;
        let proposed = output.err.split_once("; did you mean ").map(|(_, proposed)| proposed.trim_end());
        let is_meant = proposed.is_some_and(|proposed| proposed.trim_end_matches('?').ends_with(meant));
        assert!(output.code != DONE && is_meant, "{line:?}: {}", output.err);
    }
    let file = shell.kubeconfig(&server.url, json!({}));
    for context in ["heer", "HERE"] {
        let line = ["status", "--kubeconfig", &file, "--context", context];
        let output = shell.refused(&line, NO_CONNECTION).await;
        assert!(output.contains("; did you mean here?"), "{output}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_zone_is_named_as_the_screen_names_it() {
    let (shell, server) = (Shell::new(), Server::start(ApiOptions::default()).await);
    let _world = server.inhabit();
    let failing = async |zone: &str| {
        let line = ["plan", "zone-failure", zone, "-o", "json", "--server", &server.url];
        let report: Value = serde_json::from_str(&shell.run(&line).await.out).expect("a report");
        report["totals"]["tainted"].clone()
    };
    let in_full = failing("eu-central-1/eu-central-1b").await;
    assert!(in_full.as_u64() > Some(0), "{in_full}");
    for name in ["b", "eu-central-1b", "eu-central-1:eu-central-1b"] {
        assert_eq!(failing(name).await, in_full, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_zone_that_does_not_exist_is_answered_with_those_that_do() {
    let (shell, server) = (Shell::new(), Server::start(ApiOptions::default()).await);
    let _world = server.inhabit();
    let output = shell.run(&["plan", "zone-failure", "x", "--server", &server.url]).await;
    let zones =
        "a (eu-central-1/eu-central-1a), b (eu-central-1/eu-central-1b), c (eu-central-1/eu-central-1c)";
    let text = format!("the zones are {zones}: zone x not found");
    assert!(output.code == FAILED && output.err.contains(&text), "{}: {}", output.code, output.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_selector_that_matches_nothing_finds_no_resources() {
    let (shell, server) = (Shell::new(), Server::start(ApiOptions::default()).await);
    let _world = server.inhabit();
    let run = async |line: &[&str]| shell.run(&[line, &["--server", &server.url]].concat()).await;
    let lines: [&[&str]; 11] = [
        &["plan", "drain", "-l", "pool=memori"],
        &["drain", "-l", "pool=memori"],
        &["cordon", "-l", "pool=memori"],
        &["uncordon", "-l", "pool=memori"],
        &["taint", "nodes", "-l", "pool=memori", "a=b:NoSchedule"],
        &["label", "nodes", "-l", "pool=memori", "a=b"],
        &["annotate", "nodes", "-l", "pool=memori", "a=b"],
        &["evict", "-l", "app=nix"],
        &["delete", "-l", "app=nix"],
        &["plan", "delete", "-A", "-l", "app=nix"],
        &["delete", "pod", "nope", "--ignore-not-found"],
    ];
    for line in lines {
        let said = run(line).await.done();
        assert_eq!(said, "No resources found\n\nNothing would be written.\n", "{line:?}");
        let report = run(&[line, &["-o", "json"]].concat()).await.done();
        let report: Value = serde_json::from_str(&report).expect("a report");
        assert_eq!(report["command"], Value::Null, "{line:?}");
    }
    let lines: [&[&str]; 3] = [
        &["cordon", "-l", "pool=memori", "--diff"],
        &["label", "nodes", "-l", "pool=memori", "--list"],
        &["cordon", "-l", "pool=memori", "--enforce", "--yes"],
    ];
    for line in lines {
        let output = run(line).await;
        let has_said = output.err.contains("No resources found");
        assert!(output.code == DONE && has_said, "{line:?}: {}", output.err);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn status_that_does_not_get_its_lists_in_time_names_them() {
    let (shell, server) = (Shell::new(), Server::start(ApiOptions::default()).await);
    let _world = server.inhabit();
    server.api.inject(Fault::always(FaultAnswer::Hang).on(&[Verb::List, Verb::Watch], "pods"));
    let output = shell.run(&["status", "--server", &server.url, "--timeout", "8s"]).await;
    assert_eq!(output.code, TOO_SLOW, "{}", output.err);
    assert!(output.err.contains("pods") && output.err.contains("--timeout"), "{}", output.err);
    assert!(!output.err.contains("nodes"), "the nodes were there: {}", output.err);
}

#[tokio::test]
async fn status_gives_up_in_time_while_it_connects() {
    let (shell, server) = (Shell::new(), Server::start(ApiOptions::default()).await);
    server.api.inject(Fault::always(FaultAnswer::Hang));
    let plugin = json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/sleep",
        "args": ["600"], "interactiveMode": "Never"}});
    for user in [json!({}), plugin] {
        let file = shell.kubeconfig(&server.url, user);
        let line = ["status", "--kubeconfig", &file, "--timeout", "1s"];
        // Without `--timeout`, the silent server would take ten seconds, and the credential plugin two minutes.
        let output = tokio::time::timeout(Duration::from_secs(8), shell.refused(&line, TOO_SLOW)).await;
        let output = output.expect("it ends in time");
        assert!(output.contains("a connection") && output.contains("--timeout"), "{output}");
    }
}

#[tokio::test]
async fn plans_are_worked_out_and_nothing_is_written() {
    let (shell, server) = (Shell::new(), Server::start(ApiOptions::default()).await);
    let _world = server.inhabit();
    server.govern().await;
    let plan = async |words: &[&str], code: i32| {
        let line = [&["plan"], words, &["--server", &server.url, "-o", "json"]].concat();
        let output = shell.run(&line).await;
        assert_eq!(output.code, code, "{words:?}: {}", output.err);
        let plan = output.json();
        assert_eq!(plan["schema"], "kordon.plan/v1");
        plan
    };
    let cordon = plan(&["cordon", "general-1a-02"], DONE).await;
    assert_eq!(cordon["steps"][0]["body"]["spec"]["unschedulable"], true);
    let drain = plan(&["drain", "general-1a-02"], REFUSED).await;
    let needs = drain["requiredFlags"].as_array().expect("a list");
    assert!(needs.contains(&json!("--ignore-daemonsets")), "every node has pods of DaemonSets: {needs:?}");
    let flags: Vec<&str> = needs.iter().filter_map(Value::as_str).collect();
    let timed = [&["drain", "general-1a-02", "--timeout=1ns"][..], &flags].concat();
    let blocked = plan(&timed, BLOCKED).await;
    assert_eq!((&blocked["totals"]["refusedPods"], &blocked["totals"]["blocked"]), (&json!(0), &json!(1)));
    let rows = blocked["pods"].as_array().expect("pods");
    let budget = rows.iter().find(|pod| pod["verdict"] == "blocked").map(|pod| &pod["budget"]);
    assert_eq!(budget, Some(&json!("monitoring/grafana")), "the budget that wants its only pod");
    let taint = plan(&["taint", "nodes", "general-1a-02", "away=now:NoExecute"], DONE).await;
    let verdicts: Vec<&Value> =
        taint["pods"].as_array().expect("pods").iter().map(|pod| &pod["verdict"]).collect();
    assert!(verdicts.contains(&&json!("deleted")) && verdicts.contains(&&json!("tolerates")), "{verdicts:?}");
    let label = plan(&["label", "nodes", "-l", "kubernetes.io/os=linux", "tier=front"], DONE).await;
    assert_eq!(label["totals"]["nodes"], label["totals"]["changedNodes"]);
    let line = ["label", "general-1a-02", "tier=front", "--server", &server.url];
    let table = shell.run(&line).await.done();
    let is_short = |line: &str| line.contains("+tier=front") && !line.contains("kubernetes.io/hostname");
    assert!(table.lines().any(is_short), "only the change is shown: {table}");
    let pod = &taint["pods"][0];
    let (namespace, name) = (pod["namespace"].as_str().expect("text"), pod["pod"].as_str().expect("text"));
    let delete = plan(&["delete", "pod", name, "-n", namespace, "--force"], DONE).await;
    assert_eq!(delete["pods"][0]["deleted"]["likelySeconds"], 0.0);
    let missing = shell.refused(&["plan", "cordon", "nope", "--server", &server.url], FAILED).await;
    assert!(missing.contains("node nope not found"), "{missing}");
    let nonsense = ["plan", "taint", "general-1a-02", "a=b:Never", "--server", &server.url];
    let output = shell.refused(&nonsense, USAGE).await;
    assert!(output.contains("invalid taint effect: Never, unsupported taint effect"), "{output}");
    let is_ours = |user: &str| !user.starts_with("system:");
    let log = server.api.log();
    let ours: Vec<_> = log.iter().filter(|request| request.identity.agent.starts_with("kordon/")).collect();
    let writes = |verb| matches!(verb, Verb::Create | Verb::Update | Verb::Patch | Verb::Delete);
    let written: Vec<_> = ours
        .iter()
        .filter(|request| is_ours(&request.identity.user) && writes(request.verb))
        .filter(|request| !request.uri.contains("/selfsubject"))
        .collect();
    assert!(written.is_empty() && !ours.is_empty(), "{written:?}");
}

#[tokio::test]
async fn a_snapshot_of_the_demo_shows_its_nodes() {
    let shell = Shell::new();
    let file = shell.home.path().join("frame.txt");
    let line = ["demo", "--snapshot", path(&file), "--after", "3s", "--size", "100x30"];
    shell.run(&line).await.done();
    let frame = fs::read_to_string(&file).expect("the frame");
    assert_eq!(frame.lines().count(), 30);
    for text in ["control-plane-1a-01", "general-1b-01", "zone", "DRY-RUN"] {
        assert!(frame.contains(text), "no {text} in\n{frame}");
    }
    assert!(!frame.contains('\x1b'));
}

#[tokio::test]
async fn without_pods_the_dashboard_reads_those_of_the_nodes_of_a_plan() {
    let shell = Shell::new();
    let frame = async |keys: &str| {
        let file = shell.home.path().join("frame.txt");
        let line = ["demo", "--no-pods", "--snapshot", path(&file), "--after", "8s", "--size", "160x48"];
        shell.run(&[&line[..], &["--keys", keys]].concat()).await.done();
        fs::read_to_string(&file).expect("the frame")
    };
    let drain = frame("/general-1a-02<Enter>rD").await;
    for text in [
        "where pods land is unknown: pods, priorityclasses,",
        "budgets have the numbers of their status: pods are not read (--no-pods)",
        "kube-system/",
    ] {
        assert!(drain.contains(text), "no {text} in\n{drain}");
    }
    let failure = frame("/general-1a-02<Enter>x").await;
    assert!(failure.contains("where replacements land is unknown"), "{failure}");
    assert!(failure.contains("evicted") && !failure.contains("evictions unknown  "), "{failure}");
}

#[tokio::test]
async fn a_snapshot_that_cannot_be_written_is_a_failure() {
    let shell = Shell::new();
    let output = shell.refused(&["demo", "--snapshot", "/nowhere/a.txt", "--after", "100ms"], FAILED).await;
    assert!(output.contains("/nowhere/a.txt"), "{output}");
}

#[tokio::test]
async fn a_demo_without_a_controller_says_at_once_that_nothing_will_happen() {
    let shell = Shell::new();
    let file = shell.home.path().join("frame.txt");
    let line = ["demo", "--no-controller", "--snapshot", path(&file), "--after", "3s", "--size", "160x40"];
    shell.run(&line).await.done();
    let frame = fs::read_to_string(&file).expect("the frame");
    assert!(frame.contains("no active kube-controller-manager"), "{frame}");
}

#[tokio::test(flavor = "multi_thread")]
async fn fingers_trained_by_kubectl_find_their_flags() {
    let (shell, server) = (Shell::new(), Server::start(ApiOptions::default()).await);
    let _world = server.inhabit();
    let run = async |words: &[&str]| shell.run(&[words, &["--server", &server.url]].concat()).await;
    let json = async |words: &[&str]| {
        let output = run(&[words, &["-o", "json", "--placement=skip"]].concat()).await;
        assert_eq!(output.code, DONE, "{words:?}: {}", output.err);
        serde_json::from_str::<Value>(&output.out).expect("JSON")
    };
    let all = run(&["plan", "delete", "--all", "-A", "-o", "json", "--placement=skip"]).await;
    let all = all.json();
    let on_the_node = |pod: &&Value| pod["node"] == "general-1a-02";
    let pod = all["pods"].as_array().expect("pods").iter().find(on_the_node).expect("a pod");
    let name = format!("{}/{}", pod["namespace"].as_str().expect("text"), pod["pod"].as_str().expect("text"));
    let grace = async |flags: &[&str]| {
        let plan = json(&[&["delete", name.as_str()], flags].concat()).await;
        assert_eq!(
            (&plan["pods"][0]["namespace"], plan["pods"].as_array().map(Vec::len)),
            (&pod["namespace"], Some(1))
        );
        plan["steps"][0]["body"]["gracePeriodSeconds"].clone()
    };
    assert_eq!(grace(&["--grace-period=0", "--force"]).await, json!(0));
    assert_eq!(grace(&["--force", "--grace-period", "0"]).await, json!(0));
    assert_eq!(grace(&["--grace-period=0"]).await, json!(1), "as kubectl has it");
    assert_eq!(grace(&["--now"]).await, json!(1));
    assert_eq!(grace(&["--wait", "--dry-run=client"]).await, Value::Null);
    let none = json(&["delete", "pod", "nope", "--ignore-not-found"]).await;
    assert_eq!(none["totals"]["pods"], json!(0));
    let why = run(&["why", "node", "general-1a-02", "-o", "json"]).await;
    assert!(why.code == DONE && why.out.starts_with('{'), "{}", why.err);
    assert!(run(&["why", "-o", "json", "node", "general-1a-02"]).await.out.starts_with('{'));
    let refused: [(&[&str], &str); 4] = [
        (&["delete", "p", "--force", "--grace-period=5"], "cannot be specified together"),
        (&["delete", "p", "--wait=false"], "reports when the pods are gone"),
        (&["delete", "-f", "pods.yaml"], "objects are named on the command line"),
        (&["cordon", "general-1a-02", "--dry-run=server", "--enforce", "--yes"], "--dry-run writes nothing"),
    ];
    for (words, reason) in refused {
        let output = run(words).await;
        assert_eq!(output.code, USAGE, "{words:?}: {}", output.err);
        assert!(output.err.contains(reason), "{words:?}: {}", output.err);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_are_listed_as_kubectl_lists_them() {
    let server = Server::start(ApiOptions::default()).await;
    let _world = server.inhabit();
    let shell = Shell::new();
    let run = async |line: &[&str]| shell.run(&[line, &["--server", &server.url]].concat()).await;
    let one = run(&["label", "node", "general-1a-02", "--list"]).await.done();
    assert!(one.lines().any(|line| line == "kubernetes.io/hostname=general-1a-02"), "{one}");
    let several = run(&["label", "nodes", "general-1a-02", "general-1b-02", "--list"]).await.done();
    let headings = several.lines().filter(|line| line.starts_with("Listing labels for Node./general-1"));
    assert_eq!(headings.count(), 2, "{several}");
    assert!(several.lines().any(|line| line == " kubernetes.io/hostname=general-1b-02"), "{several}");
    let all = run(&["label", "--all", "--list"]).await.done();
    assert!(all.lines().filter(|line| line.starts_with("Listing labels")).count() > 2, "{all}");
    let fields = ["label", "nodes", "--field-selector=metadata.name=general-1a-02", "--list"];
    let selected = run(&fields).await.done();
    assert_eq!(selected.lines().filter(|line| line.starts_with("Listing labels")).count(), 1, "{selected}");
    let output = run(&["label", "general-1a-02", "a=b", "--list"]).await;
    assert_eq!(output.code, USAGE, "{}", output.err);
    let output = run(&["label", "nope", "--list"]).await;
    assert!(output.code == FAILED && output.err.contains("node nope not found"), "{}", output.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_are_selected_by_field_and_a_field_that_is_not_known_is_named() {
    let server = Server::start(ApiOptions::default()).await;
    let _world = server.inhabit();
    let shell = Shell::new();
    let run = async |line: &[&str]| shell.run(&[line, &["--server", &server.url]].concat()).await;
    let by = |fields: &'static str| {
        ["delete", "pods", "-A", "--placement=skip", "-o", "json", "--field-selector", fields]
    };
    let output = run(&by("spec.nodeName=general-1a-02,metadata.namespace!=kube-system")).await;
    assert_eq!(output.code, DONE, "{}", output.err);
    let plan = output.json();
    let pods = plan["pods"].as_array().expect("pods");
    assert!(!pods.is_empty(), "{plan}");
    for pod in pods {
        assert_eq!(pod["node"], "general-1a-02", "{pod}");
        assert_ne!(pod["namespace"], "kube-system", "{pod}");
    }
    let output = run(&by("spec.colour=red")).await;
    assert_eq!(output.code, USAGE);
    assert!(output.err.contains("field label not supported: spec.colour"), "{}", output.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn taints_take_the_validation_of_kubectl_and_dry_runs_are_asked_for_by_its_name() {
    let server = Server::start(ApiOptions::default()).await;
    let _world = server.inhabit();
    let shell = Shell::new();
    let taint = ["taint", "nodes", "general-1a-02", "a=b:NoSchedule", "--server", &server.url];
    for mode in ["--validate", "--validate=strict", "--validate=false"] {
        let output = shell.run(&[&taint[..], &[mode]].concat()).await;
        assert_eq!(output.code, DONE, "{mode}: {}", output.err);
    }
    assert_eq!(server.written(), Vec::<String>::new(), "kubectl's flag is about fields: no dry run is sent");
    let output = shell.run(&[&taint[..], &["--dry-run=server"]].concat()).await;
    assert_eq!((output.code, server.written().len()), (DONE, 1), "{}", output.err);
    let error = shell.refused(&[&taint[..], &["--validate=maybe"]].concat(), USAGE).await;
    assert!(error.contains("strict, true, warn, ignore, false"), "{error}");
}

#[tokio::test]
async fn timing_needs_no_cluster_and_shows_its_settings_where_one_is_reached() {
    let shell = Shell::new();
    let output = shell.run(&["timing", "-o", "json"]).await.done();
    let report: Value = serde_json::from_str(&output).expect("JSON");
    let names = |report: &Value| -> Vec<String> {
        let profiles = report["profiles"].as_array().expect("profiles").iter();
        profiles.map(|profile| profile["name"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(names(&report), ["default", "fast", "medium", "low"]);
    assert!(report["noCluster"].as_str().expect("why").contains("no kubeconfig"), "{output}");
    let best = &report["profiles"][0]["unknown"]["bestSeconds"];
    assert!((best.as_f64().expect("seconds") - 40.0).abs() < 0.5, "{best}");

    let refused = shell.refused(&["timing", "--server", "http://127.0.0.1:1"], NO_CONNECTION).await;
    assert!(refused.contains("http://127.0.0.1:1"), "a cluster that was named: {refused}");

    let server = Server::start(ApiOptions::default()).await;
    let line = [
        "timing",
        "--server",
        &server.url,
        "--node-monitor-grace-period",
        "20s",
        "--compare",
        "cluster",
        "flags",
    ];
    let output = shell.run(&line).await.done();
    assert!(output.contains("differences: A is cluster, B is flags"), "{output}");
    assert!(output.contains("--node-monitor-grace-period"), "{output}");
}
