//! Recorded replacements of pods that stay in the model. A replacement is left out as long as the replaced pod stays.

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::{Key, Uid};

/// Pods that stay in the model although they were evicted in the recording, and their recorded replacements, by owner.
#[derive(Clone, Debug, Default)]
pub struct Replacements {
    by_owner: BTreeMap<Uid, Replaced>,
    owner_of: BTreeMap<Key, Uid>,
    left_out: BTreeMap<Key, Uid>,
}

#[derive(Clone, Debug, Default)]
struct Replaced {
    stay: BTreeSet<Key>,
    left_out: BTreeSet<Key>,
}

impl Replacements {
    /// Records that a pod stays in the model although it was evicted in the recording.
    pub fn on_stays(&mut self, pod: &Key, owner: &Uid) {
        self.owner_of.insert(pod.clone(), owner.clone());
        self.by_owner.entry(owner.clone()).or_default().stay.insert(pod.clone());
    }

    /// Whether the pod stays in the model although it was evicted in the recording.
    pub fn stays(&self, pod: &Key) -> bool {
        self.owner_of.contains_key(pod)
    }

    /// Records that the pod no longer stays in the model, because the engine evicted it or somebody else deleted it.
    pub fn on_left(&mut self, pod: &Key) {
        let Some(owner) = self.owner_of.remove(pod) else { return };
        if let Some(replaced) = self.by_owner.get_mut(&owner) {
            replaced.stay.remove(pod);
        }
    }

    /// Handles the creation of a pod. Returns whether the new pod is left out. It is left out if it has the name of a
    /// pod that stays, or replaces such a pod.
    pub fn leaves_out(&mut self, pod: &Key, owner: Option<&Uid>) -> bool {
        let Some(owner) = owner else { return false };
        let Some(replaced) = self.by_owner.get_mut(owner) else { return false };
        let is_replacement = replaced.stay.contains(pod) || replaced.left_out.len() < replaced.stay.len();
        if is_replacement {
            replaced.left_out.insert(pod.clone());
            self.left_out.insert(pod.clone(), owner.clone());
        }
        is_replacement
    }

    pub fn is_left_out(&self, pod: &Key) -> bool {
        self.left_out.contains_key(pod)
    }

    /// Records that a pod which was left out is gone.
    pub fn on_gone(&mut self, pod: &Key) {
        let Some(owner) = self.left_out.remove(pod) else { return };
        if let Some(replaced) = self.by_owner.get_mut(&owner) {
            replaced.left_out.remove(pod);
        }
    }

    /// Returns the replacements that are no longer left out, because their old pods have left the model. A replacement
    /// remains left out while another pod has its name.
    pub fn release(&mut self, is_free: impl Fn(&Key) -> bool) -> Vec<Key> {
        let mut released = Vec::new();
        if self.left_out.is_empty() {
            return released;
        }
        for replaced in self.by_owner.values_mut() {
            while replaced.left_out.len() > replaced.stay.len() {
                let Some(pod) = replaced.left_out.iter().find(|pod| is_free(pod)).cloned() else { break };
                replaced.left_out.remove(&pod);
                self.left_out.remove(&pod);
                released.push(pod);
            }
        }
        self.by_owner.retain(|_, replaced| !(replaced.stay.is_empty() && replaced.left_out.is_empty()));
        released
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_pods_are_left_out_as_stay() {
        let key = |name: &str| Key::new("d", name);
        let owner = Uid::from("owner");
        let mut replacements = Replacements::default();
        assert!(!replacements.leaves_out(&key("other"), Some(&owner)));
        replacements.on_stays(&key("a"), &owner);
        assert!(replacements.leaves_out(&key("b"), Some(&owner)));
        assert!(!replacements.leaves_out(&key("c"), Some(&owner)), "a scale-up");
        assert!(replacements.release(|_| true).is_empty());
        replacements.on_left(&key("a"));
        assert_eq!(replacements.release(|_| true), [key("b")]);
        assert!(!replacements.is_left_out(&key("b")) && !replacements.stays(&key("a")));
    }

    #[test]
    fn a_pod_of_the_same_name_waits_until_the_name_is_free() {
        let key = Key::new("d", "web-0");
        let owner = Uid::from("set");
        let mut replacements = Replacements::default();
        replacements.on_stays(&key, &owner);
        assert!(replacements.leaves_out(&key, Some(&owner)));
        replacements.on_left(&key);
        assert!(replacements.release(|_| false).is_empty());
        assert_eq!(replacements.release(|_| true), [key]);
    }
}
