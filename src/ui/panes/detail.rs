//! The detail of a node, a pod or a budget.

use ratatui::{buffer::Buffer, layout::Rect, style::Style};

use super::{draw_below, open, say, table_of};
use crate::{
    app::{
        Keymap, Pane, UserAction,
        detail::{Detail, DetailRow, DetailSubject, EvictionPlace, Fold, Tone, YamlRow},
        preview::PlanKind,
    },
    model::{
        SignalPressure, TimelineEntry, TimelineSource,
        suggestions::{Suggestion, SuggestionKind},
    },
    ui::{
        Scene, text,
        theme::Role,
        widgets::{Cell, Column, Width, gauge, segments::Runs, strip},
    },
};
use kordon_core::{
    cluster::ClusterEvent,
    engine::Severity,
    plan::words::counted,
    pressure::{RankedPod, ThresholdKind},
    why::{Step, Tense},
};
use kordon_time::{Span, Timestamp};

/// Width of the pane, in cells, below which labels and times share a column.
const NARROW: u16 = 100;

/// ```text
/// ─ 2 Detail  node n-3 ───────────────────────────────────────────────────
/// next
///   past
///   · 03:12:05            40s ago  last heartbeat: its Lease was renewed
///   expected
///   → 03:12:55             in 10s  node-monitor-grace-period 50s ends
/// what you can do                  dry-run: Enter shows the plan, nothing is written
///   wait                   in 10s  until it renews its Lease; without that it becomes Unknown
///   cordon                      c  the scheduler places no new pods here; 7 pods stay
///                                  $ kubectl cordon n-3
/// conditions
///   Ready                      4d  True · KubeletReady: kubelet is posting ready status
/// timeline                         this session and Events, newest first
///   ▲ 03:12:05            40s ago  NodeNotReady · Node n-3 status is now: NodeNotReady · node-controller
/// labels
///   topology.kubernetes.io/zone=a
/// ```
/// Draws the open detail. Returns the number of rows that fit.
pub fn draw(scene: &Scene, area: Rect, buf: &mut Buffer) -> usize {
    let Some(detail) = scene.screen.overlays.detail() else { return 0 };
    let inner = open(scene, Pane::Detail, area, title(scene, detail), buf);
    let row = |place: usize| detail.list.keys().get(place).and_then(|row| detail.rows.get(*row));
    let selected = detail.list.cursor().and_then(row).and_then(|row| full_text(scene, row));
    let inner = draw_below(scene, Pane::Detail, "", selected, inner, buf);
    let page = usize::from(inner.height);
    if detail.list.is_empty() {
        say(scene, "○", "no longer in the cluster: Esc goes back", Role::Dim, inner, buf);
        return page;
    }
    let is_narrow = inner.width < NARROW;
    let text = Column::plain("", Width::Grow(20, 1));
    let columns = if is_narrow {
        vec![Column::plain("", Width::Fit(14, 28)), text]
    } else {
        vec![Column::plain("", Width::Fixed(22)), Column::plain("", Width::Fixed(10)).right(), text]
    };
    let table = table_of(scene, Pane::Detail, &detail.list, columns, inner);
    let cells_of = |place| row(place).map(|row| cells(scene, row)).unwrap_or_default();
    scene.record(Pane::Detail, &table, cells_of);
    table.render_bare(inner, buf, |place| {
        let cells = cells_of(place);
        if is_narrow { joined(cells) } else { cells }
    });
    page
}

/// Joins the label and the time of a row, so that its text has more of a narrow pane.
fn joined(cells: Vec<Cell>) -> Vec<Cell> {
    match <[Cell; 3]>::try_from(cells) {
        Ok([label, time, text]) if time.is_empty() => vec![label, text],
        Ok([label, time, text]) => vec![label.and(" ", Style::new()).join(time), text],
        Err(cells) => cells,
    }
}

