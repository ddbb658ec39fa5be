//! The comparison of other settings as a table and a chart for people.

use super::{
    chart,
    document::{TuneReport, TunedOutages, TunedSettings, TunedSpread, TunedTotals, duration},
};
use crate::cli::{
    page::{Emphasis, Page, none},
    table::PageTable,
};
use kordon_core::{counterfactual::Uncertainty, engine::Settings, plan::words::counted};

pub fn render(report: &TuneReport, page: &mut Page) {
    let TuneReport { from, until, context, .. } = report;
    page.line(
        Emphasis::Plain,
        &format!("{} of {context}, {} to {}", until.since(*from), from.to_time(), until.to_time()),
    );
    let settings = report.settings.iter().map(TuneRow::new);
    PageTable::new(&std::iter::once(TuneRow::recorded(&report.happened)).chain(settings).collect::<Vec<_>>())
        .key("CHART", |row| row.letter.clone())
        .key("SETTINGS", |row| row.name.clone())
        .toned(|row| if row.is_present { Emphasis::Notice } else { Emphasis::Plain })
        .essential("RAN NOWHERE", |row| duration(row.totals.ran_nowhere_seconds))
        .right()
        .essential("MOVES", |row| row.totals.moves.to_string())
        .right()
        .essential("FOR BLIPS", |row| row.totals.blip_moves.to_string())
        .right()
        .useful("NOT BACK: NOWHERE", |row| duration(row.totals.not_ended_ran_nowhere_seconds))
        .right()
        .useful("NOT BACK: MOVES", |row| row.totals.not_ended_moves.to_string())
        .right()
        .detail("UNREACHABLE", |row| row.totals.nodes_unreachable.to_string())
        .right()
        .detail("DETECTION (MAX)", |row| spread(row.totals.detection.as_ref()))
        .detail("UNCERTAIN", |row| row.uncertain.map_or_else(none, |count| count.to_string()))
        .right()
        .print(page);
    page.line(Emphasis::Plain, "");
    for (heading, meaning) in meanings(report) {
        page.line(Emphasis::Dim, &format!("{heading}: {meaning}"));
    }
    page.line(Emphasis::Plain, "");
    page.drawing(&chart::lines(&report.settings, report.blip_seconds));
    page.line(Emphasis::Dim, CHART_MEANING);
    page.line(Emphasis::Plain, "");
    note_differences(report, page);
    note_uncertainties(report, page);
}

/// Meaning of the marks in the chart, and of their places.
const CHART_MEANING: &str = "each letter is a row of the table, and * the settings in force; letters that share a place are \
                             side by side; settings near the lower left corner cost least";

/// Meaning of each column, as a sentence.
fn meanings(report: &TuneReport) -> [(&'static str, String); 10] {
    let TunedOutages { ended, ended_pods, blips, blip_pods, not_ended, not_ended_pods } = report.outages;
    let (blip, start) = (duration(report.blip_seconds), duration(report.start_seconds));
    let outages = |count| counted(count, "outage", "outages");
    let pods = |count| counted(count, "pod", "pods");
    [
        ("CHART", "letter of the settings in the chart below; * marks the settings in force".into()),
        ("SETTINGS", settings_meaning(report)),
        (
            "RAN NOWHERE",
            format!(
                "time in which a pod ran nowhere, summed over the {} of {} whose node came back: from the node's last \
                 heartbeat until it was back, or {start} after the pod's replacement was created",
                pods(ended_pods),
                outages(ended)
            ),
        ),
        ("MOVES", "how many of these pods were evicted".into()),
        (
            "FOR BLIPS",
            format!(
                "how many of them in outages that were shorter than {blip} from the last heartbeat ({}, {})",
                outages(blips),
                pods(blip_pods)
            ),
        ),
        (
            "NOT BACK: NOWHERE",
            format!(
                "the same time for the {} of {} whose node did not come back, until it was deleted or the recording \
                 ended",
                pods(not_ended_pods),
                outages(not_ended)
            ),
        ),
        ("NOT BACK: MOVES", "how many of these pods were evicted".into()),
        (
            "UNREACHABLE",
            "how often a node was declared Unknown; nodes without pods count here, and their outages do not count above"
                .into(),
        ),
        (
            "DETECTION (MAX)",
            "from the last heartbeat until the node was declared Unknown: median and longest".into(),
        ),
        ("UNCERTAIN", "how much might have been different; see below".into()),
    ]
}

/// Meaning of the column SETTINGS. Names the flag that only kordon has, if a row has it.
fn settings_meaning(report: &TuneReport) -> String {
    let with = report.settings.iter().flat_map(|one| &one.with);
    let mut flags = with.filter_map(|setting| setting.split_once('=')).map(|(flag, _)| flag);
    let own = flags.find(|flag| Settings::is_own_flag(flag)).map_or_else(String::new, |flag| {
        format!("; only kordon has the flag {flag}, kube-controller-manager does not")
    });
    format!(
        "how the settings differ from those in force; the first row is what the recorded controllers did{own}"
    )
}

/// Row with the actions of the recorded controllers, or of a controller with other settings.
struct TuneRow<'a> {
    letter: String,
    name: String,
    is_present: bool,
    totals: &'a TunedTotals,
    /// Total number of uncertainties with these settings; `None` for the recorded controllers.
    uncertain: Option<usize>,
}

impl<'a> TuneRow<'a> {
    fn recorded(happened: &'a TunedTotals) -> Self {
        Self {
            letter: none(),
            name: "as recorded".into(),
            is_present: false,
            totals: happened,
            uncertain: None,
        }
    }

