//! Pods that start only once their volume is detached from another node. Tested with the objects of [`super::cases`].

use serde_json::{Value, json};

use super::case_objects::{DONE, Objects};

const WHY: &str = "why pod db-0 -n c23";

/// Returns the objects 30 s after a StatefulSet has replaced its pod on node c23-n1. The replacement starts on c23-n2.
/// Its ReadWriteOnce volume still has a VolumeAttachment to c23-n1.
fn waiting() -> Objects {
    let mut objects = Objects::of("25-out-of-service-plan");
    let pod = objects.named("Pod", "db-0");
    let metadata = pod["metadata"].as_object_mut().expect("metadata");
    metadata.remove("deletionTimestamp");
    metadata.remove("deletionGracePeriodSeconds");
    metadata.insert("creationTimestamp".into(), "2026-11-27T17:24:20Z".into());
    metadata.insert("uid".into(), "replacement".into());
    pod["spec"]["nodeName"] = "c23-n2".into();
    pod["spec"]["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    pod["status"] = json!({"phase": "Pending"});
    objects.0.extend([
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "c23", "uid": "claim"},
            "spec": {"accessModes": ["ReadWriteOnce"], "volumeName": "pv"}, "status": {"phase": "Bound"}}),
        json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv", "uid": "pv"},
            "spec": {"accessModes": ["ReadWriteOnce"],
                "csi": {"driver": "csi.example.com", "volumeHandle": "handle"}}}),
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": "csi-1"},
            "spec": {"attacher": "csi.example.com", "nodeName": "c23-n1",
                "source": {"persistentVolumeName": "pv"}}, "status": {"attached": true}}),
    ]);
    objects
}

/// Returns the explanation of the replacement.
async fn why(objects: &Objects) -> Value {
    objects.answer(WHY, DONE).await
}

/// Returns the steps about volumes.
fn steps(why: &Value) -> Vec<&Value> {
    why["steps"].as_array().expect("steps").iter().filter(|step| step["topic"] == "volume").collect()
}

/// Kubernetes 1.37 `pkg/controller/volume/attachdetach/reconciler/reconciler.go`: `nodeIsHealthy` is false for a node
/// without an object, so the volume is detached `maxWaitForUnmountDuration` (6 min) after its pod is gone. A StatefulSet
/// creates a pod once the old one is gone.
#[tokio::test]
async fn a_volume_that_is_attached_to_a_deleted_node_is_detached_six_minutes_after_its_pod() {
    let mut objects = waiting();
    objects.without("Node", "c23-n1");
    let why = why(&objects).await;
    let steps = steps(&why);
    assert_eq!(
        steps[0]["text"],
        "waits for ReadWriteOnce volume data, which is still attached to c23-n1, whose Node object is gone: \
         detached by force 6m00s after the pod that used it was gone",
        "{why:#}"
    );
    assert_eq!(steps[1]["at"], "2026-11-27T17:30:20.000Z", "{why:#}");
    assert_eq!((&steps[1]["time"], &steps[1]["estimated"]), (&json!("future"), &json!(true)));
    assert_eq!(why["actions"][0]["text"], "until volume data is detached from c23-n1");
}

#[tokio::test]
async fn a_volume_that_is_being_detached_has_the_error_of_the_last_attempt() {
    let mut objects = waiting();
    let attachment = objects.named("VolumeAttachment", "csi-1");
    attachment["metadata"]["deletionTimestamp"] = "2026-11-27T17:24:30Z".into();
    attachment["metadata"]["finalizers"] = json!(["external-attacher/csi-example-com"]);
    attachment["status"]["detachError"] = json!({"message": "instance not found"});
    let why = why(&objects).await;
    let steps = steps(&why);
    assert_eq!(
        steps[0]["text"],
        "waits for ReadWriteOnce volume data, which is still attached to c23-n1, and is being detached; the last \
         attempt failed: instance not found",
        "{why:#}"
    );
    assert_eq!(steps.len(), 1, "nobody knows when it ends: {why:#}");
}

#[tokio::test]
async fn a_volume_that_is_attached_to_the_node_of_its_pod_holds_up_nothing() {
    let mut objects = waiting();
    objects.named("VolumeAttachment", "csi-1")["spec"]["nodeName"] = "c23-n2".into();
    let why = why(&objects).await;
    assert_eq!(steps(&why), Vec::<&Value>::new(), "{why:#}");
}

#[tokio::test]
async fn without_volume_attachments_it_is_not_known_who_holds_a_volume() {
    let mut objects = waiting();
    objects.without("VolumeAttachment", "csi-1");
    let command: Vec<&str> = WHY.split(' ').chain(["-o", "json"]).collect();
    let why = objects.partial(&command).await;
    let steps = steps(&why);
    let text = steps[0]["text"].as_str().expect("a text");
    let unknown = "whether ReadWriteOnce volume data is attached to another node is not known: ";
    assert!(text.starts_with(unknown) && text.len() > unknown.len(), "{why:#}");
}

/// Kubernetes 1.37 `pkg/controller/volume/attachdetach/reconciler/reconciler.go`, `reportMultiAttachError`.
#[tokio::test]
async fn an_event_about_a_failed_attachment_is_a_step() {
    let mut objects = waiting();
    objects.without("VolumeAttachment", "csi-1");
    let text = "Multi-Attach error for volume \"pv\" Volume is already exclusively attached to one node and can't be attached to \
                another";
    objects.0.push(json!({"apiVersion": "v1", "kind": "Event",
        "metadata": {"name": "db-0.1", "namespace": "c23"}, "type": "Warning", "reason": "FailedAttachVolume",
        "involvedObject": {"kind": "Pod", "namespace": "c23", "name": "db-0", "uid": "replacement"},
        "message": text, "count": 1, "source": {"component": "attachdetach-controller"},
        "firstTimestamp": "2026-11-27T17:24:21Z", "lastTimestamp": "2026-11-27T17:24:21Z"}));
    let why = why(&objects).await;
    let steps = steps(&why);
    assert_eq!(steps[0]["text"], format!("its volume could not be attached: {text}"), "{why:#}");
    assert_eq!((&steps[0]["time"], &steps[0]["at"]), (&json!("past"), &json!("2026-11-27T17:24:21.000Z")));
}
