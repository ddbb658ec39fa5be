//! Reports what a watch receives: changes in batches, the health of the watch, and errors in words.

use std::{sync::Arc, sync::atomic::Ordering, time::Duration};

use tokio::time::Instant;

use super::{Closed, Shared};
use crate::k8s::feed::{FeedEvent, FeedHealth, FeedKind, FeedState};
use kordon_core::cluster::{Change, Scope};
use kordon_time::Timestamp;

/// Maximum number of changes in one message.
const BATCH: usize = 512;

/// Time for which a change waits in the batch.
const BATCH_DELAY: Duration = Duration::from_millis(10);

/// Interval of health messages while only times and counts change.
const HEALTH_EVERY: Duration = Duration::from_secs(1);

/// Sends the events of one watch, in order.
///
/// The owner calls [`on_time`](Self::on_time) at [`wake_at`](Self::wake_at). Changes are batched for a short time.
/// The health of the watch is sent at most once a second as long as only its counts change.
pub struct FeedReporter {
    kind: FeedKind,
    /// The scope (part of the kind) that is watched; `None` for the whole kind.
    scope: Option<Scope>,
    shared: Arc<Shared>,
    health: FeedHealth,
    batch: Vec<Change>,
    /// Time at which the batch of changes is sent; `None` while the batch is empty.
    flush_at: Option<Instant>,
    health_sent: Instant,
    health_changed: bool,
}

impl FeedReporter {
    pub fn new(kind: FeedKind, scope: Option<Scope>, shared: Arc<Shared>) -> Self {
        let state = FeedState::Connecting;
        Self {
            kind,
            scope,
            shared,
            health: FeedHealth { state, last_heard: None, relists: 0, requests: 0, bytes: 0 },
            batch: Vec::new(),
            flush_at: None,
            health_sent: Instant::now(),
            health_changed: false,
        }
    }

    pub fn current(&self) -> &FeedState {
        &self.health.state
    }

    /// Sets the expected number of objects in the current list, unless the number is known already.
    pub fn expect(&mut self, objects: Option<usize>) {
        if let FeedState::Listing { expected: expected @ None, .. } = &mut self.health.state {
            *expected = objects;
            self.health_changed = true;
        }
    }

    /// Time at which data was last received; `None` before the first data.
    pub fn last_heard(&self) -> Option<Timestamp> {
        self.health.last_heard
    }

    /// Counts a request.
    pub fn requested(&mut self) {
        self.health.requests += 1;
        self.health_changed = true;
    }

    /// Records received data, or the head of a response.
    pub fn heard(&mut self, bytes: usize) {
        self.health.bytes += bytes as u64;
        self.health.last_heard = Some(self.shared.clock.now());
        self.health_changed = true;
    }

    /// Counts a list that replaces an earlier list.
    pub fn relisted(&mut self) {
        self.health.relists += 1;
    }

    /// Sends a new state of the watch, after all changes that came before it.
    pub async fn state(&mut self, state: FeedState) -> Result<(), Closed> {
        self.flush().await?;
        self.health.state = state;
        self.send_health().await
    }

    /// Adds to the number of objects received so far in the current list.
    pub fn listed(&mut self, more: usize) {
        if let FeedState::Listing { received, .. } = &mut self.health.state {
            *received += more;
            self.health_changed = true;
        }
    }

    pub async fn change(&mut self, change: Change) -> Result<(), Closed> {
        if self.batch.is_empty() {
            self.flush_at = Some(Instant::now() + BATCH_DELAY);
        }
        self.batch.push(change);
        if self.batch.len() >= BATCH {
            self.flush().await?;
        }
        Ok(())
    }

    pub async fn trouble(&mut self, text: String) -> Result<(), Closed> {
        self.flush().await?;
        let of = self.scope.as_ref().map_or_else(|| self.kind.to_string(), ToString::to_string);
        self.send(FeedEvent::Trouble(format!("{of}: {text}"))).await
    }

    /// Whether the batch has changes that are not sent yet.
    pub fn has_changes(&self) -> bool {
        !self.batch.is_empty()
    }

    /// Time at which [`FeedReporter::on_time`] must be called; `None` if nothing is due.
    pub fn wake_at(&self) -> Option<Instant> {
        let health_at = self.health_changed.then(|| self.health_sent + HEALTH_EVERY);
        [self.flush_at, health_at].into_iter().flatten().min()
    }

    /// Sends the changes and the health that are due.
    pub async fn on_time(&mut self) -> Result<(), Closed> {
        let now = Instant::now();
        if self.flush_at.is_some_and(|at| at <= now) {
            self.flush().await?;
        }
        if self.health_changed && self.health_sent + HEALTH_EVERY <= now {
            self.send_health().await?;
        }
        Ok(())
    }

    pub async fn flush(&mut self) -> Result<(), Closed> {
        self.flush_at = None;
        if self.batch.is_empty() {
            return Ok(());
        }
        let batch = std::mem::take(&mut self.batch);
        self.send(FeedEvent::Changes(batch)).await
    }

    /// Sends the health at once, without waiting for `HEALTH_EVERY`.
    pub async fn send_health(&mut self) -> Result<(), Closed> {
        self.health_sent = Instant::now();
        self.health_changed = false;
        if let Some(scope) = &self.scope {
            let state = self.health.state.clone();
            return self.send(FeedEvent::ScopeState(Box::new(scope.clone()), state)).await;
        }
        let mut health = self.health.clone();
        if self.kind == FeedKind::Pods {
            health.requests += self.shared.extra.requests.load(Ordering::Relaxed);
            health.bytes += self.shared.extra.bytes.load(Ordering::Relaxed);
        }
        self.send(FeedEvent::Health(self.kind, health)).await
    }

    async fn send(&self, event: FeedEvent) -> Result<(), Closed> {
        self.shared.events.send(event).await.map_err(|_| Closed)
    }
}
