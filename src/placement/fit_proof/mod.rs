//! Proofs about the pods of lost nodes: that each finds a node wherever the scheduler places the others, that some find
//! none, or that not all can.
//!
//! A pod finds a node unless the others leave no room on any node that it may run on. To leave none on one node, others
//! must take more of some resource than the pod would leave free; another pod counts for one node only. So a weight is
//! given to each resource. The *cost* of a node is the least weighted amount that leaves no room on it; the *size* of
//! another pod is the largest weighted amount that it takes of any resource. If the nodes cost more than the others have in
//! size, one node is left, in whatever order pods come and whatever nodes are preferred. This holds for all weights. It
//! also holds if there are more nodes than others.
//!
//! Other constraints take nodes away: those in the domains of pods with anti-affinity and those that would break a spread
//! constraint now, and one more domain for each of the others that could come first. What is not modelled here (disks,
//! claims for one pod) proves nothing.
//!
//! Above about half of all resources the scheduler could still fill nodes so badly that the proof ends. The pods of a large loss,
//! which would take minutes to simulate, are packed instead: see [`packing`].
//!
//! Many pods are answered at once: pods with the same needs, labels and about the same requests share one question.

mod ask;
#[cfg(test)]
mod fixture;
mod kept;
mod loss;
mod packing;
mod profile;
mod room;
mod staying;

use std::sync::Arc;

use ask::{Ask, ResourceNumbers};
use kept::{ChangeLog, KeptProof, Validity};
use loss::Loss;
use packing::{Packed, Packing};
use profile::Profiles;
use room::{Costs, Room};

use super::{
    ids::Ids,
    snapshot::{Resident, Snapshot, SnapshotIdentity},
};
use crate::{
    cluster::{Namespace, Node, NodeName, Owner, Pod},
    ordered::{OrderedMap, OrderedSet},
};

/// What is proved about the pods of lost nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FitProof {
    /// So many of the pods that are recreated find no node, all others do. Where all do, `pods` may count some that are
    /// not recreated.
    Pending { pending: usize, pods: usize },
    /// At least one finds no node.
    Short,
    /// Nothing.
    Open,
}

/// The relations of so many profiles are kept from one loss to the next. Where all pods differ, each is needed for two losses
/// only, and all of them take as much memory as everything else that is kept.
const RELATIONS_KEPT: usize = 20_000;

/// So many profiles, questions and owners may be kept, however few pods there are.
const FEW_KEPT: usize = 1000;

/// Losses of so many pods are packed: to simulate so many takes ten seconds where a core is used by 3 %.
const PACKED_FROM: usize = 1000;

/// How many of the lost pods of one owner are recreated elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recreated {
    All,
    /// Some of them: others of its pods are more than it wants.
    Some,
    #[default]
    None,
}

/// Proofs about many losses, one at a time, in a snapshot that follows the cluster.
///
/// What is known of each node's pods and of pods with equal needs is kept from one [`FitProofs::update`] to the next.
#[derive(Clone, Debug, Default)]
pub struct FitProofs {
    resources: ResourceNumbers,
    profiles: Profiles,
    /// By owner: the pod of it that was read last. Others' pods are not recreated.
    owners: Vec<Arc<Pod>>,
    owner_numbers: Ids<(Namespace, Owner)>,
    recreated: Vec<Recreated>,
    /// By node: the pods as they were read, and what was read.
    residents: Vec<Arc<Vec<Resident>>>,
    entries: Vec<Vec<Entry>>,
    questions: Vec<Question>,
    question_numbers: Ids<(u32, Ask)>,
    room: Arc<Room>,
    /// The lowest priority of all pods on nodes.
    lowest_priority: i32,
    /// By node set: weights by which all that is free counts the same.
    weights: Vec<Option<Vec<f64>>>,
    /// By question.
    costs: Vec<Option<Box<Costs>>>,
    /// What the profiles were made of.
    basis: Basis,
    log: ChangeLog,
    /// An update that was interrupted.
    reading: Option<Reading>,
    /// Losses of so many pods are packed; none: of [`PACKED_FROM`].
    packed_from: Option<usize>,
}

