//! The pods that left: numbers by kind and minute, and who removed each pod, with the evidence.

use ratatui::{buffer::Buffer, layout::Rect, text::Span};

use super::{
    Nothing, column, draw_cause, journal::sign, object_name, open, say_nothing, sort_on_click, table_of,
};
use crate::{
    app::{DepartureColumn, Pane},
    k8s::feed::FeedKind,
    model::{DepartureEntry, DepartureStage},
    ui::{
        Scene,
        column_choice::ColumnChoice,
        text,
        theme::Role,
        widgets::{
            Cell, Column, TableWidget, Width,
            segments::{Runs, Segments},
            strip::strip,
        },
    },
};
use kordon_core::{
    engine::Severity,
    why::departure::{DepartureCertainty, DepartureKind},
};

/// Number of minutes shown as bars, one cell each.
const MINUTES: usize = 30;

/// Minimum height at which each kind has its own line. In a lower pane, all kinds share one line.
const ROOM_FOR_KINDS: u16 = 10;

/// ```text
/// ─  3 Evictions   6 Pending  [7 Departures]  41 in 2h ──────────── per minute, last 30 ─
/// ✗ node-pressure eviction   3 ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁█ up to 3
/// • API-initiated eviction  38 ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▃█▅▁▁▁▁ up to 17
///    ago  kind                            pod         node  evidence
///     4s  ✗ node-pressure eviction        shop/web-1  a-03  status Evicted: The node was low …
///    52s  • deletion, likely              shop/db-0   a-04  deleted through the API, and …
/// why condition DisruptionTarget: TerminationByKubelet · status Evicted: The node was …
/// ```
/// Draws the kinds and the departures, newest first. Returns the number of rows that fit.
pub fn draw(scene: &Scene, area: Rect, buf: &mut Buffer) -> usize {
    let list = &scene.screen.departures.list;
    let inner = open(scene, Pane::Departures, area, facts(scene), buf);
    if list.is_empty() {
        say_nothing(scene, Pane::Departures, nothing(scene), inner, buf);
        return TableWidget::page(inner);
    }
    let selected = list.selected().and_then(|id| scene.shown.departures.entry(*id));
    let inner = draw_cause(scene, Pane::Departures, selected.map(evidence), inner, buf);
    let inner = draw_counts(scene, inner, buf);
    let page = TableWidget::page(inner);
    let choice = ColumnChoice::new(scene, Pane::Departures);
    let shown = choice.columns(columns(scene, inner.width));
    let table = table_of(scene, Pane::Departures, list, shown, TableWidget::body(inner));
    let cells_of = |row| {
        let entry = list.keys().get(row).and_then(|id| scene.shown.departures.entry(*id));
        let cells_of = |entry| choice.own_cells(scene, cells(scene, entry, in_row(scene, row)));
        entry.map(cells_of).unwrap_or_default()
    };
    scene.record(Pane::Departures, &table, cells_of);
    let headings = table.render(inner, buf, cells_of);
    sort_on_click(scene, Pane::Departures, headings);
    page
}

/// Reason why the list of departures is empty.
pub(super) fn nothing(scene: &Scene) -> Nothing {
    super::nothing(scene, FeedKind::Pods, Pane::Departures, "no pod left in this session")
}

/// Caption of the bars that show the departures per minute.
pub(super) fn note(scene: &Scene) -> Option<Runs> {
    let text = format!("per minute, last {MINUTES}");
    (!scene.screen.departures.list.is_empty()).then(|| Runs::new(&text, scene.style(Role::Dim)))
}

/// Number of departures: `41 in 2h`.
fn facts(scene: &Scene) -> Runs {
    match scene.shown.departures.total() {
        0 => Runs::default(),
        total => Runs::new(&format!("{} in 2h", text::count(total)), scene.style(Role::Dim)),
    }
}

