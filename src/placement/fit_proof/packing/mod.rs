//! A node for each pod of a large loss: found once, kept, and repaired where something has changed.
//!
//! Proofs that hold in whatever order pods come end where the scheduler could fill nodes badly if it wished to: above about half
//! of all resources, pods that take most CPU could be put on some nodes and pods that take most memory on the others, until
//! neither have room for a pod that takes both. The scheduler does the opposite. To simulate what it does with 50,000 pods takes
//! 15 seconds of a core, and 20 changed pods might change the answer. So such a loss is *packed*: each pod gets a node by all
//! filters of the scheduler, which see the pods that were packed before it. That shows that all pods have a node at the same time.
//! Three things stand for what it does not show, that the scheduler finds such nodes too:
//!
//! - **It chooses as a scheduler that knows less.** A pod gets the node with most room of a few, where the scheduler takes the best of
//!   hundreds, and points for free and evenly used resources are most of what sets them apart.
//! - **It has the worse order.** Pods that may run on many nodes are packed before those that may run on few, small pods before large
//!   ones, so that what is hard to place finds least room.
//! - **A reserve must be left.** When all are packed, at least half of the nodes that a pod may run on, in each domain that it is
//!   spread over or tied to, must still have room for one that asks for the most of each resource that any of them asks for. The
//!   scheduler would have to waste all of it before a pod finds no node.
//!
//! On random clusters of ten to thirty nodes, where a reserve is worth least, about one packing in fifteen thousand still promises what a
//! simulation does not find; losses of so few pods are not packed. Pods that have no node whatever happens are counted beside the packed ones. What does not leave that reserve is not answered here. Losses of fewer pods are not packed: they are proved or simulated.
//!
//! After a change, a pod keeps its node unless it is new, the pods that it is compared with have changed, or its node has no room for
//! all that were packed on it; then it is packed again, and with it all pods that are compared with it. The reserve is counted each
//! time. So a packing is as good after a thousand repairs as when it was made, and 20 changed pods cost some 20 pods.

mod constraints;
mod load;
mod newcomers;
mod reserve;
mod run;

use std::sync::Arc;

use reserve::Narrowing;
use run::PackingRun;

use super::{FitProofs, Resident};
use crate::placement::snapshot::Snapshot;

/// Not packed.
const NOWHERE: u32 = u32::MAX;

/// The nodes that the pods of a loss were given, or will have been.
#[derive(Clone, Debug)]
pub(super) enum Packing {
    Running(Box<PackingRun>),
    Done(DonePacking),
}

/// A packing of all pods of a loss that leaves the reserve.
#[derive(Clone, Debug)]
pub(super) struct DonePacking {
    generation: u64,
    /// The update that it is of.
    round: u64,
    /// The lost nodes, in order.
    nodes: Vec<PackedNode>,
    narrowing: Narrowing,
}

/// A lost node, and where its pods were packed.
#[derive(Clone, Debug)]
pub(super) struct PackedNode {
    node: u32,
    residents: Arc<Vec<Resident>>,
    /// By pod: its node, or [`NOWHERE`].
    targets: Vec<u32>,
}

/// What became of a packing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packed {
    /// So many pods have no node whatever happens, all others are packed and leave the reserve.
    All {
        pending: usize,
        pods: usize,
    },
    NotAll,
    /// The next call goes on.
    Interrupted,
}

impl Packing {
    /// Packs the pods of these nodes, or repairs what was packed. `continues` is asked before each pod.
    pub fn advance(
        proofs: &mut FitProofs,
        snapshot: &Snapshot,
        lost: &[u32],
        kept: &mut Option<Self>,
        continues: &mut impl FnMut() -> bool,
    ) -> Packed {
        let (generation, round) = proofs.log.now();
        let run = match kept.take() {
            Some(Self::Running(run)) if run.is_of((generation, round), lost) => Some(run),
            Some(Self::Done(done)) if done.is_of(generation, lost) => {
                PackingRun::new(proofs, snapshot, lost, Some(done)).map(Box::new)
            }
            _ => PackingRun::new(proofs, snapshot, lost, None).map(Box::new),
        };
        let Some(mut run) = run else { return Packed::NotAll };
        let packed = run.advance(proofs, snapshot, continues);
        *kept = match packed {
            Packed::All { .. } => Some(Self::Done(run.done(proofs))),
            Packed::NotAll => None,
            Packed::Interrupted => Some(Self::Running(run)),
        };
        packed
    }
}

