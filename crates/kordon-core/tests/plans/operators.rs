//! Kubernetes operators that move the primary role, lift budgets or move pods themselves when a node is cordoned or
//! drained (docs/owners.md).

use kordon_core::{
    cluster::{
        Cluster, Key, KnownSetting, Name, OperatorSettings, Owner, OwnerDecision, OwnerKind, Pod, PodReady,
        Requirement, Scope, Selector, SelectorOperator, Taint, WorkloadKind,
    },
    plan::{
        Action, BlockPattern, CordonAct, DrainOptions, EvictionRules, KubectlDifference, OperatorAct,
        OutcomeKind, Plan, PodWarning, Prospect, Retry, Verdict, Warning, needs, refusal,
    },
};
use kordon_time::{ClusterTime, Span};

use crate::{
    plan_fixture::{NEWEST, NOW, PlanFixture, at, least, not_ready, of, own, uid},
    reads::read,
};

/// CloudNativePG's cluster `orders`, with instances on these nodes. The first one is the primary.
fn cloud_native_pg(nodes: &[&str], instances: &[&str]) -> PlanFixture {
    let mut fixture = PlanFixture::new(nodes);
    for (place, node) in instances.iter().enumerate() {
        let role = if place == 0 { "primary" } else { "replica" };
        fixture.pod(&format!("orders-{place}"), node, |pod| {
            pod.owner = Some(owner("Cluster", "postgresql.cnpg.io", "orders").into());
            pod.labels = labels([("cnpg.io/cluster", "orders"), ("cnpg.io/instanceRole", role)]);
            pod.ready = ready_since(3600);
        });
    }
    protect(&mut fixture, "orders-primary", ("cnpg.io/instanceRole", "primary"), 1);
    fixture
}

/// The Postgres Operator's cluster `acid`, with instances on these nodes. The first one is the master.
fn postgres_operator(nodes: &[&str], instances: &[&str]) -> PlanFixture {
    let mut fixture = PlanFixture::new(nodes);
    let replicas = i32::try_from(instances.len()).expect("few");
    fixture.owner(WorkloadKind::StatefulSet, "acid", replicas);
    for (place, node) in instances.iter().enumerate() {
        let role = if place == 0 { "master" } else { "replica" };
        fixture.pod(&format!("acid-{place}"), node, |pod| {
            own(pod, WorkloadKind::StatefulSet, "acid");
            pod.labels = labels([("application", "spilo"), ("spilo-role", role)]);
            pod.ready = ready_since(3600);
        });
    }
    protect(&mut fixture, "acid", ("spilo-role", "master"), 1);
    fixture
}

fn owner(kind: &str, group: &str, name: &str) -> Owner {
    Owner { kind: OwnerKind::other(kind, group), name: name.into(), uid: uid(kind, name) }
}

fn labels<const N: usize>(labels: [(&str, &str); N]) -> kordon_core::cluster::Labels {
    labels.map(|(key, value)| (Name::from(key), Name::from(value))).into()
}

fn ready_since(seconds: i64) -> Option<PodReady> {
    let last_transition = Some(ClusterTime::new(NOW - Span::from_secs(seconds)));
    Some(PodReady { status: kordon_core::cluster::ConditionStatus::True, last_transition })
}

/// Adds a budget over the pods with this label.
fn protect(fixture: &mut PlanFixture, name: &str, label: (&str, &str), min: i32) {
    let operator = SelectorOperator::In(vec![label.1.into()]);
    let selector = Selector { requirements: vec![Requirement { key: label.0.into(), operator }] };
    fixture
        .budget(name, |budget| {
            budget.selector = Some(selector);
            budget.min_available = least(min);
        })
        .sync();
}

fn drained(fixture: &PlanFixture, nodes: &[&str]) -> Plan {
    fixture.drain(nodes, DrainOptions { retry: Retry::OnRecovery, ..DrainOptions::default() })
}

fn leaves_by(plan: &Plan, pod: &str) -> Option<OperatorAct> {
    match &of(plan, pod).verdict {
        Verdict::LeavesAfter { operator, .. } => *operator,
        other => panic!("{other:?}"),
    }
}

