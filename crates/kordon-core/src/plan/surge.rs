//! Surges: Deployments that a drain scales up by one while their pods leave, because their budgets can never allow an
//! eviction.
//!
//! [`assess`] says whether a Deployment can be scaled up at all. A simulated run then shows whether the new pod finds a
//! node and becomes Ready, and whether the old pods leave. `drain` makes the plan again without the surges that do not
//! help.
//!
//! A Deployment is scaled back as soon as its last pod is evicted. The ReplicaSet then has as many pods as it wants, so
//! the new pod stays. If the ReplicaSet has already created one more pod by then, it deletes this pod again: pods that
//! are not Ready go first (upstream `pkg/controller/controller_utils.go`, `ActivePodsWithRanks`).

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use super::{
    budget::{self, BudgetState},
    eviction_note::attached_once,
    landing::Landing,
    owner::{self, OwnerLookup},
    pod_plan::PodPlan,
    quota::QuotaRefusal,
    rules::EvictionRules,
    verdict::{BlockPattern, Verdict},
};
use crate::cluster::{
    Autoscaler, Cluster, Key, KnownAutoscalers, Name, NodeName, OwnerKind, Pod, Uid, Version, Workload,
    WorkloadKind, WorkloadStage,
};
use kordon_time::{Span, Timestamp};

/// A Deployment that is scaled up by one for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surge {
    pub deployment: Key,
    pub uid: Uid,
    /// Version of the Deployment from which the surge was computed.
    pub version: Version,
    /// `spec.replicas` before the Deployment is scaled up.
    pub replicas: i32,
}

impl Surge {
    /// Returns the value that `spec.replicas` has while the Deployment is scaled up.
    pub const fn raised(&self) -> i32 {
        self.replicas.saturating_add(1)
    }
}

impl fmt::Display for Surge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} from {} to {} replicas", self.deployment, self.replicas, self.raised())
    }
}

/// How a plan with `--surge` treats a workload whose pods can never be evicted, because of their budget.
#[derive(Clone, Debug, PartialEq)]
pub struct SurgePlan {
    pub kind: Name,
    pub workload: Key,
    /// The pods of the plan whose eviction the budget forbids, in the order of the plan.
    pub pods: Vec<Key>,
    pub fate: SurgeFate,
}

/// Whether a workload is scaled up and, if not, why.
#[derive(Clone, Debug, PartialEq)]
pub enum SurgeFate {
    Scales { surge: Surge, run: SurgeRun },
    Refused(SurgeRefusal),
}

/// When a Deployment is scaled up and back in a simulated run, and what becomes of its new pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SurgeRun {
    pub scaled_up: Option<Timestamp>,
    /// Where the new pod lands; `None` if it is not created.
    pub landing: Option<Landing>,
    /// Time at which the new pod is Ready; `None` means never.
    pub ready: Option<Timestamp>,
    pub scaled_back: Option<Timestamp>,
    /// The quota that refuses the new pod.
    pub quota: Option<QuotaRefusal>,
}

/// Why a workload is not scaled up.
#[derive(Clone, Debug, PartialEq)]
pub enum SurgeRefusal {
    /// The pod does not belong to a Deployment.
    NoDeployment {
        kind: Name,
    },
    /// The Deployment, or the ReplicaSet that it owns, is not known.
    Unknown,
    Deleted,
    /// The controller of the Deployment would scale it back.
    Owned {
        kind: Name,
        name: Name,
    },
    /// Two pods must not run at the same time, because the Deployment has `strategy: Recreate`.
    Recreated,
    RollsOut,
    /// The new pod could not start beside the old one, which uses this claim.
    Volume {
        claim: Name,
    },
    /// The autoscaler would scale the Deployment back.
    Autoscaled(Box<Autoscaler>),
    /// It is not known whether an autoscaler would scale the Deployment back.
    AutoscalersUnknown {
        why: Option<Name>,
    },
    /// The budget requires all pods that it selects, however many there are.
    NeedsAll {
        budget: Key,
    },
    /// The budget would allow no disruption even with one more pod.
    NotEnough {
        budget: Key,
    },
    Quota(Box<QuotaRefusal>),
    /// The new pod would stay Pending.
    Pending {
        why: Name,
    },
    /// The new pod would land on a node that is drained.
    OnDrainedNode {
        node: NodeName,
    },
    NeverReady,
    /// The pods would stay even if the workload were scaled up.
    StillHeld {
        verdict: String,
    },
}

