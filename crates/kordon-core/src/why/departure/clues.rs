//! Clues for each kind of departure, by source, and how they are weighed.

use std::{cmp::Reverse, sync::Arc};

use super::{
    BY_COLLECTOR, BY_KUBELET,
    DepartureCertainty::{self, Certain, Likely, Possible},
    DepartureEvidence, DepartureKind, EvidenceSource, PodDeparture, PodPresence,
};
use crate::{
    cluster::{
        Cluster, ClusterEvent, ContainerExit, FeedKind, Key, Name, Node, OUT_OF_SERVICE, OwnerKind,
        PREEMPTED, Phase, Pod, Taint, Workload, WorkloadKind, WorkloadStage, pod::BY_API,
    },
    engine::{DELETION_BY_DEVICE_TAINT, DELETION_BY_TAINT, Tolerance, no_execute, tolerance},
    plan::owner::{self, OwnerLookup},
};
use kordon_time::{ClusterTime, Span};

/// Maximum age of the condition DisruptionTarget at the start of the deletion that it announces. The disruption
/// controller removes the condition if no deletion follows within two minutes.
const ANNOUNCED: Span = Span::from_secs(120);

/// Maximum delay of a deletion by taint after the toleration has ended. The delay allows for times in whole seconds and
/// for a busy controller.
const DELAY: Span = Span::from_secs(15);

/// A piece of evidence for one kind of departure.
#[derive(Clone, Debug)]
struct Clue {
    kind: DepartureKind,
    certainty: DepartureCertainty,
    source: EvidenceSource,
    text: String,
}

/// All clues about a pod.
#[derive(Debug, Default)]
pub(super) struct Clues(Vec<Clue>);

impl Clues {
    pub(super) fn new(pod: &Pod, presence: PodPresence, cluster: &Cluster, events: &[ClusterEvent]) -> Self {
        let mut clues = Self::default();
        let node = pod.node.as_ref().and_then(|name| cluster.node(name));
        let node = node.map(|node| &**node);
        clues.read_status(pod);
        clues.read_events(&pod.key, events);
        if finished_first(pod, cluster) {
            clues.read_containers(pod);
            if is_by(pod, BY_KUBELET) {
                clues.read_condition(pod, node);
            }
            return clues;
        }
        clues.read_condition(pod, node);
        clues.read_node(pod, presence, cluster, node);
        clues.read_owner(pod, cluster);
        clues.read_drain(pod, cluster, node);
        clues.add_deletion(pod, presence, cluster);
        clues
    }

    pub(super) fn from_events(pod: &Key, events: &[ClusterEvent]) -> Self {
        let mut clues = Self::default();
        clues.read_events(pod, events);
        clues
    }

    /// Returns the best supported kind of departure: the kind of the most certain clue or, among equally certain clues,
    /// of the one with the strongest source. The certainty of the result is lowered if a clue for another kind is at
    /// least `Likely`, and is as certain as the best clue or stated by a component.
    pub(super) fn weigh(mut self) -> Option<PodDeparture> {
        self.0.sort_by_key(|clue| (Reverse(clue.certainty), clue.source));
        let best = self.0.first()?.clone();
        let (agreeing, others): (Vec<Clue>, Vec<Clue>) =
            self.0.into_iter().partition(|clue| clue.kind == best.kind);
        let contradicting: Vec<Clue> = others.into_iter().filter(|clue| clue.contradicts(&best)).collect();
        let certainty = if contradicting.is_empty() { best.certainty } else { best.certainty.lowered() };
        let evidence = |agrees| move |Clue { source, text, .. }| DepartureEvidence { source, agrees, text };
        let evidence = agreeing
            .into_iter()
            .map(evidence(true))
            .chain(contradicting.into_iter().map(evidence(false)))
            .collect();
        Some(PodDeparture { kind: best.kind, certainty, evidence })
    }

