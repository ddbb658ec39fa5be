//! What the verdict says of the loss of a node or zone.

use super::{Finding, PartKind, Phrase, VerdictLevel, coarse};
use crate::model::{HeadroomRest, KnownHeadroom, Model};
use kordon_core::plan::HeadroomClause;
use kordon_time::{Span, Timestamp};

/// Returns the headroom, or the progress of its computation: `N-1: losing n-3 would strand 4 pods (4 Pending) (2m
/// ago)`. The headroom is left out if another finding is worse than Notice. A result marked "likely" has the level
/// Notice instead of Healthy, because missing data could change it.
pub(super) fn headroom(model: &Model, worst: Option<VerdictLevel>, now: Timestamp) -> Option<Finding> {
    if model.cluster.nodes().is_empty() {
        return None;
    }
    let (level, phrase, shorter) = match model.known_headroom(now) {
        KnownHeadroom::Known { headroom, clause, rest } => {
            let HeadroomClause { text, short, age, is_short, .. } = clause;
            let is_definite = model.is_headroom_definite();
            let is_known = is_definite && headroom.is_certain();
            let level = if is_short || !is_known { VerdictLevel::Notice } else { VerdictLevel::Healthy };
            let likely = if is_definite { "" } else { "likely " };
            let phrase = |text: String| {
                let phrase = Phrase::from(format!("{likely}{text}"));
                let phrase = age
                    .filter(|age| *age >= TELLS_AGE)
                    .into_iter()
                    .fold(phrase, |phrase, age| phrase.time(format!(" ({} ago)", coarse(age))));
                rest.into_iter().fold(phrase, |phrase, rest| progress(phrase.and(", "), rest))
            };
            (level, phrase(text), phrase(short).text)
        }
        KnownHeadroom::Computing(rest) => {
            let phrase = progress("N-1: ".into(), rest);
            let text = phrase.text.clone();
            (VerdictLevel::Healthy, phrase, text)
        }
        KnownHeadroom::Withheld => return None,
    };
    let finding = || Finding::new(level, phrase).shortens_to(PartKind::Headroom, vec![shorter]);
    (worst <= Some(VerdictLevel::Notice)).then(finding)
}

/// Returns the progress of the computation of headroom: `working out 12 %`.
fn progress(phrase: Phrase, rest: HeadroomRest) -> Phrase {
    let HeadroomRest { percent, goes_on } = rest;
    match goes_on {
        true => phrase.and("working out").time(format!(" {percent} %")),
        false => phrase.and(&format!("{percent} % worked out (--n-1 waits for all)")),
    }
}

/// Minimum age of a headroom result that is shown with its age. A younger result is shown without its age, because the
/// age would flicker with each change.
const TELLS_AGE: Span = Span::from_secs(5);
