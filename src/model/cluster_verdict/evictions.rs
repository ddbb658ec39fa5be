//! Findings about pods that are to be evicted or were evicted, and about the next events of nodes.

use std::collections::BTreeSet;

use super::{
    Finding, PartKind, Phrase, VerdictLevel, coarse,
    nodes::{QuietNodes, is_missing},
    seconds, time_until,
};
use crate::model::{EvictionRow, EvictionState, Model, NextEventKind, NodeState};
use kordon_core::{
    cluster::{FeedKind, Key, NodeName},
    engine::{Cause, controllers_own},
    forecast::{EventRanges, Forecast, TimeRange},
    plan::words::counted,
};
use kordon_time::Timestamp;

/// Returns the next event of the node in the worst finding: `Unknown in 14s`.
pub(super) fn own_event(model: &Model, node: &NodeName, now: Timestamp) -> Option<Finding> {
    let event = model.views.leaving.next.get(node).filter(|_| model.views.is_predicted())?;
    let phrase = Phrase::from(format!("{} ", state_word(event.what)?));
    let phrase = phrase.time(until_event(model, node, event.what, event.at?, now));
    Some(Finding::new(VerdictLevel::Notice, phrase).shortens_to(PartKind::OwnEvent, Vec::new()))
}

/// Returns the findings about the next pods to be evicted. If the worst finding is about one node, the pods of this
/// node come first, then those of all nodes. The order is reversed if a pod of another node is evicted before them.
/// `users` is the part before, about the pods that have nowhere to run.
///
/// `3 pods of n-3 to be evicted, next in 12s · all nodes: 7, next in 12s`, `all nodes: 7 pods to be evicted, next in 12s
/// (n-5) · 3 pods of n-3 to be evicted, next in 4m57s`, `44 pods to be evicted, first in 1m12s`, `71 pods to be evicted
/// within 10m, next in 1s, more later`.
pub(super) fn next(
    model: &Model,
    subject: Option<&NodeName>,
    users: Option<&Finding>,
    quiet: Option<&QuietNodes<'_>>,
    now: Timestamp,
) -> Vec<Finding> {
    if !model.views.is_predicted() {
        return Vec::new();
    }
    let views = &model.views;
    let says_of_all = users.is_some_and(|users| users.phrase.text.starts_with(ALL_NODES));
    let is_apart = users.is_some_and(|users| users.node.is_some());
    let pods = views.counts.leaving();
    let all = views.leaving.first.map(|at| Evictions { node: None, pods, at, subject, is_apart });
    let finding = |phrase: Phrase, shorter: Vec<String>| {
        Finding::new(VerdictLevel::Notice, phrase).shortens_to(PartKind::Next, shorter)
    };
    let Some(node) = subject else {
        return match all {
            Some(all) => vec![finding(all.phrase_for_all(model, "", now), all.shorter(model, now))],
            // The verdict already says when the first of the quiet nodes becomes Unknown.
            None if quiet.is_some() => Vec::new(),
            None => next_event(model, now).into_iter().collect(),
        };
    };
    let mut findings: Vec<Finding> = Vec::new();
    let (own, first) = node_leaving(model, node);
    let all = all.filter(|all| all.pods > own);
    let of_all = if says_of_all { "" } else { ALL_NODES };
    if let Some(at) = first {
        let evictions = Evictions { node: Some(node), pods: own, at, subject: None, is_apart };
        let shorter = evictions.shorter(model, now);
        // A phrase about all nodes says whether more pods are evicted later.
        match all {
            None => {
                let phrase = evictions.phrase(model, &within(model), now).and(later(model));
                findings.push(finding(phrase, shorter));
            }
            Some(all) if time_until(all.at, now) == time_until(at, now) => {
                findings.push(finding(evictions.phrase(model, "", now), shorter));
                // The phrase before this one already has the words "pods to be evicted".
                let pods = match says_of_all {
                    true => format!("{} of all nodes", all.pods),
                    false => format!("{ALL_NODES}{}", all.pods),
                };
                let phrase = Phrase::from(format!("{pods}{}, {} ", within(model), all.which(model)));
                let phrase = phrase.time(all.until(model, now)).and(later(model));
                findings.push(Finding::new(VerdictLevel::Notice, phrase));
            }
            Some(all) => {
                let phrase = all.phrase_for_all(model, of_all, now);
                findings.push(finding(phrase, all.shorter(model, now)));
                findings.push(Finding::new(VerdictLevel::Notice, evictions.phrase(model, "", now)));
            }
        }
        return findings;
    }
    if let Some((pods, first)) = removed_by_force(model, node) {
        let are = if pods == 1 { "is" } else { "are" };
        let pods = counted(pods, "pod", "pods");
        let phrase = Phrase::from(format!("{pods} of {node} {are} removed by force "));
        findings.push(finding(phrase.time(time_until(first, now)), Vec::new()));
    } else if is_evicted(model, node) && model.views.counts.stuck() == 0 {
        let text = format!("no pod of {node} is left to evict");
        let shorter = vec!["no pod left to evict".into()];
        findings.push(Finding::new(VerdictLevel::Notice, text).shortens_to(PartKind::Other, shorter));
    }
    if let Some(all) = all {
        let phrase = all.phrase_for_all(model, of_all, now);
        findings.push(finding(phrase, all.shorter(model, now)));
    }
    findings
}

