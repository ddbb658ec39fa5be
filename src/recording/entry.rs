//! Entries: the messages of the watches, each with the time at which it was received.
//!
//! ```text
//! entry  = [nanoseconds since the entry before, 0, [change*]]
//!        | [nanoseconds since the entry before, 1, [kind, health]]
//!        | [nanoseconds since the entry before, 2, clock difference]
//!        | [nanoseconds since the entry before, 3, text of an error]
//!        | [nanoseconds since the entry before, 4, why the block has no other entries]
//!        | [nanoseconds since the entry before, 5, Lease of `kordon controller` | nothing]
//! change = [kind, event (0 to 5), object | key of an object | nothing]
//! ```
//!
//! A reader skips an entry with a number that it does not know.

use std::iter::Peekable;

use minicbor::{Decode, Decoder, Encode, Encoder};

use super::RecordingError;
use crate::k8s::feed::{FeedEvent, FeedHealth};
use kordon_core::cluster::{
    Change, DeviceChange, FeedKind, LeaderLease, Name, ObjectEvent, TableObject, Workload, WorkloadKind,
    encoding::Dictionary,
};
use kordon_time::Span;

type ReadError = minicbor::decode::Error;

/// Approximate limit of the size of an entry, in bytes. A longer message, such as the list of a large cluster, is split
/// into several entries.
const ENTRY: usize = 256 << 10;

const CHANGES: u8 = 0;
const HEALTH: u8 = 1;
const CLOCK_DIFFERENCE: u8 = 2;
const TROUBLE: u8 = 3;
const GAP: u8 = 4;
const KORDON_LEASE: u8 = 5;

/// Appends one entry with as many of the changes as fit. `write` encodes each change.
///
/// # Errors
/// An object cannot be encoded.
pub fn write_changes<C>(
    changes: &mut Peekable<impl Iterator<Item = C>>,
    write: impl Fn(C, &mut Vec<u8>, &mut Dictionary) -> Result<(), RecordingError>,
    since_last: Span,
    bytes: &mut Vec<u8>,
    dictionary: &mut Dictionary,
) -> Result<(), RecordingError> {
    start(bytes, since_last, CHANGES)?;
    let begins = bytes.len();
    Encoder::new(&mut *bytes).begin_array().map_err(encoding)?;
    while bytes.len() - begins < ENTRY
        && let Some(change) = changes.next()
    {
        write(change, bytes, dictionary)?;
    }
    Encoder::new(bytes).end().map(drop).map_err(encoding)
}

/// Appends a message without object changes as an entry.
///
/// # Errors
/// The message cannot be encoded.
pub fn write(
    message: &PlainMessage<'_>,
    since_last: Span,
    bytes: &mut Vec<u8>,
    dictionary: &mut Dictionary,
) -> Result<(), RecordingError> {
    match message {
        PlainMessage::Health(kind, health) => {
            start(bytes, since_last, HEALTH)?;
            put(&(kind, health), bytes, dictionary)
        }
        PlainMessage::ClockDifference(difference) => {
            start(bytes, since_last, CLOCK_DIFFERENCE)?;
            put(difference, bytes, dictionary)
        }
        PlainMessage::Trouble(text) => {
            start(bytes, since_last, TROUBLE)?;
            put(&Name::from(*text), bytes, dictionary)
        }
        PlainMessage::Gap(why) => {
            start(bytes, since_last, GAP)?;
            put(&Name::from(*why), bytes, dictionary)
        }
        PlainMessage::KordonLease(lease) => {
            start(bytes, since_last, KORDON_LEASE)?;
            put(lease, bytes, dictionary)
        }
    }
}