    fn add(
        &mut self,
        kind: DepartureKind,
        certainty: DepartureCertainty,
        source: EvidenceSource,
        text: impl Into<String>,
    ) {
        self.0.push(Clue { kind, certainty, source, text: text.into() });
    }

    /// Reads the condition DisruptionTarget, which is set before the pod is deleted.
    fn read_condition(&mut self, pod: &Pod, node: Option<&Node>) {
        let Some(reason) = pod.disruption_target.as_deref() else { return };
        let (kind, mut certainty) = match reason {
            BY_API => (DepartureKind::ApiEviction, Certain),
            // On a node that is out of service, a taint starts the deletion of the pod, and pod garbage collection
            // finishes it by force. `TaintEviction` is rated only `Possible`, so that `OutOfService` is the result.
            DELETION_BY_TAINT if node.is_some_and(|node| is_out_of_service(pod, node)) => {
                (DepartureKind::TaintEviction, Possible)
            }
            DELETION_BY_TAINT => (DepartureKind::TaintEviction, Certain),
            DELETION_BY_DEVICE_TAINT => (DepartureKind::DeviceTaintEviction, Certain),
            BY_COLLECTOR => (DepartureKind::GarbageCollection, Certain),
            BY_KUBELET => match of_status(pod) {
                Some((kind, _)) => (kind, Certain),
                // If the pod's status states no kind of departure, node pressure is rated only `Likely`. A kubelet also
                // sets `TerminationByKubelet` before a shutdown and to make room for a critical pod, but in these cases
                // the status states the kind.
                None => (DepartureKind::NodePressure, Likely),
            },
            reason if PREEMPTED.contains(&reason) => (DepartureKind::Preemption, Certain),
            _ => (DepartureKind::Deletion, Possible),
        };
        let mut text = format!("condition DisruptionTarget: {reason}");
        let disrupted = pod.ending.as_ref().and_then(|ending| ending.disrupted);
        if let Some((disrupted, began)) = disrupted.zip(deletion_began(pod))
            && began.since(disrupted) > ANNOUNCED
        {
            certainty = certainty.lowered();
            text += &format!(", set {} before the deletion", began.since(disrupted));
        }
        self.add(kind, certainty, EvidenceSource::Condition, text);
    }

    /// Reads the kubelet's `status.reason` and `status.message`.
    fn read_status(&mut self, pod: &Pod) {
        let Some((kind, certainty)) = of_status(pod) else { return };
        let message = pod.ending.as_ref().map_or("", |ending| &*ending.message);
        let text = match (&*pod.reason, message) {
            ("", message) => format!("status: {message}"),
            (reason, "") => format!("status {reason}"),
            (reason, message) => format!("status {reason}: {message}"),
        };
        self.add(kind, certainty, EvidenceSource::Status, text.trim_end());
    }

    /// Reads the container exits of a pod that finished before it was deleted.
    fn read_containers(&mut self, pod: &Pod) {
        let source = EvidenceSource::Container;
        if pod.phase == Phase::Succeeded {
            let job = OwnerKind::Workload(WorkloadKind::Job);
            let (kind, of) = match pod.owner.as_ref().filter(|owner| owner.kind == job) {
                Some(job) => (DepartureKind::JobCompletion, format!(", pod of Job {}", job.name)),
                None => (DepartureKind::Completion, String::new()),
            };
            return self.add(
                kind,
                Certain,
                source,
                format!("phase Succeeded: all containers ended with 0{of}"),
            );
        }
        let is_stated = of_status(pod).is_some();
        let failed: Vec<&ContainerExit> = exits(pod).filter(|exit| exit.code != 0).collect();
        let killed: Vec<&ContainerExit> = failed.iter().copied().filter(|exit| exit.is_oom_kill()).collect();
        let (kind, decisive) = if killed.is_empty() {
            (DepartureKind::Failure, failed)
        } else {
            (DepartureKind::OomKill, killed)
        };
        for exit in &decisive {
            // Exit code 137 means SIGKILL. Anybody may have sent this signal, so the code does not prove a failure.
            let is_clear = kind == DepartureKind::OomKill || exit.code != 137;
            let certainty = if is_clear && !is_stated { Certain } else { Possible };
            let text =
                format!("container {} ended with {}, exit code {}", exit.container, exit.reason, exit.code);
            self.add(kind, certainty, source, text);
        }
        if !is_stated && decisive.is_empty() {
            self.add(DepartureKind::Failure, Possible, source, "phase Failed, and no container says why");
        }
    }