impl SurgeRefusal {
    /// Returns a stable name of the reason why a workload is not scaled up.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::NoDeployment { .. } => "noDeployment",
            Self::Unknown => "unknown",
            Self::Deleted => "deleted",
            Self::Owned { .. } => "owned",
            Self::Recreated => "recreated",
            Self::RollsOut => "rollsOut",
            Self::Volume { .. } => "volume",
            Self::Autoscaled(_) => "autoscaled",
            Self::AutoscalersUnknown { .. } => "autoscalersUnknown",
            Self::NeedsAll { .. } => "needsAll",
            Self::NotEnough { .. } => "notEnough",
            Self::Quota(_) => "quota",
            Self::Pending { .. } => "pending",
            Self::OnDrainedNode { .. } => "onDrainedNode",
            Self::NeverReady => "neverReady",
            Self::StillHeld { .. } => "stillHeld",
        }
    }
}

impl fmt::Display for SurgeRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDeployment { kind } => write!(f, "only Deployments are scaled up, and this is a {kind}"),
            Self::Unknown => f.write_str("its Deployment is not known"),
            Self::Deleted => f.write_str("it is being deleted"),
            Self::Owned { kind, name } => write!(f, "{kind} {name} owns it, and would scale it back"),
            Self::Recreated => f.write_str("its strategy is Recreate: two of its pods may not run at once"),
            Self::RollsOut => f.write_str("a rollout is in progress: wait until it is done"),
            Self::Volume { claim } => {
                write!(f, "its new pod cannot start beside the old one, which uses volume claim {claim}")
            }
            Self::Autoscaled(autoscaler) => write!(f, "{}", autoscaled(autoscaler)),
            Self::AutoscalersUnknown { why: None } => {
                f.write_str("whether an autoscaler would scale it back is not known yet")
            }
            Self::AutoscalersUnknown { why: Some(why) } => {
                write!(f, "whether an autoscaler would scale it back is not known: {why}")
            }
            Self::NeedsAll { budget } => {
                write!(f, "{budget} needs all its pods, however many there are: relax it")
            }
            Self::NotEnough { budget } => {
                write!(f, "{budget} allows no eviction with one pod more either: relax it")
            }
            Self::Quota(refusal) => {
                write!(f, "quota {} refuses its new pod ({})", refusal.quota.name, refusal.numbers())
            }
            Self::Pending { why } => write!(f, "its new pod would stay Pending ({why})"),
            Self::OnDrainedNode { node } => write!(f, "its new pod would land on {node}, which is drained"),
            Self::NeverReady => f.write_str("its new pod would not be Ready"),
            Self::StillHeld { verdict } => write!(f, "its pods would not leave all the same: {verdict}"),
        }
    }
}

/// Says why a Deployment with an autoscaler is not scaled up, and what to do instead. By default, an autoscaler
/// overwrites the replicas within 15 s, with a number that it computes from its metrics and that lies between its
/// bounds (upstream `pkg/controller/podautoscaler/horizontal.go`, `reconcileAutoscaler`).
fn autoscaled(autoscaler: &Autoscaler) -> String {
    let Autoscaler { key, min, max, owner, .. } = autoscaler;
    let by = owner.as_ref().map(|owner| format!(" of {} {}", owner.kind.as_str(), owner.name));
    let by = by.unwrap_or_default();
    let help = match (owner, min < max) {
        (Some(owner), _) => format!("raise the least replicas in {} meanwhile", owner.kind.as_str()),
        (None, true) => format!("raise its minReplicas to {} meanwhile", min.saturating_add(1)),
        (None, false) => "its minReplicas and maxReplicas are the same".into(),
    };
    format!("autoscaler {}{by} ({min} to {max} replicas) would scale it back: {help}", key.name)
}

