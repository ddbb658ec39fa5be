//! Why a maintenance stops.

/// Why a maintenance stops before its end.
#[derive(Debug)]
pub enum Stop {
    /// Something failed, or a gate does not hold. It can be resumed.
    Failed(String),
    /// The operator interrupted it. It can be resumed.
    Cancelled,
    /// The operator interrupted it twice.
    Killed,
}
