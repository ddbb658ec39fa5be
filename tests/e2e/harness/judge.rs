//! Holds what the real controllers did against what was foretold five seconds before, and what was foretold against
//! what they did.

mod explain;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
};

use kordon::{
    engine::{Cause, Why},
    forecast::{Forecast, ForecastKind, ForecastStep},
    time::{Span, Timestamp},
};

use explain::{EVERYWHERE, MISSED, SLOW, follows_taint};

use super::{
    observer::Look,
    plane::ControllerManager,
    player::{Done, FOREIGN_TAINT},
    script::{Deed, zone_of},
    witness::{Effect, Kind},
};

/// How long before it happens a thing must be foretold.
const NOTICE: Span = Span::from_secs(5);
/// An error beyond this is not noise: something else was foretold.
pub const GROSS: Span = Span::from_secs(15);
/// What happened so long ago is judged: by then the deeds that bear on it are known, and what was foretold for the
/// same time has come or has not.
const SETTLED: Span = Span::from_secs(24);
/// What one watch tells a little sooner or later than another.
const THAT_MOMENT: Span = Span::from_millis(300);
/// Forecasts are kept for so long.
const KEPT: Span = Span::from_secs(60);
/// A loop that is later than this stood still.
const LATE: Span = Span::from_millis(500);

/// Judges as it goes along: hand it what was seen, and call [`Judge::judge`] now and then.
pub struct Judge {
    /// By how much a foretold time may be off: a monitor period and a second.
    tolerance: Span,
    period: Span,
    grace: Span,
    /// Taints a second in a zone.
    rates: [f64; 2],
    /// The last forecasts; of the first so many the steps were judged.
    looks: VecDeque<Look>,
    looks_judged: usize,
    deeds: Vec<Done>,
    acts: Vec<Act>,
    acts_judged: usize,
    /// Which nodes are Ready, and which of the controllers' own NoExecute taints they have.
    ready: BTreeSet<String>,
    tainted: BTreeMap<String, BTreeSet<String>>,
    /// How many nodes each zone has.
    sizes: BTreeMap<String, usize>,
    /// When a zone became disrupted, partially or fully.
    disruptions: Vec<(Timestamp, String)>,
    /// When no node was left that is Ready.
    blackouts: Vec<Timestamp>,
    /// Pods of which taint eviction said that it deletes them.
    marked: BTreeSet<String>,
    tallies: BTreeMap<Sort, Tally>,
    reverse: Reverse,
    /// When the observer's loop stood still, and for how long.
    pub late: Vec<(Timestamp, Span)>,
}

/// One thing that the controllers did, or are foretold to do.
#[derive(Clone, Debug)]
struct Act {
    at: Timestamp,
    sort: Sort,
    node: String,
    /// The pod, where one is deleted.
    pod: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sort {
    Unknown,
    /// A NoExecute taint that waited for a token of its zone.
    NoExecute,
    /// A NoExecute taint in place of the opposite one: no limiter is asked.
    Swap,
    Deletion,
    /// The garbage collector, which does not run here, removes a pod.
    Collection,
}

/// What became of the acts of one sort.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// By how many seconds the foretold times were late (or, below zero, early), where a time was foretold.
    offs: Vec<f64>,
    within: usize,
    explained: BTreeMap<String, usize>,
    pub unexplained: Vec<Miss>,
}

/// What became of the things foretold for five seconds ahead.
#[derive(Clone, Debug, Default)]
pub struct Reverse {
    came: usize,
    explained: BTreeMap<String, usize>,
    pub absent: Vec<String>,
}

/// An act that was foretold for another time, or not at all, and nobody knows why.
#[derive(Clone, Debug)]
pub struct Miss {
    /// None where it was not foretold, or for another reason.
    pub off: Option<Span>,
    pub text: String,
}

/// What an act is worth.
enum Verdict {
    Foretold(Span),
    Explained(String),
    Unexplained(Miss),
}

