//! Devices: classes, claims and their templates, slices, and taint rules (resource.k8s.io).

use std::{borrow::Cow, sync::Arc};

use serde::Deserialize;

use super::{
    Decoder, WatchEvent,
    affinity::WireNodeSelector,
    has_metadata,
    leaf::{Amounts, Entries, Flag, Int, LenientBool, LenientList, Quantity, Text, Time, or_default},
    meta::Meta,
    pool::SharedParts,
    protobuf::{Message, NotAMessage, WireValue, wire},
};
use kordon_core::cluster::{
    Change, DeviceChange, DeviceClass, DeviceTaintRule, Name, NodeName, ResourceClaim, ResourceClaimTemplate,
    ResourceSlice, TolerationOperator, Uid,
    device::{
        AllocatedDevice, CapacityPolicy, ClaimOwner, ConstraintRule, Device, DeviceAllocation,
        DeviceAlternative, DeviceAmount, DeviceAttribute, DeviceClaimSpec, DeviceConstraint, DeviceCounter,
        DeviceId, DeviceNodes, DeviceRequest, DeviceTaint, DeviceTaintEffect, DeviceTaintSelector,
        DeviceToleration, ValidAmounts,
    },
};

/// Reads DeviceClasses.
#[derive(Debug, Default)]
pub struct DeviceClassDecoder(SharedParts);

/// Reads ResourceClaims.
#[derive(Debug, Default)]
pub struct ResourceClaimDecoder(SharedParts);

/// Reads ResourceClaimTemplates.
#[derive(Debug, Default)]
pub struct ResourceClaimTemplateDecoder(SharedParts);

/// Reads ResourceSlices.
#[derive(Debug, Default)]
pub struct ResourceSliceDecoder(SharedParts);

/// Reads DeviceTaintRules.
#[derive(Debug, Default)]
pub struct DeviceTaintRuleDecoder(SharedParts);

macro_rules! decoders {
    ($($decoder:ident: $wire:ident => $change:ident),+ $(,)?) => {
        $(
            impl Decoder for $decoder {
                type Wire<'a> = $wire<'a>;

                fn change(&mut self, event: WatchEvent<$wire<'_>>) -> Option<Change> {
                    let event = event.map(|wire| wire.object(&mut self.0));
                    Some(Change::Device(DeviceChange::$change(event)))
                }

                fn tidy(&mut self) {
                    self.0.tidy();
                }
            }

            has_metadata!($wire);
        )+
    };
}

decoders! {
    DeviceClassDecoder: WireDeviceClass => Class,
    ResourceClaimDecoder: WireResourceClaim => Claim,
    ResourceClaimTemplateDecoder: WireResourceClaimTemplate => Template,
    ResourceSliceDecoder: WireResourceSlice => Slice,
    DeviceTaintRuleDecoder: WireDeviceTaintRule => Rule,
}

wire! {
    /// A DeviceClass on the wire.
    pub struct WireDeviceClass<'a> {
        #[serde(deserialize_with = "or_default")]
        metadata: Meta<'a> = 1,
        #[serde(deserialize_with = "or_default")]
        spec: ClassSpec<'a> = 2,
    }
}

wire! {
    struct ClassSpec<'a> {
        selectors: LenientList<WireSelector<'a>> = 1,
        extended_resource_name: Text<'a> = 4,
    }
}

impl WireDeviceClass<'_> {
    fn object(&self, pool: &mut SharedParts) -> DeviceClass {
        let Self { metadata, spec } = self;
        DeviceClass {
            name: pool.name(&metadata.name),
            version: metadata.version(),
            created: metadata.created(),
            selectors: expressions(&spec.selectors, pool),
            extended_resource: pool.name(&spec.extended_resource_name),
        }
    }
}

wire! {
    struct WireSelector<'a> {
        cel: Option<CelSelector<'a>> = 1,
    }
}

wire! {
    struct CelSelector<'a> {
        expression: Text<'a> = 1,
    }
}

