//! Services.

use serde::Deserialize;

use super::{
    Decoder, WatchEvent, Wire,
    leaf::{Pairs, or_default},
    meta::Meta,
    pool::SharedParts,
    protobuf::message,
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

/// A Service on the wire.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct WireService<'a> {
    #[serde(borrow, deserialize_with = "or_default")]
    metadata: Meta<'a>,
    #[serde(borrow, deserialize_with = "or_default")]
    spec: Spec<'a>,
}

message! { impl<'a> WireService<'a> { 1 => metadata, 2 => spec } }

impl Wire for WireService<'_> {
    fn meta(&self) -> &Meta<'_> {
        &self.metadata
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec<'a> {
    #[serde(borrow)]
    selector: Pairs<'a>,
}

message! { impl<'a> Spec<'a> { 2 => selector } }