impl Judge {
    /// Of nodes that are Ready, without taints.
    pub fn new(nodes: impl IntoIterator<Item = String>, manager: &ControllerManager) -> Self {
        let period = manager.monitor_period;
        let ready: BTreeSet<String> = nodes.into_iter().collect();
        let mut sizes = BTreeMap::<String, usize>::new();
        for node in &ready {
            *sizes.entry(zone_of(node).into()).or_default() += 1;
        }
        Self {
            tolerance: period + Span::from_secs(1),
            period,
            grace: manager.grace_period,
            rates: [manager.eviction_rate, manager.secondary_eviction_rate],
            looks: VecDeque::new(),
            looks_judged: 0,
            deeds: Vec::new(),
            acts: Vec::new(),
            acts_judged: 0,
            ready,
            tainted: BTreeMap::new(),
            sizes,
            disruptions: Vec::new(),
            blackouts: Vec::new(),
            marked: BTreeSet::new(),
            tallies: BTreeMap::new(),
            reverse: Reverse::default(),
            late: Vec::new(),
        }
    }

    pub fn hear_looks(&mut self, looks: Vec<Look>) {
        let late = |look: &Look| (look.late > LATE).then_some((look.forecast.made, look.late));
        self.late.extend(looks.iter().filter_map(late));
        self.looks.extend(looks);
    }

    pub fn hear_deeds(&mut self, deeds: Vec<Done>) {
        self.deeds.extend(deeds);
    }

    pub fn hear_effects(&mut self, effects: Vec<Effect>) {
        for Effect { at, kind } in effects {
            self.hear(at, kind);
        }
    }

    fn hear(&mut self, at: Timestamp, kind: Kind) {
        let act = |sort, node: &str, pod: &str| Act { at, sort, node: node.into(), pod: pod.into() };
        match kind {
            Kind::Condition { node, condition, status } if condition == "Ready" => {
                if status == "True" {
                    self.on_ready(node, at);
                } else {
                    self.on_not_ready(&node, at);
                    self.acts.extend((status == "Unknown").then(|| act(Sort::Unknown, &node, "")));
                }
            }
            Kind::NodeGone { node } => {
                self.ready.remove(&node);
                self.tainted.remove(&node);
            }
            Kind::TaintAdded { node, key, effect } if effect == "NoExecute" && key != FOREIGN_TAINT => {
                let taints = self.tainted.entry(node.clone()).or_default();
                let sort = if taints.is_empty() { Sort::NoExecute } else { Sort::Swap };
                taints.insert(key);
                self.acts.push(act(sort, &node, ""));
            }
            Kind::TaintRemoved { node, key, effect } if effect == "NoExecute" => {
                self.tainted.entry(node).or_default().remove(&key);
            }
            Kind::PodDisrupted { pod, reason } if reason == "DeletionByTaintManager" => {
                self.marked.insert(pod.name);
            }
            Kind::PodDeleted(pod) if self.marked.contains(&pod.name) => {
                self.acts.push(act(Sort::Deletion, &pod.node.unwrap_or_default(), &pod.name));
            }
            _ => {}
        }
    }

    fn on_not_ready(&mut self, node: &str, at: Timestamp) {
        let zone = zone_of(node);
        let is_disrupted = |judge: &Self| {
            let ready = judge.ready.iter().filter(|node| zone_of(node) == zone).count();
            let size = judge.sizes[zone];
            size - ready > 2 && (size - ready) * 100 >= size * 55
        };
        let before = is_disrupted(self);
        self.ready.remove(node);
        if is_disrupted(self) && !before {
            self.disruptions.push((at, zone.into()));
        }
        if self.ready.is_empty() {
            self.blackouts.push(at);
        }
    }

    /// The first node that is ready again where none was changes everything for all.
    fn on_ready(&mut self, node: String, at: Timestamp) {
        if self.ready.is_empty() {
            let revival = Done { began: at, ended: at, node: EVERYWHERE.into(), deed: Deed::ComeBack };
            self.deeds.push(revival);
        }
        self.ready.insert(node);
    }

