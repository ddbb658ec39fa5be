//! Graceful node shutdown in a forecast: the latest time at which the kubelet ends each pod, and the outcome of the
//! pod.

use kordon_core::{
    cluster::{
        Change, Condition, ConditionStatus, Lease, NodeName, ObjectEvent, READY, ShutdownPeriod,
        ShutdownPeriods, Version, WorkloadKind,
    },
    engine::{Engine, NOT_READY, Settings},
    forecast::{Assumptions, Forecast, ForecastKind, Incident, IncidentKind, Succession},
    placement::Snapshot,
    plan::{OutcomeKind, PlacingEnvironment},
};
use kordon_time::{ClusterTime, Span, Timestamp};

use crate::{
    landing::{asks, replicas, roomy},
    plan_fixture::{NEWEST, NOW, PlanFixture, own, terminating, tolerates},
};

/// Horizon of the forecasts. It is shorter than the grace period of nodes, so that nothing but the shutdown happens.
const HORIZON: Span = Span::from_secs(50);

/// Two nodes whose kubelets renew their Leases. n1 has been shutting down for ten seconds. Its pods: `web-0` of a
/// ReplicaSet, `log` of a DaemonSet, `bare` without a controller, `dns-0` of critical priority, and `old`, whose
/// deletion has already started.
fn shutting_down() -> PlanFixture {
    let mut fixture = roomy(&[("n1", 4), ("n2", 4)]);
    replicas(&mut fixture, "web", &["n1"], 1);
    fixture.owner(WorkloadKind::DaemonSet, "log", 2);
    fixture.pod("log", "n1", |pod| {
        own(pod, WorkloadKind::DaemonSet, "log");
        pod.grace = Span::from_secs(15);
    });
    fixture.pod("bare", "n1", |pod| asks(pod, 1));
    fixture.replica_set("dns", 1, &["n1"]);
    fixture.pod("dns-0", "n1", |pod| (pod.priority, pod.grace) = (2_000_000_000, Span::from_secs(20)));
    fixture.pod("old", "n1", |pod| terminating(pod, 5));
    for name in ["web-0", "log", "bare", "dns-0", "old"] {
        fixture.pod(name, "n1", |pod| tolerates(pod, NOT_READY, Some(300)));
    }
    fixture.node("n1", |node| {
        node.conditions = [Condition {
            kind: READY.into(),
            status: ConditionStatus::False,
            reason: "KubeletNotReady".into(),
            message: "node is shutting down".into(),
            last_transition: Some(ClusterTime::new(NOW - Span::from_secs(10))),
            ..Condition::default()
        }]
        .into();
    });
    for name in ["n1", "n2"] {
        let lease = Lease {
            node: name.into(),
            version: Version(1),
            renewed: Some(ClusterTime::new(NOW)),
            duration: Some(Span::from_secs(40)),
            written: None,
        };
        fixture.cluster.apply(Change::Lease(ObjectEvent::Applied(lease)), &mut Vec::new());
    }
    fixture
}

fn forecast(fixture: &PlanFixture, assumptions: &Assumptions) -> Forecast {
    let settings = Settings::defaults(NEWEST);
    let engine = Engine::start(settings, &fixture.cluster, NOW + Span::from_secs(1), NOW);
    Forecast::under(assumptions, &engine, &fixture.cluster, NOW, HORIZON)
}

/// Returns the pods that the kubelet ends, with the seconds until their ends.
fn ends(forecast: &Forecast) -> Vec<(String, i64)> {
    let ended = forecast.steps.iter().filter_map(|step| match &step.kind {
        ForecastKind::Ended { pod, node } => {
            assert_eq!(*node, NodeName::from("n1"));
            Some((pod.name.to_string(), step.at.since(NOW).as_secs()))
        }
        _ => None,
    });
    ended.collect()
}

fn succession(fixture: &PlanFixture, forecast: &Forecast, assumptions: &Assumptions) -> Succession {
    let snapshot = Snapshot::new(&fixture.cluster, NEWEST);
    let environment = PlacingEnvironment::new(&fixture.cluster, snapshot, NOW);
    forecast.successors(assumptions, &fixture.cluster, environment)
}