/// Pods whose eviction a budget never allows, and their workload.
struct Held {
    kind: Name,
    workload: Key,
    /// The first of `pods`. All of them have the same owner.
    pod: Arc<Pod>,
    budgets: BTreeSet<Key>,
    pods: Vec<Key>,
}

/// Returns, for each workload whose pods can never be evicted because of their budgets, how it could be scaled up by
/// one (surge), or why it is not scaled up. `budgets` are the present states of the pods' budgets.
pub(super) fn candidates(
    rows: &[PodPlan],
    cluster: &Cluster,
    budgets: &BTreeMap<Key, BudgetState>,
    rules: &EvictionRules,
) -> Vec<SurgePlan> {
    let held = held(rows, cluster);
    let mut found: Vec<Result<Surge, SurgeRefusal>> = held
        .iter()
        .map(|held| match held.budgets.iter().find(|key| budgets.get(key).is_some_and(|it| it.needs_all)) {
            Some(budget) => Err(SurgeRefusal::NeedsAll { budget: budget.clone() }),
            None => assess(cluster, &held.pod),
        })
        .collect();
    // A budget may select the pods of several Deployments. Each Deployment that is not scaled up makes it less likely
    // that the surges of the others help.
    while let Some((place, budget)) = unhelped(&held, &found, cluster, budgets, rules) {
        found[place] = Err(SurgeRefusal::NotEnough { budget });
    }
    let plan = |(held, found): (Held, Result<Surge, SurgeRefusal>)| SurgePlan {
        kind: held.kind,
        workload: held.workload,
        pods: held.pods,
        fate: match found {
            Ok(surge) => SurgeFate::Scales { surge, run: SurgeRun::default() },
            Err(refusal) => SurgeFate::Refused(refusal),
        },
    };
    held.into_iter().zip(found).map(plan).collect()
}

/// Returns, by workload, the pods that can never be evicted because of their budgets.
fn held(rows: &[PodPlan], cluster: &Cluster) -> Vec<Held> {
    let mut found: BTreeMap<(Name, Key), Held> = BTreeMap::new();
    for row in rows {
        let Verdict::Blocked { budget, pattern: BlockPattern::CannotBeMet { .. }, .. } =
            row.verdict.as_if_granted()
        else {
            continue;
        };
        let Some(pod) = cluster.pod(&row.pod) else { continue };
        let (kind, workload) = named_workload(cluster, pod);
        let new = || Held {
            kind: kind.clone(),
            workload: workload.clone(),
            pod: pod.clone(),
            budgets: BTreeSet::new(),
            pods: Vec::new(),
        };
        let held = found.entry((kind.clone(), workload.clone())).or_insert_with(new);
        held.budgets.insert(budget.clone());
        held.pods.push(row.pod.clone());
    }
    found.into_values().collect()
}

/// Returns the kind and name of the workload by which users know a pod; for a pod without a workload, its own kind and
/// name.
fn named_workload(cluster: &Cluster, pod: &Pod) -> (Name, Key) {
    match (owner::workload(cluster, pod), &pod.owner) {
        (Some(workload), _) => (workload.kind.as_str().into(), workload.key.clone()),
        (None, Some(owner)) => {
            let key = Key { namespace: pod.key.namespace.clone(), name: owner.name.clone() };
            (owner.kind.as_str().into(), key)
        }
        (None, None) => ("Pod".into(), pod.key.clone()),
    }
}

