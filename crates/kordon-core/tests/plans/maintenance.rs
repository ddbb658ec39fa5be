//! Maintenance of many nodes in waves: properties that hold for every cluster, and worked examples.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use proptest::{collection::vec, prelude::*};

use kordon_core::{
    cluster::{
        IntOrPercent, Key, LocalVolume, NodeName, PodEnding, Requests, Resources, WorkloadKind, ZoneKey,
    },
    maintenance::{
        LeftOutReason, MaintenanceOptions, MaintenanceOutcome, MaintenancePlan, PlanningProgress, WorstLoss,
    },
    operation::{Guards, OperationProgress, PodEnd, PodProgress, PodProgressStage},
    placement::Snapshot,
    plan::{DrainOptions, PodPlan, Retry, SurgeFate, headroom},
};
use kordon_time::{ClusterTime, Span, Timestamp};

use crate::{
    plan_fixture::{NEWEST, NOW, PlanFixture, least, not_ready, own, starting, terminating},
    surges::deployment,
};

const ZONE: &str = "topology.kubernetes.io/zone";

/// Adds nodes with this many cores, in the zones a, b and c in turn.
fn nodes(cores: &[i64]) -> PlanFixture {
    let names: Vec<String> = (0..cores.len()).map(|number| format!("n{number}")).collect();
    let mut fixture = PlanFixture::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
    for (number, cores) in cores.iter().enumerate() {
        fixture.node(&names[number], |node| {
            let zone = ["a", "b", "c"][number % 3];
            node.labels = [(ZONE.into(), zone.into())].into();
            node.allocatable = Resources { cpu_milli: cores * 1000, memory_bytes: 1 << 40, pods: 110 };
        });
    }
    fixture
}

/// Adds a ReplicaSet whose pods request one core each, with a budget that allows this many disruptions.
fn workload(fixture: &mut PlanFixture, name: &str, on: &[&str], may_leave: Option<i32>) {
    fixture.replica_set(name, i32::try_from(on.len()).expect("few"), on);
    for (place, node) in on.iter().enumerate() {
        let requests = Requests { cpu_milli: 1000, ..Requests::default() };
        fixture.pod(&format!("{name}-{place}"), node, |pod| pod.resources = Arc::new(requests.into()));
    }
    if let Some(most) = may_leave {
        fixture.budget(name, |budget| budget.max_unavailable = Some(IntOrPercent::Int(most)));
    }
    fixture.sync();
}

fn options(nodes: &[&str]) -> MaintenanceOptions {
    MaintenanceOptions {
        nodes: nodes.iter().map(|node| NodeName::from(*node)).collect(),
        drain: DrainOptions { ignore_daemonsets: true, force: true, ..DrainOptions::default() },
        work: Span::from_secs(300),
        settle: Span::from_secs(60),
        ..MaintenanceOptions::default()
    }
}

/// Guard rails under which a zone may lose its last node.
fn without_last_ready() -> Guards {
    Guards::default().without(&["last-ready".into()])
}

fn plan(fixture: &PlanFixture, options: &MaintenanceOptions) -> MaintenancePlan {
    MaintenancePlan::new(&fixture.cluster, options, fixture.rules(), NOW)
}

fn waves(plan: &MaintenancePlan) -> Vec<Vec<&str>> {
    plan.waves.iter().map(|wave| wave.nodes.iter().map(|node| &**node).collect()).collect()
}

#[test]
fn nodes_whose_pods_share_a_budget_go_one_after_the_other() {
    let mut fixture = nodes(&[8, 8, 8, 8, 8, 8]);
    workload(&mut fixture, "web", &["n0", "n1"], Some(1));
    workload(&mut fixture, "api", &["n2"], None);
    let plan = plan(&fixture, &options(&["n0", "n1", "n2"]));
    assert_eq!(waves(&plan), [vec!["n0", "n2"], vec!["n1"]]);
    assert_eq!((plan.cost().moves, plan.cost().moved_again), (3, 0));
    assert_eq!(plan.by_name.nodes, 3);
    assert!(plan.by_name.takes > plan.cost().takes, "{plan:#?}");
    assert_eq!(plan.waves[0].down.len(), 1, "the only pod of api is down for a while");
}

