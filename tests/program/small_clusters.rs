//! Small clusters, with expected answers that follow from the source of Kubernetes: nodes that are silent, down or
//! back, admission, resizes, and unknown owners.

use serde_json::{Value, json};

use super::case_objects::{BLOCKED, DONE, Objects, STALLS, verdict};
use crate::common::program::Shell;

/// Newest time in the objects. The clock has this time.
pub const NOW: &str = "2026-11-29T15:00:00Z";
const BEFORE: &str = "2026-11-28T15:00:00Z";

/// Adds a Ready node with 4 CPU whose Lease was renewed at this time.
pub fn add_node(objects: &mut Objects, name: &str, renewed: &str) {
    let condition = json!({
        "type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": BEFORE, "lastTransitionTime": BEFORE,
    });
    objects.0.push(json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "uid": name, "creationTimestamp": BEFORE, "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": {
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
            "conditions": [condition],
            "nodeInfo": {"kubeletVersion": "v1.37.1"},
        },
    }));
    objects.0.push(json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": name, "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": renewed},
    }));
}

/// Makes a node Unknown since this time, with the taints that the controller adds.
pub fn lose(objects: &mut Objects, node: &str, since: &str) {
    let lost = objects.named("Node", node);
    let ready = &mut lost["status"]["conditions"][0];
    (ready["status"], ready["lastTransitionTime"]) = ("Unknown".into(), since.into());
    let taint =
        |effect: &str| json!({"key": "node.kubernetes.io/unreachable", "effect": effect, "timeAdded": since});
    lost["spec"]["taints"] = json!([taint("NoSchedule"), taint("NoExecute")]);
}

/// Adds a Deployment with a pod on each of these nodes, and a budget with this spec. Each pod requests 1 CPU.
pub fn add_deployment(objects: &mut Objects, name: &str, on: &[&str], budget: Value) {
    let labels = json!({"app": name, "pod-template-hash": "1"});
    let spec = json!({
        "containers": [{"name": "app", "image": "app:1", "resources": {"requests": {"cpu": "1"}}}],
        "terminationGracePeriodSeconds": 30,
    });
    let of = |kind: &str, owner: &str| json!([{"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": owner, "controller": true}]);
    let set = format!("{name}-1");
    let template = json!({"metadata": {"labels": labels}, "spec": spec});
    let workload = |kind: &str, name: &str, owners: Value| {
        json!({
            "apiVersion": "apps/v1", "kind": kind,
            "metadata": {"name": name, "namespace": "shop", "uid": name, "ownerReferences": owners},
            "spec": {"replicas": on.len(), "selector": {"matchLabels": labels}, "template": template},
        })
    };
    objects.0.push(workload("Deployment", name, json!([])));
    objects.0.push(workload("ReplicaSet", &set, of("Deployment", name)));
    for (number, node) in on.iter().enumerate() {
        let mut spec = spec.clone();
        spec["nodeName"] = (*node).into();
        spec["tolerations"] = json!([{
            "key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300,
        }]);
        let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-28T15:00:08Z"});
        objects.0.push(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": format!("{set}-{number}"), "namespace": "shop", "uid": format!("{set}-{number}"), "labels": labels,
                "creationTimestamp": BEFORE, "ownerReferences": of("ReplicaSet", &set),
            },
            "spec": spec,
            "status": {"phase": "Running", "conditions": [ready]},
        }));
    }
    let status = json!({
        "observedGeneration": 1, "expectedPods": on.len(), "desiredHealthy": on.len() - 1, "currentHealthy": on.len(),
        "disruptionsAllowed": 1,
    });
    objects.0.push(json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "shop", "uid": name, "generation": 1},
        "spec": budget, "status": status,
    }));
}

pub fn budget(name: &str) -> Value {
    json!({"maxUnavailable": 1, "selector": {"matchLabels": {"app": name}}})
}

/// A budget that allows every disruption.
fn free_budget(name: &str) -> Value {
    json!({"minAvailable": 0, "selector": {"matchLabels": {"app": name}}})
}

/// Makes a pod not Ready.
pub fn unready(objects: &mut Objects, pod: &str) {
    objects.named("Pod", pod)["status"]["conditions"][0]["status"] = "False".into();
}

/// Makes a pod tolerate the taint of unreachable nodes without a time limit.
fn tolerate_forever(objects: &mut Objects, pod: &str) {
    let toleration = objects.named("Pod", pod)["spec"]["tolerations"][0].as_object_mut();
    toleration.expect("a toleration").remove("tolerationSeconds");
}

/// Makes a budget allow no disruption, because only this many of its pods are healthy.
fn exhaust(objects: &mut Objects, budget: &str, healthy: usize) {
    let status = &mut objects.named("PodDisruptionBudget", budget)["status"];
    (status["currentHealthy"], status["disruptionsAllowed"]) = (healthy.into(), 0.into());
}

/// Makes the budget of web, which has three pods, require all of them.
fn forbid_evictions_of_web(objects: &mut Objects) {
    let web = objects.named("PodDisruptionBudget", "web");
    web["spec"] = json!({"minAvailable": 3, "selector": {"matchLabels": {"app": "web"}}});
    (web["status"]["desiredHealthy"], web["status"]["disruptionsAllowed"]) = (3.into(), 0.into());
}

/// Removes the NoExecute taint of a node, which evicts its pods.
fn without_no_execute(objects: &mut Objects, node: &str) {
    let taints = objects.named("Node", node)["spec"]["taints"].as_array_mut().expect("taints");
    taints.retain(|taint| taint["effect"] == "NoSchedule");
}

/// Cordons a node as a drain of kordon does at this time, and adds the claim of the drain.
pub fn claim_for_drain(objects: &mut Objects, node: &str, at: &str, claim: &Value) {
    let cordon = json!({"by": "ann", "at": at, "why": "disk", "operation": "drain-1"});
    let node = objects.named("Node", node);
    node["spec"]["unschedulable"] = true.into();
    node["metadata"]["annotations"] =
        json!({"kordon.dev/cordon": cordon.to_string(), "kordon.dev/drain": claim.to_string()});
}

/// Sets the clock, by an object that has no other use.
fn set_clock(objects: &mut Objects, now: &str) {
    objects.0.push(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "now", "namespace": "shop", "creationTimestamp": now},
    }));
}

/// The status of a pod that fits no node.
pub fn unscheduled() -> Value {
    json!({"phase": "Pending", "conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": NOW,
    }]})
}

/// Adds a volume that only nodes with this label can use, and its claim, which has the same name.
pub fn add_volume(objects: &mut Objects, name: &str, label: &str, value: &str) {
    let reached = json!({"required": {"nodeSelectorTerms": [{
        "matchExpressions": [{"key": label, "operator": "In", "values": [value]}],
    }]}});
    objects.0.push(json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name, "uid": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "nodeAffinity": reached, "claimRef": {"namespace": "shop", "name": name},
            "csi": {"driver": "example.com", "volumeHandle": name}},
        "status": {"phase": "Bound"},
    }));
    objects.0.push(json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "shop", "uid": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "volumeName": name}, "status": {"phase": "Bound"},
    }));
}

fn namespace(labels: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": labels}, "status": {"phase": "Active"},
    })
}

/// Three nodes, and a Deployment web with two pods on n3 and one pod on n2, so that n1 is empty. The Lease of n1 was
/// renewed at this time.
pub fn cluster(renewed: &str) -> Objects {
    let mut objects = Objects(vec![namespace(&json!({}))]);
    for (node, renewed) in [("n1", renewed), ("n2", NOW), ("n3", NOW)] {
        add_node(&mut objects, node, renewed);
    }
    add_deployment(&mut objects, "web", &["n3", "n2", "n3"], budget("web"));
    objects
}

fn pod<'a>(plan: &'a Value, name: &str) -> &'a Value {
    pod_in(&plan["pods"], name)
}

fn pod_in<'a>(list: &'a Value, name: &str) -> &'a Value {
    list.as_array().expect("a list").iter().find(|pod| pod["pod"] == name).expect("a row")
}

/// The actions that `kordon why` names.
fn actions(why: &Value) -> Vec<&Value> {
    why["actions"].as_array().expect("actions").iter().map(|action| &action["action"]).collect()
}

