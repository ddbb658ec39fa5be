//! Records the engine's Events in a separate task, with client-go's limits: a repeated event raises the count of the
//! existing Event, many similar events are combined into one, and each object has a limited rate of events.

use std::collections::{BTreeMap, VecDeque};

use kube::Client;
use tokio::sync::mpsc;

use crate::k8s::write::{create_event, repeat_event};
use kordon_clock::Clock;
use kordon_core::engine::RecordedEvent;
use kordon_time::{Span, Timestamp};

/// Capacity of the queue of events to write. While the queue is full, new events are dropped, because nothing depends
/// on them.
const WAITING: usize = 1000;

/// Number of objects and events that are remembered (client-go's `maxLruCacheEntries`).
const REMEMBERED: usize = 4096;

/// Number of events that one object may have in a burst (`BURST`), and the time after which the object may have one
/// more event (`REFILL`).
const BURST: i64 = 25;
const REFILL: Span = Span::from_secs(300);

/// Limit of similar events: if more than `SIMILAR` events that differ only in their message arrive within
/// `SIMILAR_WITHIN`, they are combined.
const SIMILAR: usize = 10;
const SIMILAR_WITHIN: Span = Span::from_secs(600);

/// Sends events to the task that writes them.
#[derive(Clone, Debug)]
pub struct EventRecorder {
    events: mpsc::Sender<RecordedEvent>,
}

/// Error: an event was dropped because the queue was full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many events wait to be written")]
pub struct TooManyEvents;

impl EventRecorder {
    /// Starts the task that writes events. The task ends when the last clone of the recorder is dropped.
    pub fn start(client: Client, clock: Clock) -> Self {
        let (events, mut received) = mpsc::channel::<RecordedEvent>(WAITING);
        tokio::spawn(async move {
            let mut correlator = EventCorrelator::default();
            while let Some(event) = received.recv().await {
                write(&client, &mut correlator, event, clock.now()).await;
            }
        });
        Self { events }
    }

    /// Queues an event for writing.
    ///
    /// # Errors
    /// The queue is full.
    pub fn record(&self, event: RecordedEvent) -> Result<(), TooManyEvents> {
        self.events.try_send(event).map_err(|_| TooManyEvents)
    }
}

async fn write(client: &Client, correlator: &mut EventCorrelator, event: RecordedEvent, now: Timestamp) {
    let action = correlator.correlate(event, now);
    let (event, failed) = match action {
        EventAction::Drop => return,
        EventAction::Create(event) => (event, None),
        EventAction::Repeat { event, name, count } => {
            match repeat_event(client, &event, &name, count, now).await {
                Ok(()) => return,
                // The existing Event has expired, so a new one is created.
                Err(None) => (event, None),
                Err(Some(error)) => (event, Some(error)),
            }
        }
    };
    let created = match failed {
        Some(error) => Err(error),
        None => create_event(client, &event, now).await,
    };
    match created {
        Ok(name) => correlator.on_created(&event, name),
        Err(error) => {
            tracing::warn!(error, reason = event.reason, object = %event.object, "cannot record an event")
        }
    }
}

/// Action of the recorder for one event.
#[derive(Clone, Debug, PartialEq)]
enum EventAction {
    Create(RecordedEvent),
    /// Sets the count of the existing Event with this name.
    Repeat {
        event: RecordedEvent,
        name: String,
        count: u32,
    },
    Drop,
}

/// Decides whether an event is created, counted, combined with others, or dropped.
#[derive(Debug, Default)]
struct EventCorrelator {
    /// Time at which the rate limit allows a full burst again, by source and object of the events.
    spent: BTreeMap<String, Timestamp>,
    /// Times and messages of recent events. The key consists of all fields except the message.
    similar: BTreeMap<String, VecDeque<(Timestamp, String)>>,
    /// Name and count of each Event that this recorder created.
    known: BTreeMap<String, (String, u32)>,
}

impl EventCorrelator {
    fn correlate(&mut self, mut event: RecordedEvent, now: Timestamp) -> EventAction {
        self.forget(now);
        if !self.is_allowed(&event, now) {
            return EventAction::Drop;
        }
        let similar = self.similar.entry(group(&event)).or_default();
        similar.retain(|(at, message)| now.since(*at) <= SIMILAR_WITHIN && *message != event.message);
        similar.push_back((now, event.message.clone()));
        if similar.len() > SIMILAR {
            similar.pop_front();
            event.message = format!("(combined from similar events): {}", event.message);
        }
        match self.known.get_mut(&identity(&event)) {
            Some((name, count)) => {
                *count += 1;
                EventAction::Repeat { name: name.clone(), count: *count, event }
            }
            None => EventAction::Create(event),
        }
    }

