//! The watches: one task a kind, each of which lists, watches, resumes and tells how it fares.
//!
//! The order is gentle and useful: nodes, leases and the controller's Lease at once; when the nodes are known,
//! the pods of those that are not ready, then all pods and the rest, a few lists at a time. A watch is never
//! given up: what breaks is told as [`FeedState::Broken`](super::feed::FeedState), and tried again.

mod prefetch;
mod follow;
mod error;
mod backoff;
mod paths;
mod reporter;
mod sleep_detector;

use std::{
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
};
use tokio_util::sync::CancellationToken;

use self::{follow::Follower, prefetch::Prefetch, reporter::FeedReporter};
use super::{
    decode::{
        Decoder,
        budget::BudgetDecoder,
        lease::{LeaderDecoder, LeaseDecoder},
        namespace::NamespaceDecoder,
        node::NodeDecoder,
        pod::PodDecoder,
        priority_class::PriorityClassDecoder,
        service::ServiceDecoder,
        storage::{ClaimDecoder, CsiNodeDecoder, StorageClassDecoder, VolumeDecoder},
        workload::WorkloadDecoder,
    },
    feed::{FeedEvent, FeedHealth, FeedKind, FeedState},
};
use crate::{clock::Clock, cluster::NodeName, engine::ServerVersion};

/// What to watch, and how.
#[derive(Clone, Copy, Debug)]
pub struct WatchOptions {
    /// The server's version decides paths and whether lists may be streamed.
    pub version: ServerVersion,
    /// Of which kinds.
    pub kinds: &'static [FeedKind],
    /// Leaves the pods out (`--no-pods`), and with them most of the traffic.
    pub no_pods: bool,
    /// How long one request that is not a watch may take; none: a minute.
    pub request_timeout: Option<Duration>,
}

/// Lists that are under way at once; the others wait for their turn.
const LISTS_AT_ONCE: usize = 4;

/// Nodes that wait for their pods to be asked for ahead. When full, further ones wait for the whole list.
const AHEAD: usize = 128;

/// Starts all watches; they run until `cancel` is cancelled or `events` is closed.
///
/// When `events` is full a watch waits, which holds the server back through TCP.
pub fn spawn(
    client: Client,
    options: WatchOptions,
    clock: Clock,
    events: mpsc::Sender<FeedEvent>,
    cancel: CancellationToken,
) -> JoinHandle<()> {
    let (not_ready, asked) = mpsc::channel(AHEAD);
    let shared = Arc::new(Shared {
        client,
        options,
        clock,
        events: events.clone(),
        lists: Semaphore::new(LISTS_AT_ONCE),
        // Older servers do not know the parameter, ignore it, and would never end the list.
        streams: AtomicBool::new(options.version >= ServerVersion::new(1, 27)),
        nodes_known: watch::Sender::new(false),
        pods_whole: Mutex::new(options.no_pods),
        not_ready,
        recovered: watch::Sender::new(0),
        woken: watch::Sender::new(0),
        aside: Aside::default(),
    });
    tokio::spawn(async move {
        tokio::select! {
            () = cancel.cancelled() => {}
            () = events.closed() => {}
            () = supervise(shared, asked) => {}
        }
    })
}

/// Runs all tasks. One that ends by a fault of ours says so; the others go on.
async fn supervise(shared: Arc<Shared>, asked: mpsc::Receiver<NodeName>) {
    let mut tasks = JoinSet::new();
    let mut kinds = std::collections::BTreeMap::new();
    for kind in shared.options.kinds.iter().copied() {
        if let Some(task) = start(kind, &shared, &mut tasks) {
            kinds.insert(task.id(), kind);
        }
    }
    tasks.spawn(Prefetch::new(shared.clone()).run(asked));
    tasks.spawn(sleep_detector::run(shared.clone()));
    while let Some(ended) = tasks.join_next_with_id().await {
        let Err(error) = ended else { continue };
        let kind = kinds.get(&error.id());
        let who = kind.map_or("a task beside the watches".into(), |kind| format!("the watch of {kind}"));
        let text = format!("{who} has ended by a fault of this program; start it again");
        if let Some(kind) = kind {
            let state = FeedState::Broken { since: shared.clock.now(), error: text.clone() };
            let health = FeedHealth { state, last_heard: None, relists: 0, requests: 0, bytes: 0 };
            let _ = shared.events.send(FeedEvent::Health(*kind, health)).await;
        }
        let _ = shared.events.send(FeedEvent::Trouble(text)).await;
    }
}

