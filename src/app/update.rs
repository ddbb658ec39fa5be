//! What the user's actions do to the screen.

use std::collections::BTreeSet;

use tui_input::{Input, InputRequest};

use super::{
    App, Model,
    commands::UserAction,
    detail::{Detail, DetailSubject},
    filter::Filter,
    listing::Movement,
    order::zone_word,
    palette::Palette,
    pane::{InputTarget, Pane},
    preview::{PlanKind, PlanOption, PlanRequest, Preview, Targets},
};
use crate::{
    cluster::{Key, NodeName},
    time::Timestamp,
};

/// What an action asks of the loop.
#[derive(Debug)]
pub enum Reaction {
    /// Draw.
    Draw,
    /// Draw, and let go of what was frozen where nobody has to wait for it: that may be another 150,000 pods.
    Thaw(Box<Model>),
    /// Draw everything anew, whatever the terminal seems to show.
    Repaint,
    Suspend,
    Quit,
}

/// Does what the user asked for.
pub fn update(app: &mut App, action: UserAction, now: Timestamp) -> Reaction {
    app.screen.remark = None;
    obey(app, action, now)
}

fn obey(app: &mut App, action: UserAction, now: Timestamp) -> Reaction {
    match action {
        UserAction::Quit => return app.quit(),
        UserAction::Suspend if app.acts.running().next().is_some() => {
            app.screen.remark = Some("not while something is carried out: it would stand still".into());
        }
        UserAction::Suspend => return Reaction::Suspend,
        UserAction::Redraw => return Reaction::Repaint,
        UserAction::Move(step) => move_by(app, step),
        UserAction::Focus(digit) => focus(app, digit),
        UserAction::NextPane => turn(app, 1),
        UserAction::PreviousPane => turn(app, -1),
        UserAction::Zoom => app.screen.zoomed = !app.screen.zoomed,
        UserAction::NextSort => app.screen.next_sort(),
        UserAction::FlipSort => app.screen.flip_sort(),
        UserAction::Filter => begin_filter(app),
        UserAction::Edit(request) => edit(app, request),
        UserAction::KeepFilter => app.screen.input = None,
        UserAction::DropFilter => drop_filter(app),
        UserAction::Enter => enter(app),
        UserAction::Detail => open_detail(app),
        UserAction::Back => back(app),
        UserAction::Wide => app.screen.wide = !app.screen.wide,
        UserAction::Freeze => {
            let before = freeze(app, now);
            app.arrange(now);
            return before.map_or(Reaction::Draw, Reaction::Thaw);
        }
        UserAction::Theme => app.screen.next_theme(),
        UserAction::Mark => mark(app),
        UserAction::MarkAll => mark_all(app),
        UserAction::Plan(verb) => open_plan(app, verb),
        UserAction::Turn(switch) => turn_option(app, switch),
        UserAction::Complete => match &mut app.screen.palette {
            Some(palette) => palette.complete(),
            None => with_preview(app, Preview::complete),
        },
        UserAction::NextCandidate => match &mut app.screen.palette {
            Some(palette) => palette.turn(1),
            None => with_preview(app, Preview::next_candidate),
        },
        UserAction::PreviousCandidate => app.screen.palette.iter_mut().for_each(|palette| palette.turn(-1)),
        UserAction::Palette => {
            app.screen.help = None;
            app.screen.palette = Some(Palette::new(app.screen.focus));
        }
        UserAction::RunPalette => return run_palette(app, now),
        UserAction::DropPalette => app.screen.palette = None,
        UserAction::Typed(typed) => {
            if let Err(fault) = app.heed(typed, "", now) {
                app.screen.remark = Some(fault);
            }
        }
        UserAction::CarryOut => app.carry_out(now),
        UserAction::Consent => {
            let request = app.consent(now);
            if !matches!(request, Reaction::Draw) {
                return request;
            }
        }
        UserAction::Decline => app.decline(),
        UserAction::NextChoice => app.screen.dialog.iter_mut().for_each(|dialog| dialog.next_choice(1)),
        UserAction::Progress => app.open_progress(),
        UserAction::Pause => app.pause(now),
        UserAction::Cancel => app.ask_to_cancel(),
        UserAction::Undo => app.undo(),
        UserAction::Resume => app.resume(now),
        UserAction::Dismiss => app.dismiss(),
        UserAction::KeepWords => with_preview(app, |preview| set_typing(preview, false)),
        UserAction::DropWords => back(app),
        UserAction::Help => app.screen.help = if app.screen.help.is_some() { None } else { Some(0) },
    }
    app.screen.settle_focus();
    app.arrange(now);
    Reaction::Draw
}

