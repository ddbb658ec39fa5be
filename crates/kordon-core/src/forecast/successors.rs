//! Replacements of pods that a forecast deletes or that no longer run: where the replacements land, which pods wait,
//! and which are lost.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{Assumptions, Forecast, ForecastKind, IncidentKind};
use crate::{
    cluster::{Cluster, Key, Node, NodeName, Pod, ZoneKey},
    plan::{
        self, Departing, Environment, Failover, FailoverPod, JobConsequences, Landing, LeavingPod, LostNodes,
        OutcomeCounts, OutcomeKind, PodOutcome, Recreation, RunTrace, StuckReason, TerminatingPods,
        environment::has_running_kubelet,
        failover::{self, failover_of_first},
        forced_removal::{FORCED_DETACH, is_out_of_service, keeps_pods},
        outcome, quota_delay, succession_gaps,
    },
};
use kordon_time::Timestamp;

/// Outcomes of the pods of a forecast: pods that are deleted, and pods of lost nodes.
#[derive(Clone, Debug)]
pub struct Succession {
    /// The pods with their replacements: first the deleted pods, sorted by time, then the pods that are not deleted.
    pub successors: Vec<Successor>,
    pub trace: RunTrace,
}

/// Numbers of a forecast's pods by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SuccessionCounts {
    /// Outcomes of the pods whose deletion starts within the forecast.
    pub evicted: OutcomeCounts,
    /// Outcomes of the pods whose deletion started before the forecast: they stay on lost nodes, or are removed from
    /// them.
    pub terminating: OutcomeCounts,
    /// Outcomes of the pods that stay on lost nodes, because their deletion does not start within the forecast.
    pub left_behind: OutcomeCounts,
    /// Outcomes of the pods on other nodes that replacements preempt.
    pub preempted: OutcomeCounts,
}

impl SuccessionCounts {
    /// Outcomes of all pods that are deleted or on lost nodes.
    pub fn outcomes(&self) -> OutcomeCounts {
        self.evicted + self.terminating + self.left_behind
    }

    /// Number of pods with nowhere to run, preempted pods included.
    pub fn nowhere(&self) -> usize {
        self.outcomes().nowhere() + self.preempted.nowhere()
    }
}

impl Succession {
    pub fn counts(&self) -> SuccessionCounts {
        let mut counts = SuccessionCounts {
            preempted: failover::preempted(&self.trace)
                .map(|(_, victim)| OutcomeKind::for_preempted(victim))
                .collect(),
            ..SuccessionCounts::default()
        };
        for successor in &self.successors {
            let outcomes = match successor.evicted {
                _ if successor.is_terminating => &mut counts.terminating,
                Some(_) => &mut counts.evicted,
                None => &mut counts.left_behind,
            };
            outcomes.count(successor.outcome.kind());
        }
        counts
    }

    /// The successors by their old pods.
    pub fn by_pod(&self) -> BTreeMap<&Key, &Successor> {
        self.successors.iter().map(|successor| (&successor.of, successor)).collect()
    }

    /// The pods that appear in lists of replacements.
    pub fn replacements(&self) -> impl Iterator<Item = &Successor> {
        self.successors.iter().filter(|successor| successor.is_listed())
    }
}

/// The outcome of a pod, and its replacement.
#[derive(Clone, Debug, PartialEq)]
pub struct Successor {
    pub of: Key,
    /// The node of the old pod.
    pub from: NodeName,
    /// When the deletion of the old pod starts, or when its kubelet has ended it; `None` if neither happens within the
    /// forecast.
    pub evicted: Option<Timestamp>,
    /// Whether the deletion of the old pod started before the forecast.
    pub is_terminating: bool,
    pub outcome: PodOutcome,
    /// Where the replacement lands, even if it is created after the forecast; none without a replacement.
    pub landing: Option<Landing>,
    /// When the replacement is created; none if it is not created within the forecast.
    pub created: Option<Timestamp>,
    /// When the replacement is Ready; none if that time is unknown or the replacement is not created within the
    /// forecast.
    pub ready: Option<Timestamp>,
}