fn title(scene: &Scene, detail: &Detail) -> Runs {
    let (kind, name) = match &detail.subject {
        DetailSubject::Node(name) => ("node ", name.to_string()),
        DetailSubject::Pod(key) => ("pod ", key.to_string()),
        DetailSubject::Budget(key) => ("budget ", key.to_string()),
    };
    let runs = Runs::new(kind, scene.style(Role::Dim)).and(&name, scene.style(Role::Strong));
    if detail.is_there(&scene.shown.cluster) {
        runs
    } else {
        runs.and(" (gone)", scene.style(Role::NodeWarning))
    }
}

fn cells(scene: &Scene, row: &DetailRow) -> Vec<Cell> {
    match row {
        DetailRow::Section { title, note } => vec![
            Cell::new(title, scene.style(Role::Heading)),
            Cell::default(),
            Cell::new(note, scene.style(Role::Dim)),
        ],
        DetailRow::Tense(tense) => {
            vec![Cell::new("  ", scene.style(Role::Dim)).and(tense.title(), scene.style(Role::Dim))]
        }
        DetailRow::Step(step) => step_cells(scene, step),
        DetailRow::Suggestion(suggestion) => suggestion_cells(scene, suggestion),
        DetailRow::Caution(text) => vec![
            Cell::default(),
            Cell::default(),
            Cell::new("! ", scene.style(Role::NodeWarning)).and(&text::brief(text), scene.style(Role::Base)),
        ],
        DetailRow::Command(text) => {
            let command = Cell::new("$ ", scene.style(Role::Faint)).and(text, scene.style(Role::Dim));
            vec![Cell::default(), Cell::default(), command]
        }
        DetailRow::Past(entry) => past_cells(scene, entry),
        DetailRow::Signal(signal) => signal_cells(scene, signal),
        DetailRow::EvictionPlace(place) => place_cells(scene, place),
        DetailRow::Pair { key, value } => {
            let key = Cell::new("  ", scene.style(Role::Dim)).and(key, scene.style(Role::Base));
            vec![key.and("=", scene.style(Role::Faint)).and(value, scene.style(Role::Dim))]
        }
        DetailRow::Yaml(row) => vec![yaml_cell(scene, row)],
        DetailRow::Fact { name, at, text: words, tone } => {
            let role = match tone {
                Tone::Plain => Role::Base,
                Tone::Marked => Role::NodeNotice,
            };
            vec![
                Cell::new("  ", scene.style(Role::Dim)).and(name, scene.style(Role::Dim)),
                at.map_or_else(Cell::default, |at| {
                    Cell::new(&text::age(scene.now, at), scene.style(Role::Dim))
                }),
                Cell::new(&text::brief(words), scene.style(role)),
            ]
        }
    }
}

/// Widths in cells of a resource's gauge and of its trend, which follows the gauge.
const GAUGE: usize = 16;
const TREND: usize = 8;

/// Row of an eviction signal of the kubelet:
/// `memory   6.1Gi  ━┃━━━╸────── ▇▆▅▄ reached in ~4m · of 32Gi · evicts below 512Mi`.
fn signal_cells(scene: &Scene, signal: &SignalPressure) -> Vec<Cell> {
    let dim = scene.style(Role::Dim);
    // Long names of signals do not fit the column, so they are shortened. The full text of the selected row has the
    // whole name.
    let short = signal.signal.as_str().trim_end_matches(".available");
    let name = Cell::new("  ", dim).and(short, scene.style(Role::Base));
    let Some(level) = signal.level else { return vec![name] };
    let role = match (&signal.evicts, signal.reaches_threshold) {
        (Some(_), _) => Role::NodeCritical,
        (None, Some(_)) => Role::NodeNotice,
        (None, None) => Role::Base,
    };
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    let share = |amount: i64| amount as f32 / level.capacity.max(1) as f32;
    let thresholds = signal.thresholds.iter().map(|threshold| share(threshold.level(level.capacity)));
    let (filled, rest) = gauge(share(level.available), thresholds, GAUGE);
    let available = signal.signal.amount(level.available);
    let bars = Cell::new(&filled, scene.style(role)).and(&rest, scene.style(Role::Faint));
    let trend = trend(signal);
    vec![
        name,
        Cell::new(&available, scene.style(role)),
        bars.and(&format!(" {trend:TREND$} "), dim).and(&signal_words(scene, signal), dim),
    ]
}

