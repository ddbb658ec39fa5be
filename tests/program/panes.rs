//! Panes are resized and moved by keys and by the mouse, and kept in the configuration.

use std::{collections::BTreeMap, fs};

use kordon::{
    app::{Pane, PaneLayout},
    ui::layout::{ExtraLines, ScreenLayout},
};
use ratatui::layout::{Position, Rect};

use crate::{
    common::{program::Shell, terminal::Terminal},
    dashboard_fixture::DashboardFixture,
    screens::terminal_of,
};

const SIZE: (u16, u16) = (160, 48);

/// Draws the fixture, and returns the area of each pane that is shown.
fn areas(fixture: &mut DashboardFixture, size: (u16, u16)) -> BTreeMap<Pane, Rect> {
    terminal_of(fixture, size);
    let area = Rect::new(0, 0, size.0, size.1);
    let zones = fixture.app.shown().views.zones.len();
    let layout = ScreenLayout::new(area, &fixture.app.screen, zones, ExtraLines::default());
    let slots = layout.expect("large enough").slots;
    slots.into_iter().map(|slot| (slot.active, slot.area)).collect()
}

fn message(fixture: &DashboardFixture) -> String {
    fixture.app.screen.message.clone().unwrap_or_default()
}

#[test]
fn keys_resize_the_focused_pane_and_one_key_resets_all() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("3");
    let before = areas(&mut fixture, SIZE);
    fixture.press("<ctrl-up>");
    assert_eq!(message(&fixture), "= resets the panes; :save-layout keeps them");
    let higher = areas(&mut fixture, SIZE);
    assert_eq!(higher[&Pane::Evictions].height, before[&Pane::Evictions].height + 2);
    assert_eq!(higher[&Pane::Nodes].height, before[&Pane::Nodes].height - 2);
    assert_eq!(higher[&Pane::Zones], before[&Pane::Zones]);
    fixture.press("<ctrl-right>");
    let wider = areas(&mut fixture, SIZE);
    assert_eq!(wider[&Pane::Evictions].width, before[&Pane::Evictions].width + 5);
    fixture.press("2<ctrl-up>");
    assert_eq!(areas(&mut fixture, SIZE)[&Pane::Nodes], before[&Pane::Nodes], "the nodes get them back");
    fixture.press("1<ctrl-up>");
    assert_eq!(areas(&mut fixture, SIZE)[&Pane::Zones].height, before[&Pane::Zones].height + 2);
    fixture.press("=");
    assert_eq!(areas(&mut fixture, SIZE), before);
    fixture.press("=");
    assert_eq!(message(&fixture), "= does nothing here: ? shows what does");
}

#[test]
fn no_pane_disappears_however_often_a_key_resizes() {
    for keys in ["3<ctrl-up>", "3<ctrl-down>", "3<ctrl-left>", "3<ctrl-right>", "1<ctrl-up>", "1<ctrl-down>"]
    {
        let mut fixture = DashboardFixture::incident();
        for _ in 0..60 {
            areas(&mut fixture, SIZE);
            fixture.press(keys);
        }
        assert_eq!(message(&fixture), "the border cannot be moved further that way", "{keys}");
        for (pane, area) in areas(&mut fixture, SIZE) {
            assert!(area.height >= 4 && area.width >= 20, "{keys}: {pane:?} {area}");
        }
    }
}

#[test]
fn a_detail_beside_the_nodes_is_made_wider() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("2d");
    let before = areas(&mut fixture, SIZE);
    fixture.press("<ctrl-right>");
    let after = areas(&mut fixture, SIZE);
    assert_eq!(after[&Pane::Detail].width, before[&Pane::Detail].width + 5);
    assert_eq!(after[&Pane::Nodes].width, before[&Pane::Nodes].width - 5);
}

#[test]
fn a_pane_is_moved_to_another_column_and_above_the_nodes() {
    let mut fixture = DashboardFixture::incident();
    let places = |fixture: &mut DashboardFixture| {
        let areas = areas(fixture, SIZE);
        (areas.get(&Pane::Journal).copied(), areas.get(&Pane::Evictions).copied(), areas[&Pane::Nodes])
    };
    fixture.press("3");
    let (_, left, _) = places(&mut fixture);
    fixture.press("5<alt-up>");
    let (journal, ..) = places(&mut fixture);
    assert_eq!(journal, left, "it is a tab of the left column, and shown there");
    fixture.press("<alt-up>");
    let (journal, _, nodes) = places(&mut fixture);
    assert!(journal.expect("shown").bottom() == nodes.y, "it is above the nodes");
    fixture.press("<alt-up>");
    assert_eq!(message(&fixture), "this pane is at the edge already");
    fixture.press("<alt-down>");
    areas(&mut fixture, SIZE);
    fixture.press("<alt-down>");
    let (journal, ..) = places(&mut fixture);
    assert_eq!(journal.map(|area| area.x), left.map(|area| area.right()), "the right column");
    fixture.press("2<alt-down>");
    assert_eq!(message(&fixture), "the pane in the middle stays there");
}

