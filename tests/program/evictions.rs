//! Outcomes of evicted pods: the rows of the Evictions pane, and their text if information is missing.

use std::{borrow::Cow, collections::BTreeMap};

use proptest::prelude::*;

use kordon::{
    cli::status_answer,
    k8s::feed::FeedKind,
    model::{ClusterVerdict, EvictionState},
};
use kordon_core::{
    cluster::{Key, OwnerKind, Pod, WorkloadKind},
    engine::Confidence,
    forecast::{Assumptions, Successor},
    placement::Snapshot,
    plan::{
        OutcomeCounts, OutcomeKind, PlacingEnvironment, PodOutcome, StuckReason, outcome::is_never_evicted,
    },
};
use kordon_time::Span;

use crate::{
    dashboard_fixture::{DashboardFixture, Withheld, tolerates},
    n_minus_one::{fixture_without, random_node, random_pod},
    stated_counts::StatedCounts,
};

/// An incident in which the pods of one tainted node have every outcome.
fn incident() -> DashboardFixture {
    let mut fixture = DashboardFixture::well();
    fixture.fill("pool-b-05");
    fixture.silence("pool-b-05");
    fixture.run(80);
    fixture
}

fn outcome(fixture: &DashboardFixture, pod: &str) -> Option<PodOutcome> {
    let (namespace, name) = pod.split_once('/').expect("namespace/name");
    let (model, key) = (&fixture.app.model, Key::new(namespace, name));
    model.outcome(&key, model.views.leaving.evictions.get(&key)?).map(Cow::into_owned)
}

#[test]
fn every_eviction_has_the_outcome_that_the_forecast_has_for_its_pod() {
    let fixture = incident();
    let model = &fixture.app.model;
    let forecast = model.predictions.forecast().expect("something is wrong");
    let placing = PlacingEnvironment::new(
        &model.cluster,
        Snapshot::new(&model.cluster, model.settings.version),
        fixture.now,
    );
    let successors = forecast.successors(&Assumptions::default(), &model.cluster, placing).successors;
    let mut compared = 0;
    for successor in successors.iter().filter(|successor| successor.evicted.is_some()) {
        let row = &model.views.leaving.evictions[&successor.of];
        let outcome = model.outcome(&successor.of, row).expect("it is worked out");
        assert_eq!(*outcome, successor.outcome, "{}", successor.of);
        compared += 1;
    }
    assert_eq!(compared, 5);
}

#[test]
fn the_pods_of_the_node_that_is_lost_first_get_the_room_there_is() {
    let mut fixture = DashboardFixture::new().with_controller();
    for (node, zone) in [("n0", "a"), ("n1", "b"), ("n2", "c")] {
        fixture.add_node(node, zone);
        fixture.change_node(node, |known| known.allocatable.cpu_milli = 2000);
    }
    // The pod whose name comes first is on the node that is lost last.
    for (pod, node) in [("default/w0-1", "n0"), ("default/w0-2", "n1")] {
        fixture.add_pod(pod, node, WorkloadKind::ReplicaSet, Vec::new(), 1500, 128);
    }
    fixture.lists();
    fixture.add_owner(WorkloadKind::ReplicaSet, "w0");
    fixture.run(60);
    fixture.silence("n1");
    fixture.run(15);
    fixture.silence("n0");
    fixture.run(25);

    let kinds = ["default/w0-1", "default/w0-2"].map(|pod| outcome(&fixture, pod).map(|found| found.kind()));
    assert_eq!(kinds, [Some(OutcomeKind::Pending), Some(OutcomeKind::Moves)]);
}

