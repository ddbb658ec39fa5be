//! PriorityClasses.

use serde::Deserialize;

use super::{
    Decoder, WatchEvent, Wire,
    leaf::{Int, LenientBool, Text, or_default},
    meta::Meta,
    pool::SharedParts,
    protobuf::message,
};
use kordon_core::cluster::{Change, PriorityClass};

/// Reads priority classes.
#[derive(Debug, Default)]
pub struct PriorityClassDecoder(SharedParts);

impl Decoder for PriorityClassDecoder {
    type Wire<'a> = WirePriorityClass<'a>;

    fn change(&mut self, event: WatchEvent<WirePriorityClass<'_>>) -> Option<Change> {
        Some(Change::PriorityClass(event.map(|wire| PriorityClass {
            name: self.0.name(&wire.metadata.name),
            version: wire.metadata.version(),
            value: wire.value.narrow().unwrap_or_default(),
            global_default: wire.global_default.0,
            never_preempts: *wire.preemption_policy == *"Never",
        })))
    }

    fn tidy(&mut self) {
        self.0.tidy();
    }
}

/// A PriorityClass on the wire.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct WirePriorityClass<'a> {
    #[serde(borrow, deserialize_with = "or_default")]
    metadata: Meta<'a>,
    value: Int,
    global_default: LenientBool,
    #[serde(borrow)]
    preemption_policy: Text<'a>,
}

message! {
    impl<'a> WirePriorityClass<'a> { 1 => metadata, 2 => value, 3 => global_default, 5 => preemption_policy }
}

impl Wire for WirePriorityClass<'_> {
    fn meta(&self) -> &Meta<'_> {
        &self.metadata
    }
}
