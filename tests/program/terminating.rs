//! Pods that leave or stay on nodes that are not Ready. Checks what is reported about them before and after their
//! deletion has started, and that all commands give the same count of pods that have nowhere to run.

use serde_json::{Value, json};

use super::{
    case_objects::{DONE, Objects},
    small_clusters::{NOW, add_deployment, add_volume, budget, cluster, lose, unready, unscheduled},
};

/// Time at which n1 was lost. Its pods were evicted at [`EVICTED`].
const LOST: &str = "2026-11-29T14:54:00Z";
const EVICTED: &str = "2026-11-29T14:59:00Z";

/// n1 is down. The pods of `api` on it have been evicted, and nothing has been created in their place yet.
fn evicted(pods: usize) -> Objects {
    let mut objects = cluster("2026-11-29T14:53:00Z");
    add_deployment(&mut objects, "api", &vec!["n1"; pods], budget("api"));
    lose(&mut objects, "n1", LOST);
    for number in 0..pods {
        let name = format!("api-1-{number}");
        unready(&mut objects, &name);
        let pod = objects.named("Pod", &name);
        pod["metadata"]["deletionTimestamp"] = "2026-11-29T14:59:30Z".into();
        pod["metadata"]["deletionGracePeriodSeconds"] = 30.into();
        let target = json!({
            "type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager", "lastTransitionTime": EVICTED,
        });
        pod["status"]["conditions"].as_array_mut().expect("conditions").push(target);
    }
    objects
}

/// Adds a Ready replacement of api-1-0, on n2.
fn add_replacement(objects: &mut Objects) {
    let mut new = objects.named("Pod", "api-1-0").clone();
    new["metadata"] = json!({
        "name": "api-1-new", "namespace": "shop", "uid": "api-1-new", "creationTimestamp": EVICTED,
        "labels": new["metadata"]["labels"], "ownerReferences": new["metadata"]["ownerReferences"],
    });
    new["spec"]["nodeName"] = "n2".into();
    new["status"]["conditions"] = json!([{"type": "Ready", "status": "True", "lastTransitionTime": EVICTED}]);
    objects.0.push(new);
}

/// `stuck` is an outcome. A pod that is replaced does not have it, however long its deletion takes.
#[tokio::test]
async fn a_replaced_pod_whose_kubelet_is_down_is_overdue_and_not_stuck() {
    let mut objects = evicted(1);
    add_replacement(&mut objects);
    for command in ["evictions", "pods n1", "status"] {
        let table = objects.table(command).await;
        assert!(table.contains("30s overdue") && !table.contains("stuck"), "{command}: {table}");
    }
    let why = objects.table("why pod -n shop api-1-0").await;
    assert!(why.contains("its grace period is over, and its kubelet is down"), "{why}");
    assert!(!why.contains("stuck"), "{why}");
}

/// Tables say what becomes of a pod, not only where its replacement lands.
#[tokio::test]
async fn the_table_of_the_forecast_names_the_outcome_of_a_replaced_pod() {
    let mut objects = evicted(1);
    add_replacement(&mut objects);
    let table = objects.table("forecast").await;
    assert!(table.contains("1 pod of a lost node is terminating: 1 replaced"), "{table}");
    let row = table.lines().find(|line| line.starts_with("shop/api-1-0 ")).expect("a row");
    assert!(row.ends_with("replaced; old pod hangs until its kubelet is back"), "{table}");
}

/// The pod garbage collector removes the terminating pods of a node out of service in its next pass, every 20 s
/// (kubernetes 1.37.1 `pkg/controller/podgc/gc_controller.go`, `gcTerminating`).
#[tokio::test]
async fn a_terminating_pod_of_a_node_out_of_service_is_about_to_be_removed() {
    let mut objects = evicted(1);
    let taint = json!({"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute", "timeAdded": NOW});
    objects.named("Node", "n1")["spec"]["taints"].as_array_mut().expect("taints").push(taint);
    let evictions = objects.answer("evictions", DONE).await;
    let row = &evictions["evictions"][0];
    let left = row["inSeconds"].as_f64().expect("a time");
    assert!(left > 0.0 && left <= 20.0, "{row:#}");
    assert_eq!((&row["state"], &row["certainty"]), (&json!("terminating"), &json!("estimated")));
    let text = objects.answer("status", DONE).await["verdict"]["text"].to_string();
    assert!(text.contains("1 pod of n1 is removed by force in "), "{text}");
    let node = objects.answer("why node n1", DONE).await;
    assert!(node["steps"].to_string().contains("1 pod is removed by force"), "{:#}", node["steps"]);
    let wait = node["actions"][0]["text"].to_string();
    assert!(wait.contains("but not out-of-service: remove that taint yourself"), "{wait}");
    let plan = objects.answer("plan drain n1", DONE).await;
    assert!(
        !plan["warnings"].to_string().contains("pods deleted there stay Terminating"),
        "{:#}",
        plan["warnings"]
    );
}

