//! Effects of a controller in the played scenarios, as watches and events show them.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Event;
use kordon::k8s::{
    feed::FeedEvent,
    watch::{self as k8s_watch, WatchOptions},
};
use kordon_clock::Clock;
use kordon_core::cluster::{Applied, Cluster, FeedKind};
use kordon_time::Timestamp;
use kube::{Api, Client, api::ListParams};
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

use crate::{
    common::{
        lifecycle::{RecordedEffect, TimelineAction, node_effects, pod_effects},
        stage::{CONTROLLERS_TAINTS, KUBELET, Stage},
    },
    harness::plane,
};

/// A change reported by a watch, with its time.
type Seen = (Timestamp, RecordedEffect);

/// Watches of all nodes and pods, started before the controller.
pub struct Watching {
    cancel: CancellationToken,
    task: JoinHandle<Vec<Seen>>,
}

impl Watching {
    pub fn start(client: Client) -> Self {
        let cancel = CancellationToken::new();
        let clock = Clock::system();
        let (send, feeds) = mpsc::channel(256);
        let options = WatchOptions {
            version: plane::VERSION,
            kinds: &[FeedKind::Nodes, FeedKind::Pods],
            no_pods: false,
            request_timeout: None,
        };
        k8s_watch::spawn(client, options, watch::Sender::default().subscribe(), clock, send, cancel.clone());
        let task = tokio::spawn(record(feeds, clock, cancel.clone()));
        Self { cancel, task }
    }

    /// Returns all changes since the start.
    pub async fn finish(self) -> Result<Vec<Seen>> {
        self.cancel.cancel();
        self.task.await.context("the watching ended")
    }
}

async fn record(mut feeds: mpsc::Receiver<FeedEvent>, clock: Clock, cancel: CancellationToken) -> Vec<Seen> {
    let (mut cluster, mut seen) = (Cluster::default(), Vec::new());
    loop {
        let event = tokio::select! {
            () = cancel.cancelled() => return seen,
            event = feeds.recv() => event,
        };
        let Some(FeedEvent::Changes(changes)) = event else { continue };
        let now = clock.now();
        for change in changes {
            let mut applied = Vec::new();
            cluster.apply(change, &mut applied);
            seen.extend(applied.iter().flat_map(effects).map(|effect| (now, effect)));
        }
    }
}

fn effects(applied: &Applied) -> Vec<RecordedEffect> {
    match applied {
        Applied::Node(delta) => match (&delta.old, &delta.new) {
            (Some(old), Some(new)) => node_effects(old, new),
            _ => Vec::new(),
        },
        Applied::Pod(delta) => {
            delta.old.as_ref().map(|old| pod_effects(old, delta.new.as_deref())).unwrap_or_default()
        }
        Applied::Lease(_) | Applied::Leader(..) | Applied::KordonLease | Applied::Other => Vec::new(),
    }
}

/// Returns the events of all namespaces as effects on their objects.
pub async fn events(client: &Client) -> Result<Vec<Seen>> {
    let events = Api::<Event>::all(client.clone()).list(&ListParams::default()).await?;
    let mut seen = Vec::new();
    for event in events {
        let at = event.metadata.creation_timestamp.context("an object without a time")?.0.to_string();
        let at = Timestamp::parse(&at).context("a time")?;
        let about = event.involved_object;
        let (kind, name) = (about.kind.unwrap_or_default(), about.name.unwrap_or_default());
        let name = match about.namespace {
            Some(namespace) if kind == "Pod" => format!("{namespace}/{name}"),
            _ => name,
        };
        seen.push((at, RecordedEffect::event(&kind, &name, &event.reason.unwrap_or_default())));
    }
    Ok(seen)
}

/// Returns the controller's effects on one scenario, with the recording's names and times since `start`.
pub fn of_stage(seen: &[Seen], stage: &Stage, start: Timestamp) -> Vec<RecordedEffect> {
    let mut effects: Vec<RecordedEffect> = seen
        .iter()
        .filter_map(|(at, effect)| {
            let named = as_recorded(effect, stage)?;
            Some(named.at(seconds_after(start, *at)))
        })
        .collect();
    remove_actions(&mut effects, stage);
    effects.sort_by(|a, b| a.t.total_cmp(&b.t));
    stage.recording.rename_alike(&mut effects);
    effects
}

fn seconds_after(start: Timestamp, at: Timestamp) -> f64 {
    if at < start { -start.since(at).as_secs_f64() } else { at.since(start).as_secs_f64() }
}

/// Returns the effect with the recording's names; `None` if the object of the effect belongs to another scenario.
fn as_recorded(effect: &RecordedEffect, stage: &Stage) -> Option<RecordedEffect> {
    let node = |name: &str| stage.recorded_name(name).map(str::to_owned);
    let pod = |name: &str| {
        Some(format!("default{}", name.strip_prefix(&stage.name).filter(|rest| rest.starts_with('/'))?))
    };
    let mut named = effect.clone();
    match (effect.node.as_str(), effect.pod.as_str(), effect.kind.as_str()) {
        ("", "", "Pod") => named.name = pod(&effect.name)?,
        ("", "", _) => named.name = node(&effect.name)?,
        ("", ..) => named.pod = pod(&effect.pod)?,
        _ => named.node = node(&effect.node)?,
    }
    Some(named)
}

/// Removes the effects of the kubelets and the timeline, so that those of the controller are left.
fn remove_actions(effects: &mut Vec<RecordedEffect>, stage: &Stage) {
    let timeline = || stage.recording.timeline.iter().map(|step| &step.what);
    effects.retain(|seen| match seen.effect.as_str() {
        "condition" => !seen.reason.starts_with(KUBELET),
        "taint" => seen.key.starts_with(CONTROLLERS_TAINTS),
        "label" => !timeline().any(|act| {
            matches!(act, TimelineAction::Labels { node, set } if *node == seen.node && set.contains_key(&seen.key))
        }),
        "pod-delete" => !timeline().any(|act| {
            matches!(act, TimelineAction::DeletePod { pod, .. } if format!("default/{pod}") == seen.pod)
        }),
        "pod-gone" => stage.recording.collects(),
        _ => true,
    });
}
