//! The plan: what an action would do, or the impact of a failure. It writes nothing.

mod failure_rows;
mod landing;
mod options;
mod plan_rows;
mod summary;

use ratatui::{buffer::Buffer, layout::Rect};

use super::{draw_full_text, event_row, event_row::EventRow, object_name, open, say};
use crate::{
    app::{
        Mode, Pane,
        preview::{PlanKind, PlanRow, Preview, PreviewOutcome, Row, Targets},
    },
    executor::plan_diff::DiffLineKind,
    ui::{
        Scene, text,
        theme::Role,
        widgets::{
            Cell, TableWidget,
            segments::{Runs, cut_line},
        },
    },
};
use kordon_core::{cluster::Key, plan::MetadataField};
use kordon_time::{Span, Timestamp};

pub use summary::{prospect, totals};

/// Width in cells of the longest text in the state column.
const STATE: u16 = 9;

/// Minimum height of the pane at which the bar of pods is drawn.
const ROWS_BELOW_BAR: u16 = 10;

/// ```text
/// ─ 2 Plan  drain n-3 · refused without the options marked ! ─────────────────────── dry-run: nothing is written ─
/// D ! ignore-daemonsets  E ○ delete-emptydir-data  F ○ force  B ○ disable-eviction  V ○ surge  P grace: pod's own
/// N parallel: 1  L pods: all  I timeout: none  W waits for all
/// ██████████████████████████████████████████████████████▓▓▓▓▓▓!!!!!!!!!!!!
/// 12 pods: █ 9 leave now · ▓ 1 leave later · ! 2 refused
/// pods
///         –  shop/proxy-k9x  refused  DaemonSet-managed (--ignore-daemonsets); otherwise: stays: DaemonSet-managed
///       now  shop/web-7d4b9  leaves   shop/web allows 1 disruption → n-4
/// commands
///   kubectl drain n-3
///   kordon drain n-3  prints this plan; --enforce applies it
/// ```
/// Draws the open plan. Returns the number of rows that fit.
pub fn draw(scene: &Scene, area: Rect, buf: &mut Buffer) -> usize {
    let Some(preview) = scene.screen.overlays.plan() else { return 0 };
    let inner = open(scene, Pane::Plan, area, title(scene, preview), buf);
    let inner = options::draw_edit_line(scene, preview, inner, buf);
    let inner = options::draw_options(scene, preview, inner, buf);
    let inner = draw_totals(scene, preview, inner, buf);
    let inner = draw_full_text(scene, Pane::Plan, full_text(preview, inner.width), inner, buf);
    let page = usize::from(inner.height);
    if preview.list.is_empty() {
        let (glyph, words, role) = nothing(preview);
        say(scene, glyph, &words, role, inner, buf);
        return page;
    }
    let table = TableWidget {
        columns: EventRow::columns(STATE),
        refills: false,
        rows: preview.list.len(),
        first: preview.list.first_shown(page),
        selected: preview.list.cursor(),
        looks: scene.looks(Pane::Plan),
    };
    let cells_of = |place| {
        preview.list.keys().get(place).and_then(|row| cells(scene, preview, *row)).unwrap_or_default()
    };
    scene.record(Pane::Plan, &table, cells_of);
    table.render_bare(inner, buf, cells_of);
    page
}

/// Note in the title: whether the plan can be applied, or is being computed.
pub(super) fn note(scene: &Scene) -> Runs {
    let Some(preview) = scene.screen.overlays.plan() else { return Runs::default() };
    let (words, role) = match scene.app.operations.mode {
        _ if preview.is_behind() => ("computing", Role::FeedBusy),
        Mode::DryRun => ("dry-run: nothing is written", Role::Dim),
        Mode::Enforce if preview.request.kind == PlanKind::Failure => {
            ("what-if: cannot be applied", Role::Dim)
        }
        Mode::Enforce => ("preview: A applies it", Role::Strong),
        Mode::ReadOnly => ("read-only: nothing is written", Role::Dim),
        Mode::Replay => ("replay: as of then", Role::Dim),
    };
    Runs::new(words, scene.style(role))
}

