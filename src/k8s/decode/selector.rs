//! Label selectors.

use std::borrow::Cow;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};

use super::{
    leaf::{LenientList, Pairs, PairsOrText, Text},
    pool::SharedParts,
    protobuf::{message, wire},
};
use kordon_core::cluster::{Requirement, Selector, SelectorOperator};

/// A label selector: `matchLabels` and `matchExpressions`. The selector of a ReplicationController has the labels
/// directly.
#[derive(Default)]
pub(super) struct WireSelector<'a> {
    pub(super) labels: Pairs<'a>,
    expressions: LenientList<WireRequirement<'a>>,
}

message! { impl<'a> WireSelector<'a> { 1 => labels, 2 => expressions } }

impl WireSelector<'_> {
    pub(super) fn selector(&self, pool: &mut SharedParts) -> Selector {
        let mut requirements = Vec::with_capacity(self.labels.0.len() + self.expressions.len());
        for (key, value) in &self.labels.0 {
            let operator = SelectorOperator::In(vec![pool.name(value)]);
            requirements.push(Requirement { key: pool.name(key), operator });
        }
        requirements.extend(self.expressions.iter().map(|wire| wire.of_selector(pool)));
        Selector { requirements }
    }
}

impl<'a> WireSelector<'a> {
    /// Adds a requirement on a label: depending on `operator`, its value must be `value` or must differ from it.
    pub(super) fn require(&mut self, key: Cow<'a, str>, operator: &'static str, value: Cow<'a, str>) {
        self.expressions.0.push(WireRequirement {
            key: Text(key),
            operator: Text(operator.into()),
            values: LenientList(vec![Text(value)]),
        });
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for WireSelector<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = WireSelector<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a label selector")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut selector = WireSelector::default();
                while let Some(key) = map.next_key::<Text<'de>>()? {
                    match &*key {
                        "matchLabels" => match map.next_value()? {
                            PairsOrText::Absent => {}
                            PairsOrText::Pairs(mut labels) => selector.labels.0.append(&mut labels.0),
                            // A text as the value means that a label itself is named `matchLabels`. This is only
                            // possible in the selector of a ReplicationController.
                            PairsOrText::Text(value) => selector.labels.0.push((key.0, value)),
                        },
                        "matchExpressions" => selector.expressions = map.next_value()?,
                        _ => selector.labels.0.push((key.0, map.next_value::<Text<'de>>()?.0)),
                    }
                }
                Ok(selector)
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

wire! {
    /// A requirement on a label, in a selector or a node affinity. Selectors and node affinities have different
    /// operators.
    pub(super) struct WireRequirement<'a> {
        pub(super) key: Text<'a> = 1,
        pub(super) operator: Text<'a> = 2,
        pub(super) values: LenientList<Text<'a>> = 3,
    }
}

impl WireRequirement<'_> {
    fn of_selector(&self, pool: &mut SharedParts) -> Requirement {
        let mut values = || self.values.iter().map(|value| pool.name(value)).collect();
        let operator = match &*self.operator {
            "In" => SelectorOperator::In(values()),
            "NotIn" => SelectorOperator::NotIn(values()),
            "Exists" => SelectorOperator::Exists,
            "DoesNotExist" => SelectorOperator::DoesNotExist,
            _ => SelectorOperator::Invalid,
        };
        Requirement { key: pool.name(&self.key), operator }
    }
}
