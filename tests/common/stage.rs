//! A recorded scenario on an API server: its nodes and pods, the heartbeats of its kubelets, and its timeline.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, Result, bail};
use futures::future::try_join_all;
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{Namespace, Node, Pod},
};
use kordon_clock::Clock;
use kordon_core::cluster::{ConditionStatus, NodeName};
use kordon_time::{Span, Timestamp};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::lifecycle::{
    Beat, FIRST_BEAT, LifecycleRecording, NodeSpec, PodSpec, STATUS_EVERY, TimelineAction, healthy,
};

/// One of several scenarios that are played at once. Its name is a prefix of its nodes' names. Its zones are in a
/// separate region, and its pods in a separate namespace.
pub struct Stage {
    client: Client,
    clock: Clock,
    pub name: String,
    pub recording: LifecycleRecording,
    /// The scenario's nodes in the order in which they were tainted.
    order: Vec<NodeName>,
    kubelets: BTreeMap<String, Kubelet>,
}

/// State of one kubelet.
struct Kubelet {
    /// Heartbeats that the kubelet sends; `None` while it is silent.
    beat: Option<Beat>,
    /// Statuses that the kubelet posts; `None` if it never posts.
    posts: Option<BTreeMap<String, Posted>>,
}

struct Posted {
    status: ConditionStatus,
    since: Timestamp,
}

impl Stage {
    pub fn new(client: Client, clock: Clock, name: String, recording: LifecycleRecording) -> Self {
        let order = recording.order();
        Self { client, clock, name, recording, order, kubelets: BTreeMap::new() }
    }

    /// Creates the objects that exist before the controllers start.
    pub async fn set_up(&mut self) -> Result<()> {
        let namespace = serde_json::from_value(json!({ "metadata": { "name": self.name } }))?;
        Api::<Namespace>::all(self.client.clone()).create(&PostParams::default(), &namespace).await?;
        for node in self.recording.nodes.clone() {
            self.add_node(&node).await?;
        }
        try_join_all(self.recording.pods.iter().map(|pod| self.add_pod(pod))).await?;
        self.beats(FIRST_BEAT).await
    }

    /// Plays the heartbeats and the timeline until `until` seconds after `start`.
    pub async fn play(mut self, start: Timestamp, until: f64) -> Result<Self> {
        let mut steps = self.recording.timeline.clone().into_iter().peekable();
        let mut next_beat = 0;
        loop {
            let beat = next_beat as f64 * self.recording.heartbeat_s;
            // A heartbeat comes before other steps at the same time: a kubelet that falls silent at that time still
            // sends the heartbeat.
            let step = steps.next_if(|step| step.t < beat);
            let at = step.as_ref().map_or(beat, |step| step.t);
            if at > until {
                return Ok(self);
            }
            self.clock.sleep_until(start + Span::from_secs_f64(at)).await;
            match step {
                Some(step) => {
                    self.act(&step.what).await.with_context(|| format!("{}: {step:?}", self.name))?;
                }
                None => {
                    self.beats(next_beat).await?;
                    next_beat += 1;
                }
            }
        }
    }

    /// Returns the name of a recorded node in the cluster. Names are in the order in which the nodes were tainted.
    pub fn own(&self, node: &str) -> String {
        let place = self.order.iter().position(|other| **other == *node).unwrap_or(self.order.len());
        format!("{}-{place:02}-{node}", self.name)
    }

