//! Notable moments of a period of time. They are marks on a time line, and targets for jumps.

use std::collections::{BTreeMap, BTreeSet};

use super::{DepartureId, JournalEntry, Model, NodeState, VerdictLevel};
use kordon_core::{
    cluster::{NodeName, ZoneKey},
    engine::{Confidence, ZoneState},
    why::departure::DepartureKind,
};
use kordon_time::{Span, Timestamp};

/// Time after a moment within which the same event of another object joins this moment.
const JOINS: Span = Span::from_secs(10);

/// Maximum number of moments. Later moments are dropped.
const CAPACITY: usize = 20_000;

/// Maximum age of departures that are examined for moments, and time for which the ids of departures that belong to a
/// moment are kept.
const REMEMBERED: Span = Span::from_secs(600);

/// A notable event of one object, or of several objects at about the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    pub at: Timestamp,
    pub kind: MomentKind,
    pub level: VerdictLevel,
    /// Name of the first affected object, or a description of the event.
    pub subject: String,
    /// Number of objects to which the event happened.
    pub count: usize,
}

/// Kind of a notable moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MomentKind {
    /// Nodes entered this state.
    Node(NodeState),
    NodeJoined,
    NodeDeleted,
    /// A zone entered this state.
    Zone(ZoneState),
    /// Pods were evicted, by any component.
    Eviction,
    /// The cluster's controller did not act as kordon's engine, its shadow, predicted.
    Disagreement,
    /// The watches of nodes or Leases broke.
    Disconnected,
    Reconnected,
    /// The controller is no longer active.
    NoController,
    ControllerBack,
    /// A part of the recording is missing or unreadable.
    Gap,
}

impl Moment {
    /// Returns a moment with one affected object.
    pub fn new(at: Timestamp, kind: MomentKind, level: VerdictLevel, subject: &str) -> Self {
        Self { at, kind, level, subject: subject.into(), count: 1 }
    }

    /// Text of the moment: `node a-03 Silent`, `8 nodes Silent`, `3 pods evicted`, `zone b down`.
    pub fn text(&self) -> String {
        let Self { kind, subject, count, .. } = self;
        let of = |one: &str, several: &str, what: &str| match count {
            1 => format!("{one} {subject} {what}"),
            count => format!("{count} {several} {what}"),
        };
        match kind {
            MomentKind::Node(state) => of("node", "nodes", state.as_str()),
            MomentKind::NodeJoined => of("node", "nodes", "joined"),
            MomentKind::NodeDeleted => of("node", "nodes", "deleted"),
            MomentKind::Zone(state) => of("zone", "zones", zone_word(*state)),
            MomentKind::Eviction => of("pod", "pods", "evicted"),
            MomentKind::Disconnected => "disconnected from nodes and Leases".into(),
            MomentKind::Reconnected => "connected again".into(),
            MomentKind::NoController => "no active kube-controller-manager".into(),
            MomentKind::ControllerBack => "kube-controller-manager active again".into(),
            MomentKind::Disagreement | MomentKind::Gap => subject.clone(),
        }
    }

    /// Stable word for the kind in machine-readable output.
    pub const fn word(&self) -> &'static str {
        match self.kind {
            MomentKind::Node(_) => "nodeState",
            MomentKind::NodeJoined => "nodeJoined",
            MomentKind::NodeDeleted => "nodeDeleted",
            MomentKind::Zone(_) => "zoneState",
            MomentKind::Eviction => "eviction",
            MomentKind::Disagreement => "disagreement",
            MomentKind::Disconnected => "disconnected",
            MomentKind::Reconnected => "reconnected",
            MomentKind::NoController => "noController",
            MomentKind::ControllerBack => "controllerBack",
            MomentKind::Gap => "gap",
        }
    }
}

/// State of a zone in words: `down`, `normal`.
const fn zone_word(state: ZoneState) -> &'static str {
    match state {
        ZoneState::Initial => "starts",
        ZoneState::Normal => "normal",
        ZoneState::PartialDisruption => "partly down",
        ZoneState::FullDisruption => "down",
    }
}

