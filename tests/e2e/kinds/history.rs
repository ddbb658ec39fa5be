//! The history of every pod, as a watch has reported it since the start of the watch.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kordon_clock::Clock;
use kordon_time::{Span, Timestamp};
use kube::{
    Api, Client, ResourceExt,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use tokio::task::JoinSet;

use crate::harness::kubelets::is_ready;

/// Time without a change after which a namespace counts as settled: longer than the first back-off of a Job.
const QUIET: Span = Span::from_secs(12);

/// A pod, as the watch has reported it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub namespace: String,
    pub name: String,
    /// Kind and name of the pod's controller.
    pub owner: Option<(String, String)>,
    pub node: Option<String>,
    pub first_seen: Timestamp,
    pub ready: Option<Timestamp>,
    /// Time at which the pod's deletion began.
    pub deleted: Option<Timestamp>,
    /// Whether the pod is Failed or Succeeded.
    pub is_finished: bool,
    /// Reason of the pod's condition DisruptionTarget.
    pub disrupted: Option<String>,
    pub is_gone: bool,
}

impl Seen {
    /// Whether the pod runs or is going to run.
    pub fn lives(&self) -> bool {
        !self.is_gone && self.deleted.is_none() && !self.is_finished
    }

    /// Whether the pod is still on a node from which a drain should have removed it.
    pub fn is_drained_from(&self, node: &str) -> bool {
        let is_of_daemon_set = self.owner.as_ref().is_some_and(|(kind, _)| kind == "DaemonSet");
        !self.is_gone && !self.is_finished && !is_of_daemon_set && self.node.as_deref() == Some(node)
    }
}

/// All pods of all namespaces by uid, including pods that are gone.
pub struct History {
    pods: Arc<Mutex<BTreeMap<String, Seen>>>,
    _task: JoinSet<()>,
}

impl History {
    pub fn start(client: Client) -> Self {
        let pods = Arc::new(Mutex::new(BTreeMap::new()));
        let mut task = JoinSet::new();
        task.spawn(watch(client, pods.clone()));
        Self { pods, _task: task }
    }

    /// Returns the pods of a namespace by uid.
    pub fn of(&self, namespace: &str) -> BTreeMap<String, Seen> {
        let pods = self.pods.lock().expect("no thread panicked with it");
        pods.iter()
            .filter(|(_, seen)| seen.namespace == namespace)
            .map(|(uid, seen)| (uid.clone(), seen.clone()))
            .collect()
    }

    /// Waits until nothing has changed in a namespace for [`QUIET`], counted from `at_least` at the earliest. Stops
    /// waiting at `at_most`.
    pub async fn until_quiet(&self, namespace: &str, at_least: Timestamp, at_most: Timestamp) {
        let clock = Clock::system();
        let (mut last, mut changed) = (self.of(namespace), clock.now());
        loop {
            tokio::time::sleep(Span::from_millis(500).to_std()).await;
            let (pods, now) = (self.of(namespace), clock.now());
            if pods != last {
                (last, changed) = (pods, now);
            }
            if now >= changed.max(at_least) + QUIET || now >= at_most {
                return;
            }
        }
    }
}

async fn watch(client: Client, pods: Arc<Mutex<BTreeMap<String, Seen>>>) {
    let clock = Clock::system();
    let mut events = watcher(Api::<Pod>::all(client), watcher::Config::default()).default_backoff().boxed();
    while let Some(event) = events.next().await {
        let mut pods = pods.lock().expect("no thread panicked with it");
        match event {
            Ok(Event::Apply(pod) | Event::InitApply(pod)) => note(&mut pods, &pod, clock.now()),
            Ok(Event::Delete(pod)) => {
                note(&mut pods, &pod, clock.now());
                if let Some(seen) = pod.uid().and_then(|uid| pods.get_mut(&uid)) {
                    seen.is_gone = true;
                    seen.deleted.get_or_insert(clock.now());
                }
            }
            Ok(Event::Init | Event::InitDone) => {}
            Err(error) => eprintln!("the watch of pods: {error}"), // it reconnects after its backoff
        }
    }
}

fn note(pods: &mut BTreeMap<String, Seen>, pod: &Pod, now: Timestamp) {
    let seen = pods.entry(pod.uid().unwrap_or_default()).or_insert_with(|| Seen {
        namespace: pod.namespace().unwrap_or_default(),
        name: pod.name_any(),
        first_seen: now,
        ..Seen::default()
    });
    let owner = pod.owner_references().iter().find(|owner| owner.controller == Some(true));
    seen.owner = owner.map(|owner| (owner.kind.clone(), owner.name.clone()));
    seen.node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
    if is_ready(pod) {
        seen.ready.get_or_insert(now);
    }
    if pod.metadata.deletion_timestamp.is_some() {
        seen.deleted.get_or_insert(now);
    }
    let status = pod.status.as_ref();
    let phase = status.and_then(|status| status.phase.as_deref());
    seen.is_finished = matches!(phase, Some("Failed" | "Succeeded"));
    let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let target = conditions.iter().find(|condition| condition.type_ == "DisruptionTarget");
    seen.disrupted = target.and_then(|condition| condition.reason.clone()).or_else(|| seen.disrupted.take());
}
