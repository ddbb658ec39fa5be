//! The detail of one node, pod or budget: what comes next, suggestions, and its object.

mod budget;
mod pressure;
mod reports;
mod rows;
mod suggestions;
mod yaml;

use std::sync::Arc;

use super::{
    filter::{Filter, Filterable},
    listing::Listing,
    pane::Pane,
};
use crate::model::{
    Model, SignalPressure, TimelineEntry, TimelineSource,
    suggestions::{Means, Suggestion},
};
use kordon_core::{
    cluster::{Cluster, Key, NodeName, ObjectEvents, ObjectRead},
    why::{Step, Tense},
};
use kordon_time::Timestamp;

pub use pressure::EvictionPlace;
pub use reports::{ShownObject, SubjectReport};
pub use suggestions::{DetailJob, DetailResult};
use yaml::YamlView;
pub use yaml::{Fold, YamlRow};

/// The node, pod or PodDisruptionBudget that a detail view describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DetailSubject {
    Node(NodeName),
    Pod(Key),
    Budget(Key),
}

/// The open detail view of a node, pod or budget.
#[derive(Clone, Debug)]
pub struct Detail {
    pub subject: DetailSubject,
    pub rows: Vec<DetailRow>,
    /// Listed rows, as indices into `rows`.
    pub list: Listing<usize>,
    /// Pane from which the detail was opened.
    pub from: Pane,
    /// Latest suggestions, computed on another thread.
    suggestions: Option<DetailResult>,
    events: ObjectEvents,
    object: ObjectRead,
    /// The lines of the object's YAML, with the folded blocks and the search.
    yaml: YamlView,
    /// The part of the object that is shown: its summary or its YAML.
    pub view: DetailView,
    /// The row of the detail that was selected last.
    chosen: Option<DetailRow>,
    /// Path, within the object, of the YAML line to select next.
    go_to: Option<Arc<str>>,
}

/// The part of an object that its detail view shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DetailView {
    /// The summary: what comes next, suggestions, what happened, and properties.
    Summary,
    /// The whole object as YAML.
    Yaml,
}

/// A row of a detail view.
#[derive(Clone, Debug, PartialEq)]
pub enum DetailRow {
    /// Title of the rows that follow, with a note that applies to all of them.
    Section { title: &'static str, note: String },
    /// Title of the steps that follow: past, present, expected, or ruled out.
    Tense(Tense),
    /// A step of the explanation of what happens to the node or pod.
    Step(Step),
    /// A suggested action.
    Suggestion(Box<Suggestion>),
    /// Risk of a suggestion and warnings of its plan.
    Caution(String),
    /// The kubectl or kordon command of a suggestion.
    Command(String),
    /// A property of the node or pod.
    Fact { name: String, at: Option<Timestamp>, text: String, tone: Tone },
    /// An entry of the timeline of the node or pod.
    Past(Box<TimelineEntry>),
    /// An eviction signal of the node, compared with its thresholds.
    Signal(Box<SignalPressure>),
    /// A pod's place in the order of eviction under pressure.
    EvictionPlace(Box<EvictionPlace>),
    /// A label or an annotation of the node or pod.
    Pair { key: Arc<str>, value: Arc<str> },
    /// A line of the whole object as YAML.
    Yaml(Box<YamlRow>),
}

/// Emphasis of a property of the node or pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Plain,
    /// A property that needs attention.
    Marked,
}

/// Inputs from which the rows of a detail view are computed.
#[derive(Clone, Copy, Debug)]
pub struct DetailContext<'a> {
    pub model: &'a Model,
    /// Note about what this session may write.
    pub mode: &'static str,
    pub filter: &'a Filter,
    pub now: Timestamp,
}

impl Detail {
    pub fn new(subject: DetailSubject, from: Pane) -> Self {
        let list = Listing::default();
        Self {
            subject,
            rows: Vec::new(),
            list,
            from,
            suggestions: None,
            events: ObjectEvents::default(),
            object: ObjectRead::default(),
            yaml: YamlView::default(),
            view: DetailView::Summary,
            chosen: None,
            go_to: None,
        }
    }

    /// Computes the rows of the detail again. If its object no longer exists, the last rows stay. While the whole
    /// object is shown as YAML, the filter only searches: all lines stay, and the first line that matches is selected.
    pub fn fill(&mut self, context: &DetailContext<'_>) {
        let is_yaml = self.view == DetailView::Yaml;
        if is_yaml && let Some(found) = self.yaml.search(context.filter, self.selected_path().as_ref()) {
            self.go_to = Some(found);
        }
        let Some(rows) = self.rows_of(context) else { return };
        self.chosen = self.selected().cloned().or_else(|| self.chosen.take());
        let place = self.list.selected().copied();
        self.rows = rows;
        let chosen = match self.go_to.take() {
            Some(path) => self.place_of_line(&path),
            None => self.chosen.as_ref().and_then(|chosen| self.place_of(chosen, place)),
        };
        let shown = match is_yaml || context.filter.is_empty() {
            true => (0..self.rows.len()).collect(),
            false => self.passing(context.filter),
        };
        self.list.replace_where(shown, |row| Some(*row) == chosen);
    }