impl DonePacking {
    fn is_of(&self, generation: u64, lost: &[u32]) -> bool {
        self.generation == generation && self.nodes.iter().map(|packed| &packed.node).eq(lost)
    }
}

impl PackedNode {
    /// By pod that is there now: its node so far, and whether the pod is as it was.
    fn targets_of(&self, residents: &Arc<Vec<Resident>>) -> Vec<(u32, bool)> {
        if Arc::ptr_eq(&self.residents, residents) {
            return self.targets.iter().map(|target| (*target, true)).collect();
        }
        // Most stand in the order in which they stood: the search goes on behind the last one that was found.
        let (all, mut next) = (self.residents.len(), 0);
        let target = |resident: &Resident| {
            let mut places = (next..all).chain(0..next);
            let Some(place) = places.find(|place| self.residents[*place].pod.key == resident.pod.key) else {
                return (NOWHERE, false);
            };
            next = place + 1;
            (self.targets[place], self.residents[place].is_alike(resident))
        };
        residents.iter().map(target).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            FitProof, KeptLoss,
            fixture::{HOSTNAME, SmallCluster, ZONE, apart_from, name, only_on, read, spread_over},
        },
        *,
    };
    use crate::cluster::NodeName;

    /// Twelve nodes in three zones; `a` is lost.
    const ZONES: [&str; 12] = ["a", "b", "c", "a", "b", "c", "a", "b", "c", "a", "b", "c"];
    const LOST: [usize; 4] = [0, 3, 6, 9];
    const LEFT: [usize; 8] = [1, 2, 4, 5, 7, 8, 10, 11];

    /// Packs the loss of the zone: what is proved with it, and which node each pod got.
    fn pack(proofs: &mut FitProofs, snapshot: &Snapshot, kept: &mut Option<Packing>) -> Packed {
        let lost: Vec<u32> = LOST.iter().filter_map(|node| snapshot.number(&name(*node))).collect();
        Packing::advance(proofs, snapshot, &lost, kept, &mut || true)
    }

    fn packed(small: &SmallCluster) -> Packed {
        let (mut proofs, snapshot) = small.proofs();
        pack(&mut proofs, &snapshot, &mut None)
    }

    fn targets(kept: &Option<Packing>) -> Vec<u32> {
        let Some(Packing::Done(done)) = kept else { panic!("it is packed") };
        done.nodes.iter().flat_map(|node| node.targets.clone()).collect()
    }

    #[test]
    fn pods_that_leave_half_of_the_nodes_room_are_packed_and_others_are_not() {
        let with = |used: i64| {
            let mut small = SmallCluster::new(&ZONES);
            small.pods("web", &[0, 3, 6, 9, 0, 3, 6, 9], 100, 100);
            small.pods("db", &LEFT, used, 100);
            packed(&small)
        };
        // One pod of 100 comes to each node.
        assert_eq!(with(800), Packed::All { pending: 0, pods: 8 });
        assert_eq!(with(801), Packed::NotAll, "all fit, but no room for another is left");
        assert_eq!(with(901), Packed::All { pending: 8, pods: 8 }, "no node has room for any");
    }

    #[test]
    fn pods_tied_to_the_lost_zone_have_no_node_and_the_others_are_packed() {
        let mut small = SmallCluster::new(&ZONES);
        small.pods_with("tied", &[0, 3], (100, 100), &only_on(ZONE, "a"));
        small.pods("web", &LOST, 100, 100);
        assert_eq!(packed(&small), Packed::All { pending: 2, pods: 6 });
    }

    #[test]
    fn a_pod_that_no_node_has_room_for_is_counted_and_one_that_others_leave_none_is_not() {
        let with = |large: i64| {
            let mut small = SmallCluster::new(&ZONES);
            small.pods("web", &LOST, 100, 100);
            small.pods("large", &[0], large, 100);
            small.pods("db", &LEFT, 600, 100);
            packed(&small)
        };
        assert_eq!(with(401), Packed::All { pending: 1, pods: 5 });
        assert_eq!(with(350), Packed::NotAll, "it may come first");
    }

    #[test]
    fn constraints_hold_among_the_packed_pods() {
        let mut small = SmallCluster::new(&ZONES);
        small.pods_with("apart", &[0, 0, 3, 3, 6, 6, 9, 9], (10, 10), &apart_from("apart", HOSTNAME));
        small.pods_with("even", &LOST, (10, 10), &spread_over("even", ZONE));
        let (mut proofs, snapshot) = small.proofs();
        let mut kept = None;
        assert_eq!(pack(&mut proofs, &snapshot, &mut kept), Packed::All { pending: 0, pods: 12 });
        let Some(Packing::Done(done)) = &kept else { panic!("it is packed") };
        let of = |app: &str| -> Vec<u32> {
            let pods = done.nodes.iter().flat_map(|node| node.residents.iter().zip(&node.targets));
            pods.filter(|(resident, _)| resident.pod.key.name.starts_with(app))
                .map(|(_, node)| *node)
                .collect()
        };
        let nodes: crate::ordered::OrderedSet<u32> = of("apart").into_iter().collect();
        assert_eq!(nodes.len(), 8, "no two on one node");
        let in_b = of("even")
            .iter()
            .filter(|node| snapshot.node(**node).label(ZONE).is_some_and(|zone| **zone == *"b"))
            .count();
        assert_eq!(in_b, 2, "two in each zone that is left");

        let mut small = SmallCluster::new(&ZONES);
        small.pods_with("apart", &[0, 0, 0, 3, 3, 3, 6, 6, 9], (10, 10), &apart_from("apart", HOSTNAME));
        assert_eq!(packed(&small), Packed::NotAll, "nine pods, eight nodes");
    }

    #[test]
    fn a_repair_moves_only_what_has_to_move() {
        let mut small = SmallCluster::new(&ZONES);
        small.pods("web", &[0, 0, 0, 0, 3, 3, 3, 3], 50, 50);
        let (mut proofs, mut snapshot) = small.proofs();
        let mut kept = None;
        assert_eq!(pack(&mut proofs, &snapshot, &mut kept), Packed::All { pending: 0, pods: 8 });
        let before = targets(&kept);

        // A node that pods were packed on is full now.
        let full = before[0];
        let mut filled = SmallCluster::new(&ZONES);
        let number =
            LEFT.iter().find(|node| snapshot.number(&name(**node)) == Some(full)).expect("it is left");
        filled.pods("filler", &[*number], 990, 10);
        let filler = filled.cluster.pods().iter().next().expect("there is one").clone();
        snapshot.add(filler, &name(*number));
        read(&mut proofs, &mut snapshot);
        assert_eq!(pack(&mut proofs, &snapshot, &mut kept), Packed::All { pending: 0, pods: 8 });
        let after = targets(&kept);
        assert!(!after.contains(&full));
        let moved = before.iter().zip(&after).filter(|(before, after)| before != after).count();
        let were_there = before.iter().filter(|node| **node == full).count();
        assert_eq!(moved, were_there, "{before:?} {after:?}");

        // And now each of seven nodes has room for one of the eight.
        for node in LEFT.iter().filter(|node| *node != number) {
            let mut other = SmallCluster::new(&ZONES);
            other.pods(&format!("filler-of-{node}"), &[*node], 920, 10);
            snapshot.add(other.cluster.pods().iter().next().expect("there is one").clone(), &name(*node));
        }
        read(&mut proofs, &mut snapshot);
        assert_eq!(pack(&mut proofs, &snapshot, &mut kept), Packed::NotAll);
    }

    #[test]
    fn an_interrupted_packing_goes_on_and_finds_the_same() {
        let mut small = SmallCluster::new(&ZONES);
        small.pods("web", &[0, 0, 0, 0, 3, 3, 3, 3], 50, 50);
        let (mut proofs, snapshot) = small.proofs();
        let mut whole = None;
        pack(&mut proofs, &snapshot, &mut whole);

        proofs.pack_from(1);
        let lost: Vec<NodeName> = LOST.iter().map(|node| name(*node)).collect();
        let (mut kept, mut steps, mut calls) = (KeptLoss::default(), 0, 0);
        let proof = loop {
            calls += 1;
            let mut often = || {
                steps += 1;
                steps % 3 != 0
            };
            if let Some(proof) = proofs.prove_again(&snapshot, &lost, &mut kept, &mut often) {
                break proof;
            }
        };
        assert!(calls > 3);
        assert_eq!(proof, FitProof::Pending { pending: 0, pods: 8 });
        assert_eq!(targets(&kept.packing), targets(&whole));
    }
}
