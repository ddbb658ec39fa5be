//! Both encodings of the real API server, read with kordon's decoders.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use http::Request;
use kordon::k8s::decode::Encoding;
use kordon_time::Span;
use kube::Client;
use serde_json::{Value, json};

use crate::{
    common::encodings::ReadKind,
    harness::{eventually::eventually, plane::Plane},
};

/// Checks that objects with most of the fields that kordon reads are decoded to the same values from protobuf and from
/// JSON, as lists and as streamed lists.
pub async fn both_encodings_mean_the_same(plane: &mut Plane) -> Result<()> {
    let client = plane.client();
    for (path, object) in objects() {
        create(&client, path, &object).await.with_context(|| format!("{path}: {object}"))?;
    }
    let mut counts = BTreeMap::new();
    for kind in ReadKind::ALL {
        // Retries until nothing was written between the two lists.
        let [json, protobuf] = eventually("two lists of one version", Span::from_secs(30), async || {
            let both = kind.read_both(&client).await;
            Ok((both[0].versions == both[1].versions).then_some(both))
        })
        .await?;
        ensure!((json.encoding, protobuf.encoding) == (Encoding::Json, Encoding::Protobuf), "{kind:?}");
        json.assert_same(&protobuf);
        counts.insert(kind.name, json.listed.len());
    }
    ensure!(counts.values().all(|count| *count > 0), "a kind without objects proves nothing: {counts:?}");
    Ok(())
}

async fn create(client: &Client, path: &str, object: &Value) -> Result<()> {
    let request = Request::post(path).header("content-type", "application/json");
    client.request::<Value>(request.body(serde_json::to_vec(object)?)?).await?;
    Ok(())
}

/// Paths of collections, each with an object to create there. The order matters: a pod needs its PriorityClass.
fn objects() -> Vec<(&'static str, Value)> {
    [devices(), core(), storage(), workloads()].concat()
}

