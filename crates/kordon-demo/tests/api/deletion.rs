//! Objects are deleted: grace periods, finalizers, preconditions, collections and namespaces.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{Api as Objects, DeleteParams, ListParams, Preconditions};
use serde_json::json;

use crate::fixture::{PODS, bare_pod, merge, names, pod, post, server};

#[tokio::test(start_paused = true)]
async fn a_running_pod_is_gone_after_its_grace_and_the_kubelets_deletion() {
    let api = server();
    api.load("pods", pod("p"));
    let pods: Objects<Pod> = Objects::default_namespaced(api.client());
    let terminating = async |params: DeleteParams| {
        pods.delete("p", &params).await.expect("deleted").left().expect("a pod, and no status")
    };
    let first = terminating(DeleteParams::default()).await;
    assert_eq!(first.metadata.deletion_grace_period_seconds, Some(30));
    assert_eq!(at(&first), 1_800_000_030);
    tokio::time::sleep(Duration::from_secs(10)).await;
    let longer = terminating(DeleteParams::default().grace_period(60)).await;
    assert_eq!(longer.metadata.resource_version, first.metadata.resource_version, "no longer than the first");
    let shorter = terminating(DeleteParams::default().grace_period(15)).await;
    assert_eq!((at(&shorter), shorter.metadata.deletion_grace_period_seconds), (1_800_000_015, Some(15)));
    pods.delete("p", &DeleteParams::default().grace_period(0)).await.expect("deleted");
    assert_eq!(pods.get_opt("p").await.expect("asked"), None);
}

#[tokio::test(start_paused = true)]
async fn pods_without_a_node_and_finished_pods_go_at_once() {
    let api = server();
    post(&api, PODS, &bare_pod("unbound")).await.expect("created");
    let mut finished = pod("finished");
    finished["status"]["phase"] = "Succeeded".into();
    api.load("pods", finished);
    let pods: Objects<Pod> = Objects::default_namespaced(api.client());
    for name in ["unbound", "finished"] {
        pods.delete(name, &DeleteParams::default()).await.expect("deleted");
        assert_eq!(pods.get_opt(name).await.expect("asked"), None, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn finalizers_keep_an_object_until_the_last_is_removed() {
    let api = server();
    let mut held = pod("p");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    api.load("pods", held);
    let pods: Objects<Pod> = Objects::default_namespaced(api.client());
    pods.delete("p", &DeleteParams::default().grace_period(0)).await.expect("accepted");
    let held = pods.get("p").await.expect("still there");
    assert!(held.metadata.deletion_timestamp.is_some());
    merge(&api, &format!("{PODS}/p"), &json!({"metadata": {"finalizers": null}})).await.expect("let go");
    assert_eq!(pods.get_opt("p").await.expect("asked"), None);
}

#[tokio::test(start_paused = true)]
async fn a_delete_for_another_incarnation_is_refused() {
    let api = server();
    api.load("pods", pod("p"));
    let pods: Objects<Pod> = Objects::default_namespaced(api.client());
    for wrong in [
        Preconditions { uid: Some("another".into()), resource_version: None },
        Preconditions { uid: None, resource_version: Some("1".into()) },
    ] {
        let params = DeleteParams { preconditions: Some(wrong), ..DeleteParams::default() };
        let refused = pods.delete("p", &params).await.expect_err("another pod");
        assert!(matches!(&refused, kube::Error::Api(status) if status.is_conflict()), "{refused}");
    }
    let uid = pods.get("p").await.expect("there").metadata.uid;
    let params = DeleteParams {
        preconditions: Some(Preconditions { uid, resource_version: None }),
        ..DeleteParams::default()
    };
    pods.delete("p", &params).await.expect("the right one");
}

#[tokio::test(start_paused = true)]
async fn a_collection_is_deleted_by_its_selector() {
    let api = server();
    for (name, app) in [("a", "a"), ("b", "b"), ("c", "a")] {
        let mut pod = pod(name);
        pod["metadata"]["labels"]["app"] = app.into();
        api.load("pods", pod);
    }
    let pods: Objects<Pod> = Objects::default_namespaced(api.client());
    let params = DeleteParams::default().grace_period(0);
    pods.delete_collection(&params, &ListParams::default().labels("app=a")).await.expect("deleted");
    let left = pods.list(&ListParams::default()).await.expect("listed");
    assert_eq!(names(&left.items), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_goes_when_its_last_pod_has_gone_and_takes_nothing_new() {
    let api = server();
    api.load("namespaces", json!({"metadata": {"name": "team"}, "status": {"phase": "Active"}}));
    let mut running = pod("p");
    running["metadata"]["namespace"] = "team".into();
    api.load("pods", running);
    api.load("configmaps", json!({"metadata": {"name": "c", "namespace": "team"}}));
    let namespaces: Objects<Namespace> = Objects::all(api.client());
    namespaces.delete("team", &DeleteParams::default()).await.expect("accepted");
    let phase = namespaces.get("team").await.expect("there").status.and_then(|status| status.phase);
    assert_eq!(phase.as_deref(), Some("Terminating"));
    let refused = post(&api, "/api/v1/namespaces/team/pods", &bare_pod("q")).await.expect_err("too late");
    let cause = refused.details.and_then(|d| d.causes.into_iter().next()).map(|c| c.reason);
    assert_eq!((refused.code, cause.as_deref()), (403, Some("NamespaceTerminating")));
    let pods: Objects<Pod> = Objects::namespaced(api.client(), "team");
    pods.delete("p", &DeleteParams::default().grace_period(0)).await.expect("deleted");
    assert_eq!(namespaces.get_opt("team").await.expect("asked"), None);
}

fn at(pod: &Pod) -> i64 {
    pod.metadata.deletion_timestamp.as_ref().map_or(0, |time| time.0.as_second())
}
