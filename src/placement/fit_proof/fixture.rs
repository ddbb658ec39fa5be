//! Small clusters for the tests of proofs.

use std::sync::Arc;

use super::{FitProof, FitProofs, Recreated, loss::Loss};
use crate::{
    cluster::{
        Change, Cluster, Key, Labels, Node, NodeName, ObjectEvent, Owner, OwnerKind, Pod, Requests,
        Requirement, Resources, SchedulingSpec, Selector, SelectorOperator, WorkloadKind,
        scheduling::{PodTerm, PodTerms, SpreadConstraint},
    },
    engine::ServerVersion,
    placement::snapshot::Snapshot,
};

pub(super) const HOSTNAME: &str = "kubernetes.io/hostname";
pub(super) const ZONE: &str = "topology.kubernetes.io/zone";

/// Nodes `n0`, `n1`, … with 1000 of CPU and of memory each, and 110 pods at most.
pub(super) struct SmallCluster {
    pub cluster: Cluster,
    pods: usize,
}

impl SmallCluster {
    /// By node: its zone.
    pub fn new(zones: &[&str]) -> Self {
        let mut cluster = Cluster::default();
        for (number, zone) in zones.iter().enumerate() {
            let name = format!("n{number}");
            let node = Node {
                name: name.as_str().into(),
                labels: labels(&[(HOSTNAME, &name), (ZONE, zone)]),
                allocatable: Resources { cpu_milli: 1000, memory_bytes: 1000, pods: 110 },
                ..Node::default()
            };
            cluster.apply(Change::Node(ObjectEvent::Applied(node)), &mut Vec::new());
        }
        Self { cluster, pods: 0 }
    }

    /// A pod of a ReplicaSet on each of these nodes.
    pub fn pods(&mut self, app: &str, nodes: &[usize], cpu_milli: i64, memory_bytes: i64) {
        self.pods_with(app, nodes, (cpu_milli, memory_bytes), &SchedulingSpec::default());
    }

    /// The same with a spec.
    pub fn pods_with(
        &mut self,
        app: &str,
        nodes: &[usize],
        (cpu_milli, memory_bytes): (i64, i64),
        spec: &SchedulingSpec,
    ) {
        for node in nodes {
            self.pods += 1;
            let owner = Owner {
                kind: OwnerKind::Workload(WorkloadKind::ReplicaSet),
                name: app.into(),
                uid: app.into(),
            };
            let requests = Requests { cpu_milli, memory_bytes, ..Requests::default() };
            let pod = Pod {
                key: Key::new("default", &format!("{app}-{}", self.pods)),
                labels: labels(&[("app", app)]),
                owner: Some(owner.into()),
                node: Some(name(*node)),
                resources: Arc::new(requests.into()),
                scheduling: Arc::new(spec.clone()),
                ..Pod::default()
            };
            self.cluster.apply(Change::Pod(ObjectEvent::Applied(pod)), &mut Vec::new());
        }
    }

    /// Proofs in which all pods are recreated.
    pub fn proofs(&self) -> (FitProofs, Snapshot) {
        let mut snapshot = Snapshot::new(&self.cluster, ServerVersion::new(1, 36));
        let mut proofs = FitProofs::default();
        read(&mut proofs, &mut snapshot);
        (proofs, snapshot)
    }

    /// What is proved about the loss of these nodes.
    pub fn prove(&self, lost: &[usize]) -> FitProof {
        let (mut proofs, snapshot) = self.proofs();
        let lost: Vec<NodeName> = lost.iter().map(|node| name(*node)).collect();
        proofs.prove(&snapshot, &lost)
    }

    /// What is worked out about the loss of these nodes.
    pub fn with_loss<T>(&self, lost: &[usize], of: impl FnOnce(Loss<'_>) -> T) -> T {
        let (mut proofs, snapshot) = self.proofs();
        let lost = lost.iter().filter_map(|node| snapshot.number(&name(*node))).collect();
        of(Loss::new(&mut proofs, &snapshot, lost))
    }
}

/// Reads a snapshot, of which all pods are recreated.
pub(super) fn read(proofs: &mut FitProofs, snapshot: &mut Snapshot) {
    proofs.update(snapshot);
    let recreated = vec![Recreated::All; proofs.owners().len()];
    proofs.set_recreated(recreated);
}

pub(super) fn name(node: usize) -> NodeName {
    format!("n{node}").as_str().into()
}

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()
}

fn selector(app: &str) -> Selector {
    let operator = SelectorOperator::In(vec![app.into()]);
    Selector { requirements: vec![Requirement { key: "app".into(), operator }] }
}

/// Never in one domain with a pod of this app.
pub(super) fn apart_from(app: &str, topology_key: &str) -> SchedulingSpec {
    let term =
        PodTerm { selector: Some(selector(app)), topology_key: topology_key.into(), ..PodTerm::default() };
    SchedulingSpec {
        pod_anti_affinity: PodTerms { required: [term].into(), ..PodTerms::default() },
        ..SchedulingSpec::default()
    }
}

/// Spread over domains with a skew of at most one.
pub(super) fn spread_over(app: &str, topology_key: &str) -> SchedulingSpec {
    let spread = SpreadConstraint {
        max_skew: 1,
        topology_key: topology_key.into(),
        hard: true,
        selector: Some(selector(app)),
        match_label_keys: Box::default(),
        min_domains: 1,
        honours_affinity: true,
        honours_taints: false,
    };
    SchedulingSpec { spread: [spread].into(), ..SchedulingSpec::default() }
}

/// Only on nodes with this label.
pub(super) fn only_on(key: &str, value: &str) -> SchedulingSpec {
    SchedulingSpec { node_selector: [(key.into(), value.into())].into(), ..SchedulingSpec::default() }
}
