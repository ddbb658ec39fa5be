//! The embedded API server as kordon, its agents and kubectl use it: through `kube::Client` in process, and over
//! plain HTTP on loopback.

use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{Node, Pod};
use kordon::{
    clock::Clock,
    demo::api::{Api, Options},
    time::Timestamp,
};
use kube::{
    api::{Api as Objects, DeleteParams, ListParams, Patch, PatchParams, PostParams},
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use serde_json::{Value, json};

#[tokio::test(start_paused = true)]
async fn objects_are_created_read_changed_and_deleted() {
    let api = server();
    let nodes: Objects<Node> = Objects::all(api.client());
    let created = nodes.create(&PostParams::default(), &node("n1")).await.expect("created");
    assert!(created.metadata.uid.is_some_and(|uid| uid.len() == 36));
    assert_eq!(nodes.list(&ListParams::default()).await.expect("listed").items.len(), 1);
    let patch = json!({"spec": {"unschedulable": true}});
    let patched =
        nodes.patch("n1", &PatchParams::default(), &Patch::Strategic(patch)).await.expect("patched");
    assert_eq!(patched.spec.and_then(|spec| spec.unschedulable), Some(true));
    nodes.delete("n1", &DeleteParams::default()).await.expect("deleted");
    assert_eq!(nodes.get_opt("n1").await.expect("asked"), None);
}

#[tokio::test(start_paused = true)]
async fn a_watcher_follows_with_streaming_lists_and_with_paged_ones() {
    for config in [watcher::Config::default().streaming_lists(), watcher::Config::default().page_size(2)] {
        let api = server();
        for i in 0..5 {
            api.load("pods", pod(&format!("p{i}")));
        }
        let mut events = watcher(Objects::<Pod>::all(api.client()), config).default_backoff().boxed();
        let mut seen = Vec::new();
        loop {
            match events.try_next().await.expect("no failure").expect("no end") {
                Event::Init => {}
                Event::InitApply(pod) => seen.extend(pod.metadata.name),
                Event::InitDone => break,
                other => panic!("{other:?} within the list"),
            }
        }
        assert_eq!(seen, ["p0", "p1", "p2", "p3", "p4"]);
        api.load("pods", pod("p9"));
        let Some(Event::Apply(new)) = events.try_next().await.expect("no failure") else {
            panic!("no event")
        };
        assert_eq!(new.metadata.name.as_deref(), Some("p9"));
    }
}

fn server() -> Api {
    server_with(Options::default())
}

fn server_with(options: Options) -> Api {
    Api::new(Clock::new(Timestamp::from_secs(1_800_000_000), 1.0), options)
}

fn node(name: &str) -> Node {
    let labels = BTreeMap::from([("kubernetes.io/hostname".to_owned(), name.to_owned())]);
    Node {
        metadata: kube::api::ObjectMeta {
            name: Some(name.into()),
            labels: Some(labels),
            ..Default::default()
        },
        ..Default::default()
    }
}

/// A running, ready pod on node n1.
fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "default", "labels": {"app": "a"}},
        "spec": {"nodeName": "n1", "terminationGracePeriodSeconds": 30,
            "containers": [{"name": "main", "image": "demo/a:1"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}})
}
