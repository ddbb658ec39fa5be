//! The forecast: what happens to each node if nobody acts, as a Gantt chart.

use std::collections::BTreeSet;

use ratatui::{buffer::Buffer, layout::Rect, text::Span as Run};

use super::{Nothing, draw_cause, evictions, open, say_nothing};
use crate::{
    app::Pane,
    model::{ClusterVerdict, Horizon, VerdictLevel, cluster_verdict},
    ui::{
        Scene, text,
        theme::Role,
        widgets::{
            TimeAxis,
            segments::{Runs, Segments},
            strip::strip,
        },
    },
};
use kordon_core::{
    engine::Confidence,
    forecast::{Lane, LaneFold, TimeRange},
    plan::{BlockedDrain, OutcomeKind},
    visible,
};
use kordon_time::{Span, Timestamp};

/// Minimum age at which the title shows when the forecast was made. A forecast over more than ten minutes may take a
/// while to compute.
const OLD: Span = Span::from_secs(15);

/// Minimum width of a chart in cells.
const NARROW: u16 = 20;

/// ```text
/// ─ 4 Forecast ──────────────────── 10 min · if nobody acts ─
///              now    +2m    +4m    +6m    +8m    +10m
///           03:02  03:04  03:06  03:08  03:10  03:12
/// pool-a-03 ══│══════▌PS   ┊      ┊      ┊      ┊
/// pool-c-09   │·UT▌════════════▌  ┊      ┊      ┊
/// pods gone 9   ▁▁▁▁▂▂▂▂▂▂▅▅▅▅▅█████████████████
/// ··· silent  U Unknown  T taint  ▌ pods leave  P Pending  S stuck  K kubelet evicts
/// ```
/// Draws the forecast. Returns the number of lanes that fit.
pub fn draw(scene: &Scene, area: Rect, buf: &mut Buffer) -> usize {
    let inner = open(scene, Pane::Forecast, area, Runs::default(), buf);
    let parts = Parts::for_area(inner);
    let lanes = &scene.screen.forecast.lanes;
    if lanes.is_empty() || parts.chart.width < NARROW {
        say_nothing(scene, Pane::Forecast, nothing(scene), inner, buf);
        return usize::from(parts.chart.height);
    }
    let axis = TimeAxis::around(scene.now, scene.screen.forecast.horizon.span(), parts.chart.width);
    draw_axis(scene, &axis, &parts, buf);
    draw_lanes(scene, &axis, &parts, buf);
    for (row, sum) in [(parts.endpoints, Sum::ENDPOINTS), (parts.gone, Sum::GONE)] {
        if let Some(y) = row {
            draw_sum(scene, &axis, &sum, (&parts, y), buf);
        }
    }
    let has_focus = scene.screen.focus == Pane::Forecast;
    let why = scene.screen.forecast.selected().filter(|_| has_focus).map(|lane| lane.why.to_string());
    let why = why.filter(|why| !why.is_empty());
    if let Some(y) = parts.legend.filter(|_| why.is_none() || parts.why > 1) {
        draw_legend(scene, Rect { y, height: 1, ..inner }, buf);
    }
    draw_cause(scene, Pane::Forecast, why, inner, buf);
    usize::from(parts.chart.height)
}

/// Horizon and assumption of the forecast: `10 min · if nobody acts`. For an old forecast, also the time at which the
/// forecast was made.
pub fn note(scene: &Scene) -> Runs {
    let (dim, faint) = (scene.style(Role::Dim), scene.style(Role::Faint));
    let horizon = scene.screen.forecast.horizon;
    let mut runs =
        Runs::new(horizon.as_str(), scene.style(Role::Strong)).and(" · ", faint).and("if nobody acts", dim);
    let Some(forecast) = scene.shown.predictions.forecast_until(horizon) else { return runs };
    if !scene.shown.eviction_gaps().is_empty() {
        runs = runs.and(" · evictions unknown", faint);
    }
    let covers = forecast.until.since(forecast.made);
    if horizon != Horizon::TenMinutes && covers < horizon.span() {
        runs = runs.and(&format!(" · {covers} so far"), dim);
    } else if scene.now.since(forecast.made) > OLD {
        runs = runs.and(&format!(" · as of {}", text::clock(forecast.made)), dim);
    }
    runs
}

