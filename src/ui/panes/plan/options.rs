//! Inputs of a plan: its options, and the line for taints, labels, annotations or the value of an option.

use ratatui::{buffer::Buffer, layout::Rect};

use crate::{
    app::{
        UserAction,
        preview::{EditLine, PlanKind, PlanOption, PlanRequest, Preview},
    },
    ui::{
        Scene, text,
        theme::Role,
        widgets::{
            field::field,
            segments::{Runs, cut_line},
        },
    },
};

/// ```text
/// ──────────────────────────────────────────
/// taints › dedicated=gpu:NoSch▏
///          dedicated=gpu:NoSchedule   …
/// ```
/// Draws the line that is typed into and, below it, proposals for the last word or the error. Returns the remaining
/// area.
pub fn draw_edit_line(scene: &Scene, preview: &Preview, area: Rect, buf: &mut Buffer) -> Rect {
    let Some(line) = &preview.line else { return area };
    if area.height < 4 || area.width < 24 {
        return area;
    }
    let name = match (line.option.and_then(PlanOption::typed), preview.request.kind) {
        (Some(option), _) => option,
        (None, PlanKind::Metadata(field)) => field.as_str(),
        (None, _) => "taints",
    };
    let label = format!("{name} › ");
    let indent = u16::try_from(text::width(&label)).unwrap_or(0);
    buf.set_string(area.x, area.y, &label, scene.style(Role::Key));
    let input = Rect { x: area.x + indent, width: area.width - indent, height: 1, ..area };
    let style = scene.style(if line.is_open { Role::Input } else { Role::Strong });
    field(&line.input, style, line.is_open, input, buf);
    let below = Rect { y: area.y + 1, ..input };
    let runs = if line.is_open { proposals(scene, line) } else { Runs::default() };
    let of_result = preview.fault().filter(|_| !preview.request.edits.is_empty() && !preview.is_behind());
    let runs = match line.option {
        Some(option) if line.is_open && runs.is_empty() => Runs::new(hint(option), scene.style(Role::Dim)),
        _ => runs,
    };
    let fault = line.fault.as_deref().or(of_result.filter(|_| runs.is_empty()));
    let runs = fault.map_or(runs, |fault| Runs::new(fault, scene.style(Role::LevelError)));
    let shown = cut_line(runs.line(), usize::from(below.width));
    text::draw_line(&shown, (below.x, below.y), below.width, buf);
    Rect { y: area.y + 2, height: area.height - 2, ..area }
}

/// Hint about the text to type for an option; empty for an option without typed text.
const fn hint(option: PlanOption) -> &'static str {
    match option {
        PlanOption::PodSelector => "as in app=web,tier!=db; empty for all pods",
        PlanOption::SkipWaitForDelete => "seconds since the deletion of a pod; empty waits for all pods",
        PlanOption::Timeout => "as in 90s or 15m; empty for none",
        PlanOption::Force
        | PlanOption::IgnoreDaemonsets
        | PlanOption::DeleteEmptydirData
        | PlanOption::DisableEviction
        | PlanOption::Surge
        | PlanOption::Grace
        | PlanOption::Parallel
        | PlanOption::Overwrite
        | PlanOption::WholeZones => "",
    }
}

/// Candidates for the last word of the typed text, starting at the chosen one, so that it is always visible.
fn proposals(scene: &Scene, line: &EditLine) -> Runs {
    let (before, chosen) = line.candidates.split_at(line.chosen.min(line.candidates.len()));
    let mut runs = Runs::default();
    for candidate in chosen.iter().chain(before) {
        runs = if runs.is_empty() {
            Runs::new(candidate, scene.style(Role::Accent))
        } else {
            runs.and("  ", scene.style(Role::Dim)).and(candidate, scene.style(Role::Dim))
        };
    }
    runs
}

/// Cells between options.
const GAP: u16 = 2;

