//! The detail of a node or a pod.

use ratatui::{buffer::Buffer, layout::Rect};

use super::{draw_full_text, open, plain, say};
use crate::{
    app::{
        Pane,
        detail::{Detail, DetailRow, DetailSubject, Tone},
    },
    time::Timestamp,
    ui::{
        Scene, text,
        theme::Role,
        widgets::{Cell, TableWidget, Width, segments::Runs},
    },
    why::{Step, StepTime},
};

/// ```text
/// ─ 2 Detail  node n-3 ───────────────────────────────────────────────────
/// why
///   ✓ 03:12:05    40s ago  last heartbeat: its Lease was renewed
///   → 03:12:55   in   10s  node-monitor-grace-period 50s ends
/// conditions
///   Ready           4d     True · KubeletReady: kubelet is posting ready status
/// ```
/// Draws the open detail; returns how many rows there is room for.
pub fn draw(scene: &Scene, area: Rect, buf: &mut Buffer) -> usize {
    let Some(detail) = scene.screen.overlays.detail() else { return 0 };
    let inner = open(scene, Pane::Detail, area, title(scene, detail), buf);
    let row = |place: usize| detail.list.keys().get(place).and_then(|row| detail.rows.get(*row));
    let selected = detail.list.cursor().and_then(row).and_then(full_text);
    let inner = draw_full_text(scene, Pane::Detail, selected, inner, buf);
    let page = usize::from(inner.height);
    if detail.list.is_empty() {
        say(scene, "○", "no longer in the cluster", Role::Dim, inner, buf);
        return page;
    }
    let table = TableWidget {
        columns: vec![
            plain("", Width::Fit(10, 20)),
            plain("", Width::Fit(8, 10)).right(),
            plain("", Width::Grow(20, 1)),
        ],
        rows: detail.list.len(),
        first: detail.list.first_shown(page),
        selected: detail.list.cursor(),
        looks: scene.looks(Pane::Detail),
    };
    table.render_bare(inner, buf, |place| row(place).map(|row| cells(scene, row)).unwrap_or_default());
    page
}

fn title(scene: &Scene, detail: &Detail) -> Runs {
    let (kind, name) = match &detail.subject {
        DetailSubject::Node(name) => ("node ", name.to_string()),
        DetailSubject::Pod(key) => ("pod ", key.to_string()),
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
        DetailRow::Section(title) => vec![Cell::new(title, scene.style(Role::Heading))],
        DetailRow::Link(link) => link_cells(scene, link),
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

fn link_cells(scene: &Scene, link: &Step) -> Vec<Cell> {
    let (sign, sign_role, words) = match link.tense {
        StepTime::Past => ("✓", Role::Dim, Role::Base),
        StepTime::Holds => ("●", Role::Accent, Role::Base),
        StepTime::Ahead => ("→", Role::CountdownSoon, Role::Base),
        StepTime::Not => ("✗", Role::EvictionNever, Role::EvictionNever),
    };
    let clock = link.at.map_or(String::new(), |at| moment(scene, at));
    vec![
        Cell::new("  ", scene.style(Role::Dim))
            .and(sign, scene.style(sign_role))
            .and(&format!(" {clock}"), scene.style(Role::Dim)),
        link.at.map_or_else(Cell::default, |at| distance(scene, at, link.estimated)),
        Cell::new(&text::brief(&link.text), scene.style(words)),
    ]
}

/// The time of day, or the date where that is a day or more away.
fn moment(scene: &Scene, at: Timestamp) -> String {
    let far = at.since(scene.now).as_secs().abs() >= 86_400;
    if far { at.utc().format("%Y-%m-%d").to_string() } else { text::clock(at) }
}

/// How long ago, or in how long.
fn distance(scene: &Scene, at: Timestamp, estimated: bool) -> Cell {
    if at > scene.now {
        return scene.countdown(at, estimated);
    }
    let mark = if estimated { "~" } else { "" };
    Cell::new(mark, scene.style(Role::Faint)).and(&text::age(scene.now, at), scene.style(Role::Dim))
}

/// The full text of the selected row, which may be cut.
fn full_text(row: &DetailRow) -> Option<String> {
    match row {
        DetailRow::Section(_) => None,
        DetailRow::Link(link) => Some(link.text.clone()),
        DetailRow::Fact { name, text, .. } => Some(format!("{name} {text}").trim().to_owned()),
    }
}
