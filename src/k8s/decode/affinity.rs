//! `spec.affinity` and `spec.topologySpreadConstraints` of pods.

use super::{
    leaf::{Int, LenientList, Pairs, Text, or_default},
    pool::SharedParts,
    protobuf::wire,
    selector::{WireRequirement, WireSelector},
};
use kordon_core::cluster::{
    Name, Namespace,
    scheduling::{NodeOperator, NodeRequirement, NodeTerm, PodTerm, PodTerms, SpreadConstraint},
};

wire! {
    /// `spec.affinity` on the wire.
    pub struct WireAffinity<'a> {
        #[serde(deserialize_with = "or_default")]
        node_affinity: WireNodeAffinity<'a> = 1,
        #[serde(deserialize_with = "or_default")]
        pod_affinity: WirePodAffinity<'a> = 2,
        #[serde(deserialize_with = "or_default")]
        pod_anti_affinity: WirePodAffinity<'a> = 3,
    }
}

impl WireAffinity<'_> {
    /// Returns the required terms. A node must match at least one of them. `None` if nothing is required.
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

impl<'a> WireAffinity<'a> {
    /// Adds the requirements of `matchLabelKeys` and `mismatchLabelKeys` to the selectors, as the API server does when
    /// it creates a pod with these labels (upstream `applyMatchLabelKeysAndMismatchLabelKeys`).
    pub fn apply_label_keys(&mut self, labels: &Pairs<'a>) {
        for affinity in [&mut self.pod_affinity, &mut self.pod_anti_affinity] {
            let preferred = affinity.preferred.0.iter_mut().map(|weighted| &mut weighted.pod_affinity_term);
            affinity.required.0.iter_mut().chain(preferred).for_each(|term| term.apply_label_keys(labels));
        }
    }
}

wire! {
    struct WireNodeAffinity<'a> {
        #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
        required: Option<WireNodeSelector<'a>> = 1,
        #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
        preferred: LenientList<WeightedNodeTerm<'a>> = 2,
    }
}

wire! {
    pub(super) struct WireNodeSelector<'a> {
        node_selector_terms: LenientList<WireNodeTerm<'a>> = 1,
    }
}

impl WireNodeSelector<'_> {
    pub(super) fn terms(&self, pool: &mut SharedParts) -> Box<[NodeTerm]> {
        self.node_selector_terms.iter().map(|term| term.term(pool)).collect()
    }
}

wire! {
    struct WeightedNodeTerm<'a> {
        weight: Int = 1,
        #[serde(deserialize_with = "or_default")]
        preference: WireNodeTerm<'a> = 2,
    }
}

wire! {
    struct WireNodeTerm<'a> {
        match_expressions: LenientList<WireRequirement<'a>> = 1,
        match_fields: LenientList<WireRequirement<'a>> = 2,
    }
}

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

wire! {
    struct WirePodAffinity<'a> {
        #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
        required: LenientList<WirePodTerm<'a>> = 1,
        #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
        preferred: LenientList<WeightedPodTerm<'a>> = 2,
    }
}

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

wire! {
    struct WeightedPodTerm<'a> {
        weight: Int = 1,
        #[serde(deserialize_with = "or_default")]
        pod_affinity_term: WirePodTerm<'a> = 2,
    }
}

wire! {
    struct WirePodTerm<'a> {
        label_selector: Option<WireSelector<'a>> = 1,
        namespaces: LenientList<Text<'a>> = 2,
        namespace_selector: Option<WireSelector<'a>> = 4,
        topology_key: Text<'a> = 3,
        match_label_keys: LenientList<Text<'a>> = 5,
        mismatch_label_keys: LenientList<Text<'a>> = 6,
    }
}

impl<'a> WirePodTerm<'a> {
    fn apply_label_keys(&mut self, labels: &Pairs<'a>) {
        let Some(selector) = &mut self.label_selector else { return };
        for (keys, operator) in [(&self.match_label_keys, "In"), (&self.mismatch_label_keys, "NotIn")] {
            for key in keys.iter() {
                let Some((key, value)) = labels.0.iter().find(|(label, _)| *label == **key) else { continue };
                selector.require(key.clone(), operator, value.clone());
            }
        }
    }
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

wire! {
    /// One of `spec.topologySpreadConstraints` on the wire.
    pub struct WireSpread<'a> {
        max_skew: Int = 1,
        topology_key: Text<'a> = 2,
        when_unsatisfiable: Text<'a> = 3,
        label_selector: Option<WireSelector<'a>> = 4,
        match_label_keys: LenientList<Text<'a>> = 8,
        min_domains: Int = 5,
        node_affinity_policy: Text<'a> = 6,
        node_taints_policy: Text<'a> = 7,
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
