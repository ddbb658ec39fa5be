//! The text that the key `Y` copies.

use std::collections::BTreeSet;

use kordon::{
    app::{ChosenColumn, Pane, Reaction, UserAction, chosen_columns, update},
    model::JournalEntry,
    ui::snapshot,
};
use kordon_core::{
    cluster::{Key, Name},
    engine::{Severity, Why},
};

use super::{
    cells::{add_devices, add_gates, add_gpus, choose},
    dashboard_fixture::DashboardFixture,
    event_list::show_events,
    screens::terminal_of,
};

/// Returns what is copied after these keys, and the message in the footer.
fn copied(mut fixture: DashboardFixture, keys: &str) -> (Option<String>, String) {
    fixture.press(keys);
    let text = copy(&mut fixture);
    (text, fixture.app.screen.message.clone().unwrap_or_default())
}

/// Returns what is copied now.
fn copy(fixture: &mut DashboardFixture) -> Option<String> {
    match update(&mut fixture.app, UserAction::Copy, fixture.now) {
        Reaction::Copy(text) => Some(text),
        _ => None,
    }
}

#[test]
fn the_name_of_the_selected_object_is_copied() {
    let (text, message) = copied(DashboardFixture::incident(), "2/pool-b-02<Enter>");
    assert_eq!((text.as_deref(), message.as_str()), (Some("pool-b-02"), "copied node pool-b-02"));
    let (text, _) = copied(DashboardFixture::incident(), "2/pool-b-02<Enter><Enter>");
    assert!(text.is_some_and(|name| name.contains('/')), "a pod with its namespace");
}

#[test]
fn the_name_of_a_pod_that_is_gone_is_copied() {
    let mut fixture = DashboardFixture::incident();
    fixture.remove_pods_in_every_way();
    fixture.press("7");
    let mut departures = Vec::new();
    for _ in 0..8 {
        departures.push(copy(&mut fixture));
        fixture.press("j");
    }
    let gone = |text: &Option<String>| {
        let (namespace, name) = text.as_deref()?.split_once('/')?;
        Some(fixture.world.pod(&Key::new(namespace, name)).is_none())
    };
    assert!(departures.iter().all(Option::is_some), "{departures:?}");
    assert!(departures.iter().any(|text| gone(text) == Some(true)), "{departures:?}");
    let (text, message) = copied(DashboardFixture::incident(), "5j");
    assert!(text.is_some(), "{message}");
}

#[test]
fn an_entry_without_an_object_is_copied_as_it_is_printed() {
    let mut fixture = DashboardFixture::incident();
    let text = "cannot be written";
    let mut entry = JournalEntry::new(fixture.now, Severity::Warning, "journal", text, Why::default());
    entry.detail = "no space left on device".into();
    fixture.app.model.journal.add(entry);
    let (text, message) = copied(fixture, "5/written<Enter>");
    let expected = "journal cannot be written: no space left on device";
    assert_eq!((text.as_deref(), message.as_str()), (Some(expected), "copied the entry"));
}

#[test]
fn the_command_of_a_plan_is_copied() {
    let (text, message) = copied(DashboardFixture::maintenance(), "2/pool-a-01<Enter>c");
    assert_eq!((text.as_deref(), message.as_str()), (Some("kubectl cordon pool-a-01"), "copied the command"));
}

#[test]
fn where_there_is_nothing_to_copy_the_footer_says_so() {
    let (text, message) = copied(DashboardFixture::well(), "3");
    assert_eq!((text, message.as_str()), (None, "there is nothing to copy here"));
}

#[test]
fn the_rows_of_every_pane_are_taken_as_text() {
    for keys in ["1", "2", "2w", "2G", "3", "4", "5", "6", "7", "2<Enter>", "2d", "2r", "2x"] {
        let mut fixture = DashboardFixture::incident();
        fixture.add_waiting_pods();
        fixture.remove_pods_in_every_way();
        fixture.press(keys);
        let rows = kordon::ui::shown_rows(&fixture.app, fixture.now);
        // Only the pane of the forecast has no rows, because it is a chart.
        assert_eq!(rows.rows.is_empty(), keys == "4", "{keys}: {rows:?}");
        assert!(rows.heads.is_empty() || rows.rows.iter().all(|row| row.len() <= rows.heads.len()), "{keys}");
    }
}

#[test]
fn names_are_taken_without_the_signs_beside_them() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("2M");
    let rows = kordon::ui::shown_rows(&fixture.app, fixture.now);
    let is_node = |row: &Vec<String>| fixture.world.node(&row[0].as_str().into()).is_some();
    assert!(rows.rows.len() == 30 && rows.rows.iter().all(is_node), "{rows:?}");
    let zone = rows.heads.iter().position(|head| head == "zone").expect("a column");
    assert!(rows.rows.iter().all(|row| row[zone].starts_with("eu-1/")), "whole zones: {rows:?}");
    fixture.press("<Enter>");
    let rows = kordon::ui::shown_rows(&fixture.app, fixture.now);
    let is_pod = |row: &Vec<String>| {
        let (namespace, name) = row[0].split_once('/').expect("namespace/name");
        fixture.world.pod(&Key::new(namespace, name)).is_some()
    };
    assert!(!rows.rows.is_empty() && rows.rows.iter().all(is_pod), "{rows:?}");
}

