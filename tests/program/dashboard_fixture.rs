//! A small cluster that is simulated second by second, and the app that watches it: the source of the states on the
//! screens.

#![allow(dead_code, reason = "each test program uses another part")]

use std::{collections::BTreeMap, sync::Arc};

use crossterm::event::KeyEvent;
use kordon::{
    app::{
        App, AppOptions,
        chord::Chord,
        dialog::{Dialog, DialogPrompt},
        operations::{Job, JobResult},
        preview::ReadNodes,
    },
    journal::JournaledOperation,
    k8s::feed::{FeedEvent, FeedHealth, FeedKind, FeedState},
    model::{ConnectionInfo, ControllerRole, HORIZON, Model, ModelOptions},
};
use kordon_core::{
    cluster::{
        Budget, Change, Cluster, Condition, ConditionStatus, ContainerExit, CordonNote, DrainClaim,
        DrainedNote, IntOrPercent, Key, Labels, LeaderLease, Lease, LocalVolume, Name, Node, NodeName,
        ObjectEvent, Owner, OwnerKind, Phase, Pod, PodEnding, PodReady, PodUnscheduled, Quota, QuotaCount,
        QuotaLimit, Requests, Requirement, Resources, SchedulingSpec, Selector, SelectorOperator, Taint,
        TaintEffect, Termination, Toleration, TolerationOperator, Uid, Version, Workload, WorkloadKind,
        WorkloadStage, claim,
    },
    engine::{Outcome, ServerVersion, Settings, Write},
    forecast::{Forecast, apply_write},
    operation::{
        self, RequestKind,
        approval::{Checks, StartRequest, Started},
    },
    plan::{EvictionRules, PlanStep, budget},
};
use kordon_time::{ClusterTime, Span, Timestamp};
use serde_json::{Value, json};

/// Time at which every simulation starts: 2026-01-02 03:00:00 UTC.
pub const START: Timestamp = Timestamp::from_secs(1_767_322_800);

/// The actual cluster, and the app that shows it.
pub struct DashboardFixture {
    pub app: App,
    pub now: Timestamp,
    pub world: Cluster,
    version: u64,
    /// Whether the controller manager renews its Lease.
    pub led: bool,
    /// Nodes whose kubelets renew their Leases. A kubelet renews every ten seconds; the value is its offset in seconds.
    alive: BTreeMap<NodeName, i64>,
    /// The configured guard rails, and the permissions that the user lacks.
    pub checks: Checks,
    /// Why complete Node objects cannot be read; `None` if they can be read.
    pub unreadable: Option<String>,
    /// The operation in the journal on disk.
    pub past: Option<JournaledOperation>,
    /// Kinds whose watches are not live, with the state of each watch.
    withheld: BTreeMap<FeedKind, Withheld>,
    /// The cluster's controller, which knows the whole cluster; `None` if the app's engine acts as the controller.
    controller: Option<Model>,
    /// Whether the watches have listed the cluster.
    listed: bool,
}

/// State of a watch that is not live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withheld {
    /// Listing is forbidden.
    Forbidden,
    /// The kind is not watched.
    Off,
    /// The first list is in progress: one of two objects has arrived.
    Late,
    /// The watch broke after the first list.
    Stale,
}

impl DashboardFixture {
    /// Creates a fixture whose watches have not reported anything yet.
    pub fn new() -> Self {
        let themes = kordon::app::ThemeChoice::bundled();
        let app = App::new(Self::model(), AppOptions { themes, ..AppOptions::default() });
        Self {
            app,
            now: START,
            world: Cluster::default(),
            version: 1000,
            led: true,
            alive: BTreeMap::new(),
            checks: Checks::default(),
            unreadable: None,
            past: None,
            withheld: BTreeMap::new(),
            controller: None,
            listed: false,
        }
    }

    fn model() -> Model {
        let options = ModelOptions {
            connection: ConnectionInfo {
                context: "prod-eu".into(),
                server: "https://10.20.0.1:6443".into(),
                identity: Some("sre@example.com".into()),
                server_version: Some("v1.36.3".into()),
                objects_at: None,
            },
            settings: Settings::defaults(ServerVersion::new(1, 36)),
            role: ControllerRole::Shadow,
        };
        Model::new(options, START)
    }

    /// Adds a controller to the cluster. The controller knows everything, including what is withheld from the app.
    pub fn with_controller(mut self) -> Self {
        self.controller = Some(Self::model());
        self
    }

    /// Withholds kinds from the app. Has to be called before [`Self::lists`].
    pub fn withhold(&mut self, kinds: impl IntoIterator<Item = (FeedKind, Withheld)>) {
        self.withheld.extend(kinds);
    }

    /// Stops withholding a kind, and reports its objects.
    pub fn arrives(&mut self, kind: FeedKind) {
        self.withheld.remove(&kind);
        self.lists();
    }

    /// Breaks the watches of the kinds whose data becomes stale. The app does not receive later changes of these kinds.
    pub fn break_watches(&mut self) {
        let broken = self.withheld.iter().filter(|(_, withheld)| **withheld == Withheld::Stale);
        for kind in broken.map(|(kind, _)| *kind).collect::<Vec<_>>() {
            self.health(kind, FeedState::Broken { since: self.now, error: "reset".into() });
        }
    }

