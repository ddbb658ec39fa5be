//! ReplicaSets: a pod is replaced as soon as it is terminating (docs/upstream/placement-and-pressure.md#5.4).

use std::{cmp::Reverse, sync::Arc};

use serde_json::json;

use super::Workloads;
use crate::{
    objects::{Key, Pod, Workload, WorkloadKind},
    writer::WriteError,
};

impl Workloads {
    pub(super) async fn sync_replica_set(&mut self, key: &Key) -> Result<(), WriteError> {
        let Some(set) = self.workload(WorkloadKind::ReplicaSet, key) else { return Ok(()) };
        let wanted = set.spec.replicas.unwrap_or(1);
        let mut pods = self.active_pods_of(&set);
        let mut created = Ok(());
        for _ in pods.len()..wanted {
            created = self.create_pod(WorkloadKind::ReplicaSet, &set, None, |_| {}).await;
            if created.is_err() {
                break;
            }
        }
        pods.sort_by_cached_key(|pod| deletion_order(pod));
        for pod in pods.iter().take(pods.len().saturating_sub(wanted)) {
            self.delete_pod(pod, None).await?;
        }
        let pods = self.active_pods_of(&set);
        let ready = pods.iter().filter(|pod| pod.is_ready()).count();
        let status = json!({
            "observedGeneration": set.metadata.generation.unwrap_or(0),
            "replicas": pods.len(), "fullyLabeledReplicas": pods.len(),
            "readyReplicas": ready, "availableReplicas": ready,
        });
        self.write_status(WorkloadKind::ReplicaSet, &set, status).await?;
        created
    }

    /// Returns the pods that count as replicas.
    fn active_pods_of(&self, set: &Workload) -> Vec<Arc<Pod>> {
        self.pods_of(set).into_iter().filter(|pod| pod.is_active()).collect()
    }
}

/// Sort key for the deletion of surplus pods. Pods that are not bound come first, then pods that do not run, then pods
/// that are not ready, and then the youngest pods.
fn deletion_order(pod: &Pod) -> (bool, bool, bool, Reverse<String>, String) {
    let born = pod.metadata.creation_timestamp.as_ref().map(|time| time.0.to_string()).unwrap_or_default();
    let name = pod.metadata.name.clone().unwrap_or_default();
    (!pod.spec.node_name.is_empty(), pod.status.phase == "Running", pod.is_ready(), Reverse(born), name)
}
