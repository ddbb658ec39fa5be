//! Placement by a scheduler that tries only some of the nodes (`percentageOfNodesToScore`), and the node at which its
//! next walk over the nodes begins.

use std::{collections::BTreeSet, sync::Arc};

use kordon_core::{
    cluster::{
        Change, Cluster, Key, Name, Node, NodeName, ObjectEvent, Pod, Requests, Resources, SchedulingSpec,
        scheduling::{NodeOperator, NodeRequirement, NodeTerm},
    },
    engine::ServerVersion,
    placement::{
        Caveat, PercentageOfNodesToScore, Placement, SchedulerOptions, SchedulingOutcome, SchedulingRequest,
        Snapshot,
    },
    plan::{Action, DrainOptions, Landing, PlacingEnvironment, Plan, PodPlan},
};

use crate::plan_fixture::{NOW, PlanFixture};

const VERSION: ServerVersion = ServerVersion::new(1, 36);
/// Number of nodes in each zone; `n000` to `n099` are in the first zone.
const ZONE: usize = 100;
const NODES: usize = 3 * ZONE;
/// The scheduler stops at 120 feasible nodes of 300.
const FORTY: Option<PercentageOfNodesToScore> = PercentageOfNodesToScore::new(40);

#[test]
fn equal_nodes_of_a_sample_are_taken_from_each_zone_in_turn_and_the_next_walk_goes_on_behind_them() {
    let cluster = cluster(|_| 4000);
    let mut snapshot = Snapshot::new(&cluster, options(FORTY));
    let samples: Vec<BTreeSet<usize>> = (0..5).map(|_| sample(&place(&mut snapshot, &pod("p")))).collect();
    // Each sample has 40 nodes of each zone. The third sample reaches the last nodes and continues with the first
    // nodes.
    let of_each_zone = |first: usize| -> BTreeSet<usize> {
        (0..3).flat_map(|zone| (first..first + 40).map(move |place| zone * ZONE + place % ZONE)).collect()
    };
    assert_eq!(samples, [0, 40, 80, 20, 60].map(of_each_zone));
}

#[test]
fn the_best_node_is_missed_by_a_sample_without_it_and_found_by_the_next() {
    let best = 50;
    let cluster = cluster(|number| if number == best { 64_000 } else { 4000 });
    let sampled = |start: usize| {
        let options = SchedulerOptions { first_start: start, ..options(FORTY) };
        place(&mut Snapshot::new(&cluster, options), &pod("p"))
    };
    let first = sampled(0);
    assert_eq!((first.feasible, sample(&first).contains(&best)), (120, false));
    assert_eq!((&*first.caveats, first.choice()), (&[Caveat::OneSample][..], &name(0)));
    assert_eq!(*sampled(120).choice(), name(best), "the walk begins where the first would end");
    let known = |percentage| place(&mut Snapshot::new(&cluster, options(percentage)), &pod("p"));
    let (unknown, all) = (known(None), known(Some(PercentageOfNodesToScore::ALL)));
    assert_eq!((unknown.choice(), unknown.feasible), (&name(best), NODES));
    assert_eq!(*unknown.caveats, [Caveat::Sampled], "by default the scheduler looks at 48 % of 300 nodes");
    assert_eq!(all, Placement { caveats: Vec::new(), ..unknown });
}

#[test]
fn a_walk_that_finds_too_few_nodes_sees_all_and_answers_as_if_there_were_no_limit() {
    // Most nodes are full.
    let cluster = cluster(|number| if number % 3 == 0 { 4000 } else { 10 });
    let mut sampling = Snapshot::new(&cluster, options(FORTY));
    let mut all = Snapshot::new(&cluster, options(Some(PercentageOfNodesToScore::ALL)));
    for number in 0..40 {
        let pod = pod(&format!("p{number}"));
        let (placement, expected) = (place(&mut sampling, &pod), place(&mut all, &pod));
        assert_eq!((placement.feasible, &*placement.caveats), (ZONE, &[][..]), "pod {number}");
        assert_eq!(placement, expected, "pod {number}");
        for snapshot in [&mut sampling, &mut all] {
            snapshot.add(pod.clone(), placement.choice());
        }
    }
}

