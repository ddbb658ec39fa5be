//! Compares events of the real controllers with predictions in both directions: every event needs a prediction made
//! five seconds before it, and every predicted event has to happen.

mod explain;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
};

use kordon_core::{
    cluster::{Key, NodeName, ZoneKey},
    engine::{Cause, Why},
    forecast::{
        ControllerEvent, EventKind, Forecast, ForecastStep,
        accuracy::{self, NOTICE},
        comparison::{magnitude, predicted_time},
    },
};
use kordon_time::{Span, Timestamp};

use explain::{MISSED, SLOW, follows_taint};

use super::{
    effect_watcher::{Effect, EffectKind},
    incident_player::{CompletedAction, FOREIGN_TAINT},
    observer::Sample,
    plane::ControllerManager,
    script::{EVERYWHERE, IncidentAction, zone_of},
};

/// Largest error of a predicted time. A prediction with a larger error counts as a prediction of another event.
const GROSS: Span = Span::from_secs(15);
/// Age at which an event is checked. By then, the test knows all of its own actions that affect the event, and
/// everything predicted for the same time has happened or will not happen.
const SETTLED: Span = Span::from_secs(24);
/// Maximum difference between the times at which two watches report a change.
const THAT_MOMENT: Span = Span::from_millis(300);
/// How long forecasts are kept.
const KEPT: Span = Span::from_secs(60);
/// Delay above which a forecast counts as late.
const LATE: Span = Span::from_millis(500);

/// Checks forecasts while the test runs. The test adds samples, actions and effects, and calls
/// [`ForecastChecker::check`] regularly.
pub struct ForecastChecker {
    /// Allowed error of a predicted time: a monitor period and a second.
    tolerance: Span,
    period: Span,
    grace: Span,
    /// Taints per second in a zone: the normal and the reduced rate.
    rates: [f64; 2],
    /// The latest forecasts. The steps of the first `samples_checked` are checked already.
    samples: VecDeque<Sample>,
    samples_checked: usize,
    actions: Vec<CompletedAction>,
    events: Vec<ControllerEvent>,
    events_checked: usize,
    /// Nodes that are Ready. `tainted` has the controllers' own NoExecute taints on each node.
    ready: BTreeSet<String>,
    tainted: BTreeMap<String, BTreeSet<String>>,
    /// Number of nodes in each zone.
    sizes: BTreeMap<String, usize>,
    /// Times at which a zone became disrupted, partially or fully.
    disruptions: Vec<(Timestamp, String)>,
    /// Times at which the last Ready node became not Ready.
    blackouts: Vec<Timestamp>,
    /// Times at which another controller manager became the leader.
    leaders: Vec<Timestamp>,
    /// Pods with the condition that announces their deletion by taint eviction.
    marked: BTreeSet<String>,
    tallies: BTreeMap<EventKind, Tally>,
    predictions: PredictionTally,
    /// Times of late forecasts, and their delays.
    pub late: Vec<(Timestamp, Span)>,
    /// Node explanations in which an effect comes before its cause.
    pub out_of_order: Vec<String>,
}

/// The results for the events of one kind.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Errors of the predicted times in seconds; negative values are early predictions.
    offs: Vec<f64>,
    within: usize,
    explained: BTreeMap<String, usize>,
    pub unexplained: Vec<Miss>,
}

/// The results for the events predicted five seconds ahead.
#[derive(Clone, Debug, Default)]
pub struct PredictionTally {
    happened: usize,
    explained: BTreeMap<String, usize>,
    pub absent: Vec<String>,
}

/// An event whose prediction is missing or has a wrong time, without an explanation.
#[derive(Clone, Debug)]
pub struct Miss {
    /// Error of the predicted time. `None` if the event was not predicted, or was predicted with another cause.
    pub off: Option<Span>,
    pub text: String,
}

/// The result for one event.
enum Verdict {
    Predicted(Span),
    Explained(String),
    Unexplained(Miss),
}

impl ForecastChecker {
    /// Creates a checker for nodes that are all Ready and have no taints.
    pub fn new(nodes: impl IntoIterator<Item = String>, manager: &ControllerManager) -> Self {
        let period = manager.monitor_period;
        let ready: BTreeSet<String> = nodes.into_iter().collect();
        let mut sizes = BTreeMap::<String, usize>::new();
        for node in &ready {
            *sizes.entry(zone_of(node).into()).or_default() += 1;
        }
        Self {
            tolerance: accuracy::tolerance(period),
            period,
            grace: manager.grace_period,
            rates: [manager.eviction_rate, manager.secondary_eviction_rate],
            samples: VecDeque::new(),
            samples_checked: 0,
            actions: Vec::new(),
            events: Vec::new(),
            events_checked: 0,
            ready,
            tainted: BTreeMap::new(),
            sizes,
            disruptions: Vec::new(),
            blackouts: Vec::new(),
            leaders: Vec::new(),
            marked: BTreeSet::new(),
            tallies: BTreeMap::new(),
            predictions: PredictionTally::default(),
            late: Vec::new(),
            out_of_order: Vec::new(),
        }
    }