/// Returns the CEL expressions. A selector that is not CEL becomes an empty expression.
fn expressions(selectors: &[WireSelector<'_>], pool: &mut SharedParts) -> Box<[Name]> {
    let expression =
        |selector: &WireSelector<'_>| pool.name(selector.cel.as_ref().map_or("", |cel| &*cel.expression));
    selectors.iter().map(expression).collect()
}

wire! {
    /// A ResourceClaim on the wire.
    pub struct WireResourceClaim<'a> {
        #[serde(deserialize_with = "or_default")]
        metadata: Meta<'a> = 1,
        #[serde(deserialize_with = "or_default")]
        spec: ClaimSpec<'a> = 2,
        #[serde(deserialize_with = "or_default")]
        status: ClaimStatus<'a> = 3,
    }
}

impl WireResourceClaim<'_> {
    fn object(&self, pool: &mut SharedParts) -> ResourceClaim {
        let Self { metadata, spec, status } = self;
        let owner = metadata.owner(pool).filter(|owner| owner.kind.is("Pod", ""));
        let owner = owner.map(|owner| ClaimOwner {
            pod: owner.name,
            uid: owner.uid,
            entry: metadata.annotations.pod_claim.clone().unwrap_or_default(),
        });
        let pods = status.reserved_for.iter();
        let pods = pods.filter(|user| *user.resource == *"pods" && user.api_group.is_empty());
        ResourceClaim {
            key: metadata.key(pool),
            version: metadata.version(),
            owner,
            spec: Arc::new(spec.devices.spec(pool)),
            allocation: status.allocation.as_ref().map(|allocation| allocation.allocation(pool)),
            reserved_for: pods.map(|user| Uid::from(&*user.uid)).collect(),
        }
    }
}

wire! {
    /// A ResourceClaimTemplate on the wire.
    pub struct WireResourceClaimTemplate<'a> {
        #[serde(deserialize_with = "or_default")]
        metadata: Meta<'a> = 1,
        #[serde(deserialize_with = "or_default")]
        spec: TemplateSpec<'a> = 2,
    }
}

impl WireResourceClaimTemplate<'_> {
    fn object(&self, pool: &mut SharedParts) -> ResourceClaimTemplate {
        let Self { metadata, spec } = self;
        ResourceClaimTemplate {
            key: metadata.key(pool),
            version: metadata.version(),
            spec: Arc::new(spec.spec.devices.spec(pool)),
        }
    }
}

wire! {
    struct TemplateSpec<'a> {
        #[serde(deserialize_with = "or_default")]
        spec: ClaimSpec<'a> = 2,
    }
}

wire! {
    struct ClaimSpec<'a> {
        #[serde(deserialize_with = "or_default")]
        devices: WireDeviceClaim<'a> = 1,
    }
}

wire! {
    struct WireDeviceClaim<'a> {
        requests: LenientList<WireRequest<'a>> = 1,
        constraints: LenientList<WireConstraint<'a>> = 2,
    }
}

impl WireDeviceClaim<'_> {
    fn spec(&self, pool: &mut SharedParts) -> DeviceClaimSpec {
        DeviceClaimSpec {
            requests: self.requests.iter().map(|request| request.request(pool)).collect(),
            constraints: self.constraints.iter().map(|constraint| constraint.constraint(pool)).collect(),
        }
    }
}

wire! {
    struct WireRequest<'a> {
        name: Text<'a> = 1,
        exactly: Option<ExactRequest<'a>> = 2,
        first_available: LenientList<SubRequest<'a>> = 3,
    }
}

impl WireRequest<'_> {
    fn request(&self, pool: &mut SharedParts) -> DeviceRequest {
        let alternatives = match &self.exactly {
            Some(exactly) => [exactly.alternative(pool)].into(),
            None => self.first_available.iter().map(|request| request.alternative(pool)).collect(),
        };
        DeviceRequest { name: pool.name(&self.name), alternatives }
    }
}

wire! {
    struct ExactRequest<'a> {
        device_class_name: Text<'a> = 1,
        selectors: LenientList<WireSelector<'a>> = 2,
        allocation_mode: Text<'a> = 3,
        count: Int = 4,
        admin_access: LenientBool = 5,
        tolerations: LenientList<WireToleration<'a>> = 6,
        #[serde(deserialize_with = "or_default")]
        capacity: WireCapacity<'a> = 7,
        derived_attributes: LenientList<Nothing> = 8,
    }
}

