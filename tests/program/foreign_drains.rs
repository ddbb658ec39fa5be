//! Checks the state of nodes with the marks of other projects, and their explanation by `kordon why`. The marks are on
//! Node objects, as the projects write them. Their sources are also in `cluster/drain_markers.rs`.

mod marks;

use std::{fs, path::Path};

use serde_json::{Value, json};

use self::marks::cases;
use super::case_objects::{DONE, Objects, verdict};

/// The newest time in the objects. The clock stands at this time.
const NOW: &str = "2026-11-29T10:00:00Z";

/// Time at which the nodes were cordoned: two hours before [`NOW`].
const CORDONED: &str = "2026-11-29T08:00:00Z";

/// A node with a mark, and the expected output of kordon.
struct Case {
    name: &'static str,
    /// Fields of the Node object, in addition to the fields of a Ready node.
    node: Value,
    /// Text in the state column of the table, up to the end of the cell.
    state: &'static str,
    /// Steps of the explanation.
    why: &'static [&'static str],
}

/// A cordoned node: the taint that the node lifecycle controller adds, and the manager in `metadata.managedFields`.
fn cordoned(manager: &str) -> Value {
    json!({
        "metadata": {"managedFields": [
            {"manager": "kubelet", "operation": "Update", "apiVersion": "v1", "time": NOW, "fieldsType": "FieldsV1",
                "fieldsV1": {"f:status": {"f:conditions": {}}}, "subresource": "status"},
            {"manager": manager, "operation": "Update", "apiVersion": "v1", "time": "2026-11-29T08:30:00Z",
                "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:unschedulable": {}}}}]},
        "spec": {"unschedulable": true, "taints": [
            {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", "timeAdded": CORDONED}]},
    })
}

fn annotations(annotations: Value) -> Value {
    json!({"metadata": {"annotations": annotations}})
}

fn labels(labels: Value) -> Value {
    json!({"metadata": {"labels": labels}})
}

fn taint(key: &str, value: &str, added: Option<&str>) -> Value {
    let mut taint = json!({"key": key, "effect": "NoSchedule"});
    if !value.is_empty() {
        taint["value"] = value.into();
    }
    if let Some(added) = added {
        taint["timeAdded"] = added.into();
    }
    json!({"spec": {"taints": [taint]}})
}

fn conditions(conditions: Value) -> Value {
    json!({"status": {"conditions": conditions}})
}

/// Merges the fields of `over` into `under`. The items of lists are appended.
fn merge(under: &mut Value, over: Value) {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            for (key, value) in over {
                merge(under.entry(key).or_insert(Value::Null), value);
            }
        }
        (Value::Array(under), Value::Array(over)) => under.extend(over),
        (under, over) => *under = over,
    }
}

fn both(mut under: Value, over: Value) -> Value {
    merge(&mut under, over);
    under
}

fn ready(status: &str, message: &str) -> Value {
    json!([{"type": "Ready", "status": status, "reason": if status == "True" { "KubeletReady" } else { "KubeletNotReady" },
        "message": message, "lastHeartbeatTime": NOW, "lastTransitionTime": "2026-11-29T09:59:50Z"}])
}

fn node(case: &Case) -> Value {
    let mut node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": case.name, "uid": format!("uid-{}", case.name), "resourceVersion": "1",
            "creationTimestamp": "2026-11-01T00:00:00Z", "labels": {"kubernetes.io/hostname": case.name}},
        "spec": {},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    });
    if case.node["status"]["conditions"].as_array().is_none_or(|list| list[0]["type"] != "Ready") {
        merge(&mut node, conditions(ready("True", "kubelet is posting ready status")));
    }
    merge(&mut node, case.node.clone());
    node
}

