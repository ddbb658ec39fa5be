//! How PodDisruptionBudgets let the pods of a drain go.

use kordon_core::{
    cluster::{IntOrPercent, Key, Phase, PodEnding, Selector, UnhealthyPolicy, WorkloadKind},
    engine::ServerVersion,
    plan::{BlockPattern, DrainOptions, Plan, PlanEvent, Prospect, Retry, Verdict},
};
use kordon_time::{ClusterTime, Span};

use super::{drained, five, leaves, timed};
use crate::plan_fixture::{
    NEWEST, NOW, PlanFixture, at, least, not_ready, of, own, percent, starting, terminating,
};

const OLD: ServerVersion = ServerVersion::new(1, 23);

/// Scenario 32: Percentages of a budget round up: with 5 healthy pods `maxUnavailable: 25%` needs 3 and allows 2.
///
/// Checks all rows of the table in docs/upstream/operator-actions.md#5.1.
#[test]
fn percentages_round_up_both_ways() {
    let most = |value| five(move |budget| budget.max_unavailable = value).status("web");
    let min = |value| five(move |budget| budget.min_available = value).status("web");
    assert_eq!(most(percent(25)), [5, 3, 5, 2]);
    assert_eq!(most(percent(10)), [5, 4, 5, 1]);
    assert_eq!(most(percent(30)), [5, 3, 5, 2]);
    assert_eq!((most(percent(0)), most(least(0))), ([5, 5, 5, 0], [5, 5, 5, 0]));
    assert_eq!(most(percent(100)), [5, 0, 5, 5]);
    assert_eq!((min(percent(34)), min(percent(1))), ([5, 2, 5, 3], [5, 1, 5, 4]));
    assert_eq!((min(percent(100)), min(least(10))), ([5, 5, 5, 0], [5, 10, 5, 0]));
    assert_eq!(min(least(0)), [5, 0, 5, 5]);
}

/// Scenario 33: A server-side dry run of every eviction succeeds, also where the budget allows fewer.
#[test]
fn a_dry_run_of_each_pod_says_nothing_of_the_second() {
    let fixture = five(|budget| budget.max_unavailable = percent(25));
    assert!((0..5).all(|pod| fixture.evict(&format!("web-{pod}")).0 == 201));
    let plan = drained(&fixture);
    assert_eq!((plan.totals.leave_now, plan.totals.leave_later), (2, 3), "the plan does");
}

/// Scenario 34: Without the disruption controller a budget lets no more pods go than its status allowed.
#[test]
fn a_granted_eviction_that_is_not_seen_counts_against_the_budget_for_two_minutes() {
    let mut fixture = five(|budget| budget.max_unavailable = percent(25));
    fixture.budget("web", |budget| {
        budget.status.disrupted_pods =
            ["web-0", "web-1"].map(|name| (name.into(), ClusterTime::new(NOW))).into();
    });
    fixture.sync();
    assert_eq!(fixture.status("web"), [5, 3, 3, 0]);
    assert_eq!(fixture.evict("web-2").0, 429);
    let plan = drained(&fixture);
    assert_eq!(
        at(of(&plan, "web-0").leaves.likely),
        Some(125),
        "the promises end at 120 s, between two tries"
    );
}

/// Another drain has just evicted a pod, whose replacement is already Ready. The budget's status allows no eviction
/// until the disruption controller has synced the budget.
#[test]
fn a_budget_whose_status_is_behind_its_pods_allows_evictions_after_the_next_sync() {
    let mut fixture = five(|budget| budget.max_unavailable = percent(25));
    fixture.sync().budget("web", |budget| budget.status.disruptions_allowed = 0);
    assert_eq!((fixture.status("web"), fixture.evict("web-0").0), ([5, 3, 5, 0], 429));
    let plan = drained(&fixture);
    assert_eq!((plan.prospect(), plan.totals.leave_later), (Prospect::Completes, 5));
    assert_eq!(at(of(&plan, "web-0").leaves.likely), Some(5), "at the second try");
}

