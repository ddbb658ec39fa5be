//! Plans applied against a fake server: which requests are sent and in which order, and which are never sent.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kordon_core::{
    cluster::{
        Budget, BudgetStatus, Change, Cluster, Condition, ConditionStatus, CordonNote, DrainClaim,
        DrainedNote, IntOrPercent, Key, MaintenanceNote, Node, NodeName, ObjectEvent, Owner, OwnerKind,
        Phase, Pod, PodReady, Selector, Termination, Uid, Version, Workload, WorkloadKind, WorkloadStage,
        claim,
    },
    engine::ServerVersion,
    operation::{
        Breach, DrainCount, Guards, NodeIncomplete, NodePatch, NodeProgressStage, Operation, OperationEnd,
        OperationOptions, PodEnd, PodProgressStage, PriorPod, PriorRun, Request, RequestKind, RequestOutcome,
    },
    plan::{
        Action, DrainOptions, EvictionRules, Plan, PlanStep, TimeLeft, TypicalEnvironment, Undo,
        undo::{NodeUndo, UndoStep},
    },
};
use kordon_time::{ClusterTime, Span, Timestamp};
use proptest::prelude::*;

const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

#[test]
fn a_node_is_read_and_cordoned_before_any_pod_is_evicted() {
    let mut harness = Harness::new(&["n1"], &[("n1", "a"), ("n1", "b")]);
    let mut operation = harness.drain(&["n1"], DrainOptions::default());
    harness.run(&mut operation);
    assert_eq!(operation.ended(), Some(OperationEnd::Done), "{:?}", operation.progress());
    assert_eq!(harness.words(), ["read n1", "cordon n1", "evict a", "evict b", "list n1", "claim n1"]);
    assert!(
        harness.nodes["n1"].cordoned && harness.nodes["n1"].claim.is_none(),
        "cordoned, and the claim is off"
    );
}

/// Scenario 7: A drain whose cordon is refused stops before the first eviction (kubectl evicts all the same).
#[test]
fn a_refused_cordon_stops_the_drain_before_any_pod_is_touched() {
    let mut harness = Harness::new(&["n1", "n2"], &[("n1", "a"), ("n2", "b")]);
    harness.answer("cordon n2", RequestOutcome::Forbidden("nodes \"n2\" is forbidden".into()));
    let mut operation = harness.drain(&["n1", "n2"], DrainOptions::default());
    harness.run(&mut operation);
    assert_eq!(operation.ended(), Some(OperationEnd::Forbidden));
    assert!(harness.words().iter().all(|word| !word.starts_with("evict")), "{:?}", harness.words());
    assert!(harness.nodes["n1"].claim.is_none(), "the claim of the node that was cordoned is taken off");
}

#[test]
fn an_eviction_refused_by_a_budget_is_retried_after_five_seconds() {
    let mut harness = Harness::new(&["n1"], &[("n1", "a")]);
    for _ in 0..2 {
        harness.answer("evict a", RequestOutcome::BudgetExhausted("needs 2, has 2".into()));
    }
    let mut operation = harness.drain(&["n1"], DrainOptions::default());
    harness.run(&mut operation);
    assert_eq!(operation.ended(), Some(OperationEnd::Done));
    assert_eq!(harness.times("evict a"), [0, 5, 10]);
}

#[test]
fn a_budget_that_is_seen_to_have_room_wakes_as_many_pods_as_it_allows() {
    let mut harness = Harness::new(&["n1"], &[("n1", "a"), ("n1", "b")]);
    harness.budget(1, 0);
    for pod in ["evict a", "evict b"] {
        harness.answer(pod, RequestOutcome::BudgetExhausted("needs 2, has 2".into()));
    }
    let mut operation = harness.drain(&["n1"], DrainOptions::default());
    harness.step(&mut operation);
    harness.advance(&mut operation, Span::from_secs(2));
    harness.budget(2, 1);
    operation.handle_change(&harness.cluster, harness.now);
    harness.run(&mut operation);
    assert_eq!((harness.times("evict a"), harness.times("evict b")), (vec![0, 2], vec![0, 5]));
    assert_eq!(operation.ended(), Some(OperationEnd::Done));
}

#[test]
fn the_time_left_is_that_of_the_pods_that_are_left() {
    let mut harness = Harness::new(&["n1", "n2"], &[("n1", "a"), ("n2", "b")]);
    let with_grace =
        |pod: &Arc<Pod>| Pod { grace: Span::from_secs(30), version: Version(9_999), ..(**pod).clone() };
    let pods: Vec<Pod> = harness.cluster.pods().iter().map(with_grace).collect();
    pods.into_iter().for_each(|pod| harness.apply(Change::Pod(ObjectEvent::Applied(pod))));
    let plan = harness.plan(&["n1", "n2"], DrainOptions::default());
    let mut operation = harness.drain(&["n1", "n2"], DrainOptions::default());
    let left =
        |harness: &Harness, operation: &Operation| match operation.time_left(&harness.cluster, harness.now) {
            Some(TimeLeft::Ends { likely, .. }) => Some(likely.since(harness.now)),
            other => panic!("{other:?}"),
        };
    let planned = plan.totals.ends.likely.map(|at| at.since(plan.made));
    harness.answer("evict b", RequestOutcome::BudgetExhausted("needs 2, has 2".into()));
    assert_eq!(left(&harness, &operation), planned, "nothing is done yet: it is what the plan says");
    harness.step(&mut operation);
    harness.advance(&mut operation, Span::from_secs(4));
    assert!(left(&harness, &operation) < planned, "a part of it is done");
    operation.pause(harness.now);
    assert_eq!(operation.time_left(&harness.cluster, harness.now), None, "it is paused");
    operation.resume(&harness.cluster, harness.now);
    harness.run(&mut operation);
    assert_eq!(operation.time_left(&harness.cluster, harness.now), None, "it has ended");
}