#[test]
fn clusters_below_a_hundred_nodes_are_not_sampled() {
    let mut cluster = cluster(|_| 4000);
    let placed = |cluster: &Cluster| {
        let smallest = PercentageOfNodesToScore::new(1);
        let placement = place(&mut Snapshot::new(cluster, options(smallest)), &pod("p"));
        (placement.feasible, placement.caveats)
    };
    assert_eq!(placed(&cluster), (100, vec![Caveat::OneSample]));
    for number in 99..NODES {
        cluster.apply(Change::Node(ObjectEvent::Deleted(name(number))), &mut Vec::new());
    }
    assert_eq!(placed(&cluster), (99, Vec::new()));
}

#[test]
fn nodes_that_come_go_or_move_to_another_zone_change_the_order_of_the_walk() {
    let cluster = cluster(|_| 4000);
    let mut snapshot = Snapshot::new(&cluster, options(FORTY));
    assert_eq!(sample(&place(&mut snapshot, &pod("p"))).len(), 120);
    snapshot.remove_node(&name(41));
    snapshot.put_node(Arc::new(node(142, 4000, 0)));
    // 299 nodes are left, and a sample has 119 nodes. Node 41 was removed, and node 142 is now in the first zone.
    let second = sample(&place(&mut snapshot, &pod("p")));
    assert_eq!(second.len(), 119);
    assert!([40, 42, 140, 141, 143, 240, 241].iter().all(|number| second.contains(number)), "{second:?}");
    assert!(![39, 41, 142].iter().any(|number| second.contains(number)), "{second:?}");
}

#[test]
fn a_nominated_node_and_required_names_come_before_the_walk() {
    let cluster = cluster(|_| 4000);
    let mut snapshot = Snapshot::new(&cluster, options(FORTY));
    let nominated = Pod { nominated: Some(name(299)), ..(*pod("nominated")).clone() };
    let placement = place(&mut snapshot, &Arc::new(nominated));
    assert_eq!((placement.choice(), placement.feasible, placement.caveats.is_empty()), (&name(299), 1, true));
    // The scheduler tries both nodes that the pod names. So its next walk starts at the third node.
    let names = [name(150), name(250)].map(|name| Name::from(&*name));
    let fields = [NodeRequirement { key: "metadata.name".into(), operator: NodeOperator::In(names.into()) }];
    let term = NodeTerm { fields: fields.into(), ..NodeTerm::default() };
    let spec = SchedulingSpec { node_affinity: Some([term].into()), ..SchedulingSpec::default() };
    let named =
        place(&mut snapshot, &Arc::new(Pod { scheduling: Arc::new(spec), ..(*pod("named")).clone() }));
    assert_eq!((sample(&named), named.caveats.is_empty()), ([150, 250].into(), true));
    let next = sample(&place(&mut snapshot, &pod("p")));
    assert!(
        !next.contains(&0) && !next.contains(&100) && next.contains(&200) && next.contains(&40),
        "{next:?}"
    );
}

#[test]
fn a_plan_places_each_replacement_by_the_next_sample_and_says_so() {
    let names: Vec<NodeName> = (0..NODES).map(name).collect();
    let drained = &names[NODES - 1];
    let mut fixture = PlanFixture::new(&names.iter().map(|name| &**name).collect::<Vec<_>>());
    for (place, name) in names.iter().enumerate() {
        fixture
            .node(name, |known| *known = Node { uid: known.uid.clone(), ..node(place, 4000, place / ZONE) });
    }
    fixture.replica_set("web", 4, &[drained; 4].map(|name| &**name));
    for place in 0..4 {
        fixture.pod(&format!("web-{place}"), drained, |known| known.resources = pod("p").resources.clone());
    }
    let plan = |percentage| {
        let snapshot = Snapshot::new(&fixture.cluster, options(percentage));
        let placing = PlacingEnvironment::new(&fixture.cluster, snapshot, NOW);
        let action = Action::Drain { nodes: vec![drained.clone()], options: DrainOptions::default() };
        Plan::new(action, &fixture.cluster, &placing, VERSION, NOW).expect("the node is there")
    };
    let landings = |plan: &Plan| -> Vec<usize> {
        let node = |pod: &PodPlan| pod.landing.as_ref().and_then(Landing::node).map(number);
        plan.pods.iter().map(|pod| node(pod).expect("there is room")).collect()
    };
    let caveats = |plan: &Plan| -> Vec<bool> {
        let traces = plan.pods.iter().map(|pod| pod.placement.as_ref().expect("it is placed"));
        traces.map(|trace| trace.caveats.contains(&Caveat::OneSample)).collect()
    };
    let sampled = plan(FORTY);
    // Each replacement gets the first empty node of its sample. The third sample reaches the drained node, which is
    // cordoned, and continues with the first nodes.
    assert_eq!((landings(&sampled), caveats(&sampled)), (vec![0, 40, 1, 21], vec![true; 4]));
    assert_eq!(landings(&plan(FORTY)), landings(&sampled), "the same plan twice");
    let all = plan(Some(PercentageOfNodesToScore::ALL));
    assert_eq!((landings(&all), caveats(&all)), (vec![0, 1, 2, 3], vec![false; 4]));
}

