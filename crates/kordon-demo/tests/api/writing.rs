//! Objects are created, changed and bound, and admission completes or refuses them.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::core::v1::{Node, Pod};
use kordon_clock::Clock;
use kordon_demo::api::{Api, ApiOptions};
use kordon_time::Timestamp;
use kube::{
    api::{Api as Objects, DeleteParams, ListParams, Patch, PatchParams, PostParams},
    core::Status,
};
use serde_json::{Value, json};

use crate::fixture::{PODS, bare_pod, merge, pod, post, read, send, server, server_with};

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
async fn the_same_seed_gives_the_same_uids_and_generated_names() {
    let mut seen = Vec::new();
    for seed in [1, 1, 2] {
        let api = server_with(ApiOptions { seed, ..ApiOptions::default() });
        let mut wanted = bare_pod("");
        wanted["metadata"] = json!({"generateName": "web-"});
        let pod = send(&api, "POST", PODS, "application/json", &wanted).await.expect("created");
        seen.push((pod["metadata"]["name"].clone(), pod["metadata"]["uid"].clone()));
    }
    assert_eq!(seen[0], seen[1]);
    assert_ne!(seen[0], seen[2]);
    assert!(seen[0].0.as_str().is_some_and(|name| name.starts_with("web-") && name.len() == 9));
}

#[tokio::test(start_paused = true)]
async fn a_second_object_of_the_name_is_refused_and_a_missing_one_not_found() {
    let api = server();
    post(&api, PODS, &bare_pod("p")).await.expect("created");
    let twice = post(&api, PODS, &bare_pod("p")).await.expect_err("there is one");
    assert_eq!((twice.code, twice.reason.as_str()), (409, "AlreadyExists"));
    assert_eq!(twice.message, "pods \"p\" already exists");
    let missing = read(&api, &format!("{PODS}/q")).await.expect_err("there is none");
    assert_eq!((missing.code, missing.reason.as_str()), (404, "NotFound"));
    assert_eq!(missing.details.map(|d| (d.name, d.kind)), Some(("q".into(), "pods".into())));
    let elsewhere =
        post(&api, "/api/v1/namespaces/nowhere/pods", &bare_pod("p")).await.expect_err("no namespace");
    assert_eq!((elsewhere.code, elsewhere.message.as_str()), (404, "namespaces \"nowhere\" not found"));
}

#[tokio::test(start_paused = true)]
async fn a_stale_resource_version_conflicts_and_a_wrong_uid_too() {
    let api = server();
    api.load("nodes", json!({"metadata": {"name": "n1"}}));
    let before = read(&api, "/api/v1/nodes/n1").await.expect("read");
    let version = before["metadata"]["resourceVersion"].clone();
    let lock = json!({"metadata": {"resourceVersion": version}, "spec": {"unschedulable": true}});
    merge(&api, "/api/v1/nodes/n1", &lock).await.expect("the version is right");
    let stale = merge(&api, "/api/v1/nodes/n1", &lock).await.expect_err("the version has passed");
    assert_eq!((stale.code, stale.reason.as_str()), (409, "Conflict"));
    let stale =
        send(&api, "PUT", "/api/v1/nodes/n1", "application/json", &before).await.expect_err("stale too");
    assert_eq!(stale.code, 409);
    let other = json!({"metadata": {"uid": "another"}, "spec": {"unschedulable": null}});
    let refused = merge(&api, "/api/v1/nodes/n1", &other).await.expect_err("another node");
    assert_eq!((refused.code, refused.reason.as_str()), (422, "Invalid"));
    let causes = refused.details.map(|details| details.causes).unwrap_or_default();
    assert_eq!(causes.first().map(|cause| cause.field.as_str()), Some("metadata.uid"));
}

#[tokio::test(start_paused = true)]
async fn writing_what_is_there_already_makes_no_new_version() {
    let api = server();
    api.load("nodes", json!({"metadata": {"name": "n1"}, "spec": {"podCIDR": "10.0.0.0/24"}}));
    let revision = api.revision();
    for patch in [
        json!({"spec": {"unschedulable": null}}),
        json!({"spec": {"unschedulable": false}}),
        json!({"spec": {"taints": []}}),
        json!({"metadata": {"labels": {}}}),
    ] {
        merge(&api, "/api/v1/nodes/n1", &patch).await.expect("accepted");
        assert_eq!(api.revision(), revision, "{patch}");
    }
}

