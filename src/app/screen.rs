//! What the user chose to see: focus, order, filters, positions in lists, and what lies over them.

use std::collections::{BTreeMap, BTreeSet};

use tui_input::InputRequest;

use super::{
    columns::{EvictionColumn, NodeColumn, PodColumn, Sort, SortBasis, ZoneColumn},
    commands::{Command, UserAction},
    dialog::Dialog,
    filter::Filter,
    listing::{Listing, Movement},
    options::ThemeName,
    overlays::{Overlay, Overlays},
    pane::{KeyFocus, Pane},
    preview::PlanKind,
    progress::Progress,
};
use crate::{
    cluster::{Cluster, Key, NodeName, OperationId, ZoneKey},
    forecast,
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
    pub pods_of: Option<NodeName>,
    pub overlays: Overlays,
    /// The answer to the last key, in the footer.
    pub message: Option<String>,
    /// The nodes, and the pods of the node whose pods are shown, that the next plan is for.
    pub marked_nodes: BTreeSet<NodeName>,
    pub marked_pods: BTreeSet<Key>,
    /// Whether the last drain that was planned ignored DaemonSets: the only option that the next plan begins with.
    pub ignore_daemonsets: bool,
    /// The panes of [`Pane::LOWER`], those last focused first: where there is no room for all, the first are shown.
    pub lower: Vec<Pane>,
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

/// The forecast as rows.
#[derive(Clone, Debug, Default)]
pub struct ForecastRows {
    pub rows: Vec<forecast::ForecastRow>,
    /// Places in `rows`.
    pub list: Listing<usize>,
    /// When the forecast was made, the time up to which its rows were left out, and the filter, of the present rows.
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
    /// What the present order was made from.
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
        let nodes = if self.pods_of.is_some() { Pane::Pods } else { Pane::Nodes };
        let middle = self.overlays.view().and_then(Overlay::pane).unwrap_or(nodes);
        [Pane::Zones, middle, Pane::Evictions, Pane::Journal, Pane::Forecast]
    }

    /// What the next key goes to.
    pub fn key_focus(&self) -> KeyFocus {
        let input = self.focused_overlay().and_then(Overlay::input);
        input.map_or(KeyFocus::Pane(self.focus), KeyFocus::Input)
    }

    /// Whether a key runs the command now, and it would do something.
    pub fn offers(&self, command: &Command) -> bool {
        let is_what_if = self.overlays.plan().is_some_and(|plan| plan.request.kind == PlanKind::Failure);
        let is_useless = command.action == UserAction::Apply && is_what_if;
        command.context.applies(self.key_focus()) && !is_useless
    }

    /// The overlay that keys go to: the topmost one, unless it is a view and another pane has the focus.
    fn focused_overlay(&self) -> Option<&Overlay> {
        let focus = self.focus;
        self.overlays.top().filter(|overlay| overlay.pane().is_none_or(|pane| pane == focus))
    }

    pub(super) fn focused_overlay_mut(&mut self) -> Option<&mut Overlay> {
        let focus = self.focus;
        self.overlays.top_mut().filter(|overlay| overlay.pane().is_none_or(|pane| pane == focus))
    }

    /// Opens a view in the place of the nodes, and gives it the focus.
    pub(super) fn open_view(&mut self, view: Overlay) {
        let Some(pane) = view.pane() else { return };
        self.overlays.open(view);
        self.filters.remove(&pane);
        self.focus = pane;
    }

    /// Asks a question, in place of an open one.
    pub(super) fn ask(&mut self, dialog: Dialog) {
        self.overlays.open(Overlay::Question(Box::new(dialog)));
    }

    /// Opens the progress of an operation.
    pub(super) fn open_progress(&mut self, operation: OperationId) {
        let from = match self.focus {
            Pane::Plan | Pane::Progress | Pane::Detail => Pane::Nodes,
            pane => pane,
        };
        self.open_view(Overlay::Progress(Progress::of(operation, from)));
    }

    /// One step back, for Esc: closes what lies over all panes; else undoes one thing about the focused pane.
    pub(super) fn back(&mut self) {
        let focus = self.focus;
        let overlay = self.focused_overlay();
        if overlay.is_some_and(|overlay| overlay.pane().is_none()) {
            self.close_overlay();
        } else if !self.filter(focus).is_empty() {
            self.filters.remove(&focus);
        } else if overlay.is_some() {
            self.close_overlay();
        } else if focus == Pane::Nodes && !self.marked_nodes.is_empty() {
            self.marked_nodes.clear();
        } else if focus == Pane::Pods && !self.marked_pods.is_empty() {
            self.marked_pods.clear();
        } else if focus == Pane::Pods {
            self.leave_node();
            self.focus = Pane::Nodes;
        } else if self.zoomed {
            self.zoomed = false;
        }
    }

    /// Closes the topmost overlay, where it can be closed. A filter that is typed is dropped with it.
    fn close_overlay(&mut self) {
        if !self.overlays.top().is_some_and(Overlay::can_be_closed) {
            return;
        }
        let closed = self.overlays.close_top();
        if let Some(from) = closed.as_ref().and_then(Overlay::opened_from) {
            self.focus = from;
        }
        if matches!(closed, Some(Overlay::Filter(_))) {
            self.filters.remove(&self.focus);
        }
    }

    /// Edits what is typed. The list follows its filter with every key.
    pub(super) fn edit(&mut self, request: InputRequest) {
        let Some(overlay) = self.focused_overlay_mut() else { return };
        overlay.edit(request);
        let Overlay::Filter(input) = overlay else { return };
        let filter = Filter::parse(input.value());
        self.filters.insert(self.focus, filter);
    }

    /// Shows the nodes again in place of the pods of one.
    pub(super) fn leave_node(&mut self) {
        self.pods_of = None;
        self.marked_pods.clear();
    }

    /// Moves the focus off a pane that was closed.
    pub(super) fn leave_closed_pane(&mut self) {
        let panes = self.panes();
        if !panes.contains(&self.focus) {
            self.focus = panes[1];
        }
    }

    /// Drops the marks of nodes and pods that are gone.
    pub(super) fn drop_stale_marks(&mut self, cluster: &Cluster) {
        self.marked_nodes.retain(|node| cluster.node(node).is_some());
        self.marked_pods.retain(|pod| cluster.pod(pod).is_some());
    }

    pub fn filter(&self, pane: Pane) -> &Filter {
        const NONE: &Filter = &Filter::NONE;
        self.filters.get(&pane).unwrap_or(NONE)
    }

    /// Moves among the rows of the overlay or pane that keys go to.
    pub fn step(&mut self, step: Movement) {
        if let Some(overlay) = self.focused_overlay_mut() {
            return overlay.step(step);
        }
        match self.focus {
            Pane::Zones => self.zones.list.step(step),
            Pane::Nodes => self.nodes.list.step(step),
            Pane::Pods => self.pods.list.step(step),
            Pane::Evictions => self.evictions.list.step(step),
            Pane::Journal => self.journal.step(step),
            Pane::Forecast => self.forecast.list.step(step),
            Pane::Detail | Pane::Plan | Pane::Progress => {}
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

    /// Records how many rows each drawn pane had room for.
    pub fn drawn(&mut self, rows: &BTreeMap<Pane, usize>) {
        for (pane, rows) in rows {
            match pane {
                Pane::Zones => self.zones.list.set_page(*rows),
                Pane::Nodes => self.nodes.list.set_page(*rows),
                Pane::Pods => self.pods.list.set_page(*rows),
                Pane::Evictions => self.evictions.list.set_page(*rows),
                Pane::Journal => self.journal.set_page(*rows),
                Pane::Forecast => self.forecast.list.set_page(*rows),
                Pane::Detail | Pane::Plan | Pane::Progress => {
                    if let Some(view) = self.overlays.view_mut() {
                        view.drawn(*rows);
                    }
                }
            }
        }
    }
}
