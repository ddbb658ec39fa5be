//! Reasons why the API server refuses to evict one pod. The plan of the eviction states the same reasons.

use std::sync::Arc;

use kordon_core::{
    cluster::{
        ClaimedSurge, ConditionStatus, DrainClaim, Key, Owner, OwnerKind, PodUnscheduled, Requirement,
        Selector, SelectorOperator, Taint, WorkloadKind,
    },
    plan::{BlockPattern, BlockedDrain, Verdict, refusal},
};
use kordon_time::{ClusterTime, Span};

use crate::plan_fixture::{NOW, PlanFixture, least, not_ready, taint, uid};

#[test]
fn an_eviction_that_is_allowed_has_no_refusal() {
    let mut fixture = web();
    assert_eq!(of_web(&fixture), None);
    fixture.budget("web", |budget| budget.min_available = least(1)).sync();
    assert_eq!(of_web(&fixture), None);
}

#[test]
fn several_budgets_over_one_pod_are_all_named() {
    let mut fixture = web();
    fixture.budget("web", |budget| budget.min_available = least(1));
    for other in ["also-web", "web-too"] {
        fixture.budget(other, |budget| {
            let values = SelectorOperator::In(vec!["web".into()]);
            let requirements = vec![Requirement { key: "app".into(), operator: values }];
            budget.selector = Some(Selector { requirements });
            budget.max_unavailable = least(1);
        });
    }
    fixture.sync();
    let budgets = ["also-web", "web", "web-too"].map(|name| Key::new("default", name)).to_vec();
    assert_eq!(of_web(&fixture), Some(Verdict::TwoBudgets { budgets }));
}

#[test]
fn a_budget_that_can_never_be_met_says_why() {
    let pattern = |fixture: &PlanFixture| match of_web(fixture) {
        Some(Verdict::Blocked { pattern, .. }) => pattern,
        other => panic!("{other:?}"),
    };
    let can_not_be_met =
        |scaling_helps| BlockPattern::CannotBeMet { needs: 2, max_healthy: 2, scaling_helps };
    let mut fixture = web();
    fixture.budget("web", |budget| budget.min_available = least(2)).sync();
    assert_eq!(pattern(&fixture), can_not_be_met(true));
    fixture.budget("web", |budget| (budget.min_available, budget.max_unavailable) = (None, least(0))).sync();
    assert_eq!(pattern(&fixture), can_not_be_met(false), "more replicas do not help");
    fixture.budget("web", |budget| budget.max_unavailable = None).sync();
    assert_eq!(pattern(&fixture), BlockPattern::NothingGiven);
}

#[test]
fn pods_without_a_controller_are_not_advised_to_be_scaled_up() {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture.pod("web-0", "n1", |pod| pod.labels = [("app".into(), "web".into())].into());
    fixture.budget("web", |budget| budget.min_available = least(1)).sync();
    let verdict = of_web(&fixture).expect("refused");
    assert_eq!(verdict.advice().as_deref(), Some("relax the budget"), "{verdict}");
}

#[test]
fn a_budget_with_a_pod_that_is_not_ready_is_waited_for() {
    let mut fixture = web();
    fixture.budget("web", |budget| budget.min_available = least(1)).pod("web-1", "n2", not_ready).sync();
    let Some(Verdict::Waits { unhealthy, .. }) = of_web(&fixture) else { panic!("{:?}", of_web(&fixture)) };
    assert_eq!(unhealthy, [Key::new("default", "web-1")]);
}

#[test]
fn the_cause_of_a_pending_pod_is_stated_with_the_budget_that_waits_for_it() {
    let mut fixture = web();
    let unscheduled = |message: &str| {
        let reason = "Unschedulable".into();
        Some(Arc::new(PodUnscheduled { reason, message: message.into(), since: None }))
    };
    let no_cpu = unscheduled("0/2 nodes are available: 2 Insufficient cpu.");
    fixture.budget("web", |budget| budget.min_available = least(1)).pod("web-1", "n2", |pod| {
        not_ready(pod);
        (pod.node, pod.unscheduled) = (None, no_cpu);
    });
    fixture.sync();
    let text = of_web(&fixture).expect("refused").to_string();
    assert!(text.ends_with("Pending: default/web-1 (2 Insufficient cpu)"), "{text}");
}

