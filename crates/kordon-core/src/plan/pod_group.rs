//! Groups of a LeaderWorkerSet: pods that restart together (kubernetes-sigs/lws `pkg/controllers/pod_controller.go`).
//!
//! The leader's pod owns the StatefulSet of the workers, so that the workers are deleted with the leader. The deletion
//! of a worker deletes the leader too, unless `restartPolicy` is None.

use std::{collections::BTreeMap, sync::Arc};

use crate::cluster::{Cluster, Key, Name, Pod};

const SET: &str = "leaderworkerset.sigs.k8s.io/name";
const GROUP: &str = "leaderworkerset.sigs.k8s.io/group-index";
const WORKER: &str = "leaderworkerset.sigs.k8s.io/worker-index";

/// A group of a LeaderWorkerSet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PodGroup {
    set: Key,
    index: Name,
}

impl PodGroup {
    fn from_pod(pod: &Pod) -> Option<Self> {
        let (set, index) = (pod.labels.get(SET)?, pod.labels.get(GROUP)?);
        let set = Key { namespace: pod.key.namespace.clone(), name: set.clone() };
        pod.labels.contains_key(WORKER).then(|| Self { set, index: index.clone() })
    }

    fn pods<'a>(&self, cluster: &'a Cluster) -> impl Iterator<Item = &'a Arc<Pod>> {
        let lives = |pod: &&Arc<Pod>| pod.lives();
        cluster
            .pods_in(&self.set.namespace)
            .filter(lives)
            .filter(|pod| Self::from_pod(pod).as_ref() == Some(self))
    }
}

/// Returns whether other pods restart when this pod leaves.
pub(super) fn restarts_others(cluster: &Cluster, pod: &Pod) -> bool {
    PodGroup::from_pod(pod).is_some_and(|group| group.pods(cluster).any(|other| other.key != pod.key))
}

/// A group of which some pods leave, so that the others restart too.
pub(super) struct RestartingGroup {
    /// The LeaderWorkerSet.
    pub set: Key,
    pub index: Name,
    /// Whether the leader is among the pods that leave.
    pub leads: bool,
    /// Number of pods that restart with those that leave.
    pub others: usize,
}

/// Returns the groups of which some pods leave, so that the others restart too.
pub(super) fn restarting<'a>(
    cluster: &Cluster,
    leaving: impl IntoIterator<Item = &'a Pod>,
) -> impl Iterator<Item = RestartingGroup> {
    let mut groups: BTreeMap<PodGroup, Vec<&Pod>> = BTreeMap::new();
    for pod in leaving {
        if let Some(group) = PodGroup::from_pod(pod) {
            groups.entry(group).or_default().push(pod);
        }
    }
    groups.into_iter().filter_map(|(group, leaving)| {
        let stays = |pod: &&Arc<Pod>| !leaving.iter().any(|other| other.key == pod.key);
        let others = group.pods(cluster).filter(stays).count();
        let leads = leaving.iter().any(|pod| pod.labels.get(WORKER).is_some_and(|index| **index == *"0"));
        let PodGroup { set, index } = group;
        (others > 0).then_some(RestartingGroup { set, index, leads, others })
    })
}