/// Finds a scaled-up workload whose budget allows no disruption even with the additional pods of all scaled-up
/// workloads. Returns the index of the workload in `held`, and the budget.
fn unhelped(
    held: &[Held],
    found: &[Result<Surge, SurgeRefusal>],
    cluster: &Cluster,
    budgets: &BTreeMap<Key, BudgetState>,
    rules: &EvictionRules,
) -> Option<(usize, Key)> {
    let surging = || held.iter().zip(found).filter(|(_, found)| found.is_ok()).map(|(held, _)| held);
    let is_unhelped = |key: &&Key| {
        let (Some(state), Some(budget)) = (budgets.get(*key), cluster.budgets().get(*key)) else {
            return true;
        };
        let added = surging().filter(|held| budget::selects(budget, &held.pod, rules)).count();
        let mut later = state.clone();
        later.scale_by(budget, i32::try_from(added).unwrap_or(i32::MAX));
        later.max_healthy.is_none_or(|most| later.numbers.desired >= most)
    };
    let places = held.iter().zip(found).enumerate().filter(|(_, (_, found))| found.is_ok());
    places.into_iter().find_map(|(place, (held, _))| {
        held.budgets.iter().find(is_unhelped).map(|budget| (place, budget.clone()))
    })
}

/// Returns how a pod's Deployment is scaled up by one (surge), or why it is not scaled up, as far as that is known
/// without a simulation.
///
/// # Errors
/// The Deployment cannot be scaled up, or it is not known whether it can.
pub fn assess(cluster: &Cluster, pod: &Pod) -> Result<Surge, SurgeRefusal> {
    let deployment = deployment(cluster, pod)?;
    if deployment.stage != WorkloadStage::Active {
        return Err(SurgeRefusal::Deleted);
    }
    if let Some(owner) = &deployment.owner {
        return Err(SurgeRefusal::Owned { kind: owner.kind.as_str().into(), name: owner.name.clone() });
    }
    if deployment.is_recreated {
        return Err(SurgeRefusal::Recreated);
    }
    if let Some(claim) = attached_once(cluster, pod) {
        return Err(SurgeRefusal::Volume { claim });
    }
    not_autoscaled(cluster, &deployment.key)?;
    Ok(Surge {
        deployment: deployment.key.clone(),
        uid: deployment.uid.clone(),
        version: deployment.version,
        // The API server's default for `spec.replicas`.
        replicas: deployment.replicas.unwrap_or(1),
    })
}

/// Returns the Deployment of a pod, if no rollout is changing the Deployment.
fn deployment(cluster: &Cluster, pod: &Pod) -> Result<Arc<Workload>, SurgeRefusal> {
    let none = |kind: &str| SurgeRefusal::NoDeployment { kind: kind.into() };
    let owner = pod.owner.as_ref().ok_or_else(|| none("pod without a controller"))?;
    if owner.kind != OwnerKind::Workload(WorkloadKind::ReplicaSet) {
        return Err(none(owner.kind.as_str()));
    }
    let OwnerLookup::Found(replica_set) = owner::find(cluster, &pod.key.namespace, owner) else {
        return Err(SurgeRefusal::Unknown);
    };
    let above = replica_set.owner.as_ref().ok_or_else(|| none("ReplicaSet without a Deployment"))?;
    if above.kind != OwnerKind::Workload(WorkloadKind::Deployment) {
        return Err(SurgeRefusal::Owned { kind: above.kind.as_str().into(), name: above.name.clone() });
    }
    match owner::find(cluster, &pod.key.namespace, above) {
        OwnerLookup::Found(deployment)
            if replica_set.replicas.unwrap_or(1) != deployment.replicas.unwrap_or(1)
                || owner::is_rolling_out(cluster, pod) =>
        {
            Err(SurgeRefusal::RollsOut)
        }
        OwnerLookup::Found(deployment) => Ok(deployment),
        OwnerLookup::Gone | OwnerLookup::Unknown => Err(SurgeRefusal::Unknown),
    }
}

