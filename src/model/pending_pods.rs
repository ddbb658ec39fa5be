//! The pods that wait for a node: why, since when, and what would help, worked out beside the loop
//! ([`Model::next_pending_job`], [`PendingJob::work`]) by the scheduler's own filters.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use super::Model;
use kordon_core::{
    cluster::{Cluster, Gaps, Key, Name, NodeName, Pod},
    engine::ServerVersion,
    placement::{ClusterSnapshot, Preemption, SchedulingOutcome, SchedulingRequest, Snapshot},
    plan::placement_trace,
};
use kordon_time::{Span, Timestamp};

/// What would help the pods that wait for a node, at a moment.
#[derive(Clone, Debug)]
pub struct PendingPods {
    /// How many changes there had been that placements may differ by.
    changes: u64,
    by_pod: BTreeMap<Key, PendingAdvice>,
    /// Why most of those wait that no node takes; none if some node takes each.
    most_common_cause: Option<Name>,
}

/// What would help a pod that waits for a node.
#[derive(Clone, Debug, PartialEq)]
pub enum PendingAdvice {
    /// A node takes it as things are: the scheduler has not tried again.
    Fits { node: NodeName },
    /// It takes the place of pods of lower priority.
    Preempts { node: NodeName, pods: usize },
    /// No node takes it.
    Unschedulable {
        /// In a few words: `no node has 4 CPU free`.
        cause: Name,
        /// The most helpful first.
        help: Vec<String>,
    },
    /// The default scheduler does not try to place it.
    NotTried { why: Name },
    /// There are too many pods to work it out for each.
    LeftOut,
}

/// The pods that wait for a node, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PendingSummary {
    /// Those that the scheduler could not place, or has not tried for a while.
    pub pods: usize,
    /// Since when the first of them waits.
    pub since: Option<Timestamp>,
}

/// A pod that the scheduler has not tried for this long is Pending: it usually tries within a second.
const NOT_TRIED: Span = Span::from_secs(30);

/// The reason of a pod that the scheduler may not try: somebody holds it back on purpose.
const GATED: &str = "SchedulingGated";

impl PendingSummary {
    pub fn new(cluster: &Cluster, now: Timestamp) -> Self {
        let is_pending = |pod: &&Arc<Pod>| match &pod.unscheduled {
            Some(unscheduled) => unscheduled.reason != *GATED,
            None => now.since(pending_since(cluster, pod)) > NOT_TRIED,
        };
        let mut summary = Self::default();
        for pod in cluster.unscheduled_pods().filter(is_pending) {
            let since = pending_since(cluster, pod);
            summary.pods += 1;
            summary.since = Some(summary.since.map_or(since, |first| first.min(since)));
        }
        summary
    }
}

/// Copies of everything that the advice is worked out from.
#[derive(Debug)]
pub struct PendingJob {
    cluster: Cluster,
    version: ServerVersion,
    changes: u64,
}

/// The most looks at nodes that the advice may take: different pods times nodes, and what may be lifted for each.
const MAX_LOOKS: usize = 10_000_000;
/// How often all nodes are looked at for one pod.
const LOOKS_PER_POD: usize = 14;

impl PendingAdvice {
    /// A stable word for it.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Fits { .. } => "fits",
            Self::Preempts { .. } => "preempts",
            Self::Unschedulable { .. } => "unschedulable",
            Self::NotTried { .. } => "notTried",
            Self::LeftOut => "leftOut",
        }
    }

    /// What would help first, in a few words; none if that is not known.
    pub fn first(&self) -> Option<String> {
        match self {
            Self::Fits { node } => Some(format!("fits {node} now: wait for the scheduler")),
            Self::Preempts { node, pods } => {
                let pods = if *pods == 1 { "1 pod".to_owned() } else { format!("{pods} pods") };
                Some(format!("preempts {pods} on {node}: wait for the scheduler"))
            }
            Self::Unschedulable { help, .. } => help.first().cloned(),
            Self::NotTried { why } => Some(why.to_string()),
            Self::LeftOut => Some("not worked out: too many pods".into()),
        }
    }

    /// Everything that would help, one line each.
    pub fn lines(&self) -> Vec<String> {
        match self {
            Self::Unschedulable { help, .. } => help.clone(),
            _ => self.first().into_iter().collect(),
        }
    }
}

/// Since when a pod waits for a node: since the scheduler has said so, or since it was created.
pub fn pending_since(cluster: &Cluster, pod: &Pod) -> Timestamp {
    let said = pod.unscheduled.as_ref().and_then(|unscheduled| unscheduled.since);
    cluster.local(said.unwrap_or(pod.created))
}

