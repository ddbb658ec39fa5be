//! The values of upstream's metrics (docs/upstream/node-lifecycle.md#10).
//!
//! The duration of passes is measured by the caller of the engine, which has no clock.

use std::collections::BTreeMap;

use super::zone::Census;
use crate::cluster::ZoneKey;
use kordon_time::Span;

/// The values of the controllers' metrics since the engine started.
///
/// In a dry run, the engine's writes are recorded instead of being sent, but count as made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    /// Values by zone. The values of a dropped zone stay, as upstream keeps the series of its metrics.
    pub zones: BTreeMap<ZoneKey, ZoneMetrics>,
    /// `taint_eviction_controller_pod_deletions_total`.
    pub pod_deletions: u64,
    /// `taint_eviction_controller_pod_deletion_duration_seconds`: the time from when a deletion was due until it was
    /// done, in seconds. Before 1.38 upstream multiplies it by 10⁹ by mistake.
    pub pod_deletion_delay: Histogram,
}

/// One zone's values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZoneMetrics {
    /// `node_collector_zone_size`: counted nodes.
    pub size: usize,
    /// `node_collector_unhealthy_nodes_in_zone`.
    pub unhealthy: usize,
    /// `node_collector_evictions_total`, before 1.24 `evictions_number`: nodes tainted by the zone's queue, or in
    /// legacy mode nodes whose pods were deleted. Nodes without pods count too (docs/upstream/node-lifecycle.md#12.45).
    pub evictions: u64,
}

impl ZoneMetrics {
    /// `node_collector_zone_health`: the percentage of counted nodes that are ready; 100 for a zone without counted
    /// nodes.
    #[expect(clippy::cast_precision_loss, reason = "zones have far fewer than 2^52 nodes")]
    pub fn health(&self) -> f64 {
        if self.size == 0 { 100.0 } else { 100.0 * (self.size - self.unhealthy) as f64 / self.size as f64 }
    }
}

impl Metrics {
    /// Sets each zone's counts to those of a pass. The counts of zones without counted nodes become 0.
    pub(super) fn count_zones(&mut self, census: &BTreeMap<ZoneKey, Census>) {
        for (key, zone) in &mut self.zones {
            if !census.contains_key(key) {
                (zone.size, zone.unhealthy) = (0, 0);
            }
        }
        for (key, census) in census {
            let zone = self.zone(key);
            (zone.size, zone.unhealthy) = (census.size(), census.not_ready);
        }
    }

    /// Creates the counter of a new zone.
    pub(super) fn touch(&mut self, zone: &ZoneKey) {
        self.zone(zone);
    }

    pub(super) fn count_eviction(&mut self, zone: &ZoneKey) {
        self.zone(zone).evictions += 1;
    }

    pub(super) fn count_deletion(&mut self, delay: Span) {
        self.pod_deletions += 1;
        self.pod_deletion_delay.observe(delay.or_zero());
    }

    fn zone(&mut self, key: &ZoneKey) -> &mut ZoneMetrics {
        if !self.zones.contains_key(key) {
            self.zones.insert(key.clone(), ZoneMetrics::default());
        }
        self.zones.get_mut(key).expect("it has just been put in")
    }
}

/// Histogram of durations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Histogram {
    /// Number of durations in each bucket. Bucket `i` ends at `BOUNDS[i]` and starts above the previous bound.
    pub counts: [u64; Histogram::BOUNDS.len()],
    /// Number of all durations, including those above the last bound.
    pub count: u64,
    /// Sum of all durations, in seconds.
    pub sum: f64,
}

impl Histogram {
    /// Upper bounds of the buckets of upstream's histogram, in seconds.
    pub const BOUNDS: [f64; 12] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 30.0, 60.0, 120.0, 180.0, 240.0];

    fn observe(&mut self, span: Span) {
        let secs = span.as_secs_f64();
        self.count += 1;
        self.sum += secs;
        if let Some(place) = Self::BOUNDS.iter().position(|bound| secs <= *bound) {
            self.counts[place] += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str) -> ZoneKey {
        ZoneKey { zone: name.into(), ..ZoneKey::default() }
    }

    #[test]
    fn a_dropped_zone_keeps_its_row_as_an_empty_and_healthy_one() {
        let mut metrics = Metrics::default();
        metrics.count_zones(&BTreeMap::from([(zone("a"), Census { ready: 1, not_ready: 3 })]));
        metrics.count_eviction(&zone("a"));
        let row = metrics.zones[&zone("a")];
        assert_eq!((row.size, row.unhealthy, row.health(), row.evictions), (4, 3, 25.0, 1));
        metrics.count_zones(&BTreeMap::new());
        let row = metrics.zones[&zone("a")];
        assert_eq!((row.size, row.unhealthy, row.health(), row.evictions), (0, 0, 100.0, 1));
    }

    #[test]
    fn spans_are_counted_up_to_their_bound_and_beyond_the_last() {
        let mut histogram = Histogram::default();
        for millis in [5, 6, 240_000, 240_001] {
            histogram.observe(Span::from_millis(millis));
        }
        assert_eq!((histogram.counts[0], histogram.counts[1], histogram.counts[11]), (1, 1, 1));
        assert_eq!((histogram.count, histogram.counts.iter().sum::<u64>()), (4, 3));
    }
}