/// Number of pods that leave, and its range: `56 to be evicted, 45 to 79 by chance`. `None` if the number does not
/// depend on chance.
pub fn chance_note(scene: &Scene) -> Option<Runs> {
    let forecast = scene.shown.predictions.forecast_until(scene.screen.forecast.horizon)?;
    let is_known = scene.shown.eviction_gaps().is_empty();
    (is_known && forecast.chart.deleted.is_by_chance()).then(|| {
        let chance = &forecast.chart.deleted;
        let leaving = text::count(scene.shown.views.counts.leaving());
        let words = format!("{leaving} to be evicted, {} to {} by chance", chance.least, chance.most);
        Runs::new(&words, scene.style(Role::EvictionPredicted))
    })
}

/// Number of kubelets of nodes under pressure that were not measured: `1 kubelet not measured`. `None` if there are none.
pub fn unmeasured_note(scene: &Scene) -> Option<Runs> {
    let unmeasured = scene.shown.unmeasured_under_pressure().len();
    let words = format!("{unmeasured} {}", evictions::unmeasured_words(unmeasured));
    (unmeasured > 0).then(|| Runs::new(&words, scene.style(Role::NodeWarning)))
}

/// Reason why the chart of the forecast is empty.
pub(super) fn nothing(scene: &Scene) -> Nothing {
    let kubelets = cluster_verdict::kubelet_evictions(scene.shown, scene.now);
    match scene.shown.views.confidence {
        Some(Confidence::Live | Confidence::Assumed) => {}
        Some(Confidence::Disconnected { .. }) => {
            let text = "disconnected from nodes and Leases: no predictions";
            return ("✗", text.into(), Role::FeedBroken);
        }
        Some(Confidence::NoController { .. }) => {
            let text = "no active kube-controller-manager: no evictions until there is one".to_owned();
            let texts: Vec<String> = [text].into_iter().chain(kubelets).collect();
            return ("✗", texts.join("; "), Role::FeedBroken);
        }
        None => return ("◌", "waiting for nodes".into(), Role::FeedBusy),
    }
    if !scene.screen.filter(Pane::Forecast).is_empty() {
        return super::no_match(scene, Pane::Forecast);
    }
    let loops = scene.shown.eviction_loops(scene.now);
    if !loops.is_empty() {
        let loops: Vec<String> = loops.iter().map(ToString::to_string).collect();
        return ("▲", loops.join("; "), Role::NodeWarning);
    }
    let gaps = scene.shown.eviction_gaps();
    if !gaps.is_empty() {
        return ("○", format!("evictions unknown: {gaps}"), Role::Dim);
    }
    let is_abnormal = scene.shown.is_abnormal();
    let forecast = scene.shown.predictions.forecast_until(scene.screen.forecast.horizon);
    if is_abnormal && forecast.is_none() {
        return ("◌", "working out the forecast".into(), Role::FeedBusy);
    }
    if !kubelets.is_empty() {
        return ("▲", kubelets.join("; "), Role::NodeWarning);
    }
    if is_abnormal {
        return ("○", nothing_more(scene.verdict), Role::Dim);
    }
    let drains = &scene.shown.views.blocked_drains;
    if !drains.is_empty() {
        let blocked: Vec<String> = drains.iter().map(BlockedDrain::text).collect();
        return ("○", blocked.join("; "), Role::NodeWarning);
    }
    if scene.verdict.level > VerdictLevel::Healthy {
        return ("○", nothing_more(scene.verdict), Role::Dim);
    }
    ("○", "nothing expected: all nodes healthy, no evictions".into(), Role::Dim)
}

/// Says that the forecast adds nothing to what has happened, and names the worst problem of the verdict: `nothing more
/// is expected; node n-3 MemoryPressure 5m01s`.
fn nothing_more(verdict: &ClusterVerdict) -> String {
    let worst = verdict.parts.first().filter(|_| verdict.level > VerdictLevel::Healthy);
    let worst = worst.map(|worst| format!("; {worst}")).unwrap_or_default();
    format!("nothing more is expected{worst}")
}

