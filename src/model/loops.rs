//! Workloads whose pods leave a node and come back to it, again and again: the node evicts or rejects the pods, and
//! their replacements can or must run on the same node.

use std::{collections::BTreeMap, fmt, sync::Arc};

use super::{DepartureEntry, DepartureId, Departures, Model};
use kordon_core::{
    cluster::{Cluster, ClusterEvent, Key, Namespace, Node, NodeName, Owner, Pod, Uid},
    engine::{ServerVersion, device_evictions, no_execute},
    plan::{
        LONGEST_DAEMON_SET_BACKOFF, OutcomeKind, PodOutcome, StuckReason, evicted_again_after, owner,
        per_hour, rate, recreated_after, rejected_again_after,
    },
    why::{Step, Tense, Topic, departure::DepartureKind},
};
use kordon_time::{Span, Timestamp};

/// Minimum number of consecutive pods in a loop. Each pod was created after the pod before it had left.
const ROUNDS: usize = 3;

/// Maximum average time between two departures of a loop.
const SLOWEST: Span = LONGEST_DAEMON_SET_BACKOFF;

/// A loop is over once no pod has left for at least this time and for three times the average time between its
/// departures.
const OVER_AFTER: Span = Span::from_secs(60);

const MINUTE: Span = Span::from_secs(60);

/// Times in the status of pods are full seconds.
const PRECISION: Span = Span::from_secs(1);

/// The loops among the departures of a session, including loops that are over. Clones share the loops.
#[derive(Clone, Debug, Default)]
pub struct DepartureLoops(Arc<[DepartureLoop]>);

/// Departures of a workload whose pods left a node and came back to it, or come back to it only to be rejected.
#[derive(Clone, Debug, PartialEq)]
struct DepartureLoop {
    node: NodeName,
    kind: DepartureKind,
    namespace: Namespace,
    owner: Arc<Owner>,
    /// The departures, the newest first. The newest one stands for all of them in lists.
    departures: Vec<DepartureId>,
    /// The pod of the newest departure.
    newest: Key,
    /// Average time between two departures; `None` if too few pods have left to tell. It is then a loop only while the
    /// kubelet rejects each new pod because of pressure.
    every: Option<Span>,
}

/// A loop that continues or is about to begin.
#[derive(Clone, Debug, PartialEq)]
pub struct EvictionLoop {
    /// The workload by which users know the pods: the Deployment instead of its ReplicaSet.
    pub workload: Key,
    pub node: NodeName,
    /// Why the node evicts or rejects the pods: `DiskPressure`, `taint maintenance`.
    pub cause: String,
    /// Pods that left in the last minute; 0 for a loop that has not begun.
    pub last_minute: usize,
    /// Approximate number of pods that leave in an hour; `None` if each leaves as soon as it has been bound.
    pub per_hour: Option<i64>,
}

impl EvictionLoop {
    /// Says where the pods come back: `pods of pinned are evicted from n-1 (DiskPressure) and come back`.
    pub fn subject(&self) -> String {
        let Self { workload, node, cause, .. } = self;
        format!("pods of {} are evicted from {node} ({cause}) and come back", workload.name)
    }

    /// Says how many pods leave: `30 in the last minute, about 18000 an hour`.
    pub fn rate(&self) -> String {
        let hour = rate(self.per_hour);
        match self.last_minute {
            0 => hour,
            pods => format!("{pods} in the last minute, {hour}"),
        }
    }
}

impl fmt::Display for EvictionLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject(), self.rate())
    }
}

impl DepartureLoops {
    /// Finds the loops among these departures.
    pub fn find(departures: &Departures, cluster: &Cluster) -> Self {
        let mut groups: BTreeMap<(&NodeName, &Uid), Vec<(DepartureId, &DepartureEntry)>> = BTreeMap::new();
        for (id, entry) in departures.newest().filter(|(_, entry)| can_repeat(entry.departure.kind)) {
            if let (Some(node), Some(owner)) = (&entry.node, &entry.owner) {
                groups.entry((node, &owner.uid)).or_default().push((id, entry));
            }
        }
        let new = |((node, _), group): ((&NodeName, _), Vec<_>)| DepartureLoop::new(node, &group, cluster);
        Self(groups.into_iter().filter_map(new).collect())
    }

    /// Returns the number of departures that a list shows in the row of this departure; `None` if this departure is
    /// shown in the row of a newer one.
    pub fn departures_in_row(&self, id: DepartureId) -> Option<usize> {
        let is_in = |found: &&DepartureLoop| {
            found.every.is_some() && found.departures.binary_search_by(|other| id.cmp(other)).is_ok()
        };
        match self.0.iter().find(is_in) {
            None => Some(1),
            Some(found) if found.departures.first() == Some(&id) => Some(found.departures.len()),
            Some(_) => None,
        }
    }