/// The volume of a pod is detached when the pod is gone from a node out of service, and 6 min after that from a node
/// that is deleted (kubernetes 1.37.1 `pkg/controller/volume/attachdetach/reconciler/reconciler.go`). Then the
/// replacement starts, which was created when the deletion of the pod started.
#[tokio::test]
async fn the_replacement_that_waits_for_a_volume_starts_once_the_volume_is_detached() {
    let mut objects = evicted(1);
    add_volume(&mut objects, "data", "kubernetes.io/hostname", "n2");
    let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    let old = objects.named("Pod", "api-1-0");
    old["spec"]["volumes"] = volumes;
    let mut new = old.clone();
    new["metadata"] = json!({
        "name": "api-1-new", "namespace": "shop", "uid": "api-1-new", "creationTimestamp": EVICTED,
        "labels": new["metadata"]["labels"], "ownerReferences": new["metadata"]["ownerReferences"],
    });
    new["spec"]["nodeName"] = "n2".into();
    new["status"] = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]});
    objects.0.push(new);
    let taint = "plan taint nodes n1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute";
    for (command, times) in [(taint, 12.0..60.0), ("plan delete node n1", 412.0..460.0)] {
        let plan = objects.answer(command, DONE).await;
        let pod = &plan["pods"][0];
        let ready = pod["readyAgainInSeconds"].as_f64().expect("a time");
        assert!(times.contains(&ready), "{command}: {pod:#}");
        assert_eq!(pod["outcome"], "replaced");
        let text = pod["text"].to_string();
        assert!(text.contains("shop/api-1-new on n2 starts once it gets the volume"), "{text}");
    }
}

/// Adds a quota with this limit of pods, and this number of used pods in its status. The quota also counts the three
/// pods of `web`.
fn quota(objects: &mut Objects, hard: usize, used: usize) {
    let amount = |pods: usize| json!({"pods": pods.to_string()});
    objects.0.push(json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team", "namespace": "shop", "uid": "team"},
        "spec": {"hard": amount(hard)}, "status": {"hard": amount(hard), "used": amount(used)},
    }));
}

async fn outcomes(objects: &Objects) -> Vec<(String, Value)> {
    let evictions = objects.answer("evictions", DONE).await;
    let rows = evictions["evictions"].as_array().expect("rows").iter();
    rows.map(|row| (row["pod"].as_str().expect("a name").to_owned(), row["outcome"].clone())).collect()
}

/// Asserts how many pods have nowhere to run now: `status` and `forecast` have to report the given numbers.
async fn assert_nowhere(objects: &Objects, pending: usize, others: usize) -> String {
    let status = objects.answer("status", DONE).await;
    let verdict = &status["verdict"];
    assert_eq!(
        (&verdict["nowhereNow"], &verdict["nowherePredicted"]),
        (&json!(pending + others), &json!(0)),
        "{verdict:#}"
    );
    let forecast = objects.answer("forecast", DONE).await;
    assert_eq!(forecast["totals"]["nowhere"], others, "{:#}", forecast["totals"]);
    verdict["text"].as_str().expect("a text").to_owned()
}

/// The ReplicaSet controller retries to create a pod that a quota has refused. A quota counts a terminating pod for up
/// to twice its grace period (kubernetes 1.37.1 `pkg/quota/v1/evaluator/core/pods.go`, `QuotaV1Pod`).
#[tokio::test]
async fn a_pod_whose_replacement_a_quota_refuses_is_not_replaced() {
    let mut full = evicted(1);
    quota(&mut full, 3, 4);
    assert_eq!(outcomes(&full).await, [("api-1-0".to_owned(), json!("refused"))]);
    let text = assert_nowhere(&full, 0, 1).await;
    assert!(!text.contains("replaced"), "{text}");

    let mut full_until_it_is_gone = evicted(1);
    quota(&mut full_until_it_is_gone, 4, 4);
    assert_eq!(
        outcomes(&full_until_it_is_gone).await,
        [("api-1-0".to_owned(), json!("replacedWhenGone"))],
        "three pods of web and its replacement are four"
    );
    assert_nowhere(&full_until_it_is_gone, 0, 0).await;
}

