//! The actual course of a drain: deletions and ends of pods as a separate watch reports them, and the refusals of
//! budgets in the journal.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kordon::journal::{JournalLine, LineKind};
use kordon_clock::Clock;
use kordon_time::Timestamp;
use kube::{
    Api, Client, ResourceExt,
    runtime::{
        WatchStreamExt,
        watcher::{self, watcher},
    },
};
use tokio_util::sync::CancellationToken;

/// The actual course of a drain, by the uids of pods.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    pub began: Timestamp,
    pub ended: Timestamp,
    /// Time at which each pod's deletion was first observed.
    pub left: BTreeMap<String, Timestamp>,
    pub gone: BTreeMap<String, Timestamp>,
    /// First refusal of each pod (`namespace/name`) by each budget.
    pub refused: BTreeMap<(String, String), Timestamp>,
    /// Pods whose eviction by the operation was granted.
    pub granted: BTreeSet<String>,
}

/// Watches pods leave.
pub struct Watcher {
    seen: Arc<Mutex<Facts>>,
}

impl Watcher {
    /// Starts a watch. Returns once it has reported all existing pods.
    pub async fn start(client: Client, clock: Clock, cancel: &CancellationToken) -> Self {
        let seen = Arc::new(Mutex::new(Facts::default()));
        let (listed, is_listed) = tokio::sync::oneshot::channel();
        let watching = watch(client, clock, seen.clone(), listed);
        let cancel = cancel.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = cancel.cancelled() => {}
                () = watching => {}
            }
        });
        is_listed.await.expect("it lists");
        Self { seen }
    }

    /// Returns all observations so far, completed with facts from the journal.
    pub fn facts(&self, lines: &[JournalLine], began: Timestamp, ended: Timestamp) -> Facts {
        let mut facts = Facts { began, ended, ..self.seen.lock().expect("no panic").clone() };
        let mut asked: BTreeMap<u64, &str> = BTreeMap::new();
        for line in lines {
            match &line.kind {
                LineKind::Request { id, object, request, .. } if request == "evict" => {
                    asked.insert(*id, object.strip_prefix("pod/").unwrap_or(object));
                }
                LineKind::Outcome { id, outcome, text } => {
                    let Some(pod) = asked.get(id) else { continue };
                    match outcome.as_str() {
                        "done" => _ = facts.granted.insert((*pod).to_owned()),
                        // The server's text is "The disruption budget b needs 3 healthy pods and has 3 currently".
                        "budgetExhausted" | "budgetStale" => {
                            let name = text.split(' ').nth(3).unwrap_or_default();
                            let namespace = pod.split('/').next().unwrap_or_default();
                            let refused = ((*pod).to_owned(), format!("{namespace}/{name}"));
                            facts.refused.entry(refused).or_insert(line.at);
                        }
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        facts
    }
}

async fn watch(
    client: Client,
    clock: Clock,
    seen: Arc<Mutex<Facts>>,
    listed: tokio::sync::oneshot::Sender<()>,
) {
    let mut listed = Some(listed);
    let mut events = watcher(Api::<Pod>::all(client), watcher::Config::default()).default_backoff().boxed();
    while let Some(event) = events.next().await {
        let now = clock.now();
        let mut seen = seen.lock().expect("no panic");
        match event.expect("the watch does not break") {
            watcher::Event::Apply(pod) if pod.metadata.deletion_timestamp.is_some() => {
                seen.left.entry(pod.uid().unwrap_or_default()).or_insert(now);
            }
            watcher::Event::Delete(pod) => {
                let uid = pod.uid().unwrap_or_default();
                seen.left.entry(uid.clone()).or_insert(now);
                seen.gone.insert(uid, now);
            }
            watcher::Event::InitDone => {
                if let Some(listed) = listed.take() {
                    let _ = listed.send(());
                }
            }
            watcher::Event::Apply(_) | watcher::Event::Init | watcher::Event::InitApply(_) => {}
        }
    }
}