    /// Returns the loops that continue, and the loops that are about to begin with the evictions in `evicted`. `back`
    /// has the nodes that recover within the forecast ([`recovered`](kordon_core::forecast::Forecast::recovered)).
    pub fn going_on<'a>(
        &self,
        cluster: &Cluster,
        version: ServerVersion,
        evicted: impl Iterator<Item = (&'a Key, &'a PodOutcome)>,
        back: &BTreeMap<NodeName, Timestamp>,
        now: Timestamp,
    ) -> Vec<EvictionLoop> {
        let mut loops: Vec<EvictionLoop> =
            self.0.iter().filter_map(|found| found.shown(cluster, now)).collect();
        let expected = expected(cluster, version, evicted, back, now).filter(|new| {
            !loops.iter().any(|begun| (&begun.workload, &begun.node) == (&new.workload, &new.node))
        });
        let expected: Vec<EvictionLoop> = expected.collect();
        loops.extend(expected);
        loops
    }
}

impl DepartureLoop {
    /// Creates the loop of these departures of one workload from one node, the newest first. `None` if they can be no
    /// loop.
    fn new(node: &NodeName, group: &[(DepartureId, &DepartureEntry)], cluster: &Cluster) -> Option<Self> {
        let (_, newest) = *group.first()?;
        let every = Self::interval(group, cluster);
        if every.is_none()
            && !matches!(newest.departure.kind, DepartureKind::NodePressure | DepartureKind::Rejection)
        {
            return None;
        }
        Some(Self {
            node: node.clone(),
            kind: newest.departure.kind,
            namespace: newest.pod.namespace.clone(),
            owner: newest.owner.clone()?,
            departures: group.iter().map(|(id, _)| *id).collect(),
            newest: newest.pod.clone(),
            every,
        })
    }

    /// Returns the average time between two of these departures, the newest first; `None` if too few consecutive pods
    /// have left, or too slowly.
    fn interval(group: &[(DepartureId, &DepartureEntry)], cluster: &Cluster) -> Option<Span> {
        let ((last, _), (first, _)) = (*group.first()?, *group.last()?);
        let mut rounds = 1;
        let mut round_began = first.at();
        for (id, entry) in group.iter().rev().skip(1) {
            if cluster.local(entry.created) + PRECISION > round_began {
                (rounds, round_began) = (rounds + 1, id.at());
            }
        }
        let intervals = i64::try_from(group.len()).ok()? - 1;
        let every = Span::from_nanos(last.at().since(first.at()).as_nanos().checked_div(intervals)?);
        (rounds >= ROUNDS && every <= SLOWEST).then_some(every)
    }

    /// Returns the loop as it is shown; `None` if it is over, or if the departures are no loop.
    fn shown(&self, cluster: &Cluster, now: Timestamp) -> Option<EvictionLoop> {
        let age = now.since(self.departures.first()?.at());
        let every = match self.every {
            Some(every) => every,
            None => rejected_again_after(cluster, cluster.pod(&self.newest)?)?,
        };
        if age > OVER_AFTER.max(every * 3) {
            return None;
        }
        let workload = owner::workload_of(cluster, &self.namespace, &self.owner)?;
        let last_minute = self.departures.iter().take_while(|id| now.since(id.at()) <= MINUTE).count();
        Some(EvictionLoop {
            workload: workload.key.clone(),
            node: self.node.clone(),
            cause: cause(cluster, &self.node, self.kind),
            last_minute,
            per_hour: per_hour(1, every),
        })
    }
}

impl Model {
    /// Returns the loops that continue, and those that the scheduled evictions are about to begin.
    pub fn eviction_loops(&self, now: Timestamp) -> Vec<EvictionLoop> {
        let evicted = self.predictions.outcomes_by_pod().into_iter().flatten();
        let none = BTreeMap::new();
        let back = self.predictions.forecast().map_or(&none, |forecast| &forecast.recovered);
        self.views.loops.going_on(&self.cluster, self.settings.version, evicted, back, now)
    }