    /// Whether the watch of the change's kind reports this change.
    fn is_reported(&self, change: &Change) -> bool {
        let (kind, place) = match change {
            Change::Node(event) => (FeedKind::Nodes, place(event, |node| node.name.to_string())),
            Change::Lease(event) => (FeedKind::Leases, place(event, |lease| lease.node.to_string())),
            Change::Pod(event) => (FeedKind::Pods, place(event, |pod| pod.key.to_string())),
            Change::Workload(kind, event) => {
                (FeedKind::Workloads(*kind), place(event, |workload| workload.key.to_string()))
            }
            Change::Leader(_) => (FeedKind::Leader, Some(0)),
            _ => return true,
        };
        let is_broken = matches!(self.app.model.feeds.state(kind), Some(FeedState::Broken { .. }));
        match self.withheld.get(&kind) {
            None => true,
            Some(Withheld::Forbidden | Withheld::Off) => false,
            Some(Withheld::Late) => place.is_some_and(|place| place % 2 == 0),
            Some(Withheld::Stale) => !is_broken,
        }
    }

    /// The cluster of most tests: three zones of ten nodes with workloads, healthy for a minute.
    pub fn well() -> Self {
        let mut fixture = Self::new();
        for zone in ["a", "b", "c"] {
            for number in 1..=10 {
                fixture.add_node(&format!("pool-{zone}-{number:02}"), zone);
            }
        }
        for number in 0..30 {
            let zone = ["a", "b", "c"][number % 3];
            let node = format!("pool-{zone}-{:02}", number / 3 + 1);
            fixture.add_workloads(&node, number);
        }
        fixture.add_owners();
        fixture.lists();
        fixture.run(60);
        fixture
    }

    /// An incident: four nodes of zone a fall silent one after another, a kubelet of zone b reports that it is not
    /// ready, and an operator works on a node of zone c.
    pub fn incident() -> Self {
        let mut fixture = Self::well();
        fixture.change_node("pool-c-04", |node| {
            node.unschedulable = true;
            node.taints = [taint("node.kubernetes.io/unschedulable", TaintEffect::NoSchedule, None)].into();
        });
        fixture.change_node("pool-b-07", |node| {
            set_condition(node, "MemoryPressure", ConditionStatus::True, START)
        });
        fixture.terminate("shop/cart-29-x7f2q", &["storage.example.com/detach"]);
        fixture.silence("pool-a-03");
        fixture.run(9);
        fixture.silence("pool-a-05");
        fixture.run(14);
        fixture.silence("pool-a-08");
        let now = fixture.now;
        fixture.change_node("pool-b-02", |node| {
            set_condition(node, "Ready", ConditionStatus::False, now);
            let ready =
                node.conditions.iter().position(|condition| condition.kind == *"Ready").expect("it has one");
            let mut conditions = node.conditions.to_vec();
            conditions[ready].reason = "KubeletNotReady".into();
            conditions[ready].message = "container runtime is down".into();
            node.conditions = conditions.into();
        });
        fixture.run(45);
        fixture.silence("pool-c-09");
        fixture.run(33);
        fixture
    }

    /// Maintenance of pool-a-01 is about to begin. Its pods have every difficulty: two pods that a budget releases one
    /// by one, a pod that its budget always blocks, a pod that no controller recreates, and a pod with data in an
    /// emptyDir.
    pub fn maintenance() -> Self {
        let mut fixture = Self::well();
        for (name, node) in [
            ("checkout-5kd8x", "pool-a-01"),
            ("checkout-9vbnm", "pool-a-01"),
            ("checkout-t4w2c", "pool-b-01"),
        ] {
            fixture.add_pod(&format!("shop/{name}"), node, WorkloadKind::ReplicaSet, Vec::new(), 300, 256);
            fixture.change_pod(&format!("shop/{name}"), |pod| pod.labels = labels("checkout"));
        }
        for number in 0..10 {
            fixture.change_pod(&format!("data/postgres-{number}"), |pod| pod.labels = labels("postgres"));
        }
        fixture.change_pod("shop/cart-00-x7f2q", |pod| pod.storage.add(LocalVolume::EmptyDir));
        fixture.add_pod("shop/debug-0", "pool-a-01", WorkloadKind::Job, Vec::new(), 100, 64);
        fixture.change_pod("shop/debug-0", |pod| pod.owner = None);
        for kind in WorkloadKind::ALL {
            fixture.list(|event| Change::Workload(kind, event));
        }
        fixture.list(Change::Namespace);
        fixture.list(Change::Service);
        fixture.list(Change::Claim);
        fixture.list(Change::Volume);
        fixture.list(Change::StorageClass);
        fixture.list(Change::CsiNode);
        fixture.list(Change::CsiDriver);
        fixture.list(Change::Quota);
        fixture.list(Change::Budget);
        fixture.put(Change::Pod(ObjectEvent::ListDone));
        fixture.add_owners();
        fixture.add_budget("shop/checkout", 2);
        fixture.add_budget("data/postgres", 10);
        fixture.run(1);
        fixture
    }

    /// Adds three pods to a node: huge-0, which fits on no other node, store-0 of a StatefulSet, and bare-0, which no
    /// controller recreates.
    pub fn fill(&mut self, node: &str) {
        for (stem, kind) in [
            ("huge", WorkloadKind::ReplicaSet),
            ("store", WorkloadKind::StatefulSet),
            ("bare", WorkloadKind::ReplicaSet),
        ] {
            self.add_pod(&format!("default/{stem}-0"), node, kind, default_tolerations(), 100, 64);
            self.add_owner(kind, stem);
        }
        self.change_pod("default/bare-0", |pod| pod.owner = None);
        self.change_pod("default/huge-0", |pod| {
            let requests = Requests { cpu_milli: 9000, ..Requests::default() };
            pod.resources = Arc::new(requests.into());
        });
    }

