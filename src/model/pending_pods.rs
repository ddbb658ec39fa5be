//! Pods that wait for a node: the cause and time of each wait, and what would help. The advice is computed in the
//! background ([`Model::next_pending_job`], [`PendingJob::work`]) with the scheduler's own filters.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use super::Model;
use kordon_core::{
    cluster::{Cluster, Gaps, Key, Name, NodeName, Pod},
    engine::ServerVersion,
    placement::{ClusterSnapshot, Preemption, SchedulingOutcome, SchedulingRequest, Snapshot},
    plan::{placement_trace, words::counted},
};
use kordon_time::{Span, Timestamp};

/// Advice at a point in time for the pods that wait for a node.
#[derive(Clone, Debug)]
pub struct PendingPods {
    /// Number of changes of the cluster that may alter placements, at the time when the advice was computed.
    changes: u64,
    by_pod: BTreeMap<Key, PendingAdvice>,
    /// The most common cause among the pods that fit no node. If every pod fits a node, the most common cause among the
    /// pods that wait for their nominated nodes. `None` if there are no such pods.
    most_common_cause: Option<Name>,
}

/// Advice for a pod that waits for a node.
#[derive(Clone, Debug, PartialEq)]
pub enum PendingAdvice {
    /// The pod already fits this node, but the scheduler has not retried yet.
    Fits { node: NodeName },
    /// The pod fits the node after `pods` pods of lower priority are preempted.
    Preempts { node: NodeName, pods: usize },
    /// The pod is nominated for this node, where the pods that it preempts are terminating. It needs no help.
    Waits { node: NodeName, victims: Vec<Key> },
    /// The pod fits no node.
    Unschedulable {
        /// The cause in a few words: `no node has 4 CPU free`.
        cause: Name,
        /// Remedies, the most helpful first.
        help: Vec<String>,
        /// Cordoned nodes that would take the pod if they were uncordoned, sorted.
        takers: Vec<NodeName>,
    },
    /// The default scheduler does not try to place the pod.
    NotTried { why: Name },
    /// There are too many different pods, so no advice is computed for this pod.
    LeftOut,
}

/// Number of pods that wait for a node, and the start of the longest wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PendingSummary {
    /// Number of pods that the scheduler could not place, or has not tried for 30 s.
    pub pods: usize,
    /// Time at which the longest wait began; `None` if no pod waits.
    pub since: Option<Timestamp>,
}

/// Time after which a pod counts as Pending even if the scheduler has not tried it. The scheduler usually tries a pod
/// within a second.
const NOT_TRIED: Span = Span::from_secs(30);

/// PodScheduled reason of a pod with scheduling gates. Such a pod is held back on purpose, so it does not count as
/// Pending.
const GATED: &str = "SchedulingGated";

impl PendingSummary {
    pub fn new(cluster: &Cluster, now: Timestamp) -> Self {
        let mut summary = Self::default();
        for pod in Self::counted_pods(cluster, now) {
            let since = pending_since(cluster, pod);
            summary.pods += 1;
            summary.since = Some(summary.since.map_or(since, |first| first.min(since)));
        }
        summary
    }

    /// Returns the pods that count as Pending.
    pub fn counted_pods(cluster: &Cluster, now: Timestamp) -> impl Iterator<Item = &Arc<Pod>> {
        let is_pending = move |pod: &&Arc<Pod>| match &pod.unscheduled {
            Some(unscheduled) => unscheduled.reason != *GATED,
            None => now.since(pending_since(cluster, pod)) > NOT_TRIED,
        };
        cluster.unscheduled_pods().filter(is_pending)
    }
}

/// Copies of all inputs of the advice.
#[derive(Debug)]
pub struct PendingJob {
    cluster: Cluster,
    version: ServerVersion,
    changes: u64,
}

/// Maximum number of node checks for the advice. Each pod that differs from all others takes [`LOOKS_PER_POD`] checks
/// of every node, so only a limited number of different pods get advice.
const MAX_LOOKS: usize = 10_000_000;
/// Number of times that all nodes are checked for one pod, while constraints are lifted one after the other.
const LOOKS_PER_POD: usize = 14;