#[test]
fn the_progress_counts_nodes_in_waves_and_simulated_losses() {
    let mut fixture = nodes(&[8, 8, 8, 8, 8, 8]);
    workload(&mut fixture, "web", &["n0", "n1"], Some(1));
    let all = MaintenanceOptions { keeps_headroom: true, ..options(&["n0", "n1"]) };
    let told = RefCell::new(Vec::new());
    let tell = |progress: PlanningProgress| told.borrow_mut().push(progress.to_string());
    let plan = MaintenancePlan::with_progress(&fixture.cluster, &all, fixture.rules(), NOW, &tell);
    assert_eq!(waves(&plan), [["n0"], ["n1"]]);
    let told = told.into_inner();
    assert_eq!(told[0], "0 of 2 nodes in waves, N-1 0% worked out");
    assert!(told.iter().any(|text| text == "1 of 2 nodes in waves"), "{told:?}");
    assert!(told.iter().any(|text| text.starts_with("1 of 2 nodes in waves, N-1 ")), "{told:?}");
}

#[test]
fn replacements_land_where_nothing_is_to_be_done_any_more() {
    let mut fixture = nodes(&[2, 2, 2, 2, 2, 2]);
    workload(&mut fixture, "web", &["n0", "n1", "n2"], Some(1));
    workload(&mut fixture, "other", &["n3", "n3"], None);
    let all = options(&["n0", "n1", "n2", "n3", "n4"]);
    let plan = plan(&fixture, &MaintenanceOptions { guards: without_last_ready(), ..all });
    assert_eq!(plan.left_out, [], "{plan:#?}");
    assert_eq!(plan.cost().moved_again, 0, "{plan:#?}");
    assert!(plan.by_name.moved_again > 0, "by name, pods land on nodes that are still to be done: {plan:#?}");
}

#[test]
fn surges_are_named_by_when_their_waves_scale_them_or_with_the_reason_why_not() {
    let mut fixture = nodes(&[8; 6]);
    deployment(&mut fixture, "web", &["n0"]);
    deployment(&mut fixture, "db", &["n1"]);
    fixture.budget("web", |budget| budget.min_available = least(1));
    fixture.budget("db", |budget| budget.max_unavailable = Some(IntOrPercent::Int(0))).sync();
    let opens = NOW + Span::from_secs(3600);
    let mut options = options(&["n0", "n1"]);
    options.windows = vec![(opens, opens + Span::from_secs(3600))];
    options.drain.retry = Retry::OnRecovery;
    assert_eq!(plan(&fixture, &options).surges().count(), 0, "never by default");
    options.drain.surge = true;
    let plan = plan(&fixture, &options);
    assert_eq!(waves(&plan), [["n0"]], "{plan:#?}");
    let surges: Vec<_> = plan.surges().collect();
    let [web, db] = surges[..] else { panic!("{surges:?}") };
    let SurgeFate::Scales { run, .. } = &web.fate else { panic!("{web:?}") };
    assert_eq!(run.scaled_up, Some(opens), "the wave waits for its window");
    assert!(matches!(db.fate, SurgeFate::Refused(_)) && &*db.workload.name == "db", "{db:?}");
}

#[test]
fn a_node_that_cannot_be_drained_is_left_out_with_its_reason() {
    let mut fixture = nodes(&[8; 6]);
    workload(&mut fixture, "db", &["n0"], Some(0));
    workload(&mut fixture, "web", &["n1"], None);
    let plan = plan(&fixture, &options(&["n0", "n1"]));
    assert_eq!(waves(&plan), [vec!["n1"]]);
    let [(node, LeftOutReason::Drain(why))] = &plan.left_out[..] else { panic!("{plan:#?}") };
    assert_eq!(&**node, "n0");
    assert!(why.contains("blocked by default/db"), "{why}");
}

#[test]
fn pods_that_find_no_node_keep_theirs_out_of_the_waves() {
    let mut fixture = nodes(&[4, 1]);
    workload(&mut fixture, "web", &["n0", "n0", "n0"], None);
    let plan = plan(&fixture, &options(&["n0"]));
    assert_eq!(plan.left_out, [(NodeName::from("n0"), LeftOutReason::NoRoom { pods: 2 })]);
}