    pub fn add_samples(&mut self, samples: Vec<Sample>) {
        let late = |sample: &Sample| (sample.late > LATE).then_some((sample.forecast.made, sample.late));
        self.late.extend(samples.iter().filter_map(late));
        self.out_of_order.extend(samples.iter().flat_map(|sample| sample.out_of_order.iter().cloned()));
        self.samples.extend(samples);
    }

    pub fn add_actions(&mut self, actions: Vec<CompletedAction>) {
        self.actions.extend(actions);
    }

    pub fn add_effects(&mut self, effects: Vec<Effect>) {
        for Effect { at, kind } in effects {
            self.on_effect(at, kind);
        }
    }

    fn on_effect(&mut self, at: Timestamp, kind: EffectKind) {
        let event = |kind, node: &str, pod| ControllerEvent {
            at,
            kind,
            node: node.into(),
            zone: zone_key(&node.into()),
            pod,
        };
        match kind {
            EffectKind::Condition { node, condition, status } if condition == "Ready" => {
                if status == "True" {
                    self.on_ready(node, at);
                } else {
                    self.on_not_ready(&node, at);
                    self.events.extend((status == "Unknown").then(|| event(EventKind::Unknown, &node, None)));
                }
            }
            EffectKind::NodeGone { node } => {
                self.ready.remove(&node);
                self.tainted.remove(&node);
            }
            EffectKind::TaintAdded { node, key, effect } if effect == "NoExecute" && key != FOREIGN_TAINT => {
                let taints = self.tainted.entry(node.clone()).or_default();
                let kind = if taints.is_empty() { EventKind::NoExecute } else { EventKind::Swap };
                taints.insert(key);
                self.events.push(event(kind, &node, None));
            }
            EffectKind::TaintRemoved { node, key, effect } if effect == "NoExecute" => {
                self.tainted.entry(node).or_default().remove(&key);
            }
            EffectKind::PodDisrupted { pod, reason } if reason == "DeletionByTaintManager" => {
                self.marked.insert(pod.name);
            }
            EffectKind::PodDeleted(pod) if self.marked.contains(&pod.name) => {
                let key = Key::new(&pod.namespace, &pod.name);
                self.events.push(event(EventKind::Deletion, &pod.node.unwrap_or_default(), Some(key)));
            }
            EffectKind::LeaderChanged { .. } => {
                self.leaders.push(at);
                // A new controller learns the state of the zones only in its first pass. At the start of that pass,
                // every zone has a full token bucket.
                let disrupted = self.sizes.keys().filter(|zone| self.is_disrupted_now(zone));
                let disrupted: Vec<_> = disrupted.map(|zone| (at, zone.clone())).collect();
                self.disruptions.extend(disrupted);
                self.add_consequence(at, IncidentAction::BecomeLeader);
            }
            _ => {}
        }
    }

    /// Records a consequence of the test's actions that affects all nodes.
    pub fn add_consequence(&mut self, at: Timestamp, action: IncidentAction) {
        let node = EVERYWHERE.into();
        self.actions.push(CompletedAction { started: at, finished: at, node, action });
    }

    fn on_not_ready(&mut self, node: &str, at: Timestamp) {
        let zone = zone_of(node);
        let before = self.is_disrupted_now(zone);
        self.ready.remove(node);
        if self.is_disrupted_now(zone) && !before {
            self.disruptions.push((at, zone.into()));
        }
        if self.ready.is_empty() {
            self.blackouts.push(at);
        }
    }

    fn is_disrupted_now(&self, zone: &str) -> bool {
        let ready = self.ready.iter().filter(|node| zone_of(node) == zone).count();
        let size = self.sizes[zone];
        size - ready > 2 && (size - ready) * 100 >= size * 55
    }

    /// If no node was Ready before, the first node that becomes Ready affects all zones.
    fn on_ready(&mut self, node: String, at: Timestamp) {
        if self.ready.is_empty() {
            self.add_consequence(at, IncidentAction::ComeBack);
        }
        self.ready.insert(node);
    }

