//! Near misses: which rows would match a filter if one of its conditions were left out.

use std::collections::BTreeSet;

use super::{App, Filter, Pane, filter::Measure, filter_words::unknown_label, filterable_rows::MOST_ROWS};
use kordon_core::cluster::nearest::nearest;

/// Near miss of a filter that no row matches: the rows that would match if one condition were left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearMiss {
    /// Number of rows that the pane has without a filter.
    pub all: usize,
    /// The condition whose removal lets the most rows match, with the number of these rows; `None` if no row matches
    /// after the removal of any single condition.
    pub without: Option<(String, usize)>,
}

impl App {
    /// Finds the near miss in a pane whose filter matches no row. Returns `None` if the pane has no rows or too
    /// many, or is a kind of pane without near misses, such as a detail.
    pub fn near_miss(&self, pane: Pane) -> Option<NearMiss> {
        let all = self.count_matches(pane, &Filter::NONE).filter(|all| (1..=MOST_ROWS).contains(all))?;
        let filter = self.screen.filter(pane);
        let counted = filter.without_each().into_iter().filter_map(|(condition, rest)| {
            let matches = self.count_matches(pane, &rest).filter(|matches| *matches > 0)?;
            (!rest.is_empty()).then_some((condition, matches))
        });
        // Of several conditions whose removal lets equally many rows match, the first one is named.
        let without = counted.reduce(|best, other| if other.1 > best.1 { other } else { best });
        Some(NearMiss { all, without })
    }

    /// Another filter that matches rows where that of the pane matches none, with the number of these rows.
    pub fn alternative_filter(&self, pane: Pane) -> Option<(String, usize)> {
        let text = self.screen.filter(pane).alternative()?;
        let has_names = has_names(pane) || !text.starts_with('~');
        let matches = || self.count_matches(pane, &Filter::parse(&text)).filter(|matches| *matches > 0);
        let matches = has_names.then(matches)??;
        Some((text, matches))
    }

    /// What would match where the filter of the pane has one condition that no row passes: the word or value that was
    /// probably meant, or the values of a field that is compared.
    pub fn near_value(&self, pane: Pane) -> Option<String> {
        let filter = self.screen.filter(pane);
        if let Some(word) = filter.only_word().filter(|_| has_names(pane)) {
            let words = self.words(pane);
            let meant = nearest(word, words.iter().map(String::as_str))?;
            return Some(format!("did you mean {meant}?"));
        }
        if let Some(field) = filter.only_compared() {
            let (least, most) = self.range_of(pane, field)?;
            return Some(match least == most {
                true => format!("all have {field} {least}"),
                false => format!("values of {field} are {least} to {most}"),
            });
        }
        unknown_label(filter, pane, &self.rows(pane))
    }

    /// Words in the texts of a pane's rows.
    fn words(&self, pane: Pane) -> BTreeSet<String> {
        let mut words = BTreeSet::new();
        self.visit_rows(pane, &mut |row| {
            row.texts(&mut |text| {
                let parts = text.split(|letter: char| !letter.is_alphanumeric()).chain([text]);
                words.extend(parts.map(str::to_owned));
            });
        });
        words
    }

    /// The least and the greatest value of a field that is compared.
    fn range_of(&self, pane: Pane, field: &str) -> Option<(Measure, Measure)> {
        let mut range: Option<(Measure, Measure)> = None;
        self.visit_rows(pane, &mut |row| {
            let Some(value) = row.measure(field) else { return };
            let (least, most) = range.get_or_insert((value, value));
            if value < *least {
                *least = value;
            }
            if value > *most {
                *most = value;
            }
        });
        range
    }

    /// Number of pods that `:pods` finds by this text; `None` if it finds none, or if there are too many pods to count.
    pub fn count_pods_like(&self, text: &str) -> Option<usize> {
        if self.shown().cluster.pods().len() > MOST_ROWS {
            return None;
        }
        Some(self.pods_like(text).count()).filter(|found| *found > 0)
    }

    /// Number of rows of a pane that pass a filter.
    fn count_matches(&self, pane: Pane, filter: &Filter) -> Option<usize> {
        let mut count = 0;
        let is_counted = self.visit_rows(pane, &mut |row| count += usize::from(filter.matches(row)));
        is_counted.then_some(count)
    }
}

/// Whether the texts of the rows of a pane are names. In sentences, letters that stand apart are found by chance.
const fn has_names(pane: Pane) -> bool {
    match pane {
        Pane::Zones | Pane::Nodes | Pane::Pods | Pane::Evictions | Pane::Pending | Pane::Budgets => true,
        Pane::Events
        | Pane::Departures
        | Pane::Audit
        | Pane::Journal
        | Pane::Forecast
        | Pane::Detail
        | Pane::Plan
        | Pane::Progress => false,
    }
}
