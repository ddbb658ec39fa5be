//! Remedies for refused evictions: what would help, and what would not. Tested with the objects of [`super::cases`].

use serde_json::{Value, json};

use super::{
    case_objects::{BLOCKED, DONE, Objects, STALLS},
    small_clusters::{NOW, add_deployment, add_node, claim_for_drain, cluster},
};

const CRASHING: &str = "06-crashloop-under-budget";

/// Makes a pod Ready.
fn repair(objects: &mut Objects, pod: &str) {
    let conditions = objects.named("Pod", pod)["status"]["conditions"].as_array_mut().expect("conditions");
    conditions.iter_mut().filter(|condition| condition["type"] == "Ready").for_each(|ready| {
        ready["status"] = "True".into();
    });
}

/// Returns the texts of the verdicts on the pods of a plan.
fn texts(plan: &Value) -> String {
    let pods = plan["pods"].as_array().expect("pods").iter();
    pods.map(|pod| pod["text"].as_str().expect("a text")).collect::<Vec<_>>().join("\n")
}

fn words(why: &Value) -> Vec<&str> {
    let actions = why["actions"].as_array().expect("actions").iter();
    actions.map(|action| action["action"].as_str().expect("a word")).collect()
}

/// The API server reads the policy only if the evicted pod is not Ready (upstream
/// `pkg/registry/core/pod/storage/eviction.go`, 1.37).
#[tokio::test]
async fn a_policy_for_unhealthy_pods_is_advised_for_these_pods_only() {
    let mut objects = Objects::of(CRASHING);
    repair(&mut objects, "crash-5b4d855bc7-wdgjh");
    let plan = objects.answer("plan drain c4x-n2", BLOCKED).await;
    assert!(texts(&plan).contains("CrashLoopBackOff"), "{}", texts(&plan));
    assert!(!texts(&plan).contains("AlwaysAllow"), "the pod is Ready: {}", texts(&plan));
    let why = objects.answer("why pod crash-5b4d855bc7-wdgjh -n c4x", DONE).await;
    assert!(!words(&why).contains(&"alwaysAllow"), "{why:#}");
    let plan = objects.answer("plan drain c4x-n1 --force", BLOCKED).await;
    assert!(texts(&plan).contains("AlwaysAllow"), "the bare pod is not: {}", texts(&plan));
    let why = objects.answer("why pod bare -n c4x", DONE).await;
    assert!(words(&why).contains(&"alwaysAllow"), "{why:#}");
    let budget = objects.named("PodDisruptionBudget", "bare");
    budget["spec"]["unhealthyPodEvictionPolicy"] = "AlwaysAllow".into();
    objects.answer("plan drain c4x-n1 --force", DONE).await;
}

/// A budget with a fixed number may need more than one pod more.
#[tokio::test]
async fn as_many_replicas_are_advised_as_the_budget_needs() {
    for (least, replicas) in [(2, Some("--replicas=3")), (3, Some("--replicas=4")), (9, None)] {
        let mut objects = cluster(NOW);
        let budget = json!({"minAvailable": least, "selector": {"matchLabels": {"app": "api"}}});
        add_deployment(&mut objects, "api", &["n1", "n2"], budget);
        let status = &mut objects.named("PodDisruptionBudget", "api")["status"];
        (status["desiredHealthy"], status["disruptionsAllowed"]) = (least.into(), 0.into());
        let why = objects.answer("why pod api-1-0 -n shop", DONE).await;
        let actions = why["actions"].as_array().expect("actions");
        let scale = actions.iter().find(|action| action["action"] == "scaleUp");
        let command = scale.map(|action| action["command"].as_str().expect("a command"));
        match replicas {
            None => assert_eq!(command, None, "more than twice as many are needed"),
            Some(replicas) => assert!(command.expect("it is advised").contains(replicas), "{command:?}"),
        }
    }
}

/// A drain with `--surge` scales the Deployment up, so that the budget then allows the eviction.
#[tokio::test]
async fn a_drain_that_scales_a_deployment_up_is_waited_for_until_it_ends() {
    let mut objects = cluster(NOW);
    let budget = json!({"minAvailable": 1, "selector": {"matchLabels": {"app": "api"}}});
    add_deployment(&mut objects, "api", &["n1"], budget);
    let status = &mut objects.named("PodDisruptionBudget", "api")["status"];
    (status["desiredHealthy"], status["disruptionsAllowed"]) = (1.into(), 0.into());
    let surges = json!([{"deployment": "shop/api", "uid": "api", "replicas": 1}]);
    let claim = json!({
        "by": "ann", "operation": "drain-1", "renewed": NOW, "pods": 1, "stay": 0, "surges": surges,
    });
    claim_for_drain(&mut objects, "n1", NOW, &claim);
    let why = objects.answer("why node n1", DONE).await;
    let mut actions = why["actions"].as_array().expect("actions").iter();
    let wait = actions.find(|action| action["action"] == "wait").expect("a wait");
    let text = wait["text"].as_str().expect("a text");
    assert!(text.starts_with("until its drain ends") && !text.contains("does not end"), "{text}");
}

