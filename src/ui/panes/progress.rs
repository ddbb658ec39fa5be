//! The progress of an operation: state of each node and pod, what it waits for and why, and the final report.

use ratatui::{buffer::Buffer, layout::Rect};

use super::{
    draw_full_text,
    event_row::{EventRow, when},
    evictions, object_name, open, say, table_of,
};
use crate::{
    app::{Pane, operations::OperationEntry, progress::ProgressRow},
    model::suggestions::BlockingBudget,
    ui::{
        Scene, text,
        theme::Role,
        widgets::{
            Cell, bar,
            segments::{Runs, cut_line},
            stacked,
        },
    },
};
use kordon_core::{
    engine::Severity,
    operation::{
        DrainCount, DrainPart, NodeProgress, NodeProgressStage, OperationEnd, OperationNotice, PodEnd,
        PodProgress, PodProgressStage,
    },
    plan::TimeLeft,
};
use kordon_time::Span;

/// Width of the operation's progress bar in cells.
const BAR: usize = 24;

/// Width in cells of the longest text in the state column.
const STATE: u16 = 11;

/// Minimum delay at which an operation counts as behind its plan.
const BEHIND: Span = Span::from_secs(5);

/// ```text
/// ─ 2 Progress  drain n-3 · for 1m12s ──────────────────────────────── p pauses  C cancels ─
/// ━━━━━━━━━━━━━━━━━━──────  6 of 8 pods gone · 1 blocked · 1 terminating   done in ~35s (at most 1m4s)
/// blocked
///     in 3s  shop/web-7d4b9  blocked      The disruption budget web needs 3 healthy pods and has 3 currently · 4 tries
///            shop/web        budget       web needs 3 healthy, has 3; freed if one more of its pods is Ready
/// nodes
///     1m12s  n-3             draining     ████████████◇◇✖✖  6 of 8 pods gone · cordoned by this operation
/// in progress
///        3s  shop/api-4f9c1  terminating  grace period ends in 27s
/// finished
///         –  shop/web-5c2aa  gone         → n-4, Ready
/// log
///  03:01:24  • pod/shop/api-4f9c1 terminating
/// ```
/// Draws the shown operation. Returns the number of rows that fit.
pub fn draw(scene: &Scene, area: Rect, buf: &mut Buffer) -> usize {
    let Some(shown) = scene.screen.overlays.progress() else { return 0 };
    let Some(entry) = scene.app.operations.entry(&shown.operation) else {
        let inner = open(scene, Pane::Progress, area, Runs::default(), buf);
        say(scene, "○", "no operation: Esc goes back", Role::Dim, inner, buf);
        return usize::from(inner.height);
    };
    let inner = open(scene, Pane::Progress, area, title(scene, entry), buf);
    let inner = draw_totals(scene, entry, inner, buf);
    let whole = shown.list.selected().copied().and_then(|row| whole(entry, row));
    let inner = draw_full_text(scene, Pane::Progress, whole, inner, buf);
    let page = usize::from(inner.height);
    if shown.list.is_empty() {
        say(scene, "○", "no row matches (Esc clears the filter)", Role::Dim, inner, buf);
        return page;
    }
    let table = table_of(scene, Pane::Progress, &shown.list, EventRow::columns(STATE), inner);
    let cells_of = |place| shown.row(place).map(|row| cells(scene, entry, row)).unwrap_or_default();
    scene.record(Pane::Progress, &table, cells_of);
    table.render_bare(inner, buf, cells_of);
    page
}

/// Keys that apply to the operation.
pub(super) fn note(scene: &Scene) -> Runs {
    let Some(entry) = scene.app.shown_operation() else { return Runs::default() };
    let dim = scene.style(Role::Dim);
    let key = |key: &str, words: &str| Runs::new(key, scene.style(Role::Key)).and(&format!(" {words}"), dim);
    let gap = || Runs::new("  ", dim);
    if entry.is_running() {
        let pause = if entry.operation.is_paused() { "resumes" } else { "pauses" };
        return key("p", pause).join(gap()).join(key("C", "cancels"));
    }
    if entry.is_undo() {
        key("Esc", "closes")
    } else {
        key("U", "undoes it").join(gap()).join(key("Esc", "closes"))
    }
}

