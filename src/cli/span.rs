//! Durations on the command line.

use std::time::Duration;

use kordon_time::Span;

/// Parses `20s`, `1m30s`, `500ms`.
pub fn span(text: &str) -> Result<Span, String> {
    humantime::parse_duration(text).map(Span::from).map_err(|_| "not a duration such as 20s or 1m30s".into())
}

/// Parses kubectl's `--request-timeout`: a duration, a bare number of seconds, or `0` for no limit.
pub fn timeout(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse() {
        return Ok(Duration::from_secs(seconds));
    }
    humantime::parse_duration(text).map_err(|_| "not a duration such as 30s, nor a number of seconds".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_timeouts_read_as_kubectl_reads_them() {
        assert_eq!(timeout("30"), Ok(Duration::from_secs(30)));
        assert_eq!(timeout("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(timeout("0"), Ok(Duration::ZERO));
        assert!(timeout("soon").is_err() && timeout("-1").is_err());
    }
}