    /// Judges what is settled by now, and tells what nobody can explain.
    pub fn judge(&mut self, now: Timestamp) -> Vec<String> {
        let mut told = Vec::new();
        while let Some(act) = self.acts.get(self.acts_judged).filter(|act| act.at + SETTLED <= now).cloned() {
            self.acts_judged += 1;
            let verdict = self.verdict(&act);
            let tally = self.tallies.entry(act.sort).or_default();
            match verdict {
                Verdict::Foretold(off) => {
                    tally.offs.push(off.as_secs_f64());
                    tally.within += 1;
                }
                Verdict::Explained(reason) => *tally.explained.entry(reason).or_default() += 1,
                Verdict::Unexplained(miss) => {
                    tally.offs.extend(miss.off.map(|off| off.as_secs_f64()));
                    told.push(miss.text.clone());
                    tally.unexplained.push(miss);
                }
            }
        }
        while let (Some(look), Some(next)) =
            (self.looks.get(self.looks_judged), self.looks.get(self.looks_judged + 1))
            && look.forecast.made + NOTICE + SETTLED <= now
        {
            let (look, next) = (look.forecast.clone(), next.forecast.made);
            self.looks_judged += 1;
            told.extend(self.judge_steps(&look, next));
        }
        while self.looks.front().is_some_and(|look| look.forecast.made + KEPT < now) && self.looks_judged > 0
        {
            self.looks.pop_front();
            self.looks_judged -= 1;
        }
        told
    }

    fn verdict(&self, act: &Act) -> Verdict {
        let Some(forecast) = self.before(act.at - NOTICE) else {
            return Verdict::Explained("it came before the first forecasts".into());
        };
        let found = self.find(forecast, act);
        let off = found.map(|(at, _)| at.since(act.at));
        let is_right = found.is_some_and(|(_, why)| self.is_right(act.sort, why));
        if let Some(off) = off.filter(|off| is_right && is_within(*off, self.tolerance)) {
            return Verdict::Foretold(off);
        }
        let slow = self.tolerance + self.slowness(act.at);
        if off.is_some_and(|off| is_right && is_within(off, slow)) {
            return Verdict::Explained(SLOW.into());
        }
        let missed = found.is_some_and(|(_, why)| act.sort == Sort::Unknown && self.renewed_in_a_pass(why));
        if off.is_some_and(|off| is_right && missed && is_within(off, self.tolerance + self.period)) {
            return Verdict::Explained(MISSED.into());
        }
        match self.explain(forecast, act) {
            Some(reason) => Verdict::Explained(reason),
            None => {
                let why = found.map_or_else(String::new, |(at, why)| format!("foretold for {at}: {why}"));
                let text =
                    format!("{act} was not foretold so at {}: {why}{}", forecast.made, self.around(act));
                Verdict::Unexplained(Miss { off: off.filter(|_| is_right), text })
            }
        }
    }

    /// The last forecast that was made by then, other than in the very moment of a taint: that one may know of it or
    /// not.
    fn before(&self, at: Timestamp) -> Option<&Forecast> {
        let in_that_moment = |made: Timestamp| {
            let just_before = |act: &Act| act.at > made - THAT_MOMENT && act.at <= made;
            self.acts.iter().any(|act| act.sort == Sort::NoExecute && just_before(act))
        };
        let forecasts = self.looks.iter().map(|look| &look.forecast);
        forecasts.rev().find(|forecast| forecast.made <= at && !in_that_moment(forecast.made))
    }

