//! N-1, what-if and forecast agree on the number of pods that stay Pending, for random clusters and failures.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use proptest::prelude::*;
use ratatui::{Terminal, backend::TestBackend};

use kordon::{
    app::preview::PreviewOutcome,
    cli::StatusReport,
    k8s::feed::{FeedKind, FeedState},
    model::{ClusterVerdict, HeadroomProgress, HeadroomSnapshot, KnownHeadroom},
    run::Surface,
    ui::snapshot,
};
use kordon_core::{
    cluster::{NodeName, SchedulingSpec, WorkloadKind, ZoneKey, scheduling::HostPort},
    forecast::{Assumptions, Forecast, SuccessionCounts},
    placement::Snapshot,
    plan::{Headroom, HeadroomLosses, OutcomeCounts, OutcomeKind, PlacingEnvironment},
};
use kordon_time::{Span, Timestamp};

use crate::dashboard_fixture::{DashboardFixture, Withheld, tolerates};

/// A node in a zone, with this many cores.
#[derive(Clone, Debug)]
pub struct RandomNode {
    zone: usize,
    cores: i64,
}

/// A pod, on one of the nodes.
#[derive(Clone, Debug)]
pub struct RandomPod {
    node: usize,
    kind: Option<WorkloadKind>,
    cores: i64,
    priority: i32,
    toleration: Option<i64>,
    apart: bool,
}

const ZONES: [&str; 3] = ["a", "b", "c"];

pub fn random_node() -> impl Strategy<Value = RandomNode> {
    (0..ZONES.len(), 2_i64..8).prop_map(|(zone, cores)| RandomNode { zone, cores })
}

pub fn random_pod() -> impl Strategy<Value = RandomPod> {
    use WorkloadKind::{DaemonSet, Job, ReplicaSet, StatefulSet};
    let kinds = [Some(ReplicaSet), Some(ReplicaSet), Some(StatefulSet), Some(Job), Some(DaemonSet), None];
    let kind = prop::sample::select(kinds.to_vec());
    let toleration = prop::sample::select(vec![None, Some(0), Some(30), Some(300), Some(9_999)]);
    let priority = prop::sample::select(vec![0, 0, 0, 100]);
    (0_usize..7, kind, 1_i64..4, priority, toleration, prop::bool::weighted(0.2)).prop_map(
        |(node, kind, cores, priority, toleration, apart)| RandomPod {
            node,
            kind,
            cores,
            priority,
            toleration,
            apart,
        },
    )
}

/// Creates a dashboard with a cluster of these nodes and pods, and runs it for a minute.
fn fixture(nodes: &[RandomNode], pods: &[RandomPod]) -> DashboardFixture {
    let mut fixture = fixture_without(nodes, pods, []);
    fixture.run(60);
    fixture
}

/// Like [`fixture`], at the time of the first lists, with some kinds withheld from the dashboard.
pub fn fixture_without(
    nodes: &[RandomNode],
    pods: &[RandomPod],
    withheld: impl IntoIterator<Item = (FeedKind, Withheld)>,
) -> DashboardFixture {
    let mut fixture = DashboardFixture::new().with_controller();
    fixture.withhold(withheld);
    for (number, node) in nodes.iter().enumerate() {
        fixture.add_node(&format!("n{number}"), ZONES[node.zone]);
        fixture.change_node(&format!("n{number}"), |known| known.allocatable.cpu_milli = node.cores * 1000);
    }
    for (number, pod) in pods.iter().enumerate() {
        let node = format!("n{}", pod.node % nodes.len());
        let tolerations = match (pod.kind, pod.toleration) {
            (Some(WorkloadKind::DaemonSet), _) => vec![tolerates("", None)],
            (_, Some(seconds)) => vec![tolerates("node.kubernetes.io/unreachable", Some(seconds))],
            (_, None) => Vec::new(),
        };
        let key = format!("default/w{}-{number}", number % 3);
        let kind = pod.kind.unwrap_or(WorkloadKind::ReplicaSet);
        fixture.add_pod(&key, &node, kind, tolerations, pod.cores * 1000, 128);
        fixture.change_pod(&key, |known| {
            if pod.kind.is_none() {
                known.owner = None;
            }
            known.priority = pod.priority;
            let port = HostPort { ip: "".into(), protocol: "TCP".into(), port: 80 };
            let host_ports = if pod.apart { [port].into() } else { Default::default() };
            known.scheduling = Arc::new(SchedulingSpec { host_ports, ..SchedulingSpec::default() });
        });
    }
    fixture.lists();
    for name in ["w0", "w1", "w2"] {
        WorkloadKind::ALL.into_iter().for_each(|kind| fixture.add_owner(kind, name));
    }
    fixture
}

