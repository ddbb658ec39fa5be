//! Keyframes: all known objects, written as one list for each kind.

use std::{io::Write, sync::Arc};

use minicbor::Encode;

use super::{
    RecordingError,
    block::BlockKind,
    block_writer::BlockWriter,
    entry::{self, PlainMessage},
};
use crate::k8s::feed::FeedHealth;
use kordon_core::cluster::{
    Change, Cluster, FeedKind, ObjectEvent, Table, TableObject, encoding::Dictionary,
};
use kordon_time::{Span, Timestamp};

/// Content of a keyframe.
#[derive(Clone, Debug)]
pub struct KeyframeSource<'a> {
    /// A copy of the cluster. Each pod is removed from the copy once it is written. This frees the outdated pods, which
    /// only the copy still holds.
    pub cluster: Cluster,
    /// The state of the watches.
    pub health: &'a [(FeedKind, &'a FeedHealth)],
    /// The API server's clock minus ours; none if it was not measured.
    pub clock_difference: Option<Span>,
}

/// Writes a keyframe. Returns the time of the keyframe: `now`, or the time of the last entry if that is later.
///
/// # Errors
/// The keyframe cannot be written.
pub fn write<W: Write>(
    source: KeyframeSource<'_>,
    now: Timestamp,
    blocks: &mut BlockWriter<W>,
) -> Result<Timestamp, RecordingError> {
    let KeyframeSource { mut cluster, health, clock_difference } = source;
    let now = blocks.begin(BlockKind::Keyframe, now)?;
    if let Some(difference) = clock_difference {
        blocks.put(&PlainMessage::ClockDifference(difference), now)?;
    }
    if let Some(lease) = cluster.kordon_lease() {
        blocks.put(&PlainMessage::KordonLease(Some(lease)), now)?;
    }
    // A model starts its engine once nodes, Leases and the leader are known. The leader is written last, so that all
    // other kinds are known when the engine of a reader's model starts.
    let (leader, others): (Vec<_>, Vec<_>) =
        health.iter().copied().partition(|(kind, _)| *kind == FeedKind::Leader);
    for (kind, health) in others.into_iter().chain(leader) {
        put_objects(kind, &mut cluster, now, blocks)?;
        blocks.put(&PlainMessage::Health(kind, health), now)?;
    }
    blocks.write_end(BlockKind::KeyframeEnd, now)?;
    Ok(now)
}

fn put_objects<W: Write>(
    kind: FeedKind,
    cluster: &mut Cluster,
    now: Timestamp,
    blocks: &mut BlockWriter<W>,
) -> Result<(), RecordingError> {
    match kind {
        FeedKind::Nodes => put_table(kind, cluster.nodes().clone(), now, blocks),
        FeedKind::Leases => put_table(kind, cluster.leases().clone(), now, blocks),
        FeedKind::Pods => put_table(kind, cluster.take_pods(), now, blocks),
        FeedKind::Budgets => put_table(kind, cluster.budgets().clone(), now, blocks),
        FeedKind::Workloads(workload) => put_table(kind, cluster.workloads(workload).clone(), now, blocks),
        FeedKind::PriorityClasses => put_table(kind, cluster.priority_classes().clone(), now, blocks),
        FeedKind::Namespaces => put_table(kind, cluster.namespaces().clone(), now, blocks),
        FeedKind::Services => put_table(kind, cluster.services().clone(), now, blocks),
        FeedKind::Claims => put_table(kind, cluster.claims().clone(), now, blocks),
        FeedKind::Volumes => put_table(kind, cluster.volumes().clone(), now, blocks),
        FeedKind::StorageClasses => put_table(kind, cluster.storage_classes().clone(), now, blocks),
        FeedKind::CsiNodes => put_table(kind, cluster.csi_nodes().clone(), now, blocks),
        FeedKind::CsiDrivers => put_table(kind, cluster.csi_drivers().clone(), now, blocks),
        FeedKind::StorageCapacities => put_table(kind, cluster.storage_capacities().clone(), now, blocks),
        FeedKind::Quotas => put_table(kind, cluster.quotas().clone(), now, blocks),
        FeedKind::DeviceClasses => put_table(kind, cluster.devices().classes.clone(), now, blocks),
        FeedKind::ResourceClaims => put_table(kind, cluster.devices().claims.clone(), now, blocks),
        FeedKind::ResourceSlices => put_table(kind, cluster.devices().slices.clone(), now, blocks),
        FeedKind::DeviceTaintRules => put_table(kind, cluster.devices().rules.clone(), now, blocks),
        FeedKind::ClaimTemplates => put_table(kind, cluster.devices().templates.clone(), now, blocks),
        FeedKind::CronJobs => put_table(kind, cluster.cron_jobs().clone(), now, blocks),
        FeedKind::Leader => {
            let leader = cluster.leader().map(|leader| Change::Leader(Some(leader.clone())));
            blocks.put_changes(leader.iter(), entry::write_change, now)
        }
    }
}

/// Writes all objects of a kind as a list. If the objects are not all known yet, the end of the list is left out.
fn put_table<T, W: Write>(
    kind: FeedKind,
    table: Table<T>,
    now: Timestamp,
    blocks: &mut BlockWriter<W>,
) -> Result<(), RecordingError>
where
    T: TableObject + PartialEq + Encode<Dictionary>,
    T::Key: Encode<Dictionary>,
{
    let is_synced = table.is_synced();
    if !is_synced && table.is_empty() {
        return Ok(());
    }
    let write = |event: &ObjectEvent<&T>, bytes: &mut _, dictionary: &mut _| {
        entry::write_event(kind, event, bytes, dictionary)
    };
    let write_object = |object: Arc<T>, bytes: &mut _, dictionary: &mut _| {
        write(&ObjectEvent::Listed(&object), bytes, dictionary)
    };
    blocks.put_changes([ObjectEvent::ListStarted].iter(), write, now)?;
    blocks.put_changes(table.into_objects(), write_object, now)?;
    blocks.put_changes(is_synced.then_some(ObjectEvent::ListDone).iter(), write, now)
}