/// Every command says the same time at which the replacement of an evicted pod is Ready.
#[tokio::test]
async fn evictions_say_when_a_replacement_is_ready_as_the_forecast_does() {
    let mut objects = cluster("2026-11-29T14:00:00Z");
    add_deployment(&mut objects, "moved", &["n1"], free_budget("moved"));
    lose(&mut objects, "n1", "2026-11-29T14:58:00Z");
    let forecast = objects.answer("forecast", DONE).await;
    // The commands are run one after the other, so the times are compared from the eviction on.
    let takes = |row: &Value| {
        row["readyInSeconds"].as_f64().expect("a time") - row["inSeconds"].as_f64().expect("a time")
    };
    let expected = takes(pod_in(&forecast["replacements"], "moved-1-0"));
    assert!(expected > 0.0, "after its eviction: {forecast:#}");
    for command in ["evictions", "status"] {
        let report = objects.answer(command, DONE).await;
        let row = pod_in(&report["evictions"], "moved-1-0");
        assert_eq!(row["outcome"], "moves", "{command}");
        assert!((takes(row) - expected).abs() < 0.01, "{command}: {} instead of {expected}", takes(row));
    }
}

/// The scheduler still binds pods to a node whose Lease was renewed 40 s ago: the node has no taint before its grace
/// period of 50 s is over (kubernetes 1.37.1 `pkg/controller/nodelifecycle/node_lifecycle_controller.go`,
/// `monitorNodeHealth`). Its kubelet starts no pods.
#[tokio::test]
async fn a_replacement_on_a_silent_node_is_not_counted_on() {
    let plan = cluster("2026-11-29T14:59:20Z").answer("plan drain n3", STALLS).await;
    let first = pod(&plan, "web-1-0");
    assert_eq!(
        (&first["outcome"], &first["readyAgainInSeconds"]),
        (&json!("stuck"), &Value::Null),
        "{first:#}"
    );
    assert!(first["outcomeText"].as_str().expect("a text").contains("n1"), "{first:#}");
    assert_eq!(pod(&plan, "web-1-2")["verdict"], "waits", "the budget does not regain a pod");

    let heard = cluster(NOW).answer("plan drain n3", DONE).await;
    assert_eq!(pod(&heard, "web-1-0")["outcome"], "moves");
    assert_eq!(pod(&heard, "web-1-0")["landingNode"], "n1");
}

/// The node is Ready until its grace period of 50 s is over, but nobody ends its pods.
#[tokio::test]
async fn nothing_is_promised_of_pods_on_a_silent_node() {
    let mut objects = cluster(NOW);
    objects.named("Lease", "n3")["spec"]["renewTime"] = "2026-11-29T14:59:20Z".into();
    for command in ["plan drain n3", "plan evict pod web-1-0 -n shop"] {
        let plan = objects.answer(command, STALLS).await;
        let row = pod(&plan, "web-1-0");
        assert_eq!(row["deleted"]["likelySeconds"], Value::Null, "{command}: {row:#}");
        assert!(row["warnings"].as_array().expect("warnings").contains(&json!("kubeletDown")), "{row:#}");
        let drain = command.contains("drain");
        assert_eq!(plan["warnings"].to_string().contains("kubeletDown"), drain, "{command}: {plan:#}");
    }
}

/// The controller taints a node that has become not ready at the node's next event (`doNoScheduleTaintingPass` in
/// `node_lifecycle_controller.go`).
#[tokio::test]
async fn a_node_that_has_just_become_not_ready_takes_no_replacement() {
    let mut objects = cluster(NOW);
    objects.named("Node", "n1")["status"]["conditions"][0]["status"] = "False".into();
    let plan = objects.answer("plan drain n3", DONE).await;
    assert_eq!(pod(&plan, "web-1-0")["landingNode"], "n2", "{plan:#}");
}

/// A pod that the assumed failure displaces is not placed on a node that fails by itself in the meantime. The forecast
/// follows the same rule.
#[tokio::test]
async fn the_prediction_of_a_failure_leaves_out_nodes_that_are_down_by_then() {
    let impact = cluster("2026-11-29T14:59:20Z").answer("plan node-failure n3", DONE).await;
    let replaced = impact["replacements"].as_array().expect("replacements");
    assert_eq!(replaced.len(), 2, "{impact:#}");
    assert!(replaced.iter().all(|pod| pod["landingNode"] == "n2"), "{replaced:#?}");
}

/// The taint eviction controller deletes the pods of a dead node when their tolerations end (kubernetes 1.37.1
/// `pkg/controller/tainteviction/taint_eviction.go`, `processPodOnNode`).
#[tokio::test]
async fn a_drain_waits_for_pods_that_leave_a_dead_node_by_themselves() {
    let mut objects = cluster("2026-11-29T14:55:00Z");
    add_deployment(&mut objects, "api", &["n1", "n2"], budget("api"));
    lose(&mut objects, "n1", "2026-11-29T14:56:00Z");
    unready(&mut objects, "api-1-0");
    exhaust(&mut objects, "api", 1);
    let plan = objects.answer("plan drain n2", DONE).await;
    let api = pod(&plan, "api-1-1");
    assert_eq!(api["verdict"], "leavesAfter", "{api:#}");
    let leaves = api["leaves"]["likelySeconds"].as_f64().expect("a time");
    assert!((60.0..80.0).contains(&leaves), "its replacement is created after 60 s: {leaves}");

    for pod in ["api-1-0", "api-1-1"] {
        tolerate_forever(&mut objects, pod);
    }
    let plan = objects.answer("plan drain n2", STALLS).await;
    assert_eq!(pod(&plan, "api-1-1")["verdict"], "waits", "nothing evicts the other pod");
}

/// The pod garbage collector deletes the pods of a node that no longer exists (kubernetes 1.37.1
/// `pkg/controller/podgc/gc_controller.go`, `gcOrphaned`).
#[tokio::test]
async fn a_drain_waits_for_pods_of_a_deleted_node() {
    let mut objects = cluster(NOW);
    objects.named("Pod", "web-1-1")["spec"]["nodeName"] = "gone".into();
    unready(&mut objects, "web-1-1");
    exhaust(&mut objects, "web", 2);
    let plan = objects.answer("plan drain n3", DONE).await;
    let leaves = pod(&plan, "web-1-0")["leaves"]["likelySeconds"].as_f64().expect("a time");
    assert!((50.0..75.0).contains(&leaves), "it is removed after some 50 s: {leaves}");
}

/// A pod that tolerates the taint without a time limit is not evicted (`getMinTolerationTime`), so it has no
/// replacement.
#[tokio::test]
async fn pods_that_nothing_evicts_from_a_dead_node_are_in_the_verdict() {
    let mut objects = cluster("2026-11-29T14:00:00Z");
    add_deployment(&mut objects, "pinned", &["n1"], free_budget("pinned"));
    lose(&mut objects, "n1", "2026-11-29T14:01:00Z");
    unready(&mut objects, "pinned-1-0");
    tolerate_forever(&mut objects, "pinned-1-0");
    let status = objects.answer("status", DONE).await;
    let text = verdict(&status);
    assert!(
        text.contains("1 pod stuck on a dead node until it is back, deleted or tainted out-of-service"),
        "{text}"
    );
    let evictions = objects.answer("evictions", DONE).await.to_string();
    assert!(evictions.contains("\"outcome\":\"stuck\""), "{evictions}");
    let until = "until the node is back, deleted or tainted out-of-service, or the pod is deleted\"";
    assert!(evictions.contains(until), "{evictions}");
    // A toleration of every taint is also one of the out-of-service taint.
    objects.named("Pod", "pinned-1-0")["spec"]["tolerations"] = json!([{"operator": "Exists"}]);
    let evictions = objects.answer("evictions", DONE).await.to_string();
    assert!(evictions.contains("until the node is back or deleted, or the pod is deleted\""), "{evictions}");
}

/// A pod that tolerates the taint of its failed node is stuck there. Its outcome is the same in both lists of the JSON,
/// and the table lists the pod once.
#[tokio::test]
async fn a_pod_that_a_failure_does_not_evict_has_one_outcome_and_one_row() {
    let mut objects = cluster(NOW);
    add_deployment(&mut objects, "pinned", &["n1"], free_budget("pinned"));
    tolerate_forever(&mut objects, "pinned-1-0");
    let impact = objects.answer("plan node-failure n1", DONE).await;
    for list in ["staying", "replacements"] {
        let rows = impact[list].as_array().expect("a list");
        let of_pod: Vec<&Value> = rows.iter().filter(|row| row["pod"] == "pinned-1-0").collect();
        assert_eq!(of_pod.len(), 1, "{list}: {impact:#}");
        assert_eq!(of_pod[0]["outcome"], "stuck", "{list}: {impact:#}");
    }
    let table = objects.table("plan node-failure n1").await;
    let rows = table.lines().filter(|line| line.starts_with("shop/pinned-1-0 ")).count();
    assert_eq!(rows, 1, "{table}");
}

/// The controller still counts a silent node as Ready, so its zone is Normal. The table names the silent node too, as
/// the dashboard does.
#[tokio::test]
async fn the_state_of_a_zone_names_its_silent_node() {
    let objects = cluster("2026-11-29T14:59:25Z");
    for command in ["status", "zones"] {
        let table = objects.table(command).await;
        assert!(table.contains("Normal, Silent"), "{command}: {table}");
    }
}

