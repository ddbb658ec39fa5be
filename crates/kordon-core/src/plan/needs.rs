//! Scopes (sets of objects) of the cluster that have to be read to make the plan of an action.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    action::{Action, DrainOptions},
    filter, gaps,
    operator_budgets::{OperatorNeeds, operator_of_pod},
    owner_kinds::{self, OwnerBehaviour},
    rules::EvictionRules,
    switchover::instance_scopes,
    taint,
    taint_edits::TaintEdits,
};
use crate::cluster::{
    Budget, Cluster, CronJob, FeedKind, Key, Known, Namespace, NodeName, Owner, OwnerKind, Pod, Scope,
    Selector, Workload, WorkloadKind,
};
use kordon_time::Timestamp;

/// Maximum number of scopes (sets of objects) of one kind that are read one by one. Above this number, reading all
/// objects of the kind costs the server less.
const MOST_PARTS: usize = 100;

/// Maximum number of scopes (sets of objects) that are read one by one, for kinds that have only few and small objects
/// in the whole cluster.
const MOST_SMALL_PARTS: usize = 10;

/// Returns the scopes (sets of objects) that have to be known for the plan of an action, except those for placement.
///
/// The scopes depend on the objects that exist: pods lead to their budgets and owners, budgets to more pods, and those
/// pods to their owners. The caller reads the scopes that are not [known](Cluster::knows), and calls this function
/// again until all of them are known.
///
/// | scope | needed for |
/// | --- | --- |
/// | all nodes | cordon, drain, deletion of nodes, NoExecute taint: the last Ready node of a zone, guard rails |
/// | all nodes | nodes in a maintenance: whether it is running |
/// | the named nodes and pods | the objects of the action |
/// | pods of the nodes | drain; deletion of nodes; taint, if the edits change which pods leave |
/// | DaemonSets | drain: which pods stay, including pods that are created later |
/// | budgets and namespace of each leaving pod | whether the pod's eviction is allowed |
/// | quotas of this namespace | when the pod's replacement is created |
/// | owner of each leaving pod, and the owner's Deployment | whether the pod is recreated; number of replicas |
/// | CronJobs, if one started a Job with leaving pods | whether and when another Job starts |
/// | pods of this owner | whether the last Ready pod leaves; how long a pod takes to be Ready |
/// | pods of each budget, and the owners of these pods | the numbers of the budget |
/// | nodes, owner and pods of the namespace of a pod with a role | whether an operator moves the role to another pod |
pub fn needs(action: &Action, cluster: &Cluster, rules: &EvictionRules, now: Timestamp) -> BTreeSet<Scope> {
    let mut needs = Needs { cluster, scopes: watched(action) };
    // A running maintenance renews the note of only one of its nodes.
    let is_maintained = |node: &NodeName| cluster.node(node).is_some_and(|node| node.maintenance.is_some());
    if action.disturbs_maintenance() && action.nodes().iter().any(is_maintained) {
        needs.scopes.insert(Scope::Nodes);
    }
    match action {
        Action::Cordon { .. } | Action::Uncordon { .. } | Action::Metadata { .. } => {}
        Action::Taint { nodes, edits } => {
            for node in evicting(nodes, edits, cluster) {
                needs.scopes.insert(Scope::PodsOn(node.clone()));
                needs.add_all(cluster.pods_on(node).map(|pod| &**pod));
            }
        }
        Action::DeleteNode { nodes } => {
            for node in nodes {
                needs.add_all(cluster.pods_on(node).map(|pod| &**pod));
            }
        }
        Action::Drain { nodes, options } => {
            let leave = |pod: &&Pod| !stays(cluster, pod, options, rules, now);
            for node in nodes {
                needs.add_all(cluster.pods_on(node).map(|pod| &**pod).filter(leave));
            }
        }
        Action::Evict { pods, .. } | Action::Delete { pods, .. } => {
            let found = pods.iter().filter_map(|pod| cluster.pod(pod)).map(|pod| &**pod);
            needs.scopes.extend(found.clone().filter_map(|pod| pod.node.clone()).map(Scope::Node));
            needs.add_all(found);
        }
    }
    few(uncovered(needs.scopes), |whole| {
        matches!(cluster.known_in(whole), Known::Forbidden { .. } | Known::Absent)
    })
}

