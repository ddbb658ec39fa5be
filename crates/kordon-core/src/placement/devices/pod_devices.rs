//! The devices that a pod needs, as a filter of nodes (DynamicResources).

use std::{cell::OnceCell, sync::Arc};

use super::{
    Allocation, DeviceState, Devices,
    inventory::{Inventory, Matches},
    only,
    search::{Choice, Found, Wanted, search},
};
use crate::{
    cluster::{
        Key, Name, Node,
        device::{
            ConstraintRule, DeviceAlternative, DeviceAmount, DeviceClaimSpec, DeviceNodes, DeviceRequest,
        },
        scheduling::{NodeRequirement, NodeTerm, PodDeviceClaim},
    },
    placement::{
        reason::{FilterRefusal, NodeRefusal, Reason, Remedy},
        rules::SchedulerRules,
        scheduling_request::{Caveat, SchedulingRequest},
    },
};

/// The devices that a pod needs.
#[derive(Clone, Debug, Default)]
pub(in crate::placement) struct PodDevices {
    inventory: Arc<Inventory>,
    state: Arc<DeviceState>,
    /// Claims that need devices. A claim for an extended resource needs devices only on nodes that do not have the
    /// resource.
    wanted: Vec<Wanted>,
    /// Claims that already have their devices. Other pods may use these claims too.
    reserved: Vec<Key>,
    /// Node selector terms of the claims in `reserved`: for each claim, the node must match one of the terms.
    pins: Vec<Box<[NodeTerm]>>,
    lacks_rules: bool,
    /// Why no node takes the pod.
    refusal: Option<Reason>,
    /// Why it is not known which nodes take the pod.
    obstacle: Option<Name>,
    /// Why it is not known whether a node that was checked has the devices.
    doubt: OnceCell<Name>,
    /// Why a selector fails for a device of a node that was checked. The scheduler then does not place the pod on any
    /// node (upstream `Filter` of dynamicresources, which returns an error).
    failure: OnceCell<Name>,
}

impl PodDevices {
    pub fn new(devices: &Devices, request: &SchedulingRequest, rules: &SchedulerRules) -> Self {
        let spec = &request.spec;
        let scalars = request.resources.requests.scalars.iter();
        let extended: Vec<&(Name, i64)> = scalars
            .filter(|(name, amount)| rules.classes_back_resources && *amount > 0 && devices.back(name))
            .collect();
        if !spec.claims_devices && extended.is_empty() {
            return Self::default();
        }
        let (inventory, state) = (devices.inventory.clone(), devices.state.clone());
        let mut needs = Self { inventory, state, lacks_rules: devices.lacks_rules, ..Self::default() };
        if !rules.claims_get_devices {
            needs.obstacle("claimed devices are not modelled before Kubernetes 1.34");
        } else if !devices.unknown.is_empty() {
            needs.obstacle(&devices.unknown);
        } else if spec.claims_devices && spec.device_claims.is_empty() {
            needs.obstacle("the recording does not have the claims of the pod");
        }
        if needs.obstacle.is_some() {
            return needs;
        }
        for entry in &spec.device_claims {
            needs.add_entry(entry, devices, request);
        }
        for (resource, amount) in extended {
            needs.add_resource(resource, *amount);
        }
        needs
    }

    fn obstacle(&mut self, why: &str) {
        self.obstacle.get_or_insert_with(|| why.into());
    }

    fn add_entry(&mut self, entry: &PodDeviceClaim, devices: &Devices, request: &SchedulingRequest) {
        let key = |name: &Name| Key { namespace: request.namespace.clone(), name: name.clone() };
        if let Some(name) = &entry.claim {
            let Some((key, claim)) = devices.state.claims.get_key_value(&key(name)) else {
                self.refusal.get_or_insert(Reason::DeviceClaimMissing(name.clone()));
                return;
            };
            match &claim.allocation {
                Some(allocation) => self.use_allocated(key, allocation),
                None => self.want(key.clone(), claim.spec.clone(), None),
            }
            return;
        }
        if request.replaces.is_some() {
            self.add_new_claim(entry, devices, request);
            return;
        }
        match devices.state.own_claim(&request.uid, &entry.entry) {
            Some((key, claim)) => match &claim.allocation {
                Some(allocation) => self.use_allocated(key, allocation),
                None => self.want(key.clone(), claim.spec.clone(), None),
            },
            None => {
                self.refusal.get_or_insert(Reason::DeviceClaimNotCreated(entry.entry.clone()));
            }
        }
    }