    /// Checks the events that are old enough. Returns the events without an explanation.
    pub fn check(&mut self, now: Timestamp) -> Vec<String> {
        let mut unexplained = Vec::new();
        while let Some(event) =
            self.events.get(self.events_checked).filter(|event| event.at + SETTLED <= now).cloned()
        {
            self.events_checked += 1;
            let verdict = self.verdict(&event);
            let tally = self.tallies.entry(event.kind).or_default();
            match verdict {
                Verdict::Predicted(off) => {
                    tally.offs.push(off.as_secs_f64());
                    tally.within += 1;
                }
                Verdict::Explained(reason) => *tally.explained.entry(reason).or_default() += 1,
                Verdict::Unexplained(miss) => {
                    tally.offs.extend(miss.off.map(|off| off.as_secs_f64()));
                    unexplained.push(miss.text.clone());
                    tally.unexplained.push(miss);
                }
            }
        }
        while let (Some(sample), Some(next)) =
            (self.samples.get(self.samples_checked), self.samples.get(self.samples_checked + 1))
            && sample.forecast.made + NOTICE + SETTLED <= now
        {
            let (sample, next) = (sample.forecast.clone(), next.forecast.made);
            self.samples_checked += 1;
            unexplained.extend(self.check_steps(&sample, next));
        }
        while self.samples.front().is_some_and(|sample| sample.forecast.made + KEPT < now)
            && self.samples_checked > 0
        {
            self.samples.pop_front();
            self.samples_checked -= 1;
        }
        unexplained
    }

    fn verdict(&self, event: &ControllerEvent) -> Verdict {
        let Some(forecast) = self.before(event.at - NOTICE) else {
            return Verdict::Explained("it happened before the first forecasts".into());
        };
        let found = self.find(forecast, event);
        let off = found.map(|(at, _)| at.since(event.at));
        let is_right = found.is_some_and(|(at, why)| self.is_right(event.kind, at, why, forecast.made));
        if let Some(off) = off.filter(|off| is_right && is_within(*off, self.tolerance)) {
            return Verdict::Predicted(off);
        }
        let slow = self.tolerance + self.slowness(event.at);
        if off.is_some_and(|off| is_right && is_within(off, slow)) {
            return Verdict::Explained(SLOW.into());
        }
        // A pass that finds a node silent may both mark it Unknown and taint it. So both events depend directly on the
        // last heartbeat.
        let from_silence = matches!(event.kind, EventKind::Unknown | EventKind::NoExecute);
        let missed = found.is_some_and(|(_, why)| from_silence && self.renewed_in_a_pass(why));
        if off.is_some_and(|off| is_right && missed && is_within(off, self.tolerance + self.period)) {
            return Verdict::Explained(MISSED.into());
        }
        match self.explain(forecast, event) {
            Some(reason) => Verdict::Explained(reason),
            None => {
                let why = found.map_or_else(String::new, |(at, why)| format!("predicted for {at}: {why}"));
                let text = format!(
                    "{} was not predicted so at {}: {why}{}",
                    words(event),
                    forecast.made,
                    self.around(event)
                );
                Verdict::Unexplained(Miss { off: off.filter(|_| is_right), text })
            }
        }
    }

    /// Returns the last forecast made until `at`. Skips forecasts made within [`THAT_MOMENT`] after a taint, because
    /// such a forecast may or may not include the taint.
    fn before(&self, at: Timestamp) -> Option<&Forecast> {
        let in_that_moment = |made: Timestamp| {
            let just_before = |event: &ControllerEvent| event.at > made - THAT_MOMENT && event.at <= made;
            self.events.iter().any(|event| event.kind == EventKind::NoExecute && just_before(event))
        };
        let forecasts = self.samples.iter().map(|sample| &sample.forecast);
        forecasts.rev().find(|forecast| forecast.made <= at && !in_that_moment(forecast.made))
    }

