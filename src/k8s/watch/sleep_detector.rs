//! Measures the server's clock, and detects whether this machine has slept.

use std::{sync::Arc, time::Duration};

use chrono::DateTime;
use http::header::DATE;
use tokio::time::{Instant, sleep};

use super::{Closed, Shared, error};
use crate::k8s::feed::FeedEvent;
use kordon_time::{Span, Timestamp};

/// Interval at which the clocks of this machine are compared.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Interval at which the server's clock is read.
const ASK_EVERY: Duration = Duration::from_secs(60);

/// The machine counts as having slept if the wall clock has advanced this much more than the runtime's clock.
const SLEPT: Span = Span::from_secs(30);

/// Resolution of a Date header. The exact time is up to one second later than the header.
const SECOND: Span = Span::from_secs(1);

/// Reads the server's clock once a minute, and wakes the watches after the machine has slept.
pub async fn run(shared: Arc<Shared>) {
    // An error only means that the receiver of events is dropped.
    let _ = detect(&shared).await;
}

async fn detect(shared: &Shared) -> Result<(), Closed> {
    let (mut asked, mut known) = (None, None);
    loop {
        if asked.is_none_or(|asked: Instant| asked.elapsed() >= ASK_EVERY) {
            asked = Some(Instant::now());
            if let Some(range) = ask(shared).await {
                let difference = range.difference(known);
                if known.replace(difference) != Some(difference) {
                    send(shared, FeedEvent::ClockDifference(difference)).await?;
                }
            }
        }
        let (wall, runtime) = (kordon_clock::wall(), Instant::now());
        sleep(LOOK_EVERY).await;
        let slept = kordon_clock::wall().since(wall) - Span::from(runtime.elapsed());
        if slept > SLEPT {
            send(
                shared,
                FeedEvent::Trouble(format!("this machine slept for {slept}; all watches are opened again")),
            )
            .await?;
            shared.woken.send_modify(|count| *count += 1);
            asked = None;
        }
    }
}

/// Reads the Date header of a small response; `None` if there is no response or no Date. Errors are not reported,
/// because the watches report broken connections.
async fn ask(shared: &Shared) -> Option<DifferenceRange> {
    let before = shared.clock.now();
    let answer = error::open(&shared.client, "/version", Duration::from_secs(5)).await.ok()?;
    let after = shared.clock.now();
    shared.extra.count(0);
    if after < before {
        // The local clock was set back during the request, so the range would be wrong.
        return None;
    }
    let date = DateTime::parse_from_rfc2822(answer.headers().get(DATE)?.to_str().ok()?).ok()?;
    Some(DifferenceRange::new(Timestamp::from_secs(date.timestamp()), before, after))
}

async fn send(shared: &Shared, event: FeedEvent) -> Result<(), Closed> {
    shared.events.send(event).await.map_err(|_| Closed)
}

/// Range of the difference of the clocks (the server's minus ours), from one response.
#[derive(Clone, Copy, Debug)]
struct DifferenceRange {
    least: Span,
    most: Span,
}

impl DifferenceRange {
    /// Returns the range for a response with this Date. The response was written between `before` and `after` by our
    /// clock.
    fn new(date: Timestamp, before: Timestamp, after: Timestamp) -> Self {
        Self { least: date.since(after), most: (date + SECOND).since(before) }
    }

    /// Returns the difference of the clocks. A `known` difference is kept if it is in the range. If it is slightly
    /// outside, it is moved to the nearest end of the range. If it is far outside, a clock was set, and the middle of
    /// the range replaces it.
    ///
    /// The known difference has precedence because a new estimate each minute would shift all converted times by up to
    /// half a second. Each correction makes the first estimate more accurate.
    fn difference(self, known: Option<Span>) -> Span {
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

    /// Returns the range for a response that was written at `at` by our clock and travelled for `way` in each
    /// direction.
    fn answer(ahead: Span, at: Timestamp, way: Span) -> DifferenceRange {
        let whole_seconds = (at + ahead).as_nanos().div_euclid(SECOND.as_nanos());
        DifferenceRange::new(Timestamp::from_secs(whole_seconds), at - way, at + way)
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
        let range = DifferenceRange { least: Span::from_millis(200), most: Span::from_millis(1200) };
        let known = |millis| range.difference(Some(Span::from_millis(millis)));
        assert_eq!(range.difference(None), Span::from_millis(700));
        assert_eq!(known(1000), Span::from_millis(1000));
        assert_eq!(known(-300), Span::from_millis(200));
        assert_eq!(known(1500), Span::from_millis(1200));
        assert_eq!(known(9000), Span::from_millis(700));
    }
}