/// Drains that wait for each other end once one of the nodes is uncordoned, so the budgets may stay as they are.
#[tokio::test]
async fn the_way_out_of_drains_that_wait_for_each_other_is_the_same_everywhere() {
    let objects = Objects::of("08-drains-block-each-other");
    let uncordon = "kubectl uncordon c5-b";
    for (pod, expected) in
        [("kas-545b849f84-mrghr", vec!["uncordon"]), ("kas-545b849f84-lsdwf", vec!["uncordon", "delete"])]
    {
        let why = objects.answer(&format!("why pod {pod} -n c5"), DONE).await;
        assert_eq!(words(&why), expected, "{why:#}");
        assert_eq!(why["actions"][0]["command"], uncordon, "{why:#}");
    }
    let why = objects.answer("why pod kas-545b849f84-mrghr -n c5", DONE).await["steps"].to_string();
    assert!(why.contains("drains of c5-a and c5-b wait for each other"), "{why}");
    let audit = objects.answer("audit --fail-on never", DONE).await;
    let mut findings = audit["findings"].as_array().expect("findings").iter();
    let kas = findings.find(|finding| finding["name"] == "kas").expect("a finding about the budget");
    assert_eq!(kas["fixes"].as_array().map(Vec::len), Some(1), "{kas:#}");
    assert_eq!(kas["fixes"][0]["command"], uncordon, "{kas:#}");
}

#[tokio::test]
async fn that_the_node_of_a_pod_is_ready_is_not_taken_for_the_pod() {
    let why = Objects::of(CRASHING).answer("why pod crash-5b4d855bc7-wdgjh -n c4x", DONE).await;
    let steps = why["steps"].as_array().expect("steps").iter();
    let ready: Vec<&Value> =
        steps.filter(|step| step["topic"] == "ready").map(|step| &step["text"]).collect();
    assert_eq!(ready, ["node c4x-n2 is Ready"], "{why:#}");
}

/// A pod whose probe fails may become Ready again, but nobody knows when.
#[tokio::test]
async fn a_pod_whose_probe_fails_may_go_if_its_budget_allows_that() {
    let mut objects = Objects::of(CRASHING);
    for pod in ["crash-5b4d855bc7-wdgjh", "crash-5b4d855bc7-vdhvb"] {
        let pod = objects.named("Pod", pod);
        // Two hours before the newest time in the objects.
        let started = "2026-11-27T14:25:34Z";
        pod["metadata"]["creationTimestamp"] = started.into();
        pod["status"]["startTime"] = started.into();
        for condition in pod["status"]["conditions"].as_array_mut().expect("conditions") {
            condition["lastTransitionTime"] = started.into();
        }
        let status = &mut pod["status"]["containerStatuses"][0];
        status["state"] = json!({"running": {"startedAt": started}});
        status["lastState"] = json!({});
        status["restartCount"] = 0.into();
    }
    let plan = objects.answer("plan drain c4x-n2", STALLS).await;
    let advice = "; if they do not recover, set unhealthyPodEvictionPolicy: AlwaysAllow";
    assert!(texts(&plan).ends_with(advice), "{}", texts(&plan));
    objects.named("PodDisruptionBudget", "crash")["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "example.com/v1", "kind": "Kafka", "name": "events", "uid": "u", "controller": true,
    }]);
    let plan = objects.answer("plan drain c4x-n2", STALLS).await;
    assert!(!texts(&plan).contains("AlwaysAllow"), "its owner undoes a change: {}", texts(&plan));
}

#[tokio::test]
async fn a_suggested_cordon_names_the_switchover_that_it_causes_once() {
    for placement in ["", " --placement"] {
        let objects = Objects::of("01-operator-budget-switchover");
        let why = objects.answer(&format!("why node c9-n1{placement}"), DONE).await;
        for action in ["cordon", "drain"] {
            let actions = why["actions"].as_array().expect("actions");
            let found = actions.iter().find(|found| found["action"] == action).expect("it is suggested");
            let moves = "CloudNativePG moves the role of 1 pod away from c9-n1";
            assert_eq!(found["cautions"].to_string().matches(moves).count(), 1, "{found:#}");
        }
    }
}

