//! N-1 (what becomes of pods if any one node or zone is lost) agrees with a plain simulation of each loss, no matter
//! where the computation of N-1 is interrupted.

use std::{
    cell::Cell,
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use proptest::{collection::vec, prelude::*};

use kordon_core::{
    cluster::{
        AccessModes, Change, Claim, Cluster, Key, Labels, Name, NodeName, ObjectEvent, Owner, OwnerKind, Pod,
        Requests, Resources, SchedulingSpec, Selector, SelectorOperator, Version, Volume, VolumeProperties,
        WorkloadKind, ZoneKey,
        scheduling::{
            HostPort, NodeOperator, NodeRequirement, NodeTerm, PodTerm, PodTerms, PodVolume, SpreadConstraint,
        },
    },
    engine::ServerVersion,
    placement::{Preemption, PreemptionCandidate, SchedulingOutcome, SchedulingRequest, Snapshot},
    plan::{Headroom, HeadroomWork, OutcomeCounts, OutcomeKind, failover::pods_of, headroom},
};
use kordon_time::Timestamp;

use crate::plan_fixture::{NEWEST, PlanFixture, own, taint, terminating, tolerates, uid};

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

/// The scheduling constraints of the pods of a workload.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ask {
    Plain,
    Large,
    Apart {
        zone: bool,
    },
    /// Anti-affinity to the pods of the workload whose number is one lower; for workload 0, to its own pods.
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
    /// Whether the workload has more pods than its number of replicas.
    surplus: bool,
    /// For each pod, its node and its requests.
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
    Selector { requirements: vec![kordon_core::cluster::Requirement { key: "app".into(), operator }] }
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

/// Binds a claim to a volume in a zone.
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

/// Returns all losses of a single node and of a single zone, each with the lost nodes.
fn losses(fixture: &PlanFixture) -> BTreeMap<String, BTreeSet<NodeName>> {
    let nodes = || fixture.cluster.nodes().iter();
    let zones: BTreeSet<_> = nodes().map(|node| node.zone()).collect();
    let of_zone = |zone: &ZoneKey| -> BTreeSet<NodeName> {
        nodes().filter(|node| node.zone() == *zone).map(|node| node.name.clone()).collect()
    };
    let of_zones = zones.iter().filter(|_| zones.len() > 1);
    let of_zones = of_zones.map(|zone| (format!("zone {zone}"), of_zone(zone)));
    nodes().map(|node| (node.name.to_string(), [node.name.clone()].into())).chain(of_zones).collect()
}

/// A simulation of a loss that shares only the scheduler with headroom and failover. In a copy of the cluster, it
/// taints the nodes, leaves no room on them, deletes their pods, which stay Terminating, and places one replacement
/// after the other.
struct PlainLoss<'a> {
    cluster: &'a Cluster,
    snapshot: Snapshot,
    stranded: OutcomeCounts,
}

