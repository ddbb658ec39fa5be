//! The whole object of a node or pod, as the server has it: read when somebody looks at it, and kept no longer.

use std::{collections::BTreeMap, sync::Arc};

/// What the store leaves out of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchedObject {
    pub annotations: BTreeMap<Arc<str>, Arc<str>>,
    /// All of it but `metadata.managedFields`, as `kubectl get -o yaml` shows it, line by line.
    pub yaml: Vec<Arc<str>>,
}

/// The object, as far as it could be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectRead {
    /// None until it has been read.
    pub object: Option<FetchedObject>,
    /// Why it is not known, or not as it is now.
    pub failure: Option<String>,
}

impl ObjectRead {
    /// What is known after a newer try: what was read before stays beside a failure.
    #[must_use]
    pub fn after(self, before: Self) -> Self {
        Self { object: self.object.or(before.object), failure: self.failure }
    }
}