/// A Kubernetes operator reverts changes of its budget and of the scale of its workload.
#[tokio::test]
async fn what_an_operator_owns_is_left_to_it() {
    let mut objects = Objects::of("01-operator-budget-switchover");
    let why = objects.answer("why pod db-1 -n c9", DONE).await;
    let commands: Vec<&Value> =
        why["actions"].as_array().expect("actions").iter().map(|action| &action["command"]).collect();
    assert!(!json!(commands).to_string().contains("pdb"), "{commands:?}");
    assert!(why.to_string().contains("to its operator: CloudNativePG"), "{why:#}");

    objects = Objects::of(CRASHING);
    let pod = "why pod crash-5b4d855bc7-wdgjh -n c4x";
    repair(&mut objects, "crash-5b4d855bc7-wdgjh");
    assert!(words(&objects.answer(pod, DONE).await).contains(&"relaxBudget"));
    objects.named("PodDisruptionBudget", "crash")["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "example.com/v1", "kind": "Kafka", "name": "events", "uid": "u", "controller": true,
    }]);
    let why = objects.answer(pod, DONE).await;
    assert!(!words(&why).contains(&"relaxBudget"), "{why:#}");
    assert!(why.to_string().contains("the controller of Kafka/events"), "{why:#}");
}

/// A command reads only what its answer needs, which includes the other instances of a primary.
#[tokio::test]
async fn an_operator_is_waited_for_only_if_it_has_another_instance() {
    let mut objects = Objects::of("01-operator-budget-switchover");
    let cordon = objects.answer("plan cordon c9-n1", DONE).await;
    let warnings = cordon["warnings"].to_string();
    assert!(warnings.contains("CloudNativePG moves the role of 1 pod away from c9-n1"), "{warnings}");
    let why = objects.answer("why pod db-1 -n c9", DONE).await.to_string();
    assert!(why.contains("to its operator") && !why.contains("add an instance"), "{why}");
    objects.without("Pod", "db-2");
    objects.without("Pod", "db-3");
    let why = objects.answer("why pod db-1 -n c9", DONE).await.to_string();
    assert!(why.contains("add an instance") && !why.contains("to its operator"), "{why}");
}

/// The list of budgets agrees with the plan of a drain.
#[tokio::test]
async fn a_budget_that_an_operator_lifts_waits_for_no_other_pod() {
    let objects = Objects::of("01-operator-budget-switchover");
    let budgets = objects.answer("budgets", DONE).await;
    let budgets = budgets["budgets"].as_array().expect("budgets").iter();
    let rooms: Vec<&Value> = budgets.map(|budget| &budget["room"]).collect();
    assert!(rooms.contains(&&json!("operator")), "{rooms:?}");
}

/// A second deletion of a terminating pod changes nothing (upstream
/// `staging/src/k8s.io/apiserver/pkg/registry/rest/delete.go`, 1.37).
#[tokio::test]
async fn a_finished_pod_that_terminates_on_a_dead_node_stays_there() {
    let mut objects = Objects::of("24-terminating-on-dead-node");
    objects.named("Pod", "db-0")["status"]["phase"] = "Succeeded".into();
    let plan = objects.answer("plan drain c23-n1", STALLS).await;
    assert_eq!(plan["pods"][0]["deleted"]["likelySeconds"], Value::Null, "{plan:#}");
}

/// Whoever decides about a dead node asks when its pods run again.
#[tokio::test]
async fn what_ends_a_dead_node_says_when_the_replacement_is_ready() {
    let objects = Objects::of("25-out-of-service-plan");
    for subject in ["node c23-n1", "pod db-0 -n c23"] {
        let why = objects.answer(&format!("why {subject} --placement"), DONE).await;
        let effect = |word: &str| {
            let actions = why["actions"].as_array().expect("actions").iter();
            let effects = actions.filter(|action| action["action"] == word).map(|action| &action["effect"]);
            effects.filter_map(Value::as_str).collect::<String>()
        };
        for (word, ready) in [("outOfService", "~20s"), ("forceDelete", "~10s"), ("deleteNode", "~1m00s")] {
            let ready = format!("; the replacement is Ready in {ready}");
            assert!(effect(word).ends_with(&ready), "{subject}, {word}: {}", effect(word));
        }
    }
}

