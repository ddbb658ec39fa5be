//! Headroom by proofs is headroom by simulation, wherever its work is interrupted.

use std::{cell::Cell, sync::Arc};

use proptest::{collection::vec, prelude::*};

use kordon::{
    cluster::{
        AccessModes, Change, Claim, Key, Labels, Name, NodeName, ObjectEvent, Requests, Resources,
        SchedulingSpec, Selector, SelectorOperator, Volume, VolumeProperties, WorkloadKind,
        scheduling::{
            HostPort, NodeOperator, NodeRequirement, NodeTerm, PodTerm, PodTerms, PodVolume, SpreadConstraint,
        },
    },
    engine::ServerVersion,
    ordered::OrderedSet,
    placement::{FitProof, Snapshot},
    plan::{
        Headroom, HeadroomWork, PlacingEnvironment,
        failover::{failover, leave_lost_nodes},
        headroom,
    },
    time::Timestamp,
};

use crate::plan_fixture::{NEWEST, PlanFixture, own, taint, tolerates};

const ZONE: &str = "topology.kubernetes.io/zone";
const HOSTNAME: &str = "kubernetes.io/hostname";

#[derive(Clone, Debug)]
struct RandomNode {
    zone: usize,
    cores: i64,
    pods: i64,
    gpus: i64,
    large: bool,
    tainted: bool,
    cordoned: bool,
}

/// What the pods of one workload ask for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ask {
    Plain,
    Large,
    Apart {
        zone: bool,
    },
    /// Apart from the workload before it.
    AwayFromOthers,
    Near {
        zone: bool,
    },
    Spread {
        zone: bool,
        max_skew: i32,
        min_domains: i32,
    },
    SpreadTwice,
    Port,
    Gpu,
    Volume {
        zone: usize,
        once: bool,
    },
}

#[derive(Clone, Debug)]
struct RandomWorkload {
    ask: Ask,
    kind: Option<WorkloadKind>,
    priority: i32,
    never_preempts: bool,
    tolerates: bool,
    /// Fewer are wanted than there are.
    surplus: bool,
    /// By pod: its node, and what it requests.
    pods: Vec<(usize, i64, i64)>,
}

fn random_node() -> impl Strategy<Value = RandomNode> {
    let flags = (prop::bool::ANY, prop::bool::weighted(0.15), prop::bool::weighted(0.1));
    let pods = prop::sample::select(vec![4_i64, 110]);
    let gpus = prop::sample::select(vec![0_i64, 0, 2]);
    (0_usize..3, 2_i64..10, pods, gpus, flags).prop_map(
        |(zone, cores, pods, gpus, (large, tainted, cordoned))| RandomNode {
            zone,
            cores,
            pods,
            gpus,
            large,
            tainted,
            cordoned,
        },
    )
}

fn random_workload() -> impl Strategy<Value = RandomWorkload> {
    let ask = prop_oneof![
        4 => Just(Ask::Plain),
        1 => Just(Ask::Large),
        2 => prop::bool::ANY.prop_map(|zone| Ask::Apart { zone }),
        1 => Just(Ask::AwayFromOthers),
        1 => prop::bool::ANY.prop_map(|zone| Ask::Near { zone }),
        3 => (prop::bool::ANY, 1_i32..3, 0_i32..4).prop_map(|(zone, max_skew, min_domains)| Ask::Spread {
            zone,
            max_skew,
            min_domains
        }),
        1 => Just(Ask::SpreadTwice),
        1 => Just(Ask::Port),
        1 => Just(Ask::Gpu),
        2 => (0_usize..3, prop::bool::ANY).prop_map(|(zone, once)| Ask::Volume { zone, once }),
    ];
    use WorkloadKind::{DaemonSet, ReplicaSet, StatefulSet};
    let kinds =
        vec![Some(ReplicaSet), Some(ReplicaSet), Some(ReplicaSet), Some(StatefulSet), Some(DaemonSet), None];
    let priority = prop::sample::select(vec![0, 0, 0, 0, 0, 0, 7, -5]);
    let flags = (prop::bool::ANY, prop::bool::weighted(0.3), prop::bool::weighted(0.1));
    (ask, prop::sample::select(kinds), priority, flags, vec((0_usize..9, 1_i64..9, 0_i64..9), 1..5)).prop_map(
        |(ask, kind, priority, (never_preempts, tolerates, surplus), pods)| RandomWorkload {
            ask,
            kind,
            priority,
            never_preempts,
            tolerates,
            surplus,
            pods,
        },
    )
}

