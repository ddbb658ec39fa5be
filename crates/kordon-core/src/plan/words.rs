//! Words about plans that the screen and the command line share.

use kordon_time::Span;

/// When something ends that likely takes this long.
pub fn ends(likely: Option<Span>, latest: Option<Span>) -> String {
    match (likely, latest) {
        (None, _) => "no ETA: blocked".into(),
        (Some(Span::ZERO), Some(Span::ZERO)) => "immediately".into(),
        (Some(likely), Some(latest)) => format!("in ~{likely} (at most {latest})"),
        (Some(likely), None) => format!("in ~{likely} (possibly never)"),
    }
}

/// When something may end that likely takes at least this long.
pub fn not_before(least: Span) -> String {
    if least == Span::ZERO { "possibly immediately".into() } else { format!("not before ~{least}") }
}

/// `1 pod`, `2 pods`
pub fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