    /// For when a forecast has the act, and why.
    fn find<'a>(&self, forecast: &'a Forecast, act: &Act) -> Option<(Timestamp, &'a Why)> {
        let mut steps: Vec<(Act, &ForecastStep)> =
            forecast.steps.iter().map(|step| (Act::of(step), step)).collect();
        match act.sort {
            Sort::NoExecute => {
                // Which of the nodes that wait in a zone comes first is chance: the times are compared in order.
                let zone = zone_of(&act.node);
                steps.retain(|(step, _)| step.sort == act.sort && zone_of(&step.node) == zone);
                let in_zone = |real: &&Act| real.sort == act.sort && zone_of(&real.node) == zone;
                let earlier = self.acts.iter().filter(in_zone).filter(|real| real.at > forecast.made);
                let place = earlier.filter(|real| real.at < act.at).count();
                steps.get(place).map(|(step, of)| (step.at, &of.why))
            }
            Sort::Unknown | Sort::Swap | Sort::Collection => {
                steps.retain(|(step, _)| step.sort == act.sort && step.node == act.node);
                nearest(&steps, act.at).map(|(at, step)| (at, &step.why))
            }
            Sort::Deletion => {
                let taint =
                    |(step, _): &&(Act, &ForecastStep)| step.sort == Sort::NoExecute && step.node == act.node;
                let foretold = steps.iter().rfind(taint).map(|(step, _)| step.at);
                steps.retain(|(step, _)| step.sort == act.sort && step.pod == act.pod);
                let (at, step) = nearest(&steps, act.at)?;
                let later = foretold.filter(|taint| *taint <= at).and_then(|taint| {
                    // When its own node gets the taint may be chance: what follows counts from there.
                    let real = self.taint_since(forecast.made, act);
                    Some(real?.at.since(taint))
                });
                Some((at + later.unwrap_or(Span::ZERO), &step.why))
            }
        }
    }

    /// Whether the causes are those that must lead to such an act.
    fn is_right(&self, sort: Sort, why: &Why) -> bool {
        let any = |is: &dyn Fn(&Cause) -> bool| why.0.iter().any(is);
        match sort {
            Sort::Unknown => {
                any(&|cause| matches!(cause, Cause::LastHeartbeat { .. }))
                    && any(
                        &|cause| matches!(cause, Cause::Grace { flag: "node-monitor-grace-period", span } if *span == self.grace),
                    )
            }
            Sort::NoExecute => {
                any(&|cause| matches!(cause, Cause::Queued { .. }))
                    && any(&|cause| matches!(cause, Cause::Token { .. }))
            }
            Sort::Swap => any(&|cause| matches!(cause, Cause::Swapped)),
            Sort::Collection => false,
            Sort::Deletion => {
                any(&|cause| matches!(cause, Cause::Tainted { .. }))
                    && any(&|cause| matches!(cause, Cause::Tolerated { .. } | Cause::NotTolerated { .. }))
            }
        }
    }

    /// Whether what was foretold for five seconds after the forecast, until so long after the next, came.
    fn judge_steps(&mut self, forecast: &Forecast, next: Timestamp) -> Vec<String> {
        let mut told = Vec::new();
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        let steps: Vec<Act> = forecast.steps.iter().map(Act::of).collect();
        for step in &steps {
            let zone = zone_of(&step.node);
            let waits = step.sort == Sort::NoExecute;
            let place = waits.then(|| places.entry(zone).and_modify(|place| *place += 1).or_default());
            if step.at < forecast.made + NOTICE || step.at >= next + NOTICE {
                continue;
            }
            // Whether another taint takes its place, and when pods go, hangs on a node's taint: judged once that is there.
            let taint_comes =
                |other: &Act| other.sort == Sort::NoExecute && other.node == step.node && other.at <= step.at;
            if follows_taint(step.sort) && steps.iter().any(taint_comes) {
                continue;
            }
            let after = self.acts.iter().filter(|act| act.sort == step.sort && act.at > forecast.made);
            let came = match (place, step.sort) {
                (Some(place), _) => after.filter(|act| zone_of(&act.node) == zone).nth(*place),
                (None, _) => {
                    let mut same = after.filter(|act| act.node == step.node && act.pod == step.pod);
                    same.find(|act| is_within(act.at.since(step.at), GROSS))
                }
            };
            if came.is_some() {
                // By how much it was off is judged from the other side.
                self.reverse.came += 1;
            } else if let Some(reason) = self.why_not(forecast.made, step) {
                *self.reverse.explained.entry(reason).or_default() += 1;
            } else {
                let text = format!(
                    "{step} was foretold at {}, and did not happen{}",
                    forecast.made,
                    self.around(step)
                );
                told.push(text.clone());
                self.reverse.absent.push(text);
            }
        }
        told
    }

    /// What else was going on, for whoever has to find out.
    fn around(&self, act: &Act) -> String {
        let from = act.at - Span::from_secs(25);
        let near = |at: Timestamp| at > from && at < act.at + SETTLED;
        let zone = zone_of(&act.node);
        let deeds = self.deeds.iter().filter(|done| near(done.began));
        let deeds = deeds.filter(|done| zone_of(&done.node) == zone || done.node == EVERYWHERE);
        let deeds = deeds.map(|done| (done.began, format!("{:?} {}", done.deed, done.node)));
        let acts = self.acts.iter().filter(|other| near(other.at) && zone_of(&other.node) == zone);
        let own = |other: &&Act| other.sort != Sort::Deletion || other.node == act.node;
        let acts = acts.filter(own).map(|other| (other.at, other.to_string()));
        let late = self.late.iter().filter(|(at, _)| near(*at));
        let late = late.map(|(at, late)| (*at, format!("our own loop was late by {late}")));
        let mut all: Vec<(Timestamp, String)> = deeds.chain(acts).chain(late).collect();
        all.sort();
        let line = |(at, what): (Timestamp, String)| {
            format!("\n      {:>6.2} s  {what}", at.since(act.at).as_secs_f64())
        };
        all.into_iter().map(line).collect()
    }

    pub fn tallies(&self) -> &BTreeMap<Sort, Tally> {
        &self.tallies
    }

    pub fn reverse(&self) -> &Reverse {
        &self.reverse
    }
}

