//! The whole object of a node or pod as the server has it: read when a user looks at it, and not kept afterwards.

use std::{collections::BTreeMap, sync::Arc};

/// The parts of an object that kordon does not store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchedObject {
    pub annotations: BTreeMap<Arc<str>, Arc<str>>,
    /// The whole object without `metadata.managedFields`, as `kubectl get -o yaml` shows it, line by line.
    pub yaml: Vec<Arc<str>>,
}

/// The result of reading an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectRead {
    /// The object; none until it has been read.
    pub object: Option<FetchedObject>,
    /// Why the object is unknown or outdated.
    pub failure: Option<String>,
}

impl ObjectRead {
    /// Merges the result of a newer read into an earlier one: after a failure the earlier object stays, together with
    /// the failure.
    #[must_use]
    pub fn after(self, before: Self) -> Self {
        Self { object: self.object.or(before.object), failure: self.failure }
    }
}