    /// Reads the Events about the pod, and the Events about its owner that name the pod.
    fn read_events(&mut self, pod: &Key, events: &[ClusterEvent]) {
        for event in events {
            let Some((kind, certainty)) = of_event(pod, event) else { continue };
            let message = event.message.trim_end();
            let text = format!("Event {} from {}: {message}", event.reason, event.source);
            self.add(kind, certainty, EvidenceSource::Event, text);
        }
    }

    /// Reads the node: whether it no longer exists, is out of service, or has a taint that the pod does not tolerate or
    /// no longer tolerates.
    fn read_node(&mut self, pod: &Pod, presence: PodPresence, cluster: &Cluster, node: Option<&Node>) {
        let (Some(name), source) = (&pod.node, EvidenceSource::Node) else { return };
        let Some(node) = node else {
            if cluster.nodes().is_synced() {
                let certainty = if presence == PodPresence::Present { Possible } else { Likely };
                let text = format!("node {name} no longer exists");
                self.add(DepartureKind::GarbageCollection, certainty, source, text);
            }
            return;
        };
        if is_out_of_service(pod, node) {
            // A kubelet that does not respond cannot set the phase Failed, so pod garbage collection has set it.
            let certainty = if pod.phase == Phase::Failed { Certain } else { Likely };
            let text = format!("node {name} is not Ready and has the taint {OUT_OF_SERVICE}");
            self.add(DepartureKind::OutOfService, certainty, source, text);
        }
        let mut taints = no_execute(node);
        taints.retain(|taint| may_have_deleted(taint, pod));
        let (certainty, text) = match tolerance(&pod.tolerations, &taints) {
            _ if taints.is_empty() => return,
            Tolerance::Forever => return,
            Tolerance::NotTolerated(taint) => {
                (Likely, format!("node {name} has the taint {taint}, which the pod does not tolerate"))
            }
            Tolerance::For { span, taint } => {
                let ended = taint.time_added.map(|at| at + span);
                let late = ended.zip(deletion_began(pod)).map(|(ended, began)| began.since(ended));
                match late {
                    Some(late) if late.is_negative() && -late > DELAY => return,
                    Some(late) if late <= DELAY => {
                        (Likely, format!("its toleration of {taint} on node {name} ended after {span}"))
                    }
                    Some(_) | None => {
                        (Possible, format!("it tolerates {taint} of node {name} for {span} only"))
                    }
                }
            }
        };
        self.add(DepartureKind::TaintEviction, certainty, source, text);
    }

