//! Lists: pages, selectors, tables, and Events of both groups.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api as Objects, ListParams};
use serde_json::{Value, json};

use crate::fixture::{names, pod, post, read, server};

#[tokio::test(start_paused = true)]
async fn a_paged_list_shows_one_moment_and_expires() {
    let api = server();
    for i in 0..5 {
        api.load("pods", pod(&format!("p{i}")));
    }
    let pods: Objects<Pod> = Objects::all(api.client());
    let first = pods.list(&ListParams::default().limit(2)).await.expect("listed");
    assert_eq!(names(&first.items), ["p0", "p1"]);
    assert_eq!(first.metadata.remaining_item_count, Some(3));
    api.load("pods", pod("p11"));
    let token = first.metadata.continue_.clone().expect("there is more");
    let second = pods.list(&ListParams::default().limit(2).continue_token(&token)).await.expect("listed");
    assert_eq!(names(&second.items), ["p2", "p3"], "p11 came later than the list");
    assert_eq!(second.metadata.resource_version, first.metadata.resource_version);
    tokio::time::sleep(Duration::from_secs(301)).await;
    let token = second.metadata.continue_.expect("there is more");
    let expired =
        pods.list(&ListParams::default().limit(2).continue_token(&token)).await.expect_err("too old");
    assert!(matches!(&expired, kube::Error::Api(status) if status.code == 410 && status.reason == "Expired"));
    let whole = read(&api, "/api/v1/pods?limit=2&resourceVersion=0").await.expect("listed");
    assert_eq!(whole["items"].as_array().map(Vec::len), Some(6), "a cached list is not paged");
}

#[tokio::test(start_paused = true)]
async fn lists_are_selected_by_fields_and_labels() {
    let api = server();
    for (name, node) in [("a", "n1"), ("b", "n2"), ("c", "n1")] {
        let mut pod = pod(name);
        pod["spec"]["nodeName"] = node.into();
        api.load("pods", pod);
    }
    let pods: Objects<Pod> = Objects::all(api.client());
    let on_n1 = pods.list(&ListParams::default().fields("spec.nodeName=n1,status.phase!=Failed")).await;
    assert_eq!(names(&on_n1.expect("listed").items), ["a", "c"]);
    let labelled = pods.list(&ListParams::default().labels("app in (a,b),!other")).await;
    assert_eq!(labelled.expect("listed").items.len(), 3);
    let unknown =
        pods.list(&ListParams::default().fields("spec.colour=red")).await.expect_err("no such field");
    assert!(matches!(&unknown, kube::Error::Api(status) if status.code == 400), "{unknown}");
}

#[tokio::test(start_paused = true)]
async fn kubectl_gets_tables() {
    let api = server();
    api.load("pods", pod("p"));
    let request = http::Request::get("/api/v1/pods?limit=500")
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json")
        .body(Vec::new())
        .expect("a request");
    let table: Value = api.client().request(request).await.expect("a table");
    let columns: Vec<_> =
        table["columnDefinitions"].as_array().into_iter().flatten().map(|c| c["name"].as_str()).collect();
    assert_eq!(columns[..5], [Some("Name"), Some("Ready"), Some("Status"), Some("Restarts"), Some("Age")]);
    assert_eq!(
        table["rows"][0]["cells"].as_array().map(|c| c[..5].to_vec()),
        Some(vec![json!("p"), json!("0/1"), json!("Running"), json!("0"), json!("0s")])
    );
    assert_eq!(table["rows"][0]["object"]["metadata"]["name"], "p");
}

#[tokio::test(start_paused = true)]
async fn events_of_both_groups_are_the_same_events() {
    let api = server();
    let event = json!({"metadata": {"name": "e"}, "reason": "NodeNotReady", "note": "why", "type": "Normal",
        "action": "x", "reportingController": "kordon", "reportingInstance": "k",
        "regarding": {"kind": "Node", "name": "n1"}, "eventTime": "2027-01-15T08:00:00.000000Z"});
    let made = post(&api, "/apis/events.k8s.io/v1/namespaces/default/events", &event).await.expect("created");
    assert_eq!((&made["apiVersion"], &made["note"]), (&json!("events.k8s.io/v1"), &json!("why")));
    let path = "/api/v1/events?fieldSelector=involvedObject.name%3Dn1%2CinvolvedObject.kind%3DNode";
    let listed = read(&api, path).await.expect("listed");
    let core = &listed["items"][0];
    assert_eq!((&core["apiVersion"], &core["message"]), (&json!("v1"), &json!("why")));
    assert_eq!(core["reportingComponent"], "kordon");
}
