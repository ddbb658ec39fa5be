//! What other settings would have done, as a table and a chart for people.

use super::{
    chart,
    document::{TuneReport, TunedSettings, TunedSpread, TunedTotals, duration},
};
use crate::{
    cli::{
        page::{Emphasis, Page, none},
        table::PageTable,
    },
    counterfactual::Uncertainty,
};

pub fn render(report: &TuneReport, page: &mut Page) {
    let TuneReport { from, until, context, .. } = report;
    let within = duration(report.back_within_seconds);
    page.line(
        Emphasis::Plain,
        &format!("{} of {context}, {} to {}", until.since(*from), from.to_time(), until.to_time()),
    );
    page.line(Emphasis::Dim, &format!("unnecessary: evicted from a node that was back within {within}"));
    let settings = report.settings.iter().map(TuneRow::new);
    PageTable::new(&std::iter::once(TuneRow::recorded(&report.happened)).chain(settings).collect::<Vec<_>>())
        .key("CHART", |row| row.letter.clone())
        .key("SETTINGS", |row| row.name.clone())
        .toned(|row| if row.is_present { Emphasis::Notice } else { Emphasis::Plain })
        .useful("UNREACHABLE", |row| row.nodes_unreachable.to_string())
        .right()
        .essential("EVICTED", |row| row.pods_evicted.to_string())
        .right()
        .essential("UNNECESSARY", |row| row.pods_unnecessary.to_string())
        .right()
        .useful("DETECTION (MAX)", |row| spread(row.detection))
        .essential("EVICTED AFTER", |row| row.evicted_after.clone())
        .detail("UNCERTAIN", |row| row.uncertain.map_or_else(String::new, |count| count.to_string()))
        .right()
        .print(page);
    page.line(Emphasis::Plain, "");
    for line in chart::lines(&report.settings) {
        page.line(Emphasis::Plain, &line);
    }
    notes(report, page);
}

/// What the recorded controllers did, or what controllers with other settings would have done.
struct TuneRow<'a> {
    letter: String,
    name: String,
    is_present: bool,
    nodes_unreachable: usize,
    pods_evicted: usize,
    pods_unnecessary: usize,
    detection: Option<&'a TunedSpread>,
    evicted_after: String,
    /// None for what was recorded.
    uncertain: Option<usize>,
}

impl<'a> TuneRow<'a> {
    fn recorded(happened: &'a TunedTotals) -> Self {
        let after = happened.eviction.as_ref();
        Self {
            letter: String::new(),
            name: "as recorded".into(),
            is_present: false,
            nodes_unreachable: happened.nodes_unreachable,
            pods_evicted: happened.pods_evicted,
            pods_unnecessary: happened.pods_unnecessary,
            detection: happened.detection.as_ref(),
            evicted_after: after.map_or_else(none, |after| duration(after.median_seconds)),
            uncertain: None,
        }
    }

    fn new(settings: &'a TunedSettings) -> Self {
        let mark = if settings.present { "*" } else { "" };
        let about = if settings.eviction.is_some() { "" } else { "~" };
        Self {
            letter: format!("{}{mark}", settings.letter),
            name: if settings.present { "in force".into() } else { name(&settings.with) },
            is_present: settings.present,
            nodes_unreachable: settings.nodes_unreachable,
            pods_evicted: settings.pods_evicted,
            pods_unnecessary: settings.pods_unnecessary,
            detection: settings.detection.as_ref(),
            evicted_after: format!("{about}{}", duration(settings.eviction_seconds())),
            uncertain: Some(settings.uncertain),
        }
    }
}

/// What differs; of two equal tolerations in one word.
fn name(with: &[String]) -> String {
    let (tolerations, others): (Vec<&String>, Vec<&String>) =
        with.iter().partition(|setting| setting.contains("-toleration-seconds="));
    let mut words: Vec<String> = others.into_iter().cloned().collect();
    match tolerations[..] {
        [one, other]
            if one.split_once('=').map(|(_, value)| value)
                == other.split_once('=').map(|(_, value)| value) =>
        {
            let value = one.split_once('=').map_or("", |(_, value)| value);
            words.push(format!("default-*-toleration-seconds={value}"));
        }
        _ => words.extend(tolerations.into_iter().cloned()),
    }
    words.join(" ")
}

/// What the numbers rest on.
fn notes(report: &TuneReport, page: &mut Page) {
    page.line(Emphasis::Plain, "");
    if let Some(present) = report.settings.iter().find(|one| one.present)
        && (present.nodes_unreachable, present.pods_evicted)
            != (report.happened.nodes_unreachable, report.happened.pods_evicted)
    {
        let text = "the settings in force do not give what was recorded: the controller had other settings, or did more than is \
                    modelled";
        page.line(Emphasis::Warning, text);
    }
    if report.settings.iter().any(|one| one.eviction.is_none()) {
        page.line(Emphasis::Dim, "~ no pod left a dead node: grace period + toleration, at least");
    }
    for kind in Uncertainty::ALL {
        let of = |one: &TunedSettings| {
            one.uncertainties
                .iter()
                .find(|uncertain| uncertain.kind == kind.as_str())
                .map(|found| found.count)
        };
        let counts: Vec<String> = report
            .settings
            .iter()
            .filter_map(|one| of(one).map(|count| format!("{} {count}", one.letter)))
            .collect();
        if !counts.is_empty() {
            page.line(Emphasis::Dim, &format!("uncertain: {} ({})", kind.meaning(), counts.join(", ")));
        }
    }
}

/// `45s (48s)`
fn spread(spread: Option<&TunedSpread>) -> String {
    spread.map_or_else(none, |spread| {
        format!("{} ({})", duration(spread.median_seconds), duration(spread.longest_seconds))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cli::tune::document::tests::settings, time::Timestamp};

    #[test]
    fn two_equal_tolerations_are_one_word() {
        let [ready, reachable] =
            ["default-not-ready-toleration-seconds=30", "default-unreachable-toleration-seconds=30"];
        let both = [ready.to_owned(), reachable.to_owned()];
        assert_eq!(name(&both), "default-*-toleration-seconds=30");
        let different = [ready.to_owned(), "default-unreachable-toleration-seconds=60".to_owned()];
        assert_eq!(name(&different), different.join(" "));
        assert_eq!(name(&both[..1]), ready);
    }

    #[test]
    fn the_table_marks_what_is_in_force_and_says_what_is_uncertain() {
        let mut page = Page::default();
        let present = TunedSettings { present: true, with: Vec::new(), ..settings("b", 4, 300.0) };
        let totals = TunedTotals {
            nodes_unreachable: 3,
            pods_evicted: 21,
            pods_unnecessary: 4,
            detection: None,
            eviction: None,
        };
        let report = TuneReport {
            schema: "kordon.tune/v1",
            context: "demo".into(),
            from: Timestamp::EPOCH,
            until: Timestamp::EPOCH,
            back_within_seconds: 300.0,
            happened: totals,
            settings: vec![settings("a", 9, 70.0), present],
        };
        render(&report, &mut page);
        let text = page.into_text();
        for expected in ["as recorded", "b*", "in force", "do not give what was recorded", "(a 1, b 1)"] {
            assert!(text.contains(expected), "{expected}:\n{text}");
        }
    }
}