impl Successor {
    /// Whether the pod appears in lists of replacements. Pods that need no replacement elsewhere do not appear.
    pub fn is_listed(&self) -> bool {
        match self.outcome.kind() {
            // The outcome has a node if the scheduler places the replacement; for pods of DaemonSets and static pods it
            // has none.
            OutcomeKind::SameNode => self.outcome.node().is_some(),
            OutcomeKind::NotRecreated | OutcomeKind::Finished | OutcomeKind::Stays => false,
            OutcomeKind::Lost
            | OutcomeKind::FailsJob
            | OutcomeKind::Stuck
            | OutcomeKind::Refused
            | OutcomeKind::Pending
            | OutcomeKind::Blocked
            | OutcomeKind::Unknown
            | OutcomeKind::LeftOut
            | OutcomeKind::WaitsForOldPod
            | OutcomeKind::Replaced
            | OutcomeKind::Preempts
            | OutcomeKind::Moves => true,
        }
    }

    /// Stable name of the replacement's landing, or of the reason why there is none.
    pub const fn word(&self) -> &'static str {
        match (&self.outcome, &self.landing) {
            (PodOutcome::Lost | PodOutcome::FailsRun { .. } | PodOutcome::FailsJob { .. }, _) => "lost",
            (PodOutcome::Unknown { .. }, _) => "unknown",
            (PodOutcome::Replaced { .. }, _) => "replaced",
            (
                PodOutcome::WaitsForOldPod
                | PodOutcome::Refused(_)
                | PodOutcome::Stuck(StuckReason::OldPod | StuckReason::Finalizers { .. }),
                _,
            ) => "waiting",
            (_, Some(landing @ (Landing::Pending { .. } | Landing::Rejected { .. }))) => landing.word(),
            (_, Some(landing)) if self.created.is_some() => landing.word(),
            _ if self.evicted.is_some() => "waiting",
            _ => "notEvicted",
        }
    }

    /// The node of the replacement, if it is known.
    pub fn node(&self) -> Option<&NodeName> {
        self.landing.as_ref()?.node()
    }

    /// Explains the choice of the node, what the replacement waits for, or why there is no replacement.
    pub fn why(&self) -> String {
        let later = match (&self.outcome, self.evicted) {
            (PodOutcome::Moves { quota: Some(refusal), .. } | PodOutcome::Refused(refusal), _) => {
                Some(refusal.to_string())
            }
            (PodOutcome::Moves { .. }, None) => Some("not evicted within the forecast".into()),
            (PodOutcome::Moves { volume: Some(claim), .. }, Some(_)) => {
                Some(format!("starts when volume {claim} is detached from {}", self.from))
            }
            (
                PodOutcome::Stuck(_)
                | PodOutcome::Lost
                | PodOutcome::FailsRun { .. }
                | PodOutcome::FailsJob { .. }
                | PodOutcome::Unknown { .. },
                _,
            ) => {
                return self.outcome.to_string();
            }
            _ => None,
        };
        let place = self.landing.as_ref().and_then(Landing::why).map(ToString::to_string);
        later.into_iter().chain(place).collect::<Vec<_>>().join("; ")
    }
}

/// The times of a pod's departure, step by step; none for a step that never happens or has no known time.
#[derive(Clone, Copy, Debug)]
struct Departure {
    /// When the pod's deletion starts, or when its kubelet has ended it.
    leaves: Timestamp,
    /// When the pod's object is gone.
    gone: Option<Timestamp>,
    /// When the pod's volumes are detached from its node.
    detached: Option<Timestamp>,
    /// When the pod's node becomes Unknown, if it does before the deletion.
    unready: Option<Timestamp>,
}

impl Departure {
    /// Time at which the replacement is created; none if it is not created within the forecast.
    fn creates(&self, departing: &Departing) -> Option<Timestamp> {
        match (&departing.quota, departing.created) {
            (Some(refusal), _) => refusal.admitted,
            (None, Some(after_back_off)) => Some(after_back_off),
            (None, None) if departing.recreation == Recreation::WhenGone => self.gone,
            (None, None) => Some(self.leaves),
        }
    }
}

