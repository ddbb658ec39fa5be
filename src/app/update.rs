//! Executes the actions of the user.

use std::collections::BTreeSet;

use tui_input::Input;

use super::{
    App,
    commands::{TypedCommand, UserAction},
    copying::Copied,
    detail::{Detail, DetailView},
    event_list::EventListView,
    filter_fields::zone_word,
    groups::NodeRow,
    help::HelpSheet,
    listing::Movement,
    maintenance::{MaintenanceOption, MaintenanceRequest, MaintenanceSheet, StoppedWay},
    overlays::Overlay,
    palette::Palette,
    pane::Pane,
    preview::{PlanKind, PlanOption, PlanRequest, Preview, Targets},
    reaction::Reaction,
    screen::{Frozen, Screen},
    subject::subject_of_row,
    tour::TourStep,
};
use crate::model::suggestions::Means;
use kordon_core::{cluster::ZoneKey, forecast::LaneFold};
use kordon_time::Timestamp;

/// Executes an action of the user.
pub fn update(app: &mut App, action: UserAction, now: Timestamp) -> Reaction {
    update_with(app, action, "", now)
}

/// Executes an action of the user with the argument of a typed command.
pub fn update_with(app: &mut App, action: UserAction, argument: &str, now: Timestamp) -> Reaction {
    app.screen.message = None;
    app.screen.before_key(now);
    if let Some(why) = app.why_not_in_playback(action) {
        app.screen.message = Some(why.into());
        app.screen.after_key();
        return Reaction::Draw;
    }
    let would_act = app.would_act(action);
    if !matches!(action, UserAction::Move(_) | UserAction::MarkRange) {
        app.screen.before_range = None;
    }
    app.screen.record_place();
    let reaction = run(app, action, argument, now);
    app.screen.record_place();
    if !would_act {
        app.on_idle_action(action);
    }
    app.screen.after_key();
    reaction
}

