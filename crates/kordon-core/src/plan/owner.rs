//! Owners of pods: whether a controller recreates a pod, and which workload's number of replicas counts for it.

use std::sync::Arc;

use super::{
    job_failure::JobFailure,
    owner_kinds::{self, OwnerBehaviour},
};
use crate::cluster::{
    Cluster, Key, KnownSetting, Name, Namespace, NodeName, Owner, OwnerDecision, OwnerKind, Pod, Scope,
    Selector, Uid, Workload, WorkloadKind, WorkloadStage, stateful_set::ordinal,
};
use kordon_time::{Span, Timestamp};

/// The result of looking up an owner.
#[derive(Clone, Debug, PartialEq)]
pub enum OwnerLookup {
    Found(Arc<Workload>),
    /// No object has this name and uid.
    Gone,
    /// The owner was not read, or reading it is forbidden.
    Unknown,
}

/// Looks up an owner by name and uid.
pub fn find(cluster: &Cluster, namespace: &Namespace, owner: &Owner) -> OwnerLookup {
    let OwnerKind::Workload(kind) = owner.kind else { return OwnerLookup::Unknown };
    match named(cluster, kind, namespace, &owner.name) {
        Some(workload) if workload.uid == owner.uid => OwnerLookup::Found(workload.clone()),
        Some(_) => OwnerLookup::Gone,
        None if is_read(cluster, kind, namespace, &owner.name) => OwnerLookup::Gone,
        None => OwnerLookup::Unknown,
    }
}

/// Returns the scope of an owner; `None` if owners of its kind are not read.
pub fn scope(namespace: &Namespace, owner: &Owner) -> Option<Scope> {
    let OwnerKind::Workload(kind) = owner.kind else { return None };
    Some(Scope::Workload(kind, Key { namespace: namespace.clone(), name: owner.name.clone() }))
}

/// Returns whether kordon has read this workload, or has found that it does not exist.
pub fn is_read(cluster: &Cluster, kind: WorkloadKind, namespace: &Namespace, name: &Name) -> bool {
    let key = Key { namespace: namespace.clone(), name: name.clone() };
    cluster.knows(&Scope::Workload(kind, key))
}

/// Returns whether all pods of an owner are known.
pub fn knows_pods(cluster: &Cluster, namespace: &Namespace, owner: &Owner) -> bool {
    if cluster.knows(&Scope::Pods) {
        return true;
    }
    let OwnerLookup::Found(workload) = find(cluster, namespace, owner) else { return false };
    let scope = |selector: &Selector| Scope::PodsWith(Some(namespace.clone()), selector.clone());
    workload.selector.as_ref().is_some_and(|selector| cluster.knows(&scope(selector)))
}

/// A pod that must be available before a StatefulSet creates a pod of a higher ordinal.
#[derive(Clone, Debug)]
pub struct LowerPod<'a> {
    pub key: Key,
    /// How long the pod has to be Ready before it is available.
    pub min_ready: Span,
    /// The pod; `None` if it does not exist, so that its StatefulSet has to create it first.
    pub pod: Option<&'a Arc<Pod>>,
}

impl LowerPod<'_> {
    /// Returns when the pod became Ready; `None` if it is not Ready, is terminating, or does not exist.
    pub fn ready_since(&self, cluster: &Cluster) -> Option<Timestamp> {
        let pod = self.pod.filter(|pod| pod.is_ready() && pod.termination.is_none())?;
        let since = pod.ready.as_ref().and_then(|ready| ready.last_transition);
        Some(since.map_or(Timestamp::EPOCH, |since| cluster.local(since)))
    }
}

