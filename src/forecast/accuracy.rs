//! How right the forecasts have been: what the controller did, compared with what had been predicted five seconds
//! before.

use std::{collections::VecDeque, fmt};

use super::{ControllerEvent, EventKind, Forecast, comparison};
use crate::{
    cluster::{
        Applied, Cluster, ConditionStatus, Delta, Key, Node, NodeName, Pod, Taint, TaintEffect, ZoneKey,
    },
    engine::{DELETION_BY_TAINT, controllers_own},
    ordered::OrderedMap,
    time::{Span, Timestamp},
};

/// How long before an event it must have been predicted.
pub const NOTICE: Span = Span::from_secs(5);
/// What is predicted for later than this after a forecast was made is not compared: later forecasts are.
const AHEAD: Span = Span::from_secs(35);
/// How much later the watches may report a change than it was made: a forecast of that time may include it or not.
const DELAY: Span = Span::from_secs(1);
/// Errors that are kept, for the median.
const ERRORS: usize = 10_000;
/// Misses that are kept, the last ones.
const MISSES: usize = 100;

/// By how much a predicted time may be off where the controller's passes are a `period` apart: by that and a second.
pub fn tolerance(period: Span) -> Span {
    period + Span::from_secs(1)
}

/// Compares what the controller does with the forecasts.
///
/// Pass in every forecast with [`Accuracy::on_forecast`] and every change of the cluster, after it was applied, with
/// [`Accuracy::on_change`]. An event is compared with the last forecast that is at least [`NOTICE`] older.
#[derive(Clone, Debug)]
pub struct Accuracy {
    /// By how much a predicted time may be off.
    tolerance: Span,
    /// What was predicted, by the time when; the first is older than [`NOTICE`], unless it is the only one.
    predictions: VecDeque<Predictions>,
    /// What the controller did since the first of `predictions`.
    events: VecDeque<ControllerEvent>,
    /// What others did since then that no forecast can know.
    surprises: VecDeque<Surprise>,
    counts: OrderedMap<EventKind, EventCounts>,
    errors: VecDeque<Span>,
    misses: VecDeque<Miss>,
}

/// The near future as a forecast has it.
#[derive(Clone, Debug)]
struct Predictions {
    made: Timestamp,
    events: Vec<ControllerEvent>,
}

/// Something that somebody other than the controller did to a node.
#[derive(Clone, Debug)]
struct Surprise {
    at: Timestamp,
    node: NodeName,
    zone: ZoneKey,
}

/// How many events of a kind happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCounts {
    /// Predicted [`NOTICE`] before, for about the time at which they happened.
    pub predicted: usize,
    /// Caused by something that happened less than [`NOTICE`] before.
    pub unforeseeable: usize,
    /// Predicted for another time, or not at all.
    pub missed: usize,
}

impl EventCounts {
    pub const fn all(self) -> usize {
        self.predicted + self.unforeseeable + self.missed
    }
}

/// An event that was not predicted as it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    pub at: Timestamp,
    pub kind: EventKind,
    pub node: NodeName,
    pub pod: Option<Key>,
    /// How much later than it happened it was predicted; none if it was not predicted.
    pub off: Option<Span>,
}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.kind, self.node)?;
        if let Some(pod) = &self.pod {
            write!(f, ", {pod}")?;
        }
        match self.off {
            Some(off) if off < Span::ZERO => write!(f, ": {} later than predicted", -off),
            Some(off) => write!(f, ": {off} earlier than predicted"),
            None => write!(f, ": not predicted"),
        }
    }
}

/// How right the forecasts were about one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Predicted so long before, for about the time at which it happened.
    Predicted {
        before: Span,
    },
    /// Predicted for another time: how much later than it happened.
    Off(Span),
    NotPredicted,
    /// It follows from something that happened less than [`NOTICE`] before.
    Unforeseeable,
}

/// How right the forecasts have been.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AccuracyReport {
    pub kinds: OrderedMap<EventKind, EventCounts>,
    /// The median error of the predicted times, whether early or late; none without any.
    pub median: Option<Span>,
    /// The largest error.
    pub worst: Option<Span>,
    /// The last events that were missed, oldest first.
    pub misses: Vec<Miss>,
}

