//! State of the screen that the user chose: focus, order, filters, positions in lists, and overlays.

use std::collections::{BTreeMap, BTreeSet};

use ratatui::layout::Position;
use tui_input::InputRequest;

use super::{
    columns::{
        AuditColumn, BudgetColumn, DepartureColumn, EvictionColumn, NodeColumn, PendingColumn, PodColumn,
        Sort, SortBasis, ZoneColumn,
    },
    detail::Detail,
    dialog::Dialog,
    filter::Filter,
    forecast_lanes::ForecastLanes,
    groups::{Grouping, NodeGroups, NodeRow},
    help::HelpSheet,
    key_prefix::KeyPrefix,
    listing::{ListUse, Listing, Movement},
    maintenance::{MaintenanceRequest, MaintenanceSheet},
    opening::Opening,
    options::{ThemeChoice, ThemeName},
    overlays::{Overlay, Overlays},
    pane::{KeyFocus, Pane},
    pane_layout::{DrawnLayout, PaneLayout},
    places::Places,
    preview::Preview,
    progress::Progress,
    screen_part::MouseTarget,
    snapshot_cache::SnapshotCache,
    theme_chooser::ThemeChooser,
    tour::TourStep,
};
use crate::model::{DepartureId, Model};
use kordon_core::cluster::{
    Cluster, Key, NodeName, OperationId, ZoneKey,
    nearest::{did_you_mean, nearest},
};
use kordon_time::Timestamp;

/// Everything that the user can change on the screen.
#[derive(Debug, Default)]
pub struct Screen {
    pub focus: Pane,
    /// Whether the focused pane fills the screen.
    pub zoomed: bool,
    /// Whether tables also show less important columns.
    pub wide: bool,
    /// The node whose pods are shown in place of the nodes.
    pub pods_of: Option<NodeName>,
    pub overlays: Overlays,
    /// Columns and rows of the screen at the last draw.
    pub size: (u16, u16),
    /// Sizes and places of the panes.
    pub layout: PaneLayout,
    /// Borders of the panes at the last draw.
    pub drawn_layout: DrawnLayout,
    /// Index of the border that the mouse drags.
    pub(super) dragged: Option<usize>,
    /// Parts of the screen at the last draw that can be clicked.
    pub targets: Vec<MouseTarget>,
    /// Place and time of the last click.
    pub(super) last_click: Option<(Position, Timestamp)>,
    /// The effect of earlier keys on the next key.
    pub(super) key_prefix: KeyPrefix,
    /// Names of the commands that were typed, the latest first.
    pub(super) used: Vec<&'static str>,
    /// Places that the user has visited, for going back and forward.
    pub(super) places: Places,
    /// Message in the footer that answers the last key.
    pub message: Option<String>,
    /// Nodes marked for the next plan.
    pub marked_nodes: BTreeSet<NodeName>,
    pub marked_pods: BTreeSet<Key>,
    /// The node and the pod that were marked last, at which a marked range starts.
    pub(super) last_marked: (Option<NodeRow>, Option<Key>),
    /// Marks before the range that moves extend; `None` if no range is open.
    pub(super) before_range: Option<(BTreeSet<NodeName>, BTreeSet<Key>)>,
    /// Whether the last drain plan ignored DaemonSets. This is the only option that the next plan inherits.
    pub ignore_daemonsets: bool,
    /// Request of the maintenance sheet that was changed last, whose options the next sheet starts with; `None` for the
    /// defaults. Like the marks of nodes, it is kept until a maintenance starts.
    pub(super) maintenance: Option<MaintenanceRequest>,
    /// Panes that share an area as tabs, most recently focused first. The first tab of an area is shown.
    pub recent: Vec<Pane>,
    /// Open state of each pane that shrinks to one line when it has no content.
    pub openings: BTreeMap<Pane, Opening>,
    pub filters: BTreeMap<Pane, Filter>,
    pub zones: SortedList<ZoneKey, ZoneColumn>,
    pub nodes: SortedList<NodeRow, NodeColumn>,
    pub groups: NodeGroups,
    /// Index of the first of the Ready nodes that stand together at the end of the list of nodes.
    pub ready_from: usize,
    pub pods: SortedList<Key, PodColumn>,
    pub evictions: SortedList<Key, EvictionColumn>,
    pub budgets: SortedList<Key, BudgetColumn>,
    /// Pods that wait for a node.
    pub pending: SortedList<Key, PendingColumn>,
    /// Identities of the findings of the audit.
    pub audit: SortedList<String, AuditColumn>,
    /// Pods that left.
    pub departures: SortedList<DepartureId, DepartureColumn>,
    /// Numbers of journal entries, newest first.
    pub journal: Listing<usize>,
    /// Panes that the last frame showed.
    pub(super) drawn: BTreeSet<Pane>,
    /// For the journal: revision and filter for which the rows were last listed.
    pub(super) arranged: BTreeMap<Pane, (u64, Filter)>,
    pub forecast: ForecastLanes,
    /// The frozen moment that is shown instead of the present; `None` if the screen is not frozen.
    pub frozen: Option<Frozen>,
    /// Snapshot of the cluster that is kept while a plan is open.
    pub plan_snapshot: SnapshotCache,
    pub glyphs: Glyphs,
    themes: Vec<ThemeChoice>,
    theme: usize,
}