    /// Adds three pods that wait for a node: huge-1 is larger than any node, picky-1 needs a zone that does not exist,
    /// and the scheduler has not seen new-1.
    pub fn add_waiting_pods(&mut self) {
        let message = "0/30 nodes are available: 30 Insufficient cpu. preemption: 0/30 nodes are available: 30 No \
                       preemption victims found for incoming pod.";
        let unscheduled = |message: &str| {
            let since = Some(ClusterTime::new(START + Span::from_secs(20)));
            Some(Arc::new(PodUnscheduled { reason: "Unschedulable".into(), message: message.into(), since }))
        };
        let now = ClusterTime::new(self.now);
        for name in ["huge-1", "picky-1", "new-1"] {
            self.add_pod(&format!("shop/{name}"), "", WorkloadKind::ReplicaSet, Vec::new(), 100, 64);
            self.change_pod(&format!("shop/{name}"), |pod| {
                (pod.node, pod.phase, pod.ready, pod.created) = (None, Phase::Pending, None, now);
            });
        }
        self.change_pod("shop/huge-1", |pod| {
            let requests = Requests { cpu_milli: 9000, ..Requests::default() };
            pod.resources = Arc::new(requests.into());
            pod.unscheduled = unscheduled(message);
        });
        self.change_pod("shop/picky-1", |pod| {
            let node_selector = [("topology.kubernetes.io/zone".into(), "z".into())].into();
            pod.scheduling = Arc::new(SchedulingSpec { node_selector, ..SchedulingSpec::default() });
            pod.unscheduled = unscheduled(
                "0/30 nodes are available: 30 node(s) didn't match Pod's node affinity/selector.",
            );
        });
        self.run(1);
    }

    /// Adds the owners of all pods. Each owner has as many replicas as it has pods.
    fn add_owners(&mut self) {
        let pods: Vec<Arc<Pod>> = self.world.pods().iter().cloned().collect();
        for pod in &pods {
            if let Some(Owner { kind: OwnerKind::Workload(kind), name, uid }) = pod.owner.as_deref() {
                let siblings = pods.iter().filter(|other| other.owner == pod.owner).count();
                let workload = Workload {
                    kind: *kind,
                    key: Key { namespace: pod.key.namespace.clone(), name: name.clone() },
                    uid: uid.clone(),
                    version: self.next_version(),
                    replicas: Some(siblings as i32),
                    selector: None,
                    owner: None,
                    replaces_only_failed: false,
                    is_recreated: false,
                    reboot_locks: Vec::new(),
                    stateful: None,
                    job: None,
                    template: None,
                    stage: WorkloadStage::Active,
                };
                self.put(Change::Workload(*kind, ObjectEvent::Applied(workload)));
            }
        }
    }

    fn list<T: kordon_core::cluster::TableObject>(&mut self, of: impl Fn(ObjectEvent<T>) -> Change) {
        self.put(of(ObjectEvent::ListStarted));
        self.put(of(ObjectEvent::ListDone));
    }

    /// Adds an owner without a number of replicas. `name` is the name of the owner in the pods that [`Self::add_pod`]
    /// has added.
    pub fn add_owner(&mut self, kind: WorkloadKind, name: &str) {
        let workload = Workload {
            kind,
            key: Key::new("default", name),
            uid: Uid::from(name),
            version: self.next_version(),
            replicas: None,
            selector: None,
            owner: None,
            replaces_only_failed: false,
            is_recreated: false,
            reboot_locks: Vec::new(),
            stateful: None,
            job: None,
            template: None,
            stage: WorkloadStage::Active,
        };
        self.put(Change::Workload(kind, ObjectEvent::Applied(workload)));
    }

    /// Adds a budget that selects the pods labelled with its name, and the status that the disruption controller would
    /// write.
    fn add_budget(&mut self, key: &str, min_available: i32) {
        let (namespace, name) = key.split_once('/').expect("namespace/name");
        let app = Requirement { key: "app".into(), operator: SelectorOperator::In(vec![name.into()]) };
        let mut budget = Budget {
            key: Key::new(namespace, name),
            uid: format!("uid-{key}").as_str().into(),
            version: self.next_version(),
            generation: 1,
            selector: Some(Selector { requirements: vec![app] }),
            min_available: Some(IntOrPercent::Int(min_available)),
            ..Budget::default()
        };
        let rules = EvictionRules::for_version(ServerVersion::new(1, 36));
        budget.status = budget::synced_status(&self.app.model.cluster, &budget, &rules, self.now);
        self.put(Change::Budget(ObjectEvent::Applied(budget)));
    }

    pub fn change_pod(&mut self, key: &str, change: impl FnOnce(&mut Pod)) {
        let (namespace, name) = key.split_once('/').expect("namespace/name");
        let mut pod = (**self.world.pod(&Key::new(namespace, name)).expect("a pod of the story")).clone();
        pod.version = self.next_version();
        change(&mut pod);
        self.put(Change::Pod(ObjectEvent::Applied(pod)));
    }

