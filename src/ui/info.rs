//! The information sheet: connection, controller, its settings, watches and traffic.

use std::convert::identity;

use ratatui::{buffer::Buffer, layout::Rect};

use super::{Scene, panes::header, text, text_sheet, theme::Role, widgets::segments::Runs};
use crate::{
    app::HistoryState,
    model::{ControllerRole, IN_SYNC, Leadership},
};
use kordon_core::{
    engine::Origin,
    forecast::{AccuracyReport, OutcomeReport, OutcomeScore, accuracy::Miss},
};
use kordon_time::Span;

/// ```text
/// ╭ Information ────────────────────────────────────────────────────╮
/// │ cluster      prod-eu, v1.36.3                                    │
/// │ controller   kcm-1, Lease renewed 1s ago, leader for 4d2h        │
/// │   node-monitor-grace-period   50s   default                      │
/// │ watches                                                          │
/// │   ● nodes 2s                                                     │
/// ╰ Esc closes ─────────────────────────────────────────────────────╯
/// ```
/// Draws the sheet over the middle of the screen, scrolled to its first shown line.
pub fn draw(scene: &Scene, scrolled: usize, area: Rect, buf: &mut Buffer) {
    let width = 100.min(area.width.saturating_sub(4));
    text_sheet::draw(scene, "Information", (lines(scene), scrolled), identity, width, area, buf);
}

fn lines(scene: &Scene) -> Vec<Runs> {
    let fact =
        |name: &str, value: Runs| Runs::new(&format!("{name:<14}"), scene.style(Role::Heading)).join(value);
    let base = |text: &str| Runs::new(text, scene.style(Role::Base));
    let connection = &scene.app.model.connection;
    let unknown = "unknown";
    let mut lines = vec![
        fact("context", base(if connection.context.is_empty() { "none" } else { &connection.context })),
        fact("server", base(&connection.server)),
        fact("version", base(connection.server_version.as_deref().unwrap_or(unknown))),
        fact("user", base(connection.identity.as_deref().unwrap_or(unknown))),
        fact("server clock", base(&clock_difference(scene.shown.feeds.clock_difference))),
        fact("controller", leader(scene)),
    ];
    lines.extend(settings(scene));
    let accuracy = scene.shown.predictions.accuracy();
    let named = |name: &'static str, texts: Vec<String>| {
        let name = move |place: usize| if place == 0 { name } else { "" };
        texts.into_iter().enumerate().map(move |(place, text)| (name(place), text))
    };
    let record =
        named("predictions", predictions(&accuracy)).chain(named("outcomes", outcomes(&accuracy.outcomes)));
    lines.extend(record.map(|(name, text)| fact(name, base(&text))));
    let miss = |miss: &Miss| base(&format!("  {} {miss}", text::clock(miss.at)));
    lines.extend(accuracy.misses.iter().rev().take(MISSES).map(miss));
    let (requests, bytes) = scene.shown.feeds.traffic();
    let requests = text::count(usize::try_from(requests).unwrap_or(usize::MAX));
    let relists = scene.shown.feeds.relists();
    let traffic = format!("{requests} requests, {}, {relists} relists", text::bytes(bytes));
    lines.extend(history(scene).map(|history| fact("history", base(&history))));
    lines.push(fact("watches", base(&traffic)));
    let watch =
        |(kind, health)| Runs::new("  ", scene.style(Role::Dim)).join(header::watch(scene, kind, health));
    lines.extend(scene.shown.feeds.iter().map(watch));
    lines
}

/// Maximum number of events shown that the forecasts missed. The latest of these events are shown.
const MISSES: usize = 5;