/// The latest levels of an eviction signal in this session, as bars between their minimum and maximum; empty if they
/// vary by at most 0.1 % of the capacity.
fn trend(signal: &SignalPressure) -> String {
    let newest = &signal.samples[signal.samples.len().saturating_sub(TREND)..];
    let (low, high) = (newest.iter().min().copied().unwrap_or(0), newest.iter().max().copied().unwrap_or(0));
    let capacity = signal.level.map_or(0, |level| level.capacity);
    let range = high.saturating_sub(low);
    if range <= capacity / 1000 {
        return String::new();
    }
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    let share = |level: i64| level.saturating_sub(low) as f32 / range as f32;
    newest.iter().map(|level| strip(share(*level))).collect()
}

/// Description of an eviction signal: `reached in ~4m · of 32Gi · evicts below 512Mi, below 1.5Gi for 1m30s`.
fn signal_words(scene: &Scene, signal: &SignalPressure) -> String {
    let thresholds: Vec<String> = signal
        .thresholds
        .iter()
        .map(|threshold| {
            let value = threshold.value.words(signal.signal);
            match threshold.kind {
                ThresholdKind::Hard => format!("below {value}"),
                ThresholdKind::Soft { grace } => format!("below {value} for {grace}"),
            }
        })
        .collect();
    let capacity = signal.level.map(|level| format!("of {}", signal.signal.amount(level.capacity)));
    let evicts = (!thresholds.is_empty()).then(|| format!("evicts {}", thresholds.join(", ")));
    let when = match (&signal.evicts, signal.reaches_threshold) {
        (Some((_, at)), _) if *at <= scene.now => Some("evicting".to_owned()),
        (Some((_, at)), _) => Some(format!("evicts within {}", text::left(*at, scene.now))),
        (None, Some(after)) => Some(format!("reached in ~{}", Span::from_secs(after.as_secs()))),
        (None, None) => None,
    };
    when.into_iter().chain(capacity).chain(evicts).collect::<Vec<_>>().join(" · ")
}

/// A place in the order of eviction:
/// `1. BestEffort  shop/web-1 · uses 126Mi, requests none · priority 0 · then 640Mi available`.
fn place_cells(scene: &Scene, place: &EvictionPlace) -> Vec<Cell> {
    let role = match (place.pod.exemption, place.available) {
        (Some(_), _) => Role::Dim,
        (None, Some(_)) => Role::NodeWarning,
        (None, None) => Role::Base,
    };
    vec![
        Cell::new("  ", scene.style(Role::Dim)).and(&format!("{}.", place.pod.place), scene.style(role)),
        Cell::new(place.pod.pod.resources.kubelet.qos.as_str(), scene.style(Role::Dim)),
        Cell::new(&text::brief(&place_words(place)), scene.style(role)),
    ]
}

fn place_words(place: &EvictionPlace) -> String {
    let RankedPod { pod, signal, exemption, .. } = &place.pod;
    let end = match (exemption, place.available) {
        (Some(why), _) => format!(" · never evicted: {}", why.as_str()),
        (None, Some(available)) => {
            format!(" · then {} available", signal.amount(available))
        }
        (None, None) => String::new(),
    };
    format!("{} · {} · priority {}{end}", pod.key, place.pod.reason(), pod.priority)
}