/// Returns the names of the pods that the Kubernetes operator waits for before it moves the role of `pod`.
fn awaited(plan: &Plan, pod: &str) -> Vec<String> {
    match &of(plan, pod).verdict {
        Verdict::WaitsForOperator { pods, .. } => pods.iter().map(|pod| pod.name.to_string()).collect(),
        other => panic!("{other:?}"),
    }
}

fn pattern(plan: &Plan, pod: &str) -> BlockPattern {
    match &of(plan, pod).verdict {
        Verdict::Blocked { pattern, .. } => pattern.clone(),
        other => panic!("{other:?}"),
    }
}

const CNPG: &str = "CloudNativePG";
const ZALANDO: &str = "Postgres Operator";

/// Once the primary role has moved, the budget of the primary protects and counts the new primary, so its numbers stay
/// the same.
#[test]
fn the_role_moves_to_a_replica_and_the_budget_with_it() {
    let plan = drained(&cloud_native_pg(&["n1", "n2", "n3"], &["n1", "n2", "n3"]), &["n1"]);
    assert_eq!(leaves_by(&plan, "orders-0"), Some(OperatorAct::MovesRole { operator: CNPG }));
    assert_eq!(at(of(&plan, "orders-0").leaves.likely), Some(11));
    assert!(of(&plan, "orders-0").warnings.contains(&PodWarning::SwitchesOver));
    let after = plan.budgets[0].after.numbers;
    assert_eq!((after.expected, after.healthy, after.allowed), (1, 1, 0));
    assert_eq!(plan.prospect(), Prospect::Completes);
}

/// cloudnative-pg main of 2026-08 `internal/controller/replicas.go`, `setPrimaryOnSchedulableNode`: before it moves the
/// primary, the operator waits for replicas that are not Ready, but not for failed ones.
#[test]
fn cloud_native_pg_waits_until_all_instances_are_ready_elsewhere() {
    let mut fixture = cloud_native_pg(&["n1", "n2", "n3"], &["n1", "n2", "n3"]);
    fixture.pod("orders-2", "n3", not_ready);
    let plan = drained(&fixture, &["n1"]);
    assert_eq!(awaited(&plan, "orders-0"), ["orders-2"]);
    assert!(of(&plan, "orders-0").warnings.contains(&PodWarning::NoReplica));
    assert_eq!(plan.prospect(), Prospect::Stalls);
    fixture.pod("orders-2", "n3", |pod| pod.phase = kordon_core::cluster::Phase::Failed);
    let failed = drained(&fixture, &["n1"]);
    assert!(leaves_by(&failed, "orders-0").is_some(), "a failed pod is not waited for");
}

/// cloudnative-pg `internal/configuration/configuration.go`, `DefaultDrainTaints`.
#[test]
fn a_replica_on_a_node_that_is_drained_by_its_taint_takes_no_role() {
    let mut fixture = cloud_native_pg(&["n1", "n2"], &["n1", "n2"]);
    assert!(leaves_by(&drained(&fixture, &["n1"]), "orders-0").is_some());
    fixture.node("n2", |node| {
        node.taints = [Taint { key: "karpenter.sh/disrupted".into(), ..Taint::default() }].into();
    });
    assert_eq!(awaited(&drained(&fixture, &["n1"]), "orders-0"), ["orders-1"]);
}

#[test]
fn a_replica_on_the_node_of_the_primary_moves_first() {
    let plan = drained(&cloud_native_pg(&["n1", "n2"], &["n1", "n1"]), &["n1"]);
    assert_eq!(at(of(&plan, "orders-1").ready_again), Some(40));
    assert_eq!(leaves_by(&plan, "orders-0"), Some(OperatorAct::MovesRole { operator: CNPG }));
    assert_eq!(at(of(&plan, "orders-0").leaves.likely), Some(51), "11 s after the replica is Ready again");
}

#[test]
fn an_operator_that_has_not_acted_since_the_cordon_is_not_counted_on() {
    let cordoned = |seconds: i64| {
        let mut fixture = cloud_native_pg(&["n1", "n2", "n3"], &["n1", "n2", "n3"]);
        fixture.node("n1", |node| {
            let time_added = Some(ClusterTime::new(NOW - Span::from_secs(seconds)));
            let key = "node.kubernetes.io/unschedulable".into();
            node.unschedulable = true;
            node.taints = [Taint { key, time_added, ..Taint::default() }].into();
        });
        drained(&fixture, &["n1"])
    };
    assert!(leaves_by(&cordoned(60), "orders-0").is_some());
    let since = Span::from_secs(900);
    assert_eq!(pattern(&cordoned(900), "orders-0"), BlockPattern::NotMoved { operator: CNPG, since });
}