    /// Returns the time at which a forecast predicts the event, and the predicted causes. Uses the rule by which kordon
    /// itself measures the accuracy of predictions.
    fn find<'a>(&self, forecast: &'a Forecast, event: &ControllerEvent) -> Option<(Timestamp, &'a Why)> {
        let (steps, predicted): (Vec<&ForecastStep>, Vec<ControllerEvent>) =
            forecast.steps.iter().filter_map(|step| Some((step, predicted(step)?))).unzip();
        let earlier = self.events.iter().filter(|real| real.at > forecast.made && real.at < event.at);
        let (place, at) = predicted_time(&predicted, earlier, event)?;
        Some((at, &steps[place].why))
    }

    /// Whether the causes in a forecast made at `made` fit an event of this kind at `at`. They do not fit if a cause is
    /// later than its effect.
    fn is_right(&self, kind: EventKind, at: Timestamp, why: &Why, made: Timestamp) -> bool {
        if !times(why).chain([at]).is_sorted() {
            return false;
        }
        let any = |is: &dyn Fn(&Cause) -> bool| why.0.iter().any(is);
        match kind {
            EventKind::Unknown => {
                self.names_restart(why, made)
                    && any(&|cause| matches!(cause, Cause::LastHeartbeat { .. }))
                    && any(
                        &|cause| matches!(cause, Cause::Grace { flag: "node-monitor-grace-period", span } if *span == self.grace),
                    )
            }
            EventKind::NoExecute => {
                any(&|cause| matches!(cause, Cause::Queued { .. }))
                    && any(&|cause| matches!(cause, Cause::Token { .. }))
            }
            EventKind::Swap => any(&|cause| matches!(cause, Cause::Swapped)),
            EventKind::Deletion => {
                any(&|cause| matches!(cause, Cause::Tainted { .. }))
                    && any(&|cause| matches!(cause, Cause::Tolerated { .. } | Cause::NotTolerated { .. }))
            }
        }
    }

    /// Whether the causes name the restart of the grace period, or need not name it. They have to if the node fell
    /// silent before the controller manager was replaced.
    fn names_restart(&self, why: &Why, made: Timestamp) -> bool {
        let Some(leader) = self.leaders.iter().rfind(|leader| **leader <= made) else { return true };
        // The acquire time of a Lease is the start of the attempt that acquired it.
        let since = *leader - self.tolerance;
        let silent = |cause: &Cause| matches!(cause, Cause::LastHeartbeat { at, .. } if *at < since);
        let restarted = |cause: &Cause| matches!(cause, Cause::GraceRestarted { at, .. } if *at >= since);
        !why.0.iter().any(silent) || why.0.iter().any(restarted)
    }

    /// Checks whether the steps of a forecast happened. Checks only steps that are due between five seconds after this
    /// forecast and five seconds after the next forecast.
    fn check_steps(&mut self, forecast: &Forecast, next: Timestamp) -> Vec<String> {
        let mut unexplained = Vec::new();
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        let is_due = |at: Timestamp| at >= forecast.made + NOTICE && at < next + NOTICE;
        let collected = forecast.steps.iter().filter(|step| is_due(step.at) && predicted(step).is_none());
        unexplained.extend(collected.map(|step| format!("{:?}: no garbage collector runs here", step.kind)));
        let steps: Vec<ControllerEvent> = forecast.steps.iter().filter_map(predicted).collect();
        for step in &steps {
            let zone = zone_of(&step.node);
            let waits = step.kind == EventKind::NoExecute;
            let place = waits.then(|| places.entry(zone).and_modify(|place| *place += 1).or_default());
            if !is_due(step.at) {
                continue;
            }
            // Swaps of taints and deletions of pods depend on the node's taint. They are checked only once the node has
            // the taint.
            let taint_comes = |other: &ControllerEvent| {
                other.kind == EventKind::NoExecute && other.node == step.node && other.at <= step.at
            };
            if follows_taint(step.kind) && steps.iter().any(taint_comes) {
                continue;
            }
            let after =
                self.events.iter().filter(|event| event.kind == step.kind && event.at > forecast.made);
            let happened = match (place, step.kind) {
                (Some(place), _) => after.filter(|event| zone_of(&event.node) == zone).nth(*place),
                (None, _) => {
                    let mut same = after.filter(|event| event.node == step.node && event.pod == step.pod);
                    same.find(|event| is_within(event.at.since(step.at), GROSS))
                }
            };
            if happened.is_some() {
                // Only counts that the event happened; `verdict` checks its time.
                self.predictions.happened += 1;
            } else if let Some(reason) = self.why_not(forecast.made, step) {
                *self.predictions.explained.entry(reason).or_default() += 1;
            } else {
                let text = format!(
                    "{} was predicted at {}, and did not happen{}",
                    words(step),
                    forecast.made,
                    self.around(step)
                );
                unexplained.push(text.clone());
                self.predictions.absent.push(text);
            }
        }
        unexplained
    }

    /// Describes other events around the event, to help find the cause of a mismatch.
    fn around(&self, event: &ControllerEvent) -> String {
        let from = event.at - Span::from_secs(25);
        let near = |at: Timestamp| at > from && at < event.at + SETTLED;
        let zone = zone_of(&event.node);
        let actions = self.actions.iter().filter(|done| near(done.started));
        let actions = actions.filter(|done| zone_of(&done.node) == zone || done.node == EVERYWHERE);
        let actions = actions.map(|done| (done.started, format!("{:?} {}", done.action, done.node)));
        let events = self.events.iter().filter(|other| near(other.at) && zone_of(&other.node) == zone);
        let own = |other: &&ControllerEvent| other.kind != EventKind::Deletion || other.node == event.node;
        let events = events.filter(own).map(|other| (other.at, words(other)));
        let late = self.late.iter().filter(|(at, _)| near(*at));
        let late = late.map(|(at, late)| (*at, format!("a forecast was late by {late}")));
        let mut all: Vec<(Timestamp, String)> = actions.chain(events).chain(late).collect();
        all.sort();
        let line = |(at, what): (Timestamp, String)| {
            format!("\n      {:>6.2} s  {what}", at.since(event.at).as_secs_f64())
        };
        all.into_iter().map(line).collect()
    }

    pub fn tallies(&self) -> &BTreeMap<EventKind, Tally> {
        &self.tallies
    }

    pub fn predictions(&self) -> &PredictionTally {
        &self.predictions
    }
}