/// Why a pod waits for a node, as the scheduler says in its PodScheduled condition, shortened to the cause:
/// `3 Insufficient cpu, 21 had untolerated taint {dedicated: gpu}`.
pub fn pending_cause(pod: &Pod) -> String {
    let Some(unscheduled) = pod.unscheduled.as_deref() else {
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
    if cause.is_empty() { unscheduled.reason.to_string() } else { cause }
}

impl Model {
    /// The pods that wait for a node, those that have waited longest first.
    pub fn pending_pods(&self) -> Vec<&Arc<Pod>> {
        let mut pods: Vec<&Arc<Pod>> = self.cluster.unscheduled_pods().collect();
        pods.sort_by_cached_key(|pod| (pending_since(&self.cluster, pod), pod.key.clone()));
        pods
    }

    /// What would help a pod that waits for a node; none while it is worked out.
    pub fn pending_advice(&self, pod: &Key) -> Option<&PendingAdvice> {
        self.pending.as_ref()?.by_pod.get(pod)
    }

    /// Why most of the pods that no node takes wait: `no node has 4 CPU free`. None while that is worked out.
    pub fn most_common_pending_cause(&self) -> Option<&Name> {
        self.pending.as_ref()?.most_common_cause.as_ref()
    }

    /// What is missing of what the advice rests on.
    pub fn pending_gaps(&self) -> Gaps {
        self.headroom_gaps()
    }

    /// The next advice to work out; none while it is known, no pod waits, or nodes or pods are not known.
    pub fn next_pending_job(&self) -> Option<PendingJob> {
        if self.cluster.unscheduled_count() == 0 || !self.headroom_gaps().is_empty() {
            return None;
        }
        let changes = self.placement_changes;
        if self.pending.as_ref().is_some_and(|pending| pending.changes == changes) {
            return None;
        }
        Some(PendingJob { cluster: self.cluster.clone(), version: self.settings.version, changes })
    }

    /// Works out at once what would help, where that is not known.
    pub fn run_pending(&mut self) {
        if let Some(job) = self.next_pending_job() {
            self.set_pending(job.work(None));
        }
    }

    /// Takes new advice, and returns what was there before.
    pub fn set_pending(&mut self, pending: PendingPods) -> Option<Arc<PendingPods>> {
        self.results += 1;
        self.pending.replace(Arc::new(pending))
    }
}

impl PendingJob {
    /// Works it out. The snapshot of an earlier state, if there is one, saves much of the time and the memory.
    pub fn work(self, earlier: Option<ClusterSnapshot>) -> PendingPods {
        let Self { cluster, version, changes } = self;
        let ClusterSnapshot { cluster, mut snapshot } = ClusterSnapshot::new(cluster, version, earlier);
        let most = (MAX_LOOKS / LOOKS_PER_POD / cluster.nodes().len().max(1)).max(1);
        let mut pods: Vec<&Arc<Pod>> = cluster.unscheduled_pods().collect();
        pods.sort_by_key(|pod| (Reverse(pod.priority), pod.created));
        // Pods of one workload mostly differ in their names only.
        let mut known: Vec<(SchedulingRequest, PendingAdvice)> = Vec::new();
        let mut by_pod = BTreeMap::new();
        for pod in pods {
            let request = SchedulingRequest::of(pod, &cluster);
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

fn most_common_cause<'a>(advice: impl Iterator<Item = &'a PendingAdvice>) -> Option<Name> {
    let mut causes: BTreeMap<&Name, usize> = BTreeMap::new();
    for advice in advice {
        if let PendingAdvice::Unschedulable { cause, .. } = advice {
            *causes.entry(cause).or_default() += 1;
        }
    }
    causes.into_iter().max_by_key(|(_, pods)| *pods).map(|(cause, _)| cause.clone())
}

fn advice(snapshot: &mut Snapshot, request: &SchedulingRequest) -> PendingAdvice {
    match snapshot.place(request) {
        SchedulingOutcome::Placed(placement) => PendingAdvice::Fits { node: placement.choice().clone() },
        SchedulingOutcome::NotTried(obstacle) => PendingAdvice::NotTried { why: obstacle.to_string().into() },
        SchedulingOutcome::Unschedulable(refused) => match refused.preemption {
            Preemption::Possible(candidate) => {
                PendingAdvice::Preempts { node: candidate.node.clone(), pods: candidate.victims.len() }
            }
            Preemption::NotAllowed | Preemption::Waits { .. } | Preemption::Impossible { .. } => {
                PendingAdvice::Unschedulable {
                    cause: placement_trace::cause(&refused.reasons, &request.resources.requests),
                    help: snapshot.help(request, &|_| false).advice(),
                }
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kordon_core::cluster::PodUnscheduled;

    #[test]
    fn the_cause_is_what_the_scheduler_says_of_the_nodes() {
        let cause = |message: &str| {
            let unscheduled =
                PodUnscheduled { message: message.into(), reason: "Unschedulable".into(), since: None };
            pending_cause(&Pod { unscheduled: Some(Arc::new(unscheduled)), ..Pod::default() })
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
            cause("Scheduling is blocked due to non-empty scheduling gates"),
            "Scheduling is blocked due to non-empty scheduling gates"
        );
        assert_eq!(cause(""), "Unschedulable");
        assert_eq!(pending_cause(&Pod::default()), "the scheduler has not tried yet");
    }
}
