//! Workloads without a running pod.

use std::collections::BTreeMap;

use kordon_core::{
    cluster::{Cluster, Key, Phase, Pod, Workload, WorkloadKind, WorkloadStage},
    plan::owner,
};
use kordon_time::{Span, Timestamp};

/// Time within which a pod is expected to start once it has a node: the API server's default of
/// `progressDeadlineSeconds` in Deployments.
const STARTS_WITHIN: Span = Span::from_secs(600);

/// Kinds of controllers that create pods, except Jobs, which may rightly have no pods.
const KINDS: [WorkloadKind; 4] = [
    WorkloadKind::ReplicaSet,
    WorkloadKind::StatefulSet,
    WorkloadKind::ReplicationController,
    WorkloadKind::DaemonSet,
];

/// Workloads that want pods, but have no pod that runs or is about to start.
#[derive(Debug, Default)]
pub struct IdleKeys {
    /// Keys of the workloads, sorted. A Deployment stands for its ReplicaSets.
    pub keys: Vec<Key>,
    /// Time at which the next workload is idle because its pods have not started in time; `None` if there is none.
    pub until: Option<Timestamp>,
}

/// What the pods of a workload do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    /// A pod runs.
    Runs,
    /// A pod is expected to start before `until`.
    Starts {
        until: Timestamp,
    },
    Idle,
}

impl IdleKeys {
    /// Finds the idle workloads.
    pub fn find(cluster: &Cluster, now: Timestamp) -> Self {
        let mut is_idle: BTreeMap<Key, bool> = BTreeMap::new();
        let mut until: Option<Timestamp> = None;
        for kind in KINDS {
            for workload in cluster.workloads(kind).iter().filter(|workload| wants_pods(cluster, workload)) {
                let activity = activity(cluster, workload, now);
                if let Activity::Starts { until: at } = activity {
                    until = Some(until.map_or(at, |first| first.min(at)));
                }
                let of_all = is_idle.entry(name(cluster, workload)).or_insert(true);
                *of_all = *of_all && activity == Activity::Idle;
            }
        }
        let keys = is_idle.into_iter().filter(|(_, is_idle)| *is_idle).map(|(key, _)| key).collect();
        Self { keys, until }
    }
}

/// Whether the workload wants pods. How many pods a DaemonSet wants depends on the nodes; it wants some if it has some.
fn wants_pods(cluster: &Cluster, workload: &Workload) -> bool {
    let wants = match workload.kind {
        WorkloadKind::DaemonSet => cluster.count_owned_by(&workload.uid) > 0,
        WorkloadKind::ReplicaSet
        | WorkloadKind::Deployment
        | WorkloadKind::StatefulSet
        | WorkloadKind::ReplicationController
        | WorkloadKind::Job => workload.replicas.is_some_and(|replicas| replicas > 0),
    };
    wants && workload.stage == WorkloadStage::Active
}

/// Returns the key of the workload to which a controller belongs: the Deployment of a ReplicaSet, otherwise the
/// controller itself.
fn name(cluster: &Cluster, workload: &Workload) -> Key {
    let above = workload.owner.as_ref();
    let above = above.and_then(|above| owner::workload_of(cluster, &workload.key.namespace, above));
    above.map_or_else(|| workload.key.clone(), |above| above.key.clone())
}

fn activity(cluster: &Cluster, workload: &Workload, now: Timestamp) -> Activity {
    let mut last_start: Option<Timestamp> = None;
    for pod in cluster.pods_owned_by(&workload.uid) {
        match activity_of(cluster, pod, now) {
            Activity::Runs => return Activity::Runs,
            Activity::Starts { until } => last_start = last_start.max(Some(until)),
            Activity::Idle => {}
        }
    }
    last_start.map_or(Activity::Idle, |until| Activity::Starts { until })
}

fn activity_of(cluster: &Cluster, pod: &Pod, now: Timestamp) -> Activity {
    let is_unscheduled = pod.phase == Phase::Pending && pod.unscheduled.is_some();
    // A container that crashes again and again leaves the phase of its pod Running.
    let is_in_trouble = pod.trouble().is_some() && !pod.is_ready();
    if pod.is_finished() || is_unscheduled || is_in_trouble {
        return Activity::Idle;
    }
    if pod.phase != Phase::Pending {
        return Activity::Runs;
    }
    let accepted = pod.started.map(|accepted| cluster.stated_by_kubelet(pod, accepted));
    let until = cluster.local(accepted.unwrap_or(pod.created)) + STARTS_WITHIN;
    if until > now { Activity::Starts { until } } else { Activity::Idle }
}
