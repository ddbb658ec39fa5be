//! Findings about nodes that are down, silent or late, or in another state that needs attention.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    Finding, PartKind, Phrase, VerdictLevel, seconds, time_until,
    zones::{disrupts_a_zone, is_disrupted, zones_down},
};
use crate::model::{Model, NextEventKind, NodeState, StateDetail, ZoneNodes};
use kordon_core::{
    cluster::{Node, NodeName, Pod, ZoneKey},
    engine::Confidence,
    operation::DrainCount,
    plan::words::counted,
    why::departure::DepartureKind,
};
use kordon_time::Timestamp;

/// Returns the findings about zones and nodes.
pub(super) fn nodes(model: &Model, now: Timestamp) -> Vec<Finding> {
    let zones = &model.views.zones;
    let mut findings = zones_down(zones, &model.watchlist);
    let named: BTreeSet<&ZoneKey> =
        zones.iter().filter(|zone| is_disrupted(zone)).map(|zone| &zone.key).collect();
    let mut by_state: BTreeMap<NodeState, NodesInState<'_>> = BTreeMap::new();
    for (zone, nodes) in model.watchlist.zones() {
        let is_named = |state: NodeState| state.is_down() && named.contains(zone);
        for (name, state) in nodes.notable().filter(|(_, state)| !is_named(*state)) {
            let in_state = by_state.entry(state).or_insert_with(|| NodesInState {
                nodes: 0,
                first: name,
                zone: Some(zone),
            });
            in_state.nodes += 1;
            in_state.zone = in_state.zone.filter(|other| *other == zone);
        }
    }
    let is_silent = by_state.contains_key(&NodeState::Silent);
    // The counts of nodes that are Late, Silent or down are merged into one finding, unless few nodes fail and the worst
    // of them is the only one in its state: then its name says more.
    let worst = by_state.first_key_value();
    let missing: Vec<_> = by_state.iter().filter(|(state, _)| is_missing(**state)).collect();
    let failing = missing.iter().filter(|(state, _)| state.is_failing());
    let several_fail = failing.map(|(_, in_state)| in_state.nodes).sum::<usize>() > FEW;
    if several_fail || worst.is_some_and(|(state, worst)| is_missing(*state) && worst.nodes > 1) {
        let level = missing.iter().map(|(state, _)| level(model, **state)).max();
        findings.extend(level.map(|level| match QuietNodes::find(model) {
            Some(quiet) => quiet.finding(model, level, now),
            None => {
                let phrase = all_nodes(model, &missing).unwrap_or_else(|| several_nodes(model, &missing));
                Finding::new(level, phrase)
            }
        }));
        by_state.retain(|state, _| !is_missing(*state));
    }
    for (state, in_state) in &by_state {
        let level = level(model, *state);
        if level > VerdictLevel::Healthy {
            let finding = match in_state.nodes {
                1 => Finding {
                    node: Some(in_state.first.clone()),
                    ..Finding::new(level, one_node(model, *state, in_state.first, now))
                },
                _ => Finding::new(level, several_nodes(model, &[(state, in_state)])),
            };
            findings.push(finding);
        }
    }
    let under_pressure = by_state.get(&NodeState::Pressure).filter(|in_state| in_state.nodes == 1);
    findings.extend(evicting_kubelets(model, under_pressure.map(|in_state| in_state.first), now));
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
}

/// Returns when the first of the nodes without heartbeats becomes Unknown, if there are [`QuietNodes`]: `first Unknown in
/// 26s`.
pub(super) fn first_unknown(model: &Model, now: Timestamp) -> Option<Finding> {
    let quiet = QuietNodes::find(model).filter(|_| model.views.is_predicted())?;
    let events = model.views.leaving.next.values().filter(|event| event.what == NextEventKind::Unknown);
    let predicted = events.filter_map(|event| event.at).min();
    // Late nodes have no predicted event yet.
    let grace_ends = || {
        let engine = model.engine.as_ref()?;
        quiet.nodes.iter().filter_map(|node| engine.grace_ends(&model.cluster, node)).min()
    };
    let phrase = Phrase::from("first Unknown ").time(time_until(predicted.or_else(grace_ends)?, now));
    Some(Finding::new(VerdictLevel::Notice, phrase).shortens_to(PartKind::Consequence, Vec::new()))
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
    nodes: usize,
    first: &'a NodeName,
    /// The zone of these nodes; `None` if they are in several zones.
    zone: Option<&'a ZoneKey>,
}

