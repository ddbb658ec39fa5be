//! Devices as the scheduler allocates them (DynamicResources plugin, structured parameters): which claims have which
//! devices, and which nodes have free devices for a pod's claims.
//!
//! [`Inventory`] is what drivers publish; it does not change while pods are placed. [`Devices`] is which claims have
//! which devices, and follows the pods of a snapshot. [`PodDevices`] is what one pod needs; it is part of the filters.
//! `search` looks for devices on one node; `shares` says how much of a shared device a request takes.

mod inventory;
mod pod_devices;
mod search;
mod selector;
mod shares;

use std::{collections::BTreeMap, sync::Arc};

use inventory::Inventory;
pub(super) use pod_devices::PodDevices;
use shares::{DeviceShare, Shares};

use super::rules::SchedulerRules;
use crate::cluster::{
    Cluster, FeedKind, Gap, Gaps, Key, Known, Name, NodeName, Pod, ResourceClaimTemplate, Table, Uid,
    device::{AllocatedDevice, ClaimOwner, DeviceClaimSpec},
    device_tables::{Claimants, extended_resources, is_extended},
    scheduling::{NodeOperator, NodeRequirement, NodeTerm},
};

/// The devices of a snapshot. Copies share everything until one of them is changed.
#[derive(Clone, Debug, Default)]
pub(super) struct Devices {
    inventory: Arc<Inventory>,
    /// Why the cluster's device objects are unknown; empty if they are known.
    unknown: Name,
    /// Extended resources that nodes of the cluster offer. Only filled while the device objects are unknown.
    on_nodes: Arc<[Name]>,
    state: Arc<DeviceState>,
    /// The templates of claims; `None` if they are unknown.
    templates: Option<Table<ResourceClaimTemplate>>,
    /// Whether DeviceTaintRules are unknown. Most clusters have none, so placement goes on without them.
    lacks_rules: bool,
}

/// Which claims have which devices.
#[derive(Clone, Debug, Default)]
pub(super) struct DeviceState {
    /// For each device, the number of claims that use it exclusively. Indexed by the number of the device.
    in_use: Vec<u16>,
    /// The devices that claims have shares of, by number.
    shares: BTreeMap<u32, Shares>,
    claims: BTreeMap<Key, ClaimState>,
    /// The claims that are reserved for each pod.
    holdings: BTreeMap<Key, Holding>,
    /// The claims that were made for each pod.
    own: BTreeMap<Uid, Vec<Key>>,
}

/// A claim of the cluster, or one that a replacement gets.
#[derive(Clone, Debug)]
struct ClaimState {
    spec: Arc<DeviceClaimSpec>,
    owner: Option<ClaimOwner>,
    allocation: Option<Arc<Allocation>>,
    /// Number of pods for which the claim is reserved. Once it is 0, the devices of the claim are free.
    users: usize,
}

/// The devices that a claim has.
#[derive(Clone, Debug, PartialEq)]
struct Allocation {
    /// Numbers of the devices that no other claim can use. Devices that are not published any more are left out.
    devices: Box<[u32]>,
    /// Shares of devices that other claims can use too, by number of the device.
    shares: Box<[(u32, DeviceShare)]>,
    /// Node selector terms: nodes that match one of them can use the devices. `None` if all nodes can.
    nodes: Option<Box<[NodeTerm]>>,
}

/// The claims that are reserved for a pod, with the devices that they got for it.
#[derive(Clone, Debug, Default)]
struct Holding {
    claims: Vec<(Key, Option<Arc<Allocation>>)>,
    /// Whether the pod has left and released its claims.
    is_released: bool,
}