fn devices() -> Vec<(&'static str, Value)> {
    let cel = json!({"cel": {"expression": "device.driver == 'x.io'"}});
    let request = json!({"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2, "selectors": [cel],
        "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}]});
    vec![
        (
            "/apis/resource.k8s.io/v1/deviceclasses",
            json!({"metadata": {"name": "gpu"}, "spec": {"selectors": [cel], "extendedResourceName": "x.io/gpu"}}),
        ),
        (
            "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
            json!({"metadata": {"name": "gpus"}, "spec": {"devices": {
            "requests": [{"name": "a", "exactly": request}],
            "constraints": [{"requests": ["a"], "matchAttribute": "x.io/model"}]}}}),
        ),
        (
            "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates",
            json!({"metadata": {"name": "gpus"}, "spec": {"spec": {"devices": {
            "requests": [{"name": "a", "exactly": request}]}}}}),
        ),
        (
            "/apis/resource.k8s.io/v1/resourceslices",
            json!({"metadata": {"name": "slice"}, "spec": {"driver": "x.io", "nodeName": "n",
            "pool": {"name": "n", "generation": 3, "resourceSliceCount": 1}, "devices": [{"name": "gpu-0",
                "attributes": {"model": {"string": "m"}, "cores": {"int": 8}, "new": {"bool": true}, "v": {"version": "1.2.3"}},
                "bindsToNode": true, "bindingConditions": ["x.io/ready"], "bindingFailureConditions": ["x.io/failed"],
                "capacity": {"memory": {"value": "40Gi"}}}]}}),
        ),
        (
            "/apis/resource.k8s.io/v1/devicetaintrules",
            json!({"metadata": {"name": "broken"}, "spec": {"deviceSelector": {"driver": "x.io", "pool": "n"},
            "taint": {"key": "k", "value": "v", "effect": "None"}}}),
        ),
    ]
}

fn core() -> Vec<(&'static str, Value)> {
    vec![
        (
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            json!({"metadata": {"name": "urgent"}, "value": -5, "preemptionPolicy": "Never"}),
        ),
        (
            "/api/v1/nodes",
            json!({"metadata": {"name": "n", "labels": {"zone": "a"}}, "spec": {"unschedulable": true,
            "taints": [{"key": "k", "value": "v", "effect": "NoExecute", "timeAdded": "2026-01-02T03:04:05Z"}]}}),
        ),
        ("/api/v1/namespaces/default/serviceaccounts", json!({"metadata": {"name": "for-encodings"}})),
        ("/api/v1/namespaces/default/pods", pod()),
        (
            "/api/v1/namespaces/default/services",
            json!({"metadata": {"name": "s"}, "spec": {"selector": labels(), "ports": [{"port": 80}]}}),
        ),
        (
            "/api/v1/namespaces/default/resourcequotas",
            json!({"metadata": {"name": "q"}, "spec": {
            "hard": {"requests.cpu": "100", "count/pods": "50"}, "scopeSelector": {"matchExpressions": [
                {"scopeName": "PriorityClass", "operator": "In", "values": ["urgent"]}]}}}),
        ),
        (
            "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
            json!({"metadata": {"name": "b"},
            "spec": {"maxUnavailable": "30%", "selector": selector(), "unhealthyPodEvictionPolicy": "AlwaysAllow"}}),
        ),
        (
            "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
            json!({"metadata": {"name": "b2"}, "spec": {"minAvailable": 0, "selector": {}}}),
        ),
        (
            "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
            json!({"metadata": {"name": "n"}, "spec": {
            "holderIdentity": "n", "leaseDurationSeconds": 40, "renewTime": "2026-01-02T03:04:05.123456Z"}}),
        ),
    ]
}

fn storage() -> Vec<(&'static str, Value)> {
    vec![
        (
            "/apis/storage.k8s.io/v1/storageclasses",
            json!({"metadata": {"name": "fast"}, "provisioner": "x.io/y",
            "volumeBindingMode": "WaitForFirstConsumer", "allowedTopologies": [{"matchLabelExpressions": [
                {"key": "zone", "values": ["a", "b"]}]}]}),
        ),
        (
            "/apis/storage.k8s.io/v1/csinodes",
            json!({"metadata": {"name": "n"}, "spec": {"drivers": [
            {"name": "x.io", "nodeID": "n", "allocatable": {"count": 0}}, {"name": "y.io", "nodeID": "n"}]}}),
        ),
        (
            "/apis/storage.k8s.io/v1/csidrivers",
            json!({"metadata": {"name": "x.io"}, "spec": {"attachRequired": false, "storageCapacity": true}}),
        ),
        (
            "/apis/storage.k8s.io/v1/namespaces/default/csistoragecapacities",
            json!({"metadata": {"name": "x"}, "storageClassName": "fast", "capacity": "10Gi", "maximumVolumeSize": "2Gi",
            "nodeTopology": selector()}),
        ),
        (
            "/api/v1/persistentvolumes",
            json!({"metadata": {"name": "v"}, "spec": {"capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce"], "storageClassName": "fast", "volumeMode": "Block",
            "claimRef": {"namespace": "default", "name": "claim"},
            "csi": {"driver": "x.io", "volumeHandle": "h"}, "nodeAffinity": {"required": {"nodeSelectorTerms": [node_term()]}}}}),
        ),
        (
            "/api/v1/namespaces/default/persistentvolumeclaims",
            json!({"metadata": {"name": "claim"}, "spec": {
            "accessModes": ["ReadWriteOnce", "ReadOnlyMany"], "storageClassName": "fast", "selector": selector(),
            "resources": {"requests": {"storage": "5Gi"}}}}),
        ),
    ]
}

fn workloads() -> Vec<(&'static str, Value)> {
    let template = json!({"metadata": {"labels": labels()}, "spec": {"containers": [container()]}});
    let replicated = json!({"metadata": {"name": "w"}, "spec": {"replicas": 0, "selector": {"matchLabels": labels()},
        "template": template, "serviceName": "w"}});
    let named = |mut object: Value, fields: &[&str]| {
        let spec = object["spec"].as_object_mut().expect("a spec");
        fields.iter().for_each(|field| drop(spec.remove(*field)));
        object
    };
    vec![
        ("/apis/apps/v1/namespaces/default/replicasets", named(replicated.clone(), &["serviceName"])),
        ("/apis/apps/v1/namespaces/default/deployments", named(replicated.clone(), &["serviceName"])),
        ("/apis/apps/v1/namespaces/default/statefulsets", replicated.clone()),
        ("/apis/apps/v1/namespaces/default/daemonsets", named(replicated, &["serviceName", "replicas"])),
        (
            "/api/v1/namespaces/default/replicationcontrollers",
            json!({"metadata": {"name": "w"}, "spec": {"replicas": 2, "selector": labels(), "template": template}}),
        ),
        (
            "/apis/batch/v1/namespaces/default/cronjobs",
            json!({"metadata": {"name": "c"}, "spec": {"schedule": "0 3 * * *", "timeZone": "Etc/UTC", "suspend": true,
                "jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [
                    {"name": "a", "image": "img:1"}]}}}}}}),
        ),
        (
            "/apis/batch/v1/namespaces/default/jobs",
            json!({"metadata": {"name": "w"}, "spec": {"parallelism": 0,
            "podReplacementPolicy": "Failed", "template": {"spec": {"restartPolicy": "Never", "containers": [container()]}}}}),
        ),
    ]
}