#[test]
fn a_pod_that_terminates_for_long_likely_uses_up_its_grace() {
    let mut harness = Harness::new(&["n1"], &[("n1", "a")]);
    let started = ClusterTime::new(NOW);
    let terminating = |harness: &Harness| {
        let mut pod = (**harness.cluster.pod(&Key::new("web", "a")).expect("there")).clone();
        let grace = Span::from_secs(60);
        (pod.grace, pod.version) = (grace, Version(9_999));
        pod.termination = Some(Termination { deadline: started + grace, grace }.into());
        pod
    };
    let pod = terminating(&harness);
    harness.apply(Change::Pod(ObjectEvent::Applied(Pod {
        termination: None,
        version: Version(9_998),
        ..pod.clone()
    })));
    let operation = harness.drain(&["n1"], DrainOptions::default());
    let plan = harness.plan(&["n1"], DrainOptions::default());
    let planned = plan.totals.ends.likely.expect("it ends").since(NOW).as_secs();
    harness.apply(Change::Pod(ObjectEvent::Applied(pod)));
    let likely = |after: i64| {
        let now = NOW + Span::from_secs(after);
        match operation.time_left(&harness.cluster, now) {
            Some(TimeLeft::Ends { likely, .. }) => likely.since(NOW).as_secs(),
            other => panic!("{other:?}"),
        }
    };
    assert!((likely(1) - planned).abs() <= 1 && planned < 30, "{} planned {planned}", likely(1));
    assert_eq!(likely(20), 60);
}

/// While an eviction waits for another pod to become Ready, the time left depends on when that pod is likely Ready. If
/// the pod is not expected to become Ready, the obstacle is shown in place of the time left.
#[test]
fn the_time_left_counts_on_replacements_that_are_starting() {
    let mut harness = Harness::new(&["n1", "n2"], &[("n1", "a"), ("n2", "b")]);
    harness.budget(1, 0);
    let budget = harness.cluster.budgets().iter().next().expect("one").clone();
    let at_least_one = Budget {
        max_unavailable: None,
        min_available: Some(IntOrPercent::Int(1)),
        version: Version(2),
        ..(*budget).clone()
    };
    harness.apply(Change::Budget(ObjectEvent::Applied(at_least_one)));
    let operation = harness.drain(&["n1"], DrainOptions::default());
    let left = |harness: &Harness| {
        let left = operation.time_left(&harness.cluster, harness.now).expect("it runs");
        left.text(harness.now)
    };
    // The budget requires one of the pods a and b, and b is not Ready.
    let b = (**harness.cluster.pod(&Key::new("web", "b")).expect("there")).clone();
    let with = |created: Timestamp, version: u64| {
        let ready = Some(PodReady { status: ConditionStatus::False, last_transition: None });
        Pod { created: ClusterTime::new(created), ready, version: Version(version), ..b.clone() }
    };
    harness.apply(Change::Pod(ObjectEvent::Applied(with(NOW - Span::from_secs(3600), 9_998))));
    assert_eq!(left(&harness), "no ETA: blocked by web/budget");
    harness.apply(Change::Pod(ObjectEvent::Applied(with(NOW - Span::from_secs(1), 9_999))));
    assert!(left(&harness).starts_with("done in ~"), "{}", left(&harness));
    let a = (**harness.cluster.pod(&Key::new("web", "a")).expect("there")).clone();
    let overdue =
        Termination { deadline: ClusterTime::new(NOW - Span::from_secs(60)), grace: Span::from_secs(30) };
    let a = Pod { termination: Some(overdue.into()), version: Version(10_000), ..a };
    harness.apply(Change::Pod(ObjectEvent::Applied(a)));
    assert_eq!(left(&harness), "no ETA: web/a stays Terminating");
}

#[test]
fn guard_rails_name_what_a_plan_would_break() {
    let harness = Harness::new(&["n1", "n2", "n3"], &[("n1", "a"), ("n2", "b")]);
    let plan = |nodes: &[&str]| harness.plan(nodes, DrainOptions::default());
    let names = |guards: &Guards, nodes: &[&str]| -> Vec<&str> {
        guards.breaches(&plan(nodes), &harness.cluster).iter().map(Breach::guard).collect()
    };
    let usual = Guards::default();
    assert_eq!(names(&usual, &["n1", "n2"]), Vec::<&str>::new());
    assert_eq!(names(&usual, &["n1", "n2", "n3"]), ["last-ready"]);
    let strict = Guards {
        max_nodes: Some(1),
        max_zone_percent: Some(50),
        protected_namespaces: ["web".into()].into(),
        ..Guards::default()
    };
    assert_eq!(names(&strict, &["n1"]), ["protected-namespace"]);
    assert_eq!(names(&strict, &["n3"]), Vec::<&str>::new(), "nothing is on it");
    let both = ["max-nodes", "max-zone-percent", "protected-namespace"];
    assert_eq!(names(&strict, &["n1", "n2"]), both);
    let deleted = harness.plan_action(Action::DeleteNode { nodes: vec!["n1".into(), "n2".into()] });
    let broken: Vec<&str> = strict.breaches(&deleted, &harness.cluster).iter().map(Breach::guard).collect();
    assert_eq!(broken, both, "a deleted node is as gone as a drained one");
}

#[test]
fn retry_after_is_obeyed_by_cause() {
    let ten = Some(Span::from_secs(10));
    let cases = [
        (RequestOutcome::BudgetStale { retry_after: ten, text: "still being processed".into() }, 10),
        (RequestOutcome::BudgetStale { retry_after: None, text: "still being processed".into() }, 10),
        (RequestOutcome::Overloaded { retry_after: Some(Span::from_secs(7)) }, 7),
        (RequestOutcome::NamespaceTerminating, 5),
        (RequestOutcome::NoResponse, 1),
    ];
    for (outcome, wait) in cases {
        let mut harness = Harness::new(&["n1"], &[("n1", "a")]);
        harness.answer("evict a", outcome.clone());
        let mut operation = harness.drain(&["n1"], DrainOptions::default());
        harness.run(&mut operation);
        assert_eq!(harness.times("evict a"), [0, wait], "{outcome:?}");
        assert_eq!(operation.ended(), Some(OperationEnd::Done));
    }
}

#[test]
fn a_pod_that_fails_for_good_leaves_its_node_undrained_and_the_others_go() {
    let mut harness = Harness::new(&["n1"], &[("n1", "a"), ("n1", "b")]);
    harness.answer("evict a", RequestOutcome::Refused("more than one PodDisruptionBudget".into()));
    let mut operation = harness.drain(&["n1"], DrainOptions::default());
    harness.run(&mut operation);
    assert_eq!(operation.ended(), Some(OperationEnd::Partly));
    let report = operation.progress();
    assert_eq!(report.nodes[0].stage, NodeProgressStage::Incomplete(NodeIncomplete::PodsLeft { pods: 1 }));
    assert!(harness.pods["b"].gone && !harness.pods["a"].gone);
}

