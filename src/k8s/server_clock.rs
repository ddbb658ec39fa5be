//! The difference between the clocks of a server and of this machine.

use std::time::Duration;

use chrono::DateTime;
use http::{Request, header::DATE};
use kube::{Client, client::Body};
use tokio::time::timeout;

use kordon_clock::Clock;
use kordon_time::{Span, Timestamp};

/// Resolution of a Date header. The exact time is up to one second later than the header.
const SECOND: Span = Span::from_secs(1);

/// Timeout of the response whose Date header is read.
const PATIENCE: Duration = Duration::from_secs(5);

/// Range of the difference of the clocks (the server's minus ours), from one response.
#[derive(Clone, Copy, Debug)]
pub struct ClockDifferenceRange {
    pub least: Span,
    pub most: Span,
}

impl ClockDifferenceRange {
    /// Sends a small request and reads the Date header of the response; `None` if there is no response or no Date.
    pub async fn measure(client: &Client, clock: Clock) -> Option<Self> {
        let request = Request::get("/version").body(Body::empty()).expect("a constant path");
        let before = clock.now();
        let answer = timeout(PATIENCE, client.send(request)).await.ok()?.ok()?;
        let after = clock.now();
        if after < before {
            // The local clock was set back during the request, so the range of the clock difference would be wrong.
            return None;
        }
        let date = DateTime::parse_from_rfc2822(answer.headers().get(DATE)?.to_str().ok()?).ok()?;
        Some(Self::new(Timestamp::from_secs(date.timestamp()), before, after))
    }

    /// Returns the range of the clock difference for a response whose Date header is `date`. The server wrote the
    /// response between `before` and `after` by our clock.
    fn new(date: Timestamp, before: Timestamp, after: Timestamp) -> Self {
        Self { least: date.since(after), most: (date + SECOND).since(before) }
    }

    /// Returns the difference of the clocks. A `known` difference is kept if it is in the range. If it is slightly
    /// outside, it is moved to the nearest end of the range. If it is far outside, a clock was set, and the middle of
    /// the range replaces it.
    ///
    /// The known difference has precedence because a new estimate each minute would shift all converted times by up to
    /// half a second. Each correction makes the known difference more accurate.
    pub fn difference(self, known: Option<Span>) -> Span {
        let Self { least, most } = self;
        let is_near = |known: &Span| (least - SECOND..=most + SECOND).contains(known);
        let middle = Span::from_nanos(least.as_nanos().midpoint(most.as_nanos()));
        known.filter(is_near).map_or(middle, |known| known.clamp(least, most))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_000_000);

    /// Returns the range of the clock difference for a response that was written at `at` by our clock. Request and
    /// response each took the time `way`.
    fn answer(ahead: Span, at: Timestamp, way: Span) -> ClockDifferenceRange {
        let whole_seconds = (at + ahead).as_nanos().div_euclid(SECOND.as_nanos());
        ClockDifferenceRange::new(Timestamp::from_secs(whole_seconds), at - way, at + way)
    }

    fn off(difference: Span, ahead: Span) -> Span {
        (difference - ahead).max(ahead - difference)
    }

    proptest! {
        #[test]
        fn each_answer_brings_the_difference_nearer_or_leaves_it(
            ahead in -5_000_i64..5_000,
            answers in prop::collection::vec((0_i64..1_000_000, 0_i64..200), 1..50),
        ) {
            let ahead = Span::from_millis(ahead);
            let (mut known, mut error) = (None, Span::from_millis(500 + 200));
            for (at, way) in answers {
                let (at, way) = (NOW + Span::from_millis(at), Span::from_millis(way));
                let difference = answer(ahead, at, way).difference(known);
                let is_off = off(difference, ahead);
                prop_assert!(is_off <= error, "{is_off} after {error}");
                (known, error) = (Some(difference), is_off);
            }
        }

        #[test]
        fn after_a_clock_was_set_the_next_answer_alone_counts(
            before in -100_i64..100,
            after in -100_i64..100,
            at in 0_i64..1000,
        ) {
            prop_assume!((before - after).abs() > 3);
            let (ahead, way) = (Span::from_secs(after), Span::from_millis(10));
            let range = answer(ahead, NOW + Span::from_millis(at), way);
            let difference = range.difference(Some(Span::from_secs(before)));
            prop_assert_eq!(difference, range.difference(None));
            prop_assert!(off(difference, ahead) <= Span::from_millis(510));
        }
    }

    #[test]
    fn what_is_known_changes_no_more_than_an_answer_tells() {
        let range = ClockDifferenceRange { least: Span::from_millis(200), most: Span::from_millis(1200) };
        let known = |millis| range.difference(Some(Span::from_millis(millis)));
        assert_eq!(range.difference(None), Span::from_millis(700));
        assert_eq!(known(1000), Span::from_millis(1000));
        assert_eq!(known(-300), Span::from_millis(200));
        assert_eq!(known(1500), Span::from_millis(1200));
        assert_eq!(known(9000), Span::from_millis(700));
    }
}
