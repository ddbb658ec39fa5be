//! The scheduling cycle of a pod: filters, then scores; preemption if no node is feasible.

use std::collections::BTreeMap;

use super::{
    filter::{Filters, PodVolumes},
    node_walk::PercentageOfNodesToScore,
    outcome::{Placement, SchedulingOutcome, TiedNodes, Unschedulable},
    preemption,
    reason::{NodeRefusal, Reason},
    scheduling_request::{Caveat, Obstacle, SchedulingRequest},
    score::Ranking,
    snapshot::{Snapshot, labels},
};
use crate::cluster::NodeName;

impl Snapshot {
    /// Returns where the scheduler would place the pod. The caller can then put the pod there with [`Snapshot::add`].
    ///
    /// Takes `&mut self` because indexes are created when they are first needed, and because the scheduler's position
    /// in the list of nodes advances.
    pub fn place(&mut self, request: &SchedulingRequest) -> SchedulingOutcome {
        if let Some(obstacle) = request.obstacle() {
            return SchedulingOutcome::NotTried(obstacle);
        }
        self.prepare(request);
        let mut filters = Filters::new(self, request);
        let found = self.find(&mut filters);
        let outcome = match filters.devices.unknown() {
            _ if found.feasible.is_empty() || filters.devices.fails() => {
                SchedulingOutcome::Unschedulable(self.unschedulable(&mut filters))
            }
            Some(why) => SchedulingOutcome::NotTried(Obstacle::Devices(why)),
            None => SchedulingOutcome::Placed(self.placement(&filters, &found)),
        };
        self.walk.advance(found.next_start);
        outcome
    }

    /// Returns the feasible nodes that the scheduler finds: the nominated node of the pod if it is feasible, otherwise
    /// all feasible nodes, or some of them if `percentageOfNodesToScore` is below 100.
    fn find(&self, filters: &mut Filters<'_>) -> FoundNodes {
        let nominated = filters.request.nominated.as_ref().and_then(|name| self.number(name));
        // The scheduler tries the nominated node before all others, and does not move on in its list of nodes.
        let next_start = self.walk.next_start();
        if let Some(node) = nominated.filter(|node| filters.is_feasible(*node)) {
            return FoundNodes { feasible: vec![node], next_start, is_sample: false };
        }
        match self.walk.percentage() {
            None | Some(PercentageOfNodesToScore::ALL) => {
                FoundNodes { feasible: filters.feasible(), next_start, is_sample: false }
            }
            Some(percentage) => self.find_some(percentage, filters),
        }
    }

    /// Tries nodes until there are enough feasible nodes and one more. For the next pod, the scheduler starts at that
    /// additional node. (Upstream `findNodesThatPassFilters` has parallel workers, each of which may try one more
    /// node.)
    fn find_some(&self, percentage: PercentageOfNodesToScore, filters: &mut Filters<'_>) -> FoundNodes {
        let by_name = || {
            let mut by_name: Vec<u32> = self.node_numbers().collect();
            by_name.sort_unstable_by_key(|node| self.rank_of(*node));
            by_name
        };
        let all = self.walk.order(by_name, |node| self.node(node));
        let named: Vec<u32>;
        let candidates: &[u32] = if filters.names_nodes() {
            named = all.iter().copied().filter(|node| filters.is_candidate(*node)).collect();
            &named
        } else {
            all
        };
        let enough = percentage.nodes_to_find(candidates.len());
        let (mut feasible, mut seen, mut is_sample) = (Vec::with_capacity(enough), 0, false);
        for node in self.walk.over(candidates) {
            if filters.is_feasible(node) {
                if feasible.len() == enough {
                    is_sample = true;
                    break;
                }
                feasible.push(node);
            }
            seen += 1;
        }
        feasible.sort_unstable();
        let next_start = (self.walk.next_start() + seen) % all.len().max(1);
        FoundNodes { feasible, next_start, is_sample }
    }