    pub fn add_node(&mut self, name: &str, zone: &str) {
        let labels = BTreeMap::from([
            ("topology.kubernetes.io/region".into(), "eu-1".into()),
            ("topology.kubernetes.io/zone".into(), Name::from(zone)),
            ("node-role.kubernetes.io/worker".into(), "".into()),
            ("node.kubernetes.io/instance-type".into(), "m7i.2xlarge".into()),
        ]);
        let number = self.alive.len();
        let created = ClusterTime::new(START - Span::from_secs(86_400 * 41 + 3600 * number as i64));
        let condition = |kind: &str, status, reason: &str| Condition {
            kind: kind.into(),
            status,
            reason: reason.into(),
            message: "".into(),
            last_heartbeat: Some(ClusterTime::new(START - Span::from_secs(20))),
            last_transition: Some(created + Span::from_secs(40)),
        };
        let node = Node {
            name: name.into(),
            uid: format!("uid-{name}").as_str().into(),
            version: self.next_version(),
            created,
            labels: labels.into_iter().collect(),
            conditions: [
                condition("MemoryPressure", ConditionStatus::False, "KubeletHasSufficientMemory"),
                condition("DiskPressure", ConditionStatus::False, "KubeletHasNoDiskPressure"),
                condition("PIDPressure", ConditionStatus::False, "KubeletHasSufficientPID"),
                condition("Ready", ConditionStatus::True, "KubeletReady"),
            ]
            .into(),
            allocatable: Resources { cpu_milli: 7910, memory_bytes: 29 << 30, pods: 110 },
            address: format!("10.20.{}.{}", number / 10 + 1, number % 10 + 10).into(),
            kubelet_version: "v1.36.3".into(),
            kernel_version: "6.12.30".into(),
            annotations: Some(Labels::default()),
            ..Node::default()
        };
        self.alive.insert(node.name.clone(), number as i64 * 7 % 10);
        self.put(Change::Node(ObjectEvent::Applied(node)));
        self.renew(&name.into(), Span::ZERO);
    }

    fn add_workloads(&mut self, node: &str, number: usize) {
        let default = default_tolerations;
        let ever = || vec![tolerates("", None)];
        self.add_pod(
            &format!("kube-system/proxy-{number:02}-k9x"),
            node,
            WorkloadKind::DaemonSet,
            ever(),
            100,
            64,
        );
        self.add_pod(
            &format!("shop/cart-{number:02}-x7f2q"),
            node,
            WorkloadKind::ReplicaSet,
            default(),
            250,
            512,
        );
        self.add_pod(
            &format!("shop/web-{number:02}-h4wzd"),
            node,
            WorkloadKind::ReplicaSet,
            default(),
            500,
            1024,
        );
        if number.is_multiple_of(2) {
            let quick = vec![
                tolerates("node.kubernetes.io/unreachable", Some(30)),
                tolerates("node.kubernetes.io/not-ready", Some(30)),
            ];
            self.add_pod(
                &format!("edge/gateway-{number:02}-p2m8c"),
                node,
                WorkloadKind::ReplicaSet,
                quick,
                1000,
                768,
            );
        }
        if number.is_multiple_of(3) {
            self.add_pod(
                &format!("data/postgres-{}", number / 3),
                node,
                WorkloadKind::StatefulSet,
                default(),
                2000,
                8192,
            );
        }
        if number.is_multiple_of(5) {
            self.add_pod(
                &format!("batch/report-{number:02}-7qk"),
                node,
                WorkloadKind::Job,
                Vec::new(),
                1500,
                2048,
            );
        }
    }

    pub fn add_pod(
        &mut self,
        key: &str,
        node: &str,
        owner: WorkloadKind,
        tolerations: Vec<Toleration>,
        cpu_milli: i64,
        mebibytes: i64,
    ) {
        let (namespace, name) = key.split_once('/').expect("namespace/name");
        let stem = name.rsplit_once('-').map_or(name, |(stem, _)| stem);
        let pod = Pod {
            key: Key::new(namespace, name),
            uid: format!("uid-{key}").as_str().into(),
            version: self.next_version(),
            created: ClusterTime::new(
                START - Span::from_secs(86_400 * 3 + 77 * self.version as i64 % 90_000),
            ),
            owner: Some(
                Owner { kind: OwnerKind::Workload(owner), name: stem.into(), uid: Uid::from(stem) }.into(),
            ),
            node: Some(node.into()),
            tolerations: tolerations.into(),
            resources: Arc::new(
                Requests { cpu_milli, memory_bytes: mebibytes << 20, ..Requests::default() }.into(),
            ),
            grace: Span::from_secs(30),
            phase: Phase::Running,
            ready: Some(PodReady {
                status: ConditionStatus::True,
                last_transition: Some(ClusterTime::new(START)),
            }),
            ..Pod::default()
        };
        self.put(Change::Pod(ObjectEvent::Applied(pod)));
    }

    /// Adds a quota to a namespace. `hard` is its limit of pods, and `used` is the number of pods in its status.
    pub fn add_quota(&mut self, namespace: &str, hard: i64, used: i64) {
        let counts = QuotaCount::for_resource("pods").expect("pods use it");
        let limits = [QuotaLimit { resource: "pods".into(), counts, hard, used }].into();
        let version = self.next_version();
        let quota = Quota { key: Key::new(namespace, "few-pods"), version, scopes: [].into(), limits };
        self.put(Change::Quota(ObjectEvent::Applied(quota)));
    }

