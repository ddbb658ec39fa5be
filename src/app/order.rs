//! The rows of each list: their order, and the result of filtering.

use std::{borrow::Cow, cell::OnceCell, iter::Peekable, sync::Arc};

use super::{
    App,
    columns::{
        AuditColumn, BudgetColumn, DepartureColumn, EvictionColumn, NodeColumn, PendingColumn, PodColumn,
        Sort, SortBasis, SortColumn, ZoneColumn,
    },
    detail::DetailContext,
    filter::Filter,
    filter_fields::{
        FilterableEviction, FilterableLane, FilterableNode, FilterablePod, FilterableZone, instance_type,
    },
    forecast_lanes::LanesBasis,
    groups::{self, GroupOrder},
    operations::Operations,
    overlays::Overlay,
    pane::Pane,
    screen::{Screen, SortedList},
};
use crate::model::{
    BudgetList, BudgetRow, DepartureEntry, DepartureId, EvictionRow, Finding, Model, NextEvent, NodeState,
    Revision,
};
use kordon_core::{
    cluster::{Key, Name, Node, NodeName, Pod, ZoneKey},
    engine::ZoneView,
    forecast::{self, Lane},
};
use kordon_time::Timestamp;

fn node_basis(shown: &Model, sort: Sort<NodeColumn>, filter: &Filter) -> SortBasis<NodeColumn> {
    let Revision { nodes, states, next, .. } = shown.views.revision;
    let is_volatile = match sort.column {
        NodeColumn::Heartbeat | NodeColumn::Pods | NodeColumn::Cpu | NodeColumn::Memory => true,
        NodeColumn::State
        | NodeColumn::Name
        | NodeColumn::Zone
        | NodeColumn::Roles
        | NodeColumn::Due
        | NodeColumn::Taints
        | NodeColumn::Conditions
        | NodeColumn::Address
        | NodeColumn::Version
        | NodeColumn::Kernel
        | NodeColumn::Kind
        | NodeColumn::Age => false,
    };
    SortBasis {
        sort,
        filter: filter.clone(),
        revision: Revision { nodes, states, next, ..Revision::default() },
        taken: (is_volatile || filter.is_volatile()).then_some(shown.views.taken),
    }
}

fn eviction_basis(shown: &Model, sort: Sort<EvictionColumn>, filter: &Filter) -> SortBasis<EvictionColumn> {
    let revision = Revision { evictions: shown.views.revision.evictions, ..Revision::default() };
    SortBasis {
        sort,
        filter: filter.clone(),
        revision,
        taken: filter.is_volatile().then_some(shown.views.taken),
    }
}

impl App {
    /// Sorts and filters all lists whose inputs may have changed. Returns whether a list was rebuilt. Lists that are
    /// rebuilt on every call do not count: zones, the pods of a node, and views.
    pub fn arrange(&mut self, now: Timestamp) -> bool {
        let frozen = self.screen.frozen.take();
        let any = match &frozen {
            Some(frozen) => self.screen.arrange(&frozen.model, &self.operations, frozen.at),
            None => self.screen.arrange(&self.model, &self.operations, now),
        };
        self.screen.frozen = frozen;
        any
    }
}

