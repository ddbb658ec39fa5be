//! PriorityClasses.

use super::{
    Decoder, WatchEvent, has_metadata,
    leaf::{Int, LenientBool, Text, or_default},
    meta::Meta,
    pool::SharedParts,
    protobuf::wire,
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

wire! {
    /// A PriorityClass on the wire.
    pub struct WirePriorityClass<'a> {
        #[serde(deserialize_with = "or_default")]
        metadata: Meta<'a> = 1,
        value: Int = 2,
        global_default: LenientBool = 3,
        preemption_policy: Text<'a> = 5,
    }
}

has_metadata!(WirePriorityClass);