fn move_by(app: &mut App, step: Movement) {
    let Some(scrolled) = &mut app.screen.help else { return app.screen.step(step) };
    *scrolled = match step {
        Movement::Up => scrolled.saturating_sub(1),
        Movement::Down => *scrolled + 1,
        Movement::PageUp => scrolled.saturating_sub(10),
        Movement::PageDown => *scrolled + 10,
        Movement::First => 0,
        Movement::Last => super::commands::COMMANDS.len(),
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

fn edit(app: &mut App, request: InputRequest) {
    match app.screen.typing() {
        Some(InputTarget::Filter) => edit_filter(app, request),
        Some(InputTarget::Words) => with_preview(app, |preview| preview.edit(request)),
        Some(InputTarget::Palette) => app.screen.palette.iter_mut().for_each(|palette| palette.edit(request)),
        Some(InputTarget::Consent) => app.screen.dialog.iter_mut().for_each(|dialog| dialog.edit(request)),
        None => {}
    }
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
            app.screen.leave_node();
            app.screen.uncover();
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
        Pane::Plan => with_preview(app, |preview| set_typing(preview, true)),
        Pane::Pods | Pane::Detail | Pane::Progress | Pane::Journal => {}
    }
}

/// Runs what was typed; where that cannot be, the line stays with what is wrong about it.
fn run_palette(app: &mut App, now: Timestamp) -> Reaction {
    let Some(palette) = &mut app.screen.palette else { return Reaction::Draw };
    let (command, argument) = match palette.entered() {
        Ok(entered) => entered,
        Err(fault) => {
            palette.fault = Some(fault);
            return Reaction::Draw;
        }
    };
    let UserAction::Typed(typed) = command.action else {
        app.screen.palette = None;
        return obey(app, command.action, now);
    };
    match (app.heed(typed, &argument, now), &mut app.screen.palette) {
        (Err(fault), Some(palette)) => palette.fault = Some(fault),
        (Ok(()) | Err(_), _) => app.screen.palette = None,
    }
    Reaction::Draw
}

fn open_detail(app: &mut App) {
    let screen = &mut app.screen;
    let subject = match screen.focus {
        Pane::Nodes => screen.nodes.list.selected().cloned().map(DetailSubject::Node),
        Pane::Pods => screen.pods.list.selected().cloned().map(DetailSubject::Pod),
        Pane::Evictions => screen.evictions.list.selected().cloned().map(DetailSubject::Pod),
        Pane::Forecast => {
            let row = screen.forecast.row(screen.forecast.list.place());
            row.map(|row| DetailSubject::Node(row.node.clone()))
        }
        Pane::Plan => {
            let pod = screen.preview.as_ref().and_then(Preview::selected_pod);
            pod.cloned().map(DetailSubject::Pod)
        }
        Pane::Progress => {
            let undertaking =
                screen.progress.as_ref().and_then(|shown| app.acts.undertaking(&shown.operation));
            let shown = screen.progress.as_ref().zip(undertaking);
            let pod = shown.and_then(|(shown, undertaking)| shown.selected_pod(&undertaking.report));
            pod.cloned().map(DetailSubject::Pod)
        }
        Pane::Zones | Pane::Detail | Pane::Journal => None,
    };
    if let Some(subject) = subject {
        if screen.focus != Pane::Plan {
            screen.preview = None;
        }
        if screen.focus != Pane::Progress {
            screen.progress = None;
        }
        screen.detail = Some(Detail::new(subject, screen.focus));
        screen.filters.remove(&Pane::Detail);
        screen.focus = Pane::Detail;
    }
}

fn go_inside(app: &mut App, node: NodeName) {
    let screen = &mut app.screen;
    screen.leave_node();
    screen.inside = Some(node);
    screen.uncover();
    screen.focus = Pane::Pods;
    screen.filters.remove(&Pane::Pods);
    screen.pods.list.step(Movement::First);
}

/// One step back. Of several things that lie over each other, the one on top goes.
fn back(app: &mut App) {
    let screen = &mut app.screen;
    if screen.help.is_some() {
        screen.help = None;
    } else if !screen.filter(screen.focus).is_empty() {
        screen.filters.remove(&screen.focus);
    } else if let (Pane::Detail, Some(detail)) = (screen.focus, &screen.detail) {
        screen.focus = detail.from;
        screen.detail = None;
    } else if let (Pane::Plan, Some(preview)) = (screen.focus, &screen.preview) {
        screen.focus = preview.from;
        screen.preview = None;
    } else if let (Pane::Progress, Some(progress)) = (screen.focus, &screen.progress) {
        screen.focus = progress.from;
        screen.progress = None;
    } else if screen.focus == Pane::Nodes && !screen.marked_nodes.is_empty() {
        screen.marked_nodes.clear();
    } else if screen.focus == Pane::Pods && !screen.marked_pods.is_empty() {
        screen.marked_pods.clear();
    } else if screen.focus == Pane::Pods {
        screen.leave_node();
        screen.focus = Pane::Nodes;
    } else if screen.zoomed {
        screen.zoomed = false;
    }
}

fn mark(app: &mut App) {
    let screen = &mut app.screen;
    match screen.focus {
        Pane::Nodes => {
            if let Some(node) = screen.nodes.list.selected() {
                toggle(&mut screen.marked_nodes, node);
            }
        }
        Pane::Pods => {
            if let Some(pod) = screen.pods.list.selected() {
                toggle(&mut screen.marked_pods, pod);
            }
        }
        Pane::Zones
        | Pane::Detail
        | Pane::Plan
        | Pane::Progress
        | Pane::Evictions
        | Pane::Journal
        | Pane::Forecast => return,
    }
    screen.step(Movement::Down);
}

fn mark_all(app: &mut App) {
    let screen = &mut app.screen;
    match screen.focus {
        Pane::Nodes => toggle_all(&mut screen.marked_nodes, screen.nodes.list.keys()),
        Pane::Pods => toggle_all(&mut screen.marked_pods, screen.pods.list.keys()),
        Pane::Zones
        | Pane::Detail
        | Pane::Plan
        | Pane::Progress
        | Pane::Evictions
        | Pane::Journal
        | Pane::Forecast => {}
    }
}

fn toggle<K: Ord + Clone>(marked: &mut BTreeSet<K>, key: &K) {
    if !marked.remove(key) {
        marked.insert(key.clone());
    }
}

fn toggle_all<K: Ord + Clone>(marked: &mut BTreeSet<K>, shown: &[K]) {
    if shown.iter().all(|key| marked.contains(key)) {
        shown.iter().for_each(|key| {
            marked.remove(key);
        });
    } else {
        marked.extend(shown.iter().cloned());
    }
}

/// Opens a plan for what is meant; does nothing where nothing is.
fn open_plan(app: &mut App, verb: PlanKind) {
    let subjects = match verb {
        PlanKind::Evict | PlanKind::Delete => Targets::Pods(pods_meant(app)),
        PlanKind::Cordon
        | PlanKind::Uncordon
        | PlanKind::Drain
        | PlanKind::Taint
        | PlanKind::Label
        | PlanKind::Failure => Targets::Nodes(nodes_meant(app)),
    };
    let nobody = match &subjects {
        Targets::Nodes(nodes) => nodes.is_empty(),
        Targets::Pods(pods) => pods.is_empty(),
    };
    if nobody {
        return;
    }
    let mut wish = PlanRequest::new(verb, subjects);
    wish.drain = app.screen.drain.clone();
    wish.whole_zones = app.screen.focus == Pane::Zones;
    let preview = Preview::new(wish, app.screen.focus, &app.shown().cluster);
    let screen = &mut app.screen;
    if screen.is_detail_over() {
        screen.detail = None;
    }
    screen.progress = None;
    screen.preview = Some(preview);
    screen.filters.remove(&Pane::Plan);
    screen.focus = Pane::Plan;
}

/// The nodes that a key means where the focus is: those that are marked, or else the selected one.
fn nodes_meant(app: &App) -> Vec<NodeName> {
    let screen = &app.screen;
    match screen.focus {
        Pane::Nodes if !screen.marked_nodes.is_empty() => screen.marked_nodes.iter().cloned().collect(),
        Pane::Nodes => screen.nodes.list.selected().cloned().into_iter().collect(),
        Pane::Pods => screen.inside.clone().into_iter().collect(),
        Pane::Detail => match screen.detail.as_ref().map(|detail| &detail.subject) {
            Some(DetailSubject::Node(node)) => vec![node.clone()],
            Some(DetailSubject::Pod(_)) | None => Vec::new(),
        },
        Pane::Zones => {
            let Some(zone) = screen.zones.list.selected() else { return Vec::new() };
            let nodes = app.shown().cluster.nodes().iter().filter(|node| node.zone() == *zone);
            nodes.map(|node| node.name.clone()).collect()
        }
        Pane::Forecast => {
            let row = screen.forecast.row(screen.forecast.list.place());
            row.map(|row| row.node.clone()).into_iter().collect()
        }
        Pane::Plan | Pane::Progress | Pane::Evictions | Pane::Journal => Vec::new(),
    }
}

/// The pods that a key means there.
fn pods_meant(app: &App) -> Vec<Key> {
    let screen = &app.screen;
    match screen.focus {
        Pane::Pods if !screen.marked_pods.is_empty() => screen.marked_pods.iter().cloned().collect(),
        Pane::Pods => screen.pods.list.selected().cloned().into_iter().collect(),
        Pane::Evictions => screen.evictions.list.selected().cloned().into_iter().collect(),
        Pane::Detail => match screen.detail.as_ref().map(|detail| &detail.subject) {
            Some(DetailSubject::Pod(pod)) => vec![pod.clone()],
            Some(DetailSubject::Node(_)) | None => Vec::new(),
        },
        Pane::Zones | Pane::Nodes | Pane::Plan | Pane::Progress | Pane::Journal | Pane::Forecast => {
            Vec::new()
        }
    }
}

fn turn_option(app: &mut App, switch: PlanOption) {
    let Some(preview) = &mut app.screen.preview else { return };
    preview.turn(switch);
    if preview.wish.verb == PlanKind::Drain {
        app.screen.drain = preview.wish.drain.clone();
    }
}

fn with_preview(app: &mut App, change: impl FnOnce(&mut Preview)) {
    if let Some(preview) = &mut app.screen.preview {
        change(preview);
    }
}

fn set_typing(preview: &mut Preview, open: bool) {
    if let Some(line) = &mut preview.line {
        line.open = open;
    }
}

/// Freezes the screen, or lets it go on; tells what it was frozen at.
fn freeze(app: &mut App, now: Timestamp) -> Option<Box<Model>> {
    let before = app.frozen.take();
    if before.is_none() {
        app.frozen = Some((now, Box::new(app.model.clone())));
    }
    before.map(|(_, knowledge)| knowledge)
}
