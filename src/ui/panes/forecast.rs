//! The forecast: what happens in the next minutes if nobody acts, on a time axis and as a list.

use ratatui::{buffer::Buffer, layout::Rect, style::Style};

use super::{Nothing, draw_cause, open, plain, say};
use crate::{
    app::Pane,
    engine::Confidence,
    forecast::{Forecast, ForecastRow, ForecastTotals, NodeForecast, leave_endpoints},
    ui::{
        Scene, text,
        theme::Role,
        widgets::{Cell, TableWidget, Width, segments::Runs, strip::strip},
    },
};

/// What a lane counts.
type Count = fn(&ForecastTotals) -> usize;

/// Cells before the axis.
const LABELS: u16 = 10;

/// ```text
/// ─ 4 Forecast  10m · 2 Unknown · 2 tainted · 41 evicted ──────
///           now         3m         6m         9m
/// Unknown   ▁█▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁
/// tainted   ▁▁█▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁
/// evicted   ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▂█▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁
///     20s  n-3  Unknown
///   5m20s  n-3  12 pods evicted
/// ```
/// Draws the forecast; returns how many rows there is room for.
pub fn draw(scene: &Scene, area: Rect, buf: &mut Buffer) -> usize {
    let rows = &scene.screen.forecast;
    let forecast = scene.shown.forecast.as_ref();
    let totals = forecast.map(|forecast| forecast.totals(scene.now)).unwrap_or_default();
    let inner = open(scene, Pane::Forecast, area, facts(scene, forecast, totals), buf);
    let Some(forecast) = forecast.filter(|_| !totals.is_empty()) else {
        let (glyph, words, role) = nothing(scene);
        say(scene, glyph, &words, role, inner, buf);
        return usize::from(inner.height);
    };
    let inner = draw_axis(scene, forecast, inner, buf);
    let inner = draw_cause(scene, Pane::Forecast, rows.selected().map(|row| row.why.to_string()), inner, buf);
    let page = usize::from(inner.height);
    let table = TableWidget {
        columns: vec![
            plain("", Width::Fit(6, 13)).right(),
            plain("", Width::Fit(8, 30)),
            plain("", Width::Grow(12, 1)),
        ],
        rows: rows.list.len(),
        first: rows.list.first_shown(page),
        selected: rows.list.cursor(),
        looks: scene.looks(Pane::Forecast),
    };
    table.render_bare(inner, buf, |row| rows.row(row).map(|row| cells(scene, row)).unwrap_or_default());
    page
}

/// `10m · 2 Unknown · 2 tainted · 41 evicted`, with ` (30 to 44, 40 expected)` where chance decides
fn facts(scene: &Scene, forecast: Option<&Forecast>, totals: ForecastTotals) -> Runs {
    let (dim, faint) = (scene.style(Role::Dim), scene.style(Role::Faint));
    let Some(forecast) = forecast else { return Runs::default() };
    let mut runs = Runs::new(&format!("next {}", text::left(forecast.until, scene.now)), dim);
    for (count, word, role) in [
        (totals.unknown, "Unknown", Role::NodeCritical),
        (totals.tainted, "tainted", Role::TaintNoExecute),
        (totals.deleted, "evicted", Role::EvictionPredicted),
    ] {
        if count > 0 {
            runs = runs.and(" · ", faint).and(&format!("{} {word}", text::count(count)), scene.style(role));
        }
    }
    if !scene.shown.eviction_gaps().is_empty() {
        runs = runs.and(" · evictions unknown", faint);
    } else if forecast.deleted.is_by_chance() {
        runs = runs.and(&format!(" ({})", forecast.deleted), dim);
    }
    runs
}

/// Why there is nothing to draw.
pub(super) fn nothing(scene: &Scene) -> Nothing {
    let (glyph, text, role) = match scene.shown.views.confidence {
        Some(Confidence::Live | Confidence::Assumed) if !scene.shown.eviction_gaps().is_empty() => {
            ("○", "all nodes healthy; evictions unknown", Role::Dim)
        }
        Some(Confidence::Live | Confidence::Assumed) => {
            ("○", "nothing expected: all nodes healthy, no evictions", Role::Dim)
        }
        Some(Confidence::Disconnected { .. }) => {
            ("✗", "disconnected from nodes and Leases: no predictions", Role::FeedBroken)
        }
        Some(Confidence::NoController { .. }) => {
            ("✗", "no active kube-controller-manager: no evictions until there is one", Role::FeedBroken)
        }
        None => ("◌", "waiting for nodes", Role::FeedBusy),
    };
    (glyph, text.into(), role)
}

