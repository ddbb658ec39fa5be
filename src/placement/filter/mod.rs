//! Which nodes would do: the filters of the default profile, in its order.

mod node_affinity;
mod pod_affinity;
mod resources;
mod spread;
mod taints;
mod volumes;

pub(super) use node_affinity::NodeMatch;
pub(super) use node_affinity::TermMatch;
pub(super) use spread::{Tally, counted_nodes, effective_selector};
pub(super) use volumes::{PLACES, PodVolumes};

use std::collections::BTreeSet;

use pod_affinity::Neighbours;
use spread::HardSpread;

use super::{
    node_resources::{NodeResources, disks},
    reason::{NodeRefusal, Reason},
    scheduling_request::{Caveat, SchedulingRequest},
    snapshot::{Resident, Snapshot},
};
use crate::{
    cluster::{Taint, TaintEffect, Toleration},
    engine::ServerVersion,
};

/// Everything about one pod that is worked out once, before nodes are looked at.
///
/// It can be told to imagine pods away from a node or onto it, one node at a time.
#[derive(Clone, Debug)]
pub(super) struct Filters<'s> {
    pub snapshot: &'s Snapshot,
    pub request: &'s SchedulingRequest,
    pub nodes: NodeMatch,
    pub volumes: PodVolumes,
    spread: HardSpread,
    neighbours: Neighbours,
    pinned_to: Option<Option<u32>>,
    bears_cordons: bool,
}

impl<'s> Filters<'s> {
    pub fn new(snapshot: &'s Snapshot, request: &'s SchedulingRequest) -> Self {
        let nodes = NodeMatch::new(snapshot, &request.spec);
        Self {
            spread: HardSpread::new(snapshot, request, &nodes),
            neighbours: Neighbours::new(snapshot, request),
            volumes: PodVolumes::new(snapshot, request),
            pinned_to: request.pinned_to.as_ref().map(|name| snapshot.number(name)),
            bears_cordons: bears_cordons(&request.tolerations),
            nodes,
            snapshot,
            request,
        }
    }

    /// Whether the node would do, with pods of equal or higher priority that wait for it and without them.
    ///
    /// # Errors
    /// What speaks against it.
    pub fn judge(&mut self, node: u32) -> Result<(), NodeRefusal> {
        let snapshot = self.snapshot;
        let resources = snapshot.resources(node);
        if snapshot.expected_on(node).is_empty() {
            self.check(node, resources)
        } else {
            self.judge_in(node, resources)
        }
    }

    /// The same for a node with other room on it.
    pub fn judge_in(&mut self, node: u32, resources: &NodeResources) -> Result<(), NodeRefusal> {
        let request = self.request;
        let myself = |resident: &Resident| {
            resident.pod.key.name == request.name && resident.pod.key.namespace == request.namespace
        };
        let counts = |resident: &&Resident| resident.pod.priority >= request.priority && !myself(resident);
        let expected: Vec<&Resident> = self.snapshot.expected_on(node).iter().filter(counts).collect();
        if !expected.is_empty() {
            let mut fuller = resources.clone();
            for resident in &expected {
                fuller.add(&resident.pod);
                self.imagine(resident, node, Hypothesis::There);
            }
            let verdict = self.check(node, &fuller);
            expected.iter().for_each(|resident| self.imagine(resident, node, Hypothesis::Gone));
            verdict?;
        }
        self.check(node, resources)
    }

    /// Reckons with a pod on the node that is not there, or without one that is.
    pub fn imagine(&mut self, resident: &Resident, node: u32, imagine: Hypothesis) {
        self.spread.imagine(resident, node, imagine.sign());
        self.neighbours.imagine(resident, node, imagine.sign());
        self.volumes.imagine(resident, imagine.sign());
    }

    /// What was not looked at.
    pub fn caveats(&self) -> BTreeSet<Caveat> {
        let newer = self.snapshot.rules().version > NEWEST_TRIED;
        let newer = newer.then_some(Caveat::Newer);
        self.volumes.caveats().chain(self.request.caveats()).chain(newer).collect()
    }

    fn check(&self, node: u32, resources: &NodeResources) -> Result<(), NodeRefusal> {
        let rules = self.snapshot.rules();
        // What rules out every node comes before what leaves out some.
        let narrowed = if rules.pinned_names_narrow { self.nodes.narrow(node) } else { Ok(()) };
        let contradictory = |refusal: &NodeRefusal| refusal.reasons.contains(&Reason::NamesContradict);
        if !narrowed.as_ref().is_err_and(contradictory) {
            self.volumes.admit()?;
        }
        narrowed?;
        if resources.cordoned && !self.bears_cordons {
            return Err(NodeRefusal::final_word(Reason::Cordoned));
        }
        if self.pinned_to.is_some_and(|pinned| pinned != Some(node)) {
            return Err(NodeRefusal::final_word(Reason::OtherNode));
        }
        if resources.has_hard_taints {
            let taints = &self.snapshot.node(node).taints;
            taints::check(taints, &self.request.tolerations, rules.taints_are_one_reason)?;
        }
        if !self.nodes.matches(node) {
            return Err(NodeRefusal::final_word(Reason::NodeAffinity));
        }
        let wanted = &self.request.spec.host_ports;
        if wanted.iter().any(|port| resources.ports.iter().any(|taken| taken.conflicts_with(port))) {
            return Err(NodeRefusal::curable(Reason::Port));
        }
        resources::check(&self.request.spec.requests, resources, rules)?;
        if disks(&self.request.spec).any(|disk| resources.disks.iter().any(|used| used.conflicts_with(disk)))
        {
            return Err(NodeRefusal::curable(Reason::Disk));
        }
        self.volumes.check(self.snapshot, node, resources)?;
        self.spread.check(node)?;
        self.neighbours.check(node)
    }
}

/// The newest scheduler that this was held against.
const NEWEST_TRIED: ServerVersion = ServerVersion::new(1, 36);

/// What to imagine of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hypothesis {
    There,
    Gone,
}

impl Hypothesis {
    fn sign(self) -> i64 {
        match self {
            Self::There => 1,
            Self::Gone => -1,
        }
    }
}

/// Whether the taint that marks cordoned nodes is tolerated.
fn bears_cordons(tolerations: &[Toleration]) -> bool {
    let taint = Taint {
        key: "node.kubernetes.io/unschedulable".into(),
        effect: TaintEffect::NoSchedule,
        ..Taint::default()
    };
    tolerations.iter().any(|toleration| toleration.tolerates(&taint))
}