/// Finds notable moments by comparing each state of a model with the state before.
#[derive(Clone, Debug, Default)]
pub struct MomentFinder {
    found: Vec<Moment>,
    /// State of the model at the last comparison; `None` until the engine has started.
    known: Option<Known>,
}

#[derive(Clone, Debug, Default)]
struct Known {
    names: BTreeSet<NodeName>,
    /// States of the nodes that are not Ready.
    notable: BTreeMap<NodeName, NodeState>,
    /// Value of [`super::NodeWatchlist::revision`] at the last comparison.
    states_revision: u64,
    zones: BTreeMap<ZoneKey, ZoneState>,
    connection: Connection,
    departures_revision: u64,
    counted: BTreeSet<DepartureId>,
    /// Number of the next journal entry to examine.
    next_entry: usize,
}

/// Whether the watches are connected, and whether a controller is active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Connection {
    #[default]
    Live,
    Disconnected,
    NoController,
}

impl MomentFinder {
    /// Moments found so far, oldest first.
    pub fn found(&self) -> &[Moment] {
        &self.found
    }

    /// Removes and returns the moments found so far, oldest first. Later events do not join them.
    pub fn take(&mut self) -> Vec<Moment> {
        std::mem::take(&mut self.found)
    }

    /// Adds the moments since the last call. The model must be refreshed at `now`, which must be later than at the last
    /// call.
    pub fn look(&mut self, model: &Model, now: Timestamp) {
        let Some(confidence) = model.views.confidence else { return };
        let connection = Connection::from(confidence);
        let Some(mut known) = self.known.take() else {
            self.known = Some(Known::new(model, connection));
            return;
        };
        self.look_at_connection(known.connection, connection, now);
        if connection != Connection::Disconnected {
            self.look_at_nodes(&mut known, model, now);
            self.look_at_zones(&mut known, model, now);
        }
        self.look_at_departures(&mut known, model, now);
        self.look_at_journal(&mut known, model, now);
        self.known = Some(Known { connection, ..known });
    }

    /// Adds a moment that does not come from the comparison of models.
    pub fn add(&mut self, moment: Moment) {
        if self.found.len() == CAPACITY {
            return;
        }
        let recent = self.found.iter_mut().rev().take_while(|known| moment.at.since(known.at) <= JOINS);
        let same = recent.into_iter().find(|known| known.kind == moment.kind && joins(known.kind));
        match same {
            Some(same) => same.count += moment.count,
            None => self.found.push(moment),
        }
    }

    fn look_at_connection(&mut self, before: Connection, after: Connection, now: Timestamp) {
        if before == after {
            return;
        }
        let (kind, level) = match (before, after) {
            (_, Connection::Disconnected) => (MomentKind::Disconnected, VerdictLevel::Disconnected),
            (_, Connection::NoController) => (MomentKind::NoController, VerdictLevel::Critical),
            (Connection::NoController, Connection::Live) => {
                (MomentKind::ControllerBack, VerdictLevel::Healthy)
            }
            (Connection::Disconnected | Connection::Live, Connection::Live) => {
                (MomentKind::Reconnected, VerdictLevel::Healthy)
            }
        };
        self.add(Moment::new(now, kind, level, ""));
    }

    fn look_at_nodes(&mut self, known: &mut Known, model: &Model, now: Timestamp) {
        let watchlist = &model.watchlist;
        if known.states_revision == watchlist.revision() {
            return;
        }
        known.states_revision = watchlist.revision();
        self.look_at_names(known, model, now);
        self.look_at_states(known, watchlist.notable(), now);
    }

    fn look_at_states<'a>(
        &mut self,
        known: &mut Known,
        states: impl Iterator<Item = (&'a NodeName, NodeState)>,
        now: Timestamp,
    ) {
        let notable = notable_states(states, &known.notable);
        for (name, state) in &notable {
            if known.notable.get(name) != Some(state) {
                let level = VerdictLevel::from_role(state.role());
                self.add(Moment::new(now, MomentKind::Node(*state), level, name));
            }
        }
        let ready =
            known.notable.keys().filter(|name| !notable.contains_key(*name) && known.names.contains(*name));
        for name in ready {
            self.add(Moment::new(now, MomentKind::Node(NodeState::Ready), VerdictLevel::Healthy, name));
        }
        known.notable = notable;
    }