/// kured's DaemonSet with the locks of three nodes, as `DaemonSetMultiLock.Acquire` writes them.
fn locked() -> Value {
    let lock = |node: &str| json!({"nodeID": node, "metadata": {"unschedulable": false}, "created": "2026-11-29T08:59:59.876543211Z", "TTL": 0});
    let locks = json!({"maxOwners": 3,
        "locks": [lock("kured-locked"), lock("kured-locked-away"), lock("kured-locked-back")]});
    json!({"apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "kured", "namespace": "kube-system", "uid": "kured", "resourceVersion": "1",
            "creationTimestamp": "2026-11-01T00:00:00Z",
            "annotations": {"weave.works/kured-node-lock": locks.to_string()}},
        "spec": {"selector": {"matchLabels": {"name": "kured"}},
            "template": {"metadata": {"labels": {"name": "kured"}}, "spec": {"containers": [{"name": "kured"}]}}}})
}

/// kured's pods. An explanation reads kured's lock only if such a pod is on the node.
fn kured_pods() -> [Value; 3] {
    ["kured-locked", "kured-locked-away", "kured-locked-back"].map(|node| {
        let name = format!("kured-on-{node}");
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "kube-system", "uid": name, "resourceVersion": "1",
                "creationTimestamp": "2026-11-01T00:00:00Z",
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "kured", "uid": "kured",
                    "controller": true}]},
            "spec": {"nodeName": node, "containers": [{"name": "kured"}]},
            "status": {"phase": "Running"}})
    })
}

/// The pods of jobs of the system-upgrade-controller.
fn upgrades() -> [Value; 2] {
    [("suc", "Running"), ("suc-failed", "Failed")].map(|(node, phase)| {
        let name = format!("apply-os-on-{node}-with-1");
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "cattle-system", "uid": name, "resourceVersion": "1",
                "creationTimestamp": "2026-11-29T07:59:50Z",
                "labels": {"upgrade.cattle.io/plan": "os", "upgrade.cattle.io/node": node}},
            "spec": {"nodeName": node, "restartPolicy": "Never", "containers": [{"name": "upgrade"}]},
            "status": {"phase": phase}})
    })
}

/// A Ready pod in the namespace `shop`. Its label `app` is its name up to the first dash.
fn pod_on(node: &str, name: &str) -> Value {
    let app = name.split('-').next();
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "uid": name, "resourceVersion": "1",
            "creationTimestamp": "2026-11-01T00:00:00Z", "labels": {"app": app}},
        "spec": {"nodeName": node, "containers": [{"name": "c"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}})
}

/// The pods of the nodes that kubectl cordoned, and a budget that never allows the eviction of a pod `held`. The Eviction
/// API evicts the pod `leaving` (kubernetes v1.37.1: pkg/registry/core/pod/storage/eviction.go).
fn evicted() -> Vec<Value> {
    let mut leaving = pod_on("kubectl-evicts", "leaving");
    merge(
        &mut leaving,
        json!({"metadata": {"deletionTimestamp": "2026-11-29T10:00:20Z", "deletionGracePeriodSeconds": 30},
            "status": {"conditions": [{"type": "DisruptionTarget", "status": "True",
                "reason": "EvictionByEvictionAPI", "lastTransitionTime": "2026-11-29T09:59:50Z"}]}}),
    );
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "held", "namespace": "shop", "uid": "budget", "resourceVersion": "1", "generation": 1,
            "creationTimestamp": "2026-11-01T00:00:00Z"},
        "spec": {"minAvailable": 9, "selector": {"matchLabels": {"app": "held"}}},
        "status": {"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 2, "desiredHealthy": 9,
            "expectedPods": 2}});
    vec![
        leaving,
        pod_on("kubectl-refused", "held"),
        pod_on("kubectl-cordons", "held-too"),
        pod_on("kubectl-cordons", "free"),
        budget,
    ]
}

