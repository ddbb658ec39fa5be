//! All changes that can affect placement, as the API server's watches report them.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use anyhow::{Context, Result};
use futures::{AsyncBufReadExt, StreamExt};
use kordon::k8s::decode::{
    self, Decoder, StreamEvent, WatchEvent,
    budget::BudgetDecoder,
    namespace::NamespaceDecoder,
    node::NodeDecoder,
    pod::PodDecoder,
    service::ServiceDecoder,
    storage::{ClaimDecoder, CsiNodeDecoder, StorageClassDecoder, VolumeDecoder},
    workload::WorkloadDecoder,
};
use kordon_clock::Clock;
use kordon_core::cluster::{Change, WorkloadKind};
use kordon_time::Timestamp;
use kube::Client;
use tokio::task::JoinSet;

/// A change and the time at which the watch reported it.
#[derive(Clone, Debug)]
pub struct ReceivedChange {
    pub at: Timestamp,
    pub change: Change,
}

/// One watch for each kind. Dropping this value ends the watches.
pub struct History {
    changes: Arc<Mutex<Vec<ReceivedChange>>>,
    watches: JoinSet<Result<()>>,
}

impl History {
    pub fn start(client: &Client) -> Self {
        let mut history = Self { changes: Arc::default(), watches: JoinSet::new() };
        history.watch(client, "/api/v1/nodes", NodeDecoder::default());
        history.watch(client, "/api/v1/pods", PodDecoder::default());
        history.watch(client, "/api/v1/namespaces", NamespaceDecoder::default());
        history.watch(client, "/apis/policy/v1/poddisruptionbudgets", BudgetDecoder::default());
        history.watch(client, "/api/v1/services", ServiceDecoder::default());
        history.watch(client, "/api/v1/persistentvolumeclaims", ClaimDecoder::default());
        history.watch(client, "/api/v1/persistentvolumes", VolumeDecoder::default());
        history.watch(client, "/apis/storage.k8s.io/v1/storageclasses", StorageClassDecoder::default());
        history.watch(client, "/apis/storage.k8s.io/v1/csinodes", CsiNodeDecoder::default());
        let workloads = [
            ("/apis/apps/v1/replicasets", WorkloadKind::ReplicaSet),
            ("/apis/apps/v1/statefulsets", WorkloadKind::StatefulSet),
            ("/api/v1/replicationcontrollers", WorkloadKind::ReplicationController),
            ("/apis/apps/v1/daemonsets", WorkloadKind::DaemonSet),
            ("/apis/batch/v1/jobs", WorkloadKind::Job),
        ];
        for (path, kind) in workloads {
            history.watch(client, path, WorkloadDecoder::new(kind));
        }
        history
    }

    fn watch<D: Decoder>(&mut self, client: &Client, path: &'static str, decoder: D) {
        let (client, changes) = (client.clone(), self.changes.clone());
        self.watches.spawn(async move { follow(&client, path, decoder, &changes).await.context(path) });
    }

    /// Returns all changes so far, in the order in which they were reported.
    ///
    /// # Errors
    /// A watch has ended, so that changes are missing.
    pub fn changes(mut self) -> Result<Vec<ReceivedChange>> {
        if let Some(ended) = self.watches.try_join_next() {
            ended??;
            anyhow::bail!("a watch has ended");
        }
        Ok(self.changes.lock().expect("nobody panics with it").clone())
    }
}

/// Watches one kind until it is cancelled, and resumes when the server ends the watch.
async fn follow<D: Decoder>(
    client: &Client,
    path: &str,
    mut decoder: D,
    changes: &Mutex<Vec<ReceivedChange>>,
) -> Result<()> {
    let clock = Clock::system();
    // The cluster is empty, so the first list has no objects.
    for news in [WatchEvent::ListStarted, WatchEvent::ListDone] {
        let change = decoder.change(news).into_iter();
        let changes = &mut *changes.lock().expect("nobody panics with it");
        changes.extend(change.map(|change| ReceivedChange { at: clock.now(), change }));
    }
    let mut from = String::new();
    loop {
        let request = http::Request::get(format!("{path}?watch=true&timeoutSeconds=3600{from}"));
        let mut lines = client.request_stream(request.body(Vec::new())?).await?.lines();
        while let Some(line) = lines.next().await {
            match decode::line(&mut decoder, line?.as_bytes(), false) {
                StreamEvent::Object { change, version } => {
                    let changes = &mut *changes.lock().expect("nobody panics with it");
                    changes.extend(change.map(|change| ReceivedChange { at: clock.now(), change }));
                    from = format!("&resourceVersion={version}");
                }
                StreamEvent::Bookmark { .. } => {}
                other => anyhow::bail!("{other:?}"),
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await; // the watch may end immediately again
    }
}
