//! Leases: heartbeats of nodes, and the leader of the controllers.

use serde::Deserialize;

use super::{
    Decoder, WatchEvent, Wire,
    leaf::{Int, Text, Time, or_default},
    meta::Meta,
    pool::SharedParts,
    protobuf::{Message, NotAMessage, ReadField, WireValue, message},
};
use kordon_core::cluster::{Change, LeaderLease, Lease};

/// Reads the heartbeats of nodes.
#[derive(Debug, Default)]
pub struct LeaseDecoder(SharedParts);

impl Decoder for LeaseDecoder {
    type Wire<'a> = WireLease<'a>;

    fn change(&mut self, event: WatchEvent<WireLease<'_>>) -> Option<Change> {
        Some(Change::Lease(event.map(|wire| Lease {
            node: wire.meta().node_name(&mut self.0),
            version: wire.meta().version(),
            renewed: wire.spec.renew_time.time(),
            duration: wire.spec.lease_duration_seconds.seconds(),
        })))
    }

    fn tidy(&mut self) {
        self.0.tidy();
    }
}

/// Reads the Lease of the controller manager.
#[derive(Debug, Default)]
pub struct LeaderDecoder {
    pool: SharedParts,
    /// Whether the current list contained the Lease.
    listed: bool,
}

impl Decoder for LeaderDecoder {
    type Wire<'a> = WireLease<'a>;

    fn change(&mut self, event: WatchEvent<WireLease<'_>>) -> Option<Change> {
        match event {
            WatchEvent::ListStarted => {
                self.listed = false;
                None
            }
            WatchEvent::Listed(wire) | WatchEvent::Prefetched(wire) | WatchEvent::Applied(wire) => {
                self.listed = true;
                Some(Change::Leader(Some(self.lease(&wire))))
            }
            WatchEvent::ListDone => (!self.listed).then_some(Change::Leader(None)),
            WatchEvent::Deleted(_) => Some(Change::Leader(None)),
        }
    }

    fn tidy(&mut self) {
        self.pool.tidy();
    }
}

impl LeaderDecoder {
    fn lease(&mut self, wire: &WireLease<'_>) -> LeaderLease {
        LeaderLease {
            version: wire.meta().version(),
            holder: self.pool.name(&wire.spec.holder_identity),
            acquired: wire.spec.acquire_time.time(),
            renewed: wire.spec.renew_time.time(),
            duration: wire.spec.lease_duration_seconds.seconds(),
        }
    }
}

/// A Lease on the wire.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct WireLease<'a> {
    #[serde(borrow, deserialize_with = "or_default")]
    metadata: LeaseMeta<'a>,
    #[serde(borrow, deserialize_with = "or_default")]
    spec: Spec<'a>,
}

message! { impl<'a> WireLease<'a> { 1 => metadata, 2 => spec } }

/// The metadata of a Lease. Each node renews its Lease every few seconds, so in protobuf only the fields for heartbeats
/// are read.
#[derive(Default, Deserialize)]
#[serde(transparent)]
struct LeaseMeta<'a>(#[serde(borrow)] Meta<'a>);

impl<'a> Message<'a> for LeaseMeta<'a> {
    fn field(&mut self, number: u64, value: WireValue<'a>) -> Result<(), NotAMessage> {
        let Self(metadata) = self;
        match number {
            1 => metadata.name.read(value),
            6 => metadata.resource_version.read(value),
            12 => metadata.annotations.read(value),
            _ => Ok(()),
        }
    }
}

impl Wire for WireLease<'_> {
    fn meta(&self) -> &Meta<'_> {
        &self.metadata.0
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec<'a> {
    #[serde(borrow)]
    holder_identity: Text<'a>,
    lease_duration_seconds: Int,
    #[serde(borrow)]
    acquire_time: Time<'a>,
    #[serde(borrow)]
    renew_time: Time<'a>,
}

message! {
    impl<'a> Spec<'a> { 1 => holder_identity, 2 => lease_duration_seconds, 3 => acquire_time, 4 => renew_time }
}
