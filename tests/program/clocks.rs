//! Clocks of kubelets that differ from the clock of the API server, and the times that can be known then.

use serde_json::{Value, json};

use super::case_objects::{DONE, Objects, verdict};

/// The Lease of c21-n2 was last written at 17:19:03 by the server's clock. Its renewTime is 8 h behind, and the
/// heartbeat of its status is not. The Lease of c21-n1 is renewed at 17:20:14, which is the time of the question.
fn silent_for_71_seconds() -> Objects {
    let mut objects = Objects::of("22-clock-behind");
    let lease = objects.named("Lease", "c21-n1");
    lease["spec"]["renewTime"] = "2026-11-27T17:20:14.000000Z".into();
    lease["metadata"]["managedFields"][0]["time"] = "2026-11-27T17:20:14Z".into();
    objects
}

fn set_heartbeat(objects: &mut Objects, at: &str) {
    for condition in objects.named("Node", "c21-n2")["status"]["conditions"].as_array_mut().expect("a list") {
        condition["lastHeartbeatTime"] = at.into();
    }
}

#[tokio::test]
async fn the_clock_of_a_lease_makes_no_heartbeat_of_a_status_younger() {
    let mut objects = silent_for_71_seconds();
    // By a clock that is right, that is ahead, and that is behind.
    for posted in ["2026-11-27T17:18:59Z", "2026-11-28T01:18:59Z", "2026-11-27T09:18:59Z"] {
        set_heartbeat(&mut objects, posted);
        let status = objects.answer("status", DONE).await;
        let node = &status["nodes"][1];
        assert_eq!(node["state"], "Silent", "{posted}: {node:#}");
        assert_eq!(
            (&node["lastHeartbeat"], &node["probeSource"]),
            (&json!("2026-11-27T17:19:03.999Z"), &json!("lease")),
            "{posted}"
        );
        let forecast = objects.answer("forecast", DONE).await;
        assert_eq!(forecast["totals"]["unknown"], 1, "{posted}: {:#}", forecast["totals"]);
    }
}

#[tokio::test]
async fn a_status_is_as_old_as_the_server_says() {
    let mut objects = silent_for_71_seconds();
    for (posted, written, state) in [
        ("2026-11-27T09:20:12Z", "2026-11-27T17:20:12Z", "Ready"),
        ("2026-11-27T17:20:12Z", "2026-11-27T17:20:12Z", "Ready"),
        ("2026-11-27T17:20:12Z", "2026-11-27T17:19:00Z", "Silent"),
        ("2026-11-28T01:19:00Z", "2026-11-27T17:19:00Z", "Silent"),
    ] {
        set_heartbeat(&mut objects, posted);
        objects.named("Node", "c21-n2")["metadata"]["managedFields"] = json!([{
            "manager": "kubelet", "operation": "Update", "apiVersion": "v1", "subresource": "status",
            "time": written, "fieldsType": "FieldsV1", "fieldsV1": {"f:status": {"f:conditions": {
                "k:{\"type\":\"Ready\"}": {"f:lastHeartbeatTime": {}}}}},
        }]);
        let status = objects.answer("status", DONE).await;
        assert_eq!(status["nodes"][1]["state"], state, "{posted} {written}: {:#}", status["nodes"][1]);
    }
}

/// `kubectl get` leaves out managedFields, and no Lease shows that a controller runs.
#[tokio::test]
async fn a_clock_that_may_be_wrong_is_named_with_what_to_export() {
    let mut objects = Objects::of("22-clock-behind");
    for name in ["c21-n1", "c21-n2"] {
        objects.named("Lease", name)["metadata"].as_object_mut().expect("fields").remove("managedFields");
    }
    let text = async |objects: &Objects| verdict(&objects.answer("status", DONE).await).to_owned();
    let doubt = "clock of node c21-n2 may be wrong: ";
    // The heartbeat of the status is by the same clock as the Lease, or by one that is right.
    for posted in ["2026-11-27T09:18:59Z", "2026-11-27T17:18:59Z"] {
        set_heartbeat(&mut objects, posted);
        let text = text(&objects).await;
        assert!(text.contains(doubt) && text.contains("--show-managed-fields"), "{posted}: {text}");
        let forecast = objects.answer("forecast", DONE).await;
        let assumptions = forecast["assumptions"].to_string();
        assert!(assumptions.contains("the clock of c21-n2 is right"), "{posted}: {assumptions}");
        let why = objects.answer("why node c21-n2", DONE).await["steps"].to_string();
        assert!(why.contains("its clock may be wrong"), "{posted}: {why}");
    }
    for condition in objects.named("Node", "c21-n2")["status"]["conditions"].as_array_mut().expect("a list") {
        condition["status"] = "Unknown".into();
    }
    let text = text(&objects).await;
    assert!(!text.contains(doubt), "the controller has marked it: {text}");
}