/// Pods that are to be evicted from one node or from all nodes.
struct Evictions<'a> {
    /// The node; `None` for all nodes.
    node: Option<&'a NodeName>,
    pods: usize,
    /// Time of the next eviction.
    at: Timestamp,
    /// The node of the worst finding, if the pods are those of all nodes. The node of the next pod is named if it is
    /// another one.
    subject: Option<&'a NodeName>,
    /// Whether the verdict names another node after that of the worst finding.
    is_apart: bool,
}

impl Evictions<'_> {
    /// Returns `first` if no pod has been evicted before, and `next` if some may have been: a node is tainted, or an
    /// eviction is scheduled already.
    fn which(&self, model: &Model) -> &'static str {
        let is_meant = |node: &NodeName| self.node.is_none_or(|own| own == node);
        let is_scheduled = |row: &EvictionRow| matches!(row.state, EvictionState::Scheduled { .. });
        let mut rows = model.views.leaving.evictions.values();
        let have_begun =
            model.watchlist.abnormal().iter().any(|name| is_meant(name) && is_tainted(model, name))
                || rows.any(|row| is_meant(&row.node) && is_scheduled(row));
        if have_begun { "next" } else { "first" }
    }

    /// Returns the phrase: `3 pods of n-3 to be evicted, next in 1m12s`.
    fn phrase(&self, model: &Model, within: &str, now: Timestamp) -> Phrase {
        let pods = counted(self.pods, "pod", "pods");
        let (of, from) = match self.node {
            Some(node) => (format!(" of {node}"), String::new()),
            None => (String::new(), from_silent_nodes(model)),
        };
        let is_only = self.pods == 1 && within.is_empty();
        let which = if is_only { String::new() } else { format!(", {}", self.which(model)) };
        let phrase = Phrase::from(format!("{pods}{of} to be evicted{from}{within}{which} "));
        phrase.time(self.until(model, now)).and(&self.whose(model))
    }

    /// Returns the phrase about all nodes: `44 pods to be evicted, next in 1m12s`. If every node is down, silent or
    /// late, the phrase adds that the controller pauses evictions once all nodes are down.
    fn phrase_for_all(&self, model: &Model, of_all: &str, now: Timestamp) -> Phrase {
        let Phrase { text, outline } = self.phrase(model, &within(model), now);
        let phrase = Phrase { text: format!("{of_all}{text}"), outline: format!("{of_all}{outline}") };
        let phrase = phrase.and(later(model));
        if may_pause(model) { phrase.and(" (evictions pause if every node goes down)") } else { phrase }
    }

    /// Returns the shorter texts, the longest first: `next eviction in 1m12s (n-5)`, `next eviction in 1m12s`, `eviction
    /// in 1m12s`.
    fn shorter(&self, model: &Model, now: Timestamp) -> Vec<String> {
        let (which, time) = (self.which(model), self.until(model, now));
        let eviction = format!("{which} eviction {time}");
        let whose = match self.node {
            Some(node) if self.is_apart => format!(" ({node})"),
            _ => self.whose(model),
        };
        if may_pause(model) {
            vec![format!("{eviction} unless evictions pause"), "evictions may pause".into()]
        } else {
            vec![eviction + &whose, format!("eviction {time}")]
        }
    }

    /// Returns the time until the next eviction: `in 1m12s`, or `in 30s to 45s` if nothing shows when the controller makes
    /// its passes.
    fn until(&self, model: &Model, now: Timestamp) -> String {
        let rows = model.views.leaving.evictions.iter();
        let rows = rows.filter(|(_, row)| self.node.is_none_or(|node| row.node == *node));
        let times = rows.filter_map(|(pod, row)| Some((pod, row.state.leaves_at()?)));
        until_first(model, self.at, times, now)
    }

    /// Returns ` (n-5)` if the next pod is of another node than the worst finding, ` (deleted node n-3)` if it leaves
    /// because its node was deleted, and ` (device taint KEY by DeviceTaintRule NAME)` if it leaves because of a taint of
    /// its device; otherwise the empty string.
    fn whose(&self, model: &Model) -> String {
        let is_next = |row: &&EvictionRow| row.state.leaves_at() == Some(self.at);
        let rows = || model.views.leaving.evictions.values().filter(is_next);
        let next = || rows().map(|row| &row.node);
        if let Some(node) = next().find(|node| model.cluster.node(node).is_none()) {
            return format!(" (deleted node {node})");
        }
        let mut causes = rows().flat_map(|row| &row.why.0);
        if let Some(taint) = causes.find_map(device_taint) {
            return format!(" ({taint})");
        }
        match self.subject {
            Some(subject) if !next().any(|node| node == subject) => {
                next().next().map_or(String::new(), |node| format!(" ({node})"))
            }
            Some(_) | None => String::new(),
        }
    }
}

