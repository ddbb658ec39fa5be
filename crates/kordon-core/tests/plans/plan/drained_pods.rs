//! Which pods a drain evicts, refuses to touch, and waits for.

use std::collections::BTreeSet;

use kordon_core::{
    cluster::{LocalVolume, Name, Phase, Selector, WorkloadKind},
    plan::{
        DrainFlag, DrainOptions, DrainRefusal, FreeEviction, LeaveReason, NotRecreated, Plan, PlanStep,
        Prospect, Skip, Verdict, Warning, warning::PodWarning,
    },
};
use kordon_time::Span;
use serde_json::json;

use super::{drained, leaves, timed};
use crate::plan_fixture::{PlanFixture, at, least, of, own, terminating};

fn refusals(plan: &Plan, pod: &str) -> Vec<DrainRefusal> {
    match &of(plan, pod).verdict {
        Verdict::Refused { refusals, .. } => refusals.clone(),
        _ => Vec::new(),
    }
}

/// Scenario 15: A ReplicaSet's pod without a budget is evicted.
#[test]
fn a_replicated_pod_without_budget_leaves_at_once() {
    let mut fixture = PlanFixture::new(&["n1"]);
    fixture.replica_set("web", 1, &["n1"]);
    let plan = drained(&fixture);
    assert_eq!(of(&plan, "web-0").verdict, Verdict::Leaves(LeaveReason::Free(FreeEviction::NoBudget)));
    assert_eq!((at(of(&plan, "web-0").gone.likely), plan.prospect()), (Some(30), Prospect::Completes));
    let [cordon, evict] = &plan.steps[..] else { panic!("{:?}", plan.steps) };
    assert!(matches!(cordon, PlanStep::Cordon { on: true, .. }));
    let call = evict.call();
    assert_eq!((call.method, call.path.as_str()), ("POST", "/api/v1/namespaces/default/pods/web-0/eviction"));
    assert_eq!(call.body["deleteOptions"], json!({"preconditions": {"uid": "Pod/web-0"}}));
}

fn with_daemonset(there: bool) -> PlanFixture {
    let mut fixture = PlanFixture::new(&["n1", "n2"]);
    fixture.replica_set("web", 1, &["n1"]);
    fixture.pod("ds-1", "n1", |pod| own(pod, WorkloadKind::DaemonSet, "ds"));
    if there {
        fixture.owner(WorkloadKind::DaemonSet, "ds", 0);
    }
    fixture
}

/// Scenario 16: A DaemonSet's pod without `--ignore-daemonsets` refuses the drain, and no pod is touched.
/// Scenario 19: With `--ignore-daemonsets` a DaemonSet's pod stays, with a warning, and the node drains.
#[test]
fn a_daemonset_pod_is_refused_without_the_flag_and_stays_with_it() {
    let fixture = with_daemonset(true);
    let plan = drained(&fixture);
    assert_eq!(refusals(&plan, "ds-1"), [DrainRefusal::DaemonSet]);
    assert_eq!(plan.needs, BTreeSet::from([DrainFlag::IgnoreDaemonsets]));
    assert_eq!(plan.prospect(), Prospect::Refused);
    let ignoring = DrainOptions { ignore_daemonsets: true, ..DrainOptions::default() };
    let plan = fixture.drain(&["n1"], ignoring);
    assert_eq!(of(&plan, "ds-1").verdict, Verdict::Skipped(Skip::DaemonSet));
    assert!(leaves(&plan, "web-0") && plan.prospect() == Prospect::Completes);
    assert_eq!(plan.steps.len(), 2, "the pod that stays is not evicted");
}

/// Scenario 17: A finished pod of a DaemonSet is evicted.
#[test]
fn a_finished_daemonset_pod_is_evicted() {
    let mut fixture = with_daemonset(true);
    fixture.pod("ds-1", "n1", |pod| pod.phase = Phase::Failed);
    assert_eq!(
        of(&drained(&fixture), "ds-1").verdict,
        Verdict::Leaves(LeaveReason::Free(FreeEviction::Finished))
    );
}

/// Scenario 18: A pod whose DaemonSet no longer exists is refused without `--force` and evicted with it.
#[test]
fn a_pod_of_a_daemonset_that_is_gone_needs_force_and_is_lost() {
    let fixture = with_daemonset(false);
    let plan = drained(&fixture);
    assert_eq!(refusals(&plan, "ds-1"), [DrainRefusal::DaemonSetGone]);
    let drain = plan.nodes[0].drain.as_ref().expect("a drain");
    assert_eq!(drain.refusals, ["cannot delete daemonsets.apps \"ds\" not found: default/ds-1"]);
    let plan = fixture.drain(&["n1"], DrainOptions { force: true, ..DrainOptions::default() });
    assert!(leaves(&plan, "ds-1"));
    assert_eq!(of(&plan, "ds-1").lost, Some(NotRecreated::OwnerGone));
}