fn start(kind: FeedKind, shared: &Arc<Shared>, tasks: &mut JoinSet<()>) -> Option<tokio::task::AbortHandle> {
    if shared.options.no_pods && (kind == FeedKind::Pods || kind.serves_placement_alone()) {
        let mut report = FeedReporter::new(kind, shared.clone());
        tasks.spawn(async move {
            // A closed channel ends everything else too.
            let _ = report.state(FeedState::Off).await;
        });
        return None;
    }
    fn follow<D: Decoder>(
        kind: FeedKind,
        decoder: D,
        shared: &Arc<Shared>,
        tasks: &mut JoinSet<()>,
    ) -> tokio::task::AbortHandle {
        tasks.spawn(Follower::new(kind, decoder, shared.clone()).run())
    }
    Some(match kind {
        FeedKind::Nodes => follow(kind, NodeDecoder::default(), shared, tasks),
        FeedKind::Leases => follow(kind, LeaseDecoder::default(), shared, tasks),
        FeedKind::Pods => follow(kind, PodDecoder::default(), shared, tasks),
        FeedKind::Budgets => follow(kind, BudgetDecoder::default(), shared, tasks),
        FeedKind::Workloads(of) => follow(kind, WorkloadDecoder::new(of), shared, tasks),
        FeedKind::PriorityClasses => follow(kind, PriorityClassDecoder::default(), shared, tasks),
        FeedKind::Namespaces => follow(kind, NamespaceDecoder::default(), shared, tasks),
        FeedKind::Services => follow(kind, ServiceDecoder::default(), shared, tasks),
        FeedKind::Claims => follow(kind, ClaimDecoder::default(), shared, tasks),
        FeedKind::Volumes => follow(kind, VolumeDecoder::default(), shared, tasks),
        FeedKind::StorageClasses => follow(kind, StorageClassDecoder::default(), shared, tasks),
        FeedKind::CsiNodes => follow(kind, CsiNodeDecoder::default(), shared, tasks),
        FeedKind::Leader => follow(kind, LeaderDecoder::default(), shared, tasks),
    })
}

/// What the tasks of one connection share.
struct Shared {
    client: Client,
    options: WatchOptions,
    clock: Clock,
    events: mpsc::Sender<FeedEvent>,
    lists: Semaphore,
    /// Whether the server streams lists; until one says no.
    streams: AtomicBool,
    /// Whether the nodes have been listed, or may not be.
    nodes_known: watch::Sender<bool>,
    /// Whether the pod list is whole. Held while pods are foretold, so that none is after the list.
    pods_whole: Mutex<bool>,
    /// Nodes whose pods are to be asked for ahead.
    not_ready: mpsc::Sender<NodeName>,
    /// Counts the times that a broken link was found mended: the others need not wait any longer.
    recovered: watch::Sender<u64>,
    /// Counts the times that the machine woke from sleep: every link is suspect.
    woken: watch::Sender<u64>,
    aside: Aside,
}

impl Shared {
    fn streams(&self) -> bool {
        self.streams.load(Ordering::Relaxed)
    }

    fn request_timeout(&self) -> Duration {
        self.options.request_timeout.unwrap_or(Duration::from_secs(60))
    }
}

/// Requests beside the watches, counted with the pods'.
#[derive(Default)]
struct Aside {
    requests: AtomicU64,
    bytes: AtomicU64,
}

impl Aside {
    fn count(&self, bytes: usize) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// Nobody listens any more: the loop has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Closed;