/// How far the pods of a snapshot are read.
#[derive(Clone, Debug)]
struct Reading {
    /// The next node.
    next: usize,
    changed: ChangedPods,
    /// By node: how many of its pods have changed, where any may have.
    changes_on: Vec<Option<usize>>,
}

/// What is kept of a loss from one update to the next.
#[derive(Clone, Debug, Default)]
pub struct KeptLoss {
    proof: Option<KeptProof>,
    packing: Option<Packing>,
}

/// A pod on a node.
#[derive(Clone, Debug, PartialEq)]
struct Entry {
    /// None if no controller recreates it.
    owner: Option<u32>,
    profile: u32,
    question: u32,
    group: Option<u32>,
    priority: i32,
    never_preempts: bool,
    fate: Fate,
    /// None if it asks for too many different resources.
    ask: Option<Ask>,
}

/// What becomes of a pod whose node is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It is terminating: it has been replaced, or will be.
    Ends,
    /// The default scheduler does not place it where it is recreated.
    NotTried,
    Placed,
}

/// What many pods ask of the same nodes, rounded up.
#[derive(Clone, Debug)]
struct Question {
    set: u32,
    ask: Ask,
}

/// What profiles rest on, apart from the labels and taints of nodes, which are compared.
#[derive(Clone, Debug, Default)]
struct Basis {
    /// The snapshot whose numbers profiles have.
    snapshot: SnapshotIdentity,
    nodes: Vec<Option<Arc<Node>>>,
    small_changes: u64,
}

impl FitProofs {
    /// Reads what has changed in the snapshot. Owners may be new: [`FitProofs::set_recreated`] must follow.
    ///
    /// Takes `&mut Snapshot` for indexes that are made when they are first needed.
    pub fn update(&mut self, snapshot: &mut Snapshot) {
        self.advance_update(snapshot, &mut || true);
    }

    /// The same in steps: true once all is read, false if `continues`, which is asked before each node, returned false. Then
    /// the next call goes on with the same snapshot.
    pub fn advance_update(&mut self, snapshot: &mut Snapshot, continues: &mut impl FnMut() -> bool) -> bool {
        let mut reading = self.reading.take().unwrap_or_else(|| self.start_update(snapshot));
        while reading.next < snapshot.residents().len() {
            if !continues() {
                self.reading = Some(reading);
                return false;
            }
            self.read_node(&mut reading, snapshot);
        }
        self.finish_update(&reading, snapshot);
        true
    }

    /// Forgets an update that was interrupted, and all proofs with it: another state of the snapshot is read next.
    pub fn drop_update(&mut self) {
        if self.reading.take().is_some() {
            self.log.outdate_all();
        }
    }

    fn start_update(&mut self, snapshot: &Snapshot) -> Reading {
        if self.basis.has_changed(snapshot) || self.is_mostly_of_the_past() {
            let packed_from = self.packed_from;
            *self = Self { log: self.log.next_generation(), packed_from, ..Self::default() };
        }
        self.log.start_round();
        self.basis = Basis::of(snapshot);
        let nodes = snapshot.residents().len();
        self.residents.resize_with(nodes, Arc::default);
        self.entries.resize_with(nodes, Vec::new);
        self.profiles.update_relations(snapshot);
        Reading { next: 0, changed: ChangedPods::default(), changes_on: vec![None; nodes] }
    }

    fn read_node(&mut self, reading: &mut Reading, snapshot: &mut Snapshot) {
        let node = reading.next;
        reading.next += 1;
        let residents = snapshot.residents()[node].clone();
        if Arc::ptr_eq(&residents, &self.residents[node]) {
            return;
        }
        let before = std::mem::replace(&mut self.residents[node], residents.clone());
        let is_changed = self.read_pods(node, &before, &residents, snapshot);
        let pods = reading.changed.compare(&before, &residents);
        if is_changed || pods > 0 {
            reading.changes_on[node] = Some(pods);
            self.log.on_pods_of_node(u32::try_from(node).expect("nodes have such numbers"));
        }
    }

