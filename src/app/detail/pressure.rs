//! Pressure in the detail of a node: signals compared with their thresholds, and the order of eviction.

use super::{DetailContext, DetailRow};
use crate::model::NodePressure;
use kordon_core::{
    cluster::Node,
    pressure::{EvictionOrder, RankedPod},
};

/// Minimum number of pods shown in the order of eviction. Pods that are evicted are always shown.
const FIRST_PODS: usize = 5;

/// A pod's place in the order in which the kubelet evicts pods under pressure.
#[derive(Clone, Debug, PartialEq)]
pub struct EvictionPlace {
    pub pod: RankedPod,
    /// Level of the eviction signal after this pod's eviction; `None` if the pod is not evicted.
    pub available: Option<i64>,
}

/// The rows about pressure on a node.
pub fn rows(node: &Node, context: &DetailContext<'_>) -> Vec<DetailRow> {
    let title = |note: String| DetailRow::Section { title: "pressure", note };
    let Some(pressure) = context.model.node_pressure(node, None) else {
        return vec![title("asking the kubelet for its measurements".into())];
    };
    let mut rows = vec![title(sources(&pressure, context))];
    let measured = pressure.signals.iter().filter(|signal| signal.level.is_some());
    rows.extend(measured.cloned().map(|signal| DetailRow::Signal(Box::new(signal))));
    rows.extend(order(&pressure.order));
    rows
}

/// Sources of usage and thresholds: `kubelet, 3s ago · default thresholds: the server forbids it`.
fn sources(pressure: &NodePressure, context: &DetailContext<'_>) -> String {
    let usage = match &pressure.usage {
        Ok((source, at)) => {
            let age = context.now.since(*at).or_zero();
            format!("{}, {}s ago", source.as_str(), age.as_secs())
        }
        Err(why) => format!("usage unknown: {why}"),
    };
    match &pressure.assumed_thresholds {
        None => usage,
        Some(why) => format!("{usage} · default thresholds: {why}"),
    }
}

/// Rows of the order of eviction: every pod that is evicted, and in any case the first [`FIRST_PODS`].
fn order(order: &EvictionOrder) -> Vec<DetailRow> {
    if order.ranking.is_empty() {
        return Vec::new();
    }
    let place =
        |pod: &RankedPod| EvictionPlace { pod: pod.clone(), available: order.available_after(&pod.pod.key) };
    let places = order.ranking.iter().map(place);
    let shown =
        places.enumerate().filter(|(number, place)| *number < FIRST_PODS || place.available.is_some());
    let shown: Vec<DetailRow> = shown.map(|(_, place)| DetailRow::EvictionPlace(Box::new(place))).collect();
    let left = order.ranking.len() - shown.len();
    let fact = |name: &str, text: String| DetailRow::Fact {
        name: name.into(),
        at: None,
        text,
        tone: super::Tone::Plain,
    };
    let mut rows = vec![DetailRow::Section { title: "evicted first", note: order.summary() }];
    rows.extend(order.node_reclaim_words().map(|what| fact("before that", format!("it removes {what}"))));
    rows.extend(shown);
    rows.extend((left > 0).then(|| fact("", format!("and {left} more"))));
    rows
}
