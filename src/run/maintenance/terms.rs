//! Options for carrying out a maintenance.

use clap::ValueEnum;

use crate::executor::hook::Hook;
use kordon_core::{
    maintenance::{Gate, WaitFor},
    operation::Overrides,
};
use kordon_time::Span;

/// Options for carrying out a maintenance, other than those that determine its waves.
#[derive(Clone, Debug)]
pub struct MaintenanceTerms {
    /// Command that does the work on an empty node; `None` if something else does the work.
    pub exec: Option<Hook>,
    /// How kordon detects that something other than the command has done the work; `None` if the work is done when the
    /// command has ended.
    pub wait_for: Option<WaitFor>,
    /// Command that is an additional gate (check between waves).
    pub gate: Option<Hook>,
    pub without_gates: Vec<Gate>,
    /// Maximum time to wait until a gate (check between waves) passes.
    pub gate_timeout: Span,
    /// Maximum time for the work on a node, until the node is healthy again.
    pub work_timeout: Span,
    pub on_failure: OnFailure,
    pub reason: String,
    pub overrides: Overrides,
}

/// What to do with the nodes that are not drained when something fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnFailure {
    /// The nodes stay cordoned; --resume continues
    Pause,
    /// The nodes are uncordoned, and the maintenance is over
    Rollback,
}