impl Screen {
    fn arrange(&mut self, shown: &Model, operations: &Operations, now: Timestamp) -> bool {
        let mut any = false;
        let basis = node_basis(shown, self.nodes.sort, self.filter(Pane::Nodes));
        if self.nodes.arranged.as_ref() != Some(&basis) {
            let nodes = node_rows(shown, &basis.filter, basis.sort);
            let order = if basis.sort == Sort::default() { GroupOrder::Urgency } else { GroupOrder::Name };
            let rows = self.groups.arrange(nodes, shown, order);
            self.ready_from = groups::ready_from(&rows, shown);
            self.nodes.list.replace(rows);
            self.nodes.arranged = Some(basis);
            any = true;
        }
        self.groups.count_pods(shown);
        let filter = self.filter(Pane::Zones).clone();
        self.zones.list.replace(zone_rows(shown, &filter, self.zones.sort));
        let basis = eviction_basis(shown, self.evictions.sort, self.filter(Pane::Evictions));
        if self.evictions.arranged.as_ref() != Some(&basis) {
            self.evictions.list.replace_shared(eviction_rows(shown, &basis.filter, basis.sort));
            self.evictions.arranged = Some(basis);
            any = true;
        }
        let filter = self.filter(Pane::Pods).clone();
        let pods = self
            .pods_of
            .as_ref()
            .map(|node| pod_rows(shown, shown.cluster.pods_on(node), &filter, self.pods.sort));
        self.pods.list.replace(pods.unwrap_or_default());
        arrange_views(self, shown, operations, now);
        any |= self.arrange_lanes(shown);
        let filter = self.filter(Pane::Pending).clone();
        let revision = Revision { unscheduled: shown.unscheduled_changes(), ..Revision::default() };
        any |= self.pending.arrange(filter, revision, |filter, sort| pending_rows(shown, filter, sort));
        let filter = self.filter(Pane::Departures).clone();
        let revision = Revision { departures: shown.departures.revision(), ..Revision::default() };
        any |= self.departures.arrange(filter, revision, |filter, sort| departure_rows(shown, filter, sort));
        if let Some(filter) = self.outdated(Pane::Journal, shown.journal.revision()) {
            let entries = shown.journal.newest().into_iter().filter(|(_, entry)| filter.matches(*entry));
            self.journal.replace(entries.map(|(number, _)| number).collect());
            any = true;
        }
        let filter = self.filter(Pane::Budgets).clone();
        let revision = Revision { results: shown.predictions.budgets_revision(), ..Revision::default() };
        any |= self.budgets.arrange(filter, revision, |filter, sort| budgets(shown, filter, sort));
        let filter = self.filter(Pane::Audit).clone();
        let revision = Revision { results: shown.predictions.audit_revision(), ..Revision::default() };
        any |= self.audit.arrange(filter, revision, |filter, sort| finding_rows(shown, filter, sort));
        let is_empty = [
            (Pane::Budgets, shown.cluster.budgets().is_empty()),
            (Pane::Evictions, shown.views.leaving.evictions.is_empty()),
            (Pane::Forecast, self.is_forecast_empty(shown)),
            (Pane::Journal, shown.journal.is_empty()),
            (Pane::Pending, shown.cluster.unscheduled_count() == 0),
            (Pane::Departures, shown.departures.is_empty()),
        ];
        for (pane, is_empty) in is_empty {
            self.openings.entry(pane).or_default().on_content(is_empty, now);
        }
        any
    }
}

impl Screen {
    /// Returns the filter to apply if the rows of a pane were made with another filter or from another revision; `None`
    /// if the rows are up to date.
    fn outdated(&mut self, pane: Pane, revision: u64) -> Option<Filter> {
        let basis = (revision, self.filter(pane).clone());
        if self.arranged.get(&pane) == Some(&basis) {
            return None;
        }
        self.arranged.insert(pane, basis.clone());
        Some(basis.1)
    }

    fn is_forecast_empty(&self, shown: &Model) -> bool {
        let forecast = shown.predictions.forecast_until(self.forecast.horizon);
        forecast.is_none_or(|forecast| forecast.chart.lanes.is_empty())
            && shown.charted_kubelets().next().is_none()
    }

    /// Lists the forecast's lanes (rows of one node or of several) that pass the filter, and folds lanes together until
    /// all fit the pane. Returns whether the lanes may have changed.
    fn arrange_lanes(&mut self, shown: &Model) -> bool {
        let horizon = self.forecast.horizon;
        let forecast = shown.predictions.forecast_until(horizon);
        let basis = LanesBasis {
            forecast: forecast.map(|forecast| (forecast.made, forecast.until)),
            states: shown.views.revision.states,
            kubelets: shown.charted_kubelets().map(|(node, eviction)| (node.clone(), eviction)).collect(),
            outcomes: shown.predictions.outcomes().map(|outcomes| outcomes.at),
            filter: self.filter(Pane::Forecast).clone(),
            horizon,
            room: self.forecast.room,
        };
        if self.forecast.arranged.as_ref() == Some(&basis) {
            return false;
        }
        let lanes = shown.forecast_lanes(horizon);
        let passes =
            |lane: &&Lane| basis.filter.is_empty() || basis.filter.matches(&FilterableLane { shown, lane });
        let passing = lanes.iter().map(Cow::as_ref).filter(passes);
        let nowhere = |node: &NodeName| shown.predictions.outcomes()?.nowhere_on(node);
        let lanes: Vec<_> = passing.map(|lane| lane.with_nowhere(nowhere)).collect();
        self.forecast.replace(forecast::fold(&lanes, basis.room, horizon.alike()));
        self.forecast.arranged = Some(basis);
        true
    }
}