/// Scenario 35: An exhausted budget answers 429 with its numbers and without Retry-After.
#[test]
fn an_exhausted_budget_answers_with_its_numbers() {
    let fixture = five(|budget| budget.min_available = least(5));
    assert_eq!(
        fixture.evict("web-0"),
        (429, Some("The disruption budget web needs 5 healthy pods and has 5 currently".into()))
    );
}

/// Scenario 36: A budget whose status is stale refuses ready pods with Retry-After, and lets unready pods go.
#[test]
fn a_stale_budget_holds_ready_pods_and_lets_unready_ones_go() {
    let mut fixture = five(|budget| budget.min_available = least(2));
    fixture.budget("web", |budget| budget.generation = 2).pod("web-1", "n1", not_ready);
    let (code, cause) = fixture.evict("web-0");
    assert_eq!(code, 429);
    assert!(cause.is_some_and(|cause| cause.contains("still being processed")));
    assert_eq!(fixture.evict("web-1").0, 201);
    assert_eq!(
        of(&drained(&fixture), "web-0").verdict,
        Verdict::WaitsForController { budget: Key::new("default", "web") }
    );
}

/// Scenario 37: A Pending pod is evicted although its budget is exhausted.
#[test]
fn a_pending_pod_leaves_under_an_exhausted_budget() {
    let mut fixture = five(|budget| budget.min_available = least(5));
    fixture.pod("web-0", "n1", |pod| pod.phase = Phase::Pending);
    assert_eq!(fixture.evict("web-0").0, 201);
}

fn two_budgets() -> PlanFixture {
    let mut fixture = five(|budget| budget.min_available = least(1));
    let selector = Selector::parse("app=web").expect("a selector");
    fixture.budget("other", |budget| {
        budget.selector = Some(selector);
        budget.min_available = least(1);
    });
    fixture.sync();
    fixture
}

/// Scenario 39: Finished and terminating pods are evicted under two budgets.
#[test]
fn finished_and_terminating_pods_leave_under_two_budgets() {
    let mut fixture = two_budgets();
    fixture.pod("web-0", "n1", |pod| pod.phase = Phase::Succeeded);
    fixture.pod("web-1", "n1", |pod| pod.phase = Phase::Failed);
    fixture.pod("web-2", "n1", |pod| terminating(pod, 30));
    assert!((0..3).all(|pod| fixture.evict(&format!("web-{pod}")).0 == 201));
}

#[test]
fn the_timeline_says_why_a_pod_is_given_up() {
    let gave_up = |fixture: &PlanFixture, options: DrainOptions| {
        let plan = fixture.drain(&["n1"], options);
        let details = plan.timeline.iter().map(|moment| moment.event.columns());
        details.filter(|(_, word, _)| *word == "given up").map(|(.., details)| details).next_back()
    };
    assert_eq!(gave_up(&two_budgets(), DrainOptions::default()).as_deref(), Some("eviction failed"));
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture.replica_set("web", 1, &["n1"]);
    assert_eq!(gave_up(&fixture, timed(1)).as_deref(), Some("timeout expired"));
}

/// Scenario 40: The eviction of a running pod under two budgets is answered 500.
/// Scenario 57: Two budgets over one of ten pods fail that pod; the other nine are evicted.
#[test]
fn two_budgets_over_a_pod_fail_it_and_the_others_go() {
    let mut fixture = two_budgets();
    fixture.pod("web-3", "n1", not_ready);
    for pod in ["web-0", "web-3"] {
        let (code, message) = fixture.evict(pod);
        assert_eq!(code, 500);
        assert!(
            message.is_some_and(|text| text.starts_with("This pod has more than one PodDisruptionBudget"))
        );
    }
    fixture.replica_set("api", 9, &["n1"; 9]);
    let plan = drained(&fixture);
    assert!(matches!(&of(&plan, "web-0").verdict, Verdict::TwoBudgets { budgets } if budgets.len() == 2));
    assert_eq!((plan.totals.leave_now, plan.totals.blocked, plan.prospect()), (9, 5, Prospect::Blocked));
}

