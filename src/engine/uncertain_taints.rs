//! A piece of chance since 1.34, as an input: the tainting loop may run in the middle of the pass that finds a zone
//! disrupted, when its nodes wait already and its rate is still the old one.

use std::collections::BTreeMap;

use super::{Engine, pass, settings::Profile, taints, why::Cause, zone::Census};
use crate::{
    cluster::{Cluster, NodeName, ZoneKey},
    time::{Span, Timestamp},
};

/// What a pass may take, most of it for marking pods not ready with a request each: within that the bucket must give a
/// token, or the tainting loop does nothing between.
const LONGEST_PASS: Span = Span::from_secs(1);

/// Nodes of a zone of which some may have their taint before the zone's new state takes effect, and some not.
#[derive(Clone, Debug, PartialEq)]
pub struct UncertainTaints {
    /// The pass that finds the zone disrupted.
    pub at: Timestamp,
    pub zone: ZoneKey,
    /// The nodes that wait.
    pub among: Vec<NodeName>,
    /// So many of them at most.
    pub at_most: usize,
}

impl Engine {
    /// What a forecast leaves to chance.
    pub fn poll_uncertain_taints(&mut self) -> Option<UncertainTaints> {
        self.chances.pop_front()
    }

    /// The zones whose state is about to change while nodes wait there and a token is at hand, with their rates. Only
    /// a forecast asks.
    pub(super) fn open_chances(
        &self,
        census: &BTreeMap<ZoneKey, Census>,
        now: Timestamp,
    ) -> Vec<(f32, UncertainTaints)> {
        if self.out.tells_all() || !self.taints_between() {
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

    /// Where the rate has fallen it matters who had a taint before.
    pub(super) fn note_chances(&mut self, open: Vec<(f32, UncertainTaints)>) {
        let fell = |(before, chance): (f32, UncertainTaints)| {
            let after = self.zones.get(&chance.zone).map_or(0.0, |zone| zone.limiter.rate());
            (after < before).then_some(chance)
        };
        self.chances.extend(open.into_iter().filter_map(fell).collect::<Vec<_>>());
    }

    /// Whether the tainting loop may come in between at all.
    fn taints_between(&self) -> bool {
        self.rules.profile != Profile::Legacy && self.rules.taints_by_current_ready
    }

    /// Lets so many nodes of each zone have their taint before the next change of the zone's state that finds
    /// some waiting, in the pass that brings it. None unless told; before 1.34 none whatever is told, for nodes wait only from the pass after.
    pub fn set_tainted_mid_pass(&mut self, nodes: BTreeMap<ZoneKey, usize>) {
        self.tainted_between = nodes;
    }

    /// Taints the nodes that the tainting loop got to while the pass judged the others.
    pub(super) fn taint_between(
        &mut self,
        cluster: &Cluster,
        census: &BTreeMap<ZoneKey, Census>,
        now: Timestamp,
    ) {
        if self.tainted_between.is_empty() || !self.taints_between() {
            return;
        }
        let threshold = self.settings.unhealthy_zone_threshold.value;
        for (key, census) in census {
            let Some(zone) = self.zones.get(key).filter(|zone| !zone.queue.is_empty()) else { continue };
            let changes = zone.state != Some(census.state(threshold));
            if changes && let Some(count) = self.tainted_between.remove(key) {
                self.taint_some(cluster, key, count, now);
            }
        }
    }

    /// Gives the taint to the first nodes that wait in a zone. They go by the state that the pass has just found, which
    /// the cluster does not show yet.
    fn taint_some(&mut self, cluster: &Cluster, key: &ZoneKey, count: usize, now: Timestamp) {
        let Self { zones, records, settings, out, shadow, tainting, .. } = self;
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
            let why = record.why(settings).then(Cause::Silent).then(waiting.clone());
            let why = why.then(Cause::Token { zone: key.clone() });
            zone.queue.stop_waiting(&name);
            zone.limiter.drain(now);
            if taints::swap_no_execute(node, wanted, opposite, why, out, now) {
                tainting.insert(name.clone(), node.zone());
                if let Some(shadow) = shadow {
                    shadow.expect_turn(&name, key, now);
                }
            }
        }
    }
}