impl ExactRequest<'_> {
    fn alternative(&self, pool: &mut SharedParts) -> DeviceAlternative {
        DeviceAlternative {
            name: Name::default(),
            class: pool.name(&self.device_class_name),
            selectors: expressions(&self.selectors, pool),
            amount: amount(&self.allocation_mode, self.count),
            admin: self.admin_access.0,
            tolerations: tolerations(&self.tolerations, pool),
            has_unmodelled: !self.derived_attributes.is_empty(),
            capacity: amounts(&self.capacity.requests, pool),
        }
    }
}

wire! {
    struct SubRequest<'a> {
        name: Text<'a> = 1,
        device_class_name: Text<'a> = 2,
        selectors: LenientList<WireSelector<'a>> = 3,
        allocation_mode: Text<'a> = 4,
        count: Int = 5,
        tolerations: LenientList<WireToleration<'a>> = 6,
        #[serde(deserialize_with = "or_default")]
        capacity: WireCapacity<'a> = 7,
        derived_attributes: LenientList<Nothing> = 8,
    }
}

impl SubRequest<'_> {
    fn alternative(&self, pool: &mut SharedParts) -> DeviceAlternative {
        DeviceAlternative {
            name: pool.name(&self.name),
            class: pool.name(&self.device_class_name),
            selectors: expressions(&self.selectors, pool),
            amount: amount(&self.allocation_mode, self.count),
            admin: false,
            tolerations: tolerations(&self.tolerations, pool),
            has_unmodelled: !self.derived_attributes.is_empty(),
            capacity: amounts(&self.capacity.requests, pool),
        }
    }
}

wire! {
    struct WireCapacity<'a> {
        requests: Amounts<'a> = 1,
    }
}

/// A JSON object or message whose fields are not read, because only its presence matters.
#[derive(Debug, Default, Deserialize)]
struct Nothing {}

impl<'a> Message<'a> for Nothing {
    fn field(&mut self, _: u64, _: WireValue<'a>) -> Result<(), NotAMessage> {
        Ok(())
    }
}

fn amount(mode: &str, count: Int) -> DeviceAmount {
    match mode {
        // The API server's default for the `count` of a device request is one.
        "" | "ExactCount" => match count.or(0) {
            0 => DeviceAmount::Exact(1),
            count => u32::try_from(count).map_or(DeviceAmount::Unknown, DeviceAmount::Exact),
        },
        "All" => DeviceAmount::All,
        _ => DeviceAmount::Unknown,
    }
}

wire! {
    struct WireConstraint<'a> {
        requests: LenientList<Text<'a>> = 1,
        match_attribute: Text<'a> = 2,
        distinct_attribute: Text<'a> = 3,
    }
}

impl WireConstraint<'_> {
    fn constraint(&self, pool: &mut SharedParts) -> DeviceConstraint {
        let rule = match (&*self.match_attribute, &*self.distinct_attribute) {
            ("", "") => ConstraintRule::Unknown,
            ("", distinct) => ConstraintRule::Distinct(pool.name(distinct)),
            (same, _) => ConstraintRule::Match(pool.name(same)),
        };
        DeviceConstraint { requests: self.requests.iter().map(|name| pool.name(name)).collect(), rule }
    }
}

wire! {
    struct ClaimStatus<'a> {
        allocation: Option<WireAllocation<'a>> = 1,
        reserved_for: LenientList<ClaimUser<'a>> = 2,
    }
}

wire! {
    struct ClaimUser<'a> {
        api_group: Text<'a> = 1,
        resource: Text<'a> = 3,
        uid: Text<'a> = 5,
    }
}

wire! {
    struct WireAllocation<'a> {
        #[serde(deserialize_with = "or_default")]
        devices: AllocatedDevices<'a> = 1,
        node_selector: Option<WireNodeSelector<'a>> = 3,
    }
}

wire! {
    struct AllocatedDevices<'a> {
        results: LenientList<WireAllocatedDevice<'a>> = 1,
    }
}

