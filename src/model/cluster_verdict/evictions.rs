//! Findings about pods that are to be evicted or were evicted, and about the next events of nodes.

use super::{
    Finding, PartKind, Phrase, VerdictLevel, coarse, nodes::is_missing, runs_nowhere, stuck, time_until,
};
use crate::model::{EvictionState, Model, NextEventKind, NodeState};
use kordon_core::{
    cluster::{FeedKind, Key, NodeName},
    engine::controllers_own,
    forecast::Forecast,
    plan::words::counted,
};
use kordon_time::Timestamp;

/// Returns the next event of the node in the worst finding: `Unknown in 14s`.
pub(super) fn own_event(model: &Model, node: &NodeName, now: Timestamp) -> Option<Finding> {
    let event = model.views.leaving.next.get(node).filter(|_| model.views.is_predicted())?;
    let phrase = Phrase::from(format!("{} ", state_word(event.what)?)).time(time_until(event.at?, now));
    Some(Finding::new(VerdictLevel::Notice, phrase).shortens_to(PartKind::Next, Vec::new()))
}

/// Returns the findings about the next pods to be evicted. If the worst finding is about one node, the pods of this
/// node come first, then those of all nodes.
///
/// `3 pods of n-3 to be evicted, next in 4m57s · all nodes: 7, next in 12s`, `44 pods to be evicted, next in 1m12s`,
/// `71 pods to be evicted within 10m, next in 1s, more later`.
pub(super) fn next(model: &Model, subject: Option<&NodeName>, now: Timestamp) -> Vec<Finding> {
    if !model.views.is_predicted() {
        return Vec::new();
    }
    let views = &model.views;
    let total = views.counts.leaving();
    let shorter =
        |first| ["next eviction", "eviction"].map(|next| format!("{next} {}", time_until(first, now)));
    let shorter = views.leaving.first.map(shorter).into_iter().flatten();
    let finding = |phrase: Phrase| {
        Finding::new(VerdictLevel::Notice, phrase).shortens_to(PartKind::Next, shorter.clone().collect())
    };
    let mut findings: Vec<Finding> = Vec::new();
    let of_subject = subject.map(|node| node_leaving(model, node));
    match (subject, of_subject) {
        (Some(node), Some((own, first))) => {
            if let Some(first) = first {
                let whose = format!("{} of {node}", counted(own, "pod", "pods"));
                // A phrase about all nodes follows if they have further pods. It says whether more are evicted later.
                findings.push(finding(match own == total {
                    true => leave(whose, own, &within(model), first, now).and(later(model)),
                    false => leave(whose, own, "", first, now),
                }));
            } else if let Some((pods, first)) = removed_by_force(model, node) {
                let are = if pods == 1 { "is" } else { "are" };
                let pods = counted(pods, "pod", "pods");
                let phrase = Phrase::from(format!("{pods} of {node} {are} removed by force "));
                let phrase = phrase.time(time_until(first, now));
                let finding = Finding::new(VerdictLevel::Notice, phrase);
                findings.push(finding.shortens_to(PartKind::Next, Vec::new()));
            } else if is_evicted(model, node) && stuck(model) == 0 {
                let text = format!("no pod of {node} is left to evict");
                findings.push(Finding::new(VerdictLevel::Notice, text));
            }
            match views.leaving.first.filter(|_| total > own) {
                // The phrase before this one already has the words "pods to be evicted".
                Some(first) if own > 0 => {
                    let phrase = Phrase::from(format!("all nodes: {total}{}, next ", within(model)));
                    let phrase = phrase.time(time_until(first, now)).and(later(model));
                    findings.push(Finding::new(VerdictLevel::Notice, phrase));
                }
                Some(first) => findings.push(finding(leave_in_all(model, total, first, now))),
                None => {}
            }
        }
        _ => match views.leaving.first {
            Some(first) => findings.push(finding(leave_in_all(model, total, first, now))),
            None => findings.extend(next_event(model, now).map(finding)),
        },
    }
    findings
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
    let others = match (runs_nowhere(model), replaced) {
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
        let phrase = Phrase::from("eviction slot ").time(time_until(slot, now));
        phrase.and(&format!(" ({} waiting)", counted(nodes, "node", "nodes")))
    }));
    phrases.into_iter().map(|phrase| Finding::new(VerdictLevel::Notice, phrase)).collect()
}

/// Returns the phrase about the next eviction of a node: `3 pods of n-3 to be evicted, next in 1m12s`. The phrase says
/// "next" because other pods may have been evicted before.
fn leave(whose: String, pods: usize, within: &str, next: Timestamp, now: Timestamp) -> Phrase {
    let phrase = Phrase::from(whose).and(" to be evicted").and(within);
    let is_only = pods == 1 && within.is_empty();
    phrase.and(if is_only { " " } else { ", next " }).time(time_until(next, now))
}

/// Returns the phrase about the next eviction of all nodes: `44 pods to be evicted, next in 1m12s`. If every node is
/// down, silent or late, the phrase adds that the controller pauses evictions once all nodes are down.
fn leave_in_all(model: &Model, pods: usize, next: Timestamp, now: Timestamp) -> Phrase {
    let phrase = leave(counted(pods, "pod", "pods"), pods, &within(model), next, now).and(later(model));
    let reports = |(state, _): (&NodeState, &usize)| !is_missing(*state);
    match model.watchlist.counts().iter().any(reports) {
        true => phrase,
        false => phrase.and(" (evictions pause if every node goes down)"),
    }
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
    let is_tainted = model.cluster.node(node).is_some_and(|node| controllers_own(node).next().is_some());
    is_tainted && model.cluster.gap(FeedKind::Pods).is_none()
}

/// Returns the word for an event of the node itself; `None` for evictions, which are events of its pods.
const fn state_word(what: NextEventKind) -> Option<&'static str> {
    match what {
        NextEventKind::Unknown => Some("Unknown"),
        NextEventKind::Taint => Some("tainted NoExecute"),
        NextEventKind::Evict { .. } => None,
    }
}

/// Returns the next event of any node: `n-3 Unknown in 17s`.
fn next_event(model: &Model, now: Timestamp) -> Option<Phrase> {
    let timed =
        model.views.leaving.next.iter().filter_map(|(node, event)| Some((event.at?, node, event.what)));
    let (at, node, what) = timed.min_by_key(|(at, node, _)| (*at, *node))?;
    Some(Phrase::from(format!("{node} {} ", state_word(what)?)).time(time_until(at, now)))
}
