//! The pods that wait for a node: the reason, since when, and what would help.

use std::sync::Arc;

use kordon::{
    app::{Pane, screen_part::ScreenPart},
    model::PendingAdvice,
    ui::snapshot,
};
use kordon_core::cluster::{FeedKind, Key, Phase, Requests, WorkloadKind};
use kordon_time::ClusterTime;

use crate::{
    dashboard_fixture::{DashboardFixture, Withheld},
    screens::drawn,
};

/// Returns the names of the pods in the list.
fn listed(fixture: &DashboardFixture) -> Vec<String> {
    fixture.app.screen.pending.list.keys().iter().map(|key| key.name.to_string()).collect()
}

fn advice(fixture: &DashboardFixture, pod: &str) -> Option<PendingAdvice> {
    fixture.app.model.predictions.pending_advice(&Key::new("shop", pod)).cloned()
}

#[test]
fn advice_is_what_the_filters_of_the_scheduler_find() {
    let mut fixture = DashboardFixture::well();
    fixture.add_waiting_pods();
    let Some(PendingAdvice::Unschedulable { cause, help, .. }) = advice(&fixture, "huge-1") else {
        panic!("{:?}", advice(&fixture, "huge-1"));
    };
    assert_eq!(&*cause, "no node has 9 CPU free");
    assert_eq!(help, ["1.9 CPU more on pool-b-01", "a new node with 9 CPU free"]);
    let picky = advice(&fixture, "picky-1").and_then(|advice| advice.first());
    assert_eq!(picky.as_deref(), Some("relax its nodeSelector: fits pool-a-01 and 29 more"));
    assert_eq!(advice(&fixture, "new-1"), Some(PendingAdvice::Fits { node: "pool-a-01".into() }));
}

/// A pod whose victims are still terminating preempts no other pods (kubernetes 1.37.1
/// `pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go`, `PodEligibleToPreemptOthers`).
#[test]
fn a_pod_whose_victims_are_terminating_needs_no_help() {
    let mut fixture = DashboardFixture::well();
    fixture.add_waiting_pods();
    let victim = fixture.app.model.cluster.pods_on(&"pool-a-01".into()).next().expect("a pod").key.clone();
    fixture.change_pod("shop/huge-1", |pod| {
        let requests = Requests { cpu_milli: 7900, ..Requests::default() };
        pod.resources = Arc::new(requests.into());
        pod.priority = 1000;
        pod.nominated = Some("pool-a-01".into());
    });
    fixture.run(1);
    assert!(matches!(advice(&fixture, "huge-1"), Some(PendingAdvice::Preempts { .. })), "nothing ends yet");
    fixture.terminate(&victim.to_string(), &[]);
    fixture.run(1);
    assert!(
        matches!(advice(&fixture, "huge-1"), Some(PendingAdvice::Preempts { .. })),
        "it was only deleted"
    );
    fixture
        .change_pod(&victim.to_string(), |pod| pod.disruption_target = Some("PreemptionByScheduler".into()));
    fixture.run(1);
    let node = "pool-a-01".into();
    assert_eq!(advice(&fixture, "huge-1"), Some(PendingAdvice::Waits { node, victims: vec![victim] }));
}

#[test]
fn a_cordon_that_keeps_a_pod_waiting_is_named() {
    let mut fixture = DashboardFixture::new();
    fixture.add_node("n-1", "a");
    fixture.lists();
    fixture.change_node("n-1", |node| node.unschedulable = true);
    fixture.add_waiting_pods();
    let new = advice(&fixture, "new-1").and_then(|advice| advice.first());
    assert_eq!(new.as_deref(), Some("uncordon n-1"));
}

#[test]
fn a_pod_is_listed_from_its_creation_until_it_has_a_node_those_that_wait_longest_first() {
    let mut fixture = DashboardFixture::well();
    assert!(listed(&fixture).is_empty());
    fixture.add_waiting_pods();
    assert_eq!(listed(&fixture), ["huge-1", "picky-1", "new-1"]);
    fixture.change_pod("shop/picky-1", |pod| pod.node = Some("pool-a-01".into()));
    fixture.terminate("shop/new-1", &[]);
    fixture.run(1);
    assert_eq!(listed(&fixture), ["huge-1"]);
    fixture.change_pod("shop/huge-1", |pod| pod.phase = Phase::Failed);
    fixture.run(1);
    assert!(listed(&fixture).is_empty());
}

#[test]
fn a_small_screen_shows_why_a_pod_waits_and_all_that_would_help() {
    let mut fixture = DashboardFixture::well();
    fixture.add_waiting_pods();
    let (long, created) = ("shop/checkout-7d4b9c8f6d-x2x5k", ClusterTime::new(fixture.now));
    fixture.add_pod(long, "", WorkloadKind::ReplicaSet, Vec::new(), 100, 64);
    fixture.change_pod(long, |pod| {
        (pod.node, pod.phase, pod.ready, pod.created) = (None, Phase::Pending, None, created);
    });
    fixture.run(1);
    fixture.press("6");
    let screen = snapshot::plain(&drawn(&mut fixture, (80, 24)));
    let words = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("1.9 CPU more on pool-b-01; a new node with 9 CPU free"), "{screen}");
    assert!(words.contains("30 Insufficient cpu 1.9 CPU more on pool-b-01"), "{screen}");
    assert!(words.contains("…f6d-x2x5k"), "{screen}");
}

#[test]
fn pods_are_sorted_by_the_columns_and_by_a_click_on_their_headings() {
    let mut fixture = DashboardFixture::well();
    fixture.add_waiting_pods();
    fixture.press("6:sort pod<Enter>");
    fixture.run(1);
    assert_eq!(listed(&fixture), ["huge-1", "new-1", "picky-1"]);
    fixture.press("S");
    fixture.run(1);
    assert_eq!(listed(&fixture), ["picky-1", "new-1", "huge-1"]);
    drawn(&mut fixture, (120, 40));
    let why = ScreenPart::Heading { pane: Pane::Pending, column: "why" };
    let target = fixture.app.screen.targets.iter().find(|target| target.part == why).expect("the heading");
    let at = target.area.as_position();
    fixture.app.on_click(at, fixture.now, fixture.now);
    fixture.run(1);
    assert_eq!(listed(&fixture), ["huge-1", "picky-1", "new-1"]);
}

#[test]
fn without_nodes_or_pods_nothing_is_advised() {
    let mut fixture = DashboardFixture::new();
    fixture.withhold([(FeedKind::Pods, Withheld::Late)]);
    fixture.add_node("n-1", "a");
    fixture.lists();
    fixture.add_pod("shop/web-0", "n-1", WorkloadKind::ReplicaSet, Vec::new(), 100, 64);
    fixture.add_waiting_pods();
    assert!(fixture.app.model.next_pending_job().is_none());
    assert!(!fixture.app.model.pending_gaps().is_empty(), "and the pane says what is missing");
}
