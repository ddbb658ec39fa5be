//! How right the forecasts have been: what the controller did, compared with what had been predicted five seconds
//! before. Every event is in one class: on time, by chance, unforeseeable, missed for a reason, or not compared.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
};

use super::{ControllerEvent, EventKind, Forecast, ForecastStep, OutcomeRecord, OutcomeReport, comparison};
use crate::{
    cluster::{
        Applied, Cluster, ConditionStatus, Delta, Key, Node, NodeName, Pod, Taint, TaintEffect, ZoneKey,
    },
    engine::{DELETION_BY_TAINT, controllers_own},
    plan::PodOutcome,
};
use kordon_time::{Span, Timestamp};

/// How long before an event it must have been predicted.
pub const NOTICE: Span = Span::from_secs(5);
/// What is predicted for later than this after a forecast was made is not kept: later forecasts are compared.
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
    counts: BTreeMap<EventKind, EventCounts>,
    /// By how much later than it happened each event was predicted.
    errors: VecDeque<Span>,
    /// The most nodes of which chance took one.
    most_among: usize,
    misses: VecDeque<Miss>,
    outcomes: OutcomeRecord,
}

/// The near future as a forecast has it.
#[derive(Clone, Debug)]
struct Predictions {
    made: Timestamp,
    /// In order of time. An event that an earlier forecast had for a time that is over, and that has not happened, keeps that time.
    events: Vec<ControllerEvent>,
    /// Of each event, how many nodes may get its token; one where nothing is left to chance.
    among: Vec<usize>,
    /// Whether anything could be predicted.
    is_possible: bool,
    /// The nodes of which chance decides whether they are tainted.
    uncertain: BTreeSet<NodeName>,
}

/// What is predicted as a change arrives.
#[derive(Clone, Copy, Debug, Default)]
pub struct Predicted<'a> {
    /// The last forecast.
    pub forecast: Option<&'a Forecast>,
    /// The outcomes of the pods that leave.
    pub outcomes: Option<&'a BTreeMap<Key, PodOutcome>>,
}

/// Something that somebody other than the controller did to a node.
#[derive(Clone, Debug)]
struct Surprise {
    at: Timestamp,
    node: NodeName,
    zone: ZoneKey,
}

/// How many events of a kind happened, in classes that add up to all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCounts {
    /// Predicted [`NOTICE`] before, for about the time at which they happened.
    pub on_time: usize,
    /// The same, and which of several nodes got the token was left to chance.
    pub by_chance: usize,
    /// Caused by something that happened less than [`NOTICE`] before.
    pub unforeseeable: usize,
    /// By [`MissReason`], in the order of [`MissReason::ALL`].
    pub missed: [usize; MissReason::ALL.len()],
    /// No forecast was [`NOTICE`] old: the session had just begun, the watches were down, or the controller had changed.
    pub not_compared: usize,
}

impl EventCounts {
    pub fn all(self) -> usize {
        self.predicted() + self.unforeseeable + self.missed() + self.not_compared
    }

    /// On time, whether or not chance had a part.
    pub const fn predicted(self) -> usize {
        self.on_time + self.by_chance
    }

    /// Missed for whatever reason.
    pub fn missed(self) -> usize {
        self.missed.iter().sum()
    }

    /// The reasons that any was missed for.
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

/// Why an event was not predicted as it happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MissReason {
    /// It happened earlier than predicted.
    Early,
    /// It happened later than predicted.
    Late,
    /// The pod came to the node after the forecast was made.
    NewPod,
    /// The forecast left it to chance whether the node is tainted.
    Uncertain,
    /// Nothing could be predicted then.
    NoPredictions,
    /// The forecast had nothing like it.
    NotExpected,
}

impl MissReason {
    pub const ALL: [Self; 6] =
        [Self::Early, Self::Late, Self::NewPod, Self::Uncertain, Self::NoPredictions, Self::NotExpected];

    /// The stable word.
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

    /// For people: `3 early`.
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

/// An event that was not predicted as it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    pub at: Timestamp,
    pub kind: EventKind,
    pub node: NodeName,
    pub pod: Option<Key>,
    pub reason: MissReason,
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
            None => write!(f, ": not predicted ({})", self.reason.words()),
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
    pub kinds: BTreeMap<EventKind, EventCounts>,
    /// The median error of all predicted times, on time or not, whether early or late; none without any.
    pub median: Option<Span>,
    /// The largest of these errors.
    pub worst: Option<Span>,
    /// By how much an event happened earlier than predicted, at most; none if none did.
    pub earliest: Option<Span>,
    /// The same for later.
    pub latest: Option<Span>,
    /// The most nodes of which chance took one; zero if it never did.
    pub most_among: usize,
    /// The last events that were missed, oldest first.
    pub misses: Vec<Miss>,
    pub outcomes: OutcomeReport,
}

impl AccuracyReport {
    /// The counts of all kinds together.
    pub fn total(&self) -> EventCounts {
        self.kinds.values().fold(EventCounts::default(), EventCounts::plus)
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
            counts: BTreeMap::new(),
            errors: VecDeque::new(),
            most_among: 0,
            misses: VecDeque::new(),
            outcomes: OutcomeRecord::default(),
        }
    }

    /// Takes a new forecast over this cluster.
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

    /// An event that is overdue is predicted for now in each new forecast. Here it keeps the time for which it was predicted first: otherwise
    /// it would be on time whenever it happens.
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

    /// The watches were down or the controller changed: what happens next is not compared with older forecasts.
    pub fn restart(&mut self) {
        self.outcomes.restart();
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
            Applied::Lease(_) | Applied::Other => {}
        }
        Vec::new()
    }

    /// How right the forecasts have been until now.
    pub fn report(&self) -> AccuracyReport {
        let mut errors: Vec<Span> = self.errors.iter().copied().map(comparison::magnitude).collect();
        errors.sort();
        let late_or_early =
            |sign: i64| self.errors.iter().map(|error| *error * sign).max().filter(|most| *most > Span::ZERO);
        AccuracyReport {
            kinds: self.counts.clone(),
            median: errors.get(errors.len() / 2).copied(),
            worst: errors.last().copied(),
            // An event that happened early was predicted for later.
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

    /// Compares an event with the last forecast that is old enough, and with `latest` if that has it for much later. Its pod was
    /// created at `created`.
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

/// When a forecast has the event, beyond the near future that is kept.
fn predicted_later(forecast: &Forecast, event: &ControllerEvent) -> Option<Timestamp> {
    let of_node = forecast.of_node(&event.node);
    let same = of_node.filter_map(|step| ControllerEvent::predicted(step, |_| event.zone.clone()));
    same.filter(|other| other.identity() == event.identity()).map(|other| other.at).find(|at| *at > event.at)
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
pub(super) fn keep<T>(values: &mut VecDeque<T>, value: T, most: usize) {
    if values.len() == most {
        values.pop_front();
    }
    values.push_back(value);
}