    /// Explains a node, as [`Explainer::node_with_events`](kordon_core::why::Explainer::node_with_events) does, with
    /// the loops of its pods. Returns no steps before the engine has started.
    pub fn explain_node(&self, node: &Node, events: &[ClusterEvent], now: Timestamp) -> Vec<Step> {
        let Some(explainer) = self.explainer(now) else { return Vec::new() };
        let mut steps = explainer.node_with_events(node, events);
        let loops = self.eviction_loops(now).into_iter().filter(|found| found.node == node.name);
        let of_loop = |found: EvictionLoop| Step {
            at: None,
            tense: Tense::Present,
            estimated: false,
            topic: Topic::Eviction,
            text: found.to_string(),
        };
        let after = steps.iter().position(|step| matches!(step.tense, Tense::Future | Tense::Never));
        let place = after.unwrap_or(steps.len());
        steps.splice(place..place, loops.map(of_loop));
        steps
    }
}

/// Returns the loops that are about to begin: replacements come back to the node that evicts them and are evicted
/// again, by a taint of the node or of a device. The taints of a failure do not evict pods from a node that is Ready
/// again. The toleration time of a device taint counts from the time of the taint. Once this time is over, each
/// replacement is therefore evicted at once (upstream `claimEvictionTime`).
fn expected<'a>(
    cluster: &Cluster,
    version: ServerVersion,
    evicted: impl Iterator<Item = (&'a Key, &'a PodOutcome)>,
    back: &BTreeMap<NodeName, Timestamp>,
    now: Timestamp,
) -> impl Iterator<Item = EvictionLoop> {
    let evicted: Vec<_> =
        evicted.filter_map(|(key, outcome)| Some((key, comes_back_to(cluster, key, outcome)?))).collect();
    let by_device = if evicted.is_empty() { Vec::new() } else { device_evictions(cluster, version) };
    let has_tainted_device = |pod: &Key| by_device.iter().any(|eviction| eviction.pod.key == *pod);
    let mut groups: BTreeMap<(Key, NodeName, DepartureKind), (usize, Span)> = BTreeMap::new();
    for (key, node) in evicted {
        let again = |pod: &Pod| match has_tainted_device(key) {
            true => Some((DepartureKind::DeviceTaintEviction, recreated_after(cluster, pod, now))),
            false => Some((DepartureKind::TaintEviction, evicted_again_after(cluster, pod, back, now)?)),
        };
        if let Some(pod) = cluster.pod(key)
            && let Some((kind, after)) = again(pod)
            && let Some(workload) = owner::workload(cluster, pod)
        {
            let group = (workload.key.clone(), node, kind);
            groups.entry(group).or_insert((0, after)).0 += 1;
        }
    }
    groups.into_iter().map(|((workload, node, kind), (pods, after))| EvictionLoop {
        workload,
        cause: cause(cluster, &node, kind),
        node,
        last_minute: 0,
        per_hour: per_hour(pods, after),
    })
}

/// Returns the node of an evicted pod if the pod's replacement is bound to this node again; otherwise `None`. If the
/// template names the node, the replacement is bound there even if it does not run.
fn comes_back_to(cluster: &Cluster, pod: &Key, outcome: &PodOutcome) -> Option<NodeName> {
    match outcome {
        PodOutcome::Pending { .. } | PodOutcome::Stuck(StuckReason::Rejected { .. }) => {
            let pod = cluster.pod(pod)?;
            owner::named_node(cluster, pod).filter(|node| pod.node.as_ref() == Some(node))
        }
        _ if outcome.kind() == OutcomeKind::SameNode => outcome.node().cloned(),
        _ => None,
    }
}

/// Whether the cause of a departure of this kind can also remove the replacement from the same node.
const fn can_repeat(kind: DepartureKind) -> bool {
    match kind {
        DepartureKind::NodePressure
        | DepartureKind::StorageLimit
        | DepartureKind::Rejection
        | DepartureKind::TaintEviction
        | DepartureKind::DeviceTaintEviction => true,
        DepartureKind::OomKill
        | DepartureKind::Preemption
        | DepartureKind::GarbageCollection
        | DepartureKind::OutOfService
        | DepartureKind::NodeShutdown
        | DepartureKind::Failure
        | DepartureKind::ApiEviction
        | DepartureKind::ScaleDown
        | DepartureKind::Deletion
        | DepartureKind::JobCompletion
        | DepartureKind::Completion => false,
    }
}

/// Returns why the node evicts or rejects pods, in a few words.
fn cause(cluster: &Cluster, node: &NodeName, kind: DepartureKind) -> String {
    let node = cluster.node(node);
    let of_node = match kind {
        DepartureKind::TaintEviction => node
            .and_then(|node| no_execute(node).into_iter().next())
            .map(|taint| format!("taint {}", taint.key)),
        DepartureKind::NodePressure | DepartureKind::Rejection => {
            node.and_then(|node| node.problems().next()).map(|condition| condition.kind.to_string())
        }
        _ => None,
    };
    of_node.unwrap_or_else(|| kind.title().to_owned())
}