impl PendingAdvice {
    /// Stable word for the advice in machine-readable output.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Fits { .. } => "fits",
            Self::Preempts { .. } => "preempts",
            Self::Waits { .. } => "waits",
            Self::Unschedulable { .. } => "unschedulable",
            Self::NotTried { .. } => "notTried",
            Self::LeftOut => "leftOut",
        }
    }

    /// Returns the most helpful remedy in a few words; `None` if no remedy is known.
    pub fn first(&self) -> Option<String> {
        match self {
            Self::Fits { node } => Some(format!("fits {node} now: wait for the scheduler")),
            Self::Preempts { node, pods } => {
                let pods = counted(*pods, "pod", "pods");
                Some(format!("preempts {pods} on {node}: wait for the scheduler"))
            }
            Self::Waits { node, victims } => {
                Some(format!("nothing is needed: waits {}", until_gone(victims, node)))
            }
            Self::Unschedulable { help, .. } => help.first().cloned(),
            Self::NotTried { why } => Some(why.to_string()),
            Self::LeftOut => Some("not worked out: too many pods".into()),
        }
    }

    /// Returns all remedies, one on each line.
    pub fn lines(&self) -> Vec<String> {
        match self {
            Self::Unschedulable { help, .. } => help.clone(),
            _ => self.first().into_iter().collect(),
        }
    }
}

/// Returns the time at which the wait of a pod began: the time that the scheduler reported or, without it, the creation
/// of the pod.
pub fn pending_since(cluster: &Cluster, pod: &Pod) -> Timestamp {
    let said = pod.unscheduled.as_ref().and_then(|unscheduled| unscheduled.since);
    cluster.local(said.unwrap_or(pod.created))
}

impl Model {
    /// Returns the pods that wait for a node. The pod with the longest wait is first.
    pub fn pending_pods(&self) -> Vec<&Arc<Pod>> {
        let mut pods: Vec<&Arc<Pod>> = self.cluster.unscheduled_pods().collect();
        pods.sort_by_cached_key(|pod| (pending_since(&self.cluster, pod), pod.key.clone()));
        pods
    }

    /// Missing inputs of the advice for pods that wait for a node.
    pub fn pending_gaps(&self) -> Gaps {
        self.headroom_gaps()
    }

    /// Returns the next job that computes advice; `None` if the advice is up to date, no pod waits, or an input is
    /// missing.
    pub fn next_pending_job(&self) -> Option<PendingJob> {
        if self.cluster.unscheduled_count() == 0 || !self.headroom_gaps().is_empty() {
            return None;
        }
        let changes = self.changes.placements();
        if self.predictions.pending().is_some_and(|pending| pending.changes == changes) {
            return None;
        }
        Some(PendingJob { cluster: self.cluster.clone(), version: self.settings.version, changes })
    }

    /// Computes the advice at once, unless it is up to date. `earlier` is as for [`PendingJob::work`].
    pub fn run_pending(&mut self, earlier: Option<ClusterSnapshot>) {
        if let Some(job) = self.next_pending_job() {
            self.predictions.set_pending(job.work(earlier));
        }
    }
}

impl PendingPods {
    pub(super) fn advice(&self, pod: &Key) -> Option<&PendingAdvice> {
        self.by_pod.get(pod)
    }

    /// Returns the cordoned nodes that would take a Pending pod if they were uncordoned, sorted.
    pub(super) fn takers_if_uncordoned(&self, pod: &Key) -> &[NodeName] {
        match self.by_pod.get(pod) {
            Some(PendingAdvice::Unschedulable { takers, .. }) => takers,
            _ => &[],
        }
    }

    /// Whether some pod would land on a cordoned node if the node were uncordoned.
    pub(super) fn waits_for_uncordon(&self) -> bool {
        self.by_pod.keys().any(|pod| !self.takers_if_uncordoned(pod).is_empty())
    }

    /// Returns the pods that wait for their nominated nodes, each with the pods that are preempted for it.
    pub(super) fn waits_for(&self) -> impl Iterator<Item = (&Key, &[Key])> {
        self.by_pod.iter().filter_map(|(pod, advice)| match advice {
            PendingAdvice::Waits { victims, .. } => Some((pod, victims.as_slice())),
            _ => None,
        })
    }