/// Scenario 41: An unready pod of a healthy budget is evicted, and the budget's allowance stays.
#[test]
fn an_unready_pod_of_a_healthy_budget_costs_nothing() {
    let mut fixture = five(|budget| budget.min_available = least(3));
    fixture.pod("web-0", "n1", not_ready).pod("web-1", "n1", not_ready).sync();
    assert_eq!(
        (fixture.status("web"), fixture.evict("web-0").0, fixture.evict("web-2").0),
        ([5, 3, 3, 0], 201, 429)
    );
}

/// Scenario 42: An unready pod of an unhealthy budget is refused, unless `unhealthyPodEvictionPolicy` is
/// AlwaysAllow.
#[test]
fn an_unready_pod_of_a_sick_budget_waits_unless_its_policy_lets_it_go() {
    let sick = |policy, version| {
        let mut fixture = five(|budget| budget.min_available = least(3));
        fixture.version = version;
        for pod in ["web-0", "web-1", "web-2"] {
            fixture.pod(pod, "n1", not_ready);
        }
        fixture.budget("web", |budget| budget.unhealthy = policy).sync();
        fixture.evict("web-0").0
    };
    assert_eq!(sick(UnhealthyPolicy::IfHealthyBudget, NEWEST), 429);
    assert_eq!(sick(UnhealthyPolicy::AlwaysAllow, NEWEST), 201);
    assert_eq!(sick(UnhealthyPolicy::AlwaysAllow, ServerVersion::new(1, 27)), 201);
    assert_eq!(sick(UnhealthyPolicy::AlwaysAllow, OLD), 429, "a server that does not know the policy");
    assert_eq!(sick(UnhealthyPolicy::Invalid, NEWEST), 429);
}

/// Scenario 43: With no pod ready, a budget with `minAvailable: 0` refuses evictions.
#[test]
fn with_no_pod_ready_even_a_budget_of_nothing_blocks() {
    let mut fixture = five(|budget| budget.min_available = least(0));
    for pod in 0..5 {
        fixture.pod(&format!("web-{pod}"), "n1", not_ready);
    }
    fixture.sync();
    assert_eq!(
        fixture.evict("web-0"),
        (429, Some("The disruption budget web needs 0 healthy pods and has 0 currently".into()))
    );
    let plan = drained(&fixture);
    assert!(
        matches!(&of(&plan, "web-0").verdict, Verdict::Waits { recoveries: 1, unhealthy, .. } if unhealthy.len() == 5)
    );
}

/// Scenario 44: A budget with an empty selector protects pods from 1.29 on, and not in 1.23.
#[test]
fn an_empty_selector_protects_from_1_29_on() {
    let answers = |version| {
        let mut fixture = five(|budget| {
            budget.selector = Some(Selector::default());
            budget.min_available = least(5);
        });
        fixture.version = version;
        fixture.sync();
        (fixture.status("web")[3], fixture.evict("web-0").0)
    };
    assert_eq!(answers(OLD), (0, 201), "the status says blocked, and eviction does not look");
    assert_eq!(answers(ServerVersion::new(1, 29)), (0, 429));
}

/// Scenario 45: A budget with neither `minAvailable` nor `maxUnavailable` refuses every eviction.
#[test]
fn a_budget_that_names_neither_bound_blocks_everything() {
    let mut fixture = five(|_| {});
    assert_eq!(fixture.status("web"), [0, 0, 5, 0]);
    fixture.version = OLD;
    assert_eq!(
        fixture.evict("web-0"),
        (429, Some("The disruption budget web needs 0 healthy pods and has 5 currently".into()))
    );
    assert_eq!(pattern(&drained(&fixture), "web-0"), Some(BlockPattern::NothingGiven));
}