impl<K: PartialEq + Clone, C: SortColumn> SortedList<K, C> {
    /// Sorts and filters the list if it was made with another filter, in another order or from another revision.
    /// Returns whether it was.
    fn arrange(
        &mut self,
        filter: Filter,
        revision: Revision,
        rows: impl FnOnce(&Filter, Sort<C>) -> Vec<K>,
    ) -> bool {
        let basis = SortBasis { sort: self.sort, filter, revision, taken: None };
        if self.arranged.as_ref() == Some(&basis) {
            return false;
        }
        self.list.replace(rows(&basis.filter, basis.sort));
        self.arranged = Some(basis);
        true
    }
}

/// Lists the rows of the open views that pass the filters.
fn arrange_views(screen: &mut Screen, shown: &Model, operations: &Operations, now: Timestamp) {
    let Screen { overlays, filters, .. } = screen;
    let filter = |pane| filters.get(&pane).cloned().unwrap_or_default();
    for overlay in overlays.iter_mut() {
        match overlay {
            Overlay::Detail(detail) => {
                let (mode, filter) = (operations.mode.note(), &filter(Pane::Detail));
                detail.fill(&DetailContext { model: shown, mode, filter, now });
            }
            Overlay::Plan(preview) => preview.arrange(&filter(Pane::Plan)),
            Overlay::Progress(progress) => {
                if let Some(operation) = operations.entry(&progress.operation) {
                    progress.arrange(operation, &filter(Pane::Progress));
                }
            }
            Overlay::Events(view) => {
                view.arrange(&filter(Pane::Events), shown.cluster.clock(), shown.views.taken)
            }
            Overlay::Filter(_)
            | Overlay::Palette(_)
            | Overlay::Question(_)
            | Overlay::Help(_)
            | Overlay::Info(_)
            | Overlay::Timing(_)
            | Overlay::Maintenance(_)
            | Overlay::Tour(_)
            | Overlay::Themes(_) => {}
        }
    }
}

/// Sort value of a row. All values of one column have the same variant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// The value of rows that keep their order. The column of names has this value, because rows are already sorted by
    /// name.
    Place,
    Number(i64),
    Text(Name),
    Pair(i64, i64),
}

/// Sorts rows by rank. Rows of equal rank keep their order, which is by name.
fn sorted<T>(mut rows: Vec<(Rank, T)>, reversed: bool) -> Vec<T> {
    if reversed && rows.first().is_some_and(|(rank, _)| *rank == Rank::Place) {
        rows.reverse();
    }
    rows.sort_by(|(a, _), (b, _)| {
        let order = a.cmp(b);
        if reversed { order.reverse() } else { order }
    });
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Names of the nodes that pass a filter, sorted.
pub fn node_rows(shown: &Model, filter: &Filter, sort: Sort<NodeColumn>) -> Vec<NodeName> {
    let devices = OnceCell::new();
    let matches = |node: &Node| filter.matches(&FilterableNode { shown, node, devices: &devices });
    let rows = shown.cluster.nodes().iter().filter(|node| filter.is_empty() || matches(node));
    let mut states = InOrder::new(shown.watchlist.states());
    let mut next = InOrder::new(&shown.views.leaving.next);
    let mut rank = |node: &Node| {
        let (state, due) = (states.get(&node.name), next.get(&node.name));
        node_rank(shown, node, state, due, sort.column)
    };
    sorted(rows.map(|node| (rank(node), node.name.clone())).collect(), sort.reversed)
}

/// Looks up values of nodes with ascending names in a single pass. Separate lookups would delay the
/// response to key presses.
struct InOrder<I: Iterator>(Peekable<I>);

impl<'a, V, I: Iterator<Item = (&'a NodeName, V)>> InOrder<I> {
    fn new(values: impl IntoIterator<IntoIter = I>) -> Self {
        Self(values.into_iter().peekable())
    }

    fn get(&mut self, node: &NodeName) -> Option<V> {
        while self.0.next_if(|(name, _)| *name < node).is_some() {}
        self.0.next_if(|(name, _)| *name == node).map(|(_, value)| value)
    }
}