fn objects(cases: &[Case]) -> Objects {
    let mut objects: Vec<Value> = cases.iter().map(node).collect();
    objects.push(locked());
    objects.extend(upgrades());
    objects.extend(kured_pods());
    objects.extend(evicted());
    // As long as the node has a pod that a drain removes, the Node Maintenance Operator is not done.
    objects.push(json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "web", "namespace": "shop", "uid": "web", "resourceVersion": "1",
            "creationTimestamp": "2026-11-01T00:00:00Z"},
        "spec": {"nodeName": "nmo", "containers": [{"name": "c"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}));
    objects.push(
        json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "now", "namespace": "default",
        "uid": "now", "resourceVersion": "1", "creationTimestamp": NOW}, "lastTimestamp": NOW,
        "involvedObject": {"kind": "Node", "name": "kubectl"}, "reason": "Now", "message": "now"}),
    );
    objects.push(json!({"apiVersion": "v1", "kind": "Event",
        "metadata": {"name": "blocked", "namespace": "default", "uid": "blocked", "resourceVersion": "1",
            "creationTimestamp": CORDONED},
        "firstTimestamp": CORDONED, "lastTimestamp": CORDONED, "type": "Normal", "source": {"component": "karpenter"},
        "involvedObject": {"kind": "Node", "name": "karpenter-blocked"}, "reason": "DisruptionBlocked",
        "message": "PDB prevents pod evictions (PodDisruptionBudget=[shop/web])"}));
    Objects(objects)
}

#[tokio::test]
async fn the_state_of_a_node_says_which_project_works_on_it() {
    let cases = cases();
    let table = objects(&cases).table("nodes").await;
    for case in cases {
        let line = table.lines().find(|line| line.split_whitespace().next() == Some(case.name));
        let line = line.unwrap_or_else(|| panic!("{} is not in\n{table}", case.name));
        assert!(line.contains(case.state), "{}: {}\n{line}", case.name, case.state);
        if case.state.starts_with("Draining") || case.state.starts_with("Drained") {
            continue;
        }
        assert!(!line.contains("Drain"), "{}: {line}", case.name);
    }
}

#[tokio::test]
async fn why_node_names_the_mark_and_who_cordoned_the_node() {
    let cases = cases();
    let objects = objects(&cases);
    for case in cases.iter().filter(|case| !case.why.is_empty() || case.name == "forgotten") {
        let why = objects.answer(&format!("why node {}", case.name), DONE).await;
        let steps: Vec<&str> =
            why["steps"].as_array().expect("steps").iter().filter_map(|step| step["text"].as_str()).collect();
        for expected in case.why {
            let found = steps.iter().any(|step| step.starts_with(expected));
            assert!(found, "{}: {expected}\n{steps:#?}", case.name);
        }
        let is_named = case.why.iter().any(|step| step.starts_with("cordoned by"));
        let says_who = steps.iter().any(|step| step.starts_with("cordoned by"));
        let is_cordoned = case.node["spec"]["unschedulable"] == true;
        assert!(!is_named || says_who, "{}: {steps:#?}", case.name);
        assert_eq!(says_who, is_cordoned && case.name != "forgotten", "{}: {steps:#?}", case.name);
    }
}

#[tokio::test]
async fn a_blocked_drain_by_kubectl_is_in_the_verdict() {
    let cases: Vec<Case> = cases().into_iter().filter(|case| case.name == "kubectl-refused").collect();
    let is_there =
        |object: &Value| object["spec"]["nodeName"].as_str().is_none_or(|node| node == "kubectl-refused");
    let objects = evicted().into_iter().filter(is_there).chain([node(&cases[0])]);
    let objects = Objects(objects.collect());
    let status = objects.answer("status", DONE).await;
    let verdict = status["verdict"]["text"].as_str().expect("a text");
    let blocked = "drain of kubectl-refused by kubectl blocked ";
    assert!(verdict.contains(blocked) && verdict.contains("PodDisruptionBudget shop/held"), "{verdict}");
}

/// A node whose only pod a budget keeps from eviction.
fn refused(name: &'static str, fields: Value) -> Vec<Value> {
    let case = Case { name, node: fields, state: "", why: &[] };
    let is_budget = |object: &Value| object["kind"] == "PodDisruptionBudget";
    evicted().into_iter().filter(is_budget).chain([node(&case), pod_on(name, "held")]).collect()
}

/// Asserts that the state of the node and the verdict say that `by` drains the node, and that the drain is blocked.
async fn assert_blocked(objects: Vec<Value>, name: &str, by: &str) {
    let objects = Objects(objects);
    let table = objects.table("nodes").await;
    assert!(table.contains(&format!("Draining by {by} 2h")), "{table}");
    let status = objects.answer("status", DONE).await;
    let verdict = verdict(&status);
    let blocked = format!("drain of {name} by {by} blocked ");
    assert!(verdict.contains(&blocked) && verdict.contains("PodDisruptionBudget shop/held"), "{verdict}");
}

