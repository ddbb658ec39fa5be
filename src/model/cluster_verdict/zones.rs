//! Findings about zones that are disrupted, or would be.

use super::{Finding, PartKind, VerdictLevel};
use crate::model::{Model, NodeState, NodeWatchlist, ZoneNodes};
use kordon_core::engine::{ZoneState, ZoneView, is_every_zone_down};
use kordon_time::Span;

pub(super) fn is_disrupted(zone: &ZoneView) -> bool {
    matches!(zone.state, ZoneState::FullDisruption | ZoneState::PartialDisruption)
}

/// Returns the reason why the controller pauses all evictions: `evictions paused until a node is Ready: every zone is
/// down (24 of 24 nodes)`. `None` if the controller evicts.
pub fn pause(zones: &[ZoneView]) -> Option<String> {
    let is_paused = is_every_zone_down(zones) && zones.iter().any(|zone| zone.not_ready > 0);
    is_paused.then(|| format!("evictions paused until a node is Ready: {}", nodes_down(zones)))
}

/// Findings about disrupted zones: `zone b down (8 of 8)`, `zone b down (1 of 1), shutting down`, `zone b 6 of 10 down,
/// no new evictions`, `no node reports: every zone is down (24 of 24 nodes), evictions paused until a node is Ready`.
pub(super) fn zones_down(zones: &[ZoneView], nodes: &NodeWatchlist) -> Vec<Finding> {
    let names = nodes.zone_names();
    let total = |zones: &[&ZoneView]| {
        let down: usize = zones.iter().map(|zone| zone.not_ready).sum();
        format!("{down} of {}", zones.iter().map(|zone| zone.size).sum::<usize>())
    };
    // The controller notices in its next pass that a zone has a Ready node again.
    let in_state = |state| zones.iter().filter(move |zone| zone.state == state && zone.not_ready > 0);
    let down: Vec<&ZoneView> = in_state(ZoneState::FullDisruption).collect();
    let mut findings = Vec::new();
    let mut texts = Vec::new();
    match down.as_slice() {
        [] => {}
        all if is_every_zone_down(zones) => {
            let cause = every_zone_down(zones, nodes) + &shutting_down(all, nodes) + ", evictions paused";
            let finding = Finding::new(VerdictLevel::Critical, format!("{cause} until a node is Ready"));
            findings.push(finding.shortens_to(PartKind::Other, vec![cause]));
        }
        [zone] => {
            let paused = if zone.is_paused() { ", evictions paused" } else { "" };
            let stopping = shutting_down(&down, nodes);
            texts.push(format!("zone {} down ({}){stopping}{paused}", names.short(&zone.key), total(&down)));
        }
        several => {
            let stopping = shutting_down(several, nodes);
            texts.push(format!("{} zones down ({}){stopping}", several.len(), total(&down)));
        }
    }
    for zone in in_state(ZoneState::PartialDisruption) {
        let rate = if zone.rate >= 1.0 {
            format!("evictions slowed to {} nodes/s", zone.rate)
        } else if zone.rate > 0.0 {
            let every = Span::from_secs_f64((1.0 / f64::from(zone.rate)).round());
            format!("slowed: one more node tainted every {every}")
        } else {
            "no new evictions".into()
        };
        let stopping = shutting_down(&[zone], nodes);
        texts.push(format!("zone {} {} down{stopping}, {rate}", names.short(&zone.key), total(&[zone])));
    }
    findings.extend(texts.into_iter().map(|text| Finding::new(VerdictLevel::Critical, text)));
    findings
}

/// Returns the state of a cluster all of whose zones are down: `no node reports: every zone is down (24 of 24 nodes)`.
fn every_zone_down(zones: &[ZoneView], nodes: &NodeWatchlist) -> String {
    let is_unheard =
        |state: &NodeState| matches!(state, NodeState::Unknown | NodeState::Silent | NodeState::Late);
    let nobody = if nodes.counts().keys().all(is_unheard) { "no node reports" } else { "no node is Ready" };
    format!("{nobody}: {}", nodes_down(zones))
}

/// Returns the number of nodes that are down in a cluster whose zones are all down: `every zone is down (24 of 24 nodes)`.
fn nodes_down(zones: &[ZoneView]) -> String {
    let down: usize = zones.iter().map(|zone| zone.not_ready).sum();
    let size: usize = zones.iter().map(|zone| zone.size).sum();
    format!("every zone is down ({down} of {size} nodes)")
}

/// Says how many of the nodes that are down in these zones are shutting down: `, shutting down`, `, 2 shutting down`;
/// empty if none is.
fn shutting_down(zones: &[&ZoneView], nodes: &NodeWatchlist) -> String {
    let states = zones.iter().filter_map(|zone| nodes.zones().get(&zone.key)).flat_map(ZoneNodes::states);
    match states.filter(|state| **state == NodeState::ShuttingDown).count() {
        0 => String::new(),
        all if all == zones.iter().map(|zone| zone.not_ready).sum::<usize>() => ", shutting down".into(),
        some => format!(", {some} shutting down"),
    }
}

/// Whether at least one zone would be disrupted if its Silent nodes were down.
pub(super) fn disrupts_a_zone(model: &Model) -> bool {
    let threshold = model.settings.unhealthy_zone_threshold.value;
    #[expect(clippy::cast_precision_loss, reason = "zones have far fewer than 2^24 nodes")]
    let would_be_disrupted = |states: &[NodeState]| {
        let failing = states.iter().filter(|state| state.is_failing()).count();
        failing == states.len() && states.len() > 1
            || failing > 2 && failing as f32 >= threshold * states.len() as f32
    };
    let mut zones = model.watchlist.zones().values();
    zones.any(|nodes| nodes.states().contains(&NodeState::Silent) && would_be_disrupted(nodes.states()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kordon_core::cluster::Node;

    #[test]
    fn a_zone_with_a_ready_node_is_not_down_before_the_next_pass() {
        let zone = |state, not_ready| ZoneView {
            key: Node::default().zone(),
            state,
            next_state: ZoneState::Normal,
            size: 1,
            not_ready,
            rate: 0.1,
            queue: Vec::new(),
            next_token: None,
        };
        let down = |zones: &[ZoneView]| zones_down(zones, &NodeWatchlist::default()).len();
        let full = |not_ready| zone(ZoneState::FullDisruption, not_ready);
        let normal = || zone(ZoneState::Normal, 0);
        assert_eq!((down(&[full(1), normal()]), down(&[full(0), normal()])), (1, 0));
        assert_eq!((down(&[full(1)]), down(&[full(0)])), (1, 0), "all evictions are paused");
    }
}
