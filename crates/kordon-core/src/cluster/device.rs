//! Devices (dynamic resource allocation, resource.k8s.io): what drivers publish, what pods claim, and which devices are
//! tainted.

use std::sync::Arc;

use minicbor::{Decode, Encode};

use super::{
    encoding::{self, EncodingContext},
    names::{Key, Name, NodeName},
    scheduling::NodeTerm,
    table::{TableObject, Version},
    taint::TolerationOperator,
    uid::Uid,
};
use kordon_time::ClusterTime;

/// A DeviceClass: the conditions that its devices meet.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct DeviceClass {
    #[n(0)]
    pub name: Name,
    #[n(1)]
    pub version: Version,
    #[n(2)]
    pub created: ClusterTime,
    /// CEL expressions that select the devices of the class. All of them must hold.
    #[n(3)]
    pub selectors: Box<[Name]>,
    /// `spec.extendedResourceName`: requests of this resource are requests for devices of the class; empty if there is
    /// none.
    #[n(4)]
    pub extended_resource: Name,
}

/// A ResourceClaim: the devices that a pod claims, and the devices that are allocated to the claim.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct ResourceClaim {
    #[n(0)]
    pub key: Key,
    #[n(1)]
    pub version: Version,
    /// The pod for which the claim was made, from a template or for an extended resource. The claim is deleted with the
    /// pod.
    #[n(2)]
    pub owner: Option<ClaimOwner>,
    #[cbor(n(3), with = "encoding::inline")]
    pub spec: Arc<DeviceClaimSpec>,
    /// `status.allocation`; none until devices are allocated.
    #[n(4)]
    pub allocation: Option<DeviceAllocation>,
    /// `status.reservedFor`: the pods that may use the claim, by uid.
    #[n(5)]
    pub reserved_for: Box<[Uid]>,
}

/// A ResourceClaimTemplate: what the claims ask for that are made from it, one for each pod.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct ResourceClaimTemplate {
    #[n(0)]
    pub key: Key,
    #[n(1)]
    pub version: Version,
    /// `spec.spec`.
    #[cbor(n(2), with = "encoding::inline")]
    pub spec: Arc<DeviceClaimSpec>,
}

/// The pod for which a claim was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct ClaimOwner {
    #[n(0)]
    pub pod: Name,
    #[n(1)]
    pub uid: Uid,
    /// The name of the claim in the pod's `spec.resourceClaims`; empty for the claim that was made for the pod's
    /// extended resources.
    #[n(2)]
    pub entry: Name,
}

/// `spec.devices` of a ResourceClaim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct DeviceClaimSpec {
    #[n(0)]
    pub requests: Box<[DeviceRequest]>,
    #[n(1)]
    pub constraints: Box<[DeviceConstraint]>,
}

/// One request for devices in a ResourceClaim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct DeviceRequest {
    #[n(0)]
    pub name: Name,
    /// Alternatives that satisfy the request, the preferred one first: one for `exactly`, several for `firstAvailable`.
    /// Empty for a kind of request that kordon does not know.
    #[n(1)]
    pub alternatives: Box<[DeviceAlternative]>,
}

/// One way to satisfy a request for devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct DeviceAlternative {
    /// Name of the subrequest; empty for `exactly`.
    #[n(0)]
    pub name: Name,
    #[n(1)]
    pub class: Name,
    /// CEL expressions that select devices of the class. All of them must hold, in addition to those of the class.
    #[n(2)]
    pub selectors: Box<[Name]>,
    #[n(3)]
    pub amount: DeviceAmount,
    /// Whether the request may use devices that other claims use (`adminAccess`).
    #[n(4)]
    pub admin: bool,
    #[n(5)]
    pub tolerations: Box<[DeviceToleration]>,
    /// Whether the request has fields that kordon does not model: derived attributes.
    #[n(6)]
    pub has_unmodelled: bool,
    /// `capacity.requests`: how much of each capacity every device has to provide, in thousandths of its unit. Empty in
    /// recordings of older releases, which count such a request as not modelled.
    #[cbor(n(7), default)]
    pub capacity: Box<[(Name, i64)]>,
}