/// Positions of the pane's parts, from top to bottom. The ruler gets the first row. All other parts are added only if
/// at least three rows remain for lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Parts {
    /// Screen row with the times counted from now.
    ruler: Option<u16>,
    /// Screen row with the times of day.
    clock: Option<u16>,
    /// Area of the labels of the lanes (rows of the chart).
    labels: Rect,
    /// Area of the lanes (rows of the chart).
    chart: Rect,
    endpoints: Option<u16>,
    gone: Option<u16>,
    legend: Option<u16>,
    /// Number of rows at the bottom that explain the selected lane while the pane has the focus. If this is a single
    /// row, it replaces the legend.
    why: u16,
}

impl Parts {
    /// Computes the positions from the size alone, so that nothing moves while the user reads.
    fn for_area(area: Rect) -> Self {
        let height = area.height;
        let label = (area.width * 3 / 10).clamp(12, 22).min(area.width);
        let (ruler, clock) = (height >= 2, height >= 8);
        let (endpoints, gone, legend) = (height >= 13, height >= 5, height >= 6);
        let why = match height {
            0..6 => 0,
            6..12 => 1,
            12.. => 2,
        };
        let top = u16::from(ruler) + u16::from(clock);
        let bottom =
            u16::from(endpoints) + u16::from(gone) + u16::from(legend) + if height < 12 { 0 } else { why };
        let lanes = Rect { y: area.y + top, height: height.saturating_sub(top + bottom), ..area };
        let mut y = lanes.bottom();
        let mut row = |is_shown: bool| {
            y += u16::from(is_shown);
            is_shown.then(|| y - 1)
        };
        Self {
            ruler: ruler.then_some(area.y),
            clock: clock.then_some(area.y + 1),
            labels: Rect { width: label, ..lanes },
            chart: Rect {
                x: area.x + (label + 1).min(area.width),
                width: area.width.saturating_sub(label + 1),
                ..lanes
            },
            endpoints: row(endpoints),
            gone: row(gone),
            legend: row(legend),
            why,
        }
    }
}

/// Draws the two rows of times above the lanes: times from now, and times of day.
/// ```text
///    now    +2m    +4m    +6m
/// 03:02  03:04  03:06  03:08
/// ```
fn draw_axis(scene: &Scene, axis: &TimeAxis, parts: &Parts, buf: &mut Buffer) {
    let Rect { x, width, .. } = parts.chart;
    let mut label = |y: u16, cell: u16, words: &str, role: Role| {
        if usize::from(cell) + words.len() <= usize::from(width) {
            buf.set_string(x + cell, y, words, scene.style(role));
        }
    };
    if let Some(y) = parts.ruler {
        let now = axis.clamped(scene.now);
        axis.ruler(scene.now)
            .into_iter()
            .for_each(|(cell, ahead)| label(y, cell, &distance(ahead), Role::Dim));
        label(y, now, "now", Role::Accent);
    }
    if let Some(y) = parts.clock {
        for (cell, at) in axis.ticks() {
            label(y, cell, &at.utc().format("%H:%M").to_string(), Role::Faint);
        }
    }
}

/// Distance from now: `+2m`, `+1h30m`.
fn distance(ahead: Span) -> String {
    let minutes = ahead.as_secs() / 60;
    match (minutes / 60, minutes % 60) {
        (0, minutes) => format!("+{minutes}m"),
        (hours, 0) => format!("+{hours}h"),
        (hours, minutes) => format!("+{hours}h{minutes:02}m"),
    }
}

fn draw_lanes(scene: &Scene, axis: &TimeAxis, parts: &Parts, buf: &mut Buffer) {
    let shown = &scene.screen.forecast;
    let page = usize::from(parts.chart.height);
    let first = shown.list.first_shown(page);
    // Without a forecast, the lanes only have evictions by kubelets, which no forecast predicts.
    let forecast = scene.shown.predictions.forecast_until(shown.horizon);
    let until = forecast.map_or(scene.now + shown.horizon.span(), |forecast| forecast.until);
    let looks = scene.looks(Pane::Forecast);
    for (place, lane) in shown.lanes.iter().enumerate().skip(first).take(page) {
        let y = parts.chart.y + u16::try_from(place - first).unwrap_or(0);
        let Rect { x, width, .. } = parts.labels;
        buf.set_stringn(x, y, label(lane, usize::from(width)), usize::from(width), scene.style(Role::Base));
        draw_lane(scene, axis, &cells(lane, axis, until), (parts.chart.x, y), buf);
        if shown.list.cursor() == Some(place) {
            buf.set_style(Rect { x, y, width, height: 1 }, looks.selected);
        }
    }
    let more = shown.lanes.len().saturating_sub(first + page);
    if more > 0 && page > 0 {
        let words = format!(" {} more ↓", text::count(more));
        let at = parts.chart.right().saturating_sub(u16::try_from(text::width(&words)).unwrap_or(0));
        buf.set_string(at, parts.chart.bottom() - 1, words, scene.style(Role::Dim));
    }
}

