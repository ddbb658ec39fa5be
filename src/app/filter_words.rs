//! Words of a filter: those that complete the last one while it is typed, and those that no row has.

use std::collections::BTreeSet;

use tui_input::Input;

use super::{
    App, Filter, Pane,
    arguments::common_start,
    completion::begins,
    filter::name_typed,
    filter_fields::{fields, has_labels, is_other_name, possible_values},
    filterable_rows::{RowVisitor, VisitRows},
    key_prefix::FilterCandidate,
    overlays::Overlay,
};
use kordon_core::cluster::Name;

/// A name in a filter that is no field and no label of any row, with what was probably meant; `None` also if the rows of
/// the pane have labels and there are no rows.
pub fn unknown_name(filter: &Filter, pane: Pane, rows: &VisitRows<'_>) -> Option<String> {
    let fields = fields(pane);
    let mut has_rows = false;
    rows(&mut |_| has_rows = true);
    if filter.is_empty() || fields.is_empty() || has_labels(pane) && !has_rows {
        return None;
    }
    let is_label = |name: &str| is_other_name(pane, name) || field_words(pane, name, rows).is_some();
    filter.unknown_field(fields, is_label, || label_keys(rows, |_| true))
}

/// A value in a filter that no row has, with what was probably meant.
pub fn unknown_value(filter: &Filter, pane: Pane, rows: &VisitRows<'_>) -> Option<String> {
    filter.unknown_value(|name| field_words(pane, name, rows))
}

/// A label that the label selectors of a filter require and no row has, or a value of one, with what was probably meant.
pub fn unknown_label(filter: &Filter, pane: Pane, rows: &VisitRows<'_>) -> Option<String> {
    let required = filter.required_labels();
    unknown_name(&required, pane, rows).or_else(|| unknown_value(&required, pane, rows))
}

/// Words that rows have in the field or label of this name; `None` if no row has it.
fn field_words(pane: Pane, name: &str, rows: &VisitRows<'_>) -> Option<BTreeSet<String>> {
    let mut words: Option<BTreeSet<String>> = None;
    rows(&mut |row| {
        if let Some(value) = row.field(name) {
            let words = words.get_or_insert_default();
            words.extend(value.split_whitespace().map(str::to_owned));
        }
    });
    let possible = possible_values(pane, name).into_iter().map(str::to_owned);
    words.map(|words| words.into_iter().chain(possible).collect())
}

/// Keys of labels of rows.
fn label_keys(rows: &VisitRows<'_>, is_wanted: impl Fn(&Name) -> bool) -> BTreeSet<Name> {
    let mut found = BTreeSet::new();
    rows(&mut |row| {
        let keys = row.labels().into_iter().flat_map(|labels| labels.keys());
        found.extend(keys.filter(|key| is_wanted(key)).cloned());
    });
    found
}

/// The part of a typed filter that candidates complete: the value, or the name, of its last word.
fn word_typed(text: &str) -> &str {
    Filter::value_typed(text).map_or_else(|| name_typed(text), |(_, value)| value)
}

impl App {
    /// What is wrong with the filter of a pane, if anything.
    pub(super) fn filter_fault(&self, pane: Pane) -> Option<String> {
        self.filter_error(pane).or_else(|| self.unknown_word(pane))
    }

    /// What is wrong with the filter that is being typed, which has these [candidates](Self::filter_candidates).
    pub fn typed_filter_fault(&self, candidates: &[String]) -> Option<String> {
        self.typed_filter()?;
        let pane = self.screen.focus;
        self.filter_error(pane).or_else(|| self.unknown_word_beside(candidates, pane))
    }

    fn filter_error(&self, pane: Pane) -> Option<String> {
        self.screen.filter(pane).error(fields(pane))
    }

    /// A name in the filter of a pane that is no field and no label of any row, or a value that no row has, with what
    /// was probably meant; `None` also if it is not known which labels rows have, because the pane has no rows, or too
    /// many. While a filter is typed, a last word that can be completed is not wrong yet.
    pub fn unknown_word(&self, pane: Pane) -> Option<String> {
        self.unknown_word_beside(&self.filter_candidates(), pane)
    }

    /// As [`Self::unknown_word`], with the [candidates](Self::filter_candidates) for the last word.
    fn unknown_word_beside(&self, candidates: &[String], pane: Pane) -> Option<String> {
        if !candidates.is_empty() {
            return None;
        }
        let (filter, rows) = (self.screen.filter(pane), self.rows(pane));
        unknown_name(filter, pane, &rows).or_else(|| unknown_value(filter, pane, &rows))
    }

