//! Recordings of upstream's lifecycle controllers: their format, the effects that they are made of, and how they compare.

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

/// Heartbeats fall on whole seconds from this one; every fifth of them posts the status too.
pub const FIRST_BEAT: i64 = -1;
pub const STATUS_EVERY: i64 = 5;

/// How far a time may be from the recorded one, in seconds.
pub const TOLERANCE: f64 = 2.0;
/// What ran where a recording does not say so.
const USUAL_CONTROLLERS: &str = "node-lifecycle-controller,taint-eviction-controller";

/// One recording: a scenario, and what the real controllers did.
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
    /// What came of several runs of the same scenario, where they differ.
    #[serde(default)]
    pub runs: Vec<Vec<RecordedEffect>>,
}

/// A visible change that the controllers made.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct RecordedEffect {
    /// Seconds after the controllers' start.
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
    /// Absent is "both"; null is silent from the start.
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
    /// The runs of a scenario that upstream answered differently from run to run, each as a recording of its own.
    pub fn runs(&self) -> Vec<Self> {
        let of_run = |effects: &Vec<RecordedEffect>| {
            let recorded = Recorded { effects: effects.clone(), runs: Vec::new(), ..self.recorded.clone() };
            Self { recorded, ..self.clone() }
        };
        self.recorded.runs.iter().map(of_run).collect()
    }

    /// Where the engine and the recording differ, in words; nothing where they agree.
    pub fn differences(&self, ours: &[RecordedEffect]) -> Vec<String> {
        self.compare(ours, &Slack::default())
    }

    /// As [`Self::differences`], with other limits.
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

    /// The nodes in the order in which they were tainted (in legacy mode: emptied), which upstream leaves to chance.
    pub fn order(&self) -> Vec<NodeName> {
        let mut order: Vec<NodeName> = Vec::new();
        for seen in &self.recorded.effects {
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

    /// Whether the pod garbage collector ran: only then does a recording show that an object was deleted.
    pub fn collects(&self) -> bool {
        self.settings().controllers.value.pod_gc
    }

    /// The release of the controllers that were recorded.
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

impl TimelineAction {
    /// The node that it happens to; none: it happens to a pod.
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
    /// The statuses that its kubelet posts by condition type; none if it never posts.
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

/// How far two playings of a scenario may differ.
#[derive(Clone, Copy, Debug)]
pub struct Slack {
    /// What was recorded after this second may be missing: it may lie beyond the end of ours.
    pub recorded_until: f64,
    /// What we have after this second may not have been recorded.
    pub ours_until: f64,
}

impl Default for Slack {
    fn default() -> Self {
        Self { recorded_until: f64::INFINITY, ours_until: f64::INFINITY }
    }
}

impl RecordedEffect {
    /// An event about an object.
    pub fn event(kind: &str, name: &str, reason: &str) -> Self {
        let (effect, kind, name, reason) = ("event".into(), kind.into(), name.into(), reason.into());
        Self { effect, kind, name, reason, ..Self::default() }
    }

    /// The same at a time in seconds after the controllers' start.
    pub fn at(self, t: f64) -> Self {
        Self { t, ..self }
    }

    /// Whether a node was given a NoExecute taint.
    pub fn is_no_execute_added(&self) -> bool {
        self.effect == "taint" && self.op == "add" && self.taint == "NoExecute"
    }

    /// Whether a NoExecute taint of a node was removed.
    pub fn is_no_execute_removed(&self) -> bool {
        self.effect == "taint" && self.op == "remove" && self.taint == "NoExecute"
    }
}

/// Which of its heartbeats a kubelet sends.
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

/// What a watch shows of a controller's change of a node.
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

/// What a watch shows of a controller's change of a pod; none after it: its object is gone.
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

/// Effects by what identifies them, and the events apart.
struct Sorted {
    times: BTreeMap<String, Vec<f64>>,
    /// When each was first recorded.
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

/// What a kubelet in good health posts.
pub fn healthy() -> BTreeMap<String, ConditionStatus> {
    let pressures = ["MemoryPressure", "DiskPressure", "PIDPressure"];
    let pressures = pressures.into_iter().map(|kind| (kind.to_owned(), ConditionStatus::False));
    pressures.chain([(READY.to_owned(), ConditionStatus::True)]).collect()
}
