//! How the program ends: exit codes, and errors on standard error.

use std::{
    error::Error,
    ffi::OsString,
    fmt::Write as _,
    io::Write as _,
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
};

use clap::error::ErrorKind;
use serde::Serialize;
use serde_json::json;

use super::{config::ConfigError, themes::OwnThemeError};
use crate::{
    executor::{guards::GuardsError, write_context::WriteContextError},
    journal::JournalError,
    k8s::{connect::ConnectError, kubeconfig},
    model::{FindingSeverity, VerdictLevel},
    objects::ObjectsError,
    recording::RecordingError,
    run::{RunError, controller::process::ControllerError},
    ui::snapshot::SnapshotError,
};
use kordon_core::{
    cluster::{
        Cluster, Gaps,
        nearest::{did_you_mean, nearest_node},
    },
    operation::{
        OperationEnd,
        approval::{ApprovalRefusal, NotStarted, Objection},
    },
    plan::{Prospect, words::counted},
    visible,
};
use kordon_time::{Span, Timestamp};

/// The exit codes (`docs/reference/cli.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Success, or the user quit.
    Done = 0,
    /// A failure without a code of its own.
    Failed = 1,
    /// The arguments are invalid.
    Usage = 2,
    /// Cannot connect, or the credentials were rejected.
    NoConnection = 3,
    /// Timed out waiting for the cluster's objects.
    TooSlow = 4,
    /// The plan needs more flags to start.
    Refused = 5,
    /// The plan would never complete, because a pod can never leave.
    Blocked = 6,
    /// The plan may never complete: it may wait forever, or its timeout is too short.
    Stalls = 7,
    /// A guard rail forbids the operation; nothing was written.
    Guarded = 8,
    /// Permissions are missing, for all or part of the operation.
    NotAllowed = 9,
    /// Another operator is draining a node, or another process runs this operation.
    Claimed = 10,
    /// The operation timed out.
    TimedOut = 11,
    /// The operation was only partly done.
    Partly = 12,
    /// The operation was interrupted, or not confirmed.
    Interrupted = 13,
    /// The codes from `Notice` to `Disconnected` are the levels of the verdict on the cluster, for `kordon status
    /// --exit-code`. From `kordon audit`, `Notice`, `Warning` and `Critical` mean that the worst finding is a note, a
    /// warning or an error.
    Notice = 14,
    Warning = 15,
    Critical = 16,
    Disconnected = 17,
    /// The plan completes, but pods are lost for good, and no given flag accepts that.
    Loses = 18,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why the program failed: what happened, why, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    #[error("{0}")]
    Usage(String),
    #[error("{0}{next}", next = next_step(.0))]
    Connect(#[from] ConnectError),
    /// The cluster of the kubeconfig's current context cannot be used. `others` names the other contexts.
    #[error(
        "{error}{next}; other contexts, for --context NAME: {names}",
        next = next_step(.error),
        names = listed(.others)
    )]
    CurrentContext { error: ConnectError, others: Vec<String> },
    #[error(transparent)]
    Objects(#[from] ObjectsError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    #[error(
        "cannot list nodes, without which kordon shows nothing: {0}; permit get, list and watch of nodes"
    )]
    NodesForbidden(String),
    /// The user may not list Events. `of` is "all namespaces" or "namespace NAME".
    #[error("may not list Events of {of}: {why}; permit list of events")]
    EventsForbidden { why: String, of: String },
    #[error("cannot list Events: {why}")]
    EventsUnread { why: String },
    /// A named object does not exist. `what` is the object, as in "node n-1"; `meant` has similar names of objects that
    /// exist.
    #[error("{what} not found{}", did_you_mean(meant))]
    NotFound { what: String, meant: Vec<String> },
    /// There is no operation to undo or resume.
    #[error("nothing to {0}; kordon journal lists the operations")]
    NothingTo(&'static str),
    /// An answer depends on unknown objects. `what` is a clause such as "pod shop/cart-1 is unknown"; `gaps` are the
    /// missing objects.
    #[error("{what}: {gaps}")]
    Unknown { what: String, gaps: Gaps },
    /// Objects or answers did not arrive in time. `missing` names them.
    #[error("timed out after {waited} waiting for {missing}; allow more time with {flag}")]
    TooSlow { waited: Span, missing: String, flag: &'static str },
    /// The plan was printed, but would not complete.
    #[error("the plan would not complete: {text}")]
    WouldNot { prospect: Prospect, text: String },
    /// The plan was printed. It completes, but pods are lost that nothing replaces. `pods` are the lost pods.
    #[error("the plan would lose {} for good: {}", counted(pods.len(), "pod", "pods"), pods.join(", "))]
    WouldLose { pods: Vec<String> },
    #[error("nothing was written: {}", .0.lines().join("\n  "))]
    NotApproved(ApprovalRefusal),
    /// The server's validation of a plan found missing permissions.
    #[error("missing permissions: {0}")]
    NotAllowed(String),
    #[error(transparent)]
    WriteContext(#[from] WriteContextError),
    #[error(transparent)]
    Guards(#[from] GuardsError),
    #[error(transparent)]
    Theme(#[from] OwnThemeError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The configuration forbids writing in this context. `why` is the key and its place.
    #[error("nothing was written: {why} makes context {context} read-only")]
    ReadOnly { context: String, why: String },
    #[error("not confirmed: nothing was written")]
    Declined,
    /// The operation ran and was reported, but did not complete.
    #[error("{}: {text}", end.as_str())]
    Ended { end: OperationEnd, text: String },
    /// The report of a cluster that is not healthy was printed, and `--exit-code` was given.
    #[error("the verdict on the cluster is {:?}", level.as_str())]
    NotHealthy { level: VerdictLevel },
    /// `kordon audit` printed its report, with findings as severe as `--fail-on` or more.
    #[error("the worst finding is of severity {:?}", worst.as_str())]
    Findings { worst: FindingSeverity },
    /// `kordon doctor` printed its report, in which checks found problems.
    #[error("problems were found: {problems}")]
    Unwell { exit: Exit, problems: String },
    #[error("the watches of the cluster have ended")]
    WatchesEnded,
    #[error(transparent)]
    Controller(#[from] ControllerError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// At the requested moment, the recording's watches had not yet listed the objects that predictions need.
    #[error("at {} nodes and leases were not listed yet; choose a later time with --at", at.to_time())]
    NotYetRecorded { at: Timestamp },
    #[error(transparent)]
    Recording(#[from] RecordingError),
    #[error("{doing}")]
    Io {
        /// What failed, as in "writing to standard output".
        doing: String,
        #[source]
        error: std::io::Error,
    },
}

impl CliError {
    /// The error for a node that does not exist.
    pub fn no_node(name: &str, cluster: &Cluster) -> Self {
        let meant = nearest_node(&name.into(), cluster);
        Self::NotFound {
            what: format!("node {name}"),
            meant: meant.iter().map(ToString::to_string).collect(),
        }
    }

    pub fn exit(&self) -> Exit {
        match self {
            Self::Usage(_) => Exit::Usage,
            Self::Connect(_) | Self::CurrentContext { .. } | Self::NodesForbidden(_) => Exit::NoConnection,
            Self::Objects(ObjectsError::Cluster { .. }) => Exit::NoConnection,
            Self::Objects(ObjectsError::NoTime { .. } | ObjectsError::Overlay { .. }) => Exit::Usage,
            Self::Objects(_) => Exit::Failed,
            Self::TooSlow { .. } | Self::NotYetRecorded { .. } => Exit::TooSlow,
            Self::Unknown { gaps, .. } => unknown(gaps),
            Self::WouldNot { prospect, .. } => match prospect {
                Prospect::Completes | Prospect::Unknown => Exit::Done,
                Prospect::Stalls => Exit::Stalls,
                Prospect::Blocked => Exit::Blocked,
                Prospect::Refused => Exit::Refused,
            },
            Self::WouldLose { .. } => Exit::Loses,
            Self::NotApproved(refusal) => not_approved(refusal),
            Self::NotAllowed(_) | Self::EventsForbidden { .. } => Exit::NotAllowed,
            Self::WriteContext(WriteContextError::Locked(_)) => Exit::Claimed,
            Self::WriteContext(
                WriteContextError::NotFound { .. }
                | WriteContextError::Journal(_)
                | WriteContextError::Write(_),
            ) => Exit::Failed,
            Self::Guards(GuardsError::Bad { .. })
            | Self::Config(ConfigError::Bad { .. } | ConfigError::Variable { .. })
            | Self::Theme(_) => Exit::Usage,
            Self::Guards(GuardsError::Io { .. }) | Self::Config(ConfigError::Io { .. }) => Exit::Failed,
            Self::ReadOnly { .. } => Exit::Guarded,
            Self::Declined => Exit::Interrupted,
            Self::Ended { end, .. } => match end {
                OperationEnd::Done | OperationEnd::Recorded => Exit::Done,
                OperationEnd::Partly => Exit::Partly,
                OperationEnd::TimedOut => Exit::TimedOut,
                OperationEnd::Forbidden => Exit::NotAllowed,
                OperationEnd::ClaimedByOther => Exit::Claimed,
                OperationEnd::Cancelled => Exit::Interrupted,
            },
            Self::NotHealthy { level } => match level {
                VerdictLevel::Healthy => Exit::Done,
                VerdictLevel::Notice => Exit::Notice,
                VerdictLevel::Warning => Exit::Warning,
                VerdictLevel::Critical => Exit::Critical,
                VerdictLevel::Disconnected => Exit::Disconnected,
            },
            Self::Findings { worst } => match worst {
                FindingSeverity::Note => Exit::Notice,
                FindingSeverity::Warning => Exit::Warning,
                FindingSeverity::Error => Exit::Critical,
            },
            Self::Unwell { exit, .. } => *exit,
            Self::Journal(_) | Self::Recording(_) | Self::WatchesEnded | Self::Controller(_) => Exit::Failed,
            Self::Run(_)
            | Self::Snapshot(_)
            | Self::NotFound { .. }
            | Self::NothingTo(_)
            | Self::EventsUnread { .. }
            | Self::Io { .. } => Exit::Failed,
        }
    }
}

/// The command that finds the cause of a connection error; empty if the error itself says what to do.
const fn next_step(error: &ConnectError) -> &'static str {
    match error {
        ConnectError::Unreachable { .. }
        | ConnectError::Timeout { .. }
        | ConnectError::Certificate { .. }
        | ConnectError::NotKubernetes { .. } => {
            "; `kordon doctor` with the same flags checks each step of the connection"
        }
        ConnectError::NoKubeconfig { .. }
        | ConnectError::MissingKubeconfig { .. }
        | ConnectError::BadKubeconfig { .. }
        | ConnectError::InCluster { .. }
        | ConnectError::NoCurrentContext { .. }
        | ConnectError::UnknownContext { .. }
        | ConnectError::UnknownCluster { .. }
        | ConnectError::UnknownUser { .. }
        | ConnectError::NoServer { .. }
        | ConnectError::BadServer { .. }
        | ConnectError::BadProxy { .. }
        | ConnectError::Credentials { .. }
        | ConnectError::Plugin { .. }
        | ConnectError::Unauthorized { .. }
        | ConnectError::Forbidden { .. } => "",
    }
}

/// Exit code if an answer could not be given because objects are unknown.
fn unknown(gaps: &Gaps) -> Exit {
    if gaps.needs_permission() { Exit::NotAllowed } else { Exit::TooSlow }
}

/// Exit code of an operation that was not approved. The first of several objections decides.
fn not_approved(refusal: &ApprovalRefusal) -> Exit {
    match refusal {
        ApprovalRefusal::NobodyToAsk | ApprovalRefusal::NotStarted(NotStarted::Over(_)) => Exit::Usage,
        ApprovalRefusal::PlanRefused { .. } => Exit::Refused,
        ApprovalRefusal::Permissions(_) => Exit::NotAllowed,
        ApprovalRefusal::Unknown(gaps) => unknown(gaps),
        ApprovalRefusal::NotStarted(NotStarted::InProgress(_)) => Exit::Claimed,
        ApprovalRefusal::Objections(objections) => match objections.first() {
            Some(Objection::Blocked { .. }) => Exit::Blocked,
            Some(Objection::Guard(_)) => Exit::Guarded,
            Some(Objection::Claimed { .. } | Objection::Maintained { .. }) => Exit::Claimed,
            None => Exit::Failed,
        },
        ApprovalRefusal::Locked(_)
        | ApprovalRefusal::Stale(_)
        | ApprovalRefusal::Unlisted(_)
        | ApprovalRefusal::NoPlan(_)
        | ApprovalRefusal::NoNodesLeft
        | ApprovalRefusal::NotChecked(_)
        | ApprovalRefusal::NotStarted(NotStarted::Journal(_)) => Exit::Failed,
    }
}

/// Whether the program has written to standard output. If so, no report of an error is printed there.
static HAS_PRINTED: AtomicBool = AtomicBool::new(false);

/// Writes a note to standard error; the report itself goes to standard output.
pub fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "note: {}", visible::text(text));
}

/// Writes to standard output.
pub fn print(bytes: &[u8]) -> Result<(), CliError> {
    HAS_PRINTED.store(true, Ordering::Relaxed);
    let mut out = std::io::stdout().lock();
    let written = out.write_all(bytes).and_then(|()| out.flush());
    written.map_err(|error| CliError::Io { doing: "writing to standard output".into(), error })
}

/// A report as indented JSON with a final newline. Control and invisible characters are escaped.
pub fn to_json<T: Serialize>(report: &T) -> String {
    let json = serde_json::to_string_pretty(report).expect("a report is plain data");
    format!("{}\n", visible::json(&json))
}

/// A report as JSON in one line. Control and invisible characters are escaped.
pub fn to_json_line<T: Serialize>(report: &T) -> String {
    let json = serde_json::to_string(report).expect("a report is plain data");
    format!("{}\n", visible::json(&json))
}

/// A report as YAML. Control and invisible characters are replaced.
pub fn to_yaml<T: Serialize>(report: &T) -> String {
    visible::lines(&serde_saphyr::to_string(report).expect("a report is plain data"))
}

/// Format of errors. Errors always go to standard error; with `-o json` or `-o yaml`, a report of the error is also
/// printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorFormat {
    Text,
    Json,
    Yaml,
}

impl ErrorFormat {
    /// The error format that a command line asks for, even if the command line is invalid.
    pub fn from_arguments(arguments: &[OsString]) -> Self {
        let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
        let mut formats = words.iter().enumerate().filter_map(|(place, word)| {
            let value = match *word {
                "-o" | "--output" => words.get(place + 1).copied(),
                word => ["--output=", "-o=", "-o"].iter().find_map(|flag| word.strip_prefix(flag)),
            };
            match value? {
                "json" => Some(Self::Json),
                "yaml" => Some(Self::Yaml),
                _ => None,
            }
        });
        formats.next_back().unwrap_or(Self::Text)
    }

    /// Prints an error as a report, unless a report was printed already.
    fn print(self, error: &str, exit: Exit) {
        if HAS_PRINTED.load(Ordering::Relaxed) {
            return;
        }
        let report = json!({"schema": "kordon.error/v1", "exitCode": exit as u8, "error": error});
        let text = match self {
            Self::Text => return,
            Self::Json => to_json(&report),
            Self::Yaml => to_yaml(&report),
        };
        // A failed write is ignored, since the error was also printed to standard error.
        let _ = print(text.as_bytes());
    }
}

/// Prints an error of the command line, or the text of `--help` or `--version`.
pub fn report_parse_error(error: &clap::Error, format: ErrorFormat) -> ExitCode {
    let (raw, text) = (error.to_string(), parse_error_text(error));
    // A closed standard error cannot be reported anywhere.
    if raw == text {
        let _ = error.print();
    } else {
        // clap's coloured output would print control characters of an argument, so the escaped text is printed instead.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Done.into(),
        _ => {
            format.print(text.trim_end(), Exit::Usage);
            Exit::Usage.into()
        }
    }
}

/// Text of an error of the command line, safe for a terminal.
pub fn parse_error_text(error: &clap::Error) -> String {
    visible(&error.to_string())
}

/// Prints an error.
pub fn report_error(error: &CliError, format: ErrorFormat) -> ExitCode {
    if let CliError::Io { error, .. } = error
        && error.kind() == std::io::ErrorKind::BrokenPipe
    {
        // The reader closed the output, as in `kordon status | head`.
        return Exit::Done.into();
    }
    let text = error_text(error);
    let _ = writeln!(std::io::stderr(), "kordon: {text}");
    format.print(&text, error.exit());
    error.exit().into()
}

fn listed(contexts: &[String]) -> String {
    kubeconfig::listed(contexts.iter().map(String::as_str))
}

/// An error with its causes in one line, safe for a terminal. Causes that the text already contains are left out.
pub fn error_text(error: &dyn Error) -> String {
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

/// Makes control characters visible, because errors quote servers and files.
fn visible(text: &str) -> String {
    visible::lines(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_read_from_every_notation_even_of_an_invalid_command_line() {
        let of =
            |line: &str| ErrorFormat::from_arguments(&line.split(' ').map(Into::into).collect::<Vec<_>>());
        for line in ["kordon x -o json", "kordon -ojson", "kordon -o=json x", "kordon --output=json -q"] {
            assert_eq!(of(line), ErrorFormat::Json, "{line}");
        }
        assert_eq!(of("kordon plan --output yaml"), ErrorFormat::Yaml);
        assert_eq!(
            (of("kordon status -o"), of("kordon status -o table")),
            (ErrorFormat::Text, ErrorFormat::Text)
        );
    }

    #[test]
    fn an_error_names_each_cause_once_and_control_characters_do_not_reach_the_terminal() {
        let error = std::io::Error::other("no \x1b[2Jspace");
        let error = CliError::Io { doing: "writing".into(), error };
        assert_eq!(error_text(&error), "writing: no ␛[2Jspace");
    }
}
