//! Prefetches the pods of single nodes while the list of all pods is not complete. The pods of nodes that are not ready
//! are prefetched, because they may be evicted before the list is complete. If the list takes long, the pods of the
//! nodes in view are prefetched too.

use std::{
    collections::{BTreeSet, VecDeque},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use futures::{StreamExt, stream::FuturesUnordered};
use tokio::{
    sync::{mpsc, watch},
    time::sleep,
};

use super::{
    Closed, Shared,
    error::{self, WatchError},
    paths::CollectionQuery,
};
use crate::k8s::{
    decode::{Encoding, ListPurpose, pod::PodDecoder},
    feed::{FeedEvent, FeedKind},
};
use kordon_core::cluster::{NodeName, Scope};

/// Maximum number of nodes whose pods are requested at the same time.
const AT_ONCE: usize = 2;

/// Maximum number of nodes whose pods are prefetched because the nodes are not ready. For more nodes, the list of all
/// pods costs the server less.
const MOST_NOT_READY: usize = 100;

/// Maximum number of nodes whose pods are prefetched in total, even if the user scrolls on.
const MOST: usize = 300;

/// The list of all pods counts as slow if it is not complete this long after the list of nodes.
const LONG: Duration = Duration::from_secs(2);

/// Maximum size of the list of one node's pods, in bytes.
const LONGEST: usize = 64 << 20;

/// Lists the pods of single nodes until the list of all pods is complete.
///
/// [`run`](Self::run) receives the nodes, and ignores nodes that it has already received. It ends when the list of all
/// pods is complete or the channel of nodes is closed.
pub struct Prefetch {
    shared: Arc<Shared>,
    decoder: PodDecoder,
    /// Nodes that are queued, or whose pods were requested.
    known: BTreeSet<NodeName>,
    /// Nodes whose pods have not been requested yet.
    queue: VecDeque<NodeName>,
}

impl Prefetch {
    pub fn new(shared: Arc<Shared>) -> Self {
        Self { shared, decoder: PodDecoder::default(), known: BTreeSet::new(), queue: VecDeque::new() }
    }

    /// Runs until the list of all pods is complete. `wanted` has the scopes (parts of a kind) in view. If the list
    /// takes long, the pods of the nodes among these scopes are prefetched.
    pub async fn run(
        mut self,
        mut not_ready: mpsc::Receiver<NodeName>,
        mut wanted: watch::Receiver<BTreeSet<Scope>>,
    ) {
        let shared = self.shared.clone();
        let mut takes_long = pin!(takes_long(&shared));
        let (mut follows_wanted, mut is_long) = (true, false);
        let mut answers = FuturesUnordered::new();
        loop {
            while answers.len() < AT_ONCE
                && let Some(node) = self.queue.pop_front()
            {
                let shared = &shared;
                answers.push(async move { (fetch(shared, &node).await, node) });
            }
            tokio::select! {
                node = not_ready.recv() => match node {
                    Some(node) => self.add(node, MOST_NOT_READY),
                    None => return,
                },
                Some((answer, node)) = answers.next() => {
                    let sent = match answer {
                        Ok(None) => return,
                        Ok(Some(list)) => self.on_list(&node, &list).await,
                        Err(error) => self.on_error(&node, error).await,
                    };
                    if sent.is_err() {
                        return;
                    }
                }
                () = &mut takes_long, if !is_long => {
                    is_long = true;
                    self.add_wanted(&wanted.borrow_and_update());
                }
                changed = wanted.changed(), if is_long && follows_wanted => {
                    follows_wanted = changed.is_ok();
                    self.add_wanted(&wanted.borrow_and_update());
                }
            }
        }
    }

    fn add_wanted(&mut self, wanted: &BTreeSet<Scope>) {
        for scope in wanted {
            if let Scope::PodsOn(node) = scope {
                self.add(node.clone(), MOST);
            }
        }
    }

    fn add(&mut self, node: NodeName, most: usize) {
        if self.known.len() < most && self.known.insert(node.clone()) {
            self.queue.push_back(node);
        }
    }

    async fn on_list(&mut self, node: &NodeName, (encoding, bytes): &EncodedList) -> Result<(), Closed> {
        let mut changes = Vec::new();
        let end = match encoding.page(&mut self.decoder, bytes, ListPurpose::Prefetch, &mut changes) {
            Ok(end) => end,
            Err(error) => return self.on_error(node, WatchError::Failed(error)).await,
        };
        // Without the lock, prefetched pods could be sent after the list of all pods. A pod that was deleted before
        // that list would then never be removed.
        let whole = self.shared.pods_whole.lock().await;
        if !*whole {
            self.send(FeedEvent::Changes(changes)).await?;
        }
        drop(whole);
        for bad in &end.bad {
            self.send(FeedEvent::Trouble(format!("pods: {bad} cannot be read and is left out"))).await?;
        }
        Ok(())
    }

    async fn on_error(&self, node: &NodeName, error: WatchError) -> Result<(), Closed> {
        let words = error.words().unwrap_or_else(|| "the server answered 410".into());
        self.send(FeedEvent::Trouble(format!("pods of node/{node}: {words}; waiting for the whole list")))
            .await
    }

    async fn send(&self, event: FeedEvent) -> Result<(), Closed> {
        self.shared.events.send(event).await.map_err(|_| Closed)
    }
}

/// Completes when the list of all pods counts as slow.
async fn takes_long(shared: &Shared) {
    // Waiting cannot fail, because `shared` holds the sender.
    let _ = shared.nodes_known.subscribe().wait_for(|known| *known).await;
    sleep(LONG).await;
}

/// An encoded list of pods, with its encoding.
type EncodedList = (Encoding, Vec<u8>);

/// Requests the pods of a node; `None` if the list of all pods is complete.
async fn fetch(shared: &Shared, node: &NodeName) -> Result<Option<EncodedList>, WatchError> {
    // If the lock is held, the list of all pods is being completed, or this task itself is sending pods. In the second
    // case, waiting for the lock would block forever.
    if shared.pods_whole.try_lock().is_ok_and(|whole| *whole) {
        return Ok(None);
    }
    // With resource version 0 the server answers from its cache, which has an index by node. The cache may be outdated;
    // the list of all pods later corrects these pods.
    let query = CollectionQuery::new(FeedKind::Pods, shared.options.version)
        .with("fieldSelector", &format!("spec.nodeName={node}"))
        .with("resourceVersion", "0");
    let answer = error::open_objects(&shared.client, query.as_str(), shared.request_timeout()).await?;
    let bytes = error::collect(answer.body, shared.request_timeout(), LONGEST).await?;
    shared.extra.count(bytes.len());
    Ok(Some((answer.encoding, bytes)))
}