    /// Reads owner and namespace: whether one of them is being deleted, or the owner is gone, finished or has more pods
    /// than wanted.
    fn read_owner(&mut self, pod: &Pod, cluster: &Cluster) {
        let source = EvidenceSource::Owner;
        let namespace = &pod.key.namespace;
        if cluster.namespaces().get(namespace).is_some_and(|known| known.terminating) {
            let text = format!("namespace {namespace} is being deleted");
            self.add(DepartureKind::Deletion, Likely, source, text);
        }
        let Some(own) = &pod.owner else { return };
        let name = format!("{} {}", own.kind.as_str(), own.name);
        let workload = match owner::find(cluster, namespace, own) {
            OwnerLookup::Found(workload) => workload,
            OwnerLookup::Gone => {
                let text = format!("{name} no longer exists: the garbage collector deletes its pods");
                return self.add(DepartureKind::Deletion, Likely, source, text);
            }
            OwnerLookup::Unknown => return,
        };
        match workload.stage {
            WorkloadStage::Deleting => {
                let text = format!("{name} is being deleted, with its pods");
                self.add(DepartureKind::Deletion, Likely, source, text);
            }
            WorkloadStage::Finished => {
                self.add(DepartureKind::JobCompletion, Likely, source, format!("{name} is over"));
            }
            WorkloadStage::Active => {
                if let Some((wanted, had)) = surplus(pod, &workload, cluster) {
                    let rollout = match rolled_out_by(&workload, cluster) {
                        Some(deployment) => format!(", in a rollout of Deployment {deployment}"),
                        None => String::new(),
                    };
                    let text = format!("{name} wants {wanted} pods and still had {had}{rollout}");
                    self.add(DepartureKind::ScaleDown, Likely, source, text);
                } else if workload.kind == WorkloadKind::StatefulSet && owner::is_rolling_out(cluster, pod) {
                    let text = format!("{name} replaces its pods in a rollout");
                    self.add(DepartureKind::Deletion, Likely, source, text);
                }
            }
        }
    }

    /// Reads the drain of the node. With the condition DisruptionTarget, the drain evicted the pod. Without the
    /// condition, the drain may have deleted the pod.
    fn read_drain(&mut self, pod: &Pod, cluster: &Cluster, node: Option<&Node>) {
        let (Some(node), Some(began)) = (node, deletion_began(pod)) else { return };
        let kind = match pod.disruption_target.as_deref() {
            Some(BY_API) => DepartureKind::ApiEviction,
            Some(_) => return,
            None => DepartureKind::Deletion,
        };
        let claim = node.drain_claim.as_ref();
        if let Some(claim) = claim.filter(|claim| claim.is_fresh(cluster.local(began))) {
            let text =
                format!("node {} is drained by {} (operation {})", node.name, claim.by, claim.operation);
            self.add(kind, Likely, EvidenceSource::Drain, text);
        } else if node.unschedulable && kind == DepartureKind::ApiEviction {
            let by = node.cordon().map(|note| format!(" by {}", note.who())).unwrap_or_default();
            self.add(kind, Possible, EvidenceSource::Drain, format!("node {} is cordoned{by}", node.name));
        }
    }

    /// Adds the kind of departure that is always possible: somebody deleted the pod through the API.
    fn add_deletion(&mut self, pod: &Pod, presence: PodPresence, cluster: &Cluster) {
        let is_explained = !self.0.is_empty();
        let found = pod.owner.as_ref().map(|own| owner::find(cluster, &pod.key.namespace, own));
        let is_known = found != Some(OwnerLookup::Unknown);
        let is_observed = presence != PodPresence::Missed || pod.termination.is_some();
        let text = match presence {
            PodPresence::Missed if !is_observed => "missing when the watch of pods was back",
            PodPresence::Gone if pod.termination.is_none() => "removed without a grace period",
            PodPresence::Present | PodPresence::Gone | PodPresence::Missed => "deleted through the API",
        };
        let (certainty, text) = match (is_explained, is_known) {
            (false, true) if is_observed => (Likely, format!("{text}, and nothing else explains it")),
            (false, false) => (Possible, format!("{text}; its owner is not known")),
            (true | false, _) => (Possible, text.to_owned()),
        };
        self.add(DepartureKind::Deletion, certainty, EvidenceSource::Deletion, text);
    }
}

impl Clue {
    /// Whether this clue casts doubt on the kind of departure that the best clue suggests.
    fn contradicts(&self, best: &Self) -> bool {
        use DepartureKind::{GarbageCollection, OutOfService};
        // Garbage collection and out-of-service deletion only complete a departure that has another cause, so other
        // kinds do not contradict them.
        let ends_it = matches!(best.kind, GarbageCollection | OutOfService);
        let is_stated = match self.source {
            EvidenceSource::Condition | EvidenceSource::Status | EvidenceSource::Event => true,
            EvidenceSource::Container
            | EvidenceSource::Node
            | EvidenceSource::Owner
            | EvidenceSource::Drain
            | EvidenceSource::Deletion => false,
        };
        !ends_it && self.certainty >= Likely && (is_stated || self.certainty == best.certainty)
    }
}

