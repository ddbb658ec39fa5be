//! Filters of the default profile, in upstream order. They decide which nodes are feasible for a pod.

mod node_affinity;
mod pod_affinity;
mod resources;
mod spread;
mod taints;
mod volumes;

use std::collections::BTreeSet;

pub(super) use node_affinity::{NodeMatch, TermMatch};
pub(super) use resources::is_left_to_devices;
pub(super) use spread::{CountedNodes, Tally, effective_selector, selected_classes};
pub(super) use volumes::{PodVolumes, TOPOLOGY_LABELS};

use pod_affinity::PodAffinity;
use spread::HardSpread;

use super::{
    devices::PodDevices,
    node_resources::{NodeResources, disks},
    reason::{FilterRefusal, NodeRefusal, Reason, Unexplained},
    scheduling_request::{Caveat, SchedulingRequest},
    snapshot::{Resident, Snapshot},
};
use crate::{
    cluster::{Taint, TaintEffect, Toleration, UNSCHEDULABLE, tolerates_no_schedule},
    engine::ServerVersion,
};

/// State of all filters for one pod. It is computed once, before the filters check nodes.
///
/// [`Filters::assume`] updates the state as if a pod were added to a node or removed from the node. Afterwards, only
/// this node may be checked until the assumption is taken back.
#[derive(Clone, Debug)]
pub(super) struct Filters<'s> {
    pub snapshot: &'s Snapshot,
    pub request: &'s SchedulingRequest,
    pub nodes: NodeMatch,
    pub volumes: PodVolumes,
    pub devices: PodDevices,
    spread: HardSpread,
    pod_affinity: PodAffinity,
    pinned_to: Option<Option<u32>>,
    tolerates_cordons: bool,
}

impl<'s> Filters<'s> {
    pub fn new(snapshot: &'s Snapshot, request: &'s SchedulingRequest) -> Self {
        let nodes = NodeMatch::new(snapshot, &request.spec);
        Self {
            spread: HardSpread::new(snapshot, request, &nodes),
            pod_affinity: PodAffinity::new(snapshot, request),
            volumes: PodVolumes::new(snapshot, request),
            devices: PodDevices::new(snapshot.devices(), request, snapshot.rules()),
            pinned_to: request.pinned_to.as_ref().map(|name| snapshot.number(name)),
            tolerates_cordons: tolerates_cordons(&request.tolerations),
            nodes,
            snapshot,
            request,
        }
    }

    /// Returns whether the scheduler tries only the nodes that the pod's node affinity requires by name.
    pub fn names_nodes(&self) -> bool {
        self.snapshot.rules().pinned_names_narrow && self.nodes.requires_names()
    }

    /// Returns whether the node is among the nodes that the pod requires by name. Always true for a pod that requires
    /// no names.
    pub fn is_candidate(&self, node: u32) -> bool {
        self.nodes.narrow::<Unexplained>(node).is_ok()
    }

    /// Returns all feasible nodes, ascending. Applies one filter to all nodes before the next filter, so that each pass
    /// reads only the data of one filter. Leaves out filters that the pod does not need. Must have the same filters as
    /// [`Filters::check`].
    pub fn feasible(&mut self) -> Vec<u32> {
        let (snapshot, nominated) = (self.snapshot, self.snapshot.nodes_with_nominated());
        let mut feasible = if self.admit::<Unexplained>().is_ok() { self.with_room() } else { Vec::new() };
        if !self.nodes.is_empty() {
            feasible.retain(|node| self.nodes.matches(*node));
        }
        let resources = |node: &u32| snapshot.resources(*node);
        let spec = &self.request.spec;
        if !spec.host_ports.is_empty() {
            feasible.retain(|node| self.check_ports::<Unexplained>(resources(node)).is_ok());
        }
        if !spec.volumes.is_empty() || !self.volumes.is_empty() {
            feasible.retain(|node| self.check_volumes::<Unexplained>(*node, resources(node)).is_ok());
        }
        if !self.spread.is_empty() {
            feasible.retain(|node| self.spread.check::<Unexplained>(*node).is_ok());
        }
        if !self.pod_affinity.is_empty() {
            feasible.retain(|node| self.pod_affinity.check::<Unexplained>(*node).is_ok());
        }
        if !self.devices.is_empty() {
            feasible.retain(|node| self.check_devices::<Unexplained>(*node).is_ok());
            if self.devices.fails() {
                return Vec::new();
            }
        }
        if !spec.required_features.is_empty() {
            feasible.retain(|node| self.check_features::<Unexplained>(*node).is_ok());
        }
        if !nominated.is_empty() {
            feasible.retain(|node| nominated.binary_search(node).is_err());
            feasible.extend(nominated.into_iter().filter(|node| self.is_feasible(*node)));
            feasible.sort_unstable();
        }
        feasible
    }