fn run(app: &mut App, action: UserAction, argument: &str, now: Timestamp) -> Reaction {
    if !argument.is_empty() && !matches!(action, UserAction::Typed(_)) {
        if let Err(fault) = app.run_with_argument(action, argument, now) {
            app.screen.message = Some(fault);
        }
        return Reaction::Draw;
    }
    match action {
        UserAction::Quit => return app.quit(),
        UserAction::Suspend if !app.operations.running_titles().is_empty() => {
            app.screen.message = Some("not while an operation runs: it would stop".into());
        }
        UserAction::Suspend => return Reaction::Suspend,
        UserAction::Redraw => return Reaction::Repaint,
        UserAction::Move(step) => {
            app.screen.step(step);
            extend_range(&mut app.screen);
        }
        UserAction::Focus(digit) => focus(app, digit),
        UserAction::NextPane => turn(app, 1),
        UserAction::PreviousPane => turn(app, -1),
        UserAction::Zoom => app.screen.zoomed = !app.screen.zoomed,
        UserAction::Resize(side, size) => app.resize_pane(side, size),
        UserAction::MovePane(to) => app.move_pane(to),
        UserAction::ResetLayout => app.reset_layout(),
        UserAction::PreviousPlace => app.go_to_place(true),
        UserAction::NextPlace => app.go_to_place(false),
        UserAction::FlipSort => app.screen.flip_sort(),
        UserAction::Group => app.screen.group_by(app.screen.groups.grouping().next()),
        UserAction::FoldAll if app.screen.focus == Pane::Detail => with_yaml(app, Detail::toggle_blocks),
        UserAction::FoldAll => fold_all(app, now),
        UserAction::Fold => with_yaml(app, Detail::toggle_block),
        UserAction::NextMatch => go_to_match(app, false),
        UserAction::PreviousMatch => go_to_match(app, true),
        UserAction::Enter => enter(app),
        UserAction::Detail => open_detail(app),
        UserAction::Copy => return copy(app),
        UserAction::Yaml => toggle_yaml(app),
        UserAction::Back => back(app),
        UserAction::Horizon => app.screen.forecast.horizon = app.screen.forecast.horizon.next(),
        UserAction::Wide => app.screen.wide = !app.screen.wide,
        UserAction::Freeze => return freeze(app, now),
        UserAction::Theme => next_theme(app),
        UserAction::Mark => mark(app),
        UserAction::MarkAll => mark_all(app),
        UserAction::MarkRange => mark_range(app),
        UserAction::Plan(kind) => open_plan(app, kind),
        UserAction::Toggle(option) => toggle_option(app, option),
        UserAction::Maintain(option) => change_maintenance(app, option),
        UserAction::Filter => open_filter(app),
        UserAction::Palette => open_palette(app, ""),
        UserAction::Typed(TypedCommand::Export) if argument.is_empty() => open_palette(app, "export "),
        UserAction::Help => toggle_help(app),
        UserAction::Info => toggle_info(app),
        UserAction::Timing => toggle_timing(app),
        UserAction::Maintenance => toggle_maintenance(app),
        UserAction::Events => app.open_events(),
        UserAction::Edit(request) => app.screen.edit(request),
        UserAction::Complete if app.complete_filter() || app.complete_argument() => {}
        UserAction::Complete => with_overlay(app, Overlay::complete),
        UserAction::ChooseNext => choose(app, 1),
        UserAction::ChoosePrevious => choose(app, -1),
        UserAction::KeepTheme => drop(app.screen.overlays.close_top()),
        UserAction::KeepFilter => keep_filter(app),
        UserAction::KeepEdits if app.screen.shows_maintenance() => {
            app.screen.change_maintenance(MaintenanceSheet::keep_line);
        }
        UserAction::KeepEdits => app.screen.overlays.plan_mut().into_iter().for_each(Preview::keep_edits),
        UserAction::RunCommand => return run_command(app, now),
        UserAction::Typed(typed) => {
            if let Err(fault) = app.run_typed(typed, argument, now) {
                app.screen.message = Some(fault);
            }
        }
        UserAction::Apply if app.screen.shows_maintenance() => app.ask_for_maintenance(now),
        UserAction::Apply => app.apply_plan(now),
        UserAction::Answer => {
            let request = app.answer_dialog(now);
            if !matches!(request, Reaction::Draw) {
                return request;
            }
        }
        UserAction::Progress => app.open_progress(),
        UserAction::Pause if app.pauses_maintenance() => app.pause_or_resume_maintenance(),
        UserAction::Pause if app.screen.focus != Pane::Progress => app.play_or_pause(),
        UserAction::Pause => app.pause_or_resume(now),
        UserAction::Seek(step) => app.seek(step),
        UserAction::Faster => app.change_speed(true),
        UserAction::Slower => app.change_speed(false),
        UserAction::Cancel => app.ask_to_cancel(),
        UserAction::Undo if app.may_have_stopped_maintenance() => {
            app.ask_for_stopped(StoppedWay::Release, now);
        }
        UserAction::Undo => app.undo(),
        UserAction::Resume if app.may_have_stopped_maintenance() => {
            app.ask_for_stopped(StoppedWay::Resume, now);
        }
        UserAction::Resume => app.resume(now),
        UserAction::Dismiss => app.dismiss(),
        UserAction::NextStep => go_on_with_tour(app, TourStep::next),
        UserAction::PreviousStep => go_on_with_tour(app, |step| step.previous().or(Some(step))),
    }
    app.screen.leave_closed_pane();
    app.arrange(now);
    Reaction::Draw
}

/// Goes to another step of the tour, or ends it.
fn go_on_with_tour(app: &mut App, other: impl Fn(TourStep) -> Option<TourStep>) {
    let overlays = &mut app.screen.overlays;
    let Some(step) = overlays.tour() else { return };
    overlays.close_top();
    if let Some(step) = other(step) {
        overlays.open(Overlay::Tour(step));
    }
}