/// The next event of a node has the number of pods that are evicted then, not of all that will be.
#[tokio::test]
async fn the_next_event_of_a_node_is_about_the_pods_that_leave_first() {
    let mut objects = cluster("2026-11-29T14:57:00Z");
    add_deployment(&mut objects, "api", &["n1", "n1", "n1"], free_budget("api"));
    lose(&mut objects, "n1", "2026-11-29T14:58:00Z");
    for pod in ["api-1-1", "api-1-2"] {
        objects.named("Pod", pod)["spec"]["tolerations"][0]["tolerationSeconds"] = 400.into();
    }
    let status = objects.answer("status", DONE).await;
    let nodes = status["nodes"].as_array().expect("nodes");
    let next = &nodes.iter().find(|node| node["name"] == "n1").expect("a row")["next"];
    assert_eq!(
        (&next["type"], &next["pods"], &next["allPods"]),
        (&json!("evict"), &json!(1), &json!(3)),
        "{next:#}"
    );
    for command in ["status", "nodes"] {
        let table = objects.table(command).await;
        let row = table.lines().find(|line| line.starts_with("n1 ")).expect("a row");
        assert!(row.contains("  1 of 3 pods  "), "{command}: {table}");
    }
}

/// A pod that tolerates the taint is stuck from the moment at which its node is Unknown, not only from the taint on.
#[tokio::test]
async fn a_pod_that_nothing_evicts_has_nowhere_to_run_before_its_node_is_tainted() {
    let mut objects = cluster("2026-11-29T14:58:00Z");
    add_deployment(&mut objects, "pinned", &["n1"], free_budget("pinned"));
    lose(&mut objects, "n1", "2026-11-29T14:59:00Z");
    without_no_execute(&mut objects, "n1");
    unready(&mut objects, "pinned-1-0");
    tolerate_forever(&mut objects, "pinned-1-0");
    let status = objects.answer("status", DONE).await;
    let verdict = &status["verdict"];
    assert_eq!((&verdict["nowhereNow"], &verdict["nowherePredicted"]), (&json!(1), &json!(0)), "{verdict:#}");
    let row = &status["evictions"][0];
    assert_eq!((&row["pod"], &row["outcome"]), (&json!("pinned-1-0"), &json!("stuck")), "{status:#}");
}

/// `kordon why pod` names the same outcomes as `kordon evictions`: for a pod that is evicted 300 s after the taint, and
/// for a pod that tolerates the taint without a limit. Before the taint, the forecast predicts both.
#[tokio::test]
async fn why_names_the_outcome_of_a_pod_on_a_dead_node() {
    let mut objects = cluster("2026-11-29T14:59:00Z");
    for name in ["moves", "pinned"] {
        add_deployment(&mut objects, name, &["n1"], free_budget(name));
    }
    tolerate_forever(&mut objects, "pinned-1-0");
    for is_tainted in [false, true] {
        if is_tainted {
            lose(&mut objects, "n1", "2026-11-29T14:59:52Z");
            unready(&mut objects, "moves-1-0");
            unready(&mut objects, "pinned-1-0");
        }
        let evictions = objects.answer("evictions", DONE).await;
        let listed = |name: &str| {
            let mut rows = evictions["evictions"].as_array().expect("evictions").iter();
            let row = rows.find(|row| row["pod"] == name).unwrap_or_else(|| panic!("{name}: {evictions:#}"));
            row["outcomeText"].as_str().expect("an outcome").to_owned()
        };
        for (name, topic, start) in [
            ("moves-1-0", "eviction", "outcome: → n2"),
            ("pinned-1-0", "outcome", "outcome: stuck: it tolerates the taint"),
        ] {
            let why = objects.answer(&format!("why pod {name} -n shop"), DONE).await;
            let steps = why["steps"].as_array().expect("steps");
            let is_outcome = |step: &&Value| {
                step["topic"] == topic
                    && step["text"].as_str().is_some_and(|text| text.starts_with("outcome: "))
            };
            let outcome = steps.iter().find(is_outcome).and_then(|step| step["text"].as_str());
            let outcome = outcome.unwrap_or_else(|| panic!("{name}, {is_tainted}: {steps:#?}"));
            assert!(outcome.starts_with(start), "{outcome}");
            assert_eq!(outcome, format!("outcome: {}", listed(name)));
        }
    }
}

/// The API server refuses every eviction from a budget that allows no disruption. For a drain by another process,
/// kordon counts the pods of such a budget as blocked at once if the budget can never allow one, otherwise once the drain
/// has made no progress for 30 s. The verdict does the same.
#[tokio::test]
async fn a_drain_of_another_process_counts_what_its_budgets_block() {
    for (cordoned, unavailable, since) in [
        ("2026-11-29T14:58:00Z", 0, Some("2m00s")),
        ("2026-11-29T14:59:40Z", 0, Some("20s")),
        ("2026-11-29T14:59:40Z", 1, None),
    ] {
        let mut objects = cluster(NOW);
        let budget = objects.named("PodDisruptionBudget", "web");
        budget["spec"]["maxUnavailable"] = unavailable.into();
        let status = &mut budget["status"];
        (status["desiredHealthy"], status["disruptionsAllowed"]) = ((3 - unavailable).into(), 0.into());
        if unavailable > 0 {
            status["currentHealthy"] = 2.into();
            unready(&mut objects, "web-1-1");
        }
        let claim = json!({"by": "ann", "operation": "drain-1", "renewed": NOW, "pods": 4, "stay": 0});
        claim_for_drain(&mut objects, "n3", cordoned, &claim);
        let status = objects.answer("status", DONE).await;
        let text = verdict(&status);
        let said = "drain of n3 (2 of 4 pods gone) blocked";
        assert_eq!(text.contains(said), since.is_some(), "{text}");
        let by = since.map(|since| format!("{said} {since} by PodDisruptionBudget shop/web"));
        assert!(by.is_none_or(|by| text.contains(&by)), "{text}");
        let by = since.map(|_| "drain of n3 blocked by PodDisruptionBudget shop/web");
        let forecast = objects.answer("forecast", DONE).await;
        assert_eq!(forecast["blockedDrains"], json!(by.as_slice()));
        let table = objects.table("forecast").await;
        assert!(by.is_none_or(|by| table.contains(by)), "{table}");
        let (blocked, waiting) = if since.is_some() { (2, 0) } else { (0, 2) };
        let nodes = status["nodes"].as_array().expect("nodes").iter();
        let drained = nodes.filter(|node| node["name"] == "n3").map(|node| &node["drainClaim"]["count"]);
        let expected = json!({
            "total": 4, "gone": 2, "terminating": 0, "blocked": blocked, "waiting": waiting, "finished": 0,
        });
        assert_eq!(drained.collect::<Vec<_>>(), [&expected]);
    }
}

/// The taint manager deletes finished pods too (kubernetes 1.37.1 `pkg/controller/tainteviction/taint_eviction.go`,
/// `processPodOnNode`), and their outcome is `finished`.
#[tokio::test]
async fn finished_pods_are_among_the_outcomes_of_the_pods_that_a_failure_deletes() {
    let mut objects = cluster(NOW);
    let mut done = objects.named("Pod", "web-1-0").clone();
    (done["metadata"]["name"], done["metadata"]["uid"]) = ("report-1".into(), "report-1".into());
    done["metadata"]["labels"] = json!({"app": "report"});
    let owner = &mut done["metadata"]["ownerReferences"][0];
    (owner["apiVersion"], owner["kind"]) = ("batch/v1".into(), "Job".into());
    (owner["name"], owner["uid"]) = ("report".into(), "report".into());
    done["status"] = json!({"phase": "Succeeded"});
    objects.0.push(done);
    let impact = objects.answer("plan node-failure n3", DONE).await;
    let totals = &impact["totals"];
    assert_eq!((&totals["deleted"], &totals["pods"]), (&json!(3), &json!(3)), "{totals:#}");
    assert_eq!(totals["outcomes"], json!({"finished": 1, "moves": 2}));
    let table = objects.table("plan node-failure n3").await;
    assert!(table.contains("3 pods deleted"), "{table}");
    assert!(table.contains("3 pods are evicted: 1 finished, 2 move"), "{table}");
}

