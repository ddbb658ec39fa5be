//! Backoff between attempts.

use std::time::Duration;

/// Delay after the first failure. The delay doubles with each further failure.
const FIRST: Duration = Duration::from_millis(800);

/// Delays between attempts. They grow with each failure and have jitter, so that clients do not retry at the same time.
#[derive(Debug, Default)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Returns the delay before the next attempt, after another failure. If the server `asked` for a delay, the result
    /// is not shorter than that delay, even if it is longer than `longest`.
    pub fn next(&mut self, longest: Duration, asked: Option<Duration>) -> Duration {
        let grown = FIRST.saturating_mul(1 << self.failures.min(10)).min(longest);
        self.failures = self.failures.saturating_add(1);
        let pause = grown.mul_f64(0.5 + fastrand::f64() / 2.0);
        // Jitter is added to the delay that the server asked for, because it asks all clients for the same delay.
        asked.map_or(pause, |asked| pause.max(asked.mul_f64(1.0 + fastrand::f64() / 4.0)))
    }

    /// Resets the delay after a success.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_their_limit_until_a_success() {
        let (mut backoff, longest) = (Backoff::default(), Duration::from_secs(8));
        let first = backoff.next(longest, None);
        assert!(first <= FIRST && first >= FIRST / 2);
        for _ in 0..40 {
            assert!(backoff.next(longest, None) <= longest);
        }
        assert!(backoff.next(longest, None) >= longest / 2);
        backoff.reset();
        assert!(backoff.next(longest, None) <= FIRST);
    }

    #[test]
    fn a_pause_is_at_least_what_the_server_asks_for() {
        let asked = Duration::from_secs(20);
        assert!(Backoff::default().next(Duration::from_secs(8), Some(asked)) >= asked);
    }
}