/// Kubernetes 1.37.1 `node_lifecycle_controller.go`, `handleDisruption`: once every zone is down, the controller
/// removes the taints, which cancels the evictions that are scheduled.
#[test]
fn an_eviction_that_the_controller_will_cancel_is_not_listed() {
    let mut fixture = DashboardFixture::new().with_controller();
    for (node, zone) in [("n0", "a"), ("n1", "b")] {
        fixture.add_node(node, zone);
    }
    let tolerations = vec![tolerates("node.kubernetes.io/unreachable", Some(300))];
    fixture.add_pod("default/w0-1", "n0", WorkloadKind::ReplicaSet, tolerations, 500, 128);
    fixture.lists();
    fixture.add_owner(WorkloadKind::ReplicaSet, "w0");
    fixture.run(60);
    fixture.silence("n0");
    fixture.run(80);
    assert_eq!(fixture.app.model.views.counts.leaving(), 1, "n1 is up");
    fixture.silence("n1");
    fixture.run(40);

    let model = &fixture.app.model;
    let scheduled = model.engine.as_ref().expect("it has started").evictions(&model.cluster);
    assert_eq!(scheduled.iter().filter(|eviction| eviction.due.at().is_some()).count(), 1);
    let forecast = model.predictions.forecast().expect("something is wrong");
    assert_eq!(forecast.totals(fixture.now).deleted, 0);
    assert_eq!(model.views.counts.leaving(), 0);
    let verdict = ClusterVerdict::new(model, fixture.now).text();
    assert!(!verdict.contains("to be evicted"), "{verdict}");
    let explainer = model.explainer(fixture.now).expect("the engine has started");
    let node = model.cluster.node(&"n0".into()).expect("it exists");
    let pod = model.cluster.pod(&Key::new("default", "w0-1")).expect("it exists");
    for steps in [explainer.node(node), explainer.pod(pod)] {
        let is_said = |text: &str| steps.iter().any(|step| step.text.contains(text));
        assert!(is_said("the controller removes the taint") && !is_said("is evicted"), "{steps:#?}");
    }
}