    /// Adds the claim that a new pod gets from a template (upstream's resource claim controller, `handleClaim`). While
    /// templates are unknown, the claim of the old pod shows what the template asks for, unless the new pod has another
    /// template.
    fn add_new_claim(&mut self, entry: &PodDeviceClaim, devices: &Devices, request: &SchedulingRequest) {
        let key = |name: &str| Key { namespace: request.namespace.clone(), name: name.into() };
        let spec = match (&devices.templates, &entry.template) {
            (Some(templates), Some(template)) => {
                let Some(found) = templates.get(&key(template)) else {
                    self.refusal.get_or_insert(Reason::DeviceTemplateMissing(template.clone()));
                    return;
                };
                Some(&found.spec)
            }
            (None, _) | (_, None) => {
                let old = request.replaces.as_ref().filter(|old| old.device_claims.contains(entry));
                let of_old = old.and_then(|_| devices.state.own_claim(&request.uid, &entry.entry));
                of_old.map(|(_, claim)| &claim.spec)
            }
        };
        match spec {
            Some(spec) => self.want(key(&format!("{}/{}", request.uid, entry.entry)), spec.clone(), None),
            None => self.obstacle(&format!("no claim shows what the template of {} asks for", entry.entry)),
        }
    }

    fn use_allocated(&mut self, key: &Key, allocation: &Allocation) {
        self.reserved.push(key.clone());
        self.pins.extend(allocation.nodes.clone());
    }

    /// Adds the request for devices that provide an extended resource (upstream `createRequestsAndMappings`).
    fn add_resource(&mut self, resource: &Name, amount: i64) {
        let Some(class) = self.inventory.class_of_resource(resource).cloned() else { return };
        let amount = u32::try_from(amount).map_or(DeviceAmount::Unknown, DeviceAmount::Exact);
        let alternative = DeviceAlternative { class, amount, ..DeviceAlternative::default() };
        let request = DeviceRequest { name: resource.clone(), alternatives: [alternative].into() };
        let spec = DeviceClaimSpec { requests: [request].into(), constraints: Box::default() };
        self.want(Key::new("", resource), spec.into(), Some(resource.clone()));
    }

    fn want(&mut self, key: Key, spec: Arc<DeviceClaimSpec>, resource: Option<Name>) {
        // The name of a claim that does not exist yet ends with the name of its entry in `spec.resourceClaims`.
        let entry = key.name.rsplit_once('/').map_or(&*key.name, |(_, entry)| entry);
        let claim = resource.as_deref().unwrap_or(entry).to_owned();
        let unknown = |what: &str| format!("{what} of claim {claim} is not modelled");
        if spec.constraints.iter().any(|constraint| constraint.rule == ConstraintRule::Unknown) {
            self.obstacle(&unknown("a constraint"));
        }
        let mut matches: Vec<Vec<Arc<Matches>>> = Vec::new();
        for request in &spec.requests {
            if request.alternatives.is_empty() {
                self.obstacle(&unknown("a request"));
            }
            let mut of_request = Vec::new();
            for alternative in &request.alternatives {
                let asks_for_shares = !alternative.capacity.is_empty() && !self.inventory.has_shares();
                let is_unknown = alternative.amount == DeviceAmount::Unknown;
                if alternative.has_unmodelled || asks_for_shares || is_unknown {
                    self.obstacle(&unknown("a request"));
                }
                let Some(found) = self.inventory.matches(alternative) else {
                    self.refusal.get_or_insert(Reason::DeviceClassMissing(alternative.class.clone()));
                    return;
                };
                if !found.trouble.is_empty() {
                    self.obstacle(&found.trouble);
                }
                of_request.push(found);
            }
            matches.push(of_request);
        }
        self.wanted.push(Wanted { key, spec, matches, resource });
    }