/// Returns the finding about several nodes that are down, late or in the same state: `23 of 24 nodes Silent`, `zone a:
/// 3 of 8 nodes Silent, 5 Late`.
fn several_nodes(model: &Model, states: &[(&NodeState, &NodesInState<'_>)]) -> Phrase {
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
        0 => format!("{} of {all} nodes {state}", in_state.nodes),
        _ => format!("{} {state}", in_state.nodes),
    };
    let counts: Vec<String> = states.iter().enumerate().map(count).collect();
    format!("{place}{}", counts.join(", ")).into()
}

/// Returns the finding about a cluster whose nodes are all down or silent: `all 24 nodes Silent`, `all 24 nodes down: 1
/// Unknown, 23 Silent`. `None` if another node is left.
fn all_nodes(model: &Model, states: &[(&NodeState, &NodesInState<'_>)]) -> Option<Phrase> {
    let nodes = model.cluster.nodes().len();
    let counted: usize = states.iter().map(|(_, in_state)| in_state.nodes).sum();
    let text = match states {
        _ if counted < nodes || states.iter().any(|(state, _)| !state.is_failing()) => return None,
        [(state, _)] => format!("all {nodes} nodes {state}"),
        states => {
            let count =
                |(state, in_state): &(&NodeState, &NodesInState<'_>)| format!("{} {state}", in_state.nodes);
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
    let unmeasured = model.unmeasured_under_pressure();
    let whose = match (unmeasured.first(), unmeasured.len()) {
        (None, _) => None,
        (Some(node), 1) => Some(format!("the kubelet of {node}")),
        (Some(_), several) => Some(format!("the kubelets of {several} nodes")),
    };
    let unknown = whose.map(|whose| format!("evictions by {whose} not known: no measurements"));
    of_kubelets(model, None, now).map(|(phrase, _)| phrase.text).into_iter().chain(unknown).collect()
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

/// Adds to the progress of a drain what its last pods wait for, if all of them are terminating: `, last 3 pods end within
/// 15s`, `, last pod held by a finalizer, 45s overdue`.
fn last_of_drain(
    model: &Model,
    node: &NodeName,
    count: DrainCount,
    progress: Phrase,
    now: Timestamp,
) -> Phrase {
    let pods: Vec<&Arc<Pod>> =
        model.cluster.workload_pods(node).filter(|pod| pod.termination.is_some()).collect();
    let deadlines =
        pods.iter().filter_map(|pod| Some(model.cluster.local(pod.termination.as_ref()?.deadline)));
    let Some(deadline) = deadlines.max().filter(|_| pods.len() == count.left()) else { return progress };
    let (last, end) = match pods.len() {
        1 => ("last pod".to_owned(), "ends"),
        several => (format!("last {several} pods"), "end"),
    };
    if deadline > now {
        return progress.and(&format!(", {last} {end} within ")).time(deadline.since(now).rounded_up());
    }
    let held = match pods.iter().all(|pod| pod.holding_finalizers().next().is_some()) {
        true if pods.len() == 1 => " held by a finalizer,",
        true => " held by finalizers,",
        false => "",
    };
    progress.and(&format!(", {last}{held} ")).time(seconds(now.since(deadline))).and(" overdue")
}

/// Finding about one node: `node n-3 Silent 33s`, `node n-3 DiskPressure 1m`, `node n-3 Draining, 3 of 8 pods gone`.
fn one_node(model: &Model, state: NodeState, name: &NodeName, now: Timestamp) -> Phrase {
    let node = model.cluster.node(name);
    let problem = node.and_then(|node| node.problems().next()).filter(|_| state == NodeState::Pressure);
    let phrase = match problem {
        Some(problem) => Phrase::from(format!("node {name} {}", problem.kind)),
        None => Phrase::from(format!("node {name} {state}")),
    };
    let status = node.and_then(|node| model.node_status(node));
    match status.and_then(|status| status.detail(now)) {
        Some(StateDetail::Progress(count)) => {
            let gone = format!(", {} of {} gone", count.gone, counted(count.total(), "pod", "pods"));
            last_of_drain(model, name, count, phrase.and(&gone), now)
        }
        Some(StateDetail::Lasting(span)) => phrase.time(format!(" {span}")),
        None => phrase,
    }
}
