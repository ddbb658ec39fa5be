//! A simulated cluster on a virtual clock: kubelets that renew Leases, an active controller, and a shadow (an engine
//! that predicts the controller's writes and writes nothing).

#![allow(dead_code, reason = "each user needs a part of it")]

use std::{collections::BTreeMap, sync::Arc};

use kordon_core::{
    cluster::{
        Applied, Change, Cluster, Condition, ConditionStatus, Interner, Key, LeaderLease, Lease, Name,
        Namespace, Node, NodeName, ObjectEvent, Phase, Pod, PodReady, READY, SharedList, Taint, TaintEffect,
        Toleration, TolerationOperator, Uid, Version,
    },
    engine::{Effect, Engine, NOT_READY, Notice, Outcome, Settings, UNREACHABLE, Write},
    forecast::{Accuracy, Forecast, accuracy::Predicted, apply_write},
};
use kordon_time::{ClusterClock, ClusterTime, Span, Timestamp};

/// Interval at which a kubelet renews its Lease; the Lease's duration is four times as long.
pub const RENEWAL: Span = Span::from_secs(10);

/// Key of the taint that [`Sim::add_taint`] adds.
pub const MAINTENANCE: &str = "maintenance";

/// The simulated cluster, its controller, and the controller's shadow (an engine that only predicts).
pub struct Sim {
    pub now: Timestamp,
    /// The cluster as the shadow engine sees it: with the cluster's clock as last measured.
    pub cluster: Cluster,
    /// The actual clock of the cluster.
    clock: ClusterClock,
    /// The controller, whose effects are applied at once.
    pub controller: Option<Engine>,
    /// A paused controller, with the changes that its watches have not received yet.
    paused: Option<(Engine, Vec<Applied>)>,
    /// The shadow engine, which only predicts the controller's writes. Its own effects are not applied to the cluster.
    pub shadow: Option<Engine>,
    /// Effects of the controller, in order.
    pub done: Vec<Effect>,
    /// Effects that the shadow engine decided. They are kept here and not applied to the cluster.
    pub recorded: Vec<Effect>,
    pub notices: Vec<Notice>,
    /// Whether the shadow engine is told of changes in the cluster.
    pub shadow_sees: bool,
    /// Compares the controller's effects with the shadow engine's forecasts; see [`Sim::run_with_forecasts`].
    pub accuracy: Option<Accuracy>,
    /// The latest forecast of [`Sim::run_with_forecasts`].
    forecast: Option<Forecast>,
    kubelets: BTreeMap<NodeName, Kubelet>,
    /// Makes equal names share one allocation, as the watches do.
    names: Interner,
    /// Lists of tolerations by their seconds. Equal lists share one allocation.
    tolerations: BTreeMap<Option<i64>, SharedList<Toleration>>,
    version: u64,
}

struct Kubelet {
    /// Time of the kubelet's next Lease renewal; `None` while the kubelet is silent.
    renews: Option<Timestamp>,
}

impl Sim {
    /// Sets the cluster's clock ahead of kordon's by this much. The shadow engine learns the difference only from
    /// [`Sim::measure_clock`].
    pub fn set_clock(&mut self, ahead: Span) {
        self.clock = ClusterClock::ahead_by(ahead);
    }

    pub fn measure_clock(&mut self) {
        self.cluster.set_clock(self.clock);
    }

    /// Returns the present time as a component of the cluster writes it.
    fn written(&self) -> ClusterTime {
        self.clock.written(self.now)
    }

    /// Returns the cluster as the controller sees it: with the actual clock of the cluster.
    fn seen_by_controller(&self) -> Cluster {
        let mut cluster = self.cluster.clone();
        cluster.set_clock(self.clock);
        cluster
    }

    /// Creates an empty cluster at a fixed time.
    pub fn new() -> Self {
        Self {
            now: Timestamp::from_secs(1_767_225_600),
            cluster: Cluster::default(),
            clock: ClusterClock::default(),
            controller: None,
            paused: None,
            shadow: None,
            done: Vec::new(),
            recorded: Vec::new(),
            notices: Vec::new(),
            shadow_sees: true,
            accuracy: None,
            forecast: None,
            kubelets: BTreeMap::new(),
            names: Interner::default(),
            tolerations: BTreeMap::new(),
            version: 0,
        }
    }

    /// Adds a Ready node with a new Lease. The kubelet renews the Lease for the first time after `phase`.
    pub fn add_node(&mut self, name: &str, zone: &str, phase: Span) {
        let labels: BTreeMap<Name, Name> =
            BTreeMap::from([(self.names.name("topology.kubernetes.io/zone"), self.names.name(zone))]);
        let ready = Condition {
            kind: self.names.name(READY),
            status: ConditionStatus::True,
            reason: self.names.name("KubeletReady"),
            last_heartbeat: Some(self.written()),
            last_transition: Some(self.written()),
            ..Condition::default()
        };
        let node = Node {
            name: NodeName(self.names.name(name)),
            uid: Uid::from(name),
            version: self.next_version(),
            created: self.written(),
            labels: labels.into_iter().collect(),
            conditions: [ready].into(),
            ..Node::default()
        };
        self.tell(Change::Node(ObjectEvent::Applied(node)));
        self.renew(&name.into());
        self.kubelets.insert(name.into(), Kubelet { renews: Some(self.now + phase) });
    }