    /// Reads the pods of a node that are other versions than before. Returns whether any entry is new or gone: most pods change
    /// in what no scheduler reads.
    fn read_pods(
        &mut self,
        node: usize,
        before: &[Resident],
        now: &[Resident],
        snapshot: &mut Snapshot,
    ) -> bool {
        let read = std::mem::take(&mut self.entries[node]);
        let mut known: Vec<(&Resident, Option<Entry>)> =
            before.iter().zip(read.into_iter().map(Some)).collect();
        let mut is_changed = false;
        let entry = |resident| {
            let same = known.iter_mut().find(|(old, entry)| entry.is_some() && old.is_same(resident));
            if let Some(entry) = same.and_then(|(_, entry)| entry.take()) {
                return entry;
            }
            let entry = self.entry(resident, snapshot);
            match known.iter_mut().find(|(_, old)| old.as_ref() == Some(&entry)) {
                Some((_, old)) => *old = None,
                None => is_changed = true,
            }
            entry
        };
        self.entries[node] = now.iter().map(entry).collect();
        is_changed || known.iter().any(|(_, old)| old.is_some())
    }

    fn finish_update(&mut self, reading: &Reading, snapshot: &Snapshot) {
        let Reading { changed, changes_on, .. } = reading;
        let related = self.profiles.related_to(&changed.classes, &changed.affinity_classes, snapshot);
        related.into_iter().for_each(|profile| self.log.on_profile(profile));
        let priorities = self.entries.iter().flatten().map(|entry| entry.priority);
        self.lowest_priority = priorities.min().unwrap_or(i32::MAX);
        let room = Room::of(snapshot, &self.resources);
        if room.is_of_others(&self.room) {
            self.log.outdate_all();
        }
        for (node, pods) in (0..).zip(changes_on) {
            if pods.is_some() || !room.is_same_on(node, &self.room) {
                self.log.count_changes(pods.unwrap_or(0));
            }
        }
        self.room = Arc::new(room);
        self.weights.clear();
        self.weights.resize(self.profiles.sets.len(), None);
        self.costs.clear();
        self.costs.resize_with(self.questions.len(), || None);
    }

    /// Whether most of what is kept is of pods that are gone: it is read again then, and does not grow without end.
    fn is_mostly_of_the_past(&self) -> bool {
        let pods = self.entries.iter().map(Vec::len).sum::<usize>();
        let kept = self.questions.len().max(self.profiles.all.len()).max(self.owners.len());
        kept > 2 * pods + FEW_KEPT
    }

    /// Frees what the next update would make again. Proofs can still be made; the first of them take longer.
    pub fn free_round(&mut self) {
        self.profiles.keep_relations(0);
        self.costs.iter_mut().for_each(|costs| *costs = None);
    }

    /// One pod of each owner, in the order in which [`FitProofs::set_recreated`] takes the answers.
    pub fn owners(&self) -> &[Arc<Pod>] {
        &self.owners
    }

    /// What becomes of the pods of each owner.
    pub fn set_recreated(&mut self, recreated: Vec<Recreated>) {
        for (owner, now) in (0_u32..).zip(&recreated) {
            if self.recreated.get(owner as usize) != Some(now) {
                self.log.on_owner(owner);
            }
        }
        self.recreated = recreated;
    }

