//! Recordings of upstream's lifecycle controllers: their format, their effects, and the comparison with kordon's
//! engine.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use kordon_core::{
    cluster::{ConditionStatus, Node, NodeName, Pod, READY, Taint},
    engine::{Origin, ServerVersion, Settings},
};
use serde::Deserialize;
use serde_json::Value;

/// Number of the first heartbeat. Heartbeats are `heartbeat_s` apart; heartbeat 0 is sent at the controllers' start.
/// Beginning with the first, every fifth heartbeat also posts the node status.
pub const FIRST_BEAT: i64 = -1;
pub const STATUS_EVERY: i64 = 5;

/// Allowed difference, in seconds, between a time in the engine's run and the recorded time: two passes, which are a
/// second apart in the recordings. One pass notices a heartbeat and another its absence, and each of the two may come
/// just before it or after it. The recorded times are up to 1.03 s earlier and up to 1.22 s later (2026-12-01).
pub const TOLERANCE: f64 = 2.0;
/// Controllers that are assumed to have run if a recording does not list them.
const USUAL_CONTROLLERS: &str = "node-lifecycle-controller,taint-eviction-controller";

/// One recording: a scenario, and the effects of the real controllers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LifecycleRecording {
    #[serde(rename = "name")]
    _name: String,
    #[serde(rename = "about")]
    _about: String,
    pub mode: String,
    pub flags: BTreeMap<String, String>,
    #[serde(default)]
    pub controllers: Option<String>,
    pub default_toleration_seconds: i64,
    pub heartbeat_s: f64,
    pub nodes: Vec<NodeSpec>,
    pub pods: Vec<PodSpec>,
    pub timeline: Vec<Step>,
    pub until: f64,
    pub recorded: Recorded,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Recorded {
    pub version: String,
    #[serde(default)]
    pub effects: Vec<RecordedEffect>,
    /// Effects of several runs of the scenario, if the runs differed.
    #[serde(default)]
    pub runs: Vec<Vec<RecordedEffect>>,
}

/// One visible change made by the controllers.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct RecordedEffect {
    /// Time of the change, in seconds after the controllers' start.
    pub t: f64,
    pub effect: String,
    #[serde(default)]
    pub op: String,
    #[serde(default)]
    pub node: String,
    #[serde(default)]
    pub pod: String,
    #[serde(default)]
    pub key: String,
    #[serde(default)]
    pub taint: String,
    #[serde(default)]
    pub r#type: String,
    #[serde(default)]
    pub status: String,
    #[serde(default)]
    pub reason: String,
    #[serde(default)]
    pub value: String,
    #[serde(default)]
    pub kind: String,
    #[serde(default)]
    pub name: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSpec {
    pub name: String,
    #[serde(default)]
    pub zone: Option<String>,
    #[serde(default)]
    pub region: Option<String>,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub taints: Vec<Value>,
    #[serde(default)]
    pub status: Value,
    /// Heartbeats that the kubelet sends. Without this field, it sends both kinds; with null, it is silent from the
    /// start.
    #[serde(default = "both")]
    pub beat: Option<String>,
}

fn yes() -> bool {
    true
}

