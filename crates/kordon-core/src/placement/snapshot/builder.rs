//! The first snapshot of a cluster, made in steps: hundreds of thousands of pods take seconds.

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

/// The pods of one step: less than a millisecond.
const STEP: usize = 256;

/// So many labels that pods name have columns from the start.
const PREPARED_LABELS: usize = 64;

/// A snapshot of which not all pods are read.
#[derive(Debug)]
pub(in crate::placement) struct SnapshotBuilder {
    snapshot: Snapshot,
    /// By number of the node: the pods that are read.
    residents: Vec<Vec<Resident>>,
    /// Pods of one node mostly share the allocation of its name, for one decoder has read them.
    nodes: IdsByAddress<NodeName>,
    specs: IdsByAddress<Arc<SchedulingSpec>>,
    /// The next pod; none once all are read.
    next: Option<Key>,
}

impl SnapshotBuilder {
    /// Reads the nodes of a cluster, whose pods [`SnapshotBuilder::advance`] reads.
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

    /// The same for a scheduler of which more is known than its rules.
    pub fn for_scheduler(cluster: &Cluster, scheduler: SchedulerOptions) -> Self {
        Self::new(cluster, SchedulerRules::of(scheduler.version), NodeWalk::new(scheduler))
    }

    /// Reads pods of the same cluster until all are read, or until `continues`, which is asked before each step, returns
    /// false. Returns whether all are read.
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
        snapshot.node_resources.get_mut(node as usize).add(pod);
        snapshot.pod_classes.on_mut(resident.pod_class).push(node, pod.termination.is_some());
        if let Some(affinity_class) = resident.affinity_class {
            snapshot.affinity_classes.on_mut(affinity_class).push(node, false);
        }
        residents[node as usize].push(resident);
    }

    /// Makes the columns of the labels that a pod on a node names, for its replacement and all copies. Beyond a number they
    /// are made when they are needed: each takes some bytes for each node.
    fn prepare_labels(&mut self, spec: &SchedulingSpec) {
        if self.snapshot.columns.len() < PREPARED_LABELS {
            self.snapshot.ensure_columns(labels(spec));
        }
    }

    /// Reads what is left of the same cluster, and returns its snapshot.
    pub fn finish(mut self, cluster: &Cluster) -> Snapshot {
        self.advance(cluster, &mut || true);
        let Self { mut snapshot, residents, .. } = self;
        snapshot.pod_classes.sort();
        snapshot.affinity_classes.sort();
        for (all, residents) in snapshot.residents.iter_mut().zip(residents) {
            *all = Arc::new(residents);
        }
        snapshot.copy_small_tables(cluster);
        snapshot
    }
}
