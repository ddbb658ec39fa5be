//! Findings about nodes that are down, silent or late, or in another state that needs attention.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Finding, PartKind, Phrase, VerdictLevel,
    drains::{gone, hanging_drain, last_of_drain, waits_for_budgets},
    seconds, time_until,
    zones::{disrupts_a_zone, is_disrupted, zones_down},
};
use crate::model::{Model, NextEventKind, NodeState, StateDetail, ZoneNodes};
use kordon_core::{
    cluster::{ConditionStatus, Node, NodeName, ZoneKey},
    engine::Confidence,
    plan::words::counted,
    why::departure::DepartureKind,
};
use kordon_time::{Span, Timestamp};

/// Returns the findings about zones and nodes.
pub(super) fn nodes(model: &Model, quiet: Option<&QuietNodes<'_>>, now: Timestamp) -> Vec<Finding> {
    let zones = &model.views.zones;
    let mut findings = zones_down(zones, &model.watchlist);
    let named: BTreeSet<&ZoneKey> =
        zones.iter().filter(|zone| is_disrupted(zone)).map(|zone| &zone.key).collect();
    let mut by_state: BTreeMap<NodeState, NodesInState<'_>> = BTreeMap::new();
    for (zone, nodes) in model.watchlist.zones() {
        let is_named = |state: NodeState| state.is_down() && named.contains(zone);
        for (name, state) in nodes.notable().filter(|(_, state)| !is_named(*state)) {
            if state == NodeState::Draining
                && let Some(finding) = hanging_drain(model, name, now)
            {
                findings.push(finding);
                continue;
            }
            let in_state =
                by_state.entry(state).or_insert_with(|| NodesInState { names: Vec::new(), zone: Some(zone) });
            in_state.names.push(name);
            in_state.zone = in_state.zone.filter(|other| *other == zone);
        }
    }
    let is_silent = by_state.contains_key(&NodeState::Silent);
    // The counts of nodes that are Late, Silent or down are merged into one finding, unless few nodes fail and the worst
    // of them is the only one in its state: then its name says more.
    let worst = by_state.first_key_value();
    let missing: Vec<_> = by_state.iter().filter(|(state, _)| is_missing(**state)).collect();
    let failing = missing.iter().filter(|(state, _)| state.is_failing());
    let several_fail = failing.map(|(_, in_state)| in_state.names.len()).sum::<usize>() > FEW;
    if several_fail || worst.is_some_and(|(state, worst)| is_missing(*state) && worst.names.len() > 1) {
        let level = missing.iter().map(|(state, _)| level(model, **state)).max();
        findings.extend(level.map(|level| match quiet {
            Some(quiet) => quiet.finding(model, level, now),
            None => match all_nodes(model, &missing) {
                Some(phrase) => Finding::new(level, phrase),
                None => several_nodes(model, &missing, level),
            },
        }));
        by_state.retain(|state, _| !is_missing(*state));
    }
    for (state, in_state) in &by_state {
        let level = level(model, *state);
        if level > VerdictLevel::Healthy {
            let finding = match in_state.names[..] {
                [name] => Finding { node: Some(name.clone()), ..one_node(model, *state, name, level, now) },
                _ => several_nodes(model, &[(state, in_state)], level),
            };
            findings.push(match *state == NodeState::Draining {
                true => finding.with_details(waits_for_budgets(model, &in_state.names, now)),
                false => finding,
            });
        }
    }
    let named = match by_state.get(&NodeState::Pressure).map(|in_state| &in_state.names[..]) {
        Some([name]) => Some(*name),
        _ => None,
    };
    findings.extend(evicting_kubelets(model, named, now));
    findings.extend(unmeasured(model).map(|text| Finding::new(VerdictLevel::Notice, text)));
    if is_silent && matches!(model.views.confidence, Some(Confidence::NoController { .. })) {
        let grace = model.settings.node_monitor_grace_period.value;
        let text = format!("Silent nodes become Unknown {grace} after a controller starts");
        findings.push(Finding::new(level(model, NodeState::Silent), text));
    }
    findings
}

/// All nodes of the cluster, or of one zone, none of which sends heartbeats although none is down so far. The other nodes
/// send heartbeats.
pub(super) struct QuietNodes<'a> {
    /// The zone; `None` if these are all nodes of the cluster.
    zone: Option<&'a ZoneKey>,
    nodes: Vec<&'a Node>,
}