/// When the deletion of a pod began.
pub(super) fn deletion_began(pod: &Pod) -> Option<ClusterTime> {
    pod.termination.as_ref().map(|termination| termination.deadline - termination.grace)
}

/// When the last container of a finished pod ended, by the API server's clock.
pub(super) fn finished_at(pod: &Pod, cluster: &Cluster) -> Option<ClusterTime> {
    exits(pod).filter_map(|exit| exit.at).max().map(|at| cluster.stated_by_kubelet(pod, at))
}

/// The exits of containers that were not restarted.
fn exits(pod: &Pod) -> impl Iterator<Item = &ContainerExit> {
    pod.ending.iter().flat_map(|ending| &ending.exits).filter(|exit| !exit.restarted)
}

/// Whether the pod finished before it was deleted. The phase alone does not show this: a deletion also ends containers,
/// and pod garbage collection sets the phase of pods that it removes.
fn finished_first(pod: &Pod, cluster: &Cluster) -> bool {
    let ended = || finished_at(pod, cluster);
    let ended_before = || ended().zip(deletion_began(pod)).is_some_and(|(end, began)| end < began);
    pod.is_finished() && !is_by(pod, BY_COLLECTOR) && (pod.termination.is_none() || ended_before())
}

fn is_by(pod: &Pod, reason: &str) -> bool {
    pod.disruption_target.as_deref() == Some(reason)
}

/// Whether the node was out of service when the pod's deletion began. A pod in the phase Failed has been removed by pod
/// garbage collection, whenever its node was tainted.
fn is_out_of_service(pod: &Pod, node: &Node) -> bool {
    let counts = |taint: &Taint| pod.phase == Phase::Failed || may_have_deleted(taint, pod);
    !node.is_ready() && node.taints.iter().any(|taint| taint.key == *OUT_OF_SERVICE && counts(taint))
}

/// Whether a taint of a node is old enough to be the cause of the pod's deletion.
fn may_have_deleted(taint: &Taint, pod: &Pod) -> bool {
    taint.time_added.zip(deletion_began(pod)).is_none_or(|(added, began)| added.since(began) <= DELAY)
}

/// The kind of departure that the kubelet states in `status.reason` and `status.message`; `None` if it states none.
fn of_status(pod: &Pod) -> Option<(DepartureKind, DepartureCertainty)> {
    let message = pod.ending.as_ref().map_or("", |ending| &*ending.message);
    if message.starts_with("Pod was rejected") || message.starts_with("The node had condition") {
        return Some((DepartureKind::Rejection, Certain));
    }
    Some(match &*pod.reason {
        "Evicted" if is_storage_limit(message) => (DepartureKind::StorageLimit, Certain),
        "Evicted" => (DepartureKind::NodePressure, Certain),
        "Preempting" => (DepartureKind::Preemption, Certain),
        "Terminated" | "NodeShutdown" | "Shutdown" => (DepartureKind::NodeShutdown, Certain),
        // Controllers without taint-based eviction set NodeLost on pods that they delete from an unreachable node.
        "NodeLost" => (DepartureKind::TaintEviction, Possible),
        "DeadlineExceeded" => (DepartureKind::Failure, Certain),
        "NodeAffinity"
        | "NodeName"
        | "NodePorts"
        | "NodeSelectorMismatching"
        | "TopologyAffinityError"
        | "UnexpectedAdmissionError" => (DepartureKind::Rejection, Certain),
        reason if reason.starts_with("OutOf") => (DepartureKind::Rejection, Certain),
        _ => return None,
    })
}

