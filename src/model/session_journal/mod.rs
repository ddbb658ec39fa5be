//! The session journal: decisions, actions and failures in this session, newest last.

mod observations;

use std::{
    borrow::Cow,
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
    sync::Arc,
};

use super::{ControllerRole, revisions::ChangeCount};
use kordon_core::{
    cluster::{Applied, Cluster, Key, NodeName},
    engine::{
        Effect, Engine, EventObject, Notice, Outcome, RecordedEvent, Severity, WOULD_EXPLAIN, Why, Write,
    },
    forecast::accuracy::Judgement,
    operation::OperationNotice,
};
use kordon_time::{Span, Timestamp};

use observations::Expectations;
pub(super) use observations::HistoryContext;

/// Maximum number of entries. The oldest entries are dropped first.
pub const CAPACITY: usize = 2000;

/// First words of an entry about a decision that kordon's engine predicted and the cluster's controller did not make.
pub const MISSED: &str = "expected, did not happen";

/// Time after an entry within which the same event of another object joins it. The time is slightly longer than the
/// interval between two monitor passes of the controller.
const JOINS: Span = Span::from_secs(6);

/// Number of newest entries that a repeated event may join. It is more than one, so that interleaved repetitions are
/// joined too.
const NEIGHBOURS: usize = 6;

/// The entries of the journal, newest last. Clones share the entries.
#[derive(Clone, Debug, Default)]
pub struct SessionJournal {
    entries: VecDeque<Arc<JournalEntry>>,
    /// Number of dropped entries. It equals the number of the oldest entry that is kept.
    gone: usize,
    /// Numbers of the entries about each node and its pods, in ascending order.
    by_node: BTreeMap<NodeName, VecDeque<usize>>,
    /// Subjects of the newest entries. They are sets, because lookups must be fast: when a zone fails, tens of
    /// thousands of pods join one entry.
    recent_subjects: VecDeque<Arc<BTreeSet<JournalSubject>>>,
    /// Decisions that kordon's engine predicted, and on which the cluster's controller has not acted yet.
    expectations: Expectations,
    /// Revision of the journal's entries: the number of changes to them.
    revision: ChangeCount,
}

/// An event that happened once or repeatedly: `evicted pod shop/web-1`, `node a-03 became Unknown: no heartbeat for
/// 50s`.
#[derive(Clone, Debug, PartialEq)]
pub struct JournalEntry {
    /// Times of the first occurrence (`at`) and of the last (`last`).
    pub at: Timestamp,
    pub last: Timestamp,
    pub level: Severity,
    /// The action in the past tense, written before the subjects; may be empty.
    pub verb: String,
    /// Objects of the event. The text names only the first of them.
    pub subjects: Vec<JournalSubject>,
    /// The text after the subjects. Without subjects, the whole text.
    pub text: String,
    /// Further text about the event, which is shown if there is room.
    pub detail: String,
    /// Who acted, or the node that is drained; empty if it does not matter. Entries join only if they have the same
    /// value, so that the acts of two people stay apart.
    pub act: String,
    pub why: Why,
    /// Accuracy of the forecasts about this event; `None` if the controller did not cause the event.
    pub judgement: Option<Judgement>,
    /// Number of occurrences with the same subjects.
    pub times: usize,
}

/// The subject of a journal entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JournalSubject {
    Node(NodeName),
    /// A pod, with its node if the node is known.
    Pod(Key, Option<NodeName>),
    /// Neither a node nor a pod: a part of kordon, a watch or an operation.
    Other(String),
}

impl JournalSubject {
    /// Returns the subject of a write: the object that is written.
    pub fn from_write(write: &Write) -> Self {
        let of_pod = |pod: &Key, node: &NodeName| Self::Pod(pod.clone(), Some(node.clone()));
        match write {
            Write::MarkUnknown { node, .. }
            | Write::SwapTaints { node, .. }
            | Write::SetLabels { node, .. } => Self::Node(node.clone()),
            Write::MarkPodNotReady { pod, node, .. }
            | Write::MarkPodLost { pod, node, .. }
            | Write::DeletePod { pod, node, .. } => of_pod(pod, node),
            Write::RecordEvent(RecordedEvent { object: EventObject::Node(node, _), .. }) => {
                Self::Node(node.clone())
            }
            Write::RecordEvent(RecordedEvent { object: EventObject::Pod(pod), .. }) => {
                Self::Pod(pod.clone(), None)
            }
        }
    }