impl<'a> QuietNodes<'a> {
    /// Finds these nodes; `None` if a node of each zone sends heartbeats, a node is down, or the nodes are few.
    pub fn find(model: &'a Model) -> Option<Self> {
        let missing = || model.watchlist.notable().filter(|(_, state)| is_missing(*state));
        let count = missing().count();
        if count <= FEW || missing().any(|(_, state)| state.is_down()) {
            return None;
        }
        let is_quiet = |nodes: &ZoneNodes| {
            nodes.states().len() == count && nodes.states().iter().all(|state| is_missing(*state))
        };
        let zone = match model.cluster.nodes().len() == count {
            true => None,
            false => Some(model.watchlist.zones().iter().find(|(_, nodes)| is_quiet(nodes))?.0),
        };
        let nodes = missing().filter_map(|(name, _)| model.cluster.node(name)).map(|node| &**node);
        Some(Self { zone, nodes: nodes.collect() })
    }

    /// Finding about these nodes: `zone b: no heartbeat from any of 8 nodes for 15s or more`, in short `zone b: no
    /// heartbeat from any node`.
    fn finding(&self, model: &Model, level: VerdictLevel, now: Timestamp) -> Finding {
        let names = model.watchlist.zone_names();
        let place = self.zone.map(|zone| format!("zone {}: ", names.short(zone))).unwrap_or_default();
        let last = self.nodes.iter().filter_map(|node| model.silence(node)).map(|silence| silence.heartbeat);
        let phrase = Phrase::from(format!("{place}no heartbeat from any of {} nodes", self.nodes.len()));
        let phrase = match last.max() {
            Some(last) => phrase.and(" for ").time(seconds(now.since(last))).and(" or more"),
            None => phrase,
        };
        Finding::new(level.max(VerdictLevel::Warning), phrase)
            .shortens_to(PartKind::Other, vec![format!("{place}no heartbeat from any node")])
    }

    /// Returns when the first of these nodes becomes Unknown: `first Unknown in 26s`.
    pub fn first_unknown(&self, model: &Model, now: Timestamp) -> Option<Finding> {
        if !model.views.is_predicted() {
            return None;
        }
        let events = model.views.leaving.next.values().filter(|event| event.what == NextEventKind::Unknown);
        let predicted = events.filter_map(|event| event.at).min();
        // Late nodes have no predicted event yet.
        let grace_ends = || {
            let engine = model.engine.as_ref()?;
            self.nodes.iter().filter_map(|node| engine.grace_ends(&model.cluster, node)).min()
        };
        let phrase = Phrase::from("first Unknown ").time(time_until(predicted.or_else(grace_ends)?, now));
        Some(Finding::new(VerdictLevel::Notice, phrase).shortens_to(PartKind::Consequence, Vec::new()))
    }
}

/// Number of failing nodes up to which the worst of them is named. Upstream regards no zone as disrupted with so few.
const FEW: usize = 2;

/// Whether a node in this state is down, silent or late.
pub(super) fn is_missing(state: NodeState) -> bool {
    state.is_failing() || state == NodeState::Late
}

/// Returns the level of a finding about nodes in this state.
fn level(model: &Model, state: NodeState) -> VerdictLevel {
    match state {
        NodeState::Rebooting | NodeState::Draining => VerdictLevel::Notice,
        NodeState::Silent if disrupts_a_zone(model) => VerdictLevel::Critical,
        state => VerdictLevel::from_role(state.role()),
    }
}

/// The nodes of a cluster that are in the same state.
struct NodesInState<'a> {
    names: Vec<&'a NodeName>,
    /// The zone of these nodes; `None` if they are in several zones.
    zone: Option<&'a ZoneKey>,
}

