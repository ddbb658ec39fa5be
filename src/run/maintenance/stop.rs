//! Why a maintenance stops.

/// Why a maintenance stops before its end.
#[derive(Debug)]
pub enum Stop {
    /// Something failed, or a gate (check between waves) does not pass. The maintenance can be resumed.
    Failed(String),
    /// Another process has resumed the maintenance, for the user who is named. It has the nodes now.
    TakenOver(String),
    /// The operator interrupted the maintenance. It can be resumed.
    Cancelled,
    /// The operator interrupted the maintenance twice.
    Killed,
}