/// The taints of the nodes stay, but only a controller evicts because of them.
#[test]
fn without_a_controller_nothing_is_evicted_from_nodes_that_are_tainted() {
    let mut fixture = incident();
    assert!(fixture.app.model.views.counts.leaving() > 0);
    let rows = fixture.app.model.views.leaving.evictions.iter();
    let scheduled = rows.filter(|(_, row)| matches!(row.state, EvictionState::Scheduled { .. }));
    let scheduled: Vec<Key> = scheduled.map(|(key, _)| key.clone()).collect();
    fixture.led = false;
    fixture.run(60);

    let model = &fixture.app.model;
    assert!(matches!(model.views.confidence, Some(Confidence::NoController { .. })));
    let left = model.engine.as_ref().expect("it has started").evictions(&model.cluster);
    assert!(!left.is_empty(), "the taints are there");
    let rows = &model.views.leaving.evictions;
    assert!(rows.values().all(|row| matches!(row.state, EvictionState::Terminating { .. })), "{rows:#?}");
    assert_eq!(model.views.counts.leaving(), 0);
    assert!(model.views.leaving.next.is_empty(), "{:?}", model.views.leaving.next);
    let explainer = model.explainer(fixture.now).expect("the engine has started");
    for key in scheduled {
        let steps = explainer.pod(model.cluster.pod(&key).expect("it is not evicted"));
        let is_said = |text: &str| steps.iter().any(|step| step.text.contains(text));
        assert!(is_said("no controller is active") && !is_said("overdue"), "{steps:#?}");
        assert!(!steps.iter().any(|step| step.text.starts_with("it is evicted")), "{steps:#?}");
    }

    fixture.led = true;
    fixture.run(10);
    assert!(fixture.app.model.views.counts.leaving() > 0, "the evictions come with the controller");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn counts_add_up_everywhere_at_any_moment(
        nodes in prop::collection::vec(random_node(), 2..7),
        pods in prop::collection::vec(random_pod(), 0..24),
        silent in prop::collection::vec(prop::bool::weighted(0.4), 6),
        moments in prop::collection::vec(1_i64..200, 1..4),
    ) {
        let mut fixture = fixture_without(&nodes, &pods, []);
        fixture.run(60);
        let fails = (0..nodes.len()).filter(|number| silent[*number]).map(|number| format!("n{number}"));
        let fails: Vec<String> = fails.collect();
        fails.iter().for_each(|node| fixture.silence(node));
        for seconds in moments {
            fixture.run(seconds);
            let model = &fixture.app.model;
            let (counts, rows) = (model.views.counts, &model.views.leaving.evictions);
            let leaving = rows.values().filter(|row| row.state.leaves_at().is_some()).count();
            prop_assert_eq!(counts.leaving(), leaving);
            prop_assert_eq!(counts.working_out, 0);
            let mut stated = StatedCounts::new(model, fixture.now);
            stated.compare_reports();
            let wrong = stated.into_wrong();
            prop_assert!(wrong.is_empty(), "{}", wrong.join("\n"));
            let said = ClusterVerdict::new(model, fixture.now).text();
            // The forecast's count of pods that have nowhere to run includes hanging pods, but not Pending pods.
            let nowhere = model.nowhere_predicted().map(|more| counts.hanging.nowhere() + more);
            if let Some((nowhere, forecast)) = nowhere.zip(model.predictions.forecast()) {
                let snapshot = Snapshot::new(&model.cluster, model.settings.version);
                let environment = PlacingEnvironment::new(&model.cluster, snapshot, fixture.now);
                let succession = forecast.successors(&Assumptions::default(), &model.cluster, environment);
                prop_assert_eq!(nowhere, succession.counts().nowhere(), "{}: {:?}", said, succession.counts());
                // Evictions that start after the end of the forecast are not predicted before their node has its taint.
                // While evictions are paused, pods stay and are not listed.
                let is_predicted = |successor: &&Successor| {
                    let pod = model.cluster.pod(&successor.of);
                    let is_in_time = successor.evicted.is_some()
                        || successor.is_terminating
                        || pod.is_some_and(|pod| is_never_evicted(pod));
                    (is_in_time || rows.contains_key(&successor.of))
                        && successor.outcome.kind() != OutcomeKind::Stays
                };
                let forecast = succession.successors.iter().filter(is_predicted);
                let forecast: OutcomeCounts = forecast.map(|successor| successor.outcome.kind()).collect();
                let mut listed = BTreeMap::<&str, usize>::new();
                let status = status_answer(model, fixture.now).json;
                let evictions = status["evictions"].as_array().expect("a list");
                for outcome in evictions.iter().filter_map(|row| row["outcome"].as_str()) {
                    *listed.entry(outcome).or_default() += 1;
                }
                listed.remove("stays");
                prop_assert_eq!(listed, forecast.by_word(), "{}", said);
            }
            // A StatefulSet creates a replacement only once the old pod is gone, which never happens on a dead node
            // (docs/upstream/neighbours.md#3). So the pod is stuck from the first prediction on.
            let keeps_name = |pod: &Pod| {
                let kind = pod.owner.as_ref().map(|owner| owner.kind.clone());
                kind == Some(OwnerKind::Workload(WorkloadKind::StatefulSet))
            };
            for (key, row) in rows.iter().filter(|(_, row)| fails.contains(&row.node.to_string())) {
                if model.cluster.pod(key).is_some_and(|pod| keeps_name(pod)) && row.state != EvictionState::Never {
                    let outcome = model.outcome(key, row).map(|outcome| outcome.kind());
                    prop_assert_eq!(outcome, Some(OutcomeKind::Stuck), "{} {:?}", key, row.state);
                }
            }
        }
    }
}

