//! Carries out one operation for the command line.

use std::time::Duration;

use tokio::{
    sync::mpsc,
    time::{Instant, interval_at, sleep_until},
};

use super::watched_model::{WatchNews, WatchedModel};
use crate::{
    executor::requests::RequestLink,
    journal::{JournalLine, JournalWriter, LineKind},
};
use kordon_clock::Clock;
use kordon_core::{
    engine::Severity,
    operation::{Operation, OperationNotice, OperatorInput},
};

/// An operation in progress, with its connections to the cluster, the executor and the journal.
pub struct OperationRun<'a> {
    pub operation: Operation,
    /// Model of the watched cluster. Its engine, if it has one, is not woken during the operation.
    pub watched: WatchedModel<'a>,
    pub link: RequestLink,
    /// Writer of the journal; none in a dry run.
    pub journal: Option<JournalWriter>,
    pub clock: Clock,
}

/// Why [`OperationRun::run`] has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returned {
    /// The operation has ended, or the program ends.
    Ended,
    /// The operator has paused or resumed the operation. The caller has to run it further.
    PauseChanged,
}

/// Interval at which the operator sees the progress.
const PROGRESS: Duration = Duration::from_secs(10);

/// Minimum interval between two reactions of the operation to changes, because a large cluster reports hundreds of
/// changes a second.
const LOOK: Duration = Duration::from_millis(50);

impl OperationRun<'_> {
    /// Runs the operation to its end, or until the operator pauses or resumes it. `tell` receives notices for the
    /// operator. The channel `input` may be closed before the operation ends.
    pub async fn run(
        &mut self,
        input: &mut mpsc::Receiver<OperatorInput>,
        mut tell: impl FnMut(&OperationNotice),
    ) -> Returned {
        let (mut changed, mut look_at) = (false, Instant::now());
        let mut progress = interval_at(Instant::now() + PROGRESS, PROGRESS);
        let (mut is_watching, mut has_input) = (true, true);
        let requests = self.link.items.clone();
        loop {
            self.write_notices(&mut tell).await;
            if self.operation.ended().is_some() {
                return Returned::Ended;
            }
            let has_requests = self.operation.has_requests();
            let due = self.operation.poll_timeout();
            tokio::select! {
                biased;
                received = input.recv(), if has_input => match received {
                    Some(received) => {
                        self.on_input(received);
                        if matches!(received, OperatorInput::Pause | OperatorInput::Resume) {
                            self.write_notices(&mut tell).await;
                            return Returned::PauseChanged;
                        }
                    }
                    None => has_input = false,
                },
                Some((id, outcome)) = self.link.outcomes.recv() => {
                    self.operation.handle_outcome(self.watched.cluster(), id, outcome, self.clock.now());
                }
                room = requests.reserve(), if has_requests => match room {
                    Ok(room) => {
                        if let Some(request) = self.operation.poll_request() {
                            room.send(request);
                        }
                    }
                    // No request can be sent once the executor has ended, which happens only when the program ends.
                    Err(_) => return Returned::Ended,
                },
                news = self.watched.next(self.clock), if is_watching => match news {
                    Some(WatchNews::Changed) => changed = true,
                    Some(WatchNews::Unchanged) => {}
                    Some(WatchNews::Broken(text)) => {
                        changed = true;
                        self.tell(Severity::Warning, text, &mut tell);
                    }
                    None => {
                        is_watching = false;
                        let text = "the watches have ended: changes of the cluster are not seen any more";
                        self.tell(Severity::Error, text.into(), &mut tell);
                    }
                },
                () = sleep_until(look_at), if changed => {
                    changed = false;
                    look_at = Instant::now() + LOOK;
                    self.operation.handle_change(self.watched.cluster(), self.clock.now());
                }
                () = self.clock.sleep_until(due.unwrap_or_default()), if due.is_some() => {
                    self.operation.handle_timeout(self.watched.cluster(), self.clock.now());
                }
                _ = progress.tick() => self.tell_progress(&mut tell),
            }
        }
    }

    /// Reports the progress of the operation and its expected end to the operator.
    fn tell_progress(&self, tell: &mut impl FnMut(&OperationNotice)) {
        let now = self.clock.now();
        if let Some(left) = self.operation.time_left(self.watched.cluster(), now) {
            let text = format!("{}; {}", self.operation.progress().in_short(), left.text(now));
            self.tell(Severity::Info, text, tell);
        }
    }

    fn on_input(&mut self, input: OperatorInput) {
        let now = self.clock.now();
        match input {
            OperatorInput::Pause => self.operation.pause(now),
            OperatorInput::Resume => self.operation.resume(self.watched.cluster(), now),
            OperatorInput::Cancel => self.operation.cancel(self.watched.cluster(), now),
        }
    }

    fn tell(&self, level: Severity, text: String, tell: &mut impl FnMut(&OperationNotice)) {
        tell(&OperationNotice { at: self.clock.now(), level, subject: String::new(), text });
    }

    /// Passes the notices of the operation to `tell`, and writes them to the journal.
    async fn write_notices(&mut self, tell: &mut impl FnMut(&OperationNotice)) {
        while let Some(notice) = self.operation.poll_notice() {
            tell(&notice);
            let Some(journal) = &self.journal else { continue };
            let OperationNotice { at, level, subject, text } = notice;
            let operation = self.operation.options().id.clone();
            let line = JournalLine { at, operation, kind: LineKind::Notice { level, subject, text } };
            if let Err(error) = journal.append(line).await {
                tracing::error!(%error, "cannot write the journal");
            }
        }
    }
}