/// Characters that the screen is drawn with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Glyphs {
    #[default]
    Unicode,
    /// ASCII only, for terminals that cannot show other characters.
    Ascii,
}

/// State at the time when the user froze the screen.
#[derive(Debug)]
pub struct Frozen {
    pub at: Timestamp,
    pub model: Box<Model>,
}

/// A list and the column it is sorted by.
#[derive(Clone, Debug)]
pub struct SortedList<K, C> {
    pub list: Listing<K>,
    pub sort: Sort<C>,
    /// Inputs from which the present order was computed.
    pub(super) arranged: Option<SortBasis<C>>,
}

impl<K, C: Default> Default for SortedList<K, C> {
    fn default() -> Self {
        Self { list: Listing::default(), sort: Sort::default(), arranged: None }
    }
}

/// Initial order of the tabs, before any pane had the focus.
const RECENT: [Pane; 8] = [
    Pane::Evictions,
    Pane::Forecast,
    Pane::Zones,
    Pane::Journal,
    Pane::Pending,
    Pane::Departures,
    Pane::Budgets,
    Pane::Audit,
];

impl Screen {
    pub fn new(themes: Vec<ThemeChoice>) -> Self {
        let themes = if themes.is_empty() { vec![ThemeChoice::default()] } else { themes };
        let openings =
            [Pane::Evictions, Pane::Forecast, Pane::Journal, Pane::Pending, Pane::Departures, Pane::Budgets]
                .map(|pane| (pane, Opening::default()));
        Self { themes, recent: RECENT.to_vec(), openings: openings.into(), ..Self::default() }
    }

    pub fn theme(&self) -> &ThemeChoice {
        const DEFAULT: &ThemeChoice = &ThemeChoice::Bundled(ThemeName::Dark);
        self.themes.get(self.theme).unwrap_or(DEFAULT)
    }

    /// Themes of this terminal, in the order in which the theme key cycles through them.
    pub fn themes(&self) -> &[ThemeChoice] {
        &self.themes
    }

    pub fn next_theme(&mut self) {
        self.theme = (self.theme + 1) % self.themes.len().max(1);
    }

    /// Changes to the theme of this name.
    ///
    /// # Errors
    /// The terminal has no such theme.
    pub(super) fn use_theme(&mut self, name: &str) -> Result<(), String> {
        let names = self.themes.iter().map(ThemeChoice::name);
        match self.themes.iter().position(|theme| theme.name() == name) {
            Some(place) => self.theme = place,
            None => {
                return Err(format!("there is no theme {name} here{}", did_you_mean(nearest(name, names))));
            }
        }
        Ok(())
    }

    /// Shows the first step of the tour.
    pub fn start_tour(&mut self) {
        self.overlays.open(Overlay::Tour(TourStep::default()));
    }

    /// Opens the list of themes; the one under the cursor is shown at once.
    pub(super) fn choose_theme(&mut self) {
        let names = self.themes.iter().map(|theme| theme.name().to_owned()).collect();
        self.overlays.open(Overlay::Themes(ThemeChooser::new(names, self.theme)));
    }

    /// Shows the theme under the cursor, if the list of themes is open.
    pub(super) fn show_chosen_theme(&mut self) {
        if let Some(Overlay::Themes(chooser)) = self.overlays.top() {
            self.theme = chooser.shown();
        }
    }