/// CSIDrivers say whether a volume is attached; a driver without such an object attaches its volumes.
#[tokio::test]
async fn csi_drivers_are_read_for_a_volume_that_may_stay_attached() {
    let mut objects = Objects::of("24-terminating-on-dead-node");
    let pod = objects.named("Pod", "db-0");
    pod["spec"]["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    let namespace = pod["metadata"]["namespace"].clone();
    let command = format!("why pod db-0 -n {}", namespace.as_str().expect("a namespace"));
    objects.0.extend([
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": namespace, "uid": "claim"},
            "spec": {"accessModes": ["ReadWriteOnce"], "volumeName": "volume"}, "status": {"phase": "Bound"}}),
        json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "volume", "uid": "volume"},
            "spec": {"accessModes": ["ReadWriteOnce"], "csi": {"driver": "csi.example.com", "volumeHandle": "v"}}}),
    ]);
    let why = objects.answer(&command, DONE).await.to_string();
    assert!(why.contains("ReadWriteOnce volume data stays attached: detached by force"), "{why}");
    objects.0.push(json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver",
        "metadata": {"name": "csi.example.com"}, "spec": {"attachRequired": false}}));
    let why = objects.answer(&command, DONE).await.to_string();
    assert!(!why.contains("stays attached"), "{why}");
}

/// Kubernetes 1.37 `plugins/volumebinding/binder.go`, `hasEnoughCapacity`.
#[tokio::test]
async fn storage_capacities_are_read_for_a_claim_that_waits_for_a_new_volume() {
    let mut objects = Objects(Vec::new());
    add_node(&mut objects, "n1", NOW);
    objects.0.extend([
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "db", "namespace": "shop", "uid": "db", "creationTimestamp": "2026-11-29T14:00:00Z"},
            "spec": {"containers": [{"name": "c", "image": "db:1"}],
                "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]},
            "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
                "reason": "Unschedulable", "lastTransitionTime": "2026-11-29T14:00:01Z"}]}}),
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "shop", "uid": "claim"},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "local",
                "resources": {"requests": {"storage": "5Gi"}}},
            "status": {"phase": "Pending"}}),
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "local"},
            "provisioner": "local.example.com", "volumeBindingMode": "WaitForFirstConsumer"}),
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver",
            "metadata": {"name": "local.example.com"}, "spec": {"storageCapacity": true}}),
    ]);
    let command = "why pod db -n shop --placement";
    let why = objects.answer(command, DONE).await.to_string();
    assert!(why.contains("\"caveats\":[\"capacity\""), "{why}");
    objects.0.push(json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity",
        "metadata": {"name": "n1", "namespace": "kube-system"}, "storageClassName": "local", "capacity": "1Gi",
        "nodeTopology": {"matchLabels": {"kubernetes.io/hostname": "n1"}}}));
    let why = objects.answer(command, DONE).await.to_string();
    assert!(why.contains("not enough free storage"), "{why}");
    assert!(!why.contains("\"caveats\":[\"capacity\""), "{why}");
}

/// kubectl waits until the pod is gone or a pod of the same name has another UID (upstream `pkg/drain/drain.go`,
/// `WaitForDelete`, 1.37), and drains one node after the other.
#[tokio::test]
async fn what_kubectl_does_otherwise_stands_beside_its_command() {
    let plan = Objects::of("18-template-names-node").answer("plan drain c14-n1", STALLS).await;
    let differences = plan["commandDifferences"].to_string();
    assert!(differences.contains("ends with success while pods are back on c14-n1"), "{differences}");
    let plan = Objects::of(CRASHING).answer("plan drain c4x-n2 c4x-n3", BLOCKED).await;
    let differences = plan["commandDifferences"].to_string();
    assert!(differences.contains("it never gets from c4x-n2 to c4x-n3"), "{differences}");
    let plan = Objects::of("39-finished-pod-drain").answer("plan drain e1-n1", DONE).await;
    assert_eq!(plan["commandDifferences"], json!([]));
}

/// A pod that has finished counts neither as staying nor as coming back.
#[tokio::test]
async fn finished_pods_are_not_counted_as_coming_back() {
    let mut objects = Objects::of("18-template-names-node");
    let mut finished = objects.named("Pod", "pinned-cc5c7c66-zg58z").clone();
    finished["metadata"]["name"] = "pinned-cc5c7c66-old".into();
    finished["metadata"]["uid"] = "old".into();
    finished["status"] = json!({"phase": "Failed", "reason": "OutOfcpu"});
    objects.0.push(finished);
    let plan = objects.answer("plan drain c14-n1", STALLS).await;
    assert!(plan["warnings"].to_string().contains("2 pods come back at once"), "{}", plan["warnings"]);
}