    fn look_at_names(&mut self, known: &mut Known, model: &Model, now: Timestamp) {
        let watchlist = &model.watchlist;
        if watchlist.names().eq(&known.names) {
            return;
        }
        for name in watchlist.names().filter(|name| !known.names.contains(*name)) {
            self.add(Moment::new(now, MomentKind::NodeJoined, VerdictLevel::Healthy, name));
        }
        for name in known.names.iter().filter(|name| watchlist.state(name).is_none()) {
            self.add(Moment::new(now, MomentKind::NodeDeleted, VerdictLevel::Notice, name));
        }
        known.names = watchlist.names().cloned().collect();
    }

    fn look_at_zones(&mut self, known: &mut Known, model: &Model, now: Timestamp) {
        for zone in &model.views.zones {
            let before = known.zones.insert(zone.key.clone(), zone.state);
            let level = match zone.state {
                ZoneState::FullDisruption | ZoneState::PartialDisruption => VerdictLevel::Critical,
                ZoneState::Initial | ZoneState::Normal => VerdictLevel::Healthy,
            };
            let starts =
                before.is_none_or(|before| before == ZoneState::Initial) && level == VerdictLevel::Healthy;
            if before != Some(zone.state) && !starts {
                let name = model.watchlist.zone_names().short(&zone.key);
                self.add(Moment::new(now, MomentKind::Zone(zone.state), level, &name));
            }
        }
    }

    fn look_at_departures(&mut self, known: &mut Known, model: &Model, now: Timestamp) {
        if known.departures_revision == model.departures.revision() {
            return;
        }
        known.departures_revision = model.departures.revision();
        let from = DepartureId::first_at(now - REMEMBERED);
        known.counted.retain(|id| *id >= from);
        let recent = model.departures.newest().take_while(|(id, _)| *id >= from);
        let mut evicted: Vec<_> = recent
            .filter(|(_, entry)| is_eviction(entry.departure.kind))
            .filter(|(id, _)| known.counted.insert(*id))
            .collect();
        evicted.reverse();
        for (_, entry) in evicted {
            let pod = entry.pod.to_string();
            self.add(Moment::new(now, MomentKind::Eviction, VerdictLevel::Warning, &pod));
        }
    }

    fn look_at_journal(&mut self, known: &mut Known, model: &Model, now: Timestamp) {
        let entries = model.journal.numbered().rev().take_while(|(number, _)| *number >= known.next_entry);
        let mut new: Vec<&JournalEntry> =
            entries.map(|(_, entry)| entry).filter(|entry| entry.is_disagreement()).collect();
        new.reverse();
        for entry in new {
            let words = entry.words();
            self.add(Moment::new(now, MomentKind::Disagreement, VerdictLevel::Warning, &words));
        }
        known.next_entry = model.journal.next_number();
    }
}

impl Known {
    fn new(model: &Model, connection: Connection) -> Self {
        let counted = model.departures.newest().map(|(id, _)| id).collect();
        Self {
            names: model.watchlist.names().cloned().collect(),
            notable: notable_states(model.watchlist.notable(), &BTreeMap::new()),
            states_revision: model.watchlist.revision(),
            zones: model.views.zones.iter().map(|zone| (zone.key.clone(), zone.state)).collect(),
            connection,
            departures_revision: model.departures.revision(),
            counted,
            next_entry: model.journal.next_number(),
        }
    }
}

impl From<Confidence> for Connection {
    fn from(confidence: Confidence) -> Self {
        match confidence {
            Confidence::Live | Confidence::Assumed => Self::Live,
            Confidence::Disconnected { .. } => Self::Disconnected,
            Confidence::NoController { .. } => Self::NoController,
        }
    }
}

