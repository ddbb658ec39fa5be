//! Everything that decides over placement, as the API server told it.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use anyhow::{Context, Result};
use futures::{AsyncBufReadExt, StreamExt};
use kordon::{
    clock::Clock,
    cluster::{Change, WorkloadKind},
    k8s::decode::{
        self, Decoder, StreamLine, WatchEvent,
        budget::BudgetDecoder,
        namespace::NamespaceDecoder,
        node::NodeDecoder,
        pod::PodDecoder,
        service::ServiceDecoder,
        storage::{ClaimDecoder, CsiNodeDecoder, StorageClassDecoder, VolumeDecoder},
        workload::WorkloadDecoder,
    },
    time::Timestamp,
};
use kube::Client;
use tokio::task::JoinSet;

/// What a watch told, and when it reached us.
#[derive(Clone, Debug)]
pub struct Told {
    pub at: Timestamp,
    pub change: Change,
}

/// A watch for each kind, from now on. They end with this value.
pub struct History {
    told: Arc<Mutex<Vec<Told>>>,
    watches: JoinSet<Result<()>>,
}

impl History {
    pub fn start(client: &Client) -> Self {
        let mut history = Self { told: Arc::default(), watches: JoinSet::new() };
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
        let (client, told) = (client.clone(), self.told.clone());
        self.watches.spawn(async move { follow(&client, path, decoder, &told).await.context(path) });
    }

    /// All that was told so far, in the order in which it came.
    ///
    /// # Errors
    /// A watch has ended: then something is missing.
    pub fn told(mut self) -> Result<Vec<Told>> {
        if let Some(ended) = self.watches.try_join_next() {
            ended??;
            anyhow::bail!("a watch has ended");
        }
        Ok(self.told.lock().expect("nobody panics with it").clone())
    }
}

/// Follows one kind for ever, and goes on where the server ended a watch.
async fn follow<D: Decoder>(
    client: &Client,
    path: &str,
    mut decoder: D,
    told: &Mutex<Vec<Told>>,
) -> Result<()> {
    let clock = Clock::system();
    // Nothing is there yet, and that is known.
    for news in [WatchEvent::ListBegun, WatchEvent::ListDone] {
        let change = decoder.change(news).into_iter();
        let told = &mut *told.lock().expect("nobody panics with it");
        told.extend(change.map(|change| Told { at: clock.now(), change }));
    }
    let mut from = String::new();
    loop {
        let request = http::Request::get(format!("{path}?watch=true&timeoutSeconds=3600{from}"));
        let mut lines = client.request_stream(request.body(Vec::new())?).await?.lines();
        while let Some(line) = lines.next().await {
            match decode::line(&mut decoder, line?.as_bytes(), false) {
                StreamLine::Object { change, version } => {
                    let told = &mut *told.lock().expect("nobody panics with it");
                    told.extend(change.map(|change| Told { at: clock.now(), change }));
                    from = format!("&resourceVersion={version}");
                }
                StreamLine::Bookmark { .. } => {}
                other => anyhow::bail!("{other:?}"),
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await; // should it end at once again and again
    }
}
