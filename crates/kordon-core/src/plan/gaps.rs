//! Gaps of plans: unknown or outdated objects that a plan depends on (docs/reference/plan.md#what-is-not-known).

use std::{fmt, sync::Arc};

use super::{
    action::RemovalMode,
    eviction,
    owner::{self, Recreation},
};
use crate::cluster::{
    Cluster, FeedKind, Gaps, Key, Name, Namespace, NodeName, Owner, OwnerKind, Pod, Scope, Selector,
    WorkloadKind,
};

/// A part of a plan that depends on unknown or outdated objects, and the kinds of these objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlanGap {
    pub part: PlanPart,
    pub gaps: Gaps,
}

/// A part of a plan that may depend on unknown or outdated objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlanPart {
    /// The whole plan, which is based on outdated objects.
    Everything,
    /// It is uncertain whether nodes outside the plan can take pods.
    OtherNodes,
    /// It is uncertain which pods a controller recreates, and how many other pods their workloads have.
    Workloads,
    /// It is uncertain how many disruptions budgets allow. The plan then uses the numbers in the budgets' status, or no
    /// numbers if the budgets themselves are unknown.
    Budgets,
    /// It is uncertain whether quotas refuse replacements.
    Quotas,
    /// It is uncertain on which nodes pods land.
    Placement,
}

impl PlanPart {
    /// Returns a stable name for the part of a plan.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Everything => "everything",
            Self::OtherNodes => "otherNodes",
            Self::Workloads => "workloads",
            Self::Budgets => "budgets",
            Self::Quotas => "quotas",
            Self::Placement => "placement",
        }
    }
}

impl fmt::Display for PlanGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { part, gaps } = self;
        f.write_str(match part {
            PlanPart::Everything => "not up to date",
            PlanPart::OtherNodes => "which other nodes are schedulable is unknown",
            PlanPart::Workloads => "which pods are recreated is not known for certain",
            PlanPart::Budgets if gaps.contains(FeedKind::Budgets) => {
                "whether a PodDisruptionBudget blocks an eviction is unknown"
            }
            PlanPart::Budgets if gaps.contains(FeedKind::Namespaces) => {
                "whether a namespace is being deleted, where evictions are refused, is unknown"
            }
            PlanPart::Budgets => "budgets have the numbers of their status",
            PlanPart::Quotas => "whether a ResourceQuota refuses a replacement is unknown",
            PlanPart::Placement => "where pods land is unknown",
        })?;
        write!(f, ": {gaps}")
    }
}

/// Returns the gaps of the pods on these nodes, that is, why these pods are unknown or outdated.
pub(super) fn of_pods_on(cluster: &Cluster, nodes: &[NodeName]) -> Gaps {
    cluster.gaps_in(nodes.iter().cloned().map(Scope::PodsOn))
}

/// Returns the gaps of these pods and their nodes, that is, why they are unknown or outdated. The nodes matter because
/// the kubelet of a node decides when a pod is gone.
pub(super) fn of_pods(cluster: &Cluster, pods: &[Arc<Pod>]) -> Gaps {
    let scopes = pods.iter().map(|pod| match &pod.node {
        Some(node) if !cluster.knows(&Scope::Pod(pod.key.clone())) => Scope::PodsOn(node.clone()),
        Some(_) | None => Scope::Pod(pod.key.clone()),
    });
    let nodes = pods.iter().filter_map(|pod| pod.node.clone()).filter(|node| cluster.node(node).is_none());
    cluster.gaps_in(scopes.chain(nodes.map(Scope::Node)))
}

/// Returns the gaps of the objects that decide whether these pods leave, that is, why these objects are unknown or
/// outdated.
pub(super) fn of_removal<'a>(
    cluster: &Cluster,
    mode: RemovalMode,
    pods: impl IntoIterator<Item = &'a Arc<Pod>>,
) -> Gaps {
    match mode {
        RemovalMode::Evict => {
            let pods = pods.into_iter().filter(|pod| pod.termination.is_none());
            cluster.gaps_in(pods.flat_map(|pod| of_eviction(pod)))
        }
        RemovalMode::Delete => Gaps::default(),
    }
}

/// Returns why it is unknown whether a budget blocks the eviction of these pods; `None` if their budgets are known.
pub fn budget_gap<'a>(cluster: &Cluster, pods: impl IntoIterator<Item = &'a Arc<Pod>>) -> Option<PlanGap> {
    let asking = pods.into_iter().filter(|pod| eviction::asks_budgets(pod));
    let gaps = cluster.gaps_in(asking.map(|pod| Scope::BudgetsIn(pod.key.namespace.clone()))).unknown();
    (!gaps.is_empty()).then_some(PlanGap { part: PlanPart::Budgets, gaps })
}