/// Returns the times in a chain of causes, in the order of the chain. Some causes have no time.
fn times(why: &Why) -> impl Iterator<Item = Timestamp> {
    why.0.iter().filter_map(|cause| match cause {
        Cause::LastHeartbeat { at, .. } | Cause::GraceRestarted { at, .. } => Some(*at),
        Cause::Tainted { since, .. } => Some(*since),
        _ => None,
    })
}

/// Whether an error is within a tolerance.
fn is_within(off: Span, tolerance: Span) -> bool {
    magnitude(off) <= tolerance
}

/// Returns the event that a step predicts; `None` for a step of the garbage collector, which does not run here.
fn predicted(step: &ForecastStep) -> Option<ControllerEvent> {
    ControllerEvent::predicted(step, zone_key)
}

fn zone_key(node: &NodeName) -> ZoneKey {
    ZoneKey { region: "".into(), zone: zone_of(node).into() }
}

fn words(event: &ControllerEvent) -> String {
    let pod = event.pod.as_ref().map(|pod| format!(" {pod}")).unwrap_or_default();
    format!("{} of {}{pod} at {}", event.kind, event.node, event.at)
}

/// Shows the counts, the distribution of errors, and the explanations.
impl fmt::Display for ForecastChecker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, tally) in &self.tallies {
            let explained: usize = tally.explained.values().sum();
            let all = tally.within + explained + tally.unexplained.len();
            writeln!(
                f,
                "{kind}: {all} happened; {} predicted 5 s before within {}, {explained} explained, {} not explained",
                tally.within,
                self.tolerance,
                tally.unexplained.len()
            )?;
            writeln!(f, "    {}", Distribution(&tally.offs))?;
            for (reason, count) in &tally.explained {
                writeln!(f, "    explained: {count} because {reason}")?;
            }
        }
        let PredictionTally { happened, explained, absent } = &self.predictions;
        let absent_count: usize = explained.values().sum::<usize>() + absent.len();
        writeln!(
            f,
            "predicted for 5 s later: {happened} happened, {absent_count} did not, {} of those for no known reason",
            absent.len()
        )?;
        for (reason, count) in explained {
            writeln!(f, "    explained: {count} because {reason}")?;
        }
        let offs: Vec<f64> = self.tallies.values().flat_map(|tally| tally.offs.iter().copied()).collect();
        let unexplained: usize = self.tallies.values().map(|tally| tally.unexplained.len()).sum();
        writeln!(
            f,
            "in all: {} predictions made, {happened} came true, {} unexplained; {} times {}",
            happened + absent_count,
            unexplained + absent.len(),
            offs.len(),
            Distribution(&offs)
        )?;
        let worst = self.late.iter().map(|(_, late)| *late).max().unwrap_or_default();
        writeln!(f, "{} forecasts were late by more than {LATE}, the worst by {worst}", self.late.len())
    }
}

/// The distribution of errors in seconds; positive errors are late predictions.
struct Distribution<'a>(&'a [f64]);

impl fmt::Display for Distribution<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut offs = self.0.to_vec();
        offs.sort_by(f64::total_cmp);
        let mut sizes: Vec<f64> = offs.iter().map(|off| off.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let (Some(least), Some(most)) = (offs.first(), offs.last()) else {
            return f.write_str("no times to compare");
        };
        let at = |share: usize| sizes[(sizes.len() - 1) * share / 100];
        write!(
            f,
            "off by {least:+.2} s to {most:+.2} s; without sign: median {:.2} s, p90 {:.2} s, p99 {:.2} s, max {:.2} s",
            at(50),
            at(90),
            at(99),
            at(100)
        )
    }
}