/// `allocationMode` and `count` of a request for devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub enum DeviceAmount {
    #[n(0)]
    Exact(#[n(0)] u32),
    /// All devices on the node that match the request.
    #[n(1)]
    All,
    /// An allocation mode that kordon does not know.
    #[n(2)]
    Unknown,
}

impl Default for DeviceAmount {
    fn default() -> Self {
        Self::Exact(1)
    }
}

/// A constraint on the devices of several requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct DeviceConstraint {
    /// Names of the requests that the constraint applies to, as `request` or `request/subrequest`; empty for all
    /// requests.
    #[n(0)]
    pub requests: Box<[Name]>,
    #[n(1)]
    pub rule: ConstraintRule,
}

/// The condition that a constraint sets on an attribute. The attribute's name includes its domain.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub enum ConstraintRule {
    /// `matchAttribute`: all devices have the same value of the attribute.
    #[n(0)]
    Match(#[n(0)] Name),
    /// `distinctAttribute`: no two devices have the same value of the attribute.
    #[n(1)]
    Distinct(#[n(0)] Name),
    /// A constraint of a kind that kordon does not know.
    #[n(2)]
    Unknown,
}

/// `status.allocation` of a ResourceClaim.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct DeviceAllocation {
    #[n(0)]
    pub devices: Box<[AllocatedDevice]>,
    /// The terms of `nodeSelector`. A node must match one of them; `None` if all nodes can use the devices.
    #[n(1)]
    pub nodes: Option<Box<[NodeTerm]>>,
}

/// A device that is allocated to a claim.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct AllocatedDevice {
    #[n(0)]
    pub id: DeviceId,
    /// Whether other claims may use the device too, by `adminAccess` or because this claim got only a share of it.
    #[n(1)]
    pub leaves_free: bool,
    #[n(2)]
    pub tolerations: Box<[DeviceToleration]>,
    /// `consumedCapacity` of a share of the device, in thousandths of the units; `None` if the claim has no share
    /// (`shareID`), and in recordings of older releases.
    #[n(3)]
    pub share: Option<Box<[(Name, i64)]>>,
}

/// Identity of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct DeviceId {
    #[n(0)]
    pub driver: Name,
    #[n(1)]
    pub pool: Name,
    #[n(2)]
    pub device: Name,
}

/// A ResourceSlice: devices that a driver publishes.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct ResourceSlice {
    #[n(0)]
    pub name: Name,
    #[n(1)]
    pub version: Version,
    #[n(2)]
    pub driver: Name,
    #[n(3)]
    pub pool: Name,
    /// `spec.pool.generation`: only slices of the highest generation of a pool count.
    #[n(4)]
    pub generation: i64,
    /// `spec.pool.resourceSliceCount`: how many slices the pool has in this generation.
    #[n(5)]
    pub slices_in_pool: i64,
    #[n(6)]
    pub nodes: DeviceNodes,
    #[n(7)]
    pub devices: Box<[Device]>,
    /// `spec.sharedCounters`: each counter with its counter set.
    #[n(8)]
    pub counters: Box<[DeviceCounter]>,
}