/// If a Pending pod tolerated the taints of a dead node, it would be bound to this node, whose kubelet starts no pods.
#[tokio::test]
async fn nobody_is_advised_to_tolerate_the_taints_of_a_dead_node() {
    let mut objects = cluster("2026-11-29T14:00:00Z");
    lose(&mut objects, "n1", "2026-11-29T14:01:00Z");
    let big = objects.named("Pod", "web-1-0");
    big["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "4".into();
    big["spec"]["nodeName"] = Value::Null;
    big["status"] = unscheduled();
    let pending = objects.answer("pending", DONE).await.to_string();
    assert!(pending.contains("more on n2") && !pending.contains("taints of n1"), "{pending}");
}

/// Kubernetes 1.37.1 `node_lifecycle_controller.go`, `processTaintBaseEviction` and `doNoScheduleTaintingPass`: a Ready
/// node loses its taints in the next pass.
#[tokio::test]
async fn a_node_that_recovers_takes_replacements_again() {
    let mut objects = cluster("2026-11-29T14:55:00Z");
    for node in ["n1", "n2", "n3"] {
        lose(&mut objects, node, "2026-11-29T14:58:00Z");
        objects.named("Lease", node)["spec"]["renewTime"] = "2026-11-29T14:57:00Z".into();
    }
    objects.named("Node", "n1")["metadata"]["annotations"] = json!({"time": NOW});
    set_clock(&mut objects, NOW);
    let forecast = objects.answer("forecast --recover n1@1m", DONE).await;
    let replaced = forecast["replacements"].as_array().expect("replacements");
    assert_eq!(replaced.len(), 3, "{forecast:#}");
    assert!(replaced.iter().all(|pod| pod["landingNode"] == "n1"), "{replaced:#?}");
}

/// A status post is a heartbeat too (kubernetes 1.37.1 `pkg/controller/nodelifecycle/node_lifecycle_controller.go`,
/// `tryUpdateNodeHealth`). The grace period of 50 s counts from the last heartbeat.
#[tokio::test]
async fn a_status_that_is_newer_than_the_lease_is_the_reason_for_the_end_of_the_grace_period() {
    for (status, now, cause) in [
        ("2026-11-29T14:59:55Z", "2026-11-29T15:00:40Z", "status posted 14:59:55"),
        (BEFORE, "2026-11-29T15:00:00Z", "lease renewed 14:59:15"),
    ] {
        let mut objects = cluster("2026-11-29T14:59:15Z");
        objects.named("Node", "n1")["status"]["conditions"][0]["lastHeartbeatTime"] = status.into();
        set_clock(&mut objects, now);
        let table = objects.table("status").await;
        assert!(table.contains(&format!("{cause} → node-monitor-grace-period 50s")), "{table}");
    }
}

/// The controller removes its taints from a node that is Ready again, so they do not evict the pods that come back.
#[tokio::test]
async fn pods_that_come_back_to_a_node_that_recovers_are_no_loop() {
    let mut objects = cluster("2026-11-29T14:55:00Z");
    add_deployment(&mut objects, "api", &["n1"], budget("api"));
    lose(&mut objects, "n1", "2026-11-29T14:58:00Z");
    let template = &mut objects.named("ReplicaSet", "api-1")["spec"]["template"]["spec"];
    template["nodeSelector"] = json!({"kubernetes.io/hostname": "n1"});
    template["tolerations"] = json!([{
        "key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300,
    }]);
    let forecast = objects.answer("forecast --recover n1@6m", DONE).await;
    assert_eq!(forecast["totals"]["outcomes"], json!({"sameNode": 1}), "{forecast:#}");
    assert_eq!(forecast["loops"], json!([]));
}

/// Built-in pod security admission refuses the replacement (kubernetes 1.37.1
/// `staging/src/k8s.io/pod-security-admission/policy/check_privileged.go`).
#[tokio::test]
async fn pod_security_refuses_a_privileged_replacement() {
    let mut objects = cluster(NOW);
    let privileged = |object: &mut Value| object["securityContext"] = json!({"privileged": true});
    privileged(&mut objects.named("ReplicaSet", "web-1")["spec"]["template"]["spec"]["containers"][0]);
    objects.answer("plan drain n2", DONE).await;
    for (level, outcome) in [("restricted", "pending"), ("baseline", "pending"), ("privileged", "moves")] {
        *objects.named("Namespace", "shop") =
            namespace(&json!({"pod-security.kubernetes.io/enforce": level}));
        let plan = objects.answer("plan drain n2", DONE).await;
        let row = pod(&plan, "web-1-1");
        assert_eq!(row["outcome"], outcome, "{row:#}");
        assert_eq!(row.to_string().contains(&format!("Pod Security level {level}")), outcome == "pending");
    }
}

/// In a namespace that is being deleted, the API server refuses evictions with 403, because an eviction is a create
/// request (apiserver 0.37.1 `pkg/admission/plugin/namespace/lifecycle/admission.go`, `Admit`).
#[tokio::test]
async fn a_pod_whose_namespace_is_being_deleted_waits_for_that() {
    let mut objects = cluster(NOW);
    objects.named("Namespace", "shop")["status"]["phase"] = "Terminating".into();
    let why = objects.answer("why pod -n shop web-1-1", DONE).await;
    let steps = why["steps"].to_string();
    assert!(steps.contains("is answered with 403: waits: deleted with its namespace"), "{steps}");
    assert_eq!(actions(&why), ["wait", "delete"]);
}

/// A volume that the kubelet of a dead node uses is detached 6 min after its pod is gone (kubernetes 1.37.1
/// `pkg/controller/volume/attachdetach/reconciler/reconciler.go`). Until then no other pod may hold it.
#[tokio::test]
async fn a_starting_pod_waits_for_a_volume_that_a_dead_node_still_uses() {
    let mut objects = cluster("2026-11-29T14:53:00Z");
    lose(&mut objects, "n1", "2026-11-29T14:54:00Z");
    add_deployment(&mut objects, "api", &["n2"], budget("api"));
    add_volume(&mut objects, "data", "kubernetes.io/hostname", "n2");
    let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    let pod = objects.named("Pod", "api-1-0");
    pod["spec"]["volumes"] = volumes;
    pod["status"] = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]});
    let old = pod.clone();
    let used = "kubernetes.io/csi/example.com^data";
    let status = &mut objects.named("Node", "n1")["status"];
    (status["volumesAttached"], status["volumesInUse"]) =
        (json!([{"name": used, "devicePath": ""}]), json!([used]));
    let why = objects.answer("why pod -n shop api-1-0", DONE).await;
    let waits = "waits for ReadWriteOnce volume data, which is still attached to n1, whose kubelet is down: detached \
                 by force 6m00s after the pod that used it was gone, at once if n1 is Ready or tainted out-of-service";
    assert!(why["steps"].to_string().contains(waits), "{:#}", why["steps"]);
    let actions = why["actions"].as_array().expect("actions");
    assert_eq!((actions.len(), &actions[0]["action"]), (1, &json!("wait")), "{actions:#?}");
    assert_eq!(actions[0]["text"], "until volume data is detached from n1");

    // The node is deleted before the old pod is gone.
    let mut holder = old;
    (holder["metadata"]["name"], holder["metadata"]["uid"]) = ("api-1-old".into(), "api-1-old".into());
    holder["metadata"]["deletionTimestamp"] = "2026-11-29T14:59:30Z".into();
    holder["metadata"]["deletionGracePeriodSeconds"] = 30.into();
    (holder["spec"]["nodeName"], holder["status"]["phase"]) = ("n1".into(), "Running".into());
    objects.0.push(holder);
    objects.without("Node", "n1");
    let why = objects.answer("why pod -n shop api-1-0", DONE).await;
    let waits = "which shop/api-1-old holds on n1, whose Node object is gone: shop/api-1-old is removed 40s to 1m20s \
                 after that, and the volume is detached by force 6m00s later";
    assert!(why["steps"].to_string().contains(waits), "{:#}", why["steps"]);
}

/// During a resize, a pod counts with the largest of its requested, allocated and actual resources. A request that is
/// infeasible on its node does not count (component-helpers 0.37.1 `resource/helpers.go`,
/// `AggregateContainerRequests`).
#[tokio::test]
async fn a_pod_that_is_resized_counts_with_what_it_has() {
    let resized = |wants: &str, has: &str, condition: Value| {
        let mut objects = Objects(vec![namespace(&json!({}))]);
        add_node(&mut objects, "n1", NOW);
        add_node(&mut objects, "n2", NOW);
        add_deployment(&mut objects, "web", &["n1"], free_budget("web"));
        add_deployment(&mut objects, "big", &["n2"], free_budget("big"));
        let big = objects.named("Pod", "big-1-0");
        big["spec"]["containers"][0]["resources"]["requests"]["cpu"] = wants.into();
        big["status"]["conditions"].as_array_mut().expect("conditions").push(condition);
        big["status"]["containerStatuses"] = json!([{
            "name": "app", "ready": true, "allocatedResources": {"cpu": "1"}, "resources": {"requests": {"cpu": has}},
        }]);
        objects
    };
    let pending = |reason: &str| json!({"type": "PodResizePending", "status": "True", "reason": reason});
    let lands = async |objects: Objects| {
        let plan = objects.answer("plan drain n1", DONE).await;
        pod(&plan, "web-1-0")["outcome"].clone()
    };
    assert_eq!(
        lands(resized("4", "1", pending("Infeasible"))).await,
        "moves",
        "the node is too small for the wish"
    );
    assert_eq!(lands(resized("4", "1", pending("Deferred"))).await, "pending");
    let shrinking = json!({"type": "PodResizeInProgress", "status": "True"});
    assert_eq!(lands(resized("1", "4", shrinking)).await, "pending", "it has not given anything back yet");
}

