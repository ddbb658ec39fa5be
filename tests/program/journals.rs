//! The journal in which an operation is recorded, and what can be read from it without a server.

use std::fs;

use k8s_openapi::api::core::v1::Pod;
use kordon_demo::{
    api::{ApiOptions, Fault, FaultAnswer, Verb},
    world::WorldOptions,
};
use kube::{Api, ResourceExt, api::ListParams};
use serde_json::{Value, json};

use crate::common::program::{Server, Shell, is_cordoned};

/// Exit codes, as in `docs/reference/cli.md`.
const DONE: i32 = 0;
const FAILED: i32 = 1;
const USAGE: i32 = 2;
const NO_CONNECTION: i32 = 3;
const REFUSED: i32 = 5;

const NODE: &str = "general-1a-02";

async fn operations(shell: &Shell, more: &[&str]) -> Vec<Value> {
    let out = shell.run(&[&["journal", "-o", "json"], more].concat()).await.done();
    let report: Value = serde_json::from_str(&out).expect("JSON");
    report["operations"].as_array().expect("operations").clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_clusters_with_one_context_name_do_not_share_a_journal() {
    let shell = Shell::new();
    let servers = [Server::start(ApiOptions::default()).await, Server::start(ApiOptions::default()).await];
    for (seed, server) in servers.iter().enumerate() {
        let _world = server.inhabit_as(&WorldOptions { seed: seed as u64, ..WorldOptions::default() });
        let file = shell.kubeconfig(&server.url, json!({"token": "t"}));
        let output = shell.run(&["cordon", NODE, "--kubeconfig", &file, "--enforce", "--yes"]).await;
        assert_eq!(output.code, DONE, "{}", output.err);
        assert!(is_cordoned(&server.node(NODE).await));
    }
    let found = operations(&shell, &[]).await;
    let of = |field: &str| {
        found.iter().map(|row| row[field].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(of("context"), ["here", "here"]);
    assert_eq!(of("server"), [servers[0].url.clone(), servers[1].url.clone()]);
    let files = of("file");
    assert_ne!(files[0], files[1]);
    assert!(files[0].contains(&servers[0].cluster_uid().await), "{files:?}");
    let one = operations(&shell, &["--server", &servers[1].url]).await;
    assert_eq!(one, [found[1].clone()]);
    // Without an id, `undo` takes the last operation of this cluster. Operations of other clusters do not count.
    let undo = shell.run(&["undo", "--server", &servers[0].url, "-o", "json"]).await;
    let report = undo.json();
    assert_eq!((undo.code, &report["operation"]), (DONE, &found[0]["operation"]), "{}", undo.err);
    assert!(undo.err.contains("the last operation: cordon general-1a-02"), "{}", undo.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn undo_without_an_id_undoes_the_last_operation() {
    let (shell, server) = (Shell::new(), Server::start(ApiOptions::default()).await);
    let _world = server.inhabit();
    let run = async |line: &[&str]| {
        shell.run(&[line, &["--server", &server.url, "--enforce", "--yes"]].concat()).await
    };
    let journal = shell.run(&["journal"]).await.done();
    assert!(journal.starts_with("no operations in "), "{journal}");
    let nothing = run(&["undo"]).await;
    assert_eq!(nothing.code, FAILED);
    assert!(nothing.err.contains("nothing to undo: no operation of this cluster"), "{}", nothing.err);
    for node in ["general-1a-01", NODE] {
        assert_eq!(run(&["cordon", node]).await.code, DONE);
    }
    let undone = run(&["undo"]).await;
    assert_eq!(undone.code, DONE, "{}", undone.err);
    assert!(!is_cordoned(&server.node(NODE).await) && is_cordoned(&server.node("general-1a-01").await));
    let found = operations(&shell, &[]).await;
    let actions: Vec<&Value> = found.iter().map(|row| &row["action"]).collect();
    assert_eq!(actions, ["cordon", "cordon", "undo"]);
    let undone: Vec<&Value> = found.iter().map(|row| &row["undone"]).collect();
    assert_eq!(undone, [&json!(false), &json!(true), &json!(false)]);
    assert_eq!((&found[2]["nodes"], &found[2]["end"]), (&json!([NODE]), &json!("done")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_shows_the_operations_on_its_pods() {
    let (shell, server) = (Shell::new(), Server::start(ApiOptions::default()).await);
    let _world = server.inhabit();
    let pods = Api::<Pod>::namespaced(server.api.client(), "shop").list(&ListParams::default()).await;
    let pod = pods.expect("pods").items[0].name_any();
    for line in [&["cordon", NODE][..], &["delete", &pod, "-n", "shop", "--grace-period=1"]] {
        let line = [line, &["--server", &server.url, "--enforce", "--yes"]].concat();
        let output = shell.run(&line).await;
        assert_eq!(output.code, DONE, "{line:?}: {}", output.err);
    }
    let cases: [(&[&str], &[&str]); 3] =
        [(&[], &["cordon", "delete"]), (&["-n", "shop"], &["delete"]), (&["--namespace", "other"], &[])];
    for (flags, actions) in cases {
        let found = operations(&shell, flags).await;
        let found: Vec<&str> = found.iter().filter_map(|row| row["action"].as_str()).collect();
        assert_eq!(found, actions, "{flags:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_whose_changes_are_gone_is_not_undone() {
    let (shell, server) = (Shell::new(), Server::start(ApiOptions::default()).await);
    let _world = server.inhabit();
    let run = async |line: &[&str]| {
        shell.run(&[line, &["--server", &server.url, "--enforce", "--yes"]].concat()).await
    };
    for action in ["cordon", "uncordon"] {
        assert_eq!(run(&[action, NODE]).await.code, DONE);
    }
    let found = operations(&shell, &[]).await;
    let cordon = found[0]["operation"].as_str().expect("an id");
    let undo = run(&["undo", cordon]).await;
    assert_eq!(undo.code, DONE, "{}", undo.err);
    assert!(undo.err.contains("nothing to do: none of its changes is left"), "{}", undo.err);
    assert_eq!(operations(&shell, &[]).await, found, "the journal is as it was");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_may_not_read_kube_system_has_a_journal_by_the_servers_address() {
    let (shell, server) = (Shell::new(), Server::start(ApiOptions::default()).await);
    let _world = server.inhabit();
    server.api.inject(Fault::always(FaultAnswer::Forbidden).on(&[Verb::Get], "namespaces"));
    let output = shell.run(&["cordon", NODE, "--server", &server.url, "--enforce", "--yes"]).await;
    assert_eq!(output.code, DONE, "{}", output.err);
    assert!(output.err.contains("the uid of namespace kube-system cannot be read"), "{}", output.err);
    let names: Vec<String> = fs::read_dir(shell.home.path().join(".local/state/kordon/journal"))
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    assert!(names.iter().any(|name| name.starts_with("http___127_0_0_1")), "{names:?}");
}

#[tokio::test]
async fn the_journal_needs_no_server_and_no_kubeconfig() {
    let shell = Shell::new();
    assert_eq!(operations(&shell, &[]).await, Vec::<Value>::new());
    assert_eq!(operations(&shell, &["--context", "prod"]).await, Vec::<Value>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_end_of_a_command_with_json_output_is_one_json_document() {
    let (shell, server) = (Shell::new(), Server::start(ApiOptions::default()).await);
    let _world = server.inhabit();
    let url = server.url.as_str();
    let cases: [(&[&str], i32, &str); 6] = [
        (&["status", "-o", "json", "--frobnicate"], USAGE, "kordon.error/v1"),
        (&["status", "-o", "json", "--server", "http://127.0.0.1:1"], NO_CONNECTION, "kordon.error/v1"),
        (&["plan", "cordon", "nope", "-o", "json", "--server", url], FAILED, "kordon.error/v1"),
        (&["undo", "nope", "--output=json", "--server", url], FAILED, "kordon.error/v1"),
        (&["cordon", NODE, "-ojson", "--enforce", "--server", url], USAGE, "kordon.error/v1"),
        (&["plan", "drain", NODE, "-o", "json", "--server", url], REFUSED, "kordon.plan/v1"),
    ];
    for (line, code, schema) in cases {
        let output = shell.run(line).await;
        assert_eq!(output.code, code, "{line:?}: {}", output.err);
        let report = output.json();
        assert_eq!(report["schema"], schema, "{line:?}");
        if schema == "kordon.error/v1" {
            assert_eq!(report["exitCode"], code, "{line:?}");
            assert!(report["error"].as_str().is_some_and(|text| !text.is_empty()), "{report}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_given_by_its_address_is_called_by_it() {
    let (shell, server) = (Shell::new(), Server::start(ApiOptions::default()).await);
    let _world = server.inhabit();
    let file = shell.kubeconfig("http://127.0.0.1:1", json!({"token": "t"}));
    let line = ["status", "--kubeconfig", &file, "--server", &server.url, "-o", "json"];
    let report: Value = serde_json::from_str(&shell.run(&line).await.done()).expect("JSON");
    assert_eq!(report["cluster"]["context"], server.url.trim_start_matches("http://"));
}