wire! {
    struct WireAllocatedDevice<'a> {
        driver: Text<'a> = 2,
        pool: Text<'a> = 3,
        device: Text<'a> = 4,
        admin_access: LenientBool = 5,
        tolerations: LenientList<WireToleration<'a>> = 6,
        #[serde(rename = "shareID")]
        share_id: Text<'a> = 9,
        consumed_capacity: Amounts<'a> = 10,
    }
}

impl WireAllocation<'_> {
    fn allocation(&self, pool: &mut SharedParts) -> DeviceAllocation {
        let devices = self.devices.results.iter().map(|wire| AllocatedDevice {
            id: DeviceId {
                driver: pool.name(&wire.driver),
                pool: pool.name(&wire.pool),
                device: pool.name(&wire.device),
            },
            leaves_free: wire.admin_access.0 || !wire.share_id.is_empty(),
            tolerations: tolerations(&wire.tolerations, pool),
            share: (!wire.admin_access.0 && !wire.share_id.is_empty())
                .then(|| amounts(&wire.consumed_capacity, pool)),
        });
        DeviceAllocation {
            devices: devices.collect(),
            nodes: self.node_selector.as_ref().map(|selector| selector.terms(pool)),
        }
    }
}

wire! {
    struct WireToleration<'a> {
        key: Text<'a> = 1,
        operator: Text<'a> = 2,
        value: Text<'a> = 3,
        effect: Text<'a> = 4,
        toleration_seconds: Int = 5,
    }
}

fn tolerations(list: &[WireToleration<'_>], pool: &mut SharedParts) -> Box<[DeviceToleration]> {
    let toleration = |wire: &WireToleration<'_>| DeviceToleration {
        key: pool.name(&wire.key),
        operator: TolerationOperator::parse(&wire.operator),
        value: pool.name(&wire.value),
        effect: (!wire.effect.is_empty()).then(|| DeviceTaintEffect::parse(&wire.effect)),
        seconds: wire.toleration_seconds.0,
    };
    list.iter().map(toleration).collect()
}

wire! {
    /// A ResourceSlice on the wire.
    pub struct WireResourceSlice<'a> {
        #[serde(deserialize_with = "or_default")]
        metadata: Meta<'a> = 1,
        #[serde(deserialize_with = "or_default")]
        spec: SliceSpec<'a> = 2,
    }
}

wire! {
    struct SliceSpec<'a> {
        driver: Text<'a> = 1,
        #[serde(deserialize_with = "or_default")]
        pool: WirePool<'a> = 2,
        node_name: Text<'a> = 3,
        node_selector: Option<WireNodeSelector<'a>> = 4,
        all_nodes: LenientBool = 5,
        devices: LenientList<WireDevice<'a>> = 6,
        per_device_node_selection: LenientBool = 7,
        shared_counters: LenientList<CounterSet<'a>> = 8,
    }
}

wire! {
    struct WirePool<'a> {
        name: Text<'a> = 1,
        generation: Int = 2,
        resource_slice_count: Int = 3,
    }
}

impl WireResourceSlice<'_> {
    fn object(&self, pool: &mut SharedParts) -> ResourceSlice {
        let Self { metadata, spec } = self;
        let nodes = device_nodes(&spec.node_name, spec.node_selector.as_ref(), spec.all_nodes, pool);
        let is_per_device = nodes == DeviceNodes::None && spec.per_device_node_selection.0;
        ResourceSlice {
            name: pool.name(&metadata.name),
            version: metadata.version(),
            driver: pool.name(&spec.driver),
            pool: pool.name(&spec.pool.name),
            generation: spec.pool.generation.or(0),
            slices_in_pool: spec.pool.resource_slice_count.or(0),
            nodes: if is_per_device { DeviceNodes::PerDevice } else { nodes },
            devices: spec.devices.iter().map(|device| device.device(pool)).collect(),
            counters: spec
                .shared_counters
                .iter()
                .flat_map(|set| counters(&set.name, &set.counters, pool))
                .collect(),
        }
    }
}

/// Returns which nodes can use devices, with the precedence of upstream's `NodeMatches`.
fn device_nodes(
    name: &str,
    selector: Option<&WireNodeSelector<'_>>,
    all: LenientBool,
    pool: &mut SharedParts,
) -> DeviceNodes {
    match selector {
        _ if !name.is_empty() => DeviceNodes::Node(NodeName(pool.name(name))),
        _ if all.0 => DeviceNodes::All,
        Some(selector) => DeviceNodes::Matching(selector.terms(pool)),
        None => DeviceNodes::None,
    }
}

