//! Timeline of a node, a pod or a budget: Events and the session's journal entries, merged by time.

use super::{JournalEntry, JournalSubject, Model};
use kordon_core::cluster::{Cluster, ClusterEvent, Key, NodeName, event::fold};
use kordon_time::Timestamp;

/// Maximum number of entries that are shown. Older entries are in the journal.
const SHOWN: usize = 60;

/// An entry of a timeline. It stands at the time of the event's last occurrence.
#[derive(Clone, Debug, PartialEq)]
pub struct TimelineEntry {
    /// Time of the last occurrence; `None` for an Event without a time.
    pub at: Option<Timestamp>,
    pub source: TimelineSource,
}

/// Source of a timeline entry, with its content.
#[derive(Clone, Debug, PartialEq)]
pub enum TimelineSource {
    /// The journal of this session.
    Session(JournalEntry),
    /// A component of the cluster, which reported an Event. Events with the same reason, type and source are merged.
    Cluster(ClusterEvent),
}

/// The newest entries of a timeline, and the total number of its entries.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    /// Entries, newest first.
    pub entries: Vec<TimelineEntry>,
    pub total: usize,
}

impl Timeline {
    /// Returns the timeline of a node, and of pods while they were on this node.
    pub fn for_node(model: &Model, node: &NodeName, events: &[ClusterEvent]) -> Self {
        let is_it = |subject: &JournalSubject| subject.node() == Some(node);
        Self::merge(&model.cluster, model.journal.about_node(node), is_it, events)
    }

    /// Returns the timeline of a pod.
    pub fn for_pod(model: &Model, pod: &Key, events: &[ClusterEvent]) -> Self {
        let is_it = |subject: &JournalSubject| matches!(subject, JournalSubject::Pod(own, _) if own == pod);
        Self::merge(&model.cluster, model.journal.about_pod(pod), is_it, events)
    }

    /// Returns the timeline of an object that no journal entry is about: its Events.
    pub fn for_events(model: &Model, events: &[ClusterEvent]) -> Self {
        Self::merge(&model.cluster, std::iter::empty(), |_| false, events)
    }

    /// Merges journal entries with Events. If an entry has several objects, only those that `is_meant` selects remain.
    fn merge<'a>(
        cluster: &Cluster,
        seen: impl DoubleEndedIterator<Item = &'a JournalEntry>,
        is_meant: impl Fn(&JournalSubject) -> bool,
        events: &[ClusterEvent],
    ) -> Self {
        let mut seen: Vec<&JournalEntry> = seen.collect();
        let events = fold(events);
        let total = seen.len() + events.len();
        seen.sort_by_key(|entry| std::cmp::Reverse(entry.last));
        let session = seen.into_iter().take(SHOWN).map(|entry| {
            let mut entry = entry.clone();
            entry.subjects.retain(&is_meant);
            TimelineEntry { at: Some(entry.last), source: TimelineSource::Session(entry) }
        });
        let cluster = events.into_iter().map(|event| TimelineEntry {
            at: event.last.map(|at| cluster.local(at)),
            source: TimelineSource::Cluster(event),
        });
        let mut entries: Vec<TimelineEntry> = session.chain(cluster).collect();
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.at));
        entries.truncate(SHOWN);
        Self { entries, total }
    }
}

impl TimelineEntry {
    /// Whether two entries are about the same event, even if the event has occurred again in between.
    pub fn is_same(&self, other: &Self) -> bool {
        match (&self.source, &other.source) {
            (TimelineSource::Session(one), TimelineSource::Session(other)) => {
                (one.at, &one.verb, &one.text) == (other.at, &other.verb, &other.text)
                    && one.subject() == other.subject()
            }
            (TimelineSource::Cluster(one), TimelineSource::Cluster(other)) => {
                (&one.reason, &one.source, one.is_warning) == (&other.reason, &other.source, other.is_warning)
            }
            (TimelineSource::Session(_), TimelineSource::Cluster(_))
            | (TimelineSource::Cluster(_), TimelineSource::Session(_)) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ConnectionInfo, ControllerRole, ModelOptions};
    use kordon_core::engine::{ServerVersion, Settings, Severity, Why};
    use kordon_time::ClusterTime;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    fn model() -> Model {
        let settings = Settings::defaults(ServerVersion::new(1, 36));
        let (connection, role) = (ConnectionInfo::default(), ControllerRole::Shadow);
        Model::new(ModelOptions { connection, settings, role }, at(0))
    }

    fn event(reason: &str, secs: i64) -> ClusterEvent {
        let last = Some(ClusterTime::new(at(secs)));
        ClusterEvent { reason: reason.into(), count: 1, first: last, last, ..ClusterEvent::default() }
    }

    fn seen(secs: i64, verb: &str, subjects: Vec<JournalSubject>) -> JournalEntry {
        let entry = JournalEntry::new(at(secs), Severity::Info, "", "", Why::default()).with_verb(verb);
        JournalEntry { subjects, ..entry }
    }

    fn words(timeline: &Timeline) -> Vec<String> {
        let word = |entry: &TimelineEntry| match &entry.source {
            TimelineSource::Session(entry) => {
                let subjects: Vec<String> = entry.subjects.iter().map(ToString::to_string).collect();
                format!("{} {}", entry.verb, subjects.join(" "))
            }
            TimelineSource::Cluster(event) => event.reason.to_string(),
        };
        timeline.entries.iter().map(word).collect()
    }

    #[test]
    fn what_the_session_saw_and_events_stand_in_one_order_of_time_and_name_what_is_meant() {
        let mut model = model();
        let pod = |name: &str, node: &str| JournalSubject::Pod(Key::new("shop", name), Some(node.into()));
        model.journal.add(seen(
            10,
            "tainted",
            ["a", "b"].map(|node| JournalSubject::Node(node.into())).into(),
        ));
        model.journal.add(seen(
            100,
            "evicted",
            vec![pod("web-1", "a"), pod("web-2", "b"), pod("web-3", "b")],
        ));
        model.journal.add(seen(200, "untainted", vec![JournalSubject::Node("a".into())]));
        let timeless = ClusterEvent { reason: "Odd".into(), ..ClusterEvent::default() };
        let events = [timeless, event("NodeNotReady", 5), event("Rebooted", 150)];
        let of_b = Timeline::for_node(&model, &"b".into(), &events);
        let expected = ["Rebooted", "evicted shop/web-2 shop/web-3", "tainted b", "NodeNotReady", "Odd"];
        assert_eq!(words(&of_b), expected);
        assert_eq!(of_b.total, 5);
        let of_pod = Timeline::for_pod(&model, &Key::new("shop", "web-1"), &events[1..2]);
        assert_eq!(words(&of_pod), ["evicted shop/web-1", "NodeNotReady"]);
    }

    #[test]
    fn of_a_long_timeline_the_newest_entries_are_shown() {
        let mut model = model();
        for second in 0..100 {
            let node = JournalSubject::Node("a".into());
            model.journal.add(seen(second, if second % 2 == 0 { "x" } else { "y" }, vec![node]));
        }
        for number in 0..100 {
            let node = JournalSubject::Node("a".into());
            model.journal.add(seen(1000 + number * 10, &format!("verb {number}"), vec![node]));
        }
        let timeline = Timeline::for_node(&model, &"a".into(), &[event("Late", 5000)]);
        assert_eq!((timeline.entries.len(), timeline.total), (SHOWN, 103));
        assert_eq!(words(&timeline)[..2], ["Late", "verb 99 a"]);
    }
}
