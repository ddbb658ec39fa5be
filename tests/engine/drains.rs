//! Plans a recorded drain and compares the plan with what the API server, the disruption controller and kubectl did.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kordon_core::{
    cluster::{
        Budget, Change, Cluster, ConditionStatus, IntOrPercent, Key, LocalVolume, Name, NamespaceObject,
        Node, NodeName, ObjectEvent, Owner, OwnerKind, Phase, Pod, PodReady, PriorityClass, Requirement,
        Selector, SelectorOperator, Termination, Uid, UnhealthyPolicy, Version, Workload, WorkloadKind,
        WorkloadStage,
    },
    engine::ServerVersion,
    plan::{
        Action, DrainOptions, Environment, Estimate, EvictionRules, Landing, Plan, PodPlan, Prospect, Retry,
        budget, eviction,
    },
};
use kordon_time::{ClusterTime, Span, Timestamp};
use serde::Deserialize;
use serde_json::Value;

/// Most seconds by which a recorded drain may take longer than its plan. Plans leave out the time that kubectl itself
/// needs: 0.4 to 1.8 s in the recordings, and up to 1.3 s more or less in recordings of the same drain by another
/// release. The limit is the time between two retries of kubectl, so a plan with one retry more or less does not agree.
const KUBECTL: f64 = 5.0;

/// Start of every recorded drain.
const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

/// One recording: the objects of the cluster, and the responses of the components.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrainRecording {
    #[serde(rename = "name")]
    _name: String,
    #[serde(rename = "about")]
    _about: String,
    owners: Vec<OwnerSpec>,
    pods: Vec<PodSpec>,
    pdbs: Vec<BudgetSpec>,
    flags: Vec<String>,
    #[serde(default = "four")]
    timeout: i64,
    #[serde(default)]
    replace_after_s: Option<f64>,
    #[serde(default = "first_node")]
    drain: String,
    pub recorded: Recorded,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Recorded {
    version: String,
    pdbs: BTreeMap<String, Status>,
    pub evict: BTreeMap<String, Answer>,
    pub drain: Outcome,
}

/// The status of a PodDisruptionBudget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    expected_pods: i32,
    desired_healthy: i32,
    current_healthy: i32,
    disruptions_allowed: i32,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Answer {
    pub code: u16,
    causes: Option<Vec<Cause>>,
}

#[derive(Clone, Debug, Deserialize)]
struct Cause {
    message: String,
}