/// Returns the taint of a device that causes an eviction, and who set it.
fn device_taint(cause: &Cause) -> Option<String> {
    match cause {
        Cause::DeviceTainted { taint, by, .. } => Some(format!("device taint {taint} by {by}")),
        _ => None,
    }
}

/// Returns ` from 3 Silent nodes` if pods leave only Silent nodes while other nodes are Late: no evictions are predicted
/// for the Late ones yet. Otherwise returns the empty string.
fn from_silent_nodes(model: &Model) -> String {
    let counts = model.watchlist.counts();
    let of = |state: NodeState| counts.get(&state).copied().unwrap_or(0);
    let (silent, are_others_down) = (of(NodeState::Silent), counts.keys().any(|state| state.is_down()));
    if are_others_down || silent == 0 || of(NodeState::Late) == 0 {
        return String::new();
    }
    let is_silent = |node: &NodeName| model.watchlist.state(node) == Some(NodeState::Silent);
    let rows = model.views.leaving.evictions.values().filter(|row| row.state.leaves_at().is_some());
    let left: BTreeSet<&NodeName> = rows.map(|row| &row.node).collect();
    match left.iter().all(|node| is_silent(node)) {
        true => format!(" from {}", counted(left.len(), "Silent node", "Silent nodes")),
        false => String::new(),
    }
}

/// Prefix of numbers and times of all nodes in a verdict whose worst finding is about one node.
pub(super) const ALL_NODES: &str = "all nodes: ";

/// Whether the controller may pause evictions soon, because every node is down, silent or late.
fn may_pause(model: &Model) -> bool {
    model.watchlist.counts().keys().all(|state| is_missing(*state))
}

