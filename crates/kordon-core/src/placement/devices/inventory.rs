//! The devices that drivers publish.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::{Arc, OnceLock},
};

use fixedbitset::FixedBitSet;

use super::selector::{DeviceSelector, SelectorError};
use crate::{
    cluster::{
        DeviceClass, DeviceTables, Name, Node, ResourceSlice,
        device::{
            Device, DeviceAlternative, DeviceAttribute, DeviceId, DeviceNodes, DeviceTaint,
            DeviceTaintEffect, DeviceToleration,
        },
        device_tables::CLASS_PREFIX,
    },
    placement::rules::{DeviceSharing, SchedulerRules},
};

/// The published devices, by number, and the DeviceClasses.
#[derive(Debug, Default)]
pub(super) struct Inventory {
    devices: Vec<PublishedDevice>,
    numbers: BTreeMap<DeviceId, u32>,
    pools: Vec<Pool>,
    slices: Vec<PublishedSlice>,
    /// The slices with devices that only one node can use, by name of the node.
    local: BTreeMap<Name, Vec<u32>>,
    /// The slices with devices that several nodes can use.
    shared: Vec<u32>,
    classes: BTreeMap<Name, Arc<DeviceClass>>,
    /// Names of the DeviceClasses by `spec.extendedResourceName`.
    by_resource: BTreeMap<Name, Name>,
    /// The devices that satisfy a list of expressions, for each list that a request can have. Computed on first use.
    matches: BTreeMap<Box<[Name]>, OnceLock<Arc<Matches>>>,
    /// How the release gives devices away in shares.
    pub sharing: DeviceSharing,
}

/// A published device, with its pool, its slice and its index in the slice.
#[derive(Debug)]
pub(super) struct PublishedDevice {
    pub pool: u32,
    slice: u32,
    place: u32,
    /// Taints that prevent allocation, both from the slice and from DeviceTaintRules.
    taints: Vec<DeviceTaint>,
}

#[derive(Debug)]
struct PublishedSlice {
    object: Arc<ResourceSlice>,
    pool: u32,
    devices: Range<u32>,
}

/// A pool of devices, made of the slices of its newest generation.
#[derive(Debug, Default)]
pub(super) struct Pool {
    pub driver: Name,
    /// Whether all slices of the pool are known, so that its devices can be allocated.
    is_complete: bool,
    /// Whether the pool contradicts itself: it has a device twice, or a device consumes a counter that does not exist.
    is_invalid: bool,
    pub devices: Vec<u32>,
    /// Total of each counter, in thousandths, by counter set and counter.
    pub counters: BTreeMap<(Name, Name), i64>,
}

impl Pool {
    pub const fn is_usable(&self) -> bool {
        self.is_complete && !self.is_invalid
    }
}

/// The devices that satisfy all expressions of a list.
#[derive(Debug, Default)]
pub(super) struct Matches {
    pub devices: FixedBitSet,
    /// Devices for which an expression fails. The scheduler gives up on a pod once it tries one of them.
    pub failing: FixedBitSet,
    /// Why an expression fails for the first device in `failing`; empty if there is none.
    pub failure: Name,
    /// Why it is not known which devices satisfy the list: an expression cannot be evaluated, or a device that
    /// satisfies all of them has unknown properties. Empty if it is known.
    pub trouble: Name,
}

impl Inventory {
    pub fn from_tables(tables: &DeviceTables, rules: &SchedulerRules) -> Self {
        let mut inventory = Self { sharing: rules.device_sharing, ..Self::default() };
        for class in tables.classes.iter() {
            inventory.add_class(class.clone());
        }
        for ((driver, _), slices) in tables.pools() {
            inventory.add_pool(driver.clone(), slices);
        }
        if rules.device_taints {
            inventory.taint(tables, rules);
        }
        inventory.prepare_matches(tables);
        inventory
    }

    fn add_class(&mut self, class: Arc<DeviceClass>) {
        if !class.extended_resource.is_empty() {
            // If several DeviceClasses provide one extended resource, the newest one counts; of equally old ones, the
            // first by name (upstream `extendedresourcecache`).
            let known =
                self.by_resource.get(&class.extended_resource).and_then(|name| self.classes.get(name));
            if known.is_none_or(|known| class.created > known.created) {
                self.by_resource.insert(class.extended_resource.clone(), class.name.clone());
            }
        }
        self.classes.insert(class.name.clone(), class);
    }

