//! Workloads without a running pod.

use std::collections::BTreeMap;

use kordon_core::{
    cluster::{Cluster, Key, Phase, Workload, WorkloadKind, WorkloadStage},
    plan::owner,
};

/// Returns the known workloads that want pods, but have no pod that runs or is about to start, sorted. A Deployment
/// stands for its ReplicaSets. DaemonSets and Jobs are left out: they may rightly have no pods.
pub fn idle_workloads(cluster: &Cluster) -> Vec<Key> {
    let mut is_idle: BTreeMap<Key, bool> = BTreeMap::new();
    for kind in [WorkloadKind::ReplicaSet, WorkloadKind::StatefulSet, WorkloadKind::ReplicationController] {
        let wanting = cluster.workloads(kind).iter().filter(|workload| {
            workload.stage == WorkloadStage::Active && workload.replicas.is_some_and(|replicas| replicas > 0)
        });
        for workload in wanting {
            let of_all = is_idle.entry(name(cluster, workload)).or_insert(true);
            *of_all = *of_all && runs_none(cluster, workload);
        }
    }
    is_idle.into_iter().filter(|(_, is_idle)| *is_idle).map(|(key, _)| key).collect()
}

/// Returns the key of the workload to which a controller belongs: the Deployment of a ReplicaSet, otherwise the
/// controller itself.
fn name(cluster: &Cluster, workload: &Workload) -> Key {
    let above = workload.owner.as_ref();
    let above = above.and_then(|above| owner::workload_of(cluster, &workload.key.namespace, above));
    above.map_or_else(|| workload.key.clone(), |above| above.key.clone())
}

/// Whether no pod of the workload runs or is about to start.
fn runs_none(cluster: &Cluster, workload: &Workload) -> bool {
    cluster.pods_owned_by(&workload.uid).all(|pod| {
        let is_unscheduled = pod.phase == Phase::Pending && pod.unscheduled.is_some();
        // A container that crashes again and again leaves the phase of its pod Running.
        let is_in_trouble = pod.trouble().is_some() && !pod.is_ready();
        pod.is_finished() || is_unscheduled || is_in_trouble
    })
}