#[test]
fn the_columns_that_can_be_chosen_are_those_of_the_tables() {
    let mut fixture = DashboardFixture::incident();
    add_gpus(&mut fixture, "pool-b-02", "shop/web-04-h4wzd");
    add_devices(&mut fixture, "pool-b-02", true);
    add_gates(&mut fixture, "shop/web-04-h4wzd", &["example.com/live"]);
    fixture.add_waiting_pods();
    fixture.remove_pods_in_every_way();
    let lists = [
        ("2w/pool-b-02<Enter>", Pane::Nodes),
        ("<Enter>", Pane::Pods),
        ("1", Pane::Zones),
        ("3", Pane::Evictions),
        ("6", Pane::Pending),
        ("7", Pane::Departures),
        ("8", Pane::Budgets),
        ("9", Pane::Audit),
        (":events<Enter>", Pane::Events),
    ];
    assert_eq!(lists.map(|(_, pane)| pane).into_iter().collect::<BTreeSet<_>>(), Pane::LISTS.into());
    // The list of budgets is copied from the fixture of a maintenance, because the other fixture has no budgets.
    let mut with_budgets = DashboardFixture::maintenance();
    for (keys, pane) in lists {
        let fixture = if pane == Pane::Budgets { &mut with_budgets } else { &mut fixture };
        fixture.press(keys);
        fixture.run(1);
        if pane == Pane::Events {
            show_events(fixture);
        }
        let shown = kordon::ui::shown_rows(&fixture.app, fixture.now).heads;
        assert_eq!(shown, chosen_columns::names(pane), "{pane:?}");
    }
    fixture.press("<Esc>5");
    assert_eq!(kordon::ui::shown_rows(&fixture.app, fixture.now).heads, ["time", "entry"]);
}

#[test]
fn chosen_columns_are_shown_in_their_order_with_labels() {
    let mut fixture = DashboardFixture::incident();
    choose(&mut fixture, Pane::Nodes, &["name", "label:topology.kubernetes.io/zone", "age", "state"]);
    fixture.press("2/pool-b-02<Enter>");
    let rows = kordon::ui::shown_rows(&fixture.app, fixture.now);
    assert_eq!(rows.heads, ["node", "zone", "age", "state"]);
    assert!(rows.rows[0][0].contains("pool-b-02") && rows.rows[0][1] == "b", "{rows:?}");
    assert!(rows.rows[0][3].starts_with("Evicting"), "{rows:?}");
}

#[test]
fn annotations_of_nodes_and_labels_of_pods_are_columns_of_their_lists() {
    let mut fixture = DashboardFixture::incident();
    let owner = "example.com/owner";
    fixture.change_pod("shop/web-04-h4wzd", |pod| {
        pod.labels = [(Name::from("app"), Name::from("web"))].into();
    });
    fixture.change_node("pool-b-02", |node| {
        node.annotations = Some([(Name::from(owner), Name::from("team-a"))].into());
    });
    choose(&mut fixture, Pane::Nodes, &["name", "annotation:example.com/owner"]);
    choose(&mut fixture, Pane::Evictions, &["label:app", "name", "in"]);
    fixture.press("2/pool-b-02<Enter>");
    let rows = kordon::ui::shown_rows(&fixture.app, fixture.now);
    assert_eq!((rows.heads, rows.rows[0][1].as_str()), (vec!["node".to_owned(), "owner".into()], "team-a"));
    fixture.change_node("pool-b-02", |node| node.annotations = None);
    let rows = kordon::ui::shown_rows(&fixture.app, fixture.now);
    assert_eq!(rows.rows[0][1], "?", "recordings do not have them");
    fixture.press("3");
    let rows = kordon::ui::shown_rows(&fixture.app, fixture.now);
    assert_eq!(rows.heads, ["app", "pod", "in"]);
    let row = rows.rows.iter().find(|row| row[1].starts_with("shop/web-04")).expect("it is evicted");
    assert_eq!(row[0], "web");
}

#[test]
fn a_column_has_its_configured_width_beside_the_usual_ones() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("2z");
    let heading = |fixture: &mut DashboardFixture| {
        let screen = snapshot::plain(terminal_of(fixture, (160, 48)).backend().buffer());
        screen.lines().find(|line| line.contains("heartbeat")).expect("a heading").to_owned()
    };
    let columns = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let usual = heading(&mut fixture);
    let column = ChosenColumn::parse(Pane::Nodes, "name").expect("a column");
    fixture.app.preferences.columns.entry(Pane::Nodes).or_default().widths.insert(column, 12);
    let narrow = heading(&mut fixture);
    assert_eq!(columns(&narrow)[..2], columns(&usual)[..2]);
    let distance = |line: &str| line.find("state").zip(line.find("node")).map(|(state, node)| state - node);
    // The heading begins with two cells for signs, and two cells are between columns.
    assert_eq!(distance(&narrow), Some(12));
    assert_ne!(distance(&usual), Some(12));
}

#[test]
fn what_is_no_column_of_a_list_is_named_with_what_would_be() {
    let fault = |pane, text| ChosenColumn::parse(pane, text).expect_err(text);
    assert_eq!(fault(Pane::Budgets, "rom"), "\"rom\" is not a column: did you mean \"room\"?");
    assert_eq!(fault(Pane::Evictions, "nme"), "\"nme\" is not a column: did you mean \"name\"?");
    let all = "\"colour\" is not a column: there are for, pod, why, what would help, name, label:KEY";
    assert_eq!(fault(Pane::Pending, "colour"), all);
    assert!(fault(Pane::Zones, "label:a").contains("zones have no labels here"));
    assert!(fault(Pane::Pods, "annotation:a").contains("annotations of nodes only"));
    for pane in Pane::LISTS {
        assert!(ChosenColumn::parse(pane, "name").is_ok(), "{pane:?}");
    }
}