    /// What is proved about the loss of these nodes. The snapshot is that of the last update.
    pub fn prove<'n>(
        &mut self,
        snapshot: &Snapshot,
        lost: impl IntoIterator<Item = &'n NodeName>,
    ) -> FitProof {
        let proved = self.prove_again(snapshot, lost, &mut KeptLoss::default(), &mut || true);
        proved.expect("it was not interrupted")
    }

    /// Packs the pods of losses of at least so many pods, where simulations are not waited for.
    pub const fn pack_from(&mut self, pods: usize) {
        self.packed_from = Some(pods);
    }

    /// The same of a loss of which something was kept: only what bears on it is proved again. None if `continues`, which is
    /// asked now and then, returned false: then the next call goes on.
    pub fn prove_again<'n>(
        &mut self,
        snapshot: &Snapshot,
        lost: impl IntoIterator<Item = &'n NodeName>,
        kept: &mut KeptLoss,
        continues: &mut impl FnMut() -> bool,
    ) -> Option<FitProof> {
        self.profiles.keep_relations(RELATIONS_KEPT);
        let lost: Vec<u32> = lost.into_iter().filter_map(|node| snapshot.number(node)).collect();
        let pods: usize = lost.iter().map(|node| self.entries[*node as usize].len()).sum();
        if pods >= self.packed_from.unwrap_or(PACKED_FROM) {
            return self.prove_by_packing(snapshot, lost, kept, continues);
        }
        Some(self.prove_order_free(snapshot, lost, &mut kept.proof))
    }

    /// What a packing proves of many pods, or that they are too many.
    fn prove_by_packing(
        &mut self,
        snapshot: &Snapshot,
        lost: Vec<u32>,
        kept: &mut KeptLoss,
        continues: &mut impl FnMut() -> bool,
    ) -> Option<FitProof> {
        if kept.proof.as_ref().is_some_and(|proof| self.log.is_open(proof, &lost)) {
            return Some(FitProof::Open);
        }
        if kept.packing.is_none() && Loss::new(self, snapshot, lost.clone()).is_short() {
            return Some(FitProof::Short);
        }
        let was_packed = kept.packing.is_some();
        kept.proof = None;
        match Packing::advance(self, snapshot, &lost, &mut kept.packing, continues) {
            Packed::Interrupted => None,
            Packed::All { pending, pods } => Some(FitProof::Pending { pending, pods }),
            Packed::NotAll if was_packed && Loss::new(self, snapshot, lost).is_short() => {
                Some(FitProof::Short)
            }
            Packed::NotAll => {
                kept.proof = Some(self.log.open());
                Some(FitProof::Open)
            }
        }
    }

    /// What is proved in whatever order pods come.
    fn prove_order_free(
        &mut self,
        snapshot: &Snapshot,
        lost: Vec<u32>,
        kept: &mut Option<KeptProof>,
    ) -> FitProof {
        if let Some(proof) = kept {
            let entries = || lost.iter().flat_map(|node| &self.entries[*node as usize]);
            match self.log.validity(proof, &lost, entries().filter_map(|entry| entry.owner)) {
                Validity::Open => return FitProof::Open,
                Validity::Fits { pods, until } => {
                    let related: OrderedSet<u32> = entries()
                        .map(|entry| entry.profile)
                        .filter(|profile| self.log.is_changed(*profile, proof))
                        .collect();
                    let slack = match related.is_empty() {
                        true => Some(u64::MAX),
                        false => Loss::new(self, snapshot, lost.clone()).slack_of(&related),
                    };
                    if let Some(slack) = slack {
                        *proof = self.log.still_fits(pods, until, slack);
                        return FitProof::Pending { pending: 0, pods };
                    }
                }
                Validity::Outdated => {}
            }
        }
        let (proof, slack) = Loss::new(self, snapshot, lost).prove();
        *kept = match (proof, slack) {
            (FitProof::Pending { pods, .. }, Some(slack)) => Some(self.log.fits(pods, slack)),
            (FitProof::Open, _) => Some(self.log.open()),
            (FitProof::Pending { .. } | FitProof::Short, _) => None,
        };
        proof
    }

    fn entry(&mut self, resident: &Resident, snapshot: &mut Snapshot) -> Entry {
        let pod = &resident.pod;
        let owner = pod.owner.as_ref().map(|owner| self.owner(owner, pod));
        let profile = self.profiles.number_of(resident, snapshot);
        let ask = Ask::of(pod, &mut self.resources);
        let set = self.profiles.all[profile as usize].set;
        let question = self.question(set, ask.as_ref().map(Ask::rounded_up).unwrap_or_default());
        Entry {
            owner,
            profile,
            question,
            group: self.profiles.group_of(resident.affinity_class),
            priority: pod.priority,
            never_preempts: pod.scheduling.never_preempts,
            fate: Fate::of(pod),
            ask,
        }
    }

    fn owner(&mut self, owner: &Owner, pod: &Arc<Pod>) -> u32 {
        let content = (pod.key.namespace.clone(), owner.clone());
        if let Some(number) = self.owner_numbers.number(&content) {
            // The one before may be an old version of a pod, which nobody else keeps.
            self.owners[number as usize] = pod.clone();
            return number;
        }
        let number = u32::try_from(self.owners.len()).expect("fewer owners than pods");
        self.owners.push(pod.clone());
        self.owner_numbers.insert(content, number);
        number
    }

    fn question(&mut self, set: u32, ask: Ask) -> u32 {
        let content = (set, ask);
        self.question_numbers.number(&content).unwrap_or_else(|| {
            let number = u32::try_from(self.questions.len()).expect("fewer questions than pods");
            self.questions.push(Question { set, ask: content.1.clone() });
            self.question_numbers.insert(content, number);
            number
        })
    }

    fn recreated(&self, entry: &Entry) -> Recreated {
        let known = entry.owner.and_then(|owner| self.recreated.get(owner as usize));
        known.copied().unwrap_or_default()
    }

    /// Makes the costs of a question, where they are not known yet.
    fn ensure_costs(&mut self, question: u32) {
        if self.costs[question as usize].is_some() {
            return;
        }
        let Question { set, ask } = &self.questions[question as usize];
        let nodes = &self.profiles.sets[*set as usize].nodes;
        let weights = self.weights[*set as usize]
            .get_or_insert_with(|| self.room.weights(nodes.iter().copied()))
            .clone();
        self.costs[question as usize] = Some(Box::new(self.costs_of(*set, ask, weights)));
    }

    fn costs_of(&self, set: u32, ask: &Ask, weights: Vec<f64>) -> Costs {
        Costs::new(&self.room, &self.profiles.sets[set as usize], ask, weights)
    }
}