    pub(super) const fn most_common_cause(&self) -> Option<&Name> {
        self.most_common_cause.as_ref()
    }
}

impl PendingJob {
    /// Computes the advice. A given snapshot of an `earlier` state saves much time and memory.
    pub fn work(self, earlier: Option<ClusterSnapshot>) -> PendingPods {
        let Self { cluster, version, changes } = self;
        let ClusterSnapshot { cluster, mut snapshot } = ClusterSnapshot::new(cluster, version, earlier);
        let most = (MAX_LOOKS / LOOKS_PER_POD / cluster.nodes().len().max(1)).max(1);
        let mut pods: Vec<&Arc<Pod>> = cluster.unscheduled_pods().collect();
        pods.sort_by_key(|pod| (Reverse(pod.priority), pod.created));
        // The advice is shared by equal pods, because most pods of a workload differ only in their names.
        let mut known: Vec<(SchedulingRequest, PendingAdvice)> = Vec::new();
        let mut by_pod = BTreeMap::new();
        for pod in pods {
            let request = SchedulingRequest::from_pod(pod, &cluster);
            let nameless = SchedulingRequest { name: Default::default(), ..request.clone() };
            let advice = match known.iter().find(|(other, _)| *other == nameless) {
                Some((_, advice)) => advice.clone(),
                None if known.len() >= most => PendingAdvice::LeftOut,
                None => {
                    let advice = advice(&mut snapshot, &request);
                    known.push((nameless, advice.clone()));
                    advice
                }
            };
            by_pod.insert(pod.key.clone(), advice);
        }
        PendingPods { changes, most_common_cause: most_common_cause(by_pod.values()), by_pod }
    }
}

/// Returns the text that says until when a pod waits for its nominated node: `until batch/old-1, preempted for it, is
/// gone from n-1`.
pub(super) fn until_gone(victims: &[Key], node: &NodeName) -> String {
    match victims {
        [victim] => format!("until {victim}, preempted for it, is gone from {node}"),
        several => format!("until {} pods, preempted for it, are gone from {node}", several.len()),
    }
}

fn most_common_cause<'a>(advice: impl Iterator<Item = &'a PendingAdvice>) -> Option<Name> {
    let mut causes: BTreeMap<(bool, Name), usize> = BTreeMap::new();
    for advice in advice {
        let (needs_help, cause) = match advice {
            PendingAdvice::Unschedulable { cause, .. } => (true, cause.clone()),
            PendingAdvice::Waits { node, .. } => {
                (false, format!("waits until preempted pods are gone from {node}").into())
            }
            PendingAdvice::Fits { .. }
            | PendingAdvice::Preempts { .. }
            | PendingAdvice::NotTried { .. }
            | PendingAdvice::LeftOut => continue,
        };
        *causes.entry((needs_help, cause)).or_default() += 1;
    }
    let most_common = causes.into_iter().max_by_key(|((needs_help, _), pods)| (*needs_help, *pods));
    most_common.map(|((_, cause), _)| cause)
}

fn advice(snapshot: &mut Snapshot, request: &SchedulingRequest) -> PendingAdvice {
    match snapshot.place(request) {
        SchedulingOutcome::Placed(placement) => PendingAdvice::Fits { node: placement.choice().clone() },
        SchedulingOutcome::NotTried(obstacle) => PendingAdvice::NotTried { why: obstacle.to_string().into() },
        SchedulingOutcome::Unschedulable(refused) => match refused.preemption {
            Preemption::Possible(candidate) => {
                PendingAdvice::Preempts { node: candidate.node.clone(), pods: candidate.victims.len() }
            }
            Preemption::Waits { node, victims } => PendingAdvice::Waits { node, victims },
            Preemption::NotAllowed | Preemption::Impossible { .. } => {
                let help = snapshot.help(request, &|_| false);
                let cause = match help.apart.is_empty() {
                    true => placement_trace::cause(&refused.reasons, &request.resources.requests),
                    false => "no node reaches all its volumes".into(),
                };
                let takers = snapshot.takers_if_uncordoned(request);
                PendingAdvice::Unschedulable { cause, help: help.advice(), takers }
            }
        },
    }
}
