//! Enforcing: unlocked for a while, and locked again by itself.

use super::{
    super::{
        Mode,
        commands::TypedCommand,
        dialog::{DialogStage, DialogSubject},
    },
    App,
};
use crate::{
    engine::{Severity, Why},
    model::JournalEntry,
    time::{Span, Timestamp},
};

/// For how long enforcing is unlocked where nothing is said.
pub const LIFETIME: Span = Span::from_secs(15 * 60);

/// The longest that it can be unlocked for at a time.
const LONGEST: Span = Span::from_secs(12 * 3600);

impl App {
    /// Does what was typed.
    ///
    /// # Errors
    /// It cannot be done, or makes no sense, in words.
    pub(in crate::app) fn heed(
        &mut self,
        typed: TypedCommand,
        argument: &str,
        now: Timestamp,
    ) -> Result<(), String> {
        match typed {
            TypedCommand::Enforce => self.enforce(argument, now)?,
            TypedCommand::DryRun => self.stop_enforcing(now)?,
            TypedCommand::Reason => {
                self.acts.reason = argument.into();
                self.screen.message = Some(if argument.is_empty() {
                    "no reason is given any more".into()
                } else {
                    format!("the reason for what is carried out next: {argument}")
                });
            }
            TypedCommand::Until => {
                self.acts.until = span(argument)?;
                self.screen.message = Some(self.acts.until.map_or_else(
                    || "nothing is said any more about how long cordons are meant to stand".into(),
                    |span| format!("the next cordons are meant to stand for {span}"),
                ));
            }
            TypedCommand::Within => {
                self.acts.within = span(argument)?;
                self.screen.message = Some(self.acts.within.map_or_else(
                    || "the next plans may take as long as they take".into(),
                    |span| format!("the next plan may take {span} in all"),
                ));
            }
        }
        Ok(())
    }

    /// Lets plans be carried out, for a while.
    fn enforce(&mut self, argument: &str, now: Timestamp) -> Result<(), String> {
        if self.mode == Mode::ReadOnly {
            return Err(
                "read-only: this session was begun with --read-only, which locks enforcing out".into()
            );
        }
        if let Some(why) = &self.acts.locked {
            return Err(format!("nothing can be carried out: {why}"));
        }
        let lifetime = span(argument)?.unwrap_or(LIFETIME);
        if lifetime > LONGEST {
            return Err(format!("at most {LONGEST} at a time: {lifetime} is longer"));
        }
        self.mode = Mode::Enforce;
        self.acts.enforced_until = Some(now + lifetime);
        let text = format!("plans can be carried out for {lifetime}: A in a plan");
        self.model.journal.add(JournalEntry::new(now, Severity::Warning, "enforce", &text, Why::default()));
        self.screen.message = Some(text);
        Ok(())
    }

    fn stop_enforcing(&mut self, now: Timestamp) -> Result<(), String> {
        match self.mode {
            Mode::ReadOnly => return Err("this session is read-only: less than dry-run there is not".into()),
            Mode::DryRun => self.screen.message = Some("it is dry-run already".into()),
            Mode::Enforce => self.lock(now, "enforce was ended"),
        }
        Ok(())
    }

    /// Ends enforcing when its time is over; tells whether it did.
    pub(super) fn end_enforcing(&mut self, now: Timestamp) -> bool {
        let is_over = self.acts.enforced_until.is_some_and(|until| until <= now);
        if is_over {
            self.lock(now, "the time for enforce is over");
        }
        is_over
    }

    /// Nothing is begun any more. What runs goes on: half a drain is worse than a whole one.
    fn lock(&mut self, now: Timestamp, why: &str) {
        self.mode = Mode::DryRun;
        self.acts.enforced_until = None;
        let running = match self.acts.running().count() {
            0 => String::new(),
            1 => "; what is being carried out goes on".into(),
            many => format!("; {many} undertakings go on"),
        };
        let text = format!("{why}: dry-run, nothing is begun any more that writes{running}");
        self.model.journal.add(JournalEntry::new(now, Severity::Warning, "enforce", &text, Why::default()));
        self.screen.message = Some(text);
        if let Some(dialog) = self.screen.overlays.question_mut()
            && dialog.can_be_left()
            && matches!(dialog.about, DialogSubject::Apply(_) | DialogSubject::Undo(_))
        {
            dialog.go_on(DialogStage::Refused(vec![format!("{why}: nothing was written")]));
        }
    }

    /// Why nothing may be begun that writes; none where it may.
    pub(super) fn why_not_now(&self) -> Option<String> {
        match self.mode {
            Mode::DryRun => Some(
                "dry-run: nothing is written; `:enforce` unlocks that for 15m, `:enforce 1h` for longer"
                    .into(),
            ),
            Mode::ReadOnly => Some("read-only: nothing is written in this session".into()),
            Mode::Enforce if self.frozen.is_some() => {
                Some("the picture is held still: f lets it go on, then this can be carried out".into())
            }
            Mode::Enforce => None,
        }
    }
}

/// Reads `30s`, `15m`, `1h30m`; nothing is none.
fn span(text: &str) -> Result<Option<Span>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let span = humantime::parse_duration(text).map(Span::from);
    span.ok()
        .filter(|span| *span > Span::ZERO)
        .map(Some)
        .ok_or_else(|| format!("{text} is no time such as 30s, 15m or 1h30m"))
}
