//! Enforce mode: unlocked for a limited time, then locked again.

use super::{
    super::{
        Mode,
        dialog::{Dialog, DialogSubject},
        history_view::PAST,
        typed_span::span,
    },
    App,
};
use kordon_core::engine::Severity;
use kordon_time::{Span, Timestamp};

/// Default duration of enforce mode.
pub const LIFETIME: Span = Span::from_secs(15 * 60);

/// Maximum duration of enforce mode.
const LONGEST: Span = Span::from_secs(12 * 3600);

impl App {
    /// Enables enforce mode for the given or the default duration.
    pub(in crate::app) fn enforce(&mut self, argument: &str, now: Timestamp) -> Result<(), String> {
        if self.operations.mode == Mode::ReadOnly {
            return Err(format!("read-only: {}", self.why_read_only()));
        }
        if self.operations.mode == Mode::Replay {
            return Err("replay: nothing can be written to a recording".into());
        }
        if let Some(why) = &self.operations.locked {
            return Err(format!("nothing can be applied: {why}"));
        }
        let lifetime = span(argument)?.unwrap_or(LIFETIME);
        if lifetime > LONGEST {
            return Err(format!("{lifetime} is too long: at most {LONGEST} at a time"));
        }
        self.operations.mode = Mode::Enforce;
        self.operations.enforced_until = Some(now + lifetime);
        let text = format!("enforce mode for {lifetime}: A in a plan applies it");
        self.log(now, Severity::Warning, "", &text);
        self.screen.message = Some(text);
        Ok(())
    }

    pub(in crate::app) fn stop_enforcing(&mut self, now: Timestamp) -> Result<(), String> {
        match self.operations.mode {
            Mode::ReadOnly => return Err("read-only: this session cannot write".into()),
            Mode::Replay => return Err("replay: nothing can be written to a recording".into()),
            Mode::DryRun => self.screen.message = Some("already in dry-run mode".into()),
            Mode::Enforce => self.lock(now, "enforce mode ended"),
        }
        Ok(())
    }

    /// Ends enforce mode because another context is shown.
    pub(in crate::app) fn end_enforcing_here(&mut self, now: Timestamp) {
        if self.operations.mode == Mode::Enforce {
            self.lock(now, "another context is shown");
        }
    }

    /// Ends enforce mode if its time has expired. Returns whether the mode ended.
    pub(super) fn end_enforcing(&mut self, now: Timestamp) -> bool {
        let is_over = self.operations.enforced_until.is_some_and(|until| until <= now);
        if is_over {
            self.lock(now, "enforce mode expired");
        }
        is_over
    }

    /// Ends enforce mode. No new operation can start, but operations in progress continue, because half a drain is
    /// worse than a complete one.
    fn lock(&mut self, now: Timestamp, why: &str) {
        self.operations.mode = Mode::DryRun;
        self.operations.enforced_until = None;
        let running = match self.operations.running().count() {
            0 => String::new(),
            1 => "; 1 operation continues".into(),
            many => format!("; {many} operations continue"),
        };
        let text = format!("{why}: back to dry-run{running}");
        self.log(now, Severity::Warning, "", &text);
        self.screen.message = Some(text);
        if let Some(Dialog { subject: DialogSubject::Approval(approval), .. }) =
            self.screen.overlays.question_mut()
        {
            approval.handle_lock(why);
        }
    }

    /// Forbids writing if the configuration forbids it now. A configuration that no longer forbids writing has no
    /// effect until the next start. Returns a message about the change.
    pub(in crate::app) fn tighten(&mut self, read_only: Option<String>, now: Timestamp) -> Option<String> {
        match (read_only, self.operations.mode) {
            (_, Mode::Replay) => None,
            (Some(why), Mode::ReadOnly) => {
                self.operations.read_only.get_or_insert(why);
                None
            }
            (Some(why), Mode::DryRun | Mode::Enforce) => {
                let text = format!("{why} forbids writing from now on");
                if self.operations.mode == Mode::Enforce {
                    self.lock(now, &text);
                } else {
                    self.log(now, Severity::Warning, "", &text);
                }
                self.operations.mode = Mode::ReadOnly;
                self.operations.read_only = Some(why);
                Some(text)
            }
            (None, _) => {
                let stays = self.operations.read_only.as_ref();
                stays.map(|_| {
                    "this session stays read-only: writing is allowed again from the next start".into()
                })
            }
        }
    }

    /// Why enforce mode cannot be enabled.
    fn why_read_only(&self) -> String {
        match &self.operations.read_only {
            Some(why) => format!("{why} forbids writing in this context"),
            None => "this session was started with --read-only".into(),
        }
    }

    /// Why no operation that writes may start; `None` if such operations may start.
    pub(in crate::app) fn why_not_now(&self) -> Option<String> {
        match self.operations.mode {
            Mode::DryRun => Some(
                "dry-run: nothing is written; `:enforce` unlocks writing for 15m, `:enforce 1h` for longer"
                    .into(),
            ),
            Mode::ReadOnly => {
                Some(format!("read-only: nothing is written in this session; {}", self.why_read_only()))
            }
            Mode::Replay => Some("replay: nothing can be written to a recording".into()),
            Mode::Enforce if self.is_in_history() => Some(PAST.into()),
            Mode::Enforce if self.is_frozen() => {
                Some("the screen is frozen: press f to unfreeze it first".into())
            }
            Mode::Enforce => None,
        }
    }
}