fn pod() -> Value {
    let pod_term = json!({"labelSelector": selector(), "topologyKey": "zone", "namespaceSelector": {}});
    let pod_affinity = json!({"requiredDuringSchedulingIgnoredDuringExecution": [pod_term],
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 7, "podAffinityTerm": pod_term}]});
    json!({
        "metadata": {"name": "p", "labels": labels(), "annotations": {"note": "x"}, "finalizers": ["example.com/hold"]},
        "spec": {
            "containers": [container()],
            "initContainers": [{"name": "i", "image": "img:1", "restartPolicy": "Always"}],
            "terminationGracePeriodSeconds": 0, "activeDeadlineSeconds": 600, "nodeSelector": {"disk": "ssd"},
            "priorityClassName": "urgent", "schedulingGates": [{"name": "example.com/wait"}],
            "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}],
            "affinity": {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [node_term()]},
                    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 3, "preference": node_term()}]},
                "podAffinity": pod_affinity, "podAntiAffinity": pod_affinity,
            },
            "topologySpreadConstraints": [{"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": selector(), "minDomains": 2, "nodeTaintsPolicy": "Honor", "matchLabelKeys": ["v"]}],
            "volumes": [{"name": "a", "emptyDir": {"medium": "Memory"}}, {"name": "b", "hostPath": {"path": "/"}},
                {"name": "c", "persistentVolumeClaim": {"claimName": "claim"}}, {"name": "d", "configMap": {"name": "m"}},
                {"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"],
                    "storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}}}}},
                {"name": "f", "iscsi": {"targetPortal": "1.2.3.4", "iqn": "iqn.2001-04.com.example:x", "lun": 0, "readOnly": true}}],
        },
    })
}

fn labels() -> Value {
    json!({"app": "web"})
}

fn selector() -> Value {
    json!({"matchLabels": labels(), "matchExpressions": [
        {"key": "tier", "operator": "NotIn", "values": ["db", "cache"]}]})
}

fn container() -> Value {
    json!({"name": "c", "image": "img", "ports": [{"containerPort": 80, "hostPort": 8080}],
        "resources": {"requests": {"cpu": "250m", "memory": "64Mi"}, "limits": {"memory": "1.5Gi"}}})
}

fn node_term() -> Value {
    json!({"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]},
        {"key": "cores", "operator": "Gt", "values": ["4"]}]})
}
