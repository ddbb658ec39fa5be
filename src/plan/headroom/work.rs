//! Headroom as work that can be interrupted at any loss and any pod, and goes on where it was.

use std::{collections::VecDeque, sync::Arc};

use super::{Headroom, LossAnswer};
use crate::{
    cluster::{Cluster, NodeName, Pod, ZoneKey},
    engine::ServerVersion,
    ordered::{OrderedMap, OrderedSet},
    placement::{ClusterSnapshot, FitProof, FitProofs, KeptLoss, Recreated, SnapshotInProgress},
    plan::{
        failover::{self, FailoverRun},
        owner::{self, OwnerLookup, Recreation},
        placing_environment::{PlacingEnvironment, PlacingState},
    },
    time::Timestamp,
};

/// The losses of a cluster, and what is known of each.
///
/// [`HeadroomWork::start`] takes a state of the cluster, [`HeadroomWork::advance`] first takes a snapshot of it, then proves
/// what it can of each loss and simulates the others one after the other. A new state may be started at any time: answers
/// of earlier states stay until there are newer ones, and a simulation that has started is finished in the state in which
/// it was started.
#[derive(Debug, Default)]
pub struct HeadroomWork {
    /// The state that is started, and when it was taken.
    starting: Option<(SnapshotInProgress, Timestamp)>,
    /// The state that was started last; none before the first.
    state: Option<State>,
    proofs: FitProofs,
    losses: OrderedMap<Loss, KnownLoss>,
    unproven: VecDeque<Loss>,
    simulation: Option<Simulation>,
}

/// A state of the cluster.
#[derive(Debug)]
struct State {
    known: ClusterSnapshot,
    at: Timestamp,
    /// How many states were started before it.
    number: u64,
    is_read: bool,
}

/// The loss of one thing, in the order in which they are answered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Loss {
    Node(NodeName),
    Zone(ZoneKey),
}

/// What is known of a loss.
#[derive(Clone, Debug)]
struct KnownLoss {
    nodes: Arc<OrderedSet<NodeName>>,
    answer: Option<KnownAnswer>,
    /// The last proof left it open.
    is_open: bool,
    kept: KeptLoss,
}

/// An answer, and the state that it is of.
#[derive(Clone, Copy, Debug)]
struct KnownAnswer {
    answer: LossAnswer,
    at: Timestamp,
    state: u64,
}

/// A loss that is simulated.
#[derive(Debug)]
struct Simulation {
    loss: Loss,
    cluster: Cluster,
    at: Timestamp,
    state: u64,
    run: FailoverRun<PlacingState>,
}

impl HeadroomWork {
    /// Takes a newer state of the cluster.
    pub fn start(&mut self, cluster: Cluster, version: ServerVersion, at: Timestamp) {
        self.finish_start();
        let before = self.state.take().map(|state| state.known);
        self.starting = Some((SnapshotInProgress::new(cluster, version, before), at));
    }

    /// Completes the snapshot of the state that is started, if one is, whatever that takes.
    pub fn finish_start(&mut self) {
        if let Some((snapshot, at)) = self.starting.take() {
            self.start_with(snapshot.finish(), at);
        }
    }

    /// Continues the snapshot of the state that is started; false if that was interrupted.
    fn advance_start(&mut self, continues: &mut impl FnMut() -> bool) -> bool {
        let Some((snapshot, _)) = &mut self.starting else { return true };
        let is_complete = snapshot.advance(continues);
        if is_complete {
            self.finish_start();
        }
        is_complete
    }

    /// Takes a newer state with a snapshot of it.
    pub fn start_with(&mut self, state: ClusterSnapshot, at: Timestamp) {
        self.starting = None;
        let number = self.next_number();
        let mut known = std::mem::take(&mut self.losses);
        self.losses = losses(&state.cluster)
            .into_iter()
            .map(|(loss, nodes)| {
                let known = known.remove(&loss);
                let answer = known.as_ref().and_then(|known| known.answer);
                let kept = known.filter(|known| *known.nodes == nodes).map(|known| known.kept);
                let kept = kept.unwrap_or_default();
                (loss, KnownLoss { nodes: Arc::new(nodes), answer, is_open: false, kept })
            })
            .collect();
        self.unproven = self.losses.keys().cloned().collect();
        self.proofs.drop_update();
        self.state = Some(State { known: state, at, number, is_read: false });
    }

    fn next_number(&mut self) -> u64 {
        let simulated = self.simulation.as_ref().map(|simulation| simulation.state);
        let answered = self.losses.values().filter_map(|known| known.answer).map(|answer| answer.state);
        answered.chain(simulated).chain(self.state.as_ref().map(|state| state.number)).max().unwrap_or(0) + 1
    }