    /// Whether the pod needs no devices.
    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty() && self.pins.is_empty() && self.refusal.is_none() && self.obstacle.is_none()
    }

    /// Returns what was not checked, if the pod needs devices.
    pub fn caveat(&self) -> Option<Caveat> {
        (self.lacks_rules && !self.is_empty()).then_some(Caveat::DeviceRules)
    }

    /// Returns why it is not known which nodes take the pod; `None` if all checks so far had a result.
    pub fn unknown(&self) -> Option<Name> {
        self.obstacle.clone().or_else(|| self.doubt.get().cloned())
    }

    /// Whether the scheduler does not place the pod on any node, because a selector fails for a device of a node that
    /// was checked.
    pub fn fails(&self) -> bool {
        self.failure.get().is_some()
    }

    /// Checks a node. A node for which the result is not known is not refused: see [`PodDevices::unknown`].
    pub fn check<R: FilterRefusal>(&self, node: &Node) -> Result<(), R> {
        if let Some(reason) = &self.refusal {
            return Err(R::explained(|| refusal(vec![reason.clone()])));
        }
        if self.obstacle.is_some() {
            return Ok(());
        }
        if !self.pins.iter().all(|terms| terms.iter().any(|term| term.matches(node))) {
            return Err(R::unresolvable(&[Reason::DevicesElsewhere]));
        }
        match self.search(node) {
            Found::Devices(_) => Ok(()),
            Found::Unknown(why) => {
                self.doubt.get_or_init(|| why);
                Ok(())
            }
            Found::Fails(why) => {
                self.failure.get_or_init(|| why.clone());
                Err(R::explained(|| refusal(vec![Reason::DeviceSelector(why)])))
            }
            Found::Nothing => Err(R::explained(|| refusal(self.reasons(node)))),
        }
    }

    /// Returns the claims that need devices on a node.
    fn wanted_on(&self, node: &Node) -> Vec<&Wanted> {
        let is_needed =
            |wanted: &&Wanted| wanted.resource.as_ref().is_none_or(|resource| !node.has_extended(resource));
        self.wanted.iter().filter(is_needed).collect()
    }

    fn search(&self, node: &Node) -> Found {
        let wanted = self.wanted_on(node);
        if wanted.is_empty() {
            return Found::Devices(Vec::new());
        }
        search(&self.inventory, &self.state, node, &wanted)
    }

    /// Returns why a node does not have the devices that the pod needs. If the pod needs only extended resources, the
    /// reasons name them.
    fn reasons(&self, node: &Node) -> Vec<Reason> {
        let wanted = self.wanted_on(node);
        let resources: Option<Vec<Reason>> =
            wanted.iter().map(|wanted| wanted.resource.clone().map(Reason::Insufficient)).collect();
        resources.unwrap_or_else(|| vec![Reason::Devices])
    }

    /// Returns the claims that have their devices already and are reserved for the pod when it is placed.
    pub(super) fn reserved(&self) -> &[Key] {
        &self.reserved
    }

    /// Returns the claims that get devices on a node, each with its devices. Empty if the node does not have the
    /// devices.
    pub(super) fn grants(&self, node: &Node) -> Vec<(Key, Arc<DeviceClaimSpec>, Allocation)> {
        let Found::Devices(chosen) = self.search(node) else { return Vec::new() };
        let wanted = self.wanted_on(node).into_iter();
        let grant = |(wanted, choices): (&Wanted, Vec<Choice>)| {
            (wanted.key.clone(), wanted.spec.clone(), self.allocation(&choices, node))
        };
        wanted.zip(chosen).map(grant).collect()
    }

    /// Returns the allocation of these devices for a node, with the nodes that can use all of them (upstream
    /// `createNodeSelector`).
    fn allocation(&self, choices: &[Choice], target: &Node) -> Allocation {
        let counted = || choices.iter().filter(|choice| !choice.admin);
        let alone = counted().filter(|choice| choice.share.is_none());
        let devices = alone.map(|choice| choice.device).collect();
        let shares = counted().filter_map(|choice| Some((choice.device, choice.share.clone()?))).collect();
        let mut joined = NodeTerm::default();
        for choice in choices {
            let nodes = self.inventory.nodes_of(choice.device);
            let is_local = matches!(nodes, DeviceNodes::Node(_));
            if is_local || self.inventory.device(choice.device).binds_to_node {
                return Allocation { devices, shares, nodes: Some([only(&target.name)].into()) };
            }
            if let DeviceNodes::Matching(terms) = nodes
                && let Some(term) = terms.first()
            {
                joined = join(joined, term);
            }
        }
        let is_free = joined == NodeTerm::default();
        Allocation { devices, shares, nodes: (!is_free).then(|| [joined].into()) }
    }
}