impl AccuracyReport {
    /// The counts of all kinds together.
    pub fn total(&self) -> EventCounts {
        self.kinds.values().fold(EventCounts::default(), |sum, counts| EventCounts {
            predicted: sum.predicted + counts.predicted,
            unforeseeable: sum.unforeseeable + counts.unforeseeable,
            missed: sum.missed + counts.missed,
        })
    }
}

impl Accuracy {
    /// For a controller whose passes are a `period` apart.
    pub fn new(period: Span) -> Self {
        Self {
            tolerance: tolerance(period),
            predictions: VecDeque::new(),
            events: VecDeque::new(),
            surprises: VecDeque::new(),
            counts: OrderedMap::new(),
            errors: VecDeque::new(),
            misses: VecDeque::new(),
        }
    }

    /// Takes a new forecast over this cluster.
    pub fn on_forecast(&mut self, forecast: &Forecast, cluster: &Cluster) {
        let near = forecast.steps.iter().take_while(|step| step.at <= forecast.made + AHEAD);
        let zone = |node: &NodeName| cluster.node(node).map(|node| node.zone()).unwrap_or_default();
        let predicted = |step| ControllerEvent::predicted(step, zone);
        let events = near.filter_map(predicted).collect();
        self.predictions.push_back(Predictions { made: forecast.made, events });
        let needed = forecast.made - NOTICE;
        while self.predictions.get(1).is_some_and(|second| second.made <= needed) {
            self.predictions.pop_front();
        }
        let oldest = self.predictions.front().map_or(needed, |first| first.made) - DELAY;
        self.events.retain(|event| event.at >= oldest);
        self.surprises.retain(|surprise| surprise.at >= oldest);
    }

    /// The watches were down or the controller changed: what happens next is not compared with older forecasts.
    pub fn restart(&mut self) {
        self.predictions.clear();
        self.events.clear();
        self.surprises.clear();
    }

    /// Takes a change that was applied to the cluster. Returns how right the forecasts were about what the controller did
    /// with it, as far as that can be said.
    pub fn on_change(
        &mut self,
        change: &Applied,
        cluster: &Cluster,
        now: Timestamp,
    ) -> Vec<(EventKind, Judgement)> {
        match change {
            Applied::Node(delta) => return self.on_node(delta, now),
            Applied::Pod(delta) => {
                let event = deletion(delta, cluster, now);
                return event.and_then(|event| self.judge(event)).into_iter().collect();
            }
            Applied::Leader(before, after) => {
                if before.as_ref().map(|lease| &lease.holder) != after.as_ref().map(|lease| &lease.holder) {
                    self.restart();
                }
            }
            Applied::Lease(_) | Applied::Other => {}
        }
        Vec::new()
    }

    /// How right the forecasts have been until now.
    pub fn report(&self) -> AccuracyReport {
        let mut errors: Vec<Span> = self.errors.iter().map(|error| (*error).max(-*error)).collect();
        errors.sort();
        AccuracyReport {
            kinds: self.counts.clone(),
            median: errors.get(errors.len() / 2).copied(),
            worst: errors.last().copied(),
            misses: self.misses.iter().cloned().collect(),
        }
    }

    fn on_node(&mut self, delta: &Delta<Node>, now: Timestamp) -> Vec<(EventKind, Judgement)> {
        let mut judged = Vec::new();
        let Some(node) = delta.new.as_ref().or(delta.old.as_ref()) else { return judged };
        let event =
            |kind| ControllerEvent { at: now, kind, node: node.name.clone(), zone: node.zone(), pod: None };
        let (Some(old), Some(new)) = (&delta.old, &delta.new) else {
            self.surprise(node, now);
            return judged;
        };
        if is_surprise(old, new) {
            self.surprise(new, now);
        }
        if status(new) == Some(ConditionStatus::Unknown) && status(old) != Some(ConditionStatus::Unknown) {
            judged.extend(self.judge(event(EventKind::Unknown)));
        }
        if controllers_own(new).any(|taint| !controllers_own(old).any(|known| known.key == taint.key)) {
            let swapped = controllers_own(old).next().is_some();
            judged.extend(self.judge(event(if swapped { EventKind::Swap } else { EventKind::NoExecute })));
        }
        judged
    }

    fn surprise(&mut self, node: &Node, now: Timestamp) {
        self.surprises.push_back(Surprise { at: now, node: node.name.clone(), zone: node.zone() });
    }