/// Returns the findings about evicted pods that are replaced, and about the time at which the next node is tainted: `5
/// already evicted and replaced · eviction slot in 6s (1 node waiting)`. The time is left out if a pod is evicted at
/// the same time.
pub(super) fn evicted(model: &Model, now: Timestamp) -> Vec<Finding> {
    if !model.views.is_predicted() {
        return Vec::new();
    }
    let views = &model.views;
    let mut phrases: Vec<Phrase> = Vec::new();
    let replaced = views.counts.replaced();
    // An earlier finding counts the pods that have nowhere to run. This finding counts the others, whose replacements
    // have a node.
    let others = match (model.views.nowhere_now() > 0, replaced) {
        (false, _) => "",
        (true, 1) => " other",
        (true, _) => " others",
    };
    phrases.extend((replaced > 0).then(|| format!("{replaced}{others} already evicted and replaced").into()));
    let waiting = || views.zones.iter().filter(|zone| !zone.queue.is_empty());
    let nodes = waiting().map(|zone| zone.queue.len()).sum();
    let slot = waiting().filter_map(|zone| zone.next_token).min();
    let slot = slot.filter(|slot| {
        views.leaving.first.is_none_or(|first| time_until(first, now) != time_until(*slot, now))
    });
    phrases.extend(slot.map(|slot| {
        let phrase = Phrase::from("eviction slot ").time(time_of_event(model, slot, now, |_| None));
        phrase.and(&format!(" ({} waiting)", counted(nodes, "node", "nodes")))
    }));
    phrases.into_iter().map(|phrase| Finding::new(VerdictLevel::Notice, phrase)).collect()
}

/// Returns the horizon of the forecast, ` within 10m`, if more pods are evicted after the end of the forecast;
/// otherwise the empty string.
pub(super) fn within(model: &Model) -> String {
    let forecast = model.predictions.forecast().filter(|forecast| goes_on(model, forecast));
    forecast
        .map_or(String::new(), |forecast| format!(" within {}", coarse(forecast.until.since(forecast.made))))
}

/// Returns `, more later` if more pods are evicted after the end of the forecast.
fn later(model: &Model) -> &'static str {
    if within(model).is_empty() { "" } else { ", more later" }
}

/// Whether pods that are not in the list of evictions are evicted after the end of a forecast: their tolerations end
/// later, or their nodes still wait for an eviction slot (a token of their zone's rate limiter). In a zone whose
/// evictions are stopped (rate 0) no node gets a slot.
fn goes_on(model: &Model, forecast: &Forecast) -> bool {
    let rows = &model.views.leaving.evictions;
    let is_listed = |pod: &Key| rows.get(pod).is_some_and(|row| row.state.leaves_at().is_some());
    let waits = forecast.zones.iter().any(|zone| zone.rate > 0.0 && !zone.queue.is_empty());
    waits || forecast.later.keys().any(|pod| !is_listed(pod))
}

/// Number of pods of a node that are to be evicted, and the time of the first eviction.
pub(super) fn node_leaving(model: &Model, node: &NodeName) -> (usize, Option<Timestamp>) {
    times_on(model, node, EvictionState::leaves_at)
}

/// Number of pods on a node whose state has this time, and the earliest of these times.
fn times_on(
    model: &Model,
    node: &NodeName,
    time: impl Fn(&EvictionState) -> Option<Timestamp>,
) -> (usize, Option<Timestamp>) {
    let rows = model.views.leaving.evictions.values().filter(|row| row.node == *node);
    let times: Vec<Timestamp> = rows.filter_map(|row| time(&row.state)).collect();
    (times.len(), times.iter().min().copied())
}

/// Whether a pod hangs on a node whose kubelet is down, and has nowhere to run.
pub(super) fn hangs(model: &Model, pod: &Key, row: &EvictionRow) -> bool {
    match row.state {
        EvictionState::Terminating { kubelet_silent: true, .. } | EvictionState::Never => {
            model.outcome(pod, row).is_some_and(|outcome| outcome.kind().has_nowhere_to_run())
        }
        EvictionState::Terminating { kubelet_silent: false, .. }
        | EvictionState::Scheduled { .. }
        | EvictionState::Predicted { .. }
        | EvictionState::ByKubelet { .. }
        | EvictionState::Cancelled { .. } => false,
    }
}

/// Number of terminating pods of a node that the pod garbage collector removes by force, and the time of the first
/// removal; `None` if there are no such pods.
fn removed_by_force(model: &Model, node: &NodeName) -> Option<(usize, Timestamp)> {
    let (pods, first) = times_on(model, node, |state| match state {
        EvictionState::Terminating { removed, .. } => *removed,
        _ => None,
    });
    Some((pods, first?))
}

