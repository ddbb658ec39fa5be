//! Pods, with the fields that eviction, budgets, plans and the screen read.

use std::{fmt, sync::Arc};

use minicbor::{Decode, Decoder, Encode, Encoder, data::Type, encode::Write};

use super::{
    encoding::{self, EncodingContext},
    labels::Labels,
    names::{Key, Name, NodeName},
    node::{Condition, ConditionStatus},
    owner::{Owner, OwnerKind, WorkloadKind},
    pod_resources::PodResources,
    resources::Resources,
    scheduling::SchedulingSpec,
    shared_list::SharedList,
    table::{TableObject, Version},
    taint::Toleration,
    uid::Uid,
};
use kordon_time::{ClusterTime, Span};

/// A Pod, cut down to the fields that kordon reads. Parts that are equal in many pods are shared.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct Pod {
    #[n(0)]
    pub key: Key,
    #[n(1)]
    pub uid: Uid,
    #[n(2)]
    pub version: Version,
    #[n(3)]
    pub created: ClusterTime,
    #[n(4)]
    pub labels: Labels,
    /// The owner reference with `controller: true`; shared by the pods of a workload.
    #[cbor(n(5), with = "encoding::inline_option", has_nil)]
    pub owner: Option<Arc<Owner>>,
    /// `spec.nodeName`; none until the pod is scheduled.
    #[n(6)]
    pub node: Option<NodeName>,
    /// `spec.tolerations`, in their order: the first match counts.
    #[n(7)]
    pub tolerations: SharedList<Toleration>,
    /// `spec.priority`.
    #[n(8)]
    pub priority: i32,
    // The field number 9 must not be used again: older recordings have the sum of the pod's requests there. The
    // requests are now in `resources`.
    /// All requests and limits of the pod; shared by pods in which they are equal.
    #[cbor(n(10), with = "encoding::shared")]
    pub resources: Arc<PodResources>,
    /// The rest of the spec that the scheduler reads; shared by pods with equal specs.
    #[cbor(n(11), with = "encoding::shared")]
    pub scheduling: Arc<SchedulingSpec>,
    /// `status.startTime`: when the kubelet accepted the pod.
    #[n(12)]
    pub started: Option<ClusterTime>,
    /// `status.nominatedNodeName`: where the scheduler reserves resources for the pod after preemption.
    #[n(13)]
    pub nominated: Option<NodeName>,
    /// `spec.terminationGracePeriodSeconds`.
    #[n(14)]
    pub grace: Span,
    #[n(15)]
    pub phase: Phase,
    /// `status.reason`: why the pod is in its phase (NodeLost, Evicted); usually empty.
    #[n(16)]
    pub reason: Name,
    /// The PodScheduled condition, if its status is not True; none for most pods.
    #[cbor(n(17), with = "encoding::inline_option", has_nil)]
    pub unscheduled: Option<Arc<PodUnscheduled>>,
    /// The Ready condition; none until the kubelet posts the condition.
    #[n(18)]
    pub ready: Option<PodReady>,
    /// The reason of the DisruptionTarget condition, if its status is True.
    #[n(19)]
    pub disruption_target: Option<Name>,
    /// The deletion, if it has started. Most pods have none, so the field takes only one word.
    #[n(20)]
    pub termination: Option<Box<Termination>>,
    /// Why the pod ended or is about to end, beyond `reason` and `disruption_target`, and what keeps it from being
    /// Ready; none for most pods.
    #[cbor(n(21), with = "encoding::inline_option", has_nil)]
    pub ending: Option<Arc<PodEnding>>,
    /// `metadata.annotations` has `kubernetes.io/config.mirror`: the mirror pod of a static pod.
    #[n(22)]
    pub mirror: bool,
    /// `metadata.finalizers`, which keep the object after its grace period.
    #[n(23)]
    pub finalizers: SharedList<Name>,
    #[n(24)]
    pub storage: LocalStorage,
    /// The autoscalers that leave the pod on its node, by annotations in `metadata.annotations`.
    #[cbor(n(25), default)]
    pub kept_from: KeptFrom,
}

/// The annotation of pods that Karpenter does not evict (kubernetes-sigs/karpenter v1.14.1: `pkg/apis/v1/labels.go`,
/// `DoNotDisruptAnnotationKey`).
pub const DO_NOT_DISRUPT: &str = "karpenter.sh/do-not-disrupt";

/// The annotation of pods that the Cluster Autoscaler does not evict if it is `false`, so that it does not remove their
/// nodes (kubernetes/autoscaler cluster-autoscaler-1.36.1: `cluster-autoscaler/utils/drain/drain.go`,
/// `PodSafeToEvictKey`, and `cluster-autoscaler/simulator/drainability/rules/notsafetoevict/rule.go`).
pub const SAFE_TO_EVICT: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict";

