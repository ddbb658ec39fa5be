//! Namespaces.

use serde::Deserialize;

use super::{
    Decoder, WatchEvent, Wire,
    leaf::{Text, or_default},
    meta::Meta,
    pool::SharedParts,
    protobuf::message,
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

/// A Namespace on the wire.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct WireNamespace<'a> {
    #[serde(borrow, deserialize_with = "or_default")]
    metadata: Meta<'a>,
    #[serde(borrow, deserialize_with = "or_default")]
    status: Status<'a>,
}

message! { impl<'a> WireNamespace<'a> { 1 => metadata, 3 => status } }

impl Wire for WireNamespace<'_> {
    fn meta(&self) -> &Meta<'_> {
        &self.metadata
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status<'a> {
    #[serde(borrow)]
    phase: Text<'a>,
}

message! { impl<'a> Status<'a> { 1 => phase } }