/// The drain does not evict the pod of its own job: rancher/system-upgrade-controller d357e23, `pkg/upgrade/job/job.go`.
#[tokio::test]
async fn a_blocked_drain_by_an_upgrade_job_is_in_the_verdict() {
    let [mut job, _] = upgrades();
    merge(
        &mut job,
        json!({"metadata": {"labels": {"upgrade.cattle.io/controller": "system-upgrade-controller"}},
            "status": {"phase": "Pending"}}),
    );
    let mut objects = refused("suc", cordoned("kubectl"));
    objects.push(job);
    assert_blocked(objects, "suc", "system-upgrade-controller").await;
}

/// Other controllers have the field manager `manager` too, so only a node that has a Machine counts as Cluster API's.
/// Source: kubernetes-sigs/cluster-api v1.14.0: `core/reconcilers/machine/drain/drain.go`, `api/core/v1beta2/common_types.go`.
#[tokio::test]
async fn a_blocked_drain_of_a_machine_is_named_after_cluster_api() {
    let machine = annotations(json!({"cluster.x-k8s.io/machine": "c1-md-0-abcde"}));
    assert_blocked(refused("machine", both(cordoned("manager"), machine.clone())), "machine", "Cluster API")
        .await;
    assert_blocked(refused("machine", both(cordoned("kubectl"), machine)), "machine", "kubectl").await;
    let other = Objects(refused("other", cordoned("manager"))).table("nodes").await;
    assert!(other.contains("Draining 2h"), "{other}");
}

#[test]
fn every_mark_of_the_page_has_a_case_and_a_version() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/owners.md");
    let page = fs::read_to_string(page).expect("the page");
    let objects: Vec<Value> =
        cases().iter().map(node).chain([locked()]).chain(upgrades()).chain(evicted()).collect();
    let objects = Value::from(objects).to_string();
    let (_, table) = page.split_once("| Mark |").expect("the table");
    // The rest of the head comes first, then the line below it.
    for row in table.lines().skip(2).take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, mark, _, _, _, _, version, _] = cells[..] else { panic!("{row}") };
        assert!(!version.is_empty(), "{mark} has no version");
        for key in mark.split('`').skip(1).step_by(2) {
            assert!(objects.contains(key.trim_end_matches('…')), "{key} has no case");
        }
    }
}

