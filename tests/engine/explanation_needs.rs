//! Checks that an explanation needs no more scopes (sets of objects) than it declares: an explanation from these scopes
//! is the same as one from the whole cluster.

use std::{collections::BTreeSet, sync::Arc};

use kordon::{
    k8s::feed::FeedEvent,
    model::{ConnectionInfo, ControllerRole, Model, ModelOptions},
};
use kordon_core::{
    cluster::{
        AccessModes, Budget, Change, Claim, Cluster, Condition, ConditionStatus, FeedKind, Key, LeaderLease,
        Lease, Name, Node, NodeName, ObjectEvent, Owner, OwnerKind, Phase, Pod, PodReady, READY, Scope,
        Selector, Taint, TaintEffect, Termination, Toleration, TolerationOperator, Uid, Version, Volume,
        VolumeProperties, Workload, WorkloadKind, WorkloadStage,
        scheduling::{PodVolume, SchedulingSpec},
    },
    engine::{Origin, ServerVersion, Settings, UNREACHABLE},
    why::{Step, needs},
};
use kordon_time::{ClusterTime, Span, Timestamp};
use proptest::{collection::vec, prelude::*, sample::select};

use crate::reads::read;

const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

const NODES: usize = 4;

/// A node of a random cluster.
#[derive(Clone, Debug)]
struct RandomNode {
    /// Seconds since the node's Lease was renewed.
    silent: i64,
    ready: ConditionStatus,
    /// Seconds since the node got its NoExecute taint; `None` without the taint.
    tainted: Option<i64>,
}

/// A pod of a random cluster, with its owner, budget and claim.
#[derive(Clone, Debug)]
struct RandomPod {
    namespace: &'static str,
    /// Index of the node. The last two values stand for a node that does not exist and for no node.
    node: usize,
    tolerates: Option<i64>,
    is_ready: bool,
    phase: Phase,
    reason: &'static str,
    is_terminating: bool,
    owner: Option<WorkloadKind>,
    has_budget: bool,
    claim: Option<AccessModes>,
}

fn node() -> impl Strategy<Value = RandomNode> {
    let ready = select(vec![ConditionStatus::True, ConditionStatus::False, ConditionStatus::Unknown]);
    (select(vec![1, 30, 47, 400]), ready, select(vec![None, None, Some(10), Some(290)]))
        .prop_map(|(silent, ready, tainted)| RandomNode { silent, ready, tainted })
}

fn pod() -> impl Strategy<Value = RandomPod> {
    let owner = select(vec![
        None,
        Some(WorkloadKind::ReplicaSet),
        Some(WorkloadKind::StatefulSet),
        Some(WorkloadKind::DaemonSet),
        Some(WorkloadKind::Job),
    ]);
    let once = AccessModes { read_write_once: true, ..AccessModes::default() };
    let many = AccessModes { read_write_many: true, ..AccessModes::default() };
    let phase = select(vec![Phase::Running, Phase::Running, Phase::Running, Phase::Succeeded, Phase::Failed]);
    (
        (select(vec!["web", "data"]), 0..NODES + 2, select(vec![None, Some(0), Some(5), Some(300)])),
        (any::<bool>(), phase, select(vec!["", "", "NodeLost"]), prop::bool::weighted(0.2)),
        (owner, any::<bool>(), select(vec![None, Some(once), Some(many)])),
    )
        .prop_map(|((namespace, node, tolerates), (is_ready, phase, reason, is_terminating), rest)| {
            let (owner, has_budget, claim) = rest;
            RandomPod {
                namespace,
                node,
                tolerates,
                is_ready,
                phase,
                reason,
                is_terminating,
                owner,
                has_budget,
                claim,
            }
        })
}

fn written(secs: i64) -> ClusterTime {
    ClusterTime::new(NOW + Span::from_secs(secs))
}

