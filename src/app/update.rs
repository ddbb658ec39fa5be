//! What the user's actions do to the screen.

use tui_input::{Input, InputRequest};

use super::{
    App, Knowledge,
    commands::Action,
    detail::{Detail, Subject},
    filter::Filter,
    listing::Step,
    order::zone_word,
    screen::Pane,
};
use crate::{cluster::NodeName, time::Timestamp};

/// What an action asks of the loop.
#[derive(Debug)]
pub enum Request {
    /// Draw.
    Draw,
    /// Draw, and let go of what was frozen where nobody has to wait for it: that may be another 150,000 pods.
    Thaw(Box<Knowledge>),
    /// Draw everything anew, whatever the terminal seems to show.
    Repaint,
    Suspend,
    Quit,
}

/// Does what the user asked for.
pub fn update(app: &mut App, action: Action, now: Timestamp) -> Request {
    match action {
        Action::Quit => return Request::Quit,
        Action::Suspend => return Request::Suspend,
        Action::Redraw => return Request::Repaint,
        Action::Move(step) => move_by(app, step),
        Action::Focus(digit) => focus(app, digit),
        Action::NextPane => turn(app, 1),
        Action::PreviousPane => turn(app, -1),
        Action::Zoom => app.screen.zoomed = !app.screen.zoomed,
        Action::NextSort => app.screen.next_sort(),
        Action::FlipSort => app.screen.flip_sort(),
        Action::Filter => begin_filter(app),
        Action::Edit(request) => edit_filter(app, request),
        Action::KeepFilter => app.screen.input = None,
        Action::DropFilter => drop_filter(app),
        Action::Enter => enter(app),
        Action::Detail => open_detail(app),
        Action::Back => back(app),
        Action::Wide => app.screen.wide = !app.screen.wide,
        Action::Freeze => {
            let before = freeze(app, now);
            app.arrange(now);
            return before.map_or(Request::Draw, Request::Thaw);
        }
        Action::Theme => app.screen.next_theme(),
        Action::Help => app.screen.help = if app.screen.help.is_some() { None } else { Some(0) },
    }
    app.arrange(now);
    Request::Draw
}

fn move_by(app: &mut App, step: Step) {
    let Some(scrolled) = &mut app.screen.help else { return app.screen.step(step) };
    *scrolled = match step {
        Step::Up => scrolled.saturating_sub(1),
        Step::Down => *scrolled + 1,
        Step::PageUp => scrolled.saturating_sub(10),
        Step::PageDown => *scrolled + 10,
        Step::First => 0,
        Step::Last => super::commands::COMMANDS.len(),
    }
    .min(super::commands::COMMANDS.len());
}

fn focus(app: &mut App, digit: usize) {
    if let Some(pane) = digit.checked_sub(1).and_then(|place| app.screen.panes().get(place).copied()) {
        app.screen.focus_on(pane);
    }
}

/// Goes on by so many panes.
fn turn(app: &mut App, by: isize) {
    let panes = app.screen.panes();
    let place = panes.iter().position(|pane| *pane == app.screen.focus).unwrap_or(0);
    let next = place.wrapping_add_signed(by).wrapping_add(panes.len()) % panes.len();
    app.screen.focus_on(panes[next]);
}

fn begin_filter(app: &mut App) {
    app.screen.help = None;
    app.screen.input = Some(Input::new(app.screen.filter(app.screen.focus).text().into()));
}

fn edit_filter(app: &mut App, request: InputRequest) {
    let Some(input) = &mut app.screen.input else { return };
    input.handle(request);
    let filter = Filter::parse(input.value());
    app.screen.filters.insert(app.screen.focus, filter);
}

fn drop_filter(app: &mut App) {
    app.screen.input = None;
    app.screen.filters.remove(&app.screen.focus);
}

fn enter(app: &mut App) {
    match app.screen.focus {
        Pane::Zones => {
            let Some(zone) = app.screen.zones.list.selected() else { return };
            let filter = format!("zone:{}", zone_word(zone));
            (app.screen.inside, app.screen.detail) = (None, None);
            app.screen.filters.insert(Pane::Nodes, Filter::parse(&filter));
            app.screen.focus = Pane::Nodes;
        }
        Pane::Nodes => {
            if let Some(node) = app.screen.nodes.list.selected().cloned() {
                go_inside(app, node);
            }
        }
        Pane::Evictions => {
            let pod = app.screen.evictions.list.selected().cloned();
            let Some(pod) = pod else { return };
            let Some(node) = app.shown().views.evictions.get(&pod).map(|row| row.node.clone()) else {
                return;
            };
            app.screen.nodes.list.select(&node);
            go_inside(app, node);
            let now = app.shown().views.taken;
            app.arrange(now);
            app.screen.pods.list.select(&pod);
        }
        Pane::Forecast => {
            let row = app.screen.forecast.row(app.screen.forecast.list.place());
            let Some(node) = row.map(|row| row.node.clone()) else { return };
            app.screen.nodes.list.select(&node);
            go_inside(app, node);
        }
        Pane::Pods | Pane::Detail | Pane::Journal => {}
    }
}

fn open_detail(app: &mut App) {
    let screen = &mut app.screen;
    let subject = match screen.focus {
        Pane::Nodes => screen.nodes.list.selected().cloned().map(Subject::Node),
        Pane::Pods => screen.pods.list.selected().cloned().map(Subject::Pod),
        Pane::Evictions => screen.evictions.list.selected().cloned().map(Subject::Pod),
        Pane::Forecast => {
            let row = screen.forecast.row(screen.forecast.list.place());
            row.map(|row| Subject::Node(row.node.clone()))
        }
        Pane::Zones | Pane::Detail | Pane::Journal => None,
    };
    if let Some(subject) = subject {
        screen.detail = Some(Detail::new(subject, screen.focus));
        screen.filters.remove(&Pane::Detail);
        screen.focus = Pane::Detail;
    }
}

fn go_inside(app: &mut App, node: NodeName) {
    app.screen.inside = Some(node);
    app.screen.detail = None;
    app.screen.focus = Pane::Pods;
    app.screen.filters.remove(&Pane::Pods);
    app.screen.pods.list.step(Step::First);
}

fn back(app: &mut App) {
    let screen = &mut app.screen;
    if screen.help.is_some() {
        screen.help = None;
    } else if !screen.filter(screen.focus).is_empty() {
        screen.filters.remove(&screen.focus);
    } else if let (Pane::Detail, Some(detail)) = (screen.focus, &screen.detail) {
        screen.focus = detail.from;
        screen.detail = None;
    } else if screen.focus == Pane::Pods {
        screen.inside = None;
        screen.focus = Pane::Nodes;
    } else if screen.zoomed {
        screen.zoomed = false;
    }
}

/// Freezes the screen, or lets it go on; tells what it was frozen at.
fn freeze(app: &mut App, now: Timestamp) -> Option<Box<Knowledge>> {
    let before = app.frozen.take();
    if before.is_none() {
        app.frozen = Some((now, Box::new(app.live.clone())));
    }
    before.map(|(_, knowledge)| knowledge)
}
