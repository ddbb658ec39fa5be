//! The lists of the dashboard's panes, as commands print them for scripts: Pending pods, departures, the journal.

use std::time::Duration;

use kordon_demo::{
    api::{ApiOptions, Fault, FaultAnswer, Verb},
    scenario::Scenario,
    world::{NodeFault, World, WorldOptions},
};
use kordon_time::{Span, Timestamp};
use serde_json::{Value, json};
use tokio::io::AsyncBufReadExt as _;

use crate::common::program::{Server, Shell, path};

/// Starts a server with a healthy cluster.
async fn healthy() -> (Shell, Server, World) {
    let (shell, server) = (Shell::new(), Server::start(ApiOptions::default()).await);
    let scenario = Scenario::named("healthy").expect("there is one");
    let world = server.inhabit_as(&WorldOptions { scenario, ..WorldOptions::default() });
    server.govern().await;
    (shell, server, world)
}

async fn json_of(shell: &Shell, line: &[&str]) -> Value {
    let out = shell.run(&[line, &["-o", "json"]].concat()).await.done();
    serde_json::from_str(&out).expect("one document")
}

/// Returns the pods of a list as `namespace/name`.
fn names(rows: &Value) -> Vec<String> {
    let text = |row: &Value, field: &str| row[field].as_str().unwrap_or_default().to_owned();
    let rows = rows.as_array().expect("a list");
    rows.iter().map(|row| format!("{}/{}", text(row, "namespace"), text(row, "pod"))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_that_wait_for_a_node_are_listed_with_what_would_help() {
    let (shell, server, _world) = healthy().await;
    let ask = ["pending", "--server", &server.url];
    assert!(shell.run(&ask).await.done().contains("no pod waits for a node"));
    let since = kordon_clock::wall() - Span::from_secs(90);
    let message = "0/24 nodes are available: 24 Insufficient cpu. preemption: not helpful";
    let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": message, "lastTransitionTime": since.to_time()});
    // One pod has another scheduler, so that the demo's scheduler does not change its condition.
    for (name, scheduler) in [("huge", "default-scheduler"), ("other", "mine")] {
        let container = json!({"name": "app", "resources": {"requests": {"cpu": "100"}}});
        server.api.load("pods", json!({
            "metadata": {"name": name, "namespace": "default", "uid": name, "creationTimestamp": since.to_time()},
            "spec": {"containers": [container], "schedulerName": scheduler, "priority": 7},
            "status": {"phase": "Pending", "conditions": [condition]},
        }));
    }
    let json = json_of(&shell, &ask).await;
    assert_eq!((&json["schema"], &json["unknown"]), (&json!("kordon.pending/v1"), &json!([])));
    assert_eq!(names(&json["pods"]), ["default/huge", "default/other"]);
    let (huge, other) = (&json["pods"][0], &json["pods"][1]);
    assert_eq!((&huge["advice"], &other["advice"]), (&json!("unschedulable"), &json!("notTried")));
    assert_eq!(other["cause"], "24 Insufficient cpu");
    assert_eq!(other["priority"], 7);
    // Allows for two roundings: the server's clock is known to half a second, from a Date in whole seconds, and the
    // printed time has whole seconds.
    let printed = Timestamp::parse(other["since"].as_str().expect("a time")).expect("RFC 3339");
    assert!(printed.since(since).as_secs_f64().abs() < 2.0, "{printed:?} is not {since:?}");
    assert!(other["forSeconds"].as_f64().is_some_and(|span| (89.0..150.0).contains(&span)), "{other}");
    let help: Vec<&str> = huge["help"].as_array().expect("help").iter().filter_map(Value::as_str).collect();
    assert!(help.contains(&"a new node with 100 CPU free"), "{help:?}");
    let yaml: Value =
        serde_saphyr::from_str(&shell.run(&[&ask[..], &["-o", "yaml"]].concat()).await.done()).expect("YAML");
    assert_eq!(names(&yaml["pods"]), names(&json["pods"]));
    let table = shell.run(&ask).await.done();
    assert!(table.contains("default/huge") && table.contains("a new node with 100 CPU free"), "{table}");

    server.api.inject(Fault::always(FaultAnswer::Forbidden).on(&[Verb::List, Verb::Watch], "pods"));
    let json = json_of(&shell, &ask).await;
    assert_eq!(json["unknown"][0]["missingPermission"], "list pods");
    let table = shell.run(&ask).await.done();
    assert!(table.contains("not known: pods") && !table.contains("no pod waits"), "{table}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_that_leave_are_listed_with_who_removed_them() {
    let (shell, server, _world) = healthy().await;
    let ask = ["departures", "--server", &server.url];
    let before = json_of(&shell, &ask).await;
    assert_eq!((&before["departures"], &before["counts"]), (&json!([]), &json!([])));
    let (now, ago) = (kordon_clock::wall(), |secs| (kordon_clock::wall() - Span::from_secs(secs)).to_time());
    let disrupted = |reason: &str| json!([{"type": "DisruptionTarget", "status": "True", "reason": reason, "lastTransitionTime": ago(60)}]);
    let low = "The node was low on resource: memory.";
    let killed = json!({"reason": "OOMKilled", "exitCode": 137, "finishedAt": ago(30)});
    let pods = [
        (
            "evicted",
            json!({}),
            json!({"phase": "Failed", "reason": "Evicted", "message": low,
            "conditions": disrupted("TerminationByKubelet")}),
        ),
        (
            "preempted",
            json!({"deletionTimestamp": (now + Span::from_secs(600)).to_time(), "deletionGracePeriodSeconds": 610}),
            json!({"phase": "Running", "conditions": disrupted("PreemptionByScheduler")}),
        ),
        (
            "killed",
            json!({}),
            json!({"phase": "Running", "containerStatuses":
            [{"name": "app", "state": {"running": {}}, "lastState": {"terminated": killed}}]}),
        ),
        ("stays", json!({}), json!({"phase": "Running"})),
    ];
    for (name, metadata, status) in pods {
        let mut metadata = metadata;
        metadata["name"] = json!(name);
        metadata["namespace"] = json!("default");
        metadata["uid"] = json!(name);
        let spec =
            json!({"nodeName": "general-1a-01", "containers": [{"name": "app"}], "schedulerName": "mine"});
        server.api.load("pods", json!({"metadata": metadata, "spec": spec, "status": status}));
    }
    let json = json_of(&shell, &ask).await;
    assert_eq!((&json["schema"], &json["unknown"]), (&json!("kordon.departures/v1"), &json!([])));
    let rows = json["departures"].as_array().expect("departures");
    let row = |name: &str| {
        rows.iter().find(|row| row["pod"] == name).unwrap_or_else(|| panic!("{name}: {rows:#?}"))
    };
    let said = |name: &str| {
        [&row(name)["kind"], &row(name)["certainty"], &row(name)["stage"]]
            .map(|field| field.as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(said("evicted"), ["nodePressureEviction", "certain", "finished"]);
    assert_eq!(said("preempted"), ["preemption", "certain", "terminating"]);
    assert_eq!(said("killed"), ["oomKill", "certain", "restarted"]);
    assert_eq!((rows.len(), &row("killed")["node"]), (3, &json!("general-1a-01")));
    let counted: u64 =
        json["counts"].as_array().expect("counts").iter().filter_map(|kind| kind["count"].as_u64()).sum();
    assert_eq!(counted, 3);
    let table = shell.run(&ask).await.done();
    assert!(table.contains("default/preempted") && table.contains("OOM kill"), "{table}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_journal_is_printed_as_it_is_made() {
    let (shell, server, world) = healthy().await;
    let line = ["journal", "--watch", "-o", "json", "--server", &server.url];
    let mut child = shell.command(&line).stdout(std::process::Stdio::piped()).spawn().expect("it starts");
    let mut lines = tokio::io::BufReader::new(child.stdout.take().expect("its output")).lines();
    let found = async {
        loop {
            // Injects the fault repeatedly, because the program notices no fault before its watches have started.
            world.inject("general-1a-02", NodeFault::StopRuntime).await;
            let line = tokio::time::timeout(Duration::from_secs(2), lines.next_line()).await;
            if let Ok(line) = line {
                let entry: Value = serde_json::from_str(&line.expect("text").expect("it goes on"))
                    .expect("one document in a line");
                assert_eq!(entry["schema"], "kordon.journalEntry/v1");
                if entry["text"].as_str().is_some_and(|text| text.contains("became NotReady")) {
                    return entry;
                }
            }
            world.inject("general-1a-02", NodeFault::StartRuntime).await;
        }
    };
    let entry = tokio::time::timeout(Duration::from_secs(180), found).await.expect("it is told");
    assert_eq!((&entry["objects"], &entry["level"]), (&json!(["node/general-1a-02"]), &json!("warning")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_answers_with_what_had_happened_by_then() {
    let shell = Shell::new();
    let file = shell.home.path().join("preemption.kordon");
    let file = path(&file);
    let record =
        ["demo", "--scenario", "preemption", "--record", file, "--record-for", "70s", "--speed", "10"];
    let output = shell.run(&record).await;
    assert_eq!(output.code, 0, "{}", output.err);
    let at = |command: &'static str, moment: &'static str| {
        let shell = &shell;
        async move { json_of(shell, &[command, "--recording", file, "--at", moment]).await }
    };
    // The scheduler preempts from second 10 on, and the preempted pods find no room.
    let after = at("departures", "60s").await;
    let kinds: Vec<&Value> =
        after["counts"].as_array().expect("counts").iter().map(|kind| &kind["kind"]).collect();
    assert!(kinds.contains(&&json!("preemption")), "{after:#}");
    let gone: Vec<&Value> =
        after["departures"].as_array().expect("a list").iter().filter(|row| row["stage"] == "gone").collect();
    assert!(!gone.is_empty() && gone.iter().all(|row| row["goneAt"].is_string()), "{after:#}");
    let pending = at("pending", "60s").await;
    assert!(!names(&pending["pods"]).is_empty(), "{pending:#}");
    let journal = at("journal", "60s").await;
    assert_eq!((&journal["operations"], &journal["folder"]), (&Value::Null, &Value::Null));
    let texts: Vec<&str> = journal["entries"]
        .as_array()
        .expect("entries")
        .iter()
        .filter_map(|entry| entry["text"].as_str())
        .collect();
    assert!(texts.iter().any(|text| text.starts_with("preempted pod")), "{texts:#?}");
    let entries = |journal: &Value| journal["entries"].as_array().expect("entries").clone();
    let in_namespace = async |name: &str| {
        json_of(&shell, &["journal", "--recording", file, "--at", "60s", "--namespace", name]).await
    };
    let is_preemption =
        |entry: &Value| entry["text"].as_str().is_some_and(|text| text.starts_with("preempted"));
    let preempted = entries(&journal).into_iter().find(is_preemption).expect("an entry");
    let object = preempted["objects"][0].as_str().expect("a pod");
    let namespace = object.split('/').nth(1).expect("pod/NAMESPACE/NAME");
    let is_of_namespace =
        |entry: &Value| entry["objects"].to_string().contains(&format!("\"pod/{namespace}/"));
    let expected: Vec<Value> = entries(&journal).into_iter().filter(is_of_namespace).collect();
    assert_eq!(entries(&in_namespace(namespace).await), expected);
    assert!(entries(&in_namespace("nowhere").await).is_empty());
    let table = shell.run(&["journal", "--recording", file, "--at", "60s"]).await.done();
    assert!(table.contains(" preempted pod"), "{table}");
    // Each line begins with the time of the last occurrence, and the lines are sorted by this time.
    let times: Vec<&str> = table.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(times.is_sorted(), "{table}");
    let last: Vec<&Value> =
        journal["entries"].as_array().expect("entries").iter().map(|entry| &entry["lastAt"]).collect();
    assert!(last.is_sorted_by_key(|at| at.as_str()), "{journal:#}");
}
