//! Duration of pod placement at scale: medians of 20 runs against their budgets. Run with `cargo bench --bench
//! placement`.

#[path = "median.rs"]
mod median;

use std::{
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

use kordon_core::{
    cluster::{
        Change, Cluster, Condition, ConditionStatus, Image, Key, Labels, Name, Node, NodeName, ObjectEvent,
        Owner, OwnerKind, Phase, Pod, READY, Requests, Requirement, Resources, SchedulingSpec, Selector,
        SelectorOperator, TableObject, Workload, WorkloadKind, WorkloadStage,
        scheduling::{NodeOperator, NodeRequirement, NodeTerm, PodTerm, PodTerms, SpreadConstraint},
    },
    engine::ServerVersion,
    placement::{
        PercentageOfNodesToScore, Preemption, SchedulerOptions, SchedulingOutcome, SchedulingRequest,
        Snapshot,
    },
    plan::{Action, DrainOptions, HeadroomWork, PlacingEnvironment, Plan},
};
use kordon_time::{ClusterTime, Timestamp};
use median::median;

/// The same allocator as in the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const NODES: usize = 5_000;
const PODS_OF_A_NODE: usize = 30;
/// Number of pods of each workload.
const REPLICAS: usize = 30;
const NAMESPACES: usize = 50;
const IMAGES_OF_A_NODE: usize = 50;
/// Number of pods that one run places one after the other.
const ROW: usize = 50;

const HOSTNAME: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";

const VERSION: ServerVersion = ServerVersion::new(1, 36);
/// Present time in the cluster.
const NOW: Timestamp = Timestamp::from_secs(1_767_300_000);

fn main() {
    let cluster = cluster(NODES, 3);
    let pods = cluster.pods().len();
    let new = median(|| (), |()| drop(black_box(Snapshot::new(&cluster, VERSION))));
    println!("a snapshot of {NODES} nodes and {pods} pods: {new:?}");
    let mut snapshot = Snapshot::new(&cluster, VERSION);
    let first = SchedulingRequest::from_pod(&pod(0, Kind::Plain), &cluster);
    black_box(snapshot.place(&first));
    let copy = median(|| (), |()| drop(black_box(snapshot.clone())));
    println!("a copy of it: {copy:?}");

    // Arguments select parts: `cargo bench --bench placement -- losses` measures only the losses.
    let parts: Vec<String> = std::env::args().skip(1).filter(|part| !part.starts_with('-')).collect();
    let is_asked = |part: &str| parts.is_empty() || parts.iter().any(|asked| asked == part);
    if is_asked("pods") {
        place_pods(&cluster, &snapshot);
    }
    if is_asked("losses") {
        lose_nodes();
    }
    if !parts.is_empty() {
        return;
    }
    preempt(&cluster, &snapshot);
    drain(&cluster, &snapshot);
}

/// Measures the placement of pods of every kind, with all nodes scored and with samples of the nodes scored.
fn place_pods(cluster: &Cluster, snapshot: &Snapshot) {
    let percentage = PercentageOfNodesToScore::ADAPTIVE;
    let options = SchedulerOptions {
        percentage_of_nodes_to_score: Some(percentage),
        ..SchedulerOptions::from(VERSION)
    };
    let sampling = Snapshot::new(cluster, options);
    for kind in Kind::ALL {
        let pods: Vec<Arc<Pod>> = (0..ROW).map(|number| Arc::new(newcomer(number, kind))).collect();
        let [median, best] = row_of_placements(cluster, snapshot, &pods);
        println!("{kind:?}: {median:?} a pod, at best {best:?} (budget 0.3 ms)");
        let [median, best] = row_of_placements(cluster, &sampling, &pods);
        let sample = percentage.nodes_to_find(NODES);
        println!("{kind:?}, samples of {sample} feasible nodes: {median:?}, at best {best:?}");
    }
}

/// Returns the median and the least duration of the placement of one pod. The duration is wall-clock time, because the
/// CPU time of a thread is updated only at each timer tick, which is too coarse.
#[expect(clippy::disallowed_methods, reason = "a benchmark reads clocks")]
fn row_of_placements(cluster: &Cluster, snapshot: &Snapshot, pods: &[Arc<Pod>]) -> [Duration; 2] {
    const RUNS: usize = 40;
    let requests: Vec<SchedulingRequest> =
        pods.iter().map(|pod| SchedulingRequest::from_pod(pod, cluster)).collect();
    // The first placement computes the order of the nodes and the columns of labels. All copies of this snapshot share
    // them.
    let mut prepared = snapshot.clone();
    black_box(prepared.place(&requests[0]));
    let mut rows: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let mut snapshot = prepared.clone();
            let started = Instant::now();
            for (pod, request) in pods.iter().zip(&requests) {
                let SchedulingOutcome::Placed(placement) = snapshot.place(request) else {
                    panic!("there is room")
                };
                snapshot.add(pod.clone(), placement.choice());
            }
            started.elapsed()
        })
        .collect();
    rows.sort_unstable();
    [RUNS / 2, 0].map(|place| rows[place] / u32::try_from(pods.len()).expect("few"))
}

