//! Text for the terminal: cutting, wrapping and drawing, and formats of numbers and times.

use std::borrow::Cow;

use ratatui::{
    buffer::Buffer,
    style::Style,
    text::{Line, Span as Run},
};

use kordon_core::visible;
use kordon_time::{Span, Timestamp};

/// Removes the prefixes of Kubernetes' own taints and labels.
pub fn brief(text: &str) -> String {
    text.replace("node.kubernetes.io/", "").replace("node-role.kubernetes.io/", "")
}

/// Width of a text in cells.
pub fn width(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else if visible::is_plain(text) {
        text.chars().count()
    } else {
        Run::raw(text).width()
    }
}

/// Width of styled text in cells.
pub fn width_of(runs: &[Run]) -> usize {
    runs.iter().map(|run| width(&run.content)).sum()
}

/// Draws a line that starts at a cell and is at most `room` cells wide.
pub fn draw_line(line: &Line, (x, y): (u16, u16), room: u16, buf: &mut Buffer) {
    let end = buf.area.right().min(x.saturating_add(room));
    line.iter().fold(x, |x, run| draw(&run.content, (x, y), end, line.style.patch(run.style), buf));
}

/// Draws a text that starts at a cell and ends before the column `end`. Returns the column after the text. Plain text
/// takes a cell per character, so ratatui's search for graphemes is skipped.
fn draw(text: &str, (x, y): (u16, u16), end: u16, style: Style, buf: &mut Buffer) -> u16 {
    if !visible::is_plain(text) {
        return buf.set_stringn(x, y, text, usize::from(end.saturating_sub(x)), style).0;
    }
    let room = usize::from(end.saturating_sub(x));
    if room == 0 {
        return x;
    }
    let first = buf.index_of(x, y);
    let mut next = x;
    for (cell, letter) in buf.content[first..first + room].iter_mut().zip(text.chars()) {
        cell.set_char(letter).set_style(style);
        next += 1;
    }
    next
}

/// Cuts the text to this many cells, with `…` at the end if it was cut.
pub fn cut(text: &str, cells: usize) -> Cow<'_, str> {
    if width(text) <= cells {
        return Cow::Borrowed(text);
    }
    let Some(room) = cells.checked_sub(1) else { return Cow::Borrowed("") };
    let mut kept = String::new();
    let mut used = 0;
    for grapheme in Run::raw(text).styled_graphemes(Style::default()) {
        let next = width(grapheme.symbol);
        if used + next > room {
            break;
        }
        kept.push_str(grapheme.symbol);
        used += next;
    }
    kept.push('…');
    Cow::Owned(kept)
}

/// Cuts the beginning of the text to fit this many cells, with `…` at the start if it was cut.
pub fn cut_front(text: &str, cells: usize) -> Cow<'_, str> {
    if width(text) <= cells {
        return Cow::Borrowed(text);
    }
    let Some(room) = cells.checked_sub(1) else { return Cow::Borrowed("") };
    let fits = |(start, _): &(usize, char)| width(&text[*start..]) <= room;
    let start = text.char_indices().find(fits).map_or(text.len(), |(start, _)| start);
    Cow::Owned(format!("…{}", &text[start..]))
}

/// Cuts the middle of the text to fit this many cells, with `…` in its place if it was cut. Names that differ only in
/// their beginning or in their end stay different.
pub fn cut_middle(text: &str, cells: usize) -> Cow<'_, str> {
    if width(text) <= cells {
        return Cow::Borrowed(text);
    }
    let room = cells.saturating_sub(1) / 2;
    let fits = |(start, _): &(usize, char)| width(&text[*start..]) <= room;
    let start = text.char_indices().find(fits).map_or(text.len(), |(start, _)| start);
    let end = &text[start..];
    Cow::Owned(format!("{}{end}", cut(text, cells - width(end))))
}