/// Moves the choice among the proposals, answers or themes of the open overlay.
fn choose(app: &mut App, by: isize) {
    with_overlay(app, |overlay| overlay.choose(by));
    app.screen.show_chosen_theme();
}

fn with_overlay(app: &mut App, change: impl FnOnce(&mut Overlay)) {
    if let Some(overlay) = app.screen.focused_overlay_mut() {
        change(overlay);
    }
}

fn toggle_help(app: &mut App) {
    let overlays = &mut app.screen.overlays;
    if overlays.help_mut().is_some() {
        overlays.close_top();
    } else {
        overlays.open(Overlay::Help(HelpSheet::default()));
    }
}

fn toggle_info(app: &mut App) {
    let overlays = &mut app.screen.overlays;
    if matches!(overlays.top(), Some(Overlay::Info(_))) {
        overlays.close_top();
    } else {
        overlays.open(Overlay::Info(0));
    }
}

fn toggle_timing(app: &mut App) {
    let overlays = &mut app.screen.overlays;
    if matches!(overlays.top(), Some(Overlay::Timing(_))) {
        overlays.close_top();
    } else {
        overlays.open(Overlay::Timing(Box::default()));
    }
}

/// Opens the maintenance sheet for the marked or selected nodes, with the options of the last sheet, or closes it.
fn toggle_maintenance(app: &mut App) {
    if matches!(app.screen.overlays.top(), Some(Overlay::Maintenance(_))) {
        app.screen.overlays.close_top();
        return;
    }
    let nodes = match app.targets(PlanKind::Drain) {
        Some(Targets::Nodes(nodes)) => nodes,
        Some(Targets::Pods(_)) | None => Vec::new(),
    };
    let request = match app.screen.maintenance.clone() {
        Some(kept) => MaintenanceRequest { nodes, ..kept },
        None => MaintenanceRequest::new(nodes),
    };
    let sheet = MaintenanceSheet::new(request);
    app.screen.overlays.open(Overlay::Maintenance(Box::new(sheet)));
}

impl App {
    /// Opens the list of Events. An open list stays as it is.
    pub(super) fn open_events(&mut self) {
        if self.screen.overlays.uncover_events() {
            return self.screen.focus_on(Pane::Events);
        }
        let from = match self.screen.focus {
            Pane::Plan | Pane::Progress | Pane::Detail => self.screen.node_pane(),
            pane => pane,
        };
        let mut view = EventListView::new(from);
        if self.playback.is_some() {
            view.set_unrecorded();
        }
        self.screen.open_view(Overlay::Events(Box::new(view)));
    }
}

/// Opens the line in which commands are typed, with the start of a command.
fn open_palette(app: &mut App, start: &str) {
    let mut palette =
        Palette::new(app.screen.command_focus(), app.preferences.aliases.clone(), app.screen.used.clone());
    if !start.is_empty() {
        palette.set_text(start.to_owned());
    }
    app.screen.overlays.open(Overlay::Palette(palette));
}

/// Closes the line in which a filter is typed, and keeps the filter.
fn keep_filter(app: &mut App) {
    if let Some(help) = app.screen.overlays.help_mut() {
        help.is_typing = false;
        return;
    }
    let fault = app.filter_fault(app.screen.focus);
    app.screen.overlays.close_top();
    app.screen.keep_filter(fault);
}

fn open_filter(app: &mut App) {
    if let Some(help) = app.screen.overlays.help_mut() {
        help.is_typing = true;
        return;
    }
    let filter = app.screen.filter(app.screen.focus).text().to_owned();
    app.screen.overlays.open(Overlay::Filter(Input::new(filter)));
}

fn focus(app: &mut App, digit: usize) {
    if let Some(pane) = digit.checked_sub(1).and_then(|place| app.screen.panes().get(place).copied()) {
        app.screen.focus_on(pane);
    }
}

