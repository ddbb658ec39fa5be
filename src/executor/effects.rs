//! Executes the effects of the engine.

use std::{fmt, io};

use kube::Client;
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::task_tracker::TaskTrackerToken};

use super::{
    Executor, Limits, Link, WorkItem,
    event_recorder::{EventRecorder, TooManyEvents},
};
use crate::{
    journal::{JournalLine, JournalWriter, LineKind},
    k8s,
};
use kordon_clock::Clock;
use kordon_core::{
    cluster::OperationId,
    engine::{Effect, EffectId, Outcome, Write},
};
use kordon_time::Timestamp;

pub type EffectExecutor = Executor<Effect>;
pub type EffectLink = Link<Effect>;

/// Writes effects to a cluster.
#[derive(Clone, Debug)]
pub struct EffectWriter {
    pub target: EffectTarget,
    /// Clock that dates new taints and events.
    pub clock: Clock,
    /// Journal that records each write before the write is sent; none for the demo's own controller.
    pub journal: Option<EffectJournal>,
    /// Recorder that limits the number of Events written. Without a recorder, each Event is created at once.
    pub events: Option<EventRecorder>,
    /// Channel that receives each effect with its outcome. While the channel is full, effects are not reported.
    pub reported: Option<mpsc::Sender<ExecutedEffect>>,
    /// Token that is cancelled when the controller stops or has lost its Lease. No effect is sent after that.
    pub stopping: CancellationToken,
    /// Token that counts the executor as running. It is dropped once all effects in flight have finished.
    pub running: Option<TaskTrackerToken>,
}

/// Target to which the effects of the engine are written.
#[derive(Clone)]
pub enum EffectTarget {
    /// No target: nothing is written, and every effect has the outcome [`Outcome::Recorded`].
    Recorded,
    Cluster(Client),
}

impl fmt::Debug for EffectTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Recorded => "Recorded",
            Self::Cluster(_) => "Cluster",
        })
    }
}

/// The journal of a controller for one term as leader.
#[derive(Clone, Debug)]
pub struct EffectJournal {
    pub writer: JournalWriter,
    pub operation: OperationId,
}

/// A write that the engine decided on, and its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutedEffect {
    pub at: Timestamp,
    pub effect: Effect,
    pub outcome: Outcome,
}

impl EffectWriter {
    /// Returns a writer without a journal, an event recorder or reports.
    pub fn new(target: EffectTarget, clock: Clock) -> Self {
        Self {
            target,
            clock,
            journal: None,
            events: None,
            reported: None,
            stopping: CancellationToken::new(),
            running: None,
        }
    }

    async fn execute(&self, effect: &Effect) -> Outcome {
        let EffectTarget::Cluster(client) = &self.target else { return Outcome::Recorded };
        if self.stopping.is_cancelled() {
            return Outcome::Failed("not sent: the controller stops, or has lost its Lease".into());
        }
        if let Err(error) = self.record(LineKind::effect(effect)).await {
            return Outcome::Failed(format!(
                "cannot write the journal ({error}): without it nothing is written to the cluster"
            ));
        }
        let outcome = match (&effect.write, &self.events) {
            (Write::RecordEvent(event), Some(events)) => match events.record(event.clone()) {
                Ok(()) => Outcome::Done,
                Err(TooManyEvents) => Outcome::Failed(TooManyEvents.to_string()),
            },
            (write, _) if self.journal.is_some() => {
                k8s::write::send_checked_write(client, write, self.clock.now()).await
            }
            (write, _) => k8s::write::send_write(client, write, self.clock.now()).await,
        };
        if let Err(error) = self.record(LineKind::effect_outcome(effect.id, &outcome)).await {
            // The write was sent, but the journal lacks its outcome; the cluster shows whether it was applied. As long
            // as the journal cannot be written, later writes fail before they are sent.
            tracing::error!(%error, "cannot write the journal");
        }
        outcome
    }

    async fn record(&self, kind: LineKind) -> io::Result<()> {
        let Some(EffectJournal { writer, operation }) = &self.journal else { return Ok(()) };
        writer.append(JournalLine { at: self.clock.now(), operation: operation.clone(), kind }).await
    }
}

impl WorkItem for Effect {
    type Id = EffectId;
    type Outcome = Outcome;
    type Lane = String;
    type Writer = EffectWriter;
    /// `in_flight` is the number of workers that upstream's controller has for these writes.
    const LIMITS: Limits = Limits { sent: 256, accepted: 1024, in_flight: 8, outcomes: 256 };

    fn id(&self) -> EffectId {
        self.id
    }

    /// Returns the object that is written. Events about an object have a lane of their own, so no other write waits for
    /// an Event.
    fn lane(&self) -> String {
        match &self.write {
            Write::RecordEvent(event) => format!("event/{}", event.object),
            Write::MarkUnknown { .. }
            | Write::SwapTaints { .. }
            | Write::SetLabels { .. }
            | Write::MarkPodNotReady { .. }
            | Write::MarkPodLost { .. }
            | Write::DeletePod { .. } => self.write.object(),
        }
    }

    fn recorded(&self) -> Outcome {
        Outcome::Recorded
    }

    async fn write(self, writer: &EffectWriter) -> Outcome {
        let outcome = writer.execute(&self).await;
        // An event that was only recorded is not reported: without writes, every pass of the controller repeats its
        // events, and each event only accompanies another effect.
        let repeats = matches!((&self.write, &outcome), (Write::RecordEvent(_), Outcome::Recorded));
        if let Some(reported) = writer.reported.as_ref().filter(|_| !repeats) {
            // A full channel must not delay writes, so the effect is then not reported.
            let executed = ExecutedEffect { at: writer.clock.now(), effect: self, outcome: outcome.clone() };
            let _ = reported.try_send(executed);
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kordon_core::{
        cluster::{Key, Uid, Version},
        engine::{Cause, EventObject, RecordedEvent},
    };
    use kordon_time::Timestamp;

    #[test]
    fn events_do_not_delay_writes_to_their_object() {
        let pod = Key::new("default", "web");
        let event = RecordedEvent {
            object: EventObject::Pod(pod.clone()),
            warning: false,
            reason: "TaintManagerEviction",
            message: String::new(),
            source: "test",
        };
        let write =
            Write::MarkPodNotReady { pod, uid: Uid::default(), version: Version(1), node: "n1".into() };
        assert_ne!(effect(Write::RecordEvent(event)).lane(), effect(write).lane());
    }

    fn effect(write: Write) -> Effect {
        Effect { id: EffectId(1), at: Timestamp::EPOCH, write, why: Cause::NodeNotReady.into() }
    }
}