/// Returns the outcomes in the open what-if, and the nodes and zones whose failure it assumes.
fn what_if(fixture: &DashboardFixture) -> (OutcomeCounts, BTreeSet<NodeName>, BTreeSet<ZoneKey>) {
    let preview = fixture.app.screen.overlays.plan().expect("a what-if is open");
    let outcome = preview.result.as_ref().map(|result| &result.outcome);
    let Some(PreviewOutcome::Failure(view)) = outcome else { panic!("{outcome:?}") };
    let impact = &view.impact;
    let stranded = impact.succession.as_ref().expect("few pods").counts();
    (all_of(&stranded), impact.nodes.clone(), impact.zones.clone())
}

/// Adds up the outcomes of the pods that leave and of the pods that are preempted for them.
fn all_of(counts: &SuccessionCounts) -> OutcomeCounts {
    counts.outcomes() + counts.preempted
}

/// Returns the outcomes in `kordon forecast --fail NODE…`.
fn forecast(fixture: &DashboardFixture, nodes: &BTreeSet<NodeName>, horizon: Span) -> OutcomeCounts {
    let model = &fixture.app.model;
    let engine = model.engine.as_ref().expect("it has started");
    let assumptions = Assumptions::failing(nodes.clone(), fixture.now);
    let forecast = Forecast::under(&assumptions, engine, &model.cluster, fixture.now, horizon);
    let snapshot = Snapshot::new(&model.cluster, model.settings.version);
    let environment = PlacingEnvironment::new(&model.cluster, snapshot, fixture.now);
    all_of(&forecast.successors(&assumptions, &model.cluster, environment).counts())
}

/// Returns the line of the header that has the verdict.
fn header(fixture: &DashboardFixture) -> String {
    let mut terminal = Terminal::new(TestBackend::new(220, 60)).expect("a buffer");
    terminal.draw_app(&fixture.app, fixture.now).expect("a buffer");
    snapshot::plain(terminal.backend().buffer()).lines().nth(1).unwrap_or_default().into()
}

/// Returns five numbers about losses: how many there are; how many strand pods, and the most pods that one loss
/// strands; how many leave pods Pending, and the most pods that one loss leaves Pending.
fn losses<T: Ord + Clone>(stranded: &BTreeMap<T, OutcomeCounts>) -> [usize; 5] {
    let count = |counts: fn(&OutcomeCounts) -> usize| {
        let counts = stranded.values().map(counts);
        (counts.clone().filter(|count| *count > 0).count(), counts.max().unwrap_or(0))
    };
    let ((short, most), (pending, most_pending)) =
        (count(OutcomeCounts::nowhere), count(|it| it.of(OutcomeKind::Pending)));
    [stranded.len(), short, most, pending, most_pending]
}

fn counted<T>(losses: &HeadroomLosses<T>) -> [usize; 5] {
    [losses.tried, losses.short, losses.most_stranded(), losses.pending, losses.most_pending]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn header_what_if_and_forecast_agree(
        nodes in prop::collection::vec(random_node(), 2..7),
        pods in prop::collection::vec(random_pod(), 0..24),
        horizon in prop::sample::select(vec![60_i64, 420, 1800]),
    ) {
        let mut fixture = fixture(&nodes, &pods);
        let KnownHeadroom::Known { headroom, clause, .. } = fixture.app.model.known_headroom(fixture.now) else {
            panic!("all is live")
        };
        let headroom: Headroom = headroom.clone();
        prop_assert!(header(&fixture).contains(&clause.text), "{}", header(&fixture));

        let horizon = Span::from_secs(horizon);
        let (mut of_nodes, mut of_zones) = (BTreeMap::new(), BTreeMap::new());
        for _ in &nodes {
            fixture.press("2x");
            let (stranded, failing, _) = what_if(&fixture);
            prop_assert_eq!(forecast(&fixture, &failing, horizon).nowhere(), stranded.nowhere(), "{:?}", failing);
            of_nodes.insert(failing, stranded);
            fixture.press("<Esc>2j");
        }
        prop_assert_eq!(counted(&headroom.nodes), losses(&of_nodes));

        let zones: BTreeSet<usize> = nodes.iter().map(|node| node.zone).collect();
        for _ in zones.iter().filter(|_| zones.len() > 1) {
            fixture.press("1x");
            let (stranded, failing, zones) = what_if(&fixture);
            prop_assert_eq!(forecast(&fixture, &failing, horizon).nowhere(), stranded.nowhere(), "{:?}", failing);
            of_zones.insert(zones, stranded);
            fixture.press("<Esc>1j");
        }
        prop_assert_eq!(counted(&headroom.zones), losses(&of_zones));
    }
}