#[test]
fn a_cluster_of_one_instance_is_blocked_and_only_a_cordon_moves_a_role() {
    let alone = cloud_native_pg(&["n1", "n2"], &["n1"]);
    let plan = drained(&alone, &["n1"]);
    assert_eq!(pattern(&plan, "orders-0"), BlockPattern::NoReplica { operator: CNPG });
    assert_eq!(plan.prospect(), Prospect::Blocked);
    let evicted = cloud_native_pg(&["n1", "n2"], &["n1", "n2"]).evictions(&["orders-0"]);
    assert_eq!(pattern(&evicted, "orders-0"), BlockPattern::NotCordoned { operator: CNPG });
}

/// zalando/postgres-operator master of 2026 `pkg/cluster/pod.go`, `MigrateMasterPod`: the operator deletes the pod of a
/// cluster with one instance.
#[test]
fn the_postgres_operator_deletes_the_only_instance_itself() {
    let plan = drained(&postgres_operator(&["n1", "n2"], &["n1"]), &["n1"]);
    assert_eq!(leaves_by(&plan, "acid-0"), Some(OperatorAct::Restarts { operator: ZALANDO }));
    assert_eq!(at(of(&plan, "acid-0").leaves.likely), Some(1));
    assert!(of(&plan, "acid-0").warnings.contains(&PodWarning::OperatorRestarts));
    assert_eq!(plan.prospect(), Prospect::Completes);
}

/// zalando/postgres-operator master of 2026 `pkg/cluster/pod.go`, `movePodFromEndOfLifeNode`: if the replica that takes
/// over is on a cordoned node, too, the operator first moves this replica.
#[test]
fn the_postgres_operator_first_moves_a_replica_from_a_cordoned_node() {
    let mut fixture = postgres_operator(&["n1", "n2", "n3"], &["n1", "n2"]);
    fixture.node("n2", |node| node.unschedulable = true);
    let plan = drained(&fixture, &["n1"]);
    assert_eq!(leaves_by(&plan, "acid-0"), Some(OperatorAct::MovesRole { operator: ZALANDO }));
    assert_eq!(at(of(&plan, "acid-0").leaves.likely), Some(30 + 10 + 11));
    fixture.environment.room = 0;
    assert_eq!(awaited(&drained(&fixture, &["n1"]), "acid-0"), ["acid-1"], "no node takes the replica");
}

/// Returns what the operator does with the only pod that has a role, in the plan of a cordon.
fn act(plan: &Plan) -> Option<CordonAct> {
    plan.warnings.iter().find_map(|warning| match warning {
        Warning::Switchover { act, pods: 1, .. } => Some(*act),
        _ => None,
    })
}

fn read_into(part: &mut Cluster, whole: &Cluster, scopes: impl IntoIterator<Item = Scope>) {
    let changes = scopes.into_iter().flat_map(|scope| read(whole, &scope));
    changes.for_each(|change| part.apply(change, &mut Vec::new()));
}

/// A cordon reads the pods of its node first.
#[test]
fn instances_that_were_not_read_do_not_count_as_missing() {
    for fixture in
        [cloud_native_pg(&["n1", "n2"], &["n1", "n2"]), postgres_operator(&["n1", "n2"], &["n1", "n2"])]
    {
        let mut part = Cluster::default();
        let cordon = Action::Cordon { nodes: vec!["n1".into()] };
        let plan = |part: &Cluster| Plan::over(cordon.clone(), part, None, NEWEST, NOW).expect("a plan");
        read_into(&mut part, &fixture.cluster, [Scope::Nodes, Scope::PodsOn("n1".into())]);
        assert_eq!(act(&plan(&part)), Some(CordonAct::Unknown));
        let needed = needs::of_switchovers(&part, &["n1".into()]);
        read_into(&mut part, &fixture.cluster, needed);
        assert_eq!(act(&plan(&part)), Some(CordonAct::MovesRole));
    }
}