/// Title of the plan: `drain n-3 · completes in ~35s (at the latest 1m4s)`.
fn title(scene: &Scene, preview: &Preview) -> Runs {
    let runs = Runs::new(preview.request.kind.word(), scene.style(Role::Accent))
        .and(" ", scene.style(Role::Dim))
        .and(&targets(preview), scene.style(Role::Strong));
    let runs = match preview.hidden_marks {
        0 => runs,
        hidden => runs
            .and(" · ", scene.style(Role::Faint))
            .and(&format!("{} not shown in the list", text::count(hidden)), scene.style(Role::NodeWarning)),
    };
    let Some(plan) = preview.plan() else { return runs };
    let (words, role) = prospect(plan);
    runs.and(" · ", scene.style(Role::Faint)).and(&words, scene.style(role))
}

fn targets(preview: &Preview) -> String {
    match (preview.outcome(), &preview.request.targets) {
        (Some(PreviewOutcome::Failure(view)), _)
            if preview.request.whole_zones && !view.impact.zones.is_empty() =>
        {
            format!("zone {}", names(&view.impact.zones, "zones"))
        }
        (_, Targets::Nodes(nodes)) => names(nodes, "nodes"),
        (_, Targets::Pods(pods)) => names(pods, "pods"),
    }
}

/// Text for one or several names: at most two names, otherwise the number of names and the first two.
fn names<T: std::fmt::Display>(
    all: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
    what: &str,
) -> String {
    const SHOWN: usize = 2;
    let all = all.into_iter();
    let count = all.len();
    let shown: Vec<String> = all.take(SHOWN).map(|name| name.to_string()).collect();
    if count <= SHOWN {
        shown.join(", ")
    } else {
        format!("{} {what} ({}, …)", text::count(count), shown.join(", "))
    }
}

/// Draws the numbers of pods by outcome as text, and as a bar if there is space.
fn draw_totals(scene: &Scene, preview: &Preview, area: Rect, buf: &mut Buffer) -> Rect {
    let room = usize::from(area.width);
    let lines: Vec<Runs> = match preview.outcome() {
        Some(PreviewOutcome::Plan(view)) if area.height >= ROWS_BELOW_BAR && view.plan.pods.len() > 1 => {
            let bar = summary::stacked_bar(scene, view, room);
            [bar].into_iter().chain(summary::legend(scene, view, room)).collect()
        }
        Some(PreviewOutcome::Plan(view)) => summary::legend(scene, view, room),
        Some(PreviewOutcome::Failure(view)) => vec![summary::failure_totals(scene, &view.impact)],
        Some(PreviewOutcome::Fault(_)) | None => Vec::new(),
    };
    let lines: Vec<Runs> = lines.into_iter().filter(|runs| !runs.is_empty()).collect();
    if area.height < 3 {
        return area;
    }
    let used = u16::try_from(lines.len()).unwrap_or(0);
    for (y, runs) in (area.y..).zip(lines) {
        let line = cut_line(runs.line(), room);
        text::draw_line(&line, (area.x, y), area.width, buf);
    }
    Rect { y: area.y + used, height: area.height - used, ..area }
}

/// Why the plan has no rows.
fn nothing(preview: &Preview) -> (&'static str, String, Role) {
    if preview.is_behind() {
        return ("◌", "computing".into(), Role::FeedBusy);
    }
    if let Some(diff) = preview.diff.as_ref().filter(|_| preview.plan().is_some()) {
        return match diff.lines.len() {
            _ if !diff.is_ready() => ("◌", "reading the nodes".into(), Role::FeedBusy),
            0 => ("○", "nothing is written".into(), Role::Dim),
            _ => ("○", "no line matches (Esc clears the filter)".into(), Role::Dim),
        };
    }
    let Some(fault) = preview.fault() else {
        return ("○", "no row matches (Esc clears the filter)".into(), Role::Dim);
    };
    let is_blank = preview.request.edits.trim().is_empty();
    match preview.request.kind {
        PlanKind::Taint if is_blank => (
            "○",
            "key=value:Effect or key:Effect adds a taint, key:Effect- or key- removes it; separate several with spaces"
                .into(),
            Role::Dim,
        ),
        PlanKind::Metadata(field) if is_blank => {
            let more = match field {
                MetadataField::Labels => "",
                MetadataField::Annotations => ", and quote values that have some",
            };
            let words = format!(
                "key=value sets {} {}, key- removes it; separate several with spaces{more}",
                field.article(),
                field.one()
            );
            ("○", words, Role::Dim)
        }
        _ => ("✗", fault.to_owned(), Role::LevelError),
    }
}