    /// Reports the whole cluster to the app, as the first lists do. Then reports that all watches are live.
    pub fn lists(&mut self) {
        fn list<T: kordon_core::cluster::TableObject + PartialEq + Clone>(
            table: &kordon_core::cluster::Table<T>,
            change: fn(ObjectEvent<T>) -> Change,
        ) -> Vec<Change> {
            let listed = table.iter().map(|object| change(ObjectEvent::Listed((**object).clone())));
            [change(ObjectEvent::ListStarted)]
                .into_iter()
                .chain(listed)
                .chain([change(ObjectEvent::ListDone)])
                .collect()
        }
        self.tell(list(self.world.nodes(), Change::Node));
        self.tell(list(self.world.leases(), Change::Lease));
        self.lead();
        for kind in FeedKind::ALL {
            let state = match self.withheld.get(&kind) {
                None | Some(Withheld::Stale) => FeedState::Live,
                Some(Withheld::Forbidden) => FeedState::Forbidden { error: "forbidden".into() },
                Some(Withheld::Off) => FeedState::Off,
                Some(Withheld::Late) => FeedState::Listing { received: 1, expected: None },
            };
            self.health(kind, state);
            let live =
                FeedHealth { state: FeedState::Live, last_heard: None, relists: 0, requests: 0, bytes: 0 };
            if let Some(controller) = &mut self.controller {
                controller.on_watch_event(FeedEvent::Health(kind, live), self.now);
            }
        }
        self.tell(list(self.world.pods(), Change::Pod));
        for kind in WorkloadKind::ALL {
            let workloads = self.world.workloads(kind).iter();
            let change =
                |workload: &Arc<Workload>| Change::Workload(kind, ObjectEvent::Applied((**workload).clone()));
            self.tell(workloads.map(change).collect());
        }
        self.listed = true;
        self.app.refresh(self.now);
    }

    /// Renews the Lease of the controller manager.
    fn lead(&mut self) {
        let lease = LeaderLease {
            version: self.next_version(),
            holder: "control-plane-2_5b0f7c1e".into(),
            acquired: Some(ClusterTime::new(START - Span::from_secs(86_400 * 4 + 7300))),
            renewed: Some(ClusterTime::new(self.now)),
            duration: Some(Span::from_secs(15)),
            ..LeaderLease::default()
        };
        self.tell(vec![Change::Leader(Some(lease))]);
    }

    /// Simulates this many seconds: kubelets renew their Leases, the controller acts as the engine decides, and the app
    /// receives the changes.
    pub fn run(&mut self, seconds: i64) {
        for _ in 0..seconds {
            let end = self.now + Span::from_secs(1);
            self.act_until(end);
            self.now = end;
            let second = end.since(START).as_secs();
            let renewing: Vec<NodeName> = self
                .alive
                .iter()
                .filter(|(_, phase)| second % 10 == **phase)
                .map(|(node, _)| node.clone())
                .collect();
            for node in renewing {
                self.renew(&node, Span::from_millis(120));
            }
            if second % 2 == 0 && self.led && self.listed {
                self.lead();
            }
            self.hear_all();
        }
        self.run_forecast();
    }

    /// Lets seconds pass in which the app receives no changes.
    pub fn run_blind(&mut self, seconds: i64) {
        let end = self.now + Span::from_secs(seconds);
        self.act_until(end);
        self.now = end;
        self.run_forecast();
    }

    fn act_until(&mut self, end: Timestamp) {
        loop {
            while let Some(effect) = self.app.model.effects.take_next() {
                let at = self.now;
                self.app.model.on_outcome(effect.id, Outcome::Recorded, at);
                if self.controller.is_none() {
                    self.write(&effect.write);
                }
            }
            while let Some(effect) = self.controller.as_mut().and_then(|model| model.effects.take_next()) {
                let controller = self.controller.as_mut().expect("it has an effect");
                controller.on_outcome(effect.id, Outcome::Recorded, self.now);
                self.write(&effect.write);
            }
            let of_controller = self.controller.as_ref().and_then(Model::poll_timeout);
            let next = self.app.poll_timeout().into_iter().chain(of_controller).min();
            let Some(at) = next.filter(|at| *at <= end) else { return };
            self.now = self.now.max(at);
            self.app.on_timeout(self.now);
            if let Some(controller) = &mut self.controller {
                controller.on_timeout(self.now);
            }
        }
    }

    fn write(&mut self, write: &Write) {
        apply_write(&mut self.world, write, self.now, &mut Vec::new());
        let change = match write {
            Write::MarkUnknown { node, .. }
            | Write::SwapTaints { node, .. }
            | Write::SetLabels { node, .. } => {
                self.world.node(node).map(|node| Change::Node(ObjectEvent::Applied((**node).clone())))
            }
            Write::MarkPodNotReady { pod, .. }
            | Write::MarkPodLost { pod, .. }
            | Write::DeletePod { pod, .. } => {
                self.world.pod(pod).map(|pod| Change::Pod(ObjectEvent::Applied((**pod).clone())))
            }
            Write::RecordEvent(_) => None,
        };
        self.tell(change.into_iter().collect());
    }

    fn run_forecast(&mut self) {
        self.app.refresh(self.now);
        if let Some(engine) = self.app.model.engine.as_ref().filter(|_| self.app.model.is_abnormal()) {
            let cluster = &self.app.model.cluster;
            let forecast =
                |horizon| Forecast::run(engine, cluster, self.now, horizon).with_chart(engine, cluster);
            let horizon = self.app.screen.forecast.horizon.span();
            let (forecast, outlook) = (forecast(HORIZON), forecast(horizon));
            self.app.model.set_forecast(forecast);
            self.app.model.predictions.set_outlook(outlook);
        }
        self.app.refresh(self.now);
        self.plan();
        self.survey();
        self.app.model.run_outcomes(None, self.now);
        self.app.model.run_pending(None);
        self.app.model.run_budgets(self.now);
        if self.app.screen.shows_audit() {
            self.app.model.run_audit(self.now);
        }
        self.app.arrange(self.now);
    }

