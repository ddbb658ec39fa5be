//! Settings of Kubernetes operators that decide what becomes of their pods.

use std::collections::BTreeMap;

use super::{names::Name, owner::Owner, uid::Uid};

/// A setting or component without which an operator does not act on an eviction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KnownSetting {
    /// What was found, as a clause about it: `that is always-allow`.
    Found(Name),
    Missing,
    /// The setting cannot be read, for this reason.
    Unreadable(Name),
}

/// What an owner whose settings decide it does after its pod has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerDecision {
    /// The owner, or one in its place, gets another pod once the old one is gone.
    Recreates,
    /// The owner ends with its pod.
    Ends,
}

/// Settings of operators, by the uid of the pods' owner. They are read only for a plan; a setting that was not read is
/// missing here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperatorSettings {
    pub settings: BTreeMap<Uid, KnownSetting>,
    pub decisions: BTreeMap<Uid, OwnerDecision>,
}

impl OperatorSettings {
    /// Returns what is known of the setting that the operator of this owner needs; `None` if it was not read.
    pub fn setting_of(&self, owner: &Owner) -> Option<&KnownSetting> {
        self.settings.get(&owner.uid)
    }

    /// Returns what this owner does after its pod has left; `None` if that is not known.
    pub fn decision_of(&self, owner: &Owner) -> Option<OwnerDecision> {
        self.decisions.get(&owner.uid).copied()
    }
}
