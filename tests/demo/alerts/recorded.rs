//! Recordings of the real controllers, from which the times of the evictions come. The demo's API server plays the
//! recorded nodes, pods, heartbeats and the writes of the recorded controllers; `kordon controller` is their shadow.

use std::{collections::BTreeMap, fmt::Debug};

use k8s_openapi::api::core::v1::{Node, Pod};
use kordon_clock::Clock;
use kordon_demo::api::{Api as Server, ApiOptions};
use kordon_time::{Span, Timestamp};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{EPOCH, EVERY, Exported, Exporter, Reported, first_firings};
use crate::{
    common::{
        lifecycle::{LifecycleRecording, RecordedEffect},
        recordings,
        stage::Stage,
    },
    promql::Scrapes,
};

/// Factor by which the recordings are slowed down. Recorded kubelets send a heartbeat each second, and the recorded grace
/// period is 4 s. Slowed down, the heartbeats are 10 s apart, as those of kubelets by default, and the grace period is
/// 40 s.
const FACTOR: u32 = 10;
/// Number of Prometheus servers. Each scrapes every 15 s, one 5 s after another. An alert counts as firing when it fires
/// in the last of them.
const PHASES: usize = 3;

/// Plays a recording.
pub(super) async fn play(name: &str) -> Reported {
    let path = recordings::own("lifecycle").join(format!("{name}.json"));
    let recording: LifecycleRecording = recordings::read(&path).expect("a recording");
    let recording = recording.slowed_down(FACTOR);
    let clock = Clock::new(Timestamp::parse(EPOCH).expect("a time"), 1.0);
    let options = ApiOptions {
        default_toleration_seconds: Some(recording.default_toleration_seconds),
        taint_new_nodes: false,
        ..ApiOptions::default()
    };
    let server = Server::new(clock, options);
    let cancel = CancellationToken::new();
    let _cancel = cancel.clone().drop_guard();
    let (until, settings) = (recording.until, recording.settings());
    let first_eviction = recording.first_eviction().expect("the recording has evictions");

    let mut stage = Stage::new(server.client(), clock, "recorded".into(), recording);
    stage.set_up().await.expect("the objects are created");
    let controllers = RecordedControllers::new(server.client(), clock, &stage);
    let exported = Exported::start(&server, clock, settings, Exporter::Shadow, &cancel);
    // The first heartbeat is sent one interval before the controllers start.
    let start = clock.now() + Span::from_secs(FACTOR.into());
    let ends = start + Span::from_secs_f64(until);
    let (played, (), phases) =
        tokio::join!(stage.play(start, until), controllers.act(start), scrape(&exported, clock, ends));
    played.expect("the recording is played");
    let evictions = vec![start + Span::from_secs_f64(first_eviction)];
    Reported { failed: start, fired: last_firings(&phases), evictions, by_default: Vec::new() }
}

/// Scrapes for each Prometheus server.
async fn scrape(exported: &Exported, clock: Clock, ends: Timestamp) -> [Scrapes; PHASES] {
    let mut phases: [Scrapes; PHASES] = Default::default();
    let apart = Span::from_nanos(EVERY.as_nanos() / PHASES as i64);
    for phase in (0..PHASES).cycle().take_while(|_| clock.now() < ends) {
        clock.sleep(apart).await;
        let text = exported.scrape().await;
        phases[phase].add(clock.now(), &text);
    }
    phases
}

/// Returns the time from which each rule has fired in every Prometheus server.
fn last_firings(phases: &[Scrapes]) -> BTreeMap<String, Timestamp> {
    let firings: Vec<_> = phases.iter().map(first_firings).collect();
    let last = |alert: &String| {
        let times: Option<Vec<Timestamp>> = firings.iter().map(|fired| fired.get(alert).copied()).collect();
        times?.into_iter().max()
    };
    firings[0].keys().filter_map(|alert| Some((alert.clone(), last(alert)?))).collect()
}

/// Writes what the recorded controllers wrote, when they wrote it.
struct RecordedControllers {
    client: Client,
    clock: Clock,
    /// Namespace of the pods.
    namespace: String,
    /// The writes, with the names that the nodes have on the server.
    effects: Vec<RecordedEffect>,
}

impl RecordedControllers {
    fn new(client: Client, clock: Clock, stage: &Stage) -> Self {
        let named =
            |effect: &RecordedEffect| RecordedEffect { node: stage.own(&effect.node), ..effect.clone() };
        let effects = stage.recording.recorded.effects.iter().map(named).collect();
        Self { client, clock, namespace: stage.name.clone(), effects }
    }

    async fn act(self, start: Timestamp) {
        for effect in &self.effects {
            self.clock.sleep_until(start + Span::from_secs_f64(effect.t)).await;
            self.write(effect).await.unwrap_or_else(|error| panic!("{effect}: {error}"));
        }
    }

    async fn write(&self, effect: &RecordedEffect) -> kube::Result<()> {
        let (nodes, pods): (Api<Node>, Api<Pod>) =
            (Api::all(self.client.clone()), Api::namespaced(self.client.clone(), &self.namespace));
        let pod = effect.pod.trim_start_matches("default/");
        let RecordedEffect { node, r#type, status, reason, .. } = effect;
        match effect.effect.as_str() {
            "condition" => self.set_condition(&nodes, node, r#type, status, reason).await,
            "taint" => self.change_taint(&nodes, effect).await,
            "pod-not-ready" => self.set_condition(&pods, pod, "Ready", "False", "").await,
            "pod-condition" => self.set_condition(&pods, pod, r#type, "True", reason).await,
            "pod-delete" => pods.delete(pod, &DeleteParams::default()).await.map(drop),
            "event" => Ok(()),
            other => panic!("{other} is no effect of these recordings"),
        }
    }

    async fn set_condition<K: Clone + Debug + DeserializeOwned>(
        &self,
        objects: &Api<K>,
        name: &str,
        kind: &str,
        status: &str,
        reason: &str,
    ) -> kube::Result<()> {
        let now = self.clock.now().to_time();
        let condition =
            json!({ "type": kind, "status": status, "reason": reason, "lastTransitionTime": now });
        // A strategic patch merges conditions by type.
        let patch = Patch::Strategic(json!({ "status": { "conditions": [condition] } }));
        objects.patch_status(name, &PatchParams::default(), &patch).await.map(drop)
    }

    async fn change_taint(&self, nodes: &Api<Node>, effect: &RecordedEffect) -> kube::Result<()> {
        let node = nodes.get(&effect.node).await?;
        let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
        let others = taints.iter().filter(|taint| taint.key != effect.key || taint.effect != effect.taint);
        let mut taints: Vec<Value> =
            others.map(|taint| serde_json::to_value(taint).expect("plain data")).collect();
        if effect.op == "add" {
            let added = self.clock.now().to_time();
            taints.push(json!({ "key": effect.key, "effect": effect.taint, "timeAdded": added }));
        }
        let patch = Patch::Merge(json!({ "spec": { "taints": taints } }));
        nodes.patch(&effect.node, &PatchParams::default(), &patch).await.map(drop)
    }
}