#[test]
fn the_list_has_the_order_that_was_worked_out_with_it() {
    let mut fixture = incident();
    let listed = |fixture: &DashboardFixture| fixture.app.screen.evictions.list.keys().to_vec();
    let urgencies = |fixture: &DashboardFixture| -> Vec<_> {
        let evictions = &fixture.app.model.views.leaving.evictions;
        listed(fixture).iter().map(|key| evictions[key].state.urgency()).collect()
    };
    let (soonest_first, mut by_name) = (urgencies(&fixture), listed(&fixture));
    assert!(soonest_first.is_sorted() && soonest_first.first() < soonest_first.last(), "{soonest_first:?}");
    // Reversing the order does not change which rows the pane has.
    fixture.app.screen.evictions.sort.reversed = true;
    fixture.app.arrange(fixture.now);
    let latest_first = urgencies(&fixture);
    assert!(latest_first.iter().rev().eq(&soonest_first), "{latest_first:?}");
    by_name.sort();
    let mut reversed = listed(&fixture);
    reversed.sort();
    assert_eq!(by_name, reversed);
}

#[test]
fn an_outcome_says_where_the_pod_goes_or_why_it_does_not() {
    let fixture = incident();
    let text = |pod| outcome(&fixture, pod).map(|outcome| outcome.to_string());
    assert_eq!(text("default/huge-0").as_deref(), Some("→ Pending: no node has 9 CPU free"));
    assert_eq!(
        text("default/store-0").as_deref(),
        Some("stuck Terminating: no replacement until the node is back, deleted or tainted out-of-service")
    );
    assert_eq!(text("default/bare-0").as_deref(), Some("lost: no controller recreates it"));
    assert!(matches!(outcome(&fixture, "shop/cart-13-x7f2q"), Some(PodOutcome::Moves { .. })));
    let proxy = outcome(&fixture, "kube-system/proxy-13-k9x");
    assert_eq!(proxy, Some(PodOutcome::SameNode), "nothing evicts it");
    let counts = fixture.app.model.views.counts;
    assert_eq!((counts.leaving(), counts.outcomes.text()), (5, "1 lost, 1 stuck, 1 Pending, 2 move".into()));
}

#[test]
fn a_replacement_that_a_quota_refuses_differs_from_one_that_lands() {
    let of_cart = |hard, used| {
        let mut fixture = DashboardFixture::well();
        fixture.add_quota("shop", hard, used);
        fixture.silence("pool-b-05");
        fixture.run(80);
        let outcome = outcome(&fixture, "shop/cart-13-x7f2q").expect("it is worked out");
        (
            outcome.to_string(),
            outcome.reasons(),
            fixture.app.model.views.counts.outcomes.of(OutcomeKind::Refused),
        )
    };
    let (text, reasons, refused) = of_cart(4, 9);
    assert_eq!((text.as_str(), refused), ("→ refused: quota few-pods (pods 9 of 4 used, needs 1)", 2));
    assert_eq!(reasons, ["replacement refused by quota few-pods (pods 9 of 4 used, needs 1)"]);
    // This quota is full only until the old pod no longer counts.
    let (text, reasons, refused) = of_cart(9, 9);
    assert!(text.starts_with("→ pool-") && text.ends_with(", once quota few-pods allows it"), "{text}");
    let quota = "replacement refused by quota few-pods until the old pod is gone (pods 9 of 9 used)";
    assert_eq!((reasons.last().map(String::as_str), refused), (Some(quota), 0));
    let (text, ..) = of_cart(11, 9);
    assert!(!text.contains("quota"), "{text}");
}

#[test]
fn a_pod_that_is_stuck_stays_so_while_it_terminates_on_a_node_that_is_down() {
    let mut fixture = incident();
    fixture.run(300);
    assert_eq!(outcome(&fixture, "default/store-0"), Some(PodOutcome::Stuck(StuckReason::OldPod)));
    assert_eq!(
        outcome(&fixture, "default/huge-0"),
        Some(PodOutcome::Replaced { hangs: true, is_pending: false })
    );
    assert_eq!(fixture.app.model.views.counts.leaving(), 0);
    assert_eq!(fixture.app.model.views.counts.terminating, 5);
}