/// Wraps a text to at most `lines` lines of `cells` cells, between words if possible. The last line is cut if the text
/// continues.
pub fn wrap(text: &str, cells: usize, lines: usize) -> Vec<String> {
    let mut wrapped: Vec<String> = Vec::new();
    let mut words = text.split(' ').peekable();
    while words.peek().is_some() && wrapped.len() < lines {
        let mut line = String::new();
        while let Some(word) =
            words.next_if(|word| line.is_empty() || width(&line) + 1 + width(word) <= cells)
        {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        wrapped.push(cut(&line, cells).into_owned());
    }
    if words.peek().is_some()
        && let Some(last) = wrapped.last_mut()
    {
        *last = cut(&format!("{last} {}", words.collect::<Vec<_>>().join(" ")), cells).into_owned();
    }
    wrapped
}

/// A number with thousands separated: `61,500`.
pub fn count(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of bytes in binary units: `1.5 MiB`.
#[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut amount, mut unit) = (bytes as f64, 0);
    while amount >= 1023.95 && unit + 1 < UNITS.len() {
        (amount, unit) = (amount / 1024.0, unit + 1);
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{amount:.1} {}", UNITS[unit]) }
}

/// A rate rounded to a whole number, with thousands separated.
pub fn rounded(rate: f64) -> String {
    count(whole(rate))
}

/// A fractional number of bytes, formatted like [`bytes()`].
pub fn rounded_bytes(amount: f64) -> String {
    bytes(u64::try_from(whole(amount)).unwrap_or(u64::MAX))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a float cast saturates")]
fn whole(number: f64) -> usize {
    number.round() as usize
}

/// Time since a moment in whole seconds: `0s`, `12s`, `4m05s`.
pub fn age(now: Timestamp, then: Timestamp) -> String {
    whole_seconds(now.since(then).or_zero()).to_string()
}

/// Stands for the time of a terminating pod whose kubelet is down, because its grace period has no effect.
pub const HANGS: &str = "hangs";

/// Delay above which an event counts as overdue. With a shorter delay, it counts as happening now.
const LATE: Span = Span::from_secs(6);

/// Time until an event, rounded up so that zero is never shown early. An event whose time has come shows `now`. An
/// event that is overdue by more than `LATE` shows for how long. The controller acts only in its passes, so a delay of
/// up to `LATE` is normal.
pub fn left(at: Timestamp, now: Timestamp) -> String {
    let ahead = at.since(now);
    if ahead < -LATE {
        return format!("{} overdue", whole_seconds(-ahead));
    }
    if ahead <= Span::ZERO {
        return "now".into();
    }
    ahead.rounded_up().to_string()
}

/// A time rounded to the nearest second: `48s`, `5m50s`.
pub fn nearest_second(span: Span) -> String {
    whole_seconds(span + Span::from_millis(500)).to_string()
}

fn whole_seconds(span: Span) -> Span {
    Span::from_secs(span.as_secs())
}

/// Time of day in UTC: `03:12:45`.
pub fn clock(at: Timestamp) -> String {
    at.utc().format("%H:%M:%S").to_string()
}

/// Time of day, with the date unless it is today: `Jan 02 03:12:45`.
pub fn moment(at: Timestamp, now: Timestamp) -> String {
    let is_today = at.utc().date_naive() == now.utc().date_naive();
    if is_today { clock(at) } else { at.utc().format("%b %d %H:%M:%S").to_string() }
}

/// Memory in a suitable unit: `1.5Gi`, `512Mi`.
#[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
pub fn memory(bytes: i64) -> String {
    let mebi = bytes as f64 / (1024.0 * 1024.0);
    if mebi.abs() >= 1024.0 * 10.0 {
        format!("{:.0}Gi", mebi / 1024.0)
    } else if mebi.abs() >= 1024.0 {
        format!("{:.1}Gi", mebi / 1024.0)
    } else {
        format!("{mebi:.0}Mi")
    }
}

/// CPU in cores: `250m`, `1.5`, `12`.
#[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
pub fn cores(milli: i64) -> String {
    if milli.abs() < 1000 {
        format!("{milli}m")
    } else if milli % 1000 == 0 {
        (milli / 1000).to_string()
    } else {
        format!("{:.1}", milli as f64 / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use ratatui::{layout::Rect, style::Color};

    use super::*;

    #[test]
    fn text_is_cut_by_cells_and_never_through_a_wide_character() {
        assert_eq!(cut("node-1", 6), "node-1");
        assert_eq!(cut("node-12", 6), "node-…");
        assert_eq!(cut("節点節点", 5), "節点…");
        assert_eq!(cut("節点節点", 4), "節…");
        assert_eq!((cut("abc", 1), cut("abc", 0)), ("…".into(), "".into()));
    }

    #[test]
    fn plain_text_is_drawn_as_ratatui_draws_it() {
        let style = Style::new().fg(Color::Red);
        for text in ["n-1 ▪▪◌…", "節点 ─█", "e\u{301}", "⏳ ⌚", "", "a\u{FE0F}▪\u{FE0F}"] {
            for room in 0..=10 {
                let line = Line::from(vec![Run::styled(text, style), Run::raw("│x")]);
                let area = Rect::new(0, 0, 8, 1);
                let (mut ours, mut theirs) = (Buffer::empty(area), Buffer::empty(area));
                draw_line(&line, (1, 0), room, &mut ours);
                theirs.set_line(1, 0, &line, room);
                assert_eq!(ours, theirs, "{text} in {room}");
                assert_eq!(width_of(&line.spans), line.width(), "{text}");
            }
        }
    }

    #[test]
    fn of_a_name_its_end_may_be_kept() {
        assert_eq!(cut_front("general-1b-01", 13), "general-1b-01");
        assert_eq!(cut_front("general-1b-01", 6), "…1b-01");
        assert_eq!(cut_front("節点節点", 4), "…点");
        assert_eq!((cut_front("abc", 1), cut_front("abc", 0)), ("…".into(), "".into()));
        assert_eq!(cut_middle("general-1b-01", 13), "general-1b-01");
        assert_eq!(cut_middle("general-1b-01", 10), "gener…b-01");
        assert_eq!(cut_middle("節点節点", 5), "節…点");
        assert_eq!((cut_middle("abc", 1), cut_middle("abc", 0)), ("…".into(), "".into()));
    }

    #[test]
    fn long_text_wraps_between_words_and_says_that_it_goes_on() {
        assert_eq!(wrap("one two three four", 9, 9), ["one two", "three", "four"]);
        assert_eq!(wrap("one two three four", 9, 2), ["one two", "three fo…"]);
        assert_eq!(wrap("incomprehensible", 9, 2), ["incompre…"]);
        assert!(wrap("", 9, 2).len() <= 1 && wrap("a", 9, 0).is_empty());
    }

    #[test]
    fn numbers_and_times_read_well() {
        assert_eq!(
            [0, 999, 1000, 61_500, 1_234_567].map(count),
            ["0", "999", "1,000", "61,500", "1,234,567"]
        );
        assert_eq!([500, 1536, 1 << 20, 1_048_575].map(bytes), ["500 B", "1.5 KiB", "1.0 MiB", "1.0 MiB"]);
        let now = Timestamp::from_secs(1000);
        assert_eq!(moment(now, now + Span::from_secs(600)), "00:16:40");
        assert_eq!(moment(now, now + Span::from_secs(86_400)), "Jan 01 00:16:40");
        assert_eq!(left(now + Span::from_millis(1), now), "1s", "not over yet");
        assert_eq!(left(now + Span::from_secs(252), now), "4m12s");
        assert_eq!(left(now, now), "now");
        assert_eq!(left(now, now + Span::from_secs(75)), "1m15s overdue");
        assert_eq!(age(now, now - Span::from_millis(1999)), "1s");
        assert_eq!([250, 1000, 1500, 64_000].map(cores), ["250m", "1", "1.5", "64"]);
        assert_eq!([512 << 20, 3 << 29, 64 << 30].map(memory), ["512Mi", "1.5Gi", "64Gi"]);
    }
}