/// Moves the focus by this many panes.
fn turn(app: &mut App, by: isize) {
    let panes = app.screen.panes();
    let place = panes.iter().position(|pane| *pane == app.screen.focus).unwrap_or(0);
    let next = place.wrapping_add_signed(by).wrapping_add(panes.len()) % panes.len();
    app.screen.focus_on(panes[next]);
}

/// Leaves what has the focus. On a frozen screen with nothing to leave, says how to resume.
fn back(app: &mut App) {
    if app.is_frozen() && !app.screen.can_go_back() {
        let key = app.preferences.keymap.key_for(UserAction::Freeze);
        app.screen.message = Some(format!("frozen: {key} returns to the present"));
    } else {
        app.screen.back();
    }
}

fn copy(app: &mut App) -> Reaction {
    match app.to_copy() {
        Ok(Copied { what, text }) => {
            app.screen.message = Some(format!("copied {what}"));
            Reaction::Copy(text)
        }
        Err(why) => {
            app.screen.message = Some(why);
            Reaction::Draw
        }
    }
}

fn next_theme(app: &mut App) {
    app.screen.next_theme();
    app.screen.message = Some(format!("theme {}", app.screen.theme().name()));
}

fn enter(app: &mut App) {
    say_gone(app);
    match app.screen.focus {
        Pane::Zones => {
            let Some(zone) = app.screen.zones.list.selected().cloned() else { return };
            show_zone(app, &zone);
        }
        Pane::Nodes => match app.screen.nodes.list.selected().cloned() {
            Some(NodeRow::Node(node)) => app.screen.show_pods(node),
            Some(NodeRow::Group(group)) => {
                app.screen.groups.toggle(&group);
                app.screen.nodes.arranged = None;
            }
            None => {}
        },
        Pane::Evictions => {
            let pod = app.screen.evictions.list.selected().cloned();
            let Some(pod) = pod else { return };
            let Some(node) = app.shown().views.leaving.evictions.get(&pod).map(|row| row.node.clone()) else {
                return;
            };
            app.screen.nodes.list.select(&NodeRow::Node(node.clone()));
            app.screen.show_pods(node);
            let now = app.shown().views.taken;
            app.arrange(now);
            app.screen.pods.list.select(&pod);
        }
        Pane::Forecast => {
            let Some(lane) = app.screen.forecast.selected() else { return };
            if lane.fold == LaneFold::Zone {
                let zone = lane.zone.clone();
                return show_zone(app, &zone);
            }
            let Some(node) = app.screen.forecast.node().cloned() else { return };
            app.screen.nodes.list.select(&NodeRow::Node(node.clone()));
            app.screen.show_pods(node);
        }
        Pane::Plan => type_edits(app),
        Pane::Detail => open_suggested(app),
        Pane::Pods
        | Pane::Progress
        | Pane::Events
        | Pane::Journal
        | Pane::Pending
        | Pane::Departures
        | Pane::Budgets
        | Pane::Audit => {}
    }
}

/// Shows only the nodes of a zone.
fn show_zone(app: &mut App, zone: &ZoneKey) {
    let filter = format!("zone:{}", zone_word(zone));
    let now = app.shown().views.taken;
    app.filter_pane(Pane::Nodes, &filter, now);
}