wire! {
    struct WireDevice<'a> {
        name: Text<'a> = 1,
        attributes: Entries<'a, WireAttribute<'a>> = 2,
        capacity: Entries<'a, WireDeviceCapacity<'a>> = 3,
        consumes_counters: LenientList<CounterConsumption<'a>> = 4,
        node_name: Text<'a> = 5,
        node_selector: Option<WireNodeSelector<'a>> = 6,
        all_nodes: LenientBool = 7,
        taints: LenientList<WireTaint<'a>> = 8,
        binds_to_node: LenientBool = 9,
        binding_conditions: LenientList<Text<'a>> = 10,
        allow_multiple_allocations: LenientBool = 12,
        node_allocatable_resources: Entries<'a, Nothing> = 14,
    }
}

impl WireDevice<'_> {
    fn device(&self, pool: &mut SharedParts) -> Device {
        let mut attributes: Vec<(Name, DeviceAttribute)> =
            self.attributes.0.iter().map(|(name, wire)| (pool.name(name), wire.attribute(pool))).collect();
        attributes.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut capacity: Vec<(Name, Name)> = self
            .capacity
            .0
            .iter()
            .map(|(name, amount)| (pool.name(name), pool.name(amount.value.text())))
            .collect();
        capacity.sort();
        let policy = |(name, wire): &(Cow<'_, str>, WireDeviceCapacity<'_>)| {
            Some((pool.name(name), wire.request_policy.as_ref()?.policy()))
        };
        let mut policies: Vec<(Name, CapacityPolicy)> = self.capacity.0.iter().filter_map(policy).collect();
        policies.sort_by(|(one, _), (other, _)| one.cmp(other));
        let has_groups = self.consumes_counters.iter().any(|set| !set.compatibility_groups.is_empty());
        Device {
            name: pool.name(&self.name),
            attributes: attributes.into(),
            capacity: capacity.into(),
            taints: self.taints.iter().map(|taint| taint.taint(pool)).collect(),
            nodes: device_nodes(&self.node_name, self.node_selector.as_ref(), self.all_nodes, pool),
            consumes: self
                .consumes_counters
                .iter()
                .flat_map(|consumed| counters(&consumed.counter_set, &consumed.counters, pool))
                .collect(),
            is_shareable: self.allow_multiple_allocations.0,
            has_unmodelled: has_groups || !self.node_allocatable_resources.0.is_empty(),
            policies: policies.into(),
            binds_to_node: self.binds_to_node.0,
            has_binding_conditions: !self.binding_conditions.is_empty(),
        }
    }
}

wire! {
    struct WireAttribute<'a> {
        int: Int = 2,
        bool: Flag = 3,
        string: Option<Text<'a>> = 4,
        version: Option<Text<'a>> = 5,
    }
}

impl WireAttribute<'_> {
    fn attribute(&self, pool: &mut SharedParts) -> DeviceAttribute {
        match self {
            Self { int: Int(Some(int)), .. } => DeviceAttribute::Int(*int),
            Self { bool: Flag(Some(flag)), .. } => DeviceAttribute::Bool(*flag),
            Self { string: Some(text), .. } => DeviceAttribute::Text(pool.name(text)),
            Self { version: Some(version), .. } => DeviceAttribute::Version(pool.name(version)),
            Self { .. } => DeviceAttribute::Unknown,
        }
    }
}

wire! {
    struct WireDeviceCapacity<'a> {
        value: Quantity<'a> = 1,
        request_policy: Option<WireCapacityPolicy<'a>> = 2,
    }
}

wire! {
    struct WireCapacityPolicy<'a> {
        default: Quantity<'a> = 1,
        valid_values: LenientList<Quantity<'a>> = 3,
        valid_range: Option<WireCapacityRange<'a>> = 4,
    }
}

wire! {
    struct WireCapacityRange<'a> {
        min: Quantity<'a> = 1,
        max: Quantity<'a> = 2,
        step: Quantity<'a> = 3,
    }
}

