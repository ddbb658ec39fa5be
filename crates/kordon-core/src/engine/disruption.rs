//! How a pass sets the states and eviction rates of the zones, after it assessed the nodes
//! (docs/upstream/node-lifecycle.md#5.3; upstream `handleDisruption`).

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Engine, HeartbeatSource,
    effect::Severity,
    outbox::EffectSubject,
    settings::{FullDisruptionPolicy, Setting},
    why::{Cause, Why},
    zone::{self, Census, Disruption, Zone, ZoneState},
};
use crate::cluster::{Cluster, TaintEffect, ZoneKey};
use kordon_time::Timestamp;

impl Engine {
    pub(super) fn handle_disruption(
        &mut self,
        cluster: &Cluster,
        census: &BTreeMap<ZoneKey, Census>,
        now: Timestamp,
    ) {
        self.taint_mid_pass(cluster, census, now);
        let open = self.find_uncertain(census, now);
        self.metrics.count_zones(census);
        let before = self.zones.len();
        let disruption = zone::update(&mut self.zones, census, &self.settings, now);
        self.nodes_changed |= self.zones.len() != before;
        match disruption {
            Disruption::StillFull => {}
            Disruption::EntersFull => self.enter_full_disruption(cluster, now),
            Disruption::LeavesFull => {
                let text = "a zone recovered: every node gets a new grace period".into();
                self.out.notice(Severity::Warning, text, Why::default(), now);
                for node in cluster.nodes().iter() {
                    if let Some(record) = self.records.get_mut(&node.name) {
                        record.restart_grace(HeartbeatSource::DisruptionEnd, now);
                    }
                    if self.out.has_recorded_no_execute(&node.name) {
                        // The controller has not made the taint change that a dry run recorded. Forget the change,
                        // because the node keeps its taints.
                        self.out.forget(&EffectSubject::Taints(node.name.clone(), TaintEffect::NoExecute));
                    }
                }
                self.scope.on_general_change();
                self.set_zones(cluster, census, Changed::All, now);
            }
            Disruption::PerZone => self.set_zones(cluster, census, Changed::Only, now),
        }
        self.report_uncertain(open);
    }

    /// Stops all evictions, and removes the NoExecute taints not-ready and unreachable from every node, even if another
    /// component added them.
    fn enter_full_disruption(&mut self, cluster: &Cluster, now: Timestamp) {
        let text =
            "all zones down: evictions paused (master disruption mode), NoExecute taints removed".into();
        self.out.notice(Severity::Warning, text, Cause::AllZonesDown.into(), now);
        for node in &self.in_order(cluster) {
            self.cancel_planned(cluster, node, Cause::AllZonesDown, now);
        }
        self.scope.on_general_change();
        for zone in self.zones.values_mut() {
            zone.limiter.swap(0.0, now);
            zone.state = Some(ZoneState::FullDisruption);
        }
    }

    /// Sets the new states and rates of the zones. A zone without counted nodes gets upstream's empty state and keeps
    /// its rate (docs/upstream/node-lifecycle.md#12.15).
    fn set_zones(
        &mut self,
        cluster: &Cluster,
        census: &BTreeMap<ZoneKey, Census>,
        changed: Changed,
        now: Timestamp,
    ) {
        let threshold = self.settings.unhealthy_zone_threshold.value;
        let pauses = self.settings.full_disruption.value == FullDisruptionPolicy::Pause;
        let mut paused = BTreeSet::new();
        for (key, zone) in &mut self.zones {
            let state = census.get(key).map(|census| census.state(threshold));
            if changed == Changed::Only && zone.state == state {
                continue;
            }
            if let Some(state) = state {
                zone.set_limiter(state, &self.settings, now);
                if pauses && state == ZoneState::FullDisruption && zone.state != Some(state) {
                    paused.insert(key.clone());
                }
                if zone.state != Some(state)
                    && (zone.state, state) != (Some(ZoneState::Initial), ZoneState::Normal)
                {
                    let rate = zone.limiter.rate();
                    let (down, size) = (zone.census.not_ready, zone.census.size());
                    let text = format!(
                        "zone {key} is {state}: {down} of {size} nodes not ready, eviction rate {rate}/s"
                    );
                    let level = if state == ZoneState::Normal { Severity::Info } else { Severity::Warning };
                    self.out.notice(level, text, Why::default(), now);
                }
            }
            zone.state = state;
        }
        if !paused.is_empty() {
            self.pause(cluster, &paused, now);
        }
    }

    /// Changes what happens to zones without a ready node, also to those that are in this state now.
    pub fn set_full_disruption(
        &mut self,
        policy: Setting<FullDisruptionPolicy>,
        cluster: &Cluster,
        now: Timestamp,
    ) {
        let before = std::mem::replace(&mut self.settings.full_disruption, policy);
        if before.value == policy.value || !self.is_a_zone_down() {
            return;
        }
        let mut down = BTreeSet::new();
        for (key, zone) in self.zones.iter_mut().filter(|(_, zone)| is_down(zone)) {
            zone.set_limiter(ZoneState::FullDisruption, &self.settings, now);
            down.insert(key.clone());
        }
        if policy.value == FullDisruptionPolicy::Pause {
            self.pause(cluster, &down, now);
        }
    }

    /// Whether a zone has no ready node while another zone has one. While no zone has one, nothing is evicted.
    pub(super) fn is_a_zone_down(&self) -> bool {
        self.zones.values().any(is_down) && !self.zones.values().all(is_down)
    }

    /// Removes the NoExecute taints not-ready and unreachable from the nodes of these zones, so that their pods stay, and
    /// records an event for each node. Upstream has no such event.
    fn pause(&mut self, cluster: &Cluster, zones: &BTreeSet<ZoneKey>, now: Timestamp) {
        for node in self.in_order(cluster).iter().filter(|node| zones.contains(&node.zone())) {
            self.cancel_planned(cluster, node, Cause::ZonePaused, now);
            let text = format!("Evictions of zone {} are paused: none of its nodes is ready", node.zone());
            self.node_event(node, "EvictionsPaused", &text, Cause::ZonePaused, now);
        }
        self.scope.on_general_change();
    }
}

fn is_down(zone: &Zone) -> bool {
    zone.state == Some(ZoneState::FullDisruption)
}

/// Which zones get a new eviction rate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Changed {
    All,
    /// Only zones whose state changed get a new eviction rate.
    Only,
}
