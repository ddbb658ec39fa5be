//! The request to place a pod, and what makes its placement uncertain.

use std::{collections::BTreeSet, fmt, sync::Arc};

use crate::cluster::{
    Cluster, Key, Labels, Name, Namespace, NodeName, OwnerKind, Pod, PodResources, Requirement,
    SchedulingSpec, Selector, SelectorOperator, SharedList, Toleration, Uid, WorkloadKind,
};

/// The properties of a pod that the scheduler reads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SchedulingRequest {
    /// Name of the pod; empty if the pod does not exist yet.
    pub name: Name,
    /// Uid of the pod, by which its own resource claims are found. For a new pod, the uid of the pod that it replaces.
    pub uid: Uid,
    /// The spec of the pod that this new pod replaces; `None` for a pod that exists. A new pod gets new claims from
    /// templates. Where the templates are not known, the claims of the old pod show what they ask for.
    pub replaces: Option<Arc<SchedulingSpec>>,
    pub namespace: Namespace,
    pub labels: Labels,
    pub priority: i32,
    pub tolerations: SharedList<Toleration>,
    pub resources: Arc<PodResources>,
    pub spec: Arc<SchedulingSpec>,
    /// `spec.nodeName`: the only node on which the pod may run.
    pub pinned_to: Option<NodeName>,
    /// `status.nominatedNodeName`: the node on which pods were preempted for this pod.
    pub nominated: Option<NodeName>,
    /// Selector of the pods that default spreading counts. It combines the selectors of the pod's owner and services.
    /// `None` for pods with spread constraints of their own.
    pub siblings: Option<Selector>,
    /// Caveats about the placement that do not follow from the spec of the pod.
    pub caveats: BTreeSet<Caveat>,
}

impl SchedulingRequest {
    /// Creates the request to place this pod again, on any node. `cluster` has the selectors of the pod's owner and
    /// services.
    pub fn from_pod(pod: &Pod, cluster: &Cluster) -> Self {
        Self {
            name: pod.key.name.clone(),
            uid: pod.uid.clone(),
            replaces: None,
            namespace: pod.key.namespace.clone(),
            labels: pod.labels.clone(),
            priority: pod.priority,
            tolerations: pod.tolerations.clone(),
            resources: pod.resources.clone(),
            spec: pod.scheduling.clone(),
            pinned_to: None,
            nominated: pod.nominated.clone(),
            siblings: siblings(pod, cluster),
            caveats: caveats(pod, cluster),
        }
    }

    /// Returns whether the replacement of a pod gets the pod's name, as in a StatefulSet.
    pub fn keeps_name_of(pod: &Pod) -> bool {
        let is_stateful = |kind: &OwnerKind| *kind == OwnerKind::Workload(WorkloadKind::StatefulSet);
        pod.owner.as_ref().is_some_and(|owner| is_stateful(&owner.kind))
    }

    /// Returns why the default scheduler does not try to place the pod; `None` if it does try.
    pub fn obstacle(&self) -> Option<Obstacle> {
        if !self.spec.gates.is_empty() {
            return Some(Obstacle::Gated(self.spec.gates.to_vec()));
        }
        let scheduler = &self.spec.scheduler;
        (!scheduler.is_empty()).then(|| Obstacle::OtherScheduler(scheduler.clone()))
    }

    /// Returns the request's caveats about the placement. The filters of volumes and devices add their own caveats.
    pub(super) fn caveats(&self) -> impl Iterator<Item = Caveat> {
        self.caveats.iter().copied()
    }
}

/// The reason why the default scheduler does not try to place a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The pod waits until these scheduling gates are removed.
    Gated(Vec<Name>),
    /// Another scheduler, with this name, places the pod by its own rules.
    OtherScheduler(Name),
    /// It is not known which nodes have the devices that the pod needs. The value says why.
    Devices(Name),
}