/// What pods have come, gone or begun to terminate, as far as others are compared with them.
#[derive(Clone, Debug, Default)]
struct ChangedPods {
    classes: OrderedSet<u32>,
    affinity_classes: OrderedSet<u32>,
}

impl ChangedPods {
    /// Compares the pods of one node before and after, and returns how many have changed.
    fn compare(&mut self, before: &[Resident], after: &[Resident]) -> usize {
        let seen = |resident: &Resident| {
            (resident.pod_class, resident.affinity_class, resident.pod.termination.is_some())
        };
        let mut counts: OrderedMap<_, i64> = OrderedMap::new();
        before.iter().for_each(|resident| *counts.entry(seen(resident)).or_default() -= 1);
        after.iter().for_each(|resident| *counts.entry(seen(resident)).or_default() += 1);
        let mut pods = 0;
        for ((class, affinity_class, _), count) in counts.into_iter().filter(|(_, count)| *count != 0) {
            self.classes.insert(class);
            self.affinity_classes.extend(affinity_class);
            pods += usize::try_from(count.unsigned_abs()).expect("no more than pods");
        }
        pods
    }
}

impl Fate {
    fn of(pod: &Pod) -> Self {
        if pod.termination.is_some() {
            Self::Ends
        } else if pod.scheduling.gates.is_empty() && pod.scheduling.scheduler.is_empty() {
            Self::Placed
        } else {
            Self::NotTried
        }
    }
}

impl Basis {
    fn of(snapshot: &Snapshot) -> Self {
        Self {
            snapshot: snapshot.identity().remember(),
            nodes: snapshot.nodes().to_vec(),
            small_changes: snapshot.small_changes(),
        }
    }