#[tokio::test(start_paused = true)]
async fn taints_are_replaced_whole_and_conditions_merged_by_type() {
    let api = server();
    api.load(
        "nodes",
        json!({"metadata": {"name": "n1"}, "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "DiskPressure", "status": "False"}]}}),
    );
    let taints = json!({"spec": {"taints": [{"key": "b", "effect": "NoExecute"}]}});
    let node = strategic(&api, "/api/v1/nodes/n1", &taints).await.expect("patched");
    assert_eq!(node["spec"]["taints"], json!([{"key": "b", "effect": "NoExecute"}]));
    let status = json!({"spec": {"unschedulable": true}, "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}});
    let node = strategic(&api, "/api/v1/nodes/n1/status", &status).await.expect("patched");
    assert_eq!(
        node["status"]["conditions"],
        json!([{"type": "Ready", "status": "Unknown"}, {"type": "DiskPressure", "status": "False"}])
    );
    assert_eq!(node["spec"]["unschedulable"], Value::Null, "the status subresource leaves the spec alone");
    let sneaked = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    let node = strategic(&api, "/api/v1/nodes/n1", &sneaked).await.expect("accepted");
    assert_eq!(
        node["status"]["conditions"][0]["status"], "Unknown",
        "and the node itself leaves the status alone"
    );
}

#[tokio::test(start_paused = true)]
async fn bad_taints_are_all_named_at_once() {
    let api = server();
    api.load("nodes", json!({"metadata": {"name": "n1"}}));
    let taints = json!({"spec": {"taints": [{"key": "a", "effect": "Foo"}, {"key": "b"},
        {"key": "c", "effect": "NoSchedule"}, {"key": "c", "effect": "NoSchedule", "value": "2"}]}});
    let refused = merge(&api, "/api/v1/nodes/n1", &taints).await.expect_err("invalid");
    assert_eq!(refused.code, 422);
    let causes = refused.details.map(|details| details.causes).unwrap_or_default();
    let found: Vec<(&str, &str)> = causes.iter().map(|c| (c.reason.as_str(), c.field.as_str())).collect();
    assert_eq!(
        found,
        [
            ("FieldValueNotSupported", "metadata.taints[0].effect"),
            ("FieldValueRequired", "metadata.taints[1].effect"),
            ("FieldValueDuplicate", "metadata.taints[3]"),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn admission_fills_in_new_pods_and_nodes() {
    let api = server();
    let node = post(&api, "/api/v1/nodes", &json!({"metadata": {"name": "n1"}})).await.expect("created");
    assert_eq!(
        node["spec"]["taints"],
        json!([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}])
    );
    let class = json!({"metadata": {"name": "high"}, "value": 1000});
    post(&api, "/apis/scheduling.k8s.io/v1/priorityclasses", &class).await.expect("created");
    let mut wanted = bare_pod("p");
    wanted["spec"]["priorityClassName"] = "high".into();
    wanted["spec"]["tolerations"] = json!([{"key": "node.kubernetes.io/not-ready", "operator": "Exists",
        "effect": "NoExecute", "tolerationSeconds": 5}]);
    wanted["status"] = json!({"phase": "Running"});
    let pod = post(&api, PODS, &wanted).await.expect("created");
    assert_eq!(pod["spec"]["priority"], 1000);
    assert_eq!(pod["status"], json!({"phase": "Pending", "qosClass": "BestEffort"}));
    assert_eq!(pod["spec"]["terminationGracePeriodSeconds"], 30);
    let tolerated: Vec<_> = pod["spec"]["tolerations"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|t| (t["key"].as_str(), t["tolerationSeconds"].as_i64()))
        .collect();
    assert_eq!(
        tolerated,
        [
            (Some("node.kubernetes.io/not-ready"), Some(5)),
            (Some("node.kubernetes.io/unreachable"), Some(300))
        ]
    );
    wanted["metadata"]["name"] = "q".into();
    wanted["spec"]["priorityClassName"] = "none-such".into();
    assert_eq!(post(&api, PODS, &wanted).await.expect_err("no such class").code, 403);
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_spec_raises_the_generation_and_of_the_status_does_not() {
    let api = server();
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let made = post(&api, path, &deployment("web", 3)).await.expect("created");
    assert_eq!(made["metadata"]["generation"], 1);
    let path = format!("{path}/web");
    let scaled = merge(&api, &path, &json!({"spec": {"replicas": 5}})).await.expect("patched");
    assert_eq!(scaled["metadata"]["generation"], 2);
    let status = json!({"status": {"replicas": 5}});
    let reported = merge(&api, &format!("{path}/status"), &status).await.expect("patched");
    assert_eq!(
        (&reported["metadata"]["generation"], &reported["status"]["replicas"]),
        (&json!(2), &json!(5))
    );
    let scale = read(&api, &format!("{path}/scale")).await.expect("read");
    assert_eq!((&scale["kind"], &scale["spec"]["replicas"]), (&json!("Scale"), &json!(5)));
    let scaled =
        merge(&api, &format!("{path}/scale"), &json!({"spec": {"replicas": 1}})).await.expect("scaled");
    assert_eq!(scaled["spec"]["replicas"], 1);
    let mut wrong = deployment("odd", 1);
    wrong["spec"]["template"]["metadata"]["labels"] = json!({"app": "other"});
    let refused =
        post(&api, "/apis/apps/v1/namespaces/default/deployments", &wrong).await.expect_err("invalid");
    assert_eq!((refused.code, refused.reason.as_str()), (422, "Invalid"));
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_answers_as_the_real_thing_and_writes_nothing() {
    let api = server();
    api.load("nodes", json!({"metadata": {"name": "n1"}}));
    api.load("pods", pod("p"));
    let revision = api.revision();
    let all = PostParams { dry_run: true, ..PostParams::default() };
    let nodes: Objects<Node> = Objects::all(api.client());
    nodes.create(&all, &node("n2")).await.expect("would be created");
    let exists = nodes.create(&all, &node("n1")).await.expect_err("exists");
    assert!(matches!(&exists, kube::Error::Api(status) if status.is_already_exists()), "{exists}");
    let params = PatchParams { dry_run: true, ..PatchParams::default() };
    let patch = Patch::Merge(json!({"spec": {"unschedulable": true}}));
    let patched = nodes.patch("n1", &params, &patch).await.expect("would be patched");
    assert_eq!(patched.spec.and_then(|spec| spec.unschedulable), Some(true));
    let pods: Objects<Pod> = Objects::default_namespaced(api.client());
    pods.delete("p", &DeleteParams { dry_run: true, ..DeleteParams::default() }).await.expect("would go");
    let body = json!({"metadata": {"name": "p"}, "deleteOptions": {"dryRun": ["All"]}});
    post(&api, &format!("{PODS}/p/eviction"), &body).await.expect("would be evicted");
    let body = json!({"metadata": {"name": "p"}});
    post(&api, &format!("{PODS}/p/eviction?dryRun=All"), &body).await.expect("would be evicted");
    assert_eq!(api.revision(), revision);
    let odd = post(&api, &format!("{PODS}?dryRun=Some"), &bare_pod("x")).await.expect_err("not a dry run");
    assert_eq!((odd.code, odd.reason.as_str()), (422, "Invalid"));
    assert_eq!(api.revision(), revision);
}

#[tokio::test(start_paused = true)]
async fn a_delete_body_without_dry_run_deletes_whatever_the_query_says() {
    let api = server();
    api.load("pods", pod("p"));
    let path = format!("{PODS}/p?dryRun=All");
    send(&api, "DELETE", &path, "application/json", &json!({"gracePeriodSeconds": 0}))
        .await
        .expect("deleted");
    assert_eq!(read(&api, &format!("{PODS}/p")).await.expect_err("gone").code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_bound_once() {
    let api = server();
    post(&api, PODS, &bare_pod("p")).await.expect("created");
    let to = |node: &str| json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": node}});
    post(&api, &format!("{PODS}/p/binding"), &to("n1")).await.expect("bound");
    let pod = read(&api, &format!("{PODS}/p")).await.expect("read");
    assert_eq!(
        (&pod["spec"]["nodeName"], &pod["status"]["conditions"][0]["type"]),
        (&json!("n1"), &json!("PodScheduled"))
    );
    assert_eq!(post(&api, &format!("{PODS}/p/binding"), &to("n2")).await.expect_err("taken").code, 409);
    let moved = merge(&api, &format!("{PODS}/p"), &json!({"spec": {"nodeName": "n2"}})).await;
    assert_eq!(moved.expect_err("a spec is fixed").code, 422);
}

#[tokio::test(start_paused = true)]
async fn times_on_objects_are_those_of_the_given_clock() {
    let api = Api::new(Clock::new(Timestamp::from_secs(1_800_000_000), 60.0), ApiOptions::default());
    tokio::time::sleep(Duration::from_secs(10)).await;
    let made = post(&api, PODS, &bare_pod("p")).await.expect("created");
    assert_eq!(made["metadata"]["creationTimestamp"], Timestamp::from_secs(1_800_000_600).to_time());
}

async fn strategic(api: &Api, path: &str, patch: &Value) -> Result<Value, Box<Status>> {
    send(api, "PATCH", path, "application/strategic-merge-patch+json", patch).await
}

fn node(name: &str) -> Node {
    let labels = BTreeMap::from([("kubernetes.io/hostname".to_owned(), name.to_owned())]);
    let metadata =
        kube::api::ObjectMeta { name: Some(name.into()), labels: Some(labels), ..Default::default() };
    Node { metadata, ..Default::default() }
}

fn deployment(name: &str, replicas: i64) -> Value {
    json!({"metadata": {"name": name}, "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "main", "image": "demo/web:1"}]}}}})
}