/// Measures preemption: the placement of a pod that fits on no node.
fn preempt(cluster: &Cluster, snapshot: &Snapshot) {
    let mut large = newcomer(0, Kind::Plain);
    large.priority = 1000;
    let requests = Requests { cpu_milli: 15_000, ..large.resources.requests.clone() };
    large.resources = Arc::new(requests.into());
    let request = SchedulingRequest::from_pod(&large, cluster);
    let preempting = median(
        || snapshot.clone(),
        |snapshot| {
            let SchedulingOutcome::Unschedulable(outcome) = snapshot.place(&request) else {
                panic!("there is no room")
            };
            assert!(matches!(outcome.preemption, Preemption::Possible(_)), "lower priorities can go");
        },
    );
    println!("no room on {NODES} nodes, and which pods to preempt: {preempting:?}");
}

/// Measures the plan of a drain of one node, including the placement of the replacements.
fn drain(cluster: &Cluster, snapshot: &Snapshot) {
    let nodes = vec![node_name(NODES / 2)];
    let action = Action::Drain { nodes, options: DrainOptions { force: true, ..DrainOptions::default() } };
    let plan = |snapshot: Snapshot| {
        let placing = PlacingEnvironment::new(cluster, snapshot, NOW);
        Plan::new(action.clone(), cluster, &placing, VERSION, NOW).expect("the node is there")
    };
    let totals = plan(snapshot.clone()).totals;
    assert_eq!((totals.pods, totals.placed), (PODS_OF_A_NODE, PODS_OF_A_NODE), "{totals:?}");
    let kept = median(|| (), |()| drop(black_box(plan(snapshot.clone()))));
    println!("preview of the drain of a node with {PODS_OF_A_NODE} pods: {kept:?} (budget 25 ms)");
    let fresh = median(|| (), |()| drop(black_box(plan(Snapshot::new(cluster, VERSION)))));
    println!("the same with a snapshot of its own: {fresh:?}");
}

/// Measures the computation of headroom, that is, of the loss of each node and of each zone, for a large cluster in
/// which no two pods have equal requests. Then measures it again after 20 pods have changed.
fn lose_nodes() {
    for (used, kinds) in [
        (45, &Kind::ALL[..]),
        (60, &Kind::ALL[..]),
        (60, &[Kind::Plain, Kind::Choosy][..]),
        (64, &Kind::ALL[..]),
        (90, &Kind::ALL[..]),
    ] {
        let mut cluster = cluster_of(NODES, 3, kinds, |number| different(number, used));
        let mut work = HeadroomWork::default();
        let first = LossCost::new(&mut work, &cluster);
        change_pods(&mut cluster);
        let second = LossCost::new(&mut work, &cluster);
        let headroom = work.headroom();
        assert_eq!((headroom.nodes.tried, headroom.zones.tried), (NODES, 3));
        println!(
            "losses of {NODES} nodes in 3 zones with {} pods, all different, {used} % used, {kinds:?}: {first:?} \
             (budget {N_1:?}); after 20 changed pods {second:?}: {}",
            cluster.pods().len(),
            headroom.clause(None, NOW, ToString::to_string).map(|clause| clause.text).unwrap_or_default()
        );
        assert!(first.all <= N_1, "all losses took {:?} of CPU time, more than {N_1:?}", first.all);
    }
}