    pub fn focus_on(&mut self, pane: Pane) {
        self.focus = pane;
        if let Some(place) = self.recent.iter().position(|recent| *recent == pane) {
            self.recent.remove(place);
            self.recent.insert(0, pane);
        }
    }

    /// Panes that can have the focus now, in the order of their digits.
    pub fn panes(&self) -> [Pane; 9] {
        let middle = self.overlays.view().and_then(Overlay::pane).unwrap_or(self.node_pane());
        [
            Pane::Zones,
            middle,
            Pane::Evictions,
            Pane::Forecast,
            Pane::Journal,
            Pane::Pending,
            Pane::Departures,
            Pane::Budgets,
            Pane::Audit,
        ]
    }

    /// The pane in the middle while no view is open: the nodes, or the pods of one node.
    pub const fn node_pane(&self) -> Pane {
        if self.pods_of.is_some() { Pane::Pods } else { Pane::Nodes }
    }

    /// Whether the budgets are shown, in their pane or in a detail.
    pub fn shows_budgets(&self) -> bool {
        let is_drawn = |pane| self.drawn.contains(&pane) || self.focus == pane;
        is_drawn(Pane::Budgets) || self.overlays.detail().is_some()
    }

    /// Whether the audit is shown.
    pub fn shows_audit(&self) -> bool {
        self.drawn.contains(&Pane::Audit) || self.focus == Pane::Audit
    }

    /// Whether a pane is open. A closed pane is a single line. Panes without an entry in `openings` are always open.
    pub fn is_open(&self, pane: Pane) -> bool {
        self.openings.get(&pane).is_none_or(|opening| opening.is_open())
    }

    /// Part of the screen that the next key goes to.
    pub fn key_focus(&self) -> KeyFocus {
        if self.overlays.tour().is_some() {
            return KeyFocus::Tour;
        }
        let input = self.focused_overlay().and_then(Overlay::input);
        input.map_or(self.command_focus(), KeyFocus::Input)
    }

    /// Part of the screen that the next key goes to while no text is typed and no tour is shown.
    pub fn command_focus(&self) -> KeyFocus {
        if self.shows_maintenance() { KeyFocus::Maintenance } else { KeyFocus::Pane(self.focus) }
    }

    /// Whether the maintenance sheet is open.
    pub fn shows_maintenance(&self) -> bool {
        self.overlays.maintenance().is_some()
    }

    /// Changes the open maintenance sheet, and keeps its options for the next sheet. `None` if no sheet is open.
    pub(super) fn change_maintenance<T>(
        &mut self,
        change: impl FnOnce(&mut MaintenanceSheet) -> T,
    ) -> Option<T> {
        let sheet = self.overlays.maintenance_mut()?;
        let changed = change(sheet);
        self.maintenance = Some(sheet.request.clone());
        Some(changed)
    }

    /// The overlay that gets keys: the topmost one, unless it is a view and another pane has the focus.
    fn focused_overlay(&self) -> Option<&Overlay> {
        let focus = self.focus;
        self.overlays.top().filter(|overlay| overlay.pane().is_none_or(|pane| pane == focus))
    }

    pub(super) fn focused_overlay_mut(&mut self) -> Option<&mut Overlay> {
        let focus = self.focus;
        self.overlays.top_mut().filter(|overlay| overlay.pane().is_none_or(|pane| pane == focus))
    }

    /// Opens a view in place of the nodes and focuses it.
    pub(super) fn open_view(&mut self, view: Overlay) {
        let Some(pane) = view.pane() else { return };
        self.overlays.open(view);
        self.filters.remove(&pane);
        self.focus = pane;
    }

    /// Opens a question, replacing an open one.
    pub(super) fn ask(&mut self, dialog: Dialog) {
        self.overlays.open(Overlay::Question(Box::new(dialog)));
    }

    /// Opens the progress of an operation.
    pub(super) fn open_progress(&mut self, operation: OperationId) {
        let from = match self.focus {
            Pane::Plan | Pane::Progress | Pane::Detail | Pane::Events => Pane::Nodes,
            pane => pane,
        };
        self.open_view(Overlay::Progress(Progress::new(operation, from)));
    }