impl Forecast {
    /// Returns the outcomes of the pods that are deleted, and of the pods on nodes that are down at the end of the
    /// forecast. `assumptions` are the assumptions of the forecast.
    pub fn successors<E: Environment>(
        &self,
        assumptions: &Assumptions,
        cluster: &Cluster,
        environment: E,
    ) -> Succession {
        let departures = self.departures(assumptions, cluster, &environment);
        let leaving = self.leaving(self.pods(&departures, cluster), &departures, assumptions, cluster);
        let mut succession = succession(usize::MAX, leaving, &departures, self.lost(), cluster, environment);
        succession.successors.extend(self.hanging(&departures, cluster));
        succession
    }

    /// Returns the outcomes of terminating pods that do not leave within the forecast, because their nodes are down at
    /// its end.
    fn hanging(&self, departures: &BTreeMap<Key, Departure>, cluster: &Cluster) -> Vec<Successor> {
        let mut outcomes = TerminatingPods::new(cluster);
        let hangs = |pod: &&Arc<Pod>| {
            let node = pod.node.as_ref();
            node.is_some_and(|node| self.down.contains(node) && keeps_pods(cluster, node))
                && !departures.contains_key(&pod.key)
        };
        let hanging = cluster.terminating_pods().filter(hangs);
        let successor = |pod: &Arc<Pod>| {
            let (of, from) = (pod.key.clone(), pod.node.clone()?);
            let outcome = outcomes.outcome(pod);
            Some(Successor {
                of,
                from,
                evicted: None,
                is_terminating: true,
                outcome,
                landing: None,
                created: None,
                ready: None,
            })
        };
        hanging.filter_map(successor).collect()
    }

    /// Like [`Forecast::successors`] without assumptions, but only the first `most` replacements are placed, and
    /// terminating pods that do not leave within the forecast are left out. The pods in `leaving` count as leaving too,
    /// at the given times.
    pub(super) fn successors_of_first<E: Environment>(
        &self,
        most: usize,
        leaving: &BTreeMap<Key, Timestamp>,
        cluster: &Cluster,
        environment: E,
    ) -> Succession {
        let assumptions = Assumptions::default();
        let mut departures = self.departures(&assumptions, cluster, &environment);
        for (key, at) in leaving {
            if let Some(pod) = cluster.pod(key).filter(|_| !departures.contains_key(key)) {
                let gone = self.gone(pod, *at, &assumptions, &environment);
                let unready = self.unready(pod, *at);
                departures.insert(key.clone(), Departure { leaves: *at, gone, detached: gone, unready });
            }
        }
        let leaving = self.leaving(self.pods(&departures, cluster), &departures, &assumptions, cluster);
        succession(most, leaving, &departures, self.lost(), cluster, environment)
    }

    /// Returns the outcomes of the pods on failing nodes. The forecast must assume the failure of these nodes. As in
    /// the N-1 analysis of node losses, pods of other nodes are not counted.
    pub fn successors_of<E: Environment>(
        &self,
        failing: &BTreeSet<NodeName>,
        assumptions: &Assumptions,
        cluster: &Cluster,
        environment: E,
    ) -> Succession {
        let departures = self.departures(assumptions, cluster, &environment);
        let mut pods = failover::pods_of(cluster, failing);
        let is_of_failing = |pod: &&Arc<Pod>| pod.node.as_ref().is_some_and(|node| failing.contains(node));
        let finished = departures.keys().filter_map(|pod| cluster.pod(pod)).filter(|pod| pod.is_finished());
        pods.extend(finished.filter(is_of_failing).cloned());
        let leaving = self.leaving(pods, &departures, assumptions, cluster);
        let LostNodes { failed, removed, .. } = self.lost();
        let failed = Arc::new(failed.union(failing).cloned().collect());
        let lost = LostNodes { failed, removed, ..LostNodes::default() };
        succession(usize::MAX, leaving, &departures, lost, cluster, environment)
    }

    /// The nodes that are down at the end of the forecast, or for some time within it.
    fn lost(&self) -> LostNodes {
        LostNodes {
            failed: Arc::new(self.down.difference(&self.removed).cloned().collect()),
            removed: self.removed.clone(),
            recovering: self.recovered.clone(),
        }
    }

