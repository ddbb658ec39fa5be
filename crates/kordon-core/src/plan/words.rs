//! Words about plans that the screen and the command line share.

use kordon_time::Span;

/// Formats the end of an action from its likely and latest duration. `likely` is `None` if the action is blocked,
/// `latest` is `None` if the action may never end.
pub fn ends(likely: Option<Span>, latest: Option<Span>) -> String {
    match (likely, latest) {
        (None, _) => "no ETA: blocked".into(),
        (Some(Span::ZERO), Some(Span::ZERO)) => "immediately".into(),
        (Some(likely), Some(latest)) => format!("in ~{likely} (at most {latest})"),
        (Some(likely), None) => format!("in ~{likely} (possibly never)"),
    }
}

/// Formats the earliest likely end of an action.
pub fn not_before(least: Span) -> String {
    if least == Span::ZERO { "possibly immediately".into() } else { format!("not before ~{least}") }
}

/// Formats a number of things: `1 pod`, `2 pods`.
pub fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
