//! The forecast, its lanes and its time axis.

use kordon::{
    app::Pane,
    k8s::feed::{FeedKind, FeedState},
    model::Predictions,
    ui::snapshot,
};
use kordon_core::{cluster::ConditionStatus, forecast::LaneFold};
use kordon_time::Span;

use super::{drawn, expect};
use crate::dashboard_fixture::{DashboardFixture, set_condition};

#[test]
fn the_forecast_stands_on_a_time_axis() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("4");
    expect(&mut fixture, "forecast", (120, 40));
    fixture.press("jz");
    expect(&mut fixture, "forecast", (80, 24));
    fixture.press("d");
    assert_eq!(fixture.app.screen.focus, Pane::Detail);
    let mut fixture = DashboardFixture::well();
    fixture.press("4");
    expect(&mut fixture, "forecast-well", (120, 40));
}

#[test]
fn the_selected_lane_stays_on_its_node_while_others_come_and_now_moves() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("4");
    drawn(&mut fixture, (160, 48));
    fixture.press("jj");
    let selected =
        |fixture: &DashboardFixture| fixture.app.screen.forecast.selected().map(|lane| lane.nodes.clone());
    let before = selected(&fixture);
    let lanes = fixture.app.screen.forecast.lanes.len();
    fixture.silence("pool-b-04");
    fixture.run(100);
    drawn(&mut fixture, (160, 48));
    assert_eq!(fixture.app.screen.forecast.lanes.len(), lanes + 1);
    assert_eq!(selected(&fixture), before);
    drawn(&mut fixture, (80, 24));
    let zone = fixture.app.screen.forecast.selected().expect("the lane of its zone");
    assert!(zone.nodes.len() > 1 && before.iter().flatten().all(|node| zone.nodes.contains(node)));
    drawn(&mut fixture, (160, 48));
    fixture.press("<Enter>");
    let node = before.and_then(|nodes| nodes.first().cloned());
    assert_eq!((fixture.app.screen.focus, fixture.app.screen.pods_of.clone()), (Pane::Pods, node));
}

#[test]
fn a_lane_of_a_zone_leads_to_its_nodes() {
    let mut fixture = DashboardFixture::well();
    for number in 1..=10 {
        fixture.silence(&format!("pool-b-{number:02}"));
        fixture.run(12);
    }
    fixture.press("4");
    drawn(&mut fixture, (120, 30));
    let lanes = &fixture.app.screen.forecast.lanes;
    assert!(lanes.len() < 10 && lanes[0].fold == LaneFold::Zone, "{lanes:?}");
    fixture.press("d");
    assert!(fixture.app.screen.message.is_some(), "no single node to explain");
    fixture.press("<Enter>");
    assert_eq!(
        (fixture.app.screen.focus, fixture.app.screen.filter(Pane::Nodes).text()),
        (Pane::Nodes, "zone:eu-1/b")
    );
}

#[test]
fn the_forecast_says_nothing_before_it_is_worked_out() {
    let mut fixture = DashboardFixture::incident();
    fixture.app.model.predictions = Predictions::new(Span::from_secs(5));
    fixture.press("4z");
    let screen = snapshot::plain(&drawn(&mut fixture, (160, 48)));
    assert!(screen.contains("working out the forecast"), "{screen}");
}

#[test]
fn the_forecast_calls_nothing_healthy_that_the_verdict_does_not() {
    let said = |fixture: &mut DashboardFixture| {
        fixture.press("4z");
        snapshot::plain(&drawn(fixture, (160, 48)))
    };
    let mut fixture = DashboardFixture::well();
    let now = fixture.now;
    fixture.change_node("pool-a-01", |node| {
        set_condition(node, "MemoryPressure", ConditionStatus::True, now);
    });
    fixture.run(1);
    let screen = said(&mut fixture);
    let text = "evictions by the kubelet of pool-a-01 not known: no measurements";
    assert!(screen.contains(text) && !screen.contains("nodes healthy"), "{screen}");
    fixture.press("3");
    let screen = snapshot::plain(&drawn(&mut fixture, (160, 48)));
    assert!(screen.contains(text) && !screen.contains("none expected"), "{screen}");
    let mut fixture = DashboardFixture::well();
    fixture.health(FeedKind::Pods, FeedState::Forbidden { error: "no".into() });
    fixture.run(1);
    let screen = said(&mut fixture);
    let text = "evictions unknown: pods cannot be listed (missing permission: list pods)";
    assert!(screen.contains(text) && !screen.contains("nodes healthy"), "{screen}");
}