    /// Returns the pods that leave or are lost: all pods on nodes that are down at the end of the forecast, finished
    /// pods that are deleted on such nodes, pods that are deleted on other nodes, and terminating pods that are removed
    /// if a replacement waits for their end.
    fn pods(&self, departures: &BTreeMap<Key, Departure>, cluster: &Cluster) -> Vec<Arc<Pod>> {
        let mut pods = failover::pods_of(cluster, &self.down);
        let is_missing = |pod: &&Arc<Pod>| {
            pod.is_finished() || pod.node.as_ref().is_none_or(|node| !self.down.contains(node))
        };
        let deleted = departures.keys().filter_map(|pod| cluster.pod(pod));
        let is_waited_for = |pod: &&Arc<Pod>| failover::is_waited_for(cluster, pod);
        pods.extend(deleted.clone().filter(is_waited_for).cloned());
        pods.extend(deleted.filter(|pod| pod.termination.is_none()).filter(is_missing).cloned());
        pods
    }

    /// Returns how each of these pods leaves. If the forecast has assumptions and no node comes back, the replacements
    /// get no creation times, as in N-1, so that their order stays open. If a node comes back, the creation times are
    /// needed, because only replacements that are created later can land on that node.
    fn leaving(
        &self,
        pods: Vec<Arc<Pod>>,
        departures: &BTreeMap<Key, Departure>,
        assumptions: &Assumptions,
        cluster: &Cluster,
    ) -> Vec<LeavingPod> {
        let mut refusals = quota_delay::refusals(cluster, &known(cluster, departures));
        let jobs = JobConsequences::new(cluster, &known(cluster, departures));
        let is_known = succession_gaps(cluster).unknown().is_empty();
        let has_order = assumptions.incidents.is_empty() || !self.recovered.is_empty();
        let left_alone = self.left_alone(assumptions, cluster);
        let leaving = |pod: Arc<Pod>| {
            let departure = departures.get(&pod.key);
            let departing = match departure {
                Some(departure) => Departing {
                    is_gone: departure.gone.is_some(),
                    is_detached: departure.detached.is_some(),
                    quota: refusals.remove(&pod.key),
                    created: jobs.created(&pod.key),
                    ..Departing::from_running_node(cluster, &pod, is_known)
                }
                .with_recreation(cluster, &pod, recreation(cluster, &jobs, &pod)),
                None if self.has_kubelet(cluster, &pod) => {
                    Departing::from_not_ready_node(cluster, &pod, is_known)
                }
                None if pod.node.as_ref().is_some_and(|node| left_alone.contains(node)) => {
                    Departing::from_paused_node(cluster, &pod, is_known)
                }
                None => Departing::from_lost_node(cluster, &pod, is_known),
            };
            let created = match departure {
                Some(departure) => departure.creates(&departing),
                None => self.later.get(&pod.key).copied(),
            };
            let created = created.filter(|_| has_order);
            LeavingPod { pod, departing, created }
        };
        pods.into_iter().map(leaving).collect()
    }

    /// Times at which the deleted pods leave, and at which they are gone.
    fn departures<E: Environment>(
        &self,
        assumptions: &Assumptions,
        cluster: &Cluster,
        environment: &E,
    ) -> BTreeMap<Key, Departure> {
        let mut departures: BTreeMap<Key, Departure> = BTreeMap::new();
        for step in &self.steps {
            let Some(pod) = step.kind.pod() else { continue };
            let removed = matches!(step.kind, ForecastKind::Removed { .. }).then_some(step.at);
            let by_force = removed
                .map(|at| if is_out_of_service(cluster, step.kind.node()) { at } else { at + FORCED_DETACH });
            if let Some(Departure { gone, detached, .. }) = departures.get_mut(pod) {
                *gone = [*gone, removed].into_iter().flatten().min();
                *detached = [*detached, by_force].into_iter().flatten().min();
            } else if let Some(known) = cluster.pod(pod) {
                let ended = || self.gone(known, step.at, assumptions, environment);
                let (gone, detached) = match step.kind {
                    ForecastKind::Removed { .. } => (removed, by_force),
                    // When a machine stops, the kubelet waits until the pod's volumes are unmounted
                    // (`WaitForAllPodsUnmount`).
                    ForecastKind::Ended { .. } => (Some(step.at), Some(step.at)),
                    ForecastKind::Unknown { .. }
                    | ForecastKind::NoExecute { .. }
                    | ForecastKind::Deleted { .. } => (ended(), ended()),
                };
                let unready = self.unready(known, step.at);
                departures.insert(pod.clone(), Departure { leaves: step.at, gone, detached, unready });
            }
        }
        departures
    }

