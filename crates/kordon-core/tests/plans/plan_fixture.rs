//! A small cluster for tests of plans, built step by step. All kinds of objects count as listed, and the status of
//! budgets is computed.

use std::{collections::BTreeSet, sync::Arc};

use kordon_core::{
    cluster::{
        Autoscaler, Budget, Change, Cluster, Condition, ConditionStatus, DeviceChange, FeedKind,
        IntOrPercent, Key, Known, KnownAutoscalers, Name, NamespaceObject, Node, NodeName, ObjectEvent,
        OperatorSettings, Owner, OwnerKind, Phase, Pod, PodReady, PriorityClass, Quota, QuotaCount,
        QuotaLimit, QuotaScope, READY, Requirement, Selector, SelectorOperator, TableObject, Taint,
        Termination, Toleration, Uid, Version, Workload, WorkloadKind, WorkloadStage,
    },
    engine::ServerVersion,
    plan::{
        Action, DrainOptions, Environment, Estimate, EvictionRules, Landing, Plan, PodPlan, RemovalOptions,
        budget,
    },
};
use kordon_time::{ClusterTime, Span, Timestamp};

/// Time at which every plan here is made.
pub const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

/// Release of the API server unless a test sets another.
pub const NEWEST: ServerVersion = ServerVersion::new(1, 36);

/// A cluster, and the environment of the plans made for it.
#[derive(Clone)]
pub struct PlanFixture {
    pub cluster: Cluster,
    pub version: ServerVersion,
    pub environment: FixedEnvironment,
    writes: u64,
}

/// Environment in which every pod takes the same time to end and to be replaced.
#[derive(Clone, Debug)]
pub struct FixedEnvironment {
    pub stop: Span,
    /// Time until a replacement is Ready; `None` if it never becomes Ready.
    pub ready: Option<Span>,
    /// Number of replacements that find a node.
    pub room: usize,
    /// Nodes whose kubelets end no pods.
    pub down: BTreeSet<NodeName>,
}

impl Environment for FixedEnvironment {
    fn time_to_terminate(&self, pod: &Pod, grace: Span) -> Estimate {
        if pod.node.as_ref().is_some_and(|node| self.down.contains(node)) {
            return Estimate::NEVER;
        }
        Estimate::exactly(self.stop.min(grace))
    }

    fn land(&mut self, _pod: &Pod, _closed: &BTreeSet<NodeName>) -> Landing {
        if self.room == 0 {
            return Landing::Pending { why: "insufficient cpu".into() };
        }
        self.room -= 1;
        Landing::Node { node: "elsewhere".into(), why: "the only one with room".into() }
    }

    fn time_to_ready(&self, _pod: &Pod, _landing: &Landing) -> Estimate {
        self.ready.map_or(Estimate::NEVER, Estimate::exactly)
    }
}

impl PlanFixture {
    /// Creates a cluster of empty Ready nodes.
    pub fn new(nodes: &[&str]) -> Self {
        let environment = FixedEnvironment {
            stop: Span::from_secs(30),
            ready: Some(Span::from_secs(10)),
            room: usize::MAX,
            down: BTreeSet::new(),
        };
        let mut fixture = Self { cluster: Cluster::default(), version: NEWEST, environment, writes: 0 };
        fixture.list(Change::Node);
        fixture.list(Change::Pod);
        fixture.list(Change::Budget);
        fixture.list(Change::Namespace);
        fixture.list(Change::Service);
        fixture.list(Change::Claim);
        fixture.list(Change::Volume);
        fixture.list(Change::StorageClass);
        fixture.list(Change::CsiNode);
        fixture.list(Change::CsiDriver);
        fixture.list(Change::Quota);
        fixture.list(Change::PriorityClass);
        fixture.list(Change::CronJob);
        fixture.list(|event| Change::Device(DeviceChange::Class(event)));
        fixture.list(|event| Change::Device(DeviceChange::Claim(event)));
        fixture.list(|event| Change::Device(DeviceChange::Slice(event)));
        fixture.list(|event| Change::Device(DeviceChange::Rule(event)));
        fixture.list(|event| Change::Device(DeviceChange::Template(event)));
        for kind in WorkloadKind::ALL {
            fixture.list(|event| Change::Workload(kind, event));
        }
        for node in nodes {
            fixture.node(node, |_| {});
        }
        fixture.namespace("default", false);
        fixture
    }