fn fixture(nodes: &[RandomNode], workloads: &[RandomWorkload], scale: i64) -> PlanFixture {
    let names: Vec<String> = (0..nodes.len()).map(|number| format!("n{number}")).collect();
    let mut fixture = PlanFixture::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
    for (name, node) in names.iter().zip(nodes) {
        fixture.node(name, |known| {
            let size = if node.large { "large" } else { "small" };
            known.labels = pairs(&[(ZONE, zone(node.zone)), (HOSTNAME, name), ("size", size)]);
            known.allocatable =
                Resources { cpu_milli: node.cores * scale, memory_bytes: 8 * scale, pods: node.pods };
            known.extended = [("example.com/gpu".into(), node.gpus)].into();
            known.unschedulable = node.cordoned;
            if node.tainted {
                known.taints = [taint("dedicated=x:NoSchedule")].into();
            }
        });
    }
    for (number, workload) in workloads.iter().enumerate() {
        add(&mut fixture, number, workload, &names);
    }
    fixture
}

fn zone(number: usize) -> &'static str {
    ["a", "b", "c"][number]
}

fn pairs(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()
}

fn selector(app: &str) -> Selector {
    let operator = SelectorOperator::In(vec![app.into()]);
    Selector { requirements: vec![kordon::cluster::Requirement { key: "app".into(), operator }] }
}

fn add(fixture: &mut PlanFixture, number: usize, workload: &RandomWorkload, nodes: &[String]) {
    let app = format!("w{number}");
    if let Some(kind) = workload.kind {
        let wanted = workload.pods.len() - usize::from(workload.surplus);
        fixture.owner(kind, &app, i32::try_from(wanted).expect("few"));
    }
    for (place, (node, cpu, memory)) in workload.pods.iter().enumerate() {
        let name = format!("{app}-{place}");
        if let Ask::Volume { zone: of, once } = workload.ask {
            bind(fixture, &name, zone(of), once);
        }
        fixture.pod(&name, &nodes[node % nodes.len()], |pod| {
            pod.labels = pairs(&[("app", &app)]);
            pod.priority = workload.priority;
            if let Some(kind) = workload.kind {
                own(pod, kind, &app);
            }
            if workload.tolerates {
                tolerates(pod, "dedicated", None);
            }
            let gpus = if workload.ask == Ask::Gpu {
                [("example.com/gpu".into(), 1)].into()
            } else {
                Box::default()
            };
            let (cpu_milli, memory_bytes) = (*cpu * 300, *memory * 150);
            let requests = Requests { cpu_milli, memory_bytes, scalars: gpus, ..Requests::default() };
            pod.resources = Arc::new(requests.into());
            let spec = spec(workload.ask, number, &name);
            pod.scheduling = Arc::new(SchedulingSpec { never_preempts: workload.never_preempts, ..spec });
        });
    }
}

/// A claim that is bound to a volume in a zone.
fn bind(fixture: &mut PlanFixture, name: &str, zone: &str, once: bool) {
    let modes = AccessModes { read_write_once: !once, read_write_once_pod: once, ..AccessModes::default() };
    let properties = VolumeProperties { modes, ..VolumeProperties::default() };
    let operator = NodeOperator::In([zone.into()].into());
    let expressions = [NodeRequirement { key: ZONE.into(), operator }].into();
    let volume = Volume {
        name: name.into(),
        node_affinity: Some([NodeTerm { expressions, ..NodeTerm::default() }].into()),
        properties,
        handle: Some(("driver".into(), name.into())),
        ..Volume::default()
    };
    let claim = Claim {
        key: Key::new("default", name),
        volume: name.into(),
        is_bound: true,
        requested: properties,
        ..Claim::default()
    };
    fixture.cluster.apply(Change::Volume(ObjectEvent::Applied(volume)), &mut Vec::new());
    fixture.cluster.apply(Change::Claim(ObjectEvent::Applied(claim)), &mut Vec::new());
}

