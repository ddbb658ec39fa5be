//! Manifests that are laid over the objects of a cluster (`--with`), as `kubectl apply` would apply them.

use serde_json::{Value, json};

use super::case_objects::{BLOCKED, DONE, Objects};
use crate::common::program::{Output, Shell};

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Returns the manifest of an object, with which the object counts as applied.
fn apply(object: &mut Value) -> Value {
    let (name, namespace) = (&object["metadata"]["name"], &object["metadata"]["namespace"]);
    let manifest = json!({"apiVersion": object["apiVersion"], "kind": object["kind"],
        "metadata": {"name": name, "namespace": namespace}, "spec": object["spec"]});
    object["metadata"]["annotations"] = json!({LAST_APPLIED: manifest.to_string()});
    manifest
}

/// Runs a command on the objects with a manifest laid over them.
async fn laid_over(objects: &Objects, command: &str, manifest: &Value) -> Output {
    let shell = Shell::new();
    let file = shell.file("objects.json", &objects.list());
    let with = shell.file("with.json", &manifest.to_string());
    let words = command.split(' ').chain(["--from", &file, "--complete", "--with", &with, "-o", "json"]);
    shell.run(&words.collect::<Vec<_>>()).await
}

/// Kubernetes 1.37 `strategicpatch/patch.go`, `CreateThreeWayMergePatch`.
#[tokio::test]
async fn a_budget_whose_manifest_drops_always_allow_blocks_a_pod_in_a_crash_loop() {
    let drain = "plan drain c4x-n2";
    let mut objects = Objects::of("06-crashloop-under-budget");
    let budget = objects.named("PodDisruptionBudget", "crash");
    budget["spec"]["unhealthyPodEvictionPolicy"] = "AlwaysAllow".into();
    let mut manifest = apply(budget);
    let Output { code, err: notes, .. } = laid_over(&objects, drain, &manifest).await;
    assert_eq!(code, DONE, "{notes}");
    assert!(notes.contains("poddisruptionbudget c4x/crash is unchanged"), "{notes}");
    manifest["spec"].as_object_mut().expect("a spec").remove("unhealthyPodEvictionPolicy");
    let Output { code, err: notes, .. } = laid_over(&objects, drain, &manifest).await;
    assert_eq!(code, BLOCKED, "{notes}");
    assert!(notes.contains("is changed") && !notes.contains("does not name"), "{notes}");
    let metadata = &mut objects.named("PodDisruptionBudget", "crash")["metadata"];
    metadata["annotations"] = json!({});
    let Output { code, err: notes, .. } = laid_over(&objects, drain, &manifest).await;
    assert_eq!(code, DONE, "{notes}");
    assert!(notes.contains("is unchanged"), "kubectl keeps the field: {notes}");
    assert!(notes.contains("fields that the manifest does not name stay"), "{notes}");
}

#[tokio::test]
async fn a_deployment_whose_manifest_drops_its_node_moves_its_pods() {
    let pinned = json!({"nodeName": "c14-n1", "nodeSelector": {"kubernetes.io/hostname": "c14-n1"}});
    for (field, before) in [("nodeName", "sameNode"), ("nodeSelector", "pending")] {
        let mut objects = Objects::of("18-template-names-node");
        let spec = |object: &mut Value| {
            let spec = object["spec"]["template"]["spec"].as_object_mut().expect("a spec");
            spec.remove("nodeName");
            spec.insert(field.into(), pinned[field].clone());
        };
        spec(objects.named("ReplicaSet", "pinned"));
        let deployment = objects.named("Deployment", "pinned");
        spec(deployment);
        let mut manifest = apply(deployment);
        let outcomes = async |manifest: &Value| {
            let plan = laid_over(&objects, "plan drain c14-n1", manifest).await.json();
            [0_usize, 1].map(|pod| plan["pods"][pod]["outcome"].as_str().unwrap_or_default().to_owned())
        };
        assert_eq!(outcomes(&manifest).await, [before; 2], "{field}");
        manifest["spec"]["template"]["spec"].as_object_mut().expect("a spec").remove(field);
        assert_eq!(outcomes(&manifest).await, ["moves"; 2], "{field}");
    }
}