/// A message without changes of watched objects.
#[derive(Clone, Copy, Debug)]
pub enum PlainMessage<'a> {
    Health(FeedKind, &'a FeedHealth),
    ClockDifference(Span),
    Trouble(&'a str),
    /// A gap in the recording, with the reason. The times of the block are the start and end of the gap.
    Gap(&'a str),
    /// The Lease of `kordon controller` as it was read. It has an entry of its own, which an older kordon skips.
    KordonLease(Option<&'a LeaderLease>),
}

/// Content of an entry.
#[derive(Debug)]
pub enum EntryContent {
    Message(FeedEvent),
    /// A gap in the recording, with the reason. The times of the block are the start and end of the gap.
    Gap(String),
    /// An entry of a kind that this version of kordon does not know.
    Unknown,
}

/// Reads the next entry: the time since the entry before, and its content.
///
/// # Errors
/// The bytes are not an entry as [`write`] writes it.
pub fn read(
    decoder: &mut Decoder<'_>,
    dictionary: &mut Dictionary,
) -> Result<(Span, EntryContent), ReadError> {
    if decoder.array()? != Some(3) {
        return Err(ReadError::message("an entry has three parts"));
    }
    let since_last = Span::from_nanos(i64::try_from(decoder.u64()?).map_err(ReadError::message)?);
    let message = match decoder.u8()? {
        CHANGES => FeedEvent::Changes(read_changes(decoder, dictionary)?),
        HEALTH => {
            let (kind, health) = <(FeedKind, FeedHealth)>::decode(decoder, dictionary)?;
            FeedEvent::Health(kind, health)
        }
        CLOCK_DIFFERENCE => FeedEvent::ClockDifference(Span::decode(decoder, dictionary)?),
        TROUBLE => FeedEvent::Trouble(read_text(decoder, dictionary)?),
        KORDON_LEASE => {
            let lease = Option::<LeaderLease>::decode(decoder, dictionary)?;
            FeedEvent::Changes(vec![Change::KordonLease(lease)])
        }
        GAP => return Ok((since_last, EntryContent::Gap(read_text(decoder, dictionary)?))),
        _ => {
            decoder.skip()?;
            return Ok((since_last, EntryContent::Unknown));
        }
    };
    Ok((since_last, EntryContent::Message(message)))
}

fn read_text(decoder: &mut Decoder<'_>, dictionary: &mut Dictionary) -> Result<String, ReadError> {
    Ok(Name::decode(decoder, dictionary)?.as_str().to_owned())
}

fn start(bytes: &mut Vec<u8>, since_last: Span, kind: u8) -> Result<(), RecordingError> {
    let nanos = u64::try_from(since_last.as_nanos()).unwrap_or(0);
    let mut encoder = Encoder::new(bytes);
    encoder.array(3).and_then(|encoder| encoder.u64(nanos)?.u8(kind)?.ok()).map_err(encoding)
}

/// Whether a change is recorded in an entry with other changes. Only changes that come from the watch of a whole kind
/// are, not objects that were read for display. Changes of a kind's `Known` state are not recorded either, because readers
/// derive this state from the health of the kind's watch.
pub fn is_recorded(change: &Change) -> bool {
    !matches!(change, Change::KordonLease(_) | Change::Known(..) | Change::Read(_) | Change::KnownIn(..))
}

/// Appends one change to an entry.
///
/// # Errors
/// An object cannot be encoded.
pub fn write_change(
    change: &Change,
    bytes: &mut Vec<u8>,
    dictionary: &mut Dictionary,
) -> Result<(), RecordingError> {
    match change {
        Change::Node(event) => write_event(FeedKind::Nodes, event, bytes, dictionary),
        Change::Lease(event) => write_event(FeedKind::Leases, event, bytes, dictionary),
        Change::Pod(event) => write_event(FeedKind::Pods, event, bytes, dictionary),
        Change::Budget(event) => write_event(FeedKind::Budgets, event, bytes, dictionary),
        Change::Workload(kind, event) => write_event(FeedKind::Workloads(*kind), event, bytes, dictionary),
        Change::PriorityClass(event) => write_event(FeedKind::PriorityClasses, event, bytes, dictionary),
        Change::Namespace(event) => write_event(FeedKind::Namespaces, event, bytes, dictionary),
        Change::Service(event) => write_event(FeedKind::Services, event, bytes, dictionary),
        Change::Claim(event) => write_event(FeedKind::Claims, event, bytes, dictionary),
        Change::Volume(event) => write_event(FeedKind::Volumes, event, bytes, dictionary),
        Change::StorageClass(event) => write_event(FeedKind::StorageClasses, event, bytes, dictionary),
        Change::CsiNode(event) => write_event(FeedKind::CsiNodes, event, bytes, dictionary),
        Change::CsiDriver(event) => write_event(FeedKind::CsiDrivers, event, bytes, dictionary),
        Change::StorageCapacity(event) => write_event(FeedKind::StorageCapacities, event, bytes, dictionary),
        Change::Quota(event) => write_event(FeedKind::Quotas, event, bytes, dictionary),
        Change::Device(DeviceChange::Class(event)) => {
            write_event(FeedKind::DeviceClasses, event, bytes, dictionary)
        }
        Change::Device(DeviceChange::Claim(event)) => {
            write_event(FeedKind::ResourceClaims, event, bytes, dictionary)
        }
        Change::Device(DeviceChange::Slice(event)) => {
            write_event(FeedKind::ResourceSlices, event, bytes, dictionary)
        }
        Change::Device(DeviceChange::Rule(event)) => {
            write_event(FeedKind::DeviceTaintRules, event, bytes, dictionary)
        }
        Change::Device(DeviceChange::Template(event)) => {
            write_event(FeedKind::ClaimTemplates, event, bytes, dictionary)
        }
        Change::CronJob(event) => write_event(FeedKind::CronJobs, event, bytes, dictionary),
        Change::Leader(leader) => put(&(FeedKind::Leader, APPLIED, leader), bytes, dictionary),
        // Autoscalers and settings of operators are read only for a plan, NodeClaims, NodeHealthChecks and
        // VolumeAttachments only for the details of an object, and periods of kubelets only while their machines stop. None
        // of them is recorded. kordon's Lease has entries of its own.
        Change::Autoscalers(_)
        | Change::NodeClaims(_)
        | Change::HealthChecks(_)
        | Change::ShutdownPeriods(..)
        | Change::VolumeAttachments(_)
        | Change::OperatorSettings(_)
        | Change::KordonLease(_)
        | Change::Known(..)
        | Change::Read(_)
        | Change::KnownIn(..) => Ok(()),
    }
}

const LIST_STARTED: u8 = 0;
const LISTED: u8 = 1;
const LIST_DONE: u8 = 2;
const PREFETCHED: u8 = 3;
const APPLIED: u8 = 4;
const DELETED: u8 = 5;

/// Appends one change to an entry: an event about objects of a kind.
///
/// # Errors
/// An object cannot be encoded.
pub fn write_event<T>(
    kind: FeedKind,
    event: &ObjectEvent<T>,
    bytes: &mut Vec<u8>,
    dictionary: &mut Dictionary,
) -> Result<(), RecordingError>
where
    T: TableObject + Encode<Dictionary>,
    T::Key: Encode<Dictionary>,
{
    match event {
        ObjectEvent::ListStarted => put(&(kind, LIST_STARTED, ()), bytes, dictionary),
        ObjectEvent::Listed(object) => put(&(kind, LISTED, object), bytes, dictionary),
        ObjectEvent::ListDone => put(&(kind, LIST_DONE, ()), bytes, dictionary),
        ObjectEvent::Prefetched(object) => put(&(kind, PREFETCHED, object), bytes, dictionary),
        ObjectEvent::Applied(object) => put(&(kind, APPLIED, object), bytes, dictionary),
        ObjectEvent::Deleted(key) => put(&(kind, DELETED, key), bytes, dictionary),
    }
}

fn put(
    value: &impl Encode<Dictionary>,
    bytes: &mut Vec<u8>,
    dictionary: &mut Dictionary,
) -> Result<(), RecordingError> {
    value.encode(&mut Encoder::new(bytes), dictionary).map_err(encoding)
}

fn encoding(error: impl ToString) -> RecordingError {
    RecordingError::Encoding(error.to_string())
}

fn read_changes(decoder: &mut Decoder<'_>, dictionary: &mut Dictionary) -> Result<Vec<Change>, ReadError> {
    let changes = decoder.array_iter_with::<_, ReadChange>(dictionary)?;
    changes.map(|change| change.map(|ReadChange(change)| change)).collect()
}

struct ReadChange(Change);

impl<'b> Decode<'b, Dictionary> for ReadChange {
    fn decode(decoder: &mut Decoder<'b>, dictionary: &mut Dictionary) -> Result<Self, ReadError> {
        read_change(decoder, dictionary).map(Self)
    }
}

fn read_change(decoder: &mut Decoder<'_>, dictionary: &mut Dictionary) -> Result<Change, ReadError> {
    if decoder.array()? != Some(3) {
        return Err(ReadError::message("a change has three parts"));
    }
    Ok(match FeedKind::decode(decoder, dictionary)? {
        FeedKind::Nodes => Change::Node(read_event(decoder, dictionary)?),
        FeedKind::Leases => Change::Lease(read_event(decoder, dictionary)?),
        FeedKind::Pods => Change::Pod(read_event(decoder, dictionary)?),
        FeedKind::Budgets => Change::Budget(read_event(decoder, dictionary)?),
        FeedKind::Workloads(kind) => {
            let event = read_event(decoder, dictionary)?;
            if workload_kind(&event).is_some_and(|own| own != kind) {
                return Err(ReadError::message("a workload in the list of another kind"));
            }
            Change::Workload(kind, event)
        }
        FeedKind::PriorityClasses => Change::PriorityClass(read_event(decoder, dictionary)?),
        FeedKind::Namespaces => Change::Namespace(read_event(decoder, dictionary)?),
        FeedKind::Services => Change::Service(read_event(decoder, dictionary)?),
        FeedKind::Claims => Change::Claim(read_event(decoder, dictionary)?),
        FeedKind::Volumes => Change::Volume(read_event(decoder, dictionary)?),
        FeedKind::StorageClasses => Change::StorageClass(read_event(decoder, dictionary)?),
        FeedKind::CsiNodes => Change::CsiNode(read_event(decoder, dictionary)?),
        FeedKind::CsiDrivers => Change::CsiDriver(read_event(decoder, dictionary)?),
        FeedKind::StorageCapacities => Change::StorageCapacity(read_event(decoder, dictionary)?),
        FeedKind::Quotas => Change::Quota(read_event(decoder, dictionary)?),
        FeedKind::DeviceClasses => Change::Device(DeviceChange::Class(read_event(decoder, dictionary)?)),
        FeedKind::ResourceClaims => Change::Device(DeviceChange::Claim(read_event(decoder, dictionary)?)),
        FeedKind::ResourceSlices => Change::Device(DeviceChange::Slice(read_event(decoder, dictionary)?)),
        FeedKind::DeviceTaintRules => Change::Device(DeviceChange::Rule(read_event(decoder, dictionary)?)),
        FeedKind::ClaimTemplates => Change::Device(DeviceChange::Template(read_event(decoder, dictionary)?)),
        FeedKind::CronJobs => Change::CronJob(read_event(decoder, dictionary)?),
        FeedKind::Leader => {
            decoder.u8()?;
            Change::Leader(Option::<LeaderLease>::decode(decoder, dictionary)?)
        }
    })
}

fn workload_kind(event: &ObjectEvent<Workload>) -> Option<WorkloadKind> {
    match event {
        ObjectEvent::ListStarted | ObjectEvent::ListDone => None,
        ObjectEvent::Listed(object) | ObjectEvent::Prefetched(object) | ObjectEvent::Applied(object) => {
            Some(object.kind)
        }
        ObjectEvent::Deleted((kind, _)) => Some(*kind),
    }
}

fn read_event<'b, T>(
    decoder: &mut Decoder<'b>,
    dictionary: &mut Dictionary,
) -> Result<ObjectEvent<T>, ReadError>
where
    T: TableObject + Decode<'b, Dictionary>,
    T::Key: Decode<'b, Dictionary>,
{
    Ok(match decoder.u8()? {
        LIST_STARTED => <()>::decode(decoder, dictionary).map(|()| ObjectEvent::ListStarted)?,
        LISTED => ObjectEvent::Listed(T::decode(decoder, dictionary)?),
        LIST_DONE => <()>::decode(decoder, dictionary).map(|()| ObjectEvent::ListDone)?,
        PREFETCHED => ObjectEvent::Prefetched(T::decode(decoder, dictionary)?),
        APPLIED => ObjectEvent::Applied(T::decode(decoder, dictionary)?),
        DELETED => ObjectEvent::Deleted(<T::Key>::decode(decoder, dictionary)?),
        _ => return Err(ReadError::message("an event that is not known")),
    })
}