/// Accuracy of this session's forecasts. The counts of the first line add up to its total. The reasons of the second
/// line add up to the number of missed events.
///
/// ```text
/// 34 of 36 on time (4 by chance among 3), 1 unforeseeable, 1 missed
/// missed: 1 late
/// error of the time: median 400ms, 40s late at most
/// ```
fn predictions(report: &AccuracyReport) -> Vec<String> {
    let total = report.total();
    if total.all() == 0 {
        return vec!["no event to compare with yet".into()];
    }
    let chance = match total.by_chance {
        0 => String::new(),
        count => format!(" ({count} by chance among {})", report.most_among),
    };
    let others = [
        (total.unforeseeable, "unforeseeable"),
        (total.missed(), "missed"),
        (total.not_compared, "not compared"),
    ];
    let others = others.into_iter().filter(|(count, _)| *count > 0);
    let others: String = others.map(|(count, words)| format!(", {count} {words}")).collect();
    let mut lines = vec![format!("{} of {} on time{chance}{others}", total.predicted(), total.all())];
    let reasons: Vec<String> =
        total.reasons().map(|(reason, count)| format!("{count} {}", reason.words())).collect();
    if !reasons.is_empty() {
        lines.push(format!("missed: {}", reasons.join(", ")));
    }
    if let Some(median) = report.median {
        let most = |span: Option<Span>, way| span.map(|span| format!(", {span} {way} at most"));
        let ways: String =
            [most(report.earliest, "early"), most(report.latest, "late")].into_iter().flatten().collect();
        lines.push(format!("error of the time: median {median}{ways}"));
    }
    lines
}

/// Accuracy of the predicted outcomes of evicted pods; no lines before the first eviction.
///
/// ```text
/// 39 of 45 as predicted (2 by chance), 5 not, 1 not known yet
/// not: 5 predicted moves, became pending
/// ```
fn outcomes(report: &OutcomeReport) -> Vec<String> {
    let OutcomeReport { counts, differences, .. } = report;
    let OutcomeScore { right, by_chance, wrong, not_predicted, open } = *counts;
    if counts.all() == 0 {
        return Vec::new();
    }
    let chance = if by_chance > 0 { format!(" ({by_chance} by chance)") } else { String::new() };
    let others = [(wrong, "not"), (not_predicted, "not predicted"), (open, "not known yet")];
    let others = others.into_iter().filter(|(count, _)| *count > 0);
    let others: String = others.map(|(count, words)| format!(", {count} {words}")).collect();
    let mut lines = vec![format!("{} of {} as predicted{chance}{others}", right + by_chance, counts.all())];
    lines.extend(differences.iter().map(|other| format!("not: {other}")));
    lines
}

/// Extent of the history: `1h12m (14.2 MiB of 512.0 MiB): f, then ← goes back`.
fn history(scene: &Scene) -> Option<String> {
    Some(match &scene.app.history {
        HistoryState::Kept { from, bytes, limit } => {
            let (kept, size, most) =
                (text::age(scene.present, *from), text::bytes(*bytes), text::bytes(*limit));
            format!("{kept} ({size} of {most}): f, then ← goes back")
        }
        HistoryState::Loading => "begins when all lists are complete".into(),
        HistoryState::Off(why) => format!("off: {why}"),
        HistoryState::None => return None,
    })
}

/// Difference between the API server's clock and ours, accurate to half a second. It matters because other clocks write
/// renewTime and timeAdded.
fn clock_difference(difference: Option<Span>) -> String {
    let Some(difference) = difference else { return "not measured".into() };
    let (apart, to) =
        if difference.is_negative() { (-difference, "behind") } else { (difference, "ahead of") };
    if apart <= IN_SYNC {
        return "as ours, to half a second".into();
    }
    let whole = Span::from_secs((apart + IN_SYNC).as_secs());
    format!("{whole} {to} ours")
}

