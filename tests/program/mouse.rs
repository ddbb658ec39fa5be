//! The mouse: a click focuses, selects or opens; the wheel moves; no click confirms anything.

use kordon::{
    app::{Movement, Pane, overlays::Overlay, preview::Targets},
    ui::snapshot,
};
use ratatui::{buffer::Buffer, layout::Position};

use super::{
    dashboard_fixture::DashboardFixture,
    screens::{about_to_drain, terminal_of},
};

const SIZE: (u16, u16) = (160, 48);

/// Draws the fixture. Afterwards the fixture knows what is at each position of the mouse.
fn shown(fixture: &mut DashboardFixture) -> Buffer {
    terminal_of(fixture, SIZE).backend().buffer().clone()
}

/// Returns where a text begins on the screen.
fn place(buffer: &Buffer, text: &str) -> Position {
    let screen = snapshot::plain(buffer);
    let found = screen.lines().zip(0..).find_map(|(line, y)| Some((line.find(text)?, y, line)));
    let (byte, y, line) = found.unwrap_or_else(|| panic!("no {text} in\n{screen}"));
    let x = kordon::ui::text::width(&line[..byte]);
    Position::new(u16::try_from(x).expect("a column"), y)
}

fn click(fixture: &mut DashboardFixture, text: &str) {
    let at = place(&shown(fixture), text);
    fixture.app.on_click(at, fixture.now, fixture.now);
}

#[test]
fn a_click_focuses_a_pane_and_selects_a_row_and_a_second_one_opens_it() {
    let mut fixture = DashboardFixture::incident();
    click(&mut fixture, "pool-a-08  ");
    assert_eq!(fixture.app.screen.focus, Pane::Nodes);
    let selected = || fixture.app.screen.nodes.list.selected().map(ToString::to_string);
    assert_eq!(selected().as_deref(), Some("pool-a-08"));
    assert!(fixture.app.screen.pods_of.is_none(), "one click opens nothing");
    click(&mut fixture, "pool-a-08  ");
    assert_eq!(fixture.app.screen.pods_of.as_deref(), Some("pool-a-08"), "the second click opens it");
}

#[test]
fn two_slow_clicks_open_nothing() {
    let mut fixture = DashboardFixture::incident();
    click(&mut fixture, "pool-a-08  ");
    fixture.now += kordon_time::Span::from_secs(2);
    click(&mut fixture, "pool-a-08  ");
    assert!(fixture.app.screen.pods_of.is_none());
}

#[test]
fn esc_goes_back_from_a_plan_to_the_nodes_beside_a_detail() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("2d");
    click(&mut fixture, "pool-a-08");
    fixture.press("c");
    shown(&mut fixture);
    fixture.press("<Esc>");
    assert_eq!(fixture.app.screen.focus, Pane::Nodes);
    fixture.press("r");
    let plan = fixture.app.screen.overlays.plan().expect("a plan");
    assert_eq!(plan.request.targets, Targets::Nodes(vec!["pool-a-08".into()]));
}

#[test]
fn a_click_on_a_tab_shows_its_pane() {
    let mut fixture = DashboardFixture::incident();
    click(&mut fixture, "7 Departures");
    assert_eq!(fixture.app.screen.focus, Pane::Departures);
    click(&mut fixture, "5 Journal");
    assert_eq!(fixture.app.screen.focus, Pane::Journal);
}

#[test]
fn the_wheel_moves_through_the_rows_under_the_pointer() {
    let mut fixture = DashboardFixture::incident();
    let at = place(&shown(&mut fixture), "pool-a-08  ");
    fixture.app.on_wheel(at, Movement::Down, fixture.now);
    assert_eq!((fixture.app.screen.focus, fixture.app.screen.nodes.list.cursor()), (Pane::Nodes, Some(3)));
    fixture.app.on_wheel(at, Movement::Up, fixture.now);
    assert_eq!(fixture.app.screen.nodes.list.cursor(), Some(0));
}

