//! State at a moment of a recording: the model, and the counterfactual, which translates recorded changes for other
//! settings of the controller.

use crate::{
    k8s::feed::{FeedEvent, FeedState},
    model::{ConnectionInfo, ControllerRole, Model, ModelOptions},
    recording::RecordingStart,
};
use kordon_core::{
    cluster::{Change, FeedKind},
    counterfactual::{Alternative, Counterfactual},
    engine::{Outcome, Settings},
};
use kordon_time::Timestamp;

/// State at a moment of a recording.
#[derive(Clone, Debug)]
pub struct ReplayState {
    pub model: Model,
    /// Counterfactual that translates recorded changes for a model with other settings; none if the model has the
    /// recorded settings.
    pub counterfactual: Option<Counterfactual>,
}

impl ReplayState {
    /// Returns the state before the first message.
    pub fn new(
        start: &RecordingStart,
        settings: &Settings,
        alternative: Option<&Alternative>,
        at: Timestamp,
    ) -> Self {
        let counterfactual = alternative.map(Counterfactual::new);
        Self { model: model(start, settings, at), counterfactual }
    }

    pub fn on_event(&mut self, event: FeedEvent, at: Timestamp) {
        match (event, &mut self.counterfactual) {
            (FeedEvent::Changes(changes), Some(_)) => {
                changes.into_iter().for_each(|change| self.on_recorded_change(change, at));
            }
            (event, counterfactual) => {
                if let (Some(counterfactual), FeedEvent::Health(kind, health)) = (counterfactual, &event)
                    && self.model.feeds.state(*kind) == Some(&FeedState::Live)
                    && health.state != FeedState::Live
                    && *kind == FeedKind::Nodes
                {
                    counterfactual.on_gap(at);
                }
                self.model.on_watch_event(event, at);
                self.answer_effects(at);
            }
        }
    }

    /// Translates a recorded change for a cluster whose controller has other settings, and applies the translated
    /// change.
    fn on_recorded_change(&mut self, change: Change, at: Timestamp) {
        let Some(counterfactual) = &mut self.counterfactual else { return };
        let mut changes = counterfactual.on_change(change, &self.model.cluster, at);
        while !changes.is_empty() {
            self.model.on_watch_event(FeedEvent::Changes(changes), at);
            self.answer_effects(at);
            changes = self.settled();
        }
    }

    fn settled(&mut self) -> Vec<Change> {
        let Self { model, counterfactual } = self;
        counterfactual.as_mut().map_or_else(Vec::new, |layer| layer.settle(&model.cluster))
    }

    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let ends = self.counterfactual.as_ref().and_then(Counterfactual::poll_timeout);
        [self.model.poll_timeout(), ends].into_iter().flatten().min()
    }

    pub fn on_timeout(&mut self, at: Timestamp) {
        self.model.on_timeout(at);
        self.answer_effects(at);
        let Self { model, counterfactual } = self;
        let Some(layer) = counterfactual else { return };
        let mut changes = layer.on_timeout(&model.cluster, at);
        changes.extend(self.settled());
        while !changes.is_empty() {
            self.model.apply(changes, at);
            self.answer_effects(at);
            changes = self.settled();
        }
    }

    /// Gives each write that the engine predicts (an effect) the outcome [`Outcome::Recorded`]. With other settings,
    /// also applies the write to the model at once, as if the cluster's controller had made it.
    fn answer_effects(&mut self, at: Timestamp) {
        while let Some(effect) = self.model.effects.take_next() {
            self.model.on_outcome(effect.id, Outcome::Recorded, at);
            if let Some(layer) = &mut self.counterfactual {
                layer.on_write(&effect.write, &self.model.cluster, at);
                self.model.apply_write(&effect.write, at);
            }
        }
    }
}

/// Returns a model that has received no message yet.
fn model(start: &RecordingStart, settings: &Settings, at: Timestamp) -> Model {
    let connection = ConnectionInfo {
        context: start.context.clone(),
        server: start.server.clone(),
        identity: Some(start.identity.clone()).filter(|user| !user.is_empty()),
        server_version: Some(start.server_version.clone()).filter(|release| !release.is_empty()),
        objects_at: None,
    };
    let options = ModelOptions { connection, settings: settings.clone(), role: ControllerRole::Shadow };
    Model::new(options, at)
}
