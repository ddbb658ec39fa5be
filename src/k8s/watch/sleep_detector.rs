//! Measures the server's clock once a minute, and detects whether this machine has slept.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep};

use super::{Closed, Shared};
use crate::k8s::{feed::FeedEvent, server_clock::ClockDifferenceRange};
use kordon_time::Span;

/// Interval at which the clocks of this machine are compared.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Interval at which the server's clock is read.
const ASK_EVERY: Duration = Duration::from_secs(60);

/// The machine counts as having slept if the wall clock has advanced this much more than the runtime's clock.
const SLEPT: Span = Span::from_secs(30);

/// Reads the server's clock once a minute, and wakes the watches after the machine has slept.
pub async fn run(shared: Arc<Shared>) {
    // The detection fails only if the receiver of events is dropped.
    let _ = detect(&shared).await;
}

async fn detect(shared: &Shared) -> Result<(), Closed> {
    let (mut asked, mut known) = (None, None);
    loop {
        if asked.is_none_or(|asked: Instant| asked.elapsed() >= ASK_EVERY) {
            asked = Some(Instant::now());
            // With a stopped clock (objects from files), our time is taken from the objects themselves, so there is no
            // difference to measure.
            let measured = match shared.clock.is_stopped() {
                true => None,
                false => ClockDifferenceRange::measure(&shared.client, shared.clock).await,
            };
            shared.extra.count(0);
            if let Some(range) = measured {
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

async fn send(shared: &Shared, event: FeedEvent) -> Result<(), Closed> {
    shared.events.send(event).await.map_err(|_| Closed)
}
