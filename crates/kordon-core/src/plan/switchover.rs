//! Roles, such as the primary of a database, that Kubernetes operators move to other pods once a node is cordoned. The
//! budget that protects the pod with the role then protects another pod.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    budget::{self, BudgetState},
    drain_start::cordoned_at,
    operator_budgets::{OperatorNeeds, RoleMove, operator_of_pod},
    owner::{self, OwnerLookup},
    rules::EvictionRules,
};
use crate::cluster::{Cluster, Key, Node, NodeName, Phase, Pod, Scope, Selector, UNSCHEDULABLE};
use kordon_time::{Span, Timestamp};

/// Time from the cordon of a node until an operator has moved the primary role from a pod on this node to a replica
/// elsewhere. Measured with CloudNativePG.
pub const SWITCHOVER: Span = Span::from_secs(11);

/// Time within which an operator acts, if it acts at all. It is much longer than [`SWITCHOVER`], because an operator
/// may try several times.
const PATIENCE: Span = Span::from_secs(300);

/// Keys of the taints that CloudNativePG treats as the start of a drain, like a cordon (upstream `DefaultDrainTaints`).
const DRAIN_TAINTS: [&str; 4] =
    [UNSCHEDULABLE, "ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/disruption"];

/// What a Kubernetes operator does with the role of a pod whose node is cordoned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Switchover {
    /// The operator moves the role once the pods of `after` are Ready on other nodes; at once if `after` is empty.
    /// `moves_them` is true if the operator moves these pods itself, by deleting them.
    Moves { after: BTreeSet<Key>, moves_them: bool },
    /// The operator deletes the pod, which is the only instance, so that the pod starts on another node.
    Restarts,
    /// The operator has no other pod that could take the role.
    NoReplica,
    /// The operator could have moved the role since this time, but has not. It may never do so.
    Overdue { since: Timestamp },
    /// It is not known which other instances there are ([`instance_scopes`]).
    Unknown,
}

/// Returns what the operator of a pod does with the role of the pod; `None` if the operator moves no role of this pod,
/// or does not regard the pod's node as cordoned. Nodes in `closed` are cordoned too.
pub fn switchover(
    cluster: &Cluster,
    pod: &Pod,
    closed: &BTreeSet<NodeName>,
    now: Timestamp,
) -> Option<Switchover> {
    let role = role_of(pod)?;
    let instances = Instances::new(cluster, pod, role, closed)?;
    if !instance_scopes(pod).iter().all(|scope| cluster.knows(scope)) {
        return Some(Switchover::Unknown);
    }
    let acts = match role.operator_needs {
        RoleMove::AllInstances => instances.switched_by_cloud_native_pg(),
        RoleMove::OneReplica => instances.switched_by_postgres_operator(),
    };
    match instances.could_act_since(&acts) {
        Some(since) if now.since(since) > PATIENCE => Some(Switchover::Overdue { since }),
        Some(_) | None => Some(acts),
    }
}

/// The role that a Kubernetes operator moves away from a pod.
#[derive(Clone, Copy, Debug)]
pub struct InstanceRole {
    pub label: &'static str,
    /// Value of the role label on pods that do not have the role.
    pub replica: &'static str,
    pub operator: &'static str,
    operator_needs: RoleMove,
}

/// Returns the role that a pod's operator moves from this pod to another pod once the node of this pod is cordoned.
pub fn role_of(pod: &Pod) -> Option<InstanceRole> {
    let operator = operator_of_pod(pod)?;
    let OperatorNeeds::OtherInstances { role_label, primary, replica, moves } = operator.needs else {
        return None;
    };
    let has_role = pod.labels.get(role_label).is_some_and(|role| **role == *primary);
    has_role.then_some(InstanceRole {
        label: role_label,
        replica,
        operator: operator.operator,
        operator_needs: moves,
    })
}

