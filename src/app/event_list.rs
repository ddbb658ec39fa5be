//! The list of the cluster's Events: read while it is open, folded by object and reason.

use std::{cmp::Reverse, collections::BTreeMap};

use super::{
    App,
    columns::{EventColumn, Sort},
    detail::DetailSubject,
    filter::Filter,
    filter_fields::FilterableEvent,
    listing::Listing,
    pane::Pane,
};
use kordon_core::cluster::{EventKey, EventsOfCluster, Key, NodeName, ReportedEvent, event::fold_by_object};
use kordon_time::{ClusterClock, Timestamp};

/// The list of Events that is open.
#[derive(Clone, Debug, Default)]
pub struct EventListView {
    /// Pane from which the list was opened.
    pub from: Pane,
    /// Identities of the listed rows of Events, in their order.
    pub list: Listing<EventKey>,
    pub sort: Sort<EventColumn>,
    /// The Events as they were read.
    read: EventsOfCluster,
    /// The Events, folded by object and reason.
    rows: BTreeMap<EventKey, ReportedEvent>,
    /// Filter and order with which the present rows were made; `None` if the rows are outdated.
    arranged: Option<(Filter, Sort<EventColumn>)>,
}

impl EventListView {
    pub fn new(from: Pane) -> Self {
        Self { from, ..Self::default() }
    }

    /// The Events that a row combines; `None` if they are gone.
    pub fn row(&self, key: &EventKey) -> Option<&ReportedEvent> {
        self.rows.get(key)
    }

    /// All Events, folded by object and reason, whether or not they pass a filter.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &ReportedEvent> {
        self.rows.values()
    }

    /// Number of older Events that are left out.
    pub const fn left_out(&self) -> usize {
        self.read.left_out
    }

    /// Whether Events have been listed.
    pub const fn is_listed(&self) -> bool {
        self.read.events.is_some()
    }

    /// Why the Events are unknown or outdated.
    pub fn failure(&self) -> Option<&str> {
        self.read.failure.as_deref()
    }

    /// Sorts and filters the rows of Events, if that may change the rows.
    pub(super) fn arrange(&mut self, filter: &Filter, clock: ClusterClock, now: Timestamp) {
        let basis = (filter.clone(), self.sort);
        if self.arranged.as_ref() == Some(&basis) && !filter.is_volatile() {
            return;
        }
        self.list.replace(event_rows(&self.rows, filter, self.sort, clock, now));
        self.arranged = Some(basis);
    }

    fn replace(&mut self, read: EventsOfCluster) {
        self.read = read.after(std::mem::take(&mut self.read));
        self.rows = fold_by_object(self.read.events.as_deref().unwrap_or_default());
        self.arranged = None;
    }

    /// Marks the Events as unknown, because a recording has no Events.
    pub(super) fn set_unrecorded(&mut self) {
        self.read.failure = Some("a recording has only what watches report".to_owned());
    }
}

impl App {
    /// Whether Events of the cluster are to be read: their list is open, and the screen shows the present.
    pub fn lists_events(&self) -> bool {
        self.screen.overlays.event_list().is_some() && !self.is_frozen()
    }

    /// Shows the Events that were read, if their list is still open.
    pub fn on_cluster_events(&mut self, events: EventsOfCluster, now: Timestamp) {
        if let Some(view) = self.screen.overlays.event_list_mut() {
            view.replace(events);
            self.arrange(now);
        }
    }

    /// The node, pod or budget that the selected Events are about.
    ///
    /// # Errors
    /// The Events are about another kind of object, or about an object that is gone.
    pub(super) fn subject_of_event(&self) -> Result<Option<DetailSubject>, String> {
        let selected = self.screen.overlays.event_list().and_then(|view| view.list.selected());
        let Some(EventKey { about, .. }) = selected else { return Ok(None) };
        let cluster = &self.shown().cluster;
        let (subject, is_there) = match &*about.kind {
            "Node" => {
                let node = NodeName(about.name.clone());
                let is_there = cluster.node(&node).is_some();
                (DetailSubject::Node(node), is_there)
            }
            "Pod" => {
                let pod = Key::new(&about.namespace, &about.name);
                let is_there = cluster.pod(&pod).is_some();
                (DetailSubject::Pod(pod), is_there)
            }
            "PodDisruptionBudget" => {
                let budget = Key::new(&about.namespace, &about.name);
                let is_there = cluster.budgets().get(&budget).is_some();
                (DetailSubject::Budget(budget), is_there)
            }
            kind => {
                return Err(format!("this is about a {kind}: only nodes, pods and budgets have a detail"));
            }
        };
        if is_there { Ok(Some(subject)) } else { Err(format!("{about} is gone, or not known")) }
    }
}

/// Identities of the Events that pass a filter, sorted. Among Events of equal rank, the newest come first.
pub fn event_rows(
    events: &BTreeMap<EventKey, ReportedEvent>,
    filter: &Filter,
    sort: Sort<EventColumn>,
    clock: ClusterClock,
    now: Timestamp,
) -> Vec<EventKey> {
    let passes = |event: &ReportedEvent| filter.matches(&FilterableEvent { event, clock, now });
    let mut rows: Vec<(&EventKey, &ReportedEvent)> =
        events.iter().filter(|(_, event)| passes(event)).collect();
    rows.sort_by_key(|(_, row)| Reverse(row.event.last));
    rows.sort_by(|(_, one), (_, other)| {
        let order = match sort.column {
            EventColumn::Last => other.event.last.cmp(&one.event.last),
            EventColumn::Type => other.event.is_warning.cmp(&one.event.is_warning),
            EventColumn::Reason => one.event.reason.cmp(&other.event.reason),
            EventColumn::Object => one.about.cmp(&other.about),
            EventColumn::Count => other.event.count.cmp(&one.event.count),
            EventColumn::Source => one.event.source.cmp(&other.event.source),
        };
        if sort.reversed { order.reverse() } else { order }
    });
    rows.into_iter().map(|(key, _)| key.clone()).collect()
}
