//! The embedded API server as kordon, its agents and kubectl use it: through `kube::Client` in process, and over
//! plain HTTP on loopback.

use std::{collections::BTreeMap, net::SocketAddr, pin::Pin, time::Duration};

use futures::{Stream, StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use kordon_clock::Clock;
use kordon_demo::{
    api::{Api, ApiOptions, Fault, FaultAnswer, Verb},
    scenario::Scenario,
    world::{NodeFault, PressureLevel, World, WorldOptions},
};
use kordon_time::{Span, Timestamp};
use kube::{
    api::{
        Api as Objects, DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions, WatchEvent,
        WatchParams,
    },
    core::Status,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::sync::{CancellationToken, DropGuard};

// ---- writing

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

// ---- deletion

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

// ---- eviction

#[tokio::test(start_paused = true)]
async fn an_exhausted_budget_answers_429_with_its_numbers_and_no_retry_after() {
    let api = server();
    api.load("pods", pod("p"));
    api.load("poddisruptionbudgets", budget("b", 0, 3, 3));
    let refused = evict(&api, "p").await.expect_err("nothing is left");
    assert_eq!((refused.code, refused.reason.as_str()), (429, "TooManyRequests"));
    let details = refused.details.expect("details");
    let cause = details.causes.first().expect("a cause");
    assert_eq!(cause.reason, "DisruptionBudget");
    assert_eq!(cause.message, "The disruption budget b needs 3 healthy pods and has 3 currently");
    assert_eq!(details.retry_after_seconds, 0);
}

#[tokio::test(start_paused = true)]
async fn an_eviction_takes_one_disruption_and_the_pod_terminates() {
    let api = server();
    api.load("pods", pod("p"));
    api.load("pods", pod("q"));
    api.load("poddisruptionbudgets", budget("b", 1, 1, 2));
    evict(&api, "p").await.expect("one is left");
    let pod = read(&api, &format!("{PODS}/p")).await.expect("terminating");
    assert_eq!(pod["metadata"]["deletionGracePeriodSeconds"], 30);
    let why = pod["status"]["conditions"].as_array().and_then(|c| c.last()).map(|c| c["reason"].clone());
    assert_eq!(why, Some(json!("EvictionByEvictionAPI")));
    let budget = read(&api, "/apis/policy/v1/namespaces/default/poddisruptionbudgets/b").await.expect("read");
    assert_eq!(budget["status"]["disruptionsAllowed"], 0);
    assert!(budget["status"]["disruptedPods"]["p"].is_string());
    assert_eq!(evict(&api, "q").await.expect_err("spent").code, 429);
    evict(&api, "p").await.expect("a terminating pod needs no budget");
}

#[tokio::test(start_paused = true)]
async fn an_eviction_tells_the_version_of_the_deletion_from_1_38_on() {
    for (minor_version, tells) in [(37, false), (38, true)] {
        let api = server_with(ApiOptions { minor_version, ..ApiOptions::default() });
        api.load("pods", pod("p"));
        let body = json!({"metadata": {"name": "p", "namespace": "default"}});
        let answer = post(&api, &format!("{PODS}/p/eviction"), &body).await.expect("no budget");
        let pod = read(&api, &format!("{PODS}/p")).await.expect("terminating");
        let version = Some(&pod["metadata"]["resourceVersion"]).filter(|_| tells);
        assert_eq!(answer["metadata"].get("resourceVersion"), version, "1.{minor_version}");
    }
}

#[tokio::test(start_paused = true)]
async fn evictions_are_decided_as_the_specification_says() {
    let ready = |status: &str| json!([{"type": "Ready", "status": status}]);
    for (what, change, budgets, expected) in [
        ("no budget", json!({}), vec![], Ok(())),
        ("pending", json!({"status": {"phase": "Pending"}}), vec![budget("b", 0, 3, 3)], Ok(())),
        (
            "finished under two budgets",
            json!({"status": {"phase": "Failed"}}),
            vec![budget("a", 0, 3, 3), budget("b", 0, 3, 3)],
            Ok(()),
        ),
        ("two budgets", json!({}), vec![budget("a", 5, 1, 6), budget("b", 5, 1, 6)], Err(500)),
        (
            "unready, healthy budget",
            json!({"status": {"conditions": ready("False")}}),
            vec![budget("b", 0, 3, 3)],
            Ok(()),
        ),
        (
            "unready, sick budget",
            json!({"status": {"conditions": ready("False")}}),
            vec![budget("b", 0, 3, 2)],
            Err(429),
        ),
        (
            "unready, nothing desired",
            json!({"status": {"conditions": ready("False")}}),
            vec![budget("b", 0, 0, 0)],
            Err(429),
        ),
        (
            "budget of others",
            json!({"metadata": {"labels": {"app": "z"}}}),
            vec![budget("b", 0, 3, 3)],
            Ok(()),
        ),
        ("negative", json!({}), vec![budget("b", -1, 3, 3)], Err(403)),
    ] {
        let api = server();
        let mut pod = pod("p");
        json_patch::merge(&mut pod, &change);
        api.load("pods", pod);
        for budget in budgets {
            api.load("poddisruptionbudgets", budget);
        }
        assert_eq!(evict(&api, "p").await.map_err(|status| status.code), expected, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_always_allow_budget_lets_unready_pods_go_and_a_stale_one_asks_to_come_back() {
    let api = server();
    let mut unready = pod("p");
    unready["status"]["conditions"] = json!([]);
    api.load("pods", unready);
    let mut lenient = budget("b", 0, 3, 2);
    lenient["spec"]["unhealthyPodEvictionPolicy"] = "AlwaysAllow".into();
    api.load("poddisruptionbudgets", lenient);
    evict(&api, "p").await.expect("the policy allows it");

    let api = server();
    api.load("pods", pod("p"));
    let mut stale = budget("b", 5, 1, 6);
    stale["metadata"]["generation"] = 2.into();
    api.load("poddisruptionbudgets", stale);
    let refused = evict(&api, "p").await.expect_err("stale");
    assert_eq!(refused.details.map(|details| details.retry_after_seconds), Some(10));
}

/// Scenario 53: The dryRun of an eviction may stand in its body, its query or both; if the two differ, the
/// eviction is an error.
#[tokio::test(start_paused = true)]
async fn an_eviction_names_its_pod_and_its_dry_run_alike_everywhere() {
    let api = server();
    api.load("pods", pod("p"));
    let path = format!("{PODS}/p/eviction");
    let wrong = post(&api, &path, &json!({"metadata": {"name": "q"}})).await.expect_err("another name");
    assert_eq!(
        (wrong.code, wrong.message.as_str()),
        (400, "name in URL does not match name in Eviction object")
    );
    let missing = post(&api, &format!("{PODS}/q/eviction"), &json!({"metadata": {"name": "q"}})).await;
    assert_eq!(missing.expect_err("no pod").code, 404);
    let odd = json!({"metadata": {"name": "p"}, "deleteOptions": {"dryRun": ["Foo"]}});
    assert_eq!(post(&api, &path, &odd).await.expect_err("not a dry run").code, 422);
    let split = json!({"metadata": {"name": "p"}, "deleteOptions": {"dryRun": []}});
    assert_eq!(post(&api, &format!("{path}?dryRun=All"), &split).await.expect_err("which?").code, 400);
    let other = json!({"metadata": {"name": "p"}, "deleteOptions": {"preconditions": {"uid": "another"}}});
    assert_eq!(post(&api, &path, &other).await.expect_err("another pod").code, 409);
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

// ---- lists

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

// ---- watches

#[tokio::test(start_paused = true)]
async fn a_watcher_follows_with_streaming_lists_and_with_paged_ones() {
    for config in [watcher::Config::default().streaming_lists(), watcher::Config::default().page_size(100)] {
        let api = server();
        // Enough pods that a streamed list of them has several chunks.
        let all: Vec<String> = (0..1000).map(|i| format!("p{i:04}")).collect();
        for name in &all {
            api.load("pods", pod(name));
        }
        let mut events = follow(&api, config);
        assert_eq!(initial(&mut events).await, all);
        api.load("pods", pod("q"));
        assert_eq!(next(&mut events).await, ("apply", "q".to_owned()));
        let pods: Objects<Pod> = Objects::default_namespaced(api.client());
        pods.delete("p0007", &DeleteParams::default().grace_period(0)).await.expect("deleted");
        assert_eq!(next(&mut events).await, ("delete", "p0007".to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_without_streaming_lists_refuses_them() {
    let api = server_with(ApiOptions { streaming_lists: false, ..ApiOptions::default() });
    let mut events = follow(&api, watcher::Config::default().streaming_lists());
    let refused = loop {
        match events.next().await.expect("no end") {
            Err(watcher::Error::WatchStartFailed(error)) => break error,
            Err(watcher::Error::InitialListFailed(error)) => break error,
            Err(error) => panic!("{error}"),
            Ok(_) => {}
        }
    };
    assert!(matches!(&refused, kube::Error::Api(status) if status.code == 422), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_watcher_lists_again_after_410_and_after_a_cut() {
    for break_it in [
        (|api: &Api| {
            api.compact_history();
            api.cut_watches();
        }) as fn(&Api),
        |api| api.cut_watches(),
    ] {
        let api = server();
        api.load("pods", pod("a"));
        let mut events = follow(&api, watcher::Config::default());
        assert_eq!(initial(&mut events).await, ["a"]);
        // A watch that resumes from the version of the list would report pod b. After compaction, the history no longer
        // has this change.
        api.load("pods", pod("b"));
        break_it(&api);
        let mut seen = Vec::new();
        while !seen.contains(&"b".to_owned()) {
            if let Ok(Event::Apply(pod) | Event::InitApply(pod)) = events.next().await.expect("no end") {
                seen.extend(pod.metadata.name);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_forgotten_version_gets_410_inside_the_stream() {
    let api = server();
    api.load("pods", pod("a"));
    let old = api.revision();
    api.load("pods", pod("b"));
    api.compact_history();
    let pods: Objects<Pod> = Objects::all(api.client());
    let mut stream = pods.watch(&WatchParams::default(), &old.to_string()).await.expect("200").boxed();
    let Some(Ok(WatchEvent::Error(status))) = stream.next().await else { panic!("no error event") };
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
    assert!(stream.next().await.is_none(), "and the stream ends");
}

#[tokio::test(start_paused = true)]
async fn history_is_bounded() {
    let api = server_with(ApiOptions { history_bytes: 20_000, ..ApiOptions::default() });
    let begin = api.revision();
    for i in 0..100 {
        api.load("pods", pod(&format!("p{i}")));
    }
    let pods: Objects<Pod> = Objects::all(api.client());
    let mut old = pods.watch(&WatchParams::default(), &begin.to_string()).await.expect("200").boxed();
    assert!(matches!(old.next().await, Some(Ok(WatchEvent::Error(status))) if status.code == 410));
    let recent = (api.revision() - 3).to_string();
    let mut recent = pods.watch(&WatchParams::default(), &recent).await.expect("200").boxed();
    assert!(
        matches!(recent.next().await, Some(Ok(WatchEvent::Added(pod))) if pod.metadata.name.as_deref() == Some("p97"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_does_not_read_gets_410_and_blocks_nothing() {
    let api = server_with(ApiOptions { history_bytes: 20_000, ..ApiOptions::default() });
    let pods: Objects<Pod> = Objects::all(api.client());
    let mut slow =
        pods.watch(&WatchParams::default(), &api.revision().to_string()).await.expect("200").boxed();
    api.load("pods", pod("first"));
    assert!(matches!(slow.next().await, Some(Ok(WatchEvent::Added(_)))));
    for i in 0..1000 {
        api.load("pods", pod(&format!("p{i}")));
    }
    assert!(matches!(slow.next().await, Some(Ok(WatchEvent::Error(status))) if status.code == 410));
    assert!(slow.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn objects_enter_and_leave_a_selection_as_added_and_deleted() {
    let api = server();
    post(&api, PODS, &bare_pod("p")).await.expect("created");
    let pods: Objects<Pod> = Objects::all(api.client());
    let params = WatchParams::default().fields("spec.nodeName=n1").labels("app=a");
    let mut stream = pods.watch(&params, &api.revision().to_string()).await.expect("200").boxed();
    let to = json!({"metadata": {"name": "p"}, "target": {"name": "n1"}});
    post(&api, &format!("{PODS}/p/binding"), &to).await.expect("bound");
    merge(&api, &format!("{PODS}/p"), &json!({"metadata": {"labels": {"app": "b"}}})).await.expect("patched");
    let left = api.revision().to_string();
    merge(&api, &format!("{PODS}/p"), &json!({"metadata": {"labels": {"x": "y"}}})).await.expect("unseen");
    merge(&api, &format!("{PODS}/p"), &json!({"metadata": {"labels": {"app": "a"}}})).await.expect("patched");
    let mut seen = Vec::new();
    while seen.len() < 3 {
        match stream.try_next().await.expect("no failure").expect("no end") {
            WatchEvent::Added(_) => seen.push("added"),
            WatchEvent::Modified(_) => seen.push("modified"),
            WatchEvent::Deleted(pod) => {
                assert_eq!(pod.metadata.resource_version.as_ref(), Some(&left));
                assert_eq!(pod.metadata.labels.and_then(|l| l.get("app").cloned()).as_deref(), Some("a"));
                seen.push("deleted");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(seen, ["added", "deleted", "added"]);
}

#[tokio::test(start_paused = true)]
async fn a_quiet_watch_sends_bookmarks_of_the_present_and_ends_in_time() {
    let api = server();
    let nodes: Objects<Node> = Objects::all(api.client());
    let params = WatchParams::default().timeout(90);
    let mut stream = nodes.watch(&params, &api.revision().to_string()).await.expect("200").boxed();
    api.load("pods", pod("p"));
    let now = api.revision().to_string();
    let Some(Ok(WatchEvent::Bookmark(bookmark))) = stream.next().await else { panic!("no bookmark") };
    assert_eq!(bookmark.metadata.resource_version, now);
    let begun = tokio::time::Instant::now();
    assert!(stream.next().await.is_none());
    assert_eq!(begun.elapsed().as_secs(), 30, "60 s to the bookmark, 30 s to the end");
}

#[tokio::test(start_paused = true)]
async fn a_stalled_watch_says_nothing_and_then_all_of_it() {
    let api = server();
    let nodes: Objects<Node> = Objects::all(api.client());
    let mut stream =
        nodes.watch(&WatchParams::default(), &api.revision().to_string()).await.expect("200").boxed();
    api.stall_watches(true);
    api.load("nodes", json!({"metadata": {"name": "n1"}}));
    assert!(tokio::time::timeout(Duration::from_secs(120), stream.next()).await.is_err());
    api.stall_watches(false);
    assert!(matches!(stream.next().await, Some(Ok(WatchEvent::Added(_)))));
}

// ---- permissions, faults, time

#[tokio::test(start_paused = true)]
async fn a_missing_right_is_refused_and_shown_by_an_access_review() {
    let api = server();
    api.load("pods", pod("p"));
    api.inject(Fault::always(FaultAnswer::Forbidden).of_user("jane").on(&[Verb::Create], "pods/eviction"));
    let review = |client: kube::Client, subresource: &'static str| async move {
        let body = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {"verb": "create", "resource": "pods", "subresource": subresource}}});
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let answer: Value =
            client.request(request("POST", path, "application/json", &body)).await.expect("answered");
        answer["status"]["allowed"].as_bool()
    };
    assert_eq!(review(api.client_as("jane"), "eviction").await, Some(false));
    assert_eq!(review(api.client_as("jane"), "").await, Some(true));
    assert_eq!(review(api.client(), "eviction").await, Some(true));
    let body = json!({"metadata": {"name": "p"}});
    let path = format!("{PODS}/p/eviction");
    let answer =
        api.client_as("jane").request::<Value>(request("POST", &path, "application/json", &body)).await;
    let Err(kube::Error::Api(refused)) = answer else { panic!("not refused") };
    assert_eq!(refused.code, 403);
    assert!(refused.message.contains("User \"jane\" cannot create resource \"pods/eviction\" in API group \"\" in the namespace \"default\""), "{}", refused.message);
    evict(&api, "p").await.expect("others may");
    let log = api.log();
    let last = log.last().expect("a request");
    assert_eq!((last.identity.user.as_str(), last.verb, last.code), ("system:admin", Verb::Create, 201));
}

#[tokio::test(start_paused = true)]
async fn a_share_of_requests_can_fail() {
    let api = server();
    api.inject(Fault::always(FaultAnswer::InternalError).on(&[Verb::List], "nodes").share(0.25));
    let nodes: Objects<Node> = Objects::all(api.client());
    let mut failed = 0;
    for _ in 0..400 {
        failed += u32::from(nodes.list(&ListParams::default()).await.is_err());
    }
    assert!((60..140).contains(&failed), "{failed} of 400");
    api.clear_faults();
    nodes.list(&ListParams::default()).await.expect("well again");
}

#[tokio::test(start_paused = true)]
async fn an_overloaded_server_answers_429_without_a_status_and_a_hung_one_not_at_all() {
    let api = server();
    api.inject(Fault::always(FaultAnswer::Overloaded { retry_after_secs: 3 }).on(&[], "nodes"));
    api.inject(Fault::always(FaultAnswer::Hang).on(&[Verb::Get], "pods"));
    let overloaded = read(&api, "/api/v1/nodes").await.expect_err("overloaded");
    assert_eq!((overloaded.code, overloaded.details), (429, None));
    let hung =
        tokio::time::timeout(Duration::from_secs(3600), read(&api, "/api/v1/namespaces/default/pods/p"))
            .await;
    assert!(hung.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_down_loses_no_objects_and_watchers_come_back() {
    let api = server();
    api.load("pods", pod("a"));
    let mut events = follow(&api, watcher::Config::default());
    assert_eq!(initial(&mut events).await, ["a"]);
    api.set_down(true);
    assert!(events.next().await.expect("no end").is_err());
    assert!(read_raw(&api, "/version").await.is_err());
    api.set_down(false);
    api.load("pods", pod("b"));
    let mut seen = Vec::new();
    while !seen.contains(&"b".to_owned()) {
        if let Ok(Event::Apply(pod) | Event::InitApply(pod)) = events.next().await.expect("no end") {
            seen.extend(pod.metadata.name);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn times_on_objects_are_those_of_the_given_clock() {
    let api = Api::new(Clock::new(Timestamp::from_secs(1_800_000_000), 60.0), ApiOptions::default());
    tokio::time::sleep(Duration::from_secs(10)).await;
    let made = post(&api, PODS, &bare_pod("p")).await.expect("created");
    assert_eq!(made["metadata"]["creationTimestamp"], Timestamp::from_secs(1_800_000_600).to_time());
}

// ---- over HTTP

#[tokio::test]
async fn plain_http_works_and_carries_the_clocks_date() {
    let (api, address, stop) = serve(ApiOptions::default()).await;
    api.load("pods", pod("p"));
    let answer = http(address, "GET /api/v1/namespaces/default/pods/p HTTP/1.1", "").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.to_lowercase().contains("date: fri, 15 jan 2027 08:00:0"), "{answer}");
    assert!(answer.contains(r#""name":"p""#));
    let answer = http(address, "GET /api/v1/namespaces/default/pods/q HTTP/1.1", "").await;
    assert!(answer.starts_with("HTTP/1.1 404") && answer.contains(r#""reason":"NotFound""#), "{answer}");
    let answer = http(address, "POST /api/v1/nodes HTTP/1.1", "{not json").await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    for (path, expected) in [
        ("/healthz", "200"),
        ("/version", "200"),
        ("/api", "200"),
        ("/apis", "200"),
        ("/apis/apps/v1", "200"),
        ("/openapi/v3", "200"),
        ("/openapi/v2", "404"),
        ("/metrics", "404"),
        ("/apis/none/v1", "404"),
    ] {
        let answer = http(address, &format!("GET {path} HTTP/1.1"), "").await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected}")), "{path}: {answer}");
    }
    stop.cancel();
}

#[tokio::test]
async fn a_real_client_over_http_lists_and_watches() {
    let (api, address, stop) = serve(ApiOptions::default()).await;
    for i in 0..300 {
        api.load("pods", pod(&format!("p{i:03}")));
    }
    let config = kube::Config::new(format!("http://{address}").parse().expect("a URI"));
    let pods: Objects<Pod> = Objects::all(kube::Client::try_from(config).expect("a client"));
    let mut events = Box::pin(watcher(pods, watcher::Config::default().streaming_lists()));
    let mut count = 0;
    loop {
        match events.try_next().await.expect("no failure").expect("no end") {
            Event::InitApply(_) => count += 1,
            Event::InitDone => break,
            _ => {}
        }
    }
    assert_eq!(count, 300);
    api.load("pods", pod("q"));
    assert!(matches!(events.try_next().await, Ok(Some(Event::Apply(_)))));
    api.set_down(true);
    assert!(events.next().await.expect("no end").is_err(), "the connection breaks");
    stop.cancel();
}

#[tokio::test]
async fn tokens_are_asked_for_where_there_are_any() {
    let tokens = BTreeMap::from([("secret".to_owned(), "jane".to_owned())]);
    let (api, address, stop) = serve(ApiOptions { tokens, ..ApiOptions::default() }).await;
    let answer = http(address, "GET /api/v1/nodes HTTP/1.1", "").await;
    assert!(answer.starts_with("HTTP/1.1 401") && answer.contains(r#""reason":"Unauthorized""#), "{answer}");
    let answer = http(address, "GET /api/v1/nodes HTTP/1.1\r\nauthorization: Bearer secret", "").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(api.log().last().map(|entry| entry.identity.user.clone()).as_deref(), Some("jane"));
    stop.cancel();
}

// ---- kubelets and metrics

#[tokio::test(start_paused = true)]
async fn a_kubelet_reports_what_its_node_and_pods_use() {
    let cluster = cluster().await;
    let summary = read(&cluster.api, &proxy("general-1a-01", "stats/summary")).await.expect("answered");
    let node = &summary["node"];
    assert_eq!(node["nodeName"], "general-1a-01");
    let number = |value: &Value, path: &str| {
        value.pointer(path).and_then(Value::as_i64).unwrap_or_else(|| panic!("no {path} in {value}"))
    };
    let (used, free) = (number(node, "/memory/workingSetBytes"), number(node, "/memory/availableBytes"));
    assert_eq!(used + free, 32 << 30, "available is what the capacity leaves");
    assert!(number(node, "/memory/rssBytes") < used && used < number(node, "/memory/usageBytes"));
    for path in ["/fs", "/runtime/imageFs"] {
        for field in ["availableBytes", "capacityBytes", "usedBytes", "inodesFree", "inodes", "inodesUsed"] {
            assert!(number(node, &format!("{path}/{field}")) > 0);
        }
    }
    assert!(number(node, "/rlimit/curproc") < number(node, "/rlimit/maxpid"));

    let bound = ListParams::default().fields("spec.nodeName=general-1a-01");
    let bound: Vec<Pod> = Objects::all(cluster.api.client()).list(&bound).await.expect("listed").items;
    let pods = summary["pods"].as_array().expect("pods");
    assert_eq!(pods.len(), bound.len());
    for pod in &bound {
        let metadata = &pod.metadata;
        let of = |stats: &&Value| stats["podRef"]["uid"].as_str() == metadata.uid.as_deref();
        let stats = pods.iter().find(of).expect("each pod is there by its uid");
        assert_eq!(stats["podRef"]["name"].as_str(), metadata.name.as_deref());
        assert_eq!(stats["podRef"]["namespace"].as_str(), metadata.namespace.as_deref());
        let memory = number(stats, "/memory/workingSetBytes");
        assert!(memory > number(stats, "/containers/0/memory/workingSetBytes"), "the sandbox counts too");
        assert!(number(stats, "/process_stats/process_count") > 0);
        let layer = number(stats, "/containers/0/rootfs/usedBytes");
        let logs = number(stats, "/containers/0/logs/usedBytes");
        assert!(number(stats, "/ephemeral-storage/usedBytes") >= layer + logs);
    }
    let volumes = pods.iter().flat_map(|pod| pod["volume"].as_array().into_iter().flatten());
    assert!(volumes.clone().any(|volume| volume["name"] == "config" && volume["usedBytes"] == 4096));
    // The limit of the cgroup of all pods is the allocatable memory plus the threshold of hard eviction.
    let system = node["systemContainers"].as_array().expect("system containers");
    let all = system.iter().find(|container| container["name"] == "pods").expect("the cgroup of all pods");
    let sum: i64 = pods.iter().map(|pod| number(pod, "/memory/workingSetBytes")).sum();
    assert_eq!(number(all, "/memory/workingSetBytes"), sum);
    assert_eq!(number(all, "/memory/availableBytes") + sum, (32 << 30) - (1024 << 20));
}

#[tokio::test(start_paused = true)]
async fn a_volume_with_a_claim_names_it_and_is_not_counted_on_the_machine() {
    let cluster = cluster().await;
    let redis: Objects<Pod> = Objects::namespaced(cluster.api.client(), "shop");
    let redis = redis.get("redis-0").await.expect("it runs");
    let node = redis.spec.and_then(|spec| spec.node_name).expect("bound");
    let summary = read(&cluster.api, &proxy(&node, "stats/summary")).await.expect("answered");
    let pods = summary["pods"].as_array().expect("pods");
    let stats = pods.iter().find(|pod| pod["podRef"]["name"] == "redis-0").expect("on its node");
    let volumes = stats["volume"].as_array().expect("volumes");
    let data = volumes.iter().find(|volume| volume["name"] == "data").expect("its claim");
    assert_eq!(data["pvcRef"], json!({"name": "data-redis-0", "namespace": "shop"}));
    assert!(data["usedBytes"].as_i64() > stats["ephemeral-storage"]["usedBytes"].as_i64());
}

#[tokio::test(start_paused = true)]
async fn a_kubelet_shows_its_thresholds_and_reservations() {
    let cluster = cluster().await;
    let config = read(&cluster.api, &proxy("memory-1b-01", "configz")).await.expect("answered");
    let config = &config["kubeletconfig"];
    assert_eq!(config["evictionHard"]["memory.available"], "512Mi");
    assert_eq!(config["evictionHard"]["imagefs.available"], "15%");
    assert_eq!(config["evictionSoft"]["memory.available"], "1536Mi");
    assert_eq!(config["evictionSoftGracePeriod"]["memory.available"], "1m30s");
    assert_eq!(config["evictionMinimumReclaim"]["memory.available"], "512Mi");
    assert_eq!(config["evictionPressureTransitionPeriod"], "5m0s");
    assert_eq!(config["evictionMaxPodGracePeriod"], 30);
    assert_eq!(config["imageGCHighThresholdPercent"], 85);
    assert_eq!(config["enforceNodeAllocatable"], json!(["pods"]));
    // The memory that is not allocatable is the sum of systemReserved, kubeReserved and the threshold of hard eviction.
    let reserved = json!([config["systemReserved"]["memory"], config["kubeReserved"]["memory"]]);
    assert_eq!(reserved, json!(["512Mi", "512Mi"]));
    let node = read(&cluster.api, "/api/v1/nodes/memory-1b-01").await.expect("a node");
    let kib = |list: &str| {
        let text = node["status"][list]["memory"].as_str().and_then(|text| text.strip_suffix("Ki"));
        text.and_then(|text| text.parse::<i64>().ok()).expect("a quantity")
    };
    assert_eq!(kib("capacity") - kib("allocatable"), 1536 * 1024);
}

#[tokio::test(start_paused = true)]
async fn a_pressure_is_seen_in_the_summary_around_its_soft_threshold() {
    let cluster = cluster().await;
    let free = async |path: &str| {
        let summary = read(&cluster.api, &proxy("general-1b-01", "stats/summary")).await.expect("answered");
        summary.pointer(path).and_then(Value::as_i64).expect("a number") >> 20
    };
    assert!(free("/node/memory/availableBytes").await > 20_000);
    let pressure = NodeFault::Pressure("MemoryPressure", PressureLevel::High);
    cluster.world.inject("general-1b-01", pressure).await;
    cluster.clock.sleep(Span::from_secs(1)).await;
    let (mut below, mut longest) = (0, 0);
    for _ in 0..40 {
        let free = free("/node/memory/availableBytes").await;
        assert!((1400..1700).contains(&free), "{free} MiB");
        below = if free < 1536 { below + 10 } else { 0 };
        longest = longest.max(below);
        cluster.clock.sleep(Span::from_secs(10)).await;
    }
    assert!((40..90).contains(&longest), "{longest} s below the threshold, whose grace period is 90 s");
}

#[tokio::test(start_paused = true)]
async fn a_kubelet_that_cannot_be_reached_or_asked_gives_the_errors_of_a_real_cluster() {
    let cluster = cluster().await;
    let missing = read(&cluster.api, &proxy("general-9z-01", "configz")).await.expect_err("no such node");
    assert_eq!((missing.code, missing.message.as_str()), (404, "nodes \"general-9z-01\" not found"));
    let path = read_raw(&cluster.api, &proxy("general-1a-01", "colours")).await.expect_err("no such path");
    assert!(path.to_string().contains("404 page not found"), "{path}");
    read(&cluster.api, &proxy("https:general-1a-01:10250", "configz")).await.expect("by scheme and port");

    cluster.api.inject(Fault::always(FaultAnswer::Forbidden).of_user("jane").on(&[], "nodes/proxy"));
    let jane = cluster.api.client_as("jane");
    let read_as_jane = request("GET", &proxy("general-1a-01", "configz"), "application/json", &json!({}));
    let Err(kube::Error::Api(refused)) = jane.request::<Value>(read_as_jane).await else {
        panic!("not refused")
    };
    let why = "User \"jane\" cannot get resource \"nodes/proxy\" in API group \"\" at the cluster scope";
    assert_eq!((refused.code, refused.message.contains(why)), (403, true), "{}", refused.message);
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "get", "resource": "nodes", "subresource": "proxy"}}});
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let answer: Value =
        jane.request(request("POST", reviews, "application/json", &review)).await.expect("answered");
    assert_eq!(answer["status"]["allowed"], false);

    cluster.world.inject("general-1a-01", NodeFault::Disconnect).await;
    cluster.clock.sleep(Span::from_secs(30)).await;
    let lost = read(&cluster.api, &proxy("general-1a-01", "configz")).await.expect_err("unreachable");
    assert_eq!((lost.code, lost.reason.as_str()), (503, "ServiceUnavailable"));
    assert!(lost.message.starts_with("error trying to reach service: dial tcp 10.1.0."), "{}", lost.message);
    let metrics: Value = read(&cluster.api, METRICS).await.expect("listed");
    let items = metrics["items"].as_array().expect("items");
    assert_eq!(items.len(), 23, "a node that cannot be read has no metrics");
}

#[tokio::test(start_paused = true)]
async fn the_metrics_server_serves_what_kubectl_top_reads() {
    let cluster = cluster().await;
    let api = &cluster.api;
    let groups = api.client().list_api_groups().await.expect("listed").groups;
    let group = groups.iter().find(|group| group.name == "metrics.k8s.io").expect("in discovery");
    assert_eq!(group.versions[0].group_version, "metrics.k8s.io/v1beta1");
    let resources = api.client().list_api_group_resources("metrics.k8s.io/v1beta1").await.expect("listed");
    let named: Vec<_> = resources.resources.iter().map(|r| (r.name.as_str(), r.kind.as_str())).collect();
    assert_eq!(named, [("nodes", "NodeMetrics"), ("pods", "PodMetrics")]);

    let nodes = read(api, METRICS).await.expect("listed");
    assert_eq!(
        (&nodes["kind"], &nodes["apiVersion"]),
        (&json!("NodeMetricsList"), &json!("metrics.k8s.io/v1beta1"))
    );
    assert_eq!(nodes["items"].as_array().map(Vec::len), Some(24));
    let node = read(api, &format!("{METRICS}/general-1a-01")).await.expect("one");
    assert_eq!(node["kind"], "NodeMetrics");
    let kib = |usage: &Value| {
        let text = usage["memory"].as_str().and_then(|text| text.strip_suffix("Ki"));
        text.and_then(|text| text.parse::<i64>().ok()).expect("KiB")
    };
    let used = kib(&node["usage"]);
    assert!((900_000..8_000_000).contains(&used), "{used} KiB");
    assert!(node["usage"]["cpu"].as_str().is_some_and(|cpu| cpu.ends_with('n')));
    assert!(node["window"].is_string() && node["timestamp"].is_string());

    let all = "/apis/metrics.k8s.io/v1beta1/pods";
    let pods = read(api, all).await.expect("listed");
    assert_eq!(
        (&pods["kind"], pods["items"].as_array().map(Vec::len)),
        (&json!("PodMetricsList"), Some(180))
    );
    let shop = "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods";
    let pod = read(api, &format!("{shop}/redis-0")).await.expect("one");
    assert_eq!(pod["containers"][0]["name"], "app");
    assert!((300 << 10..1 << 20).contains(&kib(&pod["containers"][0]["usage"])), "below its request: {pod}");
    let redis =
        read(api, &format!("{shop}?labelSelector=app.kubernetes.io%2Fname%3Dredis")).await.expect("some");
    assert_eq!(redis["items"].as_array().map(Vec::len), Some(3));
    let missing = read(api, &format!("{shop}/redis-9")).await.expect_err("none");
    assert_eq!((missing.code, missing.message.as_str()), (404, "pods.metrics.k8s.io \"redis-9\" not found"));
    let patch = merge(api, &format!("{shop}/redis-0"), &json!({})).await.expect_err("read only");
    assert_eq!(patch.code, 405);

    let alone = server();
    assert_eq!(read(&alone, METRICS).await.expect_err("no metrics server").code, 404);
    let groups = alone.client().list_api_groups().await.expect("listed").groups;
    assert!(groups.iter().all(|group| group.name != "metrics.k8s.io"));
}

// ---- helpers

const PODS: &str = "/api/v1/namespaces/default/pods";

type Events = Pin<Box<dyn Stream<Item = watcher::Result<Event<Pod>>> + Send>>;

const METRICS: &str = "/apis/metrics.k8s.io/v1beta1/nodes";

fn proxy(node: &str, path: &str) -> String {
    format!("/api/v1/nodes/{node}/proxy/{path}")
}

/// A server with kubelets that have run for half a minute.
struct Cluster {
    api: Api,
    world: World,
    clock: Clock,
    _stop: DropGuard,
}

async fn cluster() -> Cluster {
    let clock = Clock::new(Timestamp::from_secs(1_800_000_000), 1.0);
    let api = Api::new(clock, ApiOptions::default());
    let stop = CancellationToken::new();
    let healthy = Scenario::named("healthy").expect("a scenario");
    let options = WorldOptions { scenario: healthy, ..WorldOptions::default() };
    let world = World::start(&api, clock, &options, stop.clone());
    clock.sleep(Span::from_secs(31)).await;
    Cluster { api, world, clock, _stop: stop.drop_guard() }
}

fn server() -> Api {
    server_with(ApiOptions::default())
}

fn server_with(options: ApiOptions) -> Api {
    Api::new(Clock::new(Timestamp::from_secs(1_800_000_000), 1.0), options)
}

async fn serve(options: ApiOptions) -> (Api, SocketAddr, CancellationToken) {
    let api = server_with(options);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let (address, stop) = (listener.local_addr().expect("bound"), CancellationToken::new());
    let (server, until) = (api.clone(), stop.clone());
    tokio::spawn(async move { server.serve(listener, until).await });
    (api, address, stop)
}

/// Sends one request over a new connection. Returns the whole response as text.
async fn http(address: SocketAddr, head: &str, body: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(address).await.expect("connected");
    let length = body.len();
    let text = format!("{head}\r\nhost: demo\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}");
    stream.write_all(text.as_bytes()).await.expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("read");
    answer
}

fn follow(api: &Api, config: watcher::Config) -> Events {
    Box::pin(watcher(Objects::<Pod>::all(api.client()), config).default_backoff())
}

/// Returns the names in a watcher's first list.
async fn initial(events: &mut Events) -> Vec<String> {
    let mut seen = Vec::new();
    loop {
        match events.try_next().await.expect("no failure").expect("no end") {
            Event::Init => {}
            Event::InitApply(pod) => seen.extend(pod.metadata.name),
            Event::InitDone => return seen,
            other => panic!("{other:?} within the list"),
        }
    }
}

async fn next(events: &mut Events) -> (&'static str, String) {
    match events.try_next().await.expect("no failure").expect("no end") {
        Event::Apply(pod) => ("apply", pod.metadata.name.unwrap_or_default()),
        Event::Delete(pod) => ("delete", pod.metadata.name.unwrap_or_default()),
        other => panic!("{other:?}"),
    }
}

fn request(method: &str, path: &str, media: &str, body: &Value) -> http::Request<Vec<u8>> {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = http::Request::builder().method(method).uri(path).header("content-type", media);
    request.body(body).expect("a request")
}

async fn send(api: &Api, method: &str, path: &str, media: &str, body: &Value) -> Result<Value, Box<Status>> {
    match api.client().request(request(method, path, media, body)).await {
        Ok(value) => Ok(value),
        Err(kube::Error::Api(status)) => Err(status),
        Err(other) => panic!("{method} {path}: {other}"),
    }
}

async fn read_raw(api: &Api, path: &str) -> kube::Result<Value> {
    api.client().request(request("GET", path, "application/json", &Value::Null)).await
}

async fn read(api: &Api, path: &str) -> Result<Value, Box<Status>> {
    send(api, "GET", path, "application/json", &Value::Null).await
}

async fn post(api: &Api, path: &str, body: &Value) -> Result<Value, Box<Status>> {
    send(api, "POST", path, "application/json", body).await
}

async fn merge(api: &Api, path: &str, patch: &Value) -> Result<Value, Box<Status>> {
    send(api, "PATCH", path, "application/merge-patch+json", patch).await
}

async fn strategic(api: &Api, path: &str, patch: &Value) -> Result<Value, Box<Status>> {
    send(api, "PATCH", path, "application/strategic-merge-patch+json", patch).await
}

async fn evict(api: &Api, pod: &str) -> Result<(), Box<Status>> {
    let body = json!({"apiVersion": "policy/v1", "kind": "Eviction",
        "metadata": {"name": pod, "namespace": "default"}});
    let answer = post(api, &format!("{PODS}/{pod}/eviction"), &body).await?;
    assert_eq!((&answer["kind"], &answer["status"]), (&json!("Status"), &json!("Success")));
    Ok(())
}

fn at(pod: &Pod) -> i64 {
    pod.metadata.deletion_timestamp.as_ref().map_or(0, |time| time.0.as_second())
}

fn names(pods: &[Pod]) -> Vec<&str> {
    pods.iter().filter_map(|pod| pod.metadata.name.as_deref()).collect()
}

fn node(name: &str) -> Node {
    let labels = BTreeMap::from([("kubernetes.io/hostname".to_owned(), name.to_owned())]);
    let metadata =
        kube::api::ObjectMeta { name: Some(name.into()), labels: Some(labels), ..Default::default() };
    Node { metadata, ..Default::default() }
}

/// A pod as a client creates it, without status.
fn bare_pod(name: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"app": "a"}},
        "spec": {"containers": [{"name": "main", "image": "demo/a:1"}]}})
}

/// A running, ready pod on node n1.
fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "default", "labels": {"app": "a"}},
        "spec": {"nodeName": "n1", "terminationGracePeriodSeconds": 30,
            "containers": [{"name": "main", "image": "demo/a:1"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}})
}

/// A budget that selects the pods made by [`pod`].
fn budget(name: &str, allowed: i64, desired: i64, healthy: i64) -> Value {
    json!({"metadata": {"name": name, "namespace": "default", "generation": 1},
        "spec": {"minAvailable": desired, "selector": {"matchLabels": {"app": "a"}}},
        "status": {"observedGeneration": 1, "disruptionsAllowed": allowed, "desiredHealthy": desired,
            "currentHealthy": healthy, "expectedPods": desired}})
}

fn deployment(name: &str, replicas: i64) -> Value {
    json!({"metadata": {"name": name}, "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "main", "image": "demo/web:1"}]}}}})
}
