//! A race in releases from 1.34 on: the tainting loop may run in the middle of the pass that finds a zone disrupted. At
//! that moment the zone's nodes already wait, and the zone still has its old rate. The result of the race is an input
//! of the engine.

use std::collections::BTreeMap;

use super::{Engine, pass, settings::Profile, taints, why::Cause, zone::Census};
use crate::cluster::{Cluster, NodeName, ZoneKey};
use kordon_time::{Span, Timestamp};

/// Maximum duration of a pass. A pass spends most of its time on marking pods not ready, with one request for each pod.
/// The tainting loop can run in the middle of a pass only if a token is available within this time.
const LONGEST_PASS: Span = Span::from_secs(1);

/// The waiting nodes of a zone, some of which may be tainted before the zone's new state takes effect.
#[derive(Clone, Debug, PartialEq)]
pub struct UncertainTaints {
    /// Time of the pass that finds the zone disrupted.
    pub at: Timestamp,
    pub zone: ZoneKey,
    /// The waiting nodes.
    pub among: Vec<NodeName>,
    /// Maximum number of waiting nodes that can be tainted in the middle of the pass.
    pub at_most: usize,
}

impl Engine {
    /// Returns the waiting nodes of the next zone in which a forecast cannot predict the taints; none if all were
    /// polled.
    pub fn poll_uncertain_taints(&mut self) -> Option<UncertainTaints> {
        self.uncertain.pop_front()
    }

    /// In a forecast, finds the zones whose state is about to change while nodes wait in them and a token is available.
    /// Each zone comes with its current rate.
    pub(super) fn find_uncertain(
        &self,
        census: &BTreeMap<ZoneKey, Census>,
        now: Timestamp,
    ) -> Vec<(f32, UncertainTaints)> {
        if self.out.sends_all() || !self.can_taint_mid_pass() {
            return Vec::new();
        }
        let threshold = self.settings.unhealthy_zone_threshold.value;
        let open = |(key, census): (&ZoneKey, &Census)| {
            let zone = self.zones.get(key).filter(|zone| !zone.queue.is_empty())?;
            let token = zone.limiter.next_token(now).is_some_and(|token| token <= now + LONGEST_PASS);
            (token && zone.state != Some(census.state(threshold))).then(|| {
                let among: Vec<NodeName> = zone.queue.waiting().map(|entry| entry.node.clone()).collect();
                let rate = zone.limiter.rate();
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small rate")]
                let at_most = (1 + rate as usize).min(among.len());
                (rate, UncertainTaints { at: now, zone: key.clone(), among, at_most })
            })
        };
        census.iter().filter_map(open).collect()
    }

    /// Reports the zones whose eviction rate has fallen in this pass. In other zones, it does not matter which nodes
    /// were tainted first.
    pub(super) fn report_uncertain(&mut self, open: Vec<(f32, UncertainTaints)>) {
        let fell = |(before, chance): (f32, UncertainTaints)| {
            let after = self.zones.get(&chance.zone).map_or(0.0, |zone| zone.limiter.rate());
            (after < before).then_some(chance)
        };
        self.uncertain.extend(open.into_iter().filter_map(fell).collect::<Vec<_>>());
    }

    /// Whether the tainting loop can taint nodes in the middle of the pass that queues them.
    fn can_taint_mid_pass(&self) -> bool {
        self.rules.profile != Profile::Legacy && self.rules.taints_by_current_ready
    }

    /// Sets how many nodes of each zone are tainted in the middle of a pass; by default none.
    ///
    /// The count applies once, in the next pass that changes the zone's state while nodes wait in the zone. Before 1.34
    /// the count has no effect, because there the nodes that a pass queues wait only from the next pass on.
    pub fn set_tainted_mid_pass(&mut self, nodes: BTreeMap<ZoneKey, usize>) {
        self.tainted_mid_pass = nodes;
    }

    /// Taints the nodes that the tainting loop reaches while the pass assesses the others.
    pub(super) fn taint_mid_pass(
        &mut self,
        cluster: &Cluster,
        census: &BTreeMap<ZoneKey, Census>,
        now: Timestamp,
    ) {
        if self.tainted_mid_pass.is_empty() || !self.can_taint_mid_pass() {
            return;
        }
        let threshold = self.settings.unhealthy_zone_threshold.value;
        for (key, census) in census {
            let Some(zone) = self.zones.get(key).filter(|zone| !zone.queue.is_empty()) else { continue };
            let changes = zone.state != Some(census.state(threshold));
            if changes && let Some(count) = self.tainted_mid_pass.remove(key) {
                self.taint_some(cluster, key, count, now);
            }
        }
    }

    /// Taints the first waiting nodes of a zone. Uses the status of Ready that the pass has just found, which the
    /// cluster does not show yet.
    fn taint_some(&mut self, cluster: &Cluster, key: &ZoneKey, count: usize, now: Timestamp) {
        let Self { zones, records, heartbeats, settings, out, shadow, tainting, .. } = self;
        let Some(zone) = zones.get_mut(key) else { return };
        if zone.limiter.next_token(now).is_none_or(|token| token > now + LONGEST_PASS) {
            return;
        }
        let waiting = pass::queued(key, zone);
        let first: Vec<NodeName> = zone.queue.waiting().take(count).map(|entry| entry.node.clone()).collect();
        for name in first {
            let (Some(node), Some(record)) = (cluster.node(&name), records.get(&name)) else { continue };
            let keys = record.saved_ready().and_then(taints::no_execute_keys);
            let Some((wanted, opposite)) = keys else { continue };
            let why = record.why(settings, heartbeats.last(&name)).then(Cause::Silent).then(waiting.clone());
            let why = why.then(Cause::Token { zone: key.clone() });
            zone.queue.stop_waiting(&name);
            zone.limiter.drain(now);
            if taints::swap_no_execute(node, wanted, opposite, why, out, cluster.clock(), now) {
                tainting.insert(name.clone(), node.zone());
                if let Some(shadow) = shadow {
                    shadow.expect_turn(&name, key, now);
                }
            }
        }
    }
}
