//! What `Y` copies.

use kordon::app::{ChosenColumn, Pane, Reaction, UserAction, chosen_columns, update};

use super::{
    cells::{add_devices, add_gates, add_gpus},
    dashboard_fixture::DashboardFixture,
};

/// Returns what is copied after these keys, and the message in the footer.
fn copied(mut fixture: DashboardFixture, keys: &str) -> (Option<String>, String) {
    fixture.press(keys);
    let reaction = update(&mut fixture.app, UserAction::Copy, fixture.now);
    let text = match reaction {
        Reaction::Copy(text) => Some(text),
        _ => None,
    };
    (text, fixture.app.screen.message.clone().unwrap_or_default())
}

#[test]
fn the_name_of_the_selected_object_is_copied() {
    let (text, message) = copied(DashboardFixture::incident(), "2/pool-b-02<Enter>");
    assert_eq!((text.as_deref(), message.as_str()), (Some("pool-b-02"), "copied node pool-b-02"));
    let (text, _) = copied(DashboardFixture::incident(), "2/pool-b-02<Enter><Enter>");
    assert!(text.is_some_and(|name| name.contains('/')), "a pod with its namespace");
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
        // The forecast is a chart.
        assert_eq!(rows.rows.is_empty(), keys == "4", "{keys}: {rows:?}");
        assert!(rows.heads.is_empty() || rows.rows.iter().all(|row| row.len() <= rows.heads.len()), "{keys}");
    }
}

#[test]
fn the_columns_that_can_be_chosen_are_those_of_the_tables() {
    let mut fixture = DashboardFixture::incident();
    add_gpus(&mut fixture, "pool-b-02", "shop/web-04-h4wzd");
    add_devices(&mut fixture, "pool-b-02", true);
    add_gates(&mut fixture, "shop/web-04-h4wzd", &["example.com/live"]);
    for (keys, pane) in [("2w/pool-b-02<Enter>", Pane::Nodes), ("<Enter>", Pane::Pods)] {
        fixture.press(keys);
        let shown = kordon::ui::shown_rows(&fixture.app, fixture.now).heads;
        let heading = |name: &&'static str| if name.ends_with(" used") { "used" } else { *name };
        let names: Vec<&str> = chosen_columns::names(pane).iter().map(heading).collect();
        assert_eq!(shown, names);
    }
}

#[test]
fn chosen_columns_are_shown_in_their_order_with_labels() {
    let mut fixture = DashboardFixture::incident();
    let chosen = ["name", "label:topology.kubernetes.io/zone", "age", "state"];
    let chosen = chosen.map(|text| ChosenColumn::parse(Pane::Nodes, text).expect("a column"));
    fixture.app.preferences.columns.insert(Pane::Nodes, chosen.to_vec());
    fixture.press("2/pool-b-02<Enter>");
    let rows = kordon::ui::shown_rows(&fixture.app, fixture.now);
    assert_eq!(rows.heads, ["node", "zone", "age", "state"]);
    assert!(rows.rows[0][0].contains("pool-b-02") && rows.rows[0][1] == "b", "{rows:?}");
    assert!(rows.rows[0][3].starts_with("Evicting"), "{rows:?}");
}
