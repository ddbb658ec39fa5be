//! Builder of the first snapshot of a cluster. It works in steps, because hundreds of thousands of pods take seconds.

use std::sync::Arc;

use super::{HOSTNAME, Resident, Snapshot, ZONE, labels, names_labels};
use crate::{
    cluster::{Cluster, Key, Name, NodeName, Pod, SchedulingSpec},
    placement::{
        ids::IdsByAddress,
        node_walk::{NodeWalk, SchedulerOptions},
        rules::SchedulerRules,
    },
};

/// Number of pods that one step reads. A step takes less than a millisecond.
const STEP: usize = 256;

/// Number of label columns after which the builder creates no more columns in advance.
const PREPARED_LABELS: usize = 64;

/// A snapshot that does not contain all pods yet.
#[derive(Debug)]
pub(in crate::placement) struct SnapshotBuilder {
    snapshot: Snapshot,
    /// Pods read so far, by node number.
    residents: Vec<Vec<Resident>>,
    /// Node numbers, by the address of the node's name. The pods of a node usually share one allocation of the name,
    /// because the same decoder has read them.
    nodes: IdsByAddress<NodeName>,
    specs: IdsByAddress<Arc<SchedulingSpec>>,
    /// Key of the next pod to read; `None` once all pods are read.
    next: Option<Key>,
}

impl SnapshotBuilder {
    /// Creates a snapshot with the nodes of a cluster. [`SnapshotBuilder::advance`] then reads the pods.
    pub fn new(cluster: &Cluster, rules: SchedulerRules, walk: NodeWalk) -> Self {
        let mut snapshot = Snapshot::empty(rules, walk);
        for node in cluster.nodes().iter() {
            snapshot.insert_node(node.clone());
        }
        snapshot.rank_nodes();
        snapshot.ensure_columns([HOSTNAME, ZONE].map(Name::from).iter());
        Self {
            residents: vec![Vec::new(); snapshot.nodes.len()],
            snapshot,
            nodes: IdsByAddress::default(),
            specs: IdsByAddress::default(),
            next: cluster.pods().iter().next().map(|pod| pod.key.clone()),
        }
    }

    /// Creates a snapshot with the nodes of a cluster, for a scheduler with known options.
    pub fn for_scheduler(cluster: &Cluster, scheduler: SchedulerOptions) -> Self {
        Self::new(cluster, SchedulerRules::for_version(scheduler.version), NodeWalk::new(scheduler))
    }

    /// Reads further pods until all pods are read or `continues` returns false. Calls `continues` before each step.
    /// `cluster` must be the same as in [`SnapshotBuilder::new`].
    ///
    /// Returns whether all pods are read.
    pub fn advance(&mut self, cluster: &Cluster, continues: &mut impl FnMut() -> bool) -> bool {
        while let Some(next) = &self.next {
            if !continues() {
                return false;
            }
            let mut pods = cluster.pods().iter_from(next);
            pods.by_ref().take(STEP).filter(|pod| !pod.is_finished()).for_each(|pod| self.read(pod));
            self.next = pods.next().map(|pod| pod.key.clone());
        }
        true
    }

    fn read(&mut self, pod: &Arc<Pod>) {
        let Some(name) = &pod.node else { return self.snapshot.add_nominated(pod) };
        let node = match self.nodes.number(name) {
            Some(node) => node,
            None => {
                let Some(node) = self.snapshot.number(name) else {
                    self.snapshot.strays.entry(name.clone()).or_default().push(pod.clone());
                    return;
                };
                self.nodes.insert(name.clone(), node);
                node
            }
        };
        if names_labels(&pod.scheduling) && self.specs.number(&pod.scheduling).is_none() {
            self.specs.insert(pod.scheduling.clone(), node);
            self.prepare_labels(&pod.scheduling);
        }
        let Self { snapshot, residents, .. } = self;
        let resident = snapshot.resident(pod.clone());
        snapshot.resources_mut(node).add(pod);
        snapshot.pod_classes.on_mut(resident.pod_class).push(node, pod.termination.is_some());
        if let Some(affinity_class) = resident.affinity_class {
            snapshot.affinity_classes.on_mut(affinity_class).push(node, false);
        }
        residents[node as usize].push(resident);
    }

    /// Creates columns in advance for the node labels to which a pod's spec refers. A replacement of the pod needs the
    /// same columns, and copies of the snapshot share them. Each column takes a few bytes per node, so from
    /// [`PREPARED_LABELS`] columns on, further columns are created only when they are needed.
    fn prepare_labels(&mut self, spec: &SchedulingSpec) {
        if self.snapshot.columns.len() < PREPARED_LABELS {
            self.snapshot.ensure_columns(labels(spec));
        }
    }

    /// Reads the remaining pods and returns the snapshot.
    pub fn finish(mut self, cluster: &Cluster) -> Snapshot {
        self.advance(cluster, &mut || true);
        let Self { mut snapshot, residents, .. } = self;
        snapshot.pod_classes.sort();
        snapshot.affinity_classes.sort();
        snapshot.residents = Arc::new(residents.into_iter().map(Arc::new).collect());
        snapshot.copy_small_tables(cluster);
        snapshot
    }
}