/// Scenario 20: A DaemonSet's pod that is ignored needs no `--delete-emptydir-data`.
#[test]
fn a_daemonset_pod_that_is_ignored_needs_no_flag_for_its_emptydir() {
    let mut fixture = with_daemonset(true);
    fixture.pod("ds-1", "n1", |pod| pod.storage.add(LocalVolume::EmptyDir));
    let plan = fixture.drain(&["n1"], DrainOptions { ignore_daemonsets: true, ..DrainOptions::default() });
    assert_eq!(of(&plan, "ds-1").verdict, Verdict::Skipped(Skip::DaemonSet));
}

/// Scenario 21: A pod without a controller is refused without `--force`, and evicted with it, with a warning.
#[test]
fn a_pod_without_controller_needs_force_and_is_lost() {
    let mut fixture = PlanFixture::new(&["n1"]);
    fixture.pod("bare", "n1", |_| {});
    let plan = drained(&fixture);
    assert_eq!((refusals(&plan, "bare"), plan.needs.len()), (vec![DrainRefusal::Unmanaged], 1));
    let plan = fixture.drain(&["n1"], DrainOptions { force: true, ..DrainOptions::default() });
    assert!(leaves(&plan, "bare"));
    assert_eq!((of(&plan, "bare").lost, plan.totals.lost), (Some(NotRecreated::NoOwner), 1));
}

/// Scenario 22: A finished pod without a controller and with an emptyDir is evicted without any flag.
#[test]
fn a_finished_pod_needs_no_flag_whatever_it_has() {
    let mut fixture = PlanFixture::new(&["n1"]);
    fixture.pod("done", "n1", |pod| {
        pod.phase = Phase::Succeeded;
        pod.storage.add(LocalVolume::EmptyDir);
    });
    let plan = drained(&fixture);
    assert_eq!(of(&plan, "done").verdict, Verdict::Leaves(LeaveReason::Free(FreeEviction::Finished)));
    assert!(of(&plan, "done").warnings.is_empty() && of(&plan, "done").lost.is_none());
    assert_eq!(at(of(&plan, "done").gone.likely), Some(0), "nothing runs that could need a grace");
}

/// Scenario 23: A ReplicaSet's pod with an emptyDir is refused without `--delete-emptydir-data`; with it the loss
/// of data is a warning (kubectl is silent).
#[test]
fn the_data_of_a_replicated_pod_is_warned_of() {
    let mut fixture = PlanFixture::new(&["n1"]);
    fixture.replica_set("web", 3, &["n1"]).pod("web-0", "n1", |pod| pod.storage.add(LocalVolume::EmptyDir));
    assert_eq!(refusals(&drained(&fixture), "web-0"), [DrainRefusal::EmptyDir]);
    let plan = fixture.drain(&["n1"], DrainOptions { delete_emptydir_data: true, ..DrainOptions::default() });
    assert!(leaves(&plan, "web-0") && of(&plan, "web-0").warnings.contains(&PodWarning::EmptyDirData));
    assert_eq!(plan.totals.data_lost, 1);
}

/// Scenario 24: A mirror pod is skipped, and the node counts as drained while it runs.
#[test]
fn a_static_pod_stays_and_the_node_counts_as_drained() {
    let mut fixture = PlanFixture::new(&["n1"]);
    fixture.pod("etcd-n1", "n1", |pod| pod.mirror = true);
    let plan = drained(&fixture);
    assert_eq!(of(&plan, "etcd-n1").verdict, Verdict::Skipped(Skip::Mirror));
    assert_eq!(plan.prospect(), Prospect::Completes);
}

/// Scenario 25: One refused pod keeps all pods of its node from being evicted.
#[test]
fn one_refusal_keeps_all_pods_of_the_node_and_every_flag_is_named_at_once() {
    let mut fixture = with_daemonset(true);
    fixture.pod("bare", "n1", |pod| pod.storage.add(LocalVolume::EmptyDir));
    let plan = drained(&fixture);
    let drain = plan.nodes[0].drain.as_ref().expect("a drain");
    assert!(drain.refused);
    assert_eq!(drain.remaining, Some(3));
    assert_eq!(refusals(&plan, "bare"), [DrainRefusal::EmptyDir, DrainRefusal::Unmanaged]);
    assert_eq!(
        plan.needs,
        BTreeSet::from([DrainFlag::IgnoreDaemonsets, DrainFlag::DeleteEmptydirData, DrainFlag::Force])
    );
    assert!(leaves(&plan, "web-0"), "what would become of it is reported all the same");
}

