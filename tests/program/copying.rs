//! What `Y` copies.

use kordon::app::{Reaction, UserAction, update};

use super::dashboard_fixture::DashboardFixture;

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
