//! Accuracy of the forecasts: compares the controller's actions with the forecast made five seconds earlier. Every
//! event is in one class: on time, by chance, unforeseeable, missed for a reason, or not compared.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
};

use super::{
    ControllerEvent, EventKind, Forecast, ForecastStep, OutcomeRecord, OutcomeReport, comparison,
    newest::keep,
};
use crate::{
    cluster::{
        Applied, Cluster, ConditionStatus, Delta, Key, Node, NodeName, Pod, Taint, TaintEffect, ZoneKey,
    },
    engine::{DELETION_BY_TAINT, controllers_own},
    plan::PodOutcome,
};
use kordon_time::{Span, Timestamp};

/// Minimum time between a forecast and an event that it is compared with.
pub const NOTICE: Span = Span::from_secs(5);
/// Horizon of the kept predictions, counted from the start of their forecast. Events after the horizon are compared
/// with later forecasts.
const AHEAD: Span = Span::from_secs(35);
/// Maximum delay of the watches. A forecast that is made within this time after a change may not include the change
/// yet.
const DELAY: Span = Span::from_secs(1);
/// Maximum number of errors of predicted times that are kept to compute their median.
const ERRORS: usize = 10_000;
/// Maximum number of misses that are kept. The oldest are dropped.
const MISSES: usize = 100;

/// Maximum error of a prediction that is on time: the `period` between the controller's passes, plus one second.
pub fn tolerance(period: Span) -> Span {
    period + Span::from_secs(1)
}

/// Compares the controller's actions with the forecasts.
///
/// Pass in every forecast with [`Accuracy::on_forecast`] and every change of the cluster, after it was applied, with
/// [`Accuracy::on_change`]. An event is compared with the last forecast that is at least [`NOTICE`] older.
#[derive(Clone, Debug)]
pub struct Accuracy {
    /// Maximum error of a prediction that is on time.
    tolerance: Span,
    /// Predictions of earlier forecasts, sorted by when they were made. The first is older than [`NOTICE`], unless it
    /// is the only one.
    predictions: VecDeque<Predictions>,
    /// Actions of the controller since the oldest forecast in `predictions`.
    events: VecDeque<ControllerEvent>,
    /// Changes of nodes by other components since the oldest forecast in `predictions`. No forecast can predict such
    /// changes.
    surprises: VecDeque<Surprise>,
    counts: BTreeMap<EventKind, EventCounts>,
    /// Error of each prediction: the predicted time minus the time at which the event happened.
    errors: VecDeque<Span>,
    /// Largest number of nodes that competed for one token of their zone's rate limiter in a predicted event.
    most_among: usize,
    misses: VecDeque<Miss>,
    outcomes: OutcomeRecord,
}

/// The predictions of one forecast, up to the horizon [`AHEAD`].
#[derive(Clone, Debug)]
struct Predictions {
    made: Timestamp,
    /// Predicted events, sorted by time. An overdue event keeps the time for which an earlier forecast predicted it.
    events: Vec<ControllerEvent>,
    /// For each event, the number of nodes that compete for the same token of their zone's rate limiter; one if the
    /// outcome is certain.
    among: Vec<usize>,
    /// Whether anything could be predicted when the forecast was made.
    is_possible: bool,
    /// Nodes for which the forecast leaves it to chance whether they are tainted.
    uncertain: BTreeSet<NodeName>,
}

/// The latest predictions that exist when a change arrives.
#[derive(Clone, Copy, Debug, Default)]
pub struct Predicted<'a> {
    /// The last forecast.
    pub forecast: Option<&'a Forecast>,
    /// The predicted outcomes of the pods that leave.
    pub outcomes: Option<&'a BTreeMap<Key, PodOutcome>>,
}

/// A change of a node that the controller did not make.
#[derive(Clone, Debug)]
struct Surprise {
    at: Timestamp,
    node: NodeName,
    zone: ZoneKey,
}