/// The autoscalers that leave a pod on its node, because an annotation of the pod says so; in one byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeptFrom(u8);

impl KeptFrom {
    /// Whether Karpenter does not evict the pod (`karpenter.sh/do-not-disrupt: "true"`).
    pub const fn karpenter(self) -> bool {
        self.0 & 1 != 0
    }

    /// Whether the Cluster Autoscaler does not evict the pod (`cluster-autoscaler.kubernetes.io/safe-to-evict: "false"`).
    pub const fn cluster_autoscaler(self) -> bool {
        self.0 & 2 != 0
    }

    /// What the annotations keep the autoscalers from, in words, one text for each annotation.
    pub fn texts(self) -> impl Iterator<Item = &'static str> {
        let karpenter = "karpenter.sh/do-not-disrupt: Karpenter does not evict it";
        let autoscaler = "cluster-autoscaler.kubernetes.io/safe-to-evict is false: the Cluster Autoscaler does not remove its \
                          node";
        let texts = [(self.karpenter(), karpenter), (self.cluster_autoscaler(), autoscaler)];
        texts.into_iter().filter(|(is_kept, _)| *is_kept).map(|(_, text)| text)
    }

    /// Reads one of the two annotations. Other annotations change nothing.
    pub fn set(&mut self, annotation: &str, value: &str) {
        let (bit, is_kept) = match annotation {
            DO_NOT_DISRUPT => (1, value == "true"),
            SAFE_TO_EVICT => (2, value == "false"),
            _ => return,
        };
        if is_kept {
            self.0 |= bit;
        }
    }
}

impl<C> Encode<C> for KeptFrom {
    fn encode<W: Write>(
        &self,
        encoder: &mut Encoder<W>,
        _context: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        encoder.u8(self.0)?.ok()
    }
}

impl<'b, C> Decode<'b, C> for KeptFrom {
    fn decode(decoder: &mut Decoder<'b>, _context: &mut C) -> Result<Self, minicbor::decode::Error> {
        // Recordings of older releases have one flag, that of Karpenter.
        match decoder.datatype()? {
            Type::Bool => Ok(Self(u8::from(decoder.bool()?))),
            _ => decoder.u8().map(Self),
        }
    }
}

/// The reason of the condition DisruptionTarget that the eviction subresource sets (Kubernetes 1.37:
/// `addConditionAndDeletePod` in `pkg/registry/core/pod/storage/eviction.go`).
pub const BY_API: &str = "EvictionByEvictionAPI";

/// Numbers of failures of earlier pods with the same index of a Job. The Job controller writes these numbers into the
/// annotations of each pod that it creates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct IndexFailures {
    /// `batch.kubernetes.io/job-index-failure-count`: failures that count towards `backoffLimitPerIndex`.
    #[n(0)]
    pub counted: i32,
    /// `batch.kubernetes.io/job-index-ignored-failure-count`: failures that a `podFailurePolicy` ignores.
    #[n(1)]
    pub ignored: i32,
}

/// The finalizer of the Job controller.
pub const JOB_TRACKING: &str = "batch.kubernetes.io/job-tracking";

impl Pod {
    /// The sum of the requests of the pod's containers, as the scheduler counts it; `pods` is 1.
    pub fn requests(&self) -> Resources {
        let requests = &self.resources.requests;
        Resources { cpu_milli: requests.cpu_milli, memory_bytes: requests.memory_bytes, pods: 1 }
    }

    pub fn is_ready(&self) -> bool {
        self.ready.as_ref().is_some_and(|ready| ready.status == ConditionStatus::True)
    }

    /// Why the pod is not expected to become Ready: CrashLoopBackOff, ImagePullBackOff, an exit without a restart.
    pub fn trouble(&self) -> Option<&Name> {
        self.ending.as_ref()?.trouble.as_ref()
    }

    /// When a container of the pod was last started again, if the pod is not Ready.
    pub fn restarted(&self) -> Option<ClusterTime> {
        self.ending.as_ref()?.restarted
    }

    /// The failures of earlier pods with the same index of the Job; `None` if there are none.
    pub fn index_failures(&self) -> Option<IndexFailures> {
        self.ending.as_ref()?.index_failures
    }

    /// The readiness gates of the pod that are not met, as types of conditions.
    pub fn unmet_gates(&self) -> &[Name] {
        self.ending.as_ref().map_or(&[], |ending| &ending.unmet_gates)
    }