/// Draws the numbers of departures by kind and minute above the list. Returns the remaining area.
fn draw_counts(scene: &Scene, area: Rect, buf: &mut Buffer) -> Rect {
    let counts = scene.shown.departures.counts();
    if area.height < 4 || counts.is_empty() {
        return area;
    }
    let lines = usize::from(area.height - 4) / 2;
    let shown = if area.height < ROOM_FOR_KINDS {
        0
    } else if counts.len() > lines {
        lines - 1
    } else {
        counts.len()
    };
    let (alone, together) = counts.split_at(shown);
    let mut rest = area;
    let widest = alone.iter().map(|(kind, _)| text::width(kind.title())).max().unwrap_or(0);
    for (kind, count) in alone {
        let line = take_line(&mut rest);
        let (glyph, role) = sign(level(*kind));
        let runs = Runs::new(glyph, scene.style(role)).and(
            &format!(" {:widest$} {:>5} ", kind.title(), text::count(*count)),
            scene.style(role_of(*kind)),
        );
        draw_bars(scene, runs, Some(*kind), line, buf);
    }
    if !together.is_empty() {
        draw_others(scene, together, shown == 0, take_line(&mut rest), buf);
    }
    rest
}

/// Draws the bars after the name of a kind: `41 ▁▁▁▃█▅▁ up to 17`.
fn draw_bars(scene: &Scene, before: Runs, kind: Option<DepartureKind>, line: Rect, buf: &mut Buffer) {
    let runs = before.join(bars(scene, kind));
    Segments::default().left(0, runs.fitted(usize::from(line.width))).render(line, &Span::raw(" "), buf);
}

fn bars(scene: &Scene, kind: Option<DepartureKind>) -> Runs {
    let counts = scene.shown.departures.per_minute(kind, MINUTES, scene.now);
    let most = counts.iter().copied().max().unwrap_or(0);
    #[expect(clippy::cast_precision_loss, reason = "a bar has eight heights")]
    let bar = |count: &u32| strip(*count as f32 / most.max(1) as f32);
    let runs = counts.iter().fold(Runs::default(), |runs, count| {
        let role = if *count > 0 { Role::Base } else { Role::Faint };
        runs.and(&bar(count).to_string(), scene.style(role))
    });
    let most = if most > 0 { format!(" up to {most}") } else { String::new() };
    runs.and(&most, scene.style(Role::Dim))
}

/// Draws the kinds of departures that have no line of their own, as many as fit:
/// `API-initiated eviction 14 · deletion 3`. If no kind has its own line, bars with the sum of all kinds follow.
fn draw_others(scene: &Scene, kinds: &[(DepartureKind, usize)], are_all: bool, line: Rect, buf: &mut Buffer) {
    let room = usize::from(line.width);
    let bars = if are_all { bars(scene, None) } else { Runs::default() };
    let bars = if bars.width() + text::width(DepartureKind::ALL[0].title()) + 8 <= room {
        bars
    } else {
        Runs::default()
    };
    let room = room.saturating_sub(bars.width() + usize::from(!bars.is_empty()) * 2);
    let mut runs = Runs::default();
    for (place, (kind, count)) in kinds.iter().enumerate() {
        let (glyph, role) = sign(level(*kind));
        let part = format!(" {} {}", kind.title(), text::count(*count));
        let more = format!(" · {} more", kinds.len() - place);
        let separator = if place == 0 { "" } else { " · " };
        let is_last = place + 1 == kinds.len();
        let needed =
            text::width(separator) + 1 + text::width(&part) + if is_last { 0 } else { text::width(&more) };
        if runs.width() + needed > room {
            let more = if place == 0 { more.trim_start_matches(" · ") } else { &more };
            runs = runs.and(more, scene.style(Role::Dim));
            break;
        }
        runs = runs
            .and(separator, scene.style(Role::Faint))
            .and(glyph, scene.style(role))
            .and(&part, scene.style(role_of(*kind)));
    }
    Segments::default().left(0, runs).right(0, bars).render(line, &Span::raw(" "), buf);
}

fn take_line(area: &mut Rect) -> Rect {
    let line = Rect { height: 1, ..*area };
    *area = Rect { y: area.y + 1, height: area.height - 1, ..*area };
    line
}

