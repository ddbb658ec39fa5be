//! Checks of the cluster between the waves of a maintenance: the gates that do not run a command.

use crate::{model::VerdictLevel, run::watched_model::WatchedModel};
use kordon_clock::Clock;
use kordon_core::maintenance::{Gate, GateReading};

/// State of the cluster before a maintenance. A gate fails if the current state is worse.
pub struct Gates {
    reading: GateReading,
    verdict: VerdictLevel,
    left_out: Vec<Gate>,
}

impl Gates {
    /// Reads the state of the cluster before the maintenance starts.
    pub fn new(left_out: Vec<Gate>, watched: &mut WatchedModel<'_>, clock: Clock) -> Self {
        Self { reading: GateReading::new(watched.cluster()), verdict: watched.verdict(clock).level, left_out }
    }

    /// Returns the gates (checks before the next wave) that fail now, each with the reason.
    pub fn failures(&self, watched: &mut WatchedModel<'_>, clock: Clock) -> Vec<String> {
        let mut failures = GateReading::new(watched.cluster()).worse_than(&self.reading);
        let verdict = watched.verdict(clock);
        // The maintenance itself may raise the verdict on the cluster to the level Notice, so the gate fails only at
        // Warning or above.
        if verdict.level > self.verdict && verdict.level >= VerdictLevel::Warning {
            failures.push((Gate::Verdict, verdict.text()));
        }
        failures.retain(|(gate, _)| !self.left_out.contains(gate));
        failures.iter().map(|(gate, why)| format!("{gate}: {why}")).collect()
    }
}
