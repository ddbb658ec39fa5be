//! A session: a model and its connections.

use std::collections::BTreeSet;

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::{events::EventServer, read_once::KordonLeaseReader, wanted::WantedReader};
use crate::{
    executor::effects::{EffectExecutor, EffectLink},
    k8s::{
        self,
        connect::Connection,
        feed::{FeedEvent, FeedKind},
        watch::WatchOptions,
    },
    model::{Model, ModelOptions},
};
use kordon_clock::Clock;
use kordon_core::{
    cluster::{Change, Scope},
    engine::{Effect, EffectId, Outcome},
};
use kordon_time::Span;

/// A model and its connections. The dashboard shows a session on the screen. A controller and one-shot commands run a
/// session without a screen.
#[derive(Debug)]
pub struct Session {
    pub model: Model,
    pub links: Links,
    pub clock: Clock,
    /// Durations of the engine's passes over all nodes.
    pub passes: PassDurations,
    pub(super) kordon_lease: KordonLeaseReader,
}

/// Channels of a model's input and effects.
#[derive(Debug)]
pub struct Links {
    /// Messages of the watches. Once the channel is closed, the model no longer changes.
    pub feeds: mpsc::Receiver<FeedEvent>,
    /// Effects for the executor. While the channel is full, effects wait in the model; nothing else waits.
    pub effects: mpsc::Sender<Effect>,
    pub outcomes: mpsc::Receiver<(EffectId, Outcome)>,
    /// Scopes (sets of objects) that the user looks at. They are read before the whole list of their kind. If their
    /// kind is not watched, they are read again and again while they are in this set.
    pub wanted: watch::Sender<BTreeSet<Scope>>,
    /// Server from which Events are read; none if there is no API server.
    pub events: Option<EventServer>,
}

impl Links {
    /// Adds `scopes` to the sets of objects that are read on demand (`wanted`).
    fn want(&self, scopes: impl Iterator<Item = Scope>) {
        let mut scopes = scopes.peekable();
        if scopes.peek().is_some() {
            self.wanted.send_if_modified(|wanted| {
                let before = wanted.len();
                wanted.extend(scopes);
                wanted.len() > before
            });
        }
    }
}

/// Counts of the engine's passes over all nodes, in buckets of their duration.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PassDurations {
    /// Number of passes in each bucket. The upper bound of a bucket is in [`PassDurations::BOUNDS`]; its lower bound is
    /// the upper bound of the previous bucket.
    pub counts: [u64; PassDurations::BOUNDS.len()],
    /// Number of all passes of the engine over all nodes.
    pub count: u64,
    /// Sum of the durations of the passes, in seconds.
    pub sum: f64,
}

impl PassDurations {
    /// Upper bounds of the buckets in seconds, as in upstream's
    /// `node_collector_update_all_nodes_health_duration_seconds`.
    pub const BOUNDS: [f64; 8] = [0.01, 0.04, 0.16, 0.64, 2.56, 10.24, 40.96, 163.84];

    fn observe(&mut self, took: Span) {
        let secs = took.or_zero().as_secs_f64();
        self.count += 1;
        self.sum += secs;
        if let Some(place) = Self::BOUNDS.iter().position(|bound| secs <= *bound) {
            self.counts[place] += 1;
        }
    }
}

/// Reason why a session without a screen ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The condition that the session waited for holds.
    Arrived,
    /// The watches or the executor have ended; nothing more will happen.
    Abandoned,
}

/// Watches that were started before the model exists. Their reports wait in a channel. While the channel is full, the
/// watches wait.
#[derive(Debug)]
pub struct RunningWatches {
    feeds: mpsc::Receiver<FeedEvent>,
    wanted: watch::Sender<BTreeSet<Scope>>,
}

/// Capacity of the queue of watch events. While the queue is full, the watches wait.
const EVENTS: usize = 32;

impl RunningWatches {
    /// Starts to watch `kinds`, until `cancel` is cancelled or the receiver of the reports is dropped.
    pub fn start(
        kinds: &'static [FeedKind],
        connection: &Connection,
        no_pods: bool,
        clock: Clock,
        cancel: CancellationToken,
    ) -> Self {
        let (reports, feeds) = mpsc::channel(EVENTS);
        let wanted = watch::Sender::default();
        if no_pods {
            let (connection, wanted, reports) = (connection.clone(), wanted.subscribe(), reports.clone());
            let reader = WantedReader { connection, wanted, reports, clock };
            let cancelled = cancel.clone();
            tokio::spawn(async move { cancelled.run_until_cancelled(reader.run()).await });
        }
        watch_into(reports, connection, kinds, no_pods, wanted.subscribe(), clock, cancel);
        Self { feeds, wanted }
    }
}

impl Session {
    /// Starts to watch all kinds of a cluster, until `cancel` is cancelled or the session ends.
    pub fn start(
        connection: &Connection,
        options: ModelOptions,
        no_pods: bool,
        executor: EffectExecutor,
        clock: Clock,
        cancel: CancellationToken,
    ) -> Self {
        Self::watching(&FeedKind::ALL, connection, options, no_pods, executor, clock, cancel)
    }