/// Label of a lane (row of the chart) in `room` cells: `pool-b-03 +4`, `eu-1/b: 1,666`. A name that is too long loses
/// its domain first, then its beginning.
fn label(lane: &Lane, room: usize) -> String {
    let Some(first) = lane.nodes.first() else { return String::new() };
    let fitted = |name: &str, suffix: &str| {
        let name = visible::text(name);
        let room = room.saturating_sub(text::width(suffix));
        let host = name.split_once('.').map_or(&*name, |(host, _)| host);
        let name = if text::width(&name) <= room { &*name } else { host };
        format!("{}{suffix}", text::cut_front(name, room))
    };
    match lane.fold {
        LaneFold::Node => fitted(first, ""),
        LaneFold::Alike => fitted(first, &format!(" +{}", text::count(lane.nodes.len() - 1))),
        LaneFold::Zone => fitted(&lane.zone.short(), &format!(": {}", text::count(lane.nodes.len()))),
    }
}

/// Content of one cell of the chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LaneCell {
    Blank,
    Silent,
    Down,
    /// Part of the time range in which the node becomes Unknown or tainted.
    Range,
    Tainted,
    NotReadyMark,
    UnknownMark,
    TaintMark,
    /// The kubelet evicts the first pod because of pressure.
    KubeletMark,
    Pods,
    /// Pods leave at the time of this cell, and some of them have nowhere to run.
    Nowhere(OutcomeKind),
    /// Part of the time range in which pods leave.
    PodsRange,
}

impl LaneCell {
    const fn is_mark(self) -> bool {
        match self {
            Self::NotReadyMark
            | Self::UnknownMark
            | Self::TaintMark
            | Self::KubeletMark
            | Self::Pods
            | Self::Nowhere(_) => true,
            Self::Blank | Self::Silent | Self::Down | Self::Range | Self::Tainted | Self::PodsRange => false,
        }
    }

    const fn look(self) -> (&'static str, Role) {
        match self {
            Self::Blank => (" ", Role::Faint),
            Self::Silent => ("·", Role::NodeWarning),
            Self::Down => ("─", Role::NodeCritical),
            Self::Range => ("╌", Role::TaintNoExecute),
            Self::Tainted => ("═", Role::TaintNoExecute),
            Self::NotReadyMark => ("N", Role::NodeCritical),
            Self::UnknownMark => ("U", Role::NodeCritical),
            Self::TaintMark => ("T", Role::TaintNoExecute),
            Self::KubeletMark => ("K", Role::NodeWarning),
            Self::Pods => ("▌", Role::EvictionPredicted),
            Self::Nowhere(kind) => (letter(kind), evictions::role(kind)),
            Self::PodsRange => ("░", Role::EvictionPredicted),
        }
    }
}

/// Letter in the chart for pods with nowhere to run.
const fn letter(kind: OutcomeKind) -> &'static str {
    match kind {
        OutcomeKind::Pending => "P",
        OutcomeKind::Refused => "R",
        OutcomeKind::Stuck => "S",
        OutcomeKind::Lost => "L",
        OutcomeKind::FailsJob => "F",
        OutcomeKind::Blocked
        | OutcomeKind::Unknown
        | OutcomeKind::LeftOut
        | OutcomeKind::WaitsForOldPod
        | OutcomeKind::Replaced
        | OutcomeKind::NotRecreated
        | OutcomeKind::Finished
        | OutcomeKind::SameNode
        | OutcomeKind::Stays
        | OutcomeKind::Preempts
        | OutcomeKind::Moves => "▌",
    }
}