    /// A copy of the state that was started last, with its snapshot: what else is worked out can start from it. None while
    /// the first snapshot is not complete.
    pub fn state(&self) -> Option<ClusterSnapshot> {
        self.state.as_ref().map(|state| state.known.clone())
    }

    /// Whether there is such a state.
    pub const fn has_state(&self) -> bool {
        self.state.is_some()
    }

    /// When the state was taken that was started last.
    pub fn started_at(&self) -> Option<Timestamp> {
        let starting = self.starting.as_ref().map(|(_, at)| *at);
        starting.or(self.state.as_ref().map(|state| state.at))
    }

    /// Whether the snapshot of a state is not complete.
    pub const fn is_starting(&self) -> bool {
        self.starting.is_some()
    }

    /// Whether all that can be proved in the last state is proved.
    pub fn is_proved(&self) -> bool {
        !self.is_starting() && self.unproven.is_empty()
    }

    /// Goes on until all is answered or `continues`, which is asked before each loss and each pod, returns false.
    pub fn advance(&mut self, continues: &mut impl FnMut() -> bool) {
        if !self.advance_start(continues) || !self.read_pods(continues) {
            return;
        }
        while !self.unproven.is_empty() {
            if !continues() || !self.prove_next(continues) {
                return;
            }
            if self.unproven.is_empty() {
                self.proofs.free_round();
            }
        }
        while self.simulate_next() {
            if !self.simulate(continues) {
                return;
            }
        }
    }

    /// Brings the proofs up to the state; false if that was interrupted.
    fn read_pods(&mut self, continues: &mut impl FnMut() -> bool) -> bool {
        let Some(state) = self.state.as_mut().filter(|state| !state.is_read) else { return true };
        if !self.proofs.advance_update(&mut state.known.snapshot, continues) {
            return false;
        }
        state.is_read = true;
        let recreated = self.proofs.owners().iter().map(|pod| recreated(&state.known.cluster, pod)).collect();
        self.proofs.set_recreated(recreated);
        true
    }

    /// Packs the pods of losses of at least so many pods, where simulations are not waited for.
    pub const fn pack_from(&mut self, pods: usize) {
        self.proofs.pack_from(pods);
    }

    /// What is proved about the loss of some nodes in the last state, without a simulation.
    pub fn proof(&mut self, nodes: &OrderedSet<NodeName>) -> FitProof {
        self.finish_start();
        self.read_pods(&mut || true);
        match &self.state {
            Some(state) => self.proofs.prove(&state.known.snapshot, nodes),
            None => FitProof::Open,
        }
    }

    /// Proves what it can of the next loss; false if that was interrupted.
    fn prove_next(&mut self, continues: &mut impl FnMut() -> bool) -> bool {
        let (Some(state), Some(loss)) = (&self.state, self.unproven.front()) else { return true };
        let Some(known) = self.losses.get_mut(loss) else { return true };
        let nodes = &*known.nodes;
        let Some(proof) = self.proofs.prove_again(&state.known.snapshot, nodes, &mut known.kept, continues)
        else {
            return false;
        };
        self.unproven.pop_front();
        let answer = match proof {
            FitProof::Pending { pending, pods } => Some(LossAnswer::Counted { pending, pods }),
            FitProof::Short => Some(LossAnswer::Short),
            FitProof::Open => None,
        };
        known.is_open = !matches!(answer, Some(LossAnswer::Counted { .. }));
        // The last count is worth more than that there is one now.
        let was_short = known
            .answer
            .is_some_and(|known| matches!(known.answer, LossAnswer::Counted { pending, .. } if pending > 0));
        if let Some(answer) = answer.filter(|answer| *answer != LossAnswer::Short || !was_short) {
            known.answer = Some(KnownAnswer { answer, at: state.at, state: state.number });
        }
        true
    }