    /// Whether it is another snapshot, whose numbers mean other classes of pods, nodes are new or gone, other pods may run on them, or volumes or namespaces may have changed.
    fn has_changed(&self, snapshot: &Snapshot) -> bool {
        let (old, new) = (&self.nodes, snapshot.nodes());
        !self.snapshot.is(snapshot.identity())
            || self.small_changes != snapshot.small_changes()
            || old.len() != new.len()
            || old.iter().zip(new).any(|nodes| match nodes {
                (Some(old), Some(new)) => {
                    !Arc::ptr_eq(old, new)
                        && (old.labels != new.labels
                            || old.taints != new.taints
                            || old.unschedulable != new.unschedulable)
                }
                (None, None) => false,
                (Some(_), None) | (None, Some(_)) => true,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::{
        fixture::{HOSTNAME, SmallCluster, ZONE, apart_from, name, read, spread_over},
        *,
    };
    use crate::cluster::{Change, ObjectEvent};

    const ALL_FIT: FitProof = FitProof::Pending { pending: 0, pods: 1 };
    const NONE_FITS: FitProof = FitProof::Pending { pending: 1, pods: 1 };

    #[test]
    fn another_snapshot_with_other_classes_by_the_same_numbers_is_read_as_new() {
        let mut welcome = SmallCluster::new(&["a", "a", "a"]);
        welcome.pods("db", &[0], 100, 100);
        let mut guarded = SmallCluster::new(&["a", "a", "a"]);
        guarded.pods("web", &[0], 100, 100);
        guarded.pods_with("web-guard", &[1, 2], (100, 100), &apart_from("web", HOSTNAME));

        let (mut proofs, first) = welcome.proofs();
        assert_eq!(proofs.prove(&first, &[name(0)]), ALL_FIT);
        let (_, mut other) = guarded.proofs();
        read(&mut proofs, &mut other);
        assert_eq!(proofs.prove(&other, &[name(0)]), NONE_FITS, "each node has a pod that refuses it");
        let mut copy = first.clone();
        read(&mut proofs, &mut copy);
        assert_eq!(proofs.prove(&copy, &[name(0)]), ALL_FIT);
    }

    #[test]
    fn an_update_that_was_interrupted_goes_on_and_one_of_an_older_state_is_forgotten() {
        let mut small = SmallCluster::new(&["a", "a", "a"]);
        small.pods("web", &[0], 900, 100);
        let (_, mut snapshot) = small.proofs();
        let mut proofs = FitProofs::default();
        let mut steps = 0;
        let mut once = || {
            steps += 1;
            steps % 2 == 1
        };
        while !proofs.advance_update(&mut snapshot, &mut once) {}
        assert!(steps > 3, "it was interrupted");
        proofs.set_recreated(vec![Recreated::All]);
        assert_eq!(proofs.prove(&snapshot, &[name(0)]), ALL_FIT);

        let mut kept = KeptLoss::default();
        proofs.prove_again(&snapshot, &[name(0)], &mut kept, &mut || true);
        let mut full = SmallCluster::new(&["a", "a", "a"]);
        full.pods("web", &[0], 900, 100);
        full.pods("db", &[1, 2], 900, 100);
        let (_, mut later) = full.proofs();
        let mut steps = 0;
        proofs.advance_update(&mut snapshot, &mut || {
            steps += 1;
            steps < 3
        });
        proofs.drop_update();
        read(&mut proofs, &mut later);
        let proof = proofs.prove_again(&later, &[name(0)], &mut kept, &mut || true);
        assert_eq!(proof, Some(NONE_FITS));
    }

    #[test]
    fn no_version_of_a_pod_is_kept_once_there_is_another() {
        let mut small = SmallCluster::new(&["a", "b", "c"]);
        small.pods("web", &[0, 1, 2], 100, 100);
        small.pods_with("db", &[0, 1], (100, 100), &spread_over("db", ZONE));
        let (mut proofs, mut snapshot) = small.proofs();
        proofs.pack_from(3);
        let mut kept = [KeptLoss::default(), KeptLoss::default()];
        let mut prove = |proofs: &mut FitProofs, snapshot: &Snapshot| {
            for (lost, kept) in [vec![name(0)], vec![name(1), name(2)]].iter().zip(&mut kept) {
                proofs.prove_again(snapshot, lost, kept, &mut || true).expect("it was not interrupted");
            }
        };
        prove(&mut proofs, &snapshot);
        let old: Vec<_> = small.cluster.pods().iter().map(Arc::downgrade).collect();
        let mut applied = Vec::new();
        for pod in &old {
            let pod = pod.upgrade().expect("the cluster has it");
            let failing = Pod { reason: "Evicted".into(), ..(*pod).clone() };
            small.cluster.apply(Change::Pod(ObjectEvent::Applied(failing)), &mut applied);
        }
        snapshot.follow(&applied, &small.cluster);
        drop(applied);
        read(&mut proofs, &mut snapshot);
        prove(&mut proofs, &snapshot);
        let kept: Vec<_> = old.iter().filter_map(std::sync::Weak::upgrade).collect();
        assert!(old.len() == 5 && kept.is_empty(), "{kept:?}");
    }
}