/// Scenario 55: A pod that was replaced under the same name with a new uid counts as gone.
#[test]
fn the_replacement_of_a_pod_is_never_evicted() {
    let mut harness = Harness::new(&["n1"], &[("n1", "a")]);
    harness.answer("evict a", RequestOutcome::BudgetExhausted("no".into()));
    let mut operation = harness.drain(&["n1"], DrainOptions::default());
    harness.step(&mut operation);
    harness.replace("a", "n2");
    operation.handle_change(&harness.cluster, harness.now);
    harness.run(&mut operation);
    assert_eq!(operation.ended(), Some(OperationEnd::Done));
    assert_eq!(operation.progress().pods[0].stage, PodProgressStage::Ended(PodEnd::Replaced));
    assert_eq!(harness.times("evict a"), [0]);
}

/// Scenario 30: A pod that is bound to the node during the drain is found by listing again, and evicted (kubectl
/// leaves it).
#[test]
fn a_late_pod_is_found_by_listing_again_and_goes_too() {
    let mut harness = Harness::new(&["n1"], &[("n1", "a")]);
    let mut operation = harness.drain(&["n1"], DrainOptions::default());
    harness.late = Some(("n1", "late"));
    harness.run(&mut operation);
    assert_eq!(operation.ended(), Some(OperationEnd::Done));
    let (before, after) = (["read n1", "cordon n1", "evict a", "list n1"], ["list n1", "claim n1"]);
    // The drain claim (an annotation of the node) contains the number of pods that the drain removes. So the claim is
    // renewed as soon as a pod is found that was bound during the drain.
    let between = ["read n1", "evict late", "claim n1"];
    assert_eq!(harness.words(), [&before[..], &between, &after].concat());
    assert!(operation.progress().pods.iter().any(|pod| pod.late));
}

#[test]
fn what_the_list_shows_and_the_watch_does_not_is_never_called_drained() {
    let mut harness = Harness::new(&["n1"], &[("n1", "a")]);
    let mut operation = harness.drain(&["n1"], DrainOptions { timeout: secs(30), ..DrainOptions::default() });
    harness.ghost = Some("n1");
    harness.run(&mut operation);
    assert_eq!(operation.ended(), Some(OperationEnd::TimedOut));
    assert_eq!(harness.now, NOW + Span::from_secs(30));
}

/// Scenario 56: A read that fails while the drain waits is an error and never counts as an eviction.
#[test]
fn a_list_that_fails_proves_nothing_and_is_repeated() {
    let mut harness = Harness::new(&["n1"], &[("n1", "a")]);
    harness.answer("list n1", RequestOutcome::Failed("etcdserver: request timed out".into()));
    let mut operation = harness.drain(&["n1"], DrainOptions::default());
    harness.run(&mut operation);
    assert_eq!((operation.ended(), harness.times("list n1")), (Some(OperationEnd::Done), vec![0, 2]));
}

#[test]
fn the_timeout_of_a_node_holds_even_if_nothing_answers() {
    let mut harness = Harness::new(&["n1", "n2"], &[("n1", "a"), ("n2", "b")]);
    harness.hang = Some("evict a");
    let options = DrainOptions { timeout: secs(7), ..DrainOptions::default() };
    let mut operation = harness.drain(&["n1", "n2"], options);
    harness.run(&mut operation);
    assert_eq!(operation.ended(), Some(OperationEnd::TimedOut));
    let report = operation.progress();
    assert_eq!(report.nodes[0].stage, NodeProgressStage::Incomplete(NodeIncomplete::TimedOut));
    assert!(
        matches!(report.nodes[1].stage, NodeProgressStage::Drained { stay: 0, .. }),
        "the next node has its own time"
    );
    assert_eq!(harness.times("evict b"), [7]);
}

#[test]
fn the_time_for_all_of_it_ends_all_of_it() {
    let mut harness = Harness::new(&["n1", "n2"], &[("n1", "a"), ("n2", "b")]);
    harness.hang = Some("evict a");
    let orders = OperationOptions { total_timeout: secs(9), ..by_alice() };
    let mut operation = harness.start(&["n1", "n2"], DrainOptions::default(), orders);
    harness.run(&mut operation);
    assert_eq!(operation.ended(), Some(OperationEnd::TimedOut));
    assert!(harness.times("evict b").is_empty());
}

#[test]
fn no_more_nodes_at_a_time_than_parallel_allows_and_all_are_cordoned_first() {
    let pods = [("n1", "a"), ("n2", "b"), ("n3", "c")];
    let mut harness = Harness::new(&["n1", "n2", "n3"], &pods);
    harness.linger = Span::from_secs(4);
    let options = DrainOptions { parallel: 2, ..DrainOptions::default() };
    let mut operation = harness.drain(&["n1", "n2", "n3"], options);
    harness.run(&mut operation);
    assert_eq!(operation.ended(), Some(OperationEnd::Done));
    assert_eq!(
        (harness.times("evict a"), harness.times("evict b"), harness.times("evict c")),
        (vec![0], vec![0], vec![4])
    );
    let words = harness.words();
    let last_cordon = words.iter().rposition(|word| word.starts_with("cordon")).expect("cordoned");
    let first_evict = words.iter().position(|word| word.starts_with("evict")).expect("evicted");
    assert!(last_cordon < first_evict);
}

#[test]
fn a_pause_asks_for_nothing_and_its_length_counts_towards_no_limit() {
    let mut harness = Harness::new(&["n1"], &[("n1", "a")]);
    harness.answer("evict a", RequestOutcome::BudgetExhausted("no".into()));
    let options = DrainOptions { timeout: secs(8), ..DrainOptions::default() };
    let mut operation = harness.drain(&["n1"], options);
    harness.step(&mut operation);
    operation.pause(harness.now);
    harness.advance(&mut operation, Span::from_secs(100));
    assert_eq!(harness.times("evict a"), [0]);
    assert!(harness.words().iter().filter(|word| **word == "claim n1").count() >= 4, "claims are renewed");
    operation.resume(&harness.cluster, harness.now);
    harness.run(&mut operation);
    assert_eq!((operation.ended(), harness.times("evict a")), (Some(OperationEnd::Done), vec![0, 100]));
}

#[test]
fn a_due_pod_sets_no_timer_while_the_limit_of_requests_is_reached() {
    let names: Vec<String> = (0..12).map(|number| format!("p{number:02}")).collect();
    let pods: Vec<(&str, &str)> = names.iter().map(|name| ("n1", name.as_str())).collect();
    let mut harness = Harness::new(&["n1"], &pods);
    for name in &names {
        harness.answer(&format!("evict {name}"), RequestOutcome::BudgetExhausted("no".into()));
    }
    let mut operation = harness.drain(&["n1"], DrainOptions::default());
    harness.step(&mut operation);
    harness.hang = Some("evict");
    harness.advance(&mut operation, Span::from_secs(5));
    operation.handle_timeout(&harness.cluster, harness.now);
    let due = operation.poll_timeout().expect("the claim is to be renewed");
    assert!(due > harness.now, "due at {due}, and it is {}: waiting for that never ends", harness.now);
}

