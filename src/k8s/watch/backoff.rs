//! How long to wait before the next try.

use std::time::Duration;

/// The first pause after a failure; it doubles from there.
const FIRST: Duration = Duration::from_millis(800);

/// Pauses between tries: growing while tries fail, and never the same for two of us.
#[derive(Debug, Default)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The pause after one more failure, of at most `longest`; at least what the server asked for.
    pub fn next(&mut self, longest: Duration, asked: Option<Duration>) -> Duration {
        let grown = FIRST.saturating_mul(1 << self.failures.min(10)).min(longest);
        self.failures = self.failures.saturating_add(1);
        let pause = grown.mul_f64(0.5 + fastrand::f64() / 2.0);
        // What the server asks for, and a little: it asks everyone the same.
        asked.map_or(pause, |asked| pause.max(asked.mul_f64(1.0 + fastrand::f64() / 4.0)))
    }

    /// Something came: the next failure counts as the first.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_their_limit_and_begin_anew() {
        let (mut pace, longest) = (Backoff::default(), Duration::from_secs(8));
        let first = pace.next(longest, None);
        assert!(first <= FIRST && first >= FIRST / 2);
        for _ in 0..40 {
            assert!(pace.next(longest, None) <= longest);
        }
        assert!(pace.next(longest, None) >= longest / 2);
        pace.reset();
        assert!(pace.next(longest, None) <= FIRST);
    }

    #[test]
    fn what_the_server_asks_for_is_the_least() {
        let asked = Duration::from_secs(20);
        assert!(Backoff::default().next(Duration::from_secs(8), Some(asked)) >= asked);
    }
}