/// If the Deployment is not known, the scale of the budget's pods is not known either, and the numbers of the budget's
/// status are used (kubernetes 1.37.1 `pkg/controller/disruption/disruption.go`, `getPodDeployment`).
#[tokio::test]
async fn the_status_of_a_budget_counts_where_deployments_are_not_known() {
    let mut objects = cluster(NOW);
    let mut other = objects.named("ReplicaSet", "web-1").clone();
    (other["metadata"]["name"], other["metadata"]["uid"]) = ("web-2".into(), "web-2".into());
    other["spec"]["replicas"] = 2.into();
    objects.0.push(other);
    objects.named("Pod", "web-1-1")["metadata"]["ownerReferences"][0]["uid"] = "web-2".into();
    objects.named("Pod", "web-1-1")["metadata"]["ownerReferences"][0]["name"] = "web-2".into();
    objects.without("Deployment", "web");
    let command = ["plan", "drain", "n2", "-o", "json"];
    let plan = objects.partial(&command).await;
    let numbers = &plan["budgets"][0]["before"];
    let read = (&numbers["expectedPods"], &numbers["disruptionsAllowed"]);
    assert_eq!(read, (&json!(3), &json!(1)), "{numbers:#}");
}

/// If a Job is not known, the eviction of its pod may fail the Job. So the plan predicts neither a node nor a time for
/// the pod's replacement.
#[tokio::test]
async fn nothing_is_promised_for_pods_of_a_job_that_is_not_known() {
    let mut objects = cluster(NOW);
    objects.named("Pod", "web-1-1")["metadata"]["ownerReferences"] = json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "train", "controller": true}]);
    objects.without("PodDisruptionBudget", "web");
    let plan = objects.partial(&["plan", "drain", "n2", "-o", "json"]).await;
    let row = pod(&plan, "web-1-1");
    assert_eq!(row["outcome"], "unknown");
    assert_eq!((&row["landing"], &row["readyAgainInSeconds"]), (&json!("unknown"), &Value::Null), "{row:#}");
    assert_eq!(plan["definite"], false);
}

/// Only an eviction marks a pod as DisruptionTarget (kubernetes 1.37.1 `pkg/registry/core/pod/storage/eviction.go`,
/// `addConditionAndDeletePod`).
#[tokio::test]
async fn why_tells_the_eviction_of_a_jobs_pod_from_its_deletion() {
    let mut objects = cluster(NOW);
    let labels = json!({"batch.kubernetes.io/job-name": "train"});
    objects.0.push(json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "train", "namespace": "shop", "uid": "train"},
        "spec": {
            "backoffLimit": 0, "parallelism": 1, "completions": 1, "selector": {"matchLabels": labels},
            "podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app"}], "restartPolicy": "Never"}},
        },
        "status": {"active": 1},
    }));
    let owners = json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "train", "controller": true}]);
    let metadata = &mut objects.named("Pod", "web-1-1")["metadata"];
    metadata["ownerReferences"] = owners;
    metadata["finalizers"] = json!(["batch.kubernetes.io/job-tracking"]);
    let why = objects.answer("why pod shop/web-1-1", DONE).await["steps"].to_string();
    assert!(why.contains("if it is deleted: fails Job train"), "{why}");
    assert!(!why.contains("if it is evicted"), "an eviction is ignored: {why}");
}

/// It is not known where the replacement of a pod runs if the pod's owner is unknown. So no other node is taken down in
/// the same wave.
#[tokio::test]
async fn a_node_with_pods_of_unknown_outcome_is_in_a_wave_of_its_own() {
    let mut objects = cluster(NOW);
    for name in ["web-1-1", "web-1-0"] {
        objects.named("Pod", name)["metadata"]["ownerReferences"][0]["kind"] = "Machine".into();
        objects.named("Pod", name)["metadata"]["ownerReferences"][0]["apiVersion"] = "example.com/v1".into();
    }
    objects.without("PodDisruptionBudget", "web");
    let (_, plan) = objects.run("maintenance n1 n2 n3").await;
    let waves = plan["waves"].as_array().expect("waves");
    let of = |node: &str| {
        waves.iter().find(|wave| wave["nodes"].as_array().is_some_and(|all| all.contains(&node.into())))
    };
    assert_eq!(of("n2").expect("a wave")["nodes"], json!(["n2"]), "{waves:#?}");
}

/// Two pods wait for the same starting pod. In one wave they would also wait for each other, so their nodes are in two
/// waves.
#[tokio::test]
async fn nodes_whose_pods_wait_longer_together_are_in_two_waves() {
    let mut objects = Objects(vec![namespace(&json!({}))]);
    for node in ["n1", "n2", "n3", "n4"] {
        add_node(&mut objects, node, NOW);
    }
    add_deployment(&mut objects, "web", &["n1", "n2", "n3"], budget("web"));
    unready(&mut objects, "web-1-2");
    objects.named("Pod", "web-1-2")["metadata"]["creationTimestamp"] = "2026-11-29T14:59:58Z".into();
    exhaust(&mut objects, "web", 2);
    let (_, plan) = objects.run("maintenance n1 n2").await;
    let waves: Vec<&Value> =
        plan["waves"].as_array().expect("waves").iter().map(|wave| &wave["nodes"]).collect();
    assert_eq!(waves.len(), 2, "{plan:#}");
}

/// Drivers of local storage identify the node by a label of their own (topolvm/topolvm `constants.go`,
/// `TopologyNodeKey`).
#[tokio::test]
async fn a_volume_that_one_node_reaches_is_local_whatever_the_label() {
    let mut objects = cluster(NOW);
    for node in ["n1", "n2", "n3"] {
        objects.named("Node", node)["metadata"]["labels"]["topology.topolvm.io/node"] = node.into();
    }
    add_volume(&mut objects, "data", "topology.topolvm.io/node", "n2");
    let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    objects.named("Pod", "web-1-1")["spec"]["volumes"] = volumes.clone();
    objects.named("ReplicaSet", "web-1")["spec"]["template"]["spec"]["volumes"] = volumes;
    let (_, audit) = objects.run("audit n2").await;
    let kinds = audit["findings"].as_array().expect("findings").iter().map(|finding| finding["kind"].clone());
    assert!(kinds.clone().any(|kind| kind == "localVolume"), "{:?}", kinds.collect::<Vec<_>>());
}

/// Two full nodes, and a pod of a higher priority that is nominated for n1. A pod on n1 is Terminating, with a grace
/// period of 600 s; its condition DisruptionTarget has this reason.
fn nominated(reason: &str) -> Objects {
    let mut objects = Objects(vec![namespace(&json!({}))]);
    for node in ["n1", "n2"] {
        add_node(&mut objects, node, NOW);
    }
    add_deployment(&mut objects, "old", &["n1", "n2"], budget("old"));
    add_deployment(&mut objects, "new", &["n1"], budget("new"));
    for name in ["old-1-0", "old-1-1", "new-1-0"] {
        objects.named("Pod", name)["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "4".into();
    }
    let victim = objects.named("Pod", "old-1-0");
    victim["metadata"]["deletionTimestamp"] = "2026-11-29T15:09:40Z".into();
    victim["metadata"]["deletionGracePeriodSeconds"] = 600.into();
    let target = json!({"type": "DisruptionTarget", "status": "True", "reason": reason, "lastTransitionTime": "2026-11-29T14:59:40Z"});
    victim["status"]["conditions"].as_array_mut().expect("conditions").push(target);
    let new = objects.named("Pod", "new-1-0");
    (new["spec"]["nodeName"], new["spec"]["priority"]) = (Value::Null, 1000.into());
    new["status"] = json!({"phase": "Pending", "nominatedNodeName": "n1", "conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": "2026-11-29T14:45:00Z",
    }]});
    objects
}

/// Kubernetes 1.37.1 `pkg/scheduler/framework/preemption/util.go`, `PodTerminatingByPreemption`: the scheduler chooses
/// victims again if a pod terminates for another reason than preemption.
#[tokio::test]
async fn a_pod_whose_nominated_node_loses_another_pod_preempts_again() {
    let pending = nominated("EvictionByEvictionAPI").answer("pending", DONE).await;
    assert_eq!(pending["pods"][0]["advice"], "preempts", "{pending:#}");
}

