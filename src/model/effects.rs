//! Effects: the engine's decisions, until the outcome of their execution is known.

use std::collections::{BTreeMap, VecDeque};

use super::{
    ControllerRole,
    held_evictions::{HeldEvictions, PodSight},
};
use kordon_core::{
    cluster::{Cluster, FeedKind, ZoneKey},
    engine::{Effect, EffectId, Outcome},
};
use kordon_time::Timestamp;

/// Effects (decisions of the engine) without an outcome. Each is in one place: held back, waiting to be executed, or
/// being executed.
#[derive(Clone, Debug)]
pub struct Effects {
    role: ControllerRole,
    /// Evictions that are held back. Only a controller holds evictions back; a shadow, which executes nothing, has
    /// none.
    held: HeldEvictions,
    /// Effects that wait to be taken for execution.
    outbox: VecDeque<Effect>,
    /// Effects that were taken for execution and have no outcome yet.
    in_flight: BTreeMap<EffectId, Effect>,
    /// Number of outcomes by kind of effect and kind of outcome.
    counts: BTreeMap<(&'static str, &'static str), u64>,
}

/// What happens with an effect after its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterOutcome {
    /// The outcome is final, and is passed to the engine.
    Final,
    /// The effect is executed again after a delay.
    Retried,
}

impl Effects {
    pub fn new(role: ControllerRole) -> Self {
        Self {
            role,
            held: HeldEvictions::default(),
            outbox: VecDeque::new(),
            in_flight: BTreeMap::new(),
            counts: BTreeMap::new(),
        }
    }

    pub const fn role(&self) -> ControllerRole {
        self.role
    }

    /// Sets the maximum number of pods that the controller evicts in each zone per minute; `None` for no limit.
    pub fn limit_evictions(&mut self, evictions_per_minute: Option<usize>) {
        self.held.set_limit(evictions_per_minute);
    }

    /// The evictions that the controller holds back.
    pub const fn held(&self) -> &HeldEvictions {
        &self.held
    }

    /// Number of outcomes by kind of effect and kind of outcome.
    pub const fn outcome_counts(&self) -> &BTreeMap<(&'static str, &'static str), u64> {
        &self.counts
    }

    /// Number of effects without an outcome, apart from those that are held back.
    pub fn unfinished(&self) -> usize {
        self.in_flight.len() + self.outbox.len()
    }

    /// Whether an effect waits to be taken for execution.
    pub fn has_next(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Takes the next effect to execute; its outcome is passed to [`Model::on_outcome`](super::Model::on_outcome).
    pub fn take_next(&mut self) -> Option<Effect> {
        let effect = self.outbox.pop_front()?;
        self.in_flight.insert(effect.id, effect.clone());
        Some(effect)
    }

    /// Adds a decision of the engine. A controller's evictions are held back until they are released.
    pub(super) fn add(&mut self, effect: Effect) {
        match self.role {
            ControllerRole::Controller => {
                self.outbox.extend(self.held.take(effect).err().map(|effect| *effect));
            }
            ControllerRole::Shadow | ControllerRole::Observer => self.outbox.push_back(effect),
        }
    }

    /// Removes an effect that was taken for execution and now has an outcome.
    pub(super) fn finish(&mut self, id: EffectId) -> Option<Effect> {
        self.in_flight.remove(&id)
    }

    /// Counts the outcome of an effect. A failed eviction of a controller is retried. An eviction with a conflict is
    /// retried too, because the conflict may only mean that a watch lags.
    pub(super) fn on_outcome(
        &mut self,
        id: EffectId,
        effect: Option<Effect>,
        outcome: &Outcome,
        now: Timestamp,
    ) -> AfterOutcome {
        if let Some(effect) = &effect {
            *self.counts.entry((effect.write.kind(), outcome.word())).or_default() += 1;
        }
        if !matches!(outcome, Outcome::Failed(_) | Outcome::Conflict) {
            self.held.on_done(id);
            return AfterOutcome::Final;
        }
        if self.role == ControllerRole::Controller && self.held.retry(effect, now) {
            AfterOutcome::Retried
        } else {
            AfterOutcome::Final
        }
    }

    /// Removes and returns the held evictions that are no longer needed.
    pub(super) fn withdraw(&mut self, cluster: &Cluster) -> Vec<Effect> {
        self.held.withdraw(cluster)
    }

    /// Releases the held evictions to execute now. Returns the zones that have just reached their limit and still have
    /// held evictions.
    pub(super) fn release(&mut self, cluster: &Cluster, now: Timestamp) -> Vec<ZoneKey> {
        let sight = match cluster.gap(FeedKind::Pods) {
            None => PodSight::Live,
            Some(_) => PodSight::Stale,
        };
        let (released, full) = self.held.release(cluster, sight, now);
        self.outbox.extend(released);
        full
    }

    /// Time at which the next held eviction can be released; `None` if there is none.
    pub(super) fn poll_timeout(&self, cluster: &Cluster) -> Option<Timestamp> {
        self.held.next(cluster)
    }
}
