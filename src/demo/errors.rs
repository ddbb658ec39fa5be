//! What goes wrong for the agents, told to whoever wants to know.

use std::fmt;

use tokio::sync::mpsc;

use crate::{clock::Clock, time::Timestamp};

/// Something that an agent wanted and did not get. It tries again by itself.
#[derive(Clone, Debug)]
pub struct AgentError {
    pub at: Timestamp,
    /// Which agent, and about what.
    pub agent: String,
    pub text: String,
}

/// Where agents tell their errors.
#[derive(Clone, Debug)]
pub struct ErrorReporter {
    clock: Clock,
    sender: mpsc::Sender<AgentError>,
}

/// When nobody reads, so many are kept and later ones dropped: the first ones say what began.
const KEPT: usize = 256;

impl ErrorReporter {
    pub fn new(clock: Clock) -> (Self, mpsc::Receiver<AgentError>) {
        let (sender, receiver) = mpsc::channel(KEPT);
        (Self { clock, sender }, receiver)
    }

    pub fn report(&self, agent: impl Into<String>, trouble: &dyn fmt::Display) {
        let trouble = AgentError { at: self.clock.now(), agent: agent.into(), text: trouble.to_string() };
        // Full, or nobody is there to read: see KEPT.
        let _ = self.sender.try_send(trouble);
    }
}
