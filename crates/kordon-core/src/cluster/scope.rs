//! Scopes: sets of objects that kordon can read without the rest of the cluster.

use std::{collections::BTreeSet, fmt};

use super::{
    budget::Budget,
    knowledge::FeedKind,
    labels::Selector,
    names::{Key, Name, Namespace, NodeName},
    node::Node,
    owner::WorkloadKind,
    pod::Pod,
    quota::Quota,
    storage::{Claim, Volume},
    table::{Table, TableObject, Version},
    workload::{NamespaceObject, Workload},
};

/// A set of objects that kordon can read without the rest of the cluster: all objects of a kind, or some of them.
///
/// A command states what it needs as scopes, and reads no more. [`Cluster::knows`](super::Cluster::knows) returns
/// whether a scope was read completely. If it was, an object that was not found in the scope does not exist.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    Nodes,
    NodesWith(Selector),
    Node(NodeName),
    Pods,
    /// Pods with labels that match the selector; in all namespaces if no namespace is given.
    PodsWith(Option<Namespace>, Selector),
    PodsOn(NodeName),
    Pod(Key),
    /// Pods that have succeeded or failed.
    FinishedPods,
    Budgets,
    BudgetsIn(Namespace),
    Namespaces,
    Namespace(Namespace),
    Workloads(WorkloadKind),
    Workload(WorkloadKind, Key),
    Claims,
    Claim(Key),
    Volumes,
    Volume(Name),
    Quotas,
    QuotasIn(Namespace),
    /// All objects of a kind of which no parts are read: a [kind of devices](FeedKind::DEVICES), templates of claims,
    /// CronJobs, CSIDrivers or CSIStorageCapacities.
    Whole(FeedKind),
}

/// A scope (set of objects) that was read completely.
#[derive(Clone, Debug, PartialEq)]
pub struct ScopeRead {
    pub scope: Scope,
    /// The resource version at which the scope was read.
    pub version: Version,
    /// The keys of the objects that were found. The namespace of a cluster-scoped object is empty.
    pub found: Vec<Key>,
    pub by: ReadBy,
}

/// How a scope (set of objects) was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadBy {
    /// A single request, which reports no later changes.
    Request,
    /// The watch of the scope, which reports all later changes.
    Watch,
}

impl Scope {
    /// Returns the scope of all objects of this scope's kind.
    pub fn whole(&self) -> Self {
        match self {
            Self::Nodes | Self::NodesWith(_) | Self::Node(_) => Self::Nodes,
            Self::Pods | Self::PodsWith(..) | Self::PodsOn(_) | Self::Pod(_) | Self::FinishedPods => {
                Self::Pods
            }
            Self::Budgets | Self::BudgetsIn(_) => Self::Budgets,
            Self::Namespaces | Self::Namespace(_) => Self::Namespaces,
            Self::Workloads(kind) | Self::Workload(kind, _) => Self::Workloads(*kind),
            Self::Claims | Self::Claim(_) => Self::Claims,
            Self::Volumes | Self::Volume(_) => Self::Volumes,
            Self::Quotas | Self::QuotasIn(_) => Self::Quotas,
            Self::Whole(kind) => Self::Whole(*kind),
        }
    }

    /// Whether this scope contains every pod of `other`. Only scopes of pods with labels can cover each other.
    pub fn covers(&self, other: &Self) -> bool {
        let (Self::PodsWith(namespace, selector), Self::PodsWith(other_namespace, other)) = (self, other)
        else {
            return false;
        };
        (namespace.is_none() || namespace == other_namespace) && selector.covers(other)
    }
}

impl Scope {
    pub(super) fn has_node(&self, node: &Node) -> bool {
        match self {
            Self::Nodes => true,
            Self::NodesWith(selector) => selector.matches(&node.labels),
            Self::Node(name) => node.name == *name,
            _ => false,
        }
    }

    pub(super) fn has_pod(&self, pod: &Pod) -> bool {
        match self {
            Self::Pods => true,
            Self::PodsWith(namespace, selector) => {
                namespace.as_ref().is_none_or(|namespace| pod.key.namespace == *namespace)
                    && selector.matches(&pod.labels)
            }
            Self::PodsOn(node) => pod.node.as_ref() == Some(node),
            Self::Pod(key) => pod.key == *key,
            Self::FinishedPods => pod.is_finished(),
            _ => false,
        }
    }

    pub(super) fn has_budget(&self, budget: &Budget) -> bool {
        match self {
            Self::Budgets => true,
            Self::BudgetsIn(namespace) => budget.key.namespace == *namespace,
            _ => false,
        }
    }

    pub(super) fn has_namespace(&self, object: &NamespaceObject) -> bool {
        match self {
            Self::Namespaces => true,
            Self::Namespace(name) => object.name == *name,
            _ => false,
        }
    }

