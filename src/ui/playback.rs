//! The time line of a recording or of the history: notable moments, the position, and the speed.

use ratatui::{buffer::Buffer, layout::Rect, style::Modifier, text::Span as Run};

use super::{
    Scene, text,
    theme::Role,
    widgets::segments::{Runs, Segments},
};
use crate::{
    app::{Playback, PlaybackKind},
    model::VerdictLevel,
};
use kordon_time::{Span, Timestamp};

/// Glyphs of a cell of the time line by the number of affected objects; the first glyph means no objects. Their ASCII
/// replacements differ too.
const HEIGHTS: [&str; 4] = ["─", "▂", "▅", "▇"];

/// Glyph of the shown moment on the time line.
const PLACE: &str = "●";

/// Glyph of the part of the time line that was not searched for notable moments yet.
const UNSEARCHED: &str = "┈";

/// Draws the time line, and the second line only if it fits:
/// ```text
///  ▶ 10x  03:12:45  +12m45s   03:00:00 ─▂▅▇──▂──────●────▂▂───────┈┈┈┈ 03:48:12 truncated
///  12s ago: 3 nodes Silent                                    ] in 45s: pod shop/web-1 evicted
/// ```
/// While events before the shown moment are still being read, the second line begins with `reading what happened before
/// 03:12:00`.
pub fn draw(scene: &Scene, playback: &Playback, area: Rect, buf: &mut Buffer) {
    let line =
        |row: u16| Rect { x: area.x + 1, y: area.y + row, width: area.width.saturating_sub(2), height: 1 };
    draw_bar(scene, playback, line(0), buf);
    if area.height > 1 {
        moments(scene, playback).render(line(1), &Run::styled("   ", scene.style(Role::Dim)), buf);
    }
}

fn draw_bar(scene: &Scene, playback: &Playback, area: Rect, buf: &mut Buffer) {
    let (lead, tail) = (lead(scene, playback, area.width), tail(scene, playback, area.width));
    let (before, after) = (cells(lead.width()), cells(tail.width()));
    text::draw_line(&lead.line(), (area.x, area.y), area.width, buf);
    let bar = Rect { x: area.x + before, width: area.width.saturating_sub(before + after), ..area };
    text::draw_line(&tail.line(), (bar.right(), area.y), after.min(area.width), buf);
    let line = TimeLine::new(playback, bar.width);
    for (x, cell) in (bar.x..bar.right()).zip(&line.0) {
        let (symbol, role) = match cell {
            TimeCell::Place => (PLACE, Role::Strong),
            TimeCell::Nothing => (HEIGHTS[0], Role::Faint),
            TimeCell::Unsearched => (UNSEARCHED, Role::Faint),
            TimeCell::Moments { height, level } => (HEIGHTS[*height], role_of(*level)),
        };
        let mut style = scene.style(role);
        if *cell == TimeCell::Place {
            style = style.add_modifier(Modifier::BOLD);
        } else {
            // Uses the colours of levels as text colours: reversed cells would be too loud.
            style = style.remove_modifier(Modifier::REVERSED);
        }
        buf.set_string(x, area.y, symbol, style);
    }
}

/// Text before the time line: `▶ 10x  03:12:45  +12m45s   03:00:00 `.
fn lead(scene: &Scene, playback: &Playback, width: u16) -> Runs {
    let (sign, role) = if playback.target.is_some() {
        ("◌", Role::FeedBusy)
    } else if playback.is_playing() {
        ("▶", Role::FeedLive)
    } else {
        ("‖", Role::FeedBusy)
    };
    let base = scene.style(Role::Base);
    let runs = Runs::new(sign, scene.style(role))
        .and(&format!(" {:<4} ", playback.speed_text()), scene.style(Role::Dim))
        .and(&clock(playback.place(), playback, width), scene.style(Role::Strong));
    let into = Span::from_secs(playback.place().since(playback.from).as_secs());
    let runs = if width >= 100 { runs.and(&format!("  +{into:<9}"), scene.style(Role::Dim)) } else { runs };
    runs.and(&format!("  {} ", text::clock(playback.from)), base)
}

/// Text after the time line: ` 03:48:12 truncated`.
fn tail(scene: &Scene, playback: &Playback, width: u16) -> Runs {
    let runs = Runs::new(&format!(" {}", text::clock(playback.until)), scene.style(Role::Base));
    match &playback.fault {
        Some(_) if width < 100 => runs.and(" !", scene.style(Role::FeedBroken)),
        Some(fault) => runs.and(&format!(" {}", text::cut(fault, 40)), scene.style(Role::FeedBroken)),
        None => runs,
    }
}

/// Time of day, with the date if there is space and the playback spans several days.
fn clock(at: Timestamp, playback: &Playback, width: u16) -> String {
    let date = |at: Timestamp| at.utc().date_naive();
    if width >= 100 && date(playback.from) != date(playback.until) {
        at.utc().format("%m-%d %H:%M:%S").to_string()
    } else {
        text::clock(at)
    }
}

