//! The verdict on the cluster: a table of cases, and the agreement of the verdict with the rows below it.

use std::sync::Arc;

use kordon::{
    k8s::feed::{FeedKind, FeedState},
    model::{ClusterVerdict, EvictionRow, EvictionState, StateRole, VerdictLevel},
};
use kordon_core::{
    cluster::{
        ConditionStatus, CordonNote, DrainClaim, FieldManager, MaintenanceNote, NodeName, Requests,
        TaintEffect, WorkloadKind,
    },
    engine::{Confidence, ZoneState},
    plan::{OutcomeCounts, words::counted},
};

use kordon_time::{ClusterTime, Span};

use crate::dashboard_fixture::{DashboardFixture, Withheld, set_condition, taint, tolerates};

/// An event in a cluster of thirty healthy nodes, the expected level, and the start of the expected verdict.
type Case = (fn(&mut DashboardFixture), VerdictLevel, &'static str);

const CASES: &[Case] = &[
    (
        |_| {},
        VerdictLevel::Healthy,
        "all 30 nodes Ready · N-1: losing pool-a-01 would strand 1 pod (1 stuck), losing zone a would strand 10 pods (10 stuck)",
    ),
    (|it| fail(it, &["pool-b-05"], 18), VerdictLevel::Notice, "node pool-b-05 Late 20s · N-1"),
    (
        |it| fail(it, &["pool-b-05"], 30),
        VerdictLevel::Warning,
        "node pool-b-05 Silent 32s · Unknown in 21s · 2 pods of pool-b-05 to be evicted, first in 5m21s",
    ),
    (
        |it| fail(it, &["pool-b-05"], 80),
        VerdictLevel::Critical,
        "node pool-b-05 Evicting 29s · 2 pods of pool-b-05 to be evicted, next in 4m31s",
    ),
    (
        |it| fail(it, &ZONE_B[..8], 40),
        VerdictLevel::Critical,
        "zone b: 8 of 10 nodes Silent · 2 pods to be evicted, first in ",
    ),
    (|it| fail(it, &ZONE_B[..8], 90), VerdictLevel::Critical, "zone b 8 of 10 down, no new evictions · "),
    (|it| fail(it, &ZONE_B, 90), VerdictLevel::Critical, "zone b down (10 of 10) · "),
    (
        |it| {
            it.fill("pool-b-05");
            fail(it, &["pool-b-05"], 80);
        },
        VerdictLevel::Critical,
        "node pool-b-05 Evicting 29s · 3 pods will have nowhere to run in 4m31s: 1 lost, 1 stuck, 1 Pending · \
         5 pods of pool-b-05 to be evicted, next in 4m31s",
    ),
    (
        |it| maintained(it, 600, None),
        VerdictLevel::Notice,
        "maintenance of alice@desk was stopped with 1 node left · kordon maintenance --resume=m-1 goes on",
    ),
    (
        |it| maintained(it, 10, None),
        VerdictLevel::Healthy,
        "all 30 nodes Ready · maintenance of alice@desk runs with 1 node left",
    ),
    (
        |it| maintained(it, 10, Some(300 * 3600)),
        VerdictLevel::Notice,
        "maintenance of alice@desk paused 12d12h with 1 node left",
    ),
    (
        all_down,
        VerdictLevel::Critical,
        "no node reports: every zone is down (30 of 30 nodes), evictions paused until a node is Ready",
    ),
    (
        |it| {
            broken(it, &[FeedKind::Pods]);
            it.run(20);
        },
        VerdictLevel::Warning,
        "all 30 nodes Ready · pods stale for 20s",
    ),
    (
        |it| {
            broken(it, &FeedKind::ALL);
            it.run_blind(20);
        },
        VerdictLevel::Disconnected,
        "disconnected 20s: states frozen",
    ),
    (without_controller, VerdictLevel::Critical, "no active kube-controller-manager for "),
    (drained, VerdictLevel::Notice, "node pool-b-01 Draining, 6 of 8 pods gone · N-1"),
    (
        |it| set(it, "pool-b-01", "DiskPressure", ConditionStatus::True),
        VerdictLevel::Warning,
        "node pool-b-01 DiskPressure 0s",
    ),
    (
        |it| it.change_node("pool-b-01", |node| node.unschedulable = true),
        VerdictLevel::Healthy,
        "29 of 30 nodes Ready, 1 Cordoned · N-1",
    ),
    (
        |it| ["pool-b-01", "pool-b-02"].iter().for_each(|node| cordon(it, node, "alice")),
        VerdictLevel::Healthy,
        "28 of 30 nodes Ready, 2 Cordoned by alice · N-1",
    ),
    (
        |it| {
            [("pool-b-01", "alice"), ("pool-b-02", "bob")].iter().for_each(|(node, by)| cordon(it, node, by))
        },
        VerdictLevel::Healthy,
        "28 of 30 nodes Ready, 2 Cordoned · N-1",
    ),
];

const ZONE_B: [&str; 10] = [
    "pool-b-01",
    "pool-b-02",
    "pool-b-03",
    "pool-b-04",
    "pool-b-05",
    "pool-b-06",
    "pool-b-07",
    "pool-b-08",
    "pool-b-09",
    "pool-b-10",
];

fn fail(fixture: &mut DashboardFixture, nodes: &[&str], seconds: i64) {
    nodes.iter().for_each(|node| fixture.silence(node));
    fixture.run(seconds);
}

fn silence_all(fixture: &mut DashboardFixture) {
    for node in ZONE_B {
        for zone in ["a", "b", "c"] {
            fixture.silence(&node.replace("-b-", &format!("-{zone}-")));
        }
    }
}

fn all_down(fixture: &mut DashboardFixture) {
    silence_all(fixture);
    fixture.run(90);
}

fn broken(fixture: &mut DashboardFixture, kinds: &[FeedKind]) {
    for kind in kinds {
        fixture.health(*kind, FeedState::Broken { since: fixture.now, error: "reset".into() });
    }
}

fn without_controller(fixture: &mut DashboardFixture) {
    fixture.led = false;
    fixture.run(60);
}

/// Adds the note of a maintenance to a node. The maintenance renewed the note, and was paused, this many seconds ago.
fn maintained(fixture: &mut DashboardFixture, seconds: i64, paused: Option<i64>) {
    let note = MaintenanceNote {
        by: "alice@desk".into(),
        operation: "m-1".parse().expect("an id"),
        renewed: fixture.now - Span::from_secs(seconds),
        paused: paused.map(|seconds| fixture.now - Span::from_secs(seconds)),
        ..MaintenanceNote::default()
    };
    fixture.change_node("pool-b-05", |node| node.maintenance = Some(note.into()));
}

fn drained(fixture: &mut DashboardFixture) {
    let claim =
        DrainClaim { by: "carol".into(), renewed: fixture.now, pods: Some(8), ..DrainClaim::default() };
    fixture.change_node("pool-b-01", |node| node.drain_claim = Some(Arc::new(claim)));
}

fn cordon(fixture: &mut DashboardFixture, node: &str, by: &str) {
    let note = CordonNote { by: by.into(), ..CordonNote::default() };
    fixture.change_node(node, |node| {
        node.unschedulable = true;
        node.cordon_note = Some(Arc::new(note));
    });
}

fn set(fixture: &mut DashboardFixture, node: &str, kind: &str, status: ConditionStatus) {
    let now = fixture.now;
    fixture.change_node(node, |node| set_condition(node, kind, status, now));
}

fn verdict(fixture: &mut DashboardFixture) -> ClusterVerdict {
    fixture.app.refresh(fixture.now);
    ClusterVerdict::new(&fixture.app.model, fixture.now)
}

/// Returns the parts of a verdict, in the forms that fit a line of this many cells.
fn parts_within(verdict: &ClusterVerdict, cells: usize) -> Vec<&str> {
    verdict.parts_for(|parts| parts.join(" · ").chars().count() <= cells)
}

#[test]
fn the_worst_thing_comes_first_then_what_happens_next_then_the_consequence() {
    let mut wrong = Vec::new();
    for (place, (happens, level, text)) in CASES.iter().enumerate() {
        let mut fixture = DashboardFixture::well();
        happens(&mut fixture);
        let verdict = verdict(&mut fixture);
        if verdict.level != *level || !verdict.text().starts_with(text) {
            wrong.push(format!("{place}: {:?} {}\n   not {level:?} {text}", verdict.level, verdict.text()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Lets time pass until the controller or the kubelet reports the node as not ready.
fn run_until_down(fixture: &mut DashboardFixture, node: &str) {
    let is_down = |fixture: &DashboardFixture| {
        let state = fixture.app.model.watchlist.state(&node.into());
        state.is_some_and(|state| state.is_down())
    };
    for _ in 0..60 {
        if is_down(fixture) {
            return;
        }
        fixture.run(1);
    }
    panic!("{node} is not down after a minute");
}

#[test]
fn one_node_that_is_unknown_before_the_others_does_not_hide_that_they_are_silent() {
    let mut fixture = DashboardFixture::well();
    fixture.silence("pool-b-01");
    fixture.run(13);
    ["pool-b-04", "pool-b-07"].iter().for_each(|node| fixture.silence(node));
    run_until_down(&mut fixture, "pool-b-01");
    let text = verdict(&mut fixture).text();
    assert!(text.starts_with("zone b: 1 of 10 nodes ") && text.contains(", 2 Silent"), "{text}");
}

#[test]
fn a_cluster_without_a_node_that_reports_is_down_although_few_nodes_are_unknown_so_far() {
    let mut fixture = DashboardFixture::well();
    silence_all(&mut fixture);
    fixture.run(40);
    assert!(verdict(&mut fixture).text().starts_with("no heartbeat from any of 30 nodes for 4"));
    run_until_down(&mut fixture, "pool-b-04");
    let text = verdict(&mut fixture).text();
    assert!(text.starts_with("all 30 nodes down: ") && text.contains(" Silent"), "{text}");
}

#[test]
fn before_anything_is_known_and_in_an_empty_cluster_the_verdict_is_not_healthy() {
    let mut fixture = DashboardFixture::new();
    let before = verdict(&mut fixture);
    assert_eq!((before.level, before.text().as_str()), (VerdictLevel::Disconnected, "waiting for nodes"));
    fixture.lists();
    let empty = verdict(&mut fixture);
    assert_eq!((empty.level, empty.text().as_str()), (VerdictLevel::Notice, "no nodes"));
}

#[test]
fn a_cluster_that_cannot_lose_a_node_is_a_notice_until_a_zone_is_down() {
    let mut fixture = DashboardFixture::maintenance();
    fixture.add_pod("default/big-0", "pool-c-10", WorkloadKind::ReplicaSet, Vec::new(), 9000, 64);
    fixture.add_owner(WorkloadKind::ReplicaSet, "big");
    fixture.change_pod("default/big-0", |pod| {
        let requests = Requests { cpu_milli: 9000, ..Requests::default() };
        pod.resources = Arc::new(requests.into());
    });
    fixture.run(31);
    let short = verdict(&mut fixture);
    assert_eq!(short.level, VerdictLevel::Notice, "{}", short.text());
    let words =
        " · N-1: losing pool-a-01 would strand 2 pods (1 lost, 1 stuck), losing zone a would strand 11";
    assert!(short.text().contains(words), "{}", short.text());
    fail(&mut fixture, &ZONE_B, 90);
    assert!(!verdict(&mut fixture).text().contains("N-1"), "nobody plans for the next loss now");
}

/// Asserts that the verdict has the same numbers of pod outcomes as the rows of the evictions.
fn expect_consequences(fixture: &DashboardFixture, verdict: &ClusterVerdict, seed: u64) {
    let model = &fixture.app.model;
    let leaves = |row: &EvictionRow| {
        matches!(row.state, EvictionState::Scheduled { .. } | EvictionState::Predicted { .. })
    };
    let rows = model.views.leaving.evictions.iter().filter(|(_, row)| leaves(row));
    let outcomes: OutcomeCounts =
        rows.filter_map(|(key, row)| Some(model.outcome(key, row)?.kind())).collect();
    assert_eq!(model.views.counts.outcomes, outcomes, "seed {seed}");
    let is_said = |text: &str| verdict.parts.iter().any(|part| part.contains(text));
    assert!(
        !is_said("to be evicted") || outcomes.total() + model.views.counts.working_out > 0,
        "seed {seed}: {verdict:?}"
    );
    let will = model.views.counts.will_have_nowhere();
    // The text of the verdict depends on whether pods already have nowhere to run.
    let pods = counted(will, "pod", "pods");
    let future = [format!(", {will} more"), format!("{pods} will ")];
    let predicts = !is_said("evictions paused") && !is_said("no active kube-controller-manager");
    let expected = will > 0 && predicts;
    assert_eq!(future.iter().any(|text| is_said(text)), expected, "seed {seed}: {future:?}, {verdict:?}");
    let is_any_said =
        [" will be ", " will fail ", " will have nowhere to run", " soon", ", first in"].into_iter().any(
            |words| verdict.parts.iter().any(|part| part.contains(words) && !part.contains("to be evicted")),
        );
    assert!(expected || !is_any_said, "seed {seed}: {verdict:?}");
}

/// The forecast looks ten minutes ahead. A toleration that ends later is listed as an eviction only once the node is
/// tainted.
#[test]
fn evictions_after_the_end_of_the_forecast_are_announced() {
    let mut fixture = DashboardFixture::new().with_controller();
    for (node, zone) in [("n0", "a"), ("n1", "a"), ("n2", "a"), ("n3", "b")] {
        fixture.add_node(node, zone);
    }
    for (pod, seconds) in [("default/w0-1", 30), ("default/w0-2", 30), ("default/w0-3", 9_999)] {
        let tolerations = vec![tolerates("node.kubernetes.io/unreachable", Some(seconds))];
        fixture.add_pod(pod, "n0", WorkloadKind::ReplicaSet, tolerations, 500, 128);
    }
    fixture.lists();
    fixture.add_owner(WorkloadKind::ReplicaSet, "w0");
    fixture.run(60);
    fail(&mut fixture, &["n0"], 40);
    let text = verdict(&mut fixture).text();
    assert!(
        text.contains("2 pods of n0 to be evicted within 10m, first in ") && text.contains(", more later"),
        "{text}"
    );
    fixture.run(25);
    let text = verdict(&mut fixture).text();
    assert!(text.contains("3 pods of n0 to be evicted, next in ") && !text.contains("more later"), "{text}");
}

/// Cordons pool-b-01 as kubectl does, marks its pods as evicted, and returns their names.
fn drain_by_kubectl(fixture: &mut DashboardFixture) -> Vec<String> {
    let cordon = taint(
        "node.kubernetes.io/unschedulable",
        TaintEffect::NoSchedule,
        Some(ClusterTime::new(fixture.now)),
    );
    fixture.change_node("pool-b-01", |node| {
        node.unschedulable = true;
        node.taints = [cordon].into();
        node.unschedulable_by =
            Some(Arc::new(FieldManager { manager: "kubectl".into(), ..FieldManager::default() }));
    });
    fixture.run(1);
    let node = "pool-b-01".into();
    let pods: Vec<String> = fixture.world.workload_pods(&node).map(|pod| pod.key.to_string()).collect();
    for pod in &pods {
        fixture.change_pod(pod, |pod| pod.disruption_target = Some("EvictionByEvictionAPI".into()));
    }
    pods
}

#[test]
fn a_drain_says_what_its_last_pods_wait_for() {
    let mut fixture = DashboardFixture::well();
    let pods = drain_by_kubectl(&mut fixture);
    fixture.terminate(&pods[0], &[]);
    fixture.run(5);
    fixture.reap();
    for pod in &pods[1..] {
        fixture.terminate(pod, &["example.com/hold"]);
    }
    fixture.run(1);
    let (last, end, held) = match pods.len() - 1 {
        1 => ("last pod".to_owned(), "ends", "held by a finalizer"),
        several => (format!("last {several} pods"), "end", "held by finalizers"),
    };
    let text = verdict(&mut fixture).text();
    let finalizers = if pods.len() == 2 { "its finalizer is" } else { "their finalizers are" };
    let promise = (format!(" gone, {last} {end} within "), format!("once {finalizers} removed"));
    assert!(text.contains(&promise.0) && text.contains(&promise.1), "{text}");
    fixture.run(40);
    let verdict = verdict(&mut fixture);
    let text = verdict.text();
    assert_eq!(verdict.level, VerdictLevel::Warning, "{text}");
    assert!(text.contains(" gone) hangs ") && text.contains(&format!("s: {last} {held}")), "{text}");
}

/// A drain by another client has no count of its pods: the pods that leave while kordon watches are counted.
#[test]
fn a_drain_by_kubectl_counts_the_pods_that_were_seen_leaving() {
    let mut fixture = DashboardFixture::well();
    let pods = drain_by_kubectl(&mut fixture);
    fixture.terminate(&pods[0], &[]);
    fixture.run(5);
    let began = verdict(&mut fixture).text();
    assert!(began.contains("node pool-b-01 Draining 6s"), "{began}");
    fixture.reap();
    fixture.terminate(&pods[1], &[]);
    fixture.run(1);
    let text = verdict(&mut fixture).text();
    let progress = format!("node pool-b-01 Draining, 1 of {} pods gone", pods.len());
    assert!(text.contains(&progress), "{text}");
}

/// A budget that refuses for now does not block the drain, but the drain waits for it.
#[test]
fn a_drain_says_at_once_how_many_pods_its_budget_waits_for() {
    let mut fixture = DashboardFixture::maintenance();
    let claim = |fixture: &mut DashboardFixture, node: &str| {
        let claim = DrainClaim { renewed: fixture.now, pods: Some(8), ..DrainClaim::default() };
        fixture.change_node(node, |node| {
            (node.unschedulable, node.drain_claim) = (true, Some(Arc::new(claim)));
        });
    };
    claim(&mut fixture, "pool-b-01");
    let text = verdict(&mut fixture).text();
    assert!(!text.contains("waits for"), "the budget allows an eviction: {text}");
    fixture.change_pod("shop/checkout-5kd8x", |pod| {
        pod.ready.as_mut().expect("a condition").status = ConditionStatus::False;
    });
    let refused = verdict(&mut fixture);
    let waits = "waits for PodDisruptionBudget shop/checkout: 1 more pod must be Ready";
    assert_eq!(refused.level, VerdictLevel::Notice, "{}", refused.text());
    assert!(refused.text().contains(&format!(" gone, {waits}")), "{}", refused.text());
    claim(&mut fixture, "pool-b-02");
    let text = verdict(&mut fixture).text();
    assert!(text.contains(&format!("nodes pool-b-01 and pool-b-02 Draining, 1 {waits}")), "{text}");
}

#[test]
fn the_outline_stays_the_same_while_nothing_but_time_passes() {
    let mut fixture = DashboardFixture::incident();
    let before = verdict(&mut fixture);
    assert!(before.text().contains("next in ") && !before.outline.contains("in 50s"), "{before:?}");
    fixture.run(1);
    let after = verdict(&mut fixture);
    assert!(after.text() != before.text() && after.outline == before.outline, "{before:?}\n{after:?}");
    fail(&mut fixture, &ZONE_B, 40);
    assert_ne!(verdict(&mut fixture).outline, before.outline);
}

/// If pods are unknown, the verdict does not say that no pods are left to evict.
#[test]
fn that_no_pod_is_left_to_evict_is_said_only_where_pods_are_known() {
    for (missing, is_said) in [(None, true), (Some(FeedKind::Pods), false)] {
        let mut fixture = DashboardFixture::new().with_controller();
        fixture.withhold(missing.map(|kind| (kind, Withheld::Forbidden)));
        for (node, zone) in [("n0", "a"), ("n1", "a"), ("n2", "b")] {
            fixture.add_node(node, zone);
        }
        fixture.lists();
        fixture.run(60);
        fail(&mut fixture, &["n0"], 80);
        let text = verdict(&mut fixture).text();
        assert_eq!(text.contains("no pod of n0 is left to evict"), is_said, "{missing:?}: {text}");
    }
}

#[test]
fn what_becomes_of_the_pods_that_leave_fits_a_line_of_80_columns() {
    let mut fixture = DashboardFixture::incident();
    let verdict = verdict(&mut fixture);
    assert!(verdict.parts[1].starts_with("3 pods will be stuck, first in "), "{verdict:?}");
    let line = verdict.parts[..2].join(" · ");
    assert!(line.chars().count() <= 76, "{line}");
}

#[test]
fn what_happens_next_fits_a_line_of_80_columns() {
    let verdict = verdict(&mut DashboardFixture::incident());
    let line = |cells: usize| parts_within(&verdict, cells).join(" · ");
    let starts = [
        "4 of 30 nodes Evicting, 1 Silent · 3 pods will be stuck, first in ",
        "4 of 30 nodes Evicting, 1 Silent · 3 pods stuck soon · 14 pods to be evicted, next in ",
        "4 of 30 nodes Evicting, 1 Silent · 3 pods stuck soon · next eviction in ",
        "4 of 30 nodes Evicting, 1 Silent · 3 pods stuck soon",
        "4 of 30 nodes Evicting, 1 Silent · 3 pods stuck soon",
    ];
    for (cells, start) in [usize::MAX, 90, 76, 62, 55].into_iter().zip(starts) {
        let line = line(cells);
        assert!(line.starts_with(start), "{cells}: {line}");
        assert_eq!(cells < 70, line == start, "{cells}: what happens next goes first: {line}");
    }
}

#[test]
fn pods_that_will_have_nowhere_to_run_outlast_the_next_event_of_their_node() {
    let mut fixture = DashboardFixture::well();
    fail(&mut fixture, &["pool-a-01"], 35);
    let verdict = verdict(&mut fixture);
    let [node, event, nowhere] = [0, 1, 2].map(|place| verdict.parts[place].as_str());
    let (pods, _) = nowhere.split_once(" will be stuck").unwrap_or_else(|| panic!("{verdict:?}"));
    let (_, time) = nowhere.split_once(" stuck in ").unwrap_or_else(|| panic!("{verdict:?}"));
    let short = format!("{pods} stuck in {time}");
    let all = [node, event, &short];
    assert!(event.starts_with("Unknown "), "{verdict:?}");
    let cells = all.join(" · ").chars().count();
    assert_eq!(parts_within(&verdict, cells), all);
    assert_eq!(parts_within(&verdict, cells - 1), [node, short.as_str()]);
}

/// Capacity helps pods that would be Pending, not those that would be stuck: N-1 has the outcomes of both losses, or on
/// a short line of neither.
#[test]
fn n_minus_one_has_the_outcomes_of_the_node_and_of_the_zone_or_of_neither() {
    let verdict = verdict(&mut DashboardFixture::well());
    let line = |cells: usize| parts_within(&verdict, cells).join(" · ");
    let whole = "all 30 nodes Ready · N-1: losing pool-a-01 would strand 1 pod (1 stuck), \
                 losing zone a would strand 10 pods (10 stuck)";
    let short =
        "all 30 nodes Ready · N-1: losing pool-a-01 would strand 1 pod, losing zone a would strand 10 pods";
    let cells = whole.chars().count();
    assert_eq!([line(cells), line(cells - 1), line(100)], [whole, short, short]);
}

/// A narrow line leaves out what happens later before it leaves out the pods that have nowhere to run now.
#[test]
fn pods_that_have_nowhere_to_run_are_counted_on_a_line_too_short_for_what_follows() {
    let mut fixture = DashboardFixture::incident();
    fixture.run(250);
    let verdict = verdict(&mut fixture);
    let (first, nowhere) = (&verdict.parts[0], &verdict.parts[1]);
    assert!(nowhere.contains(", 2 more, first in "), "{verdict:?}");
    let least = verdict.parts_for(|_| false);
    assert!(least[0] == first && !least[1].contains("first"), "{least:?}");
    let numbers = least[1].split_whitespace().filter_map(|word| word.parse::<usize>().ok());
    assert_eq!(numbers.sum::<usize>(), fixture.app.model.views.nowhere_now(), "{least:?}");
}

/// The forecast was made while the controller was active.
#[test]
fn without_a_controller_no_row_has_an_event_that_an_earlier_forecast_predicted() {
    let mut fixture = DashboardFixture::well();
    fail(&mut fixture, &["pool-b-05"], 30);
    let node = NodeName::from("pool-b-05");
    assert!(fixture.app.model.views.leaving.next.contains_key(&node));
    fixture.app.refresh(fixture.now + Span::from_secs(20));
    let views = &fixture.app.model.views;
    assert!(matches!(views.confidence, Some(Confidence::NoController { .. })), "{:?}", views.confidence);
    assert!(views.leaving.next.is_empty() && views.leaving.evictions.is_empty(), "{:?}", views.leaving);
}

#[test]
fn a_forecast_is_not_shown_once_its_controller_is_gone() {
    let mut fixture = DashboardFixture::well();
    fail(&mut fixture, &["pool-b-05"], 30);
    assert!(!fixture.app.screen.forecast.lanes.is_empty());
    fixture.app.refresh(fixture.now + Span::from_secs(20));
    let model = &fixture.app.model;
    assert!(matches!(model.views.confidence, Some(Confidence::NoController { .. })));
    assert!(model.predictions.forecast().is_none() && model.predictions.outlook().is_none());
    assert!(fixture.app.screen.forecast.lanes.is_empty());
}

/// While every node is Silent or Late, the short forms do not promise an eviction either.
#[test]
fn that_evictions_may_pause_fits_a_line_of_80_columns() {
    let mut fixture = DashboardFixture::well();
    silence_all(&mut fixture);
    fixture.run(20);
    let verdict = verdict(&mut fixture);
    let text = verdict.text();
    assert!(
        text.starts_with("no heartbeat from any of 30 nodes for ")
            && text.contains("(evictions pause if every node goes down)"),
        "{text}"
    );
    let parts = parts_within(&verdict, 76);
    assert!(parts.contains(&"evictions may pause"), "{parts:?}");
}

#[test]
fn pods_that_are_not_of_the_named_node_are_said_to_be_of_all_nodes() {
    let mut fixture = DashboardFixture::well();
    fail(&mut fixture, &["pool-a-03"], 400);
    let own = verdict(&mut fixture).text();
    assert!(own.starts_with("node pool-a-03 ") && !own.contains("all nodes: "), "{own}");
    fixture.add_waiting_pods();
    fixture.run(1);
    let verdict = verdict(&mut fixture);
    assert!(verdict.parts[1].starts_with("all nodes: "), "{verdict:?}");
}

#[test]
fn the_next_pod_to_leave_is_of_a_deleted_node_and_not_of_those_that_are_evicting() {
    let mut fixture = DashboardFixture::well();
    fail(&mut fixture, &["pool-a-03", "pool-a-05"], 130);
    assert!(!verdict(&mut fixture).text().contains("deleted"));
    fixture.remove_node("pool-c-05");
    fixture.run(1);
    let verdict = verdict(&mut fixture);
    assert!(verdict.text().contains(" (deleted node pool-c-05)"), "{verdict:?}");
    let parts = parts_within(&verdict, 120);
    let short = parts.iter().find(|part| part.starts_with("next eviction in "));
    assert!(short.is_none_or(|short| short.ends_with("(deleted node pool-c-05)")), "{parts:?}");
}

/// A node that is Evicting, whose pod leaves in minutes, and a Silent node of another zone, whose pod leaves before that.
fn evicting_beside_silent(silent_pod: WorkloadKind) -> DashboardFixture {
    let mut fixture = DashboardFixture::new().with_controller();
    for number in 0..6 {
        fixture.add_node(&format!("n{number}"), ["a", "b"][number % 2]);
    }
    let pods = [("web-0", "n0", WorkloadKind::ReplicaSet, 300), ("db-0", "n1", silent_pod, 30)];
    for (pod, node, kind, seconds) in pods {
        let tolerations = vec![tolerates("node.kubernetes.io/unreachable", Some(seconds))];
        fixture.add_pod(&format!("default/{pod}"), node, kind, tolerations, 100, 64);
    }
    fixture.lists();
    fixture.add_owner(WorkloadKind::ReplicaSet, "web");
    fixture.add_owner(silent_pod, "db");
    fixture.run(60);
    fail(&mut fixture, &["n0"], 80);
    fail(&mut fixture, &["n1"], 35);
    fixture
}

#[test]
fn the_next_eviction_is_that_of_the_whole_cluster_and_names_its_node() {
    let verdict = verdict(&mut evicting_beside_silent(WorkloadKind::ReplicaSet));
    let text = verdict.text();
    assert!(text.starts_with("node n0 Evicting "), "{text}");
    let place = |part: &str| verdict.parts.iter().position(|other| other.contains(part));
    let (next, own) = (place("2 pods to be evicted, next in "), place("1 pod of n0 to be evicted in "));
    assert!(next.is_some() && next < own, "{verdict:?}");
    assert!(verdict.parts[next.expect("it is there")].ends_with(" (n1)"), "{verdict:?}");
    let short = parts_within(&verdict, 70);
    let is_next = |part: &&str| part.starts_with("next eviction in ") && part.ends_with(" (n1)");
    assert!(short.iter().any(is_next), "{short:?}");
}

#[test]
fn pods_of_one_other_node_are_said_to_be_of_it() {
    let verdict = verdict(&mut evicting_beside_silent(WorkloadKind::StatefulSet));
    assert!(verdict.parts.iter().any(|part| part == "n1 Silent: 1 pod will be stuck in 46s"), "{verdict:?}");
    assert_eq!(verdict.text().matches("all nodes: ").count(), 1, "{verdict:?}");
    let short = parts_within(&verdict, 52);
    assert!(short.contains(&"n1: 1 pod stuck in 46s"), "{short:?}");
}

/// The nodes are Late, each of which alone would be a notice.
#[test]
fn a_cluster_without_any_heartbeat_is_a_warning_before_a_node_is_silent() {
    let mut fixture = DashboardFixture::well();
    silence_all(&mut fixture);
    fixture.run(20);
    let verdict = verdict(&mut fixture);
    assert!(verdict.level >= VerdictLevel::Warning, "{verdict:?}");
    let text = verdict.text();
    assert!(text.contains(" or more · first Unknown in ") && !text.contains("N-1"), "{text}");
}

#[test]
fn a_node_that_flaps_is_named_on_a_narrow_line() {
    let mut fixture = DashboardFixture::well();
    for _ in 0..2 {
        fail(&mut fixture, &["pool-b-05"], 40);
        fixture.revive("pool-b-05");
        fixture.run(2);
    }
    let verdict = verdict(&mut fixture);
    let whole = verdict.parts[0].as_str();
    let short = whole.replace("node pool", "pool").replace("Ready changed ", "");
    assert!(whole.starts_with("node pool-b-05 flaps: Ready changed "), "{verdict:?}");
    assert_eq!(parts_within(&verdict, whole.chars().count() - 1)[0], short);
}

#[test]
fn the_next_event_of_several_silent_nodes_names_its_node() {
    let mut fixture = DashboardFixture::new().with_controller();
    for (node, zone) in [("n0", "a"), ("n1", "a"), ("n2", "b")] {
        fixture.add_node(node, zone);
    }
    fixture.lists();
    fixture.run(60);
    fail(&mut fixture, &["n0", "n1"], 35);
    let text = verdict(&mut fixture).text();
    assert!(text.contains(" · next: n") && text.contains(" Unknown in "), "{text}");
}

#[test]
fn the_level_never_contradicts_the_rows_below() {
    for seed in 0..12 {
        let mut chance = fastrand::Rng::with_seed(seed);
        let mut fixture = DashboardFixture::well();
        let nodes = fixture.world.nodes().iter().skip(1);
        for node in nodes.map(|node| node.name.to_string()).collect::<Vec<_>>() {
            match chance.u32(..12 + 8 * (seed as u32 % 4)) {
                0 => fixture.silence(&node),
                1 => set(&mut fixture, &node, "Ready", ConditionStatus::False),
                2 => set(&mut fixture, &node, "MemoryPressure", ConditionStatus::True),
                3 => fixture.change_node(&node, |node| node.unschedulable = true),
                4 => fixture.change_node(&node, |node| node.conditions = [].into()),
                _ => {}
            }
        }
        if chance.bool() {
            fixture.fill("pool-a-01");
            fixture.silence("pool-a-01");
        }
        fixture.led = chance.u8(..5) > 0;
        for _ in 0..6 {
            fixture.run(chance.i64(1..30));
            let verdict = verdict(&mut fixture);
            expect_consequences(&fixture, &verdict, seed);
            let model = &fixture.app.model;
            let worst = model.watchlist.counts().keys().next().map(|state| state.role());
            let least = match worst {
                Some(StateRole::Critical) => VerdictLevel::Critical,
                Some(StateRole::Warning) => VerdictLevel::Warning,
                Some(StateRole::Notice) => VerdictLevel::Notice,
                Some(StateRole::Maintenance | StateRole::Ready) | None => VerdictLevel::Healthy,
            };
            assert!(verdict.level >= least, "seed {seed}: {worst:?} under {verdict:?}");
            if verdict.level == VerdictLevel::Healthy {
                let is_normal = |state| matches!(state, ZoneState::Normal | ZoneState::Initial);
                assert!(model.views.zones.iter().all(|zone| is_normal(zone.state)), "seed {seed}");
                assert_eq!(model.views.confidence, Some(Confidence::Live), "seed {seed}");
            }
        }
    }
}
