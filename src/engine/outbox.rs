//! What the engine has asked for: effects that wait to be polled, are under way, or were only recorded.

use std::collections::{BTreeMap, VecDeque, btree_map::Entry};

use super::{
    effect::{Deletion, Effect, EffectId, Notice, RecordedEvent, Severity, Write},
    why::Why,
};
use crate::{
    cluster::{Key, NodeName, TaintEffect, Version},
    time::Timestamp,
};

/// Effects and notices on their way out; remembers what was asked for, so that nothing is asked for twice.
#[derive(Clone, Debug, Default)]
pub struct Outbox {
    last: EffectId,
    effects: VecDeque<Effect>,
    notices: VecDeque<Notice>,
    in_flight: BTreeMap<EffectId, Effect>,
    /// What is in flight, by what it is about.
    busy: BTreeMap<EffectSubject, EffectId>,
    /// What was recorded and not carried out.
    recorded: BTreeMap<EffectSubject, Recorded>,
    audience: Audience,
}

/// An effect that was recorded and not carried out.
#[derive(Clone, Debug)]
struct Recorded {
    /// The version of the object that it was decided on.
    basis: Version,
    /// The effect itself, where more depends on it than that it is not asked for twice.
    effect: Option<Effect>,
}

/// Who takes in what is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Audience {
    /// An executor, and people: everything is told.
    #[default]
    World,
    /// A forecast: only what later decisions depend on is told.
    Forecast,
}

/// What an effect is about. Two effects about one matter are the same request made twice.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EffectSubject {
    Unknown(NodeName),
    Taints(NodeName, TaintEffect),
    Labels(NodeName),
    PodNotReady(Key),
    PodLost(Key),
    PodDeleted(Key),
    /// Removed by force: more than a deletion that may have been asked for before.
    PodCollected(Key),
}

impl EffectSubject {
    /// What a write is about; an event is about nothing that could be asked for twice.
    fn of(write: &Write) -> Option<Self> {
        Some(match write {
            Write::MarkUnknown { node, .. } => Self::Unknown(node.clone()),
            Write::SwapTaints { node, add, remove, .. } => {
                let effect = add.iter().chain(remove).map(|taint| taint.effect).next().unwrap_or_default();
                Self::Taints(node.clone(), effect)
            }
            Write::SetLabels { node, .. } => Self::Labels(node.clone()),
            Write::MarkPodNotReady { pod, .. } => Self::PodNotReady(pod.clone()),
            Write::MarkPodLost { pod, .. } => Self::PodLost(pod.clone()),
            Write::DeletePod { pod, deletion, .. } => match deletion {
                Deletion::ByTaint { .. } | Deletion::WithNode { .. } => Self::PodDeleted(pod.clone()),
                Deletion::Collected { .. } => Self::PodCollected(pod.clone()),
            },
            Write::RecordEvent(_) => return None,
        })
    }
}

/// The version of the object that a write was decided on; deletions go by uid and have none.
fn basis(write: &Write) -> Version {
    match write {
        Write::MarkUnknown { version, .. }
        | Write::SwapTaints { version, .. }
        | Write::SetLabels { version, .. }
        | Write::MarkPodNotReady { version, .. }
        | Write::MarkPodLost { version, .. } => *version,
        Write::DeletePod { .. } | Write::RecordEvent(_) => Version::default(),
    }
}

impl Outbox {
    /// Asks for a write, unless the same is under way or was recorded for the very same object. Tells whether it
    /// was asked for by this call.
    pub fn propose(&mut self, write: Write, why: Why, now: Timestamp) -> bool {
        let id = EffectId(self.last.0 + 1);
        if let Some(matter) = EffectSubject::of(&write) {
            if self.recorded.get(&matter).is_some_and(|recorded| recorded.basis == basis(&write)) {
                return false;
            }
            let Entry::Vacant(place) = self.busy.entry(matter) else { return false };
            self.recorded.remove(place.key());
            place.insert(id);
        }
        self.last = id;
        let effect = Effect { id, at: now, write, why };
        self.in_flight.insert(id, effect.clone());
        self.effects.push_back(effect);
        true
    }

    /// Asks for an event to be recorded.
    pub fn propose_event(&mut self, event: impl FnOnce() -> (RecordedEvent, Why), now: Timestamp) {
        if self.tells_all() {
            let (event, why) = event();
            self.propose(Write::RecordEvent(event), why, now);
        }
    }

    pub fn notice(&mut self, level: Severity, text: String, why: Why, now: Timestamp) {
        if self.tells_all() {
            self.notices.push_back(Notice { at: now, level, text, why });
        }
    }

    /// Whether also that is asked for on which nothing depends that the engine decides later: events, notices, and
    /// the readiness of pods. In a forecast it is not, for there it would be most of the work.
    pub fn tells_all(&self) -> bool {
        self.audience == Audience::World
    }

    /// Tells a doubt about the settings, where there is one.
    pub fn doubt(&mut self, doubt: Option<String>, now: Timestamp) {
        if let Some(text) = doubt {
            self.notice(Severity::Warning, text, Why::default(), now);
        }
    }

    /// Whether something about the matter is under way.
    pub fn is_busy(&self, matter: &EffectSubject) -> bool {
        self.busy.contains_key(matter)
    }

    /// Whether anything was recorded and not carried out.
    pub fn has_recorded(&self) -> bool {
        !self.recorded.is_empty()
    }

    /// Whether a change of the node's NoExecute taints was recorded and not carried out.
    pub fn has_recorded_no_execute(&self, node: &NodeName) -> bool {
        self.has_recorded() && self.is_recorded(&EffectSubject::Taints(node.clone(), TaintEffect::NoExecute))
    }

    /// Whether the matter was recorded and not carried out.
    pub fn is_recorded(&self, matter: &EffectSubject) -> bool {
        self.recorded.contains_key(matter)
    }

    /// The matter has been seen to happen, or has lost its reason.
    pub fn settle(&mut self, matter: &EffectSubject) {
        self.recorded.remove(matter);
    }

    /// An effect has come back: hands over what it was. None where the id is not ours.
    pub fn returned(&mut self, id: EffectId) -> Option<Effect> {
        let effect = self.in_flight.remove(&id)?;
        if let Some(matter) = EffectSubject::of(&effect.write) {
            self.busy.remove(&matter);
        }
        Some(effect)
    }

    /// Remembers that an effect was recorded only.
    pub fn record(&mut self, effect: &Effect) {
        let Some(matter) = EffectSubject::of(&effect.write) else { return };
        let is_no_execute = matches!(matter, EffectSubject::Taints(_, TaintEffect::NoExecute));
        let kept = is_no_execute.then(|| effect.clone());
        self.recorded.insert(matter, Recorded { basis: basis(&effect.write), effect: kept });
    }

    /// The changes of NoExecute taints that were recorded and not carried out: whoever is shadowed should have made
    /// them by now.
    pub fn overdue(&self) -> impl Iterator<Item = &Effect> {
        self.recorded.values().filter_map(|recorded| recorded.effect.as_ref())
    }

    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    pub fn poll_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// An outbox that goes on counting and has asked for nothing: for a copy of the engine that runs ahead. What is
    /// under way comes with it, to be taken as done.
    pub fn run_ahead(&self) -> (Self, Vec<Write>) {
        let in_flight = self.in_flight.values().map(|effect| effect.write.clone()).collect();
        (Self { last: self.last, audience: Audience::Forecast, ..Self::default() }, in_flight)
    }
}