/// CPU time in which all losses have to be computed: a dashboard computes them within 15 minutes. After each slice it
/// pauses for 20 times the time of the slice, so that it uses a 21st of a core (4.8 %).
const N_1: Duration = Duration::from_millis(15 * 60 * 1000 / 21);

/// Cost of computing the losses of all nodes and zones.
#[derive(Debug)]
#[expect(dead_code, reason = "printed")]
struct LossCost {
    /// CPU time until the losses of all nodes were computed.
    nodes: Duration,
    all: Duration,
    /// Longest time between two checks for cancellation.
    longest_step: Duration,
}

impl LossCost {
    #[expect(clippy::disallowed_methods, reason = "a benchmark reads clocks")]
    fn new(work: &mut HeadroomWork, cluster: &Cluster) -> Self {
        let (started, mut nodes) = (cpu(), None);
        work.start(cluster.clone(), VERSION, NOW);
        let (mut last, mut longest_step) = (Instant::now(), Duration::ZERO);
        while !work.is_done() {
            let mut steps = 0;
            work.advance(&mut || {
                longest_step = longest_step.max(last.elapsed());
                last = Instant::now();
                steps += 1;
                steps <= 1000
            });
            if nodes.is_none()
                && work.headroom().nodes.outdated_since.is_none()
                && work.headroom().nodes.is_complete()
            {
                nodes = Some(cpu() - started);
            }
            last = Instant::now();
        }
        let all = cpu() - started;
        Self { nodes: nodes.unwrap_or(all), all, longest_step }
    }
}

/// Gives 20 pods another CPU request.
fn change_pods(cluster: &mut Cluster) {
    for number in 0..20 {
        let place = number * 7_477 % cluster.pods().len();
        let pod = cluster.pods().iter().nth(place).expect("there are more").clone();
        let requests = Requests { cpu_milli: 77, ..pod.resources.requests.clone() };
        let changed = Pod { resources: Arc::new(requests.into()), ..(*pod).clone() };
        cluster.apply(Change::Pod(ObjectEvent::Applied(changed)), &mut Vec::new());
    }
}

/// Returns the CPU time of this thread.
fn cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

/// Returns the CPU (in millicores) and memory (in bytes) that pod `number` requests. All pods together request about
/// `used` percent of the cluster.
fn different(number: usize, used: usize) -> (i64, i64) {
    let share = |salt: usize| {
        let mixed =
            (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15 ^ salt).rotate_left(31).wrapping_mul(salt | 1);
        // Factor from 0.4 to 1.6 for the mean request, in thousandths.
        400 + i64::try_from(mixed % 1201).expect("small")
    };
    let mean = |all: i64| {
        all * i64::try_from(used).expect("percent") / 100 / i64::try_from(PODS_OF_A_NODE).expect("few")
    };
    (mean(16_000) * share(0xA5A5_5A5A) / 1000, mean(64 << 30) / 1000 * share(0x1234_5677))
}

/// The scheduling constraints of a workload.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// No constraint; the scheduler's default spreading applies.
    Plain,
    /// A required spread over zones and a preferred spread over nodes.
    Spread,
    /// Required and preferred node affinity, and preferred anti-affinity between the workload's pods.
    Choosy,
    /// Required anti-affinity between the workload's pods on nodes, and required affinity between them in zones.
    Apart,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Plain, Self::Spread, Self::Choosy, Self::Apart];
}

/// Marks a kind as completely listed, so that plans do not report it as unknown.
fn list<T: TableObject>(cluster: &mut Cluster, of: impl Fn(ObjectEvent<T>) -> Change) {
    cluster.apply(of(ObjectEvent::ListStarted), &mut Vec::new());
    cluster.apply(of(ObjectEvent::ListDone), &mut Vec::new());
}

