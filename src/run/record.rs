//! Records the messages of a cluster's watches until it is stopped.

use std::io::Write;

use super::Session;
use crate::{
    k8s::feed::{FeedEvent, FeedHealth, FeedState},
    model::{ConnectionInfo, Feeds, Model},
    recording::{KeyframeSource, RecordingError, RecordingStart, RecordingTotals, RecordingWriter},
};
use kordon_core::{
    cluster::{Change, Cluster, FeedKind},
    engine::Settings,
};
use kordon_time::{Span, Timestamp};

/// Result of a recording: totals, errors, and the cluster at the end.
#[derive(Clone, Debug)]
pub struct RecordingResult {
    pub totals: RecordingTotals,
    /// Time at which the recording ended.
    pub until: Timestamp,
    /// Errors that the watches reported.
    pub watch_errors: u64,
    /// The state of the cluster at the end.
    pub model: Model,
}

/// Records a session until `stop` is ready, the watches end, or the server forbids the list of nodes.
///
/// # Errors
/// The recording cannot be written.
pub async fn record<W: Write>(
    mut session: Session,
    mut writer: RecordingWriter<W>,
    stop: impl Future<Output = ()>,
) -> Result<RecordingResult, RecordingError> {
    let clock = session.clock;
    let mut watch_errors = 0;
    tokio::pin!(stop);
    loop {
        let due = writer.poll_timeout();
        // No engine runs here that would know whether the Lease matters.
        session.kordon_lease.keep(&session.model, true, clock.now());
        tokio::select! {
            () = &mut stop => break,
            event = session.links.feeds.recv() => {
                let Some(event) = event else { break };
                watch_errors += u64::from(matches!(event, FeedEvent::Trouble(_)));
                let now = clock.now();
                writer.event(&event, now)?;
                session.model.on_watch_event(event, now);
                write_keyframe_if_due(&mut writer, &session.model, now)?;
                if nodes_forbidden(&session.model).is_some() {
                    break;
                }
            }
            Ok(lease) = session.kordon_lease.next() => {
                if lease.as_ref() != session.model.cluster.kordon_lease() {
                    let (event, now) = (FeedEvent::Changes(vec![Change::KordonLease(lease)]), clock.now());
                    writer.event(&event, now)?;
                    session.model.on_watch_event(event, now);
                }
            }
            () = clock.sleep_until(due.unwrap_or_default()), if due.is_some() => {
                writer.on_timeout(clock.now())?;
            }
        }
    }
    let until = clock.now();
    let totals = writer.finish(until)?;
    Ok(RecordingResult { totals, until, watch_errors, model: session.model })
}

/// Writes a keyframe of a model's cluster if one is due. The model must have applied all recorded messages.
///
/// # Errors
/// The keyframe cannot be written.
pub fn write_keyframe_if_due<W: Write>(
    writer: &mut RecordingWriter<W>,
    model: &Model,
    now: Timestamp,
) -> Result<(), RecordingError> {
    if !writer.is_keyframe_due(now) {
        return Ok(());
    }
    let health: Vec<_> = model.feeds.iter().collect();
    writer.keyframe(keyframe_of(model.cluster.clone(), &model.feeds, &health), now)
}

/// Returns the content for a keyframe of a cluster. `health` is the state of the watches in `feeds`.
pub const fn keyframe_of<'a>(
    cluster: Cluster,
    feeds: &Feeds,
    health: &'a [(FeedKind, &'a FeedHealth)],
) -> KeyframeSource<'a> {
    KeyframeSource { cluster, health, clock_difference: feeds.clock_difference }
}

/// Returns the start of a recording of a cluster: its settings and metadata.
pub fn recording_start(
    settings: &Settings,
    connection: &ConnectionInfo,
    keyframe_every: Span,
    at: Timestamp,
) -> RecordingStart {
    let mut start = RecordingStart::new(settings, keyframe_every, at);
    start.context.clone_from(&connection.context);
    start.server.clone_from(&connection.server);
    start.identity = connection.identity.clone().unwrap_or_default();
    start.server_version = connection.server_version.clone().unwrap_or_default();
    start
}

/// Returns the server's error if the server forbids the list of nodes. Without nodes there is nothing to record.
pub fn nodes_forbidden(model: &Model) -> Option<&str> {
    match model.feeds.state(FeedKind::Nodes) {
        Some(FeedState::Forbidden { error }) => Some(error),
        Some(_) | None => None,
    }
}
