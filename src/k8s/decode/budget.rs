//! PodDisruptionBudgets.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{
    Decoder, WatchEvent, Wire,
    leaf::{Int, IntOrText, LenientList, Text, Times, or_default},
    meta::Meta,
    node::WireCondition,
    pool::SharedParts,
    protobuf::message,
    workload::WireSelector,
};
use kordon_core::cluster::{Budget, BudgetStatus, Change, IntOrPercent, Name, UnhealthyPolicy};
use kordon_time::ClusterTime;

/// Reads budgets.
#[derive(Debug, Default)]
pub struct BudgetDecoder(SharedParts);

impl Decoder for BudgetDecoder {
    type Wire<'a> = WireBudget<'a>;

    fn change(&mut self, event: WatchEvent<WireBudget<'_>>) -> Option<Change> {
        Some(Change::Budget(event.map(|wire| budget(&wire, &mut self.0))))
    }

    fn tidy(&mut self) {
        self.0.tidy();
    }
}

fn budget(wire: &WireBudget<'_>, pool: &mut SharedParts) -> Budget {
    let WireBudget { metadata, spec, status } = wire;
    Budget {
        key: metadata.key(pool),
        uid: metadata.uid(),
        version: metadata.version(),
        generation: metadata.generation.or(0),
        selector: spec.selector.as_ref().map(|selector| selector.selector(pool)),
        min_available: int_or_percent(&spec.min_available),
        max_unavailable: int_or_percent(&spec.max_unavailable),
        unhealthy: UnhealthyPolicy::parse(&spec.unhealthy_pod_eviction_policy),
        status: BudgetStatus {
            observed_generation: status.observed_generation.or(0),
            disruptions_allowed: status.disruptions_allowed.narrow().unwrap_or_default(),
            current_healthy: status.current_healthy.narrow().unwrap_or_default(),
            desired_healthy: status.desired_healthy.narrow().unwrap_or_default(),
            expected_pods: status.expected_pods.narrow().unwrap_or_default(),
            disrupted_pods: disrupted(&status.disrupted_pods),
            sync_failure: status.conditions.iter().find_map(sync_failure),
        },
    }
}

fn int_or_percent(wire: &IntOrText<'_>) -> Option<IntOrPercent> {
    match wire {
        IntOrText::Absent => None,
        IntOrText::Int(number) => Int(Some(*number)).narrow().map(IntOrPercent::Int),
        IntOrText::Text(text) => text.strip_suffix('%')?.parse().ok().map(IntOrPercent::Percent),
    }
}

fn disrupted(times: &Times<'_>) -> BTreeMap<Name, ClusterTime> {
    times.0.iter().filter_map(|(pod, granted)| Some(((**pod).into(), granted.time()?))).collect()
}

fn sync_failure(condition: &WireCondition<'_>) -> Option<Name> {
    let failed = *condition.kind == *"DisruptionAllowed" && *condition.reason == *"SyncFailed";
    failed.then(|| (*condition.message).into())
}

/// A PodDisruptionBudget on the wire.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct WireBudget<'a> {
    #[serde(borrow, deserialize_with = "or_default")]
    metadata: Meta<'a>,
    #[serde(borrow, deserialize_with = "or_default")]
    spec: Spec<'a>,
    #[serde(borrow, deserialize_with = "or_default")]
    status: Status<'a>,
}

message! { impl<'a> WireBudget<'a> { 1 => metadata, 2 => spec, 3 => status } }

impl Wire for WireBudget<'_> {
    fn meta(&self) -> &Meta<'_> {
        &self.metadata
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec<'a> {
    #[serde(borrow)]
    min_available: IntOrText<'a>,
    #[serde(borrow)]
    max_unavailable: IntOrText<'a>,
    #[serde(borrow)]
    selector: Option<WireSelector<'a>>,
    #[serde(borrow)]
    unhealthy_pod_eviction_policy: Text<'a>,
}

message! {
    impl<'a> Spec<'a> { 1 => min_available, 2 => selector, 3 => max_unavailable, 4 => unhealthy_pod_eviction_policy }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status<'a> {
    observed_generation: Int,
    disruptions_allowed: Int,
    current_healthy: Int,
    desired_healthy: Int,
    expected_pods: Int,
    #[serde(borrow)]
    disrupted_pods: Times<'a>,
    #[serde(borrow)]
    conditions: LenientList<WireCondition<'a>>,
}

message! {
    impl<'a> Status<'a> {
        1 => observed_generation, 2 => disrupted_pods, 3 => disruptions_allowed, 4 => current_healthy,
        5 => desired_healthy, 6 => expected_pods, 7 => conditions,
    }
}
