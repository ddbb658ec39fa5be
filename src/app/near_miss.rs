//! Near misses: which rows would match a filter if one of its conditions were left out.

use super::{App, Filter, Pane, filterable_rows::MOST_ROWS};

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
        let is_fuzzy = text.starts_with('~');
        let has_names = match pane {
            Pane::Zones | Pane::Nodes | Pane::Pods | Pane::Evictions | Pane::Pending | Pane::Budgets => true,
            // In sentences, letters that stand apart are found by chance.
            Pane::Events
            | Pane::Departures
            | Pane::Audit
            | Pane::Journal
            | Pane::Forecast
            | Pane::Detail
            | Pane::Plan
            | Pane::Progress => !is_fuzzy,
        };
        let matches = || self.count_matches(pane, &Filter::parse(&text)).filter(|matches| *matches > 0);
        let matches = has_names.then(matches)??;
        Some((text, matches))
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