    /// Returns the nodes, ascending, that pass the checks of the required node name, cordon, taints and free resources.
    fn with_room(&self) -> Vec<u32> {
        let all = self.snapshot.node_resources();
        let (mut nodes, mut node) = (Vec::with_capacity(all.len()), 0);
        all.iter().for_each(|resources| {
            if resources.present
                && self.check_itself::<Unexplained>(node, resources).is_ok()
                && self.check_room::<Unexplained>(resources).is_ok()
            {
                nodes.push(node);
            }
            node += 1;
        });
        nodes
    }

    pub fn is_feasible(&mut self, node: u32) -> bool {
        self.check_as::<Unexplained>(node).is_ok()
    }

    /// Checks a node twice: with the pods of equal or higher priority that are nominated for this node, and without
    /// them.
    ///
    /// # Errors
    /// The refusal by the first filter that refuses the node.
    pub fn check_node(&mut self, node: u32) -> Result<(), NodeRefusal> {
        self.check_as(node)
    }

    fn check_as<R: FilterRefusal>(&mut self, node: u32) -> Result<(), R> {
        let snapshot = self.snapshot;
        let resources = snapshot.resources(node);
        if snapshot.nominated_for(node).is_empty() {
            self.check(node, resources)
        } else {
            self.check_with(node, resources)
        }
    }

    /// Checks a node like [`Filters::check_node`], but with the given resources in place of the node's own.
    pub fn check_with<R: FilterRefusal>(&mut self, node: u32, resources: &NodeResources) -> Result<(), R> {
        let request = self.request;
        let is_itself = |resident: &Resident| {
            resident.pod.key.name == request.name && resident.pod.key.namespace == request.namespace
        };
        let counts = |resident: &&Resident| resident.pod.priority >= request.priority && !is_itself(resident);
        let nominated: Vec<&Resident> = self.snapshot.nominated_for(node).iter().filter(counts).collect();
        if !nominated.is_empty() {
            let mut with_nominated = resources.clone();
            for resident in &nominated {
                with_nominated.add(&resident.pod);
                self.assume(resident, node, Hypothesis::Added);
            }
            let verdict = self.check::<R>(node, &with_nominated);
            nominated.iter().for_each(|resident| self.assume(resident, node, Hypothesis::Removed));
            verdict?;
        }
        self.check(node, resources)
    }

    /// Updates the filters as if a pod were added to the node or removed from it.
    pub fn assume(&mut self, resident: &Resident, node: u32, hypothesis: Hypothesis) {
        let Self { snapshot, request, nodes, .. } = self;
        self.spread.assume(snapshot, request, nodes, resident, node, hypothesis.sign());
        self.pod_affinity.assume(resident, node, hypothesis.sign());
        self.volumes.assume(resident, hypothesis.sign());
    }

    /// Returns the aspects of the pod that no filter checks.
    pub fn caveats(&self) -> BTreeSet<Caveat> {
        let newer = self.snapshot.rules().version > ServerVersion::NEWEST_TESTED;
        let newer = newer.then_some(Caveat::Newer);
        let own = self.volumes.caveats().chain(self.devices.caveat());
        own.chain(self.request.caveats()).chain(newer).collect()
    }

    /// Checks what the kubelet of a node checks before it runs a pod (upstream `predicateAdmitHandler`,
    /// `generalFilter`): labels of the node, ports, resources, and NoExecute taints.
    ///
    /// # Errors
    /// The refusal by the first of these checks that refuses the pod.
    pub fn check_admission(&self, node: u32, resources: &NodeResources) -> Result<(), NodeRefusal> {
        if !self.nodes.matches(node) {
            return Err(NodeRefusal::unresolvable(&[Reason::NodeAffinity]));
        }
        self.check_ports::<NodeRefusal>(resources)?;
        self.check_room::<NodeRefusal>(resources)?;
        let taints = self.snapshot.node(node).taints.iter();
        let evicting: Vec<Taint> =
            taints.filter(|taint| taint.effect == TaintEffect::NoExecute).cloned().collect();
        taints::check(&evicting, &self.request.tolerations, self.snapshot.rules().taints_are_one_reason)
    }

