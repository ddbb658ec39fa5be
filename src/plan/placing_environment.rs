//! Surroundings in which replacements land where the scheduler would put them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    environment::{Environment, Estimate, TypicalEnvironment},
    landing::Landing,
    owner::{self, Recreation},
    placement_trace::{Displaced, PlacementTrace, Receiver, RunTrace},
};
use crate::{
    cluster::{Cluster, Key, Node, NodeName, OwnerKind, Pod, Termination, WorkloadKind},
    placement::{
        Displacement, Preemption, ResourceUse, SchedulingOutcome, SchedulingRequest, Snapshot, Unschedulable,
    },
    time::{Span, Timestamp},
};

/// What nobody looks at who says where replacements land.
pub const GRANTED: &str = "replacements are as their templates say: quotas let them in, no webhook, HPA or VPA changes them or \
                           their number";

/// What usually happens, and replacements land where a [`Snapshot`] of the cluster says: each sees those before it.
#[derive(Clone, Debug)]
pub struct PlacingEnvironment<'a> {
    usual: TypicalEnvironment<'a>,
    snapshot: Snapshot,
    closed: BTreeSet<NodeName>,
    /// Where pods landed in another run, and what was weighed there.
    landed: BTreeMap<Key, (Landing, Arc<PlacementTrace>)>,
    /// By the pod that is replaced.
    placements: BTreeMap<Key, Arc<PlacementTrace>>,
    /// The load of nodes before they were first changed.
    before: BTreeMap<NodeName, ResourceUse>,
    received: BTreeSet<NodeName>,
    /// What found no place since the snapshot last changed: its like needs not look again.
    in_vain: Vec<(SchedulingRequest, Arc<PlacementTrace>)>,
}

impl<'a> PlacingEnvironment<'a> {
    /// `snapshot` is of this cluster: a new one, or a copy of one that [`Snapshot::follow`] has kept up to date.
    pub fn new(cluster: &'a Cluster, snapshot: Snapshot, now: Timestamp) -> Self {
        Self {
            usual: TypicalEnvironment { cluster, now },
            snapshot,
            closed: BTreeSet::new(),
            landed: BTreeMap::new(),
            placements: BTreeMap::new(),
            before: BTreeMap::new(),
            received: BTreeSet::new(),
            in_vain: Vec::new(),
        }
    }

    /// Cordons what is closed.
    fn close(&mut self, closed: &BTreeSet<NodeName>) {
        for name in closed {
            if self.closed.insert(name.clone())
                && let Some(node) = self.snapshot.node_named(name).filter(|node| !node.unschedulable)
            {
                let cordoned = Node { unschedulable: true, ..(**node).clone() };
                self.snapshot.put_node(Arc::new(cordoned));
                self.in_vain.clear();
            }
        }
    }

    /// Has a pod land where it is known to.
    fn repeat(&mut self, pod: &Pod, landing: &Landing, trace: &PlacementTrace) {
        for displaced in &trace.displaces {
            self.touch(&displaced.node);
            let victim = self.snapshot.remove(&displaced.pod, &displaced.node);
            if let (Some(victim), Some(Landing::Node { node, .. })) = (victim, &displaced.landing) {
                self.settle(&victim, node);
            }
        }
        if let Landing::Node { node, .. } = landing {
            self.settle(pod, node);
        }
    }

    /// Places a pod, makes room for it where it may, and puts it there.
    fn place(&mut self, pod: &Pod, cascade: Cascade) -> (Landing, Arc<PlacementTrace>) {
        let request = replacement(pod, self.usual.cluster);
        let nameless = SchedulingRequest { name: Default::default(), ..request.clone() };
        if let Some((_, trace)) = self.in_vain.iter().find(|(other, _)| *other == nameless) {
            return (Landing::Nowhere { why: trace.why() }, trace.clone());
        }
        match self.snapshot.place(&request) {
            SchedulingOutcome::Placed(placement) => {
                let volumes = self.snapshot.volume_topology(&request);
                let trace = PlacementTrace { volumes, ..PlacementTrace::placed(&placement) };
                let node = placement.choice().clone();
                self.settle(pod, &node);
                (Landing::Node { node, why: trace.why() }, Arc::new(trace))
            }
            SchedulingOutcome::Unschedulable(refused) => match (&refused.preemption, cascade) {
                (Preemption::Displaces(displacement), Cascade::MayDisplace) => {
                    self.displace(pod, displacement, &refused)
                }
                _ => {
                    let volumes = self.snapshot.volume_topology(&request);
                    let mut trace = PlacementTrace { volumes, ..PlacementTrace::refused(&refused) };
                    let closed = &self.closed;
                    trace.help = Some(self.snapshot.help(&request, &|node| closed.contains(node)));
                    let trace = Arc::new(trace);
                    // One that may displace is asked again: others of its kind may not.
                    if !matches!(refused.preemption, Preemption::Displaces(_)) {
                        self.in_vain.push((nameless, trace.clone()));
                    }
                    (Landing::Nowhere { why: trace.why() }, trace)
                }
            },
            SchedulingOutcome::NotTried(obstacle) => {
                let trace = PlacementTrace { obstacle: Some(obstacle), ..PlacementTrace::default() };
                (Landing::Somewhere, Arc::new(trace))
            }
        }
    }