    /// Parses `node/a`, `pod/default/web-1`, or any other text; `None` if empty.
    fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        if let Some(node) = text.strip_prefix("node/") {
            return Some(Self::Node(node.into()));
        }
        let pod = text.strip_prefix("pod/").and_then(|pod| pod.split_once('/'));
        Some(match pod {
            Some((namespace, name)) => Self::Pod(Key::new(namespace, name), None),
            None => Self::Other(text.into()),
        })
    }

    /// Returns the kind of the subject in words: `node`, `pods`. `None` for parts of kordon.
    pub const fn word(&self, count: usize) -> Option<&'static str> {
        match (self, count) {
            (Self::Node(_), 0 | 1) => Some("node"),
            (Self::Node(_), _) => Some("nodes"),
            (Self::Pod(..), 0 | 1) => Some("pod"),
            (Self::Pod(..), _) => Some("pods"),
            (Self::Other(_), _) => None,
        }
    }

    /// Returns the node itself, or the node of the pod.
    pub const fn node(&self) -> Option<&NodeName> {
        match self {
            Self::Node(node) | Self::Pod(_, Some(node)) => Some(node),
            Self::Pod(_, None) | Self::Other(_) => None,
        }
    }

    fn is_alike(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Node(_), Self::Node(_)) | (Self::Pod(..), Self::Pod(..)) => true,
            (Self::Other(own), Self::Other(other)) => kind(own) == kind(other),
            (Self::Node(_) | Self::Pod(..) | Self::Other(_), _) => false,
        }
    }
}

/// Writes the name without the kind: `a-03`, `shop/web-1`.
impl fmt::Display for JournalSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(node) => write!(f, "{node}"),
            Self::Pod(pod, _) => write!(f, "{pod}"),
            Self::Other(other) => f.write_str(other),
        }
    }
}

impl JournalEntry {
    /// Creates an entry; `subject` is `node/a`, `pod/default/web-1`, another name, or empty.
    pub fn new(at: Timestamp, level: Severity, subject: &str, text: &str, why: Why) -> Self {
        Self {
            at,
            last: at,
            level,
            verb: String::new(),
            subjects: JournalSubject::parse(subject).into_iter().collect(),
            text: text.into(),
            detail: String::new(),
            act: String::new(),
            why,
            judgement: None,
            times: 1,
        }
    }

    /// Creates the entry of a notice. `title` is the subject of a notice about a whole operation.
    pub fn from_notice(notice: &OperationNotice, title: &str) -> Self {
        let OperationNotice { at, level, subject, text } = notice;
        let subject = if subject.is_empty() { title } else { subject };
        Self::new(*at, *level, subject, text, Why::default())
    }

    /// Replaces all subjects of the entry by one subject.
    #[must_use]
    pub fn about(self, subject: JournalSubject) -> Self {
        Self { subjects: vec![subject], ..self }
    }

    #[must_use]
    pub fn with_verb(self, verb: &str) -> Self {
        Self { verb: verb.into(), ..self }
    }

    /// Whether the entry says that the cluster's controller did not act as kordon's engine, its shadow, predicted.
    pub fn is_disagreement(&self) -> bool {
        self.verb.starts_with(MISSED) || self.text.ends_with(WOULD_EXPLAIN)
    }

    /// Returns the text of the entry without its prediction: `evicted pod shop/web-1 and 3 more: from node a`.
    pub fn words(&self) -> String {
        let subject = self.subject();
        let others = match self.others() {
            0 => String::new(),
            others => format!("and {others} more"),
        };
        let word = subject.and_then(|subject| subject.word(self.subjects.len())).unwrap_or_default();
        let name = subject.map(ToString::to_string).unwrap_or_default();
        let predicate = self.predicate();
        let parts = [self.verb.as_str(), word, &name, &others, &predicate];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let detail = if self.detail.is_empty() { String::new() } else { format!(": {}", self.detail) };
        format!("{}{detail}", parts.join(" "))
    }

