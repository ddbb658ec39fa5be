//! `spec.affinity` and `spec.topologySpreadConstraints` of pods.

use serde::Deserialize;

use super::{
    leaf::{Int, LenientList, Text, or_default},
    pool::SharedParts,
    protobuf::message,
    workload::{WireRequirement, WireSelector},
};
use kordon_core::cluster::{
    Name, Namespace,
    scheduling::{NodeOperator, NodeRequirement, NodeTerm, PodTerm, PodTerms, SpreadConstraint},
};

/// `spec.affinity` on the wire.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct WireAffinity<'a> {
    #[serde(borrow, deserialize_with = "or_default")]
    node_affinity: WireNodeAffinity<'a>,
    #[serde(borrow, deserialize_with = "or_default")]
    pod_affinity: WirePodAffinity<'a>,
    #[serde(borrow, deserialize_with = "or_default")]
    pod_anti_affinity: WirePodAffinity<'a>,
}

message! { impl<'a> WireAffinity<'a> { 1 => node_affinity, 2 => pod_affinity, 3 => pod_anti_affinity } }

impl WireAffinity<'_> {
    /// Returns the required terms, one of which the node must match; `None` if nothing is required.
    pub fn required_nodes(&self, pool: &mut SharedParts) -> Option<Box<[NodeTerm]>> {
        self.node_affinity.required.as_ref().map(|required| required.terms(pool))
    }

    pub fn preferred_nodes(&self, pool: &mut SharedParts) -> Box<[(i32, NodeTerm)]> {
        let weighted = |wire: &WeightedNodeTerm<'_>, pool: &mut SharedParts| {
            (wire.weight.narrow().unwrap_or_default(), wire.preference.term(pool))
        };
        self.node_affinity.preferred.iter().map(|wire| weighted(wire, pool)).collect()
    }

    pub fn near(&self, pool: &mut SharedParts) -> PodTerms {
        self.pod_affinity.terms(pool)
    }

    pub fn apart(&self, pool: &mut SharedParts) -> PodTerms {
        self.pod_anti_affinity.terms(pool)
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireNodeAffinity<'a> {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution", borrow)]
    required: Option<WireNodeSelector<'a>>,
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution", borrow)]
    preferred: LenientList<WeightedNodeTerm<'a>>,
}

message! { impl<'a> WireNodeAffinity<'a> { 1 => required, 2 => preferred } }

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct WireNodeSelector<'a> {
    #[serde(borrow)]
    node_selector_terms: LenientList<WireNodeTerm<'a>>,
}

message! { impl<'a> WireNodeSelector<'a> { 1 => node_selector_terms } }

impl WireNodeSelector<'_> {
    pub(super) fn terms(&self, pool: &mut SharedParts) -> Box<[NodeTerm]> {
        self.node_selector_terms.iter().map(|term| term.term(pool)).collect()
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WeightedNodeTerm<'a> {
    weight: Int,
    #[serde(borrow, deserialize_with = "or_default")]
    preference: WireNodeTerm<'a>,
}

message! { impl<'a> WeightedNodeTerm<'a> { 1 => weight, 2 => preference } }

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireNodeTerm<'a> {
    #[serde(borrow)]
    match_expressions: LenientList<WireRequirement<'a>>,
    #[serde(borrow)]
    match_fields: LenientList<WireRequirement<'a>>,
}

message! { impl<'a> WireNodeTerm<'a> { 1 => match_expressions, 2 => match_fields } }

impl WireNodeTerm<'_> {
    fn term(&self, pool: &mut SharedParts) -> NodeTerm {
        NodeTerm {
            expressions: self.match_expressions.iter().map(|wire| wire.of_label(pool)).collect(),
            fields: self.match_fields.iter().map(|wire| wire.of_field(pool)).collect(),
        }
    }
}

impl WireRequirement<'_> {
    /// Converts a label requirement, with the rules of `labels.NewRequirement`.
    fn of_label(&self, pool: &mut SharedParts) -> NodeRequirement {
        let listed = !self.values.is_empty() && self.values.iter().all(|value| is_label_value(value));
        let number = || match &*self.values {
            [value] => value.parse().ok(),
            _ => None,
        };
        let operator = match &*self.operator {
            "In" if listed => NodeOperator::In(self.names(pool)),
            "NotIn" if listed => NodeOperator::NotIn(self.names(pool)),
            "Exists" if self.values.is_empty() => NodeOperator::Exists,
            "DoesNotExist" if self.values.is_empty() => NodeOperator::DoesNotExist,
            "Gt" => number().map_or(NodeOperator::Invalid, NodeOperator::Gt),
            "Lt" => number().map_or(NodeOperator::Invalid, NodeOperator::Lt),
            _ => NodeOperator::Invalid,
        };
        NodeRequirement { key: pool.name(&self.key), operator }
    }

    /// Converts a field requirement. Only In and NotIn with one value are valid, and only for the name of the node.
    fn of_field(&self, pool: &mut SharedParts) -> NodeRequirement {
        let operator = match &*self.operator {
            _ if *self.key != *"metadata.name" || self.values.len() != 1 => NodeOperator::Invalid,
            "In" => NodeOperator::In(self.names(pool)),
            "NotIn" => NodeOperator::NotIn(self.names(pool)),
            _ => NodeOperator::Invalid,
        };
        NodeRequirement { key: pool.name(&self.key), operator }
    }

    fn names(&self, pool: &mut SharedParts) -> Box<[Name]> {
        self.values.iter().map(|value| pool.name(value)).collect()
    }
}

