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

impl Engine {
    /// Lets so many nodes of each zone have their taint before the next change of the zone's state that finds
    /// some waiting, in the pass that brings it. None unless told; before 1.34 none whatever is told, for nodes wait only from the pass after.
    pub fn set_tainted_between(&mut self, nodes: BTreeMap<ZoneKey, usize>) {
        self.tainted_between = nodes;
    }

    /// Taints the nodes that the tainting loop got to while the pass judged the others.
    pub(super) fn taint_between(
        &mut self,
        cluster: &Cluster,
        census: &BTreeMap<ZoneKey, Census>,
        now: Timestamp,
    ) {
        if self.tainted_between.is_empty()
            || self.rules.profile == Profile::Legacy
            || !self.rules.taints_by_current_ready
        {
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
                    shadow.expect_taint(&name, key, now);
                }
            }
        }
    }
}