/// Title of the pane: `drain n-3 · paused · for 1m12s`, `drain n-3 · done after 1m12s`.
fn title(scene: &Scene, entry: &OperationEntry) -> Runs {
    let report = &entry.progress;
    let (words, role) = match report.ended {
        Some((at, end)) => {
            (format!("{} after {}", ended(end), text::age(at, report.started_at)), end_role(end))
        }
        None if entry.operation.is_paused() => ("paused".into(), Role::FeedBusy),
        None => (format!("for {}", text::age(scene.now, report.started_at)), Role::Accent),
    };
    let runs = Runs::new(&entry.title, scene.style(Role::Strong))
        .and(" · ", scene.style(Role::Faint))
        .and(&words, scene.style(role));
    let all = &scene.app.operations.entries;
    if all.len() < 2 {
        return runs;
    }
    let place = all.iter().position(|other| other.id() == entry.id()).unwrap_or(0) + 1;
    runs.and(&format!(" · {place} of {} (o)", all.len()), scene.style(Role::Dim))
}

/// Text that says how an operation ended.
pub fn ended(end: OperationEnd) -> &'static str {
    match end {
        OperationEnd::Done => "done",
        OperationEnd::Recorded => "recorded, not written",
        OperationEnd::Partly => "done in part",
        OperationEnd::TimedOut => "timed out",
        OperationEnd::Forbidden => "not allowed",
        OperationEnd::ClaimedByOther => "claimed by somebody else",
        OperationEnd::Cancelled => "cancelled",
    }
}

const fn end_role(end: OperationEnd) -> Role {
    match end {
        OperationEnd::Done | OperationEnd::Recorded => Role::NodeReady,
        OperationEnd::Partly
        | OperationEnd::TimedOut
        | OperationEnd::Forbidden
        | OperationEnd::ClaimedByOther => Role::LevelError,
        OperationEnd::Cancelled => Role::LevelWarning,
    }
}

/// Draws the progress as a bar and in numbers, with its predicted end.
fn draw_totals(scene: &Scene, entry: &OperationEntry, area: Rect, buf: &mut Buffer) -> Rect {
    if area.height < 3 {
        return area;
    }
    let width = usize::from(area.width);
    let line = cut_line(totals(scene, entry, width).line(), width);
    text::draw_line(&line, (area.x, area.y), area.width, buf);
    Rect { y: area.y + 1, height: area.height - 1, ..area }
}

/// Text of the progress. It has the long form of the predicted end if that fits, otherwise the short one.
fn totals(scene: &Scene, entry: &OperationEntry, width: usize) -> Runs {
    let report = &entry.progress;
    let dim = scene.style(Role::Dim);
    if report.ended.is_some() {
        return Runs::new(&report.in_short(), scene.style(Role::Base))
            .and("  ", dim)
            .and(entry.id(), scene.style(Role::Faint));
    }
    let (count, stay) = (report.count(), report.stay());
    if count.total() == 0 && stay == 0 {
        let written = report.nodes.iter().filter(|row| row.stage != NodeProgressStage::Waiting).count();
        let words = format!("{written} of {} nodes", report.nodes.len());
        return Runs::new(&words, scene.style(Role::Base));
    }
    let share = if count.total() == 0 { 1.0 } else { ratio(count.gone, count.total()) };
    let (full, rest) = bar(share, BAR);
    let mut runs =
        Runs::new(&full, scene.style(Role::GaugeFill)).and(&rest, scene.style(Role::GaugeRest)).and(
            &format!("  {} of {} pods gone", text::count(count.gone), text::count(count.total())),
            scene.style(Role::Strong),
        );
    let parts = count.parts_left().map(|(part, pods)| (pods, part.word(), part_role(part)));
    for (pods, words, role) in parts.chain((stay > 0).then_some((stay, "stay", Role::Dim))) {
        runs = runs
            .and(" · ", scene.style(Role::Faint))
            .and(&format!("{} {words}", text::count(pods)), scene.style(role));
    }
    let with = |end: &str| runs.clone().and("   ", dim).and(end, dim);
    let [long, short] = time_left(scene, entry);
    let all = with(&long);
    if all.width() <= width { all } else { with(&short) }
}

const fn part_role(part: DrainPart) -> Role {
    match part {
        DrainPart::Gone => Role::NodeReady,
        DrainPart::Terminating => Role::EvictionTerminating,
        DrainPart::Blocked => Role::CountdownSoon,
        DrainPart::Waiting | DrainPart::Finished => Role::Dim,
    }
}

