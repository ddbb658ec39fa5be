//! Leases: heartbeats of nodes, and the leader of the controllers.

use serde::{Deserialize, Deserializer, de::IgnoredAny};

use super::{
    Decoder, WatchEvent, Wire,
    leaf::{Int, LenientList, Text, Time, or_default},
    meta::{KnownAnnotations, Meta},
    pool::SharedParts,
    protobuf::{Message, NotAMessage, ReadField, WireValue, wire},
};
use kordon_core::cluster::{Change, LeaderLease, Lease};
use kordon_time::ClusterTime;

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
            written: wire.metadata.written.0,
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
    /// Returns the Lease of a controller.
    pub fn lease(&mut self, wire: &WireLease<'_>) -> LeaderLease {
        LeaderLease {
            version: wire.meta().version(),
            holder: self.pool.name(&wire.spec.holder_identity),
            acquired: wire.spec.acquire_time.time(),
            renewed: wire.spec.renew_time.time(),
            duration: wire.spec.lease_duration_seconds.seconds(),
            full_disruption: wire.meta().annotations.full_disruption.clone(),
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
/// are read.
#[derive(Default)]
struct LeaseMeta<'a> {
    meta: Meta<'a>,
    written: RenewalWritten,
}

/// [`LeaseMeta`] in JSON.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct LeaseMetaFields<'a> {
    name: Text<'a>,
    resource_version: Text<'a>,
    annotations: KnownAnnotations<'a>,
    managed_fields: LenientList<ManagedFields<'a>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for LeaseMeta<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let LeaseMetaFields { name, resource_version, annotations, managed_fields } =
            LeaseMetaFields::deserialize(deserializer)?;
        let mut written = RenewalWritten::default();
        managed_fields.iter().for_each(|entry| written.add(entry));
        Ok(Self { meta: Meta { name, resource_version, annotations, ..Meta::default() }, written })
    }
}

impl<'a> Message<'a> for LeaseMeta<'a> {
    fn field(&mut self, number: u64, value: WireValue<'a>) -> Result<(), NotAMessage> {
        let Self { meta, written } = self;
        match number {
            1 => meta.name.read(value),
            6 => meta.resource_version.read(value),
            12 => meta.annotations.read(value),
            17 => {
                let mut entry = ManagedFields::default();
                entry.read(value)?;
                written.add(&entry);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Newest time at which a manager of `spec.renewTime` changed the Lease.
#[derive(Default)]
struct RenewalWritten(Option<ClusterTime>);

impl RenewalWritten {
    /// Takes one entry of `metadata.managedFields` into account. An entry without `fieldsV1` counts too, because this
    /// field is often removed from stored objects.
    fn add(&mut self, entry: &ManagedFields<'_>) {
        if *entry.subresource == *"" && entry.fields_v1.may_own_renew_time() {
            self.0 = self.0.max(entry.time.time());
        }
    }
}

wire! {
    /// One of `metadata.managedFields`.
    struct ManagedFields<'a> {
        time: Time<'a> = 4,
        fields_v1: OwnedFields = 7,
        subresource: Text<'a> = 8,
    }
}

/// `fieldsV1` of a manager: the fields that it set last.
#[derive(Default)]
enum OwnedFields {
    #[default]
    Absent,
    Present {
        renew_time: bool,
    },
}

impl OwnedFields {
    const fn may_own_renew_time(&self) -> bool {
        match self {
            Self::Absent => true,
            Self::Present { renew_time } => *renew_time,
        }
    }
}

impl<'a> ReadField<'a> for OwnedFields {
    /// In protobuf the fields are JSON within a message. The JSON is only searched, because parsing it for every
    /// heartbeat would take longer than reading the rest of the Lease.
    fn read(&mut self, value: WireValue<'a>) -> Result<(), NotAMessage> {
        const RENEW_TIME: &[u8] = br#""f:renewTime""#;
        value.each_field(|number, value| {
            if let (1, WireValue::Bytes(json)) = (number, value) {
                let renew_time = json.windows(RENEW_TIME.len()).any(|window| window == RENEW_TIME);
                *self = Self::Present { renew_time };
            }
            Ok(())
        })
    }
}

impl<'de> Deserialize<'de> for OwnedFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Fields {
            #[serde(rename = "f:spec", default)]
            spec: Spec,
        }
        #[derive(Default, Deserialize)]
        struct Spec {
            #[serde(rename = "f:renewTime")]
            renew_time: Option<IgnoredAny>,
        }
        let fields: Option<Fields> = Option::deserialize(deserializer)?;
        Ok(fields
            .map_or(Self::Absent, |fields| Self::Present { renew_time: fields.spec.renew_time.is_some() }))
    }
}

impl Wire for WireLease<'_> {
    fn meta(&self) -> &Meta<'_> {
        &self.metadata.meta
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::k8s::decode::protobuf::Fields;

    fn written(managed: &Value) -> Option<String> {
        let lease = json!({"metadata": {"name": "n", "managedFields": managed}}).to_string();
        let lease: WireLease<'_> = serde_json::from_str(&lease).expect("a Lease");
        assert_eq!(*lease.meta().name, *"n");
        lease.metadata.written.0.map(ClusterTime::to_time)
    }

    #[test]
    fn the_time_of_a_renewal_is_that_of_the_manager_of_renew_time() {
        let entry = |time: &str, fields: Value| json!({"manager": "m", "time": time, "fieldsV1": fields});
        let [early, late] = ["2026-01-01T00:00:00Z", "2026-01-01T00:00:10Z"];
        let renews = json!({"f:spec": {"f:renewTime": {}, "f:holderIdentity": {}}});
        let labels = json!({"f:metadata": {"f:labels": {}}});
        let stripped = json!({"manager": "m", "time": late, "fieldsType": "FieldsV1"});
        assert_eq!(
            written(&json!([entry(early, renews.clone()), entry(late, labels)])).as_deref(),
            Some(early)
        );
        assert_eq!(
            written(&json!([entry(late, renews.clone()), entry(early, renews)])).as_deref(),
            Some(late)
        );
        assert_eq!(written(&json!([stripped])).as_deref(), Some(late), "without its fields");
        for nothing in [json!(null), json!([]), json!([{"manager": "m"}]), json!([{"time": 5}])] {
            assert_eq!(written(&nothing), None, "{nothing}");
        }
    }

    #[test]
    fn the_fields_of_a_manager_are_found_in_protobuf() {
        let of = |json: &[u8]| {
            let length = u8::try_from(json.len()).expect("short");
            let message = [&[0x3a, length + 2, 0x0a, length][..], json].concat();
            let (number, value) = Fields(&message).next().expect("a message").expect("a field");
            let mut entry = ManagedFields::default();
            entry.field(number, value).expect("a message");
            entry.fields_v1.may_own_renew_time()
        };
        assert!(of(br#"{"f:spec":{"f:renewTime":{}}}"#));
        assert!(!of(br#"{"f:metadata":{"f:labels":{}}}"#));
    }
}