/// Scenario 26: A pod whose deletion is overdue for longer than `--skip-wait-for-delete-timeout` is skipped.
#[test]
fn a_pod_whose_deletion_is_long_overdue_is_left_alone() {
    let mut fixture = PlanFixture::new(&["n1"]);
    fixture.replica_set("web", 1, &["n1"]).pod("web-0", "n1", |pod| terminating(pod, -100));
    let verdict = |limit: Option<i64>| {
        let skip_wait_for_delete = limit.map(Span::from_secs);
        let plan = fixture.drain(&["n1"], DrainOptions { skip_wait_for_delete, ..DrainOptions::default() });
        of(&plan, "web-0").verdict.clone()
    };
    assert_eq!(verdict(Some(20)), Verdict::Skipped(Skip::LongTerminating));
    assert_eq!((verdict(Some(120)), verdict(None)), (Verdict::Terminating, Verdict::Terminating));
}

fn held() -> PlanFixture {
    let mut fixture = PlanFixture::new(&["n1"]);
    fixture.replica_set("web", 1, &["n1"]).pod("web-0", "n1", |pod| {
        pod.grace = Span::ZERO;
        terminating(pod, 0);
        pod.finalizers = [Name::from("example.com/hold")].into();
    });
    fixture
}

/// Scenario 27: A drain that waits for a terminating pod with a finalizer times out; the node stays cordoned.
#[test]
fn a_pod_with_a_finalizer_is_waited_for_until_the_timeout() {
    let plan = held().drain(&["n1"], timed(6));
    assert_eq!(at(of(&plan, "web-0").times_out), Some(6));
    assert_eq!((at(plan.totals.ends.likely), plan.prospect()), (Some(6), Prospect::Stalls));
    assert!(of(&plan, "web-0").warnings.contains(&PodWarning::HeldByFinalizer));
    let without_timeout = drained(&held());
    assert_eq!((without_timeout.totals.ends.likely, without_timeout.prospect()), (None, Prospect::Stalls));
}

/// Scenario 28: With `--skip-wait-for-delete-timeout` a drain does not wait for a pod with a finalizer.
#[test]
fn a_pod_with_a_finalizer_is_left_if_requested() {
    let options = DrainOptions { skip_wait_for_delete: Some(Span::from_secs(2)), ..timed(60) };
    let plan = held().drain(&["n1"], options);
    assert_eq!((at(plan.totals.ends.likely), plan.prospect()), (Some(3), Prospect::Completes));
}

/// Scenario 29: When the first of two nodes is blocked, the second is drained, and the first is reported as not
/// drained.
#[test]
fn a_blocked_node_does_not_keep_the_next_one_from_being_drained() {
    let mut fixture = PlanFixture::new(&["n1", "n2", "n3"]);
    fixture.replica_set("web", 2, &["n1", "n3"]).replica_set("api", 1, &["n2"]);
    fixture.budget("web", |budget| budget.min_available = least(2)).sync();
    let plan = fixture.drain(&["n1", "n2"], timed(6));
    assert!(matches!(of(&plan, "web-0").verdict, Verdict::Blocked { .. }));
    assert_eq!(at(of(&plan, "web-0").times_out), Some(10), "retries look at the time only when they try");
    let second = of(&plan, "api-0");
    assert_eq!((at(second.leaves.likely), at(second.times_out)), (Some(10), Some(16)));
    assert_eq!(at(second.gone.likely), Some(40), "nobody takes the eviction back");
    let patient = fixture.drain(&["n1", "n2"], timed(60));
    assert_eq!(at(of(&patient, "api-0").gone.likely), Some(90));
    assert!(patient.warnings.contains(&Warning::DrainIncomplete { node: "n1".into(), pods: 1 }));
}

/// Scenario 31: With `--pod-selector` the other pods stay, and the plan says so (kubectl is silent).
#[test]
fn pods_that_are_not_selected_stay_and_the_plan_says_so() {
    let mut fixture = PlanFixture::new(&["n1"]);
    fixture.replica_set("web", 2, &["n1", "n1"]).replica_set("db", 1, &["n1"]);
    let selector = Selector::parse("app=db").expect("a selector");
    let plan =
        fixture.drain(&["n1"], DrainOptions { pod_selector: Some(selector), ..DrainOptions::default() });
    assert_eq!(of(&plan, "web-0").verdict, Verdict::Skipped(Skip::NotSelected));
    assert!(leaves(&plan, "db-0"));
    assert!(plan.warnings.contains(&Warning::UnselectedRemain { node: "n1".into(), pods: 2 }));
    assert_eq!(plan.command.as_deref(), Some("kubectl drain n1 --pod-selector=app=db"));
}