/// Predicted end, in a long and a short form. The long form adds the delay behind the plan, or what prevents the end.
fn time_left(scene: &Scene, entry: &OperationEntry) -> [String; 2] {
    let Some(left) = entry.left.as_ref().filter(|_| !entry.operation.is_paused()) else {
        return ["paused".into(), "paused".into()];
    };
    let text = left.text(scene.now);
    let long = match left {
        TimeLeft::Ends { likely, .. } => {
            let behind = entry.planned_end().map(|planned| (*likely).max(scene.now).since(planned));
            behind.filter(|behind| *behind >= BEHIND).map(|behind| {
                format!("{text} · {} behind the plan", text::age(scene.now, scene.now - behind))
            })
        }
        TimeLeft::NotBefore(_) => None,
        TimeLeft::Never(_) => return [text, "no ETA".into()],
    };
    [long.unwrap_or_else(|| text.clone()), text]
}

#[expect(clippy::cast_precision_loss, reason = "a share of a bar")]
fn ratio(part: usize, whole: usize) -> f32 {
    part as f32 / whole as f32
}

fn cells(scene: &Scene, entry: &OperationEntry, row: ProgressRow) -> Vec<Cell> {
    let report = &entry.progress;
    match row {
        ProgressRow::Section(title) => vec![Cell::new(title, scene.style(Role::Heading))],
        ProgressRow::Node(place) => {
            report.nodes.get(place).map(|row| node(scene, entry, row)).unwrap_or_default()
        }
        ProgressRow::Pod(place) => {
            report.pods.get(place).map(|row| pod(scene, entry, row)).unwrap_or_default()
        }
        ProgressRow::Budget(place) => {
            entry.blocking.get(place).map(|budget| blocking(scene, budget)).unwrap_or_default()
        }
        ProgressRow::Notice(number) => {
            entry.notices.get(number).map(|notice| said(scene, notice)).unwrap_or_default()
        }
    }
}

fn node(scene: &Scene, entry: &OperationEntry, row: &NodeProgress) -> Vec<Cell> {
    let (since, word, role) = match &row.stage {
        NodeProgressStage::Waiting => (None, "waiting", Role::Dim),
        NodeProgressStage::Written => (None, row.done, Role::NodeMaintenance),
        NodeProgressStage::Unchanged => (None, "unchanged", Role::Dim),
        NodeProgressStage::Draining { since } => (Some(*since), "draining", Role::CountdownSoon),
        NodeProgressStage::Verifying => (None, "verifying", Role::CountdownSoon),
        NodeProgressStage::Drained { .. } => (None, "drained", Role::NodeReady),
        NodeProgressStage::Recorded => (None, "recorded", Role::Dim),
        NodeProgressStage::Incomplete(_) => (None, "incomplete", Role::LevelError),
    };
    let since = since.map_or(String::new(), |since| text::age(scene.now, since));
    let mut parts = Vec::new();
    match &row.stage {
        NodeProgressStage::Incomplete(stop) => parts.push(stop.to_string()),
        NodeProgressStage::Verifying => parts.push("listing its pods once more".into()),
        NodeProgressStage::Drained { stay: 1, .. } => parts.push("1 pod stays".into()),
        NodeProgressStage::Drained { stay, .. } if *stay > 0 => parts.push(format!("{stay} pods stay")),
        _ => {}
    }
    let count = entry.progress.count_on(&row.node);
    let bar = node_bar(scene, &count);
    if count.total() > 0 {
        parts.push(format!("{} of {} pods gone", count.gone, count.total()));
    }
    if row.cordoned {
        parts.push("cordoned by this operation".into());
    }
    EventRow {
        when: when(&since, scene.style(Role::CountdownFar)),
        subject: Cell::new(&row.node, scene.style(Role::Strong)),
        state: Cell::new(word, scene.style(role)),
        text: bar.and(&text::brief(&parts.join(" · ")), scene.style(Role::Base)),
    }
    .cells()
}

/// Width in cells of the bar of a node's pods.
const NODE_BAR: usize = 16;