    /// Whether a finalizer can keep the pod's object after its containers have ended. The Job controller's own
    /// finalizer does not count, because the controller removes it at that time.
    pub fn is_held(&self) -> bool {
        self.holding_finalizers().next().is_some()
    }

    /// The finalizers that can keep the pod's object after its containers have ended.
    pub fn holding_finalizers(&self) -> impl Iterator<Item = &Name> {
        self.finalizers.iter().filter(|finalizer| ***finalizer != *JOB_TRACKING)
    }

    /// Whether the pod is neither being deleted nor finished.
    pub fn lives(&self) -> bool {
        self.termination.is_none() && !self.is_finished()
    }

    /// Whether the kubelet of the pod's node has not accepted the pod: it has not posted the pod's status.
    pub fn is_unaccepted(&self) -> bool {
        self.phase == Phase::Pending && self.started.is_none()
    }

    /// Whether the pod waits for a node.
    pub fn is_unscheduled(&self) -> bool {
        self.node.is_none() && self.lives()
    }

    /// The cause of the wait of a pod without a node, shortened from the message of its PodScheduled condition: `3
    /// Insufficient cpu, 21 had untolerated taint {dedicated: gpu}`. What nodes lack comes first, because these nodes
    /// are nearest to taking the pod.
    pub fn pending_cause(&self) -> String {
        let Some(unscheduled) = self.unscheduled.as_deref() else {
            return "the scheduler has not tried yet".into();
        };
        let message = unscheduled.message.as_str();
        let (_, cause) = message.split_once("nodes are available: ").unwrap_or(("", message));
        let end = ["preemption:", "Preemption:", "no new claims to deallocate"]
            .into_iter()
            .filter_map(|start| cause.find(start))
            .min()
            .unwrap_or(cause.len());
        let cause = cause[..end].trim().trim_end_matches(['.', ',']).replace("node(s) ", "");
        if cause.is_empty() { unscheduled.reason.to_string() } else { lacks_first(&cause) }
    }

    /// Whether two states of a pod are equal in all fields that kordon reads, except the version. This is so after a
    /// change of an annotation, for example.
    pub fn differs_only_in_version(&self, other: &Self) -> bool {
        *self == Self { version: self.version, ..other.clone() }
    }

    /// Whether two states of a pod differ only in its status, so that the pod still needs the same room on a node, and
    /// its removal still makes the same room.
    pub fn differs_only_in_status(&self, other: &Self) -> bool {
        let Self { version, phase, reason, unscheduled, ready, disruption_target, ending, .. } = self.clone();
        let as_ours =
            Self { version, phase, reason, unscheduled, ready, disruption_target, ending, ..other.clone() };
        *self == as_ours
            && self.is_finished() == other.is_finished()
            && self.is_being_preempted() == other.is_being_preempted()
    }

    /// Whether a drain moves the pod: it is neither the mirror pod of a static pod nor a pod of a DaemonSet.
    pub fn is_workload(&self) -> bool {
        !self.mirror && !self.is_of_daemon_set()
    }

    /// Whether resource claims are created for the pod from templates.
    pub fn gets_claims_from_templates(&self) -> bool {
        self.scheduling.device_claims.iter().any(|entry| entry.template.is_some())
    }

    /// Whether a DaemonSet controls the pod.
    pub fn is_of_daemon_set(&self) -> bool {
        let daemon_set = OwnerKind::Workload(WorkloadKind::DaemonSet);
        self.owner.as_ref().is_some_and(|owner| owner.kind == daemon_set)
    }

    /// Whether the Job controller still has to count the pod. It removes its finalizer from a pod that it has counted.
    pub fn is_tracked_by_job(&self) -> bool {
        self.finalizers.iter().any(|finalizer| **finalizer == *JOB_TRACKING)
    }

    /// Whether the pod is Succeeded or Failed.
    pub fn is_finished(&self) -> bool {
        matches!(self.phase, Phase::Succeeded | Phase::Failed)
    }

    /// Whether the pod is terminating because the scheduler preempts it (`PodTerminatingByPreemption`).
    pub fn is_being_preempted(&self) -> bool {
        let is_preempted = |reason: &Name| PREEMPTED.contains(&reason.as_str());
        self.termination.is_some() && self.disruption_target.as_ref().is_some_and(is_preempted)
    }

    /// Whether the pod is critical because of its priority (`kubelettypes.IsCriticalPodBasedOnPriority`).
    pub fn is_critical(&self) -> bool {
        self.priority >= CRITICAL_PRIORITY
    }
}