/// Rank of a node when sorting by `column`. `state` and `due` are the state and the next event of the node.
fn node_rank(
    shown: &Model,
    node: &Node,
    state: Option<NodeState>,
    due: Option<&NextEvent>,
    column: NodeColumn,
) -> Rank {
    let load = || shown.cluster.load(&node.name);
    match column {
        NodeColumn::State => {
            let urgency = state.map_or(0, |state| state as i64);
            Rank::Pair(urgency, due.and_then(|due| due.at).map_or(i64::MAX, Timestamp::as_nanos))
        }
        NodeColumn::Name => Rank::Place,
        NodeColumn::Zone => Rank::Text(node.zone().to_string().into()),
        NodeColumn::Roles => Rank::Text(node.roles().collect::<Vec<_>>().join(",").into()),
        NodeColumn::Heartbeat => {
            let heartbeat = shown.silence(node).map(|silence| silence.heartbeat);
            Rank::Number(heartbeat.map_or(i64::MIN, Timestamp::as_nanos))
        }
        NodeColumn::Due => Rank::Number(due.and_then(|due| due.at).map_or(i64::MAX, Timestamp::as_nanos)),
        NodeColumn::Pods => number(load().unfinished()),
        NodeColumn::Cpu => share(load().requested.cpu_milli, node.allocatable.cpu_milli),
        NodeColumn::Memory => share(load().requested.memory_bytes, node.allocatable.memory_bytes),
        NodeColumn::Taints => number(node.taints.len()),
        NodeColumn::Conditions => number(node.problems().count()),
        NodeColumn::Address => Rank::Text(node.address.clone()),
        NodeColumn::Version => Rank::Text(node.kubelet_version.clone()),
        NodeColumn::Kernel => Rank::Text(node.kernel_version.clone()),
        NodeColumn::Kind => Rank::Text(instance_type(node).cloned().unwrap_or_default()),
        NodeColumn::Age => Rank::Number(-node.created.as_nanos()),
    }
}

/// Sort value of a number. Larger numbers come first.
fn number(number: usize) -> Rank {
    Rank::Number(-i64::try_from(number).unwrap_or(i64::MAX))
}

/// Sort value of the share `used / of`. Larger shares come first.
fn share(used: i64, of: i64) -> Rank {
    Rank::Number(-used.saturating_mul(100_000).checked_div(of).unwrap_or(0))
}

/// Keys of the zones that pass a filter, sorted.
pub fn zone_rows(shown: &Model, filter: &Filter, sort: Sort<ZoneColumn>) -> Vec<ZoneKey> {
    let rows = shown.views.zones.iter().filter(|zone| filter.matches(&FilterableZone { shown, zone }));
    let rank = |zone: &ZoneView| match sort.column {
        ZoneColumn::Zone => Rank::Place,
        ZoneColumn::State => Rank::Number(-(zone.state as i64)),
        ZoneColumn::Size => number(zone.size),
        ZoneColumn::NotReady => number(zone.not_ready),
        ZoneColumn::Rate => Rank::Number((zone.rate * 1e6) as i64),
        ZoneColumn::Queue => number(zone.queue.len()),
    };
    sorted(rows.map(|zone| (rank(zone), zone.key.clone())).collect(), sort.reversed)
}

/// Pods of the evictions that pass a filter, sorted.
pub fn eviction_rows(shown: &Model, filter: &Filter, sort: Sort<EvictionColumn>) -> Arc<Vec<Key>> {
    if filter.is_empty() && sort == Sort::default() {
        // The views already have the evictions in the default order. Sorting tens of thousands of evictions again would
        // delay the response to key presses.
        return shown.views.leaving.by_urgency.clone();
    }
    let rows = shown
        .views
        .leaving
        .evictions
        .iter()
        .filter(|(key, row)| filter.matches(&FilterableEviction { shown, key, row }));
    let rank = |key: &Key, row: &EvictionRow| match sort.column {
        EvictionColumn::Due => {
            let (rank, at) = row.state.urgency();
            Rank::Pair(rank.into(), at)
        }
        EvictionColumn::Pod => Rank::Text(key.to_string().into()),
        EvictionColumn::Node => Rank::Text(row.node.0.clone()),
        EvictionColumn::Outcome => {
            let outcome = shown.outcome(key, row);
            Rank::Pair(row.state.rank().into(), outcome.map_or(-1, |outcome| outcome.kind() as i64))
        }
    };
    sorted(rows.map(|(key, row)| (rank(key, row), key.clone())).collect(), sort.reversed).into()
}

