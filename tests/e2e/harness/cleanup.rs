//! Deletes what a test has created in a control plane, so that the next test starts with an empty cluster.

use anyhow::{Context, Result};
use k8s_openapi::api::{
    apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet},
    batch::v1::Job,
    coordination::v1::Lease,
    core::v1::{Event, Namespace, Node, Pod, ReplicationController},
    policy::v1::PodDisruptionBudget,
    rbac::v1::{ClusterRole, ClusterRoleBinding},
};
use kordon_time::Span;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PropagationPolicy},
    core::{ApiResource, DynamicObject},
};
use serde_json::json;

use super::eventually::eventually;

/// Deletes workloads, budgets, pods, nodes, Leases, namespaces and roles of tests, without grace periods.
///
/// Repeats until nothing is left, because controllers may create pods until their workload is gone.
pub async fn delete_all(client: &Client, role_label: &str) -> Result<()> {
    let roles = ListParams::default().labels(role_label);
    eventually("an empty cluster", Span::from_secs(60), async || {
        let mut left = 0;
        for namespace in Api::<Namespace>::all(client.clone()).list(&ListParams::default()).await? {
            for kind in namespaced_kinds() {
                let api = Api::<DynamicObject>::namespaced_with(client.clone(), &namespace.name_any(), &kind);
                left += clear(&api, &ListParams::default())
                    .await
                    .with_context(|| format!("deleting {}", kind.plural))?;
            }
            if !KEPT_NAMESPACES.contains(&&*namespace.name_any()) {
                left += 1;
                delete_namespace(client, &namespace).await?;
            }
        }
        left += clear(&all::<Node>(client), &ListParams::default()).await?;
        let leases =
            Api::<DynamicObject>::namespaced_with(client.clone(), "kube-node-lease", &kind::<Lease>());
        left += clear(&leases, &ListParams::default()).await?;
        for leader in ["kube-controller-manager", "kube-scheduler"] {
            let leases = Api::<Lease>::namespaced(client.clone(), "kube-system");
            ignore_not_found(leases.delete(leader, &DeleteParams::default()).await)?; // a running leader recreates it
        }
        left += clear(&all::<ClusterRoleBinding>(client), &roles).await?;
        left += clear(&all::<ClusterRole>(client), &roles).await?;
        Ok((left == 0).then_some(()))
    })
    .await
}

/// Namespaces that the API server creates, and recreates if they are deleted.
const KEPT_NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Returns the namespaced kinds, owners before the kinds that they own.
fn namespaced_kinds() -> Vec<ApiResource> {
    vec![
        kind::<Deployment>(),
        kind::<StatefulSet>(),
        kind::<DaemonSet>(),
        kind::<ReplicaSet>(),
        kind::<ReplicationController>(),
        kind::<Job>(),
        kind::<PodDisruptionBudget>(),
        kind::<Pod>(),
        kind::<Event>(),
    ]
}

fn kind<K: Resource<DynamicType = ()>>() -> ApiResource {
    ApiResource::erase::<K>(&())
}

fn all<K: Resource<DynamicType = ()>>(client: &Client) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &kind::<K>())
}

/// Deletes the listed objects. Returns their number.
async fn clear(api: &Api<DynamicObject>, which: &ListParams) -> Result<usize> {
    let found = api.list_metadata(which).await?.items;
    if found.is_empty() {
        return Ok(0);
    }
    for object in found.iter().filter(|object| !object.finalizers().is_empty()) {
        // Removes finalizers, because the controllers that would do so may not be running.
        let none = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
        ignore_not_found(api.patch(&object.name_any(), &PatchParams::default(), &none).await)?;
    }
    let at_once = DeleteParams {
        grace_period_seconds: Some(0),
        propagation_policy: Some(PropagationPolicy::Background),
        ..DeleteParams::default()
    };
    api.delete_collection(&at_once, which).await?;
    Ok(found.len())
}

/// Deletes a namespace and removes its finalizer, as the namespace controller would.
async fn delete_namespace(client: &Client, namespace: &Namespace) -> Result<()> {
    let name = namespace.name_any();
    let api = Api::<Namespace>::all(client.clone());
    ignore_not_found(api.delete(&name, &DeleteParams::default()).await)?;
    let Some(mut terminating) = api.get_opt(&name).await? else { return Ok(()) };
    terminating.spec.get_or_insert_default().finalizers = None;
    let request = http::Request::put(format!("/api/v1/namespaces/{name}/finalize"))
        .header("Content-Type", "application/json")
        .body(serde_json::to_vec(&terminating)?)?;
    ignore_not_found(client.request::<Namespace>(request).await)
}

fn ignore_not_found<T>(answer: kube::Result<T>) -> Result<()> {
    match answer {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        other => Ok(other.map(drop)?),
    }
}