    pub(super) fn has_workload(&self, workload: &Workload) -> bool {
        match self {
            Self::Workloads(kind) => workload.kind == *kind,
            Self::Workload(kind, key) => workload.kind == *kind && workload.key == *key,
            _ => false,
        }
    }

    pub(super) fn has_claim(&self, claim: &Claim) -> bool {
        match self {
            Self::Claims => true,
            Self::Claim(key) => claim.key == *key,
            _ => false,
        }
    }

    pub(super) fn has_quota(&self, quota: &Quota) -> bool {
        match self {
            Self::Quotas => true,
            Self::QuotasIn(namespace) => quota.key.namespace == *namespace,
            _ => false,
        }
    }

    pub(super) fn has_volume(&self, volume: &Volume) -> bool {
        match self {
            Self::Volumes => true,
            Self::Volume(name) => volume.name == *name,
            _ => false,
        }
    }
}

impl ScopeRead {
    /// Returns the objects of a table that were deleted before the read: objects of the scope that the read did not
    /// find. Objects that are newer than the read are left out.
    pub(super) fn gone<T: TableObject + PartialEq>(
        &self,
        table: &Table<T>,
        is_in: impl Fn(&T) -> bool,
        key: impl Fn(&T) -> Key,
    ) -> impl Iterator<Item = T::Key> {
        let found: BTreeSet<&Key> = self.found.iter().collect();
        let is_gone = |object: &T| object.version() <= self.version && !found.contains(&key(object));
        let gone = table.iter().filter(|object| is_in(object) && is_gone(object));
        gone.map(|object| object.key()).collect::<Vec<_>>().into_iter()
    }
}

impl Scope {
    /// The scope of all objects of a kind; none for kinds that have no scopes.
    pub const fn all_of(kind: FeedKind) -> Option<Self> {
        match kind {
            FeedKind::Nodes => Some(Self::Nodes),
            FeedKind::Pods => Some(Self::Pods),
            FeedKind::Budgets => Some(Self::Budgets),
            FeedKind::Namespaces => Some(Self::Namespaces),
            FeedKind::Workloads(kind) => Some(Self::Workloads(kind)),
            FeedKind::Claims => Some(Self::Claims),
            FeedKind::Volumes => Some(Self::Volumes),
            FeedKind::Quotas => Some(Self::Quotas),
            FeedKind::Leases
            | FeedKind::PriorityClasses
            | FeedKind::Services
            | FeedKind::StorageClasses
            | FeedKind::CsiNodes
            | FeedKind::Leader => None,
            FeedKind::DeviceClasses
            | FeedKind::ResourceClaims
            | FeedKind::ResourceSlices
            | FeedKind::DeviceTaintRules
            | FeedKind::ClaimTemplates
            | FeedKind::CronJobs
            | FeedKind::StorageCapacities
            | FeedKind::CsiDrivers => Some(Self::Whole(kind)),
        }
    }