    /// Returns the text after the subjects: `is gone` after one subject, `are gone` after several.
    pub fn predicate(&self) -> Cow<'_, str> {
        match self.text.strip_prefix("is ").filter(|_| self.others() > 0) {
            Some(rest) => Cow::Owned(format!("are {rest}")),
            None => Cow::Borrowed(&self.text),
        }
    }

    /// Returns the accuracy of the prediction as text: `predicted 6s before`, `not predicted`. `None` if the event
    /// could not be predicted or was not compared with forecasts.
    pub fn prediction(&self) -> Option<String> {
        let whole = |span: Span| Span::from_secs(span.as_secs());
        match self.judgement? {
            Judgement::Predicted { before } => Some(format!("predicted {} before", whole(before))),
            Judgement::Off(off) if off.is_negative() => {
                Some(format!("predicted for {} earlier", whole(-off)))
            }
            Judgement::Off(off) => Some(format!("predicted for {} later", whole(off))),
            Judgement::NotPredicted => Some("not predicted".into()),
            Judgement::Unforeseeable => None,
        }
    }

    /// Returns the first subject, which is the one that the text names.
    pub fn subject(&self) -> Option<&JournalSubject> {
        self.subjects.first()
    }

    /// Returns the number of the entry's subjects after the first.
    pub const fn others(&self) -> usize {
        self.subjects.len().saturating_sub(1)
    }

    /// Merges another entry about the same event into this entry.
    fn join(&mut self, other: Self) {
        self.last = other.last;
        if other.subjects == self.subjects {
            self.times += 1;
        } else {
            self.subjects.extend(other.subjects);
        }
        if self.detail != other.detail {
            self.detail.clear();
        }
        // The entry shows a wrong or missing prediction rather than a right one, because an error of a forecast is more
        // important than a success.
        if let Some(Judgement::Off(_) | Judgement::NotPredicted) = other.judgement {
            self.judgement = other.judgement;
        }
    }
}

