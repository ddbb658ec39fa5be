//! Services.

use minicbor::{Decode, Encode};

use super::{
    encoding::EncodingContext,
    labels::Labels,
    names::{Key, Name},
    table::{TableObject, Version},
};

/// A Service with its selector. The scheduler spreads the pods that the Service selects, unless they have spread
/// constraints of their own.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct Service {
    #[n(0)]
    pub key: Key,
    #[n(1)]
    pub version: Version,
    /// `spec.selector`. An empty one selects no pod.
    #[n(2)]
    pub selector: Box<[(Name, Name)]>,
}

impl Service {
    pub fn selects(&self, labels: &Labels) -> bool {
        !self.selector.is_empty() && self.selector.iter().all(|(key, value)| labels.get(key) == Some(value))
    }
}

impl TableObject for Service {
    type Key = Key;
    fn key(&self) -> Key {
        self.key.clone()
    }
    fn version(&self) -> Version {
        self.version
    }
}