/// Returns the states of the nodes that are not Ready. A late node keeps the state it had before, because most late
/// heartbeats arrive after all.
fn notable_states<'a>(
    states: impl Iterator<Item = (&'a NodeName, NodeState)>,
    before: &BTreeMap<NodeName, NodeState>,
) -> BTreeMap<NodeName, NodeState> {
    let notable = states.filter_map(|(name, state)| match state {
        NodeState::Late => before.get_key_value(name).map(|(name, before)| (name.clone(), *before)),
        state => Some((name.clone(), state)),
    });
    notable.collect()
}

/// Whether a moment of this kind also covers the same event of other objects.
const fn joins(kind: MomentKind) -> bool {
    !matches!(kind, MomentKind::Disagreement | MomentKind::Gap)
}

/// Whether a departure of this kind is an eviction. A pod that ended, or that was no longer wanted, was not evicted.
pub const fn is_eviction(kind: DepartureKind) -> bool {
    match kind {
        DepartureKind::NodePressure
        | DepartureKind::StorageLimit
        | DepartureKind::Rejection
        | DepartureKind::TaintEviction
        | DepartureKind::DeviceTaintEviction
        | DepartureKind::Preemption
        | DepartureKind::GarbageCollection
        | DepartureKind::OutOfService
        | DepartureKind::NodeShutdown
        | DepartureKind::ApiEviction => true,
        DepartureKind::OomKill
        | DepartureKind::Failure
        | DepartureKind::ScaleDown
        | DepartureKind::Deletion
        | DepartureKind::JobCompletion
        | DepartureKind::Completion => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(secs: i64, kind: MomentKind, subject: &str) -> Moment {
        Moment::new(Timestamp::from_secs(secs), kind, VerdictLevel::Critical, subject)
    }

    #[test]
    fn the_same_about_several_objects_at_once_is_one_moment() {
        let mut finder = MomentFinder::default();
        let silent = MomentKind::Node(NodeState::Silent);
        for (secs, kind, subject) in [
            (100, silent, "a-01"),
            (102, silent, "a-02"),
            (103, MomentKind::Eviction, "shop/web-1"),
            (110, silent, "a-03"),
            (111, silent, "a-04"),
        ] {
            finder.add(moment(secs, kind, subject));
        }
        let texts: Vec<String> = finder.found().iter().map(Moment::text).collect();
        assert_eq!(texts, ["3 nodes Silent", "pod shop/web-1 evicted", "node a-04 Silent"]);
    }

    #[test]
    fn a_node_that_is_late_or_starts_is_not_ready_yet() {
        use NodeState::{Late, Ready, Silent, Starting, Unknown};
        let mut finder = MomentFinder::default();
        let mut known = Known { names: ["a".into()].into(), ..Known::default() };
        for (place, state) in
            [Ready, Late, Ready, Silent, Late, Silent, Unknown, Late, Unknown, Starting, Ready]
                .iter()
                .enumerate()
        {
            let name = NodeName::from("a");
            let states = [(&name, *state)].into_iter().filter(|(_, state)| *state != Ready);
            let at = Timestamp::from_secs(100 * i64::try_from(place).expect("few"));
            finder.look_at_states(&mut known, states, at);
        }
        let texts: Vec<_> = finder
            .found()
            .iter()
            .map(|found| (found.at.since(Timestamp::EPOCH).as_secs(), found.text()))
            .collect();
        let expected = [
            (300, "node a Silent"),
            (600, "node a Unknown"),
            (900, "node a Starting"),
            (1000, "node a Ready"),
        ];
        assert_eq!(texts, expected.map(|(at, text)| (at, text.to_owned())));
    }

    #[test]
    fn disagreements_are_moments_of_their_own() {
        let mut finder = MomentFinder::default();
        for text in ["expected, did not happen: taint node a", "expected, did not happen: taint node b"] {
            finder.add(moment(100, MomentKind::Disagreement, text));
        }
        assert_eq!(finder.found().len(), 2);
    }
}