/// The last and the next notable moment: `12s ago: 3 nodes Silent`, `] in 45s: pod shop/web-1 evicted`.
fn moments(scene: &Scene, playback: &Playback) -> Segments {
    let dim = scene.style(Role::Dim);
    let mut line = Segments::default();
    if let Some(from) = playback.known_from {
        line = line.left(0, Runs::new(&format!("reading what happened before {}", text::clock(from)), dim));
    } else if let Some(last) = playback.last_moment() {
        let ago = text::age(playback.at, last.at);
        let runs =
            Runs::new(&format!("{ago} ago: "), dim).and(&last.text(), scene.style(role_of(last.level)));
        line = line.left(0, runs);
    }
    if let Some(next) = playback.next_moment() {
        let ahead = Span::from_secs(next.at.since(playback.at).or_zero().as_secs());
        let runs = Runs::new("]", scene.style(Role::Key))
            .and(&format!(" in {ahead}: "), dim)
            .and(&next.text(), scene.style(role_of(next.level)));
        line = line.right(1, runs);
    } else if playback.searched < playback.until {
        line = line.right(2, Runs::new("searching for notable moments", dim));
    }
    if playback.kind == PlaybackKind::History {
        line = line.right(0, Runs::new("f", scene.style(Role::Key)).and(" live", dim));
    }
    line
}

/// Theme role of a level, for text on the plain background.
const fn role_of(level: VerdictLevel) -> Role {
    match level {
        VerdictLevel::Healthy => Role::NodeReady,
        VerdictLevel::Notice => Role::NodeMaintenance,
        VerdictLevel::Warning => Role::NodeWarning,
        VerdictLevel::Critical => Role::NodeCritical,
        VerdictLevel::Disconnected => Role::NodeNotice,
    }
}

/// The cells of a time line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TimeLine(Vec<TimeCell>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimeCell {
    Nothing,
    Unsearched,
    /// The cell has notable moments: `height` is an index into [`HEIGHTS`], `level` the worst level.
    Moments {
        height: usize,
        level: VerdictLevel,
    },
    Place,
}

impl TimeLine {
    fn new(playback: &Playback, width: u16) -> Self {
        let width = usize::from(width);
        let cell = |at| cell_of(at, (playback.from, playback.until), width);
        let mut found: Vec<Option<(usize, VerdictLevel)>> = vec![None; width];
        for moment in playback.moments.iter() {
            let Some(slot) = cell(moment.at).and_then(|cell| found.get_mut(cell)) else { continue };
            let (count, level) = slot.unwrap_or((0, VerdictLevel::Healthy));
            *slot = Some((count + moment.count, level.max(moment.level)));
        }
        let searched = cell(playback.searched).unwrap_or(0);
        let is_done = playback.searched >= playback.until;
        let look = |(place, found): (usize, Option<(usize, VerdictLevel)>)| match found {
            Some((count, level)) => TimeCell::Moments { height: height(count), level },
            None if place > searched && !is_done => TimeCell::Unsearched,
            None => TimeCell::Nothing,
        };
        let mut cells: Vec<TimeCell> = found.into_iter().enumerate().map(look).collect();
        if let Some(place) = cell(playback.place()).and_then(|cell| cells.get_mut(cell)) {
            *place = TimeCell::Place;
        }
        Self(cells)
    }
}

/// Index of the cell for a time; `None` if there are no cells.
fn cell_of(at: Timestamp, (from, until): (Timestamp, Timestamp), width: usize) -> Option<usize> {
    let whole = i128::from(until.since(from).as_nanos().max(1));
    let into = i128::from(at.since(from).or_zero().as_nanos());
    let cell = usize::try_from(into * i128::try_from(width).ok()? / whole).ok()?;
    Some(cell.min(width.checked_sub(1)?))
}

/// Index into [`HEIGHTS`] for the number of affected objects.
const fn height(count: usize) -> usize {
    match count {
        0 | 1 => 1,
        2..8 => 2,
        _ => 3,
    }
}

fn cells(width: usize) -> u16 {
    u16::try_from(width).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::{Moment, MomentKind, NodeState};

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(1_800_000_000 + secs)
    }

    fn line(playback: &Playback, width: u16) -> String {
        let sign = |cell: &TimeCell| match cell {
            TimeCell::Nothing => '-',
            TimeCell::Unsearched => '?',
            TimeCell::Place => '#',
            TimeCell::Moments { height, .. } => char::from_digit(*height as u32, 10).expect("a digit"),
        };
        TimeLine::new(playback, width).0.iter().map(sign).collect()
    }

    #[test]
    fn a_cell_is_as_high_as_much_happened_in_it_and_has_the_worst_level() {
        let mut playback = Playback::new(PlaybackKind::Recording, (at(0), at(100)), at(55));
        let moment = |secs, level, count| Moment {
            count,
            ..Moment::new(at(secs), MomentKind::Node(NodeState::Silent), level, "n")
        };
        playback.moments = Arc::new(vec![
            moment(0, VerdictLevel::Healthy, 1),
            moment(21, VerdictLevel::Critical, 3),
            moment(22, VerdictLevel::Healthy, 1),
            moment(100, VerdictLevel::Notice, 500),
        ]);
        playback.searched = at(100);
        assert_eq!(line(&playback, 10), "1-2--#---3");
        assert_eq!(
            TimeLine::new(&playback, 10).0[2],
            TimeCell::Moments { height: 2, level: VerdictLevel::Critical }
        );
        playback.searched = at(79);
        assert_eq!(line(&playback, 10), "1-2--#--?3", "not searched yet");
        assert_eq!(line(&playback, 1), "#");
        assert_eq!(line(&playback, 0), "");
    }

    #[test]
    fn a_recording_of_no_length_has_a_time_line() {
        let playback = Playback::new(PlaybackKind::Recording, (at(0), at(0)), at(0));
        assert_eq!(line(&playback, 3), "#--");
    }
}