    fn new(settings: &'a TunedSettings) -> Self {
        let mark = if settings.present { "*" } else { "" };
        Self {
            letter: format!("{}{mark}", settings.letter),
            name: if settings.present { "in force".into() } else { name(&settings.with) },
            is_present: settings.present,
            totals: &settings.totals,
            uncertain: Some(settings.uncertain),
        }
    }
}

/// Text for the settings that differ from those in force. If the tolerations for not-ready and unreachable nodes are
/// equal, they are combined.
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

/// Says how the row of the settings in force differs from what was recorded, if it does.
fn note_differences(report: &TuneReport, page: &mut Page) {
    let Some(present) = report.settings.iter().find(|one| one.present) else { return };
    let counts = |totals: &TunedTotals| {
        let TunedTotals { nodes_unreachable, pods_evicted, moves, blip_moves, not_ended_moves, .. } = *totals;
        [nodes_unreachable, pods_evicted, moves, blip_moves, not_ended_moves]
    };
    let times = |totals: &TunedTotals| {
        let nowhere = [totals.ran_nowhere_seconds, totals.not_ended_ran_nowhere_seconds].map(duration);
        (nowhere, spread(totals.detection.as_ref()))
    };
    let (here, recorded) = (&present.totals, &report.happened);
    if counts(here) != counts(recorded) {
        let text = "the settings in force do not give what was recorded: the controller had other settings, or did more than is \
                    modelled";
        page.line(Emphasis::Warning, text);
    } else if times(here) != times(recorded) {
        let text = "the settings in force give other times than were recorded: each may differ by two monitor periods, because a \
                    recording does not show when passes were, and the order of evictions in a zone is chance; if DETECTION \
                    differs by more, the controller had other settings";
        page.line(Emphasis::Dim, text);
    }
}

/// Says what might have been different, and how often with which settings.
fn note_uncertainties(report: &TuneReport, page: &mut Page) {
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

/// Median and maximum: `45s (48s)`.
fn spread(spread: Option<&TunedSpread>) -> String {
    spread.map_or_else(none, |spread| {
        format!("{} ({})", duration(spread.median_seconds), duration(spread.longest_seconds))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::tune::document::tests::{report, settings};

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
        let present = TunedSettings { present: true, with: Vec::new(), ..settings("b", 4, 300.0) };
        let text = rendered(&report(vec![settings("a", 9, 70.0), present]));
        for expected in ["as recorded", "b*", "in force", "do not give what was recorded", "(a 1, b 1)"] {
            assert!(text.contains(expected), "{expected}:\n{text}");
        }
    }

    #[test]
    fn every_column_and_the_marks_of_the_chart_have_a_meaning() {
        let text = rendered(&report(vec![settings("a", 9, 70.0)]));
        let heads = text.lines().find(|line| line.starts_with("CHART ")).expect("a table");
        for head in heads.split("  ").map(str::trim).filter(|head| !head.is_empty()) {
            let meaning = format!("{head}: ");
            assert!(text.lines().any(|line| line.starts_with(&meaning)), "{head}:\n{text}");
        }
        assert!(text.contains("each letter is a row of the table, and * the settings in force"), "{text}");
        assert!(!text.contains("only kordon"), "{text}");
        let paused = TunedSettings { with: vec!["full-disruption=pause".into()], ..settings("a", 0, 70.0) };
        let text = rendered(&report(vec![paused]));
        assert!(text.contains("; only kordon has the flag full-disruption"), "{text}");
    }

    #[test]
    fn outages_and_pods_are_counted_in_words_that_fit_their_number() {
        let mut report = report(vec![settings("a", 9, 70.0)]);
        report.outages =
            TunedOutages { ended: 1, ended_pods: 7, blips: 1, blip_pods: 1, not_ended: 2, not_ended_pods: 1 };
        let text = rendered(&report);
        for expected in [
            "summed over the 7 pods of 1 outage whose node came back",
            "shorter than 10m00s from the last heartbeat (1 outage, 1 pod)",
            "for the 1 pod of 2 outages whose node did not come back",
        ] {
            assert!(text.contains(expected), "{expected}:\n{text}");
        }
    }

    #[test]
    fn a_note_says_where_the_settings_in_force_differ_from_the_recording() {
        let present = TunedSettings { present: true, ..settings("a", 4, 300.0) };
        let note = |change: fn(&mut TunedTotals)| {
            let mut report = report(vec![present.clone()]);
            report.happened = present.totals.clone();
            change(&mut report.happened);
            let text = rendered(&report);
            let is_note = |line: &&str| line.starts_with("the settings in force ");
            text.lines().find(is_note).map(str::to_owned)
        };
        assert_eq!(note(|_| {}), None);
        assert_eq!(
            note(|happened| happened.ran_nowhere_seconds += 0.4),
            None,
            "the table shows whole seconds"
        );
        let counts: [fn(&mut TunedTotals); 3] = [
            |happened| happened.pods_evicted += 1,
            |happened| happened.moves += 1,
            |happened| happened.not_ended_moves += 1,
        ];
        for change in counts {
            let text = note(change).expect("a note");
            assert!(text.contains("do not give what was recorded"), "{text}");
        }
        let times: [fn(&mut TunedTotals); 3] = [
            |happened| happened.ran_nowhere_seconds += 6.0,
            |happened| happened.not_ended_ran_nowhere_seconds += 6.0,
            |happened| happened.detection = None,
        ];
        for change in times {
            let text = note(change).expect("a note");
            assert!(text.contains("give other times than were recorded"), "{text}");
        }
    }

    fn rendered(report: &TuneReport) -> String {
        let mut page = Page::default();
        render(report, &mut page);
        page.into_text()
    }
}
