//! Explains why an event was not predicted, or why a predicted event did not happen: by actions of the test that no
//! forecast could include, and by randomness in upstream.

use kordon_core::{
    engine::{Cause, Why},
    forecast::{ControllerEvent, EventKind, Forecast, accuracy::NOTICE},
};
use kordon_time::{Span, Timestamp};

use super::{ForecastChecker, THAT_MOMENT, is_within, predicted};
use crate::harness::{
    incident_player::CompletedAction,
    plane::LEASE_DURATION,
    script::{EVERYWHERE, IncidentAction, zone_of},
};

impl ForecastChecker {
    /// Explains an event that was not predicted correctly. The explanation is an action or another event that affects
    /// `event` and came after the forecast, or too shortly before the forecast to be included.
    ///
    /// If a later forecast includes this action, that forecast has to predict the event correctly. Otherwise the action
    /// explains nothing.
    pub(super) fn explain(&self, forecast: &Forecast, event: &ControllerEvent) -> Option<String> {
        let chance = match event.kind {
            EventKind::NoExecute if self.is_said_to_be_chance(forecast, event) => Some(BY_CHANCE),
            EventKind::NoExecute
                if self.is_disrupted(event, event.at - self.tolerance, self.counts_until(event)) =>
            {
                Some(SLIPPED)
            }
            _ if event.kind != EventKind::Unknown && self.is_blackout_about(event) => Some(BLACKOUT),
            EventKind::NoExecute if self.find(forecast, event).is_none_or(|(at, _)| at < event.at) => {
                self.lost_token(event)
            }
            _ => None,
        };
        if let Some(chance) = chance {
            return Some(chance.into());
        }
        let action = self.action(forecast.made, event, event.at);
        let by_deed =
            action.map(|action| (action.finished + unknown_for(&action.action), reason(action, event)));
        let (known, reason) = by_deed.or_else(|| {
            let made = forecast.made - unknown_for(&IncidentAction::Taint);
            let taint = self.taint_since(made, event).filter(|_| follows_taint(event.kind))?;
            let reason = self.why_this_node(forecast, taint)?;
            Some((taint.at + unknown_for(&IncidentAction::Taint), reason))
        })?;
        if let Some(forecast) = self.before(event.at).filter(|forecast| forecast.made >= known) {
            let (at, why) = self.find(forecast, event)?;
            if !is_within(at.since(event.at), self.tolerance)
                || !self.is_right(event.kind, at, why, forecast.made)
            {
                return None;
            }
        }
        Some(reason)
    }

    /// Whether the forecast has uncertain taints at about the time of `taint`, and one of them may be the taint of this
    /// node.
    fn is_said_to_be_chance(&self, forecast: &Forecast, taint: &ControllerEvent) -> bool {
        forecast.uncertain_taints.iter().any(|taints| {
            is_within(taints.at.since(taint.at), self.tolerance) && taints.among.contains(&taint.node)
        })
    }

    /// Whether the controller was stopped in the middle of the pass that would have found the node silent: that pass
    /// had found other nodes, and the next pass had not begun.
    fn is_stopped_in_its_pass(&self, step: &ControllerEvent) -> bool {
        let found = |event: &&ControllerEvent| {
            event.kind == EventKind::Unknown && is_within(event.at.since(step.at), self.tolerance)
        };
        let stops = |done: &CompletedAction, found: &ControllerEvent| {
            let is_stop = matches!(
                done.action,
                IncidentAction::RestartController
                    | IncidentAction::FailOver
                    | IncidentAction::PauseController
            );
            is_stop && done.started >= found.at && done.started < found.at + self.period
        };
        let mut found = self.events.iter().filter(found);
        found.any(|event| self.actions.iter().any(|done| stops(done, event)))
    }

    fn is_blackout_about(&self, event: &ControllerEvent) -> bool {
        self.blackouts
            .iter()
            .any(|at| is_within(at.since(event.at), self.tolerance + self.slowness(event.at)))
    }

