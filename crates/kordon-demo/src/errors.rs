//! Errors of the demo's agents, reported over a channel.

use std::fmt;

use tokio::sync::mpsc;

use kordon_clock::Clock;
use kordon_time::Timestamp;

/// A failed action of an agent. The agent retries by itself.
#[derive(Clone, Debug)]
pub struct AgentError {
    pub at: Timestamp,
    /// The agent and its action.
    pub agent: String,
    pub text: String,
}

/// Takes the agents' errors.
#[derive(Clone, Debug)]
pub struct ErrorReporter {
    clock: Clock,
    sender: mpsc::Sender<AgentError>,
}

/// The bound of the channel. When it is full, later errors are dropped: the first ones show the cause.
const KEPT: usize = 256;

impl ErrorReporter {
    pub fn new(clock: Clock) -> (Self, mpsc::Receiver<AgentError>) {
        let (sender, receiver) = mpsc::channel(KEPT);
        (Self { clock, sender }, receiver)
    }

    pub fn report(&self, agent: impl Into<String>, trouble: &dyn fmt::Display) {
        let trouble = AgentError { at: self.clock.now(), agent: agent.into(), text: trouble.to_string() };
        // Full, or without a receiver: see KEPT.
        let _ = self.sender.try_send(trouble);
    }
}