/// Returns the pods that must be available before the StatefulSet of `pod` creates it again: the pods of lower
/// ordinals. Returns no pods if the StatefulSet's `podManagementPolicy` is Parallel (upstream `updateStatefulSet`), or
/// if `pod` is not created again.
pub fn created_after<'a>(cluster: &'a Cluster, pod: &Pod) -> impl Iterator<Item = LowerPod<'a>> + use<'a> {
    let namespace = pod.key.namespace.clone();
    let below = pod.owner.as_ref().and_then(|owner| {
        let OwnerLookup::Found(set) = find(cluster, &namespace, owner) else { return None };
        let rules = set.stateful.clone().filter(|rules| !rules.is_parallel)?;
        let (own, replicas) = (ordinal(&pod.key.name)?, set.replicas.unwrap_or(1));
        let range = rules.ordinals(replicas);
        let has_all = range.is_some() && knows_pods(cluster, &namespace, owner);
        let range = range.unwrap_or(0..own.saturating_add(1));
        let order = (owner.clone(), range.start..own, rules.min_ready, has_all);
        range.contains(&own).then_some(order)
    });
    below.into_iter().flat_map(move |(owner, ordinals, min_ready, has_all)| {
        let namespace = namespace.clone();
        let lower = move |ordinal: i32| {
            let key = Key { namespace: namespace.clone(), name: format!("{}-{ordinal}", owner.name).into() };
            let is_of_set = |pod: &&Arc<Pod>| pod.owner.as_ref().is_some_and(|other| other.uid == owner.uid);
            let pod = cluster.pod(&key).filter(is_of_set);
            LowerPod { key, min_ready, pod }
        };
        ordinals.map(lower).filter(move |lower| has_all || lower.pod.is_some())
    })
}

/// Returns the node that the template of a pod's owner names. The scheduler does not place pods of such a template.
pub fn named_node(cluster: &Cluster, pod: &Pod) -> Option<NodeName> {
    match find(cluster, &pod.key.namespace, pod.owner.as_ref()?) {
        OwnerLookup::Found(workload) => workload.template.as_ref()?.node.clone(),
        OwnerLookup::Gone | OwnerLookup::Unknown => None,
    }
}

/// Looks up a workload by name alone, as kubectl does.
pub fn named<'a>(
    cluster: &'a Cluster,
    kind: WorkloadKind,
    namespace: &Namespace,
    name: &Name,
) -> Option<&'a Arc<Workload>> {
    let key = Key { namespace: namespace.clone(), name: name.clone() };
    cluster.workloads(kind).get(&(kind, key))
}

/// Returns the workload by which users know the pod: the Deployment instead of its ReplicaSet.
pub fn workload(cluster: &Cluster, pod: &Pod) -> Option<Arc<Workload>> {
    workload_of(cluster, &pod.key.namespace, pod.owner.as_ref()?)
}

/// Returns the workload by which users know the pods of this owner.
pub fn workload_of(cluster: &Cluster, namespace: &Namespace, owner: &Owner) -> Option<Arc<Workload>> {
    let OwnerLookup::Found(direct) = find(cluster, namespace, owner) else { return None };
    let above = direct.owner.as_ref().map(|owner| find(cluster, namespace, owner));
    match above {
        Some(OwnerLookup::Found(above)) => Some(above),
        Some(OwnerLookup::Gone | OwnerLookup::Unknown) | None => Some(direct),
    }
}

/// Returns the Job of a pod, if it has one that is known.
pub fn job_of(cluster: &Cluster, pod: &Pod) -> Option<Arc<Workload>> {
    let owner = pod.owner.as_ref().filter(|owner| owner.kind == OwnerKind::Workload(WorkloadKind::Job))?;
    match find(cluster, &pod.key.namespace, owner) {
        OwnerLookup::Found(job) => Some(job),
        OwnerLookup::Gone | OwnerLookup::Unknown => None,
    }
}

/// Returns the Deployment above a ReplicaSet, if it has one that is known.
pub fn deployment_of(cluster: &Cluster, workload: &Workload) -> Option<Arc<Workload>> {
    let owner = workload.owner.as_ref()?;
    match find(cluster, &workload.key.namespace, owner) {
        OwnerLookup::Found(above) => Some(above).filter(|above| above.kind == WorkloadKind::Deployment),
        OwnerLookup::Gone | OwnerLookup::Unknown => None,
    }
}

/// Returns the ReplicaSets of a Deployment.
pub fn replica_sets_of<'a>(
    cluster: &'a Cluster,
    deployment: &'a Workload,
) -> impl Iterator<Item = &'a Arc<Workload>> {
    owned_replica_sets(cluster, &deployment.key.namespace, &deployment.uid)
}