    /// Returns why the previous rate-limiter token of the zone was spent without a new taint; `None` if no reason is
    /// found. Three kinds of nodes take a token without a new taint: a node that has come back and stays in the queue
    /// until the next pass; a node that the tainting loop does not see as Unknown yet; and a tainted node that a pass
    /// queued again at the moment of its taint.
    fn lost_token(&self, taint: &ControllerEvent) -> Option<&'static str> {
        let zone = zone_of(&taint.node);
        let went_at = |rate: &f64| taint.at - Span::from_secs_f64(1.0 / rate);
        let came_back = |at: Timestamp| {
            self.actions.iter().any(|done| {
                matches!(
                    done.action,
                    IncidentAction::ComeBack | IncidentAction::Post("True") | IncidentAction::Remove
                ) && zone_of(&done.node) == zone
                    && done.started <= at
                    && at <= done.finished + self.tolerance
            })
        };
        let found_silent = |at: Timestamp| {
            self.events.iter().any(|event| {
                event.kind == EventKind::Unknown
                    && zone_of(&event.node) == zone
                    && is_within(at.since(event.at), BEATS)
            })
        };
        let queued_again = |at: Timestamp, rate: &f64| {
            let before = at - Span::from_secs_f64(1.0 / rate);
            let passes = |taint: &ControllerEvent| {
                let found = |event: &ControllerEvent| {
                    event.kind == EventKind::Unknown && is_within(event.at.since(taint.at), THAT_MOMENT)
                };
                self.events.iter().any(found)
            };
            self.events.iter().any(|event| {
                event.kind == EventKind::NoExecute
                    && zone_of(&event.node) == zone
                    && is_within(before.since(event.at), THAT_MOMENT)
                    && passes(event)
            })
        };
        self.rates.iter().find_map(|rate| match went_at(rate) {
            at if came_back(at) => Some(LOST_TOKEN),
            at if found_silent(at) => Some(EARLY_TOKEN),
            at => queued_again(at, rate).then_some(SPENT_TWICE),
        })
    }

    /// Returns the latest start of a disruption that can explain an unpredicted taint. A zone becomes disrupted when
    /// the last of many nodes is found silent. Each node may be found silent one pass later than predicted, and the
    /// last node another pass later.
    fn counts_until(&self, taint: &ControllerEvent) -> Timestamp {
        taint.at + self.tolerance + self.period
    }

    /// Whether the zone of a node became disrupted between two points in time.
    fn is_disrupted(&self, event: &ControllerEvent, from: Timestamp, to: Timestamp) -> bool {
        let zone = zone_of(&event.node);
        self.disruptions.iter().any(|(at, of)| of == zone && *at >= from && *at <= to)
    }

    /// Explains an unpredicted deletion of pods by the taint of their node. The nodes of a zone are tainted in random
    /// order, so the node may have got the taint that was predicted for another node.
    fn why_this_node(&self, forecast: &Forecast, taint: &ControllerEvent) -> Option<String> {
        let found = self.find(forecast, taint).map(|(at, _)| at);
        let Some(at) = found.filter(|at| is_within(at.since(taint.at), self.tolerance)) else {
            return self.explain(forecast, taint).map(|reason| format!("{reason} (of its node's taint)"));
        };
        let same = |step: &ControllerEvent| {
            step.kind == EventKind::NoExecute && step.node == taint.node && step.at == at
        };
        let is_other = !forecast.steps.iter().filter_map(predicted).any(|step| same(&step));
        is_other.then(|| "its node got the taint that was predicted for another of its zone".into())
    }

    /// Returns the taint that the event's node got after `made` and before the event.
    pub(super) fn taint_since(&self, made: Timestamp, event: &ControllerEvent) -> Option<&ControllerEvent> {
        let of_node = |real: &&ControllerEvent| real.kind == EventKind::NoExecute && real.node == event.node;
        self.events.iter().filter(of_node).rfind(|real| real.at > made && real.at <= event.at)
    }

    /// Returns an action that affects the event, but could not be in a forecast made at `made`. The action started
    /// until `until`. If there are several, returns the action that takes longest to appear in forecasts.
    fn action(&self, made: Timestamp, event: &ControllerEvent, until: Timestamp) -> Option<&CompletedAction> {
        let tolerates = |done: &&CompletedAction| {
            // A new pod explains its own unpredicted deletion, and no other mismatch.
            (!adds_pods(&done.action) || until == event.at)
                && done.started <= until
                && done.finished + unknown_for(&done.action) > made
                && (self.concerns(done, event, made) || done.node == EVERYWHERE)
                && done.action != IncidentAction::StartStandby
        };
        self.actions.iter().filter(tolerates).max_by_key(|done| done.finished + unknown_for(&done.action))
    }

    fn concerns(&self, done: &CompletedAction, event: &ControllerEvent, made: Timestamp) -> bool {
        // Whether the action changes the state of the event's zone, or the queued nodes of that zone.
        let affects_zone = match done.action {
            IncidentAction::ComeBack | IncidentAction::Post(_) | IncidentAction::Remove | IncidentAction::Rejoin => {
                zone_of(&done.node) == zone_of(&event.node)
            }
            IncidentAction::Silence
            | IncidentAction::AddPod { .. }
            | IncidentAction::Refill
            | IncidentAction::Taint
            | IncidentAction::Untaint
            // Actions on the controller manager affect all nodes; the caller checks for them. The start of a standby
            // has no effect.
            | IncidentAction::RestartController
            | IncidentAction::StartStandby
            | IncidentAction::FailOver
            | IncidentAction::PauseController
            | IncidentAction::ResumeController
            | IncidentAction::BecomeLeader => false,
        };
        let is_own = *event.node == *done.node;
        match event.kind {
            EventKind::NoExecute => affects_zone || is_own && !adds_pods(&done.action),
            EventKind::Deletion => is_own || affects_zone && self.taint_since(made, event).is_some(),
            EventKind::Unknown | EventKind::Swap => is_own && !adds_pods(&done.action),
        }
    }

    /// Explains why an event of a forecast made at `made` did not happen.
    pub(super) fn why_not(&self, made: Timestamp, step: &ControllerEvent) -> Option<String> {
        let latest = step.at + self.tolerance;
        let latest = latest + self.slowness(latest);
        if let Some(action) = self.action(made, step, latest) {
            return Some(reason(action, step));
        }
        if step.kind == EventKind::NoExecute && self.is_disrupted(step, made, latest + self.period) {
            return Some(SLIPPED.into());
        }
        if step.kind == EventKind::Unknown && self.is_stopped_in_its_pass(step) {
            return Some(STOPPED.into());
        }
        (step.kind != EventKind::Unknown && self.is_blackout_about(step)).then(|| BLACKOUT.into())
    }

    /// Whether the heartbeat on which a forecast is based arrived during a pass of the controller. Such a heartbeat is
    /// seen by that pass, or one period later by the next pass. The pass of kordon's shadow controller is slightly
    /// later.
    pub(super) fn renewed_in_a_pass(&self, why: &Why) -> bool {
        let seen = why.0.iter().find_map(|cause| match cause {
            Cause::LastHeartbeat { noticed, .. } => Some(*noticed),
            _ => None,
        });
        let in_that_pass = |at: Timestamp| {
            self.events.iter().any(|event| {
                event.kind == EventKind::Unknown && is_within(event.at.since(at), BEATS + THAT_MOMENT)
            })
        };
        seen.is_some_and(in_that_pass)
    }

    /// Returns the delay of an event at `at` because earlier passes of the controller took long. The visible duration
    /// of a pass is the time from the first to the last node that the pass found silent. Two such nodes belong to one
    /// pass if they are less than a period apart, because the next pass starts a period after the end of the last.
    pub(super) fn slowness(&self, at: Timestamp) -> Span {
        let started = at - NOTICE - self.period;
        let found = |event: &&ControllerEvent| {
            event.kind == EventKind::Unknown && event.at >= started && event.at <= at
        };
        let times: Vec<Timestamp> = self.events.iter().filter(found).map(|event| event.at).collect();
        let gaps = times.windows(2).map(|pair| pair[1].since(pair[0]));
        gaps.filter(|gap| *gap + THAT_MOMENT < self.period).fold(Span::ZERO, |sum, gap| sum + gap)
    }
}