/// Whether the text is a valid label value.
fn is_label_value(text: &str) -> bool {
    let ends = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && ends(bytes.first())
        && ends(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WirePodAffinity<'a> {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution", borrow)]
    required: LenientList<WirePodTerm<'a>>,
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution", borrow)]
    preferred: LenientList<WeightedPodTerm<'a>>,
}

message! { impl<'a> WirePodAffinity<'a> { 1 => required, 2 => preferred } }

impl WirePodAffinity<'_> {
    fn terms(&self, pool: &mut SharedParts) -> PodTerms {
        let weighted = |wire: &WeightedPodTerm<'_>, pool: &mut SharedParts| {
            (wire.weight.narrow().unwrap_or_default(), wire.pod_affinity_term.term(pool))
        };
        PodTerms {
            required: self.required.iter().map(|wire| wire.term(pool)).collect(),
            preferred: self.preferred.iter().map(|wire| weighted(wire, pool)).collect(),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WeightedPodTerm<'a> {
    weight: Int,
    #[serde(borrow, deserialize_with = "or_default")]
    pod_affinity_term: WirePodTerm<'a>,
}

message! { impl<'a> WeightedPodTerm<'a> { 1 => weight, 2 => pod_affinity_term } }

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WirePodTerm<'a> {
    #[serde(borrow)]
    label_selector: Option<WireSelector<'a>>,
    #[serde(borrow)]
    namespaces: LenientList<Text<'a>>,
    #[serde(borrow)]
    namespace_selector: Option<WireSelector<'a>>,
    #[serde(borrow)]
    topology_key: Text<'a>,
}

message! {
    impl<'a> WirePodTerm<'a> { 1 => label_selector, 2 => namespaces, 3 => topology_key, 4 => namespace_selector }
}

impl WirePodTerm<'_> {
    fn term(&self, pool: &mut SharedParts) -> PodTerm {
        PodTerm {
            selector: self.label_selector.as_ref().map(|selector| selector.selector(pool)),
            namespaces: self.namespaces.iter().map(|name| Namespace(pool.name(name))).collect(),
            namespace_selector: self.namespace_selector.as_ref().map(|selector| selector.selector(pool)),
            topology_key: pool.name(&self.topology_key),
        }
    }
}

/// One of `spec.topologySpreadConstraints` on the wire.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct WireSpread<'a> {
    max_skew: Int,
    #[serde(borrow)]
    topology_key: Text<'a>,
    #[serde(borrow)]
    when_unsatisfiable: Text<'a>,
    #[serde(borrow)]
    label_selector: Option<WireSelector<'a>>,
    #[serde(borrow)]
    match_label_keys: LenientList<Text<'a>>,
    min_domains: Int,
    #[serde(borrow)]
    node_affinity_policy: Text<'a>,
    #[serde(borrow)]
    node_taints_policy: Text<'a>,
}

message! {
    impl<'a> WireSpread<'a> {
        1 => max_skew, 2 => topology_key, 3 => when_unsatisfiable, 4 => label_selector, 5 => min_domains,
        6 => node_affinity_policy, 7 => node_taints_policy, 8 => match_label_keys,
    }
}

impl WireSpread<'_> {
    pub fn constraint(&self, pool: &mut SharedParts) -> SpreadConstraint {
        SpreadConstraint {
            max_skew: self.max_skew.narrow().unwrap_or(1),
            topology_key: pool.name(&self.topology_key),
            hard: *self.when_unsatisfiable != *"ScheduleAnyway",
            selector: self.label_selector.as_ref().map(|selector| selector.selector(pool)),
            match_label_keys: self.match_label_keys.iter().map(|key| pool.name(key)).collect(),
            min_domains: self.min_domains.narrow().unwrap_or(1),
            honours_affinity: *self.node_affinity_policy != *"Ignore",
            honours_taints: *self.node_taints_policy == *"Honor",
        }
    }
}
