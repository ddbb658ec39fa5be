//! The cluster between waves: replacements run where the plan of a wave put them.

use std::{collections::BTreeSet, sync::Arc};

use super::wave::is_pending;
use crate::{
    cluster::{
        Change, Cluster, ConditionStatus, Key, Node, NodeName, ObjectEvent, Phase, Pod, PodReady, Uid,
        Version,
    },
    placement::SchedulingRequest,
    plan::{Plan, PodOutcome, successor},
};

/// A cluster at the start of a wave.
#[derive(Clone, Debug)]
pub(super) struct WaveState {
    pub cluster: Cluster,
    /// Replacements of earlier waves, by uid.
    moved: BTreeSet<Uid>,
    /// Number of replacements, from which names are made.
    made: usize,
}

impl WaveState {
    pub fn new(cluster: &Cluster) -> Self {
        Self { cluster: cluster.clone(), moved: BTreeSet::new(), made: 0 }
    }

    /// Whether a pod has replaced one in an earlier wave.
    pub fn has_moved(&self, uid: &Uid) -> bool {
        self.moved.contains(uid)
    }

    /// Returns the cluster with these nodes cordoned.
    pub fn with_cordoned<'a>(&self, nodes: impl IntoIterator<Item = &'a NodeName>) -> Cluster {
        let mut cluster = self.cluster.clone();
        for node in nodes.into_iter().filter_map(|name| self.cluster.node(name)) {
            let version = Version(node.version.0 + 1);
            let cordoned = Node { unschedulable: true, version, ..(**node).clone() };
            cluster.apply(Change::Node(ObjectEvent::Applied(cordoned)), &mut Vec::new());
        }
        cluster
    }

    /// Returns the state after the drains of a plan: its nodes are back, and schedulable if they were before.
    pub fn after(&self, plan: &Plan) -> Self {
        let mut after = self.clone();
        for row in &plan.pods {
            let Some(pod) = self.cluster.pod(&row.pod).cloned() else { continue };
            let leaves = row.gone.likely.is_some();
            if !leaves {
                continue;
            }
            after.apply(Change::Pod(ObjectEvent::Deleted(row.pod.clone())));
            match (&row.outcome, &row.node) {
                (PodOutcome::Moves { node, .. }, _) => after.add_replacement(&pod, node),
                // It waits until its node is back.
                (_, Some(own)) if is_pending(row) => after.add_replacement(&pod, own),
                _ => {}
            }
        }
        after
    }

    /// Adds a Ready replacement of a pod on this node.
    fn add_replacement(&mut self, pod: &Arc<Pod>, node: &NodeName) {
        self.made += 1;
        let name = if SchedulingRequest::keeps_name_of(pod) {
            pod.key.name.clone()
        } else {
            format!("{}-{}", pod.key.name, self.made).into()
        };
        let uid: Uid = format!("{}-{}", pod.uid, self.made).as_str().into();
        let new = Pod {
            key: Key { name, ..pod.key.clone() },
            uid: uid.clone(),
            node: Some(node.clone()),
            phase: Phase::Running,
            ready: Some(PodReady { status: ConditionStatus::True, last_transition: None }),
            termination: None,
            disruption_target: None,
            nominated: None,
            ending: None,
            unscheduled: None,
            ..successor::successor(&self.cluster, pod).into_owned()
        };
        self.moved.insert(uid);
        self.apply(Change::Pod(ObjectEvent::Applied(new)));
    }

    fn apply(&mut self, change: Change) {
        self.cluster.apply(change, &mut Vec::new());
    }
}