fn budgets(shown: &Model, filter: &Filter, sort: Sort<BudgetColumn>) -> Vec<Key> {
    let rows = shown.predictions.budgets().into_iter().flat_map(BudgetList::rows);
    let rank = |row: &BudgetRow| match sort.column {
        BudgetColumn::Room => {
            let (room, drains) = row.urgency();
            Rank::Pair(room, drains)
        }
        BudgetColumn::Name => Rank::Place,
        BudgetColumn::Pods => number(row.pods.len()),
        BudgetColumn::Blocks => number(row.blocks.len()),
        BudgetColumn::Drains => number(row.drains.len()),
    };
    let rows = rows.filter(|row| filter.matches(*row)).map(|row| (rank(row), row.key.clone()));
    sorted(rows.collect(), sort.reversed)
}

/// Pods that left and pass a filter, sorted. Pods of equal rank are sorted by when they left, latest first.
fn departure_rows(shown: &Model, filter: &Filter, sort: Sort<DepartureColumn>) -> Vec<DepartureId> {
    let is_row = |id: DepartureId| !filter.is_empty() || shown.views.loops.departures_in_row(id).is_some();
    let rank = |entry: &DepartureEntry| match sort.column {
        DepartureColumn::Ago => Rank::Place,
        DepartureColumn::Kind => Rank::Number(entry.departure.kind as i64),
        DepartureColumn::Pod => Rank::Text(entry.pod.to_string().into()),
        DepartureColumn::Node => {
            Rank::Text(entry.node.as_ref().map(|node| node.0.clone()).unwrap_or_default())
        }
    };
    let rows = shown.departures.newest().filter(|(id, entry)| filter.matches(*entry) && is_row(*id));
    sorted(rows.map(|(id, entry)| (rank(entry), id)).collect(), sort.reversed)
}

/// Identities of the findings of the audit that pass a filter, sorted. Findings of equal rank are sorted by severity.
fn finding_rows(shown: &Model, filter: &Filter, sort: Sort<AuditColumn>) -> Vec<String> {
    let rank = |finding: &Finding| match sort.column {
        AuditColumn::Cause => Rank::Place,
        AuditColumn::Object => Rank::Text(finding.subject.to_string().into()),
        AuditColumn::Pods => number(finding.pods.len()),
        AuditColumn::Nodes => number(finding.nodes.len()),
    };
    let findings = shown.predictions.audit().into_iter().flat_map(|known| &known.audit.findings);
    let rows = findings.filter(|finding| filter.matches(*finding));
    sorted(rows.map(|finding| (rank(finding), finding.id())).collect(), sort.reversed)
}

/// Pods that wait for a node and pass a filter, sorted. Pods of equal rank are sorted by how long they wait.
pub fn pending_rows(shown: &Model, filter: &Filter, sort: Sort<PendingColumn>) -> Vec<Key> {
    let pods = shown.pending_pods().into_iter().filter(|pod| filter.matches(&FilterablePod { shown, pod }));
    let rank = |pod: &Pod| match sort.column {
        PendingColumn::For => Rank::Place,
        PendingColumn::Pod => Rank::Text(pod.key.to_string().into()),
        PendingColumn::Why => Rank::Text(pod.pending_cause().into()),
    };
    sorted(pods.map(|pod| (rank(pod), pod.key.clone())).collect(), sort.reversed)
}

