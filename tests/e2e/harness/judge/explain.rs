//! What explains that an act was not foretold, or that something foretold did not come: deeds of the test that no
//! forecast could know of, and what is chance in upstream.

use kordon::{
    engine::{Cause, Why},
    forecast::Forecast,
    time::{Span, Timestamp},
};

use super::{Act, Judge, NOTICE, Sort, THAT_MOMENT, is_within};
use crate::harness::{
    player::Done,
    script::{Deed, zone_of},
};

impl Judge {
    /// What happened since the forecast, or so shortly before that it could not know of it, and bears on the act.
    ///
    /// It explains only so much: where there was time to foretell the act after it, that must have been done.
    pub(super) fn explain(&self, forecast: &Forecast, act: &Act) -> Option<String> {
        let chance = match act.sort {
            Sort::NoExecute if self.is_disrupted(act, act.at - self.tolerance, self.counts_until(act)) => {
                Some(SLIPPED)
            }
            _ if act.sort != Sort::Unknown && self.is_blackout_about(act) => Some(BLACKOUT),
            Sort::NoExecute if self.find(forecast, act).is_none_or(|(at, _)| at < act.at) => {
                self.lost_token(act)
            }
            _ => None,
        };
        if let Some(chance) = chance {
            return Some(chance.into());
        }
        let deed = self.deed(forecast.made, act, act.at);
        let by_deed = deed.map(|deed| (deed.ended + unseen(&deed.deed), reason(deed, act)));
        let (known, reason) = by_deed.or_else(|| {
            let made = forecast.made - unseen(&Deed::Taint);
            let taint = self.taint_since(made, act).filter(|_| follows_taint(act.sort))?;
            let reason = self.why_this_node(forecast, taint)?;
            Some((taint.at + unseen(&Deed::Taint), reason))
        })?;
        if let Some(forecast) = self.before(act.at).filter(|forecast| forecast.made >= known) {
            let (at, why) = self.find(forecast, act)?;
            if !is_within(at.since(act.at), self.tolerance) || !self.is_right(act.sort, why) {
                return None;
            }
        }
        Some(reason)
    }

    fn is_blackout_about(&self, act: &Act) -> bool {
        self.blackouts.iter().any(|at| is_within(at.since(act.at), self.tolerance + self.slowness(act.at)))
    }

