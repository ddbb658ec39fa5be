//! Prefetches the pods of nodes that are not ready: they may be evicted before the whole list is complete.

use std::{collections::BTreeSet, sync::Arc};

use futures::{StreamExt, stream};
use tokio::sync::mpsc;

use super::{
    Closed, Shared,
    error::{self, WatchError},
    paths::CollectionQuery,
};
use crate::{
    cluster::NodeName,
    k8s::{
        decode::{Encoding, ListPurpose, pod::PodDecoder},
        feed::{FeedEvent, FeedKind},
    },
};

/// Requests in flight at once.
const AT_ONCE: usize = 2;

/// The most nodes whose pods are prefetched. With more of them not ready, the whole list costs the server less.
const MOST: usize = 100;

/// The longest list of the pods of one node, in bytes.
const LONGEST: usize = 64 << 20;

/// Lists the pods of single nodes until the whole list is complete.
///
/// [`run`](Self::run) receives the nodes, ignores those it had before, and ends with the whole list or with the channel.
pub struct Prefetch {
    shared: Arc<Shared>,
    decoder: PodDecoder,
}

impl Prefetch {
    pub fn new(shared: Arc<Shared>) -> Self {
        Self { shared, decoder: PodDecoder::default() }
    }

    pub async fn run(mut self, nodes: mpsc::Receiver<NodeName>) {
        let shared = self.shared.clone();
        let mut known = BTreeSet::new();
        let nodes = stream::unfold(nodes, |mut nodes| async { Some((nodes.recv().await?, nodes)) });
        let mut answers = std::pin::pin!(
            nodes
                .filter(move |node| std::future::ready(known.insert(node.clone())))
                .take(MOST)
                .map(|node| {
                    let shared = shared.clone();
                    async move { (fetch(&shared, &node).await, node) }
                })
                .buffer_unordered(AT_ONCE)
        );
        while let Some((answer, node)) = answers.next().await {
            let sent = match answer {
                Ok(None) => return,
                Ok(Some(list)) => self.on_list(&node, &list).await,
                Err(error) => self.on_error(&node, error).await,
            };
            if sent.is_err() {
                return;
            }
        }
    }

    async fn on_list(&mut self, node: &NodeName, (encoding, bytes): &EncodedList) -> Result<(), Closed> {
        let mut changes = Vec::new();
        let end = match encoding.page(&mut self.decoder, bytes, ListPurpose::Prefetch, &mut changes) {
            Ok(end) => end,
            Err(error) => return self.on_error(node, WatchError::Failed(error)).await,
        };
        // Locked while sending: a pod that is prefetched after the whole list would never be removed.
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

/// A list as it was received.
type EncodedList = (Encoding, Vec<u8>);

/// The list of the pods of a node; none if the whole list is complete.
async fn fetch(shared: &Shared, node: &NodeName) -> Result<Option<EncodedList>, WatchError> {
    // Not waited for: the list is being completed, or this very task has locked it.
    if shared.pods_whole.try_lock().is_ok_and(|whole| *whole) {
        return Ok(None);
    }
    // Version 0 reads the cache of the server, which has an index by node. It may be old: the whole list corrects it.
    let query = CollectionQuery::new(FeedKind::Pods, shared.options.version)
        .with("fieldSelector", &format!("spec.nodeName={node}"))
        .with("resourceVersion", "0");
    let answer = error::open_objects(&shared.client, query.as_str(), shared.request_timeout()).await?;
    let bytes = error::collect(answer.body, shared.request_timeout(), LONGEST).await?;
    shared.extra.count(bytes.len());
    Ok(Some((answer.encoding, bytes)))
}