fn cluster(nodes: usize, zones: usize) -> Cluster {
    cluster_of(nodes, zones, &Kind::ALL, |_| (300, 1 << 30))
}

/// Creates a cluster with workloads of these kinds. `requests` returns the CPU and memory requests of a pod by its
/// number. Pods with equal requests share them in memory.
fn cluster_of(nodes: usize, zones: usize, kinds: &[Kind], requests: impl Fn(usize) -> (i64, i64)) -> Cluster {
    let mut cluster = Cluster::default();
    list(&mut cluster, Change::Node);
    list(&mut cluster, Change::Pod);
    list(&mut cluster, Change::Budget);
    list(&mut cluster, Change::Namespace);
    list(&mut cluster, Change::Service);
    list(&mut cluster, Change::Claim);
    list(&mut cluster, Change::Volume);
    list(&mut cluster, Change::StorageClass);
    list(&mut cluster, Change::CsiNode);
    list(&mut cluster, Change::CsiDriver);
    list(&mut cluster, Change::Quota);
    for kind in WorkloadKind::ALL {
        list(&mut cluster, |event| Change::Workload(kind, event));
    }
    let mut apply = |change| cluster.apply(change, &mut Vec::new());
    let images: Vec<Image> = (0..4 * IMAGES_OF_A_NODE).map(image).collect();
    for number in 0..nodes {
        apply(Change::Node(ObjectEvent::Applied(node(number, zones, &images))));
    }
    // Names are shared in memory, as a decoder shares them.
    let names: Vec<NodeName> = (0..nodes).map(node_name).collect();
    let workloads = nodes * PODS_OF_A_NODE / REPLICAS;
    for number in 0..workloads {
        let first = pod(number * REPLICAS, kinds[number % kinds.len()]);
        apply(Change::Workload(WorkloadKind::ReplicaSet, ObjectEvent::Applied(workload(&first))));
        for replica in 0..REPLICAS {
            let mut one = first.clone();
            one.key.name = format!("{}-{replica}", first.key.name).as_str().into();
            // The pods of a workload are on different nodes, spread over the cluster.
            one.node = Some(names[(number * 7 + replica * (nodes / REPLICAS)) % nodes].clone());
            let (cpu_milli, memory_bytes) = requests(number * REPLICAS + replica);
            if (cpu_milli, memory_bytes) != (300, 1 << 30) {
                let requests = Requests { cpu_milli, memory_bytes, ..one.resources.requests.clone() };
                one.resources = Arc::new(requests.into());
            }
            one.phase = Phase::Running;
            one.started = Some(ClusterTime::new(Timestamp::from_secs(1_767_225_600 + number as i64)));
            apply(Change::Pod(ObjectEvent::Applied(one)));
        }
    }
    cluster
}

fn node_name(number: usize) -> NodeName {
    format!("node-{number:04}").as_str().into()
}

fn image(number: usize) -> Image {
    let names = [format!("registry/app-{number}:v1"), format!("registry/app-{number}@sha256:{number:064}")];
    Image { names: names.iter().map(String::as_str).collect(), size_bytes: (20 + number as i64) << 22 }
}

fn node(number: usize, zones: usize, images: &[Image]) -> Node {
    let zone = ["a", "b", "c"][number % zones];
    let generation = format!("{}", number % 5);
    let name = node_name(number);
    let mut labels: std::collections::BTreeMap<Name, Name> =
        [(HOSTNAME, &*name), (ZONE, zone), ("generation", &generation), ("kubernetes.io/os", "linux")]
            .into_iter()
            .map(|(key, value)| (key.into(), value.into()))
            .collect();
    labels.extend((0..12).map(|label| (format!("example.com/label-{label}").as_str().into(), "x".into())));
    Node {
        name,
        labels: labels.into_iter().collect(),
        conditions: [Condition { kind: READY.into(), status: ConditionStatus::True, ..Condition::default() }]
            .into(),
        allocatable: Resources { cpu_milli: 16_000, memory_bytes: 64 << 30, pods: 110 },
        images: (0..IMAGES_OF_A_NODE)
            .map(|image| images[(number + image * 3) % images.len()].clone())
            .collect(),
        ..Node::default()
    }
}

