//! Unknown is not the same as empty: every definite statement of `kordon status`, headroom, forecast or what-if that is
//! made with less knowledge is also made with full knowledge. Tested with random clusters and missing kinds.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use serde_json::Value;

use kordon::{
    app::preview::PreviewOutcome,
    cli::StatusReport,
    k8s::feed::FeedState,
    model::{ClusterVerdict, KnownHeadroom, VerdictLevel},
};
use kordon_core::{
    cluster::{Cluster, FeedKind, Owner},
    engine::Confidence,
    forecast::{Forecast, ForecastKind},
    plan::failover_gaps,
};

use crate::{
    dashboard_fixture::{DashboardFixture, Withheld},
    n_minus_one::{RandomNode, RandomPod, fixture_without, random_node, random_pod},
};

type Missing = BTreeMap<FeedKind, Withheld>;

fn random_missing() -> impl Strategy<Value = Missing> {
    let state =
        prop::sample::select(vec![Withheld::Forbidden, Withheld::Off, Withheld::Late, Withheld::Stale]);
    let kinds = prop::sample::subsequence(FeedKind::ALL.to_vec(), 0..4);
    (kinds, prop::bool::ANY, prop::collection::vec(state, 5)).prop_map(|(kinds, pods, states)| {
        let kinds = kinds.into_iter().chain(pods.then_some(FeedKind::Pods));
        kinds.zip(states).collect()
    })
}

/// Creates a dashboard without the missing kinds, at `seconds` after nodes fell silent and a pod changed.
fn known(
    nodes: &[RandomNode],
    pods: &[RandomPod],
    silent: &[bool],
    seconds: i64,
    missing: &Missing,
) -> DashboardFixture {
    let withheld = missing.iter().map(|(kind, withheld)| (*kind, *withheld));
    let mut fixture = fixture_without(nodes, pods, withheld);
    // Some pods' owners are deleted, so these pods are not replaced.
    let orphans =
        fixture.world.pods().iter().map(|pod| pod.key.to_string()).filter(|pod| pod.ends_with(['1', '3']));
    for pod in orphans.collect::<Vec<_>>() {
        fixture.change_pod(&pod, |pod| {
            pod.owner = pod.owner.as_deref().map(|owner| Owner { uid: "gone".into(), ..owner.clone() }.into())
        });
    }
    fixture.run(60);
    fixture.break_watches();
    let first = fixture.world.pods().iter().next().map(|pod| pod.key.to_string());
    if let Some(pod) = first {
        fixture.change_pod(&pod, |pod| pod.tolerations = [].into());
    }
    for number in (0..nodes.len()).filter(|number| silent.get(*number) == Some(&true)) {
        fixture.silence(&format!("n{number}"));
    }
    fixture.run(seconds);
    fixture
}

/// Returns the definite statements of the dashboard and of `kordon status`, as text. A statement based on stale data is
/// marked and not definite. A prediction about a controller that is only assumed is not definite either.
fn statements(fixture: &mut DashboardFixture) -> BTreeSet<String> {
    let model = &fixture.app.model;
    let cluster = &model.cluster;
    let knows_pods = cluster.gap(FeedKind::Pods).is_none();
    let is_live = model.views.confidence == Some(Confidence::Live);
    let mut found = of_status(&StatusReport::new(model, fixture.now));
    let headroom = model.known_headroom(fixture.now).known().filter(|_| model.is_headroom_definite());
    if let Some((_, clause)) = headroom {
        found.insert(clause.text);
    }
    if knows_pods && is_live {
        for (pod, row) in &model.views.leaving.evictions {
            found.insert(format!("{pod}: {:?}", row.state));
        }
        found.extend(
            model
                .views
                .leaving
                .next
                .iter()
                .map(|(node, next)| format!("{node}: {:?} {:?}", next.what, next.at)),
        );
    }
    if let Some(forecast) = model.predictions.forecast().filter(|_| is_live) {
        found.extend(of_forecast(forecast, cluster, knows_pods));
    }
    // The order of the rows depends on what is known, so the node of the what-if is found by its name.
    fixture.press("2/n0<Enter>x");
    found.extend(of_what_if(fixture, knows_pods, is_live));
    fixture.press("<Esc>");
    found
}