    fn add_pool(&mut self, driver: Name, slices: Vec<&Arc<ResourceSlice>>) {
        let number = as_number(self.pools.len());
        let mut pool = Pool { driver, ..Pool::default() };
        pool.is_complete =
            slices.iter().all(|slice| usize::try_from(slice.slices_in_pool) == Ok(slices.len()));
        for counter in slices.iter().flat_map(|slice| &slice.counters) {
            pool.counters.insert((counter.set.clone(), counter.counter.clone()), counter.milli);
        }
        for slice in slices {
            let (first, place) = (as_number(self.devices.len()), as_number(self.slices.len()));
            for (index, device) in slice.devices.iter().enumerate() {
                let device_number = as_number(self.devices.len());
                pool.is_invalid |= self.numbers.insert(slice.id(device), device_number).is_some();
                pool.is_invalid |= device.consumes.iter().any(|consumed| {
                    !pool.counters.contains_key(&(consumed.set.clone(), consumed.counter.clone()))
                });
                pool.devices.push(device_number);
                let (pool, place_in_slice) = (number, as_number(index));
                let taints = Vec::new();
                self.devices.push(PublishedDevice { pool, slice: place, place: place_in_slice, taints });
            }
            match &slice.nodes {
                DeviceNodes::Node(node) => self.local.entry(node.0.clone()).or_default().push(place),
                DeviceNodes::Matching(_) | DeviceNodes::All | DeviceNodes::PerDevice => {
                    self.shared.push(place)
                }
                DeviceNodes::None => {}
            }
            let devices = first..as_number(self.devices.len());
            self.slices.push(PublishedSlice { object: slice.clone(), pool: number, devices });
        }
        self.pools.push(pool);
    }

    fn taint(&mut self, tables: &DeviceTables, rules: &SchedulerRules) {
        let keeps_off = |taint: &DeviceTaint| {
            matches!(taint.effect, DeviceTaintEffect::NoSchedule | DeviceTaintEffect::NoExecute)
        };
        let of_rules = || tables.rules.iter().filter(|_| rules.device_taint_rules);
        let set: Vec<_> = of_rules().filter(|rule| keeps_off(&rule.taint)).cloned().collect();
        let tainted: Vec<(u32, Vec<DeviceTaint>)> = self
            .numbers
            .iter()
            .map(|(id, number)| {
                let own = self.device(*number).taints.iter().filter(|taint| keeps_off(taint)).cloned();
                let of_rules = set.iter().filter(|rule| rule.selects(id)).map(|rule| rule.taint.clone());
                (*number, own.chain(of_rules).collect())
            })
            .collect();
        for (number, taints) in tainted {
            self.devices[number as usize].taints = taints;
        }
    }

    /// Prepares the lists of expressions of all requests: the requests of the cluster's claims and of their templates,
    /// and the requests for extended resources.
    fn prepare_matches(&mut self, tables: &DeviceTables) {
        let mut lists: BTreeSet<Box<[Name]>> =
            self.classes.values().map(|class| class.selectors.clone()).collect();
        let of_templates = tables.templates.iter().flat_map(|template| &template.spec.requests);
        let requests = tables.claims.iter().flat_map(|claim| &claim.spec.requests).chain(of_templates);
        for alternative in requests.flat_map(|request| &request.alternatives) {
            lists.extend(self.expressions(alternative));
        }
        self.matches = lists.into_iter().map(|list| (list, OnceLock::new())).collect();
    }

    /// Returns the expressions of a request: those of its DeviceClass, then its own; `None` if its class does not
    /// exist.
    fn expressions(&self, alternative: &DeviceAlternative) -> Option<Box<[Name]>> {
        let class = self.classes.get(&alternative.class)?;
        Some(class.selectors.iter().chain(&alternative.selectors).cloned().collect())
    }

    /// Returns the devices that a request selects; `None` if the request's DeviceClass does not exist.
    pub fn matches(&self, alternative: &DeviceAlternative) -> Option<Arc<Matches>> {
        let list = self.expressions(alternative)?;
        Some(match self.matches.get(&list) {
            Some(known) => known.get_or_init(|| Arc::new(self.evaluate(&list))).clone(),
            None => Arc::new(self.evaluate(&list)),
        })
    }

    fn evaluate(&self, expressions: &[Name]) -> Matches {
        let none = || FixedBitSet::with_capacity(self.len());
        let mut matches = Matches { devices: none(), failing: none(), ..Matches::default() };
        let selectors: Result<Vec<DeviceSelector>, String> =
            expressions.iter().map(DeviceSelector::compile).collect();
        let selectors = match selectors {
            Ok(selectors) => selectors,
            Err(why) => return Matches { trouble: why.as_str().into(), ..matches },
        };
        for (id, number) in &self.numbers {
            let device = self.device(*number);
            match satisfies(&selectors, &id.driver, device) {
                Ok(false) => {}
                Ok(true) if device.has_unmodelled || device.is_shareable && !self.has_shares() => {
                    let why = format!("device {} of pool {} is not modelled", id.device, id.pool);
                    return Matches { trouble: why.as_str().into(), ..matches };
                }
                Ok(true) => matches.devices.insert(*number as usize),
                Err(SelectorError::Fails(why)) => {
                    if matches.failure.is_empty() {
                        matches.failure = why.as_str().into();
                    }
                    matches.failing.insert(*number as usize);
                }
                Err(SelectorError::Unknown(why)) => {
                    return Matches { trouble: why.as_str().into(), ..matches };
                }
            }
        }
        matches
    }