#[test]
fn pods_that_find_no_node_may_wait_for_theirs_if_that_is_allowed() {
    let mut fixture = nodes(&[4, 1, 4]);
    workload(&mut fixture, "web", &["n0", "n0", "n0"], None);
    workload(&mut fixture, "api", &["n2", "n2", "n2"], None);
    let all = options(&["n0", "n2"]);
    let options = MaintenanceOptions { allows_pending: true, guards: without_last_ready(), ..all };
    let plan = plan(&fixture, &options);
    assert_eq!(plan.left_out, [], "{plan:#?}");
    for wave in &plan.waves {
        let gone = wave.moves.len() + wave.pending.len();
        assert_eq!(gone, 3 * wave.nodes.len(), "what waits is back before the next wave: {wave:#?}");
    }
    let waiting: usize = plan.waves.iter().map(|wave| wave.pending.len()).sum();
    assert!(waiting >= 3, "{plan:#?}");
    let refused = MaintenanceOptions { allows_pending: false, ..options };
    assert!(!self::plan(&fixture, &refused).left_out.is_empty());
}

#[test]
fn a_pod_that_is_lost_leaves_its_node_and_does_not_count_as_moved() {
    let mut fixture = nodes(&[8, 8]);
    workload(&mut fixture, "api", &["n0"], None);
    fixture.pod("bare", "n0", |_| {});
    let plan = fixture.drain(&["n0"], DrainOptions { force: true, ..DrainOptions::default() });
    let gone = |row: &PodPlan| PodProgress {
        pod: row.pod.clone(),
        uid: row.uid.clone(),
        node: row.node.clone(),
        stage: PodProgressStage::Ended(PodEnd::Gone),
        part: None,
        tries: 1,
        late: false,
    };
    let progress = OperationProgress {
        id: "m1".parse().expect("an id"),
        started_at: NOW,
        ended: None,
        nodes: Vec::new(),
        pods: plan.pods.iter().map(gone).collect(),
        surges: Vec::new(),
    };
    let mut outcome = MaintenanceOutcome::default();
    outcome.count_pods(&progress, &plan);
    assert_eq!((progress.pods.len(), outcome.moves, outcome.repeated), (2, 1, 0));
}

