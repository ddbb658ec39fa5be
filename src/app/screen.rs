//! What the user chose to see: focus, order, filters, places in lists.

use std::collections::{BTreeMap, BTreeSet};

use tui_input::Input;

use super::{
    columns::{EvictionColumn, NodeColumn, PodColumn, Sort, SortBasis, ZoneColumn},
    detail::Detail,
    dialog::Dialog,
    filter::Filter,
    listing::{Listing, Movement},
    options::ThemeName,
    palette::Palette,
    pane::{InputTarget, Pane},
    preview::Preview,
    progress::Progress,
};
use crate::{
    cluster::{Cluster, Key, NodeName, ZoneKey},
    forecast,
    plan::DrainOptions,
    time::Timestamp,
};

/// Everything that the user can change about the screen.
#[derive(Clone, Debug, Default)]
pub struct Screen {
    pub focus: Pane,
    /// Whether the focused pane has the screen for itself.
    pub zoomed: bool,
    /// Whether tables show the columns of lesser importance too.
    pub wide: bool,
    /// The node whose pods are shown in the place of the nodes.
    pub inside: Option<NodeName>,
    /// The node or pod whose detail is shown in that place.
    pub detail: Option<Detail>,
    /// The plan that is shown there.
    pub preview: Option<Preview>,
    /// The undertaking that is shown there.
    pub progress: Option<Progress>,
    /// The command that is being typed.
    pub palette: Option<Palette>,
    /// The question that stands over everything.
    pub dialog: Option<Dialog>,
    /// What was said to the last key, where there is something to say.
    pub remark: Option<String>,
    /// The nodes, and the pods of the node whose pods are shown, that the next plan is for.
    pub marked_nodes: BTreeSet<NodeName>,
    pub marked_pods: BTreeSet<Key>,
    /// With which options the last drain was looked at.
    pub drain: DrainOptions,
    /// How far the help is scrolled; none while it is closed.
    pub help: Option<usize>,
    /// The panes of [`Pane::LOWER`], those last focused first: where there is no room for all, the first are shown.
    pub lower: Vec<Pane>,
    /// The filter that is being typed.
    pub input: Option<Input>,
    pub filters: BTreeMap<Pane, Filter>,
    pub zones: SortedList<ZoneKey, ZoneColumn>,
    pub nodes: SortedList<NodeName, NodeColumn>,
    pub pods: SortedList<Key, PodColumn>,
    pub evictions: SortedList<Key, EvictionColumn>,
    /// Numbers of journal entries, newest first.
    pub journal: Listing<usize>,
    pub forecast: ForecastRows,
    themes: Vec<ThemeName>,
    theme: usize,
}

/// What is coming, as rows.
#[derive(Clone, Debug, Default)]
pub struct ForecastRows {
    pub rows: Vec<forecast::ForecastRow>,
    /// Places in `rows`.
    pub list: Listing<usize>,
    /// When the forecast was made, up to when it has come true, and the filter, as the rows were made.
    pub arranged: Option<(Option<Timestamp>, Timestamp, Filter)>,
}

impl ForecastRows {
    pub fn replace(&mut self, rows: Option<Vec<forecast::ForecastRow>>, filter: &Filter) {
        self.rows = rows.unwrap_or_default();
        let passing = |row: &usize| filter.matches(&self.rows[*row]);
        self.list.replace((0..self.rows.len()).filter(passing).collect());
    }

    /// The row at a place of the list.
    pub fn row(&self, place: usize) -> Option<&forecast::ForecastRow> {
        self.list.keys().get(place).and_then(|row| self.rows.get(*row))
    }
}

/// A list and the column it is sorted by.
#[derive(Clone, Debug)]
pub struct SortedList<K, C> {
    pub list: Listing<K>,
    pub sort: Sort<C>,
    /// What the list was last put in order by.
    pub(super) arranged: Option<SortBasis<C>>,
}

impl<K, C: Default> Default for SortedList<K, C> {
    fn default() -> Self {
        Self { list: Listing::default(), sort: Sort::default(), arranged: None }
    }
}

impl Screen {
    pub fn new(themes: Vec<ThemeName>) -> Self {
        let themes = if themes.is_empty() { vec![ThemeName::Dark] } else { themes };
        Self { themes, lower: vec![Pane::Evictions, Pane::Journal, Pane::Forecast], ..Self::default() }
    }

    pub fn theme(&self) -> ThemeName {
        self.themes.get(self.theme).copied().unwrap_or_default()
    }

    pub fn next_theme(&mut self) {
        self.theme = (self.theme + 1) % self.themes.len().max(1);
    }

    pub fn focus_on(&mut self, pane: Pane) {
        self.focus = pane;
        if let Some(place) = self.lower.iter().position(|lower| *lower == pane) {
            self.lower.remove(place);
            self.lower.insert(0, pane);
        }
    }