fn spec(ask: Ask, number: usize, pod: &str) -> SchedulingSpec {
    let app = format!("w{number}");
    let key = |zone: bool| Name::from(if zone { ZONE } else { HOSTNAME });
    let term = |app: &str, zone| PodTerm {
        selector: Some(selector(app)),
        topology_key: key(zone),
        ..PodTerm::default()
    };
    let required = |term: PodTerm| PodTerms { required: [term].into(), ..PodTerms::default() };
    let spread = |zone, max_skew, min_domains| SpreadConstraint {
        max_skew,
        topology_key: key(zone),
        hard: true,
        selector: Some(selector(&app)),
        match_label_keys: Box::default(),
        min_domains,
        honours_affinity: true,
        honours_taints: number.is_multiple_of(2),
    };
    let plain = SchedulingSpec::default();
    match ask {
        Ask::Plain | Ask::Gpu => plain,
        Ask::Large => SchedulingSpec { node_selector: [("size".into(), "large".into())].into(), ..plain },
        Ask::Apart { zone } => SchedulingSpec { pod_anti_affinity: required(term(&app, zone)), ..plain },
        Ask::AwayFromOthers => {
            let other = format!("w{}", number.saturating_sub(1));
            SchedulingSpec { pod_anti_affinity: required(term(&other, false)), ..plain }
        }
        Ask::Near { zone } => SchedulingSpec { pod_affinity: required(term(&app, zone)), ..plain },
        Ask::Spread { zone, max_skew, min_domains } => {
            SchedulingSpec { spread: [spread(zone, max_skew, min_domains)].into(), ..plain }
        }
        Ask::SpreadTwice => {
            SchedulingSpec { spread: [spread(true, 1, 1), spread(false, 2, 1)].into(), ..plain }
        }
        Ask::Port => {
            let port = HostPort { ip: "".into(), protocol: "TCP".into(), port: 80 };
            SchedulingSpec { host_ports: [port].into(), ..plain }
        }
        Ask::Volume { .. } => SchedulingSpec { volumes: [PodVolume::Claim(pod.into())].into(), ..plain },
    }
}

/// Every loss of one node and of one zone.
fn losses(fixture: &PlanFixture) -> Vec<OrderedSet<NodeName>> {
    let nodes = || fixture.cluster.nodes().iter();
    let zones: OrderedSet<_> = nodes().map(|node| node.zone()).collect();
    let of_zone = |zone| nodes().filter(|node| node.zone() == zone).map(|node| node.name.clone()).collect();
    nodes().map(|node| [node.name.clone()].into()).chain(zones.into_iter().map(of_zone)).collect()
}

/// How many pods stay Pending by simulation, and of how many.
fn simulated(fixture: &PlanFixture, snapshot: &Snapshot, lost: &OrderedSet<NodeName>) -> (usize, usize) {
    let pods = leave_lost_nodes(&fixture.cluster, lost);
    // The full environment, which takes no shortcuts.
    let environment = PlacingEnvironment::new(&fixture.cluster, snapshot.clone(), Timestamp::EPOCH);
    let found = failover(&fixture.cluster, pods, lost, environment);
    let outcomes = found.all_counts();
    (outcomes.nowhere(), outcomes.total())
}

fn work(fixture: &PlanFixture, version: ServerVersion) -> HeadroomWork {
    let mut work = HeadroomWork::default();
    work.start(fixture.cluster.clone(), version, Timestamp::EPOCH);
    work
}

/// The losses that were proved to fit, counted to leave pods Pending, proved to leave some, and left open.
type Tally = [usize; 4];

