//! The other pods that a lost pod is compared with.

use super::{
    super::{
        profile::{Relations, TermRelation},
        staying::StayingPods,
    },
    Loss, LostPod,
};

impl Loss<'_> {
    /// The pods of the nodes that are not lost.
    pub(super) fn staying(&self) -> StayingPods<'_> {
        StayingPods { profiles: &self.proofs.profiles, snapshot: self.snapshot, is_lost: &self.is_lost }
    }

    /// How many lost pods a term selects, without a pod of this profile itself.
    pub(super) fn others(&self, term: &TermRelation, profile: u32) -> usize {
        let own = self.proofs.profiles.all[profile as usize].pod_class;
        let is_in = |class: &u32| self.in_class.get(class).copied().unwrap_or(0);
        let all: usize = term.numbers.iter().map(is_in).sum();
        all - usize::from(term.numbers.binary_search(&own).is_ok())
    }

    pub(super) fn conflicts(&self, pod: &LostPod, relations: &Relations) -> bool {
        let residents = &self.proofs.residents[pod.node as usize];
        let ports = &residents[pod.place as usize].pod.scheduling.host_ports;
        ports.iter().any(|port| relations.ports.iter().any(|own| own.conflicts_with(port)))
    }
}