/// Numbers of events of one kind, by class. Every event is in one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCounts {
    /// Events that a forecast predicted at least [`NOTICE`] in advance and for about the right time.
    pub on_time: usize,
    /// Events that were on time, although chance decided which of several nodes got the token of the zone's rate
    /// limiter.
    pub by_chance: usize,
    /// Events caused by a change that the compared forecast may not include.
    pub unforeseeable: usize,
    /// Missed events by [`MissReason`], in the order of [`MissReason::ALL`].
    pub missed: [usize; MissReason::ALL.len()],
    /// Events without an earlier forecast that was at least [`NOTICE`] old. The session had just begun, the watches
    /// were down, or the controller had changed.
    pub not_compared: usize,
}

impl EventCounts {
    pub fn all(self) -> usize {
        self.predicted() + self.unforeseeable + self.missed() + self.not_compared
    }

    /// Number of events on time, including those for which chance decided.
    pub const fn predicted(self) -> usize {
        self.on_time + self.by_chance
    }

    /// Number of missed events, for all reasons.
    pub fn missed(self) -> usize {
        self.missed.iter().sum()
    }

    /// The reasons of missed events, each with its number of events.
    pub fn reasons(self) -> impl Iterator<Item = (MissReason, usize)> {
        MissReason::ALL.into_iter().zip(self.missed).filter(|(_, count)| *count > 0)
    }

    fn plus(self, other: &Self) -> Self {
        Self {
            on_time: self.on_time + other.on_time,
            by_chance: self.by_chance + other.by_chance,
            unforeseeable: self.unforeseeable + other.unforeseeable,
            missed: std::array::from_fn(|reason| self.missed[reason] + other.missed[reason]),
            not_compared: self.not_compared + other.not_compared,
        }
    }
}

/// Why the forecast missed an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MissReason {
    /// The event happened earlier than predicted.
    Early,
    /// The event happened later than predicted.
    Late,
    /// The pod came to the node after the forecast was made.
    NewPod,
    /// The forecast left it to chance whether the node is tainted.
    Uncertain,
    /// Nothing could be predicted when the forecast was made.
    NoPredictions,
    /// The forecast did not contain the event.
    NotExpected,
}

impl MissReason {
    pub const ALL: [Self; 6] =
        [Self::Early, Self::Late, Self::NewPod, Self::Uncertain, Self::NoPredictions, Self::NotExpected];

    /// Stable name of the reason.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Early => "early",
            Self::Late => "late",
            Self::NewPod => "newPod",
            Self::Uncertain => "uncertain",
            Self::NoPredictions => "noPredictions",
            Self::NotExpected => "notExpected",
        }
    }

    /// Text for users, after a number: `3 early`.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Early => "early",
            Self::Late => "late",
            Self::NewPod => "of a new pod",
            Self::Uncertain => "left to chance",
            Self::NoPredictions => "while nothing could be predicted",
            Self::NotExpected => "not expected",
        }
    }
}

/// An event that the forecast missed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    pub at: Timestamp,
    pub kind: EventKind,
    pub node: NodeName,
    pub pod: Option<Key>,
    pub reason: MissReason,
    /// The predicted time minus the time at which the event happened; none without a predicted time.
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
            None => write!(f, ": not predicted ({})", self.reason.words()),
        }
    }
}

/// Result of comparing one event with the forecasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// A forecast predicted the event for about the right time. `before` is the time from the forecast to the event.
    Predicted {
        before: Span,
    },
    /// The event was predicted for another time. The value is the predicted time minus the time at which the event
    /// happened.
    Off(Span),
    NotPredicted,
    /// The event follows from a change that the compared forecast may not include.
    Unforeseeable,
}