    /// Compares an event with the last forecast that is old enough. Before the first forecasts nothing is compared.
    fn judge(&mut self, event: ControllerEvent) -> Option<(EventKind, Judgement)> {
        let predictions = self.predictions.iter().rev().find(|older| older.made + NOTICE <= event.at);
        let judged = predictions.map(|predictions| {
            let before = event.at.since(predictions.made);
            let earlier = self.events.iter().filter(|other| other.at > predictions.made);
            let predicted = comparison::predicted_time(&predictions.events, earlier, &event);
            let off = predicted.map(|(_, at)| at.since(event.at));
            let is_foreseeable = !self.is_surprised(&event, predictions.made - DELAY);
            (off, self.judgement(off, before, is_foreseeable))
        });
        if let Some((off, judgement)) = judged {
            self.count(&event, off, judgement);
        }
        let kind = event.kind;
        self.events.push_back(event);
        judged.map(|(_, judgement)| (kind, judgement))
    }

    fn judgement(&self, off: Option<Span>, before: Span, is_foreseeable: bool) -> Judgement {
        match off {
            Some(off) if comparison::magnitude(off) <= self.tolerance => Judgement::Predicted { before },
            _ if !is_foreseeable => Judgement::Unforeseeable,
            Some(off) => Judgement::Off(off),
            None => Judgement::NotPredicted,
        }
    }

    fn count(&mut self, event: &ControllerEvent, off: Option<Span>, judgement: Judgement) {
        let counts = self.counts.entry(event.kind).or_default();
        match judgement {
            Judgement::Predicted { .. } => {
                counts.predicted += 1;
                keep(&mut self.errors, off.map(comparison::magnitude).unwrap_or_default(), ERRORS);
            }
            Judgement::Off(_) | Judgement::NotPredicted => {
                counts.missed += 1;
                let ControllerEvent { at, kind, node, pod, .. } = event.clone();
                keep(&mut self.misses, Miss { at, kind, node, pod, off }, MISSES);
            }
            Judgement::Unforeseeable => counts.unforeseeable += 1,
        }
    }

    /// Whether somebody did something since then that the event follows from: to its node, or to another of its zone,
    /// which decides about the zone's rate and queue.
    fn is_surprised(&self, event: &ControllerEvent, since: Timestamp) -> bool {
        let affects = |surprise: &&Surprise| match event.kind {
            EventKind::Unknown => surprise.node == event.node,
            EventKind::NoExecute | EventKind::Swap | EventKind::Deletion => surprise.zone == event.zone,
        };
        self.surprises.iter().filter(|surprise| surprise.at >= since).any(|surprise| affects(&surprise))
    }
}

/// The deletion of a pod by taint eviction, if the change is the start of one.
fn deletion(delta: &Delta<Pod>, cluster: &Cluster, now: Timestamp) -> Option<ControllerEvent> {
    let (before, after) = (delta.old.as_ref()?, delta.new.as_ref());
    let pod = after.unwrap_or(before);
    let starts = before.termination.is_none() && after.is_none_or(|after| after.termination.is_some());
    // Releases before 1.26 do not say who deletes a pod.
    let by_taint = pod.disruption_target.as_ref().is_some_and(|reason| *reason == *DELETION_BY_TAINT);
    if !(starts && by_taint) {
        return None;
    }
    let node = cluster.node(pod.node.as_ref()?)?;
    let (name, zone) = (node.name.clone(), node.zone());
    Some(ControllerEvent { at: now, kind: EventKind::Deletion, node: name, zone, pod: Some(pod.key.clone()) })
}

/// Whether a kubelet or a person changed what the controller decides by: readiness, or NoExecute taints.
fn is_surprise(old: &Node, new: &Node) -> bool {
    let posted = status(new) != status(old) && status(new) != Some(ConditionStatus::Unknown);
    posted || others_taints(old).ne(others_taints(new))
}

/// The node's NoExecute taints that are not the controller's own.
fn others_taints(node: &Node) -> impl Iterator<Item = &Taint> {
    let no_execute = node.taints.iter().filter(|taint| taint.effect == TaintEffect::NoExecute);
    no_execute.filter(|taint| !controllers_own(node).any(|own| own.key == taint.key))
}

fn status(node: &Node) -> Option<ConditionStatus> {
    node.ready().map(|ready| ready.status)
}

/// Appends a value and drops the oldest ones beyond the most that are kept.
fn keep<T>(values: &mut VecDeque<T>, value: T, most: usize) {
    if values.len() == most {
        values.pop_front();
    }
    values.push_back(value);
}
