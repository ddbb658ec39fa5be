//! Replays a recorded scenario in the engine and compares its effects with those of upstream's controllers.

use std::{collections::BTreeMap, sync::Arc};

use kordon_core::{
    cluster::{
        Applied, Change, Cluster, Condition, ConditionStatus, Key, Lease, Name, Node, NodeName, ObjectEvent,
        Owner, OwnerKind, Phase, Pod, PodReady, SharedList, Taint, TaintEffect, Termination, Toleration,
        TolerationOperator, Uid, Version, WorkloadKind, ZoneKey,
    },
    engine::{self, Engine, EventObject, Outcome, Write},
    forecast::apply_write,
};
use kordon_time::{ClusterTime, Span, Timestamp};
use serde_json::Value;

use crate::common::lifecycle::{
    Beat, FIRST_BEAT, LifecycleRecording, NodeSpec, PodSpec, RecordedEffect, STATUS_EVERY, Slack, TOLERANCE,
    TimelineAction, healthy, node_effects, pod_effects,
};

impl LifecycleRecording {
    /// Plays the recorded scenario. Returns the engine's effects.
    pub fn play(&self) -> Vec<RecordedEffect> {
        self.play_with(Chance { order: Order::Fixed(self.order()), between: BTreeMap::new() })
    }

    fn play_with(&self, chance: Chance) -> Vec<RecordedEffect> {
        let mut playback = Playback::new(self);
        playback.run(self, chance);
        playback.seen.retain(|seen| seen.t <= self.until);
        playback.seen
    }

    /// Finds the random choices of upstream that explain the recorded run: for each zone, the number of nodes that were
    /// tainted before the zone's new state took effect. Waiting nodes are handled in the order of their next recorded
    /// taints.
    pub fn explanation(&self) -> Result<BTreeMap<ZoneKey, usize>, Vec<String>> {
        let zones = Playback::new(self).cluster;
        let mut most: BTreeMap<ZoneKey, usize> = BTreeMap::new();
        for node in self.order().iter().filter_map(|node| zones.node(node)) {
            *most.entry(node.zone()).or_default() += 1;
        }
        let mut least: Option<Vec<String>> = None;
        for between in numbers(&most) {
            let ours = self.play_with(Chance { order: Order::ByNextTaint, between: between.clone() });
            // The duration of the pass that found the zone disrupted is also random, and shifts all later effects.
            let edge = self.until - TOLERANCE;
            let slack = Slack { recorded_until: edge, ours_until: edge };
            let differences = self.compare(&ours, &slack);
            if differences.is_empty() {
                return Ok(between);
            }
            if least.as_ref().is_none_or(|least| differences.len() < least.len()) {
                least = Some(differences);
            }
        }
        Err(least.unwrap_or_default())
    }

    /// Returns the nodes in the order of their next recorded taints after `moment`.
    fn order_from(&self, moment: f64) -> Vec<NodeName> {
        // A real pass takes time, so an effect may be recorded up to [`LATENESS`] before the engine decides it.
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

    /// Returns the time of the first monitor pass, in seconds after the controllers' start.
    fn first_pass(&self) -> f64 {
        let registered = self.recorded.effects.iter().find(|seen| seen.reason == "RegisteredNode");
        registered.map_or(0.3, |seen| seen.t)
    }
}

/// Seconds by which an effect may appear in the recording before the engine decides it.
const LATENESS: f64 = 1.0;

/// Random choices of upstream, fixed for one playback of a scenario.
struct Chance {
    order: Order,
    between: BTreeMap<ZoneKey, usize>,
}

/// Order in which waiting nodes are handled.
enum Order {
    Fixed(Vec<NodeName>),
    /// The node that is tainted next in a recorded run comes first. The order can therefore change over time.
    ByNextTaint,
}

/// Returns every combination of one number per zone, each from zero to the zone's maximum.
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

/// State of a scenario while it is played.
struct Playback {
    cluster: Cluster,
    engine: Option<Engine>,
    kubelets: BTreeMap<NodeName, Kubelet>,
    now: Timestamp,
    version: u64,
    default_toleration: i64,
    /// Whether the pod garbage collector runs. Without it, the removal of objects is not recorded.
    collects: bool,
    seen: Vec<RecordedEffect>,
}

/// State of one kubelet.
struct Kubelet {
    /// Heartbeats that the kubelet sends; `None` while it is silent.
    beat: Option<Beat>,
    /// Statuses that the kubelet posts, by condition type; `None` if it never posts.
    posts: Option<BTreeMap<String, ConditionStatus>>,
}

/// Returns the time at this many seconds after the controllers' start.
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
            collects: recording.collects(),
            seen: Vec::new(),
        };
        for node in &recording.nodes {
            playback.add_node(node);
        }
        for pod in &recording.pods {
            playback.add_pod(pod);
        }
        // The list of DaemonSets is complete and empty, although pods may name a DaemonSet as their owner.
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
            // The heartbeat precedes other steps: a kubelet that falls silent on a whole second has sent the heartbeat
            // of that second.
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

    /// Sends the heartbeat of a whole second for every kubelet that is not silent.
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
                written: None,
            };
            self.tell(Change::Lease(ObjectEvent::Applied(lease)));
        }
        if beat != Beat::Lease && posts_status {
            self.post(node);
        }
    }

    /// Posts the status of a kubelet: its conditions, with times in whole seconds.
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
        let posts = spec.posts();
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
            kind: OwnerKind::other("Owner", "example.com"),
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

    /// Returns the given tolerations and the default ones that admission adds.
    fn tolerations(&self, given: &[Value]) -> SharedList<Toleration> {
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
        // Each write of the engine gets the next version. The steps of 1000 leave room for these writes.
        self.version += 1000;
        Version(self.version)
    }

    /// Applies a change that does not come from the engine. If the engine runs, it receives the change.
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

    /// Applies the engine's writes, and records those writes that a watch would show.
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
        let seen = RecordedEffect::event(kind, &name, event.reason).at(secs(self.now));
        self.seen.push(seen);
    }

    fn write_down(&mut self, applied: &Applied) {
        let t = secs(self.now);
        match applied {
            Applied::Node(delta) => {
                let (Some(old), Some(new)) = (&delta.old, &delta.new) else { return };
                self.seen.extend(node_effects(old, new).into_iter().map(|seen| seen.at(t)));
            }
            Applied::Pod(delta) => {
                let Some(old) = &delta.old else { return };
                let seen = pod_effects(old, delta.new.as_deref()).into_iter().map(|seen| seen.at(t));
                self.seen.extend(seen.filter(|seen| self.collects || seen.effect != "pod-gone"));
            }
            Applied::Lease(_) | Applied::Leader(..) | Applied::KordonLease | Applied::Other => {}
        }
    }
}

/// Returns the conditions of a node after its kubelet has posted its status.
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