    fn list<T: TableObject>(&mut self, of: impl Fn(ObjectEvent<T>) -> Change) {
        self.apply(of(ObjectEvent::ListStarted));
        self.apply(of(ObjectEvent::ListDone));
    }

    fn apply(&mut self, change: Change) {
        self.cluster.apply(change, &mut Vec::new());
    }

    fn next_version(&mut self) -> Version {
        self.writes += 1;
        Version(self.writes)
    }

    pub fn node(&mut self, name: &str, make: impl FnOnce(&mut Node)) -> &mut Self {
        let ready = Condition { kind: READY.into(), status: ConditionStatus::True, ..Condition::default() };
        let mut node = match self.cluster.node(&name.into()) {
            Some(node) => (**node).clone(),
            None => Node {
                name: name.into(),
                uid: uid("Node", name),
                conditions: [ready].into(),
                ..Node::default()
            },
        };
        make(&mut node);
        node.version = self.next_version();
        self.apply(Change::Node(ObjectEvent::Applied(node)));
        self
    }

    pub fn namespace(&mut self, name: &str, terminating: bool) -> &mut Self {
        let version = self.next_version();
        let record =
            NamespaceObject { name: name.into(), version, terminating, ..NamespaceObject::default() };
        self.apply(Change::Namespace(ObjectEvent::Applied(record)));
        self
    }

    pub fn owner(&mut self, kind: WorkloadKind, name: &str, replicas: i32) -> &mut Self {
        self.workload(kind, name, replicas, |_| {})
    }