#[test]
fn a_pause_before_all_nodes_are_written_to_wakes_nobody() {
    let mut harness = Harness::new(&["n1"], &[("n1", "a")]);
    harness.answer("cordon n1", RequestOutcome::Conflict);
    let mut operation = harness.drain(&["n1"], DrainOptions::default());
    harness.step(&mut operation);
    operation.pause(harness.now);
    assert_eq!(operation.poll_timeout(), None);
    operation.resume(&harness.cluster, harness.now);
    harness.run(&mut operation);
    assert_eq!(operation.ended(), Some(OperationEnd::Done));
}

#[test]
fn a_cancel_starts_nothing_more_and_removes_the_claims() {
    let pods: Vec<(&str, String)> = (0..30).map(|number| ("n1", format!("p{number:02}"))).collect();
    let pods: Vec<(&str, &str)> = pods.iter().map(|(node, pod)| (*node, pod.as_str())).collect();
    let mut harness = Harness::new(&["n1"], &pods);
    harness.linger = Span::from_secs(60);
    let mut operation = harness.drain(&["n1"], DrainOptions::default());
    for _ in 0..4 {
        harness.serve_one(&mut operation);
    }
    let before = harness.words().iter().filter(|word| word.starts_with("evict")).count();
    operation.cancel(&harness.cluster, harness.now);
    harness.run(&mut operation);
    let after = harness.words().iter().filter(|word| word.starts_with("evict")).count();
    assert_eq!((operation.ended(), after), (Some(OperationEnd::Cancelled), before));
    assert!(harness.nodes["n1"].claim.is_none() && harness.nodes["n1"].cordoned);
}

#[test]
fn a_node_that_somebody_else_drains_is_left_alone_unless_the_claim_is_old_or_overridden() {
    let claim = |renewed| DrainClaim {
        by: "bob".into(),
        operation: "other".parse().unwrap(),
        renewed,
        ..DrainClaim::default()
    };
    let run = |renewed, take_over| {
        let mut harness = Harness::new(&["n1"], &[("n1", "a")]);
        harness.nodes.get_mut("n1").expect("there").claim = Some(claim(renewed));
        let orders = OperationOptions { take_over, ..by_alice() };
        let mut operation = harness.start(&["n1"], DrainOptions::default(), orders);
        harness.run(&mut operation);
        (operation.ended(), harness.nodes["n1"].cordoned)
    };
    assert_eq!(run(NOW - Span::from_secs(30), false), (Some(OperationEnd::ClaimedByOther), false));
    assert_eq!(run(NOW - Span::from_secs(300), false), (Some(OperationEnd::Done), true));
    assert_eq!(run(NOW - Span::from_secs(30), true), (Some(OperationEnd::Done), true));
}

#[test]
fn a_node_whose_maintenance_began_after_the_approval_is_left_alone() {
    let run = |by: &str, operation: &str, take_over| {
        let mut harness = Harness::new(&["n1"], &[("n1", "a")]);
        let note = MaintenanceNote {
            by: by.into(),
            operation: operation.parse().unwrap(),
            renewed: NOW,
            ..MaintenanceNote::default()
        };
        harness.nodes.get_mut("n1").expect("there").maintenance = Some(note);
        let orders = OperationOptions { take_over, ..by_alice() };
        let mut operation = harness.start(&["n1"], DrainOptions::default(), orders);
        harness.run(&mut operation);
        (operation.ended(), harness.nodes["n1"].cordoned)
    };
    assert_eq!(run("bob", "other", false), (Some(OperationEnd::ClaimedByOther), false));
    assert_eq!(run("bob", "other", true), (Some(OperationEnd::Done), true));
    let OperationOptions { by, id, .. } = by_alice();
    assert_eq!(run(&by, &id, false), (Some(OperationEnd::Done), true), "the drain of its own wave");
    assert_eq!(run("bob", &id, false), (Some(OperationEnd::ClaimedByOther), false), "bob has resumed it");
}

#[test]
fn a_claim_says_how_many_pods_its_drain_began_with() {
    let mut harness = Harness::new(&["n1"], &[("n1", "a"), ("n1", "b")]);
    let mut killed = harness.drain(&["n1"], DrainOptions::default());
    harness.hang = Some("evict a");
    harness.step(&mut killed);
    let claim = harness.nodes["n1"].claim.clone().expect("the node is claimed");
    assert_eq!(claim.pods, Some(2));
}

#[test]
fn the_fresh_claim_of_a_drain_that_was_killed_does_not_block_its_own_undo() {
    let undo = |undoes: &str| {
        let mut harness = Harness::new(&["n1"], &[("n1", "a")]);
        let mut killed = harness.drain(&["n1"], DrainOptions::default());
        harness.hang = Some("evict a");
        harness.step(&mut killed);
        assert!(harness.nodes["n1"].cordoned && harness.nodes["n1"].claim.is_some());
        let (node, uid) = ("n1".into(), ready_node("n1").uid);
        let undo =
            Undo { nodes: vec![NodeUndo { node, uid, steps: vec![UndoStep::Uncordon] }], scales: Vec::new() };
        let options = OperationOptions {
            id: "u1".parse().unwrap(),
            undoes: Some(undoes.parse().unwrap()),
            ..by_alice()
        };
        let rules = EvictionRules::for_version(ServerVersion::new(1, 36));
        let mut operation = Operation::undo(&undo, options, rules, &harness.cluster, harness.now);
        harness.run(&mut operation);
        let node = &harness.nodes["n1"];
        let (end, text) = (operation.ended(), operation.progress().in_short());
        (end, node.cordoned, node.claim.is_some(), text)
    };
    assert_eq!(
        undo("p1"),
        (Some(OperationEnd::Done), false, false, "1 node uncordoned".into()),
        "the claim is taken off with the cordon"
    );
    let others = (Some(OperationEnd::ClaimedByOther), true, true, "1 node incomplete".into());
    assert_eq!(undo("p2"), others, "it is another's");
}