/// Which nodes can use devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub enum DeviceNodes {
    #[n(0)]
    Node(#[n(0)] NodeName),
    /// Nodes that match one of these terms can use the devices.
    #[n(1)]
    Matching(#[n(0)] Box<[NodeTerm]>),
    #[n(2)]
    All,
    /// Each device names its nodes itself (`perDeviceNodeSelection`).
    #[n(3)]
    PerDevice,
    /// The nodes are named in a way that kordon does not know. The scheduler ignores the devices of such a slice.
    #[default]
    #[n(4)]
    None,
}

/// A device of a slice.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct Device {
    #[n(0)]
    pub name: Name,
    /// Attributes of the device by name, with or without a domain.
    #[n(1)]
    pub attributes: Box<[(Name, DeviceAttribute)]>,
    /// Capacities of the device: quantities by name, with or without a domain.
    #[n(2)]
    pub capacity: Box<[(Name, Name)]>,
    #[n(3)]
    pub taints: Box<[DeviceTaint]>,
    /// Which nodes can use the device, if its slice has `perDeviceNodeSelection`.
    #[n(4)]
    pub nodes: DeviceNodes,
    /// `consumesCounters`: what the device takes from the counters of its pool.
    #[n(5)]
    pub consumes: Box<[DeviceCounter]>,
    /// `allowMultipleAllocations`: several claims may have shares of the device.
    #[n(6)]
    pub is_shareable: bool,
    /// Whether the device has fields that kordon does not model: compatibility groups of counters, or amounts of the
    /// node's resources.
    #[n(7)]
    pub has_unmodelled: bool,
    /// `requestPolicy` of the capacities that have one, by name of the capacity.
    #[cbor(n(8), default)]
    pub policies: Box<[(Name, CapacityPolicy)]>,
    /// `bindsToNode`: once the device is allocated, only the node that it was allocated for can use it.
    #[cbor(n(9), default)]
    pub binds_to_node: bool,
    /// Whether the device has `bindingConditions`, which its driver sets before the pod is bound.
    #[cbor(n(10), default)]
    pub has_binding_conditions: bool,
}

/// The `requestPolicy` of a capacity: how much of it a request takes. Amounts are in thousandths of their unit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct CapacityPolicy {
    /// What a request takes that does not name the capacity; `None` for all of it.
    #[n(0)]
    pub default: Option<i64>,
    #[n(1)]
    pub valid: ValidAmounts,
}

/// The amounts of a capacity that a request can take. Other amounts are rounded up to the next one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub enum ValidAmounts {
    #[default]
    #[n(0)]
    All,
    /// `validValues`, in ascending order.
    #[n(1)]
    Values(#[n(0)] Box<[i64]>),
    /// `validRange`.
    #[n(2)]
    Range {
        #[n(0)]
        min: i64,
        #[n(1)]
        max: Option<i64>,
        /// Distance between valid amounts, from `min` on; `None` if all amounts of the range are valid. Never zero.
        #[n(2)]
        step: Option<i64>,
    },
}

/// The value of a device's attribute.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub enum DeviceAttribute {
    #[n(0)]
    Int(#[n(0)] i64),
    #[n(1)]
    Bool(#[n(0)] bool),
    #[n(2)]
    Text(#[n(0)] Name),
    /// A semantic version.
    #[n(3)]
    Version(#[n(0)] Name),
    /// A list, or a value of a type that kordon does not know.
    #[n(4)]
    Unknown,
}

/// An amount of one counter in a counter set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct DeviceCounter {
    #[n(0)]
    pub set: Name,
    #[n(1)]
    pub counter: Name,
    /// The amount of the counter, in thousandths of its unit.
    #[n(2)]
    pub milli: i64,
}

/// A taint of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct DeviceTaint {
    #[n(0)]
    pub key: Name,
    #[n(1)]
    pub value: Name,
    #[n(2)]
    pub effect: DeviceTaintEffect,
    #[n(3)]
    pub time_added: Option<ClusterTime>,
}

/// The effect of a device taint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(index_only)]
pub enum DeviceTaintEffect {
    /// The taint does nothing. A rule with this effect shows what NoExecute would do.
    #[default]
    #[n(0)]
    None,
    /// The device is allocated only to claims that tolerate the taint.
    #[n(1)]
    NoSchedule,
    /// Like NoSchedule; pods that have the device are also deleted.
    #[n(2)]
    NoExecute,
    /// An effect that kordon does not know. The scheduler ignores it, too.
    #[n(3)]
    Unknown,
}

impl DeviceTaintEffect {
    pub fn parse(text: &str) -> Self {
        match text {
            "None" => Self::None,
            "NoSchedule" => Self::NoSchedule,
            "NoExecute" => Self::NoExecute,
            _ => Self::Unknown,
        }
    }
}

/// A toleration of device taints.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct DeviceToleration {
    /// The key of the tolerated taints; empty for every key.
    #[n(0)]
    pub key: Name,
    #[n(1)]
    pub operator: TolerationOperator,
    #[n(2)]
    pub value: Name,
    /// The effect of the tolerated taints; `None` for every effect.
    #[n(3)]
    pub effect: Option<DeviceTaintEffect>,
    /// Seconds for which NoExecute is tolerated; `None` means without limit.
    #[n(4)]
    pub seconds: Option<i64>,
}