#[test]
fn limits_of_zones_and_of_nodes_at_a_time_are_kept() {
    let fixture = nodes(&[8; 9]);
    let names: Vec<String> = (0..9).map(|number| format!("n{number}")).collect();
    let all = options(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let sizes = |options: &MaintenanceOptions| {
        plan(&fixture, options).waves.iter().map(|wave| wave.nodes.len()).collect::<Vec<_>>()
    };
    assert_eq!(sizes(&all), [6, 3], "each zone keeps a node that is Ready and schedulable");
    let all_at_once = MaintenanceOptions { guards: without_last_ready(), ..all.clone() };
    assert_eq!(sizes(&all_at_once), [9]);
    assert_eq!(sizes(&MaintenanceOptions { max_per_zone: Some(1), ..all.clone() }), [3, 3, 3]);
    assert_eq!(sizes(&MaintenanceOptions { parallel: Some(2), ..all }), [2, 2, 2, 2, 1]);
}

#[test]
fn control_plane_nodes_have_a_wave_each_unless_they_may_go_together() {
    let mut fixture = nodes(&[8; 6]);
    for name in ["n0", "n1", "n2"] {
        fixture.node(name, |node| {
            let zone = node.label(ZONE).expect("a zone").clone();
            let role = "node-role.kubernetes.io/control-plane".into();
            node.labels = [(ZONE.into(), zone), (role, "".into())].into();
        });
    }
    let all = options(&["n0", "n1", "n2", "n3"]);
    let plan = |options: &MaintenanceOptions| {
        let plan = plan(&fixture, options);
        let waves: Vec<Vec<String>> =
            plan.waves.iter().map(|wave| wave.nodes.iter().map(ToString::to_string).collect()).collect();
        (waves, plan.control_plane_warning())
    };
    let (apart, warning) = plan(&MaintenanceOptions { guards: without_last_ready(), ..all.clone() });
    assert_eq!(apart, [vec!["n0", "n3"], vec!["n1"], vec!["n2"]]);
    assert!(warning.expect("a text").starts_with("3 nodes are control plane nodes: a wave has only one"));
    let together =
        MaintenanceOptions { control_planes_together: true, guards: without_last_ready(), ..all.clone() };
    let (waves, warning) = plan(&together);
    assert_eq!(waves, [["n0", "n1", "n2", "n3"]]);
    assert!(warning.expect("a text").contains("up to 3 of them are down at the same time"));
    assert_eq!(plan(&options(&["n0"])).1.as_deref(), Some("n0 is a control plane node"));
    assert_eq!(plan(&options(&["n3"])).1, None);
}

#[test]
fn waves_run_in_windows_only() {
    let fixture = nodes(&[8; 5]);
    let at = |seconds: i64| NOW + Span::from_secs(seconds);
    let options = MaintenanceOptions {
        parallel: Some(1),
        windows: vec![(at(0), at(100)), (at(1_000), at(1_400)), (at(9_000), at(9_361))],
        ..options(&["n0", "n1"])
    };
    let starts: Vec<Timestamp> = plan(&fixture, &options).waves.iter().map(|wave| wave.starts).collect();
    assert_eq!(starts, [at(1_000), at(9_000)]);
    let late = MaintenanceOptions { windows: vec![(at(1_000), at(1_400))], ..options };
    let plan = plan(&fixture, &late);
    let takes = Span::from_secs(360);
    assert_eq!(
        (plan.waves.len(), &plan.left_out[..]),
        (1, &[("n1".into(), LeftOutReason::NoWindow { takes })][..])
    );
}

#[test]
fn the_wait_for_a_window_does_not_count_in_the_longest_time() {
    let fixture = nodes(&[8; 5]);
    let at = |seconds: i64| NOW + Span::from_secs(seconds);
    let options = MaintenanceOptions {
        parallel: Some(1),
        windows: vec![(at(20_000), at(20_400)), (at(30_000), at(30_400))],
        longest: Some(Span::from_secs(600)),
        ..options(&["n0", "n1"])
    };
    let late = (NodeName::from("n1"), LeftOutReason::MaxDuration { takes: Span::from_secs(360) });
    let first = plan(&fixture, &options);
    assert_eq!((waves(&first), &first.left_out[..]), (vec![vec!["n0"]], &[late][..]));
    let in_all = MaintenanceOptions { longest: Some(Span::from_secs(10_360)), ..options.clone() };
    assert_eq!(waves(&plan(&fixture, &in_all)), [["n0"], ["n1"]]);
    let begun = MaintenanceOptions { began: Some(at(19_000)), ..options };
    assert_eq!(waves(&plan(&fixture, &begun)), Vec::<Vec<&str>>::new(), "an earlier wave has started");
}

#[test]
fn nodes_that_fit_into_the_remaining_time_have_a_wave_without_the_others() {
    let mut fixture = nodes(&[8; 6]);
    workload(&mut fixture, "web", &["n0"], None);
    let all = options(&["n0", "n1"]);
    let takes = plan(&fixture, &all).cost().takes;
    let within = |longest: Span| MaintenanceOptions { longest: Some(longest), ..all.clone() };
    assert_eq!(waves(&plan(&fixture, &within(takes))), [vec!["n1", "n0"]]);
    let short = takes - Span::from_secs(1);
    let in_window = MaintenanceOptions { windows: vec![(NOW, NOW + short)], ..all.clone() };
    for (options, reason) in [
        (within(short), "--max-duration leaves no room for a wave of "),
        (in_window, "no window has room for a wave of "),
    ] {
        let plan = plan(&fixture, &options);
        assert_eq!(waves(&plan), [vec!["n1"]], "n1 has no pods to drain: {plan:#?}");
        let [(node, why)] = &plan.left_out[..] else { panic!("{plan:#?}") };
        assert_eq!(&**node, "n0");
        assert!(why.to_string().starts_with(reason), "{why}");
    }
}

/// The guard rail `last-ready` counts nodes that are cordoned in advance as out of service, although they are not
/// drained yet.
#[test]
fn no_wave_closes_the_last_node_of_a_zone() {
    let mut fixture = nodes(&[8, 8, 8]);
    workload(&mut fixture, "web", &["n0", "n1", "n2"], None);
    let all = options(&["n0", "n1", "n2"]);
    let strict = plan(&fixture, &all);
    assert_eq!(waves(&strict), Vec::<Vec<&str>>::new());
    let is_guard =
        |reason: &LeftOutReason| matches!(reason, LeftOutReason::Guard(why) if why.contains("last ready"));
    assert!(
        strict.left_out.len() == 3 && strict.left_out.iter().all(|(_, why)| is_guard(why)),
        "{strict:#?}"
    );
    let loose = MaintenanceOptions { guards: without_last_ready(), ..all };
    assert_eq!(plan(&fixture, &loose).left_out, []);

    let two_zones = nodes(&[8, 8, 8, 8]);
    let both = plan(&two_zones, &options(&["n0", "n3"]));
    assert_eq!(waves(&both), [vec!["n0"], vec!["n3"]], "zone a has n0 and n3");
    assert!(both.waves[0].ahead.is_empty(), "n3 stays schedulable while n0 is drained");
}

/// The settings of a maintenance may allow that the loss of a node is worse between waves than before the start.
#[test]
fn a_wave_after_which_a_loss_is_worse_has_to_be_allowed() {
    let mut fixture = nodes(&[1, 4, 2]);
    workload(&mut fixture, "a", &["n0"], None);
    workload(&mut fixture, "b", &["n1"; 4], None);
    workload(&mut fixture, "c", &["n2"], None);
    let strict = MaintenanceOptions {
        keeps_headroom: true,
        before: Some(WorstLoss { node: 0, zone: 0 }),
        guards: without_last_ready(),
        ..options(&["n0"])
    };
    let left_out = plan(&fixture, &strict).left_out;
    let [(_, reason @ LeftOutReason::Headroom { .. })] = &left_out[..] else { panic!("{left_out:#?}") };
    assert!(reason.to_string().ends_with("; --allow-worse-loss lifts this"), "{reason}");
    let loose = MaintenanceOptions { keeps_headroom: false, ..strict };
    assert_eq!(waves(&plan(&fixture, &loose)), [["n0"]]);
    assert!(loose.assumptions().iter().any(|text| text.contains("--allow-worse-loss")));
}

/// The replacement of a crashing pod is not expected to become Ready, so moving the pod makes no room in its budget.
#[test]
fn a_pod_that_crashes_does_not_become_ready_by_moving() {
    let mut fixture = nodes(&[8; 6]);
    workload(&mut fixture, "web", &["n0", "n1"], None);
    fixture.pod("web-1", "n1", |pod| {
        not_ready(pod);
        pod.ending =
            Some(PodEnding { trouble: Some("CrashLoopBackOff".into()), ..PodEnding::default() }.into());
    });
    fixture.budget("web", |budget| budget.min_available = least(1));
    fixture.sync();
    let plan = plan(&fixture, &options(&["n0", "n1"]));
    assert_eq!(waves(&plan), [vec!["n1"]], "{plan:#?}");
    let [(node, LeftOutReason::Drain(why))] = &plan.left_out[..] else { panic!("{plan:#?}") };
    assert_eq!(&**node, "n0");
    assert!(why.contains("web-0"), "{why}");
}

/// Kubernetes 1.37 `pkg/controller/statefulset/stateful_set_control.go`, `processReplica`: a pod that terminates is
/// created again once it is gone.
#[test]
fn what_is_in_motion_at_the_start_has_ended_by_the_second_wave() {
    let mut fixture = nodes(&[8; 6]);
    fixture.owner(WorkloadKind::StatefulSet, "db", 3);
    for (name, node) in [("db-0", "n0"), ("db-1", "n1"), ("db-2", "n2")] {
        fixture.pod(name, node, |pod| own(pod, WorkloadKind::StatefulSet, "db"));
    }
    fixture.pod("db-2", "n2", |pod| terminating(pod, 20));
    fixture.replica_set("web", 2, &["n0", "n1"]);
    fixture.pod("web-0", "n0", |pod| pod.created = ClusterTime::new(NOW - Span::from_secs(40)));
    fixture.pod("web-1", "n1", |pod| starting(pod, 5));
    for name in ["db", "web"] {
        fixture.budget(name, |budget| budget.max_unavailable = least(1));
    }
    fixture.sync();
    let plan = plan(&fixture, &options(&["n3", "n0", "n1"]));
    let names: Vec<&str> = plan.left_out.iter().map(|(node, _)| &**node).collect();
    assert_eq!(names, Vec::<&str>::new(), "{plan:#?}");
}

#[test]
fn losses_and_pods_that_may_outlast_the_timeout_are_told_for_each_wave() {
    let mut fixture = nodes(&[8; 6]);
    fixture.pod("tool", "n0", |pod| pod.grace = Span::from_secs(86_400));
    let quick = DrainOptions { timeout: Some(Span::from_secs(7_200)), ..options(&[]).drain };
    let plan = plan(&fixture, &MaintenanceOptions { drain: quick, ..options(&["n0"]) });
    let [wave] = &plan.waves[..] else { panic!("{plan:#?}") };
    assert_eq!(wave.may_time_out, 1);
    let [loss] = &wave.losses[..] else { panic!("{wave:#?}") };
    assert_eq!((&*loss.pod.name, loss.is_accepted_by_force()), ("tool", true));
}

#[test]
fn pods_that_lose_data_are_counted_in_their_wave_and_in_the_cost() {
    let mut fixture = nodes(&[8; 6]);
    workload(&mut fixture, "web", &["n0", "n1"], None);
    fixture.pod("web-0", "n0", |pod| pod.storage.add(LocalVolume::EmptyDir)).sync();
    let drain = DrainOptions { delete_emptydir_data: true, ..options(&[]).drain };
    let all = MaintenanceOptions { drain, parallel: Some(1), ..options(&["n0", "n1"]) };
    let plan = plan(&fixture, &all);
    let lost: Vec<usize> = plan.waves.iter().map(|wave| wave.data_lost).collect();
    assert_eq!((lost, plan.cost().data_lost), (vec![1, 0], 1), "{plan:#?}");
}

#[derive(Clone, Debug)]
struct RandomWorkload {
    on: Vec<usize>,
    may_leave: Option<i32>,
}

fn random_workload() -> impl Strategy<Value = RandomWorkload> {
    (vec(0_usize..8, 1..5), prop::option::of(0_i32..3))
        .prop_map(|(on, may_leave)| RandomWorkload { on, may_leave })
}

/// The workload and the node of each pod, after the waves have moved the pods.
type Places = BTreeMap<Key, (String, NodeName)>;

fn places(fixture: &PlanFixture) -> Places {
    let pods = fixture.cluster.pods().iter();
    pods.filter_map(|pod| {
        let owner = pod.owner.as_ref()?.name.to_string();
        Some((pod.key.clone(), (owner, pod.node.clone()?)))
    })
    .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn waves_respect_budgets_zones_and_n_1(
        cores in vec(2_i64..6, 4..8),
        workloads in vec(random_workload(), 1..5),
        chosen in vec(prop::bool::ANY, 8),
        parallel in prop::option::of(1_usize..4),
        max_per_zone in prop::option::of(1_usize..3),
    ) {
        let mut fixture = nodes(&cores);
        let names: Vec<String> = (0..cores.len()).map(|number| format!("n{number}")).collect();
        for (number, random) in workloads.iter().enumerate() {
            let on: Vec<&str> = random.on.iter().map(|node| names[node % names.len()].as_str()).collect();
            workload(&mut fixture, &format!("w{number}"), &on, random.may_leave);
        }
        let wanted: Vec<&str> =
            names.iter().zip(&chosen).filter(|(_, chosen)| **chosen).map(|(name, _)| name.as_str()).collect();
        let options =
            MaintenanceOptions { parallel, max_per_zone, keeps_headroom: true, ..options(&wanted) };
        let plan = plan(&fixture, &options);

        let in_waves = plan.waves.iter().flat_map(|wave| &wave.nodes);
        let mut all: Vec<&NodeName> = in_waves.chain(plan.left_out.iter().map(|(node, _)| node)).collect();
        all.sort();
        prop_assert_eq!(all.iter().map(|node| &***node).collect::<Vec<_>>(), wanted.clone(), "every node once");

        let snapshot = Snapshot::new(&fixture.cluster, NEWEST);
        let before = headroom(&fixture.cluster, &snapshot, |_| true).expect("it is not interrupted");
        let before = before.nodes.most_stranded().max(before.zones.most_stranded());
        let mut places = places(&fixture);
        let mut done: BTreeSet<&NodeName> = BTreeSet::new();
        let mut ended = NOW;
        for wave in &plan.waves {
            prop_assert!(wave.starts >= ended && wave.drained >= wave.starts && wave.ends >= wave.drained);
            ended = wave.ends;
            prop_assert!(parallel.is_none_or(|most| wave.nodes.len() <= most));
            let mut zones: BTreeMap<ZoneKey, usize> = BTreeMap::new();
            for node in &wave.nodes {
                *zones.entry(fixture.cluster.node(node).expect("a node").zone()).or_default() += 1;
            }
            prop_assert!(max_per_zone.is_none_or(|most| zones.values().all(|nodes| *nodes <= most)));
            let is_open = |name: &&String| {
                let name = NodeName::from(name.as_str());
                !wave.nodes.contains(&name) && !wave.ahead.contains(&name)
            };
            let zone_of = |name: &str| fixture.cluster.node(&name.into()).expect("a node").zone();
            let open: BTreeSet<ZoneKey> = names.iter().filter(is_open).map(|name| zone_of(name)).collect();
            prop_assert!(names.iter().all(|name| open.contains(&zone_of(name))), "a zone without an open node");
            // Pods of one budget on several nodes of a wave must all be allowed to leave at once.
            for (number, random) in workloads.iter().enumerate() {
                let Some(most) = random.may_leave else { continue };
                let app = format!("w{number}");
                let leaving = || places.values().filter(|(owner, node)| *owner == app && wave.nodes.contains(node));
                let nodes: BTreeSet<&NodeName> = leaving().map(|(_, node)| node).collect();
                prop_assert!(nodes.len() < 2 || leaving().count() <= usize::try_from(most).expect("not negative"));
                prop_assert!(most > 0 || nodes.is_empty(), "a budget that allows nothing");
            }
            for moved in &wave.moves {
                prop_assert!(wave.nodes.contains(&moved.from) && !wave.nodes.contains(&moved.to));
                prop_assert!(!wave.ahead.contains(&moved.to), "{} is cordoned", moved.to);
                let again = places.values().filter(|(_, node)| *node == moved.from).count();
                prop_assert!(again > 0, "somebody moves from where nobody is");
            }
            // Every pod on a node of the wave leaves it, and is on another node in the end.
            for (_, node) in places.values() {
                let leaves = wave.moves.iter().filter(|moved| moved.from == *node).count();
                let was_there = places.values().filter(|(_, other)| other == node).count();
                prop_assert!(!wave.nodes.contains(node) || leaves == was_there);
            }
            let pods: Vec<(String, NodeName)> = wave
                .moves
                .iter()
                .map(|moved| {
                    let owner = moved.pod.name.split('-').next().expect("a part").to_owned();
                    (owner, moved.to.clone())
                })
                .collect();
            places.retain(|_, (_, node)| !wave.nodes.contains(node));
            for (number, place) in pods.into_iter().enumerate() {
                places.insert(Key::new("default", &format!("moved-{}-{number}", wave.nodes[0])), place);
            }
            done.extend(&wave.nodes);
            prop_assert!(wave.stranded.is_none_or(|stranded| stranded <= before), "N-1 is no worse");
        }
        let cost = plan.cost();
        prop_assert_eq!(cost.moves, plan.waves.iter().map(|wave| wave.moves.len()).sum::<usize>());
        prop_assert_eq!(fixture.cluster.pods().iter().count(), places.len(), "no pod is lost");
    }
}