fn owned_replica_sets<'a>(
    cluster: &'a Cluster,
    namespace: &Namespace,
    uid: &'a Uid,
) -> impl Iterator<Item = &'a Arc<Workload>> {
    let is_of_it = move |other: &&Arc<Workload>| other.owner.as_ref().is_some_and(|owner| owner.uid == *uid);
    cluster.workloads_in(WorkloadKind::ReplicaSet, namespace).filter(is_of_it)
}

/// Label with the revision of a StatefulSet's pod.
const REVISION: &str = "controller-revision-hash";

/// Returns whether more than one revision of the pod's Deployment or StatefulSet is in use
/// (docs/upstream/placement-and-pressure.md#5.4).
pub fn is_rolling_out(cluster: &Cluster, pod: &Pod) -> bool {
    let Some(owner) = &pod.owner else { return false };
    let OwnerLookup::Found(direct) = find(cluster, &pod.key.namespace, owner) else { return false };
    match (direct.kind, &direct.owner) {
        (WorkloadKind::ReplicaSet, Some(deployment)) => {
            let replica_sets = owned_replica_sets(cluster, &pod.key.namespace, &deployment.uid);
            replica_sets.filter(|other| other.replicas != Some(0)).nth(1).is_some()
        }
        (WorkloadKind::StatefulSet, _) => {
            let revision = pod.labels.get(REVISION);
            cluster.pods_owned_by(&direct.uid).any(|other| other.labels.get(REVISION) != revision)
        }
        _ => false,
    }
}

/// Whether and when a controller recreates a leaving pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recreation {
    /// The controller creates the replacement when the pod's deletion starts.
    Immediately,
    /// The controller creates the replacement when the old object is gone, because the new pod needs the name of the
    /// old one, or because the owner waits until the old object is gone.
    WhenGone,
    /// The pod is recreated on the same node, because its DaemonSet ignores cordons or it is a static pod.
    OnSameNode,
    Never(NotRecreated),
    /// It is not known what the controller does: kordon does not know the controller, or the settings of the operator
    /// decide.
    Unknown,
}

/// The reason why no controller recreates a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotRecreated {
    /// The pod has no controller.
    NoOwner,
    /// The pod's controller is gone.
    OwnerGone,
    /// The pod has finished.
    Finished,
    /// The pod's Job fails, or the pod's index of the Job fails.
    JobFails(JobFailure),
    /// The whole run to which the pod belongs, such as a build, fails: the controller of the pod's owner creates no
    /// other pod after a deletion.
    RunFails,
}

impl NotRecreated {
    /// The risk to a pod that is not recreated, in a few words, for lists of risks.
    pub const fn risk(self) -> &'static str {
        match self {
            Self::JobFails(_) => "fails its Job",
            Self::RunFails => "fails its run",
            Self::NoOwner | Self::OwnerGone | Self::Finished => "lost",
        }
    }

    /// The reason why a pod is not recreated, as a clause about the pod.
    pub fn says(self) -> String {
        match self {
            Self::JobFails(why @ JobFailure::Index { .. }) => format!("{why} in its Job"),
            Self::JobFails(why) => format!("its Job fails ({why})"),
            Self::RunFails => "its run fails with it".into(),
            Self::OwnerGone => "its controller is gone".into(),
            Self::NoOwner => "no controller recreates it".into(),
            Self::Finished => "it has finished".into(),
        }
    }

    /// Stable name of the reason why a pod is not recreated.
    pub const fn word(self) -> &'static str {
        match self {
            Self::NoOwner => "noOwner",
            Self::OwnerGone => "ownerGone",
            Self::Finished => "finished",
            Self::JobFails(_) => "jobFails",
            Self::RunFails => "runFails",
        }
    }
}

/// Returns whether a pod's owner creates another pod while it has `live_pods` live pods. A StatefulSet creates another
/// pod if the ordinal of the pod is in its range, however many pods live. Owners that cannot be read are assumed to
/// create another pod.
pub fn creates_replacement(cluster: &Cluster, pod: &Pod, live_pods: i32) -> bool {
    match pod.owner.as_ref().map(|owner| find(cluster, &pod.key.namespace, owner)) {
        Some(OwnerLookup::Found(workload)) if workload.stage != WorkloadStage::Active => false,
        Some(OwnerLookup::Found(workload)) => workload.replicas.is_none_or(|replicas| {
            if let Some(ordinals) = workload.stateful.as_ref().and_then(|rules| rules.ordinals(replicas)) {
                return ordinal(&pod.key.name).is_some_and(|own| ordinals.contains(&own));
            }
            live_pods < wanted(&workload, replicas, live_pods)
        }),
        Some(OwnerLookup::Gone | OwnerLookup::Unknown) | None => true,
    }
}