#[test]
fn a_node_that_another_operation_claims_or_that_is_uncordoned_is_given_up() {
    let stop_after = |meddle: fn(&mut FakeNode)| {
        let mut harness = Harness::new(&["n1"], &[("n1", "a")]);
        harness.hang = Some("evict a");
        let mut operation = harness.drain(&["n1"], DrainOptions::default());
        harness.step(&mut operation);
        meddle(harness.nodes.get_mut("n1").expect("there"));
        harness.run(&mut operation);
        assert!(operation.ended().is_some());
        operation.progress().nodes[0].stage.clone()
    };
    let taken = stop_after(|node| {
        node.claim = Some(DrainClaim {
            by: "bob".into(),
            operation: "other".parse().unwrap(),
            renewed: NOW,
            ..DrainClaim::default()
        });
    });
    assert!(
        matches!(taken, NodeProgressStage::Incomplete(NodeIncomplete::ClaimedByOther { .. })),
        "{taken:?}"
    );
    assert_eq!(
        stop_after(|node| node.cordoned = false),
        NodeProgressStage::Incomplete(NodeIncomplete::Uncordoned)
    );
}

#[test]
fn of_two_drains_that_start_together_one_sees_the_other() {
    let mut harness = Harness::new(&["n1"], &[("n1", "a")]);
    harness.linger = Span::from_secs(30);
    let mut first = harness.start(
        &["n1"],
        DrainOptions::default(),
        OperationOptions { id: "one".parse().unwrap(), ..by_alice() },
    );
    let mut second = harness.start(
        &["n1"],
        DrainOptions::default(),
        OperationOptions { id: "two".parse().unwrap(), ..by_alice() },
    );
    // Two operations read the node, then both write it. The second write fails because the node has a newer version.
    harness.serve_one(&mut first);
    harness.serve_one(&mut second);
    harness.serve_one(&mut first);
    harness.serve_one(&mut second);
    harness.run(&mut second);
    assert_eq!(second.ended(), Some(OperationEnd::ClaimedByOther));
    harness.run(&mut first);
    assert_eq!((first.ended(), harness.times("evict a").len()), (Some(OperationEnd::Done), 1));
}

#[test]
fn a_dry_run_records_everything_and_ends() {
    let harness = Harness::new(&["n1"], &[("n1", "a"), ("n1", "b")]);
    let mut operation = harness.drain(&["n1"], DrainOptions::default());
    let mut requests = Vec::new();
    while let Some(request) = operation.poll_request() {
        requests.push(word(&request.task));
        operation.handle_outcome(&harness.cluster, request.id, RequestOutcome::Recorded, NOW);
    }
    assert_eq!(requests, ["read n1", "cordon n1", "evict a", "evict b"]);
    assert_eq!(operation.ended(), Some(OperationEnd::Recorded));
}

