//! The only place that reads a clock.

#![warn(clippy::unwrap_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

use std::time::SystemTime;

use tokio::time::Instant;

use kordon_time::{Span, Timestamp};

/// What time it is: wall-clock time at the start, carried on by the monotonic clock.
///
/// A step of the system's clock does not disturb it, tokio's paused time does move it, and the demo runs it
/// faster than real time. Copies agree with each other.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started: Instant,
    epoch: Timestamp,
    speed: f64,
}

impl Clock {
    /// The machine's clock.
    pub fn system() -> Self {
        Self::new(wall(), 1.0)
    }

    /// A clock that shows `epoch` now and runs `speed` times as fast as the machine's (finite, above zero).
    pub fn new(epoch: Timestamp, speed: f64) -> Self {
        Self { started: Instant::now(), epoch, speed }
    }

    pub fn now(&self) -> Timestamp {
        self.epoch + Span::from_secs_f64(self.started.elapsed().as_secs_f64() * self.speed)
    }

    /// When, on tokio's clock, this clock shows `at`. A time too far away becomes one in a year.
    pub fn instant(&self, at: Timestamp) -> Instant {
        const FAR: Span = Span::from_secs(365 * 86_400);
        let ahead = at.since(self.epoch).or_zero().min(FAR);
        self.started + Span::from_secs_f64(ahead.as_secs_f64() / self.speed).to_std()
    }

    /// Sleeps until this clock shows `at`.
    pub async fn sleep_until(&self, at: Timestamp) {
        tokio::time::sleep_until(self.instant(at)).await;
    }

    /// Sleeps for `span` as this clock counts it.
    pub async fn sleep(&self, span: Span) {
        self.sleep_until(self.now() + span).await;
    }
}

/// What the machine's own clock shows, steps and sleep included. For comparison only: [`Clock`] tells the time.
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub fn wall() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::EPOCH + Span::from(since_epoch)
}