    /// Computes headroom at most every 30 s; the loop does this on another thread.
    fn survey(&mut self) {
        let before = self.app.model.predictions.headroom().map_or(Timestamp::EPOCH, |spare| spare.at);
        if self.now.since(before) < Span::from_secs(30) {
            return;
        }
        if let Some(job) = self.app.model.next_headroom_job(self.now) {
            self.app.model.predictions.set_headroom(job.work());
        }
    }

    /// Performs the app's jobs, and answers its requests as a server would. The budget of checkout is exhausted as soon
    /// as one of its pods leaves.
    pub fn serve(&mut self) {
        loop {
            if let Some(job) = self.app.next_job() {
                self.do_job(job);
                continue;
            }
            let Some(operation) = self.app.with_requests().next().cloned() else { break };
            let request = self.app.next_request(&operation).expect("it has one");
            let outcome = self.answer(&request.task);
            let result = JobResult::Request { operation, id: request.id, outcome };
            self.app.on_job_result(result, self.now);
        }
        self.app.show_changes(self.now);
        self.app.refresh(self.now);
    }

    /// Answers the open question with yes.
    pub fn agree(&mut self) {
        let dialog = self.app.screen.overlays.question().cloned();
        match dialog.as_ref().and_then(Dialog::prompt) {
            Some(DialogPrompt::Words(words)) => self.press(&format!("{words}<Enter>")),
            Some(DialogPrompt::Choice(_)) => self.press("<Tab><Enter>"),
            None => panic!("nothing is asked: {dialog:?}"),
        }
        self.serve();
    }

    fn do_job(&mut self, job: Job) {
        let prior = || self.past.as_ref().map(JournaledOperation::prior);
        let started =
            |id: &str, prior| Ok(Started { id: id.parse().unwrap(), by: "sre@laptop".into(), prior });
        let result = match job {
            Job::FindInterrupted => JobResult::Interrupted(Ok(prior().into_iter().collect())),
            Job::FindUndoable { number, .. } => JobResult::Undoable { number, found: Ok(prior()) },
            Job::Plan { number, job } => {
                JobResult::Planned { number, plan: job.work().plan.map_err(|error| error.to_string()) }
            }
            Job::Check { number, .. } => JobResult::Checked { number, checks: Ok(self.checks.clone()) },
            Job::Rights(asked) => {
                let missing = asked.iter().filter(|right| self.checks.missing.contains(right));
                let missing = Ok(missing.cloned().collect());
                JobResult::Rights { asked, missing }
            }
            Job::Start { number, request } => {
                let started = match *request {
                    StartRequest::Apply { plan, .. } => {
                        started(&format!("{}-20260102-030101-q3w4e", plan.action.word()), None)
                    }
                    StartRequest::Resume(id) => started(&id, prior()),
                    StartRequest::Undo(_) => started("undo-20260102-030101-q3w4e", prior()),
                };
                JobResult::Started { number, started }
            }
            Job::ReadNodes(names) => {
                let nodes = names.into_iter().map(|name| (name.clone(), self.whole_node(&name))).collect();
                JobResult::NodesRead(Ok(ReadNodes { nodes, by: "sre@laptop".into() }))
            }
            // These jobs have no result: the fixture writes no notices to a journal, and runs no maintenance.
            Job::Notice { .. } | Job::StartMaintenance { .. } | Job::SteerMaintenance { .. } => return,
            Job::End { id, .. } => JobResult::Written { id, error: None, closed: true },
        };
        self.app.on_job_result(result, self.now);
    }