#[test]
fn what_an_outcome_rests_on_and_is_not_known_is_named() {
    let mut fixture = DashboardFixture::new();
    fixture.withhold([
        (FeedKind::Workloads(WorkloadKind::ReplicaSet), Withheld::Forbidden),
        (FeedKind::Budgets, Withheld::Forbidden),
    ]);
    fixture.add_node("n-1", "a");
    fixture.add_node("n-2", "a");
    fixture.fill("n-1");
    fixture.lists();
    fixture.run(30);
    fixture.silence("n-1");
    fixture.run(80);
    let text = outcome(&fixture, "default/huge-0").map(|outcome| outcome.to_string()).unwrap_or_default();
    assert!(text.starts_with("not known: replicasets cannot be listed"), "{text}");
    assert_eq!(outcome(&fixture, "default/store-0").map(|outcome| outcome.kind()), Some(OutcomeKind::Stuck));
    assert_eq!(outcome(&fixture, "default/bare-0"), Some(PodOutcome::Lost), "it has no owner");
    let counts = fixture.app.model.views.counts;
    assert_eq!(
        (counts.outcomes.of(OutcomeKind::Unknown), counts.against_budgets),
        (1, None),
        "not known is not zero"
    );
}

#[test]
fn evictions_that_a_budget_would_refuse_are_counted_in_the_order_in_which_they_come() {
    let mut fixture = DashboardFixture::maintenance();
    fixture.silence("pool-a-01");
    fixture.run(35);
    let model = &fixture.app.model;
    let refused = |pod: &str| model.predictions.would_be_refused(&Key::new("shop", pod));
    // The budget of checkout allows one of three evictions.
    assert_eq!((refused("checkout-5kd8x"), refused("checkout-9vbnm")), (Some(false), Some(true)));
    assert_eq!(model.views.counts.against_budgets, Some(2), "and the one of postgres");
}

#[test]
fn where_there_are_too_many_pods_the_first_to_be_placed_are_worked_out_as_ever() {
    let fixture = incident();
    let model = &fixture.app.model;
    let forecast = model.predictions.forecast().expect("something is wrong");
    let leaving = model
        .views
        .leaving
        .evictions
        .iter()
        .filter_map(|(key, row)| Some((key.clone(), row.state.at()?)))
        .collect();
    let outcomes = |most| {
        let snapshot = Snapshot::new(&model.cluster, model.settings.version);
        let environment = PlacingEnvironment::new(&model.cluster, snapshot, fixture.now);
        forecast.outcomes(&leaving, most, &model.cluster, environment).by_pod
    };
    let (all, first) = (outcomes(usize::MAX), outcomes(3));
    let left_out = first.values().filter(|outcome| **outcome == PodOutcome::LeftOut).count();
    assert_eq!((first.len(), left_out), (5, 2));
    for (pod, outcome) in first.iter().filter(|(_, outcome)| **outcome != PodOutcome::LeftOut) {
        assert_eq!(all[pod], *outcome, "{pod}");
    }
}

#[test]
fn what_leaves_is_the_same_worked_out_at_once_and_beside_the_loop() {
    let mut fixtures = [incident(), DashboardFixture::incident(), DashboardFixture::maintenance()];
    for fixture in &mut fixtures {
        fixture.terminate("shop/cart-00-x7f2q", &[]);
        for _ in 0..12 {
            fixture.run(10);
            let now = fixture.now;
            let mut beside = fixture.app.model.clone();
            let older = beside.next_leaving_job(now - Span::from_secs(1)).expect("the engine runs");
            beside.refresh_nodes(now);
            let job = beside.next_leaving_job(now).expect("the engine runs");
            beside.set_leaving(job.work());
            let model = &mut fixture.app.model;
            model.refresh(now);
            assert_eq!(beside.views.leaving, model.views.leaving);
            assert_eq!(beside.views.counts, model.views.counts);
            assert_eq!(beside.views.revision, model.views.revision);
            assert_eq!(beside.set_leaving(older.work()), None, "what is newer stays");
        }
    }
}