/// The Lease of c21-n2 was written at 17:19:03 by the server's clock.
#[tokio::test]
async fn a_kubelet_whose_clock_is_off_is_alive_and_its_clock_a_notice() {
    for (renewed, clock) in [
        ("2026-11-27T09:19:03.773314Z", "8h00m behind"),
        ("2026-11-28T01:19:03.773314Z", "8h00m ahead"),
        ("2026-11-27T17:16:03.773314Z", "3m00s behind"),
    ] {
        let mut objects = Objects::of("22-clock-behind");
        objects.named("Lease", "c21-n2")["spec"]["renewTime"] = renewed.into();
        objects.named("Node", "c21-n2")["status"]["conditions"][0]["lastHeartbeatTime"] = renewed.into();
        let status = objects.answer("status", DONE).await;
        let text = verdict(&status);
        assert_eq!(status["verdict"]["level"], "notice", "{text}");
        assert!(text.starts_with(&format!("clock of node c21-n2 is {clock}")), "{text}");
        assert_eq!(
            (&status["nodes"][1]["state"], &status["nodes"][1]["next"]),
            (&"Ready".into(), &Value::Null)
        );
        let forecast = objects.answer("forecast", DONE).await;
        assert_eq!(forecast["steps"], json!([]), "{forecast:#}");
    }
}

/// `kubectl get` leaves out managedFields. A controller that has run for an hour would have marked a dead node Unknown.
#[tokio::test]
async fn a_ready_node_with_an_old_lease_has_a_wrong_clock_while_a_controller_runs() {
    let mut objects = Objects::of("22-clock-behind");
    for name in ["c21-n1", "c21-n2"] {
        objects.named("Lease", name)["metadata"].as_object_mut().expect("fields").remove("managedFields");
    }
    set_heartbeat(&mut objects, "2026-11-27T09:18:59Z");
    let state = |status: &Value| status["nodes"][1]["state"].as_str().expect("a text").to_owned();
    assert_eq!(
        state(&objects.answer("status", DONE).await),
        "Silent",
        "no Lease shows that a controller runs"
    );
    objects.0.push(json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "kube-controller-manager", "namespace": "kube-system"},
        "spec": {"holderIdentity": "cp", "leaseDurationSeconds": 15,
            "acquireTime": "2026-11-27T16:19:00.000000Z", "renewTime": "2026-11-27T17:19:02.000000Z"}}));
    let status = objects.answer("status", DONE).await;
    assert_eq!(state(&status), "Ready", "{status:#}");
    assert!(verdict(&status).starts_with("clock of node c21-n2 is 8h00m behind"), "{}", verdict(&status));
    objects.named("Lease", "kube-controller")["spec"]["acquireTime"] = "2026-11-27T17:18:50Z".into();
    assert_eq!(state(&objects.answer("status", DONE).await), "Silent", "the controller has just started");
}

#[tokio::test]
async fn a_dead_node_whose_clock_is_ahead_is_silent() {
    let mut objects = Objects::of("22-clock-behind");
    let lease = objects.named("Lease", "c21-n2");
    lease["spec"]["renewTime"] = "2026-11-27T17:48:20Z".into();
    lease["metadata"]["managedFields"][0]["time"] = "2026-11-27T17:18:20Z".into();
    let status = objects.answer("status", DONE).await;
    assert_eq!(status["nodes"][1]["state"], "Silent", "{:#}", status["nodes"][1]);
    assert!(verdict(&status).contains("clock of node c21-n2 is 30m00s ahead"), "{}", verdict(&status));
}

#[tokio::test]
async fn a_label_on_the_lease_of_a_dead_node_is_no_heartbeat() {
    let mut objects = Objects::of("22-clock-behind");
    set_heartbeat(&mut objects, "2026-11-27T17:14:20Z");
    let lease = objects.named("Lease", "c21-n2");
    lease["spec"]["renewTime"] = "2026-11-27T17:18:20.5Z".into();
    lease["metadata"]["managedFields"] = json!([
        {"manager": "kubelet", "time": "2026-11-27T17:18:20Z", "fieldsV1": {"f:spec": {"f:renewTime": {}}}},
        {"manager": "kubectl", "time": "2026-11-27T17:19:01Z", "fieldsV1": {"f:metadata": {"f:labels": {}}}},
    ]);
    let status = objects.answer("status", DONE).await;
    assert_eq!(status["nodes"][1]["state"], "Silent", "{:#}", status["nodes"][1]);
    assert!(!verdict(&status).contains("clock"), "{}", verdict(&status));
}

/// The pod garbage collector deletes the pods of a missing node within 80 s (kubernetes 1.37.1
/// `pkg/controller/podgc/gc_controller.go`, `gcOrphaned`). The newest time in the objects is 17:19:35.6.
#[tokio::test]
async fn the_pods_of_deleted_nodes_are_removed_within_80_seconds_of_the_time_of_the_objects() {
    let objects = Objects::of("28-all-nodes-deleted");
    for (at, left) in [("2026-11-27T17:20:05.605827Z", "50s"), ("2026-11-27T17:21:00.605827Z", "1s")] {
        let status = objects.answer(&format!("status --at {at}"), DONE).await;
        let text = verdict(&status);
        assert!(text.contains(&format!("are removed by force in {left} at the latest")), "{at}: {text}");
        let forecast = objects.answer(&format!("forecast --at {at}"), DONE).await;
        let steps = forecast["steps"].as_array().expect("steps");
        let removed = steps.iter().find(|step| step["type"] == "remove").expect("a removal");
        let seconds = removed["inSeconds"].as_f64().expect("a time");
        assert_eq!(format!("{}s", seconds.ceil()), left, "{at}: {removed:#}");
    }
}
