//! The loop around a plan that is carried out: what the watches say goes in, errands go out, what came of them comes
//! back.

use std::time::Duration;

use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};

use crate::{
    clock::Clock,
    engine::Severity,
    executor::requests::RequestLink,
    journal::{JournalLine, JournalWriter, LineKind},
    k8s::feed::{FeedEvent, FeedState},
    model::Model,
    operation::{Operation, OperationNotice},
};

/// A plan that is being carried out, and all that it is connected to.
pub struct OperationRun {
    pub conduct: Operation,
    /// What the watches report; without an engine.
    pub model: Model,
    pub feeds: mpsc::Receiver<FeedEvent>,
    pub link: RequestLink,
    /// None in a dry-run.
    pub journal: Option<JournalWriter>,
    pub clock: Clock,
}

/// What an operator may want meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperatorInput {
    Pause,
    GoOn,
    Cancel,
}

/// Changes are taken in so often at most: a large cluster tells of hundreds a second.
const LOOK: Duration = Duration::from_millis(50);

impl OperationRun {
    /// Goes on until it is over. `tell` hears what an operator should know.
    ///
    /// `wishes` may end; then nothing is wished for any more.
    pub async fn run(
        &mut self,
        wishes: &mut mpsc::Receiver<OperatorInput>,
        mut tell: impl FnMut(&OperationNotice),
    ) {
        let (mut changed, mut look_at) = (false, Instant::now());
        let (mut watching, mut wishing) = (true, true);
        let errands = self.link.items.clone();
        loop {
            self.pass_on(&mut tell).await;
            if self.conduct.ended().is_some() {
                return;
            }
            let has_errands = self.conduct.has_errands();
            let due = self.conduct.poll_timeout();
            tokio::select! {
                biased;
                wish = wishes.recv(), if wishing => match wish {
                    Some(wish) => self.heed(wish),
                    None => wishing = false,
                },
                Some((id, outcome)) = self.link.outcomes.recv() => {
                    self.conduct.handle_outcome(&self.model.cluster, id, outcome, self.clock.now());
                }
                room = errands.reserve(), if has_errands => match room {
                    Ok(room) => {
                        if let Some(errand) = self.conduct.poll_errand() {
                            room.send(errand);
                        }
                    }
                    // The executor has ended, which it does only with the program.
                    Err(_) => return,
                },
                event = self.feeds.recv(), if watching => match event {
                    Some(event) => changed |= self.hear(event, &mut tell),
                    None => {
                        watching = false;
                        let text = "the watches have ended: what happens is not seen any more";
                        self.say(Severity::Error, text.into(), &mut tell);
                    }
                },
                () = sleep_until(look_at), if changed => {
                    changed = false;
                    look_at = Instant::now() + LOOK;
                    self.conduct.handle_change(&self.model.cluster, self.clock.now());
                }
                () = self.clock.sleep_until(due.unwrap_or_default()), if due.is_some() => {
                    self.conduct.handle_timeout(&self.model.cluster, self.clock.now());
                }
            }
        }
    }

    fn heed(&mut self, wish: OperatorInput) {
        let now = self.clock.now();
        match wish {
            OperatorInput::Pause => self.conduct.pause(now),
            OperatorInput::GoOn => self.conduct.go_on(&self.model.cluster, now),
            OperatorInput::Cancel => self.conduct.cancel(&self.model.cluster, now),
        }
    }

    /// Takes in what a watch says; tells whether the cluster has changed by it.
    fn hear(&mut self, event: FeedEvent, tell: &mut impl FnMut(&OperationNotice)) -> bool {
        if let FeedEvent::Health(kind, health) = &event
            && let FeedState::Broken { error, .. } = &health.state
        {
            self.say(Severity::Warning, format!("the watch of {kind} is broken: {error}"), tell);
        }
        !self.model.on_watch_event(event, self.clock.now()).is_empty()
    }

    fn say(&self, level: Severity, text: String, tell: &mut impl FnMut(&OperationNotice)) {
        tell(&OperationNotice { at: self.clock.now(), level, subject: String::new(), text });
    }

    /// Tells what there is to tell, and writes it down.
    async fn pass_on(&mut self, tell: &mut impl FnMut(&OperationNotice)) {
        while let Some(notice) = self.conduct.poll_notice() {
            tell(&notice);
            let Some(journal) = &self.journal else { continue };
            let OperationNotice { at, level, subject, text } = notice;
            let operation = self.conduct.orders().id.clone();
            let line = JournalLine { at, operation, kind: LineKind::Notice { level, subject, text } };
            if let Err(error) = journal.append(line).await {
                tracing::error!(%error, "the journal cannot be written");
            }
        }
    }
}
