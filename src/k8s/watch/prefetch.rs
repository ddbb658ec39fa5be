//! The pods of nodes that are not ready, asked for ahead of the whole list: their countdowns run now.

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
        decode::{self, ListPurpose, pod::PodDecoder},
        feed::{FeedEvent, FeedKind},
    },
};

/// Requests that are under way at once.
const AT_ONCE: usize = 2;

/// Nodes that are asked for at most; with more than these not ready, the whole list is the gentler way.
const MOST: usize = 100;

/// The longest list of one node's pods, in bytes.
const LONGEST: usize = 64 << 20;

/// Asks for the pods of single nodes until the whole list is there.
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
            let told = match answer {
                Ok(None) => return,
                Ok(Some(bytes)) => self.foretell(&node, &bytes).await,
                Err(setback) => self.trouble(&node, setback).await,
            };
            if told.is_err() {
                return;
            }
        }
    }

    async fn foretell(&mut self, node: &NodeName, bytes: &[u8]) -> Result<(), Closed> {
        let mut changes = Vec::new();
        let end = match decode::page(&mut self.decoder, bytes, ListPurpose::Ahead, &mut changes) {
            Ok(end) => end,
            Err(error) => return self.trouble(node, WatchError::Failed(error.to_string())).await,
        };
        // Held while sending: a pod that is foretold after the whole list would never be swept.
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

    async fn trouble(&self, node: &NodeName, setback: WatchError) -> Result<(), Closed> {
        let words = match setback {
            WatchError::Expired => "the server's answer was 410".into(),
            WatchError::Forbidden(words)
            | WatchError::Invalid(words)
            | WatchError::Overloaded(words, _)
            | WatchError::Failed(words) => words,
        };
        self.send(FeedEvent::Trouble(format!(
            "pods of node/{node}: {words}; they will come with the whole list"
        )))
        .await
    }

    async fn send(&self, event: FeedEvent) -> Result<(), Closed> {
        self.shared.events.send(event).await.map_err(|_| Closed)
    }
}

/// The list of a node's pods; none where the whole list is there already.
async fn fetch(shared: &Shared, node: &NodeName) -> Result<Option<Vec<u8>>, WatchError> {
    // Not waited for: who holds it is about to finish the list, or is this very task.
    if shared.pods_whole.try_lock().is_ok_and(|whole| *whole) {
        return Ok(None);
    }
    // Version 0: from the server's cache, which has an index by node. The whole list corrects what is old in it.
    let query = CollectionQuery::new(FeedKind::Pods, shared.options.version)
        .with("fieldSelector", &format!("spec.nodeName={node}"))
        .with("resourceVersion", "0");
    let answer = error::open(&shared.client, query.as_str(), shared.request_timeout()).await;
    let bytes = error::collect(answer?.into_body(), shared.request_timeout(), LONGEST).await?;
    shared.aside.count(bytes.len());
    Ok(Some(bytes))
}
