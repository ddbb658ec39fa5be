//! Computation of the headroom. It can be interrupted after any pod of any loss, and resumed later.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use super::{Headroom, HeadroomLosses, LossAnswer, fit_bound};
use crate::{
    cluster::{Cluster, NodeName, ZoneKey},
    engine::ServerVersion,
    placement::{ClusterSnapshot, SnapshotInProgress},
    plan::{
        environment::{Environment, TypicalEnvironment},
        failover::{self, Failover, FailoverPod, FailoverRun, LostNodes, failover},
        outcome_kind::{OutcomeCounts, OutcomeKind},
        placing_environment::{PlacingEnvironment, PlacingState},
    },
};
use kordon_time::Timestamp;

/// The losses of single nodes and zones of a cluster. Each loss has an answer, that is, its effect on pods, once it has
/// been computed.
///
/// [`HeadroomWork::start`] takes a new state of the cluster. [`HeadroomWork::advance`] first makes a snapshot of this
/// state. It then computes the losses one by one: first those without an answer, then those with the oldest answers.
///
/// A new state can be started at any time. Answers for earlier states are kept until newer answers replace them. A
/// simulation that is running continues with the state for which it was started.
#[derive(Debug)]
pub struct HeadroomWork {
    /// Snapshot that is being made of the newest state, with the time of this state.
    starting: Option<(SnapshotInProgress, Timestamp)>,
    /// The newest state with a complete snapshot; `None` until the first snapshot is complete.
    state: Option<State>,
    losses: BTreeMap<Loss, KnownLoss>,
    /// Losses that wait for their simulation, in order. The queue may also contain losses that no longer exist.
    queue: VecDeque<Loss>,
    simulation: Option<Simulation>,
    /// Paused simulation of the loss of a zone. The losses of nodes that have never been computed are simulated first.
    paused: Option<Simulation>,
    /// Maximum number of pod-node pairs for which the losses of zones are computed in advance: every pod on the nodes
    /// of these zones, paired with every node. Above this maximum, these losses are computed only when the operator
    /// asks for a what-if.
    most_looks: usize,
}

/// Default of `most_looks`. Checking this many pairs of a pod and a node takes up to 27 s, and the losses of 5,000
/// single nodes take another 16 s. At a twentieth of a core, both together take a quarter of an hour.
const MOST_LOOKS: usize = 300_000_000;

/// A state of the cluster for which losses are computed.
#[derive(Debug)]
struct State {
    known: ClusterSnapshot,
    at: Timestamp,
    /// Number of earlier cluster states that the computation was given.
    number: u64,
}

/// The loss of one node or zone. Losses are first simulated in the order of this type: nodes, then zones.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Loss {
    Node(NodeName),
    Zone(ZoneKey),
}

/// The loss of a node or zone, with its effect if that has been computed.
#[derive(Clone, Debug)]
struct KnownLoss {
    nodes: Arc<BTreeSet<NodeName>>,
    /// Number of pods on the lost nodes when the loss was first seen.
    pods: usize,
    is_queued: bool,
    /// Whether the loss is too large to be computed in advance, so that it is computed only when the operator asks for
    /// a what-if.
    is_on_request: bool,
    answer: Option<KnownAnswer>,
}

/// The effect of a loss, and the cluster state for which it was computed.
#[derive(Clone, Copy, Debug)]
struct KnownAnswer {
    answer: LossAnswer,
    at: Timestamp,
    state: u64,
}

/// A loss that is being simulated.
#[derive(Debug)]
struct Simulation {
    loss: Loss,
    cluster: Cluster,
    at: Timestamp,
    state: u64,
    run: FailoverRun<PlacingState>,
}

impl Default for HeadroomWork {
    fn default() -> Self {
        Self {
            starting: None,
            state: None,
            losses: BTreeMap::new(),
            queue: VecDeque::new(),
            simulation: None,
            paused: None,
            most_looks: MOST_LOOKS,
        }
    }
}

impl HeadroomWork {
    /// Sets the maximum number of pod-node pairs for which the losses of zones are computed in advance: every pod on
    /// the nodes of these zones, paired with every node. The maximum takes effect with the next state.
    pub const fn limit_looks(&mut self, most: usize) {
        self.most_looks = most;
    }