    pub fn workload(
        &mut self,
        kind: WorkloadKind,
        name: &str,
        replicas: i32,
        make: impl FnOnce(&mut Workload),
    ) -> &mut Self {
        let mut workload = Workload {
            kind,
            key: Key::new("default", name),
            uid: uid(kind.as_str(), name),
            version: self.next_version(),
            replicas: Some(replicas),
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
        make(&mut workload);
        self.apply(Change::Workload(kind, ObjectEvent::Applied(workload)));
        self
    }

    /// Changes a workload. Its template is that of its pods, unless `make` sets another template.
    pub fn change_workload(
        &mut self,
        kind: WorkloadKind,
        name: &str,
        make: impl FnOnce(&mut Workload),
    ) -> &mut Self {
        let key = (kind, Key::new("default", name));
        let mut workload = (**self.cluster.workloads(kind).get(&key).expect("a workload")).clone();
        make(&mut workload);
        workload.version = self.next_version();
        self.apply(Change::Workload(kind, ObjectEvent::Applied(workload)));
        self
    }

    pub fn priority_class(&mut self, name: &str, value: i32, global_default: bool) -> &mut Self {
        let version = self.next_version();
        let class =
            PriorityClass { name: name.into(), version, value, global_default, never_preempts: false };
        self.apply(Change::PriorityClass(ObjectEvent::Applied(class)));
        self
    }

    /// Adds a ReplicaSet with this number of replicas, and a Ready pod on each of these nodes, named `name-0` onwards.
    pub fn replica_set(&mut self, name: &str, replicas: i32, on: &[&str]) -> &mut Self {
        self.owner(WorkloadKind::ReplicaSet, name, replicas);
        for (place, node) in on.iter().enumerate() {
            self.pod(&format!("{name}-{place}"), node, |pod| own(pod, WorkloadKind::ReplicaSet, name));
        }
        self
    }

    /// Adds or changes a pod. A new pod is Ready, has no owner and a grace period of 30 s, unless `make` changes these.
    pub fn pod(&mut self, name: &str, node: &str, make: impl FnOnce(&mut Pod)) -> &mut Self {
        let mut pod = match self.cluster.pod(&Key::new("default", name)) {
            Some(pod) => (**pod).clone(),
            None => Pod {
                key: Key::new("default", name),
                uid: uid("Pod", name),
                created: ClusterTime::new(NOW),
                node: Some(node.into()),
                grace: Span::from_secs(30),
                phase: Phase::Running,
                ready: Some(PodReady {
                    status: ConditionStatus::True,
                    last_transition: Some(ClusterTime::new(NOW)),
                }),
                ..Pod::default()
            },
        };
        make(&mut pod);
        pod.version = self.next_version();
        self.apply(Change::Pod(ObjectEvent::Applied(pod)));
        self
    }

    /// Adds or changes a budget that selects the pods labelled `app=NAME`. Only [`Self::sync`] computes its status.
    pub fn budget(&mut self, name: &str, make: impl FnOnce(&mut Budget)) -> &mut Self {
        let app = Requirement { key: "app".into(), operator: SelectorOperator::In(vec![name.into()]) };
        let mut budget = match self.cluster.budgets().get(&Key::new("default", name)) {
            Some(budget) => (**budget).clone(),
            None => Budget {
                key: Key::new("default", name),
                uid: uid("PodDisruptionBudget", name),
                generation: 1,
                selector: Some(Selector { requirements: vec![app] }),
                ..Budget::default()
            },
        };
        make(&mut budget);
        budget.version = self.next_version();
        self.apply(Change::Budget(ObjectEvent::Applied(budget)));
        self
    }

    /// Adds a quota with these limits (resource, hard, used; CPU in millicores) and scopes.
    pub fn quota(&mut self, name: &str, limits: &[(&str, i64, i64)], scopes: &[&str]) -> &mut Self {
        let limit = |(resource, hard, used): &(&str, i64, i64)| QuotaLimit {
            resource: (*resource).into(),
            counts: QuotaCount::for_resource(resource).expect("pods use it"),
            hard: *hard,
            used: *used,
        };
        let quota = Quota {
            key: Key::new("default", name),
            version: self.next_version(),
            scopes: scopes.iter().map(|scope| QuotaScope::parse(scope, "", Box::default())).collect(),
            limits: limits.iter().map(limit).collect(),
        };
        self.apply(Change::Quota(ObjectEvent::Applied(quota)));
        self
    }

    /// Sets the autoscalers of the cluster. Without this, they are not known.
    pub fn autoscalers(&mut self, all: Vec<Autoscaler>) -> &mut Self {
        self.known_autoscalers(KnownAutoscalers::Read(all))
    }

    pub fn known_autoscalers(&mut self, known: KnownAutoscalers) -> &mut Self {
        self.apply(Change::Autoscalers(Arc::new(known)));
        self
    }

    /// Sets the settings of operators. Without this, they are not read.
    pub fn operator_settings(&mut self, settings: OperatorSettings) -> &mut Self {
        self.apply(Change::OperatorSettings(Arc::new(settings)));
        self
    }

    /// Marks a kind as forbidden to list.
    pub fn forbid(&mut self, kind: FeedKind) -> &mut Self {
        self.apply(Change::Known(kind, Known::Forbidden { error: "no".into() }));
        self
    }

    /// Computes the status of all budgets, as the disruption controller does.
    pub fn sync(&mut self) -> &mut Self {
        let rules = self.rules();
        let budgets: Vec<Arc<Budget>> = self.cluster.budgets().iter().cloned().collect();
        for known in budgets {
            let status = budget::synced_status(&self.cluster, &known, &rules, NOW);
            self.budget(&known.key.name, |budget| budget.status = status);
        }
        self
    }

    pub fn rules(&self) -> EvictionRules {
        EvictionRules::for_version(self.version)
    }

    /// Returns the numbers in a budget's status: expected, desired, healthy, allowed.
    pub fn status(&self, budget: &str) -> [i32; 4] {
        let status = &self.cluster.budgets().get(&Key::new("default", budget)).expect("a budget").status;
        [status.expected_pods, status.desired_healthy, status.current_healthy, status.disruptions_allowed]
    }

    /// Returns the server's response to the eviction of a pod: the code, and the message of the cause.
    pub fn evict(&self, pod: &str) -> (u16, Option<String>) {
        let pod = self.cluster.pod(&Key::new("default", pod)).expect("a pod");
        let answer = kordon_core::plan::eviction::answer(&self.cluster, pod, &self.rules(), NOW);
        let message = answer.message.filter(|_| answer.cause.is_none());
        (answer.code, answer.cause.map(|cause| cause.message).or(message))
    }

    pub fn plan(&self, action: Action) -> Plan {
        Plan::new(action, &self.cluster, &self.environment, self.version, NOW)
            .expect("everything named is there")
    }

    pub fn drain(&self, nodes: &[&str], options: DrainOptions) -> Plan {
        self.plan(Action::Drain { nodes: nodes.iter().map(|node| NodeName::from(*node)).collect(), options })
    }

    pub fn evictions(&self, pods: &[&str]) -> Plan {
        let pods = pods.iter().map(|pod| Key::new("default", pod)).collect();
        self.plan(Action::Evict { pods, options: RemovalOptions::default() })
    }
}

/// Returns the uid of an object; there is only one object of each name.
pub fn uid(kind: &str, name: &str) -> Uid {
    Uid::from(&*format!("{kind}/{name}"))
}

/// Gives a pod an owner and the label `app=OWNER`.
pub fn own(pod: &mut Pod, kind: WorkloadKind, name: &str) {
    let owner = Owner { kind: OwnerKind::Workload(kind), name: name.into(), uid: uid(kind.as_str(), name) };
    pod.owner = Some(owner.into());
    pod.labels = [(Name::from("app"), Name::from(name))].into();
}

/// Makes a pod not Ready. It was created an hour ago, and is not expected to become Ready again.
pub fn not_ready(pod: &mut Pod) {
    starting(pod, 3600);
}

/// Makes a pod not Ready. It was created `age` seconds ago.
pub fn starting(pod: &mut Pod, age: i64) {
    pod.created = ClusterTime::new(NOW - Span::from_secs(age));
    pod.ready =
        Some(PodReady { status: ConditionStatus::False, last_transition: Some(ClusterTime::new(NOW)) });
}

/// Makes a pod Terminating; its grace period ends this many seconds after [`NOW`].
pub fn terminating(pod: &mut Pod, seconds_left: i64) {
    let deadline = ClusterTime::new(NOW + Span::from_secs(seconds_left));
    pod.termination = Some(Termination { deadline, grace: pod.grace }.into());
}

pub fn tolerates(pod: &mut Pod, key: &str, seconds: Option<i64>) {
    let toleration = Toleration { key: key.into(), seconds, ..Toleration::default() };
    pod.tolerations =
        [Toleration { operator: kordon_core::cluster::TolerationOperator::Exists, ..toleration }].into();
}

pub fn taint(text: &str) -> Taint {
    let edits = kordon_core::plan::TaintEdits::parse([text], false).expect("a taint");
    edits.add[0].clone()
}

pub const fn least(number: i32) -> Option<IntOrPercent> {
    Some(IntOrPercent::Int(number))
}

pub const fn percent(number: i32) -> Option<IntOrPercent> {
    Some(IntOrPercent::Percent(number))
}

/// Returns the plan's entry for a pod.
pub fn of<'a>(plan: &'a Plan, pod: &str) -> &'a PodPlan {
    plan.pods.iter().find(|row| *row.pod.name == *pod).expect("a pod of the plan")
}

/// Converts a time to seconds after [`NOW`].
pub fn at(time: Option<Timestamp>) -> Option<i64> {
    time.map(|time| time.since(NOW).as_secs())
}