    /// Adds the NoExecute taint [`MAINTENANCE`] to a node, as an operator would.
    pub fn add_taint(&mut self, node: &str) {
        let mut changed = (**self.cluster.node(&node.into()).expect("a node of ours")).clone();
        let taint = Taint {
            key: self.names.name(MAINTENANCE),
            effect: TaintEffect::NoExecute,
            time_added: Some(self.written()),
            ..Taint::default()
        };
        changed.taints = changed.taints.iter().cloned().chain([taint]).collect();
        changed.version = self.next_version();
        self.tell(Change::Node(ObjectEvent::Applied(changed)));
    }

    /// Adds a Ready pod that tolerates the NoExecute taints of this simulation for this many seconds; `None` means
    /// forever.
    pub fn add_pod(&mut self, name: &str, node: &str, bears: Option<i64>) {
        let names = &mut self.names;
        let toleration = |key: &str| Toleration {
            key: names.name(key),
            operator: TolerationOperator::Exists,
            seconds: bears,
            ..Toleration::default()
        };
        let all = || [NOT_READY, UNREACHABLE, MAINTENANCE].map(toleration).into();
        let tolerations = self.tolerations.entry(bears).or_insert_with(all).clone();
        let key = Key { namespace: Namespace(self.names.name("default")), name: name.into() };
        let pod = Pod {
            key,
            uid: Uid::from(name),
            version: self.next_version(),
            created: self.written(),
            node: Some(NodeName(self.names.name(node))),
            tolerations,
            grace: Span::from_secs(30),
            phase: Phase::Running,
            ready: Some(PodReady { status: ConditionStatus::True, last_transition: Some(self.written()) }),
            ..Pod::default()
        };
        self.tell(Change::Pod(ObjectEvent::Applied(pod)));
    }

    pub fn start_controller(&mut self, settings: Settings, first_pass: Span) {
        let cluster = self.seen_by_controller();
        self.controller = Some(Engine::start(settings, &cluster, self.now + first_pass, self.now));
        self.drain();
    }

    /// Pauses the controller: it receives no changes and does nothing.
    pub fn pause_controller(&mut self) {
        self.paused = self.controller.take().map(|controller| (controller, Vec::new()));
    }

    /// Resumes the paused controller: its watches deliver the missed changes, and overdue timers fire.
    pub fn resume_controller(&mut self) {
        let (mut controller, missed) = self.paused.take().expect("it was paused");
        let cluster = self.seen_by_controller();
        for applied in &missed {
            controller.handle_change(&cluster, applied, self.now);
        }
        controller.handle_timeout(&cluster, self.now);
        self.controller = Some(controller);
        self.drain();
    }

    pub fn attach_shadow(&mut self, settings: Settings) {
        self.shadow = Some(Engine::attach(settings, &self.cluster, self.now));
        self.drain();
    }

    pub fn silence(&mut self, node: &str) {
        self.kubelets.get_mut(node).expect("a node of ours").renews = None;
    }

    /// Lets the kubelet of a node renew its Lease once more and then fall silent.
    pub fn fail(&mut self, node: &str) {
        self.renew(&NodeName::from(node));
        self.silence(node);
    }

    /// Brings the kubelet of a node back: it posts its status and renews its Lease.
    pub fn wake(&mut self, node: &str) {
        self.post(node, ConditionStatus::True);
    }

    /// Lets the kubelet of a node post its status, with this readiness, and renew its Lease.
    pub fn post(&mut self, node: &str, readiness: ConditionStatus) {
        let name = NodeName::from(node);
        self.kubelets.get_mut(node).expect("a node of ours").renews = Some(self.now + RENEWAL);
        let written = self.written();
        let mut changed = (**self.cluster.node(&name).expect("a node of ours")).clone();
        let mut conditions = changed.conditions.to_vec();
        for condition in &mut conditions {
            let posted = if condition.kind == *READY { readiness } else { ConditionStatus::False };
            condition.last_heartbeat = Some(written);
            if condition.status != posted {
                (condition.status, condition.last_transition) = (posted, Some(written));
            }
        }
        changed.conditions = conditions.into();
        changed.version = self.next_version();
        self.tell(Change::Node(ObjectEvent::Applied(changed)));
        self.renew(&name);
    }

    /// Writes the controller manager's Lease, renewed now.
    pub fn lead(&mut self, holder: &str, acquired: Timestamp) {
        let lease = LeaderLease {
            version: self.next_version(),
            holder: holder.into(),
            acquired: Some(self.clock.written(acquired)),
            renewed: Some(self.written()),
            duration: Some(Span::from_secs(15)),
            ..LeaderLease::default()
        };
        self.tell(Change::Leader(Some(lease)));
    }

