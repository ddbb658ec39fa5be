//! A whole node or pod as the server has it. kordon reads it when a user looks at it, and does not keep it afterwards.

use std::{collections::BTreeMap, sync::Arc};

/// The annotations and the YAML of an object, neither of which kordon stores.
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
    /// Merges this result of a read into an earlier result. If this read failed, keeps the earlier object and adds the
    /// failure.
    #[must_use]
    pub fn after(self, before: Self) -> Self {
        Self { object: self.object.or(before.object), failure: self.failure }
    }
}