fn refusal(reasons: Vec<Reason>) -> NodeRefusal {
    // Preemption does not help, because the devices of pods that the scheduler could preempt do not count as free.
    NodeRefusal { reasons: reasons.into(), remedy: Remedy::None }
}

/// Returns one node selector term with the requirements of both terms, each requirement once.
fn join(term: NodeTerm, other: &NodeTerm) -> NodeTerm {
    let merged = |own: Box<[NodeRequirement]>, other: &[NodeRequirement]| {
        let mut all: Vec<NodeRequirement> = own.into_vec();
        for requirement in other {
            if !all.contains(requirement) {
                all.push(requirement.clone());
            }
        }
        all.into_boxed_slice()
    };
    NodeTerm {
        expressions: merged(term.expressions, &other.expressions),
        fields: merged(term.fields, &other.fields),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cluster::{DeviceClass, DeviceTables, ObjectEvent, ResourceSlice, device::Device},
        engine::ServerVersion,
    };

    /// Pools of one device each that all nodes can use.
    fn tables(devices: impl IntoIterator<Item = (&'static str, Device)>) -> DeviceTables {
        let mut tables = DeviceTables::default();
        let class = DeviceClass { name: "gpu".into(), ..DeviceClass::default() };
        tables.classes.apply(ObjectEvent::Applied(class), |_| ());
        for (pool, device) in devices {
            let slice = ResourceSlice {
                name: pool.into(),
                driver: "gpu.example.com".into(),
                pool: pool.into(),
                slices_in_pool: 1,
                nodes: DeviceNodes::All,
                devices: [device].into(),
                ..ResourceSlice::default()
            };
            tables.slices.apply(ObjectEvent::Applied(slice), |_| ());
        }
        tables
    }

    /// What a claim for one device gets on node n2.
    fn allocation(tables: &DeviceTables) -> Allocation {
        let inventory =
            Inventory::from_tables(tables, &SchedulerRules::for_version(ServerVersion::new(1, 37)));
        let state = DeviceState { in_use: vec![0; inventory.len()], ..DeviceState::default() };
        let (inventory, state) = (Arc::new(inventory), Arc::new(state));
        let mut needs = PodDevices { inventory, state, ..PodDevices::default() };
        let alternative = DeviceAlternative { class: "gpu".into(), ..DeviceAlternative::default() };
        let request = DeviceRequest { name: "gpu".into(), alternatives: [alternative].into() };
        let spec = DeviceClaimSpec { requests: [request].into(), constraints: Box::default() };
        needs.want(Key::new("ml", "shared"), spec.into(), None);
        let node = Node { name: "n2".into(), ..Node::default() };
        needs.grants(&node).pop().expect("a device").2
    }

    /// Kubernetes 1.37 `structured/internal/incubating/allocator_incubating.go`, `createNodeSelector`.
    #[test]
    fn a_device_that_binds_to_a_node_keeps_its_claim_there() {
        let only_there: Box<[NodeTerm]> = [only(&"n2".into())].into();
        for (binds_to_node, expected) in [(false, None), (true, Some(only_there))] {
            let device = Device { name: "gpu-0".into(), binds_to_node, ..Device::default() };
            assert_eq!(allocation(&tables([("fabric", device)])).nodes, expected, "{binds_to_node}");
        }
    }

    /// Kubernetes 1.37 `structured/internal/incubating/pools_incubating.go`, `GatherPools`.
    #[test]
    fn pools_with_binding_conditions_are_tried_last() {
        for (has_binding_conditions, expected) in [(false, 0_u32), (true, 1)] {
            let first = Device { name: "gpu-0".into(), has_binding_conditions, ..Device::default() };
            let second = Device { name: "gpu-1".into(), ..Device::default() };
            let chosen = allocation(&tables([("a", first), ("b", second)])).devices;
            assert_eq!(*chosen, [expected], "{has_binding_conditions}");
        }
    }
}