/// Returns the scopes (sets of objects) that show the other instances of a pod with a role: their number is in the
/// owner, they run in the pod's namespace, and their nodes may be cordoned. Empty for a pod without a role.
pub fn instance_scopes(pod: &Pod) -> BTreeSet<Scope> {
    if role_of(pod).is_none() {
        return BTreeSet::new();
    }
    let namespace = &pod.key.namespace;
    let owner = pod.owner.as_ref().and_then(|owner| owner::scope(namespace, owner));
    let pods = Scope::PodsWith(Some(namespace.clone()), Selector::default());
    owner.into_iter().chain([Scope::Nodes, pods]).collect()
}

/// The other instances that belong together with a pod that has a role, for example the replicas of a primary.
struct Instances<'a> {
    cluster: &'a Cluster,
    pod: &'a Pod,
    own_node: &'a NodeName,
    closed: &'a BTreeSet<NodeName>,
    role: InstanceRole,
    others: Vec<&'a Arc<Pod>>,
}

impl<'a> Instances<'a> {
    /// Returns the other instances, if the operator regards the pod's node as cordoned.
    fn new(
        cluster: &'a Cluster,
        pod: &'a Pod,
        role: InstanceRole,
        closed: &'a BTreeSet<NodeName>,
    ) -> Option<Self> {
        let (own_node, owner) = (pod.node.as_ref()?, pod.owner.as_ref()?);
        let others = cluster.pods_owned_by(&owner.uid).filter(|other| other.key != pod.key).collect();
        let instances = Self { cluster, pod, own_node, closed, role, others };
        instances.is_closed(own_node).then_some(instances)
    }

    /// Returns whether the operator regards a node as cordoned.
    fn is_closed(&self, name: &NodeName) -> bool {
        let is_drained = |node: &Node| match self.role.operator_needs {
            RoleMove::AllInstances => {
                node.taints.iter().any(|taint| DRAIN_TAINTS.contains(&taint.key.as_str()))
            }
            RoleMove::OneReplica => false,
        };
        self.closed.contains(name)
            || self.cluster.node(name).is_none_or(|node| node.unschedulable || is_drained(node))
    }

    fn is_on_open_node(&self, pod: &Pod) -> bool {
        pod.node.as_ref().is_some_and(|node| node != self.own_node && !self.is_closed(node))
    }

    /// As upstream `setPrimaryOnSchedulableNode`, requires three conditions: all instances are ready, all replicas run
    /// on other nodes than the primary, and at least one replica runs on a schedulable node. If a pod has failed or is
    /// Pending, only the last condition counts.
    fn switched_by_cloud_native_pg(&self) -> Switchover {
        let runs = |pod: &&&Arc<Pod>| pod.is_ready() && pod.termination.is_none();
        let is_elsewhere = |pod: &&&Arc<Pod>| pod.node.as_ref() != Some(self.own_node);
        let has_failed =
            |pod: &&Arc<Pod>| pod.termination.is_none() && !pod.is_ready() && pod.phase != Phase::Running;
        let live: Vec<&Arc<Pod>> = self.others.iter().copied().filter(|pod| !pod.is_finished()).collect();
        if live.is_empty() {
            return Switchover::NoReplica;
        }
        let has_candidate = live.iter().filter(runs).any(|pod| self.is_on_open_node(pod));
        if has_candidate && self.others.iter().any(has_failed) {
            return Switchover::Moves { after: BTreeSet::new(), moves_them: false };
        }
        let is_awaited = |pod: &&&Arc<Pod>| match has_candidate {
            true => !runs(pod) || !is_elsewhere(pod),
            false => !runs(pod) || !self.is_on_open_node(pod),
        };
        let after = live.iter().filter(is_awaited).map(|pod| pod.key.clone()).collect();
        Switchover::Moves { after, moves_them: false }
    }

