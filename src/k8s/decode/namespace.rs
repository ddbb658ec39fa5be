//! Namespaces.

use super::{
    Decoder, WatchEvent, has_metadata,
    leaf::{Text, or_default},
    meta::Meta,
    pool::SharedParts,
    protobuf::wire,
};
use kordon_core::cluster::{Change, Namespace, NamespaceObject};

/// Reads namespaces.
#[derive(Debug, Default)]
pub struct NamespaceDecoder(SharedParts);

impl Decoder for NamespaceDecoder {
    type Wire<'a> = WireNamespace<'a>;

    fn change(&mut self, event: WatchEvent<WireNamespace<'_>>) -> Option<Change> {
        Some(Change::Namespace(event.map(|wire| NamespaceObject {
            name: Namespace(self.0.name(&wire.metadata.name)),
            version: wire.metadata.version(),
            labels: self.0.labels(&wire.metadata.labels),
            terminating: *wire.status.phase == *"Terminating",
        })))
    }

    fn tidy(&mut self) {
        self.0.tidy();
    }
}

wire! {
    /// A Namespace on the wire.
    pub struct WireNamespace<'a> {
        #[serde(deserialize_with = "or_default")]
        metadata: Meta<'a> = 1,
        #[serde(deserialize_with = "or_default")]
        status: Status<'a> = 3,
    }
}

has_metadata!(WireNamespace);

wire! {
    struct Status<'a> {
        phase: Text<'a> = 1,
    }
}