    fn on_created(&mut self, event: &RecordedEvent, name: String) {
        self.known.insert(identity(event), (name, 1));
    }

    /// Whether the rate limit of the event's source and object allows the event. An allowed event counts towards the
    /// limit.
    fn is_allowed(&mut self, event: &RecordedEvent, now: Timestamp) -> bool {
        let spent = self.spent.entry(format!("{} {}", event.source, event.object)).or_insert(now);
        let after = (*spent).max(now) + REFILL;
        let is_allowed = after.since(now) <= REFILL * BURST;
        if is_allowed {
            *spent = after;
        }
        is_allowed
    }

    /// Removes outdated entries from full tables, and clears tables that are still full.
    fn forget(&mut self, now: Timestamp) {
        if self.spent.len() >= REMEMBERED {
            self.spent.retain(|_, until| *until > now);
        }
        if self.similar.len() >= REMEMBERED {
            self.similar
                .retain(|_, seen| seen.back().is_some_and(|(at, _)| now.since(*at) <= SIMILAR_WITHIN));
        }
        for full in [self.spent.len(), self.similar.len()] {
            if full >= REMEMBERED {
                self.spent.clear();
                self.similar.clear();
            }
        }
        if self.known.len() >= REMEMBERED {
            self.known.clear();
        }
    }
}

/// Key of events that may be combined: all fields except the message.
fn group(event: &RecordedEvent) -> String {
    format!("{} {} {} {}", event.source, event.object, event.warning, event.reason)
}

/// Key of events that share one Event and its count. All combined events of a group have the same key, whatever their
/// messages.
fn identity(event: &RecordedEvent) -> String {
    let combined = event.message.starts_with("(combined from similar events)");
    format!("{} {}", group(event), if combined { "(combined)" } else { &event.message })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kordon_core::{cluster::Key, engine::EventObject};

    const START: Timestamp = Timestamp::from_secs(1_800_000_000);

    fn event(pod: &str, message: &str) -> RecordedEvent {
        RecordedEvent {
            object: EventObject::Pod(Key::new("shop", pod)),
            warning: false,
            reason: "TaintManagerEviction",
            message: message.into(),
            source: "taint-eviction-controller",
        }
    }

    #[test]
    fn the_same_event_is_counted_and_not_created_again() {
        let mut correlator = EventCorrelator::default();
        let EventAction::Create(first) = correlator.correlate(event("a", "x"), START) else { panic!("new") };
        correlator.on_created(&first, "a.1".into());
        for count in [2, 3] {
            let again = correlator.correlate(event("a", "x"), START + Span::from_secs(count.into()));
            assert_eq!(again, EventAction::Repeat { event: event("a", "x"), name: "a.1".into(), count });
        }
        assert!(
            matches!(correlator.correlate(event("b", "x"), START), EventAction::Create(_)),
            "another pod"
        );
        assert!(
            matches!(correlator.correlate(event("a", "y"), START), EventAction::Create(_)),
            "another text"
        );
    }

    #[test]
    fn an_object_with_too_many_events_has_one_in_five_minutes_and_others_are_not_affected() {
        let mut correlator = EventCorrelator::default();
        let mut written =
            |pod: &str, at: Timestamp| correlator.correlate(event(pod, "x"), at) != EventAction::Drop;
        assert_eq!((0..40).filter(|_| written("a", START)).count(), 25);
        assert!(written("b", START));
        assert!(!written("a", START + Span::from_secs(299)));
        assert!(written("a", START + Span::from_secs(301)) && !written("a", START + Span::from_secs(302)));
    }

    #[test]
    fn events_that_differ_only_in_their_message_are_combined_after_the_tenth() {
        let mut correlator = EventCorrelator::default();
        let mut created = Vec::new();
        for number in 0..14 {
            match correlator.correlate(event("a", &format!("try {number}")), START) {
                EventAction::Create(event) => {
                    correlator.on_created(&event, format!("a.{number}"));
                    created.push(event.message);
                }
                EventAction::Repeat { event, name, .. } => {
                    assert_eq!((&*name, event.message.starts_with("(combined")), ("a.10", true));
                }
                EventAction::Drop => panic!("fewer than 25"),
            }
        }
        assert_eq!(created.len(), 11, "{created:?}");
        assert_eq!(created[10], "(combined from similar events): try 10");
    }
}