fn pattern(plan: &Plan, pod: &str) -> Option<BlockPattern> {
    match &of(plan, pod).verdict {
        Verdict::Blocked { pattern, .. } => Some(pattern.clone()),
        _ => None,
    }
}

/// Scenario 46: A budget with `maxUnavailable` over a Job's pods fails to sync and always refuses; `minAvailable`
/// as a number works.
#[test]
fn a_budget_over_a_job_needs_a_number_to_hold_on_to() {
    let job = |make: fn(&mut kordon_core::cluster::Budget)| {
        let mut fixture = PlanFixture::new(&["n1"]);
        fixture.owner(WorkloadKind::Job, "job", 3);
        for pod in ["job-0", "job-1", "job-2"] {
            fixture.pod(pod, "n1", |pod| own(pod, WorkloadKind::Job, "job"));
        }
        fixture.budget("job", make).sync();
        fixture
    };
    let failed = job(|budget| budget.max_unavailable = least(1));
    let (code, cause) = failed.evict("job-0");
    assert!(code == 429 && cause.is_some_and(|cause| cause.contains("still being processed")));
    assert!(matches!(pattern(&drained(&failed), "job-0"), Some(BlockPattern::SyncFailed { .. })));
    assert_eq!(job(|budget| budget.min_available = least(2)).status("job"), [3, 2, 3, 1]);
}

/// Scenario 47: Pods without a controller are never evictable under a percentage; under `minAvailable` as a
/// number they are.
#[test]
fn bare_pods_under_a_share_are_never_evictable() {
    let bare = |value| {
        let mut fixture = PlanFixture::new(&["n1"]);
        for pod in ["a", "b", "c"] {
            fixture.pod(pod, "n1", |pod| pod.labels = [("app".into(), "bare".into())].into());
        }
        fixture.budget("bare", |budget| budget.min_available = value).sync();
        fixture
    };
    let never = bare(percent(50));
    assert_eq!(never.status("bare"), [0, 0, 3, 0]);
    let plan = never.drain(&["n1"], DrainOptions { force: true, ..DrainOptions::default() });
    assert_eq!(pattern(&plan, "a"), Some(BlockPattern::ExpectsNone));
    assert_eq!(bare(least(1)).status("bare"), [3, 1, 3, 2]);
}

/// Scenario 48: A budget with `maxUnavailable` as a number follows the scale of its ReplicaSet.
/// Scenario 49: A budget with `maxUnavailable` as a percentage follows the scale of its ReplicaSet.
#[test]
fn a_budget_follows_the_scale() {
    let scaled = |most: Option<IntOrPercent>, to: i32| {
        let mut fixture = PlanFixture::new(&["n1"]);
        fixture
            .replica_set("web", 7, &["n1"; 7])
            .budget("web", |budget| budget.max_unavailable = most)
            .sync();
        let before = fixture.status("web")[1];
        fixture.owner(WorkloadKind::ReplicaSet, "web", to).sync();
        (before, fixture.status("web")[1])
    };
    assert_eq!(scaled(least(2), 5), (5, 3));
    assert_eq!(scaled(percent(30), 3), (4, 2));
}

/// Scenario 50: A percentage in a budget is a share of the total scale of all controllers of the budget's pods.
#[test]
fn the_scales_of_all_controllers_of_its_pods_add_up() {
    let mut fixture = PlanFixture::new(&["n1"]);
    let rc = |pod: &mut _| own(pod, WorkloadKind::ReplicationController, "rc");
    fixture.owner(WorkloadKind::ReplicationController, "rc", 11).pod("rc-0", "n1", rc);
    let selector = Selector::parse("app in (rc,web)").expect("a selector");
    fixture.budget("both", |budget| {
        budget.selector = Some(selector);
        budget.min_available = percent(28);
    });
    fixture.sync();
    assert_eq!(fixture.status("both")[..2], [11, 4]);
    fixture.replica_set("web", 11, &["n1"]).sync();
    assert_eq!(fixture.status("both")[..2], [22, 7]);
}

