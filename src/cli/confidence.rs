//! The confidence in predictions, in reports and tables.

use kordon_core::engine::Confidence;
use kordon_time::Span;

/// Name of a confidence in reports. It never changes.
pub const fn word(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::Live => "live",
        Confidence::Assumed => "assumed",
        Confidence::Disconnected { .. } => "disconnected",
        Confidence::NoController { .. } => "noController",
    }
}

/// Text of a confidence for people, made from its name in reports and the time for which it has lasted.
pub fn text(word: &str, lasting: Option<Span>) -> String {
    let lasting = |preposition: &str| lasting.map_or(String::new(), |span| format!(" {preposition}{span}"));
    match word {
        "assumed" => "assumed (no Lease shows whether a controller runs)".into(),
        "disconnected" => format!("disconnected{}: states frozen", lasting("")),
        "noController" => format!("no active kube-controller-manager{}: no evictions", lasting("for ")),
        word => word.into(),
    }
}