#[test]
fn the_wheel_over_another_pane_moves_its_rows_and_leaves_the_focus() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("2");
    let at = place(&shown(&mut fixture), "eviction rate");
    fixture.app.on_wheel(at, Movement::Down, fixture.now);
    let screen = &fixture.app.screen;
    assert_eq!((screen.focus, screen.nodes.list.cursor()), (Pane::Nodes, Some(0)));
    assert_eq!(screen.zones.list.cursor(), Some(2), "the last of three");
    let heading = place(&shown(&mut fixture), "  nodes");
    fixture.app.on_wheel(Position::new(heading.x + 2, heading.y + 1), Movement::Up, fixture.now);
    let screen = &fixture.app.screen;
    assert_eq!((screen.nodes.list.cursor(), screen.zones.list.cursor()), (Some(0), Some(0)), "over a cell");
}

#[test]
fn a_click_on_a_heading_sorts_by_it_and_a_second_one_reverses() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("2w");
    let sorted = |fixture: &DashboardFixture| {
        let sort = fixture.app.screen.sort(Pane::Nodes).expect("a table");
        (sort.title(), sort.is_reversed())
    };
    let heading = place(&shown(&mut fixture), "heartbeat");
    fixture.app.on_click(heading, fixture.now, fixture.now);
    assert_eq!(sorted(&fixture), ("heartbeat", false));
    shown(&mut fixture);
    fixture.app.on_click(heading, fixture.now, fixture.now);
    assert_eq!(sorted(&fixture), ("heartbeat", true));
    click(&mut fixture, "eviction rate");
    assert_eq!(fixture.app.screen.focus, Pane::Zones);
    assert_eq!(fixture.app.screen.sort(Pane::Zones).map(|sort| sort.title()), Some("rate"));
}

#[test]
fn a_click_on_a_cell_of_the_strip_or_of_a_zone_selects_its_node() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("1z");
    let selected = |fixture: &DashboardFixture| fixture.app.screen.selected_node().map(ToString::to_string);
    let buffer = shown(&mut fixture);
    let strip = place(&buffer, "a ");
    // The first cell of the strip comes after the name of the zone.
    let third = Position::new(strip.x + 2 + 2, strip.y);
    fixture.app.on_click(third, fixture.now, fixture.now);
    assert_eq!(fixture.app.screen.focus, Pane::Nodes);
    assert_eq!(selected(&fixture).as_deref(), Some("pool-a-03"));
    for keys in ["1", "1z"] {
        fixture.press(keys);
        let buffer = shown(&mut fixture);
        let heading = place(&buffer, "  nodes");
        // The zones are in the order of their rows: a cell of the second one is a node of zone b.
        let second = Position::new(heading.x + 2 + 1, heading.y + 2);
        fixture.app.on_click(second, fixture.now, fixture.now);
        assert_eq!(fixture.app.screen.focus, Pane::Nodes, "{keys}");
        assert_eq!(selected(&fixture).as_deref(), Some("pool-b-02"), "{keys}");
    }
}

#[test]
fn a_click_on_a_command_of_the_palette_types_it_and_runs_nothing() {
    let mut fixture = about_to_drain();
    fixture.press(":unc");
    click(&mut fixture, "uncordon [");
    let palette = fixture.app.screen.overlays.palette().expect("it stays open");
    assert_eq!(palette.input.value().trim_end(), "uncordon");
    click(&mut fixture, "2 Plan");
    assert!(fixture.app.screen.overlays.palette().is_some(), "what it covers takes no clicks");
}

#[test]
fn a_question_takes_no_clicks() {
    let mut fixture = about_to_drain();
    fixture.press("A");
    fixture.serve();
    let buffer = shown(&mut fixture);
    assert!(matches!(fixture.app.screen.overlays.top(), Some(Overlay::Question(_))));
    let before = snapshot::plain(&buffer);
    for y in 0..SIZE.1 {
        for x in (0..SIZE.0).step_by(3) {
            fixture.app.on_click(Position::new(x, y), fixture.now, fixture.now);
            fixture.app.on_click(Position::new(x, y), fixture.now, fixture.now);
        }
    }
    assert_eq!(snapshot::plain(&shown(&mut fixture)), before, "clicks change nothing");
    assert!(fixture.app.operations.running().next().is_none());
}
