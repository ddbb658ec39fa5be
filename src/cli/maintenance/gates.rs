//! The gates between waves, as far as they need no command.

use super::args::MaintenanceArgs;
use crate::{
    cli::once::OneShot,
    model::{ClusterVerdict, VerdictLevel},
};
use kordon_core::maintenance::{Gate, GateReading};

/// What must not be worse than at the start.
pub struct Gates {
    reading: GateReading,
    verdict: VerdictLevel,
    left_out: Vec<Gate>,
}

impl Gates {
    /// Reads how the cluster is before the start.
    pub fn new(args: &MaintenanceArgs, known: &mut OneShot) -> Self {
        Self {
            reading: GateReading::new(&known.model.cluster),
            verdict: verdict(known).level,
            left_out: args.without_gate.iter().map(|name| name.gate()).collect(),
        }
    }

    /// The gates that do not hold now, each with the reason.
    pub fn failures(&self, known: &mut OneShot) -> Vec<String> {
        let mut failures = GateReading::new(&known.model.cluster).worse_than(&self.reading);
        let verdict = verdict(known);
        // The maintenance itself may be worth a notice.
        if verdict.level > self.verdict && verdict.level >= VerdictLevel::Warning {
            failures.push((Gate::Verdict, verdict.text()));
        }
        failures.retain(|(gate, _)| !self.left_out.contains(gate));
        failures.iter().map(|(gate, why)| format!("{gate}: {why}")).collect()
    }
}

fn verdict(known: &mut OneShot) -> ClusterVerdict {
    known.at = known.clock.now();
    known.run_forecast();
    ClusterVerdict::new(&known.model, known.at)
}
