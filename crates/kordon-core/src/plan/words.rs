//! Texts about plans that the screen and the command line share.

use crate::cluster::Key;
use kordon_time::Span;

/// Says what becomes of an undecided pod if it leaves: `if it leaves: n2`. `outcome` is the text of the outcome.
pub fn if_it_leaves(outcome: &str) -> String {
    format!("if it leaves: {}", outcome.trim_start_matches("→ "))
}

/// Describes when an action ends, as words that follow a verb. `likely` and `latest` are its likely and latest
/// duration. `likely` is `None` if the action is not expected to end, `latest` is `None` if it may never end. Both are
/// rounded up, as all times until an event are.
pub fn ends(likely: Option<Span>, latest: Option<Span>) -> String {
    match (likely.map(Span::rounded_up), latest.map(Span::rounded_up)) {
        (None, _) => "with no ETA".into(),
        (Some(Span::ZERO), Some(Span::ZERO)) => "immediately".into(),
        (Some(likely), Some(latest)) => format!("in ~{likely} (at most {latest})"),
        (Some(likely), None) => format!("in ~{likely} (possibly never)"),
    }
}

/// Describes when an action ends, if only the earliest likely end is known. It is rounded up, as in [`ends`].
pub fn not_before(least: Span) -> String {
    let least = least.rounded_up();
    if least == Span::ZERO { "possibly immediately".into() } else { format!("not before ~{least}") }
}

/// Says that an action has no targets, in kubectl's words.
pub const NO_RESOURCES: &str = "No resources found";

/// Formats a number of things: `1 pod`, `2 pods`.
pub fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Formats a number of replicas: `1 replica`, `2 replicas`.
pub fn replicas(count: i32) -> String {
    format!("{count} {}", if count == 1 { "replica" } else { "replicas" })
}

/// Formats the names of pods: `web/cart-0` or `web/cart-0 and 3 more`.
pub fn named(pods: &[Key]) -> String {
    match pods {
        [first, others @ ..] if !others.is_empty() => format!("{first} and {} more", others.len()),
        pods => pods.first().map(ToString::to_string).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_an_action_is_rounded_up() {
        let span = |millis| Some(Span::from_millis(millis));
        assert_eq!(ends(span(21_250), span(34_000)), "in ~22s (at most 34s)");
        assert_eq!(ends(span(250), None), "in ~1s (possibly never)");
        assert_eq!(ends(span(0), span(0)), "immediately");
        assert_eq!(not_before(Span::from_millis(12_500)), "not before ~13s");
    }
}