/// Accuracy of the forecasts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AccuracyReport {
    pub kinds: BTreeMap<EventKind, EventCounts>,
    /// Median of the absolute errors of all predicted times, on time or not; none without predicted times.
    pub median: Option<Span>,
    /// Largest absolute error of all predicted times; none without predicted times.
    pub worst: Option<Span>,
    /// Largest time by which an event happened earlier than predicted; none if no event was early.
    pub earliest: Option<Span>,
    /// Largest time by which an event happened later than predicted; none if no event was late.
    pub latest: Option<Span>,
    /// Largest number of nodes that competed for one token of their zone's rate limiter; zero if no event depended on
    /// chance.
    pub most_among: usize,
    /// The last events that were missed, oldest first.
    pub misses: Vec<Miss>,
    pub outcomes: OutcomeReport,
}

impl AccuracyReport {
    /// The counts of all kinds, added up.
    pub fn total(&self) -> EventCounts {
        self.kinds.values().fold(EventCounts::default(), EventCounts::plus)
    }
}

impl Accuracy {
    /// Makes an empty record for a controller whose passes are a `period` apart.
    pub fn new(period: Span) -> Self {
        Self {
            tolerance: tolerance(period),
            predictions: VecDeque::new(),
            events: VecDeque::new(),
            surprises: VecDeque::new(),
            counts: BTreeMap::new(),
            errors: VecDeque::new(),
            most_among: 0,
            misses: VecDeque::new(),
            outcomes: OutcomeRecord::default(),
        }
    }

    /// Records a new forecast for this cluster.
    pub fn on_forecast(&mut self, forecast: &Forecast, cluster: &Cluster) {
        let near = forecast.steps.iter().take_while(|step| step.at <= forecast.made + AHEAD);
        let zone = |node: &NodeName| cluster.node(node).map(|node| node.zone()).unwrap_or_default();
        let among = |step: &ForecastStep| step.chance.as_ref().map_or(1, |chance| chance.among.len());
        let mut events: Vec<(ControllerEvent, usize)> =
            near.filter_map(|step| Some((ControllerEvent::predicted(step, zone)?, among(step)))).collect();
        self.keep_due(&mut events, forecast.made);
        let (events, among) = events.into_iter().unzip();
        let uncertain = forecast.uncertain_taints.iter().flat_map(|taints| taints.among.iter().cloned());
        self.predictions.push_back(Predictions {
            made: forecast.made,
            events,
            among,
            is_possible: !forecast.zones.is_empty(),
            uncertain: uncertain.collect(),
        });
        let needed = forecast.made - NOTICE;
        while self.predictions.get(1).is_some_and(|second| second.made <= needed) {
            self.predictions.pop_front();
        }
        let oldest = self.predictions.front().map_or(needed, |first| first.made) - DELAY;
        self.events.retain(|event| event.at >= oldest);
        self.surprises.retain(|surprise| surprise.at >= oldest);
    }

    /// Keeps the earlier predicted time of overdue events. Each new forecast predicts an overdue event for now;
    /// compared with such a prediction, the event would be on time whenever it happens.
    fn keep_due(&self, events: &mut [(ControllerEvent, usize)], made: Timestamp) {
        let Some(before) = self.predictions.back() else { return };
        let due = before.events.iter().take_while(|event| event.at < made);
        let due: BTreeMap<_, Timestamp> = due.map(|event| (event.identity(), event.at)).collect();
        if due.is_empty() {
            return;
        }
        for (event, _) in events.iter_mut().take_while(|(event, _)| event.at <= made + self.tolerance) {
            if let Some(at) = due.get(&event.identity()).copied() {
                event.at = event.at.min(at);
            }
        }
        events.sort_by_key(|(event, _)| event.at);
    }

    /// Forgets the forecasts, after the watches were down or the controller changed. Later events are not compared with
    /// them.
    pub fn restart(&mut self) {
        self.outcomes.restart();
        self.predictions.clear();
        self.events.clear();
        self.surprises.clear();
    }