impl<'a> PlainLoss<'a> {
    fn new(cluster: &'a Cluster, version: ServerVersion, lost: &BTreeSet<NodeName>) -> Self {
        let is_lost = |pod: &&Arc<Pod>| pod.node.as_ref().is_some_and(|node| lost.contains(node));
        let mut pods: Vec<Arc<Pod>> = cluster.pods().iter().filter(is_lost).cloned().collect();
        let mut left = cluster.clone();
        for node in lost {
            let mut failed = (**cluster.node(node).expect("it is there")).clone();
            let taints = ["unreachable:NoSchedule", "unreachable:NoExecute"];
            let taints = taints.map(|text| taint(&format!("node.kubernetes.io/{text}")));
            failed.taints = failed.taints.iter().cloned().chain(taints).collect();
            failed.allocatable.pods = 0;
            failed.version = Version(failed.version.0 + 1_000_000);
            left.apply(Change::Node(ObjectEvent::Applied(failed)), &mut Vec::new());
        }
        for pod in &pods {
            let mut deleted = (**pod).clone();
            terminating(&mut deleted, 30);
            deleted.version = Version(deleted.version.0 + 1_000_000);
            left.apply(Change::Pod(ObjectEvent::Applied(deleted)), &mut Vec::new());
        }
        let snapshot = Snapshot::new(&left, version);
        let mut loss = Self { cluster, snapshot, stranded: OutcomeCounts::default() };
        // The pods are placed by descending priority, and those of an owner evenly spread among the others.
        pods.sort_by_key(|pod| pod.key.clone());
        let of_one_owner = |one: &Pod, other: &Pod| {
            let uid = |pod: &Pod| pod.owner.as_ref().map(|owner| owner.uid.clone());
            (one.priority, uid(one)) == (other.priority, uid(other))
        };
        let share = |pod: &Arc<Pod>| {
            let siblings = || pods.iter().filter(|other| of_one_owner(pod, other));
            let before = siblings().filter(|other| other.key < pod.key).count();
            (2 * before + 1) * 500_000 / siblings().count()
        };
        let turns = pods.iter().map(|pod| ((Reverse(pod.priority), share(pod)), pod.clone()));
        let mut turns: Vec<_> = turns.collect();
        turns.sort_by_key(|(turn, _)| *turn);
        let mut wanted = BTreeMap::new();
        for (_, pod) in turns {
            match loss.kind(&pod) {
                None => loss.stranded.count(OutcomeKind::Lost),
                Some(WorkloadKind::DaemonSet) => {}
                // The replacement is created only once the old pod is gone.
                Some(WorkloadKind::StatefulSet) => loss.stranded.count(OutcomeKind::Stuck),
                Some(kind) => {
                    let owner = pod.owner.as_ref().expect("it has a kind").uid.clone();
                    let free = wanted.entry(owner).or_insert_with(|| loss.missing(&left, kind, &pod));
                    if *free > 0 {
                        *free -= 1;
                        loss.replace(&pod);
                    }
                }
            }
        }
        loss
    }

    /// Returns the number of pods that the owner of a pod creates after the pods of the lost nodes are deleted.
    fn missing(&self, left: &Cluster, kind: WorkloadKind, pod: &Pod) -> i64 {
        let owner = pod.owner.as_ref().expect("it has a kind");
        let mut workloads = self.cluster.workloads(kind).iter();
        let workload = workloads.find(|workload| workload.uid == owner.uid).expect("it is there");
        let lives = left.pods_owned_by(&owner.uid).filter(|pod| pod.termination.is_none()).count();
        i64::from(workload.replicas.expect("it has a number")) - i64::try_from(lives).expect("few")
    }

    fn kind(&self, pod: &Pod) -> Option<WorkloadKind> {
        match pod.owner.as_ref()?.kind {
            OwnerKind::Workload(kind) => Some(kind),
            OwnerKind::Node | OwnerKind::Other { .. } => panic!("no such pod is made"),
        }
    }

    /// Places the replacement of a pod, and counts the outcome of the pod.
    fn replace(&mut self, pod: &Arc<Pod>) {
        let is_placed = self.place(pod);
        // The volume stays attached to the lost node.
        let claims = pod.scheduling.volumes.iter().filter_map(|volume| match volume {
            PodVolume::Claim(name) => self.cluster.claims().get(&Key::new("default", name)),
            PodVolume::OwnClaim { .. } | PodVolume::Disk(_) => None,
        });
        let mut modes = claims.map(|claim| claim.requested.modes);
        let is_held = modes.any(|modes| modes.read_write_once || modes.read_write_once_pod);
        if !is_placed {
            self.stranded.count(OutcomeKind::Pending);
        } else if is_held {
            self.stranded.count(OutcomeKind::Stuck);
        }
    }

    fn place(&mut self, pod: &Arc<Pod>) -> bool {
        let mut request =
            SchedulingRequest { nominated: None, ..SchedulingRequest::from_pod(pod, self.cluster) };
        if !SchedulingRequest::keeps_name_of(pod) {
            request.name = Name::default();
        }
        match self.snapshot.place(&request) {
            SchedulingOutcome::Placed(placement) => self.add(pod, placement.choice()),
            SchedulingOutcome::Unschedulable(refused) => match refused.preemption {
                Preemption::Possible(candidate) => self.preempt(pod, &candidate),
                _ => return false,
            },
            SchedulingOutcome::NotTried(obstacle) => panic!("{obstacle:?}"),
        }
        true
    }

