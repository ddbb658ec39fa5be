//! When predicted events may happen if it is not known when the controller makes its passes.

use std::collections::BTreeMap;

use super::{Forecast, ForecastKind, time_range::TimeRange};
use crate::{
    cluster::{Cluster, Key, NodeName},
    engine::{Engine, Settings},
};
use kordon_time::{Span, Timestamp};

/// Number of moments, evenly spread over a period, at which the controller's next pass is assumed.
const PHASES: i64 = 5;

/// When predicted events may happen. No write of the controller was seen yet, so that the next pass may be at any moment
/// within a period.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventRanges {
    unknown: BTreeMap<NodeName, TimeRange>,
    tainted: BTreeMap<NodeName, TimeRange>,
    pods: BTreeMap<Key, TimeRange>,
}

impl EventRanges {
    /// Makes further forecasts of a controller with these settings, each with another time of its next pass, and returns
    /// the ranges of their events and those of `forecast`.
    pub fn new(forecast: &Forecast, settings: &Settings, cluster: &Cluster) -> Self {
        let Forecast { made, until, .. } = *forecast;
        let pause = Span::from_nanos(settings.node_monitor_period.value.as_nanos() / PHASES);
        let mut ranges = Self::default();
        ranges.add(forecast);
        let attached = Engine::attach(settings.clone(), cluster, made);
        for phase in 0..PHASES {
            let engine = attached.with_next_pass(made + pause * phase);
            ranges.add(&Forecast::run(&engine, cluster, made, until.since(made)));
        }
        let Self { unknown, tainted, pods } = &mut ranges;
        let all = unknown.values_mut().chain(tainted.values_mut()).chain(pods.values_mut());
        // The next pass may be between two of the assumed moments.
        for range in all.filter(|range| range.first < range.last) {
            *range = TimeRange { first: made.max(range.first - pause), last: range.last + pause };
        }
        ranges
    }

    /// When the node becomes Unknown; `None` if that is not predicted.
    pub fn unknown(&self, node: &NodeName) -> Option<TimeRange> {
        self.unknown.get(node).copied()
    }

    /// When the node gets its NoExecute taint; `None` if that is not predicted.
    pub fn tainted(&self, node: &NodeName) -> Option<TimeRange> {
        self.tainted.get(node).copied()
    }

    /// When the first of these pods leaves. Pods without a predicted time leave at the given time.
    pub fn first<'a>(&self, pods: impl Iterator<Item = (&'a Key, Timestamp)>) -> Option<TimeRange> {
        let ranges = pods.map(|(pod, at)| self.pods.get(pod).copied().unwrap_or(at.into()));
        ranges.reduce(|one, other| TimeRange {
            first: one.first.min(other.first),
            last: one.last.min(other.last),
        })
    }

    /// Adds the first event of each kind of each node, and the first of each pod.
    fn add(&mut self, forecast: &Forecast) {
        let mut first = Self::default();
        for step in &forecast.steps {
            let at = TimeRange::from(step.at);
            match &step.kind {
                ForecastKind::Unknown { node } => _ = first.unknown.entry(node.clone()).or_insert(at),
                ForecastKind::NoExecute { node, .. } => {
                    _ = first.tainted.entry(node.clone()).or_insert(at);
                }
                ForecastKind::Ended { pod, .. }
                | ForecastKind::Deleted { pod, .. }
                | ForecastKind::Removed { pod, .. } => _ = first.pods.entry(pod.clone()).or_insert(at),
            }
        }
        let Self { unknown, tainted, pods } = first;
        widen(&mut self.unknown, unknown);
        widen(&mut self.tainted, tainted);
        widen(&mut self.pods, pods);
    }
}

fn widen<K: Ord>(ranges: &mut BTreeMap<K, TimeRange>, others: BTreeMap<K, TimeRange>) {
    for (key, other) in others {
        let known = ranges.entry(key).or_insert(other);
        *known = known.with(other);
    }
}
