//! What a server answers when a part of its cluster is read.

use kordon::cluster::{
    Budget, Change, Claim, Cluster, Key, NamespaceObject, Node, ObjectEvent, Pod, ReadBy, Scope, ScopeRead,
    Version, Volume, Workload, WorkloadKind,
};

/// What a server with this cluster answers when a scope is read.
pub fn read(cluster: &Cluster, scope: &Scope) -> Vec<Change> {
    let in_namespace = |of: &Option<_>, key: &Key| of.as_ref().is_none_or(|of| key.namespace == *of);
    let pods = |is_in: &dyn Fn(&Pod) -> bool| -> Vec<Change> {
        let pods = cluster.pods().iter().filter(|pod| is_in(pod));
        pods.map(|pod| Change::Pod(ObjectEvent::Prefetched((**pod).clone()))).collect()
    };
    let nodes = |is_in: &dyn Fn(&Node) -> bool| -> Vec<Change> {
        let nodes = cluster.nodes().iter().filter(|node| is_in(node));
        nodes.map(|node| Change::Node(ObjectEvent::Prefetched((**node).clone()))).collect()
    };
    let budgets = |is_in: &dyn Fn(&Budget) -> bool| -> Vec<Change> {
        let budgets = cluster.budgets().iter().filter(|budget| is_in(budget));
        budgets.map(|budget| Change::Budget(ObjectEvent::Prefetched((**budget).clone()))).collect()
    };
    let namespaces = |is_in: &dyn Fn(&NamespaceObject) -> bool| -> Vec<Change> {
        let namespaces = cluster.namespaces().iter().filter(|namespace| is_in(namespace));
        namespaces.map(|found| Change::Namespace(ObjectEvent::Prefetched((**found).clone()))).collect()
    };
    let workloads = |kind: WorkloadKind, is_in: &dyn Fn(&Workload) -> bool| -> Vec<Change> {
        let workloads = cluster.workloads(kind).iter().filter(|workload| is_in(workload));
        workloads.map(|found| Change::Workload(kind, ObjectEvent::Prefetched((**found).clone()))).collect()
    };
    let claims = |is_in: &dyn Fn(&Claim) -> bool| -> Vec<Change> {
        let claims = cluster.claims().iter().filter(|claim| is_in(claim));
        claims.map(|claim| Change::Claim(ObjectEvent::Prefetched((**claim).clone()))).collect()
    };
    let volumes = |is_in: &dyn Fn(&Volume) -> bool| -> Vec<Change> {
        let volumes = cluster.volumes().iter().filter(|volume| is_in(volume));
        volumes.map(|volume| Change::Volume(ObjectEvent::Prefetched((**volume).clone()))).collect()
    };
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
    };
    let found = changes.iter().filter_map(Change::found).collect();
    let read = ScopeRead { scope: scope.clone(), version: Version(1000), found, by: ReadBy::Request };
    changes.push(Change::Read(Box::new(read)));
    changes
}