/// A pass that finds a zone disrupted reduces or stops the zone's rate only at the end of the pass. The tainting loop
/// also runs during the pass. Also, a node may be found silent one pass earlier or later.
const SLIPPED: &str =
    "its zone became disrupted within two passes, and whether a node is tainted before that is random";
/// The forecast has the taint among its uncertain taints.
const BY_CHANCE: &str =
    "the forecast said that it may come by chance, in the pass that finds its zone disrupted";
const STOPPED: &str = "the controller manager was stopped in the middle of the pass";
/// A node that has come back stays in the queue of nodes to taint until the next pass.
const LOST_TOKEN: &str = "the token before went to a node of its zone that had just come back, and was lost";
/// Since Kubernetes 1.34, a node is queued for its taint in the same pass that marks it Unknown.
const EARLY_TOKEN: &str =
    "the tainting loop ran before its cache had the Unknown condition of the node, and the token was lost";
/// A pass of the controller takes every node without the taint out of the queue of nodes to taint, and puts it back at
/// the end of the pass. A node that was tainted during the pass is then at the head of the queue and costs a second
/// token of the zone's rate limiter.
const SPENT_TWICE: &str = "a pass queued the node before it again while that was being tainted, and the token was spent on it twice";
/// Duration of several iterations of the tainting loop.
const BEATS: Span = Span::from_millis(400);
/// The controller stops evicting when all zones are down.
const BLACKOUT: &str = "all zones became disrupted at about the same time, which cancels evictions";
/// A forecast assumes that a pass takes about a millisecond.
pub(super) const SLOW: &str = "the controller's passes took long because they had much to write";