impl Devices {
    pub fn from_cluster(cluster: &Cluster, rules: &SchedulerRules) -> Self {
        let gaps = cluster.gaps(needed(rules)).unknown();
        let lacks_rules = gaps.contains(FeedKind::DeviceTaintRules);
        let gaps = Gaps(gaps.0.into_iter().filter(|gap| !may_lack(gap)).collect());
        if !gaps.is_empty() {
            let mut on_nodes: Vec<Name> = cluster
                .nodes()
                .iter()
                .flat_map(|node| node.extended.iter())
                .filter(|(name, amount)| *amount > 0 && is_extended(name))
                .map(|(name, _)| name.clone())
                .collect();
            on_nodes.sort();
            on_nodes.dedup();
            let unknown = gaps.to_string().as_str().into();
            return Self { unknown, on_nodes: on_nodes.into(), ..Self::default() };
        }
        let tables = cluster.devices();
        let are_known = cluster.known(FeedKind::ClaimTemplates).is_known();
        let templates = are_known.then(|| tables.templates.clone());
        if tables.slices.is_empty() && tables.claims.is_empty() && tables.classes.is_empty() {
            return Self { templates, lacks_rules, ..Self::default() };
        }
        let inventory = Inventory::from_tables(tables, rules);
        let state = DeviceState::from_cluster(cluster, &inventory);
        let (inventory, state) = (Arc::new(inventory), Arc::new(state));
        Self { inventory, state, templates, lacks_rules, ..Self::default() }
    }

    /// Whether a pod needs devices as far as is known: it claims some, or requests a resource that a DeviceClass backs.
    pub fn concern(&self, pod: &Pod) -> bool {
        pod.scheduling.claims_devices || extended_resources(pod).any(|resource| self.back(resource))
    }

    /// Whether the devices of a class provide an extended resource. If the device objects are unknown, true for each
    /// extended resource that no node offers.
    pub fn back(&self, resource: &Name) -> bool {
        if self.unknown.is_empty() {
            self.inventory.class_of_resource(resource).is_some()
        } else {
            is_extended(resource) && self.on_nodes.binary_search(resource).is_err()
        }
    }

    /// Handles a pod that was put on a node. A pod that is put back gets its devices again.
    pub fn on_add(&mut self, pod: &Key) {
        if self.state.holdings.get(pod).is_some_and(|holding| holding.is_released) {
            Arc::make_mut(&mut self.state).take_back(pod);
        }
    }

    /// Handles a pod that is gone. Claims that are reserved for no other pod lose their devices (upstream's resource
    /// claim controller).
    pub fn on_remove(&mut self, pod: &Key) {
        if self.state.holdings.get(pod).is_some_and(|holding| !holding.is_released) {
            Arc::make_mut(&mut self.state).release(pod);
        }
    }

    /// Gives a new pod the devices that it needs, out of the free devices of a node.
    pub fn allocate(&mut self, needs: &PodDevices, pod: &Key, node: &crate::cluster::Node) {
        // Claims that do not exist yet get a name that no other claim has.
        let named = |(key, spec, allocation): (Key, _, _)| {
            if self.state.claims.contains_key(&key) {
                return (key, spec, allocation);
            }
            let name = format!("{}/{}", pod.name, key.name);
            (Key { namespace: pod.namespace.clone(), name: name.as_str().into() }, spec, allocation)
        };
        let grants = needs.grants(node).into_iter().map(named).collect();
        Arc::make_mut(&mut self.state).grant(pod, needs.reserved(), grants);
    }
}

/// Returns the kinds of objects that the scheduler's allocation depends on. Leaves out DeviceTaintRules if the release
/// does not have them.
fn needed(rules: &SchedulerRules) -> impl Iterator<Item = FeedKind> {
    let has_rules = rules.device_taint_rules;
    let kinds = FeedKind::DEVICES.into_iter();
    kinds.filter(move |kind| has_rules || *kind != FeedKind::DeviceTaintRules)
}

/// Whether placement goes on although a kind is unknown: rules that taint devices may be missing for good. They are
/// waited for while they are being listed.
fn may_lack(gap: &Gap) -> bool {
    gap.kind == FeedKind::DeviceTaintRules && gap.known != Known::NotListed
}