    /// Runs the simulation for this long.
    pub fn run(&mut self, span: Span) {
        let until = self.now + span;
        loop {
            let renewal = self.kubelets.values().filter_map(|kubelet| kubelet.renews).min();
            let of =
                |engine: &Option<Engine>| engine.as_ref().and_then(Engine::poll_timeout).map(|next| next.at);
            let (controller, shadow) = (of(&self.controller), of(&self.shadow));
            let next = [renewal, controller, shadow].into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= until) else { break };
            self.now = self.now.max(next);
            if renewal == Some(next) {
                self.renew_due();
                continue;
            }
            let is_controller = controller == Some(next);
            if is_controller {
                let cluster = self.seen_by_controller();
                self.controller.as_mut().expect("it has a deadline").handle_timeout(&cluster, self.now);
            } else {
                self.shadow.as_mut().expect("it has a deadline").handle_timeout(&self.cluster, self.now);
            }
            self.drain();
            let engine = if is_controller { &self.controller } else { &self.shadow };
            let again = engine.as_ref().and_then(Engine::poll_timeout).expect("there is always a next pass");
            assert!(again.at > self.now, "woken at {}, and again for {}: {}", self.now, again.at, again.why);
        }
        self.now = until;
    }

    /// Runs the simulation, and makes a new forecast with the shadow engine every second.
    pub fn run_with_forecasts(&mut self, seconds: i64) {
        for _ in 0..seconds {
            self.run(Span::from_secs(1));
            let Self { shadow: Some(shadow), accuracy: Some(accuracy), cluster, now, .. } = self else {
                panic!("it has a shadow and its accuracy");
            };
            let forecast = Forecast::run(shadow, cluster, *now, Span::from_secs(600));
            accuracy.on_forecast(&forecast, cluster);
            self.forecast = Some(forecast);
        }
    }

    fn renew_due(&mut self) {
        let due = |kubelet: &Kubelet| kubelet.renews.is_some_and(|renews| renews <= self.now);
        let due: Vec<NodeName> =
            self.kubelets.iter().filter(|(_, kubelet)| due(kubelet)).map(|(name, _)| name.clone()).collect();
        for node in due {
            self.kubelets.get_mut(&node).expect("it is due").renews = Some(self.now + RENEWAL);
            self.renew(&node);
        }
    }

    fn renew(&mut self, node: &NodeName) {
        let lease = Lease {
            node: node.clone(),
            version: self.next_version(),
            renewed: Some(self.written()),
            duration: Some(RENEWAL * 4),
            written: None,
        };
        self.tell(Change::Lease(ObjectEvent::Applied(lease)));
    }

    fn next_version(&mut self) -> Version {
        // Versions grow in steps of 1000, to leave room for the versions of the controller's writes, which grow by one.
        self.version += 1000;
        Version(self.version)
    }

    pub fn tell(&mut self, change: Change) {
        let mut applied = Vec::new();
        self.cluster.apply(change, &mut applied);
        self.hand_over(&applied);
        self.drain();
    }

    fn hand_over(&mut self, applied: &[Applied]) {
        let seen_by_controller = self.seen_by_controller();
        if let Some((_, missed)) = &mut self.paused {
            missed.extend_from_slice(applied);
        }
        for applied in applied {
            if let Some(controller) = &mut self.controller {
                controller.handle_change(&seen_by_controller, applied, self.now);
            }
            if let Some(shadow) = self.shadow.as_mut().filter(|_| self.shadow_sees) {
                shadow.handle_change(&self.cluster, applied, self.now);
            }
            if let Some(accuracy) = &mut self.accuracy {
                let predicted = Predicted { forecast: self.forecast.as_ref(), ..Predicted::default() };
                accuracy.on_change(applied, &self.cluster, predicted, self.now);
            }
        }
    }

    fn drain(&mut self) {
        while let Some(effect) = self.controller.as_mut().and_then(Engine::poll_effect) {
            let mut applied = Vec::new();
            let measured = self.cluster.clock();
            self.cluster.set_clock(self.clock);
            apply_write(&mut self.cluster, &effect.write, self.now, &mut applied);
            self.cluster.set_clock(measured);
            self.hand_over(&applied);
            let cluster = self.seen_by_controller();
            let controller = self.controller.as_mut().expect("it has just spoken");
            controller.handle_outcome(&cluster, effect.id, Outcome::Done, self.now);
            self.done.push(Arc::unwrap_or_clone(effect));
        }
        while let Some(effect) = self.shadow.as_mut().and_then(Engine::poll_effect) {
            let shadow = self.shadow.as_mut().expect("it has just spoken");
            shadow.handle_outcome(&self.cluster, effect.id, Outcome::Recorded, self.now);
            self.recorded.push(Arc::unwrap_or_clone(effect));
        }
        while let Some(notice) = self.shadow.as_mut().and_then(Engine::poll_notice) {
            self.notices.push(notice);
        }
    }
}

/// Returns the node that an effect marks as Unknown.
pub fn marks_unknown(effect: &Effect) -> Option<&NodeName> {
    match &effect.write {
        Write::MarkUnknown { node, .. } => Some(node),
        _ => None,
    }
}
