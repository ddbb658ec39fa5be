//! Errors of the demo's agents, reported over a channel.

use std::fmt;

use tokio::sync::mpsc;

use kordon_clock::Clock;
use kordon_time::Timestamp;

/// A failed action of an agent. The agent retries on its own.
#[derive(Clone, Debug)]
pub struct AgentError {
    pub at: Timestamp,
    /// The name of the agent, followed by the action that failed.
    pub agent: String,
    pub text: String,
}

/// Sends the agents' errors to the channel.
#[derive(Clone, Debug)]
pub struct ErrorReporter {
    clock: Clock,
    sender: mpsc::Sender<AgentError>,
}

/// Capacity of the channel for errors. While it is full, later errors are dropped, because the first errors show the
/// cause.
const KEPT: usize = 256;

impl ErrorReporter {
    pub fn new(clock: Clock) -> (Self, mpsc::Receiver<AgentError>) {
        let (sender, receiver) = mpsc::channel(KEPT);
        (Self { clock, sender }, receiver)
    }

    pub fn report(&self, agent: impl Into<String>, trouble: &dyn fmt::Display) {
        let trouble = AgentError { at: self.clock.now(), agent: agent.into(), text: trouble.to_string() };
        // Sending fails if the channel is full (see KEPT) or has no receiver. The error is then lost.
        let _ = self.sender.try_send(trouble);
    }
}
