//! The token bucket that limits a zone's evictions (docs/upstream/node-lifecycle.md#6.5).

use kordon_time::{Span, Timestamp};

/// The size of every zone's bucket (upstream `EvictionRateLimiterBurst`).
const BURST: f64 = 1.0;

/// Rate limiter of a zone's evictions: gives tokens at a rate, or never gives a token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limiter {
    /// Never gives a token. Upstream's stopped limiter reports the rate 1: see [`Limiter::swap`].
    Never,
    Bucket(Bucket),
}

/// A token bucket that holds at most one token, filled at a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    /// Tokens per second, in 32 bits like the flags of kube-controller-manager.
    rate: f32,
    tokens: f64,
    last: Timestamp,
}

impl Limiter {
    /// Returns a full bucket. With rate 0, the bucket never gives its token, and reports the rate 0, unlike
    /// [`Limiter::Never`].
    pub fn full(rate: f32, now: Timestamp) -> Self {
        Self::Bucket(Bucket { rate, tokens: BURST, last: now })
    }

    /// Takes a token if there is one (upstream `TryAccept`).
    pub fn try_accept(&mut self, now: Timestamp) -> bool {
        match self {
            Self::Never => false,
            Self::Bucket(bucket) => bucket.try_accept(now),
        }
    }

    /// Empties the bucket, because another controller is known to have taken the token.
    pub fn drain(&mut self, now: Timestamp) {
        if let Self::Bucket(bucket) = self {
            (bucket.tokens, bucket.last) = (0.0, now);
        }
    }

    /// Empties the bucket as of `at`. After several calls in any order, the bucket is empty as of the latest `at`.
    pub fn drain_since(&mut self, at: Timestamp) {
        if let Self::Bucket(bucket) = self
            && (bucket.tokens > 0.0 || bucket.last < at)
        {
            (bucket.tokens, bucket.last) = (0.0, at);
        }
    }

    /// Changes the rate (upstream `SwapLimiter`): a drained bucket stays drained.
    ///
    /// A stopped limiter reports the rate 1, so a change to exactly 1 has no effect and the zone stays stopped
    /// (kubernetes#104639, docs/upstream/node-lifecycle.md#12.18).
    #[expect(clippy::float_cmp, reason = "upstream compares the two rates exactly")]
    pub fn swap(&mut self, rate: f32, now: Timestamp) {
        if self.claimed_rate() == rate {
            return;
        }
        if rate <= 0.0 {
            *self = Self::Never;
            return;
        }
        let mut next = Self::full(rate, now);
        if !self.try_accept(now) {
            next.drain(now);
        }
        *self = next;
    }

    /// Tokens per second; 0 for none.
    pub const fn rate(&self) -> f32 {
        match self {
            Self::Never => 0.0,
            Self::Bucket(bucket) => bucket.rate,
        }
    }

    /// Earliest time at or after `now` at which a token is available; none if no token will ever be available.
    pub fn next_token(&self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Never => None,
            Self::Bucket(bucket) => bucket.next_token(now),
        }
    }

    const fn claimed_rate(&self) -> f32 {
        match self {
            Self::Never => 1.0,
            Self::Bucket(bucket) => bucket.rate,
        }
    }
}

impl Bucket {
    fn try_accept(&mut self, now: Timestamp) -> bool {
        let rate = f64::from(self.rate);
        if rate <= 0.0 {
            return false;
        }
        let tokens = self.tokens_at(now);
        // Upstream rounds the wait for a token down to whole nanoseconds.
        let wait_nanos = (1.0 - tokens) / rate * 1e9;
        if wait_nanos >= 1.0 {
            return false;
        }
        (self.tokens, self.last) = (tokens - 1.0, now);
        true
    }

    fn tokens_at(&self, now: Timestamp) -> f64 {
        let elapsed = now.since(self.last).or_zero().as_secs_f64();
        (self.tokens + elapsed * f64::from(self.rate)).min(BURST)
    }

    fn next_token(&self, now: Timestamp) -> Option<Timestamp> {
        let rate = f64::from(self.rate);
        let missing = 1.0 - self.tokens_at(now);
        (rate > 0.0).then(|| now + Span::from_secs_f64(missing / rate).or_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: i64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    #[test]
    fn a_drained_bucket_gives_the_next_token_when_upstream_does() {
        let mut limiter = Limiter::full(0.1, at(0));
        assert!(limiter.try_accept(at(0)));
        assert!(!limiter.try_accept(at(9_999_999_849)), "measured: refused");
        assert!(limiter.try_accept(at(9_999_999_850)), "measured: accepted");
        let mut slow = Limiter::full(0.01, at(0));
        assert!(slow.try_accept(at(0)));
        assert!(!slow.try_accept(at(100_000_000_000)), "0.01 is a little less as a 32-bit float");
        assert!(slow.try_accept(at(100_100_000_000)));
    }

    #[test]
    fn swapping_keeps_a_drained_bucket_drained_and_a_full_one_full() {
        let mut drained = Limiter::full(0.1, at(0));
        assert!(drained.try_accept(at(0)));
        drained.swap(0.5, at(1_000_000_000));
        assert!(!drained.try_accept(at(1_000_000_000)));
        assert!(drained.try_accept(at(3_000_000_000)));
        let mut full = Limiter::full(0.1, at(0));
        full.swap(0.5, at(0));
        assert!(full.try_accept(at(0)));
    }

    #[test]
    fn a_stopped_limiter_starts_empty_and_never_starts_again_at_rate_one() {
        let mut limiter = Limiter::full(0.1, at(0));
        limiter.swap(0.0, at(0));
        assert_eq!((limiter.try_accept(at(1 << 50)), limiter.next_token(at(0))), (false, None));
        limiter.swap(1.0, at(0));
        assert_eq!(limiter, Limiter::Never, "it claims to be at 1 already");
        limiter.swap(0.5, at(0));
        assert!(!limiter.try_accept(at(1_999_000_000)));
        assert!(limiter.try_accept(at(2_000_000_000)));
    }

    #[test]
    fn the_next_token_is_accepted_when_it_was_predicted() {
        let mut limiter = Limiter::full(0.3, at(5));
        assert_eq!(limiter.next_token(at(7)), Some(at(7)));
        assert!(limiter.try_accept(at(7)));
        let next = limiter.next_token(at(1_000)).expect("a rate above zero");
        assert!(limiter.try_accept(next));
    }

    #[test]
    fn a_rate_of_zero_gives_nothing() {
        let mut limiter = Limiter::full(0.0, at(0));
        assert!(!limiter.try_accept(at(1 << 60)));
        assert_eq!(limiter.next_token(at(0)), None);
    }
}
