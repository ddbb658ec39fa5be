//! Durations as they are typed.

use kordon_time::Span;

/// Parses a duration such as `30s`, `15m` or `1h30m`; `None` for an empty text.
pub(in crate::app) fn span(text: &str) -> Result<Option<Span>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let span = humantime::parse_duration(text).map(Span::from);
    span.ok()
        .filter(|span| *span > Span::ZERO)
        .map(Some)
        .ok_or_else(|| format!("{text} is not a duration such as 30s, 15m or 1h30m"))
}