fn check_proofs(fixture: &PlanFixture, version: ServerVersion) -> Result<Tally, TestCaseError> {
    let snapshot = Snapshot::new(&fixture.cluster, version);
    let mut work = work(fixture, version);
    let mut tally = Tally::default();
    for lost in losses(fixture) {
        let (pending, pods) = simulated(fixture, &snapshot, &lost);
        let proof = work.proof(&lost);
        let place = match proof {
            FitProof::Pending { pending: 0, .. } => 0,
            FitProof::Pending { .. } => 1,
            FitProof::Short => 2,
            FitProof::Open => 3,
        };
        tally[place] += 1;
        match proof {
            FitProof::Pending { pending: 0, .. } => prop_assert_eq!(pending, 0, "{:?}", lost),
            FitProof::Pending { pending: proved, pods: of } => {
                prop_assert_eq!((proved, of), (pending, pods), "{:?}", lost);
            }
            FitProof::Short => prop_assert!(pending > 0, "{:?}", lost),
            FitProof::Open => {}
        }
    }
    Ok(tally)
}

#[test]
fn what_is_proved_is_what_a_simulation_finds_and_most_is_proved() {
    let cases = 600;
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let tally = Cell::new(Tally::default());
    let strategy = (
        vec(random_node(), 2..9),
        vec(random_workload(), 1..8),
        prop::sample::select(vec![1000_i64, 2000, 4000]),
        prop::sample::select(vec![ServerVersion::new(1, 24), NEWEST]),
    );
    let found = runner.run(&strategy, |(nodes, workloads, scale, version)| {
        let found = check_proofs(&fixture(&nodes, &workloads, scale), version)?;
        let mut sum = tally.get();
        sum.iter_mut().zip(found).for_each(|(sum, found)| *sum += found);
        tally.set(sum);
        Ok(())
    });
    if let Err(error) = found {
        panic!("{error}");
    }
    let [fits, counted, short, open] = tally.get();
    println!("{fits} fit, {counted} are counted, {short} are short, {open} are open");
    assert!(counted > 50 && short > 50, "all kinds of proof are tried: {counted}, {short}");
    assert!(fits + counted + short > 3 * open, "most is proved: {fits}, {counted}, {short}, {open}");
}

/// Losses that were packed, those that were not, and those of the first that a simulation counts otherwise.
fn check_packings(fixture: &PlanFixture) -> Result<[usize; 3], TestCaseError> {
    let snapshot = Snapshot::new(&fixture.cluster, NEWEST);
    let mut work = work(fixture, NEWEST);
    work.pack_from(1);
    let mut tally = [0; 3];
    for lost in losses(fixture) {
        let (pending, pods) = simulated(fixture, &snapshot, &lost);
        match work.proof(&lost) {
            FitProof::Pending { pending: proved, pods: of } => {
                tally[2] += usize::from(proved != pending || proved > 0 && of != pods);
                tally[0] += 1;
            }
            FitProof::Short => prop_assert!(pending > 0, "{:?}", lost),
            FitProof::Open => tally[1] += 1,
        }
    }
    Ok(tally)
}

#[test]
fn what_is_packed_with_its_reserve_a_simulation_places_nearly_always() {
    let config = ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let tally = Cell::new([0; 3]);
    let strategy = (
        vec(random_node(), 9..30),
        vec(random_workload(), 10..40),
        prop::sample::select(vec![1000_i64, 2000, 4000]),
    );
    let found = runner.run(&strategy, |(nodes, workloads, scale)| {
        let nodes_of = nodes.len();
        // Over all nodes.
        let spread = |(number, workload): (usize, RandomWorkload)| {
            let pods =
                workload.pods.iter().map(|(node, cpu, memory)| (node + number * 7 % nodes_of, *cpu, *memory));
            RandomWorkload { pods: pods.collect(), ..workload.clone() }
        };
        let workloads: Vec<RandomWorkload> = workloads.into_iter().enumerate().map(spread).collect();
        let found = check_packings(&fixture(&nodes, &workloads, scale))?;
        let mut sum = tally.get();
        sum.iter_mut().zip(found).for_each(|(sum, found)| *sum += found);
        tally.set(sum);
        Ok(())
    });
    if let Err(error) = found {
        panic!("{error}");
    }
    let [packed, open, other] = tally.get();
    println!("{packed} are packed, {open} are open, {other} are counted otherwise");
    assert!(packed > 100 && open > 100, "both are tried: {packed}, {open}");
    // A packing is no proof, and clusters of few nodes, which are never packed otherwise, are its worst case.
    assert!(other * 100 <= packed, "{other} of {packed}");
}