/// The active controller.
fn leader(scene: &Scene) -> Runs {
    let dim = scene.style(Role::Dim);
    let name = Runs::default();
    if scene.app.model.effects.role() == ControllerRole::Controller {
        return name.and("kordon itself", scene.style(Role::Strong));
    }
    let leadership = scene.shown.leadership(scene.shown.views.taken);
    let leader = match leadership {
        Leadership::Kordon(leader) | Leadership::Held(leader) => leader,
        Leadership::Released => return name.and("the Lease has no holder", scene.style(Role::FeedBroken)),
        Leadership::NoLease => {
            return name.and("no Lease: leader election may be off", scene.style(Role::FeedBusy));
        }
        Leadership::Forbidden => return name.and("the Lease may not be read", scene.style(Role::FeedBroken)),
        Leadership::Absent => return name.and("no Lease in the files", dim),
        Leadership::Unknown => return name.and("unknown", dim),
    };
    // The identity of the Lease's holder is its host name and a UUID.
    let host = leader.holder.split('_').next().unwrap_or_default();
    let is_kordon = matches!(leadership, Leadership::Kordon(_));
    let name = if is_kordon { name.and("kordon controller on ", scene.style(Role::Base)) } else { name };
    let mut runs = name.and(host, scene.style(Role::Base));
    if let Some(renewed) = leader.renewed {
        let renewed = scene.shown.cluster.local(renewed);
        let late = scene.now.since(renewed) > leader.validity();
        let role = if late { Role::FeedBroken } else { Role::Dim };
        runs = runs.and(&format!(" renewed {} ago", text::age(scene.now, renewed)), scene.style(role));
    }
    match leader.acquired {
        Some(acquired) => runs.and(&format!(", leader for {}", scene.age(acquired)), dim),
        None => runs,
    }
}

/// Every setting of the controller with its origin.
fn settings(scene: &Scene) -> impl Iterator<Item = Runs> {
    let rows = scene.app.model.settings.rows().into_iter();
    rows.map(|(flag, value, origin)| {
        let role = if origin == Origin::Default { Role::Base } else { Role::Strong };
        Runs::new(&format!("  {flag:<40}"), scene.style(Role::Dim))
            .and(&format!("{value:<12}"), scene.style(role))
            .and(origin.as_str(), scene.style(Role::Dim))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kordon_core::forecast::{
        EventKind, OutcomeDifferences,
        accuracy::{EventCounts, MissReason},
    };

    #[test]
    fn the_record_of_the_predictions_has_counts_and_errors() {
        assert_eq!(predictions(&AccuracyReport::default()), ["no event to compare with yet"]);
        let mut counts =
            EventCounts { on_time: 30, by_chance: 4, unforeseeable: 1, ..EventCounts::default() };
        counts.missed[MissReason::Late as usize] = 1;
        let report = AccuracyReport {
            kinds: [(EventKind::Unknown, counts)].into(),
            median: Some(Span::from_millis(400)),
            worst: Some(Span::from_secs(40)),
            latest: Some(Span::from_secs(40)),
            most_among: 3,
            ..AccuracyReport::default()
        };
        let expected = [
            "34 of 36 on time (4 by chance among 3), 1 unforeseeable, 1 missed",
            "missed: 1 late",
            "error of the time: median 400ms, 40s late at most",
        ];
        assert_eq!(predictions(&report), expected);
    }

    #[test]
    fn the_record_of_the_outcomes_says_what_was_another_one() {
        assert!(outcomes(&OutcomeReport::default()).is_empty());
        let report = OutcomeReport {
            counts: OutcomeScore { right: 37, by_chance: 2, wrong: 5, not_predicted: 0, open: 1 },
            differences: vec![
                OutcomeDifferences { predicted: "moves", became: "moves", pods: 4, reordered: 3 },
                OutcomeDifferences { predicted: "moves", became: "pending", pods: 1, reordered: 0 },
            ],
            last: Vec::new(),
        };
        let expected = [
            "39 of 45 as predicted (2 by chance), 5 not, 1 not known yet",
            "not: 4 predicted moves, became moves to another node (3 placed in another order)",
            "not: 1 predicted moves, became pending",
        ];
        assert_eq!(outcomes(&report), expected);
    }

    #[test]
    fn clocks_are_compared_as_exactly_as_an_answer_tells() {
        let text = |millis| clock_difference(Some(Span::from_millis(millis)));
        assert_eq!(clock_difference(None), "not measured");
        assert_eq!([text(0), text(500), text(-500)], ["as ours, to half a second"; 3]);
        assert_eq!(
            [text(501), text(1499), text(1500)],
            ["1s ahead of ours", "1s ahead of ours", "2s ahead of ours"]
        );
        assert_eq!([text(-2400), text(-90_000)], ["2s behind ours", "1m30s behind ours"]);
    }
}
