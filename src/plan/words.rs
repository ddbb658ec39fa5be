//! Words about plans that the screen and the command line have in common.

use crate::time::Span;

/// When something that takes so long likely, and at most, is over.
pub fn ends(likely: Option<Span>, latest: Option<Span>) -> String {
    match (likely, latest) {
        (None, _) => "(never ends by itself)".into(),
        (Some(Span::ZERO), Some(Span::ZERO)) => "at once".into(),
        (Some(likely), Some(latest)) => format!("in ~{likely} (at the latest {latest})"),
        (Some(likely), None) => format!("in ~{likely} (or never)"),
    }
}

/// The count with the words that go with it.
pub fn several(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