/// Scenario 69: A drain that is killed and started again resumes from its journal with the pods that are left.
#[test]
fn a_finished_operation_that_is_resumed_does_nothing_twice() {
    let mut harness = Harness::new(&["n1"], &[("n1", "a"), ("n1", "b")]);
    harness.linger = Span::from_secs(10);
    let mut operation = harness.drain(&["n1"], DrainOptions::default());
    for _ in 0..3 {
        harness.serve_one(&mut operation);
    }
    // The process dies here: one pod was evicted, the other was not.
    drop(operation);
    let past = harness.prior_run();
    let mut operation =
        harness.start(&["n1"], DrainOptions::default(), OperationOptions { prior: past, ..by_alice() });
    harness.run(&mut operation);
    assert_eq!(operation.ended(), Some(OperationEnd::Done));
    assert_eq!((harness.times("evict a").len(), harness.times("evict b").len()), (1, 1));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// Invariants under arbitrary failures: the operation ends, no pod is evicted twice, no pod is evicted before all
    /// nodes are cordoned, and a node that is reported as drained is empty.
    #[test]
    fn under_random_answers_the_guarantees_hold(
        pods in proptest::collection::vec((0..3_usize, 0..2_u8), 0..24),
        troubles in proptest::collection::vec(0..9_u8, 0..60),
        parallel in 1..4_usize,
        linger in 0..20_i64,
        cancel_after in proptest::option::of(0..40_usize),
    ) {
        let nodes = ["n0", "n1", "n2"];
        let names: Vec<(usize, String)> =
            pods.iter().enumerate().map(|(number, (node, _))| (*node, format!("p{number:02}"))).collect();
        let placed: Vec<(&str, &str)> = names.iter().map(|(node, name)| (nodes[*node], name.as_str())).collect();
        let mut harness = Harness::new(&nodes, &placed);
        harness.linger = Span::from_secs(linger);
        harness.troubles = troubles;
        let options = DrainOptions { parallel, timeout: secs(300), ..DrainOptions::default() };
        let mut operation = harness.drain(&nodes, options);
        if let Some(after) = cancel_after {
            for _ in 0..after {
                harness.serve_one(&mut operation);
            }
            operation.cancel(&harness.cluster, harness.now);
        }
        harness.run(&mut operation);
        prop_assert!(operation.ended().is_some());
        let mut evicted = BTreeSet::new();
        for uid in &harness.evicted {
            prop_assert!(evicted.insert(uid.clone()), "{uid} was evicted twice");
        }
        prop_assert!(!harness.evicted_uncordoned, "a pod went before every node was cordoned");
        for node in operation.progress().nodes {
            if matches!(node.stage, NodeProgressStage::Drained { .. }) {
                let left = harness.pods.values().any(|pod| pod.node == *node.node && !pod.gone);
                prop_assert!(!left, "{} is called drained and is not empty", node.node);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// Invariants at every moment, also after a cancel, a kill and a resume. For each node, the numbers of pods by
    /// state add up to the number of pods that the drain removes, and agree with the server's pods. Another process
    /// computes the same numbers from the drain claim, an annotation of the node.
    #[test]
    fn the_count_of_a_drain_is_what_the_server_has(
        pods in proptest::collection::vec((0..3_usize, proptest::bool::ANY), 1..24),
        troubles in proptest::collection::vec(0..9_u8, 0..40),
        parallel in 1..4_usize,
        linger in 0..20_i64,
        late in proptest::bool::ANY,
        stop_after in 0..60_usize,
        stop in 0..3_u8,
    ) {
        let nodes = ["n0", "n1", "n2"];
        let names: Vec<(usize, String)> =
            pods.iter().enumerate().map(|(number, (node, _))| (*node, format!("p{number:02}"))).collect();
        let placed: Vec<(&str, &str)> = names.iter().map(|(node, name)| (nodes[*node], name.as_str())).collect();
        let mut harness = Harness::new(&nodes, &placed);
        for ((_, name), (_, finished)) in names.iter().zip(&pods) {
            if *finished {
                harness.finish(name);
            }
        }
        harness.linger = Span::from_secs(linger);
        harness.troubles = troubles;
        harness.late = late.then_some(("n1", "late"));
        let options = DrainOptions { parallel, timeout: secs(300), ..DrainOptions::default() };
        let prior = harness.prior_run().pods;
        let mut operation = harness.drain(&nodes, options.clone());
        let end = harness.now + Span::from_secs(3600);
        for step in 0.. {
            check_count(&harness, &operation)?;
            if operation.ended().is_some() || harness.now >= end {
                break;
            }
            if step == stop_after && stop == 1 {
                operation.cancel(&harness.cluster, harness.now);
                check_count(&harness, &operation)?;
            }
            if step == stop_after && stop == 2 {
                // The process dies, and another one resumes the operation.
                let run = PriorRun { pods: prior.clone(), ..harness.prior_run() };
                let left: Vec<Uid> = harness.pods.values().filter(|pod| pod.node == "n1" && !pod.gone)
                    .map(|pod| pod.uid.clone()).collect();
                let known = |uid: &Uid| prior.values().any(|pod| pod.uid == *uid);
                prop_assume!(left.iter().all(known), "late pods of the first run are not in the journal");
                prop_assume!(!harness.pods.contains_key("late"));
                operation = harness.start(&nodes, options.clone(), OperationOptions { prior: run, ..by_alice() });
            }
            if !harness.serve_one(&mut operation) && operation.ended().is_none() {
                harness.wait(&mut operation, end);
            }
        }
        // Evicted pods are followed until they are gone.
        harness.now += Span::from_secs(60);
        harness.end_pods();
        operation.handle_change(&harness.cluster, harness.now);
        check_count(&harness, &operation)?;
    }
}

/// Compares an operation's counts of pods, and the counts computed from the drain claims (annotations of the nodes),
/// with the server's pods.
fn check_count(harness: &Harness, operation: &Operation) -> Result<(), TestCaseError> {
    let progress = operation.progress();
    let mut whole = DrainCount::default();
    for node in &progress.nodes {
        let count = progress.count_on(&node.node);
        let DrainCount { gone, terminating, blocked, waiting, finished } = count;
        prop_assert_eq!(count.total(), gone + terminating + blocked + waiting + finished);
        let known = |pod: &&FakePod| progress.pods.iter().any(|row| row.uid == pod.uid);
        let here: Vec<&FakePod> =
            harness.pods.values().filter(|pod| *pod.node == *node.node).filter(known).collect();
        let is_gone = |pod: &&&FakePod| pod.gone;
        let terminates = |pod: &&&FakePod| !pod.gone && pod.ends.is_some();
        let rests = |pod: &&&FakePod| !pod.gone && pod.ends.is_none() && pod.finished;
        let of = |is: &dyn Fn(&&&FakePod) -> bool| here.iter().filter(|pod| is(pod)).count();
        prop_assert_eq!(count.total(), here.len(), "on {}", node.node);
        prop_assert_eq!(
            (gone, terminating, finished),
            (of(&is_gone), of(&terminates), of(&rests)),
            "gone, terminating, finished on {}: {:?}",
            node.node,
            progress
        );
        let claim = harness.nodes[&*node.node].claim.as_ref();
        let mut left = harness.pods.values().filter(|pod| *pod.node == *node.node && !pod.gone);
        // A pod that was bound during the drain counts in the drain claim only after the operation has renewed the
        // claim.
        let is_current = |claim: &&DrainClaim| claim.pods == Some(count.total());
        if let Some(claim) = claim.filter(is_current).filter(|_| left.all(|pod| known(&pod))) {
            let seen =
                DrainCount::from_claim(claim, &node.node, &harness.cluster, None).expect("pods are known");
            let as_seen = DrainCount { blocked: 0, waiting: waiting + blocked, ..count };
            prop_assert_eq!(seen, as_seen, "by the claim on {}", node.node);
        }
        for (part, sum) in [
            (gone, &mut whole.gone),
            (terminating, &mut whole.terminating),
            (blocked, &mut whole.blocked),
            (waiting, &mut whole.waiting),
            (finished, &mut whole.finished),
        ] {
            *sum += part;
        }
    }
    prop_assert_eq!(progress.count(), whole, "the nodes add up to the operation");
    Ok(())
}

/// A minimal server, a watch of its objects, and a clock.
struct Harness {
    now: Timestamp,
    cluster: Cluster,
    nodes: BTreeMap<String, FakeNode>,
    pods: BTreeMap<String, FakePod>,
    requests: Vec<(Timestamp, String)>,
    answers: Vec<(String, RequestOutcome)>,
    evicted: Vec<Uid>,
    evicted_uncordoned: bool,
    /// Time from the eviction of a pod to its end.
    linger: Span,
    /// Requests whose description, such as `evict a`, starts with this text never get a response.
    hang: Option<&'static str>,
    /// A node and the name of a pod. The pod is bound to the node during the drain, when the next pod of the node ends.
    late: Option<(&'static str, &'static str)>,
    /// A node whose list of pods has a pod that no watch reports.
    ghost: Option<&'static str>,
    /// Failures of the next requests, in order.
    troubles: Vec<u8>,
}

#[derive(Clone, Default)]
struct FakeNode {
    version: u64,
    cordoned: bool,
    claim: Option<DrainClaim>,
    maintenance: Option<MaintenanceNote>,
    note: Option<CordonNote>,
    drained: Option<DrainedNote>,
}

#[derive(Clone)]
struct FakePod {
    node: String,
    uid: Uid,
    ends: Option<Timestamp>,
    gone: bool,
    finished: bool,
}

impl Harness {
    fn new(nodes: &[&str], pods: &[(&str, &str)]) -> Self {
        let mut harness = Self {
            now: NOW,
            cluster: Cluster::default(),
            nodes: BTreeMap::new(),
            pods: BTreeMap::new(),
            requests: Vec::new(),
            answers: Vec::new(),
            evicted: Vec::new(),
            evicted_uncordoned: false,
            linger: Span::ZERO,
            hang: None,
            late: None,
            ghost: None,
            troubles: Vec::new(),
        };
        for kind in WorkloadKind::ALL {
            harness.apply(Change::Workload(kind, ObjectEvent::ListStarted));
            harness.apply(Change::Workload(kind, ObjectEvent::ListDone));
        }
        for change in [
            Change::Node(ObjectEvent::ListStarted),
            Change::Node(ObjectEvent::ListDone),
            Change::Pod(ObjectEvent::ListStarted),
            Change::Pod(ObjectEvent::ListDone),
            Change::Budget(ObjectEvent::ListStarted),
            Change::Budget(ObjectEvent::ListDone),
            Change::Namespace(ObjectEvent::ListStarted),
            Change::Namespace(ObjectEvent::ListDone),
        ] {
            harness.apply(change);
        }
        harness.apply(Change::Workload(WorkloadKind::ReplicaSet, ObjectEvent::Applied(replica_set())));
        for node in nodes {
            harness.nodes.insert((*node).into(), FakeNode { version: 1, ..FakeNode::default() });
            harness.apply(Change::Node(ObjectEvent::Applied(ready_node(node))));
        }
        for (node, pod) in pods {
            harness.create(pod, node, &format!("uid-{pod}"));
        }
        harness
    }

    fn drain(&self, nodes: &[&str], options: DrainOptions) -> Operation {
        self.start(nodes, options, by_alice())
    }

    fn start(&self, nodes: &[&str], options: DrainOptions, orders: OperationOptions) -> Operation {
        let plan = self.plan(nodes, options);
        Operation::start(&plan, orders, &self.cluster, self.now)
    }

    fn plan(&self, nodes: &[&str], options: DrainOptions) -> Plan {
        let nodes = nodes.iter().map(|node| NodeName::from(*node)).collect();
        self.plan_action(Action::Drain { nodes, options })
    }

    fn plan_action(&self, action: Action) -> Plan {
        let usual = TypicalEnvironment { cluster: &self.cluster, now: self.now };
        let version = ServerVersion::new(1, 36);
        Plan::new(action, &self.cluster, &usual, version, self.now).expect("a plan")
    }

    /// Returns what the journal of an interrupted drain of all nodes would contain.
    fn prior_run(&self) -> PriorRun {
        let prior = |(name, pod): (&String, &FakePod)| {
            let node = Some(NodeName::from(pod.node.as_str()));
            (Key::new("web", name), PriorPod { uid: pod.uid.clone(), node })
        };
        let cordoned = self.nodes.iter().filter(|(_, node)| node.cordoned);
        PriorRun {
            cordoned: cordoned.map(|(name, _)| NodeName::from(name.as_str())).collect(),
            pods: self.pods.iter().map(prior).collect(),
            surges: Vec::new(),
        }
    }

    /// Sets the outcome of the next request with this description, such as `evict a`, but not of later ones.
    fn answer(&mut self, word: &str, outcome: RequestOutcome) {
        self.answers.push((word.into(), outcome));
    }

    /// Runs the operation until it ends, but at most for an hour.
    fn run(&mut self, operation: &mut Operation) {
        let end = self.now + Span::from_secs(3600);
        while operation.ended().is_none() && self.now < end {
            self.step(operation);
            if operation.ended().is_none() {
                self.wait(operation, end);
            }
        }
    }

    fn advance(&mut self, operation: &mut Operation, span: Span) {
        let end = self.now + span;
        while self.now < end && operation.ended().is_none() {
            self.wait(operation, end);
            self.step(operation);
        }
    }

    /// Advances the time to the next timeout of the operation or the next end of a pod, but at most to `end`.
    fn wait(&mut self, operation: &mut Operation, end: Timestamp) {
        let ends = self.pods.values().filter(|pod| !pod.gone).filter_map(|pod| pod.ends).min();
        let due = operation.poll_timeout().into_iter().chain(ends).min().unwrap_or(end).min(end);
        assert!(due >= self.now, "{due} is over");
        self.now = due;
        self.end_pods();
        operation.handle_change(&self.cluster, self.now);
        operation.handle_timeout(&self.cluster, self.now);
    }

    fn end_pods(&mut self) {
        let due = |pod: &FakePod| !pod.gone && pod.ends.is_some_and(|at| at <= self.now);
        let ended: Vec<String> =
            self.pods.iter().filter(|(_, pod)| due(pod)).map(|(name, _)| name.clone()).collect();
        for name in ended {
            let pod = self.pods.get_mut(&name).expect("there");
            pod.gone = true;
            let node = pod.node.clone();
            self.apply(Change::Pod(ObjectEvent::Deleted(Key::new("web", &name))));
            if let Some((at, late)) = self.late.filter(|(at, _)| *at == node) {
                self.late = None;
                self.create(late, at, "uid-late");
            }
        }
    }

    /// Serves all requests that the operation sends at the present time.
    fn step(&mut self, operation: &mut Operation) {
        while self.serve_one(operation) {}
    }

    fn serve_one(&mut self, operation: &mut Operation) -> bool {
        while operation.poll_notice().is_some() {}
        let Some(request) = operation.poll_request() else { return false };
        let word = word(&request.task);
        self.requests.push((self.now, word.clone()));
        if self.hang.is_some_and(|hang| word.starts_with(hang)) {
            return true;
        }
        let outcome = self.outcome(&word, &request);
        self.end_pods();
        operation.handle_outcome(&self.cluster, request.id, outcome, self.now);
        true
    }

    fn outcome(&mut self, word: &str, request: &Request) -> RequestOutcome {
        if let Some(place) = self.answers.iter().position(|(asked, _)| asked == word) {
            return self.answers.remove(place).1;
        }
        match self.troubles.pop() {
            Some(1) => return RequestOutcome::Failed("etcdserver: leader changed".into()),
            Some(2) => return RequestOutcome::Overloaded { retry_after: Some(Span::from_secs(1)) },
            Some(3) => return RequestOutcome::Unreachable("connection refused".into()),
            Some(4) => return RequestOutcome::Conflict,
            // The request is performed, but its response is lost.
            Some(5) => {
                self.serve(&request.task);
                return RequestOutcome::NoResponse;
            }
            Some(6) => return RequestOutcome::NoResponse,
            _ => {}
        }
        self.serve(&request.task)
    }

    fn serve(&mut self, task: &RequestKind) -> RequestOutcome {
        match task {
            RequestKind::ReadNode { node } => {
                let fake = &self.nodes[&**node];
                let seen = Node {
                    version: Version(fake.version),
                    unschedulable: fake.cordoned,
                    drain_claim: fake.claim.clone().map(Into::into),
                    maintenance: fake.maintenance.clone().map(Into::into),
                    cordon_note: fake.note.clone().map(Into::into),
                    drained: fake.drained.clone().map(Into::into),
                    ..ready_node(node)
                };
                RequestOutcome::Node(Box::new(seen))
            }
            RequestKind::ListPods { node } => {
                let on = self.pods.iter().filter(|(_, pod)| !pod.gone && *pod.node == **node);
                let mut found: Vec<(Key, Uid)> =
                    on.map(|(name, pod)| (Key::new("web", name), pod.uid.clone())).collect();
                if self.ghost == Some(&**node) {
                    found.push((Key::new("web", "ghost"), "uid-ghost".into()));
                }
                RequestOutcome::Pods(found)
            }
            RequestKind::ReadScale { .. } => panic!("no drain here scales anything"),
            RequestKind::Patch(patch) => self.patch(patch),
            RequestKind::Write(PlanStep::Evict { pod, uid, .. }) => self.evict(&pod.name, uid),
            RequestKind::Write(other) => panic!("a drain asks for {other:?}"),
        }
    }

    fn patch(&mut self, patch: &NodePatch) -> RequestOutcome {
        let node = self.nodes.get_mut(&*patch.node).expect("there");
        if patch.version.is_some_and(|version| version.0 != node.version) {
            return RequestOutcome::Conflict;
        }
        node.version += 1;
        node.cordoned = patch.unschedulable.unwrap_or(node.cordoned);
        for (key, text) in &patch.notes {
            match *key {
                claim::DRAIN => node.claim = text.as_deref().and_then(DrainClaim::parse),
                claim::DRAINED => node.drained = text.as_deref().and_then(DrainedNote::parse),
                _ => node.note = text.as_deref().and_then(CordonNote::parse),
            }
        }
        RequestOutcome::Done
    }

    fn evict(&mut self, name: &str, uid: &Uid) -> RequestOutcome {
        self.evicted_uncordoned |= self.nodes.values().any(|node| !node.cordoned);
        let Some(pod) = self.pods.get_mut(name).filter(|pod| !pod.gone) else { return RequestOutcome::Gone };
        if pod.uid != *uid {
            return RequestOutcome::OtherObject;
        }
        self.evicted.push(uid.clone());
        pod.ends = Some(self.now + self.linger);
        let (node, deadline) = (pod.node.clone(), ClusterTime::new(self.now + Span::from_secs(30)));
        let termination = Some(Termination { deadline, grace: Span::from_secs(30) }.into());
        let pod = Pod { termination, ..running_pod(name, &node, uid.clone()) };
        self.apply(Change::Pod(ObjectEvent::Applied(pod)));
        RequestOutcome::Done
    }

    fn create(&mut self, name: &str, node: &str, uid: &str) {
        let pod = FakePod { node: node.into(), uid: uid.into(), ends: None, gone: false, finished: false };
        self.pods.insert(name.into(), pod);
        self.apply(Change::Pod(ObjectEvent::Applied(running_pod(name, node, uid.into()))));
    }

    /// Lets a pod finish; its object stays.
    fn finish(&mut self, name: &str) {
        let pod = self.pods.get_mut(name).expect("there");
        pod.finished = true;
        let (node, uid) = (pod.node.clone(), pod.uid.clone());
        let pod = Pod { phase: Phase::Succeeded, ready: None, ..running_pod(name, &node, uid) };
        self.apply(Change::Pod(ObjectEvent::Applied(pod)));
    }

    /// Sets version and allowed disruptions of the budget over all pods.
    fn budget(&mut self, version: u64, allowed: i32) {
        let status = BudgetStatus {
            disruptions_allowed: allowed,
            current_healthy: 2,
            desired_healthy: 2 - allowed,
            expected_pods: 2,
            ..BudgetStatus::default()
        };
        let budget = Budget {
            key: Key::new("web", "budget"),
            version: Version(version),
            selector: Some(Selector::default()),
            max_unavailable: Some(IntOrPercent::Int(1)),
            status,
            ..Budget::default()
        };
        self.apply(Change::Budget(ObjectEvent::Applied(budget)));
    }

    /// Replaces a pod by one of the same name on another node.
    fn replace(&mut self, name: &str, node: &str) {
        self.create(name, node, "uid-successor");
    }

    fn apply(&mut self, change: Change) {
        self.cluster.apply(change, &mut Vec::new());
    }

    fn words(&self) -> Vec<&str> {
        self.requests.iter().map(|(_, word)| word.as_str()).collect()
    }

    /// Returns the times of the requests with this description, such as `evict a`, in seconds from the start.
    fn times(&self, word: &str) -> Vec<i64> {
        self.requests
            .iter()
            .filter(|(_, asked)| asked == word)
            .map(|(at, _)| at.since(NOW).as_secs())
            .collect()
    }
}

/// Describes a request in two words, such as `evict a`.
fn word(task: &RequestKind) -> String {
    match task {
        RequestKind::ReadNode { node } => format!("read {node}"),
        RequestKind::ListPods { node } => format!("list {node}"),
        RequestKind::ReadScale { deployment } => format!("read {}", deployment.name),
        RequestKind::Patch(patch) => format!("{task} {}", patch.node),
        RequestKind::Write(PlanStep::Evict { pod, .. } | PlanStep::Delete { pod, .. }) => {
            format!("{task} {}", pod.name)
        }
        RequestKind::Write(_) => task.to_string(),
    }
}

fn by_alice() -> OperationOptions {
    OperationOptions { id: "p1".parse().unwrap(), by: "alice".into(), ..OperationOptions::default() }
}

fn secs(secs: i64) -> Option<Span> {
    Some(Span::from_secs(secs))
}

fn ready_node(name: &str) -> Node {
    let ready = Condition { kind: "Ready".into(), status: ConditionStatus::True, ..Condition::default() };
    Node {
        name: name.into(),
        uid: format!("uid-{name}").as_str().into(),
        conditions: [ready].into(),
        ..Node::default()
    }
}

fn replica_set() -> Workload {
    Workload {
        kind: WorkloadKind::ReplicaSet,
        key: Key::new("web", "rs"),
        uid: "uid-rs".into(),
        version: Version(1),
        replicas: Some(50),
        selector: None,
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

fn running_pod(name: &str, node: &str, uid: Uid) -> Pod {
    Pod {
        key: Key::new("web", name),
        uid,
        node: Some(node.into()),
        phase: Phase::Running,
        ready: Some(PodReady { status: ConditionStatus::True, last_transition: None }),
        owner: Some(Arc::new(Owner {
            kind: OwnerKind::Workload(WorkloadKind::ReplicaSet),
            name: "rs".into(),
            uid: "uid-rs".into(),
        })),
        ..Pod::default()
    }
}