/// Cells of a lane (row of the chart). Marks that fall into the same cell are drawn side by side.
fn cells(lane: &Lane, axis: &TimeAxis, until: Timestamp) -> Vec<LaneCell> {
    let mut cells = vec![LaneCell::Blank; usize::from(axis.cells)];
    let mut fill = |from: Timestamp, to: Timestamp, cell: LaneCell| {
        let (from, to) = (usize::from(axis.clamped(from)), usize::from(axis.clamped(to)));
        if from < to {
            cells[from..to].fill(cell);
        }
    };
    // In the chart, the line of a tainted node ends when its last pod leaves, or with the taint if no pod leaves.
    let last = lane.pods.iter().map(|pods| pods.range.last).max();
    let end = lane.tainted.map_or(until, |tainted| last.unwrap_or(tainted.last).min(until));
    let lines =
        [(lane.silent, LaneCell::Silent), (lane.not_ready, LaneCell::Down), (lane.unknown, LaneCell::Down)];
    for (from, cell) in lines {
        from.into_iter().for_each(|from| fill(from.first, end, cell));
    }
    lane.tainted.into_iter().for_each(|tainted| fill(tainted.first, end, LaneCell::Tainted));
    for range in [lane.unknown, lane.tainted].into_iter().flatten() {
        fill(range.first, range.last.min(until), LaneCell::Range);
    }
    for pods in lane.pods.iter().filter(|pods| pods.range.first < pods.range.last) {
        fill(pods.range.first, pods.range.last.min(until), LaneCell::PodsRange);
    }
    put_marks(lane, axis, until, &mut cells);
    cells
}

/// Maximum number of cells by which a mark moves to the right if its cell already has a mark.
const MARKS_BESIDE: usize = 4;

fn put_marks(lane: &Lane, axis: &TimeAxis, until: Timestamp, cells: &mut [LaneCell]) {
    let mut put = |at: Timestamp, mark: LaneCell| {
        let Some(cell) = axis.cell(at).map(usize::from).filter(|_| at <= until) else { return };
        let beside = cells[cell..].iter().take(MARKS_BESIDE).take_while(|here| here.is_mark());
        let free = cell + beside.clone().count();
        if !beside.clone().any(|here| *here == mark)
            && let Some(here) = cells.get_mut(free).filter(|here| !here.is_mark())
        {
            *here = mark;
        }
    };
    let marks = [
        (lane.not_ready, LaneCell::NotReadyMark),
        (lane.unknown, LaneCell::UnknownMark),
        (lane.tainted, LaneCell::TaintMark),
        (lane.kubelet, LaneCell::KubeletMark),
    ];
    for (range, mark) in marks {
        if let Some(TimeRange { first, last }) = range {
            put(first, mark);
            if axis.cell(first) != axis.cell(last) {
                put(last, mark);
            }
        }
    }
    for pods in &lane.pods {
        if axis.cell(pods.range.first) == axis.cell(pods.range.last) {
            put(pods.range.first, LaneCell::Pods);
        }
        for kind in &pods.nowhere {
            put(pods.range.first, LaneCell::Nowhere(*kind));
        }
    }
}

fn draw_lane(scene: &Scene, axis: &TimeAxis, cells: &[LaneCell], (x, y): (u16, u16), buf: &mut Buffer) {
    for (x, cell) in (x..).zip(cells) {
        let (glyph, role) = cell.look();
        buf.set_string(x, y, glyph, scene.style(role));
    }
    let is_blank = |cell: &u16| cells.get(usize::from(*cell)) == Some(&LaneCell::Blank);
    for (cell, _) in axis.ticks().into_iter().filter(|(cell, _)| is_blank(cell)) {
        buf.set_string(x + cell, y, "┊", scene.style(Role::Faint));
    }
    let now = axis.cell(scene.now);
    let is_free = |now: &u16| cells.get(usize::from(*now)).is_some_and(|cell| !cell.is_mark());
    if let Some(now) = now.filter(is_free) {
        buf.set_string(x + now, y, "│", scene.style(Role::Accent));
    }
}

/// A row of bars that sums up all lanes (rows of the chart).
struct Sum {
    name: &'static str,
    role: Role,
    /// Numbers of pods that a lane (row of the chart) adds to the sum, each with its time.
    of: fn(&Lane) -> Vec<(Timestamp, usize)>,
}