/// Returns the scopes (sets of objects) that decide the numbers of the budgets which may now refuse to evict some of
/// `pods`. These numbers show when the budgets will allow the evictions.
pub fn of_refusals<'a>(cluster: &'a Cluster, pods: impl Iterator<Item = &'a Pod>) -> BTreeSet<Scope> {
    let may_refuse = |budget: &Budget| {
        budget.status.disruptions_allowed < 1 || budget.status.observed_generation < budget.generation
    };
    let refuses = |pod: &&Pod| {
        let mut budgets = cluster.budgets_of(pod);
        budgets.any(|budget| may_refuse(budget)) || cluster.budgets_of(pod).nth(1).is_some()
    };
    let mut needs = Needs { cluster, scopes: BTreeSet::new() };
    for pod in pods.filter(refuses) {
        needs.add_pods_of_budgets(pod);
        needs.scopes.extend(instance_scopes(pod));
    }
    uncovered(needs.scopes)
}

/// Returns the scopes (sets of objects) that show what Kubernetes operators do with the roles of pods on these nodes
/// once the nodes are cordoned.
pub fn of_switchovers(cluster: &Cluster, nodes: &[NodeName]) -> BTreeSet<Scope> {
    let is_open = |name: &&NodeName| cluster.node(name).is_some_and(|node| !node.unschedulable);
    let pods = nodes.iter().filter(is_open).flat_map(|node| cluster.pods_on(node));
    uncovered(pods.flat_map(|pod| instance_scopes(pod)).collect())
}

/// Returns the owners of pods that the action removes and whose operators act by their settings, with the namespaces of
/// the pods.
pub fn owners_with_settings(action: &Action, cluster: &Cluster) -> Vec<(Namespace, Owner)> {
    let (nodes, named): (&[NodeName], &[Key]) = match action {
        Action::Drain { nodes, .. } | Action::Taint { nodes, .. } | Action::DeleteNode { nodes } => {
            (nodes, &[])
        }
        Action::Evict { pods, .. } | Action::Delete { pods, .. } => (&[], pods),
        Action::Cordon { .. } | Action::Uncordon { .. } | Action::Metadata { .. } => (&[], &[]),
    };
    let on_nodes = nodes.iter().flat_map(|node| cluster.pods_on(node));
    owners_with_settings_of(on_nodes.chain(named.iter().filter_map(|pod| cluster.pod(pod))))
}

/// Returns the owners of these pods whose operators act by their settings or those of the owners, with the namespaces of
/// the pods.
pub fn owners_with_settings_of<'a>(pods: impl IntoIterator<Item = &'a Arc<Pod>>) -> Vec<(Namespace, Owner)> {
    let mut found = BTreeMap::new();
    for pod in pods {
        // Operators with settings are recognised by the owners of their pods.
        let Some(owner) = pod.owner.as_ref().filter(|owner| matches!(owner.kind, OwnerKind::Other { .. }))
        else {
            continue;
        };
        let needs_setting =
            operator_of_pod(pod).is_some_and(|operator| matches!(operator.needs, OperatorNeeds::Setting(_)));
        let row = owner_kinds::row_of(&owner.kind);
        if needs_setting || row.is_some_and(|row| row.behaviour == OwnerBehaviour::OperatorDecides) {
            found.insert(owner.uid.clone(), (pod.key.namespace.clone(), (**owner).clone()));
        }
    }
    found.into_values().collect()
}

/// Returns the scopes (sets of objects) that show whether the owners of `pods` create them again: their owners, the
/// Deployments above, and the other pods of the owners.
pub fn of_owners<'a>(cluster: &Cluster, pods: impl Iterator<Item = &'a Pod>) -> BTreeSet<Scope> {
    uncovered(pods.flat_map(|pod| gaps::of_owner(cluster, pod)).collect())
}

/// Removes each scope (set of objects) that another scope [covers](Scope::covers). For example, a Deployment and its
/// ReplicaSet select the same pods, and a budget often selects them by fewer labels than the ReplicaSet.
fn uncovered(scopes: BTreeSet<Scope>) -> BTreeSet<Scope> {
    let selecting: Vec<&Scope> = scopes.iter().filter(|scope| matches!(scope, Scope::PodsWith(..))).collect();
    // If two scopes cover each other, the first one is kept.
    let is_before = |other: &Scope, scope: &Scope| other < scope || !scope.covers(other);
    let is_covered = |scope: &Scope| {
        selecting.iter().any(|other| *other != scope && other.covers(scope) && is_before(other, scope))
    };
    scopes.iter().filter(|scope| !is_covered(scope)).cloned().collect()
}

