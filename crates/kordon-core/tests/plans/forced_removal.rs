//! Nodes out of service: their terminating pods are removed by force, and are replaced after that.

use kordon_core::{
    cluster::{Condition, ConditionStatus, Key, READY, WorkloadKind},
    engine::ServerVersion,
    plan::{
        Action, OutcomeKind, Plan, PodOutcome, PodWarning, Prospect, RemovalOptions, TaintEdits, Verdict,
    },
};
use kordon_time::Span;

use crate::plan_fixture::{FixedEnvironment, NOW, PlanFixture, at, of, own, taint, terminating};

const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute";

#[test]
fn a_terminating_pod_is_removed_within_20_s_of_the_taint_and_replaced_then() {
    let plan = mark(&with_stuck_pod(), OUT_OF_SERVICE);
    let db = of(&plan, "db-0");
    assert_eq!((&db.verdict, db.outcome.kind()), (&Verdict::Terminating, OutcomeKind::Moves));
    assert_eq!((at(db.gone.soonest), at(db.gone.likely), at(db.gone.latest)), (Some(0), Some(10), Some(20)));
    assert_eq!((at(db.ready_again), db.is_removed_by_force()), (Some(20), true));
    assert_eq!(at(plan.totals.ends.latest), Some(20));
}

#[test]
fn the_effect_of_the_taint_does_not_matter_but_the_state_of_the_node_and_the_release_do() {
    let any_effect = "node.kubernetes.io/out-of-service:NoSchedule";
    assert!(of(&mark(&with_stuck_pod(), any_effect), "db-0").is_removed_by_force());
    let mut ready = with_stuck_pod();
    ready.node("n1", |node| node.conditions = [ready_is(ConditionStatus::True)].into());
    assert!(!of(&mark(&ready, OUT_OF_SERVICE), "db-0").is_removed_by_force());
    let mut old = with_stuck_pod();
    old.version = ServerVersion::new(1, 25);
    let plan = mark(&old, OUT_OF_SERVICE);
    assert_eq!(
        (at(of(&plan, "db-0").gone.likely), of(&plan, "db-0").outcome.kind()),
        (None, OutcomeKind::Stuck)
    );
}

#[test]
fn a_pod_that_the_taint_deletes_is_removed_too_and_a_finalizer_holds_either() {
    let mut fixture = with_stuck_pod();
    fixture.owner(WorkloadKind::StatefulSet, "mq", 1);
    fixture.pod("mq-0", "n1", |pod| own(pod, WorkloadKind::StatefulSet, "mq"));
    fixture.pod("db-0", "n1", |pod| pod.finalizers = ["example.com/backup".into()].into());
    let plan = mark(&fixture, OUT_OF_SERVICE);
    let (db, mq) = (of(&plan, "db-0"), of(&plan, "mq-0"));
    assert!(matches!(mq.verdict, Verdict::Deleted { .. }));
    assert_eq!((at(mq.gone.latest), mq.outcome.kind()), (Some(20), OutcomeKind::Moves));
    assert_eq!(at(db.gone.latest), None);
    assert_eq!(
        db.outcome.to_string(),
        "stuck Terminating: no replacement until its finalizers are removed (example.com/backup)"
    );
    assert!(db.warnings.contains(&PodWarning::HeldByFinalizer));
    assert_eq!((at(plan.totals.ends.likely), plan.prospect()), (None, Prospect::Stalls));
}

/// A finalizer keeps a pod that the taint does not delete anew, and the way out that is named includes it.
#[test]
fn a_plan_whose_only_pod_a_finalizer_holds_does_not_complete() {
    let mut fixture = with_stuck_pod();
    fixture.pod("db-0", "n1", |pod| pod.finalizers = ["example.com/backup".into()].into());
    let plan = mark(&fixture, OUT_OF_SERVICE);
    assert_eq!((at(plan.totals.ends.likely), plan.prospect()), (None, Prospect::Stalls));
    let pod = fixture.cluster.pod(&Key::new("default", "db-0")).expect("added");
    assert_eq!(
        PodOutcome::for_terminating(&fixture.cluster, pod).to_string(),
        "stuck Terminating: no replacement until its finalizers are removed (example.com/backup) and the node is back, \
         deleted or tainted out-of-service"
    );
}

#[test]
fn a_deployment_whose_replacement_exists_gets_no_other_one() {
    let mut fixture = dead_node();
    fixture.replica_set("web", 1, &["n2"]);
    fixture.pod("web-old", "n1", |pod| {
        own(pod, WorkloadKind::ReplicaSet, "web");
        terminating(pod, 20);
    });
    let plan = mark(&fixture, OUT_OF_SERVICE);
    let old = of(&plan, "web-old");
    assert_eq!((&old.landing, old.outcome.kind()), (&None, OutcomeKind::Replaced));
    assert_eq!(old.outcome.to_string(), "replaced when its deletion started");
}

#[test]
fn a_deletion_by_force_removes_the_pod_at_once_and_on_a_node_out_of_service_any_deletion_does() {
    let fixture = with_stuck_pod();
    let plan = delete(&fixture, Some(Span::ZERO));
    assert_eq!(
        (at(of(&plan, "db-0").gone.likely), of(&plan, "db-0").outcome.kind()),
        (Some(0), OutcomeKind::Moves)
    );
    assert_eq!(plan.totals.ends.likely, plan.totals.ends.latest, "nothing is left that could take longer");
    let plan = delete(&fixture, None);
    assert_eq!(
        (at(of(&plan, "db-0").gone.likely), of(&plan, "db-0").outcome.kind()),
        (None, OutcomeKind::Stuck)
    );
    let mut marked = with_stuck_pod();
    marked.node("n1", |node| node.taints = [taint(OUT_OF_SERVICE)].into());
    let plan = delete(&marked, None);
    assert_eq!(
        (at(of(&plan, "db-0").gone.latest), of(&plan, "db-0").outcome.kind()),
        (Some(20), OutcomeKind::Moves)
    );
}

/// A dead node with a pod of a StatefulSet. The deletion of the pod has begun.
fn with_stuck_pod() -> PlanFixture {
    let mut fixture = dead_node();
    fixture.owner(WorkloadKind::StatefulSet, "db", 1);
    fixture.pod("db-0", "n1", |pod| {
        own(pod, WorkloadKind::StatefulSet, "db");
        terminating(pod, 20);
    });
    fixture
}

fn dead_node() -> PlanFixture {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture.node("n1", |node| node.conditions = [ready_is(ConditionStatus::Unknown)].into());
    fixture
}

fn ready_is(status: ConditionStatus) -> Condition {
    Condition { kind: READY.into(), status, ..Condition::default() }
}

/// Returns the plan of an action, if the kubelets of nodes that are not Ready end no pods.
fn plan(fixture: &PlanFixture, action: Action) -> Plan {
    let down = fixture.cluster.nodes().iter().filter(|node| !node.is_ready()).map(|node| node.name.clone());
    let environment = FixedEnvironment { down: down.collect(), ..fixture.environment.clone() };
    Plan::new(action, &fixture.cluster, &environment, fixture.version, NOW)
        .expect("everything named is there")
}

fn mark(fixture: &PlanFixture, words: &str) -> Plan {
    let edits = TaintEdits::parse([words], false).expect("a taint");
    plan(fixture, Action::Taint { nodes: vec!["n1".into()], edits })
}

fn delete(fixture: &PlanFixture, grace: Option<Span>) -> Plan {
    let pods = vec![Key::new("default", "db-0")];
    plan(fixture, Action::Delete { pods, options: RemovalOptions { grace, ..RemovalOptions::default() } })
}