/// Returns the first pod of the workload to which pod `number` belongs. The pod has no node.
fn pod(number: usize, kind: Kind) -> Pod {
    let workload = number / REPLICAS;
    let app = format!("app-{workload}");
    Pod {
        key: Key::new(&format!("team-{}", workload % NAMESPACES), &app),
        labels: labels(&app),
        owner: Some(Arc::new(Owner {
            kind: OwnerKind::Workload(WorkloadKind::ReplicaSet),
            name: app.as_str().into(),
            uid: app.as_str().into(),
        })),
        resources: Arc::new(requests().into()),
        scheduling: Arc::new(spec(&app, kind)),
        ..Pod::default()
    }
}

/// Returns a new pod of a workload of this kind. `number` counts the workloads of the kind.
fn newcomer(number: usize, kind: Kind) -> Pod {
    let workload = number * Kind::ALL.len() + kind as usize;
    let mut pod = pod(workload * REPLICAS, kind);
    pod.key.name = format!("{}-new", pod.key.name).as_str().into();
    pod
}

fn labels(app: &str) -> Labels {
    let pairs = [("app", app), ("pod-template-hash", "7d4b9c"), ("tier", "web"), ("team", "x")];
    pairs.into_iter().map(|(key, value)| (key.into(), value.into())).collect()
}

fn workload(pod: &Pod) -> Workload {
    Workload {
        kind: WorkloadKind::ReplicaSet,
        key: pod.key.clone(),
        uid: pod.key.name.as_str().into(),
        version: Default::default(),
        replicas: Some(i32::try_from(REPLICAS).expect("few")),
        selector: Some(selector(&pod.key.name)),
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

fn selector(app: &str) -> Selector {
    let operator = SelectorOperator::In(vec![app.into()]);
    Selector { requirements: vec![Requirement { key: "app".into(), operator }] }
}

fn requests() -> Requests {
    Requests {
        cpu_milli: 300,
        memory_bytes: 1 << 30,
        assumed_cpu_milli: 300,
        assumed_memory_bytes: 1 << 30,
        ..Requests::default()
    }
}

fn spec(app: &str, kind: Kind) -> SchedulingSpec {
    let plain = SchedulingSpec {
        images: [format!("registry/{app}:v1").as_str().into()].into(),
        ..SchedulingSpec::default()
    };
    let term = |app: &str, key: &str| PodTerm {
        selector: Some(selector(app)),
        topology_key: key.into(),
        ..PodTerm::default()
    };
    let spread = |key: &str, hard| SpreadConstraint {
        max_skew: 1,
        topology_key: key.into(),
        hard,
        selector: Some(selector(app)),
        match_label_keys: Box::default(),
        min_domains: 1,
        honours_affinity: true,
        honours_taints: false,
    };
    let generation = |values: &[&str]| NodeTerm {
        expressions: [NodeRequirement {
            key: "generation".into(),
            operator: NodeOperator::In(values.iter().map(|value| (*value).into()).collect()),
        }]
        .into(),
        ..NodeTerm::default()
    };
    match kind {
        Kind::Plain => plain,
        Kind::Spread => {
            SchedulingSpec { spread: [spread(ZONE, true), spread(HOSTNAME, false)].into(), ..plain }
        }
        Kind::Choosy => SchedulingSpec {
            node_affinity: Some([generation(&["0", "1", "2", "3"])].into()),
            preferred_nodes: [(10, generation(&["1"])), (50, generation(&["2", "3"]))].into(),
            pod_anti_affinity: PodTerms {
                preferred: [(100, term(app, HOSTNAME))].into(),
                ..PodTerms::default()
            },
            ..plain
        },
        Kind::Apart => SchedulingSpec {
            pod_affinity: PodTerms { required: [term(app, ZONE)].into(), ..PodTerms::default() },
            pod_anti_affinity: PodTerms { required: [term(app, HOSTNAME)].into(), ..PodTerms::default() },
            ..plain
        },
    }
}