/// A pod preempts no other pods while victims on its nominated node terminate (kubernetes 1.37.1
/// `pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go`, `PodEligibleToPreemptOthers`).
#[tokio::test]
async fn a_pod_that_waits_for_its_nominated_node_needs_nothing() {
    let objects = nominated("PreemptionByScheduler");
    let pending = objects.answer("pending", DONE).await;
    let row = &pending["pods"][0];
    assert_eq!((&row["advice"], &row["node"]), (&json!("waits"), &json!("n1")), "{row:#}");
    let help = "nothing is needed: waits until shop/old-1-0, preempted for it, is gone from n1";
    assert_eq!(row["help"], json!([help]));
    let status = objects.answer("status", DONE).await;
    let text = verdict(&status);
    assert!(text.contains("waits until preempted pods are gone from n1"), "{text}");
    assert!(text.contains("shop/new preempts 1 pod"), "{text}");
    for command in ["why pod shop/new-1-0", "why pod shop/new-1-0 --placement"] {
        let why = objects.answer(command, DONE).await;
        let wait = &why["actions"][0];
        let expected = "until shop/old-1-0, preempted for it, is gone from n1: nothing is needed";
        assert_eq!((&wait["action"], &wait["text"]), (&json!("wait"), &json!(expected)), "{why:#}");
        assert_eq!(wait["at"], "2026-11-29T15:09:40.000Z");
        assert_eq!(why["actions"].as_array().map(Vec::len), Some(1), "{why:#}");
        let preempts = &why["placement"]["trace"]["preempts"];
        assert!(preempts.is_null() || *preempts == json!([]), "nothing more is preempted: {why:#}");
    }
}

/// Kubernetes 1.37.1 `pkg/scheduler/framework/plugins/volumebinding/binder.go`, `checkBoundClaims`: a node has to match
/// the affinity of every volume, and a label has one value.
#[tokio::test]
async fn a_pod_with_volumes_in_two_zones_is_told_so_and_nothing_else() {
    let mut objects = cluster(NOW);
    for (node, zone) in [("n1", "a"), ("n2", "b"), ("n3", "a")] {
        objects.named("Node", node)["metadata"]["labels"]["topology.ebs.csi.aws.com/zone"] = zone.into();
    }
    for zone in ["a", "b"] {
        add_volume(&mut objects, &format!("data-{zone}"), "topology.ebs.csi.aws.com/zone", zone);
    }
    let pod = objects.named("Pod", "web-1-1");
    let claim = |name: &str| json!({"name": name, "persistentVolumeClaim": {"claimName": name}});
    pod["spec"]["volumes"] = json!([claim("data-a"), claim("data-b")]);
    pod["spec"]["nodeName"] = Value::Null;
    pod["status"] = unscheduled();
    let pending = objects.answer("pending", DONE).await;
    let why = "its volume data-a is in zone a, its volume data-b is in zone b";
    assert_eq!(pending["pods"][0]["help"], json!([format!("nothing but another volume: {why}")]));
    let status = objects.answer("status", DONE).await;
    let text = verdict(&status);
    assert!(text.contains("no node reaches all its volumes"), "{text}");
}

/// Kubernetes 1.37.1 `pkg/kubelet/kubelet_node_status.go`, `tryUpdateNodeStatus`: a kubelet that is back posts its
/// status, because the conditions of the Node object differ from the kubelet's own.
#[tokio::test]
async fn an_unknown_node_that_renews_its_lease_again_is_waited_for() {
    let unknown = |renewed: &str| {
        let mut objects = cluster(NOW);
        objects.named("Lease", "n2")["spec"]["renewTime"] = renewed.into();
        lose(&mut objects, "n2", "2026-11-29T14:57:00Z");
        objects
    };
    let back = unknown("2026-11-29T14:59:58Z");
    let why = back.answer("why node n2", DONE).await;
    assert_eq!(actions(&why), ["wait"], "the machine answers: {why:#}");
    let steps = why["steps"].to_string();
    assert!(
        steps.contains("it renews its Lease again: its status should follow within some seconds"),
        "{steps}"
    );
    assert!(steps.contains("1 pod is evicted, if its status stays Unknown"), "{steps}");
    let pod = back.answer("why pod shop/web-1-1", DONE).await["actions"].to_string();
    assert!(!pod.contains("outOfService") && !pod.contains("restartKubelet"), "{pod}");
    let forecast = back.answer("forecast", DONE).await;
    let assumptions = forecast["assumptions"].to_string();
    assert!(assumptions.contains("n2 stays Unknown although it renews its Lease again"), "{assumptions}");

    let silent = unknown("2026-11-29T14:56:10Z");
    let why = silent.answer("why node n2", DONE).await.to_string();
    assert!(why.contains("outOfService") && !why.contains("again"), "{why}");
    let forecast = silent.answer("forecast", DONE).await["assumptions"].to_string();
    assert!(!forecast.contains("again"), "{forecast}");
}

/// Measurements are not objects: they are read from the kubelet (`nodes/proxy`), and with files there is no kubelet.
#[tokio::test]
async fn no_kubelet_is_asked_about_the_nodes_of_files() {
    let objects = cluster(NOW);
    let report = objects.answer("plan pressure n3", DONE).await;
    let none = json!("files and recordings have none");
    assert_eq!((&report["usageError"], &report["thresholdsError"]), (&none, &none), "{report:#}");
}

/// Kubernetes 1.37.1 `node_lifecycle_controller.go`, `handleDisruption`: while every zone is down, nothing is evicted.
#[tokio::test]
async fn pods_of_a_cluster_that_is_down_are_not_told_as_pending() {
    let mut objects = cluster("2026-11-29T14:55:00Z");
    for node in ["n1", "n2", "n3"] {
        lose(&mut objects, node, "2026-11-29T14:58:00Z");
        without_no_execute(&mut objects, node);
        objects.named("Lease", node)["spec"]["renewTime"] = "2026-11-29T14:57:00Z".into();
    }
    set_clock(&mut objects, NOW);
    let forecast = objects.answer("forecast", DONE).await;
    let totals = &forecast["totals"];
    assert_eq!((&totals["outcomes"], &totals["nowhere"]), (&json!({"stays": 3}), &json!(0)), "{totals:#}");
    let table = objects.table("forecast").await;
    assert!(table.contains("3 pods of lost nodes are not evicted: 3 stay"), "{table}");
}

/// While evictions are paused, nothing evicts any pod, so that a pod that tolerates the taint has the outcome of the
/// others.
#[tokio::test]
async fn pods_of_a_cluster_that_is_down_are_alike_whatever_they_tolerate() {
    let mut objects = cluster("2026-11-29T14:57:00Z");
    for node in ["n1", "n2", "n3"] {
        lose(&mut objects, node, "2026-11-29T14:58:00Z");
        without_no_execute(&mut objects, node);
        objects.named("Lease", node)["spec"]["renewTime"] = "2026-11-29T14:57:00Z".into();
    }
    set_clock(&mut objects, NOW);
    tolerate_forever(&mut objects, "web-1-0");
    let totals = &objects.answer("forecast", DONE).await["totals"];
    assert_eq!((&totals["outcomes"], &totals["nowhere"]), (&json!({"stays": 3}), &json!(0)), "{totals:#}");
    let status = objects.answer("status", DONE).await;
    assert_eq!((&status["verdict"]["nowhereNow"], &status["evictions"]), (&json!(0), &json!([])));
    let why = objects.answer("why pod web-1-0 -n shop", DONE).await["steps"].to_string();
    assert!(why.contains("outcome: stays: nothing evicts it"), "{why}");
}

/// A cluster with a zone whose only node is down. No other node takes the replacements of its two pods.
fn dark_zone() -> Objects {
    let mut objects = cluster("2026-11-29T14:57:00Z");
    objects.named("Node", "n1")["metadata"]["labels"]["topology.kubernetes.io/zone"] = "b".into();
    add_deployment(&mut objects, "pinned", &["n1", "n1"], budget("pinned"));
    let only_n1 = json!({"kubernetes.io/hostname": "n1"});
    objects.named("ReplicaSet", "pinned-1")["spec"]["template"]["spec"]["nodeSelector"] = only_n1.clone();
    for pod in ["pinned-1-0", "pinned-1-1"] {
        objects.named("Pod", pod)["spec"]["nodeSelector"] = only_n1.clone();
        unready(&mut objects, pod);
    }
    lose(&mut objects, "n1", "2026-11-29T14:58:00Z");
    without_no_execute(&mut objects, "n1");
    objects
}