    /// Records a change that was applied to the cluster. Returns the controller's actions in the change, each with the
    /// result of the comparison with the forecasts. Leaves out actions that cannot be compared.
    pub fn on_change(
        &mut self,
        change: &Applied,
        cluster: &Cluster,
        predicted: Predicted<'_>,
        now: Timestamp,
    ) -> Vec<(EventKind, Judgement)> {
        self.outcomes.on_time(cluster, now);
        match change {
            Applied::Node(delta) => return self.on_node(delta, predicted.forecast, now),
            Applied::Pod(delta) => {
                self.outcomes.on_pod(delta, now);
                let Some(event) = deletion(delta, cluster, now) else { return Vec::new() };
                if let Some(pod) = delta.new.as_ref().or(delta.old.as_ref()) {
                    let outcome = predicted.outcomes.and_then(|outcomes| outcomes.get(&pod.key));
                    self.outcomes.on_evicted(pod, outcome, now);
                    let created = cluster.local(pod.created);
                    return self.judge(event, predicted.forecast, created).into_iter().collect();
                }
            }
            Applied::Leader(before, after) => {
                if before.as_ref().map(|lease| &lease.holder) != after.as_ref().map(|lease| &lease.holder) {
                    self.restart();
                }
            }
            Applied::Lease(_) | Applied::KordonLease | Applied::Other => {}
        }
        Vec::new()
    }

    /// Returns the accuracy of the forecasts so far.
    pub fn report(&self) -> AccuracyReport {
        let mut errors: Vec<Span> = self.errors.iter().copied().map(comparison::magnitude).collect();
        errors.sort();
        let late_or_early =
            |sign: i64| self.errors.iter().map(|error| *error * sign).max().filter(|most| *most > Span::ZERO);
        AccuracyReport {
            kinds: self.counts.clone(),
            median: errors.get(errors.len() / 2).copied(),
            worst: errors.last().copied(),
            // The error of an early event is positive, because it was predicted for a later time.
            earliest: late_or_early(1),
            latest: late_or_early(-1),
            most_among: self.most_among,
            misses: self.misses.iter().cloned().collect(),
            outcomes: self.outcomes.report(),
        }
    }