/// `tests/vectors/placement` has recordings of the schedulers of the tested releases. For 1.38, the scheduler agrees
/// with recordings that are not in this repository.
#[test]
fn a_cluster_of_a_tested_release_is_not_newer_than_those_whatever_its_patch() {
    let cluster = cluster(|_| 4000);
    let is_newer = |version: &str| {
        let version = ServerVersion::parse(version).expect("a version");
        let placement = place(&mut Snapshot::new(&cluster, version), &pod("p"));
        placement.caveats.contains(&Caveat::Newer)
    };
    for tested in ["v1.23.13", "v1.36.3", "v1.37.1", "v1.37.1-eks-1234567", "v1.38.0-beta.0", "v1.38.9"] {
        assert!(!is_newer(tested), "{tested}");
    }
    assert!(is_newer("v1.39.0") && is_newer("v2.0.0"));
}

fn options(percentage_of_nodes_to_score: Option<PercentageOfNodesToScore>) -> SchedulerOptions {
    SchedulerOptions { percentage_of_nodes_to_score, ..VERSION.into() }
}

/// Creates three zones of nodes with this CPU, and memory in proportion.
fn cluster(cpu_milli: impl Fn(usize) -> i64) -> Cluster {
    let mut cluster = Cluster::default();
    for number in 0..NODES {
        let node = node(number, cpu_milli(number), number / ZONE);
        cluster.apply(Change::Node(ObjectEvent::Applied(node)), &mut Vec::new());
    }
    cluster
}

fn node(number: usize, cpu_milli: i64, zone: usize) -> Node {
    let labels = [("topology.kubernetes.io/zone".into(), format!("z{zone}").as_str().into())];
    Node {
        name: name(number),
        labels: labels.into_iter().collect(),
        allocatable: Resources { cpu_milli, memory_bytes: cpu_milli << 22, pods: 110 },
        ..Node::default()
    }
}

fn name(number: usize) -> NodeName {
    format!("n{number:03}").as_str().into()
}

fn number(node: &NodeName) -> usize {
    node.strip_prefix('n').and_then(|number| number.parse().ok()).expect("a number")
}

/// A pod that requests a tenth of most nodes' resources.
fn pod(name: &str) -> Arc<Pod> {
    let (cpu_milli, memory_bytes) = (400, 400 << 22);
    let requests = Requests {
        cpu_milli,
        memory_bytes,
        assumed_cpu_milli: cpu_milli,
        assumed_memory_bytes: memory_bytes,
        ..Requests::default()
    };
    Arc::new(Pod { key: Key::new("default", name), resources: Arc::new(requests.into()), ..Pod::default() })
}

fn place(snapshot: &mut Snapshot, pod: &Arc<Pod>) -> Placement {
    let request = SchedulingRequest::from_pod(pod, &Cluster::default());
    let request = SchedulingRequest { caveats: BTreeSet::new(), ..request };
    match snapshot.place(&request) {
        SchedulingOutcome::Placed(placement) => placement,
        other => panic!("not placed: {other:?}"),
    }
}

/// Returns the nodes of the sample. All nodes are equal, so the whole sample is best.
fn sample(placement: &Placement) -> BTreeSet<usize> {
    placement.best.iter().map(number).collect()
}