/// ```text
/// ───────────────────────────────────────────────────────────────────────────────────────
/// D ! ignore-daemonsets  E ▲ delete-emptydir-data  F ○ force  B ○ disable-eviction
/// ```
/// Draws the options with their keys on as many lines as needed. Returns the remaining area.
pub fn draw_options(scene: &Scene, preview: &Preview, area: Rect, buf: &mut Buffer) -> Rect {
    let (mut x, mut y) = (area.x, area.y);
    let options = preview.request.kind.options();
    if options.is_empty() || area.height < 4 {
        return area;
    }
    for option in options {
        let line = option_with_key(scene, preview, *option).line();
        let width = u16::try_from(line.width()).unwrap_or(u16::MAX);
        if x > area.x && x.saturating_add(width) > area.right() {
            (x, y) = (area.x, y + 1);
        }
        if y + 2 >= area.bottom() {
            break;
        }
        text::draw_line(&line, (x, y), area.right().saturating_sub(x), buf);
        x = x.saturating_add(width + GAP);
    }
    let used = y + 1 - area.y;
    Rect { y: area.y + used, height: area.height.saturating_sub(used), ..area }
}

/// An option with its key: `D ● ignore-daemonsets`. The sign is `!` if the plan is refused without the option, and `▲`
/// if the option is set and dangerous.
fn option_with_key(scene: &Scene, preview: &Preview, option: PlanOption) -> Runs {
    let key = scene.app.preferences.keymap.key_for(UserAction::Toggle(option));
    let is_needed = preview.plan().zip(option.flag()).is_some_and(|(plan, flag)| plan.needs.contains(&flag));
    let (value, words) = value_of(&preview.request, option);
    let (sign, role) = match value {
        _ if is_needed => ("! ", Role::NodeWarning),
        _ if preview.request.is_dangerous(option) => ("▲ ", Role::LevelError),
        Value::On => ("● ", Role::Strong),
        Value::Off => ("○ ", Role::Dim),
        Value::OneOfMany => ("", Role::Base),
    };
    let style = scene.style(role);
    Runs::new(&key, scene.style(Role::Key)).and(" ", style).and(sign, style).and(&words, style)
}

enum Value {
    On,
    Off,
    /// A value that is neither on nor off. The text of the option contains it.
    OneOfMany,
}

fn value_of(request: &PlanRequest, option: PlanOption) -> (Value, String) {
    let drain = &request.drain;
    let grace = request.grace();
    let on_or_off = |is_on: bool, words: &str| (if is_on { Value::On } else { Value::Off }, words.to_owned());
    match option {
        PlanOption::Force => on_or_off(drain.force, "force"),
        PlanOption::IgnoreDaemonsets => on_or_off(drain.ignore_daemonsets, "ignore-daemonsets"),
        PlanOption::DeleteEmptydirData => on_or_off(drain.delete_emptydir_data, "delete-emptydir-data"),
        PlanOption::DisableEviction => on_or_off(drain.disable_eviction, "disable-eviction"),
        PlanOption::Surge => on_or_off(drain.surge, "surge"),
        PlanOption::Overwrite => on_or_off(request.overwrite, "overwrite"),
        PlanOption::WholeZones => on_or_off(request.whole_zones, "whole zones"),
        PlanOption::Grace => {
            (Value::OneOfMany, grace.map_or("grace: pod's own".into(), |grace| format!("grace: {grace}")))
        }
        PlanOption::Parallel => (Value::OneOfMany, format!("parallel: {}", drain.parallel.max(1))),
        PlanOption::PodSelector => (
            Value::OneOfMany,
            format!("pods: {}", drain.pod_selector.as_ref().map_or("all".into(), ToString::to_string)),
        ),
        PlanOption::Timeout => match request.typed(option) {
            none if none.is_empty() => (Value::OneOfMany, "timeout: none".into()),
            limit => (Value::OneOfMany, format!("timeout: {limit}")),
        },
        PlanOption::SkipWaitForDelete => {
            let age = drain.skip_wait_for_delete;
            (Value::OneOfMany, age.map_or("waits for all".into(), |age| format!("skip-wait: {age}")))
        }
    }
}