impl Sum {
    const ENDPOINTS: Self =
        Self { name: "endpoints", role: Role::NodeCritical, of: |lane| lane.endpoints.clone() };
    const GONE: Self = Self {
        name: "pods gone",
        role: Role::EvictionPredicted,
        of: |lane| lane.pods.iter().map(|pods| (pods.at, pods.pods.len())).collect(),
    };
}

/// Draws the cumulative number of pods over time: `pods gone 14     ▁▁▂▂▂▅▅▅▅▅█████`.
fn draw_sum(scene: &Scene, axis: &TimeAxis, sum: &Sum, (parts, y): (&Parts, u16), buf: &mut Buffer) {
    let shown = &scene.screen.forecast;
    let until =
        scene.shown.predictions.forecast_until(shown.horizon).map_or(scene.now, |forecast| forecast.until);
    let mut counts = vec![0; usize::from(axis.cells)];
    let pods = shown.lanes.iter().flat_map(|lane| (sum.of)(lane));
    for (at, pods) in pods.filter(|(at, _)| *at > scene.now) {
        if let Some(count) = axis.cell(at).and_then(|cell| counts.get_mut(usize::from(cell))) {
            *count += pods;
        }
    }
    let total: usize = counts.iter().sum();
    Segments::default()
        .left(0, Runs::new(sum.name, scene.style(Role::Heading)))
        .left(0, Runs::new(&text::count(total), scene.style(if total > 0 { sum.role } else { Role::Dim })))
        .render(Rect { y, height: 1, ..parts.labels }, &Run::raw(" "), buf);
    let mut gone = 0;
    for ((cell, x), count) in (0..axis.cells).zip(parts.chart.x..).zip(counts) {
        gone += count;
        let is_predicted = axis.end_of(cell) > scene.now && axis.clamped(until) > cell;
        #[expect(clippy::cast_precision_loss, reason = "a bar has eight heights")]
        let share = gone as f32 / total.max(1) as f32;
        if is_predicted {
            let role = if gone > 0 { sum.role } else { Role::Faint };
            buf[(x, y)].set_char(strip(share)).set_style(scene.style(role));
        }
    }
}

/// Draws the legend: `U Unknown  T taint  ▌ pods leave  S stuck  ╌ ░ any time between  ·· silent`. Apart from the first
/// three signs, the legend only has signs that the chart shows.
fn draw_legend(scene: &Scene, area: Rect, buf: &mut Buffer) {
    let lanes = &scene.screen.forecast.lanes;
    let is_range = |range: &TimeRange| range.first < range.last;
    let has_range = |lane: &Lane| {
        let states = [lane.unknown, lane.tainted].into_iter().flatten();
        states.chain(lane.pods.iter().map(|pods| pods.range)).any(|range| is_range(&range))
    };
    let shown: BTreeSet<OutcomeKind> =
        lanes.iter().flat_map(|lane| &lane.pods).flat_map(|pods| pods.nowhere.iter().copied()).collect();
    let mut legend = Segments::default();
    let mut add = |priority: u8, sign: &str, role: Role, words: &str| {
        let entry = Runs::new(sign, scene.style(role)).and(&format!(" {words}"), scene.style(Role::Dim));
        legend = std::mem::take(&mut legend).left(priority, entry);
    };
    add(0, "U", Role::NodeCritical, "Unknown");
    add(0, "T", Role::TaintNoExecute, "taint");
    add(0, "▌", Role::EvictionPredicted, "pods leave");
    for kind in shown {
        add(0, letter(kind), evictions::role(kind), kind.words().0);
    }
    if lanes.iter().any(|lane| lane.not_ready.is_some()) {
        add(1, "N", Role::NodeCritical, "not ready");
    }
    if lanes.iter().any(|lane| lane.kubelet.is_some()) {
        add(1, "K", Role::NodeWarning, "kubelet evicts");
    }
    if lanes.iter().any(has_range) {
        add(2, "╌ ░", Role::TaintNoExecute, "any time between");
    }
    if lanes.iter().any(|lane| lane.silent.is_some()) {
        add(3, "··", Role::NodeWarning, "silent");
    }
    legend.render(area, &Run::raw("  "), buf);
}
