//! The Events of the cluster, as a list of the dashboard.

use kordon::{
    app::Pane,
    ui::{shown_rows, snapshot},
};
use kordon_core::cluster::{ClusterEvent, EventObject, EventsOfCluster, ReportedEvent};
use kordon_time::{ClusterTime, Span};

use super::{dashboard_fixture::DashboardFixture, screens::drawn};

fn event(
    fixture: &DashboardFixture,
    about: (&str, &str, &str),
    warns: bool,
    reason: &str,
    ago: i64,
) -> ReportedEvent {
    let at = ClusterTime::new(fixture.now - Span::from_secs(ago));
    let (kind, namespace, name) = about;
    ReportedEvent {
        about: EventObject { kind: kind.into(), namespace: namespace.into(), name: name.into() },
        node: if kind == "Node" { name.into() } else { "".into() },
        event: ClusterEvent {
            is_warning: warns,
            reason: reason.into(),
            message: format!("{reason} of {name}"),
            source: "kubelet".into(),
            count: 2,
            first: Some(at - Span::from_secs(60)),
            last: Some(at),
        },
    }
}

/// Answers the open list with Events about a node, pods and a workload.
pub fn show_events(fixture: &mut DashboardFixture) {
    let web = ("Pod", "shop", "web-04-h4wzd");
    let hostile = "\u{1b}[2Jit broke\n\u{202e}";
    let events = [
        event(fixture, web, true, "BackOff", 30),
        event(fixture, web, true, "BackOff", 20),
        event(fixture, web, false, "Pulled", 5),
        event(fixture, ("Node", "", "pool-b-02"), false, "NodeNotReady", 75),
        event(fixture, ("Pod", "shop", "gone-1"), false, "Killing", 300),
        event(fixture, ("ReplicaSet", "shop", "web"), true, hostile, 100),
    ];
    let events = EventsOfCluster { events: Some(events.into()), ..EventsOfCluster::default() };
    fixture.app.on_cluster_events(events, fixture.now);
}

fn opened() -> DashboardFixture {
    let mut fixture = DashboardFixture::incident();
    fixture.press("2:ev<Enter>");
    show_events(&mut fixture);
    fixture
}

fn column(fixture: &DashboardFixture, head: &str) -> Vec<String> {
    let shown = shown_rows(&fixture.app, fixture.now);
    if shown.rows.is_empty() {
        return Vec::new();
    }
    let place = shown.heads.iter().position(|found| found == head).expect("a column");
    shown.rows.iter().map(|row| row[place].trim().to_owned()).collect()
}

#[test]
fn events_are_listed_newest_first_and_folded_by_object_and_reason() {
    let fixture = opened();
    assert_eq!(fixture.app.screen.focus, Pane::Events);
    let objects = [
        "Pod shop/web-04-h4wzd",
        "Pod shop/web-04-h4wzd",
        "Node pool-b-02",
        "ReplicaSet shop/web",
        "Pod shop/gone-1",
    ];
    assert_eq!(column(&fixture, "object"), objects);
    assert_eq!(column(&fixture, "count"), ["2", "4", "2", "2", "2"], "two Events are one row");
    assert_eq!(column(&fixture, "last"), ["5s", "20s", "1m15s", "1m40s", "5m00s"]);
    assert_eq!(column(&fixture, "type")[..2], ["Normal", "Warning"]);
}

#[test]
fn events_are_sorted_and_filtered_as_other_lists() {
    let mut fixture = opened();
    fixture.press(":sort type<Enter>");
    assert_eq!(column(&fixture, "last"), ["20s", "1m40s", "5s", "1m15s", "5m00s"], "Warnings first");
    fixture.press("S");
    assert_eq!(column(&fixture, "type")[0], "Normal");
    for (filter, rows) in [
        ("type=Warning", 2),
        ("reason=BackOff", 1),
        ("kind:pod ns=shop", 3),
        ("node=pool-b-02", 1),
        ("last<<>1m count>3", 1),
        ("web", 3),
        ("!source:kubelet", 0),
    ] {
        fixture.press(&format!("/<Ctrl-u>{filter}<Enter>"));
        assert_eq!(column(&fixture, "object").len(), rows, "{filter}");
    }
    fixture.press("<Esc>:events type=Warning<Enter>");
    assert_eq!(column(&fixture, "object").len(), 2, "the filter of the command");
}

#[test]
fn enter_on_events_opens_the_detail_of_their_node_or_pod_and_esc_comes_back() {
    let mut fixture = opened();
    fixture.press("jj<Enter>");
    assert_eq!(fixture.app.screen.focus, Pane::Detail);
    assert_eq!(fixture.app.shown_node().as_deref(), Some("pool-b-02"));
    assert!(fixture.app.lists_events(), "the list is still open, below the detail");
    fixture.press("<Esc>");
    assert_eq!((fixture.app.screen.focus, column(&fixture, "object").len()), (Pane::Events, 5));
    let message = |fixture: &DashboardFixture| fixture.app.screen.message.clone().unwrap_or_default();
    fixture.press("j<Enter>");
    assert!(message(&fixture).contains("only nodes and pods have a detail"), "{}", message(&fixture));
    fixture.press("j<Enter>");
    assert!(message(&fixture).contains("Pod shop/gone-1 is gone"), "{}", message(&fixture));
    fixture.press("<Esc>");
    assert_eq!(fixture.app.screen.focus, Pane::Nodes);
    assert!(!fixture.app.lists_events(), "nobody looks, so nothing is read");
}

#[test]
fn events_that_are_not_known_are_said_to_be_so() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("2:events<Enter>");
    let text = |fixture: &mut DashboardFixture| snapshot::plain(&drawn(fixture, (120, 40)));
    assert!(text(&mut fixture).contains("listing Events"));
    let why = "events is forbidden: User \"sre\" cannot list resource \"events\" at the cluster scope";
    let failed = EventsOfCluster { failure: Some(why.into()), ..EventsOfCluster::default() };
    fixture.app.on_cluster_events(failed, fixture.now);
    let screen = text(&mut fixture);
    assert!(
        screen.contains("Events unknown: events is forbidden") && screen.contains("cannot list"),
        "{screen}"
    );
    let none = EventsOfCluster { events: Some([].into()), ..EventsOfCluster::default() };
    fixture.app.on_cluster_events(none, fixture.now);
    assert!(text(&mut fixture).contains("the cluster has no Events"));
    show_events(&mut fixture);
    let broken = EventsOfCluster { failure: Some("connection reset".into()), ..EventsOfCluster::default() };
    fixture.app.on_cluster_events(broken, fixture.now);
    let screen = text(&mut fixture);
    assert!(screen.contains("as before: connection reset") && screen.contains("BackOff"), "{screen}");
    fixture.press("/nothing<Enter>");
    assert!(text(&mut fixture).contains("no Event matches"), "{}", text(&mut fixture));
}

#[test]
fn a_frozen_screen_reads_no_events() {
    let mut fixture = opened();
    assert!(fixture.app.lists_events());
    fixture.press("f");
    assert!(!fixture.app.lists_events());
    assert_eq!(column(&fixture, "object").len(), 5, "what was read stays");
}
