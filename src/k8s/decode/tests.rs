//! Tests of the decoders on valid and invalid input.

use proptest::prelude::*;
use serde_json::json;

use super::{
    budget::BudgetDecoder, lease::LeaderDecoder, node::NodeDecoder, pod::PodDecoder,
    workload::WorkloadDecoder, *,
};
use kordon_core::cluster::{
    IndexFailures, IntOrPercent, Key, LocalStorage, LocalVolume, Node, OwnerKind, Phase, Pod, Requirement,
    Resources, SelectorOperator, TaintEffect, WorkloadKind, WorkloadStage,
};
use kordon_time::{ClusterTime, Span};

#[test]
fn the_time_of_a_heartbeat_is_that_of_the_manager_of_the_heartbeat() {
    let entry = |manager: &str, time: &str, kind: &str, field: &str| {
        json!({"manager": manager, "operation": "Update", "subresource": "status", "time": time, "fieldsV1": {
            "f:status": {"f:conditions": {".": {}, format!(r#"k:{{"type":"{kind}"}}"#): {".": {}, field: {}}}}}})
    };
    let node = node(json!({"metadata": {"name": "n1", "managedFields": [
        entry("kubelet", "2026-01-01T00:00:10Z", "Ready", "f:lastHeartbeatTime"),
        entry("kube-controller-manager", "2026-01-01T00:01:00Z", "Ready", "f:status"),
        entry("node-problem-detector", "2026-01-01T00:02:00Z", "KernelDeadlock", "f:lastHeartbeatTime"),
        {"manager": "stripped", "operation": "Update", "time": "2026-01-01T00:03:00Z"},
    ]}}));
    assert_eq!(node.heartbeat_written, ClusterTime::parse("2026-01-01T00:00:10Z"));
}

#[test]
fn a_node_keeps_what_is_read() {
    let node = node(json!({
        "metadata": {"name": "n1", "uid": "u", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"topology.kubernetes.io/zone": "a"}, "managedFields": [{"manager": "kubelet"}]},
        "spec": {"unschedulable": true, "taints": [
            {"key": "k", "value": "v", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:05Z"}]},
        "status": {"allocatable": {"cpu": "3920m", "memory": "16Gi", "pods": "110", "example.com/gpu": "2"},
            "addresses": [{"type": "Hostname", "address": "n1"}, {"type": "InternalIP", "address": "10.0.0.1"}],
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "fine",
                "lastHeartbeatTime": "2026-01-01T00:01:00Z", "lastTransitionTime": "2026-01-01T00:00:30Z"}],
            "nodeInfo": {"kubeletVersion": "v1.36.3", "kernelVersion": "6.1"}}
    }));
    assert_eq!((&*node.name, node.uid.to_string(), node.version.0), ("n1", "u".into(), 7));
    assert!(node.is_ready() && node.unschedulable && !node.terminating);
    assert_eq!(node.taints[0].to_string(), "k=v:NoExecute");
    assert_eq!(node.taints[0].time_added, ClusterTime::parse("2026-01-01T00:00:05Z"));
    assert_eq!(node.allocatable, Resources { cpu_milli: 3920, memory_bytes: 16 << 30, pods: 110 });
    assert_eq!((&*node.address, &*node.kubelet_version, &*node.zone().zone), ("10.0.0.1", "v1.36.3", "a"));
}

#[test]
fn a_node_that_is_not_ready_keeps_the_volumes_that_its_kubelet_uses() {
    let held = |ready: &str| {
        let node = node(json!({"metadata": {"name": "n1"}, "status": {
            "conditions": [{"type": "Ready", "status": ready}],
            "volumesInUse": ["kubernetes.io/csi/disk.example.com^used"],
            "volumesAttached": [
                {"name": "kubernetes.io/csi/disk.example.com^used", "devicePath": ""},
                {"name": "kubernetes.io/csi/disk.example.com^unmounted", "devicePath": ""}]}}));
        node.held_volumes.iter().map(|(driver, handle)| format!("{driver} {handle}")).collect::<Vec<_>>()
    };
    assert_eq!(held("Unknown"), ["disk.example.com used"]);
    assert_eq!(held("True"), [""; 0]);
}

/// component-helpers of 1.37, `nodedeclaredfeatures/features`.
#[test]
fn pods_require_the_features_that_nodes_declare() {
    let restart = |action: &str| json!([{"name": "c", "restartPolicyRules": [{"action": action}]}]);
    let plain = json!([{"name": "c"}]);
    for (spec, expected) in [
        (
            json!({"containers": restart("RestartAllContainers")}),
            &["RestartAllContainersOnContainerExits"][..],
        ),
        (json!({"containers": restart("Restart")}), &[]),
        (
            json!({"containers": plain, "initContainers": restart("RestartAllContainers")}),
            &["RestartAllContainersOnContainerExits"],
        ),
        (json!({"containers": plain, "hostNetwork": true}), &[]),
        (json!({"containers": plain, "hostNetwork": true, "hostUsers": true}), &[]),
        (json!({"containers": plain, "hostUsers": false}), &[]),
        (
            json!({"containers": plain, "hostNetwork": true, "hostUsers": false}),
            &["UserNamespacesHostNetworkSupport"],
        ),
    ] {
        let pod = pod(json!({"metadata": {"name": "p"}, "spec": spec}));
        let required: Vec<&str> = pod.scheduling.required_features.iter().map(|name| &**name).collect();
        assert_eq!(required, expected, "{spec}");
    }
    let node = node(json!({"metadata": {"name": "n"}, "status": {"declaredFeatures": ["A", "B"]}}));
    let declared: Vec<&str> = node.declared_features.iter().map(|name| &**name).collect();
    assert_eq!(declared, ["A", "B"]);
}

#[test]
fn a_pod_keeps_why_it_ended_and_a_healthy_one_nothing_of_it() {
    let terminated = |reason: &str, code: i32| {
        json!({"terminated": {"reason": reason, "exitCode": code,
        "finishedAt": "2026-01-01T00:00:09Z"}})
    };
    let status = |phase: &str, containers: Value| {
        let status = json!({"phase": phase, "reason": "Evicted", "message": "low on memory",
            "containerStatuses": containers});
        pod(json!({"metadata": {"name": "p", "namespace": "d"}, "status": status})).ending
    };
    let running = json!({"running": {"startedAt": "2026-01-01T00:00:10Z"}});
    let restarted =
        |reason: &str| json!([{"name": "c", "state": running, "lastState": terminated(reason, 137)}]);
    assert_eq!(status("Running", restarted("Error")), None, "a restart alone is kept by nobody");
    let killed = status("Running", restarted("OOMKilled")).expect("kept");
    assert_eq!(
        (&*killed.message, killed.exits[0].restarted, killed.exits[0].code),
        ("low on memory", true, 137)
    );
    assert!(killed.exits[0].is_oom_kill());
    let ended = status("Failed", json!([{"name": "c", "state": terminated("Error", 1)}])).expect("kept");
    assert_eq!(
        (&*ended.exits[0].container, &*ended.exits[0].reason, ended.exits[0].restarted),
        ("c", "Error", false)
    );
    assert_eq!(ended.exits[0].at, ClusterTime::parse("2026-01-01T00:00:09Z"));
    let long =
        pod(json!({"metadata": {"name": "p"}, "status": {"phase": "Failed", "message": "é".repeat(5000)}}))
            .ending
            .expect("kept");
    assert_eq!(long.message.chars().count(), 300);
}

#[test]
fn the_longest_pre_stop_sleep_of_containers_and_sidecars_counts() {
    let sleeping = |seconds: i64| json!({"preStop": {"sleep": {"seconds": seconds}}});
    let containers = json!([{"name": "a", "lifecycle": sleeping(20)},
        {"name": "b", "lifecycle": {"preStop": {"exec": {"command": ["sleep", "99"]}}}}, {"name": "c"}]);
    let init = json!([{"name": "d", "lifecycle": sleeping(70)},
        {"name": "e", "restartPolicy": "Always", "lifecycle": sleeping(30)}]);
    let sleep = |spec: Value| {
        let pod = pod(json!({"metadata": {"name": "p", "namespace": "d"}, "spec": spec}));
        pod.resources.kubelet.pre_stop_sleep
    };
    assert_eq!(sleep(json!({"containers": containers.clone()})), 20);
    assert_eq!(sleep(json!({"containers": containers, "initContainers": init})), 30);
}

/// As in the kubelet, a run of ten minutes makes earlier restarts irrelevant (Kubernetes 1.37 `kubelet/kubelet.go`,
/// `NewMainKubelet`, `HasExpiredFunc`).
#[test]
fn restarts_are_trouble_only_if_the_last_run_was_short() {
    let restarted = |last_start: &str, ready: bool| {
        let last = json!({"terminated": {"reason": "Error", "exitCode": 1, "startedAt": last_start,
            "finishedAt": "2026-01-09T00:00:00Z"}});
        let running = json!({"running": {"startedAt": "2026-01-09T00:00:05Z"}});
        let containers = json!([{"name": "c", "ready": ready, "restartCount": 5, "state": running,
            "lastState": last}]);
        let status = json!({"phase": "Running", "containerStatuses": containers});
        pod(json!({"metadata": {"name": "p", "namespace": "d"}, "status": status}))
    };
    let trouble = |last_start: &str| restarted(last_start, false).trouble().map(ToString::to_string);
    assert_eq!(trouble("2026-01-01T00:00:00Z"), None, "it ran for eight days");
    assert_eq!(trouble("2026-01-08T23:50:00Z").as_deref(), Some("restarted 5 times"), "it ran for 10 min");
    let since = restarted("2026-01-01T00:00:00Z", false).restarted();
    assert_eq!(since, ClusterTime::parse("2026-01-09T00:00:05Z"));
    assert_eq!(restarted("2026-01-01T00:00:00Z", true).ending, None, "it is ready again");
}

/// Between two restarts, the pod is Running and not Ready, as a pod that starts is.
#[test]
fn one_restart_is_trouble_if_the_pod_was_not_ready_in_the_run_before() {
    let trouble = |unready_since: &str| {
        let last = json!({"terminated": {"reason": "Error", "exitCode": 1, "startedAt": "2026-01-09T00:00:10Z",
            "finishedAt": "2026-01-09T00:00:11Z"}});
        let containers = json!([{"name": "c", "ready": false, "restartCount": 1, "lastState": last,
            "state": {"running": {"startedAt": "2026-01-09T00:00:12Z"}}}]);
        let ready = json!([{"type": "Ready", "status": "False", "lastTransitionTime": unready_since}]);
        let status = json!({"phase": "Running", "conditions": ready, "containerStatuses": containers});
        let pod = pod(json!({"metadata": {"name": "p", "namespace": "d"}, "status": status}));
        pod.trouble().map(ToString::to_string)
    };
    assert_eq!(trouble("2026-01-09T00:00:08Z").as_deref(), Some("restarted once"), "never Ready");
    assert_eq!(trouble("2026-01-09T00:00:11Z"), None, "Ready until the container ended");
}

#[test]
fn a_pod_of_an_index_keeps_how_often_its_predecessors_failed() {
    let failures = |counted: &str, ignored: &str| {
        let annotations = json!({"batch.kubernetes.io/job-index-failure-count": counted,
            "batch.kubernetes.io/job-index-ignored-failure-count": ignored});
        pod(json!({"metadata": {"name": "p", "annotations": annotations}})).index_failures()
    };
    assert_eq!(failures("2", "1"), Some(IndexFailures { counted: 2, ignored: 1 }));
    assert_eq!(failures("0", "0"), None);
}

/// Reads a ReplicaSet whose template has this pod spec, and returns the pod of the template.
fn of_template(spec: Value) -> Pod {
    let labels = json!({"app": "web", "pod-template-hash": "1"});
    let template = json!({"metadata": {"labels": labels}, "spec": spec});
    let object = json!({"metadata": {"name": "web"}, "spec": {"template": template}});
    match change(&mut WorkloadDecoder::new(WorkloadKind::ReplicaSet), "ADDED", &object) {
        Some(Change::Workload(_, ObjectEvent::Applied(workload))) => *workload.template.expect("a template"),
        other => panic!("no workload: {other:?}"),
    }
}

/// The API server sets these defaults in pods, but not in pod templates (Kubernetes 1.37,
/// `pkg/apis/core/v1/defaults.go` `SetDefaults_Pod`).
#[test]
fn a_template_has_the_defaults_of_its_pods() {
    let gpu = of_template(json!({"containers": [{"name": "c", "resources": {
        "limits": {"nvidia.com/gpu": "1", "cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "0"}}}]}));
    let requests = &gpu.resources.requests;
    assert_eq!(*requests.scalars, [("nvidia.com/gpu".into(), 1)]);
    assert_eq!((requests.cpu_milli, requests.memory_bytes), (0, 1 << 30), "a request of 0 is one");
    let ports = json!([{"containerPort": 80}, {"containerPort": 443, "hostPort": 8443}]);
    let host = |host_network: bool| {
        let spec = json!({"hostNetwork": host_network, "containers": [{"name": "c", "ports": ports}]});
        of_template(spec).scheduling.host_ports.iter().map(|port| port.port).collect::<Vec<_>>()
    };
    assert_eq!((host(true), host(false)), (vec![80, 8443], vec![8443]));
    let limits = json!({"limits": {"cpu": "1500m", "memory": "1Gi"}});
    let containers = json!([{"name": "c", "resources": {"requests": {"memory": "64Mi"}}}]);
    let whole = of_template(json!({"resources": limits, "containers": containers}));
    let requests = &whole.resources.requests;
    assert_eq!((requests.cpu_milli, requests.memory_bytes), (1500, 64 << 20), "containers request memory");
}

/// Upstream code with this behaviour: Kubernetes 1.37, `pkg/registry/core/pod/strategy.go`
/// `applyMatchLabelKeysAndMismatchLabelKeys`.
#[test]
fn label_keys_of_affinities_select_by_the_labels_of_the_template() {
    let keys = |keys: &str, labels: &[&str]| {
        let term =
            json!({"topologyKey": "host", "labelSelector": {"matchLabels": {"app": "web"}}, keys: labels});
        let spec = json!({"affinity": {"podAntiAffinity":
            {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}});
        let pod = of_template(spec);
        let term = &pod.scheduling.pod_anti_affinity.required[0];
        term.selector.as_ref().expect("a selector").requirements[1..].to_vec()
    };
    let requirement = |operator| vec![Requirement { key: "pod-template-hash".into(), operator }];
    let hash = || vec!["1".into()];
    let labels = ["pod-template-hash", "absent"];
    assert_eq!(keys("matchLabelKeys", &labels), requirement(SelectorOperator::In(hash())));
    assert_eq!(keys("mismatchLabelKeys", &labels), requirement(SelectorOperator::NotIn(hash())));
}

#[test]
fn readiness_gates_that_are_not_met_are_kept_until_they_are() {
    let unmet = |phase: &str, conditions: Value| {
        let gates =
            json!([{"conditionType": "lb.example.com/healthy"}, {"conditionType": "www.example.com/live"}]);
        let status = json!({"phase": phase, "conditions": conditions});
        let pod =
            pod(json!({"metadata": {"name": "p"}, "spec": {"readinessGates": gates}, "status": status}));
        pod.unmet_gates().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status});
    let both = ["lb.example.com/healthy", "www.example.com/live"];
    assert_eq!(unmet("Running", json!([])), both, "without a condition, a gate is not met");
    let met = condition("lb.example.com/healthy", "True");
    assert_eq!(unmet("Running", json!([met, condition("www.example.com/live", "False")])), both[1..]);
    assert_eq!(unmet("Running", json!([met, condition("www.example.com/live", "True")])), [""; 0]);
    assert_eq!(unmet("Failed", json!([])), [""; 0], "a finished pod waits for nothing");
}

#[test]
fn a_job_that_is_over_and_an_owner_that_is_being_deleted_are_known() {
    let stage = |kind: WorkloadKind, object| match change(&mut WorkloadDecoder::new(kind), "ADDED", &object) {
        Some(Change::Workload(_, ObjectEvent::Applied(workload))) => workload.stage,
        other => panic!("{other:?}"),
    };
    let condition = |kind: &str, status: &str| json!({"metadata": {"name": "w"}, "status": {"conditions": [{"type": kind, "status": status}]}});
    assert_eq!(stage(WorkloadKind::Job, condition("Complete", "True")), WorkloadStage::Finished);
    assert_eq!(stage(WorkloadKind::Job, condition("Failed", "True")), WorkloadStage::Finished);
    assert_eq!(stage(WorkloadKind::Job, condition("Complete", "False")), WorkloadStage::Active);
    assert_eq!(stage(WorkloadKind::Deployment, condition("Failed", "True")), WorkloadStage::Active);
    let deleted = json!({"metadata": {"name": "w", "deletionTimestamp": "2026-01-01T00:00:09Z"}});
    assert_eq!(stage(WorkloadKind::ReplicaSet, deleted), WorkloadStage::Deleting);
}

#[test]
fn a_pod_keeps_what_is_read() {
    let pod = pod(json!({
        "metadata": {"name": "p", "namespace": "d", "uid": "u", "resourceVersion": "9", "labels": {"app": "web"},
            "deletionTimestamp": "2026-01-01T00:01:00Z", "deletionGracePeriodSeconds": 30, "finalizers": ["x/y"],
            "annotations": {"kubernetes.io/config.mirror": "hash"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "ru", "controller": true}]},
        "spec": {"nodeName": "n1", "priority": 5, "terminationGracePeriodSeconds": 60,
            "volumes": [{"name": "a", "emptyDir": {"medium": "Memory"}}, {"name": "b", "hostPath": {"path": "/"}}],
            "tolerations": [{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": 300}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"},
            {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}]}
    }));
    assert_eq!(pod.key, Key::new("d", "p"));
    assert_eq!(pod.owner.as_ref().expect("owned").kind, OwnerKind::Workload(WorkloadKind::ReplicaSet));
    assert_eq!((pod.node.as_deref(), pod.priority, pod.grace), (Some("n1"), 5, Span::from_secs(60)));
    assert_eq!(pod.tolerations[0].effect, Some(TaintEffect::NoExecute));
    assert_eq!(pod.tolerations[0].seconds, Some(300));
    assert!(pod.mirror && !pod.is_ready());
    assert_eq!(pod.phase, Phase::Running);
    assert_eq!(pod.disruption_target.as_deref(), Some("EvictionByEvictionAPI"));
    assert_eq!(pod.finalizers.len(), 1);
    assert!(pod.termination.is_some());
    assert_eq!(pod.storage, LocalStorage::from_iter([LocalVolume::Memory, LocalVolume::HostPath]));
}

#[test]
fn pods_request_what_the_scheduler_counts() {
    let request =
        |cpu: &str, memory: &str| json!({"resources": {"requests": {"cpu": cpu, "memory": memory}}});
    let sidecar = |cpu: &str| json!({"restartPolicy": "Always", "resources": {"requests": {"cpu": cpu}}});
    let cpu = |spec| pod(json!({"metadata": {"name": "p"}, "spec": spec})).requests().cpu_milli;
    let containers = json!([request("100m", "1Gi"), request("200m", "1Gi")]);
    assert_eq!(cpu(json!({"containers": containers})), 300);
    assert_eq!(cpu(json!({"containers": containers, "initContainers": [request("1", "1")]})), 1000);
    assert_eq!(
        cpu(json!({"containers": containers, "initContainers": [sidecar("50m"), request("1", "1")]})),
        1050
    );
    assert_eq!(
        cpu(json!({"containers": containers, "initContainers": [request("200m", "1"), sidecar("50m")]})),
        350
    );
    assert_eq!(cpu(json!({"containers": containers, "overhead": {"cpu": "10m"}})), 310);
    let level = json!({"containers": containers, "resources": {"requests": {"cpu": "2"}}, "overhead": {"cpu": "10m"}});
    assert_eq!(cpu(level.clone()), 2010);
    let whole = pod(json!({"metadata": {"name": "p"}, "spec": level})).requests();
    assert_eq!((whole.memory_bytes, whole.pods), (2 << 30, 1), "what pod-level requests leave out is summed");
}

#[test]
fn alike_pods_share_labels_and_tolerations() {
    let mut decoder = PodDecoder::default();
    let mut read = |name: &str| {
        let object = json!({"metadata": {"name": name, "labels": {"app": "web"}},
            "spec": {"tolerations": [{"operator": "Exists"}], "nodeName": "n"}});
        match change(&mut decoder, "ADDED", &object) {
            Some(Change::Pod(ObjectEvent::Applied(pod))) => pod,
            other => panic!("{other:?}"),
        }
    };
    let (left, right) = (read("a"), read("b"));
    assert!(left.labels.is_same_list(&right.labels));
    assert!(left.tolerations.is_same_list(&right.tolerations));
}

#[test]
fn selectors_of_every_shape_are_read() {
    let selector = |kind, selector| {
        let object = json!({"metadata": {"name": "w", "namespace": "d"}, "spec": {"replicas": 3, "selector": selector}});
        match change(&mut WorkloadDecoder::new(kind), "ADDED", &object) {
            Some(Change::Workload(_, ObjectEvent::Applied(workload))) => workload.selector,
            other => panic!("{other:?}"),
        }
    };
    let full = selector(
        WorkloadKind::DaemonSet,
        json!({"matchLabels": {"app": "web"},
        "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["db"]}]}),
    );
    let labels = [("app".into(), "web".into())].into();
    assert!(full.as_ref().is_some_and(|full| full.requirements.len() == 2 && full.matches(&labels)));
    let plain = selector(WorkloadKind::ReplicationController, json!({"app": "web"})).expect("a selector");
    assert!(plain.matches(&labels) && !plain.is_empty());
    assert_eq!(selector(WorkloadKind::Job, json!(null)), None);
    assert!(selector(WorkloadKind::Job, json!({})).expect("selects all").is_empty());
}

#[test]
fn a_budget_keeps_numbers_and_percentages_apart() {
    let object = json!({"metadata": {"name": "b", "namespace": "d", "generation": 4},
        "spec": {"minAvailable": "50%", "maxUnavailable": 2, "selector": {}},
        "status": {"disruptionsAllowed": 1, "observedGeneration": 3,
            "disruptedPods": {"p": "2026-01-01T00:00:00Z", "q": null},
            "conditions": [{"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": "no scale"}]}});
    let Some(Change::Budget(ObjectEvent::Applied(budget))) =
        change(&mut BudgetDecoder::default(), "MODIFIED", &object)
    else {
        panic!("no budget")
    };
    assert_eq!(budget.min_available, Some(IntOrPercent::Percent(50)));
    assert_eq!(budget.max_unavailable, Some(IntOrPercent::Int(2)));
    assert_eq!((budget.generation, budget.status.observed_generation), (4, 3));
    assert_eq!(budget.status.disrupted_pods.len(), 1);
    assert_eq!(budget.status.sync_failure.as_deref(), Some("no scale"));
}

#[test]
fn a_controller_lease_that_is_not_listed_is_absent() {
    let mut leader = LeaderDecoder::default();
    assert!(leader.change(WatchEvent::ListStarted).is_none());
    assert!(matches!(leader.change(WatchEvent::ListDone), Some(Change::Leader(None))));
    let object = json!({"metadata": {"name": "kube-controller-manager"}, "spec": {"holderIdentity": "m1"}});
    assert!(leader.change(WatchEvent::ListStarted).is_none());
    let text = json!({"type": "ADDED", "object": object}).to_string();
    assert!(matches!(
        line(&mut leader, text.as_bytes(), true),
        StreamEvent::Object { change: Some(Change::Leader(Some(lease))), .. } if *lease.holder == *"m1"
    ));
    assert!(leader.change(WatchEvent::ListDone).is_none());
}

#[test]
fn bookmarks_and_errors_are_distinguished_from_objects_whatever_comes_first() {
    let of = |text: &str| format!("{:?}", line(&mut NodeDecoder::default(), text.as_bytes(), false));
    let bookmark = r#"{"object":{"kind":"Node","metadata":{"resourceVersion":"12","annotations":{"k8s.io/initial-events-end":"true"}}},"type":"BOOKMARK"}"#;
    assert!(of(bookmark).contains("version: \"12\", list_ends: true"), "{}", of(bookmark));
    for gone in [
        r#"{"type":"ERROR","object":{"kind":"Status","status":"Failure","code":410,"message":"too old"}}"#,
        r#"{"object":{"kind":"Status","status":"Failure","code":410,"message":"too old"},"type":"ERROR"}"#,
    ] {
        assert!(of(gone).contains("code: 410"), "{}", of(gone));
    }
}

#[test]
fn a_bad_object_is_named_and_the_rest_of_its_page_read() {
    let text = json!({"metadata": {"resourceVersion": "5", "continue": "c", "remainingItemCount": 8}, "items": [
        {"metadata": {"name": "good", "namespace": "d"}},
        {"metadata": {"name": "bad\u{1b}[2J", "namespace": "d"}, "spec": "none"},
        {"metadata": {"labels": {}}},
        {"metadata": {"name": "also-good", "namespace": "d"}, "spec": null, "status": {"conditions": null}},
    ]})
    .to_string();
    let mut changes = Vec::new();
    let end =
        page(&mut PodDecoder::default(), text.as_bytes(), ListPurpose::Whole, &mut changes).expect("a list");
    assert_eq!(
        (changes.len(), end.count, &*end.version, &*end.next, end.remaining),
        (2, 4, "5", "c", Some(8))
    );
    assert_eq!(end.bad, ["d/bad␛[2J", "an object without a name"]);
    let line = line(
        &mut PodDecoder::default(),
        br#"{"type":"ADDED","object":{"metadata":{"name":"x"},"spec":7}}"#,
        false,
    );
    assert!(matches!(line, StreamEvent::Bad(name) if name == "x"));
}

#[test]
fn only_text_that_is_not_json_breaks_a_line() {
    for text in ["", "{\"type\":\"ADDED\",\"obj", "<html>", "\u{0}"] {
        assert!(
            matches!(line(&mut PodDecoder::default(), text.as_bytes(), false), StreamEvent::Broken(_)),
            "{text:?}"
        );
    }
    assert!(
        page(&mut PodDecoder::default(), b"Too many requests", ListPurpose::Whole, &mut Vec::new()).is_err()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Reading never fails on an object in which one value is replaced by any other value.
    #[test]
    fn no_value_anywhere_breaks_a_watch(path in 0_usize..60, value in any_json()) {
        for object in [sound_pod(), sound_node()] {
            let mut object = object;
            let mut countdown = path;
            replace_nth(&mut object, &mut countdown, &value);
            let text = json!({"type": "MODIFIED", "object": object}).to_string();
            for read in [line(&mut PodDecoder::default(), text.as_bytes(), false), line(&mut NodeDecoder::default(), text.as_bytes(), true)] {
                prop_assert!(matches!(read, StreamEvent::Object { .. } | StreamEvent::Bad(_)), "{:?}", read);
            }
        }
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".*".prop_map(Value::from),
        Just(json!([{}, 1, "x"])),
        Just(json!({"a": {"b": []}, "cpu": -1})),
    ]
}

/// Replaces the value at index `countdown`, in depth-first order.
fn replace_nth(value: &mut Value, countdown: &mut usize, with: &Value) {
    if *countdown == 0 {
        *value = with.clone();
    }
    *countdown = countdown.wrapping_sub(1);
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| replace_nth(item, countdown, with)),
        Value::Object(map) => map.values_mut().for_each(|item| replace_nth(item, countdown, with)),
        _ => {}
    }
}

fn sound_pod() -> Value {
    json!({
        "metadata": {"name": "p", "namespace": "d", "uid": "u", "resourceVersion": "9", "labels": {"app": "web"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": true}]},
        "spec": {"nodeName": "n", "priority": 5, "tolerations": [{"key": "k", "tolerationSeconds": 300}],
            "containers": [{"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}], "overhead": {"cpu": "1m"}},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
    })
}

fn sound_node() -> Value {
    json!({
        "metadata": {"name": "n", "uid": "u", "resourceVersion": "9", "annotations": {"a": "b"}},
        "spec": {"taints": [{"key": "k", "effect": "NoExecute"}]},
        "status": {"allocatable": {"cpu": "1"}, "conditions": [{"type": "Ready", "status": "True"}]}
    })
}

fn node(object: Value) -> Node {
    match change(&mut NodeDecoder::default(), "ADDED", &object) {
        Some(Change::Node(ObjectEvent::Applied(node))) => node,
        other => panic!("{other:?}"),
    }
}

fn pod(object: Value) -> Pod {
    match change(&mut PodDecoder::default(), "ADDED", &object) {
        Some(Change::Pod(ObjectEvent::Applied(pod))) => pod,
        other => panic!("{other:?}"),
    }
}

fn change<D: Decoder>(decoder: &mut D, kind: &str, object: &Value) -> Option<Change> {
    let text = json!({"type": kind, "object": object}).to_string();
    match line(decoder, text.as_bytes(), false) {
        StreamEvent::Object { change, .. } => change,
        other => panic!("{other:?}"),
    }
}