    /// Returns a node as the server has it, with the fields that the diff of a plan may show.
    fn whole_node(&self, name: &NodeName) -> Result<Value, String> {
        if let Some(why) = &self.unreadable {
            return Err(why.clone());
        }
        let node = self.world.node(name).ok_or("it does not exist any more")?;
        let labels: BTreeMap<&str, &str> =
            node.labels.iter().map(|(key, value)| (&**key, &**value)).collect();
        let metadata = json!({"name": name, "uid": node.uid, "resourceVersion": node.version.0.to_string(),
            "labels": labels, "managedFields": [{"manager": "kubelet"}]});
        let address = json!([{"type": "InternalIP", "address": node.address}]);
        Ok(json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata,
            "spec": {"podCIDR": "10.244.1.0/24"}, "status": {"addresses": address}}))
    }

    fn answer(&mut self, task: &RequestKind) -> operation::RequestOutcome {
        match task {
            RequestKind::ReadNode { node } => match self.world.node(node) {
                Some(node) => operation::RequestOutcome::Node(Box::new((**node).clone())),
                None => operation::RequestOutcome::Gone,
            },
            RequestKind::ListPods { node } => {
                let on_it = self.world.pods().iter().filter(|pod| pod.node.as_ref() == Some(node));
                operation::RequestOutcome::Pods(on_it.map(|pod| (pod.key.clone(), pod.uid.clone())).collect())
            }
            RequestKind::ReadScale { .. } => panic!("no drain here scales anything"),
            RequestKind::Patch(patch) => {
                let on = patch.unschedulable;
                self.change_node(&patch.node.clone(), |node| {
                    node.unschedulable = on.unwrap_or(node.unschedulable);
                    for (key, text) in &patch.notes {
                        let text = text.as_deref();
                        match *key {
                            claim::CORDON => {
                                node.cordon_note = text.and_then(CordonNote::parse).map(Arc::new)
                            }
                            claim::DRAIN => node.drain_claim = text.and_then(DrainClaim::parse).map(Arc::new),
                            claim::DRAINED => node.drained = text.and_then(DrainedNote::parse).map(Arc::new),
                            other => panic!("no annotation of kordon: {other}"),
                        }
                    }
                });
                operation::RequestOutcome::Done
            }
            RequestKind::Write(PlanStep::Evict { pod, .. }) => self.evict(&pod.clone()),
            RequestKind::Write(_) => operation::RequestOutcome::Done,
        }
    }

    fn evict(&mut self, key: &Key) -> operation::RequestOutcome {
        let is_checkout = |pod: &Pod| pod.key.name.starts_with("checkout-");
        let goes = |pod: &&Arc<Pod>| is_checkout(pod) && pod.termination.is_some();
        if key.name.starts_with("checkout-") && self.world.pods().iter().any(|pod| goes(&pod)) {
            let text = "The disruption budget checkout needs 2 healthy pods and has 2 currently";
            return operation::RequestOutcome::BudgetExhausted(text.into());
        }
        if key.name.starts_with("postgres-") {
            let text = "The disruption budget postgres needs 10 healthy pods and has 10 currently";
            return operation::RequestOutcome::BudgetExhausted(text.into());
        }
        self.terminate(&key.to_string(), &[]);
        operation::RequestOutcome::Done
    }

    /// Removes all terminating pods.
    pub fn reap(&mut self) {
        let gone: Vec<Key> = self
            .world
            .pods()
            .iter()
            .filter(|pod| pod.termination.is_some())
            .map(|pod| pod.key.clone())
            .collect();
        for key in gone {
            self.put(Change::Pod(ObjectEvent::Deleted(key)));
        }
        self.serve();
    }

    /// Computes the open plan; the loop does this on another thread.
    pub fn plan(&mut self) {
        if let Some(job) = self.app.next_plan(self.now) {
            self.app.planned(job.work(), self.now);
        }
    }

    /// Computes the open timing sheet; the loop does this on another thread.
    pub fn work_out_timing(&mut self) {
        if let Some(job) = self.app.next_timing_job() {
            self.app.on_timing(job.work());
        }
    }

    /// Computes the possible actions for the subject of the open detail; the loop does this on another thread.
    pub fn work_out_detail(&mut self) {
        if let Some(job) = self.app.next_detail_job(self.now) {
            self.app.on_detail_result(job.work(&Ok(self.checks.guards.clone())), self.now);
        }
    }

    pub fn silence(&mut self, node: &str) {
        self.alive.remove(node).expect("it was alive");
    }

    /// Brings a kubelet back: it renews its Lease and posts Ready.
    pub fn revive(&mut self, node: &str) {
        self.alive.insert(node.into(), 3);
        self.renew(&node.into(), Span::ZERO);
        let now = self.now;
        self.change_node(node, |node| set_condition(node, "Ready", ConditionStatus::True, now));
    }

    pub fn change_node(&mut self, name: &str, change: impl FnOnce(&mut Node)) {
        let mut node = (**self.world.node(&name.into()).expect("a node of the story")).clone();
        node.version = self.next_version();
        change(&mut node);
        self.put(Change::Node(ObjectEvent::Applied(node)));
    }

    /// Removes a node.
    pub fn remove_node(&mut self, name: &str) {
        self.alive.remove(name);
        self.put(Change::Node(ObjectEvent::Deleted(name.into())));
    }

    /// Starts the deletion of a pod. The finalizers keep the pod's object.
    pub fn terminate(&mut self, key: &str, finalizers: &[&str]) {
        let (namespace, name) = key.split_once('/').expect("namespace/name");
        let mut pod = (**self.world.pod(&Key::new(namespace, name)).expect("a pod of the story")).clone();
        pod.version = self.next_version();
        let grace = Span::from_secs(30);
        pod.termination = Some(Termination { deadline: ClusterTime::new(self.now + grace), grace }.into());
        pod.finalizers = finalizers.iter().map(|name| Name::from(*name)).collect();
        self.put(Change::Pod(ObjectEvent::Applied(pod)));
    }

    /// Removes pods for several reasons, and ends the container of another pod with the reason OOMKilled.
    pub fn remove_pods_in_every_way(&mut self) {
        for (number, reason) in
            [(0, "EvictionByEvictionAPI"), (1, "EvictionByEvictionAPI"), (2, "PreemptionByScheduler")]
        {
            let key = format!("shop/cart-0{number}-x7f2q");
            self.change_pod(&key, |pod| pod.disruption_target = Some(reason.into()));
            self.terminate(&key, &[]);
            self.run(20);
        }
        self.reap();
        let exit = |reason: &str, restarted| ContainerExit {
            container: "cart".into(),
            reason: reason.into(),
            code: 137,
            restarted,
            ..ContainerExit::default()
        };
        let message = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 80Mi.";
        let evicted = PodEnding {
            message: message.into(),
            exits: [exit("Error", false)].into(),
            ..PodEnding::default()
        };
        self.change_pod("shop/cart-04-x7f2q", |pod| {
            (pod.phase, pod.reason) = (Phase::Failed, "Evicted".into());
            pod.ending = Some(evicted.into());
        });
        let killed = PodEnding { exits: [exit("OOMKilled", true)].into(), ..PodEnding::default() };
        self.run(15);
        self.change_pod("shop/cart-06-x7f2q", |pod| pod.ending = Some(killed.into()));
        self.run(10);
        self.terminate("data/postgres-1", &[]);
        self.run(5);
    }

    /// Reports the state of a watch, and its message for the journal.
    pub fn health(&mut self, kind: FeedKind, state: FeedState) {
        let trouble = match &state {
            FeedState::Broken { error, .. } => Some(format!("{kind}: {error}; trying again")),
            FeedState::Forbidden { error } => Some(format!("{kind}: {error}; asking again now and then")),
            FeedState::Off | FeedState::Connecting | FeedState::Listing { .. } | FeedState::Live => None,
        };
        if let Some(trouble) = trouble {
            self.app.on_watch_event(FeedEvent::Trouble(trouble), self.now);
        }
        let health =
            FeedHealth { state, last_heard: Some(self.now), relists: 0, requests: 3, bytes: 1_700_000 };
        self.app.on_watch_event(FeedEvent::Health(kind, health), self.now);
    }

    fn hear_all(&mut self) {
        for kind in FeedKind::ALL {
            if self.app.model.feeds.state(kind) == Some(&FeedState::Live) {
                self.health(kind, FeedState::Live);
            }
        }
    }

    fn renew(&mut self, node: &NodeName, late: Span) {
        let lease = Lease {
            node: node.clone(),
            version: self.next_version(),
            renewed: Some(ClusterTime::new(self.now - late)),
            duration: Some(Span::from_secs(40)),
            written: None,
        };
        self.put(Change::Lease(ObjectEvent::Applied(lease)));
    }

    /// Changes the cluster, and reports the change if the app has listed it.
    pub fn put(&mut self, change: Change) {
        self.world.apply(change.clone(), &mut Vec::new());
        if self.listed {
            self.tell(vec![change]);
        }
    }

    fn tell(&mut self, changes: Vec<Change>) {
        if let Some(controller) = &mut self.controller {
            controller.on_watch_event(FeedEvent::Changes(changes.clone()), self.now);
        }
        let reported = changes.into_iter().filter(|change| self.is_reported(change)).collect();
        self.app.on_watch_event(FeedEvent::Changes(reported), self.now);
    }

    fn next_version(&mut self) -> Version {
        self.version += 1;
        Version(self.version)
    }

    /// Types keys: letters, and names such as `<Enter>`.
    pub fn press(&mut self, keys: &str) {
        for key in typed(keys) {
            self.app.on_key(key, self.now, self.now);
            let message = self.app.screen.message.as_deref().unwrap_or_default();
            assert!(!message.ends_with("is not a key: ? shows them all"), "{message}");
            self.plan();
        }
    }
}