    /// Takes the victims away, puts the pod in their place, and then looks for places for their replacements, which
    /// displace nobody in turn.
    fn displace(
        &mut self,
        pod: &Pod,
        displacement: &Displacement,
        refused: &Unschedulable,
    ) -> (Landing, Arc<PlacementTrace>) {
        let node = &displacement.node;
        self.touch(node);
        for victim in &displacement.victims {
            self.snapshot.remove(&victim.key, node);
        }
        self.settle(pod, node);
        let mut displaces = Vec::new();
        for victim in &displacement.victims {
            let landing = match owner::recreation(self.usual.cluster, victim) {
                Recreation::AtOnce(_) | Recreation::WhenGone(_) => {
                    Some(self.place(victim, Cascade::DisplacesNobody).0)
                }
                Recreation::Here => {
                    let why = "its DaemonSet brings it back when there is room".into();
                    Some(Landing::Nowhere { why })
                }
                Recreation::Never(_) => None,
            };
            displaces.push(Displaced { pod: victim.key.clone(), node: node.clone(), landing });
        }
        let trace = PlacementTrace { displaces, ..PlacementTrace::refused(refused) };
        (Landing::Node { node: node.clone(), why: trace.why() }, Arc::new(trace))
    }

    /// Puts the replacement of a pod on a node.
    fn settle(&mut self, pod: &Pod, node: &NodeName) {
        self.touch(node);
        self.received.insert(node.clone());
        let mut successor =
            Pod { node: Some(node.clone()), nominated: None, termination: None, ..pod.clone() };
        successor.key = Key { name: successor_name(pod).as_str().into(), ..pod.key.clone() };
        self.snapshot.add(Arc::new(successor), node);
    }

    /// Remembers a node's load before it changes.
    fn touch(&mut self, node: &NodeName) {
        self.in_vain.clear();
        if !self.before.contains_key(node)
            && let Some(load) = self.snapshot.resource_use(node)
        {
            self.before.insert(node.clone(), load);
        }
    }
}

/// Whether a pod may displace others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cascade {
    MayDisplace,
    DisplacesNobody,
}

impl Environment for PlacingEnvironment<'_> {
    fn stop(&self, pod: &Pod, grace: Span) -> Estimate {
        self.usual.stop(pod, grace)
    }

    fn land(&mut self, pod: &Pod, closed: &BTreeSet<NodeName>) -> Landing {
        self.close(closed);
        let (landing, trace) = match self.landed.get(&pod.key).cloned() {
            Some((landing, trace)) => {
                self.repeat(pod, &landing, &trace);
                (landing, trace)
            }
            None => self.place(pod, Cascade::MayDisplace),
        };
        self.placements.insert(pod.key.clone(), trace);
        landing
    }

    fn stragglers(&self, pods: usize) -> usize {
        self.usual.stragglers(pods)
    }

    /// Who displaces others waits until they are gone.
    fn ready(&self, pod: &Pod, landing: &Landing) -> Estimate {
        let started = self.usual.ready(pod, landing);
        let trace = self.placements.get(&pod.key).filter(|_| matches!(landing, Landing::Node { .. }));
        let victims = trace.into_iter().flat_map(|trace| &trace.displaces);
        let waits = victims.filter_map(|victim| self.usual.cluster.pod(&victim.pod));
        let waits = waits.map(|victim| self.usual.stop(victim, victim.grace));
        match waits.reduce(Estimate::longer) {
            Some(waits) => waits.and_then(started),
            None => started,
        }
    }

    fn leaving(&mut self, pod: &Pod) {
        let Some(node) = &pod.node else { return };
        let Some(there) = self.snapshot.remove(&pod.key, node) else { return };
        let there = if there.termination.is_some() {
            there
        } else {
            let termination = Termination { deadline: self.usual.now + pod.grace, grace: pod.grace };
            Arc::new(Pod { termination: Some(termination), ..(*there).clone() })
        };
        self.snapshot.add(there, node);
        self.in_vain.clear();
    }

    fn gone(&mut self, pod: &Pod) {
        let Some(node) = &pod.node else { return };
        self.touch(node);
        self.snapshot.remove(&pod.key, node);
    }

    fn update_node(&mut self, node: Arc<Node>) {
        self.snapshot.put_node(node);
        self.in_vain.clear();
    }

    fn fix_landings(&mut self, landings: BTreeMap<Key, Landing>, account: &RunTrace) {
        let lands = |landing: &Landing| !matches!(landing, Landing::Nowhere { .. });
        let known =
            landings.into_iter().filter(|(_, landing)| lands(landing)).filter_map(|(pod, landing)| {
                let trace = account.placements.get(&pod)?.clone();
                Some((pod, (landing, trace)))
            });
        self.landed = known.collect();
    }

    fn trace(&self) -> RunTrace {
        let receiver = |node: &NodeName| {
            let (before, after) = (*self.before.get(node)?, self.snapshot.resource_use(node)?);
            Some(Receiver { node: node.clone(), before, after })
        };
        let receivers = self.received.iter().filter_map(receiver).collect();
        RunTrace { placements: self.placements.clone(), receivers }
    }
}

/// What the scheduler will see of a pod's replacement.
pub fn replacement(pod: &Pod, cluster: &Cluster) -> SchedulingRequest {
    let mut request = SchedulingRequest { nominated: None, ..SchedulingRequest::of(pod, cluster) };
    if !keeps_its_name(pod) {
        request.name = Default::default();
    }
    request
}

fn keeps_its_name(pod: &Pod) -> bool {
    pod.owner.as_ref().is_some_and(|owner| owner.kind == OwnerKind::Workload(WorkloadKind::StatefulSet))
}

/// A name that no pod has, for the successor of one whose name nobody knows yet.
fn successor_name(pod: &Pod) -> String {
    if keeps_its_name(pod) { pod.key.name.to_string() } else { format!("{} (its replacement)", pod.key.name) }
}