/// Returns an error if an autoscaler scales a Deployment, or if it is not known whether one does.
fn not_autoscaled(cluster: &Cluster, deployment: &Key) -> Result<(), SurgeRefusal> {
    let unknown = |why: Option<Name>| Err(SurgeRefusal::AutoscalersUnknown { why });
    let all = match cluster.autoscalers() {
        KnownAutoscalers::NotRead => return unknown(None),
        KnownAutoscalers::NotServed => {
            return unknown(Some("the server does not serve horizontalpodautoscalers".into()));
        }
        KnownAutoscalers::Unreadable(why) => return unknown(Some(why.clone())),
        KnownAutoscalers::Read(all) => all,
    };
    match all.iter().find(|autoscaler| autoscaler.scales(deployment)) {
        Some(autoscaler) => Err(SurgeRefusal::Autoscaled(Box::new(autoscaler.clone()))),
        None => Ok(()),
    }
}

impl SurgePlan {
    /// Postpones all times of the surge.
    pub(crate) fn delay(&mut self, by: Span) {
        let SurgeFate::Scales { run, .. } = &mut self.fate else { return };
        for time in [&mut run.scaled_up, &mut run.ready, &mut run.scaled_back] {
            *time = time.map(|time| time + by);
        }
    }

    /// Describes the workload and what happens to it: `Deployment shop/cart: 1 -> 2 replicas …`.
    pub fn line(&self, made: Timestamp) -> String {
        format!("{} {}: {}", self.kind, self.workload, self.text(made))
    }

    /// Says what happens and when, counted from when the plan was made: `1 -> 2 replicas at 0ms; its new pod is Ready
    /// on n2 after ~6s and stays; back to 1 after ~6s`.
    pub fn text(&self, made: Timestamp) -> String {
        let (surge, run) = match &self.fate {
            SurgeFate::Scales { surge, run } => (surge, run),
            SurgeFate::Refused(refusal) => return format!("not scaled up: {refusal}"),
        };
        let after = |at: Option<Timestamp>| at.map_or("never".into(), |at| format!("~{}", at.since(made)));
        let landing = run.landing.as_ref().and_then(Landing::node).map(|node| format!(" on {node}"));
        format!(
            "{} -> {} replicas after {}; its new pod is Ready{} after {}, and stays; back to {} after {}",
            surge.replicas,
            surge.raised(),
            after(run.scaled_up),
            landing.unwrap_or_default(),
            after(run.ready),
            surge.replicas,
            after(run.scaled_back),
        )
    }

    /// How the workload is scaled up by one; `None` if it is not scaled up.
    pub const fn surge(&self) -> Option<&Surge> {
        match &self.fate {
            SurgeFate::Scales { surge, .. } => Some(surge),
            SurgeFate::Refused(_) => None,
        }
    }

    /// Adds the results of a simulated run. Refuses to scale up the workload if the run shows that this does not help.
    /// `rows` are the pods of the plan in which workloads are scaled up; `closed` are the nodes that the plan cordons.
    pub(super) fn settle(
        &mut self,
        runs: &BTreeMap<Key, SurgeRun>,
        rows: &[PodPlan],
        closed: &BTreeSet<NodeName>,
    ) {
        let SurgeFate::Scales { surge, run } = &mut self.fate else { return };
        *run = runs.get(&surge.deployment).cloned().unwrap_or_default();
        let held = rows.iter().filter(|row| self.pods.contains(&row.pod));
        let still = held.map(|row| row.verdict.as_if_granted()).find(|verdict| verdict.is_blocked());
        let refusal = match (&run.quota, &run.landing) {
            (Some(refusal), _) => Some(SurgeRefusal::Quota(Box::new(refusal.clone()))),
            (None, Some(Landing::Pending { why })) => Some(SurgeRefusal::Pending { why: why.clone() }),
            (None, Some(Landing::Node { node, .. })) if closed.contains(node) => {
                Some(SurgeRefusal::OnDrainedNode { node: node.clone() })
            }
            (None, _) if run.ready.is_none() => Some(SurgeRefusal::NeverReady),
            (None, _) => still.map(|verdict| SurgeRefusal::StillHeld { verdict: verdict.to_string() }),
        };
        if let Some(refusal) = refusal {
            self.fate = SurgeFate::Refused(refusal);
        }
    }
}