/// The kubelet of a machine that shuts down ends the pods: kubernetes v1.37.1,
/// `pkg/kubelet/nodeshutdown/nodeshutdown_manager.go`.
#[tokio::test]
async fn a_forecast_has_the_pods_that_the_kubelet_of_a_stopping_machine_ends() {
    let cases: Vec<Case> = cases().into_iter().filter(|case| case.name == "shutdown").collect();
    let Objects(mut objects) = objects(&cases);
    objects.push(json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "db", "namespace": "shop", "uid": "db", "resourceVersion": "1",
            "creationTimestamp": "2026-11-01T00:00:00Z"},
        "spec": {"nodeName": "shutdown", "terminationGracePeriodSeconds": 60, "containers": [{"name": "c"}],
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": 300}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}));
    let forecast = Objects(objects).answer("forecast", DONE).await;
    let steps = forecast["steps"].as_array().expect("steps");
    let end = steps.iter().find(|step| step["type"] == "end").unwrap_or_else(|| panic!("{forecast:#}"));
    assert_eq!((&end["pod"], &end["node"]), (&json!("db"), &json!("shutdown")));
    // The machine has been shutting down for ten seconds.
    assert_eq!(end["inSeconds"], 50.0);
    assert_eq!(forecast["totals"]["ended"], 1);
    let assumptions = forecast["assumptions"].to_string();
    assert!(
        assumptions.contains("shutting down: shutdown; the kubelets end their pods by the times"),
        "{assumptions}"
    );
}

#[tokio::test]
async fn the_status_says_who_cordoned_a_node_and_for_how_long() {
    let cases: Vec<Case> =
        cases().into_iter().filter(|case| ["kubectl", "nmo"].contains(&case.name)).collect();
    let objects = Objects(cases.iter().map(node).collect());
    let table = objects.table("status").await;
    let (_, cordons) = table.split_once("CORDONED NODE").unwrap_or_else(|| panic!("{table}"));
    for (name, cells) in [("kubectl", ["kubectl", "2h00m"]), ("nmo", ["manager", "~2h00m"])] {
        let line = cordons.lines().find(|line| line.split_whitespace().next() == Some(name));
        let line = line.unwrap_or_else(|| panic!("{name} is not in\n{table}"));
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        assert!(cells.iter().all(|cell| words.contains(cell)), "{line}");
    }
    let status = objects.answer("status", DONE).await;
    let nodes = status["nodes"].as_array().expect("nodes");
    for (name, by, may_be_older) in [("kubectl", "kubectl", false), ("nmo", "manager", true)] {
        let node = nodes.iter().find(|node| node["name"] == name).expect("a node");
        let origin = &node["cordonOrigin"];
        assert_eq!((&origin["by"], &origin["mayBeOlder"]), (&json!(by), &json!(may_be_older)));
        assert!(origin["at"].as_str().is_some_and(|at| at.starts_with("2026-11-29T08:00:00")), "{origin}");
    }
}

#[tokio::test]
async fn a_zone_whose_only_node_shuts_down_is_said_to_do_so() {
    let zone = |name: &str| labels(json!({"topology.kubernetes.io/zone": name}));
    let stops = cases().into_iter().find(|case| case.name == "shutdown").expect("a case");
    let runs = Case { name: "runs", node: zone("b"), state: "Ready", why: &[] };
    let objects = Objects(vec![both(node(&stops), zone("a")), node(&runs)]);
    let status = objects.answer("status", DONE).await;
    let verdict = status["verdict"]["text"].as_str().expect("a text");
    assert!(verdict.contains("zone a down (1 of 1), shutting down"), "{verdict}");
}

/// The kubelet of a machine that shuts down rejects new pods (kubernetes v1.37.1:
/// `pkg/kubelet/nodeshutdown/nodeshutdown_manager.go`, `NodeShutdownNotAdmittedReason`), and ends those that it knows.
#[tokio::test]
async fn a_pod_that_a_stopping_kubelet_never_accepted_is_not_ended_by_it() {
    let cases: Vec<Case> = cases().into_iter().filter(|case| case.name == "shutdown").collect();
    let mut log = pod_on("shutdown", "log");
    log["status"] = json!({"phase": "Pending"});
    log["metadata"]["ownerReferences"] = json!([
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "log", "uid": "log-set", "controller": true}]);
    log["spec"]["tolerations"] =
        json!([{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}]);
    let objects = Objects(vec![node(&cases[0]), log]);
    let why = objects.answer("why pod log -n shop", DONE).await["steps"].to_string();
    assert!(why.contains("it does not run before the machine is back"), "{why}");
    assert!(!why.contains("the kubelet ends it"), "{why}");
    let status = objects.answer("status", DONE).await;
    let evictions = status["evictions"].as_array().expect("evictions");
    assert!(evictions.iter().all(|eviction| eviction["state"] != "scheduled"), "{evictions:#?}");
}

#[tokio::test]
async fn a_cordon_is_as_old_as_its_taint() {
    let cases = cases();
    let objects = objects(&cases);
    let cordon = async |node: &str| {
        let why = objects.answer(&format!("why node {node}"), DONE).await;
        let steps = why["steps"].as_array().expect("steps").clone();
        let step = steps.into_iter().find(|step| step["topic"] == "cordon").expect("a step");
        (step["at"].as_str().expect("a time").to_owned(), step["estimated"].as_bool().expect("a flag"))
    };
    let is_cordoned = |at: &str| at.starts_with("2026-11-29T08:00:00");
    let (at, is_estimated) = cordon("kubectl").await;
    assert!(is_cordoned(&at) && !is_estimated, "{at}");
    // The taints of the Node Maintenance Operator have no times, so the last write of its field manager is the best
    // estimate.
    let (at, is_estimated) = cordon("nmo").await;
    assert!(is_cordoned(&at) && is_estimated, "{at}");
}