    /// Returns the time at which a pod is gone if its deletion starts at `leaves`. If the pod's node is down at that
    /// time, the pod is gone when the kubelet recovers. Returns none if the kubelet does not recover or the time is
    /// unknown.
    fn gone<E: Environment>(
        &self,
        pod: &Pod,
        leaves: Timestamp,
        assumptions: &Assumptions,
        environment: &E,
    ) -> Option<Timestamp> {
        let node = pod.node.as_ref()?;
        let incidents = assumptions.incidents.iter().filter(|incident| incident.node == *node);
        let last = incidents.filter(|incident| incident.at <= leaves).max_by_key(|incident| incident.at);
        if last.is_some_and(|incident| incident.kind == IncidentKind::Recovers) {
            // The kubelet is back when the pod leaves, so the node's present state does not count.
            let pod = Pod { node: None, ..pod.clone() };
            return Some(leaves + environment.time_to_terminate(&pod, pod.grace).likely?);
        }
        if self.unready(pod, leaves).is_none()
            && let Some(takes) = environment.time_to_terminate(pod, pod.grace).likely
        {
            return Some(leaves + takes);
        }
        let recoveries = assumptions.incidents.iter().filter(|incident| {
            incident.node == *node && incident.kind == IncidentKind::Recovers && incident.at >= leaves
        });
        recoveries.map(|incident| incident.at).min()
    }

    /// Returns the down nodes whose pods no taint evicts, because the evictions of their zones are paused at the end of
    /// the forecast. Nodes whose failure is an assumption are left out: their pods count as lost.
    fn left_alone(&self, assumptions: &Assumptions, cluster: &Cluster) -> BTreeSet<&NodeName> {
        let paused = self.paused_zones();
        let is_paused =
            |node: &NodeName| cluster.node(node).is_some_and(|node| paused.contains(&node.zone()));
        let is_assumed =
            |node: &NodeName| assumptions.incidents.iter().any(|incident| incident.node == *node);
        self.down.iter().filter(|node| is_paused(node) && !is_assumed(node)).collect()
    }

    /// Returns the pods that nothing evicts from the nodes that are down at the end of the forecast, which has no
    /// assumptions: they tolerate the taint of their node without a limit. Pods of zones whose evictions are paused are
    /// left out.
    pub fn never_evicted(&self, cluster: &Cluster) -> Vec<Arc<Pod>> {
        let left_alone = self.left_alone(&Assumptions::default(), cluster);
        let down = self.down.iter().filter(|node| !left_alone.contains(node));
        let tolerates = |pod: &&Arc<Pod>| pod.lives() && outcome::is_never_evicted(pod);
        down.flat_map(|node| cluster.pods_on(node)).filter(tolerates).cloned().collect()
    }

    /// Whether the node is down at the end of the forecast, which has no assumptions, and no taint evicts its pods,
    /// because the evictions of its zone are paused.
    pub fn leaves_alone(&self, cluster: &Cluster, node: &NodeName) -> bool {
        let is_paused = |node: &Arc<Node>| self.paused_zones().contains(&node.zone());
        self.down.contains(node) && cluster.node(node).is_some_and(is_paused)
    }

    /// Returns the zones whose evictions are paused at the end of the forecast
    /// ([`ZoneView::is_paused`](crate::engine::ZoneView::is_paused)).
    pub fn paused_zones(&self) -> BTreeSet<&ZoneKey> {
        self.zones.iter().filter(|zone| zone.is_paused()).map(|zone| &zone.key).collect()
    }

    /// Whether the kubelet of a pod's node runs at the end of the forecast, even if the node is not Ready.
    fn has_kubelet(&self, cluster: &Cluster, pod: &Pod) -> bool {
        let runs_now = pod.node.as_ref().is_some_and(|node| has_running_kubelet(cluster, node));
        runs_now && self.unready(pod, self.until).is_none()
    }