/// The verdict names the outcomes of pods that have nowhere to run with the words of the evictions.
#[tokio::test]
async fn the_verdict_names_why_pods_have_nowhere_to_run() {
    let mut objects = evicted(1);
    quota(&mut objects, 3, 4);
    let mut waiting = objects.named("Pod", "web-1-0").clone();
    waiting["metadata"] = json!({
        "name": "waits", "namespace": "shop", "uid": "waits", "creationTimestamp": EVICTED,
    });
    waiting["spec"].as_object_mut().expect("a spec").remove("nodeName");
    waiting["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "5".into();
    waiting["status"] = unscheduled();
    objects.0.push(waiting);
    let text = assert_nowhere(&objects, 1, 1).await;
    assert!(text.contains("1 Pending") && text.contains(", 1 refused by quota"), "{text}");
}

/// If only one of two replacements exists, it counts as the replacement of the pod that was deleted first.
#[tokio::test]
async fn of_two_pods_the_replacement_of_the_last_deleted_is_missing() {
    let mut objects = evicted(2);
    objects.named("Pod", "api-1-1")["metadata"]["deletionTimestamp"] = "2026-11-29T14:59:40Z".into();
    add_replacement(&mut objects);
    quota(&mut objects, 4, 6);
    let of = |pod: &str, outcome: &str| (pod.to_owned(), json!(outcome));
    assert_eq!(outcomes(&objects).await, [of("api-1-0", "replaced"), of("api-1-1", "refused")]);
    assert_nowhere(&objects, 0, 1).await;
    let forecast = objects.answer("forecast", DONE).await;
    let rows = forecast["replacements"].as_array().expect("rows").iter();
    let landings: Vec<_> = rows.map(|row| (row["pod"].as_str(), row["landing"].as_str())).collect();
    let expected = [(Some("api-1-0"), Some("replaced")), (Some("api-1-1"), Some("waiting"))];
    assert_eq!(landings, expected, "both have been evicted: {forecast:#}");
    let totals = &forecast["totals"];
    let counts = ["replaced", "waiting", "notEvicted", "pods"].map(|field| totals[field].as_u64());
    assert_eq!(counts, [1, 1, 0, 2].map(Some), "{totals:#}");
}

/// A Pending replacement counts as a Pending pod. The old pod is not counted in addition.
#[tokio::test]
async fn a_pod_whose_replacement_is_pending_is_counted_once() {
    let mut objects = evicted(2);
    for number in 0..2 {
        let mut new = objects.named("Pod", "api-1-0").clone();
        let name = format!("api-1-new{number}");
        new["metadata"] = json!({
            "name": name, "namespace": "shop", "uid": name, "creationTimestamp": EVICTED,
            "labels": new["metadata"]["labels"], "ownerReferences": new["metadata"]["ownerReferences"],
        });
        new["spec"].as_object_mut().expect("a spec").remove("nodeName");
        new["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "5".into();
        new["status"] = unscheduled();
        objects.0.push(new);
    }
    let text = assert_nowhere(&objects, 2, 0).await;
    assert!(text.contains("2 pods Pending") && !text.contains("replaced"), "{text}");
}

/// If a kubelet reports that its node is not Ready, the kubelet is running, and so are the pods that tolerate the taint
/// (kubernetes 1.37.1 `pkg/controller/tainteviction/taint_eviction.go`, `processPodOnNode`).
#[tokio::test]
async fn a_pod_that_nothing_evicts_from_a_node_with_a_kubelet_stays() {
    let mut objects = cluster(NOW);
    add_deployment(&mut objects, "pinned", &["n1"], budget("pinned"));
    lose(&mut objects, "n1", LOST);
    let node = objects.named("Node", "n1");
    node["status"]["conditions"][0]["status"] = "False".into();
    for taint in node["spec"]["taints"].as_array_mut().expect("taints") {
        taint["key"] = "node.kubernetes.io/not-ready".into();
    }
    unready(&mut objects, "pinned-1-0");
    let tolerations = json!([{"operator": "Exists", "effect": "NoExecute"}]);
    objects.named("Pod", "pinned-1-0")["spec"]["tolerations"] = tolerations;
    assert_eq!(outcomes(&objects).await, [("pinned-1-0".to_owned(), json!("stays"))]);
    assert_nowhere(&objects, 0, 0).await;
}

/// kubernetes 1.37.1 `pkg/scheduler/framework/plugins/defaultpreemption`: the replacement of a pod of high priority is
/// placed on the node with the fewest victims.
#[tokio::test]
async fn a_pod_that_an_eviction_will_preempt_is_told_so() {
    let mut objects = cluster("2026-11-29T14:57:00Z");
    add_deployment(&mut objects, "api", &["n1"], budget("api"));
    lose(&mut objects, "n1", "2026-11-29T14:58:00Z");
    objects.named("ReplicaSet", "api-1")["spec"]["template"]["spec"]["priority"] = 1000.into();
    objects.named("ReplicaSet", "api-1")["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]
        ["cpu"] = "4".into();
    objects.named("Pod", "api-1-0")["spec"]["priority"] = 1000.into();
    let said = |why: &Value| {
        let steps = why["steps"].as_array().expect("steps").iter();
        steps.filter_map(|step| step["text"].as_str()).map(str::to_owned).collect::<Vec<_>>()
    };
    let victim = said(&objects.answer("why pod -n shop web-1-1 --placement", DONE).await);
    let text =
        "preempted on n2 for the replacement of shop/api-1-0; its replacement: n3 (the only feasible node)";
    assert!(victim.iter().any(|step| step == text), "{victim:#?}");
    let other = said(&objects.answer("why pod -n shop web-1-0 --placement", DONE).await);
    assert!(!other.iter().any(|step| step.contains("preempted")), "{other:#?}");
}