fn columns(scene: &Scene, width: u16) -> Vec<Column> {
    use DepartureColumn as By;
    // A narrow pane cuts pods' names sooner, so that the name of the node still fits.
    let longest_pod = match width {
        0..100 => 30,
        _ => 44,
    };
    let sort = scene.screen.departures.sort;
    vec![
        column(sort, By::Ago, "ago", Width::Fit(5, 9)).right(),
        column(sort, By::Kind, "kind", Width::Fit(24, 34)),
        column(sort, By::Pod, "pod", Width::Fit(16, longest_pod)),
        column(sort, By::Node, "node", Width::Fit(6, 24)).gives_way(1),
        Column::plain("evidence", Width::Grow(16, 1)).gives_way(2),
    ]
}

/// Number of departures that a row stands for. In a filtered list, each departure has its own row.
fn in_row(scene: &Scene, row: usize) -> usize {
    let id = scene.screen.departures.list.keys().get(row);
    let is_filtered = !scene.screen.filter(Pane::Departures).is_empty();
    id.filter(|_| !is_filtered).and_then(|id| scene.shown.views.loops.departures_in_row(*id)).unwrap_or(1)
}

fn cells(scene: &Scene, entry: &DepartureEntry, in_row: usize) -> Vec<Cell> {
    let dim = scene.style(Role::Dim);
    let departure = &entry.departure;
    let (glyph, role) = sign(level(departure.kind));
    let ago = entry.at.map_or(String::new(), |at| text::age(scene.now, at));
    let certainty = match departure.certainty {
        DepartureCertainty::Certain => String::new(),
        DepartureCertainty::Likely | DepartureCertainty::Possible => {
            format!(", {}", departure.certainty.as_str())
        }
    };
    let more = if in_row > 1 { format!(" and {} more", in_row - 1) } else { String::new() };
    let state = match entry.stage {
        DepartureStage::Terminating => "terminating · ",
        DepartureStage::Finished | DepartureStage::Gone { .. } | DepartureStage::Restarted => "",
    };
    vec![
        Cell::new(&ago, dim),
        Cell::new(glyph, scene.style(role))
            .and(" ", dim)
            .and(departure.kind.title(), scene.style(role_of(departure.kind)))
            .and(&certainty, dim),
        object_name(scene, &entry.pod, Role::Base).and(&more, dim),
        Cell::new(entry.node.as_deref().unwrap_or_default(), dim),
        Cell::new(state, scene.style(Role::EvictionTerminating)).and(&text::brief(departure.reason()), dim),
    ]
}

/// All evidence about who removed a pod. Evidence to the contrary begins with `against: `.
fn evidence(entry: &DepartureEntry) -> String {
    let evidence = entry.departure.evidence.iter();
    let parts: Vec<String> = evidence
        .map(
            |evidence| {
                if evidence.agrees { evidence.text.clone() } else { format!("against: {}", evidence.text) }
            },
        )
        .collect();
    parts.join(" · ")
}

/// Severity of a kind of departure.
const fn level(kind: DepartureKind) -> Severity {
    match kind {
        DepartureKind::NodePressure | DepartureKind::OomKill | DepartureKind::StorageLimit => Severity::Error,
        DepartureKind::Rejection
        | DepartureKind::TaintEviction
        | DepartureKind::DeviceTaintEviction
        | DepartureKind::Preemption
        | DepartureKind::GarbageCollection
        | DepartureKind::OutOfService
        | DepartureKind::NodeShutdown
        | DepartureKind::Failure => Severity::Warning,
        DepartureKind::ApiEviction
        | DepartureKind::ScaleDown
        | DepartureKind::Deletion
        | DepartureKind::JobCompletion
        | DepartureKind::Completion => Severity::Info,
    }
}

const fn role_of(kind: DepartureKind) -> Role {
    match level(kind) {
        Severity::Error => Role::NodeCritical,
        Severity::Warning => Role::NodeWarning,
        Severity::Info => Role::Base,
    }
}