    /// Returns the name of a node in the recording; `None` if the node is not of this scenario.
    pub fn recorded_name<'a>(&self, own: &'a str) -> Option<&'a str> {
        let placed = own.strip_prefix(&self.name)?.strip_prefix('-')?;
        placed.split_once('-').map(|(_, node)| node)
    }

    async fn act(&mut self, act: &TimelineAction) -> Result<()> {
        let now = self.clock.now();
        match act {
            TimelineAction::Silence { node } => self.kubelet(node)?.beat = None,
            TimelineAction::Beat { node, beat } => {
                let kubelet = self.kubelet(node)?;
                kubelet.beat = Beat::parse(beat.as_deref());
                // While the kubelet was silent, the controller may have changed the node's conditions to Unknown. So
                // the transition time of all posted conditions is now.
                kubelet.posts.iter_mut().flat_map(BTreeMap::values_mut).for_each(|posted| posted.since = now);
                self.beat(node, true).await?;
            }
            TimelineAction::Status { node, set } => {
                let kubelet = self.kubelet(node)?;
                let posts = kubelet.posts.get_or_insert_with(|| posted_from(healthy(), now));
                let set = set.iter().map(|(kind, status)| (kind.clone(), ConditionStatus::parse(status)));
                posts.extend(posted_from(set, now));
                self.post(node).await?;
            }
            TimelineAction::Taints { node, set } => self.replace_taints(node, set).await?,
            TimelineAction::Cordon { node, on } => {
                self.patch_node(node, json!({ "spec": { "unschedulable": on } })).await?;
            }
            TimelineAction::Labels { node, set } => {
                self.patch_node(node, json!({ "metadata": { "labels": set } })).await?;
            }
            TimelineAction::DeleteNode { node } => {
                let has_lease = self.kubelets.remove(node).is_some_and(|kubelet| kubelet.beat.is_some());
                if has_lease {
                    self.leases().delete(&self.own(node), &DeleteParams::default()).await?;
                }
                self.nodes().delete(&self.own(node), &DeleteParams::default()).await?;
            }
            TimelineAction::AddNode { node } => {
                self.add_node(node).await?;
                self.beat(&node.name, true).await?;
            }
            TimelineAction::AddPod { pod } => self.add_pod(pod).await?,
            TimelineAction::DeletePod { pod, grace } => {
                let grace = grace.map(u32::try_from).transpose()?;
                let parameters = DeleteParams { grace_period_seconds: grace, ..DeleteParams::default() };
                self.pods().delete(pod, &parameters).await?;
            }
            TimelineAction::Tolerations { .. } => bail!("cannot be played on an API server"),
        }
        Ok(())
    }

    /// Sends the heartbeat of this number for every kubelet that is not silent.
    async fn beats(&self, number: i64) -> Result<()> {
        let posts_status = (number - FIRST_BEAT) % STATUS_EVERY == 0;
        try_join_all(self.kubelets.keys().map(|node| self.beat(node, posts_status))).await.map(drop)
    }

    async fn beat(&self, node: &str, posts_status: bool) -> Result<()> {
        let Some(beat) = self.kubelets.get(node).and_then(|kubelet| kubelet.beat) else { return Ok(()) };
        if beat != Beat::Status {
            let renewed = self.clock.now().to_micro_time();
            let name = self.own(node);
            let lasts = Span::from_secs_f64(4.0 * self.recording.heartbeat_s).as_secs();
            let spec = json!({ "holderIdentity": name, "leaseDurationSeconds": lasts, "renewTime": renewed });
            let lease = json!({ "metadata": { "name": name }, "spec": spec });
            let answer = self.leases().patch(&name, &PatchParams::default(), &Patch::Merge(&lease)).await;
            match answer {
                Err(kube::Error::Api(status)) if status.is_not_found() => {
                    let lease = serde_json::from_value(lease)?;
                    self.leases().create(&PostParams::default(), &lease).await?;
                }
                answer => drop(answer?),
            }
        }
        if beat != Beat::Lease && posts_status {
            self.post(node).await?;
        }
        Ok(())
    }

    /// Posts the conditions of a kubelet's node.
    async fn post(&self, node: &str) -> Result<()> {
        let Some(posts) = self.kubelets.get(node).and_then(|kubelet| kubelet.posts.as_ref()) else {
            return Ok(());
        };
        let now = self.clock.now().to_time();
        let condition = |(kind, posted): (&String, &Posted)| {
            json!({
                "type": kind, "status": posted.status.to_string(), "reason": format!("{KUBELET}{kind}"),
                "lastHeartbeatTime": now, "lastTransitionTime": posted.since.to_time(),
            })
        };
        let conditions: Vec<Value> = posts.iter().map(condition).collect();
        // A strategic patch merges conditions by type.
        let patch = Patch::Strategic(json!({ "status": { "conditions": conditions } }));
        self.nodes().patch_status(&self.own(node), &PatchParams::default(), &patch).await?;
        Ok(())
    }

    async fn add_node(&mut self, spec: &NodeSpec) -> Result<()> {
        let mut labels = spec.labels.clone();
        let region =
            spec.region.as_ref().map_or(self.name.clone(), |region| format!("{}-{region}", self.name));
        labels.insert("topology.kubernetes.io/region".into(), region);
        if let Some(zone) = &spec.zone {
            labels.insert("topology.kubernetes.io/zone".into(), zone.clone());
        }
        let node = json!({
            "metadata": { "name": self.own(&spec.name), "labels": labels },
            "spec": { "taints": spec.taints },
        });
        self.nodes().create(&PostParams::default(), &serde_json::from_value(node)?).await?;
        let posts = spec.posts().map(|posts| posted_from(posts, self.clock.now()));
        let kubelet = Kubelet { beat: Beat::parse(spec.beat.as_deref()), posts };
        self.kubelets.insert(spec.name.clone(), kubelet);
        self.post(&spec.name).await
    }

    async fn add_pod(&self, spec: &PodSpec) -> Result<()> {
        let owners: Vec<&Value> = spec.owner.iter().collect();
        let pod = json!({
            "metadata": { "name": spec.name, "labels": spec.labels, "ownerReferences": owners },
            "spec": {
                "nodeName": self.own(&spec.node),
                "tolerations": spec.tolerations,
                "terminationGracePeriodSeconds": spec.grace,
                "containers": [{ "name": "c", "image": "img" }],
            },
        });
        self.pods().create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
        let now = self.clock.now().to_time();
        let status = json!({ "status": {
            "phase": spec.phase.as_deref().unwrap_or("Running"),
            "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": now }],
        }});
        let patch = Patch::Strategic(status);
        self.pods().patch_status(&spec.name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Replaces all taints except those of the controllers.
    async fn replace_taints(&self, node: &str, set: &[Value]) -> Result<()> {
        loop {
            let before = self.nodes().get(&self.own(node)).await?;
            let taints = before.spec.and_then(|spec| spec.taints).unwrap_or_default();
            let kept = taints.iter().filter(|taint| taint.key.starts_with(CONTROLLERS_TAINTS));
            let kept = kept.map(serde_json::to_value).collect::<Result<Vec<_>, _>>()?;
            let taints: Vec<Value> = kept.into_iter().chain(set.iter().cloned()).collect();
            let version = before.metadata.resource_version;
            let patch = json!({ "metadata": { "resourceVersion": version }, "spec": { "taints": taints } });
            match self.patch_node(node, patch).await {
                Err(kube::Error::Api(status)) if status.is_conflict() => {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                answer => return Ok(answer?),
            }
        }
    }

    async fn patch_node(&self, node: &str, patch: Value) -> kube::Result<()> {
        let patch = Patch::Merge(patch);
        self.nodes().patch(&self.own(node), &PatchParams::default(), &patch).await.map(drop)
    }

    fn kubelet(&mut self, node: &str) -> Result<&mut Kubelet> {
        self.kubelets.get_mut(node).with_context(|| format!("no node {node}"))
    }

    fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.name)
    }

    fn leases(&self) -> Api<Lease> {
        Api::namespaced(self.client.clone(), "kube-node-lease")
    }
}

/// Prefix of the reason of every condition that a kubelet posts.
pub const KUBELET: &str = "Kubelet";
/// Prefix of the key of every taint that the controllers add and remove.
pub const CONTROLLERS_TAINTS: &str = "node.kubernetes.io/";

fn posted_from(
    posts: impl IntoIterator<Item = (String, ConditionStatus)>,
    since: Timestamp,
) -> BTreeMap<String, Posted> {
    posts.into_iter().map(|(kind, status)| (kind, Posted { status, since })).collect()
}
