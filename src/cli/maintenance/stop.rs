//! Why a maintenance stops.

use crate::cli::exit::CliError;

/// Why a maintenance stops before its end.
pub enum Stop {
    /// Something failed, or a gate does not hold. It can be resumed.
    Paused(String),
    /// The operator interrupted it. It can be resumed.
    Cancelled,
    /// The operator interrupted it twice.
    Killed,
    Failed(CliError),
}

impl From<CliError> for Stop {
    fn from(error: CliError) -> Self {
        Self::Failed(error)
    }
}
