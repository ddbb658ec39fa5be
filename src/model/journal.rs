//! The journal of the session: what was decided, what was done and what went wrong, newest last.

use std::collections::VecDeque;

use super::ControllerRole;
use crate::{
    engine::{Effect, Notice, Outcome, RecordedEvent, Severity, Why, Write},
    time::{Span, Timestamp},
};

/// Entries kept; the oldest go first.
pub const CAPACITY: usize = 2000;

/// Within this time, the same text about another object joins the entry that has it.
const JOINS: Span = Span::from_secs(2);

/// How many of the newest entries may fold a repeat, so that interleaved repeats fold too.
const NEIGHBOURS: usize = 6;

/// The entries, newest last.
#[derive(Clone, Debug, Default)]
pub struct SessionJournal {
    entries: VecDeque<JournalEntry>,
    /// How many entries were dropped: the number of the oldest one kept.
    gone: usize,
}

/// One thing that happened, as often as it did.
#[derive(Clone, Debug, PartialEq)]
pub struct JournalEntry {
    /// When it first happened, and when last.
    pub at: Timestamp,
    pub last: Timestamp,
    pub level: Severity,
    /// The object it is about, in kubectl's notation; empty if it is about none.
    pub subject: String,
    /// How many further objects the same happened to.
    pub others: usize,
    pub text: String,
    pub why: Why,
    /// How often the same happened to the same object.
    pub times: usize,
}

impl JournalEntry {
    pub fn new(at: Timestamp, level: Severity, subject: &str, text: &str, why: Why) -> Self {
        Self { at, last: at, level, subject: subject.into(), others: 0, text: text.into(), why, times: 1 }
    }
}

impl SessionJournal {
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &JournalEntry> + ExactSizeIterator {
        self.entries.iter()
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries with their numbers, which they keep.
    pub fn numbered(&self) -> impl DoubleEndedIterator<Item = (usize, &JournalEntry)> + ExactSizeIterator {
        self.entries.iter().enumerate().map(|(place, entry)| (self.gone + place, entry))
    }

    /// The entry with this number; none if it was dropped.
    pub fn entry(&self, number: usize) -> Option<&JournalEntry> {
        self.entries.get(number.checked_sub(self.gone)?)
    }

    /// Adds an entry, or counts it on one that says the same.
    pub fn add(&mut self, entry: JournalEntry) {
        let same = self.entries.iter_mut().rev().take(NEIGHBOURS).find(|known| folds(known, &entry));
        if let Some(known) = same {
            known.last = entry.at;
            if known.subject == entry.subject {
                known.times += 1;
            } else {
                known.others += 1;
            }
            return;
        }
        if self.entries.len() == CAPACITY {
            self.entries.pop_front();
            self.gone += 1;
        }
        self.entries.push_back(entry);
    }

    pub fn notice(&mut self, notice: Notice) {
        let (subject, text) = subject_of(&notice.text);
        self.add(JournalEntry::new(notice.at, notice.level, &subject, &text, notice.why));
    }

    /// Something that went wrong outside of the engine; `subject` may name a part of kordon (`watch/pods`).
    pub fn trouble(&mut self, now: Timestamp, subject: &str, text: &str) {
        self.add(JournalEntry::new(now, Severity::Warning, subject, text, Why::default()));
    }

    /// The outcome of an effect. Events are left out: they only repeat in words what another effect does.
    pub fn outcome(&mut self, effect: &Effect, outcome: &Outcome, role: ControllerRole, now: Timestamp) {
        let summary = match (&effect.write, outcome) {
            (Write::RecordEvent(_), Outcome::Recorded | Outcome::Done) => return,
            (Write::RecordEvent(RecordedEvent { reason, .. }), _) => format!("event {reason}"),
            (write, _) => write.summary(),
        };
        let (level, text) = match outcome {
            Outcome::Done => (Severity::Info, summary),
            // The cluster's own controller is expected to write it about now.
            Outcome::Recorded if role == ControllerRole::Shadow => {
                (Severity::Info, format!("expected: {summary}"))
            }
            Outcome::Recorded => (Severity::Info, format!("would {summary}")),
            Outcome::Conflict => (Severity::Info, format!("{summary}: conflict, the object has changed")),
            Outcome::Gone => (Severity::Info, format!("{summary}: the object does not exist any more")),
            Outcome::Failed(error) => (Severity::Error, format!("{summary}: failed: {error}")),
        };
        self.add(JournalEntry::new(now, level, &effect.write.object(), &text, effect.why.clone()));
    }
}

/// The object that a notice names, and the rest of the text: the same notice about many objects becomes one entry.
fn subject_of(text: &str) -> (String, String) {
    let named = |kind: &str, before: &str, text: &str| {
        let (name, rest) = text.strip_prefix(before)?.split_once(' ')?;
        Some((format!("{kind}/{name}"), rest.to_owned()))
    };
    let eviction = || {
        let (pod, rest) = named("pod", "eviction of pod ", text)?;
        Some((pod, format!("eviction {rest}")))
    };
    named("node", "node ", text).or_else(eviction).unwrap_or_else(|| (String::new(), text.to_owned()))
}

fn folds(known: &JournalEntry, new: &JournalEntry) -> bool {
    let soon = new.at.since(known.last) <= JOINS;
    let same_kind = || kind(&known.subject) == kind(&new.subject) && known.times == 1;
    known.level == new.level
        && known.text == new.text
        && if known.subject == new.subject { known.others == 0 } else { soon && same_kind() }
}

/// `pod` of `pod/default/web-1`.
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
        journal.entries().map(|entry| (entry.subject.clone(), entry.others, entry.times)).collect()
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
        assert_eq!(folded(entries), [("pod/default/web-0".into(), 29, 1)]);
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
        let entries: Vec<_> =
            journal.entries().map(|entry| (&*entry.subject, entry.others, &*entry.text)).collect();
        let expected =
            [("node/a", 1, "is silent"), ("pod/x/y", 0, "eviction cancelled"), ("", 0, "zone z is Normal")];
        assert_eq!(entries, expected);
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
}