#[test]
fn a_refused_eviction_depends_on_the_other_instances() {
    let fixture = cloud_native_pg(&["n1", "n2"], &["n1", "n2"]);
    let (mut part, rules) = (Cluster::default(), EvictionRules::for_version(NEWEST));
    let key = Key::new("default", "orders-0");
    let scopes = [
        Scope::Node("n1".into()),
        Scope::Pod(key.clone()),
        Scope::BudgetsIn("default".into()),
        Scope::Namespace("default".into()),
    ];
    read_into(&mut part, &fixture.cluster, scopes);
    let refused = |part: &Cluster| refusal(part, part.pod(&key).expect("a pod"), &rules, NOW);
    let unknown = refused(&part);
    assert!(matches!(unknown, Some(Verdict::Unknown { .. })), "{unknown:?}");
    let needed = needs::of_refusals(&part, part.pod(&key).map(|pod| &**pod).into_iter());
    read_into(&mut part, &fixture.cluster, needed);
    let known = refused(&part);
    let is_not_cordoned = |pattern: &BlockPattern| matches!(pattern, BlockPattern::NotCordoned { .. });
    assert!(
        matches!(&known, Some(Verdict::Blocked { pattern, .. }) if is_not_cordoned(pattern)),
        "{known:?}"
    );
}

#[test]
fn a_cordon_says_what_operators_do() {
    let acts = |fixture: &PlanFixture| act(&fixture.plan(Action::Cordon { nodes: vec!["n1".into()] }));
    assert_eq!(acts(&cloud_native_pg(&["n1", "n2"], &["n1", "n2"])), Some(CordonAct::MovesRole));
    assert_eq!(acts(&cloud_native_pg(&["n1", "n2"], &["n1"])), Some(CordonAct::Nothing));
    assert_eq!(acts(&postgres_operator(&["n1", "n2"], &["n1"])), Some(CordonAct::Restarts));
}

/// Three pods of an owner of this kind. Their budget requires all three.
fn all_required(kind: &str, group: &str) -> PlanFixture {
    let mut fixture = PlanFixture::new(&["n1", "n2", "n3"]);
    for node in ["n1", "n2", "n3"] {
        fixture.pod(&format!("on-{node}"), node, |pod: &mut Pod| {
            pod.owner = Some(owner(kind, group, "set").into());
            pod.labels = labels([("app", "set")]);
        });
    }
    protect(&mut fixture, "set", ("app", "set"), 3);
    fixture
}

#[test]
fn a_budget_whose_pods_are_all_there_and_healthy_waits_for_none() {
    let plan = drained(&all_required("VitessShard", "planetscale.com"), &["n1"]);
    assert_eq!(pattern(&plan, "on-n1"), BlockPattern::AllHealthy { needs: 3 });
    assert!(!of(&plan, "on-n1").verdict.to_string().contains("missing"));
    assert_eq!(plan.prospect(), Prospect::Blocked);
}

#[test]
fn a_budget_that_a_known_operator_lifts_waits_for_it() {
    for (kind, group, operator) in [
        ("StrimziPodSet", "core.strimzi.io", "Strimzi"),
        ("VirtualMachineInstance", "kubevirt.io", "KubeVirt"),
        ("InstanceManager", "longhorn.io", "Longhorn"),
    ] {
        let plan = drained(&all_required(kind, group), &["n1"]);
        assert_eq!(awaited(&plan, "on-n1"), [""; 0]);
        assert!(of(&plan, "on-n1").verdict.to_string().contains(operator), "{operator}");
        assert_eq!(plan.prospect(), Prospect::Stalls);
    }
    let other = drained(&all_required("StrimziPodSet", "example.com"), &["n1"]);
    assert_eq!(pattern(&other, "on-n1"), BlockPattern::AllHealthy { needs: 3 });
}

