//! Executes the effects of the engine.

use kube::Client;

use super::{Executor, Limits, Link, WorkItem};
use crate::{
    clock::Clock,
    engine::{Effect, EffectId, Outcome, Write},
    k8s,
};

pub type EffectExecutor = Executor<Effect>;
pub type EffectLink = Link<Effect>;

/// Writes effects to a cluster.
#[derive(Clone)]
pub struct EffectWriter {
    pub client: Client,
    /// Dates new taints and events.
    pub clock: Clock,
}

impl WorkItem for Effect {
    type Id = EffectId;
    type Outcome = Outcome;
    type Lane = String;
    type Writer = EffectWriter;
    /// As many writes at once as upstream has workers for them.
    const LIMITS: Limits = Limits { sent: 256, accepted: 1024, in_flight: 8, outcomes: 256 };

    fn id(&self) -> EffectId {
        self.id
    }

    /// The object. Its events have a lane of their own: nothing waits for them.
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
        k8s::write::send_write(&writer.client, &self.write, writer.clock.now()).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cluster::{Key, Uid, Version},
        engine::{Cause, EventObject, RecordedEvent},
        time::Timestamp,
    };

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
