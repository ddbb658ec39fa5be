//! What a pod asks of its node, as one amount for each resource.

use crate::{
    cluster::{Name, Pod, scheduling::PodVolume},
    placement::ids::Ids,
};

/// A resource of nodes by number: the fixed ones, then huge pages and extended resources as they are first asked for.
pub(super) type ResourceNumber = u16;

/// Claims of volumes, of which a node can attach a number.
pub(super) const VOLUMES: ResourceNumber = 3;
const EPHEMERAL_STORAGE: ResourceNumber = 2;
const PODS: ResourceNumber = 4;
/// CPU, memory, [`EPHEMERAL_STORAGE`], [`VOLUMES`] and the number of pods.
const FIXED: usize = 5;
/// More are not modelled: sets of resources are bits of one word.
const MOST: usize = 64;

/// The huge pages and extended resources that pods ask for.
#[derive(Clone, Debug, Default)]
pub(super) struct ResourceNumbers {
    numbers: Ids<Name>,
    names: Vec<Name>,
}

impl ResourceNumbers {
    /// How many resources there are.
    pub fn len(&self) -> usize {
        FIXED + self.names.len()
    }

    /// Huge pages and extended resources in the order of their numbers.
    pub fn named(&self) -> &[Name] {
        &self.names
    }

    /// The number of a resource; none if there are too many.
    fn number(&mut self, name: &Name) -> Option<ResourceNumber> {
        if let Some(number) = self.numbers.number(name) {
            return u16::try_from(number).ok();
        }
        if self.len() == MOST {
            return None;
        }
        let number = u16::try_from(self.len()).expect("at most 64");
        self.numbers.insert(name.clone(), number.into());
        self.names.push(name.clone());
        Some(number)
    }
}

/// What one pod asks of each resource. One of the number of pods, which is not kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Ask {
    cpu_and_memory: [i64; 2],
    /// Of other resources, which few pods ask for. Only amounts above zero, ascending.
    others: Box<[(ResourceNumber, i64)]>,
}

impl Ask {
    /// None if it asks for too many different resources.
    pub fn of(pod: &Pod, resources: &mut ResourceNumbers) -> Option<Self> {
        let requests = &pod.resources.requests;
        let is_claim = |volume: &&PodVolume| !matches!(volume, PodVolume::Disk(_));
        let volumes = i64::try_from(pod.scheduling.volumes.iter().filter(is_claim).count()).ok()?;
        let mut others = vec![(EPHEMERAL_STORAGE, requests.ephemeral_bytes), (VOLUMES, volumes)];
        for (name, amount) in requests.scalars.iter().filter(|(_, amount)| *amount > 0) {
            others.push((resources.number(name)?, *amount));
        }
        others.retain(|(_, amount)| *amount > 0);
        others.sort_unstable();
        let cpu_and_memory = [requests.cpu_milli, requests.memory_bytes].map(|amount| amount.max(0));
        Some(Self { cpu_and_memory, others: others.into() })
    }

    /// The resources of which it asks for something.
    pub fn amounts(&self) -> impl Iterator<Item = (ResourceNumber, i64)> {
        let first = (0..).zip(self.cpu_and_memory).filter(|(_, amount)| *amount > 0);
        first.chain(self.others.iter().copied()).chain([(PODS, 1)])
    }

    /// By resource: the most that one of these asks for.
    pub fn largest<'a>(asks: impl Iterator<Item = &'a Self>, resources: usize) -> Vec<i64> {
        let mut largest = vec![0; resources];
        for (resource, amount) in asks.flat_map(Self::amounts) {
            let most = &mut largest[usize::from(resource)];
            *most = amount.max(*most);
        }
        largest
    }

    /// The same resources as the bits of a word.
    pub fn mask(&self) -> u64 {
        self.amounts().fold(0, |mask, (resource, _)| mask | 1 << resource)
    }

    /// At least as much of each resource, in steps, so that many different pods ask for the same.
    pub fn rounded_up(&self) -> Self {
        let others = self.others.iter().map(|(resource, amount)| (*resource, step_from(*amount))).collect();
        Self { cpu_and_memory: self.cpu_and_memory.map(step_from), others }
    }

    /// How much of the room it takes, by weight, in that of these resources of which it takes most.
    pub fn size(&self, weights: &[f64], mask: u64) -> f64 {
        let asked = self.amounts().filter(|(resource, _)| mask & (1 << resource) != 0);
        asked.map(|(resource, amount)| weights[usize::from(resource)] * amount as f64).fold(0.0, f64::max)
    }
}

/// The amount, or the next larger of 1, 2, 3, 4, 6, 8, 12, 16, …
fn step_from(amount: i64) -> i64 {
    if amount <= 4 {
        return amount;
    }
    let Some(power) = u64::try_from(amount).ok().and_then(u64::checked_next_power_of_two) else {
        return amount;
    };
    let step = if power / 4 * 3 >= amount.unsigned_abs() { power / 4 * 3 } else { power };
    i64::try_from(step).unwrap_or(amount)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_rounded_up_by_less_than_half() {
        for amount in (0..5_000).chain([i64::MAX - 1, i64::MAX]) {
            let step = step_from(amount);
            assert!(step >= amount && step - amount <= amount / 2, "{amount}: {step}");
        }
        assert_eq!([5, 6, 7, 9, 12, 13].map(step_from), [6, 6, 8, 12, 12, 16]);
    }
}
