//! The watches: one task for each kind. A task lists, watches, resumes, and reports the health of its watch.
//!
//! Nodes, Leases and the controller's Lease are listed at once. Next come the pods of nodes that are not ready, then
//! all pods and the other kinds, a few lists at a time. This limits the load on the server and shows the most urgent
//! objects first. If the list of all pods takes long, the pods of the nodes in view come before it. A watch that fails
//! is reported as [`FeedState::Broken`](super::feed::FeedState) and retried without a limit.

mod backoff;
mod error;
mod events;
mod follow;
pub mod framing;
mod object;
mod paths;
mod prefetch;
mod reporter;
mod scope;
mod sleep_detector;

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use kube::Client;
use tokio::{
    sync::{Mutex, Semaphore, mpsc, watch},
    task::{JoinHandle, JoinSet},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

pub(in crate::k8s) use error::{WatchError, get, open, read};
pub use events::{EventsUnread, follow_cluster_events, follow_events, read_cluster_events, read_events};
pub use object::follow_object;
pub(in crate::k8s) use paths::CollectionQuery;
pub use scope::{count_pods, read_scope};

use self::{follow::Follower, prefetch::Prefetch, reporter::FeedReporter};
use super::feed::{FeedEvent, FeedHealth, FeedKind, FeedState};
use kordon_clock::Clock;
use kordon_core::{
    cluster::{NodeName, Scope},
    engine::ServerVersion,
};

/// Options of the watches: the watched kinds, and the requests for them.
#[derive(Clone, Debug)]
pub struct WatchOptions {
    /// Version of the server, which determines paths, and whether lists are streamed.
    pub version: ServerVersion,
    pub kinds: &'static [FeedKind],
    /// Excludes the pods (`--no-pods`). Most of the traffic is about pods.
    pub no_pods: bool,
    /// Timeout of a request that is not a watch; one minute if `None`.
    pub request_timeout: Option<Duration>,
}

/// Number of concurrent lists; further lists wait for their turn.
const LISTS_AT_ONCE: usize = 4;

/// Capacity of the queue of nodes whose pods are prefetched. While the queue is full, pods of further nodes are not
/// prefetched and arrive with the whole list.
const PREFETCHES: usize = 128;

/// Maximum time for which the other lists wait for the Leases after the nodes are listed. Usually the Leases arrive at
/// once.
const LEASES_FIRST: Duration = Duration::from_secs(1);

/// Starts all watches. They run until `cancel` is cancelled or `events` is closed.
///
/// While `events` is full, the watches wait, and TCP makes the server wait too. If the list of all pods takes long, the
/// scopes (parts of a kind, such as the pods of one node) in `wanted` are read first. The kinds of devices are watched
/// once they are in `wanted`.
pub fn spawn(
    client: Client,
    options: WatchOptions,
    wanted: watch::Receiver<BTreeSet<Scope>>,
    clock: Clock,
    events: mpsc::Sender<FeedEvent>,
    cancel: CancellationToken,
) -> JoinHandle<()> {
    let (not_ready, asked) = mpsc::channel(PREFETCHES);
    let shared = Arc::new(Shared::new(client, options, clock, events.clone(), not_ready));
    run(supervise(shared, asked, wanted), events, cancel)
}

/// Starts watches of scopes (parts of a kind, such as the pods of one node). A scope is watched as soon as it is in
/// `wanted`.
///
/// The objects of a scope must stay in it until they are deleted. A scope with a label selector does not work: an
/// object whose labels change would seem to be deleted.
pub fn spawn_scopes(
    client: Client,
    options: WatchOptions,
    wanted: watch::Receiver<BTreeSet<Scope>>,
    clock: Clock,
    events: mpsc::Sender<FeedEvent>,
    cancel: CancellationToken,
) -> JoinHandle<()> {
    // No pods are prefetched here, because only the needed parts of each kind are read anyway.
    let (not_ready, _) = mpsc::channel(1);
    let shared = Arc::new(Shared::new(client, options, clock, events.clone(), not_ready));
    shared.nodes_known.send_replace(true);
    shared.leases_known.send_replace(true);
    run(supervise_scopes(shared, wanted), events, cancel)
}

fn run(
    watches: impl Future<Output = ()> + Send + 'static,
    events: mpsc::Sender<FeedEvent>,
    cancel: CancellationToken,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        tokio::select! {
            () = cancel.cancelled() => {}
            () = events.closed() => {}
            () = watches => {}
        }
    })
}

/// Runs all tasks. If a task panics, the panic is reported and the other tasks continue.
async fn supervise(
    shared: Arc<Shared>,
    not_ready: mpsc::Receiver<NodeName>,
    mut wanted: watch::Receiver<BTreeSet<Scope>>,
) {
    let mut tasks = JoinSet::new();
    let mut kinds = std::collections::BTreeMap::new();
    let (mut later, at_once): (Vec<FeedKind>, Vec<FeedKind>) =
        shared.options.kinds.iter().partition(|kind| FeedKind::ON_DEMAND.contains(kind));
    for kind in at_once {
        if let Some(task) = start(kind, None, &shared, &mut tasks) {
            kinds.insert(task.id(), kind);
        }
    }
    tasks.spawn(Prefetch::new(shared.clone()).run(not_ready, wanted.clone()));
    tasks.spawn(sleep_detector::run(shared.clone()));
    let mut follows_wanted = !later.is_empty();
    loop {
        let ended = tokio::select! {
            ended = tasks.join_next_with_id() => ended,
            changed = wanted.changed(), if follows_wanted => {
                let now = wanted.borrow_and_update().clone();
                let is_wanted = |kind: FeedKind| Scope::all_of(kind).is_some_and(|scope| now.contains(&scope));
                for kind in later.extract_if(.., |kind| is_wanted(*kind)) {
                    if let Some(task) = start(kind, None, &shared, &mut tasks) {
                        kinds.insert(task.id(), kind);
                    }
                }
                follows_wanted = changed.is_ok() && !later.is_empty();
                continue;
            }
        };
        let Some(ended) = ended else { return };
        let Err(error) = ended else { continue };
        let kind = kinds.get(&error.id());
        let who = kind.map_or("a background task".into(), |kind| format!("the watch of {kind}"));
        let text = format!("{who} failed by a bug in kordon; restart kordon");
        if let Some(kind) = kind {
            let state = FeedState::Broken { since: shared.clock.now(), error: text.clone() };
            let health = FeedHealth { state, last_heard: None, relists: 0, requests: 0, bytes: 0 };
            let _ = shared.events.send(FeedEvent::Health(*kind, health)).await;
        }
        let _ = shared.events.send(FeedEvent::Trouble(text)).await;
    }
}