/// Returns nodes, Leases and the controller's Lease, which the engine needs to start.
fn alive(nodes: &[RandomNode]) -> Vec<Change> {
    let (mut changes, mut leases) = (vec![Change::Node(ObjectEvent::ListStarted)], Vec::new());
    for (number, random) in nodes.iter().enumerate() {
        let name = format!("n{number}");
        let taint = |ago: i64| Taint {
            key: UNREACHABLE.into(),
            effect: TaintEffect::NoExecute,
            time_added: Some(written(-ago)),
            ..Taint::default()
        };
        let ready = Condition {
            kind: READY.into(),
            status: random.ready,
            last_heartbeat: Some(written(-random.silent)),
            last_transition: Some(written(-random.silent)),
            ..Condition::default()
        };
        changes.push(Change::Node(ObjectEvent::Listed(Node {
            name: name.as_str().into(),
            uid: Uid::from(name.as_str()),
            version: Version(1),
            created: written(-90_000),
            conditions: [ready].into(),
            taints: random.tainted.map(taint).into_iter().collect(),
            ..Node::default()
        })));
        leases.push(Change::Lease(ObjectEvent::Listed(Lease {
            node: name.as_str().into(),
            version: Version(1),
            renewed: Some(written(-random.silent)),
            duration: Some(Span::from_secs(40)),
            written: None,
        })));
    }
    changes.extend([Change::Node(ObjectEvent::ListDone), Change::Lease(ObjectEvent::ListStarted)]);
    changes.extend(leases);
    changes.push(Change::Lease(ObjectEvent::ListDone));
    changes.push(Change::Leader(Some(LeaderLease {
        holder: "one".into(),
        acquired: Some(written(-80_000)),
        renewed: Some(written(-1)),
        ..LeaderLease::default()
    })));
    changes
}

/// Returns a pod and the objects that belong to it.
fn objects(random: &RandomPod, number: usize) -> Vec<Change> {
    let name = format!("p{number}");
    let key = Key::new(random.namespace, &name);
    let node = match random.node {
        node if node < NODES => Some(NodeName::from(format!("n{node}").as_str())),
        NODES => Some("removed".into()),
        _ => None,
    };
    let toleration = Toleration {
        key: UNREACHABLE.into(),
        operator: TolerationOperator::Exists,
        seconds: random.tolerates,
        ..Toleration::default()
    };
    let owner = |kind| Owner {
        kind: OwnerKind::Workload(kind),
        name: name.as_str().into(),
        uid: Uid::from(format!("owner-{name}").as_str()),
    };
    let volumes = random.claim.map(|_| PodVolume::Claim(name.as_str().into())).into_iter().collect();
    let status = if random.is_ready { ConditionStatus::True } else { ConditionStatus::False };
    let selector = Selector::parse(&format!("app={name}")).expect("a selector");
    let version = Version(10);
    let mut changes = vec![Change::Pod(ObjectEvent::Applied(Pod {
        key: key.clone(),
        uid: Uid::from(name.as_str()),
        version,
        created: written(-80_000 + i64::try_from(number).expect("few")),
        labels: [(Name::from("app"), Name::from(name.as_str()))].into(),
        owner: random.owner.map(|kind| owner(kind).into()),
        node,
        tolerations: [toleration].into(),
        scheduling: Arc::new(SchedulingSpec { volumes, ..SchedulingSpec::default() }),
        grace: Span::from_secs(30),
        phase: random.phase,
        reason: random.reason.into(),
        ready: Some(PodReady { status, last_transition: Some(written(-200)) }),
        termination: random
            .is_terminating
            .then(|| Termination { deadline: written(10), grace: Span::from_secs(30) }.into()),
        ..Pod::default()
    }))];
    if let Some(kind) = random.owner {
        changes.push(Change::Workload(
            kind,
            ObjectEvent::Applied(Workload {
                kind,
                key: key.clone(),
                uid: owner(kind).uid,
                version,
                replicas: Some(1),
                selector: Some(selector.clone()),
                owner: None,
                replaces_only_failed: number.is_multiple_of(2),
                is_recreated: false,
                reboot_locks: Vec::new(),
                stateful: None,
                job: None,
                template: None,
                stage: WorkloadStage::Active,
            }),
        ));
    }
    if random.has_budget {
        let (key, selector) = (key.clone(), Some(selector));
        changes.push(Change::Budget(ObjectEvent::Applied(Budget {
            key,
            version,
            selector,
            ..Budget::default()
        })));
    }
    if let Some(modes) = random.claim {
        let volume = Name::from(format!("pv-{name}").as_str());
        let properties = VolumeProperties { modes, ..VolumeProperties::default() };
        let claim = Claim { key, version, volume: volume.clone(), ..Claim::default() };
        changes.push(Change::Claim(ObjectEvent::Applied(claim)));
        let volume = Volume { name: volume, version, properties, ..Volume::default() };
        changes.push(Change::Volume(ObjectEvent::Applied(volume)));
    }
    changes
}