    /// Why the token before that of a taint can have been lost: it went to a node that was back, before a pass took
    /// it out of the queue, or to one whose Unknown the tainting loop did not see yet, or to one that had its taint
    /// already and that a pass put in the queue again at the moment when it got it.
    fn lost_token(&self, taint: &Act) -> Option<&'static str> {
        let zone = zone_of(&taint.node);
        let went_at = |rate: &f64| taint.at - Span::from_secs_f64(1.0 / rate);
        let came_back = |at: Timestamp| {
            self.deeds.iter().any(|done| {
                matches!(done.deed, Deed::ComeBack | Deed::Post("True") | Deed::Remove)
                    && zone_of(&done.node) == zone
                    && done.began <= at
                    && at <= done.ended + self.tolerance
            })
        };
        let found_silent = |at: Timestamp| {
            self.acts.iter().any(|act| {
                act.sort == Sort::Unknown && zone_of(&act.node) == zone && is_within(at.since(act.at), BEATS)
            })
        };
        let queued_again = |at: Timestamp, rate: &f64| {
            let before = at - Span::from_secs_f64(1.0 / rate);
            let passes = |taint: &Act| {
                let found =
                    |act: &Act| act.sort == Sort::Unknown && is_within(act.at.since(taint.at), THAT_MOMENT);
                self.acts.iter().any(found)
            };
            self.acts.iter().any(|act| {
                act.sort == Sort::NoExecute
                    && zone_of(&act.node) == zone
                    && is_within(before.since(act.at), THAT_MOMENT)
                    && passes(act)
            })
        };
        self.rates.iter().find_map(|rate| match went_at(rate) {
            at if came_back(at) => Some(LOST_TOKEN),
            at if found_silent(at) => Some(EARLY_TOKEN),
            at => queued_again(at, rate).then_some(SPENT_TWICE),
        })
    }

    /// Until when a disruption that was foretold to stop a taint can have come in truth: it hangs on the last of many
    /// nodes, each of which may be found silent a pass later than foretold, the last one in the pass after that.
    fn counts_until(&self, taint: &Act) -> Timestamp {
        taint.at + self.tolerance + self.period
    }

    /// Whether the zone of a node became disrupted between two points in time.
    fn is_disrupted(&self, act: &Act, from: Timestamp, to: Timestamp) -> bool {
        let zone = zone_of(&act.node);
        self.disruptions.iter().any(|(at, of)| of == zone && *at >= from && *at <= to)
    }

    /// Why a node has got a taint that the forecast did not have for it: the pods that it costs were not foretold
    /// either. Which of the nodes that wait gets it is chance.
    fn why_this_node(&self, forecast: &Forecast, taint: &Act) -> Option<String> {
        let found = self.find(forecast, taint).map(|(at, _)| at);
        let Some(at) = found.filter(|at| is_within(at.since(taint.at), self.tolerance)) else {
            return self
                .explain(forecast, taint)
                .map(|reason| format!("{reason} (told of its node's taint)"));
        };
        let same = |step: &Act| step.sort == Sort::NoExecute && step.node == taint.node && step.at == at;
        let is_other = !forecast.steps.iter().map(Act::of).any(|step| same(&step));
        is_other.then(|| "its node got the taint that was foretold for another of its zone".into())
    }

    /// The taint that an act's node has got since then, before the act.
    pub(super) fn taint_since(&self, made: Timestamp, act: &Act) -> Option<&Act> {
        let of_node = |real: &&Act| real.sort == Sort::NoExecute && real.node == act.node;
        self.acts.iter().filter(of_node).rfind(|real| real.at > made && real.at <= act.at)
    }

    /// The last deed that a forecast made then cannot have known of and that bears on the act, until `until`.
    fn deed(&self, made: Timestamp, act: &Act, until: Timestamp) -> Option<&Done> {
        let bears = |done: &&Done| {
            // A pod that was not there could not be foretold; one that is there is no reason for anything to fail.
            (!adds_pods(&done.deed) || until == act.at)
                && done.began <= until
                && done.ended + unseen(&done.deed) > made
                && (self.concerns(done, act, made) || done.node == EVERYWHERE)
        };
        self.deeds.iter().filter(bears).max_by_key(|done| done.ended)
    }

    fn concerns(&self, done: &Done, act: &Act, made: Timestamp) -> bool {
        // How a zone fares, and who waits in it.
        let stirs_zone = match done.deed {
            Deed::ComeBack | Deed::Post(_) | Deed::Remove | Deed::Rejoin => {
                zone_of(&done.node) == zone_of(&act.node)
            }
            Deed::Silence | Deed::AddPod { .. } | Deed::Refill | Deed::Taint | Deed::Untaint => false,
        };
        let is_own = done.node == act.node;
        match act.sort {
            Sort::NoExecute => stirs_zone || is_own && !adds_pods(&done.deed),
            Sort::Deletion => is_own || stirs_zone && self.taint_since(made, act).is_some(),
            Sort::Unknown | Sort::Swap | Sort::Collection => is_own && !adds_pods(&done.deed),
        }
    }

    /// Why something that a forecast made then has did not come.
    pub(super) fn why_not(&self, made: Timestamp, step: &Act) -> Option<String> {
        let latest = step.at + self.tolerance;
        let latest = latest + self.slowness(latest);
        if let Some(deed) = self.deed(made, step, latest) {
            return Some(reason(deed, step));
        }
        if step.sort == Sort::NoExecute && self.is_disrupted(step, made, latest + self.period) {
            return Some(SLIPPED.into());
        }
        (step.sort != Sort::Unknown && self.is_blackout_about(step)).then(|| BLACKOUT.into())
    }

    /// Whether the last sign of life that a forecast counts from came while the controller was in a pass: that one may
    /// have seen it or not, and the next one is a period later. The shadow's own pass comes some beats after it.
    pub(super) fn renewed_in_a_pass(&self, why: &Why) -> bool {
        let seen = why.0.iter().find_map(|cause| match cause {
            Cause::LastHeartbeat { at, .. } => Some(*at),
            _ => None,
        });
        let in_that_pass = |at: Timestamp| {
            self.acts
                .iter()
                .any(|act| act.sort == Sort::Unknown && is_within(act.at.since(at), BEATS + THAT_MOMENT))
        };
        seen.is_some_and(in_that_pass)
    }

    /// How much longer than nothing the controller's passes took just before, as far as it shows: from the first node
    /// that one found silent to the last. By so much the later ones are put off. What lies less than a period apart
    /// belongs to one pass, for the next begins a period after its end.
    pub(super) fn slowness(&self, at: Timestamp) -> Span {
        let begun = at - NOTICE - self.period;
        let found = |act: &&Act| act.sort == Sort::Unknown && act.at >= begun && act.at <= at;
        let times: Vec<Timestamp> = self.acts.iter().filter(found).map(|act| act.at).collect();
        let gaps = times.windows(2).map(|pair| pair[1].since(pair[0]));
        gaps.filter(|gap| *gap + THAT_MOMENT < self.period).fold(Span::ZERO, |sum, gap| sum + gap)
    }
}