/// Starts the watch of each scope (part of a kind) when the scope is wanted. If a watch panics, the panic is reported
/// and the other watches continue.
async fn supervise_scopes(shared: Arc<Shared>, mut wanted: watch::Receiver<BTreeSet<Scope>>) {
    let mut tasks = JoinSet::new();
    let mut started: BTreeSet<Scope> = BTreeSet::new();
    tasks.spawn(sleep_detector::run(shared.clone()));
    loop {
        let new: Vec<Scope> = wanted.borrow_and_update().difference(&started).cloned().collect();
        for scope in new {
            let part = (scope != scope.whole()).then(|| scope.clone());
            start(scope.kind(), part, &shared, &mut tasks);
            started.insert(scope);
        }
        tokio::select! {
            changed = wanted.changed() => if changed.is_err() { return },
            Some(ended) = tasks.join_next() => if ended.is_err() {
                let text = "a watch failed by a bug in kordon; restart kordon";
                let _ = shared.events.send(FeedEvent::Trouble(text.into())).await;
            }
        }
    }
}

fn start(
    kind: FeedKind,
    scope: Option<Scope>,
    shared: &Arc<Shared>,
    tasks: &mut JoinSet<()>,
) -> Option<tokio::task::AbortHandle> {
    if shared.options.no_pods && (kind == FeedKind::Pods || FeedKind::REPLACEMENTS.contains(&kind)) {
        let mut report = FeedReporter::new(kind, scope, shared.clone());
        tasks.spawn(async move {
            // Reporting the state fails only if the channel is closed. The other tasks then end too.
            let _ = report.state(FeedState::Off).await;
        });
        return None;
    }
    Some(tasks.spawn(Follower::new(kind, scope, shared.clone()).run()))
}

/// State shared by the tasks of one connection.
struct Shared {
    client: Client,
    options: WatchOptions,
    clock: Clock,
    events: mpsc::Sender<FeedEvent>,
    lists: Semaphore,
    /// Whether lists are streamed; false once the server has refused a streamed list.
    streams: AtomicBool,
    /// Whether the nodes have been listed, or are forbidden.
    nodes_known: watch::Sender<bool>,
    /// Whether the Leases have been listed, or are forbidden.
    leases_known: watch::Sender<bool>,
    /// Whether the list of pods is complete. The lock is held while prefetched pods are sent, so that they do not
    /// arrive after the list.
    pods_whole: Mutex<bool>,
    /// Queue of nodes whose pods should be prefetched.
    not_ready: mpsc::Sender<NodeName>,
    /// Counter of broken connections that work again. A change makes the other watches retry at once.
    recovered: watch::Sender<u64>,
    /// Counter of wake-ups of the machine. After a wake-up, every connection may be broken.
    woken: watch::Sender<u64>,
    extra: ExtraTraffic,
}

impl Shared {
    fn new(
        client: Client,
        options: WatchOptions,
        clock: Clock,
        events: mpsc::Sender<FeedEvent>,
        not_ready: mpsc::Sender<NodeName>,
    ) -> Self {
        Self {
            client,
            clock,
            events,
            lists: Semaphore::new(LISTS_AT_ONCE),
            // Servers before 1.27 ignore `sendInitialEvents`, so the end of a streamed list would never arrive.
            streams: AtomicBool::new(options.version >= ServerVersion::new(1, 27)),
            nodes_known: watch::Sender::new(false),
            leases_known: watch::Sender::new(!options.kinds.contains(&FeedKind::Leases)),
            // Without pods, the list of pods counts as complete from the start, so that no pods are prefetched.
            pods_whole: Mutex::new(options.no_pods || !options.kinds.contains(&FeedKind::Pods)),
            not_ready,
            recovered: watch::Sender::new(0),
            woken: watch::Sender::new(0),
            extra: ExtraTraffic::default(),
            options,
        }
    }

    fn streams(&self) -> bool {
        self.streams.load(Ordering::Relaxed)
    }

    /// Waits until the nodes and, for a short time, the Leases are listed, because other lists would slow these two
    /// down.
    async fn first_lists_known(&self) {
        // Waiting cannot fail, because `self` holds the senders.
        let _ = self.nodes_known.subscribe().wait_for(|known| *known).await;
        let _ = timeout(LEASES_FIRST, self.leases_known.subscribe().wait_for(|known| *known)).await;
    }

    fn request_timeout(&self) -> Duration {
        self.options.request_timeout.unwrap_or(Duration::from_secs(60))
    }
}

/// Traffic of requests that belong to no watch. It is counted as traffic of the watch of pods.
#[derive(Default)]
struct ExtraTraffic {
    requests: AtomicU64,
    bytes: AtomicU64,
}

impl ExtraTraffic {
    fn count(&self, bytes: usize) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// Error of a task that reports events: the receiver of events is dropped, because the loop has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Closed;
