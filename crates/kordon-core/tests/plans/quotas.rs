//! ResourceQuotas refuse replacements while they still count the old pods, and plans say so.

use std::sync::Arc;

use kordon_core::{
    cluster::{ConditionStatus, WorkloadKind},
    plan::{Action, DrainOptions, PlanEvent, PlanPart, PodPlan, TaintEdits, TypicalEnvironment, Warning},
};
use kordon_time::Span;

use crate::plan_fixture::{NOW, PlanFixture, at, of, own, taint};

/// Two pods of a ReplicaSet on `n0` that end after 30 s, in a namespace with a quota of `hard` pods.
fn fixture(hard: i64, used: i64) -> PlanFixture {
    let mut fixture = PlanFixture::new(&["n0", "n1"]);
    fixture.replica_set("web", 2, &["n0", "n0"]).quota("team-a", &[("pods", hard, used)], &[]);
    fixture.sync();
    fixture
}

fn created(plan: &kordon_core::plan::Plan, pod: &str) -> Vec<i64> {
    let replaced = plan
        .timeline
        .iter()
        .filter(|moment| matches!(&moment.event, PlanEvent::Replaced { of, .. } if *of.name == *pod));
    replaced.filter_map(|moment| at(Some(moment.at))).collect()
}

#[test]
fn a_full_quota_refuses_the_replacement_until_the_old_pod_is_gone() {
    let plan = fixture(2, 2).drain(&["n0"], DrainOptions::default());
    let pod = of(&plan, "web-0");
    assert_eq!(at(pod.gone.likely), Some(30));
    // The ReplicaSet retries with a backoff that starts at 5 ms and doubles, so attempts are made 20.5 s and 41 s after
    // the refusal.
    assert_eq!((created(&plan, "web-0"), at(pod.ready_again)), (vec![40], Some(50)));
    assert_eq!(
        pod.quota.as_ref().map(ToString::to_string).as_deref(),
        Some("replacement refused by quota team-a until the old pod is gone (pods 2 of 2 used)")
    );
    assert!(pod.notes().iter().any(|note| note.starts_with("replacement refused by quota team-a")));
    let warning = plan.warnings.iter().find(|warning| matches!(warning, Warning::QuotaExceeded { .. }));
    assert_eq!(
        warning.map(ToString::to_string).as_deref(),
        Some("quota default/team-a: pods 2 of 2 used: 2 replacements are refused until old pods are gone")
    );
    let words: Vec<&str> = plan.timeline.iter().map(|moment| moment.event.columns().1).collect();
    assert_eq!(words.iter().filter(|word| **word == "not replaced").count(), 2, "{words:?}");
}

#[test]
fn what_is_left_of_a_quota_is_used_by_the_first_replacements() {
    let plan = fixture(3, 2).drain(&["n0"], DrainOptions::default());
    let refused = |pod: &PodPlan| pod.quota.is_some();
    assert_eq!(plan.pods.iter().filter(|pod| refused(pod)).count(), 1);
    let plan = fixture(4, 2).drain(&["n0"], DrainOptions::default());
    assert!(!plan.pods.iter().any(refused) && plan.warnings.is_empty());
    assert_eq!(created(&plan, "web-0"), [0]);
}

#[test]
fn requests_and_limits_count_and_other_namespaces_and_scopes_do_not() {
    let refusal = |resource: &str, hard: i64, used: i64, scopes: &[&str]| {
        let mut fixture = PlanFixture::new(&["n0", "n1"]);
        fixture.replica_set("web", 1, &["n0"]).quota("q", &[(resource, hard, used)], scopes);
        fixture.pod("web-0", "n0", |pod| {
            let resources = Arc::make_mut(&mut pod.resources);
            resources.requests.cpu_milli = 500;
            resources.quota.memory_limit_bytes = 1 << 30;
        });
        let plan = fixture.sync().drain(&["n0"], DrainOptions::default());
        of(&plan, "web-0").quota.as_ref().map(kordon_core::plan::QuotaRefusal::numbers)
    };
    assert_eq!(
        refusal("requests.cpu", 1000, 700, &[]).as_deref(),
        Some("requests.cpu 700m of 1 used, needs 500m")
    );
    assert_eq!(refusal("requests.cpu", 1000, 500, &[]), None);
    assert_eq!(
        refusal("limits.memory", 1 << 30, 1 << 30, &[]).as_deref(),
        Some("limits.memory 1Gi of 1Gi used")
    );
    assert_eq!(refusal("requests.memory", 0, 0, &[]), None, "it requests none");
    assert_eq!(refusal("pods", 1, 1, &["BestEffort"]), None);
    assert!(refusal("pods", 1, 1, &["NotBestEffort", "NotTerminating"]).is_some());
}