#[test]
fn borders_are_dragged_with_the_mouse() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("3");
    let before = areas(&mut fixture, SIZE);
    let (evictions, now) = (before[&Pane::Evictions], fixture.now);
    let at = |x: u16, y: u16| Position::new(x, y);
    // This position is on the line of the pane's title, between the title and the notes.
    let rule = at(evictions.x + evictions.width - 2, evictions.y);
    fixture.app.on_drag(at(5, 5));
    assert_eq!(areas(&mut fixture, SIZE), before, "nothing was clicked");
    fixture.app.on_click(rule, now, now);
    assert_eq!(areas(&mut fixture, SIZE), before, "a click moves nothing");
    fixture.app.on_drag(at(rule.x, rule.y - 4));
    assert_eq!(areas(&mut fixture, SIZE)[&Pane::Evictions].y, evictions.y - 4);
    fixture.app.on_release();
    fixture.app.on_drag(rule);
    assert_eq!(areas(&mut fixture, SIZE)[&Pane::Evictions].y, evictions.y - 4, "the button is up");
    let side = at(evictions.right(), evictions.y + 3);
    fixture.app.on_click(side, now, now);
    fixture.app.on_drag(at(side.x - 20, side.y));
    fixture.app.on_release();
    assert_eq!(areas(&mut fixture, SIZE)[&Pane::Evictions].width, evictions.width - 20);
}

#[test]
fn on_a_small_screen_all_other_panes_stay_tabs_below_the_nodes() {
    let size = (80, 24);
    let mut fixture = DashboardFixture::incident();
    fixture.press("3");
    let before = areas(&mut fixture, size);
    fixture.app.screen.layout = toml::from_str::<PaneLayout>(
        "above = 20\nleft = 1\nplaces = { zones = \"right\", evictions = \"above\", journal = \"left\" }",
    )
    .expect("a layout");
    assert_eq!(areas(&mut fixture, size), before);
    fixture.press("<alt-up>");
    assert_eq!(message(&fixture), "here all panes are tabs: on a larger screen they can be moved");
    fixture.press("<ctrl-up>");
    assert_eq!(areas(&mut fixture, size)[&Pane::Evictions].height, before[&Pane::Evictions].height + 2);
}

#[test]
fn the_layout_is_kept_in_the_configuration_and_shown_at_the_next_start() {
    // Without evictions, the Evictions pane is only a line, which has no border to move.
    const PANE: &str = "╭─[3 Evictions]";
    let shell = Shell::new();
    let file = shell.home.path().join(".config/kordon/config.toml");
    let row = |terminal: &Terminal| {
        terminal.wait(PANE);
        terminal.text().lines().position(|line| line.contains(PANE)).expect("it is shown")
    };
    let mut terminal = Terminal::sized(shell.under_terminal(&["demo"]), 48, 160);
    terminal.wait("control-plane-1a-01");
    terminal.wait(PANE);
    terminal.type_in("3\x1b[1;5A\x1b[1;5A");
    terminal.wait("= resets the panes");
    terminal.type_in(":save-layout\r");
    terminal.wait("the layout is in");
    let kept = row(&terminal);
    terminal.type_in("q");
    assert!(terminal.end().success());
    let text = fs::read_to_string(&file).expect("the file");
    assert!(text.starts_with("\n[layout]\nbelow = "), "{text}");

    let mut terminal = Terminal::sized(shell.under_terminal(&["demo"]), 48, 160);
    terminal.wait("control-plane-1a-01");
    assert_eq!(row(&terminal), kept);
    fs::write(&file, "[layout]\nbelow = 200\n").expect("written");
    terminal.wait("below = \"200\" is not a whole number from 10 to 90");
    fs::write(&file, "[layout]\nplaces = { nodes = \"left\" }\n").expect("written");
    terminal.wait("unknown key \"nodes\"");
    fs::write(&file, "").expect("written");
    terminal.wait("the configuration was read again");
    assert_ne!(row(&terminal), kept, "the usual layout is back");
    terminal.type_in("q");
    assert!(terminal.end().success());
}