/// Whether the time of every eviction on the node is known: the node has its taint, and the pods are known.
fn is_evicted(model: &Model, node: &NodeName) -> bool {
    is_tainted(model, node) && model.cluster.gap(FeedKind::Pods).is_none()
}

/// Whether the node has a NoExecute taint of the controller.
fn is_tainted(model: &Model, node: &NodeName) -> bool {
    model.cluster.node(node).is_some_and(|node| controllers_own(node).next().is_some())
}

/// Returns the word for an event of the node itself; `None` for evictions, which are events of its pods.
const fn state_word(what: NextEventKind) -> Option<&'static str> {
    match what {
        NextEventKind::Unknown => Some("Unknown"),
        NextEventKind::Taint => Some("tainted NoExecute"),
        NextEventKind::Evict { .. } => None,
    }
}

/// Returns the finding about the next event of any node: `next: n-3 Unknown in 17s`.
fn next_event(model: &Model, now: Timestamp) -> Option<Finding> {
    let timed =
        model.views.leaving.next.iter().filter_map(|(node, event)| Some((event.at?, node, event.what)));
    let (at, node, what) = timed.min_by_key(|(at, node, _)| (*at, *node))?;
    let (word, time) = (state_word(what)?, until_event(model, node, what, at, now));
    let finding =
        Finding::new(VerdictLevel::Notice, Phrase::from(format!("next: {node} {word} ")).time(&time));
    Some(finding.shortens_to(PartKind::Next, vec![format!("next {word} {time}")]))
}

/// Returns the time until the first of some evictions, which is predicted for `at`, in the words of [`Evictions::until`].
pub(super) fn until_first<'a>(
    model: &Model,
    at: Timestamp,
    times: impl Iterator<Item = (&'a Key, Timestamp)>,
    now: Timestamp,
) -> String {
    time_of_event(model, at, now, |ranges| ranges.first(times))
}

/// Returns the time until an event of the node itself, which is predicted for `at`, in the words of
/// [`Evictions::until`].
fn until_event(model: &Model, node: &NodeName, what: NextEventKind, at: Timestamp, now: Timestamp) -> String {
    time_of_event(model, at, now, |ranges| match what {
        NextEventKind::Unknown => ranges.unknown(node),
        NextEventKind::Taint => ranges.tainted(node),
        NextEventKind::Evict { .. } => None,
    })
}

/// Returns the time until an event that is predicted for `at`. If nothing shows when the controller makes its passes,
/// the event may happen at any time of `range`.
fn time_of_event(
    model: &Model,
    at: Timestamp,
    now: Timestamp,
    range: impl FnOnce(&EventRanges) -> Option<TimeRange>,
) -> String {
    match model.predictions.event_ranges() {
        Some(ranges) => time_within(range(ranges).unwrap_or(at.into()), now),
        None => time_until(at, now),
    }
}

/// Returns the time until an event that may happen at any time of a range: `in 30s to 45s`, `within 5s`. If nothing but
/// the time itself is an estimate, returns `in ~39s`.
fn time_within(range: TimeRange, now: Timestamp) -> String {
    let TimeRange { first, last } = range;
    let end = last.since(now).rounded_up();
    if last <= now {
        "now".into()
    } else if first == last {
        format!("in ~{end}")
    } else if first <= now {
        format!("within {end}")
    } else {
        format!("in {} to {end}", seconds(first.since(now)))
    }
}

#[cfg(test)]
mod tests {
    use kordon_time::Span;

    use super::*;

    #[test]
    fn a_time_is_not_more_precise_than_what_is_known() {
        let now = Timestamp::from_secs(1_800_000_000);
        let within = |first: i64, last: i64| {
            let at = |millis| now + Span::from_millis(millis);
            time_within(TimeRange { first: at(first), last: at(last) }, now)
        };
        assert_eq!(within(30_900, 44_100), "in 30s to 45s");
        assert_eq!(within(38_200, 38_200), "in ~39s");
        assert_eq!([within(0, 4_500), within(-2_000, 0)], ["within 5s", "now"]);
    }
}