#[test]
fn the_number_is_withheld_while_it_is_not_known_and_has_an_age() {
    let mut fixture = DashboardFixture::well();
    let known = |fixture: &DashboardFixture| fixture.app.model.known_headroom(fixture.now).known().is_some();
    let says = |fixture: &DashboardFixture, words: &str| {
        let header = header(fixture);
        assert!(header.contains(words), "{words}: {header}");
    };
    assert!(known(&fixture));
    let words =
        "N-1: losing pool-a-01 would strand 1 pod (1 stuck), losing zone a would strand 10 pods (10 stuck)";
    says(&fixture, words);

    let computed: Timestamp = fixture.now;
    let after = |fixture: &mut DashboardFixture, secs: i64| {
        fixture.now = computed + Span::from_secs(secs);
        ClusterVerdict::new(&fixture.app.model, fixture.now).text()
    };
    let same = after(&mut fixture, 3600);
    assert!(same.ends_with(words), "what no change bears on does not age: {same}");
    fixture.change_node("pool-a-01", |node| node.unschedulable = true);
    assert!(after(&mut fixture, 7).ends_with(&format!("{words} (7s ago)")));
    assert!(after(&mut fixture, 150).ends_with(&format!("{words} (2m ago)")));
    assert!(after(&mut fixture, 1200).ends_with(&format!("{words} (20m ago)")));
    let old = after(&mut fixture, 1201);
    assert!(!known(&fixture) && old.ends_with("N-1: working out 100 %"), "{old}");

    fixture.now = computed;
    fixture.health(FeedKind::Pods, FeedState::Broken { since: computed, error: "reset".into() });
    assert!(!known(&fixture) && !header(&fixture).contains("N-1"), "pods are not seen: {}", header(&fixture));
    fixture.health(FeedKind::Pods, FeedState::Live);
    assert!(known(&fixture));
}

#[test]
fn a_report_has_as_much_of_the_number_as_the_verdict_says() {
    let mut fixture = DashboardFixture::well();
    fixture.add_pod("shop/more-0", "pool-a-01", WorkloadKind::ReplicaSet, Vec::new(), 100, 64);
    fixture.run(1);
    let (mut progress, mut partial) = (HeadroomProgress::default(), 0);
    while let Some(job) = fixture.app.model.next_headroom_job(fixture.now) {
        let mut steps = 0..1;
        let found = job.awaited(true).advance(&mut progress, || steps.next().is_some());
        fixture.app.model.predictions.set_headroom(found.map(HeadroomSnapshot::stopped));
        let model = &fixture.app.model;
        let report = StatusReport::new(model, fixture.now);
        let report = serde_json::to_value(report).expect("it is JSON")["headroom"].clone();
        match model.known_headroom(fixture.now) {
            KnownHeadroom::Known { clause, rest, .. } => {
                assert_eq!(report["text"], clause.text);
                let share = report["workedOutShare"].as_f64().expect("a number");
                let are_complete = ["nodes", "zones"].map(|of| report[of]["complete"] == true);
                assert_eq!(share < 1.0, rest.is_some(), "{report:#}");
                assert_eq!(are_complete.contains(&false), rest.is_some(), "{report:#}");
                assert!(rest.is_none() || report["definite"] == false, "{report:#}");
                partial += usize::from(rest.is_some());
            }
            KnownHeadroom::Computing(_) => assert!(report.is_null(), "{report:#}"),
            KnownHeadroom::Withheld => panic!("everything is known"),
        }
    }
    assert!(partial > 0);
}

/// The Lease says whether the pods of a zone that goes down are evicted.
#[test]
fn the_lease_of_kordon_is_read_while_the_failure_of_a_node_is_predicted() {
    let mut fixture = DashboardFixture::well();
    assert!(!fixture.app.shows_failure());
    fixture.press("2x");
    assert!(fixture.app.shows_failure());
    fixture.press("<Esc>");
    assert!(!fixture.app.shows_failure());
}