/// Something that placement does not check or cannot know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Caveat {
    /// It is not known which nodes can reach the volumes of the pod's claims.
    Volumes,
    /// It is not checked whether the storage has capacity for new volumes of the pod.
    Capacity,
    /// The services that select the pod are not known, although default spreading depends on them.
    Services,
    /// The rules that taint devices are not known, so no device counts as tainted by a rule.
    DeviceRules,
    /// The pod is scheduled together with a group of pods, which is not modelled.
    Group,
    /// An autoscaler may add a node for the pod, which is not modelled.
    NewNodes,
    /// The cluster's scheduler is newer than all tested releases, so it may place the pod differently.
    Newer,
    /// The real scheduler likely tries only some of the nodes, and may miss the best node. It is not known which nodes
    /// it tries.
    Sampled,
    /// The real scheduler tries only a sample of the nodes. This placement uses one possible sample.
    OneSample,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gated(gates) => {
                let gates: Vec<&str> = gates.iter().map(|gate| &**gate).collect();
                write!(f, "waits for scheduling gates {}", gates.join(", "))
            }
            Self::OtherScheduler(name) => write!(f, "other scheduler ({name}): placement unknown"),
            Self::Devices(why) => write!(f, "devices: {why}"),
        }
    }
}

impl Caveat {
    pub const ALL: [Self; 9] = [
        Self::Volumes,
        Self::Capacity,
        Self::Services,
        Self::DeviceRules,
        Self::Group,
        Self::NewNodes,
        Self::Newer,
        Self::Sampled,
        Self::OneSample,
    ];

    /// Returns a stable name for the caveat.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Volumes => "volumes",
            Self::Capacity => "capacity",
            Self::Services => "services",
            Self::DeviceRules => "deviceRules",
            Self::Group => "group",
            Self::NewNodes => "newNodes",
            Self::Newer => "newer",
            Self::Sampled => "sampled",
            Self::OneSample => "oneSample",
        }
    }
}

impl fmt::Display for Caveat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Volumes => "volume rules not checked",
            Self::Capacity => "storage capacity for new volumes not checked",
            Self::Services => "services unknown: spread by the owner's selector only",
            Self::DeviceRules => "DeviceTaintRules unknown: their taints of devices not checked",
            Self::Group => "group scheduling not modelled",
            Self::NewNodes => "an autoscaler may add nodes: Pending may be short",
            Self::Newer => "the cluster is newer than the tested releases",
            Self::Sampled => "the real scheduler checks only some of the nodes and may miss the best",
            Self::OneSample => {
                "one possible sample of the nodes: which ones the real scheduler checks next cannot be seen"
            }
        })
    }
}

/// Labels by which other schedulers recognize pods that they place as a group.
const GROUPS: [&str; 2] = ["scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io"];

fn caveats(pod: &Pod, cluster: &Cluster) -> BTreeSet<Caveat> {
    let by_default = pod.scheduling.spread.is_empty();
    let services = (by_default && !cluster.services().is_synced()).then_some(Caveat::Services);
    let group = GROUPS.iter().any(|label| pod.labels.contains_key(label)).then_some(Caveat::Group);
    services.into_iter().chain(group).collect()
}

/// Returns a selector that combines the selectors of the pod's services and owner (upstream `helper.DefaultSelector`).
/// `None` for pods with spread constraints, and if there is nothing to combine.
fn siblings(pod: &Pod, cluster: &Cluster) -> Option<Selector> {
    if !pod.scheduling.spread.is_empty() {
        return None;
    }
    let services = cluster.services_of(&pod.key.namespace, &pod.labels);
    let mut pairs: Vec<&(Name, Name)> = services.flat_map(|service| &service.selector).collect();
    pairs.sort();
    pairs.dedup();
    let equal = |(key, value): &(Name, Name)| Requirement {
        key: key.clone(),
        operator: SelectorOperator::In(vec![value.clone()]),
    };
    let mut requirements: Vec<Requirement> = pairs.into_iter().map(equal).collect();
    requirements
        .extend(selector_of_owner(pod, cluster).into_iter().flat_map(|selector| selector.requirements));
    (!requirements.is_empty()).then_some(Selector { requirements })
}

fn selector_of_owner(pod: &Pod, cluster: &Cluster) -> Option<Selector> {
    let owner = pod.owner.as_ref()?;
    let OwnerKind::Workload(kind) = &owner.kind else { return None };
    match kind {
        WorkloadKind::ReplicaSet | WorkloadKind::StatefulSet | WorkloadKind::ReplicationController => {
            let key = Key { namespace: pod.key.namespace.clone(), name: owner.name.clone() };
            cluster.workloads(*kind).get(&(*kind, key))?.selector.clone()
        }
        WorkloadKind::Deployment | WorkloadKind::DaemonSet | WorkloadKind::Job => None,
    }
}
