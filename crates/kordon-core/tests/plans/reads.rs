//! Answers the read of a part of a cluster, as a server would.

use std::sync::Arc;

use kordon_core::cluster::{
    Budget, Change, Claim, Cluster, Key, NamespaceObject, Node, ObjectEvent, Pod, Quota, ReadBy, Scope,
    ScopeRead, TableObject, Version, Volume, Workload, WorkloadKind,
};

/// Returns the changes that a client gets when it reads this scope (a set of objects) from a server with this cluster.
pub fn read(cluster: &Cluster, scope: &Scope) -> Vec<Change> {
    let in_namespace = |of: &Option<_>, key: &Key| of.as_ref().is_none_or(|of| key.namespace == *of);
    let pods = |is_in: &dyn Fn(&Pod) -> bool| found(cluster.pods().iter(), is_in, Change::Pod);
    let nodes = |is_in: &dyn Fn(&Node) -> bool| found(cluster.nodes().iter(), is_in, Change::Node);
    let budgets = |is_in: &dyn Fn(&Budget) -> bool| found(cluster.budgets().iter(), is_in, Change::Budget);
    let namespaces = |is_in: &dyn Fn(&NamespaceObject) -> bool| {
        found(cluster.namespaces().iter(), is_in, Change::Namespace)
    };
    let workloads = |kind: WorkloadKind, is_in: &dyn Fn(&Workload) -> bool| {
        found(cluster.workloads(kind).iter(), is_in, |event| Change::Workload(kind, event))
    };
    let claims = |is_in: &dyn Fn(&Claim) -> bool| found(cluster.claims().iter(), is_in, Change::Claim);
    let volumes = |is_in: &dyn Fn(&Volume) -> bool| found(cluster.volumes().iter(), is_in, Change::Volume);
    let quotas = |is_in: &dyn Fn(&Quota) -> bool| found(cluster.quotas().iter(), is_in, Change::Quota);
    let mut changes = match scope {
        Scope::Nodes => nodes(&|_| true),
        Scope::NodesWith(selector) => nodes(&|node| selector.matches(&node.labels)),
        Scope::Node(name) => nodes(&|node| node.name == *name),
        Scope::Pods => pods(&|_| true),
        Scope::PodsWith(of, selector) => {
            pods(&|pod| in_namespace(of, &pod.key) && selector.matches(&pod.labels))
        }
        Scope::PodsOn(node) => pods(&|pod| pod.node.as_ref() == Some(node)),
        Scope::Pod(key) => pods(&|pod| pod.key == *key),
        Scope::FinishedPods => pods(&Pod::is_finished),
        Scope::Budgets => budgets(&|_| true),
        Scope::BudgetsIn(of) => budgets(&|budget| budget.key.namespace == *of),
        Scope::Namespaces => namespaces(&|_| true),
        Scope::Namespace(of) => namespaces(&|namespace| namespace.name == *of),
        Scope::Workloads(kind) => workloads(*kind, &|_| true),
        Scope::Workload(kind, key) => workloads(*kind, &|workload| workload.key == *key),
        Scope::Claims => claims(&|_| true),
        Scope::Claim(key) => claims(&|claim| claim.key == *key),
        Scope::Volumes => volumes(&|_| true),
        Scope::Volume(name) => volumes(&|volume| volume.name == *name),
        Scope::Quotas => quotas(&|_| true),
        Scope::QuotasIn(of) => quotas(&|quota| quota.key.namespace == *of),
        // These clusters have no devices, CronJobs and CSIDrivers.
        Scope::Whole(_) => Vec::new(),
    };
    let found = changes.iter().filter_map(Change::found).collect();
    let read = ScopeRead { scope: scope.clone(), version: Version(1000), found, by: ReadBy::Request };
    changes.push(Change::Read(Box::new(read)));
    changes
}

/// Returns those of the objects for which `is_in` is true, as changes.
fn found<'a, T: TableObject + Clone + 'a>(
    objects: impl Iterator<Item = &'a Arc<T>>,
    is_in: &dyn Fn(&T) -> bool,
    change: impl Fn(ObjectEvent<T>) -> Change,
) -> Vec<Change> {
    objects
        .filter(|object| is_in(object))
        .map(|object| change(ObjectEvent::Prefetched((**object).clone())))
        .collect()
}
