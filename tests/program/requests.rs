//! The requests of one-shot commands: they read what they need and nothing else.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kordon_demo::api::{ApiOptions, Fault, FaultAnswer, Verb};
use kube::{Api as Objects, ResourceExt, api::ListParams};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::common::program::{Server, Shell, is_cordoned};

/// Exit codes, as in `docs/reference/cli.md`.
const DONE: i32 = 0;
const FAILED: i32 = 1;
const REFUSED: i32 = 5;

const NODE: &str = "general-1a-02";

/// Returns the standard output of the program, and its reads.
async fn asked(server: &Server, line: &[&str], code: i32) -> (String, Vec<String>) {
    let before = server.reads().len();
    let output = Shell::new().run(&[line, &["--server", &server.url]].concat()).await;
    assert_eq!(output.code, code, "{line:?}: {}", output.err);
    (output.out, server.reads().split_off(before))
}

fn lists_all_pods(reads: &[String]) -> bool {
    let selects = |uri: &String| uri.contains("fieldSelector") || uri.contains("labelSelector");
    reads.iter().any(|uri| uri.starts_with("/api/v1/pods") && !selects(uri))
}

#[tokio::test(flavor = "multi_thread")]
async fn cordons_labels_and_taints_read_nodes_alone() {
    let server = Server::start(ApiOptions::default()).await;
    let _world = server.inhabit();
    let node = format!("/api/v1/nodes?fieldSelector=metadata.name%3D{NODE}");
    let cases: [(&[&str], &str); 6] = [
        (&["cordon", NODE], "/api/v1/nodes"),
        (&["label", NODE, "a=b"], &node),
        (&["annotate", NODE, "a=b"], &node),
        (&["taint", NODE, "a=b:NoSchedule", "--placement=skip"], &node),
        (&["uncordon", NODE, "--placement=skip"], &node),
        (&["label", "nodes", "-l", "a=b", "c=d"], "/api/v1/nodes?labelSelector=a%3Db"),
    ];
    for (line, nodes) in cases {
        let (_, reads) = asked(&server, line, DONE).await;
        // A preview of a cordon also reads the node's pods, to name the operators that move roles away from the node.
        let pods = format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{NODE}");
        let reads: Vec<String> =
            reads.into_iter().filter(|uri| line[0] != "cordon" || !uri.starts_with(&pods)).collect();
        assert_eq!(reads, ["/version", nodes], "{line:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_without_placement_reads_the_pods_of_its_node_and_what_decides_about_them() {
    let server = Server::start(ApiOptions::default()).await;
    let _world = server.inhabit();
    let (table, reads) = asked(&server, &["drain", NODE, "--placement=skip"], REFUSED).await;
    assert!(!lists_all_pods(&reads), "{reads:#?}");
    assert!(reads.contains(&format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{NODE}")), "{reads:#?}");
    let unbounded = ["replicasets", "deployments", "statefulsets", "poddisruptionbudgets", "namespaces"];
    let whole = reads.iter().find(|uri| {
        unbounded.iter().any(|kind| uri.ends_with(&format!("/{kind}")) && !uri.contains("/namespaces/"))
    });
    assert_eq!(whole, None, "only those of the pods");
    let unknown = table.lines().find(|line| line.starts_with("where pods land is unknown: pods"));
    assert!(unknown.is_some_and(|line| line.ends_with("(--placement=skip)")), "{table}");
    let twice = reads.iter().enumerate().find(|(place, uri)| reads[..*place].contains(uri));
    assert_eq!(twice, None, "read twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn why_node_reads_the_pods_of_that_node() {
    let server = Server::start(ApiOptions::default()).await;
    let _world = server.inhabit();
    server.govern().await;
    let (_, reads) = asked(&server, &["why", "node", NODE], DONE).await;
    assert!(!lists_all_pods(&reads), "{reads:#?}");
    assert!(reads.contains(&format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{NODE}")), "{reads:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn why_node_asks_about_medik8s_only_if_the_node_may_be_unhealthy() {
    let server = Server::start(ApiOptions { is_empty: true, ..ApiOptions::default() }).await;
    for (name, status) in [("well", "True"), ("ill", "Unknown")] {
        let ready = json!({"type": "Ready", "status": status, "lastTransitionTime": "2026-11-29T09:00:00Z"});
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
            "spec": {}, "status": {"conditions": [ready]}});
        server.api.load("nodes", node);
    }
    let asks = async |node: &str| {
        let (_, reads) = asked(&server, &["why", "node", node], DONE).await;
        reads.iter().any(|uri| uri.starts_with("/apis/remediation.medik8s.io/"))
    };
    assert_eq!((asks("well").await, asks("ill").await), (false, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn why_pod_reads_the_pods_of_its_node_its_budgets_and_its_owner() {
    let server = Server::start(ApiOptions::default()).await;
    let _world = server.inhabit();
    server.govern().await;
    let pods: Objects<Pod> = Objects::namespaced(server.api.client(), "shop");
    let pod = pods.list(&ListParams::default()).await.expect("pods").items.remove(0);
    let (name, node) = (pod.name_any(), pod.spec.and_then(|spec| spec.node_name).expect("it is bound"));
    let (text, reads) = asked(&server, &["why", "pod", &name, "-n", "shop"], DONE).await;
    assert!(text.contains("nothing evicts it"), "{text}");
    let is_of_engine = |uri: &&String| !uri.contains("/leases") && !uri.starts_with("/api/v1/nodes");
    let is_of_pod = |uri: &String| {
        uri.starts_with(&format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{node}"))
            || uri.contains("/namespaces/shop/")
            || uri.starts_with("/api/v1/namespaces?fieldSelector=metadata.name%3Dshop")
            || uri.starts_with("/api/v1/persistentvolumes?fieldSelector=metadata.name")
    };
    let other: Vec<&String> = reads.iter().filter(is_of_engine).filter(|uri| !is_of_pod(uri)).collect();
    assert!(other.iter().all(|uri| *uri == "/version" || uri.contains("/kube-system/")), "{other:#?}");
    for part in ["/pods?fieldSelector=metadata.name", "/poddisruptionbudgets", "fieldSelector=spec.nodeName"]
    {
        assert!(reads.iter().any(|uri| uri.contains(part)), "no {part} in {reads:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_does_not_wait_for_placement_and_says_that_it_is_left_out() {
    let server = Server::start(ApiOptions::default()).await;
    let _world = server.inhabit();
    let plan = async |more: &[&str]| {
        let line = [&["plan", "drain", NODE, "-o", "json"], more].concat();
        let (out, _) = asked(&server, &line, REFUSED).await;
        serde_json::from_str::<Value>(&out).expect("JSON")
    };
    let left_out = |plan: &Value| {
        let warnings = plan["warnings"].as_array().expect("warnings").clone();
        let text = |warning: &Value| warning["text"].as_str().unwrap_or_default().to_owned();
        warnings.iter().map(text).find(|text| text.contains("where pods land is unknown"))
    };
    // On a busy machine, the lists may take longer than `--placement=auto` waits for them.
    let whole = plan(&["--placement=wait"]).await;
    assert_eq!(left_out(&whole), None);
    server.api.inject(Fault::always(FaultAnswer::Hang).on(&[Verb::List, Verb::Watch], "services"));
    let part = timeout(Duration::from_secs(30), plan(&[])).await.expect("it does not wait for placement");
    let warning = left_out(&part).expect("it is left out");
    assert!(warning.contains("--placement=auto: the lists took longer than 2 s"), "{warning}");
    assert_eq!((&part["totals"]["pending"], &part["totals"]["placed"]), (&Value::Null, &Value::Null));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_does_not_exist_is_not_found_by_its_name_alone() {
    let server = Server::start(ApiOptions::default()).await;
    let _world = server.inhabit();
    for line in [&["label", "nope", "a=b"][..], &["drain", "nope", "--placement=skip"]] {
        let output = Shell::new().run(&[line, &["--server", &server.url]].concat()).await;
        assert_eq!(output.code, FAILED, "{}", output.err);
        assert!(output.err.contains("node nope not found"), "{}", output.err);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cordon_that_is_applied_lists_no_pods_and_a_drain_does_not_wait_for_placement() {
    let server = Server::start(ApiOptions::default()).await;
    let _world = server.inhabit();
    let (_, reads) = asked(&server, &["cordon", NODE, "--enforce", "--yes"], DONE).await;
    assert!(!reads.iter().any(|uri| uri.contains("pods") && !uri.contains("/kube-system/")), "{reads:#?}");
    assert!(is_cordoned(&server.node(NODE).await));
    server.api.inject(Fault::always(FaultAnswer::Hang).on(&[Verb::List, Verb::Watch], "services"));
    let drain = [
        "drain",
        NODE,
        "--enforce",
        "--yes",
        "--ignore-daemonsets",
        "--delete-emptydir-data",
        "--force",
        "--disable-eviction",
        "--grace-period=0",
    ];
    let (report, reads) = asked(&server, &drain, DONE).await;
    assert!(report.contains("done after"), "{report}");
    assert!(!reads.iter().any(|uri| uri.contains("/services") || uri.contains("csinodes")), "{reads:#?}");
}

/// An applied operation lists and watches the objects that it touches. Of the whole cluster it reads only nodes and
/// DaemonSets.
#[tokio::test(flavor = "multi_thread")]
async fn an_operation_that_is_applied_watches_the_pods_that_it_removes() {
    let server = Server::start(ApiOptions::default()).await;
    let _world = server.inhabit();
    let watches_of = |reads: &[String], part: &str| {
        reads.iter().filter(|uri| uri.contains("watch=true") && uri.contains(part)).count()
    };
    let drain = ["--ignore-daemonsets", "--delete-emptydir-data", "--force", "--disable-eviction"];
    let drain = [&["drain", NODE, "--enforce", "--yes", "--grace-period=0"], &drain[..]].concat();
    let (_, reads) = asked(&server, &drain, DONE).await;
    assert!(!lists_all_pods(&reads), "{reads:#?}");
    assert_eq!(watches_of(&reads, &format!("spec.nodeName%3D{NODE}")), 1, "{reads:#?}");
    assert!(watches_of(&reads, "/poddisruptionbudgets") > 0, "{reads:#?}");
    let whole: Vec<&String> = reads.iter().filter(|uri| is_of_all(uri)).collect();
    let expected = ["/api/v1/nodes", "/apis/apps/v1/daemonsets"];
    let is_expected = |uri: &&String| expected.iter().any(|path| uri.starts_with(path));
    assert!(whole.iter().all(is_expected), "{whole:#?}");

    let pods: Objects<Pod> = Objects::namespaced(server.api.client(), "shop");
    let names: Vec<String> =
        pods.list(&ListParams::default()).await.expect("pods").iter().map(ResourceExt::name_any).collect();
    for (line, name) in [("delete", &names[0]), ("evict", &names[1])] {
        let line = [line, name, "-n", "shop", "--enforce", "--yes", "--grace-period=1"];
        let (_, reads) = asked(&server, &line, DONE).await;
        assert_eq!(reads.iter().filter(|uri| is_of_all(uri)).count(), 0, "{line:?}: {reads:#?}");
        assert_eq!(watches_of(&reads, &format!("metadata.name%3D{name}")), 1, "{line:?}: {reads:#?}");
    }

    let taint = ["taint", "general-1b-01", "a=b:NoExecute", "--enforce", "--yes"];
    let (_, reads) = asked(&server, &taint, DONE).await;
    let mut whole = reads.iter().filter(|uri| is_of_all(uri));
    assert!(whole.all(|uri| uri.starts_with("/api/v1/nodes?")), "guard rails look at the zones: {reads:#?}");
    assert!(reads.iter().any(|uri| uri.contains("spec.nodeName%3Dgeneral-1b-01")), "{reads:#?}");
    let soft = ["taint", "general-1b-02", "a=b:NoSchedule", "--enforce", "--yes"];
    let (_, reads) = asked(&server, &soft, DONE).await;
    assert!(!reads.iter().any(|uri| uri.contains("/pods")), "no pod leaves: {reads:#?}");
}

/// Whether a request is for objects of the whole cluster.
fn is_of_all(uri: &str) -> bool {
    !uri.contains("/namespaces/")
        && !uri.contains("Selector=")
        && uri.matches('/').count() > 1
        && !uri.starts_with("/api/v1/nodes/")
}