    /// Whether the release gives devices away in shares.
    pub fn has_shares(&self) -> bool {
        self.sharing != DeviceSharing::None
    }

    /// Number of published devices.
    pub fn len(&self) -> usize {
        self.devices.len()
    }

    pub fn number(&self, id: &DeviceId) -> Option<u32> {
        self.numbers.get(id).copied()
    }

    pub fn device(&self, number: u32) -> &Device {
        let published = &self.devices[number as usize];
        &self.slices[published.slice as usize].object.devices[published.place as usize]
    }

    /// Returns which nodes can use a device.
    pub fn nodes_of(&self, number: u32) -> &DeviceNodes {
        let slice = &self.slices[self.devices[number as usize].slice as usize].object;
        match &slice.nodes {
            DeviceNodes::PerDevice => &self.device(number).nodes,
            nodes => nodes,
        }
    }

    pub fn pool_of(&self, number: u32) -> (u32, &Pool) {
        let pool = self.devices[number as usize].pool;
        (pool, &self.pools[pool as usize])
    }

    /// Whether these tolerations tolerate every taint of a device that prevents allocation (upstream
    /// `taintPreventsAllocation`).
    pub fn is_tolerated(&self, number: u32, tolerations: &[DeviceToleration]) -> bool {
        let taints = &self.devices[number as usize].taints;
        taints.iter().all(|taint| tolerations.iter().any(|toleration| toleration.tolerates(taint)))
    }

    /// Returns the devices that a node can use, in the order in which the scheduler tries them: pools with a device that
    /// has binding conditions last. Includes devices of unusable pools (upstream `GatherPools`).
    pub fn usable_by(&self, node: &Node) -> Vec<u32> {
        let local = self.local.get(&node.name.0).into_iter().flatten();
        let mut usable = Vec::new();
        for slice in local.chain(&self.shared) {
            let PublishedSlice { object, devices, pool: _ } = &self.slices[*slice as usize];
            match &object.nodes {
                DeviceNodes::PerDevice => {
                    usable.extend(devices.clone().filter(|device| can_use(node, self.nodes_of(*device))));
                }
                nodes if can_use(node, nodes) => usable.extend(devices.clone()),
                _ => {}
            }
        }
        let pool = |device: &u32| self.devices[*device as usize].pool;
        let has_conditions = |device: &&u32| self.device(**device).has_binding_conditions;
        let last: BTreeSet<u32> = usable.iter().filter(has_conditions).map(pool).collect();
        usable.sort_by_key(|device| (last.contains(&pool(device)), *device));
        usable
    }

    /// Whether this node can use devices of a pool that is not usable. Requests with the allocation mode `All` wait
    /// until the pool is usable.
    pub fn has_unusable_pool(&self, node: &Node) -> bool {
        let local = self.local.get(&node.name.0).into_iter().flatten();
        local.chain(&self.shared).any(|slice| {
            let slice = &self.slices[*slice as usize];
            !self.pools[slice.pool as usize].is_usable()
                && match &slice.object.nodes {
                    DeviceNodes::PerDevice => {
                        slice.devices.clone().any(|device| can_use(node, self.nodes_of(device)))
                    }
                    nodes => can_use(node, nodes),
                }
        })
    }

    /// Returns the class whose devices provide an extended resource.
    pub fn class_of_resource(&self, resource: &Name) -> Option<&Name> {
        let implicit = || {
            let name = resource.strip_prefix(CLASS_PREFIX)?;
            self.classes.get_key_value(name).map(|(name, _)| name)
        };
        self.by_resource.get(resource).or_else(implicit)
    }

    /// Returns an attribute of a device by its name with domain (upstream `lookupAttribute`).
    pub fn attribute(&self, number: u32, name: &str) -> Option<&DeviceAttribute> {
        let find = |name: &str| {
            let attributes = self.device(number).attributes.iter();
            attributes.into_iter().find(|(known, _)| **known == *name).map(|(_, value)| value)
        };
        find(name).or_else(|| {
            let (domain, id) = name.split_once('/')?;
            (*self.pool_of(number).1.driver == *domain).then(|| find(id))?
        })
    }
}

fn as_number(count: usize) -> u32 {
    u32::try_from(count).expect("a cluster has fewer devices than 2^32")
}

/// Evaluates the selectors on a device, in their order, until one does not hold.
fn satisfies(selectors: &[DeviceSelector], driver: &Name, device: &Device) -> Result<bool, SelectorError> {
    for selector in selectors {
        if !selector.selects(driver, device)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a node is one of the nodes that can use a device (upstream `NodeMatches`).
pub(super) fn can_use(node: &Node, nodes: &DeviceNodes) -> bool {
    match nodes {
        DeviceNodes::Node(name) => *name == node.name,
        DeviceNodes::All => true,
        DeviceNodes::Matching(terms) => terms.iter().any(|term| term.matches(node)),
        DeviceNodes::PerDevice | DeviceNodes::None => false,
    }
}