    /// Starts to watch `kinds` of a cluster, until `cancel` is cancelled or the session ends.
    pub fn watching(
        kinds: &'static [FeedKind],
        connection: &Connection,
        options: ModelOptions,
        no_pods: bool,
        executor: EffectExecutor,
        clock: Clock,
        cancel: CancellationToken,
    ) -> Self {
        Self::over(
            RunningWatches::start(kinds, connection, no_pods, clock, cancel),
            connection,
            options,
            executor,
            clock,
        )
    }

    /// Returns a session with watches that were already started.
    pub fn over(
        watches: RunningWatches,
        connection: &Connection,
        options: ModelOptions,
        executor: EffectExecutor,
        clock: Clock,
    ) -> Self {
        let RunningWatches { feeds, wanted } = watches;
        let EffectLink { items: effects, outcomes } = executor.start();
        let events = Some(EventServer { client: connection.client.clone(), version: connection.version });
        Self {
            model: Model::new(options, clock.now()),
            kordon_lease: KordonLeaseReader::kordon_lease(events.clone()),
            links: Links { feeds, effects, outcomes, wanted, events },
            clock,
            passes: PassDurations::default(),
        }
    }

    /// Applies the messages of the watches, wakes the engine, and sends its effects, until `arrived` returns true.
    ///
    /// May be dropped at any time and called again: nothing is lost.
    pub async fn run_until(&mut self, arrived: impl Fn(&Model) -> bool) -> Ended {
        let Self { model, links, clock, passes, kordon_lease } = self;
        while !arrived(model) {
            let due = model.poll_timeout();
            kordon_lease.keep(model, false, clock.now());
            tokio::select! {
                event = links.feeds.recv() => {
                    let Some(event) = event else { return Ended::Abandoned };
                    let is_renewal = is_renewal(&event);
                    model.on_watch_event(event, clock.now());
                    if !is_renewal {
                        links.want(model.scopes_on_demand());
                    }
                }
                outcome = links.outcomes.recv() => {
                    let Some((id, outcome)) = outcome else { return Ended::Abandoned };
                    model.on_outcome(id, outcome, clock.now());
                }
                Ok(lease) = kordon_lease.next() => {
                    model.apply(vec![Change::KordonLease(lease)], clock.now());
                }
                permit = links.effects.reserve(), if model.effects.has_next() => {
                    let Ok(permit) = permit else { return Ended::Abandoned };
                    if let Some(effect) = model.effects.take_next() {
                        permit.send(effect);
                    }
                }
                () = clock.sleep_until(due.unwrap_or_default()), if due.is_some() => {
                    let now = clock.now();
                    let is_pass = model.engine.as_ref().is_some_and(|engine| engine.is_pass_due(now));
                    model.on_timeout(now);
                    if is_pass {
                        passes.observe(clock.now().since(now));
                    }
                }
            }
        }
        Ended::Arrived
    }
}

/// Whether a message comes from the watch of Leases, as most messages do. After such a message, it is not checked
/// what has to be read on demand, because this does not depend on Leases.
fn is_renewal(event: &FeedEvent) -> bool {
    matches!(event, FeedEvent::Changes(changes) if matches!(changes.first(), Some(Change::Lease(_))))
}

/// Watches `kinds` until `cancel` is cancelled. Returns the channel on which the watches report.
pub(super) fn watch_kinds(
    connection: &Connection,
    kinds: &'static [FeedKind],
    no_pods: bool,
    clock: Clock,
    cancel: CancellationToken,
) -> mpsc::Receiver<FeedEvent> {
    let (reports, feeds) = mpsc::channel(EVENTS);
    watch_into(reports, connection, kinds, no_pods, nothing_wanted(), clock, cancel);
    feeds
}

/// Watches the scopes (sets of objects) that are sent on the first returned channel, until `cancel` is cancelled. The
/// watches report on the second channel.
pub fn watch_scopes(
    connection: &Connection,
    clock: Clock,
    cancel: CancellationToken,
) -> (watch::Sender<BTreeSet<Scope>>, mpsc::Receiver<FeedEvent>) {
    let (reports, feeds) = mpsc::channel(EVENTS);
    let (scopes, wanted) = watch::channel(BTreeSet::new());
    let options = watch_options(connection, &FeedKind::ALL, false);
    k8s::watch::spawn_scopes(connection.client.clone(), options, wanted, clock, reports, cancel);
    (scopes, feeds)
}

/// Returns an empty set of wanted scopes (objects to read on demand), for sessions without a screen.
fn nothing_wanted() -> watch::Receiver<BTreeSet<Scope>> {
    watch::Sender::default().subscribe()
}

fn watch_options(connection: &Connection, kinds: &'static [FeedKind], no_pods: bool) -> WatchOptions {
    let Connection { version, request_timeout, .. } = *connection;
    WatchOptions { version, kinds, no_pods, request_timeout }
}

fn watch_into(
    reports: mpsc::Sender<FeedEvent>,
    connection: &Connection,
    kinds: &'static [FeedKind],
    no_pods: bool,
    wanted: watch::Receiver<BTreeSet<Scope>>,
    clock: Clock,
    cancel: CancellationToken,
) {
    let options = watch_options(connection, kinds, no_pods);
    k8s::watch::spawn(connection.client.clone(), options, wanted, clock, reports, cancel);
}