/// Result of `kubectl drain`.
#[derive(Clone, Debug, Deserialize)]
pub struct Outcome {
    exit: i32,
    pub seconds: f64,
    pub left: BTreeMap<String, f64>,
    pub stayed: Vec<String>,
    cordoned: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnerSpec {
    kind: String,
    name: String,
    #[serde(default = "one")]
    replicas: i32,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct PodSpec {
    name: String,
    node: String,
    #[serde(default)]
    owner: Option<String>,
    #[serde(default)]
    ready: Option<bool>,
    #[serde(default)]
    phase: Option<String>,
    #[serde(default)]
    empty_dir: bool,
    #[serde(default)]
    grace: i64,
    #[serde(default)]
    finalizer: bool,
    #[serde(default)]
    terminating: Option<i64>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BudgetSpec {
    name: String,
    spec: Value,
}

const fn four() -> i64 {
    4
}

const fn one() -> i32 {
    1
}

fn first_node() -> String {
    "n1".into()
}

impl DrainRecording {
    /// Describes the differences between kordon's plan and the recording; empty if they agree.
    pub fn differences(&self) -> Vec<String> {
        let version = ServerVersion::parse(&self.recorded.version).expect("a recorded version");
        let rules = EvictionRules::for_version(version);
        let mut cluster = self.cluster(version);
        let mut differences = self.sync_budgets(&mut cluster, &rules);
        differences.extend(self.evictions(&cluster, &rules));
        differences.extend(self.drains(&cluster, version));
        differences
    }

    /// Computes the status of the budgets, as the disruption controller did before the first eviction.
    fn sync_budgets(&self, cluster: &mut Cluster, rules: &EvictionRules) -> Vec<String> {
        let mut differences = Vec::new();
        let budgets: Vec<Arc<Budget>> = cluster.budgets().iter().cloned().collect();
        let statuses: Vec<_> =
            budgets.iter().map(|budget| budget::synced_status(cluster, budget, rules, NOW)).collect();
        for (budget, status) in budgets.iter().zip(statuses) {
            let ours = Status {
                expected_pods: status.expected_pods,
                desired_healthy: status.desired_healthy,
                current_healthy: status.current_healthy,
                disruptions_allowed: status.disruptions_allowed,
            };
            let theirs = self.recorded.pdbs.get(&*budget.key.name).copied().unwrap_or_default();
            if ours != theirs {
                differences
                    .push(format!("status of {}: {theirs:?} recorded, {ours:?} worked out", budget.key));
            }
            let synced = Budget { status, version: Version(2), ..(**budget).clone() };
            cluster.apply(Change::Budget(ObjectEvent::Applied(synced)), &mut Vec::new());
        }
        differences
    }

    fn evictions(&self, cluster: &Cluster, rules: &EvictionRules) -> Vec<String> {
        let mut differences = Vec::new();
        for (name, theirs) in &self.recorded.evict {
            let Some(pod) = cluster.pod(&Key::new("default", name)) else {
                differences.push(format!("eviction of {name}: no such pod"));
                continue;
            };
            let ours = eviction::answer(cluster, pod, rules, NOW);
            let ours = (ours.code, ours.budget.map(|budget| budget.name.to_string()));
            let theirs = (theirs.code, theirs.budget());
            if ours != theirs {
                differences.push(format!("eviction of {name}: {theirs:?} recorded, {ours:?} predicted"));
            }
        }
        differences
    }

    fn drains(&self, cluster: &Cluster, version: ServerVersion) -> Vec<String> {
        let node = NodeName::from(&*self.drain);
        let action = Action::Drain { nodes: vec![node], options: self.options() };
        let replaced_after = self.replace_after_s.map(Span::from_secs_f64);
        let plan =
            Plan::new(action, cluster, &Bare { replaced_after }, version, NOW).expect("the node is there");
        let theirs = &self.recorded.drain;
        let mut differences = Vec::new();
        let drain = plan.nodes[0].drain.as_ref().expect("it is a drain");
        let leaves = |pod: &PodPlan| {
            let known = cluster.pod(&pod.pod).expect("planned over this cluster");
            known.termination.is_some() || (!drain.refused && pod.leaves.likely.is_some())
        };
        let (left, stayed): (Vec<&PodPlan>, Vec<&PodPlan>) = plan.pods.iter().partition(|pod| leaves(pod));
        let names =
            |pods: &[&PodPlan]| -> Vec<String> { pods.iter().map(|pod| pod.pod.name.to_string()).collect() };
        let mut compare = |what: &str, theirs: Vec<String>, ours: Vec<String>| {
            let (theirs, ours) = (self.classes(theirs), self.classes(ours));
            if theirs != ours {
                differences.push(format!("{what}: {theirs:?} recorded, {ours:?} planned"));
            }
        };
        compare("left", theirs.left.keys().cloned().collect(), names(&left));
        compare("stayed", theirs.stayed.clone(), names(&stayed));
        let fails = plan.prospect() != Prospect::Completes;
        if fails != (theirs.exit != 0) {
            differences.push(format!("exit {} recorded, {:?} planned", theirs.exit, plan.prospect()));
        }
        let ends = if drain.refused { Some(NOW) } else { drain.ends.likely };
        let seconds = ends.map_or(f64::INFINITY, |ends| ends.since(NOW).as_secs_f64());
        if !(0.0..=KUBECTL).contains(&(theirs.seconds - seconds)) {
            differences.push(format!("seconds: {} recorded, {seconds} planned", theirs.seconds));
        }
        let cordons = plan
            .steps
            .iter()
            .any(|step| matches!(step, kordon_core::plan::PlanStep::Cordon { on: true, .. }));
        if cordons != theirs.cordoned {
            differences.push(format!("cordoned: {} recorded, {cordons} planned", theirs.cordoned));
        }
        differences
    }

    /// Counts pods of the drained node by owner, node, readiness and phase. Pods that agree in all four are
    /// interchangeable.
    fn classes(&self, names: Vec<String>) -> BTreeMap<String, usize> {
        let mut classes = BTreeMap::new();
        for name in names {
            let class = match self.pods.iter().find(|pod| pod.name == name) {
                Some(pod) => format!(
                    "{} on {}, {}, {}",
                    pod.owner.as_deref().unwrap_or("bare"),
                    pod.node,
                    if pod.is_ready() { "ready" } else { "not ready" },
                    pod.phase.as_deref().unwrap_or("Running")
                ),
                None => format!("unknown pod {name}"),
            };
            *classes.entry(class).or_default() += 1;
        }
        classes
    }

    fn options(&self) -> DrainOptions {
        let mut options = DrainOptions {
            timeout: Some(Span::from_secs(self.timeout)),
            retry: Retry::Kubectl,
            ..DrainOptions::default()
        };
        for flag in &self.flags {
            let (name, value) = flag.split_once('=').unwrap_or((flag, "true"));
            let number = || value.parse::<i64>().unwrap_or_else(|_| panic!("{flag}"));
            match name {
                "--force" => options.force = value == "true",
                "--ignore-daemonsets" => options.ignore_daemonsets = value == "true",
                "--delete-emptydir-data" | "--delete-local-data" => {
                    options.delete_emptydir_data = value == "true"
                }
                "--disable-eviction" => options.disable_eviction = value == "true",
                "--grace-period" => options.grace = (number() >= 0).then(|| Span::from_secs(number())),
                "--skip-wait-for-delete-timeout" => {
                    options.skip_wait_for_delete = (number() > 0).then(|| Span::from_secs(number()));
                }
                "--timeout" => {
                    let seconds = value.trim_end_matches('s').parse().unwrap_or_else(|_| panic!("{flag}"));
                    options.timeout = Some(Span::from_secs(seconds)).filter(|timeout| *timeout > Span::ZERO);
                }
                "--pod-selector" => options.pod_selector = Some(Selector::parse(value).expect(flag)),
                _ => panic!("the flag {flag} is not modelled"),
            }
        }
        options
    }

    fn cluster(&self, version: ServerVersion) -> Cluster {
        let mut cluster = Cluster::default();
        let nodes: BTreeSet<&str> =
            ["n1", "n2"].into_iter().chain(self.pods.iter().map(|pod| &*pod.node)).collect();
        let nodes = nodes.into_iter().map(node);
        list(&mut cluster, nodes.map(|node| Change::Node(ObjectEvent::Listed(node))), Change::Node);
        let pods = self.pods.iter().map(|pod| Change::Pod(ObjectEvent::Listed(pod.pod())));
        list(&mut cluster, pods, Change::Pod);
        let budgets =
            self.pdbs.iter().map(|budget| Change::Budget(ObjectEvent::Listed(budget.budget(version))));
        list(&mut cluster, budgets, Change::Budget);
        for kind in WorkloadKind::ALL {
            let of_kind = self.owners.iter().filter(|owner| owner.kind == kind.as_str());
            let listed =
                of_kind.map(|owner| Change::Workload(kind, ObjectEvent::Listed(owner.workload(kind))));
            list(&mut cluster, listed, |event| Change::Workload(kind, event));
        }
        let default =
            NamespaceObject { name: "default".into(), version: Version(1), ..NamespaceObject::default() };
        list(&mut cluster, [Change::Namespace(ObjectEvent::Listed(default))].into_iter(), Change::Namespace);
        list(&mut cluster, std::iter::empty(), |event: ObjectEvent<PriorityClass>| {
            Change::PriorityClass(event)
        });
        cluster
    }
}

/// Applies a complete list of one kind.
fn list<T: kordon_core::cluster::TableObject>(
    cluster: &mut Cluster,
    listed: impl Iterator<Item = Change>,
    of: impl Fn(ObjectEvent<T>) -> Change,
) {
    let all = std::iter::once(of(ObjectEvent::ListStarted))
        .chain(listed)
        .chain(std::iter::once(of(ObjectEvent::ListDone)));
    for change in all {
        cluster.apply(change, &mut Vec::new());
    }
}

impl Answer {
    /// Returns the name of the budget that refused the eviction, from the causes in the response.
    fn budget(&self) -> Option<String> {
        let message = &self.causes.as_ref()?.first()?.message;
        Some(message.strip_prefix("The disruption budget ")?.split(' ').next()?.to_owned())
    }
}

/// Returns a uid made from kind and name, because recordings have no uids.
fn uid(kind: &str, name: &str) -> Uid {
    Uid::from(&*format!("{kind}/{name}"))
}

impl OwnerSpec {
    fn workload(&self, kind: WorkloadKind) -> Workload {
        Workload {
            kind,
            key: Key::new("default", &self.name),
            uid: uid(&self.kind, &self.name),
            version: Version(1),
            replicas: Some(self.replicas),
            selector: None,
            owner: None,
            replaces_only_failed: false,
            is_recreated: false,
            reboot_locks: Vec::new(),
            stateful: None,
            job: None,
            template: None,
            stage: WorkloadStage::Active,
        }
    }
}

impl PodSpec {
    /// Whether the pod is ready. A recording without `ready` means that a running pod is ready.
    fn is_ready(&self) -> bool {
        let runs = self.phase.as_deref().is_none_or(|phase| phase == "Running");
        self.ready.unwrap_or(runs)
    }

    fn pod(&self) -> Pod {
        let owner = self.owner.as_ref().and_then(|owner| owner.split_once('/')).map(|(kind, name)| Owner {
            kind: match WorkloadKind::ALL.into_iter().find(|known| known.as_str() == kind) {
                Some(known) => OwnerKind::Workload(known),
                None if kind == "Node" => OwnerKind::Node,
                None => OwnerKind::Other { kind: kind.into(), group: None },
            },
            name: name.into(),
            uid: uid(kind, name),
        });
        let mut labels: BTreeMap<Name, Name> =
            owner.iter().map(|owner| (Name::from("app"), owner.name.clone())).collect();
        labels.extend(self.labels.iter().map(|(key, value)| (Name::from(&**key), Name::from(&**value))));
        let status = if self.is_ready() { ConditionStatus::True } else { ConditionStatus::False };
        let termination = self.terminating.map(|grace| Termination {
            deadline: ClusterTime::new(NOW + Span::from_secs(grace)),
            grace: Span::from_secs(grace),
        });
        Pod {
            key: Key::new("default", &self.name),
            uid: uid("Pod", &self.name),
            version: Version(1),
            created: ClusterTime::new(NOW),
            labels: labels.into_iter().collect(),
            owner: owner.map(Into::into),
            node: Some(NodeName::from(&*self.node)),
            grace: Span::from_secs(self.grace),
            phase: self.phase.as_deref().map_or(Phase::Running, Phase::parse),
            ready: Some(PodReady { status, last_transition: Some(ClusterTime::new(NOW)) }),
            termination: termination.map(Into::into),
            mirror: self.annotations.contains_key("kubernetes.io/config.mirror"),
            finalizers: self.finalizer.then(|| Name::from("example.com/hold")).into_iter().collect(),
            storage: self.empty_dir.then_some(LocalVolume::EmptyDir).into_iter().collect(),
            ..Pod::default()
        }
    }
}

impl BudgetSpec {
    fn budget(&self, version: ServerVersion) -> Budget {
        let policy = self.spec["unhealthyPodEvictionPolicy"].as_str().unwrap_or_default();
        // Servers before 1.27 drop the field `unhealthyPodEvictionPolicy`, because they do not know it.
        let policy = if version >= ServerVersion::new(1, 27) { policy } else { "" };
        Budget {
            key: Key::new("default", &self.name),
            uid: uid("PodDisruptionBudget", &self.name),
            version: Version(1),
            generation: 1,
            selector: selector(&self.spec["selector"]),
            min_available: int_or_percent(&self.spec["minAvailable"]),
            max_unavailable: int_or_percent(&self.spec["maxUnavailable"]),
            unhealthy: UnhealthyPolicy::parse(policy),
            ..Budget::default()
        }
    }
}

fn int_or_percent(value: &Value) -> Option<IntOrPercent> {
    match value {
        Value::Number(number) => number.as_i64().and_then(|n| n.try_into().ok()).map(IntOrPercent::Int),
        Value::String(text) => text.strip_suffix('%')?.parse().ok().map(IntOrPercent::Percent),
        _ => None,
    }
}

fn selector(value: &Value) -> Option<Selector> {
    let fields = value.as_object()?;
    let text = |value: &Value| Name::from(value.as_str().unwrap_or_default());
    let mut requirements = Vec::new();
    for (key, value) in fields.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
        let operator = SelectorOperator::In(vec![text(value)]);
        requirements.push(Requirement { key: Name::from(&**key), operator });
    }
    for expression in fields.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
        let values: Vec<Name> = expression["values"].as_array().into_iter().flatten().map(text).collect();
        let operator = match expression["operator"].as_str() {
            Some("In") => SelectorOperator::In(values),
            Some("NotIn") => SelectorOperator::NotIn(values),
            Some("Exists") => SelectorOperator::Exists,
            Some("DoesNotExist") => SelectorOperator::DoesNotExist,
            _ => SelectorOperator::Invalid,
        };
        requirements.push(Requirement { key: text(&expression["key"]), operator });
    }
    Some(Selector { requirements })
}

fn node(name: &str) -> Node {
    let ready = kordon_core::cluster::Condition {
        kind: kordon_core::cluster::READY.into(),
        status: ConditionStatus::True,
        ..kordon_core::cluster::Condition::default()
    };
    Node {
        name: name.into(),
        uid: uid("Node", name),
        version: Version(1),
        conditions: [ready].into(),
        ..Node::default()
    }
}

/// Environment of the recorded drains. No kubelet runs, so pods terminate only with a grace period of zero. Only pods
/// of ReplicaSets are replaced, and only if the recording says so.
#[derive(Clone, Debug)]
struct Bare {
    replaced_after: Option<Span>,
}

impl Environment for Bare {
    fn time_to_terminate(&self, _pod: &Pod, _grace: Span) -> Estimate {
        Estimate::NEVER
    }

    fn land(&mut self, pod: &Pod, _closed: &BTreeSet<NodeName>) -> Landing {
        let replica_set = OwnerKind::Workload(WorkloadKind::ReplicaSet);
        let is_replaced = pod.owner.as_ref().is_some_and(|owner| owner.kind == replica_set);
        if is_replaced && self.replaced_after.is_some() {
            Landing::Unknown
        } else {
            Landing::Pending { why: "nobody replaces it".into() }
        }
    }

    fn time_to_ready(&self, _pod: &Pod, _landing: &Landing) -> Estimate {
        self.replaced_after.map_or(Estimate::NEVER, Estimate::exactly)
    }
}