impl WireCapacityPolicy<'_> {
    fn policy(&self) -> CapacityPolicy {
        let set = |amount: &Quantity<'_>| (!amount.text().is_empty()).then(|| amount.milli());
        let valid = match &self.valid_range {
            Some(range) => ValidAmounts::Range {
                min: range.min.milli(),
                max: set(&range.max),
                step: set(&range.step).filter(|step| *step > 0),
            },
            None if self.valid_values.is_empty() => ValidAmounts::All,
            None => ValidAmounts::Values(self.valid_values.iter().map(Quantity::milli).collect()),
        };
        CapacityPolicy { default: set(&self.default), valid }
    }
}

/// Returns amounts in thousandths of their units, sorted by name.
fn amounts(amounts: &Amounts<'_>, pool: &mut SharedParts) -> Box<[(Name, i64)]> {
    let mut amounts: Vec<(Name, i64)> =
        amounts.0.iter().map(|(name, amount)| (pool.name(name), amount.milli())).collect();
    amounts.sort();
    amounts.into()
}

wire! {
    struct WireAmount<'a> {
        value: Quantity<'a> = 1,
    }
}

wire! {
    struct CounterSet<'a> {
        name: Text<'a> = 1,
        counters: Entries<'a, WireAmount<'a>> = 2,
    }
}

wire! {
    struct CounterConsumption<'a> {
        counter_set: Text<'a> = 1,
        counters: Entries<'a, WireAmount<'a>> = 2,
        compatibility_groups: LenientList<Text<'a>> = 3,
    }
}

/// Returns the counters of a counter set, sorted by name.
fn counters(set: &str, counters: &Entries<'_, WireAmount<'_>>, pool: &mut SharedParts) -> Vec<DeviceCounter> {
    let counter = |(name, amount): &(Cow<'_, str>, WireAmount<'_>)| DeviceCounter {
        set: pool.name(set),
        counter: pool.name(name),
        milli: amount.value.milli(),
    };
    let mut counters: Vec<DeviceCounter> = counters.0.iter().map(counter).collect();
    counters.sort_by(|one, other| one.counter.cmp(&other.counter));
    counters
}

wire! {
    struct WireTaint<'a> {
        key: Text<'a> = 1,
        value: Text<'a> = 2,
        effect: Text<'a> = 3,
        time_added: Time<'a> = 4,
    }
}

impl WireTaint<'_> {
    fn taint(&self, pool: &mut SharedParts) -> DeviceTaint {
        DeviceTaint {
            key: pool.name(&self.key),
            value: pool.name(&self.value),
            effect: DeviceTaintEffect::parse(&self.effect),
            time_added: self.time_added.time(),
        }
    }
}

wire! {
    /// A DeviceTaintRule on the wire.
    pub struct WireDeviceTaintRule<'a> {
        #[serde(deserialize_with = "or_default")]
        metadata: Meta<'a> = 1,
        #[serde(deserialize_with = "or_default")]
        spec: RuleSpec<'a> = 2,
    }
}

wire! {
    struct RuleSpec<'a> {
        device_selector: Option<RuleSelector<'a>> = 1,
        #[serde(deserialize_with = "or_default")]
        taint: WireTaint<'a> = 2,
    }
}

wire! {
    struct RuleSelector<'a> {
        driver: Option<Text<'a>> = 2,
        pool: Option<Text<'a>> = 3,
        device: Option<Text<'a>> = 4,
    }
}

impl WireDeviceTaintRule<'_> {
    fn object(&self, pool: &mut SharedParts) -> DeviceTaintRule {
        let Self { metadata, spec } = self;
        let selector = spec.device_selector.as_ref().map(|wire| {
            let mut part = |text: &Option<Text<'_>>| text.as_ref().map(|text| pool.name(text));
            DeviceTaintSelector {
                driver: part(&wire.driver),
                pool: part(&wire.pool),
                device: part(&wire.device),
            }
        });
        DeviceTaintRule {
            name: pool.name(&metadata.name),
            version: metadata.version(),
            selector,
            taint: spec.taint.taint(pool),
        }
    }
}