pub(super) const MISSED: &str =
    "its last heartbeat arrived in the middle of a pass, and whether that pass saw it is random";

/// Returns the longest delay until forecasts include an action: the watch has to report the action, and then the next
/// forecast has to be made. A node counts as silent only after one and a half missing heartbeats.
fn unknown_for(action: &IncidentAction) -> Span {
    match action {
        IncidentAction::Silence => Span::from_millis(3500),
        // The controller's absence is unknown until its Lease has expired.
        IncidentAction::RestartController | IncidentAction::FailOver | IncidentAction::PauseController => {
            LEASE_DURATION + Span::from_secs(1)
        }
        // The passes of a resumed controller skip nodes until its caches have caught up
        // (docs/upstream/node-lifecycle.md#3.11).
        IncidentAction::ResumeController => Span::from_secs(8),
        // The first pass begins when the caches are filled, so the phase of the passes is unknown for one period.
        IncidentAction::BecomeLeader => Span::from_secs(5),
        _ => Span::from_secs(1),
    }
}

fn reason(action: &CompletedAction, event: &ControllerEvent) -> String {
    let whose = match action.node.as_str() {
        node if *event.node == *node => "the node itself",
        EVERYWHERE if action.action == IncidentAction::ComeBack => "the first node of all that were down",
        EVERYWHERE => "the controller manager",
        _ => "another node of its zone",
    };
    let what = match &action.action {
        IncidentAction::Silence => "fell silent",
        IncidentAction::ComeBack => "came back",
        IncidentAction::Post("True") => "posted Ready=True",
        IncidentAction::Post(_) => "posted Ready=False",
        IncidentAction::Remove => "was removed",
        IncidentAction::Rejoin => "was registered again",
        IncidentAction::AddPod { .. } | IncidentAction::Refill => "got a new pod",
        IncidentAction::Taint => "was tainted by somebody",
        IncidentAction::Untaint => "was untainted by somebody",
        IncidentAction::RestartController | IncidentAction::FailOver => "was killed",
        IncidentAction::StartStandby => "got a standby",
        IncidentAction::PauseController => "was paused",
        IncidentAction::ResumeController => "was resumed",
        IncidentAction::BecomeLeader => "was replaced by another one",
    };
    format!("{whose} {what} less than 5 s before")
}

fn adds_pods(action: &IncidentAction) -> bool {
    matches!(action, IncidentAction::AddPod { .. } | IncidentAction::Refill)
}

/// Whether an event of this kind follows from the rate-limited taint of its node.
pub(super) fn follows_taint(kind: EventKind) -> bool {
    matches!(kind, EventKind::Swap | EventKind::Deletion)
}
