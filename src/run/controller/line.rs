//! Output of the controller: one line for each decision, message and change of leadership.

use serde::Serialize;
use tokio::sync::mpsc;

use super::kube_controller_manager::MayLead;
use crate::{executor::effects::ExecutedEffect, model::JournalEntry};
use kordon_core::engine::Severity;
use kordon_time::Timestamp;

/// A line of the controller's output (`docs/controller.md`). Every field is always present.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ControllerLine {
    /// `kordon.controller/v1`: fields are added, never removed or renamed.
    pub schema: &'static str,
    /// When the event happened.
    pub at: Timestamp,
    /// The kind of the line: `started`, `listening` (the address of `/metrics`), `waiting` (kube-controller-manager may
    /// run the same controllers), `standby` (who else holds the Lease), `leading` (the controller writes from now on),
    /// `lost` (it writes nothing more), `effect` (a write that was decided, and its outcome), `notice` (a warning or an
    /// error) or `stopped`.
    pub kind: &'static str,
    /// `info`, `warning` or `error`.
    pub level: &'static str,
    /// The object in kubectl's notation (`node/a`, `pod/shop/web-1`); empty if the line is not about an object.
    pub object: String,
    /// What happened.
    pub text: String,
    /// The chain of causes of an effect; empty if the line is not about an effect.
    pub why: String,
    /// The outcome of an effect: `recorded` (by a shadow, which writes nothing), `done`, `conflict`, `gone` or
    /// `failed`; empty if the line is not about an effect.
    pub outcome: &'static str,
}

impl ControllerLine {
    fn new(kind: &'static str, level: Severity, text: String) -> Self {
        let level = match level {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        Self {
            schema: "kordon.controller/v1",
            at: Timestamp::EPOCH,
            kind,
            level,
            object: String::new(),
            text,
            why: String::new(),
            outcome: "",
        }
    }

    #[must_use]
    pub fn at(self, at: Timestamp) -> Self {
        Self { at, ..self }
    }

    pub fn started(text: String) -> Self {
        Self::new("started", Severity::Info, text)
    }

    pub fn listening(text: String) -> Self {
        Self::new("listening", Severity::Info, text)
    }

    pub fn may_lead(may: MayLead) -> Self {
        let (kind, level) =
            if may.is_allowed { ("notice", Severity::Info) } else { ("waiting", Severity::Warning) };
        Self::new(kind, level, may.text)
    }

    pub fn standby(lease: &str, holder: &str) -> Self {
        let text = match holder {
            "" => format!("nobody holds the Lease {lease}"),
            holder => format!("{holder} holds the Lease {lease}"),
        };
        Self::new("standby", Severity::Info, text)
    }

    pub fn leading(lease: &str, identity: &str) -> Self {
        Self::new(
            "leading",
            Severity::Info,
            format!("holds the Lease {lease} as {identity}: writes from now on"),
        )
    }

    pub fn lost(lease: &str, why: &str) -> Self {
        Self::new(
            "lost",
            Severity::Warning,
            format!("does not hold the Lease {lease} any more ({why}): writes nothing"),
        )
    }

    pub fn stopped(text: String) -> Self {
        Self::new("stopped", Severity::Info, text)
    }

    pub fn notice(entry: &JournalEntry) -> Self {
        let object = entry.subject().map(ToString::to_string).unwrap_or_default();
        let text = if entry.detail.is_empty() {
            entry.text.clone()
        } else {
            format!("{}: {}", entry.text, entry.detail)
        };
        Self { object, why: entry.why.to_string(), ..Self::new("notice", entry.level, text) }
    }

    pub fn effect(executed: &ExecutedEffect) -> Self {
        let ExecutedEffect { at, effect, outcome } = executed;
        let mut text = effect.write.summary();
        let level = match outcome {
            kordon_core::engine::Outcome::Failed(error) => {
                text = format!("{text}: {error}");
                Severity::Error
            }
            _ => Severity::Info,
        };
        Self {
            object: effect.write.object(),
            why: effect.why.to_string(),
            outcome: outcome.word(),
            ..Self::new("effect", level, text).at(*at)
        }
    }
}

/// Sends lines to a [`LineReader`]. If the reader is too slow, lines are lost, so that the controller never waits.
#[derive(Clone, Debug)]
pub struct LineWriter {
    lines: mpsc::Sender<ControllerLine>,
    effects: mpsc::Sender<ExecutedEffect>,
}

/// Capacity of each of the two queues to the reader.
const WAITING: usize = 4096;

impl LineWriter {
    /// Returns a writer, and the reader of its lines.
    pub fn new() -> (Self, LineReader) {
        let (lines, read_lines) = mpsc::channel(WAITING);
        let (effects, read_effects) = mpsc::channel(WAITING);
        (Self { lines, effects }, LineReader { lines: read_lines, effects: read_effects })
    }

    pub fn write(&self, line: ControllerLine) {
        let _ = self.lines.try_send(line);
    }

    /// Returns the channel on which executed effects are reported.
    pub fn effects(&self) -> mpsc::Sender<ExecutedEffect> {
        self.effects.clone()
    }
}

/// Receives the lines of a [`LineWriter`].
#[derive(Debug)]
pub struct LineReader {
    lines: mpsc::Receiver<ControllerLine>,
    effects: mpsc::Receiver<ExecutedEffect>,
}

impl LineReader {
    /// Waits for the next line; none once all writers are dropped.
    pub async fn next(&mut self) -> Option<ControllerLine> {
        tokio::select! {
            biased;
            Some(executed) = self.effects.recv() => Some(ControllerLine::effect(&executed)),
            Some(line) = self.lines.recv() => Some(line),
            else => None,
        }
    }
}