/// Kubernetes 1.37 `registry/core/pod/storage/eviction.go`, `Create`: the eviction of a pod that is not Ready uses up
/// no disruption, if as many other pods are healthy as the budget needs.
#[test]
fn a_pod_that_is_not_ready_needs_one_healthy_pod_less_than_a_ready_one() {
    let mut fixture = web();
    fixture.budget("web", |budget| budget.min_available = least(1)).pod("web-1", "n2", not_ready).sync();
    let needs = |fixture: &PlanFixture| match of_web(fixture) {
        Some(Verdict::Waits { recoveries, .. }) => recoveries,
        other => panic!("{other:?}"),
    };
    assert_eq!(needs(&fixture), 1, "one is Ready and must stay");
    fixture.pod("web-0", "n1", not_ready).sync();
    assert_eq!(needs(&fixture), 1, "none is Ready; the other one has to be");
}

/// Kubernetes 1.37 `pkg/controller/deployment/sync.go`, `scale`: the Deployment scales its ReplicaSet.
#[test]
fn a_pod_that_a_scaled_deployment_still_lacks_is_waited_for() {
    let mut fixture = web();
    fixture.owner(WorkloadKind::Deployment, "web", 3);
    fixture.change_workload(WorkloadKind::ReplicaSet, "web", |replica_set| {
        let kind = OwnerKind::Workload(WorkloadKind::Deployment);
        replica_set.owner = Some(Owner { kind, name: "web".into(), uid: uid("Deployment", "web") });
    });
    fixture.budget("web", |budget| budget.min_available = least(2)).sync();
    let Some(Verdict::Waits { unhealthy, recoveries, .. }) = of_web(&fixture) else {
        panic!("{:?}", of_web(&fixture))
    };
    assert_eq!((unhealthy, recoveries), (vec![], 1));
    fixture.owner(WorkloadKind::Deployment, "web", 2);
    assert!(matches!(of_web(&fixture), Some(Verdict::Blocked { .. })), "{:?}", of_web(&fixture));
}

fn web() -> PlanFixture {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture.replica_set("web", 2, &["n1", "n2"]);
    fixture
}

/// Returns why the eviction of web-0 is refused; `None` if it is allowed. Asserts that the plan of this eviction has
/// the same verdict.
fn of_web(fixture: &PlanFixture) -> Option<Verdict> {
    let pod = fixture.cluster.pod(&Key::new("default", "web-0")).expect("added");
    let refusal = refusal(&fixture.cluster, pod, &fixture.rules(), NOW);
    let planned = fixture.evictions(&["web-0"]).pods.remove(0).verdict;
    match &refusal {
        Some(verdict) => assert_eq!(*verdict, planned),
        None => assert!(matches!(planned, Verdict::Leaves(_)), "{planned:?}"),
    }
    refusal
}

/// A drain by another client: the node is cordoned, and budgets refuse the evictions of the remaining pods.
#[test]
fn a_blocked_drain_names_the_pods_that_have_to_be_ready() {
    let mut fixture = PlanFixture::new(&["n1", "n2", "n3"]);
    fixture.node("n1", |node| {
        let time_added = Some(ClusterTime::new(NOW - Span::from_secs(600)));
        node.unschedulable = true;
        node.taints = [Taint { time_added, ..taint("node.kubernetes.io/unschedulable:NoSchedule") }].into();
    });
    fixture.replica_set("web", 3, &["n1", "n2", "n3"]).budget("web", |budget| {
        budget.max_unavailable = least(1);
    });
    let blocked = |fixture: &PlanFixture| {
        let node = fixture.cluster.node(&"n1".into()).expect("a node");
        BlockedDrain::find(&fixture.cluster, node, None, &fixture.rules(), NOW)
    };
    assert_eq!(blocked(fixture.sync()), None, "one may leave");
    fixture.pod("web-2", "n3", not_ready);
    let drain = blocked(fixture.sync()).expect("it is blocked");
    assert_eq!(drain.unhealthy, [Key::new("default", "web-2")]);
    assert_eq!(drain.advice(), "make default/web-2 Ready");

    fixture.budget("web", |budget| (budget.max_unavailable, budget.min_available) = (None, least(3)));
    let never = blocked(fixture.sync()).expect("it is blocked");
    assert_eq!(never.advice(), "scale up its workload, or relax the budget", "all three have to be healthy");
}