#[test]
fn the_first_state_is_read_in_steps_and_nothing_is_known_before_all_of_it_is() {
    let node = RandomNode {
        zone: 0,
        cores: 100,
        pods: 1000,
        gpus: 0,
        large: false,
        tainted: false,
        cordoned: false,
    };
    let workload = RandomWorkload {
        ask: Ask::Plain,
        kind: Some(WorkloadKind::ReplicaSet),
        priority: 0,
        never_preempts: false,
        tolerates: false,
        surplus: false,
        pods: (0..900).map(|pod| (pod, 1, 0)).collect(),
    };
    // Each node has 90,000 m of 100,000 m in use.
    let fixture = fixture(&vec![node; 3], &[workload], 1000);
    let snapshot = Snapshot::new(&fixture.cluster, NEWEST);
    let expected = headroom(&fixture.cluster, &snapshot, || true).expect("it went on");
    assert!(!expected.is_enough(), "{expected}");

    let mut work = work(&fixture, NEWEST);
    let mut slices = 0;
    while work.is_starting() {
        assert!(work.state().is_none() && !work.is_proved() && work.headroom() == Headroom::default());
        let mut asked = 0;
        work.advance(&mut || {
            asked += 1;
            asked <= 1
        });
        slices += 1;
    }
    assert!(slices > 3, "900 pods were read in {slices} slices");
    assert_eq!(work.state().map(|state| state.snapshot.node_count()), Some(3));
    work.advance(&mut || true);
    assert_eq!(work.headroom(), expected);
}

#[test]
fn the_first_state_is_read_at_once_where_something_else_waits_for_it() {
    let fixture = fixture(&[], &[], 1000);
    let mut work = work(&fixture, NEWEST);
    assert!(work.state().is_none());
    work.finish_start();
    assert!(work.state().is_some());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn interrupted_work_finds_the_same(
        nodes in vec(random_node(), 2..7),
        workloads in vec(random_workload(), 1..6),
        slices in vec(0_usize..5, 1..8),
    ) {
        let fixture = fixture(&nodes, &workloads, 1000);
        let snapshot = Snapshot::new(&fixture.cluster, NEWEST);
        let expected = headroom(&fixture.cluster, &snapshot, || true).expect("it went on");
        let mut work = work(&fixture, NEWEST);
        let mut lengths = slices.iter().cycle();
        for _ in 0..10_000 {
            let mut steps = *lengths.next().expect("there is one") + 1;
            work.advance(&mut || {
                steps -= 1;
                steps > 0
            });
            if work.is_done() {
                break;
            }
        }
        prop_assert!(work.is_done() || slices.iter().all(|length| *length == 0));
        if work.is_done() {
            prop_assert_eq!(work.headroom(), expected);
        }
    }

    #[test]
    fn work_that_follows_the_cluster_finds_what_new_work_finds(
        nodes in vec(random_node(), 2..7),
        workloads in vec(random_workload(), 2..6),
        moved in 0_usize..9,
        cordoned in 0_usize..9,
    ) {
        // Which of equal pods is preempted depends on their order of arrival, which differs.
        let workloads: Vec<_> =
            workloads.into_iter().map(|workload| RandomWorkload { priority: 0, ..workload }).collect();
        let mut fixture = fixture(&nodes, &workloads, 2000);
        let mut work = work(&fixture, NEWEST);
        work.advance(&mut || true);
        fixture.pod("w0-0", &format!("n{}", moved % nodes.len()), |pod| {
            pod.node = Some(format!("n{}", moved % nodes.len()).as_str().into());
        });
        fixture.cluster.apply(
            Change::Pod(ObjectEvent::Deleted(Key::new("default", "w1-0"))),
            &mut Vec::new(),
        );
        if cordoned < nodes.len() {
            fixture.node(&format!("n{cordoned}"), |node| node.unschedulable = true);
        }
        work.start(fixture.cluster.clone(), NEWEST, Timestamp::EPOCH);
        work.advance(&mut || true);
        let snapshot = Snapshot::new(&fixture.cluster, NEWEST);
        let expected = headroom(&fixture.cluster, &snapshot, || true).expect("it went on");
        prop_assert!(work.is_done());
        prop_assert_eq!(work.headroom(), expected);
    }
}