/// Whether a foretold time is near enough.
fn is_within(off: Span, tolerance: Span) -> bool {
    off <= tolerance && -off <= tolerance
}

fn nearest<'a>(steps: &[(Act, &'a ForecastStep)], at: Timestamp) -> Option<(Timestamp, &'a ForecastStep)> {
    let off = |step: &Act| step.at.since(at).max(at.since(step.at));
    steps.iter().min_by_key(|(step, _)| off(step)).map(|(step, of)| (step.at, *of))
}

impl Act {
    fn of(step: &ForecastStep) -> Self {
        let (sort, pod) = match &step.what {
            ForecastKind::Unknown { .. } => (Sort::Unknown, String::new()),
            ForecastKind::NoExecute { .. } if step.why.0.contains(&Cause::Swapped) => {
                (Sort::Swap, String::new())
            }
            ForecastKind::NoExecute { .. } => (Sort::NoExecute, String::new()),
            ForecastKind::Deleted { pod, .. } => (Sort::Deletion, pod.name.to_string()),
            ForecastKind::Removed { pod, .. } => (Sort::Collection, pod.name.to_string()),
        };
        Self { at: step.at, sort, node: step.what.node().to_string(), pod }
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} {} at {}", self.sort, self.node, self.pod, self.at)
    }
}

impl fmt::Display for Sort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Unknown => "Unknown",
            Self::NoExecute => "NoExecute taint",
            Self::Swap => "swapped taint",
            Self::Deletion => "deletion",
            Self::Collection => "collection",
        })
    }
}

/// Counts, the distribution of errors, and what was explained how.
impl fmt::Display for Judge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (sort, tally) in &self.tallies {
            let explained: usize = tally.explained.values().sum();
            let all = tally.within + explained + tally.unexplained.len();
            writeln!(
                f,
                "{sort}: {all} happened; {} foretold 5 s before within {}, {explained} explained, {} not explained",
                tally.within,
                self.tolerance,
                tally.unexplained.len()
            )?;
            writeln!(f, "    {}", Distribution(&tally.offs))?;
            for (reason, count) in &tally.explained {
                writeln!(f, "    explained: {count} because {reason}")?;
            }
        }
        let Reverse { came, explained, absent } = &self.reverse;
        let in_vain: usize = explained.values().sum::<usize>() + absent.len();
        writeln!(
            f,
            "foretold for 5 s later: {came} came, {in_vain} did not, {} of those for no known reason",
            absent.len()
        )?;
        for (reason, count) in explained {
            writeln!(f, "    explained: {count} because {reason}")?;
        }
        let worst = self.late.iter().map(|(_, late)| *late).max().unwrap_or_default();
        writeln!(f, "our own loop was late by more than {LATE} {} times, {worst} at worst", self.late.len())
    }
}

/// Of errors in seconds: above zero where it was foretold too late.
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