/// kubernetes v1.37.1, `pkg/kubelet/nodeshutdown/nodeshutdown_manager.go`, `killPods`: the shutdown began ten seconds
/// ago. The longest grace period of an ordinary pod is 30 s, and the critical pods end after that. A pod that is
/// already being deleted is not among the pods that the shutdown ends.
#[test]
fn ordinary_pods_end_first_and_critical_ones_after_the_last_of_them() {
    let fixture = shutting_down();
    let forecast = forecast(&fixture, &Assumptions::default());
    let expected = [("log", 5), ("bare", 20), ("web-0", 20), ("dns-0", 40)];
    assert_eq!(ends(&forecast), expected.map(|(pod, at)| (pod.to_owned(), at)));
    let why = |pod: &str| {
        let is_its =
            |step: &&kordon_core::forecast::ForecastStep| step.kind.pod().is_some_and(|key| key.name == *pod);
        forecast.steps.iter().find(is_its).expect("it ends").why.to_string()
    };
    assert!(why("web-0").ends_with("its kubelet ends it within 30s"), "{}", why("web-0"));
    assert!(why("dns-0").ends_with("its kubelet ends it within 20s, after all others"), "{}", why("dns-0"));
    assert_eq!(forecast.totals(NOW).ended, 4);
    assert_eq!(forecast.totals(NOW).deleted, 0);
}

/// kubernetes v1.37.1, `pkg/kubelet/nodeshutdown/nodeshutdown_manager.go`: `migrateConfig`, `groupByPriority`,
/// `killPods`. The shutdown began ten seconds ago.
#[test]
fn pods_end_as_their_kubelet_is_configured() {
    let second = Span::from_secs;
    let period = |priority, time| ShutdownPeriod { priority, time: second(time) };
    let by_priority = ShutdownPeriods::by_priority([period(2_000_000_000, 8), period(1_000, 5)]);
    let all = &[("log", 5), ("bare", 10), ("web-0", 10), ("dns-0", 15)][..];
    for (periods, expected) in [
        (ShutdownPeriods::new(second(25), second(5)), all),
        (by_priority, &[("dns-0", 3)]),
        (ShutdownPeriods::default(), &[]),
    ] {
        let mut fixture = shutting_down();
        let change = Change::ShutdownPeriods("n1".into(), Ok(periods.clone()));
        fixture.cluster.apply(change, &mut Vec::new());
        let expected: Vec<(String, i64)> =
            expected.iter().map(|(pod, at)| ((*pod).to_owned(), *at)).collect();
        assert_eq!(ends(&forecast(&fixture, &Assumptions::default())), expected, "{periods:?}");
    }
}

/// A pod that its kubelet has ended is Failed, so its controller replaces it. A DaemonSet replaces it on the same node,
/// whose kubelet rejects the new pod (`NodeShutdownNotAdmittedReason`) until the machine is back.
#[test]
fn ended_pods_are_replaced_elsewhere_and_those_of_daemon_sets_wait_for_the_machine() {
    let fixture = shutting_down();
    let none = Assumptions::default();
    let forecast = forecast(&fixture, &none);
    let succession = succession(&fixture, &forecast, &none);
    let of = |pod: &str| {
        let found = succession.successors.iter().find(|successor| successor.of.name == *pod);
        found.unwrap_or_else(|| panic!("{pod} is not in {:#?}", succession.successors))
    };
    let seconds = |time: Option<Timestamp>| time.map(|time| time.since(NOW).as_secs());
    let web = of("web-0");
    assert_eq!((web.outcome.kind(), web.node().map(|node| &**node)), (OutcomeKind::Moves, Some("n2")));
    assert_eq!((seconds(web.evicted), seconds(web.created)), (Some(20), Some(20)));
    assert_eq!(of("bare").outcome.kind(), OutcomeKind::Lost);
    let log = of("log");
    assert_eq!((log.outcome.kind(), log.ready), (OutcomeKind::SameNode, None), "{log:?}");
}

#[test]
fn a_machine_that_comes_back_or_goes_ends_no_pods_after_that() {
    let fixture = shutting_down();
    for kind in [IncidentKind::Recovers, IncidentKind::Fails, IncidentKind::Removed] {
        let at = NOW + Span::from_secs(10);
        let assumptions = Assumptions { incidents: vec![Incident { at, node: "n1".into(), kind }] };
        assert_eq!(ends(&forecast(&fixture, &assumptions)), [("log".to_owned(), 5)], "{kind:?}");
    }
}

/// If the condition has no transition time, the times at which pods end are unknown.
#[test]
fn a_shutdown_without_a_start_has_no_times() {
    let mut fixture = shutting_down();
    fixture.node("n1", |node| {
        let mut conditions = node.conditions.to_vec();
        conditions.iter_mut().for_each(|condition| condition.last_transition = None);
        node.conditions = conditions.into();
    });
    assert_eq!(ends(&forecast(&fixture, &Assumptions::default())), []);
}
