//! The only place that reads a clock. The program and the demo take the time from a [`Clock`], and pass it to
//! `kordon-core` as an argument.
//!
//! ```text
//!  system time, once at the start ---> Clock ---> now()           Timestamp
//!  tokio's monotonic time, times speed --^   '--> sleep_until()   a timer
//! ```

#![warn(clippy::unwrap_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

use std::time::SystemTime;

use tokio::time::Instant;

use kordon_time::{Span, Timestamp};

/// A clock that starts at a given time, for example the wall-clock time, and is advanced by the monotonic clock.
///
/// Steps of the system's clock do not affect it. Pausing tokio's time also pauses it. In the demo it runs faster than
/// real time. All copies of a clock show the same time.
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

    /// A clock that shows `epoch` now and runs at `speed` times real time (finite, zero or above).
    pub fn new(epoch: Timestamp, speed: f64) -> Self {
        Self { started: Instant::now(), epoch, speed }
    }

    /// A clock that always shows `at`.
    pub fn stopped(at: Timestamp) -> Self {
        Self::new(at, 0.0)
    }

    /// Returns a clock that callers can wait by: this clock, or, if it is stopped, a clock that runs in real time.
    pub fn running(self) -> Self {
        if self.is_stopped() { Self { speed: 1.0, ..self } } else { self }
    }

    /// Whether the clock always shows the same time.
    pub const fn is_stopped(&self) -> bool {
        self.speed == 0.0
    }

    pub fn now(&self) -> Timestamp {
        self.epoch + Span::from_secs_f64(self.started.elapsed().as_secs_f64() * self.speed)
    }

    /// The instant on tokio's clock at which this clock shows `at`, at most a year ahead. If the clock is stopped, any
    /// later time is a year ahead.
    pub fn instant(&self, at: Timestamp) -> Instant {
        const FAR: Span = Span::from_secs(365 * 86_400);
        let ahead = at.since(self.epoch).or_zero().min(FAR);
        if self.is_stopped() {
            return self.started + if ahead == Span::ZERO { ahead } else { FAR }.to_std();
        }
        self.started + Span::from_secs_f64(ahead.as_secs_f64() / self.speed).to_std()
    }

    /// Sleeps until this clock shows `at`.
    pub async fn sleep_until(&self, at: Timestamp) {
        tokio::time::sleep_until(self.instant(at)).await;
    }

    /// Sleeps for `span` on this clock.
    pub async fn sleep(&self, span: Span) {
        self.sleep_until(self.now() + span).await;
    }
}

/// The machine's wall-clock time, including clock steps and suspended time. For comparison only: use [`Clock`] for the
/// time.
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub fn wall() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::EPOCH + Span::from(since_epoch)
}