    /// Starts to simulate the loss of which least is known, unless one is simulated; false if there is none.
    fn simulate_next(&mut self) -> bool {
        if self.simulation.is_some() {
            return true;
        }
        let Some(state) = &self.state else { return false };
        let is_counted = |known: &KnownAnswer| matches!(known.answer, LossAnswer::Counted { .. });
        let is_answered = |known: &KnownLoss| {
            known.answer.filter(is_counted).is_some_and(|answer| answer.state == state.number)
        };
        let counted = |known: &KnownLoss| known.answer.filter(is_counted).map(|answer| answer.state);
        let open = self.losses.iter().filter(|(_, known)| known.is_open && !is_answered(known));
        let Some((loss, known)) = open.min_by_key(|(_, known)| counted(known)) else { return false };
        let cluster = state.known.cluster.clone();
        let pods = failover::leave_lost_nodes(&cluster, &known.nodes);
        let environment =
            PlacingEnvironment::for_outcomes(&cluster, state.known.snapshot.clone(), Timestamp::EPOCH);
        let run = FailoverRun::new(pods, known.nodes.clone(), environment);
        let run = run.map_environment(PlacingEnvironment::into_state);
        let loss = loss.clone();
        self.simulation = Some(Simulation { loss, cluster, at: state.at, state: state.number, run });
        true
    }

    /// Continues the simulation; false if it was interrupted.
    fn simulate(&mut self, continues: &mut impl FnMut() -> bool) -> bool {
        let Some(Simulation { loss, cluster, at, state, run }) = self.simulation.take() else { return true };
        if !self.losses.get(&loss).is_some_and(|known| known.is_open) {
            return true;
        }
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
        let failover = run.finish();
        let outcomes = failover.all_counts();
        let answer = LossAnswer::Counted { pending: outcomes.nowhere(), pods: outcomes.total() };
        if let Some(known) = self.losses.get_mut(&loss).filter(|known| known.is_open) {
            known.answer = Some(KnownAnswer { answer, at, state });
        }
        true
    }

    /// What is known.
    pub fn headroom(&self) -> Headroom {
        let mut headroom = Headroom::default();
        for (loss, known) in &self.losses {
            let answer = known.answer.map(|known| known.answer);
            match loss {
                Loss::Node(node) => headroom.nodes.record(node.clone(), answer),
                Loss::Zone(zone) => headroom.zones.record(zone.clone(), answer),
            }
        }
        headroom
    }

    /// When the oldest state was taken that an answer is of.
    pub fn answered_at(&self) -> Option<Timestamp> {
        self.losses.values().filter_map(|known| known.answer).map(|answer| answer.at).min()
    }

    /// Whether all is answered in the last state.
    pub fn is_done(&self) -> bool {
        let Some(state) = &self.state else { return false };
        let is_answered = |known: &KnownLoss| {
            known.answer.is_some_and(|known| {
                known.state == state.number && matches!(known.answer, LossAnswer::Counted { .. })
            })
        };
        self.unproven.is_empty() && self.losses.values().all(is_answered)
    }

    /// How many losses the last state has, and how many of them are proved.
    pub fn proved(&self) -> (usize, usize) {
        let open = self.losses.values().filter(|known| known.is_open).count();
        (self.losses.len(), self.losses.len() - self.unproven.len() - open)
    }
}

/// The losses of all Ready nodes, and of all zones of them where there are several.
fn losses(cluster: &Cluster) -> OrderedMap<Loss, OrderedSet<NodeName>> {
    let mut zones: OrderedMap<ZoneKey, OrderedSet<NodeName>> = OrderedMap::new();
    let mut losses = OrderedMap::new();
    for node in cluster.nodes().iter().filter(|node| node.is_ready()) {
        zones.entry(node.zone()).or_default().insert(node.name.clone());
        losses.insert(Loss::Node(node.name.clone()), [node.name.clone()].into());
    }
    if zones.len() > 1 {
        losses.extend(zones.into_iter().map(|(zone, nodes)| (Loss::Zone(zone), nodes)));
    }
    losses
}

/// Whether the pods of the owner of a pod are recreated elsewhere.
fn recreated(cluster: &Cluster, pod: &Pod) -> Recreated {
    match owner::recreation(cluster, pod) {
        Recreation::OnSameNode | Recreation::Never(_) => return Recreated::None,
        Recreation::Immediately | Recreation::WhenGone => {}
    }
    let Some(owner) = &pod.owner else { return Recreated::None };
    let OwnerLookup::Found(workload) = owner::find(cluster, &pod.key.namespace, owner) else {
        return Recreated::All;
    };
    let Some(replicas) = workload.replicas.and_then(|replicas| usize::try_from(replicas).ok()) else {
        return Recreated::All;
    };
    // Mostly there are no more than it wants, which the index alone shows.
    if cluster.count_owned_by(&owner.uid) <= replicas {
        return Recreated::All;
    }
    let lives = |pod: &&Arc<Pod>| pod.termination.is_none() && !pod.is_finished();
    let live = cluster.pods_owned_by(&owner.uid).filter(lives).count();
    if live <= replicas { Recreated::All } else { Recreated::Some }
}