/// Returns the scopes (sets of objects) of the pods that an action may remove. These pods decide the outcome, so the
/// action must not start with outdated pods.
pub fn removable(action: &Action, cluster: &Cluster) -> BTreeSet<Scope> {
    let on = |node: &NodeName| Scope::PodsOn(node.clone());
    match action {
        Action::Cordon { .. } | Action::Uncordon { .. } | Action::Metadata { .. } => BTreeSet::new(),
        Action::Taint { nodes, edits } => evicting(nodes, edits, cluster).map(on).collect(),
        Action::Drain { nodes, .. } | Action::DeleteNode { nodes } => nodes.iter().map(on).collect(),
        Action::Evict { pods, .. } | Action::Delete { pods, .. } => {
            pods.iter().cloned().map(Scope::Pod).collect()
        }
    }
}

/// Returns the nodes on which these edits of taints cause or prevent evictions.
fn evicting<'a>(
    nodes: &'a [NodeName],
    edits: &TaintEdits,
    cluster: &Cluster,
) -> impl Iterator<Item = &'a NodeName> {
    let changes =
        |node: &&NodeName| cluster.node(node).is_some_and(|node| taint::changes_evictions(edits, node));
    nodes.iter().filter(changes)
}

/// Returns the scopes (sets of objects) that are watched from the making of a plan until the plan has been applied: the
/// scopes of [`watched`], and those of budgets that may block the action.
pub fn followed(action: &Action, needs: &BTreeSet<Scope>) -> BTreeSet<Scope> {
    // A kind whose objects were all read is watched as a whole.
    let whole_if_read = |scope: Scope| {
        let whole = scope.whole();
        if needs.contains(&whole) { whole } else { scope }
    };
    let budgets = needs.iter().filter(|scope| scope.kind() == FeedKind::Budgets).cloned();
    watched(action).into_iter().map(whole_if_read).chain(budgets).collect()
}

/// Returns the scopes (sets of objects) whose changes matter to an action while its plan is applied.
pub fn watched(action: &Action) -> BTreeSet<Scope> {
    let nodes = |nodes: &[NodeName]| nodes.iter().cloned().map(Scope::Node).collect::<BTreeSet<_>>();
    let watched = match action {
        Action::Cordon { .. } => [Scope::Nodes].into(),
        Action::Uncordon { nodes: names } | Action::Metadata { nodes: names, .. } => nodes(names),
        Action::Taint { edits, .. } if edits.adds_no_execute() => [Scope::Nodes].into(),
        Action::Taint { nodes: names, .. } => nodes(names),
        Action::DeleteNode { nodes } => {
            let pods = nodes.iter().cloned().map(Scope::PodsOn);
            [Scope::Nodes].into_iter().chain(pods).collect()
        }
        Action::Drain { nodes, .. } => {
            let pods = nodes.iter().cloned().map(Scope::PodsOn);
            [Scope::Nodes, Scope::Workloads(WorkloadKind::DaemonSet)].into_iter().chain(pods).collect()
        }
        Action::Evict { pods, .. } | Action::Delete { pods, .. } => {
            pods.iter().cloned().map(Scope::Pod).collect()
        }
    };
    few(watched, |_| false)
}

/// Replaces the scopes (sets of objects) of a kind by the scope of the whole kind if there are many, unless reading the
/// whole kind is forbidden.
fn few(scopes: BTreeSet<Scope>, is_forbidden: impl Fn(&Scope) -> bool) -> BTreeSet<Scope> {
    let mut parts: BTreeMap<Scope, usize> = BTreeMap::new();
    for scope in &scopes {
        *parts.entry(scope.whole()).or_default() += 1;
    }
    let read = |scope: Scope| {
        let whole = scope.whole();
        if parts[&whole] > most_parts(&whole) && !is_forbidden(&whole) { whole } else { scope }
    };
    scopes.into_iter().map(read).collect()
}