/// Cells of the plan's row with this index.
fn cells(scene: &Scene, preview: &Preview, row: usize) -> Option<Vec<Cell>> {
    if let Some(diff) = &preview.diff {
        return diff
            .lines
            .get(row)
            .map(|line| vec![Cell::new(&line.text, scene.style(diff_role(line.kind)))]);
    }
    let section = |title: &str| vec![Cell::new(title, scene.style(Role::Heading))];
    match preview.outcome()? {
        PreviewOutcome::Plan(view) => Some(match view.rows.get(row)? {
            Row::Section(title) => section(title),
            Row::Item(item) => plan_rows::cells(scene, view, *item),
        }),
        PreviewOutcome::Failure(view) => Some(match view.rows.get(row)? {
            Row::Section(title) => section(title),
            Row::Item(item) => failure_rows::cells(scene, &view.impact, *item),
        }),
        PreviewOutcome::Fault(_) => None,
    }
}

/// Theme role of a line of the diff. The line's first character also shows its kind.
const fn diff_role(kind: DiffLineKind) -> Role {
    match kind {
        DiffLineKind::Header => Role::Heading,
        DiffLineKind::Hunk => Role::Accent,
        DiffLineKind::Added => Role::NodeReady,
        DiffLineKind::Removed => Role::LevelError,
        DiffLineKind::Context => Role::Dim,
        DiffLineKind::Removal => Role::Base,
        DiffLineKind::Note => Role::NodeWarning,
    }
}

/// Full text of the selected row; `None` if the list already shows the whole text.
fn full_text(preview: &Preview, width: u16) -> Option<String> {
    let row = preview.selected_row()?;
    if let Some(diff) = &preview.diff {
        let text = &diff.lines.get(row)?.text;
        return (text::width(text) > usize::from(width)).then(|| text.to_string());
    }
    match preview.outcome()? {
        PreviewOutcome::Plan(view) => {
            let Row::Item(item) = *view.rows.get(row)? else { return None };
            // A warning that fits its row needs no full text.
            let is_cut = |text: &String| text::width(text) + 4 > usize::from(width);
            let full = plan_rows::full_text(view, item);
            full.filter(|text| !matches!(item, PlanRow::Warning(_)) || is_cut(text))
        }
        PreviewOutcome::Failure(view) => {
            let Row::Item(item) = *view.rows.get(row)? else { return None };
            failure_rows::full_text(&view.impact, item)
        }
        PreviewOutcome::Fault(_) => None,
    }
}

/// Time of an event, counted from when the plan was made: `now`, `~9s`. An event without a time shows `otherwise`.
fn since_made(scene: &Scene, at: Option<Timestamp>, made: Timestamp, otherwise: &str) -> Cell {
    match at {
        None => event_row::when(otherwise, scene.style(Role::Dim)),
        Some(at) if at <= made => event_row::when("now", scene.style(Role::Base)),
        Some(at) => event_row::when(&format!("~{}", after(at, made)), scene.style(Role::CountdownFar)),
    }
}

/// Time until an event: `in 5m54s`; a dash for an event without a time.
fn in_time(scene: &Scene, at: Option<Timestamp>, made: Timestamp) -> Cell {
    let words = at.map_or("–".into(), |at| format!("in {}", after(at, made)));
    event_row::when(&words, scene.style(Role::CountdownFar))
}

/// Time from `made`, when the plan was made, to `at`, rounded up to whole seconds.
fn after(at: Timestamp, made: Timestamp) -> Span {
    at.since(made).rounded_up()
}

fn pod_name(scene: &Scene, key: &Key) -> Cell {
    object_name(scene, key, Role::Base)
}
