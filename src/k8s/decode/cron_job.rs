//! CronJobs.

use super::{
    Decoder, WatchEvent, has_metadata,
    leaf::{LenientBool, Text, or_default},
    meta::Meta,
    pool::SharedParts,
    protobuf::wire,
};
use kordon_core::cluster::{Change, CronJob};

/// Reads CronJobs.
#[derive(Debug, Default)]
pub struct CronJobDecoder(SharedParts);

impl Decoder for CronJobDecoder {
    type Wire<'a> = WireCronJob<'a>;

    fn change(&mut self, event: WatchEvent<WireCronJob<'_>>) -> Option<Change> {
        Some(Change::CronJob(event.map(|WireCronJob { metadata, spec }| CronJob {
            key: metadata.key(&mut self.0),
            uid: metadata.uid(),
            version: metadata.version(),
            schedule: self.0.name(&spec.schedule),
            time_zone: self.0.name(&spec.time_zone),
            is_suspended: spec.suspend.0,
        })))
    }

    fn tidy(&mut self) {
        self.0.tidy();
    }
}

wire! {
    /// A CronJob on the wire.
    pub struct WireCronJob<'a> {
        #[serde(deserialize_with = "or_default")]
        metadata: Meta<'a> = 1,
        #[serde(deserialize_with = "or_default")]
        spec: CronJobSpec<'a> = 2,
    }
}

wire! {
    struct CronJobSpec<'a> {
        schedule: Text<'a> = 1,
        suspend: LenientBool = 4,
        time_zone: Text<'a> = 8,
    }
}

has_metadata!(WireCronJob);
