//! Has it worked out in the background, again and again, what the cluster could lose.

use std::time::Duration;

use tokio::{task::JoinHandle, time::Instant};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{COST, finished};
use crate::{
    model::{HeadroomSnapshot, Model},
    time::Timestamp,
};

/// It is worked out at most this often, and only where something has changed that bears on it.
const EVERY: Duration = Duration::from_secs(30);

/// The one survey that may be under way, and when the next may be.
pub(super) struct HeadroomRunner {
    task: Option<JoinHandle<Option<HeadroomSnapshot>>>,
    begun: Instant,
    next: Instant,
    over: CancellationToken,
    /// Cancels with the loop: on a very large cluster a survey takes a while, and nobody waits for it then.
    _over_with_us: DropGuard,
}

impl HeadroomRunner {
    pub fn new(now: Instant) -> Self {
        let over = CancellationToken::new();
        let _over_with_us = over.clone().drop_guard();
        Self { task: None, begun: now, next: now, over, _over_with_us }
    }

    /// Begins a survey on copies, where there is something to work out and it is time for it.
    pub fn begin(&mut self, model: &Model, now: Timestamp) {
        if self.task.is_some() || Instant::now() < self.next {
            return;
        }
        let Some(survey) = model.next_headroom_job(now) else { return };
        let over = self.over.clone();
        self.begun = Instant::now();
        self.task = Some(tokio::task::spawn_blocking(move || survey.work(|| !over.is_cancelled())));
    }

    /// What came of the survey that is under way; none where it failed. For ever nothing where none is.
    pub async fn done(&mut self) -> Option<HeadroomSnapshot> {
        let spare = finished(&mut self.task).await.flatten();
        self.next = Instant::now() + EVERY.max(self.begun.elapsed() * COST);
        spare
    }
}