/// Runs the typed command. If the command cannot run, its line stays open and shows the reason; a character that is
/// typed then begins another command.
fn run_command(app: &mut App, now: Timestamp) -> Reaction {
    let Some(palette) = app.screen.overlays.palette_mut() else { return Reaction::Draw };
    let (command, argument) = match palette.entered() {
        Ok(entered) => entered,
        Err(fault) => {
            let row = palette.input.value().trim().parse::<usize>().ok().filter(|row| *row > 0);
            if let Some(row) = row.filter(|_| app.preferences.keymap.has_counts) {
                app.screen.overlays.close_top();
                return run(app, UserAction::Move(Movement::Row(row - 1)), "", now);
            }
            if !palette.correct() {
                palette.refuse(fault);
            }
            return Reaction::Draw;
        }
    };
    if let Some(why) = app.why_not_in_playback(command.action) {
        if let Some(palette) = app.screen.overlays.palette_mut() {
            palette.refuse(why.into());
        }
        return Reaction::Draw;
    }
    app.screen.used.retain(|used| *used != command.name);
    app.screen.used.insert(0, command.name);
    // The palette is closed before the command runs, so that it does not cover what the command opens.
    let line = app.screen.overlays.close_top();
    let ran = match command.when_typed.map_or(command.action, UserAction::Typed) {
        UserAction::Typed(typed) => app.run_typed(typed, &argument, now),
        action if argument.is_empty() => return run(app, action, "", now),
        action => app.run_with_argument(action, &argument, now),
    };
    if let (Err(fault), Some(Overlay::Palette(mut palette))) = (ran, line) {
        let is_choice = match command.action {
            UserAction::Typed(TypedCommand::Context) => !app.contexts.is_empty(),
            UserAction::Typed(TypedCommand::View) => !app.preferences.views.is_empty(),
            _ => false,
        };
        if is_choice && argument.is_empty() {
            palette.ask_for_argument(command, fault);
        } else {
            palette.refuse(fault);
        }
        app.screen.overlays.open(Overlay::Palette(palette));
    }
    Reaction::Draw
}

fn open_detail(app: &mut App) {
    match subject_of_row(app) {
        Ok(Some(subject)) => {
            let mut detail = Detail::new(subject, app.screen.focus);
            if app.playback.is_some() {
                detail.set_unrecorded();
            }
            app.screen.open_view(Overlay::Detail(Box::new(detail)));
        }
        Ok(None) => say_gone(app),
        Err(why) => app.screen.message = Some(why),
    }
}

/// Switches the detail between its summary and the whole object, or a plan between its rows and its diff. If a list has
/// the focus, first opens the detail of the selected row.
fn toggle_yaml(app: &mut App) {
    if app.screen.focus == Pane::Plan {
        return toggle_diff(app);
    }
    if app.screen.focus != Pane::Detail {
        open_detail(app);
    }
    if app.screen.focus == Pane::Detail
        && let Some(detail) = app.screen.overlays.detail_mut()
    {
        detail.toggle_yaml();
        app.screen.filters.remove(&Pane::Detail);
    }
}

/// Shows the diff of the open plan in place of the plan's rows, or closes the diff.
fn toggle_diff(app: &mut App) {
    let Some(preview) = app.screen.overlays.plan_mut() else { return };
    if preview.request.kind == PlanKind::Failure {
        app.screen.message = Some("what-if: it writes nothing".into());
        return;
    }
    preview.toggle_diff();
    app.screen.filters.remove(&Pane::Plan);
}

/// Changes the open detail if it shows the whole object as YAML.
fn with_yaml(app: &mut App, change: impl FnOnce(&mut Detail)) {
    let detail = app.screen.overlays.detail_mut();
    if let Some(detail) = detail.filter(|detail| detail.view == DetailView::Yaml) {
        change(detail);
    }
}

/// Goes to the next or previous YAML line that matches the search, or says that none does.
fn go_to_match(app: &mut App, goes_back: bool) {
    with_yaml(app, |detail| detail.go_to_match(goes_back));
    app.screen.message = app.screen.no_match();
}

/// If the selected row is gone, shows a message that says why the key did nothing.
fn say_gone(app: &mut App) {
    if app.screen.is_row_gone() {
        app.screen.message = Some("the selected row is gone: select another".into());
    }
}