/// With `--full-disruption=pause` no node of a zone without a ready node gets a NoExecute taint, so that its pods stay.
/// Kubernetes evicts them, and no other node takes their replacements.
#[tokio::test]
async fn pods_of_a_zone_whose_evictions_are_paused_stay() {
    let objects = dark_zone();
    let evicting = objects.answer("status", DONE).await;
    assert_eq!(evicting["verdict"]["nowherePredicted"], 2, "{:#}", evicting["verdict"]);

    let paused = objects.answer("status --full-disruption=pause", DONE).await;
    let verdict = &paused["verdict"];
    assert_eq!((&verdict["nowhereNow"], &verdict["nowherePredicted"]), (&json!(0), &json!(0)), "{verdict:#}");
    assert!(verdict["text"].as_str().expect("a text").contains("evictions paused"), "{verdict:#}");
    let nodes = paused["nodes"].as_array().expect("nodes");
    let next = &nodes.iter().find(|node| node["name"] == "n1").expect("a row")["next"];
    assert_eq!(*next, Value::Null, "{paused:#}");
    let forecast = objects.answer("forecast --full-disruption=pause", DONE).await;
    let totals = &forecast["totals"];
    assert_eq!((&totals["outcomes"], &totals["nowhere"]), (&json!({"stays": 2}), &json!(0)), "{totals:#}");
    let table = objects.table("forecast --full-disruption=pause").await;
    assert!(table.contains("2 pods of lost nodes are not evicted: 2 stay"), "{table}");
}

/// Adds the Lease of a `kordon controller --full-disruption=pause` that runs beside kube-controller-manager.
fn pause_evictions(objects: &mut Objects) {
    let lease = |name: &str, holder: &str, annotations: Value| {
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": name, "namespace": "kube-system", "uid": name, "annotations": annotations},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 86_400,
                "renewTime": "2026-11-29T14:57:00.000000Z"}})
    };
    objects.without("Lease", "kube-controller-manager");
    objects.0.push(lease("kube-controller-manager", "n2_1f6d", json!({})));
    objects.0.push(lease("kordon-controller", "n2_kordon-x", json!({"kordon.dev/full-disruption": "pause"})));
}

/// The Lease is read also while no zone is down.
#[tokio::test]
async fn the_failure_of_a_healthy_zone_is_predicted_with_the_pause_of_kordon_controller() {
    let mut objects = cluster(NOW);
    objects.named("Node", "n1")["metadata"]["labels"]["topology.kubernetes.io/zone"] = "b".into();
    add_deployment(&mut objects, "moved", &["n1"], free_budget("moved"));
    pause_evictions(&mut objects);
    for line in ["plan zone-failure b", "forecast --fail n1"] {
        let evicted = async |flag: &str| {
            let report = objects.answer(&format!("{line}{flag}"), DONE).await;
            report["totals"]["deleted"].clone()
        };
        assert_eq!(evicted("").await, 0, "{line}");
        assert_eq!(evicted(" --full-disruption=pause").await, 0, "{line}");
        assert_eq!(evicted(" --full-disruption=evict").await, 1, "{line}: a flag has precedence");
    }
}

#[tokio::test]
async fn the_lease_of_kordon_controller_states_that_evictions_are_paused() {
    let mut objects = dark_zone();
    pause_evictions(&mut objects);
    let status = objects.answer("status", DONE).await;
    let verdict = &status["verdict"];
    assert_eq!(verdict["nowherePredicted"], 0, "{verdict:#}");
    assert!(verdict["text"].as_str().expect("a text").contains("evictions paused"), "{verdict:#}");
    let settings = status["controller"]["settings"].as_array().expect("settings");
    let stated = settings.iter().find(|setting| setting["flag"] == "full-disruption").expect("a setting");
    assert_eq!((&stated["value"], &stated["origin"]), (&json!("pause"), &json!("lease")));
    let totals = &objects.answer("forecast", DONE).await["totals"];
    assert_eq!(totals["outcomes"], json!({"stays": 2}), "{totals:#}");
    let evicts = objects.answer("status --full-disruption=evict", DONE).await;
    assert_eq!(evicts["verdict"]["nowherePredicted"], 2, "a flag has precedence: {:#}", evicts["verdict"]);
    objects.named("Lease", "kordon-controller")["spec"]["holderIdentity"] = "".into();
    let released = objects.answer("status", DONE).await;
    assert_eq!(released["verdict"]["nowherePredicted"], 2, "{:#}", released["verdict"]);
}

/// Kubernetes 1.37.1 `pkg/kubelet/status/status_manager.go`, `syncPod`: only the pod's own kubelet completes its
/// deletion.
#[tokio::test]
async fn a_maintenance_says_that_pods_of_a_dead_node_never_end() {
    let mut objects = cluster(NOW);
    objects.named("Lease", "n2")["spec"]["renewTime"] = "2026-11-29T14:56:00Z".into();
    lose(&mut objects, "n2", "2026-11-29T14:57:00Z");
    unready(&mut objects, "web-1-1");
    let (_, plan) = objects.run("maintenance n2").await;
    let left_out = plan["leftOut"].to_string();
    assert!(left_out.contains("shop/web-1-1 stays Terminating: the kubelet of n2 is down"), "{plan:#}");
}

/// Kubernetes 1.37.1 `node_lifecycle_controller.go`, `Run`: the controller makes a pass every `--node-monitor-period`.
/// All commands predict the same pass.
#[tokio::test]
async fn commands_agree_when_a_node_becomes_unknown() {
    let objects = cluster("2026-11-29T14:58:00Z");
    let forecast = objects.answer("forecast", DONE).await;
    let at = &forecast["steps"][0]["at"];
    assert_eq!(
        (&forecast["steps"][0]["type"], &forecast["steps"][0]["node"]),
        (&json!("unknown"), &json!("n1"))
    );
    let status = objects.answer("status", DONE).await;
    let nodes = status["nodes"].as_array().expect("nodes");
    assert_eq!(nodes.iter().find(|node| node["name"] == "n1").expect("a row")["next"]["at"], *at);
    let why = objects.answer("why node n1", DONE).await;
    let steps = why["steps"].as_array().expect("steps");
    let unknown = steps.iter().find(|step| step["topic"] == "ready" && step["time"] == "future");
    assert_eq!(unknown.expect("a step")["at"], *at, "{why:#}");
}

/// Adds a bound claim that is being deleted. The pod web-1-1 and its template use the claim.
fn add_ending_claim(objects: &mut Objects, claim: &str) {
    objects.0.push(json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "disks"},
        "provisioner": "disks.example.com", "volumeBindingMode": "WaitForFirstConsumer",
    }));
    let reached = json!({"required": {"nodeSelectorTerms": [{
        "matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n2"]}],
    }]}});
    objects.0.push(json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv", "uid": "pv"},
        "spec": {"accessModes": ["ReadWriteOnce"], "nodeAffinity": reached, "claimRef": {"namespace": "shop", "name": claim},
            "storageClassName": "disks", "csi": {"driver": "disks.example.com", "volumeHandle": "v"}},
        "status": {"phase": "Bound"},
    }));
    objects.0.push(json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": claim, "namespace": "shop", "uid": "claim", "deletionTimestamp": BEFORE,
            "finalizers": ["kubernetes.io/pvc-protection"], "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        },
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "disks", "volumeName": "pv"},
        "status": {"phase": "Bound"},
    }));
    let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]);
    objects.named("Pod", "web-1-1")["spec"]["volumes"] = volumes.clone();
    objects.named("ReplicaSet", "web-1")["spec"]["template"]["spec"]["volumes"] = volumes;
}