    /// Runs the filters on one node in upstream order, until one refuses the pod. Must have the same filters as
    /// [`Filters::feasible`].
    fn check<R: FilterRefusal>(&self, node: u32, resources: &NodeResources) -> Result<(), R> {
        self.admit()?;
        self.check_itself(node, resources)?;
        if !self.nodes.matches(node) {
            return Err(R::unresolvable(&[Reason::NodeAffinity]));
        }
        self.check_ports(resources)?;
        self.check_room(resources)?;
        self.check_volumes(node, resources)?;
        self.spread.check(node)?;
        self.pod_affinity.check(node)?;
        self.check_devices(node)?;
        self.check_features(node)
    }

    /// Refuses the pod on all nodes if its volumes exclude every node. This refusal takes precedence over the refusals
    /// of single nodes, except if the required node names contradict each other.
    fn admit<R: FilterRefusal>(&self) -> Result<(), R> {
        let names_contradict = self.snapshot.rules().pinned_names_narrow && self.nodes.names_contradict();
        if names_contradict { Ok(()) } else { self.volumes.admit() }
    }

    /// Checks the required node name, the cordon and the taints.
    #[inline]
    fn check_itself<R: FilterRefusal>(&self, node: u32, resources: &NodeResources) -> Result<(), R> {
        let rules = self.snapshot.rules();
        if rules.pinned_names_narrow {
            self.nodes.narrow(node)?;
        }
        if resources.cordoned && !self.tolerates_cordons {
            return Err(R::unresolvable(&[Reason::Cordoned]));
        }
        if self.pinned_to.is_some_and(|pinned| pinned != Some(node)) {
            return Err(R::unresolvable(&[Reason::OtherNode]));
        }
        if resources.has_hard_taints {
            let taints = &self.snapshot.node(node).taints;
            taints::check(taints, &self.request.tolerations, rules.taints_are_one_reason)?;
        }
        Ok(())
    }

    fn check_ports<R: FilterRefusal>(&self, resources: &NodeResources) -> Result<(), R> {
        let ports = &self.request.spec.host_ports;
        if ports.iter().any(|port| resources.ports().iter().any(|used| used.conflicts_with(port))) {
            return Err(R::resolvable(&[Reason::Port]));
        }
        Ok(())
    }

    #[inline]
    fn check_room<R: FilterRefusal>(&self, resources: &NodeResources) -> Result<(), R> {
        resources::check(&self.request.resources.requests, resources, self.snapshot)
    }

    fn check_devices<R: FilterRefusal>(&self, node: u32) -> Result<(), R> {
        if self.devices.is_empty() { Ok(()) } else { self.devices.check(self.snapshot.node(node)) }
    }

    /// Checks whether the node declares the features that the pod requires (upstream `NodeDeclaredFeatures`).
    fn check_features<R: FilterRefusal>(&self, node: u32) -> Result<(), R> {
        let required = &self.request.spec.required_features;
        if required.is_empty() || !self.snapshot.rules().features_are_declared {
            return Ok(());
        }
        let declared = &self.snapshot.node(node).declared_features;
        let Some(missing) = required.iter().find(|feature| !declared.contains(feature)) else {
            return Ok(());
        };
        Err(R::unresolvable_by(|| Reason::FeatureMissing(missing.clone())))
    }

    /// Checks the disks that the pod uses without a volume claim, then its volume claims.
    fn check_volumes<R: FilterRefusal>(&self, node: u32, resources: &NodeResources) -> Result<(), R> {
        if disks(&self.request.spec)
            .any(|disk| resources.disks().iter().any(|used| used.conflicts_with(disk)))
        {
            return Err(R::resolvable(&[Reason::Disk]));
        }
        if self.volumes.is_empty() { Ok(()) } else { self.volumes.check(self.snapshot, node, resources) }
    }
}

/// What [`Filters::assume`] assumes of a pod: that it was added to a node, or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hypothesis {
    Added,
    Removed,
}

impl Hypothesis {
    fn sign(self) -> i64 {
        match self {
            Self::Added => 1,
            Self::Removed => -1,
        }
    }
}

/// Returns whether a toleration matches the taint of cordoned nodes.
fn tolerates_cordons(tolerations: &[Toleration]) -> bool {
    tolerates_no_schedule(tolerations, UNSCHEDULABLE)
}