impl DeviceToleration {
    /// Whether the toleration matches a taint, without regard to its seconds (upstream `resourceclaim.ToleratesTaint`).
    pub fn tolerates(&self, taint: &DeviceTaint) -> bool {
        let is_of_key = self.key.is_empty() || self.key == taint.key;
        let is_of_value = match self.operator {
            TolerationOperator::Exists => true,
            TolerationOperator::Equal => self.value == taint.value,
            TolerationOperator::Lt | TolerationOperator::Gt | TolerationOperator::Invalid => false,
        };
        is_of_key && is_of_value && self.effect.is_none_or(|effect| effect == taint.effect)
    }
}

/// A DeviceTaintRule: a taint that an administrator sets on devices.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct DeviceTaintRule {
    #[n(0)]
    pub name: Name,
    #[n(1)]
    pub version: Version,
    /// The devices that the rule selects. A rule without a selector selects no device.
    #[n(2)]
    pub selector: Option<DeviceTaintSelector>,
    #[n(3)]
    pub taint: DeviceTaint,
}

/// `spec.deviceSelector` of a DeviceTaintRule: each part that is set must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct DeviceTaintSelector {
    #[n(0)]
    pub driver: Option<Name>,
    #[n(1)]
    pub pool: Option<Name>,
    #[n(2)]
    pub device: Option<Name>,
}

impl DeviceTaintRule {
    /// Whether the rule selects a device (upstream `ruleMatchesDevice`).
    pub fn selects(&self, id: &DeviceId) -> bool {
        let is = |wanted: &Option<Name>, name: &Name| wanted.as_ref().is_none_or(|wanted| wanted == name);
        self.selector.as_ref().is_some_and(|selector| {
            is(&selector.driver, &id.driver)
                && is(&selector.pool, &id.pool)
                && is(&selector.device, &id.device)
        })
    }
}

impl ResourceSlice {
    /// Returns the identity of one of the slice's devices.
    pub fn id(&self, device: &Device) -> DeviceId {
        DeviceId { driver: self.driver.clone(), pool: self.pool.clone(), device: device.name.clone() }
    }
}

impl TableObject for DeviceClass {
    type Key = Name;
    fn key(&self) -> Name {
        self.name.clone()
    }
    fn version(&self) -> Version {
        self.version
    }
}

impl TableObject for ResourceClaim {
    type Key = Key;
    fn key(&self) -> Key {
        self.key.clone()
    }
    fn version(&self) -> Version {
        self.version
    }
}

impl TableObject for ResourceClaimTemplate {
    type Key = Key;
    fn key(&self) -> Key {
        self.key.clone()
    }
    fn version(&self) -> Version {
        self.version
    }
}

impl TableObject for ResourceSlice {
    type Key = Name;
    fn key(&self) -> Name {
        self.name.clone()
    }
    fn version(&self) -> Version {
        self.version
    }
}

impl TableObject for DeviceTaintRule {
    type Key = Name;
    fn key(&self) -> Name {
        self.name.clone()
    }
    fn version(&self) -> Version {
        self.version
    }
}