    /// Indices of the rows that pass the filter, and of the headings above them.
    fn passing(&self, filter: &Filter) -> Vec<usize> {
        let mut kept = Vec::new();
        // Headings of the current row, until a row below them passes the filter.
        let (mut section, mut tense) = (None, None);
        for (place, row) in self.rows.iter().enumerate() {
            match row {
                DetailRow::Section { .. } => (section, tense) = (Some(place), None),
                DetailRow::Tense(_) => tense = Some(place),
                row if filter.matches(row) => {
                    kept.extend(section.take().into_iter().chain(tense.take()).chain([place]));
                }
                _ => {}
            }
        }
        kept
    }

    fn rows_of(&self, context: &DetailContext<'_>) -> Option<Vec<DetailRow>> {
        let cluster = &context.model.cluster;
        if self.view == DetailView::Yaml {
            return Some(self.yaml_rows());
        }
        match &self.subject {
            DetailSubject::Node(name) => Some(rows::of_node(cluster.node(name)?, self, context)),
            DetailSubject::Pod(key) => Some(rows::of_pod(cluster.pod(key)?, self, context)),
            DetailSubject::Budget(key) => Some(budget::rows(cluster.budgets().get(key)?, self, context)),
        }
    }

    /// Index of the row to select among the new rows: the row that is about the same thing as `chosen`, even if its
    /// text has changed; otherwise the row at `place`. If that row or `chosen` is an action, `None` instead of the row
    /// at `place`.
    fn place_of(&self, chosen: &DetailRow, place: Option<usize>) -> Option<usize> {
        if let DetailRow::Yaml(row) = chosen
            && let Some(line) = self.place_of_line(&row.path)
        {
            return Some(line);
        }
        let is_there = |place: &usize| self.rows.get(*place).is_some_and(|row| row.is_same(chosen));
        let found = place.filter(is_there).or_else(|| self.rows.iter().position(|row| row.is_same(chosen)));
        let is_action = |row: &DetailRow| matches!(row, DetailRow::Suggestion(_));
        let place =
            place.filter(|_| !is_action(chosen)).map(|place| place.min(self.rows.len().saturating_sub(1)));
        found.or(place.filter(|place| !self.rows.get(*place).is_some_and(is_action)))
    }

    /// Index of the row that shows a YAML line of the object. If the line is folded or gone, index of the first row of
    /// the innermost YAML block around it.
    fn place_of_line(&self, path: &str) -> Option<usize> {
        let is_line = |row: &DetailRow, path: &str| matches!(row, DetailRow::Yaml(row) if *row.path == *path);
        let mut path = path;
        loop {
            if let Some(place) = self.rows.iter().position(|row| is_line(row, path)) {
                return Some(place);
            }
            path = path.rsplit_once('/')?.0;
        }
    }

    /// Path of the selected YAML line of the object.
    fn selected_path(&self) -> Option<Arc<str>> {
        match self.selected()? {
            DetailRow::Yaml(row) => Some(row.path.clone()),
            _ => None,
        }
    }

    /// Folds the YAML block of the selected line, or unfolds it.
    pub(super) fn toggle_block(&mut self) {
        if let Some(path) = self.selected_path() {
            self.go_to = self.yaml.toggle(&path);
        }
    }

    /// Folds all blocks of the object's YAML, or unfolds them.
    pub(super) fn toggle_blocks(&mut self) {
        self.yaml.toggle_all();
    }

    /// Goes to the next YAML line that matches the search, or to the previous one.
    pub(super) fn go_to_match(&mut self, goes_back: bool) {
        self.go_to = self.yaml.next_match(self.selected_path().as_deref(), goes_back);
    }

    /// Whether the selected YAML line belongs to a block that can be folded.
    pub(super) fn can_fold(&self) -> bool {
        self.shows_object() && self.selected_path().is_some_and(|path| self.yaml.is_in_block(&path))
    }

    /// Whether the object's YAML has blocks that can be folded.
    pub(super) fn has_blocks(&self) -> bool {
        self.shows_object() && self.yaml.has_blocks()
    }

    /// Whether a YAML line of the object, other than the selected one, matches the search.
    pub(super) fn has_other_match(&self) -> bool {
        let is_match = |path: Arc<str>| self.yaml.match_number(&path).is_some();
        let here = usize::from(self.selected_path().is_some_and(is_match));
        self.shows_object() && self.yaml.match_count().is_some_and(|count| count > here)
    }

