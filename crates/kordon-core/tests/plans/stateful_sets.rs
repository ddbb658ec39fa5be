//! StatefulSets whose pods leave: which pods are created again, and what they wait for.

use kordon_core::{
    cluster::{Key, Phase, StatefulRules, WorkloadKind},
    plan::{BlockPattern, DrainOptions, OutcomeKind, Plan, Verdict, refusal},
};
use kordon_time::Span;

use crate::plan_fixture::{NOW, PlanFixture, at, least, not_ready, of, own, terminating};

/// A StatefulSet `db` with this number of replicas. Its pods with these ordinals run on the nodes `n0`, `n1` and so on.
fn db(replicas: i32, ordinals: &[usize]) -> PlanFixture {
    let nodes = ["n0", "n1", "n2", "n3", "n4"];
    let mut fixture = PlanFixture::new(&nodes);
    fixture.workload(WorkloadKind::StatefulSet, "db", replicas, |workload| {
        workload.stateful = Some(StatefulRules { start: Some(0), ..StatefulRules::default() });
    });
    for ordinal in ordinals {
        let make = |pod: &mut _| own(pod, WorkloadKind::StatefulSet, "db");
        fixture.pod(&format!("db-{ordinal}"), nodes[*ordinal], make);
    }
    fixture
}

fn drain(fixture: &PlanFixture, node: &str) -> Plan {
    fixture.drain(&[node], DrainOptions::default())
}

/// Kubernetes 1.37 `statefulset/stateful_set_control.go`, `updateStatefulSet`: pods beyond the range of ordinals are
/// deleted, and each missing pod within the range is created, however many other pods there are.
#[test]
fn a_pod_within_the_range_of_ordinals_is_created_again_although_there_is_one_too_many() {
    let mut fixture = db(3, &[0, 1, 2, 3]);
    fixture.pod("db-1", "n1", not_ready);
    let first = drain(&fixture, "n0");
    assert_eq!(of(&first, "db-0").outcome.kind(), OutcomeKind::Moves);
    let surplus = drain(&fixture, "n3");
    assert_eq!(of(&surplus, "db-3").outcome.kind(), OutcomeKind::NotRecreated);
    let second = drain(&fixture, "n2");
    let db = of(&second, "db-2");
    let waits_for = Some(Key::new("default", "db-1"));
    assert_eq!((db.outcome.kind(), &db.waits_for), (OutcomeKind::Stuck, &waits_for));
}

/// Kubernetes 1.37 `statefulset/stateful_set_control.go`, `updateStatefulSet` and `getStartOrdinal`: the ordinals of a
/// StatefulSet begin with `spec.ordinals.start`.
#[test]
fn the_range_of_ordinals_begins_with_the_start() {
    let mut fixture = db(2, &[1, 2, 3]);
    fixture.change_workload(WorkloadKind::StatefulSet, "db", |workload| {
        workload.stateful = Some(StatefulRules { start: Some(2), ..StatefulRules::default() });
    });
    let plan = drain(&fixture, "n2");
    assert_eq!((of(&plan, "db-2").outcome.kind(), &of(&plan, "db-2").waits_for), (OutcomeKind::Moves, &None));
    assert_eq!(of(&drain(&fixture, "n1"), "db-1").outcome.kind(), OutcomeKind::NotRecreated);
}

/// Kubernetes 1.37 `statefulset/stateful_set_control.go`, `processReplica`: one sync of a StatefulSet ends with the
/// first pod that has to be created, unless pods are created in parallel.
#[test]
fn a_lower_ordinal_that_does_not_exist_is_waited_for() {
    let mut fixture = db(3, &[1, 2]);
    let waits_for = |fixture: &PlanFixture| of(&drain(fixture, "n1"), "db-1").waits_for.clone();
    assert_eq!(waits_for(&fixture), Some(Key::new("default", "db-0")));
    assert_eq!(at(of(&drain(&fixture, "n1"), "db-1").ready_again), None);
    fixture.change_workload(WorkloadKind::StatefulSet, "db", |workload| {
        let rules = workload.stateful.as_mut().expect("a StatefulSet");
        rules.is_parallel = true;
    });
    assert_eq!(waits_for(&fixture), None);
    assert_eq!(at(of(&drain(&fixture, "n1"), "db-1").ready_again), Some(40));
}