    /// Goes one step back, for Esc: closes the overlay that covers the panes or, if there is none, takes back one state
    /// of the focused pane, such as its filter, its marks or its zoom. A detail that is open without the focus is
    /// closed before the marks are cleared. A plan is not, because what was typed into it would be lost.
    pub(super) fn back(&mut self) {
        let focus = self.focus;
        if self.overlays.help_mut().is_some_and(HelpSheet::leave_search) {
            return;
        }
        let is_filtered = !self.filter(focus).is_empty();
        if let Some(Overlay::Plan(preview)) = self.focused_overlay_mut()
            && (preview.leave_option() || !is_filtered && preview.leave_diff())
        {
            return;
        }
        if let Some(Overlay::Maintenance(sheet)) = self.focused_overlay_mut()
            && sheet.leave_line()
        {
            return;
        }
        let overlay = self.focused_overlay();
        if overlay.is_some_and(|overlay| overlay.pane().is_none()) {
            self.close_overlay();
        } else if !self.filter(focus).is_empty() {
            self.clear_filter(focus);
        } else if overlay.is_some_and(Overlay::is_yaml) {
            self.overlays.detail_mut().into_iter().for_each(Detail::toggle_yaml);
        } else if overlay.is_some() || self.has_detail_beside() {
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

    /// Clears the filter of a pane. If it is the filter of a namespace that other panes have too, a message says that
    /// they keep it.
    fn clear_filter(&mut self, pane: Pane) {
        let Some(cleared) = self.filters.remove(&pane) else { return };
        let namespace = cleared.text().strip_prefix("ns=");
        if let Some(name) = namespace.filter(|_| self.filters.values().any(|other| *other == cleared)) {
            self.message = Some(format!("the other panes still show only {name}; :ns shows all again"));
        }
    }

    /// Whether Esc has an effect.
    pub(super) fn can_go_back(&self) -> bool {
        let overlay = self.focused_overlay();
        overlay.is_some_and(Overlay::can_be_closed)
            || overlay.is_none_or(|overlay| overlay.pane().is_some())
                && (!self.filter(self.focus).is_empty()
                    || self.has_detail_beside()
                    || self.focus == Pane::Pods
                    || (self.focus == Pane::Nodes && !self.marked_nodes.is_empty())
                    || self.zoomed)
    }

    /// Whether a detail is open without the focus. Behind a zoomed pane it does not count, because it is hidden.
    fn has_detail_beside(&self) -> bool {
        let is_top = matches!(self.overlays.top(), Some(Overlay::Detail(_)));
        is_top && self.focus != Pane::Detail && !self.zoomed
    }

    /// Closes the topmost overlay, if possible. If it is a view that has the focus, the pane from which it was opened
    /// gets the focus. If it is the filter line, the text typed so far is dropped.
    fn close_overlay(&mut self) {
        if !self.overlays.top().is_some_and(Overlay::can_be_closed) {
            return;
        }
        let closed = self.overlays.close_top();
        let focused = closed.as_ref().filter(|overlay| overlay.pane() == Some(self.focus));
        if let Some(from) = focused.and_then(Overlay::opened_from) {
            self.focus = from;
        }
        match closed {
            Some(Overlay::Filter(_)) => drop(self.filters.remove(&self.focus)),
            Some(Overlay::Themes(chooser)) => self.theme = chooser.before(),
            _ => {}
        }
    }

    /// Edits the typed text. A list is filtered again with every key.
    pub(super) fn edit(&mut self, request: InputRequest) {
        self.edit_all([request]);
    }

    /// Makes several edits of the typed text. If it is a filter, the list is filtered only once, after the last edit.
    pub(super) fn edit_all(&mut self, requests: impl IntoIterator<Item = InputRequest>) {
        let Some(overlay) = self.focused_overlay_mut() else { return };
        requests.into_iter().for_each(|request| overlay.edit(request));
        let Overlay::Filter(input) = overlay else { return self.show_chosen_theme() };
        let filter = input.value().to_owned();
        self.set_filter(self.focus, &filter);
    }

    /// Prepares for a key, which acts on the row drawn as selected. Panes that have been empty for a while close.
    pub(super) fn before_key(&mut self, now: Timestamp) {
        self.openings.values_mut().for_each(|opening| opening.on_key(now));
        self.on_list_use(self.focus, ListUse::Key);
    }

    /// Finishes the handling of a key. The focused pane, nodes, pods and views keep their selected row until the next
    /// key. The lists of all other panes lose the focus.
    pub(super) fn after_key(&mut self) {
        for pane in [
            Pane::Zones,
            Pane::Evictions,
            Pane::Forecast,
            Pane::Pending,
            Pane::Journal,
            Pane::Departures,
            Pane::Budgets,
            Pane::Audit,
        ] {
            let list_use = if pane == self.focus { ListUse::Focus } else { ListUse::Unfocus };
            self.on_list_use(pane, list_use);
        }
        for pane in [Pane::Nodes, Pane::Pods, Pane::Detail, Pane::Plan, Pane::Progress, Pane::Events] {
            self.on_list_use(pane, ListUse::Focus);
        }
    }

    pub(super) fn on_list_use(&mut self, pane: Pane, list_use: ListUse) {
        match pane {
            Pane::Zones => self.zones.list.on_use(list_use),
            Pane::Nodes => self.nodes.list.on_use(list_use),
            Pane::Pods => self.pods.list.on_use(list_use),
            Pane::Evictions => self.evictions.list.on_use(list_use),
            Pane::Pending => self.pending.list.on_use(list_use),
            Pane::Budgets => self.budgets.list.on_use(list_use),
            Pane::Audit => self.audit.list.on_use(list_use),
            Pane::Departures => self.departures.list.on_use(list_use),
            Pane::Forecast => self.forecast.list.on_use(list_use),
            Pane::Plan => self.overlays.plan_mut().into_iter().for_each(|plan| plan.list.on_use(list_use)),
            Pane::Progress => {
                self.overlays.progress_mut().into_iter().for_each(|progress| progress.list.on_use(list_use));
            }
            Pane::Events => {
                self.overlays.event_list_mut().into_iter().for_each(|view| view.list.on_use(list_use));
            }
            Pane::Detail => {
                self.overlays.detail_mut().into_iter().for_each(|detail| detail.list.on_use(list_use));
            }
            Pane::Journal => self.journal.on_use(list_use),
        }
    }

    /// Keeps the filter of the focused pane, as typed. If the selected row does not pass it, the first row that does is
    /// selected. A message says what is wrong with the filter, or that a search in an object finds nothing.
    pub(super) fn keep_filter(&mut self, fault: Option<String>) {
        self.message = fault.or_else(|| self.no_match());
        if self.focus == Pane::Detail {
            self.overlays.detail_mut().into_iter().for_each(Detail::keep_search);
        }
        self.choose_first(self.focus);
    }

    /// Message for a search in an object's YAML that no line matches.
    pub(super) fn no_match(&self) -> Option<String> {
        let detail = self.overlays.detail().filter(|_| self.focus == Pane::Detail)?;
        detail.lacks_match().then(|| format!("no match for {}", self.filter(Pane::Detail).text()))
    }

    /// Selects the first row of a pane if no row is selected, after the user changed which rows are listed.
    pub(super) fn choose_first(&mut self, pane: Pane) {
        match pane {
            Pane::Zones => self.zones.list.choose_first(),
            Pane::Nodes => self.nodes.list.choose_first(),
            Pane::Pods => self.pods.list.choose_first(),
            Pane::Evictions => self.evictions.list.choose_first(),
            Pane::Pending => self.pending.list.choose_first(),
            Pane::Budgets => self.budgets.list.choose_first(),
            Pane::Audit => self.audit.list.choose_first(),
            Pane::Departures => self.departures.list.choose_first(),
            Pane::Forecast => self.forecast.list.choose_first(),
            Pane::Plan => self.overlays.plan_mut().into_iter().for_each(Preview::choose_first),
            Pane::Progress => {
                self.overlays.progress_mut().into_iter().for_each(|progress| progress.list.choose_first());
            }
            Pane::Events => {
                self.overlays.event_list_mut().into_iter().for_each(|view| view.list.choose_first());
            }
            Pane::Detail => {
                self.overlays.detail_mut().into_iter().for_each(|detail| detail.list.choose_first());
            }
            Pane::Journal => self.journal.choose_first(),
        }
    }

    /// Whether the selected row of the focused pane is gone.
    pub(super) fn is_row_gone(&self) -> bool {
        match self.focus {
            Pane::Zones => self.zones.list.is_row_gone(),
            Pane::Nodes => self.nodes.list.is_row_gone(),
            Pane::Pods => self.pods.list.is_row_gone(),
            Pane::Evictions => self.evictions.list.is_row_gone(),
            Pane::Pending => self.pending.list.is_row_gone(),
            Pane::Budgets => self.budgets.list.is_row_gone(),
            Pane::Audit => self.audit.list.is_row_gone(),
            Pane::Departures => self.departures.list.is_row_gone(),
            Pane::Forecast => self.forecast.list.is_row_gone(),
            Pane::Plan => self.overlays.plan().is_some_and(|plan| plan.list.is_row_gone()),
            Pane::Progress => self.overlays.progress().is_some_and(|progress| progress.list.is_row_gone()),
            Pane::Detail => self.overlays.detail().is_some_and(|detail| detail.list.is_row_gone()),
            Pane::Events => self.overlays.event_list().is_some_and(|view| view.list.is_row_gone()),
            Pane::Journal => self.journal.is_row_gone(),
        }
    }

    /// Shows the pods of a node instead of the nodes.
    pub(super) fn show_pods(&mut self, node: NodeName) {
        self.leave_node();
        self.pods_of = Some(node);
        self.overlays.close_views();
        self.focus = Pane::Pods;
        self.filters.remove(&Pane::Pods);
        self.pods.list.restart();
    }

    /// Shows the nodes again instead of one node's pods.
    pub(super) fn leave_node(&mut self) {
        self.pods_of = None;
        self.marked_pods.clear();
    }

    /// Closes what takes the place of the nodes: views, and the pods of a node.
    pub(super) fn uncover_nodes(&mut self) {
        self.leave_node();
        self.overlays.close_views();
    }

    /// The selected node; `None` if a group is selected.
    pub fn selected_node(&self) -> Option<&NodeName> {
        self.nodes.list.selected().and_then(NodeRow::node)
    }

    /// The selected node, or the nodes of the selected group.
    pub fn selected_nodes(&self) -> &[NodeName] {
        match self.nodes.list.selected() {
            Some(NodeRow::Node(node)) => std::slice::from_ref(node),
            Some(NodeRow::Group(group)) => self.groups.get(group).map_or(&[], |group| &group.nodes),
            None => &[],
        }
    }

    /// Number of nodes that pass the filter.
    pub fn listed_count(&self) -> usize {
        if self.groups.grouping().is_none() { self.nodes.list.len() } else { self.groups.node_count() }
    }

    /// Nodes that pass the filter, those in folded groups included.
    pub fn listed_nodes(&self) -> Vec<NodeName> {
        let of_row = |row: &NodeRow| match row {
            NodeRow::Node(node) => self.groups.grouping().is_none().then(|| vec![node.clone()]),
            NodeRow::Group(group) => self.groups.get(group).map(|group| group.nodes.clone()),
        };
        self.nodes.list.keys().iter().filter_map(of_row).flatten().collect()
    }

    /// Number of marked nodes or pods of a pane that its filter hides. Marks stay when the filter changes.
    pub fn hidden_marks(&self, pane: Pane) -> usize {
        if self.filter(pane).is_empty() {
            return 0;
        }
        match pane {
            Pane::Nodes => {
                let listed: BTreeSet<NodeName> = self.listed_nodes().into_iter().collect();
                self.marked_nodes.difference(&listed).count()
            }
            Pane::Pods => {
                let listed: BTreeSet<&Key> = self.pods.list.keys().iter().collect();
                self.marked_pods.iter().filter(|pod| !listed.contains(pod)).count()
            }
            _ => 0,
        }
    }

    /// Changes the grouping. The selection stays with its node. A selected group is deselected, because another
    /// grouping may have a group of the same name.
    pub(super) fn group_by(&mut self, grouping: Grouping) {
        if matches!(self.nodes.list.selected(), Some(NodeRow::Group(_))) {
            self.nodes.list.deselect();
        }
        self.groups.group_by(grouping);
        self.nodes.arranged = None;
    }

    /// Moves the focus off a pane that was closed. The nodes that are drawn beside a view are not closed.
    pub(super) fn leave_closed_pane(&mut self) {
        let panes = self.panes();
        let is_beside_view = self.focus == self.node_pane() && self.drawn.contains(&self.focus);
        if !panes.contains(&self.focus) && !is_beside_view {
            self.focus = panes[1];
        }
    }

    /// Removes the marks of nodes and pods that no longer exist.
    pub(super) fn drop_stale_marks(&mut self, cluster: &Cluster) {
        self.marked_nodes.retain(|node| cluster.node(node).is_some());
        self.marked_pods.retain(|pod| cluster.pod(pod).is_some());
    }

    pub fn filter(&self, pane: Pane) -> &Filter {
        const NONE: &Filter = &Filter::NONE;
        self.filters.get(&pane).unwrap_or(NONE)
    }

    pub(super) fn set_filter(&mut self, pane: Pane, filter: &str) {
        self.filters.insert(pane, Filter::parse(filter));
        self.on_list_use(pane, ListUse::Refilter);
    }

    /// Moves among the rows of the overlay or pane that gets keys.
    pub fn step(&mut self, step: Movement) {
        if let Some(overlay) = self.focused_overlay_mut() {
            return overlay.step(step);
        }
        self.step_in(self.focus, step);
    }

    /// Moves among the rows of a pane, whether it has the focus or not.
    pub(super) fn step_in(&mut self, pane: Pane, step: Movement) {
        match pane {
            Pane::Zones => self.zones.list.step(step),
            Pane::Nodes => self.nodes.list.step(step),
            Pane::Pods => self.pods.list.step(step),
            Pane::Evictions => self.evictions.list.step(step),
            Pane::Pending => self.pending.list.step(step),
            Pane::Budgets => self.budgets.list.step(step),
            Pane::Audit => self.audit.list.step(step),
            Pane::Departures => self.departures.list.step(step),
            Pane::Journal => self.journal.step(step),
            Pane::Forecast => self.forecast.list.step(step),
            Pane::Detail | Pane::Plan | Pane::Progress | Pane::Events => {
                if let Some(view) = self.overlays.view_mut() {
                    view.step(step);
                }
            }
        }
    }

    /// Selects the row with this index in the list of a pane, if there is one.
    pub(super) fn select_row(&mut self, pane: Pane, row: usize) {
        match pane {
            Pane::Zones => self.zones.list.select_place(row),
            Pane::Nodes => self.nodes.list.select_place(row),
            Pane::Pods => self.pods.list.select_place(row),
            Pane::Evictions => self.evictions.list.select_place(row),
            Pane::Pending => self.pending.list.select_place(row),
            Pane::Budgets => self.budgets.list.select_place(row),
            Pane::Audit => self.audit.list.select_place(row),
            Pane::Departures => self.departures.list.select_place(row),
            Pane::Journal => self.journal.select_place(row),
            Pane::Forecast => self.forecast.list.select_place(row),
            Pane::Detail | Pane::Plan | Pane::Progress | Pane::Events => {
                if let Some(view) = self.overlays.view_mut() {
                    view.select_place(row);
                }
            }
        }
    }

    /// Records the number of rows that fit each drawn pane.
    pub fn drawn(&mut self, rows: &BTreeMap<Pane, usize>) {
        self.drawn = rows.keys().copied().collect();
        // On a smaller screen than before, a view may cover the nodes.
        self.leave_closed_pane();
        for (pane, rows) in rows {
            match pane {
                Pane::Zones => self.zones.list.set_drawn(*rows),
                Pane::Nodes => self.nodes.list.set_drawn(*rows),
                Pane::Pods => self.pods.list.set_drawn(*rows),
                Pane::Evictions => self.evictions.list.set_drawn(*rows),
                Pane::Pending => self.pending.list.set_drawn(*rows),
                Pane::Budgets => self.budgets.list.set_drawn(*rows),
                Pane::Audit => self.audit.list.set_drawn(*rows),
                Pane::Departures => self.departures.list.set_drawn(*rows),
                Pane::Journal => self.journal.set_drawn(*rows),
                Pane::Forecast => self.forecast.set_drawn(*rows),
                Pane::Detail | Pane::Plan | Pane::Progress | Pane::Events => {
                    if let Some(view) = self.overlays.view_mut() {
                        view.drawn(*rows);
                    }
                }
            }
        }
    }
}
