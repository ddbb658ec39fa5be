//! Services.

use super::{
    Decoder, WatchEvent, has_metadata,
    leaf::{Pairs, or_default},
    meta::Meta,
    pool::SharedParts,
    protobuf::wire,
};
use kordon_core::cluster::{Change, Service};

/// Reads services.
#[derive(Debug, Default)]
pub struct ServiceDecoder(SharedParts);

impl Decoder for ServiceDecoder {
    type Wire<'a> = WireService<'a>;

    fn change(&mut self, event: WatchEvent<WireService<'_>>) -> Option<Change> {
        let pool = &mut self.0;
        Some(Change::Service(event.map(|wire| {
            let selector = &wire.spec.selector.0;
            Service {
                key: wire.metadata.key(pool),
                version: wire.metadata.version(),
                selector: selector.iter().map(|(key, value)| (pool.name(key), pool.name(value))).collect(),
            }
        })))
    }

    fn tidy(&mut self) {
        self.0.tidy();
    }
}

wire! {
    /// A Service on the wire.
    pub struct WireService<'a> {
        #[serde(deserialize_with = "or_default")]
        metadata: Meta<'a> = 1,
        #[serde(deserialize_with = "or_default")]
        spec: Spec<'a> = 2,
    }
}

has_metadata!(WireService);

wire! {
    struct Spec<'a> {
        selector: Pairs<'a> = 2,
    }
}