/// Folds all groups of nodes, or unfolds them. After folding, the group of the selected node is selected.
fn fold_all(app: &mut App, now: Timestamp) {
    let screen = &mut app.screen;
    let group = screen.selected_node().and_then(|node| screen.groups.group_of(node)).cloned();
    screen.groups.toggle_all();
    screen.nodes.arranged = None;
    app.arrange(now);
    if let Some(group) = group.filter(|group| app.screen.groups.is_folded(group)) {
        app.screen.nodes.list.select(&NodeRow::Group(group));
    }
}

/// Toggles the mark of the selected row, and selects the next row.
fn mark(app: &mut App) {
    if app.screen.is_row_gone() {
        return say_gone(app);
    }
    mark_selected(&mut app.screen, Marking::Toggle);
    match app.screen.focus {
        Pane::Nodes => app.screen.nodes.list.step(Movement::Down),
        Pane::Pods => app.screen.pods.list.step(Movement::Down),
        _ => {}
    }
}

/// Marks the selected row of the nodes or pods, or toggles its mark. A range may start there.
fn mark_selected(screen: &mut Screen, marking: Marking) {
    match screen.focus {
        Pane::Nodes => {
            let nodes = screen.selected_nodes().to_vec();
            marking.apply(&mut screen.marked_nodes, &nodes);
            screen.last_marked.0 = screen.nodes.list.selected().cloned();
        }
        Pane::Pods => {
            if let Some(pod) = screen.pods.list.selected() {
                marking.apply(&mut screen.marked_pods, std::slice::from_ref(pod));
                screen.last_marked.1 = Some(pod.clone());
            }
        }
        _ => {}
    }
}

/// What a key does to the mark of the selected row.
#[derive(Clone, Copy)]
enum Marking {
    Toggle,
    /// Marks the row; a mark stays.
    Add,
}

impl Marking {
    fn apply<K: Ord + Clone>(self, marked: &mut BTreeSet<K>, rows: &[K]) {
        match self {
            Self::Toggle => toggle_all(marked, rows),
            Self::Add => marked.extend(rows.iter().cloned()),
        }
    }
}

fn mark_all(app: &mut App) {
    let screen = &mut app.screen;
    match screen.focus {
        Pane::Nodes => {
            let nodes = screen.listed_nodes();
            toggle_all(&mut screen.marked_nodes, &nodes);
        }
        Pane::Pods => toggle_all(&mut screen.marked_pods, screen.pods.list.keys()),
        _ => {}
    }
}

/// Marks the rows from the one marked last to the selected one. Where nothing is marked, the selected row is the first
/// of a range.
fn mark_range(app: &mut App) {
    let screen = &mut app.screen;
    if screen.before_range.take().is_some() {
        // Moves have marked the range already.
        return;
    }
    let count = match screen.focus {
        Pane::Nodes => {
            let last = screen.last_marked.0.as_ref().filter(|_| !screen.marked_nodes.is_empty());
            let rows = last.map_or(&[][..], |last| screen.nodes.list.range(last));
            let nodes = rows.iter().filter_map(NodeRow::node).cloned();
            screen.marked_nodes.extend(nodes);
            rows.len()
        }
        _ => {
            let last = screen.last_marked.1.as_ref().filter(|_| !screen.marked_pods.is_empty());
            let rows = last.map_or(&[][..], |last| screen.pods.list.range(last));
            screen.marked_pods.extend(rows.iter().cloned());
            rows.len()
        }
    };
    if count == 0 {
        start_range(app);
    }
}

/// Marks the selected row as the first of a range.
fn start_range(app: &mut App) {
    if app.screen.is_row_gone() {
        return say_gone(app);
    }
    let before = (app.screen.marked_nodes.clone(), app.screen.marked_pods.clone());
    mark_selected(&mut app.screen, Marking::Add);
    let keymap = &app.preferences.keymap;
    let key = keymap.key_for(UserAction::MarkRange);
    app.screen.message = Some(if keymap.extends_ranges {
        app.screen.before_range = Some(before);
        format!("a range starts here: moves extend it, {key} ends it")
    } else {
        format!("a range starts here: {key} at its other end marks it")
    });
}

