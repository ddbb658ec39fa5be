//! Evictions by NoExecute taints of devices (upstream `devicetainteviction.Controller`).

use std::collections::BTreeSet;

use super::{Explainer, Step, Tense, Topic};
use crate::{
    cluster::{Node, Pod},
    engine::{DeviceEviction, device_evictions},
};

impl Explainer<'_> {
    /// Returns the evictions from the node by taints of devices. There are none without an active controller.
    pub(super) fn device_evictions_on(&self, node: &Node) -> Vec<DeviceEviction> {
        if !self.has_controller() {
            return Vec::new();
        }
        let mut evictions = device_evictions(self.cluster, self.engine.settings().version);
        evictions.retain(|eviction| eviction.pod.node.as_ref() == Some(&node.name));
        evictions
    }

    /// Returns the two steps about the eviction by a taint of a device; `None` if no such taint evicts the pod.
    pub(super) fn device_eviction(&self, pod: &Pod) -> Option<[Step; 2]> {
        let evictions = device_evictions(self.cluster, self.engine.settings().version);
        let DeviceEviction { at, why, .. } =
            evictions.into_iter().find(|eviction| eviction.pod.key == pod.key)?;
        let (tense, text) = match at <= self.now {
            true => (Tense::Present, "its eviction is overdue"),
            false => (Tense::Future, "it is evicted"),
        };
        let cause = Step::new(Tense::Present, Topic::Toleration, why.to_string());
        Some([cause, Step::new(tense, Topic::Eviction, text.into()).at(at)])
    }
}

/// Returns a step for each taint of a device that causes evictions.
pub(super) fn causes(evictions: &[DeviceEviction]) -> impl Iterator<Item = Step> {
    let texts: BTreeSet<String> = evictions.iter().map(|eviction| eviction.why.to_string()).collect();
    texts.into_iter().map(|text| Step::new(Tense::Present, Topic::Toleration, text))
}