impl SessionJournal {
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &JournalEntry> + ExactSizeIterator {
        self.entries.iter().map(|entry| &**entry)
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the entries with their numbers. The number of an entry never changes.
    pub fn numbered(&self) -> impl DoubleEndedIterator<Item = (usize, &JournalEntry)> + ExactSizeIterator {
        self.entries().enumerate().map(|(place, entry)| (self.gone + place, entry))
    }

    /// Returns the entries with their numbers, by the time of their last occurrence, newest first.
    pub fn newest(&self) -> Vec<(usize, &JournalEntry)> {
        let mut entries: Vec<_> = self.numbered().rev().collect();
        entries.sort_by_key(|(_, entry)| Reverse(entry.last));
        entries
    }

    /// Returns the entry with this number; `None` if it was dropped.
    pub fn entry(&self, number: usize) -> Option<&JournalEntry> {
        self.entries.get(number.checked_sub(self.gone)?).map(|entry| &**entry)
    }

    /// Returns the entries about a node and about pods on this node, oldest first.
    pub fn about_node(&self, node: &NodeName) -> impl DoubleEndedIterator<Item = &JournalEntry> {
        self.by_node.get(node).into_iter().flatten().filter_map(|number| self.entry(*number))
    }

    /// Returns the entries about a pod, oldest first.
    pub fn about_pod(&self, pod: &Key) -> impl DoubleEndedIterator<Item = &JournalEntry> {
        let is_it =
            move |subject: &JournalSubject| matches!(subject, JournalSubject::Pod(own, _) if own == pod);
        self.entries().filter(move |entry| entry.subjects.iter().any(is_it))
    }

    /// Revision of the journal's entries. It changes whenever they change.
    pub const fn revision(&self) -> u64 {
        self.revision.get()
    }

    /// Adds an offset to the revision of the entries, so that it differs from their revisions at other moments of a
    /// playback.
    pub(super) const fn set_apart(&mut self, moment: u64) {
        self.revision.set_apart(moment);
    }

    /// Returns the number that the next added entry gets.
    pub fn next_number(&self) -> usize {
        self.gone + self.entries.len()
    }

    /// Adds an entry. If a recent entry is about the same event, joins both.
    pub fn add(&mut self, entry: JournalEntry) {
        self.revision.count(true);
        let nodes: Vec<NodeName> = entry.subjects.iter().filter_map(JournalSubject::node).cloned().collect();
        let length = self.entries.len();
        let recent = length.saturating_sub(NEIGHBOURS)..length;
        let first = recent.start;
        let subjects = &self.recent_subjects;
        let same = recent.rev().find(|place| {
            folds(&self.entries[*place], &entry, |subject| subjects[*place - first].contains(subject))
        });
        let place = match same {
            Some(place) => {
                Arc::make_mut(&mut self.recent_subjects[place - first])
                    .extend(entry.subjects.iter().cloned());
                Arc::make_mut(&mut self.entries[place]).join(entry);
                place
            }
            None => {
                if length == CAPACITY {
                    self.drop_oldest();
                }
                if self.recent_subjects.len() == NEIGHBOURS {
                    self.recent_subjects.pop_front();
                }
                self.recent_subjects.push_back(Arc::new(entry.subjects.iter().cloned().collect()));
                self.entries.push_back(entry.into());
                self.entries.len() - 1
            }
        };
        for node in nodes {
            let numbers = self.by_node.entry(node).or_default();
            let number = self.gone + place;
            if let Err(place) = numbers.binary_search(&number) {
                numbers.insert(place, number);
            }
        }
    }

    fn drop_oldest(&mut self) {
        let Some(oldest) = self.entries.pop_front() else { return };
        for node in oldest.subjects.iter().filter_map(JournalSubject::node) {
            let Some(numbers) = self.by_node.get_mut(node) else { continue };
            numbers.retain(|number| *number != self.gone);
            if numbers.is_empty() {
                self.by_node.remove(node);
            }
        }
        self.gone += 1;
    }

    pub fn notice(&mut self, notice: Notice) {
        let Notice { at, level, text, why } = notice;
        let named = |before: &str| text.strip_prefix(before)?.split_once(' ');
        let entry = if let Some((node, rest)) = named("node ") {
            JournalEntry::new(at, level, &format!("node/{node}"), rest, why)
        } else if let Some((pod, _)) = named("eviction of pod ") {
            JournalEntry::new(at, level, &format!("pod/{pod}"), "", why)
                .with_verb("cancelled the eviction of")
        } else {
            JournalEntry::new(at, level, "", &text, why)
        };
        self.add(entry);
    }

    /// Adds a failure outside of the engine. `subject` may name a part of kordon (`watch/pods`).
    pub fn trouble(&mut self, now: Timestamp, subject: &str, text: &str) {
        self.add(JournalEntry::new(now, Severity::Warning, subject, text, Why::default()));
    }

    /// Adds the entries for a change of the cluster.
    pub(super) fn on_change(&mut self, change: &Applied, context: &HistoryContext) {
        for entry in self.expectations.on_change(change, context) {
            self.add(entry);
        }
    }

    /// Records a decision of kordon's engine on which the cluster's controller is expected to act.
    pub(super) fn on_decision(&mut self, effect: &Effect, cluster: &Cluster) {
        self.expectations.on_decision(effect, cluster, effect.at);
    }

    /// Adds entries for the decisions of kordon's engine on which the cluster's controller should have acted and did
    /// not.
    pub(super) fn on_timeout(&mut self, engine: &Engine, cluster: &Cluster, now: Timestamp) {
        for missed in self.expectations.missed(engine, cluster, now) {
            self.add(missed);
        }
    }

    /// Drops the decisions on which the controller was expected to act, because the watches were down.
    pub(super) fn on_watch_health(&mut self) {
        self.expectations.restart();
    }

    /// Adds an entry for the outcome of an effect. A Kubernetes Event that was created, or only recorded, has no entry,
    /// because it only describes another effect. If kordon only predicts the cluster's controller (is its shadow), its
    /// recorded decisions have no entries either: actual changes come from the watches, and missed decisions have
    /// entries of their own.
    pub fn outcome(&mut self, effect: &Effect, outcome: &Outcome, role: ControllerRole, now: Timestamp) {
        let write = &effect.write;
        let is_silent = match (write, outcome) {
            (Write::RecordEvent(_), Outcome::Recorded | Outcome::Done) => true,
            (_, Outcome::Recorded) => role == ControllerRole::Shadow,
            _ => false,
        };
        if is_silent {
            return;
        }
        let verb = write.verb();
        let (level, verb, detail) = match outcome {
            Outcome::Done => (Severity::Info, write.verb_past().to_owned(), String::new()),
            Outcome::Recorded => (Severity::Info, format!("would {verb}"), String::new()),
            Outcome::Conflict => {
                (Severity::Info, format!("did not {verb}"), "the object has changed: retrying".into())
            }
            Outcome::Gone => (Severity::Info, format!("did not {verb}"), "the object is gone".into()),
            Outcome::Failed(error) => (Severity::Error, format!("could not {verb}"), error.clone()),
        };
        let entry = JournalEntry::new(now, level, "", &write.rest(), effect.why.clone());
        self.add(JournalEntry { detail, ..entry.about(JournalSubject::from_write(write)).with_verb(&verb) });
    }
}

/// Whether the new entry joins a known entry. `has` looks up a subject in the known entry.
fn folds(known: &JournalEntry, new: &JournalEntry, has: impl Fn(&JournalSubject) -> bool) -> bool {
    let soon = new.at.since(known.last) <= JOINS;
    let alike = || match (known.subject(), new.subject()) {
        (Some(known), Some(new)) => known.is_alike(new),
        (Some(_), None) | (None, _) => false,
    };
    known.level == new.level
        && known.verb == new.verb
        && known.text == new.text
        && known.act == new.act
        && if known.subjects == new.subjects {
            true
        } else {
            soon && known.times == 1 && alike() && !new.subjects.iter().all(has)
        }
}

/// Returns the part before the slash: `watch` in `watch/pods`.
fn kind(subject: &str) -> &str {
    subject.split_once('/').map_or("", |(kind, _)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(secs: i64, subject: &str, text: &str) -> JournalEntry {
        JournalEntry::new(Timestamp::from_secs(secs), Severity::Info, subject, text, Why::default())
    }

    fn folded(entries: impl IntoIterator<Item = JournalEntry>) -> Vec<(String, usize, usize)> {
        let mut journal = SessionJournal::default();
        entries.into_iter().for_each(|entry| journal.add(entry));
        journal.entries().map(|entry| (named(entry), entry.others(), entry.times)).collect()
    }

    fn named(entry: &JournalEntry) -> String {
        entry.subject().map(ToString::to_string).unwrap_or_default()
    }

    #[test]
    fn pods_join_an_entry_once_however_many_have_joined_it() {
        let mut journal = SessionJournal::default();
        let add = |journal: &mut SessionJournal, number: usize| {
            journal.add(entry(1, &format!("pod/d/p{number}"), "became not ready"));
        };
        (0..300).for_each(|number| add(&mut journal, number));
        let copy = journal.clone();
        // The event of pod 7 starts a new entry, because the existing entry has this pod already. Pod 300 joins the new
        // entry.
        [7, 300].into_iter().for_each(|number| add(&mut journal, number));
        let subjects = |journal: &SessionJournal| -> Vec<usize> {
            journal.entries().map(|entry| entry.subjects.len()).collect()
        };
        assert_eq!((subjects(&copy), subjects(&journal)), (vec![300], vec![300, 2]));
    }

    #[test]
    fn repeats_are_counted_even_when_interleaved() {
        let entries =
            [entry(1, "", "lost"), entry(2, "", "other"), entry(60, "", "lost"), entry(61, "", "lost")];
        assert_eq!(folded(entries), [(String::new(), 0, 3), (String::new(), 0, 1)]);
    }

    #[test]
    fn one_thing_done_to_many_objects_at_once_is_one_entry() {
        let entries = (0..30).map(|n| entry(1, &format!("pod/default/web-{n}"), "mark not ready"));
        assert_eq!(folded(entries), [("default/web-0".into(), 29, 1)]);
    }

    #[test]
    fn what_two_people_do_at_once_are_two_entries() {
        let by = |secs: i64, node: &str, who: &str| {
            let cordoned = entry(secs, &format!("node/{node}"), "").with_verb("cordoned");
            JournalEntry { act: who.into(), ..cordoned }
        };
        let entries = [by(1, "a", "ana"), by(1, "b", "bob"), by(2, "c", "ana")];
        assert_eq!(folded(entries), [("a".into(), 1, 1), ("b".into(), 0, 1)]);
    }

    #[test]
    fn entries_are_listed_by_the_time_of_their_last_occurrence() {
        let mut journal = SessionJournal::default();
        let entries = [entry(1, "node/a", "x"), entry(2, "node/b", "y"), entry(4, "node/c", "x")];
        entries.into_iter().for_each(|entry| journal.add(entry));
        let listed: Vec<(usize, Timestamp)> =
            journal.newest().iter().map(|(number, entry)| (*number, entry.last)).collect();
        let expected = [(0, Timestamp::from_secs(4)), (1, Timestamp::from_secs(2))];
        assert_eq!(listed, expected, "node c has joined the first entry");
    }

    #[test]
    fn the_same_done_later_to_another_object_is_an_entry_of_its_own() {
        assert_eq!(folded([entry(1, "node/a", "taint"), entry(11, "node/b", "taint")]).len(), 2);
        assert_eq!(folded([entry(1, "node/a", "x"), entry(1, "pod/b/b", "x")]).len(), 2, "another kind");
    }

    #[test]
    fn notices_of_many_nodes_at_once_are_one_entry() {
        let mut journal = SessionJournal::default();
        for text in
            ["node a is silent", "node b is silent", "eviction of pod x/y cancelled", "zone z is Normal"]
        {
            let notice = Notice {
                at: Timestamp::EPOCH,
                level: Severity::Info,
                text: text.into(),
                why: Why::default(),
            };
            journal.notice(notice);
        }
        let entries: Vec<_> = journal
            .entries()
            .map(|entry| (&*entry.verb, named(entry), entry.others(), &*entry.text))
            .collect();
        let expected = [
            ("", "a".to_owned(), 1, "is silent"),
            ("cancelled the eviction of", "x/y".to_owned(), 0, ""),
            ("", String::new(), 0, "zone z is Normal"),
        ];
        assert_eq!(entries, expected);
        let words: Vec<String> = journal.entries().map(JournalEntry::words).collect();
        let expected =
            ["nodes a and 1 more are silent", "cancelled the eviction of pod x/y", "zone z is Normal"];
        assert_eq!(words, expected);
    }

    #[test]
    fn the_oldest_entries_go_first() {
        let mut journal = SessionJournal::default();
        for n in 0..=CAPACITY {
            journal.add(entry(10 * n as i64, "", &n.to_string()));
        }
        assert_eq!(journal.len(), CAPACITY);
        assert_eq!(journal.entry(0), None);
        assert_eq!(journal.entry(1).map(|entry| entry.text.as_str()), Some("1"));
        assert_eq!(journal.numbered().next_back().map(|(number, _)| number), Some(CAPACITY));
    }

    #[test]
    fn entries_are_found_by_node_and_by_pod_until_they_are_dropped() {
        let mut journal = SessionJournal::default();
        let evicted = |secs: i64, pod: &str, node: &str| {
            let subject = JournalSubject::Pod(Key::new("shop", pod), Some(node.into()));
            entry(secs, "", "").with_verb("evicted").about(subject)
        };
        journal.add(entry(1, "node/a", "became Unknown"));
        journal.add(entry(2, "node/b", "became Unknown"));
        journal.add(evicted(100, "web-1", "a"));
        journal.add(evicted(101, "web-2", "b"));
        journal.add(entry(200, "node/b", "became Ready"));
        let of = |journal: &SessionJournal, node: &str| {
            journal
                .about_node(&node.into())
                .map(|entry| format!("{}{}", entry.verb, entry.text))
                .collect::<Vec<_>>()
        };
        assert_eq!(of(&journal, "a"), ["became Unknown", "evicted"]);
        assert_eq!(of(&journal, "b"), ["became Unknown", "evicted", "became Ready"]);
        assert_eq!(journal.about_pod(&Key::new("shop", "web-2")).count(), 1);
        assert_eq!(journal.about_pod(&Key::new("shop", "web-3")).count(), 0);
        for n in 0..CAPACITY - 1 {
            journal.add(entry(300 + 10 * n as i64, "", &n.to_string()));
        }
        assert_eq!(of(&journal, "a"), Vec::<String>::new());
        assert_eq!(of(&journal, "b"), ["became Ready"]);
    }
}