fn both() -> Option<String> {
    Some("both".into())
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PodSpec {
    pub name: String,
    pub node: String,
    #[serde(default)]
    pub tolerations: Vec<Value>,
    #[serde(default)]
    pub grace: i64,
    #[serde(default)]
    pub phase: Option<String>,
    #[serde(default)]
    pub owner: Option<Value>,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Step {
    pub t: f64,
    #[serde(flatten)]
    pub what: TimelineAction,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum TimelineAction {
    Silence {
        node: String,
    },
    Beat {
        node: String,
        #[serde(default = "both")]
        beat: Option<String>,
    },
    Status {
        node: String,
        set: BTreeMap<String, String>,
    },
    Taints {
        node: String,
        set: Vec<Value>,
    },
    Cordon {
        node: String,
        #[serde(default = "yes")]
        on: bool,
    },
    Labels {
        node: String,
        set: BTreeMap<String, Option<String>>,
    },
    DeleteNode {
        node: String,
    },
    AddNode {
        node: NodeSpec,
    },
    AddPod {
        pod: PodSpec,
    },
    DeletePod {
        pod: String,
        #[serde(default)]
        grace: Option<i64>,
    },
    Tolerations {
        pod: String,
        set: Vec<Value>,
    },
}

impl LifecycleRecording {
    /// Splits a scenario whose runs differed into one recording for each run.
    pub fn runs(&self) -> Vec<Self> {
        let of_run = |effects: &Vec<RecordedEffect>| {
            let recorded = Recorded { effects: effects.clone(), runs: Vec::new(), ..self.recorded.clone() };
            Self { recorded, ..self.clone() }
        };
        self.recorded.runs.iter().map(of_run).collect()
    }

    /// Slows the scenario down: multiplies every time, and so the settings, by `factor`.
    pub fn slowed_down(mut self, factor: u32) -> Self {
        let times = f64::from(factor);
        self.heartbeat_s *= times;
        self.until *= times;
        self.default_toleration_seconds *= i64::from(factor);
        for (flag, text) in &mut self.flags {
            *text = slowed_down_flag(flag, text, factor);
        }
        for pod in &mut self.pods {
            pod.slow_down(factor);
        }
        for step in &mut self.timeline {
            step.t *= times;
            step.what.slow_down(factor);
        }
        let runs = self.recorded.runs.iter_mut().flatten();
        self.recorded.effects.iter_mut().chain(runs).for_each(|seen| seen.t *= times);
        self
    }

    /// Returns the time of the first eviction, in seconds after the controllers' start. Pods that leave in the moment in
    /// which their node is tainted, because they do not tolerate the taint, do not count.
    pub fn first_eviction(&self) -> Option<f64> {
        let effects = &self.recorded.effects;
        let node_of = |pod: &str| {
            let spec = self.pods.iter().find(|spec| format!("default/{}", spec.name) == pod);
            spec.map_or("", |spec| spec.node.as_str())
        };
        let is_at_once = |deleted: &RecordedEffect| {
            let node = node_of(&deleted.pod);
            let mut taints = effects.iter().filter(|seen| seen.is_no_execute_added() && seen.node == node);
            taints.any(|taint| (0.0..self.heartbeat_s / 2.0).contains(&(deleted.t - taint.t)))
        };
        let evictions = effects.iter().filter(|seen| seen.effect == "pod-delete" && !is_at_once(seen));
        evictions.map(|seen| seen.t).min_by(f64::total_cmp)
    }

    /// Describes the differences between the engine's effects and the recorded ones; empty if they agree.
    pub fn differences(&self, ours: &[RecordedEffect]) -> Vec<String> {
        self.compare(ours, &Slack::default())
    }

    /// Like [`Self::differences`], but ignores missing effects at the times that `slack` allows.
    pub fn compare(&self, ours: &[RecordedEffect], slack: &Slack) -> Vec<String> {
        let (theirs, ours) = (Sorted::new(&self.recorded.effects), Sorted::new(ours));
        let mut differences = Vec::new();
        for key in theirs.times.keys().chain(ours.times.keys()).collect::<BTreeSet<_>>() {
            let of = |sorted: &Sorted| sorted.times.get(key).cloned().unwrap_or_default();
            let (mut theirs, mut ours) = (of(&theirs), of(&ours));
            let both = theirs.len().min(ours.len());
            for (side, edge) in [(&mut theirs, slack.recorded_until), (&mut ours, slack.ours_until)] {
                while side.len() > both && side.last().is_some_and(|last| *last > edge) {
                    side.pop();
                }
            }
            let near = |(a, b): (&f64, &f64)| (a - b).abs() <= TOLERANCE;
            if theirs.len() != ours.len() || !theirs.iter().zip(&ours).all(near) {
                differences.push(format!("{key}: recorded {theirs:.2?}, ours {ours:.2?}"));
            }
        }
        let only = |a: &Sorted, b: &Sorted, edge: f64| -> Vec<String> {
            let lacking =
                a.events.iter().filter(|(event, at)| !b.events.contains_key(*event) && **at <= edge);
            lacking.map(|(event, _)| event.clone()).collect()
        };
        let (missing, added) =
            (only(&theirs, &ours, slack.recorded_until), only(&ours, &theirs, slack.ours_until));
        differences.extend(missing.iter().map(|event| format!("event {event} is missing")));
        differences.extend(added.iter().map(|event| format!("event {event} is not recorded")));
        differences
    }

    /// Returns the nodes in the order in which they were tainted; in legacy mode, in the order in which their pods were
    /// deleted. Upstream's order is random.
    pub fn order(&self) -> Vec<NodeName> {
        self.order_in(&self.recorded.effects)
    }

    fn order_in(&self, effects: &[RecordedEffect]) -> Vec<NodeName> {
        let mut order: Vec<NodeName> = Vec::new();
        for seen in effects {
            let turn = match self.mode.as_str() {
                "legacy" => (seen.reason == "DeletingAllPods").then_some(&seen.name),
                _ => seen.is_no_execute_added().then_some(&seen.node),
            };
            let Some(node) = turn.map(|node| NodeName::from(node.as_str())) else { continue };
            if !order.contains(&node) {
                order.push(node);
            }
        }
        order
    }

    /// Renames nodes of `ours` and their pods. Among nodes that differ only in their names, the first tainted node gets
    /// the name of the first tainted node in the recording, and so on. The orders can differ: the responses to the
    /// writes of one pass arrive in any order, and each node starts to wait for its taint when the response to its own
    /// write arrives.
    pub fn rename_alike(&self, ours: &mut [RecordedEffect]) {
        let (theirs, tainted) = (self.order(), self.order_in(ours));
        let mut names = BTreeMap::new();
        let mut taken = BTreeSet::new();
        for node in &tainted {
            let role = self.role(node);
            let Some(other) = theirs.iter().find(|other| !taken.contains(other) && self.role(other) == role)
            else {
                continue;
            };
            taken.insert(other);
            names.insert(node.to_string(), other.to_string());
            let pods = |node: &NodeName| {
                let on_node = self.pods.iter().filter(move |pod| *pod.node == **node);
                on_node.map(|pod| format!("default/{}", pod.name)).collect::<Vec<_>>()
            };
            names.extend(pods(node).into_iter().zip(pods(other)));
        }
        for effect in ours {
            for name in [&mut effect.node, &mut effect.pod, &mut effect.name] {
                if let Some(other) = names.get(name) {
                    name.clone_from(other);
                }
            }
        }
    }

    /// Describes all that the scenario says about a node and its pods, without the node's name.
    fn role(&self, node: &NodeName) -> String {
        let name = &**node;
        let spec = self.nodes.iter().find(|spec| spec.name == name);
        let pods: Vec<_> = self.pods.iter().filter(|pod| pod.node == name).collect();
        let steps = self.timeline.iter().map(|step| format!("{step:?}")).filter(|step| step.contains(name));
        let steps: Vec<_> = steps.collect();
        format!("{spec:?} {pods:?} {steps:?}").replace(name, "")
    }

    /// Whether the pod garbage collector ran. Only then does a recording show the removal of objects.
    pub fn collects(&self) -> bool {
        self.settings().controllers.value.pod_gc
    }

    /// Returns the release of the recorded controllers.
    pub fn version(&self) -> ServerVersion {
        ServerVersion::parse(&self.recorded.version).expect("a version")
    }

    pub fn controllers(&self) -> &str {
        self.controllers.as_deref().unwrap_or(USUAL_CONTROLLERS)
    }

    pub fn settings(&self) -> Settings {
        let mut settings = Settings::defaults(self.version());
        for (flag, text) in &self.flags {
            settings.set(flag, text, Origin::Cluster).expect("a recorded flag");
        }
        settings.set("controllers", self.controllers(), Origin::Cluster).expect("a list");
        settings
    }
}

impl PodSpec {
    fn slow_down(&mut self, factor: u32) {
        self.grace *= i64::from(factor);
        slow_down_tolerations(&mut self.tolerations, factor);
    }
}

impl TimelineAction {
    fn slow_down(&mut self, factor: u32) {
        match self {
            Self::AddPod { pod } => pod.slow_down(factor),
            Self::Tolerations { set, .. } => slow_down_tolerations(set, factor),
            Self::DeletePod { grace, .. } => *grace = grace.map(|grace| grace * i64::from(factor)),
            Self::Silence { .. }
            | Self::Beat { .. }
            | Self::Status { .. }
            | Self::Taints { .. }
            | Self::Cordon { .. }
            | Self::Labels { .. }
            | Self::DeleteNode { .. }
            | Self::AddNode { .. } => {}
        }
    }

    /// Returns the node that the event happens to; `None` if it happens to a pod.
    pub fn node(&self) -> Option<&str> {
        match self {
            Self::Silence { node }
            | Self::Beat { node, .. }
            | Self::Status { node, .. }
            | Self::Taints { node, .. }
            | Self::Cordon { node, .. }
            | Self::Labels { node, .. }
            | Self::DeleteNode { node } => Some(node),
            Self::AddNode { node } => Some(&node.name),
            Self::AddPod { .. } | Self::DeletePod { .. } | Self::Tolerations { .. } => None,
        }
    }
}

impl NodeSpec {
    /// Returns the statuses that the node's kubelet posts, by condition type; `None` if it never posts.
    pub fn posts(&self) -> Option<BTreeMap<String, ConditionStatus>> {
        match &self.status {
            Value::String(text) if text == "none" => None,
            Value::Object(differing) => {
                let mut posts = healthy();
                for (kind, status) in differing {
                    posts.insert(kind.clone(), ConditionStatus::parse(status.as_str().expect("a status")));
                }
                Some(posts)
            }
            _ => Some(healthy()),
        }
    }
}

/// Times after which effects may be missing on one side of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Slack {
    /// Effects recorded after this second may be missing in the engine's run, which may have ended earlier.
    pub recorded_until: f64,
    /// Effects of the engine after this second may be missing in the recording.
    pub ours_until: f64,
}

impl Default for Slack {
    fn default() -> Self {
        Self { recorded_until: f64::INFINITY, ours_until: f64::INFINITY }
    }
}

impl RecordedEffect {
    /// Creates an event about an object.
    pub fn event(kind: &str, name: &str, reason: &str) -> Self {
        let (effect, kind, name, reason) = ("event".into(), kind.into(), name.into(), reason.into());
        Self { effect, kind, name, reason, ..Self::default() }
    }

    /// Sets the time of the event, in seconds after the controllers' start.
    pub fn at(self, t: f64) -> Self {
        Self { t, ..self }
    }

    /// Whether a node got a NoExecute taint.
    pub fn is_no_execute_added(&self) -> bool {
        self.effect == "taint" && self.op == "add" && self.taint == "NoExecute"
    }

    /// Whether a node lost a NoExecute taint.
    pub fn is_no_execute_removed(&self) -> bool {
        self.effect == "taint" && self.op == "remove" && self.taint == "NoExecute"
    }
}

/// The kinds of heartbeat that a kubelet sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beat {
    Both,
    Lease,
    Status,
}

impl Beat {
    pub fn parse(text: Option<&str>) -> Option<Self> {
        Some(match text? {
            "both" => Self::Both,
            "lease" => Self::Lease,
            "status" => Self::Status,
            other => panic!("unknown beat {other:?}"),
        })
    }
}

/// Returns the effects that the change of a node from `old` to `new` shows.
pub fn node_effects(old: &Node, new: &Node) -> Vec<RecordedEffect> {
    let effect = |effect: &str| RecordedEffect {
        effect: effect.into(),
        node: new.name.to_string(),
        ..RecordedEffect::default()
    };
    let mut seen = Vec::new();
    for condition in new.conditions.iter().filter(|condition| condition.status == ConditionStatus::Unknown) {
        if old.condition(&condition.kind).is_none_or(|old| old.status != ConditionStatus::Unknown) {
            let (r#type, reason) = (condition.kind.to_string(), condition.reason.to_string());
            let status = condition.status.to_string();
            seen.push(RecordedEffect { r#type, status, reason, ..effect("condition") });
        }
    }
    for (op, from, to) in [("add", old, new), ("remove", new, old)] {
        let lacks = |taint: &&Taint| !from.taints.iter().any(|other| other.is(&taint.key, taint.effect));
        for taint in to.taints.iter().filter(lacks) {
            let (key, taint) = (taint.key.to_string(), taint.effect.to_string());
            seen.push(RecordedEffect { op: op.into(), key, taint, ..effect("taint") });
        }
    }
    for (key, value) in new.labels.iter().filter(|(key, value)| old.label(key) != Some(value)) {
        let (key, value) = (key.to_string(), value.to_string());
        seen.push(RecordedEffect { key, value, ..effect("label") });
    }
    seen
}

/// Returns the effects that the change of a pod from `old` to `new` shows. `new` is `None` if the object was removed.
pub fn pod_effects(old: &Pod, new: Option<&Pod>) -> Vec<RecordedEffect> {
    let effect = |effect: &str| RecordedEffect {
        effect: effect.into(),
        pod: old.key.to_string(),
        ..RecordedEffect::default()
    };
    let mut seen = Vec::new();
    if new.is_some_and(|new| old.is_ready() && !new.is_ready()) {
        seen.push(effect("pod-not-ready"));
    }
    if let Some(reason) = new.and_then(|new| new.disruption_target.as_ref())
        && old.disruption_target.is_none()
    {
        let (r#type, reason) = ("DisruptionTarget".into(), reason.to_string());
        seen.push(RecordedEffect { r#type, reason, ..effect("pod-condition") });
    }
    if let Some(new) = new.filter(|new| new.reason != old.reason) {
        seen.push(RecordedEffect { reason: new.reason.to_string(), ..effect("pod-reason") });
    }
    if old.termination.is_none() && new.is_none_or(|new| new.termination.is_some()) {
        seen.push(effect("pod-delete"));
    }
    if new.is_none() {
        seen.push(effect("pod-gone"));
    }
    seen
}

/// Times of a run's effects, by object and change. Events are kept separately.
struct Sorted {
    times: BTreeMap<String, Vec<f64>>,
    /// Time of the first event of each object and reason.
    events: BTreeMap<String, f64>,
}

impl Sorted {
    fn new(effects: &[RecordedEffect]) -> Self {
        let mut sorted = Self { times: BTreeMap::new(), events: BTreeMap::new() };
        for seen in effects {
            if seen.effect == "event" {
                let event = format!("{}/{} {}", seen.kind, seen.name, seen.reason);
                sorted.events.entry(event).or_insert(seen.t);
            } else {
                sorted.times.entry(seen.to_string()).or_default().push(seen.t);
            }
        }
        sorted.times.values_mut().for_each(|times| times.sort_by(f64::total_cmp));
        sorted
    }
}

impl fmt::Display for RecordedEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { effect, op, node, pod, key, taint, r#type, status, reason, value, .. } = self;
        let parts = [effect, op, node, pod, key, taint, r#type, status, reason, value];
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).map(String::as_str).collect();
        f.write_str(&parts.join(" "))
    }
}

fn slow_down_tolerations(tolerations: &mut [Value], factor: u32) {
    for toleration in tolerations {
        if let Some(seconds) = toleration.get("tolerationSeconds").and_then(Value::as_i64) {
            toleration["tolerationSeconds"] = (seconds * i64::from(factor)).into();
        }
    }
}

/// Returns the value of a flag of the controllers in a scenario that is slowed down.
fn slowed_down_flag(flag: &str, text: &str, factor: u32) -> String {
    if flag.ends_with("-period") || flag.ends_with("-timeout") {
        let span = humantime::parse_duration(text).expect("a duration");
        return humantime::format_duration(span * factor).to_string();
    }
    if flag.ends_with("-eviction-rate") {
        let rate: f32 = text.parse().expect("a rate");
        return (rate / factor as f32).to_string();
    }
    text.to_owned()
}

/// Returns the statuses that a healthy kubelet posts, by condition type.
pub fn healthy() -> BTreeMap<String, ConditionStatus> {
    let pressures = ["MemoryPressure", "DiskPressure", "PIDPressure"];
    let pressures = pressures.into_iter().map(|kind| (kind.to_owned(), ConditionStatus::False));
    pressures.chain([(READY.to_owned(), ConditionStatus::True)]).collect()
}
