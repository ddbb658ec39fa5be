//! How the program ends: exit codes, and what is said on standard error.

use std::{error::Error, fmt::Write as _, io::Write as _, process::ExitCode};

use clap::error::ErrorKind;

use crate::{
    executor::{guards::GuardsError, write_context::WriteContextError},
    journal::JournalError,
    k8s::connect::ConnectError,
    operation::OperationEnd,
    plan::Prospect,
    run::RunError,
    time::Span,
    ui::{snapshot::SnapshotError, text},
};

/// The exit codes (`docs/cli.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done, or quit by the user.
    Done = 0,
    /// Anything that has no code of its own.
    Failed = 1,
    /// The arguments make no sense.
    Usage = 2,
    /// No cluster could be reached, or it would not have us.
    NoConnection = 3,
    /// The cluster answered, but not everything arrived in time.
    TooSlow = 4,
    /// A plan would not begin without more options.
    Refused = 5,
    /// A plan would not end: something can never go.
    Blocked = 6,
    /// A plan would stall: something waits for what may or may not come, or the time allowed is too short.
    Stalls = 7,
    /// A guard rail forbids it; nothing was written.
    Guarded = 8,
    /// It may not be done, wholly or in part.
    NotAllowed = 9,
    /// Somebody else is at work on it.
    Marked = 10,
    /// The time allowed was over.
    TimedOut = 11,
    /// Some of it was done, and some could not be.
    Partly = 12,
    /// It was told to stop, or not confirmed.
    Interrupted = 13,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why the program ends without having done what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    #[error("{0}")]
    Usage(String),
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    #[error("the nodes may not be listed, and without them there is nothing to tell: {0}")]
    NodesForbidden(String),
    /// What was asked for, as in "node n-1".
    #[error("{0} is not there")]
    NotFound(String),
    /// What is missing, in words.
    #[error("not everything arrived within {waited}: {missing}; {flag} waits longer")]
    TooSlow { waited: Span, missing: String, flag: &'static str },
    /// The plan was worked out and printed; it would not come to its end.
    #[error("the plan would not complete: {text}")]
    WouldNot { prospect: Prospect, text: String },
    #[error("guard rails forbid it: {0}")]
    Guarded(String),
    #[error("nothing was written, for these permissions are missing: {0}")]
    NotAllowed(String),
    #[error("nothing was written, for it could not be asked what is permitted: {0}")]
    Unasked(String),
    #[error(transparent)]
    Site(#[from] WriteContextError),
    #[error(transparent)]
    Guards(#[from] GuardsError),
    #[error("not confirmed: nothing was written")]
    Declined,
    /// It was carried out and reported; it did not come to its end.
    #[error("{}: {text}", end.as_str())]
    Ended { end: OperationEnd, text: String },
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("{doing}")]
    Io {
        /// As in "writing to standard output".
        doing: String,
        #[source]
        error: std::io::Error,
    },
}

impl CliError {
    pub const fn exit(&self) -> Exit {
        match self {
            Self::Usage(_) => Exit::Usage,
            Self::Connect(_) | Self::NodesForbidden(_) => Exit::NoConnection,
            Self::TooSlow { .. } => Exit::TooSlow,
            Self::WouldNot { prospect, .. } => match prospect {
                Prospect::Completes => Exit::Done,
                Prospect::Stalls => Exit::Stalls,
                Prospect::Blocked => Exit::Blocked,
                Prospect::Refused => Exit::Refused,
            },
            Self::Guarded(_) => Exit::Guarded,
            Self::NotAllowed(_) => Exit::NotAllowed,
            Self::Site(WriteContextError::AtWork(_)) => Exit::Marked,
            Self::Site(
                WriteContextError::NotThere { .. }
                | WriteContextError::Journal(_)
                | WriteContextError::Write(_),
            ) => Exit::Failed,
            Self::Site(WriteContextError::Over(_)) | Self::Guards(GuardsError::Bad { .. }) => Exit::Usage,
            Self::Guards(GuardsError::Io { .. }) => Exit::Failed,
            Self::Declined => Exit::Interrupted,
            Self::Ended { end, .. } => match end {
                OperationEnd::Done | OperationEnd::Recorded => Exit::Done,
                OperationEnd::Partly => Exit::Partly,
                OperationEnd::TimedOut => Exit::TimedOut,
                OperationEnd::Forbidden => Exit::NotAllowed,
                OperationEnd::Marked => Exit::Marked,
                OperationEnd::Cancelled => Exit::Interrupted,
            },
            Self::Unasked(_) | Self::Journal(_) => Exit::Failed,
            Self::Run(_) | Self::Snapshot(_) | Self::NotFound(_) | Self::Io { .. } => Exit::Failed,
        }
    }
}

/// Writes to standard output.
pub fn print(bytes: &[u8]) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(bytes).and_then(|()| out.flush());
    written.map_err(|error| CliError::Io { doing: "writing to standard output".into(), error })
}

/// Says what is wrong with the arguments, or what was asked for with `--help` and `--version`.
pub fn of_parse(error: &clap::Error) -> ExitCode {
    // Nobody is left to tell that standard error is closed.
    let _ = error.print();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Done.into(),
        _ => Exit::Usage.into(),
    }
}

/// Says why the program ends.
pub fn of_failure(failure: &CliError) -> ExitCode {
    if let CliError::Io { error, .. } = failure
        && error.kind() == std::io::ErrorKind::BrokenPipe
    {
        // Whoever read our output has seen enough, as in `kordon status | head`.
        return Exit::Done.into();
    }
    let _ = writeln!(std::io::stderr(), "kordon: {}", chain(failure));
    failure.exit().into()
}

/// An error with what caused it, in one line; a cause that its error already tells is not told again.
fn chain(error: &dyn Error) -> String {
    let mut text = visible(&error.to_string());
    let mut source = error.source();
    while let Some(error) = source {
        let cause = visible(&error.to_string());
        if !text.contains(&cause) {
            let _ = write!(text, ": {cause}");
        }
        source = error.source();
    }
    text
}

/// Errors quote what servers and files say: their control characters are shown, not sent to the terminal.
fn visible(text: &str) -> String {
    text.split('\n').map(text::clean).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_tells_its_causes_once_and_nothing_reaches_the_terminal_raw() {
        let error = std::io::Error::other("no \x1b[2Jspace");
        let failure = CliError::Io { doing: "writing".into(), error };
        assert_eq!(chain(&failure), "writing: no ␛[2Jspace");
    }
}