    fn add(&mut self, pod: &Pod, node: &NodeName) {
        let mut new = Pod { node: Some(node.clone()), ..pod.clone() };
        if !SchedulingRequest::keeps_name_of(pod) {
            new.key.name = format!("{}-new", pod.key.name).as_str().into();
        }
        self.snapshot.add(Arc::new(new), node);
    }

    /// Places the pod by preemption. The victims are placed again, and may preempt others of lower priority.
    fn preempt(&mut self, pod: &Arc<Pod>, candidate: &PreemptionCandidate) {
        for victim in &candidate.victims {
            self.snapshot.remove(&victim.key, &candidate.node);
        }
        self.add(pod, &candidate.node);
        for victim in &candidate.victims {
            match self.kind(victim) {
                None => self.stranded.count(OutcomeKind::Lost),
                Some(WorkloadKind::DaemonSet) => self.stranded.count(OutcomeKind::Pending),
                Some(_) if !self.place(victim) => self.stranded.count(OutcomeKind::Pending),
                Some(_) => {}
            }
        }
    }
}

fn work(fixture: &PlanFixture, version: ServerVersion) -> HeadroomWork {
    let mut work = HeadroomWork::default();
    work.start(fixture.cluster.clone(), version, Timestamp::EPOCH);
    work
}

/// Numbers of losses: all compared losses, losses that strand pods, and losses computed without a simulation.
type Tally = [usize; 3];

fn check_losses(fixture: &PlanFixture, version: ServerVersion) -> Result<Tally, TestCaseError> {
    let mut work = work(fixture, version);
    work.finish_start();
    let losses = losses(fixture);
    let mut tally = Tally::default();
    // `advance` calls its callback once before each loss, each deletion and each placement, and once at the end.
    let mut steps = 0;
    work.advance(&mut || {
        steps += 1;
        true
    });
    let found = work.answers();
    prop_assert_eq!(found.len(), losses.len());
    let mut pods = 0;
    for (name, lost) in &losses {
        let PlainLoss { stranded, .. } = PlainLoss::new(&fixture.cluster, version, lost);
        prop_assert_eq!(found.get(name), Some(&Some(stranded)), "{}", name);
        tally[0] += 1;
        tally[1] += usize::from(stranded.total() > 0);
        pods += pods_of(&fixture.cluster, lost).len();
    }
    tally[2] += usize::from(steps < losses.len() + 2 * pods);
    Ok(tally)
}

fn check_all(
    cases: u32,
    strategy: impl Strategy<Value = (Vec<RandomNode>, Vec<RandomWorkload>, i64, ServerVersion)>,
) -> Tally {
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let tally = Cell::new(Tally::default());
    let found = runner.run(&strategy, |(nodes, workloads, scale, version)| {
        let found = check_losses(&fixture(&nodes, &workloads, scale), version)?;
        let mut sum = tally.get();
        sum.iter_mut().zip(found).for_each(|(sum, found)| *sum += found);
        tally.set(sum);
        Ok(())
    });
    if let Err(error) = found {
        panic!("{error}");
    }
    tally.get()
}

#[test]
fn every_loss_strands_what_a_plain_simulation_of_it_strands() {
    let strategy = (
        vec(random_node(), 2..9),
        vec(random_workload(), 1..8),
        prop::sample::select(vec![1000_i64, 2000, 4000]),
        prop::sample::select(vec![ServerVersion::new(1, 24), NEWEST]),
    );
    let [losses, stranding, _] = check_all(600, strategy);
    println!("{losses} losses, {stranding} of them strand pods");
    assert!(stranding > 100 && losses > stranding + 100, "both are tried: {stranding} of {losses}");
}