    /// The panes that can have the focus now, in the order of their digits.
    pub fn panes(&self) -> [Pane; 5] {
        let nodes = if self.progress.is_some() && !self.is_detail_over() {
            Pane::Progress
        } else if self.preview.is_some() && !self.is_detail_over() {
            Pane::Plan
        } else if self.detail.is_some() {
            Pane::Detail
        } else if self.inside.is_some() {
            Pane::Pods
        } else {
            Pane::Nodes
        };
        [Pane::Zones, nodes, Pane::Evictions, Pane::Journal, Pane::Forecast]
    }

    /// Whether the detail was opened from a plan or a progress, and so lies over it.
    pub fn is_detail_over(&self) -> bool {
        self.detail.as_ref().is_some_and(|detail| matches!(detail.from, Pane::Plan | Pane::Progress))
    }

    /// Puts away what lies over the nodes.
    pub(super) fn uncover(&mut self) {
        (self.detail, self.preview, self.progress) = (None, None, None);
    }

    /// Where keys are typed as text; none where they are commands.
    pub fn typing(&self) -> Option<InputTarget> {
        if self.dialog.is_some() {
            return Some(InputTarget::Consent);
        }
        if self.palette.is_some() {
            return Some(InputTarget::Palette);
        }
        if self.input.is_some() {
            return Some(InputTarget::Filter);
        }
        let types = self.focus == Pane::Plan && self.preview.as_ref().is_some_and(Preview::is_typing);
        (types && self.help.is_none()).then_some(InputTarget::Words)
    }

    /// Goes back from the pods of a node to the nodes.
    pub(super) fn leave_node(&mut self) {
        self.inside = None;
        self.marked_pods.clear();
    }

    /// The pane that had the focus may have gone with what it showed.
    pub(super) fn settle_focus(&mut self) {
        let panes = self.panes();
        if !panes.contains(&self.focus) {
            self.focus = panes[1];
        }
    }

    /// Marks go with what they were put on.
    pub(super) fn forget_marks_of_the_gone(&mut self, cluster: &Cluster) {
        self.marked_nodes.retain(|node| cluster.node(node).is_some());
        self.marked_pods.retain(|pod| cluster.pod(pod).is_some());
    }

    pub fn filter(&self, pane: Pane) -> &Filter {
        const NONE: &Filter = &Filter::NONE;
        self.filters.get(&pane).unwrap_or(NONE)
    }

    pub fn step(&mut self, step: Movement) {
        match self.focus {
            Pane::Zones => self.zones.list.step(step),
            Pane::Nodes => self.nodes.list.step(step),
            Pane::Pods => self.pods.list.step(step),
            Pane::Detail => {
                if let Some(detail) = &mut self.detail {
                    detail.list.step(step);
                }
            }
            Pane::Plan => {
                if let Some(preview) = &mut self.preview {
                    preview.list.step(step);
                }
            }
            Pane::Progress => {
                if let Some(progress) = &mut self.progress {
                    progress.list.step(step);
                }
            }
            Pane::Evictions => self.evictions.list.step(step),
            Pane::Journal => self.journal.step(step),
            Pane::Forecast => self.forecast.list.step(step),
        }
    }

    pub fn next_sort(&mut self) {
        match self.focus {
            Pane::Zones => self.zones.sort.next(ZoneColumn::ALL),
            Pane::Nodes => self.nodes.sort.next(NodeColumn::ALL),
            Pane::Pods => self.pods.sort.next(PodColumn::ALL),
            Pane::Evictions => self.evictions.sort.next(EvictionColumn::ALL),
            Pane::Detail | Pane::Plan | Pane::Progress | Pane::Journal | Pane::Forecast => {}
        }
    }

    pub fn flip_sort(&mut self) {
        match self.focus {
            Pane::Zones => self.zones.sort.flip(),
            Pane::Nodes => self.nodes.sort.flip(),
            Pane::Pods => self.pods.sort.flip(),
            Pane::Evictions => self.evictions.sort.flip(),
            Pane::Detail | Pane::Plan | Pane::Progress | Pane::Journal | Pane::Forecast => {}
        }
    }

    /// Takes in how many rows each drawn pane had room for.
    pub fn drawn(&mut self, rows: &BTreeMap<Pane, usize>) {
        for (pane, rows) in rows {
            match pane {
                Pane::Zones => self.zones.list.shown(*rows),
                Pane::Nodes => self.nodes.list.shown(*rows),
                Pane::Pods => self.pods.list.shown(*rows),
                Pane::Detail => {
                    if let Some(detail) = &mut self.detail {
                        detail.list.shown(*rows);
                    }
                }
                Pane::Plan => {
                    if let Some(preview) = &mut self.preview {
                        preview.list.shown(*rows);
                    }
                }
                Pane::Progress => {
                    if let Some(progress) = &mut self.progress {
                        progress.list.shown(*rows);
                    }
                }
                Pane::Evictions => self.evictions.list.shown(*rows),
                Pane::Journal => self.journal.shown(*rows),
                Pane::Forecast => self.forecast.list.shown(*rows),
            }
        }
    }
}