    /// Returns the placement on the best of the feasible nodes in `found`. There must be at least one.
    fn placement(&self, filters: &Filters<'_>, found: &FoundNodes) -> Placement {
        let feasible = found.feasible.len();
        let Ranking { best, first: ranking } = Ranking::new(filters, &found.feasible);
        let best = best.into_iter().map(|node| self.rank_of(node));
        let best = TiedNodes::new(self.names().clone(), best);
        let mut caveats = filters.caveats();
        let by_default = PercentageOfNodesToScore::ADAPTIVE;
        if self.walk.percentage().is_none() && feasible > by_default.nodes_to_find(self.node_count()) {
            caveats.insert(Caveat::Sampled);
        }
        if found.is_sample {
            caveats.insert(Caveat::OneSample);
        }
        Placement { best, ranking, feasible, caveats: caveats.into_iter().collect() }
    }

    /// Returns why each node refuses the pod, and whether preemption would help.
    fn unschedulable(&self, filters: &mut Filters<'_>) -> Unschedulable {
        let mut refusals: Vec<(u32, NodeRefusal)> = Vec::new();
        let mut reasons: BTreeMap<Reason, usize> = BTreeMap::new();
        for node in self.node_numbers() {
            let Err(refusal) = filters.check_node(node) else { continue };
            for reason in &*refusal.reasons {
                *reasons.entry(reason.clone()).or_default() += 1;
            }
            refusals.push((node, refusal));
        }
        // A selector that fails is an error, after which the scheduler does not try to preempt pods.
        let preemptable: &[(u32, NodeRefusal)] = if filters.devices.fails() { &[] } else { &refusals[..] };
        let preemption = preemption::preempt(filters, preemptable);
        refusals.sort_by_key(|(node, _)| self.rank_of(*node));
        let named = |(node, refusal)| (self.node(node).name.clone(), refusal);
        let refusals = refusals.into_iter().map(named).collect();
        let mut caveats = filters.caveats();
        if self.has_autoscaler() {
            caveats.insert(Caveat::NewNodes);
        }
        Unschedulable { reasons, refusals, preemption, caveats: caveats.into_iter().collect() }
    }

    /// Returns the number of nodes that refuse the pod, by reason. Other nodes may still be feasible.
    pub fn refusals(&mut self, request: &SchedulingRequest) -> BTreeMap<Reason, usize> {
        self.prepare(request);
        let mut filters = Filters::new(self, request);
        let mut reasons: BTreeMap<Reason, usize> = BTreeMap::new();
        for node in self.node_numbers() {
            let Err(refusal) = filters.check_node(node) else { continue };
            for reason in refusal.reasons.into_owned() {
                *reasons.entry(reason).or_default() += 1;
            }
        }
        reasons
    }

    /// Returns why the kubelet of a node rejects a pod that is bound to the node without the scheduler; empty if the
    /// kubelet runs the pod. Terminating pods on the node do not count, because the controller tries again until they
    /// are gone.
    pub fn kubelet_refusal(&mut self, request: &SchedulingRequest, node: &NodeName) -> Vec<Reason> {
        let Some(number) = self.number(node) else { return Vec::new() };
        self.prepare(request);
        let mut resources = self.resources(number).clone();
        let terminating =
            self.residents_of(number).iter().filter(|resident| resident.pod.termination.is_some());
        terminating.for_each(|resident| resources.remove(&resident.pod));
        match Filters::new(self, request).check_admission(number, &resources) {
            Ok(()) => Vec::new(),
            Err(refusal) => refusal.reasons.into_owned(),
        }
    }

    /// Returns the feasible nodes, sorted by name.
    pub fn feasible(&mut self, request: &SchedulingRequest) -> Vec<NodeName> {
        self.prepare(request);
        let mut filters = Filters::new(self, request);
        let mut nodes = filters.feasible();
        nodes.sort_unstable_by_key(|node| self.rank_of(*node));
        nodes.into_iter().map(|node| self.node(node).name.clone()).collect()
    }

    /// Creates the label columns that are needed to place this pod.
    pub(super) fn prepare(&mut self, request: &SchedulingRequest) {
        self.ensure_columns(labels(&request.spec));
        let of_volumes = PodVolumes::keys(self.storage(), request);
        self.ensure_columns(of_volumes.iter());
    }
}

/// Feasible nodes that the scheduler finds for a pod.
struct FoundNodes {
    /// Numbers of the feasible nodes, ascending.
    feasible: Vec<u32>,
    /// Index of the node that the scheduler tries first for the next pod.
    next_start: usize,
    /// Whether the scheduler stopped before it had tried all nodes.
    is_sample: bool,
}