#[test]
fn a_loss_that_certainly_fits_strands_what_a_plain_simulation_of_it_strands() {
    // Clusters with many nodes and few pods.
    let strategy = (
        vec(random_node(), 9..30),
        vec(random_workload(), 1..12),
        prop::sample::select(vec![1000_i64, 2000, 4000]),
        prop::sample::select(vec![ServerVersion::new(1, 24), NEWEST]),
    );
    let spread = strategy.prop_map(|(nodes, workloads, scale, version)| {
        let all = nodes.len();
        let spread = |(number, workload): (usize, RandomWorkload)| {
            let place = |node: usize, pod: usize| (node + number * 7 + pod * 5) % all;
            let pods = workload.pods.iter().enumerate();
            let pods = pods.map(|(pod, (node, cpu, memory))| (place(*node, pod), *cpu, *memory));
            RandomWorkload { pods: pods.collect(), ..workload.clone() }
        };
        let workloads = workloads.into_iter().enumerate().map(spread).collect();
        (nodes, workloads, scale, version)
    });
    let [losses, stranding, shortened] = check_all(150, spread);
    println!(
        "{losses} losses, {stranding} of them strand pods; {shortened} clusters without a simulation of each"
    );
    assert!(stranding > 100 && shortened > 100, "both are tried: {stranding} of {losses}, {shortened}");
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
    // Each node has 90,000 of its 100,000 millicores in use.
    let fixture = fixture(&vec![node; 3], &[workload], 1000);
    let snapshot = Snapshot::new(&fixture.cluster, NEWEST);
    let expected = headroom(&fixture.cluster, &snapshot, |_| true).expect("it went on");
    assert!(!expected.is_enough(), "{expected:?}");

    let mut work = work(&fixture, NEWEST);
    let mut slices = 0;
    while work.is_starting() {
        assert!(work.state().is_none() && work.headroom() == Headroom::default());
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

/// A cluster of two nodes with one pod on the first.
fn single_pod(make: impl FnOnce(&mut Pod)) -> Headroom {
    let mut fixture = PlanFixture::new(&["n0", "n1"]);
    for node in ["n0", "n1"] {
        fixture.node(node, |node| {
            node.allocatable = Resources { cpu_milli: 1000, memory_bytes: 1000, pods: 10 }
        });
    }
    fixture.owner(WorkloadKind::ReplicaSet, "web", 1);
    fixture.pod("web-0", "n0", |pod| {
        own(pod, WorkloadKind::ReplicaSet, "web");
        make(pod);
    });
    headroom(&fixture.cluster, &Snapshot::new(&fixture.cluster, NEWEST), |_| true).expect("it went on")
}

#[test]
fn a_loss_of_which_nothing_is_known_is_not_enough() {
    let clause = |headroom: &Headroom| {
        headroom.clause(None, Timestamp::EPOCH, ToString::to_string).map(|clause| clause.text)
    };
    let known = single_pod(|_| {});
    assert_eq!(clause(&known).as_deref(), Some("N-1 ok: nodes"));
    assert!(known.is_enough() && known.is_certain());

    let unknown = Some("N-1: losing n0 may strand 1 pod (not known)");
    let machine = single_pod(|pod| {
        let kind =
            OwnerKind::Other { kind: "VirtualMachineInstance".into(), group: Some("kubevirt.io".into()) };
        pod.owner =
            Some(Owner { kind, name: "win".into(), uid: uid("VirtualMachineInstance", "win") }.into());
    });
    assert_eq!(clause(&machine).as_deref(), unknown, "an owner that is not known");
    assert_eq!((machine.nodes.uncertain, machine.nodes.short), (1, 0));
    let scheduled = single_pod(|pod| {
        pod.scheduling = SchedulingSpec { scheduler: "volcano".into(), ..SchedulingSpec::default() }.into();
    });
    assert_eq!(clause(&scheduled).as_deref(), unknown, "a scheduler that is not known");
    assert!(!scheduled.is_enough() && !scheduled.is_certain());
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
        let expected = headroom(&fixture.cluster, &snapshot, |_| true).expect("it went on");
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
        // Priorities are equal, so that nothing is preempted. Otherwise, the choice between equal victims would depend
        // on the order in which the pods were added. This order differs between the computation that continues after
        // the changes and the new computation.
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
        let mut new = self::work(&fixture, NEWEST);
        new.advance(&mut || true);
        prop_assert!(work.is_done());
        prop_assert_eq!(work.answers(), new.answers());
        prop_assert!(work.headroom().nodes.outdated_since.is_none(), "all rest on the newest state");
    }
}