    /// Returns when the node of a pod becomes Unknown, if it does by `leaves`.
    fn unready(&self, pod: &Pod, leaves: Timestamp) -> Option<Timestamp> {
        let unknown = self
            .of_node(pod.node.as_ref()?)
            .find(|step| matches!(step.kind, ForecastKind::Unknown { .. }) && step.at <= leaves);
        unknown.map(|step| step.at)
    }
}

/// Returns what creates the replacement of a deleted pod. A DaemonSet's pod with devices is placed like any other pod,
/// because the scheduler returns it to its node only if the node has other devices for it.
fn recreation(cluster: &Cluster, jobs: &JobConsequences, pod: &Pod) -> Recreation {
    let has_devices = !pod.scheduling.device_claims.is_empty();
    match jobs.recreation(cluster, pod) {
        Recreation::OnSameNode if pod.is_of_daemon_set() && has_devices => Recreation::WhenGone,
        other => other,
    }
}

/// Returns the outcomes of the leaving pods. Only the first `most` replacements are placed.
fn succession<E: Environment>(
    most: usize,
    leaving: Vec<LeavingPod>,
    departures: &BTreeMap<Key, Departure>,
    lost: LostNodes,
    cluster: &Cluster,
    environment: E,
) -> Succession {
    let Failover { pods, trace } = failover_of_first(most, cluster, leaving, lost, environment);
    let successor = |placed: FailoverPod| successor(departures.get(&placed.pod.key).copied(), placed);
    let mut successors: Vec<Successor> = pods.into_iter().filter_map(successor).collect();
    successors.sort_by_key(|successor| successor.evicted.unwrap_or(Timestamp::MAX));
    Succession { successors, trace }
}

/// The departures of the pods that exist in the cluster.
fn known(cluster: &Cluster, departures: &BTreeMap<Key, Departure>) -> Vec<plan::Departure> {
    let departure = |(pod, departure): (&Key, &Departure)| {
        let Departure { leaves, gone, unready, .. } = *departure;
        Some(plan::Departure { pod: cluster.pod(pod)?.clone(), leaves, gone, unready })
    };
    departures.iter().filter_map(departure).collect()
}

/// Returns the outcome of a pod with its times; none for a pod without a node.
fn successor(departure: Option<Departure>, placed: FailoverPod) -> Option<Successor> {
    let FailoverPod { pod, departing, mut outcome, landing, landed, time_to_ready } = placed;
    let created = landing.as_ref().and(departure).and_then(|departure| departure.creates(&departing));
    let placed = created.map(|at| landed.map_or(at, |landed| landed.max(at)));
    let starts = match &departing.volume {
        Some(_) => placed.and_then(|at| Some(at.max(departure?.detached?))),
        None => placed,
    };
    let is_ready = starts.and_then(|starts| Some(starts + time_to_ready?));
    if let PodOutcome::Moves { ready, .. } = &mut outcome {
        *ready = is_ready;
    }
    let evicted = departure.map(|departure| departure.leaves);
    let (of, from) = (pod.key.clone(), pod.node.clone()?);
    let is_terminating = pod.termination.is_some();
    Some(Successor { of, from, evicted, is_terminating, outcome, landing, created, ready: is_ready })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_that_terminates_already_is_not_counted_as_evicted() {
        let successor = |is_terminating, evicted| Successor {
            of: Key::new("d", "p"),
            from: "n".into(),
            evicted,
            is_terminating,
            outcome: PodOutcome::WaitsForOldPod,
            landing: None,
            created: None,
            ready: None,
        };
        let removed = Some(Timestamp::from_secs(1));
        let successors = [(true, removed), (true, None), (false, removed), (false, None)];
        let successors = successors.map(|(terminates, evicted)| successor(terminates, evicted)).to_vec();
        let SuccessionCounts { evicted, terminating, left_behind, .. } =
            Succession { successors, trace: RunTrace::default() }.counts();
        assert_eq!([evicted, terminating, left_behind].map(|counts| counts.total()), [1, 2, 1]);
    }
}