    /// Whether the object is shown as YAML, and no line matches the search.
    pub(super) fn lacks_match(&self) -> bool {
        self.shows_object() && self.yaml_lines().is_some() && self.yaml.match_count() == Some(0)
    }

    fn shows_object(&self) -> bool {
        self.view == DetailView::Yaml
    }

    /// Keeps the YAML search: once it is kept, clearing it no longer moves the selection back to where it was before.
    pub(super) fn keep_search(&mut self) {
        self.yaml.keep_search();
    }

    /// Toggles between the whole object and the summary, and goes to the first row.
    pub(super) fn toggle_yaml(&mut self) {
        self.view = match self.view {
            DetailView::Summary => DetailView::Yaml,
            DetailView::Yaml => DetailView::Summary,
        };
        self.chosen = None;
        self.rows.clear();
        self.list.restart();
    }

    /// The selected row.
    pub fn selected(&self) -> Option<&DetailRow> {
        self.list.selected().and_then(|place| self.rows.get(*place))
    }

    /// Way in which the selected action is performed; `None` if the selected row is not an action.
    pub fn selected_means(&self) -> Option<&Means> {
        match self.selected()? {
            DetailRow::Suggestion(suggestion) => Some(&suggestion.means),
            DetailRow::Section { .. }
            | DetailRow::Tense(_)
            | DetailRow::Step(_)
            | DetailRow::Caution(_)
            | DetailRow::Command(_)
            | DetailRow::Fact { .. }
            | DetailRow::Past(_)
            | DetailRow::Signal(_)
            | DetailRow::EvictionPlace(_)
            | DetailRow::Pair { .. }
            | DetailRow::Yaml(_) => None,
        }
    }

    /// Whether the object of the detail still exists in the cluster.
    pub fn is_there(&self, cluster: &Cluster) -> bool {
        match &self.subject {
            DetailSubject::Node(name) => cluster.node(name).is_some(),
            DetailSubject::Pod(key) => cluster.pod(key).is_some(),
            DetailSubject::Budget(key) => cluster.budgets().get(key).is_some(),
        }
    }
}

impl DetailRow {
    fn section(title: &'static str) -> Self {
        Self::Section { title, note: String::new() }
    }

    /// Whether two rows are about the same thing, although their texts may differ.
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Section { title, .. }, Self::Section { title: other, .. }) => title == other,
            (Self::Step(step), Self::Step(other)) => (step.topic, step.tense) == (other.topic, other.tense),
            (Self::Suggestion(one), Self::Suggestion(other)) => {
                (one.kind, &one.means) == (other.kind, &other.means)
            }
            (Self::Fact { name, text, .. }, Self::Fact { name: other, text: other_text, .. }) => {
                name == other && (!name.is_empty() || text == other_text)
            }
            (Self::Past(entry), Self::Past(other)) => entry.is_same(other),
            (Self::Signal(one), Self::Signal(other)) => one.signal == other.signal,
            (Self::EvictionPlace(one), Self::EvictionPlace(other)) => one.pod.pod.key == other.pod.pod.key,
            (Self::Pair { key, .. }, Self::Pair { key: other, .. }) => key == other,
            (Self::Yaml(one), Self::Yaml(other)) => one.path == other.path,
            _ => self == other,
        }
    }
}

impl Filterable for DetailRow {
    fn field(&self, key: &str) -> Option<String> {
        match (self, key) {
            (Self::Past(entry), key) => match &entry.source {
                TimelineSource::Session(entry) => entry.field(key),
                TimelineSource::Cluster(_) => None,
            },
            (Self::Step(step), "topic") => Some(step.topic.as_str().into()),
            (Self::Step(step), "tense") => Some(step.tense.as_str().into()),
            _ => None,
        }
    }

    fn texts(&self, found: &mut dyn FnMut(&str)) {
        match self {
            Self::Section { title, .. } => found(title),
            Self::Tense(tense) => found(tense.title()),
            Self::Step(step) => found(&step.text),
            Self::Suggestion(suggestion) => {
                found(suggestion.kind.title());
                found(suggestion.outcome());
            }
            Self::Caution(text) | Self::Command(text) => found(text),
            Self::Fact { name, text, .. } => {
                found(name);
                found(text);
            }
            Self::Past(entry) => match &entry.source {
                TimelineSource::Session(entry) => entry.texts(found),
                TimelineSource::Cluster(event) => {
                    [&*event.reason, &event.message, &event.source].into_iter().for_each(found);
                }
            },
            Self::Signal(signal) => found(signal.signal.as_str()),
            Self::EvictionPlace(place) => {
                found(&place.pod.pod.key.to_string());
                found(&place.pod.reason());
            }
            Self::Pair { key, value } => {
                found(key);
                found(value);
            }
            Self::Yaml(row) => found(&row.text),
        }
    }
}