/// Returns whether the pod's owner is a Job that has completed or failed.
pub fn has_ended(cluster: &Cluster, pod: &Pod) -> bool {
    let found = pod.owner.as_ref().map(|owner| find(cluster, &pod.key.namespace, owner));
    matches!(found, Some(OwnerLookup::Found(workload)) if workload.stage == WorkloadStage::Finished)
}

/// Returns how many pods a workload wants at present.
fn wanted(workload: &Workload, replicas: i32, live_pods: i32) -> i32 {
    workload.job.as_ref().map_or(replicas, |job| job.wanted(replicas, live_pods))
}

/// Returns how many pods the owner of a pod still has to create if `live_pods` of its pods are live; 0 if that is not
/// known.
pub fn missing_pods(cluster: &Cluster, pod: &Pod, live_pods: usize) -> usize {
    let live = i32::try_from(live_pods).unwrap_or(i32::MAX);
    match pod.owner.as_ref().map(|owner| find(cluster, &pod.key.namespace, owner)) {
        Some(OwnerLookup::Found(workload)) if workload.stage == WorkloadStage::Active => {
            let missing = workload.replicas.map_or(0, |replicas| wanted(&workload, replicas, live) - live);
            usize::try_from(missing).unwrap_or_default()
        }
        _ => 0,
    }
}

/// Returns whether a pod's owner creates another pod once this one is gone or terminating.
pub fn needs_another(cluster: &Cluster, pod: &Pod) -> bool {
    let Some(owner) = &pod.owner else { return false };
    let lives = |other: &&Arc<Pod>| other.key != pod.key && other.lives();
    let live = cluster.pods_owned_by(&owner.uid).filter(lives).count();
    creates_replacement(cluster, pod, i32::try_from(live).unwrap_or(i32::MAX))
}

/// Returns whether and when a leaving pod is recreated. Owners that cannot be read are assumed to exist.
pub fn recreation(cluster: &Cluster, pod: &Pod) -> Recreation {
    let Some(owner) = &pod.owner else {
        return Recreation::Never(if pod.is_finished() {
            NotRecreated::Finished
        } else {
            NotRecreated::NoOwner
        });
    };
    let kind = match &owner.kind {
        OwnerKind::Workload(kind) => *kind,
        OwnerKind::Node => return Recreation::OnSameNode,
        OwnerKind::Other { .. } if pod.is_finished() => return Recreation::Never(NotRecreated::Finished),
        OwnerKind::Other { .. } => return recreation_by_operator(cluster, owner),
    };
    let found = find(cluster, &pod.key.namespace, owner);
    // The controllers of DaemonSets and StatefulSets delete finished pods and create them again, on the same node or
    // under the same name.
    let returns_finished = match kind {
        WorkloadKind::DaemonSet => true,
        WorkloadKind::StatefulSet => found != OwnerLookup::Gone,
        WorkloadKind::ReplicaSet
        | WorkloadKind::Deployment
        | WorkloadKind::ReplicationController
        | WorkloadKind::Job => false,
    };
    if pod.is_finished() && !returns_finished {
        return Recreation::Never(NotRecreated::Finished);
    }
    if found == OwnerLookup::Gone {
        return Recreation::Never(NotRecreated::OwnerGone);
    }
    match kind {
        WorkloadKind::DaemonSet => Recreation::OnSameNode,
        WorkloadKind::StatefulSet => Recreation::WhenGone,
        WorkloadKind::Job => match found {
            OwnerLookup::Found(job) => recreation_by_job(&job, pod),
            OwnerLookup::Gone | OwnerLookup::Unknown => Recreation::Immediately,
        },
        WorkloadKind::ReplicaSet | WorkloadKind::Deployment | WorkloadKind::ReplicationController => {
            Recreation::Immediately
        }
    }
}