/// Reasons of the condition DisruptionTarget for a preemption by the scheduler. Releases 1.25 and 1.26 used
/// `PreemptionByKubeScheduler`.
pub const PREEMPTED: [&str; 2] = ["PreemptionByScheduler", "PreemptionByKubeScheduler"];

/// Lowest priority of a critical pod: that of `system-cluster-critical`.
pub(super) const CRITICAL_PRIORITY: i32 = 2_000_000_000;

impl TableObject for Pod {
    type Key = Key;
    fn key(&self) -> Key {
        self.key.clone()
    }
    fn version(&self) -> Version {
        self.version
    }
    fn share_parts(&mut self, predecessor: &Self) {
        share(&mut self.key.name, &predecessor.key.name);
        share(&mut self.labels, &predecessor.labels);
        share(&mut self.owner, &predecessor.owner);
        share(&mut self.tolerations, &predecessor.tolerations);
        share(&mut self.resources, &predecessor.resources);
        share(&mut self.scheduling, &predecessor.scheduling);
    }
}

fn share<T: Clone + PartialEq>(part: &mut T, of: &T) {
    if part == of {
        part.clone_from(of);
    }
}

/// A PodScheduled condition that is not True.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct PodUnscheduled {
    /// Reason of the condition: Unschedulable, SchedulingGated or SchedulerError.
    #[n(0)]
    pub reason: Name,
    /// The scheduler's message.
    #[n(1)]
    pub message: Name,
    #[n(2)]
    pub since: Option<ClusterTime>,
}

/// The Ready condition of a pod.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct PodReady {
    #[n(0)]
    pub status: ConditionStatus,
    #[n(1)]
    pub last_transition: Option<ClusterTime>,
}

impl From<&Condition> for PodReady {
    fn from(condition: &Condition) -> Self {
        Self { status: condition.status, last_transition: condition.last_transition }
    }
}

/// `status.phase`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(index_only)]
pub enum Phase {
    #[default]
    #[n(0)]
    Pending,
    #[n(1)]
    Running,
    #[n(2)]
    Succeeded,
    #[n(3)]
    Failed,
    #[n(4)]
    Unknown,
}

impl Phase {
    pub fn parse(text: &str) -> Self {
        match text {
            "" | "Pending" => Self::Pending,
            "Running" => Self::Running,
            "Succeeded" => Self::Succeeded,
            "Failed" => Self::Failed,
            _ => Self::Unknown,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Unknown => "Unknown",
        }
    }
}

/// A deletion that has started.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct Termination {
    /// `metadata.deletionTimestamp`: when the grace period ends.
    #[n(0)]
    pub deadline: ClusterTime,
    /// `metadata.deletionGracePeriodSeconds`.
    #[n(1)]
    pub grace: Span,
}

/// Details of a pod that most pods do not have: why it ended or is about to end, which containers the kernel killed for
/// memory, how often its predecessors failed, and which readiness gates keep it from being Ready.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct PodEnding {
    /// `status.message`, shortened.
    #[n(0)]
    pub message: Name,
    /// When the DisruptionTarget condition became True.
    #[n(1)]
    pub disrupted: Option<ClusterTime>,
    /// Exits of the pod's containers: all exits of a finished pod, otherwise only of containers that were killed for
    /// memory.
    #[n(2)]
    pub exits: Box<[ContainerExit]>,
    /// Why the containers of a pod that is not Ready are not expected to run for long, such as CrashLoopBackOff; none
    /// for other pods.
    #[n(3)]
    pub trouble: Option<Name>,
    /// The failures of the pod's predecessors, in a Job that limits the failures of each index; none if there are none.
    #[n(4)]
    pub index_failures: Option<IndexFailures>,
    /// The types of the conditions in `spec.readinessGates` that are not True, of a pod that has not finished.
    #[cbor(n(5), default)]
    pub unmet_gates: Box<[Name]>,
    /// When a container of a pod that is not Ready was last started again; `None` if none was.
    #[n(6)]
    pub restarted: Option<ClusterTime>,
}

/// How a container ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct ContainerExit {
    #[n(0)]
    pub container: Name,
    /// Reason why the container ended, such as Completed, Error or OOMKilled.
    #[n(1)]
    pub reason: Name,
    /// Exit code of the container; 137 is SIGKILL.
    #[n(2)]
    pub code: i32,
    #[n(3)]
    pub at: Option<ClusterTime>,
    /// Whether the container was restarted or is about to be: the exit is in `lastState`, not in `state`.
    #[n(4)]
    pub restarted: bool,
}

impl ContainerExit {
    /// Whether the kernel killed the container for lack of memory.
    pub fn is_oom_kill(&self) -> bool {
        self.reason == *"OOMKilled"
    }
}