/// Parses keys. Each letter stands for a key, and so does each name in angle brackets, as the configuration names it.
pub fn typed(keys: &str) -> Vec<KeyEvent> {
    let mut typed = Vec::new();
    let mut rest = keys;
    while let Some(letter) = rest.chars().next() {
        let (chord, length) = if letter == '<' {
            let end = rest.find('>').expect("a closed name");
            (rest[1..end].parse::<Chord>().expect("the name of a key"), end + 1)
        } else {
            (Chord::letter(letter), letter.len_utf8())
        };
        typed.push(KeyEvent::from(chord));
        rest = &rest[length..];
    }
    typed
}

/// Returns the tolerations that the API server adds.
fn default_tolerations() -> Vec<Toleration> {
    ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]
        .map(|key| tolerates(key, Some(300)))
        .into()
}

fn labels(app: &str) -> Labels {
    [("app".into(), Name::from(app))].into()
}

pub fn tolerates(key: &str, seconds: Option<i64>) -> Toleration {
    Toleration {
        key: key.into(),
        operator: TolerationOperator::Exists,
        value: "".into(),
        effect: seconds.map(|_| TaintEffect::NoExecute),
        seconds,
    }
}

pub fn taint(key: &str, effect: TaintEffect, time_added: Option<ClusterTime>) -> Taint {
    Taint { key: key.into(), value: "".into(), effect, time_added }
}

pub fn set_condition(node: &mut Node, kind: &str, status: ConditionStatus, now: Timestamp) {
    let mut conditions = node.conditions.to_vec();
    for condition in conditions.iter_mut().filter(|condition| condition.kind == *kind) {
        condition.status = status;
        condition.last_transition = Some(ClusterTime::new(now));
        condition.last_heartbeat = Some(ClusterTime::new(now));
    }
    node.conditions = conditions.into();
}

/// Returns a number that is made from an object's name; `None` for the end of a list. A watch that is
/// [`Withheld::Late`] reports only objects with even numbers.
fn place<T: kordon_core::cluster::TableObject>(
    event: &ObjectEvent<T>,
    name: impl Fn(&T) -> String,
) -> Option<usize>
where
    T::Key: std::fmt::Debug,
{
    match event {
        ObjectEvent::ListStarted => Some(0),
        ObjectEvent::ListDone => None,
        ObjectEvent::Listed(object) | ObjectEvent::Applied(object) | ObjectEvent::Prefetched(object) => {
            Some(name(object).bytes().map(usize::from).sum())
        }
        ObjectEvent::Deleted(_) => Some(0),
    }
}
