//! The same session without a screen: for a controller, and for one answer on the command line.

use super::Session;
use crate::app::App;

/// How an unattended session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// What was waited for is there.
    Arrived,
    /// The watches or the executor have ended; nothing more will happen.
    Abandoned,
}

impl Session {
    /// Takes in what the watches say, wakes the engine and passes its effects on until `arrived`.
    ///
    /// May be dropped at any time and called again: nothing is lost in between.
    pub async fn unattended(&mut self, arrived: impl Fn(&App) -> bool) -> Ended {
        while !arrived(&self.app) {
            let due = self.app.wakes_at();
            tokio::select! {
                event = self.feeds.recv() => {
                    let Some(event) = event else { return Ended::Abandoned };
                    self.app.hear(event, self.clock.now());
                }
                outcome = self.outcomes.recv() => {
                    let Some((id, outcome)) = outcome else { return Ended::Abandoned };
                    self.app.outcome(id, outcome, self.clock.now());
                }
                room = self.effects.reserve(), if self.app.has_effects() => {
                    let Ok(room) = room else { return Ended::Abandoned };
                    if let Some(effect) = self.app.next_effect() {
                        room.send(effect);
                    }
                }
                () = self.clock.sleep_until(due.unwrap_or_default()), if due.is_some() => {
                    self.app.wake(self.clock.now());
                }
            }
        }
        Ended::Arrived
    }
}
