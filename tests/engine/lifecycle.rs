//! Replays a recorded scenario in the engine and compares its effects with those of upstream's controllers.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use kordon::{
    cluster::{
        Applied, Change, Cluster, Condition, ConditionStatus, Key, Lease, Name, Node, NodeName, ObjectEvent,
        Owner, OwnerKind, Phase, Pod, PodReady, READY, Taint, TaintEffect, Termination, Toleration,
        TolerationOperator, Uid, Version, WorkloadKind, ZoneKey,
    },
    engine::{self, Engine, EventObject, Origin, Outcome, ServerVersion, Settings, Write},
    forecast::apply_write,
    time::{ClusterTime, Span, Timestamp},
};
use serde::Deserialize;
use serde_json::Value;

/// How far a time may be from the recorded one, in seconds.
const TOLERANCE: f64 = 2.0;
/// Heartbeats fall on whole seconds from this one; every fifth of them posts the status too.
const FIRST_BEAT: i64 = -1;
const STATUS_EVERY: i64 = 5;

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
    flags: BTreeMap<String, String>,
    #[serde(default)]
    pub controllers: Option<String>,
    default_toleration_seconds: i64,
    heartbeat_s: f64,
    nodes: Vec<NodeSpec>,
    pods: Vec<PodSpec>,
    timeline: Vec<Step>,
    until: f64,
    pub recorded: Recorded,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Recorded {
    version: String,
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
    op: String,
    #[serde(default)]
    node: String,
    #[serde(default)]
    pod: String,
    #[serde(default)]
    key: String,
    #[serde(default)]
    taint: String,
    #[serde(default)]
    r#type: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    pub reason: String,
    #[serde(default)]
    value: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    name: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeSpec {
    name: String,
    #[serde(default)]
    zone: Option<String>,
    #[serde(default)]
    region: Option<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    taints: Vec<Value>,
    #[serde(default)]
    status: Value,
    /// Absent is "both"; null is silent from the start.
    #[serde(default = "both")]
    beat: Option<String>,
}

fn yes() -> bool {
    true
}

fn both() -> Option<String> {
    Some("both".into())
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PodSpec {
    name: String,
    node: String,
    #[serde(default)]
    tolerations: Vec<Value>,
    #[serde(default)]
    grace: i64,
    #[serde(default)]
    phase: Option<String>,
    #[serde(default)]
    owner: Option<Value>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Deserialize)]
struct Step {
    t: f64,
    #[serde(flatten)]
    what: TimelineAction,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
enum TimelineAction {
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
    /// What the engine does in the recorded scenario.
    pub fn play(&self) -> Vec<RecordedEffect> {
        self.play_with(Chance { order: Order::Fixed(self.order()), between: BTreeMap::new() })
    }

    fn play_with(&self, chance: Chance) -> Vec<RecordedEffect> {
        let mut playback = Playback::new(self);
        playback.run(self, chance);
        playback.seen.retain(|seen| seen.t <= self.until);
        playback.seen
    }

    /// The runs of a scenario that upstream answered differently from run to run, each as a recording of its own.
    pub fn runs(&self) -> Vec<Self> {
        let of_run = |effects: &Vec<RecordedEffect>| {
            let recorded = Recorded { effects: effects.clone(), runs: Vec::new(), ..self.recorded.clone() };
            Self { recorded, ..self.clone() }
        };
        self.recorded.runs.iter().map(of_run).collect()
    }

    /// How chance made this run what it is: how many nodes of each zone were tainted before its state took effect, the
    /// nodes that wait being handled in the order of their next taints. None if no number explains it; then the
    /// differences that the best of them leaves.
    pub fn explanation(&self) -> Result<BTreeMap<ZoneKey, usize>, Vec<String>> {
        let zones = Playback::new(self).cluster;
        let mut most: BTreeMap<ZoneKey, usize> = BTreeMap::new();
        for node in self.order().iter().filter_map(|node| zones.node(node)) {
            *most.entry(node.zone()).or_default() += 1;
        }
        let mut least: Option<Vec<String>> = None;
        for between in numbers(&most) {
            let ours = self.play_with(Chance { order: Order::ByNextTaint, between: between.clone() });
            // How long the pass took that found the zone disrupted is chance too, and moves what follows by so much.
            let differences = self.compare(&ours, self.until - TOLERANCE);
            if differences.is_empty() {
                return Ok(between);
            }
            if least.as_ref().is_none_or(|least| differences.len() < least.len()) {
                least = Some(differences);
            }
        }
        Err(least.unwrap_or_default())
    }

    /// The nodes in the order in which they are next tainted after this moment.
    fn order_from(&self, moment: f64) -> Vec<NodeName> {
        // A pass takes its time: what it decided now may show a little later, what it had decided a little earlier.
        let next = self.recorded.effects.iter().filter(|seen| seen.t > moment - LATENESS);
        let mut order: Vec<NodeName> = Vec::new();
        for seen in next.filter(|seen| seen.is_no_execute_added()) {
            let node = NodeName::from(seen.node.as_str());
            if !order.contains(&node) {
                order.push(node);
            }
        }
        order
    }

    /// Where the engine and the recording differ, in words; nothing where they agree.
    pub fn differences(&self, ours: &[RecordedEffect]) -> Vec<String> {
        self.compare(ours, f64::INFINITY)
    }

    /// As [`Self::differences`], but that one side has something after `edge` which the other has not is none: it may
    /// lie beyond the end there.
    fn compare(&self, ours: &[RecordedEffect], edge: f64) -> Vec<String> {
        let (theirs, ours) = (Sorted::new(&self.recorded.effects), Sorted::new(ours));
        let mut differences = Vec::new();
        for key in theirs.times.keys().chain(ours.times.keys()).collect::<BTreeSet<_>>() {
            let of = |sorted: &Sorted| sorted.times.get(key).cloned().unwrap_or_default();
            let (mut theirs, mut ours) = (of(&theirs), of(&ours));
            let both = theirs.len().min(ours.len());
            for side in [&mut theirs, &mut ours] {
                while side.len() > both && side.last().is_some_and(|last| *last > edge) {
                    side.pop();
                }
            }
            let near = |(a, b): (&f64, &f64)| (a - b).abs() <= TOLERANCE;
            if theirs.len() != ours.len() || !theirs.iter().zip(&ours).all(near) {
                differences.push(format!("{key}: recorded {theirs:.2?}, ours {ours:.2?}"));
            }
        }
        let only = |a: &Sorted, b: &Sorted| -> Vec<String> {
            let lacking =
                a.events.iter().filter(|(event, at)| !b.events.contains_key(*event) && **at <= edge);
            lacking.map(|(event, _)| event.clone()).collect()
        };
        differences.extend(only(&theirs, &ours).iter().map(|event| format!("event {event} is missing")));
        differences.extend(only(&ours, &theirs).iter().map(|event| format!("event {event} is not recorded")));
        differences
    }

    /// When the first pass was.
    fn first_pass(&self) -> f64 {
        let registered = self.recorded.effects.iter().find(|seen| seen.reason == "RegisteredNode");
        registered.map_or(0.3, |seen| seen.t)
    }

    /// The nodes in the order in which they were tainted (in legacy mode: emptied), which upstream leaves to chance.
    fn order(&self) -> Vec<NodeName> {
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

    fn settings(&self) -> Settings {
        let version = ServerVersion::parse(&self.recorded.version).expect("a version");
        let mut settings = Settings::defaults(version);
        for (flag, text) in &self.flags {
            settings.set(flag, text, Origin::Cluster).expect("a recorded flag");
        }
        let controllers = self.controllers.as_deref().unwrap_or(USUAL_CONTROLLERS);
        settings.set("controllers", controllers, Origin::Cluster).expect("a list");
        settings
    }
}

/// How far what a recording shows may lie before the moment at which the engine decides it.
const LATENESS: f64 = 1.0;

/// What upstream leaves to chance, for one playing of a scenario.
struct Chance {
    order: Order,
    between: BTreeMap<ZoneKey, usize>,
}

/// In which order the nodes that wait are handled.
enum Order {
    Fixed(Vec<NodeName>),
    /// As a recorded run shows, which may be another one from time to time.
    ByNextTaint,
}

/// Every choice of a number from none to all for each zone.
fn numbers(most: &BTreeMap<ZoneKey, usize>) -> Vec<BTreeMap<ZoneKey, usize>> {
    let mut all = vec![BTreeMap::new()];
    for (zone, most) in most {
        let with = |chosen: &BTreeMap<ZoneKey, usize>, number| {
            let mut chosen = chosen.clone();
            chosen.insert(zone.clone(), number);
            chosen
        };
        all = all.iter().flat_map(|chosen| (0..=*most).map(|number| with(chosen, number))).collect();
    }
    all
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

impl RecordedEffect {
    /// Whether a node was given a NoExecute taint.
    pub fn is_no_execute_added(&self) -> bool {
        self.effect == "taint" && self.op == "add" && self.taint == "NoExecute"
    }
}

/// The scenario being played.
struct Playback {
    cluster: Cluster,
    engine: Option<Engine>,
    kubelets: BTreeMap<NodeName, Kubelet>,
    now: Timestamp,
    version: u64,
    default_toleration: i64,
    /// Whether the pod garbage collector runs: only then does it see that an object was deleted.
    collects: bool,
    seen: Vec<RecordedEffect>,
}

/// What a kubelet posts, and whether it does.
struct Kubelet {
    /// None while silent.
    beat: Option<Beat>,
    /// The statuses it posts by condition type; none if it never posts.
    posts: Option<BTreeMap<String, ConditionStatus>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Beat {
    Both,
    Lease,
    Status,
}

impl Beat {
    fn parse(text: Option<&str>) -> Option<Self> {
        Some(match text? {
            "both" => Self::Both,
            "lease" => Self::Lease,
            "status" => Self::Status,
            other => panic!("unknown beat {other:?}"),
        })
    }
}

/// Scenario time, in seconds after the controllers' start.
fn at(secs: f64) -> Timestamp {
    Timestamp::from_secs(1_767_225_600) + Span::from_secs_f64(secs)
}

fn secs(time: Timestamp) -> f64 {
    time.since(at(0.0)).as_secs_f64()
}

impl Playback {
    fn new(recording: &LifecycleRecording) -> Self {
        assert!((recording.heartbeat_s - 1.0).abs() < f64::EPSILON, "heartbeats are a second apart");
        let mut playback = Self {
            cluster: Cluster::default(),
            engine: None,
            kubelets: BTreeMap::new(),
            now: at(FIRST_BEAT as f64),
            version: 0,
            default_toleration: recording.default_toleration_seconds,
            collects: recording.settings().controllers.value.pod_gc,
            seen: Vec::new(),
        };
        for node in &recording.nodes {
            playback.add_node(node);
        }
        for pod in &recording.pods {
            playback.add_pod(pod);
        }
        // There are no DaemonSets, whatever pods say of their owners.
        for event in [ObjectEvent::ListStarted, ObjectEvent::ListDone] {
            playback.tell(Change::Workload(WorkloadKind::DaemonSet, event));
        }
        playback.beats(FIRST_BEAT);
        playback
    }

    fn run(&mut self, recording: &LifecycleRecording, chance: Chance) {
        self.beats(0);
        self.now = at(0.0);
        let first_pass = at(recording.first_pass());
        let mut engine = Engine::start(recording.settings(), &self.cluster, first_pass, self.now);
        engine.set_tainted_mid_pass(chance.between);
        if let Order::Fixed(order) = &chance.order {
            engine.set_order(order.clone());
        }
        self.engine = Some(engine);
        self.drain();
        let mut steps = recording.timeline.iter().peekable();
        let mut next_beat = 1;
        loop {
            let beat = at(next_beat as f64);
            let step = steps.peek().map(|step| at(step.t));
            let timeout = self.engine.as_ref().and_then(Engine::poll_timeout).map(|deadline| deadline.at);
            let next =
                [Some(beat), step, timeout].into_iter().flatten().min().expect("there is always a beat");
            if secs(next) > recording.until {
                return;
            }
            self.now = self.now.max(next);
            // A kubelet that falls silent on a whole second has had its heartbeat of that second.
            if beat == next {
                self.beats(next_beat);
                next_beat += 1;
            } else if step == Some(next) {
                self.act(&steps.next().expect("it was peeked at").what);
            } else {
                let engine = self.engine.as_mut().expect("it runs");
                if let Order::ByNextTaint = &chance.order {
                    engine.set_order(recording.order_from(secs(self.now)));
                }
                engine.handle_timeout(&self.cluster, self.now);
                self.drain();
            }
        }
    }

    fn act(&mut self, act: &TimelineAction) {
        match act {
            TimelineAction::Silence { node } => self.kubelet(node).beat = None,
            TimelineAction::Beat { node, beat } => {
                let beat = Beat::parse(beat.as_deref());
                self.kubelet(node).beat = beat;
                self.beat(&node.as_str().into(), true);
            }
            TimelineAction::Status { node, set } => {
                let posts = self.kubelet(node).posts.get_or_insert_with(healthy);
                posts.extend(set.iter().map(|(kind, status)| (kind.clone(), ConditionStatus::parse(status))));
                self.post(&node.as_str().into());
            }
            TimelineAction::Taints { node, set } => {
                let set: Vec<Taint> = set.iter().map(taint).collect();
                self.change_node(node, |node| {
                    let kept = node
                        .taints
                        .iter()
                        .filter(|taint| taint.key.starts_with("node.kubernetes.io/"))
                        .cloned();
                    node.taints = kept.chain(set).collect();
                });
            }
            TimelineAction::Cordon { node, on } => self.change_node(node, |node| node.unschedulable = *on),
            TimelineAction::Labels { node, set } => self.change_node(node, |node| {
                let mut labels: BTreeMap<Name, Name> = node.labels.entries().iter().cloned().collect();
                for (key, value) in set {
                    match value {
                        Some(value) => labels.insert(key.as_str().into(), value.as_str().into()),
                        None => labels.remove(key.as_str()),
                    };
                }
                node.labels = labels.into_iter().collect();
            }),
            TimelineAction::DeleteNode { node } => {
                let name = NodeName::from(node.as_str());
                self.kubelets.remove(&name);
                self.tell(Change::Lease(ObjectEvent::Deleted(name.clone())));
                self.tell(Change::Node(ObjectEvent::Deleted(name)));
            }
            TimelineAction::AddNode { node } => {
                self.add_node(node);
                self.beat(&node.name.as_str().into(), true);
            }
            TimelineAction::AddPod { pod } => self.add_pod(pod),
            TimelineAction::DeletePod { pod, grace } => self.delete_pod(pod, *grace),
            TimelineAction::Tolerations { pod, set } => {
                let tolerations = self.tolerations(set);
                self.change_pod(pod, |pod| pod.tolerations = tolerations);
            }
        }
    }

    /// Every living kubelet's heartbeat at a whole second.
    fn beats(&mut self, second: i64) {
        self.now = at(second as f64);
        let posts_status = (second - FIRST_BEAT) % STATUS_EVERY == 0;
        for node in self.kubelets.keys().cloned().collect::<Vec<_>>() {
            self.beat(&node, posts_status);
        }
    }

    fn beat(&mut self, node: &NodeName, posts_status: bool) {
        let Some(beat) = self.kubelets.get(node).and_then(|kubelet| kubelet.beat) else { return };
        if beat != Beat::Status {
            let lease = Lease {
                node: node.clone(),
                version: self.next_version(),
                renewed: Some(ClusterTime::new(self.now)),
                duration: Some(Span::from_secs(4)),
            };
            self.tell(Change::Lease(ObjectEvent::Applied(lease)));
        }
        if beat != Beat::Lease && posts_status {
            self.post(node);
        }
    }

    /// Posts a kubelet's status: the conditions it knows, with the time in whole seconds.
    fn post(&mut self, node: &NodeName) {
        let Some(posts) = self.kubelets.get(node).and_then(|kubelet| kubelet.posts.clone()) else { return };
        let now = Timestamp::parse(&self.now.to_time()).expect("it was written so");
        self.change_node(node, |node| {
            node.conditions = posted(&node.conditions, &posts, ClusterTime::new(now))
        });
    }

    fn add_node(&mut self, spec: &NodeSpec) {
        let labels =
            [("topology.kubernetes.io/zone", &spec.zone), ("topology.kubernetes.io/region", &spec.region)];
        let labels = labels.into_iter().filter_map(|(key, value)| Some((key, value.as_deref()?)));
        let own = spec.labels.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let labels: BTreeMap<Name, Name> =
            labels.chain(own).map(|(key, value)| (key.into(), value.into())).collect();
        let posts = match &spec.status {
            Value::String(text) if text == "none" => None,
            Value::Object(differing) => {
                let mut posts = healthy();
                for (kind, status) in differing {
                    posts.insert(kind.clone(), ConditionStatus::parse(status.as_str().expect("a status")));
                }
                Some(posts)
            }
            _ => Some(healthy()),
        };
        let conditions =
            posts.as_ref().map(|posts| posted(&[], posts, ClusterTime::new(self.now))).unwrap_or_default();
        let node = Node {
            name: spec.name.as_str().into(),
            uid: Uid::from(spec.name.as_str()),
            version: self.next_version(),
            created: ClusterTime::new(self.now),
            labels: labels.into_iter().collect(),
            taints: spec.taints.iter().map(taint).collect(),
            conditions,
            ..Node::default()
        };
        self.kubelets.insert(node.name.clone(), Kubelet { beat: Beat::parse(spec.beat.as_deref()), posts });
        self.tell(Change::Node(ObjectEvent::Applied(node)));
    }

    fn add_pod(&mut self, spec: &PodSpec) {
        let owner = spec.owner.as_ref().map(|_| Owner {
            kind: OwnerKind::Other("Owner".into()),
            name: "owner".into(),
            uid: Uid::from("owner"),
        });
        let pod = Pod {
            key: Key::new("default", &spec.name),
            uid: Uid::from(spec.name.as_str()),
            version: self.next_version(),
            created: ClusterTime::new(self.now),
            owner: owner.map(Into::into),
            labels: spec
                .labels
                .iter()
                .map(|(key, value)| (key.as_str().into(), value.as_str().into()))
                .collect(),
            node: Some(spec.node.as_str().into()),
            tolerations: self.tolerations(&spec.tolerations),
            grace: Span::from_secs(spec.grace),
            phase: Phase::parse(spec.phase.as_deref().unwrap_or("Running")),
            ready: Some(PodReady {
                status: ConditionStatus::True,
                last_transition: Some(ClusterTime::new(self.now)),
            }),
            ..Pod::default()
        };
        self.tell(Change::Pod(ObjectEvent::Applied(pod)));
    }

    /// The given tolerations, and those that admission adds.
    fn tolerations(&self, given: &[Value]) -> Arc<[Toleration]> {
        let mut tolerations: Vec<Toleration> = given.iter().map(toleration).collect();
        for key in [engine::NOT_READY, engine::UNREACHABLE] {
            let covers = |toleration: &Toleration| {
                (toleration.key == *key || toleration.key.is_empty())
                    && toleration.effect.is_none_or(|effect| effect == TaintEffect::NoExecute)
            };
            if !tolerations.iter().any(covers) {
                tolerations.push(Toleration {
                    key: key.into(),
                    operator: TolerationOperator::Exists,
                    effect: Some(TaintEffect::NoExecute),
                    seconds: Some(self.default_toleration),
                    ..Toleration::default()
                });
            }
        }
        tolerations.into()
    }

    fn delete_pod(&mut self, name: &str, grace: Option<i64>) {
        let key = Key::new("default", name);
        let Some(pod) = self.cluster.pod(&key) else { return };
        let grace = grace.map_or(pod.grace, Span::from_secs);
        if grace == Span::ZERO {
            return self.tell(Change::Pod(ObjectEvent::Deleted(key)));
        }
        let deadline = ClusterTime::new(self.now + grace);
        self.change_pod(name, |pod| {
            pod.termination.get_or_insert_with(|| Termination { deadline, grace }.into());
        });
    }

    fn change_node(&mut self, name: &str, change: impl FnOnce(&mut Node)) {
        let Some(node) = self.cluster.node(&name.into()) else { return };
        let mut node = (**node).clone();
        change(&mut node);
        node.version = self.next_version();
        self.tell(Change::Node(ObjectEvent::Applied(node)));
    }

    fn change_pod(&mut self, name: &str, change: impl FnOnce(&mut Pod)) {
        let Some(pod) = self.cluster.pod(&Key::new("default", name)) else { return };
        let mut pod = (**pod).clone();
        change(&mut pod);
        pod.version = self.next_version();
        self.tell(Change::Pod(ObjectEvent::Applied(pod)));
    }

    fn kubelet(&mut self, node: &str) -> &mut Kubelet {
        self.kubelets.get_mut(node).expect("the scenario knows its nodes")
    }

    fn next_version(&mut self) -> Version {
        // Versions of the engine's own writes are one higher than what they change: leave room between.
        self.version += 1000;
        Version(self.version)
    }

    /// Somebody else changes the cluster: the engine sees it if it runs.
    fn tell(&mut self, change: Change) {
        let mut applied = Vec::new();
        self.cluster.apply(change, &mut applied);
        self.hand_over(&applied);
        self.drain();
    }

    fn hand_over(&mut self, applied: &[Applied]) {
        let Some(engine) = &mut self.engine else { return };
        for applied in applied {
            engine.handle_change(&self.cluster, applied, self.now);
        }
    }

    /// Applies the writes of the engine, and records those that a watch would show.
    fn drain(&mut self) {
        while let Some(effect) = self.engine.as_mut().and_then(Engine::poll_effect) {
            let mut applied = Vec::new();
            self.write_down_event(&effect.write);
            apply_write(&mut self.cluster, &effect.write, self.now, &mut applied);
            for applied in &applied {
                self.write_down(applied);
            }
            self.hand_over(&applied);
            let engine = self.engine.as_mut().expect("it runs");
            engine.handle_outcome(&self.cluster, effect.id, Outcome::Done, self.now);
        }
    }

    fn write_down_event(&mut self, write: &Write) {
        let Write::RecordEvent(event) = write else { return };
        let (kind, name) = match &event.object {
            EventObject::Node(name, _) => ("Node", name.to_string()),
            EventObject::Pod(key) => ("Pod", key.to_string()),
        };
        let seen =
            RecordedEffect { kind: kind.into(), name, reason: event.reason.into(), ..self.effect("event") };
        self.seen.push(seen);
    }

    fn write_down(&mut self, applied: &Applied) {
        match applied {
            Applied::Node(delta) => {
                let (Some(old), Some(new)) = (&delta.old, &delta.new) else { return };
                self.write_down_node(old, new);
            }
            Applied::Pod(delta) => {
                let Some(old) = &delta.old else { return };
                self.write_down_pod(old, delta.new.as_deref());
            }
            Applied::Lease(_) | Applied::Leader(..) | Applied::Other => {}
        }
    }

    fn write_down_node(&mut self, old: &Node, new: &Node) {
        let node = || new.name.to_string();
        for condition in
            new.conditions.iter().filter(|condition| condition.status == ConditionStatus::Unknown)
        {
            if old.condition(&condition.kind).is_none_or(|old| old.status != ConditionStatus::Unknown) {
                let (r#type, reason) = (condition.kind.to_string(), condition.reason.to_string());
                let status = condition.status.to_string();
                let seen =
                    RecordedEffect { node: node(), r#type, status, reason, ..self.effect("condition") };
                self.seen.push(seen);
            }
        }
        for (op, from, to) in [("add", old, new), ("remove", new, old)] {
            for taint in
                to.taints.iter().filter(|taint| !from.taints.iter().any(|a| a.is(&taint.key, taint.effect)))
            {
                let (key, effect) = (taint.key.to_string(), taint.effect.to_string());
                let seen = RecordedEffect {
                    op: op.into(),
                    node: node(),
                    key,
                    taint: effect,
                    ..self.effect("taint")
                };
                self.seen.push(seen);
            }
        }
        for (key, value) in new.labels.iter().filter(|(key, value)| old.label(key) != Some(value)) {
            let (key, value) = (key.to_string(), value.to_string());
            let seen = RecordedEffect { node: node(), key, value, ..self.effect("label") };
            self.seen.push(seen);
        }
    }

    fn write_down_pod(&mut self, old: &Pod, new: Option<&Pod>) {
        let pod = || old.key.to_string();
        if new.is_some_and(|new| old.is_ready() && !new.is_ready()) {
            let seen = RecordedEffect { pod: pod(), ..self.effect("pod-not-ready") };
            self.seen.push(seen);
        }
        if let Some(reason) = new.and_then(|new| new.disruption_target.as_ref())
            && old.disruption_target.is_none()
        {
            let (r#type, reason) = ("DisruptionTarget".into(), reason.to_string());
            let seen = RecordedEffect { pod: pod(), r#type, reason, ..self.effect("pod-condition") };
            self.seen.push(seen);
        }
        if let Some(new) = new.filter(|new| new.reason != old.reason) {
            let seen =
                RecordedEffect { pod: pod(), reason: new.reason.to_string(), ..self.effect("pod-reason") };
            self.seen.push(seen);
        }
        if old.termination.is_none() && new.is_none_or(|new| new.termination.is_some()) {
            let seen = RecordedEffect { pod: pod(), ..self.effect("pod-delete") };
            self.seen.push(seen);
        }
        if self.collects && new.is_none() {
            let seen = RecordedEffect { pod: pod(), ..self.effect("pod-gone") };
            self.seen.push(seen);
        }
    }

    fn effect(&self, effect: &str) -> RecordedEffect {
        RecordedEffect { t: secs(self.now), effect: effect.into(), ..RecordedEffect::default() }
    }
}

/// What a kubelet in good health posts.
fn healthy() -> BTreeMap<String, ConditionStatus> {
    let pressures = ["MemoryPressure", "DiskPressure", "PIDPressure"];
    let pressures = pressures.into_iter().map(|kind| (kind.to_owned(), ConditionStatus::False));
    pressures.chain([(READY.to_owned(), ConditionStatus::True)]).collect()
}

/// A node's conditions after a kubelet posted.
fn posted(
    before: &[Condition],
    posts: &BTreeMap<String, ConditionStatus>,
    now: ClusterTime,
) -> Arc<[Condition]> {
    let of_kind = |kind: &str| before.iter().find(|condition| condition.kind == *kind);
    let post = |(kind, status): (&String, &ConditionStatus)| {
        let before = of_kind(kind).filter(|before| before.status == *status);
        Condition {
            kind: kind.as_str().into(),
            status: *status,
            reason: format!("Kubelet{kind}").into(),
            last_heartbeat: Some(now),
            last_transition: before.map_or(Some(now), |before| before.last_transition),
            ..Condition::default()
        }
    };
    let kept = before.iter().filter(|condition| !posts.contains_key(condition.kind.as_str())).cloned();
    kept.chain(posts.iter().map(post)).collect()
}

fn text(value: &Value, field: &str) -> Name {
    value.get(field).and_then(Value::as_str).unwrap_or_default().into()
}

fn taint(value: &Value) -> Taint {
    Taint {
        key: text(value, "key"),
        value: text(value, "value"),
        effect: TaintEffect::parse(&text(value, "effect")),
        time_added: None,
    }
}

fn toleration(value: &Value) -> Toleration {
    let effect = text(value, "effect");
    Toleration {
        key: text(value, "key"),
        operator: TolerationOperator::parse(&text(value, "operator")),
        value: text(value, "value"),
        effect: (!effect.is_empty()).then(|| TaintEffect::parse(&effect)),
        seconds: value.get("tolerationSeconds").and_then(Value::as_i64),
    }
}
