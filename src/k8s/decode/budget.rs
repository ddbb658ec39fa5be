//! PodDisruptionBudgets.

use std::collections::BTreeMap;

use super::{
    Decoder, WatchEvent, has_metadata,
    leaf::{Int, IntOrText, LenientList, Text, Times, or_default},
    meta::Meta,
    node::WireCondition,
    pool::SharedParts,
    protobuf::wire,
    selector::WireSelector,
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
        owner: metadata.owner(pool),
    }
}

pub(super) fn int_or_percent(wire: &IntOrText<'_>) -> Option<IntOrPercent> {
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

wire! {
    /// A PodDisruptionBudget on the wire.
    pub struct WireBudget<'a> {
        #[serde(deserialize_with = "or_default")]
        metadata: Meta<'a> = 1,
        #[serde(deserialize_with = "or_default")]
        spec: Spec<'a> = 2,
        #[serde(deserialize_with = "or_default")]
        status: Status<'a> = 3,
    }
}

has_metadata!(WireBudget);

wire! {
    struct Spec<'a> {
        min_available: IntOrText<'a> = 1,
        max_unavailable: IntOrText<'a> = 3,
        selector: Option<WireSelector<'a>> = 2,
        unhealthy_pod_eviction_policy: Text<'a> = 4,
    }
}

wire! {
    struct Status<'a> {
        observed_generation: Int = 1,
        disruptions_allowed: Int = 3,
        current_healthy: Int = 4,
        desired_healthy: Int = 5,
        expected_pods: Int = 6,
        disrupted_pods: Times<'a> = 2,
        conditions: LenientList<WireCondition<'a>> = 7,
    }
}