/// Draws how much happens when, where there is room for it and a list; returns the area that is left.
fn draw_axis(scene: &Scene, forecast: &Forecast, area: Rect, buf: &mut Buffer) -> Rect {
    if area.height < 7 || area.width < LABELS + 20 {
        return area;
    }
    let cells = area.width - LABELS;
    draw_ticks(scene, forecast, Rect { x: area.x + LABELS, width: cells, height: 1, ..area }, buf);
    let density = forecast.density(scene.now, usize::from(cells));
    let lanes: [(&str, Count, Role); 3] = [
        ("Unknown", |totals| totals.unknown, Role::NodeCritical),
        ("tainted", |totals| totals.tainted, Role::TaintNoExecute),
        ("evicted", |totals| totals.deleted, Role::EvictionPredicted),
    ];
    for (y, (label, of, role)) in (area.y + 1..).zip(lanes) {
        buf.set_string(area.x, y, label, scene.style(Role::Heading));
        draw_lane(&density, of, [scene.style(Role::Faint), scene.style(role)], (area.x + LABELS, y), buf);
    }
    Rect { y: area.y + 4, height: area.height - 4, ..area }
}

fn draw_lane(
    density: &[ForecastTotals],
    of: Count,
    [none, some]: [Style; 2],
    (x, y): (u16, u16),
    buf: &mut Buffer,
) {
    let most = density.iter().map(of).max().unwrap_or(0).max(1);
    for (x, totals) in (x..).zip(density) {
        #[expect(clippy::cast_precision_loss, reason = "a bar has eight heights")]
        let share = of(totals) as f32 / most as f32;
        let (bar, style) = if of(totals) == 0 { ('·', none) } else { (strip(share), some) };
        buf[(x, y)].set_char(bar).set_style(style);
    }
}

/// `now         3m         6m         9m`
fn draw_ticks(scene: &Scene, forecast: &Forecast, area: Rect, buf: &mut Buffer) {
    const STEPS: [i64; 9] = [30, 60, 120, 180, 300, 600, 1800, 3600, 7200];
    let whole = forecast.until.since(scene.now).as_secs().max(1);
    let cells = i64::from(area.width);
    let step = STEPS.into_iter().find(|step| step * cells / whole >= 9).unwrap_or(14_400);
    buf.set_string(area.x, area.y, "now", scene.style(Role::Dim));
    for tick in 1..=whole / step {
        let at = scene.now + crate::time::Span::from_secs(tick * step);
        let label = text::left(at, scene.now);
        let x = u16::try_from(tick * step * cells / whole).unwrap_or(u16::MAX);
        if u32::from(x) + u32::try_from(label.len()).unwrap_or(0) <= u32::from(area.width) {
            buf.set_string(area.x + x, area.y, label, scene.style(Role::Dim));
        }
    }
}

fn cells(scene: &Scene, row: &ForecastRow) -> Vec<Cell> {
    let (words, role) = match &row.event {
        NodeForecast::Unknown(0) => ("Unknown".to_owned(), Role::NodeCritical),
        NodeForecast::Unknown(pods) => (format!("Unknown, {}", leave_endpoints(*pods)), Role::NodeCritical),
        NodeForecast::NoExecute(key) => (format!("{}:NoExecute", text::brief(key)), Role::TaintNoExecute),
        NodeForecast::Deletions(1) => ("1 pod evicted".into(), Role::EvictionPredicted),
        NodeForecast::Deletions(pods) => {
            (format!("{} pods evicted", text::count(*pods)), Role::EvictionPredicted)
        }
    };
    let cell = Cell::new(&words, scene.style(role));
    let cell = match &row.chance {
        Some(chance) => {
            cell.and(&format!(" {}, any of {}", chance.percent(), chance.among.len()), scene.style(Role::Dim))
        }
        None => cell,
    };
    vec![scene.countdown(row.at, row.chance.is_some()), Cell::new(&row.node, scene.style(Role::Base)), cell]
}
