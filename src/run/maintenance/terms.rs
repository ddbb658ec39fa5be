//! How a maintenance is carried out.

use clap::ValueEnum;

use crate::executor::hook::Hook;
use kordon_core::{
    maintenance::{Gate, WaitFor},
    operation::Overrides,
};
use kordon_time::Span;

/// How a maintenance is carried out, beside its waves.
#[derive(Clone, Debug)]
pub struct MaintenanceTerms {
    /// The work on an empty node; none if others do it.
    pub exec: Option<Hook>,
    /// What shows that others have done the work; none if the command is all.
    pub wait_for: Option<WaitFor>,
    /// A further gate between waves.
    pub gate: Option<Hook>,
    pub without_gates: Vec<Gate>,
    /// How long to wait for a gate.
    pub gate_timeout: Span,
    /// How long the work on a node may take, until the node is well again.
    pub work_timeout: Span,
    pub on_failure: OnFailure,
    pub reason: String,
    pub overrides: Overrides,
}

/// What to do with the nodes that are not drained when something fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnFailure {
    /// They stay cordoned; --resume goes on
    Pause,
    /// They are uncordoned, and the maintenance is over
    Rollback,
}

impl MaintenanceTerms {
    /// How long a gate is waited for unless the operator says otherwise.
    pub const GATE_TIMEOUT: Span = Span::from_secs(30 * 60);
    /// How long the work on a node may take unless the operator says otherwise.
    pub const WORK_TIMEOUT: Span = Span::from_secs(60 * 60);
}