/// Returns the finding about several nodes that are down, late or in the same state: `23 of 24 nodes Silent`, `zone a:
/// 3 of 8 nodes Silent, 5 Late`. Two nodes in the same state are named: `nodes n-3 and n-5 Evicting`, in short `2 of 24
/// nodes Evicting`.
fn several_nodes(model: &Model, states: &[(&NodeState, &NodesInState<'_>)], level: VerdictLevel) -> Finding {
    let zones = model.watchlist.zones();
    let zone =
        states.iter().map(|(_, in_state)| in_state.zone).reduce(|one, other| one.filter(|_| one == other));
    let zone = zone.flatten().filter(|_| zones.len() > 1).and_then(|zone| Some((zone, zones.get(zone)?)));
    let (place, all) = match zone {
        Some((zone, nodes)) => {
            (format!("zone {}: ", model.watchlist.zone_names().short(zone)), nodes.states().len())
        }
        None => (String::new(), model.cluster.nodes().len()),
    };
    let count = |(place, (state, in_state)): (usize, &(&NodeState, &NodesInState<'_>))| match place {
        0 => format!("{} of {all} nodes {state}", in_state.names.len()),
        _ => format!("{} {state}", in_state.names.len()),
    };
    let counts: Vec<String> = states.iter().enumerate().map(count).collect();
    let text = format!("{place}{}", counts.join(", "));
    match states {
        [(state, NodesInState { names, .. })] if let [one, other] = names[..] => {
            Finding::new(level, format!("nodes {one} and {other} {state}"))
                .shortens_to(PartKind::Other, vec![text])
        }
        _ => Finding::new(level, text),
    }
}

/// Returns the finding about a cluster whose nodes are all down or silent: `all 24 nodes Silent`, `all 24 nodes down: 1
/// Unknown, 23 Silent`. `None` if another node is left.
fn all_nodes(model: &Model, states: &[(&NodeState, &NodesInState<'_>)]) -> Option<Phrase> {
    let nodes = model.cluster.nodes().len();
    let counted: usize = states.iter().map(|(_, in_state)| in_state.names.len()).sum();
    let text = match states {
        _ if counted < nodes || states.iter().any(|(state, _)| !state.is_failing()) => return None,
        [(state, _)] => format!("all {nodes} nodes {state}"),
        states => {
            let count = |(state, in_state): &(&NodeState, &NodesInState<'_>)| {
                format!("{} {state}", in_state.names.len())
            };
            let counts: Vec<String> = states.iter().map(count).collect();
            format!("all {nodes} nodes down: {}", counts.join(", "))
        }
    };
    Some(text.into())
}

/// Returns the finding about evictions by kubelets, which no budget and no rate limit delays ([`of_kubelets`]).
fn evicting_kubelets(model: &Model, named: Option<&NodeName>, now: Timestamp) -> Option<Finding> {
    let (phrase, in_short) = of_kubelets(model, named, now)?;
    Some(Finding::new(VerdictLevel::Warning, phrase).shortens_to(PartKind::Other, vec![in_short]))
}

/// Returns what is known of evictions by kubelets, for lists and reports of other evictions: what the verdict says, and
/// on which nodes under pressure these evictions are not known.
pub fn kubelet_evictions(model: &Model, now: Timestamp) -> Vec<String> {
    of_kubelets(model, None, now)
        .map(|(phrase, _)| phrase.text)
        .into_iter()
        .chain(unmeasured(model))
        .collect()
}

/// Returns on which nodes under pressure evictions by kubelets are not known: `evictions by the kubelet of n-3 not known:
/// no measurements`.
fn unmeasured(model: &Model) -> Option<String> {
    let nodes = model.unmeasured_under_pressure();
    let whose = match (nodes.first()?, nodes.len()) {
        (node, 1) => format!("the kubelet of {node}"),
        (_, several) => format!("the kubelets of {several} nodes"),
    };
    Some(format!("evictions by {whose} not known: no measurements"))
}

/// Returns what kubelets evict, with a short form: `kubelet of n-3 evicts up to 5 pods (MemoryPressure), first in 29s`, or
/// `first within 1m30s`. Directly after the finding about the pressure of this node, `named`: `its kubelet evicts up to 5
/// pods, first in 29s`. If the kubelet has already evicted a pod: `up to 5 more pods`.
fn of_kubelets(model: &Model, named: Option<&NodeName>, now: Timestamp) -> Option<(Phrase, String)> {
    let evicting: Vec<_> = model.evicting_kubelets().collect();
    let have_begun = evicting.iter().any(|(name, _)| has_evicted(model, name));
    let pods: usize = evicting.iter().map(|(_, eviction)| eviction.pods).sum();
    let pods = match have_begun {
        true => counted(pods, "more pod", "more pods"),
        false => counted(pods, "pod", "pods"),
    };
    let (text, in_short) = match evicting[..] {
        [] => return None,
        [(name, _)] if named == Some(name) => {
            (format!("its kubelet evicts up to {pods}"), format!("evicts up to {pods}"))
        }
        [(name, eviction)] => {
            let condition = eviction.condition.as_str();
            (
                format!("kubelet of {name} evicts up to {pods} ({condition})"),
                format!("{name} evicts up to {pods}"),
            )
        }
        ref several => {
            let nodes = several.len();
            (
                format!("kubelets of {nodes} nodes evict up to {pods}"),
                format!("{nodes} kubelets evict up to {pods}"),
            )
        }
    };
    let first = evicting.iter().map(|(_, eviction)| eviction).min_by_key(|eviction| eviction.at)?;
    if first.at <= now {
        return Some((text.into(), in_short));
    }
    let (which, when) =
        (if have_begun { "next" } else { "first" }, if first.is_latest { "within" } else { "in" });
    let left = seconds(first.at.since(now));
    let in_short = format!("{in_short} {when} {left}");
    Some((Phrase::from(format!("{text}, {which} {when} ")).time(left), in_short))
}

/// Whether the kubelet of a node has evicted a pod since the node reports pressure.
fn has_evicted(model: &Model, node: &NodeName) -> bool {
    let problems = model.cluster.node(node).into_iter().flat_map(|node| node.problems());
    let since = problems.filter_map(|problem| problem.last_transition).min();
    let since = since.map(|since| model.cluster.local(since));
    let newest = model.departures.newest();
    let mut recent = newest.take_while(|(id, _)| since.is_none_or(|since| id.at() >= since));
    recent.any(|(_, entry)| {
        entry.node.as_ref() == Some(node) && entry.departure.kind == DepartureKind::NodePressure
    })
}

/// Finding about one node: `node n-3 Silent 33s`, `node n-3 DiskPressure 1m`, `node n-3 Draining, 3 of 8 pods gone`,
/// `node n-3 Evicting 9s (Unknown 5m50s)`.
fn one_node(
    model: &Model,
    state: NodeState,
    name: &NodeName,
    level: VerdictLevel,
    now: Timestamp,
) -> Finding {
    let node = model.cluster.node(name);
    let problem = node.and_then(|node| node.problems().next()).filter(|_| state == NodeState::Pressure);
    let phrase = match problem {
        Some(problem) => Phrase::from(format!("node {name} {}", problem.kind)),
        None => Phrase::from(format!("node {name} {state}")),
    };
    let status = node.and_then(|node| model.node_status(node));
    let mut short = None;
    let phrase = match status.and_then(|status| status.detail(now)) {
        Some(StateDetail::Progress(count)) => {
            let phrase = phrase.and(&format!(", {}", gone(count)));
            short = Some(phrase.text.clone());
            phrase.and_phrase(last_of_drain(model, name, count, now))
        }
        Some(StateDetail::Lasting(span)) => {
            let phrase = phrase.time(format!(" {span}"));
            match node.and_then(|node| down_longer(model, node, state, span, now)) {
                Some((word, down)) => {
                    short = Some(phrase.text.clone());
                    phrase.and(&format!(" ({word} ")).time(down).and(")")
                }
                None => phrase,
            }
        }
        None => phrase,
    };
    Finding::new(level, phrase).shortens_to(PartKind::Other, short.into_iter().collect())
}

/// Returns since when an Evicting node is down, if that is at least a minute longer than it is Evicting: a controller that
/// has just started tainted it, or its zone had no eviction slot before.
fn down_longer(
    model: &Model,
    node: &Node,
    state: NodeState,
    evicting: Span,
    now: Timestamp,
) -> Option<(NodeState, Span)> {
    let ready = node.ready().filter(|_| state == NodeState::Evicting)?;
    let down = now.since(model.cluster.local(ready.last_transition?));
    let word = match ready.status {
        ConditionStatus::Unknown => NodeState::Unknown,
        ConditionStatus::False | ConditionStatus::Invalid => NodeState::NotReady,
        ConditionStatus::True => return None,
    };
    (down >= evicting + Span::from_secs(60)).then(|| (word, seconds(down)))
}
