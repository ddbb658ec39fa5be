//! The effects that the engine requested: queued, in flight, or only recorded.

use std::{
    collections::{BTreeMap, VecDeque, btree_map::Entry},
    sync::Arc,
};

use super::{
    effect::{Deletion, Effect, EffectId, Notice, RecordedEvent, Severity, Write},
    why::Why,
};
use crate::cluster::{Key, NodeName, TaintEffect, Version, cow_map::CowMap};
use kordon_time::Timestamp;

/// Queues effects and notices, and remembers requests so that none is made twice.
#[derive(Clone, Debug, Default)]
pub struct Outbox {
    last: EffectId,
    effects: VecDeque<Arc<Effect>>,
    notices: VecDeque<Notice>,
    in_flight: BTreeMap<EffectId, Arc<Effect>>,
    /// The effects in flight, by subject.
    busy: BTreeMap<EffectSubject, EffectId>,
    /// The effects that were recorded in a dry run instead of being sent. An outage of a zone records an effect for
    /// each of tens of thousands of pods, so copies of the outbox share the map.
    recorded: CowMap<EffectSubject, Recorded>,
    audience: Audience,
}

/// An effect that was recorded in a dry run instead of being sent.
#[derive(Clone, Debug)]
struct Recorded {
    /// Version of the object on which the engine based the effect.
    basis: Version,
    /// The effect, kept only if it changes NoExecute taints.
    effect: Option<Effect>,
}

/// Who receives effects and notices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Audience {
    /// All effects are sent to an executor, and all notices to users.
    #[default]
    World,
    /// A forecast: only effects that later decisions depend on are sent.
    Forecast,
}

/// Subject of an effect. Two effects with the same subject are the same request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EffectSubject {
    Unknown(NodeName),
    Taints(NodeName, TaintEffect),
    Labels(NodeName),
    PodNotReady(Key),
    PodLost(Key),
    PodDeleted(Key),
    /// Force deletion of a pod. It has its own subject, because a plain deletion may have been requested before.
    PodCollected(Key),
}

impl EffectSubject {
    /// The subject of a write; none for an event.
    fn from_write(write: &Write) -> Option<Self> {
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

/// Returns the version of the object on which a write was based. Returns the default for events, and for deletions,
/// which check the uid instead.
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
    /// Requests a write, unless a write with the same subject is in flight, or a dry run has recorded one for the same
    /// version of the object. Returns whether this call requested the write.
    pub fn propose(&mut self, write: Write, why: Why, now: Timestamp) -> bool {
        let id = EffectId(self.last.0 + 1);
        if let Some(subject) = EffectSubject::from_write(&write) {
            if self.recorded.get(&subject).is_some_and(|recorded| recorded.basis == basis(&write)) {
                return false;
            }
            let Entry::Vacant(place) = self.busy.entry(subject) else { return false };
            self.recorded.remove(place.key());
            place.insert(id);
        }
        self.last = id;
        let effect = Arc::new(Effect { id, at: now, write, why });
        self.in_flight.insert(id, effect.clone());
        self.effects.push_back(effect);
        true
    }

    /// Requests an event, unless this is the outbox of a forecast.
    pub fn propose_event(&mut self, event: impl FnOnce() -> (RecordedEvent, Why), now: Timestamp) {
        if self.sends_all() {
            let (event, why) = event();
            self.propose(Write::RecordEvent(event), why, now);
        }
    }

    pub fn notice(&mut self, level: Severity, text: String, why: Why, now: Timestamp) {
        if self.sends_all() {
            self.notices.push_back(Notice { at: now, level, text, why });
        }
    }

    /// Whether the outbox sends effects that no later decision depends on: events, notices, NoSchedule taints, labels
    /// and the readiness of pods. In a forecast they would be most of the work.
    pub fn sends_all(&self) -> bool {
        self.audience == Audience::World
    }

    /// Sends a warning that the settings do not fit the shadowed controller; does nothing if `warning` is `None`.
    pub fn warn(&mut self, warning: Option<String>, now: Timestamp) {
        if let Some(text) = warning {
            self.notice(Severity::Warning, text, Why::default(), now);
        }
    }

    /// Whether an effect with this subject is in flight.
    pub fn is_busy(&self, subject: &EffectSubject) -> bool {
        self.busy.contains_key(subject)
    }

    /// Whether any effect was recorded in a dry run instead of being sent.
    pub fn has_recorded(&self) -> bool {
        !self.recorded.is_empty()
    }

    /// Whether a change of the node's NoExecute taints was recorded in a dry run instead of being sent.
    pub fn has_recorded_no_execute(&self, node: &NodeName) -> bool {
        self.has_recorded() && self.is_recorded(&EffectSubject::Taints(node.clone(), TaintEffect::NoExecute))
    }

    /// Whether an effect with this subject was recorded in a dry run instead of being sent.
    pub fn is_recorded(&self, subject: &EffectSubject) -> bool {
        self.recorded.contains_key(subject)
    }

    /// Forgets an effect that was recorded in a dry run, because the effect was observed or is no longer needed.
    pub fn forget(&mut self, subject: &EffectSubject) {
        self.recorded.remove(subject);
    }

    /// Forgets the recorded deletion of a pod (dry run), because the deletion was observed or is no longer needed.
    pub fn forget_deletion(&mut self, pod: &Key) {
        if self.has_recorded() {
            self.forget(&EffectSubject::PodDeleted(pod.clone()));
        }
    }

    /// Forgets all recorded effects (dry run) on a pod that is gone.
    pub fn forget_pod(&mut self, pod: &Key) {
        if self.recorded.is_empty() {
            return;
        }
        let subjects = [
            EffectSubject::PodNotReady,
            EffectSubject::PodLost,
            EffectSubject::PodDeleted,
            EffectSubject::PodCollected,
        ];
        for subject in subjects {
            self.recorded.remove(&subject(pod.clone()));
        }
    }

    /// Removes an effect from those in flight, because its outcome has come back. Returns none if the id is unknown.
    pub fn complete(&mut self, id: EffectId) -> Option<Arc<Effect>> {
        let effect = self.in_flight.remove(&id)?;
        if let Some(subject) = EffectSubject::from_write(&effect.write) {
            self.busy.remove(&subject);
        }
        Some(effect)
    }

    /// Remembers an effect that was recorded in a dry run instead of being sent.
    pub fn record(&mut self, effect: &Effect) {
        let Some(subject) = EffectSubject::from_write(&effect.write) else { return };
        let is_no_execute = matches!(subject, EffectSubject::Taints(_, TaintEffect::NoExecute));
        let kept = is_no_execute.then(|| effect.clone());
        self.recorded.insert(subject, Recorded { basis: basis(&effect.write), effect: kept });
    }

    /// The changes of NoExecute taints that were recorded in a dry run, and that the shadowed controller should have
    /// made.
    pub fn overdue(&self) -> impl Iterator<Item = &Effect> {
        self.recorded.values().filter_map(|recorded| recorded.effect.as_ref())
    }

    pub fn poll_effect(&mut self) -> Option<Arc<Effect>> {
        self.effects.pop_front()
    }

    pub fn poll_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// Returns an outbox for a forecast's copy of the engine, and the writes in flight, which the forecast assumes
    /// done. The new outbox continues the effect ids.
    pub fn forecast_copy(&self) -> (Self, Vec<Write>) {
        let in_flight = self.in_flight.values().map(|effect| effect.write.clone()).collect();
        (Self { last: self.last, audience: Audience::Forecast, ..Self::default() }, in_flight)
    }
}