    /// Takes a newer state of the cluster and starts to make its snapshot. All losses are then computed for this state.
    pub fn start(&mut self, cluster: Cluster, version: ServerVersion, at: Timestamp) {
        self.finish_start();
        let before = self.state.as_ref().map(|state| state.known.clone());
        self.starting = Some((SnapshotInProgress::new(cluster, version, before), at));
    }

    /// Completes the snapshot that is being made; does nothing if no snapshot is being made. Cannot be interrupted.
    pub fn finish_start(&mut self) {
        if let Some((snapshot, at)) = self.starting.take() {
            self.start_with(snapshot.finish(), at);
        }
    }

    /// Continues to make the snapshot of the newest state. Returns false if `continues` interrupted this.
    fn advance_start(&mut self, continues: &mut impl FnMut() -> bool) -> bool {
        let Some((snapshot, _)) = &mut self.starting else { return true };
        let is_complete = snapshot.advance(continues);
        if is_complete {
            self.finish_start();
        }
        is_complete
    }

    /// Takes a newer state of the cluster whose snapshot already exists.
    pub fn start_with(&mut self, known: ClusterSnapshot, at: Timestamp) {
        self.starting = None;
        let number = self.state.as_ref().map_or(0, |state| state.number + 1);
        let mut before = std::mem::take(&mut self.losses);
        for (loss, nodes) in losses(&known.cluster) {
            let nodes = Arc::new(nodes);
            let loss_before = before.remove(&loss);
            if loss_before.is_none() {
                self.queue.push_back(loss.clone());
            }
            let known = match loss_before {
                Some(before) => KnownLoss { nodes, ..before },
                None => KnownLoss::new(nodes, &known.cluster),
            };
            self.losses.insert(loss, known);
        }
        self.leave_large_zones(known.cluster.nodes().len());
        let losses = &self.losses;
        let is_answered = |loss: &Loss| losses.get(loss).is_some_and(|known| known.answer.is_some());
        self.queue.retain(|loss| losses.get(loss).is_some_and(|known| known.is_queued));
        self.queue.make_contiguous().sort_by_key(is_answered);
        self.state = Some(State { known, at, number });
    }

    /// Marks the losses of all zones as computed only on request, if they are too large to be computed in advance.
    fn leave_large_zones(&mut self, nodes: usize) {
        let is_zone = |loss: &Loss| matches!(loss, Loss::Zone(_));
        let zones = self.losses.iter().filter(|(loss, _)| is_zone(loss));
        let pods: usize = zones.map(|(_, known)| known.pods).sum();
        if pods.saturating_mul(nodes) > self.most_looks {
            for (_, known) in self.losses.iter_mut().filter(|(loss, _)| is_zone(loss)) {
                (known.is_on_request, known.is_queued, known.answer) = (true, false, None);
            }
        }
    }

    /// Returns a copy of the newest cluster state with a complete snapshot, which other computations can use. `None`
    /// until the first snapshot is complete.
    pub fn state(&self) -> Option<ClusterSnapshot> {
        self.state.as_ref().map(|state| state.known.clone())
    }

    /// Returns whether there is a cluster state with a complete snapshot.
    pub const fn has_state(&self) -> bool {
        self.state.is_some()
    }

    /// Returns the time of the newest cluster state with a complete snapshot; `None` until the first snapshot is
    /// complete.
    pub fn state_at(&self) -> Option<Timestamp> {
        self.state.as_ref().map(|state| state.at)
    }

    /// Returns the time of the newest cluster state, whose snapshot may still be in progress; `None` if there is no
    /// state.
    pub fn started_at(&self) -> Option<Timestamp> {
        let starting = self.starting.as_ref().map(|(_, at)| *at);
        starting.or(self.state_at())
    }

    /// Returns whether the snapshot of the newest cluster state is still being made.
    pub const fn is_starting(&self) -> bool {
        self.starting.is_some()
    }

    /// Continues the computation until all losses have been computed or `continues` returns false. Calls `continues`
    /// before each step of a snapshot, before each loss, and before each pod.
    pub fn advance(&mut self, continues: &mut impl FnMut() -> bool) {
        if !self.advance_start(continues) {
            return;
        }
        while self.resume() || continues() && self.start_next() {
            if !self.simulate(continues) {
                return;
            }
        }
    }