    /// As upstream `MigrateMasterPod`, requires one ready replica. If the replica is on a cordoned node too, the
    /// operator first moves the replica.
    fn switched_by_postgres_operator(&self) -> Switchover {
        let owner = self.pod.owner.as_ref();
        let replicas =
            owner.and_then(|owner| match owner::find(self.cluster, &self.pod.key.namespace, owner) {
                OwnerLookup::Found(workload) => workload.replicas,
                OwnerLookup::Gone | OwnerLookup::Unknown => None,
            });
        if replicas.map_or(self.others.is_empty(), |replicas| replicas <= 1) {
            return Switchover::Restarts;
        }
        let live: Vec<&Arc<Pod>> = self.others.iter().copied().filter(|pod| !pod.is_finished()).collect();
        let mut ready = live.iter().filter(|pod| pod.is_ready() && pod.termination.is_none());
        let first = ready.clone().next();
        let after: BTreeSet<Key> = match (ready.any(|pod| self.is_on_open_node(pod)), first) {
            (true, _) => BTreeSet::new(),
            (false, Some(candidate)) => {
                return Switchover::Moves { after: [candidate.key.clone()].into(), moves_them: true };
            }
            (false, None) => live.iter().map(|pod| pod.key.clone()).collect(),
        };
        match live.is_empty() {
            true => Switchover::NoReplica,
            false => Switchover::Moves { after, moves_them: false },
        }
    }

    /// Returns the time since which the operator could have acted; `None` if it could not have acted, or if the time of
    /// the cordon is not known.
    fn could_act_since(&self, acts: &Switchover) -> Option<Timestamp> {
        let acts_at_once = match acts {
            Switchover::Moves { after, moves_them } => after.is_empty() || *moves_them,
            Switchover::Restarts => true,
            Switchover::NoReplica | Switchover::Overdue { .. } | Switchover::Unknown => false,
        };
        let node = self.cluster.node(self.own_node).filter(|node| acts_at_once && node.unschedulable)?;
        let changed = |pod: &&Arc<Pod>| {
            let changed = pod.ready.as_ref()?.last_transition?;
            Some(self.cluster.local(self.cluster.stated_by_kubelet(pod, changed)))
        };
        let ready = self.others.iter().filter_map(changed).max();
        Some(cordoned_at(self.cluster, node)?.max(ready.unwrap_or(Timestamp::EPOCH)))
    }
}

/// Budgets of a pod after it has lost its role: the budgets that protect the pod, and the budgets that count it.
#[derive(Clone, Debug)]
pub(super) struct BudgetsAfterMove {
    pub protected_by: Vec<Key>,
    pub counted_by: Vec<Key>,
}

impl BudgetsAfterMove {
    /// Finds the budgets that `pod` has without its role. Adds the states of these budgets to `states`, if they are
    /// missing there.
    pub fn new(
        cluster: &Cluster,
        pod: &Pod,
        states: &mut BTreeMap<Key, BudgetState>,
        rules: &EvictionRules,
        now: Timestamp,
    ) -> Self {
        let without_role = without_role(pod);
        let (mut protected_by, mut counted_by) = (Vec::new(), Vec::new());
        let budgets = cluster.budgets_of(&without_role);
        for budget in budgets.filter(|budget| budget::selects(budget, &without_role, rules)) {
            counted_by.push(budget.key.clone());
            if budget::protects(budget, &without_role, rules) {
                protected_by.push(budget.key.clone());
            }
            let state = || BudgetState::new(cluster, budget, rules, now);
            states.entry(budget.key.clone()).or_insert_with(state);
        }
        Self { protected_by, counted_by }
    }
}

/// Returns the pod as it is after it has lost its role: its role label has the value of a replica.
fn without_role(pod: &Pod) -> Pod {
    let Some(role) = role_of(pod) else { return pod.clone() };
    let labels = pod.labels.iter().map(|(key, value)| {
        let value = if **key == *role.label { role.replica.into() } else { value.clone() };
        (key.clone(), value)
    });
    Pod { labels: labels.collect(), ..pod.clone() }
}
