//! Owners of pods, and their PodDisruptionBudgets.

use serde_json::{Value, json};

use super::{SeedOwner, SeedWorkload, catalogue, managed_fields::managed};
use crate::random::{RandomSource, uid};
use kordon_time::{Span, Timestamp};

/// Returns all objects of a workload except its pods. Owners come first.
pub fn objects(workload: &SeedWorkload, random: RandomSource, epoch: Timestamp) -> Vec<Value> {
    let born = epoch - Span::from_secs(random.rng(&["born", &workload.name]).i64(3 * 86_400..60 * 86_400));
    let mut made = match &workload.owner {
        SeedOwner::Static => Vec::new(),
        SeedOwner::Agent(_) => vec![daemon_set(workload)],
        SeedOwner::Service(service) => match service.kind {
            catalogue::CatalogueKind::Deployment => vec![deployment(workload), replica_set(workload, random)],
            catalogue::CatalogueKind::StatefulSet => vec![stateful_set(workload)],
            catalogue::CatalogueKind::Job => vec![job(workload, random, epoch)],
            catalogue::CatalogueKind::Bare => Vec::new(),
        },
    };
    made.extend(budget(workload));
    for object in &mut made {
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        object["metadata"]["namespace"] = json!(workload.namespace);
        object["metadata"]["uid"] = json!(object_uid(random, &kind, &workload.namespace, &name));
        object["metadata"]["creationTimestamp"] = json!(born.to_time());
        object["metadata"]["generation"] = json!(1);
        let manager = if kind == "ReplicaSet" { "kube-controller-manager" } else { "helm" };
        object["metadata"]["managedFields"] = managed(object, &[(manager, "", born)]);
    }
    made
}

/// The uid of an initial object.
pub fn object_uid(random: RandomSource, kind: &str, namespace: &str, name: &str) -> String {
    uid(&mut random.rng(&["uid", kind, namespace, name]))
}

fn deployment(workload: &SeedWorkload) -> Value {
    let replicas = workload.replicas;
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": workload.name,
            "labels": workload.labels,
            "annotations": {"deployment.kubernetes.io/revision": "1", "meta.helm.sh/release-name": workload.name},
        },
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": workload.labels},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
            "revisionHistoryLimit": 10,
            "progressDeadlineSeconds": 600,
            "template": workload.bare_template(),
        },
        "status": {
            "observedGeneration": 1, "replicas": replicas, "updatedReplicas": replicas,
            "readyReplicas": replicas, "availableReplicas": replicas,
        },
    })
}

fn replica_set(workload: &SeedWorkload, random: RandomSource) -> Value {
    let replicas = workload.replicas;
    let owner = object_uid(random, "Deployment", &workload.namespace, &workload.name);
    let labels = &workload.template["metadata"]["labels"];
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": workload.pod_owner_name(),
            "labels": labels,
            "annotations": {"deployment.kubernetes.io/revision": "1"},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "Deployment", "name": workload.name, "uid": owner,
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": workload.template},
        "status": {
            "observedGeneration": 1, "replicas": replicas, "fullyLabeledReplicas": replicas,
            "readyReplicas": replicas, "availableReplicas": replicas,
        },
    })
}

fn stateful_set(workload: &SeedWorkload) -> Value {
    let replicas = workload.replicas;
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": workload.name, "labels": workload.labels},
        "spec": {
            "replicas": replicas,
            "serviceName": workload.name,
            "podManagementPolicy": "OrderedReady",
            "revisionHistoryLimit": 10,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
            "selector": {"matchLabels": workload.labels},
            "template": workload.template,
            "volumeClaimTemplates": [{
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "gp3", "volumeMode": "Filesystem",
                    "resources": {"requests": {"storage": "50Gi"}}},
            }],
        },
        "status": {
            "observedGeneration": 1, "replicas": replicas, "readyReplicas": replicas,
            "availableReplicas": replicas, "currentReplicas": replicas, "updatedReplicas": replicas,
        },
    })
}

fn daemon_set(workload: &SeedWorkload) -> Value {
    let nodes = workload.replicas;
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": workload.name, "labels": workload.labels},
        "spec": {
            "selector": {"matchLabels": workload.labels},
            "revisionHistoryLimit": 10,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
            "template": workload.template,
        },
        "status": {
            "observedGeneration": 1, "currentNumberScheduled": nodes, "desiredNumberScheduled": nodes,
            "numberMisscheduled": 0, "numberReady": nodes, "numberAvailable": nodes, "updatedNumberScheduled": nodes,
        },
    })
}

fn job(workload: &SeedWorkload, random: RandomSource, epoch: Timestamp) -> Value {
    let uid = object_uid(random, "Job", &workload.namespace, &workload.name);
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": workload.name, "labels": workload.labels},
        "spec": {
            "parallelism": workload.replicas,
            "completions": workload.replicas * 2,
            "backoffLimit": 6,
            "completionMode": "NonIndexed",
            "podReplacementPolicy": "TerminatingOrFailed",
            "suspend": false,
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}},
            "template": workload.template,
        },
        "status": {
            "active": workload.replicas, "ready": workload.replicas,
            "startTime": (epoch - Span::from_secs(900)).to_time(),
        },
    })
}

fn budget(workload: &SeedWorkload) -> Option<Value> {
    let SeedOwner::Service(service) = &workload.owner else { return None };
    let (field, amount) = match service.budget {
        catalogue::CatalogueBudget::None => return None,
        catalogue::CatalogueBudget::MinAvailable(amount) => ("minAvailable", amount),
        catalogue::CatalogueBudget::MaxUnavailable(amount) => ("maxUnavailable", amount),
    };
    let amount = amount.parse::<i64>().map_or_else(|_| json!(amount), |number| json!(number));
    Some(json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": workload.name, "labels": workload.labels},
        "spec": {field: amount, "selector": {"matchLabels": workload.labels}},
        "status": {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0},
    }))
}