/// Bar of a node's gone, terminating, blocked and other pods: `████████◇◇✖✖────  `. Empty if no pod leaves the node.
fn node_bar(scene: &Scene, count: &DrainCount) -> Cell {
    let counts = [count.gone, count.terminating, count.blocked, count.waiting + count.finished];
    let looks = [
        ("█", Role::NodeReady),
        ("◇", Role::EvictionTerminating),
        ("✖", Role::LevelError),
        ("─", Role::GaugeRest),
    ];
    let bar = stacked(&counts, NODE_BAR).into_iter().zip(looks);
    let bar = bar.fold(Cell::default(), |cell, (cells, (glyph, role))| {
        cell.and(&glyph.repeat(cells), scene.style(role))
    });
    if bar.is_empty() { bar } else { bar.and("  ", scene.style(Role::Dim)) }
}

fn pod(scene: &Scene, entry: &OperationEntry, row: &PodProgress) -> Vec<Cell> {
    let (at, role) = match &row.stage {
        PodProgressStage::Blocked { until, .. } => {
            (format!("in {}", text::left(*until, scene.now)), Role::CountdownSoon)
        }
        PodProgressStage::Terminating { since } => (text::age(scene.now, *since), Role::EvictionTerminating),
        PodProgressStage::Waiting | PodProgressStage::Requested => (String::new(), Role::Dim),
        PodProgressStage::Ended(_) => ("–".into(), Role::Faint),
    };
    let (word, role_of_word) = match &row.stage {
        PodProgressStage::Waiting => ("waiting", Role::Dim),
        PodProgressStage::Requested => ("requested", Role::Base),
        PodProgressStage::Blocked { .. } => ("blocked", Role::CountdownSoon),
        PodProgressStage::Terminating { .. } => ("terminating", Role::EvictionTerminating),
        PodProgressStage::Ended(end) => (end_word(end), pod_end_role(end)),
    };
    EventRow {
        when: when(&at, scene.style(role)),
        subject: object_name(scene, &row.pod, Role::Base),
        state: Cell::new(word, scene.style(role_of_word)),
        text: landing(scene, entry, row).and(&text::brief(&why(scene, row)), scene.style(Role::Base)),
    }
    .cells()
}

/// Location of a pod's replacement, if there is one: `→ n-4, Ready · `. If nothing runs in the place of a removed pod,
/// its outcome: `lost · `.
fn landing(scene: &Scene, entry: &OperationEntry, row: &PodProgress) -> Cell {
    let dim = scene.style(Role::Dim);
    let cell = match (entry.landings.get(&row.pod), entry.nowhere(row)) {
        (Some(landed), _) => {
            let cell = Cell::new("→ ", dim);
            match (&landed.node, landed.is_ready) {
                (None, _) => cell.and("Pending", scene.style(Role::NodeNotice)),
                (Some(node), true) => {
                    cell.and(node, scene.style(Role::Base)).and(", Ready", scene.style(Role::NodeReady))
                }
                (Some(node), false) => cell.and(node, scene.style(Role::Base)).and(", not Ready yet", dim),
            }
        }
        (None, Some(outcome)) => Cell::new(&outcome.short(), scene.style(evictions::role(outcome.kind()))),
        (None, None) => return Cell::default(),
    };
    if why(scene, row).is_empty() { cell } else { cell.and(" · ", scene.style(Role::Faint)) }
}

/// A budget that blocks pods, and what would unblock them.
fn blocking(scene: &Scene, blocking: &BlockingBudget) -> Vec<Cell> {
    EventRow {
        subject: object_name(scene, &blocking.budget, Role::Strong),
        state: Cell::new("budget", scene.style(Role::LevelError)),
        text: Cell::new(&freed(blocking), scene.style(Role::Base)),
        ..EventRow::default()
    }
    .cells()
}

/// Numbers of a budget and what would unblock its pods:
/// `needs 2 healthy, has 2; freed if one more of its pods is Ready, or if …`.
fn freed(blocking: &BlockingBudget) -> String {
    if blocking.freed_by.is_empty() {
        return format!("{}: nothing frees it", blocking.numbers);
    }
    format!("{}; freed if {}", blocking.numbers, blocking.freed_by.join(", or if "))
}