fn of_what_if(fixture: &DashboardFixture, knows_pods: bool, is_live: bool) -> Vec<String> {
    let preview = fixture.app.screen.overlays.plan();
    let Some(PreviewOutcome::Failure(view)) = preview.and_then(|preview| preview.outcome()) else {
        return Vec::new();
    };
    let impact = &view.impact;
    let mut found = Vec::new();
    if is_live {
        found.extend(of_forecast(&impact.forecast, &fixture.app.model.cluster, knows_pods));
        if impact.pods_unknown.is_empty() && knows_pods {
            // In the panel, a pod that stays may be among the replacements instead.
            let staying = impact.forecast.staying(&fixture.app.model.cluster, &impact.nodes);
            found.push(format!("{} deleted, {staying:?} stay", impact.totals.deleted));
        }
    }
    if let Some(succession) = impact.succession.as_ref().filter(|_| impact.likely_for.is_empty()) {
        assert!(failover_gaps(&fixture.app.model.cluster).is_empty());
        found.push(format!("{} have nowhere to run", succession.counts().nowhere()));
        let successor =
            |of: &kordon_core::forecast::Successor| format!("{} {} {:?}", of.of, of.word(), of.node());
        found.extend(succession.successors.iter().map(successor));
    }
    let node = impact.nodes.iter().next();
    found.iter().map(|text| format!("{node:?} fails: {text}")).collect()
}

/// Returns the definite statements in the JSON of `kordon status`, as docs/reference/status.md defines them.
fn of_status(report: &StatusReport) -> BTreeSet<String> {
    let report = serde_json::to_value(report).expect("a report is plain data");
    let unknown = report["unknown"].as_array().expect("a list");
    let knows = |kind: FeedKind| unknown.iter().all(|gap| gap["kind"] != kind.to_string());
    let is_live = report["controller"]["confidence"]["state"] == "live";
    let budgets = FeedKind::Budgets.to_string();
    let replacements_are_known = unknown.iter().all(|gap| gap["kind"] == budgets.as_str());
    let mut found = BTreeSet::new();
    // The level `healthy` is definite only for nodes. If pods are not read, their possible problems are reported
    // separately.
    if report["verdict"]["level"] == "healthy" && knows(FeedKind::Pods) {
        found.insert("healthy".to_owned());
    }
    if report["headroom"]["definite"] == true {
        leaves("headroom", &report["headroom"], &mut found);
    }
    if knows(FeedKind::Leader) {
        leaves("lease", &report["controller"]["lease"], &mut found);
        leaves("leader", &report["controller"]["leader"], &mut found);
    }
    if is_live {
        leaves("confidence", &report["controller"]["confidence"]["state"], &mut found);
        let (zones, evictions) = (&report["zones"], &report["evictions"]);
        leaves("zones", zones, &mut found);
        if knows(FeedKind::Pods) {
            for eviction in evictions.as_array().into_iter().flatten() {
                of_eviction(eviction, replacements_are_known, &mut found);
            }
        }
    }
    for node in report["nodes"].as_array().into_iter().flatten().filter(|_| knows(FeedKind::Nodes)) {
        for (field, value) in node.as_object().expect("a node") {
            let holds = match field.as_str() {
                "pods" | "terminatingPods" => knows(FeedKind::Pods),
                "next" => is_live && knows(FeedKind::Pods),
                "leaseRenewed" => knows(FeedKind::Leases),
                "state" | "stateSince" => is_live && knows(FeedKind::Pods),
                field if field.starts_with("probe") || field.starts_with("grace") => is_live,
                _ => true,
            };
            if holds {
                leaves(&format!("{} {field}", node["name"]), value, &mut found);
            }
        }
    }
    found
}