    /// Chooses the simulation to continue, and returns whether there is one. Pauses the simulation of a zone while the
    /// loss of a node that has never been computed waits in the queue.
    fn resume(&mut self) -> bool {
        let is_new_node = |loss: &Loss| {
            let is_new = |known: &KnownLoss| known.answer.is_none();
            matches!(loss, Loss::Node(_)) && self.losses.get(loss).is_some_and(is_new)
        };
        let awaits_node = self.queue.front().is_some_and(is_new_node);
        match &self.simulation {
            Some(Simulation { loss: Loss::Zone(_), .. }) if awaits_node => {
                self.paused = self.simulation.take()
            }
            None if !awaits_node => self.simulation = self.paused.take(),
            Some(_) | None => {}
        }
        self.simulation.is_some()
    }

    /// Computes the next loss or starts its simulation. Returns false if all losses have been computed for the newest
    /// state.
    fn start_next(&mut self) -> bool {
        let Some(state) = &self.state else { return false };
        let Some(known) = self.queue.front().and_then(|loss| self.losses.get_mut(loss)) else { return false };
        if known.answer.is_some_and(|known| known.state == state.number) {
            return false;
        }
        let Some(loss) = self.queue.pop_front() else { return false };
        known.is_queued = false;
        let simulation = state.lose(loss, known.nodes.clone());
        match simulation {
            Ok(simulation) => self.simulation = Some(simulation),
            Err(certain) => {
                let (loss, answer) = *certain;
                let (at, state) = (state.at, state.number);
                self.answer(loss, KnownAnswer { answer, at, state });
            }
        }
        true
    }

    /// Continues the simulation that was started. Returns false if it was interrupted.
    fn simulate(&mut self, continues: &mut impl FnMut() -> bool) -> bool {
        let is_wanted = |simulation: &Simulation| self.losses.contains_key(&simulation.loss);
        let Some(simulation) = self.simulation.take().filter(is_wanted) else { return true };
        let Simulation { loss, cluster, at, state, run } = simulation;
        let mut run = run.map_environment(|placing| placing.in_cluster(&cluster, Timestamp::EPOCH));
        loop {
            if !continues() {
                let run = run.map_environment(PlacingEnvironment::into_state);
                self.simulation = Some(Simulation { loss, cluster, at, state, run });
                return false;
            }
            if !run.advance(&cluster) {
                break;
            }
        }
        let answer = LossAnswer::new(&run.finish(), Placements::Computed);
        self.answer(loss, KnownAnswer { answer, at, state });
        true
    }

    fn answer(&mut self, loss: Loss, answer: KnownAnswer) {
        let Some(known) = self.losses.get_mut(&loss).filter(|known| !known.is_on_request) else { return };
        known.answer = Some(answer);
        if !std::mem::replace(&mut known.is_queued, true) {
            self.queue.push_back(loss);
        }
    }

    /// Returns the headroom, as far as losses have been computed.
    pub fn headroom(&self) -> Headroom {
        let mut headroom = Headroom::default();
        for (loss, known) in &self.losses {
            match loss {
                Loss::Node(node) => self.record(known, node, &mut headroom.nodes),
                Loss::Zone(zone) => self.record(known, zone, &mut headroom.zones),
            }
        }
        headroom
    }

    /// Returns, for each loss, the outcomes of the pods that have nowhere to run; `None` for a loss that has not been
    /// computed.
    pub fn answers(&self) -> BTreeMap<String, Option<OutcomeCounts>> {
        let name = |loss: &Loss| match loss {
            Loss::Node(node) => node.to_string(),
            Loss::Zone(zone) => format!("zone {zone}"),
        };
        let answer = |known: &KnownLoss| known.answer.map(|known| known.answer.outcomes);
        self.losses.iter().map(|(loss, known)| (name(loss), answer(known))).collect()
    }

    fn record<T: Clone>(&self, known: &KnownLoss, of: &T, losses: &mut HeadroomLosses<T>) {
        losses.tried += 1;
        if known.is_on_request {
            losses.on_request += 1;
            return;
        }
        losses.progress.all += known.pods;
        let Some(KnownAnswer { answer, at, state }) = known.answer else {
            losses.undecided += 1;
            return;
        };
        losses.progress.done += known.pods;
        losses.record(of.clone(), answer);
        if self.state.as_ref().is_some_and(|newest| newest.number != state) {
            losses.outdated_since = Some(losses.outdated_since.map_or(at, |oldest| oldest.min(at)));
        }
    }

