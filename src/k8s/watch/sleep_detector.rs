//! The clock of the server, and whether this machine has slept.

use std::{sync::Arc, time::Duration};

use chrono::DateTime;
use http::header::DATE;
use tokio::time::{Instant, sleep};

use super::{Closed, Shared, error};
use crate::{
    clock,
    k8s::feed::FeedEvent,
    time::{Span, Timestamp},
};

/// How often the clocks of this machine are compared.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// How often the server is asked for its time.
const ASK_EVERY: Duration = Duration::from_secs(60);

/// The machine has slept if the wall clock is ahead of the clock of the runtime by more than this.
const SLEPT: Span = Span::from_secs(30);

/// Asks the server for its time once a minute, and wakes the watches after sleep of the machine.
pub async fn run(shared: Arc<Shared>) {
    // It ends only when nobody receives events any more.
    let _ = detect(&shared).await;
}

async fn detect(shared: &Shared) -> Result<(), Closed> {
    let mut asked = None;
    loop {
        if asked.is_none_or(|asked: Instant| asked.elapsed() >= ASK_EVERY) {
            asked = Some(Instant::now());
            if let Some(difference) = difference(shared).await {
                send(shared, FeedEvent::ClockDifference(difference)).await?;
            }
        }
        let (wall, runtime) = (clock::wall(), Instant::now());
        sleep(LOOK_EVERY).await;
        let slept = clock::wall().since(wall) - Span::from(runtime.elapsed());
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

/// The server's clock minus ours, from the Date header of a small response. None without a response or a Date; the
/// watches report broken connections.
async fn difference(shared: &Shared) -> Option<Span> {
    let before = shared.clock.now();
    let answer = error::open(&shared.client, "/version", Duration::from_secs(5)).await.ok()?;
    let after = shared.clock.now();
    shared.extra.count(0);
    let date = DateTime::parse_from_rfc2822(answer.headers().get(DATE)?.to_str().ok()?).ok()?;
    // Date is in whole seconds: on average it is half a second old.
    let theirs = Timestamp::from_secs(date.timestamp()) + Span::from_millis(500);
    let ours = before + Span::from_nanos(after.since(before).as_nanos() / 2);
    Some(theirs.since(ours))
}

async fn send(shared: &Shared, event: FeedEvent) -> Result<(), Closed> {
    shared.events.send(event).await.map_err(|_| Closed)
}