/// A claim that is being deleted is gone once no pod uses it, and only a StatefulSet creates it again (kubernetes
/// 1.37.1 `pkg/controller/volume/pvcprotection/pvc_protection_controller.go`, `podUsesPVCForDeletion`, and
/// `pkg/controller/statefulset/stateful_pod_control.go`, `createPersistentVolumeClaims`).
#[tokio::test]
async fn a_claim_that_is_being_deleted_goes_and_only_a_stateful_set_creates_it_again() {
    let mut objects = cluster(NOW);
    add_ending_claim(&mut objects, "data");
    let plan = objects.answer("plan drain n2", DONE).await;
    let row = pod(&plan, "web-1-1");
    assert_eq!(row["outcome"], "pending");
    assert!(row.to_string().contains("claim data not found"), "{row:#}");
    assert!(!row.to_string().contains("needs a node"), "no node has the claim: {row:#}");
    let (_, audit) = objects.run("audit n2").await;
    let lost =
        audit["findings"].as_array().expect("findings").iter().find(|found| found["kind"] == "dataLost");
    assert!(lost.expect("a finding").to_string().contains("copy the data first"), "{audit:#}");

    let mut objects = cluster(NOW);
    add_ending_claim(&mut objects, "data-web-1-1");
    let set = objects.named("ReplicaSet", "web-1");
    set["kind"] = "StatefulSet".into();
    set["spec"]["podManagementPolicy"] = "Parallel".into();
    set["metadata"]["ownerReferences"] = json!([]);
    for name in ["web-1-0", "web-1-1", "web-1-2"] {
        objects.named("Pod", name)["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet".into();
    }
    let plan = objects.answer("plan drain n2", DONE).await;
    let row = pod(&plan, "web-1-1");
    assert_eq!((&row["outcome"], &row["landingNode"]), (&json!("moves"), &json!("n1")), "{row:#}");
    assert!(row["warnings"].to_string().contains("claimDeleted"), "{row:#}");
    assert!(
        !row["outcomeText"].to_string().contains("detached"),
        "the new volume was never attached: {row:#}"
    );
    assert_eq!(plan["totals"]["dataLost"], 1, "{plan:#}");
}

/// Adds a DaemonSet whose template requests this much CPU, with a pod of an earlier template on each of these nodes.
fn add_daemon_set(objects: &mut Objects, cpu: &str, on: &[&str]) {
    let labels = json!({"app": "agent"});
    let spec = |cpu: &str| json!({"containers": [{"name": "app", "resources": {"requests": {"cpu": cpu}}}]});
    objects.0.push(json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent", "namespace": "shop", "uid": "agent"},
        "spec": {
            "selector": {"matchLabels": labels}, "updateStrategy": {"type": "OnDelete"},
            "template": {"metadata": {"labels": labels}, "spec": spec(cpu)},
        },
    }));
    for node in on {
        let name = format!("agent-{node}");
        let mut spec = spec("100m");
        spec["nodeName"] = (*node).into();
        spec["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{
            "matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}],
        }]}}});
        spec["tolerations"] = json!([{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]);
        objects.0.push(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": name, "namespace": "shop", "uid": name, "labels": labels, "creationTimestamp": BEFORE,
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "agent", "controller": true}],
            },
            "spec": spec,
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": BEFORE}]},
        }));
    }
}

/// Kubernetes 1.37.1 `pkg/controller/daemon/daemon_controller.go`, `syncNodes`: the new pod is of the current template,
/// and the scheduler binds it.
#[tokio::test]
async fn the_pod_of_a_daemon_set_stays_pending_if_its_template_does_not_fit_its_node() {
    let mut objects = cluster(NOW);
    add_daemon_set(&mut objects, "3", &["n1", "n3"]);
    for (node, outcome) in [("n1", "sameNode"), ("n3", "pending")] {
        let plan = objects.answer(&format!("plan evict pod agent-{node} -n shop"), DONE).await;
        let row = pod(&plan, &format!("agent-{node}"));
        assert_eq!(row["outcome"], outcome, "{row:#}");
    }
    let plan = objects.answer("plan delete pod agent-n3 -n shop", DONE).await;
    let row = pod(&plan, "agent-n3").to_string();
    assert!(row.contains("nearest: n3 lacks 1 CPU"), "{row}");
    assert!(
        !row.contains("nodeAffinity\"") && !row.contains("needs a node"),
        "no other node takes it: {row}"
    );

    let mut fits = cluster(NOW);
    add_daemon_set(&mut fits, "2", &["n3"]);
    let plan = fits.answer("plan delete pod agent-n3 -n shop", DONE).await;
    assert_eq!(pod(&plan, "agent-n3")["outcome"], "sameNode");
}

/// Kubernetes-sigs/karpenter v1.14.1 `pkg/controllers/node/termination/terminator/terminator.go`, `Drain`: all pods are
/// evicted at once, except those for which `HasDoNotDisrupt` (`pkg/utils/pod/scheduling.go`) is true. The drain waits
/// for the pods that are not evicted.
#[tokio::test]
async fn a_drain_of_karpenter_is_named_with_what_holds_it() {
    let mut objects = cluster(NOW);
    add_deployment(&mut objects, "api", &["n2", "n1"], budget("api"));
    add_deployment(&mut objects, "build", &["n2"], budget("build"));
    objects.named("Pod", "build-1-0")["metadata"]["annotations"] =
        json!({"karpenter.sh/do-not-disrupt": "true"});
    objects.named("Node", "n2")["spec"]["taints"] = json!([
        {"key": "karpenter.sh/disrupted", "effect": "NoSchedule", "timeAdded": "2026-11-29T13:00:00Z"},
    ]);
    let shown = async |objects: &Objects| verdict(&objects.answer("status", DONE).await).to_owned();
    let text = shown(&objects).await;
    assert!(
        text.contains(
            "drain of n2 by Karpenter blocked 2h00m by karpenter.sh/do-not-disrupt of shop/build-1-0 · delete"
        ),
        "{text}"
    );

    forbid_evictions_of_web(&mut objects);
    let text = shown(&objects).await;
    let both = "by PodDisruptionBudget shop/web and karpenter.sh/do-not-disrupt of shop/build-1-0";
    assert!(text.contains(both), "{text}");
    let why = objects.answer("why node n2", DONE).await.to_string();
    assert!(why.contains(both) && why.contains("it refuses shop/web-1-1"), "{why}");
    let budgets = objects.answer("budgets", DONE).await;
    let of = |name: &str| {
        budgets["budgets"].as_array().expect("budgets").iter().find(|row| row["budget"] == name).cloned()
    };
    assert_eq!(
        of("web").expect("a row")["drains"][0]["blockedSince"],
        "2026-11-29T13:00:00.000Z",
        "{budgets:#}"
    );
    assert_eq!(of("api").expect("a row")["drains"][0]["blockedSince"], Value::Null, "its pods may leave");

    objects.named("Pod", "build-1-0")["metadata"]["annotations"] = json!({});
    let text = shown(&objects).await;
    assert!(
        text.contains("blocked 2h00m by PodDisruptionBudget shop/web ·"),
        "although others may leave: {text}"
    );
}

/// Kubernetes 1.37.1 `pkg/controller/deployment/sync.go`, `scale`: the pods that a Deployment adds may become Ready, so
/// the drain waits for them.
#[tokio::test]
async fn a_drain_waits_for_the_pods_that_a_deployment_would_add() {
    let mut objects = cluster(NOW);
    forbid_evictions_of_web(&mut objects);
    let shell = Shell::new();
    let file = shell.file("objects.json", &objects.list());
    let scaled = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}, "spec": {"replicas": 4},
    });
    let with = shell.file("with.json", &scaled.to_string());
    let drain = ["plan", "drain", "n2", "--from", &file, "--complete"];
    let now = shell.run(&drain).await;
    assert_eq!(now.code, BLOCKED, "{}", now.out);
    let then = shell.run(&[&drain[..], &["--with", &with]].concat()).await;
    assert_eq!(then.code, STALLS, "{}", then.out);
    assert!(then.out.contains("pods are missing") && !then.out.contains("never be allowed"), "{}", then.out);
    assert!(then.err.contains("the pods that it adds (1) are not modelled"), "{}", then.err);
}

/// Kubernetes 1.37.1 `pkg/volume/csi/csi_plugin.go`, `skipAttach`: the volumes of a driver without `attachRequired` are
/// attached to no node, so no replacement waits until they are detached.
#[tokio::test]
async fn a_volume_whose_driver_attaches_nothing_stays_on_no_dead_node() {
    let outcome = async |driver: Option<Value>| {
        let mut objects = cluster(NOW);
        objects.0.push(json!({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv", "uid": "pv"},
            "spec": {"accessModes": ["ReadWriteOnce"], "claimRef": {"namespace": "shop", "name": "data"},
                "csi": {"driver": "files.example.com", "volumeHandle": "v"}},
            "status": {"phase": "Bound"},
        }));
        objects.0.push(json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": "data", "namespace": "shop", "uid": "data", "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
            },
            "spec": {"accessModes": ["ReadWriteOnce"], "volumeName": "pv"}, "status": {"phase": "Bound"},
        }));
        let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
        objects.named("Pod", "web-1-1")["spec"]["volumes"] = volumes.clone();
        objects.named("ReplicaSet", "web-1")["spec"]["template"]["spec"]["volumes"] = volumes;
        objects.0.extend(driver.map(|spec| {
            json!({
                "apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": "files.example.com"}, "spec": spec,
            })
        }));
        let impact = objects.answer("plan node-failure n2", DONE).await;
        impact["replacements"][0]["outcome"].clone()
    };
    assert_eq!(outcome(None).await, "stuck", "a driver without an object attaches its volumes");
    assert_eq!(outcome(Some(json!({"attachRequired": true}))).await, "stuck");
    assert_eq!(outcome(Some(json!({}))).await, "stuck", "the default");
    assert_eq!(outcome(Some(json!({"attachRequired": false}))).await, "moves");
}