/// Marks the rows from the start of the open range to the selected one, and no others but those marked before.
fn extend_range(screen: &mut Screen) {
    let Some((nodes, pods)) = &screen.before_range else { return };
    match screen.focus {
        Pane::Nodes => {
            let first = screen.last_marked.0.as_ref();
            let rows = first.map_or(&[][..], |first| screen.nodes.list.range(first));
            screen.marked_nodes =
                nodes.iter().chain(rows.iter().filter_map(NodeRow::node)).cloned().collect();
        }
        Pane::Pods => {
            let first = screen.last_marked.1.as_ref();
            let rows = first.map_or(&[][..], |first| screen.pods.list.range(first));
            screen.marked_pods = pods.iter().chain(rows).cloned().collect();
        }
        _ => {}
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

/// Opens a plan for the marked or selected nodes or pods, if there are any.
fn open_plan(app: &mut App, kind: PlanKind) {
    let Some(targets) = app.targets(kind) else { return say_gone(app) };
    let mut request = PlanRequest::new(kind, targets);
    request.drain.ignore_daemonsets = app.screen.ignore_daemonsets;
    request.whole_zones = app.screen.focus == Pane::Zones;
    let hidden = match (&request.targets, app.screen.focus) {
        (Targets::Nodes(_), Pane::Nodes) | (Targets::Pods(_), Pane::Pods) => {
            app.screen.hidden_marks(app.screen.focus)
        }
        _ => 0,
    };
    app.show_plan(request);
    app.screen.overlays.plan_mut().into_iter().for_each(|preview| preview.hidden_marks = hidden);
}

/// Opens the plan of the selected suggestion.
fn open_suggested(app: &mut App) {
    let request = match app.screen.overlays.detail().and_then(Detail::selected_means) {
        Some(Means::Plan(action)) => PlanRequest::from_action(action),
        Some(Means::WhatIf(node)) => PlanRequest::new(PlanKind::Failure, Targets::Nodes(vec![node.clone()])),
        Some(Means::Wait | Means::Kubectl(_) | Means::Machine(_) | Means::Edit) | None => return,
    };
    app.show_plan(request);
}

/// Changes an option of the open plan, or opens the line in which its value is typed.
fn toggle_option(app: &mut App, option: PlanOption) {
    if let Some(option) = MaintenanceOption::from_plan(option).filter(|_| app.screen.shows_maintenance()) {
        return change_maintenance(app, option);
    }
    if option.typed().is_some() {
        let cluster = app.shown().cluster.clone();
        let preview = app.screen.overlays.plan_mut();
        return preview.into_iter().for_each(|preview| preview.type_option(option, &cluster));
    }
    let Some(preview) = app.screen.overlays.plan_mut() else { return };
    preview.toggle(option);
    if preview.request.kind == PlanKind::Drain {
        app.screen.ignore_daemonsets = preview.request.drain.ignore_daemonsets;
    }
    if option == PlanOption::DisableEviction {
        app.say_missing_right();
    }
}

/// Switches an option of the open maintenance sheet, or opens the line in which its value is typed.
fn change_maintenance(app: &mut App, option: MaintenanceOption) {
    app.screen.change_maintenance(|sheet| sheet.change(option));
}

/// Starts typing into the taints, labels or annotations of the open plan.
fn type_edits(app: &mut App) {
    if let Some(line) = app.screen.overlays.plan_mut().and_then(|preview| preview.line.as_mut()) {
        line.is_open = true;
    }
}

/// Freezes the screen, or resumes it.
fn freeze(app: &mut App, now: Timestamp) -> Reaction {
    let before = app.screen.frozen.take();
    if before.is_none() {
        app.screen.frozen = Some(Frozen { at: now, model: Box::new(app.model.clone()) });
    }
    app.arrange(now);
    before.map_or(Reaction::Draw, |frozen| Reaction::Thaw(frozen.model))
}