/// Scenario 51: Ten evictions at once under one budget all succeed in the end, and no client sees a 409.
#[test]
fn evictions_at_once_all_get_through_in_time() {
    let mut fixture = PlanFixture::new(&["n1"]);
    fixture
        .replica_set("web", 10, &["n1"; 10])
        .budget("web", |budget| budget.min_available = least(0))
        .sync();
    let names: Vec<String> = (0..10).map(|pod| format!("web-{pod}")).collect();
    let plan = fixture.evictions(&names.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!((plan.totals.leave_now, plan.prospect()), (10, Prospect::Completes));
    assert_eq!(plan.command, None, "kubectl has no word for it");
}

/// Scenario 58: The plan of a blocked pod names the budget that blocks it (`kubectl drain --dry-run=client` says
/// drained).
#[test]
fn a_blocked_pod_is_reported_with_its_budget_and_not_as_drained() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture
        .replica_set("web", 2, &["n1", "n2"])
        .budget("web", |budget| budget.min_available = least(2))
        .sync();
    let plan = drained(&fixture);
    assert_eq!(
        pattern(&plan, "web-0"),
        Some(BlockPattern::CannotBeMet { needs: 2, max_healthy: 2, scaling_helps: true })
    );
    assert_eq!((plan.prospect(), plan.totals.ends.likely), (Prospect::Blocked, None));
    let drain = plan.nodes[0].drain.as_ref().expect("a drain");
    assert_eq!(drain.dominated_by, Some(Key::new("default", "web")));
}

/// Scenario 65: When a replacement cannot be placed, the next pod of its budget never gets its turn and is
/// blocked.
#[test]
fn without_a_node_for_the_first_replacement_the_second_pod_is_blocked_forever() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture
        .replica_set("web", 3, &["n1", "n1", "n2"])
        .budget("web", |budget| budget.min_available = least(2))
        .sync();
    fixture.environment.room = 0;
    let plan = drained(&fixture);
    assert!(leaves(&plan, "web-0"));
    assert_eq!(
        pattern(&plan, "web-1"),
        Some(BlockPattern::ReplacementPending {
            of: vec![Key::new("default", "web-0")],
            why: "insufficient cpu".into()
        })
    );
    assert!(plan.warnings.iter().any(|warning| warning.word() == "capacityExhausted"));
}

/// Scenario 66: Nodes that are drained in parallel share a budget: the second pod waits for the first one's
/// replacement.
#[test]
fn nodes_in_parallel_share_a_budget() {
    let mut fixture = PlanFixture::new(&["n1", "n2", "n3"]);
    fixture
        .replica_set("web", 3, &["n1", "n2", "n3"])
        .budget("web", |budget| budget.min_available = least(2))
        .sync();
    let plan = fixture.drain(&["n1", "n2"], DrainOptions { parallel: 2, ..DrainOptions::default() });
    assert!(leaves(&plan, "web-0"));
    assert!(matches!(&of(&plan, "web-1").verdict, Verdict::LeavesAfter { recoveries: 1, .. }));
    let second = plan.nodes[1].drain.as_ref().expect("a drain");
    assert_eq!(
        (at(Some(second.starts)), second.dominated_by.clone()),
        (Some(0), Some(Key::new("default", "web")))
    );
    assert_eq!(
        at(of(&plan, "web-1").leaves.likely),
        Some(15),
        "ready at 10 s, seen a little later, tried at 15 s"
    );
    let waking = DrainOptions { parallel: 2, retry: Retry::OnRecovery, ..DrainOptions::default() };
    assert_eq!(at(of(&fixture.drain(&["n1", "n2"], waking), "web-1").leaves.likely), Some(10));
}