#[test]
fn a_budget_that_never_allows_an_eviction_blocks_a_drain_from_its_start() {
    let mut fixture = PlanFixture::new(&["n1", "n2", "n3"]);
    let claim = |surges: Vec<ClaimedSurge>| DrainClaim {
        operation: "drain-1".parse().expect("an id"),
        renewed: NOW,
        surges,
        ..DrainClaim::default()
    };
    fixture.node("n1", |node| {
        let time_added = Some(ClusterTime::new(NOW - Span::from_secs(1)));
        node.unschedulable = true;
        node.taints = [Taint { time_added, ..taint("node.kubernetes.io/unschedulable:NoSchedule") }].into();
        node.drain_claim = Some(claim(Vec::new()).into());
    });
    fixture.replica_set("web", 3, &["n1", "n2", "n3"]);
    fixture.budget("web", |budget| budget.min_available = least(3));
    let blocked = |fixture: &PlanFixture| {
        let node = fixture.cluster.node(&"n1".into()).expect("a node");
        BlockedDrain::find(&fixture.cluster, node, None, &fixture.rules(), NOW)
    };
    assert_eq!(blocked(fixture.sync()).expect("it is blocked").budgets, [Key::new("default", "web")]);
    fixture.budget("web", |budget| (budget.max_unavailable, budget.min_available) = (least(1), None));
    fixture.pod("web-2", "n3", not_ready);
    assert_eq!(blocked(fixture.sync()), None, "web-2 may become Ready within 30 s");

    fixture.budget("web", |budget| (budget.max_unavailable, budget.min_available) = (None, least(3)));
    let surge = ClaimedSurge { deployment: Key::new("default", "web"), uid: "u".into(), replicas: 3 };
    fixture.node("n1", |node| node.drain_claim = Some(claim(vec![surge]).into()));
    assert_eq!(blocked(fixture.sync()), None, "the drain scales it up");
}

/// Without a known start of its drain, so that time does not decide.
#[test]
fn a_budget_that_refuses_for_now_says_at_once_how_many_pods_it_waits_for() {
    let mut fixture = PlanFixture::new(&["n1", "n2", "n3"]);
    fixture.node("n1", |node| node.unschedulable = true);
    fixture.replica_set("web", 3, &["n1", "n2", "n3"]).budget("web", |budget| {
        budget.max_unavailable = least(1);
    });
    let refusing = |fixture: &PlanFixture| {
        let node = fixture.cluster.node(&"n1".into()).expect("a node");
        BlockedDrain::refusing_now(&fixture.cluster, node, &fixture.rules(), NOW)
    };
    assert!(refusing(fixture.sync()).is_empty(), "one may leave");
    fixture.pod("web-2", "n3", not_ready);
    let web = Key::new("default", "web");
    let verdict = refusing(fixture.sync()).remove(&web);
    assert!(matches!(verdict, Some(Verdict::Waits { recoveries: 1, .. })), "{verdict:?}");

    fixture.pod("web-2", "n3", |pod| {
        pod.ready.as_mut().expect("a condition").status = ConditionStatus::True;
    });
    assert!(refusing(&fixture).is_empty(), "the next sync allows it");

    fixture.budget("web", |budget| (budget.max_unavailable, budget.min_available) = (None, least(3)));
    let verdict = refusing(fixture.sync()).remove(&web);
    assert!(matches!(verdict, Some(Verdict::Blocked { .. })), "{verdict:?}");
}