#[test]
fn a_pod_of_a_stateful_set_no_longer_counts_when_it_is_replaced() {
    let mut fixture = PlanFixture::new(&["n0", "n1"]);
    fixture.owner(WorkloadKind::StatefulSet, "db", 1).quota("q", &[("pods", 1, 1)], &[]);
    fixture.pod("db-0", "n0", |pod| own(pod, WorkloadKind::StatefulSet, "db"));
    let plan = fixture.sync().drain(&["n0"], DrainOptions::default());
    assert_eq!((of(&plan, "db-0").quota.clone(), created(&plan, "db-0")), (None, vec![30]));
}

#[test]
fn a_pod_that_a_dead_kubelet_never_ends_counts_for_twice_its_grace_and_until_the_next_count() {
    let mut fixture = fixture(2, 2);
    fixture.node("n0", |node| {
        let mut conditions = node.conditions.to_vec();
        conditions[0].status = ConditionStatus::Unknown;
        node.conditions = conditions.into();
    });
    let action = Action::Drain { nodes: vec!["n0".into()], options: DrainOptions::default() };
    let environment = TypicalEnvironment { cluster: &fixture.cluster, now: NOW };
    let plan = kordon_core::plan::Plan::new(action, &fixture.cluster, &environment, fixture.version, NOW)
        .expect("it is there");
    let pod = of(&plan, "web-0");
    assert_eq!(pod.gone.likely, None);
    let admitted = at(pod.quota.as_ref().and_then(|refusal| refusal.admitted)).expect("it no longer counts");
    // The expected time until the replacement is admitted: twice the grace period of 30 s, half of the 300 s between
    // two counts of the quota, and the backoff of the ReplicaSet.
    assert!((210..=420).contains(&admitted), "{admitted}");
}

#[test]
fn a_taint_that_evicts_pods_waits_for_quotas_too() {
    let edits = TaintEdits::parse(["away=now:NoExecute"], false).expect("a taint");
    let fixture = fixture(2, 2);
    let plan = fixture.plan(Action::Taint { nodes: vec!["n0".into()], edits });
    assert!(taint("away=now:NoExecute").key == *"away");
    let pod = of(&plan, "web-1");
    assert!(pod.quota.as_ref().is_some_and(|refusal| refusal.admitted > Some(NOW + Span::from_secs(30))));
    assert_eq!(created(&plan, "web-1"), [40]);
    assert!(plan.warnings.iter().any(|warning| warning.word() == "quotaExceeded"));
}

#[test]
fn a_budget_waits_longer_where_a_quota_delays_its_replacements() {
    let ends = |hard: i64| {
        let mut fixture = fixture(hard, 2);
        fixture.budget("web", |budget| budget.min_available = crate::plan_fixture::least(1));
        let plan = fixture.sync().drain(&["n0"], DrainOptions::default());
        at(plan.totals.ends.likely).expect("it completes")
    };
    assert_eq!((ends(10), ends(2)), (45, 85), "the second pod waits for the first replacement");
}

#[test]
fn quotas_that_may_not_be_read_are_not_known_and_not_none() {
    let mut fixture = PlanFixture::new(&["n0", "n1"]);
    fixture.replica_set("web", 2, &["n0", "n0"]);
    fixture.forbid(kordon_core::cluster::FeedKind::Quotas);
    let plan = fixture.sync().drain(&["n0"], DrainOptions::default());
    let gap = plan.gap_of(PlanPart::Quotas).expect("they are not known").to_string();
    assert_eq!(
        gap,
        "whether a ResourceQuota refuses a replacement is unknown: resourcequotas cannot be listed \
         (missing permission: list resourcequotas)"
    );
    // The pod is not replaced, so quotas do not matter.
    let mut fixture = PlanFixture::new(&["n0", "n1"]);
    fixture.pod("alone", "n0", |_| {}).forbid(kordon_core::cluster::FeedKind::Quotas);
    let plan = fixture.sync().drain(&["n0"], DrainOptions { force: true, ..DrainOptions::default() });
    assert!(plan.gap_of(PlanPart::Quotas).is_none());
}