/// A pass that finds a zone disrupted slows or stops its queue only at its end, and the tainting loop runs meanwhile;
/// and a node may be found silent a pass sooner or later.
const SLIPPED: &str =
    "its zone became disrupted within two passes, and whether a taint slips in before is chance";
/// A node that is back stays in the queue until the next pass.
const LOST_TOKEN: &str = "the token before went to a node of its zone that had just come back, and was lost";
/// Since 1.34 a node is queued in the very pass that marks it.
const EARLY_TOKEN: &str =
    "the tainting loop came before its cache had the news that the node is Unknown, and the token was lost";
/// A pass takes every node that it saw without the taint out of the queue and puts it back at its end. One that was
/// tainted meanwhile stays there, before all others, until a token is spent on it once more.
const SPENT_TWICE: &str = "a pass came while the node before it was tainted and queued that again, and the token went to it once more";
/// Some beats of the tainting loop.
const BEATS: Span = Span::from_millis(400);
/// What everything being down puts an end to.
const BLACKOUT: &str =
    "everything became disrupted at about the same time, which calls off what was under way";
/// A forecast takes a pass for a matter of a millisecond.
pub(super) const SLOW: &str = "the controller's passes took long, for they had much to write";

pub(super) const MISSED: &str =
    "its last sign of life came in the middle of a pass, and whether that pass saw it is chance";

/// Stands for all nodes in a deed that concerns all.
pub(super) const EVERYWHERE: &str = "*";

/// How long after a deed forecasts may not know of it: until the watch has told of it and the next forecast is made;
/// a node is taken for silent when it has missed a heartbeat and a half.
fn unseen(deed: &Deed) -> Span {
    match deed {
        Deed::Silence => Span::from_millis(3500),
        _ => Span::from_secs(1),
    }
}

fn reason(deed: &Done, act: &Act) -> String {
    let whose = match deed.node.as_str() {
        node if node == act.node => "the node itself",
        EVERYWHERE => "the first node of all that were down",
        _ => "another node of its zone",
    };
    let what = match &deed.deed {
        Deed::Silence => "fell silent",
        Deed::ComeBack => "came back",
        Deed::Post("True") => "posted Ready=True",
        Deed::Post(_) => "posted Ready=False",
        Deed::Remove => "was removed",
        Deed::Rejoin => "was registered again",
        Deed::AddPod { .. } | Deed::Refill => "got a new pod",
        Deed::Taint => "was tainted by somebody",
        Deed::Untaint => "was untainted by somebody",
    };
    format!("{whose} {what} less than 5 s before")
}

fn adds_pods(deed: &Deed) -> bool {
    matches!(deed, Deed::AddPod { .. } | Deed::Refill)
}

/// Whether such a thing follows from the taint that its node got after it had waited.
pub(super) fn follows_taint(sort: Sort) -> bool {
    matches!(sort, Sort::Swap | Sort::Deletion)
}