/// The pods that pass a filter, sorted. Pods of equal rank keep the order of `pods`.
pub fn pod_rows<'a>(
    shown: &Model,
    pods: impl Iterator<Item = &'a Arc<Pod>>,
    filter: &Filter,
    sort: Sort<PodColumn>,
) -> Vec<Key> {
    let rows = pods.filter(|pod| filter.matches(&FilterablePod { shown, pod }));
    let rank = |pod: &Pod| match sort.column {
        PodColumn::Name => Rank::Place,
        PodColumn::Due => {
            let row = shown.views.leaving.evictions.get(&pod.key);
            let at = row.and_then(|row| row.state.at()).map_or(i64::MAX, Timestamp::as_nanos);
            Rank::Pair(row.map_or(9, |row| row.state.rank().into()), at)
        }
        PodColumn::Ready => Rank::Number(i64::from(pod.is_ready())),
        PodColumn::Phase => Rank::Number(pod.phase as i64),
        PodColumn::Owner => {
            Rank::Text(pod.owner.as_ref().map(|owner| owner.name.clone()).unwrap_or_default())
        }
        PodColumn::Priority => Rank::Number(-i64::from(pod.priority)),
        PodColumn::Cpu => Rank::Number(-pod.requests().cpu_milli),
        PodColumn::Memory => Rank::Number(-pod.requests().memory_bytes),
        PodColumn::Age => Rank::Number(-pod.created.as_nanos()),
    };
    sorted(rows.map(|pod| (rank(pod), pod.key.clone())).collect(), sort.reversed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        app::AppOptions,
        k8s::feed::FeedEvent,
        model::{ConnectionInfo, ControllerRole, ModelOptions},
    };
    use kordon_core::{
        cluster::{Change, Condition, ConditionStatus, Lease, ObjectEvent, READY, Version},
        engine::{ServerVersion, Settings},
    };
    use kordon_time::ClusterTime;

    const NOW: Timestamp = Timestamp::from_secs(1_000_000);

    fn node(name: &str, version: u64) -> Node {
        let posted = Timestamp::from_secs(i64::try_from(version).expect("small"));
        let last_heartbeat = Some(ClusterTime::new(posted));
        let status = ConditionStatus::True;
        let ready = Condition { kind: READY.into(), status, last_heartbeat, ..Condition::default() };
        Node { name: name.into(), version: Version(version), conditions: [ready].into(), ..Node::default() }
    }

    fn app() -> App {
        let settings = Settings::defaults(ServerVersion::new(1, 33));
        let connection = ConnectionInfo::default();
        let options = ModelOptions { connection, settings, role: ControllerRole::Controller };
        let mut app = App::new(Model::new(options, NOW), AppOptions::default());
        let mut changes =
            vec![Change::Node(ObjectEvent::ListStarted), Change::Lease(ObjectEvent::ListStarted)];
        for name in ["a", "b", "c"] {
            changes.push(Change::Node(ObjectEvent::Listed(node(name, 1))));
            let lease = Lease { node: name.into(), renewed: Some(ClusterTime::new(NOW)), ..Lease::default() };
            changes.push(Change::Lease(ObjectEvent::Listed(lease)));
        }
        changes.extend([Change::Node(ObjectEvent::ListDone), Change::Lease(ObjectEvent::ListDone)]);
        // The engine of a controller starts only after the list of pods is complete.
        changes.extend([ObjectEvent::ListStarted, ObjectEvent::ListDone].map(Change::Pod));
        app.on_watch_event(FeedEvent::Changes(changes), NOW);
        app
    }

    /// Applies a change of a node and refreshes the app. Returns the order of the nodes, and whether they were sorted
    /// again.
    fn after(app: &mut App, change: Node) -> (Vec<String>, bool) {
        let before = app.screen.nodes.arranged.clone();
        app.on_watch_event(FeedEvent::Changes(vec![Change::Node(ObjectEvent::Applied(change))]), NOW);
        app.refresh(NOW);
        let names = app.screen.nodes.list.keys().iter().map(ToString::to_string).collect();
        (names, app.screen.nodes.arranged != before)
    }

    #[test]
    fn a_heartbeat_sorts_nothing_and_a_cordon_does() {
        let mut app = app();
        let in_order = |names: [&str; 3]| names.map(str::to_owned).to_vec();
        assert_eq!(after(&mut app, node("b", 2)), (in_order(["a", "b", "c"]), false));
        let cordoned = Node { unschedulable: true, ..node("b", 3) };
        assert_eq!(after(&mut app, cordoned), (in_order(["b", "a", "c"]), true));
        assert_eq!(after(&mut app, node("b", 4)), (in_order(["a", "b", "c"]), true));
    }

    #[test]
    fn another_column_or_filter_sorts_at_once() {
        let mut app = app();
        app.refresh(NOW);
        app.screen.nodes.sort = Sort { column: NodeColumn::Name, reversed: true };
        app.arrange(NOW);
        assert_eq!(app.screen.listed_nodes(), ["c", "b", "a"].map(NodeName::from));
        app.screen.filters.insert(Pane::Nodes, Filter::parse("c"));
        app.arrange(NOW);
        assert_eq!(app.screen.listed_nodes(), [NodeName::from("c")]);
    }
}