/// What the pod waits for, or how it ended.
fn why(scene: &Scene, row: &PodProgress) -> String {
    let mut parts = Vec::new();
    match &row.stage {
        PodProgressStage::Waiting => {}
        PodProgressStage::Requested => parts.push("no response yet".into()),
        PodProgressStage::Blocked { by, .. } => parts.push(by.to_string()),
        PodProgressStage::Terminating { .. } => {
            let pod = scene.app.model.cluster.pod(&row.pod).filter(|pod| pod.uid == row.uid);
            let termination = pod.and_then(|pod| pod.termination.as_ref());
            let deadline = termination.map(|end| scene.app.model.cluster.local(end.deadline));
            parts.push(match deadline {
                Some(end) if end >= scene.now => {
                    format!("grace period ends in {}", text::left(end, scene.now))
                }
                Some(end) => format!("grace period ended {} ago", text::age(scene.now, end)),
                None => "grace period unknown".into(),
            });
            if let Some(pod) = pod.filter(|pod| !pod.finalizers.is_empty()) {
                parts.push(format!("blocked by {}", pod.finalizers.join(", ")));
            }
        }
        // The state column already says how the pod ended, so no text is added.
        PodProgressStage::Ended(PodEnd::Gone | PodEnd::TimedOut | PodEnd::Cancelled) => {}
        PodProgressStage::Ended(PodEnd::Stays(skip)) => parts.push(skip.to_string()),
        PodProgressStage::Ended(PodEnd::Replaced) => parts.push("another pod has its name".into()),
        PodProgressStage::Ended(PodEnd::Refused(text) | PodEnd::Forbidden(text) | PodEnd::Failed(text)) => {
            parts.push(text.clone());
        }
        PodProgressStage::Ended(end @ (PodEnd::Recorded | PodEnd::Successor)) => parts.push(end.to_string()),
    }
    if row.tries > 1 {
        parts.push(format!("{} tries", row.tries));
    }
    if row.late {
        parts.push("bound after the plan was made".into());
    }
    parts.join(" · ")
}

const fn end_word(end: &PodEnd) -> &'static str {
    match end {
        PodEnd::Gone => "gone",
        PodEnd::Replaced => "replaced",
        PodEnd::Recorded => "recorded",
        PodEnd::Stays(_) => "stays",
        PodEnd::Refused(_) => "refused",
        PodEnd::Successor => "left alone",
        PodEnd::Forbidden(_) => "not allowed",
        PodEnd::Failed(_) => "failed",
        PodEnd::TimedOut => "timed out",
        PodEnd::Cancelled => "cancelled",
    }
}

const fn pod_end_role(end: &PodEnd) -> Role {
    match end {
        PodEnd::Gone | PodEnd::Replaced => Role::NodeReady,
        PodEnd::Recorded | PodEnd::Stays(_) => Role::Dim,
        PodEnd::Successor | PodEnd::Cancelled => Role::LevelWarning,
        PodEnd::Refused(_) | PodEnd::Forbidden(_) | PodEnd::Failed(_) | PodEnd::TimedOut => Role::LevelError,
    }
}

fn said(scene: &Scene, notice: &OperationNotice) -> Vec<Cell> {
    let (glyph, role) = match notice.level {
        Severity::Info => ("•", Role::LevelInfo),
        Severity::Warning => ("▲", Role::LevelWarning),
        Severity::Error => ("✗", Role::LevelError),
    };
    let mut what = Cell::new(glyph, scene.style(role)).and(" ", scene.style(Role::Dim));
    if !notice.subject.is_empty() {
        what = what.and(&notice.subject, scene.style(Role::Accent)).and(" ", scene.style(Role::Dim));
    }
    let what = what.and(&text::brief(&notice.text), scene.style(Role::Base));
    vec![when(&text::clock(notice.at), scene.style(Role::Dim)), what]
}

/// Full text of the selected row.
fn whole(entry: &OperationEntry, row: ProgressRow) -> Option<String> {
    let report = &entry.progress;
    match row {
        ProgressRow::Section(_) => None,
        ProgressRow::Node(place) => report.nodes.get(place).map(|row| format!("{}: {}", row.node, row.stage)),
        ProgressRow::Pod(place) => {
            let row = report.pods.get(place)?;
            let node = row.node.as_ref().map_or(String::new(), |node| format!(" on {node}"));
            Some(format!("{}{node}: {} · {} requests", row.pod, row.stage, row.tries))
        }
        ProgressRow::Budget(place) => {
            entry.blocking.get(place).map(|blocking| format!("{}: {}", blocking.budget, freed(blocking)))
        }
        ProgressRow::Notice(number) => {
            entry.notices.get(number).map(|notice| format!("{} {}", notice.subject, notice.text))
        }
    }
}