/// Returns all scopes (sets of objects) that explanations may read.
fn all() -> Vec<Scope> {
    let workloads = WorkloadKind::ALL.map(Scope::Workloads);
    let others =
        [Scope::Pods, Scope::Budgets, Scope::Claims, Scope::Volumes, Scope::Whole(FeedKind::CsiDrivers)];
    others.into_iter().chain(workloads).collect()
}

fn model(settings: &Settings, nodes: &[RandomNode]) -> Model {
    let options = ModelOptions {
        connection: ConnectionInfo::default(),
        settings: settings.clone(),
        role: ControllerRole::Shadow,
    };
    let mut model = Model::new(options, NOW);
    model.on_watch_event(FeedEvent::Changes(alive(nodes)), NOW);
    model
}

/// Reads the scopes (sets of objects) that an explanation needs. Returns these scopes and the explanation based on
/// them.
fn over_needs(
    mut model: Model,
    server: &Cluster,
    needs: impl Fn(&Model) -> BTreeSet<Scope>,
    explain: impl Fn(&Model) -> Vec<Step>,
) -> (BTreeSet<Scope>, Vec<Step>) {
    let mut scopes = BTreeSet::new();
    loop {
        let missing: Vec<Scope> = needs(&model).difference(&scopes).cloned().collect();
        if missing.is_empty() {
            model.run_forecast(NOW);
            return (scopes, explain(&model));
        }
        for scope in missing {
            model.apply(read(server, &scope), NOW);
            scopes.insert(scope);
        }
    }
}

fn explain_pod(model: &Model, pod: &Key) -> Vec<Step> {
    let explainer = model.explainer(NOW).expect("the engine runs");
    explainer.pod(model.cluster.pod(pod).expect("it was read"))
}

fn explain_node(model: &Model, node: &NodeName) -> Vec<Step> {
    let explainer = model.explainer(NOW).expect("the engine runs");
    explainer.node(model.cluster.node(node).expect("it was listed"))
}

proptest! {
    // Few cases, because each runs dozens of forecasts.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn an_explanation_says_the_same_over_what_it_needs_and_over_all(
        nodes in vec(node(), NODES),
        pods in vec(pod(), 1..12),
        is_legacy in prop::bool::weighted(0.2),
        kept in select(vec![12_500, 1]),
    ) {
        let mut settings = Settings::defaults(ServerVersion::new(1, if is_legacy { 26 } else { 36 }));
        settings.set("enable-taint-manager", "false", Origin::Cluster).expect("a flag of old");
        let kept = kept.to_string();
        settings.set("terminated-pod-gc-threshold", &kept, Origin::Cluster).expect("a number");
        let start = model(&settings, &nodes);
        let (mut server, mut whole) = (Cluster::default(), start.clone());
        let owned = pods.iter().enumerate().flat_map(|(number, pod)| objects(pod, number));
        for change in alive(&nodes).into_iter().chain(owned) {
            server.apply(change, &mut Vec::new());
        }
        for scope in all() {
            whole.apply(read(&server, &scope), NOW);
        }
        whole.run_forecast(NOW);
        for pod in whole.cluster.pods().iter() {
            let pod = &pod.key;
            let needs = |model: &Model| needs::of_pod(pod, &model.cluster, &settings);
            let (scopes, steps) =
                over_needs(start.clone(), &server, needs, |model| explain_pod(model, pod));
            prop_assert_eq!(&steps, &explain_pod(&whole, pod), "{} over {:?}", pod, scopes);
            prop_assert_eq!(scopes.contains(&Scope::Pods), is_legacy);
        }
        for node in whole.cluster.nodes().iter() {
            let node = &node.name;
            let needs = |model: &Model| needs::of_node(node, &model.cluster, &settings);
            let (scopes, steps) =
                over_needs(start.clone(), &server, needs, |model| explain_node(model, node));
            prop_assert_eq!(&steps, &explain_node(&whole, node), "{} over {:?}", node, scopes);
            prop_assert_eq!(scopes.contains(&Scope::Pods), is_legacy);
        }
    }
}
