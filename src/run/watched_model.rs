//! The model that an operation sees while it runs: its own model, or copies of the dashboard's model.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use crate::{
    k8s::feed::{FeedEvent, FeedHealth, FeedState},
    model::{ClusterVerdict, Model},
};
use kordon_clock::Clock;
use kordon_core::{
    cluster::Cluster,
    engine::Outcome,
    operation::approval::{Situation, Watches},
    plan::EvictionRules,
};

/// A model that follows a cluster.
#[derive(Debug)]
pub enum WatchedModel<'a> {
    /// A model with its own watches. Its engine only predicts: its writes are never sent.
    Own { model: &'a mut Model, feeds: &'a mut mpsc::Receiver<FeedEvent> },
    /// Copies of the model that the dashboard shows.
    Shown(&'a mut ShownModel),
}

/// The newest copy of the model that the dashboard shows.
#[derive(Debug)]
pub struct ShownModel {
    model: Arc<Model>,
    newest: watch::Receiver<Arc<Model>>,
}

/// News about the cluster.
#[derive(Debug, PartialEq, Eq)]
pub enum WatchNews {
    /// The cluster may have changed.
    Changed,
    /// Nothing in the cluster has changed.
    Unchanged,
    /// A watch is broken; the text says which and why.
    Broken(String),
}

impl ShownModel {
    pub fn new(newest: watch::Receiver<Arc<Model>>) -> Self {
        let model = Arc::clone(&newest.borrow());
        Self { model, newest }
    }
}

impl WatchedModel<'_> {
    pub fn model(&self) -> &Model {
        match self {
            Self::Own { model, .. } => model,
            Self::Shown(shown) => &shown.model,
        }
    }

    pub fn cluster(&self) -> &Cluster {
        &self.model().cluster
    }

    pub fn rules(&self) -> EvictionRules {
        EvictionRules::from(&self.model().settings)
    }

    /// Returns the state on which an approval is decided: the cluster, and the state of its watches.
    pub fn situation(&self) -> Situation<'_> {
        Situation { cluster: self.cluster(), watches: self.watches(), locked: None }
    }

    fn watches(&self) -> Watches {
        self.model().feeds.for_approval()
    }

    /// Borrows the same model for a shorter time.
    pub fn reborrow(&mut self) -> WatchedModel<'_> {
        match self {
            Self::Own { model, feeds } => WatchedModel::Own { model, feeds },
            Self::Shown(shown) => WatchedModel::Shown(shown),
        }
    }

    /// Returns the current verdict on the cluster.
    pub fn verdict(&mut self, clock: Clock) -> ClusterVerdict {
        let now = clock.now();
        match self {
            Self::Own { model, .. } => {
                model.run_forecast(now);
                ClusterVerdict::new(model, now)
            }
            // The dashboard has already refreshed this model.
            Self::Shown(shown) => ClusterVerdict::new(&shown.model, now),
        }
    }

    /// Waits for news of the watches, and applies it; `None` once the watches have ended. May be dropped and called
    /// again.
    pub async fn next(&mut self, clock: Clock) -> Option<WatchNews> {
        match self {
            Self::Own { model, feeds } => {
                let event = feeds.recv().await?;
                let broken = broken(&event);
                let is_changed = !model.on_watch_event(event, clock.now()).is_empty();
                Some(match (broken, is_changed) {
                    (Some(text), _) => WatchNews::Broken(text),
                    (None, true) => WatchNews::Changed,
                    (None, false) => WatchNews::Unchanged,
                })
            }
            Self::Shown(shown) => {
                shown.newest.changed().await.ok()?;
                shown.model = Arc::clone(&shown.newest.borrow_and_update());
                Some(WatchNews::Changed)
            }
        }
    }

    /// Applies news of the watches during `work`, so that no later decision uses outdated data.
    pub async fn while_watching<T>(&mut self, clock: Clock, work: impl Future<Output = T>) -> T {
        let mut is_watching = true;
        tokio::pin!(work);
        loop {
            let due = self.poll_timeout();
            tokio::select! {
                () = clock.sleep_until(due.unwrap_or_default()), if due.is_some() => self.on_timeout(clock),
                done = &mut work => return done,
                news = self.next(clock), if is_watching => is_watching = news.is_some(),
            }
        }
    }

    fn poll_timeout(&self) -> Option<kordon_time::Timestamp> {
        match self {
            Self::Own { model, .. } => model.poll_timeout(),
            Self::Shown(_) => None,
        }
    }

    /// Wakes the engine of a model with its own watches. This engine only predicts, so its writes are neither sent nor
    /// recorded.
    fn on_timeout(&mut self, clock: Clock) {
        let Self::Own { model, .. } = self else { return };
        model.on_timeout(clock.now());
        while let Some(effect) = model.effects.take_next() {
            model.on_outcome(effect.id, Outcome::Recorded, clock.now());
        }
    }
}

/// Returns which watch a message reports as broken, and why; `None` for other messages.
fn broken(event: &FeedEvent) -> Option<String> {
    let (what, error) = match event {
        FeedEvent::Health(kind, FeedHealth { state: FeedState::Broken { error, .. }, .. }) => {
            (kind.to_string(), error)
        }
        FeedEvent::ScopeState(scope, FeedState::Broken { error, .. }) => (scope.to_string(), error),
        FeedEvent::Health(..)
        | FeedEvent::ScopeState(..)
        | FeedEvent::Changes(_)
        | FeedEvent::ClockDifference(_)
        | FeedEvent::Trouble(_) => return None,
    };
    Some(format!("the watch of {what} is broken: {error}"))
}
