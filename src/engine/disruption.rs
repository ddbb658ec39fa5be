//! What a pass makes of the zones once it has judged the nodes (docs/upstream/node-lifecycle.md#5.3; upstream
//! `handleDisruption`).

use std::collections::BTreeMap;

use super::{
    Engine,
    effect::Severity,
    outbox::EffectSubject,
    why::{Cause, Why},
    zone::{self, Census, Disruption, ZoneState},
};
use crate::{
    cluster::{Cluster, TaintEffect, ZoneKey},
    time::Timestamp,
};

impl Engine {
    pub(super) fn handle_disruption(
        &mut self,
        cluster: &Cluster,
        census: &BTreeMap<ZoneKey, Census>,
        now: Timestamp,
    ) {
        self.taint_between(cluster, census, now);
        let open = self.open_chances(census, now);
        self.metrics.count_zones(census);
        let before = self.zones.len();
        let disruption = zone::judge(&mut self.zones, census, &self.settings, now);
        self.roll_changed |= self.zones.len() != before;
        match disruption {
            Disruption::StillFull => {}
            Disruption::EntersFull => self.enter_full_disruption(cluster, now),
            Disruption::LeavesFull => {
                let text = "a zone recovered: every node gets a new grace period".into();
                self.out.notice(Severity::Warning, text, Why::default(), now);
                for node in cluster.nodes().iter() {
                    if let Some(record) = self.records.get_mut(&node.name) {
                        record.begin_anew(now);
                    }
                    if self.out.has_recorded_no_execute(&node.name) {
                        // A taint that the controller did not take off stays.
                        self.out.settle(&EffectSubject::Taints(node.name.clone(), TaintEffect::NoExecute));
                    }
                }
                self.attention.on_upheaval();
                self.set_zones(census, Changed::All, now);
            }
            Disruption::PerZone => self.set_zones(census, Changed::Only, now),
        }
        self.note_chances(open);
    }

    /// Stops all evictions and takes off the NoExecute taints of every node, also those that somebody else put on.
    fn enter_full_disruption(&mut self, cluster: &Cluster, now: Timestamp) {
        let text =
            "all zones down: evictions paused (master disruption mode), NoExecute taints removed".into();
        self.out.notice(Severity::Warning, text, Cause::AllZonesDown.into(), now);
        for node in &self.in_order(cluster) {
            self.call_off(cluster, node, Cause::AllZonesDown, now);
        }
        self.attention.on_upheaval();
        for zone in self.zones.values_mut() {
            zone.limiter.swap(0.0, now);
            zone.state = Some(ZoneState::FullDisruption);
        }
    }

    /// Gives zones their new states and rates. A zone without counted nodes gets upstream's empty state and keeps
    /// its rate (docs/upstream/node-lifecycle.md#12.15).
    fn set_zones(&mut self, census: &BTreeMap<ZoneKey, Census>, changed: Changed, now: Timestamp) {
        let threshold = self.settings.unhealthy_zone_threshold.value;
        for (key, zone) in &mut self.zones {
            let state = census.get(key).map(|census| census.state(threshold));
            if changed == Changed::Only && zone.state == state {
                continue;
            }
            if let Some(state) = state {
                zone.set_limiter(state, &self.settings, now);
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
    }
}

/// Which zones get their rate set.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Changed {
    All,
    /// Those whose state changed.
    Only,
}