/// Returns what the Job controller does about an unfinished pod that leaves. If the pod is already terminating in a Job
/// that has failed, its departure is part of the failure.
fn recreation_by_job(workload: &Workload, pod: &Pod) -> Recreation {
    let job = workload.job.as_deref();
    let failure = job.and_then(JobFailure::from_status).filter(|_| pod.termination.is_some());
    if let Some(failure) = failure {
        Recreation::Never(NotRecreated::JobFails(failure))
    } else if job.is_some_and(|job| job.managed_by.is_some()) {
        Recreation::Unknown
    } else if workload.replaces_only_failed {
        Recreation::WhenGone
    } else {
        Recreation::Immediately
    }
}

/// Returns what the controller of another project does, if that is known.
fn recreation_by_operator(cluster: &Cluster, owner: &Owner) -> Recreation {
    match owner_kinds::row_of(&owner.kind).map(|row| row.behaviour) {
        Some(OwnerBehaviour::SameName) => Recreation::WhenGone,
        Some(OwnerBehaviour::OtherName) => Recreation::Immediately,
        Some(OwnerBehaviour::SameNode) => Recreation::OnSameNode,
        Some(OwnerBehaviour::Never) => Recreation::Never(NotRecreated::RunFails),
        Some(OwnerBehaviour::OperatorDecides) => match cluster.operator_settings().decision_of(owner) {
            Some(OwnerDecision::Recreates) => Recreation::WhenGone,
            Some(OwnerDecision::Ends) => Recreation::Never(NotRecreated::RunFails),
            None => Recreation::Unknown,
        },
        None => Recreation::Unknown,
    }
}

/// Returns whether the controller of the pod is a pod among `others`. If so, the garbage collector deletes the pod
/// together with its controller, for example executors together with their Spark driver (upstream
/// `attemptToDeleteItem`).
pub fn is_owned_by_any<'a>(pod: &Pod, others: impl IntoIterator<Item = &'a Arc<Pod>>) -> bool {
    let Some(owner) = &pod.owner else { return false };
    let is_pod = matches!(&owner.kind, OwnerKind::Other { kind, .. } if **kind == *"Pod");
    is_pod && others.into_iter().any(|other| other.uid == owner.uid)
}

/// Returns the project whose operator is assumed to recreate a pod; `None` if no such operator is known.
pub fn assumed_operator(cluster: &Cluster, pod: &Pod) -> Option<&'static str> {
    let owner = pod.owner.as_ref()?;
    match recreation_by_operator(cluster, owner) {
        Recreation::Immediately | Recreation::WhenGone | Recreation::OnSameNode => {
            owner_kinds::row_of(&owner.kind).map(|row| row.project)
        }
        Recreation::Never(_) | Recreation::Unknown => None,
    }
}

/// Returns why no controller recreates a leaving pod; `None` if a controller recreates it or the pod has finished.
pub fn not_recreated(cluster: &Cluster, pod: &Pod) -> Option<NotRecreated> {
    match recreation(cluster, pod) {
        Recreation::Never(NotRecreated::Finished) => None,
        Recreation::Never(why) => (!pod.is_finished()).then_some(why),
        Recreation::Immediately | Recreation::WhenGone | Recreation::OnSameNode | Recreation::Unknown => None,
    }
}

/// Returns why it is not known whether a pod is recreated: `replacement unknown: owned by Workflow build-7`.
pub fn unknown_text(cluster: &Cluster, pod: &Pod) -> Name {
    let Some(owner) = &pod.owner else { return "replacement unknown".into() };
    let manager = match find(cluster, &pod.key.namespace, owner) {
        OwnerLookup::Found(workload) => workload.job.as_ref().and_then(|job| job.managed_by.clone()),
        OwnerLookup::Gone | OwnerLookup::Unknown => None,
    };
    match manager {
        Some(manager) => format!("replacement unknown: Job {} is managed by {manager}", owner.name).into(),
        None => {
            let why = match cluster.operator_settings().setting_of(owner) {
                Some(KnownSetting::Unreadable(why)) => format!(", which cannot be read: {why}"),
                Some(KnownSetting::Found(_) | KnownSetting::Missing) | None => String::new(),
            };
            format!("replacement unknown: owned by {} {}{why}", owner.kind.as_str(), owner.name).into()
        }
    }
}
