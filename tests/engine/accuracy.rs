//! How right the forecasts have been: by a shadow of a controller that acts as it must, and of one that does not.

use kordon::{
    cluster::{ConditionStatus, NodeName},
    engine::{Origin, ServerVersion, Settings},
    forecast::{Accuracy, EventKind, accuracy::EventCounts},
    time::Span,
};

use crate::sim::Sim;

fn settings() -> Settings {
    Settings::defaults(ServerVersion::new(1, 36))
}

/// Twelve nodes in three zones, with two pods each that tolerate a failure for 10 s, a controller with these settings,
/// and a shadow that assumes the defaults.
fn watched(controller: Settings) -> Sim {
    let mut sim = Sim::new();
    for number in 0..12 {
        let node = format!("n{number:02}");
        sim.add_node(&node, ["a", "b", "c"][number % 3], Span::from_millis(700 * number as i64));
        sim.add_pod(&format!("p{number:02}"), &node, Some(10));
        sim.add_pod(&format!("q{number:02}"), &node, Some(10));
    }
    sim.start_controller(controller, Span::from_millis(300));
    sim.run(Span::from_secs(60));
    sim.attach_shadow(settings());
    sim.accuracy = Some(Accuracy::new(settings().node_monitor_period.value));
    sim
}

fn counts(predicted: usize, unforeseeable: usize, missed: usize) -> EventCounts {
    EventCounts { predicted, unforeseeable, missed }
}

#[test]
fn what_a_controller_does_to_silent_nodes_and_their_pods_was_predicted() {
    let mut sim = watched(settings());
    for node in ["n00", "n03", "n01"] {
        sim.silence(node);
    }
    sim.run_with_forecasts(120);
    let report = sim.accuracy.expect("given").report();
    assert_eq!(report.kinds[&EventKind::Unknown], counts(3, 0, 0), "{report:?}");
    assert_eq!(report.kinds[&EventKind::NoExecute], counts(3, 0, 0), "{report:?}");
    assert_eq!(report.kinds[&EventKind::Deletion], counts(6, 0, 0), "{report:?}");
    assert_eq!(report.total(), counts(12, 0, 0));
    assert!(report.worst.is_some_and(|worst| worst <= Span::from_secs(1)), "{report:?}");
    assert!(report.median <= report.worst && report.misses.is_empty());
}

#[test]
fn what_a_kubelet_posts_could_not_be_known_before() {
    let mut sim = watched(settings());
    sim.run_with_forecasts(20);
    sim.post("n00", ConditionStatus::False);
    sim.run_with_forecasts(30);
    let report = sim.accuracy.expect("given").report();
    assert_eq!(report.kinds[&EventKind::NoExecute], counts(0, 1, 0), "{report:?}");
    assert_eq!(report.kinds[&EventKind::Deletion], counts(2, 0, 0), "{report:?}");
}

/// The controller's grace period is 30 s, and the shadow assumes 50 s.
#[test]
fn a_controller_with_other_settings_is_missed_by_name() {
    let mut other = settings();
    other.set("node-monitor-grace-period", "30s", Origin::Override).expect("valid");
    let mut sim = watched(other);
    sim.silence("n04");
    sim.run_with_forecasts(60);
    let report = sim.accuracy.expect("given").report();
    assert_eq!(report.kinds[&EventKind::Unknown], counts(0, 0, 1), "{report:?}");
    let miss = &report.misses[0];
    assert_eq!((miss.kind, &miss.node), (EventKind::Unknown, &NodeName::from("n04")));
    assert!(miss.off.is_some_and(|off| off > Span::from_secs(10)), "{miss}");
    assert!(
        miss.to_string().starts_with("Unknown of n04: ")
            && miss.to_string().ends_with(" earlier than predicted")
    );
}

#[test]
fn nothing_is_compared_with_forecasts_from_before_an_outage() {
    let mut sim = watched(settings());
    sim.silence("n00");
    sim.run_with_forecasts(40);
    sim.accuracy.as_mut().expect("given").restart();
    sim.run(Span::from_secs(30));
    assert_eq!(sim.accuracy.expect("given").report().total(), counts(0, 0, 0));
}