    /// Words that may complete the last word of the filter that is being typed: values of a field or label, names of
    /// fields, or names of labels if no field has such a name. If Tab has chosen one of them, it is the first.
    pub fn filter_candidates(&self) -> Vec<String> {
        let Some(text) = self.typed_filter() else { return Vec::new() };
        if let Some(candidate) = self.chosen_candidate() {
            return candidate.all.clone();
        }
        let pane = self.screen.focus;
        if let Some((name, typed)) = Filter::value_typed(text) {
            let typed = typed.to_lowercase();
            let words = field_words(pane, &name.to_lowercase(), &self.rows(pane)).unwrap_or_default();
            let continues = |word: &String| {
                let word = word.to_lowercase();
                word.starts_with(&typed) && word != typed
            };
            return words.into_iter().filter(continues).collect();
        }
        match Filter::proposals(text, fields(pane)) {
            names if names.is_empty() => self.labels_like(pane, name_typed(text)),
            names => names.into_iter().map(str::to_owned).collect(),
        }
    }

    /// The candidate that Tab has chosen; `None` once another text is typed.
    fn chosen_candidate(&self) -> Option<&FilterCandidate> {
        let text = self.typed_filter()?;
        self.screen.key_prefix.candidate.as_ref().filter(|candidate| candidate.text == text)
    }

    /// The first candidate for the last word of the typed filter, or the next one if the last key chose a candidate.
    fn next_candidate(&self) -> Option<FilterCandidate> {
        let mut all = self.filter_candidates();
        let before = match self.chosen_candidate() {
            Some(chosen) => {
                all.rotate_left(1);
                chosen.before.clone()
            }
            None => {
                let text = self.typed_filter()?;
                text.strip_suffix(word_typed(text))?.to_owned()
            }
        };
        let first = all.first()?;
        let end = if Filter::value_typed(&before).is_some() {
            ""
        } else {
            let field = fields(self.screen.focus).iter().find(|field| field.name == first);
            field.map_or("=", |field| field.kind.sign())
        };
        let text = format!("{before}{first}{end}");
        Some(FilterCandidate { all, before, text })
    }

    /// The filter that is being typed, with its last word completed as far as it is unambiguous.
    fn completed_filter(&self) -> Option<String> {
        let text = self.typed_filter().filter(|_| self.chosen_candidate().is_none())?;
        let fields = fields(self.screen.focus);
        let completed = Filter::complete(text, fields);
        if completed.is_some() || !Filter::proposals(text, fields).is_empty() {
            return completed;
        }
        let candidates = self.filter_candidates();
        let typed = word_typed(text);
        let is_label = candidates.len() == 1 && Filter::value_typed(text).is_none();
        let end = if is_label { "=" } else { "" };
        let common = common_start(&candidates).filter(|common| common.len() >= typed.len())?;
        let completed = format!("{}{common}{end}", text.strip_suffix(typed)?);
        (completed != text).then_some(completed)
    }

    /// Whether Tab changes the filter that is being typed.
    pub(super) fn can_complete_filter(&self) -> bool {
        let completes = |text: &str| Filter::complete(text, fields(self.screen.focus)).is_some();
        self.typed_filter().is_some_and(completes) || !self.filter_candidates().is_empty()
    }

    /// Completes the filter that is being typed as far as it is unambiguous; where it is not, with the first candidate,
    /// and then with the next one. Returns `false` if no filter is being typed.
    pub(super) fn complete_filter(&mut self) -> bool {
        let is_typed = self.typed_filter().is_some();
        let completed = self.completed_filter().or_else(|| {
            let candidate = self.next_candidate()?;
            let text = candidate.text.clone();
            self.screen.key_prefix.candidate = Some(candidate);
            Some(text)
        });
        if let Some(text) = completed {
            let pane = self.screen.focus;
            self.screen.set_filter(pane, &text);
            if let Some(Overlay::Filter(input)) = self.screen.focused_overlay_mut() {
                *input = Input::new(text);
            }
        }
        is_typed
    }

    fn typed_filter(&self) -> Option<&str> {
        match self.screen.overlays.top()? {
            Overlay::Filter(input) => Some(input.value()),
            _ => None,
        }
    }

    /// The rows of a pane; none if the pane has too many.
    pub(super) fn rows(&self, pane: Pane) -> impl Fn(RowVisitor<'_>) {
        move |visit| {
            self.visit_rows(pane, visit);
        }
    }

    /// Keys of labels of the rows of a pane that begin with a word.
    fn labels_like(&self, pane: Pane, word: &str) -> Vec<String> {
        if word.is_empty() {
            return Vec::new();
        }
        let keys = label_keys(&self.rows(pane), |key| begins(key, word));
        keys.into_iter().map(|key| key.to_string()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_found_without_rows_where_no_row_has_labels() {
        let unknown = |pane, text: &str| unknown_name(&Filter::parse(text), pane, &|_| {});
        let said = "nod is no field here; did you mean node?";
        assert_eq!(unknown(Pane::Evictions, "ns=shop nod=a").as_deref(), Some(said));
        assert_eq!(unknown(Pane::Evictions, "name=a namespace=shop node=b"), None);
        assert_eq!(unknown(Pane::Nodes, "nod=a"), None, "nod may be a label");
        assert_eq!(unknown(Pane::Detail, "nod=a"), None, "a detail has no fields");
    }
}