/// Scenario 67: A healthy pod waits for an unready pod on another node, and the plan names that pod.
#[test]
fn a_healthy_pod_may_be_hostage_to_a_sick_one_elsewhere() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture
        .replica_set("web", 3, &["n1", "n2", "n2"])
        .budget("web", |budget| budget.min_available = least(2));
    fixture.pod("web-2", "n2", not_ready).sync();
    let plan = drained(&fixture);
    assert!(matches!(
        &of(&plan, "web-0").verdict,
        Verdict::Waits { recoveries: 1, unhealthy, .. } if *unhealthy == [Key::new("default", "web-2")]
    ));
    assert_eq!(plan.prospect(), Prospect::Stalls);
}

/// A pod that waits for its budget leaves once another pod is Ready. The other pod was created just before the plan,
/// for example after an earlier drain. A pod that has taken much longer than its siblings is not expected to become
/// Ready.
#[test]
fn a_pod_leaves_when_a_pod_elsewhere_has_started() {
    let plan = |age: i64| {
        let mut fixture = PlanFixture::new(&["n1", "n2"]);
        fixture
            .replica_set("web", 3, &["n1", "n2", "n2"])
            .budget("web", |budget| budget.min_available = least(2));
        fixture.pod("web-2", "n2", |pod| starting(pod, age)).sync();
        fixture.drain(&["n1"], DrainOptions { retry: Retry::OnRecovery, ..DrainOptions::default() })
    };
    let young = plan(4);
    assert!(
        matches!(&of(&young, "web-0").verdict, Verdict::LeavesAfter { recoveries: 1, behind, .. } if behind.is_empty())
    );
    let started = PlanEvent::Started { pod: Key::new("default", "web-2") };
    assert!(young.timeline.iter().any(|moment| moment.event == started && at(Some(moment.at)) == Some(6)));
    let window = |plan: &Plan| {
        let leaves = of(plan, "web-0").leaves;
        [leaves.soonest, leaves.likely, leaves.latest].map(at)
    };
    assert_eq!((window(&young), young.prospect()), ([Some(6); 3], Prospect::Completes));
    let overdue = plan(15);
    assert_eq!((window(&overdue), &*overdue.ends()), ([Some(0), Some(5), None], "in ~36s (possibly never)"));
    assert_eq!((window(&plan(25)), plan(25).prospect()), ([None; 3], Prospect::Stalls));
}

/// Kubernetes 1.37 `registry/core/pod/storage/eviction.go`: the eviction that comes first uses up the allowed
/// disruption of the budget. A bare pod is not recreated, so after its eviction the budget allows no further
/// disruption.
#[test]
fn a_pod_that_nothing_recreates_leaves_after_those_that_share_its_budget() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture.replica_set("web", 2, &["n1", "n2"]).pod("a-shell", "n1", |pod| {
        own(pod, WorkloadKind::ReplicaSet, "web");
        pod.owner = None;
    });
    fixture.budget("web", |budget| budget.min_available = least(2)).sync();
    let plan = fixture.drain(&["n1"], DrainOptions { force: true, ..DrainOptions::default() });
    assert!(leaves(&plan, "web-0"));
    assert_eq!(at(of(&plan, "a-shell").leaves.likely), Some(15), "once the replacement of web-0 is Ready");
    assert_eq!(plan.prospect(), Prospect::Completes);
}

/// A pod whose container was just restarted counts as a starting pod, however old the pod is.
#[test]
fn a_pod_leaves_when_a_restarted_pod_elsewhere_is_ready_again() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture
        .replica_set("web", 3, &["n1", "n2", "n2"])
        .budget("web", |budget| budget.min_available = least(2));
    fixture.pod("web-2", "n2", |pod| {
        not_ready(pod);
        let restarted = Some(ClusterTime::new(NOW - Span::from_secs(4)));
        pod.ending = Some(PodEnding { restarted, ..PodEnding::default() }.into());
    });
    let plan = drained(fixture.sync());
    assert_eq!(
        at(of(&plan, "web-0").leaves.likely),
        Some(10),
        "Ready 10 s after its restart, tried every 5 s"
    );
}