/// Collects the definite statements about an eviction. The outcome of the pod depends on more kinds of objects than the
/// eviction itself.
fn of_eviction(eviction: &Value, replacements_are_known: bool, found: &mut BTreeSet<String>) {
    let pod = format!("{}/{}", eviction["namespace"], eviction["pod"]);
    for (field, value) in eviction.as_object().expect("an eviction") {
        if replacements_are_known || !field.starts_with("outcome") {
            leaves(&format!("{pod} {field}"), value, found);
        }
    }
}

/// Collects each value of a document with its path. A null means unknown or absent.
fn leaves(path: &str, value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            fields.iter().for_each(|(field, value)| leaves(&format!("{path}.{field}"), value, found));
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(place, item)| leaves(&format!("{path}[{place}]"), item, found)),
        value => {
            found.insert(format!("{path}: {value}"));
        }
    }
}

fn of_forecast(forecast: &Forecast, cluster: &Cluster, knows_pods: bool) -> Vec<String> {
    let is_of_pod = |kind: &ForecastKind| kind.pod().is_some();
    let steps = forecast.steps.iter().filter(|step| knows_pods || !is_of_pod(&step.kind));
    let mut found: Vec<String> =
        steps.map(|step| format!("{:?} {:?} {:?}", step.at, step.kind, step.chance)).collect();
    if knows_pods && !forecast.steps.is_empty() {
        found.push(format!("{:?} deleted", forecast.deleted(cluster)));
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_green_before_all_has_arrived_in_any_order(
        nodes in prop::collection::vec(random_node(), 1..4),
        pods in prop::collection::vec(random_pod(), 0..8),
        order in Just(FeedKind::ALL.to_vec()).prop_shuffle(),
    ) {
        let late = FeedKind::ALL.map(|kind| (kind, Withheld::Late));
        let mut fixture = fixture_without(&nodes, &pods, late);
        for kind in order {
            let missing = fixture.app.model.loading();
            let verdict = ClusterVerdict::new(&fixture.app.model, fixture.now);
            let is_known = fixture.app.model.known_headroom(fixture.now).known().is_some();
            if !missing.is_empty() {
                prop_assert!(verdict.level > VerdictLevel::Healthy, "{missing}: {}", verdict.text());
                prop_assert!(!is_known && !verdict.text().contains("N-1"), "{missing}: {}", verdict.text());
            }
            fixture.arrives(kind);
            fixture.run(1);
        }
        prop_assert!(fixture.app.model.loading().is_empty());
        let mut at_once = fixture_without(&nodes, &pods, []);
        at_once.run(FeedKind::ALL.len() as i64);
        let verdict = |fixture: &DashboardFixture| ClusterVerdict::new(&fixture.app.model, fixture.now);
        prop_assert_eq!(verdict(&fixture).level, verdict(&at_once).level);
    }

    #[test]
    fn whatever_is_stated_with_less_knowledge_is_stated_with_full_knowledge(
        nodes in prop::collection::vec(random_node(), 2..7),
        pods in prop::collection::vec(random_pod(), 0..16),
        silent in prop::collection::vec(prop::bool::weighted(0.3), 7),
        seconds in prop::sample::select(vec![30, 70, 130]),
        missing in random_missing(),
    ) {
        let full = statements(&mut known(&nodes, &pods, &silent, seconds, &Missing::new()));
        let stated = statements(&mut known(&nodes, &pods, &silent, seconds, &missing));
        let wrong: Vec<&String> = stated.difference(&full).collect();
        prop_assert!(wrong.is_empty(), "without {missing:?}: stated without ground: {wrong:#?}");
    }
}

#[test]
fn without_leases_n_minus_one_is_likely_at_best() {
    for withheld in [Withheld::Forbidden, Withheld::Off, Withheld::Late, Withheld::Stale] {
        let mut fixture = DashboardFixture::new().with_controller();
        fixture.withhold([(FeedKind::Leases, withheld)]);
        for (node, zone) in [("n0", "a"), ("n1", "b")] {
            fixture.add_node(node, zone);
        }
        fixture.lists();
        fixture.run(30);
        fixture.break_watches();
        fixture.silence("n1");
        fixture.run(45);
        assert!(!fixture.app.model.is_headroom_definite(), "{withheld:?}");
        let report = serde_json::to_value(StatusReport::new(&fixture.app.model, fixture.now)).expect("JSON");
        assert_ne!(report["headroom"]["definite"], true, "{withheld:?}");
    }
}

#[test]
fn without_services_or_workloads_what_replaces_lost_pods_is_called_likely() {
    for kind in [FeedKind::Services, FeedKind::Workloads(kordon_core::cluster::WorkloadKind::ReplicaSet)] {
        let mut fixture = DashboardFixture::new();
        fixture.withhold([(kind, Withheld::Forbidden)]);
        for node in ["n0", "n1"] {
            fixture.add_node(node, "a");
        }
        fixture.add_pod(
            "default/web-0",
            "n0",
            kordon_core::cluster::WorkloadKind::ReplicaSet,
            Vec::new(),
            100,
            64,
        );
        fixture.lists();
        fixture.run(60);
        assert!(fixture.app.model.known_headroom(fixture.now).known().is_some());
        assert!(!fixture.app.model.is_headroom_definite(), "{kind}");
        fixture.press("2x");
        let Some(PreviewOutcome::Failure(view)) =
            fixture.app.screen.overlays.plan().and_then(|plan| plan.outcome())
        else {
            panic!("a what-if is open")
        };
        let likely =
            view.impact.unknown(kordon::app::preview::FailureRow::PlacementLikely).expect("it is likely");
        assert!(
            likely.starts_with(&format!("what replaces the pods is likely, not certain: {kind} ")),
            "{likely}"
        );
    }
}

#[test]
fn while_the_lease_of_the_leader_is_not_seen_nobody_says_that_no_controller_is_active() {
    let mut fixture = DashboardFixture::new().with_controller();
    fixture.withhold([(FeedKind::Leader, Withheld::Stale)]);
    for (node, zone) in [("n0", "a"), ("n1", "a"), ("n2", "b")] {
        fixture.add_node(node, zone);
    }
    fixture.lists();
    fixture.run(60);
    let confidence = |fixture: &DashboardFixture| fixture.app.model.views.confidence;
    assert_eq!(confidence(&fixture), Some(Confidence::Live));
    fixture.break_watches();
    fixture.silence("n2");
    fixture.run(70);
    assert_eq!(confidence(&fixture), Some(Confidence::Assumed));
    assert_eq!(fixture.app.model.known_headroom(fixture.now), KnownHeadroom::Withheld, "zone b is down");
    // After the watch is back, the controller counts as gone only once the Lease's whole duration has passed without a
    // renewal.
    fixture.led = false;
    fixture.health(FeedKind::Leader, FeedState::Live);
    fixture.run(10);
    assert_eq!(confidence(&fixture), Some(Confidence::Live));
    fixture.run(10);
    assert!(matches!(confidence(&fixture), Some(Confidence::NoController { .. })));
    // A controller that was gone before the watch breaks is still gone after the break.
    fixture.break_watches();
    fixture.run(10);
    fixture.health(FeedKind::Leader, FeedState::Live);
    fixture.run(2);
    assert!(matches!(confidence(&fixture), Some(Confidence::NoController { .. })));
}

#[test]
fn a_controller_that_was_gone_before_the_watch_of_nodes_broke_is_gone_after_it() {
    let mut fixture = DashboardFixture::new().with_controller();
    fixture.withhold([(FeedKind::Nodes, Withheld::Stale)]);
    fixture.add_node("n0", "a");
    fixture.lists();
    fixture.led = false;
    fixture.run(60);
    let is_gone = |fixture: &DashboardFixture| {
        matches!(fixture.app.model.views.confidence, Some(Confidence::NoController { .. }))
    };
    assert!(is_gone(&fixture));
    fixture.break_watches();
    fixture.run(10);
    fixture.health(FeedKind::Nodes, FeedState::Live);
    fixture.run(2);
    assert!(is_gone(&fixture));
}
