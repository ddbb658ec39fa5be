//! Leases: heartbeats of nodes, and the leader of the controllers.

use serde::Deserialize;

use super::{
    Decoder, WatchEvent, Wire,
    leaf::{Int, Text, Time, or_default},
    meta::Meta,
    pool::SharedParts,
    protobuf::{Message, NotAMessage, ReadField, WireValue, wire},
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

/// Reads the Lease of kube-controller-manager.
#[derive(Debug, Default)]
pub struct LeaderDecoder {
    pool: SharedParts,
    /// Whether the current list has contained the Lease so far.
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

wire! {
    /// A Lease on the wire.
    pub struct WireLease<'a> {
        #[serde(deserialize_with = "or_default")]
        metadata: LeaseMeta<'a> = 1,
        #[serde(deserialize_with = "or_default")]
        spec: Spec<'a> = 2,
    }
}

/// The metadata of a Lease. Each node renews its Lease every few seconds, so only the metadata fields for heartbeats
/// are read from protobuf.
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

wire! {
    struct Spec<'a> {
        holder_identity: Text<'a> = 1,
        lease_duration_seconds: Int = 2,
        acquire_time: Time<'a> = 3,
        renew_time: Time<'a> = 4,
    }
}
