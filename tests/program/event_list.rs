//! The Events of the cluster, as a list of the dashboard and as `kordon events`.

use std::sync::Arc;

use kordon::{
    app::Pane,
    ui::{shown_rows, snapshot},
};
use kordon_core::cluster::{ClusterEvent, EventsOfCluster, InvolvedObject, ReportedEvent};
use kordon_demo::api::{ApiOptions, Fault, FaultAnswer};
use kordon_time::{ClusterTime, Span};
use serde_json::{Value, json};

use super::{case_objects::Objects, dashboard_fixture::DashboardFixture, screens::drawn};
use crate::common::{
    harmless::assert_harmless,
    program::{Server, Shell},
};

const CASE: &str = "24-terminating-on-dead-node";

/// Exit code for missing permissions.
const NOT_ALLOWED: i32 = 9;

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
        about: InvolvedObject { kind: kind.into(), namespace: namespace.into(), name: name.into() },
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
    answer(fixture, events.into());
}

/// Answers the open list with other Events, some of them about the same objects.
pub fn show_other_events(fixture: &mut DashboardFixture, chance: &mut fastrand::Rng) {
    let abouts = [
        ("Pod", "shop", "web-04-h4wzd"),
        ("Pod", "shop", "web-05-h4wzd"),
        ("Node", "", "pool-b-02"),
        ("Node", "", "pool-a-01"),
        ("ReplicaSet", "shop", "web"),
    ];
    let reasons = ["BackOff", "Pulled", "NodeNotReady", "Killing"];
    let mut events = Vec::new();
    for about in abouts {
        for reason in reasons {
            if chance.bool() {
                events.push(event(fixture, about, chance.bool(), reason, chance.i64(..300)));
            }
        }
    }
    answer(fixture, events.into());
}

fn answer(fixture: &mut DashboardFixture, events: Arc<[ReportedEvent]>) {
    let events = EventsOfCluster { events: Some(events), ..EventsOfCluster::default() };
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
        ("age<<>1m count>3", 1),
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
    assert!(
        message(&fixture).contains("only nodes, pods and budgets have a detail"),
        "{}",
        message(&fixture)
    );
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

/// Returns Events as `kubectl get events` has them.
pub fn objects() -> Objects {
    let mut objects = Objects::of(CASE);
    let event = |name: &str, about: Value, kind: &str, reason: &str, last: &str| {
        json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"name": name, "namespace": about["namespace"].as_str().unwrap_or("default")},
            "involvedObject": about, "type": kind, "reason": reason, "message": "=1+1 it happened\u{1b}[2J",
            "count": 3, "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": last,
            "source": {"component": "kubelet", "host": "c23-n1"},
        })
    };
    let pod = json!({"kind": "Pod", "namespace": "c23", "name": "db-0"});
    let node = json!({"kind": "Node", "name": "c23-n1"});
    objects.0.extend([
        event("a", pod.clone(), "Normal", "Started", "2026-01-01T00:00:30Z"),
        event("b", pod.clone(), "Warning", "BackOff", "2026-01-01T00:00:10Z"),
        event("c", pod, "Warning", "BackOff", "2026-01-01T00:00:20Z"),
        event("d", node, "Normal", "Rebooted", "2026-01-01T00:00:40Z"),
    ]);
    objects
}

#[tokio::test]
async fn events_of_files_are_listed_in_every_format() {
    let objects = objects();
    let json = objects.answer("events", 0).await;
    assert_eq!(
        (&json["schema"], &json["total"], &json["leftOut"]),
        (&json!("kordon.events/v1"), &json!(3), &json!(0))
    );
    let reasons = |json: &Value| -> Vec<String> {
        let events = json["events"].as_array().expect("events").iter();
        events.map(|event| event["reason"].as_str().expect("a reason").to_owned()).collect()
    };
    assert_eq!(reasons(&json), ["Rebooted", "Started", "BackOff"]);
    let back_off = &json["events"][2];
    assert_eq!((&back_off["count"], &back_off["type"]), (&json!(6), &json!("Warning")));
    assert_eq!((&back_off["namespace"], &back_off["node"]), (&json!("c23"), &json!("c23-n1")));
    assert_eq!(
        (&back_off["last"], &json["events"][0]["namespace"]),
        (&json!("2026-01-01T00:00:20.000Z"), &Value::Null)
    );
    assert_eq!(reasons(&objects.answer("events --sort type", 0).await), ["BackOff", "Rebooted", "Started"]);
    assert_eq!(reasons(&objects.answer("events --filter kind=node", 0).await), ["Rebooted"]);
    assert_eq!(reasons(&objects.answer("events -n c23", 0).await), ["Started", "BackOff"]);
    let shell = Shell::new();
    let file = shell.file("objects.json", &objects.list());
    for format in ["table", "wide", "csv", "md", "yaml"] {
        let printed = shell.run(&["events", "--from", &file, "-o", format]).await.done();
        assert_harmless(&printed);
        assert!(printed.contains("BackOff") && printed.contains("db-0"), "{format}: {printed}");
        assert!(format != "csv" || printed.contains("\"'=1+1"), "no formula: {printed}");
    }
    let empty = shell.run(&["events", "--from", &file, "--filter", "nowhere"]).await.done();
    assert_eq!(empty, "3 Events in all, none matches nowhere\n");
}

#[tokio::test]
async fn events_that_cannot_be_read_are_an_error_that_names_the_right() {
    let shell = Shell::new();
    let file = shell.file("objects.json", &Objects::of(CASE).list());
    let output = shell.run(&["events", "--from", &file]).await;
    assert!(
        output.code == 1 && output.err.contains("the files have no objects of this kind"),
        "{}",
        output.err
    );
    let complete = shell.run(&["events", "--from", &file, "--complete"]).await.done();
    assert_eq!(complete, "no Events\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_right_to_list_events_has_its_exit_code_and_is_named() {
    let server = Server::start(ApiOptions::default()).await;
    server.api.inject(Fault::always(FaultAnswer::Forbidden).on(&[], "events"));
    let shell = Shell::new();
    let output = shell.run(&["events", "--server", &server.url]).await;
    assert_eq!(output.code, NOT_ALLOWED, "{}", output.err);
    assert!(output.err.contains("may not list Events of all namespaces"), "{}", output.err);
    assert!(output.err.contains("permit list of events") && output.out.is_empty(), "{}", output.err);
    server.api.clear_faults();
    shell.run(&["events", "--server", &server.url]).await.done();
}