const fn most_parts(whole: &Scope) -> usize {
    match whole {
        Scope::Budgets | Scope::Namespaces | Scope::Quotas => MOST_SMALL_PARTS,
        _ => MOST_PARTS,
    }
}

/// Returns whether a drain leaves the pod on its node, even if missing flags are added.
fn stays(
    cluster: &Cluster,
    pod: &Pod,
    options: &DrainOptions,
    rules: &EvictionRules,
    now: Timestamp,
) -> bool {
    let owner_is_known = match pod.owner.as_deref() {
        Some(Owner { kind: OwnerKind::Workload(kind @ WorkloadKind::DaemonSet), .. }) => {
            cluster.knows(&Scope::Workloads(*kind))
        }
        Some(_) | None => true,
    };
    // As long as the DaemonSet of a pod is not known, the filters would let the pod leave. It therefore counts as
    // staying.
    !owner_is_known || !filter::is_removed(&filter::screen(cluster, pod, options, rules, now))
}

struct Needs<'a> {
    cluster: &'a Cluster,
    scopes: BTreeSet<Scope>,
}

impl<'a> Needs<'a> {
    fn add_all(&mut self, leaving: impl Iterator<Item = &'a Pod>) {
        for pod in leaving {
            self.add(pod);
        }
    }

    /// Adds the scopes (sets of objects) that decide the eviction and the replacement of a pod.
    fn add(&mut self, pod: &'a Pod) {
        let namespace = &pod.key.namespace;
        self.scopes.insert(Scope::BudgetsIn(namespace.clone()));
        self.scopes.insert(Scope::Namespace(namespace.clone()));
        self.scopes.insert(Scope::QuotasIn(namespace.clone()));
        let owner = self.owner(pod);
        if owner.and_then(|owner| owner.owner.as_ref()).is_some_and(CronJob::is_owner) {
            self.scopes.insert(Scope::Whole(FeedKind::CronJobs));
        }
        if let Some(owner) = owner
            && let Some(selector) = owner.selector.as_ref().filter(|_| owner.kind != WorkloadKind::DaemonSet)
        {
            self.select(namespace, selector);
        }
        self.add_pods_of_budgets(pod);
        self.scopes.extend(instance_scopes(pod));
    }

    /// Adds the scopes (sets of objects) from which the numbers of a pod's budgets are computed: the pods of the
    /// budgets, and the owners of these pods.
    fn add_pods_of_budgets(&mut self, pod: &'a Pod) {
        let namespace = &pod.key.namespace;
        for budget in self.cluster.budgets_of(pod) {
            let Some(selector) = &budget.selector else { continue };
            self.select(namespace, selector);
            for counted in self.cluster.pods_in(namespace).filter(|pod| budget.covers(pod)) {
                self.owner(counted);
                // The owner of a terminating pod may create the pod again, which depends on the kubelet of the pod's
                // node.
                if let Some(node) = counted.node.as_ref().filter(|_| counted.termination.is_some()) {
                    self.scopes.insert(Scope::Node(node.clone()));
                }
            }
        }
    }

    fn select(&mut self, namespace: &Namespace, selector: &Selector) {
        if !selector.is_invalid() {
            self.scopes.insert(Scope::PodsWith(Some(namespace.clone()), selector.clone()));
        }
    }

    /// Adds the scopes (sets of objects) of a pod's owner and of the Deployment that owns this owner. Returns the pod's
    /// owner, if it is known.
    fn owner(&mut self, pod: &Pod) -> Option<&'a Workload> {
        let owner = self.workload(&pod.key.namespace, pod.owner.as_ref()?)?;
        if let Some(above) = &owner.owner {
            self.workload(&pod.key.namespace, above);
        }
        Some(owner)
    }

    fn workload(&mut self, namespace: &Namespace, owner: &Owner) -> Option<&'a Workload> {
        let OwnerKind::Workload(kind) = owner.kind else { return None };
        let key = Key { namespace: namespace.clone(), name: owner.name.clone() };
        let scope = Scope::Workload(kind, key.clone());
        // If the scopes already contain the whole kind, for example all DaemonSets, the workload needs no scope of its
        // own.
        if !self.scopes.contains(&scope.whole()) {
            self.scopes.insert(scope);
        }
        self.cluster.workloads(kind).get(&(kind, key)).map(|workload| &**workload)
    }
}