/// Returns the unknown kinds of objects because of which it is unknown whether a pod leaves. Empty for a terminating
/// pod, and for a pod that is deleted without eviction.
pub(super) fn undecided(cluster: &Cluster, mode: RemovalMode, pod: &Arc<Pod>) -> Gaps {
    of_removal(cluster, mode, [pod]).unknown()
}

/// Returns the scopes (sets of objects) that have to be known to predict the response to the eviction of a pod. The
/// scopes for the numbers of its budgets are not included.
fn of_eviction(pod: &Pod) -> Vec<Scope> {
    let namespace = &pod.key.namespace;
    let budgets = eviction::asks_budgets(pod).then(|| Scope::BudgetsIn(namespace.clone()));
    budgets.into_iter().chain([Scope::Namespace(namespace.clone())]).collect()
}

/// Returns whether the response to the eviction of a pod can be predicted from the numbers in its budgets' status.
pub(super) fn can_answer_eviction(cluster: &Cluster, pod: &Pod) -> bool {
    of_eviction(pod).iter().all(|scope| cluster.knows(scope))
}

/// Returns whether all nodes and pods are known, so that placements are meaningful. If pods were missing, nodes would
/// seem to have more free resources than they have.
pub fn can_place(cluster: &Cluster) -> bool {
    [Scope::Nodes, Scope::Pods].iter().all(|scope| cluster.knows(scope))
}

/// Returns the unknown or outdated kinds of the objects that decide which lost pods are recreated and where they land.
///
/// If some are unknown or outdated, N-1, what-ifs and forecasts present their results as likely at best. Leases are
/// included because they show whether the remaining nodes are alive.
pub fn failover_gaps(cluster: &Cluster) -> Gaps {
    let kinds = [FeedKind::Nodes, FeedKind::Leases, FeedKind::Pods, FeedKind::Namespaces].into_iter();
    let kinds = kinds.chain(WorkloadKind::ALL.map(FeedKind::Workloads)).chain(FeedKind::PLACEMENT);
    cluster.gaps(kinds)
}

/// Returns the unknown or outdated kinds of the objects that decide when replacements are created and Ready. These are
/// the [`failover_gaps`] and quotas.
pub fn succession_gaps(cluster: &Cluster) -> Gaps {
    let quotas = cluster.gaps([FeedKind::Quotas]);
    Gaps(failover_gaps(cluster).0.into_iter().chain(quotas.0).collect())
}

/// Returns the scopes (sets of objects) of a pod's owner, of the Deployment that owns this owner, and of all pods of
/// the owner.
pub(super) fn of_owner(cluster: &Cluster, pod: &Pod) -> Vec<Scope> {
    let Some(Owner { kind: OwnerKind::Workload(kind), name, .. }) = pod.owner.as_deref() else {
        return Vec::new();
    };
    let namespace = &pod.key.namespace;
    let scope =
        |kind, name: &Name| Scope::Workload(kind, Key { namespace: namespace.clone(), name: name.clone() });
    let mut scopes = vec![scope(*kind, name)];
    let Some(workload) = owner::named(cluster, *kind, namespace, name) else { return scopes };
    if let Some(Owner { kind: OwnerKind::Workload(kind), name, .. }) = &workload.owner {
        scopes.push(scope(*kind, name));
    }
    if !matches!(kind, WorkloadKind::DaemonSet | WorkloadKind::Job) {
        scopes.extend(pods_with(namespace, workload.selector.as_ref()));
    }
    scopes
}

/// Returns the scopes (sets of objects) that have to be known to predict the response to the eviction of a pod,
/// including those for the numbers of its budgets.
pub(super) fn of_budgets(cluster: &Cluster, pod: &Pod) -> Vec<Scope> {
    let mut scopes = of_eviction(pod);
    for budget in cluster.budgets_of(pod) {
        scopes.extend(pods_with(&pod.key.namespace, budget.selector.as_ref()));
        let counted = cluster.pods_in(&pod.key.namespace).filter(|pod| budget.covers(pod));
        scopes.extend(counted.flat_map(|pod| of_owner(cluster, pod)));
    }
    scopes
}

/// Returns the scopes (sets of objects) of the quotas that may delay the replacement of a pod.
pub(super) fn of_quotas(cluster: &Cluster, pod: &Pod) -> Vec<Scope> {
    match owner::recreation(cluster, pod) {
        Recreation::Immediately | Recreation::WhenGone => vec![Scope::QuotasIn(pod.key.namespace.clone())],
        Recreation::OnSameNode | Recreation::Never(_) | Recreation::Unknown => Vec::new(),
    }
}

/// Returns the scope (set of objects) of the pods that a selector selects in a namespace. If the selector is unknown,
/// returns the scope of all pods in the namespace; if it is invalid, `None`.
fn pods_with(namespace: &Namespace, selector: Option<&Selector>) -> Option<Scope> {
    match selector {
        Some(selector) if selector.is_invalid() => None,
        selector => Some(Scope::PodsWith(Some(namespace.clone()), selector.cloned().unwrap_or_default())),
    }
}