/// A timeline entry: `▲ 03:12:45   10s ago  NodeNotReady · Node n-3 status is now: NodeNotReady · node-controller`.
fn past_cells(scene: &Scene, entry: &TimelineEntry) -> Vec<Cell> {
    let level = match &entry.source {
        TimelineSource::Session(entry) => entry.level,
        TimelineSource::Cluster(event) if event.is_warning => Severity::Warning,
        TimelineSource::Cluster(_) => Severity::Info,
    };
    let (glyph, role) = super::journal::sign(level);
    let (dim, base) = (scene.style(Role::Dim), scene.style(Role::Base));
    let clock = entry.at.map_or(String::new(), |at| moment(scene, at));
    vec![
        Cell::new("  ", dim).and(glyph, scene.style(role)).and(&format!(" {clock}"), dim),
        entry.at.map_or_else(Cell::default, |at| distance(scene, at, false)),
        match &entry.source {
            TimelineSource::Session(entry) => Cell::new(&super::journal::words(entry), base),
            TimelineSource::Cluster(event) => Cell::new(&event.reason, scene.style(Role::Strong))
                .and(&text::brief(&event_words(event)), base),
        },
    ]
}

/// Text of an Event after its reason: ` · 4 times in 3m20s · disk pressure · kubelet`.
fn event_words(event: &ClusterEvent) -> String {
    let span = event.first.zip(event.last).map(|(first, last)| last.since(first));
    let times = span.filter(|_| event.count > 1).map(|span| {
        format!("{} in {span}", counted(usize::try_from(event.count).unwrap_or(usize::MAX), "time", "times"))
    });
    let parts = [times, Some(event.message.clone()), Some(event.source.to_string())];
    parts.into_iter().flatten().filter(|part| !part.is_empty()).map(|part| format!(" · {part}")).collect()
}

/// A line of YAML: a sign for a match, a sign for a foldable block, the line's key, and the rest in another style:
/// `›▸ labels: … 3 lines`.
fn yaml_cell(scene: &Scene, row: &YamlRow) -> Cell {
    let line = &*row.text;
    let sign = match row.fold {
        Fold::Leaf => "  ",
        Fold::Open => "▾ ",
        Fold::Folded(_) => "▸ ",
    };
    let cell = Cell::new(if row.is_match { "›" } else { " " }, scene.style(Role::Accent))
        .and(sign, scene.style(Role::Faint));
    let key = scene.style(if row.is_match { Role::Accent } else { Role::Base });
    let start = line.len() - line.trim_start_matches([' ', '-']).len();
    let end = line[start..].find(": ").map(|end| start + end).or(line.strip_suffix(':').map(str::len));
    let cell = match end.filter(|end| line[..*end].bytes().all(|byte| byte != b'"')) {
        Some(end) => cell.and(&line[..end], key).and(&line[end..], scene.style(Role::Dim)),
        None => cell.and(line, if row.is_match { key } else { scene.style(Role::Dim) }),
    };
    match row.fold {
        Fold::Folded(hidden) => {
            cell.and(&format!(" … {}", counted(hidden, "line", "lines")), scene.style(Role::Faint))
        }
        Fold::Leaf | Fold::Open => cell,
    }
}

/// Three cells of a suggestion: its name, its time or key, and its effect. The second cell shows the key if the
/// suggestion has no time.
fn suggestion_cells(scene: &Scene, suggestion: &Suggestion) -> Vec<Cell> {
    let key = match suggestion.at {
        Some(at) => distance(scene, at, false),
        None => Cell::new(&key_of(&scene.app.preferences.keymap, suggestion), scene.style(Role::Key)),
    };
    vec![
        Cell::new("  ", scene.style(Role::Dim)).and(suggestion.kind.title(), scene.style(Role::Strong)),
        key,
        Cell::new(&text::brief(suggestion.outcome()), scene.style(Role::Base)),
    ]
}

