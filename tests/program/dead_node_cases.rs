//! Pods and plans of dead nodes: explanations, plans and lists say the same. The objects are those of a real control
//! plane ([`super::cases`]), some of them changed.

use serde_json::{Value, json};

use super::case_objects::{DONE, Objects, verdict};

#[tokio::test]
async fn a_terminating_pod_of_a_dead_node_does_not_end_with_its_grace_period() {
    let why =
        Objects::of("24-terminating-on-dead-node").answer("why pod db-0 -n c23", DONE).await.to_string();
    assert!(why.contains("its kubelet is down"), "{why}");
    assert!(!why.contains("wait until its grace period ends"), "{why}");
    let status = Objects::of("24-terminating-on-dead-node").answer("status", DONE).await;
    assert_eq!(status["evictions"][0]["inSeconds"], Value::Null, "{:#}", status["evictions"]);
}

/// The pod garbage collector removes the pods of a Node that is deleted (Kubernetes 1.37 `gcOrphaned`), those that are
/// already terminating too.
#[tokio::test]
async fn the_deletion_of_a_dead_node_replaces_its_terminating_pod_everywhere() {
    let mut objects = Objects::of("24-terminating-on-dead-node");
    objects.without("Node", "c23-n1");
    let why = objects.answer("why pod db-0 -n c23", DONE).await;
    let (steps, wait) = (why["steps"].to_string(), why["actions"][0].clone());
    assert!(steps.contains("outcome: → c23-n2") && !steps.contains("stuck"), "{steps}");
    let evictions = objects.answer("evictions", DONE).await["evictions"].clone();
    assert_eq!(evictions[0]["outcomeText"], "→ c23-n2", "{evictions:#}");
    assert_eq!(wait["inSeconds"], evictions[0]["inSeconds"], "{wait:#}");
}

#[tokio::test]
async fn a_ready_node_with_the_out_of_service_taint_is_a_notice() {
    let mut objects = Objects::of("25-out-of-service-plan");
    let taint = json!({"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"});
    objects.named("Node", "c23-n2")["spec"]["taints"] = json!([taint]);
    let status = objects.answer("status", DONE).await;
    assert!(
        verdict(&status).contains("node c23-n2 is Ready, but still tainted out-of-service"),
        "{status:#}"
    );
}

/// The pod was removed, and its successor was Ready 8 s after the taint.
#[tokio::test]
async fn an_out_of_service_taint_removes_a_terminating_pod_by_force() {
    let command = "plan taint nodes c23-n1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute";
    let plan = Objects::of("25-out-of-service-plan").answer(command, DONE).await;
    assert_eq!(
        (&plan["pods"][0]["landingNode"], &plan["pods"][0]["outcome"]),
        (&json!("c23-n2"), &json!("moves"))
    );
    let gone = plan["pods"][0]["deleted"]["latestSeconds"].as_f64().expect("a time");
    assert!(gone <= 20.0, "{gone}");
}