    fn on_node(
        &mut self,
        delta: &Delta<Node>,
        forecast: Option<&Forecast>,
        now: Timestamp,
    ) -> Vec<(EventKind, Judgement)> {
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
            judged.extend(self.judge(event(EventKind::Unknown), forecast, Timestamp::EPOCH));
        }
        if controllers_own(new).any(|taint| !controllers_own(old).any(|known| known.key == taint.key)) {
            let swapped = controllers_own(old).next().is_some();
            let kind = if swapped { EventKind::Swap } else { EventKind::NoExecute };
            judged.extend(self.judge(event(kind), forecast, Timestamp::EPOCH));
        }
        judged
    }

    fn surprise(&mut self, node: &Node, now: Timestamp) {
        self.surprises.push_back(Surprise { at: now, node: node.name.clone(), zone: node.zone() });
    }

    /// Compares an event with the last forecast that is old enough. If that forecast does not predict the event, but
    /// the `latest` one predicts it for a later time, the event is early. `created` is when the event's pod was
    /// created.
    fn judge(
        &mut self,
        event: ControllerEvent,
        latest: Option<&Forecast>,
        created: Timestamp,
    ) -> Option<(EventKind, Judgement)> {
        let kind = event.kind;
        let place = self.predictions.iter().rposition(|older| older.made + NOTICE <= event.at);
        let Some(predictions) = place.map(|place| &self.predictions[place]) else {
            self.counts.entry(kind).or_default().not_compared += 1;
            self.events.push_back(event);
            return None;
        };
        let made = predictions.made;
        let earlier = self.events.iter().filter(|other| other.at > made);
        let near = comparison::predicted_time(&predictions.events, earlier, &event);
        let among = near.map_or(1, |(index, _)| predictions.among[index]);
        let far = || latest.and_then(|latest| predicted_later(latest, &event));
        let off = near.map(|(_, at)| at).or_else(far).map(|at| at.since(event.at));
        let reason = match off {
            Some(off) if off > Span::ZERO => MissReason::Early,
            Some(_) => MissReason::Late,
            None if created > made => MissReason::NewPod,
            None if predictions.uncertain.contains(&event.node) => MissReason::Uncertain,
            None if !predictions.is_possible => MissReason::NoPredictions,
            None => MissReason::NotExpected,
        };
        let is_foreseeable = !self.is_surprised(&event, made - DELAY);
        let judgement = self.judgement(off, event.at.since(made), is_foreseeable);
        let counts = self.counts.entry(kind).or_default();
        match judgement {
            Judgement::Predicted { .. } if among > 1 => {
                counts.by_chance += 1;
                self.most_among = self.most_among.max(among);
            }
            Judgement::Predicted { .. } => counts.on_time += 1,
            Judgement::Off(_) | Judgement::NotPredicted => {
                counts.missed[reason as usize] += 1;
                let ControllerEvent { at, kind, node, pod, .. } = event.clone();
                keep(&mut self.misses, Miss { at, kind, node, pod, reason, off }, MISSES);
            }
            Judgement::Unforeseeable => counts.unforeseeable += 1,
        }
        if let Some(off) = off.filter(|_| judgement != Judgement::Unforeseeable) {
            keep(&mut self.errors, off, ERRORS);
        }
        self.events.push_back(event);
        Some((kind, judgement))
    }

    fn judgement(&self, off: Option<Span>, before: Span, is_foreseeable: bool) -> Judgement {
        match off {
            Some(off) if comparison::magnitude(off) <= self.tolerance => Judgement::Predicted { before },
            _ if !is_foreseeable => Judgement::Unforeseeable,
            Some(off) => Judgement::Off(off),
            None => Judgement::NotPredicted,
        }
    }

    /// Whether the event follows from a change that another component made at or after `since`: a change of the event's
    /// node, or of another node of the zone if the event depends on the zone's rate and queue.
    fn is_surprised(&self, event: &ControllerEvent, since: Timestamp) -> bool {
        let affects = |surprise: &&Surprise| match event.kind {
            EventKind::Unknown => surprise.node == event.node,
            EventKind::NoExecute | EventKind::Swap | EventKind::Deletion => surprise.zone == event.zone,
        };
        self.surprises.iter().filter(|surprise| surprise.at >= since).any(|surprise| affects(&surprise))
    }
}

/// Returns the time for which a forecast predicts the same event; none if that time is not later than the event.
fn predicted_later(forecast: &Forecast, event: &ControllerEvent) -> Option<Timestamp> {
    let of_node = forecast.of_node(&event.node);
    let same = of_node.filter_map(|step| ControllerEvent::predicted(step, |_| event.zone.clone()));
    same.filter(|other| other.identity() == event.identity()).map(|other| other.at).find(|at| *at > event.at)
}

/// Returns the deletion event if the change starts the deletion of a pod by taint eviction.
fn deletion(delta: &Delta<Pod>, cluster: &Cluster, now: Timestamp) -> Option<ControllerEvent> {
    let (before, after) = (delta.old.as_ref()?, delta.new.as_ref());
    let pod = after.unwrap_or(before);
    let starts = before.termination.is_none() && after.is_none_or(|after| after.termination.is_some());
    // Releases before 1.26 do not record who deletes a pod, so deletions in these releases are not compared.
    let by_taint = pod.disruption_target.as_ref().is_some_and(|reason| *reason == *DELETION_BY_TAINT);
    if !(starts && by_taint) {
        return None;
    }
    let node = cluster.node(pod.node.as_ref()?)?;
    let (name, zone) = (node.name.clone(), node.zone());
    Some(ControllerEvent { at: now, kind: EventKind::Deletion, node: name, zone, pod: Some(pod.key.clone()) })
}

/// Whether a kubelet or a user changed something on which the controller's decisions depend: readiness, or NoExecute
/// taints.
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