/// A kind of volume whose data stays on the node or is deleted with the pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalVolume {
    /// An `emptyDir` on the node's disk.
    EmptyDir,
    /// An `emptyDir` with medium Memory.
    Memory,
    HostPath,
    /// A generic ephemeral volume: its claim is deleted with the pod.
    Ephemeral,
}

impl LocalVolume {
    /// All kinds of local volumes, in the order of the encoding. New kinds are appended.
    const ALL: [Self; 4] = [Self::EmptyDir, Self::Memory, Self::HostPath, Self::Ephemeral];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::EmptyDir => "emptyDir",
            Self::Memory => "emptyDir in memory",
            Self::HostPath => "hostPath",
            Self::Ephemeral => "ephemeral volume",
        }
    }
}

/// Which kinds of local volumes a pod has, in one byte.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct LocalStorage(u8);

impl LocalStorage {
    pub const fn has(self, kind: LocalVolume) -> bool {
        self.0 & 1 << kind as u8 != 0
    }

    pub const fn add(&mut self, kind: LocalVolume) {
        self.0 |= 1 << kind as u8;
    }

    pub fn kinds(self) -> impl Iterator<Item = LocalVolume> {
        LocalVolume::ALL.into_iter().filter(move |kind| self.has(*kind))
    }
}

impl fmt::Debug for LocalStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.kinds()).finish()
    }
}

impl FromIterator<LocalVolume> for LocalStorage {
    fn from_iter<I: IntoIterator<Item = LocalVolume>>(kinds: I) -> Self {
        let mut storage = Self::default();
        kinds.into_iter().for_each(|kind| storage.add(kind));
        storage
    }
}

impl<C> Encode<C> for LocalStorage {
    fn encode<W: Write>(
        &self,
        encoder: &mut Encoder<W>,
        context: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        LocalVolume::ALL.map(|kind| self.has(kind)).encode(encoder, context)
    }
}

impl<'b, C> Decode<'b, C> for LocalStorage {
    fn decode(decoder: &mut Decoder<'b>, _context: &mut C) -> Result<Self, minicbor::decode::Error> {
        let mut storage = Self::default();
        for (place, has) in decoder.array_iter::<bool>()?.enumerate() {
            if has? && let Some(kind) = LocalVolume::ALL.get(place) {
                storage.add(*kind);
            }
        }
        Ok(storage)
    }
}

/// Moves the reasons of nodes that lack a resource before the other reasons. Each reason begins with a number of nodes.
fn lacks_first(cause: &str) -> String {
    let mut reasons: Vec<String> = Vec::new();
    for part in cause.split(", ") {
        match reasons.last_mut() {
            Some(last) if !part.starts_with(|letter: char| letter.is_ascii_digit()) => {
                last.push_str(", ");
                last.push_str(part);
            }
            Some(_) | None => reasons.push(part.to_owned()),
        }
    }
    reasons.sort_by_key(|reason| !reason.to_lowercase().contains("insufficient"));
    reasons.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_of_a_wait_is_what_the_scheduler_says_of_the_nodes() {
        let cause = |message: &str| {
            let unscheduled =
                PodUnscheduled { message: message.into(), reason: "Unschedulable".into(), since: None };
            Pod { unscheduled: Some(Arc::new(unscheduled)), ..Pod::default() }.pending_cause()
        };
        assert_eq!(
            cause(
                "0/24 nodes are available: 3 Insufficient cpu, 21 node(s) had untolerated taint {dedicated: gpu}. \
                 preemption: 0/24 nodes are available: 24 Preemption is not helpful for scheduling."
            ),
            "3 Insufficient cpu, 21 had untolerated taint {dedicated: gpu}"
        );
        assert_eq!(
            cause(
                "0/3 nodes are available: 3 node(s) didn't match pod affinity rules. no new claims to deallocate, "
            ),
            "3 didn't match pod affinity rules"
        );
        assert_eq!(
            cause(
                "0/24 nodes are available: 18 node(s) didn't match Pod's node affinity/selector, 3 Insufficient cpu, 3 \
                 node(s) had untolerated taint {a: b}, {c: d}."
            ),
            "3 Insufficient cpu, 18 didn't match Pod's node affinity/selector, 3 had untolerated taint {a: b}, {c: d}"
        );
        assert_eq!(
            cause("Scheduling is blocked due to non-empty scheduling gates"),
            "Scheduling is blocked due to non-empty scheduling gates"
        );
        assert_eq!(cause(""), "Unschedulable");
        assert_eq!(Pod::default().pending_cause(), "the scheduler has not tried yet");
    }
}