/// Key that opens the plan of a suggestion; empty if kordon has no such plan.
fn key_of(keymap: &Keymap, suggestion: &Suggestion) -> String {
    let kind = match suggestion.kind {
        SuggestionKind::Cordon => PlanKind::Cordon,
        SuggestionKind::Drain => PlanKind::Drain,
        SuggestionKind::WhatIf => PlanKind::Failure,
        SuggestionKind::Evict => PlanKind::Evict,
        SuggestionKind::Delete => PlanKind::Delete,
        // Suggestions such as uncordon open their plan only with Enter: a command key acts on the node of the detail,
        // but the suggestion may name another node.
        SuggestionKind::Uncordon
        | SuggestionKind::OutOfService
        | SuggestionKind::BackInService
        | SuggestionKind::ForceDelete => return "Enter".into(),
        SuggestionKind::Wait
        | SuggestionKind::RestartKubelet
        | SuggestionKind::DeleteNode
        | SuggestionKind::RemoveFinalizers
        | SuggestionKind::ScaleUp
        | SuggestionKind::RelaxBudget
        | SuggestionKind::AlwaysAllow
        | SuggestionKind::DeleteBudget
        | SuggestionKind::NarrowBudget
        | SuggestionKind::Place => return String::new(),
    };
    keymap.key_for(UserAction::Plan(kind))
}

fn step_cells(scene: &Scene, step: &Step) -> Vec<Cell> {
    let (sign_role, words) = match step.tense {
        Tense::Past => (Role::Dim, Role::Base),
        Tense::Present => (Role::Accent, Role::Base),
        Tense::Future => (Role::CountdownSoon, Role::Base),
        Tense::Never => (Role::EvictionNever, Role::EvictionNever),
    };
    let clock = step.at.map_or(String::new(), |at| moment(scene, at));
    vec![
        Cell::new("  ", scene.style(Role::Dim))
            .and(step.tense.glyph(), scene.style(sign_role))
            .and(&format!(" {clock}"), scene.style(Role::Dim)),
        step.at.map_or_else(Cell::default, |at| distance(scene, at, step.estimated)),
        Cell::new(&text::brief(&step.text), scene.style(words)),
    ]
}

/// Time of day, or the date if the moment is at least a day away.
fn moment(scene: &Scene, at: Timestamp) -> String {
    let far = at.since(scene.now).as_secs().abs() >= 86_400;
    if far { at.utc().format("%Y-%m-%d").to_string() } else { text::clock(at) }
}

/// Time since or until a moment.
fn distance(scene: &Scene, at: Timestamp, estimated: bool) -> Cell {
    if at > scene.now {
        return Cell::new("in ", scene.style(Role::Dim)).join(scene.countdown(at, estimated));
    }
    let mark = if estimated { "~" } else { "" };
    let age = format!("{} ago", text::age(scene.now, at));
    Cell::new(mark, scene.style(Role::Faint)).and(&age, scene.style(Role::Dim))
}

/// Full text of the selected row, which may be cut in the list.
fn full_text(scene: &Scene, row: &DetailRow) -> Option<String> {
    match row {
        DetailRow::Section { .. } | DetailRow::Tense(_) => None,
        DetailRow::Step(step) => Some(text::brief(&step.text)),
        DetailRow::Suggestion(suggestion) => {
            let parts = [suggestion.outcome()].into_iter().chain(suggestion.cautions());
            Some(text::brief(&parts.collect::<Vec<_>>().join(" · ")))
        }
        DetailRow::Caution(words) => Some(text::brief(words)),
        DetailRow::Command(text) => Some(text.clone()),
        DetailRow::Fact { name, text: words, .. } => Some(text::brief(format!("{name} {words}").trim())),
        DetailRow::Past(entry) => Some(match &entry.source {
            TimelineSource::Session(entry) => super::journal::full_text(entry),
            TimelineSource::Cluster(event) => format!("{}{}", event.reason, event_words(event)),
        }),
        DetailRow::Signal(signal) => Some(format!("{}: {}", signal.signal, signal_words(scene, signal))),
        DetailRow::EvictionPlace(place) => Some(text::brief(&place_words(place))),
        // The list may cut a long key, so the full text repeats it.
        DetailRow::Pair { key, value } => Some(format!("{key}={value}")),
        DetailRow::Yaml(row) => Some(row.text.trim_start().to_owned()),
    }
}