    /// The kind of the scope's objects.
    pub const fn kind(&self) -> FeedKind {
        match self {
            Self::Nodes | Self::NodesWith(_) | Self::Node(_) => FeedKind::Nodes,
            Self::Pods | Self::PodsWith(..) | Self::PodsOn(_) | Self::Pod(_) | Self::FinishedPods => {
                FeedKind::Pods
            }
            Self::Budgets | Self::BudgetsIn(_) => FeedKind::Budgets,
            Self::Namespaces | Self::Namespace(_) => FeedKind::Namespaces,
            Self::Workloads(kind) | Self::Workload(kind, _) => FeedKind::Workloads(*kind),
            Self::Claims | Self::Claim(_) => FeedKind::Claims,
            Self::Volumes | Self::Volume(_) => FeedKind::Volumes,
            Self::Quotas | Self::QuotasIn(_) => FeedKind::Quotas,
            Self::Whole(kind) => *kind,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nodes => f.write_str("nodes"),
            Self::NodesWith(selector) => write!(f, "nodes with the labels {selector}"),
            Self::Node(node) => write!(f, "node {node}"),
            Self::Pods => f.write_str("pods"),
            Self::PodsWith(Some(namespace), selector) if selector.is_empty() => {
                write!(f, "pods of namespace {namespace}")
            }
            Self::PodsWith(Some(namespace), selector) => {
                write!(f, "pods of namespace {namespace} with the labels {selector}")
            }
            Self::PodsWith(None, selector) => write!(f, "pods with the labels {selector}"),
            Self::PodsOn(node) => write!(f, "pods of node {node}"),
            Self::Pod(pod) => write!(f, "pod {pod}"),
            Self::FinishedPods => f.write_str("finished pods"),
            Self::Budgets => f.write_str("budgets"),
            Self::BudgetsIn(namespace) => write!(f, "budgets of namespace {namespace}"),
            Self::Namespaces => f.write_str("namespaces"),
            Self::Namespace(namespace) => write!(f, "namespace {namespace}"),
            Self::Workloads(kind) => write!(f, "{}s", kind.as_str()),
            Self::Workload(kind, key) => write!(f, "{} {key}", kind.as_str()),
            Self::Claims => f.write_str("persistentvolumeclaims"),
            Self::Claim(key) => write!(f, "persistentvolumeclaim {key}"),
            Self::Volumes => f.write_str("persistentvolumes"),
            Self::Volume(name) => write!(f, "persistentvolume {name}"),
            Self::Quotas => f.write_str("resourcequotas"),
            Self::QuotasIn(namespace) => write!(f, "resourcequotas of namespace {namespace}"),
            Self::Whole(kind) => write!(f, "{kind}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Change, Cluster, ObjectEvent};

    fn pod(name: &str, node: &str, version: u64) -> Pod {
        Pod {
            key: Key::new("web", name),
            node: Some(node.into()),
            version: Version(version),
            ..Pod::default()
        }
    }

    fn read(cluster: &mut Cluster, pods: &[Pod], version: u64) {
        read_by(ReadBy::Request, cluster, pods, version);
    }

    fn read_by(by: ReadBy, cluster: &mut Cluster, pods: &[Pod], version: u64) {
        let mut applied = Vec::new();
        for pod in pods.iter().cloned() {
            let event = match by {
                ReadBy::Request => ObjectEvent::Prefetched(pod),
                ReadBy::Watch => ObjectEvent::Applied(pod),
            };
            cluster.apply(Change::Pod(event), &mut applied);
        }
        let (scope, found) = (Scope::PodsOn("n1".into()), pods.iter().map(|pod| pod.key.clone()).collect());
        let read = ScopeRead { scope, version: Version(version), found, by };
        cluster.apply(Change::Read(Box::new(read)), &mut applied);
    }

    #[test]
    fn only_what_was_read_is_known() {
        let mut cluster = Cluster::default();
        read(&mut cluster, &[pod("a", "n1", 5)], 9);
        assert!(cluster.knows(&Scope::PodsOn("n1".into())));
        assert!(!cluster.knows(&Scope::PodsOn("n2".into())) && !cluster.knows(&Scope::Pods));
        assert!(!cluster.pods().is_synced(), "the pods of one node are not all pods");
        let mut applied = Vec::new();
        cluster.apply(Change::Pod(ObjectEvent::ListStarted), &mut applied);
        cluster.apply(Change::Pod(ObjectEvent::ListDone), &mut applied);
        assert!(cluster.knows(&Scope::PodsOn("n2".into())) && cluster.pods().is_empty());
    }

    #[test]
    fn a_read_does_not_bring_back_a_pod_that_its_watch_has_seen_go() {
        let mut cluster = Cluster::default();
        let pods = [pod("a", "n1", 5), pod("b", "n1", 6)];
        read_by(ReadBy::Watch, &mut cluster, &pods, 9);
        let mut applied = Vec::new();
        cluster.apply(Change::Pod(ObjectEvent::Deleted(Key::new("web", "a"))), &mut applied);
        // The response to a request that was sent before the deletion of pod a. It also contains a pod of node n2.
        for pod in [pods[0].clone(), pod("elsewhere", "n2", 7)] {
            cluster.apply(Change::Pod(ObjectEvent::Prefetched(pod)), &mut applied);
        }
        let names: Vec<&str> = cluster.pods().iter().map(|pod| &*pod.key.name).collect();
        assert_eq!(names, ["b", "elsewhere"]);
        read_by(ReadBy::Watch, &mut cluster, &[pod("c", "n1", 12)], 20);
        let names: Vec<&str> = cluster.pods().iter().map(|pod| &*pod.key.name).collect();
        assert_eq!(names, ["c", "elsewhere"], "the watch lists again after a gap");
    }

    #[test]
    fn what_a_later_read_does_not_find_is_gone_unless_it_is_newer_or_outside_of_the_scope() {
        let mut cluster = Cluster::default();
        read(&mut cluster, &[pod("a", "n1", 5), pod("b", "n1", 6)], 9);
        let mut applied = Vec::new();
        for pod in [pod("newer", "n1", 12), pod("elsewhere", "n2", 7)] {
            cluster.apply(Change::Pod(ObjectEvent::Applied(pod)), &mut applied);
        }
        read(&mut cluster, &[pod("b", "n1", 6)], 10);
        let names: Vec<&str> = cluster.pods().iter().map(|pod| &*pod.key.name).collect();
        assert_eq!(names, ["b", "elsewhere", "newer"]);
    }
}