#[test]
fn an_operator_that_lacks_what_it_needs_is_not_waited_for() {
    let mut fixture = all_required("StrimziPodSet", "core.strimzi.io");
    let known = |setting: KnownSetting| OperatorSettings {
        settings: [(uid("StrimziPodSet", "set"), setting)].into(),
        ..OperatorSettings::default()
    };
    let text = |fixture: &PlanFixture| of(&drained(fixture, &["n1"]), "on-n1").verdict.to_string();
    let ends = |text: &str, end: &str| assert!(text.ends_with(end), "{text}");
    ends(&text(&fixture), "; it needs Strimzi Drain Cleaner");
    fixture.operator_settings(known(KnownSetting::Found("that is there".into())));
    ends(&text(&fixture), "; it needs Strimzi Drain Cleaner, and that is there");
    fixture.operator_settings(known(KnownSetting::Unreadable("forbidden".into())));
    ends(&text(&fixture), "; it needs Strimzi Drain Cleaner, which is not known: forbidden");
    fixture.operator_settings(known(KnownSetting::Missing));
    let plan = drained(&fixture, &["n1"]);
    let lacks = BlockPattern::OperatorLacks { operator: "Strimzi", needs: "Strimzi Drain Cleaner" };
    assert_eq!((pattern(&plan, "on-n1"), plan.prospect()), (lacks, Prospect::Blocked));
}

#[test]
fn the_settings_of_a_virtual_machine_say_what_becomes_of_it() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture.pod("vm", "n1", |pod| {
        pod.owner = Some(owner("VirtualMachineInstance", "kubevirt.io", "vm").into());
    });
    let vm = uid("VirtualMachineInstance", "vm");
    let drain = |fixture: &PlanFixture| {
        let plan = drained(fixture, &["n1"]);
        let row = of(&plan, "vm");
        (row.outcome.kind(), row.warnings.contains(&PodWarning::OperatorDenies))
    };
    assert_eq!(drain(&fixture), (OutcomeKind::Unknown, true));
    for (decision, outcome) in
        [(OwnerDecision::Recreates, OutcomeKind::Moves), (OwnerDecision::Ends, OutcomeKind::Lost)]
    {
        fixture.operator_settings(OperatorSettings {
            settings: [(vm.clone(), KnownSetting::Missing)].into(),
            decisions: [(vm.clone(), decision)].into(),
        });
        assert_eq!(drain(&fixture), (outcome, false), "{decision:?}");
    }
    fixture.operator_settings(OperatorSettings {
        settings: [(vm, KnownSetting::Unreadable("forbidden".into()))].into(),
        ..OperatorSettings::default()
    });
    let text = of(&drained(&fixture, &["n1"]), "vm").outcome.to_string();
    assert!(text.contains("owned by VirtualMachineInstance vm, which cannot be read: forbidden"), "{text}");
}

#[test]
fn only_settings_of_pods_that_leave_are_read() {
    let fixture = all_required("StrimziPodSet", "core.strimzi.io");
    let owners = |action: Action| needs::owners_with_settings(&action, &fixture.cluster).len();
    let nodes = || vec!["n1".into(), "n2".into()];
    assert_eq!(owners(Action::DeleteNode { nodes: nodes() }), 1, "both pods have one owner");
    assert_eq!(owners(Action::Cordon { nodes: nodes() }), 0);
    let decides = all_required("GameServer", "agones.dev");
    assert_eq!(
        needs::owners_with_settings(&Action::DeleteNode { nodes: nodes() }, &decides.cluster).len(),
        1
    );
    let other = all_required("VitessShard", "planetscale.com");
    assert!(needs::owners_with_settings(&Action::DeleteNode { nodes: nodes() }, &other.cluster).is_empty());
}

/// kubectl 1.37 `pkg/drain/drain.go`, `evictPods`, evicts by name until the eviction is allowed.
#[test]
fn kubectl_follows_the_names_that_an_operator_gives_again() {
    let follows = |kind: &str, group: &str| {
        let differences = KubectlDifference::all(&drained(&all_required(kind, group), &["n1"]));
        differences.iter().any(|difference| matches!(difference, KubectlDifference::FollowsName { .. }))
    };
    assert!(follows("StrimziPodSet", "core.strimzi.io"));
    assert!(!follows("StrimziPodSet", "example.com"), "nothing is known of its names");
}

#[test]
fn a_pod_whose_operator_may_deny_the_eviction_says_so() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture.pod("vm", "n1", |pod| {
        pod.owner = Some(owner("VirtualMachineInstance", "kubevirt.io", "vm").into());
    });
    let plan = drained(&fixture, &["n1"]);
    assert!(of(&plan, "vm").warnings.contains(&PodWarning::OperatorDenies));
}