    /// Returns whether all losses have been computed for the newest state, except the losses that are computed only on
    /// request.
    pub fn is_done(&self) -> bool {
        let Some(state) = &self.state else { return false };
        let is_answered = |known: &KnownLoss| known.answer.is_some_and(|answer| answer.state == state.number);
        self.losses.values().all(|known| known.is_on_request || is_answered(known))
    }
}

impl KnownLoss {
    fn new(nodes: Arc<BTreeSet<NodeName>>, cluster: &Cluster) -> Self {
        let pods = nodes.iter().map(|node| cluster.pods_on(node).count()).sum();
        Self { nodes, pods, is_queued: true, is_on_request: false, answer: None }
    }
}

impl State {
    /// Starts the simulation of a loss.
    ///
    /// # Errors
    /// No simulation is needed, because all pods are certain to find a node. The error is the effect of the loss.
    fn lose(
        &self,
        loss: Loss,
        nodes: Arc<BTreeSet<NodeName>>,
    ) -> Result<Simulation, Box<(Loss, LossAnswer)>> {
        let cluster = self.known.cluster.clone();
        let pods = failover::leave_lost_nodes(&cluster, &nodes);
        let snapshot = self.known.snapshot.clone();
        let mut environment = PlacingEnvironment::for_outcomes(&cluster, snapshot, Timestamp::EPOCH);
        environment.on_failure(&nodes);
        let deleted = pods.iter().filter(|leaving| leaving.departing.is_deleted);
        deleted.for_each(|leaving| environment.on_deletion(&leaving.pod));
        let nodes = LostNodes::failed(nodes);
        if fit_bound::all_fit(environment.snapshot_mut(), &cluster, &pods) {
            // All pods find a node. The effect of the loss is the same whichever nodes they find, so no placement is
            // computed.
            let anywhere = TypicalEnvironment { cluster: &cluster, now: Timestamp::EPOCH };
            let failover = failover(&cluster, pods, nodes, anywhere);
            return Err(Box::new((loss, LossAnswer::new(&failover, Placements::AllFit))));
        }
        let run = FailoverRun::new(pods, nodes, environment);
        let run = run.map_environment(PlacingEnvironment::into_state);
        Ok(Simulation { loss, cluster, at: self.at, state: self.number, run })
    }
}

/// How the replacements of the pods of a lost node or zone were placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placements {
    /// The placements were simulated, one replacement after the other.
    Computed,
    /// The placements were not simulated, because all replacements are certain to find a node.
    AllFit,
}

impl LossAnswer {
    fn new(failover: &Failover, placements: Placements) -> Self {
        let of_nodes = failover.counts();
        let stay = [OutcomeKind::SameNode, OutcomeKind::Finished, OutcomeKind::NotRecreated];
        let stay: usize = stay.into_iter().map(|kind| of_nodes.of(kind)).sum();
        // Leaves out pods whose outcome is unknown because objects are missing. These missing objects already make the
        // whole result uncertain (`Model::is_headroom_definite`).
        let is_unknown = |pod: &&FailoverPod| {
            pod.outcome.kind() == OutcomeKind::Unknown
                && pod.departing.missing.is_empty()
                && (pod.landing.is_none() || placements == Placements::Computed)
        };
        Self {
            outcomes: failover.all_counts().only_nowhere(),
            unknown: failover.pods.iter().filter(is_unknown).count(),
            pods: of_nodes.total() - stay,
        }
    }
}

/// Returns the losses to compute: each Ready node, and, if several zones have Ready nodes, each of these zones.
fn losses(cluster: &Cluster) -> BTreeMap<Loss, BTreeSet<NodeName>> {
    let mut zones: BTreeMap<ZoneKey, BTreeSet<NodeName>> = BTreeMap::new();
    let mut losses = BTreeMap::new();
    for node in cluster.nodes().iter().filter(|node| node.is_ready()) {
        zones.entry(node.zone()).or_default().insert(node.name.clone());
        losses.insert(Loss::Node(node.name.clone()), [node.name.clone()].into());
    }
    if zones.len() > 1 {
        losses.extend(zones.into_iter().map(|(zone, nodes)| (Loss::Zone(zone), nodes)));
    }
    losses
}