/// Whether the message says that a kubelet evicted the pod for its own storage usage
/// (docs/upstream/placement-and-pressure.md#6.6).
fn is_storage_limit(message: &str) -> bool {
    let limits = [
        "ephemeral local storage usage exceeds",
        "exceeded its local ephemeral storage limit",
        "EmptyDir volume",
    ];
    limits.iter().any(|limit| message.contains(limit))
}

/// The kind of departure that an Event shows; `None` for an Event that is not about the pod's departure.
fn of_event(pod: &Key, event: &ClusterEvent) -> Option<(DepartureKind, DepartureCertainty)> {
    let names_pod = || event.message.split([' ', '/']).any(|word| word == pod.name.as_str());
    Some(match (&*event.reason, &*event.source) {
        ("Preempted", _) => (DepartureKind::Preemption, Certain),
        ("Evicted", "kubelet") if is_storage_limit(&event.message) => (DepartureKind::StorageLimit, Certain),
        ("Evicted", "kubelet") => (DepartureKind::NodePressure, Certain),
        // Autoscalers and deschedulers record the reason Evicted for evictions through the Eviction API.
        ("Evicted", _) => (DepartureKind::ApiEviction, Likely),
        // A TaintManagerEviction Event has no uid of the pod, so it may be about an earlier pod of the same name.
        ("TaintManagerEviction", _) if event.message.starts_with("Marking for deletion") => {
            (DepartureKind::TaintEviction, Likely)
        }
        ("SuccessfulDelete", "replicaset-controller" | "replication-controller") if names_pod() => {
            (DepartureKind::ScaleDown, Certain)
        }
        ("SuccessfulDelete", "statefulset-controller" | "job-controller") if names_pod() => {
            (DepartureKind::ScaleDown, Likely)
        }
        ("SuccessfulDelete", _) if names_pod() => (DepartureKind::Deletion, Likely),
        _ => return None,
    })
}

/// The Deployment that is replacing the pods of this ReplicaSet with pods of another ReplicaSet; `None` if there is no
/// such Deployment.
fn rolled_out_by(workload: &Workload, cluster: &Cluster) -> Option<Name> {
    let deployment = workload.owner.as_ref().filter(|_| workload.kind == WorkloadKind::ReplicaSet)?;
    let mut siblings = cluster.workloads_in(WorkloadKind::ReplicaSet, &workload.key.namespace);
    let is_another = |other: &Arc<Workload>| {
        other.uid != workload.uid
            && other.replicas.is_some_and(|replicas| replicas > 0)
            && other.owner.as_ref().is_some_and(|owner| owner.uid == deployment.uid)
    };
    siblings.any(is_another).then(|| deployment.name.clone())
}

/// The number of pods that the owner wants, and the number of its pods before the deletion; `None` if the owner had no
/// more pods than it wants. Pods created after the deletion began are replacements and do not count.
fn surplus(pod: &Pod, workload: &Workload, cluster: &Cluster) -> Option<(i32, i32)> {
    let wanted = match workload.kind {
        WorkloadKind::ReplicaSet
        | WorkloadKind::ReplicationController
        | WorkloadKind::StatefulSet
        | WorkloadKind::Job => workload.replicas?,
        WorkloadKind::Deployment | WorkloadKind::DaemonSet => return None,
    };
    let own = pod.owner.as_ref()?;
    if !cluster.gaps([FeedKind::Pods]).is_empty() && !owner::knows_pods(cluster, &pod.key.namespace, own) {
        return None;
    }
    let began = deletion_began(pod);
    let counts = |other: &&Arc<Pod>| {
        other.uid != pod.uid
            && other.termination.is_none()
            && !other.is_finished()
            && began.is_none_or(|began| other.created < began)
    };
    let others = i32::try_from(cluster.pods_owned_by(&own.uid).filter(counts).count()).unwrap_or(i32::MAX);
    (others >= wanted).then(|| (wanted, others.saturating_add(1)))
}
