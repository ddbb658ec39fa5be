//! Which proofs of earlier updates still hold.
//!
//! A proof that all pods of a loss fit rests on the pods of the lost nodes, on the pods that affinity and spread constraints
//! compare them with, and on the room of all other nodes. Where the first two are as they were, it holds until more has
//! changed than it has slack for.

/// A proof that is kept with the loss that it is of.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeptProof {
    generation: u64,
    /// The update that it was made or confirmed in.
    round: u64,
    /// How many changes there had been by then.
    changes: u64,
    kind: KeptKind,
}

#[derive(Clone, Copy, Debug)]
enum KeptKind {
    /// All of so many pods fit until there have been so many changes.
    Fits { pods: usize, until: u64 },
    /// Nothing was proved.
    Open,
}

/// What a proof can still be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Validity {
    /// All of so many pods fit, if those fit that are now compared with other pods; the slack ends then.
    Fits {
        pods: usize,
        until: u64,
    },
    /// Nothing was proved, and little has changed since.
    Open,
    Outdated,
}

/// An open proof of many nodes is tried again once there were so many changes for a hundred of them: that takes a tenth of a second.
const RETRIED_PERCENT: u64 = 5;

/// When what has last changed.
#[derive(Clone, Debug, Default)]
pub(super) struct ChangeLog {
    generation: u64,
    /// Counts updates.
    round: u64,
    /// Counts nodes whose room has changed and pods that have come or gone, again in each update.
    changes: u64,
    nodes: Rounds,
    profiles: Rounds,
    owners: Rounds,
}

/// The round in which each of some things has last changed.
#[derive(Clone, Debug, Default)]
struct Rounds(Vec<u64>);

impl Rounds {
    fn set(&mut self, number: u32, round: u64) {
        let place = number as usize;
        if self.0.len() <= place {
            self.0.resize(place + 1, 0);
        }
        self.0[place] = round;
    }

    fn get(&self, number: u32) -> u64 {
        self.0.get(number as usize).copied().unwrap_or(0)
    }
}

impl ChangeLog {
    /// A log in which no proof that was made before holds.
    pub fn next_generation(&self) -> Self {
        Self { generation: self.generation + 1, ..Self::default() }
    }

    /// From now on no proof holds that was made before.
    pub fn outdate_all(&mut self) {
        self.generation += 1;
    }

    pub fn start_round(&mut self) {
        self.round += 1;
    }

    /// The room of a node may have changed, and so many pods on it.
    pub fn count_changes(&mut self, pods: usize) {
        self.changes += 1 + pods as u64;
    }

    pub fn on_pods_of_node(&mut self, node: u32) {
        self.nodes.set(node, self.round);
    }

    /// The pods have changed that those of a profile are compared with.
    pub fn on_profile(&mut self, profile: u32) {
        self.profiles.set(profile, self.round);
    }

    /// Other pods of an owner are recreated than before.
    pub fn on_owner(&mut self, owner: u32) {
        self.owners.set(owner, self.round);
    }

    /// Whether the pods of a profile are compared with others than when a proof was made.
    pub fn is_changed(&self, profile: u32, since: &KeptProof) -> bool {
        self.is_changed_since(profile, since.round)
    }

    /// Whether the pods of a profile are compared with others than in a round.
    pub fn is_changed_since(&self, profile: u32, round: u64) -> bool {
        self.profiles.get(profile) > round
    }

    /// Which proofs hold at all, and the round in which the last update was.
    pub const fn now(&self) -> (u64, u64) {
        (self.generation, self.round)
    }

    /// Whether nothing was proved about these nodes, and little has changed since.
    pub fn is_open(&self, proof: &KeptProof, nodes: &[u32]) -> bool {
        self.validity(proof, nodes, [].into_iter()) == Validity::Open
    }

    /// What a proof about these nodes, with pods of these owners, is worth.
    pub fn validity(
        &self,
        proof: &KeptProof,
        nodes: &[u32],
        mut owners: impl Iterator<Item = u32>,
    ) -> Validity {
        if proof.generation != self.generation {
            return Validity::Outdated;
        }
        match proof.kind {
            KeptKind::Fits { pods, until } => {
                let is_same = self.changes <= until
                    && nodes.iter().all(|node| self.nodes.get(*node) <= proof.round)
                    && owners.all(|owner| self.owners.get(owner) <= proof.round);
                if is_same { Validity::Fits { pods, until } } else { Validity::Outdated }
            }
            KeptKind::Open => {
                let changed = (self.changes - proof.changes) * 100;
                let is_little = changed < RETRIED_PERCENT * nodes.len() as u64;
                if is_little { Validity::Open } else { Validity::Outdated }
            }
        }
    }

    /// All of so many pods fit, as long as there are no more than so many changes.
    pub fn fits(&self, pods: usize, slack: u64) -> KeptProof {
        self.kept(KeptKind::Fits { pods, until: self.changes.saturating_add(slack) })
    }

    /// The same, proved before and confirmed.
    pub fn still_fits(&self, pods: usize, until: u64, slack: u64) -> KeptProof {
        self.kept(KeptKind::Fits { pods, until: until.min(self.changes.saturating_add(slack)) })
    }

    pub fn open(&self) -> KeptProof {
        self.kept(KeptKind::Open)
    }

    fn kept(&self, kind: KeptKind) -> KeptProof {
        KeptProof { generation: self.generation, round: self.round, changes: self.changes, kind }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FITS: Validity = Validity::Fits { pods: 3, until: 2 };

    #[test]
    fn a_proof_holds_until_its_slack_is_used_up() {
        let mut log = ChangeLog::default();
        let proof = log.fits(3, 2);
        for validity in [FITS, FITS, FITS, Validity::Outdated] {
            assert_eq!(log.validity(&proof, &[7], [4].into_iter()), validity);
            log.start_round();
            log.count_changes(0);
        }
    }

    #[test]
    fn a_proof_ends_with_a_change_of_its_own_nodes_or_owners() {
        let mut log = ChangeLog::default();
        let proof = log.fits(3, 2);
        log.start_round();
        log.on_pods_of_node(8);
        log.on_owner(5);
        log.on_profile(1);
        let validity = |nodes: &[u32], owner: u32| log.validity(&proof, nodes, [owner].into_iter());
        assert_eq!(validity(&[7], 4), FITS);
        assert_eq!(validity(&[7, 8], 4), Validity::Outdated);
        assert_eq!(validity(&[7], 5), Validity::Outdated);
        assert_eq!((log.is_changed(1, &proof), log.is_changed(2, &proof)), (true, false));
        assert_eq!(log.next_generation().validity(&proof, &[7], [4].into_iter()), Validity::Outdated);
    }

    #[test]
    fn an_open_proof_of_many_nodes_is_not_tried_again_at_once() {
        let mut log = ChangeLog::default();
        let proof = log.open();
        let zone: Vec<u32> = (0..40).collect();
        log.count_changes(0);
        assert_eq!(log.validity(&proof, &zone, [].into_iter()), Validity::Open);
        assert_eq!(log.validity(&proof, &[0], [].into_iter()), Validity::Outdated, "one node is quick");
        log.count_changes(0);
        assert_eq!(log.validity(&proof, &zone, [].into_iter()), Validity::Outdated);
    }
}