impl DeviceState {
    fn from_cluster(cluster: &Cluster, inventory: &Inventory) -> Self {
        let mut state = Self { in_use: vec![0; inventory.len()], ..Self::default() };
        let mut pods = Claimants::default();
        for claim in cluster.devices().claims.iter() {
            let allocation = claim.allocation.as_ref().map(|allocation| {
                let alone = allocation.devices.iter().filter(|device| !device.leaves_free);
                let devices = alone.filter_map(|device| inventory.number(&device.id)).collect();
                let share =
                    |device: &AllocatedDevice| Some((inventory.number(&device.id)?, device.share.clone()?));
                let shares = allocation.devices.iter().filter_map(share).collect();
                Arc::new(Allocation { devices, shares, nodes: allocation.nodes.clone() })
            });
            state.count(allocation.as_deref(), 1);
            let key = &claim.key;
            for uid in &claim.reserved_for {
                let owner = claim.owner.as_ref().filter(|owner| owner.uid == *uid);
                let pod = match owner {
                    Some(owner) => Some(Key { namespace: key.namespace.clone(), name: owner.pod.clone() }),
                    None => pods.pod(cluster, &key.namespace, uid).map(|pod| pod.key.clone()),
                };
                if let Some(pod) = pod {
                    state.holdings.entry(pod).or_default().claims.push((key.clone(), None));
                }
            }
            if let Some(owner) = &claim.owner {
                state.own.entry(owner.uid.clone()).or_default().push(key.clone());
            }
            let (spec, owner, users) = (claim.spec.clone(), claim.owner.clone(), claim.reserved_for.len());
            state.claims.insert(key.clone(), ClaimState { spec, owner, allocation, users });
        }
        state
    }

    /// Returns the claim that was made for an entry in the `spec.resourceClaims` of a pod.
    fn own_claim(&self, pod: &Uid, entry: &Name) -> Option<(&Key, &ClaimState)> {
        let own = self.own.get(pod).into_iter().flatten();
        let is_of_entry =
            |claim: &ClaimState| claim.owner.as_ref().is_some_and(|owner| owner.entry == *entry);
        let mut own = own.filter_map(|key| self.claims.get_key_value(key));
        own.find(|(_, claim)| is_of_entry(claim))
    }

    fn count(&mut self, allocation: Option<&Allocation>, sign: i8) {
        for device in allocation.into_iter().flat_map(|allocation| &allocation.devices) {
            let claims = &mut self.in_use[*device as usize];
            *claims = claims.saturating_add_signed(sign.into());
        }
        for (device, share) in allocation.into_iter().flat_map(|allocation| &allocation.shares) {
            let shares = self.shares.entry(*device).or_default();
            if sign > 0 {
                shares.add(share);
                continue;
            }
            shares.remove(share);
            if shares.is_empty() {
                self.shares.remove(device);
            }
        }
    }

    fn release(&mut self, pod: &Key) {
        let Some(mut holding) = self.holdings.remove(pod) else { return };
        for (key, kept) in &mut holding.claims {
            let Some(claim) = self.claims.get_mut(key) else { continue };
            claim.users = claim.users.saturating_sub(1);
            *kept = claim.allocation.clone();
            if claim.users == 0 {
                let freed = claim.allocation.take();
                self.count(freed.as_deref(), -1);
            }
        }
        holding.is_released = true;
        self.holdings.insert(pod.clone(), holding);
    }

    fn take_back(&mut self, pod: &Key) {
        let Some(mut holding) = self.holdings.remove(pod) else { return };
        for (key, kept) in &mut holding.claims {
            let Some(claim) = self.claims.get_mut(key) else { continue };
            claim.users += 1;
            if claim.allocation.is_none() {
                claim.allocation = kept.take();
                let taken = claim.allocation.clone();
                self.count(taken.as_deref(), 1);
            }
        }
        holding.is_released = false;
        self.holdings.insert(pod.clone(), holding);
    }

    fn grant(&mut self, pod: &Key, reserved: &[Key], grants: Vec<(Key, Arc<DeviceClaimSpec>, Allocation)>) {
        self.release(pod);
        let mut holding = Holding::default();
        for key in reserved {
            if let Some(claim) = self.claims.get_mut(key) {
                claim.users += 1;
                holding.claims.push((key.clone(), None));
            }
        }
        for (key, spec, allocation) in grants {
            self.count(Some(&allocation), 1);
            let allocation = Some(Arc::new(allocation));
            let claim = self.claims.entry(key.clone());
            let claim = claim.or_insert(ClaimState { spec, owner: None, allocation: None, users: 0 });
            claim.allocation = allocation;
            claim.users += 1;
            holding.claims.push((key, None));
        }
        self.holdings.insert(pod.clone(), holding);
    }
}

/// Returns a node selector term that only this node matches.
fn only(node: &NodeName) -> NodeTerm {
    let names = [node.0.clone()].into();
    let requirement = NodeRequirement { key: "metadata.name".into(), operator: NodeOperator::In(names) };
    NodeTerm { expressions: Box::default(), fields: [requirement].into() }
}