/// Kubernetes 1.37 `statefulset/stateful_set_control.go`, `processReplica`: the next pod waits until the previous one
/// is available (`isRunningAndAvailable`). Budgets count Ready pods (`disruption/disruption.go`, `countHealthyPods`).
#[test]
fn the_next_ordinal_waits_until_the_one_before_has_been_ready_for_min_ready_seconds() {
    let mut fixture = db(3, &[0, 1, 2]);
    fixture.pod("db-1", "n0", |pod| pod.node = Some("n0".into()));
    fixture.change_workload(WorkloadKind::StatefulSet, "db", |workload| {
        let rules = workload.stateful.as_mut().expect("a StatefulSet");
        rules.min_ready = Span::from_secs(300);
    });
    fixture.budget("db", |budget| budget.max_unavailable = least(1)).sync();
    let plan = drain(&fixture, "n0");
    let times = |pod: &str| (at(of(&plan, pod).leaves.likely), at(of(&plan, pod).ready_again));
    assert_eq!(times("db-0"), (Some(0), Some(40)), "gone after 30 s, Ready after 10 s");
    assert_eq!(times("db-1"), (Some(45), Some(350)), "created 300 s after db-0 is Ready");
}

/// A StatefulSet of three pods, whose budget allows one of them to be unavailable. The last pod stays Terminating for
/// another 20 s.
fn with_terminating_sibling() -> PlanFixture {
    let mut fixture = db(3, &[0, 1, 2]);
    fixture.pod("db-2", "n2", |pod| terminating(pod, 20));
    fixture.budget("db", |budget| budget.max_unavailable = least(1)).sync();
    fixture
}

/// Kubernetes 1.37 `statefulset/stateful_set_control.go`, `processReplica`: a terminating pod is created again once it
/// is gone; `disruption/disruption.go`, `countHealthyPods`: it does not count as healthy until then.
#[test]
fn a_terminating_sibling_comes_back_and_its_budget_allows_the_next_eviction() {
    let fixture = with_terminating_sibling();
    let plan = drain(&fixture, "n0");
    let db = of(&plan, "db-0");
    let budget = Key::new("default", "db");
    assert_eq!(
        db.verdict,
        Verdict::LeavesAfter { budget, recoveries: 1, behind: Vec::new(), operator: None }
    );
    assert_eq!(at(db.leaves.likely), Some(35), "gone after 20 s, Ready after 10 s, tried every 5 s");
    assert_eq!(at(plan.totals.ends.likely), Some(65), "the plan does not wait for the sibling itself");
    let forced = fixture.drain(&["n0"], DrainOptions { grace: Some(Span::ZERO), ..DrainOptions::default() });
    assert_eq!(
        at(of(&forced, "db-0").leaves.likely),
        Some(35),
        "the grace period of the plan is not that of the sibling"
    );
}

#[test]
fn a_terminating_sibling_whose_node_is_dead_is_named() {
    let mut fixture = with_terminating_sibling();
    fixture.environment.down = ["n2".into()].into();
    let pods = vec![Key::new("default", "db-2")];
    let plan = drain(&fixture, "n0");
    assert!(matches!(
        &of(&plan, "db-0").verdict,
        Verdict::Blocked { pattern: BlockPattern::StuckTerminating { pods: stuck }, .. } if *stuck == pods
    ));
    // The refusal of a single eviction names the terminating pod of the same StatefulSet, but does not predict when
    // that pod is gone.
    let pod = fixture.cluster.pod(&Key::new("default", "db-0")).expect("a pod");
    let now = refusal(&fixture.cluster, pod, &fixture.rules(), NOW);
    assert!(matches!(now, Some(Verdict::Waits { terminating, .. }) if terminating == pods));
}

/// Kubernetes 1.37 `statefulset/stateful_set_control.go`, `processReplica`: a sync of a StatefulSet ends at a
/// terminating pod of a lower ordinal, and this pod is created first.
#[test]
fn a_pod_behind_a_terminating_lower_ordinal_follows_it() {
    let mut fixture = db(2, &[0, 1]);
    fixture.pod("db-0", "n0", |pod| terminating(pod, 30));
    let plan = drain(&fixture, "n1");
    assert_eq!(at(of(&plan, "db-1").gone.likely), Some(30));
    assert_eq!(at(of(&plan, "db-1").ready_again), Some(50), "db-0 is gone at 30 s, and Ready again at 40 s");
}

/// Kubernetes 1.37 `statefulset/stateful_set_control.go`, `processReplica`: the controller deletes a pod whose phase is
/// Failed or Succeeded, whatever its exit code, and creates it again. ReplicaSets count such pods as gone.
#[test]
fn a_failed_pod_of_a_stateful_set_is_created_again() {
    let mut fixture = db(2, &[0, 1]);
    fixture.replica_set("web", 1, &["n0", "n2"]);
    for pod in ["db-0", "web-0"] {
        fixture.pod(pod, "n0", |pod| (pod.phase, pod.ready) = (Phase::Failed, None));
    }
    let plan = drain(&fixture, "n0");
    let outcome = |pod: &str| (of(&plan, pod).outcome.kind(), at(of(&plan, pod).ready_again));
    assert_eq!(outcome("db-0"), (OutcomeKind::Moves, Some(10)));
    assert_eq!(outcome("web-0"), (OutcomeKind::Finished, None));
}
